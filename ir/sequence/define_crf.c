// Chains of labels: linear_chain_crf, crf_decoding and viterbi_decode of ir/ops/sequence.yaml. A
// label has a weight in each step (x) and one for the label in front of it (w); all sequences take
// a step together.
#include "ir/build/counted.h"
#include "ir/sequence/sequence.h"

// Rows with LoD, or [sequences x steps x labels] with lengths.
typedef struct Chain {
	Value *x, *w, *lod, *lengths;
	const Dim *start, *stop;          // rows of w: of first and of last labels (NULL: none)
	int64_t first;                    // of what follows label 0
	const Dim *count, *most, *labels; // sequences; no one has more steps
	DType t;
} Chain;

static bool chain_open(Chain *k, Builder *b, Op *op, Value *lengths, Value *lod)
{
	const Type *x = infer_tensor(op, 0), *w = x ? infer_rank(op, 1, 2) : NULL;
	const Dim *same;
	if (!w || (x->rank == 3 ? !lengths : x->rank != 2 || !lod))
		return w && op_error(op, "weights of %d axes without LoD or lengths", x->rank);
	*k = (Chain){.x = op_operand(op, 0),
	             .w = op_operand(op, 1),
	             .start = dim_const(b->ctx, 0),
	             .stop = dim_const(b->ctx, 1),
	             .first = 2,
	             .most = x->dims[x->rank - 2],
	             .labels = x->dims[x->rank - 1],
	             .t = x->dtype};
	k->lod = x->rank == 2 ? lod : NULL;
	k->count = x->rank == 2 ? sequence_count(b->ctx, lod) : x->dims[0];
	if (x->rank == 3) {
		const Dim *given = type_numel(b->ctx, lengths->type);
		const char *what = "numbers of sequences and lengths";
		if (!infer_same_dim(op, given, k->count, what, &same) ||
		    !check_sizes(b, 1, &given, &k->count, false, what))
			return false;
		k->lengths = tensor_reshape(b, lengths, 1, &k->count);
	}
	return infer_same_dim(op, w->dims[1], k->labels, "numbers of labels", &same) &&
	       (k->lod || k->lengths);
}

static bool weights_fit(Builder *b, const Op *op, const Chain *k, int64_t more)
{
	const Dim *same, *want[] = {dim_add(b->ctx, k->labels, dim_const(b->ctx, more)), k->labels};
	const Dim *const *have = k->w->type->dims;
	return infer_same_dim(op, have[0], want[0], "rows of the transitions", &same) &&
	       check_sizes(b, 2, have, want, false, "transitions of other labels");
}

static Value *length_of(Builder *b, const Chain *k, Value *i)
{
	return sequence_length_or(b, k->lengths, k->lod, i, k->most);
}

// Element of a tensor with the rows of x: of step t of sequence i, in `column` (NULL: there is
// none); `other` behind the end.
static Value *at_step(Builder *b, const Chain *k, Value *from, Value *i, Value *t, Value *column,
                      Value *other)
{
	Value *inside = index_less(b, t, length_of(b, k, i));
	Value *padded[] = {i, t, column}, *rows[] = {NULL, column};
	if (k->lengths)
		return load_or(b, inside, other, from, padded);
	rows[0] = index_add(b, sequence_start(b, k->lod, i, k->most), t);
	return load_or(b, inside, other, from, rows);
}

// Element `column` of a row of w; 0 where there is no such row.
static Value *edge_weight(Builder *b, const Chain *k, const Dim *row, Value *column)
{
	Value *at[] = {row ? index_dim(b, row) : NULL, column};
	return row ? load(b, k->w, at) : build_scalar_f(b, k->t, 0);
}

static Value *label_weight(Builder *b, const Chain *k, Value *i, Value *t, Value *label)
{
	return at_step(b, k, k->x, i, t, label, build_scalar_f(b, k->t, 0));
}

static const Type *per_label(Builder *b, const Chain *k, DType t)
{
	const Dim *dims[] = {k->count, k->labels};
	return type_tensor(b->ctx, t, 2, dims, 0);
}

static Value *chain_begin(Builder *b, const Chain *k)
{
	Nest n = nest_open(b, per_label(b, k, k->t));
	Value *x = label_weight(&n.b, k, n.at[0], index_const(&n.b, 0), n.at[1]);
	return nest_close(&n, tensor_add(&n.b, x, edge_weight(&n.b, k, k->start, n.at[1])));
}

// What leads to label i from label j: [sequences x j x i].
static Value *ways(Builder *b, const Chain *k, Value *alpha)
{
	const Dim *dims[] = {k->count, k->labels, k->labels};
	Nest n = nest_open(b, type_tensor(b->ctx, k->t, 3, dims, 0));
	Value *from[] = {n.at[0], n.at[1]}, *w[] = {index_plus(&n.b, n.at[1], k->first), n.at[2]};
	return nest_close(&n, tensor_add(&n.b, load(&n.b, alpha, from), load(&n.b, k->w, w)));
}

// alpha with what a last label has on top.
static Value *chain_end(Builder *b, const Chain *k, Value *alpha)
{
	Nest n = nest_open(b, alpha->type);
	return nest_close(
		&n, tensor_add(&n.b, load(&n.b, alpha, n.at), edge_weight(&n.b, k, k->stop, n.at[1])));
}

// alpha behind step `at` + 1: `best` of the ways and the weight of the label; as it was for
// sequences that have ended.
static Value *chain_step(Builder *b, const Chain *k, Value *alpha, Value *best, Value *at)
{
	if (!best)
		return NULL;
	Nest n = nest_open(b, alpha->type);
	Value *t = index_plus(&n.b, index_from_data(&n.b, load_scalar(&n.b, at), k->most, false), 1);
	Value *more = tensor_add(&n.b, load(&n.b, best, n.at),
	                         label_weight(&n.b, k, n.at[0], t, n.at[1]));
	Value *inside = index_less(&n.b, t, length_of(&n.b, k, n.at[0]));
	return nest_close(&n, index_where(&n.b, inside, more, load(&n.b, alpha, n.at)));
}

// The length of the longest sequence, one i64.
static Value *longest(Builder *b, const Chain *k)
{
	const Dim *one = dim_const(b->ctx, 1);
	if (k->lod)
		return tensor_reshape(b, longest_sequence(b, k->lod, k->most), 1, &one);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &one, 0));
	Nest r = reduce_open(&n.b, "max", DT_I64, 1, &k->count);
	Value *most = reduce_close(&r, scalar_from_index(&r.b, length_of(&r.b, k, r.at[0]), DT_I64));
	return nest_close(&n, apply2(&n.b, OP_PD_MAXIMUM, most, build_scalar_f(&n.b, DT_I64, 0)));
}

// Steps between labels.
static Value *between(Builder *b, Value *steps)
{
	Value *less = steps ? tensor_sub(b, steps, build_number(b, DT_I64, 1, 1)) : NULL;
	return less ? apply2(b, OP_PD_MAXIMUM, less, build_number(b, DT_I64, 1, 0)) : NULL;
}

// ---- linear_chain_crf ---------------------------------------------------------------------------

static Value *log_sum(Builder *b, Value *x)
{
	const int64_t axis = 1;
	return x ? build1(b, OP_PD_LOGSUMEXP, x, "axis", attr_ints(b->ctx, 1, &axis), NULL) : NULL;
}

static Value *label_at(Builder *b, const Chain *k, Value *label, Value *i, Value *t)
{
	Value *none = build_scalar_f(b, label->type->dtype, 0);
	return index_from_data(b, at_step(b, k, label, i, t, NULL, none), k->labels, false);
}

// What the labels of sequence i weigh together.
static Value *path_weight(Builder *b, const Chain *k, Value *label, Value *i)
{
	Value *length = length_of(b, k, i), *zero = index_const(b, 0);
	Value *last = index_max(b, index_plus(b, length, -1), zero);
	Value *ends = tensor_add(b, edge_weight(b, k, k->start, label_at(b, k, label, i, zero)),
	                         edge_weight(b, k, k->stop, label_at(b, k, label, i, last)));
	Nest r = reduce_open_counted(b, "sum", k->t, k->most, length);
	Value *start = index_const(&r.b, 0), *here = label_at(&r.b, k, label, i, r.at[0]);
	Value *before = label_at(&r.b, k, label, i,
	                         index_max(&r.b, index_plus(&r.b, r.at[0], -1), start));
	Value *w[] = {index_plus(&r.b, before, k->first), here};
	Value *way = index_where(&r.b, index_equal(&r.b, r.at[0], start), build_scalar_f(&r.b, k->t, 0),
	                         load(&r.b, k->w, w));
	Value *sum = reduce_close(&r, tensor_add(&r.b, label_weight(&r.b, k, i, r.at[0], here), way));
	return tensor_add(b, sum, ends);
}

// A column of labels, without axes of size 1 behind the rows.
static Value *labels_of(Builder *b, const Chain *k, Value *label)
{
	return label ? tensor_reshape(b, label, k->lengths ? 2 : 1, k->x->type->dims) : NULL;
}

static bool exponentials(Builder *b, const Chain *k, Value **results)
{
	const int64_t last = k->x->type->rank - 1;
	Value *most = tensor_reduce(b, OP_PD_MAX, k->x, 1, &last);
	results[1] = most ? apply1(b, OP_PD_EXP, tensor_sub(b, k->x, most)) : NULL;
	results[2] = apply1(b, OP_PD_EXP, k->w);
	return results[1] && results[2];
}

bool define_hook_linear_chain_crf(Builder *b, Op *op, Value **results)
{
	Chain k;
	CountedLoop l;
	if (!chain_open(&k, b, op, op_operand(op, 3), op_operand(op, 4)) || !weights_fit(b, op, &k, 2))
		return false;
	Value *label = labels_of(b, &k, op_operand(op, 2)), *alpha = chain_begin(b, &k);
	Value *steps = between(b, longest(b, &k));
	if (!label || !alpha || !steps || !count_begin(&l, b, steps, false, 1, &alpha))
		return false;
	count_name(&l, 0, "alpha");
	Value *best = log_sum(&l.b, ways(&l.b, &k, l.args[0]));
	Value *next = chain_step(&l.b, &k, l.args[0], best, l.at);
	if (!next || !count_end(&l, &next))
		return false;
	Value *all = log_sum(b, chain_end(b, &k, count_result(&l, 0)));
	if (!all || !exponentials(b, &k, results))
		return false;
	const Dim *dims[] = {k.count, dim_const(b->ctx, 1)};
	Nest n = nest_open(b, type_tensor(b->ctx, k.t, 2, dims, 0));
	Value *some = index_less(&n.b, index_const(&n.b, 0), length_of(&n.b, &k, n.at[0]));
	Value *cost = tensor_sub(&n.b, load(&n.b, all, n.at), path_weight(&n.b, &k, label, n.at[0]));
	results[0] = nest_close(&n, index_where(&n.b, some, cost, build_scalar_f(&n.b, k.t, 0)));
	return results[0] != NULL;
}

// ---- the best labels ----------------------------------------------------------------------------

// Of [sequences x j x ..] the j of the largest element.
static Value *came_from(Builder *b, Value *x)
{
	return x ? build1(b, OP_PD_ARGMAX, x, "axis", attr_int(b->ctx, 1), NULL) : NULL;
}

static Value *largest(Builder *b, Value *x)
{
	const int64_t axis = 1;
	return x ? build1(b, OP_PD_MAX, x, "axis", attr_ints(b->ctx, 1, &axis), NULL) : NULL;
}

// One step back: the label of each sequence in step `at`, from that in the step behind it.
static Value *step_back(Builder *b, const Chain *k, Value *rooms, Value *label, Value *at)
{
	Nest n = nest_open(b, label->type);
	Value *t = index_from_data(&n.b, load_scalar(&n.b, at), rooms->type->dims[0], false);
	Value *own = load(&n.b, label, n.at);
	Value *from[] = {t, n.at[0], index_from_data(&n.b, own, k->labels, false)};
	Value *inside = index_less(&n.b, index_plus(&n.b, t, 1), length_of(&n.b, k, n.at[0]));
	return nest_close(&n, index_where(&n.b, inside, load(&n.b, rooms, from), own));
}

// The labels of the best chain of each sequence, i64 [sequences x steps], whatever behind the end;
// and its weight.
static Value *best_labels(Builder *b, const Chain *k, const Dim *most, Value **weight)
{
	Context *c = b->ctx;
	CountedLoop f, r;
	const Dim *room[] = {k->most, k->count, k->labels}, *paths[] = {k->most, k->count};
	Value *steps = between(b, longest(b, k));
	Value *inits[] = {chain_begin(b, k), build_full(b, type_tensor(c, DT_I64, 3, room, 0), 0)};
	if (!steps || !inits[0] || !inits[1] || !count_begin(&f, b, steps, false, 2, inits))
		return NULL;
	count_name(&f, 0, "weight");
	count_name(&f, 1, "came_from");
	Value *all = ways(&f.b, k, f.args[0]), *from = came_from(&f.b, all);
	Value *next[] = {chain_step(&f.b, k, f.args[0], largest(&f.b, all), f.at),
	                 from ? build_set_step(&f.b, f.args[1], f.at, from) : NULL};
	if (!next[0] || !next[1] || !count_end(&f, next))
		return NULL;
	Value *end = chain_end(b, k, count_result(&f, 0)), *label = came_from(b, end);
	*weight = largest(b, end);
	Value *start[] = {label, build_full(b, type_tensor(c, DT_I64, 2, paths, 0), 0)};
	if (!label || !start[1] || !count_begin(&r, b, steps, true, 2, start))
		return NULL;
	count_name(&r, 0, "label");
	count_name(&r, 1, "path");
	Value *before = step_back(&r.b, k, count_result(&f, 1), r.args[0], r.at);
	Value *back[] = {before, before ? build_set_step(&r.b, r.args[1], r.at, before) : NULL};
	if (!back[1] || !count_end(&r, back))
		return NULL;
	const Dim *dims[] = {k->count, most};
	Nest n = nest_open(b, type_tensor(c, DT_I64, 2, dims, 0));
	Value *last = index_plus(&n.b, length_of(&n.b, k, n.at[0]), -1);
	Value *at[] = {n.at[1], n.at[0]};
	return nest_close(&n,
	                  index_where(&n.b, index_less(&n.b, n.at[1], last),
	                              load(&n.b, count_result(&r, 1), at), load(&n.b, label, n.at)));
}

// The label of a row of x, 0 behind the end; with labels, whether it is the same.
static Value *row_label(Builder *b, const Chain *k, Value *paths, Value *label, Value *const *row)
{
	Value *at[] = {row[0], row[1]};
	if (k->lod) {
		at[0] = sequence_of_row(b, k->lod, row[0]);
		at[1] = at[0] ? index_sub(b, row[0], sequence_start(b, k->lod, at[0], k->most)) : NULL;
	}
	Value *inside = at[1] ? index_less(b, at[1], length_of(b, k, at[0])) : NULL;
	Value *v = inside ? load_or(b, inside, build_scalar_f(b, DT_I64, 0), paths, at) : NULL;
	if (!label || !v)
		return v;
	Value *same = apply2(b, OP_PD_EQUAL, scalar_cast(b, load(b, label, row), DT_I64), v);
	return scalar_cast(b, pred_and(b, inside, same), DT_I64);
}

bool define_hook_crf_decoding(Builder *b, Op *op, Value **results)
{
	Chain k;
	Value *weight;
	if (!chain_open(&k, b, op, op_operand(op, 3), op_operand(op, 4)) || !weights_fit(b, op, &k, 2))
		return false;
	const Type *x = k.x->type;
	const Dim *dims[] = {x->dims[0], k.lod ? dim_const(b->ctx, 1) : x->dims[1]};
	Value *label = labels_of(b, &k, op_operand(op, 2));
	Value *paths = best_labels(b, &k, k.most, &weight);
	if (!paths || (!label && op_operand(op, 2)))
		return false;
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 2, dims, 0));
	results[0] = nest_close(&n, row_label(&n.b, &k, paths, label, n.at));
	return results[0] != NULL;
}

bool infer_hook_viterbi_decode(Op *op)
{
	const Type *x = infer_rank(op, 0, 3);
	if (!x)
		return false;
	const Dim *dims[] = {x->dims[0], infer_found_size(op, x->dims[1])};
	return infer_result_shape(op, 0, x->dtype, 1, dims) &&
	       infer_result_shape(op, 1, DT_I64, 2, dims);
}

// Label `back` from the end of those that there are; where there are fewer, the first.
static const Dim *label_from_end(Context *c, const Chain *k, int64_t back)
{
	return dim_max(c, dim_sub(c, k->labels, dim_const(c, back)), dim_const(c, 0));
}

bool define_hook_viterbi_decode(Builder *b, Op *op, Value **results)
{
	Chain k;
	bool tags = op_bool(op, "include_bos_eos_tag", true);
	if (!chain_open(&k, b, op, op_operand(op, 2), NULL) || !weights_fit(b, op, &k, 0))
		return false;
	if (tags && dim_is_const(k.labels) && k.labels->value < 2)
		return op_error(op, "tags need 2 labels");
	k.start = tags ? label_from_end(b->ctx, &k, 1) : NULL;
	k.stop = tags ? label_from_end(b->ctx, &k, 2) : NULL;
	k.first = 0;
	const Type *out = op->results[1].type;
	if (!bind_size(b, longest(b, &k), out->dims[1]))
		return false;
	Value *paths = best_labels(b, &k, out->dims[1], &results[0]);
	if (!paths)
		return false;
	Nest n = nest_open(b, out);
	Value *inside = index_less(&n.b, n.at[1], length_of(&n.b, &k, n.at[0]));
	results[1] = nest_close(&n,
	                        load_or(&n.b, inside, build_scalar_f(&n.b, DT_I64, 0), paths, n.at));
	return results[0] && results[1];
}
