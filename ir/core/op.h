// Operations, values, blocks and regions (op.c).
#ifndef PDCC_IR_CORE_OP_H
#define PDCC_IR_CORE_OP_H

#include "ir/core/attr.h"

// A result of an operation, or an argument of a block.
struct Value {
	const Type *type;
	Use *uses;      // every operand slot that reads it, in the order in which they were set
	Use **uses_end; // where the next one goes; NULL while there is none (op.c's own)
	Op *def;        // the operation, or NULL for a block argument
	Block *block;   // the block whose argument it is, or NULL
	uint32_t index; // which result or argument
	bool stop_gradient, persistable;
	bool never_negative; // a variable of a loop that begins at 0 or above, and only grows
	bool sign_asked;     // somebody would do with less if it were
	const char *name;    // the legacy variable it came from; a hint for printing, may be NULL
	const Dim *const
		*known; // what an integer tensor of few elements holds, as far as inference can
	int nknown; // tell (shape arithmetic); known is NULL when it cannot
};

// An operand slot, linked into its value's list of uses.
struct Use {
	Value *value; // NULL: an optional operand left out
	Op *user;
	uint32_t index;
	Use *next, **prev;
};

typedef struct NamedAttr {
	const char *name; // uniqued
	const Attr *attr;
} NamedAttr;

// A successor of a terminator, and which operands feed its block's arguments.
typedef struct Succ {
	Block *block;
	uint32_t first, count; // operands [first, first + count)
} Succ;

struct Op {
	enum OpCode code;
	const OpInfo *info;
	const Loc *loc; // never NULL; loc_unknown at the least
	Context *ctx;
	Block *block; // where it is; NULL while detached
	Op *prev, *next;
	int nresult, noperand, nsucc, nregion, nattr;
	int operand_room; // slots of operands that there is memory for
	Value *results;   // [nresult]
	Use *operands;    // [noperand]
	Succ *succs;      // [nsucc]
	Region *regions;  // [nregion]
	NamedAttr *attrs; // [nattr], sorted by name
	void *scratch;    // a pass's own; meaningless between passes
};

struct Block {
	Region *region;
	Block *prev, *next;
	Op *first, *last;
	int narg, carg;
	Value **args;
	uint32_t id; // for printing
};

struct Region {
	Op *op; // the operation that holds it
	Block *first, *last;
};

extern const Loc loc_unknown;

// Makes a detached operation. `operands` may hold NULLs. Result types must be known (or see
// build.c).
Op *op_new(Context *c, enum OpCode code, const Loc *loc, int nresult,
           const Type *const *result_types, int noperand, Value *const *operands, int nregion,
           int nsucc);
void op_append(Block *b, Op *op); // at the end
void op_insert_before(Op *where, Op *op);
void op_insert_after(Op *where, Op *op);
void op_detach(Op *op); // out of its block, operands kept
void op_erase(Op *op);  // detach and drop operands and regions; results must be unused
// An error at the operation, which it names. False, for the caller to return.
bool op_error(const Op *op, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline Value *op_result(Op *op, int i)
{
	return &op->results[i];
}
static inline Value *op_operand(const Op *op, int i)
{
	return i < op->noperand ? op->operands[i].value : NULL;
}
void op_set_operand(Op *op, int i, Value *v); // the only way to change a use list
void op_add_operand(Op *op, Value *v);        // appends a slot
void op_remove_operand(Op *op, int i);
// Elements of operand i: those of the builtin.combine that made it, or itself. Returns how many.
int op_operand_list(const Op *op, int i, Value *const **list); // arena array
const Attr *op_attr(const Op *op, const char *name);           // NULL: not set
void op_set_attr(Op *op, const char *name, const Attr *a);     // a NULL removes
// Those of the n names that op has set, for build_op of another; returns how many.
int op_attrs_given(const Op *op, size_t n, const char *const *names, NamedAttr *out);
// Shorthands that fall back to `otherwise`.
int64_t op_int(const Op *op, const char *name, int64_t otherwise);
bool op_bool(const Op *op, const char *name, bool otherwise);
// Whether v is an index that a loop.constant gives, and which.
bool index_constant(const Value *v, int64_t *at);
// The extent below which an index is that op makes of a number; NULL: it makes none.
const Dim *number_extent(const Op *op);
// The data of a builtin.constant, or of a builtin.get_parameter that no run changes; NULL: v (which
// may be NULL) is neither, or its data are not there.
Tensor *value_constant(const Value *v);
double op_float(const Op *op, const char *name, double otherwise);
const char *op_str(const Op *op, const char *name, const char *otherwise);
DType op_dtype(const Op *op, const char *name, DType otherwise);
// Which word of its enumeration an attribute, or else its default, holds: a ReduceKind and the
// like, or their _COUNT. The first for an operator that has no such attribute.
int op_enum(const Op *op, const char *name);
// Whether a reduction keeps the largest of its elements; gives a position; keeps the largest or the
// smallest.
static inline bool reduce_is_max(ReduceKind kind)
{
	return kind == REDUCE_MAX || kind == REDUCE_HIGHEST;
}
static inline bool reduce_is_position(ReduceKind kind)
{
	return kind == REDUCE_ARGMAX || kind == REDUCE_ARGMIN;
}
static inline bool reduce_is_order(ReduceKind kind)
{
	return reduce_is_max(kind) || kind == REDUCE_MIN || kind == REDUCE_LOWEST;
}
// Copies an INTS attribute into out[max]; returns its length, or -1 when absent or too long.
int op_ints(const Op *op, const char *name, int64_t *out, int max);
// Moves the first n regions of `from` to op, which has none yet.
void op_take_regions(Op *op, Op *from, int n);
// In front of op: one like it, with these results and operands, and its attributes and regions. Who
// calls hands its uses on and erases it.
Op *op_remake(Op *op, int nresult, const Type *const *types, int noperand, Value *const *operands);
bool op_contains(const Op *op, enum OpCode code); // in its regions, at any depth
Op *op_parent(const Op *op);                      // the operation around its block; NULL at the top
// Whether v is a result of op, or made inside of it, arguments of its regions included.
bool value_is_within(const Value *v, const Op *op);
bool op_is_before(const Op *a, const Op *b); // in one block (linear)
bool value_used(const Value *v);
int value_use_count(const Value *v);
bool value_is_constant(const Value *v); // what a constant operation gives
// Whether both have the same attributes.
bool op_attrs_equal(const Op *a, const Op *b);
// Whether gradients go into the operation's operands, but not through its results: a detach.
bool op_stops_gradient(const Op *op);
// Whether there is a value, of a type that is known and a stack's.
bool value_is_stack(const Value *v);
void value_replace(Value *from, Value *to); // all uses
// `to` gets what people know `from` by: its name and its marks.
void value_name_like(const Value *from, Value *to);
void value_take(Value *from, Value *to); // both: name, marks and all uses
Op *value_op(const Value *v);            // defining operation, or the one around its block

Block *block_new(Context *c, Region *r); // appended
Value *block_add_arg(Context *c, Block *b, const Type *t);
void block_remove_arg(Block *b, int i); // must be unused
static inline Op *block_terminator(const Block *b)
{
	return b->last;
}
static inline Block *region_entry(const Region *r)
{
	return r->first;
}
// Clones op (regions included) with operands mapped through map (NULL: identity).
typedef struct ValueMap ValueMap;
ValueMap *value_map_new(Arena *a);
ValueMap *value_map_copy(const ValueMap *m);
void value_map_set(ValueMap *m, const Value *from, Value *to);
Value *value_map_get(const ValueMap *m, Value *from); // `from` itself when not mapped
Op *op_clone(Context *c, const Op *op, ValueMap *m);  // detached; results recorded in m
// Whether op, or an operation in its regions, reads a value that is so.
bool op_reads_any(const Op *op, bool (*so)(const Value *v, const void *arg), const void *arg);
// Walks all operations in `op`'s regions, outer before inner, in order; the visitor may erase the
// operation that it is given. Returning false stops the walk.
bool op_walk(Op *op, bool (*visit)(Op *op, void *arg), void *arg);

// The module: an op builtin.module with one region of one block.
Op *module_new(Context *c);
static inline Block *module_block(Op *module)
{
	return module->regions[0].first;
}
// The first operation of that kind in the module itself whose attribute `name` it is: a feed, a
// fetch, or what reads or writes a parameter. NULL: none.
Op *module_find(Op *module, enum OpCode code, const char *name);

#endif
