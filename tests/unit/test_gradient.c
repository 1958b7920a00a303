// Unit tests of ir/gradient: the gradient of operations against central differences in f64, through
// the interpreter, over shapes and attributes. Covers rules, definitions, transposed nests,
// scatters and scans; maps are in test_operators.c.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/gradient/gradient.h"
#include "ir/interp/interp.h"
#include "ir/verify/verify.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OPERANDS = 5, MAX_ELEMENTS = 400 };

typedef struct Case {
	const char *op;
	const char *shapes[MAX_OPERANDS]; // "2,3"; "i2,3 4": whole numbers below 4; "": left out
	const char *attrs;                // "axis=1;keepdim=true", in the text form
} Case;

static const Case cases[] = {
	{"add", {"2,3", "3"}, ""},
	{"multiply", {"2,1,3", "4,1"}, ""},
	{"divide", {"3", "2,3"}, ""},
	{"sum", {"2,3,4"}, "axis=[1]"},
	{"sum", {"2,3,4"}, "axis=[0, 2];keepdim=true"},
	{"mean", {"2,3,4"}, "axis=[-1]"},
	{"max", {"2,3,4"}, "axis=[1]"},
	{"prod", {"3,4"}, "axis=[1]"},
	{"logsumexp", {"3,4"}, "axis=[1]"},
	{"p_norm", {"3,4"}, "axis=1;porder=3.0"},
	{"cumsum", {"3,4"}, "axis=1;exclusive=true"},
	{"cumprod", {"3,4"}, "dim=1"},
	{"logcumsumexp", {"3,4"}, "axis=0"},
	{"softmax", {"3,4"}, "axis=0"},
	{"log_softmax", {"2,3,4"}, "axis=1"},
	{"layer_norm", {"3,4", "4", "4"}, ""},
	{"batch_norm", {"3,2,2,2", "2", "2", "2", "2"}, ""},
	{"instance_norm", {"2,3,2,2", "3", "3"}, ""},
	{"group_norm", {"2,4,2,2", "4", "4"}, "groups=2"},
	{"matmul", {"2,3,4", "4,5"}, ""},
	{"matmul", {"4,3", "2,5,4"}, "transpose_x=true;transpose_y=true"},
	{"matmul", {"2,4,3", "4,5"}, "transpose_x=true"},
	{"matmul", {"2,1,3,4", "3,5,4"}, "transpose_y=true"},
	{"matmul", {"2,3,4", "4"}, ""},
	{"matmul", {"4", "2,4,3"}, ""},
	{"conv2d", {"2,3,5,4", "4,3,3,2"}, "strides=[2, 1];paddings=[1, 0]"},
	{"conv2d", {"1,4,6,6", "4,2,2,2"}, "strides=[1, 1];dilations=[2, 2];groups=2"},
	{"depthwise_conv2d", {"1,3,4,4", "3,1,3,3"}, "strides=[1, 1];paddings=[1, 1];groups=3"},
	{"conv2d", {"1,4,5,3", "2,3,3,2"}, "strides=[3, 2];paddings=[1, 0];data_format=\"NHWC\""},
	{"conv2d", {"1,2,7,6", "3,2,3,2"}, "strides=[2, 3];padding_algorithm=\"SAME\""},
	{"conv3d", {"1,2,3,4,3", "2,1,2,2,2"}, "strides=[1, 2, 1];paddings=[1, 0, 0];groups=2"},
	{"conv2d_transpose", {"1,2,3,3", "2,3,2,2"}, "strides=[2, 2]"},
	{"conv2d_transpose",
     {"2,4,2,3", "4,1,3,2"},
     "strides=[3, 2];paddings=[1, 0];output_padding=[2, 1];groups=2;dilations=[1, 2]"},
	{"conv2d_transpose", {"1,3,2,2", "2,1,2,2"}, "strides=[1, 2];data_format=\"NHWC\""},
	{"conv2d_transpose", {"1,1,2,2", "1,1,2,2"}, "strides=[2, 2];output_size=dims [7, 6]"},
	{"filter2d_gradient",
     {"2,4,7,5", "2,6,3,4"},
     "kernel=dims [2, 3];strides=[2, 1];paddings=[0, 1];dilations=[2, 1];groups=2"},
	{"filter3d_gradient", {"1,1,3,3,4", "1,2,2,3,2"}, "kernel=dims [2, 1, 2];strides=[1, 1, 2]"},
	{"pool2d",
     {"1,2,5,5"},
     "kernel_size=dims [3, 3];strides=[2, 2];paddings=[1, 1];pooling_type=\"avg\""},
	{"pool2d", {"1,2,4,4"}, "kernel_size=dims [2, 2];strides=[2, 2];pooling_type=\"max\""},
	{"pool2d",
     {"1,2,6,5"},
     "kernel_size=dims [3, 2];strides=[2, 1];paddings=[1, 1];pooling_type=\"max\";ceil_mode=true"},
	{"pool2d",
     {"1,1,6,7"},
     "kernel_size=dims [3, 4];strides=[2, 3];paddings=[1, 2];pooling_type=\"avg\";exclusive=false;"
     "ceil_mode=true"},
	{"pool2d",
     {"1,5,7,2"},
     "kernel_size=dims [3, 4];adaptive=true;pooling_type=\"avg\";data_format=\"NHWC\""},
	{"pool2d", {"1,2,5,7"}, "kernel_size=dims [3, 4];adaptive=true;pooling_type=\"max\""},
	{"pool2d", {"1,1,3,2"}, "kernel_size=dims [5, 4];adaptive=true;pooling_type=\"avg\""},
	{"pool2d", {"1,1,4,6"}, "kernel_size=dims [2, 3];adaptive=true;pooling_type=\"max\""},
	{"pool2d", {"2,2,3,2"}, "kernel_size=dims [1, 1];global_pooling=true;pooling_type=\"max\""},
	{"pool3d", {"1,1,3,4,3"}, "kernel_size=[2, 2, 2];strides=[1, 2, 1];pooling_type=\"max\""},
	{"pool3d", {"1,1,3,4,3"}, "kernel_size=[2, 2, 2];strides=[1, 2, 1];pooling_type=\"avg\""},
	{"reshape", {"2,6"}, "shape=dims [3, 4]"},
	{"transpose", {"2,3,4"}, "perm=[2, 0, 1]"},
	{"slice", {"4,5"}, "axes=[0, 1];starts=dims [1, 0];ends=dims [3, 4]"},
	{"strided_slice", {"6,3"}, "axes=[0];starts=dims [5];ends=dims [0];strides=[-2]"},
	{"pad", {"2,3"}, "paddings=[1, 0, 2, 1]"},
	{"tile", {"2,3"}, "repeat_times=dims [2, 2]"},
	{"expand", {"2,1"}, "shape=dims [3, 2, 4]"},
	{"flip", {"2,3"}, "axis=[1]"},
	{"roll", {"2,5"}, "shifts=dims [2];axis=[1]"},
	{"tril_triu", {"4,4"}, "diagonal=1"},
	{"gather", {"4,3", "i5 4"}, ""},
	{"gather_nd", {"3,4", "i5,2 3"}, ""},
	{"index_sample", {"3,4", "i3,2 4"}, ""},
	{"embedding", {"i2,3 5", "5,4"}, ""},
	{"scatter_nd_add", {"4,3", "i5,1 4", "5,3"}, ""},
	{"scatter", {"4,3", "i3 4", "3,3"}, ""},
	{"topk", {"3,5"}, "k=2"},
	{"unfold",
     {"1,2,4,4"},
     "kernel_sizes=[2, 2];strides=[2, 2];paddings=[0, 0, 0, 0];dilations=[1, 1]"},
	{"squared_l2_norm", {"2,3"}, ""},
	{"clip_by_norm", {"2,3"}, "max_norm=0.5"},
};

static const Type *type_of(Context *c, const char *text, bool *whole, int *below)
{
	const Dim *dims[MAX_RANK];
	int rank = 0, used;
	*whole = *text == 'i';
	*below = 0;
	for (text += *whole; *text;) {
		int n = 0;
		if (sscanf(text, "%d%n", &n, &used) != 1)
			break;
		text += used;
		dims[rank++] = dim_const(c, n);
		text += *text == ',';
		if (*text == ' ' && sscanf(text, "%d", below) == 1)
			break;
	}
	return type_tensor(c, *whole ? DT_I64 : DT_F64, rank, dims, 0);
}

static Value *feed(Context *c, Block *b, int i, const Type *t)
{
	Op *op = op_new(c, OP_PD_FEED, &loc_unknown, 1, &t, 0, NULL, 0, 0);
	op_set_attr(op, "name", attr_str(c, arena_printf(c->arena, "x%d", i)));
	op_set_attr(op, "col", attr_int(c, i));
	op_append(b, op);
	return op_result(op, 0);
}

static void fetch(Context *c, Block *b, int col, Value *v)
{
	Op *op = op_new(c, OP_PD_FETCH, &loc_unknown, 0, NULL, 1, &v, 0, 0);
	op_set_attr(op, "name", attr_str(c, arena_printf(c->arena, "y%d", col)));
	op_set_attr(op, "col", attr_int(c, col));
	op_append(b, op);
}

// Attributes of the case, in `attrs`; how many.
static int attrs_of(Context *c, const OpInfo *info, const char *text, NamedAttr *attrs)
{
	int n = 0;
	while (*text) {
		size_t key = strcspn(text, "="), value = strcspn(text + key + 1, ";");
		const AttrInfo *a = op_info_attr(info, context_strn(c, text, key));
		assert_non_null(a);
		attrs[n].name = a->name;
		attrs[n].attr = attr_parse(c, a->kind, context_strn(c, text + key + 1, value));
		assert_non_null(attrs[n++].attr);
		text += key + 1 + value;
		text += *text == ';';
	}
	return n;
}

// A smooth weight for each element of the result, so that no gradient is zero by symmetry.
static Value *weighted_sum(Builder *b, Value *y)
{
	Nest n = nest_open(b, type_tensor(b->ctx, DT_F64, y->type->rank, y->type->dims, 0));
	Value *linear = scalar_from_index(&n.b, index_linear(&n.b, y->type->rank, y->type->dims, n.at),
	                                  DT_F64);
	Value *w = apply1(&n.b, OP_PD_COS, linear);
	Value *weights = nest_close(&n, w);
	return build1(b, OP_PD_SUM, tensor_mul(b, y, weights), "reduce_all", attr_bool(b->ctx, true),
	              NULL);
}

static double loss_of(Context *c, Op *module, int n, Tensor **x, Tensor **grads, const int *columns)
{
	Arena *scratch = arena_scratch(c->arena);
	Interp *in = interp_new(c, scratch);
	for (int i = 0; i < n; i++)
		if (x[i])
			interp_set_feed(in, arena_printf(scratch, "x%d", i), x[i]);
	assert_true(interp_run(in, module));
	double loss = tensor_get_f(interp_fetch(in, 0), 0);
	for (int i = 0; i < n && grads; i++) {
		if (columns[i] <= 0)
			continue;
		const Tensor *t = interp_fetch(in, columns[i]);
		assert_int_equal(tensor_numel(t), tensor_numel(x[i]));
		for (int64_t k = 0; k < tensor_numel(t); k++)
			tensor_set_f(grads[i], k, tensor_get_f(t, k));
	}
	arena_free(scratch);
	return loss;
}

static void check_slopes(Context *c, const Case *t, Op *module, int n, Tensor **x,
                         const int *columns)
{
	Tensor *grads[MAX_OPERANDS];
	for (int i = 0; i < n; i++)
		grads[i] = x[i] ? tensor_new(c->arena, DT_F64, x[i]->rank, x[i]->dims) : NULL;
	loss_of(c, module, n, x, grads, columns);
	for (int i = 0; i < n; i++) {
		for (int64_t k = 0; columns[i] > 0 && k < tensor_numel(x[i]); k++) {
			const double h = 1e-5, at = tensor_get_f(x[i], k);
			tensor_set_f(x[i], k, at + h);
			double up = loss_of(c, module, n, x, NULL, columns);
			tensor_set_f(x[i], k, at - h);
			double down = loss_of(c, module, n, x, NULL, columns);
			tensor_set_f(x[i], k, at);
			double want = (up - down) / (2 * h), have = tensor_get_f(grads[i], k);
			if (!(fabs(want - have) <= 1e-7 + 1e-6 * fabs(want)))
				fail_msg("pd.%s %s: operand %d, element %lld: gradient %.9g, slope %.9g", t->op,
				         t->attrs, i, (long long)k, have, want);
		}
	}
}

// Distinct numbers between 0.3 and 1.3, none near another: no ties, no kinks.
static Tensor *numbers(Context *c, const Type *t, bool whole, int below, int salt)
{
	int64_t dims[MAX_RANK], n = 1;
	for (int d = 0; d < t->rank; d++)
		n *= dims[d] = t->dims[d]->value;
	Tensor *x = tensor_new(c->arena, t->dtype, t->rank, dims);
	for (int64_t i = 0; i < n; i++) {
		if (whole)
			tensor_set_i(x, i, (i * 2 + salt) % below);
		else
			tensor_set_f(x, i, 0.3 + (double)((i * 37 + salt * 11) % 101) / 101 + (double)i * 1e-4);
	}
	return x;
}

static void check_case(Context *c, const Case *t)
{
	const char *name = arena_printf(c->arena, "pd.%s", t->op);
	const OpInfo *info = op_info_by_name(name, strlen(name));
	assert_non_null(info);
	Op *module = module_new(c);
	Block *block = module_block(module);
	Builder b = builder_at_end(c, block, &loc_unknown);
	Value *operands[MAX_OPERANDS] = {NULL};
	Tensor *x[MAX_OPERANDS] = {NULL};
	NamedAttr attrs[16];
	int n = 0, columns[MAX_OPERANDS] = {0}, col = 1;
	Duals *d = duals_new(c, NULL);
	for (; n < MAX_OPERANDS && t->shapes[n]; n++) {
		bool whole;
		int below;
		const Type *type = type_of(c, t->shapes[n], &whole, &below);
		operands[n] = feed(c, block, n, type);
		x[n] = numbers(c, type, whole, below, n);
		duals_want(d, operands[n]);
	}
	Op *op = build_op(&b, info->code, n, operands, attrs_of(c, info, t->attrs, attrs), attrs);
	assert_non_null(op);
	Value *loss = weighted_sum(&b, op_result(op, 0));
	fetch(c, block, 0, loss);
	assert_true(duals_add(&b, d, loss, build_full(&b, loss->type, 1)));
	if (!gradient_ops(&b, d, block->first, loss->def))
		fail_msg("pd.%s %s has no gradient", t->op, t->attrs);
	for (int i = 0; i < n; i++) {
		Value *dv = duals_get(&b, d, operands[i]);
		if (!dv)
			continue;
		fetch(c, block, col, dv);
		columns[i] = col++;
	}
	assert_true(ir_verify(module));
	assert_true(col > 1);
	check_slopes(c, t, module, n, x, columns);
}

static void test_slopes(void **state)
{
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		check_case(*state, &cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_slopes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
