// loop.update and loop.append as C: a copy into one slice, or behind the last one, in the place
// where the tensor lies. Called by run.c.
#include "codegen/c/c.h"
#include "codegen/nest/nest.h"

#include <string.h>

// Ends the run when there is no room for `need`; a caller who set the size is told.
static void room_check(Codegen *cg, const Op *op, const char *condition, const Room *room,
                       const char *need)
{
	run_line(cg, 1, "if (%s) {", condition);
	if (room->symbol)
		run_line(cg, 2, "out->found_%s = %s;", room->symbol->name, need);
	run_line(cg, 2, "m->failed = %s;", string_literal(cg->arena, op_where(cg, op)));
	run_line(cg, 2, "return PD_CAPACITY;");
	run_line(cg, 1, "}");
}

// The checks without those that cannot fail, or that were made on the way here.
static UpdateChecks checks_left(const Codegen *cg, const Op *op)
{
	bool natural, within;
	UpdateChecks u = update_checks(cg, op);
	update_position(cg->arena, op, &natural, &within);
	u.sign = u.sign && !natural;
	u.end = u.end && !within;
	return u;
}

// Checks the position, which `at` says.
static void position_check(Codegen *cg, const Op *op, const UpdateChecks *u, const char *at)
{
	const char *size = u->end ? dim_in_run(cg, u->slices.size) : NULL;
	const char *sign = u->sign ? arena_printf(cg->arena, "%s < 0", at) : NULL;
	const char *end = u->end ? arena_printf(cg->arena, "%s >= %s", at, size) : NULL;
	if (u->fixed && (sign || end)) {
		const char *both = sign && end ? " || " : "";
		failure_print(cg, arena_printf(cg->arena, "%s%s%s", sign ? sign : "", both, end ? end : ""),
		              "PD_INDEX", op);
		return;
	}
	if (sign)
		failure_print(cg, sign, "PD_INDEX", op);
	if (end)
		room_check(cg, op, end, &u->slices,
		           arena_printf(cg->arena, "pd_i64_add(%s, 1)",
		                        at)); // where even that is too much, no room will help
}

static const char *bytes_in_run(Codegen *cg, const Dim *n, DType t)
{
	return dim_in_run(cg, dim_mul(cg->ctx, n, dim_const(cg->ctx, (int64_t)dtype_size(t))));
}

static const char *slice_begin(Codegen *cg, const char *to, const char *at, const Dim *slice)
{
	if (!strcmp(at, "0"))
		return to;
	if (!strcmp(at, "1"))
		return arena_printf(cg->arena, "%s + %s", to, dim_in_run(cg, slice));
	return arena_printf(cg->arena, "%s + %s * %s", to, at, dim_in_run(cg, slice));
}

// The position as C; it is checked. NULL after a diagnostic.
static const char *position_print(Codegen *cg, const Op *op, const UpdateChecks *u)
{
	const Value *i = op_operand(op, 1);
	const char *at = tensor_element(cg, i);
	if (at && i->type->dtype != DT_I64)
		at = arena_printf(cg->arena, "(int64_t)%s", at);
	if (at)
		position_check(cg, op, u, at);
	return at;
}

static bool slot_print(Codegen *cg, const Value *v, const Op *update)
{
	const UpdateChecks u = checks_left(cg, update);
	const char *type = arena_printf(cg->arena, "%s *", dtype_c_memory(v->type->dtype)),
			   *name = names_unique(&cg->locals, value_stem(cg, v)),
			   *to = tensor_pointer(cg, &update->results[0]),
			   *at = to ? position_print(cg, update, &u) : NULL;
	if (!at)
		return false;
	local_declare(cg, LOCAL_NUMBER, type, name, "NULL");
	run_line(cg, 1, "%s = %s;", name, slice_begin(cg, to, at, u.slice));
	pointer_map_set(&cg->pointers, v, name);
	return true;
}

bool slots_print(Codegen *cg, const Op *op)
{
	for (int i = 0; i < op->nresult; i++) {
		const Op *update = value_slot(&op->results[i]);
		if (update && !slot_print(cg, &op->results[i], update))
			return false;
	}
	return true;
}

bool update_print(Codegen *cg, const Op *op)
{
	Context *c = cg->ctx;
	if (value_slot(op_operand(op, 2)) == op) {
		run_comment(cg, "%s: computed in its place", comment_text(cg->arena, op_title(cg, op)));
		return true;
	}
	const Value *data = op_operand(op, 0), *x = op_operand(op, 2), *out = &op->results[0];
	const Type *t = out->type;
	const UpdateChecks u = checks_left(cg, op);
	const Dim *n = u.count, *slice = u.slice;
	run_comment(cg, "%s: into %s", comment_text(cg->arena, op_title(cg, op)), shape_comment(cg, t));
	const char *to = tensor_pointer(cg, out),
			   *from = update_keeps(op) ? to : tensor_pointer(cg, data);
	const char *new = tensor_pointer(cg, x);
	const char *at = to && from && new ? position_print(cg, op, &u) : NULL;
	if (!at)
		return false;
	if (u.length)
		room_check(cg, op,
		           arena_printf(cg->arena, "%s > %s", dim_in_run(cg, n), dim_in_run(cg, slice)),
		           &u.elements, dim_in_run(cg, n));
	if (!update_keeps(op))
		run_line(cg, 1, "memcpy(%s, %s, (size_t)%s);", to, from,
		         bytes_in_run(cg, type_numel(c, t), t->dtype));
	if (dim_is(slice, 1) && dim_is(n, 1))
		run_line(cg, 1, "%s[%s] = %s;", to, at, pointer_element(cg->arena, new));
	else
		run_line(cg, 1, "memcpy(%s, %s, (size_t)%s);", slice_begin(cg, to, at, slice), new,
		         bytes_in_run(cg, n, t->dtype));
	return true;
}

bool append_print(Codegen *cg, const Op *op)
{
	const Value *data = op_operand(op, 0), *x = op_operand(op, 1), *out = &op->results[0];
	DType t = out->type->dtype;
	run_comment(cg, "%s: %s", comment_text(cg->arena, op_title(cg, op)),
	            shape_comment(cg, out->type));
	const char *to = tensor_pointer(cg, out),
			   *from = update_keeps(op) ? to : tensor_pointer(cg, data);
	const char *new = tensor_pointer(cg, x);
	if (!to || !from || !new)
		return false;
	const Dim *had = type_numel(cg->ctx, data->type), *more = type_numel(cg->ctx, x->type);
	if (!update_keeps(op))
		run_line(cg, 1, "memcpy(%s, %s, (size_t)%s);", to, from, bytes_in_run(cg, had, t));
	if (dim_is(more, 1))
		run_line(cg, 1, "%s[%s] = %s;", to, expression_unwrap(cg->arena, dim_in_run(cg, had)),
		         pointer_element(cg->arena, new));
	else
		run_line(cg, 1, "memcpy(%s + %s, %s, (size_t)%s);", to, dim_in_run(cg, had), new,
		         bytes_in_run(cg, more, t));
	return true;
}
