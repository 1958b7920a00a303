// How an instance of generated CUDA begins and ends: model_init, model_init_shared, model_free. The
// memory of an instance holds, in this order, what kernels tell of a run (pd_state, then sizes: as
// they are, as they should be, and counters of loops), the weights, unless they are another
// instance's, and the workspace of the plan. Called by cuda/host.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/analysis.h"

#include <inttypes.h>
#include <string.h>

// Bytes of an instance without workspace.
static int64_t least_bytes(const Codegen *cg)
{
	return cuda_state_bytes(cg) + cg->weights_size + cg->state_bytes;
}

// What both kinds of init do. The sizes of the plan that the caller chooses are not known yet: a
// run looks at them.
static void begin_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out,
	            "/* Takes the memory, or makes it; `weights` bytes of it are for weights. */\n"
	            "static pd_status instance_begin(%s *m, void *memory, size_t size, size_t weights, "
	            "pd_queue *queue)\n{\n",
	            p);
	text_line(out, 1, "const size_t elsewhere = %" PRId64 " - weights;", cg->weights_size);
	text_line(out, 1, "if ((uintptr_t)memory %% 64)");
	text_line(out, 2, "return PD_ALIGNMENT;");
	if (cg->nmember)
		text_line(out, 1, "if (size < %" PRId64 " - elsewhere)", least_bytes(cg));
	else
		text_line(out, 1, "if (size < %s_workspace_size() - elsewhere)", p);
	text_line(out, 2, "return PD_WORKSPACE;");
	text_line(out, 1, "pd_check(queue, cudaGetDevice(&m->device));");
	text_line(out, 1, "m->memory = pd_memory_take(queue, memory, size, m->device, &m->owned);");
	text_line(out, 1, "if (!pd_ok(queue) || !m->memory)");
	text_line(out, 2, "return PD_WRONG_DEVICE;");
	text_line(out, 1, "m->workspace = m->memory + %" PRId64 " + weights;", cuda_state_bytes(cg));
	if (cg->calls_lt)
		text_line(out, 1, "pd_lt_begin(queue, &m->lt);");
	if (cg->calls_dnn)
		text_line(out, 1, "pd_dnn_begin(queue, &m->dnn);");
	text_line(out, 1, "m->workspace_size = size + elsewhere;");
	text_line(out, 1, "pd_clear(queue, m->memory, %" PRId64 ");", cuda_state_bytes(cg));
	text_str(out, "\treturn PD_OK;\n}\n\n");
}

static void end_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out,
	            "/* Waits until all is there; an instance that is not ready keeps nothing. */\n"
	            "static pd_status instance_end(%s *m, pd_status status, pd_queue *queue)\n{\n",
	            p);
	text_line(out, 1, "pd_synchronize(queue);");
	text_line(out, 1, "m->ready = pd_ok(queue) && status == PD_OK;");
	text_line(out, 1, "if (!m->ready)");
	text_line(out, 2, "%s_free(m);", p);
	text_line(out, 1,
	          "return pd_ok(queue) ? status : pd_failure(queue->error, &m->failed, &m->error);");
	text_str(out, "}\n\n");
}

static void queue_print(Text *out)
{
	text_line(out, 1, "pd_error error;");
	text_line(out, 1, "pd_queue queue = pd_queue_of(stream, &error);");
}

static void init_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(
		out,
		"pd_status %s_init(%s *m, const void *weights, size_t n, void *memory, size_t size, "
		"cudaStream_t stream)\n{\n",
		p, p);
	text_line(out, 1, "if (!m)");
	text_line(out, 2, "return PD_NULL;");
	text_line(out, 1, "memset(m, 0, sizeof *m);");
	if (cg->inline_weights) {
		text_str(out, "\t(void)weights;\n\t(void)n;\n");
	} else {
		weights_check_print(cg, out);
	}
	queue_print(out);
	text_line(out, 1,
	          "const pd_status status = instance_begin(m, memory, size, %" PRId64 ", &queue);",
	          cg->weights_size);
	text_line(out, 1, "if (status == PD_OK) {");
	text_line(out, 2, "unsigned char *const uploads = m->memory + %" PRId64 ";",
	          cuda_state_bytes(cg));
	text_line(out, 2, "m->weights = uploads;");
	if (!cg->inline_weights)
		text_line(
			out, 2,
			"pd_copy_in(&queue, uploads, (const unsigned char *)weights + weights_header.offset, "
			"n - weights_header.offset);");
	else if (cg->uploads.text && cg->uploads.len)
		text_str(out, cg->uploads.text);
	if (cg->nstate)
		text_line(out, 2, "parameters_begin(m, &queue);");
	text_line(out, 1, "}");
	text_str(out, "\treturn instance_end(m, status, &queue);\n}\n\n");
}

// Its name where the type of another instance follows, which it must not hide. (`struct` in front
// of that one would do, but nvcc takes it away.)
const char *cuda_first_instance(const Codegen *cg)
{
	return strcmp(cg->prefix, "m") ? "m" : "self";
}

static void init_shared_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix, *m = cuda_first_instance(cg);
	text_printf(out,
	            "pd_status %s_init_shared(%s *%s, const %s *with, void *memory, size_t size, "
	            "cudaStream_t stream)\n{\n",
	            p, p, m, p);
	text_line(out, 1, "if (!%s || %s == with)", m, m);
	text_line(out, 2, "return PD_NULL;");
	text_line(out, 1, "memset(%s, 0, sizeof *%s);", m, m);
	text_line(out, 1, "if (!with || !with->ready)");
	text_line(out, 2, "return PD_NULL;");
	queue_print(out);
	text_line(out, 1, "if (!pd_device_is(&queue, with->device))");
	text_line(out, 2, "return PD_WRONG_DEVICE;");
	text_line(out, 1, "const pd_status status = instance_begin(%s, memory, size, 0, &queue);", m);
	text_line(out, 1, "%s->weights = with->weights;", m);
	if (cg->nstate) {
		text_line(out, 1, "if (status == PD_OK)");
		text_line(out, 2, "parameters_begin(%s, &queue);", m);
	}
	text_printf(out, "\treturn instance_end(%s, status, &queue);\n}\n\n", m);
}

static void free_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out, "void %s_free(%s *m)\n{\n", p, p);
	text_line(out, 1, "if (!m)");
	text_line(out, 2, "return;");
	text_line(out, 1, "if (m->graph)");
	text_line(out, 2, "cudaGraphExecDestroy(m->graph);");
	if (cg->calls_lt)
		text_line(out, 1, "pd_lt_end(m->lt);");
	if (cg->calls_dnn)
		text_line(out, 1, "pd_dnn_end(m->dnn);");
	text_line(out, 1, "if (m->owned)");
	text_line(out, 2, "cudaFree(m->owned);");
	text_line(out, 1, "memset(m, 0, sizeof *m);");
	text_str(out, "}\n\n");
}

void cuda_instance_print(Codegen *cg, Text *out)
{
	states_print(cg, out);
	free_print(cg, out);
	begin_print(cg, out);
	end_print(cg, out);
	init_print(cg, out);
	init_shared_print(cg, out);
}
