// What rounds of a loop push for the loop backwards, which pops it: values, and sizes that nothing
// else there finds (gradient_loop.h).
#include "ir/gradient/gradient_loop.h"

static void push_behind(Op *push, Op *def)
{
	if (!def || op_is_before(def, push))
		return;
	Op *next = def->next;
	op_detach(push);
	op_insert_before(next, push);
}

// Pushes, as numbers, sizes that the loop backwards needs and that nothing there finds. Returns how
// many.
static int push_sizes(Loop *l, const Type **types, const Dim **sizes)
{
	Op *behind;
	int n = 0;
	for (int i = 0; i < l->sizes.n; i++) {
		const FoundSize *s = &l->sizes.list[i];
		bool popped = false;
		for (int k = 0; k < l->nsaved; k++)
			popped |= value_used(l->saved[k]) && type_has_size(l->saved[k]->type, s->size);
		if (popped || !found_size_is_missing(s, l->back->regions[1].first) ||
		    !found_size_is_known(s, l->push->block, &behind))
			continue;
		push_behind(l->push, behind);
		Builder b = builder_before(l->push);
		Value *size = found_size_number(&b, s);
		if (duals_how(l->g->duals)->marks)
			op_set_attr(size->def, "backward", attr_bool(b.ctx, true));
		types[n] = size->type;
		sizes[n++] = s->size;
		op_add_operand(l->push, size);
	}
	return n;
}

// Pushes what the loop backwards reads of the saved variables.
static void push_saved(Loop *l, const Type **types, int *n)
{
	for (int i = 0; i < l->nsaved; i++) {
		if (!value_used(l->saved[i]))
			continue;
		types[(*n)++] = found_sizes_open(l->op->ctx, &l->sizes, l->saved[i]->type, true);
		op_add_operand(l->push, l->kept[i]);
		push_behind(l->push, l->kept[i]->def);
	}
}

// The first operation of the round backwards: the first `nsize` results are sizes.
static bool pop_first(Loop *l, Block *body, int nsize, const Dim *const *sizes)
{
	op_insert_before(body->first, l->pop);
	Builder front = builder_before(l->pop->next);
	int k = 0;
	for (; k < nsize; k++) {
		Value *size = op_result(l->pop, k);
		const NamedAttr dims = {"dims", attr_dims(front.ctx, 1, &sizes[k])};
		if (!build_op(&front, OP_LOOP_BIND, 1, &size, 1, &dims))
			return false;
	}
	for (int i = 0; i < l->nsaved; i++) {
		if (!value_used(l->saved[i]))
			continue;
		const Type *t = l->saved[i]->type;
		const Op *found = found_sizes_last(&l->sizes, t);
		Builder b = found ? builder_before(found->next) : front;
		Value *popped = value_as(&b, op_result(l->pop, k++), t);
		if (!popped)
			return false;
		value_replace(l->saved[i], popped);
	}
	return true;
}

bool loop_push_and_pop(Loop *l)
{
	Context *c = l->op->ctx;
	Block *body = l->back->regions[1].first;
	loop_drop_unread(body);
	if (!loop_take_back(l))
		return false;
	const size_t most = (size_t)(l->nsaved + l->sizes.n) + 1;
	const Type **types = NEW_ARRAY(c->arena, most, const Type *);
	const Dim **sizes = NEW_ARRAY(c->arena, most, const Dim *);
	found_sizes_settle(&l->sizes, body, l->border);
	const int nsize = push_sizes(l, types, sizes);
	int n = nsize;
	push_saved(l, types, &n);
	if (n) {
		Value *stack = op_result(l->forward, l->forward->nresult - 1);
		l->pop = op_new(c, OP_CF_POP_BACK, l->op->loc, n, types, 1, &stack, 0, 0);
		if (!pop_first(l, body, nsize, sizes))
			return false;
	} else {
		op_erase(l->push);
	}
	for (int i = l->nsaved - 1; i >= 0; i--)
		block_remove_arg(body, (int)l->saved[i]->index);
	return loop_note(l);
}

bool loop_settle_stack(Loop *l)
{
	Context *c = l->op->ctx;
	if (!l->pop || duals_how(l->g->duals)->arrays)
		return (l->forward = gradient_keep_arrays(l->forward, l->pop ? l->push : NULL, l->pop));
	const Type **types = NEW_ARRAY(c->arena, (size_t)l->push->noperand, const Type *);
	for (int i = 1; i < l->push->noperand; i++)
		types[i - 1] = found_sizes_open(c, &l->sizes, op_operand(l->push, i)->type, true);
	const Type *stack = type_group(c, TY_STACK, l->push->noperand - 1, types);
	const int last = l->forward->nresult - 1;
	for (int r = 0; r < 2; r++)
		l->forward->regions[r].first->args[last]->type = stack;
	op_result(l->forward, last)->type = stack;
	op_result(l->forward->regions[2].first->first, 0)->type = stack;
	return true;
}
