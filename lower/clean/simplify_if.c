// Branches that are none, or fewer: a condition that is known, here or by a branch around; a
// negated condition; results that nobody reads or that both sides agree on; neighbours on one
// condition. Run when the program is clean.
#include "ir/build/build.h"
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

// ---- known conditions ---------------------------------------------------------------------------

static bool condition_known(const Value *v, bool *is)
{
	const Tensor *t = value_constant(v);
	if (!t || tensor_numel(t) != 1)
		return false;
	*is = tensor_get_i(t, 0) != 0;
	return true;
}

static bool results_replace(Op *op, Value **with)
{
	for (int i = 0; i < op->nresult; i++)
		if (with[i]->type != op->results[i].type)
			return false;
	return true;
}

// The region that runs takes the operation's place.
static bool if_resolve(Op *op)
{
	bool is;
	if (!condition_known(op_operand(op, 0), &is))
		return false;
	Region *r = &op->regions[!is];
	const Op *end = r->first->last;
	Value **with = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	for (int i = 0; i < op->nresult; i++)
		with[i] = op_operand(end, i);
	if (!results_replace(op, with))
		return false; // a size that only the operation's type tells is found by it
	region_inline(r, op, 0, with);
	op_replace(op, with);
	return true;
}

// Inside of a branch its condition holds: readers there get a constant.
static bool condition_spread(Op *op)
{
	Value *cond = op_operand(op, 0);
	const Type *t = cond->type;
	int64_t n;
	if (value_constant(cond) || !type_const_numel(t, &n) || n != 1 || t->dtype != DT_BOOL)
		return false;
	bool any = false;
	for (int side = 0; side < 2; side++) {
		Region *r = &op->regions[side];
		Value *known = NULL;
		for (Use *u = cond->uses, *next; u; u = next) {
			next = u->next;
			if (!use_is_in(u, r))
				continue;
			if (!known) {
				int64_t dims[MAX_RANK];
				for (int i = 0; i < t->rank; i++)
					dims[i] = 1;
				Tensor *data = tensor_new(op->ctx->arena, DT_BOOL, t->rank, dims);
				if (!data)
					return any;
				tensor_set_i(data, 0, !side);
				Builder b = builder_before(r->first->first);
				known = build_constant(&b, data);
			}
			op_set_operand(u->user, (int)u->index, known);
			any = true;
		}
	}
	return any;
}

static void region_swap(Op *op)
{
	Region a = op->regions[0];
	op->regions[0].first = op->regions[1].first;
	op->regions[0].last = op->regions[1].last;
	op->regions[1].first = a.first;
	op->regions[1].last = a.last;
	for (int i = 0; i < 2; i++)
		for (Block *b = op->regions[i].first; b; b = b->next)
			b->region = &op->regions[i];
}

static bool negation_drop(Op *op)
{
	const Op *not = op_operand(op, 0)->def;
	if (!not || not ->code != OP_PD_LOGICAL_NOT || op_operand(not, 0)->type->dtype != DT_BOOL)
		return false;
	op_set_operand(op, 0, op_operand(not, 0));
	region_swap(op);
	return true;
}

// ---- results ------------------------------------------------------------------------------------

// The value from outside that both sides give.
static Value *result_agreed(const Op *op, int i)
{
	Value *a = op_operand(op->regions[0].first->last, i),
		  *b = op_operand(op->regions[1].first->last, i);
	return a == b && a->type == op->results[i].type && !value_is_in(a, op) ? a : NULL;
}

// Whether result i is the same as an earlier one on both sides.
static int result_twin(const Op *op, int i)
{
	for (int k = 0; k < i; k++) {
		bool same = op->results[k].type == op->results[i].type && value_used(&op->results[k]);
		for (int side = 0; side < 2; side++)
			same = same && op_operand(op->regions[side].first->last, k) ==
			                   op_operand(op->regions[side].first->last, i);
		if (same)
			return k;
	}
	return -1;
}

static bool results_drop(Op *op, Op **now)
{
	bool *keep = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, bool), any = false;
	for (int i = 0; i < op->nresult; i++) {
		Value *agreed = result_agreed(op, i);
		int twin = agreed || !value_used(&op->results[i]) ? -1 : result_twin(op, i);
		if (agreed || twin >= 0)
			value_replace(op_result(op, i), agreed ? agreed : op_result(op, twin));
		keep[i] = result_needed(&op->results[i]);
		any |= !keep[i];
	}
	*now = any ? control_keep(op, keep) : op;
	return any;
}

static bool if_is_dead(const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (result_needed(&op->results[i]))
			return false;
	for (int side = 0; side < 2; side++) {
		if (!region_is_pure(&op->regions[side]))
			return false;
		for (const Op *in = op->regions[side].first->first; in; in = in->next)
			if (in->code == OP_PD_WHILE)
				return false; // it may not end
	}
	return true;
}

// ---- neighbours ---------------------------------------------------------------------------------

// Whether `op`, or what is in its regions, reads a result of `made`.
static bool op_reads(const Op *op, const Op *made)
{
	for (int i = 0; i < made->nresult; i++)
		for (const Use *u = made->results[i].uses; u; u = u->next)
			for (const Op *at = u->user; at; at = op_parent(at))
				if (at == op)
					return true;
	return false;
}

// The pd.if on the same condition, further on in the block, with which op can run; NULL: none.
// Nothing in between reads op, or the other one reads nothing in between.
static Op *if_neighbour(const Op *op)
{
	enum { MAX_DISTANCE = 64 };
	bool pure = control_is_pure(op), read = false, all_pure = true;
	int distance = 0;
	for (Op *at = op->next; at && distance < MAX_DISTANCE; at = at->next, distance++) {
		if (at->code == OP_PD_IF && control_is_plain(at) &&
		    op_operand(at, 0) == op_operand(op, 0) && !read && (pure || all_pure))
			return at;
		read = read || op_reads(at, op);
		all_pure = all_pure && control_is_pure(at);
	}
	return NULL;
}

// What region `side` of b holds goes to the end of that of a; what reads results of a there reads
// what the side gives.
static void side_append(Op *a, Op *b, int side)
{
	Op *end = a->regions[side].first->last;
	Value **given = NEW_ARRAY(a->ctx->arena, (size_t)b->nresult + 1, Value *);
	for (int i = 0; i < a->nresult; i++) {
		Value *inner = op_operand(end, i);
		for (Use *u = a->results[i].uses, *next; u; u = next) {
			next = u->next;
			if (use_is_in(u, &b->regions[side]))
				op_set_operand(u->user, (int)u->index, inner);
		}
	}
	region_inline(&b->regions[side], end, 0, given);
	for (int i = 0; i < b->nresult; i++)
		op_add_operand(end, given[i]);
}

static Op *if_merge(Op *a, Op *b)
{
	Context *c = a->ctx;
	int n = a->nresult + b->nresult;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	for (int i = 0; i < n; i++)
		types[i] = i < a->nresult ? a->results[i].type : b->results[i - a->nresult].type;
	for (int side = 0; side < 2; side++)
		side_append(a, b, side);
	Op *op = op_new(c, OP_PD_IF, a->loc, n, types, 1, (Value *[]){op_operand(a, 0)}, 2, 0);
	for (int side = 0; side < 2; side++) {
		op->regions[side].first = a->regions[side].first;
		op->regions[side].last = a->regions[side].last;
		op->regions[side].first->region = &op->regions[side];
		a->regions[side].first = a->regions[side].last = NULL;
	}
	for (int i = 0; i < n; i++) {
		Value *from = i < a->nresult ? &a->results[i] : &b->results[i - a->nresult];
		op->results[i].name = from->name;
		op->results[i].stop_gradient = from->stop_gradient;
		value_replace(from, op_result(op, i));
	}
	op_insert_before(b, op);
	op_erase(a);
	op_erase(b);
	return op;
}

static Op *neighbours_merge(Op *op)
{
	for (;;) {
		Op *other = op_finds(op) ? NULL : if_neighbour(op);
		if (!other || op_finds(other))
			return op;
		op = if_merge(op, other);
	}
}

// ---- the pass -----------------------------------------------------------------------------------

// One operation. True: changed. `*now` is what stands in its place; NULL: nothing, or what was in
// it.
static bool if_simplify(Op *op, Op **now)
{
	bool changed = negation_drop(op) | condition_spread(op);
	*now = NULL;
	if (if_is_dead(op)) {
		op_erase(op);
		return true;
	}
	if (if_resolve(op))
		return true;
	changed |= results_drop(op, &op);
	*now = neighbours_merge(op);
	return changed || *now != op;
}

// Outer branches first: what they decide is known inside.
static bool region_simplify(Region *r)
{
	bool changed = false;
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			Op *before = op->prev;
			next = op->next;
			if (op->info->kind != KIND_CONTROL)
				continue;
			if (op->code == OP_PD_IF && control_is_plain(op)) {
				changed |= if_simplify(op, &op);
				if (!op) {
					next = before ? before->next : b->first;
					continue;
				}
				next = op->next;
			}
			for (int i = 0; i < op->nregion; i++)
				changed |= region_simplify(&op->regions[i]);
		}
	return changed;
}

// Needs: fold, so that conditions that are known are constants; cse, so that equal ones are one.
// Keeps: everything but the shape of branches.
// Breaks: nothing. Conditions that nobody reads any more are dead.
bool pass_simplify_if(PassContext *p)
{
	enum { MAX_SWEEPS = 8 };
	for (int i = 0; i < MAX_SWEEPS && region_simplify(&p->module->regions[0]); i++)
		;
	return true;
}
