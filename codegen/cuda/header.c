// What model.h says of CUDA alone: members of an instance, entry points. Called by model/header.c
// through cuda_backend.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"

#include <inttypes.h>

static void cuda_init_declarations(Codegen *cg, Text *out)
{
	const char *p = cg->prefix, *size = cg->nmember ? "(&dims)" : "()";
	text_printf(out,
	            "/* Makes an instance on the device that is current. `memory` is `size` bytes of "
	            "that device for this instance alone,\n"
	            " * %s_workspace_size%s at least, aligned to 64; NULL: the instance allocates "
	            "them, and %s_free gives them\n"
	            " * back. ",
	            p, size, p);
	if (cg->inline_weights)
		text_str(out, "The weights are part of the code: pass NULL and 0.");
	else
		text_printf(out,
		            "`weights` are the %" PRId64
		            " bytes of %s in memory of the host, not needed afterwards.",
		            weights_file_size(cg), comment_text(cg->arena, cg->options->weights_name));
	text_str(out, " Waits for `stream`. */\n");
	text_printf(out,
	            "pd_status %s_init(%s *m, const void *weights, size_t n, void *memory, size_t "
	            "size, cudaStream_t stream);\n",
	            p, p);
	text_printf(out,
	            "/* The same with the weights of `with`, which must stay as long as m: "
	            "%s_WEIGHTS_BYTES less are needed. */\n"
	            "pd_status %s_init_shared(%s *%s, const %s *with, void *memory, size_t size, "
	            "cudaStream_t stream);\n",
	            name_upper(cg->arena, p), p, p, cuda_first_instance(cg), p);
}

void cuda_entry_points(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	cuda_init_declarations(cg, out);
	text_printf(
		out,
		"/* Queues a run and returns. All tensors are memory that the device reaches. Runs of one "
		"instance must not overlap: use one stream,\n"
		" * or wait in between. Instances run side by side on streams of their own. */\n"
		"pd_status %s_%s(%s *m, const %s_inputs *in, %s_outputs *out, cudaStream_t stream);\n",
		p, cg->options->entry, p, p, p);
	text_printf(out,
	            "/* Waits for the stream and tells how the runs on it went since the last wait: "
	            "what failed first, or PD_OK. Sets the\n"
	            " * sizes in `out`. The instance can run again after any status. */\n"
	            "pd_status %s_wait(%s *m, %s_outputs *out, cudaStream_t stream);\n",
	            p, p, p);
	text_printf(out,
	            "/* Gives back what the instance holds, once no run is under way; before it is "
	            "initialised again, too. An instance of\n"
	            " * zeros holds nothing, and so does one that was not initialised with success, or "
	            "freed. */\n"
	            "void %s_free(%s *m);\n",
	            p, p);
	states_declare(cg, out);
	text_printf(out,
	            "/* Entry points for programs that hold their tensors on the host; an instance "
	            "begins as zeros. */\n"
	            "PDRT_EXPORT const pd_model_info *%s_info(void);\n",
	            p);
}

// The graph, and what it was made for, among them.
void cuda_members(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_line(out, 1,
	          "const char *error; /* after PD_DEVICE CUDA's name of the error, or a library's, "
	          "else NULL */");
	text_line(out, 1, "int device;");
	text_line(out, 1, "void *owned;");
	if (cg->calls_lt)
		text_line(out, 1, "struct cublasLtContext *lt;");
	if (cg->calls_dnn)
		text_line(out, 1, "struct cudnnContext *dnn;");
	text_line(out, 1, "int64_t told[%d]; /* by the device, at the last wait */",
	          cuda_told_words(cg));
	text_line(out, 1, "cudaGraphExec_t graph;");
	if (cg->cuda.ncondition)
		text_line(out, 1, "bool guarded; /* without conditional nodes */");
	text_line(out, 1, "%s_inputs in;", p);
	text_line(out, 1, "%s_outputs out;", p);
}
