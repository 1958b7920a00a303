// What operators do with LoD: which offsets they read, and which their results have. Called by
// translate.c for every operator that follows the general rules; operators of sequences whose slots
// are not enough stand here too.
#include "frontend/translate/lod.h"
#include "ir/build/build.h"

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

// ---- results ----------------------------------------------------------------------------------

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

bool lod_record(OpJob *j)
{
	const LodKind rule = gives_offsets(j) ? j->map->lod : LOD_NONE;
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
// `_lod`.
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
	return true;
}

// ---- operators that need more than that --------------------------------------------------------

// As many sequences as the level has lengths: those of the next level, or the rows.
bool sequence_expand_create(OpJob *j)
{
	Value *y = job_operand(j, "y");
	const Lod *l = lod_of(j->t, y);
	const Attr *a = job_attr(j, "ref_level");
	int level = a ? (int)a->i : -1;
	level = level < 0 && l ? level + l->n : level;
	if (!l || level < 0 || level >= l->n)
		return job_fail(j, "input Y has no LoD level %d", level);
	const Dim *total = y->type->dims[0];
	if (level + 1 < l->n)
		total = lod_count(j, l, level + 1);
	job_set_attr(j, "total", attr_dim(j->t->c, total));
	return general_create(j);
}

// Results step by step, whose LoD says how: where steps begin, and which row and which sequence is
// where.
bool batch_order_record(OpJob *j)
{
	Value *const levels[] = {op_result(j->op, 4), op_result(j->op, 5), op_result(j->op, 6)};
	const Lod *l = lod_new(j->t, COUNT_OF(levels), levels);
	lod_set(j->t, op_result(j->op, 1), l);
	lod_set(j->t, op_result(j->op, 3), l);
	lod_set(j->t, op_result(j->op, 2), NULL);
	return general_record(j);
}

// The same value under another name, so that it can have another LoD.
static Value *renamed(OpJob *j, Value *x)
{
	return build1(&j->b, OP_PD_RESHAPE, x, "shape",
	              attr_dims(j->t->c, x->type->rank, x->type->dims), NULL);
}

// Offsets from attribute target_lod, or from the numbers in y.
static Value *given_offsets(OpJob *j, Value *x, Value *y)
{
	const Paddle__OpAttr *a = attr_find(j->desc, "target_lod");
	int64_t n = a ? attr_count(a) : 0;
	if (y)
		return build2(&j->b, OP_PD_LOD_OFFSETS, x, y, NULL);
	if (n < 2) {
		job_fail(j, "has neither Y nor offsets in attribute 'target_lod'");
		return NULL;
	}
	Tensor *t = tensor_new(j->t->c->arena, DT_I64, 1, &n);
	for (int i = 0; t && i < n; i++) {
		int64_t v;
		if (!attr_int_at(a, i, &v) || v < (i ? tensor_get_i(t, i - 1) : 0) || (!i && v)) {
			job_fail(j, "attribute 'target_lod' must begin with 0 and not fall");
			return NULL;
		}
		tensor_set_i(t, i, v);
	}
	return t ? build_constant(&j->b, t) : NULL;
}

bool lod_reset_translate(OpJob *j)
{
	const char *in = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "X"), 0);
	const char *from = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "Y"), 0);
	const char *out = slot_var(slot_find(j->desc->n_outputs, j->desc->outputs, "Out"), 0);
	const Paddle__OpAttr *a = attr_find(j->desc, "append");
	int64_t append = 0;
	if (!in || !out)
		return job_fail(j, "needs variables in X and Out");
	Value *x = read_var(j, "X", in), *y = from ? read_var(j, "Y", from) : NULL;
	if (!x || (from && !y))
		return false;
	if (!type_is_tensor(x->type) || !x->type->rank)
		return job_fail(j, "input X has no rows");
	if (a && !attr_int_at(a, 0, &append))
		return job_fail(j, "attribute 'append' is no bool");
	const Lod *own = append ? lod_of(j->t, x) : NULL, *l = lod_of(j->t, y);
	Value *offsets = l ? NULL : given_offsets(j, x, y), *v = l || offsets ? renamed(j, x) : NULL;
	if (!v)
		return false;
	if (own && own->n == MAX_LOD)
		return job_fail(j, "more than %d levels of LoD", MAX_LOD);
	lod_set(j->t, v, l ? l : lod_extend(j->t, own, own ? own->n : 0, offsets));
	write_var(j, out, v);
	return true;
}
