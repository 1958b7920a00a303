// The interpreter's parts and what `interpret` hooks use. Private to the room; the outside sees
// interp.h.
//
//   interp.c          values, running operations
//   interp_sizes.c    the values of symbols, capacities
//   interp_feeds.c    feeds, fetches, parameters, lists; running a module
//   interp_scalar.c   regions of scalar operations, compiled to instructions on strips of elements (interp_program.h)
//   interp_strip.c    runs them
//   interp_maps.c     the primitive maps on strips
//   interp_complex.c  those on complex numbers
//   interp_nest.c     loop.nest, loop.bind
//   interp_kernel.c   kernel.*: epilogues, products, rows
//   interp_conv.c     convolutions
//   interp_layout.c   layout changes
//   interp_gradient.c kernel.filter_gradient, kernel.filter_gradient_single, kernel.pool_gradient
//   interp_integer.c  kernel.integer_conv
//   interp_winograd.c kernel.winograd
//   interp_control.c  pd.if, pd.while, stacks
//   interp_array.c    tensor arrays, the memory that they are lowered to, pd.assert
//   interp_memory.c   memory of loops that run long
#ifndef PDCC_INTERP_H
#define PDCC_INTERP_H

#include "ir/base/map.h"
#include "ir/core/core.h"

// What a value holds: a tensor, or a list (vec, tensor array, stack; a stack's elements are lists).
typedef struct Cell Cell;
typedef struct CellList {
	int n, cap;
	Cell *items;
} CellList;

struct Cell {
	Tensor *tensor;
	CellList *list;
};

// How a tensor of images has them: in blocks of channels [images x blocks x rows x columns x
// lanes], or plain, which is blocks of one.
typedef struct BlockedImages {
	int64_t images, blocks, rows, columns, lanes;
} BlockedImages;

static inline BlockedImages blocked_images(const Tensor *t)
{
	return (BlockedImages){.images = t->dims[0],
	                       .blocks = t->dims[1],
	                       .rows = t->dims[2],
	                       .columns = t->dims[3],
	                       .lanes = t->rank > 4 ? t->dims[4] : 1};
}

// Elements of an image, and where one of them lies in it.
static inline int64_t blocked_size(const BlockedImages *b)
{
	return b->blocks * b->rows * b->columns * b->lanes;
}

static inline int64_t blocked_at(const BlockedImages *b, int64_t channel, int64_t y, int64_t x)
{
	return ((channel / b->lanes * b->rows + y) * b->columns + x) * b->lanes + channel % b->lanes;
}

// A symbol with its value, and the operation that found it (NULL: the feeds).
typedef struct SymValue {
	const Dim *sym;
	int64_t value;
	const Op *op;
} SymValue;

// What is fed: one tensor, or the elements of an array.
typedef struct NamedFeed {
	const char *name;
	CellList list;
} NamedFeed;

// The variables of a loop that is running; the loops around it follow.
typedef struct LoopFrame {
	struct LoopFrame *outer;
	int n;
	Cell *vars;
} LoopFrame;

// Tables live in `arena`, what values hold in `temp`: long loops move what is still needed into a
// new one.
struct Interp {
	Context *ctx;
	Arena *arena, *temp;
	size_t full;      // bytes of `temp` after which a loop gives memory back
	PointerMap index; // Value to place in cells
	int ncell, ccell;
	Cell *cells;
	PointerMap expanded; // Op to place in expansions
	int nexpansion, cexpansion;
	struct Expansion **expansions;
	int nsym, csym;
	SymValue *syms;
	int nfeed, cfeed;
	NamedFeed *feeds;
	int nfetch, cfetch;
	Cell *fetches;
	int ncapacity, ccapacity;
	SymValue *
		capacities; // how much loop.capacity makes room for; outlives a run that found it too small
	bool no_room;   // that is why the run ended
	int depth;
	LoopFrame *loops;
	int64_t max_trip; // rounds that a loop may take; 0: any number
	int expanding;    // inside of an operation's definition
	void (*seen)(void *arg, const Value *v,
	             const Tensor *t); // is told of every result; NULL: nobody is
	void *seen_arg;
};

// ---- interp.c -----------------------------------------------------------------------------------

Context *interp_context(const Interp *in);
Arena *interp_arena(const Interp *in);
// What v holds; NULL when nothing was bound. Constants and parameters are always there.
Cell *interp_cell(Interp *in, const Value *v);
void interp_bind_cell(Interp *in, const Value *v, Cell cell);
void cell_list_add(Interp *in, CellList *l, Cell cell);
// The tensor that operand i holds; NULL after a diagnostic.
Tensor *interp_operand(Interp *in, const Op *op, int i);
// The integer or truth in operand i, a tensor of one element; false after a diagnostic.
bool interp_whole(Interp *in, const Op *op, int i, int64_t *out);
// A new tensor of result i's type, bound to it; NULL after a diagnostic.
Tensor *interp_result(Interp *in, const Op *op, int i);
// `[2, 3] of f32`.
const char *interp_shape_text(const Interp *in, const Tensor *t);

// ---- interp_sizes.c -----------------------------------------------------------------------------

// 1: known now and equal, or solved; 0: cannot tell yet; -1: differs; -2: one symbol is missing,
// and this size does not say which value it has (n / 2), but another one may.
int interp_match_dim(Interp *in, const Op *op, const Dim *d, int64_t value);
// A size under the symbols known now; false after a diagnostic at op.
bool interp_size(Interp *in, const Op *op, const Dim *d, int64_t *out);
// For a size that `op` found: its symbols get a value or are checked.
bool interp_found_dim(Interp *in, const Op *op, const Dim *d, int64_t value);
// What v, bound by `op`, holds must fit its type; sizes that are found at run time become known.
bool interp_found_dims(Interp *in, const Op *op, const Value *v);
// Gives the symbol of a capacity its value in this run.
void interp_bind_capacity(Interp *in, const Op *op, const Dim *sym);
// Ends the run since something of size `size` has no room for so many; interp_run tries again with
// more where `size` is a capacity. Always false.
bool interp_no_room(Interp *in, const Op *op, const Dim *size, int64_t need);

// ---- interp_control.c ---------------------------------------------------------------------------

// Runs a region from its entry block to the terminator that leaves it, which is what it gives; the
// operation around the region when there is none. NULL after a diagnostic.
const Op *interp_region(Interp *in, const Region *r, int narg, const Cell *args);

// ---- interp_memory.c ----------------------------------------------------------------------------

// Between two rounds of a loop: when much memory was taken since the last time, frees what no value
// holds any more. Every Cell outside of the interpreter's tables must be in a LoopFrame.
void interp_tidy(Interp *in);

// ---- interp_array.c -----------------------------------------------------------------------------

// A feed or fetch of one tensor of a lowered array: made from its elements (NULL after a
// diagnostic), or added to what is fetched.
Tensor *interp_feed_part(Interp *in, const Op *op, const CellList *elements);
bool interp_fetch_part(Interp *in, Op *op, Cell *fetched);

// ---- interp_scalar.c, interp_strip.c ------------------------------------------------------------

// One element in a register: floats (all kinds) in f, the others in i. The strip of a complex
// number is followed by one of imaginary parts: COMPLEX_IM lanes behind the real one.
typedef union Lane {
	double f;
	int64_t i;
} Lane;

enum { STRIP = 128, COMPLEX_IM = STRIP }; // elements that one instruction works on

// A region of scalar operations, ready to run on strips of positions.
typedef struct Program Program;
// Captured tensors and sizes are read now. NULL after a diagnostic.
Program *program_compile(Interp *in, const Region *r);
// Where argument i of the region goes before a run, and yielded value i is after one: STRIP lanes.
Lane *program_argument(Program *p, int i);
const Lane *program_result(const Program *p, int i);
DType program_result_dtype(const Program *p, int i);
// Sets arguments [first, first + rank) to the n positions from linear position `at` of a tensor
// with dims.
void program_set_position(Program *p, int first, int rank, const int64_t *dims, int64_t at, int n);
// Runs on the first n lanes. False after a diagnostic.
bool program_run_strip(Program *p, int n);

// n elements of t at linear positions, as lanes; and back, from position `at` on.
void lanes_gather(const Tensor *t, int n, const int64_t *at, Lane *out);
void lanes_store(Tensor *t, int64_t at, int n, const Lane *v);

// ---- interp_kernel.c ----------------------------------------------------------------------------

// The elements of a kernel's result, on their way through its epilogue.
typedef struct Sink {
	Interp *in;
	Tensor *out;
	Program *epilogue; // NULL: the result has no elements
	bool whole;        // it gets integers
	bool narrow;       // it gets f32
} Sink;

bool interp_check_f32(Interp *in, const Op *op, const Tensor *t);
// The elements as f32: as they lie, or a copy.
const float *interp_floats(Interp *in, const Tensor *t);
// Makes result 0; `region` is the epilogue. False after a diagnostic, as the next.
bool sink_open(Interp *in, const Op *op, int region, Sink *s);
// Puts n sums through the epilogue, for the elements from linear position `at` on.
bool sink_put(Sink *s, int64_t at, int64_t n, const double *acc);

// ---- interp_maps.c ------------------------------------------------------------------------------

// Runs a primitive map on n lanes: `from` is the element type of the operands (of x for where),
// `to` of the result; index counts as i64. False: not a primitive for these types, or an integer
// division by zero (then *by_zero is set). Lanes up to the next multiple of 8 may be written too,
// as by lanes_round.
bool map_lanes(enum OpCode code, DType from, DType to, int n, Lane *out, const Lane *const *x,
               bool *by_zero);
// Rounds floats, or wraps integers, to an element type.
void lanes_round(DType t, int n, Lane *v);

// ---- interp_complex.c ---------------------------------------------------------------------------

// map_lanes where an operand or the result is complex. False: not a primitive for these types.
bool complex_lanes(enum OpCode code, DType from, DType to, int n, Lane *out, const Lane *const *x);
void complex_gather(const Tensor *t, int n, const int64_t *at, Lane *out);
void complex_store(Tensor *t, int64_t at, int n, const Lane *v);
// One more term or factor.
void complex_accumulate(bool product, int n, Lane *acc, const Lane *v);

#endif
