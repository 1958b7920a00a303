// CUDA: few elements, each of very many terms, would leave most of a GPU idle. Such a reduction
// becomes one of parts, which are elements of a nest of their own, and a short one over the parts.
// How terms are grouped depends on sizes alone, so results are the same in each run.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/kernels/kernels.h"
#include "lower/pass/pass.h"

#include <string.h>

// So many blocks of threads fill a GPU; a part should be worth one. COLUMNS: neighbouring elements
// that share a block where they lie side by side. What is computed for each part again may reduce
// FEW_TERMS itself.
enum {
	WANTED_BLOCKS = 512,
	MIN_PART_TERMS = 2048,
	MAX_PARTS = 256,
	MIN_PARTS = 4,
	COLUMNS = 32,
	FEW_TERMS = 1024
};

// Which of a reduction's loops is cut, in how many parts of what length.
typedef struct Cut {
	int loop;
	int64_t parts;
	const Dim *length;
	bool counted; // the last part may be shorter
} Cut;

static int64_t least_terms(const Op *reduce)
{
	const Attr *extents = op_attr(reduce, "extents");
	int64_t all = 1, lo, hi;
	for (int i = 0; i < extents->n; i++) {
		dim_range(extents->dims[i], &lo, &hi);
		all = lo < 1 ? 0 : lo > INT32_MAX || all > INT32_MAX ? INT32_MAX : all * lo;
	}
	return all;
}

static bool kind_suits(const Op *reduce)
{
	const ReduceKind kind = (ReduceKind)op_enum(reduce, "kind");
	const Type *t = reduce->results[0].type;
	if (reduce_is_position(kind) || t->kind != TY_SCALAR)
		return false;
	return t->dtype != DT_F16 && t->dtype != DT_BF16; // their parts would be rounded
}

static bool body_suits(const Op *reduce)
{
	for (const Op *op = reduce->regions[0].first->first; op; op = op->next)
		if (op->nregion || op->code == OP_LOOP_TO_INDEX)
			return false;
	return true;
}

// Whether neighbouring elements of the nest read neighbouring elements of tensors.
static bool elements_lie_side_by_side(const Op *nest, const Op *reduce)
{
	const Block *body = nest->regions[0].first;
	const Value *last = body->narg ? body->args[body->narg - 1] : NULL;
	for (const Op *op = reduce->regions[0].first->first; op; op = op->next)
		if ((op->code == OP_LOOP_LOAD || op->code == OP_LOOP_LOAD_OR) && last &&
		    op_operand(op, op->noperand - 1) == last)
			return true;
	return false;
}

static int64_t parts_wanted(const Op *nest, const Op *reduce)
{
	int64_t elements, parts = 1, terms = least_terms(reduce);
	if (!type_const_numel(nest->results[0].type, &elements))
		return 1;
	const int64_t blocks = elements_lie_side_by_side(nest, reduce)
	                           ? (elements + COLUMNS - 1) / COLUMNS
	                           : elements;
	while (parts < MAX_PARTS && blocks * parts < WANTED_BLOCKS &&
	       terms / (2 * parts) >= MIN_PART_TERMS)
		parts *= 2;
	return parts;
}

// The largest number of equal parts, at most `most`; where loads go along the loop, of multiples of
// 16 terms if there is one.
static int64_t equal_parts(int64_t extent, int64_t most)
{
	int64_t best = 1;
	for (int64_t n = most; n > 1 && best < MIN_PARTS; n--)
		if (extent % (16 * n) == 0)
			best = n;
	for (int64_t n = most; n > 1 && best < MIN_PARTS; n--)
		if (extent % n == 0)
			best = n;
	return best;
}

static bool cut_find(Context *c, const Op *reduce, int64_t wanted, Cut *cut)
{
	const Attr *extents = op_attr(reduce, "extents");
	*cut = (Cut){.parts = 1};
	for (int i = 0; i < extents->n; i++) {
		const Dim *d = extents->dims[i];
		const int64_t parts = dim_is_const(d) ? equal_parts(d->value, wanted) : 1;
		if (parts > cut->parts)
			*cut = (Cut){.loop = i, .parts = parts, .length = dim_const(c, d->value / parts)};
	}
	if (extents->n == 1 && cut->parts < MIN_PARTS) {
		const Dim *whole = dim_add(c, extents->dims[0], dim_const(c, wanted - 1));
		*cut = (Cut){
			.parts = wanted, .length = dim_div(c, whole, dim_const(c, wanted)), .counted = true};
	}
	return cut->parts >= MIN_PARTS;
}

// ---- the nest of parts --------------------------------------------------------------------------

// What the reduction needs of the nest's body, from the reduction up; false where that is too much
// to compute again.
static bool needs_find(const Op *reduce, const Op **needs, int *n)
{
	*n = 0;
	for (const Op *op = reduce->prev; op; op = op->prev) {
		bool used = false;
		for (int r = 0; r < op->nresult && !used; r++)
			for (const Use *u = op->results[r].uses; u && !used; u = u->next) {
				const Op *user = u->user;
				while (user->block != op->block)
					user = op_parent(user);
				used = user == reduce;
				for (int i = 0; i < *n && !used; i++)
					used = needs[i] == user;
			}
		if (!used)
			continue;
		if (op->nregion &&
		    (op->code != OP_LOOP_REDUCE || !body_suits(op) || least_terms(op) > FEW_TERMS))
			return false;
		needs[(*n)++] = op;
	}
	return true;
}

static Value *part_sum(Builder *b, const Op *reduce, const Cut *cut, Value *part, ValueMap *map)
{
	const Attr *extents = op_attr(reduce, "extents");
	const Block *from = reduce->regions[0].first;
	const Dim *dims[MAX_RANK];
	const DType t = reduce->results[0].type->dtype;
	for (int i = 0; i < extents->n; i++)
		dims[i] = i == cut->loop ? cut->length : extents->dims[i];
	Value *start = index_mul(b, part, index_dim(b, cut->length));
	Value *left = cut->counted ? index_sub(b, index_dim(b, extents->dims[0]), start) : NULL;
	Nest r = left ? reduce_open_counted(b, op_str(reduce, "kind", ""), t, cut->length,
	                                    index_min(b, left, index_dim(b, cut->length)))
	              : reduce_open(b, op_str(reduce, "kind", ""), t, extents->n, dims);
	for (int i = 0; i < extents->n; i++)
		value_map_set(map, from->args[i],
		              i == cut->loop ? index_add(&r.b, start, r.at[i]) : r.at[i]);
	for (const Op *op = from->first; op != block_terminator(from); op = op->next)
		op_append(r.b.block, op_clone(b->ctx, op, map));
	return reduce_close(&r, value_map_get(map, op_operand(block_terminator(from), 0)));
}

static Value *parts_nest(Op *nest, const Op *reduce, const Cut *cut, const Op *const *needs,
                         int nneed)
{
	Context *c = nest->ctx;
	const Block *body = nest->regions[0].first;
	const Type *t = nest->results[0].type;
	const Dim *dims[MAX_RANK];
	ValueMap *map = value_map_new(c->arena);
	dims[0] = dim_const(c, cut->parts); // in front: neighbouring elements stay neighbours
	for (int i = 0; i < t->rank; i++)
		dims[1 + i] = t->dims[i];
	Builder b = builder_before(nest);
	Nest n = nest_open(&b, type_tensor(c, reduce->results[0].type->dtype, t->rank + 1, dims, 0));
	for (int i = 0; i < body->narg; i++)
		value_map_set(map, body->args[i], n.at[1 + i]);
	for (int i = nneed; i-- > 0;)
		op_append(n.b.block, op_clone(c, needs[i], map));
	return nest_close(&n, part_sum(&n.b, reduce, cut, n.at[0], map));
}

static bool reduce_split(Op *nest, Op *reduce)
{
	Cut cut;
	int nneed = 0, nop = 0;
	const Block *body = nest->regions[0].first;
	if (op_operand(reduce, 0) || nest->results[0].type->rank == MAX_RANK || !kind_suits(reduce) ||
	    !body_suits(reduce))
		return true;
	const int64_t wanted = parts_wanted(nest, reduce);
	for (const Op *op = body->first; op; op = op->next)
		nop++;
	const Op **needs = NEW_ARRAY(nest->ctx->arena, (size_t)nop, const Op *);
	if (wanted < MIN_PARTS || !cut_find(nest->ctx, reduce, wanted, &cut) ||
	    !needs_find(reduce, needs, &nneed))
		return true;
	Value *parts = parts_nest(nest, reduce, &cut, needs, nneed), *at[MAX_RANK];
	if (!parts)
		return false;
	const Dim *count = dim_const(nest->ctx, cut.parts);
	Builder b = builder_before(reduce);
	Nest r = reduce_open(&b, op_str(reduce, "kind", ""), reduce->results[0].type->dtype, 1, &count);
	at[0] = r.at[0];
	for (int i = 0; i < body->narg; i++)
		at[1 + i] = body->args[i];
	Value *sum = reduce_close(&r, load(&r.b, parts, at));
	if (!sum)
		return false;
	value_replace(&reduce->results[0], sum);
	op_erase(reduce);
	return true;
}

static bool block_split(Block *b)
{
	for (Op *op = b->first; op; op = op->next) {
		if (op->code == OP_LOOP_NEST) {
			for (Op *in = op->regions[0].first->first, *next; in; in = next) {
				next = in->next;
				if (in->code == OP_LOOP_REDUCE && !reduce_split(op, in))
					return false;
			}
			continue;
		}
		for (int i = 0; i < op->nregion && op->info->kind == KIND_CONTROL; i++)
			for (Block *inner = op->regions[i].first; inner; inner = inner->next)
				if (!block_split(inner))
					return false;
	}
	return true;
}

// Needs: nests, after fuse.
// Keeps: everything but the order of additions.
// Breaks: nothing; what nobody needs any more in a nest goes with dce.
bool pass_split_reductions(PassContext *p)
{
	if (!p->target || !p->target->simt)
		return true;
	for (Block *b = p->module->regions[0].first; b; b = b->next)
		if (!block_split(b))
			return false;
	return true;
}
