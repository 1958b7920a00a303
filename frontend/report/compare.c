// What two modules differ in: ports and parameters by their names, operators aligned in order.
//
// Operators are aligned by what they are (type, attributes, types of results) first, then, between
// those that are equal, by type alone; what reads other values than its partner has changed, too.
// Names of variables do not count, for frameworks number them anew with each operator put in.
#include "frontend/report/report.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"

#include <string.h>

typedef struct Comparer {
	Arena *arena;
	Context *a, *b;
	PointerMap partners; // of operations of a
	Comparison *result;
} Comparer;

static Difference *difference_add(Comparer *w, Differences *d, char sign, const char *name)
{
	VEC_ROOM(w->arena, d->list, d->n, d->cap);
	d->list[d->n] = (Difference){.sign = sign, .name = name};
	return &d->list[d->n++];
}

static void detail_add(Comparer *w, Difference *d, const char *what, const char *from,
                       const char *to)
{
	VEC_ROOM(w->arena, d->details, d->ndetail, d->cap);
	d->details[d->ndetail++] = (Detail){what, from, to};
}

// ---- parameters ---------------------------------------------------------------------------------

static const char *tensor_type(Comparer *w, const Tensor *t)
{
	Text text;
	text_init(&text, w->arena);
	text_printf(&text, "%s [", dtype_name(t->dtype));
	for (int i = 0; i < t->rank; i++)
		text_printf(&text, "%s%lld", i ? " x " : "", (long long)t->dims[i]);
	text_char(&text, ']');
	return text.text;
}

// How many elements differ in their bytes.
static const char *values_difference(Comparer *w, const Tensor *a, const Tensor *b)
{
	const size_t size = dtype_size(a->dtype);
	const int64_t n = tensor_numel(a);
	int64_t differ = 0;
	if (!tensor_bytes(a) || !memcmp(a->data, b->data, tensor_bytes(a)))
		return NULL;
	for (int64_t i = 0; i < n; i++)
		differ += memcmp((const char *)a->data + (size_t)i * size,
		                 (const char *)b->data + (size_t)i * size, size) != 0;
	return arena_printf(w->arena, "%lld of %lld elements", (long long)differ, (long long)n);
}

static void parameter_compare(const char *name, Tensor *a, void *arg)
{
	Comparer *w = arg;
	Differences *d = &w->result->parameters;
	const Tensor *b = param_get(w->b, name);
	const char *from = tensor_type(w, a), *to = b ? tensor_type(w, b) : NULL;
	if (!b) {
		difference_add(w, d, '-', name)->type = from;
		return;
	}
	if (strcmp(from, to) != 0) {
		detail_add(w, difference_add(w, d, '~', name), "type", from, to);
		return;
	}
	const char *how = values_difference(w, a, b);
	if (how)
		detail_add(w, difference_add(w, d, '~', name), "values", "", how);
}

static void parameter_new(const char *name, Tensor *b, void *arg)
{
	Comparer *w = arg;
	if (!param_get(w->a, name))
		difference_add(w, &w->result->parameters, '+', name)->type = tensor_type(w, b);
}

// ---- values -------------------------------------------------------------------------------------

static bool has_name(const Value *v)
{
	return v->def && (v->def->code == OP_BUILTIN_GET_PARAMETER || v->def->code == OP_PD_FEED);
}

static bool value_is_partner(const Comparer *w, const Value *a, const Value *b)
{
	if (!a || !b)
		return a == b;
	if (a->index != b->index || !a->def != !b->def)
		return false;
	if (has_name(a) || has_name(b))
		return has_name(a) && has_name(b) && a->def->code == b->def->code &&
		       !strcmp(op_str(a->def, "name", ""), op_str(b->def, "name", ""));
	if (a->def)
		return pointer_map_get(&w->partners, a->def) == b->def;
	const Op *x = value_op(a), *y = value_op(b);
	return x && pointer_map_get(&w->partners, x) == y &&
	       a->block->region - x->regions == b->block->region - y->regions;
}

static const char *value_text(Comparer *w, const Value *v)
{
	if (!v)
		return "none";
	if (has_name(v))
		return arena_printf(w->arena, "%s '%s'", v->def->code == OP_PD_FEED ? "input" : "parameter",
		                    op_str(v->def, "name", ""));
	if (v->name)
		return arena_printf(w->arena, "'%s'", v->name);
	return arena_printf(w->arena, v->def ? "a result of %s" : "an argument of %s",
	                    value_op(v) ? value_op(v)->info->short_name : "the program");
}

// What is fetched often has the output's name: the operator says what differs.
static const char *fetched_text(Comparer *w, const Value *v)
{
	const char *text = value_text(w, v);
	return v && v->name && v->def && !has_name(v)
	           ? arena_printf(w->arena, "%s of %s", text, v->def->info->short_name)
	           : text;
}

// ---- operators ----------------------------------------------------------------------------------

// Ports and parameters have lists of their own.
static bool is_listed(const Op *op)
{
	return op->code != OP_BUILTIN_GET_PARAMETER && op->code != OP_PD_FEED &&
	       op->code != OP_PD_FETCH;
}

static const char *attr_text(Comparer *w, const Attr *a)
{
	Text t;
	text_init(&t, w->arena);
	if (a)
		attr_print(&t, a);
	else
		text_str(&t, "unset");
	return t.text;
}

static void attrs_compare(Comparer *w, Difference *d, const Op *a, const Op *b)
{
	for (int i = 0, k = 0; i < a->nattr || k < b->nattr;) {
		const int order = i == a->nattr   ? 1
		                  : k == b->nattr ? -1
		                                  : strcmp(a->attrs[i].name, b->attrs[k].name);
		const char *name = order <= 0 ? a->attrs[i].name : b->attrs[k].name;
		const char *from = attr_text(w, order <= 0 ? a->attrs[i++].attr : NULL);
		const char *to = attr_text(w, order >= 0 ? b->attrs[k++].attr : NULL);
		if (strcmp(from, to) != 0)
			detail_add(w, d, name, from, to);
	}
}

static void results_compare(Comparer *w, Difference *d, const Op *a, const Op *b)
{
	for (int i = 0; i < a->nresult || i < b->nresult; i++) {
		const char *from = i < a->nresult ? type_text(w->a, a->results[i].type) : "none";
		const char *to = i < b->nresult ? type_text(w->b, b->results[i].type) : "none";
		if (strcmp(from, to) != 0)
			detail_add(w, d,
			           i < a->info->nresult ? a->info->results[i]
			                                : arena_printf(w->arena, "result %d", i),
			           from, to);
	}
}

static void operands_compare(Comparer *w, Difference *d, const Op *a, const Op *b)
{
	for (int i = 0; i < a->noperand || i < b->noperand; i++) {
		const Value *x = op_operand(a, i), *y = op_operand(b, i);
		if (!value_is_partner(w, x, y))
			detail_add(w, d,
			           i < a->info->noperand ? a->info->operands[i].name
			                                 : arena_printf(w->arena, "operand %d", i),
			           value_text(w, x), value_text(w, y));
	}
}

static const char *made_name(const Op *op)
{
	return op->nresult ? op->results[0].name : NULL;
}

static void alone_add(Comparer *w, char sign, const Op *op)
{
	Difference *d = difference_add(w, &w->result->operators, sign, op->info->short_name);
	*(sign == '-' ? &d->from : &d->to) = op->loc;
	*(sign == '-' ? &d->from_var : &d->to_var) = made_name(op);
}

static void regions_compare(Comparer *w, const Op *a, const Op *b);

static void pair_compare(Comparer *w, const Op *a, const Op *b)
{
	Difference d = {.sign = '~',
	                .name = a->info->short_name,
	                .from = a->loc,
	                .to = b->loc,
	                .from_var = made_name(a),
	                .to_var = made_name(b)};
	attrs_compare(w, &d, a, b);
	operands_compare(w, &d, a, b);
	results_compare(w, &d, a, b);
	if (a->nregion != b->nregion)
		detail_add(w, &d, "regions", arena_printf(w->arena, "%d", a->nregion),
		           arena_printf(w->arena, "%d", b->nregion));
	if (d.ndetail)
		*difference_add(w, &w->result->operators, '~', d.name) = d;
	regions_compare(w, a, b);
}

// Operations of a block, what they are as unique texts, and their types alone.
typedef struct OpList {
	int n;
	const Op **ops;
	const void **whole, **kinds;
} OpList;

static OpList ops_of(Comparer *w, Context *c, const Block *block)
{
	OpList l = {0};
	int max = 1;
	for (const Op *op = block ? block->first : NULL; op; op = op->next)
		max++;
	l.ops = NEW_ARRAY(w->arena, (size_t)max, const Op *);
	l.whole = NEW_ARRAY(w->arena, (size_t)max, const void *);
	l.kinds = NEW_ARRAY(w->arena, (size_t)max, const void *);
	for (const Op *op = block ? block->first : NULL; op; op = op->next) {
		if (!is_listed(op))
			continue;
		Text t;
		text_init(&t, w->arena);
		text_str(&t, op->info->name);
		for (int i = 0; i < op->nattr; i++)
			text_printf(&t, "\n%s %s", op->attrs[i].name, attr_text(w, op->attrs[i].attr));
		for (int i = 0; i < op->nresult; i++)
			text_printf(&t, "\n%s", type_text(c, op->results[i].type));
		l.whole[l.n] = context_str(w->a, t.text);
		l.kinds[l.n] = op->info;
		l.ops[l.n++] = op;
	}
	return l;
}

// Between those that are equal, what is of one kind is paired.
static void gaps_align(Comparer *w, const OpList *a, const OpList *b, int *match)
{
	for (int i = 0, k = 0; i <= a->n; i++) {
		if (i < a->n && match[i] < 0)
			continue;
		int begin = i;
		while (begin > 0 && match[begin - 1] < 0)
			begin--;
		const int end = i < a->n ? match[i] : b->n, from = k;
		k = end + 1;
		if (begin == i || from == end)
			continue;
		int *found = NEW_ARRAY(w->arena, (size_t)(i - begin) + 1, int);
		sequences_align(w->arena, i - begin, a->kinds + begin, end - from, b->kinds + from, found);
		for (int l = begin; l < i; l++)
			match[l] = found[l - begin] < 0 ? -1 : found[l - begin] + from;
	}
}

static void blocks_compare(Comparer *w, const Block *x, const Block *y)
{
	const OpList a = ops_of(w, w->a, x), b = ops_of(w, w->b, y);
	int *match = NEW_ARRAY(w->arena, (size_t)a.n + 1, int);
	sequences_align(w->arena, a.n, a.whole, b.n, b.whole, match);
	gaps_align(w, &a, &b, match);
	for (int i = 0; i < a.n; i++)
		if (match[i] >= 0)
			pointer_map_set(&w->partners, a.ops[i], b.ops[match[i]]);
	int k = 0;
	for (int i = 0; i < a.n; i++) {
		if (match[i] < 0) {
			alone_add(w, '-', a.ops[i]);
			continue;
		}
		for (; k < match[i]; k++)
			alone_add(w, '+', b.ops[k]);
		pair_compare(w, a.ops[i], b.ops[k++]);
	}
	for (; k < b.n; k++)
		alone_add(w, '+', b.ops[k]);
}

static void regions_compare(Comparer *w, const Op *a, const Op *b)
{
	for (int i = 0; i < a->nregion && i < b->nregion; i++)
		blocks_compare(w, region_entry(&a->regions[i]), region_entry(&b->regions[i]));
}

// ---- ports --------------------------------------------------------------------------------------

static const Value *port_value(const Op *op)
{
	return op->code == OP_PD_FEED ? &op->results[0] : op_operand(op, 0);
}

static void ports_compare(Comparer *w, Op *a, Op *b, enum OpCode code, Differences *list)
{
	for (const Op *op = module_block(a)->first; op; op = op->next) {
		const char *name = op->code == code ? op_str(op, "name", "") : NULL;
		const Op *other = name ? module_find(b, code, name) : NULL;
		const char *from = name ? type_text(w->a, port_value(op)->type) : NULL;
		if (!name)
			continue;
		if (!other) {
			difference_add(w, list, '-', name)->type = from;
			continue;
		}
		Difference d = {.sign = '~', .name = name};
		const char *to = type_text(w->b, port_value(other)->type);
		if (strcmp(from, to) != 0)
			detail_add(w, &d, "type", from, to);
		attrs_compare(w, &d, op, other);
		if (code == OP_PD_FETCH && !value_is_partner(w, op_operand(op, 0), op_operand(other, 0)))
			detail_add(w, &d, "value", fetched_text(w, op_operand(op, 0)),
			           fetched_text(w, op_operand(other, 0)));
		if (d.ndetail)
			*difference_add(w, list, '~', name) = d;
	}
	for (const Op *op = module_block(b)->first; op; op = op->next)
		if (op->code == code && !module_find(a, code, op_str(op, "name", "")))
			difference_add(w, list, '+', op_str(op, "name", ""))->type = type_text(
				w->b, port_value(op)->type);
}

void modules_compare(Arena *arena, Op *a, Op *b, Comparison *result)
{
	*result = (Comparison){0};
	Comparer w = {.arena = arena, .a = a->ctx, .b = b->ctx, .result = result};
	pointer_map_init(&w.partners, arena);
	blocks_compare(&w, module_block(a), module_block(b));
	ports_compare(&w, a, b, OP_PD_FEED, &result->inputs);
	ports_compare(&w, a, b, OP_PD_FETCH, &result->outputs);
	param_each(w.a, parameter_compare, &w);
	param_each(w.b, parameter_new, &w);
}
