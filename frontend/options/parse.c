// The command line: finds options in the table, takes their values, and checks that what is given
// goes together. Called by frontend/driver.
#include "frontend/options/values.h"

#include <string.h>

static bool option_apply(Context *c, Options *o, const OptionSpec *s, const char *v)
{
	char name[40];
	void *member = (char *)o + s->member;
	switch (s->kind) {
	case OPTION_FLAG: return *(bool *)member = true;
	case OPTION_COUNT: return parse_count(o, option_text(s, name, sizeof name), v, member);
	case OPTION_WORD:
		*(const char **)member = v;
		return one_of(o, option_text(s, name, sizeof name), v, s->words);
	case OPTION_TEXT: *(const char **)member = v; return true;
	default: return s->parse(c, o, v);
	}
}

// The option that argv word `a` names; *value is what follows `=` or the letter, or NULL.
static const OptionSpec *option_find(const char *a, const char **value)
{
	*value = NULL;
	int n;
	const OptionSpec *table = option_table(&n);
	for (const OptionSpec *s = table; s < table + n; s++) {
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
		const size_t len = strlen(s->name);
		if (a[1] == '-' && !strncmp(a + 2, s->name, len) && (!a[2 + len] || a[2 + len] == '=')) {
			*value = a[2 + len] ? a + 3 + len : NULL;
			return s;
		}
	}
	return NULL;
}

static const char *option_meant(Context *c, const Options *o, const char *word)
{
	int all, n = 0;
	const OptionSpec *table = option_table(&all);
	const char **names = NEW_ARRAY(c->arena, (size_t)all, const char *);
	for (const OptionSpec *s = table; s < table + all; s++)
		if (s->commands & 1u << o->command && s->name[0] != '-')
			names[n++] = arena_printf(c->arena, "--%s", s->name);
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

// Whether what the command cannot do without is given.
static bool needed_check(const Options *o)
{
	if (!o->model)
		return usage_error(o, "no model given");
	if (o->command == CMD_COMPILE && !o->output && o->emit == EMIT_DEFAULT)
		return usage_error(o, "no output given (-o FILE)");
	if (o->command == CMD_DIFF && !o->other)
		return usage_error(o, "no second model given");
	return o->command != CMD_RUN || o->out_dir || usage_error(o, "no --out-dir given");
}

static bool threads_check(const Options *o)
{
	return o->threads <= 1 || strcmp(o->target, "cuda") ||
	       usage_error(o, "--threads is for C; the threads of CUDA are the GPU's");
}

static bool options_check(const Options *o)
{
	return needed_check(o) && (o->command != CMD_INFO || info_check(o)) &&
	       (o->command != CMD_BENCH || bench_check(o)) && threads_check(o) && train_check(o) &&
	       budget_check(o) && depfile_check(o);
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
	if (s->commands & OPTION_IN_CODE)
		o->given = arena_printf(c->arena, "%s%s--%s%s%s", o->given, *o->given ? " " : "", s->name,
		                        s->arg ? "=" : "", s->arg ? value : "");
	return true;
}

// Takes the option at argv[*at], and its value, which may be the next word.
static OptionsResult option_read(Context *c, Options *o, int argc, char **argv, int *at)
{
	const char *a = argv[*at], *value;
	const OptionSpec *s = option_find(a, &value);
	if (!s || !(s->commands & 1u << o->command)) {
		usage_error(o, "unknown option '%s'%s", a, option_meant(c, o, a));
		return OPTIONS_USAGE;
	}
	if (s->arg && !value && *at + 1 < argc)
		value = argv[++*at];
	if (!option_take(c, o, s, a, value))
		return OPTIONS_USAGE;
	return s->kind == OPTION_PRINT ? OPTIONS_DONE : OPTIONS_OK;
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
	OptionsResult r = OPTIONS_OK;
	bool words_only = false;
	for (; i < argc && r == OPTIONS_OK; i++) {
		const char *a = argv[i];
		if (words_only || a[0] != '-' || !a[1])
			r = model_take(c, o, a) ? OPTIONS_OK : OPTIONS_USAGE;
		else if (!strcmp(a, "--"))
			words_only = true;
		else
			r = option_read(c, o, argc, argv, &i);
	}
	return r != OPTIONS_OK ? r : options_check(o) ? OPTIONS_OK : OPTIONS_USAGE;
}
