// One operation that computes, in C: its function, the call of it in model_run, and what ends the
// run when it fails. Called by run.c through c_backend, and by repeat.c.
#include "codegen/c/c.h"
#include "codegen/nest/nest.h"

#include <string.h>

#include "ops_emit_c.inc"

// By the operator table: `emit: {c: name}`.
Emitter *compute_emitter(const Op *op)
{
	return emitters[op->code];
}

// The run ends, and names the operation whose index is out of range. The last name serves the last
// checks that have it.
static void faults_print(Codegen *cg, const KernelFunc *k)
{
	const char *last = string_literal(cg->arena, op_where(cg, k->faults[k->nfault - 1]));
	int named = k->nfault - 1;
	while (named &&
	       !strcmp(op_where(cg, k->faults[named - 1]), op_where(cg, k->faults[k->nfault - 1])))
		named--;
	run_line(cg, 1, "if (fault) {");
	if (!named)
		run_line(cg, 2, "m->failed = %s;", last);
	for (int i = 0; i < named; i++) {
		run_line(cg, i ? 3 : 2, "%sfault == %d", i ? ": " : "m->failed = ", i + 1);
		run_line(cg, 3, "? %s", string_literal(cg->arena, op_where(cg, k->faults[i])));
	}
	if (named)
		run_line(cg, 3, ": %s;", last);
	run_line(cg, 2, "return PD_INDEX;");
	run_line(cg, 1, "}");
}

KernelFunc *compute_make(Codegen *cg, const Op *op)
{
	KernelFunc *k = (KernelFunc *)pointer_map_get(&cg->made, op);
	if (k)
		return k;
	k = kernel_new(cg, op);
	k->inlined = nest_is_statement(&cg->numbers, op);
	if (!(k->inlined ? nest_statement(k) : compute_emitter(op)(k)))
		return NULL;
	if (k->units)
		share_print(k);
	const char *kinds = op_kinds(cg, op);
	k->comment = kinds ? comment_text(cg->arena, kinds) : NULL;
	if (!k->inlined)
		kernel_finish(k);
	cg->fails |= k->status;
	pointer_map_set(&cg->made, op, k);
	return k;
}

bool compute_call(Codegen *cg, const KernelFunc *k, const char *const *given)
{
	Text args;
	text_init(&args, cg->arena);
	for (int i = 0; i < k->nparam; i++) {
		const char *e = given && given[i] ? given[i] : call_argument(cg, &k->params[i]);
		if (!e)
			return false;
		text_printf(&args, "%s%s", i ? ", " : "", e);
	}
	const char *name = cg->funcs[k->number].name;
	if (k->units)
		share_call_print(cg, k, name, args.text);
	else
		run_line(cg, 1, "%s%s(%s);", k->status ? "fault = " : "", name, args.text ? args.text : "");
	if (k->status)
		faults_print(cg, k);
	return true;
}

void compute_comment(Codegen *cg, const Op *op)
{
	run_comment(cg, "%s: %s", comment_text(cg->arena, op_names(cg, op)),
	            shape_comment(cg, op->results[0].type));
}

bool compute_print(Codegen *cg, const Op *op, Emitter *emit)
{
	(void)emit;
	const KernelFunc *k = compute_make(cg, op);
	if (!k)
		return false;
	cg->map.called = k->inlined ? -1 : k->number;
	compute_comment(cg, op);
	if (!slots_print(cg, op))
		return false;
	if (!k->inlined)
		return compute_call(cg, k, NULL);
	text_str(&cg->run, k->text.text);
	return true;
}
