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
// What some layers have and others have not is an if on the row. The loop does what the calls one
// after the other did. Which are repeated: repeat_find.c. Called by blocks.c.
#include "codegen/c/repeat.h"
#include "codegen/nest/nest.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <string.h>

// What differs between rounds: where an argument lies, or the array that it is.
typedef struct Column {
	const KernelParam **params; // by round; NULL: the round has no such argument
	const char *name;           // of the member
} Column;

typedef struct Table {
	Column *items;
	int n, cap;
	Names members;
	const char *type, *rows, *row; // C names
} Table;

// A local that a row of the table gives.
typedef struct RowLocal {
	const char *name;
	int column;
	bool declared;
} RowLocal;

// A loop being printed.
typedef struct RepeatLoop {
	Steps *s;
	const Repeat *r;
	Table table;
	RowLocal *locals;
	int nlocal, clocal;
	PointerMap *named;       // by round: tensor -> its name
	int *partner;            // by step: the one in whose place it stands; -1: none
	const char ***arguments; // by step and parameter: what the call gets; NULL: the same as always
} RepeatLoop;

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

// ---- steps --------------------------------------------------------------------------------------

// The call of a step in a round; NULL: there is none.
static const KernelFunc *call_of(const RepeatLoop *l, int round, int step)
{
	const int at = repeat_at(l->r, round, step);
	return at == STEP_ABSENT ? NULL : l->s->calls[at];
}

static int step_first(const Repeat *r, int step)
{
	int round = 0;
	while (repeat_at(r, round, step) == STEP_ABSENT)
		round++;
	return round;
}

static int step_count(const Repeat *r, int step)
{
	int n = 0;
	for (int round = 0; round < r->rounds; round++)
		n += repeat_at(r, round, step) != STEP_ABSENT;
	return n;
}

// Whether two steps are there in the same rounds; or, `other`, one where the other is not.
static bool steps_alternate(const Repeat *r, int a, int b, bool other)
{
	for (int round = 0; round < r->rounds; round++)
		if ((repeat_at(r, round, a) != STEP_ABSENT) ==
		    ((repeat_at(r, round, b) != STEP_ABSENT) == other))
			return false;
	return true;
}

// Steps from `step` on that are there in the same rounds: where they end.
static int group_end(const Repeat *r, int step)
{
	while (step + 1 < r->nstep && steps_alternate(r, step, step + 1, false))
		step++;
	return step + 1;
}

static const KernelParam *param_of(const RepeatLoop *l, int round, int step, int p)
{
	const KernelFunc *k = call_of(l, round, step);
	return k ? &k->params[p] : NULL;
}

static int step_params(const RepeatLoop *l, int step)
{
	const KernelFunc *k = call_of(l, step_first(l->r, step), step);
	return k ? k->nparam : 0;
}

// Whether the calls of two rounds may get one argument of the loop.
static bool arguments_join(const Codegen *cg, const KernelParam *a, const KernelParam *b)
{
	if (!a->value || !b->value || a->lead || b->lead)
		return false;
	const Place x = value_place(a->value), y = value_place(b->value);
	return x.kind == y.kind && x.root->type->dtype == y.root->type->dtype &&
	       (arguments_match(cg, a, b) || (place_is_listed(cg, &x) && place_is_listed(cg, &y)));
}

// The same, and in rounds that have another step in place of this one, what that gets: what an
// operator more changes is the function that a round calls.
static const KernelParam *param_joint(const RepeatLoop *l, int round, int step, int p)
{
	const KernelParam *own = param_of(l, round, step, p);
	const int partner = own ? -1 : l->partner[step];
	if (partner < 0 || p >= step_params(l, partner))
		return own;
	const KernelParam *first = param_of(l, step_first(l->r, step), step, p),
					  *param = param_of(l, round, partner, p);
	return param && arguments_join(l->s->cg, first, param) ? param : NULL;
}

// In the first round that has it: names come from there.
static const KernelParam *param_first(const RepeatLoop *l, int step, int p)
{
	int round = 0;
	while (!param_joint(l, round, step, p))
		round++;
	return param_joint(l, round, step, p);
}

static bool param_differs(const RepeatLoop *l, int step, int p)
{
	const KernelParam *first = NULL;
	for (int round = 0; round < l->r->rounds; round++) {
		const KernelParam *param = param_joint(l, round, step, p);
		if (first && param && !arguments_match(l->s->cg, first, param))
			return true;
		first = first ? first : param;
	}
	return false;
}

// ---- the table ----------------------------------------------------------------------------------

static const KernelParam *column_first(const Column *c)
{
	int round = 0;
	while (!c->params[round])
		round++;
	return c->params[round];
}

// Whether a column may say where the argument of a step lies, too: the same in all rounds that have
// both, and there is such a round.
static bool column_fits(const RepeatLoop *l, const Column *c, int step, int p)
{
	bool both = false;
	for (int round = 0; round < l->r->rounds; round++) {
		const KernelParam *param = param_joint(l, round, step, p);
		if (!param || !c->params[round])
			continue;
		if (!arguments_match(l->s->cg, c->params[round], param))
			return false;
		both = true;
	}
	return both;
}

// The column of an argument, which others that lie where it does share.
static int column_of(RepeatLoop *l, int step, int p)
{
	Codegen *cg = l->s->cg;
	Table *t = &l->table;
	int c = 0;
	while (c < t->n && !column_fits(l, &t->items[c], step, p))
		c++;
	if (c == t->n) {
		VEC_ROOM(cg->arena, t->items, t->n, t->cap);
		t->items[t->n++] = (Column){NEW_ARRAY(cg->arena, (size_t)l->r->rounds, const KernelParam *),
		                            NULL};
	}
	Column *column = &t->items[c];
	for (int round = 0; round < l->r->rounds; round++)
		if (!column->params[round])
			column->params[round] = param_joint(l, round, step, p);
	if (!column->name)
		column->name = names_unique(&t->members,
		                            value_stem(cg, value_place(column_first(column)->value).root));
	return c;
}

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

// Whether a column holds arrays, not offsets.
static bool column_is_array(const Codegen *cg, const Column *c)
{
	return value_place(column_first(c)->value).kind == PLACE_PARAM && cg->inline_weights;
}

static const char *cell_text(Codegen *cg, const Column *c, int round)
{
	const KernelParam *param = c->params[round];
	if (!param)
		return column_is_array(cg, c) ? "NULL" : "0";
	const Place p = value_place(param->value);
	if (column_is_array(cg, c))
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
		if (column_is_array(cg, column))
			text_line(out, 1, "const %s *%s;", dtype_c_memory(p.root->type->dtype), column->name);
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
			if ((p.offset && !dim_is_const(p.offset)) ||
			    (param->lead && !dim_is_const(param->lead)))
				return false;
		}
	return true;
}

// The operation that a round begins with.
static const Op *round_first(const RepeatLoop *l, int round)
{
	int step = 0;
	while (repeat_at(l->r, round, step) == STEP_ABSENT)
		step++;
	return l->s->ops[repeat_at(l->r, round, step)];
}

static void rows_print(const RepeatLoop *l, int depth, Text *out)
{
	Codegen *cg = l->s->cg;
	const Table *t = &l->table;
	text_line(out, depth, "%sconst struct %s %s[] = {", depth ? "" : "static ", t->type, t->rows);
	for (int round = 0; round < l->r->rounds; round++) {
		Text row;
		text_init(&row, cg->arena);
		for (int c = 0; c < t->n; c++)
			text_printf(&row, "%s%s", c ? ", " : "", cell_text(cg, &t->items[c], round));
		text_line(out, depth + 1, "/* from %s on */",
		          comment_text(cg->arena, op_title(cg, round_first(l, round))));
		text_line(out, depth + 1, "{%s},", row.text);
	}
	text_line(out, depth, "};");
	if (!depth)
		text_char(out, '\n');
}

// ---- names --------------------------------------------------------------------------------------

// The name that a tensor has in a round already, if it has the same in all rounds of the step.
static const char *name_known(const RepeatLoop *l, int step, int p)
{
	const char *name = NULL;
	for (int round = 0; round < l->r->rounds; round++) {
		const KernelParam *param = param_joint(l, round, step, p);
		if (!param)
			continue;
		const char *here = param->lead
		                       ? NULL
		                       : pointer_map_get(&l->named[round], value_place(param->value).root);
		if (!here || (name && strcmp(name, here) != 0))
			return NULL;
		name = here;
	}
	return name;
}

static void name_note(RepeatLoop *l, int step, int p, const char *name)
{
	for (int round = 0; round < l->r->rounds; round++) {
		const KernelParam *param = param_joint(l, round, step, p);
		if (param && !param->lead)
			pointer_map_set(&l->named[round], value_place(param->value).root, name);
	}
}

static RowLocal *local_find(const RepeatLoop *l, const char *name)
{
	for (int i = 0; i < l->nlocal; i++)
		if (l->locals[i].name == name)
			return &l->locals[i];
	return NULL;
}

static const char *name_of_column(RepeatLoop *l, int step, int p)
{
	Codegen *cg = l->s->cg;
	const KernelParam *first = param_first(l, step, p);
	const int c = column_of(l, step, p);
	const Column *column = &l->table.items[c];
	const char *name = column_is_array(cg, column)
	                       ? arena_printf(cg->arena, "%s->%s", l->table.row, column->name)
	                       : names_unique(&cg->locals,
	                                      value_stem(cg, value_place(first->value).root));
	VEC_ROOM(cg->arena, l->locals, l->nlocal, l->clocal);
	l->locals[l->nlocal++] = (RowLocal){name, c, column_is_array(cg, column)};
	return name;
}

// What the call of a step gets for a tensor: false after a diagnostic.
static bool argument_name(RepeatLoop *l, int step, int p)
{
	const KernelParam *first = param_first(l, step, p);
	const char **name = &l->arguments[step][p];
	if (!first->value || (*name = name_known(l, step, p)))
		return true;
	if (param_differs(l, step, p))
		*name = name_of_column(l, step, p);
	const char *known = *name ? *name : tensor_pointer(l->s->cg, first->value);
	if (known)
		name_note(l, step, p, known);
	return known != NULL;
}

// Columns in the order in which the loop asks for them.
static void columns_order(RepeatLoop *l)
{
	Arena *arena = l->s->cg->arena;
	Table *t = &l->table;
	Column *ordered = NEW_ARRAY(arena, (size_t)t->n + 1, Column);
	int *to = NEW_ARRAY(arena, (size_t)t->n + 1, int),
		n = 0; // one more than the new index; 0: none
	for (int step = 0; step < l->r->nstep; step++)
		for (int p = 0; p < step_params(l, step); p++) {
			const char *name = l->arguments[step][p];
			const RowLocal *local = name ? local_find(l, name) : NULL;
			if (!local || to[local->column])
				continue;
			ordered[n++] = t->items[local->column];
			to[local->column] = n;
		}
	for (int i = 0; i < l->nlocal; i++)
		l->locals[i].column = to[l->locals[i].column] - 1;
	t->items = ordered;
	t->n = n;
}

// Of steps [a, b) and of those from b on, which the rounds without the first have: pairs of calls
// of one kind of kernel, in their order.
static void partners_find(RepeatLoop *l, int a, int b)
{
	const int middle = b, end = group_end(l->r, b);
	for (; a < middle; a++) {
		const KernelFunc *k = call_of(l, step_first(l->r, a), a), *other;
		int at = b;
		while (k && at < end &&
		       (!(other = call_of(l, step_first(l->r, at), at)) || other->op->code != k->op->code))
			at++;
		if (!k || at == end)
			continue;
		l->partner[a] = at;
		l->partner[at] = a;
		b = at + 1;
	}
}

static void steps_pair(RepeatLoop *l)
{
	l->partner = NEW_ARRAY(l->s->cg->arena, (size_t)l->r->nstep, int);
	for (int step = 0; step < l->r->nstep; step++)
		l->partner[step] = -1;
	for (int step = 0, end; step < l->r->nstep; step = end) {
		end = group_end(l->r, step);
		if (end < l->r->nstep && l->partner[step] < 0 && steps_alternate(l->r, step, end, true))
			partners_find(l, step, end);
	}
}

// In how many rounds there is a step, or another in its place.
static int step_joint_count(const RepeatLoop *l, int step)
{
	const int partner = l->partner[step];
	return step_count(l->r, step) + (partner < 0 ? 0 : step_count(l->r, partner));
}

// All names, before the loop: what its rounds share may be read behind it. What most rounds have
// gives the names, since it reads what steps of single rounds compute.
static bool arguments_name(RepeatLoop *l)
{
	Arena *arena = l->s->cg->arena;
	l->named = NEW_ARRAY(arena, (size_t)l->r->rounds, PointerMap);
	for (int round = 0; round < l->r->rounds; round++)
		pointer_map_init(&l->named[round], arena);
	l->arguments = NEW_ARRAY(arena, (size_t)l->r->nstep, const char **);
	steps_pair(l);
	for (int count = l->r->rounds; count > 0; count--)
		for (int step = 0; step < l->r->nstep; step++) {
			const int n = step_params(l, step);
			if (step_joint_count(l, step) != count)
				continue;
			l->arguments[step] = NEW_ARRAY(arena, (size_t)n + 1, const char *);
			for (int p = 0; p < n; p++)
				if (!argument_name(l, step, p))
					return false;
		}
	columns_order(l);
	return true;
}

// ---- the loop -----------------------------------------------------------------------------------

// The locals that a step is the first to use.
static void locals_declare(RepeatLoop *l, int step)
{
	Codegen *cg = l->s->cg;
	for (int p = 0; p < step_params(l, step); p++) {
		RowLocal *local = l->arguments[step][p] ? local_find(l, l->arguments[step][p]) : NULL;
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
	const KernelFunc *k = call_of(l, first, step);
	if (!k) // a statement, of one round
		return traced_op_print(cg, l->s->ops[repeat_at(l->r, first, step)], l->s->bound);
	const size_t from = cg->run.len;
	if (!compute_call(cg, k, l->arguments[step]))
		return false;
	for (int round = 0; cg->options->map && round < l->r->rounds; round++)
		if (call_of(l, round, step))
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
	const char *row = l->table.row, *rows = l->table.rows;
	const int all = l->r->rounds;
	const bool all_but_one = all > 2 && step_count(l->r, step) == all - 1;
	Text t;
	text_init(&t, a);
	for (int round = 0; round < all; round++) {
		if ((repeat_at(l->r, round, step) == STEP_ABSENT) != all_but_one)
			continue;
		text_printf(&t, "%s%s %s %s", t.len ? " || " : "", row, all_but_one ? "!=" : "==", rows);
		if (round)
			text_printf(&t, " + %d", round);
	}
	return t.text;
}

static bool steps_of_some_print(RepeatLoop *l, int from, int to)
{
	for (int step = from; step < to; step++) {
		if (call_of(l, step_first(l->r, step), step))
			compute_comment(l->s->cg, step_op(l, step));
		if (!step_call_print(l, step))
			return false;
	}
	return true;
}

// Steps that not all rounds have, from `from` on: an if, and its else. Returns where they end; -1
// after a diagnostic.
static int steps_of_some(RepeatLoop *l, int from)
{
	Codegen *cg = l->s->cg;
	const int middle = group_end(l->r, from);
	const bool both = middle < l->r->nstep && steps_alternate(l->r, from, middle, true);
	const int to = both ? group_end(l->r, middle) : middle;
	text_char(&cg->run, '\n');
	for (int step = from; step < to; step++)
		locals_declare(l, step);
	run_open(cg, arena_printf(cg->arena, "if (%s)", rounds_condition(l, from)));
	if (!steps_of_some_print(l, from, middle))
		return -1;
	if (both) {
		cg->depth--;
		run_open(cg, "} else");
		if (!steps_of_some_print(l, middle, to))
			return -1;
	}
	run_close(cg);
	return to;
}

static bool steps_loop_print(RepeatLoop *l)
{
	int step = 0;
	while (step >= 0 && step < l->r->nstep) {
		if (step_count(l->r, step) < l->r->rounds) {
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
		const KernelFunc *k = call_of(l, round, step);
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
			const KernelParam *first = param_of(l, 0, step, p), *next = param_of(l, 1, step, p);
			if (!first || !next || !first->value || first->lead)
				continue;
			const Value *was = value_place(first->value).root, *is = value_place(next->value).root;
			if (was == is || pointer_map_get(&seen, was) || !round_computes(l, 0, is) ||
			    round_computes(l, 0, was))
				continue;
			pointer_map_set(&seen, was, is);
			const char *name = pointer_map_get(&l->named[0], is);
			text_printf(&t, "%s%s is %s", t.len ? ", " : "",
			            (const char *)pointer_map_get(&l->named[0], was),
			            name ? name : value_stem(cg, is));
		}
	if (t.len)
		run_comment(cg, "from the second round on, %s of the round before", t.text);
}

static bool repeat_print(Steps *s, const Repeat *r)
{
	Codegen *cg = s->cg;
	RepeatLoop l = {.s = s, .r = r};
	Table *t = &l.table;
	table_begin(cg, t);
	run_comment(cg, "%d times the same calls, with what the rows of %s say", r->rounds, t->rows);
	if (!arguments_name(&l))
		return false;
	type_print_columns(cg, t, &cg->tables);
	const bool constant = table_is_constant(t, r->rounds);
	if (constant) {
		rows_print(&l, 0, &cg->tables);
	} else {
		run_open(cg, ""); // no goto goes past a declaration in C++
		rows_print(&l, cg->depth + 1, &cg->run);
	}
	run_open(cg, arena_printf(cg->arena, "for (const struct %s *%s = %s; %s < %s + %d; %s++)",
	                          t->type, t->row, t->rows, t->row, t->rows, r->rounds, t->row));
	carried_comment(&l);
	if (!steps_loop_print(&l))
		return false;
	run_close(cg);
	if (!constant)
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
