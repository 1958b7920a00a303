// Checks IR: that it hangs together, that every operation is what the operator table says, that
// values are visible where they are used, and that types agree with inference. Called after every
// pass in debug builds and by `pdcc opt`. What the table says is in verify_table.c, inference in
// verify_types.c; the rules of control flow and of loop nests are in verify_control.c and
// verify_loop.c.
//
// It goes from the general to the special and stops where what follows would rest on what is
// broken.
#include "ir/verify/verify.h"
#include "ir/verify/rules.h"

#include <string.h>

// ---- structure: pointers agree with each other --------------------------------------------------

static bool inside(const Op *op, const Op *root)
{
	while (op && op != root)
		op = op_parent(op);
	return op != NULL;
}

static bool check_uses(const Op *op, const Value *v, const Op *root)
{
	Use *const *link = &v->uses;
	for (const Use *u = v->uses; u; link = &u->next, u = u->next) {
		if (u->prev != link || u->value != v)
			return verify_fail(op, "the list of uses of a value is broken");
		const Op *user = u->user;
		if (!user || (int)u->index >= user->noperand || &user->operands[u->index] != u)
			return verify_fail(op,
			                   "the list of uses of a value holds something that is no operand");
		if (!inside(user, root))
			return verify_fail(op, "a value is used by '%s', which is not in the program",
			                   user->info->name);
	}
	return true;
}

static bool check_values(const Op *op, const Op *root)
{
	for (int i = 0; i < op->nresult; i++) {
		const Value *v = &op->results[i];
		if (v->def != op || v->block || (int)v->index != i)
			return verify_fail(op, "result %d does not belong to its operation", i);
		if (!v->type)
			return verify_fail(op, "result %d has no type", i);
		if (!check_uses(op, v, root))
			return false;
	}
	for (int i = 0; i < op->noperand; i++) {
		const Use *u = &op->operands[i];
		if (u->user != op || (int)u->index != i)
			return verify_fail(op, "operand %d does not belong to its operation", i);
		if (u->value && (!u->prev || *u->prev != u))
			return verify_fail(op, "operand %d is not in the uses of its value", i);
	}
	return true;
}

static bool check_attr_order(const Op *op)
{
	for (int i = 0; i < op->nattr; i++) {
		if (!op->attrs[i].name || !op->attrs[i].attr)
			return verify_fail(op, "attribute %d has no name or no value", i);
		if (i && strcmp(op->attrs[i - 1].name, op->attrs[i].name) >= 0)
			return verify_fail(op, "attributes '%s' and '%s' are out of order",
			                   op->attrs[i - 1].name, op->attrs[i].name);
	}
	return true;
}

static bool check_structure(const Op *op, const Op *root);

static bool check_block(const Op *op, const Block *b, const Op *root)
{
	for (int i = 0; i < b->narg; i++) {
		const Value *v = b->args[i];
		if (v->block != b || v->def || (int)v->index != i || !v->type)
			return verify_fail(op, "a block's argument %d does not belong to it", i);
		if (!check_uses(op, v, root))
			return false;
	}
	const Op *prev = NULL;
	for (const Op *inner = b->first; inner; prev = inner, inner = inner->next) {
		if (inner->block != b || inner->prev != prev)
			return verify_fail(inner, "an operation is not linked to its block");
		if (!check_structure(inner, root))
			return false;
	}
	return b->last == prev || verify_fail(op, "a block does not end with its last operation");
}

static bool check_region(const Op *op, const Region *r, const Op *root)
{
	if (r->op != op)
		return verify_fail(op, "a region does not belong to its operation");
	const Block *prev = NULL;
	for (const Block *b = r->first; b; prev = b, b = b->next) {
		if (b->region != r || b->prev != prev)
			return verify_fail(op, "a block is not linked to its region");
		if (!check_block(op, b, root))
			return false;
	}
	return r->last == prev || verify_fail(op, "a region does not end with its last block");
}

static bool check_structure(const Op *op, const Op *root)
{
	if ((unsigned)op->code >= OP_COUNT || op->info != &op_table[op->code])
		return verify_fail(op, "an operation's code and description differ");
	if (!op->loc || !op->ctx)
		return verify_fail(op, "an operation without location or context");
	if (!check_values(op, root) || !check_attr_order(op))
		return false;
	for (int i = 0; i < op->nregion; i++) {
		if (!check_region(op, &op->regions[i], root))
			return false;
	}
	return true;
}

// ---- successors and terminators: what the scope rule rests on -----------------------------------

static bool check_successors(const Op *op)
{
	uint32_t end = (uint32_t)op->noperand;
	if (op->nsucc && !(op->info->traits & TRAIT_TERMINATOR))
		return verify_fail(op, "successors, but it is no terminator");
	for (int i = op->nsucc - 1; i >= 0; i--) {
		const Succ *s = &op->succs[i];
		if (s->count > end || s->first != end - s->count)
			return verify_fail(op, "the arguments of its successors are not its last operands");
		end = s->first;
		if (!s->block || !op->block || s->block->region != op->block->region)
			return verify_fail(op, "successor %d is in another region", i);
		if (s->block == op->block->region->first)
			return verify_fail(op, "successor %d is the entry of the region", i);
	}
	return true;
}

// Whether blocks of this region may end without a terminator: the module's, and those of a branch
// or of the body of a loop backwards that has nothing to give.
static bool terminator_optional(const Op *op, int region)
{
	const bool body = op->code == OP_PD_WHILE_GRAD && region == 1;
	return op->code == OP_BUILTIN_MODULE || ((op_is_branch(op) || body) && !op->nresult);
}

static bool check_terminators(const Op *op)
{
	bool ok = true;
	for (int i = 0; i < op->nregion; i++) {
		const Region *r = &op->regions[i];
		for (const Block *b = r->first; b; b = b->next) {
			const Op *last = b->last;
			bool ends = last && (last->info->traits & TRAIT_TERMINATOR);
			if (!ends && (!terminator_optional(op, i) || r->first != r->last))
				ok &= verify_fail(last ? last : op, "a block must end with a terminator");
			for (const Op *o = b->first; o && o->next; o = o->next) {
				if (o->info->traits & TRAIT_TERMINATOR)
					ok &= verify_fail(o, "a terminator must be the last operation of its block");
			}
		}
	}
	return ok;
}

static bool visit_flow(Op *op, void *arg)
{
	bool *ok = arg;
	*ok &= check_successors(op);
	*ok &= check_terminators(op);
	return true;
}

// ---- sizes --------------------------------------------------------------------------------------

// No tensor takes more bytes than this, whatever its symbols are: sums and small multiples of sizes
// then stay far from the end of 64 bits, in the passes and in generated code.
#define MOST_BYTES (INT64_C(1) << 42)

// Whether a type is of tensors, and their sizes come to more than that.
static bool type_is_large(const Type *t)
{
	int64_t low, high, least = (int64_t)dtype_size(t->dtype);
	bool large = false;
	if (t->kind != TY_TENSOR && t->kind != TY_SELECTED_ROWS && t->kind != TY_ARRAY)
		return false;
	for (int i = 0; i < t->rank; i++) {
		dim_range(t->dims[i], &low, &high);
		if (dim_is(t->dims[i], 0))
			return false;
		large |= low > MOST_BYTES / least;
		least *= low > 1 && !large ? low : 1;
	}
	return large;
}

// Sizes are not negative, and their product is within reason.
static bool check_size(const Op *op, const Value *v)
{
	const Type *t = v->type;
	if (t->kind != TY_TENSOR && t->kind != TY_SELECTED_ROWS && t->kind != TY_ARRAY)
		return true;
	for (int i = 0; i < t->rank; i++)
		if (dim_is_const(t->dims[i]) && t->dims[i]->value < 0)
			return verify_fail(op, "result %d has a negative size: %s", (int)v->index,
			                   type_text(op->ctx, t));
	return !type_is_large(t) ||
	       verify_fail(op, "result %d is too large: %s", (int)v->index, type_text(op->ctx, t));
}

static bool check_sizes(const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (!check_size(op, &op->results[i]))
			return false;
	return true;
}

// ---- all together -------------------------------------------------------------------------------

static bool visit_op(Op *op, void *arg)
{
	bool *ok = arg;
	bool sound = operands_are_sound(op);
	sound &= attributes_are_sound(op) && step_is_sound(op) && waits_are_sound(op);
	sound &= regions_are_sound(op);
	// One size that is wrong is said once: what comes of it is wrong, too.
	sound = sound && (!*ok || check_sizes(op)) && level_is_sound(op) &&
	        (!op_functions(op)->verify || op_functions(op)->verify(op)) && inference_is_sound(op);
	*ok &= sound;
	return true;
}

bool ir_verify(Op *op)
{
	bool ok = true;
	if (!check_structure(op, op))
		return false;
	visit_flow(op, &ok);
	op_walk(op, visit_flow, &ok);
	if (!ok)
		return false;
	ok = verify_scope(op);
	visit_op(op, &ok);
	op_walk(op, visit_op, &ok);
	return ok;
}
