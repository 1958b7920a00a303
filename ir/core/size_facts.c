// Facts about sizes as types and modules have them: how large a tensor may become, and the
// attributes in which the text of a module keeps what dim_bound.c knows.
#include "ir/base/vec.h"
#include "ir/core/core.h"

static bool is_shaped(const Type *t)
{
	return t->kind == TY_TENSOR || t->kind == TY_ARRAY || t->kind == TY_SELECTED_ROWS;
}

bool type_is_found(const Type *t)
{
	for (int i = 0; is_shaped(t) && i < t->rank; i++)
		if (dim_is_found(t->dims[i]))
			return true;
	return false;
}

const Dim *type_bytes_at_most(Context *c, const Type *t)
{
	const Dim *bytes = dim_const(c, (int64_t)dtype_size(t->dtype));
	const DimFactors f = dims_factors(c, t->rank, t->dims);
	for (int i = 0; i < f.n; i++) {
		int64_t lo, hi;
		const Dim *most = dim_at_most(c, f.at[i]);
		dim_range(most, &lo, &hi);
		// Only what a run finds is clamped: sizes that the caller gives are refused when others
		// come out negative.
		bool clamp = lo < 0 && dim_is_found(f.at[i]);
		bytes = dim_mul(c, bytes, clamp ? dim_max(c, most, dim_const(c, 0)) : most);
	}
	return bytes;
}

bool type_mentions(const Type *t, const Dim *sym)
{
	for (int i = 0; is_shaped(t) && i < t->rank; i++)
		if (dim_mentions(t->dims[i], sym))
			return true;
	return false;
}

bool attrs_mention(const Op *op, const Dim *sym)
{
	for (int i = 0; i < op->nattr; i++) {
		const Attr *a = op->attrs[i].attr;
		if (a->kind == ATTR_DIM && dim_mentions(a->dim, sym))
			return true;
		for (int k = 0; a->kind == ATTR_DIMS && k < a->n; k++)
			if (dim_mentions(a->dims[k], sym))
				return true;
	}
	return false;
}

bool results_mention(const Op *op, const Dim *sym)
{
	for (int i = 0; i < op->nresult; i++)
		if (type_mentions(op->results[i].type, sym))
			return true;
	return false;
}

bool type_has_size(const Type *t, const Dim *sym)
{
	for (int d = 0; d < t->rank; d++)
		if (t->dims[d] == sym)
			return true;
	return false;
}

// Whether op reads a tensor with the symbol in a size; `array`: or an array.
static bool op_is_given(const Op *op, const Dim *sym, bool array)
{
	for (int i = 0; i < op->noperand; i++) {
		const Type *t = op_operand(op, i) ? op_operand(op, i)->type : NULL;
		if (t && (array || t->kind != TY_ARRAY) && type_mentions(t, sym))
			return true;
	}
	for (int r = 0; r < op->nregion && op_is_branch(op); r++) {
		const Block *side = op->regions[r].first;
		if (side && side->last && op_is_given(side->last, sym, array))
			return true;
	}
	return false;
}

bool op_finds_size(const Op *op, const Dim *sym)
{
	if (op->code == OP_LOOP_BIND) {
		const Attr *dims = op_attr(op, "dims");
		for (int i = 0; i < dims->n; i++)
			if (dims->dims[i] == sym)
				return true;
		return false;
	}
	if (op->code == OP_LOOP_NEST || attrs_mention(op, sym))
		return false;
	for (int i = 0; i < op->nresult; i++) {
		const Type *t = op->results[i].type;
		if (type_has_size(t, sym) && !op_is_given(op, sym, t->kind == TY_ARRAY))
			return true;
	}
	return false;
}

bool region_has_size(const Region *r, const Dim *sym, bool (*has)(const Op *op, const Dim *sym))
{
	for (const Block *b = r->first; b; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			if (type_mentions(b->args[i]->type, sym))
				return true;
		for (const Op *op = b->first; op; op = op->next) {
			if (has(op, sym))
				return true;
			for (int i = 0; i < op->nregion; i++)
				if (region_has_size(&op->regions[i], sym, has))
					return true;
		}
	}
	return false;
}

typedef struct Sizes {
	int n, room;
	const Dim **list;
} Sizes;

static void empty_collect(Context *c, const Dim *d, Sizes *s)
{
	if (d->a) {
		empty_collect(c, d->a, s);
		empty_collect(c, d->b, s);
		return;
	}
	bool take = d->kind == DIM_SYM && dim_may_be_empty(c, d);
	for (int i = 0; i < s->n && take; i++)
		take = s->list[i] != d;
	if (!take)
		return;
	VEC_ROOM(c->arena, s->list, s->n, s->room);
	s->list[s->n++] = d;
}

static const Attr *empty_attr(Op *module)
{
	Sizes s = {0};
	for (const Block *b = module->regions[0].first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			for (int d = 0; op->code == OP_PD_FEED && op->results[0].type->kind == TY_TENSOR &&
			                d < op->results[0].type->rank;
			     d++)
				empty_collect(module->ctx, op->results[0].type->dims[d], &s);
	return s.n ? attr_dims(module->ctx, s.n, s.list) : NULL;
}

static const Attr *bounds_attr(Op *module)
{
	Context *c = module->ctx;
	const int count = dim_bound_count(c);
	const Dim **list = NEW_ARRAY(c->arena, 2 * (size_t)count + 1, const Dim *), *sym;
	int n = 0;
	for (int i = 0; i < count; i++) {
		const Dim *bound = dim_bound_get(c, i, &sym);
		if (!bound || !region_has_size(&module->regions[0], sym, results_mention))
			continue;
		list[n++] = sym;
		list[n++] = bound;
	}
	return n ? attr_dims(c, n, list) : NULL;
}

void size_facts_to_module(Op *module)
{
	op_set_attr(module, "bounds", bounds_attr(module));
	op_set_attr(module, "may_be_empty", empty_attr(module));
}

void size_facts_from_module(const Op *module)
{
	const Attr *a = op_attr(module, "bounds"), *empty = op_attr(module, "may_be_empty");
	for (int i = 0; a && a->kind == ATTR_DIMS && i + 1 < a->n; i += 2)
		dim_set_bound(module->ctx, a->dims[i], a->dims[i + 1]);
	const bool some = empty && empty->kind == ATTR_DIMS;
	dim_rely_on_others(module->ctx, some ? empty->n : 0, some ? empty->dims : NULL);
}
