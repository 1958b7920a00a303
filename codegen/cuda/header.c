// What model.h says of CUDA alone: members of an instance, entry points. Called by model/header.c
// through cuda_backend.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"

#include <inttypes.h>

static const char *weights_text(Codegen *cg)
{
	return cg->inline_weights
	           ? "The weights are part of the code: pass NULL and 0."
	           : arena_printf(cg->arena,
	                          "`weights` are the %" PRId64
	                          " bytes of %s in memory of the host, not needed afterwards.",
	                          weights_file_size(cg),
	                          comment_text(cg->arena, cg->options->weights_name));
}

void cuda_entry_points(Codegen *cg, Text *out)
{
	Text states;
	text_init(&states, cg->arena);
	states_declare(cg, &states);
	const TemplateKey keys[] = {{"p", cg->prefix},
	                            {"P", name_upper(cg->arena, cg->prefix)},
	                            {"m", cuda_first_instance(cg)},
	                            {"dims", cg->nmember ? "(&dims)" : "()"},
	                            {"weights", weights_text(cg)},
	                            {"entry", cg->options->entry},
	                            {"states", states.len ? states.text : ""}};
	template_expand(cg->ctx, out, "cuda_entry.c", COUNT_OF(keys), keys);
}

// The graph, and what it was made for, among them.
void cuda_members(Codegen *cg, Text *out)
{
	const TemplateKey keys[] = {{"p", cg->prefix},
	                            {"lt", template_flag(cg->calls_lt)},
	                            {"dnn", template_flag(cg->calls_dnn)},
	                            {"conditions", template_flag(cg->cuda.course->ncondition)},
	                            {"told", arena_printf(cg->arena, "%d", cuda_told_words(cg))}};
	template_expand(cg->ctx, out, "cuda_members.c", COUNT_OF(keys), keys);
}
