// Lowering: the table of passes and the order in which they run, from operators to kernels with
// places in memory. Leaves a module of blocks, branches, nests and kernels for codegen/. Uses all
// rooms of lower/ and ir/.
#ifndef PDCC_LOWER_LOWER_H
#define PDCC_LOWER_LOWER_H

#include "lower/pass/pass.h"

const Pass *pass_table(int *n); // each pass once, by name
// "; did you mean 'fold'?" for the end of a message about a name that no pass has, or "".
const char *pass_meant(Context *c, const char *name);
// Runs the whole pipeline, or stops after the stage that `until` names (NULL: all).
bool lower_run(PassContext *p, const char *until);
// The name of stage i of the pipeline and its passes, comma-separated; NULL after the last one.
const char *lower_stage(int i, const char **passes);
// Runs a comma-separated list of passes: `pdcc opt --passes=`. A stage that is no pass, as `clean`,
// stands for its passes.
bool lower_run_list(PassContext *p, const char *names);

#endif
