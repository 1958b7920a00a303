// Legacy variables during translation: what each holds now, where parameters are read and state is
// written back; the types of declared ones, and the names that their open sizes get. Used by
// translate.c and steps.c.
//
// A size of -1 becomes a symbol, a member of the generated `dims` struct: n for batches, h and w
// for images, s for sequences; with the input's name in front when another input has taken the
// letter.
#include "frontend/job/flow.h"
#include "frontend/job/trace.h"
#include "frontend/job/variant.h"
#include "ir/base/vec.h"
#include "ir/build/build.h"

#include <string.h>

Scope *scope_new(Translator *t, int block, Scope *parent)
{
	const Paddle__BlockDesc *b = t->p->blocks[block];
	Scope *s = NEW(t->c->arena, Scope);
	s->parent = parent;
	s->vars = name_map_new(t->c->arena);
	for (size_t i = 0; i < b->n_vars; i++) {
		if (name_map_get(s->vars, b->vars[i]->name))
			continue;
		Binding *v = NEW(t->c->arena, Binding);
		v->desc = b->vars[i];
		name_map_set(s->vars, b->vars[i]->name, v);
	}
	return s;
}

Binding *scope_find(Translator *t, const char *var)
{
	for (Scope *s = t->scope; s; s = s->parent) {
		Binding *b = name_map_get(s->vars, var);
		if (b)
			return b;
	}
	return NULL;
}

// A variable that nobody declares belongs to the block that writes it.
Binding *write_binding(Translator *t, const char *var)
{
	Binding *b = scope_find(t, var);
	if (!b) {
		b = NEW(t->c->arena, Binding);
		name_map_set(t->scope->vars, var, b);
	}
	return b;
}

static void mark_value(Value *v, const Paddle__VarDesc *d, const char *name)
{
	v->name = name;
	if (d) {
		v->stop_gradient = d->has_stop_gradient && d->stop_gradient;
		v->persistable = d->has_persistable && d->persistable;
	}
}

Builder top_builder(OpJob *j, const Loc *l)
{
	if (!j->t->top)
		return builder_at_end(j->t->c, j->t->block, l);
	Builder b = builder_before(j->t->top);
	b.loc = l;
	return b;
}

static void insert_at_top(OpJob *j, Op *op)
{
	if (j->t->top)
		op_insert_before(j->t->top, op);
	else
		op_append(j->t->block, op);
}

// A parameter's type is its data's; without data, what the program declares.
static Value *get_parameter(OpJob *j, const Paddle__VarDesc *d)
{
	Context *c = j->t->c;
	const Dim *dims[MAX_RANK];
	const Tensor *t = param_get(c, d->name);
	const Type *type = NULL;
	if (t) {
		for (int i = 0; i < t->rank; i++)
			dims[i] = dim_const(c, t->dims[i]);
		type = type_tensor(c, t->dtype, t->rank, dims, 0);
	} else {
		type = var_type(j, d, d->name);
	}
	if (!type)
		return NULL;
	Loc l = {.file = c->file, .block = j->t->block_index, .op = -1, .var = context_str(c, d->name)};
	Op *op = op_new(c, OP_BUILTIN_GET_PARAMETER, context_loc(c, &l), 1, &type, 0, NULL, 0, 0);
	op_set_attr(op, "name", attr_str(c, d->name));
	insert_at_top(j, op);
	mark_value(op_result(op, 0), d, context_str(c, d->name));
	return op_result(op, 0);
}

// What a variable holds that no operator has written; NULL after a diagnostic.
static Value *first_value(OpJob *j, const char *slot, const char *var, const Paddle__VarDesc *d)
{
	const Translator *t = j->t;
	if (d && var_is_state(d))
		return get_parameter(j, d);
	if (d && d->type->type == PADDLE__VAR_KIND__LOD_TENSOR_ARRAY)
		return t->hooks->array(j, d);
	if (d && t->implicit_feeds && t->block_index == 0) {
		Value *v = t->hooks->feed(j, d);
		if (v)
			mark_value(v, d, context_str(t->c, var));
		return v;
	}
	const Op *around = t->block->region->op;
	if (d && d->type->type == PADDLE__VAR_KIND__LOD_TENSOR && around->code == OP_PD_IF &&
	    !t->inside_case)
		return t->hooks->missing(j, d);
	if (d && d->type->type != PADDLE__VAR_KIND__LOD_TENSOR)
		job_fail(j, "input %s: variable '%s' is a %s: not supported", slot, var,
		         kind_name(d->type->type));
	else
		job_fail(j, "input %s: nothing has written variable '%s'", slot, var);
	return NULL;
}

Value *read_any(OpJob *j, const char *slot, const char *var)
{
	Binding *b = scope_find(j->t, var);
	if (b && b->guard && !j->t->hooks->guard(j, var, b))
		return NULL;
	if (b && b->value) {
		trace_read(j, var, b->value);
		return b->value;
	}
	if (b && b->broken) {
		j->broken = true;
		return NULL;
	}
	if (!b)
		b = write_binding(j->t, var);
	b->value = first_value(j, slot, var, b->desc);
	b->broken = !b->value;
	trace_read(j, var, b->value);
	return b->value;
}

Value *read_var(OpJob *j, const char *slot, const char *var)
{
	Value *v = read_any(j, slot, var);
	return is_variant(v) ? j->t->hooks->settle(j, var, v) : v;
}

void note_written(Translator *t, Binding *b)
{
	if (b->written || !b->desc || !var_is_state(b->desc))
		return;
	b->written = true;
	VEC_ROOM(t->c->arena, t->written, t->nwritten, t->cwritten);
	t->written[t->nwritten++] = b;
}

// ---- where gradients stop -----------------------------------------------------------------------

static bool is_marked(const Binding *b)
{
	return b && b->desc && b->desc->has_stop_gradient && b->desc->stop_gradient;
}

static bool may_move(const Value *v)
{
	return v && type_is_tensor(v->type) && dtype_is_float(v->type->dtype);
}

// Paddle marks what an operator makes of marked variables alone, so a variable that is not says
// that gradients are wanted.
static bool reads_unmarked(const OpJob *j)
{
	for (size_t i = 0; i < j->desc->n_inputs; i++)
		for (size_t k = 0; k < j->desc->inputs[i]->n_arguments; k++) {
			const char *var = slot_var(j->desc->inputs[i], k);
			const Binding *b = var ? scope_find(j->t, var) : NULL;
			if (b && (b->guard || may_move(b->value)) && !is_marked(b))
				return true;
		}
	return false;
}

// Whether gradients go into what the operator reads, but not through this variable. One that held
// something before is not looked at: what a loop carries has the mark of what it began with, mostly
// a constant. Nor is what a loop gives.
static bool stops_here(const OpJob *j, const char *var, const Binding *b, const Value *v)
{
	const bool loop = j->info && j->info->code == OP_PD_WHILE;
	return j->t->o && j->t->o->detach && j->desc && !b->value && is_marked(b) && may_move(v) &&
	       !loop && reads_unmarked(j) && flow_live_after(j->t, var);
}

// The marks of v may be those of another name.
static Value *detached(OpJob *j, Value *v)
{
	v->stop_gradient = false;
	v = build1(&j->b, OP_PD_ASSIGN, v, NULL);
	if (v)
		v->stop_gradient = true;
	else
		j->t->failed = true;
	return v;
}

// An operator that has no gradient, whatever the marks say; saved programs have none. What is
// marked itself has none to stop.
void write_stopped(OpJob *j, const char *var, Value *v)
{
	const bool wanted = j->t->o && j->t->o->detach && may_move(v) && !v->stop_gradient;
	if (wanted && (v = detached(j, v)))
		v->name = context_str(j->t->c, var);
	if (v)
		write_var(j, var, v);
}

void write_var(OpJob *j, const char *var, Value *v)
{
	Binding *b = write_binding(j->t, var);
	if (stops_here(j, var, b, v) && !(v = detached(j, v)))
		return;
	binding_save(j->t, b);
	trace_write(j, var, v);
	if (b->desc && j->desc && !kind_may_hold(j, var, b->desc, v))
		j->t->failed = true;
	b->value = v;
	b->guard = NULL;
	b->broken = false;
	if (!v->name)
		mark_value(v, b->desc, context_str(j->t->c, var));
	note_written(j->t, b);
}

// What a failed operator should have written must not be missed again by its readers.
void break_outputs(OpJob *j)
{
	for (size_t i = 0; i < j->desc->n_outputs; i++) {
		for (size_t k = 0; k < j->desc->outputs[i]->n_arguments; k++) {
			const char *var = slot_var(j->desc->outputs[i], k);
			if (!var)
				continue;
			Binding *b = write_binding(j->t, var);
			binding_save(j->t, b);
			b->value = NULL;
			b->guard = NULL;
			b->broken = true;
		}
	}
}

// What the next run reads must be what this one was compiled for.
static bool state_keeps_type(Translator *t, const char *name, const Op *set)
{
	const Type *now = op_operand(set, 0)->type, *before = now;
	for (const Op *op = t->block->first; op && before == now; op = op->next)
		if (op->code == OP_BUILTIN_GET_PARAMETER && !strcmp(op_str(op, "name", ""), name))
			before = op->results[0].type;
	if (before == now)
		return true;
	diag_error(t->c->diag, set->loc,
	           "persistable '%s' is %s, and a run leaves %s in it: not supported", name,
	           type_text(t->c, before), type_text(t->c, now));
	return false;
}

bool set_parameters(Translator *t)
{
	Context *c = t->c;
	bool learnt = false;
	for (int i = 0; i < t->nwritten; i++) {
		Binding *b = t->written[i];
		const char *name = context_str(c, b->desc->name);
		Loc l = {.file = c->file, .block = t->block_index, .op = -1, .var = name};
		OpJob j = {.t = t, .b = builder_at_end(c, t->block, context_loc(c, &l))};
		if ((b->guard && !t->hooks->guard(&j, name, b)) || !b->value)
			continue;
		if (is_variant(b->value) && !(b->value = t->hooks->settle(&j, name, b->value)))
			continue;
		Op *op = op_new(c, OP_BUILTIN_SET_PARAMETER, context_loc(c, &l), 0, NULL, 1, &b->value, 0,
		                0);
		op_set_attr(op, "name", attr_str(c, name));
		op_append(t->block, op);
		t->failed |= !state_keeps_type(t, name, op);
		learnt |= !param_is_written(c, name) && param_get(c, name);
		param_set_written(c, name);
	}
	return learnt && !t->failed;
}

void binding_save(Translator *t, Binding *b)
{
	if (!t->top)
		return; // at the top nothing is undone
	VEC_ROOM(t->c->arena, t->undo, t->nundo, t->cundo);
	t->undo[t->nundo++] = (UndoEntry){.binding = b, .old = *b};
}

// ---- symbols ------------------------------------------------------------------------------------

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
	if (is_reserved_word(t.text, t.len))
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
