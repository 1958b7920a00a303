// The body of model_run in C: calls, sizes that a run finds, copies, blocks with labels. Called by
// model/run.c through c_backend.
#include "codegen/c/c.h"
#include "codegen/nest/nest.h"

#include <string.h>

static void fetch_print(Codegen *cg, const Op *op, int col, const char *from)
{
	const Value *v = op_operand(op, 0);
	run_line(cg, 1, "memcpy(out->%s, %s, (size_t)%s);", cg->outputs[col].member, from,
	         dim_in_run(cg, type_bytes_in_run(cg, v->type)));
}

static void store_print(Codegen *cg, const Op *op, const char *at, const char *data,
                        const char *bytes)
{
	run_line(cg, 1, "memcpy(%s, %s, (size_t)%s);", at, data, bytes);
}

// Whether a number that the code would compare with the size is the literal that the size is.
static bool size_is_literal(Codegen *cg, const Dim *d, const char *number)
{
	return dim_is_const(d) && !strcmp(number, dim_in_run(cg, d));
}

// An element becomes the size of a symbol, within its bound; or is checked to be the size that is
// known.
static void size_bind(Codegen *cg, const Op *op, const Dim *d, const char *element,
                      const Op **bound)
{
	Arena *a = cg->arena;
	const Symbol *s = d->kind == DIM_SYM ? symbol_find(cg, d) : NULL;
	const bool again = s && bound[s - cg->symbols];
	if (!s || !s->dim->bounded || s->next || (again && !op_bool(op, "anew", false))) {
		failure_print(cg, arena_printf(a, "%s != %s", element, dim_in_run(cg, d)), "PD_DIMS", op);
		return;
	}
	bound[s - cg->symbols] = op;
	if (cg->blocks && !again)
		local_declare(cg, LOCAL_NUMBER, "int64_t ", s->name, "0");
	run_line(cg, 1, "%s%s = %s;", cg->blocks ? "" : "const int64_t ", s->name, element);
	if (s->reported)
		run_line(cg, 1, "out->found_%s = %s;", s->name, s->name);
	if (!number_is_natural(a, op_operand(op, 0)))
		failure_print(cg, arena_printf(a, "%s < 0", s->name), "PD_DIMS", op);
	if (s->max)
		failure_print(cg, arena_printf(a, "%s > %s", s->name, s->max), "PD_CAPACITY", op);
}

static bool bind_print(Codegen *cg, const Op *op, const Op **bound)
{
	const Attr *dims = op_attr(op, "dims");
	const Value *v = op_operand(op, 0);
	const char *x = dims->n == 1 ? tensor_element(cg, v) : tensor_pointer(cg, v);
	const char *as = v->type->dtype == DT_I64 ? "" : "(int64_t)";
	bool said = false;
	for (int i = 0; x && i < dims->n; i++) {
		if (dims->n == 1 && size_is_literal(cg, dims->dims[i], x))
			continue;
		if (!said)
			run_comment(cg, "%s: sizes that follow from data",
			            comment_text(cg->arena, op_title(cg, op)));
		said = true;
		size_bind(cg, op, dims->dims[i],
		          dims->n == 1 ? arena_printf(cg->arena, "%s%s", as, x)
		                       : arena_printf(cg->arena, "%s%s[%d]", as, x, i),
		          bound);
	}
	return x != NULL;
}

// Symbols that are the room which the caller made. A write that needs more says how much.
static bool capacity_print(Codegen *cg, const Op *op, const Op **bound)
{
	const Attr *dims = op_attr(op, "dims");
	run_comment(cg, "room in tensor arrays");
	for (int i = 0; i < dims->n; i++) {
		const Symbol *s = symbol_find(cg, dims->dims[i]);
		bound[s - cg->symbols] = op;
		if (!s->max) // the array went, but for its length
			continue;
		if (cg->blocks)
			local_declare(cg, LOCAL_NUMBER, "int64_t ", s->name, "0");
		run_line(cg, 1, "%s%s = %s;", cg->blocks ? "" : "const int64_t ", s->name, s->max);
		if (!s->bound)
			run_line(cg, 1, "out->found_%s = %s;", s->name, s->name);
	}
	return true;
}

static bool assert_print(Codegen *cg, const Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	int64_t n;
	const bool one = type_const_numel(t, &n) && n == 1;
	const char *cond = one ? tensor_element(cg, op_operand(op, 0))
	                       : tensor_pointer(cg, op_operand(op, 0));
	if (!cond)
		return false;
	if (one && !strcmp(cond, "1"))
		return true;
	run_comment(cg, "%s", comment_text(cg->arena, op_title(cg, op)));
	if (one) {
		failure_print(cg, arena_printf(cg->arena, "!%s", cond), assert_status(op), op);
		return true;
	}
	run_line(cg, 1, "for (int64_t i = 0; i < %s; i++) {", dim_in_run(cg, type_numel(cg->ctx, t)));
	run_line(cg, 2, "if (!%s[i]) {", cond);
	run_line(cg, 3, "m->failed = %s;", string_literal(cg->arena, op_where(cg, op)));
	run_line(cg, 3, "return %s;", assert_status(op));
	run_line(cg, 2, "}");
	run_line(cg, 1, "}");
	return true;
}

// What a caller cannot know before the run.
static void output_dims_print(Codegen *cg)
{
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].next && cg->symbols[i].reported)
			run_line(cg, 1, "out->found_%s = %s;", cg->symbols[i].name, cg->symbols[i].name);
	for (int i = 0; i < cg->noutput; i++)
		for (int d = 0; cg->outputs[i].dims && d < cg->outputs[i].type->rank; d++)
			run_line(cg, 1, "out->%s[%d] = %s;", cg->outputs[i].dims, d,
			         dim_in_run(cg, cg->outputs[i].type->dims[d]));
}

static bool program_print(Codegen *cg, const Op **bound)
{
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].next)
			local_declare(cg, LOCAL_NUMBER, "int64_t ", cg->symbols[i].name, "0");
	trace_inputs_print(cg);
	if (!blocks_print(cg, bound))
		return false;
	text_char(&cg->run, '\n');
	output_dims_print(cg);
	return true;
}

void c_run_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	if (cg->fails)
		local_declare(cg, LOCAL_NUMBER, "int ", "fault", "0");
	locals_place(cg);
	trace_ops_print(cg, out);
	text_str(out, cg->tables.text ? cg->tables.text : "");
	plan_print(cg, out);
	text_printf(out, "pd_status %s_%s(%s *m, const %s_inputs *in, %s_outputs *out)\n{\n", p,
	            cg->options->entry, p, p, p);
	run_checks_print(cg, out);
	run_locals_print(cg, out);
	locals_print(cg, out);
	cg->map.run_at = out->len;
	text_str(out, cg->run.text ? cg->run.text : "");
	text_str(out, "\treturn PD_OK;\n}\n");
}

const Backend c_backend = {
	.name = "C",
	.memory = "workspace",
	.head = "PD_APART void " KERNEL_FN "(" KERNEL_PARAMS ")\n{",
	.helper = "static inline",
	.copy = "memcpy(",
	.queue = "",
	.reset = "m->failed",
	.module = c_module_print,
	.emitter = compute_emitter,
	.walk = program_print,
	.compute = compute_print,
	.bind = bind_print,
	.capacity = capacity_print,
	.update = update_print,
	.append = append_print,
	.assert_ = assert_print,
	.fetch = fetch_print,
	.store = store_print,
	.tensor = tensor_pointer,
	.reduce = reduce_print,
	.states = c_states_print,
	.state_copy = c_state_copy_print,
};
