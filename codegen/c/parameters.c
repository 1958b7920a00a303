// Parameters that runs change, in C: the workspace that they lie in is memory as any other. Called
// by codegen/model/state.c through c_backend.
#include "codegen/c/c.h"

#include <inttypes.h>

void c_states_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out, "pd_status %s_reset(%s *m)\n{\n", p, p);
	text_refuse(out, "PD_NULL", "!m || !m->ready");
	text_line(out, 1, "memset(m->workspace, 0, %" PRId64 ");", cg->state_bytes);
	states_begin_print(cg, out);
	text_str(out, "\treturn PD_OK;\n}\n\n");
}

void c_state_copy_print(Codegen *cg, Text *out, bool set)
{
	const char *at = arena_printf(
		cg->arena, "((struct %s *)instance)->workspace + parameter_infos[i].offset", cg->prefix);
	text_line(out, 1, "memcpy(%s, %s, parameter_infos[i].bytes);", set ? at : "data",
	          set ? "data" : at);
	text_str(out, "\treturn PD_OK;\n}\n\n");
}
