// Inputs and outputs of the model. Used by translate.c.
#include "frontend/control/control.h"
#include "frontend/job/array_types.h"
#include "frontend/job/lod.h"
#include "frontend/job/variant.h"
#include "frontend/translate/steps.h"
#include "frontend/translate/translate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void warn_of_rank(Translator *t, const ShapePin *pin)
{
	const Binding *b = scope_find(t, pin->name);
	const Paddle__TensorDesc *d = b && b->desc ? var_tensor(b->desc) : NULL;
	if (d && (int)d->n_dims != pin->rank)
		diag_warning(t->c->diag, &(Loc){.file = t->c->file, .block = -1, .op = -1},
		             "input '%s' has %zu axes in the file; this is for %d", pin->name, d->n_dims,
		             pin->rank);
}

// "; its inputs are 'x', 'y'".
static const char *inputs_text(Translator *t)
{
	Text names;
	text_init(&names, t->c->arena);
	for (const Op *op = module_block(t->module)->first; op; op = op->next)
		if (op->code == OP_PD_FEED)
			text_printf(&names, "%s'%s'", names.len ? ", " : "; its inputs are ",
			            op_str(op, "name", "?"));
	return names.len ? names.text : "";
}

// Every --shape must name an input.
bool check_pins(Translator *t)
{
	bool ok = true;
	for (int i = 0; t->o && i < t->o->npins; i++) {
		if (name_map_get(t->columns, arena_printf(t->c->arena, "fed %s", t->o->pins[i].name))) {
			warn_of_rank(t, &t->o->pins[i]);
			continue;
		}
		diag_error(t->c->diag, &(Loc){.file = t->c->file, .block = -1, .op = -1},
		           "--shape %s: the model has no such input%s", t->o->pins[i].name, inputs_text(t));
		ok = false;
	}
	return ok;
}

// ---- feed -----------------------------------------------------------------------------------

// Notes that a column is in use; false after a diagnostic when it was before.
static bool take_column(OpJob *j, const char *what, int64_t col)
{
	const char *key = arena_printf(j->t->c->arena, "%s %" PRId64, what, col);
	if (col < 0 || col > INT16_MAX)
		return job_fail(j, "%" PRId64 " is no column", col);
	if (name_map_get(j->t->columns, key))
		return job_fail(j, "column %" PRId64 " is used twice", col);
	name_map_set(j->t->columns, key, j->t);
	return true;
}

static Value *make_feed(OpJob *j, const Paddle__VarDesc *v, int64_t col)
{
	Context *c = j->t->c;
	bool array = v->type->type == PADDLE__VAR_KIND__LOD_TENSOR_ARRAY;
	const Type *type = array ? array_type(j->t, v) : var_type(j, v, v->name);
	if (!type || !take_column(j, "feed", col))
		return NULL;
	name_map_set(j->t->columns, arena_printf(c->arena, "fed %s", v->name), j->t);
	Op *op = op_new(c, OP_PD_FEED, j->b.loc, 1, &type, 0, NULL, 0, 0);
	op_set_attr(op, "name", attr_str(c, v->name));
	op_set_attr(op, "col", attr_int(c, col));
	op_append(j->t->block, op);
	lod_feed(j->t, op, var_lod_level(v));
	return op_result(op, 0);
}

Value *feed_implicit(OpJob *j, const Paddle__VarDesc *v)
{
	return make_feed(j, v, j->t->nfeed++);
}

bool feed_translate(OpJob *j)
{
	const Paddle__OpSlot *s = slot_find(j->desc->n_outputs, j->desc->outputs, "Out");
	const Paddle__OpAttr *a = attr_find(j->desc, "col");
	const char *var = slot_var(s, 0);
	int64_t col = 0;
	if (!var)
		return job_fail(j, "feeds no variable");
	if (a && !attr_int_at(a, 0, &col))
		return job_fail(j, "attribute 'col' is no integer");
	const Binding *b = scope_find(j->t, var);
	if (!b || !b->desc)
		return job_fail(j, "feeds variable '%s', which is not declared", var);
	Value *v = make_feed(j, b->desc, col);
	if (v)
		write_var(j, var, v);
	return v != NULL;
}

// Whether the attributes `shape` and `dtype`, where they are there, are what the variable declares.
static bool data_fits(const OpJob *j, const Paddle__TensorDesc *d)
{
	const Paddle__OpAttr *shape = attr_find(j->desc, "shape"), *dtype = attr_find(j->desc, "dtype");
	int64_t v;
	bool same = (!dtype || (attr_int_at(dtype, 0, &v) && v == (int64_t)d->data_type)) &&
	            (!shape || attr_count(shape) == (int)d->n_dims);
	for (size_t i = 0; same && shape && i < d->n_dims; i++)
		same = attr_int_at(shape, (int)i, &v) && (v == d->dims[i] || (v < 0 && d->dims[i] < 0));
	return same;
}

// The same inputs in the order of their operators; `shape` and `dtype` must be what the variable
// declares.
bool data_translate(OpJob *j)
{
	const char *var = output_var(j, "out");
	const Paddle__OpAttr *name = attr_find(j->desc, "name");
	const Binding *b = var ? scope_find(j->t, var) : NULL;
	const Paddle__TensorDesc *d = b && b->desc ? var_tensor(b->desc) : NULL;
	if (!d)
		return job_fail(j, "gives no tensor variable that is declared");
	if (!data_fits(j, d))
		return job_fail(j, "variable '%s' is not declared with its shape and element type", var);
	if (j->t->top)
		return job_fail(j, "is in a sub-block: not supported");
	Value *value = make_feed(j, b->desc, j->t->nfeed++);
	if (value && name && name->s)
		op_set_attr(value->def, "name", attr_str(j->t->c, name->s));
	if (value)
		write_var(j, var, value);
	return value != NULL;
}

// ---- fetch ----------------------------------------------------------------------------------

static Op *make_fetch(OpJob *j, const char *name, Value *v, int64_t col)
{
	Context *c = j->t->c;
	Op *op = op_new(c, OP_PD_FETCH, j->b.loc, 0, NULL, 1, &v, 0, 0);
	op_set_attr(op, "name", attr_str(c, name));
	op_set_attr(op, "col", attr_int(c, col));
	op_append(j->t->block, op);
	return op;
}

// A value of several types: each comes out, and which of them it is. All but the first get columns
// behind the others.
static void fetch_types(OpJob *j, const char *name, const Value *v, int64_t col)
{
	Context *c = j->t->c;
	for (int k = 1; k <= v->def->noperand; k++) {
		const bool which = k == v->def->noperand;
		Op *op = make_fetch(j, name, op_operand(v->def, which ? 0 : k), k == 1 ? col : -1);
		op_set_attr(op, "part", attr_str(c, which ? "which" : "type"));
		op_set_attr(op, "of", attr_int(c, col));
		op_set_attr(op, "level", attr_int(c, which ? 0 : k - 1));
	}
}

bool fetch_translate(OpJob *j, const char *var, const char *name, int64_t col)
{
	Value *v = read_any(j, "X", var);
	if (!v || !take_column(j, "fetch", col))
		return false;
	if (is_mixed(v))
		return job_fail(j, "fetches array '%s', which has elements of several types: not supported",
		                var);
	if (is_variant(v)) {
		fetch_types(j, name, v, col);
		return true;
	}
	make_fetch(j, name, v, col);
	return lod_fetch(j, var, v, col);
}
