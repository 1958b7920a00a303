// What chunk_eval means (ir/ops/sequence.yaml): which rows begin a chunk and which end one, in two
// taggings, and how many chunks are in both.
#include "ir/sequence/sequence.h"

// The number of tags of a scheme, and those that say something; -1: it has no such tag.
static const struct {
	int64_t tags, begin, end, single;
} schemes[CHUNKS_COUNT] = {
	[CHUNKS_IOB] = {2, 0, -1, -1},
	[CHUNKS_IOE] = {2, -1, 1, -1},
	[CHUNKS_IOBES] = {4, 0, 2, 3},
	[CHUNKS_PLAIN] = {1, -1, -1, -1},
};

typedef struct Tagging {
	const Op *op;
	int scheme;
	int64_t types;                // the type behind the last is outside of all chunks
	Value *lod, *lengths;         // one of them says where sequences are
	const Dim *rows, *wide, *all; // of the sequences together; of one by lengths; of labels
} Tagging;

static const Type *row_numbers(const Tagging *t)
{
	return type_tensor(t->op->ctx, DT_I64, 1, &t->rows, 0);
}

static Value *either(Builder *b, Value *p, Value *q)
{
	return apply2(b, OP_PD_LOGICAL_OR, p, q);
}

static Value *differs(Builder *b, Value *x, Value *y)
{
	return apply1(b, OP_PD_LOGICAL_NOT, index_equal(b, x, y));
}

// The last label, of what is in no chunk.
static Value *outside_label(const Tagging *t, Builder *b)
{
	return build_scalar_f(b, DT_I64, (double)(t->all->value - 1));
}

// The label of each row, checked; behind the end of a sequence that of what is outside.
static Value *labels_of(const Tagging *t, Builder *b, Value *x)
{
	Value *flat = tensor_cast(b, tensor_flat(b, x), DT_I64);
	Nest n = nest_open(b, row_numbers(t));
	Value *label = load(&n.b, flat, n.at);
	if (t->lengths) {
		Value *row = index_div(&n.b, n.at[0], index_dim(&n.b, t->wide));
		Value *at = index_mod(&n.b, n.at[0], index_dim(&n.b, t->wide));
		Value *length = scalar_cast(&n.b, load(&n.b, t->lengths, &row), DT_I64);
		Value *inside = apply2(&n.b, OP_PD_LESS_THAN, scalar_from_index(&n.b, at, DT_I64), length);
		label = index_where(&n.b, inside, label, outside_label(t, &n.b));
	}
	return nest_close(&n,
	                  scalar_from_index(&n.b, index_from_data(&n.b, label, t->all, false), DT_I64));
}

// Whether a row is the first of its sequence.
static Value *is_first(const Tagging *t, Builder *b, Value *row)
{
	if (!t->lod)
		return index_equal(b, index_mod(b, row, index_dim(b, t->wide)), index_const(b, 0));
	Value *sequence = sequence_of_row(b, t->lod, row);
	return index_equal(b, row, sequence_start(b, t->lod, sequence, t->rows));
}

static Value *type_of(const Tagging *t, Builder *b, Value *label)
{
	return index_div(b, label, index_const(b, schemes[t->scheme].tags));
}

// Whether tags of one type are of two chunks.
static Value *parts(const Tagging *t, Builder *b, Value *before, Value *label)
{
	const int64_t tags = schemes[t->scheme].tags;
	const int64_t own[] = {schemes[t->scheme].begin, schemes[t->scheme].single};
	const int64_t last[] = {schemes[t->scheme].end, schemes[t->scheme].single};
	Value *tag = index_mod(b, label, index_const(b, tags)),
		  *past = index_mod(b, before, index_const(b, tags)), *found = NULL;
	for (int i = 0; i < 4; i++) {
		const int64_t which = i < 2 ? own[i] : last[i - 2];
		Value *is = which < 0 ? NULL : index_equal(b, i < 2 ? tag : past, index_const(b, which));
		found = is && found ? either(b, found, is) : is ? is : found;
	}
	return found;
}

static Value *label_at(const Tagging *t, Builder *b, Value *labels, Value *row)
{
	return index_from_data(b, load(b, labels, &row), t->all, false);
}

// The number of each row that begins a chunk, else -1.
static Value *begins_of(const Tagging *t, Builder *b, Value *labels)
{
	Nest n = nest_open(b, row_numbers(t));
	Value *later = apply1(&n.b, OP_PD_LOGICAL_NOT, is_first(t, &n.b, n.at[0]));
	Value *before = index_plus(&n.b, n.at[0], -1), *label = label_at(t, &n.b, labels, n.at[0]);
	before = load_or(&n.b, later, outside_label(t, &n.b), labels, &before);
	before = index_from_data(&n.b, before, t->all, false);
	Value *type = type_of(t, &n.b, label);
	Value *begins = differs(&n.b, type, type_of(t, &n.b, before));
	Value *apart = parts(t, &n.b, before, label);
	begins = apart ? either(&n.b, begins, apart) : begins;
	begins = pred_and(&n.b, begins, index_less(&n.b, type, index_const(&n.b, t->types)));
	return nest_close(&n, index_where(&n.b, begins, scalar_from_index(&n.b, n.at[0], DT_I64),
	                                  build_scalar_f(&n.b, DT_I64, -1)));
}

// Whether a row is in a chunk of a type that counts.
static Value *counts(const Tagging *t, Builder *b, Value *type)
{
	const Attr *a = op_attr(t->op, "excluded_chunk_types");
	Value *in = index_less(b, type, index_const(b, t->types));
	for (int i = 0; a && i < a->n; i++)
		if (a->ints[i] >= 0)
			in = pred_and(b, in, differs(b, type, index_const(b, a->ints[i])));
	return in;
}

// Whether the chunk that a row is in ends there.
static Value *ends(const Tagging *t, Builder *b, Value *labels, Value *begins, Value *row)
{
	Value *next = index_plus(b, row, 1), *none = build_scalar_f(b, DT_I64, 0);
	Value *more = index_inside(b, next, t->rows);
	Value *label = load_or(b, more, outside_label(t, b), labels, &next);
	label = index_from_data(b, label, t->all, false);
	Value *is_out = index_equal(b, type_of(t, b, label), index_const(b, t->types));
	Value *other = apply2(b, OP_PD_GREATER_EQUAL, load_or(b, more, none, begins, &next), none);
	return either(b, is_out, other);
}

// What each row has of one tagging.
typedef struct Chunks {
	Value *labels, *begins, *since; // since: where the latest chunk began
} Chunks;

// How many chunks there are in x, or, with y (else NULL), in both: [1].
static Value *count_rows(const Tagging *t, Builder *b, const Chunks *x, const Chunks *y)
{
	const Dim *one = dim_const(b->ctx, 1);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &one, 0));
	Nest r = reduce_open(&n.b, "sum", DT_I64, 1, &t->rows);
	Value *row = r.at[0], *none = build_scalar_f(&r.b, DT_I64, 0);
	Value *type = type_of(t, &r.b, label_at(t, &r.b, x->labels, row));
	Value *in = counts(t, &r.b, type);
	if (!y) {
		Value *first = apply2(&r.b, OP_PD_GREATER_EQUAL, load(&r.b, x->begins, &row), none);
		in = pred_and(&r.b, in, first);
	} else {
		Value *same = type_of(t, &r.b, label_at(t, &r.b, y->labels, row));
		in = pred_and(&r.b, in, index_equal(&r.b, type, same));
		in = pred_and(
			&r.b, in,
			apply2(&r.b, OP_PD_EQUAL, load(&r.b, x->since, &row), load(&r.b, y->since, &row)));
		in = pred_and(&r.b, in, ends(t, &r.b, x->labels, x->begins, row));
		in = pred_and(&r.b, in, ends(t, &r.b, y->labels, y->begins, row));
	}
	return nest_close(
		&n, reduce_close(&r, index_where(&r.b, in, build_scalar_f(&r.b, DT_I64, 1), none)));
}

static bool chunks_of(const Tagging *t, Builder *b, Value *x, Chunks *k)
{
	k->labels = labels_of(t, b, x);
	k->begins = k->labels ? begins_of(t, b, k->labels) : NULL;
	k->since = k->begins ? scan_along(b, k->begins, "max", 0, false, false, NULL) : NULL;
	return k->since != NULL;
}

static bool tagging_open(Tagging *t, Op *op)
{
	const Type *x = op_operand(op, 0)->type, *y = op_operand(op, 1)->type;
	Context *c = op->ctx;
	*t = (Tagging){.op = op,
	               .scheme = op_enum(op, "chunk_scheme"),
	               .types = op_int(op, "num_chunk_types", 0),
	               .lengths = op_operand_named(op, "seq_length"),
	               .rows = type_numel(c, x)};
	if (t->types < 1 || t->types > 1 << 20)
		return op_error(op, "%lld types of chunks", (long long)t->types);
	if (!t->lengths && !(t->lod = op_operand_named(op, "label_lod")))
		return op_error(op, "operand 'label' has neither LoD nor lengths");
	if (t->lengths && x->rank < 2)
		return op_error(op, "operand 'inference' must have an axis of sequences");
	const Dim *same;
	if (!infer_same_dim(op, t->rows, type_numel(c, y), "numbers of labels", &same))
		return false;
	t->wide = t->lengths ? x->dims[1] : NULL;
	t->all = dim_const(c, t->types * schemes[t->scheme].tags + 1);
	return true;
}

// x / y; 0 where that is nothing.
static Value *ratio(Builder *b, Value *x, Value *y)
{
	Value *any = apply2(b, OP_PD_GREATER_THAN, y, tensor_number(b, y->type->dtype, 0));
	Value *const operands[] = {any,
	                           tensor_div(b, tensor_cast(b, x, DT_F32), tensor_cast(b, y, DT_F32)),
	                           tensor_number(b, DT_F32, 0)};
	return any && operands[1] ? build(b, OP_PD_WHERE, 3, operands, NULL) : NULL;
}

bool define_hook_chunk_eval(Builder *b, Op *op, Value **results)
{
	Tagging t;
	Chunks found, wanted;
	if (!tagging_open(&t, op) || !chunks_of(&t, b, op_operand(op, 0), &found) ||
	    !chunks_of(&t, b, op_operand(op, 1), &wanted))
		return false;
	results[3] = count_rows(&t, b, &found, NULL);
	results[4] = count_rows(&t, b, &wanted, NULL);
	results[5] = count_rows(&t, b, &found, &wanted);
	if (!results[3] || !results[4] || !results[5])
		return false;
	results[0] = ratio(b, results[5], results[3]);
	results[1] = ratio(b, results[5], results[4]);
	Value *sum = tensor_add(b, results[0], results[1]);
	Value *twice = tensor_mul(b, tensor_number(b, DT_F32, 2),
	                          tensor_mul(b, results[0], results[1]));
	results[2] = ratio(b, twice, sum);
	return results[2] != NULL;
}
