#include "ir/gradient/gradient_sizes.h"
#include "ir/base/vec.h"
#include "ir/build/counted.h"
#include "ir/gradient/gradient.h"

// ---- which they are -----------------------------------------------------------------------------

static int place_of(const FoundSizes *s, const Dim *d)
{
	for (int i = 0; i < s->n; i++)
		if (s->list[i].size == d)
			return i;
	return -1;
}

static void add_dim(Context *c, FoundSizes *s, const Dim *d)
{
	if (d->a) {
		add_dim(c, s, d->a);
		add_dim(c, s, d->b);
	} else if (d->kind == DIM_SYM && d->bounded && place_of(s, d) < 0) {
		VEC_ROOM(c->arena, s->list, s->n, s->cap);
		s->list[s->n++].size = d;
	}
}

static void add_type(Context *c, FoundSizes *s, const Type *t)
{
	for (int d = 0; d < t->rank; d++)
		add_dim(c, s, t->dims[d]);
	for (int i = 0; i < t->nelem; i++)
		add_type(c, s, t->elems[i]);
}

// Sizes of values of the region, and of values from around op that it reads.
typedef struct Search {
	const Op *op;
	FoundSizes inside, around;
} Search;

static void search(Search *s, const Region *r)
{
	Context *c = s->op->ctx;
	for (const Block *b = r->first; b; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			add_type(c, &s->inside, b->args[i]->type);
		for (const Op *op = b->first; op; op = op->next) {
			for (int i = 0; i < op->noperand; i++)
				if (op_operand(op, i) && !value_is_within(op_operand(op, i), s->op))
					add_type(c, &s->around, op_operand(op, i)->type);
			for (int i = 0; i < op->nresult; i++)
				add_type(c, &s->inside, op->results[i].type);
			for (int i = 0; i < op->nregion; i++)
				search(s, &op->regions[i]);
		}
	}
}

// A variable's sizes at the end of a round that are those at its beginning stay what they are
// behind the loop.
static void add_steady(Search *s)
{
	const Block *body = s->op->regions[1].first;
	for (int i = 0; i < s->op->nresult; i++) {
		const Type *t = body->args[i]->type, *next = op_operand(body->last, i)->type;
		for (int d = 0; t->kind == TY_TENSOR && d < t->rank; d++)
			if (t->dims[d] == next->dims[d])
				add_dim(s->op->ctx, &s->around, t->dims[d]);
	}
}

// A symbol that takes the values of `like`.
static const Dim *size_new(Context *c, const Dim *like, const char *stem)
{
	const Dim *sym = dim_sym_new(c, stem);
	dim_set_bound(c, sym, like);
	return sym;
}

FoundSizes found_sizes_in(const Op *op, const Region *r)
{
	Context *c = op->ctx;
	Search s = {.op = op};
	search(&s, r);
	for (int i = 0; i < op->noperand; i++)
		add_type(c, &s.around, op_operand(op, i)->type);
	if (op->code == OP_PD_WHILE)
		add_steady(&s);
	FoundSizes found = {.list = s.inside.list};
	for (int i = 0; i < s.inside.n; i++) {
		const Dim *size = s.inside.list[i].size;
		if (place_of(&s.around, size) < 0)
			found.list[found.n++] = (FoundSize){
				size, size_new(c, size, arena_printf(c->arena, "%s_back", size->name)), NULL};
	}
	return found;
}

static bool is_found_in(const FoundSizes *s, const Dim *d)
{
	for (int i = 0; i < s->n; i++)
		if (dim_mentions(d, s->list[i].size))
			return true;
	return false;
}

bool found_sizes_stand_in(const FoundSizes *s, const Type *t)
{
	for (int d = 0; d < t->rank; d++)
		if (is_found_in(s, t->dims[d]))
			return true;
	return false;
}

// ---- where they are known -----------------------------------------------------------------------

static bool says_size(const Op *op, const Dim *sym)
{
	return attrs_mention(op, sym) || results_mention(op, sym);
}

static bool says_beside(const Block *b, const Op *but, const Dim *sym)
{
	for (const Op *op = b->first; op; op = op->next) {
		if (op != but && says_size(op, sym))
			return true;
		for (int i = 0; i < op->nregion && op != but; i++)
			for (const Block *inner = op->regions[i].first; inner; inner = inner->next)
				if (says_beside(inner, but, sym))
					return true;
	}
	return false;
}

bool finds_read_size(const Op *op, const Block *b)
{
	for (int i = 0; i < op->nresult; i++) {
		const Type *t = op->results[i].type;
		for (int d = 0; d < t->rank; d++)
			if (t->dims[d]->bounded && op_finds_size(op, t->dims[d]) &&
			    says_beside(b, op, t->dims[d]))
				return true;
	}
	return false;
}

// Whether op, or one in front of it, reads an argument of the block that has the size.
static bool is_read_before(const Block *b, const Dim *size, const Op *op)
{
	for (int i = 0; i < b->narg; i++)
		for (const Use *u = type_has_size(b->args[i]->type, size) ? b->args[i]->uses : NULL; u;
		     u = u->next) {
			const Op *at = u->user;
			while (at && at->block != b)
				at = op_parent(at);
			if (at && (at == op || op_is_before(at, op)))
				return true;
		}
	return false;
}

void found_sizes_settle(FoundSizes *s, const Block *b, const Op *border)
{
	for (int i = 0; i < s->n; i++) {
		s->list[i].finder = NULL;
		for (Op *op = b->first; op != border && !s->list[i].finder; op = op->next)
			if (op_finds_size(op, s->list[i].size))
				s->list[i].finder = op;
		if (s->list[i].finder && is_read_before(b, s->list[i].size, s->list[i].finder))
			s->list[i].finder = NULL;
	}
}

bool found_size_is_missing(const FoundSize *s, const Block *b)
{
	return !s->finder && says_beside(b, NULL, s->size);
}

bool found_size_is_known(const FoundSize *s, const Block *b, Op **behind)
{
	*behind = NULL;
	for (int i = 0; i < b->narg; i++)
		if (type_has_size(b->args[i]->type, s->size))
			return true;
	for (Op *op = b->first; op; op = op->next) {
		*behind = op;
		if (says_size(op, s->size))
			return true;
	}
	return false;
}

Value *found_size_number(Builder *b, const FoundSize *s)
{
	const Dim *one = dim_const(b->ctx, 1);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &one, 0));
	return nest_close(&n, scalar_from_index(&n.b, index_dim(&n.b, s->size), DT_I64));
}

// ---- types --------------------------------------------------------------------------------------

// As `t`, with these dims.
static const Type *type_with(Context *c, const Type *t, const Dim *const *dims)
{
	return t->kind == TY_TENSOR ? type_tensor(c, t->dtype, t->rank, dims, t->lod)
	                            : type_shaped(c, t->kind, t->dtype, t->rank, dims);
}

const Type *found_sizes_open(Context *c, const FoundSizes *s, const Type *t, bool plain)
{
	const Dim *dims[MAX_RANK];
	if (!found_sizes_stand_in(s, t))
		return t;
	for (int d = 0; d < t->rank; d++) {
		const Dim *size = t->dims[d];
		const int place = place_of(s, size);
		const bool keep = !is_found_in(s, size) || (plain && place >= 0 && !s->list[place].finder);
		const char *stem = size->kind == DIM_SYM ? size->name : s->list[0].size->name;
		dims[d] = keep ? size : size_new(c, size, arena_printf(c->arena, "%s_round", stem));
	}
	return type_with(c, t, dims);
}

Op *found_sizes_last(const FoundSizes *s, const Type *t)
{
	Op *last = NULL;
	for (int i = 0; i < s->n; i++) {
		Op *finder = s->list[i].finder;
		if (finder && type_mentions(t, s->list[i].size) && (!last || op_is_before(last, finder)))
			last = finder;
	}
	return last;
}

const Type *type_found_anew(Context *c, TypeKind kind, const Type *t)
{
	const Dim *dims[MAX_RANK];
	for (int d = 0; d < t->rank; d++)
		dims[d] = dim_is_found(t->dims[d]) ? size_new(c, t->dims[d], "n_element") : t->dims[d];
	return type_shaped(c, kind, t->dtype, t->rank, dims);
}

static bool sizes_checked(Builder *b, Value *v, const Type *t)
{
	for (int d = 0; d < t->rank; d++) {
		if (t->dims[d] == v->type->dims[d])
			continue;
		Value *size = build_size(b, v, d);
		const NamedAttr dims = {"dims", attr_dims(b->ctx, 1, &t->dims[d])};
		if (!size || !build_op(b, OP_LOOP_BIND, 1, &size, 1, &dims))
			return false;
	}
	return true;
}

Value *value_as(Builder *b, Value *v, const Type *t)
{
	if (!v || t->kind != TY_TENSOR || v->type == t)
		return v;
	if (v->type->rank != t->rank) // one element, with other axes around it
		return tensor_reshape(b, v, t->rank, t->dims);
	if (!sizes_checked(b, v, t))
		return NULL;
	Nest n = nest_open(b, t);
	return nest_close(&n, load(&n.b, v, n.at));
}

// ---- other names --------------------------------------------------------------------------------

static const Dim *dim_renamed(Context *c, const FoundSizes *s, const Dim *d)
{
	if (!is_found_in(s, d))
		return d;
	if (d->kind == DIM_SYM)
		return s->list[place_of(s, d)].back;
	const Dim *a = dim_renamed(c, s, d->a), *b = dim_renamed(c, s, d->b); // in this order
	return dim_like(c, d, a, b);
}

static const Dim *const *dims_renamed(Context *c, const FoundSizes *s, int n,
                                      const Dim *const *dims)
{
	const Dim **out = NEW_ARRAY(c->arena, (size_t)n + 1, const Dim *);
	for (int i = 0; i < n; i++)
		out[i] = dim_renamed(c, s, dims[i]);
	return out;
}

static const Type *type_renamed(Context *c, const FoundSizes *s, const Type *t)
{
	if (t->kind == TY_VEC || t->kind == TY_STACK) {
		const Type **elems = NEW_ARRAY(c->arena, (size_t)t->nelem + 1, const Type *);
		for (int i = 0; i < t->nelem; i++)
			elems[i] = type_renamed(c, s, t->elems[i]);
		return type_group(c, t->kind, t->nelem, elems);
	}
	return found_sizes_stand_in(s, t) ? type_with(c, t, dims_renamed(c, s, t->rank, t->dims)) : t;
}

static const Attr *attr_renamed(Context *c, const FoundSizes *s, const Attr *a)
{
	switch (a->kind) {
	case ATTR_DIM: return attr_dim(c, dim_renamed(c, s, a->dim));
	case ATTR_DIMS: return attr_dims(c, a->n, dims_renamed(c, s, a->n, a->dims));
	case ATTR_TYPE: return attr_type(c, type_renamed(c, s, a->type));
	default: return a;
	}
}

static void value_rename(Context *c, const FoundSizes *s, Value *v)
{
	v->type = type_renamed(c, s, v->type);
	if (v->known)
		v->known = dims_renamed(c, s, v->nknown, v->known);
}

void found_sizes_rename(Context *c, const FoundSizes *s, const Region *r)
{
	for (Block *b = r->first; b && s->n; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			value_rename(c, s, b->args[i]);
		for (Op *op = b->first; op; op = op->next) {
			for (int i = 0; i < op->nresult; i++)
				value_rename(c, s, &op->results[i]);
			for (int i = 0; i < op->nattr; i++)
				op_set_attr(op, op->attrs[i].name, attr_renamed(c, s, op->attrs[i].attr));
			for (int i = 0; i < op->nregion; i++)
				found_sizes_rename(c, s, &op->regions[i]);
		}
	}
}
