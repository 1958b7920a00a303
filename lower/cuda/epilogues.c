// For CUDA, --cuda-libs: the epilogues that cuBLASLt and cuDNN can do themselves, activation(alpha
// * sum + bias + addend). Found in the region by the form of its expressions; casts between the
// floating-point types are looked through, since the libraries keep f32 until the end. Leaves
// `epilogue` on the kernel, and `alpha`, `bias`, `addend` beside it; a kernel without has its
// epilogue behind the call, as a kernel of its own.
#include "ir/build/build.h"
#include "lower/cuda/cuda.h"
#include "lower/target/schedule.h"

#include <math.h>

enum { MAX_FACTORS = 4 };

// A product: its constant factors as one number, and the others.
typedef struct Factors {
	double number;
	int n; // more than MAX_FACTORS: there are too many
	const Value *of[MAX_FACTORS];
} Factors;

// activation(alpha * sum + bias + addend)
typedef struct Epilogue {
	double alpha;
	const Op *bias;   // loads one element for each position along the axis `channel`; NULL: none
	const Op *addend; // loads what lies as the result does; NULL: none
	EpilogueKind activation; // GELU: by tanh
} Epilogue;

// What is being read.
typedef struct Reader {
	const Op *op;
	const Block *region;
	int channel; // the axis of the result that a bias lies along
	bool has_sum;
	Epilogue *e;
} Reader;

// ---- expressions --------------------------------------------------------------------------------

static bool is_float(const Value *v)
{
	return dtype_is_f32_or_half(v->type->dtype);
}

static const Value *without_cast(const Value *v)
{
	while (v->def && v->def->code == OP_PD_CAST && is_float(v) && is_float(op_operand(v->def, 0)))
		v = op_operand(v->def, 0);
	return v;
}

// The operands of v, when it is such an operation of two.
static bool made_by(const Value *v, enum OpCode code, const Value **a, const Value **b)
{
	if (!v->def || v->def->code != code || v->def->noperand != 2)
		return false;
	*a = without_cast(op_operand(v->def, 0));
	*b = without_cast(op_operand(v->def, 1));
	return true;
}

static bool is_number(const Value *v, double *number)
{
	if (!v->def || v->def->code != OP_LOOP_CONSTANT)
		return false;
	const Attr *a = op_attr(v->def, "value");
	*number = a->kind == ATTR_FLOAT ? a->f : (double)a->i;
	return true;
}

// As near as f32 or f16 may have rounded it: of both, the coarser.
static bool is_about(double x, double y)
{
	return fabs(x - y) <= 5e-4 * fabs(y);
}

// The other operand where one is that number.
static bool with_number(const Value *v, enum OpCode code, double number, const Value **other)
{
	const Value *a, *b;
	double x;
	if (!made_by(v, code, &a, &b))
		return false;
	*other = is_number(a, &x) ? b : a;
	return (is_number(a, &x) || is_number(b, &x)) && (number == 0 ? x == 0 : is_about(x, number));
}

// Products that others read as well are factors.
static void factors_add(Factors *f, const Value *v, bool first)
{
	const Value *a, *b;
	double number;
	if (is_number(v, &number)) {
		f->number *= number;
	} else if ((first || value_use_count((Value *)v) == 1) && made_by(v, OP_PD_MULTIPLY, &a, &b)) {
		factors_add(f, a, false);
		factors_add(f, b, false);
	} else if (f->n++ < MAX_FACTORS) {
		f->of[f->n - 1] = v;
	}
}

static Factors factors_of(const Value *v)
{
	Factors f = {.number = 1};
	factors_add(&f, v, true);
	return f;
}

// ---- activations --------------------------------------------------------------------------------

// 0.044715 x x x
static bool is_cubic(const Value *v, const Value *x)
{
	const Factors f = factors_of(v);
	bool ok = f.n == 3 && is_about(f.number, 0.044715);
	for (int i = 0; ok && i < 3; i++)
		ok = f.of[i] == x;
	return ok;
}

// tanh(0.79788456 (x + 0.044715 x x x))
static bool is_gelu_tanh(const Value *v, const Value *x)
{
	const Value *a, *b;
	if (!v->def || v->def->code != OP_PD_TANH)
		return false;
	const Factors f = factors_of(without_cast(op_operand(v->def, 0)));
	return f.n == 1 && is_about(f.number, 0.7978845608) && made_by(f.of[0], OP_PD_ADD, &a, &b) &&
	       ((a == x && is_cubic(b, x)) || (b == x && is_cubic(a, x)));
}

// 0.5 x (1 + tanh(..)); the exact GELU, by erf, is another function.
static bool is_gelu(const Value *v, const Value **x)
{
	const Factors f = factors_of(v);
	for (int i = 0; f.n == 2 && is_about(f.number, 0.5) && i < 2; i++) {
		const Value *t;
		*x = f.of[1 - i];
		if (with_number(f.of[i], OP_PD_ADD, 1, &t) && is_gelu_tanh(t, *x))
			return true;
	}
	return false;
}

// ---- sums ---------------------------------------------------------------------------------------

// The position that is the argument for axis i of the result.
static const Value *position(const Reader *r, int i)
{
	return r->region->args[1 + i];
}

static bool is_bias(const Reader *r, const Op *load, const Type *t)
{
	const Type *out = r->op->results[0].type;
	bool found = false;
	for (int i = 0; i < t->rank; i++) {
		if (dim_is(t->dims[i], 1))
			continue;
		if (found || op_operand(load, 1 + i) != position(r, r->channel) ||
		    t->dims[i] != out->dims[r->channel])
			return false;
		found = true;
	}
	return found;
}

static bool is_addend(const Reader *r, const Op *load, const Type *t)
{
	const Type *out = r->op->results[0].type;
	bool same = t->rank == out->rank;
	for (int i = 0; same && i < t->rank; i++)
		same = t->dims[i] == out->dims[i] &&
		       (dim_is(t->dims[i], 1) || op_operand(load, 1 + i) == position(r, i));
	return same;
}

// A term that is loaded. Of one row both kinds look alike.
static bool load_read(Reader *r, const Op *load)
{
	const Value *from = op_operand(load, 0);
	if (load->code != OP_LOOP_LOAD || from->type->dtype != r->op->results[0].type->dtype)
		return false;
	const Op **to = !r->e->bias && is_bias(r, load, from->type)       ? &r->e->bias
	                : !r->e->addend && is_addend(r, load, from->type) ? &r->e->addend
	                                                                  : NULL;
	if (to)
		*to = load;
	return to;
}

static bool term_read(Reader *r, const Value *v)
{
	const Factors f = factors_of(v);
	if (f.n == 1 && f.of[0] == r->region->args[0] && !r->has_sum) {
		r->e->alpha = f.number;
		return r->has_sum = true;
	}
	return v->def && load_read(r, v->def);
}

static bool sum_read(Reader *r, const Value *v)
{
	const Value *a, *b;
	return made_by(v, OP_PD_ADD, &a, &b) ? sum_read(r, a) && sum_read(r, b) : term_read(r, v);
}

static bool epilogue_read(const Op *op, int channel, Epilogue *e)
{
	const Block *region = region_entry(&op->regions[0]);
	Reader r = {op, region, channel, false, e};
	const Value *v = without_cast(op_operand(region->last, 0)), *x;
	*e = (Epilogue){.alpha = 1};
	if (with_number(v, OP_PD_MAXIMUM, 0, &x)) {
		e->activation = EPILOGUE_RELU;
		v = x;
	} else if (is_gelu(v, &x)) {
		e->activation = EPILOGUE_GELU;
		v = x;
	}
	return sum_read(&r, v) && r.has_sum;
}

// ---- the pass -----------------------------------------------------------------------------------

// cuDNN adds what is there in one call with a bias only, and knows no GELU.
static bool suits_cudnn(const Epilogue *e)
{
	const bool linear = e->activation == EPILOGUE_LINEAR;
	return e->bias ? linear || e->activation == EPILOGUE_RELU : linear && !e->addend;
}

// Which of the loads in the epilogue that is, from 0; NULL: there is none.
static const Attr *load_number(const Op *op, const Op *load)
{
	int64_t n = 0;
	for (const Op *in = region_entry(&op->regions[0])->first; load && in; in = in->next) {
		if (in == load)
			return attr_int(op->ctx, n);
		n += in->code == OP_LOOP_LOAD;
	}
	return NULL;
}

static void epilogue_mark(Op *op)
{
	static const char *const names[] = {"linear", "relu", "gelu"};
	const bool conv = op->info->filter == FILTER_PACKED;
	Epilogue e;
	bool suits = epilogue_read(op, conv ? 1 : op->results[0].type->rank - 1, &e) &&
	             (!conv || suits_cudnn(&e));
	const Attr *bias = suits ? load_number(op, e.bias) : NULL,
			   *addend = suits ? load_number(op, e.addend) : NULL;
	suits = suits && !e.bias == !bias && !e.addend == !addend;
	op_set_attr(op, "epilogue", suits ? attr_str(op->ctx, names[e.activation]) : NULL);
	op_set_attr(op, "alpha", suits && e.alpha != 1 ? attr_float(op->ctx, e.alpha) : NULL);
	op_set_attr(op, "bias", suits ? bias : NULL);
	op_set_attr(op, "addend", suits ? addend : NULL);
}

// Needs: kernels with their epilogues, and schedules; a target.
// Keeps: everything but attributes.
// Breaks: nothing.
bool pass_cuda_epilogues(PassContext *p)
{
	for (Block *b = p->module->regions[0].first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next)
			if (cuda_op_is_library(op))
				epilogue_mark(op);
	return true;
}
