// Operations as text, and which of them read a value later. Used by the files that know operations.
#include "frontend/write/pir_out.h"

#include <inttypes.h>
#include <string.h>

// ---- operations as text -------------------------------------------------------------------------

OutOp *out_new(PirWriter *w, const char *name, int nin, int nout)
{
	OutOp *o = NEW(w->c->arena, OutOp);
	o->name = name;
	text_init(&o->attrs, w->c->arena);
	o->nin = nin;
	o->in = NEW_ARRAY(w->c->arena, (size_t)nin + 1, int64_t);
	o->nout = nout;
	o->out = NEW_ARRAY(w->c->arena, (size_t)nout + 1, OutResult);
	return o;
}

// Of a vector: that no gradient goes through any of its elements; of a branch: through what either
// region yields; of a loop: through what it begins with.
static bool stops_gradient(const Value *v)
{
	const Op *op = v ? v->def : NULL;
	const int i = v ? (int)v->index : 0;
	if (op && op->code == OP_PD_WHILE)
		return stops_gradient(op_operand(op, i));
	if (op && op->code == OP_PD_IF)
		return stops_gradient(op_operand(block_terminator(op->regions[0].first), i)) &&
		       stops_gradient(op_operand(block_terminator(op->regions[1].first), i));
	if (!v || v->type->kind != TY_VEC)
		return !v || v->stop_gradient;
	for (const Use *u = v->uses; u; u = u->next)
		if (u->user->code == OP_BUILTIN_SLICE && !u->user->results[0].stop_gradient)
			return false;
	return v->uses != NULL;
}

// What holds for each result; fetched values are kept as well.
static void result_attrs(PirWriter *w, const OutOp *o)
{
	bool *flags = NEW_ARRAY(w->c->arena, (size_t)o->nout + 1, bool), kept = false;
	for (int i = 0; i < o->nout; i++)
		kept |= flags[i] = o->out[i].persistable;
	if (kept)
		out_attr_flags(w->t, "persistable", o->nout, flags);
	text_str(w->t, kept ? "," : "");
	for (int i = 0; i < o->nout; i++)
		flags[i] = stops_gradient(o->out[i].value);
	out_attr_flags(w->t, "stop_gradient", o->nout, flags);
}

static void result_text(PirWriter *w, const OutResult *r, int64_t number)
{
	text_printf(w->t, "{\"%%\":%" PRId64 ",\"TT\":", number);
	if (!r->type)
		text_str(w->t, "{\"#\":\"NULL\"}");
	else
		out_type(w, w->t, r->type);
	text_char(w->t, '}');
	if (r->value)
		out_bind(w, r->value, number);
}

int64_t out_head(PirWriter *w, const OutOp *o)
{
	Text *t = w->t;
	const int64_t first = w->next;
	text_printf(t, "%s\n{\"#\":\"%s\",\"A\":[%s],\"I\":[", w->first ? "" : ",", o->name,
	            o->attrs.len ? o->attrs.text : "");
	w->first = false;
	for (int i = 0; i < o->nin; i++)
		text_printf(t, "%s{\"%%\":%" PRId64 "}", i ? "," : "", o->in[i]);
	text_str(t, "],\"O\":[");
	for (int i = 0; i < o->nout; i++) {
		text_str(t, i ? "," : "");
		result_text(w, &o->out[i], w->next++);
	}
	text_str(t, "],\"OA\":[");
	if (o->nout)
		result_attrs(w, o);
	text_char(t, ']');
	return first;
}

int64_t out_op(PirWriter *w, const OutOp *o)
{
	const int64_t first = out_head(w, o);
	text_char(w->t, '}');
	for (int i = 0; i < o->nout; i++)
		if (o->out[i].value)
			out_size_note(w, o->out[i].value);
	return first;
}

void out_region_begin(PirWriter *w, int narg, const Value *const *args)
{
	text_printf(w->t, "{\"#\":\"region_%d\",\"blocks\":[{\"#\":\"block_%d\",\"args\":[", w->nregion,
	            w->nblock);
	w->nregion++;
	w->nblock++;
	for (int i = 0; i < narg; i++) {
		text_printf(w->t, "%s{\"#\":%" PRId64 ",\"TT\":", i ? "," : "", w->next_arg);
		out_type(w, w->t, args[i]->type);
		text_char(w->t, '}');
		out_bind(w, args[i], w->next_arg--);
		out_size_note(w, args[i]);
	}
	text_str(w->t, "],\"ops\":[");
	w->first = true;
}

void out_region_end(PirWriter *w)
{
	text_str(w->t, "]}]}");
	w->first = false;
}

void out_yield(PirWriter *w, int n, const int64_t *numbers)
{
	OutOp *o = out_new(w, "2.yield", n, 0);
	memcpy(o->in, numbers, (size_t)n * sizeof *numbers);
	out_op(w, o);
}

// ---- order --------------------------------------------------------------------------------------

// Which region of `outer` an operation is in; -1: none.
static int region_in(const Op *outer, const Op *op)
{
	while (op && op_parent(op) != outer)
		op = op_parent(op);
	return op ? (int)(op->block->region - outer->regions) : -1;
}

// Whether b is in the other branch of an if that a is in.
static bool in_other_branch(const Op *a, const Op *b)
{
	for (const Op *p = op_parent(a); p; p = op_parent(p))
		if (p->code == OP_PD_IF && region_in(p, b) >= 0 && region_in(p, b) != region_in(p, a))
			return true;
	return false;
}

// Whether both are in a loop that begins where `home` is seen already.
static bool in_same_loop(const Op *a, const Op *b, const Block *home)
{
	for (const Op *p = a; p && p->block != home; p = op_parent(p)) {
		const Op *loop = op_parent(p);
		if (loop && loop->code == OP_PD_WHILE && p->block != home && region_in(loop, b) >= 0)
			return true;
	}
	return false;
}

bool out_read_later(PirWriter *w, const Value *v, const Op *op)
{
	const Block *home = v->def ? v->def->block : v->block;
	const int at = pointer_map_index(&w->positions, op);
	for (const Use *u = v->uses; u; u = u->next) {
		if (u->user == op || in_other_branch(op, u->user))
			continue;
		if (pointer_map_index(&w->positions, u->user) > at || in_same_loop(op, u->user, home))
			return true;
	}
	return false;
}
