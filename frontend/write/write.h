// SSA programs to Paddle 3's files: `inference.json` and the parameters beside it. Leaves their
// bytes; the driver writes the files. Uses ir/ and the names that frontend/read knows.
#ifndef PDCC_FRONTEND_WRITE_WRITE_H
#define PDCC_FRONTEND_WRITE_WRITE_H

#include "frontend/read/read.h"

// Makes a module ready for it: what has no form in Paddle 3 becomes what it means, checks of sizes
// go (Paddle makes them itself). What nobody reads then is to be taken out (dce).
void pir_prepare(Op *module);

// The program of a module that is not lowered, as a file of version 3 (Paddle 3.2). *params: the
// parameters that it reads, in the order of their sorted names, as Paddle wants them in the file
// beside it. False after a diagnostic for everything that has no form in Paddle 3.
bool pir_write(Op *module, Text *json, Tensor ***params, int *nparam);

#endif
