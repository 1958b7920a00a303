// Emits kernel.conv for CUDA, a product in tiles. On plain images the rows of the result are output
// channels and its columns pixels, of each image and group; on blocked ones, which tensor cores
// have, rows are pixels of all images and columns output channels. Called by cuda.c.
#include "codegen/device/conv.h"
#include "codegen/device/tile.h"
#include "codegen/nest/region.h"
#include "lower/target/schedule.h"

#include <inttypes.h>

// Whether filters, images and result are of types and in a layout that the templates know.
static bool conv_layout_fits(const ConvOp *v, const Type *out, int filter_rank)
{
	const Type *x = v->x, *w = v->w;
	bool fits = x->rank == 4 + v->blocked && out->rank == x->rank + (v->split > 1) &&
	            w->rank == filter_rank && dim_is_const(x->dims[1]) && dim_is_const(v->out[1]) &&
	            dtype_is_f32_or_half(x->dtype) && w->dtype == x->dtype;
	for (int i = 0; fits && i < w->rank; i++)
		fits = dim_is_const(w->dims[i]);
	return fits &&
	       (!v->blocked || (dim_is(x->dims[4], CONV_LANES) && dim_is(v->out[4], CONV_LANES) &&
	                        dim_is(w->dims[w->rank - 1], CONV_LANES)));
}

bool conv_op_read(const Op *op, ConvOp *v)
{
	const bool depthwise = op->code == OP_KERNEL_DEPTHWISE;
	const Type *out = op->results[0].type;
	*v = (ConvOp){.x = op_operand(op, 0)->type,
	              .w = op_operand(op, 1)->type,
	              .split = depthwise ? 1 : (int)op_int(op, "split", 1)};
	v->blocked = v->x->rank == 5;
	v->out = out->dims + (v->split > 1);
	if (op_ints(op, "strides", v->stride, 2) != 2 || op_ints(op, "paddings", v->pad, 4) != 4 ||
	    op_ints(op, "dilations", v->dilation, 2) != 2 ||
	    !conv_layout_fits(v, out, depthwise ? 4 : 5))
		return diag_error(op->ctx->diag, op->loc,
		                  "%s: operands are not of types or in a layout of this target",
		                  op->info->name),
		       false;
	v->kh = v->w->dims[depthwise ? 1 : 2]->value;
	v->kw = v->w->dims[depthwise ? 2 : 3]->value;
	v->groups = op_int(op, "groups", 1);
	v->channels = depthwise ? 1 : op_int(op, "in_channels", 1);
	return true;
}

// ---- sizes --------------------------------------------------------------------------------------

static bool sizes_are_on_device(const ConvOp *v)
{
	for (int i = 0; i < 4; i++)
		if (dim_is_found(v->x->dims[i]) || dim_is_found(v->out[i]))
			return true;
	return false;
}

static const char *size_text(KernelFunc *k, const Dim *d, bool on_device)
{
	if (dim_is_const(d))
		return dim_in_run(k->cg, d);
	return arena_printf(k->arena, "(int)%s",
	                    on_device ? kernel_dim(k, d) : dim_in_locals(&k->cg->sizes, d));
}

const char *conv_shape(KernelFunc *k, const ConvOp *v)
{
	const bool product = v->blocked && k->op->code == OP_KERNEL_CONV;
	const Dim *const *x = v->x->dims, *const *out = v->out,
					 *channels = product ? v->w->dims[0] : out[1];
	const Dim *dims[] = {x[0], x[1], x[2], x[3], channels, out[2], out[3]};
	const bool on_device = sizes_are_on_device(v);
	Text t;
	text_init(&t, k->arena);
	for (size_t i = 0; i < COUNT_OF(dims); i++)
		text_printf(&t, "%s, ", size_text(k, dims[i], on_device));
	text_printf(&t, "%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64,
	            v->pad[0], v->pad[1], v->stride[0], v->stride[1], v->dilation[0], v->dilation[1]);
	if (on_device)
		return arena_printf(k->arena, "const pd_conv_shape s = {%s};", t.text);
	kernel_given(k, "pd_conv_shape", "s", arena_printf(k->arena, "pd_conv_shape{%s}", t.text));
	return "";
}

// ---- plain images -------------------------------------------------------------------------------

// Filters of 1 x 1 that read every pixel: images are matrices of pixels already.
static bool reads_pixels(const ConvOp *v)
{
	return v->kh == 1 && v->kw == 1 && v->stride[0] == 1 && v->stride[1] == 1 && !v->pad[0] &&
	       !v->pad[1] && !v->pad[2] && !v->pad[3];
}

// Of every image and group in turn; a row of the filter is for all groups, and a multiple of 16
// bytes.
static const char *filter_load(KernelFunc *k, const ConvOp *v)
{
	const int64_t each = v->out[1]->value / v->groups,
				  vector = 16 / (int64_t)dtype_size(v->w->dtype);
	if (v->groups == 1 || each % vector == 0)
		kernel_moves(k, v->w->dtype, (int)vector);
	const char *row = arena_printf(k->arena, "(s.out_channels + %d) / %d * %d", (int)vector - 1,
	                               (int)vector, (int)vector);
	if (v->groups == 1)
		return arena_printf(k->arena,
		                    "const int row_of_w = %s;\nconst pd_matrix<Unit::AcrossA, true> a_load "
		                    "= {w + m0, row_of_w, "
		                    "row_of_w - m0, K};",
		                    row);
	return arena_printf(
		k->arena,
		"const pd_matrix<Unit::AcrossA, %s> a_load = {w + batch %% %d * M + m0, %s, M - m0, K};",
		each % vector ? "false" : "true", (int)v->groups, row);
}

static const char *image_load(KernelFunc *k, const ConvOp *v)
{
	const Dim *plane = dim_mul(k->ctx, v->x->dims[2], v->x->dims[3]);
	if (reads_pixels(v))
		return cuda_tile_matrix(k, &(TileMatrix){.value = op_operand(k->op, 0),
		                                         .name = "x",
		                                         .offset = "batch * K * N + ",
		                                         .row = plane});
	return arena_printf(k->arena,
	                    "const pd_taps<Unit::AcrossB, %" PRId64 ", %" PRId64
	                    "> b_load(x + batch * (K / %" PRId64
	                    ") * s.height * s.width, s, (int)n0, (int)N, (int)K);",
	                    v->kh, v->kw, v->kh * v->kw);
}

static bool plain_product(KernelFunc *k, const ConvOp *v, TileProduct *p)
{
	Context *c = k->ctx;
	const Dim *const *out = v->out, *groups = dim_const(c, v->groups);
	p->batches = dim_mul(c, out[0], groups);
	p->m = dim_div(c, out[1], groups);
	p->n = dim_mul(c, out[2], out[3]);
	p->k = dim_const(c, v->channels * v->kh * v->kw);
	const char **at = p->at + (v->split > 1);
	at[0] = "batch";
	at[1] = "row";
	at[2] = "(column / s.columns)";
	at[3] = "(column % s.columns)";
	if (v->groups > 1) {
		at[0] = arena_printf(k->arena, "(batch / %" PRId64 ")", v->groups);
		at[1] = arena_printf(k->arena, "(batch %% %" PRId64 " * M + row)", v->groups);
	}
	if (!reads_pixels(v) && !kernel_helper(k, "cuda_conv.c", 0, NULL))
		return false;
	p->a_load = filter_load(k, v);
	p->b_load = image_load(k, v);
	return true;
}

// ---- blocked images -----------------------------------------------------------------------------

// `batch` is the group, whose channels begin at a block.
static bool blocked_product(KernelFunc *k, const ConvOp *v, TileProduct *p)
{
	Context *c = k->ctx;
	const Dim *const *out = v->out, *lanes = dim_const(c, CONV_LANES);
	const int64_t taps = v->kh * v->kw;
	const bool grouped = v->groups > 1;
	p->batches = dim_const(c, v->groups);
	p->m = dim_mul(c, out[0], dim_mul(c, out[2], out[3]));
	p->n = dim_div(c, dim_mul(c, out[1], lanes), p->batches);
	p->k = dim_mul(c, v->w->dims[1], dim_const(c, CONV_LANES * taps));
	p->row_head = "const int pixels = s.rows * s.columns, image = (int)row / pixels, pixel = "
				  "(int)row - image * pixels;";
	p->place = arena_printf(
		k->arena, "((image * (size.batches * N / %d) + %s) * pixels + pixel) * %d + first %% %d",
		CONV_LANES, grouped ? "(batch * N + first) / 8" : "first / 8", CONV_LANES, CONV_LANES);
	const char **at = p->at + (v->split > 1);
	if (v->split > 1)
		p->place = arena_printf(k->arena, "part * size.batches * M * N + %s", p->place);
	at[0] = "image";
	at[1] = grouped ? "((batch * N + column) / 8)" : "(column / 8)";
	at[2] = "(pixel / s.columns)";
	at[3] = "(pixel % s.columns)";
	at[4] = "(column % 8)";
	if (!kernel_helper(k, "cuda_conv_blocked.c", 0, NULL))
		return false;
	p->a_load = arena_printf(
		k->arena,
		"const pd_pixels<Unit::AlongA, %" PRId64 ", %" PRId64
		"> a_load(x%s, s, (int)m0, (int)M, (int)K);",
		v->kh, v->kw,
		grouped ? arena_printf(k->arena, " + batch * (K / %" PRId64 ") * s.height * s.width", taps)
				: "");
	kernel_moves(k, v->w->dtype, 16 / (int)dtype_size(v->w->dtype));
	p->b_load = arena_printf(
		k->arena, "const pd_matrix<Unit::AlongB, true> b_load = {w + %s * K, K, %s - n0, K};",
		grouped ? "(batch * N + n0)" : "n0", grouped ? "N" : "s.out_channels");
	return true;
}

bool cuda_conv_emit(KernelFunc *k)
{
	ConvOp v;
	if (!conv_op_read(k->op, &v))
		return false;
	if (!op_attr(k->op, "schedule"))
		return cuda_narrow_emit(k, &v);
	const CudaTile *tile = cuda_tile_of(k);
	if (!tile || !kernel_helper(k, "cuda_tile.c", 0, NULL) ||
	    !kernel_helper(k, "cuda_conv_shape.c", 0, NULL))
		return false;
	TileProduct p = {.tile = tile, .split = v.split, .at = {"part"}};
	const char *shape = conv_shape(k, &v);
	if (!(v.blocked ? blocked_product(k, &v, &p) : plain_product(k, &v, &p)))
		return false;
	p.a_load = arena_printf(k->arena, "%s%s%s", shape, *shape ? "\n" : "", p.a_load);
	return cuda_tile_emit(k, &p);
}
