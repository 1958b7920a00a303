// The document: which file writes which operation, the parameters. Above the other pir_out files.
#include "frontend/write/pir_out.h"
#include "ir/base/vec.h"

#include <stdlib.h>
#include <string.h>

// ---- blocks -------------------------------------------------------------------------------------

static bool no_operation(PirWriter *w, const Op *op)
{
	(void)w;
	(void)op;
	return true;
}

static bool bind(PirWriter *w, const Op *op)
{
	out_size_bind(w, op);
	return true;
}

// The size that a nest gives as a number.
static bool size_nest(PirWriter *w, const Op *op)
{
	const Dim *d = out_size_nest(op);
	const int64_t v = d ? out_size(w, d) : 0;
	if (!d)
		return out_fail(w, "Paddle 3 has no such operation");
	out_bind(w, &op->results[0], v);
	return v != 0;
}

static const struct {
	enum OpCode code;
	OpWriter *write;
} special[] = {
	{OP_PD_FEED, out_feed},
	{OP_PD_FETCH, out_fetch},
	{OP_PD_IF, out_if},
	{OP_PD_WHILE, out_while},
	{OP_PD_CREATE_ARRAY, out_create_array},
	{OP_PD_ARRAY_WRITE, out_array_write},
	{OP_PD_ARRAY_SLICE, out_array_slice},
	{OP_LOOP_BIND, bind},
	{OP_LOOP_NEST, size_nest},
	{OP_CF_YIELD, no_operation},
	{OP_CF_COND_YIELD, no_operation},
	{OP_BUILTIN_GET_PARAMETER, out_parameter},
	{OP_BUILTIN_SET_PARAMETER, out_set_parameter},
	{OP_BUILTIN_CONSTANT, out_constant},
	{OP_BUILTIN_COMBINE, out_combine},
	{OP_BUILTIN_SLICE, out_slice},
};

static bool write_op(PirWriter *w, const Op *op)
{
	for (size_t i = 0; i < COUNT_OF(special); i++)
		if (special[i].code == op->code)
			return special[i].write(w, op);
	return out_general(w, op);
}

static bool write_block(PirWriter *w, const Block *b)
{
	bool ok = true;
	for (const Op *op = b->first; op; op = op->next) {
		const Op *outer = w->at;
		w->at = op;
		ok &= write_op(w, op);
		w->at = outer;
	}
	return ok;
}

// ---- parameters, the document -------------------------------------------------------------------

static bool number_op(Op *op, void *arg)
{
	PointerMap *m = arg;
	pointer_map_set_index(m, op, (int)m->count);
	return true;
}

static void find_firsts(PirWriter *w)
{
	name_map_init(&w->gets, w->c->arena);
	name_map_init(&w->sets, w->c->arena);
	for (Op *op = module_block(w->module)->first; op; op = op->next) {
		NameMap *m = op->code == OP_BUILTIN_GET_PARAMETER   ? &w->gets
		             : op->code == OP_BUILTIN_SET_PARAMETER ? &w->sets
		                                                    : NULL;
		const char *name = op_str(op, "name", "");
		if (m && !name_map_has(m, name))
			name_map_set(m, name, op);
	}
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Each parameter that is read, once.
static bool parameters(PirWriter *w, Tensor ***tensors, int *n)
{
	const char **names = NULL;
	int count = 0, room = 0, kept = 0;
	for (const Op *op = module_block(w->module)->first; op; op = op->next)
		if (op->code == OP_BUILTIN_GET_PARAMETER) {
			VEC_ROOM(w->c->arena, names, count, room);
			names[count++] = op_str(op, "name", "");
		}
	if (count)
		qsort(names, (size_t)count, sizeof *names, compare_names);
	*tensors = NEW_ARRAY(w->c->arena, (size_t)count + 1, Tensor *);
	for (int i = 0; i < count; i++)
		if (!i || strcmp(names[i], names[i - 1]) != 0)
			(*tensors)[kept++] = param_get(w->c, names[i]);
	*n = kept;
	return true;
}

bool pir_write(Op *module, Text *json, Tensor ***params, int *nparam)
{
	PirWriter w = {.block = write_block,
	               .c = module->ctx,
	               .module = module,
	               .t = json,
	               .next = 1,
	               .next_arg = -1,
	               .first = true};
	pointer_map_init(&w.numbers, w.c->arena);
	pointer_map_init(&w.positions, w.c->arena);
	pointer_map_init(&w.placed, w.c->arena);
	pointer_map_init(&w.parameters, w.c->arena);
	pir_give_values(module);
	op_walk(module, number_op, &w.positions);
	find_firsts(&w);
	text_str(json, "{\"base_code\":{\"magic\":\"pir\",\"trainable\":true,\"version\":3},"
	               "\"program\":{\"regions\":[");
	out_region_begin(&w, 0, NULL);
	const bool ok = write_block(&w, module_block(module));
	out_region_end(&w);
	text_str(json, "]}}\n");
	return ok && !diag_errors(w.c->diag) && parameters(&w, params, nparam);
}
