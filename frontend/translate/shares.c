// share_data: a second name of one memory. Values do not change, so the two are one value until an
// operator writes either; what would read the other behind that is refused.
#include "frontend/job/flow.h"
#include "frontend/translate/steps.h"

#include <string.h>

static bool slots_have(size_t n, Paddle__OpSlot *const *slots, const char *var)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < slots[i]->n_arguments; k++)
			if (!strcmp(slots[i]->arguments[k], var))
				return true;
	return false;
}

static bool op_reads(Translator *t, const Paddle__OpDesc *d, const char *var)
{
	int block = sub_block(d);
	return slots_have(d->n_inputs, d->inputs, var) ||
	       (block > 0 && name_list_has(&flow_of(t, block)->exposed, var));
}

static bool op_writes(Translator *t, const Paddle__OpDesc *d, const char *var)
{
	int block = sub_block(d);
	return slots_have(d->n_outputs, d->outputs, var) ||
	       (block > 0 && name_list_has(&flow_of(t, block)->writes, var));
}

// Where operators behind this one in its block read one of the variables after the other was
// written; NULL: nowhere. A share_data to one of them parts the two.
static const Paddle__OpDesc *reads_written(Translator *t, const char *const *vars)
{
	const Paddle__BlockDesc *b = t->p->blocks[t->frame.block];
	bool written[2] = {false, false};
	for (size_t i = (size_t)t->frame.op + 1; i < b->n_ops; i++) {
		const Paddle__OpDesc *d = b->ops[i];
		for (int v = 0; v < 2; v++)
			if (written[!v] && op_reads(t, d, vars[v]))
				return d;
		for (int v = 0; v < 2; v++) {
			bool writes = op_writes(t, d, vars[v]);
			if (writes && !strcmp(d->type, b->ops[t->frame.op]->type))
				return NULL;
			written[v] |= writes;
		}
	}
	return NULL;
}

bool share_record(OpJob *j)
{
	const char *vars[] = {input_var(j, "X"), job_output(j, 0, 0)};
	if (!vars[0] || !vars[1] || !strcmp(vars[0], vars[1]))
		return assign_record(j);
	const Paddle__OpDesc *d = reads_written(j->t, vars);
	if (d)
		return job_fail(j,
		                "'%s' and '%s' are one memory, which is changed before '%s' reads it again",
		                vars[0], vars[1], d->type);
	return assign_record(j);
}
