// The attributes of an operation, sorted by name: asking, setting, and shorthands that fall back to
// a value of the caller's. Everybody who builds, rewrites or prints operations calls them.
#include "ir/core/core.h"

#include <string.h>

static int attr_position(const Op *op, const char *name, bool *found)
{
	for (int i = 0; i < op->nattr; i++) {
		int order = strcmp(op->attrs[i].name, name);
		*found = order == 0;
		if (order >= 0)
			return i;
	}
	*found = false;
	return op->nattr;
}

const Attr *op_attr(const Op *op, const char *name)
{
	bool found;
	int i = attr_position(op, name, &found);
	return found ? op->attrs[i].attr : NULL;
}

void op_set_attr(Op *op, const char *name, const Attr *a)
{
	bool found;
	int at = attr_position(op, name, &found);
	if (found && a) {
		op->attrs[at].attr = a;
		return;
	}
	if (found) {
		memmove(op->attrs + at, op->attrs + at + 1,
		        (size_t)(op->nattr - at - 1) * sizeof *op->attrs);
		op->nattr--;
		return;
	}
	if (!a)
		return;
	NamedAttr *attrs = NEW_ARRAY(op->ctx->arena, (size_t)op->nattr + 1, NamedAttr);
	if (op->nattr) {
		memcpy(attrs, op->attrs, (size_t)at * sizeof *attrs);
		memcpy(attrs + at + 1, op->attrs + at, (size_t)(op->nattr - at) * sizeof *attrs);
	}
	attrs[at] = (NamedAttr){context_str(op->ctx, name), a};
	op->attrs = attrs;
	op->nattr++;
}

int op_attrs_given(const Op *op, size_t n, const char *const *names, NamedAttr *out)
{
	int given = 0;
	for (size_t i = 0; i < n; i++)
		if (op_attr(op, names[i]))
			out[given++] = (NamedAttr){names[i], op_attr(op, names[i])};
	return given;
}

bool op_attrs_equal(const Op *a, const Op *b)
{
	if (a->nattr != b->nattr)
		return false;
	for (int i = 0; i < a->nattr; i++)
		if (a->attrs[i].name != b->attrs[i].name || a->attrs[i].attr != b->attrs[i].attr)
			return false;
	return true;
}

int64_t op_int(const Op *op, const char *name, int64_t otherwise)
{
	const Attr *a = op_attr(op, name);
	return a && a->kind == ATTR_INT ? a->i : otherwise;
}

bool op_bool(const Op *op, const char *name, bool otherwise)
{
	const Attr *a = op_attr(op, name);
	return a && (a->kind == ATTR_BOOL || a->kind == ATTR_INT) ? a->i != 0 : otherwise;
}

double op_float(const Op *op, const char *name, double otherwise)
{
	const Attr *a = op_attr(op, name);
	if (a && a->kind == ATTR_INT)
		return (double)a->i;
	return a && a->kind == ATTR_FLOAT ? a->f : otherwise;
}

const char *op_str(const Op *op, const char *name, const char *otherwise)
{
	const Attr *a = op_attr(op, name);
	return a && a->kind == ATTR_STR ? a->s : otherwise;
}

DType op_dtype(const Op *op, const char *name, DType otherwise)
{
	const Attr *a = op_attr(op, name);
	return a && a->kind == ATTR_DTYPE ? (DType)a->i : otherwise;
}

int op_ints(const Op *op, const char *name, int64_t *out, int max)
{
	const Attr *a = op_attr(op, name);
	if (!a || a->kind != ATTR_INTS || a->n > max)
		return -1;
	for (int i = 0; i < a->n; i++)
		out[i] = a->ints[i];
	return a->n;
}
