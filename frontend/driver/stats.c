// Counting operators, parameters and multiply-accumulates.
#include "frontend/driver/stats.h"
#include "lower/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

// The sizes of a contraction's weights that each element of the result goes through.
static const Dim *depth_of(const Op *op, const Type *w)
{
	Context *c = op->ctx;
	const int last = w->rank - 1;
	switch (op->info->filter) {
	case FILTER_MATRIX:
		return w->rank < 2 ? dim_const(c, 1)
		                   : w->dims[op_bool(op, "transpose_b", op_bool(op, "transpose_y", false))
		                                 ? last
		                                 : last - 1];
	case FILTER_PANELS: return w->dims[last - 1];
	case FILTER_TRANSFORMED: return dim_mul(c, w->dims[1], w->dims[2]); // for a tile of results
	case FILTER_DOTS: // quads of bytes, pairs of i16
		return dim_mul(c, dims_product(c, last - 1, w->dims + 1),
		               dim_const(c, 4 / (int64_t)dtype_size(w->dtype)));
	default: return dims_product(c, last - (op->info->filter == FILTER_PACKED), w->dims + 1);
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
	const int64_t tile = op_int(op, "tile", 1);
	const Dim *macs = dim_mul(c, type_numel(c, each->type), depth_of(op, w->type));
	return op->info->filter == FILTER_TRANSFORMED ? dim_div(c, macs, dim_const(c, tile * tile))
	                                              : macs;
}

static int by_count(const void *a, const void *b)
{
	const OpCount *x = a, *y = b;
	return x->count != y->count ? y->count - x->count : strcmp(x->info->name, y->info->name);
}

// Where a walk is: how often a run gets there.
typedef struct Place {
	const Dim *times; // of a run, or of the round of the loop below
	const Op *open;   // the innermost loop around whose number of rounds a run finds; NULL: none
} Place;

static OpCount *count_of(Context *c, Stats *s, const OpInfo *info)
{
	for (int i = 0; i < s->nkind; i++) {
		if (s->ops[i].info == info)
			return &s->ops[i];
	}
	s->ops[s->nkind] = (OpCount){info, 0, dim_const(c, 0), dim_const(c, 0)};
	return &s->ops[s->nkind++];
}

static void count_op(Context *c, Stats *s, const Op *op, Place at)
{
	const Dim *macs = dim_mul(c, op_macs(op), at.times);
	OpCount *n = count_of(c, s, op->info);
	n->count++;
	s->nop++;
	const Dim **of_kind = at.open ? &n->round_macs : &n->macs;
	const Dim **of_all = at.open ? &s->round_macs : &s->macs;
	*of_kind = dim_add(c, *of_kind, macs);
	*of_all = dim_add(c, *of_all, macs);
}

// The rounds of a loop multiply what is in it, where they are known in front of it.
static Place place_inside(Context *c, const Op *op, Place at)
{
	if (op->code != OP_PD_WHILE)
		return at;
	const Dim *exact, *at_most;
	while_trip_count(c, op, &exact, &at_most);
	if (!exact || (at.open && dim_changes_in(exact, at.open)))
		return (Place){dim_const(c, 1), op};
	return (Place){dim_mul(c, at.times, exact), at.open};
}

// Ports, parameters and what ends a block are no operators.
static bool is_counted(const Op *op)
{
	return strncmp(op->info->name, "builtin.", 8) != 0 && op->code != OP_PD_FEED &&
	       op->code != OP_PD_FETCH && !(op->info->traits & TRAIT_TERMINATOR);
}

static void count_region(Context *c, Stats *s, const Region *r, Place at)
{
	for (const Op *op = r->first ? r->first->first : NULL; op; op = op->next) {
		if (is_counted(op))
			count_op(c, s, op, at);
		const Place inside = op->nregion ? place_inside(c, op, at) : at;
		for (int i = 0; i < op->nregion; i++)
			count_region(c, s, &op->regions[i], inside);
	}
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
	*s = (Stats){.macs = dim_const(c, 0), .round_macs = dim_const(c, 0)};
	s->ops = NEW_ARRAY(c->arena, OP_COUNT, OpCount);
	s->inputs = NEW_ARRAY(c->arena, total, PortStats);
	s->outputs = NEW_ARRAY(c->arena, total, PortStats);
	for (const Op *op = module->regions[0].first->first; op; op = op->next) {
		if (op->code == OP_PD_FEED)
			s->inputs[s->ninput++] = port_stats(op, &op->results[0]);
		else if (op->code == OP_PD_FETCH)
			s->outputs[s->noutput++] = port_stats(op, op_operand(op, 0));
	}
	count_region(c, s, &module->regions[0], (Place){dim_const(c, 1), NULL});
	qsort(s->ops, (size_t)s->nkind, sizeof *s->ops, by_count);
	qsort(s->inputs, (size_t)s->ninput, sizeof *s->inputs, by_column);
	qsort(s->outputs, (size_t)s->noutput, sizeof *s->outputs, by_column);
	param_each(c, count_parameter, s);
}
