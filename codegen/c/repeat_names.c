// What calls in a loop over layers get: names that hold in all rounds. What differs between rounds
// is a column of the table, and a local that a row gives; what all rounds share has the name of the
// first. Called by repeat.c.
#include "codegen/c/repeat.h"
#include "ir/base/vec.h"

#include <string.h>

// ---- steps --------------------------------------------------------------------------------------

// The call of a step in a round; NULL: there is none.
const KernelFunc *repeat_call(const RepeatLoop *l, int round, int step)
{
	const int at = repeat_at(l->r, round, step);
	return at == STEP_ABSENT ? NULL : l->s->calls[at];
}

int step_first(const Repeat *r, int step)
{
	int round = 0;
	while (repeat_at(r, round, step) == STEP_ABSENT)
		round++;
	return round;
}

int round_begin(const Repeat *r, int round)
{
	int step = 0;
	while (repeat_at(r, round, step) == STEP_ABSENT)
		step++;
	return repeat_at(r, round, step);
}

static bool steps_go_together(const Repeat *r, int a, int b)
{
	for (int round = 0; round < r->rounds; round++)
		if ((repeat_at(r, round, a) == STEP_ABSENT) != (repeat_at(r, round, b) == STEP_ABSENT))
			return false;
	return true;
}

int step_group_end(const Repeat *r, int step)
{
	while (step + 1 < r->nstep && steps_go_together(r, step, step + 1))
		step++;
	return step + 1;
}

int step_chain_end(const Repeat *r, int step)
{
	int end = step_group_end(r, step);
	while (end < r->nstep) {
		for (int group = step; group < end; group = step_group_end(r, group))
			if (!steps_are_apart(r, group, end))
				return end;
		end = step_group_end(r, end);
	}
	return end;
}

const KernelParam *repeat_param(const RepeatLoop *l, int round, int step, int p)
{
	const KernelFunc *k = repeat_call(l, round, step);
	return k ? &k->params[p] : NULL;
}

int step_params(const RepeatLoop *l, int step)
{
	const KernelFunc *k = repeat_call(l, step_first(l->r, step), step);
	return k ? k->nparam : 0;
}

// Whether the calls of two rounds may get one argument of the loop.
static bool arguments_join(const Codegen *cg, const KernelParam *a, const KernelParam *b)
{
	if (!a->value || !b->value || a->lead || b->lead)
		return false;
	const Place x = value_place(a->value), y = value_place(b->value);
	return x.kind == y.kind && x.root->type->dtype == y.root->type->dtype &&
	       arguments_fit(cg, a, b);
}

// The step that a round has in place of this one, when it has not this one; -1: none.
static int step_instead(const RepeatLoop *l, int round, int step)
{
	for (int other = l->joint[step]; other < l->r->nstep; other++)
		if (l->joint[other] == l->joint[step] && repeat_call(l, round, other))
			return other;
	return -1;
}

// What a step gets in a round; where that has another step in place of this one, what that gets:
// what an operator more changes is the function that a round calls.
static const KernelParam *param_joint(const RepeatLoop *l, int round, int step, int p)
{
	const KernelParam *own = repeat_param(l, round, step, p);
	const int other = own ? -1 : step_instead(l, round, step);
	if (other < 0 || p >= step_params(l, other))
		return own;
	const KernelParam *first = repeat_param(l, step_first(l->r, step), step, p),
					  *param = repeat_param(l, round, other, p);
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

// ---- stems --------------------------------------------------------------------------------------

// Whether a story begins with the kinds of operators of another.
static bool story_goes_on(const Story *s, const Story *begin)
{
	if (s->n <= begin->n)
		return false;
	for (int i = 0; i < begin->n; i++)
		if (strcmp(s->locs[i]->type, begin->locs[i]->type) != 0)
			return false;
	return true;
}

static const Story *result_story(const RepeatLoop *l, int round, int step, int p)
{
	const KernelParam *param = param_joint(l, round, step, p);
	const Op *op = param && param->value ? value_place(param->value).root->def : NULL;
	return op ? op_story(l->s->cg, op) : NULL;
}

// What a step computes is named after the last operator that most of its rounds have: one that is
// fused behind it in a single layer does not give all of them its name.
static void result_stem(RepeatLoop *l, int step, int p)
{
	Codegen *cg = l->s->cg;
	const Story *least = NULL, *s;
	int have = 0, most = 0;
	for (int round = 0; round < l->r->rounds; round++)
		if ((s = result_story(l, round, step, p)) && (!least || s->n < least->n))
			least = s;
	for (int round = 0; round < l->r->rounds; round++)
		if ((s = result_story(l, round, step, p))) {
			have++;
			most += s->n == least->n;
		}
	if (!least || !least->n || 2 * most <= have)
		return;
	for (int round = 0; round < l->r->rounds; round++) {
		if (!(s = result_story(l, round, step, p)) || !story_goes_on(s, least))
			continue;
		const Loc *last = s->locs[least->n - 1];
		if (last->var)
			pointer_map_set(
				&cg->stems, value_place(param_joint(l, round, step, p)->value).root,
				name_local(cg->arena, name_by_operator(cg->arena, last->var, last->type)));
	}
}

static void stems_note(RepeatLoop *l)
{
	for (int step = 0; step < l->r->nstep; step++)
		for (int p = 0; p < step_params(l, step); p++)
			if (param_first(l, step, p)->result)
				result_stem(l, step, p);
}

// ---- columns ------------------------------------------------------------------------------------

const KernelParam *column_first(const Column *c)
{
	int round = 0;
	while (!c->params[round])
		round++;
	return c->params[round];
}

static bool param_is_moving(const KernelParam *p)
{
	return value_place(p->value).moving != 0;
}

static DType param_dtype(const KernelParam *p)
{
	return value_place(p->value).root->type->dtype;
}

// Whether a column may say where the argument of a step lies, too: the same in all rounds that have
// both, there is such a round, and the elements are of one type, which its local has.
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
	const KernelParam *have = column_first(c), *first = param_first(l, step, p);
	return both && param_is_moving(have) == param_is_moving(first) &&
	       param_dtype(have) == param_dtype(first);
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

// Whether a column holds pointers, not offsets: to arrays, and to buffers that branches exchange.
bool column_is_pointer(const Codegen *cg, const Column *c)
{
	const Place p = value_place(column_first(c)->value);
	return p.kind == PLACE_PARAM ? cg->inline_weights : p.moving != 0;
}

// ---- names --------------------------------------------------------------------------------------

static const char *name_in_round(const RepeatLoop *l, int round, const KernelParam *param)
{
	const Value *root = value_place(param->value).root;
	const char *name = param->lead ? NULL : pointer_map_get(&l->named[round], root);
	if (name || param->lead || !round)
		return name;
	// What the round before computed, where that is the same place in all rounds.
	name = pointer_map_get(&l->named[round - 1], root);
	return name && !row_local_find(l, name) ? name : NULL;
}

// The name that a tensor has in a round already, if it has the same in all rounds of the step.
static const char *name_known(const RepeatLoop *l, int step, int p)
{
	const char *name = NULL;
	for (int round = 0; round < l->r->rounds; round++) {
		const KernelParam *param = param_joint(l, round, step, p);
		if (!param)
			continue;
		const char *here = name_in_round(l, round, param);
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

RowLocal *row_local_find(const RepeatLoop *l, const char *name)
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
	const char *name = column_is_pointer(cg, column)
	                       ? arena_printf(cg->arena, "%s->%s", l->table.row, column->name)
	                       : names_unique(&cg->locals,
	                                      value_stem(cg, value_place(first->value).root));
	VEC_ROOM(cg->arena, l->locals, l->nlocal, l->clocal);
	l->locals[l->nlocal++] = (RowLocal){name, c, column_is_pointer(cg, column)};
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
	if (!known)
		return false;
	if (first != repeat_param(l, step_first(l->r, step), step, p))
		*name = known; // what another step calls it that is there in its place: one name for both
	name_note(l, step, p, known);
	return true;
}

bool column_is_weights(const Column *c)
{
	return value_place(column_first(c)->value).kind == PLACE_PARAM;
}

// Columns in the order in which the loop asks for them; weights behind what lies in the workspace,
// so that a buffer more moves no weights.
static void columns_order(RepeatLoop *l)
{
	Arena *arena = l->s->cg->arena;
	Table *t = &l->table;
	Column *ordered = NEW_ARRAY(arena, (size_t)t->n + 1, Column);
	int *to = NEW_ARRAY(arena, (size_t)t->n + 1, int),
		n = 0; // one more than the new index; 0: none
	for (int weights = 0; weights < 2; weights++)
		for (int step = 0; step < l->r->nstep; step++)
			for (int p = 0; p < step_params(l, step); p++) {
				const char *name = l->arguments[step][p];
				const RowLocal *local = name ? row_local_find(l, name) : NULL;
				if (!local || to[local->column] ||
				    column_is_weights(&t->items[local->column]) != (weights == 1))
					continue;
				ordered[n++] = t->items[local->column];
				to[local->column] = n;
			}
	for (int i = 0; i < l->nlocal; i++)
		l->locals[i].column = to[l->locals[i].column] - 1;
	t->items = ordered;
	t->n = n;
}

// Of a group and one behind it in the same chain: pairs of calls of one kind of kernel, in their
// order.
static void group_pair(RepeatLoop *l, int group, int later)
{
	const int group_end = step_group_end(l->r, group), end = step_group_end(l->r, later);
	for (int step = group; step < group_end; step++) {
		const KernelFunc *k = repeat_call(l, step_first(l->r, step), step), *other;
		int at = later;
		while (
			k && at < end &&
			(!(other = repeat_call(l, step_first(l->r, at), at)) || other->op->code != k->op->code))
			at++;
		if (!k || at == end)
			continue;
		if (l->joint[at] == at)
			l->joint[at] = l->joint[step];
		later = at + 1;
	}
}

static void steps_pair(RepeatLoop *l)
{
	const Repeat *r = l->r;
	l->joint = NEW_ARRAY(l->s->cg->arena, (size_t)r->nstep, int);
	for (int step = 0; step < r->nstep; step++)
		l->joint[step] = step;
	for (int step = 0, end; step < r->nstep; step = end) {
		end = step_chain_end(r, step);
		for (int group = step; group < end; group = step_group_end(r, group))
			for (int later = step_group_end(r, group); later < end;
			     later = step_group_end(r, later))
				group_pair(l, group, later);
	}
}

// The plan of memory has what only rows of the table name, too.
static void columns_note(RepeatLoop *l)
{
	Codegen *cg = l->s->cg;
	for (int c = 0; c < l->table.n; c++) {
		const Column *column = &l->table.items[c];
		if (column_is_weights(column) || column_is_pointer(cg, column))
			continue;
		const char *place = arena_printf(cg->arena, "%s->%s", l->table.row, column->name);
		for (int round = 0; round < l->r->rounds; round++)
			if (column->params[round])
				pointer_map_set(&cg->row_places, value_place(column->params[round]->value).root,
				                place);
	}
}

// In how many rounds there is a step, or another in its place.
static int step_joint_count(const RepeatLoop *l, int step)
{
	int n = 0;
	for (int other = l->joint[step]; other < l->r->nstep; other++)
		n += l->joint[other] == l->joint[step] ? l->r->count[other] : 0;
	return n;
}

// The names of what steps that `count` rounds have, or something in their place, compute, or of
// what they read.
static bool names_of_steps(RepeatLoop *l, int count, bool results)
{
	for (int step = 0; step < l->r->nstep; step++) {
		if (step_joint_count(l, step) != count)
			continue;
		for (int p = 0; p < step_params(l, step); p++)
			if (param_first(l, step, p)->result == results && !argument_name(l, step, p))
				return false;
	}
	return true;
}

// All names, before the loop: what its rounds share may be read behind it. What most rounds have
// gives the names, since it reads what steps of single rounds compute; and what a round computes,
// since the next one reads it.
bool repeat_names(RepeatLoop *l)
{
	Arena *arena = l->s->cg->arena;
	l->named = NEW_ARRAY(arena, (size_t)l->r->rounds, PointerMap);
	for (int round = 0; round < l->r->rounds; round++)
		pointer_map_init(&l->named[round], arena);
	l->arguments = NEW_ARRAY(arena, (size_t)l->r->nstep, const char **);
	for (int step = 0; step < l->r->nstep; step++)
		l->arguments[step] = NEW_ARRAY(arena, (size_t)step_params(l, step) + 1, const char *);
	steps_pair(l);
	stems_note(l);
	for (int count = l->r->rounds; count > 0; count--)
		if (!names_of_steps(l, count, true) || !names_of_steps(l, count, false))
			return false;
	columns_order(l);
	columns_note(l);
	return true;
}
