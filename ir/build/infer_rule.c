// op_infer, the one entry of inference (build.c, the translator, the parser): operands and
// attributes are what the table says, then result types follow by its rules or by a hook.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/text/text.h"

#include <string.h>

// What `like(x, y, dtype)` says: operands, and how the element type is found.
typedef struct TypeRule {
	bool broadcast;
	int n, operands[8];
	bool has_dtype;
	DType dtype;
	bool part, complex; // of the parts of complex numbers; of complex numbers with such parts
} TypeRule;

static bool rule_argument(const Op *op, const char *s, size_t n, TypeRule *r)
{
	char name[64];
	if (n >= sizeof name)
		return false;
	memcpy(name, s, n);
	name[n] = '\0';
	int operand = op_info_operand(op->info, name);
	if (operand >= 0 && r->n < (int)COUNT_OF(r->operands)) {
		r->operands[r->n++] = operand;
		return true;
	}
	if (dtype_from_name(s, n, &r->dtype))
		return r->has_dtype = true;
	if (!strcmp(name, "part") || !strcmp(name, "complex")) {
		r->part = name[0] == 'p';
		r->complex = name[0] == 'c';
		return true;
	}
	if (!op_info_attr(op->info, name))
		return false;
	const Attr *a = op_attr_or_default(op,
	                                   name); // a dtype attribute that is not set: like the operand
	if (a && a->kind != ATTR_DTYPE)
		return false;
	if (a)
		r->dtype = (DType)a->i;
	r->has_dtype |= a != NULL;
	return true;
}

static bool rule_parse(const Op *op, const char *text, TypeRule *r)
{
	*r = (TypeRule){.broadcast = !strncmp(text, "broadcast(", 10)};
	const char *s = strchr(text, '(');
	if (!s || (!r->broadcast && strncmp(text, "like(", 5)))
		return op_error(op, "the table has a bad result type '%s'", text);
	for (s++; *s && *s != ')';) {
		size_t n = strcspn(s, ",) ");
		if (!rule_argument(op, s, n, r))
			return op_error(op, "the table has a bad result type '%s'", text);
		s += n;
		s += strspn(s, ", ");
	}
	return r->n > 0 || op_error(op, "the table has a bad result type '%s'", text);
}

static DType rule_dtype(const TypeRule *r, DType t)
{
	if (r->complex)
		return t == DT_F64 ? DT_C128 : DT_C64;
	return r->part ? dtype_part(t) : r->has_dtype ? r->dtype : t;
}

// The result of a rule on scalars or indices in a loop region.
static bool infer_scalars(Op *op, int result, const TypeRule *r)
{
	const Type *t = op_operand(op, r->operands[0])->type;
	for (int k = 1; k < r->n; k++) {
		const Type *other = op_operand(op, r->operands[k])->type;
		bool condition = op->info->operands[r->operands[k]].klass == CLASS_BOOL;
		if (!type_is_scalar(other) || (!condition && other != t))
			return op_error(op, "operands of types %s and %s", type_text(op->ctx, t),
			                type_text(op->ctx, other));
	}
	DType dtype = t->kind == TY_SCALAR ? rule_dtype(r, t->dtype) : r->dtype;
	return infer_result(op, result,
	                    t->kind == TY_SCALAR || r->has_dtype ? type_scalar(op->ctx, dtype) : t);
}

static bool infer_tensors(Op *op, int result, const TypeRule *r)
{
	const Type *t = infer_tensor(op, r->operands[0]);
	if (!t)
		return false;
	DType dtype = rule_dtype(r, t->dtype);
	if (!r->broadcast)
		return infer_result(op, result, type_like(op->ctx, t, dtype));
	const Dim *dims[MAX_RANK];
	int rank = t->rank, lod = t->lod;
	memcpy(dims, t->dims, sizeof *dims * (size_t)rank);
	for (int k = 1; k < r->n; k++) {
		const Type *other = infer_tensor(op, r->operands[k]);
		if (!other)
			return false;
		if (op->info->operands[r->operands[k]].klass != CLASS_BOOL && other->dtype != t->dtype)
			return op_error(op, "operands of types %s and %s", dtype_name(t->dtype),
			                dtype_name(other->dtype));
		const Dim *have[MAX_RANK];
		memcpy(have, dims, sizeof have);
		if (!infer_broadcast(op, rank, have, other->rank, other->dims, &rank, dims))
			return false;
		lod = lod ? lod : other->lod;
	}
	return infer_result(op, result, type_tensor(op->ctx, dtype, rank, dims, lod));
}

static bool infer_by_rule(Op *op, int result, const char *text)
{
	TypeRule rule;
	if (!strncmp(text, "given", 5))
		return op->results[result].type || op_error(op, "result %d has no type", result);
	if (!rule_parse(op, text, &rule))
		return false;
	for (int k = 0; k < rule.n; k++)
		if (!op_operand(op, rule.operands[k]))
			return op_error(op, "operand '%s' is missing",
			                op->info->operands[rule.operands[k]].name);
	if (type_is_scalar(op_operand(op, rule.operands[0])->type))
		return infer_scalars(op, result, &rule);
	return infer_tensors(op, result, &rule);
}

static bool class_takes(OperandClass k, const Type *t)
{
	if (t->kind == TY_INDEX)
		return k != CLASS_FLOAT && k != CLASS_BOOL;
	switch (k) {
	case CLASS_FLOAT: return dtype_is_float(t->dtype) || dtype_is_complex(t->dtype);
	case CLASS_INT: return dtype_is_int(t->dtype);
	case CLASS_BOOL: return t->dtype == DT_BOOL;
	case CLASS_NUMBER: return t->dtype != DT_BOOL;
	case CLASS_INDEX: return t->dtype == DT_I32 || t->dtype == DT_I64;
	case CLASS_ANY: break;
	}
	return true;
}

static bool check_class(const Op *op, const OperandInfo *o, const Value *v)
{
	static const char *const names[] = {"any type", "floats",  "integers",
	                                    "bool",     "numbers", "i32 or i64"};
	const Type *t = v->type;
	if (!t)
		return op_error(op, "operand '%s' has no type", o->name);
	if (type_is_tensor(t) && (t->rank < o->min_rank || t->rank > o->max_rank))
		return op_error(op, "operand '%s' is %s: rank %d", o->name, type_text(op->ctx, t), t->rank);
	bool typed = t->kind == TY_INDEX || t->kind == TY_SCALAR || t->kind == TY_TENSOR ||
	             t->kind == TY_SELECTED_ROWS || t->kind == TY_ARRAY;
	if (!typed || class_takes(o->klass, t))
		return true;
	return op_error(op, "operand '%s' is %s, %s needed", o->name, type_text(op->ctx, t),
	                names[o->klass]);
}

// Operands that the table asks for are there and of the right class.
static bool check_operands(const Op *op)
{
	const OpInfo *info = op->info;
	for (int i = 0; i < info->noperand; i++)
		if (!op_operand(op, i) && !info->operands[i].optional)
			return op_error(op, "operand '%s' is missing", info->operands[i].name);
	for (int i = 0; i < op->noperand; i++) {
		const OperandInfo *o = op_operand_info(info, i);
		if (!o)
			return op_error(op, "%d operands, at most %d are possible", op->noperand,
			                info->noperand);
		Value *const *list;
		int n = op_operand(op, i) ? op_operand_list(op, i, &list) : 0;
		for (int k = 0; k < n; k++)
			if (list[k] && !check_class(op, o, list[k]))
				return false;
	}
	return true;
}

static bool check_attributes(const Op *op)
{
	for (int i = 0; i < op->info->nattr; i++) {
		const AttrInfo *a = &op->info->attrs[i];
		const Attr *have = op_attr(op, a->name);
		if (a->required && !have)
			return op_error(op, "attribute '%s' is missing", a->name);
		const char *word = have && have->kind == ATTR_STR ? have->s : "";
		if (have && a->choices && enum_find(a->choices, word) == a->choices->n)
			return op_error(op, "attribute '%s' must be %s, not '%s'", a->name,
			                enum_text(op->ctx, a->choices), word);
	}
	return true;
}

bool op_infer(Op *op)
{
	const OpInfo *info = op->info;
	if (!check_operands(op) || !check_attributes(op))
		return false;
	for (int i = 0; info->result_types && i < op->nresult && i < info->nresult; i++)
		if (info->result_types[i] && !infer_by_rule(op, i, info->result_types[i]))
			return false;
	if (op_functions(op)->infer && !op_functions(op)->infer(op))
		return false;
	if (info->kind == KIND_MAP)
		infer_map_known(op);
	return true;
}
