// Programs that were quantised compute in floats that stand for whole numbers of 8 bits: what
// quantize_linear and dequantize_linear leave of a value is a whole number times the size of a
// step. Products of two such values become products of the whole numbers, exact in i32, and one
// multiplication; what is left of quantisation by one known scale becomes elementwise operations,
// which run in any layout. Run by lower/pipeline.c before fold makes floats of weights.
//
// Nothing else is rewritten: scales that a run finds, other widths and layouts stay as they are.
// NaN has no whole number: it becomes one, as it does for every engine of 8 bits.
#include "ir/build/build.h"
#include "ir/infer/geometry.h"
#include "ir/infer/quantised.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <math.h>
#include <string.h>

enum {
	ZERO_POINT = 128,         // what unsigned numbers stand for 0 with
	MAX_DEPTH = 1 << 16,      // 255 * 127 of these and a few more are less than 2^31
	MAX_FLOAT_DEPTH = 1 << 10 // 128 * 128 of these are 2^24
};

// ---- quantisation -------------------------------------------------------------------------------

// x times `factor`, rounded and limited, are whole numbers.
typedef struct Steps {
	Value *x;
	float scale, factor;
	double most; // the largest
	bool away;   // halves go away from zero, and x is limited first
} Steps;

static bool op_quantizes(const Op *op)
{
	return op && (op->code == OP_PD_QUANTIZE_LINEAR || op->code == OP_PD_QUANTIZE_DEQUANTIZE) &&
	       !quantised_observes(op);
}

static bool op_dequantizes(const Op *op)
{
	return op && op->code == OP_PD_DEQUANTIZE_LINEAR && !quantised_observes(op);
}

// The one positive number that v holds.
static bool one_scale(const Value *v, float *scale)
{
	const Tensor *t = value_constant(v);
	if (!t || t->dtype != DT_F32 || tensor_numel(t) != 1)
		return false;
	*scale = (float)tensor_get_f(t, 0);
	return *scale > 0 && isfinite(*scale);
}

// As the definition in ir/define/define_special.c has it, in floats.
static bool steps_read(const Op *op, Steps *s)
{
	if (!op_quantizes(op) || !one_scale(op_operand(op, 1), &s->scale))
		return false;
	const int64_t bits = op_int(op, "bit_length", 8);
	s->x = op_operand(op, 0);
	if (bits < 2 || bits > 8 || !type_is_tensor(s->x->type) || s->x->type->dtype != DT_F32)
		return false;
	const float tiny = (float)1e-6, safe = s->scale <= tiny ? s->scale + tiny : s->scale;
	const float inverse = 1 / safe;
	s->most = quantised_most(bits);
	s->factor = (float)s->most * inverse;
	s->away = quantised_away(op);
	return isfinite(s->factor);
}

static Value *number(Builder *b, double v)
{
	Tensor *t = tensor_new(b->ctx->arena, DT_F32, 1, (int64_t[]){1});
	if (!t)
		return NULL;
	tensor_set_f(t, 0, v);
	return build_constant(b, t);
}

static Value *with_number(Builder *b, enum OpCode code, Value *x, double v)
{
	Value *n = x ? number(b, v) : NULL;
	return n ? build2(b, code, x, n, NULL) : NULL;
}

// NaN becomes `low`.
static Value *limited(Builder *b, Value *x, double low, double high)
{
	return with_number(b, OP_PD_MINIMUM, with_number(b, OP_PD_MAXIMUM, x, low), high);
}

// The whole numbers, as floats.
static Value *steps_of(Builder *b, const Steps *s)
{
	if (s->away) {
		Value *x = with_number(b, OP_PD_MULTIPLY, limited(b, s->x, -s->scale, s->scale), s->factor);
		return x ? build1(b, OP_PD_ROUND, x, NULL) : NULL;
	}
	Value *x = with_number(b, OP_PD_MULTIPLY, s->x, s->factor);
	return x ? limited(b, build1(b, OP_PD_RINT, x, NULL), -s->most - 1, s->most) : NULL;
}

// ---- whole numbers behind floats ----------------------------------------------------------------

// v = step * the whole numbers.
static bool activation_read(const Value *v, Steps *s, double *step)
{
	const Op *op = v->def;
	float scale;
	*step = 1;
	if (op && op->code == OP_PD_QUANTIZE_DEQUANTIZE && steps_read(op, s)) {
		*step = (double)s->scale / s->most;
		return true;
	}
	if (op_dequantizes(op)) {
		Value *const *scales;
		if (op_operand_list(op, 1, &scales) != 1 || !one_scale(scales[0], &scale) ||
		    op_attr(op, "max_range"))
			return false;
		*step = (double)scale / quantised_most(op_int(op, "bit_length", 8));
		op = op_operand(op, 0)->def;
	}
	return op && op->code == OP_PD_QUANTIZE_LINEAR && steps_read(op, s);
}

// Weights, and for each output channel (or, with n = 1, for all) the size of a step.
typedef struct Weights {
	Value *given;
	const Tensor *whole;
	int64_t n;
	double *step;
} Weights;

static bool all_whole(const Tensor *t)
{
	if (t->dtype != DT_I8 && t->dtype != DT_F32)
		return false;
	for (int64_t i = 0, n = tensor_numel(t); i < n; i++) {
		const double v = tensor_get_f(t, i);
		if (!(v >= -128 && v <= 127) || v != rint(v))
			return false;
	}
	return tensor_numel(t) > 0;
}

// The sizes of steps that `scale` gives, all 1 where it is NULL.
static bool weights_steps(Context *c, const Tensor *scale, double most, Weights *w)
{
	w->step = NEW_ARRAY(c->arena, (size_t)w->n + 1, double);
	for (int64_t i = 0; i < w->n; i++) {
		w->step[i] = (scale ? tensor_get_f(scale, i) : 1) / most;
		if (!isfinite(w->step[i]))
			return false;
	}
	return true;
}

// `axis`: that of the output channels.
static bool weights_read(Context *c, Value *v, int axis, Weights *w)
{
	const Op *op = v->def;
	const Tensor *scale = NULL;
	double most = 1;
	if (op_dequantizes(op)) {
		Value *const *scales;
		if (op_operand_list(op, 1, &scales) != 1 || op_attr(op, "max_range") ||
		    !(scale = value_constant(scales[0])) || scale->dtype != DT_F32)
			return false;
		most = quantised_most(op_int(op, "bit_length", 8));
		v = op_operand(op, 0);
	}
	w->given = v;
	w->whole = value_constant(v);
	w->n = scale ? tensor_numel(scale) : 1;
	if (!w->whole || axis >= w->whole->rank || !all_whole(w->whole) ||
	    (w->n != 1 && (w->n != w->whole->dims[axis] || op_int(op, "quant_axis", -1) != axis)))
		return false;
	return weights_steps(c, scale, most, w);
}

// ---- products -----------------------------------------------------------------------------------

// x as numbers that the target multiplies: unsigned ones begin at -ZERO_POINT.
static Value *whole_operand(Builder *b, const Target *t, const Steps *s)
{
	const bool quads = t->dots == DOT_QUADS;
	Value *x = steps_of(b, s);
	if (quads)
		x = with_number(b, OP_PD_ADD, x, ZERO_POINT);
	return x ? build1(b, OP_PD_CAST, x, "dtype", attr_dtype(b->ctx, quads ? DT_U8 : DT_I16), NULL)
	         : NULL;
}

static const char *weights_name(const Weights *w)
{
	return w->given->def ? op_str(w->given->def, "name", w->given->name) : NULL;
}

static Value *whole_weights(Builder *b, const Weights *w)
{
	if (w->whole->dtype == DT_I8)
		return w->given;
	Tensor *t = tensor_new(b->ctx->arena, DT_I8, w->whole->rank, w->whole->dims);
	if (!t)
		return NULL;
	for (int64_t i = 0, n = tensor_numel(t); i < n; i++)
		tensor_set_i(t, i, (int64_t)tensor_get_f(w->whole, i));
	return build_parameter(b, weights_name(w), "i8", t);
}

// The sums times the sizes of the steps; output channels are followed by `behind` axes.
static Value *scaled(Builder *b, Value *sum, const Weights *w, double step, int behind)
{
	int64_t dims[MAX_RANK] = {w->n, 1, 1};
	Value *x = sum;
	if (x && x->type->dtype != DT_F32)
		x = build1(b, OP_PD_CAST, x, "dtype", attr_dtype(b->ctx, DT_F32), NULL);
	Tensor *t = tensor_new(b->ctx->arena, DT_F32, w->n == 1 ? 1 : 1 + behind, dims);
	if (!x || !t)
		return NULL;
	for (int64_t i = 0; i < w->n; i++)
		tensor_set_f(t, i, step * w->step[i]);
	Value *by = w->n == 1 ? build_constant(b, t) : build_parameter(b, weights_name(w), "step", t);
	return by ? build2(b, OP_PD_MULTIPLY, x, by, NULL) : NULL;
}

// A product of `op`'s kind and attributes on whole numbers in its place.
static bool product_replace(const Target *t, Op *op, enum OpCode code, const Steps *s, double step,
                            const Weights *w, int behind)
{
	Builder b = builder_before(op);
	Value *operands[2] = {whole_operand(&b, t, s), whole_weights(&b, w)};
	if (!operands[0] || !operands[1])
		return false;
	NamedAttr attrs[16];
	int n = 0;
	for (int i = 0; i < op->nattr && n < (int)COUNT_OF(attrs) - 1; i++)
		attrs[n++] = op->attrs[i];
	if (t->dots == DOT_QUADS)
		attrs[n++] = (NamedAttr){"zero_point", attr_int(op->ctx, ZERO_POINT)};
	Op *made = build_op(&b, code, 2, operands, n, attrs);
	Value *out = made ? scaled(&b, op_result(made, 0), w, step, behind) : NULL;
	if (!out)
		return false;
	op_replace(op, &out);
	return true;
}

static bool conv_fits(const Op *op, const Weights *w)
{
	const int64_t *d = w->whole->dims;
	return w->whole->rank == 4 && !channels_last(op) &&
	       d[1] * d[2] * d[3] < (op_int(op, "groups", 1) == 1 ? MAX_DEPTH : MAX_FLOAT_DEPTH);
}

// Of several groups the convolution stays one of floats, which hold the whole numbers and, of so
// few products, their sums.
static bool conv_whole(Op *op, const Steps *s, double step, const Weights *w)
{
	Builder b = builder_before(op);
	Tensor *t = tensor_new(op->ctx->arena, DT_F32, w->whole->rank, w->whole->dims);
	Value *x = steps_of(&b, s);
	if (!t || !x)
		return false;
	for (int64_t i = 0, n = tensor_numel(t); i < n; i++)
		tensor_set_f(t, i, tensor_get_f(w->whole, i));
	Value *filter = build_parameter(&b, weights_name(w), "whole", t);
	Op *made = filter ? build_op(&b, op->code, 2, (Value *[]){x, filter}, op->nattr, op->attrs)
	                  : NULL;
	Value *out = made ? scaled(&b, op_result(made, 0), w, step, 2) : NULL;
	if (!out)
		return false;
	op_replace(op, &out);
	return true;
}

static bool matmul_fits(const Op *op, const Weights *w)
{
	return w->whole->rank == 2 && op_operand(op, 0)->type->rank >= 2 &&
	       !op_bool(op, "transpose_x", false) && !op_bool(op, "transpose_y", false) &&
	       w->whole->dims[0] < MAX_DEPTH;
}

// False after a diagnostic.
static bool product_visit(const Target *t, Op *op)
{
	const bool conv = op->info->filter == FILTER_OUT;
	Steps s;
	Weights w;
	double step;
	if (!conv && op->code != OP_PD_MATMUL)
		return true;
	if (op->results[0].type->dtype != DT_F32 || !activation_read(op_operand(op, 0), &s, &step) ||
	    !weights_read(op->ctx, op_operand(op, 1), conv ? 0 : 1, &w))
		return true;
	if (conv ? !conv_fits(op, &w) : !matmul_fits(op, &w))
		return true;
	if (conv && op_int(op, "groups", 1) != 1)
		return conv_whole(op, &s, step, &w);
	return product_replace(t, op, conv ? OP_PD_INTEGER_CONV : OP_PD_INTEGER_MATMUL, &s, step, &w,
	                       conv ? 2 : 0);
}

// ---- what else is quantised by one scale --------------------------------------------------------

static Value *dequantized(Builder *b, const Op *op)
{
	Value *x = op_operand(op, 0), *const * scales;
	const Type *type = op->results[0].type;
	float scale;
	if (type->dtype != DT_F32 || value_constant(x) || op_operand_list(op, 1, &scales) != 1 ||
	    !one_scale(scales[0], &scale))
		return NULL;
	if (x->type->dtype != DT_F32)
		x = build1(b, OP_PD_CAST, x, "dtype", attr_dtype(b->ctx, DT_F32), NULL);
	const double most = quantised_most(op_int(op, "bit_length", 8));
	return with_number(b, OP_PD_DIVIDE, with_number(b, OP_PD_MULTIPLY, x, scale),
	                   op_float(op, "max_range", most));
}

static void rest_visit(Op *op)
{
	Builder b = builder_before(op);
	Value *out = NULL;
	Steps s;
	if (op->nresult != 1 || !value_used(&op->results[0]))
		return;
	if (op_dequantizes(op))
		out = dequantized(&b, op);
	else if (steps_read(op, &s))
		out = steps_of(&b, &s);
	if (out && op->code == OP_PD_QUANTIZE_DEQUANTIZE)
		out = with_number(&b, OP_PD_DIVIDE, with_number(&b, OP_PD_MULTIPLY, out, s.scale), s.most);
	if (out)
		op_replace(op, &out);
}

// Operators that only observed what came pass it on.
static void observer_visit(Op *op)
{
	Value *x = quantised_observes(op) ? op_operand(op, 0) : NULL;
	if (x && x->type == op->results[0].type)
		op_replace(op, &x);
}

typedef enum Visit { OBSERVERS, PRODUCTS, REST } Visit;

static bool region_visit(const Target *t, Region *r, Visit visit)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				if (!region_visit(t, &op->regions[i], visit))
					return false;
			if (visit == OBSERVERS)
				observer_visit(op);
			else if (visit == REST)
				rest_visit(op);
			else if (!product_visit(t, op))
				return false;
		}
	return true;
}

// Needs: scales and weights as parameters. Keeps: values of quantisation; those of products but for
// the rounding of their sums. Breaks: nothing; what nobody reads stays for dce.
bool pass_integers(PassContext *p)
{
	Region *r = &p->module->regions[0];
	return region_visit(p->target, r, OBSERVERS) &&
	       (p->target->dots == DOT_NONE || region_visit(p->target, r, PRODUCTS)) &&
	       region_visit(p->target, r, REST);
}
