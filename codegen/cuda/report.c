// What generated CUDA launches, for `pdcc info --target cuda`: each launch with its grid and the
// bytes that it moves, and the least that any program would have to move. Sizes that the caller
// sets count as 1, those that a run finds as their bounds, and a loop as one round. Called by
// cuda.c and cuda/host.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "ir/base/vec.h"
#include "lower/target/schedule.h"

#include <string.h>

// As pd_blocks has it; and bytes that one instruction moves.
enum { MAX_BLOCKS = 65535, MAX_ACCESS = 16 };

static int64_t symbol_value(const Dim *sym, void *arg)
{
	(void)sym, (void)arg;
	return 1;
}

static int64_t figure(Codegen *cg, const Dim *d)
{
	int64_t n;
	return dim_eval(dim_at_most(cg->ctx, d), symbol_value, NULL, &n) && n > 0 ? n : 0;
}

// ---- bytes --------------------------------------------------------------------------------------

static bool region_reduces(const Region *r)
{
	for (const Block *b = r->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (op->code == OP_LOOP_REDUCE)
				return true;
	return false;
}

// An element of a nest that sums nothing up is made from one element of each tensor: a table is not
// read `whole`.
static int64_t bytes_read(Codegen *cg, const Op *op, bool whole, const Value *v)
{
	const int64_t all = figure(cg, type_bytes_at_most(cg->ctx, v->type));
	if (whole)
		return all;
	const int64_t each = figure(cg, type_numel(cg->ctx, op->results[0].type)) *
	                     (int64_t)dtype_size(v->type->dtype);
	return each < all ? each : all;
}

// What comes from a parameter counts once, however often it is read.
static void weight_note(Codegen *cg, const Value *v, int64_t bytes)
{
	const Place p = value_place(v);
	if (p.kind != PLACE_PARAM)
		return;
	int64_t *most = (int64_t *)pointer_map_get(&cg->weights_read, p.root);
	if (!most) {
		most = NEW(cg->arena, int64_t);
		pointer_map_set(&cg->weights_read, p.root, most);
	}
	if (bytes > *most) {
		cg->least_bytes += bytes - *most;
		*most = bytes;
	}
}

// ---- the table ----------------------------------------------------------------------------------

// What is moved between memory and the kernel.
static void operands_count(Codegen *cg, const KernelFunc *k, CudaLaunch *l)
{
	const bool whole = k->op->code != OP_LOOP_NEST || region_reduces(&k->op->regions[0]);
	for (int i = 0; i < k->nparam; i++) {
		const KernelParam *p = &k->params[i];
		if (!p->value)
			continue;
		if (p->result) {
			l->written += figure(cg, type_bytes_at_most(cg->ctx, p->value->type));
			continue;
		}
		const int64_t bytes = bytes_read(cg, k->op, whole, p->value);
		l->read += bytes;
		weight_note(cg, p->value, bytes);
	}
}

CudaLaunch cuda_figures(Codegen *cg, const KernelFunc *k)
{
	CudaLaunch l = {.access = k->access, .tensor_cores = k->tensor_cores};
	operands_count(cg, k, &l);
	for (int i = 0; i < k->nparam && !k->access; i++)
		if (k->params[i].value && (int)dtype_size(k->params[i].value->type->dtype) > l.access)
			l.access = (int)dtype_size(k->params[i].value->type->dtype);
	l.access = l.access > MAX_ACCESS ? MAX_ACCESS : l.access ? l.access : 1;
	return l;
}

int64_t cuda_figure_blocks(Codegen *cg, const Dim *total, int per_block)
{
	const Dim *blocks = dim_add(cg->ctx, total, dim_const(cg->ctx, per_block - 1));
	const int64_t n = figure(cg, dim_div(cg->ctx, blocks, dim_const(cg->ctx, per_block)));
	return n < 1 ? 1 : n > MAX_BLOCKS ? MAX_BLOCKS : n;
}

void cuda_figures_add(CudaLaunch *to, const CudaLaunch *l)
{
	to->read += l->read;
	to->written += l->written;
	to->access = l->access > to->access ? l->access : to->access;
	to->tensor_cores |= l->tensor_cores;
}

void cuda_launch_note(Codegen *cg, const char *kernel, int threads, const CudaLaunch *figures)
{
	VEC_ROOM(cg->arena, cg->launches, cg->nlaunch, cg->claunch);
	CudaLaunch *l = &cg->launches[cg->nlaunch++];
	*l = *figures;
	l->kernel = kernel;
	l->threads = threads;
	l->blocks = l->blocks ? l->blocks : 1;
}

void cuda_library_note(Codegen *cg, const KernelFunc *k, const char *name)
{
	CudaLaunch l = {.tensor_cores = k->op->results[0].type->dtype != DT_F32 ||
	                                cuda_library_rounds(k->op)};
	operands_count(cg, k, &l);
	l.written = figure(
		cg,
		type_bytes_at_most(cg->ctx, k->op->results[0].type)); // what it works in is its own affair
	cuda_launch_note(cg, name, 0, &l);
}

void cuda_report_end(Codegen *cg, CodegenResult *out)
{
	for (int i = 0; i < cg->ninput; i++)
		cg->least_bytes += figure(cg, type_bytes_at_most(cg->ctx, cg->inputs[i].type));
	for (int i = 0; i < cg->noutput; i++)
		cg->least_bytes += figure(cg, type_bytes_at_most(cg->ctx, cg->outputs[i].type));
	out->launches = cg->launches;
	out->nlaunch = cg->nlaunch;
	out->least_bytes = cg->least_bytes;
}
