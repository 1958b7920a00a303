// Code generation: from the IR that lowering left behind to C (or CUDA) text.
//
// Knows ir/ and the Target in lower/lower.h. The driver calls codegen_c or codegen_cuda and writes the
// files; everything else here is shared between the files of this folder.
//
// How a function comes to be: module.c walks the operations of the module. For every loop.nest and
// kernel.* it makes a KernelFunc and has it filled by an emitter (nest.c, kernel_*.c). The emitter asks
// for the C names of tensors and sizes (kernel_tensor, kernel_dim), which makes them parameters, and
// leaves the text of a static function in k->text. Two functions with the same text are emitted once.
#ifndef PDCC_CODEGEN_H
#define PDCC_CODEGEN_H

#include "../ir/ir.h"
#include "../lower/lower.h"

// ---- what the driver calls ---------------------------------------------------------------------

typedef enum WeightsMode {
	WEIGHTS_AUTO,   // inline below 64 KiB, else a file
	WEIGHTS_INLINE, // arrays in model.c, hexadecimal floats
	WEIGHTS_FILE,   // model.weights, handed to model_init by the caller
	WEIGHTS_OBJECT  // model.weights pulled into the object file with .incbin (GNU assembler)
} WeightsMode;

typedef struct CodegenOptions {
	const char *prefix;       // C identifier that all global symbols begin with: "model"
	const char *header_name;  // "model.h": what the source includes
	const char *weights_name; // "model.weights": what .incbin reads and comments name
	const char *banner;       // one line: what the code was made from ("lenet/model.pdmodel"), or NULL
	const char *compile;      // CUDA: how the code says to compile it, or NULL
	WeightsMode weights;
	bool call;                // also print model_call, with a static workspace (static shapes only)
} CodegenOptions;

// One launch of generated CUDA, for reports: see cuda_report.c for what sizes count as.
typedef struct CudaLaunch {
	const char *kernel;       // the function; several launches may share it
	int64_t blocks, threads;  // threads: of a block; 0: what a library launches
	int shared;               // bytes of shared memory that the launch gives a block
	int access;               // the most bytes that a thread moves at once; 16 is best
	bool tensor_cores;
	int64_t read, written;    // bytes of operands and results
} CudaLaunch;

typedef struct CodegenResult {
	Text source;              // model.c or model.cu
	Text header;              // model.h
	const uint8_t *weights;   // bytes of model.weights; NULL when they are inline
	size_t weights_size;
	int nlaunch;              // CUDA
	const CudaLaunch *launches;
	int64_t least_bytes;      // CUDA: inputs, outputs and what is read of weights, each once
	const char *libraries;    // CUDA: what to link with besides the runtime: " -lcublasLt", or ""
} CodegenResult;

// False after diagnostics. The module must have gone through the whole lowering pipeline.
bool codegen_c(Context *c, Op *module, const Target *t, const CodegenOptions *o, CodegenResult *out);
bool codegen_cuda(Context *c, Op *module, const Target *t, const CodegenOptions *o, CodegenResult *out);

// Whether a C identifier may begin all global symbols, and name a type.
bool prefix_is_free(const char *name);

// ---- embedded text (made by embed.c) -------------------------------------------------------------

// The text of codegen/kernels/NAME.in ("gemm.c") or runtime_stub/NAME ("pdrt.h"); NULL: none.
const char *embed_text(const char *name);

// ---- template.c -----------------------------------------------------------------------------------

typedef struct TemplateKey {
	const char *key, *text;
} TemplateKey;

// Expands `${key}` in the embedded text `name` into out. An unknown or unused key is a diagnostic. A value
// of several lines that stands alone on its line is indented like that line. `${fn}` and `${params}` may
// always be used: they become KERNEL_FN and KERNEL_PARAMS.
bool template_expand(Context *c, Text *out, const char *name, int nkey, const TemplateKey *keys);

#define KERNEL_FN "\x01"     // in k->text: stands for the function's name
#define KERNEL_PARAMS "\x02" // in k->text: stands for its parameter list

// ---- functions under construction: kernel.c --------------------------------------------------------

typedef struct Codegen Codegen; // one run of codegen_c; private to module.c and friends (codegen_impl.h)

typedef struct KernelParam {
	const char *name;   // inside the function
	const Value *value; // the tensor; NULL: a symbol
	const Dim *sym;     // the symbol
	bool bound;         // its bound, not itself
	bool result;        // written
	bool captured;      // used in a region, not an operand
	const char *type;   // neither tensor nor size: a parameter of this type …
	const char *given;  // … and what the call passes
} KernelParam;

typedef struct KernelFunc {
	Codegen *cg;
	Context *ctx;
	Arena *arena;
	const Target *target;
	const Op *op;          // what it does: loop.nest or kernel.*
	Text text;             // the function: everything from `static` to the last brace, with KERNEL_FN and
	                       // KERNEL_PARAMS; it is preceded by helpers that only it uses, if any
	int block_threads;     // CUDA: threads of a block; 0: the usual number
	int block_shared;      // CUDA: bytes of shared memory that the launch gives a block (PD_DYNAMIC)
	int per_block;         // CUDA: what a block does of the positions that the launch counts; 0: one with block_threads, else
	                       // one for each thread
	const char *index;     // the C type of positions: int64_t; CUDA also int, or I, the parameter of a function template
	const Dim *sizes;      // with I: int does while this is …
	int64_t sizes_most;    // … at most so much
	const char *place;     // in a kernel's region: the linear position of the element of the result; NULL: it has no name
	bool skips;            // CUDA: a check that fails leaves out the element, since its thread has to meet others
	const Dim *work;       // CUDA: how many things blocks share; NULL: elements, or what the operation says
	const Dim *grid;       // CUDA: it must be launched with so many blocks; NULL: any number is right
	bool one_block;        // CUDA: right in one block of block_threads, or, where these are 0, of any number of warps
	int number;            // CUDA: among cg->funcs, once finished
	int64_t blocks;        // CUDA: of the launch, for reports; 0: one
	bool inlined;          // no function: statements in model_run
	bool status;           // it returns pd_status (else void): see kernel_return_type
	bool sets_sizes;       // CUDA: those among its parameters
	int nparam;
	KernelParam *params;   // results first, then operands, then what was asked for, in that order
	int cparam, nlocal;    // private: room, and the number of the next local variable
} KernelFunc;

// The emitters of kernel operations: fill k->text, false after a diagnostic. Results and tensor operands are
// parameters already, in order: `out` (`out0`, `out1` … when there are several) and the operands' names
// in the operator table.
bool nest_emit(KernelFunc *k);               // nest.c
bool nest_statement(KernelFunc *k);          // nest.c: a nest of one element as statements, one tab deep
bool kernel_gemm_emit(KernelFunc *k);        // kernel_gemm.c …
bool kernel_conv_emit(KernelFunc *k);
bool kernel_depthwise_emit(KernelFunc *k);
bool kernel_softmax_emit(KernelFunc *k);
bool kernel_layer_norm_emit(KernelFunc *k);
bool kernel_pack_conv_emit(KernelFunc *k);
bool kernel_pack_gemm_emit(KernelFunc *k);
bool kernel_block_emit(KernelFunc *k);
bool kernel_unblock_emit(KernelFunc *k);
bool kernel_sort_emit(KernelFunc *k);        // kernel_select.c
bool kernel_nms_emit(KernelFunc *k);
bool kernel_compact_emit(KernelFunc *k);
bool kernel_scan_emit(KernelFunc *k);        // kernel_scan.c
bool kernel_scatter_emit(KernelFunc *k);

// How its function begins: `static`, or a macro that keeps it out of the loops of model_run.
const char *kernel_linkage(const KernelFunc *k);
// The C name of a tensor inside the function; a captured tensor becomes a parameter (`t0`, `t1` …).
const char *kernel_tensor(KernelFunc *k, const Value *v);
const char *kernel_result(KernelFunc *k, int i);
// A size as a C expression of type int64_t that needs no parentheses around it: a literal, a parameter or
// `(…)`. The symbols in it become parameters.
const char *kernel_dim(KernelFunc *k, const Dim *d);
// A parameter that is neither tensor nor size: what the call passes is an expression of model_run.
void kernel_given(KernelFunc *k, const char *type, const char *name, const char *given);
// A fresh local name: `v0`, `v1` …, or with a stem of your own.
const char *kernel_local(KernelFunc *k, const char *stem);
// Expands a template into k->text. Keys as in template_expand.
bool kernel_template(KernelFunc *k, const char *name, int nkey, const TemplateKey *keys);
// Emits an expansion once per distinct text before all kernels: a helper shared by several (a microkernel). The
// template must make names that differ when the text differs (put the sizes into the name).
bool kernel_helper(KernelFunc *k, const char *name, int nkey, const TemplateKey *keys);

// ---- scalar.c -----------------------------------------------------------------------------------------

// How an element is held: in memory (float, uint8_t for bool, uint16_t for f16 and bf16) and in a scalar
// variable (float for f16 and bf16, bool for bool, int64_t for index).
const char *dtype_c_memory(DType t);
const char *type_c_scalar(const Type *t);
// The same inside of a function, where positions may be narrower.
const char *kernel_scalar(const KernelFunc *k, const Type *t);
static inline bool type_is_complex(const Type *t) { return t->kind == TY_SCALAR && dtype_is_complex(t->dtype); }

// Prints the statements of a scalar region's only block, `depth` tabs deep. args[i] is the C expression for
// block argument i (an identifier, a literal or parenthesised). yields[i] becomes the expression of the i-th yielded
// value. The same region may be printed several times (row and tail loops). Statements may stand in any block
// of C; they declare `const` locals with names unique in the function.
bool scalar_region_print(KernelFunc *k, const Region *r, const char *const *args, int depth, Text *out,
                         const char **yields);
// `out[i] = (conversion of) value`, without the semicolon; and an element as a scalar expression.
const char *scalar_store(KernelFunc *k, DType t, const char *pointer, const char *index, const char *value);
const char *scalar_load(KernelFunc *k, DType t, const char *pointer, const char *index);
// The linear element index of tensor type t at the given index expressions: `(i * 64 + j)`.
const char *scalar_linear(KernelFunc *k, const Type *t, int n, const char *const *index);
// An integer or truth as a literal.
const char *scalar_int(Arena *a, const Type *type, int64_t v);
// A float constant exactly: `0x1.8p+1f`, `INFINITY`, `NAN`.
const char *scalar_float(Arena *a, DType t, double v);

// Functions of the prelude (codegen/kernels/prelude_*.c.in, math.c.in) need no registration. These files are
// sequences of sections, each begun by a line `//@ name` (a function, type or macro; several names may be listed); a
// section is emitted when one of its names occurs as an identifier in what is emitted after it. In vector
// targets f32 math goes to pd_expf, pd_tanhf, pd_erff, pd_logf … (math.c.in: inline, branch-free, fit for
// auto-vectorised lane loops, no -ffast-math needed); `generic` calls libm.

#endif
