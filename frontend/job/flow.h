// Which variables the blocks of a program read and write (flow.c). Private to frontend/.
#ifndef PDCC_FRONTEND_FLOW_H
#define PDCC_FRONTEND_FLOW_H

#include "frontend/job/job.h"

typedef struct NameList {
	NameMap *set;
	int n, cap;
	const char **names; // in the order in which they were found
} NameList;

bool name_list_has(const NameList *l, const char *name);

// Variables of one block, with its sub-blocks, by name. Variables that the block itself declares
// are its own: nobody else sees them.
typedef struct BlockFlow {
	NameMap *declared;
	NameMap *last_read; // to the index of the last operator that reads it, plus 1
	NameList exposed;   // read before they are surely written; not declared here
	NameList needed;    // of those: also when every inner loop runs a round
	NameList writes;    // not declared here
	NameMap *sure;      // written by every run of the block
} BlockFlow;

const BlockFlow *flow_of(Translator *t, int block);
// Whether anything that runs after the operator at hand may read the variable.
bool flow_live_after(Translator *t, const char *var);
// The block that the operator runs; -1: there is none, the second (of attribute sub_block) after a
// diagnostic.
int sub_block(const Paddle__OpDesc *d);
int sub_block_of(OpJob *j);
// The values that a block reads become known to the conditional_block_grad that comes later, if one
// does. False after a diagnostic.
bool branch_keep_reads(OpJob *j, int block);

#endif
