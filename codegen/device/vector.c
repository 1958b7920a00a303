// Regions for 4 or 8 neighbouring elements: one load for all, what all share once, and the rest for
// one after the other. Called by device/rows.c and device/attention.c.
#include "codegen/device/vector.h"
#include "codegen/nest/nest.h"

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
