// What --trace and --assert-finite add to model_run in C: around each operator, a word to the one
// callback of the instance, and behind it, whether its results are finite. Called by blocks.c and
// run.c. Without these options nothing here prints.
#include "codegen/c/c.h"
#include "ir/base/vec.h"

static bool wanted(const Codegen *cg)
{
	return cg->options->trace || cg->options->assert_finite;
}

// ---- results ------------------------------------------------------------------------------------

// What loop.update and loop.append leave is mostly not theirs, and may not be there at all.
static bool result_is_whole(const Op *op, const Value *v)
{
	return op->code != OP_LOOP_UPDATE && op->code != OP_LOOP_APPEND && type_is_tensor(v->type) &&
	       value_place(v).kind != PLACE_NONE;
}

// Whether all sizes of a result are known where it was computed.
static bool sizes_are_bound(Codegen *cg, const Type *t, const Op **bound)
{
	for (int i = 0; i < cg->nsymbol; i++) {
		const Symbol *s = &cg->symbols[i];
		if (!s->dim->bounded || s->next || bound[i])
			continue;
		for (int d = 0; d < t->rank; d++)
			if (dim_mentions(t->dims[d], s->dim))
				return false;
	}
	return true;
}

static const char *address(Codegen *cg, const Value *v)
{
	const char *e = tensor_pointer(cg, v);
	return e && e[0] == '(' && e[1] == '&' ? expression_unwrap(cg->arena, e) : e;
}

static void value_print(Codegen *cg, const Value *v, int number, const char *data)
{
	const Type *t = v->type;
	const char *dtype = dtype_info_name(t->dtype);
	const int result = v->def ? (int)v->index : 0;
	if (!t->rank) {
		run_line(cg, 1, "pd_trace_value(&m->tracer, &trace_ops[%d], %d, %s, 0, NULL, %s);", number,
		         result, dtype, data);
		return;
	}
	Text dims;
	text_init(&dims, cg->arena);
	for (int d = 0; d < t->rank; d++)
		text_printf(&dims, "%s%s", d ? ", " : "",
		            expression_unwrap(cg->arena, dim_in_run(cg, t->dims[d])));
	run_open(cg, "");
	run_line(cg, 1, "const int64_t dims[] = {%s};", dims.text);
	run_line(cg, 1, "pd_trace_value(&m->tracer, &trace_ops[%d], %d, %s, %d, dims, %s);", number,
	         result, dtype, t->rank, data);
	run_close(cg);
}

static void finite_print(Codegen *cg, const Op *op, const Value *v, const char *data)
{
	const DType t = v->type->dtype;
	if (!cg->options->assert_finite || !(dtype_is_float(t) || dtype_is_complex(t)))
		return;
	const char *n = dim_in_run(cg, type_numel(cg->ctx, v->type));
	failure_print(cg,
	              arena_printf(cg->arena, "!pd_all_finite(%s, %s, %s)", dtype_info_name(t), data,
	                           expression_unwrap(cg->arena, n)),
	              "PD_NOT_FINITE", op);
}

static bool result_print(Codegen *cg, const Value *v, int number)
{
	const char *data = address(cg, v);
	if (!data)
		return false;
	if (cg->options->trace)
		value_print(cg, v, number, data);
	finite_print(cg, v->def, v, data);
	return true;
}

// Results whose sizes an operation has bound by now.
static bool late_print(Codegen *cg, const Op *op, const Op **bound)
{
	TraceState *t = &cg->trace;
	for (int i = 0; i < t->nlate; i++) {
		const Value *v = t->late[i].value;
		if (!v || v->def->block != op->block || !sizes_are_bound(cg, v->type, bound))
			continue;
		t->late[i].value = NULL;
		if (!result_print(cg, v, t->late[i].number))
			return false;
	}
	return true;
}

static bool trace_end(Codegen *cg, const Op *op, const Op **bound)
{
	TraceState *t = &cg->trace;
	const bool silent = t->next != NULL;
	if (!wanted(cg) || silent)
		return true;
	const int number = t->n - 1;
	if (cg->options->trace)
		run_line(cg, 1, "pd_trace_step(&m->tracer, &trace_ops[%d], PD_TRACE_END);", number);
	for (int i = 0; i < op->nresult; i++) {
		const Value *v = &op->results[i];
		if (!result_is_whole(op, v))
			continue;
		if (!sizes_are_bound(cg, v->type, bound)) {
			VEC_ROOM(cg->arena, t->late, t->nlate, t->clate);
			t->late[t->nlate++] = (LateValue){v, number};
		} else if (!result_print(cg, v, number)) {
			return false;
		}
	}
	return late_print(cg, op, bound);
}

bool traced_op_print(Codegen *cg, const Op *op, const Op **bound)
{
	cg->trace.next = cg->options->trace ? op : NULL;
	const size_t from = cg->run.len;
	cg->map.called = -1;
	if (!run_op_print(cg, op, bound))
		return false;
	if (cg->options->map && cg->run.len > from)
		map_note(cg, op, cg->map.called, from);
	return trace_end(cg, op, bound);
}

void trace_inputs_print(Codegen *cg)
{
	for (int i = 0; cg->options->assert_finite && i < cg->ninput; i++) {
		const Port *p = &cg->inputs[i];
		finite_print(cg, p->value->def, p->value, arena_printf(cg->arena, "in->%s", p->member));
	}
}

// ---- around model_run ---------------------------------------------------------------------------

void trace_ops_print(Codegen *cg, Text *out)
{
	const TraceState *t = &cg->trace;
	if (!cg->options->trace)
		return;
	text_str(out, "static const pd_trace_op trace_ops[] = {\n");
	for (int i = 0; i < t->n; i++)
		text_line(out, 1, "{%d, %s, %d, %d},", i,
		          string_literal(cg->arena, op_names(cg, t->ops[i])), t->ops[i]->loc->block,
		          t->ops[i]->loc->op);
	if (!t->n)
		text_line(out, 1, "{0, NULL, -1, -1},");
	text_str(out, "};\n\n");
	text_printf(out, "void %s_trace(%s *m, pd_trace *callback, void *arg)\n{\n", cg->prefix,
	            cg->prefix);
	text_line(out, 1, "m->tracer.callback = callback;");
	text_line(out, 1, "m->tracer.arg = arg;");
	text_str(out, "}\n\n");
}
