// The rules of kernel.winograd and of the weights that it reads (docs/internals.md, section 4).
// Verify hooks of the operator table, called by ir_verify.
#include "ir/core/winograd.h"
#include "ir/verify/rules.h"

// The transforms along rows and columns that an operation names; false after a diagnostic.
static bool transforms_of(const Op *op, Winograd *t)
{
	int64_t tile[2], chunk[2];
	if (op_ints(op, "tile", tile, 2) != 2 || op_ints(op, "chunk", chunk, 2) != 2)
		return verify_fail(op, "a tile, and a chunk of taps, has rows and columns");
	return winograd_transforms(op, t) ||
	       verify_fail(op, "there are no tiles of %lld x %lld for %lld x %lld taps",
	                   (long long)tile[0], (long long)tile[1], (long long)chunk[0],
	                   (long long)chunk[1]);
}

// Whether `depth` is that of so many channels for each chunk of a filter with such taps. Sizes may
// be any numbers.
static bool depth_fits(const Winograd *t, int64_t rows, int64_t columns, int64_t channels,
                       const Dim *depth)
{
	const int64_t down = winograd_chunks(rows, t[0].taps),
				  across = winograd_chunks(columns, t[1].taps);
	return depth->value % down == 0 && depth->value / down % across == 0 &&
	       depth->value / down / across == channels;
}

static bool is_image(const Type *t)
{
	return t->rank == 5 && t->dtype == DT_F32 && dim_is_const(t->dims[1]) &&
	       dim_is_const(t->dims[4]);
}

static bool sizes_are_known(const Type *t)
{
	for (int i = 0; i < t->rank; i++)
		if (!dim_is_const(t->dims[i]) || t->dims[i]->value < 1)
			return false;
	return t->rank == 4 && t->dtype == DT_F32;
}

// How many groups of `of` there are in n.
static int64_t groups_of(int64_t n, int64_t of)
{
	return (n + of - 1) / of;
}

bool verify_hook_kernel_pack_winograd(Op *op)
{
	Winograd t[2];
	const Type *w = op_operand(op, 0)->type, *out = op->results[0].type;
	if (!verify_hook_kernel(op))
		return false;
	if (!sizes_are_known(w) || !sizes_are_known(out))
		return verify_fail(op, "weights have four known sizes, of f32");
	if (!transforms_of(op, t))
		return false;
	const bool fits = dim_is(out->dims[1], t[0].inputs * t[1].inputs) &&
	                  depth_fits(t, w->dims[2]->value, w->dims[3]->value, w->dims[1]->value,
	                             out->dims[2]) &&
	                  dim_is(out->dims[0], groups_of(w->dims[0]->value, out->dims[3]->value));
	return fits ||
	       verify_fail(op, "%s does not become %s with tiles of %d x %d", type_text(op->ctx, w),
	                   type_text(op->ctx, out), t[0].tile, t[1].tile);
}

// The size behind a window of `taps`, stride 1; two sizes may have different names.
static bool size_fits(const Op *op, const Dim *in, int64_t pad, int64_t taps, int64_t dilation,
                      const Dim *out)
{
	const Dim *want = dim_add(op->ctx, in, dim_const(op->ctx, pad - (taps - 1) * dilation));
	return want == out || !dim_is_const(want) || !dim_is_const(out);
}

static bool filter_fits(const Op *op, const Winograd *t, const int64_t *taps, const Type *x,
                        const Type *w, const Type *out)
{
	const int64_t channels = op_int(op, "in_channels", 0), b = x->dims[4]->value;
	if (!sizes_are_known(w) || channels < 1 || b < 1 || out->dims[4] != x->dims[4])
		return false;
	const int64_t q = w->dims[3]->value;
	return dim_is(x->dims[1], groups_of(channels, b)) && q % b == 0 &&
	       dim_is(w->dims[0], groups_of(out->dims[1]->value * b, q)) &&
	       dim_is(w->dims[1], t[0].inputs * t[1].inputs) &&
	       depth_fits(t, taps[0], taps[1], channels, w->dims[2]) &&
	       (dim_is(w->dims[2], channels) || channels % b == 0);
}

// Whether the result is the image behind such windows, by this filter.
static bool image_fits(const Op *op, const Winograd *t, const int64_t *taps, const int64_t *pad,
                       const int64_t *apart)
{
	const Type *x = op_operand(op, 0)->type, *w = op_operand(op, 1)->type,
			   *out = op->results[0].type;
	return is_image(x) && is_image(out) && filter_fits(op, t, taps, x, w, out) &&
	       x->dims[0] == out->dims[0] &&
	       size_fits(op, x->dims[2], pad[0] + pad[2], taps[0], apart[0], out->dims[2]) &&
	       size_fits(op, x->dims[3], pad[1] + pad[3], taps[1], apart[1], out->dims[3]);
}

// Whether an attribute is two numbers, 1 or more, that offsets may be multiples of.
static bool counts_of(const Op *op, const char *name, int64_t *v)
{
	return op_ints(op, name, v, 2) == 2 && v[0] > 0 && v[1] > 0 && v[0] <= INT32_MAX &&
	       v[1] <= INT32_MAX;
}

bool verify_hook_kernel_winograd(Op *op)
{
	Winograd t[2];
	int64_t pad[4], apart[2], taps[2];
	if (!verify_hook_kernel(op))
		return false;
	if (!counts_of(op, "taps", taps))
		return verify_fail(op, "a filter has rows and columns of taps");
	if (!transforms_of(op, t))
		return false;
	if (op_ints(op, "paddings", pad, 4) != 4 || op_int(op, "group", 0) < 1)
		return verify_fail(op, "paddings are four numbers, and a group has a tile or more");
	if (!counts_of(op, "dilations", apart))
		return verify_fail(op, "dilations are two numbers, 1 to 2147483647");
	if (op->nresult > 2 || (op->nresult == 2 && op->results[1].type->kind != TY_TENSOR))
		return verify_fail(op, "behind its result there is memory that it works in, nothing else");
	return image_fits(op, t, taps, pad, apart) ||
	       verify_fail(op, "%s and %s do not give %s", type_text(op->ctx, op_operand(op, 0)->type),
	                   type_text(op->ctx, op_operand(op, 1)->type),
	                   type_text(op->ctx, op->results[0].type));
}
