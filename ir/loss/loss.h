// Losses, measures and normalisations: what they mean as compositions and nests. Leaves operations
// of pd and loop; nobody calls it but through the operator table. Uses ir/build, ir/infer and
// ir/define.
#ifndef PDCC_IR_LOSS_LOSS_H
#define PDCC_IR_LOSS_LOSS_H

#include "ir/build/nest.h"

#endif
