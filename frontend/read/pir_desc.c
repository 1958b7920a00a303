// Descriptors out of Paddle 3's programs: variables for values, operators with their slots and
// attributes. pir_op.c, pir_flow.c and pir_read.c fill a program with them.
#include "frontend/read/pir.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <string.h>

// ---- values and variables ---------------------------------------------------------------------

static const char *id_key(PirReader *r, int64_t id)
{
	return arena_printf(r->c->arena, "%" PRId64, id);
}

bool pir_id(json_object *list, size_t i, int64_t *id)
{
	return json_object_is_type(list, json_type_array) && i < json_object_array_length(list) &&
	       pir_int(json_object_array_get_idx(list, i), "%", id);
}

PirValue *pir_value(PirReader *r, int64_t id)
{
	PirValue *v = id ? name_map_get(r->values, id_key(r, id)) : NULL;
	if (id && !v)
		pir_fail(r, "reads value %" PRId64 ", which nothing before has made", id);
	return v;
}

void pir_bind(PirReader *r, int64_t id, PirValue *v)
{
	name_map_set(r->values, id_key(r, id), v);
}

char *pir_name(PirReader *r, const char *stem)
{
	char *name = pir_copy(r, stem);
	for (int i = 1; name_map_get(r->names, name); i++)
		name = arena_printf(r->c->arena, "%s.%d", stem, i);
	name_map_set(r->names, name, r);
	return name;
}

const char *pir_stem(PirReader *r, const char *operation)
{
	char *key = pir_copy(r, operation);
	size_t n = strlen(key);
	if (n > 1 && key[n - 1] == '_')
		key[n - 1] = 0;
	uintptr_t count = (uintptr_t)name_map_get(r->counts, key);
	name_map_set(r->counts, key, (void *)(count + 1));
	return arena_printf(r->c->arena, "%s_%" PRIuPTR, key, count);
}

void pir_declare_var(PirReader *r, PirBlock *b, char *name, Paddle__VarType *type)
{
	Paddle__VarDesc *v = NEW(r->c->arena, Paddle__VarDesc);
	paddle__var_desc__init(v);
	v->name = name;
	v->type = type;
	if (!type) {
		v->type = NEW(r->c->arena, Paddle__VarType);
		paddle__var_type__init(v->type);
		v->type->type = PADDLE__VAR_KIND__LOD_TENSOR;
	}
	VEC_ROOM(r->c->arena, b->desc->vars, b->desc->n_vars, b->cvars);
	b->desc->vars[b->desc->n_vars++] = v;
}

bool pir_declare(PirReader *r, PirBlock *b, const char *stem, PirValue *v)
{
	for (int i = 0; i < v->n; i++) {
		v->vars[i] = pir_name(r, v->vec ? arena_printf(r->c->arena, "%s.%d", stem, i) : stem);
		pir_declare_var(r, b, v->vars[i], v->types[i]);
	}
	return true;
}

// ---- operators --------------------------------------------------------------------------------

Paddle__OpDesc *pir_append(PirReader *r, PirBlock *b, const char *type)
{
	Paddle__OpDesc *d = NEW(r->c->arena, Paddle__OpDesc);
	paddle__op_desc__init(d);
	d->type = pir_copy(r, type);
	VEC_ROOM(r->c->arena, b->desc->ops, b->desc->n_ops, b->cops);
	b->desc->ops[b->desc->n_ops++] = d;
	return d;
}

static Paddle__OpSlot *slot_new(PirReader *r, const char *name, size_t n, char **vars)
{
	Paddle__OpSlot *s = NEW(r->c->arena, Paddle__OpSlot);
	paddle__op_slot__init(s);
	s->parameter = pir_copy(r, name);
	s->n_arguments = n;
	s->arguments = vars;
	return s;
}

// Lists of an operator are short: one more each time costs nothing.
static void *one_more(PirReader *r, void *list, size_t n)
{
	void **more = NEW_ARRAY(r->c->arena, n + 1, void *);
	if (n)
		memcpy(more, list, n * sizeof *more);
	return more;
}

void pir_input(PirReader *r, Paddle__OpDesc *d, const char *slot, size_t n, char **vars)
{
	d->inputs = one_more(r, d->inputs, d->n_inputs);
	d->inputs[d->n_inputs++] = slot_new(r, slot, n, vars);
}

void pir_output(PirReader *r, Paddle__OpDesc *d, const char *slot, size_t n, char **vars)
{
	d->outputs = one_more(r, d->outputs, d->n_outputs);
	d->outputs[d->n_outputs++] = slot_new(r, slot, n, vars);
}

void pir_add_attr(PirReader *r, Paddle__OpDesc *d, Paddle__OpAttr *a)
{
	d->attrs = one_more(r, d->attrs, d->n_attrs);
	d->attrs[d->n_attrs++] = a;
}

void pir_assign(PirReader *r, PirBlock *b, char *from, char *to)
{
	char **vars = NEW_ARRAY(r->c->arena, 2, char *);
	vars[0] = from;
	vars[1] = to;
	Paddle__OpDesc *d = pir_append(r, b, "pd_op.assign");
	pir_input(r, d, "x", 1, vars);
	pir_output(r, d, "out", 1, vars + 1);
}
