// Arrays as the rounds of a loop began with them, for the loop backwards: an undo log. Where a
// round writes to an array, in branches and loops of its own, too, the loop notes where it writes,
// how long the array was, and what was there, in two arrays that go wherever that one goes. A round
// backwards begins with the array that the round left, and takes back what was noted, the last
// first; all that is pushed is how much had been noted when the round began.
#include "ir/base/map.h"
#include "ir/build/counted.h"
#include "ir/gradient/gradient_loop.h"
#include "ir/infer/infer.h"

// ---- which arrays -------------------------------------------------------------------------------

typedef struct Search {
	const Value *from;
	PointerMap seen; // values -> whether they are `from` with nothing but writes
} Search;

static bool is_made_of(const Value *v, const Value *from);
static bool search(Search *s, const Value *v);

static bool loop_hands_on(Search *s, const Op *loop, int i)
{
	const Block *cond = loop->regions[0].first, *body = loop->regions[1].first;
	return !(loop->nregion > 2 && loop->regions[2].first) && !op_attr(loop, "counted") &&
	       op_operand(cond->last, i + 1) == cond->args[i] && search(s, op_operand(loop, i)) &&
	       is_made_of(op_operand(body->last, i), body->args[i]);
}

static bool branch_hands_on(Search *s, const Op *op, int i)
{
	const int parts = op_parts(op);
	bool all = !(op->nregion > parts && op->regions[parts].first);
	for (int r = 0; r < parts && all; r++) {
		const Block *b = op->regions[r].first;
		all = b && b->last && search(s, op_operand(b->last, i));
	}
	return all;
}

// Whether op writes to its array, or takes elements off its end.
static bool changes_array(const Op *op)
{
	double start = 1;
	if (op->code != OP_PD_ARRAY_SLICE)
		return op->code == OP_PD_ARRAY_WRITE;
	return constant_number(op_operand(op, 1), &start) && start == 0;
}

static bool search(Search *s, const Value *v)
{
	while (v && v != s->from && v->def && changes_array(v->def))
		v = op_operand(v->def, 0);
	if (!v || v == s->from)
		return v != NULL;
	int known = pointer_map_index(&s->seen, v);
	if (known < 0) {
		known = v->def && (op_is_branch(v->def)          ? branch_hands_on(s, v->def, (int)v->index)
		                   : v->def->code == OP_PD_WHILE ? loop_hands_on(s, v->def, (int)v->index)
		                                                 : false);
		pointer_map_set_index(&s->seen, v, known);
	}
	return known > 0;
}

static bool is_made_of(const Value *v, const Value *from)
{
	Search s = {.from = from};
	pointer_map_init(&s.seen, value_op(from)->ctx->arena);
	return search(&s, v);
}

bool loop_logs(const Loop *l, int var)
{
	const Block *body = l->op->regions[1].first;
	return body->args[var]->type->kind == TY_ARRAY &&
	       is_made_of(op_operand(body->last, var), body->args[var]);
}

// ---- what is noted ------------------------------------------------------------------------------

enum { PLACES, OLD, NOTES };

// Of what an array went through: where it was written to and how long it was, i64 [2], and the
// element that was there, or, where none was, the one that came.
typedef struct Notes {
	Value *of[NOTES];
} Notes;

typedef struct Writer {
	Context *c;
	const Type *types[NOTES];
	PointerMap notes; // arrays -> Notes
	bool marks;       // what is added says that it is no part of the program
} Writer;

static Notes *notes_set(Writer *w, const Value *array, Value *places, Value *old)
{
	Notes *n = NEW(w->c->arena, Notes);
	*n = (Notes){{places, old}};
	pointer_map_set(&w->notes, array, n);
	return n;
}

static void mark(const Writer *w, Op *first, const Op *end)
{
	for (Op *op = first; w->marks && op != end; op = op->next)
		op_set_attr(op, "backward", attr_bool(w->c, true));
}

// The array of old elements, in a branch: `x`, or, NULL, what is read from `array`, goes to the
// end of it.
static bool branch_note(Op *branch, int region, Value *const *to, Value *array, Value *at, Value *x)
{
	Context *c = branch->ctx;
	Builder b = builder_at_end(c, block_new(c, &branch->regions[region]), branch->loc);
	x = x ? x : gradient_array_read(&b, array, at);
	Value *with = x ? gradient_array_write(&b, to[OLD], to[PLACES], x) : NULL;
	if (with)
		control_end(&b, OP_CF_YIELD, 1, &with);
	return with != NULL;
}

static Notes *note_write(Writer *w, Op *write, const Notes *before)
{
	Builder b = builder_before(write);
	Op *prev = write->prev;
	Value *array = op_operand(write, 0), *length = gradient_array_length(&b, array),
		  *count = gradient_array_length(&b, before->of[PLACES]);
	if (!length || !count)
		return NULL;
	Value *at = tensor_cast(&b, op_operand(write, 1), DT_I64);
	at = tensor_reshape(&b, at, 1, length->type->dims);
	Value *const place[] = {at, length}, *const to[] = {count, before->of[OLD]};
	Value *has = at ? build2(&b, OP_PD_ARRAY_HAS, array, at, NULL) : NULL,
		  *entry = has ? tensor_concat(&b, 2, place, 0) : NULL;
	if (!entry)
		return NULL;
	Op *old = op_new(w->c, OP_PD_IF, b.loc, 1, &w->types[OLD], 1, &has, 2, 0);
	builder_insert(&b, old);
	if (!branch_note(old, 0, to, array, at, NULL) ||
	    !branch_note(old, 1, to, array, at, op_operand(write, 2)))
		return NULL;
	Value *places = gradient_array_write(&b, before->of[PLACES], count, entry);
	mark(w, prev ? prev->next : write->block->first, write);
	return places ? notes_set(w, op_result(write, 0), places, op_result(old, 0)) : NULL;
}

// What is taken off the end of an array, element by element.
static Notes *note_slice(Writer *w, Op *slice, const Notes *before)
{
	Op *end = slice->next;
	Builder b = builder_before(end);
	Value *array = op_operand(slice, 0), *length = gradient_array_length(&b, array),
		  *left = gradient_array_length(&b, op_result(slice, 0)), *next[NOTES] = {NULL};
	CountedLoop l;
	if (!length || !left ||
	    !count_begin(&l, &b, tensor_sub(&b, length, left), false, NOTES, before->of))
		return NULL;
	Value *behind = tensor_sub(&l.b, length, l.at),
		  *at = tensor_sub(&l.b, behind, loop_number(&l.b, 1)),
		  *count = at ? gradient_array_length(&l.b, l.args[PLACES]) : NULL,
		  *old = count ? gradient_array_read(&l.b, array, at) : NULL;
	Value *const place[] = {at, behind};
	Value *entry = old ? tensor_concat(&l.b, 2, place, 0) : NULL;
	if (!entry)
		return NULL;
	next[PLACES] = gradient_array_write(&l.b, l.args[PLACES], count, entry);
	next[OLD] = gradient_array_write(&l.b, l.args[OLD], count, old);
	if (!next[PLACES] || !next[OLD] || !count_end(&l, next))
		return NULL;
	mark(w, slice->next, end);
	return notes_set(w, op_result(slice, 0), count_result(&l, PLACES), count_result(&l, OLD));
}

// In the place of op: with the notes behind its results.
static Op *with_notes(Writer *w, Op *op, int ninit, Value *const *inits)
{
	const int n = op->nresult;
	const Type **types = NEW_ARRAY(w->c->arena, (size_t)n + NOTES, const Type *);
	for (int i = 0; i < n + NOTES; i++)
		types[i] = i < n ? op->results[i].type : w->types[i - n];
	Op *with = op_remake(op, n + NOTES, types, ninit, inits);
	if (w->marks)
		op_set_attr(with, "kept", attr_int(w->c, op_int(op, "kept", 0) + NOTES));
	for (int i = 0; i < n; i++)
		value_take(op_result(op, i), op_result(with, i));
	op_erase(op);
	return with;
}

static Notes *notes_of(Writer *w, Value *array);

static bool end_with_notes(Writer *w, Block *block, int operand)
{
	Notes *n = notes_of(w, op_operand(block->last, operand));
	for (int k = 0; k < NOTES && n; k++)
		op_add_operand(block->last, n->of[k]);
	return n != NULL;
}

static Op *note_branch(Writer *w, Op *op, int i)
{
	Value *cond = op_operand(op, 0);
	for (int r = 0; r < op_parts(op); r++)
		if (!end_with_notes(w, op->regions[r].first, i))
			return NULL;
	return with_notes(w, op, 1, &cond);
}

static Op *note_loop(Writer *w, Op *op, int i)
{
	const Notes *n = notes_of(w, op_operand(op, i));
	Value **inits = NEW_ARRAY(w->c->arena, (size_t)op->nresult + NOTES, Value *);
	for (int r = 0; r < 2 && n; r++) {
		Block *block = op->regions[r].first;
		Value *places = block_add_arg(w->c, block, w->types[PLACES]),
			  *old = block_add_arg(w->c, block, w->types[OLD]);
		notes_set(w, block->args[i], places, old);
		if (!end_with_notes(w, block, i + !r))
			return NULL;
	}
	for (int k = 0; k < op->nresult + NOTES && n; k++)
		inits[k] = k < op->nresult ? op_operand(op, k) : n->of[k - op->nresult];
	return n ? with_notes(w, op, op->nresult + NOTES, inits) : NULL;
}

// Of an array that comes from one that has notes. NULL after a diagnostic.
static Notes *notes_of(Writer *w, Value *array)
{
	Notes *n = (Notes *)(uintptr_t)pointer_map_get(&w->notes, array);
	if (n)
		return n;
	const int i = (int)array->index;
	Op *op = array->def;
	if (changes_array(op)) {
		n = notes_of(w, op_operand(op, 0));
		if (n)
			n = op->code == OP_PD_ARRAY_WRITE ? note_write(w, op, n) : note_slice(w, op, n);
		return n;
	}
	op = op_is_branch(op) ? note_branch(w, op, i) : note_loop(w, op, i);
	return op ? notes_set(w, op_result(op, i), op_result(op, op->nresult - NOTES),
	                      op_result(op, op->nresult - 1))
	          : NULL;
}

// ---- the loop forward ---------------------------------------------------------------------------

// In a region of the forward loop, in front of the counter and the stack. The region that makes the
// stack has no argument for it.
static void region_notes(Loop *l, int region, const Type *const *types)
{
	Context *c = l->op->ctx;
	Block *block = l->forward->regions[region].first;
	Op *end = block->last;
	const int first = block->narg - 1 - (region < 2);
	Value *tail[2] = {op_operand(end, end->noperand - 2), op_operand(end, end->noperand - 1)};
	const int given = end->noperand - 2;
	op_remove_operand(end, given + 1);
	op_remove_operand(end, given);
	for (int k = 0; k < NOTES; k++)
		op_add_operand(end, block_add_arg(c, block, types[k]));
	for (int k = 0; k < 2; k++)
		op_add_operand(end, tail[k]);
	while (block->args[first]->type != types[PLACES]) {
		Value *moved = block_add_arg(c, block, block->args[first]->type);
		value_take(block->args[first], moved);
		block_remove_arg(block, first);
	}
}

// The forward loop with two arrays more in front of its counter, which no round changes yet.
static void loop_add_notes(Loop *l, const Type *const *more)
{
	Context *c = l->op->ctx;
	Op *loop = l->forward;
	Builder b = builder_before(loop);
	const int n = loop->nresult - 2;
	const Type **types = NEW_ARRAY(c->arena, (size_t)loop->nresult + NOTES, const Type *);
	Value **inits = NEW_ARRAY(c->arena, (size_t)loop->noperand + NOTES, Value *);
	for (int i = 0; i < loop->nresult; i++) {
		types[i + (i < n ? 0 : NOTES)] = loop->results[i].type;
		if (i < loop->noperand)
			inits[i + (i < n ? 0 : NOTES)] = op_operand(loop, i);
	}
	for (int k = 0; k < NOTES; k++) {
		types[n + k] = more[k];
		inits[n + k] = gradient_array_empty(&b, more[k]);
	}
	Op *with = op_remake(loop, loop->nresult + NOTES, types, loop->noperand + NOTES, inits);
	l->forward = with;
	for (int r = 0; r < 3; r++)
		region_notes(l, r, more);
	for (int i = 0; i < loop->nresult; i++)
		value_take(op_result(loop, i), op_result(with, i + (i < n ? 0 : NOTES)));
	op_erase(loop);
}

// ---- the loop backwards -------------------------------------------------------------------------

// What the array was when only `from` places had been noted; `to` had been when it was `array`.
static Value *taken_back(Builder *b, Value *array, Value *const *notes, Value *from, Value *to)
{
	CountedLoop l;
	Value *steps = tensor_sub(b, to, from);
	if (!steps || !count_begin(&l, b, steps, true, 1, &array))
		return NULL;
	Value *at = tensor_add(&l.b, from, l.at),
		  *place = at ? gradient_array_read(&l.b, notes[PLACES], at) : NULL,
		  *old = place ? gradient_array_read(&l.b, notes[OLD], at) : NULL,
		  *where = old ? tensor_cut(&l.b, place, 0, 0, 1) : NULL,
		  *length = where ? tensor_cut(&l.b, place, 0, 1, 2) : NULL,
		  *with = length ? gradient_array_write(&l.b, l.args[0], where, old) : NULL;
	return gradient_array_end(&l, with ? gradient_array_first(&l.b, with, length) : NULL);
}

// Where the round's end of the array is, in the body of the loop backwards.
static Value *array_end(Loop *l, int var)
{
	for (int i = 0; i < l->ncarried; i++)
		if (l->carried[i] == var)
			return l->ends[i];
	Block *body = l->back->regions[1].first;
	Value *end = block_add_arg(l->op->ctx, body, l->saved[var]->type);
	op_add_operand(body->last, l->saved[var]);
	l->ends[l->ncarried] = end;
	l->carried[l->ncarried++] = var;
	return end;
}

// Gives `var` what the round began with.
static bool take_back(Loop *l, int var, Value *end)
{
	Context *c = l->op->ctx;
	Block *body = l->back->regions[1].first, *forward = l->push->block;
	const int at = l->forward->nresult - 2;
	const Type *place = type_shaped(c, TY_ARRAY, DT_I64, 1, (const Dim *[]){dim_const(c, 2)}),
			   *types[NOTES] = {place, type_found_anew(c, TY_ARRAY, l->saved[var]->type)};
	loop_add_notes(l, types);
	Builder b = builder_before(forward->first), behind = builder_before(l->back),
			front = builder_before(body->first);
	Value *from = gradient_array_length(&b, forward->args[at]),
		  *all = gradient_array_length(&behind, op_result(l->forward, at));
	if (!from || !all)
		return false;
	if (duals_how(l->g->duals)->marks)
		op_set_attr(from->def, "backward", attr_bool(c, true));
	l->states[l->nstate++] = all;
	Value *to = block_add_arg(c, body, all->type), *popped = loop_save(l, body, from->type, from);
	op_add_operand(body->last, popped);
	Value *const notes[NOTES] = {op_result(l->forward, at), op_result(l->forward, at + 1)};
	Value *array = taken_back(&front, end, notes, popped, to);
	if (array)
		value_replace(l->saved[var], array);
	return array != NULL;
}

bool loop_take_back(Loop *l)
{
	Value **ends = NEW_ARRAY(l->op->ctx->arena, (size_t)l->n + 1, Value *);
	l->logged = NEW_ARRAY(l->op->ctx->arena, (size_t)l->n + 1, int);
	for (int i = 0; i < l->n; i++) {
		if (!value_used(l->saved[i]) || l->saved[i]->type->kind != TY_ARRAY)
			continue;
		if (!loop_logs(l, i))
			return op_error(l->op, "the gradient of a loop that must keep an array of every round "
			                       "is only supported where rounds do nothing but write to it, "
			                       "and take elements off its end");
		ends[i] = array_end(l, i);
		l->logged[l->nlogged++] = i;
	}
	if (l->nlogged)
		l->states = NEW_ARRAY(l->op->ctx->arena, (size_t)l->nlogged, Value *);
	for (int k = 0; k < l->nlogged; k++)
		if (!take_back(l, l->logged[k], ends[l->logged[k]]))
			return false;
	return true;
}

bool loop_note(Loop *l)
{
	Context *c = l->op->ctx;
	Block *body = l->forward->regions[1].first;
	Op *end = body->last;
	for (int k = 0; k < l->nlogged; k++) {
		const int var = l->logged[k], at = l->forward->nresult - 2 - NOTES * (l->nlogged - k);
		Writer w = {.c = c, .marks = duals_how(l->g->duals)->marks};
		pointer_map_init(&w.notes, c->arena);
		for (int i = 0; i < NOTES; i++)
			w.types[i] = body->args[at + i]->type;
		notes_set(&w, body->args[var], body->args[at], body->args[at + 1]);
		const Notes *n = notes_of(&w, op_operand(end, var));
		for (int i = 0; i < NOTES && n; i++)
			op_set_operand(end, at + i, n->of[i]);
		if (!n)
			return false;
	}
	return true;
}
