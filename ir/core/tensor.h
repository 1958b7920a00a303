// Concrete tensors, and the parameters of a module (tensor.c).
#ifndef PDCC_IR_CORE_TENSOR_H
#define PDCC_IR_CORE_TENSOR_H

#include "ir/core/type.h"

// A tensor with concrete dims. `data` is owned by the arena it was made in, or is a file mapping.
struct Tensor {
	DType dtype;
	int rank;
	int64_t dims[MAX_RANK];
	void *data;
	int nlod; // LoD levels; lod[i] holds lod_len[i] offsets
	size_t *lod_len;
	int64_t **lod;
};

// Allocates zeroed data; NULL when the byte size overflows. Dims of 0 are fine (data is then NULL).
Tensor *tensor_new(Arena *a, DType t, int rank, const int64_t *dims);
int64_t tensor_numel(const Tensor *t);
size_t tensor_bytes(const Tensor *t);
// Whether there are elements, and all of them have the same bits.
bool tensor_is_uniform(const Tensor *t);
// Element i as double or int64 (f16 and bf16 converted; complex: real part).
double tensor_get_f(const Tensor *t, int64_t i);
int64_t tensor_get_i(const Tensor *t, int64_t i);
void tensor_set_f(Tensor *t, int64_t i, double v); // rounds to the dtype
void tensor_set_i(Tensor *t, int64_t i, int64_t v);
int64_t int_from_double(
	double v); // towards 0; INT64_MIN for what does not fit, as processors have it
// As C converts to t: what does not fit in i64 (or in i32, for everything narrower, which then
// wraps) is its smallest.
int64_t whole_from_double(DType t, double v);
float half_to_float(uint16_t h);
uint16_t float_to_half(float f); // round to nearest even
float bf16_to_float(uint16_t h);
uint16_t float_to_bf16(float f);

// Named parameters of the module (what builtin.get_parameter refers to), in the Context.
void param_set(Context *c, const char *name, Tensor *t);
Tensor *param_get(Context *c, const char *name); // NULL: not there
// The table as it is, for Context.params while something is only tried.
struct ParamTable *params_copy(const Context *c);
// Runs change the parameter: what it holds now is only where they start.
void param_set_written(Context *c, const char *name);
bool param_is_written(const Context *c, const char *name);
// Calls f for each, in order of their names.
void param_each(Context *c, void (*f)(const char *name, Tensor *t, void *arg), void *arg);

#endif
