// A sub-block of the program as a region: where operators go meanwhile, and what the outer
// variables hold afterwards. Also the types that join what two ways bring, and the condition of a
// loop, once. Used by control_if.c, control_while.c.
#include "frontend/control/control.h"
#include "frontend/control/variants.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/base/vec.h"
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"

#include <inttypes.h>
#include <string.h>

// ---- entering and leaving -----------------------------------------------------------------------

void region_enter(Translator *t, Outside *o, Block *into, int index)
{
	*o = (Outside){.block = t->block,
	               .block_index = t->block_index,
	               .scope = t->scope,
	               .ifs = t->ifs,
	               .frame = t->frame,
	               .top = t->top,
	               .mark = t->nundo};
	if (!t->top)
		t->top = into->region->op;
	t->block = into;
	t->block_index = index;
	t->scope = scope_new(t, index, t->scope);
	t->ifs = NULL;
	t->frame = (Frame){.block = index, .outer = &o->frame};
}

void undo_to(Translator *t, size_t mark)
{
	while (t->nundo > mark) {
		const UndoEntry *e = &t->undo[--t->nundo];
		bool written = e->binding->written;
		*e->binding = e->old;
		e->binding->written = written; // in a list already
	}
}

void region_leave(Translator *t, const Outside *o)
{
	undo_to(t, o->mark);
	t->block = o->block;
	t->block_index = o->block_index;
	t->scope = o->scope;
	t->ifs = o->ifs;
	t->frame = o->frame;
	t->top = o->top;
}

bool region_translate(Translator *t)
{
	bool before = t->failed;
	t->failed = false;
	bool ok = !t->hooks->ops(t) && !t->failed;
	t->failed |= before;
	return ok;
}

// ---- one element, or none -----------------------------------------------------------------------

// Stands for the one element of v, which has another number of them: nobody gets to see it. Values
// that are one condition, its negations and masks, stay that.
static Value *stand_in(OpJob *j, Value *v)
{
	Translator *t = j->t;
	Value *have = value_map_get(t->stand_ins, v);
	if (have != v)
		return have;
	const bool follows = v->def &&
	                     (v->def->code == OP_PD_LOGICAL_NOT || v->def->code == OP_PD_CAST);
	Value *x = follows ? stand_in(j, op_operand(v->def, 0)) : NULL;
	Builder b = j->b;
	if (v->def && v->def->next)
		b = builder_before(v->def->next);
	else if (v->def)
		b = builder_at_end(t->c, v->def->block, j->b.loc);
	b.loc = j->b.loc;
	Op *op = x ? build_op(&b, v->def->code, 1, &x, v->def->nattr, v->def->attrs) : NULL;
	Value *one = !follows ? build_full(&b, type_tensor(t->c, v->type->dtype, 0, NULL, 0), 0)
	             : op     ? op_result(op, 0)
	                      : NULL;
	if (one)
		value_map_set(t->stand_ins, v, one);
	return one;
}

Value *single_element(OpJob *j, Value *v, const char *slot)
{
	Context *c = j->t->c;
	int64_t n;
	if (!type_is_tensor(v->type)) {
		job_fail(j, "input %s must be a tensor of one element", slot);
		return NULL;
	}
	if (!type_const_numel(v->type, &n) || n == 1)
		return v;
	const char *text = arena_printf(c->arena, "input %s must be one element, not %" PRId64, slot,
	                                n);
	return assert_never(&j->b, text) ? stand_in(j, v) : NULL;
}

// ---- types that two ways bring together ---------------------------------------------------------

SizeStem size_stem(Context *c, const Loc *at, const char *var)
{
	const char *brief = arena_printf(c->arena, "n_%s", symbol_part(c, var));
	return (SizeStem){brief, arena_printf(c->arena, "%s_%d_%d", brief, at->block, at->op)};
}

static const Dim *axis_found(Context *c, SizeStem stem, int axis)
{
	return dim_sym_found(c, arena_printf(c->arena, "%s_%d", stem.brief, axis),
	                     arena_printf(c->arena, "%s_%d", stem.full, axis), NULL, NULL);
}

const Type *type_join(Context *c, const Type *a, const Type *b, SizeStem stem, uint32_t *open)
{
	const Dim *dims[MAX_RANK];
	if (a == b && !*open)
		return a;
	bool shaped = a->kind == TY_TENSOR || a->kind == TY_ARRAY;
	if (!shaped || a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank)
		return NULL;
	for (int d = 0; d < a->rank; d++) {
		if (a->dims[d] != b->dims[d])
			*open |= UINT32_C(1) << d;
		bool found = *open >> d & 1;
		dims[d] = found ? axis_found(c, stem, d) : a->dims[d];
		if (found)
			dim_keep(c, dims[d]);
	}
	if (a->kind == TY_ARRAY)
		return type_shaped(c, TY_ARRAY, a->dtype, a->rank, dims);
	return type_tensor(c, a->dtype, a->rank, dims, a->lod > b->lod ? a->lod : b->lod);
}

// In-place operators of other branches give names to what this one reads: Paddle 2.6.2 writes such
// programs, and stops where one is run.
Value *value_missing(OpJob *j, const Paddle__VarDesc *v)
{
	Context *c = j->t->c;
	const Type *type = var_type(j, v, v->name);
	const char *text = arena_printf(c->arena, "nothing has written variable '%s'", v->name);
	diag_warning(c->diag, j->b.loc, "%s: a run that comes here ends", text);
	return type && assert_never(&j->b, text) ? undefined_value(&j->b, type) : NULL;
}

// ---- values of several types --------------------------------------------------------------------
// What branches or rounds of a loop leave as other element types, or other numbers of axes, is a
// mark, builtin.variant, that only bindings hold: which of its alternatives it is, and a value of
// each type (zeros where it is another). The marks go when the translation ends.

// Whether the file declares var as what v is.
bool declared_like(OpJob *j, const char *var, const Value *v)
{
	const Binding *b = scope_find(j->t, var);
	const Paddle__TensorDesc *d = b && b->desc ? var_tensor(b->desc) : NULL;
	DType want;
	return d && type_is_tensor(v->type) && dtype_from_kind(d->data_type, &want) &&
	       want == v->type->dtype && (int)d->n_dims == v->type->rank;
}

bool types_go_together(const Type *a, const Type *b)
{
	return a == b || (a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank);
}

// The number of the alternative.
static Value *which_of(Builder *b, const Value *v)
{
	if (is_variant(v))
		return op_operand(v->def, 0);
	return build_full(b, type_tensor(b->ctx, DT_I64, 0, NULL, 0), 0);
}

bool variant_types_add(VariantTypes *list, const Value *v)
{
	for (int k = 0; k < variant_count(v); k++) {
		const Type *t = variant_part(v, k)->type;
		int at = 0;
		while (at < list->n && !types_go_together(list->types[at], t))
			at++;
		if ((t->kind != TY_TENSOR && !is_mixed(v)) || at == MAX_VARIANTS)
			return false;
		if (at == list->n)
			list->types[list->n++] = t;
	}
	return true;
}

static int place_of(const VariantTypes *list, const Type *t)
{
	for (int k = 0; k < list->n; k++)
		if (types_go_together(list->types[k], t))
			return k;
	return -1;
}

Value *variant_which(Builder *b, const VariantTypes *list, const Value *v)
{
	const Type *number = type_tensor(b->ctx, DT_I64, 0, NULL, 0);
	Value *which = which_of(b, v), *out = NULL;
	if (is_mixed(v))
		return which; // it names types, not places in a list
	for (int k = variant_count(v) - 1; k >= 0; k--) {
		const int place = place_of(list, variant_part(v, k)->type);
		Value *here = build_full(b, number, place < 0 ? 0 : place);
		Value *is = out ? build2(b, OP_PD_EQUAL, which, build_full(b, number, k), NULL) : NULL;
		Value *const choice[] = {is, here, out};
		out = out ? build(b, OP_PD_WHERE, 3, choice, NULL) : here;
	}
	return out;
}

Value *variant_alternative(const VariantTypes *list, int k, const Value *v)
{
	for (int i = 0; v && i < variant_count(v); i++)
		if (types_go_together(variant_part(v, i)->type, list->types[k]))
			return variant_part(v, i);
	return NULL;
}

Value *variant_make(Builder *b, Value *which, int n, Value *const *alternatives)
{
	Value *parts[MAX_VARIANTS + 1] = {which};
	const Type *types[MAX_VARIANTS];
	for (int k = 0; k < n; k++) {
		parts[k + 1] = alternatives[k];
		types[k] = alternatives[k]->type;
	}
	const Type *all = type_group(b->ctx, TY_VEC, n, types);
	Op *op = op_new(b->ctx, OP_BUILTIN_VARIANT, b->loc, 1, &all, n + 1, parts, 0, 0);
	if (b->before)
		op_insert_before(b->before, op);
	else
		op_append(b->block, op);
	return op_result(op, 0);
}

void variants_erase(Region *r)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				variants_erase(&op->regions[i]);
			if (op->code == OP_BUILTIN_VARIANT)
				op_erase(op);
		}
}

bool ranks_differ(const Type *a, const Type *b)
{
	int64_t n, m;
	return type_is_tensor(a) && type_is_tensor(b) && a->dtype == b->dtype && a->rank != b->rank &&
	       type_const_numel(a, &n) && type_const_numel(b, &m) && n == 1 && m == 1;
}

// ---- one type after all -------------------------------------------------------------------------

// Whether alternatives differ in the number of axes around one element only.
static bool is_one_element(const Value *v)
{
	const DType dtype = variant_part(v, 0)->type->dtype;
	bool one = true;
	for (int k = 0; one && k < variant_count(v); k++) {
		const Type *t = variant_part(v, k)->type;
		int64_t n;
		one = type_is_tensor(t) && t->dtype == dtype && type_const_numel(t, &n) && n == 1;
	}
	return one;
}

// The element of the alternative that counts.
static Value *element_of(Builder *b, const Value *v, const Type *like)
{
	Value *out = NULL;
	for (int k = variant_count(v) - 1; k >= 0; k--) {
		Value *here = tensor_reshape(b, variant_part(v, k), like->rank, like->dims);
		Value *number = build_full(b, type_tensor(b->ctx, DT_I64, 0, NULL, 0), k);
		Value *const choice[] = {build2(b, OP_PD_EQUAL, which_of(b, v), number, NULL), here, out};
		out = out ? build(b, OP_PD_WHERE, 3, choice, NULL) : here;
	}
	return out;
}

Value *variant_settle(OpJob *j, const char *var, Value *v)
{
	Context *c = j->t->c;
	int pick = -1;
	for (int k = 0; k < variant_count(v); k++)
		if (declared_like(j, var, variant_part(v, k)))
			pick = k;
	if (is_one_element(v))
		return element_of(&j->b, v, variant_part(v, pick < 0 ? 0 : pick)->type);
	if (pick < 0) {
		job_fail(j, "variable '%s' may have different types here: %s", var, type_text(c, v->type));
		return NULL;
	}
	Value *number = build_full(&j->b, type_tensor(c, DT_I64, 0, NULL, 0), pick);
	Value *is = build2(&j->b, OP_PD_EQUAL, which_of(&j->b, v), number, NULL);
	const char *text = arena_printf(c->arena, "variable '%s' has another type than %s", var,
	                                type_text(c, variant_part(v, pick)->type));
	diag_warning(c->diag, j->b.loc, "%s in some runs, which end here", text);
	return build_assert(&j->b, is, text) ? variant_part(v, pick) : NULL;
}

// ---- the condition of a loop --------------------------------------------------------------------
// The program computes it twice: before the loop on the first values of the loop variables, and at
// the end of the body on the next ones. When both are one computation, the region `cond` of
// pd.while does it on its arguments, and the copies are dead. Of a condition that comes back with
// several elements Paddle looks at the first one.

enum { MAX_STEPS = 512 }; // values looked at; more is not worth it

typedef struct Matcher {
	OpJob *j;
	const Op *loop;
	Block *cond, *body;
	int nvar; // without the condition
	Value *const *next;
	int steps;
} Matcher;

// The loop variable that holds `init` at first and `next` afterwards; -1: none.
static int find_var(const Matcher *m, const Value *init, const Value *next)
{
	for (int i = 0; i < m->nvar; i++)
		if (op_operand(m->loop, i) == init && m->next[i] == next)
			return i;
	return -1;
}

static bool inside_body(const Matcher *m, const Value *v)
{
	const Block *b = v->def ? v->def->block : v->block;
	while (b && b != m->body)
		b = b->region->op->block;
	return b != NULL;
}

static bool same_operation(const Op *a, const Op *b)
{
	return a && b && a->code == b->code && (a->info->traits & TRAIT_PURE) && !a->nregion &&
	       !b->nregion && a->noperand == b->noperand && op_attrs_equal(a, b);
}

// Whether `init` and `next` are one computation on the loop variables.
static bool match(Matcher *m, const Value *init, const Value *next)
{
	if (++m->steps > MAX_STEPS)
		return false;
	if (find_var(m, init, next) >= 0 || (init == next && !inside_body(m, init)))
		return true;
	if (!same_operation(init->def, next->def) || init->index != next->index)
		return false;
	for (int i = 0; i < init->def->noperand; i++) {
		const Value *a = op_operand(init->def, i), *b = op_operand(next->def, i);
		if (a != b && (!a || !b))
			return false;
		if (a && !match(m, a, b))
			return false;
	}
	return true;
}

// Computes what match found, on the arguments of the region. NULL when inference fails.
static Value *rebuild(Matcher *m, Builder *b, ValueMap *map, Value *init, Value *next)
{
	int var = find_var(m, init, next);
	if (var >= 0)
		return m->cond->args[var];
	if (init == next && !inside_body(m, init))
		return init;
	Value *have = value_map_get(map, next);
	if (have != next)
		return have;
	Op *op = init->def;
	Value **operands = NEW_ARRAY(b->ctx->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->noperand; i++) {
		Value *x = op_operand(op, i);
		operands[i] = x ? rebuild(m, b, map, x, op_operand(next->def, i)) : NULL;
		if (x && !operands[i])
			return NULL;
	}
	b->loc = op->loc;
	Op *copy = build_op(b, op->code, op->noperand, operands, op->nattr, op->attrs);
	if (!copy)
		return NULL;
	Value *v = op_result(copy, (int)init->index);
	v->name = init->name;
	v->stop_gradient = init->stop_gradient;
	value_map_set(map, next, v);
	return v;
}

bool condition_build(OpJob *j, Op *loop, int nvar, Value *const *next, Value **cond)
{
	Context *c = j->t->c;
	Matcher m = {.j = j,
	             .loop = loop,
	             .cond = region_entry(&loop->regions[0]),
	             .body = region_entry(&loop->regions[1]),
	             .nvar = nvar - 1,
	             .next = next};
	Value *init = op_operand(loop, nvar - 1);
	if (!match(&m, init, next[nvar - 1]))
		return false;
	DiagMark mark = diag_mark(c->diag);
	Builder b = builder_at_end(c, m.cond, loop->loc);
	*cond = rebuild(&m, &b, value_map_new(c->arena), init, next[nvar - 1]);
	if (*cond)
		return true;
	// The arguments have types that the computation does not take: carry its result instead.
	diag_rewind(c->diag, mark);
	while (m.cond->last)
		op_erase(m.cond->last);
	return false;
}

Value *condition_first(OpJob *j, Block *body, Value *next, const Type *like)
{
	int64_t n;
	const bool bools = type_is_tensor(next->type) && next->type->dtype == DT_BOOL;
	if (next->type == like || !bools || (type_const_numel(next->type, &n) && n == 1))
		return next;
	Context *c = j->t->c;
	Builder b = builder_at_end(c, body, j->b.loc);
	const Dim *numel = type_numel(c, next->type);
	Value *first = tensor_cut(&b, tensor_reshape(&b, next, 1, &numel), 0, 0, 1);
	return tensor_reshape(&b, first, like->rank, like->dims);
}
