// The general rule: an operation of ours is the one of Paddle 3 whose `pir:` row says all that it
// has. Operands by position, attributes in the kinds that Paddle declares; what is an attribute
// here and an operand there is written in front.
#include "frontend/write/pir_out_form.h"

#include <string.h>

// A list of sizes; one that the run tells may be what is left of the operand.
static int64_t sizes_operand(Form *f, const AttrInfo *a, const Attr *v)
{
	PirWriter *w = f->w;
	int64_t *ints = NEW_ARRAY(w->c->arena, (size_t)v->n + 1, int64_t);
	int open = 0;
	for (int i = 0; i < v->n; i++) {
		ints[i] = dim_is_const(v->dims[i]) ? v->dims[i]->value : -1;
		open += ints[i] == -1;
	}
	const bool rest = f->m->rest && !strcmp(f->m->rest, a->name);
	for (int i = 0; i < v->n; i++)
		if (!dim_is_const(v->dims[i]) && !(rest && open == 1))
			return out_sizes(w, v->n, v->dims);
	return out_int_array(w, v->n, ints);
}

static int64_t ints_operand(Form *f, const AttrInfo *a, const Attr *v)
{
	if (v->kind == ATTR_DIMS)
		return sizes_operand(f, a, v);
	if (v->kind == ATTR_INTS)
		return out_int_array(f->w, v->n, v->ints);
	if (v->kind == ATTR_INT)
		return out_int_array(f->w, 1, &v->i);
	return v->kind == ATTR_DIM ? out_sizes(f->w, 1, &v->dim) : 0;
}

static int64_t number_operand(Form *f, const Attr *v)
{
	Context *c = f->w->c;
	const bool list = v->kind == ATTR_DIMS || v->kind == ATTR_INTS;
	if (list && v->n != 1) // a number for each place along an axis
		return v->kind == ATTR_INTS ? out_int_array(f->w, v->n, v->ints) : 0;
	const Dim *d = v->kind == ATTR_DIMS ? v->dims[0] : v->kind == ATTR_DIM ? v->dim : NULL;
	if (d && !dim_is_const(d))
		return out_size(f->w, d);
	const int64_t i = d ? d->value : list ? v->ints[0] : v->i;
	if (v->kind != ATTR_FLOAT)
		return out_full(f->w, 1, i == (int32_t)i ? DT_I32 : DT_I64, attr_int(c, i));
	return out_full(f->w, 1, v->f == (double)(float)v->f ? DT_F32 : DT_F64, v);
}

static int64_t value_operand(Form *f, const PirArg *arg, const Value *v)
{
	PirWriter *w = f->w;
	if (v->type->kind == TY_VEC && arg->kind == PIR_INTS)
		return out_gathered(w, v);
	if ((v->type->kind == TY_VEC) == arg->vec)
		return out_number(w, v);
	OutOp *o = out_new(w, arg->vec ? "0.combine" : "0.slice", 1, 1);
	o->in[0] = out_number(w, v);
	o->out[0].type = arg->vec ? type_group(w->c, TY_VEC, 1, &v->type) : v->type->elems[0];
	if (!arg->vec)
		out_attr_int(o, "index", PIR_I32, 0);
	if (arg->vec || v->type->nelem == 1)
		return out_op(w, o);
	out_fail(w, "%d values as one operand", v->type->nelem);
	return 0;
}

// An operand that Paddle wants and nobody reads.
static int64_t nothing(PirWriter *w, const PirArg *arg)
{
	if (!arg->vec)
		return out_full(w, 1, DT_F32, attr_int(w->c, 0));
	OutOp *o = out_new(w, "0.combine", 0, 1);
	o->out[0].type = type_group(w->c, TY_VEC, 0, NULL);
	return out_op(w, o);
}

static int64_t operand_number(Form *f, int i)
{
	const PirArg *arg = &f->d->in[i];
	const char *ours = i < f->m->nin ? f->m->in[i] : NULL;
	const int index = ours ? op_info_operand(f->op->info, ours) : -1;
	const AttrInfo *a = ours && index < 0 ? op_info_attr(f->op->info, ours) : NULL;
	int over;
	const Value *v = index >= 0 ? op_operand(f->op, index)
	                 : a        ? form_overriding(f->op, a, &over)
	                            : NULL;
	if (v)
		return value_operand(f, arg, v);
	const Attr *held = a ? form_reduced_axes(f, a) : NULL;
	if (!held)
		return arg->optional ? 0 : nothing(f->w, arg);
	const int64_t n = arg->kind == PIR_INTS ? ints_operand(f, a, held) : number_operand(f, held);
	if (!n)
		out_fail(f->w, "attribute '%s' is no operand", ours);
	return n;
}

// Whether result `name` is what becomes of an operand ("param_out" of "param") that is left out.
static bool of_absent_operand(const Form *f, const OutOp *o, const char *name)
{
	for (int i = 0; i < f->d->nin && i < o->nin; i++) {
		const size_t n = strlen(f->d->in[i].name);
		if (!o->in[i] && !strncmp(name, f->d->in[i].name, n) && !strncmp(name + n, "_out", 4))
			return true;
	}
	return false;
}

// A result that we do not have: of some size, as nobody reads it, or nothing.
static OutResult unread_result(const Form *f, const OutOp *o, int i)
{
	if (f->d->out[i].optional && of_absent_operand(f, o, f->d->out[i].name))
		return (OutResult){0};
	const int64_t any = -1;
	const Value *x = f->op->noperand ? op_operand(f->op, 0) : NULL;
	const bool tensor = x && x->type->kind == TY_TENSOR;
	const bool byte = !strcmp(f->d->out[i].name, "mask");
	return (OutResult){.type = out_tensor(f->w,
	                                      byte     ? DT_U8
	                                      : tensor ? x->type->dtype
	                                               : DT_F32,
	                                      1, &any)};
}

static int64_t copied(PirWriter *w, int64_t x, const Type *t)
{
	if (t->kind != TY_VEC) {
		OutOp *copy = out_new(w, "1.assign", 1, 1);
		copy->in[0] = x;
		copy->out[0].type = t;
		return out_op(w, copy);
	}
	OutOp *all = out_new(w, "0.combine", t->nelem, 1); // Paddle copies no vectors
	all->out[0].type = t;
	for (int i = 0; i < t->nelem; i++) {
		OutOp *one = out_new(w, "0.slice", 1, 1);
		one->in[0] = x;
		out_attr_int(one, "index", PIR_I32, i);
		one->out[0].type = t->elems[i];
		all->in[i] = copied(w, out_op(w, one), t->elems[i]);
	}
	return out_op(w, all);
}

// What works in place takes the place of its operand where nobody needs that any more, and of a
// copy otherwise. Who reads a parameter's new value reads the parameter: Paddle 3.2.2 may compute
// in place on a result that nobody reads later, though it is the parameter.
static void in_place(Form *f, OutOp *o, int result, int operand)
{
	PirWriter *w = f->w;
	const int own = form_result(f, result);
	const char *name = operand < f->m->nin ? f->m->in[operand] : NULL;
	const int index = name ? op_info_operand(f->op->info, name) : -1;
	const Value *v = index >= 0 ? op_operand(f->op, index) : NULL;
	if (!v || operand >= o->nin)
		return;
	const Value *r = own >= 0 ? &f->op->results[own] : NULL;
	const Op *set = r ? out_set_of(r, v) : NULL;
	if (set && !out_read_later(w, v, f->op)) {
		pointer_map_set(&w->placed, set, r);
		o->out[result].in_place = o->in[operand];
		return;
	}
	o->in[operand] = copied(w, o->in[operand], v->type);
}

static void all_in_place(Form *f, OutOp *o)
{
	const char *name = f->d->name;
	if (name[strlen(name) - 1] != '_')
		return;
	if (!f->m->ninplace)
		in_place(f, o, 0, 0);
	for (int k = 0; k < f->m->ninplace; k++)
		in_place(f, o, f->m->inplace[2 * k], f->m->inplace[2 * k + 1]);
}

static bool write_form(Form *f)
{
	PirWriter *w = f->w;
	OutOp *o = out_new(w, arena_printf(w->c->arena, "1.%s", f->d->name), f->d->nin, f->d->nout);
	const int errors = diag_errors(w->c->diag);
	for (int i = 0; i < f->d->nin; i++)
		o->in[i] = operand_number(f, i);
	for (int i = 0; i < f->d->nattr; i++) {
		bool known;
		const Attr *v = form_attr(f, i, &known);
		out_attr(o, f->d->attrs[i].name, f->d->attrs[i].kind, v);
	}
	for (int i = 0; i < f->d->nout; i++) {
		const int own = form_result(f, i);
		const bool none = f->d->out[i].optional && of_absent_operand(f, o, f->d->out[i].name);
		const Value *v = own < 0 || none ? NULL : &f->op->results[own];
		o->out[i] = v ? (OutResult){.type = v->type, .value = v} : unread_result(f, o, i);
	}
	all_in_place(f, o);
	out_op(w, o);
	for (int i = 0; i < o->nout; i++)
		if (o->out[i].in_place)
			out_bind(w, o->out[i].value, o->out[i].in_place);
	return errors == diag_errors(w->c->diag);
}

bool out_has_form(PirWriter *w, const Op *op)
{
	Form f = {0};
	const PirMap *m;
	for (int i = 0; (m = op_info_pir(op->code, i)); i++)
		if (form_fits(&f, w, op, m))
			return true;
	return false;
}

bool out_general(PirWriter *w, const Op *op)
{
	Form f = {0};
	const char *why = NULL, *name = NULL;
	const PirMap *m;
	for (int i = 0; (m = op_info_pir(op->code, i)); i++) {
		if (form_fits(&f, w, op, m))
			return write_form(&f);
		if (!why) {
			why = f.why;
			name = m->map.type;
		}
	}
	if (why)
		return out_fail(w, "%s: %s", name, why);
	return out_fail(w, "Paddle 3 has no such operation");
}
