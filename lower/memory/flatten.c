// Flattening: pd.if, pd.case and pd.while become blocks of the module with branches between them
// (cf.br, cf.cond_br, cf.switch). What they gave as results are arguments of blocks, and so are the
// variables of loops. Runs after all passes that want structure, and before the memory plan. A
// module without control flow stays as it is.
//
//   pd.while:  head(variables): condition -> body or done     pd.if:  then or else
//              body: ... -> head                                       then: ... -> after(results)
//              done: ...                                               else: ... -> after(results)
//
// Feeds, parameters and constants move to the first block, fetches to the last one.
#include "lower/memory/memory.h"
#include "lower/pass/pass.h"
#include "ir/base/vec.h"

typedef struct Flatten {
	Context *ctx;
	Region *region; // the module's
	Block *entry;
	Block *at;        // where operations go now
	int64_t max_trip; // 0: loops may go on for ever
	Op *fetches;      // chained through `scratch`, the last one first
	int nsize, csize, nbefore, cbefore;
	const Dim **sizes;  // symbols found so far, without those that loops found which are over
	const Dim **before; // with them
} Flatten;

static bool ops_flatten(Flatten *f, Op *first);

// ---- blocks -------------------------------------------------------------------------------------

// From here on operations go to `b`, which becomes the last block: blocks stand in the order of
// their text.
static void block_begin(Flatten *f, Block *b)
{
	Region *r = f->region;
	if (r->last != b) {
		*(b->prev ? &b->prev->next : &r->first) = b->next;
		b->next->prev = b->prev;
		b->prev = r->last;
		b->next = NULL;
		r->last->next = b;
		r->last = b;
	}
	f->at = b;
}

// Ends the block at hand. The values from operand `first` of `from` on go to every successor;
// without `cond` to the only one.
static Op *branch_build(Flatten *f, const Op *at, Value *cond, Block *yes, Block *no,
                        const Op *from, int first)
{
	int nsucc = cond ? 2 : 1, n = from && from->noperand > first ? from->noperand - first : 0;
	Op *op = op_new(f->ctx, cond ? OP_CF_COND_BR : OP_CF_BR, at->loc, 0, NULL, 0, NULL, 0, nsucc);
	if (cond)
		op_add_operand(op, cond);
	for (int s = 0; s < nsucc; s++) {
		op->succs[s] = (Succ){s ? no : yes, (uint32_t)op->noperand, (uint32_t)n};
		for (int i = 0; i < n; i++)
			op_add_operand(op, op_operand(from, first + i));
	}
	op_append(f->at, op);
	return op;
}

static void switch_build(Flatten *f, const Op *at, Value *value, int n, Block *const *parts)
{
	Op *op = op_new(f->ctx, OP_CF_SWITCH, at->loc, 0, NULL, 1, &value, 0, n);
	for (int i = 0; i < n; i++)
		op->succs[i] = (Succ){parts[i], 1, 0};
	op_set_attr(op, "cases", op_attr(at, "cases"));
	op_append(f->at, op);
}

static void role_set(Flatten *f, Op *branch, const char *role)
{
	op_set_attr(branch, "role", attr_str(f->ctx, role));
}

static void block_take_value(Flatten *f, Block *b, Value *v)
{
	Value *arg = block_add_arg(f->ctx, b, v->type);
	arg->name = v->name;
	value_replace(v, arg);
}

// Gives the block arguments for those of a region's block.
static void block_take_args(Flatten *f, Block *b, const Block *from)
{
	for (int i = 0; i < from->narg; i++)
		block_take_value(f, b, from->args[i]);
}

static void block_take_results(Flatten *f, Block *b, Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		block_take_value(f, b, &op->results[i]);
}

// ---- structured operations ----------------------------------------------------------------------

// Whether a slot of type `want` takes a value of type `have`: where a size is a symbol that the run
// finds, any.
static bool type_fits(const Type *have, const Type *want)
{
	if (have == want)
		return true;
	if (have->kind != TY_TENSOR || want->kind != TY_TENSOR || have->dtype != want->dtype ||
	    have->rank != want->rank)
		return false;
	for (int i = 0; i < want->rank; i++)
		if (have->dims[i] != want->dims[i] &&
		    !(want->dims[i]->kind == DIM_SYM && want->dims[i]->bounded))
			return false;
	return true;
}

// Whether the values from operand `first` on have types that fit what is wanted of them.
static bool types_fit(const Op *op, const Op *from, int first, int n, const Value *const *want)
{
	for (int i = 0; i < n && from && first + i < from->noperand; i++) {
		if (type_fits(op_operand(from, first + i)->type, want[i]->type))
			continue;
		diag_error(op->ctx->diag, op->loc,
		           "'%s': the type of value %d%s%s differs from one round or branch to the next, "
		           "which cannot be compiled",
		           op->info->name, i, want[i]->name ? ", " : "",
		           want[i]->name ? want[i]->name : "");
		return false;
	}
	return true;
}

static const Value **result_list(const Op *op)
{
	const Value **list = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, const Value *);
	for (int i = 0; i < op->nresult; i++)
		list[i] = &op->results[i];
	return list;
}

static const Op *region_end(const Op *op, int i)
{
	const Block *b = op->regions[i].first;
	return b && b->last && (b->last->info->traits & TRAIT_TERMINATOR) ? b->last : NULL;
}

// One of several regions of which one runs, in a block of its own that goes to `after`. Sizes that
// it finds are known to itself alone: in another round the other regions may find them.
static bool part_flatten(Flatten *f, const Op *op, int region, Block *part, Block *after)
{
	const Block *b = op->regions[region].first;
	const Op *end = region_end(op, region);
	const int found = f->nsize;
	block_begin(f, part);
	if (b && !ops_flatten(f, b->first))
		return false;
	f->nsize = found;
	role_set(f, branch_build(f, op, NULL, after, NULL, end, 0), "join");
	return true;
}

// A branch with a block for each of its regions: cf.cond_br to two, or cf.switch.
static bool branch_flatten(Flatten *f, Op *op)
{
	const int n = op_parts(op);
	Block **parts = NEW_ARRAY(f->ctx->arena, (size_t)n, Block *);
	const Value **results = result_list(op);
	Value *value = op_operand(op, 0);
	for (int i = 0; i < n; i++) {
		if (!types_fit(op, region_end(op, i), 0, op->nresult, results))
			return false;
		parts[i] = block_new(f->ctx, f->region);
	}
	Block *after = block_new(f->ctx, f->region);
	if (op->code == OP_PD_IF)
		branch_build(f, op, value, parts[0], parts[1], NULL, 0);
	else
		switch_build(f, op, value, n, parts);
	for (int i = 0; i < n; i++)
		if (!part_flatten(f, op, i, parts[i], after))
			return false;
	block_begin(f, after);
	block_take_results(f, after, op);
	return true;
}

static bool while_flatten(Flatten *f, Op *op)
{
	Block *cond = op->regions[0].first, *body = op->regions[1].first;
	const Op *again = cond->last, *next = body->last;
	const Value *const *vars = (const Value *const *)cond->args;
	if (!types_fit(op, op, 0, cond->narg, vars) || !types_fit(op, next, 0, cond->narg, vars) ||
	    !types_fit(op, again, 1, body->narg, (const Value *const *)body->args) ||
	    !types_fit(op, again, 1, op->nresult, result_list(op)))
		return false;
	Block *head = block_new(f->ctx, f->region), *round = block_new(f->ctx, f->region);
	Block *done = block_new(f->ctx, f->region);
	role_set(f, branch_build(f, op, NULL, head, NULL, op, 0), "enter");
	block_begin(f, head);
	block_take_args(f, head, cond);
	if (!ops_flatten(f, cond->first))
		return false;
	role_set(f, branch_build(f, op, op_operand(again, 0), round, done, again, 1), "loop");
	const int found = f->nsize;
	block_begin(f, round);
	block_take_args(f, round, body);
	if (!ops_flatten(f, body->first))
		return false;
	f->nsize = found;
	Op *back = branch_build(f, op, NULL, head, NULL, next, 0);
	role_set(f, back, "back");
	if (f->max_trip)
		op_set_attr(back, "max_trip", attr_int(f->ctx, f->max_trip));
	for (int i = 0; i < op->nattr; i++)
		if (op_info_attr(back->info, op->attrs[i].name))
			op_set_attr(back, op->attrs[i].name, op->attrs[i].attr);
	block_begin(f, done);
	block_take_results(f, done, op);
	return true;
}

static bool control_flatten(Flatten *f, Op *op)
{
	const bool stack = op->nregion > op_parts(op);
	if (stack || (op->code != OP_PD_IF && op->code != OP_PD_CASE && op->code != OP_PD_WHILE)) {
		diag_error(f->ctx->diag, op->loc, "'%s'%s cannot be compiled yet", op->info->name,
		           stack ? " with a stack" : "");
		return false;
	}
	if (!(op->code == OP_PD_WHILE ? while_flatten(f, op) : branch_flatten(f, op)))
		return false;
	op_erase(op);
	return true;
}

// ---- operations ---------------------------------------------------------------------------------

// In front of the first branch, where every block sees it.
static void op_to_entry(Flatten *f, Op *op)
{
	op_detach(op);
	Op *end = f->entry->last;
	if (end && (end->info->traits & TRAIT_TERMINATOR))
		op_insert_before(end, op);
	else
		op_append(f->entry, op);
}

static bool is_listed(const Dim *d, int n, const Dim *const *list)
{
	for (int i = 0; i < n; i++)
		if (list[i] == d)
			return true;
	return false;
}

// Symbols that a loop found which is over, or another branch, get their values once more.
static void note_sizes(Flatten *f, Op *bind)
{
	const Attr *dims = op_attr(bind, "dims");
	bool known = false, before = false;
	for (int i = 0; i < dims->n; i++) {
		const Dim *d = dims->dims[i];
		if (d->kind != DIM_SYM || !d->bounded || is_listed(d, f->nsize, f->sizes)) {
			known = true;
			continue;
		}
		before |= is_listed(d, f->nbefore, f->before);
		VEC_ROOM(f->ctx->arena, f->sizes, f->nsize, f->csize);
		f->sizes[f->nsize++] = d;
		VEC_ROOM(f->ctx->arena, f->before, f->nbefore, f->cbefore);
		f->before[f->nbefore++] = d;
	}
	if (before && !known)
		op_set_attr(bind, "anew", attr_bool(f->ctx, true));
}

static bool op_flatten(Flatten *f, Op *op)
{
	if (op->info->kind == KIND_CONTROL && op->nregion)
		return control_flatten(f, op);
	if (op->code == OP_PD_FEED || (op->info->traits & TRAIT_CONSTANT)) {
		op_to_entry(f, op);
		return true;
	}
	if (op->code == OP_LOOP_BIND)
		note_sizes(f, op);
	bool outer = op_parent(op) == f->region->op;
	op_detach(op);
	if (op->code != OP_PD_FETCH) {
		op_append(f->at, op);
		return true;
	}
	if (!outer) {
		diag_error(f->ctx->diag, op->loc, "'%s' inside of control flow", op->info->name);
		return false;
	}
	op->scratch = f->fetches;
	f->fetches = op;
	return true;
}

// Moves the operations from `first` on into blocks; a terminator at their end stays behind.
static bool ops_flatten(Flatten *f, Op *first)
{
	for (Op *op = first, *next; op; op = next) {
		next = op->next;
		if (!(op->info->traits & TRAIT_TERMINATOR) && !op_flatten(f, op))
			return false;
	}
	return true;
}

static void fetches_append(Flatten *f)
{
	Op *before = NULL;
	for (Op *op = f->fetches, *next; op; op = next) {
		next = op->scratch;
		op->scratch = NULL;
		if (before)
			op_insert_before(before, op);
		else
			op_append(f->at, op);
		before = op;
	}
	op_append(f->at, op_new(f->ctx, OP_CF_RETURN, f->region->op->loc, 0, NULL, 0, NULL, 0, 0));
}

// ---- arguments that are not needed --------------------------------------------------------------

// What all branches pass for an argument, but for itself; NULL: different values. `*any` is set
// when one does.
static Value *arg_incoming(const Region *r, const Value *arg)
{
	Value *only = NULL;
	for (const Block *b = r->first; b; b = b->next)
		for (int s = 0; b->last && s < b->last->nsucc; s++) {
			const Succ *succ = &b->last->succs[s];
			if (succ->block != arg->block)
				continue;
			Value *v = op_operand(b->last, (int)(succ->first + arg->index));
			if (v == arg || v == only)
				continue;
			if (only)
				return NULL;
			only = v;
		}
	return only;
}

// ---- sizes that branches set --------------------------------------------------------------------

// Whether a size anywhere but in the type of `but` has the symbol.
static bool region_mentions(const Region *r, const Dim *sym, const Value *but)
{
	for (const Block *b = r->first; b; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			if (b->args[i] != but && type_mentions(b->args[i]->type, sym))
				return true;
		for (const Op *op = b->first; op; op = op->next) {
			if (attrs_mention(op, sym))
				return true;
			for (int i = 0; i < op->nresult; i++)
				if (type_mentions(op->results[i].type, sym))
					return true;
			for (int i = 0; i < op->nregion; i++)
				if (region_mentions(&op->regions[i], sym, but))
					return true;
		}
	}
	return false;
}

static void arg_remove(Region *r, Block *of, int i)
{
	for (Block *b = r->first; b; b = b->next)
		for (int s = 0; b->last && s < b->last->nsucc; s++)
			if (b->last->succs[s].block == of)
				op_remove_operand(b->last, (int)b->last->succs[s].first + i);
	block_remove_arg(of, i);
}

// Whether branches that pass something for the argument give a value to a size that is named
// elsewhere.
static bool arg_binds(const Region *r, const Value *arg)
{
	for (int i = 0; arg->type->kind == TY_TENSOR && i < arg->type->rank; i++) {
		const Dim *d = arg->type->dims[i];
		if (d->kind == DIM_SYM && d->bounded && region_mentions(r, d, arg))
			return true;
	}
	return false;
}

// Removes arguments that nobody reads and those that always are one value: variables that a loop
// does not change, results that both branches agree on, and all arguments of blocks with one branch
// to them.
static void args_simplify(Region *r)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (Block *b = r->first; b; b = b->next)
			for (int i = b->narg; i-- > 0;) {
				Value *arg = b->args[i], *only = arg_incoming(r, arg);
				if (only && only->type != arg->type)
					only = NULL; // it has a size of another name
				if (!only && (value_used(arg) || arg_binds(r, arg)))
					continue;
				if (only) {
					if (!only->name)
						only->name = arg->name;
					value_replace(arg, only);
				}
				arg_remove(r, b, i);
				changed = true;
			}
	}
}

static bool block_has_control(const Block *b)
{
	for (const Op *op = b->first; op; op = op->next)
		if (op->info->kind == KIND_CONTROL && op->nregion)
			return true;
	return false;
}

// Needs: nothing but the structure.
// Keeps: values, names, locations. `max_trip` on the branch back to the head of a loop bounds its
// rounds; attributes of the loop stand there, too. Breaks: passes that look for pd.if and pd.while.
bool pass_flatten(PassContext *p)
{
	Block *block = module_block(p->module);
	if (!block_has_control(block))
		return true;
	Region *r = &p->module->regions[0];
	Flatten f = {.ctx = p->ctx, .region = r, .max_trip = p->max_trip};
	f.entry = f.at = block_new(p->ctx, r);
	if (!ops_flatten(&f, block->first))
		return false;
	fetches_append(&f);
	r->first = f.entry;
	f.entry->prev = NULL;
	args_simplify(r);
	return true;
}
