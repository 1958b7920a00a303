// Operators that quantise: what their scales are while they are learnt. Used by steps.c.
#include "frontend/job/general.h"
#include "frontend/translate/steps.h"

#include <string.h>

bool quantize_translate(OpJob *j)
{
	const Paddle__OpAttr *a = attr_find(j->desc, "Shift");
	double shift = 0;
	if (a && !attr_float_at(a, 0, &shift))
		return job_fail(j, "attribute 'Shift' is no number");
	return job_number(j, "is_negative_input", 0) && shift == 0
	           ? j->t->hooks->as(j, "quantize.signed")
	           : general_translate(j);
}

bool moving_average_translate(OpJob *j)
{
	return job_number(j, "is_test", 0) ? j->t->hooks->as(j, "moving_average_abs_max_scale.observed")
	                                   : general_translate(j);
}

// The slots but for those of these names, and InScales, which has the variables of `more` (if it is
// not NULL).
static Paddle__OpSlot **slots_without(Context *c, size_t *n, Paddle__OpSlot *const *slots,
                                      const char *const *names, const Paddle__OpSlot *more)
{
	Paddle__OpSlot **list = NEW_ARRAY(c->arena, *n + 2, Paddle__OpSlot *);
	size_t kept = 0;
	for (size_t i = 0; i < *n; i++) {
		bool goes = false;
		for (size_t k = 0; names[k]; k++)
			goes |= !strcmp(slots[i]->parameter, names[k]);
		if (!goes)
			list[kept++] = slots[i];
	}
	if (more) {
		list[kept] = NEW(c->arena, Paddle__OpSlot);
		*list[kept] = *more;
		list[kept++]->parameter = "InScales";
	}
	*n = kept;
	return list;
}

// The operator as a row for training has it: without the scale that it had before. Of a range, what
// the window holds is read where it is written (InScales); scales of channels have no state.
static bool learn_scale(OpJob *j, const char *row, bool range, bool channels)
{
	static const char *const moving[] = {"InScale", "Scale", "ZeroPoint", NULL};
	static const char *const before[] = {"Scale",    "ZeroPoint", "InAccum", "InState",
	                                     "OutAccum", "OutState",  NULL};
	static const char *const none[] = {NULL};
	Context *c = j->t->c;
	const Paddle__OpDesc *whole = j->desc;
	Paddle__OpDesc *d = NEW(c->arena, Paddle__OpDesc);
	const Paddle__OpSlot *window = range ? slot_find(whole->n_outputs, whole->outputs, "OutScales")
	                                     : NULL;
	*d = *whole;
	d->inputs = slots_without(c, &d->n_inputs, whole->inputs,
	                          range      ? none
	                          : channels ? before
	                                     : moving,
	                          window);
	d->outputs = slots_without(c, &d->n_outputs, whole->outputs, channels ? before : none, NULL);
	j->desc = d;
	const bool done = j->t->hooks->as(j, row);
	j->desc = whole;
	return done;
}

bool quantize_training_translate(OpJob *j)
{
	const char *type = j->desc->type;
	const bool range = input_var(j, "Iter") != NULL, linear = !strcmp(type, "quantize_linear");
	const bool channels = linear && job_number(j, "quant_axis", 0) >= 0;
	if (job_number(j, "is_test", linear) || (!range && !input_var(j, "InAccum") && !channels))
		return general_translate(j);
	const char *row = arena_printf(j->t->c->arena, "%s.%s", type,
	                               channels ? "channels" : "training");
	return learn_scale(j, row, range, channels);
}
