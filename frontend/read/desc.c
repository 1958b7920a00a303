// Small questions about legacy descriptors. Used by params.c, translate.c and steps.c.
#include "frontend/read/desc.h"

#include <string.h>

static const struct {
	int32_t kind;
	DType dtype;
} dtype_kinds[] = {
	{PADDLE__VAR_KIND__BOOL, DT_BOOL},     {PADDLE__VAR_KIND__INT16, DT_I16},
	{PADDLE__VAR_KIND__INT32, DT_I32},     {PADDLE__VAR_KIND__INT64, DT_I64},
	{PADDLE__VAR_KIND__FP16, DT_F16},      {PADDLE__VAR_KIND__FP32, DT_F32},
	{PADDLE__VAR_KIND__FP64, DT_F64},      {PADDLE__VAR_KIND__UINT8, DT_U8},
	{PADDLE__VAR_KIND__INT8, DT_I8},       {PADDLE__VAR_KIND__BF16, DT_BF16},
	{PADDLE__VAR_KIND__COMPLEX64, DT_C64}, {PADDLE__VAR_KIND__COMPLEX128, DT_C128},
};

bool dtype_from_kind(int64_t kind, DType *out)
{
	for (size_t i = 0; i < COUNT_OF(dtype_kinds); i++) {
		if (dtype_kinds[i].kind == kind) {
			*out = dtype_kinds[i].dtype;
			return true;
		}
	}
	return false;
}

int32_t kind_from_dtype(DType t)
{
	for (size_t i = 0; i < COUNT_OF(dtype_kinds); i++)
		if (dtype_kinds[i].dtype == t)
			return dtype_kinds[i].kind;
	return -1;
}

const char *kind_name(int32_t kind)
{
	static const char *const names[] = {"BOOL",
	                                    "INT16",
	                                    "INT32",
	                                    "INT64",
	                                    "FP16",
	                                    "FP32",
	                                    "FP64",
	                                    "LOD_TENSOR",
	                                    "SELECTED_ROWS",
	                                    "FEED_MINIBATCH",
	                                    "FETCH_LIST",
	                                    "STEP_SCOPES",
	                                    "LOD_RANK_TABLE",
	                                    "LOD_TENSOR_ARRAY",
	                                    "PLACE_LIST",
	                                    "READER",
	                                    "16",
	                                    "RAW",
	                                    "TUPLE",
	                                    "SIZE_T",
	                                    "UINT8",
	                                    "INT8",
	                                    "BF16",
	                                    "COMPLEX64",
	                                    "COMPLEX128",
	                                    "STRING",
	                                    "STRINGS",
	                                    "VOCAB",
	                                    "FEED_LIST",
	                                    "PSTRING",
	                                    "SPARSE_COO",
	                                    "SPARSE_CSR"};
	return kind >= 0 && (size_t)kind < COUNT_OF(names) ? names[kind] : "unknown";
}

const Paddle__TensorDesc *var_tensor(const Paddle__VarDesc *v)
{
	switch (v->type->type) {
	case PADDLE__VAR_KIND__LOD_TENSOR:
		return v->type->lod_tensor ? v->type->lod_tensor->tensor : NULL;
	case PADDLE__VAR_KIND__LOD_TENSOR_ARRAY:
		return v->type->tensor_array ? v->type->tensor_array->tensor : NULL;
	case PADDLE__VAR_KIND__SELECTED_ROWS: return v->type->selected_rows;
	default: return NULL;
	}
}

int var_lod_level(const Paddle__VarDesc *v)
{
	if (v->type->type != PADDLE__VAR_KIND__LOD_TENSOR || !v->type->lod_tensor ||
	    !v->type->lod_tensor->has_lod_level)
		return 0;
	int32_t level = v->type->lod_tensor->lod_level;
	return level > 0 ? level : 0;
}

bool var_is_state(const Paddle__VarDesc *v)
{
	return v->has_persistable && v->persistable && v->type->type == PADDLE__VAR_KIND__LOD_TENSOR;
}

const Paddle__OpSlot *slot_find(size_t n, Paddle__OpSlot *const *slots, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(slots[i]->parameter, name) == 0)
			return slots[i];
	return NULL;
}

const char *slot_var(const Paddle__OpSlot *s, size_t i)
{
	if (!s || i >= s->n_arguments || !*s->arguments[i] || strcmp(s->arguments[i], EMPTY_VAR) == 0)
		return NULL;
	return s->arguments[i];
}

const Paddle__OpAttr *attr_find(const Paddle__OpDesc *op, const char *name)
{
	for (size_t i = 0; i < op->n_attrs; i++)
		if (strcmp(op->attrs[i]->name, name) == 0)
			return op->attrs[i];
	return NULL;
}

bool is_pir(const Paddle__OpDesc *op)
{
	static const char dialect[] = "pd_op.";
	return strncmp(op->type, dialect, strlen(dialect)) == 0;
}

bool dims_bytes(DType t, int rank, const int64_t *dims, uint64_t *bytes)
{
	bool zero = false;
	*bytes = dtype_size(t);
	for (int i = 0; i < rank; i++) {
		if (dims[i] < 0)
			return false;
		zero |= dims[i] == 0;
		// Over the dims that are not 0, so that products of some of them fit as well.
		if (dims[i] && *bytes > (uint64_t)INT64_MAX / (uint64_t)dims[i])
			return false;
		*bytes *= dims[i] ? (uint64_t)dims[i] : 1;
	}
	if (zero)
		*bytes = 0;
	return true;
}
