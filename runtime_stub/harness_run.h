/* One run: its inputs from files, or made up, and memory for what the run needs and gives. A part
 * of harness.c, which alone includes it. */
#ifndef HARNESS_RUN_H
#define HARNESS_RUN_H

#include "harness_arrays.h"
#include "harness_profile.h"
#include "harness_trace.h"

enum { FIRST_BOUND = 64, FIRST_BYTES = 1 << 28 };

typedef struct Feed {
	const char *name, *path; /* path: LoD as text when `lod` */
	int run;
	bool lod;
} Feed;

typedef struct Harness {
	const pd_model_info *info;
	const char *weights_path, *out_dir, *state_dir;
	bool redzone, bench, trace;
	int repeat, nfeed, nrun; /* repeat 0: by the clock */
	int threads;
	void *pool;
	Feed *feeds;
	void *weights;
	size_t weights_size;
	void *instance;
	Tracer tracer;
	Profile profile;
	Array *parameters; /* after the last run; data NULL: there was none */
} Harness;

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Takes sizes of symbols from the dims of an input, and checks the constant ones. */
static void symbols_solve(const pd_model_info *info, const pd_tensor_info *t, const Array *a,
                          int64_t *symbols)
{
	if (a->rank != t->rank)
		fail("input '%s' has %d dims, but the model wants %d", t->name, a->rank, t->rank);
	for (int d = 0; d < t->rank; d++) {
		int s = t->dims[d].symbol;
		int64_t want = s >= 0 ? symbols[s] : s == PD_DIM_FIXED ? t->dims[d].value : -1;
		if (s >= 0 && want < 0)
			want = symbols[s] = a->dims[d] - t->dims[d].value;
		if (s >= 0)
			want += t->dims[d].value;
		if (want >= 0 && want != a->dims[d])
			fail("input '%s': dim %d is %" PRId64 ", but %s%s is %" PRId64, t->name, d, a->dims[d],
			     s >= 0 ? "size " : "the model's", s >= 0 ? info->symbol[s].name : "", want);
	}
}

static void shapes_check(const pd_model_info *info, const Array *in, const int64_t *dims)
{
	for (int i = 0; i < info->inputs; i++)
		for (int d = 0; d < info->input[i].rank; d++, dims++)
			if (in[i].data && in[i].dims[d] != *dims)
				fail("input '%s': dim %d is %" PRId64 ", but follows from other sizes as %" PRId64,
				     info->input[i].name, d, in[i].dims[d], *dims);
}

static size_t array_shape(Array *a, const pd_tensor_info *t, const int64_t *dims)
{
	a->descr = dtype_descr[t->dtype];
	a->rank = t->rank;
	a->bytes = pd_dtype_size(t->dtype);
	for (int d = 0; d < t->rank; d++) {
		if (dims[d] < 0 || (dims[d] && a->bytes > SIZE_MAX / 4 / (size_t)dims[d]))
			fail("'%s': impossible size", t->name);
		a->dims[d] = dims[d];
		a->bytes *= (size_t)dims[d];
	}
	return a->bytes;
}

/* ---- inputs and memory ----------------------------------------------------------------------- */

typedef struct Run {
	Array *in, *out;
	const void **inputs;
	void **outputs;
	int64_t *symbols, *bounds; /* bounds: what symbols found by the run may become */
	unsigned char *workspace;
	size_t workspace_size;
} Run;

/* Made-up contents: fractions for floating numbers, zeros (valid indices) otherwise. */
static void array_fill(Array *a, pd_dtype dtype)
{
	memset(a->data, 0, a->bytes);
	uint32_t state = 1;
	for (size_t i = 0; dtype == PD_F32 && i < a->bytes / sizeof(float); i++) {
		state = state * 1664525u + 1013904223u;
		float x = (float)(state >> 8) * 0x1p-24f;
		memcpy(a->data + i * sizeof x, &x, sizeof x);
	}
}

/* Made-up offsets: sequences of about the same length. */
static void offsets_fill(Run *r, int k, const pd_model_info *info)
{
	const pd_tensor_info *t = &info->input[k];
	const Array *of = &r->in[t->lod_of];
	int64_t n = r->in[k].dims[0] - 1, end = n;
	if (t->level + 1 == t->levels && of->rank)
		end = of->dims[0];
	for (int64_t i = 0; i <= n; i++) {
		const int64_t v = n ? i * end / n : 0;
		memcpy(r->in[k].data + (size_t)i * sizeof v, &v, sizeof v);
	}
}

/* The LoD that is given for an input in this run; NULL: none. */
static const char *lod_find(const Harness *h, int number, const char *name)
{
	for (int i = 0; i < h->nfeed; i++)
		if (h->feeds[i].lod && h->feeds[i].run == number && !strcmp(h->feeds[i].name, name))
			return h->feeds[i].path;
	return NULL;
}

/* Inputs that are the offsets of others. */
static void offsets_read(const Harness *h, int number, Run *r)
{
	for (int k = 0; k < h->info->inputs; k++) {
		const pd_tensor_info *t = &h->info->input[k];
		if (t->lod_of < 0 || !r->in[t->lod_of].data)
			continue;
		const Array *of = &r->in[t->lod_of];
		const char *name = h->info->input[t->lod_of].name, *text = lod_find(h, number, name);
		if (text && (!lod_level(text, t->levels - 1) || lod_level(text, t->levels)))
			fail("--lod %s: the model needs %d levels", name, t->levels);
		const char *next = lod_level(text, t->level + 1);
		int64_t end = t->level + 1 == t->levels ? of->rank ? of->dims[0] : 0
		              : next                    ? (int64_t)lod_count(next) - 1
		                                        : 1;
		r->in[k] = lod_read(name, lod_level(text, t->level), end);
		symbols_solve(h->info, t, &r->in[k], r->symbols);
	}
}

/* All elements that are fed under the name of input k. */
static void elements_read(const Harness *h, int number, Run *r, int k)
{
	const pd_tensor_info *t = &h->info->input[k];
	const int sizes = part_find(h->info->input, h->info->inputs, k, PD_ARRAY_SIZES);
	Array *elements = list_new(h->nfeed, sizeof *elements);
	int n = 0;
	for (int i = 0; i < h->nfeed; i++)
		if (h->feeds[i].run == number && !h->feeds[i].lod && !strcmp(h->feeds[i].name, t->name))
			elements[n++] = npy_read(h->feeds[i].path, t->dtype);
	r->in[k] = array_gather(t->name, elements, n, sizes < 0 ? NULL : &r->in[sizes]);
	symbols_solve(h->info, t, &r->in[k], r->symbols);
	if (sizes >= 0)
		symbols_solve(h->info, &h->info->input[sizes], &r->in[sizes], r->symbols);
	while (n-- > 0)
		zone_free(elements[n].data);
	free(elements);
}

static void fail_unknown_input(const pd_model_info *info, const char *name)
{
	fprintf(stderr, "error: the model has no input '%s'; its inputs are", name);
	for (int i = 0; i < info->inputs; i++)
		fprintf(stderr, "%s '%s'", i ? "," : "", info->input[i].name);
	fprintf(stderr, info->inputs ? "\n" : " none\n");
	exit(1);
}

static void inputs_read(const Harness *h, int number, Run *r)
{
	const pd_model_info *info = h->info;
	for (int i = 0; i < h->nfeed; i++) {
		const Feed *f = &h->feeds[i];
		int k = 0;
		while (k < info->inputs && strcmp(info->input[k].name, f->name))
			k++;
		if (f->run != number || f->lod)
			continue;
		if (k == info->inputs)
			fail_unknown_input(info, f->name);
		if (info->input[k].part == PD_ARRAY_DATA) {
			if (!r->in[k].data)
				elements_read(h, number, r, k);
			continue;
		}
		if (r->in[k].data)
			fail("input '%s' is given twice", f->name);
		r->in[k] = npy_read(f->path, info->input[k].dtype);
		symbols_solve(info, &info->input[k], &r->in[k], r->symbols);
	}
	offsets_read(h, number, r);
	for (int k = 0; k < info->inputs; k++)
		if (!r->in[k].data && !h->bench)
			fail("input '%s' is not given", info->input[k].name);
}

/* Sizes of outputs, from the symbols as they are now. */
static void outputs_shape(const Harness *h, Run *r)
{
	const pd_model_info *info = h->info;
	int64_t *dims = list_new((info->inputs + info->outputs) * MAX_DIMS, sizeof *dims), *at = dims;
	info->shapes(r->symbols, dims);
	for (int i = 0; i < info->inputs; i++)
		at += info->input[i].rank;
	for (int i = 0; i < info->outputs; at += info->output[i++].rank) {
		r->out[i].rank = 0;
		array_shape(&r->out[i], &info->output[i], at);
	}
	free(dims);
}

/* Whether the bounds ask for more memory than sizes should that nobody knows yet. */
static bool bounds_are_large(const Harness *h, const Run *r)
{
	const pd_model_info *info = h->info;
	int64_t *room = list_new(info->outputs, sizeof *room);
	bool large = info->workspace_size(r->bounds) > FIRST_BYTES;
	info->room(r->bounds, room);
	for (int i = 0; i < info->outputs; i++)
		large = large || room[i] < 0 || room[i] > FIRST_BYTES;
	free(room);
	return large;
}

/* Where many sizes are found by the run, their bounds begin smaller: they multiply. */
static void bounds_begin(const Harness *h, Run *r)
{
	const pd_model_info *info = h->info;
	for (int64_t first = FIRST_BOUND / 2; first && bounds_are_large(h, r); first /= 2)
		for (int i = 0; i < info->symbols; i++)
			if (r->symbols[i] < 0 && !info->symbol[i].bounded && info->symbol[i].found)
				r->bounds[i] = first;
}

/* Workspace and outputs as large as the bounds ask for. */
static void memory_prepare(const Harness *h, Run *r)
{
	const pd_model_info *info = h->info;
	memcpy(r->symbols, r->bounds, (size_t)info->symbols * sizeof *r->symbols);
	r->workspace_size = info->workspace_size(r->symbols);
	if (r->workspace_size == SIZE_MAX)
		fail("the model cannot run with these sizes");
	int64_t *room = list_new(info->outputs, sizeof *room);
	info->room(r->symbols, room);
	for (int i = 0; i < info->outputs; i++) {
		const size_t size = pd_dtype_size(info->output[i].dtype);
		if (room[i] < 0 || (room[i] && size > SIZE_MAX / 4 / (size_t)room[i]))
			fail("'%s': impossible size", info->output[i].name);
		zone_free(r->out[i].data);
		r->out[i].bytes = size * (size_t)room[i];
		r->outputs[i] = r->out[i].data = zone_new(r->out[i].bytes);
	}
	free(room);
	zone_free(r->workspace);
	r->workspace = zone_new(r->workspace_size);
	if (h->redzone) /* NaN: what is read before it was written shows in the results */
		memset(r->workspace, 0xff, r->workspace_size);
}

static void run_prepare(const Harness *h, int number, Run *r)
{
	const pd_model_info *info = h->info;
	r->in = list_new(info->inputs, sizeof *r->in);
	r->out = list_new(info->outputs, sizeof *r->out);
	r->inputs = list_new(info->inputs, sizeof *r->inputs);
	r->outputs = list_new(info->outputs, sizeof *r->outputs);
	r->symbols = list_new(info->symbols, sizeof *r->symbols);
	r->bounds = list_new(info->symbols, sizeof *r->bounds);
	for (int i = 0; i < info->symbols; i++)
		r->symbols[i] = -1;
	inputs_read(h, number, r);
	for (int i = 0; i < info->symbols; i++)
		r->bounds[i] = r->symbols[i] >= 0        ? r->symbols[i]
		               : info->symbol[i].bounded ? -1
		               : info->symbol[i].found   ? FIRST_BOUND
		                                         : 1;
	bounds_begin(h, r);
	memory_prepare(h, r);
	int64_t *dims = list_new((info->inputs + info->outputs) * MAX_DIMS, sizeof *dims), *at = dims;
	info->shapes(r->symbols, dims);
	shapes_check(info, r->in, dims);
	for (int i = 0; i < info->inputs; at += info->input[i++].rank) {
		if (!r->in[i].data) {
			r->in[i].data = zone_new(array_shape(&r->in[i], &info->input[i], at));
			array_fill(&r->in[i], info->input[i].dtype);
			if (info->input[i].lod_of >= 0)
				offsets_fill(r, i, info);
		}
		r->inputs[i] = r->in[i].data;
	}
	free(dims);
}

static void run_free(const Harness *h, Run *r)
{
	for (int i = 0; i < h->info->inputs; i++)
		zone_free(r->in[i].data);
	for (int i = 0; i < h->info->outputs; i++)
		zone_free(r->out[i].data);
	zone_free(r->workspace);
	free(r->in);
	free(r->out);
	free(r->inputs);
	free(r->outputs);
	free(r->symbols);
	free(r->bounds);
}

#endif
