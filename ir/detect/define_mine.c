// Choosing the boxes that a detector is most wrong about (mine_hard_examples of
// ir/ops/detect.yaml).
#include "ir/build/build.h"
#include "ir/infer/infer.h"
#include "ir/sequence/sequence.h"

// Whether a box may be chosen: any one, or one that nothing matches, far enough from everything.
static Value *may_choose(Builder *b, const Op *op, Value *const *at)
{
	if (op_enum(op, "mining_type") == MINING_HARD_EXAMPLE)
		return build_scalar_f(b, DT_BOOL, 1);
	Value *open = apply2(b, OP_PD_EQUAL, load(b, op_operand_named(op, "match_indices"), at),
	                     build_scalar_f(b, DT_I32, -1));
	Value *dist = scalar_cast(b, load(b, op_operand_named(op, "match_dist"), at), DT_F32);
	return pred_and(b, open,
	                apply2(b, OP_PD_LESS_THAN, dist,
	                       build_scalar_f(b, DT_F32, op_number(op, "neg_dist_threshold"))));
}

// What each box costs, as f32.
static Value *costs_of(Builder *b, const Op *op)
{
	Value *costs = op_operand_named(op, "cls_loss"), *more = op_operand_named(op, "loc_loss");
	if (more && op_enum(op, "mining_type") == MINING_HARD_EXAMPLE)
		costs = tensor_add(b, costs, more);
	return tensor_cast(b, costs, DT_F32);
}

// How many boxes of an image may be chosen, i64: by the number of those that match something.
static Value *most_chosen(Builder *b, const Op *op, Value *image)
{
	if (op_enum(op, "mining_type") == MINING_HARD_EXAMPLE)
		return build_scalar_f(b, DT_I64, (double)op_int(op, "sample_size", 0));
	Value *matches = op_operand_named(op, "match_indices");
	Nest r = reduce_open(b, "sum", DT_I64, 1, &matches->type->dims[1]);
	Value *at[] = {image, r.at[0]};
	Value *some = apply2(&r.b, OP_PD_NOT_EQUAL, load(&r.b, matches, at),
	                     build_scalar_f(&r.b, DT_I32, -1));
	Value *sum = scalar_cast(b, reduce_close(&r, scalar_cast(&r.b, some, DT_I64)), DT_F32);
	Value *ratio = build_scalar_f(b, DT_F32, op_number(op, "neg_pos_ratio"));
	return scalar_cast(b, tensor_mul(b, sum, ratio), DT_I64);
}

// Which boxes are chosen: those before which, by their costs, fewer come than may be.
static Value *chosen_boxes(Builder *b, const Op *op)
{
	const Type *t = op_operand_named(op, "match_indices")->type;
	const Dim *images = t->dims[0], *boxes = t->dims[1];
	Nest e = nest_open(b, type_like(b->ctx, t, DT_BOOL));
	Value *may = nest_close(&e, may_choose(&e.b, op, e.at)), *costs = costs_of(b, op);
	Nest l = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &images, 0));
	Value *most = nest_close(&l, most_chosen(&l.b, op, l.at[0]));
	if (!may || !costs || !most)
		return NULL;
	Nest n = nest_open(b, type_like(b->ctx, t, DT_BOOL));
	Value *own = load(&n.b, costs, n.at);
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &boxes);
	Value *at[] = {n.at[0], r.at[0]}, *other = load(&r.b, costs, at);
	Value *tie = pred_and(&r.b, apply2(&r.b, OP_PD_EQUAL, other, own),
	                      index_less(&r.b, r.at[0], n.at[1]));
	Value *before = apply2(&r.b, OP_PD_LOGICAL_OR, apply2(&r.b, OP_PD_GREATER_THAN, other, own),
	                       tie);
	before = pred_and(&r.b, load(&r.b, may, at), before);
	Value *place = reduce_close(&r, scalar_cast(&r.b, before, DT_I64));
	Value *first = apply2(&n.b, OP_PD_LESS_THAN, place, load(&n.b, most, &n.at[0]));
	return nest_close(&n, pred_and(&n.b, load(&n.b, may, n.at), first));
}

// Whether the box at `at` matches something.
static Value *is_matched(Builder *b, Value *matches, Value *const *at)
{
	return apply2(b, OP_PD_GREATER_THAN, load(b, matches, at), build_scalar_f(b, DT_I32, -1));
}

// The matches without those of boxes that are not chosen, for hard examples.
static Value *matches_left(Builder *b, const Op *op, Value *chosen)
{
	Value *matches = op_operand_named(op, "match_indices");
	Nest n = nest_open(b, matches->type);
	Value *own = load(&n.b, matches, n.at);
	if (op_enum(op, "mining_type") != MINING_HARD_EXAMPLE)
		return nest_close(&n, own);
	Value *gone = pred_and(&n.b, is_matched(&n.b, matches, n.at),
	                       apply1(&n.b, OP_PD_LOGICAL_NOT, load(&n.b, chosen, n.at)));
	return nest_close(&n, index_where(&n.b, gone, build_scalar_f(&n.b, DT_I32, -1), own));
}

bool define_hook_mine_hard_examples(Builder *b, Op *op, Value **results)
{
	Value *matches = op_operand_named(op, "match_indices"), *chosen = chosen_boxes(b, op);
	const Type *t = matches->type;
	const Dim *images = t->dims[0];
	if (!chosen)
		return false;
	results[1] = matches_left(b, op, chosen);
	Nest m = nest_open(b, chosen->type);
	Value *negative = apply1(&m.b, OP_PD_LOGICAL_NOT, is_matched(&m.b, matches, m.at));
	Value *mask = nest_close(&m, pred_and(&m.b, load(&m.b, chosen, m.at), negative));
	Chosen kept = select_true(b, mask);
	Nest l = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &images, 0));
	Nest r = reduce_open(&l.b, "sum", DT_I64, 1, &t->dims[1]);
	Value *at[] = {l.at[0], r.at[0]};
	Value *counts = nest_close(&l,
	                           reduce_close(&r, scalar_cast(&r.b, load(&r.b, mask, at), DT_I64)));
	results[2] = kept.at && counts ? offsets_of_counts(b, counts) : NULL;
	if (!results[2] || !bind_rows(b, results[2], op->results[0].type->dims[0]))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *place = index_from_data(&n.b, load(&n.b, kept.at, n.at), type_numel(b->ctx, t), false);
	place = index_mod(&n.b, place, index_dim(&n.b, t->dims[1]));
	results[0] = nest_close(&n, scalar_from_index(&n.b, place, DT_I32));
	return results[0] && results[1];
}
