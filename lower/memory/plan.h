// Inside of the memory plan: buffers with lifetimes go in, offsets come out. plan.c finds the
// buffers and writes down what comes out, plan_live.c knows which values are needed when,
// plan_place.c lets nests compute in place and plan_branch.c does the same for the arguments of
// blocks; plan_parallel.c knows what may run side by side; plan_pack.c and plan_symbolic.c pack.
#ifndef PDCC_PLAN_H
#define PDCC_PLAN_H

#include "ir/core/core.h"
#include "lower/analysis/analysis.h"

enum { PLAN_ALIGN = 64 };

// ---- buffers: plan_buffer.c ---------------------------------------------------------------------

typedef enum BufferPlace { IN_WORKSPACE, IN_INPUT, IN_OUTPUT, IN_PARAM, IN_STATE } BufferPlace;

typedef struct Buffer Buffer;

// A value with bytes of its own. Views of it are part of it: their readers are its readers.
typedef struct Root {
	const Value *value;
	Buffer *buffer;
	int id; // in the sets of plan_live.c
	int at; // the operation that makes it; the block's start when it is an argument
	int nuse, cuse;
	int *uses;         // operations that read it, in no order
	bool slot;         // it lies in a slice of the other values in its buffer
	struct Root *next; // in its buffer
} Root;

// Bytes that one or more values share: a value, its views, and what is computed in place of it.
struct Buffer {
	Buffer *merged; // part of that one
	BufferPlace place;
	int64_t col; // input, output
	const Dim *bytes, *offset;
	int first, last;      // operations
	const void *data_key; // param, state: name or constant, so that two readers of one share it
	Root *roots;
	int moving;        // branches exchange it with others: a number from 1 on; else 0
	Buffer *exchanged; // one of a group that is exchanged: like `merged`, but with bytes of its own
	Buffer *next;      // all of them, in order of definition
};

// In Op.scratch, for operations of the module's blocks.
typedef struct OpPlan {
	int at;
	Root **roots; // [nresult]; NULL: not a tensor
} OpPlan;

typedef struct BlockPlan {
	const Block *block;
	int start, end; // numbers of the block itself and of its last operation
	Root **args;
	uint64_t *in,
		*out; // sets of roots that are needed at the start and after the end; NULL: one block
} BlockPlan;

typedef struct Plan {
	Context *ctx;
	Arena *arena; // gone after the pass
	Region *region;
	bool parallel; // operations that do not wait for each other run side by side
	int nop, nbuffer, nroot, nblock;
	BlockPlan *blocks; // by Block.id
	Buffer *first, **tail;
} Plan;

static inline OpPlan *op_plan(const Op *op)
{
	return (OpPlan *)op->scratch;
}

Buffer *buffer_root(Buffer *b);
// The value whose bytes v shows; NULL when it is not a tensor of the module's blocks.
Root *value_root(const Plan *p, const Value *v);
Buffer *value_buffer(const Plan *p, const Value *v);
bool op_is_view(const Op *op);
bool buffer_has_args(const Buffer *b);
// Whether one buffer can be as large as both must be, as far as that can be told: sizes that a run
// finds differ.
bool buffers_can_be_one(const Plan *p, const Buffer *a, const Buffer *b);
void buffers_merge(Buffer *into, Buffer *b);

// ---- plan_live.c --------------------------------------------------------------------------------

// Finds who reads every root, and with several blocks where it is needed.
void plan_find_uses(Plan *p);
// First and last operation of every buffer.
void plan_find_spans(Plan *p);
// Whether r is needed after operation number `at` of that block.
bool root_needed_after(const Root *r, const BlockPlan *b, int at);
bool root_needed_at_start(const Root *r, const BlockPlan *b);
const BlockPlan *root_block(const Plan *p, const Root *r);
// Whether two buffers must not share bytes: a value of one is needed where one of the other is
// made. The operation that makes it may read the value only if it does so in place.
bool buffers_meet(const Plan *p, const Buffer *a, const Buffer *b);

// ---- plan_reads.c -------------------------------------------------------------------------------

// Whether the operation has a region for each element, whose loads may be computed in place: a
// nest, or in C a kernel with an epilogue.
bool op_reads_by_element(const Plan *p, const Op *op);
// Whether the operation reads r, at most, at the element of result i that it then writes.
bool op_reads_in_place(const Plan *p, const Op *op, int i, const Root *r);

// ---- plan_place.c -------------------------------------------------------------------------------

void plan_in_place(Plan *p);

// ---- plan_slot.c --------------------------------------------------------------------------------

// Lets what a loop.update takes be computed in its slice, if it has its operand's bytes.
void plan_slot(Plan *p, const Op *update);

// ---- plan_branch.c ------------------------------------------------------------------------------

// Lets what branches pass be computed where the argument lies.
void plan_join_args(Plan *p);
// Finds the buffers that branches exchange instead of copying.
void plan_find_moving(Plan *p);
// Whether branches pass what is in the buffer, and it is so little that it may live in registers:
// it must not be where others may look.
bool buffer_is_counter(const Buffer *b);
// How each value that a branch passes to its successor s gets to the argument.
void branch_moves(const Plan *p, const Op *branch, int s, MoveKind *moves);

// ---- plan_state.c -------------------------------------------------------------------------------

// Gives parameters that runs change buffers of their own. False after a diagnostic.
bool plan_states(Plan *p);
// Returns how many bytes they take at the beginning of the workspace.
const Dim *plan_state_offsets(Plan *p);
// Adds what they hold before the first run to the weights; returns the size of those.
const Dim *plan_state_initial(const Plan *p, const Dim *weights);
void set_write_plan(const Plan *p, Op *set);

// ---- plan_pack.c --------------------------------------------------------------------------------

// Bytes that are needed from operation number `first` to operation number `last`, both included.
// `apart`, a set of ids, has further items that must not share bytes with this one, each of which
// has this one in turn; NULL: none.
typedef struct PackSpan {
	int first, last;
	int id;
	const uint64_t *apart;
} PackSpan;

static inline bool spans_meet(const PackSpan *a, const PackSpan *b)
{
	if (a->first <= b->last && b->first <= a->last)
		return true;
	return a->apart && (a->apart[b->id / 64] >> (b->id % 64) & 1);
}

typedef struct PackItem {
	int64_t size; // in: a multiple of PLAN_ALIGN
	PackSpan span;
	int64_t offset; // out
} PackItem;

// Gives every item an offset such that no two whose spans meet overlap. Returns the size of it all.
int64_t pack_items(Arena *scratch, int n, PackItem *items);
// The most bytes that are live at any one operation: no plan is smaller.
int64_t pack_floor(Arena *scratch, int n, const PackItem *items);

// ---- plan_symbolic.c ----------------------------------------------------------------------------

// As PackItem for sizes that may be symbolic.
typedef struct SizedItem {
	const Dim *size; // in: bytes
	PackSpan span;
	const Dim *offset; // out
} SizedItem;

const Dim *pack_sized(Context *c, Arena *scratch, int n, SizedItem *items);
// What a size comes to where models are as large as they usually are: to compare plans.
double dim_weight(const Dim *d);

// ---- plan_parallel.c ----------------------------------------------------------------------------

// As pack_sized for buffers of[n], keeping apart what operations use that may run side by side, as
// far as this costs little.
const Dim *pack_parallel(Plan *p, int n, Buffer *const *of, SizedItem *items);

// ---- plan_scale.c -------------------------------------------------------------------------------

// Replaces sizes by sizes that are at least as large, and that have as few factors as can be.
void sizes_restate(Context *c, int n, SizedItem *items);

#endif
