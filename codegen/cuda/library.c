// --cuda-libs: products as calls of cuBLASLt, with the epilogue in the call where the library knows
// it, else as a kernel over the result; and what calls of cuDNN have in common with them. Which
// kernels are calls the layout pass has decided (lower/kernels/library.c). Called by run.c,
// cuda/instance.c and header.c.
#include "codegen/cuda/library.h"
#include "codegen/nest/region.h"
#include "lower/kernels/library.h"
#include "lower/target/schedule.h"

#include <string.h>

// ---- any call -----------------------------------------------------------------------------------

const char *library_size(Codegen *cg, const Dim *d)
{
	return expression_unwrap(cg->arena, dim_in_locals(&cg->sizes, d));
}

// The tensor that load `number` of the epilogue reads; NULL: none is named, or there is none.
static const Value *epilogue_tensor(const Op *op, const Attr *number)
{
	int64_t n = 0;
	for (const Op *in = region_entry(&op->regions[0])->first; number && in; in = in->next)
		if (in->code == OP_LOOP_LOAD && n++ == number->i)
			return op_operand(in, 0);
	return NULL;
}

bool library_epilogue_read(const Op *op, LibraryEpilogue *e)
{
	if (!op_attr(op, "epilogue"))
		return false;
	*e = (LibraryEpilogue){.alpha = op_float(op, "alpha", 1),
	                       .bias = epilogue_tensor(op, op_attr(op, "bias")),
	                       .addend = epilogue_tensor(op, op_attr(op, "addend")),
	                       .activation = (EpilogueKind)op_enum(op, "epilogue")};
	return true;
}

// A tensor that the epilogue reads.
static const char *pointer_or_null(KernelFunc *k, const Value *v)
{
	if (!v)
		return "NULL";
	kernel_tensor(k, v);
	return tensor_pointer(k->cg, v);
}

bool library_call_begin(Codegen *cg, const Op *op, const char *helper, const LibraryEpilogue *e,
                        LibraryCall *call)
{
	const char *title = op_title(cg, op);
	KernelFunc *k = kernel_new(cg, op);
	if (op->nresult != 2)
		return diag_error(cg->ctx->diag, op->loc,
		                  "%s: a call of a library without memory to work in (pass 'scratch')",
		                  op->info->name),
		       false;
	text_printf(&cg->run, "\n\t/* %s: %s */\n", comment_text(cg->arena, title),
	            shape_comment(cg, op->results[0].type));
	*call = (LibraryCall){
		.k = k,
		.title = string_literal(cg->arena, title),
		.out = tensor_pointer(cg, &op->results[0]),
		.scratch = tensor_pointer(cg, &op->results[1]),
		.bytes = library_size(cg, op->results[1].type->dims[0]),
		.a = tensor_pointer(cg, op_operand(op, 0)),
		.b = tensor_pointer(cg, op_operand(op, 1)),
		.bias = pointer_or_null(k, e ? e->bias : NULL),
		.addend = pointer_or_null(k, e ? e->addend : NULL),
		.alpha = scalar_float(cg->arena, DT_F32, e ? e->alpha : 1),
	};
	return call->out && call->scratch && call->a && call->b && call->bias && call->addend &&
	       kernel_helper(k, "cuda_library.c", 0, NULL) && kernel_helper(k, helper, 0, NULL);
}

// The epilogue, element by element in place.
static bool epilogue_emit(KernelFunc *k)
{
	const Value *out = &k->op->results[0];
	const Type *t = out->type;
	const char *args[MAX_RANK + 1] = {"acc"}, *value;
	k->nparam = 1; // the result alone
	k->work = type_numel(k->ctx, t);
	const char *to = kernel_result(k, 0), *total = kernel_dim(k, k->work);
	for (int i = 0; i < t->rank; i++)
		args[1 + i] = region_uses(&k->op->regions[0], 1 + i)
		                  ? tile_position(k, "e", t->rank, t->dims, i)
		                  : "0";
	k->place = "e";
	const char *text = region_text(k, &k->op->regions[0], args, &value);
	if (!text)
		return false;
	const TemplateKey keys[] = {{"total", expression_unwrap(k->arena, total)},
	                            {"load", scalar_load(k, t->dtype, to, "e")},
	                            {"epilogue", text},
	                            {"store", scalar_store(k, t->dtype, to, "e", value)}};
	return kernel_template(k, "cuda_epilogue.c", COUNT_OF(keys), keys);
}

bool library_call_end(Codegen *cg, const LibraryCall *call, const char *name,
                      const LibraryEpilogue *e)
{
	cuda_library_note(cg, call->k, name);
	if (!e)
		return epilogue_emit(call->k) && cuda_launch_print(cg, call->k);
	cuda_node_step(cg, call->k->op);
	return true;
}

// ---- cuBLASLt -----------------------------------------------------------------------------------

// Of op's first operand: its columns, or rows when it is transposed.
static const Dim *depth(const Op *op)
{
	const Type *a = op_operand(op, 0)->type;
	return a->dims[a->rank - (op_bool(op, "transpose_a", false) ? 2 : 1)];
}

static const char *matrix_sizes(Codegen *cg, const Op *op)
{
	Context *c = cg->ctx;
	const Type *out = op->results[0].type, *a = op_operand(op, 0)->type,
			   *b = op_operand(op, 1)->type;
	const Dim *sizes[] = {
		out->dims[out->rank - 2], out->dims[out->rank - 1], depth(op),
		matrix_count(c, out),     matrix_stride(c, a, out), matrix_stride(c, b, out)};
	Text t;
	text_init(&t, cg->arena);
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		text_printf(&t, "%s, ", library_size(cg, sizes[i]));
	text_printf(&t, "%s, %s", op_bool(op, "transpose_a", false) ? "true" : "false",
	            op_bool(op, "transpose_b", false) ? "true" : "false");
	return t.text;
}

const char *library_type(const Op *op, const LibraryTypes *t)
{
	switch (op->results[0].type->dtype) {
	case DT_F16: return t->f16;
	case DT_BF16: return t->bf16;
	default: return cuda_library_rounds(op) ? t->tf32 : t->f32;
	}
}

static const LibraryTypes matrix_types = {
	.f16 = "CUDA_R_16F, CUBLAS_COMPUTE_32F",
	.bf16 = "CUDA_R_16BF, CUBLAS_COMPUTE_32F",
	.tf32 = "CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32",
	.f32 = "CUDA_R_32F, CUBLAS_COMPUTE_32F",
};

static const char *epilogue_name(Arena *a, const LibraryEpilogue *e)
{
	static const char *const activations[] = {
		[EPILOGUE_LINEAR] = "", [EPILOGUE_RELU] = "RELU", [EPILOGUE_GELU] = "GELU"};
	const char *activation = e ? activations[e->activation] : "",
			   *bias = e && e->bias ? "BIAS" : "";
	return *activation || *bias ? arena_printf(a, "CUBLASLT_EPILOGUE_%s%s%s", activation,
	                                           *activation && *bias ? "_" : "", bias)
	                            : "CUBLASLT_EPILOGUE_DEFAULT";
}

static bool matmul_print(Codegen *cg, const Op *op)
{
	LibraryEpilogue read, *e = library_epilogue_read(op, &read) ? &read : NULL;
	LibraryCall call;
	if (!library_call_begin(cg, op, "cuda_lt.c", e, &call))
		return false;
	cg->calls_lt = true;
	text_line(&cg->run, 1, "pd_lt_matmul(queue, m->lt, {%s, %s,", call.title, matrix_sizes(cg, op));
	text_line(&cg->run, 1, "                            %s, %s, %s},",
	          library_type(op, &matrix_types), epilogue_name(cg->arena, e), call.alpha);
	text_line(&cg->run, 1, "             %s, %s, %s, %s, %s, %s, %s);", call.scratch, call.bytes,
	          call.a, call.b, call.bias, call.addend, call.out);
	return library_call_end(cg, &call, "cublasLtMatmul", e);
}

bool cuda_library_print(Codegen *cg, const Op *op)
{
	return op->info->filter == FILTER_PACKED ? cuda_library_conv_print(cg, op)
	                                         : matmul_print(cg, op);
}
