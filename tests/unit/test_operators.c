// Unit tests of the operator table: look-ups. Derivatives are those of test_derivatives.c.
#include "ir/ir.h"
#include "tests/unit/unit.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look_ups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
