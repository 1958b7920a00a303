// Broadcasting. Two sizes that meet are equal, or one is 1, or the program is wrong; where only a
// run can tell, the operand is brought to the common size by a pd.expand, whose definition checks
// it. So every other operation sees sizes that are equal, or the constant 1.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"

#include <string.h>

enum { MAX_GROUP = 8 };

// Operands that broadcast against each other, but for their last `apart` axes.
typedef struct Group {
	int n, operands[MAX_GROUP];
	int apart;
} Group;

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

static Group group_of(const Op *op)
{
	Group g = {0};
	const char *rule = op->info->result_types && op->info->nresult ? op->info->result_types[0]
	                                                               : NULL;
	bool ruled = rule && !strncmp(rule, "broadcast(", 10);
	switch (op->code) {
	case OP_PD_MATMUL:
	case OP_PD_SCALED_MATMUL:
	case OP_PD_BMM: g.apart = 2; break;
	case OP_PD_DOT:
	case OP_PD_DIST:
	case OP_PD_MASKED_SELECT: break;
	default:
		if (!ruled)
			return g;
	}
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

// The common size of the axis that is `back` axes before the last; NULL: sizes that are known do
// not go together.
static const Dim *common_size(const Op *op, const Group *g, int back, bool *open)
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

// Brings axis `back` of operand i to `size` where it is not surely 1 or that.
static bool stretch_axis(const Group *g, const Type *t, int back, const Dim *size,
                         const Dim **shape)
{
	int axis = t->rank - g->apart - 1 - back;
	if (axis < 0 || dim_is(t->dims[axis], 1) || t->dims[axis] == size)
		return false;
	shape[axis] = size;
	return true;
}

bool broadcast_operands(Op *op)
{
	const Group g = group_of(op);
	const Dim *sizes[MAX_RANK];
	bool open[MAX_RANK], any = false;
	int rank = 0;
	for (int i = 0; i < g.n; i++) {
		int have = op_operand(op, g.operands[i])->type->rank - g.apart;
		rank = have > rank ? have : rank;
	}
	for (int back = 0; back < rank; back++) {
		if (!(sizes[back] = common_size(op, &g, back, &open[back])))
			return true; // for inference to report
		any = any || open[back];
	}
	for (int i = 0; any && i < g.n; i++) {
		Value *v = op_operand(op, g.operands[i]);
		const Dim *shape[MAX_RANK];
		bool stretched = false;
		memcpy(shape, v->type->dims, sizeof *shape * (size_t)v->type->rank);
		for (int back = 0; back < rank; back++)
			if (open[back] && stretch_axis(&g, v->type, back, sizes[back], shape))
				stretched = true;
		if (!stretched)
			continue;
		Builder b = builder_before(op);
		Value *wide = build1(&b, OP_PD_EXPAND, v, "shape", attr_dims(op->ctx, v->type->rank, shape),
		                     NULL);
		if (!wide)
			return false;
		op_set_operand(op, g.operands[i], wide);
	}
	return true;
}

bool infer_broadcast(const Op *op, int ra, const Dim *const *a, int rb, const Dim *const *b,
                     int *rank, const Dim **dims)
{
	int r = ra > rb ? ra : rb;
	bool strict = !group_of(op).n; // nobody has stretched its operands
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
			return infer_error(
				op, "sizes that broadcast may be 1 or not: %s and %s; pd.expand makes them one",
				dim_text(op->ctx, a[da]), dim_text(op->ctx, b[db]));
		}
	}
	return true;
}

// ---- checks -------------------------------------------------------------------------------------

bool check_sizes(Builder *b, int n, const Dim *const *have, const Dim *const *want, bool one,
                 const char *message)
{
	Nest nest = nest_open(b, type_tensor(b->ctx, DT_BOOL, 0, NULL, 0));
	Value *all = NULL;
	for (int i = 0; i < n; i++) {
		Value *size = index_dim(&nest.b, have[i]);
		Value *fits = index_equal(&nest.b, size, index_dim(&nest.b, want[i]));
		if (one)
			fits = apply2(&nest.b, OP_PD_LOGICAL_OR, fits,
			              index_equal(&nest.b, size, index_const(&nest.b, 1)));
		all = pred_and(&nest.b, all, fits);
	}
	Value *holds = nest_close(&nest, all);
	const NamedAttr attrs[] = {{"message", attr_str(b->ctx, message)},
	                           {"sizes", attr_bool(b->ctx, true)}};
	return holds && build_op(b, OP_PD_ASSERT, 1, &holds, COUNT_OF(attrs), attrs);
}

bool check_equal_sizes(Op *op, int mark)
{
	for (int i = mark; i < dim_check_count(op->ctx); i++) {
		const Dim *a, *b;
		dim_check_get(op->ctx, i, &a, &b);
		Builder at = builder_before(op);
		if (a != b && !check_sizes(&at, 1, &a, &b, false, "sizes that must be equal differ"))
			return false;
	}
	return true;
}
