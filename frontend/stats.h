// Figures about a module: what `pdcc info` prints as text, JSON and HTML.
#ifndef PDCC_STATS_H
#define PDCC_STATS_H

#include "driver.h"

typedef struct OpCount {
	const OpInfo *info;
	int count;
	const Dim *macs; // of all of them
} OpCount;

// A column of the program. What pd.feed and pd.fetch say, since lowering may replace them.
typedef struct PortStats {
	int64_t col;
	const char *name;
	const Type *type;
} PortStats;

typedef struct Stats {
	int ninput, noutput;
	PortStats *inputs, *outputs;  // in order of their columns
	int nop;
	OpCount *ops;                 // most frequent first
	const Dim *macs;              // multiply-accumulates of one run
	int nparam;
	int64_t param_elements, param_bytes;
} Stats;

// Multiply-accumulates of one operation; the constant 0 for what does none.
const Dim *op_macs(const Op *op);
// Of a translated module, before lowering.
void stats_collect(Context *c, const Op *module, Stats *s);

// info_html.c: one page with the graph, the memory plan over time and the cost per operator. `module` has been
// lowered; `s` was collected before.
void info_html(Text *t, const Driver *d, const Op *module, const Stats *s, const Target *target);

#endif
