// Types of declared variables, and the names that their open sizes get.
//
// A size of -1 becomes a symbol, a member of the generated `dims` struct: n for batches, h and w
// for images, s for sequences; with the input's name in front when another input has taken the
// letter.
#include "frontend/translate/control.h"

#include <string.h>

// ---- symbols ------------------------------------------------------------------------------------

static const char *const c_keywords[] = {
	"auto",    "bool",     "break",   "case",    "char",     "class",    "const",  "continue",
	"default", "delete",   "do",      "double",  "else",     "enum",     "extern", "false",
	"float",   "for",      "goto",    "if",      "inline",   "int",      "long",   "namespace",
	"new",     "operator", "private", "public",  "register", "return",   "short",  "signed",
	"sizeof",  "static",   "struct",  "switch",  "template", "this",     "true",   "typedef",
	"union",   "unsigned", "using",   "virtual", "void",     "volatile", "while",
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A C identifier that resembles `name`.
static const char *identifier(Context *c, const char *name)
{
	Text t;
	text_init(&t, c->arena);
	if (!is_letter(*name))
		text_char(&t, 'v');
	for (const char *p = name; *p; p++) {
		if (is_letter(*p) || (*p >= '0' && *p <= '9'))
			text_char(&t, *p);
		else if (t.len && t.text[t.len - 1] != '_')
			text_char(&t, '_');
	}
	while (t.len > 1 && t.text[t.len - 1] == '_')
		t.text[--t.len] = 0;
	for (size_t i = 0; i < COUNT_OF(c_keywords); i++)
		if (strcmp(t.text, c_keywords[i]) == 0)
			text_char(&t, '_');
	return t.text;
}

// What an axis is usually called.
static const char *axis_letter(Context *c, int rank, int axis)
{
	static const char *const image[] = {"n", "c", "h", "w"}, *const volume[] = {"n", "c", "d", "h",
	                                                                            "w"};
	static const char *const other[] = {"n", "s", "c"};
	if (rank == 4)
		return image[axis];
	if (rank == 5)
		return volume[axis];
	if (rank <= 3)
		return other[axis];
	return axis == 0 ? "n" : arena_printf(c->arena, "d%d", axis);
}

static bool symbol_taken(Translator *t, const char *symbol, const char *owner)
{
	const char *by = name_map_get(t->symbols, symbol);
	return by && strcmp(by, owner) != 0;
}

// The symbol for one axis of variable `base`: the same name every time it is asked for.
static const Dim *axis_symbol(Translator *t, const char *base, int rank, int axis)
{
	Context *c = t->c;
	return named_symbol(t, base, axis_letter(c, rank, axis),
	                    arena_printf(c->arena, "%s %d", base, axis));
}

const Dim *named_symbol(Translator *t, const char *base, const char *word, const char *owner)
{
	Context *c = t->c;
	const char *stem = arena_printf(c->arena, "%s_%s", identifier(c, base), word), *symbol = word;
	for (int i = 1; symbol_taken(t, symbol, owner); i++)
		symbol = i == 1 ? stem : arena_printf(c->arena, "%s%d", stem, i);
	name_map_set(t->symbols, symbol, (void *)(uintptr_t)owner);
	return dim_sym(c, symbol);
}

// ---- types --------------------------------------------------------------------------------------

static const ShapePin *find_pin(const Translator *t, const char *name)
{
	for (int i = 0; t->o && i < t->o->npins; i++)
		if (strcmp(t->o->pins[i].name, name) == 0)
			return &t->o->pins[i];
	return NULL;
}

static const char *open_key(Translator *t, const char *var)
{
	return arena_printf(t->c->arena, "open %s", var);
}

// Those of the axes whose sizes the program fixes.
static uint32_t axes_fixed(const Paddle__TensorDesc *desc, const Type *fed, uint32_t axes)
{
	uint32_t fixed = 0;
	for (int d = 0; desc && d < (int)desc->n_dims && d < fed->rank; d++)
		if (axes >> d & 1 && desc->dims[d] >= 0)
			fixed |= UINT32_C(1) << d;
	return fixed;
}

void feed_open(Translator *t, const char *var, const Value *fed, uint32_t axes)
{
	const bool is_fed = fed && fed->def && fed->def->code == OP_PD_FEED &&
	                    !strcmp(op_str(fed->def, "name", ""), var);
	const Binding *b = is_fed ? scope_find(t, var) : NULL;
	const Paddle__TensorDesc *desc = b && b->desc ? var_tensor(b->desc) : NULL;
	uint32_t *open = name_map_get(t->memo, open_key(t, var));
	const uint32_t fixed = desc ? axes_fixed(desc, fed->type, axes) & ~(open ? *open : 0) : 0;
	if (!fixed)
		return;
	if (!open) {
		open = NEW(t->c->arena, uint32_t);
		name_map_set(t->memo, context_str(t->c, open_key(t, var)), open);
		diag_warning(t->c->diag, fed->def->loc,
		             "the program changes sizes of input '%s': those in the file may be what it "
		             "makes, not what it takes",
		             var);
	}
	*open |= fixed;
	t->stale = true;
}

const Type *var_type(OpJob *j, const Paddle__VarDesc *v, const char *base)
{
	Context *c = j->t->c;
	const Paddle__TensorDesc *d = var_tensor(v);
	const Dim *dims[MAX_RANK];
	DType dtype;
	if (v->type->type != PADDLE__VAR_KIND__LOD_TENSOR) {
		job_fail(j, "variable '%s' is a %s: not supported here", v->name, kind_name(v->type->type));
		return NULL;
	}
	if (!d) {
		job_fail(j, "variable '%s' has neither element type nor shape", v->name);
		return NULL;
	}
	if (!dtype_from_kind(d->data_type, &dtype)) {
		job_fail(j, "variable '%s' has elements of type %s: not supported", v->name,
		         kind_name(d->data_type));
		return NULL;
	}
	if (d->n_dims > MAX_RANK) {
		job_fail(j, "variable '%s' has %zu axes: more than %d", v->name, d->n_dims, MAX_RANK);
		return NULL;
	}
	const ShapePin *pin = find_pin(j->t, v->name);
	const int declared = (int)d->n_dims, rank = pin ? pin->rank : declared;
	const uint32_t *open = name_map_get(j->t->memo, open_key(j->t, v->name));
	for (int i = 0; i < rank; i++) {
		// Paddle runs with what is fed, whatever number of axes the file declares.
		int64_t size = pin && pin->dims[i] >= 0 ? pin->dims[i] : rank == declared ? d->dims[i] : -1;
		if (open && *open >> i & 1 && !(pin && pin->dims[i] >= 0))
			size = -1;
		dims[i] = size < 0 ? axis_symbol(j->t, base, rank, i) : dim_const(c, size);
	}
	return type_tensor(c, dtype, rank, dims, 0);
}
