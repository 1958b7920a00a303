// Builds operations from the expressions of the operator table: scalar definitions, gradients and
// compositions (ExprDef). With scalar operands it makes scalar operations for a loop region, down
// to the primitive maps; with tensors it makes tensor operations. define.c calls it for what an
// operation means, gradients for the slopes in the table.
//
// Numbers stay numbers as long as they meet only numbers; a number gets an element type, and
// becomes a constant, when it meets a value. So attributes select branches (`approximate ? a : b`)
// at no cost.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/define/expr.h"
#include "ir/text/text.h"

#include <math.h>
#include <string.h>

enum { MAX_ARGS = 64, MAX_DEFINITIONS = 16 };

typedef struct Eval {
	Builder *b;
	const ExprDef *def;
	int nenv;
	const EnvEntry *env;
	Term *memo;               // [nnode]
	const Type *default_type; // of numbers that meet no value: the first value in env
	int depth;                // of definitions inside definitions
} Eval;

static bool eval_node(Eval *e, int node, Term *out);
static Value *build_expr_at(Builder *b, const ExprDef *def, int nenv, const EnvEntry *env,
                            int depth);

static bool eval_error(const Eval *e, const char *fmt, const char *what)
{
	diag_error(e->b->ctx->diag, e->b->loc, fmt, what);
	return false;
}

static Term attr_term(const Attr *a)
{
	switch (a->kind) {
	case ATTR_FLOAT: return expr_number(a->f, false);
	case ATTR_INT:
	case ATTR_BOOL: return expr_number((double)a->i, true);
	default: return (Term){.kind = TERM_ATTR, .attr = a};
	}
}

// ---- names --------------------------------------------------------------------------------------

static const EnvEntry *find_env(const Eval *e, const char *name, size_t n)
{
	for (int i = 0; i < e->nenv; i++)
		if (!strncmp(e->env[i].name, name, n) && !e->env[i].name[n])
			return &e->env[i];
	return NULL;
}

// The statement that gave `name` its value before `node`, or -1.
static int find_statement(const Eval *e, int node, const char *name, size_t n)
{
	for (int i = e->def->nstmt - 1; i >= 0; i--)
		if (e->def->stmt_nodes[i] < node && !strncmp(e->def->stmt_names[i], name, n) &&
		    !e->def->stmt_names[i][n])
			return e->def->stmt_nodes[i];
	return -1;
}

// `x.dtype`.
static bool eval_dtype(Eval *e, int node, const char *name, size_t n, Term *out)
{
	int statement = find_statement(e, node, name, n);
	const EnvEntry *x = statement < 0 ? find_env(e, name, n) : NULL;
	Term t = {.value = x ? x->value : NULL};
	if (statement >= 0 && !eval_node(e, statement, &t))
		return false;
	if (!t.value)
		return eval_error(e, "'%s' in a definition has no element type", name);
	*out = (Term){.kind = TERM_ATTR, .attr = attr_dtype(e->b->ctx, t.value->type->dtype)};
	return true;
}

static bool eval_name(Eval *e, int node, Term *out)
{
	DType dtype;
	const char *name = e->def->nodes[node].name, *dot = strchr(name, '.');
	if (dot)
		return eval_dtype(e, node, name, (size_t)(dot - name), out);
	int statement = find_statement(e, node, name, strlen(name));
	if (statement >= 0)
		return eval_node(e, statement, out);
	const EnvEntry *x = find_env(e, name, strlen(name));
	if (x && x->value)
		*out = (Term){.kind = TERM_VALUE, .value = x->value};
	else if (x && x->attr)
		*out = attr_term(x->attr);
	else if (!strcmp(name, "true") || !strcmp(name, "false"))
		*out = expr_number(name[0] == 't', true);
	else if (!x && dtype_from_name(name, strlen(name), &dtype))
		*out = (Term){.kind = TERM_ATTR, .attr = attr_dtype(e->b->ctx, dtype)};
	else
		return eval_error(e, "'%s' is needed here, but left out", name);
	return true;
}

// ---- numbers and attributes ---------------------------------------------------------------------

// A number as a scalar or tensor of the element type of `like`.
static Value *number_value(Eval *e, double v, const Type *like)
{
	Context *c = e->b->ctx;
	if (like->kind == TY_INDEX)
		return build(e->b, OP_LOOP_CONSTANT, 0, NULL, "value", attr_int(c, int_from_double(v)),
		             "type", attr_type(c, like), NULL);
	if (!dtype_is_float(like->dtype) && !dtype_is_complex(like->dtype))
		v = like->dtype == DT_BOOL ? v != 0 : trunc(v);
	if (like->kind == TY_SCALAR)
		return build_scalar_f(e->b, like->dtype, v);
	return build_full(e->b, type_tensor(c, like->dtype, 0, NULL, 0), v);
}

static const Attr *list_attr(Eval *e, int n, const Term *terms, bool floats)
{
	int64_t *ints = NEW_ARRAY(e->b->ctx->arena, (size_t)n + 1, int64_t);
	double *f = NEW_ARRAY(e->b->ctx->arena, (size_t)n + 1, double);
	for (int i = 0; i < n; i++) {
		f[i] = terms[i].number;
		ints[i] = int_from_double(terms[i].number);
	}
	return floats ? attr_floats(e->b->ctx, n, f) : attr_ints(e->b->ctx, n, ints);
}

static const Attr *dims_attr(Context *c, const Attr *ints)
{
	const Dim **dims = NEW_ARRAY(c->arena, (size_t)ints->n + 1, const Dim *);
	for (int i = 0; i < ints->n; i++)
		dims[i] = dim_const(c, ints->ints[i]);
	return attr_dims(c, ints->n, dims);
}

// A term as an attribute of the kind that the table says; NULL after a diagnostic.
static const Attr *term_attr(Eval *e, const Term *t, const AttrInfo *info)
{
	Context *c = e->b->ctx;
	if (t->kind == TERM_ATTR && t->attr->kind == ATTR_INTS && info->kind == ATTR_DIMS)
		return dims_attr(c, t->attr);
	if (t->kind == TERM_ATTR)
		return t->attr;
	if (t->kind != TERM_NUMBER) {
		eval_error(e, "attribute '%s' in a definition is no constant", info->name);
		return NULL;
	}
	switch (info->kind) {
	case ATTR_BOOL: return attr_bool(c, t->number != 0);
	case ATTR_INT: return attr_int(c, int_from_double(t->number));
	case ATTR_FLOAT:
		return info->any_number && t->is_int ? attr_int(c, int_from_double(t->number))
		                                     : attr_float(c, t->number);
	case ATTR_INTS: return list_attr(e, 1, t, false);
	case ATTR_FLOATS: return list_attr(e, 1, t, true);
	default: eval_error(e, "attribute '%s' in a definition is no number", info->name); return NULL;
	}
}

static bool eval_list(Eval *e, const Expr *x, Term *out)
{
	Term terms[MAX_ARGS];
	Value *values[MAX_ARGS];
	bool floats = false, numbers = true;
	for (int i = 0; i < x->nargs && i < MAX_ARGS; i++) {
		if (!eval_node(e, x->args[i], &terms[i]))
			return false;
		numbers &= terms[i].kind == TERM_NUMBER;
		floats |= !terms[i].is_int;
		values[i] = terms[i].value;
	}
	if (numbers) {
		*out = (Term){.kind = TERM_ATTR, .attr = list_attr(e, x->nargs, terms, floats)};
		return true;
	}
	for (int i = 0; i < x->nargs; i++)
		if (terms[i].kind != TERM_VALUE)
			return eval_error(e, "a list in a definition mixes values and %s", "attributes");
	*out = (Term){.kind = TERM_VALUE,
	              .value = build(e->b, OP_BUILTIN_COMBINE, x->nargs, values, NULL)};
	return out->value != NULL;
}

// ---- folding ------------------------------------------------------------------------------------

// The lazy ones: `c ? a : b`, `a && b`, `a || b` with a constant first argument. *done says whether
// it was.
static bool eval_lazy(Eval *e, const Expr *x, Term *out, bool *done)
{
	Term first;
	*done = false;
	if (x->code != OP_PD_WHERE && x->code != OP_PD_LOGICAL_AND && x->code != OP_PD_LOGICAL_OR)
		return true;
	if (!eval_node(e, x->args[0], &first))
		return false;
	if (first.kind != TERM_NUMBER)
		return true;
	*done = true;
	bool truth = first.number != 0;
	if (x->code == OP_PD_WHERE)
		return eval_node(e, x->args[truth ? 1 : 2], out);
	if (truth == (x->code == OP_PD_LOGICAL_OR)) {
		*out = first;
		return true;
	}
	return eval_node(e, x->args[1], out);
}

// ---- calls --------------------------------------------------------------------------------------

// A call with its arguments sorted into operands and attributes.
typedef struct Call {
	const OpInfo *info;
	int noperand, nattr;
	Term operands[MAX_ARGS];
	NamedAttr attrs[MAX_ARGS];
} Call;

static bool call_attr(Eval *e, Call *call, const AttrInfo *info, const Term *t)
{
	const Attr *a = term_attr(e, t, info);
	call->attrs[call->nattr++] = (NamedAttr){info->name, a};
	return a != NULL;
}

static bool call_named(Eval *e, Call *call, const char *key, const Term *t)
{
	int operand = op_info_operand(call->info, key);
	if (operand < 0)
		return call_attr(e, call, op_info_attr(call->info, key), t);
	call->operands[operand] = *t;
	if (operand >= call->noperand)
		call->noperand = operand + 1;
	return true;
}

// Positional arguments: values fill the operands in order, numbers the required ones; the others
// are the attributes in order.
static bool sort_arguments(Eval *e, const Expr *x, const Term *args, Call *call)
{
	int next_attr = 0;
	for (int i = 0; i < x->nargs; i++) {
		if (x->keys && x->keys[i]) {
			if (args[i].kind != TERM_NONE && !call_named(e, call, x->keys[i], &args[i]))
				return false;
			continue;
		}
		int at = call->noperand;
		bool repeats = call->info->traits & TRAIT_REPEAT_OPERAND;
		bool required = at < call->info->noperand && !call->info->operands[at].optional;
		bool fits = at < call->info->noperand || repeats;
		if (fits && (args[i].kind == TERM_VALUE || (args[i].kind == TERM_NUMBER && required)))
			call->operands[call->noperand++] = args[i];
		else if (next_attr == call->info->nattr)
			return eval_error(e, "too many arguments for '%s' in a definition", call->info->name);
		else if (!call_attr(e, call, &call->info->attrs[next_attr++], &args[i]))
			return false;
	}
	return true;
}

// Gives the numbers among the operands the type of the values that they meet.
static bool settle_numbers(Eval *e, Call *call, Value **values)
{
	const Type *type = NULL;
	for (int i = 0; i < call->noperand; i++) {
		const Term *t = &call->operands[i];
		bool condition = i < call->info->noperand && call->info->operands[i].klass == CLASS_BOOL;
		if (t->kind == TERM_VALUE && !condition && !type)
			type = t->value->type;
	}
	if (!type)
		type = e->default_type;
	for (int i = 0; i < call->noperand; i++) {
		const Term *t = &call->operands[i];
		if (t->kind == TERM_NUMBER && !type)
			return eval_error(e, "a number for '%s' in a definition has no type", call->info->name);
		values[i] = t->kind == TERM_NUMBER ? number_value(e, t->number, type) : t->value;
		if (!values[i] && t->kind != TERM_NONE)
			return false;
	}
	return true;
}

static const Attr *find_attr(int n, const NamedAttr *attrs, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(attrs[i].name, name))
			return attrs[i].attr;
	return NULL;
}

int expr_env(Context *c, const OpInfo *info, int noperand, Value *const *operands, int nattr,
             const NamedAttr *attrs, const EnvEntry **out)
{
	EnvEntry *env = NEW_ARRAY(c->arena, (size_t)(info->noperand + info->nattr) + 1, EnvEntry);
	int n = 0;
	for (int i = 0; i < info->noperand; i++)
		env[n++] = (EnvEntry){info->operands[i].name, i < noperand ? operands[i] : NULL, NULL};
	for (int i = 0; i < info->nattr; i++) {
		const AttrInfo *a = &info->attrs[i];
		int over = a->operand ? op_info_operand(info, a->operand) : -1;
		Value *value = over >= 0 && over < noperand ? operands[over] : NULL;
		const Attr *attr = find_attr(nattr, attrs, a->name);
		if (!attr && a->fallback)
			attr = attr_parse(c, a->kind, a->fallback);
		env[n++] = (EnvEntry){a->name, value, value ? NULL : attr};
	}
	*out = env;
	return n;
}

// A map that is no primitive, on scalars: its own definition in its place.
static Value *call_expand(Eval *e, const Call *call, Value *const *values)
{
	const EnvEntry *env;
	int n = expr_env(e->b->ctx, call->info, call->noperand, values, call->nattr, call->attrs, &env);
	return build_expr_at(e->b, call->info->scalar, n, env, e->depth + 1);
}

static bool is_element(const Value *v)
{
	return v && type_is_scalar(v->type);
}

static Value *build_call(Eval *e, const Call *call, Value *const *values)
{
	if (call->info->code == OP_PD_CAST) {
		const Attr *to = find_attr(call->nattr, call->attrs, "dtype");
		if (values[0]->type->kind != TY_INDEX && to && (DType)to->i == values[0]->type->dtype)
			return values[0];
	}
	if (call->info->scalar && is_element(values[0]))
		return call_expand(e, call, values);
	Op *op = build_op(e->b, call->info->code, call->noperand, values, call->nattr, call->attrs);
	return op ? op_result(op, 0) : NULL;
}

// `name = y` with a y that the operation was made without: the call is made without it, too.
static bool left_out(const Eval *e, const Expr *call, int arg)
{
	const Expr *y = &e->def->nodes[call->args[arg]];
	if (!call->keys || !call->keys[arg] || y->kind != EX_NAME ||
	    find_statement(e, call->args[arg], y->name, strlen(y->name)) >= 0)
		return false;
	const EnvEntry *x = find_env(e, y->name, strlen(y->name));
	return x && !x->value && !x->attr;
}

static bool eval_call(Eval *e, const Expr *x, Term *out)
{
	Term args[MAX_ARGS] = {{0}};
	Value *values[MAX_ARGS];
	bool done;
	if (x->nargs > MAX_ARGS)
		return eval_error(e, "too many arguments for '%s' in a definition", x->name);
	if (!eval_lazy(e, x, out, &done))
		return false;
	if (done)
		return true;
	for (int i = 0; i < x->nargs; i++)
		if (!left_out(e, x, i) && !eval_node(e, x->args[i], &args[i]))
			return false;
	if (expr_fold(x, args, out) || expr_drop_neutral(x, args, out))
		return true;
	Call *call = NEW(e->b->ctx->arena, Call);
	call->info = &op_table[x->code];
	if (!sort_arguments(e, x, args, call) || !settle_numbers(e, call, values))
		return false;
	*out = (Term){.kind = TERM_VALUE, .value = build_call(e, call, values)};
	return out->value != NULL;
}

static bool eval_node(Eval *e, int node, Term *out)
{
	const Expr *x = &e->def->nodes[node];
	Term *memo = &e->memo[node];
	bool ok = true;
	if (memo->kind == TERM_NONE) {
		switch (x->kind) {
		case EX_NUMBER: *memo = expr_number(x->number, x->is_int); break;
		case EX_NAME: ok = eval_name(e, node, memo); break;
		case EX_STRING:
			*memo = (Term){.kind = TERM_ATTR, .attr = attr_str(e->b->ctx, x->name)};
			break;
		case EX_CALL: ok = eval_call(e, x, memo); break;
		case EX_LIST: ok = eval_list(e, x, memo); break;
		}
	}
	*out = *memo;
	return ok;
}

// ---- entry points -------------------------------------------------------------------------------

static Value *build_expr_at(Builder *b, const ExprDef *def, int nenv, const EnvEntry *env,
                            int depth)
{
	Term out;
	Eval e = {.b = b, .def = def, .nenv = nenv, .env = env, .depth = depth};
	if (depth > MAX_DEFINITIONS) {
		eval_error(&e, "%s are nested too deep: the table must be circular", "definitions");
		return NULL;
	}
	e.memo = NEW_ARRAY(b->ctx->arena, (size_t)def->nnode + 1, Term);
	for (int i = 0; i < nenv && !e.default_type; i++)
		if (env[i].value && env[i].value->type->kind != TY_VEC)
			e.default_type = env[i].value->type;
	if (!eval_node(&e, def->stmt_nodes[def->nstmt - 1], &out))
		return NULL;
	if (out.kind == TERM_NUMBER && e.default_type)
		return number_value(&e, out.number, e.default_type);
	if (out.kind != TERM_VALUE) {
		eval_error(&e, "a definition gives %s", "no value");
		return NULL;
	}
	return out.value;
}

Value *build_expr(Builder *b, const ExprDef *def, int nenv, const EnvEntry *env)
{
	return build_expr_at(b, def, nenv, env, 0);
}

bool expr_results(Builder *b, const Op *op, int nenv, const EnvEntry *env, Value **results)
{
	const ExprDef *def = op->info->compose;
	Eval e = {.b = b, .def = def, .nenv = nenv, .env = env};
	e.memo = NEW_ARRAY(b->ctx->arena, (size_t)def->nnode + 1, Term);
	e.default_type = op->results[0].type;
	for (int i = 0; i < op->nresult; i++) {
		Term t;
		int node = find_statement(&e, def->nnode, op->info->results[i],
		                          strlen(op->info->results[i]));
		if (node < 0)
			return eval_error(&e, "no statement gives '%s'", op->info->results[i]);
		if (!eval_node(&e, node, &t))
			return false;
		if (t.kind != TERM_VALUE)
			return eval_error(&e, "'%s' is no tensor", op->info->results[i]);
		results[i] = t.value;
	}
	return true;
}
