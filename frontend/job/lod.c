// LoD of values during translation (lod.h): what has which, inputs and outputs for offsets. Called
// by frontend/control and frontend/translate.
#include "frontend/job/lod.h"
#include "ir/base/map.h"
#include "ir/build/counted.h"
#include "ir/build/nest.h"

#include <string.h>

struct LodLevel {
	Value *offsets; // NULL: of an input, and nobody has asked yet
	Op *feed;       // that input
	int level, levels;
};

// ---- which value has which --------------------------------------------------------------------

// From values to their LoD, of one attempt at translating.
struct LodTable {
	PointerMap map;
};

LodTable *lod_table_new(Context *c)
{
	LodTable *m = NEW(c->arena, LodTable);
	pointer_map_init(&m->map, c->arena);
	return m;
}

const Lod *lod_of(const Translator *t, const Value *v)
{
	return t->lods && v ? pointer_map_get(&t->lods->map, v) : NULL;
}

void lod_set(Translator *t, const Value *v, const Lod *l)
{
	pointer_map_set(&t->lods->map, v, l);
}

// ---- making -----------------------------------------------------------------------------------

void lod_feed(Translator *t, Op *feed, int levels)
{
	if (levels > MAX_LOD)
		levels = MAX_LOD;
	Lod *l = NEW(t->c->arena, Lod);
	l->n = levels;
	for (int i = 0; i < levels; i++) {
		l->levels[i] = NEW(t->c->arena, LodLevel);
		*l->levels[i] = (LodLevel){.feed = feed, .level = i, .levels = levels};
	}
	if (levels)
		lod_set(t, op_result(feed, 0), l);
}

const Lod *lod_extend(Translator *t, const Lod *outer, int n, Value *offsets)
{
	Lod *l = NEW(t->c->arena, Lod);
	if (outer)
		memcpy(l->levels, outer->levels, sizeof *l->levels * (size_t)n);
	l->n = n + 1;
	l->levels[n] = NEW(t->c->arena, LodLevel);
	l->levels[n]->offsets = offsets;
	return l;
}

const Lod *lod_new(Translator *t, int n, Value *const *offsets)
{
	const Lod *l = NULL;
	for (int i = 0; i < n; i++)
		l = lod_extend(t, l, i, offsets[i]);
	return l;
}

const Lod *lod_outer(Translator *t, const Lod *l, int n)
{
	if (n <= 0 || n == l->n)
		return n <= 0 ? NULL : l;
	Lod *o = NEW(t->c->arena, Lod);
	*o = *l;
	o->n = n;
	return o;
}

bool lod_same(const Lod *a, const Lod *b)
{
	if (!a || !b || a->n != b->n)
		return a == b;
	for (int i = 0; i < a->n; i++) {
		const LodLevel *x = a->levels[i], *y = b->levels[i];
		if (x != y && !(x->offsets && x->offsets == y->offsets))
			return false;
	}
	return true;
}

bool lod_is_outside(const Lod *l, const Op *op)
{
	for (int i = 0; i < l->n; i++) {
		const Value *v = l->levels[i]->offsets;
		for (const Op *at = v ? value_op(v) : NULL; at; at = op_parent(at))
			if (at == op)
				return false;
	}
	return true;
}

// ---- offsets of inputs ------------------------------------------------------------------------

// How many sequences a level has: `seqs`, with the input's name in front when another has the word.
static const Dim *sequences_symbol(Translator *t, const char *var, int level)
{
	const char *stem = level ? arena_printf(t->c->arena, "seqs%d", level) : "seqs";
	return named_symbol(t, var, stem, arena_printf(t->c->arena, "%s lod %d", var, level));
}

static void feed_offsets(Translator *t, LodLevel *l)
{
	Context *c = t->c;
	const char *var = op_str(l->feed, "name", "");
	const Dim *size = dim_add(c, sequences_symbol(t, var, l->level), dim_const(c, 1));
	const Type *type = type_tensor(c, DT_I64, 1, &size, 0);
	Op *op = op_new(c, OP_PD_FEED, l->feed->loc, 1, &type, 0, NULL, 0, 0);
	op_set_attr(op, "name", attr_str(c, var));
	op_set_attr(op, "lod_of", attr_int(c, op_int(l->feed, "col", 0)));
	op_set_attr(op, "level", attr_int(c, l->level));
	op_set_attr(op, "levels", attr_int(c, l->levels));
	op_insert_after(l->feed, op);
	l->offsets = op_result(op, 0);
	l->offsets->name = context_str(c, arena_printf(c->arena, "%s.lod%d", var, l->level));
	l->offsets->stop_gradient = true;
}

Value *lod_offsets(OpJob *j, const Lod *l, int level)
{
	LodLevel *at = l->levels[level < 0 ? level + l->n : level];
	if (!at->offsets)
		feed_offsets(j->t, at);
	return at->offsets;
}

Value *lod_one(OpJob *j, Value *v, bool rows)
{
	Value *number = build_number(&j->b, DT_I64, 1, 1);
	if (rows && type_is_tensor(v->type) && v->type->rank)
		number = build_size(&j->b, v, 0);
	Value *const both[] = {build_number(&j->b, DT_I64, 1, 0), number};
	return tensor_concat(&j->b, 2, both, 0);
}

const Dim *lod_count(OpJob *j, const Lod *l, int level)
{
	Value *offsets = lod_offsets(j, l, level);
	if (offsets->def && offsets->def->code == OP_PD_FEED)
		offsets->def->scratch = offsets->def; // its size is needed, see lod_finish
	return dim_sub(j->t->c, offsets->type->dims[0], dim_const(j->t->c, 1));
}

// ---- fetches ----------------------------------------------------------------------------------

bool lod_fetch(OpJob *j, const char *var, Value *v, int64_t col)
{
	Context *c = j->t->c;
	const Lod *l = lod_of(j->t, v);
	for (int i = 0; l && i < l->n; i++) {
		Value *offsets = lod_offsets(j, l, i);
		Op *op = op_new(c, OP_PD_FETCH, j->b.loc, 0, NULL, 1, &offsets, 0, 0);
		op_set_attr(op, "name", attr_str(c, var));
		op_set_attr(op, "lod_of", attr_int(c, col));
		op_set_attr(op, "level", attr_int(c, i));
		op_set_attr(op, "levels", attr_int(c, l->n));
		op_append(j->t->block, op);
	}
	return true;
}

static bool is_level(const Op *op, enum OpCode code)
{
	return op->code == code && op_attr(op, "lod_of");
}

// Ports that get columns behind the ordinary ones.
static bool comes_behind(const Op *op)
{
	return op_attr(op, "lod_of") || op_int(op, "col", 0) < 0;
}

void lod_finish(Translator *t)
{
	int64_t ninput = 0, noutput = 0;
	Block *b = module_block(t->module);
	for (Op *op = b->first, *next; op; op = next) {
		next = op->next;
		if (is_level(op, OP_PD_FEED) && !value_used(op_result(op, 0)) && !op->scratch)
			op_erase(op);
	}
	for (const Op *op = b->first; op; op = op->next) {
		int64_t *n = op->code == OP_PD_FEED ? &ninput : op->code == OP_PD_FETCH ? &noutput : NULL;
		if (n && !comes_behind(op) && op_int(op, "col", 0) >= *n)
			*n = op_int(op, "col", 0) + 1;
	}
	for (Op *op = b->first; op; op = op->next) {
		if (is_level(op, OP_PD_FEED))
			op_set_attr(op, "col", attr_int(t->c, ninput++));
		if (op->code == OP_PD_FETCH && comes_behind(op))
			op_set_attr(op, "col", attr_int(t->c, noutput++));
	}
}
