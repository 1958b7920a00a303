// Stretching operands, and the checks of sizes that only a run can do: where it cannot be told
// whether two sizes that meet are equal or one is 1, the operand is brought to the common size by a
// pd.expand, whose definition checks it. So every other operation sees sizes that are equal, or the
// constant 1.
#include "ir/build/broadcast.h"
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"

#include <string.h>

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
	const Group g = broadcast_group(op);
	const Dim *sizes[MAX_RANK];
	bool open[MAX_RANK], any = false;
	int rank = 0;
	for (int i = 0; i < g.n; i++) {
		int have = op_operand(op, g.operands[i])->type->rank - g.apart;
		rank = have > rank ? have : rank;
	}
	for (int back = 0; back < rank; back++) {
		if (!(sizes[back] = broadcast_size(op, &g, back, &open[back])))
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

static bool size_is_right(const Dim *have, const Dim *want, bool one)
{
	return have == want || (one && dim_is(have, 1));
}

bool check_sizes(Builder *b, int n, const Dim *const *have, const Dim *const *want, bool one,
                 const char *message)
{
	int first = 0;
	while (first < n && size_is_right(have[first], want[first], one))
		first++;
	if (first == n)
		return true;
	Nest nest = nest_open(b, type_tensor(b->ctx, DT_BOOL, 0, NULL, 0));
	Value *all = NULL;
	for (int i = first; i < n; i++) {
		if (size_is_right(have[i], want[i], one))
			continue;
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

bool check_within(Builder *b, int n, const Dim *const *need, const Dim *const *have,
                  const char *message)
{
	const Dim *most[MAX_RANK];
	for (int i = 0; i < n; i++)
		most[i] = dim_max(b->ctx, need[i], have[i]);
	return check_sizes(b, n, most, have, false, message);
}

bool check_equal_sizes(Op *op, int mark)
{
	for (int i = mark; i < dim_check_count(op->ctx); i++) {
		const Dim *a, *b;
		dim_check_get(op->ctx, i, &a, &b);
		Builder at = builder_before(op);
		if (!check_sizes(&at, 1, &a, &b, false, "sizes that must be equal differ"))
			return false;
	}
	return true;
}
