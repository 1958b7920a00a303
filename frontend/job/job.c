// One operator on its way: its slots, operands and attributes by the names of ours, errors at its
// place, and what it reads and writes. Below everything else of the translator.
#include "frontend/job/general.h"
#include "frontend/job/trace.h"
#include "ir/base/vec.h"

#include <string.h>

bool job_fail(OpJob *j, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	diag_verror(j->t->c->diag, j->b.loc, NULL, fmt, ap);
	va_end(ap);
	return false;
}

bool slot_in(const char *alternatives, const char *slot)
{
	size_t n = strlen(slot);
	for (const char *at = alternatives; at && *at; at += *at == '|') {
		size_t k = strcspn(at, "|");
		if (k == n && strncmp(at, slot, n) == 0)
			return true;
		at += k;
	}
	return false;
}

const char *input_var(const OpJob *j, const char *slot)
{
	return slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, slot), 0);
}

int64_t job_number(const OpJob *j, const char *attr, int64_t otherwise)
{
	const Paddle__OpAttr *a = attr_find(j->desc, attr);
	int64_t v;
	return a && attr_int_at(a, 0, &v) ? v : otherwise;
}

int job_outputs(OpJob *j, const char ***vars)
{
	const Paddle__OpDesc *d = j->desc;
	int n = 0, cap = 0;
	*vars = NULL;
	for (size_t s = 0; s < d->n_outputs; s++)
		for (size_t k = 0; k < d->outputs[s]->n_arguments; k++) {
			const char *var = slot_var(d->outputs[s], k);
			bool twice = !var;
			for (int i = 0; i < n; i++)
				twice = twice || !strcmp((*vars)[i], var);
			if (twice)
				continue;
			VEC_ROOM(j->t->c->arena, *vars, n, cap);
			(*vars)[n++] = var;
		}
	return n;
}

const char *output_var(const OpJob *j, const char *slot)
{
	return slot_var(slot_find(j->desc->n_outputs, j->desc->outputs, slot), 0);
}

Value *job_operand(const OpJob *j, const char *name)
{
	int i = op_info_operand(j->info, name);
	return i < 0 ? NULL : j->operands[i];
}

void job_set_operand(OpJob *j, const char *name, Value *v)
{
	int i = op_info_operand(j->info, name);
	if (i >= 0)
		j->operands[i] = v;
}

bool next_slot(const char **at, char *buf, size_t size)
{
	if (!*at || !**at)
		return false;
	size_t n = strcspn(*at, "|"), keep = n < size - 1 ? n : size - 1;
	memcpy(buf, *at, keep);
	buf[keep] = 0;
	*at += n;
	if (**at == '|')
		++*at;
	return true;
}

void job_set_attr(OpJob *j, const char *name, const Attr *a)
{
	for (int i = 0; i < j->nattr; i++) {
		if (strcmp(j->attrs[i].name, name) == 0) {
			j->attrs[i].attr = a;
			return;
		}
	}
	if (j->nattr < j->info->nattr)
		j->attrs[j->nattr++] = (NamedAttr){name, a};
}

const Attr *job_attr(const OpJob *j, const char *name)
{
	for (int i = 0; i < j->nattr; i++)
		if (strcmp(j->attrs[i].name, name) == 0)
			return j->attrs[i].attr;
	return NULL;
}

const Paddle__OpAttr *job_legacy_attr(const OpJob *j, const char *name)
{
	for (int i = 0; i < j->map->nattr; i++) {
		const Paddle__OpAttr *a = strcmp(j->map->attr_to[i], name) == 0
		                              ? attr_find(j->desc, j->map->attr_from[i])
		                              : NULL;
		if (a)
			return a;
	}
	return NULL;
}

const Paddle__OpSlot *output_slot(const OpJob *j, int result)
{
	const char *at = result < j->info->nresult ? j->map->outs[result] : NULL;
	char slot[128];
	while (next_slot(&at, slot, sizeof slot)) {
		const Paddle__OpSlot *s = slot_find(j->desc->n_outputs, j->desc->outputs, slot);
		if (s)
			return s;
	}
	return NULL;
}

const char *job_output(const OpJob *j, int result, size_t i)
{
	return slot_var(output_slot(j, result), i);
}

void trace_read(OpJob *j, const char *var, Value *v)
{
	for (TracedVar *r = j->trace ? j->trace->reads : NULL; r; r = r->next)
		if (!strcmp(r->var, var))
			return;
	if (!j->trace)
		return;
	TracedVar *r = NEW(j->t->c->arena, TracedVar);
	*r = (TracedVar){var, v, j->trace->reads};
	j->trace->reads = r;
}

void trace_write(OpJob *j, const char *var, Value *v)
{
	if (!j->trace)
		return;
	TracedVar *w = NEW(j->t->c->arena, TracedVar);
	*w = (TracedVar){var, v, j->trace->writes};
	j->trace->writes = w;
}

Value *traced_value(const TracedVar *list, const char *var)
{
	for (; list && var; list = list->next)
		if (!strcmp(list->var, var))
			return list->value;
	return NULL;
}

void trace_begin(OpJob *j)
{
	OpTrace *trace = NEW(j->t->c->arena, OpTrace);
	*trace = (OpTrace){.desc = j->desc, .block = j->t->block, .last = j->t->block->last};
	j->trace = trace;
}

void trace_end(OpJob *j)
{
	OpTrace *trace = j->trace;
	Op *last = trace->block->last;
	trace->first = trace->last ? trace->last->next : trace->block->first;
	trace->last = trace->first ? last : NULL;
	trace->before = j->t->traces;
	j->t->traces = trace;
}
