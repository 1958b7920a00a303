// Positions that come from data: checked, or brought into a range; and those that variables of 32
// bits hold. Called by scalar.c.
#include "codegen/func/func.h"

#include <inttypes.h>
#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 4 };

// Of 32 bits.
const char *near_index_expression(Scalars *s, const Op *op)
{
	const char *x = scalars_name(s, op_operand(op, 0));
	const int64_t last = op_attr(op, "extent")->dim->value - 1;
	return x ? arena_printf(s->k->arena,
	                        "(int32_t)(%s > 0.0f ? (%s < %" PRId64 ".0f ? %s : %" PRId64
	                        ".0f) : 0.0f)",
	                        x, x, last, x, last)
	         : NULL;
}

static bool never_negative(const Value *v, int depth);

static bool cast_never_negative(const Value *from, const Type *to, int depth)
{
	return from->type->kind == TY_SCALAR &&
	       dtype_size(from->type->dtype) <= dtype_size(to->dtype) &&
	       (from->type->dtype == DT_BOOL || never_negative(from, depth));
}

static bool is_whole(const Type *t, int depth)
{
	return depth <= MAX_DEPTH && (t->kind != TY_SCALAR || dtype_is_int(t->dtype));
}

static bool limit_never_negative(const Op *op, const Type *t, int depth)
{
	const bool x = never_negative(op_operand(op, 0), depth),
			   y = never_negative(op_operand(op, 1), depth);
	return op->code == OP_PD_MAXIMUM ? x || y : t->kind == TY_INDEX && x && y;
}

// Whether a whole number or a position is never negative.
static bool never_negative(const Value *v, int depth)
{
	const Op *op = v->def;
	int64_t c;
	if (v->type->kind == TY_INDEX && (!op || index_constant(v, &c)))
		return !op || c >= 0; // else an index of a loop
	if (!op || !is_whole(v->type, depth))
		return false;
	switch (op->code) {
	case OP_LOOP_CONSTANT: return op_int(op, "value", -1) >= 0;
	case OP_LOOP_DIM: return true;
	case OP_LOOP_FROM_INDEX:
		return v->type->dtype == DT_I64 && never_negative(op_operand(op, 0), depth + 1);
	case OP_PD_MAXIMUM:
	case OP_PD_ADD:
	case OP_PD_MULTIPLY: return limit_never_negative(op, v->type, depth + 1);
	case OP_PD_CAST: return cast_never_negative(op_operand(op, 0), v->type, depth + 1);
	default: return false;
	}
}

// What becomes of a position that is not there.
static void index_fault_print(Scalars *s, const Op *op, int depth, Text *out)
{
	const int fault = kernel_fault(s->k, op);
	if (!s->k->cg->backend->device)
		text_line(out, depth + 1, "return %d;", fault + 1);
	else
		text_line(out, depth + 1, "%spd_fail(pd_run, PD_INDEX, %s);", s->k->skips ? "" : "return ",
		          fault ? arena_printf(s->k->arena, "pd_op + %d", fault) : "pd_op");
	if (s->k->skips) {
		text_line(out, depth + 1, "continue;");
		text_line(out, depth, "}");
	}
}

// Index from data: checked, a failure ends the function.
bool to_index_print(Scalars *s, const Op *op, int depth, Text *out)
{
	const char *x = scalars_name(s, op_operand(op, 0));
	if (!x)
		return false;
	const char *extent = kernel_dim(s->k, op_attr(op, "extent")->dim);
	const Type *from = op_operand(op, 0)->type;
	const char *cast = from->kind == TY_SCALAR && from->dtype == DT_I64 ? "" : "(int64_t)";
	const char *name = x;
	if (op_bool(op, "wrap", false)) {
		name = kernel_local(s->k, "v");
		text_line(out, depth, "int64_t %s = %s%s;", name, cast, x);
		text_line(out, depth, "%s += %s < 0 ? %s : 0;", name, name, extent);
	} else if (*cast || !expression_is_word(x)) {
		name = kernel_local(s->k, "v");
		text_line(out, depth, "const int64_t %s = %s%s;", name, cast, x);
	}
	const bool natural = isdigit((unsigned char)*name) || never_negative(op_operand(op, 0), 0);
	text_line(out, depth, "if (%s%s%s >= %s)%s", natural ? "" : name, natural ? "" : " < 0 || ",
	          name, extent, s->k->skips ? " {" : "");
	index_fault_print(s, op, depth, out);
	if (strcmp(s->k->index, "int64_t")) {
		const char *narrow = kernel_local(s->k, "v");
		text_line(out, depth, "const %s %s = (%s)%s;", s->k->index, narrow, s->k->index, name);
		name = narrow;
	}
	pointer_map_set(&s->names, &op->results[0], name);
	return true;
}

// In a variable of 32 bits, which vectors convert to and gather by.
bool near_index_print(Scalars *s, const Op *op, int depth, Text *out)
{
	const char *e = near_index_expression(s, op);
	NarrowIndex *n = NEW(s->k->arena, NarrowIndex);
	if (!e)
		return false;
	n->variable = kernel_local(s->k, "v");
	n->name = arena_printf(s->k->arena, "((%s)%s)", s->k->index, n->variable);
	text_line(out, depth, "const int32_t %s = %s;", n->variable, e);
	pointer_map_set(&s->names, &op->results[0], n->name);
	pointer_map_set(&s->narrow, &op->results[0], n);
	return true;
}

// The variable of 32 bits that holds an index; NULL: none does.
static const char *narrow_variable(const Scalars *s, const Value *v)
{
	const NarrowIndex *n = pointer_map_get(&s->narrow, v);
	return n && n->name == pointer_map_get(&s->names, v) ? n->variable : NULL;
}

// The position within the last axes whose indices all have such variables, in 32 bits: vectors
// gather by these. Leaves in *axes how many come before, in *size what one step of them is.
const char *narrow_index(const Scalars *s, const Op *op, int first, const Type *t, int *axes,
                         int64_t *size)
{
	const char *sum = NULL, *variable;
	int k = t->rank;
	*size = 1;
	for (; k > 0 && dim_is_const(t->dims[k - 1]); k--) {
		if (!(variable = narrow_variable(s, op_operand(op, first + k - 1))) ||
		    t->dims[k - 1]->value > INT32_MAX / *size)
			break;
		sum = !sum ? variable
		           : arena_printf(s->k->arena, "%s * %" PRId64 " + %s", variable, *size, sum);
		*size *= t->dims[k - 1]->value;
	}
	*axes = k;
	return sum;
}
