// `pdcc bench`: latency of the generated code: the harness runs the model repeatedly and prints the
// figures.
#include "frontend/driver/driver.h"
#include "lower/target/target.h"

int cmd_bench(Driver *d)
{
	Context *c = d->ctx;
	const Options *o = d->options;
	Op *module = driver_load(d);
	const Target *t = module ? driver_target_to_run(d) : NULL;
	const char *missing = t && t->cuda ? cuda_missing(c) : NULL;
	BuiltModel b;
	if (missing) {
		diag_error(c->diag, NULL, "no GPU here (%s), and how long the emulator takes says nothing",
		           missing);
		return 1;
	}
	if (!t || !driver_lower(d, module, t, NULL) || !model_build(d, module, t, o->keep, &b))
		return 1;
	const RunCall *call = o->ncall ? &o->calls[0] : &(const RunCall){0};
	const char **argv = NEW_ARRAY(c->arena, 8 + 2 * (size_t)call->ninput, const char *);
	int n = 0;
	argv[n++] = b.program;
	argv[n++] = "--bench";
	argv[n++] = arena_printf(c->arena, "%d", o->repeat);
	if (b.weights) {
		argv[n++] = "--weights";
		argv[n++] = b.weights;
	}
	for (int i = 0; i < call->ninput; i++) {
		argv[n++] = "--in";
		argv[n++] = arena_printf(c->arena, "%s=%s", call->inputs[i].name, call->inputs[i].path);
	}
	stage_end(d);
	int status = 0;
	if (t->cuda)
		printf("each run with its tensors to the device and back: ");
	if (external_run(c, argv, &status))
		return 0;
	diag_error(c->diag, NULL, "the generated program failed (exit status %d)", status);
	return 1;
}
