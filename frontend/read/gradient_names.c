// Which operator of a legacy program a gradient operator belongs to, by the names that it uses: of
// its type, its slots and its variables; and whether its attributes are those of that operator.
#include "frontend/read/gradient_names.h"
#include "frontend/read/attrs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// ---- types and slots ----------------------------------------------------------------------------

bool name_ends_with(const char *s, const char *end, size_t *keep)
{
	size_t n = strlen(s), k = strlen(end);
	*keep = n - k;
	return n > k && !strcmp(s + n - k, end);
}

// How many times an operator of this type differentiates another, and that one, whose type is the
// first n characters; 0: it is no gradient operator.
int gradient_forward(const char *type, const OpInfo **forward, size_t *n)
{
	static const struct {
		const char *end;
		int order;
	} ends[] = {{"_triple_grad", 3}, {"_grad_grad", 2}, {"_double_grad", 2}, {"_grad", 1}};
	char name[128];
	const LegacyMap *map;
	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		if (!name_ends_with(type, ends[i].end, n) || *n >= sizeof name)
			continue;
		memcpy(name, type, *n);
		name[*n] = 0;
		*forward = op_info_by_legacy(name, &map);
		if (*forward)
			return ends[i].order;
	}
	return 0;
}

// SavedMean is also saved_mean.
static bool same_letters(const char *a, const char *b)
{
	while (true) {
		a += strspn(a, "_");
		b += strspn(b, "_");
		if (!*a || tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return !*a && !*b;
		a++;
		b++;
	}
}

// Whether the slot `name` of an operator that differentiates twice is the gradient of `slot`:
// X@GRAD@GRAD is also DDX and grad_x@GRAD; X@GRAD is also x@GRAD, and as an input DX and grad_x.
bool gradient_second_name(const char *name, const char *slot, int depth)
{
	static const char *const ways[2][4] = {
		{"%s@GRAD", "D%s", "grad_%s", "fwd_grad_%s"},
		{"%s@GRAD@GRAD", "DD%s", "grad_%s@GRAD", "fwd_grad_%s@GRAD"}};
	char say[160];
	for (size_t i = 0; i < COUNT_OF(ways[0]); i++) {
		const char *way = ways[depth - 1][i], *at = strchr(way, '%');
		snprintf(say, sizeof say, "%.*s%s%s", (int)(at - way), way, slot, at + 2);
		if (i == 1 ? !strcmp(name, say) : same_letters(name, say))
			return true;
	}
	return same_letters(slot, "Output") && gradient_second_name(name, "out", depth);
}

// The slot of the operator, among inputs or outputs, that is called `slot`, or after its gradient;
// `depth` counts @GRAD.
const Paddle__OpSlot *gradient_slot(size_t n, Paddle__OpSlot *const *slots, const char *slot,
                                    int depth, bool second)
{
	char say[160];
	snprintf(say, sizeof say, "%s%s%s", slot, depth > 0 ? GRAD : "", depth > 1 ? GRAD : "");
	for (size_t i = 0; i < n; i++)
		if (!strcmp(slots[i]->parameter, say) ||
		    (second && depth && gradient_second_name(slots[i]->parameter, slot, depth)))
			return slots[i];
	return NULL;
}

static bool same_vars(const Paddle__OpSlot *a, const Paddle__OpSlot *b)
{
	for (size_t i = 0; slot_var(a, i) || slot_var(b, i); i++) {
		const char *x = slot_var(a, i), *y = slot_var(b, i);
		if (!x || !y || strcmp(x, y))
			return false;
	}
	return true;
}

// Whether a gradient variable is called after the variable it belongs to. One of a derivative has
// "grad/" in front of that for each time that was differentiated.
static bool named_after(const char *g, const char *v)
{
	const size_t n = strlen(v), k = strlen("grad/");
	for (;; g += k) {
		if (!strncmp(g, v, n) && !strncmp(g + n, GRAD, strlen(GRAD)))
			return true;
		if (strncmp(g, "grad/", k))
			return false;
	}
}

bool gradient_named_after(const Paddle__OpSlot *gradient, const Paddle__OpSlot *of)
{
	for (size_t i = 0; i < of->n_arguments; i++) {
		const char *g = slot_var(gradient, i), *v = slot_var(of, i);
		if (g && v && named_after(g, v))
			return true;
	}
	return false;
}

// What a gradient operator is given of its forward operator in a slot of that. One that
// differentiates twice writes its slots otherwise at times: X is also x.
const Paddle__OpSlot *gradient_given(const Paddle__OpDesc *d, const char *slot, bool second)
{
	const Paddle__OpSlot *same = slot_find(d->n_inputs, d->inputs, slot);
	for (size_t i = 0; !same && second && i < d->n_inputs; i++)
		if (same_letters(d->inputs[i]->parameter, slot))
			same = d->inputs[i];
	return same;
}

// How well the operator fits that the gradient operator `d` names: -1: it is another one.
int gradient_likeness(const Paddle__OpDesc *d, const Paddle__OpDesc *of, bool second)
{
	int like = 0;
	const struct {
		size_t n;
		Paddle__OpSlot **slots;
	} sides[] = {{of->n_inputs, of->inputs}, {of->n_outputs, of->outputs}};
	for (size_t side = 0; side < 2; side++) {
		for (size_t i = 0; i < sides[side].n; i++) {
			const Paddle__OpSlot *s = sides[side].slots[i],
								 *given = gradient_given(d, s->parameter, second);
			if (given && slot_var(given, 0)) {
				if (!same_vars(given, s))
					return -1;
				like += 2;
			}
			const Paddle__OpSlot *in = gradient_slot(d->n_inputs, d->inputs, s->parameter, 1,
			                                         second);
			const Paddle__OpSlot *out = gradient_slot(d->n_outputs, d->outputs, s->parameter, 1,
			                                          second);
			const Paddle__OpSlot *twice =
				second ? gradient_slot(d->n_inputs, d->inputs, s->parameter, 2, true) : NULL;
			like += in && gradient_named_after(in, s);
			like += out && gradient_named_after(out, s);
			like += twice && gradient_named_after(twice, s);
		}
	}
	return like;
}

// ---- attributes ---------------------------------------------------------------------------------

// Whether an operator is that which the gradient operator belongs to, as far as slots of the same
// names tell.
static bool may_belong(const Paddle__OpDesc *gradient, const Paddle__OpDesc *of, const char *type)
{
	return !strcmp(of->type, type) && gradient_likeness(gradient, of, true) > 0;
}

// The gradient of foo and bar names foo_grad and bar_grad where its operator names these two.
static bool names_gradients(const Paddle__OpAttr *a, const Paddle__OpAttr *of)
{
	size_t n;
	bool same = a->type == PADDLE__ATTR_KIND__STRINGS && of->type == a->type &&
	            of->n_strings == a->n_strings;
	for (size_t i = 0; same && i < a->n_strings; i++)
		same = name_ends_with(a->strings[i], "_grad", &n) && strlen(of->strings[i]) == n &&
		       !memcmp(a->strings[i], of->strings[i], n);
	return same;
}

const char *gradient_objection(Context *c, const Paddle__OpDesc *d, size_t n,
                               Paddle__OpDesc *const *before)
{
	const OpInfo *row;
	const LegacyMap *map;
	size_t length;
	if (!gradient_forward(d->type, &row, &length))
		return NULL;
	const char *type = context_strn(c, d->type, length);
	op_info_by_legacy(type, &map);
	for (size_t i = 0; i < d->n_attrs; i++) {
		const Paddle__OpAttr *a = d->attrs[i], *of;
		const char *why = attr_objection(c, map, a);
		bool same = false, other = false;
		if (why)
			return why;
		for (size_t k = 0; k < n && attr_is_read(map, a->name); k++) {
			of = may_belong(d, before[k], type) ? attr_find(before[k], a->name) : NULL;
			bool alike = of && (attr_same(a, of) || names_gradients(a, of));
			same |= alike;
			other |= of && !alike;
		}
		if (other && !same)
			return arena_printf(c->arena, "attribute '%s' is not that of its forward operator '%s'",
			                    a->name, type);
	}
	return NULL;
}
