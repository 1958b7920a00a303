// What branches leave: select_input, which picks one of several variables by a mask, and
// select_output, which gives a value to one of them. A mask that is the condition of a pd.if makes
// the variables its results; any other one makes branches of its own. Also the operators whose
// results have another number of axes where a run finds another size: a branch for each.
#include "frontend/control/control.h"
#include "frontend/job/array_types.h"
#include "frontend/job/general.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/build/build.h"
#include "ir/build/counted.h"
#include "ir/build/nest.h"

#include <string.h>

// Truth of an integer mask.
static Value *as_bool(OpJob *j, Value *v)
{
	if (v->type->dtype == DT_BOOL)
		return v;
	return build1(&j->b, OP_PD_CAST, v, "dtype", attr_dtype(j->t->c, DT_BOOL), NULL);
}

// ---- select_input -----------------------------------------------------------------------------

typedef struct Select {
	const char *out;
	const Paddle__OpSlot *x;
	Value *mask;
	const Value *pred;
	bool negated;
} Select;

// Which variable a mask picks that the program tells; -1: only a run tells.
static int64_t known_mask(OpJob *j, const Value *mask)
{
	NumberList l = {0};
	return numbers_of_value(j->t->c, mask, &l) && l.n == 1 && l.whole[0] ? l.ints[0] : -1;
}

// The pd.if that the variables, or others on this mask, depend on.
static OpenIf *find_if(OpJob *j, const Select *s)
{
	for (size_t k = 0; k < s->x->n_arguments; k++) {
		const Binding *b = scope_find(j->t, s->x->arguments[k]);
		if (b && b->guard && b->guard->i->pred == s->pred)
			return b->guard->i;
	}
	OpenIf *i = j->t->ifs;
	while (i && i->pred != s->pred)
		i = i->next;
	return i;
}

// What variable k of the select holds in a region of the pd.if.
static bool side_of(OpJob *j, const Select *s, int k, const OpenIf *i, int region, Value **out)
{
	const char *var = s->x->arguments[k];
	const Binding *b = scope_find(j->t, var);
	if (b && b->guard && b->guard->i == i) {
		*out = guard_side(b->guard, region);
		return true;
	}
	*out = read_any(j, "X", var);
	return *out != NULL;
}

// Of two, as a result of the pd.if that made them; *out stays NULL when there is none that can.
static bool select_branches(OpJob *j, const Select *s, Value **out)
{
	OpenIf *i = find_if(j, s);
	Value *sides[2];
	*out = NULL;
	if (!i)
		return true;
	int yes = i->negated != s->negated;
	if (!side_of(j, s, 1, i, yes, &sides[yes]) || !side_of(j, s, 0, i, !yes, &sides[!yes]))
		return false;
	if (!sides[0] && !sides[1])
		return job_fail(j, "nothing has written variable '%s'", s->x->arguments[0]);
	if (sides[0] == sides[1]) {
		*out = sides[0];
		return true;
	}
	return if_result(j, i, sides, s->out, out);
}

static Value *mask_is(OpJob *j, Value *mask, int64_t k)
{
	Value *number = build_full(&j->b, mask->type, (double)k);
	return build2(&j->b, OP_PD_EQUAL, mask, number, NULL);
}

// A mask that is no condition may have any value.
static bool check_mask(OpJob *j, Value *mask, size_t n)
{
	Value *end = build_full(&j->b, mask->type, (double)n), *zero = build_full(&j->b, mask->type, 0);
	Value *below = build2(&j->b, OP_PD_LESS_THAN, mask, end, NULL);
	Value *above = build2(&j->b, OP_PD_GREATER_EQUAL, mask, zero, NULL);
	Value *both = below && above ? build2(&j->b, OP_PD_LOGICAL_AND, below, above, NULL) : NULL;
	return build_assert(&j->b, both, "the mask picks a variable that is not there");
}

// Of values that are all there.
static Value *select_values(OpJob *j, const Select *s)
{
	size_t n = s->x->n_arguments;
	Value *v = read_any(j, "X", s->x->arguments[n - 1]);
	for (size_t k = n - 1; v && k-- > 0;) {
		Value *x = read_any(j, "X", s->x->arguments[k]);
		Value *pred = !x ? NULL : n == 2 ? as_bool(j, s->mask) : mask_is(j, s->mask, (int64_t)k);
		if (!pred)
			return NULL;
		v = n == 2 ? build_choice(j, pred, v, x, s->out) : build_choice(j, pred, x, v, s->out);
	}
	return v;
}

static Value *read_mask(OpJob *j, const char *var)
{
	Value *mask = read_var(j, "Mask", var);
	return mask ? single_element(j, mask, "Mask") : NULL;
}

// The value that is picked; NULL after a diagnostic.
static Value *select_value(OpJob *j, Select *s)
{
	const int64_t k = known_mask(j, s->mask), n = (int64_t)s->x->n_arguments;
	Value *v = NULL;
	if (k >= n) {
		job_fail(j, "the mask is %lld, and there are %lld variables", (long long)k, (long long)n);
		return NULL;
	}
	// A known mask may still pick what only a branch has.
	const Binding *picked = k < 0 ? NULL : scope_find(j->t, s->x->arguments[k]);
	if (k >= 0 && (!picked || !picked->guard))
		return read_any(j, "X", s->x->arguments[k]);
	if (s->pred->type->dtype != DT_BOOL && !check_mask(j, s->mask, s->x->n_arguments))
		return NULL;
	if (n == 2 && !select_branches(j, s, &v))
		return NULL;
	return v ? v : select_values(j, s);
}

bool select_input_translate(OpJob *j)
{
	const char *mask = input_var(j, "Mask");
	Select s = {.x = slot_find(j->desc->n_inputs, j->desc->inputs, "X"),
	            .out = output_var(j, "Out")};
	if (!mask || !s.x || !s.x->n_arguments || !s.out)
		return job_fail(j, "needs variables in Mask, X and Out");
	for (size_t k = 0; k < s.x->n_arguments; k++)
		if (!array_share(j, s.out, s.x->arguments[k]))
			return false;
	if (j->t->stale || !(s.mask = read_mask(j, mask)))
		return false;
	if (dtype_is_float(s.mask->type->dtype))
		return job_fail(j, "input Mask must be an integer, not %s",
		                dtype_name(s.mask->type->dtype));
	s.pred = condition_strip(s.mask, &s.negated);
	Value *v = select_value(j, &s);
	if (v && (v->type->kind == TY_ARRAY || is_mixed(v)))
		return array_assign(j, s.out, v);
	if (v)
		write_var(j, s.out, v);
	return v != NULL;
}

// ---- select_output ----------------------------------------------------------------------------

// An output that is not picked keeps what it holds. One that holds nothing may as well get the
// value.
static bool output_choose(OpJob *j, Value *v, Value *mask, size_t k, const char *var)
{
	const Binding *b = write_binding(j->t, var);
	if (!b)
		return true;
	Value *old = b->value || b->guard ? read_var(j, "Out", var) : v;
	Value *pred = old == v ? NULL : mask_is(j, mask, (int64_t)k);
	if (old != v && !(old && pred && (old = build_choice(j, pred, v, old, var))))
		return false;
	write_var(j, var, old);
	return true;
}

bool select_output_translate(OpJob *j)
{
	const char *x = input_var(j, "X");
	const char *m = input_var(j, "Mask");
	const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs, "Out");
	if (!x || !m || !out || !out->n_arguments)
		return job_fail(j, "needs variables in X, Mask and Out");
	Value *v = read_var(j, "X", x), *mask = v ? read_mask(j, m) : NULL;
	if (!mask)
		return false;
	bool negated;
	const bool asks = out->n_arguments > 1 &&
	                  condition_strip(mask, &negated)->type->dtype == DT_BOOL;
	if (!asks && mask->type->dtype != DT_BOOL && !check_mask(j, mask, out->n_arguments))
		return false;
	for (size_t k = 0; k < out->n_arguments; k++)
		if (slot_var(out, k) && !output_choose(j, v, mask, k, slot_var(out, k)))
			return false;
	return true;
}

// ---- numbers of axes that sizes decide ----------------------------------------------------------

enum { MAX_OPEN_AXES = 3 }; // the branches double with each

// What an operator gives: `here` says whether the size that it looked at is the one in question.
typedef Value *SizeCase(OpJob *j, Value *x, int at, bool here);

// The size of an axis is `n`, or not: the result is the one or the other, of whatever types.
static Value *by_size(OpJob *j, Value *sized, int axis, int64_t n, SizeCase *make, Value *x, int at)
{
	Translator *t = j->t;
	Value *number = build_number(&j->b, DT_I64, 1, n);
	Value *is = build2(&j->b, OP_PD_EQUAL, build_size(&j->b, sized, axis), number, NULL);
	if (!is)
		return NULL;
	OpenIf *i = if_open(j, is, 2 + MAX_LOD + MAX_VARIANTS), *ifs = t->ifs;
	Block *block = t->block;
	Op *top = t->top;
	Value *sides[2];
	for (int k = 0; k < 2; k++) {
		OpJob in = *j;
		t->block = region_entry(&i->op->regions[k]);
		Op *yield = block_terminator(t->block);
		op_detach(yield);
		t->ifs = NULL;
		t->top = top ? top : i->op;
		in.b = builder_at_end(t->c, t->block, j->b.loc);
		sides[k] = make(&in, x, at, k == 0);
		op_append(t->block, yield);
		t->block = block;
		t->top = top;
		t->ifs = ifs;
	}
	const char *var = job_output(j, 0, 0);
	var = arena_printf(t->c->arena, "%s.by%d", var ? var : j->desc->type, at); // sizes of its own
	return sides[0] && sides[1] ? if_join(j, i, sides, var) : NULL;
}

static Value *without_axis(OpJob *j, Value *x, int axis)
{
	const int64_t at = axis;
	return build1(&j->b, j->info->code, x, "axis", attr_ints(j->t->c, 1, &at), NULL);
}

static Value *squeeze_from(OpJob *j, Value *x, int axis);

// x without an axis that has one element in such a run.
static Value *only_element(OpJob *j, Value *x, int axis)
{
	const Dim *dims[MAX_RANK];
	int n = 0;
	for (int d = 0; d < x->type->rank; d++)
		if (d != axis)
			dims[n++] = x->type->dims[d];
	return build1(&j->b, OP_PD_RESHAPE, x, "shape", attr_dims(j->t->c, n, dims), NULL);
}

static Value *squeeze_case(OpJob *j, Value *x, int axis, bool here)
{
	x = here ? only_element(j, x, axis) : x;
	return x ? squeeze_from(j, x, axis - 1) : NULL;
}

// x without its axes of size 1 up to this one.
static Value *squeeze_from(OpJob *j, Value *x, int axis)
{
	for (; x && axis >= 0 && dim_is_const(x->type->dims[axis]); axis--)
		if (dim_is(x->type->dims[axis], 1))
			x = without_axis(j, x, axis);
	return x && axis >= 0 ? by_size(j, x, axis, 1, squeeze_case, x, axis) : x;
}

// Gradients and sequences know one number of axes: infer_hook_squeeze ends the other runs.
bool squeeze_create(OpJob *j)
{
	Value *x = job_operand(j, "x");
	const Attr *axis = job_attr(j, "axis");
	int open = 0;
	if (!type_is_tensor(x->type) || job_operand(j, "axis_tensor") || (axis && axis->n > 0) ||
	    j->t->graded || lod_of(j->t, x))
		return general_create(j);
	for (int d = 0; d < x->type->rank; d++)
		open += !dim_is_const(x->type->dims[d]);
	if (!open || open > MAX_OPEN_AXES)
		return general_create(j);
	j->results = NEW(j->t->c->arena, Value *);
	j->results[0] = squeeze_from(j, x, x->type->rank - 1);
	return j->results[0] != NULL;
}

static Value *gather_by(OpJob *j, Value *index, int width)
{
	Context *c = j->t->c;
	const Dim *dims[MAX_RANK];
	const int rank = index->type->rank;
	for (int d = 0; d < rank; d++)
		dims[d] = d + 1 < rank ? index->type->dims[d] : dim_const(c, width);
	Value *known = build1(&j->b, OP_PD_RESHAPE, index, "shape", attr_dims(c, rank, dims), NULL);
	return known ? build2(&j->b, j->info->code, job_operand(j, "x"), known, NULL) : NULL;
}

// Positions of `width` numbers, or of fewer; a run with others ends.
static Value *gather_case(OpJob *j, Value *index, int width, bool here)
{
	if (here)
		return gather_by(j, index, width);
	if (width > 1)
		return by_size(j, index, index->type->rank - 1, width - 1, gather_case, index, width - 1);
	if (!assert_never(&j->b, "the last axis of Index is longer than X has axes"))
		return NULL;
	return gather_by(j, index, 1);
}

bool gather_nd_create(OpJob *j)
{
	Value *x = job_operand(j, "x"), *index = job_operand(j, "index");
	const Type *of = index->type;
	if (!type_is_tensor(x->type) || !type_is_tensor(of) || !of->rank || !x->type->rank ||
	    dim_is_const(of->dims[of->rank - 1]) || j->t->graded)
		return general_create(j);
	const int width = x->type->rank;
	j->results = NEW(j->t->c->arena, Value *);
	j->results[0] = by_size(j, index, of->rank - 1, width, gather_case, index, width);
	return j->results[0] != NULL;
}

// The result may be of several types.
bool varying_record(OpJob *j)
{
	const char *var = job_output(j, 0, 0);
	if (!j->results)
		return general_record(j);
	if (var)
		write_var(j, var, j->results[0]);
	return true;
}
