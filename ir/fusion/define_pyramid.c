// Images in ever smaller parts, and beside each other (spp, correlation of ir/ops/nn.yaml).
#include "ir/fusion/fusion.h"

#include <float.h>
#include <string.h>

// The image in bins x bins parts, as rows of numbers.
static Value *pooled(Builder *b, Op *op, int64_t bins)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0);
	const Type *t = x->type;
	int64_t size[2], pad[2];
	const Dim *kernel[2];
	for (int d = 0; d < 2; d++) {
		int64_t length = t->dims[2 + d]->value;
		size[d] = (length + bins - 1) / bins;
		kernel[d] = dim_const(c, size[d]);
		pad[d] = (size[d] * bins - length + 1) / 2;
	}
	Value *out = build1(b, OP_PD_POOL2D, x, "kernel_size", attr_dims(c, 2, kernel), "strides",
	                    attr_ints(c, 2, size), "paddings", attr_ints(c, 2, pad), "pooling_type",
	                    attr_str(c, op_str(op, "pooling_type", "max")), NULL);
	const Dim *dims[] = {t->dims[0], dim_mul(c, t->dims[1], dim_const(c, bins * bins))};
	return out ? tensor_reshape(b, out, 2, dims) : NULL;
}

// The parts of images whose sizes a run tells, along one axis.
typedef struct Parts {
	const Dim *length, *size, *pad;
} Parts;

// How long a part is without the padding. Of one that lies in the padding whole this may be 0 or
// less: Paddle divides by it.
static Value *part_length(Builder *b, const Parts *p, Value *part)
{
	Value *from = index_sub(b, index_mul(b, part, index_dim(b, p->size)), index_dim(b, p->pad)),
		  *to = index_min(b, index_add(b, from, index_dim(b, p->size)), index_dim(b, p->length));
	return index_sub(b, to, index_max(b, from, index_const(b, 0)));
}

// The same of images whose sizes a run tells; each must have a row and a column for every part.
static Value *pooled_open(Builder *b, Op *op, int64_t bins)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *inside = NULL;
	const Type *t = x->type;
	const bool mean = strcmp(op_str(op, "pooling_type", "max"), "max") != 0;
	const Dim *count = dim_const(c, bins), *dims[] = {t->dims[0], t->dims[1], count, count};
	const Dim *sizes[2], *least[2];
	Parts parts[2];
	for (int d = 0; d < 2; d++) {
		const Dim *length = t->dims[2 + d];
		sizes[d] = dim_div(c, dim_add(c, length, dim_const(c, bins - 1)), count);
		least[d] = dim_max(c, length, count);
		const Dim *more = dim_sub(c, dim_mul(c, sizes[d], count), length);
		parts[d] = (Parts){length, sizes[d],
		                   dim_div(c, dim_add(c, more, dim_const(c, 1)), dim_const(c, 2))};
	}
	if (!check_sizes(b, 2, t->dims + 2, least, false, "an image with fewer rows than parts"))
		return NULL;
	Nest n = nest_open(b, type_tensor(c, t->dtype, 4, dims, 0));
	Nest r = reduce_open(&n.b, mean ? "sum" : "max", t->dtype, 2, sizes);
	Value *at[4] = {n.at[0], n.at[1]};
	for (int d = 0; d < 2; d++) {
		Value *first = index_mul(&r.b, n.at[2 + d], index_dim(&r.b, parts[d].size));
		at[2 + d] = index_sub(&r.b, index_add(&r.b, first, r.at[d]), index_dim(&r.b, parts[d].pad));
		inside = pred_and(&r.b, inside, index_inside(&r.b, at[2 + d], parts[d].length));
	}
	Value *none = build_scalar_f(&r.b, t->dtype, mean ? 0 : -FLT_MAX);
	Value *v = reduce_close(&r, load_or(&r.b, inside, none, x, at));
	if (mean) {
		Value *numel = index_mul(&n.b, part_length(&n.b, &parts[0], n.at[2]),
		                         part_length(&n.b, &parts[1], n.at[3]));
		v = tensor_div(&n.b, v, scalar_from_index(&n.b, numel, t->dtype));
	} else {
		v = apply2(&n.b, OP_PD_MAXIMUM, v, build_scalar_f(&n.b, t->dtype, -FLT_MAX));
	}
	const Dim *flat[] = {t->dims[0], dim_mul(c, t->dims[1], dim_const(c, bins * bins))};
	return tensor_reshape(b, nest_close(&n, v), 2, flat);
}

bool define_hook_spp(Builder *b, Op *op, Value **results)
{
	enum { MAX_HEIGHT = 10 };
	const Type *t = infer_rank(op, 0, 4);
	int64_t height = op_int(op, "pyramid_height", 1);
	Value *parts[MAX_HEIGHT];
	if (!t)
		return false;
	if (height < 1 || height > MAX_HEIGHT)
		return op_error(op, "a pyramid of %lld", (long long)height);
	const bool known = dim_is_const(t->dims[2]) && dim_is_const(t->dims[3]);
	for (int i = 0; i < height; i++) {
		const int64_t bins = (int64_t)1 << i;
		if (!(parts[i] = known ? pooled(b, op, bins) : pooled_open(b, op, bins)))
			return false;
	}
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
