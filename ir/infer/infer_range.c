// Types of arange and linspace: how many numbers there are is known, follows from sizes, or is
// counted by the run.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"

// The number that an operator fills its result with; false: it does not, or a run gives it.
static bool filled_with(const Op *def, double *out)
{
	if (def->code == OP_PD_FULL && !op_operand_named(def, "value_tensor")) {
		*out = op_number(def, "value");
		return true;
	}
	const Attr *list = def->code == OP_PD_ASSIGN_VALUE ? op_attr(def, "values") : NULL;
	if (!list || list->n != 1)
		return false;
	*out = list->kind == ATTR_INTS ? (double)list->ints[0] : list->floats[0];
	return true;
}

bool constant_number(const Value *v, double *out)
{
	const Dim *const *known;
	if (value_known(v, &known) == 1 && dim_is_const(known[0])) {
		*out = (double)known[0]->value;
		return true;
	}
	const Op *def = v->def;
	int64_t n;
	if (!def || !type_is_tensor(v->type) || !type_const_numel(v->type, &n) || n != 1)
		return false;
	if (filled_with(def, out))
		return true;
	if (def->code == OP_PD_CAST)
		return constant_number(op_operand(def, 0), out);
	const Tensor *t = value_constant(v);
	if (!t || tensor_numel(t) != 1)
		return false;
	*out = tensor_get_f(t, 0);
	return true;
}

// The size that an integer scalar operand holds; unknown ones are bound at run time.
static const Dim *operand_size(Op *op, int i)
{
	const Dim *const *known;
	if (infer_known(op, i, &known) < 0 && !infer_bind_operand(op, i))
		return NULL;
	int n = infer_known(op, i, &known);
	if (n == 1)
		return known[0];
	op_error(op, "operand %d holds %d numbers where one is needed", i, n < 0 ? 0 : n);
	return NULL;
}

// The number of steps when all three are constants, in the type of the range: 0.3f / 0.1f is 3.
static const Dim *arange_constant(Context *c, DType t, const double *v)
{
	double n = v[2] == 0     ? 0
	           : t == DT_F32 ? ((float)v[1] - (float)v[0]) / (float)v[2]
	                         : (v[1] - v[0]) / v[2];
	int64_t whole = n >= 0 && n <= 9e15 ? (int64_t)n : 0; // 0 for what is no number, too
	return dim_const(c, whole + ((double)whole < n));
}

// Whole numbers in floats, as far as inference knows them: through a cast.
static const Dim *whole_number(const Value *v)
{
	const Dim *const *known;
	double constant;
	int64_t whole;
	if (constant_number(v, &constant))
		return number_whole(constant, &whole) ? dim_const(v->def->ctx, whole) : NULL;
	if (v->def && v->def->code == OP_PD_CAST && value_known(op_operand(v->def, 0), &known) == 1)
		return known[0];
	return value_known(v, &known) == 1 ? known[0] : NULL;
}

// Counts the steps when the program runs; a step of 0 is no size.
static const Dim *arange_count(Op *op)
{
	Value *v[3], *size;
	for (int i = 0; i < 3; i++) {
		int64_t numbers;
		if (type_const_numel(op_operand(op, i)->type, &numbers) && numbers != 1) {
			op_error(op, "operand %d holds %lld numbers where one is needed", i,
			         (long long)numbers);
			return NULL;
		}
	}
	Builder b = builder_before(op);
	Nest n = nest_open(&b, type_tensor(op->ctx, DT_I64, 0, NULL, 0));
	DType t = op_operand(op, 0)->type->dtype;
	bool whole = dtype_is_int(t);
	for (int i = 0; i < 3; i++)
		v[i] = scalar_cast(&n.b, load_scalar(&n.b, op_operand(op, i)),
		                   whole         ? DT_I64
		                   : t == DT_F64 ? DT_F64
		                                 : DT_F32);
	Value *way = apply2(&n.b, OP_PD_SUBTRACT, v[1], v[0]), *zero = build_scalar_f(&n.b, DT_I64, 0);
	if (whole) {
		Value *down = apply2(&n.b, OP_PD_LESS_THAN, v[2], zero),
			  *one = build_scalar_f(&n.b, DT_I64, 1);
		Value *by = apply2(&n.b, OP_PD_MAXIMUM,
		                   index_where(&n.b, down, apply1(&n.b, OP_PD_NEGATIVE, v[2]), v[2]), one);
		way = apply2(&n.b, OP_PD_MAXIMUM,
		             index_where(&n.b, down, apply1(&n.b, OP_PD_NEGATIVE, way), way), zero);
		size = apply2(&n.b, OP_PD_FLOOR_DIVIDE,
		              apply2(&n.b, OP_PD_ADD, way, apply2(&n.b, OP_PD_SUBTRACT, by, one)), by);
		zero = apply2(&n.b, OP_PD_EQUAL, v[2], zero);
	} else {
		Value *none = build_scalar_f(&n.b, v[2]->type->dtype, 0);
		Value *steps = apply1(&n.b, OP_PD_CEIL, apply2(&n.b, OP_PD_DIVIDE, way, v[2]));
		size = scalar_cast(&n.b, apply2(&n.b, OP_PD_MAXIMUM, steps, none), DT_I64);
		zero = apply2(&n.b, OP_PD_EQUAL, v[2], none);
	}
	Value *count = nest_close(&n, index_where(&n.b, zero, build_scalar_f(&n.b, DT_I64, -1), size));
	const Dim *sym = infer_found_size(op, NULL);
	const NamedAttr dims = {"dims", attr_dims(op->ctx, 1, &sym)};
	return count && build_op(&b, OP_LOOP_BIND, 1, &count, 1, &dims) ? sym : NULL;
}

static bool is_positive(const Dim *d, int64_t least)
{
	return d && dim_is_const(d) && d->value >= least;
}

// From start to end in steps of a constant that is not 0.
static const Dim *steps_between(Context *c, const Dim *start, const Dim *end, int64_t by)
{
	const Dim *way = by > 0 ? dim_sub(c, end, start) : dim_sub(c, start, end);
	by = by < 0 ? -by : by;
	way = dim_max(c, way, dim_const(c, 0));
	return dim_div(c, dim_add(c, way, dim_const(c, by - 1)), dim_const(c, by));
}

// The number of steps from start to end, as Paddle counts it: ceil(|end - start| / |step|).
static const Dim *arange_size(Op *op, const Type *t)
{
	Context *c = op->ctx;
	double v[3];
	bool constant = true, is_float = dtype_is_float(t->dtype);
	for (int i = 0; i < 3; i++)
		constant &= constant_number(op_operand(op, i), &v[i]);
	if (constant)
		return arange_constant(c, t->dtype, v);
	const Dim *start = whole_number(op_operand(op, 0)), *end = whole_number(op_operand(op, 1));
	const Dim *step = whole_number(op_operand(op, 2));
	const bool upwards = is_positive(start, 0) && is_positive(step, 1);
	if (!end && upwards && !is_float && !(end = operand_size(op, 1)))
		return NULL; // other ranges to the same end are as long
	if (!start || !end || !step || !dim_is_const(step) || !step->value || step->value == INT64_MIN)
		return arange_count(op);
	return steps_between(c, start, end, step->value);
}

bool infer_hook_arange(Op *op)
{
	Context *c = op->ctx;
	const Type *start = infer_tensor(op, 0);
	const Dim *known[MAX_KNOWN], *const *first, *const *step;
	if (!start || !infer_tensor(op, 1) || !infer_tensor(op, 2))
		return false;
	const Dim *size = arange_size(op, start);
	if (!size)
		return false;
	bool whole = dtype_is_int(start->dtype) && dim_is_const(size) && size->value <= MAX_KNOWN;
	if (whole && infer_known(op, 0, &first) == 1 && infer_known(op, 2, &step) == 1) {
		for (int i = 0; i < size->value; i++)
			known[i] = dim_add(c, first[0], dim_mul(c, dim_const(c, i), step[0]));
		infer_set_known(op, 0, (int)size->value, known);
	}
	return infer_result_shape(op, 0, start->dtype, 1, &size);
}

bool infer_hook_linspace(Op *op)
{
	if (!infer_tensor(op, 0) || !infer_tensor(op, 1) || !infer_tensor(op, 2))
		return false;
	const Dim *num = operand_size(op, 2);
	if (!num)
		return false;
	return infer_result_shape(op, 0, op_dtype(op, "dtype", DT_F32), 1, &num);
}
