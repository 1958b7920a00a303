// What a caller says of how a program is translated.
#ifndef PDCC_FRONTEND_TRANSLATE_OPTIONS_H
#define PDCC_FRONTEND_TRANSLATE_OPTIONS_H

#include "frontend/read/read.h"

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

#endif
