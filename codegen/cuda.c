// Prints a module as CUDA: the same nests as __global__ functions, one thread per element of the result, launched on a
// stream. One block of device memory holds, in this order, a word for failed index checks, the weights
// and the workspace of the plan. Called by the driver (codegen_cuda) and by run.c.
#include "nest.h"

#include <inttypes.h>
#include <string.h>

enum { FLAG_BYTES = 64, THREADS = 256 };

// ---- kernels -----------------------------------------------------------------------------------------------

// for (element) { position; scalars; stores }: a stride of the whole grid, so that any grid is right.
static bool elements_print(Nest *n, const Dim *total)
{
	KernelFunc *k = n->k;
	text_line(n->out, 1, "const int64_t total = %s;", expression_unwrap(k->arena, kernel_dim(k, total)));
	text_line(n->out, 1, "for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < total;");
	text_line(n->out, 1, "     e += (int64_t)gridDim.x * blockDim.x) {");
	if (n->nloop == 1)
		pointer_map_set(&n->s.names, n->loops[0].arg, "e");
	if (n->nloop > 1)
		text_line(n->out, 2, "int64_t rest = e;");
	for (int i = n->nloop - 1; i >= 0 && n->nloop > 1; i--) {
		const char *name = kernel_local(k, "i"), *extent = kernel_dim(k, n->loops[i].extent);
		text_line(n->out, 2, i ? "const int64_t %s = rest %% %s;" : "const int64_t %s = rest;", name, extent);
		if (i)
			text_line(n->out, 2, "rest /= %s;", extent);
		pointer_map_set(&n->s.names, n->loops[i].arg, name);
	}
	for (const Op *op = n->body->first; op != block_terminator(n->body); op = op->next)
		if (nest_needed(n, op) && !scalar_op_print(&n->s, op, true, 2, n->out))
			return false;
	const Op *end = block_terminator(n->body);
	for (int i = 0; i < end->noperand; i++) {
		const char *value = scalars_name(&n->s, op_operand(end, i));
		if (!value)
			return false;
		DType t = n->op->results[i].type->dtype;
		text_line(n->out, 2, "%s;", scalar_store(k, t, kernel_result(k, i), "e", value));
	}
	text_line(n->out, 1, "}");
	return true;
}

bool cuda_nest_emit(KernelFunc *k)
{
	Nest n;
	Text body;
	text_init(&body, k->arena);
	nest_init(&n, k, &body);
	if (!elements_print(&n, type_numel(k->ctx, k->op->results[0].type)))
		return false;
	text_printf(&k->text, "static __global__ void %s(%s)\n{\n%s}\n", KERNEL_FN, KERNEL_PARAMS, body.text);
	return true;
}

bool cuda_launch_print(Codegen *cg, const KernelFunc *k, const char *name, const char *args)
{
	const char *total = dim_in_run(cg, type_numel(cg->ctx, k->op->results[0].type));
	text_line(&cg->run, 1, "%s<<<grid_blocks(%s), %d, 0, stream>>>(%s%s);", name, total, THREADS, args,
	          !k->status ? "" : *args ? ", failed" : "failed");
	return true;
}

// ---- host code -----------------------------------------------------------------------------------------------

static void grid_print(Text *out)
{
	text_printf(out, "/* Blocks for so many elements; kernels stride over the rest. */\n"
	                 "static unsigned grid_blocks(int64_t elements)\n{\n"
	                 "\tconst int64_t blocks = (elements + %d) / %d;\n"
	                 "\treturn blocks < 1 ? 1 : blocks > 65535 ? 65535 : (unsigned)blocks;\n}\n\n", THREADS - 1, THREADS);
}

static void cuda_init_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out, "pd_status %s_init(%s *m, const void *weights, size_t n, void *workspace, size_t size, "
	                 "cudaStream_t stream)\n{\n", p, p);
	text_line(out, 1, "if (!m || !workspace%s)", cg->inline_weights ? "" : " || !weights");
	text_line(out, 2, "return PD_NULL;");
	text_line(out, 1, "m->ready = false;");
	text_line(out, 1, "m->failed = NULL;");
	if (cg->inline_weights)
		text_str(out, "\t(void)weights;\n\t(void)n;\n");
	else
		text_printf(out, "\tif (n != %" PRId64 "u)\n\t\treturn PD_WEIGHTS;\n", cg->weights_size);
	text_line(out, 1, "if ((uintptr_t)workspace %% 64)");
	text_line(out, 2, "return PD_ALIGNMENT;");
	text_line(out, 1, "if (size < %" PRId64 ")", FLAG_BYTES + cg->weights_size);
	text_line(out, 2, "return PD_WORKSPACE;");
	text_line(out, 1, "unsigned char *const memory = (unsigned char *)workspace + %d;", FLAG_BYTES);
	if (cg->inline_weights)
		text_str(out, cg->uploads.text ? cg->uploads.text : "");
	else
		text_line(out, 1, "cudaMemcpyAsync(memory, weights, n, cudaMemcpyHostToDevice, stream);");
	text_line(out, 1, "cudaMemsetAsync(workspace, 0, %d, stream);", FLAG_BYTES);
	text_line(out, 1, "m->weights = memory;");
	text_line(out, 1, "m->workspace = memory + %" PRId64 ";", cg->weights_size);
	text_line(out, 1, "m->workspace_size = size;");
	text_line(out, 1, "m->ready = cudaGetLastError() == cudaSuccess;");
	text_line(out, 1, "return m->ready ? PD_OK : PD_DEVICE;");
	text_str(out, "}\n\n");
}

static void cuda_run_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out, "pd_status %s_run(%s *m, const %s_inputs *in, %s_outputs *out, cudaStream_t stream)\n{\n", p, p, p, p);
	run_checks_print(cg, out);
	if (!cg->nmember) {
		text_line(out, 1, "if (m->workspace_size < %s_workspace_size())", p);
		text_line(out, 2, "return PD_WORKSPACE;");
	}
	if (cg->fails)
		text_line(out, 1, "int *const failed = (int *)(m->weights - %d);", FLAG_BYTES);
	text_str(out, cg->run.text ? cg->run.text : "");
	text_str(out, "\treturn cudaGetLastError() == cudaSuccess ? PD_OK : PD_DEVICE;\n}\n\n");
}

static void cuda_wait_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out, "pd_status %s_wait(%s *m, cudaStream_t stream)\n{\n", p, p);
	text_line(out, 1, "int failed = 0;");
	text_line(out, 1, "if (!m || !m->ready)");
	text_line(out, 2, "return PD_NULL;");
	text_line(out, 1, "void *const flag = m->workspace - %" PRId64 ";", cg->weights_size + FLAG_BYTES);
	text_line(out, 1, "cudaMemcpyAsync(&failed, flag, sizeof failed, cudaMemcpyDeviceToHost, stream);");
	text_line(out, 1, "cudaMemsetAsync(flag, 0, %d, stream);", FLAG_BYTES);
	text_line(out, 1, "if (cudaStreamSynchronize(stream) != cudaSuccess)");
	text_line(out, 2, "return PD_DEVICE;");
	text_line(out, 1, "return (pd_status)failed;");
	text_str(out, "}\n");
}

// The prelude's functions run on both sides.
static void prelude_adapt(Text *out, const char *text)
{
	static const char plain[] = "static inline ";
	for (const char *hit; (hit = strstr(text, plain)); text = hit + strlen(plain)) {
		text_strn(out, text, (size_t)(hit - text));
		text_str(out, "static __host__ __device__ inline ");
	}
	text_str(out, text);
}

static void cuda_source_print(Codegen *cg, Text *out)
{
	const CodegenOptions *o = cg->options;
	Text tail, user, prelude;
	text_init(&tail, cg->arena);
	grid_print(&tail);
	workspace_print(cg, &tail);
	cuda_init_print(cg, &tail);
	cuda_run_print(cg, &tail);
	cuda_wait_print(cg, &tail);
	text_init(&user, cg->arena);
	text_str(&user, cg->functions.text ? cg->functions.text : "");
	text_str(&user, tail.text);
	text_init(&prelude, cg->arena);
	prelude_print(cg, &prelude, user.text);
	text_printf(out, "/* Written by pdcc%s%s for CUDA. Do not edit. */\n", o->banner ? " from " : "",
	            o->banner ? comment_text(cg->arena, o->banner) : "");
	text_printf(out, "#include %s\n\n#include <math.h>\n#include <string.h>\n\n", string_literal(cg->arena, o->header_name));
	prelude_adapt(out, prelude.text ? prelude.text : "");
	text_str(out, cg->arrays.text ? cg->arrays.text : "");
	text_str(out, user.text);
}

bool codegen_cuda(Context *c, Op *module, const Target *t, const CodegenOptions *o, CodegenResult *out)
{
	Codegen *cg = NEW(c->arena, Codegen);
	if (o->call) {
		diag_error(c->diag, &loc_unknown, "%s_call is for C, not for CUDA", o->prefix);
		return false;
	}
	CodegenOptions options = *o;
	if (options.weights == WEIGHTS_OBJECT)
		options.weights = WEIGHTS_FILE;
	if (!codegen_begin(cg, c, module, t, &options))
		return false;
	cg->workspace = dim_add(c, cg->workspace, dim_const(c, cg->weights_size + FLAG_BYTES));
	codegen_end(cg, out);
	cuda_source_print(cg, &out->source);
	header_print(cg, &out->header);
	return true;
}
