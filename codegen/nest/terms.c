// Terms that rounds of the loop around the innermost share, as the places and weights at which all
// channels are sampled do: computed once for a strip of the innermost loop, kept in arrays on the
// stack, and read by each round. Called by nest.c.
#include "codegen/nest/nest.h"

// How many rounds share what is kept, and how many operations that saves in each, at least.
enum { MIN_ROUNDS = 3, MIN_SAVED = 8 };

static bool holds(const PointerMap *m, const void *key)
{
	return key && pointer_map_get(m, key) != NULL;
}

// Whether the argument is that of loop `l`, or merged into it.
static bool arg_of_loop(const Nest *n, const Value *v, const Loop *l)
{
	while (v && v != l->arg)
		v = pointer_map_get(&n->s.merged, v);
	return v != NULL;
}

// Index arithmetic costs less than to keep what it gives.
static bool is_term(const Nest *n, const Terms *t, const Op *op)
{
	return op->nresult == 1 && nest_level(n, &op->results[0]) == n->nloop &&
	       !holds(&t->moves, op) &&
	       (op->results[0].type->kind != TY_INDEX || op->code == OP_LOOP_NEAR_INDEX);
}

static bool term_add(Terms *t, const Value *v)
{
	const Type *type = v->type;
	for (int i = 0; i < t->n; i++)
		if (t->kept[i] == v)
			return true;
	if (t->n == (int)COUNT_OF(t->kept) ||
	    (v->def->code != OP_LOOP_NEAR_INDEX &&
	     (type->kind != TY_SCALAR || (type->dtype != DT_F32 && type->dtype != DT_BOOL))))
		return false;
	t->kept[t->n++] = v;
	return true;
}

// What reads `op` in a round: terms that it takes are kept.
static bool reader_visit(const Nest *n, Terms *t, const Op *op)
{
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (v && v->def && is_term(n, t, v->def) && !term_add(t, v))
			return false;
	}
	return true;
}

static bool sizes_are_known(const Nest *n)
{
	for (int i = 0; i < n->nloop; i++)
		if (!dim_is_const(n->loops[i].extent) || n->loops[i].extent->value < 1)
			return false;
	return true;
}

// Whether the loop around changes what op gives.
static bool op_moves(const Nest *n, const Terms *t, const Op *op)
{
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (v && (v->def ? holds(&t->moves, v->def) : arg_of_loop(n, v, &n->loops[n->nloop - 2])))
			return true;
	}
	return false;
}

// Whether op is printed in the rounds.
static bool in_rounds(const Nest *n, const Terms *t, const Op *op)
{
	return !op->nresult || (nest_needed(n, op) &&
	                        (holds(&t->moves, op) ||
	                         (nest_level(n, &op->results[0]) == n->nloop && !is_term(n, t, op))));
}

// What the rounds change, and what they take of what they do not.
static bool terms_gather(const Nest *n, Terms *t)
{
	for (const Op *op = n->body->first; op; op = op->next) {
		if (op->nregion || op->code == OP_LOOP_TO_INDEX)
			return false;
		if (op_moves(n, t, op))
			pointer_map_set(&t->moves, op, op);
	}
	for (const Op *op = n->body->first; op; op = op->next)
		if (in_rounds(n, t, op) && !reader_visit(n, t, op))
			return false;
	return t->n > 0;
}

// The operations behind the kept values; how many of them compute.
static int terms_before(const Nest *n, Terms *t)
{
	int saved = 0;
	for (int i = 0; i < t->n; i++)
		pointer_map_set(&t->before, t->kept[i]->def, t->kept[i]->def);
	for (const Op *op = block_terminator(n->body); op; op = op->prev) {
		if (!holds(&t->before, op))
			continue;
		saved += op->info->kind == KIND_MAP && op->results[0].type->kind != TY_INDEX;
		for (int i = 0; i < op->noperand; i++) {
			const Value *v = op_operand(op, i);
			if (v && v->def && nest_level(n, v) == n->nloop)
				pointer_map_set(&t->before, v->def, v->def);
		}
	}
	return saved;
}

Terms *nest_terms_find(Nest *n)
{
	if (n->nloop < 2 || n->turned || !n->k->target->vector || n->k->cg->backend->device ||
	    !sizes_are_known(n) || n->loops[n->nloop - 2].extent->value < MIN_ROUNDS ||
	    n->loops[n->nloop - 1].extent->value < n->k->target->lanes)
		return NULL;
	Terms *t = NEW(n->k->arena, Terms);
	pointer_map_init(&t->moves, n->k->arena);
	pointer_map_init(&t->before, n->k->arena);
	if (!terms_gather(n, t))
		return NULL;
	const int saved = terms_before(n, t);
	return saved >= MIN_SAVED && saved >= 2 * t->n ? t : NULL;
}

// Where a round of the loop finds what is kept in `array`.
static const char *kept_element(Arena *a, const char *array, const Loop *loop)
{
	return loop->first ? arena_printf(a, "%s[%s - %s]", array, loop->var, loop->first)
	                   : arena_printf(a, "%s[%s]", array, loop->var);
}

bool nest_terms_print(Nest *n, int strip, int depth)
{
	Terms *t = n->terms;
	Loop loop = n->loops[n->nloop - 1];
	for (int i = 0; i < t->n; i++) {
		const Value *v = t->kept[i];
		t->array[i] = kernel_local(n->k, "kept");
		text_line(n->out, depth, "%s %s[%d];",
		          v->type->kind == TY_SCALAR && v->type->dtype == DT_F32 ? "float" : "int32_t",
		          t->array[i], strip);
	}
	loop_open(&n->s, &loop, &depth, n->out);
	for (const Op *op = n->body->first; op; op = op->next)
		if (holds(&t->before, op) && !scalar_op_print(&n->s, op, true, depth, n->out))
			return false;
	for (int i = 0; i < t->n; i++) {
		const NarrowIndex *narrow = pointer_map_get(&n->s.narrow, t->kept[i]);
		const char *value = narrow ? narrow->variable : scalars_name(&n->s, t->kept[i]);
		if (!value)
			return false;
		text_line(n->out, depth, "%s = %s;", kept_element(n->k->arena, t->array[i], &loop), value);
	}
	loop_close(&n->s, &loop, &depth, n->out);
	return true;
}

void nest_terms_name(Nest *n)
{
	Arena *a = n->k->arena;
	for (int i = 0; n->terms && i < n->terms->n; i++) {
		const Value *v = n->terms->kept[i];
		const char *name = kept_element(a, n->terms->array[i], &n->loops[n->nloop - 1]);
		if (v->def->code == OP_LOOP_NEAR_INDEX) {
			NarrowIndex *narrow = NEW(a, NarrowIndex);
			narrow->variable = name;
			name = narrow->name = arena_printf(a, "((%s)%s)", n->k->index, name);
			pointer_map_set(&n->s.narrow, v, narrow);
		}
		pointer_map_set(&n->s.names, v, name);
	}
}
