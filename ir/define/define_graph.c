// Messages along the edges of graphs, and pooling of segments (ir/ops/graph.yaml): types and
// meaning.
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "ir/infer/infer.h"
#include "ir/define/define.h"

#include <math.h>
#include <string.h>
#include <strings.h>

// x and y with as many axes, ones behind the first where one has less.
static bool aligned(Builder *b, Value **x, Value **y)
{
	Value **less = (*x)->type->rank < (*y)->type->rank ? x : y;
	int rank = (*x)->type->rank > (*y)->type->rank ? (*x)->type->rank : (*y)->type->rank,
		have = (*less)->type->rank;
	const Dim *dims[MAX_RANK];
	if (have == rank)
		return true;
	dims[0] = (*less)->type->dims[0];
	for (int d = 1; d < rank; d++)
		dims[d] = d < rank - have + 1 ? dim_const(b->ctx, 1) : (*less)->type->dims[d - rank + have];
	return (*less = tensor_reshape(b, *less, rank, dims)) != NULL;
}

// What an edge says of x and y, which have a row for each edge.
static Value *message(Builder *b, const Op *op, Value *x, Value *y)
{
	if (!x || !y || !aligned(b, &x, &y))
		return NULL;
	return op_enum(op, "message_op") == MESSAGE_ADD ? tensor_add(b, x, y) : tensor_mul(b, x, y);
}

bool define_hook_send_uv(Builder *b, Op *op, Value **results)
{
	if (!infer_rank(op, 2, 1) || !infer_rank(op, 3, 1))
		return false;
	results[0] = message(b, op, tensor_rows(b, op_operand(op, 0), op_operand(op, 2)),
	                     tensor_rows(b, op_operand(op, 1), op_operand(op, 3)));
	return results[0] != NULL;
}

// The dims of messages: those of x, broadcast with what edges have.
static bool message_dims(const Op *op, const Type *x, const Type *y, int *rank, const Dim **shape)
{
	*rank = x->rank;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	if (!y)
		return true;
	if (!infer_broadcast_open(op, x->rank - 1, x->dims + 1, y->rank - 1, y->dims + 1, rank,
	                          shape + 1))
		return false;
	++*rank;
	return true;
}

// Whether operands `source` and the next name the nodes at both ends of each edge.
static bool edges_fit(Op *op, int source)
{
	const Dim *same;
	const Type *from = infer_rank(op, source, 1), *to = from ? infer_rank(op, source + 1, 1) : NULL;
	return to && infer_same_dim(op, from->dims[0], to->dims[0], "sources and ends of edges", &same);
}

// How many nodes get messages: as many as `out_size` says, else those of x. NULL: a run says it.
static const Dim *nodes_count(Op *op, const Type *x, int operand)
{
	const Dim *size;
	const int n = infer_resolve(op, "out_size", &size, 1);
	if (n < 0 && op_operand(op, operand))
		return NULL;
	return n == 1 && !(dim_is_const(size) && size->value <= 0) ? size : x->dims[0];
}

bool infer_hook_graph(Op *op)
{
	bool edges = op->code == OP_PD_SEND_UE_RECV;
	const Type *x = infer_tensor(op, 0), *y = x && edges ? infer_tensor(op, 1) : NULL;
	const Dim *shape[MAX_RANK] = {NULL};
	int rank;
	if (!x || (edges && !y))
		return false;
	if (x->rank < 1 || (y && y->rank < 1))
		return op_error(op, "operands need an axis of nodes and of edges");
	if (!edges_fit(op, 1 + edges) || !message_dims(op, x, y, &rank, shape))
		return false;
	shape[0] = nodes_count(op, x, 3 + edges);
	return shape[0] && infer_result_shape(op, 0, x->dtype, rank, shape) &&
	       infer_result_shape(op, 1, DT_I32, 1, shape);
}

// Of the messages whose end is row at[0] the sum, the largest or the smallest, and how many there
// are.
static Value *received(Nest *n, Value *messages, Value *ends, const Dim *nodes, const char *kind,
                       Value **count)
{
	DType t = messages->type->dtype;
	const Dim *edges = messages->type->dims[0];
	Value *from[MAX_RANK];
	memcpy(from, n->at, sizeof from);
	Nest s = reduce_open(&n->b, "sum", DT_I32, 1, &edges);
	Value *here = index_equal(&s.b, index_from_data(&s.b, load(&s.b, ends, s.at), nodes, false),
	                          n->at[0]);
	*count = reduce_close(&s, scalar_cast(&s.b, here, DT_I32));
	bool sum = !strcmp(kind, "sum");
	Nest r = reduce_open(&n->b, kind, t, 1, &edges);
	from[0] = r.at[0];
	here = index_equal(&r.b, index_from_data(&r.b, load(&r.b, ends, r.at), nodes, false), n->at[0]);
	Value *other = build_scalar_f(&r.b, t, 0);
	if (!sum) { // what is never chosen: the other end of the range
		double most = dtype_is_float(t) ? (double)INFINITY : t == DT_I32 ? 2147483647.0 : 9.2e18;
		other = build_scalar_f(&r.b, t, !strcmp(kind, "max") ? -most : most);
	}
	Value *v = reduce_close(&r, load_or(&r.b, here, other, messages, from));
	Value *none = apply2(&n->b, OP_PD_EQUAL, *count, build_scalar_f(&n->b, DT_I32, 0));
	return sum ? v : index_where(&n->b, none, build_scalar_f(&n->b, t, 0), v);
}

// The reduction of the rows of `messages` whose end is each row of the result.
static bool receive(Builder *b, ReceiveKind how, Value *messages, Value *ends, const Type *out,
                    Value **result)
{
	const bool mean = how == RECEIVE_MEAN;
	const char *kind = how == RECEIVE_MAX ? "max" : how == RECEIVE_MIN ? "min" : "sum";
	Value *count;
	Nest n = nest_open(b, out);
	Value *v = received(&n, messages, ends, out->dims[0], kind, &count);
	if (mean) {
		Value *some = apply2(&n.b, OP_PD_MAXIMUM, count, build_scalar_f(&n.b, DT_I32, 1));
		v = tensor_div(&n.b, v, scalar_cast(&n.b, some, out->dtype));
	}
	return (*result = nest_close(&n, v)) != NULL;
}

bool define_hook_graph(Builder *b, Op *op, Value **results)
{
	bool edges = op->code == OP_PD_SEND_UE_RECV;
	Value *messages = tensor_rows(b, op_operand(op, 0), op_operand(op, 1 + edges)),
		  *ends = op_operand(op, 2 + edges);
	if (edges)
		messages = message(b, op, messages, op_operand(op, 1));
	if (!messages || !receive(b, (ReceiveKind)op_enum(op, "reduce_op"), messages, ends,
	                          op->results[0].type, &results[0]))
		return false;
	Nest n = nest_open(b, op->results[1].type);
	Nest s = reduce_open(&n.b, "sum", DT_I32, 1, ends->type->dims);
	Value *at = index_from_data(&s.b, load(&s.b, ends, s.at), op->results[1].type->dims[0], false);
	results[1] = nest_close(
		&n, reduce_close(&s, scalar_cast(&s.b, index_equal(&s.b, at, n.at[0]), DT_I32)));
	return results[1] != NULL;
}

bool infer_hook_segment_pool(Op *op)
{
	const Type *x = infer_tensor(op, 0), *ids = x ? infer_tensor(op, 1) : NULL;
	const Dim *shape[MAX_RANK], *same;
	if (!ids)
		return false;
	if (x->rank < 1 || ids->rank < 1)
		return op_error(op, "rows and their segments are needed");
	if (!infer_same_dim(op, x->dims[0], ids->dims[0], "rows and their segments", &same))
		return false;
	memcpy(shape, x->dims, sizeof shape[0] * (size_t)x->rank);
	shape[0] = infer_found_size(op, NULL);
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

// As many rows as the last number says.
bool define_hook_segment_pool(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *out = op->results[0].type;
	const Dim *rows = op_operand(op, 0)->type->dims[0];
	Value *ids = tensor_reshape(b, op_operand(op, 1), 1, &rows);
	if (!ids)
		return false;
	Nest n = nest_open(b, type_tensor(c, DT_I64, 0, NULL, 0));
	Value *last = index_dim(&n.b, dim_sub(c, rows, dim_const(c, 1)));
	Value *number = index_from_data(&n.b, load(&n.b, ids, &last), dim_const(c, INT32_MAX), false);
	Value *count = nest_close(&n, scalar_from_index(&n.b, index_plus(&n.b, number, 1), DT_I64));
	return bind_size(b, count, out->dims[0]) && receive(b, (ReceiveKind)op_enum(op, "pooltype"),
	                                                    op_operand(op, 0), ids, out, &results[0]);
}

// ---- trees --------------------------------------------------------------------------------------

enum { FIRST_CHILD = 3 }; // the column of tree_info behind an item, a layer and a parent

// Whether column `column` of a node is not 0.
static Value *tree_has(Builder *b, Value *tree, Value *node, int64_t column)
{
	Value *at[] = {node, index_const(b, column)};
	return apply2(b, OP_PD_NOT_EQUAL, scalar_cast(b, load(b, tree, at), DT_I64),
	              build_scalar_f(b, DT_I64, 0));
}

bool define_hook_tdm_child(Builder *b, Op *op, Value **results)
{
	const Type *x = infer_tensor(op, 0), *tree = x ? infer_rank(op, 1, 2) : NULL;
	const int64_t children = op_int(op, "child_nums", 0);
	const DType t = op_dtype(op, "dtype", DT_I32);
	const Dim *dims[MAX_RANK];
	if (!tree || x->rank + 1 > MAX_RANK || children < 1 || !dim_is_const(tree->dims[1]) ||
	    tree->dims[1]->value < children + FIRST_CHILD)
		return tree && op_error(op, "%lld children, which the columns of tree_info do not hold",
		                        (long long)children);
	for (int d = 0; d < x->rank; d++)
		dims[d] = x->dims[d];
	dims[x->rank] = dim_const(b->ctx, children);
	const Type *out = type_tensor(b->ctx, t, x->rank + 1, dims, 0), *types[] = {out, out};
	Nest n = nest_open_several(b, 2, types);
	Value *node = index_from_data(&n.b, load(&n.b, op_operand(op, 0), n.at), tree->dims[0], false);
	Value *tree_info = op_operand(op, 1), *none = build_scalar_f(&n.b, DT_I64, 0);
	Value *has = pred_and(&n.b, index_less(&n.b, index_const(&n.b, 0), node),
	                      tree_has(&n.b, tree_info, node, FIRST_CHILD));
	Value *own[] = {node, index_plus(&n.b, n.at[x->rank], FIRST_CHILD)};
	Value *child = scalar_cast(&n.b, load(&n.b, tree_info, own), DT_I64);
	child = index_where(&n.b, has, child, none);
	Value *place = index_from_data(&n.b, child, tree->dims[0], false);
	Value *leaf = pred_and(&n.b, has, tree_has(&n.b, tree_info, place, 0));
	Value *const elements[] = {scalar_cast(&n.b, child, t), scalar_cast(&n.b, leaf, t)};
	return nest_close_several(&n, elements, results);
}
