// One operator on its way to SSA form, and the translator around it: slots, operands and
// attributes, variables and their scopes, LoD, and the general rule that the operator table gives.
// Uses frontend/read and ir/. Private to frontend/.
#ifndef PDCC_FRONTEND_JOB_H
#define PDCC_FRONTEND_JOB_H

#include "frontend/read/attrs.h"
#include "frontend/job/options.h"
#include "frontend/read/desc.h"
#include "ir/build/build.h"

typedef struct Guard Guard;       // frontend/control
typedef struct LodTable LodTable; // lod.c
typedef struct RowSet RowSet;     // selected_rows.c

// What a legacy variable is at this point of the translation.
typedef struct Binding {
	const Paddle__VarDesc *desc; // NULL: not declared anywhere
	Value *value;                // what it holds now; NULL: nothing yet
	bool broken;                 // an operator that failed should have written it; already reported
	bool written;                // state that the program changes
	Guard *guard;                // written in branches only; then `value` is NULL
} Binding;

// The variables of one block. A name that is not here is looked up in the parent.
typedef struct Scope {
	struct Scope *parent;
	NameMap *vars;
} Scope;

// Where the translation is in one block; blocks around it follow.
typedef struct Frame {
	int block, op;
	bool loop;             // the block is the body of a loop
	const char *condition; // of that loop
	int later;             // a block that runs behind this one and sees its variables; 0: none
	const struct Frame *outer;
} Frame;

// An outer variable as it was before a region changed it.
typedef struct UndoEntry {
	Binding *binding;
	Binding old;
} UndoEntry;

struct OpJob;

typedef struct Translator Translator;

// What stands above whoever needs it, as translate.c has it.
typedef struct TranslatorHooks {
	// One operator by the entry of this legacy type.
	bool (*as)(struct OpJob *j, const char *type);
	// All operators of the current block; true when the translation must start over.
	bool (*ops)(Translator *t);
	// What a variable holds that only branches have written, an array that nobody has, and an input
	// of a program without feed operators. False and NULL after a diagnostic.
	bool (*guard)(struct OpJob *j, const char *var, Binding *b);
	Value *(*array)(struct OpJob *j, const Paddle__VarDesc *v);
	Value *(*feed)(struct OpJob *j, const Paddle__VarDesc *v);
	// One operator of the current block.
	void (*op)(Translator *t, int index);
	// One value of a variable of several types; NULL after a diagnostic.
	Value *(*settle)(struct OpJob *j, const char *var, Value *v);
	// What a branch reads that nobody has written: a run that comes there ends.
	Value *(*missing)(struct OpJob *j, const Paddle__VarDesc *v);
} TranslatorHooks;

struct Translator {
	const TranslatorHooks *hooks;
	Context *c;
	const Paddle__ProgramDesc *p;
	const TranslateOptions *o;
	Op *module;
	Block *block;    // where operations go
	int block_index; // in the ProgramDesc
	Scope *scope;
	NameMap *symbols;    // names of dims already given away
	bool implicit_feeds; // the program has no feed operators: what is read first is fed
	int nfeed;           // implicit feeds so far
	NameMap *columns;    // "feed 0" and the like, to see a column used twice
	NameMap *read;       // variables that operators read (besides.c); NULL: nobody asked
	int nwritten, cwritten;
	Binding **written; // state changed, in the order of first change
	bool failed;
	bool stale;  // something was learnt: what is built so far is out of date
	bool misled; // the type of an array was wrong: so may be all equalities of sizes that were
	             // learnt with it
	bool graded; // the program has gradient operators
	int generation;

	// Control flow (frontend/control).
	Frame frame;
	Op *top;            // the operation of the module around `block`; NULL: block is the module's
	struct OpenIf *ifs; // in `block`
	struct BlockFlow **flows; // [n_blocks], made when asked for
	size_t nundo, cundo;      // changes of bindings while in regions
	UndoEntry *undo;
	NameMap *memo;             // what is learnt about loops and arrays: outlives a restart
	LodTable *lods;            // of values
	ValueMap *stand_ins;       // frontend/control: single_element
	int inside_case;           // which alternative of operands of several types; 0: of none
	int component;             // which array of a mixed one (frontend/control), plus 1; 0: none
	RowSet *rows;              // of values that are SELECTED_ROWS, the latest first
	struct OpTrace *traces;    // operators so far, for their gradients (trace.h); the latest
	struct LoopMemo *nothings; // loop variables without a type of their own so far
};

struct OpSteps;

// One operator on its way.
typedef struct OpJob {
	Translator *t;
	const Paddle__OpDesc *desc;
	const struct OpSteps *steps;
	const OpInfo *info;
	const LegacyMap *map;
	Builder b;        // at the end of the current block, with the operator's location
	Value **operands; // [info->noperand], NULL where left out
	int nattr;
	NamedAttr *attrs; // [info->nattr]
	Op *op;
	Value *axis; // an axis that only data tell; the attribute that should hold it is 0 (general.c)
	Value **results;       // what to record instead of op's results; NULL: those
	bool broken;           // reads a broken variable: fails without a message of its own
	struct OpTrace *trace; // what it reads and writes; NULL: nobody asks
} OpJob;

typedef bool OpStep(OpJob *j); // false after a diagnostic

// How an operator is translated: one function per step, NULL for the general rule. steps.c has a
// table of them by the `hook:` of a legacy entry.
typedef struct OpSteps {
	const char *hook;
	OpStep *inputs; // operands from input slots and variable attributes
	bool (*attribute)(OpJob *j, const AttrInfo *a,
	                  const Paddle__OpAttr *legacy); // one that is there
	bool (*missing)(OpJob *j, const AttrInfo *a);    // one that is not
	OpStep *create;                                  // the operation; may make several, or none
	OpStep *record;                                  // results to output variables
	OpStep *whole;                                   // all of it; the others are not called
	bool state; // `record` writes what the operator changes besides its results
} OpSteps;

// ---- job.c -----------------------------------------------------------------------------------
bool PRINTF_LIKE(2, 3) job_fail(OpJob *j, const char *fmt, ...);
// The first variable of an input or output slot; NULL: none.
const char *input_var(const OpJob *j, const char *slot);
const char *output_var(const OpJob *j, const char *slot);
// The integer or bool that an attribute of the operator in the program holds.
int64_t job_number(const OpJob *j, const char *attr, int64_t otherwise);
// The variables that it writes, each once; how many.
int job_outputs(OpJob *j, const char ***vars);
// By the name of ours; NULL when the operand is left out, or there is none of that name.
Value *job_operand(const OpJob *j, const char *name);
void job_set_operand(OpJob *j, const char *name, Value *v);
void job_set_attr(OpJob *j, const char *name, const Attr *a);
const Attr *job_attr(const OpJob *j, const char *name);
// The variable of result i in its output slot; NULL when nobody wants it.
const char *job_output(const OpJob *j, int result, size_t i);
// The legacy attribute that feeds ours; NULL: absent.
const Paddle__OpAttr *job_legacy_attr(const OpJob *j, const char *name);

// ---- general.c: attributes that only data tell -------------------------------------------------
// Takes `v`, which attribute `a` should hold, for the operator's axis. False: it has none of that
// name.
bool axis_from_data(OpJob *j, const AttrInfo *a, Value *v);
// The same for an operand that overrides such an attribute. False after a diagnostic.
bool axis_from_operand(OpJob *j);
// Creates the operation on axis 0, between moves of the axis.
bool create_along_axis(OpJob *j);

// ---- variables.c -----------------------------------------------------------------------------
Scope *scope_new(Translator *t, int block, Scope *parent);
Binding *scope_find(Translator *t, const char *var); // NULL: not declared, never written
// The variable's current value: written before, a parameter, or a feed of a program without feed
// operators. NULL after a diagnostic, or silently when broken.
Value *read_var(OpJob *j, const char *slot, const char *var);
// The same; of several types (variant.h), all of them.
Value *read_any(OpJob *j, const char *slot, const char *var);
void write_var(OpJob *j, const char *var, Value *v);
void write_stopped(OpJob *j, const char *var, Value *v); // no gradient goes through it
// The binding that a write to the variable changes.
Binding *write_binding(Translator *t, const char *var);
// To be called before a binding changes, so that leaving a region can undo it.
void binding_save(Translator *t, Binding *b);
// State that changes is written back at the end.
void note_written(Translator *t, Binding *b);
// For operations that all regions see: in the module, before the operation around the block.
Builder top_builder(OpJob *j, const Loc *l);
// What a failed operator should have written must not be missed again by its readers.
void break_outputs(OpJob *j);
// Writes changed state back, at the end of the block.
bool set_parameters(Translator *t); // true: some were taken for constants until now

// ---- selected_rows.c: kinds of variables, and SELECTED_ROWS -------------------------------------
// False after a diagnostic: the operator reads SELECTED_ROWS, and would have to know which they
// are.
bool rows_may_be_read(OpJob *j);
// Whether a variable that is declared like this may get v. False after a diagnostic.
bool kind_may_hold(OpJob *j, const char *var, const Paddle__VarDesc *d, const Value *v);
// Remembers which rows the outputs of an operator have. Called after its translation.
void rows_note(OpJob *j);
// Which rows v has: bool [height x 1], NULL after a diagnostic. False (no diagnostic): nobody
// knows.
bool rows_mask(OpJob *j, const Value *v, Value **mask);
bool merge_rows_translate(OpJob *j);
bool rows_tensor_translate(OpJob *j);

// Types of variables, and the names of their sizes.

// A symbol that is called `word`, or after `base` and the word when another owner has it; the same
// every time.
const Dim *named_symbol(Translator *t, const char *base, const char *word, const char *owner);
// Type of a declared variable, open sizes as symbols named after `base` and their axes; NULL after
// a diagnostic.
const Type *var_type(OpJob *j, const Paddle__VarDesc *v, const char *base);
// A loop changes sizes of what is fed: the file declares what was inferred last, so these axes
// count as open.
void feed_open(Translator *t, const char *var, const Value *fed, uint32_t axes);

#endif
