// share_data, coalesce_tensor: a second name of one memory. Values do not change, so the two are
// one value until an operator writes either; what would read the other behind that is refused. No
// gradient goes through a share_data: it is what detach() leaves.
#include "frontend/job/flow.h"
#include "frontend/job/general.h"
#include "frontend/translate/steps.h"

#include <stdint.h>
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

// A set_value changes what it reads where others have that memory, too, whatever its result is
// called.
static bool sets_value_of(const Paddle__OpDesc *d, const char *var)
{
	const char *set = strcmp(d->type, "set_value")
	                      ? NULL
	                      : slot_var(slot_find(d->n_inputs, d->inputs, "Input"), 0);
	return set && !strcmp(set, var);
}

static bool op_writes(Translator *t, const Paddle__OpDesc *d, const char *var)
{
	int block = sub_block(d);
	return slots_have(d->n_outputs, d->outputs, var) || sets_value_of(d, var) ||
	       (block > 0 && name_list_has(&flow_of(t, block)->writes, var));
}

// Two names of one memory, and which of them have been written since they share it.
typedef struct Sharing {
	Translator *t;
	const char *const *vars;
	const Paddle__OpDesc *by;
	bool written[2], parted;
} Sharing;

// The operator, if it reads one of the variables after the other was written; of one that runs a
// block it may be in either order. A share_data to one of them parts the two.
static bool reads_written(Sharing *s, const Paddle__OpDesc *d)
{
	bool writes[2], reads[2];
	for (int v = 0; v < 2; v++) {
		writes[v] = op_writes(s->t, d, s->vars[v]);
		reads[v] = op_reads(s->t, d, s->vars[v]);
	}
	const bool block = sub_block(d) > 0;
	for (int v = 0; v < 2; v++)
		if (reads[v] && (s->written[!v] || (block && writes[!v])))
			return true;
	s->parted = (writes[0] || writes[1]) && !strcmp(d->type, s->by->type);
	s->written[0] |= writes[0];
	s->written[1] |= writes[1];
	return false;
}

// The first such operator of those of a block; NULL: none.
static const Paddle__OpDesc *find_read(Sharing *s, int block, size_t from, size_t to)
{
	const Paddle__BlockDesc *b = s->t->p->blocks[block];
	for (size_t i = from; i < to && i < b->n_ops && !s->parted; i++)
		if (reads_written(s, b->ops[i]))
			return b->ops[i];
	return NULL;
}

// The same of all that runs behind the operator at hand: in its block, in the next round where that
// is a loop's, and behind the blocks around it, as long as both variables are there.
static const Paddle__OpDesc *find_later_read(Sharing *s)
{
	const Frame *here = &s->t->frame;
	for (const Frame *f = here; f && !s->parted; f = f->outer) {
		const Paddle__OpDesc *d = find_read(s, f->block, (size_t)f->op + 1, SIZE_MAX);
		if (!d && f->later)
			d = find_read(s, f->later, 0, SIZE_MAX);
		Sharing again = *s; // another round, which may be none
		if (!d && f->loop)  // the operator itself included
			d = find_read(&again, f->block, 0, (size_t)f->op + (f == here));
		const NameMap *declared = flow_of(s->t, f->block)->declared;
		if (d || name_map_get(declared, s->vars[0]) || name_map_get(declared, s->vars[1]))
			return d;
	}
	return NULL;
}

bool share_record(OpJob *j)
{
	const char *vars[] = {input_var(j, "X"), job_output(j, 0, 0)};
	if (!vars[0] || !vars[1] || !strcmp(vars[0], vars[1]))
		return assign_record(j);
	Sharing s = {.t = j->t, .vars = vars, .by = j->desc};
	const Paddle__OpDesc *d = find_later_read(&s);
	if (d)
		return job_fail(j,
		                "'%s' and '%s' are one memory, which is changed before '%s' reads it again",
		                vars[0], vars[1], d->type);
	if (!j->operands[0] || !type_is_tensor(j->operands[0]->type))
		return assign_record(j);
	write_stopped(j, vars[1], j->operands[0]);
	return true;
}

// What coalesce_tensor lays behind one another stays what it is: a parameter that is written behind
// it would change the tensor of all, and the other way round.
bool coalesce_record(OpJob *j)
{
	const Paddle__BlockDesc *b = j->t->p->blocks[j->t->frame.block];
	for (size_t i = (size_t)j->t->frame.op + 1; i < b->n_ops; i++)
		for (size_t s = 0; s < j->desc->n_outputs; s++)
			for (size_t k = 0; k < j->desc->outputs[s]->n_arguments; k++)
				if (op_writes(j->t, b->ops[i], j->desc->outputs[s]->arguments[k]))
					return job_fail(j, "'%s' shares memory with others, and '%s' writes it later",
					                j->desc->outputs[s]->arguments[k], b->ops[i]->type);
	return general_record(j);
}
