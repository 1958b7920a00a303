// Values of several types (control_block.c): what a variable holds that branches, or rounds of a
// loop, leave as others. Private to frontend/.
#ifndef PDCC_FRONTEND_VARIANT_H
#define PDCC_FRONTEND_VARIANT_H

#include "frontend/translate/translator.h"

enum { MAX_VARIANTS = 6 };

// Types of which no two go together.
typedef struct VariantTypes {
	int n;
	const Type *types[MAX_VARIANTS];
} VariantTypes;

// Whether v is the mark of several alternatives, which no operation takes.
static inline bool is_variant(const Value *v)
{
	return v && v->def && v->def->code == OP_BUILTIN_VARIANT;
}
// Whether v is the mark of an array with elements of several types (control_array.c): an array for
// each, and in the place of the number an array that says for every position of which type it is.
static inline bool is_mixed(const Value *v)
{
	return is_variant(v) && v->type->elems[0]->kind == TY_ARRAY;
}
static inline int variant_count(const Value *v)
{
	return is_variant(v) ? v->def->noperand - 1 : 1;
}
// Alternative k; a plain value is its only one.
static inline Value *variant_part(const Value *v, int k)
{
	return is_variant(v) ? op_operand(v->def, k + 1) : (Value *)v;
}
// Whether one variable may hold both, but for sizes.
bool types_go_together(const Type *a, const Type *b);
// The list gets what v may be, where it is not there. False when that is too much, or no tensor.
bool variant_types_add(VariantTypes *list, const Value *v);
// Which of the list v is in a run, a number; and v where it is number k (NULL: never, or v is).
Value *variant_which(Builder *b, const VariantTypes *list, const Value *v);
Value *variant_alternative(const VariantTypes *list, int k, const Value *v);
Value *variant_make(Builder *b, Value *which, int n, Value *const *alternatives);
// The alternative that the file declares `var` as; a run in which it is another one ends. NULL
// after a diagnostic.
Value *variant_settle(OpJob *j, const char *var, Value *v);
// All marks in a region go.
void variants_erase(Region *r);

// ---- control_array.c, control_element.c ---------------------------------------------------------
// An empty array of the type, or types, that array_type gives.
Value *array_of_none(Builder *b, const Type *t);
// The empty array that says of which types elements are.
Value *mixed_kinds_none(Builder *b);
// What stands for the type of an element in there: the same in all arrays.
int64_t array_kind_code(const Type *t);
// An operator that reads a mixed array, where it does; *ok: false after a diagnostic.
bool mixed_translate(OpJob *j, int index, bool *ok);

#endif
