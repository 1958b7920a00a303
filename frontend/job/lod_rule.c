// What operators do with LoD by the general rule: which offsets they read, and which their results
// and the elements of arrays have. Called by general.c for every operator.
#include "frontend/job/array_types.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "ir/build/build.h"

#include <string.h>

// ---- operands -----------------------------------------------------------------------------------

// The length of the name in front of `_lod`; 0: the name does not end so.
static size_t lod_base(const char *name)
{
	size_t n = strlen(name), end = sizeof "_lod" - 1;
	return n > end && !strcmp(name + n - end, "_lod") ? n - end : 0;
}

// The value that operand or list `name[0, n)` of the operation begins with.
static Value *named_value(const OpJob *j, const char *name, size_t n)
{
	Value *v = job_operand(j, arena_strndup(j->t->c->arena, name, n));
	return v && v->def && v->def->code == OP_BUILTIN_COMBINE ? op_operand(v->def, 0) : v;
}

// The level that operand `<x>_lod` means: the innermost, unless the operator says which.
static int wanted_level(const OpJob *j, const char *operand)
{
	const Paddle__OpAttr *a = attr_find(j->desc, "ref_level");
	int64_t level = -1;
	if (a && !strcmp(operand, "y_lod") && attr_int_at(a, 0, &level))
		return (int)level;
	return strcmp(j->desc->type, "sequence_expand_as") ? -1 : 0;
}

static Value *offsets_of(OpJob *j, Value *v, const char *operand)
{
	const Lod *l = lod_of(j->t, v);
	int level = wanted_level(j, operand);
	return l && level < l->n && level >= -l->n ? lod_offsets(j, l, level) : NULL;
}

// A list of inputs has a list of offsets.
static Value *offsets_of_list(OpJob *j, Value *list, const char *operand)
{
	Op *def = list->def;
	Value **offsets = NEW_ARRAY(j->t->c->arena, (size_t)def->noperand + 1, Value *);
	for (int i = 0; i < def->noperand; i++)
		if (!(offsets[i] = offsets_of(j, op_operand(def, i), operand)))
			return NULL;
	return build(&j->b, OP_BUILTIN_COMBINE, def->noperand, offsets, NULL);
}

bool lod_operand(OpJob *j, int i, bool *ok)
{
	const OperandInfo *o = &j->info->operands[i];
	size_t n = lod_base(o->name);
	if (!n || j->map->slots[i])
		return false;
	Value *v = job_operand(j, arena_strndup(j->t->c->arena, o->name, n));
	if (v)
		j->operands[i] = o->vec ? offsets_of_list(j, v, o->name) : offsets_of(j, v, o->name);
	*ok = o->optional || !v || j->operands[i];
	if (!*ok)
		job_fail(j, "input '%.*s' has no LoD that says where its sequences begin", (int)n, o->name);
	return true;
}

// ---- results ------------------------------------------------------------------------------------

// An operation may have results that only say something when it reads LoD.
static bool gives_offsets(const OpJob *j)
{
	for (int i = 0; j->map->lod == LOD_GIVEN && i < j->info->noperand; i++) {
		const OperandInfo *o = &j->info->operands[i];
		if (o->optional && lod_base(o->name))
			return job_operand(j, o->name) != NULL;
	}
	return j->map->lod != LOD_NONE;
}

static LodKind rule_of(const OpJob *j)
{
	return gives_offsets(j) ? j->map->lod : LOD_NONE;
}

static bool same_rows(const Value *a, const Value *b)
{
	return type_is_tensor(a->type) && type_is_tensor(b->type) && a->type->rank && b->type->rank &&
	       a->type->dims[0] == b->type->dims[0];
}

static const Lod *shared_lod(const OpJob *j, const Value *result)
{
	for (int i = 0; i < j->info->noperand; i++) {
		Value *v = j->operands[i] ? named_value(j, j->info->operands[i].name,
		                                        strlen(j->info->operands[i].name))
		                          : NULL;
		const Lod *l = lod_of(j->t, v);
		if (l && same_rows(v, result))
			return l;
	}
	for (int i = 0; i < j->op->nresult; i++) {
		const Lod *l = lod_of(j->t, op_result(j->op, i));
		if (l && same_rows(op_result(j->op, i), result))
			return l;
	}
	return NULL;
}

// Result `<out>_lod` holds the innermost offsets of result `out`.
static void record_offsets(OpJob *j, int i)
{
	const char *name = j->info->results[i];
	size_t n = lod_base(name);
	bool vec = op_result(j->op, i)->type->kind == TY_VEC; // lod_record_part
	for (int k = 0; n && !vec && gives_offsets(j) && k < j->info->nresult; k++)
		if (strlen(j->info->results[k]) == n && !strncmp(j->info->results[k], name, n))
			lod_set(j->t, op_result(j->op, k), lod_extend(j->t, NULL, 0, op_result(j->op, i)));
}

// The LoD of a result that the operation gives no offsets for.
static const Lod *lod_by_rule(const OpJob *j, LodKind rule, const Value *result)
{
	const Lod *l;
	switch (rule) {
	case LOD_SHARE:
	case LOD_GIVEN: return shared_lod(j, result);
	case LOD_POP: l = lod_of(j->t, j->operands[0]); return l ? lod_outer(j->t, l, l->n - 1) : NULL;
	case LOD_Y: return lod_of(j->t, job_operand(j, "y"));
	default: return NULL;
	}
}

// Rows of several tensors one behind the other have the sequences of all of them.
static bool concat_record(OpJob *j)
{
	Value *x = op_operand(j->op, 0), *const * list, **offsets;
	int n = op_operand_list(j->op, 0, &list);
	const Lod *first = lod_of(j->t, list[0]), *joined = NULL;
	offsets = NEW_ARRAY(j->t->c->arena, (size_t)n, Value *);
	for (int i = 0; first && i < n; i++)
		if (!lod_of(j->t, list[i]) || lod_of(j->t, list[i])->n != first->n)
			first = NULL;
	for (int k = 0; first && x && k < first->n; k++) {
		for (int i = 0; i < n; i++)
			offsets[i] = lod_offsets(j, lod_of(j->t, list[i]), k);
		Value *all = build(&j->b, OP_BUILTIN_COMBINE, n, offsets, NULL);
		all = all ? build1(&j->b, OP_PD_LOD_CONCAT, all, NULL) : NULL;
		if (!all)
			return false;
		joined = lod_extend(j->t, joined, k, all);
	}
	lod_set(j->t, op_result(j->op, 0), joined);
	return true;
}

// ---- elements of arrays -------------------------------------------------------------------------

const Loc *lod_level_loc(OpJob *j, int k)
{
	Loc l = *j->b.loc;
	l.slot = context_str(j->t->c, arena_printf(j->t->c->arena, "lod%d", k));
	return context_loc(j->t->c, &l);
}

const char *lod_level_name(Translator *t, const char *var, int k)
{
	return context_str(t->c, arena_printf(t->c->arena, "%s.lod%d", var, k));
}

bool lod_array_write(OpJob *j, const char *var, Value *before, Value *at, Value *element,
                     Value *after)
{
	Translator *t = j->t;
	const Lod *l = lod_of(t, element), *had = lod_of(t, before), *now = NULL;
	for (int k = 0; l && k < l->n; k++) {
		Value *offsets = lod_offsets(j, l, k);
		const Type *type = array_level_type(t, lod_level_name(t, var, k), offsets->type);
		Value *array = had && k < had->n ? lod_offsets(j, had, k) : undefined_value(&j->b, type);
		Value *const operands[] = {array, at, offsets};
		Op *op = op_new(t->c, OP_PD_ARRAY_WRITE, lod_level_loc(j, k), 1, &type, 3, operands, 0, 0);
		op_append(t->block, op);
		op_result(op, 0)->name = lod_level_name(t, var, k);
		now = lod_extend(t, now, k, op_result(op, 0));
	}
	lod_set(t, after, now);
	return true;
}

bool lod_array_read(OpJob *j, Value *array, Value *at, Value *element)
{
	const Lod *l = lod_of(j->t, array), *now = NULL;
	for (int k = 0; l && k < l->n; k++) {
		Builder b = j->b;
		b.loc = lod_level_loc(j, k);
		Value *offsets = build2(&b, OP_PD_ARRAY_READ, lod_offsets(j, l, k), at, NULL);
		if (!offsets)
			return false;
		now = lod_extend(j->t, now, k, offsets);
	}
	lod_set(j->t, element, now);
	return true;
}

// ---- after an operator --------------------------------------------------------------------------

bool lod_record(OpJob *j)
{
	const LodKind rule = rule_of(j);
	if (j->op->code == OP_PD_CONCAT && op_int(j->op, "axis", 0) == 0)
		return concat_record(j);
	if (j->op->code == OP_PD_ARRAY_READ)
		return lod_array_read(j, op_operand(j->op, 0), op_operand(j->op, 1), op_result(j->op, 0));
	for (int i = 0; i < j->op->nresult && i < j->info->nresult; i++)
		record_offsets(j, i);
	for (int i = 0; i < j->op->nresult && i < j->info->nresult; i++) {
		Value *v = op_result(j->op, i);
		if (!lod_base(j->info->results[i]) && !lod_of(j->t, v))
			lod_set(j->t, v, lod_by_rule(j, rule, v));
	}
	return true;
}

// Element i of a result that is a list: its offsets are element i of the list of that name and
// `_lod`; without one it has LoD as any result.
bool lod_record_part(OpJob *j, int result, int i, Value *part)
{
	const char *name = j->info->results[result];
	size_t n = strlen(name);
	for (int k = 0; k < j->info->nresult; k++) {
		Value *lists = op_result(j->op, k);
		if (lod_base(j->info->results[k]) != n || strncmp(j->info->results[k], name, n) ||
		    lists->type->kind != TY_VEC)
			continue;
		Value *offsets = build1(&j->b, OP_BUILTIN_SLICE, lists, "index", attr_int(j->t->c, i),
		                        NULL);
		if (!offsets)
			return false;
		lod_set(j->t, part, lod_extend(j->t, NULL, 0, offsets));
	}
	if (!lod_of(j->t, part))
		lod_set(j->t, part, lod_by_rule(j, rule_of(j), part));
	return true;
}
