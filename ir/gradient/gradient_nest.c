// The gradient of a loop.nest: each load of a tensor, transposed. Where the positions of a load are
// sums of loop variables times constants, every element of the gradient gathers what comes from the
// iterations that read it (solved for one variable per axis, summed over the others). Other loads,
// whose positions are data or need division, add what each iteration gives to the element that it
// read (kernel.scatter).
#include "ir/base/vec.h"
#include "ir/gradient/load_site.h"

#include <string.h>

enum { MAX_INDEX_CODE = 256 };

// ---- the body of the forward nest at a position -------------------------------------------------

// A copy of the forward code at the position that s->vars have, in which the load's gradient is
// found.
typedef struct Body {
	Builder *b;
	LoadSite *s;
	Value *guard; // where the position exists; NULL: everywhere
	ValueMap *map;
	Duals *d;
	Op *load; // the copy of s->load
} Body;

// Elements are read only where the position exists.
static Value *guarded_load(Body *y, const Op *load)
{
	Value *tensor = value_map_get(y->map, load_tensor(load)), *at[MAX_RANK];
	for (int i = 0; i < tensor->type->rank; i++)
		at[i] = value_map_get(y->map, load_index(load, i));
	if (load->code == OP_LOOP_LOAD)
		return load_or(y->b, y->guard,
		               y->guard ? build_scalar_f(y->b, tensor->type->dtype, 0) : NULL, tensor, at);
	Value *pred = pred_and(y->b, y->guard, value_map_get(y->map, op_operand(load, 0)));
	return load_or(y->b, pred, value_map_get(y->map, op_operand(load, 1)), tensor, at);
}

static bool copy_ops(Body *y, const Block *from);

// A loop.reduce as a whole: for its value.
static bool copy_reduce(Body *y, Op *reduce)
{
	Op *copy = op_new(y->b->ctx, reduce->code, reduce->loc, 1, &reduce->results[0].type, 0, NULL, 1,
	                  0);
	for (int i = 0; i < reduce->nattr; i++)
		op_set_attr(copy, reduce->attrs[i].name, reduce->attrs[i].attr);
	if (reduce->noperand)
		op_add_operand(copy, value_map_get(y->map, op_operand(reduce, 0)));
	if (y->b->before)
		op_insert_before(y->b->before, copy);
	else
		op_append(y->b->block, copy);
	const Block *body = reduce->regions[0].first;
	Block *to = block_new(y->b->ctx, &copy->regions[0]);
	Builder inner = builder_at_end(y->b->ctx, to, reduce->loc), *outer = y->b;
	for (int i = 0; i < body->narg; i++)
		value_map_set(y->map, body->args[i], block_add_arg(y->b->ctx, to, body->args[i]->type));
	y->b = &inner;
	bool ok = copy_ops(y, body);
	y->b = outer;
	Value *yielded = value_map_get(y->map, op_operand(body->last, 0));
	if (ok)
		op_append(to, op_new(inner.ctx, OP_LOOP_YIELD, reduce->loc, 0, NULL, 1, &yielded, 0, 0));
	value_map_set(y->map, op_result(reduce, 0), op_result(copy, 0));
	return ok;
}

static bool copy_op(Body *y, Op *op)
{
	if (op->code == OP_LOOP_REDUCE)
		return copy_reduce(y, op);
	if (op->code == OP_LOOP_LOAD || op->code == OP_LOOP_LOAD_OR) {
		Value *v = guarded_load(y, op);
		if (!v)
			return false;
		value_map_set(y->map, op_result(op, 0), v);
		return true;
	}
	Op *copy = op_clone(y->b->ctx, op, y->map);
	if (y->b->before)
		op_insert_before(y->b->before, copy);
	else
		op_append(y->b->block, copy);
	return true;
}

// All operations but the terminator.
static bool copy_ops(Body *y, const Block *from)
{
	for (Op *op = from->first; op && op != from->last; op = op->next)
		if (!copy_op(y, op))
			return false;
	return true;
}

// The product of the terms of a reduction without the one at `at`: what division by a term of 0
// cannot give.
static Value *other_terms(Body *y, const Op *reduce, Value *const *at)
{
	const Attr *extents = op_attr(reduce, "extents");
	const Block *body = reduce->regions[0].first;
	Nest r = reduce_open(y->b, "prod", reduce->results[0].type->dtype, extents->n, extents->dims);
	if (reduce->noperand)
		op_add_operand(r.op, value_map_get(y->map, op_operand(reduce, 0)));
	Body inner = {.b = &r.b, .s = y->s, .guard = y->guard, .map = value_map_copy(y->map)};
	Value *same = NULL;
	for (int i = 0; i < body->narg; i++) {
		value_map_set(inner.map, body->args[i], r.at[i]);
		same = pred_and(&r.b, same, index_equal(&r.b, r.at[i], at[i]));
	}
	if (!copy_ops(&inner, body))
		return NULL;
	Value *term = value_map_get(inner.map, op_operand(body->last, 0)),
		  *one = build_scalar_f(&r.b, term->type->dtype, 1);
	return reduce_close(&r, same ? index_where(&r.b, same, one, term) : one);
}

// What the term at `at` of a reduction contributes to the gradient `dv` of its value.
static Value *term_gradient(Body *y, const Op *reduce, Value *const *at, Value *value, Value *term,
                            Value *dv)
{
	const ReduceKind kind = (ReduceKind)op_enum(reduce, "kind");
	if (kind == REDUCE_SUM)
		return dv;
	if (reduce_is_order(kind))
		return index_where(y->b, apply2(y->b, OP_PD_EQUAL, term, value), dv,
		                   build_scalar_f(y->b, dv->type->dtype, 0));
	if (kind == REDUCE_PROD)
		return tensor_mul(y->b, dv, other_terms(y, reduce, at));
	return build_scalar_f(y->b, dv->type->dtype, 0);
}

// Copies the code of a block, brings `dv` for what it yields to `want`, and gives the gradient of
// that; NULL: none.
static bool through_block(Body *y, const Block *block, Value *const *dv, int ndv, Op *want,
                          Value **out)
{
	Block *at = y->b->block;
	Op *before = y->b->before ? y->b->before->prev : at->last;
	if (!copy_ops(y, block))
		return false;
	Op *first = before ? before->next : at->first,
	   *last = y->b->before ? y->b->before->prev : at->last;
	Duals *d = duals_new(y->b->ctx, NULL);
	Value *target = value_map_get(y->map, op_result(want, 0));
	duals_want(d, target);
	for (int i = 0; i < ndv; i++)
		if (dv[i] && !duals_add(y->b, d, value_map_get(y->map, op_operand(block->last, i)), dv[i]))
			return false;
	if (first && first != y->b->before && !gradient_ops(y->b, d, first, last))
		return false;
	*out = duals_get(y->b, d, target);
	return true;
}

// From the gradient of a reduction's value to that of what its region yields, at the position that
// s->vars have.
static Value *enter_reduce(Body *y, Op *reduce, Value *have)
{
	const Block *block = reduce->regions[0].first;
	Value *value = value_map_get(y->map, op_result(reduce, 0)), *at[MAX_VARS];
	for (int k = 0; k < block->narg; k++) {
		at[k] = y->s->vars[site_var(y->s, block->args[k])].at;
		value_map_set(y->map, block->args[k], at[k]);
	}
	// The terms themselves are needed where not all count alike.
	bool alike = op_enum(reduce, "kind") == REDUCE_SUM;
	if (!alike && !copy_ops(y, block))
		return NULL;
	return term_gradient(y, reduce, at, value,
	                     alike ? NULL : value_map_get(y->map, op_operand(block->last, 0)), have);
}

// The gradient of the load at the position of s->vars, for these gradients of what the nest yields;
// NULL: zero.
static bool load_gradient(Body *y, Value *const *dv, int ndv, Value **out)
{
	LoadSite *s = y->s;
	const Block *block = s->nest->regions[0].first;
	Value *have[MAX_PATH + 1];
	*out = NULL;
	for (int i = 0; i < s->npath; i++) {
		if (!through_block(y, block, dv, ndv, s->path[i], &have[i]))
			return false;
		if (!have[i])
			return true;
		have[i] = enter_reduce(y, s->path[i], have[i]);
		if (!have[i])
			return false;
		dv = &have[i];
		ndv = 1;
		block = s->path[i]->regions[0].first;
	}
	if (!through_block(y, block, dv, ndv, s->load, out))
		return false;
	if (*out && s->load->code == OP_LOOP_LOAD_OR) {
		Value *pred = value_map_get(y->map, op_operand(s->load, 0));
		*out = index_where(y->b, pred, *out, build_scalar_f(y->b, (*out)->type->dtype, 0));
		return *out != NULL;
	}
	return true;
}

// The gradients of the nest's results at the position of its variables.
static void incoming(Body *y, Value *const *d_results, Value **dv)
{
	LoadSite *s = y->s;
	Value *at[MAX_RANK];
	for (int i = 0; i < s->nest->results[0].type->rank; i++)
		at[i] = s->vars[i].at;
	for (int i = 0; i < s->nest->nresult; i++) {
		dv[i] = NULL;
		if (d_results[i] && type_moves(d_results[i]->type))
			dv[i] = load_or(y->b, y->guard,
			                y->guard ? build_scalar_f(y->b, d_results[i]->type->dtype, 0) : NULL,
			                d_results[i], at);
	}
}

// Positions behind the count of a loop.reduce that ends early do not exist. The count is code of
// the body around it.
static bool guard_counts(Builder *b, LoadSite *s, Value **guard)
{
	for (int i = 0; i < s->nvar; i++) {
		if (!s->vars[i].counted)
			continue;
		Body y = {.b = b, .s = s, .guard = *guard, .map = value_map_new(b->ctx->arena)};
		for (int v = 0; v < s->nvar; v++)
			value_map_set(y.map, s->vars[v].arg, s->vars[v].at);
		const Block *block = s->nest->regions[0].first;
		for (int k = 0; k < s->npath && s->path[k] != s->vars[i].counted; k++) {
			if (!copy_ops(&y, block))
				return false;
			block = s->path[k]->regions[0].first;
			for (int v = 0; v < s->nvar; v++)
				value_map_set(y.map, s->vars[v].arg, s->vars[v].at);
		}
		if (!copy_ops(&y, block))
			return false;
		Value *count = value_map_get(y.map, op_operand(s->vars[i].counted, 0));
		*guard = pred_and(b, *guard, index_less(b, s->vars[i].at, count));
	}
	return true;
}

// What iteration s->vars gives to the element that it loads, where guard is true; NULL after a
// diagnostic, or zero where *none is set: the nest that it was to stand in is gone then.
static Value *iteration_gradient(Builder *b, Op *nest, LoadSite *s, Value *guard,
                                 Value *const *d_results, bool *none)
{
	*none = false;
	if (!guard_counts(b, s, &guard))
		return NULL;
	Body y = {.b = b, .s = s, .guard = guard, .map = value_map_new(b->ctx->arena)};
	Value **dv = NEW_ARRAY(b->ctx->arena, (size_t)s->nest->nresult, Value *), *out = NULL;
	const Block *body = s->nest->regions[0].first;
	for (int i = 0; i < body->narg; i++)
		value_map_set(y.map, body->args[i], s->vars[i].at);
	incoming(&y, d_results, dv);
	if (!load_gradient(&y, dv, s->nest->nresult, &out))
		return NULL;
	*none = !out;
	if (!out)
		op_erase(nest);
	if (!out || !guard)
		return out;
	return index_where(b, guard, out, build_scalar_f(b, out->type->dtype, 0));
}

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
	Value *element = iteration_gradient(&r.b, n.op, s, guard, d_results, none);
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
		if (!copy_ops(&y, block))
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
	Value *element = iteration_gradient(&values.b, values.op, s, NULL, d_results, none);
	if (*none)
		return NULL;
	Value *updates = nest_close(&values, scalar_cast(&values.b, element, sums));
	for (int d = rows; d < t->rank; d++)
		s->vars[along[d]].at = NULL;
	Nest places = open_over(b, s, 1, &whole, outer, over);
	for (int d = rows; d < t->rank; d++)
		s->vars[along[d]].at = index_const(&places.b, 0);
	Value *guard = NULL;
	if (!guard_counts(&places.b, s, &guard))
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

// ---- inside of nests ----------------------------------------------------------------------------

// Scalars of the code around `op` that code in `region` reads and whose gradients are wanted.
static int captured(const Duals *d, const Op *op, const Region *region, Value **list, int n,
                    int max)
{
	for (const Op *o = region->first->first; o; o = o->next) {
		for (int i = 0; i < o->noperand; i++) {
			Value *v = o->operands[i].value;
			bool have = !v || v->type->kind != TY_SCALAR || !duals_wanted(d, v) ||
			            value_is_within(v, op);
			for (int k = 0; k < n && !have; k++)
				have = list[k] == v;
			if (!have && n < max)
				list[n++] = v;
		}
		for (int r = 0; r < o->nregion; r++)
			n = captured(d, op, &o->regions[r], list, n, max);
	}
	return n;
}

bool gradient_reduce(Builder *b, Op *reduce, Duals *d)
{
	Value *list[MAX_VARS], *have = duals_get(b, d, op_result(reduce, 0));
	const Attr *extents = op_attr(reduce, "extents");
	Block *body = reduce->regions[0].first;
	int n = captured(d, reduce, &reduce->regions[0], list, 0, MAX_VARS);
	LoadSite none = {0};
	for (int i = 0; i < n; i++) {
		Nest r = reduce_open(b, "sum", list[i]->type->dtype, extents->n, extents->dims);
		if (reduce->noperand)
			op_add_operand(r.op, op_operand(reduce, 0));
		Body y = {.b = &r.b, .s = &none, .map = value_map_new(b->ctx->arena)};
		for (int k = 0; k < body->narg; k++)
			value_map_set(y.map, body->args[k], r.at[k]);
		if (!copy_ops(&y, body))
			return false;
		Op *first = r.b.block->first, *last = r.b.block->last;
		Value *term = value_map_get(y.map, op_operand(body->last, 0));
		Value *dterm = term_gradient(&y, reduce, r.at, op_result(reduce, 0), term, have);
		Duals *inner = duals_new(b->ctx, NULL);
		duals_want(inner, list[i]);
		if (!dterm || !duals_add(&r.b, inner, term, dterm) ||
		    (first && !gradient_ops(&r.b, inner, first, last)))
			return false;
		Value *dv = duals_get(&r.b, inner, list[i]);
		dv = dv ? dv : build_scalar_f(&r.b, list[i]->type->dtype, 0);
		if (!duals_add(b, d, list[i], reduce_close(&r, dv)))
			return false;
	}
	return true;
}

bool gradient_load_or(Builder *b, Op *load, Duals *d)
{
	Value *other = op_operand(load, 1), *have = duals_get(b, d, op_result(load, 0));
	if (!duals_wanted(d, other) || !have)
		return true;
	Value *dv = index_where(b, op_operand(load, 0), build_scalar_f(b, have->type->dtype, 0), have);
	return dv && duals_add(b, d, other, dv);
}
