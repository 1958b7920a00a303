// Figures about a module: what `pdcc info` prints as text, JSON and HTML.
#ifndef PDCC_STATS_H
#define PDCC_STATS_H

#include "frontend/driver/driver.h"
#include "frontend/read/config.h"
#include "lower/target/target.h"

// Operations of one kind, those in branches and loops, too.
typedef struct OpCount {
	const OpInfo *info;
	int count;
	const Dim *macs, *round_macs; // of all of them, as in Stats
} OpCount;

// A column of the program. What pd.feed and pd.fetch say, since lowering may replace them.
typedef struct PortStats {
	int64_t col;
	const char *name;
	const Type *type;
} PortStats;

typedef struct Stats {
	int ninput, noutput;
	PortStats *inputs, *outputs; // in order of their columns
	int nop, nkind;              // operations; kinds of them
	OpCount *ops;                // most frequent first
	const Dim *macs;             // multiply-accumulates of one run, with both sides of a branch
	const Dim *round_macs; // of a round of each loop whose number of rounds a run finds; may be 0
	int nparam;
	int64_t param_elements, param_bytes;
} Stats;

// Multiply-accumulates of one operation; the constant 0 for what does none.
const Dim *op_macs(const Op *op);
// Of a translated module, before lowering.
void stats_collect(Context *c, const Op *module, Stats *s);

// info_cuda.c: what generated CUDA launches, for `pdcc info --target cuda`.
// What ptxas says of a kernel.
typedef struct KernelUsage {
	int registers;       // of a thread; 0: not known
	int shared, spilled; // bytes; spilled: local memory of any kind
} KernelUsage;

// Launches of one kernel with the same grid.
typedef struct KernelStats {
	CudaLaunch launch; // bytes are those of all of them
	int launches;
	KernelUsage usage;
	int warps; // of a multiprocessor at once, of 64
} KernelStats;

typedef struct CudaStats {
	const char *arch;
	bool compiled; // there was an nvcc
	int launches, wide, tensor, spilled;
	int64_t bytes, least; // through memory, and the least that must
	int nkernel;
	KernelStats *kernels; // most bytes first
} CudaStats;

// Of a module lowered for CUDA. False after diagnostics.
bool cuda_stats_collect(Driver *d, Op *module, const Target *t, CudaStats *s);
void cuda_stats_print(Text *t, const CudaStats *s);
void cuda_stats_json(Text *t, const CudaStats *s); // one member, with a comma behind it

#endif
