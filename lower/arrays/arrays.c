// Tensor arrays become tensors while control flow still has its structure, so that everything
// behind this pass knows tensors only. An array is
//
//   data    [capacity x dims of an element], or [capacity x slice] where elements differ in size
//   length  i64 [1]
//   sizes   i64 [capacity x rank] where elements differ in size, -1 in positions that hold nothing; else
//   present bool [capacity] where positions may be skipped
//
// A write is a loop.update, which the memory plan does in place. Loops and branches pass these
// tensors instead of the array, feeds and fetches get one column for each (`part` says which it is,
// `of` the column of the data).
#include "lower/arrays/arrays.h"
#include "lower/arrays/parts.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

enum { MAX_NESTING = 200 };

static bool region_rewrite(Arrays *a, Region *r, int depth);

// ---- lists of values ----------------------------------------------------------------------------

typedef struct ValueList {
	int n;
	Value **values;
} ValueList;

// Operands from `first` on, arrays as their tensors.
static ValueList operands_expand(Arrays *a, const Op *op)
{
	ValueList l = {0, NEW_ARRAY(a->arena, (size_t)op->noperand * GROUP_MAX + 1, Value *)};
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		const ArrayGroup *g = v ? array_group(a, v) : NULL;
		if (g)
			l.n += array_parts(g, l.values + l.n);
		else
			l.values[l.n++] = v;
	}
	return l;
}

// What a tensor of an array is called, from the array's name.
static const char *part_name(Arrays *a, const char *name, int part)
{
	static const char *const suffix[] = {"", "_length", "_elements"};
	return name ? context_str(a->ctx, arena_printf(a->arena, "%s%s", name, suffix[part])) : NULL;
}

// ---- control flow -------------------------------------------------------------------------------

// The block's arguments, arrays as their tensors.
static void block_expand(Arrays *a, Block *b)
{
	int n = b->narg;
	Value **old = NEW_ARRAY(a->arena, (size_t)n + 1, Value *);
	if (n)
		memcpy(old, b->args, (size_t)n * sizeof *old);
	b->args = NULL;
	b->narg = b->carg = 0;
	for (int i = 0; i < n; i++) {
		ArrayGroup *g = array_group(a, old[i]);
		const Type *types[GROUP_MAX];
		Value *parts[GROUP_MAX];
		int count = g ? array_part_types(a, g->c, types) : 0;
		for (int k = 0; k < count; k++) {
			parts[k] = block_add_arg(a->ctx, b, types[k]);
			parts[k]->name = part_name(a, old[i]->name, k);
		}
		if (g) {
			array_set_parts(g, count, parts);
			continue;
		}
		// Its place in the list is what changes.
		block_add_arg(a->ctx, b, old[i]->type);
		old[i]->index = (uint32_t)b->narg - 1;
		b->args[b->narg - 1] = old[i];
	}
}

static ValueList results_types(Arrays *a, const Op *op, const Type ***types)
{
	ValueList l = {0, NULL};
	*types = NEW_ARRAY(a->arena, (size_t)op->nresult * GROUP_MAX + 1, const Type *);
	for (int i = 0; i < op->nresult; i++) {
		const ArrayGroup *g = array_group(a, &op->results[i]);
		if (g)
			l.n += array_part_types(a, g->c, *types + l.n);
		else
			(*types)[l.n++] = op->results[i].type;
	}
	return l;
}

// The results of op are those of `with`, arrays as their tensors.
static void results_move(Arrays *a, Op *op, Op *with)
{
	int at = 0;
	for (int i = 0; i < op->nresult; i++) {
		Value *from = &op->results[i];
		ArrayGroup *g = array_group(a, from);
		const Type *types[GROUP_MAX];
		Value *parts[GROUP_MAX];
		int n = g ? array_part_types(a, g->c, types) : 1;
		for (int k = 0; k < n; k++) {
			parts[k] = &with->results[at++];
			parts[k]->name = part_name(a, from->name, k);
		}
		if (g) {
			array_set_parts(g, n, parts);
			continue;
		}
		parts[0]->stop_gradient = from->stop_gradient;
		parts[0]->persistable = from->persistable;
		parts[0]->known = from->known;
		parts[0]->nknown = from->nknown;
		value_replace(from, parts[0]);
	}
}

static bool control_rewrite(Arrays *a, Op *op, int depth)
{
	const Type **types;
	ValueList operands = operands_expand(a, op), results = results_types(a, op, &types);
	Op *with = op_remake(op, results.n, types, operands.n, operands.values);
	for (int i = 0; i < with->nregion; i++) {
		Region *r = &with->regions[i];
		for (Block *b = r->first; b; b = b->next)
			block_expand(a, b);
		if (!region_rewrite(a, r, depth + 1))
			return false;
	}
	results_move(a, op, with);
	return true;
}

// ---- operations ---------------------------------------------------------------------------------

static bool op_has_array(Arrays *a, const Op *op)
{
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && array_group(a, op_operand(op, i)))
			return true;
	for (int i = 0; i < op->nresult; i++)
		if (array_group(a, &op->results[i]))
			return true;
	return false;
}

// Operations on arrays stay until all their readers have been rewritten.
static bool op_rewrite(Arrays *a, Op *op, int depth)
{
	int errors = diag_errors(a->ctx->diag);
	bool ends = op->code == OP_CF_YIELD || op->code == OP_CF_COND_YIELD, ok = true;
	if (op->nregion && !op_has_array(a, op)) {
		for (int i = 0; i < op->nregion && ok; i++)
			ok = region_rewrite(a, &op->regions[i], depth + 1);
	} else if (op_is_branch(op) || op->code == OP_PD_WHILE)
		ok = control_rewrite(a, op, depth);
	else if (ends && op_has_array(a, op)) {
		ValueList operands = operands_expand(a, op);
		op_remake(op, 0, NULL, operands.n, operands.values);
		op_erase(op);
	} else if (op_has_array(a, op))
		ok = array_op_rewrite(a, op);
	if (!ok && diag_errors(a->ctx->diag) == errors)
		diag_error(a->ctx->diag, op->loc, "'%s': this use of a tensor array cannot be compiled",
		           op->info->name);
	return ok;
}

static bool region_rewrite(Arrays *a, Region *r, int depth)
{
	if (depth > MAX_NESTING) {
		diag_error(a->ctx->diag, r->op->loc, "control flow is nested too deep");
		return false;
	}
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			if (op->nregion && op->info->kind != KIND_CONTROL)
				continue;
			if (!op_rewrite(a, op, depth))
				return false;
		}
	return true;
}

// What the rewritten operations left: readers come after what they read, so backwards.
static void region_clear(Arrays *a, Region *r)
{
	for (Block *b = r->last; b; b = b->prev)
		for (Op *op = b->last, *prev; op; op = prev) {
			prev = op->prev;
			bool moved = (op_is_branch(op) || op->code == OP_PD_WHILE) && !op->regions[0].first;
			if (moved || op_has_array(a, op)) {
				op_erase(op);
				continue;
			}
			for (int i = 0; i < op->nregion; i++)
				region_clear(a, &op->regions[i]);
		}
}

// The first columns that no feed or fetch has.
static bool columns_visit(Op *op, void *arg)
{
	Arrays *a = arg;
	int *n = op->code == OP_PD_FEED ? &a->nfeed : op->code == OP_PD_FETCH ? &a->nfetch : NULL;
	int64_t col = op_int(op, "col", 0);
	if (n && col >= *n && col < INT16_MAX)
		*n = (int)col + 1;
	return true;
}

// Needs: structured control flow (before flatten); operators of pd that make positions (before
// to-loops). Keeps: names and locations. Breaks: nothing; no array is left.
bool pass_arrays(PassContext *p)
{
	Arena *arena = arena_scratch(p->ctx->arena);
	Arrays a = {.p = p, .ctx = p->ctx, .arena = arena};
	Region *r = &p->module->regions[0];
	a.tail = &a.classes;
	bool ok = arrays_find(&a);
	if (ok && a.ngroup) {
		op_walk(p->module, columns_visit, &a);
		arrays_size(&a);
		ok = region_rewrite(&a, r, 0);
		if (ok)
			region_clear(&a, r);
	}
	arena_free(arena);
	return ok;
}
