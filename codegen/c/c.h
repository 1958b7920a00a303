// C as a backend: the body of model_run, and the emitters of kernels from the templates beside
// them. Leaves model.c. Uses codegen/model, codegen/nest and what is below; never meets CUDA.
#ifndef PDCC_CODEGEN_C_C_H
#define PDCC_CODEGEN_C_C_H

#include "codegen/model/model.h"

bool update_print(Codegen *cg, const Op *op); // loop.update
bool append_print(Codegen *cg, const Op *op); // loop.append
void c_module_print(Codegen *cg, CodegenResult *out);
// blocks.c: all of them, with their operations; false after diagnostics.
bool blocks_print(Codegen *cg, const Op **bound);
void c_run_print(Codegen *cg, Text *out); // model_run

#endif
