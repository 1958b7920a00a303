// What pass cuda-waits leaves on operations: which node of a CUDA graph each step is part of, and
// for whom nodes wait (waits.c).
#ifndef PDCC_IR_CORE_WAITS_H
#define PDCC_IR_CORE_WAITS_H

#include "ir/core/op.h"

// The attributes of an operation, or of the module, all of whose numbers are those of nodes:
//   node    the node of each of its steps, in the order in which these are printed: branches have
//           several, and so has what is printed in front of a loop and in it. Steps of one node that
//           stand side by side are one kernel.
//   apart   beside `node`, where sizes of a run decide whether the node is one kernel: the node that
//           the step is part of where it is not; 0: nothing decides that
//   after   of nodes that begin with one of these steps, and that do not wait for just the node in
//           front of them in their graph: "5: 3 4" waits for both, "5:" for none
//   meet    "5: 7 8": of what goes round in node 5, a round is over when 7 and 8 are
//   counts  on the way back of a loop: nodes that count its rounds beside what they do

// A line of numbers in `after` or `meet`.
typedef struct WaitsLine {
	int number, n;
	const int *list;
} WaitsLine;

bool waits_line_read(Arena *a, const char *text, WaitsLine *line); // false: it is none
const char *waits_line_text(Context *c, const WaitsLine *line);
// That of node `number` in an attribute of op; false: there is none.
bool waits_find(Arena *a, const Op *op, const char *attr, int number, WaitsLine *line);

#endif
