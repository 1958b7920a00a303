// What a training step does with the gradients: the learning rate, clipping, the optimizer and its
// state. Called by train.c. Numbers that belong to no parameter are tensors of rank 0.
#include "lower/grad/ports.h"
#include "lower/grad/train_step.h"

#include <math.h>
#include <string.h>

// ---- state --------------------------------------------------------------------------------------

// `W.velocity`, of the parameter's shape, zeros at first.
static Value *state_of(const Train *t, const Trainable *p, const char *what)
{
	return train_state(t, arena_printf(t->c->arena, "%s.%s", p->name, what), p->value->type, 0);
}

// ---- the learning rate --------------------------------------------------------------------------

static Value *number(Builder *b, double v)
{
	return tensor_number(b, DT_F64, v);
}

static Value *scheduled(const Recipe *r, Builder *b, Value *base, Value *done)
{
	Value *at = tensor_div(b, done, number(b, (double)r->steps));
	if (r->schedule == SCHEDULE_STEP)
		return tensor_mul(
			b, base,
			apply2(b, OP_PD_ELEMENTWISE_POW, number(b, r->factor), apply1(b, OP_PD_FLOOR, at)));
	at = apply2(b, OP_PD_MINIMUM, at, number(b, 1));
	Value *wave = apply1(b, OP_PD_COS, tensor_mul(b, at, number(b, acos(-1))));
	wave = tensor_mul(b, tensor_add(b, wave, number(b, 1)), number(b, 0.5));
	Value *end = number(b, r->end);
	return tensor_add(b, end, tensor_mul(b, tensor_sub(b, base, end), wave));
}

// Of this step, in the type of the parameters; the schedule in f64. NULL after a diagnostic.
static Value *learning_rate(Train *t)
{
	const Recipe *r = t->recipe;
	Value *step = train_steps(t);
	Value *base = train_number(t, "train.learning_rate", t->dtype, r->learning_rate);
	if (!step || !base)
		return NULL;
	Builder b = train_builder(t, "learning_rate", "learning_rate");
	train_store(t, step->name, apply2(&b, OP_PD_ADD, step, tensor_number(&b, DT_I64, 1)));
	train_store(t, "train.learning_rate", base);
	if (r->schedule == SCHEDULE_CONSTANT && !r->warmup)
		return base;
	Value *top = tensor_cast(&b, base, DT_F64), *done = tensor_cast(&b, step, DT_F64), *rate = top;
	if (r->schedule != SCHEDULE_CONSTANT) {
		Value *behind = tensor_sub(&b, done, number(&b, (double)r->warmup));
		rate = scheduled(r, &b, top, apply2(&b, OP_PD_MAXIMUM, behind, number(&b, 0)));
	}
	if (r->warmup) {
		Value *warmup = number(&b, (double)r->warmup), *from = number(&b, r->warmup_from);
		Value *part = tensor_div(&b, done, warmup);
		Value *rising = tensor_add(&b, from, tensor_mul(&b, tensor_sub(&b, top, from), part));
		Value *const operands[] = {apply2(&b, OP_PD_LESS_THAN, done, warmup), rising, rate};
		rate = build(&b, OP_PD_WHERE, 3, operands, NULL);
	}
	return tensor_cast(&b, rate, t->dtype);
}

// ---- clipping -----------------------------------------------------------------------------------

// The norm of all gradients together.
static Value *global_norm(const Train *t, Builder *b)
{
	Value *sum = NULL;
	for (int i = 0; i < t->n; i++) {
		Value *g = t->params[i].grad;
		Value *square = g ? tensor_mul(b, g, g) : NULL;
		Value *part = square
		                  ? build1(b, OP_PD_SUM, square, "reduce_all", attr_bool(t->c, true), NULL)
		                  : NULL;
		sum = sum && part ? tensor_add(b, sum, part) : part ? part : sum;
	}
	return sum ? apply1(b, OP_PD_SQRT, sum) : NULL;
}

static bool clip(const Train *t)
{
	const Recipe *r = t->recipe;
	if (!(r->clip > 0) && !r->metrics[METRIC_GRAD_NORM])
		return true;
	Builder b = train_builder(t, "clip", "grad_norm");
	Value *norm = global_norm(t, &b);
	if (!norm)
		return false;
	if (r->metrics[METRIC_GRAD_NORM])
		port_fetch(t->module, "grad_norm", norm);
	if (!(r->clip > 0))
		return true;
	Value *most = tensor_number(&b, t->dtype, r->clip);
	Value *factor = tensor_div(&b, most, apply2(&b, OP_PD_MAXIMUM, norm, most));
	for (int i = 0; i < t->n; i++)
		if (t->params[i].grad)
			t->params[i].grad = tensor_mul(&b, t->params[i].grad, factor);
	return factor != NULL;
}

// ---- optimizers ---------------------------------------------------------------------------------

// The gradient with what L2 decay adds to it.
static Value *decayed(const Train *t, Builder *b, const Trainable *p, double decay)
{
	if (!(decay > 0))
		return p->grad;
	return tensor_add(b, p->grad, tensor_mul(b, p->value, tensor_number(b, t->dtype, decay)));
}

static bool sgd(Train *t, Builder *b, const Trainable *p, Value *rate, double decay)
{
	Value *const operands[] = {p->value, decayed(t, b, p, decay), rate};
	Value *next = build(b, OP_PD_SGD, 3, operands, NULL);
	if (next)
		train_store(t, p->name, next);
	return next != NULL;
}

static bool momentum(Train *t, Builder *b, const Trainable *p, Value *rate, double decay)
{
	const Recipe *r = t->recipe;
	Value *velocity = state_of(t, p, "velocity");
	Value *const operands[] = {p->value, decayed(t, b, p, decay), velocity, rate};
	const NamedAttr attrs[] = {{"mu", attr_float(t->c, r->momentum)},
	                           {"use_nesterov", attr_bool(t->c, r->nesterov)}};
	Op *op = velocity ? build_op(b, OP_PD_MOMENTUM, 4, operands, COUNT_OF(attrs), attrs) : NULL;
	if (!op)
		return false;
	train_store(t, p->name, op_result(op, 0));
	train_store(t, velocity->name, op_result(op, 1));
	return true;
}

// The powers of the betas are the same for all parameters: update() takes them further.
static bool adam(Train *t, Builder *b, const Trainable *p, Value *rate, double decay,
                 Value *const *powers)
{
	const Recipe *r = t->recipe;
	const bool apart = r->optimizer == OPTIMIZER_ADAMW;
	Value *moment1 = state_of(t, p, "moment1"), *moment2 = state_of(t, p, "moment2");
	Value *const operands[] = {
		p->value, decayed(t, b, p, apart ? 0 : decay), moment1, moment2, powers[0], powers[1],
		rate};
	const NamedAttr attrs[] = {{"beta1", attr_float(t->c, r->beta1)},
	                           {"beta2", attr_float(t->c, r->beta2)},
	                           {"epsilon", attr_float(t->c, r->epsilon)},
	                           {"use_global_beta_pow", attr_bool(t->c, true)},
	                           {"with_decay", attr_bool(t->c, apart && decay > 0)},
	                           {"coeff", attr_float(t->c, decay)}};
	Op *op = moment1 && moment2
	             ? build_op(b, OP_PD_ADAM, COUNT_OF(operands), operands, COUNT_OF(attrs), attrs)
	             : NULL;
	if (!op)
		return false;
	train_store(t, p->name, op_result(op, 0));
	train_store(t, moment1->name, op_result(op, 1));
	train_store(t, moment2->name, op_result(op, 2));
	return true;
}

static bool powers_new(Train *t, Value **powers)
{
	const double betas[] = {t->recipe->beta1, t->recipe->beta2};
	static const char *const names[] = {"train.beta1_pow", "train.beta2_pow"};
	for (int i = 0; i < 2; i++) {
		powers[i] = train_number(t, names[i], t->dtype, betas[i]);
		if (!powers[i])
			return false;
		Builder b = train_builder(t, "adam", names[i]);
		train_store(t, names[i], tensor_mul(&b, powers[i], tensor_number(&b, t->dtype, betas[i])));
	}
	return true;
}

const char *const optimizer_words[] = {"sgd", "momentum", "adam", "adamw", NULL};

bool train_update(Train *t)
{
	const Recipe *r = t->recipe;
	const bool is_adam = r->optimizer == OPTIMIZER_ADAM || r->optimizer == OPTIMIZER_ADAMW;
	Value *rate = learning_rate(t), *powers[2] = {NULL};
	if (!rate)
		return false;
	if (r->metrics[METRIC_LEARNING_RATE])
		port_fetch(t->module, "learning_rate", rate);
	if (!clip(t) || (is_adam && !powers_new(t, powers)))
		return false;
	for (int i = 0; i < t->n; i++) {
		const Trainable *p = &t->params[i];
		const double decay = names_match(&r->no_decay, p->name) ? 0 : r->weight_decay;
		Builder b = train_builder(t, optimizer_words[r->optimizer], p->name);
		if (!p->grad)
			continue;
		if (!(is_adam                              ? adam(t, &b, p, rate, decay, powers)
		      : r->optimizer == OPTIMIZER_MOMENTUM ? momentum(t, &b, p, rate, decay)
		                                           : sgd(t, &b, p, rate, decay)))
			return false;
	}
	return true;
}
