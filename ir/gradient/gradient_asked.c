// What branches inside of the branches of a round are taken on, handed on to the round: there it
// can be kept, a byte of each round, where the loop backwards would otherwise compute all again
// that leads to it (gradient_remat.c chooses). Branches backwards then read what was handed on
// (gradient_control.c).
#include "ir/gradient/gradient_loop.h"

enum { MOST = 16 }; // that one branch hands on

// What the sides of a branch hand on.
typedef struct Asked {
	Value *of[MOST];
	int part[MOST];
	int n;
} Asked;

static Op *branch_hands_on(Loop *l, Op *op);

static void asked_add(Asked *a, Value *v, const Block *b, int part)
{
	int64_t elements;
	if (a->n == MOST || !v->def || v->def->block != b || v->type->kind != TY_TENSOR ||
	    !type_const_numel(v->type, &elements) || elements != 1)
		return;
	for (int i = 0; i < a->n; i++)
		if (a->of[i] == v)
			return;
	a->of[a->n] = v;
	a->part[a->n++] = part;
}

static void side_asks(Loop *l, Asked *a, Block *b, int part)
{
	for (Op *op = b->first, *next; op; op = next) {
		next = op->next;
		if (!op_is_branch(op))
			continue;
		const int own = op->nresult;
		op = branch_hands_on(l, op);
		asked_add(a, op_operand(op, 0), b, part);
		for (int i = own; i < op->nresult; i++)
			asked_add(a, op_result(op, i), b, part);
	}
}

static bool has_sides(const Op *op)
{
	const int parts = op_parts(op);
	for (int r = 0; r < parts; r++)
		if (!op->regions[r].first || !op->regions[r].first->last)
			return false;
	return op->nregion <= parts || !op->regions[parts].first;
}

// The branch with what its sides ask behind its results; 0 from the other sides.
static Op *branch_hands_on(Loop *l, Op *op)
{
	Context *c = op->ctx;
	Asked a = {.n = 0};
	for (int r = 0; has_sides(op) && r < op_parts(op); r++)
		side_asks(l, &a, op->regions[r].first, r);
	if (!a.n)
		return op;
	const int own = op->nresult;
	const Type **types = NEW_ARRAY(c->arena, (size_t)(own + a.n), const Type *);
	Value *asked = op_operand(op, 0);
	for (int i = 0; i < own + a.n; i++)
		types[i] = i < own ? op->results[i].type : a.of[i - own]->type;
	for (int r = 0; r < op_parts(op); r++) {
		Op *end = op->regions[r].first->last;
		Builder b = builder_before(end);
		for (int i = 0; i < a.n; i++)
			op_add_operand(end, a.part[i] == r ? a.of[i] : build_full(&b, a.of[i]->type, 0));
	}
	Op *with = op_remake(op, own + a.n, types, 1, &asked);
	if (duals_how(l->g->duals)->marks)
		op_set_attr(with, "kept", attr_int(c, op_int(op, "kept", 0) + a.n));
	for (int i = 0; i < own; i++) {
		if (duals_wanted(l->g->duals, op_result(op, i)))
			duals_want(l->g->duals, op_result(with, i));
		value_take(op_result(op, i), op_result(with, i));
	}
	op_erase(op);
	return with;
}

void loop_hand_on_asked(Loop *l)
{
	for (Op *op = l->op->regions[1].first->first, *next; op; op = next) {
		next = op->next;
		if (op_is_branch(op))
			branch_hands_on(l, op);
	}
}
