// What operators give besides their results: means that a normalisation divides by, residuals of a
// loss. Few programs read them, so they are no results of the operation, but those of another one,
// which the table names OPERATOR.besides: it takes operands and attributes of the same names.
#include "frontend/job/general.h"
#include "ir/build/build.h"

#include <string.h>

// Whether d reads this slot. A gradient operator is given more of its forward operator than its
// gradient is made of.
static bool slot_is_read(const Paddle__OpDesc *d, const char *slot)
{
	const LegacyMap *map = NULL;
	const OpInfo *info = op_info_by_legacy(d->type, &map);
	if (!info) {
		const char *end = strstr(d->type, "_grad");
		return !end || (end[5] && strcmp(end + 5, "_grad") != 0);
	}
	bool read = map->hook != NULL;
	for (int i = 0; !read && i < info->noperand; i++)
		read = slot_in(map->slots[i], slot);
	return read;
}

// The variables that operators of any block read. Attributes may name some, too.
static NameMap *variables_read(Translator *t)
{
	NameMap *read = name_map_new(t->c->arena);
	for (size_t b = 0; b < t->p->n_blocks; b++)
		for (size_t i = 0; i < t->p->blocks[b]->n_ops; i++) {
			const Paddle__OpDesc *d = t->p->blocks[b]->ops[i];
			for (size_t s = 0; s < d->n_inputs; s++)
				for (size_t k = 0; k < d->inputs[s]->n_arguments; k++)
					if (slot_is_read(d, d->inputs[s]->parameter))
						name_map_set(read, d->inputs[s]->arguments[k], read);
			for (size_t a = 0; a < d->n_attrs; a++) {
				if (d->attrs[a]->var_name)
					name_map_set(read, d->attrs[a]->var_name, read);
				for (size_t k = 0; k < d->attrs[a]->n_vars_name; k++)
					name_map_set(read, d->attrs[a]->vars_name[k], read);
			}
		}
	return read;
}

// The variable of result i of the row `map`, if somebody reads it.
static const char *wanted(OpJob *j, const LegacyMap *map, int i)
{
	const char *var = map->outs[i] ? output_var(j, map->outs[i]) : NULL;
	if (var && !j->t->read)
		j->t->read = variables_read(j->t);
	return var && name_map_get(j->t->read, var) ? var : NULL;
}

static Op *besides_create(OpJob *j, const OpInfo *info)
{
	Value **operands = NEW_ARRAY(j->t->c->arena, (size_t)info->noperand + 1, Value *);
	NamedAttr *attrs = NEW_ARRAY(j->t->c->arena, (size_t)info->nattr + 1, NamedAttr);
	int n = 0;
	for (int i = 0; i < info->noperand; i++)
		operands[i] = job_operand(j, info->operands[i].name);
	for (int i = 0; i < info->nattr; i++) {
		const Attr *a = job_attr(j, info->attrs[i].name);
		if (a)
			attrs[n++] = (NamedAttr){info->attrs[i].name, a};
	}
	return build_op(&j->b, info->code, info->noperand, operands, n, attrs);
}

bool besides_record(OpJob *j)
{
	const LegacyMap *map;
	const OpInfo *info = op_info_by_legacy(
		arena_printf(j->t->c->arena, "%s.besides", j->desc->type), &map);
	Op *op = NULL;
	for (int i = 0; info && i < info->nresult; i++) {
		const char *var = wanted(j, map, i);
		if (!var)
			continue;
		if (!op && !(op = besides_create(j, info)))
			return false;
		write_var(j, var, op_result(op, i));
	}
	return true;
}
