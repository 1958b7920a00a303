// Layers that are equal but for their weights are printed once, as a loop over the rows of a table
// that says where the weights of each lie:
//
//   struct layer_row {
//       int64_t linear_0_w_0; /* in the weights */
//   };
//   static const struct layer_row layer_rows[] = {
//       /* from matmul_v2 'linear_0.tmp_0' on */
//       {0},
//       /* from matmul_v2 'linear_1.tmp_0' on */
//       {4160},
//   };
//
// What some layers have and others have not is an if on the row. Layers that differ in nothing have
// no table (a struct without members has size 0, and is no C), but a counter. The loop does what
// the calls one after the other did. Which are repeated: repeat_find.c; what they get:
// repeat_names.c. Called by blocks.c.
#include "codegen/c/repeat.h"
#include "codegen/nest/nest.h"

#include <inttypes.h>
#include <string.h>

enum { SHORT_ROW = 80 }; // characters of a row that is one line

static bool calls_make(Steps *s)
{
	for (int i = 0; i < s->n; i++) {
		const Op *op = s->ops[i];
		s->calls[i] = NULL;
		if (!s->cg->backend->emitter(op) || nest_is_statement(&s->cg->numbers, op))
			continue;
		if (!(s->calls[i] = compute_make(s->cg, op)))
			return run_no_code(s->cg, op, 0);
	}
	return true;
}

// ---- the table ----------------------------------------------------------------------------------

// A name at file scope that hides nothing in model_run.
static const char *name_of_both(Codegen *cg, const char *stem)
{
	const char *name;
	do
		name = names_unique(&cg->globals, stem);
	while (strcmp(names_unique(&cg->locals, name), name) != 0);
	return name;
}

static void table_begin(Codegen *cg, Table *t)
{
	*t = (Table){.type = name_of_both(cg, "layer_row"),
	             .rows = name_of_both(cg, "layer_rows"),
	             .row = names_unique(&cg->locals, "layer")};
	names_init(&t->members, cg->arena);
}

// What the call leaves out in front.
static const Dim *lead_bytes(const Codegen *cg, const KernelParam *p)
{
	const int64_t size = (int64_t)dtype_size(p->value->type->dtype);
	return dim_mul(cg->ctx, p->lead, dim_const(cg->ctx, size));
}

static const char *cell_text(Codegen *cg, const Column *c, int round)
{
	const KernelParam *param = c->params[round];
	if (!param)
		return column_is_pointer(cg, c) ? "NULL" : "0";
	const Place p = value_place(param->value);
	if (column_is_pointer(cg, c))
		return call_argument(cg, param);
	const char *at = p.offset ? offset_in_run(cg, place_stem(cg, p.root), p.offset) : "0";
	if (!param->lead)
		return at;
	const Dim *bytes = lead_bytes(cg, param);
	if (p.offset ? dim_is_const(p.offset) && dim_is_const(bytes) : dim_is_const(bytes))
		return arena_printf(cg->arena, "%" PRId64, (p.offset ? p.offset->value : 0) + bytes->value);
	if (!strcmp(at, "0"))
		return expression_unwrap(cg->arena, dim_in_run(cg, bytes));
	return arena_printf(cg->arena, "%s + %s", at, dim_in_run(cg, bytes));
}

static void type_print_columns(Codegen *cg, const Table *t, Text *out)
{
	text_printf(out, "struct %s {\n", t->type);
	for (int c = 0; c < t->n; c++) {
		const Column *column = &t->items[c];
		const Place p = value_place(column_first(column)->value);
		if (column_is_pointer(cg, column))
			text_line(out, 1, "%s%s *%s;", column_is_weights(column) ? "const " : "",
			          dtype_c_memory(p.root->type->dtype), column->name);
		else
			text_line(out, 1, "int64_t %s; /* in the %s */", column->name,
			          p.kind == PLACE_PARAM ? "weights" : "workspace");
	}
	text_str(out, "};\n\n");
}

// Whether its rows are constants, which stand at file scope.
static bool table_is_constant(const Table *t, int rounds)
{
	for (int c = 0; c < t->n; c++)
		for (int round = 0; round < rounds; round++) {
			const KernelParam *param = t->items[c].params[round];
			if (!param)
				continue;
			const Place p = value_place(param->value);
			if (p.moving || (p.offset && !dim_is_const(p.offset)) ||
			    (param->lead && !dim_is_const(param->lead)))
				return false;
		}
	return true;
}

// Weights have a line of their own where it would be long.
static void row_print(const RepeatLoop *l, int round, int depth, Text *out)
{
	Codegen *cg = l->s->cg;
	const Table *t = &l->table;
	Text places, weights;
	text_init(&places, cg->arena);
	text_init(&weights, cg->arena);
	for (int c = 0; c < t->n; c++) {
		Text *part = column_is_weights(&t->items[c]) ? &weights : &places;
		text_printf(part, "%s%s", part->len ? ", " : "", cell_text(cg, &t->items[c], round));
	}
	if (!places.len || !weights.len || places.len + weights.len <= SHORT_ROW) {
		text_line(out, depth, "{%s%s%s},", places.text ? places.text : "",
		          places.len && weights.len ? ", " : "", weights.text ? weights.text : "");
		return;
	}
	text_line(out, depth, "{%s,", places.text);
	text_line(out, depth + 2, "%s},", weights.text);
}

static void rows_print(const RepeatLoop *l, int depth, Text *out)
{
	Codegen *cg = l->s->cg;
	const Table *t = &l->table;
	text_line(out, depth, "%sconst struct %s %s[] = {", depth ? "" : "static ", t->type, t->rows);
	for (int round = 0; round < l->r->rounds; round++) {
		text_line(out, depth + 1, "/* from %s on */",
		          comment_text(cg->arena, op_title(cg, l->s->ops[round_begin(l->r, round)])));
		row_print(l, round, depth + 1, out);
	}
	text_line(out, depth, "};");
	if (!depth)
		text_char(out, '\n');
}

// ---- the loop -----------------------------------------------------------------------------------

// The locals that a step is the first to use.
static void locals_declare(RepeatLoop *l, int step)
{
	Codegen *cg = l->s->cg;
	for (int p = 0; p < step_params(l, step); p++) {
		RowLocal *local = l->arguments[step][p] ? row_local_find(l, l->arguments[step][p]) : NULL;
		if (!local || local->declared)
			continue;
		local->declared = true;
		const Column *column = &l->table.items[local->column];
		const Place place = value_place(column_first(column)->value);
		const bool param = place.kind == PLACE_PARAM;
		const char *type = arena_printf(cg->arena, "%s%s *", param ? "const " : "",
		                                dtype_c_memory(place.root->type->dtype));
		run_line(cg, 1, "%sconst %s = (%s)(%s + %s->%s);", type, local->name, type,
		         param ? "weights" : "workspace", l->table.row, column->name);
		cg->uses_weights |= param;
		cg->uses_workspace |= !param;
	}
}

static bool step_call_print(RepeatLoop *l, int step)
{
	Codegen *cg = l->s->cg;
	const int first = step_first(l->r, step);
	const KernelFunc *k = repeat_call(l, first, step);
	if (!k) // a statement, of one round
		return traced_op_print(cg, l->s->ops[repeat_at(l->r, first, step)], l->s->bound);
	const size_t from = cg->run.len;
	if (!compute_call(cg, k, l->arguments[step]))
		return false;
	for (int round = 0; cg->options->map && round < l->r->rounds; round++)
		if (repeat_call(l, round, step))
			map_note(cg, l->s->ops[repeat_at(l->r, round, step)], k->number, from);
	return true;
}

static const Op *step_op(const RepeatLoop *l, int step)
{
	return l->s->ops[repeat_at(l->r, step_first(l->r, step), step)];
}

// Whether this round is the one that a step is there for.
static const char *rounds_condition(const RepeatLoop *l, int step)
{
	Arena *a = l->s->cg->arena;
	const char *row = l->table.row, *rows = l->table.n ? l->table.rows : NULL;
	const int all = l->r->rounds;
	const bool all_but_one = all > 2 && l->r->count[step] == all - 1;
	Text t;
	text_init(&t, a);
	for (int round = 0; round < all; round++) {
		if ((repeat_at(l->r, round, step) == STEP_ABSENT) != all_but_one)
			continue;
		text_printf(&t, "%s%s %s ", t.len ? " || " : "", row, all_but_one ? "!=" : "==");
		if (rows)
			text_str(&t, rows);
		if (round || !rows)
			text_printf(&t, "%s%d", rows ? " + " : "", round);
	}
	return t.text;
}

// `said`: the comment of the first one stands already.
static bool steps_of_some_print(RepeatLoop *l, int from, int to, bool said)
{
	for (int step = from; step < to; step++) {
		if (!(said && step == from) && repeat_call(l, step_first(l->r, step), step))
			compute_comment(l->s->cg, step_op(l, step));
		if (!step_call_print(l, step))
			return false;
	}
	return true;
}

// Whether each round has one of the steps in [from, to).
static bool rounds_are_covered(const RepeatLoop *l, int from, int to)
{
	for (int round = 0; round < l->r->rounds; round++) {
		int step = from;
		while (step < to && repeat_at(l->r, round, step) == STEP_ABSENT)
			step++;
		if (step == to)
			return false;
	}
	return true;
}

// Whether a step is what nearly all rounds do: its comment then stands over the if, as that of what
// all do would.
static bool is_of_most(const RepeatLoop *l, int step)
{
	return l->r->count[step] > l->r->rounds / 2 && repeat_call(l, step_first(l->r, step), step);
}

// Steps that not all rounds have, from `from` on: an if for each group of a chain, the last one an
// else where all rounds have one. Returns where they end; -1 after a diagnostic.
static int steps_of_some(RepeatLoop *l, int from)
{
	Codegen *cg = l->s->cg;
	const int to = step_chain_end(l->r, from);
	const bool covered = rounds_are_covered(l, from, to), said = is_of_most(l, from);
	if (said)
		compute_comment(cg, step_op(l, from));
	else
		text_char(&cg->run, '\n');
	for (int step = from; step < to; step++)
		locals_declare(l, step);
	for (int group = from, end; group < to; group = end) {
		end = step_group_end(l->r, group);
		cg->depth -= group > from;
		if (end == to && covered)
			run_open(cg, "} else");
		else
			run_open(cg, arena_printf(cg->arena, "%sif (%s)", group > from ? "} else " : "",
			                          rounds_condition(l, group)));
		if (!steps_of_some_print(l, group, end, said && group == from))
			return -1;
	}
	run_close(cg);
	return to;
}

static bool steps_loop_print(RepeatLoop *l)
{
	int step = 0;
	while (step >= 0 && step < l->r->nstep) {
		if (l->r->count[step] < l->r->rounds) {
			step = steps_of_some(l, step);
			continue;
		}
		compute_comment(l->s->cg, step_op(l, step));
		locals_declare(l, step);
		if (!step_call_print(l, step++))
			return false;
	}
	return step >= 0;
}

// Whether a round computes a tensor.
static bool round_computes(const RepeatLoop *l, int round, const Value *root)
{
	for (int step = 0; step < l->r->nstep; step++) {
		const KernelFunc *k = repeat_call(l, round, step);
		for (int i = 0; k && i < k->op->nresult; i++)
			if (&k->op->results[i] == root)
				return true;
	}
	return false;
}

// Names that stand for what the round before computed at the same place, in all rounds but the
// first.
static void carried_comment(RepeatLoop *l)
{
	Codegen *cg = l->s->cg;
	Text t;
	PointerMap seen;
	text_init(&t, cg->arena);
	pointer_map_init(&seen, cg->arena);
	for (int step = 0; step < l->r->nstep; step++)
		for (int p = 0; p < step_params(l, step); p++) {
			const KernelParam *first = repeat_param(l, 0, step, p),
							  *next = repeat_param(l, 1, step, p);
			if (!first || !next || !first->value || first->lead)
				continue;
			const Value *was = value_place(first->value).root, *is = value_place(next->value).root;
			if (was == is || pointer_map_get(&seen, was) || !round_computes(l, 0, is) ||
			    round_computes(l, 0, was))
				continue;
			pointer_map_set(&seen, was, is);
			const char *name = pointer_map_get(&l->named[0], is);
			name = name ? name : value_stem(cg, is);
			const char *before = pointer_map_get(&l->named[0], was);
			if (!strcmp(before, name))
				continue;
			text_printf(&t, "%s%s is %s", t.len ? ", " : "", before, name);
		}
	if (t.len)
		run_comment(cg, "from the second round on, %s of the round before", t.text);
}

// Opens the loop, over the rows of the table where it has columns; whether that opened a block
// around it, too.
static bool rounds_open(const RepeatLoop *l)
{
	Codegen *cg = l->s->cg;
	const Table *t = &l->table;
	const int rounds = l->r->rounds;
	if (!t->n) {
		run_open(cg, arena_printf(cg->arena, "for (int %s = 0; %s < %d; %s++)", t->row, t->row,
		                          rounds, t->row));
		return false;
	}
	type_print_columns(cg, t, &cg->tables);
	const bool constant = table_is_constant(t, rounds);
	if (constant) {
		rows_print(l, 0, &cg->tables);
	} else {
		run_open(cg, ""); // no goto goes past a declaration in C++
		rows_print(l, cg->depth + 1, &cg->run);
	}
	run_open(cg, arena_printf(cg->arena, "for (const struct %s *%s = %s; %s < %s + %d; %s++)",
	                          t->type, t->row, t->rows, t->row, t->rows, rounds, t->row));
	return !constant;
}

static bool repeat_print(Steps *s, const Repeat *r)
{
	Codegen *cg = s->cg;
	RepeatLoop l = {.s = s, .r = r};
	table_begin(cg, &l.table);
	const size_t at = cg->run.len;
	if (!repeat_names(&l))
		return false;
	const char *declared = arena_printf(cg->arena, "%s", cg->run.len > at ? cg->run.text + at : "");
	cg->run.len = at;
	if (l.table.n)
		run_comment(cg, "%d times the same calls, with what the rows of %s say", r->rounds,
		            l.table.rows);
	else
		run_comment(cg, "%d times the same calls", r->rounds);
	text_str(&cg->run, declared);
	const bool block = rounds_open(&l);
	carried_comment(&l);
	cg->in_rounds = true;
	if (!steps_loop_print(&l))
		return false;
	cg->in_rounds = false;
	run_close(cg);
	if (block)
		run_close(cg);
	return true;
}

static bool range_print(Steps *s, int from, int to)
{
	const Repeat r = repeat_find(s, from, to);
	if (r.rounds)
		return range_print(s, from, r.first) && repeat_print(s, &r) && range_print(s, r.end, to);
	for (int i = from; i < to; i++) {
		const int errors = diag_errors(s->cg->ctx->diag);
		if (!traced_op_print(s->cg, s->ops[i], s->bound))
			return run_no_code(s->cg, s->ops[i], errors);
	}
	return true;
}

bool steps_print(Codegen *cg, const Op *const *ops, int n, const Op **bound)
{
	Steps s = {cg,
	           ops,
	           NEW_ARRAY(cg->arena, (size_t)n + 1, KernelFunc *),
	           NEW_ARRAY(cg->arena, (size_t)n + 1, int),
	           n,
	           bound};
	if (!cg->options->trace && !cg->options->assert_finite && !calls_make(&s))
		return false;
	steps_classify(&s);
	return range_print(&s, 0, n);
}
