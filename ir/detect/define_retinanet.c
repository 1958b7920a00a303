// What retinanet_detection_output means (ir/ops/detect.yaml): the best of each level become boxes
// of their image, multiclass_nms chooses among those of all levels, and the rows of each image then
// go by their scores. Places are (level, rank among the best of the level), one level behind the
// other.
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/detect/detect.h"
#include "ir/sequence/sequence.h"

#include <float.h>
#include <math.h>

typedef struct Level {
	Builder *b;
	const Op *op;
	Value *boxes, *scores, *anchors, *image; // [N x M x 4], [N x M x C], [M x 4], [N x 3]
	Chosen best;                             // positions in M * C
	const Dim *n, *m, *c, *places;
	DType t;
} Level;

static Value *number(const Level *l, Builder *b, double v)
{
	return build_scalar_f(b, l->t, v);
}

static bool level_fits(const Level *l)
{
	const Type *boxes = l->boxes->type, *scores = l->scores->type, *anchors = l->anchors->type;
	const Dim *same, *four = dim_const(l->b->ctx, 4);
	if (boxes->rank != 3 || scores->rank != 3 || anchors->rank != 2 ||
	    boxes->dtype != scores->dtype || anchors->dtype != boxes->dtype ||
	    l->image->type->rank != 2 || l->image->type->dtype != boxes->dtype)
		return op_error(l->op, "boxes, scores, anchors or image sizes do not fit");
	return infer_same_dim(l->op, boxes->dims[0], scores->dims[0], "images", &same) &&
	       infer_same_dim(l->op, boxes->dims[1], scores->dims[1], "boxes and scores", &same) &&
	       infer_same_dim(l->op, boxes->dims[1], anchors->dims[0], "boxes and anchors", &same) &&
	       infer_same_dim(l->op, boxes->dims[2], four, "corners of a box and 4", &same) &&
	       infer_same_dim(l->op, anchors->dims[1], four, "corners of an anchor and 4", &same);
}

static bool level_open(Level *l, Builder *b, const Op *op, int i, bool last)
{
	Context *c = b->ctx;
	Value **parts[] = {&l->boxes, &l->scores, &l->anchors};
	*l = (Level){.b = b, .op = op, .image = op_operand(op, 3)};
	for (int k = 0; k < 3; k++)
		if (!(*parts[k] = build1(b, OP_BUILTIN_SLICE, op_operand(op, k), "index", attr_int(c, i),
		                         NULL)))
			return false;
	if (!level_fits(l))
		return false;
	l->t = l->boxes->type->dtype;
	l->n = l->boxes->type->dims[0];
	l->m = l->boxes->type->dims[1];
	l->c = l->scores->type->dims[2];
	const Dim *all = dim_mul(c, l->m, l->c), *dims[] = {l->n, all};
	const int64_t top = op_int(op, "nms_top_k", -1);
	const double above = last ? 0 : op_float(op, "score_threshold", 0);
	l->places = top < 0 ? all : dim_min(c, all, dim_const(c, top));
	l->best = select_sorted(b, tensor_reshape(b, l->scores, 2, dims), true, &above, l->places);
	return l->best.at != NULL;
}

// Size k of an image, before it was scaled: 0 height, 1 width.
static Value *image_size(const Level *l, Builder *b, Value *n, Value *k)
{
	Value *scale = load(b, l->image, (Value *const[]){n, index_const(b, 2)});
	return apply1(b, OP_PD_ROUND, tensor_div(b, load(b, l->image, (Value *const[]){n, k}), scale));
}

// [N x places x 4]: the anchors moved by the deltas, in the image before it was scaled.
static Value *level_boxes(const Level *l)
{
	const Dim *dims[] = {l->n, l->places, dim_const(l->b->ctx, 4)};
	Nest n = nest_open(l->b, type_tensor(l->b->ctx, l->t, 3, dims, 0));
	Builder *b = &n.b;
	Value *at[2], *two = index_const(b, 2), *one = number(l, b, 1), *half = number(l, b, 2);
	const Dim *split[] = {l->m, l->c};
	index_split(b,
	            index_from_data(b, load(b, l->best.at, n.at), dim_mul(b->ctx, l->m, l->c), false),
	            2, split, at);
	Value *axis = index_mod(b, n.at[2], two), *far = index_plus(b, axis, 2);
	Value *low = load(b, l->anchors, (Value *const[]){at[0], axis});
	Value *size = tensor_add(
		b, tensor_sub(b, load(b, l->anchors, (Value *const[]){at[0], far}), low), one);
	Value *shift = load(b, l->boxes, (Value *const[]){n.at[0], at[0], axis}),
		  *growth = load(b, l->boxes, (Value *const[]){n.at[0], at[0], far});
	Value *centre = tensor_add(b, tensor_mul(b, shift, size),
	                           tensor_add(b, low, tensor_div(b, size, half)));
	Value *reach = tensor_div(b, tensor_mul(b, apply1(b, OP_PD_EXP, growth), size), half);
	Value *end = tensor_sub(b, tensor_add(b, centre, reach), one);
	Value *v = index_where(b, index_less(b, n.at[2], two), tensor_sub(b, centre, reach), end);
	v = tensor_div(b, v, load(b, l->image, (Value *const[]){n.at[0], two}));
	Value *last = tensor_sub(b, image_size(l, b, n.at[0], index_sub(b, index_const(b, 1), axis)),
	                         one);
	v = apply2(b, OP_PD_MAXIMUM, apply2(b, OP_PD_MINIMUM, v, last), number(l, b, 0));
	return nest_close(&n, v);
}

// [N x C x places]: the score of what a place holds for its class, -inf for the others.
static Value *level_scores(const Level *l)
{
	const Dim *dims[] = {l->n, l->c, l->places}, *split[] = {l->m, l->c};
	Nest n = nest_open(l->b, type_tensor(l->b->ctx, l->t, 3, dims, 0));
	Builder *b = &n.b;
	Value *at[3] = {n.at[0]}, *place[] = {n.at[0], n.at[2]};
	index_split(b,
	            index_from_data(b, load(b, l->best.at, place), dim_mul(b->ctx, l->m, l->c), false),
	            2, split, at + 1);
	Value *count = load(b, l->best.count, n.at);
	Value *there = apply2(b, OP_PD_LESS_THAN, scalar_from_index(b, n.at[2], DT_I32), count);
	there = there ? pred_and(b, there, index_equal(b, at[2], n.at[1])) : NULL;
	return nest_close(&n, index_where(b, there, load(b, l->scores, at), number(l, b, -INFINITY)));
}

// [N x most]: where the rows of each image, as multiclass_nms leaves them, stand by their scores.
static Value *rows_by_score(Builder *b, Value *rows, Value *offsets, const Dim *images)
{
	Context *c = b->ctx;
	const Dim *all = rows->type->dims[0], *dims[] = {images, all};
	Nest n = nest_open(b, type_tensor(c, rows->type->dtype, 2, dims, 0));
	Value *start = sequence_start(&n.b, offsets, n.at[0], all);
	Value *length = sequence_length(&n.b, offsets, n.at[0], all);
	Value *there = index_less(&n.b, n.at[1], length);
	Value *from[] = {index_add(&n.b, start, n.at[1]), index_const(&n.b, 1)};
	Value *none = build_scalar_f(&n.b, rows->type->dtype, -INFINITY);
	Value *scores = nest_close(&n, load_or(&n.b, there, none, rows, from));
	return select_sorted(b, scores, true, NULL, all).at;
}

static Value *rows_in_order(Builder *b, Value *rows, Value *offsets, const Dim *images)
{
	Value *order = rows_by_score(b, rows, offsets, images);
	Nest n = nest_open(b, rows->type);
	Value *image = sequence_of_row(&n.b, offsets, n.at[0]);
	Value *start = sequence_start(&n.b, offsets, image, rows->type->dims[0]);
	Value *place[] = {image, index_sub(&n.b, n.at[0], start)};
	Value *own = index_from_data(&n.b, load(&n.b, order, place), rows->type->dims[0], false);
	Value *from[] = {index_add(&n.b, start, own), n.at[1]}, *v = load(&n.b, rows, from);
	// Classes count from 1.
	Value *label = index_equal(&n.b, n.at[1], index_const(&n.b, 0));
	return nest_close(
		&n, index_where(&n.b, label,
	                    tensor_add(&n.b, v, build_scalar_f(&n.b, rows->type->dtype, 1)), v));
}

bool define_hook_retinanet_detection_output(Builder *b, Op *op, Value **results)
{
	enum { LEVELS = 64 };
	Context *c = b->ctx;
	const int levels = op_operand(op, 0)->type->nelem;
	Value *boxes[LEVELS], *scores[LEVELS];
	Level l = {.b = b};
	if (levels < 1 || levels > LEVELS || op_operand(op, 1)->type->nelem != levels ||
	    op_operand(op, 2)->type->nelem != levels)
		return op_error(op, "lists of boxes, scores and anchors of as many levels are needed");
	for (int i = 0; i < levels; i++) {
		if (!level_open(&l, b, op, i, i == levels - 1))
			return false;
		boxes[i] = level_boxes(&l);
		scores[i] = level_scores(&l);
		if (!boxes[i] || !scores[i])
			return false;
	}
	Value *operands[] = {tensor_concat(b, levels, boxes, 1), tensor_concat(b, levels, scores, 2)};
	const NamedAttr attrs[] = {
		{"score_threshold", attr_float(c, -FLT_MAX)},
		{"nms_top_k", attr_int(c, -1)},
		{"keep_top_k", op_attr_or_default(op, "keep_top_k")},
		{"nms_threshold", op_attr_or_default(op, "nms_threshold")},
		{"nms_eta", op_attr_or_default(op, "nms_eta")},
		{"normalized", attr_bool(c, false)},
		{"background_label", attr_int(c, -1)},
	};
	Op *chosen = operands[0] && operands[1]
	                 ? build_op(b, OP_PD_MULTICLASS_NMS3, 2, operands, COUNT_OF(attrs), attrs)
	                 : NULL;
	if (!chosen)
		return false;
	Value *rows = op_result(chosen, 0), *offsets = op_result(chosen, 3);
	results[0] = rows_in_order(b, rows, offsets, l.n);
	results[1] = offsets;
	return results[0] != NULL;
}
