// What the files about a loop's gradient share (gradient_loop.h): numbers as its counters have
// them, code of a round that nobody reads, and what variables have at the beginning of a round
// where that needs no memory: numbers that rounds count up, and what no round changes.
#include "ir/build/counted.h"
#include "ir/gradient/gradient_loop.h"
#include "ir/infer/infer.h"

#include <math.h>

Value *loop_number(Builder *b, int64_t v)
{
	return build_number(b, DT_I64, 1, v);
}

// Operations of a region of the round stay for the sizes that they find; those that the round
// itself finds are pushed where nothing is left to find them.
static void drop_unread(const Block *round, Block *b)
{
	for (Op *op = b->last, *before; op; op = before) {
		before = op->prev;
		bool read = control_stays(op) || (b != round && finds_read_size(op, round));
		for (int i = 0; i < op->nresult; i++)
			read |= value_used(op_result(op, i));
		for (int r = 0; r < op->nregion && read; r++)
			for (Block *inner = op->regions[r].first; inner; inner = inner->next)
				drop_unread(round, inner);
		if (!read)
			op_erase(op);
	}
}

void loop_drop_unread(Block *round)
{
	drop_unread(round, round);
}

// By how much `op` changes arg, as the value of an operator that adds a constant; 0: it does not.
static double increment_of(const Op *op, const Value *arg)
{
	double by = 0;
	if (op->code == OP_PD_ADD) {
		const int other = op_operand(op, 0) == arg;
		const bool adds = op_operand(op, !other) == arg &&
		                  constant_number(op_operand(op, other), &by);
		return adds ? by : 0;
	}
	if (op->noperand != 1 || op_operand(op, 0) != arg)
		return 0;
	if (op->code == OP_PD_INCREMENT)
		return op_float(op, "value", 1);
	return op->code == OP_PD_SCALE && op_float(op, "scale", 1) == 1 ? op_float(op, "bias", 0) : 0;
}

// By how much a round changes a variable that counts; 0: it does not count.
static int64_t step_of(const Value *arg, const Value *next)
{
	const Op *op = next->def;
	int64_t n;
	if (!op || dtype_is_float(arg->type->dtype) || next->type != arg->type ||
	    !type_const_numel(arg->type, &n) || n != 1)
		return 0;
	const double by = increment_of(op, arg);
	return by == floor(by) && fabs(by) < INT32_MAX ? (int64_t)by : 0;
}

bool loop_start_is_known(const Loop *l, int var, int64_t *step)
{
	const Block *from = l->op->regions[1].first;
	const Value *next = op_operand(from->last, var);
	const Type *t = from->args[var]->type;
	*step = 0;
	if (op_operand(l->op, var)->type != t)
		return false;
	if (next != from->args[var] && t->kind == TY_TENSOR)
		*step = step_of(from->args[var], next);
	return *step || next == from->args[var];
}

Value *loop_start(Loop *l, Builder *b, int var, Value *round, bool *ok)
{
	int64_t step;
	if (!loop_start_is_known(l, var, &step))
		return NULL;
	Value *init = op_operand(l->op, var), *done = round;
	const Type *t = init->type;
	if (!step)
		return init;
	if (done && step != 1)
		done = tensor_mul(b, done, loop_number(b, step));
	done = done ? tensor_cast(b, done, t->dtype) : NULL;
	if (done && done->type != t)
		done = tensor_reshape(b, done, t->rank, t->dims);
	done = done ? tensor_add(b, init, done) : NULL;
	*ok &= done != NULL;
	return done;
}
