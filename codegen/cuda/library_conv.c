// --cuda-libs: convolutions of plain images as calls of cuDNN. Called by cuda/library.c.
#include "codegen/cuda/library.h"
#include "codegen/device/conv.h"
#include "lower/target/schedule.h"

#include <inttypes.h>

static const LibraryTypes image_types = {
	.f16 = "CUDNN_DATA_HALF, CUDNN_TENSOR_OP_MATH",
	.bf16 = "CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_OP_MATH",
	.tf32 = "CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH",
	.f32 = "CUDNN_DATA_FLOAT, CUDNN_FMA_MATH",
};

static const char *dims_text(Codegen *cg, const Dim *const *dims)
{
	Text t;
	text_init(&t, cg->arena);
	for (int i = 0; i < 4; i++)
		text_printf(&t, dim_is_const(dims[i]) ? "%s%s" : "%s(int)(%s)", i ? ", " : "",
		            library_size(cg, dims[i]));
	return arena_printf(cg->arena, "{%s}", t.text);
}

bool cuda_library_conv_print(Codegen *cg, const Op *op)
{
	LibraryEpilogue read, *e = library_epilogue_read(op, &read) ? &read : NULL;
	LibraryCall call;
	ConvOp v;
	if (!conv_op_read(op, &v) || !library_call_begin(cg, op, "cuda_dnn.c", e, &call))
		return false;
	cg->calls_dnn = true;
	text_line(&cg->run, 1, "pd_dnn_conv(queue, m->dnn, {%s, %s, %s,", call.title,
	          dims_text(cg, v.x->dims), dims_text(cg, v.out));
	text_line(&cg->run, 1,
	          "            {%" PRId64 ", %" PRId64 "}, {%" PRId64 ", %" PRId64 "}, {%" PRId64
	          ", %" PRId64 "}, {%" PRId64 ", %" PRId64 "}, %" PRId64 ", %s, %s, %s},",
	          v.kh, v.kw, v.pad[0], v.pad[1], v.stride[0], v.stride[1], v.dilation[0],
	          v.dilation[1], v.groups, library_type(op, &image_types),
	          e && e->activation == EPILOGUE_RELU ? "true" : "false", call.alpha);
	text_line(&cg->run, 1, "            %s, %s, %s, %s, %s, %s, %s);", call.scratch, call.bytes,
	          call.a, call.b, call.bias, call.addend, call.out);
	return library_call_end(
		cg, &call,
		e && e->bias ? "cudnnConvolutionBiasActivationForward" : "cudnnConvolutionForward", e);
}
