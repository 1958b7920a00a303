// The commands, and what is said of a command line that is wrong. Called by all files of the room.
#include "frontend/options/values.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

const char *command_arguments(Command c)
{
	return commands[c].arg;
}

const char *command_summary(Command c)
{
	return commands[c].summary;
}

Command command_find(const char *word)
{
	for (int k = 1; k < CMD_COUNT; k++)
		if (!strcmp(word, commands[k].name))
			return (Command)k;
	return CMD_COMPILE;
}

const char *command_meant(Context *c, const char *word)
{
	const char *names[CMD_COUNT];
	for (int i = 0; i < CMD_COUNT; i++)
		names[i] = commands[i].name;
	return name_meant(c->arena, word, CMD_COUNT, names);
}

bool usage_error(const Options *o, const char *fmt, ...)
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
