// The values of options: what each becomes in Options. Called by parse.c, through the table for
// those that need more than to be stored.
#include "frontend/options/values.h"
#include "codegen/text/text.h"
#include "ir/base/vec.h"
#include "lower/lower.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool parse_emit(Context *c, Options *o, const char *v)
{
	(void)c;
	static const struct {
		const char *name;
		EmitKind kind;
	} kinds[] = {{"c", EMIT_C},       {"cuda", EMIT_CUDA},     {"header", EMIT_HEADER},
	             {"ir", EMIT_IR},     {"cfg", EMIT_CFG},       {"dot", EMIT_DOT},
	             {"json", EMIT_JSON}, {"source", EMIT_LEGACY}, {"legacy", EMIT_LEGACY}};
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		if (!strcmp(kinds[i].name, v)) {
			o->emit = kinds[i].kind;
			return true;
		}
	}
	return usage_error(
		o, "--emit takes c, cuda, header, ir, cfg, dot, json, source or legacy, not '%s'", v);
}

bool parse_count(const Options *o, const char *name, const char *v, int *out)
{
	char *end;
	long n = strtol(v, &end, 10);
	if (*end || end == v || n < 1 || n > 1000000000)
		return usage_error(o, "%s takes a whole number from 1, not '%s'", name, v);
	*out = (int)n;
	return true;
}

// A,B,...
static const char **list_of(Context *c, const char *v, int *count)
{
	int n = 1;
	for (const char *p = v; *p; p++)
		n += *p == ',';
	const char **list = NEW_ARRAY(c->arena, (size_t)n, const char *);
	*count = 0;
	for (const char *p = v;; p++) {
		size_t len = strcspn(p, ",");
		list[(*count)++] = context_strn(c, p, len);
		p += len;
		if (!*p)
			return list;
	}
}

bool parse_names(Context *c, Options *o, const char *v)
{
	o->param_names = list_of(c, v, &o->nparam_names);
	return true;
}

static bool derivative_add(Context *c, Options *o, bool forward, const char *of)
{
	Derivative *list = NEW_ARRAY(c->arena, (size_t)o->nderivative + 1, Derivative);
	if (o->nderivative)
		memcpy(list, o->derivatives, (size_t)o->nderivative * sizeof *list);
	list[o->nderivative++] = (Derivative){.forward = forward, .of = of};
	o->derivatives = list;
	return true;
}

bool parse_grad(Context *c, Options *o, const char *v)
{
	return derivative_add(c, o, false, v);
}

bool parse_jvp(Context *c, Options *o, const char *v)
{
	return derivative_add(c, o, true, v);
}

// The derivative that --wrt and --cotangent belong to: the last one.
static Derivative *derivative_last(const Options *o, const char *option)
{
	if (!o->nderivative)
		usage_error(o, "%s goes with --grad or --jvp, which stand in front of it", option);
	return o->nderivative ? &o->derivatives[o->nderivative - 1] : NULL;
}

bool parse_wrt(Context *c, Options *o, const char *v)
{
	Derivative *d = derivative_last(o, "--wrt");
	if (d)
		d->wrt = list_of(c, v, &d->nwrt);
	return d != NULL;
}

bool parse_cotangent(Context *c, Options *o, const char *v)
{
	(void)c;
	Derivative *d = derivative_last(o, "--cotangent");
	if (d && d->forward)
		return usage_error(o, "--cotangent goes with --grad, not with --jvp");
	if (d)
		d->cotangent = v;
	return d != NULL;
}

bool parse_shape(Context *c, Options *o, const char *v)
{
	const char *eq = strrchr(v, '=');
	if (!eq || eq == v)
		return usage_error(o, "--shape takes NAME=D,D,..., not '%s'", v);
	ShapePin pin = {.name = context_strn(c, v, (size_t)(eq - v))};
	for (const char *p = eq + 1; *p;) {
		char *end;
		long long d = strtoll(p, &end, 10);
		if (end == p || d < -1 || pin.rank == MAX_RANK || (*end && *end != ','))
			return usage_error(o, "--shape takes NAME=D,D,... with whole numbers, not '%s'", v);
		pin.dims[pin.rank++] = d;
		p = *end ? end + 1 : end;
	}
	ShapePin *pins = NEW_ARRAY(c->arena, (size_t)o->npins + 1, ShapePin);
	if (o->npins)
		memcpy(pins, o->pins, (size_t)o->npins * sizeof *pins);
	pins[o->npins++] = pin;
	o->pins = pins;
	return true;
}

// OLD=NEW, where NEW is to be a name in C.
static bool parse_pair(Context *c, Options *o, const char *option, const char *v, NamePair **list,
                       int *n)
{
	const char *eq = strrchr(v, '=');
	if (!eq || eq == v || strcmp(name_local(c->arena, eq + 1), eq + 1))
		return usage_error(o, "%s takes OLD=NEW with a name of C, not '%s'", option, v);
	NamePair *pairs = NEW_ARRAY(c->arena, (size_t)*n + 1, NamePair);
	if (*n)
		memcpy(pairs, *list, (size_t)*n * sizeof *pairs);
	pairs[(*n)++] = (NamePair){context_strn(c, v, (size_t)(eq - v)), eq + 1};
	*list = pairs;
	return true;
}

bool parse_size_name(Context *c, Options *o, const char *v)
{
	return parse_pair(c, o, "--name-size", v, &o->size_names, &o->nsize_name);
}

bool parse_input_name(Context *c, Options *o, const char *v)
{
	return parse_pair(c, o, "--rename-input", v, &o->input_names, &o->ninput_name);
}

bool parse_output_name(Context *c, Options *o, const char *v)
{
	return parse_pair(c, o, "--rename-output", v, &o->output_names, &o->noutput_name);
}

static RunCall *next_call(Context *c, Options *o)
{
	RunCall *calls = NEW_ARRAY(c->arena, (size_t)o->ncall + 1, RunCall);
	if (o->ncall)
		memcpy(calls, o->calls, (size_t)o->ncall * sizeof *calls);
	o->calls = calls;
	return &calls[o->ncall++];
}

// The `=` between a name and a file. A name may hold '=', a path may too: the first split whose
// path part looks like a file wins.
static const char *file_split(const char *v)
{
	const char *eq = strrchr(v, '=');
	for (const char *p = strchr(v, '='); p; p = strchr(p + 1, '='))
		if (strchr(p, '/') || !strchr(p + 1, '='))
			return p;
	return eq;
}

bool parse_expect(Context *c, Options *o, const char *v)
{
	const char *eq = file_split(v);
	if (!eq || eq == v || !eq[1])
		return usage_error(o, "--expect takes NAME=FILE.npy, not '%s'", v);
	RunInput *list = NEW_ARRAY(c->arena, (size_t)o->nexpect + 1, RunInput);
	if (o->nexpect)
		memcpy(list, o->expect, (size_t)o->nexpect * sizeof *list);
	list[o->nexpect++] = (RunInput){.name = context_strn(c, v, (size_t)(eq - v)), .path = eq + 1};
	o->expect = list;
	return true;
}

bool parse_tolerance(Context *c, Options *o, const char *v)
{
	(void)c;
	char *end;
	o->rtol = o->atol = strtod(v, &end);
	if (end != v && *end == ',')
		o->atol = strtod(v = end + 1, &end);
	if (end == v || *end || !(o->rtol >= 0) || !(o->atol >= 0))
		return usage_error(o, "--tolerance takes RELATIVE[,ABSOLUTE], not '%s'", v);
	return true;
}

bool parse_threads(Context *c, Options *o, const char *v)
{
	(void)c;
	const bool runs = o->command == CMD_RUN || o->command == CMD_VERIFY || o->command == CMD_BENCH;
	const long here = runs ? sysconf(_SC_NPROCESSORS_ONLN) : MAX_CPU_THREADS;
	if (strcmp(v, "max"))
		return parse_count(o, "--threads", v, &o->threads) &&
		       (o->threads <= MAX_CPU_THREADS ||
		        usage_error(o, "--threads takes at most %d, not '%s'", MAX_CPU_THREADS, v));
	o->threads = here < 1 ? 1 : here > MAX_CPU_THREADS ? MAX_CPU_THREADS : (int)here;
	return true;
}

bool parse_input(Context *c, Options *o, const char *v)
{
	const char *eq = file_split(v);
	if (!eq || eq == v || !eq[1])
		return usage_error(o, "--in takes NAME=FILE.npy, not '%s'", v);
	RunCall *call = o->ncall ? &o->calls[o->ncall - 1] : next_call(c, o);
	VEC_ROOM(c->arena, call->inputs, call->ninput, call->cap);
	call->inputs[call->ninput++] = (RunInput){.name = context_strn(c, v, (size_t)(eq - v)),
	                                          .path = eq + 1};
	return true;
}

bool parse_lod(Context *c, Options *o, const char *v)
{
	const char *eq = strrchr(v, '=');
	if (!eq || eq == v || !eq[1])
		return usage_error(o, "--lod takes NAME=0,2,5[;..], not '%s'", v);
	const char *name = context_strn(c, v, (size_t)(eq - v));
	RunCall *call = o->ncall ? &o->calls[o->ncall - 1] : NULL;
	for (int i = 0; call && i < call->ninput; i++) {
		if (strcmp(call->inputs[i].name, name) == 0) {
			call->inputs[i].lod = eq + 1;
			return true;
		}
	}
	return usage_error(o, "--lod %s: give --in for it first", name);
}

bool one_of(const Options *o, const char *name, const char *v, const char *allowed)
{
	size_t n = strlen(v);
	for (const char *p = allowed; *p;) {
		size_t len = strcspn(p, "|");
		if (len == n && !memcmp(p, v, n))
			return true;
		p += len + (p[len] == '|');
	}
	return usage_error(o, "%s takes one of %s, not '%s'", name, allowed, v);
}

static bool pass_is_known(Context *c, const Options *o, const char *option, const char *v)
{
	int n;
	const Pass *passes = pass_table(&n);
	for (int i = 0; i < n; i++)
		if (!strcmp(passes[i].name, v))
			return true;
	return !strcmp(v, "all") ||
	       usage_error(o, "%s: no pass is named '%s'%s", option, v, pass_meant(c, v));
}

bool parse_print_before(Context *c, Options *o, const char *v)
{
	o->print_before = v;
	return pass_is_known(c, o, "--print-before", v);
}

bool parse_print_after(Context *c, Options *o, const char *v)
{
	o->print_after = v;
	return pass_is_known(c, o, "--print-after", v);
}

bool parse_depfile(Context *c, Options *o, const char *v)
{
	(void)c;
	o->depfile_path = v;
	return o->depfile = true;
}

bool parse_next(Context *c, Options *o, const char *v)
{
	(void)v;
	if (!o->ncall)
		next_call(c, o);
	next_call(c, o);
	return true;
}

// GPUs by their compute capability. `a` and `f`: with what later ones do not have.
bool parse_arch(Context *c, Options *o, const char *v)
{
	static const char known[] = "70|72|75|80|86|87|88|89|90|90a|100|100a|100f|101|101a|103|103a|"
								"103f|110|110a|110f|120|120a|120f|"
								"121|121a|121f";
	o->arch = v;
	for (const char *p = v;; p++) {
		const size_t n = strcspn(p, ",");
		if (n < 4 || memcmp(p, "sm_", 3))
			return usage_error(o, "--arch takes a list like sm_80,sm_90, not '%s'", v);
		if (!one_of(o, "--arch sm_NN", context_strn(c, p + 3, n - 3), known))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}
