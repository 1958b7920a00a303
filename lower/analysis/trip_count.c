// How often a loop runs: counters that a round changes by a constant, compared with a size that the
// loop does not change, or with a number that is there before it. Called by passes that bound
// sizes, give tensor arrays their capacity, and make counted loops.
//
// Works on pd operators, that is before they become nests. The condition may stand in the region
// `cond`, or be a variable that the body computes for the next round. A counter is an integer
// variable of one element, or a size of a variable, as in `while x.shape[0] > 1`.
#include "lower/analysis/analysis.h"
#include "lower/pass/control.h"
#include "lower/pass/rewrite.h"

enum { MAX_DEPTH = 24 };

// What an integer is in terms of a counter, of a number from outside of the loop, or of neither:
// that + offset.
typedef struct Affine {
	int var;           // loop variable; -1: none
	const Dim *sym;    // a size of a loop variable; NULL: none
	Value *base;       // of which nothing is known; NULL: none
	const Dim *offset; // NULL: not known at all
} Affine;

typedef struct Trip {
	Context *c;
	const Op *loop;
	const Block *cond, *body;
	int n;
} Trip;

static const Affine affine_unknown = {.var = -1, .sym = NULL, .offset = NULL};

// ---- symbols ------------------------------------------------------------------------------------

// Whether op itself gives the symbol a value: loop.bind, a slot of control flow, or a size that
// data decide.
static bool op_binds(const Op *op, const Dim *sym)
{
	if (op->code == OP_LOOP_BIND) {
		const Attr *dims = op_attr(op, "dims");
		for (int i = 0; dims && i < dims->n; i++)
			if (dim_mentions(dims->dims[i], sym))
				return true;
		return false;
	}
	bool found = false;
	for (int i = 0; i < op->nresult; i++)
		found = found || type_mentions(op->results[i].type, sym);
	for (int i = 0; i < op->noperand && found && !op->nregion; i++)
		if (op_operand(op, i) && type_mentions(op_operand(op, i)->type, sym))
			return false;
	return found;
}

bool dim_changes_in(const Dim *d, const Op *op)
{
	if (d->kind == DIM_CONST)
		return false;
	if (d->kind != DIM_SYM)
		return dim_changes_in(d->a, op) || dim_changes_in(d->b, op);
	for (int i = 0; d->bounded && i < op->nregion; i++)
		if (region_has_size(&op->regions[i], d, op_binds))
			return true;
	return false;
}

// ---- counters -----------------------------------------------------------------------------------

static Affine affine_of(const Trip *t, const Value *v, int depth);

// A size as a counter: one that a variable of the loop has, and a distance from it that stays.
static Affine affine_of_dim(const Trip *t, const Dim *d)
{
	if (!dim_changes_in(d, t->loop))
		return (Affine){.var = -1, .offset = d};
	for (int i = 0; i < t->n; i++) {
		const Type *type = t->body->args[i]->type;
		for (int k = 0; type->kind == TY_TENSOR && k < type->rank; k++) {
			const Dim *sym = type->dims[k];
			if (sym->kind != DIM_SYM || !sym->bounded || !dim_mentions(d, sym))
				continue;
			const Dim *rest = dim_sub(t->c, d, sym);
			if (!dim_changes_in(rest, t->loop))
				return (Affine){.var = -1, .sym = sym, .offset = rest};
		}
	}
	return affine_unknown;
}

static Affine affine_sum(const Trip *t, Affine a, Affine b, bool subtract)
{
	bool counter = b.var >= 0 || b.sym;
	if (!a.offset || !b.offset || a.base || b.base ||
	    (counter && (subtract || a.var >= 0 || a.sym)))
		return affine_unknown;
	a.offset = subtract ? dim_sub(t->c, a.offset, b.offset) : dim_add(t->c, a.offset, b.offset);
	if (counter) {
		a.var = b.var;
		a.sym = b.sym;
	}
	return a;
}

static Affine affine_shift(const Trip *t, Affine a, double by)
{
	int64_t whole;
	if (!a.offset || !number_whole(by, &whole))
		return affine_unknown;
	a.offset = dim_add(t->c, a.offset, dim_const(t->c, whole));
	return a;
}

static bool attr_small(const Attr *a, int64_t *out)
{
	if (!a || (a->kind != ATTR_FLOAT && a->kind != ATTR_INT && a->kind != ATTR_BOOL))
		return false;
	if (a->kind == ATTR_FLOAT && !(a->f > -1e15 && a->f < 1e15 && a->f == (double)(int64_t)a->f))
		return false;
	*out = a->kind == ATTR_FLOAT ? (int64_t)a->f : a->i;
	return true;
}

// x * scale + bias with a scale of 1.
static Affine affine_of_scale(const Trip *t, const Op *op, int depth)
{
	int64_t bias;
	if (op_operand(op, 1) || op_float(op, "scale", 1) != 1 ||
	    !attr_small(op_attr(op, "bias"), &bias))
		return affine_unknown;
	return affine_shift(t, affine_of(t, op_operand(op, 0), depth), (double)bias);
}

static Affine affine_of_data(const Trip *t, const Value *v)
{
	const Tensor *data = value_constant(v);
	int64_t n;
	if (data && tensor_numel(data) == 1)
		return (Affine){.var = -1, .offset = dim_const(t->c, tensor_get_i(data, 0))};
	if (v->def && v->def->code == OP_PD_FULL && !v->def->noperand &&
	    type_const_numel(v->type, &n) && n == 1) {
		const char *text = op_str(v->def, "str_value", "");
		if (!*text && attr_small(op_attr(v->def, "value"), &n))
			return (Affine){.var = -1, .offset = dim_const(t->c, n)};
	}
	if (v->known && v->nknown == 1)
		return affine_of_dim(t, v->known[0]);
	return affine_unknown;
}

// One element of a shape: pd.slice of pd.shape.
static Affine affine_of_slice(const Trip *t, const Op *op)
{
	const Attr *starts = op_attr(op, "starts");
	const Value *shape = op_operand(op, 0);
	if (!shape->def || shape->def->code != OP_PD_SHAPE || !starts || starts->kind != ATTR_DIMS ||
	    starts->n != 1 || !dim_is_const(starts->dims[0]))
		return affine_unknown;
	const Type *x = op_operand(shape->def, 0)->type;
	int64_t at = starts->dims[0]->value, n = x->kind == TY_TENSOR ? x->rank : 0;
	at += at < 0 ? n : 0;
	return at >= 0 && at < n ? affine_of_dim(t, x->dims[at]) : affine_unknown;
}

static Affine affine_of_op(const Trip *t, const Value *v, int depth)
{
	const Op *op = v->def;
	switch (op->code) {
	case OP_PD_CAST:
		if (!type_is_tensor(op_operand(op, 0)->type) ||
		    !dtype_is_int(op_operand(op, 0)->type->dtype))
			return affine_unknown;
		return affine_of(t, op_operand(op, 0), depth);
	case OP_PD_ASSIGN:
	case OP_PD_RESHAPE:
	case OP_PD_SQUEEZE:
	case OP_PD_UNSQUEEZE: return affine_of(t, op_operand(op, 0), depth);
	case OP_PD_SCALE: return affine_of_scale(t, op, depth);
	case OP_PD_INCREMENT:
		return affine_shift(t, affine_of(t, op_operand(op, 0), depth), op_float(op, "value", 1));
	case OP_PD_ADD:
	case OP_PD_SUBTRACT:
		return affine_sum(t, affine_of(t, op_operand(op, 0), depth),
		                  affine_of(t, op_operand(op, 1), depth), op->code == OP_PD_SUBTRACT);
	case OP_PD_SHAPE: return affine_of_dim(t, op_operand(op, 0)->type->dims[0]); // of one axis
	case OP_PD_SLICE: return affine_of_slice(t, op);
	default: return affine_unknown;
	}
}

static bool variable_stays(const Trip *t, int i)
{
	return op_operand(t->body->last, i) == t->body->args[i];
}

static bool is_integer(const Value *v)
{
	int64_t n;
	return type_is_tensor(v->type) && dtype_is_int(v->type->dtype) &&
	       type_const_numel(v->type, &n) && n == 1;
}

// An integer of one element. What is computed outside of the loop from something of which nothing
// is known counts as it is, however narrow its type.
static Affine affine_of(const Trip *t, const Value *v, int depth)
{
	if (!v || depth > MAX_DEPTH || !is_integer(v))
		return affine_unknown;
	if (!v->def && (v->block == t->cond || v->block == t->body)) {
		if (variable_stays(t, (int)v->index))
			return affine_of(t, op_operand(t->loop, (int)v->index), depth + 1);
		return (Affine){.var = (int)v->index, .offset = dim_const(t->c, 0)};
	}
	Affine a = v->def ? affine_of_op(t, v, depth + 1) : affine_unknown;
	if (!a.offset)
		a = affine_of_data(t, v);
	if ((!a.offset || a.base || a.sym) &&
	    !value_is_in(v, t->loop)) // a size that the loop changes is here as it was
		a = (Affine){.var = -1, .base = (Value *)v, .offset = dim_const(t->c, 0)};
	return a;
}

// A counter that is a size: what it is at first, and how much more a round makes it; NULL: it is
// none.
static const Dim *size_counter(const Trip *t, const Dim *sym, Affine *first)
{
	const Dim *change = NULL;
	for (int i = 0; i < t->n; i++) {
		const Type *arg = t->body->args[i]->type, *init = op_operand(t->loop, i)->type;
		const Type *next = op_operand(t->body->last, i)->type;
		for (int k = 0; arg->kind == TY_TENSOR && k < arg->rank; k++)
			if (arg->dims[k] == sym) {
				*first = (Affine){.var = -1, .offset = init->dims[k]};
				change = dim_sub(t->c, next->dims[k], sym);
			}
	}
	return change;
}

// What the counter holds at first, and what a round adds to it: a constant, not 0.
static bool counter_find(const Trip *t, const Affine *a, Affine *first, int64_t *step)
{
	const Dim *change = NULL;
	*first = affine_unknown;
	if (a->var >= 0) {
		Affine init = affine_of(t, op_operand(t->loop, a->var), 0);
		Affine next = affine_of(t, op_operand(t->body->last, a->var), 0);
		if (init.var < 0 && !init.sym)
			*first = init;
		change = next.var == a->var ? next.offset : NULL;
	}
	const Dim *grown = a->sym ? size_counter(t, a->sym, first) : NULL;
	change = grown ? grown : change;
	if (!change || !first->offset || !dim_is_const(change) || change->value == 0 ||
	    change->value == INT64_MIN || dim_changes_in(first->offset, t->loop))
		return false;
	*step = change->value;
	return true;
}

// ---- conditions ---------------------------------------------------------------------------------

// A comparison of two integers that holds while the loop goes on.
typedef struct Compare {
	enum OpCode code; // less_than, less_equal, greater_than, greater_equal, not_equal
	Affine left, right;
} Compare;

static enum OpCode compare_swap(enum OpCode code)
{
	switch (code) {
	case OP_PD_LESS_THAN: return OP_PD_GREATER_THAN;
	case OP_PD_LESS_EQUAL: return OP_PD_GREATER_EQUAL;
	case OP_PD_GREATER_THAN: return OP_PD_LESS_THAN;
	case OP_PD_GREATER_EQUAL: return OP_PD_LESS_EQUAL;
	default: return code;
	}
}

static enum OpCode compare_negate(enum OpCode code)
{
	switch (code) {
	case OP_PD_LESS_THAN: return OP_PD_GREATER_EQUAL;
	case OP_PD_LESS_EQUAL: return OP_PD_GREATER_THAN;
	case OP_PD_GREATER_THAN: return OP_PD_LESS_EQUAL;
	case OP_PD_GREATER_EQUAL: return OP_PD_LESS_THAN;
	case OP_PD_EQUAL: return OP_PD_NOT_EQUAL;
	default: return OP_PD_EQUAL;
	}
}

static bool is_comparison(const Op *op)
{
	return op && (op->info->traits & TRAIT_COMPARE) && op->noperand == 2 &&
	       (op->code == OP_PD_LESS_THAN || op->code == OP_PD_LESS_EQUAL ||
	        op->code == OP_PD_GREATER_THAN || op->code == OP_PD_GREATER_EQUAL ||
	        op->code == OP_PD_EQUAL || op->code == OP_PD_NOT_EQUAL);
}

// The comparison that v is, with the counter on its left.
static bool compare_find(const Trip *t, const Value *v, bool negated, Compare *out)
{
	const Op *op = v->def;
	if (!is_comparison(op))
		return false;
	*out = (Compare){op->code, affine_of(t, op_operand(op, 0), 0),
	                 affine_of(t, op_operand(op, 1), 0)};
	if (!out->left.offset || !out->right.offset)
		return false;
	if (out->right.var >= 0 || out->right.sym) {
		Affine a = out->left;
		out->left = out->right;
		out->right = a;
		out->code = compare_swap(out->code);
	}
	if (negated)
		out->code = compare_negate(out->code);
	return out->right.var < 0 && !out->right.sym && out->code != OP_PD_EQUAL;
}

// How often v + k * step, k = 0, 1 ..., compares in a row; NULL: not known, or for ever.
static const Dim *count_steps(Context *c, enum OpCode code, const Dim *v, int64_t step,
                              const Dim *end)
{
	const Dim *zero = dim_const(c, 0), *way = dim_sub(c, end, v);
	int64_t lo, hi;
	if (code == OP_PD_NOT_EQUAL) {
		way = step < 0 ? dim_sub(c, zero, way) : way;
		step = step < 0 ? -step : step;
		dim_range(way, &lo, &hi);
		bool meets = lo >= 0 && (step == 1 || (dim_is_const(way) && way->value % step == 0));
		return meets ? dim_div(c, way, dim_const(c, step)) : NULL;
	}
	bool up = code == OP_PD_LESS_THAN || code == OP_PD_LESS_EQUAL;
	if (up != (step > 0))
		return NULL;
	way = up ? way : dim_sub(c, zero, way);
	step = up ? step : -step;
	if (code == OP_PD_LESS_EQUAL || code == OP_PD_GREATER_EQUAL)
		way = dim_add(c, way, dim_const(c, 1));
	const Dim *steps = dim_div(c, dim_add(c, way, dim_const(c, step - 1)), dim_const(c, step));
	return dim_max(c, steps, zero);
}

typedef struct Count {
	const Dim *exact, *at_most; // NULL: not known
} Count;

static Count count_condition(const Trip *t, const Value *v, bool negated, int depth);

// Both must hold: the loop ends no later than with the first that fails.
static Count count_both(const Trip *t, const Op *op, bool negated, int depth)
{
	Count a = count_condition(t, op_operand(op, 0), negated, depth),
		  b = count_condition(t, op_operand(op, 1), negated, depth);
	if (!a.at_most || !b.at_most)
		return (Count){NULL, a.at_most ? a.at_most : b.at_most};
	Count r = {.at_most = dim_min(t->c, a.at_most, b.at_most)};
	r.exact = a.exact && b.exact ? r.at_most : NULL;
	return r;
}

// Whether the operation hands its operand on.
static bool is_same_number(const Op *op)
{
	return op->code == OP_PD_ASSIGN || op->code == OP_PD_RESHAPE || op->code == OP_PD_SQUEEZE ||
	       op->code == OP_PD_UNSQUEEZE;
}

// How often in a row v holds, when it is looked at once per round and never before the first.
static Count count_condition(const Trip *t, const Value *v, bool negated, int depth)
{
	Compare cmp;
	const Op *op = v->def;
	if (!op || depth > MAX_DEPTH)
		return (Count){NULL, NULL};
	if (op->code == OP_PD_LOGICAL_NOT)
		return count_condition(t, op_operand(op, 0), !negated, depth + 1);
	if (op->code == (negated ? OP_PD_LOGICAL_OR : OP_PD_LOGICAL_AND))
		return count_both(t, op, negated, depth + 1);
	if (is_same_number(op))
		return count_condition(t, op_operand(op, 0), negated, depth + 1);
	Affine first;
	int64_t step, n;
	if (!type_const_numel(v->type, &n) || n != 1 || !compare_find(t, v, negated, &cmp) ||
	    !counter_find(t, &cmp.left, &first, &step) || first.base || cmp.right.base)
		return (Count){NULL, NULL};
	const Dim *count = count_steps(t->c, cmp.code, dim_add(t->c, first.offset, cmp.left.offset),
	                               step, cmp.right.offset);
	return (Count){count, count};
}

// Whether the condition that goes in is sure to hold.
static bool condition_holds(const Trip *t, const Value *v)
{
	int64_t n;
	const Tensor *data = value_constant(v);
	if (data)
		return tensor_numel(data) == 1 && tensor_get_i(data, 0) != 0;
	if (v->def && v->def->code == OP_PD_FULL && !v->def->noperand)
		return attr_small(op_attr(v->def, "value"), &n) && n != 0;
	return v->known && v->nknown == 1 && dim_is_const(v->known[0]) && v->known[0]->value != 0;
}

static Trip trip_of(Context *c, const Op *loop)
{
	return (Trip){c, loop, loop->regions[0].first, loop->regions[1].first, loop->noperand};
}

bool while_trip_count(Context *c, const Op *loop, const Dim **exact, const Dim **at_most)
{
	*exact = *at_most = NULL;
	if (!loop_is_plain(loop))
		return false;
	Trip t = trip_of(c, loop);
	const Op *again = t.cond->last, *next = t.body->last;
	const Value *go = op_operand(again, 0);
	bool carried = !go->def && go->block == t.cond;
	Count count = count_condition(&t, carried ? op_operand(next, (int)go->index) : go, false, 0);
	if (carried) { // looked at for the first time after the first round
		const Value *init = op_operand(loop, (int)go->index);
		const Dim *one = dim_const(c, 1);
		count.exact = count.exact && condition_holds(&t, init) ? dim_add(c, count.exact, one)
		                                                       : NULL;
		count.at_most = count.at_most ? dim_add(c, count.at_most, one) : NULL;
	}
	*exact = count.exact;
	*at_most = count.at_most;
	return *at_most != NULL;
}

bool while_trip_ends(Context *c, const Op *loop, TripEnds *out)
{
	Compare cmp;
	Affine first;
	bool negated = false;
	if (!loop_is_plain(loop))
		return false;
	Trip t = trip_of(c, loop);
	const Value *go = op_operand(t.cond->last, 0);
	for (; go->def && go->def->code == OP_PD_LOGICAL_NOT; go = op_operand(go->def, 0))
		negated = !negated;
	if (!compare_find(&t, go, negated, &cmp) || cmp.code == OP_PD_NOT_EQUAL ||
	    !counter_find(&t, &cmp.left, &first, &out->step))
		return false;
	const bool up = cmp.code == OP_PD_LESS_THAN || cmp.code == OP_PD_LESS_EQUAL;
	const DType counter = cmp.left.var >= 0 ? t.body->args[cmp.left.var]->type->dtype : DT_I64;
	if (up != (out->step > 0) || (dtype_size(counter) < 4 && out->step != 1 &&
	                              out->step != -1)) // it might jump over the end
		return false;
	out->inclusive = cmp.code == OP_PD_LESS_EQUAL || cmp.code == OP_PD_GREATER_EQUAL;
	out->first = (TripEnd){first.base, dim_add(c, first.offset, cmp.left.offset)};
	out->end = (TripEnd){cmp.right.base, cmp.right.offset};
	return true;
}
