// The helpers of inference (infer.h): operands, axes, shapes, shape arithmetic; and the hooks of
// the builtin, loop and cf dialects.
#include "ir/build/infer.h"
#include "ir/build/build.h"
#include "ir/text/text.h"

#include <string.h>

// ---- operands and attributes --------------------------------------------------------------------

const OperandInfo *op_operand_info(const OpInfo *info, int i)
{
	if (i < info->noperand)
		return &info->operands[i];
	return info->traits & TRAIT_REPEAT_OPERAND ? &info->operands[info->noperand - 1] : NULL;
}

const Type *infer_tensor(const Op *op, int i)
{
	const OperandInfo *o = op_operand_info(op->info, i);
	const char *name = o ? o->name : "?";
	const Value *v = op_operand(op, i);
	if (!v || !v->type) {
		op_error(op, "operand '%s' is missing", name);
		return NULL;
	}
	if (v->type->kind != TY_TENSOR && v->type->kind != TY_SELECTED_ROWS) {
		op_error(op, "operand '%s' is %s, a tensor is needed", name, type_text(op->ctx, v->type));
		return NULL;
	}
	return v->type;
}

const Type *infer_rank(const Op *op, int i, int rank)
{
	const Type *t = infer_tensor(op, i);
	if (!t || t->rank == rank)
		return t;
	op_error(op, "operand '%s' is %s, a tensor of rank %d is needed",
	         op_operand_info(op->info, i)->name, type_text(op->ctx, t), rank);
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
		return op_error(op, "axis %lld of a tensor of rank %d", (long long)axis, rank);
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
			return op_error(op, "axis %lld is given twice", (long long)axes[i]);
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

bool op_may_not_run(const Op *op)
{
	while (op && !op_is_branch(op) && op->code != OP_PD_WHILE && op->code != OP_FUNC_FUNC &&
	       (!op->block || op->block == region_entry(op->block->region)))
		op = op_parent(op);
	return op != NULL;
}

void infer_equal_dims(const Op *op, const Dim *a, const Dim *b)
{
	if (op_may_not_run(op))
		dim_check(op->ctx, a, b);
	else
		dim_unify(op->ctx, a, b);
}

const Dim *infer_divided(Context *c, const Dim *size, const Dim *by)
{
	const Dim *quotient = dim_div(c, size, by);
	dim_check(c, size, dim_mul(c, quotient, by));
	return quotient;
}

bool infer_at_least(const Op *op, const Dim *d, const Dim *least, const char *what)
{
	if (dim_is_const(d) && dim_is_const(least))
		return d->value >= least->value || op_error(op, "%s is %lld, less than %lld", what,
		                                            (long long)d->value, (long long)least->value);
	dim_check(op->ctx, dim_max(op->ctx, d, least), d);
	return true;
}

bool infer_same_dim(const Op *op, const Dim *a, const Dim *b, const char *what, const Dim **out)
{
	*out = dim_is_const(a) ? a : dim_is_const(b) ? b : a;
	if (a == b)
		return true;
	if (dim_is_const(a) && dim_is_const(b))
		return op_error(op, "%s differ: %s and %s", what, dim_text(op->ctx, a),
		                dim_text(op->ctx, b));
	infer_equal_dims(op, a, b);
	return true;
}

bool infer_same_dims(const Op *op, int axis, const Type *a, const Type *b, const char *what)
{
	const Dim *same;
	for (int d = axis; d < a->rank; d++)
		if (!infer_same_dim(op, a->dims[d], b->dims[d], what, &same))
			return false;
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

// ---- hooks: builtin, loop, cf -------------------------------------------------------------------

bool infer_hook_combine(Op *op)
{
	const Type **types = NEW_ARRAY(op->ctx->arena, (size_t)op->noperand + 1, const Type *);
	for (int i = 0; i < op->noperand; i++) {
		if (!op_operand(op, i))
			return op_error(op, "element %d is missing", i);
		types[i] = op_operand(op, i)->type;
	}
	return infer_result(op, 0, type_group(op->ctx, TY_VEC, op->noperand, types));
}

bool infer_hook_slice_list(Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	int64_t i = op_int(op, "index", 0);
	if (t->kind != TY_VEC)
		return op_error(op, "operand 'list' is %s, a list is needed", type_text(op->ctx, t));
	if (i < 0 || i >= t->nelem)
		return op_error(op, "element %lld of a list of %d", (long long)i, t->nelem);
	return infer_result(op, 0, t->elems[i]);
}

bool infer_hook_constant(Op *op)
{
	const Attr *a = op_attr(op, "value");
	const Dim *dims[MAX_RANK], *known[MAX_KNOWN];
	if (a->kind != ATTR_TENSOR)
		return op_error(op, "attribute 'value' is no tensor");
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
		op_error(op, "%d indices into a tensor of rank %d", op->noperand - first - 1, t->rank);
		return NULL;
	}
	for (int i = first + 1; i < op->noperand; i++) {
		if (!op_operand(op, i) || op_operand(op, i)->type->kind != TY_INDEX) {
			op_error(op, "index %d is no index", i - first - 1);
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
		return op_error(op, "operand 'tensor' is missing");
	const Type *t = element_type(op, 2);
	if (t && op_operand(op, 1)->type != t)
		return op_error(op, "'other' is %s, the elements are %s",
		                type_text(op->ctx, op_operand(op, 1)->type), type_text(op->ctx, t));
	return t && infer_result(op, 0, t);
}

bool infer_hook_loop_constant(Op *op)
{
	const Attr *type = op_attr(op, "type");
	if (!op->results[0].type && type && type->kind == ATTR_TYPE)
		op->results[0].type = type->type;
	const Type *t = op->results[0].type;
	return (t && type_is_scalar(t)) || op_error(op, "the type must be a scalar or index");
}

bool infer_hook_loop_dim(Op *op)
{
	return infer_result(op, 0, type_index(op->ctx));
}

bool infer_hook_loop_from_index(Op *op)
{
	if (op_operand(op, 0)->type->kind != TY_INDEX)
		return op_error(op, "the operand is no index");
	return infer_result(op, 0, type_scalar(op->ctx, op_dtype(op, "dtype", DT_I64)));
}

bool infer_hook_loop_to_index(Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	if (t->kind != TY_SCALAR || !dtype_is_int(t->dtype))
		return op_error(op, "the operand is %s, an integer scalar is needed",
		                type_text(op->ctx, t));
	return infer_result(op, 0, type_index(op->ctx));
}

bool infer_hook_loop_near_index(Op *op)
{
	return infer_result(op, 0, type_index(op->ctx));
}

bool infer_hook_is_empty(Op *op)
{
	return infer_result_shape(op, 0, DT_BOOL, 0, NULL);
}

// ---- sizes that operations find -----------------------------------------------------------------

const char *symbol_part(Context *c, const char *name)
{
	char *s = arena_printf(c->arena, "%s", name);
	for (char *p = s; *p; p++) {
		const bool fits = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		                  (*p >= '0' && *p <= '9');
		*p = fits ? *p : '_';
	}
	return s;
}

bool infer_mentions(const Dim *sym, const void *op_of)
{
	const Op *op = op_of;
	for (int i = 0; i < op->nresult; i++) {
		const Type *t = op->results[i].type;
		for (int d = 0; t && t->kind == TY_TENSOR && d < t->rank; d++)
			if (dim_mentions(t->dims[d], sym))
				return true;
	}
	return false;
}

const Dim *infer_found(const Op *op, const char *kind, const char *what, int k)
{
	Context *c = op->ctx;
	const Loc *l = op->loc;
	const char *which = k < 0 ? "" : arena_printf(c->arena, "_%d", k);
	const char *full = arena_printf(c->arena, "%s%s_%d_%d%s", kind, what,
	                                l->block < 0 ? 0 : l->block, l->op < 0 ? 0 : l->op, which);
	if (!l->var)
		return dim_sym_bounded(c, full);
	const bool same = l->type && !strcmp(l->type, what);
	const char *brief = arena_printf(c->arena, "%s%s%s%s%s", kind, same ? "" : what,
	                                 same ? "" : "_", symbol_part(c, l->var), which);
	return dim_sym_found(c, brief, full, infer_mentions, op);
}
