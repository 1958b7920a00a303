// CUDA: several elements of a nest, or several terms of a reduction, for each thread: loads and
// stores of elements side by side are single accesses of up to 16 bytes (pd_load and pd_store in
// cuda_prelude.c.in). Tensors of the workspace, weights, and what callers give begin at multiples
// of 16 bytes. Called by device/nest.c and device/reduce.c.
#include "codegen/device/nest.h"

#include <string.h>

enum { VECTOR_THREADS = 256 };

// ---- what depends on the lane -------------------------------------------------------------------

static void mark(PointerMap *m, const Op *op)
{
	pointer_map_set(m, op, op);
}

static bool marked(const PointerMap *m, const Op *op)
{
	return pointer_map_get(m, op) != NULL;
}

static bool at_once(const Op *op)
{
	return load_indices_at(op) && op_int(op, "lanes", 1) > 1;
}

// Whether what stands in for a load is a vector of such elements, too.
static bool other_is_vector(const Op *load)
{
	const Op *other = op_operand(load, 1)->def;
	return other && at_once(other) && load_tensor(other)->dtype == load_tensor(load)->dtype;
}

static void operand_mark(WideBlock *l, const Value *v, bool lane)
{
	if (v && v->def && v->def->block == l->lanes.body)
		mark((lane && lane_state(&l->lanes, v) == LANE_MOVES) || at_once(v->def) ? &l->lane
		                                                                         : &l->base,
		     v->def);
}

// What each lane computes, and what is known before: from the terminator up.
static void uses_mark(WideBlock *l)
{
	const Op *end = block_terminator(l->lanes.body);
	for (int i = 0; i < end->noperand; i++)
		operand_mark(l, op_operand(end, i), true);
	for (const Op *op = end->prev; op; op = op->prev) {
		const bool vector = at_once(op) && marked(&l->lane, op);
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
	PointerMap *const maps[] = {&l->vector, &l->base, &l->lane};
	for (size_t i = 0; i < COUNT_OF(maps); i++)
		pointer_map_init(maps[i], l->s->k->arena);
	lanes_find(&l->lanes, l->s->k->arena);
	uses_mark(l);
}

// Whether lanes read memory one by one, or check what they read: not behind the end.
static bool lanes_need_guard(const WideBlock *l)
{
	for (const Op *op = l->lanes.body->first; op; op = op->next)
		if (marked(&l->lane, op) && !at_once(op) &&
		    (load_indices_at(op) || op->code == OP_LOOP_TO_INDEX))
			return true;
	return false;
}

// ---- printing -----------------------------------------------------------------------------------

// What stands in for a load, in all lanes; NULL after a diagnostic.
static const char *other_lanes(WideBlock *l, const Op *load)
{
	Arena *a = l->s->k->arena;
	if (other_is_vector(load))
		return pointer_map_get(&l->vector, op_operand(load, 1)->def);
	const DType t = load_tensor(load)->dtype;
	const char *other = scalars_name(l->s, op_operand(load, 1));
	if (!other)
		return NULL;
	other = expression_unwrap(a, other);
	if (dtype_is_half(t))
		other = arena_printf(a, "pd_%s_store(%s)", dtype_name(t), other);
	return arena_printf(a, "pd_fill<%d, %s>(%s)", l->lanes.width, dtype_c_memory(t), other);
}

// The load of all lanes; their elements are then `x3.v[l]`.
static bool vector_load_print(WideBlock *l, const Op *op, int depth, Text *out)
{
	Scalars *s = l->s;
	KernelFunc *k = s->k;
	const Value *tensor = op_operand(op, load_indices_at(op) - 1);
	const char *index = l->lanes.arg ? load_index(s, op) : l->first, *name = kernel_local(k, "x");
	if (!index)
		return false;
	const char *at = strcmp(index, "0") ? arena_printf(k->arena, " + %s", index) : "";
	const char *rest = l->rest ? arena_printf(k->arena, ", %s", l->rest) : "";
	const char *load = arena_printf(k->arena, "pd_load<%d>(%s%s%s)", l->lanes.width,
	                                kernel_tensor(k, tensor), at, rest);
	if (op->code == OP_LOOP_LOAD_OR) {
		const char *pred = scalars_name(s, op_operand(op, 0)), *other = other_lanes(l, op);
		if (!pred || !other)
			return false;
		load = arena_printf(k->arena, "%s ? %s : %s", pred, load, other);
	}
	kernel_moves(k, tensor->type->dtype, l->lanes.width);
	text_line(out, depth, "const pd_vec<%s, %d> %s = %s;", dtype_c_memory(tensor->type->dtype),
	          l->lanes.width, name, load);
	pointer_map_set(&l->vector, op, name);
	return true;
}

// Whether the one reader of an operation's result stands among what is printed in front of the
// lanes.
static bool reader_is_base(const WideBlock *l, const Op *op)
{
	const Use *use = op->results[0].uses;
	return use && (!marked(&l->lane, use->user) || at_once(use->user)) &&
	       use->user != block_terminator(l->lanes.body);
}

bool wide_base_print(WideBlock *l, int depth, Text *out)
{
	if (l->lanes.arg)
		pointer_map_set(&l->s->names, l->lanes.arg, l->first);
	for (const Op *op = l->lanes.body->first; op != block_terminator(l->lanes.body);
	     op = op->next) {
		if (at_once(op) && marked(&l->lane, op)) {
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
	if (l->lanes.arg)
		pointer_map_set(&l->s->names, l->lanes.arg, name);
	for (const Op *op = l->lanes.body->first; op != block_terminator(l->lanes.body);
	     op = op->next) {
		if (!marked(&l->lane, op))
			continue;
		if (at_once(op)) {
			const char *vector = arena_printf(k->arena, "%s.v",
			                                  (const char *)pointer_map_get(&l->vector, op));
			pointer_map_set(&l->s->names, &op->results[0],
			                scalar_load(k, load_tensor(op)->dtype, vector, "l"));
		} else if (!scalar_op_print(l->s, op, true, depth, out)) {
			return false;
		}
	}
	return true;
}

// ---- nests --------------------------------------------------------------------------------------

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
		kernel_moves(k, t, l->lanes.width);
		text_line(n->out, 2, "pd_vec<%s, %d> %s%s;", dtype_c_memory(t), l->lanes.width,
		          lane_result(k, i), guard ? " = {}" : "");
	}
	text_line(n->out, 2, "PD_UNROLL for (int l = 0; l < %d; l++) {", l->lanes.width);
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
	if (!l->lanes.arg)
		positions_advance(n, 3);
	text_line(n->out, 2, "}");
	for (int i = 0; i < end->noperand; i++)
		text_line(n->out, 2, "pd_store(%s + e, %s%s%s);", kernel_result(k, i), lane_result(k, i),
		          l->rest ? ", " : "", l->rest ? l->rest : "");
	return true;
}

bool nest_wide_print(Nest *n, const Dim *total)
{
	KernelFunc *k = n->k;
	const int width = (int)op_int(n->op, "lanes", 1);
	WideBlock l = {.s = &n->s};
	l.lanes = (Lanes){.ctx = k->ctx, .body = n->body, .merged = &n->s.merged, .width = width};
	if (!op_bool(n->op, "runs_on", false))
		l.lanes.arg = n->loops[n->nloop - 1].arg;
	wide_init(&l);
	l.rest = size_power(k->ctx, total) < width ? "total - e" : NULL;
	const char *guard = l.rest && lanes_need_guard(&l) ? "e + l < total" : NULL;
	k->per_block = VECTOR_THREADS * width;
	k->block_threads = VECTOR_THREADS;
	text_line(n->out, 1,
	          "for (%s e = ((%s)blockIdx.x * (%s)blockDim.x + (%s)threadIdx.x) * %d; e < total;",
	          k->index, k->index, k->index, k->index, width);
	text_line(n->out, 1, "     e += (%s)gridDim.x * (%s)blockDim.x * %d) {", k->index, k->index,
	          width);
	positions_print(n, "e", !l.lanes.arg, 2);
	const char *first = l.lanes.arg ? pointer_map_get(&n->s.names, l.lanes.arg) : NULL;
	l.first = first ? first : "e"; // not named: nothing reads the position
	if (!wide_base_print(&l, 2, n->out))
		return false;
	const char *name = l.lanes.arg ? arena_printf(k->arena, "(%s + l)", l.first) : NULL;
	if (!lanes_print(&l, n, name, guard))
		return false;
	text_line(n->out, 1, "}");
	return true;
}
