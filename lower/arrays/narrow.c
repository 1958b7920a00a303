// What a stack need not hold: a value that is pushed beside itself, one from in front of the stack,
// and constants. Gradients are made before the program is clean, so they push what turns out to be
// one value, several times. Called by pass_stacks once every use sees the operation that made the
// stack.
#include "ir/base/vec.h"
#include "lower/arrays/parts.h"

typedef struct Ops {
	int n, room;
	Op **list;
} Ops;

typedef struct Narrow {
	Op *create;
	Arena *arena;
	Ops pushes, pops;
	int n; // values of a group
} Narrow;

static void ops_add(Narrow *w, Ops *ops, Op *op)
{
	VEC_ROOM(w->arena, ops->list, ops->n, ops->room);
	ops->list[ops->n++] = op;
}

static bool types_alike(const Type *a, const Type *b)
{
	return a->kind == TY_TENSOR && b->kind == TY_TENSOR && a->dtype == b->dtype &&
	       a->rank == b->rank;
}

// Whether all groups are of the same values, one pushed group's.
static bool groups_are_alike(const Narrow *w)
{
	for (int k = 0; k < w->pushes.n; k++) {
		if (w->pushes.list[k]->noperand - 1 != w->n)
			return false;
		for (int i = 0; i < w->n; i++)
			if (!types_alike(op_operand(w->pushes.list[k], 1 + i)->type,
			                 op_operand(w->pushes.list[0], 1 + i)->type))
				return false;
	}
	for (int k = 0; k < w->pops.n; k++) {
		if (w->pops.list[k]->nresult != w->n)
			return false;
		for (int i = 0; i < w->n; i++)
			if (!types_alike(w->pops.list[k]->results[i].type,
			                 op_operand(w->pushes.list[0], 1 + i)->type))
				return false;
	}
	return true;
}

static bool uses_find(Narrow *w)
{
	for (Use *u = w->create->results[0].uses; u; u = u->next) {
		const enum OpCode code = u->user->code;
		if (code == OP_CF_PUSH_BACK && u->index == 0)
			ops_add(w, &w->pushes, u->user);
		else if (code == OP_CF_POP_BACK)
			ops_add(w, &w->pops, u->user);
		else if (code != OP_CF_IS_EMPTY)
			return false;
	}
	w->n = w->pushes.n ? w->pushes.list[0]->noperand - 1 : 0;
	return w->n > 1 && groups_are_alike(w);
}

static bool is_in_front(const Value *v, const Op *op)
{
	for (; op; op = op_parent(op))
		if (v->def ? v->def->block == op->block && op_is_before(v->def, op) : v->block == op->block)
			return true;
	return false;
}

// What every push has for value i, where no stack is needed for it; NULL: nothing like that.
static Value *known_value(const Narrow *w, int i)
{
	Value *v = op_operand(w->pushes.list[0], 1 + i);
	for (int k = 0; k < w->pushes.n; k++)
		if (op_operand(w->pushes.list[k], 1 + i) != v)
			return NULL;
	for (int k = 0; k < w->pops.n; k++)
		if (w->pops.list[k]->results[i].type != v->type)
			return NULL;
	return value_is_constant(v) || is_in_front(v, w->create) ? v : NULL;
}

// Another value that every push has for value i, too; -1: none.
static int twin_of(const Narrow *w, int i)
{
	for (int other = 0; other < i; other++) {
		bool same = true;
		for (int k = 0; k < w->pushes.n; k++)
			same &= op_operand(w->pushes.list[k], 1 + i) ==
			        op_operand(w->pushes.list[k], 1 + other);
		for (int k = 0; k < w->pops.n; k++)
			same &= w->pops.list[k]->results[i].type == w->pops.list[k]->results[other].type;
		if (same)
			return other;
	}
	return -1;
}

// v where `pop` is.
static Value *at_pop(const Narrow *w, Value *v, Op *pop)
{
	if (is_in_front(v, w->create))
		return v;
	Op *copy = op_clone(pop->ctx, v->def, value_map_new(pop->ctx->arena));
	op_insert_before(pop, copy);
	return op_result(copy, (int)v->index);
}

// Nobody reads value i off the stack any more.
static void value_drop(const Narrow *w, int i, Value *known, int twin)
{
	for (int k = 0; k < w->pops.n; k++) {
		Op *pop = w->pops.list[k];
		if (value_used(&pop->results[i]))
			value_replace(&pop->results[i], known ? at_pop(w, known, pop) : &pop->results[twin]);
	}
	for (int k = 0; k < w->pushes.n; k++)
		op_remove_operand(w->pushes.list[k], 1 + i);
}

// The pops without the results that are gone.
static void pops_narrow(const Narrow *w, const bool *gone, const Type *const *types, int n)
{
	for (int k = 0; k < w->pops.n; k++) {
		Op *pop = w->pops.list[k];
		const Type **own = NEW_ARRAY(pop->ctx->arena, (size_t)n + 1, const Type *);
		Value *stack = op_operand(pop, 0);
		int at = 0;
		for (int i = 0; i < w->n; i++)
			if (!gone[i])
				own[at++] = pop->results[i].type;
		Op *with = op_remake(pop, n, own, 1, &stack);
		for (int i = at = 0; i < w->n; i++)
			if (!gone[i])
				value_take(&pop->results[i], &with->results[at++]);
		op_erase(pop);
	}
	Op *create = w->create;
	create->results[0].type = type_group(create->ctx, TY_STACK, n, types);
}

void stack_narrow(Op *create, Arena *arena)
{
	Narrow w = {.create = create, .arena = arena};
	if (!uses_find(&w))
		return;
	bool *gone = NEW_ARRAY(arena, (size_t)w.n, bool);
	const Type **types = NEW_ARRAY(arena, (size_t)w.n, const Type *);
	int left = w.n, n = 0;
	for (int i = w.n; i-- > 0 && left > 1;) {
		Value *known = known_value(&w, i);
		const int twin = known ? -1 : twin_of(&w, i);
		if (!known && twin < 0)
			continue;
		value_drop(&w, i, known, twin);
		gone[i] = true;
		left--;
	}
	if (left == w.n)
		return;
	for (int i = 0; i < left; i++)
		types[n++] = op_operand(w.pushes.list[0], 1 + i)->type;
	pops_narrow(&w, gone, types, n);
}
