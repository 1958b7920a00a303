// Writing Paddle 3's programs: what the pir_out*.c files share. Private to frontend/write/.
//
// Every value gets a number when the operation that makes it is written. What is an attribute in
// the IR and an operand in Paddle 3 becomes operations in front (full, full_int_array, arithmetic
// on shapes). Tensor arrays change in place there, so a new value of an array has the number of
// the old one.
//
//   pir_out_program.c  the document: which file writes which operation
//   pir_out_prepare.c  before: what has no form becomes what it means
//   pir_out_nest.c  loop nests as operations on tensors
//   pir_out_base.c  diagnostics, numbers of values
//   pir_out.c       operations as text
//   pir_out_type.c  types and attributes
//   pir_out_fit.c   whether a row of the operator table says all that an operation has
//   pir_out_op.c    the general rule: the operator table's `pir:` rows, backwards
//   pir_out_size.c  sizes that a run finds, as values
//   pir_out_flow.c  if and while, tensor arrays
//   pir_out_state.c inputs, outputs, constants, parameters and what changes them
#ifndef PDCC_FRONTEND_WRITE_PIR_OUT_H
#define PDCC_FRONTEND_WRITE_PIR_OUT_H

#include "frontend/write/write.h"
#include "ir/base/map.h"

// Where a run finds what a symbol stands for: axis `axis` of a tensor, or element `axis` of its
// data.
typedef struct SizeSource {
	const Dim *sym;
	int64_t value;
	int axis, rank;
	bool data;
	DType dtype;
} SizeSource;

// A size that is a value already: an i64 of rank 0.
typedef struct SizeValue {
	const Dim *dim;
	int64_t value;
} SizeValue;

typedef struct PirWriter PirWriter;
typedef bool OpWriter(PirWriter *w, const Op *op); // false after a diagnostic
struct PirWriter {
	// All operations of a block up to its terminator (pir_out_program.c). False after diagnostics.
	bool (*block)(PirWriter *w, const Block *b);
	Context *c;
	Op *module;
	Text *t;
	PointerMap numbers; // value -> its number, from 1 on; arguments -1 and downwards
	int64_t next, next_arg;
	int nregion, nblock;
	bool first; // no operation of the block at hand is written yet
	const Op *at;
	int nsource, csource;
	SizeSource *sources;
	int nsize, csize;
	SizeValue *sizes;
	PointerMap positions;  // operation -> its place in the program
	PointerMap placed;     // set_parameter -> what stands in the parameter's place already
	NameMap gets, sets;    // parameter -> the first operation of the module that reads, writes it
	PointerMap parameters; // the first get_parameter of each -> the number of the parameter
};

// A result of an operation that is written. `value` NULL: nobody reads it.
typedef struct OutResult {
	const Type *type; // NULL: none
	const Value *value;
	bool persistable;
	int64_t in_place; // the number of the parameter that it is; 0: none
} OutResult;

// An operation to be written, "1.conv2d".
typedef struct OutOp {
	const char *name;
	Text attrs; // the list's elements
	int nin;
	int64_t *in;
	int nout;
	OutResult *out;
} OutOp;

// ---- pir_out.c ----------------------------------------------------------------------------------
// At the operation at hand. Returns false.
bool PRINTF_LIKE(2, 3) out_fail(PirWriter *w, const char *fmt, ...);
// The number of a value that is written; 0 for NULL, and after a diagnostic.
int64_t out_number(PirWriter *w, const Value *v);
void out_bind(PirWriter *w, const Value *v, int64_t number);
OutOp *out_new(PirWriter *w, const char *name, int nin, int nout);
// Writes up to the regions, numbers the results, returns the first number.
int64_t out_head(PirWriter *w, const OutOp *o);
// Writes all of it.
int64_t out_op(PirWriter *w, const OutOp *o);
// What a block is written in: a region of one block with these arguments.
void out_region_begin(PirWriter *w, int narg, const Value *const *args);
void out_region_end(PirWriter *w);
// `2.yield` of these numbers.
void out_yield(PirWriter *w, int n, const int64_t *numbers);
// Sizes that are values inside of a region are none outside.
typedef struct SizeMark {
	int nsource, nsize;
} SizeMark;
SizeMark out_sizes_mark(const PirWriter *w);
void out_sizes_reset(PirWriter *w, SizeMark m);
// Whether `v` is read behind `op`, or in another round of a loop around it.
bool out_read_later(PirWriter *w, const Value *v, const Op *op);

// ---- pir_out_type.c -----------------------------------------------------------------------------
// False: Paddle 3 has no such type.
bool out_type(PirWriter *w, Text *t, const Type *type);
const Type *out_tensor(PirWriter *w, DType t, int rank, const int64_t *dims);
// Appends an attribute of that kind. False (no diagnostic): the value does not fit.
bool out_attr(OutOp *o, const char *name, PirKind kind, const Attr *a);
void out_attr_int(OutOp *o, const char *name, PirKind kind, int64_t v);
void out_attr_str(OutOp *o, const char *name, const char *s);
void out_attr_ints(OutOp *o, const char *name, PirKind kind, int n, const int64_t *v);
// `a` NULL: as Paddle says that none is given.
void out_attr_dtype(OutOp *o, const char *name, const Attr *a);
void out_attr_place(OutOp *o, const char *name);
void out_attr_flags(Text *t, const char *name, int n, const bool *flags);

// ---- pir_out_op.c -------------------------------------------------------------------------------
OpWriter out_general;
// Whether it will be written.
bool out_has_form(PirWriter *w, const Op *op);

// ---- pir_out_prepare.c --------------------------------------------------------------------------
// A parameter that is written without having been read is read in front of everything else.
void pir_give_values(Op *module);

// ---- pir_out_nest.c -----------------------------------------------------------------------------
// The size that a nest of rank 0 gives as an i64; NULL: it does something else.
const Dim *out_size_nest(const Op *nest);
// Builds in front of a nest, or of a kernel.scatter, what it computes as operations on tensors.
// False: not all of it.
bool out_nest_tensors(Op *nest, Value **results);
bool out_scatter_tensors(Op *op, Value **results);

// ---- pir_out_kernel.c ---------------------------------------------------------------------------
// Builds in front of a kernel what it computes as operations on tensors. False: it has none.
bool out_kernel_tensors(Op *op, Value **results);

// ---- pir_out_size.c -----------------------------------------------------------------------------
// Remembers which sizes the type of a value tells.
void out_size_note(PirWriter *w, const Value *v);
void out_size_bind(PirWriter *w, const Op *bind);
// 0 after a diagnostic.
int64_t out_size(PirWriter *w, const Dim *d);
// A tensor [n] of them.
int64_t out_sizes(PirWriter *w, int n, const Dim *const *dims);
int64_t out_full(PirWriter *w, int rank, DType t, const Attr *value);
int64_t out_int_array(PirWriter *w, int n, const int64_t *v);
// The elements of a vector as one tensor.
int64_t out_gathered(PirWriter *w, const Value *vec);

// ---- pir_out_flow.c -----------------------------------------------------------------------------
OpWriter out_if, out_while, out_create_array, out_array_write, out_array_slice;

// ---- pir_out_state.c ----------------------------------------------------------------------------
OpWriter out_feed, out_fetch, out_constant, out_parameter, out_set_parameter, out_combine,
	out_slice;
// The set_parameter that an operation in place makes needless: it changes `operand`, a parameter,
// and what it gives is what is set. NULL: none.
const Op *out_set_of(const Value *result, const Value *operand);

#endif
