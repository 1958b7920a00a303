// Pooling over windows that begin at multiples of a step that is no whole number
// (fractional_max_pool2d and 3d of ir/ops/nn.yaml): types and meaning. Graham, "Fractional
// max-pooling" (2014), with the pseudo-random sequence of one number u; all in f32, as Paddle has
// it.
#include "ir/image/image.h"
#include "ir/infer/infer.h"

#include <float.h>
#include <string.h>

typedef struct Fractional {
	int n; // spatial axes, from axis 2 on
	const Dim *const *size;
	int64_t out[3], kernel[3]; // kernel 0: up to where the next window begins
} Fractional;

static bool fractional_of(const Op *op, Fractional *f)
{
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	f->n = op->code == OP_PD_FRACTIONAL_MAX_POOL2D ? 2 : 3;
	if (x->rank != f->n + 2 || op_ints(op, "output_size", f->out, 3) != f->n)
		return op_error(op, "x needs %d axes, 'output_size' %d values", f->n + 2, f->n);
	memset(f->kernel, 0, sizeof f->kernel);
	if (op_attr(op, "kernel_size") && op_ints(op, "kernel_size", f->kernel, 3) != f->n)
		return op_error(op, "'kernel_size' needs %d values", f->n);
	f->size = x->dims + 2;
	double u = op_float(op, "random_u", 0);
	if (!(u > 0 && u < 1))
		return op_error(op, "'random_u' must be given, between 0 and 1: without it windows are "
		                    "random");
	for (int i = 0; i < f->n; i++) {
		bool small = dim_is_const(f->size[i]) && f->size[i]->value < f->out[i];
		if (f->out[i] < 1 || f->kernel[i] < 0 || f->out[i] > INT32_MAX || small)
			return op_error(op, "%lld windows of %lld on axis %d", (long long)f->out[i],
			                (long long)f->kernel[i], 2 + i);
	}
	return true;
}

bool infer_hook_fractional_pool(Op *op)
{
	Fractional f;
	const Dim *shape[MAX_RANK];
	if (!fractional_of(op, &f))
		return false;
	const Type *x = op_operand(op, 0)->type;
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	for (int i = 0; i < f.n; i++)
		shape[2 + i] = dim_const(op->ctx, f.out[i]);
	return infer_result_shape(op, 0, x->dtype, x->rank, shape) &&
	       infer_result_shape(op, 1, DT_I32, x->rank, shape);
}

// The step between windows of axis i, and u where it stays inside the image.
static Value *step_of(Builder *b, const Fractional *f, int i, double u, Value **phase)
{
	Context *c = b->ctx;
	const int64_t k = f->kernel[i], out = f->out[i];
	const Dim *room = dim_sub(c, f->size[i], dim_const(c, k)),
			  *base = dim_div(c, f->size[i], dim_const(c, out));
	Value *step = tensor_div(b, scalar_from_index(b, index_dim(b, room), DT_F32),
	                         number(b, DT_F32, (double)(k && out > 1 ? out - 1 : out)));
	*phase = number(b, DT_F32, u);
	if (k)
		return step;
	const Dim *most[] = {dim_add(c, base, dim_const(c, 2)),
	                     dim_sub(c, dim_add(c, f->size[i], dim_const(c, 1)), base)};
	Value *limit[2];
	for (int m = 0; m < 2; m++)
		limit[m] = tensor_sub(
			b, tensor_div(b, scalar_from_index(b, index_dim(b, most[m]), DT_F32), step),
			number(b, DT_F32, m ? (double)(out - 1) : 1));
	*phase = tensor_mul(b, *phase, apply2(b, OP_PD_MINIMUM, limit[0], limit[1]));
	return step;
}

// Where window `at` of axis i begins, and how many positions it has.
static void window_at(Builder *b, const Fractional *f, int i, double u, Value *at, Value **first,
                      Value **count)
{
	const Dim *beyond = dim_add(b->ctx, f->size[i], dim_const(b->ctx, 1));
	Value *phase, *step = step_of(b, f, i, u, &phase), *edge[2];
	Value *zero = apply1(b, OP_PD_TRUNC, tensor_mul(b, phase, step));
	for (int k = 0; k < 2; k++) {
		Value *place = tensor_add(b, scalar_from_index(b, index_plus(b, at, k), DT_F32), phase);
		Value *v = tensor_sub(b, apply1(b, OP_PD_TRUNC, tensor_mul(b, place, step)), zero);
		v = apply2(b, OP_PD_MINIMUM, v, scalar_from_index(b, index_dim(b, f->size[i]), DT_F32));
		edge[k] = index_from_data(b, scalar_cast(b, v, DT_I64), beyond, false);
	}
	*first = edge[0];
	Value *end = f->kernel[i]
	                 ? index_min(b, index_plus(b, edge[0], f->kernel[i]), index_dim(b, f->size[i]))
	                 : edge[1];
	*count = index_sub(b, end, edge[0]);
}

typedef struct Search {
	const Fractional *f;
	Value *x, *first[3], *count[3], *at[MAX_RANK];
} Search;

// The largest element of a window; with `best` the first position where it is.
static Value *largest(Search *s, Nest *n, Value *best, DType t)
{
	const Dim *const *size = s->f->size;
	Nest r[3];
	for (int i = 0; i < s->f->n; i++) {
		Builder *b = i ? &r[i - 1].b : &n->b;
		r[i] = reduce_open_counted(b, best ? "min" : "max", t, size[i], s->count[i]);
		s->at[2 + i] = index_min(
			&r[i].b, index_add(&r[i].b, s->first[i], r[i].at[0]),
			index_dim(&r[i].b, dim_sub(n->b.ctx, size[i], dim_const(n->b.ctx, 1))));
	}
	Builder *b = &r[s->f->n - 1].b;
	Value *v = load(b, s->x, s->at);
	if (best) {
		Value *place = scalar_from_index(b, index_linear(b, s->f->n, size, s->at + 2), DT_I64);
		v = index_where(b, apply2(b, OP_PD_EQUAL, v, best), place,
		                build_scalar_f(b, DT_I64, 0x1p30));
	}
	for (int i = s->f->n - 1; i >= 0; i--)
		v = reduce_close(&r[i], v);
	return v;
}

bool define_hook_fractional_pool(Builder *b, Op *op, Value **results)
{
	Fractional f;
	const Type *types[] = {op->results[0].type, op->results[1].type};
	if (!fractional_of(op, &f))
		return false;
	Nest n = nest_open_several(b, 2, types);
	Search s = {.f = &f, .x = op_operand(op, 0), .at = {n.at[0], n.at[1]}};
	for (int i = 0; i < f.n; i++)
		window_at(&n.b, &f, i, op_float(op, "random_u", 0), n.at[2 + i], &s.first[i], &s.count[i]);
	Value *best = largest(&s, &n, NULL, types[0]->dtype);
	Value *place = largest(&s, &n, best, DT_I64);
	return nest_close_several(&n, (Value *const[]){best, place}, results);
}
