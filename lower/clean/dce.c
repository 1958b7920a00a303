// Dead code elimination: removes operations without effect whose results nobody reads, and takes
// parameters that nothing reads any more out of the weights. Run by the pipeline after every pass
// that leaves dead code behind.
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"

static bool op_ends(const Op *op);

static bool region_ends(const Region *r)
{
	for (const Block *b = r->first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (!op_ends(op))
				return false;
	return true;
}

// Loops that count their rounds end, if those inside of them do.
static bool op_ends(const Op *op)
{
	if (op->code == OP_PD_WHILE && !op_bool(op, "counted", false))
		return false;
	for (int i = 0; i < op->nregion; i++)
		if (!region_ends(&op->regions[i]))
			return false;
	return true;
}

// An operation is dead when nothing reads its results and running it changes nothing else.
static bool op_is_dead(const Op *op)
{
	const bool loop = op->code == OP_PD_WHILE && control_is_pure(op) && op_ends(op);
	if ((!loop && !(op->info->traits & (TRAIT_PURE | TRAIT_CONSTANT))) ||
	    (op->info->traits & TRAIT_TERMINATOR))
		return false;
	if (op->nresult == 0)
		return false;
	for (int i = 0; i < op->nresult; i++)
		if (result_needed(&op->results[i]))
			return false;
	return true;
}

// A nest with several results, of which somebody reads only some, gives only those. NULL: no such
// nest.
static Op *nest_narrow(Op *nest)
{
	Context *c = nest->ctx;
	const int all = nest->code == OP_LOOP_NEST ? nest->nresult : 0;
	int n = 0;
	for (int i = 0; i < all; i++)
		n += result_needed(&nest->results[i]);
	if (!n || n == all)
		return NULL;
	const Type **types = NEW_ARRAY(c->arena, (size_t)n, const Type *);
	n = 0;
	for (int i = 0; i < all; i++)
		if (result_needed(&nest->results[i]))
			types[n++] = nest->results[i].type;
	Op *narrow = op_new(c, OP_LOOP_NEST, nest->loc, n, types, 0, NULL, 1, 0);
	for (int i = 0; i < nest->nattr; i++)
		op_set_attr(narrow, nest->attrs[i].name, nest->attrs[i].attr);
	op_insert_before(nest, narrow);
	op_take_regions(narrow, nest, 1);
	Op *yield = region_entry(&narrow->regions[0])->last;
	for (int i = all; i-- > 0;)
		if (result_needed(&nest->results[i]))
			value_take(&nest->results[i], &narrow->results[--n]);
		else
			op_remove_operand(yield, i);
	op_erase(nest);
	return narrow;
}

// Backwards, so that an operation is looked at after all its readers: one sweep is enough.
static void region_sweep(Region *r)
{
	for (Block *b = r->last; b; b = b->prev) {
		for (Op *op = b->last, *prev; op; op = prev) {
			prev = op->prev;
			if (op_is_dead(op)) {
				op_erase(op);
				continue;
			}
			Op *narrow = nest_narrow(op);
			op = narrow ? narrow : op;
			for (int i = 0; i < op->nregion; i++)
				region_sweep(&op->regions[i]);
		}
	}
}

// The name of a size that nobody uses: what it is computed from may read sizes whose operations are
// gone.
static bool bind_is_dead(const Op *op)
{
	const Attr *dims = op->code == OP_LOOP_BIND && op_bool(op, "certain", false)
	                       ? op_attr(op, "dims")
	                       : NULL;
	const Dim *size = dims && dims->n == 1 ? dims->dims[0] : NULL;
	return size && size->kind == DIM_SYM && !size_used_beside(op, size);
}

// A check that a size is the size that it was computed from.
static bool bind_is_proven(const Op *op)
{
	const Attr *dims = op->code == OP_LOOP_BIND ? op_attr(op, "dims") : NULL;
	const Op *nest = dims && dims->n == 1 ? op_operand(op, 0)->def : NULL;
	if (!nest || nest->code != OP_LOOP_NEST)
		return false;
	const Op *yield = nest->regions[0].first->last;
	const Op *number = op_operand(yield, op_operand(op, 0)->index)->def;
	const Op *size = number && number->code == OP_LOOP_FROM_INDEX ? op_operand(number, 0)->def
	                                                              : NULL;
	return size && size->code == OP_LOOP_DIM && op_attr(size, "dim")->dim == dims->dims[0];
}

static bool binds_sweep(Region *r)
{
	bool any = false;
	for (Block *b = r->last; b; b = b->prev)
		for (Op *op = b->last, *prev; op; op = prev) {
			prev = op->prev;
			for (int i = 0; i < op->nregion && op->info->kind == KIND_CONTROL; i++)
				any |= binds_sweep(&op->regions[i]);
			if (bind_is_dead(op) || bind_is_proven(op)) {
				op_erase(op);
				any = true;
			}
		}
	return any;
}

// Needs: nothing.  Keeps: everything.  Breaks: nothing.
bool pass_dce(PassContext *p)
{
	Region *r = &p->module->regions[0];
	do
		region_sweep(r);
	while (binds_sweep(r));
	return true;
}
