// The types of an operation whose definition says them: the definition is built on stand-ins for
// the operands, and the types of what it gives are the operation's. For entries with `infer:
// composed`.
#include "ir/define/define.h"
#include "ir/build/build.h"
#include "ir/infer/infer.h"

// A value of the same type that nobody else uses.
static Value *standin(Context *c, Block *block, const Value *v)
{
	Value *s = block_add_arg(c, block, v->type);
	s->known = v->known;
	s->nknown = v->nknown;
	s->name = v->name;
	if (!v->known && v->def && v->def->code == OP_BUILTIN_CONSTANT) {
		const Dim *const *known;
		s->nknown = value_known(v, &known);
		s->known = s->nknown > 0 ? known : NULL;
		s->nknown = s->nknown > 0 ? s->nknown : 0;
	}
	return s;
}

// A list comes back as a list of stand-ins.
static Value *standin_of(Context *c, Block *block, Value *v, const Loc *loc)
{
	const Type *t = v->type;
	if (t->kind != TY_VEC)
		return standin(c, block, v);
	Value **parts = NEW_ARRAY(c->arena, (size_t)t->nelem + 1, Value *);
	bool known = v->def && v->def->code == OP_BUILTIN_COMBINE;
	for (int i = 0; i < t->nelem; i++)
		parts[i] = known ? standin(c, block, op_operand(v->def, i))
		                 : block_add_arg(c, block, t->elems[i]);
	Builder b = builder_at_end(c, block, loc);
	return build(&b, OP_BUILTIN_COMBINE, t->nelem, parts, NULL);
}

bool infer_hook_composed(Op *op)
{
	Context *c = op->ctx;
	Block *block = module_block(module_new(c));
	ValueMap *map = value_map_new(c->arena);
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		if (v && value_map_get(map, v) == v)
			value_map_set(map, v, standin_of(c, block, v, op->loc));
	}
	Op *clone = op_clone(c, op, map);
	op_append(block, clone);
	Builder b = builder_at_end(c, block, op->loc);
	Value **results = NEW_ARRAY(c->arena, (size_t)op->nresult + 1, Value *);
	if (!op_define(&b, clone, results))
		return false;
	for (int i = 0; i < op->nresult; i++) {
		if (!results[i])
			return op_error(op, "the definition gives no result %d", i);
		infer_result(op, i, results[i]->type);
		if (results[i]->known)
			infer_set_known(op, i, results[i]->nknown, results[i]->known);
	}
	return true;
}
