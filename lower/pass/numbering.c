// The table of visible operations: structural hashing, and a list in order of their coming, along
// which scopes are left. Called by cse and by fusion, which keeps scalar code simple.
#include "lower/pass/numbering.h"
#include "ir/core/opinfo.h"

struct Numbered {
	Op *op;
	size_t hash;
	const Numbered *next; // of the same hash
	Numbered *older;      // in order of insertion, for leaving a scope
};

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

bool op_alike(const Op *a, const Op *b)
{
	if (a->code != b->code || a->noperand != b->noperand || a->nresult != b->nresult ||
	    !op_attrs_equal(a, b) || op_stops_gradient(a) != op_stops_gradient(b))
		return false;
	for (int i = 0; i < a->nresult; i++)
		if (a->results[i].type != b->results[i].type)
			return false;
	return true;
}

static const void *hash_key(size_t hash)
{
	return (const void *)(uintptr_t)(hash | 1);
}

void numbering_init(Numbering *n, Arena *a)
{
	*n = (Numbering){.arena = a};
	pointer_map_init(&n->entries, a);
}

Op *numbering_meet(Numbering *n, Op *op)
{
	const size_t hash = op_hash(op);
	const Numbered *same = pointer_map_get(&n->entries, hash_key(hash));
	for (const Numbered *e = same; e; e = e->next)
		if (op_alike(e->op, op) && operands_equal(e->op, op))
			return e->op;
	Numbered *e = NEW(n->arena, Numbered);
	*e = (Numbered){op, hash, same, n->newest};
	n->newest = e;
	pointer_map_set(&n->entries, hash_key(hash), e);
	return NULL;
}

// Entries leave in the opposite order of their coming, so each is the newest of its hash.
void numbering_leave(Numbering *n, Numbered *mark)
{
	for (; n->newest != mark; n->newest = n->newest->older)
		pointer_map_set(&n->entries, hash_key(n->newest->hash), n->newest->next);
}
