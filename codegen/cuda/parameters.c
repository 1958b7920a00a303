// Parameters that runs change, in CUDA: they lie in memory of the device, so copies are queued.
// Called by codegen/model/state.c through cuda_backend.
#include "codegen/cuda/cuda.h"

#include <inttypes.h>

void cuda_states_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out, "static void parameters_begin(%s *m, pd_queue *queue)\n{\n", p);
	text_line(out, 1, "pd_clear(queue, m->workspace, %" PRId64 ");", cg->state_bytes);
	states_begin_print(cg, out);
	text_printf(out, "}\n\npd_status %s_reset(%s *m, cudaStream_t stream)\n{\n", p, p);
	text_refuse(out, "PD_NULL", "!m || !m->ready");
	text_line(out, 1, "pd_error error;");
	text_line(out, 1, "pd_queue queue = pd_queue_of(stream, &error);");
	text_refuse(out, "PD_WRONG_DEVICE", "!pd_device_is(&queue, m->device)");
	text_line(out, 1, "parameters_begin(m, &queue);");
	text_str(out,
	         "\treturn pd_ok(&queue) ? PD_OK : pd_failure(&error, &m->failed, &m->error);\n}\n\n");
}

void cuda_state_copy_print(Codegen *cg, Text *out, bool set)
{
	const char *at = "s->pd_instance.workspace + parameter_infos[i].offset", *p = cg->prefix;
	text_line(out, 1, "struct %s_staged *s = (struct %s_staged *)instance;", p, p);
	text_line(out, 1, "pd_error error;");
	text_line(out, 1, "pd_queue queue = pd_queue_of(s->pd_host.stream, &error);");
	text_line(out, 1, "pd_copy_%s(&queue, %s, %s, parameter_infos[i].bytes);", set ? "in" : "out",
	          set ? at : "data", set ? "data" : at);
	text_line(out, 1, "pd_synchronize(&queue);");
	text_str(out, "\treturn pd_ok(&queue) ? PD_OK : pd_stage_error(&s->pd_host, &error);\n}\n\n");
}
