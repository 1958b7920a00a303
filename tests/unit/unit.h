// What the unit tests share: cmocka, and a context per test that reports whatever was not expected.
#ifndef PDCC_UNIT_H
#define PDCC_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/ir.h"
#include "ir/core/core.h"
#include "ir/text/text.h"

static inline int context_setup(void **state)
{
	*state = context_new();
	return 0;
}

static inline int context_teardown(void **state)
{
	context_free(*state);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, context_setup, context_teardown)

// The text of a size, a type or an attribute, in the context's arena.
static inline const char *dim_text_of(Context *c, const Dim *d)
{
	Text t;
	text_init(&t, c->arena);
	dim_print(&t, d);
	return t.text;
}

static inline const char *type_text_of(Context *c, const Type *ty)
{
	Text t;
	text_init(&t, c->arena);
	type_print(&t, ty);
	return t.text;
}

static inline const char *attr_text_of(Context *c, const Attr *a)
{
	Text t;
	text_init(&t, c->arena);
	attr_print(&t, a);
	return t.text;
}

static inline const char *op_text_of(Context *c, const Op *op)
{
	Text t;
	text_init(&t, c->arena);
	ir_print(&t, op);
	return t.text;
}

#endif
