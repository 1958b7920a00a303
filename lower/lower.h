// Lowering: passes over the IR, from operators to kernels with places in memory.
//
// Knows ir/ only. The pass table in pipeline.c is the order in which they run.
#ifndef PDCC_LOWER_H
#define PDCC_LOWER_H

#include "../ir/ir.h"

// What code is made for: the instruction set and the sizes that the kernel templates are built with.
typedef struct Target {
	const char *name;      // --isa: "avx512", "avx2", "sse4", "neon", "generic"; "cuda"
	const char *cflags;    // what the external compiler needs to be told, e.g. "-mavx2 -mfma"
	bool cuda;
	bool vector;           // GCC vector extensions; else plain ISO C11
	int lanes;             // f32 in a vector register, and b of the blocked layout
	int gemm_mr, gemm_nv;  // register tile of GEMM: rows x vectors; NR = gemm_nv * lanes
	int conv_ur, conv_nv;  // register tile of convolution: output pixels x vectors of output channels
} Target;

// NULL: no such target. "native" is resolved by the driver before.
const Target *target_find(const char *name);
const Target *target_list(int *n);

// ---- cuda_schedule.c ------------------------------------------------------------------------------
// How a block of threads computes a tile of a product: a row of the schedule table.
// CUDA_LIBRARY: it is a call of cuBLASLt, or, of convolutions, of cuDNN.
typedef enum CudaUnit { CUDA_FMA, CUDA_ROW, CUDA_TF32, CUDA_HALF, CUDA_LIBRARY } CudaUnit; // f32 exactly; tensor cores

typedef struct CudaTile {
	const char *name;
	CudaUnit unit;
	int rows, columns, depth;          // of the tile, and of a slice of the operands in shared memory
	int part_rows, part_columns;       // what a thread of it sums; on tensor cores, a warp
	int stages;                        // slices in shared memory
	int registers;                     // that a thread may have
	int speed;                         // of the inner loop, per cent of the best
} CudaTile;

typedef struct CudaProduct {
	Context *ctx;
	const Dim *batches, *m, *n, *k;
	DType dtype;                       // of the operands
	bool tf32;                         // f32 may be rounded to it
	bool whole;                        // its depth must not be split
} CudaProduct;

typedef struct CudaSchedule {
	const CudaTile *tile;
	int split;                         // parts of the depth that different blocks sum
} CudaSchedule;

CudaSchedule cuda_schedule(const CudaProduct *p);
// For products of few rows with a right operand that lies [n][k]; NULL: this is none.
const CudaTile *cuda_schedule_rows(const CudaProduct *p);
const CudaTile *cuda_tile_find(const char *name); // NULL: none
const CudaTile *cuda_tile_next(const CudaTile *t); // the next smaller one of the unit, whose slices are as deep
int cuda_tile_threads(const CudaTile *t);
int cuda_tile_shared(const CudaTile *t);          // bytes that a block has
int cuda_tile_blocks(const CudaTile *t);          // that share an SM
// A call of a library; tf32: which may round f32 to it. Whether a kernel is one, and is such a one.
CudaSchedule cuda_schedule_library(bool tf32);
bool cuda_op_is_library(const Op *op);
bool cuda_library_rounds(const Op *op);

// ---- library.c ------------------------------------------------------------------------------------
// How many matrices lie in front of the last two dims; and how far apart they are in an operand of a product of that type,
// 0: there is one for all, NULL: they lie otherwise.
const Dim *matrix_count(Context *c, const Type *t);
const Dim *matrix_stride(Context *c, const Type *t, const Type *out);

// How blocks of threads share attention: a row of its own table, which has rows for heads of up to so many elements.
enum { CUDA_MAX_HEAD = 128 };
typedef struct CudaAttention {
	const char *name;
	CudaUnit unit;                     // of both products; CUDA_ROW: a block for a row
	int rows, keys;                    // whose scores a block has at a time
	int width;                         // elements of the widest head that it is for
	int threads, blocks;               // of a block; on one SM at a time
} CudaAttention;

typedef struct CudaHeads {
	Context *ctx;
	const Dim *batches, *rows, *keys;
	int64_t width;                     // of a key or a value, whichever is wider
	DType dtype;                       // of the products' operands
	bool tf32;
} CudaHeads;

typedef struct CudaAttentionSchedule {
	const CudaAttention *tile;
	int split;                         // parts of the keys that different blocks take
} CudaAttentionSchedule;

CudaAttentionSchedule cuda_schedule_attention(const CudaHeads *h);
const CudaAttention *cuda_attention_find(const char *name); // NULL: none

typedef struct PassContext {
	Context *ctx;
	Op *module;
	const Target *target;
	bool verify;           // run ir_verify after each pass
	bool time_report;
	int64_t max_trip;      // rounds that a loop may take, 0: any number
	bool allow_tf32;       // CUDA: products of f32 may round their operands
	bool cuda_libs;        // CUDA: products and convolutions are calls of cuBLASLt and cuDNN where these can do them
	int64_t max_array;     // elements of a tensor array where the program does not say; 0: the caller says it
} PassContext;

typedef struct Pass {
	const char *name, *summary;
	bool (*run)(PassContext *p); // false after a diagnostic
} Pass;

const Pass *pass_table(int *n);               // each pass once, by name
// Runs the whole pipeline, or stops after the stage that `until` names (NULL: all).
bool lower_run(PassContext *p, const char *until);
// The name of stage i of the pipeline and its passes, comma-separated; NULL after the last one.
const char *lower_stage(int i, const char **passes);
// Runs a comma-separated list of passes: `pdcc opt --passes=`. A stage that is no pass, as `clean`, stands for its passes.
bool lower_run_list(PassContext *p, const char *names);

bool pass_expand(PassContext *p);         // expand.c: operators that go step by step to loops
bool pass_canonicalize(PassContext *p);   // canonicalize.c: identities, views, dead shape operands
bool pass_fold(PassContext *p);           // fold.c: operations on constants and parameters, through the interpreter
bool pass_fold_batch_norm(PassContext *p);// fold_batch_norm.c: into the weights of the convolution before
bool pass_cse(PassContext *p);            // cse.c
bool pass_dce(PassContext *p);            // dce.c
bool pass_stacks(PassContext *p);         // stacks.c: stacks to tensor arrays
bool pass_forward_arrays(PassContext *p); // arrays_forward.c: stores to loads, known lengths
bool pass_arrays(PassContext *p);         // arrays.c: tensor arrays to tensors
bool pass_attention(PassContext *p);      // attention.c: products around softmax to one kernel, for CUDA
bool pass_decompose(PassContext *p);      // decompose.c: composites, transposed convolutions, softmax and norms to kernels
bool pass_layout(PassContext *p);         // layout.c: contractions to kernels, blocked channels, packed weights
bool pass_to_loops(PassContext *p);       // to_loops.c: everything else to loop nests by its definition
bool pass_fuse(PassContext *p);           // fuse.c: nests into nests, into epilogues and prologues
bool pass_split_reductions(PassContext *p); // split_reduce.c
bool pass_hoist(PassContext *p);          // hoist.c: what does not change in a loop goes in front of it
bool pass_bounds(PassContext *p);         // bounds.c: how large sizes become that control flow changes
bool pass_simplify_if(PassContext *p);    // simplify_if.c: known conditions, results nobody needs, neighbours
bool pass_loop_args(PassContext *p);      // loop_args.c: variables that stay, that are one, that nobody reads
bool pass_loop_trips(PassContext *p);     // loop_trips.c: loops of no, one and few rounds
bool pass_count_loops(PassContext *p);    // count_loops.c: loops whose rounds are known on entry count them, for CUDA
bool pass_select(PassContext *p);         // select.c: small branches to pd.where
bool pass_sink(PassContext *p);           // sink.c: what one branch alone reads moves into it
bool pass_flatten(PassContext *p);        // flatten.c: pd.if and pd.while to blocks and branches
bool pass_scratch(PassContext *p);        // library.c: memory for calls of libraries
bool pass_plan(PassContext *p);           // plan.c: one workspace

// ---- trip_count.c ---------------------------------------------------------------------------------
// How many rounds a pd.while takes: exactly, and at most; either is NULL when that is not known. Sizes may hold symbols
// that are bound outside of the loop only. Returns whether `at_most` is known. Before nests are made.
bool while_trip_count(Context *c, const Op *loop, const Dim **exact, const Dim **at_most);
// Where the counter of a loop begins and what it is compared with, when numbers in front of the loop decide: base + offset.
typedef struct TripEnd {
	Value *base; // an integer of one element; NULL: 0
	const Dim *offset;
} TripEnd;

typedef struct TripEnds {
	TripEnd first, end;
	int64_t step; // less than 0: downwards
	bool inclusive; // the last round is that at `end`
} TripEnds;

bool while_trip_ends(Context *c, const Op *loop, TripEnds *out);
// Whether a symbol of d gets its value in op's regions, so that d means nothing in front of op.
bool dim_changes_in(const Dim *d, const Op *op);

// ---- deps.c ---------------------------------------------------------------------------------------
// Which steps of a program must wait for which, by the bytes that they touch.
enum {
	ACCESS_READ = 1,
	ACCESS_WRITE = 2,
	ACCESS_UPDATE = 4 // atomically: updates may come in any order
};

// Bytes from `begin` to `end` of a memory. Two memories, which the caller numbers, share no bytes.
typedef struct Access {
	int memory;
	unsigned how; // of the above, or several
	const Dim *begin, *end;
} Access;

typedef struct Accesses {
	int n, cap;
	Access *items;
} Accesses;

void accesses_add(Arena *a, Accesses *set, Access access);
void accesses_add_all(Arena *a, Accesses *set, const Accesses *more);

// The steps that one must wait for, the last one first; none for which another of them waits.
typedef struct Waits {
	int n;
	const int *steps;
} Waits;

// For each of n steps in the order of the program. Steps of which neither waits for the other may run at one time.
const Waits *deps_find(Context *c, Arena *a, int n, const Accesses *steps);

// ---- shared by passes (rewrite.c) -----------------------------------------------------------------
// Replaces op's results by `with` (types must agree) and erases it.
void op_replace(Op *op, Value *const *with);
// Moves the first n regions of `from` to op, which has none yet.
void op_take_regions(Op *op, Op *from, int n);
// Parameter or constant behind a value: its data, or NULL.
Tensor *value_constant(const Value *v);
// A new parameter (named after `name` and a suffix) holding t, read at `b`.
Value *build_parameter(Builder *b, const char *name, const char *suffix, Tensor *t);

// Element i of t as a scalar, in a loop region.
Value *build_element(Builder *b, const Tensor *t, int64_t i);
// Whether a data_format puts channels last ("NHWC", "NDHWC", "NLC").
bool format_channels_last(const char *format);
// A position known at compile time, in a loop region.
Value *build_index(Builder *b, int64_t v);

// ---- loop_blocks.c: loops among blocks -----------------------------------------------------------------------

// The branch back to that block; NULL: it does not begin a loop.
const Op *loop_back(const Block *head);
// Whether a branch on a condition is that of a loop: it alone leaves the blocks between the head and the way back.
bool branch_is_of_loop(const Op *op);
bool op_is_silent(const Op *op); // nothing is done for it
// Loops whose rounds are known on entry: the branch at the head's end, which never looks at its condition; NULL: another loop.
const Op *loop_counted(const Block *head);
const Dim *loop_rounds(const Block *head); // as far as the host knows; NULL: it does not
// What only counts: an argument of a block, an operation. It has no memory, and nothing is printed for it.
bool argument_counts(const Value *arg);
bool op_counts(const Op *op);

#endif
