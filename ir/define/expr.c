// Builds operations from the expressions of the operator table: scalar definitions, gradients and
// compositions (ExprDef). With scalar operands it makes scalar operations for a loop region, down
// to the primitive maps; with tensors it makes tensor operations. Also what an operation means,
// whatever its entry has for that (op_define): for lowering and for the interpreter.
//
// Numbers stay numbers as long as they meet only numbers; a number gets an element type, and
// becomes a constant, when it meets a value. So attributes select branches (`approximate ? a : b`)
// at no cost.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/define/define.h"
#include "ir/text/text.h"

#include <math.h>
#include <string.h>

enum { MAX_ARGS = 64, MAX_DEFINITIONS = 16 };

// What a node of an expression stands for.
typedef struct Term {
	enum { TERM_NONE, TERM_VALUE, TERM_NUMBER, TERM_ATTR } kind;
	Value *value;
	double number;
	bool is_int;
	const Attr *attr;
} Term;

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

static Term number_term(double v, bool is_int)
{
	return (Term){.kind = TERM_NUMBER, .number = v, .is_int = is_int};
}

static Term attr_term(const Attr *a)
{
	switch (a->kind) {
	case ATTR_FLOAT: return number_term(a->f, false);
	case ATTR_INT:
	case ATTR_BOOL: return number_term((double)a->i, true);
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
		*out = number_term(name[0] == 't', true);
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

static bool fold_binary(enum OpCode code, const Term *a, const Term *b, Term *out)
{
	double x = a->number, y = b->number;
	bool ints = a->is_int && b->is_int;
	switch (code) {
	case OP_PD_ADD: *out = number_term(x + y, ints); return true;
	case OP_PD_SUBTRACT: *out = number_term(x - y, ints); return true;
	case OP_PD_MULTIPLY: *out = number_term(x * y, ints); return true;
	case OP_PD_DIVIDE: *out = number_term(x / y, false); return !ints;
	case OP_PD_LESS_THAN: *out = number_term(x < y, true); return true;
	case OP_PD_LESS_EQUAL: *out = number_term(x <= y, true); return true;
	case OP_PD_GREATER_THAN: *out = number_term(x > y, true); return true;
	case OP_PD_GREATER_EQUAL: *out = number_term(x >= y, true); return true;
	case OP_PD_EQUAL: *out = number_term(x == y, true); return true;
	case OP_PD_NOT_EQUAL: *out = number_term(x != y, true); return true;
	default: return false;
	}
}

static bool fold_unary(enum OpCode code, const Term *a, Term *out)
{
	switch (code) {
	case OP_PD_NEGATIVE: *out = number_term(-a->number, a->is_int); return true;
	case OP_PD_LOGICAL_NOT: *out = number_term(a->number == 0, true); return true;
	case OP_PD_SQRT: *out = number_term(sqrt(a->number), false); return true;
	default: return false;
	}
}

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

// A call on numbers alone, or a comparison of other attributes. False: not folded.
static bool fold_call(const Expr *x, const Term *args, Term *out)
{
	bool numbers = true, attrs = true;
	for (int i = 0; i < x->nargs; i++) {
		numbers &= args[i].kind == TERM_NUMBER;
		attrs &= args[i].kind == TERM_ATTR;
	}
	if (x->code == OP_PD_CAST && x->nargs > 0 &&
	    args[0].kind == TERM_NUMBER) { // takes the type of what it meets
		*out = args[0];
		return true;
	}
	if (attrs && x->nargs == 2 && (x->code == OP_PD_EQUAL || x->code == OP_PD_NOT_EQUAL)) {
		*out = number_term((args[0].attr == args[1].attr) == (x->code == OP_PD_EQUAL), true);
		return true;
	}
	if (!numbers)
		return false;
	return (x->nargs == 2 && fold_binary(x->code, &args[0], &args[1], out)) ||
	       (x->nargs == 1 && fold_unary(x->code, &args[0], out));
}

// x * 1, and x + 0 of whole numbers (of others it would lose the sign of zero).
static bool drop_neutral(const Expr *x, const Term *args, Term *out)
{
	for (int i = 0; i < 2 && x->nargs == 2; i++) {
		const Term *v = &args[i], *number = &args[1 - i];
		if (v->kind != TERM_VALUE || number->kind != TERM_NUMBER)
			continue;
		const Type *t = v->value->type;
		bool whole = t->kind == TY_INDEX || dtype_is_int(t->dtype);
		if ((x->code == OP_PD_MULTIPLY && number->number == 1 &&
		     (whole || dtype_is_float(t->dtype))) ||
		    (x->code == OP_PD_ADD && number->number == 0 && whole)) {
			*out = *v;
			return true;
		}
	}
	return false;
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

static const Attr *call_find_attr(const Call *call, const char *name)
{
	for (int i = 0; i < call->nattr; i++)
		if (!strcmp(call->attrs[i].name, name))
			return call->attrs[i].attr;
	return NULL;
}

// What a definition of `info` sees: operands, and attributes (default when not set) unless
// overridden.
static int make_env(Context *c, const OpInfo *info, int noperand, Value *const *operands,
                    const Call *call, const Op *op, EnvEntry *env)
{
	int n = 0;
	for (int i = 0; i < info->noperand; i++)
		env[n++] = (EnvEntry){info->operands[i].name, i < noperand ? operands[i] : NULL, NULL};
	for (int i = 0; i < info->nattr; i++) {
		const AttrInfo *a = &info->attrs[i];
		int over = a->operand ? op_info_operand(info, a->operand) : -1;
		Value *value = over >= 0 && over < noperand ? operands[over] : NULL;
		const Attr *attr = op ? op_attr(op, a->name) : call_find_attr(call, a->name);
		if (!attr && a->fallback)
			attr = attr_parse(c, a->kind, a->fallback);
		env[n++] = (EnvEntry){a->name, value, value ? NULL : attr};
	}
	return n;
}

// A map that is no primitive, on scalars: its own definition in its place.
static Value *call_expand(Eval *e, const Call *call, Value *const *values)
{
	const OpInfo *info = call->info;
	EnvEntry *env = NEW_ARRAY(e->b->ctx->arena, (size_t)(info->noperand + info->nattr) + 1,
	                          EnvEntry);
	int n = make_env(e->b->ctx, info, call->noperand, values, call, NULL, env);
	return build_expr_at(e->b, info->scalar, n, env, e->depth + 1);
}

static bool is_element(const Value *v)
{
	return v && type_is_scalar(v->type);
}

static Value *build_call(Eval *e, const Call *call, Value *const *values)
{
	if (call->info->code == OP_PD_CAST) {
		const Attr *to = call_find_attr(call, "dtype");
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
	if (fold_call(x, args, out) || drop_neutral(x, args, out))
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
		case EX_NUMBER: *memo = number_term(x->number, x->is_int); break;
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

int op_env(const Op *op, const EnvEntry **out)
{
	EnvEntry *env = NEW_ARRAY(op->ctx->arena, (size_t)(op->info->noperand + op->info->nattr) + 1,
	                          EnvEntry);
	Value **operands = NEW_ARRAY(op->ctx->arena, (size_t)op->noperand + 1, Value *);
	for (int i = 0; i < op->noperand; i++)
		operands[i] = op_operand(op, i);
	*out = env;
	return make_env(op->ctx, op->info, op->noperand, operands, NULL, op, env);
}

Value *build_map_scalar(Builder *b, const Op *op, Value *const *x)
{
	const OpInfo *info = op->info;
	if (info->scalar) {
		EnvEntry *env = NEW_ARRAY(b->ctx->arena, (size_t)(info->noperand + info->nattr) + 1,
		                          EnvEntry);
		return build_expr(b, info->scalar, make_env(b->ctx, info, op->noperand, x, NULL, op, env),
		                  env);
	}
	Op *element = build_op(b, op->code, op->noperand, x, op->nattr, op->attrs);
	return element ? op_result(element, 0) : NULL;
}

// The element of `tensor` that meets position `at` of a result, under broadcasting aligned at the
// last axis.
static Value *load_broadcast(Nest *n, Value *tensor, const Type *result)
{
	Value *at[MAX_RANK];
	const Type *t = tensor->type;
	for (int d = 0; d < t->rank; d++) {
		int to = result->rank - t->rank + d;
		if (dim_is(t->dims[d], 1) || to < 0)
			at[d] = index_const(&n->b, 0);
		else if (t->dims[d] == result->dims[to])
			at[d] = n->at[to];
		else // sizes that inference could not tell apart: this one is the result's, or 1
			at[d] = index_min(
				&n->b, n->at[to],
				index_dim(&n->b, dim_sub(n->b.ctx, t->dims[d], dim_const(n->b.ctx, 1))));
	}
	return load(&n->b, tensor, at);
}

static bool define_map(Builder *b, Op *op, Value **results)
{
	const Type *type = op->results[0].type;
	Value **elements = NEW_ARRAY(b->ctx->arena, (size_t)op->noperand + 1, Value *);
	Nest n = nest_open(b, type);
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		if (v && !(elements[i] = load_broadcast(&n, v, type)))
			return false;
	}
	Value *element = build_map_scalar(&n.b, op, elements);
	results[0] = element ? nest_close(&n, element) : NULL;
	return results[0] != NULL;
}

// A composition of several results: the statements that are named after them.
static bool build_results(Builder *b, const Op *op, int nenv, const EnvEntry *env, Value **results)
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

static bool define_by_entry(Builder *b, Op *op, Value **results)
{
	const OpInfo *info = op->info;
	const EnvEntry *env;
	if (op_functions(op)->define)
		return op_functions(op)->define(b, op, results);
	if (info->compose) {
		int n = op_env(op, &env);
		if (op->nresult > 1)
			return build_results(b, op, n, env, results);
		results[0] = build_expr(b, info->compose, n, env);
		return results[0] != NULL;
	}
	if (op->nresult == 1 && (info->scalar || (info->traits & TRAIT_PRIMITIVE)))
		return define_map(b, op, results);
	return op_error(op, "the operator has no definition");
}

// A definition that gives elements of another type than inference says would change what the
// program gives: neither is believed.
static bool same_elements(const Op *op, Value *const *results)
{
	for (int i = 0; i < op->nresult; i++) {
		const Type *want = op->results[i].type, *have = results[i] ? results[i]->type : NULL;
		if (!want || !have || !type_is_tensor(want) || !type_is_tensor(have))
			continue;
		if (want->dtype != have->dtype)
			return op_error(op, "the definition gives %s, not %s", type_text(op->ctx, have),
			                type_text(op->ctx, want));
	}
	return true;
}

bool op_define(Builder *b, Op *op, Value **results)
{
	return define_by_entry(b, op, results) && same_elements(op, results);
}
