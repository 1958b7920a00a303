// Sizes as C: expressions over symbols, and the numbers of the memory plan, which are large trees
// with shared parts and become locals. Prints model_workspace_size. Called by func.c, the printers
// of model_run, and c/plan.c.
#include "codegen/func/func.h"

#include <inttypes.h>
#include <string.h>

static const char *dim_operator(DimKind k)
{
	switch (k) {
	case DIM_ADD: return "+";
	case DIM_MUL: return "*";
	case DIM_DIV: return "/";
	default: return "%";
	}
}

// ---- expressions --------------------------------------------------------------------------------

// Sizes are never negative, but differences inside may be (`(n - 3) / 2`), and a divisor that a run
// finds may be 0: division then goes to a function that rounds towards minus infinity, and by 0
// gives 0.
static const char *dim_division(Arena *a, const Dim *d, const char *x, const char *y)
{
	int64_t lo, hi, least, most;
	dim_range_empty(d->a, &lo, &hi);
	dim_range_empty(d->b, &least, &most);
	if (lo < 0 || least < 1)
		return arena_printf(a, d->kind == DIM_DIV ? "pd_dim_div(%s, %s)" : "pd_dim_mod(%s, %s)", x,
		                    y);
	return arena_printf(a, "(%s %s %s)", x, dim_operator(d->kind), y);
}

static bool is_difference(const Dim *d)
{
	return d->kind == DIM_ADD && d->b->kind == DIM_CONST && d->b->value < 0 &&
	       d->b->value > INT64_MIN;
}

static const char *dim_binary(Arena *a, const Dim *d, const char *x, const char *y)
{
	bool sum = d->kind == DIM_ADD, call = d->kind >= DIM_MAX;
	if (call || d->a->kind == DIM_MUL || (sum && d->a->kind == DIM_ADD))
		x = expression_unwrap(a, x);
	if (call || (sum && d->b->kind == DIM_MUL))
		y = expression_unwrap(a, y);
	if (is_difference(d))
		return arena_printf(a, "(%s - %" PRId64 ")", x, -d->b->value);
	switch (d->kind) {
	case DIM_MAX: return arena_printf(a, "pd_dim_max(%s, %s)", x, y);
	case DIM_MIN: return arena_printf(a, "pd_dim_min(%s, %s)", x, y);
	case DIM_BROADCAST: return arena_printf(a, "pd_dim_broadcast(%s, %s)", x, y);
	case DIM_DIV:
	case DIM_MOD: return dim_division(a, d, x, y);
	default: return arena_printf(a, "(%s %s %s)", x, dim_operator(d->kind), y);
	}
}

const char *dim_expression(Arena *a, const Dim *d,
                           const char *(*name_of)(const Dim *sym, void *arg), void *arg)
{
	if (d->kind == DIM_CONST) {
		if (d->value > INT32_MAX)
			return arena_printf(a, "INT64_C(%" PRId64 ")", d->value);
		return arena_printf(a, d->value < 0 ? "(%" PRId64 ")" : "%" PRId64, d->value);
	}
	if (d->kind == DIM_SYM)
		return name_of(d, arg);
	const char *x = dim_expression(a, d->a, name_of, arg);
	return dim_binary(a, d, x, dim_expression(a, d->b, name_of, arg));
}

const Symbol *symbol_find(const Codegen *cg, const Dim *sym)
{
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].dim == sym)
			return &cg->symbols[i];
	return NULL;
}

const char *symbol_member(const Symbol *s)
{
	return s->bound ? NULL : s->max ? s->max : s->name;
}

const char *symbol_name(const Codegen *cg, const Dim *sym)
{
	const Symbol *s = symbol_find(cg, sym);
	return s ? s->name : name_sanitize(cg->arena, sym->name);
}

bool size_is_on_device(const Codegen *cg, const Dim *sym)
{
	const Symbol *s = symbol_find(cg, sym);
	return cg->backend->device && s && s->dim->bounded;
}

static const char *run_symbol(const Dim *sym, void *arg)
{
	return symbol_name(arg, sym);
}

const char *dim_in_run(Codegen *cg, const Dim *d)
{
	return dim_expression(cg->arena, d, run_symbol, cg);
}

static const char *bound_symbol(const Dim *sym, void *arg)
{
	const Symbol *s = symbol_find(arg, sym);
	return s && s->max ? s->max : symbol_name(arg, sym);
}

const char *dim_of_bounds(Codegen *cg, const Dim *d)
{
	return dim_expression(cg->arena, d, bound_symbol, cg);
}

// ---- numbers with locals ------------------------------------------------------------------------

// Longer expressions get a local of their own. Quotients are what the sizes of images are made of,
// half of a half of it; what two inputs broadcast to stands in every size behind them.
enum { MAX_LENGTH = 60, MAX_CALL_LENGTH = 24 };

void size_locals_init(SizeLocals *l, Codegen *cg, SizeKind kind, Names *scope)
{
	*l = (SizeLocals){.cg = cg, .kind = kind, .scope = scope};
	text_init(&l->text, cg->arena);
	pointer_map_init(&l->names, cg->arena);
	pointer_map_init(&l->declared, cg->arena);
	pointer_map_init(&l->rooms, cg->arena);
}

static const char *leaf_in_locals(SizeLocals *l, const Dim *d)
{
	Arena *a = l->cg->arena;
	if (l->kind == SIZES_OF_RUN || d->kind == DIM_CONST)
		return dim_in_run(l->cg, d);
	const Symbol *s = symbol_find(l->cg, d);
	if (s && !s->max && s->room)
		pointer_map_set(&l->rooms, s, s);
	return !s ? name_sanitize(a, d->name) : s->max ? s->max : s->room ? s->room : s->name;
}

// A local for `value`, named after what the number is of, or counted.
static const char *local_declare(SizeLocals *l, const char *value)
{
	static const char *const kinds[] = {"room", "size"};
	Arena *a = l->cg->arena;
	const char *kind = kinds[l->kind];
	const char *name = l->stem ? arena_printf(a, "%s_%s", kind, l->stem)
	                           : arena_printf(a, "%s_%d", kind, ++l->count);
	if (l->scope)
		name = names_unique(l->scope, name);
	text_line(&l->text, 1, "const int64_t %s = %s;", name, expression_unwrap(a, value));
	return name;
}

const char *dim_in_locals(SizeLocals *l, const Dim *d)
{
	if (d->kind == DIM_CONST || d->kind == DIM_SYM)
		return leaf_in_locals(l, d);
	const char *name = pointer_map_get(&l->names, d);
	if (name)
		return name;
	const char *x = dim_in_locals(l, d->a), *y = dim_in_locals(l, d->b);
	name = dim_binary(l->cg->arena, d, x, y);
	const bool call = d->kind == DIM_DIV || d->kind == DIM_BROADCAST;
	if (strlen(name) > (call ? MAX_CALL_LENGTH : MAX_LENGTH))
		pointer_map_set(&l->declared, d, name = local_declare(l, name));
	pointer_map_set(&l->names, d, name);
	return name;
}

const char *dim_local(const SizeLocals *l, const Dim *d)
{
	return pointer_map_get(&l->declared, d);
}

// ---- model_workspace_size -----------------------------------------------------------------------

// Whether a size cannot become larger when a symbol becomes smaller.
static bool dim_is_monotone(const Dim *d)
{
	if (d->kind == DIM_CONST)
		return d->value >= 0;
	if (d->kind == DIM_SYM)
		return true;
	if (d->kind == DIM_MOD || (d->kind == DIM_DIV && !dim_is_const(d->b)))
		return false;
	bool shift = d->kind == DIM_ADD && dim_is_const(d->b);
	return dim_is_monotone(d->a) && (shift || dim_is_monotone(d->b));
}

// Inputs for which the size of an intermediate tensor comes out negative are refused, and so are
// empty ones for which it comes out larger than what the plan has room for.
static void size_check_print(SizeLocals *l, const Dim *d, const char *refuse, Text *out)
{
	int64_t lo, hi;
	dim_range_empty(d, &lo, &hi);
	if (lo < 0) {
		text_line(out, 1, "if (%s < 0)", dim_in_run(l->cg, d));
		text_line(out, 2, "return %s;", refuse);
	}
	if (dim_is_monotone(d))
		return; // without a local of the plan, which nobody would read
	const char *size = dim_in_run(l->cg, d), *room = dim_in_locals(l, d);
	if (!strcmp(size, room))
		return;
	text_line(out, 1, "if (%s > %s)", size, room);
	text_line(out, 2, "return %s;", refuse);
}

static void sizes_check_print(SizeLocals *l, const char *refuse, Text *out)
{
	PointerMap seen;
	pointer_map_init(&seen, l->cg->arena);
	for (const Op *op = module_first(l->cg->module); op; op = module_next(op))
		for (int i = 0; i < op->nresult; i++) {
			const Type *t = op->results[i].type;
			for (int d = 0; t->kind == TY_TENSOR && d < t->rank; d++) {
				if (dim_is_const(t->dims[d]) || dim_is_found(t->dims[d]) ||
				    pointer_map_get(&seen, t->dims[d]))
					continue;
				pointer_map_set(&seen, t->dims[d], t->dims[d]);
				size_check_print(l, t->dims[d], refuse, out);
			}
		}
}

static void size_symbols_print(Codegen *cg, const char *refuse, Text *out)
{
	for (int i = 0; i < cg->nsymbol; i++) {
		const char *name = symbol_member(&cg->symbols[i]);
		if (!name)
			continue;
		text_line(out, 1, "const int64_t %s = dims->%s;", name, name);
		text_line(out, 1, "if (%s < %d || %s > INT32_MAX)", name, cg->symbols[i].room ? 0 : 1,
		          name);
		text_line(out, 2, "return %s;", refuse);
	}
}

void rooms_print(const SizeLocals *l, Text *out)
{
	for (int i = 0; i < l->cg->nsymbol; i++) {
		const Symbol *s = &l->cg->symbols[i];
		if (pointer_map_get(&l->rooms, s))
			text_line(out, 1, "const int64_t %s = %s ? %s : 1;", s->room, s->name, s->name);
	}
}

void sizes_print(SizeLocals *l, const char *refuse, Text *out)
{
	Codegen *cg = l->cg;
	Text checks;
	text_init(&checks, cg->arena);
	const char *most = cg->workspace->kind == DIM_CONST ? NULL : size_estimate(l, cg->workspace);
	sizes_check_print(l, refuse, &checks);
	size_symbols_print(cg, refuse, out);
	rooms_print(l, out);
	if (most) {
		text_line(out, 1, "/* at most, where nothing overflows */");
		text_line(out, 1, "const double most = %s;", most);
		text_line(out, 1, "if (most > 4e18)");
		text_line(out, 2, "return %s;", refuse);
	}
	text_str(out, l->text.text ? l->text.text : "");
	text_str(out, checks.text ? checks.text : "");
	text_init(&l->text, cg->arena);
}

void workspace_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	if (!cg->nmember) {
		text_printf(out, "size_t %s_workspace_size(void)\n{\n\treturn %" PRId64 ";\n}\n\n", p,
		            cg->workspace->kind == DIM_CONST ? cg->workspace->value : 0);
		return;
	}
	text_printf(out, "size_t %s_workspace_size(const %s_dims *dims)\n{\n", p, p);
	SizeLocals plan;
	size_locals_init(&plan, cg, SIZES_OF_PLAN, NULL);
	const char *bytes = expression_unwrap(cg->arena, dim_in_locals(&plan, cg->workspace));
	sizes_print(&plan, "SIZE_MAX", out);
	if (cg->workspace->kind != DIM_CONST) {
		text_line(out, 1, "const int64_t bytes = %s;", bytes);
		text_line(out, 1, "return (double)bytes > (double)SIZE_MAX ? SIZE_MAX : (size_t)bytes;");
	} else {
		text_line(out, 1, "return %s;", bytes);
	}
	text_str(out, "}\n\n");
}
