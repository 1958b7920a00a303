// Attributes that only data tell (ir/ops/tensor.yaml): an axis that moves to the front, and slices
// with strides that are not known. Their sizes are found at run time (types: infer_mutable.c).
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- an axis that moves -------------------------------------------------------------------------

// The axis of x that axis d of the result is.
static Value *axis_source(Builder *b, const Op *op, Value *axis, int d)
{
	Value *here = index_const(b, d), *zero = index_const(b, 0);
	if (op_bool(op, "back", false)) {
		Value *other = d ? index_where(b, index_equal(b, here, axis), zero, here) : zero;
		return index_where(b, index_less(b, here, axis), index_const(b, d + 1), other);
	}
	Value *other = index_where(b, index_less(b, axis, here), here, index_const(b, d - 1));
	return d ? other : axis;
}

static Value *axis_of(Builder *b, const Op *op)
{
	const Dim *rank = dim_const(b->ctx, op_operand(op, 0)->type->rank);
	return index_from_data(b, load_scalar(b, op_operand(op, 1)), rank, true);
}

// Tells the run the sizes of the result.
static bool bind_moved(Builder *b, Op *op)
{
	const Type *x = op_operand(op, 0)->type, *out = op->results[0].type;
	const Dim *rank = dim_const(b->ctx, x->rank);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &rank, 0));
	Value *axis = axis_of(&n.b, op), *size = NULL;
	for (int d = 0; d < x->rank; d++) {
		Value *from = axis_source(&n.b, op, axis, d), *here = NULL;
		for (int k = 0; k < x->rank; k++) {
			Value *of = index_dim(&n.b, x->dims[k]);
			here = here ? index_where(&n.b, index_equal(&n.b, from, index_const(&n.b, k)), of, here)
			            : of;
		}
		size = size
		           ? index_where(&n.b, index_equal(&n.b, n.at[0], index_const(&n.b, d)), here, size)
		           : here;
	}
	Value *sizes = nest_close(&n, size);
	const NamedAttr bind = {"dims", attr_dims(b->ctx, out->rank, out->dims)};
	return sizes && build_op(b, OP_LOOP_BIND, 1, &sizes, 1, &bind);
}

bool define_hook_move_axis(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK];
	const Type *out = op->results[0].type;
	int rank = out->rank;
	if (!type_same_dims(out, x->type) && !bind_moved(b, op))
		return false;
	Nest n = nest_open(b, out);
	Value *axis = axis_of(&n.b, op);
	for (int k = 0; k < rank; k++)
		from[k] = NULL;
	for (int d = 0; d < rank; d++) {
		Value *source = axis_source(&n.b, op, axis, d);
		for (int k = 0; k < rank; k++) {
			Value *here = index_equal(&n.b, source, index_const(&n.b, k));
			from[k] = from[k] ? index_where(&n.b, here, n.at[d], from[k]) : n.at[d];
		}
	}
	for (int k = 0; k < rank;
	     k++) // each axis of the result is one of x, so this only says what is so
		from[k] = index_min(
			&n.b, from[k],
			index_dim(&n.b, dim_sub(b->ctx, x->type->dims[k], dim_const(b->ctx, 1))));
	results[0] = nest_close(&n, load(&n.b, x, from));
	return results[0] != NULL;
}

// ---- slices -------------------------------------------------------------------------------------

// Element k of a list that operands or attributes hold, as i64.
static Value *list_element(Builder *b, const Op *op, const char *attr, int k)
{
	const AttrInfo *info = op_info_attr(op->info, attr);
	Value *v = op_operand_named(op, info->operand);
	if (!v) {
		const Dim *dims[MAX_RANK];
		int n = op_dims(op, attr, dims, MAX_RANK);
		return k < n ? scalar_from_index(b, index_dim(b, dims[k]), DT_I64)
		             : build_scalar_f(b, DT_I64, 1);
	}
	Value *const *list;
	int at = op_info_operand(op->info, info->operand);
	if (v->type->kind == TY_VEC) {
		op_operand_list(op, at, &list);
		return scalar_cast(b, load_scalar(b, list[k]), DT_I64);
	}
	Value *const place[] = {index_const(b, k)};
	return scalar_cast(b, v->type->rank ? load(b, v, place) : load_scalar(b, v), DT_I64);
}

static Value *clamp(Builder *b, Value *v, Value *low, Value *high)
{
	return apply2(b, OP_PD_MINIMUM, apply2(b, OP_PD_MAXIMUM, v, low), high);
}

static Value *i64(Builder *b, int64_t v)
{
	return build_scalar_f(b, DT_I64, (double)v);
}

// v, from the end where it is negative.
static Value *from_end(Builder *b, Value *v, Value *size)
{
	return index_where(b, apply2(b, OP_PD_LESS_THAN, v, i64(b, 0)), apply2(b, OP_PD_ADD, v, size),
	                   v);
}

typedef struct Walk {
	Value *start, *stride, *count; // i64
} Walk;

// Where a walk downwards ends. With `from_end` all ends below 0 count from the end, as in Python;
// else one of -1 means "past the first", and others are the first at the least.
static Value *walk_bottom(Builder *b, const Op *op, Value *end, Value *size)
{
	const bool python = op_bool(op, "from_end", false);
	Value *bottom = clamp(b, from_end(b, end, size), i64(b, python ? -1 : 0), size);
	return python ? bottom : index_where(b, apply2(b, OP_PD_EQUAL, end, i64(b, -1)), end, bottom);
}

// How list element k walks along an axis of this size.
static Walk walk_of(Builder *b, const Op *op, int k, const Dim *dim)
{
	Value *size = scalar_from_index(b, index_dim(b, dim), DT_I64),
		  *stride = list_element(b, op, "strides", k);
	Value *start = from_end(b, list_element(b, op, "starts", k), size),
		  *end = list_element(b, op, "ends", k);
	Value *down = apply2(b, OP_PD_LESS_THAN, stride, i64(b, 0)),
		  *last = apply2(b, OP_PD_SUBTRACT, size, i64(b, 1));
	Value *low = clamp(b, start, i64(b, 0), size),
		  *high = clamp(b, from_end(b, end, size), i64(b, 0), size);
	Value *top = clamp(b, start, i64(b, -1), last);
	Value *way = index_where(b, down, apply2(b, OP_PD_SUBTRACT, top, walk_bottom(b, op, end, size)),
	                         apply2(b, OP_PD_SUBTRACT, high, low));
	Value *pace = apply2(b, OP_PD_MAXIMUM,
	                     index_where(b, down, apply1(b, OP_PD_NEGATIVE, stride), stride),
	                     i64(b, 1));
	way = apply2(b, OP_PD_ADD, apply2(b, OP_PD_MAXIMUM, way, i64(b, 0)),
	             apply2(b, OP_PD_SUBTRACT, pace, i64(b, 1)));
	return (Walk){index_where(b, down, top, low), stride, apply2(b, OP_PD_FLOOR_DIVIDE, way, pace)};
}

bool define_open_slice(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *from[MAX_RANK], *starts[MAX_RANK] = {NULL}, *strides[MAX_RANK];
	const Type *out = op->results[0].type, *none = type_tensor(b->ctx, DT_I64, 0, NULL, 0),
			   *types[] = {none, none, none};
	int64_t axes[MAX_RANK];
	bool dropped[MAX_RANK];
	int n = op_ints(op, "axes", axes, MAX_RANK);
	if (!slice_drops(op, x->type->rank, dropped))
		return false;
	for (int k = 0; k < n; k++) {
		int d = axis_norm(axes[k], x->type->rank), at = 0;
		Value *values[3];
		Nest w = nest_open_several(b, 3, types);
		Walk walk = walk_of(&w.b, op, k, x->type->dims[d]);
		if (!nest_close_several(&w, (Value *const[]){walk.start, walk.stride, walk.count}, values))
			return false;
		starts[d] = values[0];
		strides[d] = values[1];
		for (int i = 0; i < d; i++)
			at += !dropped[i];
		if (!dropped[d] && !bind_size(b, values[2], out->dims[at]))
			return false;
	}
	Nest m = nest_open(b, out);
	for (int d = 0, k = 0; d < x->type->rank; d++) {
		from[d] = dropped[d] ? index_const(&m.b, 0) : m.at[k++];
		if (!starts[d])
			continue;
		Value *way = apply2(&m.b, OP_PD_MULTIPLY, scalar_from_index(&m.b, from[d], DT_I64),
		                    load_scalar(&m.b, strides[d]));
		from[d] = index_from_data(&m.b, apply2(&m.b, OP_PD_ADD, load_scalar(&m.b, starts[d]), way),
		                          x->type->dims[d], false);
	}
	results[0] = nest_close(&m, load(&m.b, x, from));
	return results[0] != NULL;
}
