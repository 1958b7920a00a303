// CUDA as a backend: the graph, its nodes, the host side, calls of libraries. Leaves model.cu. Uses
// codegen/device, codegen/model and what is below; never meets C.
#ifndef PDCC_CODEGEN_CUDA_CUDA_H
#define PDCC_CODEGEN_CUDA_CUDA_H

#include "codegen/model/model.h"
#include "lower/analysis/analysis.h"
#include "lower/analysis/course.h"
#include "lower/analysis/work.h"

// ---- state.c ------------------------------------------------------------------------------------

enum { CUDA_STATE_BYTES = 8 }; // of pd_state, in front of `sizes`

// Bytes in front of the weights: what kernels tell, and sizes.
int64_t cuda_state_bytes(const Codegen *cg);
int cuda_told_words(const Codegen *cg); // of 8 bytes: those that model_wait reads
int cuda_found_count(const Codegen *cg);
// The number that stands for the operation where it says that it failed.
int cuda_failures(Codegen *cg, int n, const Op *const *ops); // of several, the first of them
int cuda_failure(Codegen *cg, const Op *op);
// A size found at run time: its place among the words of `sizes`, and its address in model_run.
int cuda_size_word(const Codegen *cg, const Symbol *s);
const char *cuda_size(Codegen *cg, const Symbol *s);
// The address of a word of `sizes`; and `state`, what kernels tell of the run.
const char *cuda_word(Codegen *cg, int word);
const char *cuda_state(Codegen *cg);

// ---- cuda.c -------------------------------------------------------------------------------------

Emitter *cuda_emitter_of(const Op *op);         // NULL: none
void cuda_members(Codegen *cg, Text *out);      // of an instance
void cuda_entry_points(Codegen *cg, Text *out); // in model.h
bool cuda_launch_print(Codegen *cg, KernelFunc *k);
bool cuda_bind_print(Codegen *cg, const Op *op, const Op **bound);
bool cuda_capacity_print(Codegen *cg, const Op *op, const Op **bound);
bool cuda_update_print(Codegen *cg, const Op *op);
bool cuda_append_print(Codegen *cg, const Op *op);
bool cuda_assert_print(Codegen *cg, const Op *op);
bool cuda_edge_sizes_print(Codegen *cg, const Op *op, int s); // on the way to successor s

// ---- report.c -----------------------------------------------------------------------------------

// What a kernel moves; the rest is for the launch. And how many blocks there are for so many things
// to do.
CudaLaunch cuda_figures(Codegen *cg, const KernelFunc *k);
int64_t cuda_figure_blocks(Codegen *cg, const Dim *total, int per_block);
void cuda_figures_add(CudaLaunch *to, const CudaLaunch *l); // a kernel that does both
// Told of each launch.
void cuda_launch_note(Codegen *cg, const char *kernel, int threads, const CudaLaunch *figures);
// And of each call of a library, which says as little of its kernels as there is to know.
void cuda_library_note(Codegen *cg, const KernelFunc *k, const char *name);
void cuda_report_end(Codegen *cg, CodegenResult *out);

// ---- step.c -------------------------------------------------------------------------------------

// What a launch passes: the type of the parameter, C on the host, and an identifier to name the
// parameter by where several steps are one kernel; NULL: a literal, which can stand there itself.
typedef struct CudaArg {
	const char *type, *text, *stem;
} CudaArg;
#define CUDA_UNNAMED "x"           // the stem of what has no name in C
enum { CUDA_BLOCK_THREADS = 256 }; // of a kernel that one block runs

// What one launch does, or one call in a kernel of one block.
typedef struct CudaStep {
	const Op *op;
	const char *kernel, *stem; // `compute_x`, x; `pd_move<float>`: then `pd_block_move<float>` is
	                           // what a block calls
	const char *instance;      // C that chooses one of a template; NULL: it is none
	int func;                  // among cg->funcs; -1: in pdrt_cuda_device.h
	const char *blocks;        // of the launch, as C
	int threads;               // of each
	int64_t width;             // threads that have something to do in one block
	const Dim *work;           // how much there is to do
	int narg;
	const CudaArg *args;
	CudaLaunch figures; // for reports
} CudaStep;

// Arguments: where a tensor lies (`text` is its C name, after a cast if it is `cast`), a word of
// `sizes`, the state, a number of the plan, a literal.
CudaArg cuda_arg_tensor(Codegen *cg, const char *type, const Value *v, const char *text, bool cast);
CudaArg cuda_arg_word(Codegen *cg, const char *type, int word);
CudaArg cuda_arg_state(Codegen *cg, const char *type);
CudaArg cuda_arg_number(Codegen *cg, const Dim *d);
static inline CudaArg cuda_arg_literal(const char *type, const char *text)
{
	return (CudaArg){type, text, NULL};
}
void cuda_step_print(Codegen *cg, const CudaStep *s);
// C that says whether all that several steps do is little; "": it always is.
const char *cuda_works_little(Codegen *cg, const Works *w);
// All steps in between are calls in one kernel of one block, named after op; they take no more
// arguments than CUDA_MAX_LOOP_PARAMS. May be nested.
void cuda_loop_kernel_begin(Codegen *cg, const Op *op);
void cuda_loop_kernel_end(Codegen *cg);
bool cuda_in_loop_kernel(const Codegen *cg);
// A line of that kernel, after which lines stand so much deeper; or, when less than 0, it itself
// stands less deep. And a line with a test of an element, which all threads make at once.
void cuda_block_text(Codegen *cg, const char *text, int depth);
void cuda_block_test(Codegen *cg, const char *before, const Value *v, const char *pointer,
                     const char *after);
// Likewise a line with a comparison, whose end `after` has the number.
void cuda_block_case(Codegen *cg, const char *before, const Value *v, const char *pointer,
                     const char *after);
// And the head of a loop with as many rounds as an element says.
void cuda_block_rounds(Codegen *cg, const Value *v, const char *pointer);

// ---- function.c ---------------------------------------------------------------------------------

// Finishes a function and prints the step that it is. False after a diagnostic.
bool cuda_function_print(Codegen *cg, KernelFunc *k, const char *blocks, int threads);
// All functions of the device.
void cuda_functions_print(Codegen *cg, Text *out);

// ---- move.c -------------------------------------------------------------------------------------

bool cuda_moves_print(Codegen *cg, const Op *branch,
                      int s); // to the arguments of successor s; false after a diagnostic
void cuda_fetch_print(Codegen *cg, const Op *op, int col, const char *from);

// ---- nodes.c ------------------------------------------------------------------------------------

// The nodes of a graph, in the order of the program: all that is printed in between belongs to one.
// At the end they are printed with what each waits for.
// `part`: of a conditional node.
void cuda_nodes_begin(Codegen *cg, bool part);
bool cuda_in_part(const Codegen *cg); // or in a graph inside of one
void cuda_nodes_end(Codegen *cg,
                    bool repeated); // in a loop of the host: all wait for all of the round before
// A node; inside of it another call changes nothing. Without text there is none. `stem`: an
// identifier to name it by. What is printed from now on stands in braces of its own.
Text cuda_scope_open(Codegen *cg);
void cuda_scope_close(Codegen *cg, Text outer, const char *head, const char *comment);
void cuda_node_begin(Codegen *cg, const char *stem);
void cuda_node_end(Codegen *cg);
// The steps of all operations, as cuda-waits numbered them; whether all have been printed. False
// after a diagnostic.
bool cuda_schedule_begin(Codegen *cg);
bool cuda_schedule_end(Codegen *cg);
// The next step of op is printed, in the node that is open, which has the step's number. Returns
// its part; 0: it has none. Whether no other step is in that node; whether all that are in the open
// node have been printed.
int cuda_node_step(Codegen *cg, const Op *op);
bool cuda_step_is_alone(const Codegen *cg, const Op *op);
bool cuda_node_is_whole(const Codegen *cg);
void cuda_node_part(Codegen *cg, const Op *op, int number); // the open node is that part
// The node that is open launches a function with a guard. Later it may have to count the rounds of
// the loop that the graph is the body of: `line` says so in front of the launch. Returns its
// function; -1: no node does that.
enum { CUDA_NEVER_COUNTS = -2 }; // for a node that is one or another by the sizes of a run
void cuda_node_launches(Codegen *cg, int func);
int cuda_node_count_down(Codegen *cg, const Op *back, const char *line);

// ---- graph.c ------------------------------------------------------------------------------------

// The whole program as nodes of a graph.
bool cuda_graph_print(Codegen *cg, const Op **bound);

// ---- library.c ----------------------------------------------------------------------------------

// A kernel that is a call of a library (cuda_op_is_library).
bool cuda_library_print(Codegen *cg, const Op *op);

// ---- instance.c ---------------------------------------------------------------------------------

void cuda_instance_print(Codegen *cg, Text *out); // model_init, model_init_shared, model_free
const char *cuda_first_instance(const Codegen *cg);

// ---- parameters.c -------------------------------------------------------------------------------

void cuda_states_print(Codegen *cg, Text *out); // parameters_begin, model_reset
void cuda_state_copy_print(Codegen *cg, Text *out, bool set);

// ---- host.c -------------------------------------------------------------------------------------

// For model_info: entry points that take tensors of the host.
void cuda_info_functions(Codegen *cg, Text *out);
bool cuda_options_check(Context *c, CodegenOptions *o); // false after a diagnostic
void cuda_module_print(Codegen *cg, CodegenResult *out);

#endif
