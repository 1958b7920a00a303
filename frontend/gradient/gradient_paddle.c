// Gradient operators for which Paddle's CPU kernels compute something else than the derivative
// (ir/ops/slope.yaml): a program that trains with them goes on as it did, and is told so. Inside of
// loops and branches that are differentiated as a whole, the derivative stands.
#include "frontend/gradient/gradient.h"
#include "frontend/job/general.h"
#include "ir/core/core.h"

#include <string.h>

static int64_t number_of(const OpJob *j, const char *attr, int64_t otherwise)
{
	const Paddle__OpAttr *a = attr_find(j->desc, attr);
	int64_t v;
	return a && attr_int_at(a, 0, &v) ? v : otherwise;
}

static bool has_no_scale(const OpJob *j)
{
	return !input_var(j, is_pir(j->desc) ? "scale" : "Scale");
}

static bool has_soft_label(const OpJob *j)
{
	return number_of(j, "soft_label", 0) && number_of(j, "use_softmax", 1);
}

// Paddle 3 gives the derivative.
static bool is_along_later_axis(const OpJob *j)
{
	return number_of(j, "axis", 0) != 0 && !input_var(j, "Axis");
}

static bool always(const OpJob *j)
{
	(void)j;
	return true;
}

// `text`: what the gradient is, where that differs for most programs.
static const struct {
	const char *type;
	bool (*stands)(const OpJob *j);
	const char *row, *text;
} rows[] = {
	{"group_norm_grad", has_no_scale, "group_norm_grad.unscaled", "leaves the groups' means aside"},
	{"pd_op.group_norm_grad", has_no_scale, "pd_op.group_norm_grad.unscaled",
     "leaves the groups' means aside"},
	{"spectral_norm_grad", always, "spectral_norm_grad", "multiplies by elements"},
	{"pd_op.spectral_norm_grad", always, "pd_op.spectral_norm_grad", "multiplies by elements"},
	{"softmax_with_cross_entropy_grad", has_soft_label, "softmax_with_cross_entropy_grad.soft",
     NULL},
	{"pd_op.cross_entropy_with_softmax_grad", has_soft_label,
     "pd_op.cross_entropy_with_softmax_grad.soft", NULL},
	{"gather_grad", is_along_later_axis, "gather_grad.along",
     "takes the first slice for all in front of the axis"},
};

const char *gradient_of_paddle(const OpJob *j)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (strcmp(j->desc->type, rows[i].type) || !rows[i].stands(j))
			continue;
		if (rows[i].text)
			diag_warning(j->t->c->diag, j->b.loc, "Paddle's gradient %s: it is not the derivative",
			             rows[i].text);
		return rows[i].row;
	}
	return NULL;
}
