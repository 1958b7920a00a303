// Element types, and the types of values (type.c).
#ifndef PDCC_IR_CORE_TYPE_H
#define PDCC_IR_CORE_TYPE_H

#include "ir/core/dim.h"

typedef enum DType {
	DT_BOOL,
	DT_U8,
	DT_I8,
	DT_I16,
	DT_I32,
	DT_I64,
	DT_F16,
	DT_BF16,
	DT_F32,
	DT_F64,
	DT_C64,
	DT_C128,
	DT_COUNT
} DType;

const char *dtype_name(DType t); // "f32"
bool dtype_from_name(const char *s, size_t n, DType *out);
size_t dtype_size(DType t); // bytes of one element
static inline bool dtype_is_float(DType t)
{
	return t >= DT_F16 && t <= DT_F64;
}
static inline bool dtype_is_half(DType t)
{
	return t == DT_F16 || t == DT_BF16;
}
// What kernels read and write that have f32 inside.
static inline bool dtype_is_f32_or_half(DType t)
{
	return t == DT_F32 || dtype_is_half(t);
}
static inline bool dtype_is_int(DType t)
{
	return t >= DT_U8 && t <= DT_I64;
}
static inline bool dtype_is_complex(DType t)
{
	return t >= DT_C64;
}
// The type of the real and imaginary part; of other types themselves.
static inline DType dtype_part(DType t)
{
	return t == DT_C64 ? DT_F32 : t == DT_C128 ? DT_F64 : t;
}

typedef enum TypeKind {
	TY_SCALAR,        // f32: an element, inside loop regions
	TY_INDEX,         // index: a position in a loop nest (64 bits)
	TY_TENSOR,        // tensor<?n x 3 x f32>, with lod: tensor<?n x 3 x f32, lod 1>
	TY_SELECTED_ROWS, // selected_rows<?r x 3 x f32>
	TY_ARRAY,         // array<?n x 3 x f32>: a LOD_TENSOR_ARRAY and the type of its elements
	TY_VEC,           // vec<T, T>: what builtin.combine makes
	TY_STACK,         // stack or stack<T, T>: cf.stack, with its element types once known
	TY_FUNC,          // (T, T) -> (T)
	TY_NONE,          // none: a variable that pdcc never looks into (step scopes, places)
	TY_UNRANKED       // tensor<* x f32>: rank not known yet
} TypeKind;

struct Type {
	TypeKind kind;
	DType dtype;              // scalar, tensor, selected_rows, array
	int rank;                 // tensor, selected_rows, array
	int lod;                  // tensor: levels
	const Dim *const *dims;   // [rank]
	int nelem, ninput;        // vec, stack: elements; func: inputs then results
	const Type *const *elems; // [nelem]
};

enum { MAX_RANK = 12 };
enum { MAX_CPU_THREADS = 64 }; // of generated C: PD_THREADS_MAX of pdrt_threads.h

const Type *type_scalar(Context *c, DType t);
const Type *type_index(Context *c);
const Type *type_tensor(Context *c, DType t, int rank, const Dim *const *dims, int lod);
const Type *type_unranked(Context *c, DType t);
const Type *type_like(Context *c, const Type *tensor, DType t); // same shape and lod, other dtype
const Type *type_shaped(Context *c, TypeKind k, DType t, int rank, const Dim *const *dims);
const Type *type_group(Context *c, TypeKind k, int n, const Type *const *elems); // vec, stack
const Type *type_func(Context *c, int nin, const Type *const *in, int nout, const Type *const *out);
const Type *type_none(Context *c);
// An element, not a tensor of them.
static inline bool type_is_scalar(const Type *t)
{
	return t->kind == TY_SCALAR || t->kind == TY_INDEX;
}
static inline bool type_is_tensor(const Type *t)
{
	return t->kind == TY_TENSOR;
}
// Number of elements, as a Dim.
const Dim *type_numel(Context *c, const Type *t);
// Number of elements of an all-constant tensor; false when symbolic or over INT64_MAX.
bool type_const_numel(const Type *t, int64_t *n);
// Whether both have the same axes, whatever their elements are.
bool type_same_dims(const Type *a, const Type *b);
void type_print(Text *t, const Type *ty);
const char *type_text(Context *c, const Type *t);

#endif
