// Transducers (Graves, "Sequence transduction with recurrent neural networks", 2012):
// transducer_loss of ir/ops/sequence.yaml. alpha holds for each number of labels the logarithm of
// the probability of all ways that lead there; in round d it is that of step d - labels, so that
// a round needs only the one before, and all sequences and labels take it together.
#include "ir/build/counted.h"
#include "ir/sequence/sequence.h"

// Positions: sequence, step, number of labels so far, class.
typedef struct Transducer {
	const Op *op;
	Value *input, *label, *steps, *labels; // the last two: lengths
	Value *emitted;                        // input at the next label [sequences x steps x labels]
	const Dim *most_steps, *places;        // what input has room for
	DType t;
} Transducer;

bool infer_hook_transducer_loss(Op *op)
{
	const Type *x = infer_tensor(op, 0), *l = x ? infer_tensor(op, 1) : NULL;
	const Dim *n;
	if (!l)
		return false;
	if (x->rank != 4)
		return op_error(op, "input of %d axes", x->rank);
	if (dim_is_const(x->dims[2]) && x->dims[2]->value < 1)
		return op_error(op, "input without a place for no label");
	const int64_t blank = op_int(op, "blank", 0);
	if (blank < 0 || (dim_is_const(x->dims[3]) && blank >= x->dims[3]->value))
		return op_error(op, "blank is no class: %lld", (long long)blank);
	n = x->dims[0];
	if (!infer_same_dim(op, n, l->dims[0], "sequences of input and of labels", &n))
		return false;
	for (int i = 2; i < 4; i++)
		if (!infer_same_dim(op, n, infer_tensor(op, i)->dims[0], "sequences and lengths", &n))
			return false;
	return infer_result_shape(op, 0, x->dtype, 1, &n);
}

static Value *number(Builder *b, const Transducer *k, double v)
{
	return build_scalar_f(b, k->t, v);
}

static Value *steps_of(Builder *b, const Transducer *k, Value *i)
{
	return sequence_length_or(b, k->steps, NULL, i, k->most_steps);
}

// How many labels sequence i has: as many as there is room for in the list, and in input.
static Value *labels_of(Builder *b, const Transducer *k, Value *i)
{
	Value *n = sequence_length_or(b, k->labels, NULL, i, k->label->type->dims[1]);
	return index_from_data(b, scalar_from_index(b, n, DT_I64), k->places, false);
}

// The logarithm of the probability of a blank.
static Value *blank_at(Builder *b, const Transducer *k, Value *pred, Value *i, Value *t, Value *u)
{
	Value *const at[] = {i, t, u, index_const(b, op_int(k->op, "blank", 0))};
	return load_or(b, pred, number(b, k, 0), k->input, at);
}

// That of the label which comes next, where there is one.
static Value *emitted_labels(Builder *b, const Transducer *k)
{
	const Type *x = k->input->type;
	const Dim *dims[] = {x->dims[0], k->most_steps, k->label->type->dims[1]};
	Nest n = nest_open(b, type_tensor(b->ctx, k->t, 3, dims, 0));
	Value *const place[] = {n.at[0], n.at[2]};
	Value *here = index_less(&n.b, n.at[2], labels_of(&n.b, k, n.at[0]));
	Value *none = build_scalar_f(&n.b, k->label->type->dtype, 0);
	Value *class = load_or(&n.b, here, none, k->label, place);
	Value *const at[] = {n.at[0], n.at[1], n.at[2],
	                     index_from_data(&n.b, class, x->dims[3], false)};
	return nest_close(&n, load_or(&n.b, here, number(&n.b, k, 0), k->input, at));
}

// The same numbers, whose gradients grow by a share of `more`.
static Value *with_gradient(Builder *b, Value *x, double more)
{
	Value *still = x && more != 0 ? build1(b, OP_PD_ASSIGN, x, NULL) : NULL;
	if (!still)
		return x;
	still->stop_gradient = true;
	Value *nothing = tensor_sub(b, x, still);
	return tensor_add(b, x, tensor_mul(b, nothing, tensor_number(b, x->type->dtype, more)));
}

static Value *first_round(Builder *b, const Transducer *k, const Type *type)
{
	Nest n = nest_open(b, type);
	Value *start = index_equal(&n.b, n.at[1], index_const(&n.b, 0));
	return nest_close(&n, index_where(&n.b, start, number(&n.b, k, 0), number(&n.b, k, LOG_ZERO)));
}

static Value *next_round(Builder *b, const Transducer *k, Value *old, Value *round)
{
	const Dim *rounds = dim_add(b->ctx, k->most_steps, k->places);
	Nest n = nest_open(b, old->type);
	Value *i = n.at[0], *u = n.at[1], *zero = index_const(&n.b, 0), *was = load(&n.b, old, n.at);
	Value *d = index_from_data(&n.b, load_scalar(&n.b, round), rounds, false);
	Value *t = index_sub(&n.b, d, u), *labels = labels_of(&n.b, k, i);
	Value *before = index_plus(&n.b, u, -1), *const label_before[] = {i, t, before};
	Value *const from[] = {i, before};
	Value *here = pred_and(&n.b, index_less(&n.b, zero, d), index_less(&n.b, before, labels));
	here = pred_and(&n.b, here, index_less(&n.b, before, d));
	here = pred_and(&n.b, here, index_less(&n.b, t, steps_of(&n.b, k, i)));
	Value *later = pred_and(&n.b, here, index_less(&n.b, zero, t));
	Value *more = pred_and(&n.b, here, index_less(&n.b, zero, u));
	Value *label = load_or(&n.b, more, number(&n.b, k, 0), k->emitted, label_before);
	Value *const ways[] = {
		tensor_add(&n.b, was, blank_at(&n.b, k, later, i, index_plus(&n.b, t, -1), u)),
		tensor_add(&n.b, load_or(&n.b, more, number(&n.b, k, LOG_ZERO), old, from), label)};
	return nest_close(&n, index_where(&n.b, here, log_sum_exp(&n.b, ways, 2), was));
}

static Value *loss_of(Builder *b, const Transducer *k, Value *alpha, const Type *type)
{
	Nest n = nest_open(b, type);
	Value *i = n.at[0], *u = labels_of(&n.b, k, i), *const at[] = {i, u};
	Value *last = index_plus(&n.b, steps_of(&n.b, k, i), -1);
	Value *any = index_less(&n.b, index_const(&n.b, -1), last);
	Value *sum = tensor_add(&n.b, load(&n.b, alpha, at), blank_at(&n.b, k, any, i, last, u));
	return nest_close(&n, apply1(&n.b, OP_PD_NEGATIVE, sum));
}

bool define_hook_transducer_loss(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type, *x = op_operand(op, 0)->type;
	Transducer k = {.op = op,
	                .input = op_operand(op, 0),
	                .label = op_operand(op, 1),
	                .steps = op_operand(op, 2),
	                .labels = op_operand(op, 3),
	                .most_steps = x->dims[1],
	                .places = x->dims[2],
	                .t = x->dtype};
	const Dim *dims[] = {out->dims[0], k.places};
	Value *t = longest_of_lengths(b, k.steps), *u = t ? longest_of_lengths(b, k.labels) : NULL;
	Value *alpha = first_round(b, &k, type_tensor(b->ctx, k.t, 2, dims, 0));
	Value *rounds = u ? tensor_add(b, t, u) : NULL;
	CountedLoop loop;
	k.emitted = with_gradient(b, emitted_labels(b, &k), op_number(op, "fastemit_lambda"));
	if (!k.emitted || !alpha || !rounds || !count_begin(&loop, b, rounds, false, 1, &alpha))
		return false;
	count_name(&loop, 0, "alpha");
	Value *next = next_round(&loop.b, &k, loop.args[0], loop.at);
	if (!next || !count_end(&loop, &next))
		return false;
	results[0] = loss_of(b, &k, count_result(&loop, 0), out);
	return results[0] != NULL;
}
