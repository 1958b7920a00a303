// How much steps of a CUDA program do, by the bounds of sizes: whether one block of threads is
// enough for them. Leaves the IR as it was. Uses ir/core.
#ifndef PDCC_LOWER_ANALYSIS_WORK_H
#define PDCC_LOWER_ANALYSIS_WORK_H

#include "ir/core/core.h"

// One block does a step when it has at most so many elements to read (those of reductions
// included): each of its threads then has so few that it costs less than a launch, about 2 us on
// recent GPUs. A kernel takes at most 4 KiB of arguments, so one of several steps has at most
// MAX_PARAMS, and one that is a loop MAX_LOOP_PARAMS.
enum { CUDA_LITTLE_WORK = 8192, CUDA_MAX_PARAMS = 480, CUDA_MAX_LOOP_PARAMS = 360 };

// Elements that a step reads or writes; and how many threads have something to do (NULL: nobody
// asks). Behind the plan.
const Dim *step_work(const Op *op, const Dim **threads);
bool work_is_little(const Dim *work);
// Whether it may be, which is seen when a run knows the sizes that its caller chose. `large`: what
// is known to be too much; NULL: nothing.
bool work_may_be_little(Context *c, const Dim *work, const Dim *large);

// How much several steps do that sizes of the run make little or not.
typedef struct Works {
	int n, cap;
	const Dim **items;
} Works;

// Where one is little, what is no more is, too: only what does not follow is kept.
void works_add(Context *c, Works *w, const Dim *work);

#endif
