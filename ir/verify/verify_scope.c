// The scope rule: a value is visible after its definition in its region and in the regions nested
// in it, never outside. Within a region of several blocks, "after" is dominance. Called by
// ir_verify, on a sound structure.
#include "ir/verify/rules.h"

#include <string.h>

// A region around the operation at hand, and the immediate dominators of its blocks.
typedef struct Scope {
	const Region *region;
	const struct Scope *outer;
	const int *idom; // by block id: id of the immediate dominator, -1 for unreachable blocks; NULL:
	                 // one block
} Scope;

// The control flow of a region, while dominators are found.
typedef struct Flow {
	int n;
	const Block **blocks; // by id
	int *order;           // reachable blocks in postorder
	int norder;
	int *position;   // by id: place in `order`, -1 for unreachable blocks
	int *pred_start; // predecessors of b: preds[pred_start[b]] up to preds[pred_start[b + 1]]
	int *preds;
} Flow;

static void flow_preds(Context *c, Flow *f)
{
	int edges = 0;
	f->pred_start = NEW_ARRAY(c->arena, (size_t)f->n + 2, int);
	for (int b = 0; b < f->n; b++) {
		const Op *last = f->blocks[b]->last;
		for (int s = 0; last && s < last->nsucc; s++, edges++)
			f->pred_start[last->succs[s].block->id + 2]++;
	}
	for (int b = 2; b < f->n + 2; b++)
		f->pred_start[b] += f->pred_start[b - 1];
	// Filling moves each start to its end, which is the next block's start: hence the shift by one.
	f->preds = NEW_ARRAY(c->arena, (size_t)edges, int);
	for (int b = 0; b < f->n; b++) {
		const Op *last = f->blocks[b]->last;
		for (int s = 0; last && s < last->nsucc; s++)
			f->preds[f->pred_start[last->succs[s].block->id + 1]++] = b;
	}
}

// Depth-first from the entry, without recursion: the depth is the user's.
static void flow_order(Context *c, Flow *f)
{
	int *stack = NEW_ARRAY(c->arena, (size_t)f->n, int),
		*next = NEW_ARRAY(c->arena, (size_t)f->n, int);
	f->order = NEW_ARRAY(c->arena, (size_t)f->n, int);
	f->position = NEW_ARRAY(c->arena, (size_t)f->n, int);
	bool *seen = NEW_ARRAY(c->arena, (size_t)f->n, bool);
	for (int b = 0; b < f->n; b++)
		f->position[b] = -1;
	int depth = 1;
	seen[0] = true;
	while (depth) {
		int b = stack[depth - 1];
		const Op *last = f->blocks[b]->last;
		if (last && next[b] < last->nsucc) {
			int to = (int)last->succs[next[b]++].block->id;
			if (!seen[to]) {
				seen[to] = true;
				stack[depth++] = to;
			}
			continue;
		}
		f->position[b] = f->norder;
		f->order[f->norder++] = b;
		depth--;
	}
}

// The nearest common dominator, by the algorithm of Cooper, Harvey and Kennedy.
static int flow_meet(const Flow *f, const int *idom, int a, int b)
{
	while (a != b) {
		while (f->position[a] < f->position[b])
			a = idom[a];
		while (f->position[b] < f->position[a])
			b = idom[b];
	}
	return a;
}

static const int *find_dominators(Context *c, const Region *r, int n)
{
	Flow f = {.n = n, .blocks = NEW_ARRAY(c->arena, (size_t)n, const Block *)};
	for (const Block *b = r->first; b; b = b->next)
		f.blocks[b->id] = b;
	flow_order(c, &f);
	flow_preds(c, &f);
	int *idom = NEW_ARRAY(c->arena, (size_t)n, int);
	for (int b = 1; b < n; b++)
		idom[b] = -1;
	for (bool changed = true; changed;) {
		changed = false;
		for (int i = f.norder - 2; i >= 0; i--) {
			int b = f.order[i], best = -1;
			for (int k = f.pred_start[b]; k < f.pred_start[b + 1]; k++) {
				int p = f.preds[k];
				if (idom[p] >= 0)
					best = best < 0 ? p : flow_meet(&f, idom, p, best);
			}
			changed |= idom[b] != best;
			idom[b] = best;
		}
	}
	return idom;
}

static bool block_dominates(const Scope *s, const Block *a, const Block *b)
{
	if (!s->idom || a == b)
		return a == b;
	int at = (int)b->id, want = (int)a->id;
	if (s->idom[at] < 0)
		return true; // never reached
	while (at != want && at != 0)
		at = s->idom[at];
	return at == want;
}

static const char *value_text(const Op *op, int i)
{
	const Value *v = op->operands[i].value;
	return v->name ? arena_printf(op->ctx->arena, "%s (%%%s)", operand_text(op, i), v->name)
	               : operand_text(op, i);
}

static bool check_use(const Op *user, int i, const Scope *scope)
{
	const Value *v = user->operands[i].value;
	const Block *home = v->def ? v->def->block : v->block;
	if (!home)
		return verify_fail(user, "%s is defined by an operation that is not in the program",
		                   value_text(user, i));
	// The operation of the value's region that is, or that holds, the user.
	const Op *at = user;
	const Scope *s = scope;
	for (; s && s->region != home->region; s = s->outer)
		at = s->region->op;
	if (!s)
		return verify_fail(user, "%s is used outside of the region that defines it",
		                   value_text(user, i));
	if (at == v->def && at != user)
		return verify_fail(user, "%s is a result of the operation around it", value_text(user, i));
	bool after = !v->def || (uintptr_t)v->def->scratch < (uintptr_t)at->scratch;
	if (home == at->block ? after : block_dominates(s, home, at->block))
		return true;
	return verify_fail(user, "%s is used before it is defined", value_text(user, i));
}

static bool scope_region(Context *c, Region *r, const Scope *outer)
{
	Scope scope = {.region = r, .outer = outer};
	int nblock = 0;
	bool ok = true;
	for (Block *b = r->first; b; b = b->next) {
		b->id = (uint32_t)nblock++;
		uintptr_t number = 0;
		for (Op *op = b->first; op; op = op->next)
			op->scratch = (void *)++number;
	}
	if (nblock > 1)
		scope.idom = find_dominators(c, r, nblock);
	for (Block *b = r->first; b; b = b->next) {
		for (Op *op = b->first; op; op = op->next) {
			for (int i = 0; i < op->noperand; i++) {
				if (op->operands[i].value)
					ok &= check_use(op, i, &scope);
			}
			for (int k = 0; k < op->nregion; k++)
				ok &= scope_region(c, &op->regions[k], &scope);
		}
	}
	return ok;
}

bool verify_scope(Op *root)
{
	bool ok = true;
	for (int i = 0; i < root->nregion; i++)
		ok &= scope_region(root->ctx, &root->regions[i], NULL);
	return ok;
}
