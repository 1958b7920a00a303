// What the rounds of a loop keep for the loop backwards, and what that computes again, once both
// are built.
#ifndef PDCC_GRADIENT_REMAT_H
#define PDCC_GRADIENT_REMAT_H

#include "ir/base/map.h"
#include "ir/gradient/gradient.h"

// A round backwards: a copy of the round, and its gradient behind it.
typedef struct Round {
	const Block *body;
	const Op *border;  // the first operation behind the copy
	int n;             // variables of the loop
	Value **starts;    // [n], in the copy: what the round began with, if it is kept
	Value **ends;      // [n], in the copy: what it ended with
	bool *logged;      // [n]: an array to which what the round did can be undone
	PointerMap pushed; // values of the copy that may be kept -> those of the round forward
	// What remat_choose leaves:
	bool *carried; // [n]: the end is what the round popped before this one began with
	int nkept;
	Value **kept; // values of the copy that are kept, too
} Round;

// Chooses what costs least, by bytes kept and work done again: a minimum cut, exact as far as its
// costs are. Where nothing can be done nothing is chosen.
void remat_choose(Round *r, RematHow how);

#endif
