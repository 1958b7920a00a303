// Operators of element by element (steps.h): operands aligned at `axis`, element types that go
// together, and what stands beside the operation.
#include "frontend/translate/steps.h"
#include "frontend/job/general.h"
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"

#include <math.h>

// Legacy operators lay the smaller operand over the larger from axis `axis` on; -1 aligns the last
// axes, as broadcasting does. Axes of size 1 behind make the two the same.
static Value *align(OpJob *j, Value *small, int rank, int64_t axis)
{
	Context *c = j->t->c;
	const Type *type = small->type;
	int keep = type->rank;
	if (axis < 0 || axis > rank) {
		job_fail(j, "attribute 'axis' is %lld; it must be -1, or from 0 to %d", (long long)axis,
		         rank);
		return NULL;
	}
	// Old programs leave axes of size 1 behind that reach over the end.
	while (keep > 0 && axis + keep > rank && dim_is(type->dims[keep - 1], 1))
		keep--;
	if (axis + keep > rank) {
		job_fail(j, "an operand of %d axes does not fit into one of %d from axis %lld on", keep,
		         rank, (long long)axis);
		return NULL;
	}
	const Dim *dims[MAX_RANK];
	int n = 0;
	for (; n < keep; n++)
		dims[n] = type->dims[n];
	for (; axis + n < rank; n++)
		dims[n] = dim_const(c, 1);
	if (n == type->rank)
		return small;
	return build1(&j->b, OP_PD_RESHAPE, small, "shape", attr_dims(c, n, dims), NULL);
}

// The real one of a real and a complex operand becomes complex: of doubles where either is.
static bool complex_inputs(OpJob *j)
{
	static const char *const names[] = {"x", "y"};
	Value *v[] = {job_operand(j, "x"), job_operand(j, "y")};
	if (!type_is_tensor(v[0]->type) || !type_is_tensor(v[1]->type) ||
	    dtype_is_complex(v[0]->type->dtype) == dtype_is_complex(v[1]->type->dtype))
		return true;
	const bool wide = v[0]->type->dtype == DT_C128 || v[1]->type->dtype == DT_C128 ||
	                  v[0]->type->dtype == DT_F64 || v[1]->type->dtype == DT_F64;
	const DType to = wide ? DT_C128 : DT_C64;
	for (int i = 0; i < 2; i++) {
		const DType from = v[i]->type->dtype;
		if (from == to || (from != DT_F32 && from != DT_F64 && from != DT_C64))
			continue;
		v[i] = tensor_cast(&j->b, v[i], to);
		job_set_operand(j, names[i], v[i]);
		if (!v[i])
			return false;
	}
	return true;
}

bool elementwise_inputs(OpJob *j)
{
	if (!general_inputs(j) || !complex_inputs(j))
		return false;
	Value *x = job_operand(j, "x"), *y = job_operand(j, "y");
	const Paddle__OpAttr *a = attr_find(j->desc, "axis");
	int64_t axis = -1;
	if (a && !attr_int_at(a, 0, &axis))
		return job_fail(j, "attribute 'axis' is no integer");
	if (!type_is_tensor(x->type) || !type_is_tensor(y->type) || axis == -1 ||
	    x->type->rank == y->type->rank)
		return true;
	bool swap = x->type->rank < y->type->rank;
	Value *small = swap ? x : y, *large = swap ? y : x;
	if (small->type->rank == 0)
		return true;
	small = align(j, small, large->type->rank, axis);
	job_set_operand(j, swap ? "x" : "y", small);
	return small != NULL;
}

static bool whole_cast(OpJob *j, const char *name, DType as)
{
	Value *x = job_operand(j, name);
	if (!type_is_tensor(x->type) || dtype_is_float(x->type->dtype) ||
	    dtype_is_complex(x->type->dtype) || x->type->dtype == DT_BOOL)
		return true;
	x = tensor_cast(&j->b, x, as);
	job_set_operand(j, name, x);
	return x != NULL;
}

// Functions of floats that take whole numbers as f32.
bool of_whole_inputs(OpJob *j)
{
	return general_inputs(j) && whole_cast(j, "x", DT_F32);
}

// The angle of a point, whose whole coordinates count as f64.
bool angle_inputs(OpJob *j)
{
	return general_inputs(j) && whole_cast(j, "x", DT_F64) && whole_cast(j, "y", DT_F64);
}

// Paddle 3's larger and smaller: NaN when either is; the operation gives y then.
bool keep_nan_create(OpJob *j)
{
	if (!general_create(j) || !dtype_is_float(op_result(j->op, 0)->type->dtype))
		return j->op != NULL;
	Value *x = op_operand(j->op, 0), *nan = build1(&j->b, OP_PD_ISNAN, x, NULL);
	Value *const operands[] = {nan, x, op_result(j->op, 0)};
	Value *out = nan ? build(&j->b, OP_PD_WHERE, 3, operands, NULL) : NULL;
	j->op = out ? out->def : NULL;
	return out != NULL;
}

// Whole numbers that differ are further apart than what Paddle takes for equal.
static bool gives_whole(const Value *v)
{
	const Op *op = v->def;
	while (op && (op->code == OP_PD_EXPAND || op->code == OP_PD_RESHAPE))
		op = op_operand(op, 0)->def;
	if (op && op->code == OP_PD_CAST)
		return !dtype_is_float(op_operand(op, 0)->type->dtype) &&
		       !dtype_is_complex(op_operand(op, 0)->type->dtype);
	const double n = op && op->code == OP_PD_FULL ? op_float(op, "value", 0.5) : 0.5;
	return n == floor(n);
}

// Paddle's kernels take floats for equal that are less than 1e-8 apart, since Paddle 3 1e-15, and
// complex numbers, too.
bool equal_create(OpJob *j)
{
	const DType t = j->operands[0]->type->dtype;
	const bool near = t == DT_F32 || t == DT_F64 || (is_pir(j->desc) && dtype_is_complex(t));
	if (!near || t != j->operands[1]->type->dtype ||
	    (gives_whole(j->operands[0]) && gives_whole(j->operands[1])))
		return general_create(j);
	const NamedAttr tolerance = {"tolerance", attr_float(j->t->c, is_pir(j->desc) ? 1e-15 : 1e-8)};
	j->op = build_op(&j->b, OP_PD_EQUAL_NEAR, 2, j->operands, 1, &tolerance);
	if (j->op && j->info->code == OP_PD_NOT_EQUAL) {
		Value *differ = build1(&j->b, OP_PD_LOGICAL_NOT, op_result(j->op, 0), NULL);
		j->op = differ ? differ->def : NULL;
	}
	return j->op != NULL;
}

// Operators whose kernels read their operands side by side: nothing is stretched, so that sizes
// which differ are an error, where the common broadcast would give another result than Paddle.
bool equal_sizes_create(OpJob *j)
{
	const int mark = dim_check_count(j->t->c);
	if (!general_create(j))
		return false;
	const Value *first = j->operands[0];
	for (int i = 1; i < j->info->noperand; i++) {
		const Value *v = j->operands[i];
		if (v->type->rank != first->type->rank)
			return job_fail(j, "operands of %d and of %d axes, which must have the same sizes",
			                first->type->rank, v->type->rank);
		if (!infer_same_dims(j->op, 0, first->type, v->type, "sizes of the operands"))
			return false;
	}
	return check_equal_sizes(j->op, mark);
}

// Paddle divides bools as whole numbers: by true they stay, by false, as by 0, the run fails.
bool legacy_divide_create(OpJob *j)
{
	static const char *const names[] = {"x", "y"};
	for (int i = 0; i < 2; i++)
		if (!type_is_tensor(j->operands[i]->type) || j->operands[i]->type->dtype != DT_BOOL)
			return general_create(j);
	for (int i = 0; i < 2; i++) {
		Value *whole = tensor_cast(&j->b, j->operands[i], DT_I32);
		if (!whole)
			return false;
		job_set_operand(j, names[i], whole);
	}
	Value *out = general_create(j) ? tensor_cast(&j->b, op_result(j->op, 0), DT_BOOL) : NULL;
	j->op = out ? out->def : NULL;
	return out != NULL;
}

// At level 0 a run with numbers that are none fails.
bool check_numerics_create(OpJob *j)
{
	const Paddle__OpAttr *a = attr_find(j->desc, "check_nan_inf_level");
	const int64_t axis = 0;
	int64_t level = 0;
	if (!general_create(j))
		return false;
	if (a && !attr_int_at(a, 0, &level))
		return job_fail(j, "attribute 'check_nan_inf_level' is no integer");
	if (level > 0)
		return true;
	Builder *b = &j->b;
	Value *wrong = tensor_cut(b, op_result(j->op, 0), 0, 0, 2);
	wrong = wrong ? tensor_reduce(b, OP_PD_SUM, wrong, 1, &axis) : NULL;
	return wrong && build_assert(b, apply2(b, OP_PD_EQUAL, wrong, tensor_number(b, DT_I64, 0)),
	                             "check_numerics: there are NaN or infinities");
}
