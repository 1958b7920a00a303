// Which values of a module are needed where: who reads each of them, in which blocks they live, and
// from which operation to which their bytes are in use. Called by plan.c.
#include "ir/base/vec.h"
#include "lower/memory/plan.h"

// ---- readers ------------------------------------------------------------------------------------

static void root_add_use(Plan *p, Root *r, int at)
{
	VEC_ROOM(p->arena, r->uses, r->nuse, r->cuse);
	r->uses[r->nuse++] = at;
}

// The operation of the module's blocks that op is in, or is.
static const Op *op_outermost(const Plan *p, const Op *op)
{
	while (op->block->region != p->region)
		op = op_parent(op);
	return op;
}

// Readers of v, which is the root or shows its bytes; a list keeps its elements alive as long as it
// is read itself.
static void root_find_uses(Plan *p, Root *r, const Value *v)
{
	for (const Use *u = v->uses; u; u = u->next) {
		const Op *user = op_outermost(p, u->user);
		root_add_use(p, r, op_plan(user)->at);
		for (int i = 0; i < user->nresult; i++) {
			bool view = i == 0 && u->index == 0 && u->user == user && op_is_view(user);
			if (view || user->results[i].type->kind == TY_VEC)
				root_find_uses(p, r, &user->results[i]);
		}
	}
}

// ---- blocks -------------------------------------------------------------------------------------

static BlockPlan *block_of(const Plan *p, int at)
{
	int lo = 0, hi = p->nblock - 1;
	while (lo < hi) {
		int mid = (lo + hi + 1) / 2;
		if (p->blocks[mid].start <= at)
			lo = mid;
		else
			hi = mid - 1;
	}
	return &p->blocks[lo];
}

const BlockPlan *root_block(const Plan *p, const Root *r)
{
	return block_of(p, r->at);
}

static bool set_has(const uint64_t *set, int id)
{
	return set && (set[id / 64] >> (id % 64) & 1);
}

static bool set_add(uint64_t *set, int id)
{
	bool had = set_has(set, id);
	set[id / 64] |= UINT64_C(1) << (id % 64);
	return !had;
}

// Which blocks branch to each block.
typedef struct Preds {
	int *start; // [nblock + 1]
	int *list;
} Preds;

static Preds preds_find(Plan *p)
{
	Preds pr = {.start = NEW_ARRAY(p->arena, (size_t)p->nblock + 2, int)};
	int n = 0;
	for (int fill = 0; fill < 2; fill++) {
		if (fill)
			pr.list = NEW_ARRAY(p->arena, (size_t)n + 1, int);
		n = 0;
		for (int b = 0; b < p->nblock; b++) {
			pr.start[b] = n;
			for (int q = 0; q < p->nblock; q++) {
				const Op *end = p->blocks[q].block->last;
				for (int s = 0; end && s < end->nsucc; s++) {
					if ((int)end->succs[s].block->id != b)
						continue;
					if (fill)
						pr.list[n] = q;
					n++;
				}
			}
		}
		pr.start[p->nblock] = n;
	}
	return pr;
}

// From a reader in block `from` backwards to where r is made.
static void root_flood(Plan *p, const Preds *pr, const Root *r, int home, int from, int *stack)
{
	int depth = 0;
	if (from != home && set_add(p->blocks[from].in, r->id))
		stack[depth++] = from;
	while (depth) {
		int b = stack[--depth];
		for (int k = pr->start[b]; k < pr->start[b + 1]; k++) {
			int q = pr->list[k];
			set_add(p->blocks[q].out, r->id);
			if (q != home && set_add(p->blocks[q].in, r->id))
				stack[depth++] = q;
		}
	}
}

static void blocks_flood(Plan *p)
{
	size_t words = (size_t)p->nroot / 64 + 1;
	for (int b = 0; b < p->nblock; b++) {
		p->blocks[b].in = NEW_ARRAY(p->arena, words, uint64_t);
		p->blocks[b].out = NEW_ARRAY(p->arena, words, uint64_t);
	}
	Preds pr = preds_find(p);
	int *stack = NEW_ARRAY(p->arena, (size_t)p->nblock + 1, int);
	for (Buffer *b = p->first; b; b = b->next)
		for (const Root *r = b->roots; r; r = r->next) {
			int home = (int)block_of(p, r->at)->block->id;
			for (int i = 0; i < r->nuse; i++)
				root_flood(p, &pr, r, home, (int)block_of(p, r->uses[i])->block->id, stack);
		}
}

void plan_find_uses(Plan *p)
{
	for (Buffer *b = p->first; b; b = b->next)
		for (Root *r = b->roots; r; r = r->next)
			root_find_uses(p, r, r->value);
	if (p->nblock > 1)
		blocks_flood(p);
}

// ---- lifetimes ----------------------------------------------------------------------------------

static void span_add(Buffer *b, int at)
{
	if (at < b->first)
		b->first = at;
	if (at > b->last)
		b->last = at;
}

// An argument is written where branches pass it.
static void arg_span(const Plan *p, Buffer *b, const Value *arg)
{
	for (int i = 0; i < p->nblock; i++) {
		const Op *end = p->blocks[i].block->last;
		for (int s = 0; end && s < end->nsucc; s++)
			if (end->succs[s].block == arg->block)
				span_add(b, p->blocks[i].end);
	}
}

static void root_span(const Plan *p, Buffer *b, const Root *r)
{
	span_add(b, r->at);
	for (int i = 0; i < r->nuse; i++)
		span_add(b, r->uses[i]);
	for (int i = 0; i < p->nblock && p->nblock > 1; i++) {
		if (set_has(p->blocks[i].in, r->id))
			span_add(b, p->blocks[i].start);
		if (set_has(p->blocks[i].out, r->id))
			span_add(b, p->blocks[i].end);
	}
	if (!r->value->def)
		arg_span(p, b, r->value);
}

void plan_find_spans(Plan *p)
{
	for (Buffer *b = p->first; b; b = b->next) {
		if (b->merged)
			continue;
		b->first = INT32_MAX;
		b->last = 0;
		for (const Root *r = b->roots; r; r = r->next)
			root_span(p, b, r);
	}
}

// ---- conflicts ----------------------------------------------------------------------------------

bool root_needed_at_start(const Root *r, const BlockPlan *b)
{
	return set_has(b->in, r->id);
}

bool root_needed_after(const Root *r, const BlockPlan *b, int at)
{
	bool here = r->at >= b->start && r->at <= b->end;
	if (here ? r->at > at : !set_has(b->in, r->id))
		return false;
	if (set_has(b->out, r->id))
		return true;
	for (int i = 0; i < r->nuse; i++)
		if (r->uses[i] > at && r->uses[i] <= b->end)
			return true;
	return false;
}

static bool root_used_at(const Root *r, int at)
{
	for (int i = 0; i < r->nuse; i++)
		if (r->uses[i] == at)
			return true;
	return false;
}

// Whether making `y` would destroy `x` while it is needed.
static bool root_destroys(const Plan *p, const Root *y, const Root *x)
{
	const BlockPlan *b = root_block(p, y);
	if (!y->value->def)
		return root_needed_at_start(x, b);
	if (root_needed_after(x, b, y->at))
		return true;
	return root_used_at(x, y->at) && !op_reads_in_place(p, y->value->def, (int)y->value->index, x);
}

static bool roots_meet(const Plan *p, const Root *x, const Root *y)
{
	const Value *v = x->value, *w = y->value;
	if (v->def ? v->def == w->def : v->block == w->block)
		return true;
	return root_destroys(p, x, y) || root_destroys(p, y, x);
}

bool buffers_meet(const Plan *p, const Buffer *a, const Buffer *b)
{
	for (const Root *x = a->roots; x; x = x->next)
		for (const Root *y = b->roots; y; y = y->next)
			if (roots_meet(p, x, y))
				return true;
	return false;
}
