// How every program begins and ends: names, ports, weights, calls. Called by the backends.
#include "codegen/model/model.h"
#include "lower/target/target.h"

#include <inttypes.h>
#include <string.h>

static bool options_check(Codegen *cg)
{
	const CodegenOptions *o = cg->options;
	if (!prefix_is_free(o->prefix)) {
		diag_error(cg->ctx->diag, &loc_unknown,
		           "prefix '%s' is a name of C, C++, CUDA or the runtime; --prefix gives another",
		           o->prefix);
		return false;
	}
	if (o->call && cg->nsymbol) {
		diag_error(cg->ctx->diag, &loc_unknown,
		           "%s_call needs static shapes, but '%s' is chosen at run time; fix the shapes "
		           "with --shape",
		           o->prefix, cg->symbols[0].name);
		return false;
	}
	return true;
}

static void codegen_init(Codegen *cg, Context *c, const Op *module, const Target *t,
                         const CodegenOptions *o)
{
	static const char *const interface[] = {
		"init",      "init_shared",    "run",     "info",   "call",    "wait",
		"free",      "workspace_size", "dims",    "inputs", "outputs", "reset",
		"parameter", "trace",          "threads", "plan",   "places"};
	static const char *const run_names[] = {"m",     "in",     "out",   "workspace", "weights",
	                                        "fault", "stream", "queue", "state",     "sizes",
	                                        "error", "graph",  "body",  "parts",     "parts_on"};
	*cg = (Codegen){.ctx = c,
	                .arena = c->arena,
	                .module = module,
	                .target = t,
	                .options = o,
	                .prefix = o->prefix};
	names_init(&cg->globals, c->arena);
	names_init(&cg->locals, c->arena);
	for (size_t i = 0; i < COUNT_OF(run_names); i++)
		names_unique(&cg->locals, run_names[i]);
	for (size_t i = 0; i < COUNT_OF(interface); i++)
		names_unique(&cg->globals, arena_printf(c->arena, "%s_%s", o->prefix, interface[i]));
	names_unique(&cg->locals, o->prefix);
	cg->places = names_unique(&cg->locals, "at");
	pointer_map_init(&cg->pointers, c->arena);
	pointer_map_init(&cg->made, c->arena);
	pointer_map_init(&cg->stories, c->arena);
	pointer_map_init(&cg->widely, c->arena);
	pointer_map_init(&cg->offset_at, c->arena);
	names_init(&cg->place_names, c->arena);
	names_unique(&cg->place_names, "end"); // of the workspace
	pointer_map_init(&cg->firsts, c->arena);
	pointer_map_init(&cg->weights_at, c->arena);
	pointer_map_init(&cg->stems, c->arena);
	pointer_map_init(&cg->row_places, c->arena);
	pointer_map_init(&cg->param_arrays, c->arena);
	pointer_map_init(&cg->used_arrays, c->arena);
	pointer_map_init(&cg->weights_read, c->arena);
	text_init(&cg->functions, c->arena);
	text_init(&cg->run, c->arena);
	name_map_init(&cg->wheres, c->arena);
	text_init(&cg->tables, c->arena);
	text_init(&cg->uploads, c->arena);
	size_locals_init(&cg->plan, cg, SIZES_OF_PLAN, &cg->locals);
	size_locals_init(&cg->sizes, cg, SIZES_OF_RUN, &cg->locals);
	const Attr *workspace = op_attr(module, "workspace");
	cg->threads = (int)op_int(module, "threads", 1);
	cg->workspace = workspace ? workspace->dim : dim_const(c, 0);
}

bool codegen_begin(Codegen *cg, const Backend *backend, Context *c, const Op *module,
                   const Target *t, const CodegenOptions *o)
{
	codegen_init(cg, c, module, t, o);
	cg->backend = backend;
	offsets_note(cg);
	return ports_collect(cg) && options_check(cg) && weights_collect(cg) && run_collect(cg);
}

void codegen_end(Codegen *cg, CodegenResult *out)
{
	*out = (CodegenResult){.nstate = cg->nstate,
	                       .states = NEW_ARRAY(cg->arena, (size_t)cg->nstate + 1, const char *)};
	out->ntraced = cg->trace.n;
	out->traced = cg->trace.ops;
	for (int i = 0; i < cg->nstate; i++)
		out->states[i] = cg->states[i].name;
	if (!cg->inline_weights) {
		out->weights = cg->weights_file;
		out->weights_size = (size_t)weights_file_size(cg);
	}
	text_init(&out->source, cg->arena);
	text_init(&out->header, cg->arena);
	text_init(&out->map, cg->arena);
}
