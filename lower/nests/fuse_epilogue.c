// Elementwise nests into the epilogue of the kernel whose result they read: bias, activation,
// residual sums, scaling, and chains of them then happen while the result is still in registers.
// Looks through a reshape between the two (a matrix product over flattened rows): the nest is
// rewritten for the kernel's shape, and the reshape moves below it. Called by fuse.c.
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/nests/fuse.h"

#include <string.h>

enum { MAX_EPILOGUE = 300 }; // operations

// ---- what fits ----------------------------------------------------------------------------------

static Region *epilogue_of(Op *kernel)
{
	const OpInfo *info = kernel->info;
	if (info->kind != KIND_KERNEL)
		return NULL;
	for (int i = 0; i < kernel->nregion && i < info->max_regions; i++)
		if (!strcmp(info->region_names[i], "epilogue") && kernel->regions[i].first)
			return &kernel->regions[i];
	return NULL;
}

// Whether a load reads the element at the nest's own position.
static bool load_is_identity(const Op *load, const Op *nest)
{
	const Type *t = nest->results[0].type, *read = op_operand(load, 0)->type;
	const Block *body = nest->regions[0].first;
	if (load->code != OP_LOOP_LOAD || read->rank != t->rank || load->noperand != t->rank + 1)
		return false;
	for (int i = 0; i < t->rank; i++) {
		if (read->dims[i] != t->dims[i])
			return false;
		if (op_operand(load, i + 1) != body->args[i] &&
		    !position_is_first(op_operand(load, i + 1), t->dims[i]))
			return false;
	}
	return true;
}

static bool only_read_here(const Value *v, const Op *nest)
{
	for (const Use *u = v->uses; u; u = u->next)
		if (op_parent(u->user) != nest || u->index != 0 || !load_is_identity(u->user, nest))
			return false;
	return true;
}

// Kernels of rows for CUDA are f32 inside, whatever comes in and goes out; other kernels make what
// they have.
static bool kernel_may_make(const Op *kernel, DType t, const Target *target)
{
	const bool half = target && target->half;
	if (kernel->results[0].type->dtype == t ||
	    (!half && (kernel->info->traits & TRAIT_STORES_ONCE)))
		return true;
	return half && (kernel->info->traits & TRAIT_ROUNDS) && dtype_is_f32_or_half(t);
}

// The kernel that made `read`, straight or through views that nobody else looks at; NULL: none that
// fits.
static Op *kernel_behind(Value *read, const Op *nest, const Target *target)
{
	if (!only_read_here(read, nest))
		return NULL;
	Value *v = read;
	while (v->def && (v->def->info->traits & TRAIT_VIEW)) {
		v = op_operand(v->def, 0);
		if (!v || value_use_count(v) != 1)
			return NULL;
	}
	Op *kernel = v->def;
	if (!kernel || kernel->nresult != 1 || kernel->block != nest->block || !epilogue_of(kernel))
		return NULL;
	return kernel_may_make(kernel, nest->results[0].type->dtype, target) ? kernel : NULL;
}

// Of all kernels that the nest could join, the last: the others' results can be read there.
static Op *kernel_choose(const Op *nest, const Target *target, Value **read)
{
	Op *best = NULL;
	for (Op *op = nest->regions[0].first->first; op; op = op->next) {
		if (op->code != OP_LOOP_LOAD)
			continue;
		Op *kernel = kernel_behind(op_operand(op, 0), nest, target);
		if (kernel && op_may_move(kernel, nest) && (!best || op_is_before(best, kernel))) {
			best = kernel;
			*read = op_operand(op, 0);
		}
	}
	return best;
}

// ---- the merge ----------------------------------------------------------------------------------

// `v` in the shape of `like`: what it is a view of, or a new view before `where`.
static Value *value_in_shape(Value *v, const Type *like, Op *where)
{
	Value *source = v;
	while (source->def && (source->def->info->traits & TRAIT_VIEW)) {
		source = op_operand(source->def, 0);
		if (type_same_dims(source->type, like))
			return source;
	}
	Builder b = builder_before(where);
	return build1(&b, OP_PD_RESHAPE, v, "shape", attr_dims(where->ctx, like->rank, like->dims),
	              NULL);
}

// A load at the nest's own position, of a tensor other than the kernel's result, in the kernel's
// shape.
static Value *load_reshaped(Builder *b, Op *load, Op *kernel, Value *const *position)
{
	const Type *t = kernel->results[0].type;
	Value *tensor = value_in_shape(op_operand(load, 0), t, kernel);
	if (!tensor)
		return NULL;
	Value *operands[MAX_RANK + 1] = {tensor};
	for (int i = 0; i < t->rank; i++)
		operands[i + 1] = position[i];
	return build(b, OP_LOOP_LOAD, t->rank + 1, operands, NULL);
}

static bool body_merge(Op *nest, Op *kernel, Value *read, Block *epilogue)
{
	Context *c = nest->ctx;
	Block *body = region_entry(&nest->regions[0]);
	const Type *shape = kernel->results[0].type;
	bool reshaped = read != &kernel->results[0];
	Value **position = epilogue->args + 1, *index[MAX_RANK];
	Op *yield = epilogue->last;
	Builder b = builder_before(yield);
	ValueMap *map = value_map_new(c->arena);
	if (reshaped) {
		if (!index_reshape(c, &b, shape, position, nest->results[0].type, index))
			return false;
	} else {
		memcpy(index, position, (size_t)shape->rank * sizeof *index);
	}
	for (int i = 0; i < body->narg; i++)
		value_map_set(map, body->args[i], index[i]);
	for (Op *op = body->first; op != body->last; op = op->next) {
		bool load = op->code == OP_LOOP_LOAD;
		Value *v = NULL;
		if (load && op_operand(op, 0) == read)
			v = op_operand(yield, 0);
		else if (load && reshaped && load_is_identity(op, nest))
			v = load_reshaped(&b, op, kernel, position);
		else
			op_insert_before(yield, op_clone(c, op, map));
		if (v)
			value_map_set(map, &op->results[0], v);
	}
	op_set_operand(yield, 0, value_map_get(map, op_operand(body->last, 0)));
	return true;
}

// Drops views that nobody reads any more, from the last back to the kernel's result.
static void views_drop(Value *v, const Value *until)
{
	while (v != until && !value_used(v)) {
		Op *view = v->def;
		v = op_operand(view, 0);
		op_erase(view);
	}
}

// Moves to just before the nest, where everything that the nest reads is there.
static void kernel_move(Op *kernel, Op *nest)
{
	op_detach(kernel);
	op_insert_before(nest, kernel);
}

bool nest_merge_into_kernel(Op *nest, const Target *target)
{
	Context *c = nest->ctx;
	Value *read = NULL;
	if (nest->nresult != 1 || op_contains(nest, OP_LOOP_REDUCE) ||
	    op_contains(nest, OP_LOOP_TO_INDEX))
		return false;
	Op *kernel = kernel_choose(nest, target, &read);
	if (!kernel || op_count(kernel, false) + op_count(nest, false) > MAX_EPILOGUE)
		return false;
	Value *made = &kernel->results[0], *result = &nest->results[0];
	bool reshaped = read != made;
	if (reshaped && !index_reshape(c, NULL, made->type, NULL, result->type, NULL))
		return false;
	kernel_move(kernel, nest);
	if (!body_merge(nest, kernel, read, epilogue_of(kernel)->first))
		return false;
	Value *with = made;
	made->type = type_like(c, made->type, result->type->dtype);
	if (reshaped) {
		Builder b = builder_before(nest);
		with = build1(&b, OP_PD_RESHAPE, made, "shape",
		              attr_dims(c, result->type->rank, result->type->dims), NULL);
		if (!with)
			return false;
		with->name = result->name;
	}
	made->name = result->name;
	value_replace(result, with);
	op_erase(nest);
	views_drop(read, made);
	scalar_simplify(kernel);
	return true;
}
