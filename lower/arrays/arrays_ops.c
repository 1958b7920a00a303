// Operations on tensor arrays as operations on the tensors that hold them. Called by arrays.c, in
// program order, so that the arrays that an operation reads have their tensors. Positions and
// lengths stay operators of pd; elements move in loop.update and in nests.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/arrays/parts.h"
#include "lower/pass/rewrite.h"

#include <string.h>

// ---- groups -------------------------------------------------------------------------------------

static const Type *length_type(Context *c)
{
	const Dim *one = dim_const(c, 1);
	return type_tensor(c, DT_I64, 1, &one, 0);
}

int array_part_types(Arrays *a, const ArrayClass *c, const Type **types)
{
	const Dim *dims[MAX_RANK + 1] = {c->capacity};
	int n = 0;
	for (int d = 0; d < c->rank; d++)
		dims[1 + d] = c->dims[d];
	if (c->open)
		dims[1] = c->slice;
	types[n++] = type_tensor(a->ctx, c->dtype, c->open ? 2 : 1 + c->rank, dims, 0);
	types[n++] = length_type(a->ctx);
	dims[1] = dim_const(a->ctx, c->rank);
	if (c->open)
		types[n++] = type_tensor(a->ctx, DT_I64, 2, dims, 0);
	else if (c->holes)
		types[n++] = type_tensor(a->ctx, DT_BOOL, 1, dims, 0);
	return n;
}

int array_parts(const ArrayGroup *g, Value **parts)
{
	parts[0] = g->data;
	parts[1] = g->length;
	parts[2] = g->extra;
	return g->extra ? 3 : 2;
}

void array_set_parts(ArrayGroup *g, int n, Value **parts)
{
	g->data = parts[0];
	g->length = parts[1];
	g->extra = n > 2 ? parts[2] : NULL;
}

// ---- building -----------------------------------------------------------------------------------

static Value *number(Builder *b, int64_t v)
{
	Tensor *t = tensor_new(b->ctx->arena, DT_I64, 1, (const int64_t[]){1});
	tensor_set_i(t, 0, v);
	return build_constant(b, t);
}

// A position, which may have any integer type and any shape of one element, as i64 [1].
static Value *position(Builder *b, Value *v)
{
	const Dim *one = dim_const(b->ctx, 1);
	if (v && v->type->dtype != DT_I64)
		v = tensor_cast(b, v, DT_I64);
	return v && v->type->rank != 1 ? tensor_reshape(b, v, 1, &one) : v;
}

static Value *update(Builder *b, Value *data, Value *at, Value *x)
{
	Value *const operands[] = {data, at, x};
	return data && at && x ? build(b, OP_LOOP_UPDATE, 3, operands, NULL) : NULL;
}

static Value *as_index(Builder *b, Value *at, Value *valid, const Dim *extent)
{
	Value *where[] = {valid, at, build_scalar_f(b, DT_I64, -1)};
	return index_from_data(b, build(b, OP_PD_WHERE, 3, where, NULL), extent, false);
}

// Whether v is the position of the last element of an array of that length (negative: it has none).
static bool is_last(const Value *v, const Value *length)
{
	const Op *op = v->def;
	int64_t less;
	return op && op->code == OP_PD_SUBTRACT && op_operand(op, 0) == length &&
	       position_number(op_operand(op, 1), &less) && less == 1;
}

Value *array_slice_index(Builder *b, const ArrayGroup *g, Value *position)
{
	Value *at = load_scalar(b, position);
	Value *index = is_last(position, g->length)
	                   ? index_from_data(b, at, g->c->capacity, false)
	                   : as_index(b, at, apply2(b, OP_PD_LESS_THAN, at, load_scalar(b, g->length)),
	                              g->c->capacity);
	if (!g->c->holes || g->c->open)
		return index; // sizes of -1 tell
	return as_index(b, at, load(b, g->extra, &index), g->c->capacity);
}

Value *array_sizes_of(Builder *b, const Type *t)
{
	const Dim *rank = dim_const(b->ctx, t->rank);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &rank, 0));
	Value *size = NULL;
	for (int d = t->rank; d-- > 0;) {
		Value *own = index_dim(&n.b, t->dims[d]);
		size = size ? index_where(&n.b, index_equal(&n.b, n.at[0], index_const(&n.b, d)), own, size)
		            : own;
	}
	return nest_close(&n, scalar_from_index(&n.b, size, DT_I64));
}

bool array_bind(Builder *b, Value *sizes, int n, const Dim *const *dims)
{
	NamedAttr attr = {"dims", attr_dims(b->ctx, n, dims)};
	return sizes && build_op(b, OP_LOOP_BIND, 1, &sizes, 1, &attr);
}

// One size may be that of several arrays. The first of them, in the order of the program, is where
// a run finds it: only its bound can be asked of the caller there, as the others may not have been
// filled yet.
void array_set_bound(Context *c, const Dim *sym, const Dim *bound)
{
	if (!dim_bound(c, sym))
		dim_set_bound(c, sym, bound);
}

// ---- operations ---------------------------------------------------------------------------------

static bool group_done(ArrayGroup *g, const char *name)
{
	if (!g->data || !g->length)
		return false;
	g->data->name = name;
	if (!g->length->name && name)
		g->length->name = context_str(g->length->def->ctx,
		                              arena_printf(g->length->def->ctx->arena, "%s_length", name));
	return true;
}

// What tells the memory of a class from that of the classes before it, which may be called alike,
// as the arrays of a stack are: one value for several variables would have to be copied.
static const char *memory_name(const Arrays *a, const ArrayClass *c, const char *name)
{
	for (const ArrayClass *before = a->classes; before && before != c; before = before->next)
		if (!before->same && !strcmp(before->name ? before->name : "array", name))
			return arena_printf(a->ctx->arena, "%s_%d", name, c->id);
	return name;
}

static bool create_rewrite(Arrays *a, Op *op)
{
	Builder b = builder_before(op);
	ArrayGroup *g = array_group(a, &op->results[0]);
	const Type *types[GROUP_MAX];
	int n = array_part_types(a, g->c, types);
	Op *empty = op_new(a->ctx, OP_LOOP_EMPTY, op->loc, 1, &types[0], 0, NULL, 0, 0);
	const char *name = op->results[0].name ? op->results[0].name : "array";
	op_set_attr(empty, "name", attr_str(a->ctx, memory_name(a, g->c, name)));
	op_insert_before(op, empty);
	g->data = &empty->results[0];
	g->length = number(&b, 0);
	g->extra = n > 2 ? build_full(&b, types[2], g->c->open ? -1 : 0) : NULL;
	return group_done(g, op->results[0].name);
}

static bool write_rewrite(Arrays *a, Op *op)
{
	Builder b = builder_before(op);
	const ArrayGroup from = *array_group(a, op_operand(op, 0));
	ArrayGroup *g = array_group(a, &op->results[0]);
	Value *x = op_operand(op, 2), *at = position(&b, op_operand(op, 1));
	bool at_end = at == from.length;
	g->data = update(&b, from.data, at, x);
	if (g->c->open)
		g->extra = update(&b, from.extra, at, array_sizes_of(&b, x->type));
	else if (g->c->holes)
		g->extra = update(&b, from.extra, at,
		                  build_full(&b, type_shaped(a->ctx, TY_TENSOR, DT_BOOL, 0, NULL), 1));
	// Nobody needs the old length any more, so the new one can take its place.
	Value *behind = at ? tensor_add(&b, at, number(&b, 1)) : NULL;
	g->length = at_end || !behind ? behind : apply2(&b, OP_PD_MAXIMUM, from.length, behind);
	return group_done(g, op->results[0].name);
}

static Value *read_sizes(Builder *b, const ArrayGroup *g, Value *at)
{
	const Dim *rank = dim_const(b->ctx, g->c->rank);
	Nest n = nest_open(b, type_tensor(b->ctx, DT_I64, 1, &rank, 0));
	Value *index[2] = {array_slice_index(&n.b, g, at), n.at[0]};
	return nest_close(&n, load(&n.b, g->extra, index));
}

// What is known before the run of the sizes of what is read: one that is open is at most a slice.
static void read_bounds(Arrays *a, const ArrayGroup *g, const Type *t)
{
	const Dim *rest = dim_const(a->ctx, 1);
	int open = 0;
	for (int d = 0; d < t->rank; d++) {
		if (dim_is_found(t->dims[d]))
			open++;
		else
			rest = dim_mul(a->ctx, rest, t->dims[d]);
	}
	for (int d = 0; d < t->rank && (!g->c->open || open == 1); d++)
		if (!g->c->open)
			array_set_bound(a->ctx, t->dims[d], g->c->dims[d]);
		else if (dim_is_const(rest) && rest->value > 0)
			array_set_bound(a->ctx, t->dims[d], dim_div(a->ctx, g->c->slice, rest));
}

static bool read_rewrite(Arrays *a, Op *op)
{
	Builder b = builder_before(op);
	const ArrayGroup *g = array_group(a, op_operand(op, 0));
	const Type *t = op->results[0].type;
	Value *at = position(&b, op_operand(op, 1)), *index[MAX_RANK + 1];
	if (!at || t->kind != TY_TENSOR || t->rank != g->c->rank)
		return false;
	bool same = true;
	for (int d = 0; d < t->rank; d++)
		same = same && t->dims[d] == g->c->dims[d];
	read_bounds(a, g, t);
	if (g->c->open && !array_bind(&b, read_sizes(&b, g, at), t->rank, t->dims))
		return false;
	if (!g->c->open && !same) {
		const Type *element = type_shaped(a->ctx, TY_TENSOR, t->dtype, t->rank, g->c->dims);
		if (!array_bind(&b, array_sizes_of(&b, element), t->rank, t->dims))
			return false;
	}
	Nest n = nest_open(&b, t);
	index[0] = array_slice_index(&n.b, g, at);
	for (int d = 0; d < t->rank; d++)
		index[1 + d] = n.at[d];
	if (g->c->open)
		index[1] = index_linear(&n.b, t->rank, t->dims, n.at);
	Value *x = nest_close(&n, load(&n.b, g->data, index));
	if (x)
		op_replace(op, &x);
	return x != NULL;
}

static bool length_rewrite(Arrays *a, Op *op)
{
	Value *length = array_group(a, op_operand(op, 0))->length;
	op_replace(op, &length);
	return true;
}

static bool has_rewrite(Arrays *a, Op *op)
{
	Builder b = builder_before(op);
	const ArrayGroup *g = array_group(a, op_operand(op, 0));
	Value *where = position(&b, op_operand(op, 1));
	if (!where)
		return false;
	Nest n = nest_open(&b, op->results[0].type);
	Value *at = load_scalar(&n.b, where), *zero = build_scalar_f(&n.b, DT_I64, 0),
		  *has = apply2(&n.b, OP_PD_LOGICAL_AND, apply2(&n.b, OP_PD_LESS_EQUAL, zero, at),
	                    apply2(&n.b, OP_PD_LESS_THAN, at, load_scalar(&n.b, g->length)));
	if (g->extra) {
		Value *const inside[] = {has, at, zero};
		Value *index[2] = {
			index_from_data(&n.b, build(&n.b, OP_PD_WHERE, 3, inside, NULL), g->c->capacity, false),
			index_const(&n.b, 0)};
		Value *said = load(&n.b, g->extra, index);
		if (g->c->open)
			said = apply2(&n.b, OP_PD_LESS_EQUAL, zero, said);
		has = apply2(&n.b, OP_PD_LOGICAL_AND, has, said);
	}
	Value *x = nest_close(&n, has);
	if (x)
		op_replace(op, &x);
	return x != NULL;
}

// ---- slices -------------------------------------------------------------------------------------

// A bound of a slice as a scalar: negative ones count from the end, and all are between 0 and the
// length.
static Value *slice_bound(Builder *b, Value *bound, Value *length)
{
	Value *zero = build_scalar_f(b, DT_I64, 0), *at = load_scalar(b, bound);
	Value *where[] = {apply2(b, OP_PD_LESS_THAN, at, zero), apply2(b, OP_PD_ADD, at, length), at};
	at = build(b, OP_PD_WHERE, 3, where, NULL);
	return apply2(b, OP_PD_MINIMUM, length, apply2(b, OP_PD_MAXIMUM, zero, at));
}

// What is `offset` slices further on in `from`; nothing behind `length` of them.
static Value *shift(Builder *b, Value *from, Value *offset, Value *length, double nothing)
{
	const Type *t = from->type;
	Nest n = nest_open(b, t);
	Value *index[MAX_RANK + 1];
	for (int d = 0; d < t->rank; d++)
		index[d] = n.at[d];
	Value *first = index_from_data(&n.b, load_scalar(&n.b, offset),
	                               dim_add(b->ctx, t->dims[0], dim_const(b->ctx, 1)), false);
	Value *at = scalar_from_index(&n.b, n.at[0], DT_I64);
	Value *inside = apply2(&n.b, OP_PD_LESS_THAN, at, load_scalar(&n.b, length));
	index[0] = index_add(&n.b, n.at[0], first);
	return nest_close(&n,
	                  load_or(&n.b, inside, build_scalar_f(&n.b, t->dtype, nothing), from, index));
}

static bool slice_rewrite(Arrays *a, Op *op)
{
	Builder b = builder_before(op);
	const ArrayGroup from = *array_group(a, op_operand(op, 0));
	ArrayGroup *g = array_group(a, &op->results[0]);
	Value *start = position(&b, op_operand(op, 1)), *end = position(&b, op_operand(op, 2)),
		  *parts[2];
	const Type *one = length_type(a->ctx), *const types[] = {one, one};
	if (!start || !end)
		return false;
	int64_t known;
	const bool from_start = position_number(start, &known) && known == 0;
	if (from_start && is_last(end, from.length)) { // what a pop leaves
		g->data = from.data;
		g->extra = from.extra;
		g->length = build2(&b, OP_PD_MAXIMUM, end, number(&b, 0), NULL);
		return g->length != NULL;
	}
	Nest n = nest_open_several(&b, 2, types);
	Value *length = load_scalar(&n.b, from.length), *first = slice_bound(&n.b, start, length);
	Value *count = apply2(&n.b, OP_PD_SUBTRACT, slice_bound(&n.b, end, length), first);
	Value *const elements[] = {first,
	                           apply2(&n.b, OP_PD_MAXIMUM, build_scalar_f(&n.b, DT_I64, 0), count)};
	if (!nest_close_several(&n, elements, parts))
		return false;
	g->data = from_start ? from.data : shift(&b, from.data, parts[0], parts[1], 0);
	g->length = parts[1];
	g->extra = from.extra ? shift(&b, from.extra, parts[0], parts[1], g->c->open ? -1 : 0) : NULL;
	return from_start ? g->length != NULL : group_done(g, op->results[0].name);
}

// ---- feeds and fetches --------------------------------------------------------------------------

// Marks a feed or fetch as one of the tensors of an array.
static void port_mark(Op *port, const char *name, int64_t col, const char *part, int64_t of)
{
	Context *c = port->ctx;
	op_set_attr(port, "name", attr_str(c, name));
	op_set_attr(port, "col", attr_int(c, col));
	op_set_attr(port, "part", attr_str(c, part));
	op_set_attr(port, "of", attr_int(c, of));
}

static Value *part_feed(Arrays *a, Op *op, const Type *t, const char *part, bool data)
{
	Op *feed = op_new(a->ctx, OP_PD_FEED, op->loc, 1, &t, 0, NULL, 0, 0);
	int64_t of = op_int(op, "col", 0);
	port_mark(feed, op_str(op, "name", ""), data ? of : a->nfeed++, part, of);
	op_insert_before(op, feed);
	return &feed->results[0];
}

// What was fed in the first slices of a tensor as large as the class wants.
static Value *widen(Builder *b, Value *fed, const Type *t, double nothing)
{
	if (fed->type == t)
		return fed;
	Nest n = nest_open(b, t);
	Value *inside = NULL;
	for (int d = 0; d < t->rank; d++)
		if (t->dims[d] != fed->type->dims[d])
			inside = pred_and(&n.b, inside,
			                  index_less(&n.b, n.at[d], index_dim(&n.b, fed->type->dims[d])));
	return nest_close(&n,
	                  load_or(&n.b, inside, build_scalar_f(&n.b, t->dtype, nothing), fed, n.at));
}

static bool feed_rewrite(Arrays *a, Op *op)
{
	Builder b = builder_before(op);
	ArrayGroup *g = array_group(a, &op->results[0]);
	const Type *types[GROUP_MAX];
	const Dim *dims[MAX_RANK + 1], *count = array_feed_symbol(a, op, "count");
	int n = array_part_types(a, g->c, types);
	for (int d = 0; d < types[0]->rank; d++)
		dims[d] = d ? types[0]->dims[d] : count;
	if (g->c->open)
		dims[1] = array_feed_symbol(a, op, "size");
	const Type *fed = type_tensor(a->ctx, g->c->dtype, types[0]->rank, dims, 0);
	g->data = widen(&b, part_feed(a, op, fed, g->c->open ? "flat" : "data", true), types[0], 0);
	dims[1] = dim_const(a->ctx, g->c->rank);
	if (g->c->open) {
		g->extra = widen(&b,
		                 part_feed(a, op, type_tensor(a->ctx, DT_I64, 2, dims, 0), "sizes", false),
		                 types[2], -1);
	} else if (n > 2) {
		Nest present = nest_open(&b, types[2]);
		g->extra = nest_close(&present,
		                      index_less(&present.b, present.at[0], index_dim(&present.b, count)));
	}
	g->length = array_sizes_of(&b, type_shaped(a->ctx, TY_TENSOR, DT_I64, 1, dims));
	return group_done(g, op->results[0].name);
}

static bool fetch_rewrite(Arrays *a, Op *op)
{
	const ArrayGroup *g = array_group(a, op_operand(op, 0));
	const char *const names[] = {g->c->open ? "flat" : "data", "length",
	                             g->c->open ? "sizes" : "present"};
	Value *parts[GROUP_MAX];
	int n = array_parts(g, parts);
	for (int i = 0; i < n; i++) {
		Op *fetch = op_new(a->ctx, OP_PD_FETCH, op->loc, 0, NULL, 1, &parts[i], 0, 0);
		port_mark(fetch, op_str(op, "name", ""), i ? a->nfetch++ : op_int(op, "col", 0), names[i],
		          op_int(op, "col", 0));
		op_insert_before(op, fetch);
	}
	return true;
}

bool array_op_rewrite(Arrays *a, Op *op)
{
	switch (op->code) {
	case OP_PD_CREATE_ARRAY: return create_rewrite(a, op);
	case OP_PD_ARRAY_WRITE: return write_rewrite(a, op);
	case OP_PD_ARRAY_READ: return read_rewrite(a, op);
	case OP_PD_ARRAY_LENGTH: return length_rewrite(a, op);
	case OP_PD_ARRAY_HAS: return has_rewrite(a, op);
	case OP_PD_ARRAY_SLICE: return slice_rewrite(a, op);
	case OP_PD_ARRAY_TO_TENSOR: return array_join_rewrite(a, op);
	case OP_PD_FEED: return feed_rewrite(a, op);
	case OP_PD_FETCH: return fetch_rewrite(a, op);
	default:
		diag_error(op->ctx->diag, op->loc, "'%s' on a tensor array cannot be compiled",
		           op->info->name);
		return false;
	}
}
