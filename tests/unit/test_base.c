// Arena, text and diagnostics.
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- arena --------------------------------------------------------------------------------------

static void arena_gives_zeroed_aligned_memory(void **state)
{
	(void)state;
	Arena *a = arena_new();
	for (size_t size = 0; size < 5000; size += 37) {
		unsigned char *p = arena_alloc(a, size);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xAB, size);
	}
	arena_free(a);
}

static void arena_blocks_do_not_overlap(void **state)
{
	(void)state;
	Arena *a = arena_new();
	enum { N = 300 };
	unsigned char *p[N];
	for (int i = 0; i < N; i++) {
		p[i] = i % 50 ? arena_alloc(a, 100) : arena_big(a, 1 << 20);
		memset(p[i], i, 100);
	}
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 100; k++)
			assert_int_equal(p[i][k], i & 0xFF);
	}
	assert_true(arena_bytes(a) >= (size_t)N * 100);
	arena_free(a);
	arena_free(NULL);
}

static void arena_big_is_aligned_to_cache_lines(void **state)
{
	(void)state;
	Arena *a = arena_new();
	for (size_t size = 0; size < 300; size += 7)
		assert_int_equal((uintptr_t)arena_big(a, size) % 64, 0);
	arena_free(a);
}

static void count_call(void *what)
{
	++*(int *)what;
}

static void arena_releases_what_it_was_given(void **state)
{
	(void)state;
	int calls = 0;
	Arena *a = arena_new();
	arena_on_free(a, count_call, &calls);
	arena_on_free(a, count_call, &calls);
	assert_int_equal(calls, 0);
	arena_free(a);
	assert_int_equal(calls, 2);
}

static void arena_jumps_when_a_size_overflows(void **state)
{
	(void)state;
	OomGuard guard;
	Arena *a = arena_new();
	oom_guard = &guard;
	if (!setjmp(guard.jump)) {
		arena_array(a, SIZE_MAX / 2, 16);
		fail_msg("the product overflows");
	}
	oom_guard = NULL;
	arena_free(a);
}

static void arena_copies_strings(void **state)
{
	(void)state;
	Arena *a = arena_new();
	assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
	assert_string_equal(arena_printf(a, "%d %s", 7, "x"), "7 x");
	arena_free(a);
}

// ---- text ---------------------------------------------------------------------------------------

static void arrays_grow(void **state)
{
	Arena *a = arena_new();
	int n = 0, cap = 0, *items = NULL;
	for (; n < 1000; n++) {
		VEC_ROOM(a, items, n, cap);
		items[n] = 3 * n;
	}
	assert_true(cap >= n && cap < 2 * n + 8);
	for (int i = 0; i < n; i++)
		assert_int_equal(items[i], 3 * i);
	arena_free(a);
}

static void maps_find_what_was_set(void **state)
{
	enum { KEYS = 500 };
	Arena *a = arena_new();
	PointerMap m, indices;
	int keys[KEYS + 1];
	pointer_map_init(&m, a);
	pointer_map_init(&indices, a);
	assert_null(pointer_map_get(&m, &keys[0]));
	assert_int_equal(pointer_map_index(&indices, &keys[0]), -1);
	for (int i = 0; i < KEYS; i++) {
		pointer_map_set(&m, &keys[i], &keys[KEYS]);
		pointer_map_set(&m, &keys[i], &keys[KEYS - i]);
		pointer_map_set_index(&indices, &keys[i], i);
	}
	for (int i = 0; i < KEYS; i++) {
		assert_ptr_equal(pointer_map_get(&m, &keys[i]), &keys[KEYS - i]);
		assert_int_equal(pointer_map_index(&indices, &keys[i]), i);
	}
	assert_null(pointer_map_get(&m, &keys[KEYS]));
	arena_free(a);
}

static void text_grows(void **state)
{
	Context *c = *state;
	Text t;
	text_init(&t, c->arena);
	for (int i = 0; i < 10000; i++)
		text_printf(&t, "%d,", i % 10);
	assert_int_equal(t.len, 20000);
	assert_int_equal(strlen(t.text), 20000);
	text_strn(&t, "abc", 2);
	text_char(&t, '!');
	assert_string_equal(t.text + 20000, "ab!");
}

static const char *float_text(Context *c, double v, bool single)
{
	Text t;
	text_init(&t, c->arena);
	text_float(&t, v, single);
	return t.text;
}

static void floats_read_back_the_same(void **state)
{
	Context *c = *state;
	static const double values[] = {0.0,
	                                -0.0,
	                                1.0,
	                                0.1,
	                                1.0 / 3,
	                                1e300,
	                                5e-324,
	                                1.7976931348623157e308,
	                                123456,
	                                1e-5,
	                                16777217,
	                                1e15,
	                                1e22,
	                                -2.5,
	                                0.30000000000000004};
	for (size_t i = 0; i < COUNT_OF(values); i++) {
		const char *s = float_text(c, values[i], false);
		double back = strtod(s, NULL);
		assert_memory_equal(&back, &values[i], sizeof back);
		float f = (float)values[i], single = strtof(float_text(c, f, true), NULL);
		assert_memory_equal(&single, &f, sizeof f);
	}
	assert_string_equal(float_text(c, 1.0, false), "1.0");
	assert_string_equal(float_text(c, 0.1, false), "0.1");
	assert_string_equal(float_text(c, 0.1f, true), "0.1");
	assert_string_equal(float_text(c, -INFINITY, false), "-inf");
	assert_string_equal(float_text(c, NAN, false), "nan");
}

static void quoted_text_is_escaped(void **state)
{
	Context *c = *state;
	Text t;
	text_init(&t, c->arena);
	text_quoted(&t, "a\"b\\c\nd\te\x01");
	assert_string_equal(t.text, "\"a\\\"b\\\\c\\nd\\te\\x01\"");
	text_init(&t, c->arena);
	text_json(&t, "a\"b\\c\nd\x7f\xc2\x9b\xc3\xbc");
	assert_string_equal(t.text, "\"a\\\"b\\\\c\\u000ad\\u007f\\u009b\xc3\xbc\"");
}

// ---- diagnostics --------------------------------------------------------------------------------

static const char *flushed(Context *c)
{
	FILE *f = tmpfile();
	assert_non_null(f);
	diag_flush(c->diag, f, false);
	rewind(f);
	char *text = arena_alloc(c->arena, 4096);
	size_t n = fread(text, 1, 4095, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static void diagnostics_say_where(void **state)
{
	Context *c = *state;
	const Loc model = {
		.file = "m.pdmodel", .block = 1, .op = 7, .type = "conv2d", .slot = "Output", .var = "y"};
	const Loc text = {.file = "m.pdir", .block = -1, .op = -1, .line = 3, .col = 9};
	diag_error(c->diag, &model, "bad %s", "thing");
	diag_warning(c->diag, &text, "odd");
	diag_note(c->diag, NULL, "by the way");
	assert_int_equal(diag_errors(c->diag), 1);
	assert_string_equal(flushed(c),
	                    "m.pdmodel: block 1, op 7 'conv2d' (Output 'y'): error: bad thing\n"
	                    "m.pdir:3:9: warning: odd\n"
	                    "pdcc: note: by the way\n");
	assert_string_equal(flushed(c), "");
}

static void werror_makes_warnings_errors(void **state)
{
	Context *c = *state;
	diag_werror(c->diag, true);
	diag_warning(c->diag, NULL, "odd");
	assert_int_equal(diag_errors(c->diag), 1);
	assert_non_null(strstr(flushed(c), "error: odd"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(arena_gives_zeroed_aligned_memory),
		TEST(arena_blocks_do_not_overlap),
		TEST(arena_big_is_aligned_to_cache_lines),
		TEST(arena_releases_what_it_was_given),
		TEST(arena_jumps_when_a_size_overflows),
		TEST(arena_copies_strings),
		TEST(arrays_grow),
		TEST(maps_find_what_was_set),
		TEST(text_grows),
		TEST(floats_read_back_the_same),
		TEST(quoted_text_is_escaped),
		TEST(diagnostics_say_where),
		TEST(werror_makes_warnings_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
