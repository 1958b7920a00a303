// Prints loop.reduce as C loops: one accumulator, or a lane of them where the reduced elements lie
// side by side, so that compilers vectorise float sums without -ffast-math. Called by scalar.c;
// nest.c has the third form, lanes over the results.
#include "codegen/nest/region.h"
#include "lower/target/target.h"

#include <string.h>

// ---- loops --------------------------------------------------------------------------------------

int loops_merge(Scalars *s, const Block *b, const Dim *const *extents, Loop *loops)
{
	NestLoop found[MAX_RANK + 1];
	const int n = nest_loops(s->k->ctx, b, extents, &s->merged, found);
	for (int i = 0; i < b->narg; i++)
		if (pointer_map_get(&s->merged, b->args[i]))
			pointer_map_set(&s->names, b->args[i], "0");
	for (int i = 0; i < n; i++)
		loops[i] = (Loop){.arg = found[i].arg, .extent = found[i].extent};
	return n;
}

// Whether there is one round for sure, which needs no for.
static bool loop_is_single(const Loop *loop)
{
	return loop->only || (dim_is(loop->extent, 1) && !loop->end);
}

void loop_open(Scalars *s, Loop *loop, int *depth, Text *out)
{
	if (loop_is_single(loop)) {
		loop->var = loop->only ? loop->first : "0";
	} else {
		loop->nlocal = s->k->nlocal;
		loop->var = kernel_local(s->k, "i");
		const char *end = loop->end
		                      ? loop->end
		                      : expression_unwrap(s->k->arena, kernel_dim(s->k, loop->extent));
		const char *next = loop->step ? arena_printf(s->k->arena, " += %s", loop->step) : "++";
		text_line(out, (*depth)++, "for (%s %s = %s; %s < %s; %s%s) {", s->k->index, loop->var,
		          loop->first ? loop->first : "0", loop->var, end, loop->var, next);
	}
	pointer_map_set(&s->names, loop->arg, loop->var);
}

bool loop_count(Scalars *s, const Op *reduce, Loop *loop)
{
	if (op_operand(reduce, 0))
		loop->end = scalars_name(s, op_operand(reduce, 0));
	return !op_operand(reduce, 0) || loop->end;
}

void loop_close(Scalars *s, const Loop *loop, int *depth, Text *out)
{
	if (loop_is_single(loop))
		return;
	text_line(out, --*depth, "}");
	kernel_locals_end(s->k, loop->nlocal);
}

// ---- printing -----------------------------------------------------------------------------------

typedef struct Reduction {
	Scalars *s;
	const Op *op;
	Text *out;
	int nloop;
	Loop loops[MAX_RANK];
	Accumulator acc;
} Reduction;

static bool body_print(Reduction *r, int depth)
{
	const Block *b = r->op->regions[0].first;
	const Op *end = block_terminator(b);
	Needed needed;
	needed_begin(&needed, r->s);
	needed_block(&needed, b);
	const Needed *outside = r->s->needed;
	r->s->needed = &needed;
	for (const Op *op = b->first; op != end; op = op->next)
		if (needed_is(&needed, op) && !scalar_op_print(r->s, op, true, depth, r->out))
			return false;
	r->s->needed = outside;
	const char *value = scalars_name(r->s, op_operand(end, 0));
	if (!value)
		return false;
	const char *index = r->nloop ? scalars_name(r->s, r->loops[r->nloop - 1].arg) : "0";
	accumulator_add(r->s, &r->acc, value, index, depth, r->out);
	return true;
}

// The loop whose rounds have a sum of their own, which the sum of all takes as one number: the
// innermost, where there are so many elements that f32 would lose what each of them adds to one
// sum; else 0.
static int loop_summed_apart(const Reduction *r)
{
	enum { FEW = 4096 };
	const Type *t = r->acc.type;
	int64_t all = 1;
	int inner = 0;
	if (r->acc.kind != REDUCE_SUM || t->kind != TY_SCALAR || t->dtype != DT_F32)
		return 0;
	for (int i = 0, rounds = 0; i < r->nloop; i++) {
		const Loop *loop = &r->loops[i];
		if (loop_is_single(loop))
			continue;
		inner = rounds++ ? i : 0;
		all = dim_is_const(loop->extent) && all <= FEW ? all * loop->extent->value : FEW + 1;
	}
	return all > FEW ? inner : 0;
}

// One element after the other into the accumulator.
static bool loops_print(Reduction *r, int depth)
{
	const Accumulator all = r->acc;
	const int apart = loop_summed_apart(r);
	for (int i = 0; i < r->nloop; i++) {
		if (i && i == apart && !accumulator_open(r->s, r->op, 0, &r->acc, depth, r->out))
			return false;
		loop_open(r->s, &r->loops[i], &depth, r->out);
	}
	if (!body_print(r, depth))
		return false;
	for (int i = r->nloop; i-- > 0;) {
		loop_close(r->s, &r->loops[i], &depth, r->out);
		if (!i || i != apart)
			continue;
		const char *part = r->acc.element;
		r->acc = all;
		accumulator_add(r->s, &r->acc, part, "0", depth, r->out);
	}
	return true;
}

bool reduce_again_print(Scalars *s, const Op *op, const Accumulator *a, Loop *loops, int nloop,
                        int depth, Text *out)
{
	Reduction r = {.s = s, .op = op, .out = out, .nloop = nloop, .acc = *a};
	const char *neutral = reduce_neutral(s, op, a->kind, a->type);
	if (!a->keeps_nan || accumulator_stays_nan(a) || !neutral)
		return neutral != NULL;
	memcpy(r.loops, loops, (size_t)nloop * sizeof *loops);
	r.acc.keeps_nan = false;
	text_line(out, depth, "if (%s != %s) {", a->element, a->element);
	text_line(out, depth + 1, "%s = %s;", a->element, neutral);
	if (!loops_print(&r, depth + 1))
		return false;
	text_line(out, depth, "}");
	return true;
}

static bool plain_print(Reduction *r, int depth)
{
	if (!accumulator_open(r->s, r->op, 0, &r->acc, depth, r->out) || !loops_print(r, depth))
		return false;
	pointer_map_set(&r->s->names, &r->op->results[0],
	                scalar_round(r->s->k, r->op->results[0].type, r->acc.name));
	return true;
}

// ---- lanes --------------------------------------------------------------------------------------

static bool block_is_simple(const Block *b)
{
	for (const Op *op = b->first; op; op = op->next)
		if (op->nregion || op->code == OP_LOOP_TO_INDEX)
			return false;
	return true;
}

// Whether positions are kept in lanes: of 32 bits, beside numbers of as many, in one loop.
static bool positions_fit_lanes(const Reduction *r)
{
	const Type *t = op_operand(block_terminator(r->op->regions[0].first), 0)->type;
	return t->kind == TY_SCALAR && dtype_size(t->dtype) == sizeof(int32_t) && r->nloop == 1 &&
	       reduce_positions_are_short(r->op);
}

// How many accumulators side by side: two vectors, which do not wait for each other, but one of few
// elements, and four of many that are compared, for clang 14 has two in pieces then; 0 when the
// elements do not lie so.
static int lanes_wanted(Reduction *r)
{
	const Block *b = r->op->regions[0].first;
	const int lanes = reduce_lanes(r->s->k->target, r->op);
	ReduceKind kind = reduce_kind(r->op);
	if (r->s->k->target->simt || !r->nloop || !block_is_simple(b) ||
	    (reduce_is_position(kind) && !positions_fit_lanes(r)))
		return 0;
	const Loop *inner = &r->loops[r->nloop - 1];
	Strides count = {0};
	strides_count(b, inner->arg, &count);
	if (count.n[2] || !count.n[1])
		return 0;
	const int64_t n = dim_is_const(inner->extent) ? inner->extent->value : INT64_MAX;
	const bool compares = reduce_is_order(kind) || reduce_is_position(kind);
	if (n < 4 * lanes) // folding lanes of doubles that are compared takes as long as a short row
		return n < 2 * (compares ? r->s->k->target->lanes : lanes) ? 0 : lanes;
	return n >= 16 * lanes && compares ? 4 * lanes : 2 * lanes;
}

// A round of `width` lanes; the first is element `at`, a C expression.
static bool round_print(Reduction *r, int width, const char *at, int depth)
{
	Scalars *s = r->s;
	const Loop *inner = &r->loops[r->nloop - 1];
	pointer_map_set(&s->names, inner->arg, arena_printf(s->k->arena, "(%s + l)", at));
	text_line(r->out, depth, "PDRT_LANES for (int l = 0; l < %d; l++) {", width);
	if (!body_print(r, depth + 1))
		return false;
	text_line(r->out, depth, "}");
	return true;
}

// The elements from `first` to `end` (NULL: that one), expressions, which fill no vector. They have
// an accumulator of their own: gcc would keep lanes in memory of which one is meant.
static bool single_print(Reduction *r, const Accumulator *single, const char *first,
                         const char *end, int depth)
{
	const Accumulator lanes = r->acc;
	const char *i = end ? kernel_local(r->s->k, "i") : first;
	if (end)
		text_line(r->out, depth, "for (%s %s = %s; %s < %s; %s++) {", r->s->k->index, i, first, i,
		          end, i);
	else
		text_line(r->out, depth, "{");
	pointer_map_set(&r->s->names, r->loops[r->nloop - 1].arg, i);
	r->acc = *single;
	const bool ok = body_print(r, depth + 1);
	r->acc = lanes;
	text_line(r->out, depth, "}");
	return ok;
}

// `count` elements: rounds of `width` lanes, rounds of what vectors are left, and single elements.
static bool known_print(Reduction *r, int count, int width, const Accumulator *single, int depth)
{
	KernelFunc *k = r->s->k;
	const int lanes = reduce_lanes(r->s->k->target, r->op);
	int at = count / width * width;
	const char *i = kernel_local(k, "i");
	text_line(r->out, depth, "for (%s %s = 0; %s < %d; %s += %d)", k->index, i, i, at, i, width);
	if (!round_print(r, width, i, depth + 1))
		return false;
	for (int w = width / 2; w >= lanes; w /= 2) {
		if (count - at < w)
			continue;
		if (!round_print(r, w, tile_int(k, at), depth))
			return false;
		at += w;
	}
	if (at == count)
		return true;
	return single_print(r, single, tile_int(k, at), at + 1 < count ? tile_int(k, count) : NULL,
	                    depth);
}

// The same up to `end`, a C expression.
static bool open_print(Reduction *r, const char *end, int width, const Accumulator *single,
                       int depth)
{
	const char *i = kernel_local(r->s->k, "i");
	const int lanes = reduce_lanes(r->s->k->target, r->op);
	text_line(r->out, depth, "%s %s = 0;", r->s->k->index, i);
	for (int w = width; w >= lanes; w /= 2) {
		text_line(r->out, depth, "for (; %s + %d <= %s; %s += %d)", i, w, end, i, w);
		if (!round_print(r, w, i, depth + 1))
			return false;
	}
	return single_print(r, single, i, end, depth);
}

// Whether lanes can be added as vectors.
static bool folds_vectors(const Reduction *r)
{
	const Type *t = r->acc.type;
	return r->acc.kind == REDUCE_SUM && r->s->k->target->vector && t->kind == TY_SCALAR &&
	       (t->dtype == DT_F32 || t->dtype == DT_F64);
}

// Lane `from` into lane `at`; `last`: nothing comes behind it.
static void lane_join(Reduction *r, const char *at, const char *from, bool last, int depth)
{
	Arena *a = r->s->k->arena;
	Accumulator *acc = &r->acc;
	const bool position = reduce_is_position(acc->kind);
	acc->element = arena_printf(a, "%s[%s]", acc->name, at);
	if (position)
		acc->best = arena_printf(a, "%s[%s]", acc->bests, at);
	accumulator_join(r->s, acc, arena_printf(a, "%s[%s]", acc->name, from),
	                 position ? arena_printf(a, "%s[%s]", acc->bests, from) : NULL, last, depth,
	                 r->out);
}

// The lanes are folded in halves: the tree is shallow, and its halves are vectors. Halves of sums
// are added as such, which shows clang that it need not take the lanes apart. `rest`: single
// elements come behind them.
static bool fold_print(Reduction *r, int width, bool rest, int depth)
{
	Scalars *s = r->s;
	const Accumulator *acc = &r->acc;
	const char *name = acc->name;
	const bool several = reduce_is_position(acc->kind); // statements
	int w = width / 2;
	if (folds_vectors(r) && w >= reduce_lanes(r->s->k->target, r->op)) {
		const char *v = tile_vector_name(acc->type->dtype);
		if (!tile_vectors(s->k, acc->type->dtype))
			return false;
		text_line(r->out, depth, "%s_store(&%s[0], %s_add(%s_load(&%s[0]), %s_load(&%s[%d])));", v,
		          name, v, v, name, v, name, w);
		w /= 2;
	}
	for (; w > 1; w /= 2) {
		text_line(r->out, depth, "%sfor (int l = 0; l < %d; l++)%s", w >= 4 ? "PDRT_LANES " : "", w,
		          several ? " {" : "");
		lane_join(r, "l", arena_printf(s->k->arena, "l + %d", w), false, depth + 1);
		if (several)
			text_line(r->out, depth, "}");
	}
	lane_join(r, "0", "1", !rest, depth);
	return true;
}

static bool length_is_known(const Loop *inner)
{
	return dim_is_const(inner->extent) && !inner->end;
}

static bool lanes_loops_print(Reduction *r, int width, const Accumulator *single, int depth)
{
	Scalars *s = r->s;
	const Loop *inner = &r->loops[r->nloop - 1];
	const bool known = length_is_known(inner);
	for (int i = 0; i + 1 < r->nloop; i++)
		loop_open(s, &r->loops[i], &depth, r->out);
	const bool ok = known ? known_print(r, (int)inner->extent->value, width, single, depth)
	                      : open_print(r, inner->end ? inner->end : kernel_dim(s->k, inner->extent),
	                                   width, single, depth);
	for (int j = r->nloop - 1; ok && j-- > 0;)
		loop_close(s, &r->loops[j], &depth, r->out);
	return ok;
}

static bool lanes_print(Reduction *r, int width, int depth)
{
	Scalars *s = r->s;
	const Loop *inner = &r->loops[r->nloop - 1];
	const bool rest = !length_is_known(inner) ||
	                  inner->extent->value % reduce_lanes(r->s->k->target, r->op);
	Accumulator single = {0};
	if (!accumulator_open(s, r->op, width, &r->acc, depth, r->out) ||
	    (rest && !accumulator_open(s, r->op, 0, &single, depth, r->out)))
		return false;
	accumulator_keep_nan(&r->acc);
	if (rest)
		accumulator_keep_nan(&single);
	if (!lanes_loops_print(r, width, &single, depth) || !fold_print(r, width, rest, depth))
		return false;
	if (rest)
		accumulator_join(s, &r->acc, single.name, single.best, true, depth, r->out);
	pointer_map_set(&s->names, &r->op->results[0], accumulator_value(s->k->arena, &r->acc));
	return reduce_again_print(s, r->op, &r->acc, r->loops, r->nloop, depth, r->out);
}

bool reduce_print(Scalars *s, const Op *op, int depth, Text *out)
{
	Reduction r = {.s = s, .op = op, .out = out};
	const Attr *extents = op_attr(op, "extents");
	r.nloop = loops_merge(s, op->regions[0].first, extents->dims, r.loops);
	if (!loop_count(s, op, r.loops))
		return false;
	if (op_attr(op, "shared"))
		return s->k->cg->backend->team_reduce(s, op, r.loops, r.nloop, depth, out);
	int lanes = lanes_wanted(&r);
	return lanes ? lanes_print(&r, lanes, depth) : plain_print(&r, depth);
}
