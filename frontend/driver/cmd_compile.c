// `pdcc MODEL -o OUT`: C or CUDA source with header and weights, a shared library, or IR at some
// stage.
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"
#include "frontend/report/report.h"
#include "frontend/write/write.h"
#include "ir/text/text.h"
#include "lower/lower.h"
#include "lower/target/target.h"

#include <ctype.h>
#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

// `path` without its last suffix, with another one.
static const char *with_suffix(Context *c, const char *path, const char *suffix)
{
	const char *dot = strrchr(base_name(path), '.');
	size_t n = dot ? (size_t)(dot - path) : strlen(path);
	return arena_printf(c->arena, "%.*s%s", (int)n, path, suffix);
}

// A C identifier from the output's name: "mobile-net.v1.c" gives mobile_net_v1, "float4.cu"
// model_float4.
static const char *default_prefix(Context *c, const char *output)
{
	const char *base = base_name(output);
	bool library = strstr(base, ".so") != NULL && !strncmp(base, "lib", 3);
	base += library ? 3 : 0;
	const char *dot = strrchr(base, '.');
	size_t n = dot && dot != base ? (size_t)(dot - base) : strlen(base);
	if (!strcmp(output, "-") || !n)
		return "model";
	char *s = arena_printf(c->arena, "%s%.*s", isdigit((unsigned char)*base) ? "m" : "", (int)n,
	                       base);
	for (char *p = s; *p; p++)
		*p = isalnum((unsigned char)*p) ? *p : '_';
	return prefix_is_free(s) ? s : arena_printf(c->arena, "model_%s", s);
}

static bool prefix_valid(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	}
	return true;
}

static EmitKind emit_kind(const Options *o)
{
	static const struct {
		const char *suffix;
		EmitKind kind;
	} suffixes[] = {{".c", EMIT_C},       {".cu", EMIT_CUDA},  {".h", EMIT_HEADER},
	                {".pdir", EMIT_IR},   {".cfg", EMIT_CFG},  {".dot", EMIT_DOT},
	                {".json", EMIT_JSON}, {".so", EMIT_SHARED}};
	if (o->emit != EMIT_DEFAULT)
		return o->emit;
	const char *dot = strrchr(base_name(o->output), '.');
	for (size_t i = 0; dot && i < COUNT_OF(suffixes); i++) {
		if (!strcmp(dot, suffixes[i].suffix))
			return suffixes[i].kind;
	}
	return EMIT_DEFAULT;
}

// Views of the IR, before lowering (ir, dot) or after it (cfg).
static bool emit_view(Driver *d, Op *module, EmitKind kind, const char *output,
                      const FilePiece *depfile)
{
	const Target *t = kind == EMIT_CFG ? driver_target(d, "generic") : NULL;
	if (kind == EMIT_CFG && !(t && driver_lower(d, module, t, NULL)))
		return false;
	Text text;
	text_init(&text, d->ctx->arena);
	if (kind == EMIT_DOT)
		emit_dot(&text, module);
	else
		ir_print(&text, module);
	stage_begin(d, "write");
	const FilePiece pieces[] = {{output, text.text, text.len}, *depfile};
	return file_write_group(d->ctx, depfile->path ? 2 : 1, pieces);
}

// Paddle 3's program, and its parameters beside it. What nobody reads has no need of a form there.
static bool emit_pir(Driver *d, Op *module, const char *output, const FilePiece *depfile)
{
	Context *c = d->ctx;
	PassContext passes = driver_passes(d, module, NULL);
	Text text;
	Tensor **params;
	uint8_t *data = NULL;
	int nparam, n = 0;
	size_t size;
	text_init(&text, c->arena);
	if (!lower_run_list(&passes, "stacks,loop-args"))
		return false;
	pir_prepare(module);
	if (!lower_run_list(&passes, "dce") || !pir_write(module, &text, &params, &nparam) ||
	    !params_encode(c, nparam, params, &data, &size))
		return false;
	stage_begin(d, "write");
	FilePiece pieces[3];
	pieces[n++] = (FilePiece){output, text.text, text.len};
	if (strcmp(output, "-") != 0 && nparam)
		pieces[n++] = (FilePiece){with_suffix(c, output, ".pdiparams"), data, size};
	if (depfile->path)
		pieces[n++] = *depfile;
	return file_write_group(c, n, pieces);
}

// The model as it was read; nothing is translated, so parameters are not needed.
static bool emit_legacy(Driver *d, const char *output)
{
	Text text;
	text_init(&text, d->ctx->arena);
	const Paddle__ProgramDesc *p = model_read(d->ctx, d->options->model);
	if (!p)
		return false;
	legacy_print(&text, p);
	return file_write(d->ctx, output, text.text ? text.text : "", text.len);
}

// ---- names that the command line chooses --------------------------------------------------------

// What can be renamed, for a message.
static const char *ports_list(Arena *a, Op *module, enum OpCode code)
{
	Text t;
	text_init(&t, a);
	for (const Op *op = module_block(module)->first; op; op = op->next)
		if (op->code == code && !op_attr(op, "lod_of") && !op_attr(op, "part"))
			text_printf(&t, "%s'%s'", t.len ? ", " : "", op_str(op, "name", ""));
	return t.len ? t.text : "none";
}

static bool port_rename(Context *c, Op *module, enum OpCode code, const NamePair *pair)
{
	const char *what = code == OP_PD_FEED ? "input" : "output";
	bool found = false, taken = false;
	for (Op *op = module_block(module)->first; op; op = op->next) {
		if (op->code != code)
			continue;
		const char *name = op_str(op, "name", "");
		if (!strcmp(name, pair->old)) {
			op_set_attr(op, "name", attr_str(c, pair->chosen));
			found = true;
		} else {
			taken |= !strcmp(name, pair->chosen);
		}
	}
	if (!found)
		diag_error(c->diag, NULL, "--rename-%s: there is no %s '%s'; the %ss are %s", what, what,
		           pair->old, what, ports_list(c->arena, module, code));
	else if (taken)
		diag_error(c->diag, NULL, "--rename-%s: another %s is called '%s'", what, what,
		           pair->chosen);
	return found && !taken;
}

static bool ports_rename(Context *c, Op *module, enum OpCode code, int n, const NamePair *pairs)
{
	bool ok = true;
	for (int i = 0; i < n; i++)
		ok &= port_rename(c, module, code, &pairs[i]);
	return ok;
}

static bool ports_named(Driver *d, Op *module)
{
	const Options *o = d->options;
	const bool in = ports_rename(d->ctx, module, OP_PD_FEED, o->ninput_name, o->input_names);
	return ports_rename(d->ctx, module, OP_PD_FETCH, o->noutput_name, o->output_names) && in;
}

// ---- code ---------------------------------------------------------------------------------------

static WeightsMode weights_mode(const Options *o)
{
	if (!o->weights)
		return WEIGHTS_AUTO;
	return !strcmp(o->weights, "inline") ? WEIGHTS_INLINE
	       : !strcmp(o->weights, "file") ? WEIGHTS_FILE
	                                     : WEIGHTS_OBJECT;
}

// The library carries its weights, so that it and its header can be moved alone.
static bool build_shared(Driver *d, const Target *t, const CodegenResult *r, const char *output,
                         const char *header, const FilePiece *depfile)
{
	Context *c = d->ctx;
	const char *folder = temp_folder(c);
	if (!folder)
		return false;
	const bool threads = d->options->threads > 1;
	const char *files[] = {"model.c", "model.h",        "model.weights", "pdrt.h",
	                       "pdrt.c",  "pdrt_threads.h", "pdrt_threads.c"};
	const char *paths[COUNT_OF(files)];
	for (size_t i = 0; i < COUNT_OF(files); i++)
		paths[i] = arena_printf(c->arena, "%s/%s", folder, files[i]);
	FilePiece pieces[COUNT_OF(files)] = {
		{paths[0], r->source.text, r->source.len},
		{paths[1], r->header.text, r->header.len},
	};
	int n = 2;
	if (r->weights)
		pieces[n++] = (FilePiece){paths[2], r->weights, r->weights_size};
	for (size_t i = 3; i < (threads ? COUNT_OF(files) : 5); i++) {
		const char *text = embed_text(files[i]);
		pieces[n++] = (FilePiece){paths[i], text, strlen(text)};
	}
	if (!file_write_group(c, n, pieces))
		return false;
	stage_begin(d, "external compiler");
	const char *const sources[] = {paths[0], paths[4], paths[6]};
	if (!compile_external(d, t, folder, threads ? 3 : 2, sources, output, true))
		return false;
	const FilePiece beside[] = {{header, r->header.text, r->header.len}, *depfile};
	if (file_write_group(c, depfile->path ? 2 : 1, beside))
		return true;
	remove(output);
	return false;
}

// How the code is compiled, for its first lines. NULL: it is not CUDA.
static const char *nvcc_line(Driver *d, const Target *t, const char *output)
{
	Context *c = d->ctx;
	const char *flags = t->language == LANGUAGE_CUDA ? cuda_arch_flags(c, d->options->arch) : NULL;
	return flags ? arena_printf(c->arena, "nvcc -O3 %s -c %s", flags, base_name(output)) : NULL;
}

// Generated code includes files of the runtime by their names, so nothing that is written may take
// one.
static bool names_are_free(Context *c, const char *output, const char *header)
{
	const char *const paths[] = {output, header};
	for (size_t i = 0; i < COUNT_OF(paths); i++) {
		const char *name = base_name(paths[i]);
		if (!strncmp(name, "pdrt", 4) && embed_text(name)) {
			diag_error(c->diag, NULL, "'%s' is a file of the runtime; -o needs another name", name);
			return false;
		}
	}
	return true;
}

// C and CUDA of one name would share a header and weights: the second would break the first.
static bool header_is_free(Context *c, const char *output, EmitKind kind)
{
	const char *other = with_suffix(c, output, kind == EMIT_CUDA ? ".c" : ".cu");
	char begin[64] = "";
	FILE *f = kind == EMIT_C || kind == EMIT_CUDA ? fopen(other, "r") : NULL;
	const bool ours = f && fgets(begin, sizeof begin, f) && strstr(begin, "by pdcc");
	if (f)
		fclose(f);
	if (ours)
		diag_error(c->diag, NULL,
		           "'%s' was written by pdcc, too, and has the same header and weights as '%s' "
		           "would; -o needs another name",
		           other, base_name(output));
	return !ours;
}

// Where code goes, and how its files are called.
typedef struct Output {
	EmitKind kind;
	const char *path, *header, *weights;
	bool to_stdout, shared;
} Output;

// NULL after a diagnostic.
static const Target *emit_target(Driver *d, EmitKind kind)
{
	const Target *t = driver_target(d, kind == EMIT_CUDA     ? "cuda"
	                                   : kind == EMIT_SHARED ? "native"
	                                                         : "generic");
	if (!t || (t->language == LANGUAGE_CUDA) == (kind == EMIT_CUDA))
		return t;
	diag_error(d->ctx->diag, NULL, "--isa=%s does not go with this kind of output", t->name);
	return NULL;
}

static CodegenOptions code_options(Driver *d, const Target *t, const Output *out)
{
	const Options *o = d->options;
	return (CodegenOptions){
		.prefix = o->prefix ? o->prefix : default_prefix(d->ctx, out->path),
		.entry = o->train ? "train_step" : NULL,
		.header_name = out->shared ? "model.h" : base_name(out->header),
		.weights_name = base_name(out->weights),
		.version = PDCC_VERSION,
		.banner = base_name(o->model),
		.given = o->given,
		.model_hash = d->ctx->file_hash,
		.compile = nvcc_line(d, t, out->to_stdout ? "model.cu" : out->path),
		.weights = out->shared                     ? WEIGHTS_OBJECT
	               : out->to_stdout && !o->weights ? WEIGHTS_INLINE
	                                               : weights_mode(o),
		.nsize_name = o->nsize_name,
		.size_names = o->size_names,
		.map = o->map != NULL,
		.trace = o->trace,
		.assert_finite = o->assert_finite,
		.call = o->call,
		.shared = out->shared,
	};
}

static bool code_write(Driver *d, const CodegenResult *r, const Output *out,
                       const FilePiece *depfile)
{
	const bool alone = out->kind == EMIT_HEADER;
	FilePiece pieces[5];
	int n = 0;
	if (!alone)
		pieces[n++] = (FilePiece){out->path, r->source.text, r->source.len};
	if (!out->to_stdout || alone)
		pieces[n++] = (FilePiece){alone ? out->path : out->header, r->header.text, r->header.len};
	if (!out->to_stdout && !alone && r->weights)
		pieces[n++] = (FilePiece){out->weights, r->weights, r->weights_size};
	if (d->options->map)
		pieces[n++] = (FilePiece){d->options->map, r->map.text, r->map.len};
	if (depfile->path)
		pieces[n++] = *depfile;
	return file_write_group(d->ctx, n, pieces);
}

static bool emit_code(Driver *d, Op *module, EmitKind kind, const char *path,
                      const FilePiece *depfile)
{
	Context *c = d->ctx;
	Output out = {kind, path, .to_stdout = !strcmp(path, "-"), .shared = kind == EMIT_SHARED};
	const Target *t = emit_target(d, kind);
	if (!t)
		return false;
	const char *stem = out.to_stdout ? "model" : path;
	out.weights = out.shared ? "model.weights" : with_suffix(c, stem, ".weights");
	out.header = with_suffix(c, stem, ".h");
	if (!names_are_free(c, path, out.header) || !(out.to_stdout || header_is_free(c, path, kind)))
		return false;
	const CodegenOptions options = code_options(d, t, &out);
	CodegenResult r;
	if (!driver_lower(d, module, t, NULL) || !driver_codegen(d, module, t, &options, &r))
		return false;
	stage_begin(d, "write");
	return out.shared ? build_shared(d, t, &r, path, out.header, depfile)
	                  : code_write(d, &r, &out, depfile);
}

// Whether --prefix can be what names begin with.
static bool prefix_check(const Driver *d)
{
	const char *prefix = d->options->prefix;
	if (prefix && !prefix_valid(prefix)) {
		fprintf(stderr, "pdcc: error: --prefix takes a C identifier, not '%s'\n", prefix);
		return false;
	}
	if (prefix && prefix_is_variable(prefix))
		diag_warning(
			d->ctx->diag, NULL,
			"--prefix=%s: functions have variables of that name, which hide the type (-Wshadow)",
			prefix);
	return true;
}

int cmd_compile(Driver *d)
{
	const Options *o = d->options;
	const char *output = o->output ? o->output : "-";
	EmitKind kind = emit_kind(o);
	if (kind == EMIT_DEFAULT) {
		fprintf(stderr, "pdcc: error: cannot tell from '%s' what to write; use --emit=\n", output);
		return 2;
	}
	if (!prefix_check(d))
		return 2;
	if (kind == EMIT_LEGACY)
		return !emit_legacy(d, output);
	d->keeps_steps = kind == EMIT_IR || kind == EMIT_DOT || kind == EMIT_JSON;
	Op *module = driver_load(d);
	if (!module || !ports_named(d, module))
		return 1;
	bool view = kind == EMIT_IR || kind == EMIT_CFG || kind == EMIT_DOT;
	const FilePiece depfile = depfile_make(d, output);
	if (kind == EMIT_JSON)
		return !emit_pir(d, module, output, &depfile);
	return !(view ? emit_view(d, module, kind, output, &depfile)
	              : emit_code(d, module, kind, output, &depfile));
}
