// Legacy programs to SSA form: blocks, inputs and outputs, and operators whose translation needs
// more than their table entry says. Leaves a module. Uses frontend/read, frontend/job,
// frontend/control, frontend/gradient and ir/.
#ifndef PDCC_FRONTEND_TRANSLATE_TRANSLATE_H
#define PDCC_FRONTEND_TRANSLATE_TRANSLATE_H

#include "frontend/job/options.h"

// ProgramDesc to a module. Lists everything unsupported at once. NULL after diagnostics.
Op *translate(Context *c, const Paddle__ProgramDesc *p, const TranslateOptions *o);

#endif
