// Parameters that runs change, in the memory plan. They lie in front of all else in the workspace,
// at constant offsets, and share their bytes with nothing but their own next value: what a run
// stores is computed in place when nobody needs the old value by then. Called by plan.c.
#include "lower/memory/plan.h"

#include <string.h>

static Buffer *state_find(const Plan *p, const void *name)
{
	for (Buffer *b = p->first; b; b = b->next)
		if (!b->merged && b->place == IN_STATE && b->data_key == name)
			return b;
	return NULL;
}

// All that reads one parameter reads the same bytes.
static void state_join_reads(const Plan *p)
{
	for (Buffer *b = p->first; b; b = b->next) {
		Buffer *first = b->merged || b->place != IN_STATE ? NULL : state_find(p, b->data_key);
		if (first && first != b)
			buffers_merge(first, b);
	}
}

static Buffer *state_new(Plan *p, const Op *set)
{
	Buffer *b = NEW(p->arena, Buffer);
	*b = (Buffer){.place = IN_STATE, .data_key = op_attr(set, "name")};
	b->bytes = type_bytes_at_most(p->ctx, op_operand(set, 0)->type);
	*p->tail = b;
	p->tail = &b->next;
	p->nbuffer++;
	return b;
}

// The value is computed where the parameter lies. Not what branches pass: they might exchange the
// buffer for another.
static void state_compute_in_place(const Plan *p, Buffer *state, Buffer *b)
{
	if (b == state || b->place != IN_WORKSPACE || b->moving || b->bytes != state->bytes ||
	    buffer_has_args(b) || buffers_meet(p, state, b))
		return;
	buffers_merge(state, b);
}

bool plan_states(Plan *p)
{
	state_join_reads(p);
	const Block *last = p->region->last;
	for (Op *op = last->first; op; op = op->next) {
		if (op->code != OP_BUILTIN_SET_PARAMETER)
			continue;
		const Value *v = op_operand(op, 0);
		Buffer *state = state_find(p, op_attr(op, "name"));
		if (!dim_is_const(type_bytes_at_most(p->ctx, v->type)) || type_is_found(v->type)) {
			diag_error(
				p->ctx->diag, op->loc,
				"parameter '%s' is stored with a size that is not known when the model is compiled",
				op_str(op, "name", ""));
			return false;
		}
		if (!state)
			state = state_new(p, op);
		state_compute_in_place(p, state, value_buffer(p, v));
	}
	return true;
}

const Dim *plan_state_offsets(Plan *p)
{
	int64_t end = 0;
	for (Buffer *b = p->first; b; b = b->next) {
		if (b->merged || b->place != IN_STATE)
			continue;
		b->offset = dim_const(p->ctx, end);
		end += (b->bytes->value + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
	}
	return dim_const(p->ctx, end);
}

// Where a parameter that a run stores lies: the codegen copies what was not computed there.
void set_write_plan(const Plan *p, Op *set)
{
	const char *place = "state";
	const Dim *offset = state_find(p, op_attr(set, "name"))->offset;
	op_set_attr(set, "place", attr_strs(p->ctx, 1, &place));
	op_set_attr(set, "offset", attr_dims(p->ctx, 1, &offset));
}

// What the parameter holds before the first run, in the weights; nothing when it is zeros.
static bool state_begins_as_zeros(const Op *get)
{
	const Tensor *t = param_get(get->ctx, op_str(get, "name", ""));
	const unsigned char *bytes = t ? t->data : NULL;
	const size_t n = t ? tensor_bytes(t) : 1;
	return t && (!n || (!bytes[0] && !memcmp(bytes, bytes + 1, n - 1)));
}

const Dim *plan_state_initial(const Plan *p, const Dim *weights)
{
	const Dim *align = dim_const(p->ctx, PLAN_ALIGN);
	for (const Block *b = p->region->first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next) {
			if (op->code != OP_BUILTIN_GET_PARAMETER ||
			    value_buffer(p, &op->results[0])->place != IN_STATE || state_begins_as_zeros(op))
				continue;
			op_set_attr(op, "initial", attr_dim(p->ctx, weights));
			const Dim *padded = dim_add(p->ctx, type_bytes_at_most(p->ctx, op->results[0].type),
			                            dim_const(p->ctx, PLAN_ALIGN - 1));
			weights = dim_add(p->ctx, weights,
			                  dim_mul(p->ctx, dim_div(p->ctx, padded, align), align));
		}
	return weights;
}
