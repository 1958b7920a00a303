// The training step as a whole (train.h): which parameters learn, and the order of its parts.
#include "lower/grad/train.h"
#include "ir/base/vec.h"
#include "lower/grad/ports.h"
#include "lower/grad/train_step.h"

#include <string.h>

// ---- parameters ---------------------------------------------------------------------------------

typedef struct Reads {
	Context *c;
	int n, room;
	Op **list; // one for each parameter
	Op *front; // of the module, before anything moved
} Reads;

static Op *read_find(const Reads *r, const Attr *name)
{
	for (int i = 0; i < r->n; i++)
		if (op_attr(r->list[i], "name") == name)
			return r->list[i];
	return NULL;
}

// Each parameter is read once, in front of everything: its gradient is that of one value then.
static bool read_once(Op *op, void *arg)
{
	Reads *r = arg;
	if (op->code != OP_BUILTIN_GET_PARAMETER)
		return true;
	Op *first = read_find(r, op_attr(op, "name"));
	if (first) {
		value_replace(op_result(op, 0), op_result(first, 0));
		op_erase(op);
		return true;
	}
	VEC_ROOM(r->c->arena, r->list, r->n, r->room);
	r->list[r->n++] = op;
	if (op != r->front) {
		op_detach(op);
		op_insert_before(r->front, op);
	}
	return true;
}

// Whether runs store the parameter, as the program itself says.
static const Op *program_store(const Train *t, const char *name)
{
	for (const Op *op = module_block(t->module)->first; op; op = op->next)
		if (op->code == OP_BUILTIN_SET_PARAMETER && !strcmp(op_str(op, "name", ""), name))
			return op;
	return NULL;
}

// Means and variances of batch norms, and scales by which others are quantised, are measured: no
// parameters that gradients change.
static bool is_statistic(const Value *v)
{
	for (const Use *u = v->uses; u; u = u->next) {
		const Op *op = u->user;
		switch (op->code) {
		case OP_PD_BATCH_NORM:
			if (u->index == 1 || u->index == 2)
				return true;
			break;
		case OP_PD_QUANTIZE_LINEAR:
		case OP_PD_QUANTIZE_DEQUANTIZE:
		case OP_PD_DEQUANTIZE_LINEAR:
			if (u->index)
				return true;
			break;
		case OP_BUILTIN_COMBINE:
			if (is_statistic(&op->results[0]))
				return true;
			break;
		default: break;
		}
	}
	return false;
}

// What Paddle calls a tensor that is no parameter and has no name from its user: a buffer of a
// layer. Programs that Paddle 2 saves have no other word of which is which.
static bool is_buffer(const char *name)
{
	static const char *const stems[] = {"generated_tensor_", "generated_var_", "eager_tmp_"};
	for (size_t i = 0; i < COUNT_OF(stems); i++)
		if (!strncmp(name, stems[i], strlen(stems[i])))
			return true;
	return strstr(name, "._generated_var_") != NULL;
}

static bool learns(const Train *t, const Op *get)
{
	const Value *v = &get->results[0];
	if (is_buffer(op_str(get, "name", "")))
		return false;
	return get->code == OP_BUILTIN_GET_PARAMETER && type_is_tensor(v->type) &&
	       dtype_is_float(v->type->dtype) && !v->stop_gradient && !is_statistic(v) &&
	       !names_match(&t->recipe->freeze, op_str(get, "name", ""));
}

static bool param_add(Train *t, Op *get, int *room)
{
	const char *name = op_str(get, "name", "");
	const DType dtype = get->results[0].type->dtype;
	const Op *set = program_store(t, name);
	if (set)
		return train_fail_at(set,
		                     "the program itself trains parameter '%s': --train takes a "
		                     "program of inference",
		                     name);
	if (dtype_is_half(dtype))
		return train_fail_at(get, "parameter '%s' is %s: --train trains f32 and f64", name,
		                     dtype_name(dtype));
	if (t->n && dtype != t->dtype)
		return train_fail_at(get, "parameter '%s' is %s, and '%s' is %s: --train wants one type",
		                     name, dtype_name(dtype), t->params[0].name, dtype_name(t->dtype));
	t->dtype = dtype;
	VEC_ROOM(t->c->arena, t->params, t->n, *room);
	t->params[t->n++] = (Trainable){.name = name, .value = op_result(get, 0)};
	return true;
}

// Every pattern of a list must be the name of some parameter.
static bool names_known(const Train *t, const char *key, const RecipeNames *list)
{
	int n = 0;
	for (const Op *op = module_block(t->module)->first; op; op = op->next)
		n += op->code == OP_BUILTIN_GET_PARAMETER;
	const char **names = NEW_ARRAY(t->c->arena, (size_t)n + 1, const char *);
	n = 0;
	for (const Op *op = module_block(t->module)->first; op; op = op->next)
		if (op->code == OP_BUILTIN_GET_PARAMETER)
			names[n++] = op_str(op, "name", "");
	for (int i = 0; i < list->n; i++) {
		const RecipeNames one = {1, &list->list[i]};
		bool found = false;
		for (int k = 0; k < n && !found; k++)
			found = names_match(&one, names[k]);
		if (!found)
			return train_fail(t, list->list[i].line, "%s: the program reads no parameter '%s'%s",
			                  key, list->list[i].text,
			                  name_meant(t->c->arena, list->list[i].text, n, names));
	}
	return true;
}

static bool params_find(Train *t)
{
	int room = 0;
	Reads reads = {.c = t->c, .front = module_block(t->module)->first};
	op_walk(t->module, read_once, &reads);
	if (!names_known(t, "freeze", &t->recipe->freeze) ||
	    !names_known(t, "no_decay", &t->recipe->no_decay))
		return false;
	for (Op *op = module_block(t->module)->first; op; op = op->next)
		if (learns(t, op) && !param_add(t, op, &room))
			return false;
	return t->n || train_fail(t, 0, "the program has no parameter to train");
}

// ---- the step -----------------------------------------------------------------------------------

// What comes in for the loss is 1; all else follows.
static bool gradients(Train *t, Op *loss)
{
	Block *block = module_block(t->module);
	const DualsHow how = {.expand = t->how->expand, .remat = t->how->remat};
	Duals *d = duals_new(t->c, &how);
	Op *last = block->last;
	for (int i = 0; i < t->n; i++)
		duals_want(d, t->params[i].value);
	Builder b = train_builder(t, "gradient", NULL);
	Value *one = build_full(&b, op_operand(loss, 0)->type, 1);
	if (!one || !duals_add(&b, d, op_operand(loss, 0), one) ||
	    !gradient_ops(&b, d, block->first, last))
		return false;
	bool any = false;
	for (int i = 0; i < t->n; i++) {
		t->params[i].grad = duals_get(&b, d, t->params[i].value);
		any |= t->params[i].grad != NULL;
	}
	return any ||
	       train_fail(t, t->recipe->of.line, "the loss hangs on no parameter that is trained");
}

static void store_all(Train *t)
{
	for (int i = 0; i < t->nstored; i++) {
		const Stored *s = &t->stored[i];
		const Loc l = {.file = t->c->file, .block = -1, .op = -1, .var = s->name};
		Op *op = op_new(t->c, OP_BUILTIN_SET_PARAMETER, context_loc(t->c, &l), 0, NULL, 1,
		                &t->stored[i].value, 0, 0);
		op_set_attr(op, "name", attr_str(t->c, s->name));
		op_append(module_block(t->module), op);
		param_set_written(t->c, s->name);
	}
}

bool train(Op *module, const Recipe *r, const DeriveHow *how)
{
	Train t = {.c = module->ctx, .module = module, .recipe = r, .how = how};
	if (!params_find(&t) || !train_forms(&t))
		return false;
	Op *loss = train_loss(&t);
	if (!loss || !gradients(&t, loss) || !train_update(&t))
		return false;
	store_all(&t);
	return true;
}
