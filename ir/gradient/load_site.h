// Loads in nests, for gradients of nests: where a load reads, as sums of loop variables, and solved
// for them (gradient_affine.c); and what an iteration gives to them (gradient_body.c). Private to
// ir/gradient.
#ifndef PDCC_IR_GRADIENT_LOAD_SITE_H
#define PDCC_IR_GRADIENT_LOAD_SITE_H

#include "ir/gradient/gradient.h"

enum { MAX_VARS = 3 * MAX_RANK, MAX_PATH = MAX_RANK };

// A loop variable around a load: an argument of the nest, or of a loop.reduce on the way to the
// load.
typedef struct Var {
	Value *arg;
	const Dim *extent;
	Op *counted; // the loop.reduce whose operand says how many positions there are; NULL: extent
	             // does
	Value *at;   // where it is in the nest that is built
} Var;

// One load in a nest, and how to get to it.
typedef struct LoadSite {
	Op *nest, *load;
	Value *tensor;
	int npath; // loop.reduce operations around the load, outermost first
	Op *path[MAX_PATH];
	int nvar;
	Var vars[MAX_VARS];
} LoadSite;

static inline Value *load_tensor(const Op *load)
{
	return op_operand(load, load->code == OP_LOOP_LOAD_OR ? 2 : 0);
}

static inline Value *load_index(const Op *load, int axis)
{
	return op_operand(load, axis + (load->code == OP_LOOP_LOAD_OR ? 3 : 1));
}

// constant + sum of coef * var + sum of sign * leaf, whose leaves depend on no variable.
typedef struct Affine {
	int64_t constant, coef[MAX_VARS];
	int nleaf;
	Value *leaf[MAX_VARS];
	int64_t leaf_coef[MAX_VARS];
} Affine;

// The equations `position on axis d = j[d]`, in the order in which they are solved.
typedef struct Solution {
	int naxis;
	Affine axes[MAX_RANK];
	int order[MAX_RANK]; // axes
	int pivot[MAX_RANK]; // by axis: the variable solved for; -1: the equation is checked
	bool solved[MAX_VARS];
} Solution;

// Which variable of the site v is; -1: none.
int site_var(const LoadSite *s, const Value *v);
// One variable per axis; an axis whose variables are all taken is checked instead. False: not a sum
// of variables.
bool site_solve(const LoadSite *s, Solution *x);

// A copy of the forward code at the position that s->vars have, in which the load's gradient is
// found.
typedef struct Body {
	Builder *b;
	LoadSite *s;
	Value *guard; // where the position exists; NULL: everywhere
	ValueMap *map;
} Body;

// Copies all operations of a block but the terminator to where y->b stands.
bool body_copy(Body *y, const Block *from);
// Positions behind the count of a loop.reduce that ends early do not exist. The count is code of
// the body around it.
bool body_guard(Builder *b, LoadSite *s, Value **guard);
// What iteration s->vars gives to the element that it loads, where guard is true; NULL after a
// diagnostic, or zero where *none is set: the nest that it was to stand in is gone then.
Value *body_gradient(Builder *b, Op *nest, LoadSite *s, Value *guard, Value *const *d_results,
                     bool *none);

#endif
