// Counting operators, parameters and multiply-accumulates.
#include "frontend/driver/stats.h"

#include <stdlib.h>
#include <string.h>

// The sizes of a contraction's weights that each element of the result goes through.
static const Dim *depth_of(const Op *op, const Type *w)
{
	Context *c = op->ctx;
	const int last = w->rank - 1;
	const Dim *depth = dim_const(c, 1);
	switch (op->info->filter) {
	case FILTER_MATRIX:
		return w->rank < 2 ? depth
		                   : w->dims[op_bool(op, "transpose_b", op_bool(op, "transpose_y", false))
		                                 ? last
		                                 : last - 1];
	case FILTER_PANELS: return w->dims[last - 1];
	default:
		for (int i = 1; i < w->rank - (op->info->filter == FILTER_PACKED); i++)
			depth = dim_mul(c, depth, w->dims[i]);
		return depth;
	}
}

const Dim *op_macs(const Op *op)
{
	Context *c = op->ctx;
	const int named = op_info_operand(op->info, "filter");
	const Value *x = op_operand(op, 0), *w = op_operand(op, named < 0 ? 1 : named);
	if (op->info->filter == FILTER_NONE || !x || !w || !op->nresult || !type_is_tensor(w->type))
		return dim_const(c, 0);
	// A transposed convolution goes through its weights once for each element that comes in.
	const Value *each = op->info->filter == FILTER_IN ? x : &op->results[0];
	return dim_mul(c, type_numel(c, each->type), depth_of(op, w->type));
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
