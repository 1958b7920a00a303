// What the files that choose forms of nests for CUDA share: forms.c, index_width.c, rows.c,
// kernels.c, teams.c. Leaves attributes of loop.nest, loop.reduce, loop.load and of kernels, which
// codegen/device follows.
// Uses lower/analysis and ir/.
#ifndef PDCC_LOWER_CUDA_FORMS_H
#define PDCC_LOWER_CUDA_FORMS_H

#include "lower/analysis/nest.h"

// A nest whose form is to be chosen.
typedef struct NestForm {
	Context *ctx;
	const Op *module;
	Op *op;
	const Block *body;
	const Dim *total;  // elements of a result
	PointerMap merged; // of its loops, later of its reductions' too
	PointerMap needed; // Op -> itself
	int nloop;
	NestLoop loops[MAX_RANK]; // outermost first, none of extent 1
	bool has_regions;         // something that is needed has
} NestForm;

// index_width.c: sets `index`, and with "run" `index_sizes` and `index_most`.
void index_width_choose(const NestForm *f);
// teams.c: the threads that reduce an element together; sets `team` of the nest, and `shared` and
// `lanes` of its reductions. Returns whether there is a team.
bool team_choose(NestForm *f);
// rows.c: of a kernel of rows; where lanes are no threads there is nothing to choose.
void rows_choose(Op *op, bool simt);
// kernels.c: of other kernels that threads share in a way of their own; clears it where lanes are
// no threads.
void kernel_choose(Op *op, bool simt);
// forms.c: how many lanes suit the loads and the results of a block; 1: none.
int lanes_suited(const Block *body, const Value *arg, int nresult, const Value *results);
// Sets `lanes` of the loads that are one access for all.
void loads_set_lanes(const Lanes *l);

#endif
