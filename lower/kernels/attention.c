// Attention: softmax(scores of query and key) times value becomes one kernel.attention, so that the
// scores never reach memory. What stands between the product and softmax (a factor, masks, a bias)
// is its region `score`; what reads and shapes the operands is left to fusion, which puts
// transpositions and slices into the regions `query`, `key` and `value`. Scores and weights are f32
// in any case, so casts of them to f16 or bf16 and back, of which programs with softmax in f32 have
// two, go. Few rows of long keys are taken in parts, side by side, which a nest puts together. Only
// for CUDA: in C the products have their tuned kernels.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "ir/infer/attention.h"
#include "lower/analysis/analysis.h"
#include "lower/clean/clean.h"
#include "lower/kernels/kernels.h"
#include "lower/kernels/rows.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"
#include "lower/target/schedule.h"

#include <string.h>

enum {
	MAX_STEPS = 8 // operations between product and softmax
};

typedef struct Attention {
	Op *product, *shares, *sum; // query key^T; softmax; weights value
	int nstep;
	struct {
		Op *op;
		int through;    // the operand that comes from the product
	} steps[MAX_STEPS]; // from softmax back to the product
} Attention;

// ---- what fits ----------------------------------------------------------------------------------

static bool dtype_fits(const Type *t)
{
	return type_is_tensor(t) && dtype_is_f32_or_half(t->dtype);
}

// Whether x has the last axes of t and, where that has others, the same ones or 1.
static bool type_broadcasts(const Type *x, const Type *t)
{
	if (!type_is_tensor(x) || x->rank > t->rank)
		return false;
	for (int i = 0; i < x->rank; i++)
		if (x->dims[i] != t->dims[t->rank - x->rank + i] && !dim_is(x->dims[i], 1))
			return false;
	return true;
}

// Between types in which scores and weights may stand: nothing is done for it.
static bool cast_fits(const Op *op)
{
	return op->code == OP_PD_CAST && dtype_fits(op_operand(op, 0)->type) &&
	       dtype_fits(op->results[0].type);
}

// A map that takes scores to scores, and nothing but numbers beside them.
static bool step_fits(const Op *op)
{
	const Type *t = op->results[0].type;
	if (op->info->kind != KIND_MAP || op->nresult != 1 || op->nregion ||
	    (op->code == OP_PD_CAST && !cast_fits(op)))
		return false;
	for (int i = 0; i < op->noperand; i++) {
		const Value *x = op_operand(op, i);
		if (x && (!type_broadcasts(x->type, t) ||
		          (!type_same_dims(x->type, t) && !(op->info->traits & TRAIT_BROADCAST))))
			return false;
	}
	return true;
}

// A view that leaves the last two axes alone: images cut into windows and back, with a mask for
// each.
static bool view_fits(const Op *op)
{
	const Type *from = op->noperand ? op_operand(op, 0)->type : NULL, *to = op->results[0].type;
	if (op->code != OP_PD_RESHAPE || !from || from->rank < 2 || to->rank < 2 ||
	    from->dims[from->rank - 1] != to->dims[to->rank - 1] ||
	    from->dims[from->rank - 2] != to->dims[to->rank - 2])
		return false;
	return index_reshape_divisions(op->ctx, to, from) >= 0;
}

// Whether what is behind the sum may be made of v alone.
static bool value_serves(const Attention *a, const Value *v)
{
	return v->def && v->def->block == a->sum->block && value_use_count(v) == 1 &&
	       dtype_fits(v->type);
}

// Walks from a value back to the product that it is made of.
static bool product_find(Attention *a, Value *v)
{
	Op *op = v->def;
	if (!value_serves(a, v))
		return false;
	if (op->code == OP_PD_MATMUL) {
		a->product = op;
		return op_operand(op, 0)->type->rank >= 2 && op_operand(op, 1)->type->rank >= 2;
	}
	const bool view = view_fits(op);
	if (a->nstep == MAX_STEPS || !(view || step_fits(op)))
		return false;
	const int at = a->nstep++;
	a->steps[at].op = op;
	for (int i = 0; i < (view ? 1 : op->noperand); i++) {
		Value *x = op_operand(op, i);
		a->steps[at].through = i;
		if (x && (view || type_same_dims(x->type, v->type)) && product_find(a, x))
			return true;
		a->nstep = at + 1;
	}
	a->nstep = at;
	return false;
}

// The rows (0) or columns (1) of a product's operand.
static const Dim *axis_of(const Value *x, bool transposed, int axis)
{
	const int rank = x->type->rank;
	return x->type->dims[rank - (transposed ? 1 + axis : 2 - axis)];
}

// A key or a value is known, and no wider than kernels have registers and shared memory for.
static bool width_fits(const Dim *d)
{
	return dim_is_const(d) && d->value >= 1 && d->value <= CUDA_MAX_HEAD;
}

// Whether anything that is stored between the products might be read too late.
static bool stores_between(const Attention *a)
{
	for (const Op *op = a->product; op != a->sum; op = op->next)
		if (op->code == OP_BUILTIN_SET_PARAMETER || op->code == OP_LOOP_UPDATE ||
		    op->code == OP_LOOP_APPEND || op->info->kind == KIND_CONTROL)
			return true;
	return false;
}

// t's batches with other rows and columns.
static const Type *domain_like(Context *c, const Type *t, const Dim *rows, const Dim *columns)
{
	const Dim *dims[MAX_RANK];
	memcpy(dims, t->dims, sizeof *dims * (size_t)(t->rank - 2));
	dims[t->rank - 2] = rows;
	dims[t->rank - 1] = columns;
	return type_tensor(c, DT_F32, t->rank, dims, 0);
}

// Whether a position among the weights can be told in the shapes of the product and of all that is
// behind it.
static bool positions_fit(const Attention *a)
{
	Context *c = a->sum->ctx;
	const Type *t = a->shares->results[0].type, *product = a->product->results[0].type;
	const Value *key = op_operand(a->product, 1);
	const bool turned = op_bool(a->product, "transpose_y", false);
	const Dim *rows = t->dims[t->rank - 2], *keys = t->dims[t->rank - 1],
			  *depth = axis_of(key, turned, 0);
	for (int s = 0; s < a->nstep; s++)
		if (index_reshape_divisions(c, t, a->steps[s].op->results[0].type) < 0)
			return false;
	return index_reshape_divisions(c, t, product) >= 0 &&
	       index_reshape_divisions(c, domain_like(c, t, rows, depth),
	                               domain_like(c, product, rows, depth)) >= 0 &&
	       index_reshape_divisions(c, domain_like(c, t, keys, depth),
	                               domain_like(c, product, keys, depth)) >= 0;
}

// The softmax that the weights of a sum are, possibly behind a cast; NULL: it is none, or somebody
// else reads it.
static Op *shares_of(const Op *sum)
{
	const Value *weights = op_operand(sum, 0);
	if (value_use_count(weights) == 1 && weights->def && weights->def->block == sum->block &&
	    cast_fits(weights->def))
		weights = op_operand(weights->def, 0);
	Op *op = weights->def;
	if (!op || !(op->info->traits & TRAIT_SHARES) || op->block != sum->block ||
	    value_use_count(weights) != 1)
		return NULL;
	const int64_t axis = op_int(op, "axis", -1);
	return axis == -1 || axis == weights->type->rank - 1 ? op : NULL;
}

// Whether the result has the dims of the weights, but for the last one: else scores are repeated.
static bool weights_fit(const Type *weights, const Type *value, const Type *out)
{
	if (weights->rank < 2 || weights->rank != out->rank || value->rank < 2 ||
	    value->rank > weights->rank)
		return false;
	for (int i = 0; i < weights->rank - 1; i++)
		if (weights->dims[i] != out->dims[i])
			return false;
	return true;
}

static bool attention_match(Op *sum, Attention *a)
{
	*a = (Attention){.sum = sum};
	if (sum->code != OP_PD_MATMUL || op_bool(sum, "transpose_x", false) ||
	    !dtype_fits(sum->results[0].type))
		return false;
	const Value *weights = op_operand(sum, 0), *value = op_operand(sum, 1);
	a->shares = shares_of(sum);
	if (!a->shares || value == weights ||
	    !weights_fit(weights->type, value->type, sum->results[0].type))
		return false;
	if (!product_find(a, op_operand(a->shares, 0)) || stores_between(a))
		return false;
	const Value *key = op_operand(a->product, 1);
	return positions_fit(a) &&
	       width_fits(axis_of(key, op_bool(a->product, "transpose_y", false), 0)) &&
	       width_fits(axis_of(value, op_bool(sum, "transpose_y", false), 1));
}

// ---- the kernel ---------------------------------------------------------------------------------

static Value *number(Builder *b, Value *v)
{
	const bool narrow = v && dtype_is_half(v->type->dtype);
	return narrow ? build1(b, OP_PD_CAST, v, "dtype", attr_dtype(b->ctx, DT_F32), NULL) : v;
}

// The element of x at a position of `rank` axes, to which x broadcasts; swap: its last two stand
// the other way.
static Value *element(Builder *b, Value *x, Value *const *at, int rank, bool swap)
{
	Value *index[MAX_RANK];
	const Type *t = x->type;
	for (int i = 0; i < t->rank; i++) {
		int axis = rank - t->rank + i;
		if (swap && i >= t->rank - 2)
			axis = 2 * rank - 3 - axis;
		index[i] = dim_is(t->dims[i], 1) ? index_const(b, 0) : at[axis];
	}
	return number(b, load(b, x, index));
}

// Opens a region of the kernel with positions at[], behind a first argument where acc asks for one.
static Builder region_open(Op *kernel, int region, Value **acc, Value **at)
{
	Context *c = kernel->ctx;
	Block *block = block_new(c, &kernel->regions[region]);
	if (acc)
		*acc = block_add_arg(c, block, type_scalar(c, DT_F32));
	for (int i = 0; i < attention_domain(kernel, region)->rank; i++)
		at[i] = block_add_arg(c, block, type_index(c));
	return builder_at_end(c, block, kernel->loc);
}

static bool region_close(Builder *b, Value *v)
{
	return v && build_op(b, OP_LOOP_YIELD, 1, &v, 0, NULL);
}

// A region that reads an operand of a product, whose batches may be counted in another shape.
static bool operand_region(Op *kernel, int region, Value *x, const Type *batches, bool swap)
{
	Value *at[MAX_RANK], *from[MAX_RANK];
	const Type *domain = attention_domain(kernel, region);
	Builder b = region_open(kernel, region, NULL, at);
	const Type *to = domain_like(kernel->ctx, batches, domain->dims[domain->rank - 2],
	                             domain->dims[domain->rank - 1]);
	return index_reshape(kernel->ctx, &b, domain, at, to, from) &&
	       region_close(&b, element(&b, x, from, to->rank, swap));
}

static bool score_region(Op *kernel, const Attention *a)
{
	Value *v, *at[MAX_RANK], *here[MAX_RANK], *x[MAX_RANK];
	const Type *domain = attention_domain(kernel, ATTENTION_SCORE);
	Builder b = region_open(kernel, ATTENTION_SCORE, &v, at);
	for (int s = a->nstep - 1; s >= 0 && v; s--) {
		const Op *op = a->steps[s].op;
		const Type *t = op->results[0].type;
		if (op->code == OP_PD_RESHAPE || op->code == OP_PD_CAST)
			continue;
		if (!index_reshape(kernel->ctx, &b, domain, at, t, here))
			return false;
		for (int i = 0; i < op->noperand; i++)
			x[i] = i == a->steps[s].through ? v
			       : op_operand(op, i)      ? element(&b, op_operand(op, i), here, t->rank, false)
			                                : NULL;
		v = build_map_scalar(&b, op, x);
	}
	return region_close(&b, v);
}

// The transposition that alone reads the result and keeps the columns last; NULL: none.
static Op *transpose_behind(const Op *sum)
{
	const Value *v = &sum->results[0];
	Op *op = v->uses && !v->uses->next ? v->uses->user : NULL;
	int64_t perm[MAX_RANK];
	const int rank = v->type->rank;
	if (!op || op->code != OP_PD_TRANSPOSE || op->block != sum->block ||
	    op_ints(op, "perm", perm, MAX_RANK) != rank)
		return NULL;
	return perm[rank - 1] == rank - 1 ? op : NULL;
}

// What both products' operands are: f16 or bf16 for tensor cores, else they count as f32.
static DType operand_dtype(const Attention *a)
{
	const DType t = op_operand(a->product, 0)->type->dtype,
				u = op_operand(a->product, 1)->type->dtype;
	const DType v = op_operand(a->sum, 1)->type->dtype;
	return t == u && t == v ? t : DT_F32;
}

static CudaAttentionSchedule schedule(const PassContext *p, const Attention *a, const Dim *keys,
                                      int64_t depth)
{
	Context *c = p->ctx;
	const Type *t = a->sum->results[0].type;
	const int64_t columns = t->dims[t->rank - 1]->value;
	CudaHeads h = {c,
	               dims_product(c, t->rank - 2, t->dims),
	               t->dims[t->rank - 2],
	               keys,
	               depth > columns ? depth : columns,
	               operand_dtype(a),
	               p->allow_tf32};
	CudaAttentionSchedule s = cuda_schedule_attention(&h);
	s.split = t->rank < MAX_RANK ? s.split : 1;
	return s;
}

static Op *kernel_new(const PassContext *p, const Attention *a, const Op *turn, const Value *end)
{
	Context *c = p->ctx;
	const Value *key = op_operand(a->product, 1);
	const bool turned = op_bool(a->product, "transpose_y", false);
	const Dim *keys = axis_of(key, turned, 1), *dims[MAX_RANK + 1];
	const int64_t depth = axis_of(key, turned, 0)->value;
	const CudaAttentionSchedule s = schedule(p, a, keys, depth);
	const Type *t = a->sum->results[0].type, *types[2] = {end->type};
	if (s.split > 1) {
		dims[0] = dim_const(c, s.split);
		memcpy(dims + 1, t->dims, sizeof *dims * (size_t)t->rank);
		types[0] = type_tensor(c, DT_F32, t->rank + 1, dims, 0);
		types[1] = type_tensor(c, DT_F32, t->rank, dims, 0);
	}
	Op *kernel = op_new(c, OP_KERNEL_ATTENTION, a->shares->loc, s.split > 1 ? 2 : 1, types, 0, NULL,
	                    ATTENTION_REGIONS, 0);
	op_insert_before(a->sum, kernel);
	op_set_attr(kernel, "keys", attr_dim(c, keys));
	op_set_attr(kernel, "depth", attr_int(c, depth));
	op_set_attr(kernel, "schedule", attr_str(c, s.tile->name));
	if (operand_dtype(a) != DT_F32)
		op_set_attr(kernel, "dtype", attr_dtype(c, operand_dtype(a)));
	if (s.split > 1)
		op_set_attr(kernel, "split", attr_int(c, s.split));
	else if (turn)
		op_set_attr(kernel, "perm", op_attr(turn, "perm"));
	return kernel;
}

// ---- parts --------------------------------------------------------------------------------------

// Over the parts, of what the kernel found for a row: exp(sum - base), times the element; or,
// without a base, the largest sum.
static Value *parts_reduce(Builder *b, Op *kernel, Value *const *at, Value *base, bool element)
{
	const Dim *parts = kernel->results[0].type->dims[0];
	const int rank = kernel->results[0].type->rank - 1;
	Nest r = reduce_open(b, base ? "sum" : "max", DT_F32, 1, &parts);
	Value *index[MAX_RANK];
	index[0] = r.at[0];
	memcpy(index + 1, at, sizeof *at * (size_t)rank);
	Value *v = load(&r.b, &kernel->results[1], index);
	if (base)
		v = apply1(&r.b, OP_PD_EXP, tensor_sub(&r.b, v, base));
	if (element)
		v = tensor_mul(&r.b, v, load(&r.b, &kernel->results[0], index));
	return reduce_close(&r, v);
}

// The parts of a split kernel as one result, with the axes in their order; of no keys zeros.
static Value *parts_join(Op *kernel, const Op *turn, const Value *end)
{
	const Type *t = end->type;
	int64_t perm[MAX_RANK], lo, hi;
	Value *at[MAX_RANK];
	Builder b = builder_before(kernel->next);
	Nest n = nest_open(&b, t);
	if (turn)
		op_ints(turn, "perm", perm, MAX_RANK);
	for (int i = 0; i < t->rank; i++)
		at[turn ? perm[i] : i] = n.at[i];
	Value *base = parts_reduce(&n.b, kernel, at, NULL, false);
	Value *sum = parts_reduce(&n.b, kernel, at, base, false),
		  *v = tensor_div(&n.b, parts_reduce(&n.b, kernel, at, base, true), sum);
	const Dim *keys = op_attr(kernel, "keys")->dim;
	dim_range(keys, &lo, &hi);
	if (lo < 1 && v) {
		Value *any[3] = {index_less(&n.b, index_const(&n.b, 0), index_dim(&n.b, keys)), v,
		                 build_scalar_f(&n.b, DT_F32, 0)};
		v = build(&n.b, OP_PD_WHERE, 3, any, NULL);
	}
	return nest_close(&n, v);
}

static bool attention_build(const PassContext *p, const Attention *a)
{
	Op *sum = a->sum, *turn = transpose_behind(sum), *end = turn ? turn : sum;
	Value *query = op_operand(a->product, 0), *key = op_operand(a->product, 1),
		  *value = op_operand(sum, 1);
	const bool turned = op_bool(a->product, "transpose_y", false);
	const Type *batches = a->product->results[0].type;
	Op *kernel = kernel_new(p, a, turn, &end->results[0]);
	if (!operand_region(kernel, ATTENTION_QUERY, query, batches,
	                    op_bool(a->product, "transpose_x", false)) ||
	    !operand_region(kernel, ATTENTION_KEY, key, batches, !turned) ||
	    !operand_region(kernel, ATTENTION_VALUE, value, sum->results[0].type,
	                    op_bool(sum, "transpose_y", false)) ||
	    !score_region(kernel, a) || !region_pass(kernel, &kernel->regions[ATTENTION_EPILOGUE]))
		return false;
	Value *out = attention_is_split(kernel) ? parts_join(kernel, turn, &end->results[0])
	                                        : &kernel->results[0];
	if (!out)
		return false;
	out->name = end->results[0].name;
	op_replace(end, &out);
	return true;
}

static bool region_match(const PassContext *p, Region *r)
{
	for (Block *block = r->first; block; block = block->next)
		for (Op *op = block->first, *next; op; op = next) {
			Attention a;
			next = op->next;
			for (int i = 0; i < op->nregion && op->info->kind == KIND_CONTROL; i++)
				if (!region_match(p, &op->regions[i]))
					return false;
			if (!attention_match(op, &a))
				continue;
			if (next && transpose_behind(op) == next)
				next = next->next;
			if (!attention_build(p, &a))
				return false;
		}
	return true;
}

// Needs: products and softmax as they were translated (before decompose), canonical forms.
// Keeps: values but for rounding, names of results, locations.
// Breaks: nothing; without a GPU as target it does nothing.
bool pass_attention(PassContext *p)
{
	return !target_has(p->target, OP_KERNEL_ATTENTION) ||
	       (region_match(p, &p->module->regions[0]) && pass_dce(p));
}
