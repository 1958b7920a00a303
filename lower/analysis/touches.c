// What steps of a CUDA program touch: bytes of the plan, sizes and conditions on the device, how
// the run goes. At least what their kernels get as arguments. Called by lower/cuda.
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "lower/analysis/touches.h"
#include "lower/pass/rewrite.h"

// ---- memories -----------------------------------------------------------------------------------

static void touch(Touches *t, int memory, const Dim *begin, const Dim *bytes, unsigned how)
{
	const Access access = {memory, how, begin, dim_add(t->ctx, begin, bytes)};
	accesses_add(t->arena, &t->accesses, access);
}

void touch_number(Touches *t, int memory, int number, unsigned how)
{
	touch(t, memory, dim_const(t->ctx, number), dim_const(t->ctx, 1), how);
}

void touch_state(Touches *t, unsigned how)
{
	touch_number(t, MEMORY_STATE, 0, how);
}

void touch_output(Touches *t, int col, unsigned how)
{
	touch_number(t, MEMORY_OUTPUTS + col, 0, how);
}

void touch_place(Touches *t, const Place *p, unsigned how)
{
	const Dim *bytes = type_bytes_at_most(t->ctx, p->root->type), *zero = dim_const(t->ctx, 0);
	if (p->kind == PLACE_WORKSPACE)
		touch(t, MEMORY_WORKSPACE, p->offset ? p->offset : zero, bytes, how);
	else if (p->kind == PLACE_OUTPUT)
		touch_output(t, p->col, how);
	// nobody writes inputs and weights
}

void touch_tensor(Touches *t, const Value *v, unsigned how)
{
	const Place p = value_place(v);
	t->ntensor++;
	touch_place(t, &p, how);
}

// Two numbers for each size: as it is, and as it should have been.
static int size_number(Touches *t, const Dim *sym)
{
	for (int i = 0; i < t->nsize; i++)
		if (t->sizes[i] == sym)
			return 2 * i;
	VEC_ROOM(t->arena, t->sizes, t->nsize, t->csize);
	t->sizes[t->nsize++] = sym;
	return 2 * (t->nsize - 1);
}

void touch_size(Touches *t, const Dim *sym, unsigned how)
{
	touch_number(t, MEMORY_SIZES, size_number(t, sym), how);
}

static void touch_found(Touches *t, const Dim *sym, unsigned how)
{
	touch_number(t, MEMORY_SIZES, size_number(t, sym) + 1, how);
}

// ---- sizes --------------------------------------------------------------------------------------

// The symbols that a step names, each once.
typedef struct Symbols {
	Arena *arena;
	int n, cap;
	const Dim **items;
} Symbols;

static void symbols_add(Symbols *set, const Dim *d)
{
	if (d->kind == DIM_CONST)
		return;
	if (d->kind != DIM_SYM) {
		symbols_add(set, d->a);
		symbols_add(set, d->b);
		return;
	}
	for (int i = 0; i < set->n; i++)
		if (set->items[i] == d)
			return;
	VEC_ROOM(set->arena, set->items, set->n, set->cap);
	set->items[set->n++] = d;
}

static void symbols_add_type(Symbols *set, const Type *t)
{
	for (int d = 0; t->kind == TY_TENSOR && d < t->rank; d++)
		symbols_add(set, t->dims[d]);
}

// Of the attributes that the operator has; what passes leave on any is not for kernels.
static void symbols_add_attrs(Symbols *set, const Op *op)
{
	for (int i = 0; i < op->nattr; i++) {
		const Attr *a = op->attrs[i].attr;
		if (!op_info_attr(op->info, op->attrs[i].name))
			continue;
		if (a->kind == ATTR_DIM)
			symbols_add(set, a->dim);
		for (int d = 0; a->kind == ATTR_DIMS && d < a->n; d++)
			symbols_add(set, a->dims[d]);
	}
}

// Sizes that are arguments of a step that only reads them, or that sets them; whether it may fail.
static void touch_symbols(Touches *t, const Symbols *set, bool sets, bool fails)
{
	t->nsymbol = set->n;
	for (int i = 0; i < set->n; i++) {
		if (!set->items[i]->bounded)
			continue;
		touch_size(t, set->items[i], sets ? ACCESS_WRITE : ACCESS_READ);
		if (fails)
			touch_found(t, set->items[i], sets ? ACCESS_WRITE : ACCESS_UPDATE);
	}
	if (fails)
		touch_state(t, sets ? ACCESS_WRITE : ACCESS_UPDATE);
}

void touch_edge_sizes(Touches *t, const EdgeSizes *z, const Op *op, int s)
{
	const Succ *succ = &op->succs[s];
	Symbols set = {.arena = t->arena};
	for (int i = 0; i < z->n; i++)
		if (z->items[i].from != z->items[i].sym) {
			symbols_add(&set, z->items[i].from);
			symbols_add(&set, z->items[i].sym);
		}
	for (int i = 0; i < (int)succ->count; i++) {
		const Type *want = succ->block->args[i]->type,
				   *have = op_operand(op, (int)succ->first + i)->type;
		for (int d = 0; d < want->rank; d++)
			if (!edge_size_is_same(z, want->dims[d], have->dims[d])) {
				symbols_add(&set, have->dims[d]);
				symbols_add(&set, want->dims[d]);
			}
	}
	t->ntensor = 0;
	touch_symbols(t, &set, true, true);
}

// ---- operations ---------------------------------------------------------------------------------

UpdateNeeds update_needs(const Op *op)
{
	Context *c = op->ctx;
	const Type *t = op->results[0].type;
	const Tensor *known = value_constant(op_operand(op, 1));
	const int64_t at = known && tensor_numel(known) == 1 ? tensor_get_i(known, 0) : -1;
	const Dim *count = type_numel(c, op_operand(op, 2)->type);
	const Dim *slice = type_numel(c, type_shaped(c, TY_TENSOR, t->dtype, t->rank - 1, t->dims + 1));
	int64_t lo, hi;
	dim_range(t->dims[0], &lo, &hi);
	return (UpdateNeeds){
		.sign = at < 0,
		.end = at < 0 || at >= lo,
		.length = !dim_within(count, slice) && !(dim_is_const(count) && dim_is_const(slice)),
		.slice = slice,
		.count = count,
	};
}

bool op_may_fail(const Op *op)
{
	switch (op->code) {
	case OP_LOOP_BIND:
	case OP_LOOP_CAPACITY:
	case OP_LOOP_APPEND:
	case OP_PD_ASSERT: return true;
	case OP_LOOP_UPDATE: {
		const UpdateNeeds u = update_needs(op);
		return u.end || u.length;
	}
	default: return op_contains(op, OP_LOOP_TO_INDEX);
	}
}

// What is read inside of regions, from outside.
static void touch_regions(Touches *t, Symbols *set, const Op *op, PointerMap *seen)
{
	symbols_add_attrs(set, op);
	for (int i = 0; i < op->nregion; i++)
		for (const Op *in = op->regions[i].first->first; in; in = in->next) {
			for (int k = 0; k < in->noperand; k++) {
				const Value *v = op_operand(in, k);
				if (!v || v->type->kind != TY_TENSOR || pointer_map_get(seen, v))
					continue;
				pointer_map_set(seen, v, v);
				touch_tensor(t, v, ACCESS_READ);
				symbols_add_type(set, v->type);
			}
			touch_regions(t, set, in, seen);
		}
}

void touch_op(Touches *t, const Op *op)
{
	Symbols set = {.arena = t->arena};
	PointerMap seen;
	pointer_map_init(&seen, t->arena);
	t->ntensor = 0;
	for (int i = 0; i < op->nresult; i++) {
		touch_tensor(t, &op->results[i], ACCESS_WRITE);
		symbols_add_type(&set, op->results[i].type);
	}
	const bool sets = op->code == OP_LOOP_BIND || op->code == OP_LOOP_CAPACITY;
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (!v)
			continue;
		pointer_map_set(&seen, v, v);
		touch_tensor(t, v, ACCESS_READ);
		if (!sets)
			symbols_add_type(&set, v->type);
	}
	touch_regions(t, &set, op, &seen);
	touch_symbols(t, &set, sets, op_may_fail(op));
}

bool op_touches_size(Arena *a, const Op *op, const Dim *sym)
{
	Touches t = {.ctx = op->ctx, .arena = a};
	touch_op(&t, op);
	for (int i = 0; i < t.nsize; i++)
		if (t.sizes[i] == sym)
			return true;
	return false;
}
