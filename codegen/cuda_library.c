// --cuda-libs: products through cuBLASLt, and what remains of their epilogue as a kernel over the result. All products of a
// program share one scratch memory, behind the state of the instance, so none runs beside another. Called by run.c,
// cuda_instance.c and header.c.
#include "codegen_impl.h"
#include "kernel_tile.h"

enum { SCRATCH_BYTES = 4 << 20, ALIGNMENT = 256 };

int64_t cuda_scratch_bytes(const Codegen *cg)
{
	return cg->library ? SCRATCH_BYTES + ALIGNMENT - 64 : 0;
}

static bool type_suits(const Type *t)
{
	bool ok = t->dtype == DT_F32;
	for (int i = 0; i < t->rank; i++)
		ok &= !dim_is_found(t->dims[i]); // sizes must be known to the host
	return ok;
}

// How many matrices lie in front of the last two dims.
static const Dim *batch_count(Context *c, const Type *t)
{
	const Dim *n = dim_const(c, 1);
	for (int i = 0; i < t->rank - 2; i++)
		n = dim_mul(c, n, t->dims[i]);
	return n;
}

// From batch to batch; 0: one matrix for all. NULL: the operand's batches lie otherwise.
static const Dim *batch_stride(Context *c, const Type *t, const Type *out)
{
	if (dim_is(batch_count(c, t), 1))
		return dim_const(c, 0);
	bool same = t->rank == out->rank;
	for (int i = 0; same && i < t->rank - 2; i++)
		same = t->dims[i] == out->dims[i];
	return same ? dim_mul(c, t->dims[t->rank - 2], t->dims[t->rank - 1]) : NULL;
}

// Of op's first operand: its columns, or rows when it is transposed.
static const Dim *depth(const Op *op)
{
	const Type *a = op_operand(op, 0)->type;
	return a->dims[a->rank - (op_bool(op, "transpose_a", false) ? 2 : 1)];
}

// Nothing is summed up for a depth of 0, which the library does not do; nor parts of a depth.
bool cuda_library_suits(const Codegen *cg, const Op *op)
{
	if (!cg->options->cuda_libs || op->code != OP_KERNEL_MATMUL || op_int(op, "split", 1) > 1)
		return false;
	const Type *out = op->results[0].type, *a = op_operand(op, 0)->type, *b = op_operand(op, 1)->type;
	return dim_is_const(depth(op)) && depth(op)->value > 0 && type_suits(out) && type_suits(a) && type_suits(b) &&
	       batch_stride(cg->ctx, a, out) && batch_stride(cg->ctx, b, out);
}

// The epilogue, element by element in place.
static bool epilogue_emit(KernelFunc *k)
{
	const Type *t = k->op->results[0].type;
	const char *args[MAX_RANK + 1] = {"acc"}, *value;
	k->nparam = 1; // the result alone
	const char *total = kernel_dim(k, type_numel(k->ctx, t));
	for (int i = 0; i < t->rank; i++)
		args[1 + i] = region_uses(&k->op->regions[0], 1 + i) ? tile_position(k, "e", t->rank, t->dims, i) : "0";
	k->place = "e";
	const char *text = region_text(k, &k->op->regions[0], args, &value);
	if (!text)
		return false;
	const char *store = scalar_store(k, t->dtype, "out", "e", value);
	const TemplateKey keys[] = {{"total", expression_unwrap(k->arena, total)}, {"epilogue", text}, {"store", store}};
	return kernel_template(k, "cuda_epilogue.c", COUNT_OF(keys), keys);
}

static const char *in_run(Codegen *cg, const Dim *d)
{
	return expression_unwrap(cg->arena, dim_in_run(cg, d));
}

bool cuda_library_print(Codegen *cg, const Op *op)
{
	Context *c = cg->ctx;
	const Type *out = op->results[0].type, *a = op_operand(op, 0)->type, *b = op_operand(op, 1)->type;
	const bool ta = op_bool(op, "transpose_a", false), tb = op_bool(op, "transpose_b", false);
	const char *scratch = arena_printf(cg->arena, "%d", SCRATCH_BYTES);
	KernelFunc *k = kernel_new(cg, op);
	cg->library = true;
	text_printf(&cg->run, "\n\t/* %s: %s */\n", comment_text(cg->arena, op_title(cg, op)), shape_comment(cg, out));
	const char *to = tensor_pointer(cg, &op->results[0]);
	const char *from_a = tensor_pointer(cg, op_operand(op, 0)), *from_b = tensor_pointer(cg, op_operand(op, 1));
	if (!from_a || !from_b || !to || !kernel_helper(k, "cuda_lt.c", 1, (TemplateKey[]){{"scratch", scratch}}))
		return false;
	cuda_node_arguments(cg, k);
	cuda_node_scratch(cg);
	text_line(&cg->run, 1, "pd_lt_matmul(queue, m->lt, m->scratch, {%s, %s, %s, %s, %s, %s, %s, %s}, %s, %s, %s);",
	          in_run(cg, out->dims[out->rank - 2]), in_run(cg, out->dims[out->rank - 1]),
	          in_run(cg, depth(op)), in_run(cg, batch_count(c, out)), in_run(cg, batch_stride(c, a, out)),
	          in_run(cg, batch_stride(c, b, out)), ta ? "true" : "false", tb ? "true" : "false", from_a, from_b, to);
	return region_is_identity(&op->regions[0]) || (epilogue_emit(k) && cuda_launch_print(cg, k));
}
