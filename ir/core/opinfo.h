// The operator table, generated from ir/ops/*.yaml (table.c): what an operation is.
#ifndef PDCC_IR_CORE_OPINFO_H
#define PDCC_IR_CORE_OPINFO_H

#include "ir/core/op.h"

typedef enum OpKind {
	KIND_MAP,
	KIND_REDUCE,
	KIND_SCAN,
	KIND_INDEX,
	KIND_CONTRACT,
	KIND_KERNEL,
	KIND_COMPOSITE,
	KIND_CONTROL,
	KIND_RANDOM,
	KIND_BUILTIN,
	KIND_LOOP
} OpKind;

// What a scalar definition, a gradient or a composition says: nodes in post-order (operands first).
typedef enum ExprKind {
	EX_NUMBER,
	EX_NAME /* operand, attribute, earlier statement, `x.dtype`, true, f32 */,
	EX_STRING,
	EX_CALL /* op by name */,
	EX_LIST
} ExprKind;

typedef struct Expr {
	ExprKind kind;
	double number;
	bool is_int;
	const char *name;        // EX_NAME, EX_CALL
	enum OpCode code;        // EX_CALL
	int nargs;               // EX_CALL, EX_LIST: positional first, then named
	const int *args;         // indices of earlier nodes
	const char *const *keys; // [nargs]; NULL: positional
} Expr;

typedef struct ExprDef { // one or several statements; the last one is the value
	int nnode;
	const Expr *nodes;
	int nstmt;
	const char *const *stmt_names; // [nstmt]
	const int *stmt_nodes;         // [nstmt]
} ExprDef;

typedef enum OperandClass { // what element types an operand takes
	CLASS_ANY,
	CLASS_FLOAT,
	CLASS_INT,
	CLASS_BOOL,
	CLASS_NUMBER /* float or int */,
	CLASS_INDEX /* i32, i64 */
} OperandClass;

// What programs are printed in.
typedef enum Language { LANGUAGE_C, LANGUAGE_CUDA } Language;

typedef struct OperandInfo {
	const char *name;
	OperandClass klass;
	bool optional, vec;     // vec: a builtin.combine
	int min_rank, max_rank; // of a tensor
} OperandInfo;

// The words that an attribute may hold (YAML: `enum NAME`). For ops/enums.yaml opgen writes C
// enumerations, too.
typedef struct EnumInfo {
	const char *name;
	int n;
	const char *const *words;
} EnumInfo;

typedef struct AttrInfo {
	const char *name;
	AttrKind kind;
	bool required;
	const char *fallback;    // default in the text form of attributes, or NULL
	const char *operand;     // mutable attribute: the operand that overrides it, or NULL
	bool any_number;         // kind FLOAT, but INT and BOOL will do (YAML: number)
	const EnumInfo *choices; // kind STR: one of these words; NULL: any text
} AttrInfo;

// An attribute of legacy operators that does not change what they compute.
typedef struct IgnoredAttr {
	const char *name; // `*end`: any name that ends so
	int n; // only while it holds one of these, in the text form of attributes; 0: whatever
	const char *const *values;
} IgnoredAttr;

// How a legacy operator maps to this operation.
typedef struct LegacyMap {
	const char *type; // OpDesc.type
	const char *const
		*slots; // [noperand]: input slot of each operand; "A|B" tries A, then B; NULL: none
	const char *const *outs; // [nresult]
	int nattr;
	const char *const *attr_from; // legacy attribute
	const char *const *attr_to;   // ours
	const char *hook;             // name of an override in frontend/, or NULL
	int nset;                     // attributes fixed by this legacy operator
	const char *const *set_names;
	const char *const *set_texts; // in the text form of attributes
	LodKind lod;                  // of the results
	int nread;                    // attributes that only the override reads
	const char *const *reads;
	int nignored;
	const IgnoredAttr *ignored;
} LegacyMap;

// Attributes and texts.
typedef struct PirPairs {
	int n;
	const char *const *names, *const *texts;
} PirPairs;

// How an operation of Paddle 3 (dialect pd_op) maps to one of ours. Its slots bear the names of our
// operands and results.
typedef struct PirMap {
	LegacyMap map; // type "pd_op.conv2d"
	enum OpCode code;
	int nin;
	const char *const *in; // [nin]: by position an operand, a slot, or an attribute; NULL: not read
	int nout;
	const char *const *out; // [nout]
	int ninplace;           // -1: none, though the name says so
	const int *inplace;     // [2 * ninplace]: a result, and the operand whose place it takes
	// What only writing asks for (frontend/write).
	const char *rest; // the list of sizes in which -1 stands for what is left; NULL: none
	PirPairs give;    // their attributes that we do not have, and what they hold
	PirPairs unless;  // not this operation while our attribute holds that
	PirPairs upward;  // our attribute says nothing while that list of numbers is positive
	int nderived;     // attributes that say what the others say
	const char *const *derived;
	int ntold; // of which attributes or operands one must be given, so that these say it
	const char *const *told;
} PirMap;

// What Paddle 3 declares of an operation (ops/paddle3.yaml): a program that is written says all of
// it, in these kinds.
typedef enum PirKind {
	PIR_TENSOR, // operands: a tensor; a list of integers; a number
	PIR_INTS,
	PIR_NUMBER,
	PIR_BOOL, // attributes
	PIR_I32,
	PIR_I64,
	PIR_F32,
	PIR_F64,
	PIR_STR,
	PIR_I32S,
	PIR_I64S,
	PIR_F32S,
	PIR_STRS,
	PIR_DTYPE,
	PIR_PLACE,
	PIR_INTARRAY,
	PIR_SCALARS,
	PIR_SCALAR_F32, // a number, which stands as this
	PIR_SCALAR_F64,
	PIR_SCALAR_I64
} PirKind;

typedef struct PirArg {
	const char *name;
	PirKind kind;
	bool optional, vec;   // operands and results
	const char *fallback; // of an attribute, in the text form of attributes; NULL: none
} PirArg;

typedef struct PirDeclared {
	const char *name; // "conv2d"
	int nin;
	const PirArg *in;
	int nattr;
	const PirArg *attrs;
	int nout;
	const PirArg *out;
} PirDeclared;

enum {              // OpInfo.traits
	TRAIT_PURE = 1, // no effect but its results
	TRAIT_TERMINATOR = 2,
	TRAIT_COMMUTATIVE = 4,
	TRAIT_VIEW = 8,       // result may alias operand 0 (reshape, squeeze ...)
	TRAIT_BROADCAST = 16, // operands broadcast against each other (maps)
	TRAIT_PRIMITIVE = 32, // a map without a scalar definition: interpreter and printers know it
	TRAIT_COMPARE = 64,   // map whose result is bool
	TRAIT_CONSTANT = 128,
	TRAIT_REPEAT_OPERAND =
		256, // the last operand listed may repeat, or be absent (YAML: `index...`)
	TRAIT_REPEAT_RESULT = 512, // any number of results
	TRAIT_CHEAP = 1 << 10,     // of single numbers, it costs less than a jump that is not foreseen
	TRAIT_STEPS =
		1 << 11, // goes through its input step by step: a loop, before passes on control flow
	TRAIT_APART = 1 << 12,   // worth more in the parts that its definition makes
	TRAIT_APART_C = 1 << 13, // the same, but for CUDA
	TRAIT_SPACE =
		1 << 14, // works on axes 2 and 3 of an image, as far as its attributes say no other
	TRAIT_ENLARGES = 1 << 15,   // its result is likely to be larger
	TRAIT_REPACKS = 1 << 16,    // the same elements in another layout
	TRAIT_ROUNDS = 1 << 17,     // CUDA: computes in f32 and may round each result to what it stores
	TRAIT_AXIS_MOVES = 1 << 18, // an `axis` that only a run tells may be moved to the front
	TRAIT_AXIS_NEW = 1 << 19,   // and it is one of the result, not of operands
	TRAIT_ONE_BLOCK = 1 << 20,  // CUDA: its kernel is right in one block of threads
	TRAIT_ROWS = 1 << 21,       // kernel.*: of rows along `axis`, or the last `axes`
	TRAIT_STORES_ONCE = 1 << 22, // C: its epilogue stores each element once: of any type, or in
	                             // place of one that it reads there
	TRAIT_SHARES = 1 << 23,      // gives exp(x) / sum(exp(x)) along `axis`
	TRAIT_BRANCH = 1 << 24,      // one of its regions runs, and gives the results
	TRAIT_SIZES_OF = 1 << 25     // of operand 0 only the sizes count
};

struct OpInfo {
	enum OpCode code;
	const char *name;       // "pd.conv2d"
	const char *short_name; // "conv2d"
	const char *doc;
	OpKind kind;
	unsigned traits;
	int noperand, nresult, nattr;
	const OperandInfo *operands;
	const char *const *results;
	const char *const *result_types; // "like(x)", "like(x, bool)" ... or NULL: infer hook
	const AttrInfo *attrs;
	int min_regions, max_regions;
	const char *const *region_names; // for text; [max_regions], or those of regions that repeat
	const char *c_expr; // primitives: C expression with ${x} for operands, {f} for the libm suffix
	const ExprDef *scalar;  // maps
	const ExprDef *compose; // composites
	int ngrad;
	const char *const *grad_names;
	const ExprDef *const *grads;
	int nlegacy;
	const LegacyMap *legacy;
	double cost, index_cost; // of one element beside an addition; of positions
	FilterKind filter;       // contractions: how operand `filter`, or else 1, lies
	int ndrop;
	const char *const *drops; // attributes: probabilities by which training drops elements
	unsigned languages;       // those it has an emitter in: 1 << LANGUAGE_C ...
};

// What an operator does that its row cannot say, each or none. The functions lie in all rooms of
// ir/, so they are reached through the Context, which has them from ir/ir.c.
struct OpFunctions {
	bool (*infer)(Op *op);  // sets result types (and `known`); false after a diagnostic
	bool (*verify)(Op *op); // further checks
	bool (*define)(struct Builder *b, Op *op,
	               Value **results);              // builds its meaning in simpler operations
	bool (*interpret)(struct Interp *in, Op *op); // only what define cannot say
	bool (*gradient)(struct GradientJob *g); // what the rules in grads cannot say (ir/gradient)
};

// Of an operation whose first region repeats (YAML: `[case..., default]`).
enum { MOST_REGIONS = 257 };

static inline bool regions_repeat(const OpInfo *info)
{
	return info->max_regions == MOST_REGIONS;
}

static inline const char *op_region_name(const Op *op, int i)
{
	return op->info->region_names[regions_repeat(op->info) ? i + 1 == op->nregion : i];
}

// The regions that every operation of its kind has, those that repeat included, without `init`.
static inline int op_parts(const Op *op)
{
	return regions_repeat(op->info) ? op->nregion : op->info->min_regions;
}

// Whether one of its regions runs, whose cf.yield gives the results.
static inline bool op_is_branch(const Op *op)
{
	return (op->info->traits & TRAIT_BRANCH) != 0;
}

static inline const OpFunctions *op_functions(const Op *op)
{
	return &op->ctx->functions[op->code];
}

extern const OpInfo op_table[OP_COUNT];
const OpInfo *op_info_by_name(const char *name, size_t n); // "pd.add"; NULL: none
// Attributes that no legacy operator reads unless its map says so.
const IgnoredAttr *op_info_ignored(int *n);
// NULL: none; "pd_op.x" is one, too.
const OpInfo *op_info_by_legacy(const char *type, const LegacyMap **map);
// Of an operation of Paddle 3, "conv2d" or, in place, "relu_"; NULL: none.
const PirMap *op_info_by_pir(const char *name, const OpInfo **info);
// Those that stand for an operation of ours, the one of its own name first; i counts from 0, NULL
// ends.
const PirMap *op_info_pir(enum OpCode code, int i);
const PirDeclared *pir_declared(const char *name);         // NULL: Paddle has no such operation
int op_info_operand(const OpInfo *info, const char *name); // -1: none
const AttrInfo *op_info_attr(const OpInfo *info, const char *name);
int enum_find(const EnumInfo *e, const char *word); // e->n: none
// "sum, prod or max"
const char *enum_text(Context *c, const EnumInfo *e);

#endif
