// The types of tensor arrays. All values of one variable have one type: what the elements share,
// over all writes in the program. It is learnt while translating, and starting over makes it known
// everywhere.
#include "frontend/translate/control.h"
#include "ir/build/infer.h"

#include <string.h>

// What is known of an array's elements; outlives restarts.
typedef struct ArrayMemo {
	bool known;
	DType dtype;
	int rank;
	const Dim *dims[MAX_RANK];
	uint32_t open; // axes on which elements differ
} ArrayMemo;

static ArrayMemo *memo_of(Translator *t, const char *var)
{
	const char *key = context_str(t->c, arena_printf(t->c->arena, "array %s", var));
	ArrayMemo *m = name_map_get(t->memo, key);
	if (!m) {
		m = NEW(t->c->arena, ArrayMemo);
		name_map_set(t->memo, key, m);
	}
	return m;
}

// Before anything was written: what the variable declares.
static void memo_declared(Translator *t, ArrayMemo *m, const Paddle__VarDesc *v)
{
	const Paddle__TensorDesc *d = var_tensor(v);
	m->dtype = DT_F32;
	m->rank = 0;
	if (!d || !dtype_from_kind(d->data_type, &m->dtype) || d->n_dims > MAX_RANK)
		return;
	m->rank = (int)d->n_dims;
	for (int i = 0; i < m->rank; i++) {
		m->dims[i] = dim_const(t->c, d->dims[i] < 0 ? 0 : d->dims[i]);
		m->open |= d->dims[i] < 0 ? UINT32_C(1) << i : 0;
	}
}

static const Type *memo_type(Translator *t, const ArrayMemo *m, const char *var)
{
	Context *c = t->c;
	const Dim *dims[MAX_RANK];
	const char *stem = symbol_part(c, var);
	for (int i = 0; i < m->rank; i++) {
		bool open = m->open >> i & 1;
		// Adding nothing says a size anew, with all that was learnt about its symbols.
		dims[i] = open ? dim_sym_bounded(c, arena_printf(c->arena, "e_%s_%d", stem, i))
		               : dim_add(c, m->dims[i], dim_const(c, 0));
	}
	return type_shaped(c, TY_ARRAY, m->dtype, m->rank, dims);
}

const Type *array_type(Translator *t, const Paddle__VarDesc *v)
{
	ArrayMemo *m = memo_of(t, v->name);
	if (!m->known)
		memo_declared(t, m, v);
	return memo_type(t, m, v->name);
}

static bool is_found(const Dim *d)
{
	return d->kind == DIM_SYM && d->bounded;
}

static void memo_add(Translator *t, ArrayMemo *m, const char *var, const Type *e)
{
	if (!m->known) {
		m->open = 0;
		m->dtype = e->dtype;
		m->rank = e->rank;
		for (int d = 0; d < e->rank; d++) {
			m->dims[d] = e->dims[d];
			m->open |= is_found(e->dims[d]) ? UINT32_C(1) << d : 0;
		}
		m->known = true;
	}
	const Type *now = memo_type(t, m, var);
	for (int d = 0; d < e->rank; d++)
		if (now->dims[d] != e->dims[d])
			m->open |= UINT32_C(1) << d;
}

const Type *array_level_type(Translator *t, const char *name, const Type *element)
{
	ArrayMemo *m = memo_of(t, name);
	const Type *before = m->known ? memo_type(t, m, name) : NULL;
	if (element)
		memo_add(t, m, name, element);
	const Type *now = memo_type(t, m, name);
	t->misled |= before && now != before;
	t->stale |= t->misled;
	return now;
}

static const char *element_text(Context *c, DType t, int rank)
{
	return arena_printf(c->arena, "%s with %d axes", dtype_name(t), rank);
}

bool array_learn(OpJob *j, const char *var, const Type *e)
{
	Translator *t = j->t;
	const Binding *b = scope_find(t, var);
	if (!b || !b->desc || b->desc->type->type != PADDLE__VAR_KIND__LOD_TENSOR_ARRAY)
		return job_fail(j, "variable '%s' is no tensor array", var);
	if (e->kind != TY_TENSOR && e->kind != TY_ARRAY)
		return job_fail(j, "an element of array '%s' is no tensor", var);
	const Type *before = array_type(t, b->desc);
	ArrayMemo *m = memo_of(t, b->desc->name);
	// An array without elements says nothing about them.
	if (e->kind == TY_ARRAY && e->rank == 0 && (!m->known || m->rank))
		return true;
	if (m->known && (m->dtype != e->dtype || m->rank != e->rank))
		return job_fail(j, "array '%s' has elements of %s, and gets one of %s: not supported", var,
		                element_text(t->c, m->dtype, m->rank),
		                element_text(t->c, e->dtype, e->rank));
	memo_add(t, m, b->desc->name, e);
	t->misled |= array_type(t, b->desc) != before;
	t->stale |= t->misled;
	return true;
}

static bool declared_as(const Paddle__VarDesc *v, DType dtype, int rank)
{
	const Paddle__TensorDesc *d = var_tensor(v);
	DType want;
	return d && dtype_from_kind(d->data_type, &want) && want == dtype && (int)d->n_dims == rank;
}

bool array_takes(OpJob *j, const char *var, const Type *e)
{
	Translator *t = j->t;
	const Binding *b = scope_find(t, var);
	if (!b || !b->desc || b->desc->type->type != PADDLE__VAR_KIND__LOD_TENSOR_ARRAY ||
	    e->kind != TY_TENSOR)
		return true; // array_learn says what is wrong
	ArrayMemo *m = memo_of(t, b->desc->name);
	if (!m->known || (m->dtype == e->dtype && m->rank == e->rank))
		return true;
	const bool now = declared_as(b->desc, m->dtype, m->rank);
	if (now == declared_as(b->desc, e->dtype, e->rank))
		return true;
	if (now)
		return false;
	m->known = false;
	t->misled = t->stale = true;
	return true;
}

bool array_refuse(OpJob *j, const char *var, const Type *e)
{
	Context *c = j->t->c;
	const ArrayMemo *m = memo_of(j->t, var);
	const char *text = arena_printf(
		c->arena, "array '%s' has elements of %s, and this would be one of %s", var,
		element_text(c, m->dtype, m->rank), element_text(c, e->dtype, e->rank));
	diag_warning(c->diag, j->b.loc, "%s: a run that comes here ends", text);
	return assert_never(&j->b, text);
}
