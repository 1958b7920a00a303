// Reading of tensor arrays: elements, parts and lengths; of arrays with elements of several types
// an operator is translated for each of the arrays that these are (control_array.c).
#include "frontend/control/control.h"
#include "frontend/control/variants.h"
#include "frontend/job/array_types.h"
#include "frontend/job/flow.h"
#include "frontend/job/general.h"
#include "frontend/job/variant.h"
#include "ir/build/build.h"
#include "ir/build/counted.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/gradient/gradient.h"

#include <string.h>

// ---- elements -----------------------------------------------------------------------------------

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
	if (!array_position(j, j->operands[1], "starts"))
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
	if (!array_position(j, j->operands[1], "starts") ||
	    !array_position(j, j->operands[2], "ends") || !out ||
	    !array_learn(j, out, j->operands[0]->type))
		return false;
	Value *after = array_make(j, OP_PD_ARRAY_SLICE, 3, j->operands, out);
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
	Value *rest = element ? array_make(j, OP_PD_ARRAY_SLICE, 3, operands, name) : NULL;
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
	if (!start || !end || !array_position(j, start, "StartsTensor") ||
	    !array_position(j, end, "EndsTensor"))
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
	j->op = array_make(j, OP_PD_ARRAY_SLICE, 3, operands, out)->def;
	return true;
}

// ---- arrays with elements of several types ------------------------------------------------------

// An operator on its way that is translated for each array of the mark.
typedef struct Components {
	OpJob *j;
	int index; // of the operator, in its block
	const char *var;
	Value *mark;
	int nout;
	const char **outs;
	Value **after[MAX_VARIANTS + 1]; // what it leaves, of the array of kinds first
} Components;

// False after a diagnostic.
static bool one_component(Components *p, int at, Value *array)
{
	Translator *t = p->j->t;
	Binding *in = scope_find(t, p->var);
	Binding *old = NEW_ARRAY(t->c->arena, (size_t)p->nout + 1, Binding);
	const bool failed = t->failed;
	p->after[at] = NEW_ARRAY(t->c->arena, (size_t)p->nout + 1, Value *);
	for (int i = 0; i < p->nout; i++)
		old[i] = *write_binding(t, p->outs[i]);
	in->value = array;
	t->failed = false;
	t->component = at + 1;
	t->hooks->op(t, p->index);
	t->component = 0;
	const bool ok = !t->failed && !t->stale;
	t->failed |= failed;
	for (int i = 0; i < p->nout; i++) {
		Binding *b = write_binding(t, p->outs[i]);
		p->after[at][i] = ok ? b->value : NULL;
		*b = old[i];
	}
	in->value = p->mark;
	return ok;
}

// The number of the type, of a code that was read.
static Value *which_kind(Builder *b, Value *code, const Value *mark)
{
	Context *c = b->ctx;
	const Type *number = type_tensor(c, DT_I64, 0, NULL, 0);
	Value *out = NULL;
	code = build1(b, OP_PD_RESHAPE, code, "shape", attr_dims(c, 0, NULL), NULL);
	for (int k = variant_count(mark) - 1; code && k >= 0; k--) {
		Value *here = build_full(b, number, k),
			  *that = build_full(b, number, (double)array_kind_code(variant_part(mark, k)->type)),
			  *is = out ? build2(b, OP_PD_EQUAL, code, that, NULL) : NULL;
		Value *const choice[] = {is, here, out};
		out = out ? build(b, OP_PD_WHERE, 3, choice, NULL) : here;
	}
	return code ? out : NULL;
}

// Output i as one value: an array is mixed as well, an element may be of any of the types, a length
// is that of all.
static bool join_output(Components *p, int i)
{
	OpJob *j = p->j;
	Value *first = p->after[0][i], *parts[MAX_VARIANTS];
	const int n = variant_count(p->mark);
	if (!p->after[1]) {
		write_var(j, p->outs[i], first);
		return true;
	}
	for (int k = 0; k < n; k++)
		parts[k] = p->after[k + 1][i];
	if (first->type->kind == TY_ARRAY) {
		if (!array_share(j, p->outs[i], p->var))
			return false;
	} else if (!(first = which_kind(&j->b, first, p->mark))) {
		return false;
	}
	write_var(j, p->outs[i], variant_make(&j->b, first, n, parts));
	return true;
}

static bool for_each_part(OpJob *j, int index, const char *var, Value *mark, bool length)
{
	Components p = {.j = j, .index = index, .var = var, .mark = mark};
	p.nout = job_outputs(j, &p.outs);
	bool ok = one_component(&p, 0, op_operand(mark->def, 0));
	for (int k = 0; ok && !length && k < variant_count(mark); k++)
		ok = one_component(&p, k + 1, variant_part(mark, k));
	j->b = builder_at_end(j->t->c, j->t->block, j->b.loc);
	for (int i = 0; ok && i < p.nout; i++)
		ok = !p.after[0][i] || join_output(&p, i);
	return ok;
}

// The first variable that the operator reads and that holds such an array. Guards become values, as
// they do when operands are read.
static const char *mixed_input(OpJob *j, Value **mark)
{
	for (size_t s = 0; s < j->desc->n_inputs; s++)
		for (size_t k = 0; k < j->desc->inputs[s]->n_arguments; k++) {
			const char *var = slot_var(j->desc->inputs[s], k);
			Binding *b = var ? scope_find(j->t, var) : NULL;
			if (!b || !b->desc || b->desc->type->type != PADDLE__VAR_KIND__LOD_TENSOR_ARRAY)
				continue;
			if (b->guard && !j->t->hooks->guard(j, var, b))
				return NULL;
			if (!b->value && !b->broken && array_type(j->t, b->desc)->kind == TY_VEC)
				read_any(j, "X", var); // nothing so far
			if (is_mixed(b->value)) {
				*mark = b->value;
				return var;
			}
		}
	return NULL;
}

// Operators that know such arrays themselves.
static bool passes_on(const char *type)
{
	static const char *const names[] = {"while",         "conditional_block", "select_input",
	                                    "select_output", "write_to_array",    "recurrent",
	                                    "fetch",         "fetch_v2",          "pd_op.array_write_"};
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (!strcmp(type, names[i]))
			return true;
	return false;
}

bool mixed_translate(OpJob *j, int index, bool *ok)
{
	Value *mark;
	const LegacyMap *map;
	const OpInfo *info = op_info_by_legacy(j->desc->type, &map);
	const char *var = !info || passes_on(j->desc->type) ? NULL : mixed_input(j, &mark);
	if (!var)
		return false;
	const char *out = output_var(j, "Out");
	switch (info->code) {
	case OP_PD_ASSIGN:
		*ok = out && array_share(j, out, var);
		if (*ok)
			write_var(j, out, mark);
		break;
	case OP_PD_ARRAY_READ:
	case OP_PD_ARRAY_SLICE:
	case OP_PD_SLICE:
	case OP_PD_ARRAY_LENGTH:
		*ok = for_each_part(j, index, var, mark, info->code == OP_PD_ARRAY_LENGTH);
		break;
	default: *ok = job_fail(j, "array '%s' has elements of several types: not supported here", var);
	}
	return true;
}
