// A module as JSON.
#include "frontend/driver/driver.h"

#include <string.h>

// Every value gets the number of its operation in document order; arguments of blocks do not occur
// here.
static int op_number(const Op *module, const Op *op)
{
	int n = 0;
	for (const Op *o = module->regions[0].first->first; o && o != op; o = o->next)
		n++;
	return n;
}

static void json_value(Text *t, const Op *module, const Value *v)
{
	if (!v) {
		text_str(t, "null");
		return;
	}
	text_printf(t, "{\"op\": %d, \"result\": %u}", v->def ? op_number(module, v->def) : -1,
	            v->index);
}

static void json_string(Text *t, const char *s)
{
	text_char(t, '"');
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;
		if (ch < 0x20)
			text_printf(t, "\\u%04x", ch);
		else if (ch == '"' || ch == '\\')
			text_printf(t, "\\%c", ch);
		else
			text_char(t, (char)ch);
	}
	text_char(t, '"');
}

static void json_op(Text *t, const Op *module, const Op *op, int n)
{
	text_printf(t, "%s\n    {\"id\": %d, \"name\": \"%s\", \"operands\": [", n ? "," : "", n,
	            op->info->name);
	for (int i = 0; i < op->noperand; i++) {
		text_str(t, i ? ", " : "");
		json_value(t, module, op_operand(op, i));
	}
	text_str(t, "], \"attributes\": {");
	for (int i = 0; i < op->nattr; i++) {
		Text value;
		text_init(&value, t->arena);
		attr_print(&value, op->attrs[i].attr);
		text_printf(t, "%s\"%s\": ", i ? ", " : "", op->attrs[i].name);
		json_string(t, value.text);
	}
	text_str(t, "}, \"results\": [");
	for (int i = 0; i < op->nresult; i++) {
		Text type;
		text_init(&type, t->arena);
		type_print(&type, op->results[i].type);
		text_printf(t, "%s{\"name\": ", i ? ", " : "");
		json_string(t, op->results[i].name ? op->results[i].name : "");
		text_str(t, ", \"type\": ");
		json_string(t, type.text);
		text_char(t, '}');
	}
	text_str(t, "]}");
}

void emit_json(Text *t, const Op *module)
{
	text_str(t, "{\n  \"operations\": [");
	int n = 0;
	for (const Op *op = module->regions[0].first->first; op; op = op->next)
		json_op(t, module, op, n++);
	text_str(t, "\n  ]\n}\n");
}
