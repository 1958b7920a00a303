// The option table and its parser.
#include "frontend/driver/options.h"
#include "codegen/text/text.h"
#include "frontend/translate/translate.h"
#include "ir/base/vec.h"
#include "ir/build/build.h"
#include "lower/lower.h"
#include "lower/pass/pass.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	C = 1u << CMD_COMPILE,
	R = 1u << CMD_RUN,
	V = 1u << CMD_VERIFY,
	B = 1u << CMD_BENCH,
	I = 1u << CMD_INFO,
	O = 1u << CMD_OPT,
	D = 1u << CMD_DIFF,
	ALL = C | R | V | B | I | O | D,
	CODE = OPTION_IN_CODE
};

static const struct {
	const char *name, *arg, *summary;
} commands[CMD_COUNT] = {
	[CMD_COMPILE] = {"", "MODEL -o OUT", "compile a model to C, CUDA or a shared library"},
	[CMD_RUN] = {"run", "MODEL", "compile, build and run it on .npy files"},
	[CMD_VERIFY] = {"verify", "MODEL",
                    "compare every pass and the generated code with the model as it was read"},
	[CMD_BENCH] = {"bench", "MODEL", "measure latency and memory"},
	[CMD_INFO] = {"info", "MODEL",
                  "inputs, outputs, operators, parameters, MACs, memory, steps around it"},
	[CMD_OPT] = {"opt", "FILE", "IR text to IR text through chosen passes"},
	[CMD_DIFF] = {"diff", "MODEL MODEL",
                  "compare two models: inputs, outputs, parameters, operators, code"},
};

const char *command_name(Command c)
{
	return commands[c].name;
}

const char *command_summary(Command c)
{
	return commands[c].summary;
}

// "--name", "-MD" or "-o".
static const char *spec_text(const OptionSpec *s, char *buf, size_t n)
{
	if (s->letter)
		snprintf(buf, n, "-%c", s->letter);
	else
		snprintf(buf, n, "%s%s", s->name[0] == '-' ? "" : "--", s->name);
	return buf;
}

static void passes_print(FILE *to)
{
	int n;
	const Pass *passes = pass_table(&n);
	fprintf(to, "\nPasses:\n");
	for (int i = 0; i < n; i++)
		fprintf(to, "  %-20s %s\n", passes[i].name, passes[i].summary);
}

static void help_print(FILE *to, Command c)
{
	fprintf(to, "pdcc %s%s%s [options]\n%s\n\n", commands[c].name, *commands[c].name ? " " : "",
	        commands[c].arg, commands[c].summary);
	if (c == CMD_COMPILE) {
		fprintf(to, "Other commands (pdcc COMMAND --help):\n");
		for (int i = 1; i < CMD_COUNT; i++)
			fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
		fprintf(to, "\n");
	}
	fprintf(to, "Options:\n");
	int n;
	const OptionSpec *options = option_table(&n);
	for (const OptionSpec *s = options; s < options + n; s++) {
		char name[40], left[80];
		if (!(s->commands & 1u << c))
			continue;
		snprintf(left, sizeof left, "%s%s%s", spec_text(s, name, sizeof name), s->arg ? " " : "",
		         s->arg ? s->arg : "");
		fprintf(to, "  %-20s %s\n", left, s->help);
	}
	if (c == CMD_OPT)
		passes_print(to);
	if (c == CMD_OPT || c == CMD_COMPILE)
		fprintf(to, "\nExit status: 0 done, 1 an error in the input, 2 wrong usage.\n");
	if (c == CMD_DIFF)
		fprintf(to,
		        "\nNames of variables inside a model do not count, unless --ir is given.\n"
		        "Exit status: 0 no difference, 1 some, 2 an error in the input, wrong usage.\n");
}

static bool usage_error(const Options *o, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool usage_error(const Options *o, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("pdcc: error: ", stderr);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\ntry 'pdcc %s%s--help'\n", command_name(o->command),
	        *command_name(o->command) ? " " : "");
	return false;
}

// ---- values -------------------------------------------------------------------------------------

static bool parse_emit(Context *c, Options *o, const char *v)
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

static bool parse_count(const Options *o, const char *name, const char *v, int *out)
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

static bool parse_names(Context *c, Options *o, const char *v)
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

static bool parse_grad(Context *c, Options *o, const char *v)
{
	return derivative_add(c, o, false, v);
}

static bool parse_jvp(Context *c, Options *o, const char *v)
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

static bool parse_wrt(Context *c, Options *o, const char *v)
{
	Derivative *d = derivative_last(o, "--wrt");
	if (d)
		d->wrt = list_of(c, v, &d->nwrt);
	return d != NULL;
}

static bool parse_cotangent(Context *c, Options *o, const char *v)
{
	(void)c;
	Derivative *d = derivative_last(o, "--cotangent");
	if (d && d->forward)
		return usage_error(o, "--cotangent goes with --grad, not with --jvp");
	if (d)
		d->cotangent = v;
	return d != NULL;
}

static bool parse_shape(Context *c, Options *o, const char *v)
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

static bool parse_size_name(Context *c, Options *o, const char *v)
{
	return parse_pair(c, o, "--name-size", v, &o->size_names, &o->nsize_name);
}

static bool parse_input_name(Context *c, Options *o, const char *v)
{
	return parse_pair(c, o, "--rename-input", v, &o->input_names, &o->ninput_name);
}

static bool parse_output_name(Context *c, Options *o, const char *v)
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

static bool parse_expect(Context *c, Options *o, const char *v)
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

static bool parse_tolerance(Context *c, Options *o, const char *v)
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

static bool parse_threads(Context *c, Options *o, const char *v)
{
	(void)c;
	const bool runs = (1u << o->command) & (R | V | B);
	const long here = runs ? sysconf(_SC_NPROCESSORS_ONLN) : MAX_CPU_THREADS;
	if (strcmp(v, "max"))
		return parse_count(o, "--threads", v, &o->threads) &&
		       (o->threads <= MAX_CPU_THREADS ||
		        usage_error(o, "--threads takes at most %d, not '%s'", MAX_CPU_THREADS, v));
	o->threads = here < 1 ? 1 : here > MAX_CPU_THREADS ? MAX_CPU_THREADS : (int)here;
	return true;
}

static bool parse_input(Context *c, Options *o, const char *v)
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

static bool parse_lod(Context *c, Options *o, const char *v)
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

// One of the words in `allowed`, which is a list like "a|b|c".
static const char *command_meant(Context *c, const char *word)
{
	const char *names[CMD_COUNT];
	for (int i = 0; i < CMD_COUNT; i++)
		names[i] = commands[i].name;
	return name_meant(c->arena, word, CMD_COUNT, names);
}

static bool one_of(const Options *o, const char *name, const char *v, const char *allowed)
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

static bool parse_print_before(Context *c, Options *o, const char *v)
{
	o->print_before = v;
	return pass_is_known(c, o, "--print-before", v);
}

static bool parse_print_after(Context *c, Options *o, const char *v)
{
	o->print_after = v;
	return pass_is_known(c, o, "--print-after", v);
}

static bool parse_depfile(Context *c, Options *o, const char *v)
{
	(void)c;
	o->depfile_path = v;
	return o->depfile = true;
}

static bool parse_next(Context *c, Options *o, const char *v)
{
	(void)v;
	if (!o->ncall)
		next_call(c, o);
	next_call(c, o);
	return true;
}

// GPUs by their compute capability. `a` and `f`: with what later ones do not have.
static bool parse_arch(Context *c, Options *o, const char *v)
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

// ---- options that print and end -----------------------------------------------------------------

static bool print_help(Context *c, Options *o, const char *v)
{
	(void)c, (void)v;
	help_print(stdout, o->command);
	return true;
}

static bool print_version(Context *c, Options *o, const char *v)
{
	(void)c, (void)o, (void)v;
	return puts("pdcc " PDCC_VERSION) >= 0;
}

static bool print_man(Context *c, Options *o, const char *v)
{
	(void)c, (void)o, (void)v;
	man_print(stdout);
	return true;
}

static bool print_completion(Context *c, Options *o, const char *v)
{
	(void)c;
	return completion_print(stdout, v) ||
	       usage_error(o, "--completion takes bash, zsh or fish, not '%s'", v);
}

// ---- the table ----------------------------------------------------------------------------------

// What an option does with its value: stores it in a member of Options, or hands it to a function.
#define TEXT(member) OPTION_TEXT, offsetof(Options, member), NULL, NULL
#define FLAG(member) OPTION_FLAG, offsetof(Options, member), NULL, NULL
#define COUNT(member) OPTION_COUNT, offsetof(Options, member), NULL, NULL
#define WORD(member, words) OPTION_WORD, offsetof(Options, member), words, NULL
#define PARSE(function) OPTION_PARSE, 0, NULL, function
#define PRINT(function) OPTION_PRINT, 0, NULL, function

static const OptionSpec table[] = {
	{'o', "output", "FILE", C | O, TEXT(output),
     "write FILE, - is standard output; compile: its suffix (.c .cu .h .so .pdir .cfg .dot .json) "
     "says what"},
	{0, "emit", "KIND", C, PARSE(parse_emit),
     "c, cuda, header, ir, cfg, dot, json (as Paddle 3 reads it, .pdiparams beside it) or source "
     "(the program as it was read), whatever the suffix"},
	{0, "c", NULL, D, FLAG(diff_c), "also compare the generated code (--isa=cuda: CUDA)"},
	{0, "ir", NULL, D, FLAG(diff_ir), "also compare the IR as it was read, names and all"},
	{0, "isa", "ISA", C | R | V | B | I | O | D,
     WORD(isa, "avx512vnni|avx512|avx2|sse4|neon|generic|native|cuda"),
     "avx512vnni, avx512, avx2, sse4, neon, generic (plain C11) or native; compile, diff: generic, "
     "else native"},
	{0, "arch", "sm_NN,..", C | R | V | B, PARSE(parse_arch),
     "CUDA: the GPUs to compile for (default: the one that is here); compile: how the code says to "
     "compile it"},
	{0, "cuda-libs", NULL, C | R | V | B | I | O | CODE, FLAG(cuda_libs),
     "CUDA: products through cuBLASLt, convolutions through cuDNN; link with -lcublasLt -lcudnn"},
	{0, "shape", "NAME=D,D", C | R | V | B | I | D | CODE, PARSE(parse_shape),
     "pin the dims of feed NAME; -1 leaves one symbolic"},
	{0, "params", "FILE", ALL, TEXT(params),
     "parameters: a combined file or a folder (default: beside the model)"},
	{0, "param-names", "A,B", ALL, PARSE(parse_names),
     "the parameters that FILE holds, when not all"},
	{0, "other-params", "FILE", D, TEXT(other_params), "the same for the second model"},
	{0, "writable", "A,B|all", C | R | V | B | CODE, TEXT(writable),
     "parameters that the program of the user writes between runs: PREFIX_parameter(&m, \"A\") "
     "gives them"},
	{0, "prefix", "NAME", C | CODE, TEXT(prefix),
     "prefix of every symbol (default: from the output's name)"},
	{0, "name-size", "OLD=NEW", C | CODE, PARSE(parse_size_name),
     "call size OLD of the dims struct NEW"},
	{0, "rename-input", "OLD=NEW", C | CODE, PARSE(parse_input_name), "call input OLD NEW"},
	{0, "rename-output", "OLD=NEW", C | CODE, PARSE(parse_output_name), "call output OLD NEW"},
	{0, "weights", "HOW", C | CODE, WORD(weights, "inline|file|object"),
     "inline, file or object (default: inline below 64 KiB, else file)"},
	{0, "call", NULL, C | CODE, FLAG(call),
     "also emit PREFIX_call(inputs, outputs), with a workspace of its own"},
	{0, "-MD", NULL, C, FLAG(depfile), "write a make rule with the files read, to OUT.d"},
	{0, "-MF", "FILE", C, PARSE(parse_depfile), "write that rule to FILE"},
	{0, "-MT", "TARGET", C, TEXT(depfile_target), "its target (default: OUT), as it is given"},
	{0, "-MP", NULL, C, FLAG(depfile_phony),
     "with a rule without commands for each parameter file, so that one may be deleted"},
	{0, "target", "T", R | V | B | I, WORD(target, "c|cuda|interp"),
     "c (default), cuda (run and verify: emulated without a GPU), or interp, the interpreter; "
     "verify: interp leaves generated code "
     "out"},
	{0, "in", "NAME=FILE", R | V | B, PARSE(parse_input), "feed NAME from a .npy file"},
	{0, "lod", "NAME=0,2,5[;..]", R | V, PARSE(parse_lod),
     "the LoD of feed NAME: offsets, level by level"},
	{0, "expect", "NAME=FILE", V, PARSE(parse_expect),
     "what the framework gave for fetch NAME (or its number), as .npy: compare with that, too"},
	{0, "tolerance", "R[,A]", V, PARSE(parse_tolerance),
     "of --expect: R * |expected| + A; default 1e-5,1e-5"},
	{0, "next", NULL, R, PARSE(parse_next), "start another run on the same state"},
	{0, "load-state", "FILE", C | R | V | B | CODE, TEXT(load_state),
     "begin with what --save-state of the same program wrote, not with its parameters"},
	{0, "save-state", "FILE", R, TEXT(save_state),
     "write what the persistables hold after the last run, as a combined parameter file"},
	{0, "save-params", "FILE", R, TEXT(save_params),
     "the same without what --train adds to them: parameters of MODEL as it is"},
	{0, "grad", "FETCH", C | R | V | B | O | CODE, PARSE(parse_grad),
     "also give the gradients of FETCH (of the sum of its elements) with respect to what --wrt "
     "names, as grad.A (of a derivative: FETCH.A); run: DIR/<run>/grad.A.npy"},
	{0, "jvp", "FETCH", C | R | V | B | O | CODE, PARSE(parse_jvp),
     "also give how FETCH moves, as tangent.FETCH, when each A of --wrt moves as the new input "
     "tangent.A says; FETCH may be a gradient: a product with the Hessian"},
	{0, "wrt", "A,B", C | R | V | B | O | CODE, PARSE(parse_wrt),
     "inputs, parameters or other variables for the --grad or --jvp in front of it"},
	{0, "cotangent", "NAME", C | R | V | B | O | CODE, PARSE(parse_cotangent),
     "what comes in for the FETCH of the --grad in front of it is a new input NAME, not ones"},
	{0, "train", "RECIPE", C | R | V | B | I | CODE, TEXT(train),
     "a training step: loss, optimizer and schedule as the YAML file RECIPE says; inputs are the "
     "model's and a label, outputs the loss and metrics; compile: PREFIX_train_step"},
	{0, "remat", "WHEN", C | R | V | B | I | O | CODE, WORD(remat, "auto|always|never"),
     "what rounds of a loop compute and --grad and --train need is computed again backwards, not "
     "kept: where that costs less (auto, the default), where fewer bytes are kept (always), or "
     "where it must be (never)"},
	{0, "stack-budget", "BYTES", C | R | V | B | I | O | CODE, COUNT(stack_budget),
     "what loops keep for --grad and --train is at most BYTES: rounds run again where it would be "
     "more"},
	{0, "out-dir", "DIR", R | V, TEXT(out_dir),
     "write DIR/<run>/<fetch>.npy; verify: what the program gave as it was read"},
	{0, "cc", "CC", C | R | V | B, TEXT(cc), "the external C compiler (default: $CC, else cc)"},
	{0, "cflags", "FLAGS", C | R | V | B, TEXT(cflags), "further flags for it"},
	{0, "keep", "DIR", R | B, TEXT(keep), "keep the generated files in DIR"},
	{0, "redzone", NULL, R, FLAG(redzone),
     "surround workspace and outputs with guard bytes and check them"},
	{0, "threads", "N|max", C | R | V | B | I | O | CODE, PARSE(parse_threads),
     "C: up to N threads share a run (compile: PREFIX_threads says how many, and whose; compile "
     "with -pthread); max: 64; run, verify, bench: as many as there are processors"},
	{0, "max-trip", "N", C | R | V | B | CODE, COUNT(max_trip),
     "a loop that takes more than N rounds ends the run with a status"},
	{0, "max-array", "N", C | R | V | B | CODE, COUNT(max_array),
     "room for N elements in a tensor array where the model does not say (default: a member of "
     "dims)"},
	{0, "allow-tf32", NULL, C | R | V | B | I | O | CODE, FLAG(allow_tf32),
     "cuda: products of f32 on tensor cores, from operands rounded to 10 bits of fraction"},
	{0, "winograd", "WHEN", C | R | V | B | I | O | CODE, WORD(winograd, "auto|off"),
     "C: convolutions by 3 x 3 filters through Winograd's transforms where that is faster (auto, "
     "the default), or never (off)"},
	{0, "map", "FILE", C, TEXT(map),
     "C: write what each line does of the model to FILE, as JSON: lines, functions, operators with "
     "block and number"},
	{0, "trace", NULL, C | R | CODE, FLAG(trace),
     "C: PREFIX_trace(&m, f, arg), and f is told of each operator of a run: when it begins and "
     "ends, and what it gave; run: prints that"},
	{0, "assert-finite", NULL, C | R | V | CODE, FLAG(assert_finite),
     "C: an infinity or NaN, in inputs or what an operator gives, ends the run and names the "
     "operator"},
	{0, "repeat", "N", B, COUNT(repeat), "timed runs (default: about two seconds)"},
	{0, "html", "FILE", I, TEXT(html),
     "write one page: graph, memory over time, cost per operator, the model beside its C"},
	{0, "measured", "FILE", I, TEXT(measured),
     "with --html: cost per operator as `bench --profile --json` printed it to FILE"},
	{0, "profile", NULL, B, FLAG(profile),
     "C: time, rate, bytes and share of the machine's peak of each step"},
	{0, "json", NULL, I | B | D, FLAG(json), "print JSON; bench: with --profile"},
	{0, "passes", "A,B", O, TEXT(passes), "the passes to run, in order"},
	{0, "time-report", NULL, ALL, FLAG(time_report), "print the time of each stage"},
	{0, "verify-each", NULL, ALL, FLAG(verify), "verify the IR after every pass"},
	{0, "print-before", "PASS", ALL, PARSE(parse_print_before),
     "print the IR before each run of PASS, or all passes, on standard error"},
	{0, "print-after", "PASS", ALL, PARSE(parse_print_after), "print the IR after each run of it"},
	{0, "-Werror", NULL, ALL, FLAG(werror), "warnings are errors"},
	{0, "color", "WHEN", ALL, WORD(colour, "auto|always|never"), "auto, always or never"},
	{0, "completion", "SHELL", C, PRINT(print_completion),
     "print completion code for bash, zsh or fish"},
	{0, "man", NULL, C, PRINT(print_man), "print the manual page"},
	{'h', "help", NULL, ALL, PRINT(print_help), "print this help"},
	{0, "version", NULL, C, PRINT(print_version), "print the version"},
};

const OptionSpec *option_table(int *n)
{
	*n = (int)COUNT_OF(table);
	return table;
}

// ---- the command line ---------------------------------------------------------------------------

static bool option_apply(Context *c, Options *o, const OptionSpec *s, const char *v)
{
	char name[40];
	void *member = (char *)o + s->member;
	switch (s->kind) {
	case OPTION_FLAG: return *(bool *)member = true;
	case OPTION_COUNT: return parse_count(o, spec_text(s, name, sizeof name), v, member);
	case OPTION_WORD:
		*(const char **)member = v;
		return one_of(o, spec_text(s, name, sizeof name), v, s->words);
	case OPTION_TEXT: *(const char **)member = v; return true;
	default: return s->parse(c, o, v);
	}
}

// The option that argv word `a` names; *value is what follows `=` or the letter, or NULL.
static const OptionSpec *option_find(const char *a, const char **value)
{
	*value = NULL;
	for (size_t i = 0; i < COUNT_OF(table); i++) {
		const OptionSpec *s = &table[i];
		if (s->name[0] == '-') {
			if (!strcmp(a, s->name))
				return s;
			continue;
		}
		if (s->letter && a[1] == s->letter) {
			*value = a[2] ? a + 2 : NULL;
			if (!a[2] || s->arg)
				return s;
		}
		size_t n = strlen(s->name);
		if (a[1] == '-' && !strncmp(a + 2, s->name, n) && (!a[2 + n] || a[2 + n] == '=')) {
			*value = a[2 + n] ? a + 3 + n : NULL;
			return s;
		}
	}
	return NULL;
}

static const char *option_meant(Context *c, const Options *o, const char *word)
{
	const char *names[COUNT_OF(table)];
	int n = 0;
	for (size_t i = 0; i < COUNT_OF(table); i++) {
		const OptionSpec *s = &table[i];
		if (s->commands & 1u << o->command && s->name[0] != '-')
			names[n++] = arena_printf(c->arena, "--%s", s->name);
	}
	return name_meant(c->arena, context_strn(c, word, strcspn(word, "=")), n, names);
}

static bool bench_check(const Options *o)
{
	if (!strcmp(o->target, "interp"))
		return usage_error(o, "--target takes one of c|cuda, not 'interp'");
	if (o->profile && strcmp(o->target, "c"))
		return usage_error(o, "--profile measures C; `info --target cuda` has figures of CUDA");
	if (o->json && !o->profile)
		return usage_error(o, "--json goes with --profile");
	return true;
}

static bool info_check(const Options *o)
{
	return !o->measured || o->html || usage_error(o, "--measured goes with --html");
}

static bool budget_check(const Options *o)
{
	return !o->stack_budget || o->train || o->nderivative ||
	       usage_error(o, "--stack-budget goes with --grad or --train");
}

static bool depfile_check(const Options *o)
{
	if (o->depfile && !o->depfile_path && (!o->output || !strcmp(o->output, "-")))
		return usage_error(o, "-MD needs -o FILE or -MF FILE");
	if ((o->depfile_target || o->depfile_phony) && !o->depfile)
		return usage_error(o, "-MT and -MP go with -MD");
	return true;
}

static bool train_check(const Options *o)
{
	return !o->train || !o->nderivative ||
	       usage_error(o, "--train makes the gradients itself; --%s does not go with it",
	                   o->derivatives[0].forward ? "jvp" : "grad");
}

static bool options_check(const Options *o)
{
	if (!o->model)
		return usage_error(o, "no model given");
	if (o->command == CMD_COMPILE && !o->output && o->emit == EMIT_DEFAULT)
		return usage_error(o, "no output given (-o FILE)");
	if (o->command == CMD_DIFF && !o->other)
		return usage_error(o, "no second model given");
	if (o->command == CMD_RUN && !o->out_dir)
		return usage_error(o, "no --out-dir given");
	if ((o->command == CMD_INFO && !info_check(o)) || (o->command == CMD_BENCH && !bench_check(o)))
		return false;
	if (o->threads > 1 && !strcmp(o->target, "cuda"))
		return usage_error(o, "--threads is for C; the threads of CUDA are the GPU's");
	return train_check(o) && budget_check(o) && depfile_check(o);
}

static bool model_take(Context *c, Options *o, const char *word)
{
	if (o->command == CMD_DIFF && o->model && !o->other) {
		o->other = word;
		return true;
	}
	if (o->model)
		return usage_error(o, "two models given: '%s' and '%s'%s", o->model, word,
		                   command_meant(c, o->model));
	o->model = word;
	return true;
}

// An option and its value, NULL where none is given; false after a diagnostic.
static bool option_take(Context *c, Options *o, const OptionSpec *s, const char *word,
                        const char *value)
{
	if (!s->arg && value)
		return usage_error(o, "option '%s' takes no value", word);
	if (s->arg && !value)
		return usage_error(o, "option '%s' needs a value (%s)", word, s->arg);
	if (!option_apply(c, o, s, value))
		return false;
	if (s->commands & CODE)
		o->given = arena_printf(c->arena, "%s%s--%s%s%s", o->given, *o->given ? " " : "", s->name,
		                        s->arg ? "=" : "", s->arg ? value : "");
	return true;
}

// The command that the word names; CMD_COMPILE: none.
static Command command_find(const char *word)
{
	for (int k = 1; k < CMD_COUNT; k++)
		if (!strcmp(word, commands[k].name))
			return (Command)k;
	return CMD_COMPILE;
}

OptionsResult options_parse(Context *c, int argc, char **argv, Options *o)
{
	*o = (Options){.command = CMD_COMPILE,
	               .given = "",
	               .colour = "auto",
	               .winograd = "auto",
	               .remat = "auto",
	               .target = "c",
	               .threads = 1,
	               .rtol = 1e-5,
	               .atol = 1e-5};
	o->command = argc > 1 ? command_find(argv[1]) : CMD_COMPILE;
	int i = o->command == CMD_COMPILE ? 1 : 2;
	bool words_only = false;
	for (; i < argc; i++) {
		const char *a = argv[i], *value;
		if (words_only || a[0] != '-' || !a[1]) {
			if (!model_take(c, o, a))
				return OPTIONS_USAGE;
			continue;
		}
		if (!strcmp(a, "--")) {
			words_only = true;
			continue;
		}
		const OptionSpec *s = option_find(a, &value);
		if (!s || !(s->commands & 1u << o->command)) {
			usage_error(o, "unknown option '%s'%s", a, option_meant(c, o, a));
			return OPTIONS_USAGE;
		}
		if (s->arg && !value && i + 1 < argc)
			value = argv[++i];
		if (!option_take(c, o, s, a, value))
			return OPTIONS_USAGE;
		if (s->kind == OPTION_PRINT)
			return OPTIONS_DONE;
	}
	return options_check(o) ? OPTIONS_OK : OPTIONS_USAGE;
}
