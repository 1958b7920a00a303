// Which numbers of model_run are declared where they are computed: those that nobody reads outside
// of the innermost loop or branch that computes them, so that the declaration is in sight wherever
// they are read. The others stand in front of all blocks. Called by blocks.c, for blocks that nest.
#include "codegen/c/c.h"
#include "lower/analysis/analysis.h"

// A part of model_run between braces.
typedef struct Scope {
	const struct Scope *outer;
} Scope;

typedef struct Scopes {
	Codegen *cg;
	PointerMap of; // block -> its scope
} Scopes;

static const Scope *scope_open(const Scopes *s, const Scope *outer)
{
	Scope *new = NEW(s->cg->arena, Scope);
	new->outer = outer;
	return new;
}

static void blocks_visit(Scopes *s, const BlockTail *tail)
{
	const Scope *now = scope_open(s, NULL);
	for (const Block *b = s->cg->module->regions[0].first; b; b = b->next, tail++) {
		if (loop_back(b))
			now = scope_open(s, now);
		pointer_map_set(&s->of, b, now);
		if (tail->kind == TAIL_IF || tail->kind == TAIL_SWITCH)
			now = scope_open(s, now);
		else if (tail->kind == TAIL_PART)
			now = scope_open(s, now->outer);
		else if (tail->kind == TAIL_ROUND || tail->kind == TAIL_JOIN)
			now = now->outer;
	}
}

static bool scope_sees(const Scope *inner, const Scope *outer)
{
	while (inner && inner != outer)
		inner = inner->outer;
	return inner != NULL;
}

// What op reads, in its regions, too: a number that this is out of sight of has no scope.
static void reads_visit(Scopes *s, const Op *op, const Scope *at)
{
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (!v || !type_is_tensor(v->type))
			continue;
		const Value *root = value_place(v).root;
		const Scope *made = root->def ? pointer_map_get(&s->of, root->def->block) : NULL;
		if (!made || !scope_sees(at, made))
			pointer_map_set(&s->cg->widely, root, root);
	}
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (const Op *in = b->first; in; in = in->next)
				reads_visit(s, in, at);
}

void scopes_find(Codegen *cg, const BlockTail *tails)
{
	Scopes s = {.cg = cg};
	pointer_map_init(&s.of, cg->arena);
	blocks_visit(&s, tails);
	for (const Block *b = cg->module->regions[0].first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			reads_visit(&s, op, pointer_map_get(&s.of, b));
	cg->scoped = true;
}
