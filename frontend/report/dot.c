// A module as a graphviz picture: a node per operation that computes, a box around each region.
#include "frontend/report/report.h"
#include "ir/base/map.h"

#include <string.h>

typedef struct Dot {
	Text *t;
	int next;         // number of the next node
	PointerMap nodes; // of operations, and of blocks whose arguments have a node
} Dot;

static void indent(Dot *d, int depth)
{
	for (int i = 0; i <= depth; i++)
		text_char(d->t, '\t');
}

// Parameters and constants would drown the picture: only operations that compute are drawn.
static bool op_hidden(const Op *op)
{
	return op->code == OP_BUILTIN_GET_PARAMETER || op->code == OP_BUILTIN_CONSTANT;
}

static void op_label(Text *label, const Op *op)
{
	text_str(label, op->info->short_name);
	const char *name = op_str(op, "name", op->nresult ? op->results[0].name : NULL);
	if (name)
		text_printf(label, "\n%s", name);
	if (op->nresult) {
		text_char(label, '\n');
		type_print(label, op->results[0].type);
	}
}

static void print_node(Dot *d, const void *of, const char *shape, const Text *label, int depth)
{
	indent(d, depth);
	text_printf(d->t, "n%d [shape=%s, label=", d->next, shape);
	text_quoted(d->t, label->text);
	text_str(d->t, "];\n");
	pointer_map_set_index(&d->nodes, of, d->next++);
}

static void print_arguments(Dot *d, const Block *b, int depth)
{
	if (!b->narg)
		return;
	Text label;
	text_init(&label, d->t->arena);
	for (int i = 0; i < b->narg; i++) {
		text_printf(&label, "%s%s ", i ? "\n" : "", b->args[i]->name ? b->args[i]->name : "_");
		type_print(&label, b->args[i]->type);
	}
	print_node(d, b, "note", &label, depth);
}

static void print_edges(Dot *d, const Op *op, int depth)
{
	const int to = pointer_map_index(&d->nodes, op);
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		const int from =
			!v ? -1 : pointer_map_index(&d->nodes, v->def ? (const void *)v->def : v->block);
		if (from < 0)
			continue;
		indent(d, depth);
		text_printf(d->t, "n%d -> n%d;\n", from, to);
	}
}

static void print_region(Dot *d, const Op *op, int index, int depth);

static void print_op(Dot *d, const Op *op, int depth)
{
	const bool port = op->code == OP_PD_FEED || op->code == OP_PD_FETCH;
	Text label;
	text_init(&label, d->t->arena);
	op_label(&label, op);
	print_node(d, op, port ? "ellipse" : "box", &label, depth);
	print_edges(d, op, depth);
	for (int i = 0; i < op->nregion; i++)
		print_region(d, op, i, depth);
}

static void print_block(Dot *d, const Block *b, int depth)
{
	print_arguments(d, b, depth);
	for (const Op *op = b->first; op; op = op->next) {
		if (!op_hidden(op))
			print_op(d, op, depth);
	}
}

// A box with the region's operations, and a dashed edge to it from the operation that has it.
static void print_region(Dot *d, const Op *op, int index, int depth)
{
	const Region *r = &op->regions[index];
	if (!r->first || !r->first->first)
		return;
	const int first = d->next, owner = pointer_map_index(&d->nodes, op);
	indent(d, depth);
	text_printf(d->t, "subgraph cluster_%d_%d {\n", owner, index);
	indent(d, depth + 1);
	text_printf(d->t, "label=");
	text_quoted(
		d->t, arena_printf(d->t->arena, "%s %s", op->info->short_name, op_region_name(op, index)));
	text_str(d->t, ";\n");
	for (const Block *b = r->first; b; b = b->next)
		print_block(d, b, depth + 1);
	indent(d, depth);
	text_str(d->t, "}\n");
	if (d->next == first)
		return;
	indent(d, depth);
	text_printf(d->t, "n%d -> n%d [style=dashed, lhead=cluster_%d_%d];\n", owner, first, owner,
	            index);
}

void emit_dot(Text *t, const Op *module)
{
	Dot d = {.t = t};
	pointer_map_init(&d.nodes, t->arena);
	text_str(t, "digraph model {\n\trankdir=TB;\n\tcompound=true;\n"
	            "\tnode [fontname=\"Helvetica\", fontsize=10];\n");
	for (const Block *b = module->regions[0].first; b; b = b->next)
		print_block(&d, b, 0);
	text_str(t, "}\n");
}
