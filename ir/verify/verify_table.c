// Whether an operation is what the operator table says: operands, attributes, regions, and where it
// stands. Called by verify.c.
#include "ir/verify/rules.h"

#include <string.h>

static const char *const class_names[] = {
	[CLASS_ANY] = "anything", [CLASS_FLOAT] = "floating-point", [CLASS_INT] = "integers",
	[CLASS_BOOL] = "bool",    [CLASS_NUMBER] = "numbers",       [CLASS_INDEX] = "i32 or i64",
};

static bool class_takes(OperandClass k, DType t)
{
	switch (k) {
	case CLASS_ANY: return true;
	case CLASS_FLOAT: return dtype_is_float(t) || dtype_is_complex(t);
	case CLASS_INT: return dtype_is_int(t);
	case CLASS_BOOL: return t == DT_BOOL;
	case CLASS_NUMBER: return t != DT_BOOL;
	case CLASS_INDEX: return t == DT_I32 || t == DT_I64;
	}
	return false;
}

static bool class_takes_type(OperandClass k, const Type *t)
{
	if (k == CLASS_ANY)
		return true;
	if (t->kind == TY_STACK || t->kind == TY_FUNC || t->kind == TY_NONE)
		return false;
	if (t->kind != TY_VEC)
		return class_takes(k, t->dtype);
	for (int i = 0; i < t->nelem; i++) {
		if (!class_takes_type(k, t->elems[i]))
			return false;
	}
	return true;
}

static bool check_operand(const Op *op, int i)
{
	const OpInfo *info = op->info;
	bool repeats = info->traits & TRAIT_REPEAT_OPERAND;
	bool rest = repeats && i >= info->noperand - 1;
	const OperandInfo *o = &info->operands[rest ? info->noperand - 1 : i];
	const Value *v = op_operand(op, i);
	if (!v)
		return (o->optional && !rest) || verify_fail(op, "%s is missing", operand_text(op, i));
	if (!class_takes_type(o->klass, v->type))
		return verify_fail(op, "%s must hold %s, not %s", operand_text(op, i),
		                   class_names[o->klass], type_text(op->ctx, v->type));
	if (v->type->kind == TY_VEC && !o->vec && o->klass != CLASS_ANY)
		return verify_fail(op, "%s must be one tensor, not a list", operand_text(op, i));
	return true;
}

bool operands_are_sound(const Op *op)
{
	const OpInfo *info = op->info;
	bool ok = true, repeats = info->traits & TRAIT_REPEAT_OPERAND;
	if (op->noperand > info->noperand && !repeats)
		return verify_fail(op, "%d operands, but it takes %d", op->noperand, info->noperand);
	int fixed = info->noperand - repeats, n = op->noperand > fixed ? op->noperand : fixed;
	for (int i = 0; i < n; i++)
		ok &= check_operand(op, i);
	if (op->nresult != info->nresult && !(info->traits & TRAIT_REPEAT_RESULT))
		ok = verify_fail(op, "%d results, but it has %d", op->nresult, info->nresult);
	return ok;
}

static const char *const attr_kind_names[] = {
	[ATTR_BOOL] = "a bool",
	[ATTR_INT] = "an integer",
	[ATTR_FLOAT] = "a float",
	[ATTR_STR] = "a string",
	[ATTR_TYPE] = "a type",
	[ATTR_DTYPE] = "an element type",
	[ATTR_INTS] = "a list of integers",
	[ATTR_FLOATS] = "a list of floats",
	[ATTR_STRS] = "a list of strings",
	[ATTR_BOOLS] = "a list of bools",
	[ATTR_DIM] = "a dim",
	[ATTR_DIMS] = "a list of dims",
	[ATTR_TENSOR] = "a tensor",
};

static bool attr_kind_fits(const AttrInfo *a, AttrKind have)
{
	if (have == a->kind)
		return true;
	bool number = have == ATTR_INT || have == ATTR_BOOL;
	return a->kind == ATTR_FLOAT && (have == ATTR_INT || (a->any_number && number));
}

// Attributes that passes may leave on any operation (docs/internals.md, section 5).
static bool attr_is_general(const char *name)
{
	static const char *const names[] = {
		"place", "offset",   "moves", "workspace", "weights", "initial", "state", "block_work",
		"much",  "backward", "kept",  "node",      "apart",   "after",   "meet",  "counts"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

bool attributes_are_sound(const Op *op)
{
	const OpInfo *info = op->info;
	bool ok = true;
	for (int i = 0; i < op->nattr; i++) {
		const AttrInfo *a = op_info_attr(info, op->attrs[i].name);
		AttrKind have = op->attrs[i].attr->kind;
		if (!a && !attr_is_general(op->attrs[i].name))
			ok = verify_fail(op, "it has no attribute '%s'", op->attrs[i].name);
		else if (a && !attr_kind_fits(a, have))
			ok = verify_fail(op, "attribute '%s' must be %s, not %s", a->name,
			                 attr_kind_names[a->kind], attr_kind_names[have]);
		else if (a && a->choices && enum_find(a->choices, op->attrs[i].attr->s) == a->choices->n)
			ok = verify_fail(op, "attribute '%s' must be %s, not '%s'", a->name,
			                 enum_text(op->ctx, a->choices), op->attrs[i].attr->s);
	}
	for (int i = 0; i < info->nattr; i++) {
		const AttrInfo *a = &info->attrs[i];
		bool overridden = a->operand && op_operand(op, op_info_operand(info, a->operand));
		if (a->required && !overridden && !op_attr(op, a->name))
			ok = verify_fail(op, "attribute '%s' is missing", a->name);
	}
	return ok;
}

bool regions_are_sound(const Op *op)
{
	const OpInfo *info = op->info;
	if (op->nregion >= info->min_regions && op->nregion <= info->max_regions)
		return true;
	if (info->min_regions == info->max_regions)
		return verify_fail(op, "%d regions, but it has %d", op->nregion, info->min_regions);
	return verify_fail(op, "%d regions, but it has %d to %d", op->nregion, info->min_regions,
	                   info->max_regions);
}

// What stands outside of nests, of the loop dialect.
static bool works_on_tensors(const Op *op)
{
	switch (op->code) {
	case OP_LOOP_NEST:
	case OP_LOOP_BIND:
	case OP_LOOP_CAPACITY:
	case OP_LOOP_EMPTY:
	case OP_LOOP_UPDATE:
	case OP_LOOP_APPEND:
	case OP_LOOP_PREFIX: return true;
	default: return false;
	}
}

// Operands of maps are elements, or tensors.
static bool operands_are(const Op *op, bool scalar)
{
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op->operands[i].value;
		bool element = v && (v->type->kind == TY_SCALAR || v->type->kind == TY_INDEX);
		if (v && element != scalar)
			return verify_fail(op, "%s has type %s, but here it must be a %s", operand_text(op, i),
			                   type_text(op->ctx, v->type), scalar ? "scalar" : "tensor");
	}
	return true;
}

// Inside of loop nests and kernels everything is one element, outside everything is a whole tensor.
bool level_is_sound(const Op *op)
{
	const Op *parent = op_parent(op);
	bool scalar = parent && (parent->info->kind == KIND_LOOP || parent->info->kind == KIND_KERNEL);
	OpKind kind = op->info->kind;
	if (scalar && ((kind != KIND_LOOP && kind != KIND_MAP) || works_on_tensors(op)))
		return verify_fail(op, "not allowed inside of a loop nest");
	if (parent && !scalar && kind == KIND_LOOP && !works_on_tensors(op))
		return verify_fail(op, "only allowed inside of a loop nest");
	return kind != KIND_MAP || operands_are(op, scalar);
}
