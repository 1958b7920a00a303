// What says which files belong together: the first lines of the source, what it demands of the
// compiler and the runtime stub, and the header of the weights file. Called by the backends and by
// weights.c.
#include "codegen/model/model.h"
#include "runtime_stub/pdrt.h"

#include <inttypes.h>
#include <string.h>

enum { COLUMNS = 100 };

// ---- the banner ---------------------------------------------------------------------------------

// Words at blanks, in lines of a comment that are not too long where words are not.
static void words_print(Text *out, const char *words)
{
	size_t column = COLUMNS;
	for (const char *p = words; *p;) {
		const size_t n = strcspn(p, " ");
		if (column + 1 + n > COLUMNS - 3) {
			text_str(out, "\n *");
			column = 2;
		}
		text_printf(out, " %.*s", (int)n, p);
		column += 1 + n;
		p += n + strspn(p + n, " ");
	}
}

void banner_print(Codegen *cg, Text *out, const char *more)
{
	const CodegenOptions *o = cg->options;
	text_printf(out, "/* Written by pdcc %s from %s (%016" PRIx64 ") for %s. Do not edit.",
	            o->version, comment_text(cg->arena, o->banner), o->model_hash,
	            cg->backend->device ? cg->backend->name : cg->target->name);
	if (o->given && *o->given)
		words_print(out, comment_text(cg->arena, arena_printf(cg->arena, "Options: %s", o->given)));
	text_printf(out, "%s%s */\n", *more ? "\n * " : "", more);
}

// ---- what it demands ----------------------------------------------------------------------------

void demands_print(Codegen *cg, Text *out)
{
	const Target *t = cg->target;
	if (!*t->macros)
		return;
	const char *before = "#if ";
	for (const char *p = t->macros; *p;) {
		const size_t n = strcspn(p, " ");
		text_printf(out, "%s!defined(%.*s)", before, (int)n, p);
		before = " || \\\n\t";
		p += n + strspn(p + n, " ");
	}
	text_printf(out, "\n#error \"this code is for %s%s%s\"\n", t->name,
	            *t->cflags ? ": compile it with " : "; pdcc --isa= makes it for others", t->cflags);
	text_str(out, "#endif\n\n");
}

void abi_print(Text *out)
{
	text_printf(out,
	            "#if PDRT_ABI_VERSION != %d\n#error \"this code goes with version %d of pdrt.h, "
	            "which comes with the pdcc that wrote it\"\n#endif\n\n",
	            PDRT_ABI_VERSION, PDRT_ABI_VERSION);
}

// ---- the header of the weights file -------------------------------------------------------------

bool weights_in_file(const Codegen *cg)
{
	return !cg->inline_weights && !cg->object_weights;
}

int64_t weights_file_size(const Codegen *cg)
{
	return (int64_t)sizeof(pd_weights_header) + cg->weights_size;
}

uint8_t *weights_room(Codegen *cg)
{
	uint8_t *file = arena_big(cg->arena, (size_t)weights_file_size(cg) + 1);
	memset(file, 0, (size_t)weights_file_size(cg) + 1);
	cg->weights_file = file;
	return file + sizeof(pd_weights_header);
}

void weights_plan_add(Codegen *cg, const char *name, const Type *t, int64_t offset)
{
	const int64_t numbers[] = {offset, t->dtype, t->rank};
	cg->weights_plan = bytes_hash(cg->weights_plan, name, strlen(name) + 1);
	cg->weights_plan = bytes_hash(cg->weights_plan, numbers, sizeof numbers);
	for (int i = 0; i < t->rank; i++) {
		const int64_t n = dim_is_const(t->dims[i]) ? t->dims[i]->value : -1;
		cg->weights_plan = bytes_hash(cg->weights_plan, &n, sizeof n);
	}
}

void weights_sign(Codegen *cg)
{
	pd_weights_header h = {.magic = PD_WEIGHTS_MAGIC,
	                       .abi = PDRT_ABI_VERSION,
	                       .offset = sizeof h,
	                       .size = (uint64_t)cg->weights_size,
	                       .model = cg->options->model_hash,
	                       .plan = cg->weights_plan};
	snprintf(h.layout, sizeof h.layout, "%s", cg->target->name);
	cg->weights_hash = bytes_hash(BYTES_HASH_START, cg->weights, (size_t)cg->weights_size);
	h.weights = cg->weights_hash;
	memcpy(cg->weights_file, &h, sizeof h);
}

void weights_header_print(Codegen *cg, Text *out)
{
	text_printf(out, "/* What %s begins with. */\n",
	            comment_text(cg->arena, cg->options->weights_name));
	text_printf(out,
	            "static const pd_weights_header weights_header = {\n\tPD_WEIGHTS_MAGIC, %d, %zu, "
	            "\"%s\", %" PRId64 ",\n",
	            PDRT_ABI_VERSION, sizeof(pd_weights_header), cg->target->name, cg->weights_size);
	text_printf(out,
	            "\tUINT64_C(0x%016" PRIx64 "), UINT64_C(0x%016" PRIx64 "), UINT64_C(0x%016" PRIx64
	            "),\n};\n\n",
	            cg->options->model_hash, cg->weights_hash, cg->weights_plan);
}

void weights_check_print(Codegen *cg, Text *out)
{
	text_refuse(out, "PD_NULL", "!weights");
	text_refuse(out, "PD_WEIGHTS",
	            "n != %" PRId64 "u || memcmp(weights, &weights_header, %zu) != 0",
	            weights_file_size(cg), sizeof(pd_weights_header));
}
