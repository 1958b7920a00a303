// Tangents (forward mode) of operations and of straight-line code (gradient.h). Every operation's
// tangent stands right behind it, so that regions get theirs in place.
#include "ir/build/infer.h"
#include "ir/define/define.h"
#include "ir/gradient/tangent.h"

Builder tangent_behind(Op *op)
{
	return (Builder){op->ctx, op->block, op->next, op->loc};
}

Value *tangent_or_zero(Builder *b, Duals *d, Value *v)
{
	Value *t = duals_get(b, d, v);
	return t ? t : gradient_zeros_for(b, v);
}

// The operations that have come in front of b since `before` was the last one there.
typedef struct Span {
	Op *first, *last; // NULL: none
} Span;

static Op *span_begin(const Builder *b)
{
	return b->before ? b->before->prev : b->block->last;
}

static Span span_end(const Builder *b, Op *before)
{
	Span s = {before ? before->next : b->block->first, span_begin(b)};
	return s.first == b->before || s.last == before ? (Span){NULL, NULL} : s;
}

// ---- one operation ------------------------------------------------------------------------------

// Of what is linear in all that may move, together: the same for the tangents.
static bool tangent_same(Duals *d, Op *op)
{
	Builder b = tangent_behind(op);
	ValueMap *m = value_map_new(b.ctx->arena);
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		if (v && value_moves(v)) {
			Value *t = tangent_or_zero(&b, d, v);
			if (!t)
				return false;
			value_map_set(m, v, t);
		}
	}
	Op *same = op_clone(b.ctx, op, m);
	if (b.before)
		op_insert_before(b.before, same);
	else
		op_append(b.block, same);
	for (int i = 0; i < op->nresult; i++)
		if (!duals_add(&b, d, op_result(op, i), op_result(same, i)))
			return false;
	return true;
}

// The rules of a map are slopes, times the gradient of the result; here times the tangent of the
// operand.
static bool tangent_by_rules(Duals *d, Op *op)
{
	Builder b = tangent_behind(op);
	const OpInfo *info = op->info;
	Value *out = op_result(op, 0);
	const bool tensor = type_is_tensor(out->type);
	const EnvEntry *names;
	const char *without = gradient_rule_missing(d, op);
	if (without)
		return op_error(op, "it has no tangent with respect to '%s'", without);
	int n = op_env(op, &names);
	EnvEntry *env = NEW_ARRAY(b.ctx->arena, (size_t)n + 2, EnvEntry);
	for (int i = 0; i < n; i++)
		env[2 + i] = names[i];
	env[0].name = arena_printf(b.ctx->arena, "d_%s", info->results[0]);
	env[1] = (EnvEntry){info->results[0], out, NULL};
	for (int i = 0; i < info->ngrad; i++) {
		Value *x = op_operand(op, op_info_operand(info, info->grad_names[i])),
			  *t = x && duals_wanted(d, x) ? duals_get(&b, d, x) : NULL;
		if (!t)
			continue;
		env[0].value = tensor ? tensor_cast(&b, t, out->type->dtype)
		                      : scalar_cast(&b, t, out->type->dtype);
		// Rules give what an operand gets, in its type, which casts to that of the result again.
		Value *part = env[0].value ? build_expr(&b, info->grads[i], n + 2, env) : NULL;
		if (part && tensor)
			part = tensor_spread(&b, tensor_cast(&b, part, out->type->dtype), out->type->rank,
			                     out->type->dims);
		if (!part || !duals_add(&b, d, out, part))
			return false;
	}
	return true;
}

// By what the operation means: tangents of that. `d` knows those of the operands.
static bool tangent_by_meaning(Duals *d, Op *op, Duals *to)
{
	Builder b = tangent_behind(op);
	Op *before = span_begin(&b);
	Value **results = NEW_ARRAY(b.ctx->arena, (size_t)op->nresult + 1, Value *);
	if (!op_define(&b, op, results))
		return false;
	Span s = span_end(&b, before);
	if (s.first && !tangent_ops(d, s.first, s.last))
		return false;
	for (int i = 0; i < op->nresult; i++) {
		Value *t = results[i] ? duals_get(&b, d, results[i]) : NULL;
		if (t && !duals_add(&b, to, op_result(op, i), t))
			return false;
	}
	return true;
}

// Of an operator that reads one triangle of a symmetric matrix: its tangent is symmetric, too.
static bool tangent_symmetric(Duals *d, Op *op)
{
	Builder b = tangent_behind(op);
	Value *x = op_operand(op, 0), *t = duals_get(&b, d, x);
	Duals *own = duals_like(d);
	const int rank = x->type->rank;
	int64_t perm[MAX_RANK];
	if (!t)
		return true;
	for (int i = 0; i < rank; i++)
		perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
	t = tensor_add(&b, t, tensor_transpose(&b, t, rank, perm));
	t = t ? tensor_mul(&b, t, tensor_number(&b, t->type->dtype, 0.5)) : NULL;
	duals_want(own, x);
	return t && duals_add(&b, own, x, t) && tangent_by_meaning(own, op, d);
}

// Of what has come in front of b behind `before`: what nobody reads goes, but for n values.
static void drop_unread(const Builder *b, Op *before, int n, Value *const *but)
{
	for (Op *op = span_begin(b), *next; op && op != before; op = next) {
		next = op->prev;
		bool read = !(op->info->traits & TRAIT_PURE) && op->info->kind != KIND_MAP;
		for (int i = 0; i < op->nresult; i++) {
			read |= value_used(op_result(op, i));
			for (int k = 0; k < n; k++)
				read |= but[k] == op_result(op, i);
		}
		if (!read && op->nresult)
			op_erase(op);
	}
}

// Each operand's gradient gets the operand's tangent as what comes in for it.
static bool gradients_meet_tangents(Builder *b, Op *op, Duals *d, Duals *back, Duals *again)
{
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && duals_get(b, d, op_operand(op, i)))
			duals_want(back, op_operand(op, i));
	if (!op_gradient(b, op, back))
		return false;
	for (int i = 0; i < op->noperand; i++) {
		Value *x = op_operand(op, i), *dx = x ? duals_get(b, back, x) : NULL;
		for (int k = 0; k < i && dx; k++)
			dx = op_operand(op, k) == x ? NULL : dx;
		if (dx && !duals_add(b, again, dx, tangent_or_zero(b, d, x)))
			return false;
	}
	return true;
}

// The gradient is linear in what comes in; the gradient of that, with respect to what comes in, is
// the tangent. For operations whose gradient has no loop.
static bool tangent_by_transposing(Duals *d, Op *op)
{
	Builder b = tangent_behind(op);
	Duals *back = duals_like(d), *again = duals_like(d);
	Value **in = NEW_ARRAY(b.ctx->arena, (size_t)op->nresult + 1, Value *);
	Op *before = span_begin(&b);
	for (int i = 0; i < op->nresult; i++) {
		if (!value_moves(op_result(op, i)))
			continue;
		in[i] = gradient_zero(&b, op->results[i].type);
		duals_want(again, in[i]);
		if (!in[i] || !duals_add(&b, back, op_result(op, i), in[i]))
			return false;
	}
	if (!gradients_meet_tangents(&b, op, d, back, again))
		return false;
	Span s = span_end(&b, before);
	if (s.first && !gradient_ops(&b, again, s.first, s.last))
		return false;
	for (int i = 0; i < op->nresult; i++) {
		in[i] = in[i] ? duals_get(&b, again, in[i]) : NULL;
		if (in[i] && !duals_add(&b, d, op_result(op, i), in[i]))
			return false;
	}
	drop_unread(&b, before, op->nresult, in);
	return true;
}

static bool gives_or_takes_complex(const Op *op)
{
	bool found = op->nresult && dtype_is_complex(op->results[0].type->dtype);
	for (int i = 0; i < op->noperand; i++)
		found |= op_operand(op, i) && dtype_is_complex(op_operand(op, i)->type->dtype);
	return found;
}

// From what the table has of an operation.
static bool tangent_by_table(Duals *d, Op *op)
{
	const OpInfo *info = op->info;
	const OpFunctions *f = op_functions(op);
	if (info->kind == KIND_BUILTIN || (info->traits & TRAIT_VIEW && op->code != OP_LOOP_PREFIX))
		return tangent_same(d, op);
	if (info->ngrad && info->kind == KIND_MAP && !gives_or_takes_complex(op))
		return tangent_by_rules(d, op);
	if (f->gradient == gradient_hook_symmetric)
		return tangent_symmetric(d, op);
	if (info->ngrad || f->gradient)
		return tangent_by_transposing(d, op);
	if (f->define || info->compose || info->scalar)
		return tangent_by_meaning(d, op, d);
	return op_error(op, "the operator has no tangent");
}

static bool tangent_op(Duals *d, Op *op)
{
	bool wanted = false;
	duals_reach(d, op);
	for (int i = 0; i < op->nresult; i++)
		wanted |= duals_wanted(d, op_result(op, i));
	if (!wanted || !(op->noperand || op->nregion))
		return true;
	switch (op->code) {
	case OP_PD_IF:
	case OP_PD_CASE: return tangent_branch(d, op);
	case OP_PD_WHILE: return tangent_while(d, op);
	case OP_LOOP_NEST: return tangent_nest(d, op);
	case OP_LOOP_REDUCE: return tangent_reduce(d, op);
	case OP_LOOP_LOAD:
	case OP_LOOP_LOAD_OR: return tangent_load(d, op);
	default: return tangent_by_table(d, op);
	}
}

bool tangent_ops(Duals *d, Op *first, Op *last)
{
	// What is built is not to have tangents itself.
	size_t n = 0;
	for (Op *op = first; op; op = op == last ? NULL : op->next)
		n++;
	Op **ops = NEW_ARRAY(first->ctx->arena, n + 1, Op *);
	Op *op = first;
	for (size_t i = 0; i < n; i++, op = op->next)
		ops[i] = op;
	for (size_t i = 0; i < n; i++)
		if (!tangent_op(d, ops[i]))
			return false;
	return true;
}
