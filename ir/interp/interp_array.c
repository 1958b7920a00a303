// Interpreter hooks of tensor arrays, of the memory that lowering puts them into, and of pd.assert.
// Arrays are values: what changes one copies its list.
#include "ir/interp/hooks.h"
#include "ir/interp/interp.h"

#include <string.h>

enum { MAX_ARRAY = 1 << 24 }; // elements; more is a runaway index

static const CellList *read_array(Interp *in, const Op *op)
{
	const Cell *c = interp_cell(in, op_operand(op, 0));
	if (c && c->list)
		return c->list;
	op_error(op, "the array has no value");
	return NULL;
}

static CellList *copy_list(Interp *in, const CellList *from, int first, int last)
{
	CellList *l = NEW(interp_arena(in), CellList);
	for (int i = first; i < last; i++)
		cell_list_add(in, l, from->items[i]);
	return l;
}

bool interpret_hook_create_array(Interp *in, Op *op)
{
	interp_bind_cell(in, &op->results[0], (Cell){.list = NEW(interp_arena(in), CellList)});
	return true;
}

bool interpret_hook_array_write(Interp *in, Op *op)
{
	const CellList *from = read_array(in, op);
	int64_t i;
	Tensor *x = interp_operand(in, op, 2);
	if (!from || !x || !interp_whole(in, op, 1, &i))
		return false;
	if (i < 0 || i >= MAX_ARRAY)
		return op_error(op, "position %lld is not possible", (long long)i);
	CellList *l = copy_list(in, from, 0, from->n);
	while (l->n <= i)
		cell_list_add(in, l, (Cell){0});
	l->items[i] = (Cell){.tensor = x};
	interp_bind_cell(in, &op->results[0], (Cell){.list = l});
	return true;
}

bool interpret_hook_array_read(Interp *in, Op *op)
{
	const CellList *l = read_array(in, op);
	int64_t i;
	if (!l || !interp_whole(in, op, 1, &i))
		return false;
	if (i < 0 || i >= l->n)
		return op_error(op, "position %lld of an array of %d elements", (long long)i, l->n);
	if (!l->items[i].tensor)
		return op_error(op, "nothing was written to position %lld", (long long)i);
	interp_bind_cell(in, &op->results[0], l->items[i]);
	return interp_found_dims(in, op, &op->results[0]);
}

bool interpret_hook_array_length(Interp *in, Op *op)
{
	const CellList *l = read_array(in, op);
	Tensor *t = l ? interp_result(in, op, 0) : NULL;
	if (t)
		tensor_set_i(t, 0, l->n);
	return t != NULL;
}

bool interpret_hook_array_has(Interp *in, Op *op)
{
	const CellList *l = read_array(in, op);
	Tensor *t = l ? interp_result(in, op, 0) : NULL;
	int64_t i;
	if (!t || !interp_whole(in, op, 1, &i))
		return false;
	tensor_set_i(t, 0, i >= 0 && i < l->n && l->items[i].tensor);
	return true;
}

bool interpret_hook_array_slice(Interp *in, Op *op)
{
	const CellList *l = read_array(in, op);
	int64_t at[2];
	for (int k = 0; k < 2; k++) {
		if (!l || !interp_whole(in, op, 1 + k, &at[k]))
			return false;
		if (at[k] < 0)
			at[k] += l->n;
		at[k] = at[k] < 0 ? 0 : at[k] > l->n ? l->n : at[k];
	}
	CellList *out = copy_list(in, l, (int)at[0], (int)(at[1] > at[0] ? at[1] : at[0]));
	interp_bind_cell(in, &op->results[0], (Cell){.list = out});
	return true;
}

// ---- an array as one tensor ---------------------------------------------------------------------

// Whether all elements go together; `axis`, if it is one, may differ.
static bool elements_fit(Interp *in, const Op *op, const CellList *l, int axis)
{
	const Tensor *first = l->n ? l->items[0].tensor : NULL;
	if (!l->n)
		return op_error(op, "the array is empty");
	for (int i = 0; i < l->n; i++) {
		const Tensor *t = l->items[i].tensor;
		if (!t || t->rank != first->rank || t->dtype != first->dtype)
			return op_error(op, "element %d is missing, or has another rank", i);
		for (int d = 0; d < t->rank; d++)
			if (d != axis && t->dims[d] != first->dims[d])
				return op_error(op, "element %d has another size on axis %d", i, d);
	}
	return true;
}

// Dims of the result; false after a diagnostic.
static bool joined_dims(Interp *in, const Op *op, const CellList *l, int axis, bool stack,
                        Tensor *shape)
{
	if (!elements_fit(in, op, l, stack ? -1 : axis))
		return false;
	const Tensor *first = l->items[0].tensor;
	shape->dtype = first->dtype;
	shape->rank = first->rank + stack;
	for (int d = 0, from = 0; d < shape->rank; d++) {
		shape->dims[d] = d == axis && stack ? l->n : first->dims[from];
		from += !(d == axis && stack);
	}
	if (!stack)
		shape->dims[axis] = 0;
	for (int i = 0; i < l->n && !stack; i++)
		shape->dims[axis] += l->items[i].tensor->dims[axis];
	return true;
}

// Copies the elements behind each other along axis.
static void join_data(const CellList *l, int axis, bool stack, Tensor *out)
{
	size_t outer = 1, inner = dtype_size(out->dtype);
	for (int d = 0; d < axis; d++)
		outer *= (size_t)out->dims[d];
	for (int d = axis + 1; d < out->rank; d++)
		inner *= (size_t)out->dims[d];
	char *to = out->data;
	for (size_t o = 0; o < outer; o++) {
		for (int i = 0; i < l->n; i++) {
			const Tensor *t = l->items[i].tensor;
			size_t bytes = inner * (stack ? 1 : (size_t)t->dims[axis]);
			if (bytes)
				memcpy(to, (const char *)t->data + o * bytes, bytes);
			to += bytes;
		}
	}
}

bool interpret_hook_array_to_tensor(Interp *in, Op *op)
{
	const CellList *l = read_array(in, op);
	bool stack = op_bool(op, "use_stack", false);
	int rank = op->results[0].type->rank;
	int64_t axis = op_int(op, "axis", 0);
	Tensor shape = {0};
	axis += axis < 0 ? rank : 0;
	if (!l || !joined_dims(in, op, l, (int)axis, stack, &shape))
		return false;
	Tensor *out = tensor_new(interp_arena(in), shape.dtype, shape.rank, shape.dims);
	Tensor *sizes = tensor_new(interp_arena(in), DT_I32, 1, &(int64_t){l->n});
	if (!out || !sizes)
		return op_error(op, "the result is too large");
	if (tensor_bytes(out))
		join_data(l, (int)axis, stack, out);
	for (int i = 0; i < l->n; i++)
		tensor_set_i(sizes, i, stack ? 1 : l->items[i].tensor->dims[axis]);
	interp_bind(in, &op->results[0], out);
	interp_bind(in, &op->results[1], sizes);
	return interp_found_dims(in, op, &op->results[0]) && interp_found_dims(in, op, &op->results[1]);
}

// ---- bounded memory -----------------------------------------------------------------------------

bool interpret_hook_loop_capacity(Interp *in, Op *op)
{
	const Attr *dims = op_attr(op, "dims");
	for (int i = 0; i < dims->n; i++)
		interp_bind_capacity(in, op, dims->dims[i]);
	return true;
}

bool interpret_hook_loop_empty(Interp *in, Op *op)
{
	return interp_result(in, op, 0) != NULL;
}

static void copy_elements(Tensor *to, int64_t at, const Tensor *from, int64_t n)
{
	size_t size = dtype_size(to->dtype);
	if (n)
		memcpy((char *)to->data + (size_t)at * size, from->data, (size_t)n * size);
}

bool interpret_hook_loop_update(Interp *in, Op *op)
{
	const Tensor *data = interp_operand(in, op, 0), *x = interp_operand(in, op, 2);
	const Type *type = op->results[0].type;
	int64_t i, slice = 1;
	if (!data || !x || !interp_whole(in, op, 1, &i))
		return false;
	for (int d = 1; d < data->rank; d++)
		slice *= data->dims[d];
	if (i < 0 || (i >= data->dims[0] && op_bool(op, "fixed", false)))
		return op_error(op, "position %lld is not possible", (long long)i);
	if (i >= data->dims[0])
		return interp_no_room(in, op, type->dims[0], i < INT64_MAX ? i + 1 : i);
	if (tensor_numel(x) > slice)
		return interp_no_room(in, op, type->rank == 2 ? type->dims[1] : type_numel(op->ctx, type),
		                      tensor_numel(x));
	Tensor *out = tensor_new(interp_arena(in), data->dtype, data->rank, data->dims);
	if (!out)
		return op_error(op, "the result is too large");
	copy_elements(out, 0, data, tensor_numel(data));
	copy_elements(out, i * slice, x, tensor_numel(x));
	interp_bind(in, &op->results[0], out);
	return true;
}

bool interpret_hook_loop_append(Interp *in, Op *op)
{
	const Tensor *data = interp_operand(in, op, 0), *x = interp_operand(in, op, 1);
	Tensor *out = data && x ? interp_result(in, op, 0) : NULL;
	if (!out)
		return false;
	if (tensor_numel(out) != tensor_numel(data) + tensor_numel(x))
		return op_error(op, "the result has another number of elements");
	copy_elements(out, 0, data, tensor_numel(data));
	copy_elements(out, tensor_numel(data), x, tensor_numel(x));
	return true;
}

bool interpret_hook_loop_prefix(Interp *in, Op *op)
{
	const Tensor *x = interp_operand(in, op, 0);
	Tensor *out = x ? interp_result(in, op, 0) : NULL;
	if (!out)
		return false;
	if (tensor_numel(out) > tensor_numel(x))
		return op_error(op, "the tensor has fewer elements");
	copy_elements(out, 0, x, tensor_numel(out));
	return true;
}

// ---- arrays that are fed and fetched as tensors -------------------------------------------------

// Dims of every element, a row each.
static Tensor *feed_sizes(Interp *in, const CellList *elements)
{
	const Tensor *first = elements->n ? elements->items[0].tensor : NULL;
	Tensor *out = tensor_new(interp_arena(in), DT_I64, 2,
	                         (const int64_t[]){elements->n, first ? first->rank : 0});
	for (int i = 0; out && i < elements->n; i++) {
		const Tensor *t = elements->items[i].tensor;
		for (int d = 0; d < t->rank && t->rank == first->rank; d++)
			tensor_set_i(out, i * t->rank + d, t->dims[d]);
	}
	return out;
}

static int64_t largest_numel(const CellList *elements)
{
	int64_t most = 1;
	for (int i = 0; i < elements->n; i++)
		if (tensor_numel(elements->items[i].tensor) > most)
			most = tensor_numel(elements->items[i].tensor);
	return most;
}

// Elements that fit go to slices of `slice` elements.
static void slices_fill(Tensor *out, const CellList *elements, int64_t slice, bool flat)
{
	for (int i = 0; i < elements->n; i++) {
		const Tensor *t = elements->items[i].tensor;
		if (t->dtype == out->dtype && (flat || tensor_numel(t) == slice))
			copy_elements(out, i * slice, t, tensor_numel(t));
	}
}

// A slice for each element: of its dims, or, `flat`, as long as the largest.
static Tensor *feed_data(Interp *in, const CellList *elements, bool flat)
{
	const Tensor *first = elements->n ? elements->items[0].tensor : NULL;
	const int64_t slice = largest_numel(elements);
	int64_t dims[MAX_RANK + 1] = {elements->n};
	int rank = flat || !first ? 1 : first->rank;
	dims[1] = slice;
	for (int d = 0; !flat && first && d < rank && d + 1 < MAX_RANK; d++)
		dims[1 + d] = first->dims[d];
	Tensor *out = rank < MAX_RANK
	                  ? tensor_new(interp_arena(in), first ? first->dtype : DT_F32, 1 + rank, dims)
	                  : NULL;
	if (out && first)
		slices_fill(out, elements, flat ? slice : tensor_numel(first), flat);
	return out;
}

Tensor *interp_feed_part(Interp *in, const Op *op, const CellList *elements)
{
	const PartKind part = (PartKind)op_enum(op, "part");
	for (int i = 1; i < elements->n; i++) {
		const Tensor *t = elements->items[i].tensor, *first = elements->items[0].tensor;
		bool same = t->dtype == first->dtype && t->rank == first->rank;
		if (part != PART_DATA
		        ? !same
		        : !same || memcmp(t->dims, first->dims, sizeof *t->dims * (size_t)t->rank)) {
			op_error(op, "element %d of input '%s' does not go with the first", i,
			         op_str(op, "name", ""));
			return NULL;
		}
	}
	Tensor *t = part != PART_SIZES ? feed_data(in, elements, part == PART_FLAT)
	                               : feed_sizes(in, elements);
	if (!t)
		op_error(op, "the array is too large");
	return t;
}

// Element i of the data, with the dims of a slice.
static Tensor *data_element(Interp *in, const Tensor *data, int64_t i)
{
	Tensor *t = tensor_new(interp_arena(in), data->dtype, data->rank - 1, data->dims + 1);
	if (!t)
		return NULL;
	Tensor from = *data;
	int64_t n = tensor_numel(t);
	from.data = (char *)data->data + (size_t)(i * n) * dtype_size(data->dtype);
	copy_elements(t, 0, &from, n);
	return t;
}

// What a row of sizes says; NULL: nothing was written there.
static Tensor *sized_element(Interp *in, const Tensor *t, const Tensor *sizes, int64_t i)
{
	int64_t dims[MAX_RANK], rank = sizes->dims[1];
	for (int64_t d = 0; d < rank; d++)
		if ((dims[d] = tensor_get_i(sizes, i * rank + d)) < 0)
			return NULL;
	Tensor *out = tensor_new(interp_arena(in), t->dtype, (int)rank, dims);
	if (out && tensor_numel(out) <= tensor_numel(t))
		copy_elements(out, 0, t, tensor_numel(out));
	return out;
}

// Of a value of several types, those after the first are kept until it is known which counts.
static bool fetch_type(Interp *in, const Op *op, Cell *fetched, Tensor *t)
{
	if (!fetched->list)
		fetched->list = NEW(interp_arena(in), CellList);
	if (op_enum(op, "part") == PART_TYPE) {
		cell_list_add(in, fetched->list, (Cell){.tensor = t});
		return true;
	}
	const int64_t which = tensor_get_i(t, 0);
	if (which < 0 || which > fetched->list->n)
		return op_error(op, "there is no type number %lld", (long long)which);
	*fetched = (Cell){.tensor = which ? fetched->list->items[which - 1].tensor : fetched->tensor};
	return true;
}

bool interp_fetch_part(Interp *in, Op *op, Cell *fetched)
{
	Tensor *t = interp_operand(in, op, 0);
	const Tensor *data = fetched->tensor;
	const PartKind part = (PartKind)op_enum(op, "part");
	if (!t)
		return false;
	if (part == PART_TYPE || part == PART_WHICH)
		return fetch_type(in, op, fetched, t);
	if (part == PART_LENGTH && data) {
		CellList *l = NEW(interp_arena(in), CellList);
		for (int64_t i = 0; i < tensor_get_i(t, 0) && i < data->dims[0]; i++)
			cell_list_add(in, l, (Cell){.tensor = data_element(in, data, i)});
		*fetched = (Cell){.list = l};
		return true;
	}
	if (!fetched->list)
		return op_error(op, "the array's length must be fetched first");
	for (int i = 0; i < fetched->list->n && i < t->dims[0]; i++) {
		Cell *c = &fetched->list->items[i];
		if (part == PART_SIZES)
			c->tensor = sized_element(in, c->tensor, t, i);
		else if (!tensor_get_i(t, i))
			c->tensor = NULL;
	}
	return true;
}

// ---- checks -------------------------------------------------------------------------------------

bool interpret_hook_assert(Interp *in, Op *op)
{
	const Tensor *t = interp_operand(in, op, 0);
	if (!t)
		return false;
	for (int64_t i = 0, n = tensor_numel(t); i < n; i++) {
		const char *message = op_str(op, "message", "");
		if (!tensor_get_i(t, i))
			return op_error(op, "%s", *message ? message : "the condition does not hold");
	}
	return true;
}
