// Kernels whose work threads share: a function for one part of it, and the call in model_run. The
// emitter has printed a function over the range [begin, end) of k->units; which kernels these are
// says the attribute `parallel`. Called by run.c.
//
//   typedef struct compute_y_call { float *out; const float *x; int64_t units, parts; } ..;
//   static void compute_y_part(void *context, int part)
//   {
//       const compute_y_call *c = (const compute_y_call *)context;
//       compute_y(c->out, c->x, pd_part_begin(c->units, part, c->parts), ..);
//   }
#include "codegen/c/c.h"
#include "codegen/nest/nest.h"

// Calls visit for each parameter, in the order in which kernel_finish declares them.
static void each_param(const KernelFunc *k, Text *out,
                       void (*visit)(const KernelFunc *k, const KernelParam *p, Text *out))
{
	for (int sizes = 0; sizes < 2; sizes++)
		for (int i = 0; i < k->nparam; i++)
			if ((k->params[i].value == NULL) == (sizes == 1))
				visit(k, &k->params[i], out);
}

static void member_print(const KernelFunc *k, const KernelParam *p, Text *out)
{
	text_line(out, 1, "%s%s;", kernel_param_type(k, p), p->name);
}

static void argument_print(const KernelFunc *k, const KernelParam *p, Text *out)
{
	(void)k;
	text_printf(out, "call->%s, ", p->name);
}

void share_print(KernelFunc *k)
{
	Text *out = &k->text;
	text_str(out, "\ntypedef struct " KERNEL_FN "_call {\n");
	each_param(k, out, member_print);
	text_line(out, 1, "int64_t units, parts;");
	if (k->status)
		text_line(out, 1, "int faults[%s_THREADS]; /* of each part */",
		          name_upper(k->arena, k->cg->prefix));
	text_str(out, "} " KERNEL_FN "_call;\n\nstatic void " KERNEL_FN
	              "_part(void *context, int part)\n{\n");
	text_line(out, 1, KERNEL_FN "_call *call = (" KERNEL_FN "_call *)context;");
	text_printf(out, "\t%s" KERNEL_FN "(", k->status ? "call->faults[part] = " : "");
	each_param(k, out, argument_print);
	text_str(out, "pd_part_begin(call->units, part, call->parts),\n\t    "
	              "pd_part_begin(call->units, part + 1, call->parts));\n}\n");
}

void share_call_print(Codegen *cg, const KernelFunc *k, const char *name, const char *args)
{
	const char *worth = expression_unwrap(cg->arena,
	                                      dim_in_run(cg, op_attr(k->op, "parallel")->dim));
	const char *units = expression_unwrap(cg->arena, dim_in_run(cg, k->units));
	run_line(cg, 1, "{");
	run_line(cg, 2, "%s_call call = {%s, %s, pd_parts(m->threads, %s, %s)%s};", name, args, units,
	         worth, units, k->status ? ", {0}" : "");
	run_line(cg, 2, "pd_share(m->parallel_for, m->pool, %s_part, &call, (int)call.parts);", name);
	if (k->status)
		run_line(cg, 2, "fault = pd_first_fault(call.faults, (int)call.parts);");
	run_line(cg, 1, "}");
}
