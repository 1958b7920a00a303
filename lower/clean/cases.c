// Chains of pd.if that compare one number with constants become one pd.case: what Paddle writes for
// switch_case. The last of the passes on branches, which know pd.if; `expand` is the inverse.
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

enum { MAX_CASES = MOST_REGIONS - 1 };

// pd.if operations, each in the else region of the one before, that compare `index` with `cases`.
// What is left over is the else region of the last.
typedef struct Chain {
	Value *index;
	int n;
	int64_t cases[MAX_CASES];
	Op *ifs[MAX_CASES];
} Chain;

// ---- chains -------------------------------------------------------------------------------------

static bool is_whole_number(const Value *v)
{
	const Type *t = v->type;
	int64_t n;
	return type_is_tensor(t) && !t->lod && (t->dtype == DT_I32 || t->dtype == DT_I64) &&
	       type_const_numel(t, &n) && n == 1;
}

// The number that `cond` compares with a constant; NULL: it does nothing such.
static Value *compared_with(const Value *cond, int64_t *constant)
{
	const Op *equal = cond->def;
	if (!equal || equal->code != OP_PD_EQUAL)
		return NULL;
	for (int i = 0; i < 2; i++) {
		Value *x = op_operand(equal, i);
		const Tensor *y = value_constant(op_operand(equal, 1 - i));
		if (!is_whole_number(x) || !y || tensor_numel(y) != 1 || y->dtype != x->type->dtype)
			continue;
		*constant = tensor_get_i(y, 0);
		return x;
	}
	return NULL;
}

// What costs nothing where all cases run it: constants, and comparisons of one element.
static bool is_for_all(const Op *op)
{
	int64_t n;
	if (op->info->traits & TRAIT_CONSTANT)
		return true;
	return (op->info->traits & TRAIT_COMPARE) && op->nresult == 1 &&
	       type_const_numel(op->results[0].type, &n) && n == 1;
}

// Whether `op` does nothing in its else region but run `inner`, whose results it only hands on, and
// what all cases may run.
static bool else_is_only(const Op *op, const Op *inner)
{
	const Op *end = op->regions[1].first->last;
	for (const Op *o = op->regions[1].first->first; o != end; o = o->next)
		if (o != inner && !is_for_all(o))
			return false;
	for (int i = 0; i < inner->nresult; i++)
		for (const Use *u = inner->results[i].uses; u; u = u->next)
			if (u->user != end || inner->results[i].type != op->results[u->index].type)
				return false;
	return true;
}

static Op *next_in_chain(const Op *op)
{
	for (Op *o = op->regions[1].first->first; o; o = o->next)
		if (o->code == OP_PD_IF && control_is_plain(o) && else_is_only(op, o))
			return o;
	return NULL;
}

static bool case_is_there(const Chain *c, int64_t v)
{
	for (int i = 0; i < c->n; i++)
		if (c->cases[i] == v)
			return true;
	return false;
}

// Whether a chain of two or more begins at `op`.
static bool chain_find(Op *op, Chain *c)
{
	int64_t constant;
	c->n = 0;
	c->index = compared_with(op_operand(op, 0), &constant);
	while (op && c->n < MAX_CASES && c->index &&
	       compared_with(op_operand(op, 0), &constant) == c->index && !case_is_there(c, constant)) {
		c->cases[c->n] = constant;
		c->ifs[c->n++] = op;
		op = next_in_chain(op);
	}
	return c->n > 1;
}

// ---- one operation ------------------------------------------------------------------------------

// What the results of the first are at one link of the chain: number `index` of the link's own, or,
// once the else region of an earlier one has given it, `value`.
typedef struct Given {
	int index;
	Value *value;
} Given;

// From what the results are at `op` to what they are at `inner` in its else region.
static void given_follow(Given *given, int n, const Op *op, const Op *inner)
{
	for (int i = 0; i < n; i++) {
		if (given[i].value)
			continue;
		Value *v = op_operand(op->regions[1].first->last, given[i].index);
		if (v->def == inner)
			given[i].index = (int)v->index;
		else
			given[i].value = v;
	}
}

// Moves a region to region `to` of the pd.case, where it ends with what the results are.
static void region_take(Op *with, int to, Region *from, const Given *given)
{
	Region *r = &with->regions[to];
	Op *end = from->first->last;
	Value **values = NEW_ARRAY(with->ctx->arena, (size_t)with->nresult + 1, Value *);
	for (int i = 0; i < with->nresult; i++)
		values[i] = given[i].value ? given[i].value : op_operand(end, given[i].index);
	Op *yield = op_new(with->ctx, OP_CF_YIELD, end->loc, 0, NULL, with->nresult, values, 0, 0);
	op_insert_before(end, yield);
	op_erase(end);
	r->first = from->first;
	r->last = from->last;
	r->first->region = r;
	from->first = from->last = NULL;
}

// What all cases may run, in front of the first.
static void else_empty(Op *first, Op *op, const Op *inner)
{
	for (Op *o = op->regions[1].first->first, *next; o; o = next) {
		next = o->next;
		if (o == inner || (o->info->traits & TRAIT_TERMINATOR))
			continue;
		op_detach(o);
		op_insert_before(first, o);
	}
}

static Op *case_make(const Chain *c)
{
	Op *first = c->ifs[0];
	Context *ctx = first->ctx;
	const int n = first->nresult;
	const Type **types = NEW_ARRAY(ctx->arena, (size_t)n + 1, const Type *);
	Given *given = NEW_ARRAY(ctx->arena, (size_t)n + 1, Given);
	for (int i = 0; i < n; i++) {
		types[i] = first->results[i].type;
		given[i].index = i;
	}
	Value *index = c->index;
	Op *with = op_new(ctx, OP_PD_CASE, first->loc, n, types, 1, &index, c->n + 1, 0);
	op_set_attr(with, "cases", attr_ints(ctx, c->n, c->cases));
	op_insert_before(first, with);
	for (int i = 0; i < c->n; i++) {
		Op *op = c->ifs[i], *inner = i + 1 < c->n ? c->ifs[i + 1] : NULL;
		region_take(with, i, &op->regions[0], given);
		if (!inner) {
			region_take(with, c->n, &op->regions[1], given);
			continue;
		}
		given_follow(given, n, op, inner);
		else_empty(with, op, inner);
	}
	for (int i = 0; i < n; i++)
		value_take(op_result(first, i), op_result(with, i));
	op_erase(first);
	return with;
}

// Outer branches first: they are the beginnings of chains.
static void region_cases(Region *r, Chain *c)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next) {
			if (op->info->kind != KIND_CONTROL)
				continue;
			if (op->code == OP_PD_IF && control_is_plain(op) && chain_find(op, c))
				op = case_make(c);
			for (int i = 0; i < op->nregion; i++)
				region_cases(&op->regions[i], c);
		}
}

// Needs: fold, so that what is compared with is a constant; passes on pd.if have run.
// Keeps: everything but the shape of branches.
// Breaks: nothing. Conditions that nobody reads any more are dead.
bool pass_cases(PassContext *p)
{
	region_cases(&p->module->regions[0], NEW(p->ctx->arena, Chain));
	return true;
}
