// The interpreter: runs a module, or single operations, on concrete tensors. Slow and obvious; what
// it gives is what an operation means. Used for constant folding, `pdcc run --target interp`, `pdcc
// verify` and tests. An operation runs by its `interpret` hook, or else by running what op_define
// builds for it.
#include "ir/interp/interp.h"
#include "ir/build/build.h"
#include "ir/define/define.h"
#include "ir/base/vec.h"
#include "ir/interp/hooks.h"

#include <string.h>

enum { MAX_EXPANSIONS = 64, TIDY_BYTES = 1 << 23 };

// An operation in simpler ones: a block that reads stand-ins for the operands.
typedef struct Expansion {
	Block *block;
	int nstandin;
	const Value **from; // what the operation reads
	Value **standins;   // its stand-ins, arguments of the block
	Value **results;
} Expansion;

// ---- values -------------------------------------------------------------------------------------

Interp *interp_new(Context *c, Arena *scratch)
{
	Interp *in = NEW(scratch, Interp);
	in->ctx = c;
	in->arena = scratch;
	in->temp = arena_scratch(scratch);
	in->full = TIDY_BYTES;
	in->index.arena = scratch;
	in->expanded.arena = scratch;
	return in;
}

Context *interp_context(const Interp *in)
{
	return in->ctx;
}

Arena *interp_arena(const Interp *in)
{
	return in->temp;
}

void interp_observe(Interp *in, void (*seen)(void *arg, const Value *v, const Tensor *t), void *arg)
{
	in->seen = seen;
	in->seen_arg = arg;
}

void interp_set_max_trip(Interp *in, int64_t rounds)
{
	in->max_trip = rounds;
}

bool interp_error(const Interp *in, const Op *op, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	const char *text = arena_vprintf(in->ctx->arena, fmt, ap);
	va_end(ap);
	diag_error(in->ctx->diag, op->loc, "'%s': %s", op->info->name, text);
	return false;
}

Cell *interp_cell(Interp *in, const Value *v)
{
	int i = pointer_map_index(&in->index, v);
	if (i < 0 && v->def &&
	    (v->def->code == OP_BUILTIN_CONSTANT || v->def->code == OP_BUILTIN_GET_PARAMETER)) {
		if (!interp_op(in, v->def))
			return NULL;
		i = pointer_map_index(&in->index, v);
	}
	return i < 0 ? NULL : &in->cells[i];
}

void interp_bind_cell(Interp *in, const Value *v, Cell cell)
{
	int i = pointer_map_index(&in->index, v);
	if (i < 0) {
		VEC_ROOM(in->arena, in->cells, in->ncell, in->ccell);
		i = in->ncell++;
		pointer_map_set_index(&in->index, v, i);
	}
	in->cells[i] = cell;
}

void cell_list_add(Interp *in, CellList *l, Cell cell)
{
	VEC_ROOM(in->temp, l->items, l->n, l->cap);
	l->items[l->n++] = cell;
}

Tensor *interp_value(Interp *in, const Value *v)
{
	Cell *c = interp_cell(in, v);
	return c ? c->tensor : NULL;
}

void interp_bind(Interp *in, const Value *v, Tensor *t)
{
	interp_bind_cell(in, v, (Cell){.tensor = t});
}

Tensor *interp_operand(Interp *in, const Op *op, int i)
{
	const Value *v = op_operand(op, i);
	Tensor *t = v ? interp_value(in, v) : NULL;
	if (!t)
		interp_error(in, op, "operand %d has no value", i);
	return t;
}

Tensor *interp_result(Interp *in, const Op *op, int i)
{
	const Value *v = &op->results[i];
	int64_t dims[MAX_RANK];
	if (v->type->kind != TY_TENSOR) {
		interp_error(in, op, "result %d is no tensor", i);
		return NULL;
	}
	for (int d = 0; d < v->type->rank; d++)
		if (!interp_size(in, op, v->type->dims[d], &dims[d]))
			return NULL;
	Tensor *t = tensor_new(in->temp, v->type->dtype, v->type->rank, dims);
	if (!t)
		interp_error(in, op, "result %d has a negative size, or is too large", i);
	else
		interp_bind(in, v, t);
	return t;
}

// ---- sizes --------------------------------------------------------------------------------------

static SymValue *find_sym(const Interp *in, const Dim *sym)
{
	for (int i = 0; i < in->nsym; i++)
		if (in->syms[i].sym == sym)
			return &in->syms[i];
	return NULL;
}

// For dim_eval: the value of a symbol, and which one was missing.
typedef struct Lookup {
	const Interp *in;
	const Dim *missing;
	const Dim *trial; // a symbol that is tried out
	int64_t trial_value;
	bool several; // more than one is missing
} Lookup;

static int64_t lookup_sym(const Dim *sym, void *arg)
{
	Lookup *l = arg;
	if (sym == l->trial)
		return l->trial_value;
	const SymValue *v = find_sym(l->in, sym);
	if (v)
		return v->value;
	l->several |= l->missing && l->missing != sym;
	l->missing = sym;
	return 1;
}

bool interp_size(Interp *in, const Op *op, const Dim *d, int64_t *out)
{
	Lookup l = {.in = in};
	bool ok = dim_eval(d, lookup_sym, &l, out);
	if (l.missing)
		return interp_error(in, op, "the size %s is not known", dim_text(in->ctx, d));
	return ok ||
	       interp_error(in, op, "the size %s overflows, or divides by zero", dim_text(in->ctx, d));
}

int64_t interp_dim(Interp *in, const Dim *d)
{
	Lookup l = {.in = in};
	int64_t v;
	return dim_eval(d, lookup_sym, &l, &v) && !l.missing ? v : -1;
}

static void set_sym(Interp *in, const Dim *sym, int64_t v, const Op *op)
{
	SymValue *s = find_sym(in, sym);
	if (!s) {
		VEC_ROOM(in->arena, in->syms, in->nsym, in->csym);
		s = &in->syms[in->nsym++];
	}
	*s = (SymValue){sym, v, op};
}

void interp_bind_dim(Interp *in, const Dim *sym, int64_t v)
{
	set_sym(in, sym, v, NULL);
}

// The value of the one missing symbol that makes d equal `value`: d is linear in it, or there is
// none.
static bool solve_sym(Interp *in, const Dim *d, const Dim *sym, int64_t value, int64_t *out)
{
	Lookup l = {.in = in, .trial = sym, .trial_value = 1};
	int64_t one, two, at;
	if (!dim_eval(d, lookup_sym, &l, &one))
		return false;
	l.trial_value = 2;
	if (!dim_eval(d, lookup_sym, &l, &two) || two == one || (value - one) % (two - one) != 0)
		return false;
	*out = l.trial_value = 1 + (value - one) / (two - one);
	return dim_eval(d, lookup_sym, &l, &at) && at == value;
}

// 1: known now and equal, or solved; 0: cannot tell yet; -1: differs; -2: one symbol is missing,
// and this size does not say which value it has (n / 2), but another one may.
static int match_dim(Interp *in, const Op *op, const Dim *d, int64_t value)
{
	Lookup l = {.in = in};
	int64_t have;
	bool ok = dim_eval(d, lookup_sym, &l, &have);
	if (!l.missing)
		return ok && have == value ? 1 : -1;
	if (l.several)
		return 0;
	if (!solve_sym(in, d, l.missing, value, &have))
		return -2;
	set_sym(in, l.missing, have, op);
	return 1;
}

// Whether the symbol that `by` found belongs to a loop that is over where op stands.
static bool found_in_other_loop(const Op *by, const Op *op)
{
	for (const Op *loop = by ? op_parent(by) : NULL; loop; loop = op_parent(loop)) {
		const Op *around = op_parent(op);
		while (around && around != loop)
			around = op_parent(around);
		if (loop->code == OP_PD_WHILE && !around)
			return true;
	}
	return op_bool(op, "anew", false);
}

bool interp_found_dim(Interp *in, const Op *op, const Dim *d, int64_t value)
{
	// In a loop the operation finds its symbol anew every time.
	SymValue *s = d->kind == DIM_SYM ? find_sym(in, d) : NULL;
	if (value < 0)
		return interp_error(in, op, "the size %s would be %lld", dim_text(in->ctx, d),
		                    (long long)value);
	if (s && (s->op == op || found_in_other_loop(s->op, op))) {
		s->value = value;
		s->op = op;
		return true;
	}
	if (match_dim(in, op, d, value) == 1)
		return true;
	int64_t have = interp_dim(in, d);
	return interp_error(in, op, "the size %s is %lld here, not %lld", dim_text(in->ctx, d),
	                    (long long)value, (long long)have);
}

static const char *shape_text(const Interp *in, const Tensor *t)
{
	Text s;
	text_init(&s, in->ctx->arena);
	text_str(&s, "[");
	for (int d = 0; d < t->rank; d++)
		text_printf(&s, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
	text_printf(&s, "] of %s", dtype_name(t->dtype));
	return s.text;
}

bool interp_found_dims(Interp *in, const Op *op, const Value *v)
{
	const Type *type = v->type;
	const Tensor *t = interp_value(in, v);
	if (type->kind != TY_TENSOR || !t)
		return true;
	if (t->rank != type->rank || t->dtype != type->dtype)
		return interp_error(in, op, "%s where the type is %s", shape_text(in, t),
		                    type_text(in->ctx, type));
	for (int d = 0; d < t->rank; d++)
		if (!interp_found_dim(in, op, type->dims[d], t->dims[d]))
			return false;
	return true;
}

// ---- capacities ---------------------------------------------------------------------------------

enum { FIRST_CAPACITY = 16, LAST_CAPACITY = 1 << 24 };

static SymValue *find_capacity(Interp *in, const Dim *sym)
{
	for (int i = 0; i < in->ncapacity; i++)
		if (in->capacities[i].sym == sym)
			return &in->capacities[i];
	VEC_ROOM(in->arena, in->capacities, in->ncapacity, in->ccapacity);
	SymValue *s = &in->capacities[in->ncapacity++];
	*s = (SymValue){sym, FIRST_CAPACITY, NULL};
	return s;
}

void interp_bind_capacity(Interp *in, const Op *op, const Dim *sym)
{
	set_sym(in, sym, find_capacity(in, sym)->value, op);
}

bool interp_no_room(Interp *in, const Op *op, const Dim *size, int64_t need)
{
	while (size->kind == DIM_MAX)
		size = dim_is_found(size->a) ? size->a : size->b;
	if (size->kind != DIM_SYM || !size->bounded || need > LAST_CAPACITY)
		return interp_error(in, op, "there is no room for %lld", (long long)need);
	SymValue *s = find_capacity(in, size);
	s->value = need > 2 * s->value ? need : 2 * s->value;
	in->no_room = true;
	return false;
}

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
	return interp_error(in, op, "input '%s' is %s; the model needs %s", op_str(op, "name", "?"),
	                    shape_text(in, t), type_text(in->ctx, op->results[0].type));
}

static bool feed_missing(Interp *in, const Op *op)
{
	const char *name = op_str(op, "name", "");
	return interp_error(in, op,
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
		interp_error(in, op, "input '%s' has %d levels of LoD; the model needs %lld",
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
			int match = match_dim(in, NULL, type->dims[d], t->dims[d]);
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
		return interp_error(in, op, "no tensor in column %lld takes these offsets", (long long)col);
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
		return interp_error(in, op, "nothing to fetch in column %lld", (long long)col);
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
		return interp_error(in, op, "parameter '%s' has no value", name);
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
		return interp_error(in, op, "the tensor is too large");
	if (tensor_bytes(t))
		memcpy(copy->data, t->data, tensor_bytes(t));
	param_set(in->ctx, op_str(op, "name", ""), copy);
	return true;
}

bool interpret_hook_constant(Interp *in, Op *op)
{
	const Attr *a = op_attr(op, "value");
	if (!a || a->kind != ATTR_TENSOR)
		return interp_error(in, op, "attribute 'value' is no tensor");
	interp_bind(in, &op->results[0], (Tensor *)(uintptr_t)a->tensor);
	return true;
}

bool interpret_hook_combine(Interp *in, Op *op)
{
	CellList *l = NEW(in->temp, CellList);
	for (int i = 0; i < op->noperand; i++) {
		Cell *c = op_operand(op, i) ? interp_cell(in, op_operand(op, i)) : NULL;
		if (!c)
			return interp_error(in, op, "element %d has no value", i);
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
		return interp_error(in, op, "no element %lld", (long long)i);
	interp_bind_cell(in, &op->results[0], c->list->items[i]);
	return true;
}

// ---- operations ---------------------------------------------------------------------------------

static Value *add_standin(Interp *in, Expansion *x, Value *v)
{
	Value *s = block_add_arg(in->ctx, x->block, v->type);
	s->known = v->known;
	s->nknown = v->nknown;
	s->name = v->name;
	x->from[x->nstandin] = v;
	x->standins[x->nstandin++] = s;
	return s;
}

// Clones what op reads and op itself onto stand-ins, so that no use of the program's values is
// added.
static Op *clone_on_standins(Interp *in, Expansion *x, const Op *op)
{
	ValueMap *map = value_map_new(in->ctx->arena);
	int count = 0;
	for (int i = 0; i < op->noperand; i++) {
		Value *const *list;
		count += op_operand(op, i) ? op_operand_list(op, i, &list) : 0;
	}
	x->from = NEW_ARRAY(in->ctx->arena, (size_t)count + 1, const Value *);
	x->standins = NEW_ARRAY(in->ctx->arena, (size_t)count + 1, Value *);
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i), *const * list;
		int n = v ? op_operand_list(op, i, &list) : 0;
		if (v && value_map_get(map, v) != v)
			continue;
		for (int k = 0; k < n; k++)
			if (value_map_get(map, list[k]) == list[k])
				value_map_set(map, list[k], add_standin(in, x, list[k]));
		if (v && v->type->kind == TY_VEC && v->def && v->def->code == OP_BUILTIN_COMBINE)
			op_append(x->block, op_clone(in->ctx, v->def, map));
	}
	Op *clone = op_clone(in->ctx, op, map);
	op_append(x->block, clone);
	return clone;
}

static Expansion *expand(Interp *in, const Op *op)
{
	int i = pointer_map_index(&in->expanded, op);
	if (i >= 0)
		return in->expansions[i];
	Expansion *x = NEW(in->ctx->arena, Expansion);
	x->block = module_block(module_new(in->ctx));
	Op *clone = clone_on_standins(in, x, op);
	Builder b = builder_at_end(in->ctx, x->block, op->loc);
	x->results = NEW_ARRAY(in->ctx->arena, (size_t)op->nresult + 1, Value *);
	if (!op_define(&b, clone, x->results))
		return NULL;
	for (int k = 0; k < op->nresult; k++)
		if (x->results[k] && x->results[k]->def == clone) {
			interp_error(in, op, "the definition of the operator is circular");
			return NULL;
		}
	op_detach(clone);
	VEC_ROOM(in->arena, in->expansions, in->nexpansion, in->cexpansion);
	pointer_map_set_index(&in->expanded, op, in->nexpansion);
	in->expansions[in->nexpansion++] = x;
	return x;
}

// Whether a definition kept to the type that inference found.
static bool check_result(Interp *in, const Op *op, int i, const Cell *c)
{
	const Type *type = op->results[i].type;
	int64_t size;
	if (type->kind != TY_TENSOR || !c->tensor)
		return true;
	bool fits = c->tensor->dtype == type->dtype && c->tensor->rank == type->rank;
	for (int d = 0; fits && d < type->rank; d++)
		fits = interp_size(in, op, type->dims[d], &size) && size == c->tensor->dims[d];
	return fits || interp_error(in, op, "the definition gives %s as result %d, the type is %s",
	                            shape_text(in, c->tensor), i, type_text(in->ctx, type));
}

static bool run_expansion(Interp *in, Op *op)
{
	Expansion *x = expand(in, op);
	if (!x)
		return false;
	for (int i = 0; i < x->nstandin; i++) {
		Cell *c = interp_cell(in, x->from[i]);
		if (!c)
			return interp_error(in, op, "an operand has no value");
		interp_bind_cell(in, x->standins[i], *c);
	}
	in->expanding++;
	bool ok = true;
	for (Op *inner = x->block->first; inner && ok; inner = inner->next)
		ok = interp_op(in, inner);
	in->expanding--;
	if (!ok)
		return false;
	for (int i = 0; i < op->nresult; i++) {
		Cell *c = x->results[i] ? interp_cell(in, x->results[i]) : NULL;
		if (c && !check_result(in, op, i, c))
			return false;
		if (c)
			interp_bind_cell(in, &op->results[i], *c);
		else if (value_used(&op->results[i]))
			return interp_error(in, op, "the definition gives no result %d", i);
	}
	return true;
}

// A view: the same data under other dims.
static bool run_view(Interp *in, Op *op)
{
	Tensor *from = interp_operand(in, op, 0), *t = NEW(in->temp, Tensor);
	const Type *type = op->results[0].type;
	if (!from)
		return false;
	t->dtype = from->dtype;
	t->rank = type->rank;
	t->data = from->data;
	for (int d = 0; d < type->rank; d++)
		if (!interp_size(in, op, type->dims[d], &t->dims[d]))
			return false;
	if (tensor_numel(t) != tensor_numel(from))
		return interp_error(in, op, "%s cannot become %s", shape_text(in, from), shape_text(in, t));
	interp_bind(in, &op->results[0], t);
	return true;
}

static bool is_view(const Op *op)
{
	const Value *x = op_operand(op, 0);
	const Type *t = op->nresult == 1 ? op->results[0].type : NULL;
	return (op->info->traits & TRAIT_VIEW) && t && t->kind == TY_TENSOR && x &&
	       x->type->kind == TY_TENSOR && t->dtype == x->type->dtype;
}

bool interp_op(Interp *in, Op *op)
{
	if (op->info->traits & TRAIT_TERMINATOR)
		return true;
	if (in->depth == MAX_EXPANSIONS)
		return interp_error(in, op, "definitions or regions are nested too deep");
	in->depth++;
	bool ok = op_functions(op)->interpret ? op_functions(op)->interpret(in, op)
	          : is_view(op)               ? run_view(in, op)
	                                      : run_expansion(in, op);
	in->depth--;
	if (!ok)
		return false;
	for (int i = 0; in->seen && !in->expanding && i < op->nresult; i++) {
		const Tensor *t = interp_value(in, &op->results[i]);
		if (t)
			in->seen(in->seen_arg, &op->results[i], t);
	}
	return true;
}
