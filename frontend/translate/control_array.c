// Tensor arrays, and writing to them. A legacy array is one variable that operators change in
// place; here every change gives a new value, of the type of the variable: what its elements share,
// over all writes in the program. It is learnt while translating, and starting over makes it known
// everywhere.
#include "frontend/translate/control.h"
#include "frontend/translate/general.h"
#include "frontend/translate/lod.h"
#include "frontend/translate/variant.h"
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/gradient/gradient.h"

#include <string.h>

// ---- their types --------------------------------------------------------------------------------

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

// ---- elements of several types ------------------------------------------------------------------
// An array for each element type and number of axes, and one of numbers that say of which an
// element is. A write puts something in each, so that all are as long. While a program is
// translated they are one mark, builtin.variant (variant.h), which loops and branches carry as they
// carry variables of several types.

// What stands for a type in the array of kinds: the same in all arrays of a program.
int64_t array_kind_code(const Type *t)
{
	return (int64_t)t->dtype * (MAX_RANK + 1) + t->rank;
}

Value *mixed_kinds_none(Builder *b)
{
	const Dim *one = dim_const(b->ctx, 1);
	return undefined_value(b, type_shaped(b->ctx, TY_ARRAY, DT_I64, 1, &one));
}

Value *array_of_none(Builder *b, const Type *t)
{
	Value *parts[MAX_VARIANTS];
	if (t->kind == TY_ARRAY)
		return undefined_value(b, t);
	Value *kinds = mixed_kinds_none(b);
	for (int k = 0; k < t->nelem; k++)
		parts[k] = undefined_value(b, t->elems[k]);
	return variant_make(b, kinds, t->nelem, parts);
}

static const char *kinds_name(Context *c, const char *var)
{
	return context_str(c, arena_printf(c->arena, "%s.kinds", var));
}

// Zeros in the place of an element of another type.
static Value *no_element(Builder *b, const Type *array)
{
	const Dim *dims[MAX_RANK];
	for (int d = 0; d < array->rank; d++)
		dims[d] = dim_is_found(array->dims[d]) ? dim_const(b->ctx, 1) : array->dims[d];
	return build_full(b, type_tensor(b->ctx, array->dtype, array->rank, dims, 0), 0);
}

// The end of the mixed array is that of each: passes know how long an array becomes by this.
static Value *position_in(Builder *b, Value *at, const Value *kinds, Value *part)
{
	const bool end = at->def && at->def->code == OP_PD_ARRAY_LENGTH &&
	                 op_operand(at->def, 0) == kinds;
	return end ? build1(b, OP_PD_ARRAY_LENGTH, part, NULL) : at;
}

static Value *write_part(OpJob *j, Value *array, Value *at, Value *element, const char *name)
{
	Value *const operands[] = {array, at, element};
	if (!at || !element)
		return NULL;
	Op *op = op_new(j->t->c, OP_PD_ARRAY_WRITE, j->b.loc, 1, &array->type, 3, operands, 0, 0);
	op_append(j->t->block, op);
	op_result(op, 0)->name = name;
	return op_result(op, 0);
}

static bool mixed_write(OpJob *j, const char *out, Value *mark, Value *at, Value *element)
{
	Context *c = j->t->c;
	Builder *b = &j->b;
	Value *kinds = op_operand(mark->def, 0), *parts[MAX_VARIANTS];
	const int n = variant_count(mark);
	if (lod_of(j->t, element))
		return job_fail(j, "array '%s' has elements of several types, and gets one with LoD", out);
	for (int k = 0; k < n; k++) {
		Value *part = variant_part(mark, k);
		const bool here = part->type->dtype == element->type->dtype &&
		                  part->type->rank == element->type->rank;
		parts[k] = write_part(j, part, position_in(b, at, kinds, part),
		                      here ? element : no_element(b, part->type), context_str(c, out));
		if (!parts[k])
			return false;
	}
	Value *number = build_number(b, DT_I64, 1, array_kind_code(element->type));
	kinds = write_part(j, kinds, at, number, kinds_name(c, out));
	if (kinds)
		write_var(j, out, variant_make(b, kinds, n, parts));
	return kinds != NULL;
}

// ---- operators ----------------------------------------------------------------------------------

bool array_assign(OpJob *j, const char *var, Value *v)
{
	if (!is_mixed(v) && !array_learn(j, var, v->type))
		return false;
	const Binding *b = scope_find(j->t, var);
	const Type *type = array_type(j->t, b->desc);
	// An empty array can become one of any type.
	if (v->type != type && v->def && v->def->code == OP_PD_CREATE_ARRAY)
		v = array_of_none(&j->b, type);
	write_var(j, var, v);
	return true;
}

Value *array_empty(OpJob *j, const Paddle__VarDesc *v)
{
	Loc l = {.file = j->t->c->file,
	         .block = j->t->block_index,
	         .op = -1,
	         .var = context_str(j->t->c, v->name)};
	Builder b = top_builder(j, context_loc(j->t->c, &l));
	Value *a = array_of_none(&b, array_type(j->t, v));
	a->name = l.var;
	return a;
}

Value *array_make(OpJob *j, enum OpCode code, int n, Value *const *operands, const char *var)
{
	const Binding *b = scope_find(j->t, var);
	const Type *type = j->t->component ? operands[0]->type : array_type(j->t, b->desc);
	Op *op = op_new(j->t->c, code, j->b.loc, 1, &type, n, operands, 0, 0);
	op_append(j->t->block, op);
	return op_result(op, 0);
}

bool array_position(OpJob *j, const Value *v, const char *slot)
{
	int64_t n;
	if (!type_is_tensor(v->type) || !dtype_is_int(v->type->dtype) ||
	    (type_const_numel(v->type, &n) && n != 1))
		return job_fail(j, "input %s must be one integer", slot);
	return true;
}

// The array that a write to `var` changes. The gradient of an array, which has nothing yet, has
// zeros for all elements of that array: writes give some, in any order, of which `sum` makes one.
static Value *array_to_write(OpJob *j, const char *var)
{
	Value *array = read_any(j, "Out", var);
	const char *end = strstr(var, "@GRAD");
	if (!array || !end || !array->def || array->def->code != OP_PD_CREATE_ARRAY)
		return array;
	Context *c = j->t->c;
	const Binding *of = scope_find(j->t, context_strn(c, var, (size_t)(end - var)));
	const bool known = of && of->value && of->value->type == array->type;
	return known ? gradient_zero_array(&j->b, of->value) : array;
}

bool array_write_translate(OpJob *j)
{
	const char *x = input_var(j, "X");
	const char *i = input_var(j, "I");
	const char *out = output_var(j, "Out");
	if (!x || !i || !out)
		return job_fail(j, "needs variables in X, I and Out");
	Value *element = read_var(j, "X", x), *at = read_var(j, "I", i);
	if (!element || !at)
		return false;
	if (!array_takes(j, out, element->type))
		return array_refuse(j, out, element->type);
	if (!array_learn(j, out, element->type) || !array_position(j, at, "I"))
		return false;
	if (element->type->kind != TY_TENSOR)
		return job_fail(j, "input X is no tensor");
	Value *array = j->t->stale ? NULL : array_to_write(j, out);
	if (!array)
		return false;
	if (is_mixed(array))
		return mixed_write(j, out, array, at, element);
	Value *const operands[] = {array, at, element};
	Value *after = array_make(j, OP_PD_ARRAY_WRITE, 3, operands, out);
	write_var(j, out, after);
	return lod_array_write(j, out, array, at, element, after);
}
