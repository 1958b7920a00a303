// Interpreter hooks of loop.nest and loop.bind.
#include "ir/interp/hooks.h"

// Stores the strip at `at` of everything that the nest yields.
static void store_strip(const Program *p, int nresult, Tensor *const *results, int64_t at, int n)
{
	for (int i = 0; i < nresult; i++)
		lanes_store(results[i], at, n, program_result(p, i));
}

// The results, all of one shape; NULL after a diagnostic.
static Tensor **nest_results(Interp *in, Op *op)
{
	Tensor **results = NEW_ARRAY(interp_arena(in), (size_t)op->nresult, Tensor *);
	for (int i = 0; i < op->nresult; i++)
		if (!(results[i] = interp_result(in, op, i)))
			return NULL;
	for (int i = 1; i < op->nresult; i++)
		if (tensor_numel(results[i]) != tensor_numel(results[0])) {
			op_error(op, "the results of the nest differ in shape");
			return NULL;
		}
	return results;
}

bool interpret_hook_loop_nest(Interp *in, Op *op)
{
	const Region *r = &op->regions[0];
	const Block *b = region_entry(r);
	if (op->nresult < 1 || !b || !b->last || b->last->noperand != op->nresult)
		return op_error(op, "the nest is malformed");
	Tensor **results = nest_results(in, op);
	if (!results)
		return false;
	const int64_t total = tensor_numel(results[0]);
	const int rank = results[0]->rank;
	if (b->narg != rank)
		return op_error(op, "the nest has %d positions for a tensor of rank %d", b->narg, rank);
	if (total == 0)
		return true;
	Program *p = program_compile(in, r);
	if (!p)
		return false;
	for (int i = 0; i < op->nresult; i++)
		if (program_result_dtype(p, i) != results[i]->dtype)
			return op_error(op, "element %d yielded is of another type than the tensor", i);
	for (int64_t at = 0; at < total; at += STRIP) {
		int n = total - at < STRIP ? (int)(total - at) : STRIP;
		program_set_position(p, 0, rank, results[0]->dims, at, n);
		if (!program_run_strip(p, n))
			return false;
		store_strip(p, op->nresult, results, at, n);
	}
	return true;
}

bool interpret_hook_loop_bind(Interp *in, Op *op)
{
	const Attr *dims = op_attr(op, "dims");
	Tensor *t = interp_operand(in, op, 0);
	if (!t)
		return false;
	if (!dims || dims->kind != ATTR_DIMS || tensor_numel(t) != dims->n)
		return op_error(op, "as many sizes are needed as elements");
	for (int i = 0; i < dims->n; i++)
		if (!interp_found_dim(in, op, dims->dims[i], tensor_get_i(t, i)))
			return false;
	return true;
}
