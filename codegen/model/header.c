// Prints model.h: what a user of the generated code sees. Called by the backends.
#include "codegen/model/model.h"
#include "lower/analysis/analysis.h"

#include <ctype.h>
#include <inttypes.h>

static void dims_struct(Codegen *cg, Text *out)
{
	if (!cg->nmember)
		return;
	text_printf(out,
	            "/* Sizes that are chosen at run time; each at least 1, or 0 where it says so. "
	            "*/\ntypedef struct %s_dims {\n",
	            cg->prefix);
	for (int i = 0; i < cg->nsymbol; i++)
		if (symbol_member(&cg->symbols[i]))
			text_line(out, 1, "int64_t %s;%s", symbol_member(&cg->symbols[i]),
			          cg->symbols[i].max    ? " /* bound of a size that follows from data */"
			          : cg->symbols[i].room ? " /* may be 0 */"
			                                : "");
	text_printf(out, "} %s_dims;\n\n", cg->prefix);
}

// How many elements an output must have room for, when a run finds its size.
static const char *room_comment(Codegen *cg, const Type *t)
{
	if (!type_is_found(t))
		return "";
	const Dim *bytes = type_bytes_at_most(cg->ctx, t),
			  *element = dim_const(cg->ctx, (int64_t)dtype_size(t->dtype));
	return arena_printf(
		cg->arena, "; room for %s elements",
		expression_unwrap(cg->arena, dim_of_bounds(cg, dim_div(cg->ctx, bytes, element))));
}

static void ports_struct(Codegen *cg, Text *out, const char *which, const Port *ports, int n,
                         bool in)
{
	text_printf(out, "typedef struct %s_%s {\n", cg->prefix, which);
	if (in && cg->nmember)
		text_line(out, 1, "%s_dims dims;", cg->prefix);
	for (int i = 0; i < n; i++) {
		text_line(out, 1, "%s%s *%s; /* %s %s%s */", in ? "const " : "",
		          dtype_c_memory(ports[i].type->dtype), ports[i].member,
		          comment_text(cg->arena, ports[i].name), shape_comment(cg, ports[i].type),
		          in ? "" : room_comment(cg, ports[i].type));
		if (!in && ports[i].dims)
			text_line(out, 1, "int64_t %s[%d]; /* set by the run */", ports[i].dims,
			          ports[i].type->rank);
	}
	for (int i = 0; i < cg->nsymbol && !in; i++)
		if (cg->symbols[i].reported)
			text_line(out, 1, "int64_t found_%s; /* set by the run%s */", cg->symbols[i].name,
			          cg->symbols[i].bound ? "" : "; over its bound after PD_CAPACITY");
	if (!n && !(in && cg->nmember))
		text_line(out, 1, "char none;");
	text_printf(out, "} %s_%s;\n\n", cg->prefix, which);
}

static void workspace_declaration(Codegen *cg, Text *out)
{
	const char *p = cg->prefix, *what = cg->backend->memory;
	if (cg->backend->device)
		text_printf(out,
		            "/* So many bytes of the memory of an instance are for weights. */\n#define "
		            "%s_WEIGHTS_BYTES %" PRId64 "u\n\n",
		            name_upper(cg->arena, p), cg->weights_size);
	if (!cg->nmember) {
		int64_t bytes = cg->workspace->kind == DIM_CONST ? cg->workspace->value : 0;
		text_printf(out, "/* Bytes of %s, exactly. */\n#define %s_WORKSPACE_BYTES %" PRId64 "u\n",
		            what, name_upper(cg->arena, p), bytes);
		text_printf(out, "%ssize_t %s_workspace_size(void);\n\n", exported(cg), p);
		return;
	}
	text_printf(
		out,
		"/* Bytes of %s that a run with these sizes needs, exactly; SIZE_MAX when they are not\n"
		" * possible. */\n%ssize_t %s_workspace_size(const %s_dims *dims);\n\n",
		what, exported(cg), p, p);
}

static void weights_comment(Codegen *cg, Text *out)
{
	const char *name = cg->options->weights_name ? cg->options->weights_name : "the weights";
	if (cg->inline_weights || cg->object_weights)
		text_str(out, "/* The weights are part of the code: pass NULL and 0.");
	else
		text_printf(out,
		            "/* `weights` are the %" PRId64
		            " bytes of %s; they must stay as long as the model is used.",
		            weights_file_size(cg), comment_text(cg->arena, name));
	text_str(out, "\n * `workspace` is `size` bytes for this model alone. Both want an alignment "
	              "of 64 bytes. */\n");
}

static void entry_points(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	weights_comment(cg, out);
	text_printf(out,
	            "%spd_status %s_init(%s *m, const void *weights, size_t n, void *workspace, size_t "
	            "size);\n",
	            exported(cg), p, p);
	text_printf(out, "%spd_status %s_%s(%s *m, const %s_inputs *in, %s_outputs *out);\n",
	            exported(cg), p, cg->options->entry, p, p, p);
	if (cg->threads > 1)
		text_printf(
			out,
			"/* From then on up to `threads` parts of a run are side by side: parallel_for(pool, "
			"..) "
			"runs them,\n * pd_threads_for for a pool of pd_threads_start. 1 to %s_THREADS, more "
			"counts as that; after init it\n * is 1. Outputs are the same for any number. */\n"
			"#define %s_THREADS %d\n"
			"%spd_status %s_threads(%s *m, int threads, pd_parallel_for *parallel_for, void "
			"*pool);\n",
			name_upper(cg->arena, p), name_upper(cg->arena, p), cg->threads, exported(cg), p, p);
	states_declare(cg, out);
	if (cg->options->trace)
		text_printf(out,
		            "/* From now on `callback` is told of each operator of a run, until the next "
		            "init. */\n%svoid %s_trace(%s *m, pd_trace *callback, void *arg);\n",
		            exported(cg), p, p);
	text_printf(out, "PDRT_EXPORT const pd_model_info *%s_info(void);\n", p);
	if (call_wanted(cg))
		text_printf(out,
		            "/* Runs with a workspace of its own, one call at a time. Arrays are in column "
		            "order. */\n"
		            "PDRT_EXPORT int %s_call(const void *const *inputs, void *const *outputs);\n",
		            p);
}

// The macro that says which header is there: of two with one prefix, the second would be empty.
static const char *header_own(Codegen *cg)
{
	const char *file = name_sanitize(cg->arena, cg->options->header_name);
	return arena_printf(cg->arena, "%s_H_IS_%s", name_upper(cg->arena, cg->prefix),
	                    name_upper(cg->arena, file));
}

void header_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix, *guard = name_upper(cg->arena, p);
	text_printf(out, "/* Written by pdcc %s from %s. Do not edit. */\n", cg->options->version,
	            comment_text(cg->arena, cg->options->banner));
	text_printf(out, "#ifndef %s_H\n#define %s_H\n#define %s\n\n#include \"%s.h\"\n\n", guard,
	            guard, header_own(cg), cg->threads > 1 ? "pdrt_threads" : "pdrt");
	abi_print(out);
	if (cg->backend->device)
		text_str(out, "#include <cuda_runtime_api.h>\n\n");
	text_str(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
	dims_struct(cg, out);
	ports_struct(cg, out, "inputs", cg->inputs, cg->ninput, true);
	ports_struct(cg, out, "outputs", cg->outputs, cg->noutput, false);
	text_printf(out,
	            "/* An instance; its members are private%s. Several may run at the same time. */\n",
	            cg->backend->device ? ", but for `failed` and `error`" : "");
	text_printf(out, "typedef struct %s {\n", p);
	if (cg->backend->device)
		text_line(out, 1, "unsigned char *memory;");
	text_line(out, 1, "const unsigned char *weights;");
	text_line(out, 1, "unsigned char *workspace;");
	text_line(out, 1, "size_t workspace_size;");
	text_line(out, 1,
	          "const char *failed; /* the operator at which the last run failed%s, or NULL */",
	          cg->backend->device ? ", or the kernel or call of CUDA" : "");
	text_line(out, 1, "bool ready;");
	if (cg->options->trace)
		text_line(out, 1, "pd_tracer tracer;");
	if (cg->threads > 1) {
		text_line(out, 1, "int threads;");
		text_line(out, 1, "pd_parallel_for *parallel_for;");
		text_line(out, 1, "void *pool;");
	}
	if (cg->backend->members)
		cg->backend->members(cg, out);
	text_printf(out, "} %s;\n\n", p);
	workspace_declaration(cg, out);
	if (cg->backend->entry_points)
		cg->backend->entry_points(cg, out);
	else
		entry_points(cg, out);
	text_str(out, "\n#ifdef __cplusplus\n}\n#endif\n\n");
	text_printf(
		out,
		"#elif !defined %s\n#error \"another header has the prefix '%s', too: --prefix gives "
		"one of them another\"\n#endif\n",
		header_own(cg), p);
}
