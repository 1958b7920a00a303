// Recurrent networks as loops over time, and their single steps (ops/rnn.yaml).
//
// What the input gives to the gates is one product for all steps, in front of the loop. A step then
// takes its rows of that, adds the product of the state with its weights, and applies the gates.
#include "ir/infer/infer.h"
#include "ir/build/build.h"
#include "ir/build/counted.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "ir/infer/rnn.h"

#include <string.h>

static Value *rows(Builder *b, Value *x, int64_t from, int64_t n)
{
	return tensor_cut(b, x, 0, from, from + n);
}

static Value *columns(Builder *b, Value *x, int64_t from, int64_t n)
{
	return tensor_cut(b, x, 1, from, from + n);
}

static Value *concat(Builder *b, int n, Value *const *parts, int axis)
{
	return n == 1 ? parts[0] : tensor_concat(b, n, parts, axis);
}

// x times the transposed matrix w.
static Value *times(Builder *b, Value *x, Value *w)
{
	return x && w ? build2(b, OP_PD_MATMUL, x, w, "transpose_y", attr_bool(b->ctx, true), NULL)
	              : NULL;
}

// keep * before + (1 - keep) * fresh.
static Value *blend(Builder *b, Value *keep, Value *before, Value *fresh)
{
	return tensor_add(b, tensor_mul(b, tensor_sub(b, before, fresh), keep), fresh);
}

// ---- one step -----------------------------------------------------------------------------------

// c' = f * c + i * g, h' = o * tanh(c').
static void lstm_step(Builder *b, Value *i, Value *f, Value *g, Value *o, Value **h, Value **c)
{
	Value *kept = tensor_mul(b, apply1(b, OP_PD_SIGMOID, f), *c);
	*c = tensor_add(b, kept, tensor_mul(b, apply1(b, OP_PD_SIGMOID, i), apply1(b, OP_PD_TANH, g)));
	*h = tensor_mul(b, apply1(b, OP_PD_SIGMOID, o), apply1(b, OP_PD_TANH, *c));
}

// From the gates' parts of the input and of the state, which come separately: the reset gate of the
// candidate sees only the latter, with the bias.
static Value *gru_step(Builder *b, Value *x, Value *s, Value *bias, int64_t n, Value *h)
{
	Value *both = tensor_add(b, columns(b, x, 0, 2 * n), columns(b, s, 0, 2 * n));
	Value *r = apply1(b, OP_PD_SIGMOID, columns(b, both, 0, n)),
		  *z = apply1(b, OP_PD_SIGMOID, columns(b, both, n, n));
	Value *reset = tensor_mul(b, r, tensor_add(b, columns(b, s, 2 * n, n), bias));
	return blend(b, z, h, apply1(b, OP_PD_TANH, tensor_add(b, columns(b, x, 2 * n, n), reset)));
}

// ---- one layer in one direction -----------------------------------------------------------------

typedef struct Pass {
	const Rnn *r;
	Value *w_x, *w_h, *bias_x, *bias_h;
	Value *gates; // what the input gives to the gates [time, batch, gates * hidden]
	bool down;    // from the last step to the first
} Pass;

// Biases that are only added are added in front of the loop; that of the GRU's candidate is
// multiplied.
static bool biases(Builder *b, Pass *p)
{
	const Rnn *r = p->r;
	Value *outer = p->bias_h;
	if (r->mode == CELL_GRU) {
		const Dim *n = dim_const(b->ctx, r->hidden);
		Value *none = build_full(b, type_tensor(b->ctx, r->x->type->dtype, 1, &n, 0), 0);
		outer = concat(b, 2, (Value *[]){rows(b, p->bias_h, 0, 2 * r->hidden), none}, 0);
		p->bias_h = rows(b, p->bias_h, 2 * r->hidden, r->hidden);
	} else {
		p->bias_h = NULL;
	}
	p->bias_x = outer ? tensor_add(b, p->bias_x, outer) : NULL;
	return p->bias_x && (p->bias_h || r->mode != CELL_GRU);
}

// The states behind the step at l->at.
static bool step_build(const Pass *p, CountedLoop *l, Value **next)
{
	const Rnn *r = p->r;
	Builder *b = &l->b;
	int64_t n = r->hidden;
	next[0] = l->args[0];
	Value *x = build_step(b, p->gates, l->at), *s = times(b, next[0], p->w_h);
	if (r->mode == CELL_GRU) {
		next[0] = gru_step(b, x, s, p->bias_h, n, next[0]);
		return next[0] != NULL;
	}
	Value *sum = tensor_add(b, x, s);
	if (sum)
		sum->name = context_str(b->ctx, "gates");
	if (r->mode == CELL_LSTM) {
		next[1] = l->args[1];
		lstm_step(b, columns(b, sum, 0, n), columns(b, sum, n, n), columns(b, sum, 2 * n, n),
		          columns(b, sum, 3 * n, n), &next[0], &next[1]);
		return next[0] && next[1];
	}
	next[0] = apply1(b, r->mode == CELL_RNN_TANH ? OP_PD_TANH : OP_PD_RELU, sum);
	return next[0] != NULL;
}

// Behind a row's length its states stay, and it gives zeros.
static Value *mask_build(const Pass *p, CountedLoop *l, Value **next)
{
	const Rnn *r = p->r;
	Builder *b = &l->b;
	Value *out = next[0];
	if (!r->lengths)
		return out;
	const Dim *dims[] = {r->lengths->type->dims[0], dim_const(b->ctx, 1)};
	Value *inside = build2(b, OP_PD_LESS_THAN, l->at, tensor_cast(b, r->lengths, DT_I64), NULL);
	inside = inside ? tensor_reshape(b, inside, 2, dims) : NULL;
	Value *none = tensor_number(b, out->type->dtype, 0);
	for (int i = 0; i < r->nstate && inside; i++)
		next[i] = build(b, OP_PD_WHERE, 3, (Value *[]){inside, next[i], l->args[i]}, NULL);
	return inside ? build(b, OP_PD_WHERE, 3, (Value *[]){inside, out, none}, NULL) : NULL;
}

static CountedLoop *named(CountedLoop *l, const Rnn *r)
{
	static const char *const states[] = {"hidden", "cell"};
	for (int i = 0; i < r->nstate; i++)
		count_name(l, i, states[i]);
	count_name(l, r->nstate, "outputs");
	return l;
}

// Over all steps: the outputs [time, batch, hidden], and the states behind the last one.
static Value *pass_build(Builder *b, Pass *p, Value *x, Value **state)
{
	const Rnn *r = p->r;
	const Type *t = x->type;
	const Dim *dims[] = {t->dims[0], t->dims[1], dim_const(b->ctx, r->hidden)};
	Value *inits[3], *next[3];
	CountedLoop l;
	if (!biases(b, p) || !(p->gates = tensor_add(b, times(b, x, p->w_x), p->bias_x)))
		return NULL;
	for (int i = 0; i < r->nstate; i++)
		inits[i] = state[i];
	inits[r->nstate] = build_full(b, type_tensor(b->ctx, t->dtype, 3, dims, 0), 0);
	if (!count_begin(&l, b, build_size(b, x, 0), p->down, r->nstate + 1, inits) ||
	    !step_build(p, named(&l, r), next))
		return NULL;
	Value *out = mask_build(p, &l, next);
	next[r->nstate] = out ? build_set_step(&l.b, l.args[r->nstate], l.at, out) : NULL;
	if (!count_end(&l, next))
		return NULL;
	for (int i = 0; i < r->nstate; i++)
		state[i] = count_result(&l, i);
	return count_result(&l, r->nstate);
}

// ---- all of them --------------------------------------------------------------------------------

// One layer: outputs of its directions side by side. states[i] has a place for every layer and
// direction.
static Value *layer_build(Builder *b, const Rnn *r, int layer, Value *x, Value **states[2])
{
	Value *parts[2];
	int pairs = r->layers * r->directions;
	const Dim *dims[] = {r->x->type->dims[1], dim_const(b->ctx, r->hidden)};
	for (int d = 0; d < r->directions; d++) {
		int k = layer * r->directions + d;
		Value *const *w = r->weights + 2 * k, *const *bias = w + 2 * pairs, *state[2];
		Pass p = {
			.r = r, .w_x = w[0], .w_h = w[1], .bias_x = bias[0], .bias_h = bias[1], .down = d == 1};
		for (int i = 0; i < r->nstate; i++) {
			Value *one = rows(b, r->states[i], k, 1);
			state[i] = one ? tensor_reshape(b, one, 2, dims) : NULL;
			if (!state[i])
				return NULL;
		}
		parts[d] = pass_build(b, &p, x, state);
		for (int i = 0; i < r->nstate && parts[d]; i++) {
			const Dim *row[] = {dim_const(b->ctx, 1), dims[0], dims[1]};
			states[i][k] = tensor_reshape(b, state[i], 3, row);
		}
	}
	return concat(b, r->directions, parts, 2);
}

bool define_hook_rnn(Builder *b, Op *op, Value **results)
{
	Rnn r;
	Value **states[2], *last[2];
	if (!rnn_read(op, &r))
		return false;
	for (int i = 0; i < r.nstate; i++)
		states[i] = NEW_ARRAY(b->ctx->arena, (size_t)(r.layers * r.directions), Value *);
	Value *x = r.x;
	for (int layer = 0; layer < r.layers && x; layer++)
		x = layer_build(b, &r, layer, x, states);
	results[0] = x;
	for (int i = 0; i < r.nstate; i++)
		last[i] = x ? concat(b, r.layers * r.directions, states[i], 0) : NULL;
	results[1] = last[0] && last[r.nstate - 1] ? build(b, OP_BUILTIN_COMBINE, r.nstate, last, NULL)
	                                           : NULL;
	return results[0] && results[1];
}

// ---- single steps -------------------------------------------------------------------------------

bool define_hook_lstm_unit(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *c = op_operand(op, 1), *h;
	const Dim *wide = c->type->dims[1];
	double forget = op_float(op, "forget_bias", 0);
	int64_t n = wide->value;
	Value *f = columns(b, x, n, n);
	if (f && forget != 0)
		f = tensor_add(b, f, tensor_number(b, x->type->dtype, forget));
	lstm_step(b, columns(b, x, 0, n), f, columns(b, x, 3 * n, n), columns(b, x, 2 * n, n), &h, &c);
	results[0] = c;
	results[1] = h;
	return c && h;
}

Value *activation_apply(Builder *b, int which, Value *x)
{
	static const enum OpCode codes[] = {[ACTIVATION_SIGMOID] = OP_PD_SIGMOID,
	                                    [ACTIVATION_TANH] = OP_PD_TANH,
	                                    [ACTIVATION_RELU] = OP_PD_RELU};
	return which == ACTIVATION_IDENTITY ? x : apply1(b, codes[which], x);
}

// The matrix [n, wide] in the numbers of `weight` from the given one on.
static Value *part_of_weight(Builder *b, Value *weight, int64_t from, int64_t n, int64_t wide)
{
	const Dim *all = type_numel(b->ctx, weight->type),
			  *dims[] = {dim_const(b->ctx, n), dim_const(b->ctx, wide)};
	Value *flat = tensor_reshape(b, weight, 1, &all),
		  *part = flat ? rows(b, flat, from, n * wide) : NULL;
	return part ? tensor_reshape(b, part, 2, dims) : NULL;
}

bool define_hook_gru_unit(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *h = op_operand(op, 1), *weight = op_operand(op, 2),
		  *bias = op_operand(op, 3);
	const Dim *wide = h->type->dims[1];
	const int64_t n = wide->value;
	const int gate = (int)op_int(op, "gate_activation", 1);
	Value *w_gates = part_of_weight(b, weight, 0, n, 2 * n),
		  *w_fresh = part_of_weight(b, weight, 2 * n * n, n, n);
	x = bias ? tensor_add(b, x, bias) : x;
	Value *sums = tensor_add(b, columns(b, x, 0, 2 * n), apply2(b, OP_PD_MATMUL, h, w_gates));
	Value *u = activation_apply(b, gate, columns(b, sums, 0, n)),
		  *r = activation_apply(b, gate, columns(b, sums, n, n));
	Value *reset = tensor_mul(b, r, h);
	Value *fresh = tensor_add(b, columns(b, x, 2 * n, n), apply2(b, OP_PD_MATMUL, reset, w_fresh));
	fresh = activation_apply(b, (int)op_int(op, "activation", 2), fresh);
	results[0] = concat(b, 3, (Value *[]){u, r, fresh}, 1);
	results[1] = reset;
	results[2] = op_bool(op, "origin_mode", false) ? blend(b, u, h, fresh) : blend(b, u, fresh, h);
	return results[0] && results[2];
}

// ---- weights in one row -------------------------------------------------------------------------

// The weights of w, which stand as those of pd.rnn would, one behind the other.
static bool weights_cut(Builder *b, Op *op, Value *w, int64_t width, int count, Value **list)
{
	int64_t hidden = op_int(op, "hidden_size", 0), at = 0;
	const int directions = op_bool(op, "is_bidirec", false) ? 2 : 1, pairs = count / 4;
	const Dim *all = type_numel(b->ctx, w->type), *same;
	Value *flat = tensor_reshape(b, w, 1, &all);
	for (int i = 0; i < count && flat; i++) {
		bool bias = i >= 2 * pairs, state = i % 2;
		int64_t from = i < 2 * directions ? width : directions * hidden;
		const Dim *dims[] = {dim_const(b->ctx, 4 * hidden),
		                     dim_const(b->ctx, state ? hidden : from)};
		int64_t n = 4 * hidden * (bias ? 1 : dims[1]->value);
		Value *part = rows(b, flat, at, n);
		list[i] = part && !bias ? tensor_reshape(b, part, 2, dims) : part;
		if (!list[i])
			return false;
		at += n;
	}
	return flat && infer_same_dim(op, all, dim_const(b->ctx, at), "numbers of the weights", &same);
}

// The weights as pd.rnn takes them.
static Value *weights_of(Builder *b, Op *op, const Type *x)
{
	enum { MAX_LAYERS = 64, MAX_SIZE = 1 << 20 };
	Value *cut[8 * MAX_LAYERS], *given = op_operand(op, 4);
	int64_t layers = op_int(op, "num_layers", 1), hidden = op_int(op, "hidden_size", 0);
	if (layers < 1 || layers > MAX_LAYERS || hidden < 1 || hidden > MAX_SIZE ||
	    !dim_is_const(x->dims[2])) {
		op_error(op, "%lld layers of size %lld", (long long)layers, (long long)hidden);
		return NULL;
	}
	if (given && given->type->nelem)
		return given;
	const int count = (int)(4 * layers * (op_bool(op, "is_bidirec", false) ? 2 : 1));
	if (!op_operand(op, 3)) {
		op_error(op, "no weights");
		return NULL;
	}
	return weights_cut(b, op, op_operand(op, 3), x->dims[2]->value, count, cut)
	           ? build(b, OP_BUILTIN_COMBINE, count, cut, NULL)
	           : NULL;
}

bool define_hook_cudnn_lstm(Builder *b, Op *op, Value **results)
{
	static const char *const names[] = {"hidden_size", "num_layers", "is_bidirec", "dropout_prob",
	                                    "is_test"};
	const Type *x = infer_rank(op, 0, 3);
	NamedAttr attrs[COUNT_OF(names) + 1] = {{"mode", attr_str(b->ctx, "LSTM")}};
	Value *states[] = {op_operand(op, 1), op_operand(op, 2)};
	const int n = 1 + op_attrs_given(op, COUNT_OF(names), names, attrs + 1);
	Value *operands[] = {op_operand(op, 0), build(b, OP_BUILTIN_COMBINE, 2, states, NULL),
	                     x ? weights_of(b, op, x) : NULL, op_operand(op, 5)};
	Op *rnn = operands[1] && operands[2] ? build_op(b, OP_PD_RNN, 4, operands, n, attrs) : NULL;
	if (!rnn)
		return false;
	results[0] = op_result(rnn, 0);
	for (int i = 0; i < 2; i++)
		results[1 + i] = build1(b, OP_BUILTIN_SLICE, op_result(rnn, 1), "index",
		                        attr_int(b->ctx, i), NULL);
	return results[1] && results[2];
}
