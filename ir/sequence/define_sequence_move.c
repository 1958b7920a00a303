// What the operators mean that put sequences together, apart, or into other places
// (ir/ops/sequence.yaml). Where the number of rows follows from data, loop.bind gives it to the
// run.
#include "ir/build/build.h"
#include "ir/sequence/sequence.h"

#include <string.h>

// A position from a vector of numbers, below `extent`.
static Value *load_index(Builder *b, Value *vec, Value *at, const Dim *extent)
{
	return index_from_data(b, load(b, vec, &at), extent, false);
}

static const Dim *plus_one(Context *c, const Dim *d)
{
	return dim_add(c, d, dim_const(c, 1));
}

// How far row `row` is behind the beginning of sequence i.
static Value *row_in_sequence(Builder *b, Value *lod, Value *i, Value *row, const Dim *rows)
{
	return index_sub(b, row, sequence_start(b, lod, i, rows));
}

// Position `at` after a check that it is one, below `extent`.
static Value *index_checked(Builder *b, Value *at, const Dim *extent)
{
	return index_from_data(b, scalar_from_index(b, at, DT_I64), extent, false);
}

// The element of x in row `row`, with the nest's other positions from axis `first` on.
static Value *load_from_row(Builder *b, const Nest *n, Value *x, Value *row, int first)
{
	Value *at[MAX_RANK];
	at[0] = row;
	for (int d = 1; d < x->type->rank; d++)
		at[d] = n->at[first + d - 1];
	return load(b, x, at);
}

// ---- expand -------------------------------------------------------------------------------------

// Without LoD: row r of the result is the row of x whose sequence of y has r.
static bool expand_rows(Builder *b, Value *x, Value *y_lod, Op *op, Value **results)
{
	Nest n = nest_open(b, op->results[0].type);
	results[0] = nest_close(&n,
	                        load_from_row(&n.b, &n, x, sequence_of_row(&n.b, y_lod, n.at[0]), 1));
	return results[0] != NULL;
}

typedef struct Expand {
	Value *source, *x_lod; // which sequence of x each one of the result is
	const Dim *rows;
} Expand;

static Value *expanded_length(Builder *b, Value *i, void *arg)
{
	const Expand *e = arg;
	Value *from = load_index(b, e->source, i, sequence_count(b->ctx, e->x_lod));
	return from ? sequence_length(b, e->x_lod, from, e->rows) : NULL;
}

bool define_hook_sequence_expand(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *y_lod = op_operand(op, 2), *x_lod = op_operand(op, 3);
	const Dim *total = op_attr(op, "total")->dim, *rows = op->results[0].type->dims[0];
	if (!x_lod) {
		results[1] = build_full(b, op->results[1].type, 0); // nobody asks
		return results[1] && expand_rows(b, x, y_lod, op, results);
	}
	Nest s = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &total, 0));
	Expand e = {.x_lod = x_lod, .rows = x->type->dims[0]};
	e.source = nest_close(&s,
	                      scalar_from_index(&s.b, sequence_of_row(&s.b, y_lod, s.at[0]), DT_I64));
	results[1] = e.source ? offsets_of_lengths(b, total, expanded_length, &e) : NULL;
	if (!results[1] || !bind_rows(b, results[1], rows))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *k = sequence_of_row(&n.b, results[1], n.at[0]);
	Value *i = k ? load_index(&n.b, e.source, k, sequence_count(b->ctx, x_lod)) : NULL;
	if (!i)
		return false;
	Value *row = index_add(&n.b, sequence_start(&n.b, x_lod, i, e.rows),
	                       row_in_sequence(&n.b, results[1], k, n.at[0], rows));
	results[0] = nest_close(&n, load_from_row(&n.b, &n, x, index_checked(&n.b, row, e.rows), 1));
	return results[0] != NULL;
}

bool define_hook_sequence_expand_as(Builder *b, Op *op, Value **results)
{
	return expand_rows(b, op_operand(op, 0), op_operand(op, 2), op, results);
}

// ---- concat and reshape -------------------------------------------------------------------------

typedef struct Concat {
	int n;
	Value *const *x, *const *lod;
} Concat;

static Value *concat_length(Builder *b, Value *i, void *arg)
{
	const Concat *c = arg;
	Value *sum = index_const(b, 0);
	for (int k = 0; k < c->n; k++)
		sum = index_add(b, sum, sequence_length(b, c->lod[k], i, c->x[k]->type->dims[0]));
	return sum;
}

bool define_hook_sequence_concat(Builder *b, Op *op, Value **results)
{
	Concat c;
	c.n = op_operand_list(op, 0, &c.x);
	op_operand_list(op, 1, &c.lod);
	const Type *out = op->results[0].type;
	results[1] = offsets_of_lengths(b, sequence_count(b->ctx, c.lod[0]), concat_length, &c);
	if (!results[1])
		return false;
	Nest n = nest_open(b, out);
	Value *i = sequence_of_row(&n.b, results[1], n.at[0]);
	Value *at = i ? row_in_sequence(&n.b, results[1], i, n.at[0], out->dims[0]) : NULL;
	Value *element = build_scalar_f(&n.b, out->dtype, 0);
	for (int k = 0; k < c.n && at; k++) {
		const Dim *rows = c.x[k]->type->dims[0];
		Value *from[MAX_RANK], *length = sequence_length(&n.b, c.lod[k], i, rows);
		memcpy(from, n.at, sizeof from);
		from[0] = index_add(&n.b, sequence_start(&n.b, c.lod[k], i, rows), at);
		Value *here = pred_and(&n.b, apply2(&n.b, OP_PD_GREATER_EQUAL, at, index_const(&n.b, 0)),
		                       index_less(&n.b, at, length));
		element = load_or(&n.b, here, element, c.x[k], from);
		at = index_sub(&n.b, at, length);
	}
	results[0] = nest_close(&n, at ? element : NULL);
	return results[0] != NULL;
}

bool define_hook_sequence_reshape(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *lod = op_operand(op, 1);
	const Type *out = op->results[0].type;
	Nest n = nest_open(b, op->results[1].type);
	Value *start = sequence_start(&n.b, lod, n.at[0], x->type->dims[0]);
	Value *elements = index_mul(&n.b, start, index_dim(&n.b, x->type->dims[1]));
	results[1] = nest_close(
		&n,
		scalar_from_index(&n.b, index_div(&n.b, elements, index_dim(&n.b, out->dims[1])), DT_I64));
	results[0] = tensor_reshape(b, x, 2, out->dims);
	return results[0] && results[1];
}

// ---- pad and unpad ------------------------------------------------------------------------------

Value *longest_sequence(Builder *b, Value *lod, const Dim *rows)
{
	const Dim *count = sequence_count(b->ctx, lod);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 0, NULL, 0));
	Nest r = reduce_open(&n.b, "max", DT_I64, 1, &count);
	Value *most = reduce_close(
		&r, scalar_from_index(&r.b, sequence_length(&r.b, lod, r.at[0], rows), DT_I64));
	return nest_close(&n, apply2(&n.b, OP_PD_MAXIMUM, most, build_scalar_f(&n.b, DT_I64, 0)));
}

// The element that fills up: one for all, or one for each place in a row.
static Value *padding_element(Nest *n, Value *pad, int rank)
{
	Value *at[MAX_RANK];
	int own = pad->type->rank;
	if (dim_is(type_numel(n->b.ctx, pad->type), 1))
		return load_scalar(&n->b, pad);
	for (int d = 0; d < own; d++)
		at[d] = n->at[rank - own + d];
	return load(&n->b, pad, at);
}

bool define_hook_sequence_pad(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *pad = op_operand(op, 1), *lod = op_operand(op, 2);
	const Type *out = op->results[0].type;
	const Dim *rows = x->type->dims[0];
	if (!dim_is_const(out->dims[1]) && !bind_size(b, longest_sequence(b, lod, rows), out->dims[1]))
		return false;
	Nest l = nest_open(b, op->results[1].type);
	Value *length = index_checked(&l.b, sequence_length(&l.b, lod, l.at[0], rows),
	                              plus_one(b->ctx, out->dims[1]));
	results[1] = nest_close(&l, scalar_from_index(&l.b, length, DT_I64));
	Nest n = nest_open(b, out);
	Value *from[MAX_RANK], *other = padding_element(&n, pad, out->rank);
	length = sequence_length(&n.b, lod, n.at[0], rows);
	from[0] = index_add(&n.b, sequence_start(&n.b, lod, n.at[0], rows), n.at[1]);
	for (int d = 1; d < x->type->rank; d++)
		from[d] = n.at[d + 1];
	results[0] = nest_close(&n, load_or(&n.b, index_less(&n.b, n.at[1], length), other, x, from));
	return results[0] && results[1];
}

// A number for each sequence, up to `limit`.
typedef struct Lengths {
	Value *lengths;
	const Dim *limit;
} Lengths;

static Value *given_length(Builder *b, Value *i, void *arg)
{
	const Lengths *l = arg;
	return load_index(b, l->lengths, i, plus_one(b->ctx, l->limit));
}

bool define_hook_sequence_unpad(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *at[MAX_RANK];
	const Type *out = op->results[0].type;
	Lengths l = {tensor_flat(b, op_operand(op, 1)), x->type->dims[1]};
	results[1] = l.lengths ? offsets_of_lengths(b, x->type->dims[0], given_length, &l) : NULL;
	if (!results[1] || !bind_rows(b, results[1], out->dims[0]))
		return false;
	Nest n = nest_open(b, out);
	at[0] = sequence_of_row(&n.b, results[1], n.at[0]);
	if (!at[0])
		return false;
	at[1] = index_checked(&n.b, row_in_sequence(&n.b, results[1], at[0], n.at[0], out->dims[0]),
	                      x->type->dims[1]);
	for (int d = 2; d < x->type->rank; d++)
		at[d] = n.at[d - 1];
	results[0] = nest_close(&n, load(&n.b, x, at));
	return results[0] != NULL;
}

// ---- parts --------------------------------------------------------------------------------------

bool define_hook_sequence_slice(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *offset = tensor_flat(b, op_operand(op, 1)),
		  *lod = op_operand(op, 3);
	const Type *out = op->results[0].type;
	const Dim *rows = x->type->dims[0];
	Lengths l = {tensor_flat(b, op_operand(op, 2)), rows};
	if (!offset || !l.lengths)
		return false;
	results[1] = offsets_of_lengths(b, sequence_count(b->ctx, lod), given_length, &l);
	if (!results[1] || !bind_rows(b, results[1], out->dims[0]))
		return false;
	Nest n = nest_open(b, out);
	Value *i = sequence_of_row(&n.b, results[1], n.at[0]);
	if (!i)
		return false;
	Value *first = index_add(&n.b, sequence_start(&n.b, lod, i, rows),
	                         load_index(&n.b, offset, i, plus_one(b->ctx, rows)));
	Value *row = index_add(&n.b, first,
	                       row_in_sequence(&n.b, results[1], i, n.at[0], out->dims[0]));
	results[0] = nest_close(&n, load_from_row(&n.b, &n, x, index_checked(&n.b, row, rows), 1));
	return results[0] != NULL;
}

// Of a mask [.., n]: how many hold up to and with each place.
static Value *counts_of(Builder *b, Value *mask)
{
	return mask ? build1(b, OP_PD_CUMSUM, tensor_cast(b, mask, DT_I64), "axis",
	                     attr_int(b->ctx, mask->type->rank - 1), NULL)
	            : NULL;
}

// How many of the rows in front of each offset are kept, as a mask says.
static Value *offsets_kept(Builder *b, Value *lod, Value *mask)
{
	const Dim *rows = mask->type->dims[0];
	Nest n = nest_open(b, lod->type);
	Value *end = load_index(&n.b, lod, n.at[0], plus_one(b->ctx, rows));
	Nest r = reduce_open_counted(&n.b, "sum", DT_I64, rows, end);
	return nest_close(&n, reduce_close(&r, load(&r.b, mask, r.at)));
}

// The place along the last axis where `counts` first is `k` + 1; `front` are the positions before.
static Value *place_of_count(Builder *b, Value *counts, Value *const *front, Value *k)
{
	int last = counts->type->rank - 1;
	const Dim *extent = counts->type->dims[last];
	Value *at[MAX_RANK], *wanted = scalar_from_index(b, index_plus(b, k, 1), DT_I64);
	Nest r = reduce_open(b, "argmax", DT_I64, 1, &extent);
	for (int d = 0; d < last; d++)
		at[d] = front[d];
	at[last] = r.at[0];
	Value *found = apply2(&r.b, OP_PD_EQUAL, load(&r.b, counts, at), wanted);
	return index_from_data(b, reduce_close(&r, scalar_cast(&r.b, found, DT_I32)), extent, false);
}

bool define_hook_sequence_erase(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *ids = tensor_flat(b, x), *lod = op_operand(op, 1), *keep = NULL;
	const Attr *tokens = op_attr(op, "tokens");
	if (!ids)
		return false;
	Nest m = nest_open(b, type_like(b->ctx, ids->type, DT_BOOL));
	Value *id = load(&m.b, ids, m.at);
	for (int i = 0; i < tokens->n; i++) {
		Value *token = build_scalar_f(&m.b, ids->type->dtype, (double)tokens->ints[i]);
		keep = pred_and(&m.b, keep, apply2(&m.b, OP_PD_NOT_EQUAL, id, token));
	}
	Value *mask = nest_close(&m, keep ? keep : build_scalar_f(&m.b, DT_BOOL, 1));
	Chosen kept = select_true(b, mask);
	results[1] = kept.at ? offsets_kept(b, lod, mask) : NULL;
	if (!results[1] || !bind_rows(b, results[1], op->results[0].type->dims[0]))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *from = load_index(&n.b, kept.at, n.at[0], x->type->dims[0]);
	results[0] = nest_close(&n, from ? load_from_row(&n.b, &n, x, from, 1) : NULL);
	return results[0] != NULL;
}

// ---- ctc_align ----------------------------------------------------------------------------------

// Whether the token at `at` stays, where the one before it stands at `before` and counts if
// `has_before` holds.
static Value *token_stays(Builder *b, const Op *op, Value *x, Value *const *at,
                          Value *const *before, Value *has_before)
{
	DType t = x->type->dtype;
	Value *token = load(b, x, at);
	Value *stays = apply2(b, OP_PD_NOT_EQUAL, token,
	                      build_scalar_f(b, t, (double)op_int(op, "blank", 0)));
	if (!op_bool(op, "merge_repeated", true))
		return stays;
	Value *last = load_or(b, has_before, build_scalar_f(b, t, -1), x, before);
	return pred_and(b, stays, apply2(b, OP_PD_NOT_EQUAL, token, last));
}

// The rows of x are sequences of the given lengths.
static bool align_rows(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *x = op_operand(op, 0), *lengths = tensor_flat(b, op_operand(op, 1));
	const Dim *wide = x->type->dims[1];
	if (!lengths)
		return false;
	Nest m = nest_open(b, type_like(c, x->type, DT_BOOL));
	Value *before[] = {m.at[0], index_plus(&m.b, m.at[1], -1)};
	Value *stays = token_stays(&m.b, op, x, m.at, before,
	                           index_less(&m.b, index_const(&m.b, 0), m.at[1]));
	Value *inside = index_less(&m.b, m.at[1],
	                           load_index(&m.b, lengths, m.at[0], plus_one(c, wide)));
	Value *counts = counts_of(
		b, nest_close(&m, stays && inside ? pred_and(&m.b, stays, inside) : NULL));
	if (!counts)
		return false;
	Nest l = nest_open(b, op->results[1].type);
	Value *end[] = {l.at[0], index_dim(&l.b, dim_sub(c, wide, dim_const(c, 1)))};
	results[1] = nest_close(&l, load(&l.b, counts, end));
	Nest n = nest_open(b, op->results[0].type);
	Value *last[] = {n.at[0], index_dim(&n.b, dim_sub(c, wide, dim_const(c, 1)))};
	Value *kept = index_from_data(&n.b, load(&n.b, counts, last), plus_one(c, wide), false);
	Value *from[] = {n.at[0], place_of_count(&n.b, counts, n.at, n.at[1])};
	Value *pad = build_scalar_f(&n.b, x->type->dtype, (double)op_int(op, "padding_value", 0));
	results[0] = nest_close(&n, kept ? load_or(&n.b, index_less(&n.b, n.at[1], kept), pad, x, from)
	                                 : NULL);
	results[2] = build_full(b, op->results[2].type, 0); // nobody asks
	return results[0] && results[1] && results[2];
}

// At least one row: nothing that is left becomes -1.
static bool bind_kept(Builder *b, Value *lod, const Dim *rows)
{
	const Dim *last = sequence_count(b->ctx, lod);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 0, NULL, 0));
	Value *at = index_dim(&n.b, last);
	Value *most = apply2(&n.b, OP_PD_MAXIMUM, load(&n.b, lod, &at),
	                     build_scalar_f(&n.b, DT_I64, 1));
	return bind_size(b, nest_close(&n, most), rows);
}

bool define_hook_ctc_align(Builder *b, Op *op, Value **results)
{
	Value *x = op_operand(op, 0), *lod = op_operand(op, 2), *tokens = tensor_flat(b, x);
	if (!lod)
		return align_rows(b, op, results);
	if (!tokens)
		return false;
	Nest m = nest_open(b, type_like(b->ctx, tokens->type, DT_BOOL));
	Value *i = sequence_of_row(&m.b, lod, m.at[0]);
	Value *start = i ? sequence_start(&m.b, lod, i, x->type->dims[0]) : NULL;
	Value *before = index_plus(&m.b, m.at[0], -1);
	Value *stays = start ? token_stays(&m.b, op, tokens, m.at, &before,
	                                   index_less(&m.b, start, m.at[0]))
	                     : NULL;
	Value *mask = nest_close(&m, stays);
	Chosen kept = select_true(b, mask);
	results[2] = kept.at ? offsets_kept(b, lod, mask) : NULL;
	if (!results[2] || !bind_kept(b, results[2], op->results[0].type->dims[0]))
		return false;
	Nest n = nest_open(b, op->results[0].type);
	// Nothing is behind the last one kept: the first place will do where none is left.
	Value *end = index_dim(&n.b, sequence_count(b->ctx, lod));
	Value *none = apply2(&n.b, OP_PD_EQUAL, load(&n.b, results[2], &end),
	                     build_scalar_f(&n.b, DT_I64, 0));
	Value *place = load(&n.b, kept.at, n.at),
		  *first = place ? build_scalar_f(&n.b, place->type->dtype, 0) : NULL;
	Value *from = index_from_data(&n.b, index_where(&n.b, none, first, place), x->type->dims[0],
	                              false);
	Value *gone = build_scalar_f(&n.b, x->type->dtype, -1);
	results[0] = nest_close(&n,
	                        from ? index_where(&n.b, none, gone, load(&n.b, tokens, &from)) : NULL);
	results[1] = build_full(b, op->results[1].type, 0); // nobody asks
	return results[0] && results[1];
}

// ---- offsets ------------------------------------------------------------------------------------

bool define_hook_lod_offsets(Builder *b, Op *op, Value **results)
{
	Value *offsets = tensor_flat(b, op_operand(op, 1));
	if (!offsets)
		return false;
	Nest n = nest_open(b, op->results[0].type);
	Value *at = load_index(&n.b, offsets, n.at[0],
	                       plus_one(b->ctx, op_operand(op, 0)->type->dims[0]));
	results[0] = nest_close(&n, scalar_from_index(&n.b, at, DT_I64));
	return results[0] != NULL;
}

// Place r of the result is in the first list that is long enough, counted from behind the ones
// before it.
bool define_hook_lod_concat(Builder *b, Op *op, Value **results)
{
	Context *c = b->ctx;
	Value *const *list;
	int count = op_operand_list(op, 0, &list);
	const Dim *before = dim_const(c, 0);
	Nest n = nest_open(b, op->results[0].type);
	Value *sum = build_scalar_f(&n.b, DT_I64, 0), *element = sum;
	for (int i = 0; i < count; i++) {
		const Dim *many = sequence_count(c, list[i]);
		Value *at = index_sub(&n.b, n.at[0], index_dim(&n.b, before)),
			  *last = index_dim(&n.b, many);
		Value *here = index_inside(&n.b, at, list[i]->type->dims[0]),
			  *zero = build_scalar_f(&n.b, DT_I64, 0);
		Value *own = scalar_cast(&n.b, load_or(&n.b, here, zero, list[i], &at), DT_I64);
		element = index_where(&n.b, here, apply2(&n.b, OP_PD_ADD, sum, own), element);
		sum = apply2(&n.b, OP_PD_ADD, sum, scalar_cast(&n.b, load(&n.b, list[i], &last), DT_I64));
		before = dim_add(c, before, many);
	}
	results[0] = nest_close(&n, element);
	return results[0] != NULL;
}
