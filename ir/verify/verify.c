// Checks IR: that it hangs together, that every operation is what the operator table says, that
// values are visible where they are used, and that types agree with inference. Called after every
// pass in debug builds and by `pdcc opt`. The rules of control flow and of loop nests are in
// verify_control.c and verify_loop.c.
//
// It goes from the general to the special and stops where what follows would rest on what is
// broken.
#include "ir/verify/verify.h"
#include "ir/build/build.h"
#include "ir/verify/rules.h"

#include <string.h>

bool verify_fail(const Op *op, const char *fmt, ...)
{
	const char *before = arena_printf(op->ctx->arena,
	                                  "%s: ", op->info ? op->info->name : "operation");
	va_list ap;
	va_start(ap, fmt);
	diag_verror(op->ctx->diag, op->loc, before, fmt, ap);
	va_end(ap);
	return false;
}

const char *operand_text(const Op *op, int i)
{
	const OpInfo *info = op->info;
	bool repeats = info->traits & TRAIT_REPEAT_OPERAND;
	if (i < info->noperand - repeats)
		return arena_printf(op->ctx->arena, "operand '%s'", info->operands[i].name);
	return arena_printf(op->ctx->arena, "operand %d", i);
}

// A size that is only found at run time: it takes whatever arrives.
static bool dim_takes_any(const Dim *d)
{
	return d->kind == DIM_SYM && d->bounded;
}

bool types_agree(const Type *a, const Type *b)
{
	if (a == b || (a->kind == TY_STACK && b->kind == TY_STACK && (!a->nelem || !b->nelem)))
		return true;
	bool shaped = a->kind == TY_TENSOR || a->kind == TY_ARRAY;
	if (!shaped || a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
	    a->lod != b->lod)
		return false;
	for (int d = 0; d < a->rank; d++)
		if (a->dims[d] != b->dims[d] && !dim_takes_any(b->dims[d]))
			return false;
	return true;
}

bool verify_operands_present(const Op *op)
{
	for (int i = 0; i < op->noperand; i++)
		if (!op->operands[i].value)
			return verify_fail(op, "operand %d is missing", i);
	return true;
}

bool verify_operand_types(const Op *op, int first, int n, Value *const *want, const char *what)
{
	Context *c = op->ctx;
	if (op->noperand - first != n)
		return verify_fail(op, "%d values, but %d %s", op->noperand - first, n, what);
	for (int i = 0; i < n; i++) {
		const Type *have = op->operands[first + i].value->type, *need = want[i]->type;
		if (!types_agree(have, need))
			return verify_fail(op, "value %d has type %s, but %s have %s", i, type_text(c, have),
			                   what, type_text(c, need));
	}
	return true;
}

// ---- structure: pointers agree with each other --------------------------------------------------

static bool inside(const Op *op, const Op *root)
{
	while (op && op != root)
		op = op_parent(op);
	return op != NULL;
}

static bool check_uses(const Op *op, const Value *v, const Op *root)
{
	Use *const *link = &v->uses;
	for (const Use *u = v->uses; u; link = &u->next, u = u->next) {
		if (u->prev != link || u->value != v)
			return verify_fail(op, "the list of uses of a value is broken");
		const Op *user = u->user;
		if (!user || (int)u->index >= user->noperand || &user->operands[u->index] != u)
			return verify_fail(op,
			                   "the list of uses of a value holds something that is no operand");
		if (!inside(user, root))
			return verify_fail(op, "a value is used by '%s', which is not in the program",
			                   user->info->name);
	}
	return true;
}

static bool check_values(const Op *op, const Op *root)
{
	for (int i = 0; i < op->nresult; i++) {
		const Value *v = &op->results[i];
		if (v->def != op || v->block || (int)v->index != i)
			return verify_fail(op, "result %d does not belong to its operation", i);
		if (!v->type)
			return verify_fail(op, "result %d has no type", i);
		if (!check_uses(op, v, root))
			return false;
	}
	for (int i = 0; i < op->noperand; i++) {
		const Use *u = &op->operands[i];
		if (u->user != op || (int)u->index != i)
			return verify_fail(op, "operand %d does not belong to its operation", i);
		if (u->value && (!u->prev || *u->prev != u))
			return verify_fail(op, "operand %d is not in the uses of its value", i);
	}
	return true;
}

static bool check_attr_order(const Op *op)
{
	for (int i = 0; i < op->nattr; i++) {
		if (!op->attrs[i].name || !op->attrs[i].attr)
			return verify_fail(op, "attribute %d has no name or no value", i);
		if (i && strcmp(op->attrs[i - 1].name, op->attrs[i].name) >= 0)
			return verify_fail(op, "attributes '%s' and '%s' are out of order",
			                   op->attrs[i - 1].name, op->attrs[i].name);
	}
	return true;
}

static bool check_structure(const Op *op, const Op *root);

static bool check_block(const Op *op, const Block *b, const Op *root)
{
	for (int i = 0; i < b->narg; i++) {
		const Value *v = b->args[i];
		if (v->block != b || v->def || (int)v->index != i || !v->type)
			return verify_fail(op, "a block's argument %d does not belong to it", i);
		if (!check_uses(op, v, root))
			return false;
	}
	const Op *prev = NULL;
	for (const Op *inner = b->first; inner; prev = inner, inner = inner->next) {
		if (inner->block != b || inner->prev != prev)
			return verify_fail(inner, "an operation is not linked to its block");
		if (!check_structure(inner, root))
			return false;
	}
	return b->last == prev || verify_fail(op, "a block does not end with its last operation");
}

static bool check_region(const Op *op, const Region *r, const Op *root)
{
	if (r->op != op)
		return verify_fail(op, "a region does not belong to its operation");
	const Block *prev = NULL;
	for (const Block *b = r->first; b; prev = b, b = b->next) {
		if (b->region != r || b->prev != prev)
			return verify_fail(op, "a block is not linked to its region");
		if (!check_block(op, b, root))
			return false;
	}
	return r->last == prev || verify_fail(op, "a region does not end with its last block");
}

static bool check_structure(const Op *op, const Op *root)
{
	if ((unsigned)op->code >= OP_COUNT || op->info != &op_table[op->code])
		return verify_fail(op, "an operation's code and description differ");
	if (!op->loc || !op->ctx)
		return verify_fail(op, "an operation without location or context");
	if (!check_values(op, root) || !check_attr_order(op))
		return false;
	for (int i = 0; i < op->nregion; i++) {
		if (!check_region(op, &op->regions[i], root))
			return false;
	}
	return true;
}

// ---- successors and terminators: what the scope rule rests on -----------------------------------

static bool check_successors(const Op *op)
{
	uint32_t end = (uint32_t)op->noperand;
	if (op->nsucc && !(op->info->traits & TRAIT_TERMINATOR))
		return verify_fail(op, "successors, but it is no terminator");
	for (int i = op->nsucc - 1; i >= 0; i--) {
		const Succ *s = &op->succs[i];
		if (s->count > end || s->first != end - s->count)
			return verify_fail(op, "the arguments of its successors are not its last operands");
		end = s->first;
		if (!s->block || !op->block || s->block->region != op->block->region)
			return verify_fail(op, "successor %d is in another region", i);
		if (s->block == op->block->region->first)
			return verify_fail(op, "successor %d is the entry of the region", i);
	}
	return true;
}

// Whether blocks of this region may end without a terminator: the module's, and those of a branch
// or of the body of a loop backwards that has nothing to give.
static bool terminator_optional(const Op *op, int region)
{
	const bool body = op->code == OP_PD_WHILE_GRAD && region == 1;
	return op->code == OP_BUILTIN_MODULE || ((op_is_branch(op) || body) && !op->nresult);
}

static bool check_terminators(const Op *op)
{
	bool ok = true;
	for (int i = 0; i < op->nregion; i++) {
		const Region *r = &op->regions[i];
		for (const Block *b = r->first; b; b = b->next) {
			const Op *last = b->last;
			bool ends = last && (last->info->traits & TRAIT_TERMINATOR);
			if (!ends && (!terminator_optional(op, i) || r->first != r->last))
				ok &= verify_fail(last ? last : op, "a block must end with a terminator");
			for (const Op *o = b->first; o && o->next; o = o->next) {
				if (o->info->traits & TRAIT_TERMINATOR)
					ok &= verify_fail(o, "a terminator must be the last operation of its block");
			}
		}
	}
	return ok;
}

static bool visit_flow(Op *op, void *arg)
{
	bool *ok = arg;
	*ok &= check_successors(op);
	*ok &= check_terminators(op);
	return true;
}

// ---- what the operator table says ---------------------------------------------------------------

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

static bool check_operands(const Op *op)
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

static bool check_attributes(const Op *op)
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

static bool check_regions(const Op *op)
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
static bool check_level(const Op *op)
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

// ---- inference again ----------------------------------------------------------------------------

static bool is_bounded(const Dim *d)
{
	return d->kind == DIM_SYM ? d->bounded
	                          : (d->a && is_bounded(d->a)) || (d->b && is_bounded(d->b));
}

static bool has_bounded_dim(const Type *t)
{
	for (int i = 0; i < t->rank; i++)
		if (is_bounded(t->dims[i]))
			return true;
	return false;
}

// Passes may have written a size that is computed in another way than inference does.
static bool has_computed_dim(const Type *t)
{
	for (int i = 0; i < t->rank; i++)
		if (t->dims[i]->kind != DIM_SYM && !dim_is_const(t->dims[i]))
			return true;
	return false;
}

// Whether inference may want to know what v holds, but nobody knows (any more: text does not say).
static bool lost_contents(const Value *v)
{
	int64_t n;
	if (!v || v->known || v->type->kind != TY_TENSOR || !dtype_is_int(v->type->dtype))
		return false;
	return !type_const_numel(v->type, &n) || n <= 64;
}

// Whether inferring once more must give the same: not where inference reads what integer tensors
// hold, nor where it makes new symbols.
static bool inference_repeats(const Op *op)
{
	const OpInfo *info = op->info;
	if ((!op_functions(op)->infer && !info->result_types) || !(info->traits & TRAIT_PURE) ||
	    op->nregion)
		return false;
	for (int i = 0; i < info->nattr; i++) {
		const AttrInfo *a = &info->attrs[i];
		if (a->operand && op_operand(op, op_info_operand(info, a->operand)))
			return false;
	}
	if (info->result_types)
		return true;
	for (int i = 0; i < op->noperand; i++) {
		if (lost_contents(op->operands[i].value))
			return false;
	}
	for (int i = 0; i < op->nresult; i++) {
		if (has_bounded_dim(op->results[i].type))
			return false;
	}
	return true;
}

static bool check_inferred(const Op *op, const Value *before, const Value *after)
{
	for (int i = 0; i < op->nresult; i++) {
		if (after[i].type && after[i].type != before[i].type && !has_computed_dim(before[i].type))
			return verify_fail(op, "result %d has type %s, but should have %s", i,
			                   type_text(op->ctx, before[i].type),
			                   type_text(op->ctx, after[i].type));
	}
	return true;
}

static bool check_inference(Op *op)
{
	if (!inference_repeats(op))
		return true;
	Context *c = op->ctx;
	size_t n = (size_t)op->nresult;
	Value *before = NEW_ARRAY(c->arena, n, Value), *after = NEW_ARRAY(c->arena, n, Value);
	NamedAttr *attrs = NEW_ARRAY(c->arena, (size_t)op->nattr, NamedAttr), *own = op->attrs;
	int nattr = op->nattr, generation = dim_generation(c);
	memcpy(before, op->results, n * sizeof *before);
	if (nattr)
		memcpy(attrs, own, (size_t)nattr * sizeof *attrs);
	op->attrs = attrs; // a hook may complete attributes: into a copy
	const bool learning = dim_set_learning(c, true);
	bool ok = op_infer(op);
	dim_set_learning(c, learning);
	memcpy(after, op->results, n * sizeof *after);
	memcpy(op->results, before, n * sizeof *before);
	op->attrs = own;
	op->nattr = nattr;
	if (!ok)
		return false; // reported
	if (dim_generation(c) != generation)
		return verify_fail(op, "its operands' sizes must be equal, but are different symbols");
	return check_inferred(op, before, after);
}

// ---- sizes --------------------------------------------------------------------------------------

// No tensor takes more bytes than this, whatever its symbols are: sums and small multiples of sizes
// then stay far from the end of 64 bits, in the passes and in generated code.
#define MOST_BYTES (INT64_C(1) << 42)

// Whether a type is of tensors, and their sizes come to more than that.
static bool type_is_large(const Type *t)
{
	int64_t low, high, least = (int64_t)dtype_size(t->dtype);
	bool large = false;
	if (t->kind != TY_TENSOR && t->kind != TY_SELECTED_ROWS && t->kind != TY_ARRAY)
		return false;
	for (int i = 0; i < t->rank; i++) {
		dim_range(t->dims[i], &low, &high);
		if (dim_is(t->dims[i], 0))
			return false;
		large |= low > MOST_BYTES / least;
		least *= low > 1 && !large ? low : 1;
	}
	return large;
}

// Sizes are not negative, and their product is within reason.
static bool check_size(const Op *op, const Value *v)
{
	const Type *t = v->type;
	if (t->kind != TY_TENSOR && t->kind != TY_SELECTED_ROWS && t->kind != TY_ARRAY)
		return true;
	for (int i = 0; i < t->rank; i++)
		if (dim_is_const(t->dims[i]) && t->dims[i]->value < 0)
			return verify_fail(op, "result %d has a negative size: %s", (int)v->index,
			                   type_text(op->ctx, t));
	return !type_is_large(t) ||
	       verify_fail(op, "result %d is too large: %s", (int)v->index, type_text(op->ctx, t));
}

static bool check_sizes(const Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		if (!check_size(op, &op->results[i]))
			return false;
	return true;
}

// ---- all together -------------------------------------------------------------------------------

static bool visit_op(Op *op, void *arg)
{
	bool *ok = arg;
	bool sound = check_operands(op);
	sound &= check_attributes(op) && step_is_sound(op) && waits_are_sound(op);
	sound &= check_regions(op);
	// One size that is wrong is said once: what comes of it is wrong, too.
	sound = sound && (!*ok || check_sizes(op)) && check_level(op) &&
	        (!op_functions(op)->verify || op_functions(op)->verify(op)) && check_inference(op);
	*ok &= sound;
	return true;
}

bool ir_verify(Op *op)
{
	bool ok = true;
	if (!check_structure(op, op))
		return false;
	visit_flow(op, &ok);
	op_walk(op, visit_flow, &ok);
	if (!ok)
		return false;
	ok = verify_scope(op);
	visit_op(op, &ok);
	op_walk(op, visit_op, &ok);
	return ok;
}
