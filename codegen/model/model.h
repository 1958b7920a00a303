// What every program has, in C and in CUDA: ports, weights, state, single numbers as variables,
// branches, the walk over operations, header and info. Leaves the parts of a program in a Codegen.
// Uses codegen/func, codegen/text and the analyses of lower/.
#ifndef PDCC_CODEGEN_MODEL_MODEL_H
#define PDCC_CODEGEN_MODEL_MODEL_H

#include "codegen/func/func.h"

// ---- ports.c ------------------------------------------------------------------------------------

bool ports_collect(Codegen *cg); // feeds, fetches and symbols
// `[n x 3 x 224 x 224]`, for comments.
const char *shape_comment(Codegen *cg, const Type *t);
// A text that may stand in a C comment, or as a string literal with its quotes.
const char *comment_text(Arena *a, const char *s);
const char *string_literal(Arena *a, const char *s);

// ---- weights.c ----------------------------------------------------------------------------------

bool weights_collect(Codegen *cg); // cg->weights; in inline mode cg->arrays and cg->param_arrays
void weights_print(const Codegen *cg, Text *out); // the arrays that are used

// ---- identity.c ---------------------------------------------------------------------------------

// The comment that a source begins with; more: another line of it, or "".
void banner_print(Codegen *cg, Text *out, const char *more);
void demands_print(Codegen *cg, Text *out); // #error where the compiler has not what the code needs
void abi_print(Text *out);                  // #error where pdrt.h is of another version

bool weights_in_file(const Codegen *cg);      // which the caller hands to init
int64_t weights_file_size(const Codegen *cg); // header and all
uint8_t *weights_room(Codegen *cg);           // zeros behind a header in cg->weights_file
void weights_plan_add(Codegen *cg, const char *name, const Type *t, int64_t offset);
void weights_sign(Codegen *cg); // the header and cg->weights_hash, once all weights are there
void weights_header_print(Codegen *cg, Text *out); // of C, with which the next compares
void weights_check_print(Codegen *cg, Text *out);

// ---- state.c ------------------------------------------------------------------------------------

void states_collect(Codegen *cg);
State *state_find(Codegen *cg, const Op *get); // NULL: runs do not change it
void states_declare(Codegen *cg, Text *out);   // the next two print nothing where there are none
void states_print(Codegen *cg, Text *out);     // model_reset, model_parameter
// The copies that give `m` what such parameters hold before the first run.
void states_begin_print(Codegen *cg, Text *out);
void states_info_functions(Codegen *cg, Text *out);
const char *dtype_info_name(DType t); // info.c: "PD_F32"

// ---- locals.c -----------------------------------------------------------------------------------

// The value that names the C variable in which a tensor of one element lives; NULL: it lies in
// memory.
const Value *number_local(const Codegen *cg, const Place *p);
// The same of a tensor of one element, or of a few: of those that are no memory.
const Value *variable_local(const Codegen *cg, const Place *p);
// The only element of a tensor in model_run, as a C expression; NULL after a diagnostic.
const char *tensor_element(Codegen *cg, const Value *v);
// What a pointer points to: `x` for `(&x)`.
const char *pointer_element(Arena *a, const char *pointer);
// Whether a constant is only ever printed as its value.
bool constant_is_text(const Codegen *cg, const Value *v);

// ---- lines.c ------------------------------------------------------------------------------------

// `depth` is 1 for the statements of the innermost loop or if, 2 within one of them.
void run_line(Codegen *cg, int depth, const char *fmt, ...) PRINTF_LIKE(3, 4);
void run_comment(Codegen *cg, const char *fmt, ...) PRINTF_LIKE(2, 3); // after an empty line
void run_open(Codegen *cg, const char *text); // "if (x)", without its brace
void run_close(Codegen *cg);
// A local of model_run: where the printer is, or, with several blocks, wherever locals_place, or
// locals_print, puts it: in front of all, since C++ allows no goto past a declaration.
void local_declare(Codegen *cg, LocalKind kind, const char *type, const char *name,
                   const char *value);
// The same of an array, whose elements begin as 0.
void local_declare_array(Codegen *cg, const char *type, const char *name, int64_t elements);
void locals_print(const Codegen *cg, Text *out);

// ---- declare.c ----------------------------------------------------------------------------------

void locals_place(Codegen *cg); // of blocks that nest: in cg->run, where they are needed

// ---- branch.c -----------------------------------------------------------------------------------

// The label and comment in front of a block; nothing for the first.
void block_label_print(Codegen *cg, const Block *b);
// Moves what the branch passes on, and goes. False after a diagnostic.
bool branch_print(Codegen *cg, const Op *op);
// The same without going: what happens on the way to successor s.
bool branch_moves_print(Codegen *cg, const Op *op, int s);
// Of that, what --max-trip has counted.
void branch_trips_print(Codegen *cg, const Op *op, int s, int depth);
bool branch_passes(const Op *op, int s); // whether anything may happen on that way
// What a branch looks at, as C, after a check that it is one element. NULL after a diagnostic.
const char *branch_condition(Codegen *cg, const Op *op);

// ---- moves.c ------------------------------------------------------------------------------------

// What is done on the way of a branch to successor s, at that indentation. False after a
// diagnostic.
bool edge_moves_print(Codegen *cg, const Op *op, int s, int depth);

// ---- offsets.c ----------------------------------------------------------------------------------

// An offset in the workspace in model_run, where `stem` lies. In C `at.x` where sizes are open.
const char *offset_in_run(Codegen *cg, const char *stem, const Dim *offset);
void offsets_order(Codegen *cg); // cg->offsets: by address, once all are there
int64_t offset_address(const Codegen *cg, const Dim *offset); // INT64_MAX: not known

// ---- update.c -----------------------------------------------------------------------------------

// Room that something needs, and the size that the caller may raise to make it; NULL: there is
// none.
typedef struct Room {
	const Dim *size;
	const Symbol *symbol;
} Room;

// What loop.update checks when it runs, in every target.
typedef struct UpdateChecks {
	bool sign, end;           // whether the position may be negative, or behind the last slice
	bool fixed;               // then it is a wrong index, else there is no room
	bool length;              // whether the slice may be too short for what is written
	const Dim *slice, *count; // elements of a slice, and of what is written
	Room slices, elements;    // of the tensor, of a slice
} UpdateChecks;

UpdateChecks update_checks(const Codegen *cg, const Op *op);

// ---- run.c --------------------------------------------------------------------------------------

// Walks the operations: fills cg->functions and the calls in cg->run.
bool run_collect(Codegen *cg);
// One operation; bound: by symbol, the operation that says what it is, once there is one.
bool run_op_print(Codegen *cg, const Op *op, const Op **bound);
// What stopped a printer without a word since there were `errors` is mostly an element type. False,
// for the caller to return.
bool run_no_code(const Codegen *cg, const Op *op, int errors);
// The C name of a tensor in model_run; NULL after a diagnostic.
const char *tensor_pointer(Codegen *cg, const Value *v);
// The variable that points at a buffer that moves, made at its first use; or of one that was used
// before.
const Moving *moving_find(Codegen *cg, const Place *p);
const Moving *moving_at(const Codegen *cg, int number);
const char *moving_as(Codegen *cg, const Moving *m, DType t); // as a pointer to such elements
const char *op_title(Codegen *cg, const Op *op);
const char *op_where(Codegen *cg, const Op *op); // that, and where in the model it stands
const char *op_stem(Codegen *cg, const Op *op);  // an identifier made from its variable
const char *value_stem(Codegen *cg, const Value *root);
// The same for the place of a tensor: named after the operation that computes it, whatever was
// fused behind that.
const char *place_stem(Codegen *cg, const Value *root);
// Which buffer is the first at a place, before offset_in_run is asked for any.
void offsets_note(Codegen *cg);
// Bytes of a tensor as large as it is now; never negative.
const Dim *type_bytes_in_run(const Codegen *cg, const Type *t);
// The argument of a call for one parameter; NULL after a diagnostic.
const char *call_argument(Codegen *cg, const KernelParam *p);
// `if (condition)` the run ends with that status, and names op.
void failure_print(Codegen *cg, const char *condition, const char *status, const Op *op);
void run_checks_print(Codegen *cg, Text *out); // its beginning
void run_locals_print(Codegen *cg, Text *out); // sizes, and where memory begins

// ---- story.c ------------------------------------------------------------------------------------

typedef struct Story {
	const Loc **locs; // one for each operator of the model, in their order
	int n, cap;
} Story;

const Story *op_story(Codegen *cg, const Op *op); // kept: a large one is asked for often
// The legacy operator, among those that op stands for, that computes a variable.
const char *op_type_of(Codegen *cg, const Op *op, const char *var);
// `conv2d 'c.tmp_0' + relu 'r.tmp_0'`; what op_title says where no operator is known.
const char *op_names(Codegen *cg, const Op *op);
const char *story_text(Codegen *cg, const Op *op, bool names); // NULL: not known
const char *op_kinds(Codegen *cg, const Op *op);               // `conv2d + relu`; NULL: not known

// ---- module.c -----------------------------------------------------------------------------------

// Everything up to the texts of functions and calls; false after diagnostics.
bool codegen_begin(Codegen *cg, const Backend *backend, Context *c, const Op *module,
                   const Target *t, const CodegenOptions *o);
void codegen_end(Codegen *cg, CodegenResult *out); // weights and empty texts

const char *assert_status(const Op *op);

// ---- header.c, info.c ---------------------------------------------------------------------------

void header_print(Codegen *cg, Text *out);
// In front of what the header declares: whether it is seen outside of a shared library.
static inline const char *exported(const Codegen *cg)
{
	return cg->options->shared ? "PDRT_EXPORT " : "";
}
// Whether model_call is printed, which takes no sizes.
static inline bool call_wanted(const Codegen *cg)
{
	return cg->options->call || (cg->options->shared && !cg->nsymbol);
}
void info_print(Codegen *cg, Text *out); // model_info and what it points to
void call_print(Codegen *cg, Text *out); // model_call

#endif
