// `--help`, and the other options that print something and end. Called through the table.
#include "frontend/options/values.h"
#include "lower/lower.h"

#include <stdio.h>

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
	fprintf(to, "pdcc %s%s%s [options]\n%s\n\n", command_name(c), *command_name(c) ? " " : "",
	        command_arguments(c), command_summary(c));
	if (c == CMD_COMPILE) {
		fprintf(to, "Other commands (pdcc COMMAND --help):\n");
		for (int i = 1; i < CMD_COUNT; i++)
			fprintf(to, "  %-8s %s\n", command_name((Command)i), command_summary((Command)i));
		fprintf(to, "\n");
	}
	fprintf(to, "Options:\n");
	int n;
	const OptionSpec *options = option_table(&n);
	for (const OptionSpec *s = options; s < options + n; s++) {
		char name[40], left[80];
		if (!(s->commands & 1u << c))
			continue;
		snprintf(left, sizeof left, "%s%s%s", option_text(s, name, sizeof name), s->arg ? " " : "",
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

// ---- options that print and end -----------------------------------------------------------------

bool print_help(Context *c, Options *o, const char *v)
{
	(void)c, (void)v;
	help_print(stdout, o->command);
	return true;
}

bool print_version(Context *c, Options *o, const char *v)
{
	(void)c, (void)o, (void)v;
	return puts("pdcc " PDCC_VERSION) >= 0;
}

bool print_man(Context *c, Options *o, const char *v)
{
	(void)c, (void)o, (void)v;
	man_print(stdout);
	return true;
}

bool print_completion(Context *c, Options *o, const char *v)
{
	(void)c;
	return completion_print(stdout, v) ||
	       usage_error(o, "--completion takes bash, zsh or fish, not '%s'", v);
}
