// Operators whose translation needs more than their table entry says: overrides of single steps, by
// the `hook:` of the entry. Used by translate.c.
#include "frontend/translate/steps.h"
#include "frontend/control/control.h"
#include "frontend/job/array_types.h"
#include "frontend/job/general.h"
#include "frontend/job/lod.h"
#include "frontend/translate/versions.h"
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"

#include <math.h>
#include <string.h>

// ---- assign: another name for a value -------------------------------------------------------

bool assign_create(OpJob *j)
{
	j->op = NULL;
	return true;
}

bool assign_record(OpJob *j)
{
	const char *out = job_output(j, 0, 0);
	Value *v = j->operands[0];
	if (!out || !v)
		return true;
	if (v->type->kind == TY_ARRAY) {
		const char *from = input_var(j, "X");
		return (!from || array_share(j, out, from)) && array_assign(j, out, v);
	}
	write_var(j, out, v);
	return true;
}

// ---- assign_value: a constant ---------------------------------------------------------------

// The values stand in the attribute of their type; newer programs have one for all types.
static const Paddle__OpAttr *assigned_values(const OpJob *j)
{
	static const char *const names[] = {"values",      "value",        "fp32_values",
	                                    "fp64_values", "int32_values", "int64_values",
	                                    "bool_values", "int8_values"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const Paddle__OpAttr *a = attr_find(j->desc, names[i]);
		if (a && attr_count(a) > 0)
			return a;
	}
	return NULL;
}

static Tensor *assigned_tensor(OpJob *j)
{
	const Attr *shape = job_attr(j, "shape"), *dtype = job_attr(j, "dtype");
	const Paddle__OpAttr *values = assigned_values(j);
	int64_t n = values ? attr_count(values) : 0, v;
	double f;
	uint64_t bytes;
	if (!shape || !dtype || shape->n > MAX_RANK ||
	    !dims_bytes((DType)dtype->i, shape->n, shape->ints, &bytes)) {
		job_fail(j, "its shape is too large, or has negative sizes");
		return NULL;
	}
	// Before memory is asked for: the shape may claim anything.
	int64_t claimed = (int64_t)(bytes / dtype_size((DType)dtype->i));
	if (claimed != n) {
		job_fail(j, "%lld values for %lld elements", (long long)n, (long long)claimed);
		return NULL;
	}
	Tensor *t = tensor_new(j->t->c->arena, (DType)dtype->i, shape->n, shape->ints);
	if (!t)
		return NULL;
	for (int i = 0; i < n; i++) {
		if (!dtype_is_float(t->dtype) && attr_int_at(values, i, &v))
			tensor_set_i(t, i, v);
		else if (attr_float_at(values, i, &f))
			tensor_set_f(t, i, f);
	}
	return t;
}

// Whether an attribute of floats would change the values: of 64-bit whole numbers.
static bool values_are_long(const OpJob *j, const Paddle__OpAttr *values)
{
	int64_t v;
	bool are = false;
	if (!j->operands[0] || !type_is_tensor(j->operands[0]->type) ||
	    j->operands[0]->type->dtype != DT_I64)
		return false;
	for (int i = 0; i < attr_count(values); i++) {
		if (!attr_int_at(values, i, &v))
			return false;
		are |= v > INT64_C(1) << 53 || v < -(INT64_C(1) << 53);
	}
	return are;
}

// A tensor for n values in the shape that the operator gives them; NULL: they do not fill it.
static Tensor *values_tensor(const OpJob *j, int n)
{
	const Paddle__OpAttr *shape = attr_find(j->desc, "shape");
	const int rank = shape && n > 1 ? attr_count(shape) : 0;
	int64_t dims[MAX_RANK], numel = 1;
	for (int d = 0; d < rank; d++)
		if (d >= MAX_RANK || !attr_int_at(shape, d, &dims[d]) || dims[d] <= 0 ||
		    __builtin_mul_overflow(numel, dims[d], &numel))
			return NULL;
	return numel == n ? tensor_new(j->t->c->arena, DT_I64, rank, dims) : NULL;
}

// Such values become the operand that stands for them otherwise.
static bool set_value_inputs(OpJob *j)
{
	const Paddle__OpAttr *values = assigned_values(j);
	int64_t v;
	if (!general_inputs(j))
		return false;
	if (!values || job_operand(j, "value") || !values_are_long(j, values))
		return true;
	const int n = attr_count(values);
	Tensor *t = values_tensor(j, n);
	if (!t)
		return job_fail(j, "%d values, which its shape does not hold", n);
	for (int i = 0; i < n && attr_int_at(values, i, &v); i++)
		tensor_set_i(t, i, v);
	job_set_operand(j, "value", build_constant(&j->b, t));
	return true;
}

// Small tensors are constants in the IR. Large ones are parameters, under a name that stays the
// same when the translation starts over.
static bool assign_value_create(OpJob *j)
{
	enum { MAX_CONSTANT = 64 };
	Context *c = j->t->c;
	Tensor *t = assigned_tensor(j);
	if (!t)
		return false;
	if (tensor_numel(t) <= MAX_CONSTANT) {
		Value *v = build_constant(&j->b, t);
		j->op = v ? value_op(v) : NULL;
		return v != NULL;
	}
	const Dim *dims[MAX_RANK];
	const char *var = j->b.loc->var ? j->b.loc->var : "constant";
	const char *name = context_str(c, arena_printf(c->arena, "%s.values", var));
	for (int i = 0; i < t->rank; i++)
		dims[i] = dim_const(c, t->dims[i]);
	const Type *type = type_tensor(c, t->dtype, t->rank, dims, 0);
	param_set(c, name, t);
	j->op = op_new(c, OP_BUILTIN_GET_PARAMETER, j->b.loc, 1, &type, 0, NULL, 0, 0);
	op_set_attr(j->op, "name", attr_str(c, name));
	op_append(j->t->block, j->op);
	return true;
}

// The same for Paddle 3's lists of integers, which have no shape beside them.
static bool int_array_create(OpJob *j)
{
	const Paddle__OpAttr *values = attr_find(j->desc, "value");
	int64_t n = values ? attr_count(values) : -1;
	if (n < 0)
		return job_fail(j, "attribute 'value' is no list of integers");
	job_set_attr(j, "shape", attr_ints(j->t->c, 1, &n));
	return assign_value_create(j);
}

// ---- arange: of an element type of its own ------------------------------------------------------

static bool arange_inputs(OpJob *j)
{
	const Paddle__OpAttr *a = attr_find(j->desc, "dtype");
	int64_t kind = -1;
	DType dtype;
	if (!general_inputs(j))
		return false;
	if (!a || (attr_int_at(a, 0, &kind) && kind < 0))
		return true;
	if (!dtype_from_kind(kind, &dtype))
		return job_fail(j, "attribute 'dtype' is no element type");
	for (int i = 0; i < j->info->noperand; i++)
		if (j->operands[i]->type->dtype != dtype &&
		    !(j->operands[i] = build1(&j->b, OP_PD_CAST, j->operands[i], "dtype",
		                              attr_dtype(j->t->c, dtype), NULL)))
			return false;
	return true;
}

// ---- sequence_mask: which positions lie below each length --------------------------------------

// A tensor of one number, as one of rank 0 and type t.
static Value *as_number(Builder *b, Value *v, DType t)
{
	Context *c = b->ctx;
	v = v ? build1(b, OP_PD_RESHAPE, v, "shape", attr_dims(c, 0, NULL), NULL) : NULL;
	return v ? build1(b, OP_PD_CAST, v, "dtype", attr_dtype(c, t), NULL) : NULL;
}

// The largest length in x, as a tensor of rank 0 and type t.
static Value *longest(Builder *b, Value *x, DType t)
{
	x = build1(b, OP_PD_MAX, x, "reduce_all", attr_bool(b->ctx, true), NULL);
	return x ? tensor_cast(b, x, t) : NULL;
}

// How long the masks are: a variable, an attribute, or the largest length. A tensor of rank 0 and
// type t.
static Value *mask_size(OpJob *j, Value *x, DType t)
{
	const char *var = input_var(j, "MaxLenTensor");
	const Paddle__OpAttr *a = attr_find(j->desc, "maxlen");
	Value *v = var ? read_var(j, "MaxLenTensor", var) : NULL;
	NumberList list = {0};
	int64_t size = -1;
	if (var && !v)
		return NULL;
	if (v && numbers_of_value(j->t->c, v, &list) && list.n == 1 && list.floats[0] <= 0)
		var = NULL; // Paddle 3 says so that there is none
	if (a && !attr_int_at(a, 0, &size)) {
		job_fail(j, "attribute 'maxlen' is no integer");
		return NULL;
	}
	if (var)
		return as_number(&j->b, v, t);
	return size > 0 ? build_number(&j->b, t, 0, size) : longest(&j->b, x, t);
}

// Which of the positions from 0 lie below each length of x.
static Value *positions_below(OpJob *j, Value *x)
{
	const int64_t last[] = {-1};
	const DType whole = dtype_is_int(x->type->dtype) ? x->type->dtype : DT_I64;
	Value *end = mask_size(j, x, whole);
	if (!end)
		return NULL;
	Value *const bounds[] = {build_number(&j->b, whole, 0, 0), end,
	                         build_number(&j->b, whole, 0, 1)};
	Value *at = build(&j->b, OP_PD_ARANGE, 3, bounds, NULL);
	at = at ? tensor_cast(&j->b, at, x->type->dtype) : NULL;
	Value *length = build1(&j->b, OP_PD_UNSQUEEZE, x, "axis", attr_ints(j->t->c, 1, last), NULL);
	return at && length ? build2(&j->b, OP_PD_LESS_THAN, at, length, NULL) : NULL;
}

static bool sequence_mask_translate(OpJob *j)
{
	const char *in = input_var(j, "X");
	const char *out = output_var(j, "Y");
	const Paddle__OpAttr *a = attr_find(j->desc, "out_dtype");
	int64_t kind = PADDLE__VAR_KIND__INT64;
	DType dtype;
	if (!in || !out)
		return job_fail(j, "needs variables in X and Y");
	if ((a && !attr_int_at(a, 0, &kind)) || !dtype_from_kind(kind, &dtype))
		return job_fail(j, "attribute 'out_dtype' is no element type");
	Value *x = read_var(j, "X", in);
	if (!x || !type_is_tensor(x->type) ||
	    (!dtype_is_int(x->type->dtype) && !dtype_is_float(x->type->dtype)))
		return x && job_fail(j, "input X must be numbers");
	Value *below = positions_below(j, x);
	Value *mask = below
	                  ? build1(&j->b, OP_PD_CAST, below, "dtype", attr_dtype(j->t->c, dtype), NULL)
	                  : NULL;
	if (mask)
		write_var(j, out, mask);
	return mask != NULL;
}

// ---- operators that do something else in training -----------------------------------------------

static bool sigmoid_cross_entropy_translate(OpJob *j)
{
	if (!input_var(j, "pos_weight"))
		return general_translate(j);
	return translate_as(j, is_pir(j->desc) ? "pd_op.sigmoid_cross_entropy_with_logits.weighted"
	                                       : "sigmoid_cross_entropy_with_logits.weighted");
}

// With decimals, 10 to the power of their number is an attribute of its own.
static bool round_translate(OpJob *j)
{
	const char *in = input_var(j, "x");
	const Value *x = in ? read_var(j, "x", in) : NULL;
	if (x && type_is_tensor(x->type) && dtype_is_int(x->type->dtype))
		return translate_as(j, "pd_op.round.whole");
	return job_number(j, "decimals", 0) ? translate_as(j, "pd_op.round.decimals")
	                                    : general_translate(j);
}

static bool dropout_translate(OpJob *j)
{
	if (job_number(j, "is_test", 0))
		return general_translate(j);
	return translate_as(j, is_pir(j->desc) ? "pd_op.dropout.training" : "dropout.training");
}

static bool batch_norm_record(OpJob *j)
{
	static const char *const outs[] = {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"};
	static const char *const attrs[] = {"momentum", "epsilon", "data_format"};
	bool test = job_number(j, "is_test", 0) && !job_number(j, "trainable_statistics", 0);
	if (!general_record(j))
		return false;
	if (test || job_number(j, "use_global_stats", 0))
		return true;
	NamedAttr list[COUNT_OF(attrs)];
	for (size_t i = 0; i < COUNT_OF(attrs); i++)
		list[i] = (NamedAttr){attrs[i], op_attr(j->op, attrs[i])};
	Op *op = build_op(&j->b, OP_PD_BATCH_NORM_STATISTICS, 3, j->operands, COUNT_OF(attrs), list);
	for (int i = 0; op && i < (int)COUNT_OF(outs); i++) {
		const char *var = output_var(j, outs[i]);
		if (var)
			write_var(j, var, op_result(op, i));
	}
	return op != NULL;
}

// Paddle's kernel reads what it has written already: inputs `in_NAME` are outputs `out_NAME`.
static bool in_place_create(OpJob *j)
{
	for (size_t s = 0; s < j->desc->n_inputs; s++) {
		const char *slot = j->desc->inputs[s]->parameter;
		if (strncmp(slot, "in_", 3) != 0)
			continue;
		const char *out = arena_printf(j->t->c->arena, "out_%s", slot + 3),
				   *from = input_var(j, slot), *to = output_var(j, out);
		if (!from || !to || strcmp(from, to) != 0)
			return job_fail(j, "output %s must be the variable of input %s", out, slot);
	}
	return general_create(j);
}

// As many pieces as there are outputs: how long the axis is, a run may tell.
static bool unbind_create(OpJob *j)
{
	const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs, "Out");
	job_set_attr(j, "num", attr_int(j->t->c, out ? (int64_t)out->n_arguments : 0));
	return general_create(j);
}

// Whether Paddle's CPU kernels, which count elements of an index over axes [from, to) as if x had
// the index's sizes there, come to other elements of x.
static bool counts_apart(const Type *x, const Type *index, int from, int to)
{
	bool behind = false;
	for (int d = from; d < to; d++) {
		if (behind && !dims_may_equal(x->dims[d], index->dims[d]))
			return true;
		behind = behind || !dim_is(index->dims[d], 1);
	}
	return false;
}

// take_along_axis, put_along_axis: elements are at the index's own positions.
static bool along_axis_record(OpJob *j)
{
	const Type *x = j->operands[0]->type, *index = j->operands[1]->type;
	if (!general_record(j))
		return false;
	const int64_t given = op_int(j->op, "axis", 0);
	if (x->rank != index->rank || given < -x->rank || given >= x->rank)
		return true;
	const int axis = (int)(given < 0 ? given + x->rank : given);
	if (counts_apart(x, index, 0, axis) || counts_apart(x, index, axis + 1, x->rank))
		diag_warning(
			j->t->c->diag, j->b.loc,
			"Paddle on a CPU goes to other elements: the index is smaller along several axes");
	return true;
}

// ---- the table ------------------------------------------------------------------------------

static const OpSteps steps_table[] = {
	{.hook = "elementwise", .inputs = elementwise_inputs},
	{.hook = "equal", .inputs = elementwise_inputs, .create = equal_create},
	{.hook = "of_whole", .inputs = of_whole_inputs},
	{.hook = "angle", .inputs = angle_inputs, .create = equal_sizes_create},
	{.hook = "pir_angle", .inputs = angle_inputs},
	{.hook = "keep_nan", .create = keep_nan_create},
	{.hook = "pir_digamma", .inputs = of_whole_inputs, .create = pir_digamma_create},
	{.hook = "pir_quantize", .create = pir_quantize_create},
	{.hook = "pir_matmul", .inputs = pir_matmul_inputs},
	{.hook = "check_numerics", .create = check_numerics_create},
	{.hook = "legacy_divide", .inputs = elementwise_inputs, .create = legacy_divide_create},
	{.hook = "pir_divide", .create = pir_divide_create},
	{.hook = "pir_power", .inputs = elementwise_inputs, .create = pir_power_create},
	{.hook = "pir_remainder", .create = pir_remainder_create},
	{.hook = "equal_sizes", .create = equal_sizes_create},
	{.hook = "in_place", .create = in_place_create},
	{.hook = "arange", .inputs = arange_inputs},
	{.hook = "legacy_cast", .create = legacy_cast_create},
	{.hook = "legacy_full", .create = legacy_full_create},
	{.hook = "assign_value", .create = assign_value_create},
	{.hook = "set_value", .inputs = set_value_inputs},
	{.hook = "full_int_array", .create = int_array_create},
	{.hook = "assign", .create = assign_create, .record = assign_record},
	{.hook = "share", .create = assign_create, .record = share_record},
	{.hook = "coalesce", .record = coalesce_record},
	{.hook = "array_read", .inputs = array_read_inputs},
	{.hook = "array_element", .inputs = array_element_inputs},
	{.hook = "array_slice", .create = array_slice_create},
	{.hook = "sequence_expand", .create = sequence_expand_create},
	{.hook = "batch_order", .record = batch_order_record},
	{.hook = "beam_search", .inputs = beam_search_inputs, .record = beam_search_record},
	{.hook = "split_lod_tensor", .create = split_lod_tensor_create},
	{.hook = "slice", .create = slice_create},
	{.hook = "unbind", .create = unbind_create},
	{.hook = "sum", .create = sum_create},
	{.hook = "along_axis", .record = along_axis_record},
	{.hook = "batch_norm", .record = batch_norm_record, .state = true},
	{.hook = "kept_state", .state = true}, // state is among its outputs, and stays as it is
	{.hook = "gradient", .inputs = gradient_inputs},
	{.hook = "optimizer", .inputs = optimizer_inputs, .create = optimizer_create},
	{.hook = "master_optimizer",
     .inputs = master_inputs,
     .create = optimizer_create,
     .record = master_record,
     .state = true},
	{.hook = "while", .whole = while_translate},
	{.hook = "conditional_block", .whole = conditional_translate},
	{.hook = "squeeze", .create = squeeze_create, .record = varying_record},
	{.hook = "gather_nd", .create = gather_nd_create, .record = varying_record},
	{.hook = "select_input", .whole = select_input_translate},
	{.hook = "select_output", .whole = select_output_translate},
	{.hook = "array_pop", .whole = array_pop_translate},
	{.hook = "array_write", .whole = array_write_translate},
	{.hook = "sequence_mask", .whole = sequence_mask_translate},
	{.hook = "lod_reset", .whole = lod_reset_translate},
	{.hook = "quantize", .whole = quantize_translate},
	{.hook = "moving_average", .whole = moving_average_translate},
	{.hook = "quantize_training", .whole = quantize_training_translate},
	{.hook = "beam_search_decode", .whole = beam_search_decode_translate},
	{.hook = "lod_rank_table", .whole = lod_rank_table_translate},
	{.hook = "lod_tensor_to_array", .whole = lod_tensor_to_array_translate},
	{.hook = "array_to_lod_tensor", .whole = array_to_lod_tensor_translate},
	{.hook = "gather_tree", .whole = gather_tree_translate},
	{.hook = "merged", .whole = merged_translate},
	{.hook = "data", .whole = data_translate},
	{.hook = "merge_selected_rows", .whole = merge_rows_translate},
	{.hook = "get_tensor_from_selected_rows", .whole = rows_tensor_translate},
	{.hook = "recurrent", .whole = recurrent_translate},
	{.hook = "pylayer", .whole = pylayer_translate},
	{.hook = "sigmoid_cross_entropy", .whole = sigmoid_cross_entropy_translate},
	{.hook = "dropout", .whole = dropout_translate},
	{.hook = "round", .whole = round_translate},
};

static const OpSteps *steps_find(const char *hook)
{
	for (size_t i = 0; i < COUNT_OF(steps_table); i++)
		if (strcmp(steps_table[i].hook, hook) == 0)
			return &steps_table[i];
	return NULL;
}

bool translate_as(OpJob *j, const char *type)
{
	static const OpSteps none = {0};
	j->info = op_info_by_legacy(type, &j->map);
	if (!j->info)
		return job_fail(j, "operator '%s' is not supported", type);
	j->steps = j->map->hook ? steps_find(j->map->hook) : &none;
	if (!j->steps)
		return job_fail(j, "the table names an unknown hook '%s'", j->map->hook);
	j->operands = NEW_ARRAY(j->t->c->arena, (size_t)j->info->noperand, Value *);
	j->attrs = NEW_ARRAY(j->t->c->arena, (size_t)j->info->nattr, NamedAttr);
	if (!check_attributes(j, j->map))
		return false;
	return j->steps->whole ? j->steps->whole(j) : general_translate(j);
}
