// Operations of Paddle 3's programs. The general rule takes everything from the operator table:
// which position is which operand or attribute (attributes that are operands there become
// attributes that name variables), and what may stand in `A`. What the table does not know is
// refused by name.
#include "frontend/read/pir.h"

#include <inttypes.h>
#include <string.h>

// ---- the dialect builtin ------------------------------------------------------------------------

// What was declared under the name in this block; NULL: nothing.
static const Paddle__VarDesc *declared(const PirBlock *b, const char *name)
{
	for (size_t i = 0; i < b->desc->n_vars; i++)
		if (!strcmp(b->desc->vars[i]->name, name))
			return b->desc->vars[i];
	return NULL;
}

// Whether two types are those of the same memory.
static bool is_same_tensor(const Paddle__VarType *a, const Paddle__VarType *b)
{
	const Paddle__TensorDesc *x = a && a->lod_tensor ? a->lod_tensor->tensor : NULL,
							 *y = b && b->lod_tensor ? b->lod_tensor->tensor : NULL;
	return x && y && x->data_type == y->data_type && x->n_dims == y->n_dims &&
	       !memcmp(x->dims, y->dims, x->n_dims * sizeof *x->dims);
}

// Under its own name, which is how the file of parameters is ordered. Layers that share a parameter
// declare it once each: it is one.
static bool declare_parameter(PirReader *r, PirBlock *b, char *name, PirValue *v, bool persistable,
                              bool stop_gradient)
{
	v->vars[0] = name;
	if (name_map_get(r->names, name)) {
		const Paddle__VarDesc *before = declared(b, name);
		return (before && before->has_persistable && before->persistable == persistable &&
		        is_same_tensor(before->type, v->types[0])) ||
		       pir_fail(r, "a parameter of this name and another type was there before");
	}
	name_map_set(r->names, name, r);
	pir_declare_var(r, b, name, v->types[0]);
	Paddle__VarDesc *d = b->desc->vars[b->desc->n_vars - 1];
	d->has_persistable = d->has_stop_gradient = 1;
	d->persistable = persistable;
	d->stop_gradient = stop_gradient;
	return true;
}

// A parameter: {"#": "p", "A": [distributed, parameter, clip, name], "O": one result, "OA":
// [persistable, ...]}.
static bool parameter(PirReader *r, PirBlock *b, json_object *op)
{
	json_object *a = pir_get(op, "A", json_type_array), *o = pir_get(op, "O", json_type_object),
				*tt = NULL;
	json_object *oa = pir_get(op, "OA", json_type_array);
	json_object *name = a && json_object_array_length(a) > 3 ? json_object_array_get_idx(a, 3)
	                                                         : NULL;
	int64_t id;
	PirValue *v = NEW(r->c->arena, PirValue);
	if (!json_object_is_type(name, json_type_string) || !pir_int(o, "%", &id))
		return pir_fail(r, "a parameter has no name, or no result");
	r->at = json_object_get_string(name);
	json_object_object_get_ex(o, "TT", &tt);
	if (!pir_types(r, tt, v) || v->n != 1)
		return false;
	// The state of a dropout is no part of the file.
	const bool persistable = !oa || !json_object_array_length(oa) ||
	                         json_object_get_int(json_object_array_get_idx(oa, 0)) != 0;
	const bool stop = oa && json_object_array_length(oa) > 1 &&
	                  json_object_get_int(json_object_array_get_idx(oa, 1)) != 0;
	pir_bind(r, id, v);
	return declare_parameter(r, b, pir_text(r, name), v, persistable, stop);
}

static bool combine(PirReader *r, PirBlock *b, json_object *op)
{
	(void)b;
	json_object *in = pir_get(op, "I", json_type_array);
	size_t n = in ? json_object_array_length(in) : 0;
	PirValue *v = NEW(r->c->arena, PirValue);
	int64_t id;
	*v = (PirValue){.n = (int)n,
	                .vec = true,
	                .vars = NEW_ARRAY(r->c->arena, n, char *),
	                .types = NEW_ARRAY(r->c->arena, n, Paddle__VarType *)};
	for (size_t i = 0; i < n; i++) {
		PirValue *x = pir_id(in, i, &id) ? pir_value(r, id) : NULL;
		if (!x || x->vec || n > INT16_MAX)
			return pir_fail(r, "combines what is no tensor");
		v->vars[i] = x->vars[0];
		v->types[i] = x->types[0];
	}
	if (!pir_id(pir_get(op, "O", json_type_array), 0, &id))
		return pir_fail(r, "has no result");
	pir_bind(r, id, v);
	return true;
}

static PirValue *element_of(PirReader *r, const PirValue *v, int i)
{
	PirValue *e = NEW(r->c->arena, PirValue);
	*e = (PirValue){.n = 1, .vars = v->vars + i, .types = v->types + i};
	return e;
}

// builtin.split: every element of a vector is a result; builtin.slice: one is.
static bool take_apart(PirReader *r, json_object *op, bool all)
{
	json_object *out = pir_get(op, "O", json_type_array),
				*attrs = pir_get(op, "A", json_type_array);
	int64_t id, index = 0;
	PirValue *v = pir_id(pir_get(op, "I", json_type_array), 0, &id) ? pir_value(r, id) : NULL;
	if (!v || !v->vec || !out)
		return pir_fail(r, "takes apart what is no vector");
	if (!all && !pir_int(pir_get(attrs ? json_object_array_get_idx(attrs, 0) : NULL, "AT",
	                             json_type_object),
	                     "D", &index))
		return pir_fail(r, "names no element");
	size_t n = json_object_array_length(out);
	for (size_t i = 0; i < n; i++) {
		int64_t at = all ? (int64_t)i : index;
		if (at < 0 || at >= v->n || !pir_id(out, i, &id))
			return pir_fail(r, "a vector of %d elements has no element %" PRId64, v->n, at);
		pir_bind(r, id, element_of(r, v, (int)at));
	}
	return true;
}

static bool split(PirReader *r, PirBlock *b, json_object *op)
{
	(void)b;
	return take_apart(r, op, true);
}

static bool slice(PirReader *r, PirBlock *b, json_object *op)
{
	(void)b;
	return take_apart(r, op, false);
}

// ---- the dialect pd_op --------------------------------------------------------------------------

// Whether somebody reads them is asked by who translates them.
static bool attributes(PirReader *r, Paddle__OpDesc *d, json_object *op)
{
	json_object *list = pir_get(op, "A", json_type_array);
	bool ok = true;
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		json_object *a = json_object_array_get_idx(list, i);
		json_object *name = pir_get(a, "N", json_type_string),
					*at = pir_get(a, "AT", json_type_object);
		bool good = name && at;
		const char *key = name ? json_object_get_string(name) : "";
		Paddle__OpAttr *attr = good ? pir_attr(r, key, at, &good) : NULL;
		if (attr)
			pir_add_attr(r, d, attr);
		else if (!name || !at)
			pir_fail(r, "an attribute has no name or no value");
		ok &= good;
	}
	return ok;
}

// An operand; where the table has an attribute instead, the attribute names the variables.
static void operand(PirReader *r, Paddle__OpDesc *d, const OpInfo *info, const char *name,
                    const PirValue *v)
{
	if (!op_info_attr(info, name)) {
		pir_input(r, d, name, (size_t)v->n, v->vars);
		return;
	}
	Paddle__OpAttr *a = pir_attr_new(r, name,
	                                 v->vec ? PADDLE__ATTR_KIND__VARS : PADDLE__ATTR_KIND__VAR);
	if (v->vec) {
		a->n_vars_name = (size_t)v->n;
		a->vars_name = v->vars;
	} else {
		a->var_name = v->vars[0];
	}
	pir_add_attr(r, d, a);
}

static bool operands(PirReader *r, Paddle__OpDesc *d, const OpInfo *info, const PirMap *m,
                     json_object *op)
{
	json_object *in = pir_get(op, "I", json_type_array);
	size_t n = in ? json_object_array_length(in) : 0;
	bool ok = true;
	for (size_t i = 0; i < n; i++) {
		int64_t id;
		if (!pir_id(in, i, &id))
			return pir_fail(r, "operand %zu is no value", i);
		PirValue *v = pir_value(r, id);
		if (id && !v)
			ok = false;
		else if (v && i >= (size_t)m->nin)
			ok = pir_fail(r, "operand %zu is not known", i);
		else if (v && m->in[i])
			operand(r, d, info, m->in[i], v);
	}
	return ok;
}

// The variable that result i shares with an operand that the operation writes in place; NULL: it
// has its own. `self`: the operation's name says that it works in place, on its first operand.
static PirValue *in_place(PirReader *r, const PirMap *m, size_t i, json_object *op, bool self)
{
	int64_t id;
	if (self && !m->ninplace && i == 0 && pir_id(pir_get(op, "I", json_type_array), 0, &id))
		return pir_value(r, id);
	for (int k = 0; k < m->ninplace; k++)
		if ((size_t)m->inplace[2 * k] == i &&
		    pir_id(pir_get(op, "I", json_type_array), (size_t)m->inplace[2 * k + 1], &id))
			return pir_value(r, id);
	return NULL;
}

// Whether result i has this mark, of those that stand apart from what an operation computes.
static bool is_marked(json_object *op, const char *mark, size_t i)
{
	json_object *list = pir_get(op, "OA", json_type_array);
	for (size_t k = 0; list && k < json_object_array_length(list); k++) {
		json_object *a = json_object_array_get_idx(list, k),
					*name = pir_get(a, "N", json_type_string);
		json_object *values = pir_get(pir_get(a, "AT", json_type_object), "D", json_type_array);
		if (!name || strcmp(json_object_get_string(name), mark) != 0 || !values)
			continue;
		json_object *v = pir_get(json_object_array_get_idx(values, i), "D", json_type_boolean);
		return v && json_object_get_boolean(v);
	}
	return false;
}

bool pir_stops_gradient(json_object *op, size_t i)
{
	return is_marked(op, "stop_gradient", i);
}

// A new value for result i of an operation.
static PirValue *result_new(PirReader *r, PirBlock *b, json_object *op, json_object *o,
                            const char *stem, size_t i)
{
	json_object *tt = NULL;
	PirValue *v = NEW(r->c->arena, PirValue);
	json_object_object_get_ex(o, "TT", &tt);
	size_t first = b->desc->n_vars;
	if (!pir_types(r, tt, v) ||
	    !pir_declare(r, b, arena_printf(r->c->arena, "%s.tmp_%zu", stem, i), v))
		return NULL;
	for (size_t k = first; k < b->desc->n_vars; k++) {
		b->desc->vars[k]->has_stop_gradient = 1;
		b->desc->vars[k]->stop_gradient = pir_stops_gradient(op, i);
	}
	return v;
}

static bool results(PirReader *r, PirBlock *b, Paddle__OpDesc *d, const PirMap *m, json_object *op,
                    const char *stem, bool self)
{
	json_object *out = pir_get(op, "O", json_type_array);
	size_t n = out ? json_object_array_length(out) : 0;
	for (size_t i = 0; i < n; i++) {
		int64_t id;
		PirValue *v = in_place(r, m, i, op, self);
		if (!pir_id(out, i, &id))
			return pir_fail(r, "result %zu has no number", i);
		if (!v && !(v = result_new(r, b, op, json_object_array_get_idx(out, i), stem, i)))
			return false;
		pir_bind(r, id, v);
		// A gradient that has no type is not asked for.
		const bool typed = v->n && v->types[0];
		if (i < (size_t)m->nout && m->out[i] && (typed || !strchr(m->out[i], '@')))
			pir_output(r, d, m->out[i], (size_t)v->n, v->vars);
	}
	return true;
}

// What a failed operation should have made must not be missed again by its readers.
static void bind_results(PirReader *r, PirBlock *b, json_object *op, const char *stem)
{
	json_object *out = pir_get(op, "O", json_type_array);
	for (size_t i = 0; out && i < json_object_array_length(out); i++) {
		int64_t id;
		PirValue *v = result_new(r, b, op, json_object_array_get_idx(out, i), stem, i);
		if (v && pir_id(out, i, &id))
			pir_bind(r, id, v);
	}
}

static bool general(PirReader *r, PirBlock *b, json_object *op, const char *name)
{
	const OpInfo *info;
	const char *type = arena_printf(r->c->arena, "pd_op.%s", name), *stem = pir_stem(r, name);
	const PirMap *m = op_info_by_pir(name, &info);
	m = m ? m : pir_gradient(r, name, &info);
	if (!m) {
		bind_results(r, b, op, stem);
		return pir_fail(r, "operator '%s' is not supported", type);
	}
	// An operation that has a name of its own in place is the same one.
	Paddle__OpDesc *d = pir_append(r, b, m->map.type);
	bool ok = operands(r, d, info, m, op);
	ok &= attributes(r, d, op);
	return results(r, b, d, m, op, stem, name[strlen(name) - 1] == '_') && ok;
}

// ---- inputs and outputs -------------------------------------------------------------------------

static json_object *attribute(json_object *op, const char *name)
{
	json_object *list = pir_get(op, "A", json_type_array);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		json_object *a = json_object_array_get_idx(list, i), *n = pir_get(a, "N", json_type_string);
		if (n && strcmp(json_object_get_string(n), name) == 0)
			return pir_get(a, "AT", json_type_object);
	}
	return NULL;
}

static void add_column(PirReader *r, Paddle__OpDesc *d, int64_t col)
{
	Paddle__OpAttr *a = pir_attr_new(r, "col", PADDLE__ATTR_KIND__LONG);
	a->has_l = 1;
	a->l = col;
	pir_add_attr(r, d, a);
}

// An input: a feed of the variable that bears its name. One that is kept from run to run (a
// learning rate, what an optimiser knows of a parameter) is a parameter: Paddle saves and loads it
// as such.
static bool data(PirReader *r, PirBlock *b, json_object *op)
{
	json_object *name = pir_get(attribute(op, "name"), "D", json_type_string),
				*out = pir_get(op, "O", json_type_array);
	json_object *o = out ? json_object_array_get_idx(out, 0) : NULL, *tt = NULL;
	PirValue *v = NEW(r->c->arena, PirValue);
	int64_t id;
	if (!name || !pir_id(out, 0, &id))
		return pir_fail(r, "an input has no name, or no result");
	json_object_object_get_ex(o, "TT", &tt);
	if (!pir_types(r, tt, v) || v->vec)
		return pir_fail(r, "input '%s' is no tensor", json_object_get_string(name));
	char *var = pir_text(r, name);
	if (name_map_get(r->names, var))
		return pir_fail(r, "there are two inputs or parameters called '%s'", var);
	pir_bind(r, id, v);
	if (is_marked(op, "persistable", 0))
		return declare_parameter(r, b, var, v, true, pir_stops_gradient(op, 0));
	pir_declare(r, b, var, v);
	b->desc->vars[b->desc->n_vars - 1]->has_stop_gradient = 1;
	b->desc->vars[b->desc->n_vars - 1]->stop_gradient = pir_stops_gradient(op, 0);
	Paddle__OpDesc *d = pir_append(r, b, "feed");
	pir_output(r, d, "Out", 1, v->vars);
	add_column(r, d, r->nfeed++);
	return true;
}

// An output, under the name that it is fetched by.
static bool fetch(PirReader *r, PirBlock *b, json_object *op)
{
	json_object *name = pir_get(attribute(op, "name"), "D", json_type_string);
	int64_t id, col;
	PirValue *v = pir_id(pir_get(op, "I", json_type_array), 0, &id) ? pir_value(r, id) : NULL;
	if (!v || v->vec)
		return pir_fail(r, "fetches what is no tensor");
	if (!name || !pir_int(attribute(op, "col"), "D", &col))
		return pir_fail(r, "an output has no name, or no column");
	PirValue *out = element_of(r, v, 0);
	out->vars = NEW(r->c->arena, char *);
	pir_declare(r, b, json_object_get_string(name), out);
	pir_assign(r, b, v->vars[0], out->vars[0]);
	Paddle__OpDesc *d = pir_append(r, b, "fetch");
	pir_input(r, d, "X", 1, out->vars);
	add_column(r, d, col);
	Paddle__OpAttr *called = pir_attr_new(r, "name", PADDLE__ATTR_KIND__STRING);
	called->s = pir_text(r, name);
	pir_add_attr(r, d, called);
	return true;
}

// An array is a variable that holds nothing until it is written; each time that its block runs it
// is a new one.
static bool create_array(PirReader *r, PirBlock *b, json_object *op)
{
	json_object *out = pir_get(op, "O", json_type_array), *tt = NULL;
	PirValue *v = NEW(r->c->arena, PirValue);
	int64_t id;
	if (!pir_id(out, 0, &id))
		return pir_fail(r, "has no result");
	json_object_object_get_ex(json_object_array_get_idx(out, 0), "TT", &tt);
	if (!pir_types(r, tt, v) || v->vec || !v->types[0] ||
	    v->types[0]->type != PADDLE__VAR_KIND__LOD_TENSOR_ARRAY)
		return pir_fail(r, "makes what is no array");
	pir_declare(r, b, pir_stem(r, "array"), v);
	pir_bind(r, id, v);
	return true;
}

// Operators of Paddle's own dialects that are read apart.
static const struct {
	const char *name;
	PirForm *read;
} forms[] = {
	{"p", parameter},
	{"0.combine", combine},
	{"0.split", split},
	{"0.slice", slice},
	{"1.data", data},
	{"1.fetch", fetch},
	{"1.create_array", create_array},
	{"1.pylayer", pir_pylayer},
	{"1.if", pir_if},
	{"1.while", pir_while},
};

bool pir_op(PirReader *r, PirBlock *b, json_object *op)
{
	json_object *n = pir_get(op, "#", json_type_string);
	const char *name = n ? json_object_get_string(n) : "";
	r->at = pir_copy(r, name);
	for (size_t i = 0; i < COUNT_OF(forms); i++)
		if (strcmp(name, forms[i].name) == 0)
			return forms[i].read(r, b, op);
	if (strncmp(name, "1.", 2) == 0)
		return general(r, b, op, name + 2);
	return pir_fail(r, "operator '%s' is not supported", name);
}
