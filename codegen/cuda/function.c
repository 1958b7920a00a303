// The program's own functions as steps of a CUDA program: what a call passes, and their text, of
// which one form is launched (__global__) and one called by blocks (__device__), or one around the
// other. Called by cuda.c for each function, and by host.c for the text.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/touches.h"

#include <inttypes.h>
#include <string.h>

// What the call passes for a parameter; false after a diagnostic.
static bool param_pass(const KernelFunc *k, const KernelParam *p, CudaArg *arg)
{
	Codegen *cg = k->cg;
	const char *type = kernel_param_type(k, p), *text = call_argument(cg, p);
	if (!text)
		return false;
	if (p->value)
		*arg = cuda_arg_tensor(cg, type, p->value, text, false);
	else if (!p->given && !p->bound && size_is_on_device(cg, p->sym))
		*arg = cuda_arg_word(cg, type, cuda_size_word(cg, symbol_find(cg, p->sym)));
	else
		*arg = (CudaArg){type, text, p->given ? CUDA_UNNAMED : text};
	return true;
}

// Whether the function touches no more than the schedule was made for; what branches do, is all
// there (touch_edge_sizes).
static bool function_is_known(Codegen *cg, const KernelFunc *k)
{
	bool known = !k->status || op_may_fail(k->op);
	for (int i = 0; i < k->nparam && known; i++) {
		const KernelParam *p = &k->params[i];
		known = p->value || p->given || p->bound || !size_is_on_device(cg, p->sym) ||
		        op_touches_size(cg->arena, k->op, p->sym);
	}
	if (!known)
		diag_error(cg->ctx->diag, k->op->loc,
		           "code generation: the kernel of '%s' touches more than its step does",
		           k->op->info->name);
	return known;
}

bool cuda_function_print(Codegen *cg, KernelFunc *k, const char *blocks, int threads)
{
	const char *name = kernel_finish(k);
	if (!k->op->nsucc && !function_is_known(cg, k))
		return false;
	const Attr *work = op_attr(k->op, "block_work");
	CudaArg *args = NEW_ARRAY(cg->arena, (size_t)k->nparam + 2, CudaArg);
	CudaStep s = {.op = k->op,
	              .kernel = name,
	              .work = work ? work->dim : NULL,
	              .func = k->number,
	              .blocks = blocks,
	              .threads = threads,
	              .args = args,
	              .width = 1};
	s.figures = cuda_figures(cg, k);
	s.figures.blocks = k->blocks;
	s.figures.shared = k->block_shared;
	for (int i = 0; i < k->nparam; i++)
		if (!param_pass(k, &k->params[i], &args[s.narg++]))
			return false;
	if (k->status) {
		args[s.narg++] = cuda_arg_state(cg, "pd_state *");
		const int failure = k->nfault ? cuda_failures(cg, k->nfault, k->faults)
		                              : cuda_failure(cg, k->op);
		args[s.narg++] = cuda_arg_literal("int ", arena_printf(cg->arena, "%d", failure));
	}
	s.stem = name + strcspn(name, "_") + 1;
	if (k->sizes) // of a template the instance whose positions are wide enough for the sizes of
	              // this run
		s.instance = arena_printf(
			cg->arena, "%s <= %" PRId64 " ? %s<int> : %s<int64_t>",
			expression_unwrap(cg->arena, dim_in_locals(&cg->plan, dim_at_most(cg->ctx, k->sizes))),
			k->sizes_most, name, name);
	if (work && threads > 1) {
		int64_t least;
		const Dim *wide;
		step_work(k->op, &wide);
		dim_range(wide, &least, &s.width);
	}
	if (k->block_threads)
		s.width = CUDA_BLOCK_THREADS;
	cuda_step_print(cg, &s);
	return true;
}

// ---- the text -----------------------------------------------------------------------------------

// The head of a function, as it is launched: one with a guard looks whether its part runs.
static void launched_head(const EmittedFunc *f, Text *out)
{
	text_str(out, "static __global__ void ");
	if (f->bounds)
		text_printf(out, "__launch_bounds__(%s) ", f->bounds);
	text_printf(out, "%s(", f->name);
	if (f->guarded)
		text_printf(out, "%s pd_part%s", f->counts ? "pd_turn" : "pd_guard",
		            *f->params ? ", " : "");
	text_printf(out, "%s)\n{", *f->params || f->guarded ? f->params : "void");
	if (f->guarded)
		text_str(out, "\n\tif (pd_is_off(pd_part))\n\t\treturn;");
}

// `text` as a function that is launched, or that blocks call.
static void function_print(const EmittedFunc *f, const char *text, bool called, Text *out)
{
	for (const char *s = text; *s; s++) {
		if (*s == KERNEL_FN[0])
			text_str(out, called ? f->called : f->name);
		else if (*s == KERNEL_HEAD[0] && called)
			text_printf(out, "static __device__ void %s(%s)\n{", f->called,
			            *f->params ? f->called_params : "void");
		else if (*s == KERNEL_HEAD[0])
			launched_head(f, out);
		else
			text_char(out, *s);
	}
	text_char(out, '\n');
}

void cuda_functions_print(Codegen *cg, Text *out)
{
	for (int i = 0; i < cg->nfunc; i++) {
		const EmittedFunc *f = &cg->funcs[i];
		const char *text = f->text;
		if (f->called)
			function_print(f, text, true, out);
		if (f->called && f->launched)
			text = arena_printf(cg->arena, "%s" KERNEL_HEAD "\n\t%s%s(%s);\n}\n",
			                    f->is_template ? "template <typename I>\n" : "", f->called,
			                    f->is_template ? "<I>" : "", f->arguments);
		if (f->launched)
			function_print(f, text, false, out);
	}
}
