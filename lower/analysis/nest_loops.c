// Loops of nests and reductions: which arguments are one, how loads move along them, and which
// power of two divides what a load addresses. Called by passes that choose forms, and by printers.
#include "lower/analysis/nest.h"

// ---- merged arguments ---------------------------------------------------------------------------

int load_indices_at(const Op *op)
{
	return op->code == OP_LOOP_LOAD ? 1 : op->code == OP_LOOP_LOAD_OR ? 3 : 0;
}

const Type *load_tensor(const Op *load)
{
	return op_operand(load, load_indices_at(load) - 1)->type;
}

// Whether every use of `arg` is an index of a load that has `other` beside it (at `step`), where
// the dim of the second one is `extent`.
static bool always_beside(const Value *arg, const Value *other, int step, const Dim *extent)
{
	for (const Use *u = arg->uses; u; u = u->next) {
		int first = load_indices_at(u->user), at = (int)u->index;
		if (!first || at < first || at + step < first || op_operand(u->user, at + step) != other)
			return false;
		const Type *t = load_tensor(u->user);
		int second = (step > 0 ? at + 1 : at) - first;
		if (second >= t->rank || t->dims[second] != extent)
			return false;
	}
	return true;
}

bool nest_args_beside(const Block *b, int i, const Dim *extent)
{
	const Value *arg = b->args[i], *next = b->args[i + 1];
	return always_beside(arg, next, 1, extent) && always_beside(next, arg, -1, extent);
}

int nest_loops(Context *c, const Block *b, const Dim *const *extents, PointerMap *merged,
               NestLoop *loops)
{
	int n = 0;
	for (int i = 0; i < b->narg; i++) {
		const Dim *extent = extents[i];
		while (i + 1 < b->narg && nest_args_beside(b, i, extents[i + 1])) {
			pointer_map_set(merged, b->args[i], b->args[i + 1]);
			extent = dim_mul(c, extent, extents[++i]);
		}
		loops[n++] = (NestLoop){.arg = b->args[i], .extent = extent};
	}
	return n;
}

int nest_loops_long(NestLoop *loops, int nloop)
{
	int kept = 0;
	for (int i = 0; i < nloop; i++)
		if (!dim_is(loops[i].extent, 1))
			loops[kept++] = loops[i];
	return kept;
}

static void operands_need(const Op *op, PointerMap *needed)
{
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && op_operand(op, i)->def)
			pointer_map_set(needed, op_operand(op, i)->def, op);
	for (int i = 0; i < op->nregion; i++)
		nest_needs(op->regions[i].first, needed);
}

void nest_needs(const Block *b, PointerMap *needed)
{
	const Op *end = block_terminator(b);
	operands_need(end, needed);
	for (const Op *op = end->prev; op; op = op->prev)
		if (pointer_map_get(needed, op))
			operands_need(op, needed);
}

// ---- strides ------------------------------------------------------------------------------------

enum { COEF_UNKNOWN = INT32_MAX, MAX_COEF_STEPS = 256 };

// Coefficients stay small, so that sums of them do.
static int64_t coef_clip(int64_t coef)
{
	return coef > -COEF_UNKNOWN && coef < COEF_UNKNOWN ? coef : COEF_UNKNOWN;
}

// The coefficient of what the operation computes, from those of its first two operands.
static int64_t op_coef(const Op *op, const int64_t *x)
{
	const Value *y = op->noperand > 1 ? op_operand(op, 1) : NULL;
	if (x[0] == COEF_UNKNOWN || x[1] == COEF_UNKNOWN)
		return COEF_UNKNOWN;
	if (op->code == OP_PD_ADD)
		return coef_clip(x[0] + x[1]);
	if (op->code == OP_PD_SUBTRACT)
		return coef_clip(x[0] - x[1]);
	int64_t factor;
	if (op->code != OP_PD_MULTIPLY || x[1] || !index_constant(y, &factor))
		return COEF_UNKNOWN;
	factor = coef_clip(factor);
	return factor == COEF_UNKNOWN ? factor : coef_clip(x[0] * factor);
}

// Steps bound the walk, not its depth: the rounds of an unrolled search use each value several
// times, and the ways through them double with each round.
static int64_t index_coef(const Value *index, const Value *var, int *steps)
{
	if (index == var)
		return 1;
	if (!index->def)
		return 0;
	const Op *op = index->def;
	if (op->code == OP_LOOP_CONSTANT || op->code == OP_LOOP_DIM)
		return 0;
	if (*steps == 0 || op->code == OP_LOOP_REDUCE)
		return COEF_UNKNOWN;
	--*steps;
	int64_t x[2] = {0, 0};
	bool all_zero = true;
	for (int i = 0; i < op->noperand; i++) {
		int64_t coef = op_operand(op, i) ? index_coef(op_operand(op, i), var, steps) : 0;
		all_zero &= coef == 0;
		if (i < 2)
			x[i] = coef;
	}
	return all_zero ? 0 : op_coef(op, x);
}

int64_t index_stride(const Value *index, const Value *var)
{
	int steps = MAX_COEF_STEPS;
	return index_coef(index, var, &steps);
}

int64_t index_divisor(const Value *index)
{
	int64_t by = 0;
	for (const Use *u = index->uses; u; u = u->next) {
		const Op *op = u->user;
		if ((op->code != OP_PD_FLOOR_DIVIDE && op->code != OP_PD_REMAINDER) || u->index != 0)
			continue;
		const Op *d = op_operand(op, 1)->def;
		const Dim *dim = d && d->code == OP_LOOP_DIM ? op_attr(d, "dim")->dim : NULL;
		int64_t v = dim && dim_is_const(dim) ? dim->value : 0;
		index_constant(op_operand(op, 1), &v);
		if (v < 1 || (by && v != by))
			return 0;
		by = v;
	}
	return by;
}

int load_stride(const Op *load, const Value *var)
{
	int first = load_indices_at(load), stride = 0;
	const Type *t = op_operand(load, first - 1)->type;
	for (int d = 0; d < t->rank; d++) {
		const Value *index = op_operand(load, first + d);
		int64_t coef = index_stride(index, var);
		if (dim_is(t->dims[d], 1) && load->code == OP_LOOP_LOAD)
			continue;
		if (stride && !dim_is(t->dims[d], 1))
			return 2;
		if (coef)
			stride = coef == 1 ? 1 : 2;
		if (stride == 2)
			return 2;
	}
	return stride;
}

void strides_count(const Block *b, const Value *var, Strides *count)
{
	for (const Op *op = b->first; op; op = op->next) {
		if (load_indices_at(op))
			count->n[load_stride(op, var)]++;
		for (int i = 0; i < op->nregion; i++)
			strides_count(op->regions[i].first, var, count);
	}
}

// ---- divisors -----------------------------------------------------------------------------------

enum { MAX_POWER = 16, MAX_DEPTH = 24 };

static int power_min(int a, int b)
{
	return a < b ? a : b;
}

static int power_product(int a, int b)
{
	return a * b < MAX_POWER ? a * b : MAX_POWER;
}

static int number_power(int64_t v)
{
	int p = MAX_POWER;
	while (v % p)
		p /= 2;
	return p;
}

int size_power(Context *c, const Dim *d)
{
	int p = MAX_POWER;
	while (p > 1 && !dim_is(dim_mod(c, d, dim_const(c, p)), 0))
		p /= 2;
	return p;
}

static int power_at(Context *c, const PointerMap *merged, const Value *v, const Value *arg,
                    int width, int depth)
{
	if (v == arg)
		return width;
	if (pointer_map_get(merged, v))
		return MAX_POWER; // it is 0, the next one counts for both
	const Op *op = v->def;
	if (!op || depth == MAX_DEPTH)
		return 1;
	int64_t number;
	if (index_constant(v, &number))
		return number_power(number);
	if (op->code == OP_LOOP_DIM)
		return size_power(c, op_attr(op, "dim")->dim);
	if (op->code != OP_PD_ADD && op->code != OP_PD_SUBTRACT && op->code != OP_PD_MULTIPLY)
		return 1;
	const int a = power_at(c, merged, op_operand(op, 0), arg, width, depth + 1);
	const int b = power_at(c, merged, op_operand(op, 1), arg, width, depth + 1);
	return op->code == OP_PD_MULTIPLY ? power_product(a, b) : power_min(a, b);
}

int index_power(Context *c, const PointerMap *merged, const Value *index, const Value *arg,
                int width)
{
	return power_at(c, merged, index, arg, width, 0);
}

int load_power(Context *c, const PointerMap *merged, const Op *load, const Value *arg, int width)
{
	const int first = load_indices_at(load);
	const Type *t = op_operand(load, first - 1)->type;
	int power = MAX_POWER;
	const Dim *behind = dim_const(c, 1);
	for (int d = t->rank; d-- > 0;) {
		const int p = index_power(c, merged, op_operand(load, first + d), arg, width);
		power = power_min(power, power_product(p, size_power(c, behind)));
		behind = dim_mul(c, behind, t->dims[d]);
	}
	return power;
}
