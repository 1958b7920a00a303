// What pd.case means: a chain of pd.if, each in the else region of the one before, that compare
// the number with the cases (ir/ops/control.yaml). The pass `cases` is the inverse.
#include "ir/build/build.h"

typedef struct Chain {
	Op *op;
	const Attr *cases;
	const Type **types; // of the results
} Chain;

// The number's comparison with case i.
static Value *case_holds(Builder *b, const Chain *c, int i)
{
	Value *index = op_operand(c->op, 0);
	int64_t dims[MAX_RANK];
	for (int d = 0; d < index->type->rank; d++)
		dims[d] = 1;
	Tensor *t = tensor_new(b->ctx->arena, index->type->dtype, index->type->rank, dims);
	if (!t)
		return NULL;
	tensor_set_i(t, 0, c->cases->ints[i]);
	return build2(b, OP_PD_EQUAL, index, build_constant(b, t), NULL);
}

static void region_fill(const Chain *chain, Region *to, int part)
{
	Context *c = chain->op->ctx;
	const Block *from = chain->op->regions[part].first;
	ValueMap *m = value_map_new(c->arena);
	Block *block = block_new(c, to);
	for (const Op *op = from ? from->first : NULL; op; op = op->next)
		op_append(block, op_clone(c, op, m));
	if (!block->last || !(block->last->info->traits & TRAIT_TERMINATOR))
		op_append(block, op_new(c, OP_CF_YIELD, chain->op->loc, 0, NULL, 0, NULL, 0, 0));
}

// The pd.if of case i, and of all that follow.
static Op *chain_build(Builder *b, const Chain *c, int i)
{
	Context *ctx = b->ctx;
	Value *cond = case_holds(b, c, i);
	if (!cond)
		return NULL;
	Op *branch = op_new(ctx, OP_PD_IF, b->loc, c->op->nresult, c->types, 1, &cond, 2, 0);
	builder_insert(b, branch);
	for (int k = 0; k < branch->nresult; k++)
		value_name_like(op_result(c->op, k), op_result(branch, k));
	region_fill(c, &branch->regions[0], i);
	if (i + 1 == c->cases->n) {
		region_fill(c, &branch->regions[1], i + 1);
		return branch;
	}
	Builder in = builder_at_end(ctx, block_new(ctx, &branch->regions[1]), b->loc);
	Op *next = chain_build(&in, c, i + 1);
	if (!next)
		return NULL;
	Value **given = NEW_ARRAY(ctx->arena, (size_t)next->nresult + 1, Value *);
	for (int k = 0; k < next->nresult; k++)
		given[k] = op_result(next, k);
	op_append(in.block, op_new(ctx, OP_CF_YIELD, b->loc, 0, NULL, next->nresult, given, 0, 0));
	return branch;
}

bool define_hook_case(Builder *b, Op *op, Value **results)
{
	Chain c = {op, op_attr(op, "cases"),
	           NEW_ARRAY(b->ctx->arena, (size_t)op->nresult + 1, const Type *)};
	for (int i = 0; i < op->nresult; i++)
		c.types[i] = op->results[i].type;
	Op *chain = chain_build(b, &c, 0);
	for (int i = 0; chain && i < op->nresult; i++)
		results[i] = op_result(chain, i);
	return chain != NULL;
}
