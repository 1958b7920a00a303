// Interpreter hook of kernel.attention: a row of scores at a time, sums in double. The keys of a
// split kernel are divided evenly here; what its results make together does not depend on that.
#include "ir/infer/attention.h"
#include "ir/interp/hooks.h"

#include <math.h>

// A region over the positions of its domain.
typedef struct Domain {
	Program *program;
	int rank, first; // first: the argument at which positions begin
	int64_t dims[MAX_RANK];
} Domain;

typedef struct Attention {
	Interp *in;
	const Op *op;
	Domain region[ATTENTION_REGIONS];
	int64_t batches, rows, keys, depth, columns, split;
	double *query, *key, *value, *scores, *sums; // one row; all keys; all values; one row; one row
} Attention;

static bool domain_open(Attention *a, int region)
{
	Domain *d = &a->region[region];
	const Type *t = attention_domain(a->op, region);
	*d = (Domain){.rank = t->rank,
	              .first = region == ATTENTION_SCORE || region == ATTENTION_EPILOGUE};
	for (int i = 0; i < t->rank; i++)
		if (!interp_size(a->in, a->op, t->dims[i], &d->dims[i]))
			return false;
	d->program = program_compile(a->in, &a->op->regions[region]);
	return d->program != NULL;
}

// The region's elements from position `at` on, as f32; acc: what its first argument is for each of
// them, or NULL.
static bool domain_run(const Domain *d, int64_t at, int64_t n, const double *acc, double *out)
{
	for (int64_t done = 0; done < n; done += STRIP) {
		const int m = n - done < STRIP ? (int)(n - done) : STRIP;
		for (int l = 0; acc && l < m; l++)
			program_argument(d->program, 0)[l].f = (float)acc[done + l];
		program_set_position(d->program, d->first, d->rank, d->dims, at + done, m);
		if (!program_run_strip(d->program, m))
			return false;
		for (int l = 0; l < m; l++)
			out[done + l] = program_result(d->program, 0)[l].f;
	}
	return true;
}

// Gives the logarithm of the sum of exponentials. In a part of the keys, all may be hidden: then
// the weights are 0.
static double scores_to_weights(int64_t n, double *row, bool part)
{
	double max = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++)
		max = row[i] > max || isnan(row[i]) ? row[i] : max;
	const double base = part && max == -INFINITY ? 0 : max;
	for (int64_t i = 0; i < n; i++)
		sum += row[i] = exp(row[i] - base);
	for (int64_t i = 0; i < n; i++)
		row[i] = part && sum == 0 ? 0 : row[i] / sum;
	return base + log(sum);
}

// Where row r of a batch begins in the result, whose axes stand in another order.
static int64_t row_begins(const Attention *a, int64_t part, int64_t batch, int64_t r)
{
	const Domain *out = &a->region[ATTENTION_EPILOGUE], *query = &a->region[ATTENTION_QUERY];
	const int rank = query->rank, lead = out->rank - rank;
	int64_t at[MAX_RANK], linear = part;
	at[rank - 1] = 0;
	at[rank - 2] = r;
	for (int d = rank - 3; d >= 0; d--) {
		at[d] = batch % query->dims[d];
		batch /= query->dims[d];
	}
	for (int i = 0; i < rank; i++)
		linear = linear * out->dims[lead + i] + at[attention_axis(a->op, i)];
	return linear;
}

// What the keys of a part make of a row; all of them without parts. The row's scores are there.
static bool part_run(const Attention *a, int64_t part, int64_t batch, int64_t r, Tensor *const *out)
{
	const int64_t each = (a->keys + a->split - 1) / a->split,
				  low = part * each < a->keys ? part * each : a->keys;
	const int64_t end = low + each < a->keys ? low + each : a->keys;
	const double all = scores_to_weights(end - low, a->scores + low, a->split > 1);
	for (int64_t c = 0; c < a->columns; c++) {
		a->sums[c] = 0;
		for (int64_t j = low; j < end; j++)
			a->sums[c] += a->scores[j] * a->value[j * a->columns + c];
	}
	const int64_t begin = row_begins(a, part, batch, r);
	if (!domain_run(&a->region[ATTENTION_EPILOGUE], begin, a->columns, a->sums, a->sums))
		return false;
	for (int64_t c = 0; c < a->columns; c++)
		lanes_store(out[0], begin + c, 1, &(Lane){.f = a->sums[c]});
	if (a->split > 1)
		lanes_store(out[1], (part * a->batches + batch) * a->rows + r, 1, &(Lane){.f = all});
	return true;
}

static bool row_run(const Attention *a, int64_t batch, int64_t r, Tensor *const *out)
{
	const int64_t row = batch * a->rows + r;
	if (!domain_run(&a->region[ATTENTION_QUERY], row * a->depth, a->depth, NULL, a->query))
		return false;
	for (int64_t j = 0; j < a->keys; j++) {
		a->scores[j] = 0;
		for (int64_t d = 0; d < a->depth; d++)
			a->scores[j] += a->query[d] * a->key[j * a->depth + d];
	}
	if (!domain_run(&a->region[ATTENTION_SCORE], row * a->keys, a->keys, a->scores, a->scores))
		return false;
	for (int64_t part = 0; part < a->split; part++)
		if (!part_run(a, part, batch, r, out))
			return false;
	return true;
}

bool interpret_hook_kernel_attention(Interp *in, Op *op)
{
	Attention a = {.in = in, .op = op, .batches = 1, .split = op_int(op, "split", 1)};
	Tensor *out[2] = {interp_result(in, op, 0), op->nresult > 1 ? interp_result(in, op, 1) : NULL};
	if (!out[0] || (op->nresult > 1 && !out[1]))
		return false;
	for (int i = 0; i < ATTENTION_REGIONS; i++)
		if (!domain_open(&a, i))
			return false;
	const int rank = a.region[ATTENTION_QUERY].rank;
	const int64_t *value = a.region[ATTENTION_VALUE].dims;
	a.rows = a.region[ATTENTION_QUERY].dims[rank - 2];
	a.depth = a.region[ATTENTION_QUERY].dims[rank - 1];
	a.keys = value[rank - 2];
	a.columns = value[rank - 1];
	for (int d = 0; d < rank - 2; d++)
		a.batches *= value[d];
	a.query = NEW_ARRAY(interp_arena(in), (size_t)a.depth + 1, double);
	a.key = NEW_ARRAY(interp_arena(in), (size_t)(a.keys * a.depth) + 1, double);
	a.value = NEW_ARRAY(interp_arena(in), (size_t)(a.keys * a.columns) + 1, double);
	a.scores = NEW_ARRAY(interp_arena(in), (size_t)a.keys + 1, double);
	a.sums = NEW_ARRAY(interp_arena(in), (size_t)a.columns + 1, double);
	for (int64_t b = 0; b < a.batches && tensor_numel(out[0]); b++) {
		const int64_t keys = a.keys * a.depth, values = a.keys * a.columns;
		if (!domain_run(&a.region[ATTENTION_KEY], b * keys, keys, NULL, a.key) ||
		    !domain_run(&a.region[ATTENTION_VALUE], b * values, values, NULL, a.value))
			return false;
		for (int64_t r = 0; r < a.rows; r++)
			if (!row_run(&a, b, r, out))
				return false;
	}
	return true;
}
