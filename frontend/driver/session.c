// Loading, lowering and generating code: the steps that every command takes in its own order.
#include "frontend/driver/driver.h"
#include "frontend/read/desc.h"
#include "frontend/read/read.h"
#include "frontend/recipe/recipe.h"
#include "frontend/translate/translate.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "lower/grad/grad.h"
#include "lower/grad/train.h"
#include "lower/lower.h"
#include "lower/pass/pass.h"
#include "lower/target/target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);
	return n >= m && !strcmp(s + n - m, suffix);
}

// Calls f for each name of --writable.
static bool each_writable(Driver *d, Op *module,
                          bool (*f)(Driver *d, Op *module, const char *name, bool named))
{
	const char *list = d->options->writable;
	bool ok = true;
	if (list && !strcmp(list, "all"))
		for (int i = 0; i < d->npersistable; i++)
			ok &= f(d, module, d->persistables[i], false);
	for (size_t n; list && strcmp(list, "all") && *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		ok &= f(d, module, context_strn(d->ctx, list, n), true);
	}
	return ok;
}

static bool writable_mark(Driver *d, Op *module, const char *name, bool named)
{
	(void)module, (void)named;
	param_set_written(d->ctx, name);
	return true;
}

// A run leaves the parameter as it is, but the program around it may not: to passes both are one.
static bool writable_keep(Driver *d, Op *module, const char *name, bool named)
{
	Block *b = module->regions[0].last;
	Op *get = NULL, *end = b->last && (b->last->info->traits & TRAIT_TERMINATOR) ? b->last : NULL;
	for (Op *op = module_block(module)->first; op; op = op->next) {
		const bool is = (op->code == OP_BUILTIN_GET_PARAMETER ||
		                 op->code == OP_BUILTIN_SET_PARAMETER) &&
		                !strcmp(op_str(op, "name", ""), name);
		if (is && op->code == OP_BUILTIN_SET_PARAMETER)
			return true;
		get = is && !get ? op : get;
	}
	if (!get) {
		if (named)
			diag_error(d->ctx->diag, NULL, "--writable: the program reads no parameter '%s'", name);
		return !named;
	}
	Value *v = op_result(get, 0);
	Op *set = op_new(d->ctx, OP_BUILTIN_SET_PARAMETER, get->loc, 0, NULL, 1, &v, 0, 0);
	op_set_attr(set, "name", attr_str(d->ctx, name));
	if (end)
		op_insert_before(end, set);
	else
		op_append(b, set);
	return true;
}

// Always verifies: what lowering may rely on is what the verifier checks, and it costs little next
// to the rest.
static Op *load_end(Driver *d, Op *module)
{
	return module && each_writable(d, module, writable_keep) && ir_verify(module) ? module : NULL;
}

// What is read is checked on another reading of it: inference gives sizes names.
static bool text_verify(Driver *d, const char *text, size_t size)
{
	Op *module = ir_parse(context_within(d->ctx), d->options->model, text, size);
	return module && ir_verify_text(module);
}

static Op *load_text(Driver *d)
{
	size_t size;
	if (d->options->npins) {
		diag_error(
			d->ctx->diag, NULL,
			"--shape %s: IR text has its sizes already; --shape goes with the program that it "
			"was made from",
			d->options->pins[0].name);
		return NULL;
	}
	const uint8_t *text = file_map(d->ctx, d->options->model, &size);
	if (!text)
		return NULL;
	const Options *o = d->options;
	d->ctx->file_hash = bytes_hash(BYTES_HASH_START, text, size);
	Op *module = ir_parse(d->ctx, o->model, (const char *)text, size);
	if (module && o->params &&
	    !params_load_module(d->ctx, module, o->params, o->nparam_names, o->param_names))
		return NULL;
	d->persistables = module ? params_module_names(d->ctx, module, &d->npersistable) : NULL;
	if (module)
		each_writable(d, module, writable_mark);
	module = load_end(d, module);
	return module && text_verify(d, (const char *)text, size) ? module : NULL;
}

static const Paddle__VarDesc *fed_variable(const Paddle__ProgramDesc *p, const char *name)
{
	for (size_t i = 0; i < p->blocks[0]->n_vars; i++)
		if (!strcmp(p->blocks[0]->vars[i]->name, name))
			return p->blocks[0]->vars[i];
	return NULL;
}

// An input that is fed with another number of axes than the file declares has those, as --shape
// would say it.
static bool pins_from_inputs(Driver *d, const Paddle__ProgramDesc *p, TranslateOptions *t)
{
	Context *c = d->ctx;
	const RunCall *call = d->options->calls;
	const int n = d->options->ncall ? call->ninput : 0;
	ShapePin *pins = NEW_ARRAY(c->arena, (size_t)(t->npins + n) + 1, ShapePin);
	for (int i = 0; i < t->npins; i++)
		pins[i] = t->pins[i];
	t->pins = pins;
	for (int i = 0; i < n; i++) {
		const RunInput *in = &call->inputs[i];
		const Paddle__VarDesc *v = fed_variable(p, in->name);
		const Paddle__TensorDesc *desc = v && v->type->type == PADDLE__VAR_KIND__LOD_TENSOR
		                                     ? var_tensor(v)
		                                     : NULL;
		const int rank = desc ? npy_rank(c, in->path) : 0;
		bool pinned = false;
		for (int k = 0; k < t->npins; k++)
			pinned |= !strcmp(pins[k].name, in->name);
		if (rank < 0)
			return false;
		if (!desc || pinned || rank == (int)desc->n_dims)
			continue;
		pins[t->npins] = (ShapePin){.name = in->name, .rank = rank};
		for (int k = 0; k < rank; k++)
			pins[t->npins].dims[k] = -1;
		t->npins++;
	}
	return true;
}

static Op *load_module(Driver *d)
{
	const Options *o = d->options;
	stage_begin(d, "read");
	if (has_suffix(o->model, ".pdir"))
		return load_text(d);
	Paddle__ProgramDesc *p = model_read(d->ctx, o->model);
	if (!p || !params_load(d->ctx, p, o->model, o->params, o->nparam_names, o->param_names))
		return NULL;
	d->persistables = params_names(d->ctx, p, &d->npersistable);
	each_writable(d, NULL, writable_mark);
	stage_begin(d, "translate");
	TranslateOptions t = {.npins = o->npins,
	                      .pins = o->pins,
	                      .detach = d->keeps_steps || o->nderivative > 0 || o->train};
	if (!pins_from_inputs(d, p, &t))
		return NULL;
	Op *module = translate(d->ctx, p, &t);
	return load_end(d, module);
}

// Two sorted lists of names as one, each name once.
static const char *const *names_join(Driver *d, int n, const char *const *a, int m,
                                     const char *const *b, int *count)
{
	const char **all = NEW_ARRAY(d->ctx->arena, (size_t)(n + m) + 1, const char *);
	*count = 0;
	for (int i = 0, k = 0; i < n || k < m;) {
		const int order = i == n ? 1 : k == m ? -1 : strcmp(a[i], b[k]);
		all[(*count)++] = order <= 0 ? a[i] : b[k];
		i += order <= 0;
		k += order >= 0;
	}
	return all;
}

static bool derive_step(Op *module, const DeriveHow *how, const void *recipe)
{
	return train(module, recipe, how);
}

static bool derive_all(Op *module, const DeriveHow *how, const void *options)
{
	const Options *o = options;
	return differentiate(module, o->nderivative, o->derivatives, how);
}

// What loops keep for the derivatives is to be at most what --stack-budget says.
static bool loops_within_budget(Driver *d, Op *module, DeriveFn *derive, DeriveHow *how,
                                const void *arg)
{
	PassContext p = driver_passes(d, module, NULL);
	if (d->options->nderivative > 1) {
		diag_error(d->ctx->diag, &loc_unknown,
		           "--stack-budget is not for several derivatives: they keep arrays, no stacks");
		return false;
	}
	return lower_run_list(&p, "expand,bounds") &&
	       checkpoint_loops(module, d->options->stack_budget, derive, how, arg);
}

static bool derive_within_budget(Driver *d, Op *module, DeriveFn *derive, const void *arg)
{
	const char *remat = d->options->remat;
	DeriveHow how = {.expand = !d->keeps_steps,
	                 .remat = !strcmp(remat, "auto")     ? REMAT_AUTO
	                          : !strcmp(remat, "always") ? REMAT_ALWAYS
	                                                     : REMAT_NEVER};
	return (!d->options->stack_budget || loops_within_budget(d, module, derive, &how, arg)) &&
	       derive(module, &how, arg) && ir_verify(module);
}

// The module with what the step does; what it stores is state of the model from then on.
static Op *load_trained(Driver *d, Op *module)
{
	Recipe recipe;
	int n;
	stage_begin(d, "train");
	if (!recipe_read(d->ctx, d->options->train, &recipe) ||
	    !derive_within_budget(d, module, derive_step, &recipe))
		return NULL;
	const char *const *names = params_module_names(d->ctx, module, &n);
	d->persistables = names_join(d, d->npersistable, d->persistables, n, names, &d->npersistable);
	return module;
}

static Op *load_derived(Driver *d)
{
	const Options *o = d->options;
	Op *module = load_module(d);
	d->nown = d->npersistable;
	d->own = d->persistables;
	if (module && o->train)
		return load_trained(d, module);
	if (!module || !o->nderivative)
		return module;
	stage_begin(d, "differentiate");
	return derive_within_budget(d, module, derive_all, o) ? module : NULL;
}

Op *driver_load(Driver *d)
{
	const char *state = d->options->load_state;
	Op *module = load_derived(d);
	if (!module || !state)
		return module;
	stage_begin(d, "state");
	return params_load_state(d->ctx, state, d->npersistable, d->persistables) && ir_verify(module)
	           ? module
	           : NULL;
}

static const char *native_isa(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
		return __builtin_cpu_supports("avx512vnni") ? "avx512vnni" : "avx512";
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

PassContext driver_passes(Driver *d, Op *module, const Target *t)
{
	const Options *o = d->options;
	return (PassContext){.ctx = d->ctx,
	                     .module = module,
	                     .target = t,
	                     .verify = o->verify,
	                     .time_report = o->time_report,
	                     .print_before = o->print_before,
	                     .print_after = o->print_after,
	                     .max_trip = o->max_trip,
	                     .threads = o->threads,
	                     .max_array = o->max_array,
	                     .allow_tf32 = o->allow_tf32,
	                     .winograd = !strcmp(o->winograd, "auto"),
	                     .cuda_libs = o->cuda_libs};
}

bool driver_lower(Driver *d, Op *module, const Target *t, const char *until)
{
	stage_begin(d, "lower");
	PassContext p = driver_passes(d, module, t);
	if (op_attr(module, "workspace")) // text of --emit=cfg: it is printed as it stands
		return lower_run_list(&p, "check-kernels,check-waits");
	return lower_run(&p, until);
}

// Printers only print: the text of the IR behind them is the one in front of them.
static bool module_is_still(Driver *d, const Op *module, const Text *before)
{
	Text after;
	text_init(&after, d->ctx->arena);
	ir_print(&after, module);
	if (!strcmp(before->text, after.text))
		return true;
	diag_error(d->ctx->diag, module->loc, "code generation changed the IR");
	return false;
}

bool driver_codegen(Driver *d, Op *module, const Target *t, const CodegenOptions *o,
                    CodegenResult *r)
{
	const bool verify = d->options->verify;
	Text before;
	stage_begin(d, "generate code");
	text_init(&before, d->ctx->arena);
	if (verify)
		ir_print(&before, module);
	const bool ok = codegen(d->ctx, module, t, o, r);
	return ok && (!verify || module_is_still(d, module, &before));
}
