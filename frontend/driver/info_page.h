// What the page of `pdcc info --html` is made of: info_html.c prints it, info_chart.c the chart of
// the memory plan.
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

// ---- shared by the files that print it ----------------------------------------------------------

typedef struct Row {
	const Op *op;
	int block;          // of the lowered program
	int loops;          // around it
	double macs, bytes; // multiply-accumulates; bytes written
	int last_use;       // row of the last reader of a result
} Row;

// What sizes that are symbols are drawn as.
typedef struct Drawn {
	const Stats *stats;
	int batch;
} Drawn;

typedef struct Page {
	Text *t;
	Context *c;
	const InfoPage *in;
	Drawn drawn;
	int n;
	Row *rows;
	double macs, bytes, workspace;
} Page;

// Numbers as this page draws them: symbols are the samples that it names.
double page_number(const Page *p, const Dim *d);
double page_bytes(const Page *p, const Value *v);
// The workspace over time.
void info_chart(const Page *p);

#endif
