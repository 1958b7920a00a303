// Decompose: brings operators into the forms that layout and the kernels want. Composites whose
// parts are worth more than the whole are taken apart by their definitions; softmax and norms
// become kernels that read their input through a region (rows.c).
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "lower/clean/clean.h"
#include "lower/kernels/kernels.h"
#include "lower/kernels/layout.h"
#include "lower/kernels/rows.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

// What the operator table has for single operators (`decompose: name`); false after a diagnostic,
// and what does not fit stays as it is.
#include "ops_decompose.inc"

// ---- products with vectors ----------------------------------------------------------------------

static Value *reshaped(Builder *b, Value *x, int rank, const Dim *const *dims)
{
	return build1(b, OP_PD_RESHAPE, x, "shape", attr_dims(b->ctx, rank, dims), NULL);
}

// A vector on the left is a row, on the right a column.
bool decompose_hook_matmul_of_matrices(PassContext *p, Op *op)
{
	Context *c = op->ctx;
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	const Dim *one = dim_const(c, 1);
	if (!type_is_tensor(x->type) || !type_is_tensor(y->type) ||
	    (x->type->rank != 1 && y->type->rank != 1))
		return true;
	Builder b = builder_before(op);
	bool row = x->type->rank == 1, column = y->type->rank == 1;
	if (row)
		x = reshaped(&b, x, 2, (const Dim *[]){one, x->type->dims[0]});
	if (column)
		y = reshaped(&b, y, 2, (const Dim *[]){y->type->dims[0], one});
	if (!x || !y)
		return false;
	bool tx = !row && op_bool(op, "transpose_x", false),
		 ty = !column && op_bool(op, "transpose_y", false);
	Value *out = build2(&b, OP_PD_MATMUL, x, y, "transpose_x", attr_bool(c, tx), "transpose_y",
	                    attr_bool(c, ty), NULL);
	const Type *t = op->results[0].type;
	if (!out || !(out = reshaped(&b, out, t->rank, t->dims)))
		return false;
	op_replace(op, &out);
	return true;
}

// ---- images -------------------------------------------------------------------------------------

// The image [N x C x H x W] behind a volume of depth 1, or NULL.
static Value *image_of_volume(Builder *b, Value *volume)
{
	const Type *t = volume->type;
	if (!type_is_tensor(t) || t->rank != 5 || !dim_is(t->dims[2], 1))
		return NULL;
	return reshaped(b, volume, 4, (const Dim *[]){t->dims[0], t->dims[1], t->dims[3], t->dims[4]});
}

// pad3d of an image with a depth of 1, as some exporters write pad2d: two axes are padded, layout
// knows that form.
bool decompose_hook_pad3d_of_image(PassContext *pass, Op *op)
{
	int64_t p[6];
	if (op_operand(op, 1) || op_enum(op, "data_format") != DATA_FORMAT_NCDHW ||
	    op_numbers(op, "paddings", p, 6) != 6 || p[4] || p[5])
		return true;
	Builder b = builder_before(op);
	Value *x = image_of_volume(&b, op_operand(op, 0));
	if (!x)
		return true;
	Context *c = op->ctx;
	const int mode = op_enum(op, "mode");
	if (mode == PAD_CIRCULAR)
		return true;
	const Attr *value = op_attr(op, "pad_value");
	Value *out = build1(
		&b, OP_PD_PAD2D, x, "paddings", attr_numbers(c, 4, (int64_t[]){p[2], p[3], p[0], p[1]}),
		"mode", attr_str(c, mode == PAD_REPLICATE ? "edge" : op_str(op, "mode", "constant")),
		"data_format", attr_str(c, "NCHW"), "pad_value", value ? value : attr_float(c, 0), NULL);
	const Type *t = op->results[0].type;
	if (!out || !(out = reshaped(&b, out, t->rank, t->dims)))
		return false;
	op_replace(op, &out);
	return true;
}

// Pieces along an axis are slices; layout and fusion know those.
bool decompose_hook_split_to_slices(PassContext *p, Op *op)
{
	Context *c = op->ctx;
	Value *x = op_operand(op, 0);
	const Type *pieces = op->results[0].type;
	int64_t axis = op_int(op, "axis", 0), start = 0;
	for (int i = 1; i < op->noperand; i++)
		if (op_operand(op, i))
			return true;
	if (!type_is_tensor(x->type) || pieces->kind != TY_VEC || pieces->nelem < 1)
		return true;
	axis = axis < 0 ? axis + x->type->rank : axis;
	for (int i = 0; i < pieces->nelem; i++)
		if (!dim_is_const(pieces->elems[i]->dims[axis]))
			return true;
	Builder b = builder_before(op);
	Value **parts = NEW_ARRAY(c->arena, (size_t)pieces->nelem, Value *);
	for (int i = 0; i < pieces->nelem; i++) {
		int64_t end = start + pieces->elems[i]->dims[axis]->value;
		parts[i] = tensor_cut(&b, x, axis, start, end);
		if (!parts[i])
			return false;
		start = end;
	}
	Value *list = build(&b, OP_BUILTIN_COMBINE, pieces->nelem, parts, NULL);
	if (!list)
		return false;
	op_replace(op, &list);
	return true;
}

// A scatter to one position replaces a slice; in a loop, the plan does that in place.
bool decompose_hook_scatter_to_update(PassContext *p, Op *op)
{
	Value *x = op_operand(op, 0), *at = op_operand(op, 1), *slice = op_operand(op, 2);
	int64_t positions;
	if (p->target->graph || !op_bool(op, "overwrite", true) || !type_is_tensor(x->type) ||
	    x->type->rank < 1 || !type_is_tensor(slice->type) ||
	    !type_const_numel(at->type, &positions) || positions != 1)
		return true;
	const Type *t = x->type;
	const Dim *dims[MAX_RANK] = {dim_const(op->ctx, 1)};
	memcpy(dims + 1, t->dims + 1, sizeof *dims * (size_t)(t->rank - 1));
	if (type_numel(op->ctx, slice->type) !=
	    type_numel(op->ctx, type_tensor(op->ctx, t->dtype, t->rank, dims, 0)))
		return true;
	Builder b = builder_before(op);
	if (op_bool(op, "wrap", false) && (!(at = tensor_reshape(&b, at, 1, dims)) ||
	                                   !(at = scatter_positions(&b, at, t->dims[0], true))))
		return false;
	Value *const operands[] = {x, at, slice};
	Value *out = build(&b, OP_LOOP_UPDATE, 3, operands, "fixed", attr_bool(op->ctx, true), NULL);
	if (!out)
		return false;
	op_replace(op, &out);
	return true;
}

// Whether v is what a loop carries, perhaps under another shape.
static bool is_carried(const Value *v)
{
	while (v->def && (v->def->info->traits & TRAIT_VIEW) && v->def->noperand)
		v = op_operand(v->def, 0);
	const Op *loop = v->def ? NULL : v->block->region->op;
	return loop && loop->code == OP_PD_WHILE && v->block->region == &loop->regions[1];
}

// `all`, and x behind it along the axis, in front of which all axes are 1; NULL: x has other sizes
// than those of `out`.
static Value *append_build(Op *op, Value *all, Value *x, const Type *out, int axis)
{
	Context *c = op->ctx;
	const Dim *dims[MAX_RANK];
	memcpy(dims, out->dims, sizeof *dims * (size_t)out->rank);
	dims[axis] = dim_add(c, all->type->dims[axis], x->type->dims[axis]);
	const Type *t = type_tensor(c, out->dtype, out->rank, dims, 0);
	if (x->type->dtype != out->dtype ||
	    type_numel(c, t) != dim_add(c, type_numel(c, all->type), type_numel(c, x->type)))
		return NULL;
	Value *const operands[] = {all, x};
	Op *append = op_new(c, OP_LOOP_APPEND, op->loc, 1, &t, 2, operands, 0, 0);
	op_insert_before(op, append);
	return &append->results[0];
}

// What grows from round to round is written where it lies: only the new rows move.
bool decompose_hook_concat_to_appends(PassContext *p, Op *op)
{
	Value *const *list;
	const Type *out = op->results[0].type;
	int n = op_operand_list(op, 0, &list), axis = (int)op_int(op, "axis", 0);
	if (n < 2 || axis < 0 || axis >= out->rank || !dim_is_found(list[0]->type->dims[axis]) ||
	    !is_carried(list[0]))
		return true;
	for (int d = 0; d < axis; d++)
		if (!dim_is(out->dims[d], 1))
			return true;
	Value *all = list[0];
	for (int i = 1; i < n && all; i++)
		all = append_build(op, all, list[i], out, axis);
	if (!all || all->type != out)
		return true; // appends that nobody reads go
	op_replace(op, &all);
	return true;
}

// ---- by definition ------------------------------------------------------------------------------

// Composites that layout has no kernel for, but for their parts.
static bool takes_apart(const PassContext *p, const Op *op)
{
	return (op->info->traits & (p->target->simt ? TRAIT_APART : TRAIT_APART | TRAIT_APART_C)) &&
	       (op_functions(op)->define || op->info->compose);
}

static bool op_take_apart(Op *op)
{
	Builder b = builder_before(op);
	Value **results = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult, Value *);
	if (!op_define(&b, op, results))
		return false;
	op_replace(op, results);
	return true;
}

static bool region_decompose(PassContext *p, Region *r)
{
	for (Block *block = r->first; block; block = block->next) {
		for (Op *op = block->first, *next; op; op = next) {
			if (takes_apart(p, op)) {
				// What comes out may be one of these again.
				Op *before = op->prev;
				if (!op_take_apart(op))
					return false;
				next = before ? before->next : block->first;
				continue;
			}
			next = op->next;
			bool code = op->info->kind == KIND_LOOP || op->info->kind == KIND_KERNEL;
			for (int i = 0; i < op->nregion && !code; i++)
				if (!region_decompose(p, &op->regions[i]))
					return false;
			if (decompose_hooks[op->code] && !decompose_hooks[op->code](p, op))
				return false;
		}
	}
	return true;
}

// Needs: canonical forms (views are reshape, channels on axis 1), inferred types.
// Keeps: values, names, locations.
// Breaks: nothing; afterwards softmax and layer norm are kernels, where these can take them.
bool pass_decompose(PassContext *p)
{
	return region_decompose(p, &p->module->regions[0]) && pass_dce(p);
}
