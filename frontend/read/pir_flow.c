// Branches and loops of Paddle 3's programs, as the blocks that legacy programs have: what a region
// yields is assigned to variables of the block around it.
//
// `1.pylayer` has one region, and `1.if` two, that yield the results. `1.while` has one, whose
// arguments are the loop variables and which yields whether to go on and the next values; the first
// condition is its first operand.
#include "frontend/read/pir.h"

#include <string.h>

static json_object *region_at(PirReader *r, json_object *op, size_t i)
{
	json_object *list = pir_get(op, "regions", json_type_array);
	json_object *one = list && i < json_object_array_length(list)
	                       ? json_object_array_get_idx(list, i)
	                       : NULL;
	if (!one) // a null, too
		pir_fail(r, "has no region %zu", i);
	return one;
}

static void add_block(PirReader *r, Paddle__OpDesc *d, const PirBlock *b)
{
	Paddle__OpAttr *a = pir_attr_new(r, "sub_block", PADDLE__ATTR_KIND__BLOCK);
	a->has_block_idx = 1;
	a->block_idx = b->desc->idx;
	pir_add_attr(r, d, a);
}

// The variable that entry i of a list of operands is in; NULL after a diagnostic.
static char **operand_var(PirReader *r, json_object *op, size_t i)
{
	int64_t id = 0;
	PirValue *v = pir_id(pir_get(op, "I", json_type_array), i, &id) ? pir_value(r, id) : NULL;
	if (v && !v->vec)
		return v->vars;
	pir_fail(r, "operand %zu is no tensor", i);
	return NULL;
}

// Declares a variable for each result of an operation and binds them.
static PirValue *result_vars(PirReader *r, PirBlock *b, json_object *op, const char *stem,
                             size_t *n)
{
	json_object *out = pir_get(op, "O", json_type_array);
	*n = out ? json_object_array_length(out) : 0;
	PirValue *v = NEW_ARRAY(r->c->arena, *n + 1, PirValue);
	for (size_t i = 0; i < *n; i++) {
		json_object *tt = NULL;
		int64_t id;
		json_object_object_get_ex(json_object_array_get_idx(out, i), "TT", &tt);
		if (!pir_id(out, i, &id) || !pir_types(r, tt, &v[i]) || v[i].vec) {
			pir_fail(r, "result %zu is no tensor", i);
			return NULL;
		}
		pir_declare(r, b, arena_printf(r->c->arena, "%s.tmp_%zu", stem, i), &v[i]);
		b->desc->vars[b->desc->n_vars - 1]->has_stop_gradient = 1;
		b->desc->vars[b->desc->n_vars - 1]->stop_gradient = pir_stops_gradient(op, i);
		pir_bind(r, id, &v[i]);
	}
	return v;
}

// ---- pylayer, if --------------------------------------------------------------------------------

// Region k as the block `inner`, which writes what it yields to the n results.
static bool read_region(PirReader *r, PirBlock *inner, json_object *op, size_t k, size_t n,
                        PirValue *results)
{
	json_object *region = region_at(r, op, k), *yield;
	if (!region || !pir_region(r, inner, region, &yield))
		return false;
	for (size_t i = 0; i < n; i++) {
		char **var = yield ? operand_var(r, yield, i) : NULL;
		if (!var)
			return pir_fail(r, "region %zu does not yield result %zu", k, i);
		pir_assign(r, inner, *var, results[i].vars[0]);
	}
	return true;
}

bool pir_pylayer(PirReader *r, PirBlock *b, json_object *op)
{
	size_t n;
	PirValue *results = result_vars(r, b, op, pir_stem(r, "pylayer"), &n);
	PirBlock inner = pir_block_new(r, b->desc->idx);
	if (!results || !read_region(r, &inner, op, 0, n, results))
		return false;
	Paddle__OpDesc *d = pir_append(r, b, "pd_op.pylayer");
	add_block(r, d, &inner);
	for (size_t i = 0; i < n; i++)
		pir_output(r, d, "Out", 1, results[i].vars);
	return true;
}

static bool branch(PirReader *r, PirBlock *b, json_object *op, size_t k, char **cond, size_t n,
                   PirValue *results)
{
	PirBlock inner = pir_block_new(r, b->desc->idx);
	if (!read_region(r, &inner, op, k, n, results))
		return false;
	Paddle__OpDesc *d = pir_append(r, b, "pd_op.if");
	Paddle__OpAttr *scalar = pir_attr_new(r, "is_scalar_condition", PADDLE__ATTR_KIND__BOOLEAN);
	scalar->has_b = scalar->b = 1;
	pir_input(r, d, "Cond", 1, cond);
	pir_add_attr(r, d, scalar);
	add_block(r, d, &inner);
	for (size_t i = 0; i < n; i++)
		pir_output(r, d, "Out", 1, results[i].vars);
	return true;
}

bool pir_if(PirReader *r, PirBlock *b, json_object *op)
{
	size_t n;
	const char *stem = pir_stem(r, "if");
	char **cond = operand_var(r, op, 0), **other = NEW(r->c->arena, char *);
	PirValue *results = cond ? result_vars(r, b, op, stem, &n) : NULL;
	if (!results || !branch(r, b, op, 0, cond, n, results))
		return false;
	PirValue negated = {.n = 1, .vars = other, .types = NEW(r->c->arena, Paddle__VarType *)};
	pir_declare(r, b, arena_printf(r->c->arena, "%s.otherwise", stem), &negated);
	Paddle__OpDesc *d = pir_append(r, b, "pd_op.logical_not");
	pir_input(r, d, "x", 1, cond);
	pir_output(r, d, "out", 1, other);
	return branch(r, b, op, 1, other, n, results);
}

// ---- while --------------------------------------------------------------------------------------

// Arguments of the body are the loop variables themselves.
static bool bind_args(PirReader *r, json_object *region, size_t n, PirValue *vars)
{
	json_object *blocks = pir_get(region, "blocks", json_type_array);
	json_object *args = blocks
	                        ? pir_get(json_object_array_get_idx(blocks, 0), "args", json_type_array)
	                        : NULL;
	if (!args || json_object_array_length(args) != n)
		return pir_fail(r, "its body must have %zu arguments", n);
	for (size_t i = 0; i < n; i++) {
		int64_t id;
		if (!pir_int(json_object_array_get_idx(args, i), "#", &id))
			return pir_fail(r, "argument %zu of its body has no number", i);
		pir_bind(r, id, &vars[i]);
	}
	return true;
}

static bool is_loop_var(size_t n, const PirValue *vars, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(vars[i].vars[0], name) == 0)
			return true;
	return false;
}

// The next values, all at once: one that is another loop variable is kept before that one changes.
static bool next_round(PirReader *r, PirBlock *b, json_object *yield, char *cond, size_t n,
                       PirValue *vars, const char *stem)
{
	char **next = NEW_ARRAY(r->c->arena, n + 1, char *);
	for (size_t i = 0; i <= n; i++) {
		char **var = operand_var(r, yield, i);
		if (!var)
			return false;
		next[i] = *var;
		if (i == 0 || strcmp(*var, vars[i - 1].vars[0]) == 0 || !is_loop_var(n, vars, *var))
			continue;
		PirValue kept = {.n = 1, .vars = &next[i], .types = vars[i - 1].types};
		pir_declare(r, b, arena_printf(r->c->arena, "%s.next_%zu", stem, i - 1), &kept);
		pir_assign(r, b, *var, next[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (strcmp(next[i + 1], vars[i].vars[0]) != 0)
			pir_assign(r, b, next[i + 1], vars[i].vars[0]);
	pir_assign(r, b, next[0], cond);
	return true;
}

bool pir_while(PirReader *r, PirBlock *b, json_object *op)
{
	size_t n;
	const char *stem = pir_stem(r, "while");
	json_object *region = region_at(r, op, 0), *yield;
	PirValue *vars = region ? result_vars(r, b, op, stem, &n) : NULL;
	PirValue cond = {
		.n = 1, .vars = NEW(r->c->arena, char *), .types = NEW(r->c->arena, Paddle__VarType *)};
	if (!vars)
		return false;
	pir_declare(r, b, arena_printf(r->c->arena, "%s.condition", stem), &cond);
	for (size_t i = 0; i <= n; i++) {
		char **var = operand_var(r, op, i);
		if (!var)
			return false;
		pir_assign(r, b, *var, i ? vars[i - 1].vars[0] : cond.vars[0]);
	}
	PirBlock body = pir_block_new(r, b->desc->idx);
	if (!bind_args(r, region, n, vars) || !pir_region(r, &body, region, &yield))
		return false;
	if (!yield || !next_round(r, &body, yield, cond.vars[0], n, vars, stem))
		return pir_fail(r, "its body does not yield %zu values", n + 1);
	Paddle__OpDesc *d = pir_append(r, b, "pd_op.while");
	pir_input(r, d, "Condition", 1, cond.vars);
	add_block(r, d, &body);
	for (size_t i = 0; i < n; i++)
		pir_output(r, d, "Out", 1, vars[i].vars);
	return true;
}
