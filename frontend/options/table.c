// The option table: what each is called, which commands take it, and what becomes of its value.
#include "frontend/options/values.h"

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
     "C: convolutions of stride 1 through Winograd's transforms where that is faster (auto, "
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

const char *option_text(const OptionSpec *s, char *buf, size_t n)
{
	if (s->letter)
		snprintf(buf, n, "-%c", s->letter);
	else
		snprintf(buf, n, "%s%s", s->name[0] == '-' ? "" : "--", s->name);
	return buf;
}
