// Looking at legacy descriptors: variables, slots, attributes, and maps by name. Private to
// frontend/.
#ifndef PDCC_FRONTEND_DESC_H
#define PDCC_FRONTEND_DESC_H

#include "frontend/read/read.h"
#include "ir/base/map.h"

// What an absent optional argument is called.
#define EMPTY_VAR "@EMPTY@"

// Element types by their numbers in the format; false for what is none.
bool dtype_from_kind(int64_t kind, DType *out);
int32_t kind_from_dtype(DType t);
// "LOD_TENSOR_ARRAY"
const char *kind_name(int32_t kind);

// Element type and dims of a variable that has them, or NULL.
const Paddle__TensorDesc *var_tensor(const Paddle__VarDesc *v);
int var_lod_level(const Paddle__VarDesc *v);
// A tensor that outlives the run: a parameter, or state.
bool var_is_state(const Paddle__VarDesc *v);

// The variable in slot `name` of an operator, at position i; NULL when absent or empty.
const Paddle__OpSlot *slot_find(size_t n, Paddle__OpSlot *const *slots, const char *name);
const char *slot_var(const Paddle__OpSlot *s, size_t i);
const Paddle__OpAttr *attr_find(const Paddle__OpDesc *op, const char *name);
// Whether it is an operation of Paddle 3 ("pd_op.conv2d").
bool is_pir(const Paddle__OpDesc *op);

// Bytes of a tensor; false when a dim is negative or the product does not fit.
bool dims_bytes(DType t, int rank, const int64_t *dims, uint64_t *bytes);

#endif
