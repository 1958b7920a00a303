// Making and taking apart values of several types (job/variant.h; control_block.c). Private to
// frontend/.
#ifndef PDCC_FRONTEND_VARIANTS_H
#define PDCC_FRONTEND_VARIANTS_H

#include "frontend/job/variant.h"

// Types of which no two go together.
typedef struct VariantTypes {
	int n;
	const Type *types[MAX_VARIANTS];
} VariantTypes;

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
