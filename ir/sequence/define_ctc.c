// Connectionist temporal classification (Graves et al., 2006): ctc_loss of ir/ops/sequence.yaml.
// The labels of a sequence with blanks around them are its places; alpha holds for each place the
// logarithm of the probability of all ways that lead there, and all sequences take a step together.
#include "ir/build/counted.h"
#include "ir/sequence/sequence.h"

// Sequences of steps or of labels: [steps x sequences x ..] or [sequences x labels] with lengths,
// or rows with LoD.
typedef struct Parts {
	Value *x, *lod, *lengths;
	const Dim *most; // no sequence is longer
} Parts;

typedef struct Ctc {
	const Op *op;
	Parts steps, labels;
	DType t;
	const Dim *classes;
} Ctc;

// Logits and labels have lengths, a list each, or LoD.
static bool parts_told(const Op *op, Value *const *given, Value *const *lod)
{
	if (!given[0] != !given[1] || (!given[0] && (!lod[0] || !lod[1])))
		return op_error(op, "logits and labels have neither lengths nor LoD");
	return !given[0] || (given[0]->type->rank == 1 && given[1]->type->rank == 1) ||
	       op_error(op, "lengths of %d and %d axes", given[0]->type->rank, given[1]->type->rank);
}

bool infer_hook_ctc_loss(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0), *l = x ? infer_tensor(op, 1) : NULL;
	Value *given[] = {op_operand(op, 2), op_operand(op, 3)},
		  *lod[] = {op_operand(op, 4), op_operand(op, 5)};
	const Dim *dims[] = {NULL, dim_const(c, 1)}, *same;
	if (!l || !parts_told(op, given, lod))
		return false;
	if (given[0] ? x->rank != 3 || l->rank != 2 : x->rank != 2 || l->rank > 2 || l->rank < 1)
		return op_error(op, "logits of %d axes and labels of %d", x->rank, l->rank);
	dims[0] = given[0] ? x->dims[1] : sequence_count(c, lod[0]);
	if (!infer_same_dim(op, dims[0], given[0] ? l->dims[0] : sequence_count(c, lod[1]),
	                    "sequences of logits and of labels", &same))
		return false;
	return infer_result_shape(op, 0, x->dtype, 2, dims);
}

static Value *number(Builder *b, const Ctc *k, double v)
{
	return build_scalar_f(b, k->t, v);
}

// How many parts sequence i has.
static Value *length_of(Builder *b, const Parts *p, Value *i)
{
	return sequence_length_or(b, p->lengths, p->lod, i, p->most);
}

// The class of a place: a label at odd ones, else blank.
static Value *class_at(Builder *b, const Ctc *k, Value *i, Value *place)
{
	const Parts *p = &k->labels;
	Value *two = index_const(b, 2), *which = index_div(b, place, two), *at[] = {i, which};
	Value *odd = index_equal(b, index_mod(b, place, two), index_const(b, 1));
	Value *here = pred_and(b, odd, index_less(b, which, length_of(b, p, i)));
	if (!p->lengths)
		at[0] = index_add(b, sequence_start(b, p->lod, i, p->most), which);
	Value *blank = build_scalar_f(b, p->x->type->dtype, op_number(k->op, "blank"));
	return load_or(b, here, blank, p->x, at);
}

// The logarithm of the probability of a class in step t of sequence i; 0 behind its end.
static Value *score_at(Builder *b, const Ctc *k, Value *i, Value *t, Value *class)
{
	const Parts *p = &k->steps;
	Value *inside = index_less(b, t, length_of(b, p, i));
	Value *which = index_from_data(b, class, k->classes, false), *at[] = {t, i, which};
	if (!p->lengths) {
		at[0] = index_add(b, sequence_start(b, p->lod, i, p->most), t);
		at[1] = which;
	}
	return load_or(b, inside, number(b, k, 0), p->x, at);
}

static Value *first_step(Builder *b, const Ctc *k, const Type *type)
{
	Nest n = nest_open(b, type);
	Value *i = n.at[0], *place = n.at[1], *zero = index_const(&n.b, 0);
	Value *labels = index_times(&n.b, length_of(&n.b, &k->labels, i), 2);
	Value *start = pred_and(&n.b, index_less(&n.b, place, index_const(&n.b, 2)),
	                        index_less(&n.b, place, index_plus(&n.b, labels, 1)));
	Value *score = score_at(&n.b, k, i, zero, class_at(&n.b, k, i, place));
	return nest_close(&n, index_where(&n.b, start, score, number(&n.b, k, LOG_ZERO)));
}

static Value *next_step(Builder *b, const Ctc *k, Value *old, Value *at)
{
	Nest n = nest_open(b, old->type);
	Value *i = n.at[0], *place = n.at[1];
	Value *t = index_from_data(&n.b, load_scalar(&n.b, at), k->steps.most, false);
	Value *back = index_max(&n.b, index_plus(&n.b, place, -2), index_const(&n.b, 0));
	Value *class = class_at(&n.b, k, i, place), *before = class_at(&n.b, k, i, back);
	// Over a blank, to another label.
	Value *over = pred_and(&n.b, index_less(&n.b, index_const(&n.b, 1), place),
	                       apply2(&n.b, OP_PD_NOT_EQUAL, class, before));
	Value *from[] = {i, index_plus(&n.b, place, -1)}, *further[] = {i, back};
	Value *const ways[] = {load(&n.b, old, n.at),
	                       load_or(&n.b, index_less(&n.b, index_const(&n.b, 0), place),
	                               number(&n.b, k, LOG_ZERO), old, from),
	                       load_or(&n.b, over, number(&n.b, k, LOG_ZERO), old, further)};
	Value *sum = tensor_add(&n.b, log_sum_exp(&n.b, ways, 3), score_at(&n.b, k, i, t, class));
	Value *runs = pred_and(&n.b, index_less(&n.b, index_const(&n.b, 0), t),
	                       index_less(&n.b, t, length_of(&n.b, &k->steps, i)));
	return nest_close(&n, index_where(&n.b, runs, sum, ways[0]));
}

static Value *loss_of(Builder *b, const Ctc *k, Value *alpha, const Type *type)
{
	Nest n = nest_open(b, type);
	Value *i = n.at[0], *labels = length_of(&n.b, &k->labels, i);
	Value *end = index_times(&n.b, labels, 2);
	Value *at[] = {i, end}, *before[] = {i, index_plus(&n.b, end, -1)};
	Value *any = index_less(&n.b, index_const(&n.b, 0), labels);
	Value *const ways[] = {load(&n.b, alpha, at),
	                       load_or(&n.b, any, number(&n.b, k, LOG_ZERO), alpha, before)};
	Value *sum = log_sum_exp(&n.b, ways, 2);
	Value *possible = apply2(&n.b, OP_PD_GREATER_THAN, sum, number(&n.b, k, LOG_ZERO / 10));
	// Too few steps for the labels cost nothing, as Paddle has it.
	return nest_close(
		&n, index_where(&n.b, possible, apply1(&n.b, OP_PD_NEGATIVE, sum), number(&n.b, k, 0)));
}

// The same losses, but that gradients through each are divided by the steps of its sequence: what
// is not divided stops them.
static Value *divided_by_steps(Builder *b, const Ctc *k, Value *loss)
{
	if (!loss)
		return NULL;
	Nest n = nest_open(b, loss->type);
	Value *steps = index_max(&n.b, length_of(&n.b, &k->steps, n.at[0]), index_const(&n.b, 1));
	Value *part = nest_close(&n, apply2(&n.b, OP_PD_DIVIDE, load(&n.b, loss, n.at),
	                                    scalar_from_index(&n.b, steps, k->t)));
	Value *rest = part ? build1(b, OP_PD_ASSIGN, tensor_sub(b, loss, part), NULL) : NULL;
	if (!rest)
		return NULL;
	rest->stop_gradient = true;
	return tensor_add(b, part, rest);
}

// The logarithms of the probabilities: of all, also where Paddle's log_softmax cuts off.
static Value *log_probabilities(Builder *b, Value *x)
{
	const int64_t last[] = {x->type->rank - 1};
	Value *shifted = tensor_sub(b, x, tensor_reduce(b, OP_PD_MAX, x, 1, last));
	Value *e = shifted ? apply1(b, OP_PD_EXP, shifted) : NULL;
	Value *sum = e ? tensor_reduce(b, OP_PD_SUM, e, 1, last) : NULL;
	return sum ? tensor_sub(b, shifted, apply1(b, OP_PD_LOG, sum)) : NULL;
}

static Parts parts_of(Builder *b, const Op *op, int i, int axis)
{
	Value *x = op_operand(op, i), *lengths = op_operand(op, 2 + i);
	const Dim *rows = x->type->dims[0];
	Parts p = {x, lengths ? NULL : op_operand(op, 4 + i), lengths, x->type->dims[axis]};
	if (!lengths) {
		p.most = rows;
		p.x = x->type->rank == 2 && i == 1 ? tensor_reshape(b, x, 1, &rows) : x;
	}
	return p;
}

// The longest sequence, one i64.
static Value *longest(Builder *b, const Parts *p)
{
	const Dim *one = dim_const(b->ctx, 1);
	return p->lengths ? longest_of_lengths(b, p->lengths)
	                  : tensor_reshape(b, longest_sequence(b, p->lod, p->most), 1, &one);
}

// How many places the sequence with most labels has.
static const Dim *places_of(Builder *b, const Op *op, const Ctc *k)
{
	Context *c = b->ctx;
	const Dim *most = dim_add(c, dim_mul(c, k->labels.most, dim_const(c, 2)), dim_const(c, 1));
	if (k->labels.lengths)
		return most;
	const Dim *places = infer_found_size(op, most);
	Value *n = longest(b, &k->labels);
	n = n ? tensor_add(b, tensor_add(b, n, n), build_number(b, DT_I64, 1, 1)) : NULL;
	return n && bind_size(b, n, places) ? places : NULL;
}

bool define_hook_ctc_loss(Builder *b, Op *op, Value **results)
{
	const Type *out = op->results[0].type;
	Ctc k = {.op = op, .steps = parts_of(b, op, 0, 0), .labels = parts_of(b, op, 1, 1)};
	CountedLoop loop;
	k.t = out->dtype;
	k.classes = k.steps.x->type->dims[k.steps.x->type->rank - 1];
	k.steps.x = log_probabilities(b, k.steps.x);
	const Dim *places = places_of(b, op, &k), *dims[] = {out->dims[0], places};
	if (!k.steps.x || !k.labels.x || !places)
		return false;
	Value *alpha = first_step(b, &k, type_tensor(b->ctx, k.t, 2, dims, 0));
	Value *steps = longest(b, &k.steps);
	if (!alpha || !steps || !count_begin(&loop, b, steps, false, 1, &alpha))
		return false;
	count_name(&loop, 0, "alpha");
	Value *next = next_step(&loop.b, &k, loop.args[0], loop.at);
	if (!next || !count_end(&loop, &next))
		return false;
	results[0] = loss_of(b, &k, count_result(&loop, 0), out);
	if (op_bool(op, "norm_by_times", false))
		results[0] = divided_by_steps(b, &k, results[0]);
	return results[0] != NULL;
}
