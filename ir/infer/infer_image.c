// Types of the operators that resize and rearrange images (ir/ops/nn.yaml).
//
// The sizes that an interpolation leads to can come from five places; inference leaves them in the
// attribute `sizes`, and the number of axes it resizes in `spatial`, so that a pass may give the
// image another layout.
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- interpolation ------------------------------------------------------------------------------

// Scales per axis: the list in `scale` (a single number in old programs), one of which stands for
// all.
static bool interp_scales(const Op *op, Resize *r)
{
	const Attr *a = op_attr(op, "scale");
	int n = !a ? 0 : a->kind == ATTR_FLOATS ? a->n : 1;
	if (n > 1 && n != r->n)
		return op_error(op, "%d scales for %d axes", n, r->n);
	for (int i = 0; i < r->n; i++) {
		double v = !n                       ? 0
		           : a->kind == ATTR_FLOATS ? a->floats[n == 1 ? 0 : i]
		           : a->kind == ATTR_INT    ? (double)a->i
		                                    : a->f;
		r->scale[i] = v > 0 ? (float)v : 0;
	}
	return true;
}

Value *resize_scale_found(Builder *b, const Resize *r, int i)
{
	const Type *t = r->found->type;
	Value *at[MAX_RANK];
	for (int d = 0; d < t->rank; d++)
		at[d] = index_const(b, dim_is(t->dims[d], 1) ? 0 : i);
	return scalar_cast(b, load(b, r->found, at), DT_F32);
}

// size * scale computed when the program runs, before op.
static const Dim *scaled_size_found(Op *op, int axis, const Resize *r)
{
	Context *c = op->ctx;
	Builder b = builder_before(op);
	Nest n = nest_open(&b, type_tensor(c, DT_I64, 0, NULL, 0));
	const Dim *size = r->in[axis];
	Value *scale = r->found ? resize_scale_found(&n.b, r, axis)
	                        : build_scalar_f(&n.b, DT_F32, r->scale[axis]);
	Value *x = apply2(&n.b, OP_PD_MULTIPLY, scalar_from_index(&n.b, index_dim(&n.b, size), DT_F32),
	                  scale);
	Value *count = nest_close(&n, scalar_cast(&n.b, x, DT_I64));
	const Dim *sym = dim_sym_bounded(c, arena_printf(c->arena, "scaled_%d_%d_%d",
	                                                 op->loc->block < 0 ? 0 : op->loc->block,
	                                                 op->loc->op < 0 ? 0 : op->loc->op, axis));
	const NamedAttr dims = {"dims", attr_dims(c, 1, &sym)};
	if (!count || !build_op(&b, OP_LOOP_BIND, 1, &count, 1, &dims))
		return NULL;
	if (!r->found)
		dim_set_bound(c, sym, dim_mul(c, size, dim_const(c, (int64_t)r->scale[axis] + 1)));
	return sym;
}

// size * scale, cut off, in single precision as Paddle does it: a symbol where the scale is a
// fraction with a power of two below, else found when the program runs.
static const Dim *scaled_size(Op *op, int axis, const Resize *r)
{
	Context *c = op->ctx;
	const Dim *size = r->in[axis];
	const float scale = r->scale[axis];
	if (dim_is_const(size))
		return dim_const(c, (int64_t)((float)size->value * scale));
	for (int64_t den = 1; den <= 1 << 16; den *= 2) {
		int64_t num;
		if (number_whole((double)scale * (double)den, &num))
			return dim_div(c, dim_mul(c, size, dim_const(c, num)), dim_const(c, den));
	}
	return scaled_size_found(op, axis, r);
}

// A run finds the scales: one for each axis, or one for all.
static bool scales_found(Op *op, Resize *r, Value *v)
{
	int64_t n;
	if (!type_is_tensor(v->type) || v->type->rank > 1 || !type_const_numel(v->type, &n) ||
	    (n != 1 && n != r->n))
		return op_error(op, "%d scales, or one, are needed, in a tensor of that size", r->n);
	r->found = v;
	return true;
}

// The scales that a tensor gives: those of a constant of the program, else what a run finds.
static bool scale_from_tensor(Op *op, Resize *r)
{
	Value *v = op_operand_named(op, "scale_tensor");
	if (!v)
		return true;
	const Tensor *t = value_constant(v);
	bool full = v->def && v->def->code == OP_PD_FULL && !op_operand_named(v->def, "value_tensor");
	if (!t && !full)
		return scales_found(op, r, v);
	double list[3];
	for (int i = 0; i < r->n; i++) {
		list[i] = full ? op_number(v->def, "value") : tensor_get_f(t, tensor_numel(t) > i ? i : 0);
		r->scale[i] = (float)list[i];
	}
	op_set_attr(op, "scale", attr_floats(op->ctx, r->n, list));
	op_set_operand(op, op_info_operand(op->info, "scale_tensor"), NULL);
	return true;
}

// The values of a tensor, or of a list of tensors of one element, as sizes: bound at run time when
// unknown.
static bool sizes_from_operand(Op *op, const char *name, Resize *r)
{
	int at = op_info_operand(op->info, name), n = 0;
	Value *const *list;
	const Dim *const *known;
	int count = op_operand_list(op, at, &list);
	for (int i = 0; i < count; i++) {
		if (!list[i] || !infer_bind_value(op, list[i]))
			return false;
		int k = value_known(list[i], &known);
		for (int j = 0; j < k && n < r->n; j++)
			r->out[n++] = known[j];
	}
	if (n != r->n)
		return op_error(op, "'%s' gives %d sizes, %d are needed", name, n, r->n);
	return true;
}

// Whether the size that it gives is one that can be counted.
static bool scale_is_possible(const Dim *size, float scale)
{
	return scale <= 0x1p31f && (!dim_is_const(size) || (float)size->value * scale < 0x1p62f);
}

// Sizes from, in this order: SizeTensor, OutSize, scale, the attributes out_d, out_h, out_w.
static bool interp_sizes(Op *op, Resize *r)
{
	static const char *const names[] = {"out_d", "out_h", "out_w"};
	const Attr *sizes = op_attr(op, "sizes");
	if (sizes && sizes->n == r->n) {
		for (int i = 0; i < r->n; i++)
			r->out[i] = sizes->dims[i];
		return true;
	}
	if (op_operand_named(op, "size_tensor")) {
		// Sizes as tensors leave the scale out of account.
		memset(r->scale, 0, sizeof r->scale);
		r->found = NULL;
		op_set_attr(op, "scale", NULL);
		return sizes_from_operand(op, "size_tensor", r);
	}
	if (op_operand_named(op, "out_size"))
		return sizes_from_operand(op, "out_size", r);
	for (int i = 0; i < r->n; i++) {
		int64_t given = op_int(op, names[3 - r->n + i], -1);
		if (!scale_is_possible(r->in[i], r->scale[i]))
			return op_error(op, "axis %d cannot be %g times as long", r->axis[i], r->scale[i]);
		r->out[i] = r->found          ? scaled_size_found(op, i, r)
		            : r->scale[i] > 0 ? scaled_size(op, i, r)
		                              : dim_const(op->ctx, given);
		if (!r->out[i])
			return false;
		if (dim_is_const(r->out[i]) && r->out[i]->value < 1)
			return op_error(op, "neither a size nor a scale for axis %d", r->axis[i]);
	}
	return true;
}

bool resize_of_interp(Op *op, Resize *r)
{
	const Type *x = infer_tensor(op, 0);
	static const struct {
		enum OpCode code;
		InterpKind method;
		int n; // axes that are resized; 0: all
	} forms[] = {{OP_PD_NEAREST_INTERP, INTERP_NEAREST, 0},
	             {OP_PD_LINEAR_INTERP, INTERP_LINEAR, 1},
	             {OP_PD_BILINEAR_INTERP, INTERP_BILINEAR, 2},
	             {OP_PD_BICUBIC_INTERP, INTERP_BICUBIC, 2},
	             {OP_PD_TRILINEAR_INTERP, INTERP_TRILINEAR, 3}};
	if (!x)
		return false;
	*r = (Resize){.n = (int)op_int(op, "spatial", x->rank - 2)};
	for (size_t i = 0; i < COUNT_OF(forms); i++) {
		if (forms[i].code != op->code)
			continue;
		r->n = forms[i].n ? forms[i].n : r->n;
		if (op_enum(op, "interp_method") != (int)forms[i].method) // Paddle's kernel goes by that
			return op_error(op, "its interp_method is '%s'", op_str(op, "interp_method", ""));
	}
	if (r->n < 1 || r->n > 3 || x->rank < r->n + 2)
		return op_error(op, "a tensor of rank %d cannot be resized", x->rank);
	for (int i = 0; i < r->n; i++) {
		r->axis[i] = i + (channels_last(op) ? 1 : 2);
		r->in[i] = x->dims[r->axis[i]];
	}
	return interp_scales(op, r) && scale_from_tensor(op, r) && interp_sizes(op, r);
}

bool infer_hook_interp(Op *op)
{
	Resize r;
	const Dim *shape[MAX_RANK];
	format_resolve(op);
	// Paddle knows one word for channels that come first, NCHW.
	if (op->code == OP_PD_TRILINEAR_INTERP && op_enum(op, "data_format") == DATA_FORMAT_NCDHW)
		op_set_attr(op, "data_format", attr_str(op->ctx, "NDHWC"));
	if (!resize_of_interp(op, &r))
		return false;
	const Type *x = op_operand(op, 0)->type;
	op_set_attr(op, "sizes", attr_dims(op->ctx, r.n, r.out));
	op_set_attr(op, "spatial", attr_int(op->ctx, r.n));
	for (int i = 1; i < op->noperand; i++)
		if (op_operand(op, i) && op_operand(op, i) != r.found)
			op_set_operand(op, i, NULL);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	for (int i = 0; i < r.n; i++) {
		shape[r.axis[i]] = r.out[i];
		if (!infer_at_least(op, r.in[i], dim_const(op->ctx, 1), "the size of a resized axis"))
			return false;
	}
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

bool infer_hook_grid_sample(Op *op)
{
	const Type *x = infer_tensor(op, 0), *grid = infer_tensor(op, 1);
	const Dim *shape[5], *same;
	if (!x || !grid)
		return false;
	int n = x->rank - 2;
	if (n < 2 || n > 3 || grid->rank != x->rank)
		return op_error(op, "an image of rank %d and a grid of rank %d do not fit", x->rank,
		                grid->rank);
	if (!infer_same_dim(op, grid->dims[n + 1], dim_const(op->ctx, n), "numbers of a place and axes",
	                    &same) ||
	    !infer_same_dim(op, x->dims[0], grid->dims[0], "numbers of images and grids", &same))
		return false;
	shape[0] = x->dims[0];
	shape[1] = x->dims[1];
	for (int i = 0; i < n; i++)
		shape[2 + i] = grid->dims[1 + i];
	return infer_result_shape(op, 0, x->dtype, x->rank, shape);
}

// ---- channels to space and back -----------------------------------------------------------------

bool infer_hook_pixel_shuffle(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 4);
	if (!x)
		return false;
	int64_t factor = op_int(op, "upscale_factor", 1);
	int channel = channels_last(op) ? 3 : 1, first = channel == 1 ? 2 : 1;
	if (factor < 1 || factor > 1 << 15 ||
	    (dim_is_const(x->dims[channel]) && x->dims[channel]->value % (factor * factor)))
		return op_error(op, "the channels do not divide into blocks of %lld by %lld",
		                (long long)factor, (long long)factor);
	const Dim *shape[4], *by = dim_const(c, factor);
	shape[0] = x->dims[0];
	shape[channel] = infer_divided(c, x->dims[channel], dim_mul(c, by, by));
	shape[first] = dim_mul(c, x->dims[first], by);
	shape[first + 1] = dim_mul(c, x->dims[first + 1], by);
	return infer_result_shape(op, 0, x->dtype, 4, shape);
}

bool infer_hook_temporal_shift(Op *op)
{
	const Type *x = infer_rank(op, 0, 4);
	const int64_t each = op_int(op, "seg_num", 1);
	if (!x)
		return false;
	if (each < 1 || (dim_is_const(x->dims[0]) && x->dims[0]->value % each))
		return op_error(op, "the images do not divide into segments of %lld", (long long)each);
	infer_divided(op->ctx, x->dims[0], dim_const(op->ctx, each));
	return infer_result(op, 0, x);
}

bool infer_hook_shuffle_channel(Op *op)
{
	const Type *x = infer_rank(op, 0, 4);
	int64_t group = op_int(op, "group", 1);
	if (!x)
		return false;
	if (group < 1 || (dim_is_const(x->dims[1]) && x->dims[1]->value % group))
		return op_error(op, "the channels do not divide into %lld groups", (long long)group);
	return infer_result(op, 0, x);
}
