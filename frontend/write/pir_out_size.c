// Sizes that a run finds, as values: axes of tensors (shape64 and slice) and arithmetic on them,
// each once where it is needed. And the constants that stand in for attributes.
#include "frontend/write/pir_out.h"
#include "ir/base/vec.h"

#include <string.h>

// ---- constants ----------------------------------------------------------------------------------

int64_t out_full(PirWriter *w, int rank, DType t, const Attr *value)
{
	const int64_t ones[] = {1};
	OutOp *o = out_new(w, "1.full", 0, 1);
	out_attr_ints(o, "shape", PIR_INTARRAY, rank, ones);
	out_attr(o, "value", PIR_SCALAR_F64, value);
	out_attr_dtype(o, "dtype", attr_dtype(w->c, t));
	out_attr_place(o, "place");
	o->out[0].type = out_tensor(w, t, rank, ones);
	return out_op(w, o);
}

static int64_t number(PirWriter *w, int64_t v)
{
	return out_full(w, 0, DT_I64, attr_int(w->c, v));
}

int64_t out_int_array(PirWriter *w, int n, const int64_t *v)
{
	const int64_t length[] = {n};
	OutOp *o = out_new(w, "1.full_int_array", 0, 1);
	out_attr_ints(o, "value", PIR_I64S, n, v);
	out_attr_dtype(o, "dtype", attr_dtype(w->c, DT_I64));
	out_attr_place(o, "place");
	o->out[0].type = out_tensor(w, DT_I64, 1, length);
	return out_op(w, o);
}

// ---- arithmetic ---------------------------------------------------------------------------------

static int64_t tensor_op(PirWriter *w, const char *name, int nin, const int64_t *in, DType t)
{
	OutOp *o = out_new(w, name, nin, 1);
	memcpy(o->in, in, (size_t)nin * sizeof *in);
	o->out[0].type = out_tensor(w, t, 0, NULL);
	return out_op(w, o);
}

// Element i of a vector of n, as an i64 of rank 0.
static int64_t element(PirWriter *w, int64_t vector, int64_t i, DType t)
{
	const int64_t in[] = {vector, out_int_array(w, 1, &i), out_int_array(w, 1, &(int64_t){i + 1})};
	const int64_t axis = 0;
	OutOp *o = out_new(w, "1.slice", 3, 1);
	memcpy(o->in, in, sizeof in);
	out_attr_ints(o, "axes", PIR_I64S, 1, &axis);
	out_attr_ints(o, "infer_flags", PIR_I64S, 0, NULL);
	out_attr_ints(o, "decrease_axis", PIR_I64S, 1, &axis);
	o->out[0].type = out_tensor(w, t, 0, NULL);
	return out_op(w, o);
}

static int64_t to_i64(PirWriter *w, int64_t v)
{
	OutOp *o = out_new(w, "1.cast", 1, 1);
	o->in[0] = v;
	out_attr_dtype(o, "dtype", attr_dtype(w->c, DT_I64));
	o->out[0].type = out_tensor(w, DT_I64, 0, NULL);
	return out_op(w, o);
}

static int64_t in_shape(PirWriter *w, int64_t x, int n, const int64_t *shape, DType t)
{
	OutOp *o = out_new(w, "1.reshape", 2, 1);
	o->in[1] = out_int_array(w, n, shape);
	o->in[0] = x;
	o->out[0].type = out_tensor(w, t, n, shape);
	return out_op(w, o);
}

static int64_t from_source(PirWriter *w, const SizeSource *s)
{
	const int64_t any = -1, rank = s->rank;
	if (!s->data) {
		OutOp *o = out_new(w, "1.shape64", 1, 1);
		o->in[0] = s->value;
		o->out[0].type = out_tensor(w, DT_I64, 1, &rank);
		return element(w, out_op(w, o), s->axis, DT_I64);
	}
	int64_t v = s->value;
	if (s->rank > 1)
		v = in_shape(w, v, 1, &any, s->dtype);
	if (s->rank > 0)
		v = element(w, v, s->axis, s->dtype);
	return s->dtype == DT_I64 ? v : to_i64(w, v);
}

static int64_t symbol(PirWriter *w, const Dim *d)
{
	for (int i = 0; i < w->nsource; i++)
		if (w->sources[i].sym == d) {
			const SizeSource s = w->sources[i];
			return from_source(w, &s);
		}
	out_fail(w, "no value tells the size %s", dim_text(w->c, d));
	return 0;
}

// The other one where one is 1.
static int64_t broadcast(PirWriter *w, int64_t a, int64_t b)
{
	const int64_t sides[] = {a, number(w, 1)};
	const int64_t in[] = {tensor_op(w, "1.equal", 2, sides, DT_BOOL), b, a};
	return tensor_op(w, "1.where", 3, in, DT_I64);
}

static int64_t computed(PirWriter *w, const Dim *d)
{
	static const char *const names[] = {
		[DIM_ADD] = "1.add",       [DIM_MUL] = "1.multiply", [DIM_DIV] = "1.floor_divide",
		[DIM_MOD] = "1.remainder", [DIM_MAX] = "1.maximum",  [DIM_MIN] = "1.minimum"};
	if (d->kind == DIM_CONST)
		return number(w, d->value);
	if (d->kind == DIM_SYM)
		return symbol(w, d);
	const int64_t a = out_size(w, d->a), b = out_size(w, d->b);
	if (!a || !b)
		return 0;
	const int64_t in[] = {a, b};
	return d->kind == DIM_BROADCAST ? broadcast(w, a, b)
	                                : tensor_op(w, names[d->kind], 2, in, DT_I64);
}

int64_t out_size(PirWriter *w, const Dim *d)
{
	for (int i = 0; i < w->nsize; i++)
		if (w->sizes[i].dim == d)
			return w->sizes[i].value;
	const int64_t v = computed(w, d);
	VEC_ROOM(w->c->arena, w->sizes, w->nsize, w->csize);
	w->sizes[w->nsize++] = (SizeValue){d, v};
	return v;
}

// ---- lists --------------------------------------------------------------------------------------

// Numbers of tensors of rank 0 (stacked), or of one axis (one after the other), as one tensor.
static int64_t join(PirWriter *w, int n, const int64_t *numbers, const Type *const *types)
{
	const bool flat = types[0]->rank > 0;
	const int64_t length = flat ? -1 : n;
	OutOp *vec = out_new(w, "0.combine", n, 1);
	memcpy(vec->in, numbers, (size_t)n * sizeof *numbers);
	vec->out[0].type = type_group(w->c, TY_VEC, n, types);
	const int64_t list = out_op(w, vec);
	OutOp *o = out_new(w, flat ? "1.concat" : "1.stack", flat ? 2 : 1, 1);
	if (flat)
		o->in[1] = out_full(w, 1, DT_I32, attr_int(w->c, 0));
	else
		out_attr_int(o, "axis", PIR_I32, 0);
	o->in[0] = list;
	o->out[0].type = out_tensor(w, types[0]->dtype, 1, &length);
	return out_op(w, o);
}

int64_t out_sizes(PirWriter *w, int n, const Dim *const *dims)
{
	int64_t *numbers = NEW_ARRAY(w->c->arena, (size_t)n + 1, int64_t);
	const Type **types = NEW_ARRAY(w->c->arena, (size_t)n + 1, const Type *);
	for (int i = 0; i < n; i++) {
		if (!(numbers[i] = out_size(w, dims[i])))
			return 0;
		types[i] = out_tensor(w, DT_I64, 0, NULL);
	}
	return join(w, n, numbers, types);
}

int64_t out_gathered(PirWriter *w, const Value *vec)
{
	const Op *list = vec->def && vec->def->code == OP_BUILTIN_COMBINE ? vec->def : NULL;
	if (!list || !list->noperand) {
		out_fail(w, "a list of sizes is no list of tensors");
		return 0;
	}
	int64_t *numbers = NEW_ARRAY(w->c->arena, (size_t)list->noperand, int64_t);
	for (int i = 0; i < list->noperand; i++) {
		const Type *t = op_operand(list, i)->type, *first = op_operand(list, 0)->type;
		numbers[i] = out_number(w, op_operand(list, i));
		if (t->rank > 1 || t->rank != first->rank || t->dtype != first->dtype) {
			out_fail(w, "a list of sizes holds %s and %s", type_text(w->c, first),
			         type_text(w->c, t));
			return 0;
		}
	}
	return join(w, list->noperand, numbers, vec->type->elems);
}
