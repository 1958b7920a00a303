// Interpreter hooks of the kernels that change layouts. They only move bytes; they run at compile
// time over whole models, so they are the one part of the interpreter that has to be fast.
#include "ir/interp/hooks.h"

#include <string.h>

// All layout changes are one: `count` matrices of n rows and k columns as panels of nr rows each,
// transposed: [n x k] as [ceil(n / nr) x k x nr].
typedef struct Panels {
	int64_t count, n, k, nr;
} Panels;

static int64_t panel_count(const Panels *p)
{
	return (p->n + p->nr - 1) / p->nr;
}

static void copy_element(char *to, const char *from, size_t size)
{
	switch (size) {
	case 4: memcpy(to, from, 4); break;
	case 8: memcpy(to, from, 8); break;
	default: memcpy(to, from, size); break;
	}
}

// Moves between the rows of a matrix and its panels, in tiles of columns that stay in the cache.
static void move_panel(const Panels *p, int64_t panel, char *rows, char *packed, size_t size,
                       bool pack)
{
	enum { TILE = 64 };
	int64_t first = panel * p->nr, n = p->n - first < p->nr ? p->n - first : p->nr;
	for (int64_t k0 = 0; k0 < p->k; k0 += TILE) {
		int64_t end = p->k - k0 < TILE ? p->k : k0 + TILE;
		for (int64_t i = 0; i < n; i++) {
			for (int64_t k = k0; k < end; k++) {
				char *row = rows + (size_t)((first + i) * p->k + k) * size;
				char *lane = packed + (size_t)((panel * p->k + k) * p->nr + i) * size;
				copy_element(pack ? lane : row, pack ? row : lane, size);
			}
		}
	}
}

static bool move_panels(Interp *in, const Op *op, const Panels *p, const Tensor *rows,
                        const Tensor *packed, bool pack)
{
	if (p->nr < 1 || rows->dtype != packed->dtype || tensor_numel(rows) != p->count * p->n * p->k ||
	    tensor_numel(packed) != p->count * panel_count(p) * p->k * p->nr)
		return op_error(op, "the shapes do not fit together");
	size_t size = dtype_size(rows->dtype);
	int64_t panels = panel_count(p);
	for (int64_t i = 0; i < p->count; i++)
		for (int64_t panel = 0; panel < panels; panel++)
			move_panel(p, panel, (char *)rows->data + (size_t)(i * p->n * p->k) * size,
			           (char *)packed->data + (size_t)(i * panels * p->k * p->nr) * size, size,
			           pack);
	return true;
}

// Product of dims [from, to).
static int64_t extent(const Tensor *t, int from, int to)
{
	int64_t n = 1;
	for (int d = from; d < to; d++)
		n *= t->dims[d];
	return n;
}

bool interpret_hook_kernel_pack_conv(Interp *in, Op *op)
{
	Tensor *w = interp_operand(in, op, 0), *out = w ? interp_result(in, op, 0) : NULL;
	if (!out)
		return false;
	if (w->rank < 2 || out->rank < 2)
		return op_error(op, "the filter has rank %d", w->rank);
	Panels p = {1, w->dims[0], extent(w, 1, w->rank), out->dims[out->rank - 1]};
	return move_panels(in, op, &p, w, out, true);
}

// Columns of a matrix [k x n] side by side in panels: runs of nr elements.
static bool pack_columns(Interp *in, const Op *op, const Panels *p, const Tensor *b,
                         const Tensor *out)
{
	if (p->nr < 1 || b->dtype != out->dtype ||
	    tensor_numel(out) != p->count * panel_count(p) * p->k * p->nr)
		return op_error(op, "the shapes do not fit together");
	size_t size = dtype_size(b->dtype);
	const char *from = b->data;
	char *to = out->data;
	for (int64_t i = 0; i < p->count; i++) {
		for (int64_t panel = 0; panel < panel_count(p); panel++) {
			int64_t first = panel * p->nr, n = p->n - first < p->nr ? p->n - first : p->nr;
			for (int64_t k = 0; k < p->k; k++, to += (size_t)p->nr * size)
				memcpy(to, from + (size_t)((i * p->k + k) * p->n + first) * size, (size_t)n * size);
		}
	}
	return true;
}

bool interpret_hook_kernel_pack_gemm(Interp *in, Op *op)
{
	Tensor *b = interp_operand(in, op, 0), *out = b ? interp_result(in, op, 0) : NULL;
	bool transposed = op_bool(op, "transposed", false);
	if (!out)
		return false;
	if (b->rank < 2 || out->rank != b->rank + 1)
		return op_error(op, "operand of rank %d, result of rank %d", b->rank, out->rank);
	int64_t rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
	Panels p = {extent(b, 0, b->rank - 2), transposed ? rows : columns, transposed ? columns : rows,
	            out->dims[out->rank - 1]};
	return transposed ? move_panels(in, op, &p, b, out, true) : pack_columns(in, op, &p, b, out);
}

// `plain` is [N x C x rest..], `blocked` [N x ceil(C / b) x rest.. x b].
static bool move_blocks(Interp *in, const Op *op, const Tensor *plain, const Tensor *blocked,
                        bool pack)
{
	if (plain->rank < 2 || blocked->rank != plain->rank + 1)
		return op_error(op, "ranks %d and %d", plain->rank, blocked->rank);
	Panels p = {plain->dims[0], plain->dims[1], extent(plain, 2, plain->rank),
	            blocked->dims[blocked->rank - 1]};
	return move_panels(in, op, &p, plain, blocked, pack);
}

bool interpret_hook_kernel_block(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *out = x ? interp_result(in, op, 0) : NULL;
	return out && move_blocks(in, op, x, out, true);
}

bool interpret_hook_kernel_unblock(Interp *in, Op *op)
{
	Tensor *x = interp_operand(in, op, 0), *out = x ? interp_result(in, op, 0) : NULL;
	return out && move_blocks(in, op, out, x, false);
}
