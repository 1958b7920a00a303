// Tensors that move as they are: what branches pass to the arguments of blocks, and what is fetched
// without having been computed where the caller wants it. Where the size is on the device, just so
// much moves. Called by cuda/graph.c and run.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/edges.h"

#include <string.h>

enum { THREADS = 256 };

// ---- how much -----------------------------------------------------------------------------------

// Arguments that say how many elements of type t there are. Returns whether sizes on the device
// decide.
static bool count_arguments(Codegen *cg, const Type *t, CudaArg *args, int *narg)
{
	MoveCount c;
	if (!move_count(cg->ctx, t, &c))
		return false;
	args[(*narg)++] = cuda_arg_number(cg, c.host);
	for (int i = 0; i < MOVE_SIZES; i++)
		args[(*narg)++] = i < c.n ? cuda_arg_word(cg, "const int64_t *",
		                                          cuda_size_word(cg, symbol_find(cg, c.sizes[i])))
		                          : cuda_arg_literal("const int64_t *", "NULL");
	return c.n > 0;
}

// The step `pd_move` for a tensor of type t with at most so many elements, or, with the type of
// what comes back, `pd_swap`; where the device knows how many there are, `pd_move_sized` and
// `pd_swap_sized`.
static void transfer_print(Codegen *cg, const Op *op, CudaArg to, CudaArg from, const Type *t,
                           const Type *back, const Dim *most)
{
	const char *type = dtype_c_memory(t->dtype), *pointer = arena_printf(cg->arena, "%s *", type);
	const CudaArg n = cuda_arg_number(cg, most);
	const char *what = back ? "swap" : "move";
	CudaArg *args = NEW_ARRAY(cg->arena, 3 + 2 * (1 + MOVE_SIZES), CudaArg);
	int narg = 0;
	to.type = pointer;
	from.type = back ? pointer : arena_printf(cg->arena, "const %s", pointer);
	args[narg++] = to;
	args[narg++] = from;
	args[narg++] = n;
	int counted = narg;
	const bool sized = count_arguments(cg, t, args, &counted) &&
	                   (!back ||
	                    (back->dtype == t->dtype && count_arguments(cg, back, args, &counted)));
	narg = sized ? counted : narg;
	int64_t lo, hi;
	dim_range(most, &lo, &hi);
	cuda_step_print(
		cg, &(CudaStep){
				.op = op,
				.kernel = arena_printf(cg->arena, "pd_%s%s<%s>", what, sized ? "_sized" : "", type),
				.stem = what,
				.func = -1,
				.blocks = arena_printf(cg->arena, "pd_blocks(%s, %d)", n.text, THREADS),
				.threads = THREADS,
				.width = hi,
				.work = dim_at_most(cg->ctx, most),
				.narg = narg,
				.args = args,
			});
}

// ---- what branches move -------------------------------------------------------------------------

static bool move_print(Codegen *cg, const Op *branch, const EdgeMove *m)
{
	const char *type = dtype_c_memory(m->arg->type->dtype);
	const char *target = tensor_pointer(cg, m->arg), *source = tensor_pointer(cg, m->source);
	const Dim *count = move_most(cg->ctx, m->value);
	const bool cast = strcmp(type, dtype_c_memory(m->from.root->type->dtype)) != 0;
	if (!target || !source)
		return false;
	if (cast)
		source = arena_printf(cg->arena, "(%s *)%s", type, source);
	cuda_node_begin(cg, name_sanitize(cg->arena, m->arg->name ? m->arg->name : "move"));
	transfer_print(cg, branch, cuda_arg_tensor(cg, NULL, m->arg, target, false),
	               cuda_arg_tensor(cg, NULL, m->from.root, source, cast), m->arg->type, m->back,
	               count);
	cuda_node_end(cg);
	return true;
}

bool cuda_moves_print(Codegen *cg, const Op *op, int s)
{
	const EdgeMove *moves;
	const int n = edge_moves_find(cg->arena, op, s, &moves);
	if (n < 0)
		diag_error(cg->ctx->diag, op->loc, "code generation: the plan does not say what '%s' moves",
		           op->info->name);
	for (int i = 0; i < n; i++)
		if (!move_print(cg, op, &moves[i]))
			return false;
	return n >= 0;
}

// ---- what is fetched ----------------------------------------------------------------------------

// A copy by CUDA itself where the host knows the size.
void cuda_fetch_print(Codegen *cg, const Op *op, int col, const char *from)
{
	const Value *v = op_operand(op, 0);
	const char *to = arena_printf(cg->arena, "out->%s", cg->outputs[col].member);
	const char *type = dtype_c_memory(v->type->dtype);
	const bool cast = strcmp(type, dtype_c_memory(value_place(v).root->type->dtype)) != 0;
	if (cast)
		from = arena_printf(cg->arena, "(const %s *)%s", type, from);
	if (type_is_found(v->type))
		transfer_print(cg, op, (CudaArg){NULL, to, cg->outputs[col].member},
		               cuda_arg_tensor(cg, NULL, v, from, cast), v->type, NULL,
		               move_most(cg->ctx, v));
	else {
		cuda_node_step(cg, op);
		text_line(&cg->run, 1, "pd_copy(queue, %s, %s, (size_t)%s);", to, from,
		          dim_in_locals(&cg->plan, move_bytes(cg->ctx, v)));
	}
}
