// What the page of `pdcc info --html` is made of: info_html.c prints it.
#ifndef PDCC_INFO_PAGE_H
#define PDCC_INFO_PAGE_H

#include "codegen/codegen.h"
#include "frontend/driver/stats.h"
#include "frontend/report/report.h"

typedef struct InfoPage {
	const char *model;
	const Op *module;   // lowered
	const Stats *stats; // collected before
	const Target *target;
	const ModelConfig *config; // NULL: there is none
	const CodegenResult *code; // C with its spans; NULL: another target
	const SourceOps *source;
	const Measured *measured; // NULL: there was no run
} InfoPage;

void info_html(Text *t, Context *c, const InfoPage *in);

#endif
