// Prints model_info, the description that programs can walk, with the type-erased entry points
// behind it; and model_call. Called by codegen.c.
#include "codegen/model/model.h"
#include "runtime_stub/pdrt.h"

#include <inttypes.h>

static int dim_symbol(const Codegen *cg, const Dim *d)
{
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].dim == d)
			return i;
	return -2;
}

// `symbol`, or `symbol + constant`, which a program can solve for the symbol.
static const char *dim_info(const Codegen *cg, const Dim *d)
{
	if (dim_is_const(d))
		return arena_printf(cg->arena, "{%" PRId64 ", -1}", d->value);
	bool sum = d->kind == DIM_ADD && d->a->kind == DIM_SYM && d->b->kind == DIM_CONST;
	return arena_printf(cg->arena, "{%" PRId64 ", %d}", sum ? d->b->value : 0,
	                    dim_symbol(cg, sum ? d->a : d));
}

const char *dtype_info_name(DType t)
{
	static const char *const names[DT_COUNT] = {"PD_BOOL", "PD_U8",  "PD_I8",  "PD_I16",
	                                            "PD_I32",  "PD_I64", "PD_F16", "PD_BF16",
	                                            "PD_F32",  "PD_F64", "PD_C64", "PD_C128"};
	return names[t];
}

static void tensor_dims(Codegen *cg, Text *out, const char *which, const Port *ports, int n)
{
	for (int i = 0; i < n; i++) {
		const Type *t = ports[i].type;
		if (!t->rank)
			continue;
		text_printf(out, "static const pd_dim %s_dims_%d[] = {", which, i);
		for (int d = 0; d < t->rank; d++)
			text_printf(out, "%s%s", d ? ", " : "", dim_info(cg, t->dims[d]));
		text_str(out, "};\n");
	}
	if (!n)
		return;
	static const char *const parts[] = {"PD_WHOLE",       "PD_ARRAY_DATA",    "PD_ARRAY_LENGTH",
	                                    "PD_ARRAY_SIZES", "PD_ARRAY_PRESENT", "PD_TYPE",
	                                    "PD_WHICH"};
	text_printf(out, "static const pd_tensor_info %s_tensors[] = {\n", which);
	for (int i = 0; i < n; i++)
		text_printf(out, "\t{%s, %s, %d, %s, %d, %d, %d, %s, %d},\n",
		            string_literal(cg->arena, ports[i].name), dtype_info_name(ports[i].type->dtype),
		            ports[i].type->rank,
		            ports[i].type->rank ? arena_printf(cg->arena, "%s_dims_%d", which, i) : "NULL",
		            ports[i].lod_of, ports[i].level, ports[i].levels, parts[ports[i].part],
		            ports[i].of);
	text_str(out, "};\n\n");
}

static const char *array_symbol(const Dim *sym, void *arg)
{
	const Codegen *cg = arg;
	const Symbol *s = symbol_find(cg, sym);
	return arena_printf(cg->arena, s && s->bound ? "size_%d" : "symbols[%d]", dim_symbol(cg, sym));
}

// Sizes that a run finds and whose bounds follow from others are not known before it: they count as
// their bounds.
static void found_sizes(Codegen *cg, const char *body, Text *out)
{
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].bound && text_has_word(body, arena_printf(cg->arena, "size_%d", i)))
			text_line(out, 1, "const int64_t size_%d = symbols[%d] < 0 ? %s : symbols[%d];", i, i,
			          dim_expression(cg->arena, cg->symbols[i].bound, array_symbol, cg), i);
}

// The body of a function of `symbols` that fills the array `to`, after the sizes that it needs.
static void filling_print(Codegen *cg, const char *to, Text *body, Text *out)
{
	Text sizes;
	text_init(&sizes, cg->arena);
	found_sizes(cg, body->len ? body->text : "", &sizes);
	const char *parts[] = {sizes.len ? sizes.text : "", body->len ? body->text : ""};
	if (!text_has_word(parts[0], "symbols") && !text_has_word(parts[1], "symbols"))
		text_line(out, 1, "(void)symbols;");
	if (!body->len)
		text_line(out, 1, "(void)%s;", to);
	text_printf(out, "%s%s}\n\n", parts[0], parts[1]);
}

static void dims_copy(Codegen *cg, Text *out)
{
	text_line(out, 1, "%s_dims dims;", cg->prefix);
	for (int i = 0; i < cg->nsymbol; i++)
		if (symbol_member(&cg->symbols[i]))
			text_line(out, 1, "dims.%s = symbols[%d];", symbol_member(&cg->symbols[i]), i);
}

static void size_function(Codegen *cg, Text *out)
{
	text_printf(out, "static size_t %s_info_workspace_size(const int64_t *symbols)\n{\n",
	            cg->prefix);
	if (cg->nmember) {
		dims_copy(cg, out);
		text_printf(out, "\treturn %s_workspace_size(&dims);\n}\n\n", cg->prefix);
	} else {
		text_printf(out, "\t(void)symbols;\n\treturn %s_workspace_size();\n}\n\n", cg->prefix);
	}
}

static void shapes_function(Codegen *cg, Text *out)
{
	text_printf(out, "static void %s_info_shapes(const int64_t *symbols, int64_t *dims)\n{\n",
	            cg->prefix);
	Text body;
	text_init(&body, cg->arena);
	int at = 0;
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < (side ? cg->noutput : cg->ninput); i++) {
			const Type *t = side ? cg->outputs[i].type : cg->inputs[i].type;
			for (int d = 0; d < t->rank; d++)
				text_line(&body, 1, "dims[%d] = %s;", at++,
				          dim_expression(cg->arena, t->dims[d], array_symbol, cg));
		}
	filling_print(cg, "dims", &body, out);
}

static void room_function(Codegen *cg, Text *out)
{
	text_printf(out, "static void %s_info_room(const int64_t *symbols, int64_t *elements)\n{\n",
	            cg->prefix);
	Text body;
	text_init(&body, cg->arena);
	for (int i = 0; i < cg->noutput; i++) {
		const Type *t = cg->outputs[i].type;
		const Dim *size = dim_const(cg->ctx, (int64_t)dtype_size(t->dtype)),
				  *elements = dim_div(cg->ctx, type_bytes_at_most(cg->ctx, t), size);
		const char *e = dim_expression(cg->arena, elements, array_symbol, cg);
		text_line(&body, 1, "elements[%d] = %s;", i, expression_unwrap(cg->arena, e));
	}
	filling_print(cg, "elements", &body, out);
}

// The prefix may be the name of a parameter or a variable here, hence `struct` before it: tags have
// names of their own.
static void run_function(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out,
	            "static pd_status %s_info_run(void *instance, const void *const *inputs, void "
	            "*const *outputs, int64_t *symbols)\n{\n",
	            p);
	text_line(out, 1, "%s_inputs in;", p);
	text_line(out, 1, "%s_outputs out;", p);
	for (int i = 0; i < cg->nsymbol; i++)
		if (symbol_member(&cg->symbols[i]))
			text_line(out, 1, "in.dims.%s = symbols[%d];", symbol_member(&cg->symbols[i]), i);
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].reported)
			text_line(out, 1, "out.found_%s = symbols[%d];", cg->symbols[i].name, i);
	for (int i = 0; i < cg->ninput; i++)
		text_line(out, 1, "in.%s = (const %s *)inputs[%d];", cg->inputs[i].member,
		          dtype_c_memory(cg->inputs[i].type->dtype), i);
	for (int i = 0; i < cg->noutput; i++)
		text_line(out, 1, "out.%s = (%s *)outputs[%d];", cg->outputs[i].member,
		          dtype_c_memory(cg->outputs[i].type->dtype), i);
	if (!cg->ninput)
		text_line(out, 1, "(void)inputs;");
	if (!cg->ninput && !cg->nmember)
		text_line(out, 1, "in.none = 0;");
	if (!cg->noutput)
		text_str(out, "\t(void)outputs;\n\tout.none = 0;\n");
	text_line(out, 1, "(void)symbols;");
	text_printf(out, "\tconst pd_status status = %s_%s((struct %s *)instance, &in, &out);\n", p,
	            cg->options->entry, p);
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].reported)
			text_line(out, 1, "symbols[%d] = out.found_%s;", i, cg->symbols[i].name);
	text_str(out, "\treturn status;\n}\n\n");
	text_printf(out,
	            "static pd_status %s_info_init(void *instance, const void *weights, size_t n, void "
	            "*workspace, size_t size)\n{\n\treturn %s_init((struct %s *)instance, weights, n, "
	            "workspace, size);\n}\n\n",
	            p, p, p);
	text_printf(out, "static const char *%s_info_failed(const void *instance)\n", p);
	text_printf(out, "{\n\treturn ((const struct %s *)instance)->failed;\n}\n\n", p);
}

static void trace_function(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	if (!cg->options->trace)
		return;
	text_printf(out,
	            "static void %s_info_trace(void *instance, pd_trace *callback, void *arg)\n{\n", p);
	text_line(out, 1, "%s_trace((struct %s *)instance, callback, arg);", p, p);
	text_str(out, "}\n\n");
}

static void threads_function(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	if (cg->threads <= 1)
		return;
	text_printf(out,
	            "static pd_status %s_info_threads(void *instance, int threads, pd_parallel_for "
	            "*parallel_for, void *pool)\n{\n",
	            p);
	text_line(out, 1, "return %s_threads((struct %s *)instance, threads, parallel_for, pool);", p,
	          p);
	text_str(out, "}\n\n");
}

static void symbol_infos(const Codegen *cg, Text *out)
{
	if (!cg->nsymbol)
		return;
	text_str(out, "static const pd_symbol_info symbol_infos[] = {");
	for (int i = 0; i < cg->nsymbol; i++)
		text_printf(out, "%s{\"%s\", %s, %s}", i ? ", " : "", cg->symbols[i].name,
		            cg->symbols[i].dim->bounded ? "true" : "false",
		            cg->symbols[i].bound ? "true" : "false");
	text_str(out, "};\n\n");
}

void info_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	tensor_dims(cg, out, "input", cg->inputs, cg->ninput);
	tensor_dims(cg, out, "output", cg->outputs, cg->noutput);
	symbol_infos(cg, out);
	size_function(cg, out);
	shapes_function(cg, out);
	room_function(cg, out);
	if (cg->backend->info)
		cg->backend->info(cg, out);
	else
		run_function(cg, out);
	states_info_functions(cg, out);
	trace_function(cg, out);
	threads_function(cg, out);
	text_printf(
		out, "const pd_model_info *%s_info(void)\n{\n\tstatic const pd_model_info info = {\n", p);
	text_printf(out, "\t\t%d, \"%s\", %d, %d, %d,\n", PDRT_ABI_VERSION, p, cg->ninput, cg->noutput,
	            cg->nsymbol);
	text_printf(out, "\t\t%s, %s, %s,\n", cg->ninput ? "input_tensors" : "NULL",
	            cg->noutput ? "output_tensors" : "NULL", cg->nsymbol ? "symbol_infos" : "NULL");
	text_printf(out, "\t\tUINT64_C(0x%016" PRIx64 "), %" PRId64 ", sizeof(struct %s),\n",
	            cg->weights_hash, weights_in_file(cg) ? weights_file_size(cg) : 0,
	            cg->backend->device ? arena_printf(cg->arena, "%s_staged", p) : p);
	static const char *const entries[] = {"workspace_size", "shapes", "room",
	                                      "init",           "run",    "failed"};
	for (size_t i = 0; i < COUNT_OF(entries); i++)
		text_line(out, 2, "%s_info_%s,", p, entries[i]);
	text_line(out, 2, "%s,",
	          cg->backend->device ? arena_printf(cg->arena, "%s_info_free", p) : "NULL");
	if (cg->nstate)
		text_line(out, 2, "%d, parameter_infos, %s_info_parameter_get, %s_info_parameter_set,",
		          cg->nstate, p, p);
	else
		text_line(out, 2, "0, NULL, NULL, NULL,");
	text_line(out, 2, "%s, %s,",
	          cg->options->trace ? arena_printf(cg->arena, "%s_info_trace", p) : "NULL",
	          cg->threads > 1 ? arena_printf(cg->arena, "%s_info_threads", p) : "NULL");
	text_str(out, "\t};\n\treturn &info;\n}\n");
}

// The last statements of model_call where threads share a run: a pool as long as the program.
static void call_threads_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix, *most = name_upper(cg->arena, p);
	text_line(out, 1, "static pd_threads *pool; /* as long as the program */");
	text_line(out, 1, "if (status != PD_OK)");
	text_line(out, 2, "return status;");
	text_line(out, 1, "if (!pool) {");
	text_line(out, 2, "const pd_status started = pd_threads_start(&pool, %s_THREADS);", most);
	text_line(out, 2, "if (started != PD_OK)");
	text_line(out, 3, "return started;");
	text_line(out, 1, "}");
	text_line(out, 1, "%s_threads(&m, %s_THREADS, pd_threads_for, pool);", p, most);
	text_line(out, 1, "return %s_info_run(&m, inputs, outputs, NULL);", p);
}

void call_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out, "\nint %s_call(const void *const *inputs, void *const *outputs)\n{\n", p);
	int64_t bytes = cg->workspace->kind == DIM_CONST && cg->workspace->value ? cg->workspace->value
	                                                                         : 1;
	text_line(out, 1, "static PDRT_ALIGN64 unsigned char workspace[%" PRId64 "];", bytes);
	text_line(out, 1,
	          cg->nstate ? "static struct %s m; /* goes on from call to call */" : "struct %s m;",
	          p);
	text_refuse(out, "PD_NULL", "!inputs || !outputs");
	text_line(out, 1,
	          "const pd_status status = %s%s_init(&m, NULL, 0, workspace, sizeof workspace);",
	          cg->nstate ? "m.ready ? PD_OK : " : "", p);
	if (cg->threads > 1)
		call_threads_print(cg, out);
	else
		text_line(out, 1,
		          "return status != PD_OK ? status : %s_info_run(&m, inputs, outputs, NULL);", p);
	text_str(out, "}\n");
}
