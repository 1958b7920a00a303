// CUDA: reductions whose terms several threads share: a warp or a block for each element where the
// terms lie side by side, and 32 neighbouring elements for each block, with rows of threads, where
// the elements do. The order of additions depends on sizes alone. Called by device/nest.c and
// reduce.c.
#include "codegen/device/nest.h"

#include <string.h>

// ---- printing -----------------------------------------------------------------------------------

static TeamKind team_of(const Op *reduce)
{
	return (TeamKind)op_enum(op_parent(reduce), "team");
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
	if (lanes->lanes.width == 1) {
		for (const Op *in = b->first; in != block_terminator(b); in = in->next)
			if (!scalar_op_print(s, in, true, depth, out))
				return false;
		return term_print(s, op, acc, loops, nloop, depth, out);
	}
	lanes->first = loops[nloop - 1].var;
	if (!wide_base_print(lanes, depth, out))
		return false;
	text_line(out, depth, "PD_UNROLL for (int l = 0; l < %d; l++) {", lanes->lanes.width);
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
	static const char *const names[REDUCE_COUNT] = {
		[REDUCE_SUM] = "pd_sum",   [REDUCE_PROD] = "pd_prod",   [REDUCE_MAX] = "pd_max",
		[REDUCE_MIN] = "pd_min",   [REDUCE_HIGHEST] = "pd_max", [REDUCE_LOWEST] = "pd_min",
		[REDUCE_ANY] = "pd_max",   [REDUCE_ALL] = "pd_min",     [REDUCE_ARGMAX] = "pd_max",
		[REDUCE_ARGMIN] = "pd_min"};
	if (a->keeps_nan)
		return reduce_is_max(a->kind) ? "pd_highest" : "pd_lowest";
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
	const char *team = teams[team_of(op)], *type = join_type(a),
			   *result = type_c_scalar(op->results[0].type);
	if (reduce_is_position(a->kind)) {
		text_line(out, depth, "%s = pd_%s_best<%s>(%s, %s, %s());", a->name, team, type, a->best,
		          a->name, join_name(a));
		return;
	}
	const bool truth = a->kind == REDUCE_ANY || a->kind == REDUCE_ALL || !strcmp(result, "bool");
	const char *joined = arena_printf(s->k->arena, "pd_%s_reduce<%s>(%s, %s%s%s())", team, type,
	                                  a->name, team_of(op) == TEAM_BLOCK ? neutral : "",
	                                  team_of(op) == TEAM_BLOCK ? ", " : "", join_name(a));
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
	const TeamKind team = team_of(op);
	const int width = (int)op_int(op, "lanes", 1);
	Loop *shared = &loops[op_int(op, "shared", 0)];
	lanes = (WideBlock){.s = s};
	lanes.lanes = (Lanes){.ctx = s->k->ctx, .body = op->regions[0].first, .merged = &s->merged};
	lanes.lanes.arg = loops[nloop - 1].arg;
	lanes.lanes.width = width;
	if (width > 1)
		wide_init(&lanes);
	const char *step = team == TEAM_WARP      ? "32"
	                   : team == TEAM_COLUMNS ? arena_printf(k->arena, "%d", TEAM_WARPS)
	                                          : arena_printf(k->arena, "(%s)blockDim.x", k->index);
	const char *times = lanes.lanes.width > 1 ? arena_printf(k->arena, " * %d", lanes.lanes.width)
	                                          : "";
	shared->first = arena_printf(k->arena, "(%s)%s%s", k->index, firsts[team], times);
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
		loop_close(s, &loops[i], &inside, out);
	join_print(s, op, &acc, neutral, depth, out);
	shared->first = shared->step = NULL;
	if (!reduce_again_print(s, op, &acc, loops, nloop, depth, out))
		return false;
	pointer_map_set(&s->names, &op->results[0], scalar_round(k, op->results[0].type, acc.name));
	return true;
}
