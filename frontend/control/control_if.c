// Branches. A legacy conditional runs each side as a conditional_block of its own, on the condition
// and on its negation, and picks every result with a select_input on a mask cast from the
// condition. Here both blocks become regions of one pd.if, and a select_input one of its results
// (control_select.c).
//
// A variable that only branches have written is a guard: it knows the values in the regions, and
// what was there before. It becomes a result of the pd.if when somebody reads it. As long as no
// result is used, the pd.if moves down to where the second block, or a further result, needs it.
#include "frontend/control/control.h"
#include "frontend/job/flow.h"
#include "frontend/job/lod.h"
#include "frontend/job/variant.h"
#include "ir/base/vec.h"
#include "ir/build/build.h"

#include <string.h>

// ---- guards -----------------------------------------------------------------------------------

Value *guard_side(const Guard *g, int region)
{
	return g->value[region] ? g->value[region] : g->before;
}

bool guard_resolve(OpJob *j, const char *var, Binding *b)
{
	const Guard *g = b->guard;
	Value *const sides[] = {guard_side(g, 0), guard_side(g, 1)};
	Value *v;
	if (!if_result(j, g->i, sides, var, &v))
		return false;
	if (!v)
		return job_fail(j, "variable '%s' depends on a branch in too many ways", var);
	if (!v->name)
		v->name = context_str(j->t->c, var);
	b->value = v;
	b->guard = NULL;
	return true;
}

// ---- conditional_block ------------------------------------------------------------------------

// The pd.if on the opposite condition, whose other region is still empty.
static OpenIf *find_partner(Translator *t, const Value *cond)
{
	bool negated;
	const Value *pred = condition_strip(cond, &negated);
	for (OpenIf *i = t->ifs; i; i = i->next)
		if (i->pred == pred && !i->filled[i->negated != negated] && !i->op->nresult &&
		    if_move_down(t, i))
			return i;
	return NULL;
}

// How many results a new pd.if may get: two for everything that blocks write, one for each
// select_input up to the block after the next.
static int count_results(OpJob *j, int block)
{
	const Paddle__BlockDesc *b = j->t->p->blocks[j->t->block_index];
	int n = 2 * flow_of(j->t, block)->writes.n + 8, blocks = 0;
	for (size_t i = (size_t)j->t->frame.op + 1; i < b->n_ops && blocks < 3; i++) {
		const Paddle__OpAttr *a = attr_find(b->ops[i], "sub_block");
		n += strcmp(b->ops[i]->type, "select_input") == 0;
		if (!a || a->type != PADDLE__ATTR_KIND__BLOCK)
			continue;
		n += 2 * flow_of(j->t, a->block_idx)->writes.n;
		blocks++;
	}
	return n + (MAX_LOD + MAX_VARIANTS) * (n < 64 ? n : 64);
}

// Whether a variable has a value before anything writes it.
static bool value_is_implied(const Binding *b)
{
	return b->desc &&
	       (var_is_state(b->desc) || b->desc->type->type == PADDLE__VAR_KIND__LOD_TENSOR_ARRAY);
}

// Makes what the outer variables hold definite, so that a branch can change it.
static bool settle_outer(OpJob *j, const BlockFlow *f, const OpenIf *i)
{
	const NameList *names = &f->writes;
	for (int n = 0; n < names->n; n++) {
		Binding *b = write_binding(j->t, names->names[n]);
		const bool read = name_list_has(&f->exposed, names->names[n]) ||
		                  flow_live_after(j->t, names->names[n]);
		if (b->guard && b->guard->i != i && !read) {
			binding_save(j->t, b);
			b->value = b->guard->before;
			b->guard = NULL;
		}
		if (b->guard && b->guard->i != i && !guard_resolve(j, names->names[n], b))
			return false;
		if (!b->guard && !b->value && !b->broken && value_is_implied(b) &&
		    !read_any(j, "Input", names->names[n]))
			return false;
	}
	return true;
}

// In the second region, variables hold what they held before the first.
static void forget_first(Translator *t, const OpenIf *i)
{
	for (int n = 0; n < i->nguard; n++) {
		Binding *b = i->guards[n];
		if (!b->guard || b->guard->i != i)
			continue;
		binding_save(t, b);
		b->value = b->guard->before;
		b->guard = NULL;
	}
}

static void note_guard(Translator *t, OpenIf *i, Binding *b)
{
	VEC_ROOM(t->c->arena, i->guards, i->nguard, i->cguard);
	i->guards[i->nguard++] = b;
}

static void set_guard(OpJob *j, OpenIf *i, int region, const char *var, Value *v)
{
	Translator *t = j->t;
	Binding *b = write_binding(t, var);
	Guard *g = NEW(t->c->arena, Guard);
	*g = b->guard ? *b->guard : (Guard){.i = i, .before = b->value};
	g->value[region] = v;
	binding_save(t, b);
	b->guard = g;
	b->value = NULL;
	b->broken = false;
	note_guard(t, i, b);
	note_written(t, b);
}

// The variables as the branch leaves them; NULL where it did not change them.
static bool read_branch(OpJob *j, const NameList *names, Value **after)
{
	for (int n = 0; n < names->n; n++) {
		Binding *b = write_binding(j->t, names->names[n]);
		if (b->guard && !flow_live_after(j->t, names->names[n]))
			continue; // nobody asks what an inner branch left in it
		if (b->guard && !guard_resolve(j, names->names[n], b))
			return false;
		after[n] = b->value;
	}
	return true;
}

// Variables that the branch gives a value of its own, whatever the other side holds.
static void set_given(OpJob *j, OpenIf *i, int region, const BranchBody *body)
{
	for (int n = 0; n < body->n; n++) {
		if (!body->names[n])
			continue;
		Guard *g = NEW(j->t->c->arena, Guard);
		Binding *b = write_binding(j->t, body->names[n]);
		binding_save(j->t, b);
		*g = (Guard){.i = i, .before = body->other[n]};
		g->value[region] = body->values[n];
		b->value = NULL;
		b->guard = g;
		b->broken = false;
		note_guard(j->t, i, b);
	}
}

static bool translate_branch(OpJob *j, OpenIf *i, int region, BranchBody *body)
{
	Translator *t = j->t;
	const NameList *names = &flow_of(t, body->block)->writes;
	Value **after = NEW_ARRAY(t->c->arena, (size_t)names->n + 1, Value *);
	Block *into = region_entry(&i->op->regions[region]);
	Op *yield = block_terminator(into);
	Outside o;
	op_detach(yield);
	region_enter(t, &o, into, body->block);
	forget_first(t, i);
	OpJob inner = *j;
	inner.b = builder_at_end(t->c, into, j->b.loc);
	bool ok = (!body->before || body->before(&inner, body)) && region_translate(t) &&
	          read_branch(&inner, names, after) && (!body->behind || body->behind(&inner, body));
	region_leave(t, &o);
	op_append(into, yield);
	i->filled[region] = true;
	for (int n = 0; ok && n < names->n; n++) {
		Binding *b = write_binding(t, names->names[n]);
		Value *before = b->guard ? b->guard->before : b->value;
		if (after[n] && after[n] != before)
			set_guard(j, i, region, names->names[n], after[n]);
	}
	if (ok)
		set_given(j, i, region, body);
	return ok;
}

static bool branch_on(OpJob *j, Value *cond, BranchBody *body)
{
	const int block = body->block;
	Translator *t = j->t;
	bool negated;
	condition_strip(cond, &negated);
	OpenIf *i = find_partner(t, cond);
	if (!settle_outer(j, flow_of(t, block), i))
		return false;
	if (!i) {
		i = if_open(j, cond, count_results(j, block));
		i->next = t->ifs;
		t->ifs = i;
	} else if (!if_move_down(t, i)) {
		return job_fail(j, "depends on the branch before it");
	}
	return translate_branch(j, i, i->negated != negated, body);
}

// Old programs run the block when no input is empty.
static Value *inputs_not_empty(OpJob *j)
{
	const Paddle__OpSlot *s = slot_find(j->desc->n_inputs, j->desc->inputs, "Input");
	Value *all = NULL;
	for (size_t i = 0; s && i < s->n_arguments; i++) {
		Value *v = read_var(j, "Input", s->arguments[i]);
		Value *empty = v ? build1(&j->b, OP_PD_IS_EMPTY, v, NULL) : NULL;
		Value *full = empty ? build1(&j->b, OP_PD_LOGICAL_NOT, empty, NULL) : NULL;
		if (!full)
			return NULL;
		all = all ? build2(&j->b, OP_PD_LOGICAL_AND, all, full, NULL) : full;
	}
	if (!all)
		job_fail(j, "its condition is no scalar, and there are no inputs to look at");
	return all;
}

// Whether the block runs. NULL after a diagnostic.
static Value *branch_condition(OpJob *j)
{
	const char *var = input_var(j, "Cond");
	const Paddle__OpAttr *a = attr_find(j->desc, "is_scalar_condition");
	int64_t scalar = 0;
	if (a && !attr_int_at(a, 0, &scalar)) {
		job_fail(j, "attribute 'is_scalar_condition' is no bool");
		return NULL;
	}
	if (!scalar)
		return inputs_not_empty(j);
	if (!var)
		job_fail(j, "input Cond has no variable");
	Value *cond = var ? read_var(j, "Cond", var) : NULL;
	if (cond && type_is_tensor(cond->type) && cond->type->dtype != DT_BOOL) {
		job_fail(j, "input Cond must be bool, not %s", dtype_name(cond->type->dtype));
		return NULL;
	}
	return cond ? single_element(j, cond, "Cond") : NULL;
}

bool branch_translate(OpJob *j, BranchBody *body)
{
	Value *cond = branch_condition(j);
	return cond && branch_on(j, cond, body);
}

bool conditional_translate(OpJob *j)
{
	BranchBody body = {.block = sub_block_of(j)};
	return body.block >= 0 && branch_keep_reads(j, body.block) && branch_translate(j, &body);
}
