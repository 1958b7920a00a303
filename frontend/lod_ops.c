// What operators do with LoD: which offsets they read, and which their results have. Called by translate.c for every
// operator that follows the general rules; operators of sequences whose slots are not enough stand here too.
#include "lod.h"

#include <string.h>

// ---- operands ---------------------------------------------------------------------------------

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

bool lod_operand(OpJob *j, int i, bool *ok)
{
	const OperandInfo *o = &j->info->operands[i];
	size_t n = lod_base(o->name);
	if (!n || j->map->slots[i])
		return false;
	Value *v = named_value(j, o->name, n);
	const Lod *l = lod_of(j->t, v);
	*ok = o->optional || l || !v;
	if (l)
		j->operands[i] = lod_offsets(j, l, -1);
	if (!*ok)
		job_fail(j, "'%.*s' has no LoD, which says where its sequences begin", (int)n, o->name);
	return true;
}

// ---- results ----------------------------------------------------------------------------------

typedef enum LodRule {
	LOD_SHARE, // the LoD of the first operand that has one for as many rows
	LOD_NONE,
	LOD_POP,   // that of the first operand without its innermost level
} LodRule;

static LodRule rule_of(const char *type)
{
	static const struct {
		const char *type;
		LodRule rule;
	} rules[] = {
		{"sequence_pool", LOD_POP},
	};
	for (size_t i = 0; i < COUNT_OF(rules); i++)
		if (!strcmp(rules[i].type, type))
			return rules[i].rule;
	return LOD_SHARE;
}

static bool same_rows(const Value *a, const Value *b)
{
	return type_is_tensor(a->type) && type_is_tensor(b->type) && a->type->rank && b->type->rank &&
	       a->type->dims[0] == b->type->dims[0];
}

static const Lod *shared_lod(const OpJob *j, const Value *result)
{
	for (int i = 0; i < j->info->noperand; i++) {
		Value *v = j->operands[i] ? named_value(j, j->info->operands[i].name, strlen(j->info->operands[i].name)) : NULL;
		const Lod *l = lod_of(j->t, v);
		if (l && same_rows(v, result))
			return l;
	}
	return NULL;
}

// Result `<out>_lod` holds the innermost offsets of result `out`.
static bool record_offsets(OpJob *j, int i)
{
	const char *name = j->info->results[i];
	size_t n = lod_base(name);
	for (int k = 0; n && k < j->info->nresult; k++)
		if (strlen(j->info->results[k]) == n && !strncmp(j->info->results[k], name, n))
			lod_set(j->t, op_result(j->op, k), lod_extend(j->t, NULL, 0, op_result(j->op, i)));
	return n > 0;
}

bool lod_record(OpJob *j)
{
	LodRule rule = rule_of(j->desc->type);
	for (int i = 0; i < j->op->nresult && i < j->info->nresult; i++) {
		Value *v = op_result(j->op, i);
		if (record_offsets(j, i) || lod_of(j->t, v))
			continue;
		const Lod *l = rule == LOD_NONE ? NULL : rule == LOD_POP ? lod_of(j->t, j->operands[0]) : shared_lod(j, v);
		if (l && rule == LOD_POP)
			l = lod_outer(j->t, l, l->n - 1);
		if (l)
			lod_set(j->t, v, l);
	}
	return true;
}
