// The pass that says which kernels and nests several threads of generated C share (--threads), and
// by how many it is worth it: little work stays with one. The printers divide what a kernel's
// outer loops go over (tiles of results, rows, channels, images), never a sum, so that results are
// the same for any number of threads. Run by lower/pipeline.c in front of scratch, since threads
// may need memory of their own.
#include "lower/analysis/nest.h"
#include "lower/kernels/kernels.h"
#include "lower/target/threads.h"

#include "ops_share.inc"

// ---- how much there is to do, in elements that take as long as an addition ----------------------

// `each` products and sums for each element of the result.
static const Dim *products(Context *c, const Op *op, const Dim *each)
{
	return dim_div(c, dim_mul(c, type_numel(c, op->results[0].type), each),
	               dim_const(c, THREADS_PRODUCTS));
}

const Dim *share_hook_gemm(Context *c, const Op *op)
{
	return products(c, op, op_attr(op, "k")->dim);
}

// Weights [groups of channels x channels x rows x columns x channels of a group].
const Dim *share_hook_windows(Context *c, const Op *op)
{
	const Type *w = op_operand(op, 1)->type;
	return products(c, op, dims_product(c, 3, w->dims + 1));
}

// Weights [groups of channels x (tile + 2)^2 x channels x channels of a group]; tile^2 results come
// of each.
const Dim *share_hook_numbers(Context *c, const Op *op)
{
	const Dim *const *w = op_operand(op, 1)->type->dims;
	const int64_t tile = op_int(op, "tile", 1);
	return products(c, op, dim_div(c, dim_mul(c, w[1], w[2]), dim_const(c, tile * tile)));
}

// Weights [groups of channels x rows x columns x dots x (channels of a group x numbers of a dot)].
const Dim *share_hook_dots(Context *c, const Op *op)
{
	const Type *w = op_operand(op, 1)->type;
	return products(c, op, dims_product(c, 3, w->dims + 1));
}

// Weights [blocks x .. x rows x columns x channels of a block].
const Dim *share_hook_taps(Context *c, const Op *op)
{
	const Type *w = op_operand(op, 1)->type;
	const Dim *taps = dims_product(c, w->rank - 2, w->dims + 1);
	return dim_mul(c, products(c, op, taps), dim_const(c, THREADS_TAPS));
}

const Dim *share_hook_move(Context *c, const Op *op)
{
	return type_numel(c, op->results[0].type);
}

static const Dim *block_cost(Context *c, const Block *b);

static const Dim *op_cost(Context *c, const Op *op)
{
	if (op->code != OP_LOOP_REDUCE)
		return dim_const(c, op->nresult && op->results[0].type->kind == TY_INDEX
		                        ? (int64_t)op->info->index_cost
		                        : (int64_t)op->info->cost);
	const Attr *extents = op_attr(op, "extents");
	return dim_mul(c, block_cost(c, op->regions[0].first),
	               dims_product(c, extents->n, extents->dims));
}

static const Dim *block_cost(Context *c, const Block *b)
{
	const Dim *cost = dim_const(c, 1);
	for (const Op *op = b->first; op; op = op->next)
		cost = dim_add(c, cost, op_cost(c, op));
	return cost;
}

const Dim *share_hook_nest(Context *c, const Op *op)
{
	return dim_mul(c, type_numel(c, op->results[0].type), block_cost(c, op->regions[0].first));
}

const Dim *share_hook_rows(Context *c, const Op *op)
{
	const Dim *each = dim_const(c, THREADS_ROW_ELEMENT);
	for (int i = 0; i < op->nregion; i++)
		each = dim_add(c, each, block_cost(c, op->regions[i].first));
	return dim_mul(c, type_numel(c, op->results[0].type), each);
}

// ---- which loop of a nest -----------------------------------------------------------------------

static bool checks_indices(const Block *b)
{
	for (const Op *op = b->first; op; op = op->next) {
		if (op->code == OP_LOOP_TO_INDEX)
			return true;
		for (int i = 0; i < op->nregion; i++)
			if (checks_indices(op->regions[i].first))
				return true;
	}
	return false;
}

// How evenly `threads` share a loop, in per cent. One whose length a run knows comes behind all
// that are good enough.
static int64_t loop_balance(const Dim *extent, int64_t step, int threads)
{
	enum { UNKNOWN = 80 };
	if (!dim_is_const(extent))
		return UNKNOWN;
	const int64_t n = (extent->value + step - 1) / step, rounds = (n + threads - 1) / threads;
	return n > 0 ? n * 100 / (rounds * threads) : 0;
}

// The outermost loop that is shared evenly enough, else the one that is most evenly; of those that
// may fail the outermost, so that the first failure is the first one of all. -1: none.
static int nest_along(const Op *nest, int threads)
{
	enum { ENOUGH = 90 };
	Context *c = nest->ctx;
	const Block *body = nest->regions[0].first;
	PointerMap merged;
	NestLoop loops[MAX_RANK + 1];
	pointer_map_init(&merged, c->arena);
	int n = nest_loops(c, body, nest->results[0].type->dims, &merged, loops);
	n = nest_loops_long(loops, n);
	const Value *best = NULL;
	int64_t most = 0;
	for (int i = 0; i < n && most < ENOUGH; i++) {
		const int64_t step = i + 1 < n ? 1 : THREADS_STEP;
		const int64_t balance = loop_balance(loops[i].extent, step, threads);
		if (balance > most) {
			most = balance;
			best = loops[i].arg;
		}
		if (checks_indices(body))
			break;
	}
	for (int i = 0; i < body->narg; i++)
		if (body->args[i] == best)
			return i;
	return -1;
}

// ---- the pass -----------------------------------------------------------------------------------

static void op_share(Context *c, Op *op, int threads)
{
	Context view = context_of_known_sizes(c); // nothing is wrong with a size of 0
	const Dim *work = share_hooks[op->code](&view, op);
	work = dim_div(&view, work, dim_const(c, THREADS_LEAST));
	const bool nest = op->code == OP_LOOP_NEST;
	if (dim_is_const(work) && work->value < 2)
		return;
	if (dim_is_const(work) && work->value > threads)
		work = dim_const(c, threads);
	const int along = nest ? nest_along(op, threads) : 0;
	if (along < 0)
		return;
	op_set_attr(op, "parallel", attr_dim(c, work));
	if (nest)
		op_set_attr(op, "along", attr_int(c, along));
	if (op->code == OP_KERNEL_WINOGRAD) // each part works in memory of its own
		op_set_attr(op, "parts", attr_int(c, dim_is_const(work) ? work->value : threads));
}

// Needs: control flow as blocks (flatten), all kernels in place. Keeps: values, names, locations.
// Breaks: nothing.
bool pass_threads(PassContext *p)
{
	if (p->threads < 2)
		return true;
	if (p->target->simt) {
		diag_error(p->ctx->diag, NULL, "--threads is for C; the threads of CUDA are the GPU's");
		return false;
	}
	op_set_attr(p->module, "threads", attr_int(p->ctx, p->threads));
	for (Block *b = p->module->regions[0].first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next)
			if (share_hooks[op->code])
				op_share(p->ctx, op, p->threads);
	return true;
}
