// The body of model_run: walks the operations, has a function made for each that computes, and
// prints its call under a comment that says which operator and variable it is. Called by codegen.c.
#include "codegen/model/model.h"
#include "ir/base/vec.h"
#include "lower/analysis/analysis.h"
#include "lower/target/schedule.h"

#include <inttypes.h>
#include <string.h>

// ---- tensors in model_run -----------------------------------------------------------------------

// The member that points at an input or output. What shares its bytes on the way may be of another
// type.
static const char *port_pointer(Codegen *cg, const char *which, const Port *port, const char *type)
{
	const char *member = arena_printf(cg->arena, "%s->%s", which, port->member);
	return strcmp(dtype_c_memory(port->type->dtype), type)
	           ? arena_printf(cg->arena, "((%s *)%s)", type, member)
	           : member;
}

// The bytes at which a tensor lies, as a C expression; NULL after a diagnostic.
// The name of the array that holds a parameter.
static const char *array_use(Codegen *cg, const Value *root)
{
	const WeightsArray *array = pointer_map_get(&cg->param_arrays, root);
	if (!array)
		return NULL;
	pointer_map_set(&cg->used_arrays, array, array);
	return array->name;
}

// Weights that model_run reads where they stand.
static bool weights_are_arrays(const Codegen *cg)
{
	return cg->inline_weights && !cg->backend->device;
}

static const char *place_expression(Codegen *cg, const Place *p, const char *type)
{
	const char *offset = p->offset && !dim_is(p->offset, 0)
	                         ? offset_in_run(cg, place_stem(cg, p->root), p->offset)
	                         : NULL;
	switch (p->kind) {
	case PLACE_INPUT:
		return p->col < cg->ninput ? port_pointer(cg, "in", &cg->inputs[p->col], type) : NULL;
	case PLACE_OUTPUT:
		return p->col < cg->noutput ? port_pointer(cg, "out", &cg->outputs[p->col], type) : NULL;
	case PLACE_WORKSPACE:
		if (p->slot) // slots_print comes first
			return NULL;
		cg->uses_workspace = true;
		return arena_printf(cg->arena, offset ? "(%s *)(workspace + %s)" : "(%s *)%sworkspace",
		                    type, offset ? offset : "");
	case PLACE_PARAM:
		if (weights_are_arrays(cg))
			return array_use(cg, p->root);
		cg->uses_weights = true;
		return arena_printf(cg->arena,
		                    offset ? "(const %s *)(weights + %s)" : "(const %s *)%sweights", type,
		                    offset ? offset : "");
	default: return NULL;
	}
}

const char *value_stem(Codegen *cg, const Value *root)
{
	const Op *op = root->def;
	const char *given = pointer_map_get(&cg->stems, root);
	if (given)
		return given;
	const char *var = op && op->code == OP_BUILTIN_GET_PARAMETER ? op_str(op, "name", NULL)
	                                                             : root->name;
	if (!var && op)
		var = op->loc->var ? op->loc->var : op->info->short_name;
	if (!var) { // carried by a loop that nobody named
		int64_t n;
		const bool count = type_is_tensor(root->type) && dtype_is_int(root->type->dtype) &&
		                   type_const_numel(root->type, &n) && n == 1;
		var = count ? "count" : "carried";
	}
	if (!op || op->code != OP_BUILTIN_GET_PARAMETER)
		var = name_by_operator(cg->arena, var, op ? op_type_of(cg, op, var) : NULL);
	return name_local(cg->arena, var);
}

const char *place_stem(Codegen *cg, const Value *root)
{
	const Op *op = root->def;
	return op && op->code != OP_BUILTIN_GET_PARAMETER && op->loc->var
	           ? name_local(cg->arena, name_by_operator(cg->arena, op->loc->var, op->loc->type))
	           : value_stem(cg, root);
}

static void place_note(Codegen *cg, const Value *v)
{
	const Place p = type_is_tensor(v->type) ? value_place(v) : (Place){0};
	if (p.kind == PLACE_WORKSPACE && p.root == v && p.offset &&
	    !pointer_map_get(&cg->firsts, p.offset))
		pointer_map_set(&cg->firsts, p.offset, place_stem(cg, v));
}

void offsets_note(Codegen *cg)
{
	for (const Block *k = cg->module->regions[0].first; k; k = k->next) {
		for (int i = 0; i < k->narg; i++)
			place_note(cg, k->args[i]);
		for (const Op *op = k->first; op; op = op->next)
			for (int i = 0; i < op->nresult; i++)
				place_note(cg, &op->results[i]);
	}
}

const Moving *moving_find(Codegen *cg, const Place *p)
{
	if (p->moving >= cg->nmoving) {
		const int n = p->moving + 8;
		cg->moving = vec_grow(cg->arena, cg->moving, (size_t)cg->nmoving, sizeof *cg->moving,
		                      (size_t)n);
		cg->nmoving = n;
	}
	Moving *m = &cg->moving[p->moving];
	if (m->name)
		return m;
	m->type = dtype_c_memory(p->root->type->dtype);
	m->name = names_unique(&cg->locals, value_stem(cg, p->root));
	local_declare(cg, LOCAL_KEPT, arena_printf(cg->arena, "%s *", m->type), m->name,
	              place_expression(cg, p, m->type));
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

// The address of a variable that a single number is, declared.
static const char *number_declare(Codegen *cg, const Value *number, const char *type)
{
	const char *var = names_unique(&cg->locals, value_stem(cg, number));
	const bool used = value_used(number), // else one of several results that one nest gives
		here = used && cg->scoped && !cg->in_rounds && number->def &&
	           !pointer_map_get(&cg->widely, number);
	if (here && cg->statement == number->def) {
		text_line(&cg->fresh, cg->depth + 1, "%s %s;", type, var);
		cg->fresh_type = type;
		cg->nfresh++;
	} else if (here) {
		run_line(cg, 1, "%s %s = 0;", type, var);
	} else {
		local_declare(cg, LOCAL_NUMBER, arena_printf(cg->arena, "%s ", type), var, "0");
		cg->locals_run[cg->nlocal_run - 1].unread = !used;
	}
	return arena_printf(cg->arena, "(&%s)", var);
}

// The same of an array of a few elements.
static const char *array_declare(Codegen *cg, const Value *array, const char *type)
{
	int64_t elements = 0;
	const char *var = names_unique(&cg->locals, value_stem(cg, array));
	type_const_numel(array->type, &elements);
	if (cg->scoped && !cg->in_rounds && array->def && !pointer_map_get(&cg->widely, array))
		run_line(cg, 1, "%s %s[%" PRId64 "] = {0};", type, var, elements);
	else
		local_declare_array(cg, arena_printf(cg->arena, "%s ", type), var, elements);
	return var;
}

// The parameter that was the first to be asked for of those that lie where this one does, and are
// of its type: all have one pointer.
static const Value *same_weights(Codegen *cg, const Place *p)
{
	const Dim *at = p->offset ? p->offset : dim_const(cg->ctx, 0);
	const Value *first = pointer_map_get(&cg->weights_at, at);
	if (!first)
		pointer_map_set(&cg->weights_at, at, p->root);
	return first && first->type->dtype == p->root->type->dtype ? first : p->root;
}

static const char *no_place(Codegen *cg, const Value *root)
{
	diag_error(cg->ctx->diag, root->def ? root->def->loc : &loc_unknown,
	           "code generation: '%s' has no place in memory",
	           root->def ? root->def->info->name : "a block argument");
	return NULL;
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
	const Value *local = variable_local(cg, &p);
	const char *e = local ? type : place_expression(cg, &p, type);
	if (!e)
		return no_place(cg, p.root);
	name = e;
	if (local && local != p.root) {
		name = tensor_pointer(cg, local);
	} else if (local) {
		name = number_local(cg, &p) ? number_declare(cg, local, type)
		                            : array_declare(cg, local, type);
	} else if (p.kind == PLACE_WORKSPACE || (p.kind == PLACE_PARAM && !weights_are_arrays(cg))) {
		const Value *same = p.kind == PLACE_PARAM ? same_weights(cg, &p) : p.root;
		if (same != p.root)
			return tensor_pointer(cg, same);
		name = names_unique(&cg->locals, value_stem(cg, p.root));
		const char *kind = p.kind == PLACE_PARAM ? "const " : "";
		local_declare(cg, LOCAL_CONST, arena_printf(cg->arena, "%s%s *const ", kind, type), name,
		              e);
	}
	pointer_map_set(&cg->pointers, p.root, name);
	return name;
}

// ---- calls --------------------------------------------------------------------------------------

const char *op_stem(Codegen *cg, const Op *op)
{
	return op->nresult
	           ? value_stem(cg, &op->results[0])
	           : name_sanitize(cg->arena, op->loc->var ? name_by_operator(cg->arena, op->loc->var,
	                                                                      op->loc->type)
	                                                   : op->info->short_name);
}

// What stands in comments and messages for an operation: its legacy operator and variable.
const char *op_title(Codegen *cg, const Op *op)
{
	const char *type = op->loc->type ? op->loc->type : op->nsucc ? branch_kind(op) : op->info->name;
	const char *var = op->loc->var ? op->loc->var : op->nresult ? op->results[0].name : NULL;
	return var ? arena_printf(cg->arena, "%s '%s'", type, var) : type;
}

const char *op_names(Codegen *cg, const Op *op)
{
	const char *text = story_text(cg, op, true);
	return text ? text : op_title(cg, op);
}

const char *op_where(Codegen *cg, const Op *op)
{
	const char *title = op_title(cg, op);
	return op->loc->op < 0 ? title
	                       : arena_printf(cg->arena, "%s (block %d, op %d)", title, op->loc->block,
	                                      op->loc->op);
}

const char *call_argument(Codegen *cg, const KernelParam *p)
{
	if (p->given)
		return p->given;
	if (!p->value)
		return p->bound                        ? symbol_find(cg, p->sym)->max
		       : size_is_on_device(cg, p->sym) ? cg->backend->size(cg, symbol_find(cg, p->sym))
		                                       : symbol_name(cg, p->sym);
	const char *e = tensor_pointer(cg, p->value);
	if (e && p->lead)
		return arena_printf(cg->arena, "%s + %s", e, dim_in_run(cg, p->lead));
	return e && e[0] == '(' && e[1] == '&' ? expression_unwrap(cg->arena, e) : e;
}

void failure_print(Codegen *cg, const char *condition, const char *status, const Op *op)
{
	run_line(cg, 1, "if (%s) {", condition);
	run_line(cg, 2, "m->failed = %s;", string_literal(cg->arena, op_where(cg, op)));
	run_line(cg, 2, "return %s;", status);
	run_line(cg, 1, "}");
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
	run_comment(cg, "%s: %s", comment_text(cg->arena, op_title(cg, op)),
	            shape_comment(cg, v->type));
	const char *from = tensor_pointer(cg, v);
	if (!from)
		return false;
	if (number_local(cg, &p)) {
		run_line(cg, 1, "*out->%s = %s;", cg->outputs[col].member, tensor_element(cg, v));
		return true;
	}
	cg->backend->fetch(cg, op, col, from);
	return true;
}

// What a run stores in a parameter is copied where it was not computed in place.
static bool set_print(Codegen *cg, const Op *op)
{
	const Value *v = op_operand(op, 0);
	const State *s = state_find(cg, op);
	Place from = value_place(v), to = {.kind = PLACE_WORKSPACE, .state = true, .root = from.root};
	if (!s)
		return false;
	to.offset = dim_const(cg->ctx, s->offset);
	if (from.state && from.offset == to.offset)
		return true;
	run_comment(cg, "parameter '%s': %s", comment_text(cg->arena, s->name),
	            shape_comment(cg, v->type));
	const char *type = dtype_c_memory(v->type->dtype), *at = place_expression(cg, &to, type),
			   *bytes = dim_in_run(cg, type_bytes_in_run(cg, v->type));
	const char *data = tensor_pointer(cg, v);
	if (!data)
		return false;
	if (number_local(cg, &from)) {
		run_line(cg, 1, "*%s = %s;", at, tensor_element(cg, v));
	} else {
		cg->backend->store(cg, op, at, data, bytes);
	}
	return true;
}

const char *assert_status(const Op *op)
{
	return op_bool(op, "sizes", false) ? "PD_DIMS" : "PD_ASSERT";
}

static bool step_print(Codegen *cg, const Op *op, const Op **bound)
{
	if (op->code == OP_LOOP_BIND)
		return cg->backend->bind(cg, op, bound);
	if (op->code == OP_LOOP_CAPACITY)
		return cg->backend->capacity(cg, op, bound);
	if (op->code == OP_LOOP_UPDATE)
		return cg->backend->update(cg, op);
	if (op->code == OP_LOOP_APPEND)
		return cg->backend->append(cg, op);
	if (op->code == OP_PD_FETCH)
		return fetch_print(cg, op);
	if (op->code == OP_BUILTIN_SET_PARAMETER)
		return set_print(cg, op);
	if (op->code == OP_PD_ASSERT)
		return cg->backend->assert_(cg, op);
	Emitter *emit = cg->backend->emitter(op);
	if (emit)
		return cg->backend->compute(cg, op, emit);
	diag_error(cg->ctx->diag, op->loc, "code generation: no %s for '%s'", cg->backend->name,
	           op->info->name);
	return false;
}

bool run_op_print(Codegen *cg, const Op *op, const Op **bound)
{
	return op_is_silent(op) || step_print(cg, op, bound);
}

bool run_no_code(const Codegen *cg, const Op *op, int errors)
{
	if (diag_errors(cg->ctx->diag) == errors)
		diag_error(cg->ctx->diag, op->loc, "code generation: '%s' is not supported for these types",
		           op->info->name);
	return false;
}

bool run_collect(Codegen *cg)
{
	const Op **bound = NEW_ARRAY(cg->arena, (size_t)cg->nsymbol + 1, const Op *);
	const Region *r = &cg->module->regions[0];
	cg->blocks = r->first != r->last;
	numbers_find(&cg->numbers, cg->arena, cg->module, !cg->backend->device);
	return cg->backend->walk(cg, bound);
}

// ---- the function -------------------------------------------------------------------------------

// The local that says a size, or its bound; NULL: there is none.
static const char *size_value(Codegen *cg, const Symbol *s)
{
	if (symbol_member(s))
		return arena_printf(cg->arena, "in->dims.%s", symbol_member(s));
	return s->max ? expression_unwrap(cg->arena, dim_of_bounds(cg, s->bound)) : NULL;
}

static void sizes_of_all(Codegen *cg, Text *out)
{
	for (int i = 0; i < cg->nsymbol; i++) {
		const Symbol *s = &cg->symbols[i];
		const char *value = size_value(cg, s);
		if (value)
			text_line(out, 1, "const int64_t %s = %s;", s->max ? s->max : s->name, value);
	}
	for (int i = 0; i < cg->nsymbol; i++)
		if (cg->symbols[i].max || !cg->symbols[i].dim->bounded)
			text_line(out, 1, "(void)%s;",
			          cg->symbols[i].max ? cg->symbols[i].max : cg->symbols[i].name);
}

// Those that the calls name, or others of these.
static void sizes_that_are_read(Codegen *cg, Text *out)
{
	const char **lines = NEW_ARRAY(cg->arena, (size_t)cg->nsymbol + 1, const char *);
	for (int i = cg->nsymbol; i-- > 0;) {
		const Symbol *s = &cg->symbols[i];
		const char *value = size_value(cg, s), *name = s->max ? s->max : s->name;
		bool read = value && cg->run.len && text_has_word(cg->run.text, name);
		for (int k = 0; value && !read && k < cg->nlocal_run; k++)
			read = text_has_word(cg->locals_run[k].value, name);
		for (int k = i + 1; value && !read && k < cg->nsymbol; k++)
			read = lines[k] && text_has_word(lines[k], name);
		if (read)
			lines[i] = arena_printf(cg->arena, "const int64_t %s = %s;", name, value);
	}
	for (int i = 0; i < cg->nsymbol; i++)
		if (lines[i])
			text_line(out, 1, "%s", lines[i]);
}

void run_locals_print(Codegen *cg, Text *out)
{
	if (cg->backend->device)
		sizes_of_all(cg, out);
	else
		sizes_that_are_read(cg, out);
	rooms_print(&cg->plan, out);
	text_str(out, cg->plan.text.text ? cg->plan.text.text : "");
	text_str(out, cg->sizes.text.text ? cg->sizes.text.text : "");
	if (cg->uses_workspace)
		text_line(out, 1, "unsigned char *const workspace = m->workspace;");
	if (cg->uses_weights)
		text_line(out, 1, "const unsigned char *const weights = m->weights;");
}

// What model_run does before the first call.
void run_checks_print(Codegen *cg, Text *out)
{
	text_refuse(out, "PD_NULL", "!m%s%s || !m->ready", cg->ninput ? " || !in" : "",
	            cg->noutput ? " || !out" : "");
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < (side ? cg->noutput : cg->ninput); i++) {
			const Port *p = side ? &cg->outputs[i] : &cg->inputs[i];
			const char *what = arena_printf(cg->arena, "%s->%s", side ? "out" : "in", p->member);
			text_refuse(out, "PD_NULL", "!%s", what);
			if (cg->backend->alignment)
				text_refuse(out, "PD_ALIGNMENT", "(uintptr_t)%s %% %d", what,
				            cg->backend->alignment);
			else if (dtype_size(p->type->dtype) > 1)
				text_refuse(out, "PD_ALIGNMENT", "(uintptr_t)%s %% sizeof *%s", what, what);
		}
	if (cg->noffset) {
		text_line(out, 1, "struct %s_places %s;", cg->prefix, cg->places);
		text_refuse(out, "PD_DIMS", "!%s_plan(&in->dims, &%s)", cg->prefix, cg->places);
		text_refuse(out, "PD_WORKSPACE", "(size_t)%s.end > m->workspace_size", cg->places);
	} else if (cg->nmember) {
		const char *p = cg->prefix;
		text_line(out, 1, "if (%s_workspace_size(&in->dims) > m->workspace_size)", p);
		text_line(out, 2,
		          "return %s_workspace_size(&in->dims) == SIZE_MAX ? PD_DIMS : PD_WORKSPACE;", p);
	}
	if (!cg->ninput)
		text_line(out, 1, "(void)in;");
	if (!cg->noutput)
		text_line(out, 1, "(void)out;");
	text_line(out, 1, "%s = NULL;", cg->backend->reset);
}
