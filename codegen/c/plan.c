// The memory plan. As a comment over model_run: what lies where in the workspace, one after the
// other where bytes are shared, how large it is, and what reads it last. Where sizes are open, as a
// function of those of a run: one statement for each place, in order of address, which says it by
// the one before it and what lies between, so that the lines read as a table; model_workspace_size
// is where the last one ends. Called by run.c and module.c.
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
	if (p.kind != PLACE_WORKSPACE || p.root != v || !p.offset || variable_local(cg, &p))
		return;
	const char *name = p.moving ? p.moving < cg->nmoving ? moving_at(cg, p.moving)->name : NULL
	                            : pointer_map_get(&cg->pointers, v);
	const bool column = !name;
	if (column)
		name = pointer_map_get(&cg->row_places, v);
	if (!name) // nobody asked for it
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

// ---- where places begin -------------------------------------------------------------------------

enum { NEAR = 4 }; // places that an offset may go on from

// What is left of the offset in front of which the first `n` places are, behind one of the last of
// these, where that is shorter to say.
static const Dim *rest_of(Codegen *cg, const Dim *offset, int n, const Offset **behind)
{
	const Dim *best = offset;
	size_t least = strlen(dim_text(cg->ctx, best));
	*behind = NULL;
	for (int j = n - 1; j >= 0 && j >= n - NEAR; j--) {
		const Dim *rest = dim_sub(cg->ctx, offset, cg->offsets[j].dim);
		const size_t length = strlen(dim_text(cg->ctx, rest));
		if (length >= least)
			continue;
		least = length;
		best = rest;
		*behind = &cg->offsets[j];
	}
	return best;
}

// Numbers that are made for a place have the name of what lies in front of it, which they are the
// room of.
static void place_print(SizeLocals *l, const char *name, const Dim *offset, int n)
{
	Codegen *cg = l->cg;
	const Offset *behind;
	const Dim *rest = rest_of(cg, offset, n, &behind);
	l->stem = behind ? behind->name : "at_0";
	const char *more = expression_unwrap(cg->arena, dim_in_locals(l, rest));
	const char *from = behind ? arena_printf(cg->arena, "at->%s + ", behind->name) : "";
	text_line(&l->text, 1, "at->%s = %s%s;", name, from, more);
}

static void plan_function_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	SizeLocals l;
	Names scope;
	names_init(&scope, cg->arena);
	names_unique(&scope, "dims");
	names_unique(&scope, "at");
	names_unique(&scope, "most");
	for (int i = 0; i < cg->nsymbol; i++) {
		const Symbol *s = &cg->symbols[i];
		const char *const names[] = {s->name, s->max, s->room};
		for (int k = 0; k < (int)COUNT_OF(names); k++)
			if (names[k])
				names_unique(&scope, names[k]);
	}
	size_locals_init(&l, cg, SIZES_OF_PLAN, &scope);
	for (int i = 0; i < cg->noffset; i++)
		place_print(&l, cg->offsets[i].name, cg->offsets[i].dim, i);
	place_print(&l, "end", cg->workspace, cg->noffset);
	text_printf(out, "static bool %s_plan(const %s_dims *dims, struct %s_places *at)\n{\n", p, p,
	            p);
	sizes_print(&l, "false", out);
	text_line(out, 1, "return (double)at->end <= (double)SIZE_MAX;");
	text_str(out, "}\n\n");
}

void places_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	offsets_order(cg);
	if (!cg->noffset) {
		workspace_print(cg, out);
		return;
	}
	text_printf(out, "/* Where buffers begin in the workspace. */\nstruct %s_places {\n", p);
	for (int i = 0; i < cg->noffset; i++)
		text_line(out, 1, "int64_t %s;", cg->offsets[i].name);
	text_line(out, 1, "int64_t end;");
	text_str(out, "};\n\n/* false: such sizes cannot be */\n");
	plan_function_print(cg, out);
	text_printf(out, "size_t %s_workspace_size(const %s_dims *dims)\n{\n", p, p);
	text_line(out, 1, "struct %s_places at;", p);
	text_line(out, 1, "return %s_plan(dims, &at) ? (size_t)at.end : SIZE_MAX;", p);
	text_str(out, "}\n\n");
}
