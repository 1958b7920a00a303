// einsum: the equation, the type and the meaning, which is one loop nest for any equation.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/einsum.h"

#include <string.h>

// Labels: 26 small letters, 26 capitals, then the axes of `...` counted from the last.
enum { FIRST_DOT = EINSUM_DOTS };

static int letter_label(char ch)
{
	if (ch >= 'a' && ch <= 'z')
		return ch - 'a';
	return ch >= 'A' && ch <= 'Z' ? 26 + ch - 'A' : -1;
}

// Reads the letters of one operand or of the result up to `end`. `dots` is how many axes `...`
// stands for.
static bool read_term(const Op *op, const char *s, const char *end, int dots, int *rank,
                      int *labels)
{
	for (*rank = 0; s < end; s++) {
		int letter = letter_label(*s);
		if (*s == ' ')
			continue;
		int count = letter < 0 ? dots : 1;
		if (letter < 0 && strncmp(s, "...", 3))
			return op_error(op, "the equation has '%c', which is no letter", *s);
		if (*rank + count > MAX_RANK)
			return op_error(op, "the equation has a term of more than %d axes", MAX_RANK);
		for (int k = 0; k < count; k++)
			labels[(*rank)++] = letter < 0 ? FIRST_DOT + count - 1 - k : letter;
		s += letter < 0 ? 2 : 0;
	}
	return true;
}

static int count_letters(const char *s, const char *end)
{
	int n = 0;
	for (; s < end; s++)
		n += letter_label(*s) >= 0;
	return n;
}

bool einsum_stretches(const Einsum *e, int label)
{
	return e->ones || label >= FIRST_DOT;
}

// The labels of the sizes that an operand has; equal labels must have equal sizes, or 1, as Paddle
// 3 takes it for letters, too (where Paddle 2 ends with an error). What `...` stands for, and with
// `ones` all of them, may also be 1 where only a run knows it.
static bool term_sizes(const Op *op, Einsum *e, int i, const Type *t)
{
	for (int d = 0; d < t->rank; d++) {
		const int label = e->label[i][d];
		const Dim **size = &e->size[label];
		if (!*size || dim_is(*size, 1))
			*size = t->dims[d];
		else if (einsum_stretches(e, label) && !(dim_is_const(*size) && dim_is_const(t->dims[d])))
			*size = dim_broadcast(op->ctx, *size, t->dims[d]);
		else if (!dim_is(t->dims[d], 1) &&
		         !infer_same_dim(op, *size, t->dims[d], "sizes of one letter", size))
			return false;
	}
	return true;
}

// Without `->` the result has `...` and then every letter that occurs once, in order.
static void implicit_result(Einsum *e, int dots)
{
	int uses[FIRST_DOT] = {0};
	for (int i = 0; i < e->n; i++)
		for (int d = 0; d < e->rank[i]; d++)
			if (e->label[i][d] < FIRST_DOT)
				uses[e->label[i][d]]++;
	e->nout = 0;
	for (int k = dots - 1; k >= 0; k--)
		e->out[e->nout++] = FIRST_DOT + k;
	for (int l = 0; l < FIRST_DOT; l++)
		if (uses[l] == 1 && e->nout < MAX_RANK)
			e->out[e->nout++] = l;
}

// The next operand's term, from s to end. `most` is how many axes `...` stands for at most.
static bool operand_term(const Op *op, Einsum *e, const char *s, const char *end, int *most)
{
	Value *const *list;
	const int n = op_operand_list(op, 0, &list), i = e->n;
	if (i == n || i == EINSUM_OPERANDS)
		return op_error(op, "the equation is for more than %d operands", i);
	if (!list[i] || !type_is_tensor(list[i]->type))
		return op_error(op, "operand %d is not a tensor", i);
	const Type *t = list[i]->type;
	const int dots = t->rank - count_letters(s, end);
	const bool fits = dots >= 0 && dots <= EINSUM_LABELS - FIRST_DOT;
	if (fits && !read_term(op, s, end, dots, &e->rank[i], e->label[i]))
		return false;
	if (!fits || e->rank[i] != t->rank)
		return op_error(op, "term %d of the equation is for a tensor of another rank", i + 1);
	*most = dots > *most ? dots : *most;
	e->n++;
	return term_sizes(op, e, i, t);
}

bool einsum_read(Op *op, Einsum *e)
{
	const char *s = op_str(op, "equation", ""), *arrow = strstr(s, "->"),
			   *stop = arrow ? arrow : s + strlen(s);
	Value *const *list;
	int n = op_operand_list(op, 0, &list), most = 0;
	*e = (Einsum){.ones = op_bool(op, "ones", false)};
	for (const char *end; s <= stop; s = end + 1) {
		end = memchr(s, ',', (size_t)(stop - s));
		end = end ? end : stop;
		if (!operand_term(op, e, s, end, &most))
			return false;
	}
	if (e->n != n)
		return op_error(op, "the equation is for %d operands, there are %d", e->n, n);
	if (arrow && !read_term(op, arrow + 2, arrow + strlen(arrow), most, &e->nout, e->out))
		return false;
	if (!arrow)
		implicit_result(e, most);
	for (int d = 0; d < e->nout; d++)
		if (!e->size[e->out[d]])
			return op_error(op, "the result of the equation has a letter that no operand has");
	return true;
}

bool infer_hook_einsum(Op *op)
{
	Einsum e;
	const Dim *shape[MAX_RANK];
	Value *const *list;
	if (!einsum_read(op, &e))
		return false;
	op_operand_list(op, 0, &list);
	for (int d = 0; d < e.nout; d++)
		shape[d] = e.size[e.out[d]];
	return infer_result_shape(op, 0, list[0]->type->dtype, e.nout, shape);
}

Value *einsum_spread(Builder *b, const Einsum *e, int i, Value *x)
{
	const Dim *dims[MAX_RANK];
	const Type *t = x ? x->type : NULL;
	for (int d = 0; t && d < t->rank; d++) {
		const int label = e->label[i][d];
		dims[d] = !einsum_stretches(e, label) || dim_is(t->dims[d], 1) ? t->dims[d]
		                                                               : e->size[label];
	}
	return t ? tensor_spread(b, x, t->rank, dims) : NULL;
}

// The product of one element of each operand, at the positions of the letters.
static Value *product_at(Builder *b, const Einsum *e, Value *const *operands, DType t,
                         Value *const *at)
{
	Value *from[MAX_RANK], *product = NULL;
	for (int i = 0; i < e->n; i++) {
		const Type *type = operands[i]->type;
		for (int d = 0; d < type->rank; d++) {
			const int label = e->label[i][d];
			const bool one = dim_is(type->dims[d], 1) && !dim_is(e->size[label], 1);
			from[d] = one ? index_const(b, 0) : at[label];
		}
		Value *x = scalar_cast(b, load(b, operands[i], from), t);
		product = product ? tensor_mul(b, product, x) : x;
	}
	return product;
}

bool define_hook_einsum(Builder *b, Op *op, Value **results)
{
	Einsum e;
	Value *const *list, *at[EINSUM_LABELS] = {NULL}, *spread[EINSUM_OPERANDS];
	const Dim *extents[MAX_RANK];
	int summed[MAX_RANK], nsum = 0;
	if (!einsum_read(op, &e))
		return false;
	op_operand_list(op, 0, &list);
	for (int i = 0; i < e.n; i++)
		if (!(spread[i] = einsum_spread(b, &e, i, list[i])))
			return false;
	const Type *out = op->results[0].type;
	Nest n = nest_open(b, out), r;
	for (int d = 0; d < e.nout; d++)
		at[e.out[d]] = n.at[d];
	for (int l = 0; l < EINSUM_LABELS; l++) {
		if (!e.size[l] || at[l])
			continue;
		if (nsum == MAX_RANK)
			return op_error(op, "the equation sums over more than %d letters", MAX_RANK);
		summed[nsum] = l;
		extents[nsum++] = e.size[l];
	}
	Builder *in = &n.b;
	if (nsum) {
		r = reduce_open(&n.b, "sum", out->dtype, nsum, extents);
		for (int k = 0; k < nsum; k++)
			at[summed[k]] = r.at[k];
		in = &r.b;
	}
	Value *product = product_at(in, &e, spread, out->dtype, at);
	results[0] = nest_close(&n, nsum ? reduce_close(&r, product) : product);
	return results[0] != NULL;
}
