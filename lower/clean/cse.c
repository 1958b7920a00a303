// Common subexpression elimination: of two equal pure operations, the later one gives way to the
// earlier. Structural hashing, scoped by block: what a region found is forgotten when it ends, what
// encloses it stays visible inside. Run by the pipeline after canonicalize and fold.
#include "ir/base/map.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

typedef struct Entry {
	Op *op;
	size_t hash;
	const struct Entry *next; // of the same hash
	struct Entry *older;      // in order of insertion, for leaving a scope
} Entry;

typedef struct Scopes {
	Arena *arena;
	PointerMap entries; // hash -> the newest Entry that has it
	Entry *newest;
} Scopes;

static size_t mix(size_t h, const void *p)
{
	uint64_t v = (uint64_t)(uintptr_t)p;
	uint64_t x = ((uint64_t)h ^ v) * 0x9E3779B97F4A7C15u;
	return (size_t)(x ^ (x >> 29));
}

// Types, attributes and strings are uniqued, so pointers stand for what they point to.
static size_t op_hash(const Op *op)
{
	size_t h = (size_t)op->code;
	if (op->info->traits & TRAIT_COMMUTATIVE) {
		size_t sum = 0; // no matter the order
		for (int i = 0; i < op->noperand; i++)
			sum += mix(0, op_operand(op, i));
		h ^= sum;
	} else {
		for (int i = 0; i < op->noperand; i++)
			h = mix(h, op_operand(op, i));
	}
	for (int i = 0; i < op->nattr; i++)
		h = mix(mix(h, op->attrs[i].name), op->attrs[i].attr);
	for (int i = 0; i < op->nresult; i++)
		h = mix(h, op->results[i].type);
	return h;
}

static bool operands_equal(const Op *a, const Op *b)
{
	bool same = true;
	for (int i = 0; i < a->noperand; i++)
		same = same && op_operand(a, i) == op_operand(b, i);
	if (same)
		return true;
	return (a->info->traits & TRAIT_COMMUTATIVE) && a->noperand == 2 &&
	       op_operand(a, 0) == op_operand(b, 1) && op_operand(a, 1) == op_operand(b, 0);
}

// Whether two operations are equal but for what they take.
static bool op_alike(const Op *a, const Op *b)
{
	if (a->code != b->code || a->noperand != b->noperand || a->nresult != b->nresult ||
	    !op_attrs_equal(a, b) || op_stops_gradient(a) != op_stops_gradient(b))
		return false;
	for (int i = 0; i < a->nresult; i++)
		if (a->results[i].type != b->results[i].type)
			return false;
	return true;
}

static bool op_equal(const Op *a, const Op *b)
{
	return op_alike(a, b) && operands_equal(a, b);
}

static bool op_mergeable(const Op *op)
{
	return (op->info->traits & (TRAIT_PURE | TRAIT_CONSTANT)) &&
	       !(op->info->traits & TRAIT_TERMINATOR) && op->nregion == 0 && op->nresult > 0;
}

static const void *hash_key(size_t hash)
{
	return (const void *)(uintptr_t)(hash | 1);
}

// Replaces op by an equal one that is visible, or remembers it.
static void op_merge(Scopes *s, Op *op)
{
	size_t hash = op_hash(op);
	const Entry *same = pointer_map_get(&s->entries, hash_key(hash));
	for (const Entry *e = same; e; e = e->next) {
		if (!op_equal(e->op, op))
			continue;
		Value **with = NEW_ARRAY(s->arena, (size_t)op->nresult, Value *);
		for (int i = 0; i < op->nresult; i++)
			with[i] = op_result(e->op, i);
		op_replace(op, with);
		return;
	}
	Entry *e = NEW(s->arena, Entry);
	*e = (Entry){op, hash, same, s->newest};
	s->newest = e;
	pointer_map_set(&s->entries, hash_key(hash), e);
}

// ---- checks of sizes ----------------------------------------------------------------------------

typedef struct Check {
	Op *assertion;
	struct Check *older;
} Check;

// Whether two operations are equal when operands of the second have twins among values of the
// first.
static bool op_twin(const PointerMap *twins, const Op *a, const Op *b)
{
	if (!op_alike(a, b) || a->nregion || b->nregion)
		return false;
	for (int i = 0; i < a->noperand; i++) {
		const Value *twin = pointer_map_get(twins, op_operand(b, i));
		if (op_operand(a, i) != (twin ? twin : op_operand(b, i)))
			return false;
	}
	return true;
}

// Whether two nests without operands, of plain operations one after the other, say the same.
static bool nest_equal(Scopes *s, const Op *x, const Op *y)
{
	const Block *p = region_entry(&x->regions[0]), *q = region_entry(&y->regions[0]);
	PointerMap twins;
	if (!op_alike(x, y) || p->narg || q->narg)
		return false;
	pointer_map_init(&twins, s->arena);
	const Op *a = p->first, *b = q->first;
	for (; a && b; a = a->next, b = b->next) {
		if (!op_twin(&twins, a, b))
			return false;
		for (int i = 0; i < a->nresult; i++)
			pointer_map_set(&twins, &b->results[i], &a->results[i]);
	}
	return !a && !b;
}

static const Op *checked_nest(const Op *assertion)
{
	const Op *nest = op_operand(assertion, 0)->def;
	return nest && nest->code == OP_LOOP_NEST && nest->nresult == 1 && !nest->noperand &&
	               nest->nregion == 1
	           ? nest
	           : NULL;
}

// An array's elements have sizes of their own, which reading one may give to a symbol.
static bool may_hold_sizes(const Type *t)
{
	return t->kind != TY_TENSOR && t->kind != TY_VEC;
}

static bool operands_mention(const Op *op, const Dim *d)
{
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && type_mentions(op_operand(op, i)->type, d))
			return true;
	return false;
}

// Whether a result has a size that no operand has.
static bool result_binds(const Op *op, const Type *t)
{
	for (int d = 0; t->kind == TY_TENSOR && d < t->rank; d++)
		if (t->dims[d]->kind == DIM_SYM && t->dims[d]->bounded && !operands_mention(op, t->dims[d]))
			return true;
	return may_hold_sizes(t);
}

// Loops and branches, not regions of elements.
static bool op_is_control(const Op *op)
{
	const Op *last = op->nregion ? block_terminator(region_entry(&op->regions[0])) : NULL;
	return op->nregion && !(last && last->code == OP_LOOP_YIELD);
}

// Whether sizes that a run finds may have other values behind the operation than in front of it.
static bool sizes_change(const Op *op)
{
	if (op->code == OP_LOOP_NEST)
		return false;
	bool change = op_is_control(op) || op->code == OP_LOOP_BIND || op->code == OP_LOOP_CAPACITY;
	for (int i = 0; i < op->noperand; i++)
		change = change || (op_operand(op, i) && may_hold_sizes(op_operand(op, i)->type));
	for (int i = 0; i < op->nresult; i++)
		change = change || result_binds(op, op->results[i].type);
	return change;
}

// What an assertion in front of it has found to be true need not be asked again.
static void checks_merge(Scopes *s, Block *b)
{
	Check *seen = NULL;
	for (Op *op = b->first, *next; op; op = next) {
		next = op->next;
		if (sizes_change(op))
			seen = NULL;
		if (op->code != OP_PD_ASSERT || op->nsucc || !op_bool(op, "sizes", false) ||
		    !checked_nest(op))
			continue;
		const Check *c = seen;
		while (c && !nest_equal(s, checked_nest(c->assertion), checked_nest(op)))
			c = c->older;
		if (c) {
			op_erase(op);
			continue;
		}
		Check *new = NEW(s->arena, Check);
		*new = (Check){op, seen};
		seen = new;
	}
}

static void region_merge(Scopes *s, Region *r)
{
	for (Block *b = r->first; b; b = b->next) {
		Entry *outer = s->newest;
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				region_merge(s, &op->regions[i]);
			if (op_mergeable(op))
				op_merge(s, op);
		}
		checks_merge(s, b);
		// Entries leave in the opposite order of their coming, so each is the newest of its hash.
		for (; s->newest != outer; s->newest = s->newest->older)
			pointer_map_set(&s->entries, hash_key(s->newest->hash), s->newest->next);
	}
}

// Needs: nothing.  Keeps: everything.  Breaks: nothing.
bool pass_cse(PassContext *p)
{
	Arena *arena = arena_scratch(p->ctx->arena);
	Scopes s = {.arena = arena};
	pointer_map_init(&s.entries, arena);
	region_merge(&s, &p->module->regions[0]);
	arena_free(arena);
	return true;
}
