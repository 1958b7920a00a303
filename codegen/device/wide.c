// CUDA: several elements of a nest, or several terms of a reduction, for each thread: loads and
// stores of elements side by side are single accesses of up to 16 bytes (pd_load and pd_store in
// cuda_prelude.c.in). Tensors of the workspace, weights, and what callers give begin at multiples
// of 16 bytes. Called by device/nest.c and device/reduce.c.
#include "codegen/device/nest.h"

#include <string.h>

enum { ACCESS_BYTES = 16, MIXED_LANES = 4, VECTOR_THREADS = 256 };

// ---- width --------------------------------------------------------------------------------------

typedef struct Sizes {
	int least, most; // bytes of an element
} Sizes;

static void size_meet(Sizes *z, DType t)
{
	const int size = (int)dtype_size(t);
	z->least = !z->least || size < z->least ? size : z->least;
	z->most = size > z->most ? size : z->most;
}

int wide_lanes(const Scalars *s, const Block *body, const Value *arg, const Type *const *results,
               int nresult)
{
	Sizes z = {0, 0};
	for (int i = 0; i < nresult; i++)
		size_meet(&z, results[i]->dtype);
	for (const Op *op = body->first; op; op = op->next)
		if (load_indices_at(op) && (!arg || load_stride(s, op, arg) == 1))
			size_meet(&z, op_operand(op, load_indices_at(op) - 1)->type->dtype);
	if (!z.most)
		return 1;
	const int lanes = ACCESS_BYTES / z.most;
	return z.least == z.most || lanes > MIXED_LANES ? lanes : z.least < 8 ? MIXED_LANES : lanes;
}

// ---- what depends on the lane -------------------------------------------------------------------

typedef enum LaneState {
	STATE_SAME = 1,
	STATE_UNIFORM,
	STATE_MOVES
} LaneState; // uniform: the same, though its operands move

static LaneState value_state(const WideBlock *l, const Value *v)
{
	if (!v->def || v->def->block != l->body) {
		for (const Value *at = v; l->arg && at; at = pointer_map_get(&l->s->merged, at))
			if (at == l->arg)
				return STATE_MOVES;
		return l->arg || !v->block || v->block != l->body ? STATE_SAME : STATE_MOVES;
	}
	return (LaneState)(intptr_t)pointer_map_get(&l->state, v->def);
}

static bool is_constant(const Value *v, int64_t *out)
{
	if (!v->def || v->def->code != OP_LOOP_CONSTANT)
		return false;
	const Attr *a = op_attr(v->def, "value");
	*out = a->kind == ATTR_FLOAT ? int_from_double(a->f) : a->i;
	return true;
}

// What an index is without the constants that are added to it, and their sum.
static const Value *without_shift(const Value *v, int64_t *shift)
{
	int64_t c;
	for (*shift = 0; v->def && v->def->noperand == 2 && is_constant(op_operand(v->def, 1), &c);
	     v = op_operand(v->def, 0)) {
		if (v->def->code != OP_PD_ADD && v->def->code != OP_PD_SUBTRACT)
			break;
		*shift += v->def->code == OP_PD_ADD ? c : -c;
	}
	return v;
}

// Whether `moving < border` is the same for all lanes: the border stands between vectors. `beyond`:
// it is `moving <= border`.
static bool border_fits(const WideBlock *l, const Value *moving, const Value *border, bool beyond)
{
	int64_t c, shift;
	if (value_state(l, border) != STATE_SAME || moving->type->kind != TY_INDEX ||
	    index_stride(moving, l->arg) != 1)
		return false;
	moving = without_shift(moving, &shift);
	if (index_power(l->s, moving, l->arg, l->width) < l->width)
		return false;
	if (is_constant(border, &c))
		return (c - shift + beyond) % l->width == 0;
	return (beyond - shift) % l->width == 0 &&
	       index_power(l->s, border, l->arg, l->width) >= l->width;
}

static bool comparison_is_uniform(const WideBlock *l, const Op *op)
{
	const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
	switch (op->code) {
	case OP_PD_LESS_THAN:
	case OP_PD_GREATER_EQUAL: return border_fits(l, a, b, false) || border_fits(l, b, a, true);
	case OP_PD_GREATER_THAN:
	case OP_PD_LESS_EQUAL: return border_fits(l, a, b, true) || border_fits(l, b, a, false);
	default: return false;
	}
}

static LaneState op_state(const WideBlock *l, const Op *op)
{
	LaneState most = STATE_SAME;
	if (op->nregion)
		return STATE_MOVES;
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && value_state(l, op_operand(op, i)) > most)
			most = value_state(l, op_operand(op, i));
	if (most == STATE_MOVES && l->arg && comparison_is_uniform(l, op))
		return STATE_UNIFORM;
	return most;
}

static void mark(PointerMap *m, const Op *op)
{
	pointer_map_set(m, op, op);
}

static bool marked(const PointerMap *m, const Op *op)
{
	return pointer_map_get(m, op) != NULL;
}

static const Type *loaded_type(const Op *load)
{
	return op_operand(load, load_indices_at(load) - 1)->type;
}

// Whether what stands in for a load is a vector of such elements, too.
static bool other_is_vector(const WideBlock *l, const Op *load)
{
	const Op *other = op_operand(load, 1)->def;
	return other && marked(&l->vector, other) &&
	       loaded_type(other)->dtype == loaded_type(load)->dtype;
}

static bool load_is_vector(const WideBlock *l, const Op *op)
{
	if (!load_indices_at(op) || value_state(l, &op->results[0]) != STATE_MOVES)
		return false;
	if (op->code == OP_LOOP_LOAD_OR &&
	    (value_state(l, op_operand(op, 0)) == STATE_MOVES ||
	     (value_state(l, op_operand(op, 1)) != STATE_SAME && !other_is_vector(l, op))))
		return false;
	return l->is_vector(l, op);
}

static void operand_mark(WideBlock *l, const Value *v, bool lane)
{
	if (v && v->def && v->def->block == l->body)
		mark((lane && value_state(l, v) == STATE_MOVES) || marked(&l->vector, v->def) ? &l->lane
		                                                                              : &l->base,
		     v->def);
}

// What each lane computes, and what is known before: from the terminator up.
static void uses_mark(WideBlock *l)
{
	const Op *end = block_terminator(l->body);
	for (int i = 0; i < end->noperand; i++)
		operand_mark(l, op_operand(end, i), true);
	for (const Op *op = end->prev; op; op = op->prev) {
		const bool vector = marked(&l->vector, op) && marked(&l->lane, op);
		for (int i = 0; i < op->noperand; i++) {
			if (marked(&l->base, op) || vector)
				operand_mark(l, op_operand(op, i), false);
			if (marked(&l->lane, op) && !vector)
				operand_mark(l, op_operand(op, i), true);
		}
	}
}

void wide_init(WideBlock *l)
{
	PointerMap *const maps[] = {&l->state, &l->vector, &l->base, &l->lane};
	for (size_t i = 0; i < COUNT_OF(maps); i++)
		pointer_map_init(maps[i], l->s->k->arena);
	for (const Op *op = l->body->first; op; op = op->next) {
		pointer_map_set(&l->state, op, (const void *)(intptr_t)op_state(l, op));
		if (load_is_vector(l, op))
			mark(&l->vector, op);
	}
	uses_mark(l);
}

bool wide_any(const WideBlock *l)
{
	for (const Op *op = l->body->first; op; op = op->next)
		if (marked(&l->vector, op) && marked(&l->lane, op))
			return true;
	return false;
}

// Whether lanes read memory one by one, or check what they read: not behind the end.
static bool lanes_need_guard(const WideBlock *l)
{
	for (const Op *op = l->body->first; op; op = op->next)
		if (marked(&l->lane, op) && !marked(&l->vector, op) &&
		    (load_indices_at(op) || op->code == OP_LOOP_TO_INDEX))
			return true;
	return false;
}

// ---- printing -----------------------------------------------------------------------------------

// What stands in for a load, in all lanes; NULL after a diagnostic.
static const char *other_lanes(WideBlock *l, const Op *load)
{
	Arena *a = l->s->k->arena;
	if (other_is_vector(l, load))
		return pointer_map_get(&l->vector, op_operand(load, 1)->def);
	const DType t = loaded_type(load)->dtype;
	const char *other = scalars_name(l->s, op_operand(load, 1));
	if (!other)
		return NULL;
	other = expression_unwrap(a, other);
	if (dtype_is_half(t))
		other = arena_printf(a, "pd_%s_store(%s)", dtype_name(t), other);
	return arena_printf(a, "pd_fill<%d, %s>(%s)", l->width, dtype_c_memory(t), other);
}

// The load of all lanes; their elements are then `x3.v[l]`.
static bool vector_load_print(WideBlock *l, const Op *op, int depth, Text *out)
{
	Scalars *s = l->s;
	KernelFunc *k = s->k;
	const Value *tensor = op_operand(op, load_indices_at(op) - 1);
	const char *index = l->arg ? load_index(s, op) : l->first, *name = kernel_local(k, "x");
	if (!index)
		return false;
	const char *at = strcmp(index, "0") ? arena_printf(k->arena, " + %s", index) : "";
	const char *rest = l->rest ? arena_printf(k->arena, ", %s", l->rest) : "";
	const char *load = arena_printf(k->arena, "pd_load<%d>(%s%s%s)", l->width,
	                                kernel_tensor(k, tensor), at, rest);
	if (op->code == OP_LOOP_LOAD_OR) {
		const char *pred = scalars_name(s, op_operand(op, 0)), *other = other_lanes(l, op);
		if (!pred || !other)
			return false;
		load = arena_printf(k->arena, "%s ? %s : %s", pred, load, other);
	}
	kernel_moves(k, tensor->type->dtype, l->width);
	text_line(out, depth, "const pd_vec<%s, %d> %s = %s;", dtype_c_memory(tensor->type->dtype),
	          l->width, name, load);
	pointer_map_set(&l->vector, op, name);
	return true;
}

// Whether the one reader of an operation's result stands among what is printed in front of the
// lanes.
static bool reader_is_base(const WideBlock *l, const Op *op)
{
	const Use *use = op->results[0].uses;
	return use && (!marked(&l->lane, use->user) || marked(&l->vector, use->user)) &&
	       use->user != block_terminator(l->body);
}

bool wide_base_print(WideBlock *l, int depth, Text *out)
{
	if (l->arg)
		pointer_map_set(&l->s->names, l->arg, l->first);
	for (const Op *op = l->body->first; op != block_terminator(l->body); op = op->next) {
		if (marked(&l->vector, op) && marked(&l->lane, op)) {
			if (!vector_load_print(l, op, depth, out))
				return false;
		} else if (marked(&l->base, op) &&
		           !scalar_op_print(l->s, op, reader_is_base(l, op), depth, out)) {
			return false;
		}
	}
	return true;
}

bool wide_lane_print(WideBlock *l, const char *name, int depth, Text *out)
{
	KernelFunc *k = l->s->k;
	if (l->arg)
		pointer_map_set(&l->s->names, l->arg, name);
	for (const Op *op = l->body->first; op != block_terminator(l->body); op = op->next) {
		if (!marked(&l->lane, op))
			continue;
		if (marked(&l->vector, op)) {
			const char *vector = arena_printf(k->arena, "%s.v",
			                                  (const char *)pointer_map_get(&l->vector, op));
			pointer_map_set(&l->s->names, &op->results[0],
			                scalar_load(k, loaded_type(op)->dtype, vector, "l"));
		} else if (!scalar_op_print(l->s, op, true, depth, out)) {
			return false;
		}
	}
	return true;
}

// ---- nests --------------------------------------------------------------------------------------

// The vector lies along the innermost loop.
static bool load_is_along(const WideBlock *l, const Op *op)
{
	return load_stride(l->s, op, l->arg) == 1 && load_power(l->s, op, l->arg, l->width) >= l->width;
}

// Whether the load is that of the element which the nest computes.
static bool load_is_element(const WideBlock *l, const Op *op)
{
	const int first = load_indices_at(op);
	const Type *t = op_operand(op, first - 1)->type, *result = l->nest->op->results[0].type;
	if (t->rank != result->rank)
		return false;
	for (int d = 0; d < t->rank; d++)
		if (op_operand(op, first + d) != l->body->args[d] || t->dims[d] != result->dims[d])
			return false;
	return true;
}

// The vector of a result that the lanes fill.
static const char *lane_result(KernelFunc *k, int i)
{
	return arena_printf(k->arena, "y%d", i);
}

static bool lanes_print(WideBlock *l, Nest *n, const char *name, const char *guard)
{
	KernelFunc *k = n->k;
	const Op *end = block_terminator(n->body);
	for (int i = 0; i < end->noperand; i++) {
		const DType t = n->op->results[i].type->dtype;
		kernel_moves(k, t, l->width);
		text_line(n->out, 2, "pd_vec<%s, %d> %s%s;", dtype_c_memory(t), l->width, lane_result(k, i),
		          guard ? " = {}" : "");
	}
	text_line(n->out, 2, "PD_UNROLL for (int l = 0; l < %d; l++) {", l->width);
	if (guard)
		text_line(n->out, 3, "if (%s) {", guard);
	const int depth = guard ? 4 : 3;
	if (!wide_lane_print(l, name, depth, n->out))
		return false;
	for (int i = 0; i < end->noperand; i++) {
		const char *value = scalars_name(&n->s, op_operand(end, i));
		if (!value)
			return false;
		const char *to = arena_printf(k->arena, "%s.v", lane_result(k, i));
		text_line(n->out, depth, "%s;",
		          scalar_store(k, n->op->results[i].type->dtype, to, "l", value));
	}
	if (guard)
		text_line(n->out, 3, "}");
	if (!l->arg)
		positions_advance(n, 3);
	text_line(n->out, 2, "}");
	for (int i = 0; i < end->noperand; i++)
		text_line(n->out, 2, "pd_store(%s + e, %s%s%s);", kernel_result(k, i), lane_result(k, i),
		          l->rest ? ", " : "", l->rest ? l->rest : "");
	return true;
}

// The innermost loop, when every vector lies within it.
static const Value *lane_arg(const Nest *n, int width)
{
	if (!n->nloop)
		return NULL;
	const Loop *inner = &n->loops[n->nloop - 1];
	return n->nloop == 1 || size_power(n->k->ctx, inner->extent) >= width ? inner->arg : NULL;
}

bool nest_wide_print(Nest *n, const Dim *total, bool *done)
{
	KernelFunc *k = n->k;
	const Type **results = NEW_ARRAY(k->arena, (size_t)n->op->nresult, const Type *);
	for (int i = 0; i < n->op->nresult; i++)
		results[i] = n->op->results[i].type;
	const Value *inner = n->nloop ? n->loops[n->nloop - 1].arg : NULL;
	const int width = inner ? wide_lanes(&n->s, n->body, inner, results, n->op->nresult) : 1;
	*done = false;
	if (width == 1 || (dim_is_const(total) && total->value < width) || nest_has_regions(n))
		return true;
	WideBlock l = {
		.s = &n->s, .body = n->body, .arg = lane_arg(n, width), .width = width, .nest = n};
	l.is_vector = l.arg ? load_is_along : load_is_element;
	wide_init(&l);
	l.rest = size_power(k->ctx, total) < width ? "total - e" : NULL;
	const char *guard = l.rest && lanes_need_guard(&l) ? "e + l < total" : NULL;
	*done = true;
	k->per_block = VECTOR_THREADS * width;
	k->block_threads = VECTOR_THREADS;
	text_line(n->out, 1,
	          "for (%s e = ((%s)blockIdx.x * (%s)blockDim.x + (%s)threadIdx.x) * %d; e < total;",
	          k->index, k->index, k->index, k->index, width);
	text_line(n->out, 1, "     e += (%s)gridDim.x * (%s)blockDim.x * %d) {", k->index, k->index,
	          width);
	positions_print(n, "e", !l.arg, 2);
	const char *first = l.arg ? pointer_map_get(&n->s.names, l.arg) : NULL;
	l.first = first ? first : "e"; // not named: nothing reads the position
	if (!wide_base_print(&l, 2, n->out))
		return false;
	const char *name = l.arg ? arena_printf(k->arena, "(%s + l)", l.first) : NULL;
	if (!lanes_print(&l, n, name, guard))
		return false;
	text_line(n->out, 1, "}");
	return true;
}
