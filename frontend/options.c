// The option table and its parser.
#include "options.h"

#include "../lower/lower.h"

#include <stdlib.h>
#include <string.h>

#ifndef PDCC_VERSION
#define PDCC_VERSION "0.1.0"
#endif

enum {
	C = 1u << CMD_COMPILE, R = 1u << CMD_RUN, V = 1u << CMD_VERIFY, B = 1u << CMD_BENCH, I = 1u << CMD_INFO,
	O = 1u << CMD_OPT, ALL = C | R | V | B | I | O
};

enum OptionId {
	OPT_OUTPUT, OPT_EMIT, OPT_ISA, OPT_PREFIX, OPT_WEIGHTS, OPT_SHAPE, OPT_PARAMS, OPT_PARAM_NAMES, OPT_CALL, OPT_MD,
	OPT_MF, OPT_WERROR, OPT_COLOUR, OPT_TIME_REPORT, OPT_VERIFY_EACH, OPT_TARGET, OPT_CC, OPT_CFLAGS, OPT_OUT_DIR, OPT_IN, OPT_LOD,
	OPT_NEXT, OPT_KEEP, OPT_REDZONE, OPT_THREADS, OPT_REPEAT, OPT_HTML, OPT_JSON, OPT_PASSES, OPT_COMPLETION, OPT_MAN,
	OPT_HELP, OPT_VERSION
};

static const OptionSpec table[] = {
	{'o', "output", "FILE", C | O, "write FILE, - is standard output; compile: its suffix (.c .cu .h .so .pdir .cfg .dot .json) says what", OPT_OUTPUT},
	{0, "emit", "KIND", C, "c, cuda, header, ir, cfg, dot or json, whatever the suffix", OPT_EMIT},
	{0, "isa", "ISA", C | R | V | B | I | O, "avx512, avx2, sse4, neon, generic (plain C11) or native; compile: generic, else native", OPT_ISA},
	{0, "shape", "NAME=D,D", C | R | V | B | I, "pin the dims of feed NAME; -1 leaves one symbolic", OPT_SHAPE},
	{0, "params", "FILE", ALL, "parameters: a combined file or a folder (default: beside the model)", OPT_PARAMS},
	{0, "param-names", "A,B", ALL, "the parameters that FILE holds, when not all", OPT_PARAM_NAMES},
	{0, "prefix", "NAME", C, "prefix of every symbol (default: from the output's name)", OPT_PREFIX},
	{0, "weights", "HOW", C, "inline, file or object (default: inline below 64 KiB, else file)", OPT_WEIGHTS},
	{0, "call", NULL, C, "also emit PREFIX_call(inputs, outputs), with a workspace of its own", OPT_CALL},
	{0, "-MD", NULL, C, "write a make rule with the files read, to OUT.d", OPT_MD},
	{0, "-MF", "FILE", C, "write that rule to FILE", OPT_MF},
	{0, "target", "T", R, "c (default) or interp, the interpreter", OPT_TARGET},
	{0, "in", "NAME=FILE", R | V | B, "feed NAME from a .npy file", OPT_IN},
	{0, "lod", "NAME=0,2,5[;..]", R, "the LoD of feed NAME: offsets, level by level (interpreter only)", OPT_LOD},
	{0, "next", NULL, R, "start another run on the same state", OPT_NEXT},
	{0, "out-dir", "DIR", R, "write DIR/<run>/<fetch>.npy", OPT_OUT_DIR},
	{0, "cc", "CC", C | R | V | B, "the external C compiler (default: $CC, else cc)", OPT_CC},
	{0, "cflags", "FLAGS", C | R | V | B, "further flags for it", OPT_CFLAGS},
	{0, "keep", "DIR", R | B, "keep the generated files in DIR", OPT_KEEP},
	{0, "redzone", NULL, R, "surround workspace and outputs with guard bytes and check them", OPT_REDZONE},
	{0, "threads", "N", B, "threads; 1 is all that there is so far", OPT_THREADS},
	{0, "repeat", "N", B, "timed runs (default: about two seconds)", OPT_REPEAT},
	{0, "html", "FILE", I, "write one page: graph, memory over time, cost per operator", OPT_HTML},
	{0, "json", NULL, I, "print JSON", OPT_JSON},
	{0, "passes", "A,B", O, "the passes to run, in order", OPT_PASSES},
	{0, "time-report", NULL, ALL, "print the time of each stage", OPT_TIME_REPORT},
	{0, "verify-each", NULL, ALL, "verify the IR after every pass", OPT_VERIFY_EACH},
	{0, "-Werror", NULL, ALL, "warnings are errors", OPT_WERROR},
	{0, "color", "WHEN", ALL, "auto, always or never", OPT_COLOUR},
	{0, "completion", "SHELL", C, "print completion code for bash, zsh or fish", OPT_COMPLETION},
	{0, "man", NULL, C, "print the manual page", OPT_MAN},
	{'h', "help", NULL, ALL, "print this help", OPT_HELP},
	{0, "version", NULL, C, "print the version", OPT_VERSION},
};

static const struct {
	const char *name, *arg, *summary;
} commands[CMD_COUNT] = {
	[CMD_COMPILE] = {"", "MODEL -o OUT", "compile a model to C, CUDA or a shared library"},
	[CMD_RUN] = {"run", "MODEL", "compile, build and run it on .npy files"},
	[CMD_VERIFY] = {"verify", "MODEL", "compare the interpreter and C on the same inputs"},
	[CMD_BENCH] = {"bench", "MODEL", "measure latency and memory"},
	[CMD_INFO] = {"info", "MODEL", "inputs, outputs, operators, parameters, MACs, memory"},
	[CMD_OPT] = {"opt", "FILE", "IR text to IR text through chosen passes"},
};

const OptionSpec *option_table(int *n)
{
	*n = (int)COUNT_OF(table);
	return table;
}

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
	fprintf(to, "pdcc %s%s%s [options]\n%s\n\n", commands[c].name, *commands[c].name ? " " : "", commands[c].arg,
	        commands[c].summary);
	if (c == CMD_COMPILE) {
		fprintf(to, "Other commands (pdcc COMMAND --help):\n");
		for (int i = 1; i < CMD_COUNT; i++)
			fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
		fprintf(to, "\n");
	}
	fprintf(to, "Options:\n");
	for (size_t i = 0; i < COUNT_OF(table); i++) {
		char name[40], left[80];
		if (!(table[i].commands & 1u << c))
			continue;
		snprintf(left, sizeof left, "%s%s%s", spec_text(&table[i], name, sizeof name), table[i].arg ? " " : "",
		         table[i].arg ? table[i].arg : "");
		fprintf(to, "  %-20s %s\n", left, table[i].help);
	}
	if (c == CMD_OPT)
		passes_print(to);
	if (c == CMD_OPT || c == CMD_COMPILE)
		fprintf(to, "\nExit status: 0 done, 1 an error in the input, 2 wrong usage.\n");
}

static bool usage_error(const Options *o, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool usage_error(const Options *o, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("pdcc: error: ", stderr);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\ntry 'pdcc %s%s--help'\n", command_name(o->command), *command_name(o->command) ? " " : "");
	return false;
}

// ---- values -----------------------------------------------------------------------------------------------

static bool parse_emit(Options *o, const char *v)
{
	static const struct {
		const char *name;
		EmitKind kind;
	} kinds[] = {{"c", EMIT_C}, {"cuda", EMIT_CUDA}, {"header", EMIT_HEADER}, {"ir", EMIT_IR}, {"cfg", EMIT_CFG},
	             {"dot", EMIT_DOT}, {"json", EMIT_JSON}};
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		if (!strcmp(kinds[i].name, v)) {
			o->emit = kinds[i].kind;
			return true;
		}
	}
	return usage_error(o, "--emit takes c, cuda, header, ir, cfg, dot or json, not '%s'", v);
}

static bool parse_count(const Options *o, const char *name, const char *v, int *out)
{
	char *end;
	long n = strtol(v, &end, 10);
	if (*end || end == v || n < 1 || n > 1000000)
		return usage_error(o, "%s takes a whole number from 1, not '%s'", name, v);
	*out = (int)n;
	return true;
}

static bool parse_names(Context *c, Options *o, const char *v)
{
	int n = 1;
	for (const char *p = v; *p; p++)
		n += *p == ',';
	o->param_names = NEW_ARRAY(c->arena, (size_t)n, const char *);
	o->nparam_names = 0;
	for (const char *p = v;; p++) {
		size_t len = strcspn(p, ",");
		o->param_names[o->nparam_names++] = context_strn(c, p, len);
		p += len;
		if (!*p)
			return true;
	}
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

static RunCall *next_call(Context *c, Options *o)
{
	RunCall *calls = NEW_ARRAY(c->arena, (size_t)o->ncall + 1, RunCall);
	if (o->ncall)
		memcpy(calls, o->calls, (size_t)o->ncall * sizeof *calls);
	o->calls = calls;
	return &calls[o->ncall++];
}

static bool parse_input(Context *c, Options *o, const char *v)
{
	const char *eq = strrchr(v, '=');
	// A name may hold '=', a path may too: the first split whose path part looks like a file wins.
	for (const char *p = strchr(v, '='); p; p = strchr(p + 1, '=')) {
		if (strchr(p, '/') || !strchr(p + 1, '=')) {
			eq = p;
			break;
		}
	}
	if (!eq || eq == v || !eq[1])
		return usage_error(o, "--in takes NAME=FILE.npy, not '%s'", v);
	RunCall *call = o->ncall ? &o->calls[o->ncall - 1] : next_call(c, o);
	if (call->ninput == call->cap) {
		int cap = call->cap ? call->cap * 2 : 8;
		RunInput *inputs = NEW_ARRAY(c->arena, (size_t)cap, RunInput);
		if (call->ninput)
			memcpy(inputs, call->inputs, (size_t)call->ninput * sizeof *inputs);
		call->inputs = inputs;
		call->cap = cap;
	}
	call->inputs[call->ninput++] = (RunInput){.name = context_strn(c, v, (size_t)(eq - v)), .path = eq + 1};
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

static bool option_apply(Context *c, Options *o, int id, const char *v)
{
	switch (id) {
	case OPT_OUTPUT:
		o->output = v;
		return true;
	case OPT_EMIT:
		return parse_emit(o, v);
	case OPT_ISA:
		o->isa = v;
		return one_of(o, "--isa", v, "avx512|avx2|sse4|neon|generic|native|cuda");
	case OPT_PREFIX:
		o->prefix = v;
		return true;
	case OPT_WEIGHTS:
		o->weights = v;
		return one_of(o, "--weights", v, "inline|file|object");
	case OPT_SHAPE:
		return parse_shape(c, o, v);
	case OPT_PARAMS:
		o->params = v;
		return true;
	case OPT_PARAM_NAMES:
		return parse_names(c, o, v);
	case OPT_CALL:
		return o->call = true;
	case OPT_MD:
		return o->depfile = true;
	case OPT_MF:
		o->depfile_path = v;
		return o->depfile = true;
	case OPT_WERROR:
		return o->werror = true;
	case OPT_COLOUR:
		o->colour = v;
		return one_of(o, "--color", v, "auto|always|never");
	case OPT_TIME_REPORT:
		return o->time_report = true;
	case OPT_VERIFY_EACH:
		return o->verify = true;
	case OPT_TARGET:
		o->target = v;
		return one_of(o, "--target", v, "c|cuda|interp");
	case OPT_CC:
		o->cc = v;
		return true;
	case OPT_CFLAGS:
		o->cflags = v;
		return true;
	case OPT_OUT_DIR:
		o->out_dir = v;
		return true;
	case OPT_IN:
		return parse_input(c, o, v);
	case OPT_LOD:
		return parse_lod(c, o, v);
	case OPT_NEXT:
		if (!o->ncall)
			next_call(c, o);
		next_call(c, o);
		return true;
	case OPT_KEEP:
		o->keep = v;
		return true;
	case OPT_REDZONE:
		return o->redzone = true;
	case OPT_THREADS:
		return parse_count(o, "--threads", v, &o->threads);
	case OPT_REPEAT:
		return parse_count(o, "--repeat", v, &o->repeat);
	case OPT_HTML:
		o->html = v;
		return true;
	case OPT_JSON:
		return o->json = true;
	default:
		o->passes = v;
		return true;
	}
}

// ---- the command line --------------------------------------------------------------------------------------

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

static OptionsResult option_print(const Options *o, int id, const char *v)
{
	switch (id) {
	case OPT_HELP:
		help_print(stdout, o->command);
		return OPTIONS_DONE;
	case OPT_VERSION:
		puts("pdcc " PDCC_VERSION);
		return OPTIONS_DONE;
	case OPT_MAN:
		man_print(stdout);
		return OPTIONS_DONE;
	default:
		if (completion_print(stdout, v))
			return OPTIONS_DONE;
		usage_error(o, "--completion takes bash, zsh or fish, not '%s'", v);
		return OPTIONS_USAGE;
	}
}

static bool options_check(const Options *o)
{
	if (!o->model)
		return usage_error(o, "no model given");
	if (o->command == CMD_COMPILE && !o->output && o->emit == EMIT_DEFAULT)
		return usage_error(o, "no output given (-o FILE)");
	if (o->command == CMD_RUN && !o->out_dir)
		return usage_error(o, "no --out-dir given");
	if (o->threads > 1)
		return usage_error(o, "--threads %d: generated code runs on one thread so far", o->threads);
	if (o->depfile && !o->depfile_path && (!o->output || !strcmp(o->output, "-")))
		return usage_error(o, "-MD needs -o FILE or -MF FILE");
	return true;
}

OptionsResult options_parse(Context *c, int argc, char **argv, Options *o)
{
	*o = (Options){.command = CMD_COMPILE, .colour = "auto", .target = "c", .threads = 1};
	int i = 1;
	for (int k = 1; k < CMD_COUNT && argc > 1; k++) {
		if (!strcmp(argv[1], commands[k].name)) {
			o->command = (Command)k;
			i = 2;
		}
	}
	bool words_only = false;
	for (; i < argc; i++) {
		const char *a = argv[i], *value;
		if (words_only || a[0] != '-' || !a[1]) {
			if (o->model) {
				usage_error(o, "two models given: '%s' and '%s'", o->model, a);
				return OPTIONS_USAGE;
			}
			o->model = a;
			continue;
		}
		if (!strcmp(a, "--")) {
			words_only = true;
			continue;
		}
		const OptionSpec *s = option_find(a, &value);
		if (!s || !(s->commands & 1u << o->command)) {
			usage_error(o, "unknown option '%s'", a);
			return OPTIONS_USAGE;
		}
		if (!s->arg && value) {
			usage_error(o, "option '%s' takes no value", a);
			return OPTIONS_USAGE;
		}
		if (s->arg && !value && i + 1 == argc) {
			usage_error(o, "option '%s' needs a value (%s)", a, s->arg);
			return OPTIONS_USAGE;
		}
		if (s->arg && !value)
			value = argv[++i];
		if (s->id >= OPT_COMPLETION)
			return option_print(o, s->id, value);
		if (!option_apply(c, o, s->id, value))
			return OPTIONS_USAGE;
	}
	return options_check(o) ? OPTIONS_OK : OPTIONS_USAGE;
}
