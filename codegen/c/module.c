// model.c: weights, model_init, and what run.c and model/ print, in order. Called by codegen.c
// through c_backend.
#include "codegen/c/c.h"
#include "codegen/nest/nest.h"
#include "runtime_stub/pdrt.h"

#include <inttypes.h>
#include <string.h>

// ---- weights and init ---------------------------------------------------------------------------

static void object_print(Codegen *cg, Text *out)
{
	const char *symbol = arena_printf(cg->arena, "%s_weights_data", cg->prefix);
	const char *file = arena_printf(cg->arena, "%s_WEIGHTS_FILE",
	                                name_upper(cg->arena, cg->prefix));
	// A name within a string of the assembler within one of C.
	const char *name = string_literal(cg->arena, cg->options->weights_name);
	name = arena_printf(cg->arena, "%.*s", (int)strlen(name) - 2, name + 1);
	text_printf(
		out,
		"/* The assembler looks for it in the working folder and those of -I; a path for it "
		"is given by\n * -D%s='\"PATH\"'. */\n#ifndef %s\n#define %s %s\n#endif\n",
		file, file, file, string_literal(cg->arena, name));
	text_printf(out, "extern const unsigned char %s[] __attribute__((visibility(\"hidden\")));\n",
	            symbol);
	text_printf(out,
	            "__asm__(\".section .rodata\\n\\t.balign 64\\n\\t.globl %s\\n\\t.hidden %s\\n\"\n",
	            symbol, symbol);
	text_printf(out,
	            "        \"%s:\\n\\t.incbin \\\"\" %s \"\\\", 0, %" PRId64
	            "\\n\\t.previous\\n\");\n\n",
	            symbol, file, weights_file_size(cg));
}

static void init_weights_print(Codegen *cg, Text *out)
{
	const size_t header = sizeof(pd_weights_header);
	if (weights_in_file(cg)) {
		weights_check_print(cg, out);
		text_refuse(out, "PD_ALIGNMENT", "(uintptr_t)weights %% 64");
		text_line(out, 1, "m->weights = (const unsigned char *)weights + %zu;", header);
		return;
	}
	text_str(out, "\t(void)weights;\n\t(void)n;\n");
	if (!cg->object_weights) {
		text_line(out, 1, "m->weights = NULL;");
		return;
	}
	text_refuse(out, "PD_WEIGHTS", "memcmp(%s_weights_data, &weights_header, %zu) != 0", cg->prefix,
	            header);
	text_line(out, 1, "m->weights = %s_weights_data + %zu;", cg->prefix, header);
}

static void init_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out,
	            "pd_status %s_init(%s *m, const void *weights, size_t n, void *workspace, size_t "
	            "size)\n{\n",
	            p, p);
	text_refuse(out, "PD_NULL", "!m");
	if (cg->threads > 1) {
		text_line(out, 1, "m->threads = 1;");
		text_line(out, 1, "m->parallel_for = NULL;");
		text_line(out, 1, "m->pool = NULL;");
	}
	text_line(out, 1, "m->ready = false;");
	text_line(out, 1, "m->failed = NULL;");
	if (cg->options->trace)
		text_line(out, 1, "m->tracer.callback = NULL;");
	init_weights_print(cg, out);
	text_refuse(out, "PD_NULL", "!workspace && size");
	text_refuse(out, "PD_ALIGNMENT", "(uintptr_t)workspace %% 64");
	if (!cg->nmember && !dim_is(cg->workspace, 0)) {
		text_refuse(out, "PD_WORKSPACE", "size < %s_workspace_size()", p);
	} else if (cg->nstate) {
		text_refuse(out, "PD_WORKSPACE", "size < %" PRId64, cg->state_bytes);
	}
	text_line(out, 1, "m->workspace = (unsigned char *)workspace;");
	text_line(out, 1, "m->workspace_size = size;");
	text_line(out, 1, "m->ready = true;");
	if (cg->nstate)
		text_printf(out, "\treturn %s_reset(m);\n}\n\n", p);
	else
		text_str(out, "\treturn PD_OK;\n}\n\n");
}

static void threads_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix, *most = name_upper(cg->arena, p);
	text_printf(out,
	            "pd_status %s_threads(%s *m, int threads, pd_parallel_for *parallel_for, void "
	            "*pool)\n{\n",
	            p, p);
	text_refuse(out, "PD_NULL", "!m || !m->ready || (threads > 1 && !parallel_for)");
	text_refuse(out, "PD_DIMS", "threads < 1");
	text_line(out, 1, "m->threads = threads < %s_THREADS ? threads : %s_THREADS;", most, most);
	text_line(out, 1, "m->parallel_for = parallel_for;");
	text_line(out, 1, "m->pool = pool;");
	text_str(out, "\treturn PD_OK;\n}\n\n");
}

// ---- the file -----------------------------------------------------------------------------------

static void source_print(Codegen *cg, Text *out, CodegenResult *result)
{
	const CodegenOptions *o = cg->options;
	Text tail;
	text_init(&tail, cg->arena);
	places_print(cg, &tail);
	states_print(cg, &tail);
	init_print(cg, &tail);
	if (cg->threads > 1)
		threads_print(cg, &tail);
	c_run_print(cg, &tail);
	text_char(&tail, '\n');
	info_print(cg, &tail);
	if (call_wanted(cg))
		call_print(cg, &tail);
	banner_print(cg, out, "");
	text_printf(out, "#include %s\n\n#include <math.h>\n#include <string.h>\n\n",
	            string_literal(cg->arena, o->header_name));
	demands_print(cg, out);
	Text user;
	text_init(&user, cg->arena);
	text_str(&user, cg->functions.text ? cg->functions.text : "");
	text_str(&user, tail.text);
	prelude_print(cg->arena, false, out, user.text);
	if (!cg->inline_weights)
		weights_header_print(cg, out);
	if (cg->object_weights)
		object_print(cg, out);
	weights_print(cg, out);
	const size_t functions = out->len, run = functions + cg->functions.len + cg->map.run_at;
	text_str(out, user.text);
	if (o->map)
		map_print(cg, out, functions, run, result);
}

void c_module_print(Codegen *cg, CodegenResult *out)
{
	Text source, header;
	text_init(&source, cg->arena);
	text_init(&header, cg->arena);
	source_print(cg, &source, out);
	header_print(cg, &header);
	text_finish(source.text, source.len, &out->source);
	text_finish(header.text, header.len, &out->header);
}
