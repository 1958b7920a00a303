// A pd.if that grows: made empty, it moves down while nothing uses its results, and gets a result
// for what both branches leave in a variable, with sizes that differ, types that differ, and LoD.
// control_if.c opens them for conditional_block, control_select.c for choices, translate.c for what
// a program gives early.
#include "frontend/control/control.h"
#include "frontend/control/variants.h"
#include "frontend/job/lod.h"
#include "frontend/job/undefined.h"
#include "frontend/job/variant.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"

// Results of several types: the mark for them, behind the pd.if (variant.h).
typedef struct Mixed {
	struct Mixed *next;
	Value *sides[2], *all;
} Mixed;

const Value *condition_strip(const Value *v, bool *negated)
{
	*negated = false;
	for (; v->def && type_is_tensor(v->type); v = op_operand(v->def, 0)) {
		const Value *x = op_operand(v->def, 0);
		bool cast = v->def->code == OP_PD_CAST && type_is_tensor(x->type) &&
		            (v->type->dtype == DT_BOOL || x->type->dtype == DT_BOOL) &&
		            !dtype_is_float(x->type->dtype) && !dtype_is_float(v->type->dtype);
		if (v->def->code == OP_PD_LOGICAL_NOT)
			*negated = !*negated;
		else if (!cast)
			break;
	}
	return v;
}

OpenIf *if_open(OpJob *j, Value *cond, int room)
{
	Context *c = j->t->c;
	OpenIf *i = NEW(c->arena, OpenIf);
	i->cresult = room;
	i->pred = condition_strip(cond, &i->negated);
	// Values must not move once they are used: there is room for all results from the start.
	i->op = op_new(c, OP_PD_IF, j->b.loc, room, NULL, 1, &cond, 2, 0);
	i->op->nresult = 0;
	for (int k = 0; k < 2; k++) {
		Block *b = block_new(c, &i->op->regions[k]);
		op_append(b, op_new(c, OP_CF_YIELD, j->b.loc, 0, NULL, 0, NULL, 0, 0));
	}
	op_append(j->t->block, i->op);
	return i;
}

static Op *yield_of(const OpenIf *i, int region)
{
	return block_terminator(region_entry(&i->op->regions[region]));
}

// Whether v is there where the pd.if stands; values of its regions are.
static bool is_there(const OpenIf *i, const Value *v)
{
	return !v || !v->def || v->def->block != i->op->block || op_is_before(v->def, i->op);
}

// Whether only such marks use v.
static bool used_by_marks(const Value *v)
{
	for (const Use *u = v->uses; u; u = u->next)
		if (u->user->code != OP_BUILTIN_VARIANT)
			return false;
	return true;
}

bool if_move_down(Translator *t, OpenIf *i)
{
	if (i->op->block != t->block)
		return false;
	for (int r = 0; r < i->op->nresult; r++)
		if (!used_by_marks(&i->op->results[r]))
			return false;
	op_detach(i->op);
	op_append(t->block, i->op);
	for (const Mixed *m = i->mixed; m; m = m->next) {
		op_detach(m->all->def);
		op_append(t->block, m->all->def);
	}
	return true;
}

bool is_undefined(const Value *v)
{
	if (v->def && v->def->code == OP_PD_CREATE_ARRAY)
		return true;
	const Attr *a = v->def && v->def->code == OP_BUILTIN_CONSTANT ? op_attr(v->def, "value") : NULL;
	if (!a || !dtype_is_float(a->tensor->dtype) || tensor_numel(a->tensor) != 1)
		return false;
	double r = tensor_get_f(a->tensor, 0) / UNDEFINED_MARK;
	return r > 0.9999 && r < 1.0001;
}

// The region that runs, when the program tells; -1: only a run tells.
static int known_branch(OpJob *j, const OpenIf *i)
{
	NumberList l = {0};
	bool known = numbers_of_value(j->t->c, op_operand(i->op, 0), &l) && l.n == 1;
	return known ? l.floats[0] == 0 : -1;
}

// Programs with gradient operators have no values of several types: among those of one element that
// differ in their number of axes only, the first decides.
static Value *same_rank(OpJob *j, OpenIf *i, Value *v, const Type *want, const char *var)
{
	Context *c = j->t->c;
	if (!j->t->graded || !ranks_differ(v->type, want))
		return v;
	if (!is_undefined(v))
		diag_warning(c->diag, j->b.loc, "variable '%s' is %s also in runs that leave %s", var,
		             type_text(c, want), type_text(c, v->type));
	Builder b = builder_before(yield_of(i, 1));
	return tensor_reshape(&b, v, want->rank, want->dims);
}

// The type of what one branch leaves, and which operator makes it.
static const char *side_text(Context *c, const Value *v)
{
	const Loc *l = v && v->def ? v->def->loc : NULL;
	const char *type = v ? type_text(c, v->type) : "nothing";
	if (!l || l->op < 0 || !l->type)
		return type;
	return arena_printf(c->arena, "%s (block %d, op %d '%s')", type, l->block, l->op, l->type);
}

// Sides of which only one is what the variable is declared as: the run ends where it would come to
// the other one.
static bool one_side(OpJob *j, OpenIf *i, Value **v, const char *var)
{
	Context *c = j->t->c;
	const int right = declared_like(j, var, v[0]) ? 0 : 1;
	if (declared_like(j, var, v[0]) == declared_like(j, var, v[1]))
		return false;
	const char *text = arena_printf(
		c->arena, "variable '%s' has different types after the two branches: %s and %s", var,
		side_text(c, v[0]), side_text(c, v[1]));
	diag_warning(c->diag, j->b.loc, "%s: a run that comes to the %s ends", text,
	             right ? "first" : "second");
	Builder b = builder_before(yield_of(i, !right));
	v[!right] = assert_never(&b, text) ? undefined_value(&b, v[right]->type) : NULL;
	return v[!right] != NULL;
}

static Value *add_result(OpJob *j, OpenIf *i, Value *const *value, const char *var);

// Values of several types: which one, and one result for each type.
static Value *add_mixed(OpJob *j, OpenIf *i, Value *const *v, const char *var)
{
	Context *c = j->t->c;
	VariantTypes list = {0};
	Value *which[2] = {NULL}, *parts[MAX_VARIANTS];
	bool fits = true;
	for (int k = 0; k < 2 && fits; k++)
		fits = !v[k] || variant_types_add(&list, v[k]);
	if (!fits || i->op->nresult + list.n + 1 > i->cresult) {
		job_fail(j, "variable '%s' has different types after the two branches: %s and %s", var,
		         side_text(c, v[0]), side_text(c, v[1]));
		return NULL;
	}
	for (int k = 0; k < 2; k++) {
		Builder b = builder_before(yield_of(i, k));
		which[k] = v[k] ? variant_which(&b, &list, v[k]) : NULL;
	}
	Value *number = add_result(j, i, which, arena_printf(c->arena, "%s.which", var));
	for (int k = 0; number && k < list.n; k++) {
		Value *const sides[] = {variant_alternative(&list, k, v[0]),
		                        variant_alternative(&list, k, v[1])};
		parts[k] = add_result(j, i, sides, arena_printf(c->arena, "%s.type%d", var, k));
		if (!parts[k])
			return NULL;
		parts[k]->name = context_str(c, var);
	}
	if (!number)
		return NULL;
	Builder b = builder_at_end(c, i->op->block, j->b.loc);
	if (i->op->next)
		b = builder_before(i->op->next);
	Mixed *m = NEW(c->arena, Mixed);
	*m = (Mixed){.next = i->mixed, .sides = {v[0], v[1]}};
	m->all = variant_make(&b, number, list.n, parts);
	i->mixed = m;
	return m->all;
}

// Of two values of unlike types, that of a branch that is not taken, or that holds nothing, may be
// anything.
static void drop_untaken(OpJob *j, OpenIf *i, Value **v)
{
	const int taken = known_branch(j, i);
	for (int k = 0; k < 2; k++)
		if (v[k] && v[!k] && v[k]->type != v[!k]->type &&
		    (taken == !k || value_is_nothing(j->t, v[k])))
			v[k] = NULL;
}

// The type that both values have after the branch, wherever it is asked for; NULL: there is none.
static const Type *sides_join(OpJob *j, OpenIf *i, Value **v, const char *var)
{
	const SizeStem stem = size_stem(j->t->c, i->op->loc, var);
	uint32_t open = 0;
	return v[0] && v[1] ? type_join(j->t->c, v[0]->type, v[1]->type, stem, &open) : NULL;
}

// A side that gives whatever gives nothing of the type of the other.
static void fill_whatever(OpenIf *i, Value **v)
{
	for (int k = 0; k < 2; k++) {
		Builder b = builder_before(yield_of(i, k));
		if (!v[k])
			v[k] = undefined_value(&b, v[!k]->type);
	}
}

static Value *result_of_sides(OpenIf *i, const Type *type, Value *const *v)
{
	Value *result = &i->op->results[i->op->nresult++];
	result->type = type;
	for (int k = 0; k < 2; k++)
		op_add_operand(yield_of(i, k), v[k]);
	return result;
}

// The result that gives value[0] after `then` and value[1] after `else` (NULL: whatever). NULL
// after a diagnostic.
static Value *add_result(OpJob *j, OpenIf *i, Value *const *value, const char *var)
{
	Context *c = j->t->c;
	Value *v[2] = {value[0], value[1]};
	drop_untaken(j, i, v);
	if ((v[0] && is_variant(v[0])) || (v[1] && is_variant(v[1])))
		return add_mixed(j, i, v, var);
	fill_whatever(i, v);
	if (v[0])
		v[1] = v[1] ? same_rank(j, i, v[1], v[0]->type, var) : NULL;
	const Type *type = sides_join(j, i, v, var);
	const bool differ = !type && v[0] && v[1];
	if (differ && !j->t->graded)
		return add_mixed(j, i, v, var);
	if (differ && one_side(j, i, v, var))
		type = sides_join(j, i, v, var);
	if (!type) {
		job_fail(j, "variable '%s' has different types after the two branches: %s and %s", var,
		         side_text(c, v[0]), side_text(c, v[1]));
		return NULL;
	}
	return result_of_sides(i, type, v);
}

// The LoD of a result: that of both values, or offsets that are results as well. What has none on
// one side has none.
static bool result_lod(OpJob *j, OpenIf *i, Value *const *value, const char *var, Value *result)
{
	Translator *t = j->t;
	const Lod *lod[2] = {lod_of(t, value[0]), lod_of(t, value[1])}, *joined = NULL;
	for (int k = 0; k < 2; k++)
		if (!lod[k] && (!value[k] || is_undefined(value[k])))
			lod[k] = lod[!k];
	if (!lod[0] || !lod[1] || lod[0]->n != lod[1]->n || i->op->nresult + lod[0]->n > i->cresult)
		return true;
	if (lod_same(lod[0], lod[1]) && lod_is_outside(lod[0], i->op)) {
		lod_set(t, result, lod[0]);
		return true;
	}
	for (int n = 0; n < lod[0]->n; n++) {
		Value *const offsets[] = {lod_offsets(j, lod[0], n), lod_offsets(j, lod[1], n)};
		const char *name = arena_printf(t->c->arena, "%s.lod%d", var, n);
		Value *v = add_result(j, i, offsets, name);
		if (!v)
			return false;
		v->name = context_str(t->c, name);
		joined = lod_extend(t, joined, n, v);
	}
	lod_set(t, result, joined);
	return true;
}

Value *if_join(OpJob *j, OpenIf *i, Value *const *value, const char *var)
{
	Value *v = add_result(j, i, value, var);
	return v && (is_variant(v) || result_lod(j, i, value, var, v)) ? v : NULL;
}

bool if_result(OpJob *j, OpenIf *i, Value *const *value, const char *var, Value **out)
{
	*out = NULL;
	for (const Mixed *m = i->mixed; m; m = m->next)
		if (m->sides[0] == value[0] && m->sides[1] == value[1])
			*out = m->all;
	for (int r = 0; r < i->op->nresult; r++)
		if (op_operand(yield_of(i, 0), r) == value[0] && op_operand(yield_of(i, 1), r) == value[1])
			*out = &i->op->results[r];
	if (*out)
		return true;
	if (i->op->nresult == i->cresult)
		return true;
	if ((!is_there(i, value[0]) || !is_there(i, value[1])) && !if_move_down(j->t, i))
		return true;
	*out = if_join(j, i, value, var);
	return *out != NULL;
}

Value *build_choice(OpJob *j, Value *pred, Value *yes, Value *no, const char *var)
{
	Value *const sides[] = {yes, no};
	if (yes == no)
		return yes;
	OpenIf *i = if_open(j, pred, 2 + MAX_LOD + MAX_VARIANTS);
	return if_join(j, i, sides, var);
}
