// The interpreter: runs a module, or evaluates single operations, on concrete tensors, slow and
// obvious. Leaves tensors, the oracle for everything else. Uses ir/core, ir/infer and ir/define.
#ifndef PDCC_IR_INTERP_INTERP_H
#define PDCC_IR_INTERP_INTERP_H

#include "ir/core/core.h"

// Runs a module (or evaluates single operations) on concrete tensors; slow and obvious. The oracle.
Interp *interp_new(Context *c, Arena *scratch);
void interp_set_feed(Interp *in, const char *name, Tensor *t);
void interp_add_feed(Interp *in, const char *name, Tensor *t); // one more element of a tensor array
bool interp_run(Interp *in, Op *module);                       // false after a diagnostic
Tensor *interp_fetch(Interp *in, int col);                     // NULL: no such column
int interp_fetch_length(const Interp *in, int col);            // of a tensor array; -1: it is none
Tensor *interp_fetch_element(Interp *in, int col, int i);      // NULL: nothing was written there
int interp_fetch_count(const Interp *in);
// Value of `v` under the operands already bound; for constant folding.
Tensor *interp_value(Interp *in, const Value *v);
void interp_bind(Interp *in, const Value *v, Tensor *t);
bool interp_op(Interp *in, Op *op);
// Calls `seen` for every tensor that an operation of the module gives, in the order of the run.
void interp_observe(Interp *in, void (*seen)(void *arg, const Value *v, const Tensor *t),
                    void *arg);
void interp_set_max_trip(Interp *in,
                         int64_t rounds);     // a loop that takes more is an error; 0: any number
int64_t interp_dim(Interp *in, const Dim *d); // symbols bound by feeds and operations

#endif
