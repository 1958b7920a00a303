// LoD during translation: which offsets say where the sequences of a variable's rows begin, and
// what operators do with them. Private to frontend/.
//
// A level of offsets is an i64 tensor of one size more than there are sequences. Values share
// levels: two values have the same LoD when their levels are the same pointers. The levels of an
// input become inputs of their own, but only when somebody asks for them.
#ifndef PDCC_FRONTEND_LOD_H
#define PDCC_FRONTEND_LOD_H

#include "frontend/job/job.h"

enum { MAX_LOD = 8 };

typedef struct LodLevel LodLevel; // lod.c

typedef struct Lod {
	int n;
	LodLevel *levels[MAX_LOD]; // the last one counts rows, the others count sequences of the next
} Lod;

// ---- lod.c ------------------------------------------------------------------------------------
LodTable *lod_table_new(Context *c);
// The LoD of a value; NULL: it has none.
const Lod *lod_of(const Translator *t, const Value *v);
void lod_set(Translator *t, const Value *v, const Lod *l); // l may be NULL
// An input whose variable is declared with LoD gets one.
void lod_feed(Translator *t, Op *feed, int levels);
// Offsets of a level, from the outside in; negative: from the inside. NULL after a diagnostic.
Value *lod_offsets(OpJob *j, const Lod *l, int level);
// Offsets that make all rows of v one sequence; not `rows`: one sequence of one sequence.
Value *lod_one(OpJob *j, Value *v, bool rows);
// How many sequences a level has.
const Dim *lod_count(OpJob *j, const Lod *l, int level);
// The LoD of these offsets; the first n levels of l and then these.
const Lod *lod_new(Translator *t, int n, Value *const *offsets);
const Lod *lod_extend(Translator *t, const Lod *l, int n, Value *offsets);
// The first n levels of l, NULL when that is none.
const Lod *lod_outer(Translator *t, const Lod *l, int n);
bool lod_same(const Lod *a, const Lod *b);
// Whether all of its offsets can be read outside of this operation's regions.
bool lod_is_outside(const Lod *l, const Op *op);
// The fetched value's LoD is fetched too.
bool lod_fetch(OpJob *j, const char *var, Value *v, int64_t col);
// Columns of the additional inputs and outputs, behind all others; those that nobody needs go.
void lod_finish(Translator *t);

// ---- lod_rule.c: what operators do with it ------------------------------------------------------
// Where an operation for level k of a variable's LoD comes from.
const Loc *lod_level_loc(OpJob *j, int k);
// The array beside `var` that has the offsets of its elements.
const char *lod_level_name(Translator *t, const char *var, int k);
// `after` is the array `before` of variable var with an element written.
bool lod_array_write(OpJob *j, const char *var, Value *before, Value *at, Value *element,
                     Value *after);
// An element was read.
bool lod_array_read(OpJob *j, Value *array, Value *at, Value *element);
// Operand `<x>_lod`, which no slot feeds: the innermost offsets of operand x. False: not such an
// operand; then *ok says nothing.
bool lod_operand(OpJob *j, int i, bool *ok);
// After an operator: the LoD of its results.
bool lod_record(OpJob *j);
bool lod_record_part(OpJob *j, int result, int i, Value *part);

#endif
