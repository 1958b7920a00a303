// `pdcc run`: compiles, builds and runs a model on .npy files, or interprets it.
#include "driver.h"

#include <string.h>

// Results of one interpreted run to DIR/<run>/<column>.npy.
static bool write_fetches(Driver *d, Interp *in, int run)
{
	Context *c = d->ctx;
	const char *folder = arena_printf(c->arena, "%s/%d", d->options->out_dir, run);
	if (!folder_make(c, folder))
		return false;
	for (int i = 0; i < interp_fetch_count(in); i++) {
		Tensor *t = interp_fetch(in, i);
		if (t && !npy_write(c, arena_printf(c->arena, "%s/%d.npy", folder, i), t))
			return false;
		for (int k = 0; k < interp_fetch_length(in, i); k++) {
			t = interp_fetch_element(in, i, k);
			if (t && !npy_write(c, arena_printf(c->arena, "%s/%d.%d.npy", folder, i, k), t))
				return false;
		}
	}
	return true;
}

static bool run_interpreter(Driver *d, Op *module)
{
	const RunCall none = {0};
	int ncall = d->options->ncall ? d->options->ncall : 1;
	for (int i = 0; i < ncall; i++) {
		const RunCall *call = d->options->ncall ? &d->options->calls[i] : &none;
		Interp *in = interp_new(d->ctx, d->ctx->arena);
		stage_begin(d, "interpret");
		for (int k = 0; k < call->ninput; k++) {
			Tensor *t = npy_read(d->ctx, call->inputs[k].path);
			if (!t)
				return false;
			interp_add_feed(in, call->inputs[k].name, t);
		}
		if (!interp_run(in, module) || !write_fetches(d, in, i))
			return false;
	}
	return true;
}

static bool run_program(Driver *d, const BuiltModel *b)
{
	Context *c = d->ctx;
	const Options *o = d->options;
	int max = 16;
	for (int i = 0; i < o->ncall; i++)
		max += 1 + 2 * o->calls[i].ninput;
	const char **argv = NEW_ARRAY(c->arena, (size_t)max, const char *);
	int n = 0;
	argv[n++] = b->program;
	argv[n++] = "--out-dir";
	argv[n++] = o->out_dir;
	if (b->weights) {
		argv[n++] = "--weights";
		argv[n++] = b->weights;
	}
	if (o->redzone)
		argv[n++] = "--redzone";
	for (int i = 0; i < o->ncall; i++) {
		if (i)
			argv[n++] = "--next";
		for (int k = 0; k < o->calls[i].ninput; k++) {
			argv[n++] = "--in";
			argv[n++] = arena_printf(c->arena, "%s=%s", o->calls[i].inputs[k].name, o->calls[i].inputs[k].path);
		}
	}
	stage_begin(d, "run");
	int status = 0;
	if (external_run(c, argv, &status))
		return true;
	diag_error(c->diag, NULL, status >= 128 ? "the generated program was ended by signal %d" :
	                                          "the generated program failed (exit status %d)",
	           status >= 128 ? status - 128 : status);
	return false;
}

int cmd_run(Driver *d)
{
	const Options *o = d->options;
	if (!strcmp(o->target, "cuda")) {
		diag_error(d->ctx->diag, NULL, "running generated CUDA is not supported yet; compile it with -o model.cu");
		return 1;
	}
	Op *module = driver_load(d);
	if (!module || !folder_make(d->ctx, o->out_dir))
		return 1;
	if (!strcmp(o->target, "interp"))
		return !run_interpreter(d, module);
	const Target *t = driver_target(d, "native");
	BuiltModel b;
	return !(t && driver_lower(d, module, t, NULL) && model_build(d, module, t, o->keep, &b) && run_program(d, &b));
}
