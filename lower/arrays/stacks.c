// Stacks become tensor arrays, one for each value of a group: a push is a write at the end, a pop
// reads the last element and cuts it off. Where groups differ in how many values they have, or of
// which types, each kind has arrays of its own, and one more array says of which kind each group
// is: a pop ends the run where the last one is of another kind. Stacks change in place, arrays are
// values, so loops and branches that push or pop take the arrays along as variables and results.
// Regions `init` disappear: what they made is made in front of the operation.
#include "ir/base/vec.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"
#include "lower/arrays/arrays.h"
#include "lower/arrays/parts.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

// Groups of the same number of values, of the same types and numbers of axes.
typedef struct Group {
	int first, n; // its arrays
} Group;

typedef struct Stack {
	const Value *value; // what cf.create_stack gave
	int nkind, kind_room;
	Group *kinds; // [nkind]
	int n, room;  // arrays; the last one says of which kind the groups are, if there are several
	const Type **types; // [n]
	Value **arrays;     // [n]; as they are at the operation at hand; arrays[0] is NULL before it is
	                    // created
} Stack;

typedef struct Stacks {
	PassContext *p;
	Context *ctx;
	Arena *arena;
	int n, room;
	Stack **list;
	int ngroup; // of arrays that are as long as each other
	bool ok;
} Stacks;

// ---- what stacks hold ---------------------------------------------------------------------------

static Stack *stack_find(const Stacks *s, const Value *v)
{
	for (int i = 0; i < s->n; i++)
		if (s->list[i]->value == v)
			return s->list[i];
	return NULL;
}

static bool create_visit(Op *op, void *arg)
{
	Stacks *s = arg;
	if (op->code != OP_CF_CREATE_STACK)
		return true;
	VEC_ROOM(s->arena, s->list, s->n, s->room);
	Stack *k = s->list[s->n++] = NEW(s->arena, Stack);
	k->value = &op->results[0];
	return true;
}

// The type of an array of such elements.
static const Type *array_of(Context *c, const Type *t)
{
	return type_shaped(c, TY_ARRAY, t->dtype, t->rank, t->dims);
}

// A further array of elements of type t.
static void stack_add(Stacks *s, Stack *k, const Type *t)
{
	VEC_ROOM(s->arena, k->types, k->n, k->room);
	k->types[k->n++] = array_of(s->ctx, t);
}

static bool element_fits(const Type *array, const Type *t)
{
	return t->kind == TY_TENSOR && array->dtype == t->dtype && array->rank == t->rank;
}

// The kind of group that op pushes or pops; NULL: none that has been found so far.
static const Group *group_find(const Stack *k, const Op *op)
{
	const bool pops = op->code == OP_CF_POP_BACK;
	const int n = pops ? op->nresult : op->noperand - 1;
	for (int g = 0; g < k->nkind; g++) {
		bool fits = k->kinds[g].n == n;
		for (int i = 0; i < n && fits; i++)
			fits = element_fits(k->types[k->kinds[g].first + i],
			                    pops ? op->results[i].type : op_operand(op, 1 + i)->type);
		if (fits)
			return &k->kinds[g];
	}
	return NULL;
}

static bool push_visit(Op *op, void *arg)
{
	Stacks *s = arg;
	Stack *k = op->code == OP_CF_PUSH_BACK ? stack_find(s, op_operand(op, 0)) : NULL;
	if (!k || group_find(k, op))
		return true;
	const int n = op->noperand - 1;
	bool fits = n > 0;
	for (int i = 0; i < n; i++)
		fits &= op_operand(op, 1 + i)->type->kind == TY_TENSOR;
	if (!fits) {
		s->ok = op_error(op, "a stack of anything but tensors cannot be compiled");
		return true;
	}
	VEC_ROOM(s->arena, k->kinds, k->nkind, k->kind_room);
	k->kinds[k->nkind++] = (Group){k->n, n};
	for (int i = 0; i < n; i++)
		stack_add(s, k, op_operand(op, 1 + i)->type);
	return true;
}

// All pushes are known.
static void stack_settle(Stacks *s, Stack *k)
{
	const Dim *one = dim_const(s->ctx, 1);
	if (k->nkind > 1)
		stack_add(s, k, type_tensor(s->ctx, DT_I64, 1, &one, 0));
	if (!k->nkind) // nobody pushes: it is empty
		stack_add(s, k, type_shaped(s->ctx, TY_TENSOR, DT_BOOL, 0, NULL));
	k->arrays = NEW_ARRAY(s->arena, (size_t)k->n, Value *);
}

// ---- operations ---------------------------------------------------------------------------------

static Value *array_op(Op *where, enum OpCode code, const Type *t, Value *array, Value *i, Value *x)
{
	Value *const operands[] = {array, i, x};
	Op *op = op_new(where->ctx, code, where->loc, 1, &t,
	                x       ? 3
	                : i     ? 2
	                : array ? 1
	                        : 0,
	                operands, 0, 0);
	op_insert_before(where, op);
	return &op->results[0];
}

static Value *whole(Builder *b, int64_t v)
{
	Tensor *t = tensor_new(b->ctx->arena, DT_I64, 1, (const int64_t[]){1});
	tensor_set_i(t, 0, v);
	return build_constant(b, t);
}

// Writes x behind the last element of array number i.
static void array_push(Op *op, Stack *k, int i, Value *x)
{
	Builder b = builder_before(op);
	Value *length = build1(&b, OP_PD_ARRAY_LENGTH, k->arrays[i], NULL);
	k->arrays[i] = array_op(op, OP_PD_ARRAY_WRITE, k->types[i], k->arrays[i], length, x);
	k->arrays[i]->name = k->value->name;
}

// Takes the last element, of type t, off array number i.
static Value *array_pop(Op *op, Stack *k, int i, const Type *t)
{
	Builder b = builder_before(op);
	Value *length = build1(&b, OP_PD_ARRAY_LENGTH, k->arrays[i], NULL);
	Value *last = length ? tensor_sub(&b, length, whole(&b, 1)) : NULL;
	if (!last)
		return NULL;
	Value *x = array_op(op, OP_PD_ARRAY_READ, t, k->arrays[i], last, NULL);
	k->arrays[i] = array_op(op, OP_PD_ARRAY_SLICE, k->types[i], k->arrays[i], whole(&b, 0), last);
	k->arrays[i]->name = k->value->name;
	return x;
}

static void push_rewrite(Op *op, Stack *k)
{
	const Group *g = group_find(k, op);
	Builder b = builder_before(op);
	for (int i = 0; i < g->n; i++)
		array_push(op, k, g->first + i, op_operand(op, 1 + i));
	if (k->nkind > 1)
		array_push(op, k, k->n - 1, whole(&b, g - k->kinds));
}

// Ends the run where the group on top is of another kind.
static bool kind_check(Op *op, Stack *k, const Group *g)
{
	Builder b = builder_before(op);
	Value *want = whole(&b, g - k->kinds), *have = array_pop(op, k, k->n - 1, want->type);
	Value *same = have ? build2(&b, OP_PD_EQUAL, have, want, NULL) : NULL;
	return build_assert(&b, same, "what was pushed last is of other types");
}

static bool pop_rewrite(Op *op, Stack *k)
{
	const Group *g = group_find(k, op);
	if (!g)
		return op_error(op, "nothing like what is popped is ever pushed on this stack");
	if (k->nkind > 1 && !kind_check(op, k, g))
		return false;
	for (int i = 0; i < g->n; i++) {
		Value *x = array_pop(op, k, g->first + i, op->results[i].type);
		if (!x)
			return false;
		x->name = op->results[i].name;
		value_replace(&op->results[i], x);
	}
	return true;
}

static bool empty_rewrite(Op *op, Stack *k)
{
	Builder b = builder_before(op);
	Value *length = build1(&b, OP_PD_ARRAY_LENGTH, k->arrays[k->n - 1], NULL);
	Value *none = length ? build2(&b, OP_PD_EQUAL, length, whole(&b, 0), NULL) : NULL;
	Value *v = none ? tensor_reshape(&b, none, op->results[0].type->rank, op->results[0].type->dims)
	                : NULL;
	if (v)
		value_replace(&op->results[0], v);
	return v != NULL;
}

static void create_rewrite(Stacks *s, Op *op, Stack *k)
{
	for (int i = 0, kind = 0; i < k->n; i++) {
		k->arrays[i] = array_op(op, OP_PD_CREATE_ARRAY, k->types[i], NULL, NULL, NULL);
		k->arrays[i]->name = k->value->name;
		while (kind < k->nkind && i >= k->kinds[kind].first + k->kinds[kind].n)
			kind++;
		op_set_attr(k->arrays[i]->def, "group", attr_int(s->ctx, s->ngroup + kind));
	}
	s->ngroup += k->nkind + 1;
}

static bool stack_op_rewrite(Stacks *s, Op *op)
{
	Stack *k = stack_find(s, op->code == OP_CF_CREATE_STACK ? &op->results[0] : op_operand(op, 0));
	bool ok = k && (k->nkind || op->code == OP_CF_CREATE_STACK || op->code == OP_CF_IS_EMPTY);
	if (!ok)
		return op_error(op, "nothing is ever pushed on this stack");
	if (op->code == OP_CF_CREATE_STACK) {
		create_rewrite(s, op, k);
		return true;
	}
	if (op->code == OP_CF_PUSH_BACK)
		push_rewrite(op, k);
	else
		ok = op->code == OP_CF_POP_BACK ? pop_rewrite(op, k) : empty_rewrite(op, k);
	if (ok)
		op_erase(op);
	return ok;
}

// ---- control flow -------------------------------------------------------------------------------

typedef struct Changes {
	Stacks *s;
	bool *changed; // [s->n]
} Changes;

static bool changes_visit(Op *op, void *arg)
{
	Changes *c = arg;
	for (int i = 0; i < c->s->n && (op->code == OP_CF_PUSH_BACK || op->code == OP_CF_POP_BACK); i++)
		if (c->s->list[i]->value == op_operand(op, 0) && c->s->list[i]->arrays[0])
			c->changed[i] = true;
	return true;
}

static bool region_rewrite(Stacks *s, Region *r, int depth);

// The arrays of the stacks that change, in order; `with` (NULL: none) gives new ones.
static int arrays_list(Stacks *s, const bool *changed, Value **list, Value *const *with)
{
	int n = 0;
	for (int i = 0; i < s->n; i++)
		for (int m = 0; changed[i] && m < s->list[i]->n; m++, n++) {
			if (with)
				s->list[i]->arrays[m] = with[n];
			list[n] = s->list[i]->arrays[m];
		}
	return n;
}

static bool body_rewrite(Stacks *s, Op *op, int r, const bool *changed, int n, Value *const *before,
                         int depth)
{
	Region *region = &op->regions[r];
	Block *b = region->first ? region->first : block_new(s->ctx, region);
	Value **list = NEW_ARRAY(s->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		list[i] = op->code == OP_PD_WHILE ? block_add_arg(s->ctx, b, before[i]->type) : before[i];
		list[i]->name = before[i]->name;
	}
	arrays_list(s, changed, list, list);
	if (!region_end(op, r))
		op_append(b, op_new(s->ctx, OP_CF_YIELD, op->loc, 0, NULL, 0, NULL, 0, 0));
	if (!region_rewrite(s, region, depth + 1))
		return false;
	arrays_list(s, changed, list, NULL);
	for (int i = 0; i < n; i++)
		op_add_operand(b->last, list[i]);
	return true;
}

static bool control_rewrite(Stacks *s, Op *op, int depth)
{
	bool *changed = NEW_ARRAY(s->arena, (size_t)s->n + 1, bool);
	Changes c = {s, changed};
	op_walk(op, changes_visit, &c);
	int most = 0, n = op->nresult;
	for (int i = 0; i < s->n; i++)
		most += s->list[i]->n;
	Value **before = NEW_ARRAY(s->arena, (size_t)most + 1, Value *);
	int added = arrays_list(s, changed, before, NULL);
	const Type **types = NEW_ARRAY(s->arena, (size_t)(n + added) + 1, const Type *);
	Value **operands = NEW_ARRAY(s->arena, (size_t)(op->noperand + added) + 1, Value *);
	for (int i = 0; i < n; i++)
		types[i] = op->results[i].type;
	for (int i = 0; i < op->noperand; i++)
		operands[i] = op_operand(op, i);
	for (int i = 0; i < added; i++) {
		types[n + i] = before[i]->type;
		operands[op->noperand + i] = before[i];
	}
	int noperand = op->noperand + (op->code == OP_PD_WHILE ? added : 0);
	Op *with = op_remake(op, n + added, types, noperand, operands);
	for (int i = 0; i < n; i++) {
		with->results[i].name = op->results[i].name;
		value_replace(&op->results[i], &with->results[i]);
	}
	op_erase(op);
	for (int r = 0; r < op_parts(with); r++)
		if (!body_rewrite(s, with, r, changed, added, before, depth))
			return false;
	for (int i = 0; i < added; i++) {
		with->results[n + i].name = before[i]->name;
		before[i] = &with->results[n + i];
	}
	arrays_list(s, changed, before, before);
	return true;
}

static bool region_rewrite(Stacks *s, Region *r, int depth)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			bool ok = true;
			if (op_is_branch(op) || op->code == OP_PD_WHILE)
				ok = control_rewrite(s, op, depth);
			else if (op->noperand && value_is_stack(op_operand(op, 0)) &&
			         op->info->kind == KIND_CONTROL && !(op->info->traits & TRAIT_TERMINATOR))
				ok = stack_op_rewrite(s, op);
			else if (op->code == OP_CF_CREATE_STACK)
				ok = stack_op_rewrite(s, op);
			if (!ok)
				return false;
		}
	return true;
}

static bool clear_visit(Op *op, void *arg)
{
	Stacks *s = arg;
	if (op->code != OP_CF_CREATE_STACK)
		return true;
	if (value_used(&op->results[0]))
		s->ok = op_error(op, "this use of a stack cannot be compiled");
	else
		op_erase(op);
	return true;
}

static bool has_stack_visit(Op *op, void *arg)
{
	(void)arg;
	return op->code != OP_CF_CREATE_STACK;
}

// Needs: structured control flow (before flatten).
// Keeps: what is pushed and popped, each value once; operations of pd.
// Breaks: nothing; no stack and no region `init` is left.
bool pass_stacks(PassContext *p)
{
	if (op_walk(p->module, has_stack_visit, NULL))
		return true;
	Arena *arena = arena_scratch(p->ctx->arena);
	Stacks s = {.p = p, .ctx = p->ctx, .arena = arena, .ok = true};
	Region *r = &p->module->regions[0];
	bool ok = stacks_resolve(r);
	if (ok) {
		op_walk(p->module, create_visit, &s);
		for (int i = 0; i < s.n; i++)
			stack_narrow(s.list[i]->value->def, arena);
		op_walk(p->module, push_visit, &s);
		for (int i = 0; i < s.n; i++)
			stack_settle(&s, s.list[i]);
		ok = s.ok && region_rewrite(&s, r, 0);
	}
	if (ok)
		op_walk(p->module, clear_visit, &s);
	arena_free(arena);
	return ok && s.ok;
}
