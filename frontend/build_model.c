// From a lowered module to a program that runs it on .npy files: writes the generated code, the stub and
// the harness into a folder and compiles them. Used by run, verify and bench.
#include "driver.h"

#include <string.h>

static const char *join(Context *c, const char *folder, const char *name)
{
	return arena_printf(c->arena, "%s/%s", folder, name);
}

bool model_build(Driver *d, Op *module, const Target *t, const char *folder, BuiltModel *b)
{
	Context *c = d->ctx;
	const CodegenOptions options = {
		.prefix = "model",
		.header_name = "model.h",
		.weights_name = "model.weights",
		.banner = d->options->model,
		.weights = WEIGHTS_AUTO,
	};
	CodegenResult r;
	if (!driver_codegen(d, module, t, &options, &r))
		return false;
	if (folder ? !folder_make(c, folder) : !(folder = temp_folder(c)))
		return false;
	b->folder = folder;
	b->program = join(c, folder, "model.run");
	b->weights = r.weights ? join(c, folder, "model.weights") : NULL;
	const char *const stubs[] = {"pdrt.h", "pdrt.c", "harness.c"};
	FilePiece pieces[6] = {
		{join(c, folder, "model.c"), r.source.text, r.source.len},
		{join(c, folder, "model.h"), r.header.text, r.header.len},
	};
	int n = 2;
	for (size_t i = 0; i < COUNT_OF(stubs); i++) {
		const char *text = embed_text(stubs[i]);
		pieces[n++] = (FilePiece){join(c, folder, stubs[i]), text, strlen(text)};
	}
	if (r.weights)
		pieces[n++] = (FilePiece){b->weights, r.weights, r.weights_size};
	stage_begin(d, "write");
	if (!file_write_group(c, n, pieces))
		return false;
	stage_begin(d, "external compiler");
	const char *const sources[] = {pieces[0].path, join(c, folder, "pdrt.c"), join(c, folder, "harness.c")};
	return compile_external(d, t, folder, 3, sources, b->program, false);
}
