// Inputs and outputs of a module (ports.h).
#include "lower/grad/ports.h"

static int64_t next_column(Op *module, enum OpCode code)
{
	int64_t next = 0;
	for (Op *op = module_block(module)->first; op; op = op->next)
		if (op->code == code && op_int(op, "col", 0) >= next)
			next = op_int(op, "col", 0) + 1;
	return next;
}

static Op *port_new(Op *module, enum OpCode code, const char *name, const Type *t, Value *v)
{
	Context *c = module->ctx;
	Op *op = op_new(c, code, &loc_unknown, t ? 1 : 0, t ? &t : NULL, v ? 1 : 0, v ? &v : NULL, 0,
	                0);
	op_set_attr(op, "name", attr_str(c, name));
	op_set_attr(op, "col", attr_int(c, next_column(module, code)));
	return op;
}

Op *port_fetch(Op *module, const char *name, Value *v)
{
	Op *op = port_new(module, OP_PD_FETCH, name, NULL, v);
	op_append(module_block(module), op);
	return op;
}

Value *port_feed(Op *module, const char *name, const Type *t)
{
	Op *op = port_new(module, OP_PD_FEED, name, t, NULL);
	op_result(op, 0)->name = context_str(module->ctx, name);
	op_insert_before(module_block(module)->first, op);
	return op_result(op, 0);
}
