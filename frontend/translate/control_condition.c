// The condition of a loop. The program computes it twice: before the loop on the first values of
// the loop variables, and at the end of the body on the next ones. When both are one computation,
// the region `cond` of pd.while does it on its arguments, and the copies are dead. Of a condition
// that comes back with several elements Paddle looks at the first one. Used by control_while.c.
#include "frontend/translate/control.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"

#include <string.h>

enum { MAX_STEPS = 512 }; // values looked at; more is not worth it

typedef struct Matcher {
	OpJob *j;
	const Op *loop;
	Block *cond, *body;
	int nvar; // without the condition
	Value *const *next;
	int steps;
} Matcher;

// The loop variable that holds `init` at first and `next` afterwards; -1: none.
static int find_var(const Matcher *m, const Value *init, const Value *next)
{
	for (int i = 0; i < m->nvar; i++)
		if (op_operand(m->loop, i) == init && m->next[i] == next)
			return i;
	return -1;
}

static bool inside_body(const Matcher *m, const Value *v)
{
	const Block *b = v->def ? v->def->block : v->block;
	while (b && b != m->body)
		b = b->region->op->block;
	return b != NULL;
}

static bool same_operation(const Op *a, const Op *b)
{
	return a && b && a->code == b->code && (a->info->traits & TRAIT_PURE) && !a->nregion &&
	       !b->nregion && a->noperand == b->noperand && op_attrs_equal(a, b);
}

// Whether `init` and `next` are one computation on the loop variables.
static bool match(Matcher *m, const Value *init, const Value *next)
{
	if (++m->steps > MAX_STEPS)
		return false;
	if (find_var(m, init, next) >= 0 || (init == next && !inside_body(m, init)))
		return true;
	if (!same_operation(init->def, next->def) || init->index != next->index)
		return false;
	for (int i = 0; i < init->def->noperand; i++) {
		const Value *a = op_operand(init->def, i), *b = op_operand(next->def, i);
		if (a != b && (!a || !b))
			return false;
		if (a && !match(m, a, b))
			return false;
	}
	return true;
}

// Computes what match found, on the arguments of the region. NULL when inference fails.
static Value *rebuild(Matcher *m, Builder *b, ValueMap *map, Value *init, Value *next)
{
	int var = find_var(m, init, next);
	if (var >= 0)
		return m->cond->args[var];
	if (init == next && !inside_body(m, init))
		return init;
	Value *have = value_map_get(map, next);
	if (have != next)
		return have;
	Op *op = init->def;
	Value **operands = NEW_ARRAY(b->ctx->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->noperand; i++) {
		Value *x = op_operand(op, i);
		operands[i] = x ? rebuild(m, b, map, x, op_operand(next->def, i)) : NULL;
		if (x && !operands[i])
			return NULL;
	}
	b->loc = op->loc;
	Op *copy = build_op(b, op->code, op->noperand, operands, op->nattr, op->attrs);
	if (!copy)
		return NULL;
	Value *v = op_result(copy, (int)init->index);
	v->name = init->name;
	v->stop_gradient = init->stop_gradient;
	value_map_set(map, next, v);
	return v;
}

bool condition_build(OpJob *j, Op *loop, int nvar, Value *const *next, Value **cond)
{
	Context *c = j->t->c;
	Matcher m = {.j = j,
	             .loop = loop,
	             .cond = region_entry(&loop->regions[0]),
	             .body = region_entry(&loop->regions[1]),
	             .nvar = nvar - 1,
	             .next = next};
	Value *init = op_operand(loop, nvar - 1);
	if (!match(&m, init, next[nvar - 1]))
		return false;
	DiagMark mark = diag_mark(c->diag);
	Builder b = builder_at_end(c, m.cond, loop->loc);
	*cond = rebuild(&m, &b, value_map_new(c->arena), init, next[nvar - 1]);
	if (*cond)
		return true;
	// The arguments have types that the computation does not take: carry its result instead.
	diag_rewind(c->diag, mark);
	while (m.cond->last)
		op_erase(m.cond->last);
	return false;
}

Value *condition_first(OpJob *j, Block *body, Value *next, const Type *like)
{
	int64_t n;
	const bool bools = type_is_tensor(next->type) && next->type->dtype == DT_BOOL;
	if (next->type == like || !bools || (type_const_numel(next->type, &n) && n == 1))
		return next;
	Context *c = j->t->c;
	Builder b = builder_at_end(c, body, j->b.loc);
	const Dim *numel = type_numel(c, next->type);
	Value *first = tensor_cut(&b, tensor_reshape(&b, next, 1, &numel), 0, 0, 1);
	return tensor_reshape(&b, first, like->rank, like->dims);
}
