// gather_tree: the beams of a search from their last step back, as a loop. Called through steps.c.
#include "frontend/translate/control.h"
#include "ir/build/build.h"

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

bool gather_tree_translate(OpJob *j)
{
	const char *i = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "Ids"), 0);
	const char *p = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "Parents"), 0);
	const char *out = slot_var(slot_find(j->desc->n_outputs, j->desc->outputs, "Out"), 0);
	if (!i || !p || !out)
		return job_fail(j, "needs variables in Ids, Parents and Out");
	Context *c = j->t->c;
	Value *ids = read_var(j, "Ids", i), *parents = ids ? read_var(j, "Parents", p) : NULL;
	if (!parents)
		return false;
	if (!type_is_tensor(ids->type) || ids->type->rank != 3 || !dtype_is_int(ids->type->dtype) ||
	    !type_is_tensor(parents->type) || parents->type->rank != 3)
		return job_fail(j, "Ids and Parents must be integers of three axes");
	Value *count = build_size(&j->b, ids, 0), *beams = last_beams(&j->b, parents->type);
	if (!count || !beams)
		return false;
	CountedLoop l;
	if (!count_begin(&l, &j->b, count, true, 2, (Value *const[]){beams, ids}))
		return false;
	const Attr *axis = attr_int(c, 1);
	Value *id = build_step(&l.b, ids, l.at), *parent = build_step(&l.b, parents, l.at);
	Value *picked = build2(&l.b, OP_PD_TAKE_ALONG_AXIS, id, l.args[0], "axis", axis, NULL);
	Value *above = build2(&l.b, OP_PD_TAKE_ALONG_AXIS, parent, l.args[0], "axis", axis, NULL);
	Value *path = picked ? build_set_step(&l.b, l.args[1], l.at, picked) : NULL;
	if (!above || !path || !count_end(&l, (Value *const[]){above, path}))
		return false;
	write_var(j, out, count_result(&l, 1));
	return true;
}
