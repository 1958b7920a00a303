// Batch norms with constant statistics: folded into the weights of the convolution or matrix
// product before them (through an addition of a constant bias), else turned into one multiplication
// and one addition per channel. The pipeline runs this after fold, when statistics and weights are
// parameters.
#include "ir/build/build.h"
#include "ir/infer/geometry.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <math.h>

// out = in * scale[c] + shift[c]
typedef struct Affine {
	int64_t channels;
	double *scale, *shift;
} Affine;

// ---- what a batch norm does ---------------------------------------------------------------------

// One value per channel: operand i, or `otherwise` where it is left out. NULL: not constant.
static double *channel_values(const Op *op, int i, int64_t channels, double otherwise)
{
	const Value *v = op_operand(op, i);
	const Tensor *t = value_constant(v);
	if (v && (!t || tensor_numel(t) != channels))
		return NULL;
	double *out = NEW_ARRAY(op->ctx->arena, (size_t)channels + 1, double);
	for (int64_t c = 0; c < channels; c++)
		out[c] = v ? tensor_get_f(t, c) : otherwise;
	return out;
}

static bool affine_of(const Op *bn, Affine *a)
{
	const Type *type = bn->results[0].type;
	bool test = op_bool(bn, "is_test", false) || op_bool(bn, "use_global_stats", false);
	bool last = channels_last(bn);
	if (!test || type->rank < 2 || (last && type->rank > 2) || !dim_is_const(type->dims[1]))
		return false;
	a->channels = type->dims[1]->value;
	double *mean = channel_values(bn, op_info_operand(bn->info, "mean"), a->channels, 0);
	double *variance = channel_values(bn, op_info_operand(bn->info, "variance"), a->channels, 1);
	a->scale = channel_values(bn, op_info_operand(bn->info, "scale"), a->channels, 1);
	a->shift = channel_values(bn, op_info_operand(bn->info, "bias"), a->channels, 0);
	if (!mean || !variance || !a->scale || !a->shift)
		return false;
	double epsilon = op_float(bn, "epsilon", 1e-5);
	for (int64_t c = 0; c < a->channels; c++) {
		a->scale[c] /= sqrt(variance[c] + epsilon);
		a->shift[c] -= mean[c] * a->scale[c];
	}
	return true;
}

// ---- what is before it --------------------------------------------------------------------------

// The channel of the result that weight element i goes into.
typedef struct Weights {
	int operand;
	int64_t inner, channels; // channel of i: i / inner % channels, plus the group's
	int64_t group_elements, group_channels;
} Weights;

static int64_t weight_channel(const Weights *w, int64_t i)
{
	return i / w->group_elements * w->group_channels + i / w->inner % w->channels;
}

static int64_t weights_channels(const Op *op, const Weights *w)
{
	return w->group_channels ? w->group_channels * op_int(op, "groups", 1) : w->channels;
}

static bool weights_of_transposed(const Op *op, const Tensor *t, Weights *w)
{
	int64_t groups = op_int(op, "groups", 1);
	if (t->rank != 4 || groups < 1 || t->dims[0] % groups)
		return false;
	*w = (Weights){.operand = 1,
	               .inner = t->dims[2] * t->dims[3],
	               .channels = t->dims[1],
	               .group_channels = t->dims[1]};
	w->group_elements = t->dims[0] / groups * t->dims[1] * w->inner;
	return true;
}

static bool weights_of_matmul(const Op *op, const Tensor *t, Weights *w)
{
	if (t->rank != 2 || op->results[0].type->rank != 2 || op_operand(op, 0)->type->rank != 2)
		return false;
	bool transposed = op_bool(op, "transpose_y", false);
	*w = (Weights){.operand = 1,
	               .inner = transposed ? t->dims[1] : 1,
	               .channels = transposed ? t->dims[0] : t->dims[1],
	               .group_elements = tensor_numel(t)};
	return true;
}

// Whether op has constant weights that each go into one channel of the result.
static bool weights_of(const Op *op, Weights *w)
{
	const Tensor *t = value_constant(op_operand(op, 1));
	if (!t || tensor_numel(t) == 0)
		return false;
	switch (op->info->filter) {
	case FILTER_OUT:
		*w = (Weights){.operand = 1,
		               .inner = tensor_numel(t) / t->dims[0],
		               .channels = t->dims[0],
		               .group_elements = tensor_numel(t)};
		break;
	case FILTER_IN:
		if (!weights_of_transposed(op, t, w))
			return false;
		break;
	case FILTER_MATRIX: return weights_of_matmul(op, t, w);
	default: return false;
	}
	return !channels_last(op);
}

static Op *single_use_def(const Value *v)
{
	return v && v->def && value_use_count(v) == 1 ? v->def : NULL;
}

// A constant that is added per channel of a value of type t: reads it into out[channels].
static bool bias_values(const Tensor *bias, const Type *t, int64_t channels, double *out)
{
	if (!bias || bias->rank > t->rank)
		return false;
	for (int d = 0; d < bias->rank; d++)
		if (bias->dims[d] != 1 && t->rank - bias->rank + d != 1)
			return false;
	int64_t n = tensor_numel(bias);
	if (n != 1 && n != channels)
		return false;
	for (int64_t c = 0; c < channels; c++)
		out[c] = tensor_get_f(bias, n == 1 ? 0 : c);
	return true;
}

// Takes an addition of a constant bias off `v`, folding the bias into `a`.
static const Value *bias_skip(const Value *v, Affine *a)
{
	const Op *add = single_use_def(v);
	if (!add || add->code != OP_PD_ADD)
		return v;
	double *bias = NEW_ARRAY(add->ctx->arena, (size_t)a->channels + 1, double);
	for (int i = 0; i < 2; i++) {
		const Value *other = op_operand(add, 1 - i);
		if (other->type != v->type ||
		    !bias_values(value_constant(op_operand(add, i)), v->type, a->channels, bias))
			continue;
		for (int64_t c = 0; c < a->channels; c++)
			a->shift[c] += bias[c] * a->scale[c];
		return other;
	}
	return v;
}

// ---- rewriting ----------------------------------------------------------------------------------

// values[channels] as a parameter that broadcasts along axis 1 of `type`.
static Value *build_channels(Builder *b, const Type *type, int64_t n, const double *values,
                             const char *name, const char *suffix)
{
	int64_t dims[MAX_RANK] = {n};
	int rank = type->rank - 1;
	for (int d = 1; d < rank; d++)
		dims[d] = 1;
	Tensor *t = tensor_new(b->ctx->arena, type->dtype, rank, dims);
	if (!t)
		return NULL;
	for (int64_t c = 0; c < n; c++)
		tensor_set_f(t, c, values[c]);
	return build_parameter(b, name, suffix, t);
}

static const char *param_name(const Value *v)
{
	return v && v->def ? op_str(v->def, "name", v->name) : NULL;
}

// The convolution again, with weights times the scale of their channel.
static Value *build_scaled(Builder *b, const Op *conv, const Weights *w, const Affine *a)
{
	const Value *old = op_operand(conv, w->operand);
	const Tensor *from = value_constant(old);
	Tensor *t = tensor_new(b->ctx->arena, from->dtype, from->rank, from->dims);
	if (!t)
		return NULL;
	for (int64_t i = 0, n = tensor_numel(from); i < n; i++)
		tensor_set_f(t, i, tensor_get_f(from, i) * a->scale[weight_channel(w, i)]);
	Value *weights = build_parameter(b, param_name(old), "bn", t);
	Op *clone = op_clone(b->ctx, conv, value_map_new(b->ctx->arena));
	op_set_operand(clone, w->operand, weights);
	op_insert_before(b->before, clone);
	return op_result(clone, 0);
}

static bool batch_norm_fold(Op *bn)
{
	Affine a;
	Weights w;
	if (!affine_of(bn, &a))
		return true;
	Value *x = op_operand(bn, op_info_operand(bn->info, "x"));
	const Type *type = bn->results[0].type;
	const char *bias_name = param_name(op_operand(bn, op_info_operand(bn->info, "bias")));
	const char *scale_name = param_name(op_operand(bn, op_info_operand(bn->info, "scale")));
	Builder b = builder_before(bn);
	Affine folded = a;
	folded.shift = NEW_ARRAY(bn->ctx->arena, (size_t)a.channels + 1, double);
	for (int64_t c = 0; c < a.channels; c++)
		folded.shift[c] = a.shift[c];
	const Op *conv = single_use_def(bias_skip(x, &folded));
	Value *scaled;
	if (conv && weights_of(conv, &w) && weights_channels(conv, &w) == a.channels) {
		b.loc = conv->loc;
		scaled = build_scaled(&b, conv, &w, &folded);
		a = folded;
		b.loc = bn->loc;
	} else {
		Value *scale = build_channels(&b, type, a.channels, a.scale, scale_name, "scale");
		scaled = scale ? build2(&b, OP_PD_MULTIPLY, x, scale, NULL) : NULL;
	}
	Value *shift = scaled ? build_channels(&b, type, a.channels, a.shift, bias_name, "shift")
	                      : NULL;
	Value *out = shift ? build2(&b, OP_PD_ADD, scaled, shift, NULL) : NULL;
	if (!out)
		return false;
	op_replace(bn, &out);
	return true;
}

static bool region_fold(Region *r)
{
	for (Block *b = r->first; b; b = b->next) {
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				if (!region_fold(&op->regions[i]))
					return false;
			if (op->code == OP_PD_BATCH_NORM && !batch_norm_fold(op))
				return false;
		}
	}
	return true;
}

// Needs: statistics and weights as parameters or constants (fold).
// Keeps: everything else; values differ by rounding only.
// Breaks: nothing. The convolutions and weights that were folded are left to dce.
bool pass_fold_batch_norm(PassContext *p)
{
	return region_fold(&p->module->regions[0]);
}
