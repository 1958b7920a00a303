// The loops of a convolution over images and groups of packed weights, and what of them a thread
// takes: groups, and of each some rows, or tiles where rows run into each other.
#ifndef PDCC_CODEGEN_NEST_GROUPS_H
#define PDCC_CODEGEN_NEST_GROUPS_H

#include "codegen/nest/region.h"

typedef struct GroupLoops {
	const Dim *batch, *rows, *columns; // of the result
	bool flat;                         // rows of pixels run into each other, in tiles of `ur`
	int ur;
	int64_t block; // pixels, or rows of them, that meet all groups before the next do; 0: all
	// Set by group_parts: how many images; what each group has to share (NULL: nothing is shared),
	// the parameters of a part of it, and where its rows and columns begin and end.
	const char *images, *inner, *part, *row_from, *row_until, *from, *until;
	const char *extent, *blocks; // of blocks: what they divide, and how many there are
} GroupLoops;

// `groups` of each image are gone through. Asked for before the function's parameters are listed.
void group_parts(KernelFunc *k, int64_t groups, GroupLoops *g);

// `calls` for each image n.
const char *group_images(KernelFunc *k, const GroupLoops *g, const char *calls);

// Calls of the function of a group (its suffix is _group) for all groups of `nv` vectors and what
// is left of `blocks`, or for what a thread has of them; NULL after a diagnostic.
const char *group_calls(KernelFunc *k, const GroupLoops *g, int64_t blocks, int nv);

#endif
