// Operators of sequences whose slots do not say enough, and those on rank tables and on arrays with
// the steps of sequences, as the dynamic recurrent networks of Fluid use them. A rank table is a
// tensor whose LoD is that of the sequences in it. Called through the hooks in steps.c.
#include "frontend/control/control.h"
#include "frontend/job/array_types.h"
#include "frontend/job/general.h"
#include "frontend/job/lod.h"
#include "frontend/translate/steps.h"
#include "ir/build/build.h"
#include "ir/build/counted.h"

#include <string.h>

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
// where. Paddle leaves it out at those that it keeps for gradients alone.
bool batch_order_record(OpJob *j)
{
	Value *const levels[] = {op_result(j->op, 4), op_result(j->op, 5), op_result(j->op, 6)};
	const Lod *l = lod_new(j->t, COUNT_OF(levels), levels);
	for (int i = 0; i < 4; i++) {
		const char *name = j->op->info->results[i];
		const bool ordered = !strcmp(name, "batch_gate") || !strcmp(name, "batch_hidden");
		if (!strncmp(name, "batch_", 6))
			lod_set(j->t, op_result(j->op, i), ordered ? l : NULL);
	}
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

// What gets another LoD, and what it gets it from, if a variable says it.
static bool reset_read(OpJob *j, Value **x, Value **y)
{
	const char *in = input_var(j, "X"), *from = input_var(j, "Y");
	if (!in || !output_var(j, "Out"))
		return job_fail(j, "needs variables in X and Out");
	*x = read_var(j, "X", in);
	*y = from ? read_var(j, "Y", from) : NULL;
	if (!*x || (from && !*y))
		return false;
	return (type_is_tensor((*x)->type) && (*x)->type->rank) || job_fail(j, "input X has no rows");
}

bool lod_reset_translate(OpJob *j)
{
	const char *out = output_var(j, "Out");
	const Paddle__OpAttr *a = attr_find(j->desc, "append");
	int64_t append = 0;
	Value *x, *y;
	if (!reset_read(j, &x, &y))
		return false;
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

// ---- rank tables, arrays of steps ---------------------------------------------------------------

// The variable of an input slot; NULL after a diagnostic.
static Value *read_slot(OpJob *j, const char *slot)
{
	const char *var = input_var(j, slot);
	if (!var) {
		job_fail(j, "input %s has no variable", slot);
		return NULL;
	}
	return read_var(j, slot, var);
}

bool lod_rank_table_translate(OpJob *j)
{
	Value *x = read_slot(j, "X");
	const char *out = output_var(j, "Out");
	const Paddle__OpAttr *a = attr_find(j->desc, "level");
	const Lod *l = lod_of(j->t, x);
	int64_t level = 0;
	if (!x || !out)
		return x && job_fail(j, "output Out has no variable");
	if (a && !attr_int_at(a, 0, &level))
		return job_fail(j, "attribute 'level' is no integer");
	if (!l || level != l->n - 1)
		return job_fail(
			j, "the innermost level of LoD is needed: input X has %d, and level %d is asked for",
			l ? l->n : 0, (int)level);
	Value *table = build2(&j->b, OP_PD_LOD_RANK_TABLE, x, lod_offsets(j, l, -1), NULL);
	if (!table)
		return false;
	lod_set(j->t, table, l);
	write_var(j, out, table);
	return true;
}

// The rank table of slot RankTable, with its LoD.
static Value *read_table(OpJob *j, const Lod **l)
{
	Value *table = read_slot(j, "RankTable");
	*l = lod_of(j->t, table);
	if (!table || *l)
		return table;
	job_fail(j, "input RankTable is no rank table");
	return NULL;
}

// An array whose element t holds row t of all sequences that have one.
bool lod_tensor_to_array_translate(OpJob *j)
{
	const Lod *l;
	Value *x = read_slot(j, "X"), *table = x ? read_table(j, &l) : NULL;
	const char *out = output_var(j, "Out");
	if (!table || !out)
		return table && job_fail(j, "output Out has no variable");
	const Lod *own = lod_of(j->t, x);
	Value *array = read_var(j, "Out", out),
		  *count = build1(&j->b, OP_PD_MAX_SEQUENCE_LEN, table, NULL);
	CountedLoop loop;
	if (!array || !count || !count_begin(&loop, &j->b, count, false, 1, &array))
		return false;
	Value *const operands[] = {x, table, loop.at, lod_offsets(j, own ? own : l, -1)};
	Value *step = build(&loop.b, OP_PD_LOD_STEP, 4, operands, NULL);
	if (!step || !array_learn(j, out, step->type))
		return false;
	Value *const write[] = {loop.args[0], loop.at, step};
	Op *op = op_new(j->t->c, OP_PD_ARRAY_WRITE, j->b.loc, 1, &array->type, 3, write, 0, 0);
	op_append(loop.body, op);
	Value *next = op_result(op, 0);
	if (!count_end(&loop, &next))
		return false;
	write_var(j, out, count_result(&loop, 0));
	return true;
}

// The rows of all steps one after the other, and then where they belong.
bool array_to_lod_tensor_translate(OpJob *j)
{
	const Lod *l;
	Value *array = read_slot(j, "X"), *table = array ? read_table(j, &l) : NULL;
	const char *out = output_var(j, "Out");
	if (!table || !out)
		return table && job_fail(j, "output Out has no variable");
	if (!table->def || table->def->code != OP_PD_LOD_RANK_TABLE)
		return job_fail(j, "the rank table must be made outside of loops and branches");
	if (array->type->kind != TY_ARRAY)
		return job_fail(j, "input X is no tensor array");
	Value *rows = build1(&j->b, OP_PD_ARRAY_TO_TENSOR, array, "axis", attr_int(j->t->c, 0), NULL);
	Op *both = rows ? rows->def : NULL;
	Value *const operands[] = {both ? op_result(both, 0) : NULL, table, op_operand(table->def, 0),
	                           op_operand(table->def, 1)};
	Value *v = both ? build(&j->b, OP_PD_LOD_UNSTEP, 4, operands, NULL) : NULL;
	if (!v)
		return false;
	lod_set(j->t, v, l);
	write_var(j, out, v);
	return true;
}

bool split_lod_tensor_create(OpJob *j)
{
	if (lod_of(j->t, job_operand(j, "x")))
		return job_fail(j, "splitting whole sequences is not supported");
	return general_create(j);
}
