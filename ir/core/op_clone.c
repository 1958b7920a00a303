// Copies of operations with their regions, in which other values stand for those that they read
// (ValueMap): for passes that inline, unroll or differentiate, and for the interpreter's own copy.
#include "ir/base/map.h"
#include "ir/core/core.h"

#include <string.h>

// Of values, and of blocks.
struct ValueMap {
	PointerMap map;
};

ValueMap *value_map_new(Arena *a)
{
	ValueMap *m = NEW(a, ValueMap);
	pointer_map_init(&m->map, a);
	return m;
}

ValueMap *value_map_copy(const ValueMap *m)
{
	ValueMap *copy = NEW(m->map.arena, ValueMap);
	copy->map = pointer_map_copy(&m->map);
	return copy;
}

void value_map_set(ValueMap *m, const Value *from, Value *to)
{
	pointer_map_set(&m->map, from, to);
}

Value *value_map_get(const ValueMap *m, Value *from)
{
	if (!m || !from)
		return from;
	const void *to = pointer_map_get(&m->map, from);
	return to || pointer_map_has(&m->map, from) ? (Value *)(uintptr_t)to : from;
}

static void value_copy_notes(Value *to, const Value *from)
{
	value_name_like(from, to);
	to->known = from->known;
	to->nknown = from->nknown;
}

static void region_clone(Context *c, const Region *from, Region *to, ValueMap *m)
{
	for (const Block *b = from->first; b; b = b->next) {
		Block *copy = block_new(c, to);
		pointer_map_set(&m->map, b, copy);
		for (int i = 0; i < b->narg; i++) {
			Value *arg = block_add_arg(c, copy, b->args[i]->type);
			value_copy_notes(arg, b->args[i]);
			value_map_set(m, b->args[i], arg);
		}
	}
	Block *copy = to->first;
	for (const Block *b = from->first; b; b = b->next, copy = copy->next) {
		for (const Op *op = b->first; op; op = op->next)
			op_append(copy, op_clone(c, op, m));
	}
}

Op *op_clone(Context *c, const Op *op, ValueMap *m)
{
	const Type **types = NEW_ARRAY(c->arena, (size_t)op->nresult, const Type *);
	Value **operands = NEW_ARRAY(c->arena, (size_t)op->noperand, Value *);
	for (int i = 0; i < op->nresult; i++)
		types[i] = op->results[i].type;
	for (int i = 0; i < op->noperand; i++)
		operands[i] = value_map_get(m, op->operands[i].value);
	Op *copy = op_new(c, op->code, op->loc, op->nresult, types, op->noperand, operands, op->nregion,
	                  op->nsucc);
	if (!m)
		m = value_map_new(c->arena);
	for (int i = 0; i < op->nresult; i++) {
		value_copy_notes(&copy->results[i], &op->results[i]);
		value_map_set(m, &op->results[i], &copy->results[i]);
	}
	for (int i = 0; i < op->nsucc; i++) {
		copy->succs[i] = op->succs[i];
		const void *block = pointer_map_get(&m->map, op->succs[i].block);
		if (block)
			copy->succs[i].block = (Block *)(uintptr_t)block;
	}
	copy->nattr = op->nattr;
	copy->attrs = NEW_ARRAY(c->arena, (size_t)op->nattr, NamedAttr);
	if (op->nattr)
		memcpy(copy->attrs, op->attrs, (size_t)op->nattr * sizeof *op->attrs);
	for (int i = 0; i < op->nregion; i++)
		region_clone(c, &op->regions[i], &copy->regions[i], m);
	return copy;
}
