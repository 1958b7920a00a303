// Loop variables that need not be variables: those that stay as they were, those that always equal
// another one, and those that nobody reads but themselves. Run when the program is clean.
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

enum { MAX_COMPARED = 8 }; // depth to which two computations are compared

// Whether one variable can stand in for values of another, or an initial value for a variable.
static bool same_types(const Op *loop, int i, const Value *v)
{
	const Type *t = v->type;
	return loop->regions[0].first->args[i]->type == t &&
	       loop->regions[1].first->args[i]->type == t && loop->results[i].type == t &&
	       op_operand(loop, i)->type == t;
}

static void variable_replace(Op *loop, int i, Value *cond, Value *body, Value *result)
{
	value_replace(loop->regions[0].first->args[i], cond);
	value_replace(loop->regions[1].first->args[i], body);
	value_replace(op_result(loop, i), result);
}

// ---- variables that stay ------------------------------------------------------------------------

static bool variables_that_stay(Op *loop, bool *keep)
{
	const Block *body = loop->regions[1].first;
	bool any = false;
	for (int i = 0; i < loop->nresult; i++) {
		Value *init = op_operand(loop, i);
		if (op_operand(body->last, i) != body->args[i] && op_operand(body->last, i) != init)
			continue;
		if (!same_types(loop, i, init))
			continue;
		variable_replace(loop, i, init, init, init);
		keep[i] = false;
		any = true;
	}
	return any;
}

// ---- variables that are one ---------------------------------------------------------------------

// Whether two pure operations compute the same of the same operands.
static bool same_work(const Op *x, const Op *y)
{
	return x->code == y->code && (x->info->traits & TRAIT_PURE) && !x->nregion &&
	       x->noperand == y->noperand && op_attrs_equal(x, y) &&
	       op_stops_gradient(x) == op_stops_gradient(y);
}

static bool same_operands(const Op *loop, int i, int j, const Op *x, const Op *y, int depth);
static bool same_value(const Op *loop, int i, int j, const Value *a, const Value *b, int depth);

static bool is_number(const Value *v, int64_t want)
{
	const Tensor *t = value_constant(v);
	return t && dtype_is_int(t->dtype) && tensor_numel(t) == 1 && tensor_get_i(t, 0) == want;
}

// What an integer is a constant more than, written as a sum or as a scale by 1; NULL: no such
// thing.
static const Value *sum_parts(const Value *v, int64_t *more)
{
	const Op *op = v->def;
	if (!op || v->type->kind != TY_TENSOR || !dtype_is_int(v->type->dtype))
		return NULL;
	const Tensor *t = op->code == OP_PD_ADD ? value_constant(op_operand(op, 1)) : NULL;
	const double bias = op->code == OP_PD_SCALE ? op_float(op, "bias", 0) : 0;
	const bool scaled = op->code == OP_PD_SCALE && (op->noperand == 1 || !op_operand(op, 1)) &&
	                    op_float(op, "scale", 0) == 1 && number_whole(bias, more);
	if (t && tensor_numel(t) == 1)
		*more = tensor_get_i(t, 0);
	return (t && tensor_numel(t) == 1) || scaled ? op_operand(op, 0) : NULL;
}

// Whether the rounds go on only while variable i is above 0.
static bool counts_to_zero(const Op *loop, int i)
{
	const Block *cond = loop->regions[0].first;
	const Value *go = op_operand(cond->last, 0);
	return go->def && go->def->code == OP_PD_GREATER_THAN &&
	       op_operand(go->def, 0) == cond->args[i] && is_number(op_operand(go->def, 1), 0);
}

// v without a maximum with 0 that changes nothing: of variable j, less 1, where j is above 0 in
// each round since it is variable i. So lengths of stacks are counted down as rounds are.
static const Value *without_floor(const Op *loop, int i, int j, const Value *v)
{
	const Block *body = loop->regions[1].first;
	const Op *floor = v->def;
	if (!floor || floor->code != OP_PD_MAXIMUM || !is_number(op_operand(floor, 1), 0))
		return v;
	const Op *less = op_operand(floor, 0)->def;
	const bool counted = less && less->code == OP_PD_SUBTRACT && value_is_in(v, loop) &&
	                     less->results[0].type == v->type &&
	                     (op_operand(less, 0) == body->args[i] ||
	                      op_operand(less, 0) == body->args[j]) &&
	                     is_number(op_operand(less, 1), 1) &&
	                     (counts_to_zero(loop, i) || counts_to_zero(loop, j));
	return counted ? op_operand(floor, 0) : v;
}

static bool same_value(const Op *loop, int i, int j, const Value *a, const Value *b, int depth);

// Whether a and b are the same number more than values that are the same.
static bool same_sum(const Op *loop, int i, int j, const Value *a, const Value *b, int depth)
{
	int64_t more, most;
	const Value *u = sum_parts(a, &more), *v = sum_parts(b, &most);
	return u && v && more == most && a->type == b->type && u->type == v->type &&
	       u->type == a->type && same_value(loop, i, j, u, v, depth + 1);
}

// Whether a and b are the same once argument j of the body is argument i.
static bool same_value(const Op *loop, int i, int j, const Value *a, const Value *b, int depth)
{
	const Block *body = loop->regions[1].first;
	a = without_floor(loop, i, j, a);
	b = without_floor(loop, i, j, b);
	if (a == b || (a == body->args[i] && b == body->args[j]))
		return true;
	if (same_sum(loop, i, j, a, b, depth))
		return true;
	const Op *x = a->def, *y = b->def;
	if (!x || !y || depth > MAX_COMPARED || !same_work(x, y) || a->index != b->index ||
	    a->type != b->type || !value_is_in(a, loop) || !value_is_in(b, loop))
		return false;
	return same_operands(loop, i, j, x, y, depth);
}

static bool same_operands(const Op *loop, int i, int j, const Op *x, const Op *y, int depth)
{
	for (int k = 0; k < x->noperand; k++) {
		const Value *u = op_operand(x, k), *v = op_operand(y, k);
		if (!u != !v || (u && !same_value(loop, i, j, u, v, depth + 1)))
			return false;
	}
	return true;
}

static bool variables_that_are_one(Op *loop, bool *keep)
{
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	bool any = false;
	for (int j = 1; j < loop->nresult; j++)
		for (int i = 0; i < j && keep[j]; i++) {
			if (!keep[i] || op_operand(loop, i) != op_operand(loop, j) ||
			    !same_types(loop, i, cond->args[j]) || !same_types(loop, j, cond->args[i]) ||
			    !same_value(loop, i, j, op_operand(body->last, i), op_operand(body->last, j), 0))
				continue;
			variable_replace(loop, j, cond->args[i], body->args[i], op_result(loop, i));
			keep[j] = false;
			any = true;
		}
	return any;
}

// ---- variables that nobody reads ----------------------------------------------------------------

typedef struct Live {
	const Op *loop;
	bool *live; // [variable]
	bool changed;
} Live;

// `scratch` marks the operations whose results are read.
static void value_live(Live *l, const Value *v)
{
	if (!v)
		return;
	if (v->def) {
		v->def->scratch = l;
		return;
	}
	const Region *r = v->block->region;
	bool variable = r == &l->loop->regions[0] || r == &l->loop->regions[1];
	if (variable && !l->live[v->index])
		l->changed = l->live[v->index] = true;
}

// What an operation inside of the loop reads, in its regions too.
static void reads_live(Live *l, const Op *op)
{
	for (int i = 0; i < op->noperand; i++)
		value_live(l, op_operand(op, i));
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (const Op *in = b->first; in; in = in->next)
				reads_live(l, in);
}

// Backwards, so that readers are seen first.
static void block_live(Live *l, const Block *b)
{
	for (const Op *op = b->last->prev; op; op = op->prev)
		if (op->scratch == l || !control_is_pure(op))
			reads_live(l, op);
}

static bool scratch_clear(Op *op, void *arg)
{
	(void)arg;
	op->scratch = NULL;
	return true;
}

// live[i]: variable i, which has a result that is read, or on which such a variable or an effect
// depends.
static void variables_live(Op *loop, bool *live)
{
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	Live l = {.loop = loop, .live = live, .changed = true};
	op_walk(loop, scratch_clear, NULL);
	value_live(&l, op_operand(cond->last, 0));
	while (l.changed) {
		l.changed = false;
		for (int i = 0; i < loop->nresult; i++)
			if (live[i])
				value_live(&l, op_operand(body->last, i));
		block_live(&l, cond);
		block_live(&l, body);
	}
	op_walk(loop, scratch_clear, NULL);
}

static bool variables_that_are_dead(Op *loop, bool *keep)
{
	bool any = false, *live = NEW_ARRAY(loop->ctx->arena, (size_t)loop->nresult + 1, bool);
	for (int i = 0; i < loop->nresult; i++)
		live[i] = result_needed(&loop->results[i]) && keep[i];
	variables_live(loop, live);
	for (int i = 0; i < loop->nresult; i++) {
		Value *init = op_operand(loop, i);
		if (live[i] || !keep[i] || !same_types(loop, i, init))
			continue;
		variable_replace(loop, i, init, init, init); // what still computes it is dead
		keep[i] = false;
		any = true;
	}
	return any;
}

// ---- the pass -----------------------------------------------------------------------------------

static bool loop_simplify(PassContext *p, Op *loop)
{
	(void)p;
	if (!loop_is_plain(loop) || loop->nresult == 0)
		return true;
	bool *keep = NEW_ARRAY(loop->ctx->arena, (size_t)loop->nresult, bool);
	for (int i = 0; i < loop->nresult; i++)
		keep[i] = true;
	bool any = variables_that_stay(loop, keep);
	any |= variables_that_are_one(loop, keep);
	any |= variables_that_are_dead(loop, keep);
	if (any)
		control_keep(loop, keep);
	return true;
}

// Needs: cse, so that equal values are one.
// Keeps: everything but variables of loops.
// Breaks: nothing. What computed the variables that are gone is dead.
bool pass_loop_args(PassContext *p)
{
	return control_visit(p, &p->module->regions[0], OP_PD_WHILE, loop_simplify);
}
