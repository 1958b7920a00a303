// Interpreter hooks of the kernels that go in sequence: kernel.scan, kernel.scatter.
#include "ir/interp/hooks.h"

#include <float.h>
#include <math.h>
#include <string.h>

// ---- running sums -------------------------------------------------------------------------------

// Takes v into the accumulator; whether it is the new largest (smallest).
static bool scan_float(ScanKind kind, bool first, double *acc, double v)
{
	double high = *acc < v ? v : *acc, low = v < *acc ? v : *acc; // of NaN the accumulator
	bool better = first || isnan(v) || (!isnan(*acc) && (kind == SCAN_MAX ? v >= *acc : v <= *acc));
	switch (kind) {
	case SCAN_SUM: *acc += v; break;
	case SCAN_PROD: *acc *= v; break;
	case SCAN_LOGSUMEXP: *acc = high + log1p(exp(low - high)); break;
	default: *acc = better ? v : *acc;
	}
	return better;
}

static bool scan_int(ScanKind kind, bool first, int64_t *acc, int64_t v)
{
	bool better = first || (kind == SCAN_MAX ? v >= *acc : v <= *acc);
	if (kind == SCAN_SUM)
		*acc = (int64_t)((uint64_t)*acc + (uint64_t)v);
	else if (kind == SCAN_PROD)
		*acc = (int64_t)((uint64_t)*acc * (uint64_t)v);
	else
		*acc = better ? v : *acc;
	return better;
}

typedef struct Scan {
	ScanKind kind;
	const Tensor *x;
	Tensor *out, *which; // which: NULL when nobody asks
	int64_t length, inner;
	bool exclusive, reverse;
} Scan;

static void scan_line(const Scan *s, int64_t first)
{
	bool floating = dtype_is_float(s->x->dtype);
	double f = s->kind == SCAN_PROD;
	if (s->kind == SCAN_LOGSUMEXP) // as Paddle, with the lowest number
		f = s->x->dtype == DT_F64 ? -DBL_MAX : -(double)FLT_MAX;
	int64_t i = s->kind == SCAN_PROD, which = 0;
	for (int64_t k = 0; k < s->length; k++) {
		int64_t place = s->reverse ? s->length - 1 - k : k, at = first + place * s->inner;
		double before_f = f;
		int64_t before_i = i;
		bool better = floating ? scan_float(s->kind, k == 0, &f, tensor_get_f(s->x, at))
		                       : scan_int(s->kind, k == 0, &i, tensor_get_i(s->x, at));
		which = better ? place : which;
		if (floating)
			tensor_set_f(s->out, at, s->exclusive ? before_f : f);
		else
			tensor_set_i(s->out, at, s->exclusive ? before_i : i);
		if (s->which)
			tensor_set_i(s->which, at, which);
	}
}

static void scan_complex_line(const Scan *s, int64_t first)
{
	const bool product = s->kind == SCAN_PROD;
	Lane acc[COMPLEX_IM + 1], v[COMPLEX_IM + 1];
	acc[0].f = product;
	acc[COMPLEX_IM].f = 0;
	for (int64_t k = 0; k < s->length; k++) {
		const int64_t at = first + (s->reverse ? s->length - 1 - k : k) * s->inner;
		complex_gather(s->x, 1, &at, v);
		if (s->exclusive)
			complex_store(s->out, at, 1, acc);
		complex_accumulate(product, 1, acc, v);
		if (!s->exclusive)
			complex_store(s->out, at, 1, acc);
	}
}

bool interpret_hook_kernel_scan(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *out = interp_result(in, op, 0);
	Tensor *which = op->nresult > 1 ? interp_result(in, op, 1) : NULL;
	int64_t axis = op_int(op, "axis", 0);
	if (!x || !out || (op->nresult > 1 && !which))
		return false;
	Scan s = {.kind = (ScanKind)op_enum(op, "kind"),
	          .x = x,
	          .out = out,
	          .which = which,
	          .length = x->dims[axis],
	          .inner = 1,
	          .exclusive = op_bool(op, "exclusive", false),
	          .reverse = op_bool(op, "reverse", false)};
	for (int64_t d = axis + 1; d < x->rank; d++)
		s.inner *= x->dims[d];
	int64_t lines = s.length ? tensor_numel(x) / s.length : 0;
	for (int64_t i = 0; i < lines; i++) {
		const int64_t first = i / s.inner * s.length * s.inner + i % s.inner;
		if (dtype_is_complex(x->dtype))
			scan_complex_line(&s, first);
		else
			scan_line(&s, first);
	}
	return true;
}

// ---- rows that change ---------------------------------------------------------------------------

static double changed_float(double a, double b, ScatterKind how)
{
	switch (how) {
	case SCATTER_MULTIPLY: return a * b;
	case SCATTER_MAX: return b > a ? b : a;
	case SCATTER_MIN: return b < a ? b : a;
	default: return a + b;
	}
}

static int64_t changed_whole(int64_t a, int64_t b, ScatterKind how)
{
	switch (how) {
	case SCATTER_MULTIPLY: return (int64_t)((uint64_t)a * (uint64_t)b);
	case SCATTER_MAX: return b > a ? b : a;
	case SCATTER_MIN: return b < a ? b : a;
	default: return (int64_t)((uint64_t)a + (uint64_t)b);
	}
}

// A row and one of the updates become what `how` says.
static void change_row(Tensor *out, int64_t row, const Tensor *updates, int64_t from, int64_t width,
                       ScatterKind how)
{
	Lane acc[COMPLEX_IM + 1], v[COMPLEX_IM + 1];
	for (int64_t i = 0; i < width; i++) {
		int64_t to = row * width + i, at = from * width + i;
		if (dtype_is_complex(out->dtype)) {
			complex_gather(out, 1, &to, acc);
			complex_gather(updates, 1, &at, v);
			complex_accumulate(how == SCATTER_MULTIPLY, 1, acc, v);
			complex_store(out, to, 1, acc);
		} else if (dtype_is_float(out->dtype)) {
			double a = tensor_get_f(out, to), b = tensor_get_f(updates, at);
			tensor_set_f(out, to, changed_float(a, b, how));
		} else {
			int64_t a = tensor_get_i(out, to), b = tensor_get_i(updates, at);
			tensor_set_i(out, to, changed_whole(a, b, how));
		}
	}
}

bool interpret_hook_kernel_scatter(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *at = interp_operand(in, op, 1),
		   *updates = interp_operand(in, op, 2);
	Tensor *out = interp_result(in, op, 0);
	const ScatterKind how = (ScatterKind)op_enum(op, "how");
	if (!x || !at || !updates || !out)
		return false;
	int64_t width = x->dims[1], count = at->dims[0];
	size_t row = (size_t)width * dtype_size(x->dtype);
	if (tensor_numel(out))
		memcpy(out->data, x->data, tensor_bytes(x));
	for (int64_t k = 0; k < count; k++)
		if (tensor_get_i(at, k) < 0 || tensor_get_i(at, k) >= x->dims[0])
			return op_error(op, "there is no row %lld", (long long)tensor_get_i(at, k));
	for (int64_t k = 0; k < count && row; k++)
		if (how == SCATTER_SUM)
			memset((char *)out->data + (size_t)tensor_get_i(at, k) * row, 0, row);
	for (int64_t k = 0; k < count && row; k++) {
		int64_t to = tensor_get_i(at, k);
		if (how != SCATTER_REPLACE)
			change_row(out, to, updates, k, width, how);
		else
			memcpy((char *)out->data + (size_t)to * row,
			       (const char *)updates->data + (size_t)k * row, row);
	}
	return true;
}

// Channel `c` of image `n` in a blocked tensor, at the first pixel; pixels lie `b` elements apart.
static char *channel_at(const Tensor *t, int64_t n, int64_t pixels, int64_t c)
{
	const int64_t b = t->dims[t->rank - 1];
	return (char *)t->data +
	       (size_t)((n * t->dims[1] + c / b) * pixels * b + c % b) * dtype_size(t->dtype);
}

bool interpret_hook_kernel_join_blocks(Interp *in, Op *op)
{
	const Attr *channels = op_attr(op, "channels"), *from = op_attr(op, "from");
	Tensor *out = interp_result(in, op, 0);
	if (!out)
		return false;
	const size_t size = dtype_size(out->dtype);
	const size_t apart = (size_t)out->dims[out->rank - 1] * size; // pixels
	int64_t pixels = 1, to = 0;
	for (int d = 2; d < out->rank - 1; d++)
		pixels *= out->dims[d];
	memset(out->data, 0, (size_t)tensor_numel(out) * size);
	for (int i = 0; i < op->noperand; to += channels->ints[i++]) {
		const Tensor *x = interp_operand(in, op, i);
		if (!x)
			return false;
		const int64_t first = from ? from->ints[i] : 0;
		const size_t x_apart = (size_t)x->dims[x->rank - 1] * size;
		for (int64_t n = 0; n < out->dims[0]; n++)
			for (int64_t c = 0; c < channels->ints[i]; c++)
				for (int64_t p = 0; p < pixels; p++)
					memcpy(channel_at(out, n, pixels, to + c) + (size_t)p * apart,
					       channel_at(x, n, pixels, first + c) + (size_t)p * x_apart, size);
	}
	return true;
}
