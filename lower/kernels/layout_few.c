// Convolutions with few output channels: lanes of a vector that channels would leave empty hold the
// neighbours of a pixel. A rectangle of them becomes one pixel of a convolution with a larger
// stride, whose filter is that of each, shifted; zeros fill it up. A nest then takes the rectangles
// apart. Called by layout_conv.c.
#include "ir/build/nest.h"
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

#include <string.h>

enum {
	WORTH = 32,   // products for an element of the result, from which taking apart weighs little
	GAIN_NUM = 3, // the products of vectors must be fewer than 3/4 of those before
	GAIN_DEN = 4
};

// A rectangle of pixels.
typedef struct Few {
	int64_t y, x;             // its size
	int64_t rows, columns;    // of rectangles
	int64_t kh, kw, products; // of the filter; of vectors, with each channel of the input
} Few;

static Few few_of(const Conv *cv, const int64_t *size, int64_t y, int64_t x)
{
	Few f = {.y = y,
	         .x = x,
	         .rows = (size[0] + y - 1) / y,
	         .columns = (size[1] + x - 1) / x,
	         .kh = cv->kh + cv->strides[0] * (y - 1),
	         .kw = cv->kw + cv->strides[1] * (x - 1)};
	f.products = f.rows * f.columns * f.kh * f.kw;
	return f;
}

// The rectangle with the fewest products; false: a single pixel is nearly as good.
static bool few_best(const Layout *l, const Conv *cv, const int64_t *size, Few *best)
{
	const Few one = few_of(cv, size, 1, 1);
	const int64_t most = l->target->lanes / cv->oc;
	*best = one;
	for (int64_t y = 1; y <= most; y++)
		for (int64_t x = 1; x <= most / y; x++) {
			const Few f = few_of(cv, size, y, x);
			if (f.products < best->products)
				*best = f;
		}
	return best->products * GAIN_DEN < one.products * GAIN_NUM;
}

// [OC x IC x KH x KW] to [y * x * OC x IC x kh x kw].
static Tensor *filter_shifted(Context *c, const Tensor *w, const Conv *cv, const Few *f)
{
	const int64_t dims[4] = {f->y * f->x * cv->oc, cv->ic, f->kh, f->kw};
	Tensor *t = tensor_new(c->arena, w->dtype, 4, dims);
	if (!t)
		return NULL;
	const float *from = w->data;
	float *to = t->data;
	for (int64_t o = 0; o < dims[0]; o++) {
		const int64_t top = o / cv->oc / f->x * cv->strides[0],
					  left = o / cv->oc % f->x * cv->strides[1];
		for (int64_t row = 0; row < cv->ic * cv->kh; row++)
			memcpy(to + ((o * cv->ic + row / cv->kh) * f->kh + top + row % cv->kh) * f->kw + left,
			       from + (o % cv->oc * cv->ic * cv->kh + row) * cv->kw,
			       (size_t)cv->kw * sizeof *to);
	}
	return t;
}

// The plain result of what stands in the lanes.
static Value *rectangles_apart(const Conv *cv, Value *made, const Few *f)
{
	Builder before = builder_before(cv->op);
	Nest n = nest_open(&before, cv->op->results[0].type);
	Value *y = index_const(&n.b, f->y), *x = index_const(&n.b, f->x);
	Value *pixel = index_times(&n.b, index_mod(&n.b, n.at[2], y), f->x);
	pixel = index_add(&n.b, pixel, index_mod(&n.b, n.at[3], x));
	Value *at[5] = {n.at[0], index_const(&n.b, 0), index_div(&n.b, n.at[2], y),
	                index_div(&n.b, n.at[3], x),
	                index_add(&n.b, index_times(&n.b, pixel, cv->oc), n.at[1])};
	return nest_close(&n, load(&n.b, made, at));
}

static bool few_fits(const Layout *l, const Conv *cv, const Tensor *w)
{
	const Dim *const *out = cv->op->results[0].type->dims;
	return w && 2 * cv->oc <= l->target->lanes && cv->kh * cv->kw > 1 && cv->dilations[0] == 1 &&
	       cv->dilations[1] == 1 && cv->ic * cv->kh * cv->kw >= WORTH * cv->oc &&
	       dim_is_const(out[2]) && dim_is_const(out[3]);
}

Value *conv_few(Layout *l, const Conv *cv)
{
	Context *c = l->ctx;
	const Tensor *w = value_constant(cv->filter);
	const Type *out = cv->op->results[0].type;
	Few f;
	if (!few_fits(l, cv, w))
		return NULL;
	const int64_t size[2] = {out->dims[2]->value, out->dims[3]->value};
	Tensor *t = few_best(l, cv, size, &f) ? filter_shifted(c, w, cv, &f) : NULL;
	if (!t)
		return NULL;
	Builder b = builder_before(cv->op);
	Conv many = *cv;
	many.filter = build_parameter(&b, cv->filter->name, "pixels", t);
	many.oc = t->dims[0];
	many.kh = f.kh;
	many.kw = f.kw;
	many.strides[0] *= f.y;
	many.strides[1] *= f.x;
	many.paddings[2] += (f.rows * f.y - size[0]) * cv->strides[0];
	many.paddings[3] += (f.columns * f.x - size[1]) * cv->strides[1];
	const Dim *dims[4] = {out->dims[0], dim_const(c, many.oc), dim_const(c, f.rows),
	                      dim_const(c, f.columns)};
	Value *made = conv_dense(l, &many, type_tensor(c, out->dtype, 4, dims, 0));
	return made ? rectangles_apart(cv, made, &f) : NULL;
}
