// `pdcc info`: what is in a model and what it costs.
#include "frontend/driver/info_page.h"
#include "frontend/read/read.h"

#include <string.h>

static const char *size_text(Context *c, const Dim *d)
{
	return d ? dim_text(c, d) : "?";
}

// 569000000 as "569.0 M", or the symbolic expression.
static const char *count_text(Context *c, const Dim *d)
{
	static const char *const units[] = {"", " k", " M", " G", " T"};
	if (!dim_is_const(d))
		return size_text(c, d);
	double v = (double)d->value;
	size_t unit = 0;
	for (; v >= 1000 && unit + 1 < COUNT_OF(units); unit++)
		v /= 1000;
	return arena_printf(c->arena, unit ? "%.1f%s" : "%.0f%s", v, units[unit]);
}

static const Dim *module_dim(const Op *module, const char *name)
{
	const Attr *a = op_attr(module, name);
	return a && a->kind == ATTR_DIM ? a->dim : NULL;
}

static void print_ports(Text *t, const char *what, int n, const PortStats *ports)
{
	text_printf(t, "%s\n", what);
	for (int i = 0; i < n; i++) {
		text_printf(t, "  %-32s ", ports[i].name);
		type_print(t, ports[i].type);
		text_char(t, '\n');
	}
}

static void print_count(Text *t, Context *c, const OpCount *n)
{
	const bool once = !dim_is(n->macs, 0), rounds = !dim_is(n->round_macs, 0);
	text_printf(t, "  %5d  ", n->count);
	text_printf(t, once || rounds ? "%-28s" : "%s", n->info->short_name);
	if (once)
		text_printf(t, " %s MAC", count_text(c, n->macs));
	if (rounds)
		text_printf(t, "%s %s MAC in a round", once ? "," : "", count_text(c, n->round_macs));
	text_char(t, '\n');
}

static void print_text(Text *t, Context *c, const Op *module, const Stats *s, const Target *target,
                       const CudaStats *kernels)
{
	print_ports(t, "inputs", s->ninput, s->inputs);
	print_ports(t, "outputs", s->noutput, s->outputs);
	text_printf(t, "operators\n");
	for (int i = 0; i < s->nkind; i++)
		print_count(t, c, &s->ops[i]);
	text_printf(t, "parameters   %d tensors, %lld elements, %lld bytes\n", s->nparam,
	            (long long)s->param_elements, (long long)s->param_bytes);
	text_printf(t, "MACs         %s\n", count_text(c, s->macs));
	if (!dim_is(s->round_macs, 0))
		text_printf(t, "             %s in a round of the loops whose rounds a run finds\n",
		            count_text(c, s->round_macs));
	text_printf(t, "for --isa=%s\n", target->name);
	text_printf(t, "  workspace  %s bytes\n", size_text(c, module_dim(module, "workspace")));
	text_printf(t, "  weights    %s bytes\n", size_text(c, module_dim(module, "weights")));
	if (kernels)
		cuda_stats_print(t, kernels);
}

static void json_ports(Text *t, Context *c, const char *what, int n, const PortStats *ports)
{
	text_printf(t, "  \"%s\": [", what);
	for (int i = 0; i < n; i++) {
		text_printf(t, "%s{\"name\": ", i ? ", " : "");
		text_json(t, ports[i].name);
		text_str(t, ", \"type\": ");
		text_json(t, type_text(c, ports[i].type));
		text_char(t, '}');
	}
	text_str(t, "],\n");
}

static void json_dim(Text *t, Context *c, const char *key, const Dim *d, const char *end)
{
	text_printf(t, "  \"%s\": ", key);
	if (d && dim_is_const(d))
		text_printf(t, "%lld", (long long)d->value);
	else
		text_json(t, size_text(c, d));
	text_str(t, end);
}

static void print_json(Text *t, Context *c, const Op *module, const Stats *s, const Target *target,
                       const CudaStats *kernels)
{
	json_ports(t, c, "inputs", s->ninput, s->inputs);
	json_ports(t, c, "outputs", s->noutput, s->outputs);
	text_str(t, "  \"operators\": {");
	for (int i = 0; i < s->nkind; i++)
		text_printf(t, "%s\"%s\": %d", i ? ", " : "", s->ops[i].info->short_name, s->ops[i].count);
	text_printf(t,
	            "},\n  \"parameters\": {\"tensors\": %d, \"elements\": %lld, \"bytes\": %lld},\n",
	            s->nparam, (long long)s->param_elements, (long long)s->param_bytes);
	json_dim(t, c, "macs", s->macs, ",\n");
	json_dim(t, c, "macs_of_a_round", s->round_macs, ",\n");
	text_printf(t, "  \"isa\": \"%s\",\n", target->name);
	if (kernels)
		cuda_stats_json(t, kernels);
	json_dim(t, c, "workspace", module_dim(module, "workspace"), ",\n");
	json_dim(t, c, "weights", module_dim(module, "weights"), "\n}\n");
}

// The C of the model, with what its lines stand for.
static bool code_make(Driver *d, Op *module, const Target *target, CodegenResult *code)
{
	const CodegenOptions options = {.prefix = "model",
	                                .header_name = "model.h",
	                                .weights_name = "model.weights",
	                                .version = PDCC_VERSION,
	                                .banner = d->options->model,
	                                .given = d->options->given,
	                                .model_hash = d->ctx->file_hash,
	                                .weights = WEIGHTS_FILE,
	                                .map = true};
	return driver_codegen(d, module, target, &options, code);
}

static bool page_write(Driver *d, Op *module, InfoPage *page)
{
	CodegenResult code;
	Text t;
	text_init(&t, d->ctx->arena);
	if (page->target->language == LANGUAGE_C) {
		if (!code_make(d, module, page->target, &code))
			return false;
		page->code = &code;
	}
	info_html(&t, d->ctx, page);
	return file_write(d->ctx, d->options->html, t.text, t.len);
}

// `--html`: the page, with what a run measured where there is one.
static bool html_report(Driver *d, Op *module, InfoPage *page)
{
	Measured measured;
	if (d->options->measured && !measured_read(d->ctx, d->options->measured, module, &measured))
		return false;
	page->measured = d->options->measured ? &measured : NULL;
	return page_write(d, module, page);
}

int cmd_info(Driver *d)
{
	Context *c = d->ctx;
	const Options *o = d->options;
	const bool cuda = !strcmp(o->target, "cuda");
	Op *module = driver_load(d);
	const Target *target = module ? driver_target(d, cuda ? "cuda" : "native") : NULL;
	if (!target)
		return 1;
	Stats s;
	SourceOps source = {0};
	ModelConfig *config;
	stats_collect(c, module, &s);
	source_ops_collect(c, module, &source);
	CudaStats kernels;
	if (!config_read(c, c->file, &config) || !driver_lower(d, module, target, NULL) ||
	    (cuda && !cuda_stats_collect(d, module, target, &kernels)))
		return 1;
	stage_begin(d, "report");
	if (o->html) {
		InfoPage page = {o->model, module, &s, target, config, NULL, &source, NULL};
		return !html_report(d, module, &page);
	}
	Text t;
	text_init(&t, c->arena);
	if (o->json)
		text_str(&t, "{\n");
	if (config)
		(o->json ? config_json : config_print)(&t, config);
	(o->json ? print_json : print_text)(&t, c, module, &s, target, cuda ? &kernels : NULL);
	return !file_write(c, "-", t.text, t.len);
}
