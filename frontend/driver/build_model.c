// From a lowered module to a program that runs it on .npy files: writes the generated code, the
// stub and the harness into a folder and compiles them. Used by run, verify and bench.
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"
#include "lower/target/target.h"

#include <string.h>

static const char *join(Context *c, const char *folder, const char *name)
{
	return arena_printf(c->arena, "%s/%s", folder, name);
}

static FilePiece stub_piece(Context *c, const char *folder, const char *name)
{
	const char *text = embed_text(name);
	return (FilePiece){join(c, folder, name), text, strlen(text)};
}

// What the program is made of, in `folder`; with what runs it (weights and harness), too, if
// to_run.
static bool sources_write(Driver *d, const char *folder, const CodegenResult *r,
                          const BuiltModel *b, bool cuda, bool to_run)
{
	static const char *const stubs[] = {"pdrt.h", "pdrt_cuda.h", "pdrt_cuda_device.h"};
	static const char *const harness[] = {"pdrt.c", "machine.c", HARNESS_TEXTS};
	static const char *const threads[] = {"pdrt_threads.h", "pdrt_threads.c"};
	Context *c = d->ctx;
	FilePiece pieces[3 + COUNT_OF(stubs) + COUNT_OF(harness) + COUNT_OF(threads)] = {
		{join(c, folder, cuda ? "model.cu" : "model.c"), r->source.text, r->source.len},
		{join(c, folder, "model.h"), r->header.text, r->header.len},
	};
	int n = 2;
	for (int i = 0; i < (cuda ? 3 : 1); i++)
		pieces[n++] = stub_piece(c, folder, stubs[i]);
	for (int i = 0; d->options->threads > 1 && i < (to_run ? 2 : 1); i++)
		pieces[n++] = stub_piece(c, folder, threads[i]);
	for (size_t i = 0; to_run && i < COUNT_OF(harness); i++)
		pieces[n++] = stub_piece(c, folder, harness[i]);
	if (to_run && r->weights)
		pieces[n++] = (FilePiece){b->weights, r->weights, r->weights_size};
	stage_begin(d, "write");
	return file_write_group(c, n, pieces);
}

bool model_sources(Driver *d, Op *module, const Target *t, const char *folder, bool to_run,
                   BuiltModel *b, CodegenResult *r)
{
	Context *c = d->ctx;
	const CodegenOptions options = {
		.prefix = "model",
		.header_name = "model.h",
		.weights_name = "model.weights",
		.version = PDCC_VERSION,
		.banner = d->options->model,
		.given = d->options->given,
		.model_hash = c->file_hash,
		.weights = WEIGHTS_AUTO,
		.trace = d->options->trace || d->options->profile,
		.assert_finite = d->options->assert_finite,
	};
	if (!driver_codegen(d, module, t, &options, r))
		return false;
	if (folder ? !folder_make(c, folder) : !(folder = temp_folder(c)))
		return false;
	b->folder = folder;
	b->libraries = r->libraries;
	b->nstate = r->nstate;
	b->values = NULL;
	b->ntraced = r->ntraced;
	b->traced = r->traced;
	b->states = r->states;
	b->program = join(c, folder, "model.run");
	b->weights = r->weights ? join(c, folder, "model.weights") : NULL;
	return sources_write(d, folder, r, b, t->language == LANGUAGE_CUDA, to_run);
}

// What runs a model takes the compiler longer than most models do.
static bool harness_build(Driver *d, const BuiltModel *b, const char *object)
{
	Context *c = d->ctx;
	const char *argv[64];
	int n = words_append(c, external_compiler(d), argv, 0, 24);
	if (!n) {
		diag_error(c->diag, NULL, "no compiler given");
		return false;
	}
	n = words_append(c, "-std=gnu11 -O2 -c", argv, n, 32);
	if (d->options->threads > 1)
		argv[n++] = "-DHARNESS_THREADS";
	n = words_append(c, d->options->cflags, argv, n, 56);
	argv[n++] = "-I";
	argv[n++] = b->folder;
	argv[n++] = join(c, b->folder, "harness.c");
	argv[n++] = "-o";
	argv[n++] = object;
	return compiler_run(d, argv, n);
}

bool model_build(Driver *d, Op *module, const Target *t, const char *folder, BuiltModel *b)
{
	Context *c = d->ctx;
	CodegenResult r;
	if (!model_sources(d, module, t, folder, true, b, &r))
		return false;
	stage_begin(d, "external compiler");
	if (t->language == LANGUAGE_CUDA)
		return cuda_build(d, b);
	static const char *const texts[] = {"pdrt.h", HARNESS_TEXTS, "pdrt_threads.h"};
	const bool threads = d->options->threads > 1;
	const char *harness = object_cached(d, b, threads ? "harness_threads" : "harness",
	                                    COUNT_OF(texts) - !threads, texts, harness_build);
	if (!harness)
		return false;
	const char *sources[4] = {join(c, b->folder, "model.c"), join(c, b->folder, "pdrt.c"), harness};
	int n = 3;
	if (threads)
		sources[n++] = join(c, b->folder, "pdrt_threads.c");
	return compile_external(d, t, b->folder, n, sources, b->program, false);
}

// What the program left in parameters becomes what they hold here.
static bool state_read(Context *c, const BuiltModel *b, const char *folder)
{
	for (int i = 0; i < b->nstate; i++) {
		Tensor *t = npy_read(c, arena_printf(c->arena, "%s/%d.npy", folder, i));
		if (!t)
			return false;
		param_set(c, b->states[i], t);
	}
	return true;
}

int threads_append(const Driver *d, const char **argv, int n)
{
	if (d->options->threads > 1) {
		argv[n++] = "--threads";
		argv[n++] = arena_printf(d->ctx->arena, "%d", d->options->threads);
	}
	return n;
}

// Arguments of a program that is run.
typedef struct Arguments {
	Context *c;
	const char **argv;
	int n;
} Arguments;

static void argue(Arguments *a, const char *option, const char *value)
{
	a->argv[a->n++] = option;
	if (value)
		a->argv[a->n++] = value;
}

static void argue_inputs(Arguments *a, const Options *o)
{
	for (int i = 0; i < o->ncall; i++) {
		if (i)
			argue(a, "--next", NULL);
		for (int k = 0; k < o->calls[i].ninput; k++) {
			const char *name = o->calls[i].inputs[k].name, *lod = o->calls[i].inputs[k].lod;
			argue(a, "--in", arena_printf(a->c->arena, "%s=%s", name, o->calls[i].inputs[k].path));
			if (lod)
				argue(a, "--lod", arena_printf(a->c->arena, "%s=%s", name, lod));
		}
	}
}

// False after a diagnostic.
static bool program_run(Context *c, const char **argv)
{
	int status = 0;
	if (external_run(c, argv, &status))
		return true;
	diag_error(c->diag, NULL,
	           status >= 128 ? "the generated program was ended by signal %d"
	                         : "the generated program failed (exit status %d)",
	           status >= 128 ? status - 128 : status);
	return false;
}

bool model_execute(Driver *d, const BuiltModel *b, const char *out_dir)
{
	Context *c = d->ctx;
	const Options *o = d->options;
	int max = 16;
	for (int i = 0; i < o->ncall; i++)
		max += 1 + 4 * o->calls[i].ninput;
	Arguments a = {.c = c, .argv = NEW_ARRAY(c->arena, (size_t)max, const char *)};
	argue(&a, b->program, NULL);
	argue(&a, "--out-dir", out_dir);
	if (b->weights)
		argue(&a, "--weights", b->weights);
	a.n = threads_append(d, a.argv, a.n);
	if (o->redzone)
		argue(&a, "--redzone", NULL);
	if (b->values || o->trace)
		argue(&a, b->values ? "--trace-values" : "--trace", b->values);
	const bool kept = o->save_state || o->save_params;
	const char *state = kept && b->nstate ? join(c, b->folder, "state") : NULL;
	if (state)
		argue(&a, "--state", state);
	if (state && !folder_make(c, state))
		return false;
	argue_inputs(&a, o);
	stage_begin(d, "run");
	return program_run(c, a.argv) && (!state || state_read(c, b, state));
}
