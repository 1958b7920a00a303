// Gradients of contractions by contractions, which have kernels: of convolutions, transposed ones
// and what their filters get, which are each other's gradients; of products of matrices; of
// pooling. Filters and right operands come first: then nobody but the operation that makes it reads
// the image, or the rows, in whose place its own gradient may lie. What these cannot say (paddings
// that only a run tells, vectors) goes by what the operation means.
#include "ir/gradient/gradient.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- convolution --------------------------------------------------------------------------------

// A convolution, or what belongs to one, in NCHW.
typedef struct Conv {
	GradientJob *g;
	Window w;
	bool last; // channels are on the last axis
	int64_t paddings[6];
} Conv;

// False: sizes that only a run tells.
static bool conv_read(GradientJob *g, Conv *v)
{
	*v = (Conv){.g = g, .last = channels_last(g->op)};
	if (!window_of_conv(g->op, &v->w))
		return false;
	for (int i = 0; i < v->w.n; i++) {
		if (!dim_is_const(v->w.before[i]) || !dim_is_const(v->w.after[i]))
			return false;
		v->paddings[2 * i] = v->w.before[i]->value;
		v->paddings[2 * i + 1] = v->w.after[i]->value;
	}
	return true;
}

// An image with the channels on axis 1, and back.
static Value *channels_first(const Conv *v, Value *x)
{
	int64_t perm[5] = {0, v->w.n + 1, 1, 2, 3};
	return v->last ? tensor_transpose(v->g->b, x, v->w.n + 2, perm) : x;
}

static Value *channels_back(const Conv *v, Value *x)
{
	int64_t perm[5] = {0};
	for (int i = 1; i <= v->w.n; i++)
		perm[i] = i + 1;
	perm[v->w.n + 1] = 1;
	return v->last && x ? tensor_transpose(v->g->b, x, v->w.n + 2, perm) : x;
}

static void sizes_of(const Conv *v, const Type *image, const Dim **size)
{
	memcpy(size, image->dims + (v->last ? 1 : 2), (size_t)v->w.n * sizeof *size);
}

// An operation with the geometry of this one; `key`, NULL: none, names sizes.
static Value *conv_build(const Conv *v, enum OpCode code, Value *x, Value *y, const char *key,
                         const Dim *const *sizes)
{
	Context *c = v->g->b->ctx;
	const int n = v->w.n;
	const NamedAttr attrs[] = {
		{"strides", attr_ints(c, n, v->w.stride)},
		{"paddings", attr_ints(c, 2 * n, v->paddings)},
		{"dilations", attr_ints(c, n, v->w.dilation)},
		{"groups", attr_int(c, op_int(v->g->op, "groups", 1))},
		{key, key ? attr_dims(c, n, sizes) : NULL},
	};
	Value *const operands[] = {x, y};
	Op *op = x && y ? build_op(v->g->b, code, 2, operands, key ? 5 : 4, attrs) : NULL;
	return op ? op_result(op, 0) : NULL;
}

// The three operations; images have the channels on axis 1.
static Value *convolve(const Conv *v, Value *x, Value *filter)
{
	return conv_build(v, conv_operation(v->w.n, false), x, filter, NULL, NULL);
}

static Value *transposed(const Conv *v, Value *y, Value *filter, const Dim *const *size)
{
	return conv_build(v, conv_operation(v->w.n, true), y, filter, "output_size", size);
}

static Value *filter_gradient(const Conv *v, Value *x, Value *d_out)
{
	return conv_build(v, v->w.n == 3 ? OP_PD_FILTER3D_GRADIENT : OP_PD_FILTER2D_GRADIENT, x, d_out,
	                  "kernel", v->w.kernel);
}

// Gives dv, in NCHW, to an operand; what has other sizes than it says that the geometry is not what
// it seems.
static bool conv_give(const Conv *v, int operand, bool image, Value *dv)
{
	const Type *t = op_operand(v->g->op, operand)->type;
	dv = image ? channels_back(v, dv) : dv;
	if (dv && memcmp(dv->type->dims, t->dims, (size_t)t->rank * sizeof *t->dims))
		dv = tensor_reshape(v->g->b, dv, t->rank, t->dims);
	return dv && gradient_give(v->g, operand, dv);
}

bool gradient_hook_convolution(GradientJob *g)
{
	Conv v;
	if (!conv_read(g, &v))
		return gradient_by_meaning(g);
	Value *d = channels_first(&v, gradient_of(g, 0)), *x = op_operand(g->op, 0);
	const Dim *size[3];
	sizes_of(&v, x->type, size);
	if (gradient_wants(g, 1) &&
	    !conv_give(&v, 1, false, filter_gradient(&v, channels_first(&v, x), d)))
		return false;
	return !gradient_wants(g, 0) ||
	       conv_give(&v, 0, true, transposed(&v, d, op_operand(g->op, 1), size));
}

// Whether a convolution of `image` has the sizes of `result`.
static bool convolves_to(const Conv *v, const Type *image, const Type *result)
{
	Window w = v->w;
	sizes_of(v, image, w.size);
	for (int i = 0; i < w.n; i++)
		if (window_count(v->g->b->ctx, &w, i, false) != result->dims[w.axis[i]])
			return false;
	return true;
}

bool gradient_hook_transposed_convolution(GradientJob *g)
{
	Conv v;
	Value *x = op_operand(g->op, 0);
	if (!conv_read(g, &v) || !convolves_to(&v, g->op->results[0].type, x->type))
		return gradient_by_meaning(g);
	Value *d = channels_first(&v, gradient_of(g, 0));
	if (gradient_wants(g, 1) &&
	    !conv_give(&v, 1, false, filter_gradient(&v, d, channels_first(&v, x))))
		return false;
	return !gradient_wants(g, 0) || conv_give(&v, 0, true, convolve(&v, d, op_operand(g->op, 1)));
}

bool gradient_hook_filter_gradient(GradientJob *g)
{
	Conv v;
	Value *x = op_operand(g->op, 0), *y = op_operand(g->op, 1), *d = gradient_of(g, 0);
	if (!conv_read(g, &v) || !convolves_to(&v, x->type, y->type))
		return gradient_by_meaning(g);
	const Dim *size[3];
	sizes_of(&v, x->type, size);
	return (!gradient_wants(g, 0) || conv_give(&v, 0, true, transposed(&v, y, d, size))) &&
	       (!gradient_wants(g, 1) || conv_give(&v, 1, true, convolve(&v, x, d)));
}

// ---- pooling ------------------------------------------------------------------------------------

bool gradient_hook_pool(GradientJob *g)
{
	static const char *const names[] = {"kernel_size", "strides",           "paddings",
	                                    "ceil_mode",   "exclusive",         "global_pooling",
	                                    "adaptive",    "padding_algorithm", "pooling_type"};
	Context *c = g->b->ctx;
	Window w;
	NamedAttr attrs[COUNT_OF(names) + 1];
	if (!window_of_pool(g->op, &w))
		return false;
	Conv v = {.g = g, .w = w, .last = channels_last(g->op)};
	Value *x = op_operand(g->op, 0), *out = op_result(g->op, 0), *d = gradient_of(g, 0);
	if (x->type->rank != w.n + 2)
		return gradient_by_meaning(g);
	attrs[0] = (NamedAttr){"size", attr_dims(c, w.n, w.size)};
	const int n = 1 + op_attrs_given(g->op, COUNT_OF(names), names, attrs + 1);
	const bool max = op_enum(g->op, "pooling_type") == POOL_MAX;
	Value *const operands[] = {channels_first(&v, d), max ? channels_first(&v, x) : NULL,
	                           max ? channels_first(&v, out) : NULL};
	Op *op = operands[0] ? build_op(g->b, w.n == 3 ? OP_PD_POOL3D_GRADIENT : OP_PD_POOL2D_GRADIENT,
	                                max ? 3 : 1, operands, n, attrs)
	                     : NULL;
	return op && gradient_give(g, 0, channels_back(&v, op_result(op, 0)));
}

// ---- products of matrices -----------------------------------------------------------------------

static Value *product(Builder *b, Value *x, Value *y, bool tx, bool ty)
{
	return x && y ? build2(b, OP_PD_MATMUL, x, y, "transpose_x", attr_bool(b->ctx, tx),
	                       "transpose_y", attr_bool(b->ctx, ty), NULL)
	              : NULL;
}

// All leading axes as rows.
static Value *as_matrix(Builder *b, Value *x)
{
	const Type *t = x->type;
	const Dim *dims[2] = {dims_product(b->ctx, t->rank - 1, t->dims), t->dims[t->rank - 1]};
	return t->rank == 2 ? x : tensor_reshape(b, x, 2, dims);
}

// Of x y, x^T y, x y^T or x^T y^T, for what comes in d: products of d and the other operand, turned
// so that nothing is transposed by itself.
bool gradient_hook_matmul(GradientJob *g)
{
	Builder *b = g->b;
	Value *x = op_operand(g->op, 0), *y = op_operand(g->op, 1), *d = gradient_of(g, 0);
	if (x->type->rank < 2 || y->type->rank < 2 || !dtype_is_float(g->op->results[0].type->dtype))
		return gradient_by_meaning(g);
	const bool tx = op_bool(g->op, "transpose_x", false), ty = op_bool(g->op, "transpose_y", false);
	Value *dx = NULL, *dy = NULL;
	if (gradient_wants(g, 1)) {
		const bool rows = y->type->rank == 2 && !tx; // one matrix, for all rows there are
		Value *left = rows ? as_matrix(b, x) : x, *right = rows ? as_matrix(b, d) : d;
		dy = ty ? product(b, right, left, true, tx) : product(b, left, right, !tx, false);
	}
	if (gradient_wants(g, 0))
		dx = tx ? product(b, y, d, ty, true) : product(b, d, y, false, !ty);
	return (!gradient_wants(g, 1) || gradient_give(g, 1, dy)) &&
	       (!gradient_wants(g, 0) || gradient_give(g, 0, dx));
}
