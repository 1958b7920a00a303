// Operators of object detection: what boxes, regions and the choice among them mean. Leaves nests
// and kernels that choose. Uses ir/sequence, ir/define, ir/infer and ir/build; nobody calls it but
// through the operator table.
#ifndef PDCC_IR_DETECT_DETECT_H
#define PDCC_IR_DETECT_DETECT_H

#include "ir/build/nest.h"

#endif
