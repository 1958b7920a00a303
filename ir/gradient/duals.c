// Duals: values and what has come in for their gradients, or how they move (gradient.h). Everybody
// in this room adds to them; gradient.c and tangent.c walk operations with them.
#include "ir/base/map.h"
#include "ir/build/infer.h"
#include "ir/gradient/gradient.h"

typedef struct Dual {
	const Value *value;
	Value *sum;    // NULL: nothing came in
	Value **parts; // [type->nelem] of a vec: what came in for each part
	bool wanted;
} Dual;

struct Duals {
	Context *c;
	PointerMap of; // Value -> Dual
	DualsHow how;
	const Op *loop; // of `flow`
	LoopDual *flow; // [nresult of loop]
};

Duals *duals_new(Context *c, const DualsHow *how)
{
	Duals *d = NEW(c->arena, Duals);
	d->c = c;
	d->how = how ? *how : (DualsHow){0};
	pointer_map_init(&d->of, c->arena);
	return d;
}

const DualsHow *duals_how(const Duals *d)
{
	return &d->how;
}

Duals *duals_like(const Duals *d)
{
	DualsHow how = d->how;
	how.marks = false;
	return duals_new(d->c, &how);
}

void duals_loop(Duals *d, const Op *loop, int i, LoopDual how)
{
	if (d->loop != loop)
		d->flow = NEW_ARRAY(d->c->arena, (size_t)loop->nresult, LoopDual);
	d->loop = loop;
	d->flow[i] = how;
}

LoopDual duals_loop_how(const Duals *d, const Op *loop, int i)
{
	return d->loop == loop ? d->flow[i] : LOOP_FLOWS;
}

static const Dual *dual_find(const Duals *d, const Value *v)
{
	return pointer_map_get(&d->of, v);
}

static Dual *dual_of(Duals *d, const Value *v)
{
	Dual *e = (Dual *)(uintptr_t)dual_find(d, v);
	if (!e) {
		e = NEW(d->c->arena, Dual);
		e->value = v;
		pointer_map_set(&d->of, v, e);
	}
	return e;
}

bool type_moves(const Type *t)
{
	if (t->kind == TY_VEC) {
		for (int i = 0; i < t->nelem; i++)
			if (type_moves(t->elems[i]))
				return true;
		return false;
	}
	bool kept = t->kind == TY_TENSOR || t->kind == TY_SCALAR || t->kind == TY_ARRAY;
	return kept && (dtype_is_float(t->dtype) || dtype_is_complex(t->dtype));
}

void duals_want(Duals *d, Value *v)
{
	if (v && type_moves(v->type))
		dual_of(d, v)->wanted = true;
}

bool duals_wanted(const Duals *d, const Value *v)
{
	const Dual *e = v ? dual_find(d, v) : NULL;
	return e && e->wanted;
}

bool dual_is_wanted(const Value *v, const void *duals)
{
	return duals_wanted(duals, v);
}

static bool add_part(Builder *b, Value **sum, const Type *type, Value *dv)
{
	bool tensor = type->kind == TY_TENSOR;
	dv = tensor ? tensor_cast(b, dv, type->dtype) : scalar_cast(b, dv, type->dtype);
	*sum = *sum ? apply2(b, OP_PD_ADD, *sum, dv) : dv;
	return *sum != NULL;
}

static Value **dual_parts(Duals *d, Dual *e)
{
	if (!e->parts)
		e->parts = NEW_ARRAY(d->c->arena, (size_t)e->value->type->nelem + 1, Value *);
	return e->parts;
}

bool duals_add_part(Builder *b, Duals *d, Value *v, int i, Value *dv)
{
	return add_part(b, &dual_parts(d, dual_of(d, v))[i], v->type->elems[i], dv);
}

bool duals_add(Builder *b, Duals *d, Value *v, Value *dv)
{
	if (!dv || !type_moves(v->type))
		return true;
	Dual *e = dual_of(d, v);
	if (v->type->kind == TY_ARRAY) {
		e->sum = e->sum ? gradient_add_arrays(b, e->sum, dv) : dv;
		return e->sum != NULL;
	}
	if (v->type->kind != TY_VEC)
		return add_part(b, &e->sum, v->type, dv);
	for (int i = 0; i < v->type->nelem; i++) {
		if (!type_moves(v->type->elems[i]))
			continue;
		Value *part = build1(b, OP_BUILTIN_SLICE, dv, "index", attr_int(b->ctx, i), NULL);
		if (!part || !duals_add_part(b, d, v, i, part))
			return false;
	}
	return true;
}

Value *gradient_zero(Builder *b, const Type *t)
{
	return t->kind == TY_SCALAR ? build_scalar_f(b, t->dtype, 0) : build_full(b, t, 0);
}

Value *gradient_zeros_for(Builder *b, Value *v)
{
	return v->type->kind == TY_ARRAY ? gradient_zero_array(b, v) : gradient_zero(b, v->type);
}

Value *duals_get(Builder *b, Duals *d, Value *v)
{
	const Dual *e = dual_find(d, v);
	if (!e || v->type->kind != TY_VEC)
		return e ? e->sum : NULL;
	if (!e->parts)
		return NULL;
	int n = v->type->nelem;
	Value **parts = NEW_ARRAY(d->c->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++)
		parts[i] = e->parts[i] ? e->parts[i] : gradient_zero(b, v->type->elems[i]);
	return build(b, OP_BUILTIN_COMBINE, n, parts, NULL);
}

bool duals_come(const Duals *d, const Value *v)
{
	const Dual *e = dual_find(d, v);
	return e && (e->sum || e->parts);
}

Value *duals_part(const Duals *d, const Value *v, int i)
{
	const Dual *e = dual_find(d, v);
	return e && e->parts ? e->parts[i] : NULL;
}

void duals_clear(Duals *d, const Value *v)
{
	Dual *e = dual_of(d, v);
	e->sum = NULL;
	e->parts = NULL;
}
