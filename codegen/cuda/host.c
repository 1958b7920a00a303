// The host side of generated CUDA: model_run, model_wait, and model_info for programs that hold
// their tensors on the host; how instances begin and end is in cuda/instance.c. Called by the
// driver.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/target/target.h"

// What is printed in front of everything that may fail.
static void queue_print(Text *out, const char *name)
{
	text_line(out, 1, "pd_error error;");
	text_line(out, 1, "pd_queue %s = pd_queue_of(stream, &error), *const queue = &%s;", name, name);
}

static void device_check_print(Text *out)
{
	text_line(out, 1, "if (!pd_device_is(queue, m->device))");
	text_line(out, 2, "return PD_WRONG_DEVICE;");
}

// ---- run ----------------------------------------------------------------------------------------

static const char *run_text(const Codegen *cg)
{
	return cg->run.text ? cg->run.text : "";
}

static void device_locals_print(Codegen *cg, Text *out)
{
	if (cg->uses_state)
		text_line(out, 1, "pd_state *const state = (pd_state *)m->memory;");
	if (cg->uses_sizes)
		text_line(out, 1, "int64_t *const sizes = (int64_t *)(m->memory + %d);", CUDA_STATE_BYTES);
	if (cg->cuda.ncondition)
		text_line(out, 1, "int *const parts_on = (int *)(m->memory + %d);",
		          8 * (cuda_told_words(cg) + cg->cuda.ncounter));
}

// Whether the graph was made for these tensors and sizes.
static void graph_fits_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(
		out,
		"/* Whether the graph was made for these tensors and sizes. */\n"
		"static bool graph_fits(const %s *m, const %s_inputs *in, const %s_outputs *out)\n{\n",
		p, p, p);
	text_line(out, 1, "(void)in;");
	text_line(out, 1, "(void)out;");
	text_str(out, "\treturn m->graph");
	if (cg->nmember)
		text_str(out, " && !memcmp(&m->in.dims, &in->dims, sizeof in->dims)");
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < (side ? cg->noutput : cg->ninput); i++) {
			const char *which = side ? "out" : "in",
					   *member = (side ? cg->outputs : cg->inputs)[i].member;
			text_printf(out, " &&\n\t       m->%s.%s == %s->%s", which, member, which, member);
		}
	text_str(out, ";\n}\n\n");
}

// What makes the graph. With conditions it is a function of its own that also queues the program
// where there are no conditional nodes: a host loop.
static void graph_make_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix,
			   *types = arena_printf(cg->arena, "%s *m, const %s_inputs *in, %s_outputs *out", p, p,
	                                 p);
	const char *begin = "pd_queue graph = pd_graph_begin(stream, error), *const queue = &graph;";
	if (cg->cuda.ncondition)
		text_printf(
			out,
			"/* The whole program. */\nstatic void program_queue(const %s, pd_queue *queue)\n{\n",
			types);
	else
		text_printf(out,
		            "/* The whole program as a graph. */\n"
		            "static void graph_make(%s, cudaStream_t stream, pd_error *error)\n{\n\t%s\n",
		            types, begin);
	run_locals_print(cg, out);
	device_locals_print(cg, out);
	text_str(out, cg->declarations.text ? cg->declarations.text : "");
	text_str(out, run_text(cg));
	if (cg->cuda.ncondition) {
		text_printf(
			out, "}\n\nstatic void graph_make(%s, cudaStream_t stream, pd_error *error)\n{\n\t%s\n",
			types, begin);
		text_line(out, 1, "program_queue(m, in, out, queue);");
	}
	text_line(out, 1, "pd_graph_end(queue, &m->graph);");
	text_str(out, "}\n\n");
}

// A kernel that is given memory of the host ends the whole program's use of CUDA, so this is looked
// at before.
static void tensors_check_print(Codegen *cg, Text *out)
{
	if (!cg->ninput && !cg->noutput)
		return;
	text_str(out, "\t\tconst void *const tensors[] = {");
	for (int i = 0; i < cg->ninput + cg->noutput; i++)
		text_printf(out, "%s%s->%s", i ? ", " : "", i < cg->ninput ? "in" : "out",
		            (i < cg->ninput ? &cg->inputs[i] : &cg->outputs[i - cg->ninput])->member);
	text_str(out, "};\n");
	text_line(out, 2, "if (!pd_tensors_are_of(queue, m->device, %d, tensors))",
	          cg->ninput + cg->noutput);
	text_line(out, 3, "return PD_WRONG_DEVICE;");
}

static void cuda_run_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	graph_fits_print(cg, out);
	graph_make_print(cg, out);
	text_printf(
		out,
		"pd_status %s_%s(%s *m, const %s_inputs *in, %s_outputs *out, cudaStream_t stream)\n{\n", p,
		cg->options->entry, p, p, p);
	run_checks_print(cg, out);
	queue_print(out, "queue_of_stream");
	device_check_print(out);
	text_line(out, 1, "if (pd_ok(queue) && !graph_fits(m, in, out)) {");
	tensors_check_print(cg, out);
	if (cg->cuda.ncondition) {
		text_line(out, 2, "if (pd_ok(queue) && !m->guarded)");
		text_line(out, 3, "graph_make(m, in, out, stream, &error);");
		text_line(out, 2, "m->guarded = m->guarded || pd_lacks_conditions(&error);");
	} else {
		text_line(out, 2, "if (pd_ok(queue))");
		text_line(out, 3, "graph_make(m, in, out, stream, &error);");
	}
	if (cg->ninput || cg->nmember)
		text_line(out, 2, "m->in = *in;");
	if (cg->noutput)
		text_line(out, 2, "m->out = *out;");
	text_line(out, 1, "}");
	if (cg->cuda.ncondition) {
		text_line(out, 1, "if (m->guarded)");
		text_line(out, 2, "program_queue(m, in, out, queue);");
		text_line(out, 1, "else");
	}
	text_line(out, cg->cuda.ncondition ? 2 : 1,
	          "pd_check(queue, cudaGraphLaunch(m->graph, stream));");
	text_line(out, 1, "return pd_ok(queue) ? PD_OK : pd_failure(&error, &m->failed, &m->error);");
	text_str(out, "}\n\n");
}

// ---- wait ---------------------------------------------------------------------------------------

// Sizes as model_wait says them.
typedef struct HostSizes {
	Codegen *cg;
	bool told; // some come from the device
} HostSizes;

static const char *host_symbol(const Dim *sym, void *arg)
{
	HostSizes *h = arg;
	Codegen *cg = h->cg;
	const Symbol *s = symbol_find(cg, sym);
	int number = 0;
	for (const Symbol *at = cg->symbols; at < s; at++)
		number += at->dim->bounded;
	if (!s || !s->dim->bounded)
		return arena_printf(cg->arena, "m->in.dims.%s", symbol_name(cg, sym));
	h->told = true;
	return arena_printf(cg->arena, "sizes[%d]", number);
}

// Sizes of outputs that a caller may not know, and those that a run found.
static void output_sizes_print(HostSizes *h, Text *out)
{
	Codegen *cg = h->cg;
	for (int i = 0; i < cg->noutput; i++)
		for (int d = 0; cg->outputs[i].dims && d < cg->outputs[i].type->rank; d++)
			text_line(out, 1, "out->%s[%d] = %s;", cg->outputs[i].dims, d,
			          dim_expression(cg->arena, cg->outputs[i].type->dims[d], host_symbol, h));
	int number = 0, found = cuda_found_count(cg);
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].dim->bounded) {
			if (cg->symbols[i].reported)
				text_line(out, 1, "out->found_%s = sizes[%d];", cg->symbols[i].name,
				          found + number);
			h->told |= cg->symbols[i].reported;
			number++;
		}
}

static void cuda_wait_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	if (cg->nfailure) {
		text_str(out, "static const char *const failures[] = {\n");
		for (int i = 0; i < cg->nfailure; i++)
			text_line(out, 1, "%s,", string_literal(cg->arena, cg->failures[i]));
		text_str(out, "};\n\n");
	}
	text_printf(out, "pd_status %s_wait(%s *m, %s_outputs *out, cudaStream_t stream)\n{\n", p, p,
	            p);
	text_line(out, 1, "if (!m%s || !m->ready)", cg->noutput ? " || !out" : "");
	text_line(out, 2, "return PD_NULL;");
	text_line(out, 1, "(void)out;");
	queue_print(out, "queue_of_stream");
	device_check_print(out);
	if (cg->nfailure || cuda_found_count(cg)) // else there is nothing to tell
		text_line(out, 1, "pd_copy_out(queue, m->told, m->memory, sizeof m->told);");
	text_line(out, 1, "pd_synchronize(queue);");
	if (cg->nfailure) {
		text_line(out, 1, "if (pd_state_of(m->told).status != PD_OK)");
		text_line(out, 2, "pd_clear(queue, m->memory, sizeof(pd_state));");
	}
	text_line(out, 1, "m->failed = m->error = NULL;");
	text_line(out, 1, "if (!pd_ok(queue))");
	text_line(out, 2, "return pd_failure(&error, &m->failed, &m->error);");
	Text sizes;
	text_init(&sizes, cg->arena);
	HostSizes told = {.cg = cg};
	output_sizes_print(&told, &sizes);
	if (told.told)
		text_line(out, 1, "const int64_t *const sizes = m->told + %d;", CUDA_STATE_BYTES / 8);
	text_str(out, sizes.len ? sizes.text : "");
	if (cg->nfailure) {
		text_line(out, 1, "const pd_state state = pd_state_of(m->told);");
		text_line(out, 1, "m->failed = state.status == PD_OK ? NULL : failures[state.op];");
		text_line(out, 1, "return (pd_status)state.status;");
	} else {
		text_line(out, 1, "return PD_OK;");
	}
	text_str(out, "}\n\n");
}

// ---- model_info ---------------------------------------------------------------------------------

static int rank_sum(const Codegen *cg)
{
	int n = 1;
	for (int i = 0; i < cg->ninput; i++)
		n += cg->inputs[i].type->rank;
	for (int i = 0; i < cg->noutput; i++)
		n += cg->outputs[i].type->rank;
	return n;
}

// No prefix begins as its members do.
static void staged_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(
		out,
		"/* An instance for tensors on the host. */\n"
		"typedef struct %s_staged {\n\t%s pd_instance;\n\tpd_stage pd_host;\n} %s_staged;\n\n",
		p, p, p);
	text_printf(out,
	            "static pd_status %s_info_init(void *instance, const void *weights, size_t n, void "
	            "*workspace,\n"
	            "    size_t size)\n{\n",
	            p);
	text_line(out, 1, "struct %s_staged *s = (struct %s_staged *)instance;", p, p);
	text_line(out, 1, "pd_error error;");
	text_line(out, 1, "pd_queue queue = pd_queue_of(NULL, &error);");
	text_line(out, 1, "(void)workspace;");
	text_line(out, 1, "%s_free(&s->pd_instance);", p);
	text_line(out, 1, "if (!s->pd_host.stream)");
	text_line(out, 2, "pd_check(&queue, cudaStreamCreate(&s->pd_host.stream));");
	text_line(out, 1, "if (!pd_ok(&queue))");
	text_line(out, 2, "return pd_stage_error(&s->pd_host, &error);");
	text_line(out, 1,
	          "const pd_status status = %s_init(&s->pd_instance, weights, n, NULL, size, "
	          "s->pd_host.stream);",
	          p);
	text_line(out, 1,
	          "return pd_stage_status(&s->pd_host, status, s->pd_instance.failed, "
	          "s->pd_instance.error);");
	text_str(out, "}\n\n");
	text_printf(out, "static void %s_info_free(void *instance)\n{\n", p);
	text_line(out, 1, "struct %s_staged *s = (struct %s_staged *)instance;", p, p);
	text_line(out, 1, "%s_free(&s->pd_instance);", p);
	text_line(out, 1, "pd_stage_free(&s->pd_host, %s_info());", p);
	text_str(out, "}\n\n");
}

static void staged_run_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out,
	            "static pd_status %s_info_run(void *instance, const void *const *inputs, void "
	            "*const *outputs,\n"
	            "    int64_t *symbols)\n{\n",
	            p);
	text_line(out, 1, "struct %s_staged *s = (struct %s_staged *)instance;", p, p);
	text_line(out, 1, "int64_t dims[%d];", rank_sum(cg));
	text_line(out, 1, "pd_error error;");
	text_line(out, 1, "pd_queue queue = pd_queue_of(s->pd_host.stream, &error);");
	text_line(out, 1, "pd_stage_in(&s->pd_host, &queue, %s_info(), symbols, inputs, dims);", p);
	text_line(out, 1, "if (!pd_ok(&queue))");
	text_line(out, 2, "return pd_stage_error(&s->pd_host, &error);");
	text_line(out, 1, "%s_inputs in = {};", p);
	text_line(out, 1, "%s_outputs out = {};", p);
	for (int i = 0; i < cg->nsymbol; i++)
		if (symbol_member(&cg->symbols[i]))
			text_line(out, 1, "in.dims.%s = symbols[%d];", symbol_member(&cg->symbols[i]), i);
	for (int i = 0; i < cg->ninput + cg->noutput; i++) {
		const Port *port = i < cg->ninput ? &cg->inputs[i] : &cg->outputs[i - cg->ninput];
		text_line(out, 1, "%s.%s = (%s *)s->pd_host.tensors[%d];", i < cg->ninput ? "in" : "out",
		          port->member, dtype_c_memory(port->type->dtype), i);
	}
	text_line(out, 1, "pd_status status = %s_%s(&s->pd_instance, &in, &out, s->pd_host.stream);", p,
	          cg->options->entry);
	text_line(out, 1, "if (status == PD_OK)");
	text_line(out, 2, "status = %s_wait(&s->pd_instance, &out, s->pd_host.stream);", p);
	text_line(out, 1, "if (status == PD_OK)");
	text_line(out, 2, "pd_stage_out(&s->pd_host, &queue, %s_info(), outputs);", p);
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].reported)
			text_line(out, 1, "symbols[%d] = out.found_%s;", i, cg->symbols[i].name);
	text_line(out, 1,
	          "return pd_ok(&queue) ? pd_stage_status(&s->pd_host, status, s->pd_instance.failed, "
	          "s->pd_instance.error)");
	text_line(out, 1, "                     : pd_stage_error(&s->pd_host, &error);");
	text_str(out, "}\n\n");
	text_printf(out, "static const char *%s_info_failed(const void *instance)\n{\n", p);
	text_line(out, 1, "const struct %s_staged *s = (const struct %s_staged *)instance;", p, p);
	text_line(out, 1, "return s->pd_host.failed[0] ? s->pd_host.failed : NULL;");
	text_str(out, "}\n\n");
}

void cuda_info_functions(Codegen *cg, Text *out)
{
	staged_print(cg, out);
	staged_run_print(cg, out);
}

// ---- the file -----------------------------------------------------------------------------------

// What a program is linked with besides the runtime of CUDA.
static const char *libraries(const Codegen *cg)
{
	return cg->calls_lt && cg->calls_dnn ? " -lcublasLt -lcudnn"
	       : cg->calls_lt                ? " -lcublasLt"
	       : cg->calls_dnn               ? " -lcudnn"
	                                     : "";
}

static const char *compile_line(Codegen *cg)
{
	const char *how = cg->options->compile, *with = libraries(cg);
	return how ? arena_printf(cg->arena, "Compile with: %s%s%s", comment_text(cg->arena, how),
	                          *with ? "; link with" : "", with)
	           : "";
}

static void cuda_source_print(Codegen *cg, Text *out)
{
	const CodegenOptions *o = cg->options;
	Text tail, user;
	text_init(&tail, cg->arena);
	workspace_print(cg, &tail);
	cuda_instance_print(cg, &tail);
	cuda_run_print(cg, &tail);
	cuda_wait_print(cg, &tail);
	info_print(cg, &tail);
	text_init(&user, cg->arena);
	text_str(&user, cg->functions.text ? cg->functions.text : "");
	cuda_functions_print(cg, &user);
	text_str(&user, tail.text);
	banner_print(cg, out, compile_line(cg));
	text_printf(
		out,
		"#include %s\n\n#include <math.h>\n#include <string.h>\n\n#include \"pdrt_cuda.h\"\n\n",
		string_literal(cg->arena, o->header_name));
	prelude_print(cg->arena, true, out, user.text);
	if (!cg->inline_weights)
		weights_header_print(cg, out);
	weights_print(cg, out);
	text_str(out, user.text);
}

bool cuda_options_check(Context *c, CodegenOptions *o)
{
	if (o->call) {
		diag_error(c->diag, &loc_unknown, "%s_call is for C, not for CUDA", o->prefix);
		return false;
	}
	if (o->trace || o->assert_finite || o->map) {
		diag_error(c->diag, &loc_unknown, "%s goes with C, not with CUDA",
		           o->map     ? "--map"
		           : o->trace ? "--trace"
		                      : "--assert-finite");
		return false;
	}
	if (o->weights == WEIGHTS_OBJECT)
		o->weights = WEIGHTS_FILE;
	return true;
}

void cuda_module_print(Codegen *cg, CodegenResult *out)
{
	cg->workspace = dim_add(cg->ctx, cg->workspace,
	                        dim_const(cg->ctx, cg->weights_size + cuda_state_bytes(cg)));
	cuda_report_end(cg, out);
	out->libraries = libraries(cg);
	Text source, header;
	text_init(&source, cg->arena);
	text_init(&header, cg->arena);
	cuda_source_print(cg, &source);
	header_print(cg, &header);
	text_wrap(source.text, source.len, &out->source);
	text_wrap(header.text, header.len, &out->header);
}
