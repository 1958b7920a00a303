// CUDA: which threads reduce an element together: a warp or a block where the terms lie side by
// side, and 32 neighbouring elements for each block, with rows of threads, where the elements do.
// Called by forms.c.
#include "lower/cuda/forms.h"

// MIN_*: terms from which on a warp, rows of threads, a block take an element, and of the loop that
// they share; a block when there are no more than FEW_ELEMENTS, rows of threads no more than
// MANY_ELEMENTS, which fill a GPU anyway.
enum {
	MIN_WARP = 32,
	MIN_SHARED = 16,
	MIN_ROWS = 64,
	MIN_BLOCK = 1024,
	FEW_ELEMENTS = 1024,
	MANY_ELEMENTS = 1 << 16
};

static bool has_index_check(const Block *b)
{
	for (const Op *op = b->first; op; op = op->next)
		if (op->code == OP_LOOP_TO_INDEX || (op->nregion && has_index_check(op->regions[0].first)))
			return true;
	return false;
}

// How many terms, as far as that is a number; INT64_MAX otherwise.
static int64_t term_count(const Op *op)
{
	const Attr *extents = op_attr(op, "extents");
	int64_t n = 1;
	for (int i = 0; i < extents->n; i++) {
		if (!dim_is_const(extents->dims[i]))
			return INT64_MAX;
		n *= extents->dims[i]->value < INT32_MAX ? extents->dims[i]->value : INT32_MAX;
		n = n < INT32_MAX ? n : INT32_MAX;
	}
	return n;
}

static int64_t loop_length(const NestLoop *l)
{
	return dim_is_const(l->extent) ? l->extent->value : INT64_MAX;
}

// The loop whose terms the threads share: the innermost, whose terms lie side by side, when it is
// long enough.
static int loop_of_team(const NestLoop *loops, int nloop)
{
	int best = nloop - 1;
	for (int i = nloop - 1; i-- > 0 && loop_length(&loops[best]) < MIN_WARP;)
		if (loop_length(&loops[i]) > loop_length(&loops[best]))
			best = i;
	return best;
}

static int reduction_loops(NestForm *f, const Op *op, NestLoop *loops)
{
	return nest_loops(f->ctx, op->regions[0].first, op_attr(op, "extents")->dims, &f->merged,
	                  loops);
}

// Whether threads can do a reduction together: many terms, of a kind and type that they can join.
static bool suits_team(NestForm *f, const Op *op)
{
	NestLoop loops[MAX_RANK];
	if (op->code != OP_LOOP_REDUCE || has_index_check(op->regions[0].first))
		return false;
	const Type *t = op_operand(block_terminator(op->regions[0].first), 0)->type;
	if ((t->kind == TY_SCALAR && dtype_is_complex(t->dtype)) || term_count(op) < MIN_WARP)
		return false;
	const int nloop = reduction_loops(f, op, loops);
	return nloop && loop_length(&loops[loop_of_team(loops, nloop)]) >= MIN_SHARED;
}

// What lies side by side: the terms of the reduction, or the elements of the result.
static void sides_find(NestForm *f, const Op *op, bool *terms, bool *elements)
{
	NestLoop loops[MAX_RANK];
	Strides along = {0}, across = {0};
	const Block *b = op->regions[0].first;
	const int nloop = reduction_loops(f, op, loops);
	strides_count(b, loops[loop_of_team(loops, nloop)].arg, &along);
	if (f->nloop)
		strides_count(b, f->loops[f->nloop - 1].arg, &across);
	*terms = along.n[1] > 0 && !along.n[2];
	*elements = across.n[1] > 0;
}

// The longest of the reductions that a team suits; NULL: there is none.
static const Op *longest_reduction(NestForm *f)
{
	const Op *longest = NULL;
	for (const Op *op = f->body->first; op; op = op->next)
		if (pointer_map_get(&f->needed, op) && suits_team(f, op) &&
		    (!longest || term_count(op) > term_count(longest)))
			longest = op;
	return longest;
}

static TeamKind team_of(NestForm *f)
{
	const Op *longest = longest_reduction(f);
	if (!longest)
		return TEAM_NONE;
	const int64_t terms = term_count(longest);
	const bool few = dim_is_const(f->total) && f->total->value <= FEW_ELEMENTS;
	const bool many = dim_is_const(f->total) && f->total->value > MANY_ELEMENTS;
	bool along, across;
	sides_find(f, longest, &along, &across);
	if (!along && across)
		return many || terms < MIN_ROWS || has_index_check(f->body) ? TEAM_NONE : TEAM_COLUMNS;
	if (few && terms >= MIN_BLOCK)
		return TEAM_BLOCK;
	return along || few ? TEAM_WARP : TEAM_NONE;
}

// The terms of the innermost loop as vectors, where they lie so.
static void terms_set_lanes(NestForm *f, Op *op, const NestLoop *inner)
{
	const Block *b = op->regions[0].first;
	Lanes l = {.ctx = f->ctx, .body = b, .merged = &f->merged, .arg = inner->arg};
	bool any = false;
	for (const Op *in = b->first; in; in = in->next)
		if (in->nregion || op_operand(op, 0))
			return;
	l.width = lanes_suited(b, inner->arg, 0, NULL);
	if (l.width < 2 || size_power(f->ctx, inner->extent) < l.width)
		return;
	lanes_find(&l, f->ctx->arena);
	for (const Op *in = b->first; in; in = in->next)
		any |= lanes_load_at_once(&l, in) && pointer_map_get(&f->needed, in);
	if (!any)
		return;
	op_set_attr(op, "lanes", attr_int(f->ctx, l.width));
	loads_set_lanes(&l);
}

bool team_choose(NestForm *f)
{
	static const char *const names[] = {"none", "warp", "block", "columns"};
	NestLoop loops[MAX_RANK];
	const TeamKind team = team_of(f);
	if (team == TEAM_NONE)
		return false;
	op_set_attr(f->op, "team", attr_str(f->ctx, names[team]));
	for (Op *op = f->body->first; op; op = op->next) {
		if (!suits_team(f, op))
			continue;
		const int nloop = reduction_loops(f, op, loops), shared = loop_of_team(loops, nloop);
		op_set_attr(op, "shared", attr_int(f->ctx, shared));
		if (shared == nloop - 1 && team != TEAM_COLUMNS)
			terms_set_lanes(f, op, &loops[shared]);
	}
	return true;
}
