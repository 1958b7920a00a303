// What everything that writes needs: diagnostics, the numbers of values, and which sizes they tell.
#include "frontend/write/pir_out.h"
#include "ir/base/vec.h"

bool out_fail(PirWriter *w, const char *fmt, ...)
{
	const char *before =
		w->at ? arena_printf(w->c->arena,
	                         "operator '%s' cannot be written for Paddle 3: ", w->at->info->name)
			  : NULL;
	va_list ap;
	va_start(ap, fmt);
	diag_verror(w->c->diag, w->at ? w->at->loc : NULL, before, fmt, ap);
	va_end(ap);
	return false;
}

// ---- numbers ------------------------------------------------------------------------------------

// Numbers of both signs, in a map of pointers: shifted past those of the arguments.
enum { NUMBER_ZERO = 1 << 30 };

void out_bind(PirWriter *w, const Value *v, int64_t number)
{
	pointer_map_set_index(&w->numbers, v, (int)(number + NUMBER_ZERO));
}

int64_t out_number(PirWriter *w, const Value *v)
{
	const int at = v ? pointer_map_index(&w->numbers, v) : NUMBER_ZERO;
	return at < 0 ? 0 : at - NUMBER_ZERO;
}

// ---- sizes --------------------------------------------------------------------------------------

static void note(PirWriter *w, SizeSource s)
{
	for (int i = 0; i < w->nsource; i++)
		if (w->sources[i].sym == s.sym)
			return;
	VEC_ROOM(w->c->arena, w->sources, w->nsource, w->csource);
	w->sources[w->nsource++] = s;
}

void out_size_note(PirWriter *w, const Value *v)
{
	if (v->type->kind != TY_TENSOR)
		return;
	for (int i = 0; i < v->type->rank; i++)
		if (v->type->dims[i]->kind == DIM_SYM)
			note(w, (SizeSource){.sym = v->type->dims[i],
			                     .value = out_number(w, v),
			                     .axis = i,
			                     .rank = v->type->rank});
}

void out_size_bind(PirWriter *w, const Op *bind)
{
	const Attr *dims = op_attr(bind, "dims");
	const Value *v = op_operand(bind, 0);
	for (int i = 0; i < dims->n; i++)
		if (dims->dims[i]->kind == DIM_SYM)
			note(w, (SizeSource){.sym = dims->dims[i],
			                     .value = out_number(w, v),
			                     .axis = i,
			                     .rank = v->type->rank,
			                     .data = true,
			                     .dtype = v->type->dtype});
}

SizeMark out_sizes_mark(const PirWriter *w)
{
	return (SizeMark){w->nsource, w->nsize};
}

void out_sizes_reset(PirWriter *w, SizeMark m)
{
	w->nsource = m.nsource;
	w->nsize = m.nsize;
}
