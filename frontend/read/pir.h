// Reading Paddle 3's programs (`inference.json`): what the pir_*.c files share. Private to
// frontend/read/.
//
// A file holds SSA: operations of the dialects builtin, pd_op and cf, values by number, regions. It
// is read into the same descriptors as a legacy program, so that one translator serves both: every
// value becomes a variable, regions become blocks, and an operation `1.conv2d` an operator
// `pd_op.conv2d` whose slots bear the names of the operator table (its `pir:` maps). What writes in
// place (`array_write_`, `set_value_` ...) writes the variable of its operand, which is what the
// file means by it.
//
//   pir_json.c   members of the document, errors
//   pir_read.c   the document, its version and limits
//   pir_type.c   types and attributes
//   pir_desc.c   variables and operators as descriptors
//   pir_op.c     operations
//   pir_flow.c   pylayer, if and while
//   pir_gradient.c  what the slots of gradient operations are
#ifndef PDCC_FRONTEND_READ_PIR_H
#define PDCC_FRONTEND_READ_PIR_H

#include "frontend/read/desc.h"

#include <json-c/json.h>

// Variables of one value: one, or as many as a vector has elements.
typedef struct PirValue {
	int n;
	bool vec;
	char **vars;
	Paddle__VarType **types; // [n]; NULL: the file does not tell
} PirValue;

// A block that is being filled.
typedef struct PirBlock {
	Paddle__BlockDesc *desc;
	size_t cvars, cops;
} PirBlock;

typedef struct PirReader {
	Context *c;
	const char *path;
	Paddle__ProgramDesc *p;
	size_t cblocks;
	NameMap *values; // id as text -> PirValue
	NameMap *counts; // operation -> how many there were
	NameMap *names;  // variables
	int depth;
	int nfeed;
	const char *at; // the operation at hand, for diagnostics; NULL: none
	int block, op;  // and its place: the block counted as those of the program are, and in its list
} PirReader;

// ---- pir_json.c -------------------------------------------------------------------------------
// The operation at hand in a sentence of one line. Returns false.
bool PRINTF_LIKE(2, 3) pir_fail(PirReader *r, const char *fmt, ...);
// Member `key` of an object when it is of that type; NULL otherwise.
json_object *pir_get(json_object *o, const char *key, enum json_type type);
// An integer member, of any size that int64_t holds; false when it is none.
bool pir_int(json_object *o, const char *key, int64_t *v);
// A text of the document, copied into the arena.
char *pir_text(PirReader *r, json_object *string);
char *pir_copy(PirReader *r, const char *s);

// ---- pir_read.c -------------------------------------------------------------------------------
// The program in a file's bytes. NULL after diagnostics.
Paddle__ProgramDesc *pir_read(Context *c, const char *path, const uint8_t *data, size_t size);
// A new block below `parent` (-1: the program itself).
PirBlock pir_block_new(PirReader *r, int parent);
// Translates the operations of the only block in region `k` of `op`, up to its terminator, which is
// left to the caller (NULL: there is none). False after a diagnostic.
bool pir_region(PirReader *r, PirBlock *b, json_object *region, json_object **terminator);

// ---- pir_type.c -------------------------------------------------------------------------------
// The element type of a token ("float32"), as legacy programs number them; -1: as the input; -2:
// none.
int32_t pir_dtype(const char *token);
// What type `tt` of a result says: one variable, or those of a vector. False after a diagnostic.
bool pir_types(PirReader *r, json_object *tt, PirValue *out);
// An attribute {N, AT} as a legacy one; NULL with *ok: it says nothing about the computation
// (places).
Paddle__OpAttr *pir_attr(PirReader *r, const char *name, json_object *at, bool *ok);
Paddle__OpAttr *pir_attr_new(PirReader *r, const char *name, int kind);

// ---- pir_desc.c ------------------------------------------------------------------------------
// The value with that number; NULL after a diagnostic, or when `id` is 0: none.
PirValue *pir_value(PirReader *r, int64_t id);
// The id of entry i of a list of values ("I" or "O"). False when there is none.
bool pir_id(json_object *list, size_t i, int64_t *id);
// Binds a result or block argument to variables.
void pir_bind(PirReader *r, int64_t id, PirValue *v);
// A variable under exactly this name; `type` NULL: the file does not tell.
void pir_declare_var(PirReader *r, PirBlock *b, char *name, Paddle__VarType *type);
// Declares the variables of a new value in the block, named `stem`, or after it where the value is
// a vector.
bool pir_declare(PirReader *r, PirBlock *b, const char *stem, PirValue *v);
// A name that no other variable has.
char *pir_name(PirReader *r, const char *stem);
// `conv2d_3` for the third conv2d.
const char *pir_stem(PirReader *r, const char *operation);
// Appends an operator; slots and attributes follow.
Paddle__OpDesc *pir_append(PirReader *r, PirBlock *b, const char *type);
void pir_input(PirReader *r, Paddle__OpDesc *d, const char *slot, size_t n, char **vars);
void pir_output(PirReader *r, Paddle__OpDesc *d, const char *slot, size_t n, char **vars);
void pir_add_attr(PirReader *r, Paddle__OpDesc *d, Paddle__OpAttr *a);
// `to` becomes what `from` holds.
void pir_assign(PirReader *r, PirBlock *b, char *from, char *to);

// ---- pir_op.c ---------------------------------------------------------------------------------
typedef bool PirForm(PirReader *r, PirBlock *b, json_object *op); // false after a diagnostic
PirForm pir_op;
// Whether no gradient goes through result i of an operation.
bool pir_stops_gradient(json_object *op, size_t i);

// ---- pir_gradient.c ---------------------------------------------------------------------------
// The map of a gradient operation ("conv2d_grad"); *info becomes its forward operation's. NULL: it
// is none, or pdcc does not know its forward operation.
const PirMap *pir_gradient(PirReader *r, const char *name, const OpInfo **info);

// ---- pir_flow.c -------------------------------------------------------------------------------
PirForm pir_pylayer, pir_if, pir_while;

#endif
