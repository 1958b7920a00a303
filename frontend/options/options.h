// The command line: one table from which parsing, --help, the man page and shell completion come.
// Leaves Options, what each command was asked for, or a message on standard error. Uses what the
// options speak of: passes, derivatives, instruction sets, names of C.
#ifndef PDCC_FRONTEND_OPTIONS_H
#define PDCC_FRONTEND_OPTIONS_H

#include "codegen/func/options.h"
#include "frontend/read/read.h"
#include "frontend/translate/translate.h"
#include "lower/grad/grad.h"

#define PDCC_VERSION "0.1.0"

typedef enum Command {
	CMD_COMPILE,
	CMD_RUN,
	CMD_VERIFY,
	CMD_BENCH,
	CMD_INFO,
	CMD_OPT,
	CMD_DIFF,
	CMD_COUNT
} Command;

typedef enum EmitKind {
	EMIT_DEFAULT,
	EMIT_C,
	EMIT_CUDA,
	EMIT_HEADER,
	EMIT_IR,
	EMIT_CFG,
	EMIT_DOT,
	EMIT_JSON,
	EMIT_LEGACY,
	EMIT_SHARED
} EmitKind;

typedef struct RunInput {
	const char *name, *path;
	const char *lod; // `0,2,5;0,1,3,4,6,9`: a list of offsets per level; NULL: none
} RunInput;

// One execution: what `--in` said since the start or the last `--next`.
typedef struct RunCall {
	int ninput, cap;
	RunInput *inputs;
} RunCall;

typedef struct Options {
	Command command;
	const char *model;
	const char *output; // -o
	EmitKind emit;
	const char *isa; // NULL: the command's default
	const char *prefix, *weights;
	const char *params;
	const char *other, *other_params; // diff: the second model
	bool diff_c, diff_ir;             // diff: which texts it compares, too
	int nparam_names;
	const char **param_names;
	int npins;
	ShapePin *pins;
	const char *print_before, *print_after;
	bool call, depfile, werror, time_report, verify, json;
	const char *depfile_path;   // -MF
	const char *depfile_target; // -MT, as it is to stand there; NULL: the output
	bool depfile_phony;         // -MP
	const char *colour;         // auto, always, never
	const char *target, *cc, *cflags, *out_dir, *keep;
	const char *arch; // "sm_80,sm_90"; NULL: that of the GPU which is here
	int ncall;
	RunCall *calls;
	int nexpect;
	RunInput *expect;  // fetches, and what they should be
	double rtol, atol; // of --expect
	int threads, repeat;
	int max_trip;         // 0: any number
	const char *remat;    // auto, always, never
	int stack_budget;     // bytes; 0: any number
	int max_array;        // 0: the caller of the generated code says it
	const char *winograd; // auto, off
	bool profile;         // bench: of each step
	bool trace, assert_finite;
	const char *map; // where the source map goes; NULL: none
	bool redzone, cuda_libs, allow_tf32;
	const char *html, *measured, *passes, *load_state, *save_state, *save_params;
	const char *writable; // "all" or "A,B"
	int nderivative;
	Derivative *derivatives; // as --grad and --jvp ask for them, in order
	const char *train;       // the recipe of a training step; NULL: none
	int nsize_name, ninput_name, noutput_name;
	NamePair *size_names, *input_names, *output_names;
	const char *given; // the options that generated code hangs on, as they were given; or ""
} Options;

typedef enum OptionsResult {
	OPTIONS_OK,
	OPTIONS_DONE /* --help and the like */,
	OPTIONS_USAGE
} OptionsResult;

// Fills *o from argv. Messages for wrong usage go to stderr; help, version and completion to
// stdout.
OptionsResult options_parse(Context *c, int argc, char **argv, Options *o);

typedef enum OptionKind {
	OPTION_TEXT,
	OPTION_FLAG,
	OPTION_COUNT,
	OPTION_WORD,  // stored in a member of Options
	OPTION_PARSE, // handed to `parse`
	OPTION_PRINT  // `parse` prints something, and that is all
} OptionKind;

// Generated code hangs on it, and says so.
enum { OPTION_IN_CODE = 1u << 16 };

typedef struct OptionSpec {
	char letter;       // 0: none
	const char *name;  // without dashes; single-dash words (-MD) are listed with their dash
	const char *arg;   // metavariable; NULL: a flag
	unsigned commands; // bit per Command, and OPTION_IN_CODE
	OptionKind kind;
	size_t member;                                            // offset in Options
	const char *words;                                        // OPTION_WORD: "a|b|c"
	bool (*parse)(Context *c, Options *o, const char *value); // false after a message
	const char *help;
} OptionSpec;

const OptionSpec *option_table(int *n);
const char *command_name(Command c); // "run"; "" for compile
const char *command_summary(Command c);

// completion.c: print for `--completion=bash|zsh|fish` and `--man`, from the table.
bool completion_print(FILE *to, const char *shell);
void man_print(FILE *to);

#endif
