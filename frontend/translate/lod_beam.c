// Beam search: Fluid's, which hands its beams from step to step in the LoD of an array's elements,
// and gather_tree.
// Called through the hooks in steps.c.
#include "frontend/control/control.h"
#include "frontend/job/general.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "frontend/translate/steps.h"
#include "ir/build/build.h"
#include "ir/build/counted.h"
#include "ir/build/nest.h"

#include <string.h>

// ---- one step -----------------------------------------------------------------------------------

// The rows of each sequence of a level, counted through all levels below it.
static Value *rows_of_level(OpJob *j, const Lod *l, int level)
{
	Value *offsets = lod_offsets(j, l, level);
	for (int k = level + 1; k < l->n && offsets; k++)
		offsets = tensor_rows(&j->b, lod_offsets(j, l, k), offsets);
	return offsets;
}

bool beam_search_inputs(OpJob *j)
{
	const Paddle__OpAttr *a = attr_find(j->desc, "level");
	int64_t level = 0;
	if (!general_inputs(j))
		return false;
	const Lod *l = lod_of(j->t, job_operand(j, "scores"));
	if (a && !attr_int_at(a, 0, &level))
		return job_fail(j, "attribute 'level' is no integer");
	if (!l || level < 0 || level >= l->n)
		return job_fail(j, "input scores has no LoD level %d", (int)level);
	Value *rows = rows_of_level(j, l, (int)level);
	job_set_operand(j, "offsets", rows);
	return rows != NULL;
}

bool beam_search_record(OpJob *j)
{
	Value *const levels[] = {op_operand(j->op, op_info_operand(j->info, "offsets")),
	                         op_result(j->op, 3)};
	const Lod *l = lod_new(j->t, 2, levels);
	lod_set(j->t, op_result(j->op, 0), l);
	lod_set(j->t, op_result(j->op, 1), l);
	lod_set(j->t, op_result(j->op, 2), NULL);
	return general_record(j);
}

// ---- back through all steps ---------------------------------------------------------------------

typedef struct Backtrack {
	Value *ids, *scores; // arrays
	const Lod *lod;      // of the ids: arrays of offsets
	int64_t beam, end;
} Backtrack;

enum { AT, LENGTH, BEST, IDS, SCORES, TAKEN, CARRIED };

static Value *array_of(Builder *b, DType t, const Dim *const *dims)
{
	return undefined_value(b, type_shaped(b->ctx, TY_ARRAY, t, 2, dims));
}

static Value *array_add(Builder *b, Value *array, Value *at, Value *x)
{
	Value *const operands[] = {array, at, x};
	Op *op = op_new(b->ctx, OP_PD_ARRAY_WRITE, b->loc, 1, &array->type, 3, operands, 0, 0);
	op_append(b->block, op);
	return op_result(op, 0);
}

static Value *read_at(OpJob *j, Builder *b, Value *array, Value *at, int part)
{
	Builder with = *b;
	with.loc = lod_level_loc(j, part);
	return build2(&with, OP_PD_ARRAY_READ, array, at, NULL);
}

// What the steps carry before the last one: no sentences. `high`: offsets of one step.
static bool track_inits(const Backtrack *k, Builder *b, Value *high, Value **inits)
{
	Context *c = b->ctx;
	DType id = k->ids->type->dtype, score = k->scores->type->dtype;
	const NamedAttr attrs[] = {{"beam_size", attr_int(c, k->beam)},
	                           {"dtype", attr_dtype(c, score)}};
	Op *op = build_op(b, OP_PD_BEAM_START, 1, &high, 2, attrs);
	if (!op)
		return false;
	const Type *type = op->results[0].type;
	for (int i = AT; i <= BEST; i++)
		inits[i] = op_result(op, i);
	inits[IDS] = array_of(b, id, type->dims);
	inits[SCORES] = array_of(b, score, type->dims);
	inits[TAKEN] = array_of(b, DT_I64, type->dims);
	return true;
}

static bool track_step(OpJob *j, const Backtrack *k, CountedLoop *loop, Value **next)
{
	Builder *b = &loop->b;
	Value *const *args = loop->args, *step = loop->body->args[0];
	Value *const operands[] = {read_at(j, b, k->ids, loop->at, 2),
	                           read_at(j, b, k->scores, loop->at, 3),
	                           read_at(j, b, lod_offsets(j, k->lod, 0), loop->at, 0),
	                           read_at(j, b, lod_offsets(j, k->lod, 1), loop->at, 1),
	                           args[AT],
	                           args[LENGTH]};
	const NamedAttr end = {"end_id", attr_int(b->ctx, k->end)};
	for (int i = 0; i < 4; i++)
		if (!operands[i])
			return false;
	Op *op = build_op(b, OP_PD_BEAM_STEP, 6, operands, 1, &end);
	if (!op)
		return false;
	Value *id = op_result(op, 0), *score = op_result(op, 1), *taken = op_result(op, 2);
	// A sentence's first step counts, and none did before.
	Value *starts = build2(b, OP_PD_GREATER_THAN, taken, args[LENGTH], NULL);
	Value *const choice[] = {starts, score, args[BEST]};
	next[AT] = op_result(op, 3);
	next[LENGTH] = build2(b, OP_PD_ADD, args[LENGTH], taken, NULL);
	next[BEST] = starts ? build(b, OP_PD_WHERE, 3, choice, NULL) : NULL;
	next[IDS] = array_add(b, args[IDS], step, id);
	next[SCORES] = array_add(b, args[SCORES], step, score);
	next[TAKEN] = array_add(b, args[TAKEN], step, taken);
	return next[LENGTH] && next[BEST];
}

static bool track_finish(OpJob *j, const CountedLoop *loop)
{
	Value *operands[5] = {NULL, NULL, NULL, count_result(loop, LENGTH), count_result(loop, BEST)};
	for (int i = 0; i < 3; i++) {
		Builder b = j->b;
		b.loc = lod_level_loc(j, 4 + i);
		operands[i] = build1(&b, OP_PD_ARRAY_TO_TENSOR, count_result(loop, IDS + i), "axis",
		                     attr_int(b.ctx, 0), "use_stack", attr_bool(b.ctx, true), NULL);
		if (!operands[i])
			return false;
	}
	j->op = build_op(&j->b, OP_PD_BEAM_SENTENCES, 5, operands, 0, NULL);
	if (!j->op)
		return false;
	Value *const levels[] = {op_result(j->op, 2), op_result(j->op, 3)};
	for (int i = 0; i < 2; i++)
		lod_set(j->t, op_result(j->op, i), lod_new(j->t, 2, levels));
	return true;
}

static CountedLoop *named(CountedLoop *l)
{
	static const char *const roles[CARRIED] = {"at", "length", "best", "ids", "scores", "taken"};
	count_names(l, roles);
	return l;
}

static bool backtrack_read(OpJob *j, Backtrack *k)
{
	const char *ids = input_var(j, "Ids"), *scores = input_var(j, "Scores");
	const Paddle__OpAttr *beam = attr_find(j->desc, "beam_size"),
						 *end = attr_find(j->desc, "end_id");
	if (!ids || !scores || !beam || !attr_int_at(beam, 0, &k->beam) || k->beam < 1 || !end ||
	    !attr_int_at(end, 0, &k->end))
		return job_fail(j,
		                "needs variables in Ids and Scores, and attributes beam_size and end_id");
	k->ids = read_var(j, "Ids", ids);
	k->scores = k->ids ? read_var(j, "Scores", scores) : NULL;
	k->lod = lod_of(j->t, k->ids);
	if (!k->scores)
		return false;
	return (k->ids->type->kind == TY_ARRAY && k->scores->type->kind == TY_ARRAY && k->lod &&
	        k->lod->n == 2) ||
	       job_fail(j, "Ids and Scores must be arrays whose elements have two levels of LoD");
}

bool beam_search_decode_translate(OpJob *j)
{
	Value *inits[CARRIED], *next[CARRIED];
	Backtrack k = {0};
	CountedLoop loop;
	if (!backtrack_read(j, &k))
		return false;
	Value *first = read_at(j, &j->b, lod_offsets(j, k.lod, 0), build_number(&j->b, DT_I64, 1, 0),
	                       8);
	Value *count = build1(&j->b, OP_PD_ARRAY_LENGTH, k.ids, NULL);
	if (!first || !count)
		return false;
	if (!track_inits(&k, &j->b, first, inits) ||
	    !count_begin(&loop, &j->b, count, true, CARRIED, inits) ||
	    !track_step(j, &k, named(&loop), next) || !count_end(&loop, next) ||
	    !track_finish(j, &loop))
		return false;
	return general_record(j);
}

// ---- gather_tree: the beams of a search from their last step back, as a loop --------------------

// Every beam at the last step: 0, 1, 2 ... along the last axis, for every batch.
static Value *last_beams(Builder *b, const Type *t)
{
	Context *c = b->ctx;
	const int64_t axes[] = {0};
	Value *start = build_number(b, t->dtype, 0, 0), *step = build_number(b, t->dtype, 0, 1);
	Value *zeros = build_full(b, type_tensor(c, t->dtype, 2, t->dims + 1, 0), 0);
	Value *size = build_size(b, zeros, 1);
	Value *end = build1(b, OP_PD_CAST, size, "dtype", attr_dtype(c, t->dtype), NULL);
	Value *scalar = end ? build1(b, OP_PD_SQUEEZE, end, "axis", attr_ints(c, 1, axes), NULL) : NULL;
	Value *const bounds[] = {start, scalar, step};
	Value *beams = scalar ? build(b, OP_PD_ARANGE, 3, bounds, NULL) : NULL;
	return beams ? build2(b, OP_PD_ADD, zeros, beams, NULL) : NULL;
}

static bool has_three_axes(const Value *v)
{
	return type_is_tensor(v->type) && v->type->rank == 3;
}

static bool is_tree(const Value *ids, const Value *parents)
{
	return has_three_axes(ids) && dtype_is_int(ids->type->dtype) && has_three_axes(parents);
}

bool gather_tree_translate(OpJob *j)
{
	const char *i = input_var(j, "Ids");
	const char *p = input_var(j, "Parents");
	const char *out = output_var(j, "Out");
	if (!i || !p || !out)
		return job_fail(j, "needs variables in Ids, Parents and Out");
	Context *c = j->t->c;
	Value *ids = read_var(j, "Ids", i), *parents = ids ? read_var(j, "Parents", p) : NULL;
	if (!parents)
		return false;
	if (!is_tree(ids, parents))
		return job_fail(j, "Ids and Parents must be integers of three axes");
	Value *count = build_size(&j->b, ids, 0), *beams = last_beams(&j->b, parents->type);
	if (!count || !beams)
		return false;
	CountedLoop l;
	if (!count_begin(&l, &j->b, count, true, 2, (Value *const[]){beams, ids}))
		return false;
	const Attr *axis = attr_int(c, 1);
	count_name(&l, 0, "beams");
	count_name(&l, 1, "paths");
	Value *id = build_step(&l.b, ids, l.at), *parent = build_step(&l.b, parents, l.at);
	Value *picked = build2(&l.b, OP_PD_TAKE_ALONG_AXIS, id, l.args[0], "axis", axis, NULL);
	Value *above = build2(&l.b, OP_PD_TAKE_ALONG_AXIS, parent, l.args[0], "axis", axis, NULL);
	Value *path = picked ? build_set_step(&l.b, l.args[1], l.at, picked) : NULL;
	if (!above || !path || !count_end(&l, (Value *const[]){above, path}))
		return false;
	write_var(j, out, count_result(&l, 1));
	return true;
}
