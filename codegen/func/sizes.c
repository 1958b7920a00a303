// Sizes as C: expressions over symbols, and the numbers of the memory plan, which are large trees
// with shared parts and become locals. Prints model_workspace_size. Called by func.c, run.c,
// codegen.c and cuda.c.
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

// Sizes are never negative and divisors are positive, but differences inside may be negative (`(n -
// 3) / 2`): division then goes to a function that rounds towards minus infinity.
static const char *dim_division(Arena *a, const Dim *d, const char *x, const char *y)
{
	int64_t lo, hi;
	dim_range_empty(d->a, &lo, &hi);
	if (lo < 0)
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

// In floating point nothing overflows; a quotient is a little larger than the floor of it, a
// remainder at most the divisor.
static const char *double_binary(Arena *a, const Dim *d, const char *x, const char *y)
{
	switch (d->kind) {
	case DIM_MUL: return arena_printf(a, "(%s * %s)", x, y);
	case DIM_DIV: return arena_printf(a, "(%s / %s)", x, y);
	case DIM_MAX:
	case DIM_BROADCAST: return arena_printf(a, "fmax(%s, %s)", x, y);
	case DIM_MIN: return arena_printf(a, "fmin(%s, %s)", x, y);
	case DIM_MOD: return y;
	default: return arena_printf(a, "(%s + %s)", x, y);
	}
}

static const char *leaf_in_locals(SizeLocals *l, const Dim *d)
{
	Arena *a = l->cg->arena;
	if (l->kind == SIZES_OF_RUN)
		return dim_in_run(l->cg, d);
	const bool in_double = l->kind == SIZES_IN_DOUBLE;
	if (d->kind == DIM_CONST)
		return arena_printf(a,
		                    in_double              ? "%" PRId64 ".0"
		                    : d->value > INT32_MAX ? "INT64_C(%" PRId64 ")"
		                    : d->value < 0         ? "(%" PRId64 ")"
		                                           : "%" PRId64,
		                    d->value);
	const Symbol *s = symbol_find(l->cg, d);
	if (s && !s->max && s->room)
		pointer_map_set(&l->rooms, s, s);
	return arena_printf(a, in_double ? "(double)%s" : "%s",
	                    !s        ? name_sanitize(a, d->name)
	                    : s->max  ? s->max
	                    : s->room ? s->room
	                              : s->name);
}

// A local for `value`.
static const char *local_declare(SizeLocals *l, const char *value)
{
	static const char *const stems[] = {"room", "estimate", "size"};
	Arena *a = l->cg->arena;
	const char *name = arena_printf(a, "%s_%d", stems[l->kind], ++l->count);
	if (l->scope)
		name = names_unique(l->scope, name);
	text_line(&l->text, 1, "const %s %s = %s;", l->kind == SIZES_IN_DOUBLE ? "double" : "int64_t",
	          name, expression_unwrap(a, value));
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
	name = (l->kind == SIZES_IN_DOUBLE ? double_binary : dim_binary)(l->cg->arena, d, x, y);
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
static void size_check_print(SizeLocals *l, const Dim *d, Text *out)
{
	int64_t lo, hi;
	dim_range_empty(d, &lo, &hi);
	if (lo < 0) {
		text_line(out, 1, "if (%s < 0)", dim_in_run(l->cg, d));
		text_line(out, 2, "return SIZE_MAX;");
	}
	if (dim_is_monotone(d))
		return; // without a local of the plan, which nobody would read
	const char *size = dim_in_run(l->cg, d), *room = dim_in_locals(l, d);
	if (!strcmp(size, room))
		return;
	text_line(out, 1, "if (%s > %s)", size, room);
	text_line(out, 2, "return SIZE_MAX;");
}

static void sizes_check_print(SizeLocals *l, Text *out)
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
				size_check_print(l, t->dims[d], out);
			}
		}
}

static void size_symbols_print(Codegen *cg, Text *out)
{
	for (int i = 0; i < cg->nsymbol; i++) {
		const char *name = symbol_member(&cg->symbols[i]);
		if (!name)
			continue;
		text_line(out, 1, "const int64_t %s = dims->%s;", name, name);
		text_line(out, 1, "if (%s < %d || %s > INT32_MAX)", name, cg->symbols[i].room ? 0 : 1,
		          name);
		text_line(out, 2, "return SIZE_MAX;");
	}
}

void rooms_print(const SizeLocals *l, const SizeLocals *more, Text *out)
{
	for (int i = 0; i < l->cg->nsymbol; i++) {
		const Symbol *s = &l->cg->symbols[i];
		if (pointer_map_get(&l->rooms, s) || (more && pointer_map_get(&more->rooms, s)))
			text_line(out, 1, "const int64_t %s = %s ? %s : 1;", s->room, s->name, s->name);
	}
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
	size_symbols_print(cg, out);
	Text body, checks;
	text_init(&body, cg->arena);
	text_init(&checks, cg->arena);
	SizeLocals exact, estimate;
	size_locals_init(&exact, cg, SIZES_OF_PLAN, NULL);
	size_locals_init(&estimate, cg, SIZES_IN_DOUBLE, NULL);
	if (cg->workspace->kind != DIM_CONST) {
		const char *bytes = dim_in_locals(&estimate, cg->workspace);
		text_str(&body, estimate.text.text ? estimate.text.text : "");
		text_line(&body, 1, "if (%s > 4e18 || %s > (double)SIZE_MAX)", bytes, bytes);
		text_line(&body, 2, "return SIZE_MAX;");
	}
	sizes_check_print(&exact, &checks);
	const char *bytes = dim_in_locals(&exact, cg->workspace);
	text_str(&body, exact.text.text ? exact.text.text : "");
	text_str(&body, checks.text ? checks.text : "");
	text_line(&body, 1, "return (size_t)%s;", bytes);
	rooms_print(&exact, &estimate, out);
	text_str(out, body.text);
	text_str(out, "}\n\n");
}
