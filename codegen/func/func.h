// A function being built, and the program that it is part of: parameters, sizes, scalar code.
// Leaves functions in a Codegen, each once. Uses codegen/text; what it must ask of rooms above goes
// through the Backend.
//
// How a function comes to be: model/run.c walks the operations of the module. For every loop.nest
// and kernel.* a backend makes a KernelFunc and has it filled by an emitter (nest/nest.c,
// tuned/*.c, device/*.c). The emitter asks for the C names of tensors and sizes (kernel_tensor,
// kernel_dim), which makes them parameters, and leaves the text of a static function in k->text.
// Two functions with the same text are emitted once.
#ifndef PDCC_CODEGEN_FUNC_FUNC_H
#define PDCC_CODEGEN_FUNC_FUNC_H

#include "codegen/func/options.h"
#include "codegen/text/text.h"
#include "lower/analysis/numbers.h"
#include "lower/target/target.h"

// ---- functions under construction: func.c -------------------------------------------------------

typedef struct Codegen Codegen; // one program: see below

typedef struct KernelParam {
	const char *name;   // inside the function
	const Value *value; // the tensor; NULL: a size
	const Dim *sym;     // the symbol, or with `given` a size that is long to read
	bool bound;         // its bound, not itself
	bool result;        // written
	bool captured;      // used in a region, not an operand
	const Dim *lead;    // C: the call passes it from this element on; NULL: from the first
	const char *type;   // neither tensor nor symbol: a parameter of this type …
	const char *given;  // … and what the call passes
} KernelParam;

typedef struct KernelFunc {
	Codegen *cg;
	Context *ctx;
	Arena *arena;
	const Target *target;
	const Op *op; // what it does: loop.nest or kernel.*
	Text text;    // the function: everything from `static` to the last brace, with KERNEL_FN and
	           // KERNEL_PARAMS, or KERNEL_HEAD; it is preceded by helpers that only it uses, if any
	int block_threads;  // CUDA: threads of a block; 0: the usual number
	const char *bounds; // CUDA: arguments of __launch_bounds__; NULL: none
	int block_shared;   // CUDA: bytes of shared memory that the launch gives a block (PD_DYNAMIC)
	int per_block; // CUDA: what a block does of the positions that the launch counts; 0: one with
	               // block_threads, else one for each thread
	const char *index;  // the C type of positions: int64_t; CUDA also int, or I, the parameter of a
	                    // function template
	const Dim *sizes;   // with I: int does while this is …
	int64_t sizes_most; // … at most so much
	const char *place;  // in a kernel's region: the linear position of the element of the result;
	                    // NULL: it has no name
	bool skips; // CUDA: a check that fails leaves out the element, since its thread has to meet
	            // others
	const Dim
		*work; // CUDA: how many things blocks share; NULL: elements, or what the operation says
	const Dim *units;    // C: threads share as many, [begin, end) each; NULL: one does all
	const Dim *grid;     // CUDA: it must be launched with so many blocks; NULL: any number is right
	int access;          // CUDA: the most bytes that a thread moves at once; 0: one element
	bool tensor_cores;   // CUDA: it multiplies on them
	const char *comment; // what stands over the function; NULL: nothing
	int number;          // CUDA: among cg->funcs, once finished
	int64_t blocks;      // CUDA: of the launch, for reports; 0: one
	bool inlined;        // no function: statements in model_run
	bool small;          // C: the compiler may inline it, so nothing is `restrict` (see PD_APART)
	bool status;         // it tells a failure; C: it returns int (else void), see kernel_fault
	const Op **faults;   // the operations whose checks of indices it makes, in order
	int nfault, cfault;
	bool sets_sizes; // CUDA: those among its parameters
	int nparam;
	KernelParam *params; // results first, then operands, then what was asked for, in that order
	int cparam, nlocal;  // private: room, and the number of the next local variable
} KernelFunc;

// The emitters of kernel operations, which the operator table names: fill k->text, false after a
// diagnostic. Results and tensor operands are parameters already, in order: `out` (`out0`, `out1` …
// when there are several) and the operands' names in the operator table.
typedef bool Emitter(KernelFunc *k);

// The C name of a tensor inside the function; a captured tensor becomes a parameter (`t0`, `t1` …).
const char *kernel_tensor(KernelFunc *k, const Value *v);
const char *kernel_result(KernelFunc *k, int i);
// C: how many elements of a tensor a nest leaves out in front, since it reads one slice of the
// first axis only: the call passes the slice, so that nests of other slices are the same function.
// NULL: none.
const Dim *kernel_lead(const KernelFunc *k, const Value *v);
// A size as a C expression of type int64_t that needs no parentheses around it: a literal, a
// parameter or `(…)`. The symbols in it become parameters, and so does a size that is long to read.
const char *kernel_dim(KernelFunc *k, const Dim *d);
// A parameter that is neither tensor nor size: what the call passes is an expression of model_run.
void kernel_given(KernelFunc *k, const char *type, const char *name, const char *given);
// C: threads share `units` of it where `parallel` says so and there are several: k->units is set,
// and the function ends its parameters with kernel_range, which is "" otherwise.
bool kernel_share(KernelFunc *k, const Dim *units);
const char *kernel_range(const KernelFunc *k);
// The number, from 0, of the check that `op` makes; what stands for one operation of the model has
// one. A function of C returns one more, or 0 when nothing is out of range.
int kernel_fault(KernelFunc *k, const Op *op);
// A fresh local name: `v0`, `v1` …, or with a stem of your own.
const char *kernel_local(KernelFunc *k, const char *stem);
// A scope ends: numbers of names go on as they stood `before` it, which is what nlocal was.
void kernel_locals_end(KernelFunc *k, int before);
// CUDA: notes that a thread moves so many elements at once.
void kernel_moves(KernelFunc *k, DType t, int lanes);
// Expands a template into k->text. Keys as in template_expand.
bool kernel_template(KernelFunc *k, const char *name, int nkey, const TemplateKey *keys);
// The same of two lists: what several templates have in common, and what is one's own.
bool kernel_template_joined(KernelFunc *k, const char *name, int ncommon, const TemplateKey *common,
                            int nown, const TemplateKey *own);
// Emits an expansion once per distinct text before all kernels: a helper shared by several (a
// microkernel). The template must make names that differ when the text differs (put the sizes into
// the name).
bool kernel_helper(KernelFunc *k, const char *name, int nkey, const TemplateKey *keys);

// ---- a program under construction ---------------------------------------------------------------

// The operations of the module, block after block.
const Op *module_first(const Op *module);
const Op *module_next(const Op *op);

// A function that was emitted, or a helper.
typedef struct EmittedFunc {
	const char *comment; // C: the kinds of operators that it was made for; NULL: not known
	size_t from, to;     // C: where it lies in cg->functions
	const char *text, *params, *name; // params: "" for none
	const char *bounds;               // CUDA: arguments of __launch_bounds__; NULL: none
	const char *arguments;            // CUDA: the names of its parameters
	const char *called; // CUDA: its name where a block of threads calls it; NULL: nobody does
	const char *called_params; // CUDA: then nobody promises what restrict says
	bool is_template;          // CUDA: over the type of positions
	bool launched;             // CUDA: as a kernel
	bool guarded;              // CUDA: in a part of the program that may not run
	bool counts;               // CUDA: and may have to count the rounds that it is part of
} EmittedFunc;

// A tensor that goes in or out.
typedef struct Port {
	const char *name;   // of the legacy variable
	const char *member; // of the struct
	const char *dims;   // member for the sizes of an output that are not constant; NULL: all are
	const Type *type;   // NULL: no such column
	const Value *value;
	int lod_of, level,
		levels;   // offsets of a LoD level of the port in that column; -1: an ordinary tensor
	int part, of; // pd_part: of the tensor array whose data are in that column
} Port;

// Inline weights as an array of generated code.
typedef struct WeightsArray {
	const char *name;
	Text text;
	struct WeightsArray *next;
} WeightsArray;

// A parameter that runs change.
typedef struct State {
	const char *name;
	const Type *type;
	int64_t offset;      // in the workspace, bytes
	int64_t initial;     // of what it holds before the first run in the weights; -1: zeros
	WeightsArray *array; // C with inline weights: that
} State;

// A size that the caller sets, a member of the dims struct; or one that a run finds, whose bound is
// a member, unless it follows from others or is not needed.
typedef struct Symbol {
	const Dim *dim;
	const char *name; // in C: of the size
	const char *max;  // of its bound; NULL: set by the caller, or no memory depends on it
	const Dim *bound; // what the bound follows from; NULL: set by the caller
	const char *room; // what it counts as in the plan: itself, or 1 when it may be 0
	bool reported;    // found_<name> is a member of the outputs
	const char *next; // branches set it: what it is about to become; NULL: they do not
	bool by_op;       // an operation gives it its value, so branches do not
} Symbol;

// A local of model_run, where there are blocks: `type name = value;`.
typedef enum LocalKind {
	LOCAL_CONST,
	LOCAL_NUMBER, // assigned wherever it is read
	LOCAL_KEPT    // read before it is assigned: what it holds first outlives the rounds of loops
} LocalKind;
typedef struct RunLocal {
	LocalKind kind;
	const char *type, *name, *value; // the type with its blank or star
	const char *extent;              // `[2]` of an array; else ""
	bool unread;
} RunLocal;

// A variable of model_run that points at a buffer which branches exchange with others.
typedef struct Moving {
	const char *name, *type; // NULL: not used so far
} Moving;

// --trace: operators as they are told to the callback.
typedef struct LateValue {
	const Value *value; // NULL: told
	int number;
} LateValue;

typedef struct TraceState {
	const Op *next; // begins where its comment is printed; NULL: has begun, or --trace is not given
	const Op **ops; // by number
	int n, cap;
	LateValue *late; // results whose sizes were not known where they were computed
	int nlate, clate;
} TraceState;

// --map: what an operation became.
typedef struct MapStep {
	const Op *op;
	int function;    // of cg->funcs, which it calls; -1: none
	size_t from, to; // where its lines lie in cg->run
} MapStep;

typedef struct SourceMap {
	MapStep *steps;
	int n, cap;
	size_t run_at; // where cg->run begins in the functions of the interface
	int called;    // the function that the operation printed last calls; -1: none
} SourceMap;

typedef struct CudaNodes CudaNodes; // of the graph that is being printed: cuda/nodes.c

// Numbers in one C function: of the memory plan, or sizes as a run has them.
typedef enum SizeKind { SIZES_OF_PLAN, SIZES_OF_RUN } SizeKind;
typedef struct SizeLocals {
	Codegen *cg;
	SizeKind kind;
	Names *scope;        // that locals are unique in; NULL: nothing else has such names
	const char *stem;    // what the next ones are named after; NULL: they are counted
	Text text;           // declarations of locals
	PointerMap names;    // Dim -> C expression
	PointerMap declared; // Dim -> name of its local
	PointerMap rooms;    // Symbol -> itself: those that count as `room`
	int count;
} SizeLocals;

// A place in the workspace that depends on sizes.
typedef struct Offset {
	const Dim *dim;
	const char *name; // of the member of model_places
	int order;        // in which they were first asked for
	int64_t address;  // for sizes as usual, once offsets_order was there
} Offset;

typedef struct CudaSchedule CudaSchedule; // of which node steps are: cuda/nodes.c

typedef struct CudaBlock CudaBlock; // what one block of threads does: cuda/step.c

typedef struct Loop Loop; // of a nest: codegen/nest/nest.h
typedef struct Scalars Scalars;

// C or CUDA: what printers that are shared leave to it. NULL where it has nothing to say.
typedef struct Backend {
	const char *name; // in diagnostics
	// Kernels run on a device, in whose memory weights, sizes that a run finds and the run's state
	// lie; an instance has its own. A run only queues what is to be done.
	bool device;
	bool late;     // functions are printed at the end, when it is known who calls them
	int alignment; // of inputs and outputs, bytes, since several elements are one access; 0: theirs
	const char *memory; // what buffers lie in, as the header calls it
	const char *head;   // how the function of a kernel begins
	const char *helper; // and one that kernels call
	const char *copy;   // a call that copies bytes in such memory, up to the arguments
	const char *queue;  // the parameter that entry points have for what they queue
	const char *reset;  // in `m`: the members that say how the last run failed
	bool (*options)(Context *c, CodegenOptions *o);  // false after a diagnostic; may change them
	void (*module)(Codegen *cg, CodegenResult *out); // the files, once all operations are printed
	// model_run: all blocks; one operation of each kind. `bound` as in run_op_print.
	bool (*walk)(Codegen *cg, const Op **bound);
	Emitter *(*emitter)(const Op *op); // NULL: it has none for op
	bool (*compute)(Codegen *cg, const Op *op, Emitter *emit);
	bool (*bind)(Codegen *cg, const Op *op, const Op **bound);
	bool (*capacity)(Codegen *cg, const Op *op, const Op **bound);
	bool (*update)(Codegen *cg, const Op *op);
	bool (*append)(Codegen *cg, const Op *op);
	bool (*assert_)(Codegen *cg, const Op *op);
	void (*fetch)(Codegen *cg, const Op *op, int col, const char *from);
	void (*store)(Codegen *cg, const Op *op, const char *at, const char *data, const char *bytes);
	const char *(*size)(Codegen *cg,
	                    const Symbol *s); // what a call passes for a size that stays on the device
	// Inside of functions: what is asked of rooms above.
	const char *(*tensor)(Codegen *cg, const Value *v);
	bool (*reduce)(Scalars *s, const Op *op, int depth, Text *out);
	bool (*team_reduce)(Scalars *s, const Op *op, Loop *loops, int nloop, int depth, Text *out);
	// model.h and model_info.
	void (*members)(Codegen *cg, Text *out);
	void (*entry_points)(Codegen *cg, Text *out);
	void (*info)(Codegen *cg, Text *out);
	void (*states)(Codegen *cg, Text *out); // model_reset, where runs change parameters
	void (*state_copy)(Codegen *cg, Text *out, bool set); // one for its caller: the function's body
} Backend;

extern const Backend c_backend, cuda_backend; // codegen/c/run.c, codegen/cuda/backend.c

// Where the printing of a CUDA program is.
typedef struct CudaState {
	CudaNodes *nodes;            // of the innermost graph
	CudaBlock *block;            // what is open, see cuda/step.c
	CudaSchedule *schedule;      // steps and their nodes
	const struct Course *course; // set when the printing begins
} CudaState;

struct Codegen {
	const Backend *backend;
	Context *ctx;
	Arena *arena;
	const Op *module;
	const Target *target;
	const CodegenOptions *options;
	const char *prefix;
	Names globals;        // identifiers at file scope
	Names locals;         // identifiers in model_run
	int nsymbol, csymbol; // those set by the caller come first
	int nmember;          // of the dims struct
	Symbol *symbols;
	int ninput, noutput;
	Port *inputs, *outputs; // by column
	bool inline_weights;
	const Dim *workspace; // bytes
	int64_t weights_size;
	uint8_t *weights, *weights_file;     // the second: with the header in front
	uint64_t weights_hash, weights_plan; // of the bytes, and of what lies where
	int nstate;
	State *states;         // by name
	int64_t state_bytes;   // of the workspace
	PointerMap pointers;   // value -> C expression in model_run
	PointerMap stems;      // value -> what its C name is made from, where that is not its own name
	PointerMap row_places; // value -> C: `layer->NAME`, the column of a table that says where it is
	PointerMap weights_at; // offset in the weights -> the parameter that has their pointer
	PointerMap param_arrays; // parameter's root value -> its WeightsArray (inline weights)
	PointerMap made;         // C: operation -> its KernelFunc
	PointerMap stories;      // operation -> its Story
	Text tables;             // C: rows of calls that are repeated: c/repeat.c
	int nhelper, nfunc, chelper, cfunc;
	EmittedFunc *helpers, *funcs;
	WeightsArray *arrays, *last_array; // inline weights, in order
	PointerMap used_arrays;            // WeightsArray -> itself: model_run or model_init reads it
	Text functions;                    // helpers and kernels
	Text uploads;                      // CUDA: the copies of inline weights to the device
	int nfailure, cfailure;
	const char **failures; // CUDA: titles of the operations that may fail, by number
	int threads;           // C: as many may share a run
	int nlaunch, claunch;  // CUDA, with the next three: cuda/report.c
	CudaLaunch *launches;
	PointerMap weights_read; // value of a parameter -> bytes of it that are read (int64_t)
	int64_t least_bytes;
	bool calls_lt, calls_dnn; // CUDA: there are calls of cuBLASLt, of cuDNN
	SizeLocals plan;          // offsets in model_run
	int noffset, coffset;     // C: where buffers lie, when sizes are open: model/offsets.c
	Offset *offsets;
	Names place_names;    // members of model_places
	const char *places;   // the local of model_run that has them
	PointerMap offset_at; // Dim -> its index in offsets
	PointerMap firsts;    // Dim -> how the first value of the program that lies there is called
	SizeLocals sizes;     // CUDA: what launches are given
	Text run;             // the calls of model_run
	int nlocal_run, clocal_run;
	RunLocal *locals_run; // with several blocks
	NameMap wheres;       // places in the model that several failures name -> the local that does
	bool blocks;          // there are several
	int depth;            // of what `run` gets now, in loops and ifs of model_run
	bool opened;          // one of them has just begun
	Numbers numbers;      // which are variables of model_run
	bool scoped;          // they are declared where they are computed …
	PointerMap widely;    // … but for these, which are read out of sight of that,
	bool in_rounds;       // and but for what a loop over layers computes
	const Op *statement;  // which is being printed: what it computes is declared with it …
	Text fresh;           // … by these lines
	int nfresh;
	const char *fresh_type; // of the last
	int nmoving;
	Moving *moving;                    // by number
	bool fails;                        // some kernel returns a status
	bool uses_workspace, uses_weights; // pointers into them stand in model_run
	TraceState trace;
	SourceMap map;
	CudaState cuda;
	bool uses_state, uses_sizes; // CUDA: what kernels tell, sizes and counters
	bool object_weights;         // .incbin
};

// ---- functions: func.c --------------------------------------------------------------------------

KernelFunc *kernel_new(Codegen *cg, const Op *op);
// Adds the function (or finds its twin) and returns its name; then its arguments are those of
// k->params.
const char *kernel_finish(KernelFunc *k);
// Adds a function, named after stem; CUDA prints all of them at the end. Returns its number.
int kernel_add(Codegen *cg, EmittedFunc f, const char *stem);
// The type of a parameter, as C text.
const char *kernel_param_type(const KernelFunc *k, const KernelParam *p);
// The bound of a size found at run time, as a parameter.
const char *kernel_bound(KernelFunc *k, const Dim *sym);

// ---- sizes.c ------------------------------------------------------------------------------------

const char *symbol_name(const Codegen *cg, const Dim *sym);
// A size as a C expression over names that `name_of` gives to symbols.
const char *dim_expression(Arena *a, const Dim *d,
                           const char *(*name_of)(const Dim *sym, void *arg), void *arg);
// A size in model_run, where symbols are locals of their own name.
const char *dim_in_run(Codegen *cg, const Dim *d);
// As dim_in_run, with the bounds of sizes that a run finds in place of these.
const char *dim_of_bounds(Codegen *cg, const Dim *d);
const Symbol *symbol_find(const Codegen *cg, const Dim *sym); // NULL: none
// The member of the dims struct that stands for a symbol: its size, or its bound; NULL: neither is
// asked for.
const char *symbol_member(const Symbol *s);
// CUDA: a size found at run time stays on the device; kernels get its address.
bool size_is_on_device(const Codegen *cg, const Dim *sym);
// A number as an expression in which large parts, and quotients of quotients, are locals, declared
// in l->text. In the plan, sizes found at run time count with their bounds.
const char *dim_in_locals(SizeLocals *l, const Dim *d);
const char *dim_local(const SizeLocals *l, const Dim *d); // its local; NULL: it has none
void size_locals_init(SizeLocals *l, Codegen *cg, SizeKind kind, Names *scope);
void workspace_print(Codegen *cg, Text *out); // model_workspace_size
// The statements of a function of model_dims *dims that numbers of l need, with what refuses sizes
// that cannot be (`return refuse;`), or whose plan would overflow. l->text is empty then.
void sizes_print(SizeLocals *l, const char *refuse, Text *out);
// Locals for what symbols count as in the plan, as far as numbers of l were made of them.
void rooms_print(const SizeLocals *l, Text *out);
// estimate.c: a bound of a size, and of what is computed on the way to it, in floating point.
const char *size_estimate(SizeLocals *l, const Dim *d);

// ---- scalar.c, scalar_parts.c -------------------------------------------------------------------

enum { TEAM_WARPS = 8 }; // CUDA: of a block whose threads reduce elements together

// The variable, and the expression that stands for it where positions are wider.
typedef struct NarrowIndex {
	const char *variable, *name;
} NarrowIndex;

// An index that is in [from, to).
typedef struct IndexSpan {
	const Value *arg;
	int64_t from, to;
} IndexSpan;

// Printing of scalar operations: what each value is called, and which predicates are known here.
struct Scalars {
	KernelFunc *k;
	PointerMap names;  // Value -> C expression
	PointerMap merged; // block argument -> the next one, which runs with it in one loop
	int nknown;
	const Value *known[8]; // predicates known in this place …
	bool known_value[8];   // … and what they are
	PointerMap narrow;     // index -> a NarrowIndex, where a variable of 32 bits holds it
	int nspan;
	IndexSpan spans[4];          // where indices are known to be in this place
	const struct Needed *needed; // what is printed in this place; NULL: all operations
};

void scalars_init(Scalars *s, KernelFunc *k);
const char *scalars_name(Scalars *s, const Value *v); // NULL after a diagnostic
// The value of one operation as a C expression; NULL after a diagnostic.
const char *scalar_expression(Scalars *s, const Op *op);
// Whether an operand of `reader`, which alone reads it, stands once in its text.
bool scalar_stands_once(const Scalars *s, const Op *reader, int operand);
// e, rounded when the type is a half-precision one (whose scalars are floats).
const char *scalar_round(KernelFunc *k, const Type *t, const char *e);
// Which element a load reads, as a C expression; NULL after a diagnostic.
bool expression_is_word(const char *e); // a name, or a number
const char *load_index(Scalars *s, const Op *load);
// Prints the operation as a declaration, or remembers its expression when one reader can hold it.
bool scalar_op_print(Scalars *s, const Op *op, bool may_inline, int depth, Text *out);
// 1: known true, 0: known false, -1: not known. spans.c.
int scalars_known(const Scalars *s, const Value *pred);
// What `x && y` or `x || y`, not known itself, is where one of them is: the other; else NULL.
const Value *scalars_rest(const Scalars *s, const Op *op);
// Whether an index is one number wherever the region is being printed, and which. spans.c.
bool spans_exact(const Scalars *s, const Value *index, int64_t *at);
// The operand that an index's limit, maximum or minimum, is wherever the region is being printed
// (NULL: not known); where along arg it turns from one to the other. spans.c.
const Value *spans_limit(const Scalars *s, const Op *op);
// Where along arg a comparison of positions is decided: until at[0] it is one thing, from at[1] the
// other, whatever the loops within are at. The one place where two are equal. spans.c.
bool spans_compared(const Scalars *s, const Op *op, const Value *arg, int64_t at[2]);
bool spans_equal(const Scalars *s, const Op *op, const Value *arg, int64_t *at);
bool spans_crossing(const Scalars *s, const Op *op, const Value *arg, int64_t *at);
// Of a position that is divided by a constant: the index which, with *shift, is the rest wherever
// the region is being printed (NULL: not known); where along arg the quotient becomes another,
// which is so once or twice, for divisors of `least` at least. spans.c.
const Value *spans_rest(const Scalars *s, const Op *op, int64_t *shift);
bool spans_turn(const Scalars *s, const Op *op, const Value *arg, int64_t least, int64_t *at);
// loop.to_index and loop.near_index as statements, the latter as an expression of 32 bits; the
// position within the last axes of a load whose indices all are in variables of 32 bits, in these
// (NULL: none is), how many axes come before, and what one step of them is. indices.c.
bool to_index_print(Scalars *s, const Op *op, int depth, Text *out);
bool near_index_print(Scalars *s, const Op *op, int depth, Text *out);
const char *near_index_expression(Scalars *s, const Op *op);
const char *narrow_index(const Scalars *s, const Op *op, int first, const Type *t, int *axes,
                         int64_t *size);
// The operations that a block's terminator needs where `s` stands, but for values `left` to the
// caller, who sets them, if any, behind needed_begin. needed.c.
typedef struct Needed {
	const Scalars *s;
	PointerMap ops; // Op -> itself
	const Value *const *left;
	int nleft;
} Needed;

void needed_begin(Needed *n, const Scalars *s);
void needed_value(Needed *n, const Value *v);
void needed_block(Needed *n, const Block *b);
bool needed_is(const Needed *n, const Op *op);
// The only use of v by what is needed; NULL: there are several, or none.
const Use *needed_use(const Needed *n, const Value *v);
// Whether a float is sure to be a number that the integer type has room for; maximum and minimum
// with a constant, NULL: as the table has them. limits.c.
bool float_fits(const Value *v, const Type *to);
const char *limit_expression(const Scalars *s, const Op *op, const char *x, const char *y);
// guards.c. `e` with what it holds of `condition ? x : y` decided: it is only computed where the
// condition has that value.
const char *guard_decided(Arena *a, const char *e, const char *condition, bool value);
// `pred ? x : y` without what the predicate decides in x and y; NULL after a diagnostic.
const char *guard_choice(Scalars *s, const Value *pred, const char *x, const char *y);
// The text `e` of `x && y` or `x || y` without what x decides in y; of another operation, itself.
const char *guard_logic(Scalars *s, const Op *op, const char *e, const char *x);
// `i >= n` of a position i, for n < i + 1; NULL: op is no such comparison.
const char *guard_at_least(Scalars *s, const Op *op);
// Whether such comparisons are all that reads op, i + 1, which they do not print.
bool guard_is_silent(const Op *op);
// exp(x) or tanh(x) that is only added to numbers beside which small results are nothing: a shorter
// function, else NULL. limits.c.
const char *beside_expression(const Scalars *s, const Op *op, const char *x);
// Whether v is arg + *offset.
bool index_of_arg(const Value *v, const Value *arg, int64_t *offset);
// type_c_scalar() inside of a function, where positions may be narrower.
const char *kernel_scalar(const KernelFunc *k, const Type *t);
static inline bool type_is_complex(const Type *t)
{
	return t->kind == TY_SCALAR && dtype_is_complex(t->dtype);
}

// An operation on the complex numbers x and y (scalar_complex.c); NULL after a diagnostic.
const char *complex_expression(Arena *a, const Op *op, const char *x, const char *y);

// An argument of a region that is divided, and what quotient and remainder are called.
typedef struct IndexSplit {
	const Value *arg;
	const char *quotient, *rest;
} IndexSplit;
// Prints the statements of a scalar region's only block, `depth` tabs deep. args[i] is the C
// expression for block argument i (an identifier, a literal or parenthesised). yields[i] becomes
// the expression of the i-th yielded value. The same region may be printed several times (row and
// tail loops). Statements may stand in any block of C; they declare `const` locals with names
// unique in the function. split: NULL: none.
bool scalar_region_print(KernelFunc *k, const Region *r, const char *const *args,
                         const IndexSplit *split, int depth, Text *out, const char **yields);
// `out[i] = (conversion of) value`, without the semicolon; and an element as a scalar expression.
const char *scalar_store(KernelFunc *k, DType t, const char *pointer, const char *index,
                         const char *value);
const char *scalar_load(KernelFunc *k, DType t, const char *pointer, const char *index);
// The linear element index of tensor type t at the given index expressions: `(i * 64 + j)`.
const char *scalar_linear(KernelFunc *k, const Type *t, int n, const char *const *index);
// An integer or truth as a literal.
const char *scalar_int(Arena *a, const Type *type, int64_t v);
// A float constant exactly: `0x1.8p+1f`, `INFINITY`, `NAN`.
const char *scalar_float(Arena *a, DType t, double v);

// Functions of the prelude (codegen/text/kernels/prelude_*.c.in, math.c.in) need no registration.
// These files are sequences of sections, each begun by a line `//@ name` (a function, type or
// macro; several names may be listed); a section is emitted when one of its names occurs as an
// identifier in what is emitted after it. In vector targets f32 math goes to pd_expf, pd_tanhf,
// pd_erff, pd_logf … (math.c.in: inline, branch-free, fit for auto-vectorised lane loops, no
// -ffast-math needed); `generic` calls libm.

#endif
