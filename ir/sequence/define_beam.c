// Beam search over LoD tensors, as Fluid has it: types and meaning (ir/ops/sequence.yaml).
#include "ir/build/build.h"
#include "ir/sequence/sequence.h"

#include <string.h>

static const Dim *plus_one(Context *c, const Dim *d)
{
	return dim_add(c, d, dim_const(c, 1));
}

static Value *checked(Builder *b, Value *at, const Dim *extent)
{
	return index_from_data(b, scalar_from_index(b, at, DT_I64), extent, false);
}

static Value *logical_or(Builder *b, Value *x, Value *y)
{
	return apply2(b, OP_PD_LOGICAL_OR, x, y);
}

static Value *is_number(Builder *b, Value *x, int64_t v)
{
	return x ? apply2(b, OP_PD_EQUAL, x, build_scalar_f(b, x->type->dtype, (double)v)) : NULL;
}

// ---- one step -----------------------------------------------------------------------------------

static bool beam_results(Op *op, DType ids, DType scores, const Dim *const *shape, const Dim *low)
{
	return infer_result_shape(op, 0, ids, 2, shape) &&
	       infer_result_shape(op, 1, scores, 2, shape) &&
	       infer_result_shape(op, 2, DT_I32, 1, shape) &&
	       infer_result_shape(op, 3, DT_I64, 1, &low);
}

static bool are_as_large(const Op *op, const Type *ids, const Type *scores)
{
	const Dim *same;
	for (int d = 0; d < 2; d++)
		if (!infer_same_dim(op, ids->dims[d], scores->dims[d], "sizes of ids and scores", &same))
			return false;
	return true;
}

bool infer_hook_beam_search(Op *op)
{
	Context *c = op->ctx;
	const Type *pre_ids = infer_tensor(op, 0), *pre = infer_tensor(op, 1),
			   *scores = infer_rank(op, 3, 2);
	const Type *offsets = infer_rank(op, 4, 1),
			   *ids = op_operand(op, 2) ? infer_rank(op, 2, 2) : NULL;
	const Dim *rows;
	int64_t beam = op_int(op, "beam_size", 0);
	if (!pre_ids || !pre || !scores || !offsets || (op_operand(op, 2) && !ids))
		return false;
	if (beam < 1)
		return op_error(op, "a beam of %lld", (long long)beam);
	if (!infer_same_dim(op, scores->dims[0], type_numel(c, pre_ids), "numbers of prefixes",
	                    &rows) ||
	    !infer_same_dim(op, rows, type_numel(c, pre), "numbers of prefixes", &rows))
		return false;
	if (ids && !are_as_large(op, ids, scores))
		return false;
	const Dim *sources = sequence_count(c, op_operand(op, 4)), *low = plus_one(c, rows);
	const Dim *shape[] = {infer_found_size(op, dim_mul(c, sources, dim_const(c, beam))),
	                      dim_const(c, 1)};
	return beam_results(op, pre_ids->dtype, scores->dtype, shape, low);
}

// All ways to go on [prefixes, width].
typedef struct Ways {
	const Op *op;
	Value *pre_ids, *pre_scores, *offsets; // vectors
	const Dim *dims[2];
	Value *ids, *scores, *open; // open: a way at all
	Value *source;              // of each prefix
	Value *kept;                // among the best of the source
	Value *rank;                // how many of the source are better
} Ways;

static const Type *ways_type(const Ways *w, DType t)
{
	return type_tensor(w->op->ctx, t, 2, w->dims, 0);
}

// A prefix that has ended has one way, in its first column.
static bool ways_collect(Ways *w, Builder *b)
{
	Value *ids = op_operand(w->op, 2), *scores = op_operand(w->op, 3), *out[3];
	DType id = w->pre_ids->type->dtype, score = scores->type->dtype;
	int64_t end = op_int(w->op, "end_id", 0);
	const Type *types[] = {ways_type(w, id), ways_type(w, score), ways_type(w, DT_BOOL)};
	Nest n = nest_open_several(b, 3, types);
	Value *ended = is_number(&n.b, load(&n.b, w->pre_ids, n.at), end);
	Value *before = load(&n.b, w->pre_scores, n.at), *mine = load(&n.b, scores, n.at);
	if (!op_bool(w->op, "is_accumulated", true))
		mine = tensor_add(&n.b, before, apply1(&n.b, OP_PD_LOG, mine));
	Value *next = ids ? scalar_cast(&n.b, load(&n.b, ids, n.at), id)
	                  : scalar_from_index(&n.b, n.at[1], id);
	Value *first = index_equal(&n.b, n.at[1], index_const(&n.b, 0));
	Value *elements[] = {index_where(&n.b, ended, build_scalar_f(&n.b, id, (double)end), next),
	                     index_where(&n.b, ended, scalar_cast(&n.b, before, score), mine),
	                     logical_or(&n.b, first, apply1(&n.b, OP_PD_LOGICAL_NOT, ended))};
	if (!nest_close_several(&n, elements, out))
		return false;
	w->ids = out[0];
	w->scores = out[1];
	w->open = out[2];
	Nest s = nest_open(b, type_tensor(b->ctx, DT_I64, 1, w->dims, 0));
	w->source = nest_close(
		&s, scalar_from_index(&s.b, sequence_of_row(&s.b, w->offsets, s.at[0]), DT_I64));
	return w->source != NULL;
}

static Value *source_of(Builder *b, const Ways *w, Value *prefix)
{
	return index_from_data(b, load(b, w->source, &prefix), sequence_count(b->ctx, w->offsets),
	                       false);
}

// Better is a larger score; of equal ones that of a later prefix, then that of an earlier column.
static bool ways_rank(Ways *w, Builder *b)
{
	const Dim *rows = w->dims[0];
	Nest n = nest_open(b, ways_type(w, DT_I64));
	Value *source = source_of(&n.b, w, n.at[0]), *mine = load(&n.b, w->scores, n.at);
	Value *start = source ? sequence_start(&n.b, w->offsets, source, rows) : NULL;
	Value *wide = index_dim(&n.b, w->dims[1]),
		  *count = source ? sequence_length(&n.b, w->offsets, source, rows) : NULL;
	Nest r = reduce_open_counted(&n.b, "sum", DT_I64, dim_mul(b->ctx, rows, w->dims[1]),
	                             index_mul(&n.b, count, wide));
	Value *at[2];
	index_split(&r.b, r.at[0], 2, w->dims, at);
	at[0] = index_add(&r.b, start, at[0]);
	Value *its = load(&r.b, w->scores, at), *less = apply2(&r.b, OP_PD_GREATER_THAN, its, mine);
	Value *later = index_less(&r.b, n.at[0], at[0]);
	Value *beside = pred_and(&r.b, index_equal(&r.b, n.at[0], at[0]),
	                         index_less(&r.b, at[1], n.at[1]));
	Value *tie = pred_and(&r.b, apply2(&r.b, OP_PD_EQUAL, its, mine),
	                      logical_or(&r.b, later, beside));
	Value *better = pred_and(&r.b, load(&r.b, w->open, at), logical_or(&r.b, less, tie));
	w->rank = nest_close(&n, reduce_close(&r, better));
	if (!w->rank)
		return false;
	Nest k = nest_open(b, ways_type(w, DT_BOOL));
	Value *beam = build_scalar_f(&k.b, DT_I64, (double)op_int(w->op, "beam_size", 1));
	Value *good = apply2(&k.b, OP_PD_LESS_THAN, load(&k.b, w->rank, k.at), beam);
	w->kept = nest_close(&k, pred_and(&k.b, load(&k.b, w->open, k.at), good));
	return w->kept != NULL;
}

// Sources that only say the end again have nothing more.
static bool ways_prune(Ways *w, Builder *b)
{
	const Dim *rows = w->dims[0], *sources = sequence_count(b->ctx, w->offsets);
	int64_t end = op_int(w->op, "end_id", 0);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_BOOL, 1, &sources, 0));
	Value *start = sequence_start(&n.b, w->offsets, n.at[0], rows);
	Value *count = index_mul(&n.b, sequence_length(&n.b, w->offsets, n.at[0], rows),
	                         index_dim(&n.b, w->dims[1]));
	Nest r = reduce_open_counted(&n.b, "any", DT_BOOL, dim_mul(b->ctx, rows, w->dims[1]), count);
	Value *at[2];
	index_split(&r.b, r.at[0], 2, w->dims, at);
	at[0] = index_add(&r.b, start, at[0]);
	Value *ended = pred_and(&r.b, is_number(&r.b, load(&r.b, w->ids, at), end),
	                        is_number(&r.b, load(&r.b, w->pre_ids, at), end));
	Value *goes_on = pred_and(&r.b, load(&r.b, w->kept, at),
	                          apply1(&r.b, OP_PD_LOGICAL_NOT, ended));
	Value *alive = nest_close(&n, reduce_close(&r, goes_on));
	if (!alive)
		return false;
	Nest k = nest_open(b, ways_type(w, DT_BOOL));
	Value *source = source_of(&k.b, w, k.at[0]);
	w->kept = nest_close(
		&k, source ? pred_and(&k.b, load(&k.b, w->kept, k.at), load(&k.b, alive, &source)) : NULL);
	return w->kept != NULL;
}

static Value *kept_length(Builder *b, Value *i, void *arg)
{
	const Ways *w = arg;
	Nest r = reduce_open(b, "sum", DT_I64, 1, &w->dims[1]);
	Value *at[] = {i, r.at[0]};
	Value *sum = reduce_close(&r, load(&r.b, w->kept, at));
	return index_from_data(b, sum, plus_one(b->ctx, w->dims[1]), false);
}

// The column of the way at place `k` of its prefix, counted by rank.
static Value *column_of(Builder *b, const Ways *w, Value *prefix, Value *k)
{
	const Dim *wide = w->dims[1];
	Nest r = reduce_open(b, "argmax", DT_I64, 1, &wide);
	Value *at[] = {prefix, r.at[0]}, *rank = load(&r.b, w->rank, at);
	Nest c = reduce_open(&r.b, "sum", DT_I64, 1, &wide);
	Value *other[] = {prefix, c.at[0]};
	Value *before = apply2(&c.b, OP_PD_LESS_THAN, load(&c.b, w->rank, other), rank);
	Value *place = reduce_close(&c, pred_and(&c.b, load(&c.b, w->kept, other), before));
	Value *here = apply2(&r.b, OP_PD_EQUAL, place, scalar_from_index(&r.b, k, DT_I64));
	Value *found = pred_and(&r.b, load(&r.b, w->kept, at), here);
	return index_from_data(b, reduce_close(&r, scalar_cast(&r.b, found, DT_I32)), wide, false);
}

// What stands at the rows and columns of `way`.
static Value *chosen(Builder *b, const Ways *w, const Type *type, Value *const *way, Value *from)
{
	Nest e = nest_open(b, type);
	Value *at[] = {index_from_data(&e.b, load(&e.b, way[0], e.at), w->dims[0], false),
	               index_from_data(&e.b, load(&e.b, way[1], e.at), w->dims[1], false)};
	return nest_close(&e, load(&e.b, from, at));
}

bool define_hook_beam_search(Builder *b, Op *op, Value **results)
{
	const Type *scores = op_operand(op, 3)->type, *out = op->results[0].type;
	Ways w = {.op = op,
	          .pre_ids = tensor_flat(b, op_operand(op, 0)),
	          .pre_scores = tensor_flat(b, op_operand(op, 1)),
	          .offsets = op_operand(op, 4),
	          .dims = {scores->dims[0], scores->dims[1]}};
	const Type *place = type_tensor(b->ctx, DT_I64, 1, out->dims, 0), *places[] = {place, place};
	Value *way[2];
	if (!w.pre_ids || !w.pre_scores || !ways_collect(&w, b) || !ways_rank(&w, b) ||
	    !ways_prune(&w, b))
		return false;
	results[3] = offsets_of_lengths(b, w.dims[0], kept_length, &w);
	if (!results[3] || !bind_rows(b, results[3], out->dims[0]))
		return false;
	Nest n = nest_open_several(b, 2, places);
	Value *prefix = sequence_of_row(&n.b, results[3], n.at[0]);
	Value *start = prefix ? sequence_start(&n.b, results[3], prefix, out->dims[0]) : NULL;
	Value *column = start ? column_of(&n.b, &w, prefix, index_sub(&n.b, n.at[0], start)) : NULL;
	Value *both[] = {scalar_from_index(&n.b, prefix, DT_I64),
	                 scalar_from_index(&n.b, column, DT_I64)};
	if (!column || !nest_close_several(&n, both, way))
		return false;
	results[0] = chosen(b, &w, op->results[0].type, way, w.ids);
	results[1] = chosen(b, &w, op->results[1].type, way, w.scores);
	results[2] = tensor_cast(b, way[0], DT_I32);
	return results[0] && results[1] && results[2];
}

// ---- back through all steps ---------------------------------------------------------------------

bool infer_hook_beam_start(Op *op)
{
	if (!infer_rank(op, 0, 1))
		return false;
	const Dim *shape[] = {sequence_count(op->ctx, op_operand(op, 0)),
	                      dim_const(op->ctx, op_int(op, "beam_size", 1))};
	return infer_result_shape(op, 0, DT_I64, 2, shape) &&
	       infer_result_shape(op, 1, DT_I64, 2, shape) &&
	       infer_result_shape(op, 2, op_dtype(op, "dtype", DT_F32), 2, shape);
}

bool define_hook_beam_start(Builder *b, Op *op, Value **results)
{
	static const double worst = -3e38, start[] = {-1, 0, worst};
	for (int i = 0; i < 3; i++)
		results[i] = build_full(b, op->results[i].type, start[i]);
	return results[0] && results[1] && results[2];
}

bool infer_hook_beam_step(Op *op)
{
	const Type *ids = infer_tensor(op, 0), *scores = infer_tensor(op, 1),
			   *place = infer_rank(op, 4, 2);
	if (!ids || !scores || !place || !infer_rank(op, 2, 1) || !infer_rank(op, 3, 1) ||
	    !infer_rank(op, 5, 2))
		return false;
	const Type *same[] = {type_like(op->ctx, place, ids->dtype),
	                      type_like(op->ctx, place, scores->dtype), place, place};
	for (int i = 0; i < 4; i++)
		infer_result(op, i, same[i]);
	return true;
}

// A number from `vec`, a checked place of it, as a position up to `limit`.
static Value *position_in(Builder *b, Value *vec, Value *at, const Dim *limit)
{
	Value *place = checked(b, at, vec->type->dims[0]);
	return place ? index_from_data(b, load(b, vec, &place), limit, false) : NULL;
}

bool define_hook_beam_step(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *ids = tensor_flat(b, op_operand(op, 0)), *scores = tensor_flat(b, op_operand(op, 1)),
		  *high = op_operand(op, 2);
	Value *low = op_operand(op, 3), *place = op_operand(op, 4), *length = op_operand(op, 5);
	if (!ids || !scores)
		return false;
	const Dim *rows = ids->type->dims[0];
	const Type *types[4];
	for (int i = 0; i < 4; i++)
		types[i] = op->results[i].type;
	Nest n = nest_open_several(b, 4, types);
	// Whether the source has sentences yet: the first of them is somewhere.
	Value *front[] = {n.at[0], index_const(&n.b, 0)}, *none = build_scalar_f(&n.b, DT_I64, 0);
	Value *started = apply2(&n.b, OP_PD_GREATER_EQUAL, load(&n.b, place, front), none);
	Value *prefixes[] = {position_in(&n.b, high, n.at[0], low->type->dims[0]),
	                     position_in(&n.b, high, index_plus(&n.b, n.at[0], 1), low->type->dims[0])};
	if (!prefixes[0] || !prefixes[1])
		return false;
	Value *first = position_in(&n.b, low, prefixes[0], plus_one(c, rows));
	Value *end = position_in(&n.b, low, prefixes[1], plus_one(c, rows));
	Value *fresh = scalar_from_index(&n.b, index_add(&n.b, first, n.at[1]), DT_I64);
	Value *last = scalar_from_index(&n.b, end, DT_I64), *old = load(&n.b, place, n.at);
	Value *at = index_where(&n.b, started, old, fresh);
	Value *active = index_where(&n.b, started, apply2(&n.b, OP_PD_GREATER_EQUAL, old, none),
	                            apply2(&n.b, OP_PD_LESS_THAN, fresh, last));
	at = index_from_data(&n.b, index_where(&n.b, active, at, none),
	                     dim_max(c, rows, dim_const(c, 1)), false);
	Value *id = load_or(&n.b, active, build_scalar_f(&n.b, ids->type->dtype, 0), ids, &at);
	Value *score = load_or(&n.b, active, build_scalar_f(&n.b, scores->type->dtype, 0), scores, &at);
	// Of the ends of a sentence, one after the other, the last one counts.
	Value *ended = is_number(&n.b, id, op_int(op, "end_id", 0)),
		  *empty = is_number(&n.b, load(&n.b, length, n.at), 0);
	Value *taken = pred_and(&n.b, active,
	                        logical_or(&n.b, apply1(&n.b, OP_PD_LOGICAL_NOT, ended), empty));
	const Dim *count = sequence_count(c, low);
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &count);
	Value *next = index_plus(&r.b, r.at[0], 1), *mine = scalar_from_index(&r.b, at, DT_I64);
	Value *prefix = reduce_close(&r, apply2(&r.b, OP_PD_LESS_EQUAL, load(&r.b, low, &next), mine));
	Value *elements[] = {id, score, taken,
	                     index_where(&n.b, active, prefix, build_scalar_f(&n.b, DT_I64, -1))};
	return nest_close_several(&n, elements, results);
}

bool infer_hook_beam_sentences(Op *op)
{
	Context *c = op->ctx;
	const Type *ids = infer_rank(op, 0, 3), *scores = infer_rank(op, 1, 3),
			   *length = infer_rank(op, 3, 2);
	if (!ids || !scores || !length || !infer_rank(op, 2, 3) || !infer_rank(op, 4, 2))
		return false;
	const Dim *rows = infer_found_size(op, type_numel(c, ids)),
			  *high = plus_one(c, length->dims[0]);
	const Dim *low = plus_one(c, type_numel(c, length));
	return infer_result_shape(op, 0, ids->dtype, 1, &rows) &&
	       infer_result_shape(op, 1, scores->dtype, 1, &rows) &&
	       infer_result_shape(op, 2, DT_I64, 1, &high) &&
	       infer_result_shape(op, 3, DT_I64, 1, &low);
}

// The sentences of each source from the best to the worst, by their score at the end.
static Value *sentence_order(Builder *b, Value *best, Value *length)
{
	const Dim *beam = length->type->dims[1];
	Nest n = nest_open(b, length->type);
	Value *mine = load(&n.b, best, n.at);
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &beam);
	Value *at[] = {n.at[0], r.at[0]}, *its = load(&r.b, best, at);
	Value *tie = pred_and(&r.b, apply2(&r.b, OP_PD_EQUAL, its, mine),
	                      index_less(&r.b, r.at[0], n.at[1]));
	Value *rank = nest_close(
		&n, reduce_close(&r, logical_or(&r.b, apply2(&r.b, OP_PD_GREATER_THAN, its, mine), tie)));
	if (!rank)
		return NULL;
	n = nest_open(b, length->type);
	Value *wanted = scalar_from_index(&n.b, n.at[1], DT_I64);
	r = reduce_open(&n.b, "argmax", DT_I64, 1, &beam);
	Value *place[] = {n.at[0], r.at[0]};
	Value *found = apply2(&r.b, OP_PD_EQUAL, load(&r.b, rank, place), wanted);
	return nest_close(&n, reduce_close(&r, scalar_cast(&r.b, found, DT_I32)));
}

typedef struct Sentences {
	Value *order, *length;
	const Dim *steps;
} Sentences;

static Value *sentence_length(Builder *b, Value *i, void *arg)
{
	const Sentences *s = arg;
	Value *at[2];
	index_split(b, i, 2, s->length->type->dims, at);
	at[1] = index_from_data(b, load(b, s->order, at), s->length->type->dims[1], false);
	return index_from_data(b, load(b, s->length, at), plus_one(b->ctx, s->steps), false);
}

// For each step back how many that count are further back.
static Value *steps_behind(Builder *b, Value *taken)
{
	const Dim *steps = taken->type->dims[0];
	Nest n = nest_open(b, type_like(b->ctx, taken->type, DT_I64));
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &steps);
	Value *at[] = {r.at[0], n.at[1], n.at[2]}, *zero = build_scalar_f(&r.b, DT_I64, 0);
	Value *other = scalar_cast(&r.b, load(&r.b, taken, at), DT_I64);
	return nest_close(
		&n, reduce_close(&r, index_where(&r.b, index_less(&r.b, n.at[0], r.at[0]), other, zero)));
}

bool define_hook_beam_sentences(Builder *b, Op *op, Value **results)
{
	Value *ids = op_operand(op, 0), *taken = op_operand(op, 2), *split[2];
	const Type *out = op->results[0].type;
	Sentences s = {.length = op_operand(op, 3), .steps = ids->type->dims[0]};
	s.order = sentence_order(b, op_operand(op, 4), s.length);
	Value *behind = steps_behind(b, taken);
	if (!s.order || !behind)
		return false;
	const Dim *beam = s.length->type->dims[1], *all = type_numel(b->ctx, s.length->type);
	results[3] = offsets_of_lengths(b, all, sentence_length, &s);
	if (!results[3] || !bind_rows(b, results[3], out->dims[0]))
		return false;
	Nest h = nest_open(b, op->results[2].type);
	results[2] = nest_close(
		&h, scalar_from_index(&h.b, index_mul(&h.b, h.at[0], index_dim(&h.b, beam)), DT_I64));
	const Type *types[] = {op->results[0].type, op->results[1].type};
	Nest n = nest_open_several(b, 2, types);
	Value *k = sequence_of_row(&n.b, results[3], n.at[0]);
	if (!k)
		return false;
	index_split(&n.b, k, 2, s.length->type->dims, split);
	split[1] = index_from_data(&n.b, load(&n.b, s.order, split), beam, false);
	Value *place = index_sub(&n.b, n.at[0], sequence_start(&n.b, results[3], k, out->dims[0]));
	Nest r = reduce_open(&n.b, "argmax", DT_I64, 1, &s.steps);
	Value *at[] = {r.at[0], split[0], split[1]};
	Value *here = apply2(&r.b, OP_PD_EQUAL, load(&r.b, behind, at),
	                     scalar_from_index(&r.b, place, DT_I64));
	Value *counts = apply1(&r.b, OP_PD_LOGICAL_NOT, is_number(&r.b, load(&r.b, taken, at), 0));
	Value *step = reduce_close(&r, scalar_cast(&r.b, pred_and(&r.b, counts, here), DT_I32));
	Value *from[] = {index_from_data(&n.b, step, s.steps, false), split[0], split[1]};
	if (!from[0])
		return false;
	Value *elements[] = {load(&n.b, ids, from), load(&n.b, op_operand(op, 1), from)};
	return nest_close_several(&n, elements, results) && results[2];
}
