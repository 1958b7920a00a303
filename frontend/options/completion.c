// Shell completion and the manual page, printed from the option table.
#include "frontend/options/options.h"

#include <string.h>

static const char *dashes(const OptionSpec *s)
{
	return s->name[0] == '-' ? "" : "--";
}

static void bash_print(FILE *to)
{
	int n;
	const OptionSpec *t = option_table(&n);
	fputs("_pdcc() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]} opts\n\tcase $cmd "
	      "in\n",
	      to);
	for (int c = CMD_COUNT - 1; c >= 0; c--) {
		fprintf(to, "\t%s) opts='", c ? command_name((Command)c) : "*");
		if (!c) {
			for (int k = 1; k < CMD_COUNT; k++)
				fprintf(to, "%s ", command_name((Command)k));
		}
		for (int i = 0; i < n; i++) {
			if (t[i].commands & 1u << c)
				fprintf(to, "%s%s ", dashes(&t[i]), t[i].name);
		}
		fputs("' ;;\n", to);
	}
	fputs("\tesac\n\tCOMPREPLY=($(compgen -W \"$opts\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n}\n"
	      "complete -o filenames -F _pdcc pdcc\n",
	      to);
}

// Text inside single quotes of a shell and brackets of zsh.
static void quoted_print(FILE *to, const char *s, bool zsh)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", to);
		else if (zsh && strchr("[]:", *s))
			fprintf(to, "\\%c", *s);
		else
			fputc(*s, to);
	}
}

static void zsh_print(FILE *to)
{
	int n;
	const OptionSpec *t = option_table(&n);
	fputs("#compdef pdcc\n_arguments \\\n", to);
	for (int i = 0; i < n; i++) {
		fprintf(to, "\t'%s%s[", dashes(&t[i]), t[i].name);
		quoted_print(to, t[i].help, true);
		fprintf(to, "]%s%s%s' \\\n", t[i].arg ? ":" : "", t[i].arg ? t[i].arg : "",
		        t[i].arg ? ":_files" : "");
	}
	fputs("\t'1:command or model:_files' '*:file:_files'\n", to);
}

static void fish_print(FILE *to)
{
	int n;
	const OptionSpec *t = option_table(&n);
	for (int k = 1; k < CMD_COUNT; k++)
		fprintf(to, "complete -c pdcc -n __fish_use_subcommand -a %s -d '%s'\n",
		        command_name((Command)k), command_summary((Command)k));
	for (int i = 0; i < n; i++) {
		bool old = t[i].name[0] == '-';
		fprintf(to, "complete -c pdcc -%c %s%s -d '", old ? 'o' : 'l', t[i].name + old,
		        t[i].arg ? " -r" : "");
		quoted_print(to, t[i].help, false);
		fputs("'\n", to);
	}
}

bool completion_print(FILE *to, const char *shell)
{
	static const struct {
		const char *name;
		void (*print)(FILE *);
	} shells[] = {{"bash", bash_print}, {"zsh", zsh_print}, {"fish", fish_print}};
	for (size_t i = 0; i < COUNT_OF(shells); i++) {
		if (!strcmp(shells[i].name, shell)) {
			shells[i].print(to);
			return true;
		}
	}
	return false;
}

// Text in roff: backslashes and dashes escaped.
static void roff_print(FILE *to, const char *s)
{
	for (; *s; s++) {
		if (*s == '-' || *s == '\\')
			fputc('\\', to);
		fputc(*s, to);
	}
}

void man_print(FILE *to)
{
	int n;
	const OptionSpec *t = option_table(&n);
	fputs(".TH PDCC 1\n.SH NAME\npdcc \\- ahead\\-of\\-time compiler for Paddle models\n.SH "
	      "SYNOPSIS\n",
	      to);
	for (int c = 0; c < CMD_COUNT; c++)
		fprintf(to, ".B pdcc %s\n.RI [ options ]\n.I MODEL%s\n.br\n", command_name((Command)c),
		        c == CMD_DIFF ? " MODEL" : "");
	fputs(".SH DESCRIPTION\nReads a Paddle program (inference.json, .pdmodel or a __model__ "
	      "folder, with its parameters) and writes standalone "
	      "C or CUDA source that needs only a tiny runtime stub.\n.SH COMMANDS\n",
	      to);
	for (int c = 0; c < CMD_COUNT; c++) {
		fprintf(to, ".TP\n.B %s\n", c ? command_name((Command)c) : "(none)");
		roff_print(to, command_summary((Command)c));
		fputs("\n", to);
	}
	fputs(".SH OPTIONS\n", to);
	for (int i = 0; i < n; i++) {
		fputs(".TP\n.B ", to);
		if (t[i].letter)
			fprintf(to, "\\-%c, ", t[i].letter);
		roff_print(to, dashes(&t[i]));
		roff_print(to, t[i].name);
		if (t[i].arg)
			fprintf(to, " \\fI%s\\fR", t[i].arg);
		fputs("\n", to);
		roff_print(to, t[i].help);
		fputs("\n", to);
	}
	fputs(".SH EXIT STATUS\n0 done, 1 an error in the input, 2 wrong usage. pdcc diff: 0 no "
	      "difference, 1 some, 2 trouble.\n",
	      to);
}
