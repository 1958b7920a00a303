// The interpreter: runs a module, or single operations, on concrete tensors. Slow and obvious; what
// it gives is what an operation means. Used for constant folding, `pdcc run --target interp`, `pdcc
// verify` and tests. An operation runs by its `interpret` hook, or else by running what op_define
// builds for it.
#include "ir/interp/interp.h"
#include "ir/build/build.h"
#include "ir/define/define.h"
#include "ir/base/vec.h"
#include "ir/interp/hooks.h"

#include <string.h>

enum { MAX_EXPANSIONS = 64, TIDY_BYTES = 1 << 23 };

// An operation in simpler ones: a block that reads stand-ins for the operands.
typedef struct Expansion {
	Block *block;
	int nstandin;
	const Value **from; // what the operation reads
	Value **standins;   // its stand-ins, arguments of the block
	Value **results;
} Expansion;

// ---- values -------------------------------------------------------------------------------------

Interp *interp_new(Context *c, Arena *scratch)
{
	Interp *in = NEW(scratch, Interp);
	in->ctx = c;
	in->arena = scratch;
	in->temp = arena_scratch(scratch);
	in->full = TIDY_BYTES;
	in->index.arena = scratch;
	in->expanded.arena = scratch;
	return in;
}

Context *interp_context(const Interp *in)
{
	return in->ctx;
}

Arena *interp_arena(const Interp *in)
{
	return in->temp;
}

void interp_observe(Interp *in, void (*seen)(void *arg, const Value *v, const Tensor *t), void *arg)
{
	in->seen = seen;
	in->seen_arg = arg;
}

void interp_set_max_trip(Interp *in, int64_t rounds)
{
	in->max_trip = rounds;
}

const char *interp_shape_text(const Interp *in, const Tensor *t)
{
	Text s;
	text_init(&s, in->ctx->arena);
	text_str(&s, "[");
	for (int d = 0; d < t->rank; d++)
		text_printf(&s, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
	text_printf(&s, "] of %s", dtype_name(t->dtype));
	return s.text;
}

Cell *interp_cell(Interp *in, const Value *v)
{
	int i = pointer_map_index(&in->index, v);
	if (i < 0 && v->def &&
	    (v->def->code == OP_BUILTIN_CONSTANT || v->def->code == OP_BUILTIN_GET_PARAMETER)) {
		if (!interp_op(in, v->def))
			return NULL;
		i = pointer_map_index(&in->index, v);
	}
	return i < 0 ? NULL : &in->cells[i];
}

void interp_bind_cell(Interp *in, const Value *v, Cell cell)
{
	int i = pointer_map_index(&in->index, v);
	if (i < 0) {
		VEC_ROOM(in->arena, in->cells, in->ncell, in->ccell);
		i = in->ncell++;
		pointer_map_set_index(&in->index, v, i);
	}
	in->cells[i] = cell;
}

void cell_list_add(Interp *in, CellList *l, Cell cell)
{
	VEC_ROOM(in->temp, l->items, l->n, l->cap);
	l->items[l->n++] = cell;
}

Tensor *interp_value(Interp *in, const Value *v)
{
	Cell *c = interp_cell(in, v);
	return c ? c->tensor : NULL;
}

void interp_bind(Interp *in, const Value *v, Tensor *t)
{
	interp_bind_cell(in, v, (Cell){.tensor = t});
}

Tensor *interp_operand(Interp *in, const Op *op, int i)
{
	const Value *v = op_operand(op, i);
	Tensor *t = v ? interp_value(in, v) : NULL;
	if (!t)
		op_error(op, "operand %d has no value", i);
	return t;
}

bool interp_whole(Interp *in, const Op *op, int i, int64_t *out)
{
	const Tensor *t = interp_operand(in, op, i);
	if (!t)
		return false;
	if (tensor_numel(t) != 1)
		return op_error(op, "operand %d must hold one element", i);
	*out = tensor_get_i(t, 0);
	return true;
}

Tensor *interp_result(Interp *in, const Op *op, int i)
{
	const Value *v = &op->results[i];
	int64_t dims[MAX_RANK];
	if (v->type->kind != TY_TENSOR) {
		op_error(op, "result %d is no tensor", i);
		return NULL;
	}
	for (int d = 0; d < v->type->rank; d++)
		if (!interp_size(in, op, v->type->dims[d], &dims[d]))
			return NULL;
	Tensor *t = tensor_new(in->temp, v->type->dtype, v->type->rank, dims);
	if (!t)
		op_error(op, "result %d has a negative size, or is too large", i);
	else
		interp_bind(in, v, t);
	return t;
}

// ---- operations ---------------------------------------------------------------------------------

static Value *add_standin(Interp *in, Expansion *x, Value *v)
{
	Value *s = block_add_arg(in->ctx, x->block, v->type);
	s->known = v->known;
	s->nknown = v->nknown;
	s->name = v->name;
	x->from[x->nstandin] = v;
	x->standins[x->nstandin++] = s;
	return s;
}

// Clones what op reads and op itself onto stand-ins, so that no use of the program's values is
// added.
static Op *clone_on_standins(Interp *in, Expansion *x, const Op *op)
{
	ValueMap *map = value_map_new(in->ctx->arena);
	int count = 0;
	for (int i = 0; i < op->noperand; i++) {
		Value *const *list;
		count += op_operand(op, i) ? op_operand_list(op, i, &list) : 0;
	}
	x->from = NEW_ARRAY(in->ctx->arena, (size_t)count + 1, const Value *);
	x->standins = NEW_ARRAY(in->ctx->arena, (size_t)count + 1, Value *);
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i), *const * list;
		int n = v ? op_operand_list(op, i, &list) : 0;
		if (v && value_map_get(map, v) != v)
			continue;
		for (int k = 0; k < n; k++)
			if (value_map_get(map, list[k]) == list[k])
				value_map_set(map, list[k], add_standin(in, x, list[k]));
		if (v && v->type->kind == TY_VEC && v->def && v->def->code == OP_BUILTIN_COMBINE)
			op_append(x->block, op_clone(in->ctx, v->def, map));
	}
	Op *clone = op_clone(in->ctx, op, map);
	op_append(x->block, clone);
	return clone;
}

static Expansion *expand(Interp *in, const Op *op)
{
	int i = pointer_map_index(&in->expanded, op);
	if (i >= 0)
		return in->expansions[i];
	Expansion *x = NEW(in->ctx->arena, Expansion);
	x->block = module_block(module_new(in->ctx));
	Op *clone = clone_on_standins(in, x, op);
	Builder b = builder_at_end(in->ctx, x->block, op->loc);
	x->results = NEW_ARRAY(in->ctx->arena, (size_t)op->nresult + 1, Value *);
	if (!op_define(&b, clone, x->results))
		return NULL;
	for (int k = 0; k < op->nresult; k++)
		if (x->results[k] && x->results[k]->def == clone) {
			op_error(op, "the definition of the operator is circular");
			return NULL;
		}
	op_detach(clone);
	VEC_ROOM(in->arena, in->expansions, in->nexpansion, in->cexpansion);
	pointer_map_set_index(&in->expanded, op, in->nexpansion);
	in->expansions[in->nexpansion++] = x;
	return x;
}

// Whether a definition kept to the type that inference found.
static bool check_result(Interp *in, const Op *op, int i, const Cell *c)
{
	const Type *type = op->results[i].type;
	int64_t size;
	if (type->kind != TY_TENSOR || !c->tensor)
		return true;
	bool fits = c->tensor->dtype == type->dtype && c->tensor->rank == type->rank;
	for (int d = 0; fits && d < type->rank; d++)
		fits = interp_size(in, op, type->dims[d], &size) && size == c->tensor->dims[d];
	return fits || op_error(op, "the definition gives %s as result %d, the type is %s",
	                        interp_shape_text(in, c->tensor), i, type_text(in->ctx, type));
}

static bool run_expansion(Interp *in, Op *op)
{
	Expansion *x = expand(in, op);
	if (!x)
		return false;
	for (int i = 0; i < x->nstandin; i++) {
		Cell *c = interp_cell(in, x->from[i]);
		if (!c)
			return op_error(op, "an operand has no value");
		interp_bind_cell(in, x->standins[i], *c);
	}
	in->expanding++;
	bool ok = true;
	for (Op *inner = x->block->first; inner && ok; inner = inner->next)
		ok = interp_op(in, inner);
	in->expanding--;
	if (!ok)
		return false;
	for (int i = 0; i < op->nresult; i++) {
		Cell *c = x->results[i] ? interp_cell(in, x->results[i]) : NULL;
		if (c && !check_result(in, op, i, c))
			return false;
		if (c)
			interp_bind_cell(in, &op->results[i], *c);
		else if (value_used(&op->results[i]))
			return op_error(op, "the definition gives no result %d", i);
	}
	return true;
}

// A view: the same data under other dims.
static bool run_view(Interp *in, Op *op)
{
	Tensor *from = interp_operand(in, op, 0), *t = NEW(in->temp, Tensor);
	const Type *type = op->results[0].type;
	if (!from)
		return false;
	t->dtype = from->dtype;
	t->rank = type->rank;
	t->data = from->data;
	for (int d = 0; d < type->rank; d++)
		if (!interp_size(in, op, type->dims[d], &t->dims[d]))
			return false;
	if (tensor_numel(t) != tensor_numel(from))
		return op_error(op, "%s cannot become %s", interp_shape_text(in, from),
		                interp_shape_text(in, t));
	interp_bind(in, &op->results[0], t);
	return true;
}

static bool is_view(const Op *op)
{
	const Value *x = op_operand(op, 0);
	const Type *t = op->nresult == 1 ? op->results[0].type : NULL;
	return (op->info->traits & TRAIT_VIEW) && t && t->kind == TY_TENSOR && x &&
	       x->type->kind == TY_TENSOR && t->dtype == x->type->dtype;
}

bool interp_op(Interp *in, Op *op)
{
	if (op->info->traits & TRAIT_TERMINATOR)
		return true;
	if (in->depth == MAX_EXPANSIONS)
		return op_error(op, "definitions or regions are nested too deep");
	in->depth++;
	bool ok = op_functions(op)->interpret ? op_functions(op)->interpret(in, op)
	          : is_view(op)               ? run_view(in, op)
	                                      : run_expansion(in, op);
	in->depth--;
	if (!ok)
		return false;
	for (int i = 0; in->seen && !in->expanding && i < op->nresult; i++) {
		const Tensor *t = interp_value(in, &op->results[i]);
		if (t)
			in->seen(in->seen_arg, &op->results[i], t);
	}
	return true;
}
