// From a legacy program to a module in SSA form. Called by the driver after model_read and
// params_load.
//
// Operators follow the general rule (general.c); those that differ name a hook in their table entry
// (steps.c). Variables become values (variables.c): each block maps names to what they hold now, so
// a variable that is written twice, or in place, is two values. Persistable variables are read with
// builtin.get_parameter where they are first needed and, when changed, written back at the end.
//
// An error does not stop the translation: whatever depends on a failed operator is passed over
// silently, so that one run reports everything that is unsupported. When shape inference learns
// that two sizes are one (dim_unify), the translation starts over with that knowledge.
#include "frontend/translate/translate.h"
#include "frontend/control/control.h"
#include "frontend/control/variants.h"
#include "frontend/gradient/gradient.h"
#include "frontend/job/flow.h"
#include "frontend/job/general.h"
#include "frontend/job/lod.h"
#include "frontend/job/trace.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "frontend/translate/steps.h"
#include "ir/base/vec.h"
#include "ir/build/build.h"
#include "ir/text/text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RESTARTS = 1000 };

static bool is_feed(const Paddle__OpDesc *d)
{
	return strcmp(d->type, "feed") == 0;
}

static bool is_fetch(const Paddle__OpDesc *d)
{
	return strcmp(d->type, "fetch") == 0 || strcmp(d->type, "fetch_v2") == 0;
}

// The slot whose variable an operator is known by: the one of its first result, not the statistics
// and masks that may stand before it; of a fetch, what it reads.
static const Paddle__OpSlot *main_slot(const Paddle__OpDesc *d)
{
	const LegacyMap *map = NULL;
	const OpInfo *info = op_info_by_legacy(d->type, &map);
	size_t n = is_fetch(d) ? d->n_inputs : d->n_outputs;
	Paddle__OpSlot *const *slots = is_fetch(d) ? d->inputs : d->outputs;
	const Paddle__OpSlot *first = NULL;
	for (size_t i = 0; i < n; i++) {
		if (!slot_var(slots[i], 0))
			continue;
		if (info && info->nresult && slot_in(map->outs[0], slots[i]->parameter))
			return slots[i];
		first = first ? first : slots[i];
	}
	return first;
}

static const Loc *op_loc(Translator *t, int index, const Paddle__OpDesc *d)
{
	Loc l = {.file = t->c->file,
	         .block = t->block_index,
	         .op = index,
	         .type = context_str(t->c, d->type)};
	const Paddle__OpSlot *s = main_slot(d);
	if (s) {
		l.slot = context_str(t->c, s->parameter);
		l.var = context_str(t->c, slot_var(s, 0));
	}
	if (t->component) // sizes that it finds have names of their own
		l.slot = context_str(t->c, arena_printf(t->c->arena, "type%d", t->component - 1));
	return context_loc(t->c, &l);
}

// ---- operators ------------------------------------------------------------------------------

static bool translate_fetch(OpJob *j)
{
	const char *var = input_var(j, "X");
	const Paddle__OpAttr *a = attr_find(j->desc, "col");
	int64_t col = 0;
	if (!var)
		return job_fail(j, "fetches no variable");
	if (j->t->top)
		return job_fail(j, "fetches in a sub-block: not supported");
	if (a && !attr_int_at(a, 0, &col))
		return job_fail(j, "attribute 'col' is no integer");
	const Paddle__OpAttr *name = attr_find(j->desc, "name"); // Paddle 3 says how it is called
	return fetch_translate(j, var, name && name->s ? name->s : var, col);
}

static OpJob job_new(Translator *t, int index, const Paddle__OpDesc *d)
{
	OpJob j = {.t = t, .desc = d};
	j.b = builder_at_end(t->c, t->block, op_loc(t, index, d));
	return j;
}

static void translate_op(Translator *t, int index);

// ---- an operator for each alternative -----------------------------------------------------------

typedef struct Cases {
	OpJob *j;
	int index;         // of the operator, in its block
	Value *variant;    // what it reads
	int n;             // variables that it writes
	const char **vars; // their names
	int inside;        // which of the cases around it this is, for another operand of several types
} Cases;

static const char *const one_for_all[] = {
	"while", "conditional_block", "select_input", "recurrent",  "select_output",
	"fetch", "fetch_v2",          "feed",         "shadow_feed"};

// The first variable with several types that the operator reads. Guards become values, as they do
// when operands are read.
static Value *first_variant(OpJob *j)
{
	for (size_t i = 0; i < COUNT_OF(one_for_all); i++)
		if (!strcmp(j->desc->type, one_for_all[i]))
			return NULL;
	for (size_t s = 0; s < j->desc->n_inputs; s++)
		for (size_t k = 0; k < j->desc->inputs[s]->n_arguments; k++) {
			const char *var = slot_var(j->desc->inputs[s], k);
			Binding *b = var ? scope_find(j->t, var) : NULL;
			if (b && b->guard && !j->t->hooks->guard(j, var, b))
				return NULL;
			if (b && is_variant(b->value) && !is_mixed(b->value))
				return b->value;
		}
	return NULL;
}

// The operator with alternative k in place of the variant, in the current block, which a region is.
// after[]: what it leaves in the variables that it writes. False when it does not take that type.
static bool one_case(Cases *c, int k, Value **after)
{
	Translator *t = c->j->t;
	Value *v = variant_part(c->variant, k);
	const Paddle__OpDesc *d = c->j->desc;
	const bool failed = t->failed;
	DiagMark diag = diag_mark(t->c->diag);
	for (size_t s = 0; s < d->n_inputs; s++)
		for (size_t i = 0; i < d->inputs[s]->n_arguments; i++) {
			const char *var = slot_var(d->inputs[s], i);
			Binding *b = var ? scope_find(t, var) : NULL;
			if (!b || b->value != c->variant)
				continue;
			binding_save(t, b);
			b->value = v;
		}
	t->failed = false;
	t->inside_case = c->inside * (MAX_VARIANTS + 1) + k + 1;
	translate_op(t, c->index);
	t->inside_case = c->inside;
	const bool ok = !t->failed;
	for (int i = 0; i < c->n; i++) {
		const Binding *b = scope_find(t, c->vars[i]);
		after[i] = ok && b ? b->value : NULL;
	}
	t->failed = failed;
	if (!ok && !t->stale)
		diag_rewind(t->c->diag, diag);
	return ok;
}

static int all_cases(Cases *c, int k, Value **after);

// One region of the pd.if: 0 for alternative k, 1 for those after it. How many alternatives suited.
static int region_cases(Cases *c, OpenIf *i, int region, int k, Value **after)
{
	Translator *t = c->j->t;
	Block *into = region_entry(&i->op->regions[region]), *block = t->block;
	Op *yield = block_terminator(into), *top = t->top;
	OpenIf *ifs = t->ifs;
	const size_t mark = t->nundo;
	op_detach(yield);
	if (!t->top)
		t->top = i->op;
	t->block = into;
	t->ifs = NULL;
	int n = region ? all_cases(c, k + 1, after) : one_case(c, k, after);
	Builder b = builder_at_end(t->c, into, c->j->b.loc);
	if (!n)
		assert_never(&b, "a variable has a type here that the operator does not take");
	undo_to(t, mark);
	t->block = block;
	t->top = top;
	t->ifs = ifs;
	op_append(into, yield);
	return n;
}

// Alternatives from k on.
static int all_cases(Cases *c, int k, Value **after)
{
	Translator *t = c->j->t;
	if (k == variant_count(c->variant) - 1)
		return one_case(c, k, after);
	OpJob j = *c->j;
	j.b = builder_at_end(t->c, t->block, c->j->b.loc);
	Value *number = build_full(&j.b, type_tensor(t->c, DT_I64, 0, NULL, 0), k);
	Value *is = build2(&j.b, OP_PD_EQUAL, op_operand(c->variant->def, 0), number, NULL);
	Value **side[2];
	int n = 0;
	if (!is)
		return 0;
	OpenIf *i = if_open(&j, is, c->n * (MAX_LOD + 1) * (MAX_VARIANTS + 1) + 1);
	for (int r = 0; r < 2; r++) {
		side[r] = NEW_ARRAY(t->c->arena, (size_t)c->n + 1, Value *);
		n += region_cases(c, i, r, k, side[r]);
	}
	for (int o = 0; n && o < c->n; o++) {
		Value *const sides[] = {side[0][o], side[1][o]};
		const char *var = c->vars[o]; // sizes that an inner pd.if finds have names of their own
		if (c->inside)
			var = arena_printf(t->c->arena, "%s.in%d", var, c->inside);
		if (k > 0)
			var = arena_printf(t->c->arena, "%s.from%d", var, k);
		if ((sides[0] || sides[1]) && !(after[o] = if_join(&j, i, sides, var)))
			return 0;
	}
	return n;
}

static bool variant_translate(OpJob *j, int index, bool *ok)
{
	Value *v = first_variant(j);
	if (!v)
		return false;
	Translator *t = j->t;
	const LegacyMap *map;
	// What no type could mend is said once, and as it is.
	if (op_info_by_legacy(j->desc->type, &map) && !check_attributes(j, map)) {
		*ok = false;
		return true;
	}
	Cases c = {.j = j, .index = index, .variant = v, .inside = t->inside_case};
	c.n = job_outputs(j, &c.vars);
	*ok = true;
	if (!strcmp(j->desc->type, "assign") && c.n == 1) {
		write_var(j, c.vars[0], v);
		return true;
	}
	Value **after = NEW_ARRAY(t->c->arena, (size_t)c.n + 1, Value *);
	*ok = all_cases(&c, 0, after) > 0;
	if (!*ok && !t->stale)
		job_fail(j, "takes none of the types that an input may have: %s", type_text(t->c, v->type));
	j->b = builder_at_end(t->c, t->block, j->b.loc);
	for (int i = 0; *ok && i < c.n; i++)
		if (after[i])
			write_var(j, c.vars[i], after[i]);
	return true;
}

// A shadow_output of what the program never makes: there is nothing to give out.
static bool shadows_nothing(Translator *t, const Paddle__OpDesc *d)
{
	if (strcmp(d->type, "shadow_output") != 0 || t->implicit_feeds)
		return false;
	const char *x = slot_var(slot_find(d->n_inputs, d->inputs, "x"), 0);
	const Binding *b = x ? scope_find(t, x) : NULL;
	const bool there = b &&
	                   (b->value || b->guard || b->broken || (b->desc && var_is_state(b->desc)));
	return x && !there;
}

static void translate_op(Translator *t, int index)
{
	const Paddle__OpDesc *d = t->p->blocks[t->block_index]->ops[index];
	static const char *const port_reads[] = {"col", "deepcopy", "name"};
	static const LegacyMap port = {.nread = COUNT_OF(port_reads), .reads = port_reads};
	OpJob j = job_new(t, index, d);
	bool ok;
	if (shadows_nothing(t, d))
		return;
	if (mixed_translate(&j, index, &ok) || variant_translate(&j, index, &ok)) {
		t->failed |= !ok && !t->stale;
		if (!ok && !t->stale)
			break_outputs(&j);
		return;
	}
	trace_begin(&j);
	ok = !is_feed(d) && !is_fetch(d)    ? rows_may_be_read(&j) && translate_job(&j)
	     : !check_attributes(&j, &port) ? false
	     : is_feed(d)                   ? feed_translate(&j)
	                                    : translate_fetch(&j);
	trace_end(&j);
	if (ok)
		rows_note(&j);
	if (ok || t->stale)
		return;
	t->failed = true;
	break_outputs(&j);
}

// ---- blocks ---------------------------------------------------------------------------------

static int64_t column_of(const Paddle__OpDesc *d)
{
	const Paddle__OpAttr *a = attr_find(d, "col");
	int64_t col = 0;
	return a && attr_int_at(a, 0, &col) ? col : 0;
}

// Feed operators stand in the reverse order of their columns; inputs read better in order.
static void translate_feeds(Translator *t)
{
	const Paddle__BlockDesc *b = t->p->blocks[t->block_index];
	int *feeds = NEW_ARRAY(t->c->arena, b->n_ops, int), n = 0;
	for (size_t i = 0; i < b->n_ops; i++) {
		if (!is_feed(b->ops[i]))
			continue;
		int at = n++;
		for (; at > 0 && column_of(b->ops[feeds[at - 1]]) > column_of(b->ops[i]); at--)
			feeds[at] = feeds[at - 1];
		feeds[at] = (int)i;
	}
	t->implicit_feeds = n == 0;
	for (int i = 0; i < n; i++)
		translate_op(t, feeds[i]);
}

// Something was learnt (dim_unify, or the type of an array): all that is built is out of date. An
// error comes first, or it would be reported again.
static bool check_stale(Translator *t)
{
	t->stale |= dim_generation(t->c) != t->generation;
	return t->stale && !t->failed;
}

static bool translate_ops(Translator *t)
{
	const Paddle__BlockDesc *b = t->p->blocks[t->block_index];
	for (size_t i = 0; i < b->n_ops; i++) {
		t->frame.op = (int)i;
		if (!is_feed(b->ops[i]))
			translate_op(t, (int)i);
		if (check_stale(t))
			return true;
	}
	return false;
}

// A program without fetch operators gives what nothing reads.
static void fetch_leaves(Translator *t)
{
	const Paddle__BlockDesc *b = t->p->blocks[0];
	NameMap *read = name_map_new(t->c->arena);
	int64_t col = 0;
	for (size_t i = 0; i < b->n_ops; i++) {
		if (is_fetch(b->ops[i]))
			return;
		for (size_t s = 0; s < b->ops[i]->n_inputs; s++)
			for (size_t k = 0; k < b->ops[i]->inputs[s]->n_arguments; k++)
				name_map_set(read, b->ops[i]->inputs[s]->arguments[k], read);
	}
	for (size_t i = 0; i < b->n_ops; i++) {
		OpJob j = job_new(t, (int)i, b->ops[i]);
		for (size_t s = 0; s < b->ops[i]->n_outputs; s++) {
			for (size_t k = 0; k < b->ops[i]->outputs[s]->n_arguments; k++) {
				const char *var = slot_var(b->ops[i]->outputs[s], k);
				const Binding *v = var && !name_map_get(read, var) ? scope_find(t, var) : NULL;
				if (!v || !v->value || v->value->persistable)
					continue;
				name_map_set(read, var, read);
				t->failed |= !fetch_translate(&j, var, var, col++);
			}
		}
	}
}

static const TranslatorHooks hooks = {translate_as,  translate_ops, guard_resolve,  array_empty,
                                      feed_implicit, translate_op,  variant_settle, value_missing};

// One attempt; true when it must start over.
static bool translate_once(Translator *t)
{
	t->hooks = &hooks;
	t->module = module_new(t->c);
	t->block = module_block(t->module);
	t->block_index = 0;
	t->scope = scope_new(t, 0, NULL);
	t->symbols = name_map_new(t->c->arena);
	t->columns = name_map_new(t->c->arena);
	t->lods = lod_table_new(t->c);
	t->rows = NULL;
	t->stand_ins = value_map_new(t->c->arena);
	t->flows = NEW_ARRAY(t->c->arena, t->p->n_blocks, struct BlockFlow *);
	t->generation = dim_generation(t->c);
	translate_feeds(t);
	if (translate_ops(t))
		return true;
	if (!t->failed)
		fetch_leaves(t);
	bool learnt = set_parameters(t);
	lod_finish(t);
	return check_stale(t) || learnt;
}

// Operators in sub-blocks belong to control flow, which stands in the table or is itself
// unsupported; naming them too shows the whole of what is missing.
static bool check_supported(Context *c, const Paddle__ProgramDesc *p)
{
	bool ok = true;
	Translator t = {.c = c, .p = p};
	for (size_t b = 0; b < p->n_blocks; b++) {
		t.block_index = (int)b;
		for (size_t i = 0; i < p->blocks[b]->n_ops; i++) {
			const Paddle__OpDesc *d = p->blocks[b]->ops[i];
			const LegacyMap *map;
			if (is_feed(d) || is_fetch(d) || op_info_by_legacy(d->type, &map) ||
			    gradient_is_known(c, d->type))
				continue;
			diag_error(c->diag, op_loc(&t, (int)i, d), "operator '%s' is not supported", d->type);
			ok = false;
		}
	}
	return ok;
}

static bool has_gradients(const Paddle__ProgramDesc *p)
{
	for (size_t b = 0; b < p->n_blocks; b++)
		for (size_t i = 0; i < p->blocks[b]->n_ops; i++) {
			const char *type = p->blocks[b]->ops[i]->type, *end = strstr(type, "_grad");
			if (end && (!end[5] || !strcmp(end + 5, "_grad")))
				return true;
		}
	return false;
}

Op *translate(Context *c, const Paddle__ProgramDesc *p, const TranslateOptions *o)
{
	if (!check_supported(c, p))
		return NULL;
	NameMap *memo = name_map_new(c->arena);
	for (int i = 0; i < MAX_RESTARTS; i++) {
		Translator t = {.c = c, .p = p, .o = o, .memo = memo, .graded = has_gradients(p)};
		dim_restart(c);
		dim_set_learning(c, true);
		c->checks_sizes = true;
		bool again = translate_once(&t);
		c->checks_sizes = false;
		dim_set_learning(c, false);
		if (again) {
			if (t.misled)
				dim_forget(c);
			continue;
		}
		if (t.failed || !check_pins(&t))
			return NULL;
		variants_erase(&t.module->regions[0]);
		size_facts_to_module(t.module);
		return t.module;
	}
	diag_error(c->diag, &(Loc){.file = c->file, .block = -1, .op = -1}, "its sizes do not settle");
	return NULL;
}
