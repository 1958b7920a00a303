// Matrix products to kernel.gemm: the right operand packed into panels, at compile time when it is
// a parameter; leading axes of the left operand are rows when the right one has none. For CUDA to
// kernel.matmul, which packs nothing. Called by layout.c.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/kernels/layout.h"
#include "lower/kernels/library.h"
#include "lower/pass/rewrite.h"
#include "lower/target/schedule.h"
#include "lower/target/target.h"

#include <string.h>

enum {
	MIN_WORK = 64, // K * N below which a plain loop is as fast
	MAX_PANEL = 8, // vectors: what kernel.gemm takes
	FEW_ROWS = 2,  // up to which a matrix of more than so many bytes is not worth packing
	NEAR_BYTES = 32 * 1024,
	SHORT_ROW = 256 // bytes
};

typedef struct Product {
	Op *op;
	Value *x, *y; // [batch.. x M x K], [batch.. x K x N] (or transposed)
	bool transpose_x, transpose_y;
	bool turned; // kernel.gemm reads x as it lies, although it is transposed
	const Dim *m, *k, *n;
	const Dim *rows; // m, with the leading axes when y has none
	int nbatch;      // of y, once both have the same
	const Dim *const *batch;
} Product;

static bool target_multiplies(const Target *t, DType element)
{
	return element == DT_F32 || (t->doubles && element == DT_F64) ||
	       (t->half && dtype_is_half(element));
}

static bool product_read(const Layout *l, Op *op, Product *p)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	if (op->code != OP_PD_MATMUL || !type_is_tensor(x->type) || !type_is_tensor(y->type))
		return false;
	const Type *tx = x->type, *ty = y->type;
	if (!target_multiplies(l->target, tx->dtype) || ty->dtype != tx->dtype || tx->rank < 2 ||
	    ty->rank < 2)
		return false;
	p->op = op;
	p->x = x;
	p->y = y;
	p->turned = false;
	p->transpose_y = op_bool(op, "transpose_y", false);
	p->transpose_x = op_bool(op, "transpose_x", false);
	p->m = tx->dims[tx->rank - (p->transpose_x ? 1 : 2)];
	p->k = tx->dims[tx->rank - (p->transpose_x ? 2 : 1)];
	p->n = ty->dims[ty->rank - (p->transpose_y ? 2 : 1)];
	p->rows = p->m;
	const Type *out = op->results[0].type;
	p->nbatch = out->rank - 2;
	p->batch = out->dims;
	return p->nbatch >= 0;
}

static bool product_is_tiny(const Product *p)
{
	if (dim_is(p->k, 1))
		return true;
	return dim_is_const(p->k) && dim_is_const(p->n) && p->k->value * p->n->value < MIN_WORK;
}

static Value *swap_last_axes(Builder *b, Value *x)
{
	int64_t perm[MAX_RANK];
	int rank = x->type->rank;
	for (int i = 0; i < rank; i++)
		perm[i] = i;
	perm[rank - 1] = rank - 2;
	perm[rank - 2] = rank - 1;
	return build1(b, OP_PD_TRANSPOSE, x, "perm", attr_ints(b->ctx, rank, perm), NULL);
}

// The operand with the batch axes of the result: repeated where it has size 1 or none.
static Value *with_batch(Builder *b, const Product *p, Value *v)
{
	const Type *t = v->type;
	const Dim *dims[MAX_RANK];
	int rank = p->nbatch + 2;
	if (rank > MAX_RANK)
		return NULL;
	for (int i = 0; i < p->nbatch; i++)
		dims[i] = p->batch[i];
	dims[rank - 2] = t->dims[t->rank - 2];
	dims[rank - 1] = t->dims[t->rank - 1];
	if (t->rank == rank && !memcmp(t->dims, dims, (size_t)rank * sizeof *dims))
		return v;
	return build1(b, OP_PD_EXPAND, v, "shape", attr_dims(b->ctx, rank, dims), NULL);
}

// Leading axes of size 1 say nothing: a matrix.
static bool is_one_matrix(const Type *t)
{
	for (int i = 0; i < t->rank - 2; i++)
		if (!dim_is(t->dims[i], 1))
			return false;
	return true;
}

// How many of `all` vectors a panel has: `max` or fewer, so that all panels are about as full. One
// more is better than a last panel of one vector, whose tile has too few sums to be fast.
static int64_t panel_vectors(int64_t all, int64_t max)
{
	const int64_t panels = (all + max - 1) / max, vectors = (all + panels - 1) / panels;
	if (panels < 2 || all % vectors != 1)
		return vectors;
	const int64_t wider = (all + panels - 2) / (panels - 1);
	return wider == max + 1 && wider <= MAX_PANEL && all % wider != 1 ? wider : vectors;
}

// Columns in a panel: as many vectors as the register tile has, or about as many. The tile of a
// lone row is as wide as others are large: each element of the row is read once for all of its
// columns. Weights that others read as well stay as they want them, so that they are packed once.
static int64_t panel_columns(const Target *t, const Product *p)
{
	const Dim *n = p->n;
	bool lone = dim_is(p->rows, 1) && value_use_count(p->y) == 1;
	const int64_t max = lone ? MAX_PANEL : t->gemm_nv, lanes = target_lanes(t, p->y->type->dtype);
	if (!dim_is_const(n) || n->value < 1)
		return (dim_is_const(n) ? 1 : max) * lanes;
	return panel_vectors((n->value + lanes - 1) / lanes, max) * lanes;
}

static const Type *packed_type(const Layout *l, const Product *p, const Type *t)
{
	Context *c = l->ctx;
	const Dim *dims[MAX_RANK + 1], *nr = dim_const(c, panel_columns(l->target, p));
	int nbatch = t->rank - 2;
	memcpy(dims, t->dims, (size_t)nbatch * sizeof *dims);
	dims[nbatch] = dim_div(c, dim_add(c, p->n, dim_sub(c, nr, dim_const(c, 1))), nr);
	dims[nbatch + 1] = p->k;
	dims[nbatch + 2] = nr;
	return nbatch + 3 <= MAX_RANK ? type_tensor(c, t->dtype, nbatch + 3, dims, 0) : NULL;
}

// Packing at run time is a nest, so that fusion can put into it what made the operand (a
// transposition mostly).
static Value *pack_by_nest(const Product *p, Value *y, const Type *type)
{
	Builder before = builder_before(p->op);
	Nest n = nest_open(&before, type);
	Builder *b = &n.b;
	const Dim *nr = type->dims[type->rank - 1];
	Value *k = n.at[type->rank - 2], *at[MAX_RANK];
	Value *column = index_add(b, index_mul(b, n.at[type->rank - 3], index_dim(b, nr)),
	                          n.at[type->rank - 1]);
	bool full = dim_is(dim_mod(before.ctx, p->n, nr), 0);
	Value *pred = full ? NULL : index_less(b, column, index_dim(b, p->n));
	int nbatch = type->rank - 3;
	memcpy(at, n.at, (size_t)nbatch * sizeof *at);
	at[nbatch] = p->transpose_y ? column : k;
	at[nbatch + 1] = p->transpose_y ? k : column;
	return nest_close(&n, load_or(b, pred, build_scalar_f(b, type->dtype, 0), y, at));
}

static Value *pack(const Layout *l, const Product *p, Value *y)
{
	const Type *type = packed_type(l, p, y->type);
	if (!type)
		return NULL;
	if (!value_is_constant(y))
		return pack_by_nest(p, y, type);
	Op *op = layout_kernel(p->op, OP_KERNEL_PACK_GEMM, type, 1, &y);
	op->results[0].name = y->name;
	op_set_attr(op, "transposed", attr_bool(l->ctx, p->transpose_y));
	return &op->results[0];
}

static Value *gemm(const Product *p, Value *x, Value *packed)
{
	if (!packed)
		return NULL;
	Context *c = p->op->ctx;
	const Type *t = x->type;
	const Dim *dims[MAX_RANK];
	memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
	if (p->turned)
		dims[t->rank - 2] = p->m;
	dims[t->rank - 1] = p->n;
	Op *op = layout_kernel(p->op, OP_KERNEL_GEMM, type_tensor(c, t->dtype, t->rank, dims, 0), 2,
	                       (Value *[]){x, packed});
	op_set_attr(op, "k", attr_dim(c, p->k));
	op_set_attr(op, "n", attr_dim(c, p->n));
	if (p->turned)
		op_set_attr(op, "transpose_a", attr_bool(c, true));
	epilogue_identity(op, &op->regions[0]);
	return &op->results[0];
}

// One matrix on the right: all leading axes of the left are rows.
static Value *product_flat(const Layout *l, const Product *p, Builder *b, Value *x)
{
	const Type *ty = p->y->type;
	Value *y = build_view(b, p->y, 2, ty->dims + ty->rank - 2);
	Value *flat = build_view(
		b, x, 2, p->turned ? (const Dim *[]){p->k, p->m} : (const Dim *[]){p->rows, p->k});
	return y && flat ? gemm(p, flat, pack(l, p, y)) : NULL;
}

static Value *product_batched(const Layout *l, const Product *p, Builder *b, Value *x)
{
	Value *y = with_batch(b, p, p->y);
	x = with_batch(b, p, x);
	return x && y ? gemm(p, x, pack(l, p, y)) : NULL;
}

// Whether packing takes longer than the product: few rows meet a matrix that is made right here,
// and too large to lie where the packed one is read from at no cost. One from outside of a loop is
// packed in front of it.
static bool packs_in_vain(const Product *p)
{
	const Type *t = p->y->type;
	const Dim *numbers = type_numel(p->op->ctx, t);
	const Block *made = p->y->def ? p->y->def->block : p->y->block;
	return !value_is_constant(p->y) && made == p->op->block && dim_is_const(p->rows) &&
	       dim_is_const(numbers) && p->rows->value <= FEW_ROWS &&
	       numbers->value > NEAR_BYTES / (int64_t)dtype_size(t->dtype);
}

// Whether a tile of rows reads a transposed x as it lies: what it needs of a step of the depth is a
// short row, so that steps lie close to each other.
static bool reads_turned(const Product *p, bool one)
{
	const int64_t size = (int64_t)dtype_size(p->x->type->dtype);
	return p->transpose_x && (!one || is_one_matrix(p->x->type)) && dim_is_const(p->m) &&
	       p->m->value <= SHORT_ROW / size;
}

static Value *product_packed(const Layout *l, Product *p, Builder *b)
{
	const bool one = is_one_matrix(p->y->type);
	if (one)
		p->rows = dim_mul(l->ctx, p->m, matrix_count(l->ctx, p->x->type));
	if (packs_in_vain(p))
		return NULL;
	p->turned = reads_turned(p, one);
	Value *x = p->transpose_x && !p->turned ? swap_last_axes(b, p->x) : p->x;
	if (!x)
		return NULL;
	return one ? product_flat(l, p, b, x) : product_batched(l, p, b, x);
}

static Value *matmul(const Product *p, Value *x, Value *y, const Type *out, const CudaSchedule *s)
{
	Context *c = p->op->ctx;
	Op *op = layout_kernel(p->op, OP_KERNEL_MATMUL, out, 2, (Value *[]){x, y});
	op_set_attr(op, "transpose_a", attr_bool(c, p->transpose_x));
	op_set_attr(op, "transpose_b", attr_bool(c, p->transpose_y));
	op_set_attr(op, "schedule", attr_str(c, s->tile->name));
	op_set_attr(op, "split", attr_int(c, s->split));
	epilogue_identity(op, &op->regions[0]);
	return &op->results[0];
}

static Value *product_split(const Product *p, Builder *b, Value *x, Value *y, const Type *out,
                            const CudaSchedule *s)
{
	Context *c = b->ctx;
	const Dim *dims[MAX_RANK] = {dim_const(c, s->split)};
	if (out->rank == MAX_RANK)
		return matmul(p, x, y, out, &(CudaSchedule){s->tile, 1});
	memcpy(dims + 1, out->dims, (size_t)out->rank * sizeof *dims);
	return build_parts_sum(b, matmul(p, x, y, type_tensor(c, DT_F32, out->rank + 1, dims, 0), s),
	                       out->dtype);
}

// A parameter that nobody else wants as it is: it is turned at compile time.
static bool turns_for_free(const Value *y)
{
	return value_is_constant(y) && value_use_count(y) == 1;
}

// A tile of rows that reads y turned; NULL: there is none, or y is not turned for free.
static const CudaTile *rows_tile(const Product *p, Context *c, const Dim *batches, const Dim *m)
{
	const CudaProduct product = {c, batches, m, p->n, p->k, p->x->type->dtype, false, false};
	const CudaTile *rows = p->transpose_x ? NULL : cuda_schedule_rows(&product);
	return rows && (p->transpose_y || turns_for_free(p->y)) ? rows : NULL;
}

// A GPU reads matrices as they lie, through shared memory. Batches of rows that meet one matrix are
// one matrix, too.
static Value *product_tiled(const Layout *l, const Product *p, Builder *b)
{
	Context *c = b->ctx;
	const Type *tx = p->x->type, *ty = p->y->type, *out = p->op->results[0].type;
	Value *x = p->x, *y = p->y;
	const Dim *m = p->m;
	if (is_one_matrix(ty) && (!p->transpose_x || is_one_matrix(tx))) {
		m = dim_mul(c, m, matrix_count(c, tx));
		out = type_tensor(c, out->dtype, 2, (const Dim *[]){m, p->n}, 0);
		x = build_view(b, x, 2,
		               p->transpose_x ? (const Dim *[]){p->k, m} : (const Dim *[]){m, p->k});
		y = build_view(b, y, 2, ty->dims + ty->rank - 2);
	}
	if (!x || !y)
		return NULL;
	const Dim *batches = matrix_count(c, out);
	if (l->cuda_libs && library_takes_product(c, x->type, y->type, out, p->k)) {
		const CudaSchedule s = cuda_schedule_library(l->allow_tf32);
		return matmul(p, x, y, out, &s);
	}
	const CudaTile *rows = rows_tile(p, c, batches, m);
	if (rows) {
		Product turned = *p;
		turned.transpose_y = true;
		y = p->transpose_y ? y : swap_last_axes(b, y);
		return y ? matmul(&turned, x, y, out, &(CudaSchedule){rows, 1}) : NULL;
	}
	const CudaSchedule s = cuda_schedule(
		&(CudaProduct){c, batches, m, p->n, p->k, x->type->dtype, l->allow_tf32, false});
	return s.split > 1 ? product_split(p, b, x, y, out, &s) : matmul(p, x, y, out, &s);
}

bool layout_matmul(Layout *l, Op *op)
{
	Product p;
	if (!product_read(l, op, &p) || product_is_tiny(&p))
		return false;
	Builder b = builder_before(op);
	Value *out = l->target->tiles ? product_tiled(l, &p, &b) : product_packed(l, &p, &b);
	const Type *t = op->results[0].type;
	if (!out || !(out = build_view(&b, out, t->rank, t->dims)))
		return false;
	out->name = op->results[0].name;
	op_replace(op, &out);
	return true;
}
