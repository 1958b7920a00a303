// The general rule: an operation of ours is the one of Paddle 3 whose `pir:` row says all that it
// has. Operands by position, attributes in the kinds that Paddle declares; what is an attribute
// here and an operand there is written in front.
#include "frontend/write/pir_out.h"
#include "ir/text/text.h"

#include <string.h>

// One way to write an operation, while it is tried.
typedef struct Form {
	PirWriter *w;
	const Op *op;
	const PirMap *m;
	const PirDeclared *d;
	bool *attrs, *operands; // which of ours have found their place
	const char *why;        // they have not
} Form;

static bool unfit(Form *f, const char *why)
{
	f->why = why;
	return false;
}

// ---- attributes of ours -------------------------------------------------------------------------

// What an attribute holds, or its default; NULL: neither.
static const Attr *own_attr(const Op *op, const AttrInfo *a)
{
	const Attr *v = op_attr(op, a->name);
	return v || !a->fallback ? v : attr_parse(op->ctx, a->kind, a->fallback);
}

// The operand that holds what attribute `a` would say; NULL: none.
static const Value *overriding(const Op *op, const AttrInfo *a, int *index)
{
	*index = a->operand ? op_info_operand(op->info, a->operand) : -1;
	return *index < 0 ? NULL : op_operand(op, *index);
}

// All axes are the empty list of axes.
static const Attr *reduced_axes(Form *f, const AttrInfo *a)
{
	const AttrInfo *all = op_info_attr(f->op->info, "reduce_all");
	if (!all || strcmp(a->name, "axis") != 0 || !op_bool(f->op, "reduce_all", false))
		return own_attr(f->op, a);
	f->attrs[all - f->op->info->attrs] = true;
	return attr_ints(f->w->c, 0, NULL);
}

static bool attrs_equal(const Attr *a, const Attr *b)
{
	if (a == b || !a || !b)
		return a == b;
	const bool numbers = (a->kind == ATTR_INT || a->kind == ATTR_FLOAT) &&
	                     (b->kind == ATTR_INT || b->kind == ATTR_FLOAT);
	return numbers && (a->kind == ATTR_INT ? (double)a->i : a->f) ==
	                      (b->kind == ATTR_INT ? (double)b->i : b->f);
}

static const char *pair_find(const PirPairs *p, const char *name)
{
	for (int i = 0; i < p->n; i++)
		if (!strcmp(p->names[i], name))
			return p->texts[i];
	return NULL;
}

static const char *own_name(const PirMap *m, const char *theirs)
{
	for (int i = 0; i < m->map.nattr; i++)
		if (!strcmp(m->map.attr_from[i], theirs))
			return m->map.attr_to[i];
	return NULL;
}

// ---- does it fit? -------------------------------------------------------------------------------

// Whether attribute `a` says nothing here, as the list that the row names holds positive numbers
// only.
static bool says_nothing(const Form *f, const char *name)
{
	const char *list = pair_find(&f->m->upward, name);
	const Attr *v = list ? op_attr(f->op, list) : NULL;
	int over = -1;
	if (!v || overriding(f->op, op_info_attr(f->op->info, list), &over))
		return false;
	for (int i = 0; i < v->n; i++)
		if (v->kind == ATTR_INTS ? v->ints[i] <= 0
		                         : !dim_is_const(v->dims[i]) || v->dims[i]->value <= 0)
			return false;
	return true;
}

// An element type that is left out is that of the result.
static const Attr *set_attr(const Form *f, const AttrInfo *a)
{
	const Attr *v = own_attr(f->op, a);
	const Type *t = f->op->nresult ? f->op->results[0].type : NULL;
	return v || a->kind != ATTR_DTYPE || !t || t->kind != TY_TENSOR ? v
	                                                                : attr_dtype(f->w->c, t->dtype);
}

static bool derived(const Form *f, const char *name)
{
	for (int i = 0; i < f->m->nderived; i++)
		if (!strcmp(f->m->derived[i], name))
			return true;
	return false;
}

static bool sets_fit(Form *f)
{
	for (int i = 0; i < f->m->map.nset; i++) {
		const AttrInfo *a = op_info_attr(f->op->info, f->m->map.set_names[i]);
		const Attr *want = attr_parse(f->w->c, a->kind, f->m->map.set_texts[i]);
		if (!derived(f, a->name) && !attrs_equal(set_attr(f, a), want) && !says_nothing(f, a->name))
			return unfit(f, arena_printf(f->w->c->arena, "attribute '%s' would have to be %s",
			                             a->name, f->m->map.set_texts[i]));
		f->attrs[a - f->op->info->attrs] = true;
	}
	for (int i = 0; i < f->m->unless.n; i++) {
		const char *text = f->m->unless.texts[i];
		if (!strcmp(f->m->unless.names[i], "*"))
			return unfit(f, text);
		const AttrInfo *a = op_info_attr(f->op->info, f->m->unless.names[i]);
		if (attrs_equal(own_attr(f->op, a), attr_parse(f->w->c, a->kind, text)))
			return unfit(f, arena_printf(f->w->c->arena, "attribute '%s' is %s", a->name, text));
	}
	return true;
}

// An operand there that is an attribute here, or the operand that overrides it.
static bool attr_position_fits(Form *f, const PirArg *arg, const AttrInfo *a)
{
	int over = -1;
	f->attrs[a - f->op->info->attrs] = true;
	if (overriding(f->op, a, &over)) {
		f->operands[over] = true;
		return true;
	}
	return reduced_axes(f, a) || arg->optional ||
	       unfit(f, arena_printf(f->w->c->arena, "attribute '%s' is not known", a->name));
}

static bool position_fits(Form *f, int i)
{
	const PirArg *arg = &f->d->in[i];
	const char *ours = i < f->m->nin ? f->m->in[i] : NULL;
	const int index = ours ? op_info_operand(f->op->info, ours) : -1;
	const AttrInfo *a = ours && index < 0 ? op_info_attr(f->op->info, ours) : NULL;
	if (a)
		return attr_position_fits(f, arg, a);
	if (index >= 0)
		f->operands[index] = true;
	if (arg->optional || (index >= 0 && (arg->vec || op_operand(f->op, index))))
		return true;
	const bool unread = i < f->m->nin && !ours;
	return unread ||
	       unfit(f, arena_printf(f->w->c->arena, "nothing here is its operand '%s'", arg->name));
}

// What the row or Paddle's own default says of an attribute that we do not have; *known: it
// changes nothing, whatever it holds.
static const char *foreign_text(const Form *f, const PirArg *arg, bool *known)
{
	int n;
	const IgnoredAttr *everywhere = op_info_ignored(&n);
	const char *text = pair_find(&f->m->give, arg->name);
	text = text ? text : arg->fallback;
	for (int i = 0; i < f->m->map.nignored; i++)
		if (!strcmp(f->m->map.ignored[i].name, arg->name)) {
			*known = true;
			text = f->m->map.ignored[i].n ? f->m->map.ignored[i].values[0] : text;
		}
	for (int i = 0; i < n; i++)
		*known |= !strcmp(everywhere[i].name, arg->name);
	*known |= text != NULL;
	return text;
}

static AttrKind own_kind(PirKind kind)
{
	switch (kind) {
	case PIR_BOOL: return ATTR_BOOL;
	case PIR_I32:
	case PIR_I64: return ATTR_INT;
	case PIR_STR: return ATTR_STR;
	case PIR_STRS: return ATTR_STRS;
	case PIR_F32S:
	case PIR_SCALARS: return ATTR_FLOATS;
	case PIR_I32S:
	case PIR_I64S:
	case PIR_INTARRAY: return ATTR_INTS;
	default: return ATTR_FLOAT;
	}
}

// An attribute that we do not have. An element type is that of the result.
static const Attr *foreign_attr(Form *f, const PirArg *arg, bool *known)
{
	Context *c = f->w->c;
	const Type *t = f->op->nresult ? f->op->results[0].type : NULL;
	*known = arg->kind == PIR_DTYPE || arg->kind == PIR_PLACE;
	if (*known)
		return arg->kind == PIR_DTYPE && t && t->kind == TY_TENSOR ? attr_dtype(c, t->dtype) : NULL;
	const char *text = foreign_text(f, arg, known);
	if (!strcmp(arg->name, "is_test"))
		return attr_bool(c, true);
	if (!*known)
		return NULL;
	if (text)
		return attr_parse(c, own_kind(arg->kind), text);
	const Attr zero = {.kind = own_kind(arg->kind), .s = ""};
	Attr *v = NEW(c->arena, Attr);
	*v = zero;
	return v;
}

// What attribute i of Paddle's holds; NULL with *known: nothing need be said.
static const Attr *their_attr(Form *f, int i, bool *known)
{
	const PirArg *arg = &f->d->attrs[i];
	const char *ours = own_name(f->m, arg->name);
	const AttrInfo *a = ours ? op_info_attr(f->op->info, ours) : NULL;
	int over;
	if (!a)
		return foreign_attr(f, arg, known);
	f->attrs[a - f->op->info->attrs] = true;
	const Attr *v = overriding(f->op, a, &over) ? NULL : reduced_axes(f, a);
	*known = v != NULL;
	return v || over >= 0 ? v : foreign_attr(f, arg, known);
}

static bool attrs_fit(Form *f)
{
	for (int i = 0; i < f->d->nattr; i++) {
		bool known;
		OutOp *trial = out_new(f->w, "", 0, 0);
		const Attr *v = their_attr(f, i, &known);
		if (!known)
			return unfit(f, arena_printf(f->w->c->arena, "its attribute '%s' is not known here",
			                             f->d->attrs[i].name));
		if (v && !out_attr(trial, f->d->attrs[i].name, f->d->attrs[i].kind, v))
			return unfit(f,
			             arena_printf(f->w->c->arena, "its attribute '%s' cannot hold what is here",
			                          f->d->attrs[i].name));
	}
	return true;
}

// Whether one of the attributes and operands that tell what is derived says something.
static bool told(const Form *f)
{
	for (int i = 0; i < f->m->ntold; i++) {
		const int operand = op_info_operand(f->op->info, f->m->told[i]);
		const AttrInfo *a = op_info_attr(f->op->info, f->m->told[i]);
		const Attr *v = a ? op_attr(f->op, a->name) : NULL;
		if ((operand >= 0 && op_operand(f->op, operand)) ||
		    (v && v != attr_parse(f->w->c, a->kind, a->fallback)))
			return true;
	}
	return !f->m->ntold;
}

// What is left over must mean nothing.
static bool rest_fits(Form *f)
{
	Context *c = f->w->c;
	const OpInfo *info = f->op->info;
	if (!told(f))
		return unfit(f, arena_printf(c->arena, "nothing tells '%s'", f->m->derived[0]));
	for (int i = 0; i < f->op->noperand; i++)
		if (op_operand(f->op, i) && (i >= info->noperand || !f->operands[i]))
			return unfit(f, arena_printf(c->arena, "operand '%s' has no place in it",
			                             info->operands[i < info->noperand ? i : 0].name));
	for (int i = 0; i < info->nattr; i++) {
		const AttrInfo *a = &info->attrs[i];
		const Attr *v = op_attr(f->op, a->name);
		if (v && !f->attrs[i] && !derived(f, a->name) && !says_nothing(f, a->name) &&
		    !(a->fallback && attrs_equal(v, attr_parse(c, a->kind, a->fallback))))
			return unfit(f, arena_printf(c->arena, "attribute '%s' has no place in it", a->name));
	}
	return true;
}

// Which of our results is theirs at position i; -1: none.
static int own_result(const Form *f, int i)
{
	const char *name = i < f->m->nout ? f->m->out[i] : NULL;
	for (int k = 0; name && k < f->op->info->nresult; k++)
		if (!strcmp(f->op->info->results[k], name))
			return k;
	return -1;
}

static bool results_fit(Form *f)
{
	for (int k = 0; k < f->op->nresult; k++) {
		bool there = !value_used(&f->op->results[k]);
		for (int i = 0; i < f->d->nout && !there; i++)
			there = own_result(f, i) == k;
		if (!there)
			return unfit(f, arena_printf(f->w->c->arena, "result %d has no place in it", k));
	}
	return true;
}

// What Paddle declares of the row's operation; `pd_op.equal.near` is one of several rows of equal.
static const PirDeclared *row_declared(PirWriter *w, const PirMap *m)
{
	const char *name = m->map.type + strlen("pd_op.");
	return pir_declared(context_strn(w->c, name, strcspn(name, ".")));
}

static bool fits(Form *f, PirWriter *w, const Op *op, const PirMap *m)
{
	*f = (Form){.w = w, .op = op, .m = m};
	f->attrs = NEW_ARRAY(w->c->arena, (size_t)op->info->nattr + 1, bool);
	f->operands = NEW_ARRAY(w->c->arena, (size_t)op->info->noperand + 1, bool);
	if (!(f->d = row_declared(w, m)))
		return unfit(f, "Paddle 3.2 has no such operation");
	if (!sets_fit(f))
		return false;
	for (int i = 0; i < f->d->nin; i++)
		if (!position_fits(f, i))
			return false;
	return attrs_fit(f) && rest_fits(f) && results_fit(f);
}

// ---- writing it ---------------------------------------------------------------------------------

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
	const Value *v = index >= 0 ? op_operand(f->op, index) : a ? overriding(f->op, a, &over) : NULL;
	if (v)
		return value_operand(f, arg, v);
	const Attr *held = a ? reduced_axes(f, a) : NULL;
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
	const int own = own_result(f, result);
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
		const Attr *v = their_attr(f, i, &known);
		out_attr(o, f->d->attrs[i].name, f->d->attrs[i].kind, v);
	}
	for (int i = 0; i < f->d->nout; i++) {
		const int own = own_result(f, i);
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
		if (fits(&f, w, op, m))
			return true;
	return false;
}

bool out_general(PirWriter *w, const Op *op)
{
	Form f = {0};
	const char *why = NULL, *name = NULL;
	const PirMap *m;
	for (int i = 0; (m = op_info_pir(op->code, i)); i++) {
		if (fits(&f, w, op, m))
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
