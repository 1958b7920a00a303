// Sizes that a run finds: whether memory hangs on them. Called by passes, and by printers that ask
// callers for bounds.
#include "lower/analysis/analysis.h"

static bool bytes_mention(Context *c, const Value *v, const Dim *sym)
{
	return v->type->kind == TY_TENSOR && type_is_found(v->type) &&
	       dim_mentions(type_bytes_at_most(c, v->type), sym);
}

bool memory_mentions(const Op *module, const Dim *sym)
{
	for (const Block *b = module->regions[0].first; b; b = b->next) {
		for (int i = 0; i < b->narg; i++)
			if (bytes_mention(module->ctx, b->args[i], sym))
				return true;
		for (const Op *op = b->first; op; op = op->next)
			for (int i = 0; i < op->nresult; i++)
				if (bytes_mention(module->ctx, &op->results[i], sym))
					return true;
	}
	return false;
}
