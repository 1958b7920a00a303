// Gets what runs leave in parameters ready for the memory plan. The plan computes the new value of
// a parameter where the old one lies, when nobody needs that any more, and else it is copied there
// at the end of the run; so all that is stored is stored at the end, behind the fetches.
#include "ir/build/nest.h"
#include "lower/memory/memory.h"
#include "lower/pass/rewrite.h"

// The parameter whose bytes v shows; NULL: it is computed.
static const Op *shown_parameter(const Value *v)
{
	while (v->def && (v->def->info->traits & TRAIT_VIEW) && op_operand(v->def, 0))
		v = op_operand(v->def, 0);
	return v->def && v->def->code == OP_BUILTIN_GET_PARAMETER ? v->def : NULL;
}

static bool module_reads(const Op *module, const Attr *name)
{
	for (const Block *b = module->regions[0].first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (op->code == OP_BUILTIN_GET_PARAMETER && op_attr(op, "name") == name)
				return true;
	return false;
}

// A parameter that nobody reads and that always becomes the same needs no code: it has that value.
static bool set_is_known(Op *set)
{
	Tensor *value = value_constant(op_operand(set, 0));
	if (!value || module_reads(op_parent(set), op_attr(set, "name")))
		return false;
	param_set(set->ctx, op_str(set, "name", ""), value);
	return true;
}

// When the old value of one parameter is the new one of another, its bytes may be gone by the time
// they are copied.
static void set_copy_operand(Op *set, Op *before)
{
	Value *v = op_operand(set, 0);
	const Op *get = shown_parameter(v);
	if (!get || op_attr(get, "name") == op_attr(set, "name") ||
	    !param_is_written(set->ctx, op_str(get, "name", "")))
		return;
	Builder b = builder_before(before);
	b.loc = set->loc;
	Nest n = nest_open(&b, v->type);
	op_set_operand(set, 0, nest_close(&n, load(&n.b, v, n.at)));
}

// Needs: blocks (flatten). Keeps: what is fetched. Leaves: all builtin.set_parameter at the end of
// the last block, none that stores what another parameter held.
bool pass_state(PassContext *p)
{
	Block *last = p->module->regions[0].last;
	Op *end = last->last && (last->last->info->traits & TRAIT_TERMINATOR) ? last->last : NULL;
	Op *first = NULL;
	for (Block *b = p->module->regions[0].first; b; b = b->next)
		for (Op *op = b->first, *next; op && op != first; op = next) {
			next = op->next;
			if (op->code != OP_BUILTIN_SET_PARAMETER)
				continue;
			if (set_is_known(op)) {
				op_erase(op);
				continue;
			}
			op_detach(op);
			if (end)
				op_insert_before(end, op);
			else
				op_append(last, op);
			first = first ? first : op;
		}
	for (Op *op = first; op && op != end; op = op->next)
		set_copy_operand(op, first);
	return true;
}
