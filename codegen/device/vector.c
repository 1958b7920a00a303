// Regions for 4 or 8 neighbouring elements: one load for all, what all share once, and the rest for
// one after the other. Called by device/rows.c and device/attention.c.
#include "codegen/device/vector.h"
#include "codegen/nest/nest.h"

bool vector_aligned(const Value *tensor, int wide)
{
	const Type *t = tensor->type; // begins at a multiple of 16 bytes, wherever it lies
	const Dim *last = t->rank > 0 ? t->dims[t->rank - 1] : NULL;
	return dtype_is_f32_or_half(t->dtype) && last && dim_is_const(last) && last->value % wide == 0;
}

// Whether a load's last index, and no other, is v.
static bool load_is_wide(const Op *op, const Value *v, int wide)
{
	if (op->code != OP_LOOP_LOAD || op->noperand < 2 || op_operand(op, op->noperand - 1) != v)
		return false;
	for (int i = 1; i < op->noperand - 1; i++)
		if (op_operand(op, i) == v)
			return false;
	return vector_aligned(op_operand(op, 0), wide);
}

bool vector_suits(const Region *r, int axis, int wide)
{
	const Block *b = region_entry(r);
	for (const Op *op = b->first; op; op = op->next)
		if (op->nregion)
			return false;
	for (const Use *u = b->args[axis]->uses; u; u = u->next)
		if (!load_is_wide(u->user, b->args[axis], wide))
			return false;
	return true;
}

bool vector_reads_halves(const Region *r, int axis)
{
	const Value *along = region_entry(r)->args[axis];
	for (const Use *u = along->uses; u; u = u->next)
		if (load_is_wide(u->user, along, 1) && dtype_size(op_operand(u->user, 0)->type->dtype) == 2)
			return true;
	return false;
}

// A region on its way into text.
typedef struct VectorText {
	Scalars *s;
	Lanes lanes;
	PointerMap vectors; // load -> the name of its vector
} VectorText;

static bool vector_load_print(VectorText *w, const Op *op, Text *out)
{
	KernelFunc *k = w->s->k;
	const int wide = w->lanes.width;
	const Value *tensor = op_operand(op, 0);
	const char *name = kernel_local(k, "x"), *index = load_index(w->s, op);
	if (!index)
		return false;
	kernel_moves(k, tensor->type->dtype, wide);
	text_line(out, 0, "const pd_vec<%s, %d> %s = pd_load<%d>(%s + %s);",
	          dtype_c_memory(tensor->type->dtype), wide, name, wide, kernel_tensor(k, tensor),
	          expression_unwrap(k->arena, index));
	pointer_map_set(&w->vectors, op, name);
	return true;
}

// Wide loads, and what all share.
static bool shared_print(VectorText *w, Text *out)
{
	const Block *b = w->lanes.body;
	for (const Op *op = b->first; op != block_terminator(b); op = op->next) {
		if (lanes_load_at_once(&w->lanes, op)) {
			if (!vector_load_print(w, op, out))
				return false;
		} else if (lane_state(&w->lanes, &op->results[0]) != LANE_MOVES &&
		           !scalar_op_print(w->s, op, false, 0, out)) {
			return false;
		}
	}
	return true;
}

static const char *const lane_name[VECTOR_LANES] = {"0", "1", "2", "3", "4", "5", "6", "7"};

static const char *lane_print(VectorText *w, int lane, Text *out)
{
	const Block *b = w->lanes.body;
	for (const Op *op = b->first; op != block_terminator(b); op = op->next) {
		const Value *v = &op->results[0];
		const char *vector = pointer_map_get(&w->vectors, op);
		if (vector)
			pointer_map_set(&w->s->names, v,
			                scalar_load(w->s->k, op_operand(op, 0)->type->dtype,
			                            arena_printf(w->s->k->arena, "%s.v", vector),
			                            lane_name[lane]));
		else if (lane_state(&w->lanes, v) == LANE_MOVES && !scalar_op_print(w->s, op, true, 0, out))
			return NULL;
	}
	return scalars_name(w->s, op_operand(block_terminator(b), 0));
}

bool vector_region_print(Scalars *s, const Region *r, int axis, int wide, const char *const *acc,
                         Text *out, const char **values)
{
	const Block *b = region_entry(r);
	VectorText w = {.s = s};
	w.lanes = (Lanes){.ctx = s->k->ctx, .body = b, .merged = &s->merged, .arg = b->args[axis]};
	w.lanes.also = acc ? b->args[0] : NULL;
	w.lanes.width = wide;
	pointer_map_init(&w.vectors, s->k->arena);
	lanes_find(&w.lanes, s->k->arena);
	if (!shared_print(&w, out))
		return false;
	for (int lane = 0; lane < wide; lane++) {
		if (acc)
			pointer_map_set(&s->names, b->args[0], acc[lane]);
		if (!(values[lane] = lane_print(&w, lane, out)))
			return false;
	}
	return true;
}
