// Products of whole numbers (lower/clean/integers.c) to kernel.integer_conv: convolutions on
// blocked images, matrix products as convolutions of one row of pixels. Weights are packed here, at
// compile time. What does not fit stays for to-loops. Called by layout.c.
#include "lower/kernels/layout.h"
#include "lower/pass/rewrite.h"

enum { LONE_ROW = 8 }; // vectors of a tile that is one row high

// Weights as they lie, and how they are packed.
typedef struct Pack {
	const Tensor *from;
	int64_t oc, ic, taps, next_oc, next_ic; // a tap is next to the one before
	int64_t kh, kw, quads, q, d;            // d: numbers side by side, of as many channels
} Pack;

static int64_t dot_numbers(const Target *t)
{
	return t->dots == DOT_QUADS ? 4 : 2;
}

static bool whole_type(const Target *t, const Type *x)
{
	return x->dtype == (t->dots == DOT_QUADS ? DT_U8 : DT_I16);
}

static int64_t pack_weight(const Pack *p, int64_t oc, int64_t ic, int64_t tap)
{
	return tensor_get_i(p->from, oc * p->next_oc + ic * p->next_ic + tap);
}

static Value *build_packed(Builder *b, const Target *t, const Pack *p, const char *name)
{
	const int64_t dims[5] = {(p->oc + p->q - 1) / p->q, p->kh, p->kw, p->quads, p->q * p->d};
	Tensor *to = tensor_new(b->ctx->arena, t->dots == DOT_QUADS ? DT_I8 : DT_I16, 5, dims);
	if (!to)
		return NULL;
	for (int64_t i = 0, n = tensor_numel(to); i < n; i++) {
		const int64_t d = i % p->d, j = i / p->d % p->q, quad = i / p->d / p->q % p->quads;
		const int64_t row = i / p->d / p->q / p->quads, ic = quad * p->d + d,
					  oc = row / p->taps * p->q + j;
		const bool there = ic < p->ic && oc < p->oc;
		tensor_set_i(to, i, there ? pack_weight(p, oc, ic, row % p->taps) : 0);
	}
	return build_parameter(b, name, "packed", to);
}

// What the zero point adds to sums, taken off them at the beginning; and again what it would have
// added at each position of the filter.
static Value *build_correction(Builder *b, const Pack *p, int64_t zero_point, const char *name)
{
	const int64_t dims[3] = {(p->oc + p->q - 1) / p->q, 1 + p->taps, p->q};
	Tensor *to = tensor_new(b->ctx->arena, DT_I32, 3, dims);
	if (!to)
		return NULL;
	for (int64_t i = 0; i < dims[0] * p->q; i++) {
		int64_t all = 0, at = i / p->q * dims[1] * p->q + i % p->q;
		for (int64_t tap = 0; tap < p->taps; tap++) {
			int64_t sum = 0;
			for (int64_t c = 0; c < p->ic && i < p->oc; c++)
				sum += pack_weight(p, i, c, tap);
			tensor_set_i(to, at + (1 + tap) * p->q, sum * zero_point);
			all += sum;
		}
		tensor_set_i(to, at, -all * zero_point);
	}
	return build_parameter(b, name, "zeros", to);
}

// The kernel whose result has type `out`, i32.
static Op *integer_kernel(Layout *l, const Conv *cv, const Pack *p, const Type *out, Value *x)
{
	Context *c = l->ctx;
	Builder b = builder_before(cv->op);
	const int64_t zero_point = op_int(cv->op, "zero_point", 0);
	const char *name = op_str(cv->filter->def, "name", cv->filter->name);
	Value *operands[3] = {x, build_packed(&b, l->target, p, name),
	                      zero_point ? build_correction(&b, p, zero_point, name) : NULL};
	if (!operands[1] || (zero_point && !operands[2]))
		return NULL;
	Op *kernel = layout_kernel(cv->op, OP_KERNEL_INTEGER_CONV, out, 3, operands);
	conv_set_geometry(kernel, cv);
	op_set_attr(kernel, "in_channels", attr_int(c, p->ic));
	op_set_attr(kernel, "zero_point", attr_int(c, zero_point));
	epilogue_identity(kernel, &kernel->regions[0]);
	return kernel;
}

static bool integer_conv(Layout *l, Op *op)
{
	Conv cv = {.op = op, .x = op_operand(op, 0), .filter = op_operand(op, 1)};
	const Tensor *w = value_constant(cv.filter);
	const Type *out = op->results[0].type;
	if (!w || w->rank != 4 || !tensor_numel(w) || !type_blockable(cv.x->type) ||
	    !type_blockable(out) || !conv_window(&cv) || op_int(op, "groups", 1) != 1)
		return false;
	const int64_t d = dot_numbers(l->target);
	const Pack p = {.from = w,
	                .oc = w->dims[0],
	                .ic = w->dims[1],
	                .taps = w->dims[2] * w->dims[3],
	                .next_oc = w->dims[1] * w->dims[2] * w->dims[3],
	                .next_ic = w->dims[2] * w->dims[3],
	                .kh = w->dims[2],
	                .kw = w->dims[3],
	                .quads = (w->dims[1] + d - 1) / d,
	                .q = conv_tile_vectors(l, w->dims[0], l->target->lanes) * l->target->lanes,
	                .d = d};
	Op *kernel = integer_kernel(l, &cv, &p, type_blocked(l, out), blocked_get(l, cv.x));
	if (kernel)
		blocked_set(l, op, &kernel->results[0]);
	return kernel != NULL;
}

// x with whole dots in a row: filled up with what meets weights of 0.
static Value *whole_dots(Builder *b, Value *x, int64_t depth, int64_t d)
{
	int64_t paddings[2 * MAX_RANK] = {0};
	const int rank = x->type->rank;
	if (depth % d == 0)
		return x;
	paddings[2 * rank - 1] = d - depth % d;
	return build1(b, OP_PD_PAD, x, "paddings", attr_ints(b->ctx, 2 * rank, paddings), NULL);
}

static bool integer_matmul(Layout *l, Op *op)
{
	Context *c = l->ctx;
	Conv cv = {.op = op,
	           .x = op_operand(op, 0),
	           .filter = op_operand(op, 1),
	           .strides = {1, 1},
	           .dilations = {1, 1}};
	const Tensor *w = value_constant(cv.filter);
	const Type *out = op->results[0].type, *x = cv.x->type;
	if (!w || w->rank != 2 || !tensor_numel(w) || x->rank < 2 ||
	    op_bool(op, "transpose_x", false) || op_bool(op, "transpose_y", false))
		return false;
	const int64_t d = dot_numbers(l->target), lanes = l->target->lanes, depth = w->dims[0],
				  vectors = (w->dims[1] + lanes - 1) / lanes;
	const Dim *one = dim_const(c, 1), *rows = dims_product(c, x->rank - 1, x->dims);
	const bool lone = dim_is(rows, 1);
	const Pack p = {.from = w,
	                .oc = w->dims[1],
	                .ic = depth,
	                .taps = 1,
	                .next_oc = 1,
	                .next_ic = w->dims[1],
	                .kh = 1,
	                .kw = 1,
	                .quads = (depth + d - 1) / d,
	                .q = lanes * (lone && vectors < LONE_ROW ? vectors
	                              : lone                     ? LONE_ROW
	                                     : conv_tile_vectors(l, w->dims[1], lanes)),
	                .d = d};
	Builder b = builder_before(op);
	Value *dots = whole_dots(&b, cv.x, depth, d), *view = NULL;
	if (dots)
		view = build_view(&b, dots, 5,
		                  (const Dim *[]){one, one, one, rows, dim_const(c, p.quads * d)});
	const Dim *dims[5] = {one, one, one, rows, dim_const(c, p.oc)};
	Op *kernel = view ? integer_kernel(l, &cv, &p, type_tensor(c, DT_I32, 5, dims, 0), view) : NULL;
	Value *made = kernel ? build_view(&b, &kernel->results[0], out->rank, out->dims) : NULL;
	if (!made)
		return false;
	op_replace(op, &made);
	return true;
}

bool layout_integer(Layout *l, Op *op)
{
	if (l->target->dots == DOT_NONE || !op->noperand ||
	    !whole_type(l->target, op_operand(op, 0)->type))
		return false;
	return op->code == OP_PD_INTEGER_CONV     ? integer_conv(l, op)
	       : op->code == OP_PD_INTEGER_MATMUL ? integer_matmul(l, op)
	                                          : false;
}
