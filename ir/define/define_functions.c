// Special functions of one number (ir/ops/special_functions.yaml), in f64 and rounded at the end,
// so that one series serves every type.
#include "ir/build/nest.h"
#include "ir/infer/infer.h"

#include <math.h>
#include <string.h>

static Value *number(Builder *b, double v)
{
	return build_scalar_f(b, DT_F64, v);
}

static Value *plus(Builder *b, Value *x, double v)
{
	return tensor_add(b, x, number(b, v));
}

static Value *times(Builder *b, Value *x, double v)
{
	return tensor_mul(b, x, number(b, v));
}

// c[0] + c[1] x + ...
static Value *polynomial(Builder *b, Value *x, int n, const double *c)
{
	Value *v = number(b, c[n - 1]);
	for (int i = n - 2; i >= 0; i--)
		v = plus(b, tensor_mul(b, v, x), c[i]);
	return v;
}

// Giles, "Approximating the erfinv function" (2010), and two steps of Newton.
static Value *erfinv_of(Builder *b, Value *x)
{
	static const double near[] = {1.50140941,     0.246640727,    -0.00417768164,
	                              -0.00125372503, 0.00021858087,  -4.39150654e-06,
	                              -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
	static const double far[] = {2.83297682,    1.00167406,     0.00943887047,
	                             -0.0076224613, 0.00573950773,  -0.00367342844,
	                             0.00134934322, 0.000100950558, -0.000200214257};
	Value *one = number(b, 1), *size = apply1(b, OP_PD_ABS, x),
		  *inside = apply2(b, OP_PD_LESS_THAN, size, one);
	Value *safe = index_where(b, inside, x, number(b, 0));
	Value *w = apply1(b, OP_PD_NEGATIVE,
	                  apply1(b, OP_PD_LOG1P, apply1(b, OP_PD_NEGATIVE, tensor_mul(b, safe, safe))));
	Value *close = apply2(b, OP_PD_LESS_THAN, w, number(b, 5));
	Value *tail = plus(b, apply1(b, OP_PD_SQRT, w), -3);
	Value *p = index_where(b, close, polynomial(b, plus(b, w, -2.5), 9, near),
	                       polynomial(b, tail, 9, far));
	Value *y = tensor_mul(b, p, safe);
	for (int i = 0; i < 2; i++) {
		Value *away = tensor_sub(b, apply1(b, OP_PD_ERF, y), safe);
		Value *slope = times(b,
		                     apply1(b, OP_PD_EXP, apply1(b, OP_PD_NEGATIVE, tensor_mul(b, y, y))),
		                     1.1283791670955126);
		y = tensor_sub(b, y, tensor_div(b, away, slope));
	}
	return index_where(b, inside, y, times(b, x, INFINITY)); // as Paddle has it outside, too
}

// I0 or I1: the power series up to 20, the asymptotic one behind (relative errors below 1e-16 on
// both sides).
static Value *bessel_of(Builder *b, Value *x, int order, bool scaled)
{
	enum { TERMS = 56, FAR_TERMS = 24 };
	Value *size = apply1(b, OP_PD_ABS, x),
		  *close = apply2(b, OP_PD_LESS_EQUAL, size, number(b, 20)), *one = number(b, 1);
	Value *low = apply2(b, OP_PD_MINIMUM, size, number(b, 20)),
		  *high = apply2(b, OP_PD_MAXIMUM, size, number(b, 20));
	Value *quarter = times(b, tensor_mul(b, low, low), 0.25), *series = one, *tail = one;
	for (int k = TERMS; k > 0; k--)
		series = plus(b, times(b, tensor_mul(b, series, quarter), 1.0 / ((double)k * (k + order))),
		              1);
	// Of x, not of its size, whose derivative at 0 is 0.
	if (order)
		series = tensor_mul(
			b, series,
			times(b,
		          apply2(b, OP_PD_MAXIMUM, apply2(b, OP_PD_MINIMUM, x, number(b, 20)),
		                 number(b, -20)),
		          0.5));
	Value *inverse = tensor_div(b, one, times(b, high, 8));
	for (int k = FAR_TERMS; k > 0; k--) {
		double factor = -(4.0 * order * order - (2.0 * k - 1) * (2.0 * k - 1)) / k;
		tail = plus(b, times(b, tensor_mul(b, tail, inverse), factor), 1);
	}
	tail = tensor_div(b, tail, apply1(b, OP_PD_SQRT, times(b, high, 6.283185307179586)));
	if (scaled)
		series = tensor_mul(b, series, apply1(b, OP_PD_EXP, apply1(b, OP_PD_NEGATIVE, low)));
	else
		tail = tensor_mul(b, tail, apply1(b, OP_PD_EXP, high));
	if (order)
		tail = index_where(b, apply2(b, OP_PD_LESS_THAN, x, number(b, 0)),
		                   apply1(b, OP_PD_NEGATIVE, tail), tail);
	Value *v = index_where(b, close, series, tail);
	return index_where(b, apply1(b, OP_PD_ISNAN, x), x, v);
}

// base to a whole power.
static Value *power(Builder *b, Value *base, int64_t n)
{
	return apply2(b, OP_PD_ELEMENTWISE_POW, base, number(b, (double)n));
}

// The Hurwitz zeta function at s (over 1) and q: terms until q + k is over 9, then the formula of
// Euler and Maclaurin.
static Value *zeta_of(Builder *b, int64_t s, Value *q)
{
	static const double factors[] = {
		12, -720, 30240, -1209600, 47900160, -1892437580.3183792, 74724249600, -2950130727918.1645};
	enum { MOST_TERMS = 4096, TERMS = 10 };
	const Dim *most = dim_const(b->ctx, MOST_TERMS);
	Value *need = apply1(
		b, OP_PD_CEIL,
		apply2(b, OP_PD_MAXIMUM, tensor_sub(b, number(b, TERMS), q), number(b, TERMS)));
	Value *enough = apply2(b, OP_PD_LESS_THAN, need, number(b, MOST_TERMS));
	need = index_where(b, enough, need, number(b, TERMS));
	Value *count = index_from_data(b, scalar_cast(b, need, DT_I64), most, false);
	Nest r = reduce_open_counted(b, "sum", DT_F64, most, count);
	Value *at = tensor_add(&r.b, q, scalar_from_index(&r.b, r.at[0], DT_F64));
	Value *sum = reduce_close(&r, power(&r.b, at, -s)), *w = tensor_add(b, q, need),
		  *last = power(b, w, -s);
	sum = tensor_add(b, sum, tensor_div(b, tensor_mul(b, last, w), number(b, (double)s - 1)));
	sum = tensor_add(b, sum, times(b, last, 0.5));
	Value *term = tensor_div(b, last, w), *squared = tensor_mul(b, w, w);
	double rising = (double)s;
	for (int k = 0; k < (int)(sizeof factors / sizeof *factors); k++) {
		sum = tensor_add(b, sum, times(b, term, rising / factors[k]));
		term = tensor_div(b, term, squared);
		rising *= ((double)s + 2 * k + 1) * ((double)s + 2 * k + 2);
	}
	// Of whole numbers below, poles, it is known without terms.
	Value *pole = pred_and(b, apply2(b, OP_PD_EQUAL, apply1(b, OP_PD_FLOOR, q), q),
	                       apply2(b, OP_PD_LESS_THAN, q, number(b, 0)));
	Value *other = index_where(b, pole, number(b, INFINITY), number(b, NAN));
	return index_where(b, enough, sum, other);
}

static Value *polygamma_of(Builder *b, const Op *op, Value *x)
{
	int64_t n = op_int(op, "n", 0);
	if (n < 0 || n > 150) {
		op_error(op, "derivative %lld", (long long)n);
		return NULL;
	}
	return times(b, zeta_of(b, n + 1, x), (n % 2 ? 1 : -1) * tgamma((double)n + 1));
}

bool define_hook_function(Builder *b, Op *op, Value **results)
{
	// As a whole, for its gradient is no code of a nest.
	if (op->code == OP_PD_POLYGAMMA && !op_int(op, "n", 0)) {
		results[0] = apply1(b, OP_PD_DIGAMMA, op_operand(op, 0));
		return results[0] != NULL;
	}
	Nest n = nest_open(b, op->results[0].type);
	Value *x = scalar_cast(&n.b, load(&n.b, op_operand(op, 0), n.at), DT_F64), *v;
	switch (op->code) {
	case OP_PD_ERFINV: v = erfinv_of(&n.b, x); break;
	case OP_PD_POLYGAMMA: v = polygamma_of(&n.b, op, x); break;
	default:
		v = bessel_of(&n.b, x, op->code == OP_PD_I1 || op->code == OP_PD_I1E,
		              op->code == OP_PD_I0E || op->code == OP_PD_I1E);
		break;
	}
	results[0] = v ? nest_close(&n, v) : NULL;
	return results[0] != NULL;
}

bool define_hook_round_decimals(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0);
	int64_t decimals = op_int(op, "decimals", 0);
	Value *unit = tensor_number(b, x->type->dtype, pow(10, fabs((double)decimals)));
	Value *scaled = decimals < 0 ? tensor_div(b, x, unit) : tensor_mul(b, x, unit);
	Value *whole = scaled ? build1(b, OP_PD_RINT, scaled, NULL) : NULL;
	results[0] = decimals < 0 ? tensor_mul(b, whole, unit) : tensor_div(b, whole, unit);
	return results[0] != NULL;
}

// ---- a function by its name ---------------------------------------------------------------------

// How its numbers are called where they are attributes fuse_alpha and fuse_beta.
typedef struct NamedFunction {
	const char *name;
	enum OpCode code;
	const char *alpha, *beta;
} NamedFunction;

static const NamedFunction functions[] = {
	{"relu", OP_PD_LEAKY_RELU, "negative_slope", NULL}, // as that library has it
	{"relu6", OP_PD_CLIP, "min", "max"},
	{"clip", OP_PD_CLIP, "min", "max"},
	{"leaky_relu", OP_PD_LEAKY_RELU, "negative_slope", NULL},
	{"swish", OP_PD_SWISH, "beta", NULL},
	{"hard_sigmoid", OP_PD_HARDSIGMOID, "slope", "offset"},
	{"hard_swish", OP_PD_HARDSIGMOID, "slope", "offset"},
	{"mish", OP_PD_MISH, NULL, NULL},
	{"sigmoid", OP_PD_SIGMOID, NULL, NULL},
	{"tanh", OP_PD_TANH, NULL, NULL},
	{"abs", OP_PD_ABS, NULL, NULL},
	{"sqrt", OP_PD_SQRT, NULL, NULL},
	{"gelu", OP_PD_GELU, NULL, NULL},
	{"gelu_erf", OP_PD_GELU, NULL, NULL},
	{"gelu_tanh", OP_PD_GELU, NULL, NULL},
};

static Value *function_of(Builder *b, const Op *op, const NamedFunction *f, Value *x)
{
	NamedAttr attrs[3];
	int n = 0;
	if (f->alpha)
		attrs[n++] = (NamedAttr){f->alpha, attr_float(b->ctx, op_float(op, "fuse_alpha", 0))};
	if (f->beta)
		attrs[n++] = (NamedAttr){f->beta, attr_float(b->ctx, op_float(op, "fuse_beta", 0))};
	if (!strcmp(f->name, "gelu_tanh"))
		attrs[n++] = (NamedAttr){"approximate", attr_bool(b->ctx, true)};
	Op *made = build_op(b, f->code, 1, &x, n, attrs);
	Value *out = made ? op_result(made, 0) : NULL;
	return out && !strcmp(f->name, "hard_swish") ? tensor_mul(b, x, out) : out;
}

Value *fused_function(Builder *b, Op *op, Value *x)
{
	const char *name = op_str(op, "fuse_activation", "");
	const bool plain = op_bool(op, "plain", false);
	if (!*name || !strcmp(name, "identity") || !x)
		return x;
	if (!strcmp(name, "relu") && (plain || op_float(op, "fuse_alpha", 0) == 0))
		return apply1(b, OP_PD_RELU, x);
	for (size_t i = 0; i < COUNT_OF(functions); i++)
		if (!strcmp(functions[i].name, name) && (!plain || !functions[i].alpha))
			return function_of(b, op, &functions[i], x);
	op_error(op, "there is no activation '%s'", name);
	return NULL;
}
