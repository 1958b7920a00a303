// Operators that go through sequences step by step (ir/ops/sequence.yaml): networks with a state,
// edit_distance. All sequences take a step together; those that have ended keep what they have.
#include "ir/build/build.h"
#include "ir/build/counted.h"
#include "ir/define/define.h"
#include "ir/sequence/sequence.h"

#include <ctype.h>
#include <string.h>

// Sequences on their way.
typedef struct Steps {
	Value *lod, *lengths;   // lengths: [sequences], i64
	const Dim *rows, *most; // of the tensor; steps of the longest sequence, found when it runs
	bool reverse;           // from the last row to the first
	Value *count;           // `most` as one i64
} Steps;

// The longest sequence of an input of the model is one size for all that go through it; the caller
// states its bound.
static const Dim *steps_symbol(const Op *op, const Value *lod)
{
	const Op *around = op_parent(op);
	if (!lod->def || lod->def->code != OP_PD_FEED || !around || around->code != OP_BUILTIN_MODULE)
		return infer_found_size(op, NULL);
	char *name = arena_printf(op->ctx->arena, "n_%s_steps%lld", op_str(lod->def, "name", "x"),
	                          (long long)op_int(lod->def, "level", 0));
	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	return dim_sym_bounded(op->ctx, name);
}

static bool steps_begin(Steps *s, Builder *b, Op *op, Value *lod, const Dim *rows)
{
	Context *c = b->ctx;
	const Dim *count = sequence_count(c, lod), *one = dim_const(c, 1);
	*s = (Steps){.lod = lod, .rows = rows, .reverse = op_bool(op, "is_reverse", false)};
	Nest n = nest_open(b, type_tensor(c, DT_I64, 1, &count, 0));
	s->lengths = nest_close(
		&n, scalar_from_index(&n.b, sequence_length(&n.b, lod, n.at[0], rows), DT_I64));
	s->count = tensor_reshape(b, longest_sequence(b, lod, rows), 1, &one);
	s->most = steps_symbol(op, lod);
	return s->lengths && bind_size(b, s->count, s->most);
}

// Which sequences still run at step `at`, as [sequences, 1].
static Value *steps_inside(Builder *b, const Steps *s, Value *at)
{
	const Dim *dims[] = {s->lengths->type->dims[0], dim_const(b->ctx, 1)};
	return tensor_reshape(b, apply2(b, OP_PD_LESS_THAN, at, s->lengths), 2, dims);
}

// The row of every sequence at step `at`; zeros behind its end.
static Value *steps_row(Builder *b, const Steps *s, Value *x, Value *at)
{
	const Dim *dims[] = {s->lengths->type->dims[0], x->type->dims[1]};
	Nest n = nest_open(b, type_tensor(b->ctx, x->type->dtype, 2, dims, 0));
	Value *step = index_from_data(&n.b, load_scalar(&n.b, at), s->most, false);
	Value *start = sequence_start(&n.b, s->lod, n.at[0], s->rows),
		  *length = sequence_length(&n.b, s->lod, n.at[0], s->rows);
	Value *row = index_add(&n.b, start,
	                       s->reverse ? index_plus(&n.b, index_sub(&n.b, length, step), -1) : step);
	Value *from[] = {row, n.at[1]}, *zero = build_scalar_f(&n.b, x->type->dtype, 0);
	return nest_close(&n, load_or(&n.b, index_less(&n.b, step, length), zero, x, from));
}

// What was kept of every step [steps, sequences, width], as rows again.
static Value *steps_rows(Builder *b, const Steps *s, Value *kept, const Type *type)
{
	Nest n = nest_open(b, type);
	Value *i = sequence_of_row(&n.b, s->lod, n.at[0]);
	if (!i || !kept)
		return NULL;
	Value *step = index_sub(&n.b, n.at[0], sequence_start(&n.b, s->lod, i, s->rows));
	if (s->reverse)
		step = index_plus(&n.b, index_sub(&n.b, sequence_length(&n.b, s->lod, i, s->rows), step),
		                  -1);
	Value *from[] = {index_from_data(&n.b, scalar_from_index(&n.b, step, DT_I64), s->most, false),
	                 i, n.at[1]};
	return nest_close(&n, load(&n.b, kept, from));
}

// Room for one row of every sequence in every step, or for a single one.
static Value *steps_room(Builder *b, const Steps *s, DType t, const Dim *wide, bool all)
{
	const Dim *dims[] = {s->most, s->lengths->type->dims[0], wide};
	return build_full(b, type_tensor(b->ctx, t, all ? 3 : 2, all ? dims : dims + 1, 0), 0);
}

// Part `k` of a row of parts of n columns.
static Value *part(Builder *b, Value *x, int64_t k, int64_t n)
{
	return tensor_cut(b, x, 1, k * n, (k + 1) * n);
}

static Value *activation(Builder *b, const Op *op, const char *attr, Value *x)
{
	return activation_apply(b, op_enum(op, attr), x);
}

// A row of numbers, as a matrix of one row.
static Value *as_row(Builder *b, Value *x)
{
	const Dim *dims[] = {dim_const(b->ctx, 1), x ? type_numel(b->ctx, x->type) : NULL};
	return x ? tensor_reshape(b, x, 2, dims) : NULL;
}

static Value *where(Builder *b, Value *cond, Value *x, Value *y)
{
	return cond && x && y ? build(b, OP_PD_WHERE, 3, (Value *[]){cond, x, y}, NULL) : NULL;
}

// ---- step by step -------------------------------------------------------------------------------

// Rows of x in another order.
static Value *rows_at(Builder *b, Value *x, Value *order)
{
	if (!x || !order)
		return NULL;
	Nest n = nest_open(b, x->type);
	Value *from[] = {index_from_data(&n.b, load(&n.b, order, n.at), x->type->dims[0], false),
	                 n.at[1]};
	return nest_close(&n, load(&n.b, x, from));
}

// The row of x at each place when steps stand one behind the other.
static Value *batch_rows(Builder *b, const Steps *s, Value *starts, Value *sequences,
                         const Type *out)
{
	const Dim *size = starts->type->dims[0], *count = s->lengths->type->dims[0];
	Nest n = nest_open(b, out);
	Value *place = scalar_from_index(&n.b, n.at[0], DT_I64);
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &size);
	Value *begun = apply2(&r.b, OP_PD_LESS_EQUAL, load(&r.b, starts, r.at), place);
	Value *step = tensor_sub(&n.b, reduce_close(&r, begun), build_scalar_f(&n.b, DT_I64, 1));
	step = index_from_data(&n.b, step, size, false);
	Value *at = step ? tensor_sub(&n.b, place, load(&n.b, starts, &step)) : NULL;
	at = at ? index_from_data(&n.b, at, count, false) : NULL;
	Value *i = at ? index_from_data(&n.b, load(&n.b, sequences, &at), count, false) : NULL;
	if (!i)
		return NULL;
	Value *back = index_plus(&n.b, index_sub(&n.b, sequence_length(&n.b, s->lod, i, s->rows), step),
	                         -1);
	Value *row = index_add(&n.b, sequence_start(&n.b, s->lod, i, s->rows),
	                       s->reverse ? back : step);
	return nest_close(&n, scalar_from_index(&n.b, row, DT_I64));
}

// Where steps begin, the rows in their order, and that of the sequences.
static bool batch_order(Builder *b, const Steps *s, Value *x, const Op *op, Value **results)
{
	Context *c = b->ctx;
	const Type *starts = op->results[4].type;
	const Dim *count = s->lengths->type->dims[0];
	Value *size = tensor_add(b, s->count, build_number(b, DT_I64, 1, 1));
	if (!bind_certain_size(b, size, starts->dims[0])) // no step without a row
		return false;
	Nest n = nest_open(b, starts);
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &count);
	Value *length = load(&r.b, s->lengths, r.at), *step = scalar_from_index(&r.b, n.at[0], DT_I64);
	results[0] = nest_close(&n, reduce_close(&r, apply2(&r.b, OP_PD_MINIMUM, length, step)));
	Value *table = build2(b, OP_PD_LOD_RANK_TABLE, x, s->lod, NULL);
	n = nest_open(b, type_tensor(c, DT_I64, 1, &count, 0));
	Value *from[] = {n.at[0], index_const(&n.b, 0)};
	results[2] = table ? nest_close(&n, load(&n.b, table, from)) : NULL;
	results[1] = results[0] && results[2]
	                 ? batch_rows(b, s, results[0], results[2], op->results[5].type)
	                 : NULL;
	return results[1] != NULL;
}

// ---- LSTM ---------------------------------------------------------------------------------------

typedef struct Lstm {
	const Op *op;
	int64_t n; // hidden
	Value *weight, *peepholes, *projection;
} Lstm;

static Value *clipped(Builder *b, const Op *op, const char *attr, Value *x)
{
	double limit = op_float(op, attr, 0);
	if (!x || limit <= 0)
		return x;
	Value *low = apply2(b, OP_PD_MAXIMUM, x, tensor_number(b, x->type->dtype, -limit));
	return apply2(b, OP_PD_MINIMUM, low, tensor_number(b, x->type->dtype, limit));
}

// A gate, which with peepholes sees the cell too.
static Value *lstm_gate(Builder *b, const Lstm *l, Value *sum, int k, Value *cell)
{
	Value *gate = part(b, sum, k, l->n);
	if (l->peepholes)
		gate = tensor_add(b, gate, tensor_mul(b, cell, part(b, l->peepholes, k - 1, l->n)));
	return activation(b, l->op, "gate_activation", gate);
}

// What a step takes and leaves: the state; candidate and gates side by side, and what the last gate
// lets through.
typedef struct LstmState {
	Value *h, *c, *gates, *seen;
} LstmState;

static bool lstm_step(Builder *b, const Lstm *l, Value *x, LstmState *s)
{
	Value *sum = tensor_add(b, x, apply2(b, OP_PD_MATMUL, s->h, l->weight));
	Value *gates[] = {activation(b, l->op, "candidate_activation", part(b, sum, 0, l->n)),
	                  lstm_gate(b, l, sum, 1, s->c), lstm_gate(b, l, sum, 2, s->c), NULL};
	Value *c = tensor_add(b, tensor_mul(b, gates[0], gates[1]), tensor_mul(b, s->c, gates[2]));
	s->c = clipped(b, l->op, "cell_clip", c);
	if (!s->c)
		return false;
	gates[3] = lstm_gate(b, l, sum, 3, s->c);
	s->gates = tensor_concat(b, COUNT_OF(gates), gates, 1);
	s->seen = activation(b, l->op, "cell_activation", s->c);
	s->h = tensor_mul(b, gates[3], s->seen);
	if (l->projection && s->h) {
		s->h = activation(b, l->op, "proj_activation",
		                  apply2(b, OP_PD_MATMUL, s->h, l->projection));
		s->h = clipped(b, l->op, "proj_clip", s->h);
	}
	return s->h && s->gates;
}

// x with its bias, behind which are the weights of peepholes.
static Value *lstm_bias(Builder *b, Lstm *l, Value *x, Value *bias)
{
	if (op_bool(l->op, "use_peepholes", true))
		l->peepholes = tensor_cut(b, bias, 1, 4 * l->n, 7 * l->n);
	return tensor_add(b, x, part(b, bias, 0, 4 * l->n));
}

// The loop over steps; what they leave is in variables 2 and on: states, cells, gates, and what
// these let through.
static bool lstm_loop(Builder *b, const Lstm *l, const Steps *s, Value *x, CountedLoop *loop)
{
	const Type *hidden = l->op->results[0].type, *cell = l->op->results[1].type;
	const DType t = x->type->dtype;
	Value *h = op_operand(l->op, 1), *c = op_operand(l->op, 2);
	Value *inits[] = {h ? h : steps_room(b, s, t, hidden->dims[1], false),
	                  c ? c : steps_room(b, s, t, cell->dims[1], false),
	                  steps_room(b, s, t, hidden->dims[1], true),
	                  steps_room(b, s, t, cell->dims[1], true),
	                  steps_room(b, s, t, dim_const(b->ctx, 4 * l->n), true),
	                  steps_room(b, s, t, cell->dims[1], true)};
	static const char *const roles[] = {"hidden", "cell", "hiddens", "cells", "gates", "seen"};
	if (!count_begin(loop, b, s->count, false, COUNT_OF(inits), inits))
		return false;
	count_names(loop, roles);
	LstmState now = {.h = loop->args[0], .c = loop->args[1]};
	if (!lstm_step(&loop->b, l, steps_row(&loop->b, s, x, loop->at), &now))
		return false;
	Value *inside = steps_inside(&loop->b, s, loop->at);
	Value *next[COUNT_OF(inits)] = {where(&loop->b, inside, now.h, loop->args[0]),
	                                where(&loop->b, inside, now.c, loop->args[1])};
	Value *const kept[] = {next[0], next[1], now.gates, now.seen};
	for (size_t i = 0; i < COUNT_OF(kept); i++)
		if (!kept[i] ||
		    !(next[2 + i] = build_set_step(&loop->b, loop->args[2 + i], loop->at, kept[i])))
			return false;
	return count_end(loop, next);
}

// lstm and lstmp; only the first also gives what the steps kept, in their order.
bool define_hook_sequence_lstm(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *bias = as_row(b, op_operand(op, 4));
	const bool projects = op->code == OP_PD_LSTMP;
	Lstm l = {.op = op, .n = op->results[1].type->dims[1]->value, .weight = op_operand(op, 3)};
	Steps s;
	CountedLoop loop;
	l.projection = projects ? op_operand(op, 5) : NULL;
	if (!steps_begin(&s, b, op, op_operand(op, projects ? 6 : 5), x->type->dims[0]))
		return false;
	x = bias ? lstm_bias(b, &l, x, bias) : x;
	if (!x || !lstm_loop(b, &l, &s, x, &loop) ||
	    (!projects && !batch_order(b, &s, x, op, results + 4)))
		return false;
	for (int i = 0; i < (projects ? 2 : 4); i++) {
		Value *rows = steps_rows(b, &s, count_result(&loop, 2 + i), op->results[i].type);
		results[i] = i < 2 ? rows : rows_at(b, rows, results[5]);
		if (!results[i])
			return false;
	}
	return true;
}

// ---- GRU ----------------------------------------------------------------------------------------

// The rows that all steps left, in the order of batches but for the first result.
static bool gru_results(Builder *b, const Steps *s, const CountedLoop *loop, const Op *op,
                        Value **results)
{
	results[0] = steps_rows(b, s, count_result(loop, 1), op->results[0].type);
	for (int i = 1; i <= 3; i++) {
		Value *rows = i < 3 ? steps_rows(b, s, count_result(loop, 1 + i), op->results[i].type)
		                    : results[0];
		results[i] = rows_at(b, rows, results[5]);
	}
	return results[0] && results[1] && results[2] && results[3];
}

bool define_hook_sequence_gru(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *bias = as_row(b, op_operand(op, 3)), *h = op_operand(op, 1);
	const Type *hidden = op->results[0].type;
	const int gate = op_enum(op, "gate_activation"), fresh = op_enum(op, "activation");
	Steps s;
	CountedLoop loop;
	if (!steps_begin(&s, b, op, op_operand(op, 4), x->type->dims[0]))
		return false;
	x = bias ? tensor_add(b, x, bias) : x;
	Value *inits[] = {h ? h : steps_room(b, &s, hidden->dtype, hidden->dims[1], false),
	                  steps_room(b, &s, hidden->dtype, hidden->dims[1], true),
	                  steps_room(b, &s, hidden->dtype, op->results[1].type->dims[1], true),
	                  steps_room(b, &s, hidden->dtype, hidden->dims[1], true)};
	if (!x || !count_begin(&loop, b, s.count, false, 4, inits))
		return false;
	static const char *const roles[] = {"hidden", "hiddens", "gates", "resets"};
	count_names(&loop, roles);
	Value *const operands[] = {steps_row(&loop.b, &s, x, loop.at), loop.args[0], op_operand(op, 2)};
	const NamedAttr attrs[] = {{"activation", attr_int(c, fresh)},
	                           {"gate_activation", attr_int(c, gate)},
	                           {"origin_mode", attr_bool(c, op_bool(op, "origin_mode", false))}};
	Op *unit = operands[0] ? build_op(&loop.b, OP_PD_GRU_UNIT, 3, operands, 3, attrs) : NULL;
	if (!unit)
		return false;
	h = where(&loop.b, steps_inside(&loop.b, &s, loop.at), op_result(unit, 2), loop.args[0]);
	Value *next[] = {h, h ? build_set_step(&loop.b, loop.args[1], loop.at, h) : NULL,
	                 build_set_step(&loop.b, loop.args[2], loop.at, op_result(unit, 0)),
	                 build_set_step(&loop.b, loop.args[3], loop.at, op_result(unit, 1))};
	return count_end(&loop, next) && batch_order(b, &s, x, op, results + 4) &&
	       gru_results(b, &s, &loop, op, results);
}

// ---- edit distance ------------------------------------------------------------------------------

// One of the two lists of sequences: rows of a matrix, or what LoD says.
typedef struct Tokens {
	Value *x, *lod, *lengths; // lengths: [sequences], i64
	const Dim *most;          // no sequence is longer
} Tokens;

static bool tokens_read(Tokens *k, Builder *b, Op *op, int i)
{
	Value *x = op_operand(op, i), *given = op_operand(op, 2 + i);
	*k = (Tokens){.x = x, .lod = op_operand(op, 4 + i), .most = x->type->dims[k->lod ? 0 : 1]};
	k->most = k->lod ? x->type->dims[0] : x->type->dims[1];
	const Dim *count = k->lod ? sequence_count(b->ctx, k->lod) : x->type->dims[0], *limit = k->most;
	const Dim *numel = type_numel(b->ctx, k->lod ? x->type : given->type);
	if (k->lod)
		k->x = tensor_reshape(b, x, 1, &numel);
	else
		given = tensor_reshape(b, given, 1, &numel);
	if (!k->x || (!k->lod && !given))
		return false;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &count, 0));
	Value *length;
	if (k->lod)
		length = sequence_length(&n.b, k->lod, n.at[0], x->type->dims[0]);
	else
		length = index_from_data(&n.b, load(&n.b, given, n.at),
		                         dim_add(b->ctx, limit, dim_const(b->ctx, 1)), false);
	k->lengths = nest_close(&n, scalar_from_index(&n.b, length, DT_I64));
	return k->lengths != NULL;
}

// Token `at` of sequence i where it has one, else `other`.
static Value *token_at(Builder *b, const Tokens *k, Value *i, Value *at, double other)
{
	const Dim *limit = dim_add(b->ctx, k->most, dim_const(b->ctx, 1));
	Value *length = index_from_data(b, load(b, k->lengths, &i), limit, false), *from[] = {i, at};
	if (k->lod)
		from[0] = index_add(b, sequence_start(b, k->lod, i, k->most), at);
	Value *here = pred_and(b, apply2(b, OP_PD_GREATER_EQUAL, at, index_const(b, 0)),
	                       index_less(b, at, length));
	return load_or(b, here, build_scalar_f(b, k->x->type->dtype, other), k->x, from);
}

static Value *scalar_number(Builder *b, double v)
{
	return build_scalar_f(b, DT_F32, v);
}

// The distances of the first `step` + 1 tokens from those of refs, without insertions of the
// latter: keep or change the token before, or leave this one out.
static Value *distances_before(Builder *b, Value *old, Value *at, const Tokens *hyps,
                               const Tokens *refs)
{
	Nest n = nest_open(b, old->type);
	Value *step = index_from_data(&n.b, load_scalar(&n.b, at), hyps->most, false);
	Value *before[] = {n.at[0], index_plus(&n.b, n.at[1], -1)},
		  *first = index_less(&n.b, index_const(&n.b, 0), n.at[1]);
	Value *x = token_at(&n.b, hyps, n.at[0], step, -1),
		  *y = token_at(&n.b, refs, n.at[0], before[1], -2);
	Value *change = scalar_cast(&n.b, apply2(&n.b, OP_PD_NOT_EQUAL, x, y), DT_F32);
	Value *all = scalar_from_index(&n.b, index_plus(&n.b, step, 1), DT_F32);
	Value *changed = tensor_add(&n.b, load_or(&n.b, first, all, old, before), change);
	Value *left_out = tensor_add(&n.b, load(&n.b, old, n.at), scalar_number(&n.b, 1));
	return nest_close(
		&n, index_where(&n.b, first, apply2(&n.b, OP_PD_MINIMUM, changed, left_out), all));
}

// With insertions: place j from any place before it, one for each step. Sequences that have ended
// stay.
static Value *distances_next(Builder *b, Value *old, Value *before, Value *at, const Tokens *hyps)
{
	Nest n = nest_open(b, old->type);
	Nest r = reduce_open_counted(&n.b, "min", DT_F32, old->type->dims[1],
	                             index_plus(&n.b, n.at[1], 1));
	Value *from[] = {n.at[0], r.at[0]},
		  *way = scalar_from_index(&r.b, index_sub(&r.b, n.at[1], r.at[0]), DT_F32);
	Value *least = reduce_close(&r, tensor_add(&r.b, load(&r.b, before, from), way));
	Value *inside = apply2(&n.b, OP_PD_LESS_THAN, load_scalar(&n.b, at),
	                       load(&n.b, hyps->lengths, n.at));
	return nest_close(&n, index_where(&n.b, inside, least, load(&n.b, old, n.at)));
}

static Value *longest(Builder *b, const Tokens *k)
{
	const Dim *one = dim_const(b->ctx, 1);
	return tensor_reshape(
		b, build1(b, OP_PD_MAX, k->lengths, "reduce_all", attr_bool(b->ctx, true), NULL), 1, &one);
}

bool define_hook_edit_distance(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Tokens hyps, refs;
	CountedLoop loop;
	const Type *out = op->results[1].type;
	if (!tokens_read(&hyps, b, op, 0) || !tokens_read(&refs, b, op, 1))
		return false;
	const Dim *wide = dim_add(c, refs.most, dim_const(c, 1)), *dims[] = {out->dims[0], wide};
	if (refs.lod) {
		wide = infer_found_size(op, dim_add(c, refs.most, dim_const(c, 1)));
		Value *longer = tensor_add(b, longest(b, &refs), build_number(b, DT_I64, 1, 1));
		if (!bind_size(b, longer, wide))
			return false;
		dims[1] = wide;
	}
	Nest n = nest_open(b, type_tensor(c, DT_F32, 2, dims, 0));
	Value *init = nest_close(&n, scalar_from_index(&n.b, n.at[1], DT_F32)),
		  *steps = longest(b, &hyps);
	if (!steps || !count_begin(&loop, b, steps, false, 1, &init))
		return false;
	count_name(&loop, 0, "distances");
	Value *old = loop.args[0], *before = distances_before(&loop.b, old, loop.at, &hyps, &refs);
	Value *next = before ? distances_next(&loop.b, old, before, loop.at, &hyps) : NULL;
	if (!count_end(&loop, &next))
		return false;
	n = nest_open(b, out);
	Value *length = load(&n.b, refs.lengths, n.at);
	Value *at[] = {n.at[0], index_from_data(&n.b, length, wide, false)};
	Value *distance = load(&n.b, count_result(&loop, 0), at);
	if (op_bool(op, "normalized", false))
		distance = tensor_div(&n.b, distance, scalar_cast(&n.b, length, DT_F32));
	results[1] = nest_close(&n, distance);
	Nest count = nest_open(b, op->results[0].type);
	results[0] = nest_close(&count,
	                        scalar_from_index(&count.b, index_dim(&count.b, out->dims[0]), DT_I64));
	return results[0] && results[1];
}
