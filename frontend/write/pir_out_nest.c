// Loop nests as operations on whole tensors: what has no form in Paddle 3 is written as what it
// means (definitions of operators, derivatives).
//
// A scalar at a place `depth` axes deep becomes a tensor of that rank, whose axes have the sizes of
// the loops that it depends on (`mask`) and are 1 otherwise. A load whose positions are loop
// counters is a transposition, any other one a gather; a reduction is one over the axes that it
// adds, and a sum of products is a product of matrices. Only what is yielded is made.
#include "frontend/write/pir_out.h"
#include "ir/build/nest.h"

#include <string.h>

typedef struct Whole {
	Value *v;
	uint32_t mask;
	int depth;
} Whole;

typedef struct Nests {
	Builder b;
	Context *c;
	PointerMap known; // scalar -> Whole
	const Dim *sizes[MAX_RANK];
} Nests;

// ---- shapes -------------------------------------------------------------------------------------

static const Dim *const *shape(Nests *n, uint32_t mask, int depth)
{
	const Dim **dims = NEW_ARRAY(n->c->arena, (size_t)depth + 1, const Dim *);
	for (int i = 0; i < depth; i++)
		dims[i] = mask >> i & 1 ? n->sizes[i] : dim_const(n->c, 1);
	return dims;
}

static const Type *whole_type(Nests *n, DType t, uint32_t mask, int depth)
{
	return type_tensor(n->c, t, depth, shape(n, mask, depth), 0);
}

static Value *make(Nests *n, enum OpCode code, const Type *type, int noperand,
                   Value *const *operands)
{
	for (int i = 0; i < noperand; i++)
		if (!operands[i])
			return NULL;
	Op *op = op_new(n->c, code, n->b.loc, 1, &type, noperand, operands, 0, 0);
	op_insert_before(n->b.before, op);
	op_result(op, 0)->stop_gradient = true;
	return op_result(op, 0);
}

static const Whole *whole_new(Nests *n, Value *v, uint32_t mask, int depth)
{
	Whole *w = NEW(n->c->arena, Whole);
	*w = (Whole){v, mask, depth};
	return v ? w : NULL;
}

// With more axes of 1 behind, or at the sizes that `mask` says.
static Value *stretched(Nests *n, const Whole *w, uint32_t mask, int depth)
{
	if (!w)
		return NULL;
	Value *v = w->v;
	if (w->depth != depth)
		v = tensor_reshape(&n->b, v, depth, shape(n, w->mask, depth));
	return w->mask == mask ? v : tensor_spread(&n->b, v, depth, shape(n, mask, depth));
}

// How many axes there are at a block inside of a nest.
static int depth_at(const Block *b)
{
	int depth = 0;
	for (; b->region->op->code == OP_LOOP_NEST || b->region->op->code == OP_LOOP_REDUCE;
	     b = b->region->op->block)
		depth += b->narg;
	return depth;
}

static DType element_type(const Type *t)
{
	return t->kind == TY_INDEX ? DT_I64 : t->dtype;
}

// ---- positions and sizes ------------------------------------------------------------------------

// A size as a number: the writer knows this nest.
static Value *size_number(Nests *n, const Dim *d)
{
	Nest nest = nest_open(&n->b, type_tensor(n->c, DT_I64, 0, NULL, 0));
	return nest_close(&nest, scalar_from_index(&nest.b, index_dim(&nest.b, d), DT_I64));
}

static Value *number(Nests *n, int64_t v)
{
	return build_full(&n->b, type_tensor(n->c, DT_I64, 0, NULL, 0), (double)v);
}

static const Whole *counter(Nests *n, int axis, int depth)
{
	const Dim *size = n->sizes[axis];
	Value *const ends[] = {number(n, 0), size_number(n, size), number(n, 1)};
	Value *v = make(n, OP_PD_ARANGE, type_tensor(n->c, DT_I64, 1, &size, 0), 3, ends);
	const uint32_t mask = 1U << axis;
	return whole_new(n, v ? tensor_reshape(&n->b, v, depth, shape(n, mask, depth)) : NULL, mask,
	                 depth);
}

static const Whole *unspread(Nests *n, Value *of_rank_0, int depth)
{
	return whole_new(n,
	                 of_rank_0 ? tensor_reshape(&n->b, of_rank_0, depth, shape(n, 0, depth)) : NULL,
	                 0, depth);
}

static const Whole *constant(Nests *n, const Op *op, int depth)
{
	const DType t = element_type(op->results[0].type);
	Value *v = make(n, OP_PD_FULL, whole_type(n, t, 0, depth), 0, NULL);
	op_set_attr(v->def, "shape", attr_dims(n->c, depth, shape(n, 0, depth)));
	op_set_attr(v->def, "value", op_attr(op, "value"));
	op_set_attr(v->def, "dtype", attr_dtype(n->c, t));
	return whole_new(n, v, 0, depth);
}

// ---- maps ---------------------------------------------------------------------------------------

static const Whole *whole(Nests *n, const Value *scalar);

// The same operation on tensors; all operands at the same sizes, since not all of Paddle's
// broadcast.
static const Whole *map(Nests *n, const Op *op, int depth)
{
	Value *x[8];
	const Whole *parts[8];
	uint32_t mask = 0;
	if (op->noperand > 8 || op->nresult != 1 || op->nregion || op->info->kind != KIND_MAP)
		return NULL;
	for (int i = 0; i < op->noperand; i++) {
		if (!op_operand(op, i) || !(parts[i] = whole(n, op_operand(op, i))))
			return NULL;
		mask |= parts[i]->mask;
	}
	for (int i = 0; i < op->noperand; i++)
		x[i] = stretched(n, parts[i], mask, depth);
	const DType t = element_type(op->results[0].type);
	Value *v = make(n, op->code, whole_type(n, t, mask, depth), op->noperand, x);
	for (int i = 0; v && i < op->info->nattr; i++)
		op_set_attr(v->def, op->info->attrs[i].name, op_attr(op, op->info->attrs[i].name));
	return whole_new(n, v, mask, depth);
}

static const Whole *cast(Nests *n, const Value *scalar, DType t, int depth)
{
	const Whole *w = whole(n, scalar);
	Value *v = w ? tensor_cast(&n->b, stretched(n, w, w->mask, depth), t) : NULL;
	return whole_new(n, v, w ? w->mask : 0, depth);
}

// Paddle finds positions out of range itself.
static const Whole *position(Nests *n, const Op *op, int depth)
{
	const Whole *w = cast(n, op_operand(op, 0), DT_I64, depth);
	if (!w || !op_bool(op, "wrap", false))
		return w;
	const Type *flags = whole_type(n, DT_BOOL, w->mask, depth);
	const Whole *size = unspread(n, size_number(n, op_attr(op, "extent")->dim), depth),
				*zero = unspread(n, number(n, 0), depth);
	Value *const sides[] = {w->v, stretched(n, zero, w->mask, depth)};
	Value *const terms[] = {w->v, stretched(n, size, w->mask, depth)};
	Value *const ways[] = {make(n, OP_PD_LESS_THAN, flags, 2, sides),
	                       make(n, OP_PD_ADD, w->v->type, 2, terms), w->v};
	return whole_new(n, make(n, OP_PD_WHERE, w->v->type, 3, ways), w->mask, depth);
}

// ---- loads --------------------------------------------------------------------------------------

// Which loop counts position i of a tensor, through all of it; -1: none.
static int counting_axis(Nests *n, const Value *at, const Dim *extent)
{
	if (at->def)
		return -1;
	const int axis = depth_at(at->block) - at->block->narg + (int)at->index;
	return n->sizes[axis] == extent ? axis : -1;
}

// A load at loop counters: axes in another order. NULL: it is none.
static const Whole *permuted(Nests *n, Value *x, Value *const *at, int depth)
{
	int64_t perm[MAX_RANK];
	int axes[MAX_RANK], k = 0;
	uint32_t mask = 0;
	for (int i = 0; i < x->type->rank; i++) {
		axes[i] = counting_axis(n, at[i], x->type->dims[i]);
		if (axes[i] < 0 || mask >> axes[i] & 1)
			return NULL;
		mask |= 1U << axes[i];
	}
	bool moved = false;
	for (int a = 0; a < depth; a++)
		for (int i = 0; i < x->type->rank; i++)
			if (axes[i] == a) {
				moved |= i != k;
				perm[k++] = i;
			}
	Value *v = moved ? tensor_transpose(&n->b, x, x->type->rank, perm) : x;
	if (v && v->type->rank != depth)
		v = tensor_reshape(&n->b, v, depth, shape(n, mask, depth));
	return whole_new(n, v, mask, depth);
}

static Value *join(Nests *n, int count, Value *const *parts, uint32_t mask, int depth)
{
	const Dim *dims[MAX_RANK + 1];
	const Type *types[MAX_RANK];
	memcpy(dims, shape(n, mask, depth), (size_t)depth * sizeof *dims);
	dims[depth] = dim_const(n->c, count);
	for (int i = 0; i < count; i++) {
		if (!parts[i])
			return NULL;
		types[i] = parts[i]->type;
	}
	Value *list = make(n, OP_BUILTIN_COMBINE, type_group(n->c, TY_VEC, count, types), count, parts);
	Value *v = make(n, OP_PD_STACK, type_tensor(n->c, DT_I64, depth + 1, dims, 0), 1, &list);
	if (v)
		op_set_attr(v->def, "axis", attr_int(n->c, depth));
	return v;
}

// A load anywhere; where `pred` does not hold, at the first element.
static const Whole *gathered(Nests *n, Value *x, Value *const *at, const Whole *pred, int depth)
{
	const Whole *parts[MAX_RANK];
	Value *all[MAX_RANK];
	uint32_t mask = pred ? pred->mask : 0;
	for (int i = 0; i < x->type->rank; i++) {
		if (!(parts[i] = whole(n, at[i])))
			return NULL;
		mask |= parts[i]->mask;
	}
	for (int i = 0; i < x->type->rank; i++) {
		all[i] = stretched(n, parts[i], mask, depth);
		if (pred) {
			const Whole *zero = unspread(n, number(n, 0), depth);
			Value *const ways[] = {stretched(n, pred, mask, depth), all[i],
			                       stretched(n, zero, mask, depth)};
			all[i] = make(n, OP_PD_WHERE, whole_type(n, DT_I64, mask, depth), 3, ways);
		}
	}
	Value *const in[] = {x, join(n, x->type->rank, all, mask, depth)};
	return whole_new(n, make(n, OP_PD_GATHER_ND, whole_type(n, x->type->dtype, mask, depth), 2, in),
	                 mask, depth);
}

static bool has_rank(const Op *op, int first)
{
	const Value *x = op_operand(op, first);
	return x && x->type->kind == TY_TENSOR && op->noperand == first + 1 + x->type->rank;
}

static Value **positions(Nests *n, const Op *op, int first)
{
	Value **at = NEW_ARRAY(n->c->arena, (size_t)op->noperand + 1, Value *);
	for (int i = first; i < op->noperand; i++)
		at[i - first] = op_operand(op, i);
	return at;
}

static const Whole *load_whole(Nests *n, const Op *op, int depth)
{
	Value *x = op_operand(op, 0);
	if (!has_rank(op, 0) || depth >= MAX_RANK)
		return NULL;
	if (!x->type->rank)
		return unspread(n, x, depth);
	Value *const *at = positions(n, op, 1);
	const Whole *w = permuted(n, x, at, depth);
	return w ? w : gathered(n, x, at, NULL, depth);
}

static const Whole *load_or_whole(Nests *n, const Op *op, int depth)
{
	Value *x = op_operand(op, 2);
	const Whole *pred = whole(n, op_operand(op, 0)), *other = whole(n, op_operand(op, 1));
	if (!has_rank(op, 2) || !pred || !other || depth >= MAX_RANK || !x->type->rank)
		return NULL;
	const Whole *w = gathered(n, x, positions(n, op, 3), pred, depth);
	if (!w)
		return NULL;
	const uint32_t mask = w->mask | other->mask;
	Value *const ways[] = {stretched(n, pred, mask, depth), stretched(n, w, mask, depth),
	                       stretched(n, other, mask, depth)};
	return whole_new(n, make(n, OP_PD_WHERE, whole_type(n, x->type->dtype, mask, depth), 3, ways),
	                 mask, depth);
}

// ---- reductions ---------------------------------------------------------------------------------

// The axes of each set after each other, and as one axis each.
static Value *grouped(Nests *n, const Whole *w, int depth, const uint32_t *sets)
{
	int64_t perm[MAX_RANK];
	const Dim *dims[3];
	int k = 0;
	for (int s = 0; s < 3; s++) {
		dims[s] = dim_const(n->c, 1);
		for (int i = 0; i < depth; i++)
			if (sets[s] >> i & 1) {
				perm[k++] = i;
				dims[s] = dim_mul(n->c, dims[s], n->sizes[i]);
			}
	}
	for (int i = 0; i < depth; i++)
		if (!(w->mask >> i & 1))
			perm[k++] = i;
	Value *v = tensor_transpose(&n->b, stretched(n, w, w->mask, depth), depth, perm);
	return v ? tensor_reshape(&n->b, v, 3, dims) : NULL;
}

// From [both x of a x of b], each axis an own one again, in order.
static const Whole *ungrouped(Nests *n, Value *v, const uint32_t *sets, int depth)
{
	const Dim *dims[MAX_RANK];
	int64_t perm[MAX_RANK];
	int places[MAX_RANK], k = 0;
	for (int s = 0; s < 3; s++)
		for (int i = 0; i < depth; i++)
			if (sets[s] >> i & 1) {
				dims[k] = n->sizes[i];
				places[k++] = i;
			}
	const uint32_t mask = sets[0] | sets[1] | sets[2];
	int rank = 0;
	for (int a = 0; a < depth; a++)
		for (int i = 0; i < k; i++)
			if (places[i] == a)
				perm[rank++] = i;
	v = v ? tensor_reshape(&n->b, v, k, dims) : NULL;
	v = v ? tensor_transpose(&n->b, v, k, perm) : NULL;
	return whole_new(n, v ? tensor_reshape(&n->b, v, depth, shape(n, mask, depth)) : NULL, mask,
	                 depth);
}

// A sum of products over axes that both have, of which each has others of its own. NULL: it is
// none.
static const Whole *product(Nests *n, const Value *sum, uint32_t added, int depth, int more)
{
	const Op *op = sum->def;
	if (!op || op->code != OP_PD_MULTIPLY || !dtype_is_float(sum->type->dtype) ||
	    depth_at(op->block) != depth + more)
		return NULL;
	const Whole *a = whole(n, op_operand(op, 0)), *b = whole(n, op_operand(op, 1));
	if (!a || !b || (a->mask & b->mask & added) != added)
		return NULL;
	const uint32_t outer = (1U << depth) - 1, both = a->mask & b->mask & outer;
	const uint32_t left = a->mask & outer & ~both, right = b->mask & outer & ~both;
	if (!left || !right)
		return NULL;
	const uint32_t rows[] = {both, left, added}, columns[] = {both, added, right},
				   result[] = {both, left, right};
	Value *const in[] = {grouped(n, a, depth + more, rows), grouped(n, b, depth + more, columns)};
	return in[0] && in[1] ? ungrouped(n, apply2(&n->b, OP_PD_MATMUL, in[0], in[1]), result, depth)
	                      : NULL;
}

static const Whole *reduced(Nests *n, const Op *op, int depth)
{
	static const struct {
		enum OpCode code;
		bool keep_nan;
	} ways[] = {[REDUCE_SUM] = {OP_PD_SUM, false},    [REDUCE_PROD] = {OP_PD_PROD, false},
	            [REDUCE_MAX] = {OP_PD_MAX, false},    [REDUCE_MIN] = {OP_PD_MIN, false},
	            [REDUCE_HIGHEST] = {OP_PD_MAX, true}, [REDUCE_LOWEST] = {OP_PD_MIN, true},
	            [REDUCE_ANY] = {OP_PD_ANY, false},    [REDUCE_ALL] = {OP_PD_ALL, false}};
	const Attr *extents = op_attr(op, "extents");
	const int kind = op_enum(op, "kind"), more = extents->n;
	if (op_operand(op, 0) || kind >= (int)COUNT_OF(ways) || depth + more >= MAX_RANK)
		return NULL;
	memcpy(n->sizes + depth, extents->dims, (size_t)more * sizeof *extents->dims);
	const Value *each = op_operand(block_terminator(op->regions[0].first), 0);
	const uint32_t outer = (1U << depth) - 1, added = ((1U << more) - 1) << depth;
	const Whole *w = kind == REDUCE_SUM ? product(n, each, added, depth, more) : NULL;
	if (w || !(w = whole(n, each)))
		return w;
	int64_t axes[MAX_RANK];
	for (int i = 0; i < more; i++)
		axes[i] = depth + i;
	Value *x = stretched(n, w, w->mask | added, depth + more);
	Value *v = make(n, ways[kind].code,
	                whole_type(n, op->results[0].type->dtype, w->mask & outer, depth), 1, &x);
	if (!v)
		return NULL;
	op_set_attr(v->def, "axis", attr_ints(n->c, more, axes));
	op_set_attr(v->def, "keepdim", attr_bool(n->c, false));
	if (ways[kind].keep_nan)
		op_set_attr(v->def, "keep_nan", attr_bool(n->c, true));
	return whole_new(n, v, w->mask & outer, depth);
}

// What it needs from around it may have axes of its own meanwhile.
static const Whole *reduce(Nests *n, const Op *op, int depth)
{
	const Dim *around[MAX_RANK];
	memcpy(around, n->sizes, sizeof around);
	const Whole *w = reduced(n, op, depth);
	memcpy(n->sizes, around, sizeof around);
	return w;
}

// ---- nests --------------------------------------------------------------------------------------

static const Whole *computed(Nests *n, const Op *op, int depth)
{
	switch (op->code) {
	case OP_LOOP_CONSTANT: return constant(n, op, depth);
	case OP_LOOP_DIM: return unspread(n, size_number(n, op_attr(op, "dim")->dim), depth);
	case OP_LOOP_FROM_INDEX:
		return cast(n, op_operand(op, 0), op_dtype(op, "dtype", DT_I64), depth);
	case OP_LOOP_TO_INDEX: return position(n, op, depth);
	case OP_LOOP_LOAD: return load_whole(n, op, depth);
	case OP_LOOP_LOAD_OR: return load_or_whole(n, op, depth);
	case OP_LOOP_REDUCE: return reduce(n, op, depth);
	default: return map(n, op, depth);
	}
}

static const Whole *whole(Nests *n, const Value *scalar)
{
	const Whole *w = pointer_map_get(&n->known, scalar);
	if (w)
		return w;
	const Block *home = scalar->def ? scalar->def->block : scalar->block;
	const int depth = depth_at(home);
	w = scalar->def ? computed(n, scalar->def, depth)
	                : counter(n, depth - home->narg + (int)scalar->index, depth);
	if (w)
		pointer_map_set(&n->known, scalar, w);
	return w;
}

const Dim *out_size_nest(const Op *nest)
{
	if (nest->nresult != 1 || nest->results[0].type->rank)
		return NULL;
	const Value *v = op_operand(block_terminator(nest->regions[0].first), 0);
	if (v->def && v->def->code == OP_LOOP_FROM_INDEX && v->type->dtype == DT_I64)
		v = op_operand(v->def, 0);
	return v->def && v->def->code == OP_LOOP_DIM ? op_attr(v->def, "dim")->dim : NULL;
}

bool out_nest_tensors(Op *nest, Value **results)
{
	Nests n = {.b = builder_before(nest), .c = nest->ctx};
	const Type *type = nest->results[0].type;
	const Op *end = block_terminator(nest->regions[0].first);
	if (type->rank >= MAX_RANK)
		return false;
	pointer_map_init(&n.known, n.c->arena);
	memcpy(n.sizes, type->dims, (size_t)type->rank * sizeof *type->dims);
	for (int i = 0; i < nest->nresult; i++) {
		results[i] = stretched(&n, whole(&n, op_operand(end, i)), (1U << type->rank) - 1,
		                       type->rank);
		if (!results[i])
			return false;
	}
	return true;
}

// ---- scatters -----------------------------------------------------------------------------------

bool out_scatter_tensors(Op *op, Value **results)
{
	Nests n = {.b = builder_before(op), .c = op->ctx};
	Value *x = op_operand(op, 0), *at = op_operand(op, 1), *updates = op_operand(op, 2);
	const int how = op_enum(op, "how");
	if (how != SCATTER_ADD && how != SCATTER_REPLACE && how != SCATTER_SUM)
		return false;
	if (how == SCATTER_ADD) {
		const Dim *const column[] = {at->type->dims[0], dim_const(n.c, 1)};
		at = tensor_reshape(&n.b, at, 2, column);
	}
	Value *const in[] = {x, at, updates};
	results[0] = make(&n, how == SCATTER_ADD ? OP_PD_SCATTER_ND_ADD : OP_PD_SCATTER,
	                  op->results[0].type, 3, in);
	if (results[0] && how != SCATTER_ADD)
		op_set_attr(results[0]->def, "overwrite", attr_bool(n.c, how == SCATTER_REPLACE));
	return results[0] != NULL;
}
