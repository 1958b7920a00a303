// `pdcc verify`: runs the translated program, the program after every pass, and the generated C or
// CUDA on the same inputs, and names the first stage after which an output differs, and in it the
// first operator (verify_find.c).
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"
#include "ir/interp/interp.h"
#include "lower/lower.h"
#include "lower/pass/pass.h"
#include "lower/target/target.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

// Passes may reorder float arithmetic (folding a batch norm, another order of summation), not more.
enum { TOLERANCE_PPM = 1000 };

// ---- comparing ----------------------------------------------------------------------------------

static bool element_differs(const Tensor *a, const Tensor *b, int64_t i)
{
	if (!dtype_is_float(a->dtype))
		return tensor_get_i(a, i) != tensor_get_i(b, i);
	double x = tensor_get_f(a, i), y = tensor_get_f(b, i), tolerance = TOLERANCE_PPM * 1e-6;
	if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
		return !(x == y || (isnan(x) && isnan(y)));
	return fabs(x - y) > tolerance * (fabs(x) + 1);
}

bool tensor_agrees(Driver *d, const Tensor *want, const Tensor *got, const char **why)
{
	Arena *a = d->ctx->arena;
	*why = "it has another type or shape";
	if (got->dtype != want->dtype || got->rank != want->rank ||
	    memcmp(got->dims, want->dims, (size_t)want->rank * sizeof *want->dims))
		return false;
	if (dtype_is_complex(want->dtype)) {
		*why = "it holds other bytes";
		return !tensor_bytes(want) || !memcmp(want->data, got->data, tensor_bytes(want));
	}
	for (int64_t i = 0; i < tensor_numel(want); i++) {
		if (!element_differs(want, got, i))
			continue;
		*why = dtype_is_float(want->dtype)
		           ? arena_printf(a, "element %lld is %.9g, before %.9g", (long long)i,
		                          tensor_get_f(got, i), tensor_get_f(want, i))
		           : arena_printf(a, "element %lld is %lld, before %lld", (long long)i,
		                          (long long)tensor_get_i(got, i),
		                          (long long)tensor_get_i(want, i));
		return false;
	}
	return true;
}

// What differs is told once the operator is found: the search reads the model again, and wants no
// errors before.
static bool fetch_agrees(Driver *d, const char *fetch, const Tensor *want, const Tensor *got,
                         const char **differs)
{
	const char *why = got ? "" : "it is missing";
	if (!want || (got && tensor_agrees(d, want, got, &why)))
		return true;
	*differs = arena_printf(d->ctx->arena, "fetch %s differs: %s", fetch, why);
	return false;
}

// Fetch `col` of two runs, an array element by element.
static bool fetches_agree(Driver *d, int col, Interp *want, Interp *got, const char **differs)
{
	Arena *a = d->ctx->arena;
	int n = interp_fetch_length(want, col);
	if (n < 0)
		return fetch_agrees(d, arena_printf(a, "%d", col), interp_fetch(want, col),
		                    interp_fetch(got, col), differs);
	if (n != interp_fetch_length(got, col)) {
		*differs = arena_printf(a, "fetch %d has %d elements, before %d", col,
		                        interp_fetch_length(got, col), n);
		return false;
	}
	for (int i = 0; i < n; i++)
		if (!fetch_agrees(d, arena_printf(a, "%d, element %d,", col, i),
		                  interp_fetch_element(want, col, i), interp_fetch_element(got, col, i),
		                  differs))
			return false;
	return true;
}

// ---- stages -------------------------------------------------------------------------------------

// What a run stores in parameters must not reach the next one: puts the values back that were there
// before.
typedef struct Stored {
	const char *name;
	Tensor *value;
	struct Stored *next;
} Stored;

static Stored *parameters_save(Driver *d, Op *module)
{
	Stored *list = NULL;
	for (const Block *b = module_block(module); b; b = b->next)
		for (const Op *op = b->first; op; op = op->next) {
			if (op->code != OP_BUILTIN_SET_PARAMETER)
				continue;
			Stored *s = NEW(d->ctx->arena, Stored);
			const char *name = op_str(op, "name", "");
			*s = (Stored){name, param_get(d->ctx, name), list};
			list = s;
		}
	return list;
}

Interp *verify_interpret(Driver *d, Op *module,
                         void (*seen)(void *arg, const Value *v, const Tensor *t), void *arg)
{
	const RunCall none = {0};
	Interp *in = driver_interpreter(d, d->options->ncall ? &d->options->calls[0] : &none);
	if (in && seen)
		interp_observe(in, seen, arg);
	Stored *before = parameters_save(d, module);
	bool ok = in && interp_run(in, module);
	for (const Stored *s = before; s; s = s->next)
		if (s->value)
			param_set(d->ctx, s->name, s->value);
	return ok ? in : NULL;
}

bool verify_lower(Driver *d, Op *module, const Target *t, const char *passes)
{
	PassContext p = driver_passes(d, module, t);
	p.verify = true;
	return lower_run_list(&p, passes);
}

// Runs one pass, then the program; *differs says what it does not give any more. False after a
// diagnostic.
static bool stage_run(Driver *d, Op *module, const Target *t, const char *pass, Interp *reference,
                      const char **differs)
{
	if (!verify_lower(d, module, t, pass))
		return false;
	Interp *now = verify_interpret(d, module, NULL, NULL);
	if (!now) {
		diag_note(d->ctx->diag, NULL, "the program ran before pass '%s'", pass);
		return false;
	}
	for (int i = 0; i < interp_fetch_count(reference); i++)
		if (!fetches_agree(d, i, reference, now, differs))
			return true;
	return true;
}

static const char *list_append(Driver *d, const char *list, const char *pass)
{
	return *list ? arena_printf(d->ctx->arena, "%s,%s", list, pass) : pass;
}

// On a terminal, the pass that runs now; "": nothing any more.
static void progress_show(const char *pass)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\x1b[K%s%s", *pass ? "after pass " : "", pass);
}

// All passes in the order of a compilation. False after diagnostics.
static bool passes_agree(Driver *d, Op *module, const Target *t, Interp *reference, int *count)
{
	const char *before = "", *list;
	for (int i = 0; lower_stage(i, &list); i++)
		for (size_t len; *list; list += len + (list[len] == ',')) {
			len = strcspn(list, ",");
			const char *pass = context_strn(d->ctx, list, len);
			const char *differs = NULL;
			progress_show(pass);
			if (!stage_run(d, module, t, pass, reference, &differs))
				return false;
			if (differs) {
				verify_find_pass(d, t, before, pass);
				diag_error(d->ctx->diag, NULL, "after pass '%s': %s", pass, differs);
				return false;
			}
			before = list_append(d, before, pass);
			++*count;
		}
	return true;
}

// What the generated program wrote for a fetch, or for an element of one that is an array.
static bool code_fetch_agrees(Driver *d, const char *folder, const char *fetch, const Tensor *want,
                              const char **differs)
{
	Tensor *got = want ? npy_read(d->ctx, arena_printf(d->ctx->arena, "%s/0/%s.npy", folder, fetch))
	                   : NULL;
	return !want || (got && fetch_agrees(d, fetch, want, got, differs));
}

static Tensor *code_fetch(Driver *d, int col, void *folder)
{
	return npy_read(d->ctx, arena_printf(d->ctx->arena, "%s/0/%d.npy", (const char *)folder, col));
}

// The last stage: the code that the lowered module becomes, compiled and run. False: after a
// diagnostic, or with *differs.
static bool code_agrees(Driver *d, Op *module, const Target *t, Interp *reference,
                        const Expected *expected, const char **differs)
{
	Arena *a = d->ctx->arena;
	BuiltModel b;
	if (!model_build(d, module, t, NULL, &b) || !model_execute(d, &b, b.folder))
		return false;
	for (int i = 0; i < interp_fetch_count(reference); i++) {
		if (!code_fetch_agrees(d, b.folder, arena_printf(a, "%d", i), interp_fetch(reference, i),
		                       differs))
			return false;
		for (int k = 0; k < interp_fetch_length(reference, i); k++)
			if (!code_fetch_agrees(d, b.folder, arena_printf(a, "%d.%d", i, k),
			                       interp_fetch_element(reference, i, k), differs))
				return false;
	}
	return expect_check(d, expected, "generated code", code_fetch, (void *)b.folder);
}

static Tensor *read_fetch(Driver *d, int col, void *arg)
{
	(void)d;
	return interp_fetch(arg, col);
}

int cmd_verify(Driver *d)
{
	Op *module = driver_load(d);
	const Target *t = module ? driver_target_to_run(d) : NULL;
	bool code = strcmp(d->options->target, "interp") != 0;
	Expected *expected = NEW_ARRAY(d->ctx->arena, (size_t)d->options->nexpect + 1, Expected);
	if (!t || !expect_load(d, module, expected) || !verify_inputs(d, module))
		return 1;
	stage_begin(d, "passes and interpreter");
	Interp *reference = verify_interpret(d, module, NULL, NULL);
	int n = 0;
	if (!reference || (d->options->out_dir && !driver_write_fetches(d, reference, 0)))
		return 1;
	const bool agree = expect_check(d, expected, "as read", read_fetch, reference) &&
	                   passes_agree(d, module, t, reference, &n);
	progress_show("");
	if (!agree)
		return 1;
	const char *differs = NULL;
	if (code && !code_agrees(d, module, t, reference, expected, &differs)) {
		if (differs) {
			(t->language == LANGUAGE_CUDA ? verify_find_code : verify_trace)(d, t);
			diag_error(d->ctx->diag, NULL, "after code generation: %s", differs);
		}
		return 1;
	}
	printf("%d passes%s: no difference\n", n, code ? " and the generated code" : "");
	return 0;
}
