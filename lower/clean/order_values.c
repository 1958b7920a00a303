// The variables of loops and the results of branches in an order that their regions give, so that
// two files that say the same give the same code, in whichever order a framework wrote them.
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"

// The order in which a walk through the regions of `op` meets its variables or results.
typedef struct Order {
	const Op *op;
	int *from; // [n]: those that were met, by their index
	bool *met;
	int n;
} Order;

static void order_meet(Order *o, int i)
{
	if (!o->met[i])
		o->from[o->n++] = i;
	o->met[i] = true;
}

// A loop's variables: by what reads them first. Its own terminators name all, in the order that is.
static void meet_uses(Order *o, const Region *r)
{
	for (const Op *op = r->first->first; op; op = op->next) {
		if (op_parent(op) == o->op && !op->next)
			return;
		for (int i = 0; i < op->noperand; i++) {
			const Value *v = op_operand(op, i);
			if (v && (v->block == o->op->regions[0].first || v->block == o->op->regions[1].first))
				order_meet(o, (int)v->index);
		}
		for (int i = 0; i < op->nregion; i++)
			meet_uses(o, &op->regions[i]);
	}
}

// What a region yields: by what computes it, those that it computes itself.
static void meet_yields(Order *o, const Region *r)
{
	const Block *b = r->first;
	for (const Op *op = b->first; op != b->last; op = op->next)
		for (int k = 0; k < op->nresult; k++)
			for (int i = 0; i < o->op->nresult; i++)
				if (op_operand(b->last, i) == &op->results[k])
					order_meet(o, i);
}

static bool values_order(PassContext *p, Op *op)
{
	(void)p;
	bool loop = op->code == OP_PD_WHILE;
	if (op->nresult < 2 || !(loop ? loop_is_plain(op) : control_is_plain(op)))
		return true;
	Arena *a = op->ctx->arena;
	Order o = {.op = op};
	o.from = NEW_ARRAY(a, (size_t)op->nresult, int);
	o.met = NEW_ARRAY(a, (size_t)op->nresult, bool);
	if (loop) {
		meet_uses(&o, &op->regions[0]);
		meet_uses(&o, &op->regions[1]);
		meet_yields(&o, &op->regions[1]);
	} else {
		meet_yields(&o, &op->regions[0]);
		meet_yields(&o, &op->regions[1]);
	}
	for (int i = 0; i < op->nresult; i++)
		order_meet(&o, i);
	for (int i = 0; i < op->nresult; i++)
		if (o.from[i] != i) {
			control_order(op, o.from);
			return true;
		}
	return true;
}

// Needs: dce and loop-args, so that what nobody reads has no place in the order.
// Keeps: everything but the order of variables and results.
// Breaks: nothing.
bool pass_order_values(PassContext *p)
{
	Region *r = &p->module->regions[0];
	return control_visit(p, r, OP_PD_IF, values_order) &&
	       control_visit(p, r, OP_PD_WHILE, values_order);
}
