// Tensors that move as they are: what branches pass to the arguments of blocks, and what is fetched
// without having been computed where the caller wants it. Where the size is on the device, just so
// much moves. Called by cuda/graph.c and run.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/analysis.h"

#include <string.h>

enum { THREADS = 256, MOST_SIZES = 2 };

// ---- how much -----------------------------------------------------------------------------------

// How many elements: sizes on the device, and what the host knows.
typedef struct Count {
	const Dim *host;
	int n;
	const Symbol *sizes[MOST_SIZES];
} Count;

static bool count_add(Codegen *cg, Count *c, const Dim *d)
{
	if (d->kind == DIM_MUL)
		return count_add(cg, c, d->a) && count_add(cg, c, d->b);
	if (d->kind == DIM_SYM && size_is_on_device(cg, d)) {
		if (c->n == MOST_SIZES)
			return false;
		c->sizes[c->n++] = symbol_find(cg, d);
		return true;
	}
	c->host = dim_mul(cg->ctx, c->host, d);
	return !dim_is_found(d);
}

// The most elements of a value: no more are read, whatever sizes a run that fails finds.
static const Dim *count_most(Codegen *cg, const Value *v)
{
	return dim_div(cg->ctx, cuda_bytes(cg, v),
	               dim_const(cg->ctx, (int64_t)dtype_size(v->type->dtype)));
}

// Arguments that say how many elements of type t there are. Returns whether sizes on the device
// decide.
static bool count_arguments(Codegen *cg, const Type *t, CudaArg *args, int *narg)
{
	Count c = {.host = dim_const(cg->ctx, 1)};
	for (int d = 0; d < t->rank; d++)
		if (!count_add(cg, &c, t->dims[d]))
			return false;
	args[(*narg)++] = cuda_arg_number(cg, c.host);
	for (int i = 0; i < MOST_SIZES; i++)
		args[(*narg)++] = i < c.n
		                      ? cuda_arg_word(cg, "const int64_t *", cuda_size_word(cg, c.sizes[i]))
		                      : cuda_arg_literal("const int64_t *", "NULL");
	for (int i = 0; i < c.n; i++)
		cuda_node_word(cg, cuda_size_word(cg, c.sizes[i]), ACCESS_READ);
	return c.n > 0;
}

// The step `pd_move` for a tensor of type t with at most so many elements, or, with the type of
// what comes back, `pd_swap`; where the device knows how many there are, `pd_move_sized` and
// `pd_swap_sized`.
static void transfer_print(Codegen *cg, CudaArg to, CudaArg from, const Type *t, const Type *back,
                           const Dim *most, const Op *branch)
{
	const char *type = dtype_c_memory(t->dtype), *pointer = arena_printf(cg->arena, "%s *", type);
	const CudaArg n = cuda_arg_number(cg, most);
	const char *what = back ? "swap" : "move";
	CudaArg *args = NEW_ARRAY(cg->arena, 3 + 2 * (1 + MOST_SIZES), CudaArg);
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
	const Dim *work = cuda_count_work(cg, most, branch);
	cuda_step_print(
		cg, &(CudaStep){
				.kernel = arena_printf(cg->arena, "pd_%s%s<%s>", what, sized ? "_sized" : "", type),
				.stem = what,
				.func = -1,
				.blocks = arena_printf(cg->arena, "pd_blocks(%s, %d)", n.text, THREADS),
				.threads = THREADS,
				.width = hi,
				.fits = work != NULL,
				.work = work && !work_is_little(work) ? work : NULL,
				.narg = narg,
				.args = args,
			});
}

// ---- what branches move -------------------------------------------------------------------------

typedef struct Move {
	const Value *arg, *value;
	Place to, from;
	const char *target, *source; // pointers
	bool done;
} Move;

static int moves_collect(Codegen *cg, const Op *op, int s, Move *moves)
{
	const Attr *how = op_attr(op, "moves");
	const Succ *succ = &op->succs[s];
	int n = 0, at = 0;
	for (int i = 0; i < s; i++)
		at += (int)op->succs[i].count;
	for (int i = 0; i < (int)succ->count; i++) {
		if (!how || how->kind != ATTR_STRS || at + i >= how->n) {
			diag_error(cg->ctx->diag, op->loc,
			           "code generation: the plan does not say what '%s' moves", op->info->name);
			return -1;
		}
		if (!strcmp(how->strs[at + i], "none") || argument_counts(succ->block->args[i]))
			continue;
		const Value *v = op_operand(op, (int)succ->first + i);
		Move m = {.arg = succ->block->args[i],
		          .value = v,
		          .to = value_place(succ->block->args[i]),
		          .from = value_place(v)};
		m.target = tensor_pointer(cg, m.arg);
		m.source = tensor_pointer(cg, v);
		if (!m.target || !m.source)
			return -1;
		if (!places_equal(&m.to, &m.from))
			moves[n++] = m;
	}
	return n;
}

// `back`: as what the place that the value comes from takes what was in the other; NULL: it moves
// there, and that is all.
static void move_print(Codegen *cg, const Op *branch, Move *m, const Type *back)
{
	const char *type = dtype_c_memory(m->arg->type->dtype), *source = m->source;
	const Dim *count = count_most(cg, m->value);
	const bool cast = strcmp(type, dtype_c_memory(m->from.root->type->dtype)) != 0;
	if (cast)
		source = arena_printf(cg->arena, "(%s *)%s", type, source);
	if (!cuda_count_work(cg, count, branch))
		cuda_steps_end(cg);
	cuda_node_begin(cg, name_sanitize(cg->arena, m->arg->name ? m->arg->name : "move"));
	cuda_node_place(cg, &m->to, ACCESS_WRITE);
	cuda_node_place(cg, &m->from, back ? ACCESS_WRITE : ACCESS_READ);
	transfer_print(cg, cuda_arg_tensor(cg, NULL, m->arg, m->target, false),
	               cuda_arg_tensor(cg, NULL, m->from.root, source, cast), m->arg->type, back, count,
	               branch);
	cuda_node_end(cg);
	m->done = true;
}

// Whether somebody else is still to read what m writes.
static bool move_must_wait(const Move *moves, int n, const Move *m)
{
	for (int i = 0; i < n; i++)
		if (&moves[i] != m && !moves[i].done && places_equal(&moves[i].from, &m->to))
			return true;
	return false;
}

// What is in the place that m writes, as the argument that still waits for it.
static const Type *type_that_leaves(const Move *moves, int n, const Move *m)
{
	for (int i = 0; i < n; i++)
		if (&moves[i] != m && !moves[i].done && places_equal(&moves[i].from, &m->to))
			return moves[i].arg->type;
	return m->arg->type;
}

// All values are read before any is written: each move waits for those that read what it writes.
// What is left goes round in circles: two buffers take each other's place, and whoever wants what
// was in the first finds it in the second.
bool cuda_moves_print(Codegen *cg, const Op *op, int s)
{
	Move *moves = NEW_ARRAY(cg->arena, (size_t)op->succs[s].count + 1, Move);
	int n = moves_collect(cg, op, s, moves);
	for (int left = n; left > 0;) {
		int before = left;
		for (int i = 0; i < n; i++)
			if (!moves[i].done && !move_must_wait(moves, n, &moves[i])) {
				move_print(cg, op, &moves[i], NULL);
				left--;
			}
		for (int i = 0; i < n && left == before; i++) {
			Move *m = &moves[i];
			if (m->done)
				continue;
			move_print(cg, op, m, type_that_leaves(moves, n, m));
			left--;
			for (int k = 0; k < n; k++)
				if (!moves[k].done && places_equal(&moves[k].from, &m->to)) {
					moves[k].from = m->from;
					moves[k].source = m->source;
					left -= moves[k].done = places_equal(&moves[k].from, &moves[k].to);
				}
		}
	}
	return n >= 0;
}

// ---- what is fetched ----------------------------------------------------------------------------

// A copy by CUDA itself where the host knows the size.
void cuda_fetch_print(Codegen *cg, const Value *v, int col, const char *from)
{
	const char *to = arena_printf(cg->arena, "out->%s", cg->outputs[col].member);
	cuda_node_tensor(cg, v, ACCESS_READ);
	cuda_node_output(cg, col, ACCESS_WRITE);
	const char *type = dtype_c_memory(v->type->dtype);
	const bool cast = strcmp(type, dtype_c_memory(value_place(v).root->type->dtype)) != 0;
	if (cast)
		from = arena_printf(cg->arena, "(const %s *)%s", type, from);
	if (type_is_found(v->type))
		transfer_print(cg, (CudaArg){NULL, to, cg->outputs[col].member},
		               cuda_arg_tensor(cg, NULL, v, from, cast), v->type, NULL, count_most(cg, v),
		               NULL);
	else
		text_line(&cg->run, 1, "pd_copy(queue, %s, %s, (size_t)%s);", to, from,
		          dim_in_locals(&cg->plan, cuda_bytes(cg, v)));
}
