// What happens on the way to a successor of a branch in model_run: tensors move to the arguments of
// its block, sizes that it sets are checked and take their values. A buffer that branches exchange
// with others has a pointer that is not constant; to exchange is to swap pointers. Called by
// branch.c.
#include "codegen/model/model.h"
#include "lower/analysis/analysis.h"
#include "lower/analysis/edges.h"

#include <inttypes.h>
#include <string.h>

// ---- moves --------------------------------------------------------------------------------------

typedef struct Moved {
	const Value *arg, *value;
	Place to, from;
	bool exchange, done;
} Moved;

typedef struct Edge {
	Codegen *cg;
	int n, depth;
	Moved *moves;
} Edge;

static bool edge_collect(Edge *e, const Op *op, int s)
{
	const Succ *succ = &op->succs[s];
	e->moves = NEW_ARRAY(e->cg->arena, (size_t)succ->count + 1, Moved);
	for (int i = 0; i < (int)succ->count; i++) {
		const MoveKind kind = branch_move(op, s, i);
		if (kind == MOVE_COUNT) {
			diag_error(e->cg->ctx->diag, op->loc,
			           "code generation: the plan does not say what '%s' moves", op->info->name);
			return false;
		}
		if (kind == MOVE_NONE)
			continue;
		Moved m = {.arg = succ->block->args[i], .value = op_operand(op, (int)succ->first + i)};
		m.to = value_place(m.arg);
		m.from = value_place(m.value);
		m.exchange = kind == MOVE_EXCHANGE;
		e->moves[e->n++] = m;
	}
	return true;
}

// The exchange that writes, or that reads, a buffer that moves; NULL: none.
static Moved *exchange_find(const Edge *e, int moving, bool writes)
{
	for (int i = 0; i < e->n; i++) {
		Moved *m = &e->moves[i];
		if (m->exchange && (writes ? m->to.moving : m->from.moving) == moving)
			return m;
	}
	return NULL;
}

// Where copies find, after the exchanges, what was in a buffer before.
static int moving_after(const Edge *e, int moving)
{
	const Moved *m = exchange_find(e, moving, false);
	if (m)
		return m->to.moving;
	// Nobody asked for it: it went to the other end of the chain.
	for (int at = moving; (m = exchange_find(e, at, true)); moving = at)
		at = m->from.moving;
	return moving;
}

// `to = from;` for pointers to buffers that move.
static void pointer_assign(const Edge *e, const Moving *to, const Moving *from)
{
	bool same = !strcmp(to->type, from->type);
	run_line(e->cg, e->depth + 1, "%s = %s%s;", to->name,
	         same ? "" : arena_printf(e->cg->arena, "(%s *)", to->type), from->name);
}

// All buffers that hang together with the one that m writes take each other's place: a swap, or a
// longer chain.
static void exchange_print(const Edge *e, Moved *m)
{
	Codegen *cg = e->cg;
	int first = m->to.moving;
	const Moving *at = moving_find(cg, &m->to);
	const Moving swapped = {"swapped", at->type};
	run_line(cg, e->depth, "{");
	run_line(cg, e->depth + 1, "%s *const swapped = %s;", at->type, at->name);
	while (m && m->from.moving != first) {
		const Moving *from = moving_find(cg, &m->from);
		pointer_assign(e, at, from);
		m->done = true;
		at = from;
		m = exchange_find(e, m->from.moving, true);
	}
	if (m)
		m->done = true;
	pointer_assign(e, at, &swapped);
	run_line(cg, e->depth, "}");
}

// The ends of chains first; what is left then goes round in circles.
static void exchanges_print(const Edge *e)
{
	for (int circles = 0; circles < 2; circles++)
		for (int i = 0; i < e->n; i++) {
			Moved *m = &e->moves[i];
			if (m->exchange && !m->done && (circles || !exchange_find(e, m->to.moving, false)))
				exchange_print(e, m);
		}
}

// Whether a copy that is still to come reads what m writes.
static bool copy_must_wait(const Edge *e, const Moved *m)
{
	for (int i = 0; i < e->n; i++) {
		const Moved *other = &e->moves[i];
		if (other != m && !other->done && places_equal(&other->from, &m->to))
			return true;
	}
	return false;
}

enum { FEW_COPIED = 4 };

// What a copy writes or reads is a local array of a few elements: each by itself, for gcc makes a
// vector of a memcpy, and memory of the array. 0: it is none, or there are more.
static int64_t elements_alone(const Edge *e, const Moved *m)
{
	int64_t n;
	if (m->from.moving || !type_const_numel(m->arg->type, &n) || n > FEW_COPIED ||
	    (!variable_local(e->cg, &m->to) && !variable_local(e->cg, &m->from)))
		return 0;
	return n;
}

static bool copy_print(const Edge *e, Moved *m)
{
	Codegen *cg = e->cg;
	const Type *t = m->arg->type;
	const Dim *bytes = type_bytes_in_run(cg, m->value->type);
	int64_t n;
	m->done = true;
	if (dim_is(bytes, 0))
		return true;
	if (!m->from.moving && type_const_numel(t, &n) && n == 1) {
		const char *x = tensor_element(cg, m->arg), *y = tensor_element(cg, m->value);
		if (x && y)
			run_line(cg, e->depth, "%s = %s;", x, y);
		return x && y;
	}
	const char *to = tensor_pointer(cg, m->arg);
	const char *from = m->from.moving ? moving_as(cg, moving_at(cg, m->from.moving), t->dtype)
	                                  : tensor_pointer(cg, m->value);
	if (!to || !from)
		return false;
	const int64_t alone = elements_alone(e, m);
	for (int64_t i = 0; i < alone; i++)
		run_line(cg, e->depth, "%s[%" PRId64 "] = %s[%" PRId64 "];", to, i, from, i);
	if (type_const_numel(t, &n) && n == 1)
		run_line(cg, e->depth, "*%s = *%s;", to, from);
	else if (!alone)
		run_line(cg, e->depth, "memcpy(%s, %s, (size_t)%s);", to, from, dim_in_run(cg, bytes));
	return true;
}

// All values are read before any is written: exchanges destroy nothing, and each copy waits for
// those that read what it writes. Copies in a circle are exchanges.
static bool moves_print(Edge *e, const Op *op, int s)
{
	if (!edge_collect(e, op, s))
		return false;
	for (int i = 0; i < e->n; i++)
		if (e->moves[i].from.moving)
			moving_find(e->cg, &e->moves[i].from);
	exchanges_print(e);
	for (int i = 0; i < e->n; i++)
		if (!e->moves[i].done && e->moves[i].from.moving)
			e->moves[i].from.moving = moving_after(e, e->moves[i].from.moving);
	for (bool changed = true; changed;) {
		changed = false;
		for (int i = 0; i < e->n; i++) {
			Moved *m = &e->moves[i];
			if (m->done || copy_must_wait(e, m))
				continue;
			if (!copy_print(e, m))
				return false;
			changed = true;
		}
	}
	for (int i = 0; i < e->n; i++)
		if (!e->moves[i].done) {
			diag_error(e->cg->ctx->diag, op->loc,
			           "code generation: the moves of '%s' wait for each other", op->info->name);
			return false;
		}
	return true;
}

// ---- sizes that branches set --------------------------------------------------------------------

// Sizes that a branch sets, while it is printed.
typedef struct SetSizes {
	Codegen *cg;
	const EdgeSizes *sizes;
	bool in_block; // … by a block of its own
} SetSizes;

// The local that says where an operation stands in the model: all branches of a loop name it.
static const char *where_local(Codegen *cg, const Op *op)
{
	const char *where = string_literal(cg->arena, op_where(cg, op));
	const char *name = name_map_get(&cg->wheres, where);
	if (name)
		return name;
	name = arena_printf(cg->arena, "where_%s", op->loc->var ? op->loc->var : branch_kind(op));
	name = names_unique(&cg->locals, name_local(cg->arena, name));
	local_declare(cg, LOCAL_CONST, "const char *const ", name, where);
	name_map_set(&cg->wheres, where, (void *)(uintptr_t)name);
	return name;
}

// Whether a size becomes a number for which there is room, whatever room the caller makes.
static bool size_is_plain(const Symbol *s, const Dim *from)
{
	if (!dim_is_const(from) || from->value < 0)
		return false;
	return !s->max || (s->bound ? dim_within(from, s->bound) : from->value <= (s->room ? 0 : 1));
}

// What a size becomes: a number, or the local that was made before anything moved.
static const char *size_next(Codegen *cg, const Symbol *s, const Dim *from)
{
	return size_is_plain(s, from) ? dim_in_run(cg, from) : s->next;
}

static const char *next_symbol(const Dim *sym, void *arg)
{
	const SetSizes *z = arg;
	const Dim *from = edge_size_from(z->sizes, sym);
	return from && from != sym ? size_next(z->cg, symbol_find(z->cg, sym), from)
	                           : symbol_name(z->cg, sym);
}

static void size_fail(SetSizes *z, const Op *op, int depth, const char *condition,
                      const Symbol *found, const char *status)
{
	Codegen *cg = z->cg;
	const char *where = z->in_block ? where_local(cg, op)
	                                : string_literal(cg->arena, op_where(cg, op));
	run_line(cg, depth, "if (%s) {", condition);
	if (found && found->reported)
		run_line(cg, depth + 1, "out->found_%s = %s;", found->name, found->next);
	run_line(cg, depth + 1, "m->failed = %s;", where);
	run_line(cg, depth + 1, "return %s;", status);
	run_line(cg, depth, "}");
}

// What symbols become, before anything moves.
static void sizes_print_next(SetSizes *z, const Op *op, int depth)
{
	Codegen *cg = z->cg;
	for (int i = 0; i < z->sizes->n; i++) {
		const Symbol *s = symbol_find(cg, z->sizes->items[i].sym);
		const Dim *from = z->sizes->items[i].from;
		int64_t lo, hi;
		if (from == s->dim || size_is_plain(s, from))
			continue;
		run_line(cg, depth, "const int64_t %s = %s;", s->next,
		         expression_unwrap(cg->arena, dim_in_run(cg, from)));
		dim_range(from, &lo, &hi);
		if (lo < 0)
			size_fail(z, op, depth, arena_printf(cg->arena, "%s < 0", s->next), NULL, "PD_DIMS");
		const bool fits = s->bound && (dim_within(from, s->bound) ||
		                               (dim_is_const(s->bound) && hi <= s->bound->value));
		if (s->max && !fits)
			size_fail(z, op, depth, arena_printf(cg->arena, "%s > %s", s->next, s->max), s,
			          "PD_CAPACITY");
	}
}

// Sizes of one name that come from several values must agree.
static void sizes_print_checks(SetSizes *z, const Op *op, const Succ *succ, int depth)
{
	for (int i = 0; i < (int)succ->count; i++) {
		const Type *want = succ->block->args[i]->type,
				   *have = op_operand(op, (int)succ->first + i)->type;
		for (int d = 0; d < want->rank; d++) {
			const Dim *w = want->dims[d], *h = have->dims[d];
			if (edge_size_is_same(z->sizes, w, h))
				continue;
			const char *becomes = dim_expression(z->cg->arena, w, next_symbol, z);
			size_fail(z, op, depth,
			          arena_printf(z->cg->arena, "%s != %s", dim_in_run(z->cg, h), becomes), NULL,
			          "PD_DIMS");
		}
	}
}

static bool sizes_have_locals(const SetSizes *z)
{
	for (int i = 0; i < z->sizes->n; i++) {
		const EdgeSize *size = &z->sizes->items[i];
		if (size->from != size->sym && !size_is_plain(symbol_find(z->cg, size->sym), size->from))
			return true;
	}
	return false;
}

bool edge_moves_print(Codegen *cg, const Op *op, int s, int depth)
{
	Edge e = {.cg = cg, .depth = depth};
	const EdgeSizes sizes = edge_sizes_find(cg->arena, op, s);
	SetSizes z = {.cg = cg, .sizes = &sizes};
	z.in_block = sizes_have_locals(&z);
	if (z.in_block)
		run_line(cg, e.depth++, "{");
	sizes_print_next(&z, op, e.depth);
	sizes_print_checks(&z, op, &op->succs[s], e.depth);
	if (!moves_print(&e, op, s))
		return false;
	for (int i = 0; i < sizes.n; i++)
		if (sizes.items[i].from != sizes.items[i].sym) {
			const Symbol *set = symbol_find(cg, sizes.items[i].sym);
			run_line(cg, e.depth, "%s = %s;", set->name, size_next(cg, set, sizes.items[i].from));
		}
	if (z.in_block)
		run_line(cg, --e.depth, "}");
	return true;
}
