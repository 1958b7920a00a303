// What the files of this room share: commands and messages, and functions that the table names.
#ifndef PDCC_OPTIONS_VALUES_H
#define PDCC_OPTIONS_VALUES_H

#include "frontend/options/options.h"

// commands.c
const char *command_arguments(Command c);
Command command_find(const char *word); // CMD_COMPILE: none is called so
// " (did you mean ...)" of a word that may have been meant for a command, or "".
const char *command_meant(Context *c, const char *word);
bool usage_error(const Options *o, const char *fmt, ...) PRINTF_LIKE(2, 3); // false

// table.c: "--name", "-MD" or "-o", in buf.
const char *option_text(const OptionSpec *s, char *buf, size_t n);

// values.c. A whole number from 1; one of the words in `allowed`, which is a list like "a|b|c".
// False after a message.
bool parse_count(const Options *o, const char *name, const char *v, int *out);
bool one_of(const Options *o, const char *name, const char *v, const char *allowed);
// Of OPTION_PARSE.
bool parse_emit(Context *c, Options *o, const char *v);
bool parse_names(Context *c, Options *o, const char *v);
bool parse_grad(Context *c, Options *o, const char *v);
bool parse_jvp(Context *c, Options *o, const char *v);
bool parse_wrt(Context *c, Options *o, const char *v);
bool parse_cotangent(Context *c, Options *o, const char *v);
bool parse_shape(Context *c, Options *o, const char *v);
bool parse_size_name(Context *c, Options *o, const char *v);
bool parse_input_name(Context *c, Options *o, const char *v);
bool parse_output_name(Context *c, Options *o, const char *v);
bool parse_expect(Context *c, Options *o, const char *v);
bool parse_tolerance(Context *c, Options *o, const char *v);
bool parse_threads(Context *c, Options *o, const char *v);
bool parse_input(Context *c, Options *o, const char *v);
bool parse_lod(Context *c, Options *o, const char *v);
bool parse_print_before(Context *c, Options *o, const char *v);
bool parse_print_after(Context *c, Options *o, const char *v);
bool parse_depfile(Context *c, Options *o, const char *v);
bool parse_next(Context *c, Options *o, const char *v);
bool parse_arch(Context *c, Options *o, const char *v);

// help.c. Of OPTION_PRINT.
bool print_help(Context *c, Options *o, const char *v);
bool print_version(Context *c, Options *o, const char *v);
bool print_man(Context *c, Options *o, const char *v);
bool print_completion(Context *c, Options *o, const char *v);

#endif
