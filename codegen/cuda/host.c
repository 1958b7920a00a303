// The host side of generated CUDA: model_run, model_wait, and model_info for programs that hold
// their tensors on the host; how instances begin and end is in cuda/instance.c. Called by the
// driver.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/target/target.h"

#include <inttypes.h>

static const char *text_of(const Text *t)
{
	return t->len ? t->text : "";
}

static const char *number_text(Codegen *cg, int64_t n)
{
	return arena_printf(cg->arena, "%" PRId64, n);
}

// ---- run ----------------------------------------------------------------------------------------

// Whether the graph was made for these tensors and sizes, behind `m->graph`.
static const char *same_text(Codegen *cg)
{
	Text out;
	text_init(&out, cg->arena);
	if (cg->nmember)
		text_str(&out, " && !memcmp(&m->in.dims, &in->dims, sizeof in->dims)");
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < (side ? cg->noutput : cg->ninput); i++) {
			const char *which = side ? "out" : "in",
					   *member = (side ? cg->outputs : cg->inputs)[i].member;
			text_printf(&out, " &&\n\t       m->%s.%s == %s->%s", which, member, which, member);
		}
	return text_of(&out);
}

// All tensors of the caller. A kernel that is given memory of the host ends the whole program's use
// of CUDA, so they are looked at before.
static const char *tensors_text(Codegen *cg)
{
	Text out;
	text_init(&out, cg->arena);
	for (int i = 0; i < cg->ninput + cg->noutput; i++)
		text_printf(&out, "%s%s->%s", i ? ", " : "", i < cg->ninput ? "in" : "out",
		            (i < cg->ninput ? &cg->inputs[i] : &cg->outputs[i - cg->ninput])->member);
	return text_of(&out);
}

// The graph is made by a function of its own where there are conditions: then the program can also
// be queued where there are no conditional nodes, as a host loop.
static void cuda_run_print(Codegen *cg, Text *out)
{
	Text locals, program, checks;
	text_init(&locals, cg->arena);
	text_init(&program, cg->arena);
	text_init(&checks, cg->arena);
	run_locals_print(cg, &locals);
	locals_print(cg, &program);
	text_str(&program, cg->run.text ? cg->run.text : "");
	run_checks_print(cg, &checks);
	const TemplateKey keys[] = {
		{"p", cg->prefix},
		{"entry", cg->options->entry},
		{"same", same_text(cg)},
		{"conditions", template_flag(cg->cuda.course->ncondition)},
		{"locals", text_of(&locals)},
		{"state", template_flag(cg->uses_state)},
		{"sizes", template_flag(cg->uses_sizes)},
		{"state_bytes", number_text(cg, CUDA_STATE_BYTES)},
		{"conditions_at", number_text(cg, 8 * (cuda_told_words(cg) + cg->cuda.course->ncounter))},
		{"program", text_of(&program)},
		{"checks", text_of(&checks)},
		{"tensors", tensors_text(cg)},
		{"ntensor", number_text(cg, cg->ninput + cg->noutput)},
		{"in", template_flag(cg->ninput || cg->nmember)},
		{"out", template_flag(cg->noutput)}};
	template_expand(cg->ctx, out, "cuda_run.c", COUNT_OF(keys), keys);
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

static const char *failures_text(Codegen *cg)
{
	Text out;
	text_init(&out, cg->arena);
	for (int i = 0; i < cg->nfailure; i++)
		text_line(&out, 1, "%s,", string_literal(cg->arena, cg->failures[i]));
	return text_of(&out);
}

static void cuda_wait_print(Codegen *cg, Text *out)
{
	HostSizes told = {.cg = cg};
	Text sizes;
	text_init(&sizes, cg->arena);
	output_sizes_print(&told, &sizes);
	const TemplateKey keys[] = {
		{"p", cg->prefix},
		{"failures", failures_text(cg)},
		{"out", template_flag(cg->noutput)},
		{"tells",
	     template_flag(cg->nfailure || cuda_found_count(cg))}, // else there is nothing to tell
		{"found", template_flag(told.told)},
		{"sizes_at", number_text(cg, CUDA_STATE_BYTES / 8)},
		{"sizes", text_of(&sizes)}};
	template_expand(cg->ctx, out, "cuda_wait.c", COUNT_OF(keys), keys);
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

// Entry points for tensors on the host; no prefix begins as the members of an instance do.
void cuda_info_functions(Codegen *cg, Text *out)
{
	Text ports, found;
	text_init(&ports, cg->arena);
	text_init(&found, cg->arena);
	for (int i = 0; i < cg->nsymbol; i++) {
		const Symbol *s = &cg->symbols[i];
		if (symbol_member(s))
			text_line(&ports, 0, "in.dims.%s = symbols[%d];", symbol_member(s), i);
		if (s->reported)
			text_line(&found, 0, "symbols[%d] = out.found_%s;", i, s->name);
	}
	for (int i = 0; i < cg->ninput + cg->noutput; i++) {
		const Port *port = i < cg->ninput ? &cg->inputs[i] : &cg->outputs[i - cg->ninput];
		text_line(&ports, 0, "%s.%s = (%s *)s->pd_host.tensors[%d];", i < cg->ninput ? "in" : "out",
		          port->member, dtype_c_memory(port->type->dtype), i);
	}
	const TemplateKey keys[] = {{"p", cg->prefix},
	                            {"entry", cg->options->entry},
	                            {"ranks", number_text(cg, rank_sum(cg))},
	                            {"ports", text_of(&ports)},
	                            {"found", text_of(&found)}};
	template_expand(cg->ctx, out, "cuda_info.c", COUNT_OF(keys), keys);
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
	text_finish(source.text, source.len, &out->source);
	text_finish(header.text, header.len, &out->header);
}
