// Types of the operators that move elements (ir/ops/tensor.yaml), and shape arithmetic through
// them.
//
// Inference leaves `dims` attributes resolved: the exact sizes, with the operand that overrides
// them dropped. Definitions and passes then need not look at operands.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

#include <string.h>

// ---- sizes from data ----------------------------------------------------------------------------

// Element k of v (of n) as a size, the same whenever the program is translated. Values of one
// variable may follow each other: a loop's argument, and what it becomes.
static const Dim *element_size(const Op *op, const Value *v, int k, int n)
{
	Context *c = op->ctx;
	const Loc *at = v->def ? v->def->loc : op->loc;
	const char *name = v->name ? v->name : at->var ? at->var : "";
	const char *which = n > 1 ? arena_printf(c->arena, "_%d", k) : "";
	const char *brief = arena_printf(c->arena, "n_%s%s", symbol_part(c, name), which);
	const char *full = arena_printf(c->arena, "n_%s_%d_%d%s", symbol_part(c, name),
	                                at->block < 0 ? 0 : at->block, at->op < 0 ? 0 : at->op, which);
	return *name ? dim_sym_found(c, brief, full, infer_mentions, op) : dim_sym_bounded(c, full);
}

// Where what needs the elements of v goes: where the value is, not only where it is needed, so that
// all that comes after may use it.
static Builder builder_behind(Op *op, Value *v)
{
	Builder b = builder_before(op);
	if (v->def && v->def->block && v->def->block != op->block)
		b = v->def->next ? builder_before(v->def->next)
		                 : builder_at_end(op->ctx, v->def->block, op->loc);
	else if (v->block && v->block != op->block && v->block->first)
		b = builder_before(v->block->first);
	b.loc = op->loc;
	return b;
}

// The first element of a vector that should have one, but whose size only a run tells; 0 when there
// is none.
static Value *first_element(Op *op, Value *v)
{
	Builder b = builder_behind(op, v);
	const Dim *one = dim_const(op->ctx, 1);
	Nest n = nest_open(&b, type_tensor(op->ctx, v->type->dtype, 1, &one, 0));
	Value *there = index_less(&n.b, n.at[0], index_dim(&n.b, v->type->dims[0]));
	return nest_close(&n, load_or(&n.b, there, build_scalar_f(&n.b, v->type->dtype, 0), v, n.at));
}

// Whether what v is computed from has got a name since, and v from it.
static bool names_follow(Value *v)
{
	return v->def && v->def->info->kind == KIND_MAP &&
	       value_known(op_operand(v->def, 0), &(const Dim *const *){NULL}) >= 0 &&
	       op_infer(v->def) && v->known;
}

static bool bind_sizes(Op *op, Value *v, bool one);

// A vector put together from numbers of which some are known, as Paddle 3 gives lists of sizes:
// only the others get names. What is known keeps its meaning: -1 is no size, but says to infer one.
static bool parts_bound(Op *op, Value *v)
{
	const bool stack = v->def && v->def->code == OP_PD_STACK;
	if (!stack && !(v->def && v->def->code == OP_PD_CONCAT))
		return false;
	Value *const *list;
	const int n = op_operand_list(v->def, 0, &list);
	int known = 0;
	for (int i = 0; i < n; i++) {
		int64_t numel;
		if (!list[i] || list[i]->type->rank != !stack || !dtype_is_int(list[i]->type->dtype) ||
		    !type_const_numel(list[i]->type, &numel))
			return false;
		known += list[i]->known != NULL;
	}
	if (!known)
		return false;
	for (int i = 0; i < n; i++)
		if (!list[i]->known && !bind_sizes(op, list[i], false))
			return false;
	return op_infer(v->def) && v->known;
}

// Gives the elements of an integer tensor names: symbols that a loop.bind before `op` reads at run
// time. `one`: it must have one element.
static bool bind_sizes(Op *op, Value *v, bool one)
{
	int64_t n;
	Context *c = op->ctx;
	if (names_follow(v) || parts_bound(op, v))
		return true;
	bool vector = type_is_tensor(v->type) && v->type->rank == 1 && one;
	bool known = type_is_tensor(v->type) && type_const_numel(v->type, &n);
	if (vector && !known)
		n = 1;
	if ((!known && !vector) || !dtype_is_int(v->type->dtype) || n > MAX_RANK || !op->block)
		return op_error(
			op, "a size that only the data tell must come from an integer tensor of known shape");
	const Dim **syms = NEW_ARRAY(c->arena, (size_t)n + 1, const Dim *);
	for (int k = 0; k < n; k++)
		syms[k] = element_size(op, v, k, (int)n);
	v->known = syms;
	v->nknown = (int)n;
	Builder b = builder_behind(op, v);
	if (!known && !(v = first_element(op, v)))
		return false;
	const NamedAttr dims = {"dims", attr_dims(c, (int)n, syms)};
	return build_op(&b, OP_LOOP_BIND, 1, &v, 1, &dims) != NULL;
}

bool infer_bind_value(Op *op, Value *v)
{
	return v->known || bind_sizes(op, v, false);
}

bool infer_bind_operand(Op *op, int i)
{
	return infer_bind_value(op, op_operand(op, i));
}

int infer_sizes_bound(Op *op, const char *attr, const Dim **out, int max)
{
	int n = infer_sizes(op, attr, out, max);
	const AttrInfo *info = op_info_attr(op->info, attr);
	int i = info && info->operand ? op_info_operand(op->info, info->operand) : -1;
	if (n >= 0 || i < 0 || !op_operand(op, i))
		return n;
	Value *const *list;
	int count = op_operand_list(op, i, &list);
	for (int k = 0; k < count; k++)
		if (!list[k] ||
		    (!list[k]->known && !bind_sizes(op, list[k], op_operand(op, i)->type->kind == TY_VEC)))
			return -1;
	n = infer_sizes(op, attr, out, max);
	if (n < 0)
		op_error(op, "'%s' has too many elements", attr);
	return n;
}

int infer_resolve(Op *op, const char *attr, const Dim **out, int max)
{
	int n = infer_sizes_bound(op, attr, out, max);
	const AttrInfo *info = op_info_attr(op->info, attr);
	int i = info && info->operand ? op_info_operand(op->info, info->operand) : -1;
	if (n < 0)
		return n;
	op_set_attr(op, attr, attr_dims(op->ctx, n, out));
	if (i >= 0 && op_operand(op, i))
		op_set_operand(op, i, NULL);
	return n;
}

int infer_resolve_ints(Op *op, const char *attr, int64_t *out, int max)
{
	const Dim *dims[64];
	const AttrInfo *info = op_info_attr(op->info, attr);
	int i = info && info->operand ? op_info_operand(op->info, info->operand) : -1;
	int n = infer_sizes(op, attr, dims, max < 64 ? max : 64);
	for (int k = 0; k < n; k++) {
		if (!dim_is_const(dims[k]))
			n = -1;
		else
			out[k] = dims[k]->value;
	}
	if (n < 0) {
		op_error(op, "'%s' must be known when the program is compiled", attr);
		return n;
	}
	op_set_attr(op, attr, attr_ints(op->ctx, n, out));
	if (i >= 0 && op_operand(op, i))
		op_set_operand(op, i, NULL);
	return n;
}

bool infer_resolve_int(Op *op, const char *attr, int64_t *out)
{
	const AttrInfo *info = op_info_attr(op->info, attr);
	int i = info && info->operand ? op_info_operand(op->info, info->operand) : -1;
	const Dim *const *known;
	if (i < 0 || !op_operand(op, i)) {
		const Attr *a = op_attr_or_default(op, attr);
		*out = a && a->kind == ATTR_INT ? a->i : int_from_double(op_number(op, attr));
		return true;
	}
	if (infer_known(op, i, &known) != 1 || !dim_is_const(known[0]))
		return op_error(op, "'%s' must be known when the program is compiled", attr);
	*out = known[0]->value;
	op_set_attr(op, attr, attr_int(op->ctx, *out));
	op_set_operand(op, i, NULL);
	return true;
}

int op_dims(const Op *op, const char *name, const Dim **out, int max)
{
	return infer_sizes(op, name, out, max);
}

// The same elements in the same order: what is known stays known.
static void pass_known(Op *op)
{
	const Dim *const *known;
	int n = infer_known(op, 0, &known);
	if (n >= 0)
		infer_set_known(op, 0, n, known);
}

// ---- views --------------------------------------------------------------------------------------

static bool reshape_result(Op *op, const Type *x, int n, const Dim **shape)
{
	pass_known(op);
	return infer_result(op, 0, type_tensor(op->ctx, x->dtype, n, shape, 0));
}

// The size that a shape found at run time means on an axis: 0 says that of x; -1 is left to the
// caller.
static Value *meant_size(Builder *b, const Type *x, Value *shape, Value *axis)
{
	Value *v = load(b, shape, &axis), *own = build_scalar_f(b, DT_I64, 0);
	for (int d = 0; d < x->rank; d++)
		own = index_where(b, index_equal(b, axis, index_const(b, d)),
		                  scalar_from_index(b, index_dim(b, x->dims[d]), DT_I64), own);
	v = scalar_cast(b, v, DT_I64);
	Value *zero = v ? build2(b, OP_PD_EQUAL, v, build_scalar_f(b, DT_I64, 0), NULL) : NULL;
	return index_where(b, zero, own, v);
}

// A shape that is a tensor of the data, with its 0 and -1 resolved by operations before op.
static Value *resolve_shape(Op *op, const Type *x, Value *shape)
{
	Builder b = builder_before(op);
	Context *c = op->ctx;
	const Type *type = type_like(c, shape->type, DT_I64);
	Nest n = nest_open(&b, type);
	Nest r = reduce_open(&n.b, "prod", DT_I64, 1, type->dims);
	Value *each = meant_size(&r.b, x, shape, r.at[0]), *one = build_scalar_f(&r.b, DT_I64, 1);
	Value *given = each ? build2(&r.b, OP_PD_GREATER_EQUAL, each, build_scalar_f(&r.b, DT_I64, 0),
	                             NULL)
	                    : NULL;
	Value *others = reduce_close(&r, index_where(&r.b, given, each, one));
	Value *numel = scalar_from_index(&n.b, index_dim(&n.b, type_numel(c, x)), DT_I64);
	Value *safe = others
	                  ? build2(&n.b, OP_PD_MAXIMUM, others, build_scalar_f(&n.b, DT_I64, 1), NULL)
	                  : NULL;
	Value *rest = safe && numel ? build2(&n.b, OP_PD_FLOOR_DIVIDE, numel, safe, NULL) : NULL;
	Value *mine = meant_size(&n.b, x, shape, n.at[0]);
	Value *known = mine ? build2(&n.b, OP_PD_GREATER_EQUAL, mine, build_scalar_f(&n.b, DT_I64, 0),
	                             NULL)
	                    : NULL;
	return nest_close(&n, index_where(&n.b, known, mine, rest));
}

// A shape operand of which nothing is known gives way to what it means.
static bool reshape_by_data(Op *op, const Type *x)
{
	Value *const *list;
	if (!op_operand(op, 1) || !op->block)
		return true;
	if (op_operand_list(op, 1, &list) != 1 || !list[0] || list[0]->known ||
	    !type_is_tensor(list[0]->type) || list[0]->type->rank != 1 ||
	    !dim_is_const(list[0]->type->dims[0]))
		return true;
	Value *meant = resolve_shape(op, x, list[0]);
	if (meant)
		op_set_operand(op, 1, meant);
	return meant != NULL;
}

// Of the n sizes of a shape those that are 0 are x's, and at most one is -1: its axis, or -1; -2
// after a diagnostic. `known` becomes the product of the others.
static int shape_settle(Op *op, const Type *x, int n, const Dim **shape, const Dim **known)
{
	const Dim *numel = type_numel(op->ctx, x);
	int free_axis = -1;
	for (int d = 0; d < n; d++) {
		if (dim_is(shape[d], 0) && d < x->rank && !dim_is(numel, 0))
			shape[d] = x->dims[d];
		if (!dim_is(shape[d], -1)) {
			*known = dim_mul(op->ctx, *known, shape[d]);
			continue;
		}
		if (free_axis >= 0) {
			op_error(op, "more than one -1 in the shape");
			return -2;
		}
		free_axis = d;
	}
	return free_axis;
}

bool infer_hook_reshape(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *known = dim_const(c, 1);
	if (!x || !reshape_by_data(op, x))
		return false;
	const int n = infer_sizes_bound(op, "shape", shape, MAX_RANK);
	if (n < 0)
		return diag_errors(c->diag) ? false
		                            : op_error(op, "the shape has more than %d axes", MAX_RANK);
	const Dim *numel = type_numel(c, x);
	const int free_axis = shape_settle(op, x, n, shape, &known);
	if (free_axis < -1)
		return false;
	if (free_axis >= 0) {
		if (dim_is(known, 0) ||
		    (dim_is_const(numel) && dim_is_const(known) && numel->value % known->value))
			return op_error(op, "the elements do not fill the shape evenly");
		shape[free_axis] = dim_div(c, numel, known);
	} else if (!infer_same_dim(op, numel, known, "numbers of elements", &known)) {
		return false;
	}
	// The types of a rewritten program must stay as they are: the shape is what it was resolved to.
	op_set_attr(op, "shape", attr_dims(c, n, shape));
	if (op_operand(op, 1))
		op_set_operand(op, 1, NULL);
	return reshape_result(op, x, n, shape);
}

bool infer_hook_flatten(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int start, stop, n = 0;
	if (!x)
		return false;
	if (!x->rank) {
		shape[0] = dim_const(c, 1);
		return reshape_result(op, x, 1, shape);
	}
	if (!infer_axis(op, op_int(op, "start_axis", 1), x->rank, &start) ||
	    !infer_axis(op, op_int(op, "stop_axis", -1), x->rank, &stop))
		return false;
	if (start > stop)
		return op_error(op, "start_axis %d is after stop_axis %d", start, stop);
	for (int d = 0; d < x->rank; d++) {
		if (d > start && d <= stop)
			shape[n - 1] = dim_mul(c, shape[n - 1], x->dims[d]);
		else
			shape[n++] = x->dims[d];
	}
	return reshape_result(op, x, n, shape);
}

bool infer_hook_flatten2(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	if (!x)
		return false;
	int64_t axis = op_int(op, "axis", 1);
	axis = axis < 0 ? axis + x->rank : axis;
	if (axis < 0 || axis > x->rank)
		return op_error(op, "axis %lld of a tensor of rank %d", (long long)axis, x->rank);
	const Dim *shape[2] = {dim_const(c, 1), dim_const(c, 1)};
	for (int d = 0; d < x->rank; d++)
		shape[d >= axis] = dim_mul(c, shape[d >= axis], x->dims[d]);
	return reshape_result(op, x, 2, shape);
}

// Whether an axis goes when all of size 1 are to go. The number of axes is fixed here: a size that
// only a run tells must not be 1 then: (d - 1) * (d - 1) is 1 or more for all others.
static bool squeezed(const Op *op, const Dim *d)
{
	Context *c = op->ctx;
	const Dim *one = dim_const(c, 1), *past = dim_sub(c, d, one);
	if (!dim_is_const(d))
		dim_check(c, dim_min(c, dim_mul(c, past, past), one), one);
	return dim_is(d, 1);
}

bool infer_hook_squeeze(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t axes[MAX_RANK];
	bool drop[MAX_RANK] = {false};
	int count, n = 0;
	if (!x || (count = infer_resolve_ints(op, "axis", axes, MAX_RANK)) < 0)
		return false;
	for (int i = 0; i < count; i++) {
		int axis;
		if (!infer_axis(op, axes[i], x->rank, &axis))
			return false;
		// An axis of another size stays, as Paddle has it; one that may be 1 is taken to be.
		drop[axis] = !dim_is_const(x->dims[axis]) || dim_is(x->dims[axis], 1);
		if (!dim_is_const(x->dims[axis]))
			infer_equal_dims(op, x->dims[axis], dim_const(op->ctx, 1));
	}
	for (int d = 0; d < x->rank; d++)
		if (count ? !drop[d] : !squeezed(op, x->dims[d]))
			shape[n++] = x->dims[d];
	return reshape_result(op, x, n, shape);
}

bool infer_hook_unsqueeze(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t axes[MAX_RANK];
	int count;
	if (!x || (count = infer_resolve_ints(op, "axis", axes, MAX_RANK)) < 0)
		return false;
	if (x->rank + count > MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	int rank = x->rank;
	for (int i = 0; i < count; i++) {
		int axis;
		if (!infer_axis(op, axes[i], rank + 1, &axis))
			return false;
		memmove(shape + axis + 1, shape + axis, sizeof *shape * (size_t)(rank - axis));
		shape[axis] = dim_const(op->ctx, 1);
		rank++;
	}
	return reshape_result(op, x, rank, shape);
}

// ---- permutation, lists -------------------------------------------------------------------------

bool infer_hook_transpose(Op *op)
{
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK];
	int64_t perm[MAX_RANK];
	bool seen[MAX_RANK];
	if (!x)
		return false;
	int n = op_ints(op, "perm", perm, MAX_RANK);
	if (n != x->rank)
		return op_error(op, "a permutation of %d axes for a tensor of rank %d", n, x->rank);
	if (!infer_axes(op, n, perm, x->rank, false, seen))
		return false;
	for (int d = 0; d < n; d++) {
		perm[d] = perm[d] < 0 ? perm[d] + n : perm[d];
		shape[d] = x->dims[perm[d]];
	}
	op_set_attr(op, "perm", attr_ints(op->ctx, n, perm));
	if (n <= 1)
		pass_known(op);
	return infer_result_shape(op, 0, x->dtype, n, shape);
}

// All elements of a list of tensors, one after the other, when all are known.
static void list_known(Op *op, int n, Value *const *list)
{
	const Dim *all[MAX_KNOWN];
	int count = 0;
	for (int i = 0; i < n; i++) {
		const Dim *const *known;
		int k = value_known(list[i], &known);
		if (k < 0 || count + k > MAX_KNOWN)
			return;
		memcpy(all + count, known, sizeof *all * (size_t)k);
		count += k;
	}
	infer_set_known(op, 0, count, all);
}

// The operands of a list, all tensors of one rank.
static int infer_list(Op *op, Value *const **list)
{
	int n = op_operand_list(op, 0, list);
	for (int i = 0; i < n; i++) {
		Value *v = (*list)[i];
		if (!v || !type_is_tensor(v->type) || v->type->rank != (*list)[0]->type->rank) {
			op_error(op, "element %d of the list is not a tensor of the rank of the first", i);
			return -1;
		}
	}
	if (!n)
		op_error(op, "the list is empty");
	return n ? n : -1;
}

bool infer_hook_concat(Op *op)
{
	Context *c = op->ctx;
	Value *const *list;
	const Dim *shape[MAX_RANK];
	int64_t given;
	int n = infer_list(op, &list), axis = 0;
	if (n < 0 || !infer_resolve_int(op, "axis", &given))
		return false;
	const Type *first = list[0]->type;
	if (!infer_axis(op, given, first->rank, &axis))
		return false;
	op_set_attr(op, "axis", attr_int(c, axis));
	memcpy(shape, first->dims, sizeof *shape * (size_t)first->rank);
	for (int i = 1; i < n; i++) {
		const Type *t = list[i]->type;
		if (t->dtype != first->dtype)
			return op_error(op, "element %d is %s, the first is %s", i, dtype_name(t->dtype),
			                dtype_name(first->dtype));
		for (int d = 0; d < first->rank; d++) {
			if (d == axis)
				shape[d] = dim_add(c, shape[d], t->dims[d]);
			else if (!infer_same_dim(op, shape[d], t->dims[d], "sizes of the parts", &shape[d]))
				return false;
		}
	}
	if (first->rank == 1)
		list_known(op, n, list);
	return infer_result_shape(op, 0, first->dtype, first->rank, shape);
}

bool infer_hook_stack(Op *op)
{
	Value *const *list;
	const Dim *shape[MAX_RANK];
	int n = infer_list(op, &list), axis;
	if (n < 0)
		return false;
	const Type *first = list[0]->type;
	if (first->rank == MAX_RANK)
		return op_error(op, "the result would have more than %d axes", MAX_RANK);
	if (!infer_axis(op, op_int(op, "axis", 0), first->rank + 1, &axis))
		return false;
	op_set_attr(op, "axis", attr_int(op->ctx, axis));
	for (int d = 0; d < first->rank; d++) {
		const Dim **at = &shape[d + (d >= axis)];
		*at = first->dims[d];
		for (int i = 1; i < n; i++)
			if (!infer_same_dim(op, *at, list[i]->type->dims[d], "sizes of the parts", at))
				return false;
	}
	shape[axis] = dim_const(op->ctx, n);
	if (axis == 0)
		list_known(op, n, list);
	return infer_result_shape(op, 0, first->dtype, first->rank + 1, shape);
}

static bool list_result(Op *op, int n, const Type *const *types)
{
	return infer_result(op, 0, type_group(op->ctx, TY_VEC, n, types));
}

// Sizes of the pieces: `sections` (one may be -1) or `num` equal ones. Returns how many, -1 after
// an error.
static int split_sizes(Op *op, const Dim *size, const Dim ***out)
{
	Context *c = op->ctx;
	enum { MAX_PIECES = 1024 };
	const Dim **sizes = NEW_ARRAY(c->arena, MAX_PIECES, const Dim *);
	*out = sizes;
	int n = infer_resolve(op, "sections", sizes, MAX_PIECES);
	if (n > 0) {
		const Dim *rest = size;
		int free_piece = -1;
		for (int i = 0; i < n; i++) {
			if (dim_is(sizes[i], -1))
				free_piece = i;
			else
				rest = dim_sub(c, rest, sizes[i]);
		}
		if (free_piece >= 0)
			sizes[free_piece] = rest;
		else if (!infer_same_dim(op, rest, dim_const(c, 0), "the size and the sum of the sections",
		                         &rest))
			return -1;
		return n;
	}
	int64_t num = op_int(op, "num", 0);
	if (num < 1 || num > MAX_PIECES || (dim_is_const(size) && size->value % num)) {
		op_error(op, "an axis cannot be split into %lld equal pieces", (long long)num);
		return -1;
	}
	for (int i = 0; i < num; i++)
		sizes[i] = dim_div(c, size, dim_const(c, num));
	return (int)num;
}

bool infer_hook_split(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim **sizes, *shape[MAX_RANK];
	int64_t given;
	int axis, n;
	if (!x || !infer_resolve_int(op, "axis", &given) || !infer_axis(op, given, x->rank, &axis) ||
	    (n = split_sizes(op, x->dims[axis], &sizes)) < 0)
		return false;
	op_set_attr(op, "axis", attr_int(c, axis));
	const Type **types = NEW_ARRAY(c->arena, (size_t)n, const Type *);
	memcpy(shape, x->dims, sizeof *shape * (size_t)x->rank);
	for (int i = 0; i < n; i++) {
		shape[axis] = sizes[i];
		types[i] = type_tensor(c, x->dtype, x->rank, shape, 0);
	}
	return list_result(op, n, types);
}

bool infer_hook_unstack(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_tensor(op, 0);
	const Dim *shape[MAX_RANK], *size;
	int axis, k = 0;
	if (!x || !infer_axis(op, op_int(op, "axis", 0), x->rank, &axis))
		return false;
	size = x->dims[axis];
	if (!dim_is_const(size) && op_int(op, "num", 0) > 0) {
		infer_equal_dims(op, size, dim_const(c, op_int(op, "num", 0)));
		size = dim_const(c, op_int(op, "num", 0));
	}
	if (!dim_is_const(size) || size->value > 4096)
		return op_error(op, "the number of pieces must be known when the program is compiled");
	op_set_attr(op, "axis", attr_int(c, axis));
	for (int d = 0; d < x->rank; d++)
		if (d != axis)
			shape[k++] = x->dims[d];
	const Type **types = NEW_ARRAY(c->arena, (size_t)size->value + 1, const Type *);
	for (int i = 0; i < size->value; i++)
		types[i] = type_tensor(c, x->dtype, k, shape, 0);
	return list_result(op, (int)size->value, types);
}

bool infer_hook_meshgrid(Op *op)
{
	Context *c = op->ctx;
	Value *const *list;
	const Dim *shape[MAX_RANK];
	int n = op_operand_list(op, 0, &list);
	if (n > MAX_RANK)
		return op_error(op, "a grid of more than %d axes", MAX_RANK);
	const Type **types = NEW_ARRAY(c->arena, (size_t)n + 1, const Type *);
	for (int i = 0; i < n; i++) {
		if (!list[i] || !type_is_tensor(list[i]->type) || list[i]->type->rank > 1)
			return op_error(op, "input %d is not a vector", i);
		shape[i] = type_numel(c, list[i]->type);
	}
	for (int i = 0; i < n; i++)
		types[i] = type_tensor(c, list[i]->type->dtype, n, shape, 0);
	return list_result(op, n, types);
}
