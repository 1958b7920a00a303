// Operations, values, use lists, blocks and regions: making, placing and walking them. Use lists
// change only through op_set_operand. All of pdcc stands on it; attributes are in op_attr.c, copies
// in op_clone.c.
#include "ir/base/vec.h"
#include "ir/core/core.h"

#include <stdarg.h>
#include <string.h>

Op *op_new(Context *c, enum OpCode code, const Loc *loc, int nresult, const Type *const *types,
           int noperand, Value *const *operands, int nregion, int nsucc)
{
	Op *op = NEW(c->arena, Op);
	op->code = code;
	op->info = &op_table[code];
	op->loc = loc ? loc : &loc_unknown;
	op->ctx = c;
	op->nresult = nresult;
	op->results = NEW_ARRAY(c->arena, (size_t)nresult, Value);
	for (int i = 0; i < nresult; i++)
		op->results[i] = (Value){.type = types ? types[i] : NULL, .def = op, .index = (uint32_t)i};
	op->nregion = nregion;
	op->regions = NEW_ARRAY(c->arena, (size_t)nregion, Region);
	for (int i = 0; i < nregion; i++)
		op->regions[i].op = op;
	op->nsucc = nsucc;
	op->succs = NEW_ARRAY(c->arena, (size_t)nsucc, Succ);
	op->noperand = op->operand_room = noperand;
	op->operands = NEW_ARRAY(c->arena, (size_t)noperand, Use);
	for (int i = 0; i < noperand; i++) {
		op->operands[i] = (Use){.user = op, .index = (uint32_t)i};
		op_set_operand(op, i, operands[i]);
	}
	return op;
}

static void use_unlink(Use *u)
{
	*u->prev = u->next;
	if (u->next)
		u->next->prev = u->prev;
	else
		u->value->uses_end = u->prev;
	u->value = NULL;
}

void op_set_operand(Op *op, int i, Value *v)
{
	Use *u = &op->operands[i];
	if (u->value)
		use_unlink(u);
	if (!v)
		return;
	u->value = v;
	u->next = NULL;
	u->prev = v->uses_end && v->uses ? v->uses_end : &v->uses;
	*u->prev = u;
	v->uses_end = &u->next;
}

// Moves the slots to a larger array, relinking what points at them.
static void op_grow_operands(Op *op)
{
	op->operand_room += op->operand_room / 2 + 1;
	Use *old = op->operands, *now = NEW_ARRAY(op->ctx->arena, (size_t)op->operand_room, Use);
	for (int i = 0; i < op->noperand; i++) {
		now[i] = old[i];
		if (!now[i].value)
			continue;
		*now[i].prev = &now[i];
		if (now[i].next)
			now[i].next->prev = &now[i].next;
		else
			now[i].value->uses_end = &now[i].next;
	}
	op->operands = now;
}

void op_add_operand(Op *op, Value *v)
{
	if (op->noperand == op->operand_room)
		op_grow_operands(op);
	op->operands[op->noperand] = (Use){.user = op, .index = (uint32_t)op->noperand};
	op->noperand++;
	op_set_operand(op, op->noperand - 1, v);
}

void op_remove_operand(Op *op, int i)
{
	for (int j = i; j + 1 < op->noperand; j++)
		op_set_operand(op, j, op->operands[j + 1].value);
	op_set_operand(op, op->noperand - 1, NULL);
	op->noperand--;
	for (int s = 0; s < op->nsucc; s++) {
		Succ *succ = &op->succs[s];
		if ((uint32_t)i < succ->first)
			succ->first--;
		else if ((uint32_t)i < succ->first + succ->count)
			succ->count--;
	}
}

int op_operand_list(const Op *op, int i, Value *const **list)
{
	Value *v = op_operand(op, i);
	*list = NULL;
	if (!v)
		return 0;
	const Op *combine = v->def && v->def->code == OP_BUILTIN_COMBINE ? v->def : NULL;
	int n = combine ? combine->noperand : 1;
	Value **values = NEW_ARRAY(op->ctx->arena, (size_t)n, Value *);
	for (int k = 0; k < n; k++)
		values[k] = combine ? op_operand(combine, k) : v;
	*list = values;
	return n;
}

// ---- places -------------------------------------------------------------------------------------

static void op_link(Block *b, Op *prev, Op *op, Op *next)
{
	op->block = b;
	op->prev = prev;
	op->next = next;
	*(prev ? &prev->next : &b->first) = op;
	*(next ? &next->prev : &b->last) = op;
}

void op_append(Block *b, Op *op)
{
	op_link(b, b->last, op, NULL);
}

void op_insert_before(Op *where, Op *op)
{
	op_link(where->block, where->prev, op, where);
}

void op_insert_after(Op *where, Op *op)
{
	op_link(where->block, where, op, where->next);
}

void op_detach(Op *op)
{
	if (!op->block)
		return;
	*(op->prev ? &op->prev->next : &op->block->first) = op->next;
	*(op->next ? &op->next->prev : &op->block->last) = op->prev;
	op->block = NULL;
	op->prev = op->next = NULL;
}

// Drops every operand in the regions of `op`: values may be used before (in block order) they go.
static void op_drop_uses(Op *op)
{
	for (int i = 0; i < op->noperand; i++)
		op_set_operand(op, i, NULL);
	for (int r = 0; r < op->nregion; r++) {
		for (Block *b = op->regions[r].first; b; b = b->next) {
			for (Op *inner = b->first; inner; inner = inner->next)
				op_drop_uses(inner);
		}
	}
}

bool op_error(const Op *op, const char *fmt, ...)
{
	const char *before = arena_printf(op->ctx->arena, "'%s': ", op->info->name);
	va_list ap;
	va_start(ap, fmt);
	diag_verror(op->ctx->diag, op->loc, before, fmt, ap);
	va_end(ap);
	return false;
}

void op_erase(Op *op)
{
	op_drop_uses(op);
	op_detach(op);
	op->nregion = 0;
}

void op_take_regions(Op *op, Op *from, int n)
{
	for (int i = 0; i < n; i++) {
		op->regions[i].first = from->regions[i].first;
		op->regions[i].last = from->regions[i].last;
		from->regions[i].first = from->regions[i].last = NULL;
		for (Block *b = op->regions[i].first; b; b = b->next)
			b->region = &op->regions[i];
	}
}

Op *op_remake(Op *op, int nresult, const Type *const *types, int noperand, Value *const *operands)
{
	Op *with = op_new(op->ctx, op->code, op->loc, nresult, types, noperand, operands, op->nregion,
	                  0);
	for (int i = 0; i < op->nattr; i++)
		op_set_attr(with, op->attrs[i].name, op->attrs[i].attr);
	op_insert_before(op, with);
	op_take_regions(with, op, op->nregion);
	return with;
}

Op *op_parent(const Op *op)
{
	return op->block && op->block->region ? op->block->region->op : NULL;
}

bool value_is_within(const Value *v, const Op *op)
{
	for (const Op *at = value_op(v); at; at = op_parent(at))
		if (at == op)
			return true;
	return false;
}

bool op_is_before(const Op *a, const Op *b)
{
	for (const Op *o = a->next; o; o = o->next) {
		if (o == b)
			return true;
	}
	return false;
}

// ---- walks --------------------------------------------------------------------------------------

bool op_contains(const Op *op, enum OpCode code)
{
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (const Op *inner = b->first; inner; inner = inner->next)
				if (inner->code == code || op_contains(inner, code))
					return true;
	return false;
}

bool op_reads_any(const Op *op, bool (*so)(const Value *v, const void *arg), const void *arg)
{
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && so(op_operand(op, i), arg))
			return true;
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (const Op *inner = b->first; inner; inner = inner->next)
				if (op_reads_any(inner, so, arg))
					return true;
	return false;
}

bool op_walk(Op *op, bool (*visit)(Op *, void *), void *arg)
{
	for (int r = 0; r < op->nregion; r++) {
		for (Block *b = op->regions[r].first; b; b = b->next) {
			for (Op *inner = b->first, *next; inner; inner = next) {
				next = inner->next;
				if (!visit(inner, arg))
					return false;
				// An erased operation has no regions left to walk.
				if (!op_walk(inner, visit, arg))
					return false;
			}
		}
	}
	return true;
}

bool op_stops_gradient(const Op *op)
{
	return op->code == OP_PD_ASSIGN && op->results[0].stop_gradient && op_operand(op, 0) &&
	       !op_operand(op, 0)->stop_gradient;
}

// ---- values -------------------------------------------------------------------------------------

bool value_used(const Value *v)
{
	return v->uses != NULL;
}

int value_use_count(const Value *v)
{
	int n = 0;
	for (const Use *u = v->uses; u; u = u->next)
		n++;
	return n;
}

bool value_is_stack(const Value *v)
{
	return v && v->type && v->type->kind == TY_STACK;
}

void value_replace(Value *from, Value *to)
{
	if (from == to)
		return;
	while (from->uses)
		op_set_operand(from->uses->user, (int)from->uses->index, to);
}

void value_name_like(const Value *from, Value *to)
{
	to->name = from->name;
	to->stop_gradient = from->stop_gradient;
	to->persistable = from->persistable;
}

void value_take(Value *from, Value *to)
{
	value_name_like(from, to);
	value_replace(from, to);
}

Op *value_op(const Value *v)
{
	return v->def ? v->def : v->block && v->block->region ? v->block->region->op : NULL;
}

// ---- constants ----------------------------------------------------------------------------------

bool value_is_constant(const Value *v)
{
	return v->def && v->def->info->traits & TRAIT_CONSTANT;
}

bool index_constant(const Value *v, int64_t *at)
{
	if (!v || !v->def || v->def->code != OP_LOOP_CONSTANT || v->type->kind != TY_INDEX)
		return false;
	const Attr *a = op_attr(v->def, "value");
	*at = a->kind == ATTR_FLOAT ? int_from_double(a->f) : a->i;
	return true;
}

const Dim *number_extent(const Op *op)
{
	const bool makes = op->code == OP_LOOP_TO_INDEX || op->code == OP_LOOP_POSITION ||
	                   op->code == OP_LOOP_NEAR_INDEX;
	const Attr *extent = makes ? op_attr(op, "extent") : NULL;
	return extent ? extent->dim : NULL;
}

static Tensor *param_constant(const Op *get)
{
	const char *name = op_str(get, "name", "");
	return param_is_written(get->ctx, name) ? NULL : param_get(get->ctx, name);
}

Tensor *value_constant(const Value *v)
{
	const Op *op = v ? v->def : NULL;
	if (!op)
		return NULL;
	if (op->code == OP_BUILTIN_GET_PARAMETER)
		return param_constant(op);
	const Attr *a = op->code == OP_BUILTIN_CONSTANT ? op_attr(op, "value") : NULL;
	// An Attr's tensor is immutable; so is what callers get here, const is dropped for Tensor's
	// users.
	return a && a->kind == ATTR_TENSOR ? (Tensor *)a->tensor : NULL;
}

// ---- blocks -------------------------------------------------------------------------------------

Block *block_new(Context *c, Region *r)
{
	Block *b = NEW(c->arena, Block);
	b->region = r;
	b->prev = r->last;
	*(r->last ? &r->last->next : &r->first) = b;
	r->last = b;
	return b;
}

Value *block_add_arg(Context *c, Block *b, const Type *t)
{
	VEC_ROOM(c->arena, b->args, b->narg, b->carg);
	Value *v = NEW(c->arena, Value);
	*v = (Value){.type = t, .block = b, .index = (uint32_t)b->narg};
	b->args[b->narg++] = v;
	return v;
}

void block_remove_arg(Block *b, int i)
{
	for (int j = i; j + 1 < b->narg; j++) {
		b->args[j] = b->args[j + 1];
		b->args[j]->index = (uint32_t)j;
	}
	b->narg--;
}

Op *module_new(Context *c)
{
	Op *m = op_new(c, OP_BUILTIN_MODULE, NULL, 0, NULL, 0, NULL, 1, 0);
	block_new(c, &m->regions[0]);
	return m;
}

Op *module_find(Op *module, enum OpCode code, const char *name)
{
	for (Op *op = module_block(module)->first; op; op = op->next)
		if (op->code == code && !strcmp(op_str(op, "name", ""), name))
			return op;
	return NULL;
}
