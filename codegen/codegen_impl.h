// What the files of codegen/ share among themselves and the kernel emitters do not need.
#ifndef PDCC_CODEGEN_IMPL_H
#define PDCC_CODEGEN_IMPL_H

#include "codegen.h"

// ---- names.c ---------------------------------------------------------------------------------------

// A set of identifiers taken in one scope.
typedef struct Names {
	Arena *arena;
	size_t count, cap; // cap: a power of two
	const char **names;
} Names;

void names_init(Names *n, Arena *a);
// An identifier made from any text; the same for the same text.
char *name_sanitize(Arena *a, const char *name);
char *name_local(Arena *a, const char *name); // that also hides no function
// `stem`, or `stem_2`, `stem_3` … when that is taken; takes it.
const char *names_unique(Names *n, const char *stem);

// ---- kernel.c ---------------------------------------------------------------------------------------

// A map from pointers (values, operations) to texts or other pointers.
typedef struct PointerMap {
	Arena *arena;
	size_t count, cap;
	const void **keys;
	const void **values;
} PointerMap;

void pointer_map_init(PointerMap *m, Arena *a);
void pointer_map_set(PointerMap *m, const void *key, const void *value);
const void *pointer_map_get(const PointerMap *m, const void *key); // NULL: not there

// Where a tensor lies, by the plan's attributes; views are followed to what they show.
typedef enum PlaceKind { PLACE_NONE, PLACE_WORKSPACE, PLACE_INPUT, PLACE_OUTPUT, PLACE_PARAM } PlaceKind;

typedef struct Place {
	PlaceKind kind;
	int col;           // INPUT, OUTPUT
	int moving;        // WORKSPACE: number of a buffer that branches exchange with others; 0: it stays
	const Dim *offset; // WORKSPACE, PARAM; bytes
	const Value *root; // the value whose bytes these are
} Place;

Place value_place(const Value *v);
// The operations of the module, block after block.
const Op *module_first(const Op *module);
const Op *module_next(const Op *op);

// A function that was emitted, or a helper.
typedef struct EmittedFunc {
	const char *text, *params, *name;
	const char *arguments; // CUDA: the names of its parameters
	const char *called;    // CUDA: its name where a block of threads calls it; NULL: nobody does
	bool launched;         // CUDA: as a kernel
	bool guarded;          // CUDA: in a part of the program that may not run
	bool counts;           // CUDA: and may have to count the rounds that it is part of
} EmittedFunc;

// A tensor that goes in or out.
typedef struct Port {
	const char *name;   // of the legacy variable
	const char *member; // of the struct
	const char *dims;   // member for the sizes of an output that are not constant; NULL: all are
	const Type *type;   // NULL: no such column
	const Value *value;
	int lod_of, level, levels; // offsets of a LoD level of the port in that column; -1: an ordinary tensor
	int part, of;              // pd_part: of the tensor array whose data are in that column
} Port;

// A size that the caller sets, a member of the dims struct; or one that a run finds, whose bound is a member, unless it
// follows from others or is not needed.
typedef struct Symbol {
	const Dim *dim;
	const char *name;  // in C: of the size
	const char *max;   // of its bound; NULL: set by the caller, or no memory depends on it
	const Dim *bound;  // what the bound follows from; NULL: set by the caller
	const char *room;  // what it counts as in the plan: itself, or 1 when it may be 0
	bool reported;     // found_<name> is a member of the outputs
	const char *next;  // branches set it: what it is about to become; NULL: they do not
	bool by_op;        // an operation gives it its value, so branches do not
} Symbol;

// A variable of model_run that points at a buffer which branches exchange with others.
typedef struct Moving {
	const char *name, *type; // NULL: not used so far
} Moving;

typedef struct CudaNodes CudaNodes; // of the graph that is being printed: cuda_nodes.c

// Numbers in one C function: of the memory plan, that plan's estimate in floating point, or sizes as a run has them.
typedef enum SizeKind { SIZES_OF_PLAN, SIZES_IN_DOUBLE, SIZES_OF_RUN } SizeKind;
typedef struct SizeLocals {
	Codegen *cg;
	SizeKind kind;
	Names *scope;     // that locals are unique in; NULL: nothing else has such names
	Text text;        // declarations of locals
	PointerMap names; // Dim -> C expression
	int count;
} SizeLocals;

typedef struct CudaBlock CudaBlock; // what one block of threads does: cuda_step.c

struct Codegen {
	Context *ctx;
	Arena *arena;
	Op *module;
	const Target *target;
	const CodegenOptions *options;
	const char *prefix;
	Names globals;           // identifiers at file scope
	Names locals;            // identifiers in model_run
	int nsymbol, csymbol;    // those set by the caller come first
	int nmember;             // of the dims struct
	Symbol *symbols;
	int ninput, noutput;
	Port *inputs, *outputs;  // by column
	bool inline_weights;
	const Dim *workspace;    // bytes
	int64_t weights_size;
	uint8_t *weights;
	PointerMap pointers;         // value -> C expression in model_run
	PointerMap param_names;      // parameter's root value -> name of its array (inline weights)
	int nhelper, nfunc, chelper, cfunc;
	EmittedFunc *helpers, *funcs;
	Text arrays;             // inline weights
	Text functions;          // helpers and kernels
	Text uploads;            // CUDA: the copies of inline weights to the device
	int nfailure, cfailure;
	const char **failures;   // CUDA: titles of the operations that may fail, by number
	int ncounter;            // CUDA: loops whose rounds are counted on the device
	int nlaunch, claunch;    // CUDA, with the next three: cuda_report.c
	CudaLaunch *launches;
	PointerMap weights_read; // value of a parameter -> bytes of it that are read (int64_t)
	int64_t least_bytes;
	CudaNodes *nodes;        // CUDA: of the innermost graph
	CudaBlock *block;        // CUDA: what is open, see cuda_step.c
	PointerMap block_work;   // CUDA: Op -> how much it does, as a Dim: cuda_op_work
	int nested;              // CUDA: conditional parts around what is printed
	int looped;              // CUDA: loops around it that are written out
	const Dim *large;        // CUDA: what is known to be more than one block should do; NULL: nothing
	int ncondition;          // CUDA: of ifs and loops that are nodes
	PointerMap conditions;   // CUDA: name of one -> its number, as a Dim
	bool calls_lt, calls_dnn; // CUDA: there are calls of cuBLASLt, of cuDNN
	SizeLocals plan;         // offsets in model_run
	SizeLocals sizes;        // CUDA: what launches are given
	Text run;                // the calls of model_run
	Text declarations;       // with several blocks: its locals, in front of the first label
	bool blocks;             // there are several
	PointerMap number_class; // value of one element -> another that is the same variable
	PointerMap in_memory;    // such values that are none
	int nmoving;
	Moving *moving;          // by number
	bool fails;              // some kernel returns a status
	bool object_weights;     // .incbin
};

KernelFunc *kernel_new(Codegen *cg, const Op *op);
// Adds the function (or finds its twin) and returns its name; then its arguments are those of k->params.
const char *kernel_finish(KernelFunc *k);
// Adds a function; CUDA prints all of them at the end. Returns its number.
int kernel_add(Codegen *cg, const char *text, const char *params, const char *arguments, const char *stem);
// The type of a parameter, as C text.
const char *kernel_param_type(const KernelFunc *k, const KernelParam *p);
// The bound of a size found at run time, as a parameter.
const char *kernel_bound(KernelFunc *k, const Dim *sym);

// ---- sizes.c -----------------------------------------------------------------------------------------

const char *symbol_name(const Codegen *cg, const Dim *sym);
// A size as a C expression over names that `name_of` gives to symbols.
const char *dim_expression(Arena *a, const Dim *d, const char *(*name_of)(const Dim *sym, void *arg), void *arg);
// A size in model_run, where symbols are locals of their own name.
const char *dim_in_run(Codegen *cg, const Dim *d);
// As dim_in_run, with the bounds of sizes that a run finds in place of these.
const char *dim_of_bounds(Codegen *cg, const Dim *d);
const Symbol *symbol_find(const Codegen *cg, const Dim *sym); // NULL: none
// The member of the dims struct that stands for a symbol: its size, or its bound; NULL: neither is asked for.
const char *symbol_member(const Symbol *s);
// CUDA: a size found at run time stays on the device; kernels get its address.
bool size_is_on_device(const Codegen *cg, const Dim *sym);
// A number as an expression in which large parts, and quotients of quotients, are locals, declared in l->text. In the plan,
// sizes found at run time count with their bounds.
const char *dim_in_locals(SizeLocals *l, const Dim *d);
void size_locals_init(SizeLocals *l, Codegen *cg, SizeKind kind, Names *scope);
void workspace_print(Codegen *cg, Text *out); // model_workspace_size
// Locals for what symbols count as in the plan, as far as `user` mentions them.
void rooms_print(const Codegen *cg, const char *user, Text *out);

// ---- scalar.c ------------------------------------------------------------------------------------------

// CUDA: threads that reduce an element together. COLUMNS: 32 neighbouring elements, each by one of 32 columns of a block.
typedef enum ReduceTeam { TEAM_NONE, TEAM_WARP, TEAM_BLOCK, TEAM_COLUMNS } ReduceTeam;
enum { TEAM_WARPS = 8 }; // of a block

// Printing of scalar operations: what each value is called, and which predicates are known here.
typedef struct Scalars {
	KernelFunc *k;
	PointerMap names;             // Value -> C expression
	PointerMap merged;        // block argument -> the next one, which runs with it in one loop
	const Block *together;    // CUDA: what threads reduce together stands in this block of the region
	ReduceTeam team;          // CUDA: which threads
	int nknown;
	const Value *known[8];    // predicates known in this place …
	bool known_value[8];      // … and what they are
} Scalars;

void scalars_init(Scalars *s, KernelFunc *k);
const char *scalars_name(Scalars *s, const Value *v); // NULL after a diagnostic
// The value of one operation as a C expression; NULL after a diagnostic.
const char *scalar_expression(Scalars *s, const Op *op);
// e, rounded when the type is a half-precision one (whose scalars are floats).
const char *scalar_round(KernelFunc *k, const Type *t, const char *e);
// Which element a load reads, as a C expression; NULL after a diagnostic.
const char *load_index(Scalars *s, const Op *load);
// Prints the operation as a declaration, or remembers its expression when one reader can hold it.
bool scalar_op_print(Scalars *s, const Op *op, bool may_inline, int depth, Text *out);
// 1: known true, 0: known false, -1: not known.
int scalars_known(const Scalars *s, const Value *pred);
// `(e)` without its parentheses; anything else as it is.
const char *expression_unwrap(Arena *a, const char *e);
void text_line(Text *out, int depth, const char *fmt, ...) PRINTF_LIKE(3, 4);

// ---- nest.c, reduce.c -----------------------------------------------------------------------------------

bool reduce_print(Scalars *s, const Op *op, int depth, Text *out);

// ---- ports.c ---------------------------------------------------------------------------------------------

bool ports_collect(Codegen *cg); // feeds, fetches and symbols
// `[n x 3 x 224 x 224]`, for comments.
const char *shape_comment(Codegen *cg, const Type *t);
// A text that may stand in a C comment, or as a string literal with its quotes.
const char *comment_text(Arena *a, const char *s);
const char *string_literal(Arena *a, const char *s);

// ---- weights.c -------------------------------------------------------------------------------------------

bool weights_collect(Codegen *cg); // cg->weights; in inline mode cg->arrays and cg->param_names

// ---- locals.c --------------------------------------------------------------------------------------------

void locals_collect(Codegen *cg); // before anything is printed
// The value that names the C variable in which a tensor of one element lives; NULL: it lies in memory.
const Value *number_local(const Codegen *cg, const Place *p);
// The only element of a tensor in model_run, as a C expression; NULL after a diagnostic.
const char *tensor_element(Codegen *cg, const Value *v);
// What a pointer points to: `x` for `(&x)`.
const char *pointer_element(Arena *a, const char *pointer);
// Whether a constant is only ever printed as its value.
bool constant_is_text(const Codegen *cg, const Value *v);
// Whether a sum or difference in a nest counts a number that a branch around has compared with a larger (smaller) one.
bool sum_fits(const Codegen *cg, const Op *op);
// Whether a nest computes single numbers and is printed where it is called.
bool nest_is_statement(const Codegen *cg, const Op *op);

// ---- branch.c --------------------------------------------------------------------------------------------

// The label and comment in front of a block; nothing for the first.
void block_label_print(Codegen *cg, const Block *b);
// What a branch was before it was one: "while" or "if".
const char *branch_kind(const Op *op);
// Moves what the branch passes on, and goes. False after a diagnostic.
bool branch_print(Codegen *cg, const Op *op);

// Whether two tensors lie at the same bytes.
bool places_equal(const Place *a, const Place *b);

// The symbols in the types of a block's arguments take the sizes of what a branch passes.
typedef struct EdgeSizes {
	Codegen *cg;
	int n;
	struct {
		const Symbol *symbol;
		const Dim *from; // in the sizes before the branch
	} *items;
} EdgeSizes;

// False: nothing is known of a size.
bool edge_sizes_collect(EdgeSizes *z, const Op *op, const Succ *succ);
const Dim *edge_size_from(const EdgeSizes *z, const Dim *sym); // NULL: the branch does not set it
// Whether a size of an argument is by its form that of the value passed.
bool edge_size_is_same(const EdgeSizes *z, const Dim *want, const Dim *have);

// ---- update.c --------------------------------------------------------------------------------------------

bool update_print(Codegen *cg, const Op *op); // loop.update
bool append_print(Codegen *cg, const Op *op); // loop.append
// Whether what these leave as it is need not be copied: it lies where the result does, or nothing was written so far.
bool update_keeps(const Op *op);

// ---- run.c -----------------------------------------------------------------------------------------------

// Walks the operations: fills cg->functions and the calls in cg->run.
bool run_collect(Codegen *cg);
void run_print(Codegen *cg, Text *out); // model_run
// One operation; bound: by symbol, the operation that says what it is, once there is one.
bool run_op_print(Codegen *cg, const Op *op, const Op **bound);
// What stopped a printer without a word since there were `errors` is mostly an element type. False, for the caller to return.
bool run_no_code(const Codegen *cg, const Op *op, int errors);
// The C name of a tensor in model_run; NULL after a diagnostic.
const char *tensor_pointer(Codegen *cg, const Value *v);
// The variable that points at a buffer that moves, made at its first use; or of one that was used before.
const Moving *moving_find(Codegen *cg, const Place *p);
const Moving *moving_at(const Codegen *cg, int number);
const char *moving_as(Codegen *cg, const Moving *m, DType t); // as a pointer to such elements
const char *op_title(Codegen *cg, const Op *op);
const char *op_stem(Codegen *cg, const Op *op); // an identifier made from its variable
// Bytes of a tensor as large as it is now; never negative.
const Dim *type_bytes_in_run(const Codegen *cg, const Type *t);
// The argument of a call for one parameter; NULL after a diagnostic.
const char *call_argument(Codegen *cg, const KernelParam *p);
// The arguments of a call, for the parameters of its function. False after a diagnostic.
bool call_arguments(Codegen *cg, const KernelFunc *k, Text *args);
// `if (condition)` the run ends with that status, and names op.
void failure_print(Codegen *cg, const char *condition, const char *status, const Op *op);
void run_checks_print(Codegen *cg, Text *out); // its beginning
void run_locals_print(Codegen *cg, Text *out); // sizes, and where memory begins

// ---- module.c --------------------------------------------------------------------------------------------

// Everything up to the texts of functions and calls; false after diagnostics.
bool codegen_begin(Codegen *cg, Context *c, Op *module, const Target *t, const CodegenOptions *o);
void codegen_end(Codegen *cg, CodegenResult *out); // weights and empty texts

// ---- cuda.c ------------------------------------------------------------------------------------------------

bool (*cuda_emitter_of(const Op *op))(KernelFunc *k); // NULL: none
bool cuda_launch_print(Codegen *cg, KernelFunc *k);
// The number that stands for the operation where it says that it failed.
int cuda_failure(Codegen *cg, const Op *op);
// A size found at run time: its place among the words of `sizes`, and its address in model_run.
int cuda_size_word(const Codegen *cg, const Symbol *s);
const char *cuda_size(const Codegen *cg, const Symbol *s);
// How many bytes of a tensor are copied when its size is on the device: all that it may have.
const Dim *cuda_bytes(const Codegen *cg, const Value *v);
bool cuda_bind_print(Codegen *cg, const Op *op, const Op **bound);
bool cuda_capacity_print(Codegen *cg, const Op *op, const Op **bound);
bool cuda_update_print(Codegen *cg, const Op *op);
bool cuda_append_print(Codegen *cg, const Op *op);
bool cuda_assert_print(Codegen *cg, const Op *op);
bool cuda_edge_sizes_print(Codegen *cg, const Op *op, const EdgeSizes *z, const Succ *succ);

// ---- cuda_report.c -----------------------------------------------------------------------------------------

// What a kernel moves; the rest is for the launch. And how many blocks there are for so many things to do.
CudaLaunch cuda_figures(Codegen *cg, const KernelFunc *k);
int64_t cuda_figure_blocks(Codegen *cg, const Dim *total, int per_block);
void cuda_figures_add(CudaLaunch *to, const CudaLaunch *l); // a kernel that does both
// Told of each launch.
void cuda_launch_note(Codegen *cg, const char *kernel, int threads, const CudaLaunch *figures);
// And of each call of a library, which says as little of its kernels as there is to know.
void cuda_library_note(Codegen *cg, const KernelFunc *k, const char *name);
void cuda_report_end(Codegen *cg, CodegenResult *out);

// ---- cuda_nest.c -------------------------------------------------------------------------------------------

bool cuda_nest_emit(KernelFunc *k);

// ---- cuda_select.c -----------------------------------------------------------------------------------------

bool cuda_sort_emit(KernelFunc *k);
bool cuda_nms_emit(KernelFunc *k);
bool cuda_compact_emit(KernelFunc *k);
bool cuda_scan_emit(KernelFunc *k);
// ---- cuda_step.c -------------------------------------------------------------------------------------------

// What a launch passes: the type of the parameter and C on the host.
typedef struct CudaArg {
	const char *type, *text;
} CudaArg;

// What one launch does, or one call in a kernel of one block.
typedef struct CudaStep {
	const char *kernel, *stem; // `compute_x`, x; `pd_move<float>`: then `pd_block_move<float>` is what a block calls
	const char *instance;      // C that chooses one of a template; NULL: it is none
	int func;                  // among cg->funcs; -1: in pdrt_cuda_device.h
	const char *blocks;        // of the launch, as C
	int threads;               // of each
	int64_t width;             // threads that have something to do in one block
	bool fits;                 // one block is enough
	const Dim *work;           // where sizes of the run decide that: how much there is to do; NULL: it always is
	int narg;
	const CudaArg *args;
	CudaLaunch figures;        // for reports
} CudaStep;

void cuda_step_print(Codegen *cg, const CudaStep *s);
// Finishes a function and prints the step that it is. False after a diagnostic.
bool cuda_function_print(Codegen *cg, KernelFunc *k, const char *blocks, int threads);
// Small steps that follow each other in a conditional part are one launch, which is printed where something else begins.
void cuda_step_before(Codegen *cg, const Op *op); // op is about to be printed
void cuda_steps_end(Codegen *cg);
bool cuda_steps_are_open(const Codegen *cg);
// Whether one block of threads is enough for an operation, or for so many elements; and how much there is to do where it is, or
// may be when a run knows its sizes. NULL: it is not.
bool cuda_op_fits_block(Codegen *cg, const Op *op);
bool cuda_count_fits_block(Codegen *cg, const Dim *n);
const Dim *cuda_op_work(Codegen *cg, const Op *op);
const Dim *cuda_count_work(Codegen *cg, const Dim *n);
// How much several steps do that sizes of the run make little or not, and C that says whether these do; "": always.
typedef struct CudaWorks {
	int n, cap;
	const Dim **items;
} CudaWorks;
void cuda_works_add(Codegen *cg, CudaWorks *w, const Dim *work);
const char *cuda_works_little(Codegen *cg, const CudaWorks *w);
// All steps in between are calls in one kernel of one block, named after op; they take no more arguments than
// CUDA_MAX_LOOP_PARAMS. May be nested.
enum { CUDA_MAX_LOOP_PARAMS = 360 };
void cuda_loop_kernel_begin(Codegen *cg, const Op *op);
void cuda_loop_kernel_end(Codegen *cg);
bool cuda_in_loop_kernel(const Codegen *cg);
// A line of that kernel, after which lines stand so much deeper; or, when less than 0, it itself stands less deep. And a
// line with a test of an element, which all threads make at once.
void cuda_block_text(Codegen *cg, const char *text, int depth);
void cuda_block_test(Codegen *cg, const char *before, const char *type, const char *pointer, const char *after);
// Likewise a line with a comparison, whose end `after` has the number.
void cuda_block_case(Codegen *cg, const char *before, const char *type, const char *pointer, const char *after);
// And the head of a loop with as many rounds as an element says.
void cuda_block_rounds(Codegen *cg, const char *pointer);
// All functions of the device.
void cuda_functions_print(Codegen *cg, Text *out);

// ---- cuda_move.c -------------------------------------------------------------------------------------------

bool cuda_moves_print(Codegen *cg, const Op *branch, int s); // to the arguments of successor s; false after a diagnostic
void cuda_fetch_print(Codegen *cg, const Value *v, int col, const char *from);

// ---- cuda_nodes.c ------------------------------------------------------------------------------------------

// The nodes of a graph, in the order of the program: all that is printed in between belongs to one. At the end they are
// printed with what each waits for.
void cuda_nodes_begin(Codegen *cg);
void cuda_nodes_end(Codegen *cg, bool repeated); // in a loop of the host: all wait for all of the round before
// A node; inside of it another call changes nothing. Without text there is none. `stem`: an identifier to name it by.
// What is printed from now on stands in braces of its own.
Text cuda_scope_open(Codegen *cg);
void cuda_scope_close(Codegen *cg, Text outer, const char *head, const char *comment);
void cuda_node_begin(Codegen *cg, const char *stem);
void cuda_node_end(Codegen *cg);
// What the open node touches, and how (ACCESS_READ …): the arguments of a launch, a tensor, an output of the caller, a
// word of `sizes`, the condition of that name, how the run goes.
void cuda_node_arguments(Codegen *cg, const KernelFunc *k);
void cuda_node_tensor(Codegen *cg, const Value *v, unsigned how);
void cuda_node_place(Codegen *cg, const Place *p, unsigned how);
void cuda_node_output(Codegen *cg, int col, unsigned how);
void cuda_node_word(Codegen *cg, int word, unsigned how);
void cuda_node_condition(Codegen *cg, const char *name, unsigned how);
void cuda_node_state(Codegen *cg, unsigned how);
// What was noted since the last call, of the node that is open; and to note as much again.
Accesses cuda_node_noted(Codegen *cg);
void cuda_node_accesses(Codegen *cg, const Accesses *more);
// The node that is open launches a function with a guard. Later the last of them may count the rounds of the loop that the
// graph is the body of: `line` says so in front of its launch. Returns its function; -1: there is none.
enum { CUDA_NEVER_COUNTS = -2 }; // for a node that is one or another by the sizes of a run
void cuda_node_launches(Codegen *cg, int func);
int cuda_node_count_down(Codegen *cg, int word, const char *condition, const char *line);

// ---- cuda_matmul.c -----------------------------------------------------------------------------------------

bool cuda_matmul_emit(KernelFunc *k);

// ---- cuda_conv.c, cuda_depthwise.c -------------------------------------------------------------------------

bool cuda_conv_emit(KernelFunc *k);
bool cuda_depthwise_emit(KernelFunc *k);
const Dim *cuda_depthwise_threads(Context *c, const Op *op);

// ---- cuda_graph.c ------------------------------------------------------------------------------------------

// The whole program as nodes of a graph.
bool cuda_graph_print(Codegen *cg, const Op **bound);

// ---- cuda_library.c ----------------------------------------------------------------------------------------

// A kernel that is a call of a library (cuda_op_is_library).
bool cuda_library_print(Codegen *cg, const Op *op);

// ---- cuda_instance.c ---------------------------------------------------------------------------------------

void cuda_instance_print(Codegen *cg, Text *out); // model_init, model_init_shared, model_free
const char *cuda_first_instance(const Codegen *cg);
// ---- cuda_loop.c -------------------------------------------------------------------------------------------

// Whether one block of threads is enough for all that a loop does; and whether it may be: when all `works` are little.
bool cuda_loop_fits_block(Codegen *cg, const Block *head);
bool cuda_loop_may_fit_block(Codegen *cg, const Block *head, CudaWorks *works);

// ---- cuda_rounds.c -----------------------------------------------------------------------------------------

// How often a loop that counts is written into the graph, one round behind the other; 0: it is a conditional node.
int64_t cuda_loop_unrolled(Codegen *cg, const Block *head);

// ---- cuda_host.c -------------------------------------------------------------------------------------------

// For model_info: entry points that take tensors of the host.
void cuda_info_functions(Codegen *cg, Text *out);
// Bytes in front of the weights: what kernels tell, and sizes.
int64_t cuda_state_bytes(const Codegen *cg);
int cuda_told_words(const Codegen *cg); // of 8 bytes: those that model_wait reads
int cuda_found_count(const Codegen *cg);

// ---- header.c, info.c, prelude.c ---------------------------------------------------------------------------

void header_print(Codegen *cg, Text *out);
void info_print(Codegen *cg, Text *out);  // model_info and what it points to
void call_print(Codegen *cg, Text *out);  // model_call
// Sections of the prelude that `user` mentions, and those that these mention, in file order.
void prelude_print(Codegen *cg, Text *out, const char *user);

#endif
