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
// Which operations are repeated follows from the calls alone: in each round the same functions are
// called in the same order, with the same arguments, but for where weights and buffers lie. So the
// loop does what the calls one after the other did. Called by blocks.c.
#include "codegen/c/c.h"
#include "codegen/nest/nest.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <string.h>

enum {
	MAX_PERIOD = 512, // calls in a round
	MIN_PERIOD = 4,   // fewer read as well one after the other
	MIN_SAVED = 8     // calls that the loop saves
};

// Calls in a row. `calls[i]` is NULL where something else happens, or where a call may end the run:
// which operation did it must be told.
typedef struct Steps {
	Codegen *cg;
	const Op *const *ops;
	KernelFunc **calls;
	int n;
	const Op **bound;
} Steps;

typedef struct Repeat {
	int first, period, rounds;
} Repeat;

// What differs between rounds: where an argument lies, or the array that it is.
typedef struct Column {
	const KernelParam **params; // by round
	const char *name;           // of the member
} Column;

typedef struct Table {
	Column *items;
	int n, cap;
	Names members;
	const char *type, *rows, *row; // C names
} Table;

// ---- which calls are equal ----------------------------------------------------------------------

// Whether a table may say where a tensor lies.
static bool place_is_listed(const Codegen *cg, const Place *p)
{
	if (p->kind == PLACE_PARAM)
		return cg->inline_weights || !p->offset || dim_is_const(p->offset);
	return p->kind == PLACE_WORKSPACE && !p->moving && p->offset && !number_local(cg, p);
}

static bool places_match(const Codegen *cg, const Place *a, const Place *b)
{
	if (a->root == b->root)
		return true;
	if (a->kind != b->kind || (a->kind == PLACE_PARAM && cg->inline_weights) ||
	    number_local(cg, a) || number_local(cg, b))
		return false;
	return a->kind != PLACE_NONE && a->col == b->col && a->moving == b->moving &&
	       a->offset == b->offset;
}

// Whether two parameters get the same argument; or, `listed`, arguments that a table may give.
static bool params_match(const Codegen *cg, const KernelParam *a, const KernelParam *b, bool listed)
{
	if (a->given || b->given)
		return false;
	if (!a->value || !b->value)
		return a->value == b->value && a->sym == b->sym && a->bound == b->bound;
	const Place x = value_place(a->value), y = value_place(b->value);
	return (a->lead == b->lead && places_match(cg, &x, &y)) ||
	       (listed && x.kind == y.kind && place_is_listed(cg, &x) && place_is_listed(cg, &y));
}

static bool calls_match(const Codegen *cg, const KernelFunc *a, const KernelFunc *b)
{
	if (!a || !b || a->number != b->number || a->nparam != b->nparam || a->units != b->units ||
	    op_attr(a->op, "parallel") != op_attr(b->op, "parallel"))
		return false;
	for (int i = 0; i < a->nparam; i++)
		if (!params_match(cg, &a->params[i], &b->params[i], true))
			return false;
	return true;
}

static bool calls_make(Steps *s)
{
	for (int i = 0; i < s->n; i++) {
		const Op *op = s->ops[i];
		s->calls[i] = NULL;
		if (!s->cg->backend->emitter(op) || nest_is_statement(&s->cg->numbers, op))
			continue;
		KernelFunc *k = compute_make(s->cg, op);
		if (!k)
			return run_no_code(s->cg, op, 0);
		s->calls[i] = k->status ? NULL : k;
	}
	return true;
}

// ---- which calls are repeated -------------------------------------------------------------------

// Tensors that a round takes from before it, weights apart: few where layers begin.
static int round_reads(const Steps *s, int first, int period)
{
	PointerMap seen;
	int n = 0;
	pointer_map_init(&seen, s->cg->arena);
	for (int i = first; i < first + period; i++)
		for (int p = 0; p < s->calls[i]->nparam; p++) {
			const KernelParam *param = &s->calls[i]->params[p];
			if (!param->value)
				continue;
			const Place place = value_place(param->value);
			if (place.kind == PLACE_PARAM || pointer_map_get(&seen, place.root))
				continue;
			pointer_map_set(&seen, place.root, param);
			n += !param->result;
		}
	return n;
}

// `length` calls from `first` on are what the calls `period` later are: the rounds in them, begun
// where a layer begins.
static Repeat rounds_of(const Steps *s, int first, int length, int period)
{
	Repeat best = {first, period, length / period + 1};
	int least = round_reads(s, first, period);
	for (int shift = 1; shift <= length % period; shift++) {
		const int reads = round_reads(s, first + shift, period);
		if (reads < least) {
			least = reads;
			best.first = first + shift;
		}
	}
	return best;
}

static int saved(const Repeat *r)
{
	return (r->rounds - 1) * r->period;
}

// The repetition in [from, to) that saves most; of those that save as much, the one with the
// shortest round. No rounds: there is none.
static Repeat repeat_find(const Steps *s, int from, int to)
{
	Repeat best = {0};
	for (int period = MIN_PERIOD; period <= MAX_PERIOD && from + 2 * period <= to; period++) {
		int length = 0;
		for (int i = from; i + period <= to; i++) {
			const bool same = i + period < to &&
			                  calls_match(s->cg, s->calls[i], s->calls[i + period]);
			length = same ? length + 1 : length;
			const Repeat found = {0, period, length / period + 1};
			if (!same && saved(&found) >= MIN_SAVED && saved(&found) > saved(&best))
				best = rounds_of(s, i - length, length, period);
			length = same ? length : 0;
		}
	}
	return best;
}

// ---- the table ----------------------------------------------------------------------------------

static const KernelParam *param_in_round(const Steps *s, const Repeat *r, int round, int call,
                                         int p)
{
	return &s->calls[r->first + round * r->period + call]->params[p];
}

static bool param_differs(const Steps *s, const Repeat *r, int call, int p)
{
	const KernelParam *first = param_in_round(s, r, 0, call, p);
	for (int round = 1; round < r->rounds; round++)
		if (!params_match(s->cg, first, param_in_round(s, r, round, call, p), false))
			return true;
	return false;
}

// The column of an argument, which others that lie where it does share.
static const Column *column_of(const Steps *s, const Repeat *r, Table *t, int call, int p)
{
	for (int c = 0; c < t->n; c++) {
		bool same = true;
		for (int round = 0; same && round < r->rounds; round++) {
			same = params_match(s->cg, t->items[c].params[round],
			                    param_in_round(s, r, round, call, p), false);
		}
		if (same)
			return &t->items[c];
	}
	Column new = {NEW_ARRAY(s->cg->arena, (size_t)r->rounds, const KernelParam *), NULL};
	for (int round = 0; round < r->rounds; round++)
		new.params[round] = param_in_round(s, r, round, call, p);
	new.name = names_unique(&t->members, value_stem(s->cg, value_place(new.params[0]->value).root));
	VEC_ROOM(s->cg->arena, t->items, t->n, t->cap);
	t->items[t->n] = new;
	return &t->items[t->n++];
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

static const char *cell_text(Codegen *cg, const KernelParam *param)
{
	const Place p = value_place(param->value);
	if (p.kind == PLACE_PARAM && cg->inline_weights)
		return call_argument(cg, param);
	const char *at = p.offset ? offset_in_run(cg, value_stem(cg, p.root), p.offset) : "0";
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
		const Place p = value_place(t->items[c].params[0]->value);
		if (p.kind == PLACE_PARAM && cg->inline_weights)
			text_line(out, 1, "const %s *%s;", dtype_c_memory(p.root->type->dtype),
			          t->items[c].name);
		else
			text_line(out, 1, "int64_t %s; /* in the %s */", t->items[c].name,
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
			const Place p = value_place(param->value);
			if ((p.offset && !dim_is_const(p.offset)) ||
			    (param->lead && !dim_is_const(param->lead)))
				return false;
		}
	return true;
}

static void rows_print(const Steps *s, const Repeat *r, const Table *t, int depth, Text *out)
{
	Codegen *cg = s->cg;
	text_line(out, depth, "%sconst struct %s %s[] = {", depth ? "" : "static ", t->type, t->rows);
	for (int round = 0; round < r->rounds; round++) {
		const Op *op = s->ops[r->first + round * r->period];
		Text row;
		text_init(&row, cg->arena);
		for (int c = 0; c < t->n; c++)
			text_printf(&row, "%s%s", c ? ", " : "", cell_text(cg, t->items[c].params[round]));
		text_line(out, depth + 1, "/* from %s on */", comment_text(cg->arena, op_title(cg, op)));
		text_line(out, depth + 1, "{%s},", row.text);
	}
	text_line(out, depth, "};");
	if (!depth)
		text_char(out, '\n');
}

// ---- the loop -----------------------------------------------------------------------------------

// What all rounds share has its name in front of the loop, so that it may be read behind it.
static bool shared_declare(const Steps *s, const Repeat *r)
{
	for (int call = 0; call < r->period; call++)
		for (int p = 0; p < s->calls[r->first + call]->nparam; p++) {
			const KernelParam *param = param_in_round(s, r, 0, call, p);
			if (param->value && !param_differs(s, r, call, p) &&
			    !tensor_pointer(s->cg, param->value))
				return false;
		}
	return true;
}

// The argument that a row of the table gives, declared under its name at its first use.
static const char *column_use(Steps *s, const Table *t, const Column *column, PointerMap *declared)
{
	Codegen *cg = s->cg;
	const Place p = value_place(column->params[0]->value);
	const char *name = pointer_map_get(declared, column->params), *type,
			   *member = arena_printf(cg->arena, "%s->%s", t->row, column->name);
	if (name)
		return name;
	if (p.kind == PLACE_PARAM && cg->inline_weights)
		return member;
	name = names_unique(&cg->locals, column->name);
	type = arena_printf(cg->arena, "%s%s *", p.kind == PLACE_PARAM ? "const " : "",
	                    dtype_c_memory(p.root->type->dtype));
	run_line(cg, 1, "%sconst %s = (%s)(%s + %s);", type, name, type,
	         p.kind == PLACE_PARAM ? "weights" : "workspace", member);
	cg->uses_weights |= p.kind == PLACE_PARAM;
	cg->uses_workspace |= p.kind == PLACE_WORKSPACE;
	pointer_map_set(declared, column->params, name);
	return name;
}

static bool repeated_call_print(Steps *s, const Repeat *r, Table *t, int call, PointerMap *declared)
{
	Codegen *cg = s->cg;
	const KernelFunc *k = s->calls[r->first + call];
	const char **given = NEW_ARRAY(cg->arena, (size_t)k->nparam + 1, const char *);
	const size_t from = cg->run.len;
	compute_comment(cg, k->op);
	for (int p = 0; p < k->nparam; p++)
		if (param_differs(s, r, call, p))
			given[p] = column_use(s, t, column_of(s, r, t, call, p), declared);
	if (!compute_call(cg, k, given))
		return false;
	for (int round = 0; cg->options->map && round < r->rounds; round++)
		map_note(cg, s->ops[r->first + round * r->period + call], k->number, from);
	return true;
}

static void columns_collect(const Steps *s, const Repeat *r, Table *t)
{
	for (int call = 0; call < r->period; call++)
		for (int p = 0; p < s->calls[r->first + call]->nparam; p++)
			if (param_differs(s, r, call, p))
				column_of(s, r, t, call, p);
}

// Whether a round computes a tensor.
static bool round_computes(const Steps *s, const Repeat *r, int round, const Value *root)
{
	for (int call = 0; call < r->period; call++) {
		const Op *op = s->ops[r->first + round * r->period + call];
		for (int i = 0; i < op->nresult; i++)
			if (&op->results[i] == root)
				return true;
	}
	return false;
}

// Names that stand for what the round before computed at the same place, in all rounds but the
// first.
static void carried_comment(const Steps *s, const Repeat *r)
{
	Codegen *cg = s->cg;
	Text t;
	PointerMap seen;
	text_init(&t, cg->arena);
	pointer_map_init(&seen, cg->arena);
	for (int call = 0; call < r->period; call++)
		for (int p = 0; p < s->calls[r->first + call]->nparam; p++) {
			const KernelParam *first = param_in_round(s, r, 0, call, p);
			if (!first->value || param_differs(s, r, call, p))
				continue;
			const Value *was = value_place(first->value).root;
			const Value *is = value_place(param_in_round(s, r, 1, call, p)->value).root;
			if (was == is || pointer_map_get(&seen, was) || !round_computes(s, r, 0, is) ||
			    round_computes(s, r, 0, was))
				continue;
			pointer_map_set(&seen, was, is);
			const char *name = pointer_map_get(&cg->pointers, is);
			text_printf(&t, "%s%s is %s", t.len ? ", " : "", tensor_pointer(cg, was),
			            name ? name : value_stem(cg, is));
		}
	if (t.len)
		run_comment(cg, "from the second round on, %s of the round before", t.text);
}

static bool repeat_print(Steps *s, const Repeat *r)
{
	Codegen *cg = s->cg;
	Table t;
	PointerMap declared;
	pointer_map_init(&declared, cg->arena);
	table_begin(cg, &t);
	columns_collect(s, r, &t);
	type_print_columns(cg, &t, &cg->tables);
	run_comment(cg, "%d times the same calls, with what the rows of %s say", r->rounds, t.rows);
	if (!shared_declare(s, r))
		return false;
	const bool constant = table_is_constant(&t, r->rounds);
	if (constant) {
		rows_print(s, r, &t, 0, &cg->tables);
	} else {
		run_open(cg, ""); // no goto goes past a declaration in C++
		rows_print(s, r, &t, cg->depth + 1, &cg->run);
	}
	run_open(cg, arena_printf(cg->arena, "for (const struct %s *%s = %s; %s < %s + %d; %s++)",
	                          t.type, t.row, t.rows, t.row, t.rows, r->rounds, t.row));
	carried_comment(s, r);
	for (int call = 0; call < r->period; call++)
		if (!repeated_call_print(s, r, &t, call, &declared))
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
		return range_print(s, from, r.first) && repeat_print(s, &r) &&
		       range_print(s, r.first + r.rounds * r.period, to);
	for (int i = from; i < to; i++) {
		const int errors = diag_errors(s->cg->ctx->diag);
		if (!traced_op_print(s->cg, s->ops[i], s->bound))
			return run_no_code(s->cg, s->ops[i], errors);
	}
	return true;
}

bool steps_print(Codegen *cg, const Op *const *ops, int n, const Op **bound)
{
	Steps s = {cg, ops, NEW_ARRAY(cg->arena, (size_t)n + 1, KernelFunc *), n, bound};
	if (cg->options->trace || cg->options->assert_finite) {
		memset(s.calls, 0, (size_t)n * sizeof *s.calls);
	} else if (!calls_make(&s)) {
		return false;
	}
	return range_print(&s, 0, n);
}
