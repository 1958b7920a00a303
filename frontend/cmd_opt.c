// `pdcc opt`: IR text (or a model) through chosen passes, back to IR text.
#include "driver.h"

#include <string.h>

int cmd_opt(Driver *d)
{
	Op *module = driver_load(d);
	const Target *t = driver_target(d, "generic");
	if (!module || !t)
		return 1;
	stage_begin(d, "passes");
	PassContext p = {.ctx = d->ctx, .module = module, .target = t, .verify = true,
	                 .allow_tf32 = d->options->allow_tf32,
	                 .cuda_libs = d->options->cuda_libs};
	if (!lower_run_list(&p, d->options->passes ? d->options->passes : ""))
		return 1;
	Text text;
	text_init(&text, d->ctx->arena);
	ir_print(&text, module);
	return !file_write(d->ctx, d->options->output ? d->options->output : "-", text.text, text.len);
}
