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

#include "harness_run.h"
#include "harness_threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const double BENCH_NS = 2e9;

enum { WARM_UP = 3, BENCH_MIN = 10, BENCH_MAX = 100000 };

/* ---- one run --------------------------------------------------------------------------------- */

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
