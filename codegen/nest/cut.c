// A loop that reads far apart only as long as a size of the run allows ends there, and what is
// behind has a loop of its own: under a condition compilers gather such elements with masks, one by
// one for all that machines do, and clang takes twice as long as without. What lies side by side is
// read with a mask as fast. Called by nest.c.
#include "codegen/nest/nest.h"

#include <inttypes.h>

typedef struct Cut {
	const Value *pred; // index < limit
	const Value *by;   // index is the loop's and this; NULL: the loop's
	const Value *limit;
} Cut;

// Whether the innermost loop leaves v as it is.
static bool stays(const Nest *n, const Value *v)
{
	return nest_level(n, v) < n->nloop;
}

static bool cut_of_predicate(const Nest *n, const Value *pred, Cut *c)
{
	const Value *arg = n->loops[n->nloop - 1].arg;
	const Op *op = pred->def;
	if (!op || (op->code != OP_PD_LESS_THAN && op->code != OP_PD_GREATER_THAN))
		return false;
	const bool turned = op->code == OP_PD_GREATER_THAN;
	const Value *index = op_operand(op, turned);
	*c = (Cut){.pred = pred, .limit = op_operand(op, !turned)};
	if (index->type->kind != TY_INDEX || !stays(n, c->limit))
		return false;
	const Op *sum = index->def;
	for (int i = 0; index != arg && sum && sum->code == OP_PD_ADD && i < 2; i++)
		if (op_operand(sum, i) == arg)
			c->by = op_operand(sum, 1 - i);
	return index == arg || (c->by && stays(n, c->by));
}

static bool cut_find(const Nest *n, Cut *c)
{
	const Loop *loop = &n->loops[n->nloop - 1];
	bool found = false;
	if (n->k->cg->backend->device || loop->first || loop->end || loop->step || loop->only ||
	    n->s.nknown == (int)COUNT_OF(n->s.known) || nest_has_reductions(n))
		return false;
	for (const Op *op = n->body->first; op && !found; op = op->next)
		found = op->code == OP_LOOP_LOAD_OR && nest_needed(n, op) &&
		        scalars_known(&n->s, op_operand(op, 0)) < 0 && load_stride(op, loop->arg) == 2 &&
		        cut_of_predicate(n, op_operand(op, 0), c);
	return found;
}

// Where the first part of the loop ends, which a variable names unless it is known; NULL after a
// diagnostic.
static const char *cut_end(Nest *n, const Cut *c, const char *extent, int depth)
{
	const Loop *loop = &n->loops[n->nloop - 1];
	int64_t at;
	if (!c->by && index_constant(c->limit, &at) && dim_is_const(loop->extent)) {
		at = at < 0 ? 0 : at < loop->extent->value ? at : loop->extent->value;
		return arena_printf(n->k->arena, "%" PRId64, at);
	}
	const char *limit = scalars_name(&n->s, c->limit),
			   *by = c->by ? scalars_name(&n->s, c->by) : NULL;
	if (!limit || (c->by && !by))
		return NULL;
	const char *end = kernel_local(n->k, "end");
	text_line(n->out, depth, "const int64_t %s = pd_dim_min(pd_dim_max(%s%s%s, 0), %s);", end,
	          by ? limit : expression_unwrap(n->k->arena, limit), by ? " - " : "", by ? by : "",
	          extent);
	return end;
}

bool nest_cut_print(Nest *n, int depth, NestPrint *print, bool *done)
{
	Cut c = {0};
	Loop *loop = &n->loops[n->nloop - 1];
	*done = cut_find(n, &c);
	if (!*done)
		return true;
	const char *extent = expression_unwrap(n->k->arena, kernel_dim(n->k, loop->extent)),
			   *at = cut_end(n, &c, extent, depth);
	if (!at)
		return false;
	const int known = n->s.nknown++;
	bool ok = true;
	n->s.known[known] = c.pred;
	for (int part = 0; part < 2 && ok; part++) {
		n->s.known_value[known] = !part;
		loop->first = part ? at : "0";
		loop->end = part ? extent : at;
		nest_renew(n);
		ok = print(n, n->nloop - 1, depth);
	}
	loop->first = loop->end = NULL;
	n->s.nknown = known;
	nest_renew(n);
	return ok;
}
