// How an instance of generated CUDA begins and ends: model_init, model_init_shared, model_free. The
// memory of an instance holds, in this order, what kernels tell of a run (pd_state, then sizes: as
// they are, as they should be, and counters of loops), the weights, unless they are another
// instance's, and the workspace of the plan. Called by cuda/host.c.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/analysis.h"

#include <inttypes.h>
#include <string.h>

// Bytes of an instance without workspace.
static int64_t least_bytes(const Codegen *cg)
{
	return cuda_state_bytes(cg) + cg->weights_size + cg->state_bytes;
}

// Its name where the type of another instance follows, which it must not hide. (`struct` in front
// of that one would do, but nvcc takes it away.)
const char *cuda_first_instance(const Codegen *cg)
{
	return strcmp(cg->prefix, "m") ? "m" : "self";
}

static const char *weights_check_text(Codegen *cg)
{
	Text out;
	text_init(&out, cg->arena);
	if (cg->inline_weights)
		text_str(&out, "\t(void)weights;\n\t(void)n;\n");
	else
		weights_check_print(cg, &out);
	return out.text;
}

static const char *uploads_text(const Codegen *cg)
{
	if (!cg->inline_weights)
		return "\t\tpd_copy_in(&queue, uploads, (const unsigned char *)weights + "
			   "weights_header.offset, n - weights_header.offset);\n";
	return cg->uploads.text ? cg->uploads.text : "";
}

// The sizes of the plan that the caller chooses are not known at init: a run looks at them.
void cuda_instance_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	const TemplateKey keys[] = {
		{"p", p},
		{"m", cuda_first_instance(cg)},
		{"weights", arena_printf(cg->arena, "%" PRId64, cg->weights_size)},
		{"least", cg->nmember ? arena_printf(cg->arena, "%" PRId64, least_bytes(cg))
	                          : arena_printf(cg->arena, "%s_workspace_size()", p)},
		{"state", arena_printf(cg->arena, "%" PRId64, cuda_state_bytes(cg))},
		{"lt", template_flag(cg->calls_lt)},
		{"dnn", template_flag(cg->calls_dnn)},
		{"parameters", template_flag(cg->nstate)},
		{"check_weights", weights_check_text(cg)},
		{"uploads", uploads_text(cg)}};
	states_print(cg, out);
	template_expand(cg->ctx, out, "cuda_instance.c", COUNT_OF(keys), keys);
}
