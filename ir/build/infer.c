// Inference: result types from operand types. op_infer is the one entry (build.c, the translator,
// the parser); most operations say what they need in the table, the others have a hook in
// infer_*.c. The helpers in infer.h are here, and the hooks of the builtin, loop and cf dialects.
#include "ir/build/infer.h"
#include "ir/build/build.h"
#include "ir/text/text.h"

#include <string.h>

bool infer_error(const Op *op, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(op->ctx->arena, fmt, ap);
	va_end(ap);
	diag_error(op->ctx->diag, op->loc, "'%s': %s", op->info->name, text);
	return false;
}

static const char *type_text(Context *c, const Type *t)
{
	Text text;
	text_init(&text, c->arena);
	type_print(&text, t);
	return text.text;
}

const char *dim_text(Context *c, const Dim *d)
{
	Text text;
	text_init(&text, c->arena);
	dim_print(&text, d);
	return text.text;
}

// ---- operands and attributes --------------------------------------------------------------------

// Name of operand i; the last one listed may repeat.
static const OperandInfo *operand_info(const OpInfo *info, int i)
{
	if (i < info->noperand)
		return &info->operands[i];
	return info->traits & TRAIT_REPEAT_OPERAND ? &info->operands[info->noperand - 1] : NULL;
}

const Type *infer_tensor(const Op *op, int i)
{
	const OperandInfo *o = operand_info(op->info, i);
	const char *name = o ? o->name : "?";
	const Value *v = op_operand(op, i);
	if (!v || !v->type) {
		infer_error(op, "operand '%s' is missing", name);
		return NULL;
	}
	if (v->type->kind != TY_TENSOR && v->type->kind != TY_SELECTED_ROWS) {
		infer_error(op, "operand '%s' is %s, a tensor is needed", name,
		            type_text(op->ctx, v->type));
		return NULL;
	}
	return v->type;
}

const Type *infer_rank(const Op *op, int i, int rank)
{
	const Type *t = infer_tensor(op, i);
	if (!t || t->rank == rank)
		return t;
	infer_error(op, "operand '%s' is %s, a tensor of rank %d is needed",
	            operand_info(op->info, i)->name, type_text(op->ctx, t), rank);
	return NULL;
}

Value *op_operand_named(const Op *op, const char *name)
{
	int i = op_info_operand(op->info, name);
	return i < 0 ? NULL : op_operand(op, i);
}

const Attr *op_attr_or_default(const Op *op, const char *name)
{
	const Attr *a = op_attr(op, name);
	const AttrInfo *info = a ? NULL : op_info_attr(op->info, name);
	return info && info->fallback ? attr_parse(op->ctx, info->kind, info->fallback) : a;
}

double op_number(const Op *op, const char *name)
{
	const Attr *a = op_attr_or_default(op, name);
	return !a ? 0 : a->kind == ATTR_FLOAT ? a->f : (double)a->i;
}

bool infer_axis(const Op *op, int64_t axis, int rank, int *out)
{
	*out = 0;
	if (axis < -rank || axis >= rank)
		return infer_error(op, "axis %lld of a tensor of rank %d", (long long)axis, rank);
	*out = (int)(axis < 0 ? axis + rank : axis);
	return true;
}

bool infer_axes(const Op *op, int n, const int64_t *axes, int rank, bool none_is_all, bool *flags)
{
	for (int d = 0; d < rank; d++)
		flags[d] = !n && none_is_all;
	for (int i = 0; i < n; i++) {
		int axis;
		if (!infer_axis(op, axes[i], rank, &axis))
			return false;
		if (flags[axis])
			return infer_error(op, "axis %lld is given twice", (long long)axes[i]);
		flags[axis] = true;
	}
	return true;
}

// ---- shapes -------------------------------------------------------------------------------------

bool infer_result(Op *op, int i, const Type *t)
{
	op->results[i].type = t;
	return true;
}

bool infer_result_shape(Op *op, int i, DType t, int rank, const Dim *const *dims)
{
	return infer_result(op, i, type_tensor(op->ctx, t, rank, dims, 0));
}

bool infer_same_dim(const Op *op, const Dim *a, const Dim *b, const char *what, const Dim **out)
{
	*out = dim_is_const(a) ? a : dim_is_const(b) ? b : a;
	if (a == b)
		return true;
	if (dim_is_const(a) && dim_is_const(b))
		return infer_error(op, "%s differ: %s and %s", what, dim_text(op->ctx, a),
		                   dim_text(op->ctx, b));
	dim_unify(op->ctx, a, b);
	return true;
}

// ---- shape arithmetic ---------------------------------------------------------------------------

int value_known(const Value *v, const Dim *const **out)
{
	if (!v || !v->known)
		return -1;
	*out = v->known;
	return v->nknown;
}

int infer_known(const Op *op, int i, const Dim *const **out)
{
	return value_known(op_operand(op, i), out);
}

void infer_set_known(Op *op, int i, int n, const Dim *const *known)
{
	Value *v = &op->results[i];
	v->known = NULL;
	v->nknown = 0;
	if (n < 0 || n > MAX_KNOWN)
		return;
	const Dim **copy = NEW_ARRAY(op->ctx->arena, (size_t)n + 1, const Dim *);
	for (int k = 0; k < n; k++)
		copy[k] = known[k];
	v->known = copy;
	v->nknown = n;
}

// The sizes in operand i: one tensor, or a list of tensors of one element each.
static int known_list(const Op *op, int i, const Dim **out, int max)
{
	Value *const *list;
	const Dim *const *known;
	if (op_operand(op, i)->type->kind != TY_VEC) {
		int n = infer_known(op, i, &known);
		for (int k = 0; k < n && n <= max; k++)
			out[k] = known[k];
		return n > max ? -1 : n;
	}
	int n = op_operand_list(op, i, &list);
	for (int k = 0; k < n; k++) {
		if (k == max || value_known(list[k], &known) != 1)
			return -1;
		out[k] = known[0];
	}
	return n;
}

int infer_sizes(const Op *op, const char *attr, const Dim **out, int max)
{
	const AttrInfo *info = op_info_attr(op->info, attr);
	int operand = info && info->operand ? op_info_operand(op->info, info->operand) : -1;
	if (operand >= 0 && op_operand(op, operand))
		return known_list(op, operand, out, max);
	const Attr *a = op_attr_or_default(op, attr);
	if (!a || (a->kind != ATTR_INTS && a->kind != ATTR_DIMS) || a->n > max)
		return -1;
	for (int k = 0; k < a->n; k++)
		out[k] = a->kind == ATTR_DIMS ? a->dims[k] : dim_const(op->ctx, a->ints[k]);
	return a->n;
}

// ---- result types from the table ----------------------------------------------------------------

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
		return infer_error(op, "the table has a bad result type '%s'", text);
	for (s++; *s && *s != ')';) {
		size_t n = strcspn(s, ",) ");
		if (!rule_argument(op, s, n, r))
			return infer_error(op, "the table has a bad result type '%s'", text);
		s += n;
		s += strspn(s, ", ");
	}
	return r->n > 0 || infer_error(op, "the table has a bad result type '%s'", text);
}

static bool is_scalar(const Type *t)
{
	return t->kind == TY_SCALAR || t->kind == TY_INDEX;
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
		if (!is_scalar(other) || (!condition && other != t))
			return infer_error(op, "operands of types %s and %s", type_text(op->ctx, t),
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
			return infer_error(op, "operands of types %s and %s", dtype_name(t->dtype),
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
		return op->results[result].type || infer_error(op, "result %d has no type", result);
	if (!rule_parse(op, text, &rule))
		return false;
	for (int k = 0; k < rule.n; k++)
		if (!op_operand(op, rule.operands[k]))
			return infer_error(op, "operand '%s' is missing",
			                   op->info->operands[rule.operands[k]].name);
	if (is_scalar(op_operand(op, rule.operands[0])->type))
		return infer_scalars(op, result, &rule);
	return infer_tensors(op, result, &rule);
}

// ---- checks before every inference --------------------------------------------------------------

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
		return infer_error(op, "operand '%s' has no type", o->name);
	bool typed = t->kind == TY_INDEX || t->kind == TY_SCALAR || t->kind == TY_TENSOR ||
	             t->kind == TY_SELECTED_ROWS || t->kind == TY_ARRAY;
	if (!typed || class_takes(o->klass, t))
		return true;
	return infer_error(op, "operand '%s' is %s, %s needed", o->name, type_text(op->ctx, t),
	                   names[o->klass]);
}

// Operands that the table asks for are there and of the right class.
static bool check_operands(const Op *op)
{
	const OpInfo *info = op->info;
	for (int i = 0; i < info->noperand; i++)
		if (!op_operand(op, i) && !info->operands[i].optional)
			return infer_error(op, "operand '%s' is missing", info->operands[i].name);
	for (int i = 0; i < op->noperand; i++) {
		const OperandInfo *o = operand_info(info, i);
		if (!o)
			return infer_error(op, "%d operands, at most %d are possible", op->noperand,
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
			return infer_error(op, "attribute '%s' is missing", a->name);
		if (have && a->choices && have->kind == ATTR_STR &&
		    enum_find(a->choices, have->s) == a->choices->n)
			return infer_error(op, "attribute '%s' must be %s, not '%s'", a->name,
			                   enum_text(op->ctx, a->choices), have->s);
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

// ---- hooks: builtin, loop, cf -------------------------------------------------------------------

bool infer_hook_combine(Op *op)
{
	const Type **types = NEW_ARRAY(op->ctx->arena, (size_t)op->noperand + 1, const Type *);
	for (int i = 0; i < op->noperand; i++) {
		if (!op_operand(op, i))
			return infer_error(op, "element %d is missing", i);
		types[i] = op_operand(op, i)->type;
	}
	return infer_result(op, 0, type_group(op->ctx, TY_VEC, op->noperand, types));
}

bool infer_hook_slice_list(Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	int64_t i = op_int(op, "index", 0);
	if (t->kind != TY_VEC)
		return infer_error(op, "operand 'list' is %s, a list is needed", type_text(op->ctx, t));
	if (i < 0 || i >= t->nelem)
		return infer_error(op, "element %lld of a list of %d", (long long)i, t->nelem);
	return infer_result(op, 0, t->elems[i]);
}

bool infer_hook_constant(Op *op)
{
	const Attr *a = op_attr(op, "value");
	const Dim *dims[MAX_RANK], *known[MAX_KNOWN];
	if (a->kind != ATTR_TENSOR)
		return infer_error(op, "attribute 'value' is no tensor");
	const Tensor *t = a->tensor;
	for (int d = 0; d < t->rank; d++)
		dims[d] = dim_const(op->ctx, t->dims[d]);
	infer_result_shape(op, 0, t->dtype, t->rank, dims);
	int64_t n = tensor_numel(t);
	if (!dtype_is_int(t->dtype) || n > MAX_KNOWN)
		return true;
	for (int64_t i = 0; i < n; i++)
		known[i] = dim_const(op->ctx, tensor_get_i(t, i));
	infer_set_known(op, 0, (int)n, known);
	return true;
}

// Checks `tensor` at operand `first` and the indices after it; the element type, or NULL.
static const Type *element_type(Op *op, int first)
{
	const Type *t = infer_tensor(op, first);
	if (!t)
		return NULL;
	if (op->noperand - first - 1 != t->rank) {
		infer_error(op, "%d indices into a tensor of rank %d", op->noperand - first - 1, t->rank);
		return NULL;
	}
	for (int i = first + 1; i < op->noperand; i++) {
		if (!op_operand(op, i) || op_operand(op, i)->type->kind != TY_INDEX) {
			infer_error(op, "index %d is no index", i - first - 1);
			return NULL;
		}
	}
	return type_scalar(op->ctx, t->dtype);
}

bool infer_hook_loop_load(Op *op)
{
	const Type *t = element_type(op, 0);
	return t && infer_result(op, 0, t);
}

bool infer_hook_loop_load_or(Op *op)
{
	if (op->noperand < 3)
		return infer_error(op, "operand 'tensor' is missing");
	const Type *t = element_type(op, 2);
	if (t && op_operand(op, 1)->type != t)
		return infer_error(op, "'other' is %s, the elements are %s",
		                   type_text(op->ctx, op_operand(op, 1)->type), type_text(op->ctx, t));
	return t && infer_result(op, 0, t);
}

bool infer_hook_loop_constant(Op *op)
{
	const Attr *type = op_attr(op, "type");
	if (!op->results[0].type && type && type->kind == ATTR_TYPE)
		op->results[0].type = type->type;
	const Type *t = op->results[0].type;
	return (t && is_scalar(t)) || infer_error(op, "the type must be a scalar or index");
}

bool infer_hook_loop_dim(Op *op)
{
	return infer_result(op, 0, type_index(op->ctx));
}

bool infer_hook_loop_from_index(Op *op)
{
	if (op_operand(op, 0)->type->kind != TY_INDEX)
		return infer_error(op, "the operand is no index");
	return infer_result(op, 0, type_scalar(op->ctx, op_dtype(op, "dtype", DT_I64)));
}

bool infer_hook_loop_to_index(Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	if (t->kind != TY_SCALAR || !dtype_is_int(t->dtype))
		return infer_error(op, "the operand is %s, an integer scalar is needed",
		                   type_text(op->ctx, t));
	return infer_result(op, 0, type_index(op->ctx));
}

bool infer_hook_is_empty(Op *op)
{
	return infer_result_shape(op, 0, DT_BOOL, 0, NULL);
}
