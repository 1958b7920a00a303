// Parameters that runs change: the table of them, how they begin (model_reset), and how a program
// gets at them by name (model_parameter). The plan puts them in front of the workspace, so they
// live as long as the instance. Called by module.c, run.c, header.c, info.c and the CUDA printers.
#include "codegen/model/model.h"

#include <inttypes.h>
#include <string.h>

// The row of that name, sorted in; new rows have no type.
static State *state_row(Codegen *cg, const char *name)
{
	int at = 0;
	while (at < cg->nstate && strcmp(cg->states[at].name, name) < 0)
		at++;
	if (at < cg->nstate && !strcmp(cg->states[at].name, name))
		return &cg->states[at];
	State *more = NEW_ARRAY(cg->arena, (size_t)cg->nstate + 1, State);
	if (at)
		memcpy(more, cg->states, (size_t)at * sizeof *more);
	if (cg->nstate > at)
		memcpy(more + at + 1, cg->states + at, (size_t)(cg->nstate - at) * sizeof *more);
	cg->states = more;
	cg->nstate++;
	more[at] = (State){.name = name, .initial = -1};
	return &more[at];
}

static bool offset_read(const Op *op, int64_t *out)
{
	bool view;
	const Place p = op_place(op, 0, &view);
	if (!p.state || !p.offset || !dim_is_const(p.offset))
		return false;
	*out = p.offset->value;
	return true;
}

void states_collect(Codegen *cg)
{
	const Attr *bytes = op_attr(cg->module, "state");
	cg->state_bytes = bytes && bytes->kind == ATTR_DIM && dim_is_const(bytes->dim)
	                      ? bytes->dim->value
	                      : 0;
	for (const Op *op = module_first(cg->module); op; op = module_next(op)) {
		const bool get = op->code == OP_BUILTIN_GET_PARAMETER;
		int64_t offset;
		if ((!get && op->code != OP_BUILTIN_SET_PARAMETER) || !offset_read(op, &offset))
			continue;
		State *s = state_row(cg, op_str(op, "name", ""));
		const Attr *initial = op_attr(op, "initial");
		s->type = get ? op->results[0].type : op_operand(op, 0)->type;
		s->offset = offset;
		if (initial && initial->kind == ATTR_DIM && dim_is_const(initial->dim))
			s->initial = initial->dim->value;
	}
}

State *state_find(Codegen *cg, const Op *get)
{
	for (int i = 0; i < cg->nstate; i++)
		if (!strcmp(cg->states[i].name, op_str(get, "name", "")))
			return &cg->states[i];
	return NULL;
}

static int64_t state_bytes(const State *s)
{
	int64_t n = 0;
	return type_const_numel(s->type, &n) ? n * (int64_t)dtype_size(s->type->dtype) : 0;
}

void states_begin_print(Codegen *cg, Text *out)
{
	for (int i = 0; i < cg->nstate; i++) {
		const State *s = &cg->states[i];
		if (s->initial < 0)
			continue;
		text_line(out, 1, "%sm->workspace + %" PRId64 ", %s, %" PRId64 "); /* %s */",
		          cg->backend->copy, s->offset,
		          s->array && !cg->backend->device
		              ? s->array->name
		              : arena_printf(cg->arena, "m->weights + %" PRId64, s->initial),
		          state_bytes(s), comment_text(cg->arena, s->name));
	}
}

static void table_print(Codegen *cg, Text *out)
{
	for (int i = 0; i < cg->nstate; i++) {
		const Type *t = cg->states[i].type;
		if (!t->rank)
			continue;
		text_printf(out, "static const int64_t parameter_dims_%d[] = {", i);
		for (int d = 0; d < t->rank; d++)
			text_printf(out, "%s%" PRId64, d ? ", " : "", t->dims[d]->value);
		text_str(out, "};\n");
	}
	text_str(out, "static const pd_parameter_info parameter_infos[] = {\n");
	for (int i = 0; i < cg->nstate; i++) {
		const State *s = &cg->states[i];
		text_printf(out, "\t{%s, %s, %d, %s, %" PRId64 ", %" PRId64 "},\n",
		            string_literal(cg->arena, s->name), dtype_info_name(s->type->dtype),
		            s->type->rank,
		            s->type->rank ? arena_printf(cg->arena, "parameter_dims_%d", i) : "NULL",
		            state_bytes(s), s->offset);
	}
	text_str(out, "};\n\n");
}

void states_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	if (!cg->nstate)
		return;
	table_print(cg, out);
	cg->backend->states(cg, out);
	text_printf(out, "pd_parameter %s_parameter(%s *m, const char *name)\n{\n", p, p);
	text_line(out, 1, "pd_parameter found = {NULL, NULL};");
	text_line(out, 1, "for (int i = 0; m && m->ready && name && i < %d; i++)", cg->nstate);
	text_line(out, 2, "if (!strcmp(parameter_infos[i].name, name)) {");
	text_line(out, 3, "found.info = &parameter_infos[i];");
	text_line(out, 3, "found.data = m->workspace + parameter_infos[i].offset;");
	text_line(out, 2, "}");
	text_str(out, "\treturn found;\n}\n\n");
}

void states_declare(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	if (!cg->nstate)
		return;
	text_printf(
		out,
		"/* Parameters that runs change are part of the instance, in its %s: init gives them their "
		"values, "
		"each run goes on from the one\n"
		" * before, reset starts anew. After a run that failed they may be changed in part. */\n",
		cg->backend->memory);
	text_printf(out, "%spd_status %s_reset(%s *m%s);\n", exported(cg), p, p, cg->backend->queue);
	text_printf(out,
	            "/* Such a parameter by its name, to read and to write%s; info and data are NULL "
	            "when there is none:",
	            cg->backend->device ? " (memory of the device)" : "");
	for (int i = 0; i < cg->nstate; i++)
		text_printf(out, "\n * %s %s", comment_text(cg->arena, cg->states[i].name),
		            shape_comment(cg, cg->states[i].type));
	text_printf(out, " */\n%spd_parameter %s_parameter(%s *m, const char *name);\n", exported(cg),
	            p, p);
}

void states_info_functions(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	if (!cg->nstate)
		return;
	for (int set = 0; set < 2; set++) {
		text_printf(
			out, "static pd_status %s_info_parameter_%s(void *instance, int i, %svoid *data)\n{\n",
			p, set ? "set" : "get", set ? "const " : "");
		cg->backend->state_copy(cg, out, set);
	}
}
