// What goes into a run and comes out of it: feeds, fetches, parameters and constants, and lists of
// values; and the run of a whole module. Called from outside, and by interp_op through the table of
// hooks.
#include "ir/interp/interp.h"
#include "ir/base/vec.h"
#include "ir/build/build.h"
#include "ir/interp/hooks.h"

#include <string.h>

// ---- feeds and fetches --------------------------------------------------------------------------

static NamedFeed *find_feed(const Interp *in, const char *name)
{
	for (int i = 0; i < in->nfeed; i++)
		if (!strcmp(in->feeds[i].name, name))
			return &in->feeds[i];
	return NULL;
}

void interp_add_feed(Interp *in, const char *name, Tensor *t)
{
	NamedFeed *f = find_feed(in, name);
	if (!f) {
		VEC_ROOM(in->arena, in->feeds, in->nfeed, in->cfeed);
		f = &in->feeds[in->nfeed++];
		*f = (NamedFeed){.name = name};
	}
	cell_list_add(in, &f->list, (Cell){.tensor = t});
}

void interp_set_feed(Interp *in, const char *name, Tensor *t)
{
	NamedFeed *f = find_feed(in, name);
	if (f)
		f->list.n = 0;
	interp_add_feed(in, name, t);
}

// The one tensor fed under that name; NULL: none, or several.
static Tensor *feed_tensor(const Interp *in, const char *name)
{
	const NamedFeed *f = find_feed(in, name);
	return f && f->list.n == 1 ? f->list.items[0].tensor : NULL;
}

int interp_fetch_count(const Interp *in)
{
	return in->nfetch;
}

Tensor *interp_fetch(Interp *in, int col)
{
	return col >= 0 && col < in->nfetch ? in->fetches[col].tensor : NULL;
}

int interp_fetch_length(const Interp *in, int col)
{
	const CellList *l = col >= 0 && col < in->nfetch ? in->fetches[col].list : NULL;
	return l ? l->n : -1;
}

Tensor *interp_fetch_element(Interp *in, int col, int i)
{
	return i >= 0 && i < interp_fetch_length(in, col) ? in->fetches[col].list->items[i].tensor
	                                                  : NULL;
}

static bool feed_mismatch(Interp *in, const Op *op, const Tensor *t)
{
	return op_error(op, "input '%s' is %s; the model needs %s", op_str(op, "name", "?"),
	                interp_shape_text(in, t), type_text(in->ctx, op->results[0].type));
}

static bool feed_missing(Interp *in, const Op *op)
{
	const char *name = op_str(op, "name", "");
	return op_error(op,
	                find_feed(in, name) ? "input '%s' is one tensor, several are given"
	                                    : "input '%s' is not given",
	                name);
}

// The offsets of a LoD level of a fed tensor; without LoD its rows are one sequence. NULL after a
// diagnostic.
static Tensor *feed_offsets(Interp *in, const Op *op, const Tensor *t)
{
	int64_t level = op_int(op, "level", 0), levels = op_int(op, "levels", 1), n = 2;
	if (t->nlod && t->nlod != levels) {
		op_error(op, "input '%s' has %d levels of LoD; the model needs %lld",
		         op_str(op, "name", "?"), t->nlod, (long long)levels);
		return NULL;
	}
	if (t->nlod)
		n = (int64_t)t->lod_len[level];
	Tensor *offsets = tensor_new(in->temp, DT_I64, 1, &n);
	for (int64_t i = 0; offsets && i < n; i++)
		tensor_set_i(offsets, i,
		             t->nlod                               ? t->lod[level][i]
		             : i && level + 1 == levels && t->rank ? t->dims[0]
		                                                   : i);
	return offsets;
}

// What a pd.feed of a tensor gives; NULL after a diagnostic.
static Tensor *feed_value(Interp *in, const Op *op)
{
	if (op_attr(op, "part")) {
		const NamedFeed *f = find_feed(in, op_str(op, "name", ""));
		return f ? interp_feed_part(in, op, &f->list) : (feed_missing(in, op), NULL);
	}
	Tensor *t = feed_tensor(in, op_str(op, "name", ""));
	if (!t)
		feed_missing(in, op);
	return t && op_attr(op, "lod_of") ? feed_offsets(in, op, t) : t;
}

bool interpret_hook_feed(Interp *in, Op *op)
{
	const char *name = op_str(op, "name", "");
	NamedFeed *f = find_feed(in, name);
	if (op->results[0].type->kind == TY_ARRAY) {
		// An array that is not given is empty.
		CellList *l = f ? &f->list : NEW(in->temp, CellList);
		interp_bind_cell(in, &op->results[0], (Cell){.list = l});
		return true;
	}
	Tensor *t = feed_value(in, op);
	if (t)
		interp_bind(in, &op->results[0], t);
	return t != NULL;
}

// Offsets become a level of LoD of the tensor that was fetched before.
static bool fetch_offsets(Interp *in, const Op *op, const Tensor *offsets)
{
	int64_t col = op_int(op, "lod_of", 0), level = op_int(op, "level", 0),
			levels = op_int(op, "levels", 1);
	Cell *c = col >= 0 && col < in->nfetch ? &in->fetches[col] : NULL;
	if (!c || !c->tensor || !offsets || level < 0 || level >= levels || levels > MAX_RANK)
		return op_error(op, "no tensor in column %lld takes these offsets", (long long)col);
	if (level == 0) {
		Tensor *t = NEW(in->arena, Tensor);
		*t = *c->tensor;
		t->nlod = (int)levels;
		t->lod = NEW_ARRAY(in->arena, (size_t)levels, int64_t *);
		t->lod_len = NEW_ARRAY(in->arena, (size_t)levels, size_t);
		c->tensor = t;
	}
	int64_t n = tensor_numel(offsets);
	c->tensor->lod_len[level] = (size_t)n;
	c->tensor->lod[level] = NEW_ARRAY(in->arena, (size_t)n + 1, int64_t);
	for (int64_t i = 0; i < n; i++)
		c->tensor->lod[level][i] = tensor_get_i(offsets, i);
	return true;
}

bool interpret_hook_fetch(Interp *in, Op *op)
{
	int64_t col = op_int(op, "col", 0);
	Cell *c = interp_cell(in, op_operand(op, 0));
	if (c && op_attr(op, "lod_of"))
		return fetch_offsets(in, op, c->tensor);
	int64_t of = op_int(op, "of", -1);
	if (c && of >= 0 && of < in->nfetch && of != col)
		return interp_fetch_part(in, op, &in->fetches[of]);
	if (!c || col < 0 || col > 1 << 20)
		return op_error(op, "nothing to fetch in column %lld", (long long)col);
	while (in->nfetch <= col) {
		VEC_ROOM(in->arena, in->fetches, in->nfetch, in->cfetch);
		in->fetches[in->nfetch++] = (Cell){0};
	}
	in->fetches[col] = *c;
	if (c->tensor) { // its LoD is fetched on its own
		Tensor *t = in->fetches[col].tensor = NEW(in->arena, Tensor);
		*t = *c->tensor;
		t->nlod = 0;
	}
	return true;
}

// ---- parameters, constants, lists ---------------------------------------------------------------

bool interpret_hook_get_parameter(Interp *in, Op *op)
{
	const char *name = op_str(op, "name", "");
	Tensor *t = param_get(in->ctx, name);
	if (!t)
		return op_error(op, "parameter '%s' has no value", name);
	interp_bind(in, &op->results[0], t);
	return true;
}

bool interpret_hook_set_parameter(Interp *in, Op *op)
{
	Tensor *t = interp_operand(in, op, 0);
	if (!t)
		return false;
	// A parameter outlives this interpreter's memory.
	Tensor *copy = tensor_new(in->ctx->arena, t->dtype, t->rank, t->dims);
	if (!copy)
		return op_error(op, "the tensor is too large");
	if (tensor_bytes(t))
		memcpy(copy->data, t->data, tensor_bytes(t));
	param_set(in->ctx, op_str(op, "name", ""), copy);
	return true;
}

bool interpret_hook_constant(Interp *in, Op *op)
{
	const Attr *a = op_attr(op, "value");
	if (!a || a->kind != ATTR_TENSOR)
		return op_error(op, "attribute 'value' is no tensor");
	interp_bind(in, &op->results[0], (Tensor *)(uintptr_t)a->tensor);
	return true;
}

bool interpret_hook_combine(Interp *in, Op *op)
{
	CellList *l = NEW(in->temp, CellList);
	for (int i = 0; i < op->noperand; i++) {
		Cell *c = op_operand(op, i) ? interp_cell(in, op_operand(op, i)) : NULL;
		if (!c)
			return op_error(op, "element %d has no value", i);
		cell_list_add(in, l, *c);
	}
	interp_bind_cell(in, &op->results[0], (Cell){.list = l});
	return true;
}

bool interpret_hook_slice_list(Interp *in, Op *op)
{
	Cell *c = interp_cell(in, op_operand(op, 0));
	int64_t i = op_int(op, "index", 0);
	if (!c || !c->list || i < 0 || i >= c->list->n)
		return op_error(op, "no element %lld", (long long)i);
	interp_bind_cell(in, &op->results[0], c->list->items[i]);
	return true;
}

// ---- a run --------------------------------------------------------------------------------------

// One round over the sizes of all feeds; in the last one nothing more will be known. Counts what is
// not settled yet, and what was matched.
static bool match_feeds(Interp *in, const Block *b, bool last, int *open, int *matched)
{
	*open = *matched = 0;
	for (const Op *op = b->first; op; op = op->next) {
		if (op->code != OP_PD_FEED || op->results[0].type->kind != TY_TENSOR)
			continue;
		const Type *type = op->results[0].type;
		const Tensor *t = feed_value(in, op);
		if (!t)
			return false;
		if (t->dtype != type->dtype || t->rank != type->rank)
			return feed_mismatch(in, op, t);
		for (int d = 0; d < t->rank; d++) {
			int match = interp_match_dim(in, NULL, type->dims[d], t->dims[d]);
			if (match == -1 || (match == -2 && last))
				return feed_mismatch(in, op, t);
			*open += match != 1;
			*matched += match == 1;
		}
	}
	return true;
}

static bool run_once(Interp *in, Op *module)
{
	int open, matched, before = -1;
	const Block *b = module_block(module);
	in->nsym = 0;
	in->nfetch = 0;
	if (!match_feeds(in, b, false, &open, &matched))
		return false;
	for (; open && matched != before; before = matched)
		if (!match_feeds(in, b, false, &open, &matched))
			return false;
	if (open && !match_feeds(in, b, true, &open, &matched))
		return false;
	if (b->next) // flattened
		return interp_region(in, b->region, 0, NULL) != NULL;
	for (Op *op = b->first; op; op = op->next)
		if (!interp_op(in, op))
			return false;
	return true;
}

// A run that ended for lack of room is made again with more.
bool interp_run(Interp *in, Op *module)
{
	bool ok;
	do {
		in->no_room = false;
		in->depth = in->expanding = 0;
		in->loops = NULL;
		ok = run_once(in, module);
	} while (!ok && in->no_room);
	return ok;
}
