// Other views of a module: a graphviz picture and JSON.
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

static void dot_node(Text *t, const Op *op, int n)
{
	const char *shape = op->code == OP_PD_FEED || op->code == OP_PD_FETCH ? "ellipse" : "box";
	Text label;
	text_init(&label, t->arena);
	text_str(&label, op->info->short_name);
	const char *name = op_str(op, "name", op->nresult ? op->results[0].name : NULL);
	if (name)
		text_printf(&label, "\n%s", name);
	if (op->nresult) {
		text_char(&label, '\n');
		type_print(&label, op->results[0].type);
	}
	text_printf(t, "\tn%d [shape=%s, label=", n, shape);
	text_quoted(t, label.text);
	text_str(t, "];\n");
}

// Parameters and constants would drown the picture: only operations that compute are drawn.
static bool dot_hidden(const Op *op)
{
	return op->code == OP_BUILTIN_GET_PARAMETER || op->code == OP_BUILTIN_CONSTANT;
}

void emit_dot(Text *t, const Op *module)
{
	text_str(t, "digraph model {\n\trankdir=TB;\n\tnode [fontname=\"Helvetica\", fontsize=10];\n");
	int n = 0;
	for (const Op *op = module->regions[0].first->first; op; op = op->next, n++) {
		if (dot_hidden(op))
			continue;
		dot_node(t, op, n);
		for (int i = 0; i < op->noperand; i++) {
			const Value *v = op_operand(op, i);
			if (v && v->def && !dot_hidden(v->def))
				text_printf(t, "\tn%d -> n%d;\n", op_number(module, v->def), n);
		}
	}
	text_str(t, "}\n");
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
