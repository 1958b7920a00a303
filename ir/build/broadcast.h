// Who broadcasts against whom. Private to ir/build.
#ifndef PDCC_IR_BUILD_BROADCAST_H
#define PDCC_IR_BUILD_BROADCAST_H

#include "ir/core/core.h"

enum { MAX_GROUP = 8 };

// Operands that broadcast against each other, but for their last `apart` axes.
typedef struct Group {
	int n, operands[MAX_GROUP];
	int apart;
} Group;

// n is 0 where an operation's operands do not, or one is no tensor.
Group broadcast_group(const Op *op);
// The common size of the axis that is `back` axes before the last, and whether only a run can tell
// that it is; NULL: sizes that are known do not go together.
const Dim *broadcast_size(const Op *op, const Group *g, int back, bool *open);

#endif
