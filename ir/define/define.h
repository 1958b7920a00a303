// What operations mean in simpler ones: from their entries in the operator table (expr.c), and by
// the hooks in define_*.c. Leaves the results built where a Builder stands. Uses ir/build and
// ir/infer.
#ifndef PDCC_IR_DEFINE_DEFINE_H
#define PDCC_IR_DEFINE_DEFINE_H

#include "ir/build/build.h"

// Evaluates a definition from the table: names are looked up in env (nenv pairs). With scalar
// operands it makes scalar operations, with tensors tensor operations. NULL after a diagnostic.
typedef struct EnvEntry {
	const char *name;
	Value *value;
	const Attr *attr;
} EnvEntry;
Value *build_expr(Builder *b, const ExprDef *def, int nenv, const EnvEntry *env);
// The names that an operation's definitions may use, with its operands and attributes (defaults
// from the table included); returns how many. Arena array.
int op_env(const Op *op, const EnvEntry **env);
// Builds what an operation means in simpler ones, whatever its entry has: the define hook, the
// scalar definition (or the primitive itself) as a loop.nest, or the composition. False after a
// diagnostic.
bool op_define(Builder *b, Op *op, Value **results);
// The scalar operations of a map for one element; `x` are scalar operands in the order of op's
// operands (NULL: left out). Only primitives remain.
Value *build_map_scalar(Builder *b, const Op *op, Value *const *x);

// What several definitions are made of: softmax over the last axis (define_nn.c); x after the
// function that attribute fuse_activation names, with the numbers fuse_alpha and fuse_beta, or
// without functions of numbers where `plain` is set (define_functions.c). NULL after a diagnostic.
Value *soft_weights(Builder *b, Value *scores);
Value *fused_function(Builder *b, Op *op, Value *x);
// The functions that recurrent operators name, by Paddle's numbers: identity, sigmoid, tanh, relu
// (define_rnn.c), which ActivationKind has, too. Applied: NULL of NULL.
Value *activation_apply(Builder *b, int which, Value *x);
// Both halves of x along its last axis; a size that may be odd is checked (define_fused.c).
bool last_halves(Builder *b, Op *op, Value *x, Value **halves);

// The types that the definition gives (infer_composed.c).
bool infer_hook_composed(Op *op);

#endif
