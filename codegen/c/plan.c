// The memory plan as a comment over model_run: what lies where in the workspace, one after the
// other where bytes are shared, how large it is, and what reads it last. Called by run.c.
#include "codegen/c/c.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 97 }; // of a line of the table, with its comma

typedef struct Buffer {
	const Value *value;
	const char *name; // of its pointer in model_run, or of the column of a table that has it
	const Dim *offset;
	bool moving;
	int order; // in the code
	int group; // the order of the first one at this offset
	int64_t address;
} Buffer;

typedef struct Buffers {
	Codegen *cg;
	Buffer *items;
	int n, cap;
	PointerMap readers; // root -> the operation that reads it last
	PointerMap named;   // the names that are there; of a column -> the places that it says
	PointerMap groups;  // offset -> the order of its first buffer
} Buffers;

// What an operation reads, in its regions, too.
static void reads_note(Buffers *b, const Op *op, const Op *reader)
{
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (v && type_is_tensor(v->type))
			pointer_map_set(&b->readers, value_place(v).root, reader);
	}
	for (int r = 0; r < op->nregion; r++)
		for (const Block *k = op->regions[r].first; k; k = k->next)
			for (const Op *in = k->first; in; in = in->next)
				reads_note(b, in, reader);
}

// Whether no buffer has had the name so far, which then is there. The column of a table says
// several places, each of them once.
static bool name_is_new(Buffers *b, const char *name, bool column, const Dim *offset)
{
	PointerMap *places = (PointerMap *)(uintptr_t)pointer_map_get(&b->named, name);
	if (places && (!column || pointer_map_has(places, offset)))
		return false;
	if (!places) {
		places = NEW(b->cg->arena, PointerMap);
		pointer_map_init(places, b->cg->arena);
		pointer_map_set(&b->named, name, places);
	}
	pointer_map_set(places, offset, name);
	return true;
}

static void buffer_add(Buffers *b, const Value *v)
{
	Codegen *cg = b->cg;
	if (!type_is_tensor(v->type))
		return;
	const Place p = value_place(v);
	if (p.kind != PLACE_WORKSPACE || p.root != v || !p.offset)
		return;
	const char *name = p.moving ? p.moving < cg->nmoving ? moving_at(cg, p.moving)->name : NULL
	                            : pointer_map_get(&cg->pointers, v);
	const bool column = !name;
	if (column)
		name = pointer_map_get(&cg->row_places, v);
	if (!name || name[0] == '(') // nobody asked for it, or it is a variable
		return;
	if (!name_is_new(b, name, column, p.offset))
		return;
	if (pointer_map_index(&b->groups, p.offset) < 0)
		pointer_map_set_index(&b->groups, p.offset, b->n);
	VEC_ROOM(cg->arena, b->items, b->n, b->cap);
	b->items[b->n] = (Buffer){v,
	                          name,
	                          p.offset,
	                          p.moving != 0,
	                          b->n,
	                          pointer_map_index(&b->groups, p.offset),
	                          offset_address(cg, p.offset)};
	b->n++;
}

static void buffers_collect(Buffers *b)
{
	for (const Block *k = b->cg->module->regions[0].first; k; k = k->next) {
		for (int i = 0; i < k->narg; i++)
			buffer_add(b, k->args[i]);
		for (const Op *op = k->first; op; op = op->next) {
			for (int i = 0; i < op->nresult; i++)
				buffer_add(b, &op->results[i]);
			reads_note(b, op, op);
		}
	}
}

// By address, that of usual sizes where they are open; then in the order of the code.
static int compare(const void *x, const void *y)
{
	const Buffer *a = x, *b = y;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static void buffer_print(Buffers *b, const Buffer *f, Text *out)
{
	Codegen *cg = b->cg;
	const Op *reader = pointer_map_get(&b->readers, f->value);
	const char *bytes = dim_of_bounds(cg, type_bytes_at_most(cg->ctx, f->value->type));
	const char *what = arena_printf(cg->arena, " *     %s, %s bytes", f->name,
	                                expression_unwrap(cg->arena, bytes)),
			   *until = f->moving ? "exchanged by branches"
	                    : reader  ? arena_printf(cg->arena, "until %s",
	                                             comment_text(cg->arena, op_stem(cg, reader)))
	                              : NULL;
	text_str(out, what);
	if (until)
		text_printf(out, "%s%s",
		            strlen(what) + strlen(until) > MOST_COLUMNS ? ",\n *         " : ", ", until);
	text_char(out, '\n');
}

void plan_print(Codegen *cg, Text *out)
{
	Buffers b = {.cg = cg};
	offsets_order(cg);
	pointer_map_init(&b.readers, cg->arena);
	pointer_map_init(&b.named, cg->arena);
	pointer_map_init(&b.groups, cg->arena);
	buffers_collect(&b);
	if (!b.n)
		return;
	qsort(b.items, (size_t)b.n, sizeof *b.items, compare);
	text_str(out, "/* What lies where in the workspace, until what reads it last:\n");
	for (int i = 0; i < b.n; i++) {
		if (!i || b.items[i].offset != b.items[i - 1].offset)
			text_printf(out, " * %s%s:\n", dim_is_const(b.items[i].offset) ? "at " : "",
			            offset_in_run(cg, b.items[i].name, b.items[i].offset));
		buffer_print(&b, &b.items[i], out);
	}
	text_str(out, " */\n");
}
