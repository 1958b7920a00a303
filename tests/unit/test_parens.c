// Parentheses of generated C: which say nothing, and which change what C reads or compilers warn
// of.
#include "codegen/text/text.h"
#include "tests/unit/unit.h"

#include <string.h>

// `line` is printed as `plain`; NULL: as it is.
static void expect(Context *c, const char *line, const char *plain)
{
	Text out;
	text_init(&out, c->arena);
	text_plain(line, strlen(line), &out);
	assert_string_equal(out.text, plain ? plain : line);
}

static void what_binds_tighter_stands_alone(void **state)
{
	Context *c = *state;
	expect(c, "x = (a * b) + (c * d);", "x = a * b + c * d;");
	expect(c, "x = ((a + b) * c);", "x = (a + b) * c;");
	expect(c, "if ((a < b) && (c == (d + 1)))", "if (a < b && c == d + 1)");
	expect(c, "x = (a < b) ? (c + 1) : (-1.5f);", "x = a < b ? c + 1 : -1.5f;");
	expect(c, "f((a), (const float *)(p + 1), (x - ((float)y)));",
	       "f(a, (const float *)(p + 1), x - (float)y);");
	expect(c, "x[(i * 2)] = (y[i] + z);", "x[i * 2] = y[i] + z;");
	expect(c, "	return (a * b); // of (this)", "	return a * b; // of (this)");
}

static void no_sum_is_read_in_another_order(void **state)
{
	Context *c = *state;
	expect(c, "x = ((a + b) + c) - (d - e);", "x = a + b + c - (d - e);");
	expect(c, "x = a * (b * c);", NULL);
	expect(c, "x = a + ((b + c) + d);", "x = a + (b + c + d);");
	expect(c, "x = (a / b) * c;", NULL);
	expect(c, "x = (a * b) / c;", "x = a * b / c;");
	expect(c, "x = a - (-b);", NULL);
	expect(c, "x = (a + b).re + (c + d)[1];", NULL);
	expect(c, "x = -(a + b) * !(c && d);", NULL);
	expect(c, "x = (float)(a + b) / (c * d);", NULL);
}

static void a_sign_joins_its_plus(void **state)
{
	Context *c = *state;
	expect(c, "x = a + (-1);", "x = a - 1;");
	expect(c, "x = a + (-1e-05f) + b;", "x = a - 1e-05f + b;");
	expect(c, "x = a + (-1) * b;", NULL);
	expect(c, "x = a * (-1);", NULL);
	expect(c, "x = a + (-b);", NULL);
	expect(c, "x = a < (-1);", "x = a < -1;");
	expect(c, "float t[2] = {(-1.0f), (2.0f)};", "float t[2] = {-1.0f, 2.0f};");
}

static void what_compilers_warn_of_stays(void **state)
{
	Context *c = *state;
	expect(c, "x = (a && b) || c;", NULL);
	expect(c, "x = (a + b) << 2;", NULL);
	expect(c, "x = (a & b) | (c == d);", NULL);
	expect(c, "x = (a < b) == (c < d);", NULL);
	expect(c, "x = a ? b : (c ? d : e);", NULL);
	expect(c, "while ((a = b))", NULL);
}

static void what_is_no_operand_stays(void **state)
{
	Context *c = *state;
	expect(c, "typedef float vf __attribute__((vector_size(16)));", NULL);
	expect(c, "x = pd_load<4>(p + 1);", NULL);
	expect(c, "run<<<(n + 255) / 256, 256>>>(a, b);", NULL);
	expect(c, "pd_status (*run)(const void *, int);", NULL);
	expect(c, "puts(\"(a * b) + c\", (a));", NULL);
	expect(c, "(a + b)", NULL);
	expect(c, "	+ (a * b)", NULL);
	expect(c, "x = (a + (b", NULL);
	expect(c, "b) * c) + d;", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_binds_tighter_stands_alone), TEST(no_sum_is_read_in_another_order),
		TEST(a_sign_joins_its_plus),           TEST(what_compilers_warn_of_stays),
		TEST(what_is_no_operand_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
