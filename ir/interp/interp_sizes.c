// Sizes in a run: which value the feeds and the operations give each symbol, and how much room
// arrays have. Called wherever an operation asks for a size, or finds one.
#include "ir/interp/interp.h"
#include "ir/base/vec.h"
#include "ir/interp/hooks.h"

static SymValue *find_sym(const Interp *in, const Dim *sym)
{
	for (int i = 0; i < in->nsym; i++)
		if (in->syms[i].sym == sym)
			return &in->syms[i];
	return NULL;
}

// For dim_eval: the value of a symbol, and which one was missing.
typedef struct Lookup {
	const Interp *in;
	const Dim *missing;
	const Dim *trial; // a symbol that is tried out
	int64_t trial_value;
	bool several; // more than one is missing
} Lookup;

static int64_t lookup_sym(const Dim *sym, void *arg)
{
	Lookup *l = arg;
	if (sym == l->trial)
		return l->trial_value;
	const SymValue *v = find_sym(l->in, sym);
	if (v)
		return v->value;
	l->several |= l->missing && l->missing != sym;
	l->missing = sym;
	return 1;
}

bool interp_size(Interp *in, const Op *op, const Dim *d, int64_t *out)
{
	Lookup l = {.in = in};
	bool ok = dim_eval(d, lookup_sym, &l, out);
	if (l.missing)
		return op_error(op, "the size %s is not known", dim_text(in->ctx, d));
	return ok || op_error(op, "the size %s overflows, or divides by zero", dim_text(in->ctx, d));
}

int64_t interp_dim(Interp *in, const Dim *d)
{
	Lookup l = {.in = in};
	int64_t v;
	return dim_eval(d, lookup_sym, &l, &v) && !l.missing ? v : -1;
}

static void set_sym(Interp *in, const Dim *sym, int64_t v, const Op *op)
{
	SymValue *s = find_sym(in, sym);
	if (!s) {
		VEC_ROOM(in->arena, in->syms, in->nsym, in->csym);
		s = &in->syms[in->nsym++];
	}
	*s = (SymValue){sym, v, op};
}

// The value of the one missing symbol that makes d equal `value`: d is linear in it, or there is
// none.
static bool solve_sym(Interp *in, const Dim *d, const Dim *sym, int64_t value, int64_t *out)
{
	Lookup l = {.in = in, .trial = sym, .trial_value = 1};
	int64_t one, two, at;
	if (!dim_eval(d, lookup_sym, &l, &one))
		return false;
	l.trial_value = 2;
	if (!dim_eval(d, lookup_sym, &l, &two) || two == one || (value - one) % (two - one) != 0)
		return false;
	*out = l.trial_value = 1 + (value - one) / (two - one);
	return dim_eval(d, lookup_sym, &l, &at) && at == value;
}

int interp_match_dim(Interp *in, const Op *op, const Dim *d, int64_t value)
{
	Lookup l = {.in = in};
	int64_t have;
	bool ok = dim_eval(d, lookup_sym, &l, &have);
	if (!l.missing)
		return ok && have == value ? 1 : -1;
	if (l.several)
		return 0;
	if (!solve_sym(in, d, l.missing, value, &have))
		return -2;
	set_sym(in, l.missing, have, op);
	return 1;
}

// The region of `around`, an operation somewhere around op, that op stands in.
static const Region *region_in(const Op *op, const Op *around)
{
	while (op && op_parent(op) != around)
		op = op_parent(op);
	return op ? op->block->region : NULL;
}

// Whether another side of a branch found the symbol, in an earlier round then.
static bool found_in_other_branch(const Op *by, const Op *op)
{
	for (const Op *branch = by ? op_parent(by) : NULL; branch; branch = op_parent(branch)) {
		const Region *mine = op_is_branch(branch) ? region_in(op, branch) : NULL;
		if (mine && mine != region_in(by, branch))
			return true;
	}
	return false;
}

// Whether the symbol that `by` found belongs to a loop that is over where op stands.
static bool found_in_other_loop(const Op *by, const Op *op)
{
	for (const Op *loop = by ? op_parent(by) : NULL; loop; loop = op_parent(loop)) {
		const Op *around = op_parent(op);
		while (around && around != loop)
			around = op_parent(around);
		if (loop->code == OP_PD_WHILE && !around)
			return true;
	}
	return op_bool(op, "anew", false);
}

bool interp_found_dim(Interp *in, const Op *op, const Dim *d, int64_t value)
{
	SymValue *s = d->kind == DIM_SYM ? find_sym(in, d) : NULL;
	if (value < 0)
		return op_error(op, "the size %s would be %lld", dim_text(in->ctx, d), (long long)value);
	// In a loop the operation finds its symbol anew every time; so do variables of loops, although
	// another operation has found it before.
	const bool anew = s && (s->op == op || found_in_other_loop(s->op, op) ||
	                        found_in_other_branch(s->op, op));
	if (anew)
		s->op = op;
	if (anew || (s && op->code == OP_PD_WHILE)) {
		s->value = value;
		return true;
	}
	if (interp_match_dim(in, op, d, value) == 1)
		return true;
	int64_t have = interp_dim(in, d);
	return op_error(op, "the size %s is %lld here, not %lld", dim_text(in->ctx, d),
	                (long long)value, (long long)have);
}

bool interp_found_dims(Interp *in, const Op *op, const Value *v)
{
	const Type *type = v->type;
	const Tensor *t = interp_value(in, v);
	if (type->kind != TY_TENSOR || !t)
		return true;
	if (t->rank != type->rank || t->dtype != type->dtype)
		return op_error(op, "%s where the type is %s", interp_shape_text(in, t),
		                type_text(in->ctx, type));
	for (int d = 0; d < t->rank; d++)
		if (!interp_found_dim(in, op, type->dims[d], t->dims[d]))
			return false;
	return true;
}

// ---- capacities ---------------------------------------------------------------------------------

enum { FIRST_CAPACITY = 16, LAST_CAPACITY = 1 << 24 };

static SymValue *find_capacity(Interp *in, const Dim *sym)
{
	for (int i = 0; i < in->ncapacity; i++)
		if (in->capacities[i].sym == sym)
			return &in->capacities[i];
	VEC_ROOM(in->arena, in->capacities, in->ncapacity, in->ccapacity);
	SymValue *s = &in->capacities[in->ncapacity++];
	*s = (SymValue){sym, FIRST_CAPACITY, NULL};
	return s;
}

void interp_bind_capacity(Interp *in, const Op *op, const Dim *sym)
{
	set_sym(in, sym, find_capacity(in, sym)->value, op);
}

bool interp_no_room(Interp *in, const Op *op, const Dim *size, int64_t need)
{
	while (size->kind == DIM_MAX)
		size = dim_is_found(size->a) ? size->a : size->b;
	if (size->kind != DIM_SYM || !size->bounded || need > LAST_CAPACITY)
		return op_error(op, "there is no room for %lld", (long long)need);
	SymValue *s = find_capacity(in, size);
	s->value = need > 2 * s->value ? need : 2 * s->value;
	in->no_room = true;
	return false;
}
