// Operators that stand for several others: what passes of Paddle's inference leave in programs, and
// layers that are one operator. Leaves compositions of operators of pd; nobody calls it but through
// the operator table. Uses ir/build, ir/infer, ir/define and ir/loss.
#ifndef PDCC_IR_FUSION_FUSION_H
#define PDCC_IR_FUSION_FUSION_H

#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "ir/infer/infer.h"
#include "ir/loss/loss.h"

#endif
