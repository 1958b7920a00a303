// Types of tensor arrays: what their elements share, over all writes in the program. It is learnt
// while translating, and starting over makes it known everywhere.
#include "frontend/job/array_types.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/build/infer.h"

#include <string.h>

// What elements of one element type and one number of axes share.
typedef struct ElementKind {
	DType dtype;
	int rank;
	const Dim *dims[MAX_RANK];
	uint32_t open; // axes on which elements differ
} ElementKind;

// What is known of an array's elements; outlives restarts.
typedef struct ArrayMemo {
	bool known; // else what the variable declares
	int n;
	ElementKind kinds[MAX_VARIANTS];
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
	ElementKind *k = &m->kinds[0];
	m->n = 1;
	k->dtype = DT_F32;
	k->rank = 0;
	if (!d || !dtype_from_kind(d->data_type, &k->dtype) || d->n_dims > MAX_RANK)
		return;
	k->rank = (int)d->n_dims;
	for (int i = 0; i < k->rank; i++) {
		k->dims[i] = dim_const(t->c, d->dims[i] < 0 ? 0 : d->dims[i]);
		k->open |= d->dims[i] < 0 ? UINT32_C(1) << i : 0;
	}
}

// Open sizes are named after the array, and from the second kind on after the kind.
static const Type *kind_type(Translator *t, const ArrayMemo *m, int kind, const char *var)
{
	Context *c = t->c;
	const ElementKind *k = &m->kinds[kind];
	const Dim *dims[MAX_RANK];
	const char *stem = symbol_part(c, var);
	if (kind)
		stem = arena_printf(c->arena, "%s_%s%d", stem, dtype_name(k->dtype), k->rank);
	for (int i = 0; i < k->rank; i++) {
		bool open = k->open >> i & 1;
		// Adding nothing says a size anew, with all that was learnt about its symbols.
		dims[i] = open ? dim_sym_bounded(c, arena_printf(c->arena, "e_%s_%d", stem, i))
		               : dim_add(c, k->dims[i], dim_const(c, 0));
	}
	return type_shaped(c, TY_ARRAY, k->dtype, k->rank, dims);
}

static const Type *memo_type(Translator *t, const ArrayMemo *m, const char *var)
{
	const Type *kinds[MAX_VARIANTS];
	for (int k = 0; k < m->n; k++)
		kinds[k] = kind_type(t, m, k, var);
	return m->n == 1 ? kinds[0] : type_group(t->c, TY_VEC, m->n, kinds);
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

static int kind_find(const ArrayMemo *m, const Type *e)
{
	for (int k = 0; m->known && k < m->n; k++)
		if (m->kinds[k].dtype == e->dtype && m->kinds[k].rank == e->rank)
			return k;
	return -1;
}

// The kind must be there, or there must be room.
static void memo_add(Translator *t, ArrayMemo *m, const char *var, const Type *e)
{
	int at = kind_find(m, e);
	if (at < 0) {
		at = m->known ? m->n : 0;
		ElementKind *k = &m->kinds[at];
		*k = (ElementKind){.dtype = e->dtype, .rank = e->rank};
		for (int d = 0; d < e->rank; d++) {
			k->dims[d] = e->dims[d];
			k->open |= is_found(e->dims[d]) ? UINT32_C(1) << d : 0;
		}
		m->known = true;
		m->n = at + 1;
	}
	const Type *now = kind_type(t, m, at, var);
	for (int d = 0; d < e->rank; d++)
		if (now->dims[d] != e->dims[d])
			m->kinds[at].open |= UINT32_C(1) << d;
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

static const Paddle__VarDesc *array_desc(const Binding *b)
{
	return b && b->desc && b->desc->type->type == PADDLE__VAR_KIND__LOD_TENSOR_ARRAY ? b->desc
	                                                                                 : NULL;
}

// Gradients want elements of one kind.
static bool kind_fits(OpJob *j, const char *var, const ArrayMemo *m, const Type *e)
{
	const int most = j->t->graded ? 1 : MAX_VARIANTS;
	if (!m->known || kind_find(m, e) >= 0 || m->n < most)
		return true;
	return job_fail(j, "array '%s' has elements of %s, and gets one of %s: not supported", var,
	                element_text(j->t->c, m->kinds[0].dtype, m->kinds[0].rank),
	                element_text(j->t->c, e->dtype, e->rank));
}

bool array_learn(OpJob *j, const char *var, const Type *e)
{
	Translator *t = j->t;
	const Paddle__VarDesc *v = array_desc(scope_find(t, var));
	if (t->component)
		return true; // the array is part of one that knows its type
	if (!v)
		return job_fail(j, "variable '%s' is no tensor array", var);
	if (e->kind != TY_TENSOR && e->kind != TY_ARRAY)
		return job_fail(j, "an element of array '%s' is no tensor", var);
	const Type *before = array_type(t, v);
	ArrayMemo *m = memo_of(t, v->name);
	// An array without elements says nothing about them.
	if (e->kind == TY_ARRAY && e->rank == 0 && (!m->known || m->kinds[0].rank))
		return true;
	if (!kind_fits(j, var, m, e))
		return false;
	memo_add(t, m, v->name, e);
	t->misled |= array_type(t, v) != before;
	t->stale |= t->misled;
	return true;
}

// The kinds of `from` are those of `to` as well.
static bool kinds_join(OpJob *j, const char *to, const char *from)
{
	ArrayMemo *m = memo_of(j->t, to);
	const ArrayMemo *other = memo_of(j->t, from);
	for (int k = 0; other->known && k < other->n; k++) {
		const Type *e = kind_type(j->t, other, k, from);
		if (kind_find(m, e) >= 0)
			continue;
		if (!kind_fits(j, to, m, e))
			return false;
		memo_add(j->t, m, to, e);
		j->t->misled = j->t->stale = true;
	}
	return true;
}

bool array_share(OpJob *j, const char *a, const char *b)
{
	Translator *t = j->t;
	const Paddle__VarDesc *v = array_desc(scope_find(t, a)), *w = array_desc(scope_find(t, b));
	if (!v || !w || t->graded)
		return true;
	const ArrayMemo *m = memo_of(t, v->name), *n = memo_of(t, w->name);
	if ((!m->known || !n->known) && m->n < 2 && n->n < 2)
		return true; // what was never written may be of any type
	return kinds_join(j, v->name, w->name) && kinds_join(j, w->name, v->name);
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
	const Paddle__VarDesc *v = array_desc(scope_find(t, var));
	if (!t->graded || !v || e->kind != TY_TENSOR)
		return true; // array_learn says what is wrong
	ArrayMemo *m = memo_of(t, v->name);
	if (!m->known || kind_find(m, e) >= 0)
		return true;
	const bool now = declared_as(v, m->kinds[0].dtype, m->kinds[0].rank);
	if (now == declared_as(v, e->dtype, e->rank))
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
	const ElementKind *k = &memo_of(j->t, var)->kinds[0];
	const char *text = arena_printf(
		c->arena, "array '%s' has elements of %s, and this would be one of %s", var,
		element_text(c, k->dtype, k->rank), element_text(c, e->dtype, e->rank));
	diag_warning(c->diag, j->b.loc, "%s: a run that comes here ends", text);
	return assert_never(&j->b, text);
}
