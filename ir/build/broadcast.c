// Broadcasting of types. Two sizes that meet are equal, or one is 1, or the program is wrong; where
// only a run can tell, stretch.c has made them one.
#include "ir/build/broadcast.h"
#include "ir/build/infer.h"

#include <string.h>

static bool is_word(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_';
}

// Whether a result rule of the table, `broadcast(x, y)`, lists the operand.
static bool rule_lists(const char *rule, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = rule; (at = strstr(at, name)); at += n)
		if (!is_word(at[-1]) && !is_word(at[n]))
			return true;
	return false;
}

// How many last axes of the operands stay out of it; -1: it does not broadcast by a rule of its
// own.
static int axes_apart(const Op *op)
{
	switch (op->code) {
	case OP_PD_MATMUL:
	case OP_PD_SCALED_MATMUL: return 2;
	case OP_PD_DIST:
	case OP_PD_MASKED_SELECT: return 0;
	default: return -1;
	}
}

Group broadcast_group(const Op *op)
{
	Group g = {0};
	const char *rule = op->info->result_types && op->info->nresult ? op->info->result_types[0]
	                                                               : NULL;
	bool ruled = rule && !strncmp(rule, "broadcast(", 10);
	const int apart = axes_apart(op);
	if (apart < 0 && !ruled)
		return g;
	g.apart = apart > 0 ? apart : 0;
	for (int i = 0; i < op->info->noperand && i < op->noperand && g.n < MAX_GROUP; i++) {
		const Value *v = op_operand(op, i);
		if (ruled && !rule_lists(rule, op->info->operands[i].name))
			continue;
		if (!v || !v->type || v->type->kind != TY_TENSOR)
			return (Group){0};
		g.operands[g.n++] = i;
	}
	return g;
}

const Dim *broadcast_size(const Op *op, const Group *g, int back, bool *open)
{
	const Dim *size = dim_const(op->ctx, 1);
	*open = false;
	for (int i = 0; i < g->n; i++) {
		const Type *t = op_operand(op, g->operands[i])->type;
		const Dim *d = t->rank - g->apart > back ? t->dims[t->rank - g->apart - 1 - back] : NULL;
		if (!d || dim_is(d, 1) || d == size)
			continue;
		if (dim_is_const(d) && dim_is_const(size) && !dim_is(size, 1))
			return NULL;
		*open = *open || !dim_is(size, 1);
		size = dim_broadcast(op->ctx, size, d);
	}
	return size;
}

bool infer_broadcast(const Op *op, int ra, const Dim *const *a, int rb, const Dim *const *b,
                     int *rank, const Dim **dims)
{
	int r = ra > rb ? ra : rb;
	bool strict = !broadcast_group(op).n; // nobody has stretched its operands
	*rank = r;
	for (int d = 0; d < r; d++) {
		int da = d - (r - ra), db = d - (r - rb);
		if (da < 0 || (db >= 0 && dim_is(a[da], 1)))
			dims[d] = b[db];
		else if (db < 0 || dim_is(b[db], 1) || a[da] == b[db])
			dims[d] = a[da];
		else if (strict || (dim_is_const(a[da]) && dim_is_const(b[db]))) {
			if (!infer_same_dim(op, a[da], b[db], "sizes that broadcast", &dims[d]))
				return false;
		} else {
			return op_error(
				op, "sizes that broadcast may be 1 or not: %s and %s; pd.expand makes them one",
				dim_text(op->ctx, a[da]), dim_text(op->ctx, b[db]));
		}
	}
	return true;
}

const Type *infer_broadcast_pair(const Op *op)
{
	const Type *x = infer_tensor(op, 0), *y = infer_tensor(op, 1);
	const Dim *dims[MAX_RANK];
	int rank;
	if (!x || !y || !infer_broadcast(op, x->rank, x->dims, y->rank, y->dims, &rank, dims))
		return NULL;
	return type_tensor(op->ctx, x->dtype, rank, dims, 0);
}

bool infer_broadcast_open(const Op *op, int ra, const Dim *const *a, int rb, const Dim *const *b,
                          int *rank, const Dim **dims)
{
	const Dim *one = dim_const(op->ctx, 1);
	*rank = ra > rb ? ra : rb;
	for (int d = 0; d < *rank; d++) {
		const Dim *x = d < *rank - ra ? one : a[d - (*rank - ra)],
				  *y = d < *rank - rb ? one : b[d - (*rank - rb)];
		if (x != y && dim_is_const(x) && dim_is_const(y) && !dim_is(x, 1) && !dim_is(y, 1))
			return op_error(op, "sizes that broadcast differ: %s and %s", dim_text(op->ctx, x),
			                dim_text(op->ctx, y));
		dims[d] = dim_broadcast(op->ctx, x, y);
	}
	return true;
}

// ---- checks -------------------------------------------------------------------------------------
