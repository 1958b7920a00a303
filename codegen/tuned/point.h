// The tile function of 1 x 1 convolutions, which serves every product of blocked pixels
// (conv.c).
#ifndef PDCC_CODEGEN_TUNED_POINT_H
#define PDCC_CODEGEN_TUNED_POINT_H

#include "codegen/func/func.h"

// Emits conv_point.c.in for tiles of `height` pixels, side by side, x nv vectors of weights in
// groups of q, and gives its name: f(pixels, x, plane, channels, w, ahead, step, tile), which
// fetches what lies at ahead + c * step. NULL after a diagnostic.
const char *conv_point_function(KernelFunc *k, int height, int nv, int q);

#endif
