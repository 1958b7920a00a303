/* Runs a generated model on .npy files: what `pdcc run` and `pdcc bench` build around the code.
 * Reaches the model only through model_info().
 *
 *   prog [--weights F] [--redzone] [--state S] [--trace | --trace-values F] --out-dir D {--in
 * NAME=F.npy [--lod NAME=0,2,5[;..]]}... [--next {--in ...}...]
 *   (--threads N, built with HARNESS_THREADS for a model that was made with --threads: N threads
 * share each run)
 *   prog [--weights F] [--profile F] --bench N {--in NAME=F.npy}...      N timed runs; 0: as many as fit in two seconds, 10 at least
 *
 * Run r writes its outputs to D/r/COLUMN.npy, elements of tensor arrays to D/r/COLUMN.<i>.npy; --in
 * that names such an input again feeds its next element. What parameters become goes from run to
 * run; --state writes what they hold at last to S/<i>.npy, in the order of the model's table.
 * --redzone puts canaries around workspace and outputs and checks them. Inputs that --bench is not
 * given are made up, sizes that nothing fixes are 1. Errors: a message and exit status 1. */
#define _POSIX_C_SOURCE 200809L
#include "model.h"

#include "harness_npy.h"
#include "harness_threads.h"
#include "harness_profile.h"
#include "harness_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const double BENCH_NS = 2e9;

enum { FIRST_BOUND = 64, WARM_UP = 3, BENCH_MIN = 10, BENCH_MAX = 100000, FIRST_BYTES = 1 << 28 };

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

/* ---- LoD ------------------------------------------------------------------------------------- */

/* Where level `level` of the text `0,2,5;0,1,3,4,6,9` begins; NULL: there is no such level. */
static const char *lod_level(const char *text, int level)
{
	for (; text && level; level--) {
		text = strchr(text, ';');
		text += text != NULL;
	}
	return text;
}

static size_t lod_count(const char *text)
{
	size_t n = 1;
	for (; *text && *text != ';'; text++)
		n += *text == ',';
	return n;
}

/* The offsets of one level, which end at `end`. Without text it is one sequence. */
static Array lod_read(const char *name, const char *text, int64_t end)
{
	int64_t n = text ? (int64_t)lod_count(text) : 2, last = 0;
	Array a = {
		.descr = dtype_descr[PD_I64], .rank = 1, .dims = {n}, .bytes = (size_t)n * sizeof(int64_t)};
	a.data = zone_new(a.bytes);
	for (int64_t i = 0; i < n; i++) {
		char *rest = NULL;
		errno = 0;
		const int64_t v = text ? strtoll(text, &rest, 10) : i * end;
		if (text && (rest == text || errno || (*rest != ',' && *rest != ';' && *rest)))
			fail("--lod %s: '%s' is no list of offsets", name, text);
		if (v < last || (!i && v))
			fail("--lod %s: offsets start at 0 and do not fall", name);
		last = v;
		memcpy(a.data + (size_t)i * sizeof v, &v, sizeof v);
		text = rest ? rest + 1 : NULL;
	}
	if (last != end)
		fail("--lod %s: a level ends at %" PRId64 ", not at %" PRId64, name, last, end);
	return a;
}

/* One level as a line of text. */
static void lod_write(const char *path, const Array *a, bool first)
{
	FILE *f = fopen(path, first ? "w" : "a");
	if (!f)
		fail("cannot write '%s': %s", path, strerror(errno));
	for (int64_t i = 0; i < a->dims[0]; i++) {
		int64_t v;
		memcpy(&v, a->data + (size_t)i * sizeof v, sizeof v);
		fprintf(f, "%s%" PRId64, i ? "," : "", v);
	}
	fputc('\n', f);
	if (ferror(f) | fclose(f))
		fail("cannot write '%s'", path);
}

/* ---- tensor arrays --------------------------------------------------------------------------- */

/* The column of one part of the array whose data are in column k; -1: it has none. */
static int part_find(const pd_tensor_info *t, int n, int k, pd_part part)
{
	for (int i = 0; i < n; i++)
		if (t[i].part == part && t[i].part_of == k)
			return i;
	return -1;
}

static int64_t array_numel(const Array *a)
{
	int64_t n = 1;
	for (int d = 0; d < a->rank; d++)
		n *= a->dims[d];
	return n;
}

/* Elements that were read, as slices of one tensor; `sizes` where their dims differ, else NULL. */
static Array array_gather(const char *name, const Array *elements, int n, Array *sizes)
{
	Array a = {
		.descr = elements[0].descr, .rank = sizes ? 2 : elements[0].rank + 1, .dims = {n, 1}};
	size_t slice = 1;
	for (int i = 0; i < n; i++) {
		const Array *e = &elements[i];
		const bool same = !memcmp(e->dims, elements[0].dims, sizeof e->dims);
		if (e->rank != elements[0].rank || (!sizes && !same) || e->rank + 1 >= MAX_DIMS)
			fail("input '%s': element %d does not go with the first", name, i);
		if (array_numel(e) > a.dims[1])
			a.dims[1] = array_numel(e);
		slice = e->bytes > slice ? e->bytes : slice;
	}
	for (int d = 1; d < a.rank && !sizes; d++)
		a.dims[d] = elements[0].dims[d - 1];
	a.bytes = slice * (size_t)n;
	a.data = zone_new(a.bytes);
	memset(a.data, 0, a.bytes);
	if (sizes) {
		*sizes = (Array){.descr = dtype_descr[PD_I64], .rank = 2, .dims = {n, elements[0].rank}};
		sizes->bytes = (size_t)n * (size_t)elements[0].rank * sizeof(int64_t);
		sizes->data = zone_new(sizes->bytes);
	}
	for (int i = 0; i < n; i++) {
		memcpy(a.data + (size_t)i * slice, elements[i].data, elements[i].bytes);
		if (sizes)
			memcpy(sizes->data + (size_t)i * (size_t)elements[0].rank * sizeof(int64_t),
			       elements[i].dims, (size_t)elements[0].rank * sizeof(int64_t));
	}
	return a;
}

/* Writes the elements of an array as files of their own, PATH.<i>.npy. */
static void array_write(const pd_tensor_info *info, int n, const Array *out, int k,
                        const char *path)
{
	const int length = part_find(info, n, k, PD_ARRAY_LENGTH),
			  sizes = part_find(info, n, k, PD_ARRAY_SIZES);
	const int present = part_find(info, n, k, PD_ARRAY_PRESENT);
	Array e = {.descr = out[k].descr, .rank = out[k].rank - 1};
	memcpy(e.dims, out[k].dims + 1, (MAX_DIMS - 1) * sizeof *e.dims);
	const size_t size = pd_dtype_size(info[k].dtype), slice = size * (size_t)array_numel(&e);
	int64_t count;
	memcpy(&count, out[length].data, sizeof count);
	char *name = calloc(strlen(path) + 32, 1);
	if (!name)
		fail("out of memory");
	for (int64_t i = 0; i < count && i < out[k].dims[0]; i++) {
		if (sizes >= 0) {
			e.rank = (int)out[sizes].dims[1];
			memcpy(e.dims, out[sizes].data + (size_t)i * (size_t)e.rank * sizeof(int64_t),
			       (size_t)e.rank * sizeof(int64_t));
		}
		if ((present >= 0 && !out[present].data[i]) || (e.rank && e.dims[0] < 0))
			continue;
		e.bytes = size * (size_t)array_numel(&e);
		e.data = out[k].data + (size_t)i * slice;
		sprintf(name, "%s.%" PRId64 ".npy", path, i);
		npy_write(name, &e);
	}
	free(name);
}

/* ---- one run --------------------------------------------------------------------------------- */

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

static void status_check(const Harness *h, pd_status status)
{
	if (status == PD_OK)
		return;
	const char *failed = h->info->failed(h->instance);
	fail("%s%s%s", pd_status_text(status), failed ? ": " : "", failed ? failed : "");
}

/* An instance whose parameters hold what the last run left in them. */
static void model_start(Harness *h, Run *r)
{
	status_check(h, h->info->init(h->instance, h->weights, h->weights_size, r->workspace,
	                              r->workspace_size));
	if (h->trace && h->info->trace)
		h->info->trace(h->instance, trace_event, &h->tracer);
	status_check(h, threads_give(h->instance, h->threads, h->pool));
	if (h->profile.file && h->info->trace)
		h->info->trace(h->instance, profile_event, &h->profile);
	for (int i = 0; i < h->info->parameters; i++)
		if (h->parameters[i].data)
			status_check(h, h->info->parameter_set(h->instance, i, h->parameters[i].data));
}

static void parameters_keep(const Harness *h)
{
	for (int i = 0; i < h->info->parameters; i++) {
		const pd_parameter_info *info = &h->info->parameter[i];
		Array *a = &h->parameters[i];
		if (!a->data) {
			if (info->rank > MAX_DIMS)
				fail("'%s' has too many dims", info->name);
			*a = (Array){
				.descr = dtype_descr[info->dtype], .rank = info->rank, .bytes = info->bytes};
			for (int d = 0; d < info->rank; d++)
				a->dims[d] = info->dims[d];
			a->data = zone_new(a->bytes);
		}
		status_check(h, h->info->parameter_get(h->instance, i, a->data));
	}
}

static void parameters_write(const Harness *h)
{
	const size_t n = strlen(h->state_dir) + 32;
	char *path = list_new((int)n, 1);
	for (int i = 0; i < h->info->parameters; i++) {
		snprintf(path, n, "%s/%d.npy", h->state_dir, i);
		npy_write(path, &h->parameters[i]);
	}
	free(path);
}

static pd_status run_again(const Harness *h, Run *r)
{
	memcpy(r->symbols, r->bounds, (size_t)h->info->symbols * sizeof *r->symbols);
	return h->info->run(h->instance, r->inputs, r->outputs, r->symbols);
}

/* Raises the bounds of sizes that the run finds until they are enough. */
static void run_once(Harness *h, Run *r)
{
	pd_status status = run_again(h, r);
	for (bool raised = true; status == PD_CAPACITY && raised;) {
		raised = false;
		for (int i = 0; i < h->info->symbols; i++) {
			if (r->bounds[i] < 0 || r->symbols[i] <= r->bounds[i])
				continue;
			r->bounds[i] = r->symbols[i] > 2 * r->bounds[i] ? r->symbols[i] : 2 * r->bounds[i];
			raised = true;
		}
		if (!raised)
			break;
		memory_prepare(h, r);
		model_start(h, r);
		status = run_again(h, r);
	}
	status_check(h, status);
}

/* Of an output that is one of several types: whether the run has given it as this one. */
static bool type_counts(const Harness *h, const Run *r, const pd_tensor_info *t)
{
	const int which = part_find(h->info->output, h->info->outputs, t->part_of, PD_WHICH);
	return which >= 0 && *(const int64_t *)r->out[which].data == t->level;
}

static void outputs_write(const Harness *h, int number, const Run *r)
{
	size_t n = strlen(h->out_dir) + 64;
	char *path = list_new((int)n, 1);
	snprintf(path, n, "%s/%d", h->out_dir, number);
	mkdir(h->out_dir, 0777);
	if (mkdir(path, 0777) && errno != EEXIST)
		fail("cannot make folder '%s': %s", path, strerror(errno));
	for (int i = 0; i < h->info->outputs; i++) {
		const pd_tensor_info *t = &h->info->output[i];
		const bool lod = t->lod_of >= 0;
		if (t->part == PD_ARRAY_DATA) {
			snprintf(path, n, "%s/%d/%d", h->out_dir, number, i);
			array_write(h->info->output, h->info->outputs, r->out, i, path);
		}
		if (t->part != PD_WHOLE && !(t->part == PD_TYPE && type_counts(h, r, t)))
			continue;
		snprintf(path, n, "%s/%d/%d.%s", h->out_dir, number,
		         lod                  ? t->lod_of
		         : t->part == PD_TYPE ? t->part_of
		                              : i,
		         lod ? "lod" : "npy");
		if (lod)
			lod_write(path, &r->out[i], t->level == 0);
		else
			npy_write(path, &r->out[i]);
	}
	free(path);
}

static void run_files(Harness *h, int number)
{
	Run r = {0};
	run_prepare(h, number, &r);
	model_start(h, &r);
	run_once(h, &r);
	if (h->redzone) { /* of all that the bounds allow */
		zone_check(r.workspace, r.workspace_size, "the workspace");
		for (int i = 0; i < h->info->outputs; i++)
			zone_check(r.out[i].data, r.out[i].bytes, h->info->output[i].name);
		for (int i = 0; i < h->info->inputs; i++)
			zone_check(r.in[i].data, r.in[i].bytes, h->info->input[i].name);
	}
	parameters_keep(h);
	outputs_shape(h, &r);
	outputs_write(h, number, &r);
	run_free(h, &r);
}

/* ---- bench ----------------------------------------------------------------------------------- */

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_time(const char *what, double ns)
{
	if (ns < 1e6)
		printf("%s %.2f us", what, ns * 1e-3);
	else
		printf("%s %.3f ms", what, ns * 1e-6);
}

static void bench(Harness *h)
{
	Run r = {0};
	run_prepare(h, 0, &r);
	model_start(h, &r);
	for (int i = 0; i < WARM_UP; i++)
		run_once(h, &r);
	profile_run(&h->profile, false);
	const int most = h->repeat ? h->repeat : BENCH_MAX;
	double *times = list_new(most, sizeof *times), begin = clock_ns();
	int n = 0;
	while (n < most && (h->repeat || n < BENCH_MIN || clock_ns() - begin < BENCH_NS)) {
		double start = clock_ns();
		run_once(h, &r);
		times[n++] = clock_ns() - start;
		profile_run(&h->profile, true);
	}
	qsort(times, (size_t)n, sizeof *times, double_compare);
	print_time("median", times[n / 2]);
	print_time(", min", times[0]);
	printf(" (%d runs", n);
	for (int i = 0; i < h->info->symbols; i++)
		if (!h->info->symbol[i].found)
			printf(", %s = %" PRId64, h->info->symbol[i].name, r.symbols[i]);
	printf("); workspace %zu bytes, weights %zu bytes\n", r.workspace_size, h->weights_size);
	free(times);
	run_free(h, &r);
}

/* ---- command line ---------------------------------------------------------------------------- */

static void weights_read(Harness *h)
{
	if (!h->info->weights_size)
		return;
	if (!h->weights_path)
		fail("the model needs --weights");
	FILE *f = fopen(h->weights_path, "rb");
	if (!f)
		fail("cannot read '%s': %s", h->weights_path, strerror(errno));
	h->weights_size = h->info->weights_size;
	h->weights = zone_new(h->weights_size);
	read_exactly(f, h->weights, h->weights_size, h->weights_path);
	const size_t header = sizeof(pd_weights_header);
	if (getc(f) != EOF || h->weights_size < header ||
	    pd_hash((const char *)h->weights + header, h->weights_size - header) !=
	        h->info->weights_hash)
		fail("'%s' does not hold the weights of this model", h->weights_path);
	fclose(f);
}

static void feed_add(Harness *h, char *text, bool lod)
{
	char *path = strchr(text, '=');
	if (!path)
		fail(lod ? "--lod wants NAME=0,2,5[;..], not '%s'" : "--in wants NAME=FILE, not '%s'",
		     text);
	*path++ = '\0';
	h->feeds[h->nfeed++] = (Feed){text, path, h->nrun - 1, lod};
}

static bool flag_read(Harness *h, const char *o)
{
	const bool next = !strcmp(o, "--next"), redzone = !strcmp(o, "--redzone");
	const bool trace = !strcmp(o, "--trace");
	h->nrun += next;
	h->redzone |= redzone;
	h->trace |= trace;
	return next || redzone || trace;
}

static void measure_read(Harness *h, const char *o, const char *value)
{
	if (!strcmp(o, "--trace-values")) {
		h->trace = true;
		tracer_open(&h->tracer, value);
	} else if (!strcmp(o, "--profile")) {
		profile_open(&h->profile, value);
	} else if (!strcmp(o, "--bench")) {
		h->bench = true;
		h->repeat = atoi(value);
	} else {
		fail("unknown option '%s'", o);
	}
}

static void options_read(Harness *h, int argc, char **argv)
{
	h->nrun = h->threads = 1;
	h->feeds = list_new(argc, sizeof *h->feeds);
	for (int i = 1; i < argc; i++) {
		const char *o = argv[i];
		if (flag_read(h, o))
			continue;
		if (i + 1 == argc)
			fail("unknown option '%s', or its value is missing", o);
		char *value = argv[++i];
		if (!strcmp(o, "--in") || !strcmp(o, "--lod"))
			feed_add(h, value, o[2] == 'l');
		else if (!strcmp(o, "--weights"))
			h->weights_path = value;
		else if (!strcmp(o, "--out-dir"))
			h->out_dir = value;
		else if (!strcmp(o, "--threads"))
			h->threads = atoi(value);
		else if (!strcmp(o, "--state"))
			h->state_dir = value;
		else
			measure_read(h, o, value);
	}
	if (h->repeat < 0 || (!h->bench && !h->out_dir))
		fail("--out-dir or --bench is missing");
}

int main(int argc, char **argv)
{
	Harness h = {.info = model_info()};
	options_read(&h, argc, argv);
	weights_read(&h);
	h.pool = threads_start(h.threads);
	h.instance = list_new(1, h.info->instance_size);
	h.parameters = list_new(h.info->parameters, sizeof *h.parameters);
	if (h.bench)
		bench(&h);
	for (int r = 0; r < h.nrun && h.out_dir; r++)
		run_files(&h, r);
	tracer_close(&h.tracer);
	profile_close(&h.profile);
	if (h.state_dir)
		parameters_write(&h);
	if (h.info->free)
		h.info->free(h.instance);
	threads_stop(h.pool);
	for (int i = 0; i < h.info->parameters; i++)
		zone_free(h.parameters[i].data);
	free(h.parameters);
	free(h.instance);
	free(h.feeds);
	zone_free(h.weights);
	return 0;
}
