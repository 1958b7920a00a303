// loop.update and loop.append: what must be checked before they write, and what need not be copied.
// Called by the backends.
#include "codegen/model/model.h"
#include "lower/pass/rewrite.h"

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
	Context *c = op->ctx;
	const Type *t = op->results[0].type;
	const Tensor *known = value_constant(op_operand(op, 1));
	const int64_t at = known && tensor_numel(known) == 1 ? tensor_get_i(known, 0) : -1;
	const Dim *count = type_numel(c, op_operand(op, 2)->type);
	const Dim *slice = type_numel(c, type_shaped(c, TY_TENSOR, t->dtype, t->rank - 1, t->dims + 1));
	int64_t lo, hi;
	dim_range(t->dims[0], &lo, &hi);
	return (UpdateChecks){
		.fixed = op_bool(op, "fixed", false),
		.sign = at < 0,
		.end = at < 0 || at >= lo,
		.length = count != slice && !(dim_is_const(count) && dim_is_const(slice)),
		.slice = slice,
		.count = count,
		.slices = room_of(cg, t->dims[0]),
		.elements = room_of(cg, t->rank == 2 ? t->dims[1] : slice),
	};
}
