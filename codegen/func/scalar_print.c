// Prints scalar regions as C statements: one printer for loop nests, epilogues of kernels and CUDA.
// Called by nest.c, reduce.c and the kernel emitters.
//
// A value is a C expression kept in Scalars.names: the name of a local, or the text of its
// operation when it has one reader that holds it once.
#include "codegen/func/func.h"
#include "lower/analysis/nest.h"

#include <string.h>

// Longer expressions get a local of their own.
enum { MAX_INLINE_LENGTH = 72 };

// Whether e needs no parentheses as an operand: a word, `(…)`, `name[…]` or `name(…)`, the name
// perhaps a member.
static bool expression_is_primary(const char *e)
{
	while (char_is_word(*e) || *e == '.' || (*e == '-' && e[1] == '>' && char_is_word(e[2])))
		e += *e == '-' ? 2 : 1;
	if (!*e)
		return true;
	int depth = 0;
	for (; *e; e++) {
		depth += (*e == '(' || *e == '[') - (*e == ')' || *e == ']');
		if (!depth)
			return !e[1];
	}
	return false;
}

// How long an expression is to read. Long names count alike: the same program has other names when
// another version of Paddle wrote it, and is the same code.
static size_t expression_length(const char *e)
{
	enum { MOST_OF_NAME = 8 };
	size_t n = 0, name = 0;
	for (; *e; e++) {
		name = char_is_word(*e) ? name + 1 : 0;
		n += name <= MOST_OF_NAME;
	}
	return n;
}

// Whether use, or that of a conversion of it, is an arm of `? :`. A load in one is read only where
// the condition holds; gcc 12 makes masked loads of that, and of some groups of them it reads the
// wrong elements. The element is there in any case, or a condition of the load's own says so.
static bool is_arm(const Scalars *s, const Use *use)
{
	while (use->user->code == OP_PD_CAST && value_use_count(&use->user->results[0]) == 1)
		use = use->user->results[0].uses;
	return use->user->code == OP_PD_WHERE && use->index &&
	       scalars_known(s, op_operand(use->user, 0)) < 0;
}

// Whether a nest loads another element of the same row, too: what one round reads the round before
// has read then. Where that is read in front of what is computed of it, clang still makes vectors
// of rounds.
static bool is_neighbour(const Op *load)
{
	const int at = load_indices_at(load) - 1; // the tensor, and positions behind it
	for (const Use *u = op_operand(load, at)->uses; u; u = u->next) {
		const Op *other = u->user;
		int same = 0;
		if (other == load || other->block != load->block || !load_indices_at(other))
			continue;
		while (at + same < load->noperand &&
		       op_operand(load, at + same) == op_operand(other, (int)u->index + same))
			same++;
		if (at + same == load->noperand - 1)
			return true;
	}
	return false;
}

// Whether a load that one operation reads has to stand in front of that.
static bool load_stands_apart(const Scalars *s, const Op *op, const Use *use)
{
	if (!load_indices_at(op))
		return false;
	const bool loops = s->k->op->code == OP_LOOP_NEST && !s->k->cg->backend->device;
	return is_arm(s, use) || (loops && is_neighbour(op));
}

// The use of v, if one operation of those that are printed here reads it.
static const Use *only_use(const Scalars *s, const Value *v)
{
	if (s->needed)
		return needed_use(s->needed, v);
	return value_use_count(v) == 1 ? v->uses : NULL;
}

static bool op_is_inlined(const Scalars *s, const Op *op, const char *e, bool may)
{
	int64_t at;
	if (expression_is_word(e) || op->code == OP_LOOP_CONSTANT || op->code == OP_LOOP_DIM ||
	    guard_is_silent(op) || spans_exact(s, &op->results[0], &at))
		return true;
	const Use *use = may ? only_use(s, &op->results[0]) : NULL;
	if (!use)
		return false;
	const bool stored = use->user == block_terminator(op->block);
	if (!stored && expression_length(e) > MAX_INLINE_LENGTH)
		return false;
	return !load_stands_apart(s, op, use) && use->user->block == op->block &&
	       scalar_stands_once(s, use->user, (int)use->index);
}

bool scalar_op_print(Scalars *s, const Op *op, bool may_inline, int depth, Text *out)
{
	if (op->code == OP_LOOP_TO_INDEX)
		return to_index_print(s, op, depth, out);
	if (op->code == OP_LOOP_NEAR_INDEX)
		return near_index_print(s, op, depth, out);
	if (op->code == OP_LOOP_REDUCE)
		return s->k->cg->backend->reduce(s, op, depth, out);
	const char *e = scalar_expression(s, op);
	if (!e)
		return false;
	const Value *v = &op->results[0];
	if (op_is_inlined(s, op, e, may_inline)) {
		pointer_map_set(&s->names, v,
		                expression_is_primary(e) ? e : arena_printf(s->k->arena, "(%s)", e));
		return true;
	}
	const char *name = kernel_local(s->k, "v");
	text_line(out, depth, "const %s %s = %s;", kernel_scalar(s->k, v->type), name, e);
	pointer_map_set(&s->names, v, name);
	return true;
}

// The name of a quotient or a rest that has one; NULL: op is none.
static const char *split_name(const IndexSplit *split, const Op *op)
{
	if (!split || op->noperand != 2 || op_operand(op, 0) != split->arg)
		return NULL;
	return op->code == OP_PD_FLOOR_DIVIDE ? split->quotient
	       : op->code == OP_PD_REMAINDER  ? split->rest
	                                      : NULL;
}

bool scalar_region_print(KernelFunc *k, const Region *r, const char *const *args,
                         const IndexSplit *split, int depth, Text *out, const char **yields)
{
	Scalars s;
	scalars_init(&s, k);
	const Block *b = r->first;
	for (int i = 0; i < b->narg; i++) {
		pointer_map_set(&s.names, b->args[i], args[i] ? args[i] : "0");
		if (!args[i]) // the next one has the position of both
			pointer_map_set(&s.merged, b->args[i], b->args[i + 1]);
	}
	const Op *end = block_terminator(b);
	for (const Op *op = b->first; op != end; op = op->next) {
		const char *name = split_name(split, op);
		if (name)
			pointer_map_set(&s.names, &op->results[0], name);
		else if (!scalar_op_print(&s, op, true, depth, out))
			return false;
	}
	for (int i = 0; i < end->noperand; i++)
		if (!(yields[i] = scalars_name(&s, op_operand(end, i))))
			return false;
	return true;
}
