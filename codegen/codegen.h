// Code generation: from the IR that lowering left behind to C or CUDA text. Leaves the texts, and
// weights; the driver writes the files. Uses all rooms of codegen/, ir/ and what lower/ leaves
// behind.
#ifndef PDCC_CODEGEN_H
#define PDCC_CODEGEN_H

#include "codegen/func/options.h"
#include "lower/target/target.h"

// False after diagnostics. The module must have gone through the whole lowering pipeline.
bool codegen(Context *c, const Op *module, const Target *t, const CodegenOptions *o,
             CodegenResult *out);

#endif
