// C as a backend: the body of model_run, and the templates of all C (kernels/). Leaves model.c.
// Uses codegen/model, codegen/tuned, codegen/nest and what is below; never meets CUDA.
#ifndef PDCC_CODEGEN_C_C_H
#define PDCC_CODEGEN_C_C_H

#include "codegen/model/model.h"
#include "lower/analysis/analysis.h"

bool update_print(Codegen *cg, const Op *op); // loop.update
// Before what is computed in slices of others is: checks these, and sets pointers to them.
bool slots_print(Codegen *cg, const Op *op);
bool append_print(Codegen *cg, const Op *op); // loop.append
void c_module_print(Codegen *cg, CodegenResult *out);
// trace.c: one operation, with what --trace and --assert-finite want around it; `bound` as in
// run_op_print. False after a diagnostic.
bool traced_op_print(Codegen *cg, const Op *op, const Op **bound);
// compute.c: the emitter of an operation; its function, made at the first time; NULL after a
// diagnostic. Its call; given: arguments by parameter, NULL where they are as always. The comment.
Emitter *compute_emitter(const Op *op);
bool compute_print(Codegen *cg, const Op *op, Emitter *emit);
KernelFunc *compute_make(Codegen *cg, const Op *op);
bool compute_call(Codegen *cg, const KernelFunc *k, const char *const *given);
void compute_comment(Codegen *cg, const Op *op);
// repeat.c: operations in their order, `n` of them; false after diagnostics.
bool steps_print(Codegen *cg, const Op *const *ops, int n, const Op **bound);
void trace_inputs_print(Codegen *cg);         // --assert-finite: of what goes in
void trace_ops_print(Codegen *cg, Text *out); // the table of operators, and model_trace
// map.c: notes that op's lines in cg->run begin at `from` and end here; then, as JSON, all lines of
// a source in which cg->functions and cg->run begin at these positions.
void map_note(Codegen *cg, const Op *op, int function, size_t from);
void map_print(Codegen *cg, const Text *source, size_t functions, size_t run, CodegenResult *out);
void plan_print(Codegen *cg, Text *out); // plan.c: the memory plan, as a comment
// Where buffers begin, for sizes of a run; model_workspace_size.
void places_print(Codegen *cg, Text *out);
// blocks.c: all of them, with their operations; false after diagnostics.
bool blocks_print(Codegen *cg, const Op **bound);
// scope.c: which numbers are declared where they are computed. By block, as blocks_nest gives it.
void scopes_find(Codegen *cg, const BlockTail *tails);
// share.c: what kernels with `units` need behind their function, and the call that shares them.
void share_print(KernelFunc *k);
void share_call_print(Codegen *cg, const KernelFunc *k, const char *name, const char *args);
// parameters.c: model_reset; and what copies a parameter that runs change, in or out.
void c_states_print(Codegen *cg, Text *out);
void c_state_copy_print(Codegen *cg, Text *out, bool set);
void c_run_print(Codegen *cg, Text *out); // model_run

#endif
