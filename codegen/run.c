// The body of model_run: walks the operations, has a function made for each that computes, and prints its call
// under a comment that says which operator and variable it is. Called by module.c.
#include "codegen_impl.h"

#include <inttypes.h>
#include <string.h>

// ---- tensors in model_run ------------------------------------------------------------------------------

// The member that points at an input or output. What shares its bytes on the way may be of another type.
static const char *port_pointer(Codegen *cg, const char *which, const Port *port, const char *type)
{
	const char *member = arena_printf(cg->arena, "%s->%s", which, port->member);
	return strcmp(dtype_c_memory(port->type->dtype), type) ? arena_printf(cg->arena, "((%s *)%s)", type, member) : member;
}

// The bytes at which a tensor lies, as a C expression; NULL after a diagnostic.
static const char *place_expression(Codegen *cg, const Place *p, const char *type)
{
	const char *offset = p->offset && !dim_is(p->offset, 0) ? dim_in_locals(&cg->plan, p->offset) : NULL;
	switch (p->kind) {
	case PLACE_INPUT:
		return p->col < cg->ninput ? port_pointer(cg, "in", &cg->inputs[p->col], type) : NULL;
	case PLACE_OUTPUT:
		return p->col < cg->noutput ? port_pointer(cg, "out", &cg->outputs[p->col], type) : NULL;
	case PLACE_WORKSPACE:
		return arena_printf(cg->arena, offset ? "(%s *)(workspace + %s)" : "(%s *)%sworkspace", type,
		                    offset ? offset : "");
	case PLACE_PARAM:
		if (cg->inline_weights && !cg->target->cuda)
			return pointer_map_get(&cg->param_names, p->root);
		return arena_printf(cg->arena, offset ? "(const %s *)(weights + %s)" : "(const %s *)%sweights", type,
		                    offset ? offset : "");
	default:
		return NULL;
	}
}

static const char *local_stem(const Codegen *cg, const Value *root)
{
	const Op *op = root->def;
	const char *var = op && op->code == OP_BUILTIN_GET_PARAMETER ? op_str(op, "name", NULL) : root->name;
	if (!var && op)
		var = op->loc->var ? op->loc->var : op->info->short_name;
	return name_local(cg->arena, var ? var : "arg");
}

// Where locals are declared: where they are first used, or, when there are labels, in front of all labels, since C++
// allows no goto past a declaration.
static Text *declarations(Codegen *cg)
{
	return cg->blocks ? &cg->declarations : &cg->run;
}

const Moving *moving_find(Codegen *cg, const Place *p)
{
	if (p->moving >= cg->nmoving) {
		int n = p->moving + 8;
		Moving *more = NEW_ARRAY(cg->arena, (size_t)n, Moving);
		if (cg->nmoving)
			memcpy(more, cg->moving, (size_t)cg->nmoving * sizeof *more);
		cg->moving = more;
		cg->nmoving = n;
	}
	Moving *m = &cg->moving[p->moving];
	if (m->name)
		return m;
	m->type = dtype_c_memory(p->root->type->dtype);
	m->name = names_unique(&cg->locals, local_stem(cg, p->root));
	text_line(declarations(cg), 1, "%s *%s = %s;", m->type, m->name, place_expression(cg, p, m->type));
	return m;
}

const Moving *moving_at(const Codegen *cg, int number)
{
	return &cg->moving[number];
}

const char *moving_as(Codegen *cg, const Moving *m, DType t)
{
	const char *type = dtype_c_memory(t);
	return strcmp(type, m->type) ? arena_printf(cg->arena, "(%s *)%s", type, m->name) : m->name;
}

const char *tensor_pointer(Codegen *cg, const Value *v)
{
	Place p = value_place(v);
	const char *name = pointer_map_get(&cg->pointers, p.root);
	if (name)
		return name;
	const char *type = dtype_c_memory(p.root->type->dtype);
	if (p.moving)
		return moving_as(cg, moving_find(cg, &p), p.root->type->dtype);
	const char *e = place_expression(cg, &p, type);
	if (!e) {
		diag_error(cg->ctx->diag, p.root->def ? p.root->def->loc : &loc_unknown,
		           "code generation: '%s' has no place in memory",
		           p.root->def ? p.root->def->info->name : "a block argument");
		return NULL;
	}
	name = e;
	const Value *local = number_local(cg, &p);
	if (local && local != p.root) {
		name = tensor_pointer(cg, local);
	} else if (local) {
		const char *var = names_unique(&cg->locals, local_stem(cg, local));
		text_line(&cg->declarations, 1, "%s %s = 0;", type, var);
		name = arena_printf(cg->arena, "(&%s)", var);
	} else if (p.kind == PLACE_WORKSPACE || (p.kind == PLACE_PARAM && (!cg->inline_weights || cg->target->cuda))) {
		name = names_unique(&cg->locals, local_stem(cg, p.root));
		text_line(declarations(cg), 1, "%s%s *const %s = %s;", p.kind == PLACE_PARAM ? "const " : "", type, name, e);
	}
	pointer_map_set(&cg->pointers, p.root, name);
	return name;
}

// ---- calls ---------------------------------------------------------------------------------------------------

typedef bool Emitter(KernelFunc *k);

static Emitter *emitter_of(const Codegen *cg, const Op *op)
{
	if (cg->target->cuda)
		return cuda_emitter_of(op);
	switch (op->code) {
	case OP_LOOP_NEST: return nest_emit;
	case OP_KERNEL_GEMM: return kernel_gemm_emit;
	case OP_KERNEL_CONV: return kernel_conv_emit;
	case OP_KERNEL_DEPTHWISE: return kernel_depthwise_emit;
	case OP_KERNEL_SOFTMAX: return kernel_softmax_emit;
	case OP_KERNEL_LAYER_NORM: return kernel_layer_norm_emit;
	case OP_KERNEL_PACK_CONV: return kernel_pack_conv_emit;
	case OP_KERNEL_PACK_GEMM: return kernel_pack_gemm_emit;
	case OP_KERNEL_BLOCK: return kernel_block_emit;
	case OP_KERNEL_UNBLOCK: return kernel_unblock_emit;
	case OP_KERNEL_SORT: return kernel_sort_emit;
	case OP_KERNEL_NMS: return kernel_nms_emit;
	case OP_KERNEL_COMPACT: return kernel_compact_emit;
	case OP_KERNEL_SCAN: return kernel_scan_emit;
	case OP_KERNEL_SCATTER: return kernel_scatter_emit;
	default: return NULL;
	}
}

const char *op_stem(Codegen *cg, const Op *op)
{
	return op->nresult ? local_stem(cg, &op->results[0])
	                   : name_sanitize(cg->arena, op->loc->var ? op->loc->var : op->info->short_name);
}

// What stands in comments and messages for an operation: its legacy operator and variable.
const char *op_title(Codegen *cg, const Op *op)
{
	const char *type = op->loc->type ? op->loc->type : op->nsucc ? branch_kind(op) : op->info->name;
	const char *var = op->loc->var ? op->loc->var : op->nresult ? op->results[0].name : NULL;
	return var ? arena_printf(cg->arena, "%s '%s'", type, var) : type;
}

const char *call_argument(Codegen *cg, const KernelParam *p)
{
	if (p->given)
		return p->given;
	if (!p->value)
		return p->bound ? symbol_find(cg, p->sym)->max : size_is_on_device(cg, p->sym) ? cuda_size(cg, symbol_find(cg, p->sym))
		                                                                     : symbol_name(cg, p->sym);
	const char *e = tensor_pointer(cg, p->value);
	return e && e[0] == '(' && e[1] == '&' ? expression_unwrap(cg->arena, e) : e;
}

bool call_arguments(Codegen *cg, const KernelFunc *k, Text *args)
{
	for (int i = 0; i < k->nparam; i++) {
		const char *e = call_argument(cg, &k->params[i]);
		if (!e)
			return false;
		text_printf(args, "%s%s", i ? ", " : "", e);
	}
	return true;
}

void failure_print(Codegen *cg, const char *condition, const char *status, const Op *op)
{
	text_line(&cg->run, 1, "if (%s) {", condition);
	text_line(&cg->run, 2, "m->failed = %s;", string_literal(cg->arena, op_title(cg, op)));
	text_line(&cg->run, 2, "return %s;", status);
	text_line(&cg->run, 1, "}");
}

static bool compute_print(Codegen *cg, const Op *op, Emitter *emit)
{
	if (cg->target->cuda && cuda_op_is_library(op))
		return cuda_library_print(cg, op);
	KernelFunc *k = kernel_new(cg, op);
	k->inlined = nest_is_statement(cg, op);
	if (!(k->inlined ? nest_statement(k) : emit(k)))
		return false;
	const char *name = k->inlined || cg->target->cuda ? NULL : kernel_finish(k);
	text_printf(&cg->run, "\n\t/* %s: %s */\n", comment_text(cg->arena, op_title(cg, op)),
	            shape_comment(cg, op->results[0].type));
	if (k->inlined) {
		text_str(&cg->run, k->text.text);
		return true;
	}
	cg->fails |= k->status;
	if (cg->target->cuda)
		return cuda_launch_print(cg, k);
	Text args;
	text_init(&args, cg->arena);
	if (!call_arguments(cg, k, &args))
		return false;
	if (!k->status) {
		text_line(&cg->run, 1, "%s(%s);", name, args.text ? args.text : "");
		return true;
	}
	text_line(&cg->run, 1, "status = %s(%s);", name, args.text ? args.text : "");
	failure_print(cg, "status != PD_OK", "status", op);
	return true;
}

const Dim *type_bytes_in_run(const Codegen *cg, const Type *t)
{
	int64_t lo, hi;
	const Dim *n = type_numel(cg->ctx, t);
	dim_range(n, &lo, &hi);
	if (lo < 0 && dim_is_found(n))
		n = dim_max(cg->ctx, n, dim_const(cg->ctx, 0));
	return dim_mul(cg->ctx, n, dim_const(cg->ctx, (int64_t)dtype_size(t->dtype)));
}

// A fetch of what was not computed in the output itself copies.
static bool fetch_print(Codegen *cg, const Op *op)
{
	const Value *v = op_operand(op, 0);
	Place p = value_place(v);
	int col = (int)op_int(op, "col", 0);
	if (p.kind == PLACE_OUTPUT && p.col == col)
		return true;
	text_printf(&cg->run, "\n\t/* %s: %s */\n", comment_text(cg->arena, op_title(cg, op)), shape_comment(cg, v->type));
	const char *from = tensor_pointer(cg, v);
	if (!from)
		return false;
	const Dim *bytes = type_bytes_in_run(cg, v->type);
	if (number_local(cg, &p)) {
		text_line(&cg->run, 1, "*out->%s = %s;", cg->outputs[col].member, tensor_element(cg, v));
		return true;
	}
	if (cg->target->cuda)
		cuda_fetch_print(cg, v, col, from);
	else
		text_line(&cg->run, 1, "memcpy(out->%s, %s, (size_t)%s);", cg->outputs[col].member, from,
		          dim_in_run(cg, bytes));
	return true;
}

// An element becomes the size of a symbol, within its bound; or is checked to be the size that is known.
static void size_bind(Codegen *cg, const Op *op, const Dim *d, const char *element, const Op **bound)
{
	Arena *a = cg->arena;
	const Symbol *s = d->kind == DIM_SYM ? symbol_find(cg, d) : NULL;
	if (!s || !s->dim->bounded || s->next || bound[s - cg->symbols]) {
		failure_print(cg, arena_printf(a, "%s != %s", element, dim_in_run(cg, d)), "PD_DIMS", op);
		return;
	}
	bound[s - cg->symbols] = op;
	if (cg->blocks)
		text_line(&cg->declarations, 1, "int64_t %s = 0;", s->name);
	text_line(&cg->run, 1, "%s%s = %s;", cg->blocks ? "" : "const int64_t ", s->name, element);
	if (s->reported)
		text_line(&cg->run, 1, "out->found_%s = %s;", s->name, s->name);
	failure_print(cg, arena_printf(a, "%s < 0", s->name), "PD_DIMS", op);
	if (s->max)
		failure_print(cg, arena_printf(a, "%s > %s", s->name, s->max), "PD_CAPACITY", op);
}

static bool bind_print(Codegen *cg, const Op *op, const Op **bound)
{
	const Attr *dims = op_attr(op, "dims");
	if (cg->target->cuda)
		return cuda_bind_print(cg, op, bound);
	text_printf(&cg->run, "\n\t/* %s: sizes that follow from data */\n", comment_text(cg->arena, op_title(cg, op)));
	const char *x = dims->n == 1 ? tensor_element(cg, op_operand(op, 0)) : tensor_pointer(cg, op_operand(op, 0));
	for (int i = 0; x && i < dims->n; i++)
		size_bind(cg, op, dims->dims[i], dims->n == 1 ? arena_printf(cg->arena, "(int64_t)%s", x)
		                                             : arena_printf(cg->arena, "(int64_t)%s[%d]", x, i), bound);
	return x != NULL;
}

// Symbols that are the room which the caller made. A write that needs more says how much.
static bool capacity_print(Codegen *cg, const Op *op, const Op **bound)
{
	const Attr *dims = op_attr(op, "dims");
	if (cg->target->cuda)
		return cuda_capacity_print(cg, op, bound);
	text_str(&cg->run, "\n\t/* room in tensor arrays */\n");
	for (int i = 0; i < dims->n; i++) {
		const Symbol *s = symbol_find(cg, dims->dims[i]);
		bound[s - cg->symbols] = op;
		if (!s->max) // the array went, but for its length
			continue;
		if (cg->blocks)
			text_line(&cg->declarations, 1, "int64_t %s = 0;", s->name);
		text_line(&cg->run, 1, "%s%s = %s;", cg->blocks ? "" : "const int64_t ", s->name, s->max);
		if (!s->bound)
			text_line(&cg->run, 1, "out->found_%s = %s;", s->name, s->name);
	}
	return true;
}

static bool assert_print(Codegen *cg, const Op *op)
{
	const Type *t = op_operand(op, 0)->type;
	const char *cond = tensor_pointer(cg, op_operand(op, 0));
	if (!cond)
		return false;
	text_printf(&cg->run, "\n\t/* %s */\n", comment_text(cg->arena, op_title(cg, op)));
	text_line(&cg->run, 1, "for (int64_t i = 0; i < %s; i++) {", dim_in_run(cg, type_numel(cg->ctx, t)));
	text_line(&cg->run, 2, "if (!%s[i]) {", cond);
	text_line(&cg->run, 3, "m->failed = %s;", string_literal(cg->arena, op_title(cg, op)));
	text_line(&cg->run, 3, "return PD_ASSERT;");
	text_line(&cg->run, 2, "}");
	text_line(&cg->run, 1, "}");
	return true;
}

// What a caller cannot know before the run.
static void output_dims_print(Codegen *cg)
{
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].next && cg->symbols[i].reported)
			text_line(&cg->run, 1, "out->found_%s = %s;", cg->symbols[i].name, cg->symbols[i].name);
	for (int i = 0; i < cg->noutput; i++)
		for (int d = 0; cg->outputs[i].dims && d < cg->outputs[i].type->rank; d++)
			text_line(&cg->run, 1, "out->%s[%d] = %s;", cg->outputs[i].dims, d,
			          dim_in_run(cg, cg->outputs[i].type->dims[d]));
}

bool run_op_print(Codegen *cg, const Op *op, const Op **bound)
{
	if (op_is_silent(op))
		return true;
	if (op->info->traits & TRAIT_TERMINATOR)
		return branch_print(cg, op);
	if (op->code == OP_LOOP_BIND)
		return bind_print(cg, op, bound);
	if (op->code == OP_LOOP_CAPACITY)
		return capacity_print(cg, op, bound);
	if (op->code == OP_LOOP_UPDATE)
		return cg->target->cuda ? cuda_update_print(cg, op) : update_print(cg, op);
	if (op->code == OP_LOOP_APPEND)
		return cg->target->cuda ? cuda_append_print(cg, op) : append_print(cg, op);
	if (op->code == OP_PD_FETCH)
		return fetch_print(cg, op);
	if (op->code == OP_PD_ASSERT)
		return cg->target->cuda ? cuda_assert_print(cg, op) : assert_print(cg, op);
	Emitter *emit = emitter_of(cg, op);
	if (emit)
		return compute_print(cg, op, emit);
	diag_error(cg->ctx->diag, op->loc, "code generation: no %s for '%s'", cg->target->cuda ? "CUDA" : "C", op->info->name);
	return false;
}

bool run_no_code(const Codegen *cg, const Op *op, int errors)
{
	if (diag_errors(cg->ctx->diag) == errors)
		diag_error(cg->ctx->diag, op->loc, "code generation: '%s' is not supported for these types", op->info->name);
	return false;
}

bool run_collect(Codegen *cg)
{
	int errors = diag_errors(cg->ctx->diag);
	const Op **bound = NEW_ARRAY(cg->arena, (size_t)cg->nsymbol + 1, const Op *);
	const Region *r = &cg->module->regions[0];
	cg->blocks = r->first != r->last;
	locals_collect(cg);
	for (int i = 0; i < cg->nsymbol && !cg->target->cuda; i++)
		if (cg->symbols[i].next)
			text_line(&cg->declarations, 1, "int64_t %s = 0;", cg->symbols[i].name);
	uint32_t id = 0;
	for (Block *b = r->first; b; b = b->next)
		b->id = id++;
	if (cg->target->cuda)
		return cuda_graph_print(cg, bound);
	for (const Block *b = r->first; b; b = b->next) {
		block_label_print(cg, b);
		for (const Op *op = b->first; op; op = op->next)
			if (!run_op_print(cg, op, bound))
				return run_no_code(cg, op, errors);
	}
	text_char(&cg->run, '\n');
	output_dims_print(cg);
	return true;
}

// ---- the function -----------------------------------------------------------------------------------------------

static bool run_mentions(const Codegen *cg, const char *word)
{
	return (cg->run.text && strstr(cg->run.text, word)) || (cg->declarations.text && strstr(cg->declarations.text, word));
}

void run_locals_print(Codegen *cg, Text *out)
{
	for (int i = 0; i < cg->nsymbol; i++) {
		const Symbol *s = &cg->symbols[i];
		const char *name = symbol_member(s);
		if (name)
			text_line(out, 1, "const int64_t %s = in->dims.%s;", name, name);
		else if (s->max)
			text_line(out, 1, "const int64_t %s = %s;", s->max,
			          expression_unwrap(cg->arena, dim_of_bounds(cg, s->bound)));
	}
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].max || !cg->symbols[i].dim->bounded)
			text_line(out, 1, "(void)%s;", cg->symbols[i].max ? cg->symbols[i].max : cg->symbols[i].name);
	rooms_print(cg, arena_printf(cg->arena, "%s%s%s", cg->plan.text.text ? cg->plan.text.text : "",
	                             cg->declarations.text ? cg->declarations.text : "", cg->run.text ? cg->run.text : ""), out);
	text_str(out, cg->plan.text.text ? cg->plan.text.text : "");
	text_str(out, cg->sizes.text.text ? cg->sizes.text.text : "");
	if (run_mentions(cg, "(workspace + ") || run_mentions(cg, ")workspace"))
		text_line(out, 1, "unsigned char *const workspace = m->workspace;");
	if (run_mentions(cg, "(weights + ") || run_mentions(cg, ")weights"))
		text_line(out, 1, "const unsigned char *const weights = m->weights;");
}

// What model_run does before the first call.
void run_checks_print(Codegen *cg, Text *out)
{
	text_line(out, 1, "if (!m%s%s || !m->ready)", cg->ninput ? " || !in" : "", cg->noutput ? " || !out" : "");
	text_line(out, 2, "return PD_NULL;");
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < (side ? cg->noutput : cg->ninput); i++) {
			const Port *p = side ? &cg->outputs[i] : &cg->inputs[i];
			const char *what = arena_printf(cg->arena, "%s->%s", side ? "out" : "in", p->member);
			text_line(out, 1, "if (!%s)", what);
			text_line(out, 2, "return PD_NULL;");
			if (dtype_size(p->type->dtype) == 1 && !cg->target->cuda)
				continue;
			if (cg->target->cuda) // several elements are one access
				text_line(out, 1, "if ((uintptr_t)%s %% 16)", what);
			else
				text_line(out, 1, "if ((uintptr_t)%s %% sizeof *%s)", what, what);
			text_line(out, 2, "return PD_ALIGNMENT;");
		}
	if (cg->nmember) {
		const char *p = cg->prefix;
		text_line(out, 1, "if (%s_workspace_size(&in->dims) > m->workspace_size)", p);
		text_line(out, 2, "return %s_workspace_size(&in->dims) == SIZE_MAX ? PD_DIMS : PD_WORKSPACE;", p);
	}
	if (!cg->ninput)
		text_line(out, 1, "(void)in;");
	if (!cg->noutput)
		text_line(out, 1, "(void)out;");
	text_line(out, 1, cg->target->cuda ? "m->failed = m->error = NULL;" : "m->failed = NULL;");
}


void run_print(Codegen *cg, Text *out)
{
	const char *p = cg->prefix;
	text_printf(out, "pd_status %s_run(%s *m, const %s_inputs *in, %s_outputs *out)\n{\n", p, p, p, p);
	run_checks_print(cg, out);
	run_locals_print(cg, out);
	if (cg->fails)
		text_line(out, 1, "pd_status status;");
	text_str(out, cg->declarations.text ? cg->declarations.text : "");
	text_str(out, cg->run.text ? cg->run.text : "");
	text_str(out, "\treturn PD_OK;\n}\n");
}
