// What prior_box, density_prior_box, anchor_generator and box_coder mean (ir/ops/detect.yaml).
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/infer/infer.h"

#include <math.h>
#include <string.h>

static Value *table_of(Builder *b, DType t, int64_t rows, int64_t columns, const double *v)
{
	const int64_t dims[] = {rows, columns};
	Tensor *table = tensor_new(b->ctx->arena, t, columns ? 2 : 1, dims);
	for (int64_t i = 0; table && i < rows * (columns ? columns : 1); i++)
		tensor_set_f(table, i, v[i]);
	return table ? build_constant(b, table) : NULL;
}

static int float_list(const Op *op, const char *name, const double **v)
{
	const Attr *a = op_attr(op, name);
	*v = a && a->kind == ATTR_FLOATS ? a->floats : NULL;
	return *v ? a->n : 0;
}

// ---- boxes around every cell of an image --------------------------------------------------------

// The boxes of a cell: half of width and height of each, and where in a cell of which a number are
// side by side it is.
typedef struct Priors {
	int64_t n;
	double *half;   // [n x 2]
	double *within; // [n x 3]: how many are side by side, column, row; NULL: one in the centre
} Priors;

static void priors_add(Priors *p, double width, double height)
{
	p->half[2 * p->n] = width / 2;
	p->half[2 * p->n + 1] = height / 2;
	p->n++;
}

// The aspect ratios without repetitions, 1 first, and their inverses.
static int expand_ratios(Context *c, const Op *op, const double **out)
{
	const double *given;
	int n = float_list(op, "aspect_ratios", &given), m = 1;
	bool flip = op_bool(op, "flip", false);
	double *all = NEW_ARRAY(c->arena, 2 * (size_t)n + 1, double);
	all[0] = 1;
	for (int i = 0; i < n; i++) {
		bool known = false;
		for (int k = 0; k < m; k++)
			known = known || fabs(all[k] - given[i]) < 1e-6;
		if (known)
			continue;
		all[m++] = given[i];
		if (flip)
			all[m++] = 1 / given[i];
	}
	*out = all;
	return m;
}

// Boxes of prior_box, in its order.
static Priors prior_sizes(Context *c, const Op *op)
{
	const double *ratios, *min, *max;
	int nratio = expand_ratios(c, op, &ratios), nmin = float_list(op, "min_sizes", &min);
	int nmax = float_list(op, "max_sizes", &max);
	bool squares_first = op_bool(op, "min_max_aspect_ratios_order", false);
	Priors p = {.half = NEW_ARRAY(c->arena, 2 * (size_t)nmin * ((size_t)nratio + 2) + 1, double)};
	for (int s = 0; s < nmin; s++) {
		if (squares_first) {
			priors_add(&p, min[s], min[s]);
			if (s < nmax)
				priors_add(&p, sqrt(min[s] * max[s]), sqrt(min[s] * max[s]));
		}
		for (int r = 0; r < nratio; r++)
			if (!squares_first || fabs(ratios[r] - 1) >= 1e-6)
				priors_add(&p, min[s] * sqrt(ratios[r]), min[s] / sqrt(ratios[r]));
		if (!squares_first && s < nmax)
			priors_add(&p, sqrt(min[s] * max[s]), sqrt(min[s] * max[s]));
	}
	return p;
}

static Priors density_sizes(Context *c, const Op *op)
{
	const double *sizes, *ratios;
	const int64_t *dense = op_attr(op, "densities")->ints;
	int n = float_list(op, "fixed_sizes", &sizes), nratio = float_list(op, "fixed_ratios", &ratios);
	int64_t count = 0;
	for (int s = 0; s < n; s++)
		count += nratio * dense[s] * dense[s];
	Priors p = {.half = NEW_ARRAY(c->arena, 2 * (size_t)count + 1, double),
	            .within = NEW_ARRAY(c->arena, 3 * (size_t)count + 1, double)};
	for (int s = 0; s < n; s++)
		for (int r = 0; r < nratio; r++)
			for (int64_t i = 0; i < dense[s] * dense[s]; i++) {
				p.within[3 * p.n] = (double)dense[s];
				p.within[3 * p.n + 1] = (double)(i % dense[s]);
				p.within[3 * p.n + 2] = (double)(i / dense[s]);
				priors_add(&p, sizes[s] * sqrt(ratios[r]), sizes[s] / sqrt(ratios[r]));
			}
	return p;
}

static Priors anchor_sizes(Context *c, const Op *op)
{
	const double *sizes, *ratios, *stride;
	int n = float_list(op, "anchor_sizes", &sizes),
		nratio = float_list(op, "aspect_ratios", &ratios);
	float_list(op, "stride", &stride);
	Priors p = {.half = NEW_ARRAY(c->arena, 2 * (size_t)n * (size_t)nratio + 1, double)};
	for (int r = 0; r < nratio; r++)
		for (int s = 0; s < n; s++) {
			double width = round(sqrt(stride[0] * stride[1] / ratios[r])),
				   height = round(width * ratios[r]);
			priors_add(&p, sizes[s] / stride[0] * width - 1, sizes[s] / stride[1] * height - 1);
		}
	return p;
}

// The size of the image, or of the cells, on axis `across` (a condition: the horizontal one).
static Value *size_on(Builder *b, DType t, const Type *image, Value *across)
{
	return scalar_from_index(
		b, index_where(b, across, index_dim(b, image->dims[3]), index_dim(b, image->dims[2])), t);
}

static Value *pick(Builder *b, DType t, Value *across, double x, double y)
{
	return x == y ? build_scalar_f(b, t, x)
	              : index_where(b, across, build_scalar_f(b, t, x), build_scalar_f(b, t, y));
}

// The distance of two cells: as given, or what the image has for each of the cells.
static Value *step_on(Builder *b, const Op *op, DType t, Value *across)
{
	double w = op_float(op, "step_w", 0), h = op_float(op, "step_h", 0);
	if (w != 0 && h != 0)
		return pick(b, t, across, w, h);
	Value *image = size_on(b, t, op_operand(op, 1)->type, across);
	return tensor_div(b, image, size_on(b, t, op_operand(op, 0)->type, across));
}

// How far from the centre of its cell box number `at` is, on an axis: boxes of a cell stand `shift`
// apart.
static Value *density_offset(Builder *b, const Op *op, DType t, Value *within, Value *at,
                             Value *axis)
{
	Value *always = build_scalar_f(b, DT_BOOL, 1), *never = build_scalar_f(b, DT_BOOL, 0);
	Value *sum = tensor_add(b, step_on(b, op, t, always), step_on(b, op, t, never));
	Value *average = scalar_cast(b, tensor_mul(b, sum, build_scalar_f(b, t, 0.5)), DT_I32);
	Value *dense = scalar_cast(b, load(b, within, (Value *const[]){at, index_const(b, 0)}), DT_I32);
	Value *shift = scalar_cast(b, apply2(b, OP_PD_FLOOR_DIVIDE, average, dense), t);
	Value *column = load(b, within, (Value *const[]){at, index_plus(b, axis, 1)});
	Value *start = tensor_mul(b, tensor_sub(b, shift, scalar_cast(b, average, t)),
	                          build_scalar_f(b, t, 0.5));
	return tensor_add(b, start, tensor_mul(b, column, shift));
}

// Where the cell of a position (row, column, box, corner) has its centre on an axis.
static Value *cell_centre(Builder *b, const Op *op, DType t, Value *const *at, Value *across)
{
	double offset = op_float(op, "offset", 0.5);
	Value *cell = scalar_from_index(b, index_where(b, across, at[1], at[0]), t);
	if (op->code != OP_PD_ANCHOR_GENERATOR)
		return tensor_mul(b, tensor_add(b, cell, build_scalar_f(b, t, offset)),
		                  step_on(b, op, t, across));
	const double *stride;
	float_list(op, "stride", &stride);
	return tensor_add(b, tensor_mul(b, cell, pick(b, t, across, stride[0], stride[1])),
	                  pick(b, t, across, offset * (stride[0] - 1), offset * (stride[1] - 1)));
}

static Value *clamp(Builder *b, DType t, Value *v, bool low, bool high)
{
	v = low ? apply2(b, OP_PD_MAXIMUM, v, build_scalar_f(b, t, 0)) : v;
	return high ? apply2(b, OP_PD_MINIMUM, v, build_scalar_f(b, t, 1)) : v;
}

// prior_box, density_prior_box and anchor_generator.
bool define_hook_priors(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type;
	DType t = out->dtype;
	bool anchors = op->code == OP_PD_ANCHOR_GENERATOR, dense = op->code == OP_PD_DENSITY_PRIOR_BOX;
	Priors p = anchors ? anchor_sizes(b->ctx, op)
	           : dense ? density_sizes(b->ctx, op)
	                   : prior_sizes(b->ctx, op);
	const Dim *const *cells = op_operand(op, 0)->type->dims;
	const Dim *const dims[] = {cells[2], cells[3], dim_const(b->ctx, p.n), dim_const(b->ctx, 4)};
	Value *half = table_of(b, t, p.n, 2, p.half),
		  *within = p.within ? table_of(b, t, p.n, 3, p.within) : NULL;
	const double *v;
	int nv = float_list(op, "variances", &v);
	Value *variances = table_of(b, t, nv, 0, v);
	if (!half || !variances)
		return false;
	Nest n = nest_open(b, type_tensor(b->ctx, t, 4, dims, 0));
	Value *two = index_const(&n.b, 2), *axis = index_mod(&n.b, n.at[3], two),
		  *low = index_less(&n.b, n.at[3], two);
	Value *across = index_equal(&n.b, axis, index_const(&n.b, 0)),
		  *centre = cell_centre(&n.b, op, t, n.at, across);
	if (within)
		centre = tensor_add(&n.b, centre, density_offset(&n.b, op, t, within, n.at[2], axis));
	Value *extent = load(&n.b, half, (Value *const[]){n.at[2], axis});
	Value *start = tensor_sub(&n.b, centre, extent), *end = tensor_add(&n.b, centre, extent);
	if (!anchors) {
		Value *size = size_on(&n.b, t, op_operand(op, 1)->type, across);
		bool clip = op_bool(op, "clip", false);
		start = clamp(&n.b, t, tensor_div(&n.b, start, size), clip || dense, clip);
		end = clamp(&n.b, t, tensor_div(&n.b, end, size), clip, clip || dense);
	}
	results[0] = nest_close(&n, index_where(&n.b, low, start, end));
	Nest m = nest_open(b, op->results[1].type);
	results[1] = nest_close(&m, load(&m.b, variances, &m.at[m.rank - 1]));
	if (dense)
		results[0] = tensor_reshape(b, results[0], out->rank, out->dims);
	return results[0] && results[1];
}

// ---- boxes relative to others -------------------------------------------------------------------

// Corner k of box `row`, which may be of a list of lists (column).
static Value *corner(Builder *b, Value *boxes, Value *row, Value *column, Value *k)
{
	Value *const at3[] = {row, column, k}, *const at2[] = {row, k};
	return load(b, boxes, boxes->type->rank == 3 ? at3 : at2);
}

typedef struct Span {
	Value *size, *centre;
} Span;

// Size and centre of a box on an axis.
static Span span_of(Builder *b, const Op *op, Value *boxes, Value *row, Value *axis)
{
	DType t = boxes->type->dtype;
	Value *low = corner(b, boxes, row, NULL, axis),
		  *high = corner(b, boxes, row, NULL, index_plus(b, axis, 2));
	Value *size = tensor_sub(b, high, low);
	if (!op_bool(op, "box_normalized", true))
		size = tensor_add(b, size, build_scalar_f(b, t, 1));
	return (Span){size, tensor_add(b, low, tensor_mul(b, size, build_scalar_f(b, t, 0.5)))};
}

// By what field k is scaled; NULL: not at all.
static Value *variance(Builder *b, const Op *op, Value *table, Value *row, Value *k)
{
	Value *var = op_operand(op, 1);
	if (var)
		return load(b, var, (Value *const[]){row, k});
	return table ? load(b, table, &k) : NULL;
}

static Value *encode(Nest *n, const Op *op, Value *table)
{
	Builder *b = &n->b;
	Value *prior = op_operand(op, 0), *target = op_operand(op, 2), *two = index_const(b, 2);
	DType t = prior->type->dtype;
	Value *axis = index_mod(b, n->at[2], two);
	Span p = span_of(b, op, prior, n->at[1], axis), q = span_of(b, op, target, n->at[0], axis);
	// The middle between the corners, whatever belongs to a box.
	Value *ends = tensor_add(b, corner(b, target, n->at[0], NULL, axis),
	                         corner(b, target, n->at[0], NULL, index_plus(b, axis, 2)));
	Value *way = tensor_div(
		b, tensor_sub(b, tensor_mul(b, ends, build_scalar_f(b, t, 0.5)), p.centre), p.size);
	Value *growth = apply1(b, OP_PD_LOG, apply1(b, OP_PD_ABS, tensor_div(b, q.size, p.size)));
	Value *v = index_where(b, index_less(b, n->at[2], two), way, growth);
	Value *scale = variance(b, op, table, n->at[1], n->at[2]);
	return scale ? tensor_div(b, v, scale) : v;
}

static Value *decode(Nest *n, const Op *op, Value *table)
{
	Builder *b = &n->b;
	Value *prior = op_operand(op, 0), *target = op_operand(op, 2), *two = index_const(b, 2);
	DType t = prior->type->dtype;
	Value *row = n->at[op_int(op, "axis", 0) == 0 ? 1 : 0], *axis = index_mod(b, n->at[2], two);
	Span p = span_of(b, op, prior, row, axis);
	Value *far = index_plus(b, axis, 2), *way = corner(b, target, n->at[0], n->at[1], axis);
	Value *growth = corner(b, target, n->at[0], n->at[1], far);
	Value *scale = variance(b, op, table, row, axis);
	way = scale ? tensor_mul(b, scale, way) : way;
	growth = scale ? tensor_mul(b, variance(b, op, table, row, far), growth) : growth;
	Value *centre = tensor_add(b, tensor_mul(b, way, p.size), p.centre);
	Value *half = tensor_mul(b, tensor_mul(b, apply1(b, OP_PD_EXP, growth), p.size),
	                         build_scalar_f(b, t, 0.5));
	Value *end = tensor_add(b, centre, half);
	if (!op_bool(op, "box_normalized", true))
		end = tensor_sub(b, end, build_scalar_f(b, t, 1));
	return index_where(b, index_less(b, n->at[2], two), tensor_sub(b, centre, half), end);
}

bool define_hook_box_coder(Builder *b, Op *op, Value **results)
{
	const double *v;
	int n = float_list(op, "variance", &v);
	Value *table = n ? table_of(b, op->results[0].type->dtype, n, 0, v) : NULL;
	Nest nest = nest_open(b, op->results[0].type);
	const bool encodes = op_enum(op, "code_type") == BOX_CODE_ENCODE_CENTER_SIZE;
	results[0] = nest_close(&nest, encodes ? encode(&nest, op, table) : decode(&nest, op, table));
	return results[0] != NULL;
}

// ---- the box of the best class ------------------------------------------------------------------

typedef struct Assigned {
	Op *op;
	Value *prior, *scale, *delta, *score;
	DType t;
} Assigned;

// Side k of the box of row `row` relative to class `class`.
static Value *assigned_side(Builder *b, const Assigned *a, Value *row, Value *class, int k)
{
	const int axis = k % 2;
	Value *corner[2], *d[2], *one = build_scalar_f(b, a->t, 1),
							 *half = build_scalar_f(b, a->t, 0.5);
	for (int i = 0; i < 2; i++) {
		Value *from[] = {row, index_const(b, axis + 2 * i)}, *at = index_const(b, axis + 2 * i);
		Value *of[] = {row, index_plus(b, index_times(b, class, 4), axis + 2 * i)};
		corner[i] = load(b, a->prior, from);
		d[i] = tensor_mul(b, load(b, a->delta, of), load(b, a->scale, &at));
	}
	Value *most = build_scalar_f(b, a->t, op_float(a->op, "box_clip", 4.135));
	Value *size = tensor_add(b, tensor_sub(b, corner[1], corner[0]), one);
	Value *centre = tensor_add(b, corner[0], tensor_mul(b, size, half));
	centre = tensor_add(b, tensor_mul(b, d[0], size), centre);
	Value *wide = tensor_mul(b, apply1(b, OP_PD_EXP, apply2(b, OP_PD_MINIMUM, d[1], most)), size);
	wide = tensor_mul(b, wide, half);
	return k < 2 ? tensor_sub(b, centre, wide) : tensor_sub(b, tensor_add(b, centre, wide), one);
}

static Value *one_of_four(Builder *b, Value *which, Value *const *v)
{
	Value *out = v[3];
	for (int i = 2; i >= 0; i--)
		out = index_where(b, index_equal(b, which, index_const(b, i)), v[i], out);
	return out;
}

// The class of the highest score that is not the background, and whether there is one over -1.
static Value *best_class(Builder *b, const Assigned *a, Value *row, Value **some)
{
	const Dim *count = dim_sub(b->ctx, a->score->type->dims[1], dim_const(b->ctx, 1));
	Nest m = reduce_open(b, "max", a->t, 1, &count), n;
	Value *from[] = {row, index_plus(&m.b, m.at[0], 1)};
	Value *top = reduce_close(&m, load(&m.b, a->score, from));
	*some = apply2(b, OP_PD_GREATER_THAN, top, build_scalar_f(b, a->t, -1));
	n = reduce_open(b, "argmax", DT_I64, 1, &count);
	from[1] = index_plus(&n.b, n.at[0], 1);
	Value *at = reduce_close(&n, load(&n.b, a->score, from));
	return index_plus(b, index_from_data(b, at, count, false), 1);
}

bool define_hook_box_decoder_and_assign(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t[4], *scale = infer_tensor(op, 1);
	const Dim *same, *four = dim_const(c, 4);
	Assigned a = {op, op_operand(op, 0), NULL, op_operand(op, 2), op_operand(op, 3), DT_F32};
	for (int i = 0; i < 4; i++)
		if (i != 1 && !(t[i] = infer_rank(op, i, 2)))
			return false;
	if (!scale || !infer_same_dim(op, type_numel(c, scale), four, "the variances", &same) ||
	    !infer_same_dim(op, t[0]->dims[1], four, "the corners of a box", &same) ||
	    !infer_same_dim(op, t[2]->dims[0], t[0]->dims[0], "boxes", &same) ||
	    !infer_same_dim(op, t[3]->dims[0], t[0]->dims[0], "boxes", &same) ||
	    !infer_same_dim(op, t[2]->dims[1], dim_mul(c, t[3]->dims[1], four), "classes", &same))
		return false;
	if (!dim_is_const(t[3]->dims[1]) || t[3]->dims[1]->value < 2)
		return op_error(op, "there must be a class beside the background");
	a.t = t[0]->dtype;
	a.scale = tensor_reshape(b, op_operand(op, 1), 1, &four);
	Nest n = nest_open(b, t[2]), m;
	Value *v[4], *class = index_div(&n.b, n.at[1], index_const(&n.b, 4)), *some;
	for (int k = 0; k < 4; k++)
		v[k] = assigned_side(&n.b, &a, n.at[0], class, k);
	Value *which = index_mod(&n.b, n.at[1], index_const(&n.b, 4));
	results[0] = nest_close(&n, one_of_four(&n.b, which, v));
	m = nest_open(b, t[0]);
	class = best_class(&m.b, &a, m.at[0], &some);
	Value *from[] = {m.at[0], index_add(&m.b, index_times(&m.b, class, 4), m.at[1])};
	results[1] = nest_close(
		&m, index_where(&m.b, some, load(&m.b, results[0], from), load(&m.b, a.prior, m.at)));
	return results[0] && results[1];
}
