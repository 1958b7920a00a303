// Gradients of operations and of straight-line code (gradient.h).
#include "ir/gradient/gradient.h"
#include "ir/base/map.h"
#include "ir/build/infer.h"
#include "ir/define/define.h"

#include <string.h>

// ---- what hooks and rules use -------------------------------------------------------------------

Value *gradient_of(GradientJob *g, int result)
{
	Value *v = op_result(g->op, result), *dv = duals_get(g->b, g->duals, v);
	return dv ? dv : gradient_zeros_for(g->b, v);
}

bool gradient_comes(GradientJob *g, int result)
{
	return duals_come(g->duals, op_result(g->op, result));
}

bool gradient_wants(const GradientJob *g, int operand)
{
	return duals_wanted(g->duals, op_operand(g->op, operand));
}

// Sums dv along an axis whose size in the operand is 1, or the same: only a run can tell.
static Value *sum_open_axis(Builder *b, Value *dv, int axis, const Dim *to)
{
	Context *c = b->ctx;
	const Dim *dims[MAX_RANK], *from = dv->type->dims[axis];
	memcpy(dims, dv->type->dims, sizeof *dims * (size_t)dv->type->rank);
	dims[axis] = to;
	Nest n = nest_open(b, type_tensor(c, dv->type->dtype, dv->type->rank, dims, 0));
	// As many terms as positions of dv meet one of the operand: size over size.
	const Dim *times = dim_div(c, from, to);
	Value *at[MAX_RANK];
	Nest r = reduce_open(&n.b, "sum", dv->type->dtype, 1, &times);
	memcpy(at, n.at, sizeof at);
	at[axis] = index_add(&r.b, n.at[axis], r.at[0]);
	return nest_close(&n, reduce_close(&r, load(&r.b, dv, at)));
}

Value *gradient_sum_to(Builder *b, Value *dv, const Type *like)
{
	if (!dv || like->kind != TY_TENSOR)
		return dv;
	int64_t axes[MAX_RANK];
	int n = 0, extra = dv->type->rank - like->rank;
	for (int i = 0; i < dv->type->rank; i++) {
		const Dim *to = i < extra ? NULL : like->dims[i - extra];
		if (!to || (dim_is(to, 1) && !dim_is(dv->type->dims[i], 1)))
			axes[n++] = i;
	}
	if (n)
		dv = tensor_reduce(b, OP_PD_SUM, dv, n, axes);
	for (int i = 0; dv && i < like->rank; i++)
		if (dv->type->dims[i + extra] != like->dims[i])
			dv = sum_open_axis(b, dv, i + extra, like->dims[i]);
	return dv && dv->type->rank != like->rank ? tensor_reshape(b, dv, like->rank, like->dims) : dv;
}

bool gradient_give(GradientJob *g, int operand, Value *dv)
{
	Value *v = op_operand(g->op, operand);
	if (!dv || !v)
		return false;
	return duals_add(g->b, g->duals, v, gradient_sum_to(g->b, dv, v->type));
}

// ---- rules from the table -----------------------------------------------------------------------

// Rules are written for real numbers: d_out times the slope. What a complex result passes on is
// d_out times the conjugate of the slope (Paddle's convention), that is the conjugate of the rule
// for the conjugate of d_out.
Value *gradient_conjugate(Builder *b, Value *v)
{
	if (!v || !dtype_is_complex(v->type->dtype))
		return v;
	if (v->type->kind == TY_TENSOR)
		return apply1(b, OP_PD_CONJ, v);
	return apply2(b, OP_PD_COMPLEX, apply1(b, OP_PD_REAL, v),
	              apply1(b, OP_PD_NEGATIVE, apply1(b, OP_PD_IMAG, v)));
}

static bool gives_complex(const Op *op)
{
	const Type *t = op->nresult ? op->results[0].type : NULL;
	return t && (t->kind == TY_TENSOR || t->kind == TY_SCALAR) && dtype_is_complex(t->dtype);
}

static int rule_env(GradientJob *g, const EnvEntry **out)
{
	const EnvEntry *names;
	int n = op_env(g->op, &names), k = 0;
	const OpInfo *info = g->op->info;
	EnvEntry *env = NEW_ARRAY(g->b->ctx->arena, (size_t)(n + 2 * info->nresult) + 1, EnvEntry);
	// The gradients stand first: a number that meets no value takes their type.
	for (int i = 0; i < info->nresult; i++) {
		const char *name = arena_printf(g->b->ctx->arena, "d_%s", info->results[i]);
		if (type_moves(g->op->results[i].type))
			env[k++] = (EnvEntry){name, gradient_conjugate(g->b, gradient_of(g, i)), NULL};
		env[k++] = (EnvEntry){info->results[i], op_result(g->op, i), NULL};
	}
	memcpy(env + k, names, sizeof *env * (size_t)n);
	*out = env;
	return k + n;
}

const char *gradient_rule_missing(const Duals *d, const Op *op)
{
	const OpInfo *info = op->info;
	for (int i = 0; i < info->noperand; i++) {
		bool has = !duals_wanted(d, op_operand(op, i));
		for (int k = 0; k < info->ngrad; k++)
			has |= !strcmp(info->grad_names[k], info->operands[i].name);
		if (!has)
			return info->operands[i].name;
	}
	return NULL;
}

static bool gradient_by_rules(GradientJob *g)
{
	const OpInfo *info = g->op->info;
	const EnvEntry *env;
	int n = rule_env(g, &env);
	const char *without = gradient_rule_missing(g->duals, g->op);
	if (without)
		return op_error(g->op, "it has no gradient with respect to '%s'", without);
	for (int i = 0; i < info->ngrad; i++) {
		int operand = op_info_operand(info, info->grad_names[i]);
		if (!gradient_wants(g, operand))
			continue;
		Value *dv = build_expr(g->b, info->grads[i], n, env);
		dv = gives_complex(g->op) ? gradient_conjugate(g->b, dv) : dv;
		if (!dv || !gradient_give(g, operand, dv))
			return false;
	}
	return true;
}

// ---- by what an operation means -----------------------------------------------------------------

static bool define_can(const OpFunctions *f, const OpInfo *info)
{
	return f->define || info->compose || info->scalar;
}

// The operation as the loops that it means, in its place; who read it reads them. It stays for
// those who ask for the gradient of its results.
static bool gradient_in_place(GradientJob *g)
{
	Op *op = g->op, *before = op->prev;
	Builder b = builder_before(op);
	Value **results = NEW_ARRAY(b.ctx->arena, (size_t)op->nresult + 1, Value *);
	if (!op_define(&b, op, results))
		return false;
	Op *first = before ? before->next : op->block->first;
	for (int i = 0; i < op->nresult; i++) {
		if (!duals_add(g->b, g->duals, results[i], gradient_comes(g, i) ? gradient_of(g, i) : NULL))
			return false;
		if (!results[i]->name)
			value_name_like(op_result(op, i), results[i]);
		value_replace(op_result(op, i), results[i]);
	}
	return first == op || gradient_ops(g->b, g->duals, first, op->prev);
}

bool gradient_by_meaning(GradientJob *g)
{
	if (duals_how(g->duals)->expand && (g->op->info->traits & TRAIT_STEPS))
		return gradient_in_place(g);
	Builder *b = g->b;
	Op *op = g->op, *before = b->before ? b->before->prev : b->block->last;
	Value **results = NEW_ARRAY(b->ctx->arena, (size_t)op->nresult + 1, Value *);
	if (!op_define(b, op, results))
		return false;
	Op *first = before ? before->next : b->block->first,
	   *last = b->before ? b->before->prev : b->block->last;
	if (first == b->before)
		first = NULL;
	for (int i = 0; i < op->nresult; i++) {
		Value *dv = gradient_comes(g, i) ? gradient_of(g, i) : NULL;
		if (dv && results[i] && !duals_add(b, g->duals, results[i], dv))
			return false;
	}
	return !first || gradient_ops(b, g->duals, first, last);
}

// Of an operator that reads one triangle of a symmetric matrix: what goes to an element of it goes
// half to each of the two that are equal.
bool gradient_hook_symmetric(GradientJob *g)
{
	Duals *own = duals_like(g->duals);
	GradientJob meaning = {g->b, g->op, own};
	Value *x = op_operand(g->op, 0);
	int64_t perm[MAX_RANK];
	const int rank = x->type->rank;
	duals_want(own, x);
	for (int i = 0; i < g->op->nresult; i++)
		if (gradient_comes(g, i) && !duals_add(g->b, own, op_result(g->op, i), gradient_of(g, i)))
			return false;
	if (!gradient_by_meaning(&meaning))
		return false;
	Value *dv = duals_get(g->b, own, x);
	for (int i = 0; i < rank; i++)
		perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
	Value *sum = dv ? tensor_add(g->b, dv, tensor_transpose(g->b, dv, rank, perm)) : NULL;
	return !dv ||
	       gradient_give(g, 0, tensor_mul(g->b, sum, tensor_number(g->b, sum->type->dtype, 0.5)));
}

// ---- single operations --------------------------------------------------------------------------

static bool gradient_combine(GradientJob *g)
{
	for (int i = 0; i < g->op->noperand; i++)
		if (gradient_wants(g, i) && !duals_add(g->b, g->duals, op_operand(g->op, i),
		                                       duals_part(g->duals, op_result(g->op, 0), i)))
			return false;
	return true;
}

static bool gradient_slice(GradientJob *g)
{
	return duals_add_part(g->b, g->duals, op_operand(g->op, 0), (int)op_int(g->op, "index", 0),
	                      gradient_of(g, 0));
}

static bool gradient_view(GradientJob *g)
{
	const Type *t = op_operand(g->op, 0)->type;
	return duals_add(g->b, g->duals, op_operand(g->op, 0),
	                 tensor_reshape(g->b, gradient_of(g, 0), t->rank, t->dims));
}

static bool is_view(const OpInfo *info)
{
	return (info->traits & TRAIT_VIEW) && info->code != OP_LOOP_PREFIX;
}

bool op_has_gradient(const Context *c, enum OpCode code)
{
	const OpInfo *info = &op_table[code];
	const OpFunctions *f = &c->functions[code];
	return info->ngrad || f->gradient || is_view(info) || define_can(f, info) ||
	       code == OP_LOOP_NEST || code == OP_BUILTIN_COMBINE || code == OP_BUILTIN_SLICE;
}

bool op_gradient(Builder *b, Op *op, Duals *d)
{
	GradientJob g = {b, op, d};
	bool comes = false;
	for (int i = 0; i < op->nresult; i++)
		comes |= gradient_comes(&g, i);
	if (!comes || !op_reads_any(op, dual_is_wanted, d))
		return true;
	if (op->code == OP_BUILTIN_COMBINE)
		return gradient_combine(&g);
	if (op->code == OP_BUILTIN_SLICE)
		return gradient_slice(&g);
	if (op->code == OP_LOOP_NEST)
		return gradient_nest(b, op, d);
	if (op->code == OP_LOOP_REDUCE)
		return gradient_reduce(b, op, d);
	if (op->code == OP_LOOP_LOAD_OR)
		return gradient_load_or(b, op, d);
	if (op->info->ngrad)
		return gradient_by_rules(&g);
	if (op_functions(op)->gradient)
		return op_functions(op)->gradient(&g);
	if (is_view(op->info))
		return gradient_view(&g);
	if (define_can(op_functions(op), op->info))
		return gradient_by_meaning(&g);
	return op_error(op, "the operator has no gradient");
}

bool gradient_ops(Builder *b, Duals *d, Op *first, Op *last)
{
	// What the gradient adds to the block is not to be differentiated itself.
	Op *op = first;
	size_t n = 0;
	for (; op; op = op == last ? NULL : op->next) {
		duals_reach(d, op);
		n++;
	}
	Op **ops = NEW_ARRAY(b->ctx->arena, n + 1, Op *);
	op = first;
	for (size_t i = 0; i < n; i++, op = op->next)
		ops[i] = op;
	while (n-- > 0)
		if (!op_stops_gradient(ops[n]) && !op_gradient(b, ops[n], d))
			return false;
	return true;
}
