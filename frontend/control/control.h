// Translating control flow: blocks, branches, loops and tensor arrays. Uses frontend/job and ir/.
// Private to frontend/.
//
//   control_block.c      a sub-block as a region, and undoing what it did to outer variables; the
//                        condition of a loop, once
//   control_join.c       a pd.if that grows, and what its branches leave
//   control_if.c         conditional_block
//   control_select.c     select_input, select_output, numbers of axes that sizes decide
//   control_while*.c     while
//   control_array.c      tensor arrays, and their types
//   control_element.c    reading them
//   control_recurrent.c  recurrent, pylayer
#ifndef PDCC_FRONTEND_CONTROL_H
#define PDCC_FRONTEND_CONTROL_H

#include "frontend/job/flow.h"
#include "frontend/job/job.h"
#include "ir/build/build.h"
#include "ir/build/counted.h"

// ---- control_block.c --------------------------------------------------------------------------
// Where the translation was before it entered a region.
typedef struct Outside {
	Block *block;
	int block_index;
	Scope *scope;
	struct OpenIf *ifs;
	Frame frame;
	Op *top;
	size_t mark; // length of the undo log
} Outside;

// Operators go to the end of `into` from here on, and belong to legacy block `index`.
void region_enter(Translator *t, Outside *o, Block *into, int index);
// Back again; outer variables hold what they held before. Call after reading the new values.
void region_leave(Translator *t, const Outside *o);
// Outer variables hold what they held when the undo log was that long.
void undo_to(Translator *t, size_t mark);
// All operators of the current legacy block. False when one failed, or all must start over.
bool region_translate(Translator *t);

// How the names of sizes begin: see dim_sym_found.
typedef struct SizeStem {
	const char *brief, *full;
} SizeStem;

// A type that holds both: sizes that differ are found at run time, named after `stem`. NULL when
// there is none. `open` gets a bit for every such axis (and says which are so from the start).
const Type *type_join(Context *c, const Type *a, const Type *b, SizeStem stem, uint32_t *open);
// After `var`, and the place of the operator that finds the size.
SizeStem size_stem(Context *c, const Loc *at, const char *var);
// A loop variable that came in with nothing in it, and an inner operator has given it a type: it
// may be any until the loop has learnt one (control_while.c). Whether v is that, or the mark of a
// variable that is not defined; asking counts as use.
bool value_is_nothing(Translator *t, const Value *v);
// Whether the types differ in the number of axes around one element only.
bool ranks_differ(const Type *a, const Type *b);
// Whether the file declares var as what v is.
bool declared_like(OpJob *j, const char *var, const Value *v);
// What stands for a variable that a branch reads, and that nothing has written on the way there.
Value *value_missing(OpJob *j, const Paddle__VarDesc *v);
// A condition or mask, which must be one element: v, or, where v is known to have another number of
// them, what may be taken for it behind an assertion that fails when a run gets there. NULL after a
// diagnostic.
Value *single_element(OpJob *j, Value *v, const char *slot);

// ---- control_join.c -----------------------------------------------------------------------------
// A pd.if that still takes results and a second branch.
typedef struct OpenIf {
	struct OpenIf *next; // another one in the same block
	Op *op;
	const Value *pred; // the condition without its negations
	bool negated;
	bool filled[2]; // regions then and else
	int cresult;    // results that there is room for
	int nguard, cguard;
	Binding **guards;    // variables that depend on it
	struct Mixed *mixed; // results of several types
} OpenIf;

// The condition without negations, and without casts between bool and integers.
const Value *condition_strip(const Value *v, bool *negated);
// As if_join; NULL without a diagnostic when this pd.if cannot give it.
bool if_result(OpJob *j, OpenIf *i, Value *const *value, const char *var, Value **out);
// Down to the end of the current block, if nothing in between needs it.
bool if_move_down(Translator *t, OpenIf *i);
// The mark of a variable that is not defined, or an array that nobody has written to.
bool is_undefined(const Value *v);
// A pd.if with empty regions at the end of the current block, with room for so many results.
OpenIf *if_open(OpJob *j, Value *cond, int room);
// The result that is value[0] after the first region and value[1] after the second (NULL:
// whatever), with its LoD. NULL after a diagnostic.
Value *if_join(OpJob *j, OpenIf *i, Value *const *value, const char *var);
// A pd.if of its own that chooses between two values that are there.
Value *build_choice(OpJob *j, Value *pred, Value *yes, Value *no, const char *var);

// ---- control_if.c -------------------------------------------------------------------------------
// What a variable holds that only branches have written.
struct Guard {
	OpenIf *i;
	Value *value[2]; // in the regions; NULL: not written there
	Value *before;   // NULL: nothing
};

// What the variable holds in a region.
Value *guard_side(const Guard *g, int region);
// Makes a guarded variable an ordinary value: a result of its pd.if. False after a diagnostic.
bool guard_resolve(OpJob *j, const char *var, Binding *b);

// What a branch runs: the operators of a block, and what else is done in its region in front of
// them and behind them (NULL: nothing).
typedef struct BranchBody {
	int block;
	bool (*before)(OpJob *j, struct BranchBody *body), (*behind)(OpJob *j, struct BranchBody *body);
	void *with; // for these
	int n;      // variables of the code around it that get values[] of the region, or else other[]
	const char **names; // NULL: not this one
	Value **values, **other;
} BranchBody;

// A branch on the operator's condition. False after a diagnostic.
bool branch_translate(OpJob *j, BranchBody *body);
OpStep conditional_translate;

// ---- control_select.c ---------------------------------------------------------------------------
OpStep select_input_translate, select_output_translate;
// Operators whose results have another number of axes where a run finds another size.
OpStep squeeze_create, gather_nd_create, varying_record;

// ---- control_while.c, control_block.c -----------------------------------------------------------
OpStep while_translate;
// Fills the cond region of a loop whose last variable is the condition. When the values `init` and
// `next` of the condition are one computation on the loop variables, the region computes it and
// true is returned: the condition needs no loop variable. Else nothing is built.
bool condition_build(OpJob *j, Op *loop, int nvar, Value *const *next, Value **cond);
// What decides of a condition `next` that the body leaves, in the shape `like` that it came with:
// element 0, where there may be others. NULL when inference fails.
Value *condition_first(OpJob *j, Block *body, Value *next, const Type *like);

// ---- control_array.c ----------------------------------------------------------------------------
// Another array becomes what the variable holds.
bool array_assign(OpJob *j, const char *var, Value *v);
// An empty array at the top of the program.
Value *array_empty(OpJob *j, const Paddle__VarDesc *v);
// An operation on arrays whose result is the array in variable `var`.
Value *array_make(OpJob *j, enum OpCode code, int n, Value *const *operands, const char *var);
// Whether v is one integer; false after a diagnostic.
bool array_position(OpJob *j, const Value *v, const char *slot);
OpStep array_write_translate;

// ---- control_element.c --------------------------------------------------------------------------
OpStep array_read_inputs, array_element_inputs, array_pop_translate, array_slice_create,
	slice_create, sum_create;

// ---- control_recurrent.c ------------------------------------------------------------------------
OpStep recurrent_translate, pylayer_translate;

#endif
