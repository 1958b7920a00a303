// What passes on pd.if and pd.while share: what may be moved or dropped, results that go away,
// regions that are put in the place of their operation. Called by simplify_if.c, loop_args.c,
// loop_trips.c, sink.c, select.c and hoist.c.
#include "lower/pass/control.h"
#include "lower/pass/pass.h"

// ---- what an operation does ---------------------------------------------------------------------

bool region_is_pure(const Region *r)
{
	for (const Block *b = r->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (!control_is_pure(op))
				return false;
	return true;
}

bool control_is_pure(const Op *op)
{
	if (op->info->traits & (TRAIT_PURE | TRAIT_CONSTANT | TRAIT_TERMINATOR))
		return true;
	if (!op_is_branch(op) && op->code != OP_PD_WHILE)
		return false;
	for (int i = 0; i < op->nregion; i++)
		if (!region_is_pure(&op->regions[i]))
			return false;
	return op->nregion == op_parts(op); // else a stack is written
}

bool attrs_are_found(const Op *op)
{
	for (int i = 0; i < op->nattr; i++) {
		const Attr *a = op->attrs[i].attr;
		if (a->kind == ATTR_DIM && dim_is_found(a->dim))
			return true;
		for (int k = 0; a->kind == ATTR_DIMS && k < a->n; k++)
			if (dim_is_found(a->dims[k]))
				return true;
	}
	return false;
}

bool op_mentions(const Op *op, const Dim *size)
{
	if (results_mention(op, size) || (op->code != OP_BUILTIN_MODULE && attrs_mention(op, size)))
		return true;
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (int i = 0; i < b->narg; i++)
				if (type_mentions(b->args[i]->type, size))
					return true;
	return false;
}

typedef struct Reader {
	const Op *but;
	const Dim *size;
	bool found;
} Reader;

static bool reader_visit(Op *op, void *arg)
{
	Reader *r = arg;
	const Op *at = op;
	while (at && at != r->but)
		at = op_parent(at);
	r->found |= !at && op_mentions(op, r->size);
	return !r->found;
}

bool size_used_beside(const Op *op, const Dim *size)
{
	Reader r = {op, size, false};
	Op *top = op->block->region->op;
	while (top->block)
		top = top->block->region->op;
	op_walk(top, reader_visit, &r);
	return r.found;
}

static bool size_needed(const Op *op, const Dim *d)
{
	if (d->kind == DIM_CONST)
		return false;
	if (d->kind != DIM_SYM)
		return size_needed(op, d->a) || size_needed(op, d->b);
	return d->bounded && op->block && op_finds_size(op, d) && size_used_beside(op, d);
}

bool result_needed(const Value *result)
{
	const Type *t = result->type;
	if (value_used(result))
		return true;
	for (int d = 0; type_is_found(t) && d < t->rank; d++)
		if (size_needed(result->def, t->dims[d]))
			return true;
	return false;
}

bool op_finds(const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (type_is_found(op->results[i].type))
			return true;
	for (int i = 0; i < op->nregion; i++)
		if (region_finds(&op->regions[i]))
			return true;
	return attrs_are_found(op);
}

bool region_finds(const Region *r)
{
	for (const Block *b = r->first; b; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			if (type_is_found(b->args[i]->type))
				return true;
		for (const Op *op = b->first; op; op = op->next)
			if (op_finds(op))
				return true;
	}
	return false;
}

bool results_are_sized(const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (op->results[i].type->kind != TY_TENSOR || type_is_found(op->results[i].type))
			return false;
	return true;
}

bool control_visit(PassContext *p, Region *r, enum OpCode code,
                   bool (*visit)(PassContext *p, Op *op))
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			if (op->info->kind != KIND_CONTROL)
				continue;
			for (int i = 0; i < op->nregion; i++)
				if (!control_visit(p, &op->regions[i], code, visit))
					return false;
			if (op->code == code && !visit(p, op))
				return false;
		}
	return true;
}

int region_size(const Region *r)
{
	int n = 0;
	for (const Block *b = r->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next) {
			n += !(op->info->traits & (TRAIT_CONSTANT | TRAIT_TERMINATOR));
			for (int i = 0; i < op->nregion; i++)
				n += region_size(&op->regions[i]);
		}
	return n;
}

// ---- structure ----------------------------------------------------------------------------------

bool control_is_plain(const Op *op)
{
	if ((op->code != OP_PD_IF && op->code != OP_PD_WHILE) || op->nregion != 2)
		return false;
	for (int i = 0; i < 2; i++) {
		const Block *b = op->regions[i].first;
		if (!b || b->next || !b->last || !(b->last->info->traits & TRAIT_TERMINATOR))
			return false;
	}
	return true;
}

bool loop_is_plain(const Op *loop)
{
	if (loop->code != OP_PD_WHILE || !control_is_plain(loop))
		return false;
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	int n = loop->noperand;
	if (cond->narg != n || body->narg != n || loop->nresult != n || cond->last->noperand != n + 1 ||
	    body->last->noperand != n)
		return false;
	for (int i = 0; i < n; i++)
		if (op_operand(cond->last, i + 1) != cond->args[i])
			return false;
	return true;
}

bool use_is_in(const Use *u, const Region *r)
{
	for (const Op *op = u->user; op && op->block; op = op_parent(op))
		if (op->block->region == r)
			return true;
	return false;
}

bool value_is_in(const Value *v, const Op *op)
{
	for (const Op *at = v->def ? op_parent(v->def) : v->block->region->op; at; at = op_parent(at))
		if (at == op)
			return true;
	return false;
}

static void region_move(Region *to, Region *from)
{
	to->first = from->first;
	to->last = from->last;
	from->first = from->last = NULL;
	for (Block *b = to->first; b; b = b->next)
		b->region = to;
}

Op *control_keep(Op *op, const bool *keep)
{
	Context *c = op->ctx;
	bool loop = op->code == OP_PD_WHILE;
	int n = 0;
	const Type **types = NEW_ARRAY(c->arena, (size_t)op->nresult + 1, const Type *);
	Value **operands = NEW_ARRAY(c->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->nresult; i++) {
		if (!keep[i])
			continue;
		if (loop)
			operands[n] = op_operand(op, i);
		types[n++] = op->results[i].type;
	}
	if (!loop)
		operands[0] = op_operand(op, 0);
	Op *with = op_new(c, op->code, op->loc, n, types, loop ? n : 1, operands, op->nregion, 0);
	for (int i = 0; i < op->nattr; i++)
		op_set_attr(with, op->attrs[i].name, op->attrs[i].attr);
	for (int r = 0; r < op->nregion; r++) {
		region_move(&with->regions[r], &op->regions[r]);
		Block *b = with->regions[r].first;
		for (int i = op->nresult; i-- > 0;) {
			if (keep[i])
				continue;
			op_remove_operand(b->last, i + (loop && r == 0));
			if (loop)
				block_remove_arg(b, i);
		}
	}
	n = 0;
	for (int i = 0; i < op->nresult; i++) {
		if (!keep[i])
			continue;
		value_take(op_result(op, i), op_result(with, n++));
	}
	op_insert_before(op, with);
	op_erase(op);
	return with;
}

// Puts the n values of a terminator from `first` on, and of the block's arguments, into the order.
static void block_order(Block *b, const int *from, int n, int first, bool loop)
{
	Context *c = b->last->ctx;
	Value **yields = NEW_ARRAY(c->arena, (size_t)n, Value *);
	Value **args = NEW_ARRAY(c->arena, (size_t)n, Value *);
	for (int i = 0; i < n; i++) {
		yields[i] = op_operand(b->last, first + from[i]);
		args[i] = loop ? b->args[from[i]] : NULL;
	}
	for (int i = 0; i < n; i++) {
		op_set_operand(b->last, first + i, yields[i]);
		if (!loop)
			continue;
		b->args[i] = args[i];
		b->args[i]->index = (uint32_t)i;
	}
}

Op *control_order(Op *op, const int *from)
{
	Context *c = op->ctx;
	bool loop = op->code == OP_PD_WHILE;
	int n = op->nresult;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n, const Type *);
	Value **operands = NEW_ARRAY(c->arena, (size_t)n + 1, Value *);
	operands[0] = op_operand(op, 0);
	for (int i = 0; i < n; i++) {
		types[i] = op->results[from[i]].type;
		if (loop)
			operands[i] = op_operand(op, from[i]);
	}
	Op *with = op_new(c, op->code, op->loc, n, types, loop ? n : 1, operands, op->nregion, 0);
	for (int i = 0; i < op->nattr; i++)
		op_set_attr(with, op->attrs[i].name, op->attrs[i].attr);
	for (int r = 0; r < op->nregion; r++) {
		region_move(&with->regions[r], &op->regions[r]);
		block_order(with->regions[r].first, from, n, loop && r == 0, loop);
	}
	for (int i = 0; i < n; i++)
		value_take(op_result(op, from[i]), op_result(with, i));
	op_insert_before(op, with);
	op_erase(op);
	return with;
}

void region_inline(Region *r, Op *where, int first, Value **given)
{
	Block *b = r->first;
	for (Op *op = b->first, *next; op; op = next) {
		next = op->next;
		if (op->info->traits & TRAIT_TERMINATOR) {
			for (int i = first; i < op->noperand; i++)
				given[i - first] = op_operand(op, i);
			op_erase(op);
			continue;
		}
		op_detach(op);
		op_insert_before(where, op);
	}
}

void region_copy(const Region *r, Op *where, int first, ValueMap *m, Value **given)
{
	for (const Op *op = r->first->first; op; op = op->next) {
		if (op->info->traits & TRAIT_TERMINATOR) {
			for (int i = first; i < op->noperand; i++)
				given[i - first] = value_map_get(m, op_operand(op, i));
			continue;
		}
		op_insert_before(where, op_clone(op->ctx, op, m));
	}
}
