// Passes on loop nests: everything that is no kernel becomes one by its definition, then nests are
// fused. Leaves as few nests as possible. Uses lower/pass, lower/clean, lower/analysis and ir/.
#ifndef PDCC_LOWER_NESTS_NESTS_H
#define PDCC_LOWER_NESTS_NESTS_H

#include "lower/pass/pass.h"

// What each does: the table in lower/pipeline.c.
PassFunction pass_to_loops, pass_fuse, pass_hoist_terms, pass_join_axes, pass_split_loops,
	pass_positions;

#endif
