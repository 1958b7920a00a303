// The rules of control flow: pd.if, pd.while, branches and functions; and of the module with its
// feeds, fetches and parameters. These are verify hooks of the operator table: each is called by
// ir_verify on an operation whose operands, attributes and number of regions are already known to
// be right.
//
// pd.if has the regions `then` and `else`, pd.while `cond` and `body`. With a gradient each has a
// third, `init`, that makes a stack; the stack is then the last argument of the other regions and
// the last result.
#include "ir/verify/rules.h"

#include <string.h>

// ---- regions ------------------------------------------------------------------------------------

static const char *region_text(const Op *op, int i)
{
	return op_region_name(op, i);
}

static bool region_single_block(const Op *op, int i)
{
	const Region *r = &op->regions[i];
	return (r->first && r->first == r->last) ||
	       verify_fail(op, "region '%s' must be one block", region_text(op, i));
}

// The terminator of a one-block region, which must have this code; NULL after a diagnostic.
static const Op *region_end(const Op *op, int i, enum OpCode code)
{
	const Op *last = op->regions[i].first->last;
	if (last && last->code == code)
		return last;
	verify_fail(op, "region '%s' must end with %s", region_text(op, i), op_table[code].name);
	return NULL;
}

static Value *const *result_values(const Op *op)
{
	Value **v = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult, Value *);
	for (int i = 0; i < op->nresult; i++)
		v[i] = op_result((Op *)op, i);
	return v;
}

static Value *const *operand_values(const Op *op)
{
	Value **v = NEW_ARRAY(op->ctx->arena, (size_t)op->noperand, Value *);
	for (int i = 0; i < op->noperand; i++)
		v[i] = op->operands[i].value;
	return v;
}

// The block's arguments have the types of `want`.
static bool args_match(const Op *op, int region, int n, Value *const *want, const char *what)
{
	const Block *b = op->regions[region].first;
	const char *name = region_text(op, region);
	if (b->narg != n)
		return verify_fail(op, "region '%s' has %d arguments, but there are %d %s", name, b->narg,
		                   n, what);
	for (int i = 0; i < n; i++) {
		if (!types_agree(want[i]->type, b->args[i]->type))
			return verify_fail(op, "argument %d of region '%s' has type %s, but %s have %s", i,
			                   name, type_text(op->ctx, b->args[i]->type), what,
			                   type_text(op->ctx, want[i]->type));
	}
	return true;
}

// `init` holds cf.create_stack and the cf.yield that hands on its arguments and the stack, and
// nothing else.
static bool init_is_right(const Op *op, int region)
{
	if (!region_single_block(op, region))
		return false;
	const Block *b = op->regions[region].first;
	const Op *create = b->first, *yield = b->last;
	if (!create || create->code != OP_CF_CREATE_STACK || create->next != yield ||
	    yield->code != OP_CF_YIELD)
		return verify_fail(op, "region 'init' must hold cf.create_stack and cf.yield only");
	int n = yield->noperand;
	if (n != b->narg + 1 || op_operand(yield, n - 1) != &create->results[0])
		return verify_fail(yield, "it must give the arguments of 'init', then the stack");
	for (int i = 0; i + 1 < n; i++) {
		if (op_operand(yield, i) != b->args[i])
			return verify_fail(yield, "it must give the arguments of 'init', then the stack");
	}
	if (!op->nresult || !value_is_stack(&op->results[op->nresult - 1]))
		return verify_fail(op, "with a region 'init' the last result must be the stack");
	return true;
}

// Whether what decides a branch can be one element.
static bool one_element(const Op *op, int operand, const char *what)
{
	const Type *t = op->operands[operand].value->type;
	int64_t n;
	if (t->kind != TY_TENSOR)
		return verify_fail(op, "%s must be a tensor, not %s", what, type_text(op->ctx, t));
	if (type_const_numel(t, &n) && n != 1)
		return verify_fail(op, "%s must be one element, not %s", what, type_text(op->ctx, t));
	return true;
}

static bool condition_is_one(const Op *op, int operand)
{
	return one_element(op, operand, "the condition");
}

// ---- pd.if, pd.if_grad, pd.case -----------------------------------------------------------------

static bool branch_is_right(const Op *op, int region, bool has_init)
{
	const char *name = region_text(op, region);
	// Nothing to give but the stack: all but the first may be empty, and cf.yield left out.
	bool gives = op->nresult > has_init;
	if (region && !gives && !op->regions[region].first)
		return true;
	if (!region_single_block(op, region))
		return false;
	const Block *b = op->regions[region].first;
	if (has_init && (b->narg != 1 || !value_is_stack(b->args[0])))
		return verify_fail(op, "region '%s' must have one argument, the stack", name);
	if (!has_init && b->narg)
		return verify_fail(op, "region '%s' must not have arguments", name);
	if (!op->nresult && (!b->last || !(b->last->info->traits & TRAIT_TERMINATOR)))
		return true;
	const Op *yield = region_end(op, region, OP_CF_YIELD);
	return yield && verify_operands_present(yield) &&
	       verify_operand_types(yield, 0, op->nresult, result_values(op), "results around it");
}

bool verify_hook_if(Op *op)
{
	bool has_init = op->nregion > 2;
	if (!condition_is_one(op, 0) || (has_init && !init_is_right(op, 2)))
		return false;
	if (has_init && op->regions[2].first->narg)
		return verify_fail(op, "region 'init' must not have arguments");
	bool then = branch_is_right(op, 0, has_init);
	return branch_is_right(op, 1, has_init) && then;
}

static bool cases_differ(const Op *op, const Attr *cases)
{
	for (int i = 0; i < cases->n; i++) {
		for (int j = 0; j < i; j++) {
			if (cases->ints[i] == cases->ints[j])
				return verify_fail(op, "case %lld is there twice", (long long)cases->ints[i]);
		}
	}
	return true;
}

bool verify_hook_case(Op *op)
{
	const Attr *cases = op_attr(op, "cases");
	const DType t = op_operand(op, 0)->type->dtype;
	if (!one_element(op, 0, "the number"))
		return false;
	if (t != DT_I32 && t != DT_I64)
		return verify_fail(op, "the number must be i32 or i64");
	if (cases->n + 1 != op->nregion)
		return verify_fail(op, "%d cases for %d regions and the default", cases->n,
		                   op->nregion - 1);
	bool right = cases_differ(op, cases);
	for (int i = 0; i < op->nregion && right; i++)
		right = branch_is_right(op, i, false);
	return right;
}

// ---- pd.while, pd.while_grad --------------------------------------------------------------------

// What enters `cond`: the operands, or what `init` yields from them.
static bool loop_entry_is_right(const Op *op)
{
	if (op->nregion <= 2)
		return args_match(op, 0, op->noperand, operand_values(op), "operands");
	if (!init_is_right(op, 2) || !args_match(op, 2, op->noperand, operand_values(op), "operands"))
		return false;
	const Op *yield = op->regions[2].first->last;
	return args_match(op, 0, yield->noperand, operand_values(yield), "values of 'init'");
}

// The body of a loop backwards that gives nothing may go without an end.
static bool body_end_is_right(const Op *op)
{
	const Block *cond = op->regions[0].first, *body = op->regions[1].first;
	const bool ends = body->last && (body->last->info->traits & TRAIT_TERMINATOR);
	if (op->code == OP_PD_WHILE_GRAD && !op->nresult && !ends)
		return true;
	const Op *next = region_end(op, 1, OP_CF_YIELD);
	return next && verify_operands_present(next) &&
	       verify_operand_types(next, 0, cond->narg, cond->args, "arguments of 'cond'");
}

bool verify_hook_while(Op *op)
{
	if (!verify_operands_present(op) || !region_single_block(op, 0) ||
	    !region_single_block(op, 1) || !loop_entry_is_right(op))
		return false;
	const Op *again = region_end(op, 0, OP_CF_COND_YIELD);
	if (!again || !again->noperand || !verify_operands_present(again))
		return false;
	const Block *body = op->regions[1].first;
	return verify_operand_types(again, 1, op->nresult, result_values(op), "results of the loop") &&
	       verify_operand_types(again, 1, body->narg, body->args, "arguments of 'body'") &&
	       body_end_is_right(op);
}

bool verify_hook_yield(Op *op)
{
	const Op *parent = op_parent(op);
	if (parent && parent->info->kind == KIND_CONTROL && parent->code != OP_FUNC_FUNC)
		return true;
	return verify_fail(op, "only allowed in the regions of pd.if, pd.case and pd.while");
}

bool verify_hook_cond_yield(Op *op)
{
	const Op *parent = op_parent(op);
	if (!parent || (parent->code != OP_PD_WHILE && parent->code != OP_PD_WHILE_GRAD) ||
	    op->block->region != &parent->regions[0])
		return verify_fail(op, "only allowed in the region 'cond' of pd.while");
	return condition_is_one(op, 0);
}

// ---- branches -----------------------------------------------------------------------------------

static bool branch_args_match(const Op *op, int fixed, int nsucc)
{
	Context *c = op->ctx;
	if (op->nsucc != nsucc)
		return verify_fail(op, "%d successors, but it has %d", op->nsucc, nsucc);
	uint32_t first = nsucc ? op->succs[0].first : (uint32_t)op->noperand;
	if (first != (uint32_t)fixed)
		return verify_fail(op, "operands that no successor takes");
	if (!verify_operands_present(op))
		return false;
	for (int s = 0; s < nsucc; s++) {
		const Succ *succ = &op->succs[s];
		if ((int)succ->count != succ->block->narg)
			return verify_fail(op, "%u values for successor %d, which has %d arguments",
			                   succ->count, s, succ->block->narg);
		for (uint32_t i = 0; i < succ->count; i++) {
			const Type *have = op->operands[succ->first + i].value->type,
					   *need = succ->block->args[i]->type;
			if (!types_agree(have, need))
				return verify_fail(op,
				                   "value %u for successor %d has type %s, but the argument has %s",
				                   i, s, type_text(c, have), type_text(c, need));
		}
	}
	return true;
}

// Whether block b stands no later than `other`.
static bool block_is_before(const Block *b, const Block *other)
{
	while (b && b != other)
		b = b->next;
	return b != NULL;
}

static bool goes_back(const Op *op)
{
	return op && op->code == OP_CF_BR && op->nsucc == 1 &&
	       block_is_before(op->succs[0].block, op->block);
}

// Whether the branch alone leaves the blocks between the head of a loop and its way back.
static bool leaves_loop(const Op *op)
{
	for (const Block *b = op->block; b; b = b->next)
		if (goes_back(b->last) && block_is_before(b->last->succs[0].block, op->block) &&
		    block_is_before(op->succs[0].block, b) && !block_is_before(op->succs[1].block, b))
			return true;
	return false;
}

// Blocks of the program: nobody looks for its loops again, so roles must be right.
static bool role_is(const Op *op, int role, bool is)
{
	const Op *around = op->block->region->op;
	if (around->code != OP_BUILTIN_MODULE || (op_enum(op, "role") == role) == is)
		return true;
	const char *name = role == ROLE_BACK ? "back" : "loop";
	return verify_fail(op,
	                   is ? "it is part of a loop, but its role is not '%s'"
	                      : "its role is '%s', but it is no such part of a loop",
	                   name);
}

// A loop of the program is known by the branch that enters it, from the block in front.
static bool loop_is_entered(const Op *back)
{
	const Block *head = back->succs[0].block;
	const Op *enter = head->prev ? head->prev->last : NULL;
	if (op_enum(back, "role") != ROLE_BACK ||
	    (enter && enter->code == OP_CF_BR && enter->nsucc == 1 && enter->succs[0].block == head &&
	     op_enum(enter, "role") == ROLE_ENTER))
		return true;
	return verify_fail(back, "the block in front of its loop does not enter it");
}

bool verify_hook_br(Op *op)
{
	return branch_args_match(op, 0, 1) && role_is(op, ROLE_BACK, goes_back(op)) &&
	       loop_is_entered(op) && loop_form_is_sound(op);
}

bool verify_hook_cond_br(Op *op)
{
	return condition_is_one(op, 0) && branch_args_match(op, 1, 2) &&
	       role_is(op, ROLE_LOOP, leaves_loop(op));
}

bool verify_hook_switch(Op *op)
{
	const Attr *cases = op_attr(op, "cases");
	if (!one_element(op, 0, "the value"))
		return false;
	return cases_differ(op, cases) && branch_args_match(op, 1, cases->n + 1);
}

// ---- functions ----------------------------------------------------------------------------------

static bool types_are(const Op *op, int n, const Type *const *have, int nwant,
                      const Type *const *want, const char *what)
{
	if (n != nwant)
		return verify_fail(op, "%d %s, but the function's type has %d", n, what, nwant);
	for (int i = 0; i < n; i++) {
		if (!types_agree(have[i], want[i]))
			return verify_fail(op, "%s: number %d has type %s, but the function's type has %s",
			                   what, i, type_text(op->ctx, have[i]), type_text(op->ctx, want[i]));
	}
	return true;
}

static const Type **value_types(Context *c, int n, Value *const *values)
{
	const Type **t = NEW_ARRAY(c->arena, (size_t)n, const Type *);
	for (int i = 0; i < n; i++)
		t[i] = values[i]->type;
	return t;
}

bool verify_hook_func(Op *op)
{
	const Type *t = op_attr(op, "type")->type;
	const Block *entry = op->regions[0].first;
	if (t->kind != TY_FUNC)
		return verify_fail(op, "attribute 'type' must be the type of a function, not %s",
		                   type_text(op->ctx, t));
	if (!entry)
		return verify_fail(op, "a function needs a body");
	if (!types_are(op, entry->narg, value_types(op->ctx, entry->narg, entry->args), t->ninput,
	               t->elems, "arguments"))
		return false;
	for (const Block *b = entry; b; b = b->next) {
		const Op *last = b->last;
		if (last->nsucc)
			continue;
		if (last->code != OP_FUNC_RETURN && last->code != OP_CF_RETURN)
			return verify_fail(last, "a function must end with func.return");
		if (!verify_operands_present(last) ||
		    !types_are(last, last->noperand,
		               value_types(op->ctx, last->noperand, operand_values(last)),
		               t->nelem - t->ninput, t->elems + t->ninput, "values"))
			return false;
	}
	return true;
}

bool verify_hook_return(Op *op)
{
	const Op *parent = op_parent(op);
	if (parent && parent->code == OP_BUILTIN_MODULE)
		return !op->noperand || verify_fail(op, "a module has no values to return");
	return (parent && parent->code == OP_FUNC_FUNC) ||
	       verify_fail(op, "only allowed in the region of func.func");
}

// The function of that name, in the module around op; NULL: none.
static const Op *find_function(const Op *op, const char *name)
{
	const Op *top = op;
	while (op_parent(top))
		top = op_parent(top);
	const Op *o = top->nregion && top->regions[0].first ? top->regions[0].first->first : NULL;
	while (o && (o->code != OP_FUNC_FUNC || strcmp(op_str(o, "name", ""), name) != 0))
		o = o->next;
	return o;
}

bool verify_hook_call(Op *op)
{
	const char *name = op_str(op, "callee", "");
	const Op *f = find_function(op, name);
	const Attr *type = f ? op_attr(f, "type") : NULL;
	if (!f)
		return verify_fail(op, "there is no function '%s'", name);
	if (!type || type->kind != ATTR_TYPE || type->type->kind != TY_FUNC)
		return true; // reported at the function
	const Type *t = type->type;
	return verify_operands_present(op) &&
	       types_are(op, op->noperand, value_types(op->ctx, op->noperand, operand_values(op)),
	                 t->ninput, t->elems, "arguments") &&
	       types_are(op, op->nresult, value_types(op->ctx, op->nresult, result_values(op)),
	                 t->nelem - t->ninput, t->elems + t->ninput, "results");
}

// ---- the module ---------------------------------------------------------------------------------

// Feeds of one name, or fetches of one column, would be one member of the generated structures.
static bool columns_differ(const Op *a, const Op *b)
{
	if (a->code != b->code)
		return true;
	bool levels = op_attr(a, "lod_of") || op_attr(b, "lod_of");
	bool same_level = !levels || (op_int(a, "lod_of", -1) == op_int(b, "lod_of", -1) &&
	                              op_int(a, "level", 0) == op_int(b, "level", 0));
	if (a->code == OP_PD_FEED && same_level &&
	    !strcmp(op_str(a, "name", ""), op_str(b, "name", "")))
		return verify_fail(b, "input '%s' is there twice", op_str(b, "name", ""));
	if (a->code == OP_PD_FETCH && op_int(a, "col", 0) == op_int(b, "col", 0))
		return verify_fail(b, "output column %lld is there twice", (long long)op_int(b, "col", 0));
	return true;
}

// Few operations are feeds and fetches: all pairs of those are cheap.
static bool port_is_alone(const Block *first, const Op *port)
{
	bool ok = true;
	for (const Block *b = first; b; b = b->next)
		for (const Op *other = b->first; other; other = other->next) {
			if (other == port)
				return ok;
			ok &= columns_differ(other, port);
		}
	return ok;
}

bool verify_hook_module(Op *op)
{
	if (op_parent(op))
		return verify_fail(op, "a module inside of a module");
	const Block *first = op->regions[0].first;
	if (!first)
		return verify_fail(op, "region 'body' must have a block");
	if (first->narg)
		return verify_fail(op, "a module takes no arguments");
	const Attr *threads = op_attr(op, "threads");
	if (threads && (threads->i < 2 || threads->i > MAX_CPU_THREADS))
		return verify_fail(op, "'threads' must be 2 to %d", MAX_CPU_THREADS);
	bool ok = true;
	for (const Block *b = first; b; b = b->next)
		for (const Op *x = b->first; x; x = x->next)
			if (x->code == OP_PD_FEED || x->code == OP_PD_FETCH)
				ok &= port_is_alone(first, x);
	return ok && verify_stacks(op);
}

// Runs write a parameter once, at their end: in the module's own blocks, behind all that reads it.
bool verify_hook_set_parameter(Op *op)
{
	const Attr *name = op_attr(op, "name");
	const Op *module = op_parent(op);
	if (!module || module->code != OP_BUILTIN_MODULE)
		return verify_fail(op, "it must stand in the module's own blocks");
	if (op_operand(op, 0) && op_operand(op, 0)->type->kind != TY_TENSOR)
		return verify_fail(op, "a parameter is a tensor, not %s",
		                   type_text(op->ctx, op_operand(op, 0)->type));
	for (const Op *x = op->next; x; x = x->next) {
		if (x->code == OP_BUILTIN_SET_PARAMETER && op_attr(x, "name") == name)
			return verify_fail(op, "parameter '%s' is set twice", op_str(op, "name", ""));
		if (x->code == OP_BUILTIN_GET_PARAMETER && op_attr(x, "name") == name)
			return verify_fail(op, "parameter '%s' is read after it was set",
			                   op_str(op, "name", ""));
	}
	return true;
}

bool verify_hook_get_parameter(Op *op)
{
	const char *name = op_str(op, "name", "");
	const Tensor *t = param_get(op->ctx, name);
	const Type *type = op->results[0].type;
	if (!t)
		return true; // text does not bring its parameters
	bool fits = type->kind == TY_TENSOR && type->dtype == t->dtype && type->rank == t->rank;
	for (int i = 0; fits && i < t->rank; i++)
		fits = !dim_is_const(type->dims[i]) || type->dims[i]->value == t->dims[i];
	return fits || verify_fail(op, "parameter '%s' is not %s", name, type_text(op->ctx, type));
}
