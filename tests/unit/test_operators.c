// Unit tests of the operator table: look-ups, and that the gradient of every map is the slope of
// the map.
#include "ir/ir.h"
#include "ir/build/build.h"
#include "ir/define/define.h"
#include "ir/interp/interp.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

static void test_look_ups(void **state)
{
	(void)state;
	for (int code = 0; code < OP_COUNT; code++) {
		const OpInfo *info = &op_table[code];
		assert_int_equal(info->code, code);
		assert_ptr_equal(op_info_by_name(info->name, strlen(info->name)), info);
		for (int i = 0; i < info->nlegacy; i++) {
			const LegacyMap *map;
			assert_ptr_equal(op_info_by_legacy(info->legacy[i].type, &map), info);
			assert_ptr_equal(map, &info->legacy[i]);
		}
		for (int i = 0; i < info->noperand; i++)
			assert_int_equal(op_info_operand(info, info->operands[i].name), i);
		for (int i = 0; i < info->nattr; i++)
			assert_ptr_equal(op_info_attr(info, info->attrs[i].name), &info->attrs[i]);
	}
	const LegacyMap *map;
	assert_null(op_info_by_name("pd.ad", 5));
	assert_null(op_info_by_name("pd.addx", 7));
	assert_null(op_info_by_name("", 0));
	assert_null(op_info_by_legacy("no_such_operator", &map));
}

// ---- gradients ----------------------------------------------------------------------------------

enum { MAX_OPERANDS = 4, NPOINT = 3 };

// Where an operation is tried: a row per operand, all where it is smooth.
typedef struct Points {
	const char *op;
	double x[MAX_OPERANDS][NPOINT];
} Points;

static const Points *points_of(const OpInfo *info)
{
	static const Points usual = {
		NULL, {{0.3, 0.62, 0.81}, {0.45, 0.2, 0.9}, {0.4, 0.6, 0.5}, {0.1, 0.2, 0.3}}};
	static const Points special[] = {
		{"acosh", {{1.3, 2.5, 4}}},
		{"where", {{1, 0, 1}, {0.3, 0.4, 0.5}, {0.6, 0.7, 0.8}}},
		{"remainder", {{0.7, -1.9, 3.3}, {0.4, 1.1, -2}}},
		{"relu6", {{-1, 2, 7}}},
		{"leaky_relu", {{-1, 2, -3}}},
		{"elu", {{-1, 2, -3}}},
		{"selu", {{-1, 2, -3}}},
		{"celu", {{-1, 2, -3}}},
		{"gelu", {{-1, 2, -3}}},
		{"hardsigmoid", {{-4, 0.2, 5}}},
		{"hardswish", {{-4, 0.2, 5}}},
		{"softplus", {{-4, 0.2, 25}}},
		{"softshrink", {{-4, 0.2, 1}}},
		{"hardshrink", {{-4, 0.2, 1}}},
		{"thresholded_relu", {{-4, 0.2, 2}}},
		{"sign", {{-4, 0.2, 2}}},
	};
	for (size_t i = 0; i < COUNT_OF(special); i++)
		if (!strcmp(special[i].op, info->short_name))
			return &special[i];
	return &usual;
}

static Value *constant(Builder *b, DType t, const double *x, double shift)
{
	Tensor *data = tensor_new(b->ctx->arena, t, 1, (int64_t[]){NPOINT});
	for (int i = 0; i < NPOINT; i++)
		tensor_set_f(data, i, x[i] + shift);
	return build_constant(b, data);
}

// The operation on its points, operand `which` moved by `shift`.
static Op *build_at(Builder *b, const OpInfo *info, const Points *at, int which, double shift)
{
	Value *operands[MAX_OPERANDS] = {NULL};
	NamedAttr attrs[8];
	int nattr = 0;
	assert_true(info->noperand <= MAX_OPERANDS);
	for (int i = 0; i < info->nattr; i++) {
		if (!info->attrs[i].required)
			continue;
		assert_true(nattr < (int)COUNT_OF(attrs));
		bool dtype = info->attrs[i].kind == ATTR_DTYPE;
		attrs[nattr++] = (NamedAttr){info->attrs[i].name,
		                             dtype ? attr_dtype(b->ctx, DT_F64) : attr_float(b->ctx, 0.25)};
	}
	for (int i = 0; i < info->noperand; i++) {
		DType t = info->operands[i].klass == CLASS_BOOL ? DT_BOOL : DT_F64;
		if (!info->operands[i].optional)
			operands[i] = constant(b, t, at->x[i], i == which ? shift : 0);
	}
	Op *op = build_op(b, info->code, info->noperand, operands, nattr, attrs);
	assert_non_null(op);
	return op;
}

static Value *build_gradient(Builder *b, const OpInfo *info, const ExprDef *def, const Points *at)
{
	static const double ones[NPOINT] = {1, 1, 1};
	Op *op = build_at(b, info, at, -1, 0);
	const EnvEntry *own;
	EnvEntry env[64];
	int n = op_env(op, &own);
	assert_true(n + 2 <= (int)COUNT_OF(env));
	memcpy(env, own, sizeof *env * (size_t)n);
	env[n++] = (EnvEntry){info->results[0], op_result(op, 0), NULL};
	env[n++] = (EnvEntry){arena_printf(b->ctx->arena, "d_%s", info->results[0]),
	                      constant(b, DT_F64, ones, 0), NULL};
	return build_expr(b, def, n, env);
}

static void run_all(Interp *in, Op *module)
{
	for (Op *op = module_block(module)->first; op; op = op->next)
		assert_true(interp_op(in, op));
}

static void check_gradient(Context *c, const OpInfo *info, int which, const ExprDef *def)
{
	const Points *at = points_of(info);
	const double h = 1e-6;
	Op *module = module_new(c);
	Builder b = builder_at_end(c, module_block(module), &loc_unknown);
	Value *after = op_result(build_at(&b, info, at, which, h), 0);
	Value *before = op_result(build_at(&b, info, at, which, -h), 0);
	Value *slope = build_gradient(&b, info, def, at);
	assert_non_null(slope);
	Interp *in = interp_new(c, c->arena);
	run_all(in, module);
	const Tensor *hi = interp_value(in, after), *lo = interp_value(in, before),
				 *got = interp_value(in, slope);
	for (int i = 0; i < NPOINT; i++) {
		double want = (tensor_get_f(hi, i) - tensor_get_f(lo, i)) / (2 * h);
		double have = tensor_get_f(got, tensor_numel(got) == 1 ? 0 : i);
		if (!(fabs(want - have) <= 1e-6 + 1e-6 * fabs(want)))
			fail_msg("%s: d_%s at %g is %.9g, the slope is %.9g", info->name,
			         info->operands[which].name, at->x[which][i], have, want);
	}
}

// Maps between real and complex numbers have no slope as others do: what their gradients are stands
// in tests/corpus/cases/complex-gradient.
static bool is_real(const OpInfo *info)
{
	static const char *const parts[] = {"real", "imag", "complex"};
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (!strcmp(parts[i], info->short_name))
			return false;
	return true;
}

static void test_gradients(void **state)
{
	(void)state;
	int tried = 0;
	for (int code = 0; code < OP_COUNT; code++) {
		const OpInfo *info = &op_table[code];
		for (int i = 0; info->kind == KIND_MAP && is_real(info) && i < info->ngrad; i++) {
			Context *c = context_new();
			check_gradient(c, info, op_info_operand(info, info->grad_names[i]), info->grads[i]);
			if (diag_errors(c->diag)) {
				diag_flush(c->diag, stderr, false);
				fail_msg("%s: diagnostics", info->name);
			}
			context_free(c);
			tried++;
		}
	}
	assert_true(tried > 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look_ups),
		cmocka_unit_test(test_gradients),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
