// What operators of object detection mean (ir/ops/special.yaml).
#include "ir/build/build.h"
#include "ir/build/nest.h"

#include <string.h>

// ---- YOLO head ----------------------------------------------------------------------------------

// One box of one image: which anchor it is of, and its cell.
typedef struct Cell {
	Builder *b;
	const Op *op;
	Value *x, *image, *anchor, *row, *col;
	DType t;
	int64_t anchors, fields; // of a box: x, y, w, h, confidence, classes
} Cell;

static Cell cell_open(Nest *n, const Op *op, Value *box)
{
	Value *x = op_operand(op, 0), *place[3];
	Cell c = {.b = &n->b, .op = op, .x = x, .image = n->at[0], .t = x->type->dtype};
	c.anchors = op_attr(op, "anchors")->n / 2;
	c.fields = 5 + op_int(op, "class_num", 1);
	const Dim *dims[] = {dim_const(n->b.ctx, c.anchors), x->type->dims[2], x->type->dims[3]};
	index_split(c.b, box, 3, dims, place);
	c.anchor = place[0];
	c.row = place[1];
	c.col = place[2];
	return c;
}

static Value *cell_number(const Cell *c, double v)
{
	return build_scalar_f(c->b, c->t, v);
}

static Value *cell_load(const Cell *c, Value *channel)
{
	return load(c->b, c->x, (Value *const[]){c->image, channel, c->row, c->col});
}

// Field number `field` of the box.
static Value *cell_field(const Cell *c, Value *field)
{
	// With iou_aware the first channels are the anchors' overlaps.
	int64_t skip = op_bool(c->op, "iou_aware", false) ? c->anchors : 0;
	Value *channel = index_add(c->b, index_times(c->b, c->anchor, c->fields), field);
	return cell_load(c, index_plus(c->b, channel, skip));
}

static Value *cell_sigmoid(const Cell *c, Value *v)
{
	Value *one = cell_number(c, 1), *e = apply1(c->b, OP_PD_EXP, apply1(c->b, OP_PD_NEGATIVE, v));
	return apply2(c->b, OP_PD_DIVIDE, one, tensor_add(c->b, one, e));
}

static Value *cell_confidence(const Cell *c)
{
	Value *conf = cell_sigmoid(c, cell_field(c, index_const(c->b, 4)));
	if (!op_bool(c->op, "iou_aware", false))
		return conf;
	double factor = op_float(c->op, "iou_aware_factor", 0.5);
	Value *iou = cell_sigmoid(c, cell_load(c, c->anchor));
	return tensor_mul(c->b, apply2(c->b, OP_PD_ELEMENTWISE_POW, conf, cell_number(c, 1 - factor)),
	                  apply2(c->b, OP_PD_ELEMENTWISE_POW, iou, cell_number(c, factor)));
}

// v where the box is confident enough, else 0.
static Value *cell_confident(const Cell *c, Value *conf, Value *v)
{
	Value *threshold = cell_number(c, op_float(c->op, "conf_thresh", 0));
	return index_where(c->b, apply2(c->b, OP_PD_LESS_THAN, conf, threshold), cell_number(c, 0), v);
}

// The anchors as a tensor, to be read by a computed position.
static Value *anchor_table(Builder *b, const Op *op, DType t)
{
	const Attr *a = op_attr(op, "anchors");
	int64_t n = a->n;
	Tensor *table = tensor_new(b->ctx->arena, t, 1, &n);
	for (int64_t i = 0; table && i < n; i++)
		tensor_set_f(table, i, (double)a->ints[i]);
	return table ? build_constant(b, table) : NULL;
}

// Coordinate `which` (left, top, right, bottom) of a box.
static Value *yolo_coordinate(const Cell *c, Value *which, Value *table)
{
	Builder *b = c->b;
	double scale = op_float(c->op, "scale_x_y", 1);
	const Dim *const *dims = c->x->type->dims;
	Value *two = index_const(b, 2), *axis = index_mod(b, which, two);
	Value *across = index_equal(b, axis, index_const(b, 0)), *low = index_less(b, which, two);
	Value *cell = index_where(b, across, c->col, c->row);
	Value *grid = index_where(b, across, index_dim(b, dims[3]), index_dim(b, dims[2]));
	Value *size = load(b, op_operand(c->op, 1),
	                   (Value *const[]){c->image, index_sub(b, index_const(b, 1), axis)});
	size = scalar_cast(b, size, c->t);
	Value *cells = scalar_from_index(b, grid, c->t);
	Value *centre = tensor_mul(b, cell_sigmoid(c, cell_field(c, axis)), cell_number(c, scale));
	centre = tensor_add(b, scalar_from_index(b, cell, c->t),
	                    tensor_add(b, centre, cell_number(c, -0.5 * (scale - 1))));
	centre = apply2(b, OP_PD_DIVIDE, tensor_mul(b, centre, size), cells);
	Value *anchor = load(b, table,
	                     (Value *const[]){index_add(b, index_times(b, c->anchor, 2), axis)});
	Value *whole = tensor_mul(b, cells,
	                          cell_number(c, (double)op_int(c->op, "downsample_ratio", 1)));
	Value *extent = tensor_mul(b, apply1(b, OP_PD_EXP, cell_field(c, index_plus(b, axis, 2))),
	                           anchor);
	extent = tensor_mul(b, apply2(b, OP_PD_DIVIDE, tensor_mul(b, extent, size), whole),
	                    cell_number(c, 0.5));
	Value *start = tensor_sub(b, centre, extent), *end = tensor_add(b, centre, extent);
	if (op_bool(c->op, "clip_bbox", true)) {
		start = apply2(b, OP_PD_MAXIMUM, start, cell_number(c, 0));
		end = apply2(b, OP_PD_MINIMUM, end, tensor_sub(b, size, cell_number(c, 1)));
	}
	return index_where(b, low, start, end);
}

bool define_hook_yolo_box(Builder *b, Op *op, Value **results)
{
	Value *table = anchor_table(b, op, op_operand(op, 0)->type->dtype);
	if (!table)
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Cell c = cell_open(&n, op, n.at[1]);
	results[0] = nest_close(
		&n, cell_confident(&c, cell_confidence(&c), yolo_coordinate(&c, n.at[2], table)));
	Nest s = nest_open(b, op->results[1].type);
	c = cell_open(&s, op, s.at[1]);
	Value *conf = cell_confidence(&c),
		  *score = cell_sigmoid(&c, cell_field(&c, index_plus(&s.b, s.at[2], 5)));
	results[1] = nest_close(&s, cell_confident(&c, conf, tensor_mul(&s.b, conf, score)));
	return results[0] && results[1];
}
