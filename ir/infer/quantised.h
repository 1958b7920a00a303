// What quantisation means wherever it stands (infer_special.c).
#ifndef PDCC_IR_INFER_QUANTISED_H
#define PDCC_IR_INFER_QUANTISED_H

#include "ir/core/core.h"

// The largest whole number of so many bits, of which quantisation has as many below zero.
double quantised_most(int64_t bits);
// Whether a quantisation rounds halves away from zero, and not to even.
bool quantised_away(const Op *op);
// Models that were only observed while they ran keep their operators, which pass on what comes.
bool quantised_observes(const Op *op);
// The axis of the channels that the first of so many scales has: of two, the channels of a product,
// and the second scale is one for all. Negative: none.
int64_t quantised_axis(const Op *op, int scales);

#endif
