// Counting operators, parameters and multiply-accumulates.
#include "stats.h"

#include <stdlib.h>
#include <string.h>

const Dim *op_macs(const Op *op)
{
	Context *c = op->ctx;
	const Dim *out = op->nresult ? type_numel(c, op->results[0].type) : dim_const(c, 0), *per = dim_const(c, 1);
	const Value *x = op_operand(op, 0), *w = op_operand(op, 1);
	if (op->info->kind != KIND_CONTRACT || !x || !w)
		return dim_const(c, 0);
	const Type *xt = x->type, *wt = w->type;
	if (op->code == OP_PD_CONV2D_TRANSPOSE || op->code == OP_PD_CONV3D_TRANSPOSE)
		out = type_numel(c, xt);
	bool conv = strstr(op->info->short_name, "conv") != NULL;
	if (conv) {
		// Weights are [out, in / groups, kernel...] (transposed: [in, out / groups, ...]): all but the first dim.
		for (int i = 1; i < wt->rank; i++)
			per = dim_mul(c, per, wt->dims[i]);
	} else if (strstr(op->info->short_name, "pool")) {
		return dim_const(c, 0);
	} else if (xt->rank) {
		bool transposed = op_bool(op, "transpose_x", false) && xt->rank > 1;
		per = xt->dims[xt->rank - (transposed ? 2 : 1)];
	}
	return dim_mul(c, out, per);
}

static int by_count(const void *a, const void *b)
{
	const OpCount *x = a, *y = b;
	return x->count != y->count ? y->count - x->count : strcmp(x->info->name, y->info->name);
}

static void count_op(Context *c, Stats *s, const Op *op)
{
	const Dim *macs = op_macs(op);
	s->macs = dim_add(c, s->macs, macs);
	int i = 0;
	while (i < s->nop && s->ops[i].info != op->info)
		i++;
	if (i == s->nop)
		s->ops[s->nop++] = (OpCount){op->info, 0, dim_const(c, 0)};
	s->ops[i].count++;
	s->ops[i].macs = dim_add(c, s->ops[i].macs, macs);
}

static void count_parameter(const char *name, Tensor *t, void *arg)
{
	Stats *s = arg;
	(void)name;
	s->nparam++;
	s->param_elements += tensor_numel(t);
	s->param_bytes += (int64_t)tensor_bytes(t);
}

static int by_column(const void *a, const void *b)
{
	const PortStats *x = a, *y = b;
	return (x->col > y->col) - (x->col < y->col);
}

static PortStats port_stats(const Op *op, const Value *v)
{
	return (PortStats){op_int(op, "col", 0), op_str(op, "name", "?"), v->type};
}

void stats_collect(Context *c, const Op *module, Stats *s)
{
	size_t total = 0;
	for (const Op *op = module->regions[0].first->first; op; op = op->next)
		total++;
	*s = (Stats){.macs = dim_const(c, 0)};
	s->ops = NEW_ARRAY(c->arena, total, OpCount);
	s->inputs = NEW_ARRAY(c->arena, total, PortStats);
	s->outputs = NEW_ARRAY(c->arena, total, PortStats);
	for (const Op *op = module->regions[0].first->first; op; op = op->next) {
		if (op->code == OP_PD_FEED)
			s->inputs[s->ninput++] = port_stats(op, &op->results[0]);
		else if (op->code == OP_PD_FETCH)
			s->outputs[s->noutput++] = port_stats(op, op_operand(op, 0));
		else if (op->info->kind != KIND_BUILTIN)
			count_op(c, s, op);
	}
	qsort(s->ops, (size_t)s->nop, sizeof *s->ops, by_count);
	qsort(s->inputs, (size_t)s->ninput, sizeof *s->inputs, by_column);
	qsort(s->outputs, (size_t)s->noutput, sizeof *s->outputs, by_column);
	param_each(c, count_parameter, s);
}
