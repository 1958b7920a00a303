// Interpreter hooks of the kernel dialect: what the templates compute, in plain loops. Epilogues,
// products and rows. Products are accumulated in double and rounded to what the epilogue takes
// before it.
#include "ir/interp/hooks.h"

#include <math.h>
#include <string.h>

// ---- epilogues ----------------------------------------------------------------------------------

bool interp_check_f32(Interp *in, const Op *op, const Tensor *t)
{
	return t->dtype == DT_F32 ||
	       op_error(op, "the kernel is for f32, not %s", dtype_name(t->dtype));
}

const float *interp_floats(Interp *in, const Tensor *t)
{
	if (t->dtype == DT_F32)
		return t->data;
	const int64_t n = tensor_numel(t);
	float *copy = NEW_ARRAY(interp_arena(in), (size_t)n + 1, float);
	for (int64_t i = 0; i < n; i++)
		copy[i] = (float)tensor_get_f(t, i);
	return copy;
}

// A program for region `i` with `nextra` arguments before the position.
static Program *kernel_program(Interp *in, const Op *op, int i, int nextra, int rank)
{
	const Block *b = i < op->nregion ? region_entry(&op->regions[i]) : NULL;
	if (!b || b->narg != nextra + rank || !b->last || b->last->noperand != 1) {
		op_error(op, "region %d is malformed", i);
		return NULL;
	}
	return program_compile(in, &op->regions[i]);
}

bool sink_open(Interp *in, const Op *op, int region, Sink *s)
{
	s->in = in;
	s->out = interp_result(in, op, 0);
	if (!s->out)
		return false;
	if (tensor_numel(s->out) == 0)
		return true;
	s->epilogue = kernel_program(in, op, region, 1, s->out->rank);
	if (!s->epilogue)
		return false;
	const DType sum = region_entry(&op->regions[region])->args[0]->type->dtype;
	s->whole = dtype_is_int(sum);
	s->narrow = sum != DT_F64;
	return program_result_dtype(s->epilogue, 0) == s->out->dtype ||
	       op_error(op, "the epilogue yields another type than the result's");
}

bool sink_put(Sink *s, int64_t at, int64_t n, const double *acc)
{
	for (int64_t done = 0; done < n; done += STRIP) {
		int m = n - done < STRIP ? (int)(n - done) : STRIP;
		Lane *arg = program_argument(s->epilogue, 0);
		for (int l = 0; l < m; l++)
			if (s->whole)
				arg[l].i = (int64_t)acc[done + l];
			else
				arg[l].f = s->narrow ? (float)acc[done + l] : acc[done + l];
		program_set_position(s->epilogue, 1, s->out->rank, s->out->dims, at + done, m);
		if (!program_run_strip(s->epilogue, m))
			return false;
		lanes_store(s->out, at + done, m, program_result(s->epilogue, 0));
	}
	return true;
}

// ---- matrix products ----------------------------------------------------------------------------

typedef struct Gemm {
	int64_t batch, m, n, k, nr, panels;
	bool shared; // one b for all batches
	bool turned; // a has its last two axes the other way round
} Gemm;

static bool gemm_sizes(Interp *in, const Op *op, const Tensor *a, const Tensor *b,
                       const Tensor *out, Gemm *g)
{
	if (a->rank < 2 || b->rank < 3 || out->rank != a->rank)
		return op_error(op, "operands of rank %d and %d", a->rank, b->rank);
	const bool turned = op_bool(op, "transpose_a", false);
	*g = (Gemm){.batch = 1,
	            .turned = turned,
	            .m = a->dims[a->rank - (turned ? 1 : 2)],
	            .n = out->dims[out->rank - 1],
	            .k = a->dims[a->rank - (turned ? 2 : 1)],
	            .nr = b->dims[b->rank - 1],
	            .panels = b->dims[b->rank - 3],
	            .shared = b->rank == 3};
	for (int d = 0; d < a->rank - 2; d++)
		g->batch *= a->dims[d];
	int64_t need = g->panels * g->k * g->nr * (g->shared ? 1 : g->batch);
	if (g->panels * g->nr < g->n || tensor_numel(b) != need ||
	    tensor_numel(out) != g->batch * g->m * g->n)
		return op_error(op, "the operands do not fit together");
	return true;
}

// Row `row` of the result, all batches counted through, acc[panels * nr], from the matrix of `b`
// that begins at y.
static void gemm_row(const Gemm *g, const Tensor *a, int64_t row, const Tensor *b, int64_t y,
                     double *acc)
{
	const int64_t from = g->turned ? row / g->m * g->m * g->k + row % g->m : row * g->k,
				  step = g->turned ? g->m : 1;
	const bool wide = b->dtype == DT_F64;
	const float *narrow = b->data;
	const double *whole = b->data;
	for (int64_t p = 0; p < g->panels; p++) {
		double *to = acc + p * g->nr;
		for (int64_t j = 0; j < g->nr; j++)
			to[j] = 0;
		for (int64_t k = 0; k < g->k; k++, y += g->nr) {
			const double factor = tensor_get_f(a, from + k * step);
			for (int64_t j = 0; j < g->nr; j++)
				to[j] += factor * (wide ? whole[y + j] : (double)narrow[y + j]);
		}
	}
}

static bool gemm_elements(Interp *in, const Op *op, const Tensor *a, const Tensor *b)
{
	return (a->dtype == DT_F64 && b->dtype == DT_F64) ||
	       (interp_check_f32(in, op, a) && interp_check_f32(in, op, b));
}

bool interpret_hook_kernel_gemm(Interp *in, Op *op)
{
	Tensor *a = interp_operand(in, op, 0), *b = interp_operand(in, op, 1);
	Sink s = {0};
	Gemm g = {0};
	if (!a || !b || !gemm_elements(in, op, a, b) || !sink_open(in, op, 0, &s) ||
	    !gemm_sizes(in, op, a, b, s.out, &g))
		return false;
	double *acc = NEW_ARRAY(interp_arena(in), (size_t)(g.panels * g.nr) + 1, double);
	for (int64_t row = 0; row < g.batch * g.m && s.epilogue; row++) {
		int64_t from = g.shared ? 0 : row / g.m * g.panels * g.k * g.nr;
		gemm_row(&g, a, row, b, from, acc);
		if (!sink_put(&s, row * g.n, g.n, acc))
			return false;
	}
	return true;
}

// The first element of the matrix of `t` that serves matrix `at` of the result; batch dims
// broadcast.
static int64_t matrix_begin(const Tensor *t, const Tensor *out, int64_t at)
{
	int64_t begin = 0, stride = t->dims[t->rank - 2] * t->dims[t->rank - 1];
	for (int i = 3; i <= t->rank; i++) {
		const int64_t n = out->dims[out->rank - i];
		begin += t->dims[t->rank - i] == 1 ? 0 : at % n * stride;
		stride *= t->dims[t->rank - i];
		at /= n;
	}
	return begin;
}

// The sum of elements [begin, end) of a row of a, `step` apart from x on, times those of a column
// of b, `along` apart from y on.
static double row_times(const Tensor *a, int64_t x, int64_t step, const Tensor *b, int64_t y,
                        int64_t along, int64_t begin, int64_t end)
{
	double sum = 0;
	for (int64_t i = begin; i < end; i++)
		sum += tensor_get_f(a, x + i * step) * tensor_get_f(b, y + i * along);
	return sum;
}

// Row `row` of all the products' rows, of the terms from begin to end.
static void matmul_row(const Op *op, const Tensor *a, const Tensor *b, const Tensor *out,
                       int64_t row, int64_t begin, int64_t end, double *acc)
{
	const bool ta = op_bool(op, "transpose_a", false), tb = op_bool(op, "transpose_b", false);
	const int64_t m = out->dims[out->rank - 2], n = out->dims[out->rank - 1],
				  k = a->dims[a->rank - (ta ? 2 : 1)];
	const int64_t x = matrix_begin(a, out, row / m) + row % m * (ta ? 1 : k),
				  y = matrix_begin(b, out, row / m);
	for (int64_t j = 0; j < n; j++)
		acc[j] = row_times(a, x, ta ? m : 1, b, y + (tb ? j * k : j), tb ? 1 : n, begin, end);
}

bool interpret_hook_kernel_matmul(Interp *in, Op *op)
{
	const Tensor *a = interp_operand(in, op, 0), *b = interp_operand(in, op, 1);
	Sink s = {0};
	if (!a || !b || !sink_open(in, op, 0, &s))
		return false;
	const bool ta = op_bool(op, "transpose_a", false), tb = op_bool(op, "transpose_b", false);
	const int64_t n = s.out->dims[s.out->rank - 1], k = a->dims[a->rank - (ta ? 2 : 1)];
	const int64_t split = op_int(op, "split", 1), rows = tensor_numel(s.out) / (n ? n : 1),
				  part = (k + split - 1) / split;
	const int64_t depth = b->dims[b->rank - (tb ? 1 : 2)];
	if (depth != k)
		return op_error(op, "%lld columns times %lld rows", (long long)k, (long long)depth);
	double *acc = NEW_ARRAY(interp_arena(in), (size_t)n + 1, double);
	for (int64_t row = 0; s.epilogue && row < rows; row++) {
		const int64_t begin = row / (rows / split) * part,
					  end = begin + part < k ? begin + part : k;
		matmul_row(op, a, b, s.out, row, begin, end, acc);
		if (!sink_put(&s, row * n, n, acc))
			return false;
	}
	return true;
}

// ---- softmax and layer norm ---------------------------------------------------------------------

// Reads n elements from linear position `at` of the result's shape through an input region.
static bool read_row(Program *p, const Tensor *shape, int64_t at, int64_t n, double *row)
{
	for (int64_t done = 0; done < n; done += STRIP) {
		int m = n - done < STRIP ? (int)(n - done) : STRIP;
		program_set_position(p, 0, shape->rank, shape->dims, at + done, m);
		if (!program_run_strip(p, m))
			return false;
		for (int l = 0; l < m; l++)
			row[done + l] = program_result(p, 0)[l].f;
	}
	return true;
}

// n elements, `step` apart.
static void softmax_row(int64_t n, int64_t step, bool log_of, double *row)
{
	double max = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++)
		max = row[i * step] > max || isnan(row[i * step]) ? row[i * step] : max;
	for (int64_t i = 0; i < n; i++)
		sum += exp(row[i * step] - max);
	for (int64_t i = 0; i < n; i++)
		row[i * step] = log_of ? row[i * step] - max - log(sum) : exp(row[i * step] - max) / sum;
}

bool interpret_hook_kernel_softmax(Interp *in, Op *op)
{
	Sink s = {0};
	if (!sink_open(in, op, 1, &s) || !s.epilogue)
		return s.out && !s.epilogue && tensor_numel(s.out) == 0;
	const int rank = s.out->rank;
	int64_t axis = op_int(op, "axis", -1), inner = 1;
	axis = axis < 0 ? axis + rank : axis;
	if (axis < 0 || axis >= rank)
		return op_error(op, "the result has no such axis");
	Program *input = kernel_program(in, op, 0, 0, rank);
	if (!input)
		return false;
	for (int i = (int)axis + 1; i < rank; i++)
		inner *= s.out->dims[i];
	const int64_t n = s.out->dims[axis], total = tensor_numel(s.out);
	double *rows = NEW_ARRAY(interp_arena(in), (size_t)(n * inner), double);
	for (int64_t at = 0; at < total; at += n * inner) {
		if (!read_row(input, s.out, at, n * inner, rows))
			return false;
		for (int64_t i = 0; i < inner; i++)
			softmax_row(n, inner, op_bool(op, "log", false), rows + i);
		if (!sink_put(&s, at, n * inner, rows))
			return false;
	}
	return true;
}

// scale and bias (NULL: none) hold n elements each.
static void layer_norm_row(int64_t n, double epsilon, const Tensor *scale, const Tensor *bias,
                           double *row)
{
	double mean = 0, variance = 0;
	for (int64_t i = 0; i < n; i++)
		mean += row[i] / (double)n;
	for (int64_t i = 0; i < n; i++)
		variance += (row[i] - mean) * (row[i] - mean) / (double)n;
	double factor = 1 / sqrt(variance + epsilon);
	for (int64_t i = 0; i < n; i++) {
		row[i] = (row[i] - mean) * factor;
		row[i] *= scale ? tensor_get_f(scale, i) : 1;
		row[i] += bias ? tensor_get_f(bias, i) : 0;
	}
}

static bool row_vector(Interp *in, const Op *op, int i, int64_t n, Tensor **out)
{
	*out = NULL;
	if (!op_operand(op, i))
		return true;
	*out = interp_operand(in, op, i);
	return *out && (tensor_numel(*out) == n ||
	                op_error(op, "operand %d must hold %lld elements", i, (long long)n));
}

bool interpret_hook_kernel_layer_norm(Interp *in, Op *op)
{
	Sink s = {0};
	Tensor *scale, *bias;
	int64_t axes = op_int(op, "axes", 1), n = 1;
	if (!sink_open(in, op, 1, &s) || !s.epilogue)
		return s.out && !s.epilogue && tensor_numel(s.out) == 0;
	if (axes < 1 || axes > s.out->rank)
		return op_error(op, "%lld axes of a tensor of rank %d", (long long)axes, s.out->rank);
	for (int64_t d = s.out->rank - axes; d < s.out->rank; d++)
		n *= s.out->dims[d];
	Program *input = kernel_program(in, op, 0, 0, s.out->rank);
	if (!input || !row_vector(in, op, 0, n, &scale) || !row_vector(in, op, 1, n, &bias))
		return false;
	double *row = NEW_ARRAY(interp_arena(in), (size_t)n, double);
	for (int64_t at = 0; at < tensor_numel(s.out); at += n) {
		if (!read_row(input, s.out, at, n, row))
			return false;
		layer_norm_row(n, op_float(op, "epsilon", 1e-5), scale, bias, row);
		if (!sink_put(&s, at, n, row))
			return false;
	}
	return true;
}
