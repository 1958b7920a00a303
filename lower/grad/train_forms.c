// Programs of inference hold batch norms in a form that trains nothing: what becomes of them in a
// training step. Called by train.c.
#include "lower/grad/train_step.h"

#include <string.h>

// Whether the batch norm takes mean and variance as they are.
static bool is_fixed_norm(const Op *op)
{
	return op->code == OP_PD_BATCH_NORM &&
	       (op_bool(op, "use_global_stats", false) ||
	        (op_bool(op, "is_test", false) && !op_bool(op, "trainable_statistics", false)));
}

// The mean and variance of the batch from now on, and the running ones learn from these.
static bool norm_to_training(Train *t, Op *op)
{
	static const char *const names[] = {"momentum", "epsilon", "data_format"};
	const char *name = op->results[0].name ? op->results[0].name : "";
	Value *operands[3] = {op_operand(op, 0)};
	if (op_parent(op) != t->module)
		return train_fail_at(op,
		                     "batch_norm '%s' is in a loop or branch, where its statistics "
		                     "cannot be trained; `batch_norm: freeze` leaves them",
		                     name);
	for (int i = 1; i < 3; i++) {
		const char *statistic = parameter_name(op_operand(op, i));
		if (!statistic)
			return train_fail_at(op,
			                     "batch_norm '%s': its %s is no parameter; `batch_norm: "
			                     "freeze` leaves it",
			                     name, i == 1 ? "mean" : "variance");
		operands[i] = train_stored(t, statistic, op_operand(op, i));
	}
	op_set_attr(op, "is_test", attr_bool(t->c, false));
	op_set_attr(op, "use_global_stats", attr_bool(t->c, false));
	NamedAttr attrs[COUNT_OF(names)];
	const int n = op_attrs_given(op, COUNT_OF(names), names, attrs);
	Builder b = {.ctx = t->c, .block = op->block, .before = op->next, .loc = op->loc};
	Op *statistics = build_op(&b, OP_PD_BATCH_NORM_STATISTICS, 3, operands, n, attrs);
	for (int i = 1; statistics && i < 3; i++)
		train_store(t, parameter_name(op_operand(op, i)), op_result(statistics, i - 1));
	return statistics != NULL;
}

// Operators that change what they read in training, which no other operator says.
static bool form_missing(const Op *op)
{
	const bool changes = op->code == OP_PD_SPECTRAL_NORM || op->code == OP_PD_DATA_NORM;
	if (changes)
		train_fail_at(op, "%s has no form for training", op->info->short_name);
	return changes;
}

typedef struct Forms {
	Train *t;
	bool ok;
} Forms;

static bool form_visit(Op *op, void *arg)
{
	Forms *f = arg;
	f->ok &= !form_missing(op);
	if (is_fixed_norm(op) && !f->t->recipe->batch_norm)
		f->ok &= norm_to_training(f->t, op);
	return f->ok;
}

bool train_forms(Train *t)
{
	Forms f = {t, true};
	op_walk(t->module, form_visit, &f);
	return train_dropouts(t) && f.ok;
}
