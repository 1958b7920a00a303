// loop.update and loop.append: what must be checked before they write, and what need not be copied.
// Called by the backends.
#include "codegen/model/model.h"
#include "lower/analysis/touches.h"

// The symbol in a size of memory that the caller may raise; NULL: none. Where the larger of two
// sizes is the room, raising one makes room.
static const Symbol *room_symbol(const Codegen *cg, const Dim *size)
{
	if (size->kind == DIM_SYM) {
		const Symbol *s = symbol_find(cg, size);
		return s && s->max && !s->bound ? s : NULL;
	}
	const Symbol *s = size->kind == DIM_MAX ? room_symbol(cg, size->a) : NULL;
	return !s && size->kind == DIM_MAX ? room_symbol(cg, size->b) : s;
}

static Room room_of(const Codegen *cg, const Dim *size)
{
	return (Room){size, room_symbol(cg, size)};
}

UpdateChecks update_checks(const Codegen *cg, const Op *op)
{
	const Type *t = op->results[0].type;
	const UpdateNeeds u = update_needs(op);
	return (UpdateChecks){
		.fixed = op_bool(op, "fixed", false),
		.sign = u.sign,
		.end = u.end,
		.length = u.length,
		.slice = u.slice,
		.count = u.count,
		.slices = room_of(cg, t->dims[0]),
		.elements = room_of(cg, t->rank == 2 ? t->dims[1] : u.slice),
	};
}
