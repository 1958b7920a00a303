// Convolutions to kernel.conv and kernel.depthwise on blocked tensors, with weights packed as these
// read them. Called by layout.c. What does not fit (other element types, odd groups, sizes that
// only a run tells) stays for to-loops.
#include "ir/infer/geometry.h"
#include "lower/kernels/layout.h"

#include <string.h>

enum { MAX_PLAIN_CHANNELS = 8 }; // an unblocked input with more channels is blocked first

// ---- attributes ---------------------------------------------------------------------------------

static bool read_window(Conv *cv)
{
	Window w;
	if (!window_of_conv(cv->op, &w) || w.n != 2)
		return false;
	for (int i = 0; i < 2; i++) {
		cv->strides[i] = w.stride[i];
		cv->dilations[i] = w.dilation[i];
		if (!dim_is_const(w.before[i]) || !dim_is_const(w.after[i]))
			return false;
		cv->paddings[i] = w.before[i]->value;
		cv->paddings[2 + i] = w.after[i]->value;
	}
	return true;
}

static bool conv_read(Op *op, Conv *cv)
{
	if (op->info->filter != FILTER_OUT)
		return false;
	cv->op = op;
	cv->x = op_operand(op, 0);
	cv->filter = op_operand(op, 1);
	const Type *t = cv->x->type, *f = cv->filter->type;
	if (strcmp(op_str(op, "data_format", "NCHW"), "NCHW") &&
	    strcmp(op_str(op, "data_format", ""), "AnyLayout"))
		return false;
	if (!type_blockable(t) || t->dtype != DT_F32 || f->dtype != DT_F32 || f->rank != 4)
		return false;
	for (int i = 0; i < 4; i++)
		if (!dim_is_const(f->dims[i]) || f->dims[i]->value < 1)
			return false;
	cv->oc = f->dims[0]->value;
	cv->ic = f->dims[1]->value;
	cv->kh = f->dims[2]->value;
	cv->kw = f->dims[3]->value;
	cv->channels = type_channels(t);
	return type_blockable(op->results[0].type) && read_window(cv);
}

// ---- kernels ------------------------------------------------------------------------------------

static void set_geometry(Op *kernel, const Conv *cv)
{
	Context *c = kernel->ctx;
	op_set_attr(kernel, "strides", attr_ints(c, 2, cv->strides));
	op_set_attr(kernel, "paddings", attr_ints(c, 4, cv->paddings));
	op_set_attr(kernel, "dilations", attr_ints(c, 2, cv->dilations));
}

static Value *pack_filter(Op *op, Value *filter, int rank, const int64_t *sizes)
{
	Context *c = op->ctx;
	const Dim *dims[5];
	for (int i = 0; i < rank; i++)
		dims[i] = dim_const(c, sizes[i]);
	const Type *type = type_tensor(c, filter->type->dtype, rank, dims, 0);
	Op *pack = layout_kernel(op, OP_KERNEL_PACK_CONV, type, 1, &filter);
	pack->results[0].name = filter->name;
	return &pack->results[0];
}

// How many vectors of output channels a register tile takes: full tiles as far as possible, all
// alike.
static int64_t tile_vectors(const Layout *l, int64_t oc)
{
	int64_t b = l->target->lanes, blocks = (oc + b - 1) / b, max = l->target->conv_nv;
	int64_t groups = (blocks + max - 1) / max;
	return (blocks + groups - 1) / groups;
}

Value *conv_dense(Layout *l, const Conv *cv, const Type *out)
{
	Context *c = l->ctx;
	int64_t q = tile_vectors(l, cv->oc) * l->target->lanes;
	int64_t sizes[5] = {(cv->oc + q - 1) / q, cv->ic, cv->kh, cv->kw, q};
	Value *w = pack_filter(cv->op, cv->filter, 5, sizes), *x = blocked_find(l, cv->x);
	bool plain = !x && cv->channels <= MAX_PLAIN_CHANNELS;
	if (!x)
		x = plain ? cv->x : blocked_get(l, cv->x);
	Op *kernel = layout_kernel(cv->op, OP_KERNEL_CONV, type_blocked(l, out), 2, (Value *[]){x, w});
	set_geometry(kernel, cv);
	op_set_attr(kernel, "groups", attr_int(c, 1));
	op_set_attr(kernel, "in_channels", attr_int(c, cv->channels));
	op_set_attr(kernel, "plain_input", attr_bool(c, plain));
	epilogue_identity(kernel, &kernel->regions[0]);
	return &kernel->results[0];
}

static Value *conv_depthwise(Layout *l, const Conv *cv)
{
	int64_t b = l->target->lanes, sizes[4] = {(cv->oc + b - 1) / b, cv->kh, cv->kw, b};
	Value *w = pack_filter(cv->op, cv->filter, 4, sizes), *x = blocked_get(l, cv->x);
	Op *kernel = layout_kernel(cv->op, OP_KERNEL_DEPTHWISE,
	                           type_blocked(l, cv->op->results[0].type), 2, (Value *[]){x, w});
	set_geometry(kernel, cv);
	epilogue_identity(kernel, &kernel->regions[0]);
	return &kernel->results[0];
}

bool layout_conv(Layout *l, Op *op)
{
	Conv cv = {0};
	if (!conv_read(op, &cv))
		return false;
	int64_t groups = op_int(op, "groups", 1);
	if (groups == 1 && cv.ic == cv.channels)
		blocked_set(l, op, conv_dense(l, &cv, op->results[0].type));
	else if (groups == cv.channels && cv.oc == groups && cv.ic == 1)
		blocked_set(l, op, conv_depthwise(l, &cv));
	else
		return false;
	return true;
}
