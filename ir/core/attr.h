// Attributes: constant properties of operations (attr.c).
#ifndef PDCC_IR_CORE_ATTR_H
#define PDCC_IR_CORE_ATTR_H

#include "ir/core/tensor.h"

typedef enum AttrKind {
	ATTR_BOOL,
	ATTR_INT,
	ATTR_FLOAT,
	ATTR_STR,
	ATTR_TYPE,
	ATTR_DTYPE,
	ATTR_INTS,
	ATTR_FLOATS,
	ATTR_STRS,
	ATTR_BOOLS,
	ATTR_DIM,
	ATTR_DIMS,
	ATTR_TENSOR
} AttrKind;

// Printed: true | 7 | 1.5 | "s" | type tensor<..> | f32 | [1, 2] | [1.0, 2.0] | ["a"] | [true] |
// dim ?n | dims [?n, 3] | dense<2x2xf32 [..]> (small constants only; large data are parameters).
struct Attr {
	AttrKind kind;
	int64_t i;               // BOOL, INT, DTYPE
	double f;                // FLOAT
	const char *s;           // STR
	const Type *type;        // TYPE
	const Dim *dim;          // DIM
	int n;                   // the lists
	const int64_t *ints;     // INTS, BOOLS
	const double *floats;    // FLOATS
	const char *const *strs; // STRS
	const Dim *const *dims;  // DIMS
	const Tensor *tensor;    // TENSOR
};

const Attr *attr_bool(Context *c, bool v);
const Attr *attr_int(Context *c, int64_t v);
const Attr *attr_float(Context *c, double v);
const Attr *attr_str(Context *c, const char *s);
const Attr *attr_type(Context *c, const Type *t);
const Attr *attr_dtype(Context *c, DType t);
const Attr *attr_ints(Context *c, int n, const int64_t *v);
const Attr *attr_bools(Context *c, int n, const int64_t *v);
const Attr *attr_floats(Context *c, int n, const double *v);
const Attr *attr_strs(Context *c, int n, const char *const *v);
const Attr *attr_dim(Context *c, const Dim *d);
const Attr *attr_dims(Context *c, int n, const Dim *const *v);
const Attr *attr_tensor(Context *c, const Tensor *t); // t must stay as it is
bool number_whole(double v, int64_t *whole); // whether v is a whole number below 2^62, and which
void attr_print(Text *t, const Attr *a);

#endif
