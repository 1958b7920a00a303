// A sum over a window that reaches over the border counts nothing there: the loops of such a
// reduction begin and end at the border, and no term has a condition. Called by lanes.c.
#include "codegen/nest/nest.h"

#include <inttypes.h>
#include <string.h>

typedef struct Clip {
	Nest *n;
	const Value *pred;
	Loop *loops;
	int nloop;
	const char *first[MAX_RANK], *end[MAX_RANK];
} Clip;

// Whether v is a loop's index plus something that has a name in front of the loops, and no other
// loop's.
static bool shifted_index(const Clip *c, const Value *v, int *loop, const char **by)
{
	const Op *op = v->def;
	if (!op || op->code != OP_PD_ADD)
		return false;
	for (int i = 0; i < c->nloop; i++)
		for (int side = 0; side < 2; side++)
			if (op_operand(op, side) == c->loops[i].arg) {
				*by = pointer_map_get(&c->n->s.names, op_operand(op, 1 - side));
				*loop = i;
				return *by != NULL;
			}
	return false;
}

// A comparison of such an index with a constant: `less`: limit < index, else index < limit.
static bool limited_index(const Clip *c, const Op *op, int *loop, const char **by, bool *less,
                          int64_t *limit)
{
	bool or_equal = false;
	switch (op->code) {
	case OP_PD_LESS_THAN: *less = true; break;
	case OP_PD_LESS_EQUAL: *less = or_equal = true; break;
	case OP_PD_GREATER_THAN: *less = false; break;
	case OP_PD_GREATER_EQUAL:
		*less = false;
		or_equal = true;
		break;
	default: return false;
	}
	const Value *a = op_operand(op, 0), *b = op_operand(op, 1);
	if (a->type->kind != TY_INDEX)
		return false;
	if (index_constant(b, limit) && shifted_index(c, a, loop, by))
		*less = !*less;
	else if (!index_constant(a, limit) || !shifted_index(c, b, loop, by))
		return false;
	*limit += or_equal ? (*less ? -1 : 1) : 0;
	return true;
}

static bool comparison_clip(Clip *c, const Op *op)
{
	Arena *a = c->n->k->arena;
	const char *by;
	int loop;
	bool less;
	int64_t limit;
	if (!limited_index(c, op, &loop, &by, &less, &limit) || (less ? c->first : c->end)[loop])
		return false;
	if (less)
		c->first[loop] = arena_printf(a, "pd_dim_max(%" PRId64 " - %s, 0)", limit + 1, by);
	else
		c->end[loop] = arena_printf(
			a, "pd_dim_min(%" PRId64 " - %s, %s)", limit, by,
			expression_unwrap(a, kernel_dim(c->n->k, c->loops[loop].extent)));
	return true;
}

// Whether all that the predicate asks is where indices are.
static bool predicate_clip(Clip *c, const Value *pred)
{
	const Op *op = pred->def;
	if (scalars_known(&c->n->s, pred) == 1)
		return true;
	if (op && op->code == OP_PD_LOGICAL_AND)
		return predicate_clip(c, op_operand(op, 0)) && predicate_clip(c, op_operand(op, 1));
	return op && comparison_clip(c, op);
}

// The condition of what is added, where nothing is added otherwise.
static const Value *term_condition(Nest *n, const Op *reduce)
{
	const ReduceKind kind = reduce_kind(reduce);
	const Op *load = op_operand(block_terminator(reduce->regions[0].first), 0)->def;
	if ((kind != REDUCE_SUM && kind != REDUCE_PROD) || !load || load->code != OP_LOOP_LOAD_OR ||
	    load->block != reduce->regions[0].first || scalars_known(&n->s, op_operand(load, 0)) >= 0)
		return NULL;
	const Op *other = op_operand(load, 1)->def;
	if (!other || other->code != OP_LOOP_CONSTANT)
		return NULL;
	const char *constant = scalar_expression(&n->s, other);
	const char *neutral = reduce_neutral(&n->s, reduce, kind, reduce->results[0].type);
	return constant && neutral && !strcmp(constant, neutral) ? op_operand(load, 0) : NULL;
}

bool reduce_clip(Nest *n, const Op *reduce, Loop *loops, int nloop,
                 bool (*fixed)(Nest *n, const Value *v), int depth)
{
	Clip c = {.n = n, .loops = loops, .nloop = nloop};
	if (n->s.nknown == (int)COUNT_OF(n->s.known) || op_operand(reduce, 0) ||
	    nloop != op_attr(reduce, "extents")->n || n->k->cg->backend->device)
		return false;
	c.pred = term_condition(n, reduce);
	if (!c.pred || !fixed(n, c.pred) || !predicate_clip(&c, c.pred))
		return false;
	for (int i = 0; i < nloop; i++) {
		const char **parts[2] = {&c.first[i], &c.end[i]};
		for (int j = 0; j < 2; j++)
			if (*parts[j]) {
				const char *name = kernel_local(n->k, "v");
				text_line(n->out, depth, "const int64_t %s = %s;", name, *parts[j]);
				*parts[j] = name;
			}
		loops[i].first = c.first[i];
		loops[i].end = c.end[i] ? c.end[i]
		                        : expression_unwrap(n->k->arena, kernel_dim(n->k, loops[i].extent));
	}
	n->s.known[n->s.nknown] = c.pred;
	n->s.known_value[n->s.nknown++] = true;
	nest_renew(n);
	return true;
}
