// Legacy programs to SSA form, general rule and special steps, control flow and LoD. Leaves a
// module. Uses frontend/read and ir/.
#ifndef PDCC_FRONTEND_TRANSLATE_TRANSLATE_H
#define PDCC_FRONTEND_TRANSLATE_TRANSLATE_H

#include "frontend/read/read.h"

// translate.c, steps.c

typedef struct ShapePin {
	const char *name;
	int rank;
	int64_t dims[MAX_RANK]; // -1: stays symbolic
} ShapePin;
typedef struct TranslateOptions {
	int npins;
	const ShapePin *pins; // --shape
	bool detach;          // where gradients stop there is an assign that says so (--grad, the text)
} TranslateOptions;
// ProgramDesc to a module. Lists everything unsupported at once. NULL after diagnostics.
Op *translate(Context *c, const Paddle__ProgramDesc *p, const TranslateOptions *o);

#endif
