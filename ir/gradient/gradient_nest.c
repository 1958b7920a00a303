// The gradient of a loop.nest: each load of a tensor, transposed. Where the positions of a load are
// sums of loop variables times constants, every element of the gradient gathers what comes from the
// iterations that read it (solved for one variable per axis, summed over the others). Other loads,
// whose positions are data or need division, add what each iteration gives to the element that it
// read (kernel.scatter).
#include "ir/base/vec.h"
#include "ir/gradient/load_site.h"

#include <string.h>

enum { MAX_INDEX_CODE = 256 };

// ---- gathering ----------------------------------------------------------------------------------

// j minus everything in the equation but the pivot's term.
static Value *rest_of(Builder *b, const LoadSite *s, const Affine *a, Value *j, int pivot)
{
	Value *rest = index_plus(b, j, -a->constant);
	for (int i = 0; i < a->nleaf; i++)
		rest = index_sub(
			b, rest,
			index_times(b, index_dim(b, op_attr(a->leaf[i]->def, "dim")->dim), a->leaf_coef[i]));
	for (int v = 0; v < s->nvar; v++)
		if (v != pivot && a->coef[v])
			rest = index_sub(b, rest, index_times(b, s->vars[v].at, a->coef[v]));
	return rest;
}

// Whether the position j itself is in the range of a variable.
static bool always_inside(const LoadSite *s, const Affine *a, int axis, int pivot)
{
	if (a->constant || a->nleaf || a->coef[pivot] != 1 ||
	    s->vars[pivot].extent != s->tensor->type->dims[axis])
		return false;
	for (int v = 0; v < s->nvar; v++)
		if (v != pivot && a->coef[v])
			return false;
	return true;
}

// Finds the pivot of one axis and what must hold for it.
static void solve_axis(Builder *b, LoadSite *s, const Solution *x, int axis, Value *j,
                       Value **guard)
{
	const Affine *a = &x->axes[axis];
	int pivot = x->pivot[axis];
	Value *rest = rest_of(b, s, a, j, pivot), *zero = index_const(b, 0);
	if (pivot < 0) {
		*guard = pred_and(b, *guard, index_equal(b, rest, zero));
		return;
	}
	Var *v = &s->vars[pivot];
	int64_t c = a->coef[pivot];
	if (c < 0) {
		rest = index_sub(b, zero, rest);
		c = -c;
	}
	v->at = rest;
	if (c != 1) { // division takes no negative number
		Value *by = index_const(b, c), *low = apply2(b, OP_PD_GREATER_EQUAL, rest, zero);
		Value *safe = index_max(b, rest, zero);
		v->at = index_div(b, safe, by);
		*guard = pred_and(b, *guard,
		                  pred_and(b, low, index_equal(b, index_mod(b, safe, by), zero)));
	}
	if (!always_inside(s, a, axis, pivot))
		*guard = pred_and(b, *guard, index_inside(b, v->at, v->extent));
}

// A nest over the elements of the tensor.
static Value *gather_gradient(Builder *b, LoadSite *s, const Solution *x, Value *const *d_results,
                              bool *none)
{
	const Type *t = s->tensor->type;
	const Dim *extents[MAX_VARS];
	int nfree = 0, free_var[MAX_VARS];
	Nest n = nest_open(b, type_tensor(b->ctx, t->dtype, t->rank, t->dims, 0)), r;
	for (int v = 0; v < s->nvar; v++) {
		if (x->solved[v])
			continue;
		if (dim_is(s->vars[v].extent, 1)) { // the only term of a sum is the sum
			s->vars[v].at = index_const(&n.b, 0);
			continue;
		}
		free_var[nfree] = v;
		extents[nfree++] = s->vars[v].extent;
	}
	r = n;
	if (nfree)
		r = reduce_open(&n.b, "sum", t->dtype, nfree, extents);
	for (int i = 0; i < nfree; i++)
		s->vars[free_var[i]].at = r.at[i];
	Value *guard = NULL;
	for (int i = 0; i < x->naxis; i++)
		solve_axis(&r.b, s, x, x->order[i], n.at[x->order[i]], &guard);
	Value *element = body_gradient(&r.b, n.op, s, guard, d_results, none);
	if (*none)
		return NULL;
	return nest_close(&n, nfree ? reduce_close(&r, element) : element);
}

// ---- scattering ---------------------------------------------------------------------------------

// Whether code that computes an index may read the variable, also as the position of a load. Looks
// at *left values at most.
static bool index_reads(const Value *v, const Value *var, int *left)
{
	if (v == var || --*left < 0 || (v->def && v->def->nregion))
		return true;
	for (int i = 0; v->def && i < v->def->noperand; i++) {
		const Value *from = op_operand(v->def, i);
		if (from && from->type->kind != TY_TENSOR && index_reads(from, var, left))
			return true;
	}
	return false;
}

// How many of the last axes the load goes along with variables of their own, from end to end.
static int row_axes(const LoadSite *s, int *vars)
{
	const Type *t = s->tensor->type;
	int n = 0;
	for (int d = t->rank - 1; d >= 0; d--, n++) {
		int v = site_var(s, load_index(s->load, d));
		if (v < 0 || s->vars[v].extent != t->dims[d] || s->vars[v].counted)
			break;
		bool alone = true;
		for (int k = 0, left = MAX_INDEX_CODE; k < t->rank; k++)
			alone &= k == d || !index_reads(load_index(s->load, k), s->vars[v].arg, &left);
		if (!alone)
			break;
		vars[d] = v;
	}
	return n;
}

// Opens a nest over the variables named and tells them where they are.
static Nest open_over(Builder *b, LoadSite *s, int nresult, const DType *dtypes, int n,
                      const int *vars)
{
	const Dim *dims[MAX_RANK] = {NULL};
	const Type *types[2] = {NULL, NULL};
	for (int i = 0; i < n; i++)
		dims[i] = s->vars[vars[i]].extent;
	for (int i = 0; i < nresult; i++)
		types[i] = type_tensor(b->ctx, dtypes[i], n, dims, 0);
	Nest nest = nest_open_several(b, nresult, types);
	for (int i = 0; i < n; i++)
		s->vars[vars[i]].at = nest.at[i];
	return nest;
}

// The linear position of the row that the load reads, as i64; 0 where it reads nothing.
static Value *row_position(Builder *b, LoadSite *s, Value *guard, int rows)
{
	Body y = {.b = b, .s = s, .guard = guard, .map = value_map_new(b->ctx->arena)};
	const Block *block = s->nest->regions[0].first;
	for (int i = 0; i <= s->npath; i++) {
		for (int v = 0; v < s->nvar; v++)
			value_map_set(y.map, s->vars[v].arg, s->vars[v].at);
		if (!body_copy(&y, block))
			return NULL;
		block = i < s->npath ? s->path[i]->regions[0].first : block;
	}
	Value *at[MAX_RANK];
	for (int d = 0; d < rows; d++)
		at[d] = value_map_get(y.map, load_index(s->load, d));
	Value *linear = scalar_from_index(b, index_linear(b, rows, s->tensor->type->dims, at), DT_I64);
	if (s->load->code == OP_LOOP_LOAD_OR)
		guard = pred_and(b, guard, value_map_get(y.map, op_operand(s->load, 0)));
	return guard ? index_where(b, guard, linear, build_scalar_f(b, DT_I64, 0)) : linear;
}

// What all iterations give, in order, added to rows of zeros; halves in f32, as reductions add
// them.
static Value *scatter_gradient(Builder *b, LoadSite *s, Value *const *d_results, bool *none)
{
	Context *c = b->ctx;
	const Type *t = s->tensor->type;
	int along[MAX_RANK], over[MAX_VARS], n = 0, width = row_axes(s, along), rows = t->rank - width;
	const Dim *count = dim_const(c, 1), *wide = dims_product(c, width, t->dims + rows),
			  *high = dims_product(c, rows, t->dims);
	DType whole = DT_I64, sums = dtype_is_half(t->dtype) ? DT_F32 : t->dtype;
	for (int v = 0; v < s->nvar; v++) {
		bool inner = false;
		for (int d = rows; d < t->rank; d++)
			inner |= along[d] == v;
		if (!inner) {
			count = dim_mul(c, count, s->vars[v].extent);
			over[n++] = v;
		}
	}
	int outer = n;
	for (int d = rows; d < t->rank; d++)
		over[n++] = along[d];
	if (n > MAX_RANK) {
		diag_error(c->diag, s->nest->loc, "its gradient has more than %d loops", MAX_RANK);
		return NULL;
	}
	Nest values = open_over(b, s, 1, &sums, n, over);
	Value *element = body_gradient(&values.b, values.op, s, NULL, d_results, none);
	if (*none)
		return NULL;
	Value *updates = nest_close(&values, scalar_cast(&values.b, element, sums));
	for (int d = rows; d < t->rank; d++)
		s->vars[along[d]].at = NULL;
	Nest places = open_over(b, s, 1, &whole, outer, over);
	for (int d = rows; d < t->rank; d++)
		s->vars[along[d]].at = index_const(&places.b, 0);
	Value *guard = NULL;
	if (!body_guard(&places.b, s, &guard))
		return NULL;
	Value *at = nest_close(&places, row_position(&places.b, s, guard, rows));
	const Dim *matrix[] = {count, wide}, *target[] = {high, wide};
	Value *zeros = build_full(b, type_tensor(c, sums, 2, target, 0), 0);
	if (!updates || !at)
		return NULL;
	Value *sum = scatter_rows(b, zeros, tensor_reshape(b, at, 1, &count),
	                          tensor_reshape(b, updates, 2, matrix), "add");
	return tensor_cast(b, tensor_reshape(b, sum, t->rank, t->dims), t->dtype);
}

// ---- all loads ----------------------------------------------------------------------------------

typedef struct Sweep {
	Builder *b;
	Duals *d;
	LoadSite site;
	Value **d_results;
	int nload;
	LoadSite *loads; // found
	int cload;
} Sweep;

static void remember_load(Sweep *w, Op *load)
{
	VEC_ROOM(w->b->ctx->arena, w->loads, w->nload, w->cload);
	w->loads[w->nload] = w->site;
	w->loads[w->nload].load = load;
	w->loads[w->nload++].tensor = load_tensor(load);
}

static bool find_loads(Sweep *w, Op *op)
{
	if (op->code == OP_LOOP_LOAD || op->code == OP_LOOP_LOAD_OR) {
		if (duals_wanted(w->d, load_tensor(op)))
			remember_load(w, op);
		return true;
	}
	if (op->code != OP_LOOP_REDUCE)
		return true;
	LoadSite *s = &w->site;
	const Block *body = op->regions[0].first;
	const Attr *extents = op_attr(op, "extents");
	if (s->npath == MAX_PATH || s->nvar + body->narg > MAX_VARS) {
		diag_error(w->b->ctx->diag, op->loc, "its loops are nested too deep for a gradient");
		return false;
	}
	s->path[s->npath++] = op;
	for (int i = 0; i < body->narg; i++)
		s->vars[s->nvar++] = (Var){body->args[i], extents->dims[i], op->noperand ? op : NULL, NULL};
	bool ok = true;
	for (Op *o = body->first; o && ok; o = o->next)
		ok = find_loads(w, o);
	s->npath--;
	s->nvar -= body->narg;
	return ok;
}

static bool transpose_load(Sweep *w, LoadSite *s)
{
	Solution *x = NEW(w->b->ctx->arena, Solution);
	bool none = false;
	Value *dv = site_solve(s, x) ? gather_gradient(w->b, s, x, w->d_results, &none)
	                             : scatter_gradient(w->b, s, w->d_results, &none);
	return none || (dv && duals_add(w->b, w->d, s->tensor, dv));
}

bool gradient_nest(Builder *b, Op *nest, Duals *d)
{
	const Block *body = nest->regions[0].first;
	Sweep w = {.b = b, .d = d, .site.nest = nest, .site.nvar = body->narg};
	w.d_results = NEW_ARRAY(b->ctx->arena, (size_t)nest->nresult, Value *);
	for (int i = 0; i < nest->nresult; i++)
		w.d_results[i] = duals_get(b, d, op_result(nest, i));
	for (int i = 0; i < body->narg; i++)
		w.site.vars[i] = (Var){body->args[i], nest->results[0].type->dims[i], NULL, NULL};
	for (Op *op = body->first; op; op = op->next)
		if (!find_loads(&w, op))
			return false;
	for (int i = 0; i < w.nload; i++)
		if (!transpose_load(&w, &w.loads[i]))
			return false;
	return true;
}
