// Passes on values and control: what is known is folded, what is not needed goes, what does not
// change in a loop leaves it. Leaves the same operators, fewer of them. Uses lower/pass,
// lower/analysis and ir/.
#ifndef PDCC_LOWER_CLEAN_CLEAN_H
#define PDCC_LOWER_CLEAN_CLEAN_H

#include "lower/pass/pass.h"

// expand.c: operators that go step by step to loops
bool pass_expand(PassContext *p);
// canonicalize.c: identities, views, dead shape operands
bool pass_canonicalize(PassContext *p);
// fold.c: operations on constants and parameters, through the interpreter
bool pass_fold(PassContext *p);
// unit_rows.c: sequences stay images of one row between convolutions
bool pass_unit_rows(PassContext *p);
// fold_batch_norm.c: into the weights of the convolution before
bool pass_fold_batch_norm(PassContext *p);
// integers.c: products of quantised values in integers
bool pass_integers(PassContext *p);
// cse.c
bool pass_cse(PassContext *p);
// dce.c
bool pass_dce(PassContext *p);
// hoist.c: what does not change in a loop goes in front of it
bool pass_hoist(PassContext *p);
// bounds.c: how large sizes become that control flow changes
bool pass_bounds(PassContext *p);
// simplify_if.c: known conditions, results nobody needs, neighbours
bool pass_simplify_if(PassContext *p);
// loop_args.c: variables that stay, that are one, that nobody reads
bool pass_loop_args(PassContext *p);
// loop_trips.c: loops of no, one and few rounds
bool pass_loop_trips(PassContext *p);
// select.c: small branches to pd.where
bool pass_select(PassContext *p);
// strip_backward.c: gradients that --grad added go again
bool pass_strip_backward(PassContext *p);
// sink.c: what one branch alone reads moves into it
bool pass_sink(PassContext *p);

#endif
