// What goes in and out of a model: feeds, fetches, and the symbols that their sizes hang on. Called
// by codegen.c.
#include "codegen/model/model.h"
#include "lower/analysis/analysis.h"
#include "ir/base/vec.h"

#include <string.h>

const char *comment_text(Arena *a, const char *s)
{
	char *t = arena_strndup(a, s, strlen(s));
	for (char *p = t; *p; p++)
		if ((unsigned char)*p < ' ' || (p > t && *p == '/' && p[-1] == '*') ||
		    (*p == '*' && p[1] == '/'))
			*p = '?';
	return t;
}

// Octal escapes end after three digits, unlike hexadecimal ones, and `?` cannot begin a trigraph.
const char *string_literal(Arena *a, const char *s)
{
	Text t;
	text_init(&t, a);
	text_char(&t, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_printf(&t, "\\%c", *s);
		else if ((unsigned char)*s < ' ' || (unsigned char)*s > '~' || *s == '?')
			text_printf(&t, "\\%03o", (unsigned char)*s);
		else
			text_char(&t, *s);
	}
	text_char(&t, '"');
	return t.text;
}

const char *shape_comment(Codegen *cg, const Type *t)
{
	Text text;
	text_init(&text, cg->arena);
	text_char(&text, '[');
	for (int i = 0; i < t->rank; i++)
		text_printf(&text, "%s%s", i ? " x " : "", dim_in_run(cg, t->dims[i]));
	text_printf(&text, "] %s", dtype_name(t->dtype));
	return text.text;
}

// ---- symbols ------------------------------------------------------------------------------------

static void dim_symbols(Codegen *cg, const Dim *d);

// The name that the user chose for a size which would be called `name`.
static const char *size_chosen(Codegen *cg, const char *name)
{
	const CodegenOptions *o = cg->options;
	for (int i = 0; i < o->nsize_name; i++) {
		if (strcmp(o->size_names[i].old, name))
			continue;
		const char *chosen = o->size_names[i].chosen;
		if (strcmp(names_unique(&cg->locals, chosen), chosen))
			diag_error(cg->ctx->diag, &loc_unknown,
			           "--name-size: something else is called '%s' already", chosen);
		return chosen;
	}
	return name;
}

// Every size that --name-size names is there.
static bool sizes_chosen(Codegen *cg)
{
	const CodegenOptions *o = cg->options;
	for (int i = 0; i < o->nsize_name; i++) {
		Text there;
		text_init(&there, cg->arena);
		bool found = false;
		for (int k = 0; k < cg->nsymbol; k++) {
			found |= !strcmp(cg->symbols[k].name, o->size_names[i].chosen);
			text_printf(&there, "%s'%s'", k ? ", " : "", cg->symbols[k].name);
		}
		if (!found)
			diag_error(cg->ctx->diag, &loc_unknown,
			           "--name-size: there is no size '%s'; the sizes are %s", o->size_names[i].old,
			           cg->nsymbol ? there.text : "none");
	}
	return !diag_errors(cg->ctx->diag);
}

static void symbol_add(Codegen *cg, const Dim *sym)
{
	if (symbol_find(cg, sym))
		return;
	const Dim *bound = sym->bounded ? dim_at_most(cg->ctx, sym) : sym;
	if (bound != sym)
		dim_symbols(cg, bound);
	VEC_ROOM(cg->arena, cg->symbols, cg->nsymbol, cg->csymbol);
	const char *name = size_chosen(cg, names_unique(&cg->locals, name_local(cg->arena, sym->name)));
	const char *max = sym->bounded
	                      ? names_unique(&cg->locals, arena_printf(cg->arena, "max_%s", name))
	                      : NULL;
	cg->symbols[cg->nsymbol++] = (Symbol){
		.dim = sym, .name = name, .max = max, .bound = bound != sym ? bound : NULL};
	if (dim_may_be_empty(cg->ctx, sym))
		cg->symbols[cg->nsymbol - 1].room = names_unique(&cg->locals,
		                                                 arena_printf(cg->arena, "room_%s", name));
	cg->nmember += bound == sym;
}

static void dim_symbols(Codegen *cg, const Dim *d)
{
	if (d->kind == DIM_SYM) {
		symbol_add(cg, d);
	} else if (d->kind != DIM_CONST) {
		dim_symbols(cg, d->a);
		dim_symbols(cg, d->b);
	}
}

// Whether all symbols in a size are set by the caller or bound by an operation.
static bool size_is_known(const Codegen *cg, const Dim *d)
{
	if (d->kind == DIM_CONST)
		return true;
	if (d->kind != DIM_SYM)
		return size_is_known(cg, d->a) && size_is_known(cg, d->b);
	return symbol_find(cg, d) != NULL;
}

static bool op_sizes_known(Codegen *cg, const Op *op)
{
	for (int i = 0; i < op->nresult; i++) {
		const Type *t = op->results[i].type;
		for (int d = 0; t->kind == TY_TENSOR && d < t->rank; d++)
			if (!size_is_known(cg, t->dims[d])) {
				Text text;
				text_init(&text, cg->arena);
				dim_print(&text, t->dims[d]);
				diag_error(cg->ctx->diag, op->loc,
				           "code generation: nothing says what size %s of the result of '%s' is",
				           text.text, op->info->name);
				return false;
			}
	}
	return true;
}

// ---- ports --------------------------------------------------------------------------------------

// A tensor array goes in or out as several tensors, a value of several types out as one of each.
static void port_set_part(Codegen *cg, Port *p, const Op *op)
{
	static const int numbers[] = {1, 1, 2, 3, 4, 5, 6}; // of pd_part, by PartKind
	const PartKind part = (PartKind)op_enum(op, "part");
	p->of = (int)op_int(op, "of", -1);
	p->part = part < PART_COUNT ? numbers[part] : 0;
	if (part == PART_TYPE && p->level)
		p->name = arena_printf(cg->arena, "%s.type%d", p->name, p->level);
	else if (p->part > 1 && part != PART_TYPE)
		p->name = arena_printf(cg->arena, "%s.%s", p->name, op_str(op, "part", ""));
}

static bool port_add(Codegen *cg, const Op *op, Port **ports, int *n)
{
	int64_t col = op_int(op, "col", 0);
	bool in = op->code == OP_PD_FEED;
	const Value *v = in ? &op->results[0] : op_operand(op, 0);
	if (col < 0 || col > 4095 || !v || v->type->kind != TY_TENSOR) {
		diag_error(cg->ctx->diag, op->loc, "code generation: no C for this %s",
		           in ? "feed" : "fetch");
		return false;
	}
	if (col >= *n) {
		*ports = vec_grow(cg->arena, *ports, (size_t)*n, sizeof **ports, (size_t)col + 1);
		*n = (int)col + 1;
	}
	Port *p = &(*ports)[col];
	if (p->type) {
		diag_error(cg->ctx->diag, op->loc, "code generation: column %d occurs twice", (int)col);
		return false;
	}
	*p = (Port){.name = op_str(op, "name", v->name ? v->name : "x"), .type = v->type, .value = v};
	p->lod_of = (int)op_int(op, "lod_of", -1);
	p->level = (int)op_int(op, "level", 0);
	p->levels = (int)op_int(op, "levels", 0);
	if (p->lod_of >= 0)
		p->name = arena_printf(cg->arena, "%s.lod%d", p->name, p->level);
	port_set_part(cg, p, op);
	return true;
}

static bool ports_name(Codegen *cg, Port *ports, int n, const char *what)
{
	Names members;
	names_init(&members, cg->arena);
	names_unique(&members, "dims");
	for (int i = 0; i < cg->nsymbol; i++)
		names_unique(&members, arena_printf(cg->arena, "found_%s", cg->symbols[i].name));
	for (int i = 0; i < n; i++) {
		if (!ports[i].type) {
			diag_error(cg->ctx->diag, &loc_unknown, "code generation: %s column %d is missing",
			           what, i);
			return false;
		}
		ports[i].member = names_unique(&members, name_sanitize(cg->arena, ports[i].name));
		for (int d = 0; d < ports[i].type->rank; d++)
			if (!dim_is_const(ports[i].type->dims[d]))
				ports[i].dims = arena_printf(cg->arena, "%s_dims", ports[i].member);
		if (ports[i].dims)
			ports[i].dims = names_unique(&members, ports[i].dims);
	}
	return true;
}

// Branches to a block give sizes to the symbols in the types of its arguments.
static void slots_collect(Codegen *cg)
{
	for (const Block *b = cg->module->regions[0].first; b; b = b->next)
		for (int i = 0; i < b->narg; i++) {
			const Type *t = b->args[i]->type;
			for (int d = 0; t->kind == TY_TENSOR && d < t->rank; d++) {
				if (t->dims[d]->kind != DIM_SYM || !t->dims[d]->bounded)
					continue;
				symbol_add(cg, t->dims[d]);
				Symbol *s = (Symbol *)symbol_find(cg, t->dims[d]); // one of cg's own
				if (!s->next && !s->by_op)
					s->next = names_unique(&cg->locals,
					                       arena_printf(cg->arena, "next_%s", s->name));
			}
		}
}

// Whether the size of some tensor in memory hangs on the bound of a symbol, or another bound does.
static bool bound_is_needed(Codegen *cg, const Dim *sym)
{
	if (memory_mentions(cg->module, sym))
		return true;
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].bound && dim_mentions(cg->symbols[i].bound, sym))
			return true;
	return false;
}

static bool output_mentions(const Codegen *cg, const Dim *sym)
{
	for (int k = 0; k < cg->noutput; k++)
		for (int d = 0; cg->outputs[k].type && d < cg->outputs[k].type->rank; d++)
			if (dim_mentions(cg->outputs[k].type->dims[d], sym))
				return true;
	return false;
}

// Sizes that say where something begins, and not how large it is, need no bounds.
static void bounds_settle(Codegen *cg)
{
	for (int i = 0; i < cg->nsymbol; i++) {
		Symbol *s = &cg->symbols[i];
		if (!s->dim->bounded)
			continue;
		if (!s->bound && !bound_is_needed(cg, s->dim)) {
			s->max = NULL;
			s->bound = dim_const(cg->ctx, 0);
			cg->nmember--;
		}
		s->reported = !s->bound || output_mentions(cg, s->dim);
	}
}

// The symbols of inputs, then those that operations give values.
static void symbols_collect(Codegen *cg)
{
	for (int i = 0; i < cg->ninput; i++)
		for (int d = 0; cg->inputs[i].type && d < cg->inputs[i].type->rank; d++)
			dim_symbols(cg, cg->inputs[i].type->dims[d]);
	for (const Op *op = module_first(cg->module); op; op = module_next(op)) {
		const Attr *found = op->code == OP_LOOP_BIND || op->code == OP_LOOP_CAPACITY
		                        ? op_attr(op, "dims")
		                        : NULL;
		for (int d = 0; found && d < found->n; d++) {
			dim_symbols(cg, found->dims[d]);
			if (found->dims[d]->kind == DIM_SYM)
				((Symbol *)symbol_find(cg, found->dims[d]))->by_op = true; // one of cg's own
		}
	}
}

bool ports_collect(Codegen *cg)
{
	const Op *first = module_first(cg->module);
	for (const Op *op = first; op; op = module_next(op)) {
		if (op->code == OP_PD_FEED && !port_add(cg, op, &cg->inputs, &cg->ninput))
			return false;
		if (op->code == OP_PD_FETCH && !port_add(cg, op, &cg->outputs, &cg->noutput))
			return false;
	}
	symbols_collect(cg);
	slots_collect(cg);
	bounds_settle(cg);
	if (!sizes_chosen(cg))
		return false;
	for (const Op *op = first; op; op = module_next(op))
		if (!op_sizes_known(cg, op))
			return false;
	return ports_name(cg, cg->inputs, cg->ninput, "feed") &&
	       ports_name(cg, cg->outputs, cg->noutput, "fetch");
}
