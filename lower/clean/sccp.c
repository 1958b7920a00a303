// Sparse conditional constant propagation: variables of loops, and results of loops and branches,
// that are one number however the program runs. It is optimistic: a variable is taken for what the
// loop begins with until something that runs says otherwise, and of a branch on what is known only
// the side taken runs. What is found becomes a constant; folding, simplify-if and loop-args do the
// rest.
#include "ir/base/map.h"
#include "ir/build/build.h"
#include "ir/interp/interp.h"
#include "lower/clean/clean.h"
#include "lower/pass/control.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

// Elements of what is followed, and walks through the program after which nothing is said.
enum { MAX_ELEMENTS = 64, MAX_WALKS = 64 };

// Goes from NEVER, where nothing has run, to KNOWN or VARIES, and from KNOWN to VARIES.
typedef enum Knowledge { NEVER, KNOWN, VARIES } Knowledge;

typedef struct State {
	Knowledge kind;
	const Tensor *t;
} State;

typedef struct Sccp {
	Context *ctx;
	Arena *arena;
	PointerMap states; // Value -> State
	bool changed;
} Sccp;

// ---- what is known of values --------------------------------------------------------------------

static State *state_of(Sccp *s, const Value *v)
{
	State *st = (State *)pointer_map_get(&s->states, v);
	if (!st) {
		st = NEW(s->arena, State);
		pointer_map_set(&s->states, v, st);
	}
	return st;
}

static void state_join(Sccp *s, const Value *v, State with)
{
	State *st = state_of(s, v);
	if (with.kind == NEVER || st->kind == VARIES ||
	    (st->kind == KNOWN && with.kind == KNOWN && tensors_equal(st->t, with.t)))
		return;
	*st = st->kind == NEVER ? with : (State){VARIES, NULL};
	s->changed = true;
}

static void value_varies(Sccp *s, const Value *v)
{
	state_join(s, v, (State){VARIES, NULL});
}

static void results_vary(Sccp *s, Op *op)
{
	for (int i = 0; i < op->nresult; i++)
		value_varies(s, op_result(op, i));
}

// ---- operations ---------------------------------------------------------------------------------

static bool is_small(const Type *t)
{
	int64_t n;
	return type_is_tensor(t) && !t->lod && type_const_numel(t, &n) && n <= MAX_ELEMENTS;
}

static bool divides_integers(const Op *op)
{
	const bool divides = op->code == OP_PD_FLOOR_DIVIDE || op->code == OP_PD_REMAINDER ||
	                     op->code == OP_PD_DIVIDE || op->code == OP_PD_ELEMENTWISE_POW;
	return divides && dtype_is_int(op->results[0].type->dtype);
}

static bool attributes_are_numbers(const Op *op)
{
	for (int i = 0; i < op->nattr; i++) {
		const Attr *a = op->attrs[i].attr;
		for (int d = 0; a->kind == ATTR_DIMS && d < a->n; d++)
			if (!dim_is_const(a->dims[d]))
				return false;
	}
	return true;
}

// Whether an operation can be computed of any operands here: no division of whole numbers, which
// may not be what runs.
static bool op_evaluates(const Op *op)
{
	const OpInfo *info = op->info;
	if (op->nresult != 1 || op->nregion || !(info->traits & TRAIT_PURE) ||
	    (info->kind != KIND_MAP && !(info->traits & TRAIT_VIEW)) || info->kind == KIND_BUILTIN)
		return false;
	return is_small(op->results[0].type) && !divides_integers(op) && attributes_are_numbers(op);
}

// What the operation gives of what is known; NULL after a diagnostic.
static const Tensor *op_compute(Sccp *s, Op *op)
{
	Interp *in = interp_new(s->ctx, s->arena);
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i))
			interp_bind(in, op_operand(op, i), (Tensor *)state_of(s, op_operand(op, i))->t);
	return interp_op(in, op) ? interp_value(in, op_result(op, 0)) : NULL;
}

static bool op_visit(Sccp *s, Op *op)
{
	const State *now = op->nresult ? state_of(s, op_result(op, 0)) : NULL;
	if (!now || now->kind == VARIES)
		return true;
	const Tensor *t = op->code == OP_BUILTIN_CONSTANT ? value_constant(op_result(op, 0)) : NULL;
	if (t && is_small(op->results[0].type)) {
		state_join(s, op_result(op, 0), (State){KNOWN, t});
		return true;
	}
	Knowledge of = op_evaluates(op) ? KNOWN : VARIES;
	for (int i = 0; i < op->noperand && of == KNOWN; i++)
		if (op_operand(op, i))
			of = state_of(s, op_operand(op, i))->kind;
	if (of == VARIES)
		results_vary(s, op);
	if (of != KNOWN || now->kind == KNOWN)
		return true;
	if (!(t = op_compute(s, op)))
		return false;
	state_join(s, op_result(op, 0), (State){KNOWN, t});
	return true;
}

// ---- control flow -------------------------------------------------------------------------------

static bool block_visit(Sccp *s, const Block *b);

// The values that `end` gives from operand `first` on go to n others.
static void values_join(Sccp *s, const Op *end, int first, int n, Value *const *to)
{
	for (int i = 0; i < n; i++)
		state_join(s, to[i], *state_of(s, op_operand(end, first + i)));
}

// The region that a branch on this number takes.
static int side_taken(const Op *op, int64_t v)
{
	const Attr *cases = op_attr(op, "cases");
	int i = 0;
	if (op->code != OP_PD_CASE)
		return !v;
	while (i < cases->n && cases->ints[i] != v)
		i++;
	return i;
}

static Value *const *results_of(Op *op)
{
	Value **list = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult + 1, Value *);
	for (int i = 0; i < op->nresult; i++)
		list[i] = op_result(op, i);
	return list;
}

static bool branch_visit(Sccp *s, Op *op)
{
	const State *of = state_of(s, op_operand(op, 0));
	Value *const *results = results_of(op);
	for (int r = 0; r < op->nregion && of->kind != NEVER; r++) {
		const Block *b = op->regions[r].first;
		if (!b || (of->kind == KNOWN && side_taken(op, tensor_get_i(of->t, 0)) != r))
			continue;
		if (!block_visit(s, b))
			return false;
		if (op->nresult)
			values_join(s, b->last, 0, op->nresult, results);
	}
	return true;
}

static bool loop_visit(Sccp *s, Op *op)
{
	const Block *cond = op->regions[0].first, *body = op->regions[1].first;
	for (int i = 0; i < op->noperand; i++)
		state_join(s, cond->args[i], *state_of(s, op_operand(op, i)));
	if (!block_visit(s, cond))
		return false;
	const State *go = state_of(s, op_operand(cond->last, 0));
	const bool ends = go->kind == VARIES || (go->kind == KNOWN && !tensor_get_i(go->t, 0));
	if (ends)
		values_join(s, cond->last, 1, op->nresult, results_of(op));
	if (go->kind == NEVER || (ends && go->kind == KNOWN))
		return true;
	values_join(s, cond->last, 1, body->narg, body->args);
	if (!block_visit(s, body))
		return false;
	values_join(s, body->last, 0, cond->narg, cond->args);
	return true;
}

// A branch of which one region runs, and does nothing else but give its results.
static bool branch_is_regular(const Op *op)
{
	bool regular = op_is_branch(op) && op->nregion == op_parts(op);
	for (int r = 0; r < op->nregion && regular; r++) {
		const Block *b = op->regions[r].first;
		const Op *end = b ? b->last : NULL;
		const bool gives = end && end->code == OP_CF_YIELD && end->noperand == op->nresult;
		regular = (!b || !b->next) && (gives || !op->nresult);
	}
	return regular;
}

// A loop whose regions pass on as many variables as it has.
static bool loop_is_regular(const Op *op)
{
	const int n = op->noperand;
	if (op->code != OP_PD_WHILE || !control_is_plain(op) || op->nresult != n)
		return false;
	const Block *cond = op->regions[0].first, *body = op->regions[1].first;
	return cond->narg == n && body->narg == n && cond->last->noperand == n + 1 &&
	       body->last->noperand == n;
}

// Regions of which nothing is known but that they may run.
static bool regions_visit(Sccp *s, Op *op)
{
	results_vary(s, op);
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next) {
			for (int i = 0; i < b->narg; i++)
				value_varies(s, b->args[i]);
			if (!block_visit(s, b))
				return false;
		}
	return true;
}

static bool block_visit(Sccp *s, const Block *b)
{
	for (Op *op = b->first; op; op = op->next) {
		bool ok;
		if (op->info->kind != KIND_CONTROL || !op->nregion)
			ok = op_visit(s, op);
		else if (branch_is_regular(op))
			ok = branch_visit(s, op);
		else
			ok = loop_is_regular(op) ? loop_visit(s, op) : regions_visit(s, op);
		if (!ok)
			return false;
	}
	return true;
}

// ---- constants for what is known ----------------------------------------------------------------

static Value *constant_before(Op *op, const Tensor *from, const Type *type)
{
	Builder b = builder_before(op);
	Tensor *t = tensor_new(op->ctx->arena, from->dtype, from->rank, from->dims);
	memcpy(t->data, from->data, tensor_bytes(from));
	Value *v = build_constant(&b, t);
	v->type = type; // equal but for what a constant cannot say
	return v;
}

// Readers of v get a constant in front of `op`, but for the one that `but` is with its operand
// `at`.
static void value_fix(Sccp *s, Op *op, Value *v, const Op *but, int at)
{
	const State *st = pointer_map_get(&s->states, v);
	Value *with = NULL;
	if (!st || st->kind != KNOWN || !is_small(v->type) || !tensor_numel(st->t))
		return;
	for (Use *u = v->uses, *next; u; u = next) {
		next = u->next;
		if (u->user == but && (int)u->index == at)
			continue;
		with = with ? with : constant_before(op, st->t, v->type);
		op_set_operand(u->user, (int)u->index, with);
	}
}

// Operations in the module that the walk came by. What a condition hands on stays the variable, so
// that passes on loops see that it does.
static void region_fix(Sccp *s, Region *r)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next) {
			if (op->info->kind != KIND_CONTROL || !op->nregion)
				continue;
			for (int i = 0; i < op->nregion; i++)
				region_fix(s, &op->regions[i]);
			const bool loop = loop_is_regular(op);
			if (!loop && !branch_is_regular(op))
				continue;
			for (int i = 0; i < op->nresult; i++)
				value_fix(s, op, op_result(op, i), NULL, 0);
			for (int i = 0; i < op->nresult && loop; i++) {
				value_fix(s, op, op->regions[0].first->args[i], op->regions[0].first->last, i + 1);
				value_fix(s, op, op->regions[1].first->args[i], NULL, 0);
			}
		}
}

// Needs: fold, so that what is constant without loops is.
// Keeps: everything; what a run computes is to the bit what the interpreter gives.
// Breaks: nothing. Variables that are one number are dead.
bool pass_sccp(PassContext *p)
{
	Region *r = &p->module->regions[0];
	if (!op_contains(p->module, OP_PD_WHILE) || r->first != r->last)
		return true;
	Sccp s = {.ctx = p->ctx, .arena = arena_scratch(p->ctx->arena), .changed = true};
	bool ok = true;
	pointer_map_init(&s.states, s.arena);
	for (int i = 0; i < MAX_WALKS && s.changed && ok; i++) {
		s.changed = false;
		ok = block_visit(&s, r->first);
	}
	if (ok && !s.changed)
		region_fix(&s, r);
	arena_free(s.arena);
	return ok;
}
