// What roi_align and roi_pool mean (ir/ops/detect.yaml).
#include "ir/build/build.h"
#include "ir/sequence/sequence.h"

typedef struct Regions {
	Builder *b;
	const Op *op;
	Context *ctx;
	DType t;
	Value *x, *boxes;
	Value *image; // [R]: of which image each region is; NULL: there is one
} Regions;

static Value *number(const Regions *r, Builder *b, double v)
{
	return build_scalar_f(b, r->t, v);
}

static int64_t pooled(const Op *op, int axis)
{
	return op_int(op, axis ? "pooled_width" : "pooled_height", 1);
}

static bool regions_open(Regions *r, Builder *b, const Op *op)
{
	Value *boxes = op_operand(op, 1), *num = op_operand(op, 2), *lod = op_operand(op, 3);
	*r = (Regions){.b = b, .op = op, .ctx = b->ctx, .x = op_operand(op, 0), .boxes = boxes};
	r->t = r->x->type->dtype;
	if (num) {
		const Dim *images = type_numel(b->ctx, num->type);
		lod = offsets_of_counts(b, tensor_reshape(b, num, 1, &images));
	}
	if (!num && !lod)
		return true;
	if (!lod)
		return false;
	const Dim *rows = boxes->type->dims[0];
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I32, 1, &rows, 0));
	r->image = nest_close(&n, sequence_of_row(&n.b, lod, n.at[0]));
	return r->image != NULL;
}

// A number for each region and axis (0: vertical), [R x 2].
static const Type *per_axis(const Regions *r, DType t)
{
	const Dim *dims[] = {r->boxes->type->dims[0], dim_const(r->ctx, 2)};
	return type_tensor(r->ctx, t, 2, dims, 0);
}

// A corner of the region at[0] on axis at[1], in pixels of x.
static Value *edge(const Regions *r, Builder *b, Value *const *at, bool end)
{
	Value *k = index_sub(b, index_const(b, end ? 3 : 1), at[1]);
	Value *v = load(b, r->boxes, (Value *const[]){at[0], k});
	return apply2(b, OP_PD_MULTIPLY, v, number(r, b, op_float(r->op, "spatial_scale", 1)));
}

static Value *image_of(const Regions *r, Builder *b, Value *region)
{
	return r->image ? index_from_data(b, load(b, r->image, &region), r->x->type->dims[0], false)
	                : index_const(b, 0);
}

// The number that an axis (a position) has of two.
static Value *pick(Builder *b, Value *axis, Value *vertical, Value *horizontal)
{
	return index_where(b, index_equal(b, axis, index_const(b, 0)), vertical, horizontal);
}

// ---- roi_align ----------------------------------------------------------------------------------

typedef struct Samples {
	Value *start, *size; // [R x 2]: where the region begins, and how large it is
	Value *count;        // [R x 2], i32: samples of a part in each direction
} Samples;

static bool samples_of(const Regions *r, Samples *s)
{
	const Type *types[] = {per_axis(r, r->t), per_axis(r, r->t), per_axis(r, DT_I32)};
	bool aligned = op_bool(r->op, "aligned", false);
	int64_t fixed = op_int(r->op, "sampling_ratio", -1);
	Value *results[3];
	Nest n = nest_open_several(r->b, 3, types);
	Builder *b = &n.b;
	Value *half = number(r, b, aligned ? 0.5 : 0),
		  *start = apply2(b, OP_PD_SUBTRACT, edge(r, b, n.at, false), half);
	Value *size = apply2(b, OP_PD_SUBTRACT, apply2(b, OP_PD_SUBTRACT, edge(r, b, n.at, true), half),
	                     start);
	if (!aligned)
		size = apply2(b, OP_PD_MAXIMUM, size, number(r, b, 1));
	Value *parts = pick(b, n.at[1], number(r, b, (double)pooled(r->op, 0)),
	                    number(r, b, (double)pooled(r->op, 1)));
	Value *each = apply1(b, OP_PD_CEIL, apply2(b, OP_PD_DIVIDE, size, parts));
	Value *count = fixed > 0 ? build_scalar_f(b, DT_I32, (double)fixed)
	                         : scalar_cast(b, each, DT_I32);
	if (!nest_close_several(&n, (Value *const[]){start, size, count}, results))
		return false;
	*s = (Samples){results[0], results[1], results[2]};
	return true;
}

// Between which pixels of an axis a sample lies, and how near to the first; outside: not on the
// image at all.
typedef struct Between {
	Value *low, *high, *near, *outside;
} Between;

static Between between(const Regions *r, Builder *b, Value *v, int axis)
{
	const Dim *size = r->x->type->dims[2 + axis];
	Value *end = scalar_from_index(b, index_dim(b, size), r->t),
		  *last = apply2(b, OP_PD_SUBTRACT, end, number(r, b, 1));
	Value *before = apply2(b, OP_PD_LESS_THAN, v, number(r, b, -1)),
		  *behind = apply2(b, OP_PD_GREATER_THAN, v, end);
	Value *at = apply2(b, OP_PD_MAXIMUM, apply2(b, OP_PD_MINIMUM, v, last), number(r, b, 0));
	Value *low = apply1(b, OP_PD_FLOOR, at);
	Value *high = apply2(b, OP_PD_MINIMUM, apply2(b, OP_PD_ADD, low, number(r, b, 1)), last);
	Value *near = apply2(b, OP_PD_SUBTRACT, number(r, b, 1), apply2(b, OP_PD_SUBTRACT, at, low));
	return (Between){index_from_data(b, scalar_cast(b, low, DT_I64), size, false),
	                 index_from_data(b, scalar_cast(b, high, DT_I64), size, false), near,
	                 apply2(b, OP_PD_LOGICAL_OR, before, behind)};
}

// The value of channel c between four pixels.
static Value *sample(const Regions *r, Builder *b, Value *n, Value *c, const Between *y,
                     const Between *x)
{
	Value *one = number(r, b, 1), *sum = NULL;
	for (int k = 0; k < 4; k++) {
		Value *const at[] = {n, c, k & 2 ? y->high : y->low, k & 1 ? x->high : x->low};
		Value *wy = k & 2 ? apply2(b, OP_PD_SUBTRACT, one, y->near) : y->near;
		Value *wx = k & 1 ? apply2(b, OP_PD_SUBTRACT, one, x->near) : x->near;
		Value *term = apply2(b, OP_PD_MULTIPLY, apply2(b, OP_PD_MULTIPLY, wx, wy),
		                     load(b, r->x, at));
		sum = sum ? apply2(b, OP_PD_ADD, sum, term) : term;
	}
	Value *outside = apply2(b, OP_PD_LOGICAL_OR, y->outside, x->outside);
	return index_where(b, outside, number(r, b, 0), sum);
}

// Where sample i of part `part` of region `region` is on an axis.
static Value *sample_place(const Regions *r, const Samples *s, Builder *b, Value *region,
                           Value *part, Value *i, int axis)
{
	Value *const at[] = {region, index_const(b, axis)};
	Value *count = scalar_cast(b, load(b, s->count, at), r->t);
	Value *within = apply2(b, OP_PD_ADD, scalar_from_index(b, i, r->t), number(r, b, 0.5));
	within = apply2(b, OP_PD_ADD, scalar_from_index(b, part, r->t),
	                apply2(b, OP_PD_DIVIDE, within, count));
	Value *bin = apply2(b, OP_PD_DIVIDE, load(b, s->size, at),
	                    number(r, b, (double)pooled(r->op, axis)));
	return apply2(b, OP_PD_ADD, load(b, s->start, at), apply2(b, OP_PD_MULTIPLY, bin, within));
}

bool define_hook_roi_align(Builder *b, Op *op, Value **results)
{
	Regions r;
	Samples s;
	if (!regions_open(&r, b, op) || !samples_of(&r, &s))
		return false;
	const Dim *most = dim_const(b->ctx, INT32_MAX);
	Nest n = nest_open(b, op->results[0].type);
	Value *image = image_of(&r, &n.b, n.at[0]), *count[2];
	for (int k = 0; k < 2; k++)
		count[k] = index_from_data(
			&n.b, load(&n.b, s.count, (Value *const[]){n.at[0], index_const(&n.b, k)}), most,
			false);
	Nest v = reduce_open_counted(&n.b, "sum", r.t, most, count[0]);
	Between y = between(&r, &v.b, sample_place(&r, &s, &v.b, n.at[0], n.at[2], v.at[0], 0), 0);
	Nest h = reduce_open_counted(&v.b, "sum", r.t, most, count[1]);
	Between x = between(&r, &h.b, sample_place(&r, &s, &h.b, n.at[0], n.at[3], h.at[0], 1), 1);
	Value *sum = reduce_close(&v, reduce_close(&h, sample(&r, &h.b, image, n.at[1], &y, &x)));
	Value *all = scalar_from_index(&n.b, index_mul(&n.b, count[0], count[1]), r.t);
	results[0] = nest_close(&n, apply2(&n.b, OP_PD_DIVIDE, sum, all));
	return results[0] != NULL;
}

// The weights with which the pixels of an axis count in the parts of each region, [R x parts x
// pixels].
static Value *axis_weights(const Regions *r, const Samples *s, int axis)
{
	const Dim *most = dim_const(r->ctx, INT32_MAX), *size = r->x->type->dims[2 + axis];
	const Dim *dims[] = {r->boxes->type->dims[0], dim_const(r->ctx, pooled(r->op, axis)), size};
	Nest n = nest_open(r->b, type_tensor(r->ctx, r->t, 3, dims, 0));
	Value *at[] = {n.at[0], index_const(&n.b, axis)};
	Value *count = index_from_data(&n.b, load(&n.b, s->count, at), most, false);
	Nest v = reduce_open_counted(&n.b, "sum", r->t, most, count);
	Between p = between(r, &v.b, sample_place(r, s, &v.b, n.at[0], n.at[1], v.at[0], axis), axis);
	Value *zero = number(r, &v.b, 0), *far = tensor_sub(&v.b, number(r, &v.b, 1), p.near);
	Value *low = index_where(&v.b, index_equal(&v.b, p.low, n.at[2]), p.near, zero),
		  *high = index_where(&v.b, index_equal(&v.b, p.high, n.at[2]), far, zero);
	Value *sum = reduce_close(&v, index_where(&v.b, p.outside, zero, tensor_add(&v.b, low, high)));
	return nest_close(&n, tensor_div(&n.b, sum, scalar_from_index(&n.b, count, r->t)));
}

// d_out [R x C x parts x parts] spread over the columns, [R * parts x C * W].
static Value *spread_columns(const Regions *r, Value *weights, Value *d_out)
{
	Context *c = r->ctx;
	const Dim *const *x = r->x->type->dims, *const *out = d_out->type->dims;
	const Dim *dims[] = {out[0], out[2], x[1], x[3]},
			  *flat[] = {dim_mul(c, out[0], out[2]), dim_mul(c, x[1], x[3])};
	Nest n = nest_open(r->b, type_tensor(c, r->t, 4, dims, 0));
	Nest s = reduce_open(&n.b, "sum", r->t, 1, &out[3]);
	Value *from[] = {n.at[0], n.at[2], n.at[1], s.at[0]}, *w[] = {n.at[0], s.at[0], n.at[3]};
	Value *v = tensor_mul(&s.b, load(&s.b, d_out, from), load(&s.b, weights, w));
	return tensor_reshape(r->b, nest_close(&n, reduce_close(&s, v)), 2, flat);
}

// The weights of the rows of each image, [N x H x R * parts]: 0 for regions of other images.
static Value *image_rows(const Regions *r, Value *weights)
{
	Context *c = r->ctx;
	const Dim *const *x = r->x->type->dims, *const *w = weights->type->dims;
	const Dim *dims[] = {x[0], x[2], w[0], w[1]}, *flat[] = {x[0], x[2], dim_mul(c, w[0], w[1])};
	Nest n = nest_open(r->b, type_tensor(c, r->t, 4, dims, 0));
	Value *here = index_equal(&n.b, image_of(r, &n.b, n.at[2]), n.at[0]),
		  *from[] = {n.at[2], n.at[3], n.at[1]};
	Value *v = index_where(&n.b, here, load(&n.b, weights, from), number(r, &n.b, 0));
	return tensor_reshape(r->b, nest_close(&n, v), 3, flat);
}

// How much a pixel counts in a part is the product of how much its row and its column do: the
// gradient is two products of matrices.
bool define_hook_roi_align_back(Builder *b, Op *op, Value **results)
{
	Regions r;
	Samples s;
	if (!regions_open(&r, b, op) || !samples_of(&r, &s))
		return false;
	Value *rows = axis_weights(&r, &s, 0), *columns = axis_weights(&r, &s, 1),
		  *d_out = op_operand(op, op->noperand - 1);
	Value *across = columns ? spread_columns(&r, columns, d_out) : NULL,
		  *down = rows ? image_rows(&r, rows) : NULL;
	Value *sum = across && down ? build2(b, OP_PD_MATMUL, down, across, NULL) : NULL;
	if (!sum)
		return false;
	const Dim *const *x = r.x->type->dims, *dims[] = {x[0], x[2], x[1], x[3]};
	const int64_t perm[] = {0, 2, 1, 3};
	results[0] = tensor_transpose(b, tensor_reshape(b, sum, 4, dims), 4, perm);
	return results[0] != NULL;
}

// ---- roi_pool -----------------------------------------------------------------------------------

// The first pixel of a part of a region on an axis, and how many there are.
typedef struct Part {
	Value *first, *count;
} Part;

static Value *rounded(const Regions *r, Builder *b, Value *const *at, bool end)
{
	return apply1(b, OP_PD_ROUND, edge(r, b, at, end));
}

static Part part_of(const Regions *r, Builder *b, Value *region, Value *part, int axis)
{
	const Dim *size = r->x->type->dims[2 + axis],
			  *beyond = dim_add(r->ctx, size, dim_const(r->ctx, 1));
	Value *const at[] = {region, index_const(b, axis)};
	Value *start = rounded(r, b, at, false), *one = number(r, b, 1), *zero = number(r, b, 0);
	Value *length = apply2(b, OP_PD_ADD, apply2(b, OP_PD_SUBTRACT, rounded(r, b, at, true), start),
	                       one);
	length = apply2(b, OP_PD_MAXIMUM, length, one);
	Value *bin = apply2(b, OP_PD_DIVIDE, length, number(r, b, (double)pooled(r->op, axis)));
	Value *end = scalar_from_index(b, index_dim(b, size), r->t), *edges[2];
	for (int k = 0; k < 2; k++) {
		Value *v = apply2(b, OP_PD_MULTIPLY, scalar_from_index(b, index_plus(b, part, k), r->t),
		                  bin);
		v = apply2(b, OP_PD_ADD, apply1(b, k ? OP_PD_CEIL : OP_PD_FLOOR, v), start);
		v = apply2(b, OP_PD_MINIMUM, apply2(b, OP_PD_MAXIMUM, v, zero), end);
		edges[k] = index_from_data(b, scalar_cast(b, v, DT_I64), beyond, false);
	}
	return (Part){edges[0], index_max(b, index_sub(b, edges[1], edges[0]), index_const(b, 0))};
}

// An open reduction over the pixels of a part; `at` becomes where they are.
typedef struct Pixels {
	Nest rows, columns;
	Value *at[4];
} Pixels;

static Pixels pixels_open(const Regions *r, Nest *n, const char *kind, DType t, const Part *y,
                          const Part *x)
{
	const Dim *const *size = r->x->type->dims + 2;
	Pixels p = {.rows = reduce_open_counted(&n->b, kind, t, size[0], y->count),
	            .at = {NULL, n->at[1]}};
	p.at[2] = index_add(&p.rows.b, y->first, p.rows.at[0]);
	p.columns = reduce_open_counted(&p.rows.b, kind, t, size[1], x->count);
	p.at[3] = index_add(&p.columns.b, x->first, p.columns.at[0]);
	return p;
}

static Value *pixels_close(Pixels *p, Value *v)
{
	return reduce_close(&p->rows, reduce_close(&p->columns, v));
}

// A pixel that may be asked for where there is none, as other lanes go on.
static Value *pixel(const Regions *r, Builder *b, Value *image, Value *const *at)
{
	const Dim *const *size = r->x->type->dims, *one = dim_const(r->ctx, 1);
	Value *y = index_min(b, at[2], index_dim(b, dim_sub(r->ctx, size[2], one)));
	Value *x = index_min(b, at[3], index_dim(b, dim_sub(r->ctx, size[3], one)));
	return load(b, r->x, (Value *const[]){image, at[1], y, x});
}

bool define_hook_roi_pool(Builder *b, Op *op, Value **results)
{
	Regions r;
	if (!regions_open(&r, b, op))
		return false;
	for (int i = 0; i < 2; i++) {
		Nest n = nest_open(b, op->results[i].type);
		Value *image = image_of(&r, &n.b, n.at[0]);
		Part y = part_of(&r, &n.b, n.at[0], n.at[2], 0), x = part_of(&r, &n.b, n.at[0], n.at[3], 1);
		Value *some = apply2(&n.b, OP_PD_GREATER_THAN, index_mul(&n.b, y.count, x.count),
		                     index_const(&n.b, 0));
		Pixels p = pixels_open(&r, &n, "max", r.t, &y, &x);
		Value *v = pixels_close(&p, pixel(&r, &p.columns.b, image, p.at)),
			  *none = number(&r, &n.b, 0);
		if (i == 1) { // the first that is as large
			Pixels q = pixels_open(&r, &n, "min", DT_I64, &y, &x);
			Value *same = apply2(&q.columns.b, OP_PD_EQUAL, pixel(&r, &q.columns.b, image, q.at),
			                     v);
			Value *linear = index_mul(&q.columns.b, q.at[2],
			                          index_dim(&q.columns.b, r.x->type->dims[3]));
			linear = scalar_from_index(&q.columns.b, index_add(&q.columns.b, linear, q.at[3]),
			                           DT_I64);
			v = pixels_close(&q, index_where(&q.columns.b, same, linear,
			                                 build_scalar_f(&q.columns.b, DT_I64, 0x1p62)));
			none = build_scalar_f(&n.b, DT_I64, -1);
		}
		results[i] = nest_close(&n, index_where(&n.b, some, v, none));
	}
	return results[0] && results[1];
}

// ---- psroi_pool ---------------------------------------------------------------------------------

// Which pixels of an axis part `part` of a region covers, at least partly. Corners are whole pixels
// before they are scaled, and the last one is inside.
static Part part_with_scale(const Regions *r, Builder *b, Value *region, Value *part, int axis)
{
	const Dim *size = r->x->type->dims[2 + axis],
			  *beyond = dim_add(r->ctx, size, dim_const(r->ctx, 1));
	Value *scale = number(r, b, op_float(r->op, "spatial_scale", 1)), *corner[2], *edges[2];
	for (int k = 0; k < 2; k++) {
		Value *const at[] = {region, index_const(b, (k ? 3 : 1) - axis)};
		Value *v = apply1(b, OP_PD_ROUND, load(b, r->boxes, at));
		corner[k] = tensor_mul(b, k ? tensor_add(b, v, number(r, b, 1)) : v, scale);
	}
	Value *length = apply2(b, OP_PD_MAXIMUM, tensor_sub(b, corner[1], corner[0]),
	                       number(r, b, 0.1));
	Value *bin = tensor_div(b, length, number(r, b, (double)pooled(r->op, axis)));
	Value *end = scalar_from_index(b, index_dim(b, size), r->t);
	for (int k = 0; k < 2; k++) {
		Value *v = tensor_mul(b, bin, scalar_from_index(b, index_plus(b, part, k), r->t));
		v = apply1(b, k ? OP_PD_CEIL : OP_PD_FLOOR, tensor_add(b, v, corner[0]));
		v = apply2(b, OP_PD_MINIMUM, apply2(b, OP_PD_MAXIMUM, v, number(r, b, 0)), end);
		edges[k] = index_from_data(b, scalar_cast(b, v, DT_I64), beyond, false);
	}
	return (Part){edges[0], index_max(b, index_sub(b, edges[1], edges[0]), index_const(b, 0))};
}

bool define_hook_psroi_pool(Builder *b, Op *op, Value **results)
{
	Regions r;
	if (!regions_open(&r, b, op))
		return false;
	const Type *out = op->results[0].type;
	Nest n = nest_open(b, out);
	Value *image = image_of(&r, &n.b, n.at[0]);
	Part y = part_with_scale(&r, &n.b, n.at[0], n.at[2], 0),
		 x = part_with_scale(&r, &n.b, n.at[0], n.at[3], 1);
	Value *channel = index_linear(&n.b, 3, out->dims + 1, n.at + 1);
	Pixels p = pixels_open(&r, &n, "sum", r.t, &y, &x);
	p.at[1] = channel;
	Value *sum = pixels_close(&p, pixel(&r, &p.columns.b, image, p.at));
	Value *count = index_mul(&n.b, y.count, x.count);
	Value *some = index_less(&n.b, index_const(&n.b, 0), count);
	Value *mean = tensor_div(
		&n.b, sum, scalar_from_index(&n.b, index_max(&n.b, count, index_const(&n.b, 1)), r.t));
	results[0] = nest_close(&n, index_where(&n.b, some, mean, number(&r, &n.b, 0)));
	return results[0] != NULL;
}
