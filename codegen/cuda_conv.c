// Emits kernel.conv of plain images for CUDA. Called by cuda.c.
#include "cuda_conv.h"
#include "kernel_tile.h"

#include <inttypes.h>

bool conv_op_read(const Op *op, ConvOp *v)
{
	const bool depthwise = op->code == OP_KERNEL_DEPTHWISE;
	*v = (ConvOp){.x = op_operand(op, 0)->type, .w = op_operand(op, 1)->type, .out = op->results[0].type};
	bool fits = op_ints(op, "strides", v->stride, 2) == 2 && op_ints(op, "paddings", v->pad, 4) == 4 &&
	            op_ints(op, "dilations", v->dilation, 2) == 2 && v->x->rank == 4 && v->out->rank == 4 &&
	            v->w->rank == (depthwise ? 4 : 5) && dim_is_const(v->x->dims[1]) && dim_is_const(v->out->dims[1]);
	for (int i = 0; fits && i < v->w->rank; i++)
		fits = dim_is_const(v->w->dims[i]);
	if (!fits)
		return diag_error(op->ctx->diag, op->loc, "%s: operands are not in the layout of this target", op->info->name), false;
	v->kh = v->w->dims[depthwise ? 1 : 2]->value;
	v->kw = v->w->dims[depthwise ? 2 : 3]->value;
	v->groups = op_int(op, "groups", 1);
	v->channels = depthwise ? 1 : op_int(op, "in_channels", 1);
	return true;
}

// ---- sizes ---------------------------------------------------------------------------------------------

static bool sizes_are_on_device(const ConvOp *v)
{
	for (int i = 0; i < 4; i++)
		if (dim_is_found(v->x->dims[i]) || dim_is_found(v->out->dims[i]))
			return true;
	return false;
}

static const char *size_text(KernelFunc *k, const Dim *d, bool on_device)
{
	if (dim_is_const(d))
		return dim_in_run(k->cg, d);
	return arena_printf(k->arena, "(int)%s", on_device ? kernel_dim(k, d) : dim_in_run(k->cg, d));
}

const char *conv_shape(KernelFunc *k, const ConvOp *v)
{
	const Dim *const *x = v->x->dims, *const *out = v->out->dims, *dims[] = {x[0], x[1], x[2], x[3], out[1], out[2], out[3]};
	const bool on_device = sizes_are_on_device(v);
	Text t;
	text_init(&t, k->arena);
	for (size_t i = 0; i < COUNT_OF(dims); i++)
		text_printf(&t, "%s, ", size_text(k, dims[i], on_device));
	text_printf(&t, "%" PRId64 ", %" PRId64, v->pad[0], v->pad[1]);
	if (on_device)
		return arena_printf(k->arena, "const pd_conv_shape s = {%s};", t.text);
	kernel_given(k, "pd_conv_shape", "s", arena_printf(k->arena, "pd_conv_shape{%s}", t.text));
	return "";
}

const char *conv_epilogue(KernelFunc *k, const char **value)
{
	k->place = "to";
	return region_text(k, &k->op->regions[0], (const char *[]){"acc", "n", "c", "row", "column"}, value);
}
