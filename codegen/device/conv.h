// What the emitters of convolutions for CUDA share (device/conv.c, device/depthwise.c,
// device/narrow.c). Images are plain, or in blocks of eight channels of each pixel.
#ifndef PDCC_CODEGEN_CUDA_CONV_H
#define PDCC_CODEGEN_CUDA_CONV_H

#include "codegen/device/device.h"

enum { CONV_LANES = 8 }; // channels of a block

// kernel.conv or kernel.depthwise.
typedef struct ConvOp {
	const Type *x, *w;
	const Dim *const
		*out; // [N x OC x OH x OW], or [N x OC / 8 x OH x OW x 8]; `split` of them side by side
	int split;
	bool blocked; // images
	int64_t stride[2], pad[4], dilation[2];
	int64_t kh, kw;
	int64_t groups, channels; // channels: of a group
} ConvOp;

// False after a diagnostic: the operands are not in the layout of CUDA.
bool conv_op_read(const Op *op, ConvOp *v);
// The sizes as `s`, of type pd_conv_shape: a parameter, or, where a run finds them, the statement
// that makes it a local variable (else ""). NULL after a diagnostic.
const char *conv_shape(KernelFunc *k, const ConvOp *v);

// ---- device/depthwise.c -------------------------------------------------------------------------

// The epilogue on plain images as statements, for an element `acc` at n, c, row, column, whose
// place in the result is `to`.
const char *conv_epilogue(KernelFunc *k, const char **value);
// A template of sums over windows: with the filter's sizes, its steps, `shape` (conv_shape) and the
// images' type, and `n` keys of its own.
bool conv_template(KernelFunc *k, const ConvOp *v, const char *name, const char *shape, int n,
                   const TemplateKey *own);

// ---- device/narrow.c ----------------------------------------------------------------------------

// A convolution of plain images without a row of the schedule table.
bool cuda_narrow_emit(KernelFunc *k, const ConvOp *v);

#endif
