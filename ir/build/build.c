// Building operations: make, infer, insert. Used by the translator, definitions and passes.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/core/core.h"

#include <string.h>

Builder builder_at_end(Context *c, Block *b, const Loc *loc)
{
	return (Builder){.ctx = c, .block = b, .loc = loc ? loc : &loc_unknown};
}

Builder builder_before(Op *op)
{
	return (Builder){.ctx = op->ctx, .block = op->block, .before = op, .loc = op->loc};
}

void builder_insert(Builder *b, Op *op)
{
	if (b->before)
		op_insert_before(b->before, op);
	else
		op_append(b->block, op);
}

Op *build_op(Builder *b, enum OpCode code, int noperand, Value *const *operands, int nattr,
             const NamedAttr *attrs)
{
	const OpInfo *info = &op_table[code];
	Op *op = op_new(b->ctx, code, b->loc, info->nresult, NULL, noperand, operands,
	                info->min_regions, 0);
	for (int i = 0; i < nattr; i++)
		op_set_attr(op, attrs[i].name, attrs[i].attr);
	builder_insert(b, op);
	int mark = dim_check_count(b->ctx);
	if (broadcast_operands(op) && op_infer(op) &&
	    (!b->ctx->checks_sizes || check_equal_sizes(op, mark)))
		return op;
	op_erase(op);
	return NULL;
}

static Value *build_list(Builder *b, enum OpCode code, int noperand, Value *const *operands,
                         va_list ap)
{
	NamedAttr attrs[16];
	int n = 0;
	for (const char *name; n < (int)COUNT_OF(attrs) && (name = va_arg(ap, const char *)); n++)
		attrs[n] = (NamedAttr){name, va_arg(ap, const Attr *)};
	for (int i = 0; i < noperand; i++) {
		// An operand that could not be built has had its diagnostic already.
		if (!operands[i] && i < op_table[code].noperand && !op_table[code].operands[i].optional)
			return NULL;
	}
	Op *op = build_op(b, code, noperand, operands, n, attrs);
	return op ? op_result(op, 0) : NULL;
}

Value *build(Builder *b, enum OpCode code, int noperand, Value *const *operands, ...)
{
	va_list ap;
	va_start(ap, operands);
	Value *v = build_list(b, code, noperand, operands, ap);
	va_end(ap);
	return v;
}

Value *build1(Builder *b, enum OpCode code, Value *x, ...)
{
	va_list ap;
	va_start(ap, x);
	Value *v = build_list(b, code, 1, &x, ap);
	va_end(ap);
	return v;
}

Value *build2(Builder *b, enum OpCode code, Value *x, Value *y, ...)
{
	Value *const operands[] = {x, y};
	va_list ap;
	va_start(ap, y);
	Value *v = build_list(b, code, 2, operands, ap);
	va_end(ap);
	return v;
}

static const Type *type_of_tensor(Context *c, const Tensor *t)
{
	const Dim *dims[MAX_RANK];
	for (int i = 0; i < t->rank; i++)
		dims[i] = dim_const(c, t->dims[i]);
	return type_tensor(c, t->dtype, t->rank, dims, 0);
}

// Constants up to this many elements are written into the text of the IR; larger ones are
// parameters.
enum { MAX_CONSTANT = 64 };

Value *build_constant(Builder *b, const Tensor *t)
{
	Context *c = b->ctx;
	bool small = tensor_numel(t) <= MAX_CONSTANT;
	const Type *type = type_of_tensor(c, t);
	Op *op = op_new(c, small ? OP_BUILTIN_CONSTANT : OP_BUILTIN_GET_PARAMETER, b->loc, 1, &type, 0,
	                NULL, 0, 0);
	if (small) {
		op_set_attr(op, "value", attr_tensor(c, t));
	} else {
		const char *base = b->loc->var ? b->loc->var : "constant",
				   *name = arena_printf(c->arena, "%s.folded", base);
		for (int i = 1; param_get(c, name); i++)
			name = arena_printf(c->arena, "%s.folded%d", base, i);
		Tensor *copy = NEW(c->arena, Tensor);
		*copy = *t;
		param_set(c, name, copy);
		op_set_attr(op, "name", attr_str(c, name));
	}
	builder_insert(b, op);
	// Inference fills `known` of small integer constants; the type it finds is the one set above.
	op_infer(op);
	return op_result(op, 0);
}

Value *build_scalar_f(Builder *b, DType t, double v)
{
	const Type *type = type_scalar(b->ctx, t);
	Op *op = op_new(b->ctx, OP_LOOP_CONSTANT, b->loc, 1, &type, 0, NULL, 0, 0);
	bool whole = !dtype_is_float(t) && !dtype_is_complex(t);
	int64_t n = t == DT_BOOL ? v != 0 : whole_from_double(t, v); // a part of one is true
	op_set_attr(op, "value", whole ? attr_int(b->ctx, n) : attr_float(b->ctx, v));
	builder_insert(b, op);
	return op_result(op, 0);
}

bool build_assert(Builder *b, Value *holds, const char *message)
{
	const NamedAttr text = {"message", attr_str(b->ctx, message)};
	return holds && build_op(b, OP_PD_ASSERT, 1, &holds, 1, &text);
}

Value *build_full(Builder *b, const Type *t, double v)
{
	Context *c = b->ctx;
	const NamedAttr attrs[] = {
		{"shape", attr_dims(c, t->rank, t->dims)},
		{"value", attr_float(c, v)},
		{"dtype", attr_dtype(c, t->dtype)},
	};
	Op *op = op_new(c, OP_PD_FULL, b->loc, 1, &t, 0, NULL, 0, 0);
	for (size_t i = 0; i < COUNT_OF(attrs); i++)
		op_set_attr(op, attrs[i].name, attrs[i].attr);
	builder_insert(b, op);
	return op_result(op, 0);
}
