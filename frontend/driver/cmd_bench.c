// `pdcc bench`: latency of the generated code: the harness runs the model repeatedly and prints the
// figures. --profile: how long each step of a run takes, what it computes and moves, and the share
// of what the machine could do, as the harness and runtime_stub/machine.c measured
// them.
//
// Products and sums of kernels count as they are computed (Winograd's fewer ones, too), an
// operation of a nest's region as one of each element. Bytes are those of operands and results,
// each once; of a tensor that a nest reads in part, what it may read at most. What hangs on sizes
// that a run finds is not known, and left out.
#include "frontend/driver/stats.h"
#include "ir/base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LEVELS = 4 };

typedef struct Step {
	const Op *op;
	long calls;
	double us;          // of all calls of a run, the fastest
	double flop, bytes; // of them, too; negative: not known
	double roof;        // share of what the machine could do; negative: not known
} Step;

typedef struct Profile {
	double gflops; // of the machine, a second
	int nlevel;
	double level_bytes[MAX_LEVELS], gbytes[MAX_LEVELS]; // caches and memory, a second
	int n;
	Step *steps; // slowest first
	double us;
} Profile;

// ---- what a step does ---------------------------------------------------------------------------

static double numel(const Type *t)
{
	int64_t n;
	return !type_is_tensor(t) ? 1 : type_const_numel(t, &n) ? (double)n : -1;
}

// Operations on floating numbers each time the region runs; negative: not known.
static double region_flop(const Region *r)
{
	double flop = 0;
	for (const Op *op = r->first->first; op; op = op->next) {
		if (op->code == OP_LOOP_REDUCE) {
			const Attr *extents = op_attr(op, "extents");
			double times = 1, each = region_flop(&op->regions[0]) + 1;
			for (int i = 0; i < extents->n; i++)
				times *= dim_is_const(extents->dims[i]) ? (double)extents->dims[i]->value : -1;
			if (times < 0 || each < 1)
				return -1;
			flop += times * each;
		}
		flop += op->info->kind == KIND_MAP && op->nresult &&
		        dtype_is_float(op->results[0].type->dtype);
	}
	return flop;
}

static double op_flop(const Op *op)
{
	const Dim *macs = op_macs(op);
	const bool known = dim_is_const(macs) && (macs->value || op->code == OP_LOOP_NEST);
	double flop = known ? 2 * (double)macs->value : -1;
	const double n = op->nresult ? numel(op->results[0].type) : 0;
	for (int i = 0; i < op->nregion && flop >= 0; i++) {
		const double each = region_flop(&op->regions[i]);
		flop = each < 0 || n < 0 ? -1 : flop + n * each;
	}
	return flop;
}

typedef struct Traffic {
	PointerMap seen; // tensors that count already
	double most;     // elements that a nest may read of one tensor; negative: no bound
	double bytes;    // negative: not known
} Traffic;

static void tensor_count(Traffic *t, const Value *v, double most)
{
	if (!v || !type_is_tensor(v->type) || pointer_map_index(&t->seen, v) >= 0)
		return;
	pointer_map_set_index(&t->seen, v, 0);
	double n = numel(v->type);
	n = most >= 0 && most < n ? most : n;
	t->bytes = n < 0 || t->bytes < 0 ? -1 : t->bytes + n * (double)dtype_size(v->type->dtype);
}

static bool tensors_count(Op *op, void *arg)
{
	Traffic *t = arg;
	for (int i = 0; i < op->noperand; i++)
		tensor_count(t, op_operand(op, i), t->most);
	if (op->code == OP_LOOP_REDUCE)
		t->most = -1; // of which each element may read many
	return true;
}

static double op_bytes(Context *c, const Op *op)
{
	Traffic t = {.most = -1};
	pointer_map_init(&t.seen, c->arena);
	for (int i = 0; i < op->nresult; i++)
		tensor_count(&t, &op->results[i], -1);
	if (op->code == OP_LOOP_NEST)
		t.most = numel(op->results[0].type);
	for (int i = 0; i < op->noperand; i++)
		tensor_count(&t, op_operand(op, i), -1);
	op_walk((Op *)op, tensors_count, &t);
	return t.bytes;
}

// ---- what was measured --------------------------------------------------------------------------

// The least time is that of the operations, or that of the bytes where they fit in.
static double step_roof(const Profile *p, const Step *s)
{
	if (s->flop < 0 || s->bytes < 0 || !p->nlevel || p->gflops <= 0 || s->us <= 0)
		return -1;
	int level = 0;
	// Half of it may come from a level above.
	while (level + 1 < p->nlevel && s->bytes > 2 * (double)s->calls * p->level_bytes[level])
		level++;
	const double compute = s->flop / p->gflops, move = s->bytes / p->gbytes[level];
	return (compute > move ? compute : move) * 1e-3 / s->us;
}

static int slower(const void *a, const void *b)
{
	const Step *x = a, *y = b;
	return x->us != y->us ? (x->us < y->us ? 1 : -1) : x < y ? -1 : 1;
}

static void step_add(Context *c, Profile *p, const Op *op, long calls, double ns)
{
	const double flop = op_flop(op), bytes = op_bytes(c, op), times = (double)calls;
	Step *s = &p->steps[p->n++];
	*s = (Step){op, calls, ns * 1e-3, flop * times, bytes * times, 0};
	s->roof = step_roof(p, s);
	p->us += s->us;
}

// What the machine can do, or what the model's steps took: the former first.
static bool figures_read(Driver *d, const char *path, const BuiltModel *b, Profile *p)
{
	Context *c = d->ctx;
	char line[256];
	FILE *f = fopen(path, "r");
	if (!f) {
		diag_error(c->diag, NULL, "the generated program left no profile");
		return false;
	}
	while (fgets(line, sizeof line, f)) {
		int step;
		long calls;
		double ns, size;
		if (sscanf(line, "flops %lf", &ns) == 1)
			p->gflops = ns;
		else if (p->nlevel < MAX_LEVELS && sscanf(line, "bytes %lf %lf", &size, &ns) == 2) {
			p->level_bytes[p->nlevel] = size;
			p->gbytes[p->nlevel++] = ns;
		} else if (sscanf(line, "step %d %ld %lf", &step, &calls, &ns) == 3 && step >= 0 &&
		           step < b->ntraced && p->n < b->ntraced)
			step_add(c, p, b->traced[step], calls, ns);
	}
	fclose(f);
	return true;
}

// ---- reports ------------------------------------------------------------------------------------

static const char *op_type(const Op *op)
{
	return op->loc->type ? op->loc->type : op->info->name;
}

static const char *op_var(const Op *op)
{
	const char *var = op->loc->var ? op->loc->var : op->nresult ? op->results[0].name : NULL;
	return var ? var : "";
}

static void figure(Text *t, const char *format, double v)
{
	if (v < 0)
		text_printf(t, "%9s", "-");
	else
		text_printf(t, format, v);
}

static void print_text(Text *t, const Profile *p)
{
	text_printf(t, "machine: %.1f GFLOP/s", p->gflops);
	for (int i = 0; i < p->nlevel; i++)
		text_printf(t, "%s %.1f GB/s",
		            i ? "," : "; reads of 16 KiB, 512 KiB, 8 MiB, 256 MiB:", p->gbytes[i]);
	text_printf(t,
	            "\n%d steps, %.1f us; the share of the machine is that of the slower of both, "
	            "operations and bytes\n%9s %6s %8s %8s %8s %8s  %s\n",
	            p->n, p->us, "us", "share", "GFLOP/s", "bytes", "GB/s", "machine", "step");
	for (int i = 0; i < p->n; i++) {
		const Step *s = &p->steps[i];
		text_printf(t, "%9.2f %5.1f%%", s->us, 100 * s->us / p->us);
		figure(t, "%9.1f", s->flop < 0 ? -1 : s->flop / s->us * 1e-3);
		figure(t, "%9.0f", s->bytes);
		figure(t, "%9.1f", s->bytes < 0 ? -1 : s->bytes / s->us * 1e-3);
		figure(t, "%8.0f%%", s->roof < 0 ? -1 : 100 * s->roof);
		text_printf(t, "  %s, %s '%s'", s->op->info->name, op_type(s->op), op_var(s->op));
		text_printf(t, s->calls > 1 ? ", %ld times\n" : "\n", s->calls);
	}
}

static void json_figure(Text *t, const char *key, double v)
{
	text_printf(t, v < 0 ? ", \"%s\": null" : ", \"%s\": %.9g", key, v);
}

static void print_json(Text *t, const Profile *p)
{
	text_printf(t, "{\n  \"us\": %.3f, \"machine_gflops\": %.1f,\n  \"machine_reads\": [", p->us,
	            p->gflops);
	for (int i = 0; i < p->nlevel; i++)
		text_printf(t, "%s{\"bytes\": %.0f, \"gbytes\": %.1f}", i ? ", " : "", p->level_bytes[i],
		            p->gbytes[i]);
	text_str(t, "],\n  \"steps\": [");
	for (int i = 0; i < p->n; i++) {
		const Step *s = &p->steps[i];
		text_printf(t, "%s\n    {\"kernel\": \"%s\", \"operator\": ", i ? "," : "",
		            s->op->info->name);
		text_json(t, op_type(s->op));
		text_str(t, ", \"variable\": ");
		text_json(t, op_var(s->op));
		text_printf(t, ", \"calls\": %ld, \"us\": %.3f, \"share\": %.4f", s->calls, s->us,
		            s->us / p->us);
		json_figure(t, "flop", s->flop);
		json_figure(t, "bytes", s->bytes);
		json_figure(t, "gflops", s->flop < 0 ? -1 : s->flop / s->us * 1e-3);
		json_figure(t, "machine", s->roof);
		text_char(t, '}');
	}
	text_str(t, "\n  ]\n}\n");
}

// By a program of its own, compiled as the model is; false after a diagnostic.
static bool machine_measure(Driver *d, const Target *t, const BuiltModel *b, const char *figures)
{
	Context *c = d->ctx;
	const char *source = arena_printf(c->arena, "%s/machine.c", b->folder);
	const char *argv[] = {arena_printf(c->arena, "%s/machine.run", b->folder), NULL};
	int status = 0;
	if (!compile_external(d, t, b->folder, 1, &source, argv[0], false))
		return false;
	if (external_run_quiet(c, argv, figures, &status))
		return true;
	diag_error(c->diag, NULL, "the program that measures the machine failed");
	return false;
}

static bool profile_print(Driver *d, const Target *target, const char *path, const BuiltModel *b)
{
	const char *machine = arena_printf(d->ctx->arena, "%s/machine.txt", b->folder);
	Profile p = {.steps = NEW_ARRAY(d->ctx->arena, (size_t)b->ntraced + 1, Step)};
	Text t;
	if (!machine_measure(d, target, b, machine) || !figures_read(d, machine, b, &p) ||
	    !figures_read(d, path, b, &p))
		return false;
	qsort(p.steps, (size_t)p.n, sizeof *p.steps, slower);
	text_init(&t, d->ctx->arena);
	(d->options->json ? print_json : print_text)(&t, &p);
	fputs(t.text, stdout);
	return true;
}

// ---- the command --------------------------------------------------------------------------------

static bool bench_run(Driver *d, const char **argv, const BuiltModel *b, int *status)
{
	Context *c = d->ctx;
	// Its own line would be in the way of who reads JSON.
	const char *quiet = d->options->json ? arena_printf(c->arena, "%s/bench.txt", b->folder) : NULL;
	return quiet ? external_run_quiet(c, argv, quiet, status) : external_run(c, argv, status);
}

static const char **bench_argv(const Driver *d, const BuiltModel *b, const char *profile)
{
	Context *c = d->ctx;
	const Options *o = d->options;
	const RunCall *call = o->ncall ? &o->calls[0] : &(const RunCall){0};
	const char **argv = NEW_ARRAY(c->arena, 10 + 2 * (size_t)call->ninput, const char *);
	int n = 0;
	argv[n++] = b->program;
	argv[n++] = "--bench";
	argv[n++] = arena_printf(c->arena, "%d", o->repeat);
	n = threads_append(d, argv, n);
	if (b->weights) {
		argv[n++] = "--weights";
		argv[n++] = b->weights;
	}
	for (int i = 0; i < call->ninput; i++) {
		argv[n++] = "--in";
		argv[n++] = arena_printf(c->arena, "%s=%s", call->inputs[i].name, call->inputs[i].path);
	}
	if (profile) {
		argv[n++] = "--profile";
		argv[n++] = profile;
	}
	return argv;
}

int cmd_bench(Driver *d)
{
	Context *c = d->ctx;
	const Options *o = d->options;
	Op *module = driver_load(d);
	const Target *t = module ? driver_target_to_run(d) : NULL;
	const char *missing = t && t->language == LANGUAGE_CUDA ? cuda_missing(c) : NULL;
	BuiltModel b;
	if (missing) {
		diag_error(c->diag, NULL, "no GPU here (%s), and how long the emulator takes says nothing",
		           missing);
		return 1;
	}
	if (!t || !driver_lower(d, module, t, NULL) || !model_build(d, module, t, o->keep, &b))
		return 1;
	const char *profile = o->profile ? arena_printf(c->arena, "%s/profile.txt", b.folder) : NULL;
	const char **argv = bench_argv(d, &b, profile);
	stage_end(d);
	int status = 0;
	if (t->language == LANGUAGE_CUDA)
		printf("each run with its tensors to the device and back: ");
	if (bench_run(d, argv, &b, &status))
		return profile && !profile_print(d, t, profile, &b);
	diag_error(c->diag, NULL, "the generated program failed (exit status %d)", status);
	return 1;
}
