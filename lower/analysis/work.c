// How much steps do. Called by lower/cuda/steps.c, which says where one block is enough, and by the
// printers of steps.
#include "lower/analysis/work.h"
#include "ir/base/vec.h"
#include "lower/analysis/places.h"

enum { WARP = 32 };

static const Dim *elements(Context *c, const Type *t)
{
	return dims_at_most(c, t->rank, t->dims);
}

// Elements that a region reads each time it runs, but for a constant.
static const Dim *region_work(Context *c, const Region *r)
{
	const Dim *work = dim_const(c, 1);
	for (const Op *op = r->first->first; op; op = op->next) {
		if (op->code != OP_LOOP_REDUCE)
			continue;
		const Attr *extents = op_attr(op, "extents");
		work = dim_add(c, work,
		               dim_mul(c, dims_at_most(c, extents->n, extents->dims),
		                       region_work(c, &op->regions[0])));
	}
	return work;
}

// Elements that a step reads or writes, and how many threads have something to do.
static const Dim *work_of(Context *c, const Op *op, const Dim **threads)
{
	const Dim *out = dim_const(c, 1), *in = out;
	*threads = out;
	if (op->code == OP_LOOP_BIND || op->code == OP_LOOP_CAPACITY)
		return out;
	if (op->code == OP_PD_ASSERT)
		return *threads = elements(c, op_operand(op, 0)->type);
	const bool updates = op->code == OP_LOOP_UPDATE || op->code == OP_LOOP_APPEND;
	if ((updates || op->code == OP_KERNEL_SCATTER) && update_keeps(op)) // only what is new moves
		return *threads = elements(c, op_operand(op, op->code == OP_LOOP_APPEND ? 1 : 2)->type);
	for (int i = 0; i < op->nresult; i++)
		out = dim_max(c, out, elements(c, op->results[i].type));
	*threads = out;
	if (op->code == OP_LOOP_NEST)
		return dim_mul(c, out, region_work(c, &op->regions[0]));
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i))
			in = dim_max(c, in, elements(c, op_operand(op, i)->type));
	in = dim_max(c, in, out);
	return updates ? in : dim_mul(c, in, dim_const(c, WARP)); // few threads have long rows
}

const Dim *step_work(const Op *op, const Dim **threads)
{
	const Dim *ignored;
	Context view = context_of_known_sizes(op->ctx); // those of 0 have even less
	return work_of(&view, op, threads ? threads : &ignored);
}

bool work_is_little(const Dim *work)
{
	int64_t lo, hi;
	dim_range(work, &lo, &hi);
	return hi <= CUDA_LITTLE_WORK;
}

static bool is_no_less(Context *c, const Dim *a, const Dim *b)
{
	int64_t lo, hi;
	dim_range(dim_sub(c, a, b), &lo, &hi);
	return lo >= 0;
}

bool work_may_be_little(Context *c, const Dim *work, const Dim *large)
{
	int64_t lo, hi;
	dim_range(work, &lo, &hi);
	if (hi <= CUDA_LITTLE_WORK)
		return true;
	return lo <= CUDA_LITTLE_WORK && !dim_is_found(work) && !(large && is_no_less(c, work, large));
}

void works_add(Context *c, Works *w, const Dim *work)
{
	int n = 0;
	bool follows = work_is_little(work);
	Context view = context_of_known_sizes(c);
	for (int i = 0; i < w->n && !follows; i++)
		follows = is_no_less(&view, w->items[i], work);
	for (int i = 0; i < w->n && !follows; i++)
		if (!is_no_less(&view, work, w->items[i]))
			w->items[n++] = w->items[i];
	if (follows)
		return;
	w->n = n;
	VEC_ROOM(c->arena, w->items, w->n, w->cap);
	w->items[w->n++] = work;
}
