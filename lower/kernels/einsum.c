// einsum of two operands as a product of matrices: letters of both and of the result count
// matrices, letters of one are its rows or columns, those that the result lacks are summed. Called
// by decompose.c, through the operator table.
#include "ir/infer/einsum.h"
#include "ir/build/build.h"
#include "lower/kernels/layout.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

typedef struct Letters {
	int n, label[MAX_RANK];
} Letters;

typedef struct Product {
	Einsum e;
	Letters batch, rows, columns, depth;
} Product;

static bool term_has(const int *labels, int n, int label)
{
	for (int i = 0; i < n; i++)
		if (labels[i] == label)
			return true;
	return false;
}

// Whether each axis has a letter of its own, and the size of its letter, or gets that.
static bool term_is_plain(const Einsum *e, int i, const Type *t)
{
	for (int d = 0; d < t->rank; d++) {
		const int label = e->label[i][d];
		const bool grows = einsum_stretches(e, label) && !dim_is(t->dims[d], 1);
		if ((t->dims[d] != e->size[label] && !grows) || term_has(e->label[i], d, label))
			return false;
	}
	return true;
}

// The letters of `from` that operands and result have as told, in order.
static Letters letters_of(const Einsum *e, const int *from, int n, bool x, bool y, bool out)
{
	Letters l = {0};
	for (int i = 0; i < n; i++)
		if (term_has(e->label[0], e->rank[0], from[i]) == x &&
		    term_has(e->label[1], e->rank[1], from[i]) == y &&
		    term_has(e->out, e->nout, from[i]) == out)
			l.label[l.n++] = from[i];
	return l;
}

static bool product_read(Op *op, Product *p, Value *const *list)
{
	Einsum *e = &p->e;
	if (!einsum_read(op, e) || e->n != 2 || !term_is_plain(e, 0, list[0]->type) ||
	    !term_is_plain(e, 1, list[1]->type))
		return false;
	for (int d = 0; d < e->nout; d++)
		if (term_has(e->out, d, e->out[d]))
			return false;
	p->batch = letters_of(e, e->out, e->nout, true, true, true);
	p->rows = letters_of(e, e->out, e->nout, true, false, true);
	p->columns = letters_of(e, e->out, e->nout, false, true, true);
	p->depth = letters_of(e, e->label[0], e->rank[0], true, true, false);
	// What only one operand has, and the result has not, would be summed before.
	return p->depth.n && p->batch.n + p->rows.n + p->depth.n == e->rank[0] &&
	       p->batch.n + p->columns.n + p->depth.n == e->rank[1];
}

static const Dim *size_of(Context *c, const Einsum *e, const Letters *l)
{
	const Dim *size = dim_const(c, 1);
	for (int i = 0; i < l->n; i++)
		size = dim_mul(c, size, e->size[l->label[i]]);
	return size;
}

// The axes of `have` as the letters of a, b and c follow each other; whether they do already.
static bool order_of(const int *have, int n, const Letters *const *parts, int64_t *perm)
{
	bool same = true;
	int at = 0;
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < parts[k]->n; i++, at++) {
			for (int d = 0; d < n; d++)
				if (have[d] == parts[k]->label[i])
					perm[at] = d;
			same = same && perm[at] == at;
		}
	return same;
}

// An operand as matrices [batch x first x second], or, where it lies so, with these exchanged;
// without letters of a batch as one matrix.
static Value *matrices(Builder *b, const Product *p, int i, Value *x, const Letters *first,
                       const Letters *second, bool *turned)
{
	Context *c = b->ctx;
	const Einsum *e = &p->e;
	int64_t perm[MAX_RANK], exchanged[MAX_RANK];
	const Letters *straight[3] = {&p->batch, first, second}, *turns[3] = {&p->batch, second, first};
	const bool lies = order_of(e->label[i], e->rank[i], straight, perm);
	x = einsum_spread(b, e, i, x);
	*turned = !lies && order_of(e->label[i], e->rank[i], turns, exchanged);
	if (x && !lies && !*turned)
		x = build1(b, OP_PD_TRANSPOSE, x, "perm", attr_ints(c, e->rank[i], perm), NULL);
	const Dim *dims[3] = {size_of(c, e, &p->batch), size_of(c, e, *turned ? second : first),
	                      size_of(c, e, *turned ? first : second)};
	const int skip = p->batch.n ? 0 : 1;
	return x ? build_view(b, x, 3 - skip, dims + skip) : NULL;
}

// [batch x rows x columns] as the result has it.
static Value *result_of(Builder *b, const Product *p, Value *product)
{
	Context *c = b->ctx;
	const Letters *parts[3] = {&p->batch, &p->rows, &p->columns};
	const Dim *dims[MAX_RANK];
	int made[MAX_RANK], n = 0;
	int64_t perm[MAX_RANK];
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < parts[k]->n; i++) {
			dims[n] = p->e.size[parts[k]->label[i]];
			made[n++] = parts[k]->label[i];
		}
	const Letters want = {0};
	Letters out = {.n = n};
	for (int d = 0; d < n; d++)
		out.label[d] = p->e.out[d];
	Value *v = build_view(b, product, n, dims);
	if (!v || order_of(made, n, (const Letters *[]){&out, &want, &want}, perm))
		return v;
	return build1(b, OP_PD_TRANSPOSE, v, "perm", attr_ints(c, n, perm), NULL);
}

bool decompose_hook_einsum_to_matmul(PassContext *pass, Op *op)
{
	Value *const *list;
	Product p;
	const Type *t = op->results[0].type;
	(void)pass;
	if (op_operand_list(op, 0, &list) != 2 || t->dtype != DT_F32 ||
	    list[0]->type->dtype != DT_F32 || list[1]->type->dtype != DT_F32 ||
	    !product_read(op, &p, list))
		return true;
	Context *c = op->ctx;
	Builder b = builder_before(op);
	bool tx, ty;
	Value *x = matrices(&b, &p, 0, list[0], &p.rows, &p.depth, &tx);
	Value *y = matrices(&b, &p, 1, list[1], &p.depth, &p.columns, &ty);
	Value *product = x && y ? build2(&b, OP_PD_MATMUL, x, y, "transpose_x", attr_bool(c, tx),
	                                 "transpose_y", attr_bool(c, ty), NULL)
	                        : NULL;
	Value *out = product ? result_of(&b, &p, product) : NULL;
	if (!out)
		return false;
	if (out->type != t)
		return true; // what nobody reads goes
	op_replace(op, &out);
	return true;
}
