// Building operations: make, infer, insert (build.c, infer.c), loop nests (nest.h), kernels that
// choose (select.c), loops of a counter (counted.h). Leaves operations with types in their blocks,
// or NULL after a diagnostic; an operation's own rule is reached through its row of the table. Uses
// ir/base, ir/core and ir/text.
#ifndef PDCC_IR_INFER_BUILD_H
#define PDCC_IR_INFER_BUILD_H

#include "ir/core/core.h"

// Where new operations go and where they come from.
struct Builder {
	Context *ctx;
	Block *block; // append here, or
	Op *before;   // before this one
	const Loc *loc;
};

Builder builder_at_end(Context *c, Block *b, const Loc *loc);
Builder builder_before(Op *op); // takes op's location
void builder_insert(Builder *b, Op *op);
// Makes, infers and inserts. NULL after a diagnostic when inference fails.
Op *build_op(Builder *b, enum OpCode code, int noperand, Value *const *operands, int nattr,
             const NamedAttr *attrs);
// The one result of a one-result operation; attributes as name, Attr pairs ended by NULL.
Value *build(Builder *b, enum OpCode code, int noperand, Value *const *operands, ...);
Value *build1(Builder *b, enum OpCode code, Value *x, ...);
Value *build2(Builder *b, enum OpCode code, Value *x, Value *y, ...);
Value *build_constant(Builder *b, const Tensor *t);   // builtin.constant, or a parameter when large
Value *build_scalar_f(Builder *b, DType t, double v); // scalar typed (loop regions)
Value *build_full(Builder *b, const Type *t, double v); // pd.full tensor
// A run ends with the message where `holds` does not hold everywhere. False where it is NULL.
bool build_assert(Builder *b, Value *holds, const char *message);
// Infers result types of an operation whose operands and attributes are set.
bool op_infer(Op *op);

#endif
