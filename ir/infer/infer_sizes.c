// Sizes that stand in attributes, or that data give (infer.h).
//
// Inference leaves `dims` attributes resolved: the exact sizes, with the operand that overrides
// them dropped. Definitions and passes then need not look at operands.
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"

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

// Whether it may be an element of a stack of sizes, or a piece of a concat of them.
static bool is_part(const Type *t, bool stack)
{
	int64_t numel;
	return dtype_is_int(t->dtype) && type_const_numel(t, &numel) &&
	       (stack ? numel == 1 : t->rank == 1);
}

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
		if (!list[i] || !is_part(list[i]->type, stack))
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

// Element `axis` of sizes that data give, as an i64: -1 is own[axis], where that is something.
static Value *meant_size(Builder *b, Value *sizes, Value *axis, int n, const Dim *const *own)
{
	Value *v = scalar_cast(b, load(b, sizes, &axis), DT_I64), *kept = v;
	for (int d = 0; d < n && v; d++)
		if (own[d])
			kept = index_where(b, index_equal(b, axis, index_const(b, d)),
			                   scalar_from_index(b, index_dim(b, own[d]), DT_I64), kept);
	Value *keep = v ? build2(b, OP_PD_EQUAL, v, build_scalar_f(b, DT_I64, -1), NULL) : NULL;
	return index_where(b, keep, kept, v);
}

// Whether a vector is put together from parts, which are looked at one by one (parts_bound).
static bool has_parts(const Value *v)
{
	return v->def && (v->def->code == OP_PD_STACK || v->def->code == OP_PD_CONCAT);
}

bool infer_own_sizes(Op *op, int i, int n, const Dim *const *own)
{
	int64_t numel;
	Value *v = op_operand(op, i), *const * list;
	if (!v || !op->block || op_operand_list(op, i, &list) != 1 || !(v = list[0]) || v->known ||
	    has_parts(v) || !type_is_tensor(v->type) || v->type->rank != 1 ||
	    !dtype_is_int(v->type->dtype) || !type_const_numel(v->type, &numel) || numel != n)
		return true;
	Builder b = builder_before(op);
	Nest m = nest_open(&b, type_like(op->ctx, v->type, DT_I64));
	Value *meant = nest_close(&m, meant_size(&m.b, v, m.at[0], n, own));
	if (meant)
		op_set_operand(op, i, meant);
	return meant != NULL;
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
