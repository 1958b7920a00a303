// Inputs and outputs under names that the command line chooses. Called by cmd_compile.c.
#include "frontend/driver/driver.h"

#include <string.h>

// What can be renamed, for a message.
static const char *ports_list(Arena *a, Op *module, enum OpCode code)
{
	Text t;
	text_init(&t, a);
	for (const Op *op = module_block(module)->first; op; op = op->next)
		if (op->code == code && !op_attr(op, "lod_of") && !op_attr(op, "part"))
			text_printf(&t, "%s'%s'", t.len ? ", " : "", op_str(op, "name", ""));
	return t.len ? t.text : "none";
}

static bool port_rename(Context *c, Op *module, enum OpCode code, const NamePair *pair)
{
	const char *what = code == OP_PD_FEED ? "input" : "output";
	bool found = false, taken = false;
	for (Op *op = module_block(module)->first; op; op = op->next) {
		if (op->code != code)
			continue;
		const char *name = op_str(op, "name", "");
		if (!strcmp(name, pair->old)) {
			op_set_attr(op, "name", attr_str(c, pair->chosen));
			found = true;
		} else {
			taken |= !strcmp(name, pair->chosen);
		}
	}
	if (!found)
		diag_error(c->diag, NULL, "--rename-%s: there is no %s '%s'; the %ss are %s", what, what,
		           pair->old, what, ports_list(c->arena, module, code));
	else if (taken)
		diag_error(c->diag, NULL, "--rename-%s: another %s is called '%s'", what, what,
		           pair->chosen);
	return found && !taken;
}

static bool ports_rename(Context *c, Op *module, enum OpCode code, int n, const NamePair *pairs)
{
	bool ok = true;
	for (int i = 0; i < n; i++)
		ok &= port_rename(c, module, code, &pairs[i]);
	return ok;
}

bool driver_rename(Driver *d, Op *module)
{
	const Options *o = d->options;
	const bool in = ports_rename(d->ctx, module, OP_PD_FEED, o->ninput_name, o->input_names);
	return ports_rename(d->ctx, module, OP_PD_FETCH, o->noutput_name, o->output_names) && in;
}
