// Operators that run a block without asking. recurrent, the step network of old programs: its block
// runs once for every position of axis 0 of the inputs, on the slices there and the states that the
// step before left. Becomes a counted pd.while that fills the outputs step by step. pylayer, and
// the gradient that its author has written: the block runs once, and its operators stand in its
// place.
#include "frontend/control/control.h"
#include "frontend/job/flow.h"
#include "frontend/job/general.h"
#include "ir/build/build.h"
#include "ir/build/nest.h"

#include <string.h>

typedef struct Recurrent {
	OpJob *j;
	int block;
	const Paddle__OpSlot *in, *init, *out;
	int nin, nstate, nout;
	char *const *before, *const *after; // names of the states inside
	Value **x, **first;                 // [nin], [nstate]
	Value *count;
	const Type **out_types; // [nout], once the block was translated; NULL: not yet
} Recurrent;

static bool read_names(OpJob *j, const char *attr, int want, char *const **out)
{
	const Paddle__OpAttr *a = attr_find(j->desc, attr);
	if (want == 0)
		return true;
	if (!a || a->type != PADDLE__ATTR_KIND__STRINGS || (int)a->n_strings != want)
		return job_fail(j, "attribute '%s' must name %d variables", attr, want);
	*out = a->strings;
	return true;
}

static Value **read_all(OpJob *j, const char *name, const Paddle__OpSlot *s, int n)
{
	Value **v = NEW_ARRAY(j->t->c->arena, (size_t)n + 1, Value *);
	for (int i = 0; i < n; i++) {
		v[i] = read_var(j, name, s->arguments[i]);
		if (!v[i])
			return NULL;
		if (!type_is_tensor(v[i]->type)) {
			job_fail(j, "variable '%s' is no tensor", s->arguments[i]);
			return NULL;
		}
	}
	return v;
}

static bool find_inputs(Recurrent *r)
{
	OpJob *j = r->j;
	r->in = slot_find(j->desc->n_inputs, j->desc->inputs, "inputs");
	r->init = slot_find(j->desc->n_inputs, j->desc->inputs, "initial_states");
	r->out = slot_find(j->desc->n_outputs, j->desc->outputs, "outputs");
	r->nin = r->in ? (int)r->in->n_arguments : 0;
	r->nstate = r->init ? (int)r->init->n_arguments : 0;
	r->nout = r->out ? (int)r->out->n_arguments : 0;
	if (!r->nin)
		return job_fail(j, "has no inputs: the number of steps is not known");
	const Paddle__OpAttr *has = attr_find(j->desc, "has_states");
	if (has && has->has_b && !has->b != !r->nstate)
		return job_fail(j, "attribute 'has_states' does not go with %d initial states", r->nstate);
	if (!read_names(j, "ex_states", r->nstate, &r->before) ||
	    !read_names(j, "states", r->nstate, &r->after))
		return false;
	r->x = read_all(j, "inputs", r->in, r->nin);
	r->first = r->x ? read_all(j, "initial_states", r->init, r->nstate) : NULL;
	if (!r->first)
		return false;
	for (int i = 0; i < r->nin; i++)
		if (r->x[i]->type->rank < 1)
			return job_fail(j, "input '%s' has no steps", r->in->arguments[i]);
	r->count = build_size(&j->b, r->x[0], 0);
	return r->count != NULL;
}

// What is carried: the states, and the outputs once their types are known.
static Value **carried(Recurrent *r, int *n)
{
	Context *c = r->j->t->c;
	Value **v = NEW_ARRAY(c->arena, (size_t)(r->nstate + r->nout) + 1, Value *);
	*n = r->nstate;
	for (int i = 0; i < r->nstate; i++)
		v[i] = r->first[i];
	for (int i = 0; r->out_types && i < r->nout; i++) {
		const Type *t = r->out_types[i];
		const Dim *dims[MAX_RANK] = {r->x[0]->type->dims[0]};
		for (int d = 0; d < t->rank; d++)
			dims[d + 1] = t->dims[d];
		v[(*n)++] = build_full(&r->j->b, type_tensor(c, t->dtype, t->rank + 1, dims, 0), 0);
	}
	return v;
}

static void bind(Translator *t, const char *var, Value *v)
{
	Binding *b = write_binding(t, var);
	binding_save(t, b);
	b->guard = NULL;
	b->value = v;
}

// A state as the step began with it: one size that is not known to be the same is checked by a run.
static Value *as_before(Builder *b, Value *next, const Type *type)
{
	int differ = 0;
	if (next->type == type)
		return next;
	if (!type_is_tensor(next->type) || next->type->dtype != type->dtype ||
	    next->type->rank != type->rank)
		return NULL;
	for (int i = 0; i < type->rank; i++)
		differ += next->type->dims[i] != type->dims[i];
	return differ == 1 ? tensor_reshape(b, next, type->rank, type->dims) : NULL;
}

// The variables after one step: states, then outputs.
static bool read_step(Recurrent *r, CountedLoop *l, Value **next)
{
	OpJob *j = r->j;
	Builder b = builder_at_end(j->t->c, l->body, j->b.loc);
	const Type **types = NEW_ARRAY(j->t->c->arena, (size_t)r->nout + 1, const Type *);
	for (int i = 0; i < r->nstate; i++) {
		Value *v = read_var(j, "states", r->after[i]);
		next[i] = v ? as_before(&b, v, r->first[i]->type) : NULL;
		if (!next[i])
			return v && job_fail(j, "state '%s' changes its type", r->after[i]);
	}
	for (int i = 0; i < r->nout; i++) {
		Value *v = read_var(j, "outputs", r->out->arguments[i]);
		if (!v || !type_is_tensor(v->type) || v->type->rank + 1 > MAX_RANK)
			return v && job_fail(j, "output '%s' is no tensor", r->out->arguments[i]);
		types[i] = v->type;
		if (r->out_types)
			next[r->nstate + i] = build_set_step(&b, l->args[r->nstate + i], l->at, v);
		if (r->out_types && !next[r->nstate + i])
			return false;
	}
	r->out_types = types;
	return true;
}

static bool attempt(Recurrent *r, CountedLoop *l, Value **next, bool down)
{
	OpJob *j = r->j;
	Translator *t = j->t;
	int n;
	Value **inits = carried(r, &n);
	if (!count_begin(l, &j->b, r->count, down, n, inits))
		return false;
	Outside o;
	region_enter(t, &o, l->body, r->block);
	t->frame.loop = true;
	Builder b = builder_at_end(t->c, l->body, j->b.loc);
	bool ok = true;
	for (int i = 0; i < r->nin; i++) {
		Value *x = build_step(&b, r->x[i], l->at);
		ok &= x != NULL;
		bind(t, r->in->arguments[i], x);
	}
	for (int i = 0; i < r->nstate; i++) {
		count_name(l, i, r->before[i]);
		bind(t, r->before[i], l->args[i]);
	}
	ok = ok && region_translate(t) && read_step(r, l, next);
	region_leave(t, &o);
	return ok;
}

// The types of the outputs, as the last translation of this operator found them.
static const Type ***types_memo(OpJob *j)
{
	Translator *t = j->t;
	const char *key = context_str(
		t->c, arena_printf(t->c->arena, "recurrent %d %d", t->block_index, t->frame.op));
	const Type ***m = name_map_get(t->memo, key);
	if (!m) {
		m = NEW(t->c->arena, const Type **);
		name_map_set(t->memo, key, m);
	}
	return m;
}

static bool same_types(int n, const Type *const *a, const Type *const *b)
{
	for (int i = 0; i < n; i++)
		if (!a || a[i] != b[i])
			return false;
	return true;
}

bool recurrent_translate(OpJob *j)
{
	enum { MAX_ATTEMPTS = 4 };
	Recurrent r = {.j = j, .block = sub_block_of(j)};
	const Paddle__OpAttr *a = attr_find(j->desc, "reverse");
	int64_t down = 0;
	CountedLoop l;
	if (r.block < 0 || !find_inputs(&r))
		return false;
	if (a && !attr_int_at(a, 0, &down))
		return job_fail(j, "attribute 'reverse' is no bool");
	Value **next = NEW_ARRAY(j->t->c->arena, (size_t)(r.nstate + r.nout) + 1, Value *);
	const Type ***memo = types_memo(j);
	r.out_types = *memo;
	// The first attempt tells the types of the outputs.
	for (int i = 0; i < MAX_ATTEMPTS; i++) {
		const Type **before = r.out_types;
		if (!attempt(&r, &l, next, down))
			return false;
		*memo = r.out_types;
		if (before && same_types(r.nout, before, r.out_types))
			break;
		op_erase(l.op);
		l.op = NULL;
	}
	if (!l.op)
		return job_fail(j, "the types of its outputs do not settle");
	if (!count_end(&l, next))
		return false;
	for (int i = 0; i < r.nout; i++)
		write_var(j, r.out->arguments[i], count_result(&l, r.nstate + i));
	return true;
}

// ---- pylayer ------------------------------------------------------------------------------------

// Runs a block; its own variables are gone behind it, but for `inner[i]`, which becomes variable i
// of the operator's slot.
static bool run_once(OpJob *j, int block, const char *slot, const char *const *inner)
{
	Translator *t = j->t;
	const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs, slot);
	const size_t n = out ? out->n_arguments : 0;
	Value **v = NEW_ARRAY(t->c->arena, n + 1, Value *);
	Scope *scope = t->scope;
	const int index = t->block_index;
	const Frame frame = t->frame;
	t->block_index = block;
	t->scope = scope_new(t, block, scope);
	t->frame = (Frame){.block = block, .outer = &frame};
	bool ok = region_translate(t);
	for (size_t i = 0; ok && i < n; i++)
		if (slot_var(out, i))
			ok = (v[i] = read_any(j, slot, inner[i])) != NULL;
	t->block_index = index;
	t->scope = scope;
	t->frame = frame;
	for (size_t i = 0; ok && i < n; i++)
		if (v[i])
			write_var(j, slot_var(out, i), v[i]);
	return ok;
}

bool pylayer_translate(OpJob *j)
{
	const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs, "Out");
	const int block = sub_block(j->desc);
	if (block < 0)
		return job_fail(j, "attribute 'blocks' is missing, or names no block");
	return run_once(j, block, "Out", out ? (const char *const *)out->arguments : NULL);
}

// The block calls the gradients after the inputs, even where they have other names outside because
// they are summed there.
bool pylayer_gradient_translate(OpJob *j)
{
	static const char *const reads[] = {"backward_block"};
	static const LegacyMap map = {.nread = COUNT_OF(reads), .reads = reads};
	Arena *a = j->t->c->arena;
	const Paddle__OpSlot *in = slot_find(j->desc->n_inputs, j->desc->inputs, "Input");
	const Paddle__OpSlot *out = slot_find(j->desc->n_outputs, j->desc->outputs, "Input@GRAD");
	const size_t n = in ? in->n_arguments : 0;
	const int block = sub_block(j->desc);
	const char **inner = NEW_ARRAY(a, n + 1, const char *);
	if (block < 0)
		return job_fail(j, "attribute 'backward_block' is missing, or names no block");
	if (out && out->n_arguments > n)
		return job_fail(j, "has more gradients than inputs");
	for (size_t i = 0; i < n; i++)
		inner[i] = context_str(j->t->c, arena_printf(a, "%s@GRAD", in->arguments[i]));
	return check_attributes(j, &map) && run_once(j, block, "Input@GRAD", inner);
}
