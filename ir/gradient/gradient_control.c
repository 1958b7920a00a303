// Gradients of pd.if and pd.case: another one on the same condition, whose sides compute again what
// those of the first did, where the gradient needs it. And what gradients of loops share with them.
#include "ir/gradient/gradient_control.h"
#include "ir/base/vec.h"
#include "ir/gradient/gradient_sizes.h"

// ---- values from around a region ----------------------------------------------------------------

static void capture(Captures *k, Value *v)
{
	for (int i = 0; i < k->n; i++)
		if (k->list[i] == v)
			return;
	VEC_ROOM(k->c->arena, k->list, k->n, k->cap);
	k->list[k->n++] = v;
}

static void find_in(Captures *k, const Duals *d, const Op *around, const Op *op)
{
	for (int r = 0; r < op->nregion; r++) {
		for (const Block *b = op->regions[r].first; b; b = b->next) {
			for (const Op *o = b->first; o; o = o->next) {
				for (int i = 0; i < o->noperand; i++) {
					Value *v = o->operands[i].value;
					if (v && duals_wanted(d, v) && !value_is_within(v, around))
						capture(k, v);
				}
				find_in(k, d, around, o);
			}
		}
	}
}

void captures_find(Captures *k, const Duals *d, const Op *op)
{
	find_in(k, d, op, op);
}

bool control_keeps(const Type *t)
{
	return t->kind == TY_TENSOR || t->kind == TY_ARRAY;
}

bool captures_kept(const Op *op, const Captures *k)
{
	for (int i = 0; i < k->n; i++)
		if (!control_keeps(k->list[i]->type))
			return op_error(op, "the gradient of a list from around it is not supported");
	return true;
}

void control_copy(Builder *b, const Block *from, ValueMap *m)
{
	for (const Op *o = from->first; o && o != from->last; o = o->next)
		op_append(b->block, op_clone(b->ctx, o, m));
}

bool control_stays(const Op *op)
{
	return !op->nresult || (!(op->info->traits & TRAIT_PURE) && !op->nregion);
}

void control_end(Builder *b, enum OpCode code, int n, Value *const *values)
{
	op_append(b->block, op_new(b->ctx, code, b->loc, 0, NULL, n, values, 0, 0));
}

static Value *dual_or_zero(Builder *b, Duals *d, Value *v)
{
	Value *dv = duals_get(b, d, v);
	return dv ? dv : gradient_zeros_for(b, v);
}

Value *dual_taken(const GradientJob *g, Value *v)
{
	Value *dv = duals_get(g->b, g->duals, v);
	if (dv)
		duals_clear(g->duals, v);
	return dv;
}

// ---- pd.if, pd.case -----------------------------------------------------------------------------

// What the copy of a side gives, as operands of a mark behind it: its gradient puts other
// operations in the place of some.
static Op *mark_given(const GradientJob *g, Builder *b, const Block *body, ValueMap *m)
{
	Op *marks = op_new(b->ctx, OP_CF_YIELD, b->loc, 0, NULL, 0, NULL, 0, 0);
	op_append(b->block, marks);
	for (int i = 0; i < body->last->noperand && i < g->op->nresult; i++)
		op_add_operand(marks, value_map_get(m, op_operand(body->last, i)));
	return marks;
}

// Branches in the side are taken on what the branch around them has given, where it has: that was
// computed already.
static void read_given(const GradientJob *g, Op *marks)
{
	for (int i = 0; i < marks->noperand; i++) {
		const Value *given = op_operand(marks, i);
		Value *known = op_result(g->op, i);
		if (!given->def || given->def->block != marks->block || given->type != known->type)
			continue;
		for (Use *u = given->uses, *next; u; u = next) {
			next = u->next;
			if (op_is_branch(u->user) && u->index == 0)
				op_set_operand(u->user, 0, known);
		}
	}
	op_erase(marks);
}

// One side: the region again, and what it gives to each of the captured values.
static bool if_side(GradientJob *g, const Region *from, Region *to, const Captures *k,
                    Value *const *taken, Value *const *dv)
{
	Context *c = g->b->ctx;
	Builder b = builder_at_end(c, block_new(c, to), g->op->loc);
	Duals *d = duals_like(g->duals);
	ValueMap *m = value_map_new(c->arena);
	Value **out = NEW_ARRAY(c->arena, (size_t)k->n + 1, Value *);
	const Block *body = from->first;
	for (int i = 0; i < k->n; i++) {
		duals_want(d, k->list[i]);
		if (!duals_add(&b, d, k->list[i], taken[i]))
			return false;
	}
	if (body && body->last) {
		control_copy(&b, body, m);
		const FoundSizes sizes = found_sizes_in(g->op, from);
		found_sizes_rename(c, &sizes, to);
		Op *first = b.block->first, *last = b.block->last, *marks = mark_given(g, &b, body, m);
		for (int i = 0; i < body->last->noperand && i < g->op->nresult; i++) {
			Value *given = value_map_get(m, op_operand(body->last, i)),
				  *dg = value_as(&b, dv[i], given->type);
			if (dv[i] && (!dg || !duals_add(&b, d, given, dg)))
				return false;
		}
		if (first && !gradient_ops(&b, d, first, last))
			return false;
		read_given(g, marks);
	}
	for (int i = 0; i < k->n; i++)
		out[i] = dual_or_zero(&b, d, k->list[i]);
	control_end(&b, OP_CF_YIELD, k->n, out);
	return true;
}

bool gradient_hook_if(GradientJob *g)
{
	Context *c = g->b->ctx;
	Op *op = g->op;
	Captures k = {.c = c};
	const int parts = op_parts(op);
	if (op->nregion > parts && op->regions[parts].first)
		return op_error(op, "the gradient of a branch that pushes is not supported");
	captures_find(&k, g->duals, op);
	if (!captures_kept(op, &k) || !k.n)
		return k.n == 0;
	Value **dv = NEW_ARRAY(c->arena, (size_t)op->nresult + 1, Value *), *cond = op_operand(op, 0);
	Value **taken = NEW_ARRAY(c->arena, (size_t)k.n + 1, Value *);
	const Type **types = NEW_ARRAY(c->arena, (size_t)k.n + 1, const Type *);
	for (int i = 0; i < op->nresult; i++)
		dv[i] = gradient_comes(g, i) ? gradient_of(g, i) : NULL;
	for (int i = 0; i < k.n; i++) {
		types[i] = k.list[i]->type;
		taken[i] = types[i]->kind == TY_ARRAY ? dual_taken(g, k.list[i]) : NULL;
	}
	Op *back = op_new(c, op->code, op->loc, k.n, types, 1, &cond, parts, 0);
	for (int i = 0; i < op->nattr; i++)
		op_set_attr(back, op->attrs[i].name, op->attrs[i].attr);
	op_set_attr(back, "kept", NULL);
	builder_insert(g->b, back);
	for (int r = 0; r < parts; r++)
		if (!if_side(g, &op->regions[r], &back->regions[r], &k, taken, dv))
			return false;
	for (int i = 0; i < k.n; i++)
		if (!duals_add(g->b, g->duals, k.list[i], op_result(back, i)))
			return false;
	return true;
}
