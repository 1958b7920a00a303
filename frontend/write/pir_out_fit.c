// Whether a `pir:` row says all that an operation of ours has: every operand and attribute has a
// place in Paddle 3's operation, or means nothing. pir_out_op.c tries one row after the other.
#include "frontend/write/pir_out_form.h"
#include "ir/text/text.h"

#include <string.h>

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

const Value *form_overriding(const Op *op, const AttrInfo *a, int *index)
{
	*index = a->operand ? op_info_operand(op->info, a->operand) : -1;
	return *index < 0 ? NULL : op_operand(op, *index);
}

const Attr *form_reduced_axes(Form *f, const AttrInfo *a)
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
	if (!v || form_overriding(f->op, op_info_attr(f->op->info, list), &over))
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
	if (form_overriding(f->op, a, &over)) {
		f->operands[over] = true;
		return true;
	}
	return form_reduced_axes(f, a) || arg->optional ||
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

const Attr *form_attr(Form *f, int i, bool *known)
{
	const PirArg *arg = &f->d->attrs[i];
	const char *ours = own_name(f->m, arg->name);
	const AttrInfo *a = ours ? op_info_attr(f->op->info, ours) : NULL;
	int over;
	if (!a)
		return foreign_attr(f, arg, known);
	f->attrs[a - f->op->info->attrs] = true;
	const Attr *v = form_overriding(f->op, a, &over) ? NULL : form_reduced_axes(f, a);
	*known = v != NULL;
	return v || over >= 0 ? v : foreign_attr(f, arg, known);
}

static bool attrs_fit(Form *f)
{
	for (int i = 0; i < f->d->nattr; i++) {
		bool known;
		OutOp *trial = out_new(f->w, "", 0, 0);
		const Attr *v = form_attr(f, i, &known);
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

int form_result(const Form *f, int i)
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
			there = form_result(f, i) == k;
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

bool form_fits(Form *f, PirWriter *w, const Op *op, const PirMap *m)
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
