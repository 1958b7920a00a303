// From a lowered module to model.c, model.h and model.weights. Called by the driver.
#include "codegen_impl.h"

#include <inttypes.h>
#include <string.h>

static bool options_check(Codegen *cg)
{
	const CodegenOptions *o = cg->options;
	if (!prefix_is_free(o->prefix)) {
		diag_error(cg->ctx->diag, &loc_unknown, "prefix '%s' is a name of C, C++, CUDA or the runtime; --prefix gives another",
		           o->prefix);
		return false;
	}
	if (o->call && cg->nsymbol) {
		diag_error(cg->ctx->diag, &loc_unknown,
		           "%s_call needs static shapes, but '%s' is chosen at run time; fix the shapes with --shape",
		           o->prefix, cg->symbols[0].name);
		return false;
	}
	return true;
}

static void codegen_init(Codegen *cg, Context *c, Op *module, const Target *t, const CodegenOptions *o)
{
	static const char *const interface[] = {"init", "init_shared", "run", "info", "call", "wait", "free",
	                                        "workspace_size", "dims", "inputs", "outputs"};
	static const char *const run_names[] = {"m", "in", "out", "workspace", "weights", "status", "stream", "queue",
	                                        "state", "sizes", "error", "graph", "body", "parts", "parts_on"};
	*cg = (Codegen){.ctx = c, .arena = c->arena, .module = module, .target = t, .options = o, .prefix = o->prefix};
	names_init(&cg->globals, c->arena);
	names_init(&cg->locals, c->arena);
	for (size_t i = 0; i < COUNT_OF(run_names); i++)
		names_unique(&cg->locals, run_names[i]);
	for (size_t i = 0; i < COUNT_OF(interface); i++)
		names_unique(&cg->globals, arena_printf(c->arena, "%s_%s", o->prefix, interface[i]));
	names_unique(&cg->locals, o->prefix);
	pointer_map_init(&cg->pointers, c->arena);
	pointer_map_init(&cg->block_work, c->arena);
	pointer_map_init(&cg->conditions, c->arena);
	pointer_map_init(&cg->param_names, c->arena);
	pointer_map_init(&cg->weights_read, c->arena);
	text_init(&cg->arrays, c->arena);
	text_init(&cg->functions, c->arena);
	text_init(&cg->run, c->arena);
	text_init(&cg->declarations, c->arena);
	text_init(&cg->uploads, c->arena);
	size_locals_init(&cg->plan, cg, SIZES_OF_PLAN, &cg->locals);
	size_locals_init(&cg->sizes, cg, SIZES_OF_RUN, &cg->locals);
	const Attr *workspace = op_attr(module, "workspace");
	cg->workspace = workspace ? workspace->dim : dim_const(c, 0);
}

// ---- weights and init ------------------------------------------------------------------------------------

static void object_print(Codegen *cg, Text *out)
{
	const char *symbol = arena_printf(cg->arena, "%s_weights_data", cg->prefix);
	const char *file = string_literal(cg->arena, cg->options->weights_name);
	text_printf(out, "extern const unsigned char %s[] __attribute__((visibility(\"hidden\")));\n", symbol);
	text_printf(out, "__asm__(\".section .rodata\\n\\t.balign 64\\n\\t.globl %s\\n\\t.hidden %s\\n\"\n", symbol, symbol);
	text_printf(out, "        \"%s:\\n\\t.incbin \" %s \"\\n\\t.previous\\n\");\n\n", symbol,
	            string_literal(cg->arena, file));
}

static void init_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	bool file = !cg->inline_weights && !cg->object_weights;
	text_printf(out, "pd_status %s_init(%s *m, const void *weights, size_t n, void *workspace, size_t size)\n{\n", p, p);
	text_line(out, 1, "if (!m)");
	text_line(out, 2, "return PD_NULL;");
	text_line(out, 1, "m->ready = false;");
	text_line(out, 1, "m->failed = NULL;");
	if (file) {
		text_line(out, 1, "if (!weights)");
		text_line(out, 2, "return PD_NULL;");
		text_line(out, 1, "if (n != %" PRId64 "u)", cg->weights_size);
		text_line(out, 2, "return PD_WEIGHTS;");
		text_line(out, 1, "if ((uintptr_t)weights %% 64)");
		text_line(out, 2, "return PD_ALIGNMENT;");
		text_line(out, 1, "m->weights = (const unsigned char *)weights;");
	} else {
		text_str(out, "\t(void)weights;\n\t(void)n;\n");
		text_line(out, 1, "m->weights = %s;", cg->object_weights ? arena_printf(cg->arena, "%s_weights_data", p) : "NULL");
	}
	text_line(out, 1, "if (!workspace && size)");
	text_line(out, 2, "return PD_NULL;");
	text_line(out, 1, "if ((uintptr_t)workspace %% 64)");
	text_line(out, 2, "return PD_ALIGNMENT;");
	if (!cg->nmember) {
		text_line(out, 1, "if (size < %s_workspace_size())", p);
		text_line(out, 2, "return PD_WORKSPACE;");
	}
	text_line(out, 1, "m->workspace = (unsigned char *)workspace;");
	text_line(out, 1, "m->workspace_size = size;");
	text_line(out, 1, "m->ready = true;");
	text_str(out, "\treturn PD_OK;\n}\n\n");
}

// ---- the file ------------------------------------------------------------------------------------------------

static void source_print(Codegen *cg, Text *out)
{
	const CodegenOptions *o = cg->options;
	Text tail;
	text_init(&tail, cg->arena);
	workspace_print(cg, &tail);
	init_print(cg, &tail);
	run_print(cg, &tail);
	text_char(&tail, '\n');
	info_print(cg, &tail);
	if (o->call)
		call_print(cg, &tail);
	text_printf(out, "/* Written by pdcc%s%s for %s. Do not edit. */\n", o->banner ? " from " : "",
	            o->banner ? comment_text(cg->arena, o->banner) : "", cg->target->name);
	text_printf(out, "#include %s\n\n#include <math.h>\n#include <string.h>\n\n", string_literal(cg->arena, o->header_name));
	Text user;
	text_init(&user, cg->arena);
	text_str(&user, cg->functions.text ? cg->functions.text : "");
	text_str(&user, tail.text);
	prelude_print(cg, out, user.text);
	if (cg->object_weights)
		object_print(cg, out);
	text_str(out, cg->arrays.text ? cg->arrays.text : "");
	text_str(out, user.text);
}

bool codegen_begin(Codegen *cg, Context *c, Op *module, const Target *t, const CodegenOptions *o)
{
	codegen_init(cg, c, module, t, o);
	return ports_collect(cg) && options_check(cg) && weights_collect(cg) && run_collect(cg);
}

void codegen_end(Codegen *cg, CodegenResult *out)
{
	*out = (CodegenResult){0};
	if (!cg->inline_weights) {
		out->weights = cg->weights;
		out->weights_size = (size_t)cg->weights_size;
	}
	text_init(&out->source, cg->arena);
	text_init(&out->header, cg->arena);
}

bool codegen_c(Context *c, Op *module, const Target *t, const CodegenOptions *o, CodegenResult *out)
{
	Codegen *cg = NEW(c->arena, Codegen);
	if (!codegen_begin(cg, c, module, t, o))
		return false;
	codegen_end(cg, out);
	source_print(cg, &out->source);
	header_print(cg, &out->header);
	return true;
}
