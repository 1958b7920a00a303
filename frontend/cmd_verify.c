// `pdcc verify`: runs the translated program, the program after every pass, and the generated C on the same
// inputs, and names the first stage after which an output differs.
#include "driver.h"

#include <math.h>
#include <string.h>

// Passes may reorder float arithmetic (folding a batch norm, another order of summation), not more.
enum { TOLERANCE_PPM = 1000 };

static Interp *interpret(Driver *d, Op *module)
{
	const Options *o = d->options;
	Interp *in = interp_new(d->ctx, d->ctx->arena);
	for (int i = 0; o->ncall && i < o->calls[0].ninput; i++) {
		Tensor *t = npy_read(d->ctx, o->calls[0].inputs[i].path);
		if (!t)
			return NULL;
		interp_set_feed(in, o->calls[0].inputs[i].name, t);
	}
	return interp_run(in, module) ? in : NULL;
}

static bool element_differs(const Tensor *a, const Tensor *b, int64_t i)
{
	if (!dtype_is_float(a->dtype))
		return tensor_get_i(a, i) != tensor_get_i(b, i);
	double x = tensor_get_f(a, i), y = tensor_get_f(b, i), tolerance = TOLERANCE_PPM * 1e-6;
	if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
		return !(x == y || (isnan(x) && isnan(y)));
	return fabs(x - y) > tolerance * (fabs(x) + 1);
}

static bool tensors_agree(Driver *d, const char *stage, int col, const Tensor *want, const Tensor *got)
{
	if (got->dtype != want->dtype || got->rank != want->rank ||
	    memcmp(got->dims, want->dims, (size_t)want->rank * sizeof *want->dims)) {
		diag_error(d->ctx->diag, NULL, "after %s: fetch %d has another type or shape", stage, col);
		return false;
	}
	for (int64_t i = 0; i < tensor_numel(want); i++) {
		if (element_differs(want, got, i)) {
			diag_error(d->ctx->diag, NULL, "after %s: fetch %d differs first at element %lld: %.9g, before %.9g", stage, col,
			           (long long)i, tensor_get_f(got, i), tensor_get_f(want, i));
			return false;
		}
	}
	return true;
}

static bool stage_agrees(Driver *d, const char *stage, Interp *reference, Op *module)
{
	Interp *now = interpret(d, module);
	for (int i = 0; now && i < interp_fetch_count(reference); i++) {
		const Tensor *want = interp_fetch(reference, i), *got = interp_fetch(now, i);
		if (want && got && !tensors_agree(d, stage, i, want, got))
			return false;
	}
	return now != NULL;
}

// The last stage: the C that the lowered module becomes, compiled and run.
static bool code_agrees(Driver *d, Op *module, const Target *t, Interp *reference)
{
	Context *c = d->ctx;
	BuiltModel b;
	if (!model_build(d, module, t, NULL, &b) || !model_execute(d, &b, b.folder))
		return false;
	for (int i = 0; i < interp_fetch_count(reference); i++) {
		const Tensor *want = interp_fetch(reference, i);
		Tensor *got = want ? npy_read(c, arena_printf(c->arena, "%s/0/%d.npy", b.folder, i)) : NULL;
		if (want && !(got && tensors_agree(d, "code generation", i, want, got)))
			return false;
	}
	return true;
}

int cmd_verify(Driver *d)
{
	Op *module = driver_load(d);
	const Target *t = module ? driver_target(d, "native") : NULL;
	if (!t)
		return 1;
	stage_begin(d, "interpret");
	Interp *reference = interpret(d, module);
	if (!reference)
		return 1;
	int n;
	const Pass *passes = pass_table(&n);
	for (int i = 0; i < n; i++) {
		stage_begin(d, passes[i].name);
		PassContext p = {.ctx = d->ctx, .module = module, .target = t, .verify = true};
		if (!lower_run_list(&p, passes[i].name) || !stage_agrees(d, passes[i].name, reference, module))
			return 1;
	}
	if (!code_agrees(d, module, t, reference))
		return 1;
	printf("%d passes and the generated code: no difference\n", n);
	return 0;
}
