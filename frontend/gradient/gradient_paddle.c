// Gradient operators for which Paddle's CPU kernels compute something else than the derivative
// (ir/ops/slope.yaml): a program that trains with them goes on as it did, and is told so. Inside of
// loops and branches that are differentiated as a whole, the derivative stands.
#include "frontend/gradient/gradient.h"
#include "ir/build/infer.h"

#include <string.h>

// An input's type; NULL: it is no tensor, or there is none.
static const Type *type_of(OpJob *j, const char *slot)
{
	const char *var = input_var(j, slot);
	const Value *v = var ? read_var(j, slot, var) : NULL;
	return v && type_is_tensor(v->type) ? v->type : NULL;
}

static bool has_no_scale(OpJob *j)
{
	return !input_var(j, is_pir(j->desc) ? "scale" : "Scale");
}

static bool has_soft_label(OpJob *j)
{
	return job_number(j, "soft_label", 0) && job_number(j, "use_softmax", 1);
}

// Paddle 3 gives the derivative.
static bool is_along_later_axis(OpJob *j)
{
	const char *var = input_var(j, "Axis");
	const Value *v = var ? read_var(j, "Axis", var) : NULL;
	const Dim *const *at;
	if (v && value_known(v, &at) == 1)
		return !dim_is(at[0], 0);
	return v || job_number(j, "axis", 0) != 0;
}

static bool takes_extreme(OpJob *j)
{
	const Paddle__OpAttr *a = attr_find(j->desc, is_pir(j->desc) ? "reduce" : "Reduce");
	return a && a->s && (!strcmp(a->s, "amax") || !strcmp(a->s, "amin"));
}

static bool has_no_axes(OpJob *j)
{
	const Type *x = type_of(j, "x");
	return x && !x->rank;
}

// Rows that are added have no other gradient.
static bool overwrites(OpJob *j)
{
	return job_number(j, "overwrite", 1) != 0;
}

// Its kernel takes the operand of more axes first.
static bool has_fewer_axes(OpJob *j)
{
	const char *slots[] = {is_pir(j->desc) ? "grad_x@GRAD" : "DDX",
	                       is_pir(j->desc) ? "grad_y@GRAD" : "DDY"};
	const Type *x = type_of(j, slots[0]), *y = type_of(j, slots[1]);
	return x && y && x->rank < y->rank;
}

// The kernel takes a sum over what x was stretched along for its elements.
static bool stretches_x(OpJob *j)
{
	const Type *x = type_of(j, "DX"), *out = type_of(j, "Out");
	return x && out && !dtype_is_complex(x->dtype) && !type_same_dims(x, out);
}

static bool has_lower_ones(OpJob *j)
{
	const Type *x = type_of(j, is_pir(j->desc) ? "x" : "X");
	return x && !dtype_is_complex(x->dtype) && !job_number(j, "upper", 1) &&
	       job_number(j, "unitriangular", 0);
}

// `stands`: where (NULL: always) the row of that name and suffix does. `text`: what the gradient
// is, where that differs for most programs.
static const struct {
	const char *type;
	bool (*stands)(OpJob *j);
	const char *suffix, *text;
} rows[] = {
	{"group_norm_grad", has_no_scale, ".unscaled", "leaves the groups' means aside"},
	{"pd_op.group_norm_grad", has_no_scale, ".unscaled", "leaves the groups' means aside"},
	{"spectral_norm_grad", NULL, "", "multiplies by elements"},
	{"pd_op.spectral_norm_grad", NULL, "", "multiplies by elements"},
	{"cvm_grad", NULL, "", "has CVM in place of the first two columns"},
	{"pd_op.set_value_grad", NULL, "", "goes on where numbers were set"},
	{"softmax_with_cross_entropy_grad", has_soft_label, ".soft", NULL},
	{"pd_op.cross_entropy_with_softmax_grad", has_soft_label, ".soft", NULL},
	{"gather_grad", is_along_later_axis, ".along",
     "takes the first slice for all in front of the axis"},
	{"scatter_grad", overwrites, ".overwrite", NULL},
	{"pd_op.scatter_grad", overwrites, ".overwrite", NULL},
	{"elementwise_sub_grad_grad", has_fewer_axes, ".fewer", "changes its sign"},
	{"pd_op.subtract_double_grad", has_fewer_axes, ".fewer", "changes its sign"},
	{"elementwise_div_grad_grad", stretches_x, ".stretched", "takes a sum for its terms"},
	{"triangular_solve_grad", has_lower_ones, ".lower", "goes on above the triangle"},
	{"pd_op.triangular_solve_grad", has_lower_ones, ".lower", "goes on above the triangle"},
	{"put_along_axis_grad", takes_extreme, ".extreme", NULL},
	{"pd_op.put_along_axis_grad", takes_extreme, ".extreme", NULL},
	{"cummax_grad", has_no_axes, ".scalar", "of one number is 0"},
	{"cummin_grad", has_no_axes, ".scalar", "of one number is 0"},
	{"pd_op.cummax_grad", has_no_axes, ".scalar", "of one number is 0"},
	{"pd_op.cummin_grad", has_no_axes, ".scalar", "of one number is 0"},
	{"where_grad", NULL, "", NULL},
	{"silu_grad", NULL, "", NULL},
	{"pd_op.silu_grad", NULL, "", NULL},
	{"swish_grad", NULL, "", NULL},
	{"pd_op.swish_grad", NULL, "", NULL},
	{"celu_grad", NULL, "", NULL},
	{"pd_op.celu_grad", NULL, "", NULL},
};

const char *gradient_of_paddle(OpJob *j)
{
	Context *c = j->t->c;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (strcmp(j->desc->type, rows[i].type) || (rows[i].stands && !rows[i].stands(j)))
			continue;
		if (rows[i].text)
			diag_warning(c->diag, j->b.loc, "Paddle's gradient %s: it is not the derivative",
			             rows[i].text);
		return arena_printf(c->arena, "%s%s", rows[i].type, rows[i].suffix);
	}
	return NULL;
}
