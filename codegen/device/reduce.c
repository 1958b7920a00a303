// CUDA: reductions whose terms several threads share: a warp or a block for each element where the
// terms lie side by side, and 32 neighbouring elements for each block, with rows of threads, where
// the elements do. The order of additions depends on sizes alone. Called by device/nest.c and
// reduce.c.
#include "codegen/device/nest.h"

#include <string.h>

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

// ---- choice -------------------------------------------------------------------------------------

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

static int64_t loop_length(const Loop *l)
{
	return dim_is_const(l->extent) ? l->extent->value : INT64_MAX;
}

// The loop whose terms the threads share: the innermost, whose terms lie side by side, when it is
// long enough.
static Loop *loop_of_team(Loop *loops, int nloop)
{
	Loop *best = &loops[nloop - 1];
	for (int i = nloop - 1; i-- > 0 && loop_length(best) < MIN_WARP;)
		if (loop_length(&loops[i]) > loop_length(best))
			best = &loops[i];
	return best;
}

// The loops of a reduction; merging them here names nothing in the nest.
static int reduction_loops(KernelFunc *k, const Op *op, Scalars *s, Loop *loops)
{
	scalars_init(s, k);
	return loops_merge(s, op->regions[0].first, op_attr(op, "extents")->dims, loops);
}

bool reduce_suits_team(KernelFunc *k, const Op *op)
{
	Scalars s;
	Loop loops[MAX_RANK];
	if (op->code != OP_LOOP_REDUCE || has_index_check(op->regions[0].first) ||
	    reduce_kind(op) == REDUCE_COUNT)
		return false;
	if (type_is_complex(op_operand(block_terminator(op->regions[0].first), 0)->type) ||
	    term_count(op) < MIN_WARP)
		return false;
	const int nloop = reduction_loops(k, op, &s, loops);
	return nloop && loop_length(loop_of_team(loops, nloop)) >= MIN_SHARED;
}

// What lies side by side: the terms of the reduction, or the elements of the result.
static void sides_find(const Nest *n, const Op *op, bool *terms, bool *elements)
{
	Scalars s;
	Loop loops[MAX_RANK];
	Strides along = {0}, across = {0};
	const Block *b = op->regions[0].first;
	const int nloop = reduction_loops(n->k, op, &s, loops);
	strides_count(&s, b, loop_of_team(loops, nloop)->arg, &along);
	if (n->nloop)
		strides_count(&n->s, b, n->loops[n->nloop - 1].arg, &across);
	*terms = along.n[1] > 0 && !along.n[2];
	*elements = across.n[1] > 0;
}

ReduceTeam reduce_team(const Nest *n, const Dim *total)
{
	const Op *longest = NULL;
	for (const Op *op = n->body->first; op; op = op->next)
		if (nest_needed(n, op) && reduce_suits_team(n->k, op) &&
		    (!longest || term_count(op) > term_count(longest)))
			longest = op;
	if (!longest)
		return TEAM_NONE;
	const int64_t terms = term_count(longest);
	const bool few = dim_is_const(total) && total->value <= FEW_ELEMENTS;
	const bool many = dim_is_const(total) && total->value > MANY_ELEMENTS;
	bool along, across;
	sides_find(n, longest, &along, &across);
	if (!along && across)
		return many || terms < MIN_ROWS || has_index_check(n->body) ? TEAM_NONE : TEAM_COLUMNS;
	if (few && terms >= MIN_BLOCK)
		return TEAM_BLOCK;
	return along || few ? TEAM_WARP : TEAM_NONE;
}

// ---- printing -----------------------------------------------------------------------------------

static bool load_is_along(const WideBlock *l, const Op *op)
{
	return load_stride(l->s, op, l->arg) == 1 && load_power(l->s, op, l->arg, l->width) >= l->width;
}

// The terms of the innermost loop as vectors; width 1 when they do not lie so.
static void terms_lanes(Scalars *s, const Op *op, const Loop *inner, WideBlock *l)
{
	const Block *b = op->regions[0].first;
	*l = (WideBlock){.s = s, .body = b, .arg = inner->arg, .width = 1, .is_vector = load_is_along};
	for (const Op *in = b->first; in; in = in->next)
		if (in->nregion)
			return;
	const int width = wide_lanes(s, b, inner->arg, NULL, 0);
	if (inner->end || size_power(s->k->ctx, inner->extent) < width)
		return;
	l->width = width;
	wide_init(l);
	if (!wide_any(l))
		l->width = 1;
}

static bool term_print(Scalars *s, const Op *op, const Accumulator *acc, const Loop *loops,
                       int nloop, int depth, Text *out)
{
	const Value *value = op_operand(block_terminator(op->regions[0].first), 0);
	const char *name = scalars_name(s, value), *index = scalars_name(s, loops[nloop - 1].arg);
	if (!name || !index)
		return false;
	accumulator_add(s, acc, name, index, depth, out);
	return true;
}

static bool terms_print(Scalars *s, const Op *op, const Accumulator *acc, Loop *loops, int nloop,
                        WideBlock *lanes, int depth, Text *out)
{
	const Block *b = op->regions[0].first;
	if (lanes->width == 1) {
		for (const Op *in = b->first; in != block_terminator(b); in = in->next)
			if (!scalar_op_print(s, in, true, depth, out))
				return false;
		return term_print(s, op, acc, loops, nloop, depth, out);
	}
	lanes->first = loops[nloop - 1].var;
	if (!wide_base_print(lanes, depth, out))
		return false;
	text_line(out, depth, "PD_UNROLL for (int l = 0; l < %d; l++) {", lanes->width);
	const char *name = arena_printf(s->k->arena, "(%s + l)", lanes->first);
	if (!wide_lane_print(lanes, name, depth + 1, out) ||
	    !term_print(s, op, acc, loops, nloop, depth + 1, out))
		return false;
	text_line(out, depth, "}");
	return true;
}

// How partial results are joined: the function object, and the type in which they travel between
// threads.
static const char *join_name(const Accumulator *a)
{
	static const char *const names[REDUCE_COUNT] = {"pd_sum", "pd_prod", "pd_max", "pd_min",
	                                                "pd_max", "pd_min",  "pd_max", "pd_min"};
	if (a->keeps_nan)
		return a->kind == REDUCE_MAX ? "pd_highest" : "pd_lowest";
	return names[a->kind];
}

static const char *join_type(const Accumulator *a)
{
	const Type *t = a->type;
	const bool arithmetic = a->kind == REDUCE_SUM || a->kind == REDUCE_PROD;
	if (t->kind == TY_INDEX || t->dtype == DT_I64)
		return arithmetic ? "uint64_t" : "int64_t";
	if (dtype_is_float(t->dtype))
		return type_c_scalar(t);
	return arithmetic ? "uint32_t" : "int";
}

static void join_print(Scalars *s, const Op *op, const Accumulator *a, const char *neutral,
                       int depth, Text *out)
{
	static const char *const teams[] = {
		[TEAM_WARP] = "warp", [TEAM_BLOCK] = "block", [TEAM_COLUMNS] = "columns"};
	const char *team = teams[s->team], *type = join_type(a),
			   *result = type_c_scalar(op->results[0].type);
	if (a->kind == REDUCE_ARGMAX || a->kind == REDUCE_ARGMIN) {
		text_line(out, depth, "%s = pd_%s_best<%s>(%s, %s, %s());", a->name, team, type, a->best,
		          a->name, join_name(a));
		return;
	}
	const bool truth = a->kind == REDUCE_ANY || a->kind == REDUCE_ALL || !strcmp(result, "bool");
	const char *joined = arena_printf(s->k->arena, "pd_%s_reduce<%s>(%s, %s%s%s())", team, type,
	                                  a->name, s->team == TEAM_BLOCK ? neutral : "",
	                                  s->team == TEAM_BLOCK ? ", " : "", join_name(a));
	if (truth)
		text_line(out, depth, "%s = %s != 0;", a->name, joined);
	else if (strcmp(type, result))
		text_line(out, depth, "%s = (%s)%s;", a->name, result, joined);
	else
		text_line(out, depth, "%s = %s;", a->name, joined);
}

// Each thread reduces a part; then all know what comes out.
bool team_reduce_print(Scalars *s, const Op *op, Loop *loops, int nloop, int depth, Text *out)
{
	static const char *const firsts[] = {[TEAM_WARP] = "(threadIdx.x % 32)",
	                                     [TEAM_BLOCK] = "threadIdx.x",
	                                     [TEAM_COLUMNS] = "(threadIdx.x / 32)"};
	KernelFunc *k = s->k;
	Accumulator acc;
	WideBlock lanes;
	Loop *shared = loop_of_team(loops, nloop);
	terms_lanes(s, op, &loops[nloop - 1], &lanes);
	if (shared != &loops[nloop - 1] || s->team == TEAM_COLUMNS)
		lanes.width = 1;
	const char *step = s->team == TEAM_WARP ? "32"
	                   : s->team == TEAM_COLUMNS
	                       ? arena_printf(k->arena, "%d", TEAM_WARPS)
	                       : arena_printf(k->arena, "(%s)blockDim.x", k->index);
	const char *times = lanes.width > 1 ? arena_printf(k->arena, " * %d", lanes.width) : "";
	shared->first = arena_printf(k->arena, "(%s)%s%s", k->index, firsts[s->team], times);
	shared->step = arena_printf(k->arena, "%s%s", step, times);
	if (!accumulator_open(s, op, 0, &acc, depth, out))
		return false;
	accumulator_keep_nan(&acc);
	const char *neutral = reduce_neutral(s, op, acc.kind, acc.type);
	int inside = depth;
	for (int i = 0; i < nloop; i++)
		loop_open(s, &loops[i], &inside, out);
	if (!terms_print(s, op, &acc, loops, nloop, &lanes, inside, out))
		return false;
	for (int i = nloop; i-- > 0;)
		loop_close(&loops[i], &inside, out);
	join_print(s, op, &acc, neutral, depth, out);
	shared->first = shared->step = NULL;
	if (!reduce_again_print(s, op, &acc, loops, nloop, depth, out))
		return false;
	pointer_map_set(&s->names, &op->results[0], scalar_round(k, op->results[0].type, acc.name));
	return true;
}
