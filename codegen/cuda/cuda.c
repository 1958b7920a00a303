// CUDA: which emitter prints an operation as a __global__ function, what launches it, and kernels
// for sizes, assertions and updates. Sizes found at run time stay on the device: grids are made for
// their bounds, and kernels get the address. Called by run.c and cuda/graph.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/edges.h"

#include "ops_emit_cuda.inc"
#include "ops_work_cuda.inc"

#include <string.h>

enum { THREADS = 256 };

// A branch whose kernel sets sizes.
typedef struct CudaEdge {
	KernelFunc *k;
	const EdgeSizes *sizes;
} CudaEdge;

// The head of a loop over elements, one for each thread.
static void elements_open(Text *out, const char *total)
{
	text_line(out, 1, "const int64_t total = %s;", total);
	text_line(out, 1,
	          "for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < total;");
	text_line(out, 1, "     e += (int64_t)gridDim.x * blockDim.x) {");
}

Emitter *cuda_emitter_of(const Op *op)
{
	return emitters[op->code];
}

// ---- launches -----------------------------------------------------------------------------------

// How many threads have something to do: as many as the last result has elements, where the table
// has no function.
static const Dim *launch_total(Context *c, const Op *op)
{
	return works[op->code] ? works[op->code](c, op)
	                       : type_numel(c, op->results[op->nresult - 1].type);
}

bool cuda_launch_print(Codegen *cg, KernelFunc *k)
{
	const Dim *count = k->grid ? k->grid : k->work ? k->work : launch_total(cg->ctx, k->op);
	const char *total = expression_unwrap(cg->arena,
	                                      dim_in_locals(&cg->plan, dim_at_most(cg->ctx, count)));
	const int threads = k->block_threads ? k->block_threads : THREADS;
	const int per_block = k->per_block ? k->per_block : k->block_threads ? 1 : threads;
	const char *blocks = k->grid ? arena_printf(cg->arena, "pd_grid(%s)", total)
	                             : arena_printf(cg->arena, "pd_blocks(%s, %d)", total, per_block);
	k->blocks = cuda_figure_blocks(cg, count, k->grid ? 1 : per_block);
	return cuda_function_print(cg, k, blocks, threads);
}

// ---- sizes that a run finds ---------------------------------------------------------------------

// A kernel of one thread that reads and sets sizes; its parameters are what its text asks for.
static KernelFunc *size_kernel(Codegen *cg, const Op *op)
{
	KernelFunc *k = kernel_new(cg, op);
	k->nparam = 0;
	k->status = k->sets_sizes = true;
	return k;
}

// The address of a size, as a parameter.
static const char *size_address(KernelFunc *k, const Symbol *s)
{
	const char *e = kernel_dim(k, s->dim); // (*dim_n)
	return arena_strndup(k->arena, e + 2, strlen(e) - 3);
}

static void size_set_print(KernelFunc *k, const Symbol *s, const char *value, Text *out)
{
	text_line(out, 1, "pd_set_size(%s, %d, %s, %s, pd_run, pd_op);", size_address(k, s),
	          cuda_found_count(k->cg), value, kernel_bound(k, s->dim));
}

static bool size_kernel_launch(Codegen *cg, KernelFunc *k, const Text *body)
{
	text_printf(&k->text, KERNEL_HEAD "\n%s}\n", body->text);
	return cuda_function_print(cg, k, "1", 1);
}

bool cuda_bind_print(Codegen *cg, const Op *op, const Op **bound)
{
	const Attr *dims = op_attr(op, "dims");
	KernelFunc *k = size_kernel(cg, op);
	Text body;
	text_init(&body, cg->arena);
	text_printf(&cg->run, "\n\t/* %s: sizes that follow from data */\n",
	            comment_text(cg->arena, op_title(cg, op)));
	const char *x = kernel_tensor(k, op_operand(op, 0));
	for (int i = 0; i < dims->n; i++) {
		const Dim *d = dims->dims[i];
		const Symbol *s = d->kind == DIM_SYM ? symbol_find(cg, d) : NULL;
		const char *element = arena_printf(cg->arena, "(int64_t)%s[%d]", x, i);
		if (!s || !s->dim->bounded || s->next ||
		    (bound[s - cg->symbols] && bound[s - cg->symbols] != op &&
		     !op_bool(op, "anew", false))) {
			text_line(&body, 1, "if (%s != %s)", element, kernel_dim(k, d));
			text_line(&body, 2, "pd_fail(pd_run, PD_DIMS, pd_op);");
			continue;
		}
		bound[s - cg->symbols] = op;
		size_set_print(k, s, element, &body);
	}
	return size_kernel_launch(cg, k, &body);
}

bool cuda_capacity_print(Codegen *cg, const Op *op, const Op **bound)
{
	const Attr *dims = op_attr(op, "dims");
	KernelFunc *k = size_kernel(cg, op);
	Text body;
	text_init(&body, cg->arena);
	text_str(&cg->run, "\n\t/* room in tensor arrays */\n");
	for (int i = 0; i < dims->n; i++) {
		const Symbol *s = symbol_find(cg, dims->dims[i]);
		bound[s - cg->symbols] = op;
		size_set_print(k, s, kernel_bound(k, s->dim), &body);
	}
	return size_kernel_launch(cg, k, &body);
}

static const char *next_name(const Dim *sym, void *arg)
{
	const CudaEdge *e = arg;
	const Dim *from = edge_size_from(e->sizes, sym);
	const Symbol *s = symbol_find(e->k->cg, sym);
	return from && from != sym ? s->next : kernel_dim(e->k, sym);
}

// The symbols in the types of a block's arguments take the sizes of what the branch passes; all are
// read before any is set.
bool cuda_edge_sizes_print(Codegen *cg, const Op *op, int edge)
{
	const Succ *succ = &op->succs[edge];
	const EdgeSizes sizes = edge_sizes_find(cg->arena, op, edge), *z = &sizes;
	if (!edge_sizes_work(z, op, edge))
		return true;
	CudaEdge e = {size_kernel(cg, op), z};
	Text body, set;
	text_init(&body, cg->arena);
	text_init(&set, cg->arena);
	for (int i = 0; i < z->n; i++) {
		const Symbol *s = symbol_find(cg, z->items[i].sym);
		if (z->items[i].from == s->dim)
			continue;
		text_line(&body, 1, "const int64_t %s = %s;", s->next,
		          expression_unwrap(cg->arena, kernel_dim(e.k, z->items[i].from)));
		size_set_print(e.k, s, s->next, &set);
	}
	for (int i = 0; i < (int)succ->count; i++) {
		const Type *want = succ->block->args[i]->type,
				   *have = op_operand(op, (int)succ->first + i)->type;
		for (int d = 0; d < want->rank; d++)
			if (!edge_size_is_same(z, want->dims[d], have->dims[d])) {
				text_line(&body, 1, "if (%s != %s)", kernel_dim(e.k, have->dims[d]),
				          dim_expression(cg->arena, want->dims[d], next_name, &e));
				text_line(&body, 2, "pd_fail(pd_run, PD_DIMS, pd_op);");
			}
	}
	if (set.len)
		text_str(&body, set.text);
	return size_kernel_launch(cg, e.k, &body);
}

// ---- assertions, updates ------------------------------------------------------------------------

static bool elements_launch(Codegen *cg, KernelFunc *k, const Text *body, const Type *t)
{
	text_printf(&k->text, KERNEL_HEAD "\n%s}\n", body->text);
	const char *total = expression_unwrap(cg->arena,
	                                      dim_in_locals(&cg->plan, type_numel(cg->ctx, t)));
	return cuda_function_print(cg, k, arena_printf(cg->arena, "pd_blocks(%s, %d)", total, THREADS),
	                           THREADS);
}

bool cuda_assert_print(Codegen *cg, const Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	KernelFunc *k = size_kernel(cg, op);
	Text body;
	text_init(&body, cg->arena);
	k->sets_sizes = false;
	const char *cond = kernel_tensor(k, op_operand(op, 0));
	text_printf(&cg->run, "\n\t/* %s */\n", comment_text(cg->arena, op_title(cg, op)));
	elements_open(&body, expression_unwrap(cg->arena, kernel_dim(k, type_numel(cg->ctx, t))));
	text_line(&body, 2, "if (!%s[e])", cond);
	text_line(&body, 3, "pd_fail(pd_run, %s, pd_op);", assert_status(op));
	text_line(&body, 1, "}");
	return elements_launch(cg, k, &body, t);
}

// Says how much room there should have been, when the caller set how much there is.
static void room_check_print(KernelFunc *k, const char *condition, const Room *room,
                             const char *need, Text *out)
{
	const Symbol *s = room->symbol;
	text_line(out, 1, "if (%s)", condition);
	if (s)
		text_line(out, 2, "return pd_need_size(%s, %d, %s, pd_run, pd_op);", size_address(k, s),
		          cuda_found_count(k->cg), need);
	else
		text_line(out, 2, "return pd_fail(pd_run, PD_CAPACITY, pd_op);");
}

// Checks the position `at` of a slice.
static void position_check_print(KernelFunc *k, const UpdateChecks *u, Text *out)
{
	const char *size = u->end ? kernel_dim(k, u->slices.size) : NULL;
	if (u->fixed ? u->end : u->sign) {
		text_line(out, 1, u->fixed ? "if (at < 0 || at >= %s)" : "if (at < 0)", size);
		text_line(out, 2, "return pd_fail(pd_run, PD_INDEX, pd_op);");
	}
	if (u->end && !u->fixed) // where even one more is too much, no room will help
		room_check_print(k, arena_printf(k->arena, "at >= %s", size), &u->slices,
		                 "(int64_t)((uint64_t)at + 1)", out);
}

// loop.update: into one slice of the result, and all else from data, unless it lies there already.
bool cuda_update_print(Codegen *cg, const Op *op)
{
	Context *c = cg->ctx;
	const Value *data = op_operand(op, 0), *out = &op->results[0];
	const Type *t = out->type;
	const bool inside = update_keeps(op);
	KernelFunc *k = kernel_new(cg, op);
	Text body;
	text_init(&body, cg->arena);
	const UpdateChecks u = update_checks(cg, op);
	k->status = u.end || u.length;
	text_line(&body, 1, "const int64_t at = (int64_t)*%s, slice = %s, n = %s;",
	          kernel_tensor(k, op_operand(op, 1)), kernel_dim(k, u.slice), kernel_dim(k, u.count));
	position_check_print(k, &u, &body);
	if (u.length)
		room_check_print(k, "n > slice", &u.elements, "n", &body);
	const char *new = kernel_tensor(k, op_operand(op, 2));
	elements_open(&body,
	              inside ? "n" : expression_unwrap(cg->arena, kernel_dim(k, type_numel(c, t))));
	if (inside) {
		text_line(&body, 2, "out[at * slice + e] = %s[e];", new);
	} else { // of an array's room, what nobody has written yet stays so
		text_line(&body, 2, "if (e >= at * slice && e < at * slice + n)");
		text_line(&body, 3, "out[e] = %s[e - at * slice];", new);
		text_line(&body, 2, "else");
		text_line(&body, 3, "PD_COPY(out[e], %s[e]);", kernel_tensor(k, data));
	}
	text_line(&body, 1, "}");
	text_printf(&cg->run, "\n\t/* %s: into %s */\n", comment_text(cg->arena, op_title(cg, op)),
	            shape_comment(cg, t));
	return elements_launch(cg, k, &body, inside ? op_operand(op, 2)->type : t);
}

// loop.append: behind what is there, which is copied unless it lies there already.
bool cuda_append_print(Codegen *cg, const Op *op)
{
	const Value *data = op_operand(op, 0), *out = &op->results[0], *more = op_operand(op, 1);
	const bool inside = update_keeps(op);
	KernelFunc *k = kernel_new(cg, op);
	Text body;
	text_init(&body, cg->arena);
	k->status = true;
	text_line(&body, 1, "const int64_t had = %s;",
	          expression_unwrap(cg->arena, kernel_dim(k, type_numel(cg->ctx, data->type))));
	const char *new = kernel_tensor(k, more), *to = kernel_result(k, 0);
	elements_open(
		&body, expression_unwrap(cg->arena,
	                             kernel_dim(k, type_numel(cg->ctx, (inside ? more : out)->type))));
	if (inside)
		text_line(&body, 2, "%s[had + e] = %s[e];", to, new);
	else
		text_line(&body, 2, "%s[e] = e < had ? %s[e] : %s[e - had];", to, kernel_tensor(k, data),
		          new);
	text_line(&body, 1, "}");
	text_printf(&cg->run, "\n\t/* %s: %s */\n", comment_text(cg->arena, op_title(cg, op)),
	            shape_comment(cg, out->type));
	return elements_launch(cg, k, &body, (inside ? more : out)->type);
}
