// Loading, lowering and generating code: the steps that every command takes in its own order.
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);
	return n >= m && !strcmp(s + n - m, suffix);
}

static Op *load_text(Driver *d)
{
	size_t size;
	const uint8_t *text = file_map(d->ctx, d->options->model, &size);
	if (!text)
		return NULL;
	const Options *o = d->options;
	Op *module = ir_parse(d->ctx, o->model, (const char *)text, size);
	if (module && o->params &&
	    !params_load_module(d->ctx, module, o->params, o->nparam_names, o->param_names))
		return NULL;
	return module && ir_verify(module) ? module : NULL;
}

Op *driver_load(Driver *d)
{
	const Options *o = d->options;
	d->read[d->nread++] = o->model;
	if (o->params)
		d->read[d->nread++] = o->params;
	stage_begin(d, "read");
	if (has_suffix(o->model, ".pdir"))
		return load_text(d);
	Paddle__ProgramDesc *p = model_read(d->ctx, o->model);
	if (!p || !params_load(d->ctx, p, o->model, o->params, o->nparam_names, o->param_names))
		return NULL;
	stage_begin(d, "translate");
	Op *module = translate(d->ctx, p, &(TranslateOptions){.npins = o->npins, .pins = o->pins});
	// Always: what lowering may rely on is what the verifier checks, and it costs little next to the rest.
	return module && ir_verify(module) ? module : NULL;
}

static const char *native_isa(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq"))
		return "avx512";
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return "avx2";
	if (__builtin_cpu_supports("sse4.2"))
		return "sse4";
#elif defined(__aarch64__)
	return "neon";
#endif
	return "generic";
}

const Target *driver_target(Driver *d, const char *otherwise)
{
	const char *isa = d->options->isa ? d->options->isa : otherwise;
	const Target *t = target_find(!strcmp(isa, "native") ? native_isa() : isa);
	if (!t)
		diag_error(d->ctx->diag, NULL, "no such target: '%s'", isa);
	return t;
}

const Target *driver_target_to_run(Driver *d)
{
	return driver_target(d, !strcmp(d->options->target, "cuda") ? "cuda" : "native");
}

bool driver_lower(Driver *d, Op *module, const Target *t, const char *until)
{
	stage_begin(d, "lower");
	PassContext p = {.ctx = d->ctx, .module = module, .target = t, .verify = d->options->verify,
	                 .time_report = d->options->time_report, .max_trip = d->options->max_trip,
	                 .max_array = d->options->max_array, .allow_tf32 = d->options->allow_tf32,
	                 .cuda_libs = d->options->cuda_libs};
	return lower_run(&p, until);
}

bool driver_codegen(Driver *d, Op *module, const Target *t, const CodegenOptions *o, CodegenResult *r)
{
	stage_begin(d, "generate code");
	return t->cuda ? codegen_cuda(d->ctx, module, t, o, r) : codegen_c(d->ctx, module, t, o, r);
}
