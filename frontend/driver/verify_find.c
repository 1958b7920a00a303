// Where two stages of a program begin to differ: `pdcc verify` calls this once a result is wrong.
// Both stages are made again from the model and run with every value recorded; values are matched
// by the legacy operator and variable that they carry through all passes, the k-th time that one is
// computed with the k-th. Generated code gives no values but its outputs, so there the intermediate
// values become outputs.
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/interp/interp.h"
#include "lower/target/target.h"

#include <string.h>

enum { MAX_EXTRA_FETCHES = 400 };

// ---- values by name -----------------------------------------------------------------------------

typedef struct Event {
	const Value *value;
	const Tensor *tensor;
	int next;  // the next event of the same operator and variable; -1: none
	int round; // which one this is, from 0
} Event;

// What a run computed, in order, and where the first and the last event of each variable are.
typedef struct Trace {
	Arena *arena;
	int n, cap;
	Event *events;
	NameMap first, last; // of each variable, to an index
} Trace;

// The variable and where it was set.
static const char *event_key(const Trace *t, const Value *v)
{
	const Loc *l = v->def->loc;
	return arena_printf(t->arena, "%d %d %d %d %s", l->block, l->op, l->line, l->col, v->name);
}

// The interpreter has computed v.
static void record(void *arg, const Value *v, const Tensor *tensor)
{
	Trace *t = arg;
	if (!v->name || !v->def)
		return;
	VEC_ROOM(t->arena, t->events, t->n, t->cap);
	const char *key = event_key(t, v);
	const int last = pointer_map_index(&t->last, key);
	t->events[t->n] = (Event){.value = v, .tensor = tensor, .next = -1};
	if (last < 0) {
		pointer_map_set_index(&t->first, key, t->n);
	} else {
		t->events[t->n].round = t->events[last].round + 1;
		t->events[last].next = t->n;
	}
	pointer_map_set_index(&t->last, key, t->n++);
}

// What `t` has for an event of another run; NULL: nothing, or something that is not comparable, as
// a blocked layout.
static const Event *counterpart(const Trace *t, const Event *e)
{
	int i = pointer_map_index(&t->first, event_key(t, e->value));
	for (; i >= 0 && t->events[i].round < e->round; i = t->events[i].next)
		;
	const Tensor *a = e->tensor, *b = i < 0 ? NULL : t->events[i].tensor;
	return b && a->dtype == b->dtype && a->rank == b->rank &&
	               !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims)
	           ? &t->events[i]
	           : NULL;
}

// ---- passes -------------------------------------------------------------------------------------

static void report(Driver *d, const Loc *loc, const char *name, int round, const char *stage,
                   const char *why)
{
	const char *where = round ? arena_printf(d->ctx->arena, ", in round %d", round + 1) : "";
	diag_error(d->ctx->diag, loc, "'%s' is the first value that %s changes%s: %s", name, stage,
	           where, why);
}

void verify_find(Driver *d, Op *before, Op *after, const char *stage)
{
	Trace a = {.arena = d->ctx->arena}, b = a;
	name_map_init(&a.first, a.arena);
	name_map_init(&a.last, a.arena);
	name_map_init(&b.first, a.arena);
	name_map_init(&b.last, a.arena);
	if (!verify_interpret(d, before, record, &a) || !verify_interpret(d, after, record, &b))
		return;
	for (int i = 0; i < a.n; i++) {
		const char *why;
		const Event *e = counterpart(&b, &a.events[i]);
		if (!e || tensor_agrees(d, a.events[i].tensor, e->tensor, &why))
			continue;
		report(d, e->value->def->loc, e->value->name, e->round, stage, why);
		return;
	}
	diag_note(d->ctx->diag, NULL, "no value that is there before and after %s differs", stage);
}

// The model once more, through passes. NULL after diagnostics.
static Op *lowered_again(Driver *d, const Target *t, const char *passes)
{
	Op *module = driver_load(d);
	return module && verify_lower(d, module, t, passes) ? module : NULL;
}

void verify_find_pass(Driver *d, const Target *t, const char *before, const char *pass)
{
	Op *a = lowered_again(d, t, before);
	Op *b = lowered_again(d, t,
	                      *before ? arena_printf(d->ctx->arena, "%s,%s", before, pass) : pass);
	if (a && b)
		verify_find(d, a, b, arena_printf(d->ctx->arena, "pass '%s'", pass));
}

// ---- generated code -----------------------------------------------------------------------------

static bool is_plain(const Value *v)
{
	if (!v->name || !value_used(v) || v->type->kind != TY_TENSOR ||
	    dtype_is_complex(v->type->dtype))
		return false;
	for (int i = 0; i < v->type->rank; i++)
		if (v->type->dims[i]->kind == DIM_SYM && v->type->dims[i]->bounded)
			return false;
	return true;
}

// Adds a fetch for every value outside of loops and branches; they get columns from `col` on.
// Returns how many.
static int fetches_add(Context *c, Op *module, int col, const Value **values)
{
	int n = 0;
	for (Op *op = module_block(module)->first, *next; op; op = next) {
		next = op->next;
		if (op->code == OP_PD_FEED || (op->info->traits & TRAIT_CONSTANT))
			continue;
		for (int i = 0; i < op->nresult && n < MAX_EXTRA_FETCHES; i++) {
			Value *v = &op->results[i];
			if (!is_plain(v))
				continue;
			Op *fetch = op_new(c, OP_PD_FETCH, op->loc, 0, NULL, 1, &v, 0, 0);
			op_set_attr(fetch, "col", attr_int(c, col + n));
			op_set_attr(fetch, "name", attr_str(c, arena_printf(c->arena, "value%d", n)));
			op_append(module_block(module), fetch);
			values[n++] = v;
		}
	}
	return n;
}

static int columns(Op *module)
{
	int n = 0;
	for (const Op *op = module_block(module)->first; op; op = op->next)
		if (op->code == OP_PD_FETCH && op_int(op, "col", 0) >= n)
			n = (int)op_int(op, "col", 0) + 1;
	return n;
}

// What a value was called and where it came from, before passes change the operation.
typedef struct Origin {
	const Loc *loc;
	const char *name;
} Origin;

void verify_find_code(Driver *d, const Target *t)
{
	Context *c = d->ctx;
	const Value **values = NEW_ARRAY(c->arena, MAX_EXTRA_FETCHES, const Value *);
	Origin *origins = NEW_ARRAY(c->arena, MAX_EXTRA_FETCHES, Origin);
	Op *module = driver_load(d);
	if (!module)
		return;
	int col = columns(module), n = fetches_add(c, module, col, values);
	for (int i = 0; i < n; i++)
		origins[i] = (Origin){values[i]->def->loc, values[i]->name};
	Interp *want = verify_interpret(d, module, NULL, NULL);
	BuiltModel b;
	if (!want || !driver_lower(d, module, t, NULL) || !model_build(d, module, t, NULL, &b) ||
	    !model_execute(d, &b, b.folder))
		return;
	for (int i = 0; i < n; i++) {
		const char *why;
		const Tensor *have = npy_read(c, arena_printf(c->arena, "%s/0/%d.npy", b.folder, col + i));
		if (!have || tensor_agrees(d, interp_fetch(want, col + i), have, &why))
			continue;
		report(d, origins[i].loc, origins[i].name, 0, "generated code", why);
		return;
	}
	diag_note(c->diag, NULL, "with all values as outputs too, generated code changes none");
}
