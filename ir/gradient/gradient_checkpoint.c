// What a checkpoint holds of a variable of a loop: a row of a tensor that has one for each
// checkpoint, and one more, where rounds that are none write. Where rounds change the variable's
// sizes a row has room for as much as they may become, and a second tensor holds what they are.
#include "ir/build/counted.h"
#include "ir/gradient/gradient_loop.h"

static const Dim *size_at_most(Context *c, const Dim *d)
{
	return dim_max(c, dim_at_most(c, d), dim_const(c, 0));
}

bool checkpoint_takes(Context *c, const Type *t)
{
	if (t->kind != TY_TENSOR || t->rank >= MAX_RANK)
		return false;
	for (int d = 0; d < t->rank; d++)
		if (dim_is_found(t->dims[d]) && !dim_is_const(size_at_most(c, t->dims[d])))
			return false;
	return true;
}

int checkpoint_columns(const Type *t)
{
	return 1 + type_is_found(t);
}

static int found_dims(const Type *t)
{
	int n = 0;
	for (int d = 0; d < t->rank; d++)
		n += dim_is_found(t->dims[d]);
	return n;
}

// A row for `t`, where that has found sizes.
static const Type *row_type(Context *c, const Type *t)
{
	const Dim *dims[MAX_RANK];
	for (int d = 0; d < t->rank; d++)
		dims[d] = dim_is_found(t->dims[d]) ? size_at_most(c, t->dims[d]) : t->dims[d];
	return type_tensor(c, t->dtype, t->rank, dims, 0);
}

static Value *room(Builder *b, int64_t rows, DType dtype, int rank, const Dim *const *row)
{
	const Dim *dims[MAX_RANK] = {dim_const(b->ctx, rows)};
	for (int d = 0; d < rank; d++)
		dims[d + 1] = row[d];
	return build_full(b, type_tensor(b->ctx, dtype, rank + 1, dims, 0), 0);
}

void checkpoint_rooms(Builder *b, int64_t slots, const Type *t, Value **columns)
{
	const Type *row = row_type(b->ctx, t);
	const Dim *n = dim_const(b->ctx, found_dims(t));
	columns[0] = room(b, slots + 1, t->dtype, t->rank, row->dims);
	if (type_is_found(t))
		columns[1] = room(b, slots + 1, DT_I64, 1, &n);
}

// ---- rows ---------------------------------------------------------------------------------------

// v, with zeros behind its ends.
static Value *padded(Builder *b, Value *v)
{
	const Type *t = v->type;
	Nest n = nest_open(b, row_type(b->ctx, t));
	Value *inside = NULL;
	for (int d = 0; d < t->rank; d++)
		if (dim_is_found(t->dims[d]))
			inside = pred_and(&n.b, inside, index_less(&n.b, n.at[d], index_dim(&n.b, t->dims[d])));
	Value *zero = build_scalar_f(&n.b, t->dtype, 0);
	return nest_close(&n, load_or(&n.b, inside, zero, v, n.at));
}

static Value *sizes_of(Builder *b, Value *v)
{
	Value *parts[MAX_RANK];
	int n = 0;
	for (int d = 0; d < v->type->rank; d++)
		if (dim_is_found(v->type->dims[d]))
			parts[n++] = build_size(b, v, d);
	for (int i = 0; i < n; i++)
		if (!parts[i])
			return NULL;
	return n > 1 ? tensor_concat(b, n, parts, 0) : parts[0];
}

static Value *put_row(Builder *b, Value *column, Value *at, Value *v)
{
	const Type *t = column->type;
	if (v && v->type->rank != t->rank - 1)
		v = tensor_reshape(b, v, t->rank - 1, t->dims + 1);
	return v && at ? build_set_step(b, column, at, v) : NULL;
}

bool checkpoint_put(Builder *b, Value *const *columns, Value *at, Value *v, Value **next)
{
	const bool found = v && type_is_found(v->type);
	next[0] = put_row(b, columns[0], at, found ? padded(b, v) : v);
	if (found)
		next[1] = put_row(b, columns[1], at, sizes_of(b, v));
	return next[0] && (!found || next[1]);
}

// The beginning of a row that is `t`, with sizes of its own for those that a run finds.
static Value *cut_out(Builder *b, Value *row, Value *sizes, const Type *t)
{
	const Type *own = type_found_anew(b->ctx, TY_TENSOR, t);
	for (int d = 0, k = 0; d < t->rank && sizes; d++)
		if (dim_is_found(t->dims[d])) {
			Value *size = tensor_cut(b, sizes, 0, k, k + 1);
			if (!size || !bind_certain_size(b, size, own->dims[d]))
				return NULL;
			k++;
		}
	Nest n = nest_open(b, own);
	return nest_close(&n, load(&n.b, row, n.at));
}

Value *checkpoint_get(Builder *b, Value *const *columns, Value *at, const Type *t)
{
	Value *row = columns[0] && at ? build_step(b, columns[0], at) : NULL;
	if (!row || !type_is_found(t))
		return row && row->type != t ? tensor_reshape(b, row, t->rank, t->dims) : row;
	Value *sizes = build_step(b, columns[1], at);
	return sizes ? cut_out(b, row, sizes, t) : NULL;
}
