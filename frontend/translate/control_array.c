// Tensor arrays. A legacy array is one variable that operators change in place; here every change
// gives a new value, of the type of the variable: what its elements share, over all writes in the
// program. It is learnt while translating, and starting over makes it known everywhere.
#include "frontend/translate/control.h"
#include "frontend/translate/general.h"
#include "frontend/translate/lod.h"
#include "ir/build/build.h"
#include "ir/build/counted.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/gradient/gradient.h"

#include <string.h>

// ---- their types --------------------------------------------------------------------------------

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

// ---- operators ----------------------------------------------------------------------------------

bool array_assign(OpJob *j, const char *var, Value *v)
{
	if (!array_learn(j, var, v->type))
		return false;
	const Binding *b = scope_find(j->t, var);
	const Type *type = array_type(j->t, b->desc);
	// An empty array can become one of any type.
	if (v->type != type && v->def && v->def->code == OP_PD_CREATE_ARRAY)
		v = undefined_value(&j->b, type);
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
	Value *a = undefined_value(&b, array_type(j->t, v));
	a->name = l.var;
	return a;
}

// An operation on arrays whose result is the array in variable `var`.
static Value *build_array(OpJob *j, enum OpCode code, int n, Value *const *operands,
                          const char *var)
{
	const Binding *b = scope_find(j->t, var);
	const Type *type = array_type(j->t, b->desc);
	Op *op = op_new(j->t->c, code, j->b.loc, 1, &type, n, operands, 0, 0);
	op_append(j->t->block, op);
	return op_result(op, 0);
}

static bool position_is_one(OpJob *j, const Value *v, const char *slot)
{
	int64_t n;
	if (!type_is_tensor(v->type) || !dtype_is_int(v->type->dtype) ||
	    (type_const_numel(v->type, &n) && n != 1))
		return job_fail(j, "input %s must be one integer", slot);
	return true;
}

// The array that a write to `var` changes. The gradient of an array, which has nothing yet, has zeros
// for all elements of that array: writes give some, in any order, of which `sum` makes one.
static Value *array_to_write(OpJob *j, const char *var)
{
	Value *array = read_var(j, "Out", var);
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
	if (!array_learn(j, out, element->type) || !position_is_one(j, at, "I"))
		return false;
	if (element->type->kind != TY_TENSOR)
		return job_fail(j, "input X is no tensor");
	Value *array = array_to_write(j, out);
	if (!array)
		return false;
	Value *const operands[] = {array, at, element};
	Value *after = build_array(j, OP_PD_ARRAY_WRITE, 3, operands, out);
	write_var(j, out, after);
	return lod_array_write(j, out, array, at, element, after);
}

// Whether `element` was written to an array, but never at `at`.
static bool written_elsewhere(const Value *element, const Value *at)
{
	bool written = false;
	for (const Use *u = element->uses; u; u = u->next) {
		if (u->user->code != OP_PD_ARRAY_WRITE || u->index != 2)
			continue;
		if (op_operand(u->user, 1) == at)
			return false;
		written = true;
	}
	return written;
}

// As the gradient of a write it names the tensor that was written: an element that is not there
// would be zeros like that one. Gradients of arrays have all elements. Where a loop has counted on
// since the write, Paddle reads another element's gradient: what that is depends on how it stores
// them, and is refused if anybody reads it.
bool array_read_inputs(OpJob *j)
{
	Context *c = j->t->c;
	const char *x = input_var(j, "X_W");
	const char *i = input_var(j, "I");
	Value *element = x ? read_var(j, "X_W", x) : NULL,
		  *at = element && i ? read_var(j, "I", i) : NULL;
	if (x && (!element || !at))
		return false;
	const char *out = output_var(j, "Out");
	if (x && out && flow_live_after(j->t, out) && written_elsewhere(element, at))
		return job_fail(j,
		                "'%s' was written where '%s' no longer points: the gradient of another "
		                "element is not supported",
		                x, i);
	Paddle__OpDesc *d = NEW(c->arena, Paddle__OpDesc);
	*d = *j->desc;
	d->inputs = NEW_ARRAY(c->arena, d->n_inputs + 1, Paddle__OpSlot *);
	d->n_inputs = 0;
	for (size_t s = 0; s < j->desc->n_inputs; s++)
		if (strcmp(j->desc->inputs[s]->parameter, "X_W") != 0)
			d->inputs[d->n_inputs++] = j->desc->inputs[s];
	j->desc = d;
	return general_inputs(j);
}

// ---- slice: of a tensor, or of an array ---------------------------------------------------------

// A bound of the slice as one integer: the operand, or the attribute.
static Value *slice_bound(OpJob *j, const char *operand, const char *attr)
{
	Value *v = job_operand(j, operand);
	if (v && v->type->kind == TY_VEC) {
		if (!v->def || v->def->noperand != 1)
			return NULL;
		v = op_operand(v->def, 0);
	}
	if (v)
		return v;
	const Attr *a = job_attr(j, attr);
	if (!a || a->n != 1 || a->kind != ATTR_DIMS || !dim_is_const(a->dims[0]))
		return NULL;
	Tensor *t = tensor_new(j->t->c->arena, DT_I64, 1, (const int64_t[]){1});
	tensor_set_i(t, 0, a->dims[0]->value);
	return build_constant(&j->b, t);
}

// The position of an element that a slice names: a negative one counts from the last, and what lies
// before the first is the first.
static Value *slice_position(OpJob *j, Value *array, Value *at)
{
	Builder *b = &j->b;
	if (at->nknown == 1 && dim_is_const(at->known[0]) && at->known[0]->value >= 0)
		return at;
	Value *zero = build_number(b, DT_I64, 1, 0),
		  *length = build1(b, OP_PD_ARRAY_LENGTH, array, NULL);
	at = tensor_reshape(b, tensor_cast(b, at, DT_I64), 1, zero->type->dims);
	Value *wraps = at && length ? build2(b, OP_PD_LESS_THAN, at, zero, NULL) : NULL,
		  *behind = wraps ? tensor_add(b, at, length) : NULL,
		  *first = behind ? build2(b, OP_PD_MAXIMUM, behind, zero, NULL) : NULL;
	Value *const operands[] = {wraps, first, at};
	return first ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
}

// Paddle 3's slice of one element.
bool array_element_inputs(OpJob *j)
{
	if (!general_inputs(j))
		return false;
	if (!position_is_one(j, j->operands[1], "starts"))
		return false;
	j->operands[1] = slice_position(j, j->operands[0], j->operands[1]);
	return j->operands[1] != NULL;
}

// Each element of y added to that of x, which has at least as many.
static Value *array_add(Builder *b, Value *x, Value *y)
{
	CountedLoop l;
	if (!count_begin(&l, b, gradient_array_length(b, y), false, 1, &x))
		return NULL;
	Value *p = gradient_array_read(&l.b, l.args[0], l.at),
		  *q = p ? gradient_array_read(&l.b, y, l.at) : NULL,
		  *sum = q ? tensor_add(&l.b, p, q) : NULL;
	return gradient_array_end(&l, sum ? gradient_array_write(&l.b, l.args[0], l.at, sum) : NULL);
}

// Sums of arrays, which are gradients, too.
bool sum_create(OpJob *j)
{
	const Op *list = j->operands[0] ? j->operands[0]->def : NULL;
	if (!list || list->code != OP_BUILTIN_COMBINE || !list->noperand ||
	    op_operand(list, 0)->type->kind != TY_ARRAY)
		return general_create(j);
	Value *sum = op_operand(list, 0);
	for (int i = 1; sum && i < list->noperand; i++) {
		Value *term = op_operand(list, i);
		if (term->type != sum->type)
			return job_fail(j, "term %d is not a tensor array like the first", i);
		sum = array_add(&j->b, sum, term);
	}
	const char *out = sum ? job_output(j, 0, 0) : NULL;
	if (!out || !array_learn(j, out, sum->type))
		return false;
	j->op = sum->def;
	j->results = NEW(j->t->c->arena, Value *);
	j->results[0] = sum;
	return true;
}

// Paddle 3's slice of several: an array.
bool array_slice_create(OpJob *j)
{
	const char *out = job_output(j, 0, 0);
	if (!position_is_one(j, j->operands[1], "starts") ||
	    !position_is_one(j, j->operands[2], "ends") || !out ||
	    !array_learn(j, out, j->operands[0]->type))
		return false;
	Value *after = build_array(j, OP_PD_ARRAY_SLICE, 3, j->operands, out);
	j->op = after ? after->def : NULL;
	return after != NULL;
}

// Paddle 3's pop of the last element: the array without it, under the same name, and the element.
bool array_pop_translate(OpJob *j)
{
	Builder *b = &j->b;
	const char *name = input_var(j, "X"), *out = output_var(j, "Out");
	Value *array = name ? read_var(j, "X", name) : NULL;
	if (!array || array->type->kind != TY_ARRAY)
		return (!name || array) && job_fail(j, "input X is no tensor array");
	Value *length = build1(b, OP_PD_ARRAY_LENGTH, array, NULL),
		  *last = tensor_sub(b, length, build_number(b, DT_I64, 1, 1)),
		  *element = last ? build2(b, OP_PD_ARRAY_READ, array, last, NULL) : NULL;
	Value *const operands[] = {array, build_number(b, DT_I64, 1, 0), last};
	Value *rest = element ? build_array(j, OP_PD_ARRAY_SLICE, 3, operands, name) : NULL;
	if (!rest)
		return false;
	write_var(j, name, rest);
	if (out)
		write_var(j, out, element);
	return true;
}

bool slice_create(OpJob *j)
{
	Value *array = job_operand(j, "input");
	if (array->type->kind != TY_ARRAY)
		return general_create(j);
	const Attr *drop = job_attr(j, "decrease_axis");
	const char *out = job_output(j, 0, 0);
	Value *start = slice_bound(j, "starts_tensor", "starts"),
		  *end = slice_bound(j, "ends_tensor", "ends");
	if (!start || !end || !position_is_one(j, start, "StartsTensor") ||
	    !position_is_one(j, end, "EndsTensor"))
		return job_fail(j, "a slice of a tensor array needs one start and one end");
	Value *const operands[] = {array, start, end};
	if (drop && drop->n) {
		start = slice_position(j, array, start);
		Value *v = start ? build2(&j->b, OP_PD_ARRAY_READ, array, start, NULL) : NULL;
		j->op = v ? v->def : NULL;
		return v != NULL;
	}
	if (!out || !array_learn(j, out, array->type))
		return false;
	j->op = build_array(j, OP_PD_ARRAY_SLICE, 3, operands, out)->def;
	return true;
}
