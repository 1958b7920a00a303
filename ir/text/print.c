// Prints IR as text that ir_parse reads back to the same IR, and so to the same bytes. Called by
// the driver
// (`--emit`, `pdcc opt`), by tests, and from a debugger on any single operation.
//
// A value prints as `%name` after the legacy variable that it came from; the second value of that
// name is
// `%name#1`, a name that is not a plain word is quoted, and a value without a name gets a number.
// The hint is only decorated, never changed, so reading the text restores it. Where a value is
// defined, `!s` after it says stop_gradient and `!p` persistable (`!sp`: both).
#include "ir/base/map.h"
#include "ir/core/core.h"
#include "ir/text/text.h"

#include <ctype.h>
#include <string.h>

typedef struct Printer {
	Text *out;
	PointerMap values; // Value: its number among the unnamed, or among those of its name
	NameMap names;     // to the last number of a value of that name
	int unnamed;
	int indent;
} Printer;

// ---- values -------------------------------------------------------------------------------------

static bool name_is_plain(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_.@$", *s))
			return false;
	}
	return true;
}

static void print_name(Text *t, const char *s)
{
	if (name_is_plain(s))
		text_str(t, s);
	else
		text_quoted(t, s);
}

static int value_number(Printer *p, const Value *v)
{
	int number = pointer_map_index(&p->values, v);
	if (number >= 0)
		return number;
	if (v->name) {
		number = pointer_map_index(&p->names, v->name) + 1;
		pointer_map_set_index(&p->names, v->name, number);
	} else {
		number = p->unnamed++;
	}
	pointer_map_set_index(&p->values, v, number);
	return number;
}

static void print_value(Printer *p, const Value *v)
{
	if (!v) {
		text_char(p->out, '_');
		return;
	}
	const int number = value_number(p, v);
	text_char(p->out, '%');
	if (!v->name) {
		text_printf(p->out, "%d", number);
		return;
	}
	print_name(p->out, v->name);
	if (number)
		text_printf(p->out, "#%d", number);
}

static void print_definition(Printer *p, const Value *v)
{
	print_value(p, v);
	if (v->stop_gradient || v->persistable)
		text_printf(p->out, "!%s%s", v->stop_gradient ? "s" : "", v->persistable ? "p" : "");
}

// ---- operations ---------------------------------------------------------------------------------

// How many of the operands stand in parentheses: those before the first that a successor takes.
static int plain_operands(const Op *op)
{
	int n = op->noperand;
	for (int i = 0; i < op->nsucc; i++) {
		if ((int)op->succs[i].first < n)
			n = (int)op->succs[i].first;
	}
	return n;
}

static void print_operands(Printer *p, const Op *op, int first, int end)
{
	text_char(p->out, '(');
	for (int i = first; i < end && i < op->noperand; i++) {
		if (i > first)
			text_str(p->out, ", ");
		print_value(p, op->operands[i].value);
	}
	text_char(p->out, ')');
}

static void print_successors(Printer *p, const Op *op)
{
	for (int i = 0; i < op->nsucc; i++) {
		const Succ *s = &op->succs[i];
		text_printf(p->out, "%s^%u", i ? ", " : " ", s->block ? s->block->id : 0);
		if (s->count)
			print_operands(p, op, (int)s->first, (int)(s->first + s->count));
	}
}

static void print_attributes(Printer *p, const Op *op)
{
	if (!op->nattr)
		return;
	text_str(p->out, " {");
	for (int i = 0; i < op->nattr; i++) {
		text_str(p->out, i ? ", " : "");
		print_name(p->out, op->attrs[i].name);
		text_str(p->out, " = ");
		attr_print(p->out, op->attrs[i].attr);
	}
	text_char(p->out, '}');
}

// Types of the operands that are there, and of the results.
static void print_signature(Printer *p, const Op *op)
{
	const char *comma = "";
	text_str(p->out, " : (");
	for (int i = 0; i < op->noperand; i++) {
		if (!op->operands[i].value)
			continue;
		text_str(p->out, comma);
		type_print(p->out, op->operands[i].value->type);
		comma = ", ";
	}
	text_str(p->out, ") -> (");
	for (int i = 0; i < op->nresult; i++) {
		text_str(p->out, i ? ", " : "");
		type_print(p->out, op->results[i].type);
	}
	text_char(p->out, ')');
}

// Only where in the model it came from; a place in a text file is the reader's business.
static void print_loc(Printer *p, const Loc *l)
{
	bool numbered = l->block >= 0 || l->op >= 0;
	if (!numbered && !l->type && !l->var)
		return;
	text_str(p->out, " loc(");
	if (numbered)
		text_printf(p->out, "%d:%d%s", l->block, l->op, l->type || l->var ? " " : "");
	if (l->type)
		text_quoted(p->out, l->type);
	else if (l->var)
		text_char(p->out, '_');
	if (l->var) {
		text_char(p->out, ' ');
		if (l->slot)
			print_name(p->out, l->slot);
		else
			text_char(p->out, '_');
		text_char(p->out, ' ');
		text_quoted(p->out, l->var);
	}
	text_char(p->out, ')');
}

static void print_op(Printer *p, const Op *op);

static void new_line(Printer *p)
{
	text_char(p->out, '\n');
	for (int i = 0; i < p->indent; i++)
		text_str(p->out, "  ");
}

// The entry block without arguments needs no label; every other block has one, and so does an empty
// one.
static bool block_has_label(const Block *b)
{
	return b != b->region->first || b->narg || !b->first;
}

static void print_block_head(Printer *p, const Block *b)
{
	new_line(p);
	text_printf(p->out, "^%u", b->id);
	if (b->narg) {
		text_char(p->out, '(');
		for (int i = 0; i < b->narg; i++) {
			if (i)
				text_str(p->out, ", ");
			print_definition(p, b->args[i]);
			text_str(p->out, ": ");
			type_print(p->out, b->args[i]->type);
		}
		text_char(p->out, ')');
	}
	text_char(p->out, ':');
}

static void print_region(Printer *p, const Op *op, int index)
{
	const OpInfo *info = op->info;
	const Region *r = &op->regions[index];
	// A single region needs no name; of several, each says which it is.
	bool named = info->max_regions > 1 && index < info->max_regions;
	text_printf(p->out, " %s%s{", named ? op_region_name(op, index) : "", named ? " " : "");
	uint32_t id = 0;
	for (Block *b = r->first; b; b = b->next)
		b->id = id++;
	p->indent++;
	for (const Block *b = r->first; b; b = b->next) {
		bool label = block_has_label(b);
		if (label)
			print_block_head(p, b);
		p->indent += label;
		for (const Op *o = b->first; o; o = o->next) {
			new_line(p);
			print_op(p, o);
		}
		p->indent -= label;
	}
	p->indent--;
	if (r->first)
		new_line(p);
	text_char(p->out, '}');
}

static void print_op(Printer *p, const Op *op)
{
	for (int i = 0; i < op->nresult; i++) {
		if (i)
			text_str(p->out, ", ");
		print_definition(p, op_result((Op *)op, i));
	}
	if (op->nresult)
		text_str(p->out, " = ");
	text_str(p->out, op->info->name);
	// The module has neither operands nor results and reads better without saying so.
	bool bare = op->code == OP_BUILTIN_MODULE && !op->noperand && !op->nresult && !op->nsucc;
	if (!bare)
		print_operands(p, op, 0, plain_operands(op));
	print_successors(p, op);
	print_attributes(p, op);
	if (!bare)
		print_signature(p, op);
	print_loc(p, op->loc);
	// Optional regions come last in the table and first in text: `init` runs before the others.
	const int parts = op_parts(op);
	for (int i = parts; i < op->nregion; i++)
		print_region(p, op, i);
	for (int i = 0; i < parts && i < op->nregion; i++)
		print_region(p, op, i);
}

void ir_print(Text *t, const Op *op)
{
	Printer p = {.out = t};
	pointer_map_init(&p.values, t->arena);
	name_map_init(&p.names, t->arena);
	print_op(&p, op);
	text_char(t, '\n');
}
