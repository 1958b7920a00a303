// Buffers, and what they belong to: the roots of values, views, joining two into one.
#include "lower/memory/plan.h"

Buffer *buffer_root(Buffer *b)
{
	while (b->merged)
		b = b->merged;
	return b;
}

Root *value_root(const Plan *p, const Value *v)
{
	if (!type_is_tensor(v->type))
		return NULL;
	if (v->def)
		return op_plan(v->def) ? op_plan(v->def)->roots[v->index] : NULL;
	return v->block->region == p->region ? p->blocks[v->block->id].args[v->index] : NULL;
}

Buffer *value_buffer(const Plan *p, const Value *v)
{
	Root *r = value_root(p, v);
	return r ? buffer_root(r->buffer) : NULL;
}

bool op_is_view(const Op *op)
{
	return (op->info->traits & TRAIT_VIEW) && op->noperand > 0 && op->nresult > 0;
}

bool buffer_has_args(const Buffer *b)
{
	for (const Root *r = b->roots; r; r = r->next)
		if (!r->value->def)
			return true;
	return false;
}

void buffers_merge(Buffer *into, Buffer *b)
{
	Root **tail = &into->roots;
	while (*tail)
		tail = &(*tail)->next;
	*tail = b->roots;
	b->roots = NULL;
	b->merged = into;
}

bool buffers_can_be_one(const Plan *p, const Buffer *a, const Buffer *b)
{
	const Dim *most = dim_max(p->ctx, a->bytes, b->bytes);
	return most == a->bytes || most == b->bytes;
}
