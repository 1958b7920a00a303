// --cuda-libs: which products and convolutions are calls of cuBLASLt and cuDNN, and the memory that
// each call works in. Called by layout_gemm.c, layout_image.c and scratch.c.
#include "lower/kernels/library.h"
#include "lower/kernels/layout.h"
#include "lower/kernels/scratch.h"
#include "lower/target/schedule.h"

enum {
	LT_PARTS = 16,         // of the depth, whose sums cuBLASLt may keep side by side
	LT_MOST = 32 << 20,    // what cuBLAS itself takes on GPUs that have most use for it
	DNN_TABLES = 1 << 20,  // of offsets, for cuDNN
	DNN_CHANNELS = 8,      // of which cuDNN's copies of images have a multiple
	ALIGN_SLACK = 256 - 64 // so that a multiple of 256 bytes is in front of the rest
};

// ---- what suits ---------------------------------------------------------------------------------

// Sizes must be known to the host.
static bool type_suits(const Type *t)
{
	bool ok = dtype_is_f32_or_half(t->dtype);
	for (int i = 0; i < t->rank; i++)
		ok &= !dim_is_found(t->dims[i]);
	return ok;
}

const Dim *matrix_count(Context *c, const Type *t)
{
	return dims_product(c, t->rank - 2, t->dims);
}

const Dim *matrix_stride(Context *c, const Type *t, const Type *out)
{
	if (dim_is(matrix_count(c, t), 1))
		return dim_const(c, 0);
	bool same = t->rank == out->rank;
	for (int i = 0; same && i < t->rank - 2; i++)
		same = t->dims[i] == out->dims[i];
	return same ? dim_mul(c, t->dims[t->rank - 2], t->dims[t->rank - 1]) : NULL;
}

// Nothing is summed up for a depth of 0, which the library does not do.
bool library_takes_product(Context *c, const Type *a, const Type *b, const Type *out,
                           const Dim *depth)
{
	return dim_is_const(depth) && depth->value > 0 && type_suits(a) && type_suits(b) &&
	       type_suits(out) && matrix_stride(c, a, out) && matrix_stride(c, b, out);
}

// The library knows only borders that are alike on both sides, and that give the size which there
// is.
static bool border_suits(Context *c, const Conv *cv, int i, const Dim *from, const Dim *to)
{
	const int64_t before = cv->paddings[i], after = cv->paddings[2 + i],
				  reach = (i ? cv->kw : cv->kh) - 1;
	const Dim *free = dim_add(c, from, dim_const(c, 2 * before - cv->dilations[i] * reach - 1));
	return before >= 0 &&
	       (before == after ||
	        dim_add(c, dim_div(c, free, dim_const(c, cv->strides[i])), dim_const(c, 1)) == to);
}

bool library_takes_conv(Context *c, const Conv *cv, const Type *x, const Type *out)
{
	return type_suits(x) && type_suits(out) && border_suits(c, cv, 0, x->dims[2], out->dims[2]) &&
	       border_suits(c, cv, 1, x->dims[3], out->dims[3]);
}

// ---- scratch memory -----------------------------------------------------------------------------

// Images in another layout: channels last, as many as the units of the GPU take at once.
static const Dim *copy_bytes(Context *c, const Type *t)
{
	const Dim *const each = dim_const(c, DNN_CHANNELS);
	const Dim *channels = dim_mul(
		c, dim_div(c, dim_add(c, t->dims[1], dim_const(c, DNN_CHANNELS - 1)), each), each);
	const Dim *n = dim_mul(c, dim_mul(c, t->dims[0], channels), dim_mul(c, t->dims[2], t->dims[3]));
	return dim_mul(c, n, dim_const(c, (int64_t)dtype_size(t->dtype)));
}

// Most that a call may use: it takes of the ways to compute its result the best one that gets by
// with this.
static const Dim *scratch_bytes(Context *c, const Op *op)
{
	const Type *out = op->results[0].type;
	const Dim *n;
	if (op->code == OP_KERNEL_MATMUL) {
		const Dim *parts = dim_mul(c, type_numel(c, out),
		                           dim_const(c, LT_PARTS * (int64_t)sizeof(float)));
		n = dim_min(c, parts, dim_const(c, LT_MOST));
	} else {
		const Dim *images = dim_add(c, copy_bytes(c, op_operand(op, 0)->type), copy_bytes(c, out));
		n = dim_add(c, dim_add(c, images, copy_bytes(c, op_operand(op, 1)->type)),
		            dim_const(c, DNN_TABLES));
	}
	return dim_add(c, n, dim_const(c, ALIGN_SLACK));
}

const Type *library_scratch(Context *c, const Op *op)
{
	return type_tensor(c, DT_U8, 1, (const Dim *[]){scratch_bytes(c, op)}, 0);
}
