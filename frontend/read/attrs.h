// Legacy attributes: numbers, strings and lists of many kinds, to the kind that the operator table
// wants. Private to frontend/.
#ifndef PDCC_FRONTEND_ATTRS_H
#define PDCC_FRONTEND_ATTRS_H

#include "frontend/read/desc.h"
#include "ir/core/core.h"

// To the wanted kind; NULL (no diagnostic) when it cannot be said in it.
const Attr *attr_convert(Context *c, AttrKind kind, const Paddle__OpAttr *a);
// To an INT or FLOAT, whichever says it exactly.
const Attr *attr_convert_number(Context *c, const Paddle__OpAttr *a);
const char *attr_kind_name(int32_t legacy_kind);
// Numbers in an attribute of any numeric kind, single or list; -1 when it is none.
int attr_count(const Paddle__OpAttr *a);
bool attr_int_at(const Paddle__OpAttr *a, int i, int64_t *v);
bool attr_float_at(const Paddle__OpAttr *a, int i, double *v);
// Whether both hold the same numbers or strings; true where they name variables or blocks.
bool attr_same(const Paddle__OpAttr *a, const Paddle__OpAttr *b);
// What constant values of the program hold, one after the other.
typedef struct NumberList {
	int n;
	double floats[MAX_RANK * 2];
	int64_t ints[MAX_RANK * 2];
	bool whole[MAX_RANK * 2]; // an integer, which `ints` holds
} NumberList;
// Appends; false when v is not known now, or does not fit.
bool numbers_of_value(Context *c, const Value *v, NumberList *list);
const Attr *attr_from_numbers(Context *c, const AttrInfo *a,
                              const NumberList *list); // NULL: wrong kind or number
// Whether the operator's row reads an attribute of that name.
bool attr_is_read(const LegacyMap *map, const char *name);
// Whole-operator properties that pdcc does not do (fusions of other compilers): a message, or NULL.
const char *attr_objection(Context *c, const LegacyMap *map, const Paddle__OpAttr *a);

#endif
