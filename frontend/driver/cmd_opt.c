// `pdcc opt`: IR text (or a model) through chosen passes, back to IR text.
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"
#include "ir/text/text.h"
#include "lower/lower.h"
#include "lower/pass/pass.h"
#include "lower/target/target.h"

#include <string.h>

int cmd_opt(Driver *d)
{
	d->keeps_steps = true;
	Op *module = driver_load(d);
	const Target *t = driver_target(d, "generic");
	if (!module || !t)
		return 1;
	stage_begin(d, "passes");
	PassContext p = driver_passes(d, module, t);
	p.verify = true;
	if (!lower_run_list(&p, d->options->passes ? d->options->passes : ""))
		return 1;
	Text text;
	text_init(&text, d->ctx->arena);
	ir_print(&text, module);
	return !file_write(d->ctx, d->options->output ? d->options->output : "-", text.text, text.len);
}
