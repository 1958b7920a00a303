// How threads of CUDA share kernels that are neither nests nor rows: tiles of products, windows of
// convolutions, elements that are sorted or scanned at once. Sets `schedule` and `blocks` of
// products, `rows` and `outs` of convolutions, `room` of sorts, `threads` and `lanes` of scans,
// which codegen/device prints. Called by forms.c. Pass check-kernels looks whether a kernel has
// what its templates can do, whoever wrote the attributes.
#include "lower/analysis/rows.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/forms.h"
#include "lower/target/schedule.h"

// Whether the entry of a kernel has that to choose.
static bool has(const Op *op, const char *attr)
{
	return op->info->kind == KIND_KERNEL && op_info_attr(op->info, attr) != NULL;
}

static void set_int(Op *op, const char *name, int64_t n, int64_t otherwise)
{
	op_set_attr(op, name, n == otherwise ? NULL : attr_int(op->ctx, n));
}

// ---- products in tiles --------------------------------------------------------------------------

enum { SMALL_EPILOGUE = 6, MANY_SUMS = 64 * 64 }; // operations; of a warp

// Whether both operands are aligned matrices, or blocked images: what loads them needs few
// registers.
static bool product_is_plain(const Op *op)
{
	if (has(op, "rows")) // of windows
		return op_operand(op, 0)->type->rank == 5;
	for (int i = 0; i < 2; i++) {
		const Type *t = op_operand(op, i)->type;
		if (!row_is_aligned(op->ctx, t->dtype, t->dims[t->rank - 1]))
			return false;
	}
	return true;
}

// Whether there is little more to do than to load matrices and to add a bias, which needs few
// registers.
static bool product_is_light(const Op *op, const CudaTile *t, bool plain)
{
	int operations = 0;
	for (const Op *in = region_entry(&op->regions[0])->first; in; in = in->next)
		operations++;
	return t->unit == CUDA_FMA || (plain && operations <= SMALL_EPILOGUE);
}

// The tile that the table wants, or, where its sums alone take half of all registers and operands
// need many, the one behind it: slices of both are as deep. Blocks that share an SM: all that the
// table wants, or fewer, with more registers each.
static void product_choose(Op *op, const CudaTile *t)
{
	const bool plain = product_is_plain(op), light = product_is_light(op, t, plain);
	const CudaTile *chosen = plain || t->part_rows * t->part_columns < MANY_SUMS
	                             ? t
	                             : cuda_tile_next(t);
	const int blocks = cuda_tile_blocks(chosen);
	op_set_attr(op, "schedule", attr_str(op->ctx, chosen->name));
	set_int(op, "blocks", light ? blocks : (blocks + 1) / 2, 0);
}

// The tile of a product that is no call of a library; NULL: it is none.
static const CudaTile *product_tile(const Op *op)
{
	const bool product = has(op, "blocks") && !cuda_op_is_library(op);
	return product ? cuda_tile_find(op_str(op, "schedule", "")) : NULL;
}

// ---- windows ------------------------------------------------------------------------------------

enum {
	MAX_OUTS = 8, // channels of the result that a thread sums
	MANY =
		1 << 18, // results of an image from which a thread makes MAX_ROWS; fewer for fewer results
	MAX_ROWS = 4,
	MAX_BLOCK_ROWS = 2, // of eight channels each
	UNKNOWN_SIZE = 56   // a size that only the caller knows counts as this
};

static const Dim *const *images_made(const Op *op)
{
	return op->results[0].type->dims + (op_int(op, "split", 1) > 1);
}

// How many channels a thread sums: what divides those of a group.
static int64_t outs_each(const Op *op)
{
	const int64_t all = images_made(op)[1]->value / op_int(op, "groups", 1);
	int64_t outs = all < MAX_OUTS ? all : MAX_OUTS;
	while (outs > 1 && all % outs)
		outs--;
	return outs;
}

// Rows of a column that a thread makes, where there are so many planes of results in an image: as
// many threads as keep the device busy. Windows apart share nothing.
static int rows_each(const Op *op, int64_t planes)
{
	const Dim *const *out = images_made(op);
	int64_t results = planes, dilation[2] = {1, 1};
	int rows = op_operand(op, 0)->type->rank == 5 ? MAX_BLOCK_ROWS : MAX_ROWS;
	op_ints(op, "dilations", dilation, 2);
	for (int i = 2; i < 4; i++)
		results *= dim_is_const(out[i]) ? out[i]->value : UNKNOWN_SIZE;
	for (int64_t many = MANY; rows > 1 && results < many; many /= 2)
		rows /= 2;
	while (rows > 1 && dim_is_const(out[2]) && out[2]->value < rows)
		rows /= 2;
	return dilation[0] > 1 ? 1 : rows;
}

static void windows_choose(Op *op)
{
	const Dim *channels = images_made(op)[1];
	const bool narrow = has(op, "outs");
	int64_t planes = dim_is_const(channels) ? channels->value : UNKNOWN_SIZE;
	if (narrow && dim_is_const(channels)) {
		const int64_t outs = outs_each(op);
		set_int(op, "outs", outs, 1);
		planes /= outs;
	}
	set_int(op, "rows", rows_each(op, planes), 1);
}

// A sum over windows by threads for themselves.
static bool has_windows(const Op *op)
{
	const int skip = op_int(op, "split", 1) > 1;
	return has(op, "rows") && !op_attr(op, "schedule") && op->results[0].type->rank >= 4 + skip;
}

// ---- sorts --------------------------------------------------------------------------------------

enum { SORT_BYTES = 1 << 15 }; // of shared memory, a value and a place for each element

static int64_t sort_bytes(const Op *op)
{
	const int64_t size = (int64_t)dtype_size(op_operand(op, 0)->type->dtype);
	return (size < 4 ? 4 : size) + 8;
}

// How many elements are sorted at once: a power of two.
static void sort_choose(Op *op)
{
	const Type *x = op_operand(op, 0)->type;
	const Dim *length = x->dims[x->rank - 1];
	int64_t room = 2;
	while (2 * room * sort_bytes(op) <= SORT_BYTES &&
	       !(dim_is_const(length) && room >= length->value))
		room *= 2;
	op_set_attr(op, "room", attr_int(op->ctx, room));
}

// ---- scans --------------------------------------------------------------------------------------

enum { SCAN_ITEMS = 4, SCAN_THREADS = 256, WARP = 32 };

// Elements that a thread may move at once, on the last axis where each row begins at a multiple of
// 16 bytes; 1: none.
static int scan_lanes(const Op *op)
{
	const Type *x = op_operand(op, 0)->type;
	const int axis = (int)op_int(op, "axis", 0), items = dtype_size(x->dtype) == 2 ? 8 : SCAN_ITEMS;
	const Dim *length = x->dims[axis];
	const bool fits = dim_is_const(length) && length->value % items == 0,
			   alone = dim_is(dims_product(op->ctx, axis, x->dims), 1) &&
	                   !op_bool(op, "reverse", false);
	return axis == x->rank - 1 && (fits || alone) ? items : 1;
}

static void scan_choose(Op *op)
{
	const Dim *length = op_operand(op, 0)->type->dims[op_int(op, "axis", 0)];
	const int lanes = scan_lanes(op), items = lanes > 1 ? lanes : SCAN_ITEMS;
	int64_t threads = SCAN_THREADS;
	if (dim_is_const(length))
		threads = (length->value / items + WARP - 1) / WARP * WARP;
	threads = threads < WARP ? WARP : threads < SCAN_THREADS ? threads : SCAN_THREADS;
	set_int(op, "lanes", lanes, 1);
	set_int(op, "threads", threads, SCAN_THREADS);
}

void kernel_choose(Op *op, bool simt)
{
	static const char *const names[] = {"blocks", "rows", "outs", "room", "lanes", "threads"};
	const bool scan = has(op, "by_blocks"), sort = has(op, "room");
	const CudaTile *tile = product_tile(op);
	if (!tile && !has_windows(op) && !scan && !sort)
		return;
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (op_attr(op, names[i]))
			op_set_attr(op, names[i], NULL);
	if (!simt)
		return;
	if (tile && tile->unit != CUDA_ROW)
		product_choose(op, tile);
	else if (has_windows(op))
		windows_choose(op);
	else if (sort)
		sort_choose(op);
	else if (scan && op_bool(op, "by_blocks", false))
		scan_choose(op);
}

// ---- check-kernels ------------------------------------------------------------------------------

// A product of few rows: see cuda_row_kernel.c.
static bool rows_suit(const Op *op, const CudaTile *t)
{
	const Type *out = op->results[0].type;
	const Dim *m = out->dims[out->rank - 2];
	return dim_is_const(m) && m->value * t->part_columns <= 32 && op_int(op, "split", 1) == 1 &&
	       !op_bool(op, "transpose_a", false) && op_bool(op, "transpose_b", false);
}

static bool tile_suits(const Op *op, const CudaTile *t)
{
	const Type *a = op_operand(op, 0)->type;
	const bool matrices = !has(op, "rows");
	const Dim *depth = matrices ? a->dims[a->rank - (op_bool(op, "transpose_a", false) ? 2 : 1)]
	                            : NULL;
	if (t->unit == CUDA_HALF ? !dtype_is_half(a->dtype) : a->dtype != DT_F32)
		return false;
	if (t->unit == CUDA_ROW)
		return matrices && rows_suit(op, t);
	return (op_int(op, "split", 1) < 2 || !depth || dim_is_const(depth)) &&
	       op_int(op, "blocks", 1) >= 1 && op_int(op, "blocks", 1) <= cuda_tile_blocks(t);
}

// A sum over windows must not have rows apart, nor channels left over.
static bool windows_suit(const Op *op)
{
	const int64_t rows = op_int(op, "rows", 1), outs = op_int(op, "outs", 1),
				  groups = op_int(op, "groups", 1);
	const Dim *channels = images_made(op)[1];
	return rows >= 1 && rows <= MAX_ROWS && outs >= 1 && outs <= MAX_OUTS &&
	       (outs == 1 || (dim_is_const(channels) && channels->value % (groups * outs) == 0));
}

static bool sort_suits(const Op *op)
{
	const int64_t room = op_int(op, "room", 0);
	return room >= 2 && room <= SORT_BYTES && !(room & (room - 1)) &&
	       room * sort_bytes(op) <= SORT_BYTES;
}

static bool scan_suits(const Op *op)
{
	const int64_t lanes = op_int(op, "lanes", 1), threads = op_int(op, "threads", SCAN_THREADS);
	return (lanes == 1 || lanes == scan_lanes(op)) && threads >= WARP && threads <= SCAN_THREADS &&
	       threads % WARP == 0;
}

static bool kernel_suits(const Op *op)
{
	const CudaTile *tile = product_tile(op);
	if (tile)
		return tile_suits(op, tile);
	return has(op, "blocks") && op_attr(op, "schedule") ? cuda_op_is_library(op)
	       : has_windows(op)                            ? windows_suit(op)
	       : has(op, "room")                            ? sort_suits(op)
	       : has(op, "by_blocks")                       ? scan_suits(op)
	                                                    : true;
}

// Needs: what cuda-forms left, or somebody by hand; a target.
// Keeps: everything.
// Breaks: nothing.
bool pass_check_kernels(PassContext *p)
{
	bool suits = true;
	if (!p->target || !p->target->simt)
		return true;
	for (Block *b = p->module->regions[0].first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (!kernel_suits(op)) {
				diag_error(p->ctx->diag, op->loc,
				           "%s: how threads share it does not suit its operands", op->info->name);
				suits = false;
			}
	return suits;
}
