// Parts of transformers as one operator each (ir/ops/fusion.yaml): types and meaning.
#include "ir/fusion/fusion.h"

#include <math.h>
#include <string.h>

// ---- embeddings ---------------------------------------------------------------------------------

// Ids may have a last axis of 1.
static Value *plain_ids(Builder *b, Value *ids)
{
	const Type *t = ids->type;
	return t->rank == 3 && dim_is(t->dims[2], 1) ? tensor_reshape(b, ids, 2, t->dims) : ids;
}

bool define_hook_embeddings_normalised(Builder *b, Op *op, Value **results)
{
	Value *const *ids, *const *tables, *sum = NULL;
	int n = op_operand_list(op, 0, &ids);
	if (op_operand_list(op, 1, &tables) != n || n < 1)
		return op_error(op, "as many ids as tables are needed");
	for (int i = 0; i < n; i++) {
		Value *at = plain_ids(b, ids[i]);
		Value *rows = at ? build2(b, OP_PD_EMBEDDING, at, tables[i], NULL) : NULL;
		if (!rows)
			return false;
		sum = sum ? tensor_add(b, sum, rows) : rows;
	}
	results[0] = sum ? rows_normalised(b, sum, op_operand(op, 3), op_operand(op, 2),
	                                   op_float(op, "epsilon", 1e-5), sum->type->rank - 1)
	                 : NULL;
	return results[0] != NULL;
}

// ---- attention ----------------------------------------------------------------------------------

// Of heads [batch, heads, length, width]: softmax(q k^T alpha + mask) v.
static Value *attention(Builder *b, Value *q, Value *k, Value *v, double alpha, Value *mask)
{
	Context *c = b->ctx;
	if (!q || !k || !v)
		return NULL;
	Value *score = build2(b, OP_PD_MATMUL, q, k, "transpose_y", attr_bool(c, true), NULL);
	score = score ? tensor_mul(b, score, tensor_number(b, score->type->dtype, alpha)) : NULL;
	if (mask)
		score = tensor_add(b, score, mask);
	Value *soft = soft_weights(b, score);
	return soft ? build2(b, OP_PD_MATMUL, soft, v, NULL) : NULL;
}

// [batch, heads, length, width] as [batch, length, heads * width].
static Value *heads_joined(Builder *b, Value *x)
{
	static const int64_t perm[] = {0, 2, 1, 3};
	if (!x)
		return NULL;
	const Dim *const *d = x->type->dims, *dims[] = {d[0], d[2], dim_mul(b->ctx, d[1], d[3])};
	Value *turned = tensor_transpose(b, x, 4, perm);
	return turned ? tensor_reshape(b, turned, 3, dims) : NULL;
}

// Part k of x [batch, length, 3, heads, width], as heads.
static Value *heads_of_part(Builder *b, Value *x, int k)
{
	const Dim *const *d = x->type->dims, *dims[] = {d[0], d[3], d[1], d[4]};
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, 4, dims, 0));
	Value *from[] = {n.at[0], n.at[2], index_const(&n.b, k), n.at[1], n.at[3]};
	return nest_close(&n, load(&n.b, x, from));
}

// Attention between the three parts of x [batch, length, 3, heads, width].
static Value *attention_of_parts(Builder *b, Value *x, double alpha, Value *mask)
{
	Value *heads[3];
	for (int i = 0; i < 3; i++)
		heads[i] = heads_of_part(b, x, i);
	return heads_joined(b, attention(b, heads[0], heads[1], heads[2], alpha, mask));
}

bool define_hook_self_dp_attention(Builder *b, Op *op, Value **results)
{
	const Type *t = infer_rank(op, 0, 5);
	const Dim *same;
	if (!t || !infer_same_dim(op, t->dims[2], dim_const(b->ctx, 3), "query, key and value", &same))
		return false;
	Value *out = attention_of_parts(b, op_operand(op, 0), op_float(op, "alpha", 1), NULL);
	const Dim *dims[] = {t->dims[0], t->dims[1], t->dims[3], t->dims[4]};
	results[0] = out ? tensor_reshape(b, out, 4, dims) : NULL;
	return results[0] != NULL;
}

bool define_hook_multihead_matmul(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *t = infer_rank(op, 0, 3), *w = t ? infer_tensor(op, 1) : NULL;
	int64_t heads = op_int(op, "head_number", 1);
	if (!w)
		return false;
	const Dim *wide = t->dims[2], *three = dim_mul(c, wide, dim_const(c, 3));
	if (heads < 1 || !dim_is_const(wide) || wide->value % heads)
		return op_error(op, "the width is no multiple of %lld heads", (long long)heads);
	const Dim *matrix[] = {wide, three},
			  *split[] = {t->dims[0], t->dims[1], dim_const(c, 3), dim_const(c, heads),
	                      dim_const(c, wide->value / heads)};
	Value *flat = tensor_reshape(b, op_operand(op, 1), 2, matrix),
		  *bias = tensor_reshape(b, op_operand(op, 2), 1, &three);
	Value *sum = flat && bias ? build2(b, OP_PD_MATMUL, op_operand(op, 0), flat, NULL) : NULL;
	sum = sum ? tensor_add(b, sum, bias) : NULL;
	Value *parts = sum ? tensor_reshape(b, sum, 5, split) : NULL;
	results[0] = parts ? attention_of_parts(b, parts, op_float(op, "alpha", 1), op_operand(op, 3))
	                   : NULL;
	return results[0] != NULL;
}

// x [batch, length, some, width] as [batch, heads, length, width]; each stands for several heads.
static Value *heads_in_front(Builder *b, Op *op, Value *x, const Dim *heads)
{
	const Type *t = x->type;
	const Dim *dims[] = {t->dims[0], heads, t->dims[1], t->dims[3]};
	int64_t each = 1;
	if (t->dims[2] != heads) {
		if (!dim_is_const(heads) || !dim_is_const(t->dims[2]) || t->dims[2]->value < 1 ||
		    heads->value % t->dims[2]->value) {
			op_error(op, "the heads of keys do not go into those of queries");
			return NULL;
		}
		each = heads->value / t->dims[2]->value;
	}
	Nest n = nest_open(b, type_tensor(b->ctx, t->dtype, 4, dims, 0));
	Value *from[] = {n.at[0], n.at[2], index_div(&n.b, n.at[1], index_const(&n.b, each)), n.at[3]};
	return nest_close(&n, load(&n.b, x, from));
}

// -infinity where a query does not see a key.
static Value *causal_mask(Builder *b, DType t, const Dim *queries, const Dim *keys)
{
	const Dim *dims[] = {queries, keys};
	Nest n = nest_open(b, type_tensor(b->ctx, t, 2, dims, 0));
	Value *last = index_add(&n.b, n.at[0], index_dim(&n.b, keys)),
		  *at = index_add(&n.b, n.at[1], index_dim(&n.b, queries));
	return nest_close(&n,
	                  index_where(&n.b, index_less(&n.b, last, at),
	                              build_scalar_f(&n.b, t, -INFINITY), build_scalar_f(&n.b, t, 0)));
}

bool define_hook_flash_attn(Builder *b, Op *op, Value **results)
{
	static const int64_t perm[] = {0, 2, 1, 3};
	const Type *t[3];
	Value *heads[3], *mask = op_operand(op, 3);
	for (int i = 0; i < 3; i++)
		if (!(t[i] = infer_rank(op, i, 4)))
			return false;
	if (op_float(op, "dropout", 0) != 0 && !op_bool(op, "is_test", false))
		return op_error(op, "dropout in training is not supported");
	if (!dim_is_const(t[0]->dims[3]))
		return op_error(op, "the width of heads must be known");
	for (int i = 0; i < 3; i++)
		if (!(heads[i] = heads_in_front(b, op, op_operand(op, i), t[0]->dims[2])))
			return false;
	if (op_bool(op, "causal", false)) {
		Value *before = causal_mask(b, t[0]->dtype, t[0]->dims[1], t[1]->dims[1]);
		mask = mask && before ? tensor_add(b, mask, before) : before;
	}
	Value *out = attention(b, heads[0], heads[1], heads[2], 1 / sqrt((double)t[0]->dims[3]->value),
	                       mask);
	results[0] = out ? tensor_transpose(b, out, 4, perm) : NULL;
	return results[0] != NULL;
}

// ---- layers -------------------------------------------------------------------------------------

static bool is_kept(Op *op, double rate)
{
	if (rate == 0 || op_bool(op, "is_test", false))
		return true;
	return op_error(op, "dropout in training is not supported");
}

// What dropout does at inference.
static Value *dropped(Builder *b, const Op *op, Value *x, const char *rate, const char *how)
{
	double left = 1 - op_float(op, rate, 0);
	if (!x || op_enum(op, how) == DROPOUT_UPSCALE_IN_TRAIN || left == 1)
		return x;
	return tensor_mul(b, x, tensor_number(b, x->type->dtype, left));
}

// Over the last axis, by the operands NAME_scale and NAME_bias of op.
static Value *normalised(Builder *b, const Op *op, Value *x, const char *name, const char *epsilon)
{
	const char *scale = arena_printf(b->ctx->arena, "%s_scale", name),
			   *bias = arena_printf(b->ctx->arena, "%s_bias", name);
	return x ? rows_normalised(b, x, op_operand_named(op, scale), op_operand_named(op, bias),
	                           op_float(op, epsilon, 1e-5), x->type->rank - 1)
	         : NULL;
}

static Value *linear(Builder *b, Value *x, Value *w, Value *bias)
{
	Value *out = x && w ? build2(b, OP_PD_MATMUL, x, w, NULL) : NULL;
	return out && bias ? tensor_add(b, out, bias) : out;
}

static Value *function_named(Builder *b, const Op *op, Value *x)
{
	switch ((ActMethodKind)op_enum(op, "act_method")) {
	case ACT_METHOD_RELU: return apply1(b, OP_PD_RELU, x);
	case ACT_METHOD_SWIGLU: return apply1(b, OP_PD_SILU, x);
	default: return apply1(b, OP_PD_GELU, x);
	}
}

bool define_hook_fused_feedforward(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *in = x;
	bool before = op_bool(op, "pre_layer_norm", false), adds = op_bool(op, "add_residual", true);
	if (!is_kept(op, op_float(op, "dropout1_rate", 0.5)) ||
	    !is_kept(op, op_float(op, "dropout2_rate", 0.5)))
		return false;
	if (before)
		in = normalised(b, op, x, "ln1", "ln1_epsilon");
	Value *inner = linear(b, in, op_operand_named(op, "linear1_weight"),
	                      op_operand_named(op, "linear1_bias"));
	inner = inner ? function_named(b, op, inner) : NULL;
	inner = dropped(b, op, inner, "dropout1_rate", "dropout1_implementation");
	Value *out = linear(b, inner, op_operand_named(op, "linear2_weight"),
	                    op_operand_named(op, "linear2_bias"));
	out = dropped(b, op, out, "dropout2_rate", "dropout2_implementation");
	out = out && adds ? tensor_add(b, x, out) : out;
	results[0] = before ? out : normalised(b, op, out, "ln2", "ln2_epsilon");
	return results[0] != NULL;
}

// How many heads there are, and their size, as attribute or weight say.
static bool heads_read(Op *op, bool plain, const Dim **count, const Dim **size)
{
	Context *c = op->ctx;
	const Type *t = infer_tensor(op, op_info_operand(op->info, "qkv_weight"));
	int64_t heads = op_int(op, "num_heads", 0);
	if (!t || t->rank != (plain ? 2 : 4))
		return t && op_error(op, "a weight of another rank");
	if (!plain) {
		*count = t->dims[1];
		*size = t->dims[2];
		return true;
	}
	if (heads < 1 || !dim_is_const(t->dims[0]) || t->dims[0]->value % heads)
		return op_error(op, "the width is no multiple of %lld heads", (long long)heads);
	*count = dim_const(c, heads);
	*size = dim_const(c, t->dims[0]->value / heads);
	return true;
}

// Query, key and value of x, [batch, length, 3, heads, size].
static Value *attention_parts(Builder *b, Op *op, Value *x)
{
	Context *c = b->ctx;
	const bool plain = op_bool(op, "transpose_qkv_wb", false);
	Value *w = op_operand_named(op, "qkv_weight"), *bias = op_operand_named(op, "qkv_bias");
	const Dim *three = dim_const(c, 3), *const * from, *count = NULL, *size = NULL;
	if (!x || !heads_read(op, plain, &count, &size))
		return NULL;
	from = x->type->dims;
	const Dim *all = dim_mul(c, three, dim_mul(c, count, size)), *matrix[] = {all, from[2]},
			  *split[] = {from[0], from[1], three, count, size};
	Value *flat = plain ? w : tensor_reshape(b, w, 2, matrix);
	Value *sum = flat ? build2(b, OP_PD_MATMUL, x, flat, "transpose_y", attr_bool(c, !plain), NULL)
	                  : NULL;
	if (sum && bias)
		sum = tensor_add(b, sum, tensor_reshape(b, bias, 1, &all));
	return sum ? tensor_reshape(b, sum, 5, split) : NULL;
}

bool define_hook_fused_attention(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *in = x;
	bool before = op_bool(op, "pre_layer_norm", false), adds = op_bool(op, "add_residual", true);
	double rate = op_float(op, "attn_dropout_rate", 0.5);
	if (!infer_rank(op, 0, 3) || !is_kept(op, rate) ||
	    !is_kept(op, op_float(op, "dropout_rate", 0.5)))
		return false;
	if (before)
		in = normalised(b, op, x, "ln", "epsilon");
	Value *parts = attention_parts(b, op, in);
	const Dim *size = parts ? parts->type->dims[4] : NULL;
	if (!parts || !dim_is_const(size))
		return parts && op_error(op, "the width of heads must be known");
	Value *out = attention_of_parts(b, parts, 1 / sqrt((double)size->value),
	                                op_operand_named(op, "src_mask"));
	// What dropout makes smaller in the weights of a sum, it makes smaller in the sum.
	out = dropped(b, op, out, "attn_dropout_rate", "attn_dropout_implementation");
	out = linear(b, out, op_operand_named(op, "out_linear_weight"),
	             op_operand_named(op, "out_linear_bias"));
	out = dropped(b, op, out, "dropout_rate", "dropout_implementation");
	out = out && adds ? tensor_add(b, x, out) : out;
	results[0] = before ? out : normalised(b, op, out, "ln2", "ln_epsilon");
	return results[0] != NULL;
}

bool define_hook_fused_bias_act(Builder *b, Op *op, Value **results)
{
	const ActMethodKind how = (ActMethodKind)op_enum(op, "act_method");
	const Type *t = infer_tensor(op, 0);
	Value *x = op_operand(op, 0), *bias = op_operand(op, 1), *parts[2] = {NULL};
	if (!t || t->rank < 1)
		return t && op_error(op, "no axis");
	parts[0] = bias ? tensor_add(b, x, bias) : x;
	if (parts[0] && (how == ACT_METHOD_SWIGLU || how == ACT_METHOD_GEGLU) &&
	    !last_halves(b, op, parts[0], parts))
		return false;
	x = parts[0] ? function_named(b, op, parts[0]) : NULL;
	results[0] = parts[1] ? tensor_mul(b, x, parts[1]) : x;
	return results[0] != NULL;
}

// ---- positions as angles ------------------------------------------------------------------------

// The element of sin or cos for a position of x.
static Value *angle_at(Builder *b, Op *op, const Nest *n, Value *table, Value *column)
{
	const Type *t = table->type;
	Value *ids = op_operand_named(op, "position_ids"), *row = n->at[1], *from[4];
	int last = t->rank - 1;
	if (ids)
		row = index_from_data(b, load(b, ids, n->at), t->dims[t->rank == 2 ? 0 : 1], false);
	for (int d = 0; d < t->rank; d++)
		from[d] = index_const(b, 0);
	from[t->rank == 2 ? 0 : 1] = row;
	from[last] = column;
	return load(b, table, from);
}

static bool check_angles(Op *op, const Type *q, const char *name)
{
	const Type *t = infer_tensor(op, op_info_operand(op->info, name));
	const Dim *same;
	if (!t || (t->rank != 2 && (t->rank != 4 || !dim_is(t->dims[0], 1) || !dim_is(t->dims[2], 1))))
		return op_error(op, "%s must be [1, length, 1, width] or [length, width]", name);
	return infer_same_dim(op, t->dims[t->rank - 1], q->dims[3], "widths", &same) &&
	       (op_operand_named(op, "position_ids") ||
	        infer_same_dim(op, t->dims[t->rank == 2 ? 0 : 1], q->dims[1], "lengths", &same));
}

static Value *turned(Builder *b, Op *op, Value *x)
{
	const bool neighbours = op_bool(op, "use_neox_rotary_style", true);
	Nest n = nest_open(b, x->type);
	Value *size = index_const(&n.b, neighbours ? 2 : x->type->dims[3]->value), *partner[4];
	int64_t step = neighbours ? 1 : x->type->dims[3]->value / 2;
	memcpy(partner, n.at, sizeof partner);
	Value *first = index_less(&n.b, index_mod(&n.b, n.at[3], size), index_const(&n.b, step));
	partner[3] = index_where(
		&n.b, first, index_plus(&n.b, n.at[3], step),
		index_max(&n.b, index_plus(&n.b, n.at[3], -step), index_const(&n.b, 0)));
	partner[3] = index_min(&n.b, partner[3], index_const(&n.b, x->type->dims[3]->value - 1));
	Value *sin = angle_at(&n.b, op, &n, op_operand_named(op, "sin"), n.at[3]),
		  *cos = angle_at(&n.b, op, &n, op_operand_named(op, "cos"), n.at[3]);
	Value *other = tensor_mul(&n.b, load(&n.b, x, partner), sin);
	other = index_where(&n.b, first, apply1(&n.b, OP_PD_NEGATIVE, other), other);
	return nest_close(&n, tensor_add(&n.b, tensor_mul(&n.b, load(&n.b, x, n.at), cos), other));
}

static bool check_positions(Op *op, const Type *q)
{
	const bool given = op_operand_named(op, "position_ids") != NULL;
	const Type *ids = given ? infer_rank(op, op_info_operand(op->info, "position_ids"), 2) : NULL;
	const Dim *same;
	for (int d = 0; ids && d < 2; d++)
		if (!infer_same_dim(op, ids->dims[d], q->dims[d], "sizes of position_ids", &same))
			return false;
	return !given || ids;
}

// k or v beside q: all but the number of heads is the same.
static bool check_beside(Op *op, int i, const Type *q)
{
	const Type *t = infer_rank(op, i, 4);
	const Dim *same;
	for (int d = 0; t && d < 4; d++)
		if (d != 2 && !infer_same_dim(op, t->dims[d], q->dims[d], "sizes of q, k, v", &same))
			return false;
	return t != NULL;
}

bool define_hook_rotary_embedding(Builder *b, Op *op, Value **results)
{
	const Type *q = infer_rank(op, 0, 4);
	if (!q || !check_angles(op, q, "sin") || !check_angles(op, q, "cos") || !check_positions(op, q))
		return false;
	if (!dim_is_const(q->dims[3]) || q->dims[3]->value % 2)
		return op_error(op, "the width of heads must be known, and even");
	for (int i = 0; i < 3; i++) {
		if (op_operand(op, i) && !check_beside(op, i, q))
			return false;
		// What is not there gives nothing that anybody reads.
		results[i] = op_operand(op, i) ? turned(b, op, op_operand(op, i)) : results[0];
		if (!results[i])
			return false;
	}
	return true;
}
