// The loss of a training step, from what the program fetches and a label. Called by train.c.
#include "ir/base/vec.h"
#include "lower/grad/ports.h"
#include "lower/grad/train_step.h"

#include <float.h>
#include <string.h>

// What the fetch shows, behind steps that change nothing.
static Value *seen_through(Value *v)
{
	while (v->def) {
		const Op *op = v->def;
		const bool same = op->code == OP_PD_SCALE && !op_operand(op, 1) &&
		                  op_float(op, "scale", 1) == 1 && op_float(op, "bias", 0) == 0;
		if (!same && !(op->code == OP_PD_ASSIGN && !v->stop_gradient))
			return v;
		v = op_operand(op, 0);
	}
	return v;
}

// The softmax over the last axis that gives v; NULL: none.
static const Op *shares_behind(Value *v)
{
	const Op *op = seen_through(v)->def;
	const int rank = v->type->rank;
	return op && (op->info->traits & TRAIT_SHARES) &&
	               axis_norm(op_int(op, "axis", -1), rank) == rank - 1
	           ? op
	           : NULL;
}

// Logarithms of probabilities. Those of a softmax come from its operand, which is as right and
// keeps what the softmax rounds away.
static Value *log_probabilities(const Train *t, Builder *b, Value *x)
{
	const Op *shares = shares_behind(x);
	const Attr *last = attr_int(t->c, x->type->rank - 1);
	if (shares && !t->recipe->from) {
		const Loc l = {.file = t->recipe->path, .block = -1, .op = -1, .line = t->recipe->of.line};
		diag_warning(t->c->diag, &l, "'%s' is what a softmax gives, not logits",
		             t->recipe->of.text ? t->recipe->of.text : "the fetch");
	}
	if (!t->recipe->from)
		return build1(b, OP_PD_LOG_SOFTMAX, x, "axis", last, NULL);
	if (shares)
		return build1(b, OP_PD_LOG_SOFTMAX, op_operand(shares, 0), "axis", last, NULL);
	const double least = x->type->dtype == DT_F64 ? DBL_MIN : FLT_MIN;
	Value *above = build2(b, OP_PD_MAXIMUM, x, tensor_number(b, x->type->dtype, least), NULL);
	return apply1(b, OP_PD_LOG, above);
}

// The input of labels, of these dims; one of the program itself may have another size 1 at its end.
static Value *label_input(const Train *t, Builder *b, DType dtype, int rank, const Dim *const *dims)
{
	const RecipeName *name = &t->recipe->label;
	const Type *wanted = type_tensor(t->c, dtype, rank, dims, 0);
	Op *feed = module_find(t->module, OP_PD_FEED, name->text);
	if (!feed && type_is_found(wanted)) {
		train_fail(t, name->line, "labels are %s, and only the run finds that size",
		           type_text(t->c, wanted));
		return NULL;
	}
	if (!feed)
		return port_feed(t->module, name->text, wanted);
	Value *v = op_result(feed, 0);
	const Type *type = v->type;
	const bool fits = type_is_tensor(type) && dtype_is_float(type->dtype) == dtype_is_float(dtype);
	if (fits && type->rank == rank + 1 && type->dims[rank] == dim_const(t->c, 1))
		v = tensor_reshape(b, v, rank, type->dims);
	bool same = fits && v->type->rank == rank;
	for (int i = 0; same && i < rank; i++)
		same = v->type->dims[i] == dims[i];
	if (same)
		return v;
	train_fail(t, name->line, "input '%s' is %s, and labels are %s", name->text,
	           type_text(t->c, type), type_text(t->c, wanted));
	return NULL;
}

// The part of rows whose largest class is that of the label.
static bool accuracy_fetch(const Train *t, Builder *b, Value *x, Value *label)
{
	const Attr *last = attr_int(t->c, x->type->rank - 1);
	if (!t->recipe->metrics[METRIC_ACCURACY])
		return true;
	if (t->recipe->soft_label && label)
		label = build1(b, OP_PD_ARGMAX, label, "axis", last, NULL);
	Value *best = label ? build1(b, OP_PD_ARGMAX, x, "axis", last, "dtype",
	                             attr_dtype(t->c, label->type->dtype), NULL)
	                    : NULL;
	Value *hit = best ? apply2(b, OP_PD_EQUAL, best, label) : NULL;
	Value *part = hit ? build1(b, OP_PD_MEAN, tensor_cast(b, hit, DT_F32), "reduce_all",
	                           attr_bool(t->c, true), NULL)
	                  : NULL;
	return part && port_fetch(t->module, "accuracy", part);
}

// The loss of each row.
static Value *cross_entropy(const Train *t, Builder *b, Value *x)
{
	const Recipe *r = t->recipe;
	const Type *type = x->type;
	const int64_t last = type->rank - 1;
	if (type->rank < 1 || !dim_is_const(type->dims[last])) {
		train_fail(t, r->of.line,
		           "'%s' is %s: cross_entropy wants to know how many classes there "
		           "are when the model is compiled",
		           r->of.text ? r->of.text : "the fetch", type_text(t->c, type));
		return NULL;
	}
	const int64_t classes = type->dims[last]->value;
	Value *label = r->soft_label ? label_input(t, b, type->dtype, type->rank, type->dims)
	                             : label_input(t, b, DT_I64, (int)last, type->dims);
	if (!label || !accuracy_fetch(t, b, x, label))
		return NULL;
	Value *target = r->soft_label
	                    ? label
	                    : build1(b, OP_PD_ONE_HOT, label, "depth", attr_int(t->c, classes), "dtype",
	                             attr_dtype(t->c, type->dtype), NULL);
	if (target && r->label_smoothing > 0)
		target = build1(b, OP_PD_SCALE, target, "scale", attr_float(t->c, 1 - r->label_smoothing),
		                "bias", attr_float(t->c, r->label_smoothing / (double)classes), NULL);
	Value *log = log_probabilities(t, b, x), *terms = target ? tensor_mul(b, log, target) : NULL;
	Value *sum = terms ? build1(b, OP_PD_SUM, terms, "axis", attr_ints(t->c, 1, &last), NULL)
	                   : NULL;
	return sum ? apply1(b, OP_PD_NEGATIVE, sum) : NULL;
}

static Value *squared_error(const Train *t, Builder *b, Value *x)
{
	Value *label = label_input(t, b, x->type->dtype, x->type->rank, x->type->dims);
	Value *off = label ? tensor_sub(b, x, label) : NULL;
	return off ? tensor_mul(b, off, off) : NULL;
}

// What the recipe's `of` fetches; NULL after a diagnostic.
static Value *loss_source(const Train *t)
{
	const RecipeName *of = &t->recipe->of;
	const char **names = NULL;
	Op *found = NULL;
	int n = 0, room = 0;
	for (Op *op = module_block(t->module)->first; op; op = op->next) {
		if (op->code != OP_PD_FETCH)
			continue;
		if (!of->text || !strcmp(op_str(op, "name", ""), of->text))
			found = op;
		VEC_ROOM(t->c->arena, names, n, room);
		names[n++] = op_str(op, "name", "");
	}
	if (!of->text && n != 1) {
		train_fail(t, 0, "the program fetches %d values: loss needs the key 'of' with one's name",
		           n);
		return NULL;
	}
	if (!found) {
		train_fail(t, of->line, "nothing that is called '%s' is fetched%s", of->text,
		           name_meant(t->c->arena, of->text, n, names));
		return NULL;
	}
	Value *v = op_operand(found, 0);
	if (type_is_tensor(v->type) && dtype_is_float(v->type->dtype) && !dtype_is_half(v->type->dtype))
		return v;
	train_fail(t, of->line, "'%s' is %s: a loss is made of a tensor of f32 or f64",
	           op_str(found, "name", ""), type_text(t->c, v->type));
	return NULL;
}

// One number of the losses.
static Value *reduced(const Train *t, Builder *b, Value *rows)
{
	const Recipe *r = t->recipe;
	int64_t n;
	const bool one = type_const_numel(rows->type, &n) && n == 1;
	if (r->loss_kind == LOSS_FETCH && r->reduction == LOSS_UNREDUCED && !one) {
		train_fail(t, r->of.line,
		           "the loss is %s, not one number: it needs the key 'reduction' (mean or sum)",
		           type_text(t->c, rows->type));
		return NULL;
	}
	const bool sum = r->reduction == LOSS_SUM || one;
	return build1(b, sum ? OP_PD_SUM : OP_PD_MEAN, rows, "reduce_all", attr_bool(t->c, true), NULL);
}

// Fetches of the program give way to those of the step.
static void fetches_drop(const Train *t)
{
	for (Op *op = module_block(t->module)->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_PD_FETCH)
			op_erase(op);
	}
}

Op *train_loss(Train *t)
{
	Builder b = train_builder(t, "loss", "loss");
	Value *x = loss_source(t);
	if (!x)
		return NULL;
	fetches_drop(t);
	// The loss has the first column.
	Op *loss = port_fetch(t->module, "loss", x);
	Value *rows = t->recipe->loss_kind == LOSS_CROSS_ENTROPY ? cross_entropy(t, &b, x)
	              : t->recipe->loss_kind == LOSS_MSE         ? squared_error(t, &b, x)
	                                                         : x;
	Value *one = rows ? reduced(t, &b, rows) : NULL;
	if (!one)
		return NULL;
	op_detach(loss);
	op_append(module_block(t->module), loss);
	op_set_operand(loss, 0, one);
	one->name = context_str(t->c, "loss");
	return loss;
}
