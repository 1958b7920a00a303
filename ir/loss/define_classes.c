// A softmax over many classes as a walk down a tree of decisions (hierarchical_sigmoid of
// ir/ops/loss.yaml).
#include "ir/loss/loss.h"
#include "ir/infer/infer.h"

// The tree: complete, its leaves the classes and its nodes numbered level by level from the root;
// or one that a table has the nodes and turns of each row of.
typedef struct Tree {
	Value *label, *nodes, *turns; // label i64 [rows]; nodes, turns [rows x depth] or NULL
	Value *powers;                // i64 [depth]: 2, 4, 8 ...
	int64_t classes;
} Tree;

// A step of a way from the root. Nothing but `inside` counts where it is false.
typedef struct Step {
	Value *node, *turn, *inside; // position in the weights, bool, bool
} Step;

static Value *whole(Builder *b, double v)
{
	return build_scalar_f(b, DT_I64, v);
}

// From the leaf up: step 0 is at the parent of the leaf that has the class.
static Step step_in_complete(Builder *b, const Tree *t, Value *row, Value *j, const Dim *nodes)
{
	Value *code = tensor_add(b, load(b, t->label, &row), whole(b, (double)t->classes)),
		  *power = load(b, t->powers, &j);
	Value *above = apply2(b, OP_PD_FLOOR_DIVIDE, code, power),
		  *half = apply2(b, OP_PD_FLOOR_DIVIDE, power, whole(b, 2));
	Value *inside = apply2(b, OP_PD_GREATER_THAN, above, whole(b, 0));
	Value *bit = apply2(b, OP_PD_REMAINDER, apply2(b, OP_PD_FLOOR_DIVIDE, code, half), whole(b, 2));
	Value *node = index_where(b, inside, tensor_sub(b, above, whole(b, 1)), whole(b, 0));
	return (Step){index_from_data(b, node, nodes, false),
	              apply2(b, OP_PD_NOT_EQUAL, bit, whole(b, 0)), inside};
}

// A way ends at the first number below 0.
static Step step_in_table(Builder *b, const Tree *t, Value *row, Value *j, const Dim *nodes)
{
	Value *at[] = {row, j}, *zero = whole(b, 0);
	const Dim *depth = t->nodes->type->dims[1];
	Nest r = reduce_open(b, "all", DT_BOOL, 1, &depth);
	Value *from[] = {row, r.at[0]};
	Value *here = scalar_cast(&r.b, load(&r.b, t->nodes, from), DT_I64);
	Value *later = index_less(&r.b, j, r.at[0]);
	Value *good = apply2(&r.b, OP_PD_GREATER_EQUAL, here, whole(&r.b, 0));
	Value *inside = reduce_close(&r, apply2(&r.b, OP_PD_LOGICAL_OR, later, good));
	Value *node = index_where(b, inside, scalar_cast(b, load(b, t->nodes, at), DT_I64), zero);
	Value *turn = scalar_cast(b, load(b, t->turns, at), DT_I64);
	return (Step){index_from_data(b, node, nodes, false), apply2(b, OP_PD_NOT_EQUAL, turn, zero),
	              inside};
}

static Step step_at(Builder *b, const Tree *t, Value *row, Value *j, const Dim *nodes)
{
	return t->nodes ? step_in_table(b, t, row, j, nodes) : step_in_complete(b, t, row, j, nodes);
}

// 2, 4, 8 ..: one for each level of the complete tree.
static Value *powers_of_two(Builder *b, int64_t classes)
{
	int64_t depth = 0, power = 2;
	while ((classes - 1) >> depth)
		depth++;
	Tensor *powers = tensor_new(b->ctx->arena, DT_I64, 1, &depth);
	for (int64_t i = 0; powers && i < depth; i++, power *= 2)
		tensor_set_i(powers, i, power);
	return powers ? build_constant(b, powers) : NULL;
}

// The given ways, [rows x depth], and a turn at each node of them.
static bool ways_agree(Op *op, const Dim *rows)
{
	const Type *table = infer_rank(op, 3, 2), *turns = table ? infer_rank(op, 4, 2) : NULL;
	const Dim *same;
	return turns && infer_same_dim(op, rows, table->dims[0], "numbers of rows and ways", &same) &&
	       infer_same_dim(op, table->dims[0], turns->dims[0], "numbers of ways and turns", &same) &&
	       infer_same_dim(op, table->dims[1], turns->dims[1], "lengths of ways and turns", &same);
}

static bool tree_open(Builder *b, Op *op, Tree *t)
{
	const Type *x = infer_rank(op, 0, 2), *w = x ? infer_rank(op, 1, 2) : NULL;
	const Type *label = w ? infer_tensor(op, 2) : NULL;
	Value *table = op_operand(op, 3), *turns = op_operand(op, 4);
	const Dim *same;
	int64_t classes = op_int(op, "num_classes", 2);
	if (!label || !infer_same_dim(op, x->dims[1], w->dims[1], "widths of x and the weights", &same))
		return false;
	if (!table != !turns || (!table && classes < 2) || classes > INT32_MAX)
		return op_error(op, "%lld classes, or a table of nodes without one of turns",
		                (long long)classes);
	if (table && !ways_agree(op, x->dims[0]))
		return false;
	const Dim *numel = type_numel(b->ctx, label);
	if (!infer_same_dim(op, x->dims[0], numel, "numbers of rows and labels", &same))
		return false;
	Value *flat = tensor_reshape(b, op_operand(op, 2), 1, &numel);
	*t = (Tree){.label = flat ? tensor_cast(b, flat, DT_I64) : NULL,
	            .nodes = table,
	            .turns = turns,
	            .classes = classes};
	t->powers = powers_of_two(b, table ? 2 : classes); // a table has its own steps
	return t->label && t->powers;
}

// What each step of each row weighs, [rows x depth], within 40 of 0.
static Value *tree_weights(Builder *b, const Op *op, const Tree *t)
{
	Value *x = op_operand(op, 0), *w = op_operand(op, 1), *bias = op_operand(op, 5);
	DType type = x->type->dtype;
	const Dim *dims[] = {x->type->dims[0],
	                     t->nodes ? t->nodes->type->dims[1] : t->powers->type->dims[0]};
	const Dim *nodes = w->type->dims[0], *width = x->type->dims[1];
	if (bias) {
		bias = tensor_flat(b, bias);
	}
	Nest n = nest_open(b, type_tensor(b->ctx, type, 2, dims, 0));
	Step s = step_at(&n.b, t, n.at[0], n.at[1], nodes);
	Nest r = reduce_open(&n.b, "sum", type, 1, &width);
	Value *from[] = {n.at[0], r.at[0]}, *at[] = {s.node, r.at[0]};
	Value *sum = reduce_close(&r, tensor_mul(&r.b, load(&r.b, x, from), load(&r.b, w, at)));
	if (bias)
		sum = tensor_add(&n.b, sum, load(&n.b, bias, &s.node));
	sum = index_where(&n.b, s.inside, sum, build_scalar_f(&n.b, type, 0));
	sum = apply2(&n.b, OP_PD_MAXIMUM, sum, build_scalar_f(&n.b, type, -40));
	return nest_close(&n, apply2(&n.b, OP_PD_MINIMUM, sum, build_scalar_f(&n.b, type, 40)));
}

bool define_hook_hierarchical_sigmoid(Builder *b, Op *op, Value **results)
{
	Tree t;
	if (!tree_open(b, op, &t))
		return false;
	Value *weights = tree_weights(b, op, &t);
	if (!weights)
		return false;
	DType type = weights->type->dtype;
	const Dim *nodes = op_operand(op, 1)->type->dims[0], *depth = weights->type->dims[1];
	Nest p = nest_open(b, weights->type);
	results[1] = nest_close(&p,
	                        apply1(&p.b, OP_PD_LOG,
	                               tensor_add(&p.b, build_scalar_f(&p.b, type, 1),
	                                          apply1(&p.b, OP_PD_EXP, load(&p.b, weights, p.at)))));
	if (!results[1])
		return false;
	const Dim *dims[] = {weights->type->dims[0], dim_const(b->ctx, 1)};
	Nest n = nest_open(b, type_tensor(b->ctx, type, 2, dims, 0));
	Nest r = reduce_open(&n.b, "sum", type, 1, &depth);
	Value *at[] = {n.at[0], r.at[0]}, *zero = build_scalar_f(&r.b, type, 0);
	Step s = step_at(&r.b, &t, n.at[0], r.at[0], nodes);
	results[2] = op_operand(op, 1); // the weights as they are
	// What Paddle has behind the end of a way counts, too: log 2.
	Value *turned = index_where(&r.b, s.turn, load(&r.b, weights, at), zero);
	turned = index_where(&r.b, s.inside, turned, zero);
	results[0] = nest_close(&n,
	                        reduce_close(&r, tensor_sub(&r.b, load(&r.b, results[1], at), turned)));
	return results[0] != NULL;
}
