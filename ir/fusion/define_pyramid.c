// Images in ever smaller parts, and beside each other (spp, correlation of ir/ops/nn.yaml).
#include "ir/fusion/fusion.h"

// The image in bins x bins parts, as rows of numbers.
static Value *pooled(Builder *b, Op *op, int64_t bins)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0);
	const Type *t = x->type;
	int64_t size[2], pad[2];
	for (int d = 0; d < 2; d++) {
		int64_t length = t->dims[2 + d]->value;
		size[d] = (length + bins - 1) / bins;
		pad[d] = (size[d] * bins - length + 1) / 2;
	}
	Value *out = build1(b, OP_PD_POOL2D, x, "kernel_size", attr_ints(c, 2, size), "strides",
	                    attr_ints(c, 2, size), "paddings", attr_ints(c, 2, pad), "pooling_type",
	                    attr_str(c, op_str(op, "pooling_type", "max")), NULL);
	const Dim *dims[] = {t->dims[0], dim_mul(c, t->dims[1], dim_const(c, bins * bins))};
	return out ? tensor_reshape(b, out, 2, dims) : NULL;
}

bool define_hook_spp(Builder *b, Op *op, Value **results)
{
	enum { MAX_HEIGHT = 10 };
	const Type *t = infer_rank(op, 0, 4);
	int64_t height = op_int(op, "pyramid_height", 1);
	Value *parts[MAX_HEIGHT];
	if (!t)
		return false;
	if (height < 1 || height > MAX_HEIGHT || !dim_is_const(t->dims[2]) || !dim_is_const(t->dims[3]))
		return op_error(op, "a pyramid of %lld, or images of sizes that are not known",
		                (long long)height);
	for (int i = 0; i < height; i++)
		if (!(parts[i] = pooled(b, op, (int64_t)1 << i)))
			return false;
	results[0] = tensor_concat(b, (int)height, parts, 1);
	return results[0] != NULL;
}

// ---- correlation --------------------------------------------------------------------------------

typedef struct Correlation {
	Op *op;
	int64_t pad, near, stride1, stride2, wide; // near: how many steps away; wide: of them in a row
	const Dim *dims[4];
} Correlation;

static bool correlation_read(Correlation *k, Op *op)
{
	Context *c = op->ctx;
	const Type *t[2];
	for (int i = 0; i < 2; i++)
		if (!(t[i] = infer_rank(op, i, 4)))
			return false;
	if (!infer_same_dims(op, 0, t[0], t[1], "sizes of the images"))
		return false;
	int64_t most = op_int(op, "max_displacement", 0);
	*k = (Correlation){.op = op,
	                   .pad = op_int(op, "pad_size", 0),
	                   .stride1 = op_int(op, "stride1", 1),
	                   .stride2 = op_int(op, "stride2", 1)};
	if (op_int(op, "kernel_size", 1) != 1)
		return op_error(op, "windows of more than one element are not supported");
	if (k->pad < 0 || most < 0 || k->stride1 < 1 || k->stride2 < 1)
		return op_error(op, "strides, or sizes, that are not positive");
	k->near = most / k->stride2;
	k->wide = 2 * k->near + 1;
	k->dims[0] = t[0]->dims[0];
	k->dims[1] = dim_const(c, k->wide * k->wide);
	for (int d = 2; d < 4; d++)
		k->dims[d] = dim_div(
			c, dim_add(c, t[0]->dims[d], dim_const(c, 2 * (k->pad - most) + k->stride1 - 1)),
			dim_const(c, k->stride1));
	return true;
}

// An element of one of the images; 0 outside of it.
static Value *image_at(Builder *b, Value *x, Value *n, Value *channel, Value *const *at)
{
	Value *inside = pred_and(b, index_inside(b, at[0], x->type->dims[2]),
	                         index_inside(b, at[1], x->type->dims[3]));
	Value *from[] = {n, channel, at[0], at[1]};
	return load_or(b, inside, build_scalar_f(b, x->type->dtype, 0), x, from);
}

bool define_hook_correlation(Builder *b, Op *op, Value **results)
{
	Correlation k;
	if (!correlation_read(&k, op))
		return false;
	Value *x = op_operand(op, 0), *y = op_operand(op, 1), *here[2], *there[2];
	const Dim *channels = x->type->dims[1];
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, 4, k.dims, 0));
	int64_t most = op_int(op, "max_displacement", 0);
	Value *wide = index_const(&n.b, k.wide),
		  *step[] = {index_div(&n.b, n.at[1], wide), index_mod(&n.b, n.at[1], wide)};
	for (int d = 0; d < 2; d++) {
		here[d] = index_plus(&n.b, index_times(&n.b, n.at[2 + d], k.stride1), most - k.pad);
		there[d] = index_times(&n.b, index_plus(&n.b, step[d], -k.near), k.stride2);
		there[d] = index_add(&n.b, here[d], there[d]);
	}
	Nest s = reduce_open(&n.b, "sum", x->type->dtype, 1, &channels);
	Value *product = tensor_mul(&s.b, image_at(&s.b, x, n.at[0], s.at[0], here),
	                            image_at(&s.b, y, n.at[0], s.at[0], there));
	Value *sum = reduce_close(&s, product);
	Value *count = scalar_from_index(&n.b, index_dim(&n.b, channels), x->type->dtype);
	results[0] = nest_close(&n, tensor_div(&n.b, sum, count));
	return results[0] != NULL;
}
