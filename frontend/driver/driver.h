// What the commands share: loading, lowering, stages and their times, the external compiler.
#ifndef PDCC_DRIVER_H
#define PDCC_DRIVER_H

#include "codegen/codegen.h"
#include "codegen/text/text.h"
#include "frontend/options/options.h"
#include "lower/pass/pass.h"
#include "lower/target/target.h"

typedef struct Driver {
	Context *ctx;
	const Options *options;
	int nstage;
	struct Stage {
		const char *name;
		double seconds;
	} stages[24];
	double stage_start;
	bool progress_shown;
	int npersistable;
	const char *const *persistables; // of the model, sorted: what --save-state writes
	int nown;
	const char *const *own; // those of the model's file, without a training step's: --save-params
	int trouble;            // the exit status of what goes wrong: diff says 1 of a difference
	bool keeps_steps;       // the module is shown before passes: derivatives leave operators whole
	Context *second;        // diff: of the second model; else NULL
} Driver;

// stages.c: a stage begins (and the one before ends). Shown on a terminal once a second has passed.
void stage_begin(Driver *d, const char *name);
void stage_end(Driver *d);

// session.c
// Reads the model (ProgramDesc or .pdir) and its parameters into a module. NULL after diagnostics.
Op *driver_load(Driver *d);
// --isa, or `otherwise`; "native" becomes what this machine has. NULL after a diagnostic.
const Target *driver_target(Driver *d, const char *otherwise);
// The same for commands that run what they generate: as --target says.
const Target *driver_target_to_run(Driver *d);
// What the options say of passes over the module.
PassContext driver_passes(Driver *d, Op *module, const Target *t);
bool driver_lower(Driver *d, Op *module, const Target *t, const char *until);
// Generates code under `prefix`, for C or CUDA as the target says.
bool driver_codegen(Driver *d, Op *module, const Target *t, const CodegenOptions *o,
                    CodegenResult *r);

// depfile.c
// The rule of -MD for what was made from the files read so far. Without a path when none is wanted.
// It is written with the output, so that make never takes an output for complete whose rule is
// missing.
FilePiece depfile_make(Driver *d, const char *output);

// cmd_run.c
// An interpreter with what --in and --lod say fed. NULL after diagnostics.
Interp *driver_interpreter(Driver *d, const RunCall *call);
// Results of one interpreted run to --out-dir/<run>/<column>.npy, elements of arrays to
// <column>.<i>.npy.
bool driver_write_fetches(Driver *d, Interp *in, int run);

// cmd_verify.c: for verify_find.c, which says where two stages begin to differ.
// Runs a module on the inputs; `seen` (or NULL) is told of all values. NULL after diagnostics.
Interp *verify_interpret(Driver *d, Op *module,
                         void (*seen)(void *arg, const Value *v, const Tensor *t), void *arg);
// Whether two tensors agree, up to what other orders of summation change; *why says where not.
bool tensor_agrees(Driver *d, const Tensor *want, const Tensor *got, const char **why);
// The module through passes, with the options of the command line. False after diagnostics.
bool verify_lower(Driver *d, Op *module, const Target *t, const char *passes);
// verify_inputs.c: makes up the inputs of the first run that the command line does not give, and
// says so. False after diagnostics.
bool verify_inputs(Driver *d, Op *module);
// verify_find.c: names the first operator whose value `pass` changes, when `before` ran before it
// (a list of passes).
void verify_find_pass(Driver *d, const Target *t, const char *before, const char *pass);
void verify_find(Driver *d, Op *before, Op *after, const char *stage); // the same for two modules
// The same for generated CUDA, by fetching intermediate values too.
void verify_find_code(Driver *d, const Target *t);
// verify_trace.c: for generated C, which is compiled with --trace.
void verify_trace(Driver *d, const Target *t);

// verify_expect.c: what --expect says, and how well a stage gives it.
typedef struct Expected {
	const char *name;
	int col;
	Tensor *want;
} Expected;
typedef Tensor *ExpectedFetch(Driver *d, int col, void *arg); // what a stage gave; NULL: nothing
bool expect_load(Driver *d, Op *module,
                 Expected *list); // list has room for options->nexpect; false after a diagnostic
bool expect_check(Driver *d, const Expected *list, const char *stage, ExpectedFetch *fetch,
                  void *arg);

// external.c: temporary folders and other programs.
// A new folder, removed with everything in it when the context goes. NULL after a diagnostic.
const char *temp_folder(Context *c);
bool folder_make(Context *c, const char *path); // with parents; existing is fine
// Runs a program (argv ends with NULL) and waits; its output goes to ours. True for exit status 0;
// otherwise *status is the exit status, or 128 + signal. False with a diagnostic when it cannot be
// started.
bool external_run(Context *c, const char *const *argv, int *status);
// As external_run, with its output in a file. *status is EXTERNAL_MISSING when there is no such
// program.
enum { EXTERNAL_MISSING = 127 };
bool external_run_quiet(Context *c, const char *const *argv, const char *output, int *status);
// Runs a compiler; argv has room for one more than its n. False after a diagnostic.
bool compiler_run(Driver *d, const char **argv, int n);
// Compiles sources (absolute paths, n of them) in `folder` into `out`; shared: a shared library.
bool compile_external(Driver *d, const Target *t, const char *folder, int n,
                      const char *const *sources, const char *out, bool shared);
// Splits a command line at blanks into words, appended to argv (max of them); returns the new
// count.
int words_append(Context *c, const char *text, const char **argv, int n, int max);

// build_model.c: from module to a runnable harness in `folder` (NULL: a temporary one).
typedef struct BuiltModel {
	const char *folder, *program, *weights; // paths
	const char *libraries;                  // flags of the linker; NULL: none
	int nstate;
	int ntraced;               // with --trace or --profile
	const Op *const *traced;   // the operations, by their number in events
	const char *values;        // where the program writes what they gave; NULL: nowhere
	const char *const *states; // parameters that runs change, in the order of the model's table
} BuiltModel;
// What the harness is compiled from, but for pdrt.h: texts that are embedded.
#define HARNESS_TEXTS                                                                     \
	"harness.c", "harness_run.h", "harness_arrays.h", "harness_npy.h", "harness_trace.h", \
		"harness_threads.h", "harness_profile.h"

// build_cache.c. $CC, --cc or cc.
const char *external_compiler(const Driver *d);
// The path of an object that hangs on the compiler, its flags and these embedded texts only: made
// in the user's cache by the first run, found there by all others. NULL after a diagnostic.
typedef bool ObjectMaker(Driver *d, const BuiltModel *b, const char *object);
const char *object_cached(Driver *d, const BuiltModel *b, const char *stem, int ntext,
                          const char *const *texts, ObjectMaker *make);
// The sources of that alone; with what runs them (harness and weights), too, if to_run.
bool model_sources(Driver *d, Op *module, const Target *t, const char *folder, bool to_run,
                   BuiltModel *b, CodegenResult *r);
bool model_build(Driver *d, Op *module, const Target *t, const char *folder, BuiltModel *b);
// build_cuda.c: compiles what model_build wrote for CUDA: with nvcc where there is a GPU, else with
// g++ and the emulator.
bool cuda_build(Driver *d, const BuiltModel *b);
// build_nvcc.c
const char *cuda_missing(Context *c); // why there is no GPU to run on; NULL: there is one
const char *cuda_compiler(void);      // $NVCC, else nvcc, in its usual place when not in the path
const char *cuda_arch_flags(
	Context *c, const char *archs); // flags of nvcc for --arch; NULL: for the GPU that is here
bool nvcc_build(Driver *d, const BuiltModel *b);
// What --threads asks of the program, appended to its arguments (two of them); returns the new
// count.
int threads_append(const Driver *d, const char **argv, int n);
// Runs it on what --in said; results go to out_dir/<run>/<column>.npy.
bool model_execute(Driver *d, const BuiltModel *b, const char *out_dir);

// The commands: exit status; of an error that was diagnosed 1, of diff 2.
typedef int CommandFunction(Driver *d);
CommandFunction cmd_compile, cmd_run, cmd_verify, cmd_bench, cmd_info, cmd_opt, cmd_diff;

#endif
