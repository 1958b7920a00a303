// Interpreter hooks of the kernels that choose elements: kernel.sort, kernel.nms, kernel.compact.
// By other means than the templates (a merge sort, sums in double rounded as C rounds them), so
// that the two check each other.
#include "ir/interp/hooks.h"

#include <math.h>

// ---- sorting ------------------------------------------------------------------------------------

typedef struct Sorting {
	const Tensor *x;
	int64_t first; // of the row
	bool descending;
} Sorting;

// Whether element i of the row comes strictly before element j, ties aside.
static bool sorting_less(const Sorting *s, int64_t i, int64_t j)
{
	if (!dtype_is_float(s->x->dtype)) {
		int64_t a = tensor_get_i(s->x, s->first + i), b = tensor_get_i(s->x, s->first + j);
		return s->descending ? a > b : a < b;
	}
	double a = tensor_get_f(s->x, s->first + i), b = tensor_get_f(s->x, s->first + j);
	if (s->descending)
		return a > b || (isnan(a) && !isnan(b));
	return a < b || (isnan(b) && !isnan(a));
}

// Merges runs of length 1, 2, 4 ... of `at`, with `other` as working space; gives the one that
// holds the result.
static int64_t *merge_sort(const Sorting *s, int64_t n, int64_t *at, int64_t *other)
{
	for (int64_t run = 1; run < n; run *= 2) {
		for (int64_t low = 0; low < n; low += 2 * run) {
			int64_t middle = low + run < n ? low + run : n,
					high = low + 2 * run < n ? low + 2 * run : n;
			int64_t i = low, j = middle;
			for (int64_t k = low; k < high; k++) {
				bool right = i == middle || (j < high && sorting_less(s, at[j], at[i]));
				other[k] = right ? at[j++] : at[i++];
			}
		}
		int64_t *swap = at;
		at = other;
		other = swap;
	}
	return at;
}

bool interpret_hook_kernel_sort(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *order = interp_result(in, op, 0),
		   *count = interp_result(in, op, 1);
	if (!x || !order || !count)
		return false;
	int64_t length = x->dims[x->rank - 1], limit = order->dims[order->rank - 1],
			rows = tensor_numel(count);
	if (tensor_numel(x) != rows * length || tensor_numel(order) != rows * limit)
		return op_error(op, "the sizes do not go together");
	const Attr *above = op_attr(op, "above");
	Sorting s = {.x = x, .descending = op_bool(op, "descending", false)};
	int64_t *at = NEW_ARRAY(interp_arena(in), (size_t)length + 1, int64_t);
	int64_t *other = NEW_ARRAY(interp_arena(in), (size_t)length + 1, int64_t);
	for (int64_t r = 0; r < rows; r++) {
		int64_t n = 0;
		s.first = r * length;
		for (int64_t i = 0; i < length; i++)
			if (!above || tensor_get_f(x, s.first + i) > above->f)
				at[n++] = i;
		const int64_t *sorted = merge_sort(&s, n, at, other);
		n = n < limit ? n : limit;
		for (int64_t i = 0; i < limit; i++)
			tensor_set_i(order, r * limit + i, i < n ? sorted[i] : 0);
		tensor_set_i(count, r, n);
	}
	return true;
}

// ---- boxes that overlap -------------------------------------------------------------------------

typedef struct Boxes {
	const Tensor *t;
	int64_t first; // element at which the set of a row begins
	bool pixels;
} Boxes;

static double boxes_round(const Boxes *b, double v)
{
	return b->t->dtype == DT_F64 ? v : (double)(float)v;
}

static double box_area(const Boxes *b, const double *p)
{
	double more = b->pixels ? 1 : 0;
	if (p[2] < p[0] || p[3] < p[1])
		return 0;
	double w = boxes_round(b, boxes_round(b, p[2] - p[0]) + more),
		   h = boxes_round(b, boxes_round(b, p[3] - p[1]) + more);
	return boxes_round(b, w * h);
}

// Intersection over union.
static double boxes_overlap(const Boxes *b, int64_t i, int64_t j)
{
	double p[4], q[4], more = b->pixels ? 1 : 0, side[2];
	for (int k = 0; k < 4; k++) {
		p[k] = tensor_get_f(b->t, b->first + 4 * i + k);
		q[k] = tensor_get_f(b->t, b->first + 4 * j + k);
	}
	if (q[0] > p[2] || q[2] < p[0] || q[1] > p[3] || q[3] < p[1])
		return 0;
	for (int k = 0; k < 2; k++) {
		double low = p[k] < q[k] ? q[k] : p[k], high = q[k + 2] < p[k + 2] ? q[k + 2] : p[k + 2];
		side[k] = boxes_round(b, boxes_round(b, high - low) + more);
	}
	double both = boxes_round(b, side[0] * side[1]);
	double either = boxes_round(b, boxes_round(b, box_area(b, p) + box_area(b, q)) - both);
	return boxes_round(b, both / either);
}

// Which set of boxes row `r` of `order` uses: axes of size 1 serve all.
static int64_t boxes_of_row(const Tensor *boxes, const Tensor *order, int64_t r)
{
	int64_t set = 0, scale = 1;
	for (int d = order->rank - 2; d >= 0; d--) {
		int64_t at = r % order->dims[d], size = boxes->dims[d];
		r /= order->dims[d];
		set += (size == 1 ? 0 : at) * scale;
		scale *= size;
	}
	return set;
}

static bool nms_row(Interp *in, const Op *op, Boxes *b, int64_t have, const int64_t *from,
                    int64_t *kept, int64_t *number)
{
	int64_t boxes = b->t->dims[b->t->rank - 2];
	double threshold = op_float(op, "threshold", 0), eta = boxes_round(b, op_float(op, "eta", 1));
	threshold = boxes_round(b, threshold);
	*number = 0;
	for (int64_t i = 0; i < have; i++) {
		int64_t k = 0;
		if (from[i] < 0 || from[i] >= boxes)
			return op_error(op, "there is no box %lld", (long long)from[i]);
		while (k < *number && boxes_overlap(b, from[i], kept[k]) <= threshold)
			k++;
		if (k < *number)
			continue;
		kept[(*number)++] = from[i];
		if (eta < 1 && threshold > 0.5)
			threshold = boxes_round(b, threshold * eta);
	}
	return true;
}

bool interpret_hook_kernel_nms(Interp *in, Op *op)
{
	Tensor *boxes = interp_operand(in, op, 0), *order = interp_operand(in, op, 1),
		   *count = interp_operand(in, op, 2);
	Tensor *kept = interp_result(in, op, 0), *number = interp_result(in, op, 1);
	if (!boxes || !order || !count || !kept || !number)
		return false;
	int64_t limit = order->dims[order->rank - 1], rows = tensor_numel(count), found = 0;
	if (tensor_numel(order) != rows * limit || tensor_numel(kept) != rows * limit)
		return op_error(op, "the sizes do not go together");
	int64_t *from = NEW_ARRAY(interp_arena(in), (size_t)limit + 1, int64_t);
	int64_t *to = NEW_ARRAY(interp_arena(in), (size_t)limit + 1, int64_t);
	Boxes b = {.t = boxes, .pixels = op_bool(op, "pixels", false)};
	for (int64_t r = 0; r < rows; r++) {
		int64_t have = tensor_get_i(count, r);
		b.first = boxes_of_row(boxes, order, r) * boxes->dims[boxes->rank - 2] * 4;
		have = have < limit ? have : limit;
		for (int64_t i = 0; i < have; i++)
			from[i] = tensor_get_i(order, r * limit + i);
		if (!nms_row(in, op, &b, have, from, to, &found))
			return false;
		for (int64_t i = 0; i < limit; i++)
			tensor_set_i(kept, r * limit + i, i < found ? to[i] : 0);
		tensor_set_i(number, r, found);
	}
	return true;
}

// ---- what is true -------------------------------------------------------------------------------

bool interpret_hook_kernel_compact(Interp *in, Op *op)
{
	Tensor *mask = interp_operand(in, op, 0), *at = interp_result(in, op, 0),
		   *count = interp_result(in, op, 1);
	if (!mask || !at || !count)
		return false;
	int64_t numel = tensor_numel(mask), n = 0;
	if (tensor_numel(at) != numel)
		return op_error(op, "the sizes do not go together");
	for (int64_t i = 0; i < numel; i++)
		if (tensor_get_i(mask, i))
			tensor_set_i(at, n++, i);
	tensor_set_i(count, 0, n);
	return true;
}
