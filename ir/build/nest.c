// Building loop nests: what every define hook is made of (define.h).
#include "ir/build/nest.h"
#include "ir/build/build.h"

#include <string.h>

// ---- nests --------------------------------------------------------------------------------------

static Nest region_open(Builder *b, enum OpCode code, int nresult, const Type *const *types,
                        int rank)
{
	Nest n = {.rank = rank};
	n.op = op_new(b->ctx, code, b->loc, nresult, types, 0, NULL, 1, 0);
	builder_insert(b, n.op);
	Block *body = block_new(b->ctx, &n.op->regions[0]);
	for (int i = 0; i < rank; i++)
		n.at[i] = block_add_arg(b->ctx, body, type_index(b->ctx));
	n.b = builder_at_end(b->ctx, body, b->loc);
	return n;
}

static bool region_close(Nest *n, int count, Value *const *elements)
{
	Value **typed = NEW_ARRAY(n->b.ctx->arena, (size_t)count, Value *);
	for (int i = 0; i < count; i++) {
		typed[i] = scalar_cast(&n->b, elements[i], n->op->results[i].type->dtype);
		if (!typed[i])
			return false;
	}
	op_append(n->b.block, op_new(n->b.ctx, OP_LOOP_YIELD, n->b.loc, 0, NULL, count, typed, 0, 0));
	return true;
}

Nest nest_open(Builder *b, const Type *result)
{
	return region_open(b, OP_LOOP_NEST, 1, &result, result->rank);
}

Nest nest_open_several(Builder *b, int n, const Type *const *results)
{
	return region_open(b, OP_LOOP_NEST, n, results, results[0]->rank);
}

Value *nest_close(Nest *n, Value *element)
{
	return region_close(n, 1, &element) ? op_result(n->op, 0) : NULL;
}

bool nest_close_several(Nest *n, Value *const *elements, Value **results)
{
	if (!region_close(n, n->op->nresult, elements))
		return false;
	for (int i = 0; i < n->op->nresult; i++)
		results[i] = op_result(n->op, i);
	return true;
}

Nest reduce_open(Builder *b, const char *kind, DType t, int n, const Dim *const *extents)
{
	const Type *type = type_scalar(b->ctx, t);
	Nest r = region_open(b, OP_LOOP_REDUCE, 1, &type, n);
	op_set_attr(r.op, "kind", attr_str(b->ctx, kind));
	op_set_attr(r.op, "extents", attr_dims(b->ctx, n, extents));
	return r;
}

Nest reduce_open_counted(Builder *b, const char *kind, DType t, const Dim *extent, Value *count)
{
	Nest r = reduce_open(b, kind, t, 1, &extent);
	if (count)
		op_add_operand(r.op, count);
	return r;
}

Value *reduce_close(Nest *n, Value *element)
{
	// The positions that argmax and argmin give are i64 whatever the elements are.
	const ReduceKind kind = (ReduceKind)op_enum(n->op, "kind");
	if (reduce_is_position(kind)) {
		if (!element)
			return NULL;
		op_append(n->b.block,
		          op_new(n->b.ctx, OP_LOOP_YIELD, n->b.loc, 0, NULL, 1, &element, 0, 0));
		return op_result(n->op, 0);
	}
	return nest_close(n, element);
}

// ---- positions ----------------------------------------------------------------------------------

Value *index_const(Builder *b, int64_t v)
{
	const Type *type = type_index(b->ctx);
	Op *op = op_new(b->ctx, OP_LOOP_CONSTANT, b->loc, 1, &type, 0, NULL, 0, 0);
	op_set_attr(op, "value", attr_int(b->ctx, v));
	op_set_attr(op, "type", attr_type(b->ctx, type));
	if (b->before)
		op_insert_before(b->before, op);
	else
		op_append(b->block, op);
	return op_result(op, 0);
}

Value *index_dim(Builder *b, const Dim *d)
{
	if (dim_is_const(d))
		return index_const(b, d->value);
	return build(b, OP_LOOP_DIM, 0, NULL, "dim", attr_dim(b->ctx, d), NULL);
}

static bool index_is(const Value *x, int64_t v)
{
	int64_t have;
	return index_constant(x, &have) && have == v;
}

Value *apply1(Builder *b, enum OpCode code, Value *x)
{
	return x ? build1(b, code, x, NULL) : NULL;
}

Value *apply2(Builder *b, enum OpCode code, Value *x, Value *y)
{
	return x && y ? build2(b, code, x, y, NULL) : NULL;
}

Value *index_add(Builder *b, Value *x, Value *y)
{
	int64_t p, q;
	if (index_is(x, 0))
		return y;
	if (index_is(y, 0))
		return x;
	if (index_constant(x, &p) && index_constant(y, &q))
		return index_const(b, p + q);
	return apply2(b, OP_PD_ADD, x, y);
}

Value *index_sub(Builder *b, Value *x, Value *y)
{
	int64_t p, q;
	if (index_is(y, 0))
		return x;
	if (index_constant(x, &p) && index_constant(y, &q))
		return index_const(b, p - q);
	return apply2(b, OP_PD_SUBTRACT, x, y);
}

Value *index_mul(Builder *b, Value *x, Value *y)
{
	int64_t p, q;
	if (index_is(x, 1) || index_is(y, 0))
		return y;
	if (index_is(y, 1) || index_is(x, 0))
		return x;
	if (index_constant(x, &p) && index_constant(y, &q))
		return index_const(b, p * q);
	return apply2(b, OP_PD_MULTIPLY, x, y);
}

Value *index_div(Builder *b, Value *x, Value *y)
{
	int64_t p, q;
	if (index_is(y, 1))
		return x;
	if (index_constant(x, &p) && index_constant(y, &q) && q > 0)
		return index_const(b, p / q);
	return apply2(b, OP_PD_FLOOR_DIVIDE, x, y);
}

Value *index_mod(Builder *b, Value *x, Value *y)
{
	int64_t p, q;
	if (index_is(y, 1))
		return index_const(b, 0);
	if (index_constant(x, &p) && index_constant(y, &q) && q > 0)
		return index_const(b, p % q);
	return apply2(b, OP_PD_REMAINDER, x, y);
}

Value *index_min(Builder *b, Value *x, Value *y)
{
	int64_t p, q;
	if (index_constant(x, &p) && index_constant(y, &q))
		return p < q ? x : y;
	return x == y ? x : apply2(b, OP_PD_MINIMUM, x, y);
}

Value *index_max(Builder *b, Value *x, Value *y)
{
	int64_t p, q;
	if (index_constant(x, &p) && index_constant(y, &q))
		return p > q ? x : y;
	return x == y ? x : apply2(b, OP_PD_MAXIMUM, x, y);
}

Value *index_plus(Builder *b, Value *x, int64_t c)
{
	return c ? index_add(b, x, index_const(b, c)) : x;
}

Value *index_times(Builder *b, Value *x, int64_t c)
{
	return c == 1 ? x : index_mul(b, x, index_const(b, c));
}

Value *index_where(Builder *b, Value *pred, Value *x, Value *y)
{
	Value *const operands[] = {pred, x, y};
	return pred && x && y ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
}

Value *index_less(Builder *b, Value *x, Value *y)
{
	return apply2(b, OP_PD_LESS_THAN, x, y);
}

Value *index_equal(Builder *b, Value *x, Value *y)
{
	return apply2(b, OP_PD_EQUAL, x, y);
}

Value *pred_and(Builder *b, Value *p, Value *q)
{
	if (!p || !q)
		return p ? p : q;
	return build2(b, OP_PD_LOGICAL_AND, p, q, NULL);
}

Value *index_inside(Builder *b, Value *x, const Dim *extent)
{
	Value *low = apply2(b, OP_PD_GREATER_EQUAL, x, index_const(b, 0));
	return pred_and(b, low, index_less(b, x, index_dim(b, extent)));
}

bool position_is_first(const Value *at, const Dim *size)
{
	return dim_is(size, 1) && !(at && at->def && at->def->code == OP_LOOP_TO_INDEX);
}

static bool is_checked(const Value *at, int depth)
{
	const Op *op = at ? at->def : NULL;
	if (!op || op->nregion)
		return op != NULL;
	if (op->code == OP_LOOP_TO_INDEX || depth == 0)
		return true;
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && op_operand(op, i)->type->kind == TY_INDEX &&
		    is_checked(op_operand(op, i), depth - 1))
			return true;
	return false;
}

bool position_is_checked(const Value *at)
{
	enum { DEPTH = 8 };
	return is_checked(at, DEPTH);
}

Value *index_linear(Builder *b, int rank, const Dim *const *dims, Value *const *at)
{
	Value *linear = index_const(b, 0);
	for (int i = 0; i < rank; i++)
		if (!position_is_first(at[i], dims[i]))
			linear = index_add(b, index_mul(b, linear, index_dim(b, dims[i])), at[i]);
	return linear;
}

void index_split(Builder *b, Value *linear, int rank, const Dim *const *dims, Value **at)
{
	for (int i = rank - 1; i >= 0; i--) {
		Value *size = index_dim(b, dims[i]);
		at[i] = i ? index_mod(b, linear, size) : linear;
		if (i)
			linear = index_div(b, linear, size);
	}
}

// ---- elements -----------------------------------------------------------------------------------

Value *load(Builder *b, Value *tensor, Value *const *at)
{
	return load_or(b, NULL, NULL, tensor, at);
}

Value *load_or(Builder *b, Value *pred, Value *other, Value *tensor, Value *const *at)
{
	Value *operands[MAX_RANK + 3];
	int n = 0;
	if (pred) {
		operands[n++] = pred;
		operands[n++] = other;
	}
	operands[n++] = tensor;
	for (int i = 0; i < tensor->type->rank; i++)
		operands[n++] = at[i];
	for (int i = 0; i < n; i++)
		if (!operands[i])
			return NULL;
	return build(b, pred ? OP_LOOP_LOAD_OR : OP_LOOP_LOAD, n, operands, NULL);
}

Value *load_scalar(Builder *b, Value *tensor)
{
	Value *at[MAX_RANK];
	for (int i = 0; i < tensor->type->rank; i++)
		at[i] = index_const(b, 0);
	return load(b, tensor, at);
}

Value *scalar_cast(Builder *b, Value *x, DType t)
{
	if (!x || x->type == type_scalar(b->ctx, t))
		return x;
	if (x->type->kind == TY_INDEX)
		return scalar_from_index(b, x, t);
	return build1(b, OP_PD_CAST, x, "dtype", attr_dtype(b->ctx, t), NULL);
}

Value *scalar_from_index(Builder *b, Value *x, DType t)
{
	if (!x)
		return NULL;
	// Positions become i64, the rest is an ordinary cast (to f32, bool ...).
	DType whole = dtype_is_int(t) ? t : DT_I64;
	Value *v = build1(b, OP_LOOP_FROM_INDEX, x, "dtype", attr_dtype(b->ctx, whole), NULL);
	return scalar_cast(b, v, t);
}

Value *index_from_data(Builder *b, Value *x, const Dim *extent, bool wrap)
{
	if (!x)
		return NULL;
	return build1(b, OP_LOOP_TO_INDEX, x, "extent", attr_dim(b->ctx, extent), "wrap",
	              attr_bool(b->ctx, wrap), NULL);
}

Value *index_near(Builder *b, Value *x, const Dim *extent)
{
	return x ? build1(b, OP_LOOP_NEAR_INDEX, x, "extent", attr_dim(b->ctx, extent), NULL) : NULL;
}

// ---- whole tensors ------------------------------------------------------------------------------

Value *tensor_reshape(Builder *b, Value *x, int rank, const Dim *const *dims)
{
	return x ? build1(b, OP_PD_RESHAPE, x, "shape", attr_dims(b->ctx, rank, dims), NULL) : NULL;
}

Value *tensor_flat(Builder *b, Value *x)
{
	const Dim *numel = x ? type_numel(b->ctx, x->type) : NULL;
	return tensor_reshape(b, x, 1, &numel);
}

Value *tensor_rows(Builder *b, Value *x, Value *at)
{
	return x && at ? build2(b, OP_PD_GATHER, x, at, "axis", attr_int(b->ctx, 0), NULL) : NULL;
}

Value *tensor_spread(Builder *b, Value *x, int rank, const Dim *const *dims)
{
	if (!x || type_like(b->ctx, x->type, x->type->dtype) ==
	              type_tensor(b->ctx, x->type->dtype, rank, dims, x->type->lod))
		return x;
	return build1(b, OP_PD_EXPAND, x, "shape", attr_dims(b->ctx, rank, dims), NULL);
}

Value *tensor_transpose(Builder *b, Value *x, int rank, const int64_t *perm)
{
	return x ? build1(b, OP_PD_TRANSPOSE, x, "perm", attr_ints(b->ctx, rank, perm), NULL) : NULL;
}

Value *tensor_cast(Builder *b, Value *x, DType t)
{
	if (!x || x->type->dtype == t)
		return x;
	return build1(b, OP_PD_CAST, x, "dtype", attr_dtype(b->ctx, t), NULL);
}

Value *tensor_concat(Builder *b, int n, Value *const *parts, int64_t axis)
{
	for (int i = 0; i < n; i++)
		if (!parts[i])
			return NULL;
	Value *list = build(b, OP_BUILTIN_COMBINE, n, parts, NULL);
	return list ? build1(b, OP_PD_CONCAT, list, "axis", attr_int(b->ctx, axis), NULL) : NULL;
}

Value *tensor_slice(Builder *b, Value *x, int64_t axis, const Dim *from, const Dim *to)
{
	return x ? build1(b, OP_PD_SLICE, x, "axes", attr_ints(b->ctx, 1, &axis), "starts",
	                  attr_dims(b->ctx, 1, &from), "ends", attr_dims(b->ctx, 1, &to), NULL)
	         : NULL;
}

Value *tensor_cut(Builder *b, Value *x, int64_t axis, int64_t from, int64_t to)
{
	return tensor_slice(b, x, axis, dim_const(b->ctx, from), dim_const(b->ctx, to));
}

Value *tensor_add(Builder *b, Value *x, Value *y)
{
	return apply2(b, OP_PD_ADD, x, y);
}

Value *tensor_sub(Builder *b, Value *x, Value *y)
{
	return apply2(b, OP_PD_SUBTRACT, x, y);
}

Value *tensor_mul(Builder *b, Value *x, Value *y)
{
	return apply2(b, OP_PD_MULTIPLY, x, y);
}

Value *tensor_div(Builder *b, Value *x, Value *y)
{
	return apply2(b, OP_PD_DIVIDE, x, y);
}

Value *tensor_number(Builder *b, DType t, double v)
{
	return build_full(b, type_tensor(b->ctx, t, 0, NULL, 0), v);
}

Value *tensor_reduce(Builder *b, enum OpCode code, Value *x, int n, const int64_t *axes)
{
	if (!x)
		return NULL;
	const DType t = x->type->dtype;
	const bool widens = code == OP_PD_SUM && (t == DT_I32 || t == DT_BOOL);
	return build1(b, code, x, "axis", attr_ints(b->ctx, n, axes), "keepdim",
	              attr_bool(b->ctx, true), "reduce_all", attr_bool(b->ctx, n == 0),
	              widens ? "dtype" : NULL, attr_dtype(b->ctx, t), NULL);
}

Value *tensor_along(Builder *b, Value *vec, int rank, int axis)
{
	if (!vec)
		return NULL;
	const Dim *dims[MAX_RANK];
	for (int i = 0; i < rank; i++)
		dims[i] = i == axis ? type_numel(b->ctx, vec->type) : dim_const(b->ctx, 1);
	return tensor_reshape(b, vec, rank, dims);
}
