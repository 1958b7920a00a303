// Looking through reshapes: the position of an element in another shape of the same elements. Used
// by fuse_inline.c and fuse_epilogue.c.
#include "lower/analysis/analysis.h"
#include "lower/pass/rewrite.h"

static Value *index_by(Builder *b, enum OpCode code, Value *x, const Dim *d)
{
	Value *size = build(b, OP_LOOP_DIM, 0, NULL, "dim", attr_dim(b->ctx, d), NULL);
	return build2(b, code, x, size, NULL);
}

// One index over the product of `n` sizes to an index for each.
static void split_index(Builder *b, Value *x, int n, const Dim *const *dims, Value **out)
{
	for (int i = n - 1; i > 0; i--) {
		out[i] = index_by(b, OP_PD_REMAINDER, x, dims[i]);
		x = index_by(b, OP_PD_FLOOR_DIVIDE, x, dims[i]);
	}
	out[0] = x;
}

static Value *join_index(Builder *b, int n, Value *const *x, const Dim *const *dims)
{
	Value *v = x[0];
	for (int i = 1; i < n; i++)
		v = build2(b, OP_PD_ADD, index_by(b, OP_PD_MULTIPLY, v, dims[i]), x[i], NULL);
	return v;
}

// How many of dims[0..n) multiply to `product`; 0: no number of them does.
static int dims_covering(Context *c, const Dim *product, int n, const Dim *const *dims)
{
	const Dim *p = dim_const(c, 1);
	for (int i = 0; i < n; i++) {
		p = dim_mul(c, p, dims[i]);
		if (p == product)
			return i + 1;
	}
	return 0;
}

static bool all_are_1(int n, const Dim *const *dims)
{
	for (int i = 0; i < n; i++)
		if (!dim_is(dims[i], 1))
			return false;
	return true;
}

// How many divisions it takes to split a position into n axes.
static int split_divisions(int n, const Dim *const *dims)
{
	int sum = 0;
	for (int k = 1; k < n; k++)
		sum += dim_is(dims[k], 1) ? 0 : 2;
	return sum;
}

// Goes through both shapes in groups of axes with equal products. Builds when b is given; counts
// divisions.
static bool reshape_walk(Context *c, Builder *b, const Type *from, Value *const *index,
                         const Type *to, Value **out, int *divisions)
{
	int i = 0, j = 0;
	while (i < from->rank && j < to->rank) {
		int split = dims_covering(c, from->dims[i], to->rank - j, to->dims + j);
		int join = split ? 1 : dims_covering(c, to->dims[j], from->rank - i, from->dims + i);
		if (!split && !join)
			return false;
		if (b && split)
			split_index(b, index[i], split, to->dims + j, out + j);
		else if (b)
			out[j] = join_index(b, join, index + i, from->dims + i);
		*divisions += split_divisions(split, to->dims + j);
		i += split ? 1 : join;
		j += split ? split : 1;
	}
	if (!all_are_1(from->rank - i, from->dims + i) || !all_are_1(to->rank - j, to->dims + j))
		return false;
	for (; b && j < to->rank; j++)
		out[j] = build_index(b, 0);
	return true;
}

bool index_reshape(Context *c, Builder *b, const Type *from, Value *const *index, const Type *to,
                   Value **out)
{
	int divisions = 0;
	return reshape_walk(c, b, from, index, to, out, &divisions);
}

int index_reshape_divisions(Context *c, const Type *from, const Type *to)
{
	int divisions = 0;
	return reshape_walk(c, NULL, from, NULL, to, NULL, &divisions) ? divisions : -1;
}
