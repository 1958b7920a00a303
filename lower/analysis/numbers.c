// Single numbers in the function that a program becomes: tensors of one element in the workspace
// are variables where there are loops and branches, and nests that compute nothing else are
// statements. So a counter lives in a register, and a condition reads as one. Tensors of a few
// elements are arrays of this function, where nests alone deal with them: as these are inlined, the
// elements live in registers, too. Called by the printers.
#include "lower/analysis/numbers.h"
#include "lower/analysis/places.h"
#include "lower/pass/rewrite.h"

#include <string.h>

enum { MAX_STATEMENTS = 16, FEW = 8 };

// ---- which values are one variable --------------------------------------------------------------

bool value_is_number(const Value *v)
{
	int64_t n;
	return type_is_tensor(v->type) && type_const_numel(v->type, &n) && n == 1 &&
	       !dtype_is_complex(v->type->dtype);
}

static const Value *class_of(const Numbers *n, const Value *v)
{
	for (const Value *up; (up = pointer_map_get(&n->classes, v)); v = up)
		;
	return v;
}

// Branches leave in place what was computed there: argument and value are one variable.
static void classes_join(Numbers *n, const Op *branch)
{
	for (int s = 0; s < branch->nsucc; s++)
		for (uint32_t i = 0; i < branch->succs[s].count; i++) {
			if (branch_move(branch, s, (int)i) != MOVE_NONE)
				continue;
			const Value *arg = class_of(n, branch->succs[s].block->args[i]);
			const Value *value = class_of(
				n, value_place(op_operand(branch, (int)(branch->succs[s].first + i))).root);
			if (arg != value)
				pointer_map_set(&n->classes, value, arg);
		}
}

// What loop.update changes lies in memory, also when it is one element.
static void memory_mark(Numbers *n, const Value *v)
{
	const Value *root = class_of(n, value_place(v).root);
	pointer_map_set(&n->in_memory, root, root);
}

// So does what a branch leaves in one place with a tensor that is one element by its size in a run
// alone.
static void sizes_mark(Numbers *n, const Op *branch)
{
	for (int s = 0; s < branch->nsucc; s++)
		for (uint32_t i = 0; i < branch->succs[s].count; i++) {
			const Value *arg = branch->succs[s].block->args[i];
			const Value *v = op_operand(branch, (int)(branch->succs[s].first + i));
			if (branch_move(branch, s, (int)i) == MOVE_NONE &&
			    (!value_is_number(arg) || !value_is_number(value_place(v).root)))
				memory_mark(n, arg);
		}
}

static bool value_is_few(const Value *v)
{
	int64_t n;
	return type_is_tensor(v->type) && type_const_numel(v->type, &n) && n > 1 && n <= FEW &&
	       !dtype_is_complex(v->type->dtype);
}

// Whether the operation reads and writes elements, and nothing around them, as kernels may.
static bool op_takes_elements(const Op *op)
{
	return op->code == OP_LOOP_NEST || op->code == OP_LOOP_UPDATE || op->code == OP_PD_FETCH ||
	       (op->info->traits & (TRAIT_VIEW | TRAIT_TERMINATOR));
}

static bool same_elements(const Type *a, const Type *b)
{
	int64_t n, m;
	return a->dtype == b->dtype && type_const_numel(a, &n) && type_const_numel(b, &m) && n == m;
}

// Values that are no array of elements, or not like the one that names the variable, keep all that
// lies with them in memory.
static void place_mark(Numbers *n, const Value *v, bool elements)
{
	if (!v || !type_is_tensor(v->type))
		return;
	const Place p = value_place(v);
	const Value *name = class_of(n, p.root);
	if (p.kind == PLACE_PARAM && name == p.root)
		return;
	if (!elements || p.kind != PLACE_WORKSPACE || p.moving || p.state || p.slot ||
	    !value_is_few(p.root) || !value_is_few(name) || !same_elements(p.root->type, name->type))
		pointer_map_set(&n->in_place, name, name);
}

// What an operation reads, in its regions, too.
static void reads_mark(Numbers *n, const Op *op, bool elements)
{
	for (int i = 0; i < op->noperand; i++)
		place_mark(n, op_operand(op, i), elements && !(op_updates(op) && i == 0));
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (const Op *in = b->first; in; in = in->next)
				reads_mark(n, in, elements);
}

static void places_mark(Numbers *n, const Op *module)
{
	for (const Block *b = module->regions[0].first; b; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			place_mark(n, b->args[i], true);
		for (const Op *op = b->first; op; op = op->next) {
			const bool elements = op_takes_elements(op);
			for (int i = 0; i < op->nresult; i++)
				place_mark(n, &op->results[i], elements && !op_updates(op));
			reads_mark(n, op, elements);
		}
	}
}

void numbers_find(Numbers *n, Arena *a, const Op *module, bool wanted)
{
	const Region *r = &module->regions[0];
	*n = (Numbers){.variables = wanted && r->first != r->last};
	pointer_map_init(&n->classes, a);
	pointer_map_init(&n->in_memory, a);
	pointer_map_init(&n->in_place, a);
	for (const Block *b = r->first; n->variables && b; b = b->next) {
		if (b->last && b->last->nsucc)
			classes_join(n, b->last);
	}
	for (const Block *b = r->first; n->variables && b; b = b->next) {
		if (b->last && b->last->nsucc)
			sizes_mark(n, b->last);
		for (const Op *op = b->first; op; op = op->next)
			if (op_updates(op)) {
				memory_mark(n, op_operand(op, 0));
				memory_mark(n, &op->results[0]);
			}
	}
	if (n->variables)
		places_mark(n, module);
}

const Value *number_variable(const Numbers *n, const Place *p)
{
	if (!n->variables || p->kind != PLACE_WORKSPACE || p->moving || p->state ||
	    !value_is_number(p->root))
		return NULL;
	const Value *root = class_of(n, p->root);
	return pointer_map_get(&n->in_memory, root) ? NULL : root;
}

const Value *array_variable(const Numbers *n, const Place *p)
{
	if (!n->variables || p->kind != PLACE_WORKSPACE || !value_is_few(p->root))
		return NULL;
	const Value *root = class_of(n, p->root);
	return pointer_map_get(&n->in_place, root) ? NULL : root;
}

// ---- constants ----------------------------------------------------------------------------------

bool constant_is_number(const Value *v)
{
	const Op *op = v->def;
	const Attr *data = op && op->code == OP_BUILTIN_CONSTANT ? op_attr(op, "value") : NULL;
	return data && data->kind == ATTR_TENSOR && value_is_number(v) &&
	       !dtype_is_half(v->type->dtype);
}

// Whether a branch passes the operand to arguments of one element alone.
static bool passes_number(const Op *branch, uint32_t operand)
{
	bool passes = false;
	for (int s = 0; s < branch->nsucc; s++) {
		const Succ *succ = &branch->succs[s];
		if (operand < succ->first || operand >= succ->first + succ->count)
			continue;
		if (!value_is_number(succ->block->args[operand - succ->first]))
			return false;
		passes = true;
	}
	return passes;
}

bool constant_is_passed(const Value *v)
{
	if (!constant_is_number(v))
		return false;
	for (const Use *u = v->uses; u; u = u->next)
		if (!u->user->nsucc || !passes_number(u->user, u->index))
			return false;
	return true;
}

// ---- statements ---------------------------------------------------------------------------------

bool nest_is_statement(const Numbers *numbers, const Op *op)
{
	if (op->code != OP_LOOP_NEST || !numbers->variables)
		return false;
	for (int i = 0; i < op->nresult; i++)
		if (!value_is_number(&op->results[i]))
			return false;
	int n = 0;
	for (const Op *in = op->regions[0].first->first; in; in = in->next, n++)
		if (in->nregion || in->code == OP_LOOP_TO_INDEX)
			return false;
	return n <= MAX_STATEMENTS;
}
