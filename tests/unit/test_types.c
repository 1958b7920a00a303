// Types, attributes, tensors and the context that makes each of them once.
#include "ir/text/text.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

static void strings_and_locations_are_unique(void **state)
{
	Context *c = *state;
	char text[] = "name";
	const char *s = context_str(c, text);
	assert_ptr_equal(s, context_strn(c, "names", 4));
	assert_ptr_not_equal(s, text);
	assert_null(context_str(c, NULL));
	const Loc a = {.file = "f", .block = 1, .op = 2, .type = "t"},
			  b = {.file = "f", .block = 1, .op = 3, .type = "t"};
	assert_ptr_equal(context_loc(c, &a), context_loc(c, &a));
	assert_ptr_not_equal(context_loc(c, &a), context_loc(c, &b));
}

static void equal_types_are_one_pointer(void **state)
{
	Context *c = *state;
	const Dim *dims[] = {dim_sym(c, "n"), dim_const(c, 4)};
	const Type *t = type_tensor(c, DT_F32, 2, dims, 0);
	assert_ptr_equal(t, type_tensor(c, DT_F32, 2, dims, 0));
	assert_ptr_not_equal(t, type_tensor(c, DT_F32, 2, dims, 1));
	assert_ptr_not_equal(t, type_tensor(c, DT_F64, 2, dims, 0));
	assert_ptr_not_equal(t, type_shaped(c, TY_ARRAY, DT_F32, 2, dims));
	assert_ptr_equal(type_like(c, t, DT_I32), type_tensor(c, DT_I32, 2, dims, 0));
	const Type *two[] = {t, type_index(c)};
	assert_ptr_equal(type_group(c, TY_VEC, 2, two), type_group(c, TY_VEC, 2, two));
	assert_ptr_not_equal(type_group(c, TY_VEC, 2, two), type_group(c, TY_STACK, 2, two));
	// The same types, split differently between arguments and results.
	assert_ptr_not_equal(type_func(c, 1, two, 1, two + 1), type_func(c, 2, two, 0, NULL));
}

static void looking_up_takes_no_memory(void **state)
{
	Context *c = *state;
	const Dim *n = dim_sym(c, "n"), *dims[] = {dim_add(c, n, dim_const(c, 1)), dim_const(c, 4)};
	const int64_t many[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
	const Type *t = type_tensor(c, DT_F32, 2, dims, 0);
	const Attr *ints = attr_ints(c, COUNT_OF(many), many);
	const size_t bytes = arena_bytes(c->arena);
	assert_ptr_equal(dim_add(c, n, dim_const(c, 1)), dims[0]);
	assert_ptr_equal(type_tensor(c, DT_F32, 2, dims, 0), t);
	assert_int_equal(arena_bytes(c->arena), bytes);
	assert_ptr_equal(attr_ints(c, COUNT_OF(many), many), ints); // longer than most
}

static void types_have_text(void **state)
{
	Context *c = *state;
	const Dim *dims[] = {dim_sym(c, "n"), dim_const(c, 4)};
	const Type *t = type_tensor(c, DT_F32, 2, dims, 1), *stack = type_group(c, TY_STACK, 0, NULL);
	assert_string_equal(type_text_of(c, t), "tensor<?n x 4 x f32, lod 1>");
	assert_string_equal(type_text_of(c, type_tensor(c, DT_BOOL, 0, NULL, 0)), "tensor<bool>");
	assert_string_equal(type_text_of(c, type_unranked(c, DT_F16)), "tensor<* x f16>");
	assert_string_equal(type_text_of(c, stack), "stack");
	assert_string_equal(type_text_of(c, type_func(c, 1, &stack, 1, &stack)), "(stack) -> (stack)");
}

static void element_counts_do_not_overflow(void **state)
{
	Context *c = *state;
	int64_t n = 0;
	const Dim *dims[] = {dim_const(c, INT64_MAX / 2), dim_const(c, 3), dim_const(c, 0)};
	assert_false(type_const_numel(type_tensor(c, DT_F32, 2, dims, 0), &n));
	assert_true(type_const_numel(type_tensor(c, DT_F32, 3, dims, 0), &n));
	assert_int_equal(n, 0);
	assert_true(type_const_numel(type_tensor(c, DT_F32, 0, NULL, 0), &n));
	assert_int_equal(n, 1);
	const int64_t huge[] = {INT64_MAX / 2, 3};
	assert_null(tensor_new(c->arena, DT_F32, 2, huge));
}

static void dtypes_know_their_names(void **state)
{
	(void)state;
	for (int t = 0; t < DT_COUNT; t++) {
		DType back;
		const char *name = dtype_name((DType)t);
		assert_true(dtype_from_name(name, strlen(name), &back));
		assert_int_equal(back, t);
		assert_true(dtype_size((DType)t) > 0);
	}
	DType none;
	assert_false(dtype_from_name("f31", 3, &none));
	assert_false(dtype_from_name("f32x", 4, &none));
}

static void equal_attributes_are_one_pointer(void **state)
{
	Context *c = *state;
	const int64_t ints[] = {1, 2};
	assert_ptr_equal(attr_ints(c, 2, ints), attr_ints(c, 2, ints));
	assert_ptr_not_equal(attr_ints(c, 2, ints), attr_bools(c, 2, ints));
	assert_ptr_not_equal(attr_int(c, 1), attr_bool(c, true));
	assert_ptr_equal(attr_str(c, "x"), attr_str(c, "x"));
	// By bits: a sign or a kind of zero must not get lost.
	assert_ptr_not_equal(attr_float(c, 0.0), attr_float(c, -0.0));
	assert_ptr_equal(attr_float(c, NAN), attr_float(c, NAN));
}

static void attribute_text_reads_back(void **state)
{
	Context *c = *state;
	static const struct {
		AttrKind kind;
		const char *text;
	} cases[] = {
		{ATTR_BOOL, "true"},
		{ATTR_INT, "-7"},
		{ATTR_FLOAT, "1e-05"},
		{ATTR_STR, "\"NCHW\""},
		{ATTR_DTYPE, "f32"},
		{ATTR_INTS, "[1, 2]"},
		{ATTR_INTS, "[]"},
		{ATTR_FLOATS, "[1.5, nan]"},
		{ATTR_FLOATS, "floats []"},
		{ATTR_STRS, "[\"a\"]"},
		{ATTR_BOOLS, "[true, false]"},
		{ATTR_DIM, "dim [?n + 1]"},
		{ATTR_DIMS, "dims [?n, 3]"},
		{ATTR_TYPE, "type tensor<2 x f32>"},
		{ATTR_TENSOR, "dense<2 x i64 [1, -2]>"},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const Attr *a = attr_parse(c, cases[i].kind, cases[i].text);
		assert_non_null(a);
		assert_int_equal(a->kind, cases[i].kind);
		assert_string_equal(attr_text_of(c, a), cases[i].text);
	}
	// The kind wanted decides what integers and empty lists are.
	assert_ptr_equal(attr_parse(c, ATTR_FLOAT, "1"), attr_float(c, 1.0));
	assert_ptr_equal(attr_parse(c, ATTR_FLOATS, "[]"), attr_floats(c, 0, NULL));
	assert_ptr_equal(attr_parse(c, ATTR_STRS, "[]"), attr_strs(c, 0, NULL));
	assert_ptr_equal(attr_parse(c, ATTR_DIM, "4"), attr_dim(c, dim_const(c, 4)));
	assert_int_equal(attr_parse(c, ATTR_DIMS, "[1, 2]")->kind, ATTR_DIMS);
	assert_int_equal(diag_errors(c->diag), 0);
	assert_null(attr_parse(c, ATTR_INT, "1 2"));
	assert_null(attr_parse(c, ATTR_INT, ""));
	assert_int_equal(diag_errors(c->diag), 2);
}

static void tensors_convert_elements(void **state)
{
	Context *c = *state;
	const int64_t dims[] = {3};
	static const DType types[] = {DT_F16, DT_BF16, DT_F32, DT_F64, DT_I8, DT_I16, DT_I32, DT_I64};
	for (size_t i = 0; i < COUNT_OF(types); i++) {
		Tensor *t = tensor_new(c->arena, types[i], 1, dims);
		tensor_set_f(t, 1, -2.0);
		assert_true(tensor_get_f(t, 1) == -2.0);
		assert_int_equal(tensor_get_i(t, 1), -2);
		assert_true(tensor_get_f(t, 0) == 0.0);
		assert_int_equal(tensor_bytes(t), 3 * dtype_size(types[i]));
	}
}

static void halves_round_to_nearest_even(void **state)
{
	(void)state;
	for (uint32_t h = 0; h < 0x7C00; h++) {
		float f = half_to_float((uint16_t)h);
		assert_int_equal(float_to_half(f), h);
	}
	assert_int_equal(float_to_half(65520.0f), 0x7C00); // rounds up to infinity
	assert_int_equal(float_to_half(65519.0f), 0x7BFF);
	assert_int_equal(float_to_half(1.0f + 1.0f / 2048), 0x3C00); // a tie goes to the even one
	assert_int_equal(float_to_half(1.0f + 3.0f / 2048), 0x3C02);
	assert_int_equal(float_to_half(-INFINITY), 0xFC00);
	assert_true(isnan(half_to_float(float_to_half(NAN))));
	for (uint32_t h = 0; h < 0x7F80; h += 7)
		assert_int_equal(float_to_bf16(bf16_to_float((uint16_t)h)), h);
	assert_true(isnan(bf16_to_float(float_to_bf16(NAN))));
}

static void collect_name(const char *name, Tensor *t, void *arg)
{
	(void)t;
	Text *text = arg;
	text_str(text, name);
	text_char(text, ' ');
}

static void parameters_come_in_order_of_names(void **state)
{
	Context *c = *state;
	const int64_t dims[] = {1};
	Tensor *t = tensor_new(c->arena, DT_F32, 1, dims);
	static const char *const names[] = {"w_2", "b_0", "w_10", "a"};
	for (size_t i = 0; i < COUNT_OF(names); i++)
		param_set(c, names[i], t);
	param_set(c, "a", NULL); // no value, hence not listed
	assert_false(param_is_written(c, "w_2"));
	param_set_written(c, "w_2");
	param_set_written(c, "z");
	assert_true(param_is_written(c, "w_2"));
	Text text;
	text_init(&text, c->arena);
	param_each(c, collect_name, &text);
	assert_string_equal(text.text, "b_0 w_10 w_2 ");
	assert_ptr_equal(param_get(c, "w_10"), t);
	assert_null(param_get(c, "a"));
	assert_null(param_get(c, "w"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(strings_and_locations_are_unique),  TEST(equal_types_are_one_pointer),
		TEST(looking_up_takes_no_memory),        TEST(types_have_text),
		TEST(element_counts_do_not_overflow),    TEST(dtypes_know_their_names),
		TEST(equal_attributes_are_one_pointer),  TEST(attribute_text_reads_back),
		TEST(tensors_convert_elements),          TEST(halves_round_to_nearest_even),
		TEST(parameters_come_in_order_of_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
