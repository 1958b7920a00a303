// Common subexpression elimination: of two equal pure operations, the later one gives way to the
// earlier. Structural hashing, scoped by block: what a region found is forgotten when it ends, what
// encloses it stays visible inside. Run by the pipeline after canonicalize and fold.
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

enum { BUCKETS = 1 << 12 };

typedef struct Entry {
	Op *op;
	size_t hash;
	struct Entry *next;  // in its bucket
	struct Entry *older; // in order of insertion, for leaving a scope
} Entry;

typedef struct Scopes {
	Arena *arena;
	Entry *buckets[BUCKETS];
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

static bool op_equal(const Op *a, const Op *b)
{
	if (a->code != b->code || a->noperand != b->noperand || a->nattr != b->nattr ||
	    a->nresult != b->nresult || !operands_equal(a, b))
		return false;
	for (int i = 0; i < a->nattr; i++)
		if (a->attrs[i].name != b->attrs[i].name || a->attrs[i].attr != b->attrs[i].attr)
			return false;
	for (int i = 0; i < a->nresult; i++)
		if (a->results[i].type != b->results[i].type)
			return false;
	return true;
}

static bool op_mergeable(const Op *op)
{
	return (op->info->traits & (TRAIT_PURE | TRAIT_CONSTANT)) &&
	       !(op->info->traits & TRAIT_TERMINATOR) && op->nregion == 0 && op->nresult > 0;
}

// Replaces op by an equal one that is visible, or remembers it.
static void op_merge(Scopes *s, Op *op)
{
	size_t hash = op_hash(op);
	Entry **bucket = &s->buckets[hash % BUCKETS];
	for (Entry *e = *bucket; e; e = e->next) {
		if (e->hash != hash || !op_equal(e->op, op))
			continue;
		Value **with = NEW_ARRAY(s->arena, (size_t)op->nresult, Value *);
		for (int i = 0; i < op->nresult; i++)
			with[i] = op_result(e->op, i);
		op_replace(op, with);
		return;
	}
	Entry *e = NEW(s->arena, Entry);
	*e = (Entry){op, hash, *bucket, s->newest};
	*bucket = s->newest = e;
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
		// Entries leave in the opposite order of their coming, so each is the head of its bucket.
		for (; s->newest != outer; s->newest = s->newest->older)
			s->buckets[s->newest->hash % BUCKETS] = s->newest->next;
	}
}

// Needs: nothing.  Keeps: everything.  Breaks: nothing.
bool pass_cse(PassContext *p)
{
	Arena *arena = arena_scratch(p->ctx->arena);
	Scopes *s = NEW(arena, Scopes);
	s->arena = arena;
	region_merge(s, &p->module->regions[0]);
	arena_free(arena);
	return true;
}
