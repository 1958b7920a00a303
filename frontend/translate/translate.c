// From a legacy program to a module in SSA form. Called by the driver after model_read and
// params_load.
//
// The general rule takes everything from the operator table: which slots are which operands, which
// attributes have which names, and their defaults. Operators that differ name a hook in their table
// entry; steps.c overrides single steps for them. Variables become values: each block maps names to
// what they hold now, so a variable that is written twice, or in place, is two values. Persistable
// variables are read with builtin.get_parameter where they are first needed and, when changed,
// written back at the end.
//
// An error does not stop the translation: whatever depends on a failed operator is passed over
// silently, so that one run reports everything that is unsupported. When shape inference learns
// that two sizes are one (dim_unify), the translation starts over with that knowledge.
#include "frontend/translate/translate.h"
#include "frontend/translate/lod.h"
#include "ir/build/build.h"
#include "ir/text/text.h"
#include "frontend/translate/gradient.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RESTARTS = 1000 };

// ---- diagnostics ----------------------------------------------------------------------------

bool job_fail(OpJob *j, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(j->t->c->arena, fmt, ap);
	va_end(ap);
	diag_error(j->t->c->diag, j->b.loc, "%s", text);
	return false;
}

static bool is_feed(const Paddle__OpDesc *d)
{
	return strcmp(d->type, "feed") == 0;
}

static bool is_fetch(const Paddle__OpDesc *d)
{
	return strcmp(d->type, "fetch") == 0 || strcmp(d->type, "fetch_v2") == 0;
}

// Whether slot stands in the list of alternatives `A|B`.
static bool slot_in(const char *alternatives, const char *slot)
{
	size_t n = strlen(slot);
	for (const char *at = alternatives; at && *at; at += *at == '|') {
		size_t k = strcspn(at, "|");
		if (k == n && strncmp(at, slot, n) == 0)
			return true;
		at += k;
	}
	return false;
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
	return context_loc(t->c, &l);
}

// ---- operands -------------------------------------------------------------------------------

Value *job_operand(const OpJob *j, const char *name)
{
	int i = op_info_operand(j->info, name);
	return i < 0 ? NULL : j->operands[i];
}

void job_set_operand(OpJob *j, const char *name, Value *v)
{
	int i = op_info_operand(j->info, name);
	if (i >= 0)
		j->operands[i] = v;
}

// Walks `A|B`: copies the next alternative into buf. False at the end.
static bool next_slot(const char **at, char *buf, size_t size)
{
	if (!*at || !**at)
		return false;
	size_t n = strcspn(*at, "|"), keep = n < size - 1 ? n : size - 1;
	memcpy(buf, *at, keep);
	buf[keep] = 0;
	*at += n;
	if (**at == '|')
		++*at;
	return true;
}

static Value *combine(OpJob *j, int n, Value *const *values)
{
	return build(&j->b, OP_BUILTIN_COMBINE, n, values, NULL);
}

// The variables of a list as one value: a vec where the operand wants one, or when they are
// several.
static Value *read_list(OpJob *j, const char *slot, size_t n, char *const *vars, bool vec)
{
	Value **values = NEW_ARRAY(j->t->c->arena, n, Value *);
	bool ok = true;
	for (size_t i = 0; i < n; i++) {
		values[i] = read_var(j, slot, vars[i]);
		ok &= values[i] != NULL;
	}
	if (!ok)
		return NULL;
	return n > 1 || vec ? combine(j, (int)n, values) : values[0];
}

// The attribute that operand i overrides, when it is mutable; NULL otherwise.
static const AttrInfo *overridden_attr(const OpInfo *info, const char *operand)
{
	for (int i = 0; i < info->nattr; i++)
		if (info->attrs[i].operand && strcmp(info->attrs[i].operand, operand) == 0)
			return &info->attrs[i];
	return NULL;
}

// Newer programs give mutable attributes as attributes that name variables.
static bool variable_attr(OpJob *j, int i)
{
	const AttrInfo *a = overridden_attr(j->info, j->info->operands[i].name);
	const Paddle__OpAttr *legacy = a ? job_legacy_attr(j, a->name) : NULL;
	if (!legacy)
		return true;
	NumberList list = {0};
	if (legacy->type == PADDLE__ATTR_KIND__VAR && legacy->var_name)
		j->operands[i] = read_list(j, legacy->name, 1, &legacy->var_name, false);
	else if (legacy->type == PADDLE__ATTR_KIND__VARS && legacy->n_vars_name)
		j->operands[i] = read_list(j, legacy->name, legacy->n_vars_name, legacy->vars_name, false);
	else
		return true;
	if (!j->operands[i])
		return false;
	// General_attribute takes the number. Paddle 3 gives sizes as floats, too.
	bool floats = type_is_tensor(j->operands[i]->type) &&
	              dtype_is_float(j->operands[i]->type->dtype);
	if ((a->kind == ATTR_FLOAT || floats) && numbers_of_value(j->t->c, j->operands[i], &list))
		j->operands[i] = NULL;
	return true;
}

static bool read_operand(OpJob *j, int i)
{
	const OperandInfo *o = &j->info->operands[i];
	const char *at = j->map->slots[i];
	char slot[128];
	bool ok;
	if (lod_operand(j, i, &ok))
		return ok;
	while (next_slot(&at, slot, sizeof slot)) {
		const Paddle__OpSlot *s = slot_find(j->desc->n_inputs, j->desc->inputs, slot);
		if (!slot_var(s, 0))
			continue;
		if (s->n_arguments > 1 && !o->vec)
			return job_fail(j, "input %s holds %zu variables; one is supported", slot,
			                s->n_arguments);
		j->operands[i] = read_list(j, slot, s->n_arguments, s->arguments, o->vec && !o->optional);
		return j->operands[i] != NULL;
	}
	if (!variable_attr(j, i))
		return false;
	if (j->operands[i] || o->optional)
		return true;
	return job_fail(j, "input %s has no variable", j->map->slots[i] ? j->map->slots[i] : o->name);
}

static bool slot_is_mapped(const OpJob *j, const char *name)
{
	for (int i = 0; i < j->info->noperand; i++)
		if (slot_in(j->map->slots[i], name))
			return true;
	return false;
}

// An input that the table does not know must not be dropped silently.
static bool check_slots(OpJob *j)
{
	bool ok = true;
	for (size_t i = 0; i < j->desc->n_inputs; i++) {
		const char *var = slot_var(j->desc->inputs[i], 0);
		if (var && !slot_is_mapped(j, j->desc->inputs[i]->parameter))
			ok = job_fail(j, "input %s (variable '%s') is not supported",
			              j->desc->inputs[i]->parameter, var);
	}
	return ok;
}

bool general_inputs(OpJob *j)
{
	bool ok = check_slots(j);
	for (int i = 0; i < j->info->noperand; i++)
		ok &= read_operand(j, i);
	return ok;
}

// ---- attributes -----------------------------------------------------------------------------

void job_set_attr(OpJob *j, const char *name, const Attr *a)
{
	for (int i = 0; i < j->nattr; i++) {
		if (strcmp(j->attrs[i].name, name) == 0) {
			j->attrs[i].attr = a;
			return;
		}
	}
	if (j->nattr < j->info->nattr)
		j->attrs[j->nattr++] = (NamedAttr){name, a};
}

const Attr *job_attr(const OpJob *j, const char *name)
{
	for (int i = 0; i < j->nattr; i++)
		if (strcmp(j->attrs[i].name, name) == 0)
			return j->attrs[i].attr;
	return NULL;
}

const Paddle__OpAttr *job_legacy_attr(const OpJob *j, const char *name)
{
	for (int i = 0; i < j->map->nattr; i++) {
		const Paddle__OpAttr *a = strcmp(j->map->attr_to[i], name) == 0
		                              ? attr_find(j->desc, j->map->attr_from[i])
		                              : NULL;
		if (a)
			return a;
	}
	return NULL;
}

// An attribute that names variables, of an operation that takes no such operand: fine where the
// program itself says what they hold.
static bool constant_attribute(OpJob *j, const AttrInfo *a, const Paddle__OpAttr *legacy)
{
	bool single = legacy->type == PADDLE__ATTR_KIND__VAR;
	size_t n = single ? (legacy->var_name ? 1 : 0) : legacy->n_vars_name;
	NumberList list = {0};
	for (size_t i = 0; i < n; i++) {
		Value *v = read_var(j, legacy->name, single ? legacy->var_name : legacy->vars_name[i]);
		if (!v)
			return false;
		bool known = numbers_of_value(j->t->c, v, &list);
		if (!known && n == 1 && axis_from_data(j, a, v))
			return true;
		if (!known)
			return job_fail(
				j,
				"attribute '%s' names a variable that is not known when the program is compiled: "
				"not supported",
				legacy->name);
	}
	const Attr *v = attr_from_numbers(j->t->c, a, &list);
	if (!v)
		return job_fail(j, "attribute '%s' names variables that do not fit pdcc's '%s'",
		                legacy->name, a->name);
	job_set_attr(j, a->name, v);
	return true;
}

bool general_attribute(OpJob *j, const AttrInfo *a, const Paddle__OpAttr *legacy)
{
	int64_t kind;
	bool variable = legacy->type == PADDLE__ATTR_KIND__VAR ||
	                legacy->type == PADDLE__ATTR_KIND__VARS;
	if (variable) // or the operand has it
		return (a->operand && job_operand(j, a->operand)) || constant_attribute(j, a, legacy);
	// A negative element type says: as the input.
	if (a->kind == ATTR_DTYPE && attr_int_at(legacy, 0, &kind) && kind < 0)
		return j->steps->missing ? j->steps->missing(j, a) : general_missing(j, a);
	const Attr *v = a->any_number ? attr_convert_number(j->t->c, legacy)
	                              : attr_convert(j->t->c, a->kind, legacy);
	if (!v)
		return job_fail(j, "attribute '%s' is %s, and its value does not fit pdcc's '%s'",
		                legacy->name, attr_kind_name(legacy->type), a->name);
	job_set_attr(j, a->name, v);
	return true;
}

bool general_missing(OpJob *j, const AttrInfo *a)
{
	if (a->fallback) {
		const Attr *v = attr_parse(j->t->c, a->kind, a->fallback);
		if (!v)
			return false;
		job_set_attr(j, a->name, v);
		return true;
	}
	if (!a->required || (a->operand && job_operand(j, a->operand)))
		return true;
	const char *legacy = a->name;
	for (int i = 0; i < j->map->nattr; i++)
		if (strcmp(j->map->attr_to[i], a->name) == 0)
			legacy = j->map->attr_from[i];
	return job_fail(j, "attribute '%s' is missing", legacy);
}

// Every attribute is read, known to be without effect, or refused.
static bool check_attributes(OpJob *j, const LegacyMap *map)
{
	bool ok = true;
	for (size_t i = 0; i < j->desc->n_attrs; i++) {
		const char *why = attr_objection(j->t->c, map, j->desc->attrs[i]);
		if (why)
			ok = job_fail(j, "%s", why);
	}
	return ok;
}

static bool translate_attributes(OpJob *j)
{
	bool ok = true;
	for (int i = 0; i < j->map->nset; i++) {
		const AttrInfo *a = op_info_attr(j->info, j->map->set_names[i]);
		const Attr *v = a ? attr_parse(j->t->c, a->kind, j->map->set_texts[i]) : NULL;
		if (!v)
			return job_fail(j, "the table sets '%s' wrongly", j->map->set_names[i]);
		job_set_attr(j, a->name, v);
	}
	for (int i = 0; i < j->info->nattr; i++) {
		const AttrInfo *a = &j->info->attrs[i];
		if (job_attr(j, a->name))
			continue;
		const Paddle__OpAttr *legacy = job_legacy_attr(j, a->name);
		if (legacy)
			ok &= (j->steps->attribute ? j->steps->attribute : general_attribute)(j, a, legacy);
		else
			ok &= (j->steps->missing ? j->steps->missing : general_missing)(j, a);
	}
	return ok;
}

// ---- results --------------------------------------------------------------------------------

bool general_create(OpJob *j)
{
	if (!axis_from_operand(j))
		return false;
	if (j->axis)
		return create_along_axis(j);
	// Trailing operands that are left out take no slot.
	int n = j->info->noperand;
	while (n > 0 && !j->operands[n - 1])
		n--;
	j->op = build_op(&j->b, j->info->code, n, j->operands, j->nattr, j->attrs);
	return j->op != NULL;
}

static const Paddle__OpSlot *output_slot(const OpJob *j, int result)
{
	const char *at = result < j->info->nresult ? j->map->outs[result] : NULL;
	char slot[128];
	while (next_slot(&at, slot, sizeof slot)) {
		const Paddle__OpSlot *s = slot_find(j->desc->n_outputs, j->desc->outputs, slot);
		if (s)
			return s;
	}
	return NULL;
}

const char *job_output(const OpJob *j, int result, size_t i)
{
	return slot_var(output_slot(j, result), i);
}

// One variable for each element of a vec.
static bool record_vec(OpJob *j, int result, Value *vec, const Paddle__OpSlot *s)
{
	Context *c = j->t->c;
	if ((size_t)vec->type->nelem != s->n_arguments)
		return job_fail(j, "output %s has %zu variables, but %d results", s->parameter,
		                s->n_arguments, vec->type->nelem);
	for (size_t i = 0; i < s->n_arguments; i++) {
		const char *var = slot_var(s, i);
		if (!var)
			continue;
		Value *v = build1(&j->b, OP_BUILTIN_SLICE, vec, "index", attr_int(c, (int64_t)i), NULL);
		if (!v || !lod_record_part(j, result, (int)i, v))
			return false;
		write_var(j, var, v);
	}
	return true;
}

bool general_record(OpJob *j)
{
	for (int i = 0; j->op && i < j->info->nresult; i++) {
		const Paddle__OpSlot *s = output_slot(j, i);
		Value *v = j->results ? j->results[i] : op_result(j->op, i);
		if (!s)
			continue;
		if (v->type->kind == TY_VEC) {
			if (!record_vec(j, i, v, s))
				return false;
			continue;
		}
		if (s->n_arguments > 1)
			return job_fail(j, "output %s has %zu variables; one is supported", s->parameter,
			                s->n_arguments);
		if (slot_var(s, 0))
			write_var(j, slot_var(s, 0), v);
	}
	return true;
}

static bool output_is_mapped(const OpJob *j, const char *name)
{
	for (int i = 0; i < j->info->nresult; i++)
		if (slot_in(j->map->outs[i], name))
			return true;
	return false;
}

// State that the operator changes, but our operation does not: fine only where it stays the same,
// as the running averages of a batch norm do outside training.
static bool check_state(OpJob *j)
{
	static const char *const frozen[] = {"is_test", "use_global_stats"};
	for (size_t i = 0; i < COUNT_OF(frozen); i++) {
		const Paddle__OpAttr *a = attr_find(j->desc, frozen[i]);
		int64_t on;
		if (a && attr_int_at(a, 0, &on) && on)
			return true;
	}
	for (size_t i = 0; i < j->desc->n_outputs; i++) {
		const Paddle__OpSlot *s = j->desc->outputs[i];
		const char *var = slot_var(s, 0);
		const Binding *b = var ? scope_find(j->t, var) : NULL;
		if (b && b->desc && var_is_state(b->desc) && !output_is_mapped(j, s->parameter))
			return job_fail(j, "output %s changes variable '%s': training is not supported",
			                s->parameter, var);
	}
	return true;
}

// ---- operators ------------------------------------------------------------------------------

static bool translate_fetch(OpJob *j)
{
	const char *var = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "X"), 0);
	const Paddle__OpAttr *a = attr_find(j->desc, "col");
	int64_t col = 0;
	if (!var)
		return job_fail(j, "fetches no variable");
	if (j->t->top)
		return job_fail(j, "fetches in a sub-block: not supported");
	if (a && !attr_int_at(a, 0, &col))
		return job_fail(j, "attribute 'col' is no integer");
	return fetch_translate(j, var, col);
}

bool general_translate(OpJob *j)
{
	// Both, so that everything unsupported is reported at once.
	bool inputs = (j->steps->inputs ? j->steps->inputs : general_inputs)(j);
	bool attrs = translate_attributes(j), state = j->steps->state || check_state(j);
	if (!inputs || !attrs || !state)
		return false;
	return (j->steps->create ? j->steps->create : general_create)(j) && (!j->op || lod_record(j)) &&
	       (j->steps->record ? j->steps->record : general_record)(j);
}

bool translate_as(OpJob *j, const char *type)
{
	static const OpSteps none = {0};
	j->info = op_info_by_legacy(type, &j->map);
	if (!j->info)
		return job_fail(j, "operator '%s' is not supported", type);
	j->steps = j->map->hook ? steps_find(j->map->hook) : &none;
	if (!j->steps)
		return job_fail(j, "the table names an unknown hook '%s'", j->map->hook);
	j->operands = NEW_ARRAY(j->t->c->arena, (size_t)j->info->noperand, Value *);
	j->attrs = NEW_ARRAY(j->t->c->arena, (size_t)j->info->nattr, NamedAttr);
	if (!check_attributes(j, j->map))
		return false;
	return j->steps->whole ? j->steps->whole(j) : general_translate(j);
}

bool translate_job(OpJob *j)
{
	const LegacyMap *map;
	if (!op_info_by_legacy(j->desc->type, &map) && gradient_is_known(j->b.ctx, j->desc->type))
		return gradient_translate(j);
	return translate_as(j, j->desc->type);
}

static OpJob job_new(Translator *t, int index, const Paddle__OpDesc *d)
{
	OpJob j = {.t = t, .desc = d};
	j.b = builder_at_end(t->c, t->block, op_loc(t, index, d));
	return j;
}

static void translate_op(Translator *t, int index)
{
	const Paddle__OpDesc *d = t->p->blocks[t->block_index]->ops[index];
	static const char *const port_reads[] = {"col", "deepcopy"};
	static const LegacyMap port = {.nread = COUNT_OF(port_reads), .reads = port_reads};
	OpJob j = job_new(t, index, d);
	trace_begin(&j);
	bool ok = !is_feed(d) && !is_fetch(d)    ? rows_may_be_read(&j) && translate_job(&j)
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

bool translate_ops(Translator *t)
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
				t->failed |= !fetch_translate(&j, var, col++);
			}
		}
	}
}

// One attempt; true when it must start over.
static bool translate_once(Translator *t)
{
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

Op *translate(Context *c, const Paddle__ProgramDesc *p, const TranslateOptions *o)
{
	if (!check_supported(c, p))
		return NULL;
	NameMap *memo = name_map_new(c->arena);
	for (int i = 0; i < MAX_RESTARTS; i++) {
		Translator t = {.c = c, .p = p, .o = o, .memo = memo};
		dim_restart(c);
		c->checks_sizes = true;
		bool again = translate_once(&t);
		c->checks_sizes = false;
		if (again) {
			if (t.misled)
				dim_forget(c);
			continue;
		}
		if (t.failed || !check_pins(&t))
			return NULL;
		size_facts_to_module(t.module);
		return t.module;
	}
	diag_error(c->diag, &(Loc){.file = c->file, .block = -1, .op = -1}, "its sizes do not settle");
	return NULL;
}
