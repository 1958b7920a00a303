// What yolo_loss means (ir/ops/detect.yaml). x holds, for each anchor of the mask, 5 + classes
// channels: centre, logarithms of the size, objectness, classes. A true box belongs to the anchor
// whose size is most like its own, if the mask has that, and to the cell that its centre lies in.
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/detect/detect.h"

typedef struct Yolo {
	Builder *b;
	const Op *op;
	Context *ctx;
	DType t;
	Value *x, *still; // still: x, without a gradient
	Value *boxes, *labels, *scores;
	const Attr *anchors, *mask;
	int64_t classes;
	double input; // pixels of a side of the image
	const Dim *n, *m, *side, *count;
	Value *match, *width, *height; // [N x B]: place in the mask or -1, size of the anchor
	Value *owner;                  // [N x M x H x W]: the last true box of each place, or -1
} Yolo;

static Value *number(const Yolo *y, Builder *b, double v)
{
	return build_scalar_f(b, y->t, v);
}

static const Type *cells(const Yolo *y, DType t)
{
	const Dim *dims[] = {y->n, y->m, y->side, y->side};
	return type_tensor(y->ctx, t, 4, dims, 0);
}

static const Type *of_boxes(const Yolo *y, DType t)
{
	const Dim *dims[] = {y->n, y->count};
	return type_tensor(y->ctx, t, 2, dims, 0);
}

// Channel k of place m of the mask, in a cell.
static Value *field(const Yolo *y, Builder *b, Value *x, Value *const *at, Value *k)
{
	Value *channel = index_add(b, index_times(b, at[1], 5 + y->classes), k);
	return load(b, x, (Value *const[]){at[0], channel, at[2], at[3]});
}

// Number k of a true box: centre and size, in parts of the image.
static Value *truth(const Yolo *y, Builder *b, Value *n, Value *t, int k)
{
	return load(b, y->boxes, (Value *const[]){n, t, index_const(b, k)});
}

static Value *has_size(const Yolo *y, Builder *b, Value *n, Value *t)
{
	Value *least = number(y, b, 1e-6);
	return pred_and(b, apply2(b, OP_PD_GREATER_THAN, truth(y, b, n, t, 2), least),
	                apply2(b, OP_PD_GREATER_THAN, truth(y, b, n, t, 3), least));
}

// Intersection over union of boxes of two sizes that have `both` in common.
static Value *likeness(Builder *b, Value *both, Value *const *p, Value *const *q)
{
	Value *either = tensor_add(b, tensor_mul(b, p[0], p[1]), tensor_mul(b, q[0], q[1]));
	return tensor_div(b, both, tensor_sub(b, either, both));
}

static bool attributes_fit(const Yolo *y)
{
	if (y->classes < 1 || y->anchors->n < 2 || y->anchors->n % 2 || y->mask->n < 1)
		return op_error(y->op, "no classes, no anchors, or half of one");
	for (int i = 0; i < y->mask->n; i++)
		if (y->mask->ints[i] < 0 || y->mask->ints[i] >= y->anchors->n / 2)
			return op_error(y->op, "there is no anchor %lld", (long long)y->mask->ints[i]);
	return dim_is_const(y->side) || op_error(y->op, "the size of the image must be known");
}

static bool sizes_fit(const Yolo *y)
{
	const Type *x = y->x->type, *boxes = y->boxes->type, *labels = y->labels->type;
	const Dim *channels = dim_const(y->ctx, y->mask->n * (5 + y->classes)), *same;
	const Dim *const pairs[][2] = {
		{x->dims[1], channels},      {x->dims[3], y->side},
		{boxes->dims[0], y->n},      {labels->dims[0], y->n},
		{labels->dims[1], y->count}, {boxes->dims[2], dim_const(y->ctx, 4)},
	};
	static const char *const what[] = {"channels of x and those of the anchors",
	                                   "height and width",
	                                   "images",
	                                   "images",
	                                   "boxes and labels",
	                                   "numbers of a box and 4"};
	for (size_t i = 0; i < COUNT_OF(pairs); i++)
		if (!infer_same_dim(y->op, pairs[i][0], pairs[i][1], what[i], &same))
			return false;
	return true;
}

static bool yolo_open(Yolo *y, Builder *b, const Op *op)
{
	const Type *x = infer_rank(op, 0, 4), *boxes = x ? infer_rank(op, 1, 3) : NULL,
			   *labels = boxes ? infer_rank(op, 2, 2) : NULL;
	if (!labels)
		return false;
	*y = (Yolo){.b = b, .op = op, .ctx = b->ctx, .t = x->dtype, .x = op_operand(op, 0)};
	y->boxes = op_operand(op, 1);
	y->labels = op_operand(op, 2);
	y->scores = op_operand(op, 3);
	y->anchors = op_attr(op, "anchors");
	y->mask = op_attr(op, "anchor_mask");
	y->classes = op_int(op, "class_num", 1);
	y->n = x->dims[0];
	y->m = dim_const(b->ctx, y->mask->n);
	y->side = x->dims[2];
	y->count = boxes->dims[1];
	if (!attributes_fit(y))
		return false;
	y->input = (double)op_int(op, "downsample_ratio", 32) * (double)y->side->value;
	y->still = build1(b, OP_PD_ASSIGN, y->x, NULL);
	if (!y->still)
		return false;
	y->still->stop_gradient = true;
	return sizes_fit(y);
}

// ---- true boxes and their anchors ---------------------------------------------------------------

static int64_t place_in_mask(const Yolo *y, int anchor)
{
	for (int i = 0; i < y->mask->n; i++)
		if (y->mask->ints[i] == anchor)
			return i;
	return -1;
}

static bool match_anchors(Yolo *y)
{
	const Type *types[] = {of_boxes(y, DT_I32), of_boxes(y, y->t), of_boxes(y, y->t)};
	Nest n = nest_open_several(y->b, 3, types);
	Builder *b = &n.b;
	Value *size[] = {truth(y, b, n.at[0], n.at[1], 2), truth(y, b, n.at[0], n.at[1], 3)};
	Value *best = number(y, b, -1), *found[3] = {NULL}, *results[3];
	for (int a = 0; a < y->anchors->n / 2; a++) {
		Value *anchor[] = {number(y, b, (double)y->anchors->ints[2 * a] / y->input),
		                   number(y, b, (double)y->anchors->ints[2 * a + 1] / y->input)};
		Value *both = tensor_mul(b, apply2(b, OP_PD_MINIMUM, size[0], anchor[0]),
		                         apply2(b, OP_PD_MINIMUM, size[1], anchor[1]));
		Value *like = likeness(b, both, size, anchor);
		Value *own[] = {build_scalar_f(b, DT_I32, (double)place_in_mask(y, a)), anchor[0],
		                anchor[1]};
		Value *better = apply2(b, OP_PD_GREATER_THAN, like, best);
		best = index_where(b, better, like, best);
		for (int k = 0; k < 3; k++)
			found[k] = a ? index_where(b, better, own[k], found[k]) : own[k];
	}
	found[0] = index_where(b, has_size(y, b, n.at[0], n.at[1]), found[0],
	                       build_scalar_f(b, DT_I32, -1));
	if (!nest_close_several(&n, found, results))
		return false;
	y->match = results[0];
	y->width = results[1];
	y->height = results[2];
	return true;
}

static Value *is_matched(const Yolo *y, Builder *b, Value *const *at)
{
	return apply2(b, OP_PD_GREATER_EQUAL, load(b, y->match, at), build_scalar_f(b, DT_I32, 0));
}

// The cell that the centre of a true box lies in, along an axis; 0 for boxes without an anchor.
static Value *cell_of(const Yolo *y, Builder *b, Value *const *at, int axis)
{
	Value *centre = truth(y, b, at[0], at[1], axis);
	Value *cell = scalar_cast(b, tensor_mul(b, centre, number(y, b, (double)y->side->value)),
	                          DT_I64);
	cell = index_where(b, is_matched(y, b, at), cell, build_scalar_f(b, DT_I64, 0));
	return index_from_data(b, cell, y->side, false);
}

static Value *mask_place(const Yolo *y, Builder *b, Value *const *at)
{
	Value *none = build_scalar_f(b, DT_I32, 0);
	return index_from_data(b, apply2(b, OP_PD_MAXIMUM, load(b, y->match, at), none), y->m, false);
}

static Value *owners(const Yolo *y)
{
	Nest n = nest_open(y->b, cells(y, DT_I64));
	Nest r = reduce_open(&n.b, "max", DT_I64, 1, &y->count);
	Builder *b = &r.b;
	Value *at[] = {n.at[0], r.at[0]}, *here = is_matched(y, b, at);
	here = pred_and(b, here, index_equal(b, mask_place(y, b, at), n.at[1]));
	here = pred_and(b, here, index_equal(b, cell_of(y, b, at, 1), n.at[2]));
	here = pred_and(b, here, index_equal(b, cell_of(y, b, at, 0), n.at[3]));
	Value *own = scalar_from_index(b, r.at[0], DT_I64), *none = build_scalar_f(b, DT_I64, -1);
	Value *last = reduce_close(&r, index_where(b, here, own, none));
	return nest_close(&n, apply2(&n.b, OP_PD_MAXIMUM, last, build_scalar_f(&n.b, DT_I64, -1)));
}

// ---- what each place should say -----------------------------------------------------------------

// Centre and size of the box that a place predicts.
static void predicted(const Yolo *y, Builder *b, Value *const *at, Value **box)
{
	const double scale = op_float(y->op, "scale_x_y", 1);
	for (int k = 0; k < 2; k++) {
		Value *v = field(y, b, y->still, at, index_const(b, k)), *one = number(y, b, 1);
		v = apply1(b, OP_PD_EXP, apply1(b, OP_PD_NEGATIVE, v));
		v = tensor_div(b, one, tensor_add(b, one, v)); // the sigmoid
		v = tensor_add(b, tensor_mul(b, v, number(y, b, scale)), number(y, b, -0.5 * (scale - 1)));
		v = tensor_add(b, v, scalar_from_index(b, at[3 - k], y->t));
		box[k] = tensor_div(b, v, number(y, b, (double)y->side->value));
		Value *size = NULL;
		for (int i = 0; i < y->mask->n; i++) {
			const int64_t pixels = y->anchors->ints[2 * y->mask->ints[i] + k];
			Value *own = number(y, b, (double)pixels / y->input);
			size = i ? index_where(b, index_equal(b, at[1], index_const(b, i)), own, size) : own;
		}
		v = field(y, b, y->still, at, index_const(b, 2 + k));
		box[2 + k] = tensor_mul(b, apply1(b, OP_PD_EXP, v), size);
	}
}

// How much a predicted box and true box t have in common; 0 of those without a size.
static Value *overlap(const Yolo *y, Builder *b, Value *const *box, Value *n, Value *t)
{
	Value *both = NULL, *apart = NULL, *zero = number(y, b, 0), *half = number(y, b, 0.5);
	for (int k = 0; k < 2; k++) {
		Value *reach[] = {tensor_mul(b, box[2 + k], half),
		                  tensor_mul(b, truth(y, b, n, t, 2 + k), half)};
		Value *centre = truth(y, b, n, t, k);
		Value *low = apply2(b, OP_PD_MAXIMUM, tensor_sub(b, box[k], reach[0]),
		                    tensor_sub(b, centre, reach[1]));
		Value *high = apply2(b, OP_PD_MINIMUM, tensor_add(b, box[k], reach[0]),
		                     tensor_add(b, centre, reach[1]));
		Value *common = tensor_sub(b, high, low), *none = apply2(b, OP_PD_LESS_THAN, common, zero);
		both = k ? tensor_mul(b, both, common) : common;
		apart = k ? apply2(b, OP_PD_LOGICAL_OR, apart, none) : none;
	}
	Value *size[] = {truth(y, b, n, t, 2), truth(y, b, n, t, 3)};
	Value *v = likeness(b, index_where(b, apart, zero, both), box + 2, size);
	return index_where(b, has_size(y, b, n, t), v, zero);
}

static Value *score_of(const Yolo *y, Builder *b, Value *n, Value *t)
{
	return y->scores ? load(b, y->scores, (Value *const[]){n, t}) : number(y, b, 1);
}

// The score of the true box of a place; -1 where the place is near one that it is not the place of.
static Value *objectness(const Yolo *y)
{
	Nest n = nest_open(y->b, cells(y, y->t));
	Builder *b = &n.b;
	Value *box[4];
	predicted(y, b, n.at, box);
	Nest r = reduce_open(b, "max", y->t, 1, &y->count);
	Value *best = reduce_close(&r, overlap(y, &r.b, box, n.at[0], r.at[0]));
	Value *near = apply2(b, OP_PD_GREATER_THAN, best,
	                     number(y, b, op_float(y->op, "ignore_thresh", 0.7)));
	Value *owner = load(b, y->owner, n.at), *none = build_scalar_f(b, DT_I64, 0);
	Value *t = index_from_data(b, apply2(b, OP_PD_MAXIMUM, owner, none), y->count, false);
	Value *taken = apply2(b, OP_PD_GREATER_EQUAL, owner, none);
	return nest_close(&n, index_where(b, taken, score_of(y, b, n.at[0], t),
	                                  index_where(b, near, number(y, b, -1), number(y, b, 0))));
}

// ---- losses -------------------------------------------------------------------------------------

// The cross entropy of sigmoid(v) and a label.
static Value *entropy(const Yolo *y, Builder *b, Value *v, Value *label)
{
	Value *small = apply1(b, OP_PD_EXP, apply1(b, OP_PD_NEGATIVE, apply1(b, OP_PD_ABS, v)));
	Value *top = apply2(b, OP_PD_MAXIMUM, v, number(y, b, 0));
	return tensor_add(b, tensor_sub(b, top, tensor_mul(b, v, label)),
	                  apply1(b, OP_PD_LOG1P, small));
}

static Value *objectness_loss(const Yolo *y, Value *objects)
{
	Nest n = nest_open(y->b, cells(y, y->t));
	Builder *b = &n.b;
	Value *v = field(y, b, y->x, n.at, index_const(b, 4)), *o = load(b, objects, n.at);
	Value *yes = tensor_mul(b, entropy(y, b, v, number(y, b, 1)), o);
	Value *no = index_where(b, apply2(b, OP_PD_GREATER_THAN, o, number(y, b, -0.5)),
	                        entropy(y, b, v, number(y, b, 0)), number(y, b, 0));
	return nest_close(
		&n, index_where(b, apply2(b, OP_PD_GREATER_THAN, o, number(y, b, 1e-5)), yes, no));
}

// Channel k of the place of a true box. Where several have one place, only the last has a gradient.
static Value *own_field(const Yolo *y, Builder *b, Value *const *place, Value *last, Value *k)
{
	return index_where(b, last, field(y, b, y->x, place, k), field(y, b, y->still, place, k));
}

static Value *location_loss(const Yolo *y, Builder *b, Value *const *at, Value *const *place,
                            Value *last)
{
	Value *sum = NULL, *sizes[2], *one = number(y, b, 1);
	for (int k = 0; k < 2; k++) {
		Value *centre = tensor_mul(b, truth(y, b, at[0], at[1], k),
		                           number(y, b, (double)y->side->value));
		Value *want = tensor_sub(b, centre, scalar_from_index(b, place[3 - k], y->t));
		Value *loss = entropy(y, b, own_field(y, b, place, last, index_const(b, k)), want);
		sizes[k] = index_where(b, is_matched(y, b, at), truth(y, b, at[0], at[1], 2 + k), one);
		want = apply1(b, OP_PD_LOG, tensor_div(b, sizes[k], load(b, k ? y->height : y->width, at)));
		Value *v = own_field(y, b, place, last, index_const(b, 2 + k));
		loss = tensor_add(b, loss, apply1(b, OP_PD_ABS, tensor_sub(b, v, want)));
		sum = k ? tensor_add(b, sum, loss) : loss;
	}
	Value *area = tensor_mul(b, sizes[0], sizes[1]);
	return tensor_mul(b, sum, tensor_sub(b, number(y, b, 2), area));
}

static Value *class_loss(const Yolo *y, Builder *b, Value *const *at, Value *const *place,
                         Value *last)
{
	const double even = 1.0 / (double)y->classes;
	const double smooth = op_bool(y->op, "use_label_smooth", true) ? even < 0.025 ? even : 0.025
	                                                               : 0;
	const Dim *classes = dim_const(y->ctx, y->classes);
	Nest r = reduce_open(b, "sum", y->t, 1, &classes);
	Value *label = load(&r.b, y->labels, at);
	Value *mine = apply2(&r.b, OP_PD_EQUAL, scalar_cast(&r.b, label, DT_I64),
	                     scalar_from_index(&r.b, r.at[0], DT_I64));
	Value *want = index_where(&r.b, mine, number(y, &r.b, 1 - smooth), number(y, &r.b, smooth));
	Value *v = own_field(y, &r.b, place, last, index_plus(&r.b, r.at[0], 5));
	return reduce_close(&r, entropy(y, &r.b, v, want));
}

static Value *box_loss(const Yolo *y)
{
	Nest n = nest_open(y->b, of_boxes(y, y->t));
	Builder *b = &n.b;
	Value *place[] = {n.at[0], mask_place(y, b, n.at), cell_of(y, b, n.at, 1),
	                  cell_of(y, b, n.at, 0)};
	Value *last = apply2(b, OP_PD_EQUAL, load(b, y->owner, place),
	                     scalar_from_index(b, n.at[1], DT_I64));
	Value *v = tensor_add(b, location_loss(y, b, n.at, place, last),
	                      class_loss(y, b, n.at, place, last));
	v = tensor_mul(b, v, score_of(y, b, n.at[0], n.at[1]));
	return nest_close(&n, index_where(b, is_matched(y, b, n.at), v, number(y, b, 0)));
}

bool define_hook_yolo_loss(Builder *b, Op *op, Value **results)
{
	Yolo y;
	if (!yolo_open(&y, b, op) || !match_anchors(&y) || !(y.owner = owners(&y)))
		return false;
	const int64_t one = 1, rest[] = {1, 2, 3};
	Value *objects = objectness(&y);
	Value *places = objects ? objectness_loss(&y, objects) : NULL, *boxes = box_loss(&y);
	if (!places || !boxes)
		return false;
	Value *sums[] = {build1(b, OP_PD_SUM, places, "axis", attr_ints(b->ctx, 3, rest), NULL),
	                 build1(b, OP_PD_SUM, boxes, "axis", attr_ints(b->ctx, 1, &one), NULL)};
	results[0] = tensor_add(b, sums[0], sums[1]);
	results[1] = objects;
	results[2] = y.match;
	return results[0] != NULL;
}
