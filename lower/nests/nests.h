// Passes on loop nests: everything that is no kernel becomes one by its definition, then nests are
// fused. Leaves as few nests as possible. Uses lower/pass, lower/clean, lower/analysis and ir/.
#ifndef PDCC_LOWER_NESTS_NESTS_H
#define PDCC_LOWER_NESTS_NESTS_H

#include "lower/pass/pass.h"

// to_loops.c: everything else to loop nests by its definition
bool pass_to_loops(PassContext *p);
// fuse.c: nests into nests, into epilogues and prologues
bool pass_fuse(PassContext *p);
// hoist_terms.c: what no term of a reduction changes goes in front of it
bool pass_hoist_terms(PassContext *p);

#endif
