// What exists in which layout: types of blocked images, the blocked form of each value, and the
// pieces that the handlers build with.
#include "lower/kernels/layout.h"
#include "ir/base/vec.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"

#include <string.h>

// ---- types --------------------------------------------------------------------------------------

bool type_blockable(const Type *t)
{
	return type_is_tensor(t) && t->rank == 4 && !t->lod && dim_is_const(t->dims[1]) &&
	       t->dims[1]->value > 0;
}

int64_t type_channels(const Type *t)
{
	return t->dims[1]->value;
}

int64_t layout_lanes(const Layout *l, int64_t channels)
{
	return channels <= l->few ? l->few : l->target->lanes;
}

const Type *type_in_blocks(Context *c, const Type *t, int64_t b)
{
	const Dim *dims[5] = {t->dims[0], dim_const(c, (type_channels(t) + b - 1) / b), t->dims[2],
	                      t->dims[3], dim_const(c, b)};
	return type_tensor(c, t->dtype, 5, dims, 0);
}

const Type *type_blocked(const Layout *l, const Type *t)
{
	return type_in_blocks(l->ctx, t, layout_lanes(l, type_channels(t)));
}

bool layout_has_blocks(const Layout *l, DType t)
{
	if (l->target->channel_lanes)
		return true;
	return !l->cuda_libs && (dtype_is_half(t) || (t == DT_F32 && l->allow_tf32));
}

// ---- building -----------------------------------------------------------------------------------

Op *op_rebuild(Op *op, const Type *type, int noperand, Value *const *operands)
{
	Op *copy = op_new(op->ctx, op->code, op->loc, 1, &type, noperand, operands, 0, 0);
	for (int i = 0; i < op->nattr; i++)
		op_set_attr(copy, op->attrs[i].name, op->attrs[i].attr);
	copy->results[0].name = op->results[0].name;
	op_insert_before(op, copy);
	return copy;
}

Op *layout_kernel(Op *op, enum OpCode code, const Type *type, int noperand, Value *const *operands)
{
	Op *kernel = op_new(op->ctx, code, op->loc, 1, &type, noperand, operands,
	                    op_table[code].max_regions, 0);
	kernel->results[0].name = op->results[0].name;
	op_insert_before(op, kernel);
	return kernel;
}

void epilogue_identity(Op *kernel, Region *r)
{
	Context *c = kernel->ctx;
	const Type *t = kernel->results[0].type;
	Block *block = block_new(c, r);
	Value *acc = block_add_arg(c, block, type_scalar(c, t->dtype));
	for (int i = 0; i < t->rank; i++)
		block_add_arg(c, block, type_index(c));
	Builder b = builder_at_end(c, block, kernel->loc);
	build_op(&b, OP_LOOP_YIELD, 1, &acc, 0, NULL);
}

int op_numbers(const Op *op, const char *name, int64_t *out, int max)
{
	const Attr *a = op_attr(op, name);
	if (!a || a->n > max || (a->kind != ATTR_INTS && a->kind != ATTR_DIMS))
		return -1;
	for (int i = 0; i < a->n; i++) {
		if (a->kind == ATTR_DIMS && !dim_is_const(a->dims[i]))
			return -1;
		out[i] = a->kind == ATTR_DIMS ? a->dims[i]->value : a->ints[i];
	}
	return a->n;
}

const Attr *attr_numbers(Context *c, int n, const int64_t *v)
{
	const Dim *dims[2 * MAX_RANK];
	for (int i = 0; i < n; i++)
		dims[i] = dim_const(c, v[i]);
	return attr_dims(c, n, dims);
}

Value *build_view(Builder *b, Value *x, int rank, const Dim *const *dims)
{
	const Type *t = x->type;
	if (t->rank == rank && !memcmp(t->dims, dims, (size_t)rank * sizeof *dims))
		return x;
	return build1(b, OP_PD_RESHAPE, x, "shape", attr_dims(b->ctx, rank, dims), NULL);
}

Value *build_parts_sum(Builder *b, Value *parts, DType t)
{
	Value *sum = build1(b, OP_PD_SUM, parts, "axis", attr_ints(b->ctx, 1, (int64_t[]){0}), NULL);
	return sum && t != DT_F32 ? build1(b, OP_PD_CAST, sum, "dtype", attr_dtype(b->ctx, t), NULL)
	                          : sum;
}

// ---- what exists in blocked form ----------------------------------------------------------------

Value *blocked_find(const Layout *l, Value *v)
{
	Value *form = v ? value_map_get(l->blocked, v) : NULL;
	return form == v ? NULL : form;
}

// Right after the value, so that every reader may use what is built there.
static Builder builder_after(Layout *l, Value *v)
{
	if (!v->def)
		return builder_before(v->block->first);
	Builder b = builder_at_end(l->ctx, v->def->block, v->def->loc);
	b.before = v->def->next;
	return b;
}

// One pixel per channel and no lanes to spare: both layouts are the same bytes.
static bool layouts_agree(const Layout *l, const Type *plain)
{
	return dim_is(plain->dims[2], 1) && dim_is(plain->dims[3], 1) &&
	       type_channels(plain) % layout_lanes(l, type_channels(plain)) == 0;
}

Value *block_by_nest(Builder *b, Value *v, const Type *type)
{
	Nest n = nest_open(b, type);
	const int64_t lanes = type->dims[4]->value;
	Value *c = index_add(&n.b, index_times(&n.b, n.at[1], lanes), n.at[4]), *inside = NULL;
	if (type_channels(v->type) % lanes)
		inside = index_less(&n.b, c, index_dim(&n.b, v->type->dims[1]));
	Value *at[4] = {n.at[0], c, n.at[2], n.at[3]};
	return nest_close(&n, load_or(&n.b, inside, build_scalar_f(&n.b, type->dtype, 0), v, at));
}

Value *unblock_by_nest(Builder *b, Value *v, const Type *type)
{
	Nest n = nest_open(b, type);
	Value *lanes = index_dim(&n.b, v->type->dims[4]), *c = n.at[1];
	Value *at[5] = {n.at[0], index_div(&n.b, c, lanes), n.at[2], n.at[3],
	                index_mod(&n.b, c, lanes)};
	return nest_close(&n, load(&n.b, v, at));
}

static Value *change_layout(Layout *l, Value *v, enum OpCode code, const Type *type,
                            const char *key, int64_t n)
{
	Builder b = builder_after(l, v);
	if (layouts_agree(l, code == OP_KERNEL_BLOCK ? v->type : type))
		return build_view(&b, v, type->rank, type->dims);
	if (!target_has(l->target, code) && !value_is_constant(v))
		return code == OP_KERNEL_BLOCK ? block_by_nest(&b, v, type) : unblock_by_nest(&b, v, type);
	Op *op = op_new(l->ctx, code, b.loc, 1, &type, 1, &v, 0, 0);
	op_set_attr(op, key, attr_int(l->ctx, n));
	if (b.before)
		op_insert_before(b.before, op);
	else
		op_append(b.block, op);
	return &op->results[0];
}

Value *blocked_get(Layout *l, Value *v)
{
	Value *form = blocked_find(l, v);
	if (form)
		return form;
	const Type *type = type_blocked(l, v->type);
	Builder after = builder_after(l, v);
	Value *last = after.before ? last_find(l, after.before, v) : NULL;
	if (last)
		form = last_to_blocks(l, &after, last, type);
	if (!form)
		form = change_layout(l, v, OP_KERNEL_BLOCK, type, "b", type->dims[4]->value);
	form->name = v->name;
	value_map_set(l->blocked, v, form);
	return form;
}

void old_add(Layout *l, Op *op)
{
	VEC_ROOM(l->ctx->arena, l->old, l->nold, l->cold);
	l->old[l->nold++] = op;
}

void blocked_set(Layout *l, Op *op, Value *form)
{
	old_add(l, op);
	form->name = op->results[0].name;
	value_map_set(l->blocked, &op->results[0], form);
}

void old_drop(Layout *l)
{
	for (int i = l->nold - 1; i >= 0; i--) {
		Op *op = l->old[i];
		Value *v = &op->results[0];
		Value *form = blocked_find(l, v);
		if (value_used(v)) {
			Builder b = builder_after(l, v);
			Value *plain = last_to_plain(l, &b, v);
			if (!plain && !form)
				continue;
			if (!plain)
				plain = change_layout(l, form, OP_KERNEL_UNBLOCK, v->type, "channels",
				                      type_channels(v->type));
			plain->name = v->name;
			value_replace(v, plain);
		}
		op_erase(op);
	}
}

// ---- maps ---------------------------------------------------------------------------------------

Op *layout_rebuild(Layout *l, Op *op, const Type *type, OperandForm *form)
{
	Value *operands[8];
	if (op->noperand > (int)COUNT_OF(operands))
		return NULL;
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		operands[i] = v ? form(l, op, v, op->results[0].type) : NULL;
		if (v && !operands[i])
			return NULL;
	}
	return op_rebuild(op, type, op->noperand, operands);
}
