// Regions of scalar operations, compiled: instructions over registers of STRIP lanes. Private to
// interp_scalar.c, which compiles, and interp_strip.c, which runs.
#ifndef PDCC_INTERP_PROGRAM_H
#define PDCC_INTERP_PROGRAM_H

#include "ir/interp/hooks.h"

enum { MAX_SOURCES = MAX_RANK + 4, MAX_DEPTH = 64 };

typedef struct Body Body;

typedef enum InstrKind {
	INSTR_MAP,
	INSTR_OFFSET,
	INSTR_LOAD,
	INSTR_TO_INDEX,
	INSTR_NEAR_INDEX,
	INSTR_REDUCE
} InstrKind;

typedef struct Instr {
	InstrKind kind;
	const Op *op;
	DType from, to; // element types of the operands and the result
	int dst, nsrc;
	int src[MAX_SOURCES];
	const Tensor *tensor; // load, from the position in offset unless bad
	int offset,
		bad;    // offset: position so far and whether it is outside, and from which (-1: none);
	int to_bad; // ... the step along one axis, src[0] being the index, goes to dst and to_bad
	int pred, other; // load_or; -1: a plain load
	int64_t extent;  // to_index, offset
	int nextent;     // reduce; `pred` counts the positions, -1: all
	int64_t extents[MAX_RANK];
	int nlevel;    // at least 1
	Body **levels; // one inside the other, one per extent; the last yields
} Instr;

// Instructions that run together: a nest's, or those of one loop of a reduction.
struct Body {
	Body *outer;
	int depth;
	bool empty; // may never run: nothing may be moved out of it
	int ninstr, cinstr;
	Instr *instrs;
	int narg, nyield;
	int *args, *yields;
};

struct Program {
	Interp *in;
	Arena *arena;
	PointerMap registers; // of values
	int nreg, creg;
	int *depths; // of the body that computes each register
	Lane *lanes; // [nreg][STRIP]
	Body *body;
	const bool *active; // lanes that count, inside of a reduction whose lanes end one after the
	                    // other; NULL: all
	const Type **yield_types;
	int nconst, cconst; // registers that never change
	struct Preset {
		int reg;
		Lane value;
	} * presets;
};

static inline Lane *lanes_of(const Program *p, int reg)
{
	return p->lanes + (size_t)reg * STRIP;
}

static inline DType element_dtype(const Type *t)
{
	return t->kind == TY_INDEX ? DT_I64 : t->dtype;
}

#endif
