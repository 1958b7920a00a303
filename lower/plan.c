// The memory plan: where every tensor of the module lives. Last pass; codegen reads what it leaves in the
// attributes `place` and `offset` of operations, `workspace` and `weights` of the module.
//
// Feeds stay in the caller's buffers and are never written. A fetched value is computed where the caller
// wants it. Parameters and constants lie one behind the other in the weights. Views share the bytes of what
// they look at. Everything else is packed into one workspace by lifetime, and a nest that reads an operand
// only at the element that it writes takes over the operand's bytes when nobody needs them afterwards.
#include "plan.h"
#include "lower.h"

#include <string.h>

typedef enum Place { PLACE_WORKSPACE, PLACE_INPUT, PLACE_OUTPUT, PLACE_PARAM } Place;

static const char *const place_names[] = {"workspace", "input", "output", "param"};

// Bytes that one or more values share: a value, its views, and what is computed in place of it.
typedef struct Buffer {
	struct Buffer *merged; // part of that one
	Place place;
	int64_t col;           // input, output
	const Dim *bytes, *offset;
	int first, last;       // operations
	const void *data_key;  // param: name or constant, so that two readers of one share it
	struct Buffer *next;   // all of them, in order of definition
} Buffer;

// In Op.scratch, for operations of the module's block.
typedef struct OpPlan {
	int at;
	Buffer **buffers; // [nresult]; NULL: not a tensor
} OpPlan;

typedef struct Plan {
	Context *ctx;
	Arena *arena; // gone after the pass
	Block *block;
	int nop, nbuffer;
	Buffer *first, **tail;
} Plan;

static Buffer *buffer_root(Buffer *b)
{
	while (b->merged)
		b = b->merged;
	return b;
}

static OpPlan *op_plan(const Op *op)
{
	return op->scratch;
}

static Buffer *value_buffer(const Value *v)
{
	if (!v->def || !op_plan(v->def))
		return NULL;
	Buffer *b = op_plan(v->def)->buffers[v->index];
	return b ? buffer_root(b) : NULL;
}

// ---- buffers ------------------------------------------------------------------------------------------

static const Dim *type_bytes(Context *c, const Type *t)
{
	return dim_mul(c, type_numel(c, t), dim_const(c, (int64_t)dtype_size(t->dtype)));
}

static bool op_is_view(const Op *op)
{
	return (op->info->traits & TRAIT_VIEW) && op->noperand > 0 && op->nresult > 0;
}

static Buffer *buffer_new(Plan *p, const Op *op, const Type *type)
{
	Buffer *b = NEW(p->arena, Buffer);
	b->bytes = type_bytes(p->ctx, type);
	b->first = b->last = op_plan(op)->at;
	if (op->code == OP_PD_FEED) {
		b->place = PLACE_INPUT;
		b->col = op_int(op, "col", 0);
	} else if (op->code == OP_BUILTIN_GET_PARAMETER) {
		b->place = PLACE_PARAM;
		b->data_key = op_attr(op, "name");
	} else if (op->code == OP_BUILTIN_CONSTANT) {
		b->place = PLACE_PARAM;
		b->data_key = op_attr(op, "value");
	}
	*p->tail = b;
	p->tail = &b->next;
	p->nbuffer++;
	return b;
}

static bool op_make_buffers(Plan *p, Op *op)
{
	OpPlan *plan = op_plan(op);
	if (op->info->kind == KIND_CONTROL && op->nregion > 0) {
		diag_error(p->ctx->diag, op->loc, "'%s': no memory plan for control flow yet", op->info->name);
		return false;
	}
	for (int i = 0; i < op->nresult; i++) {
		const Type *type = op->results[i].type;
		if (type->kind == TY_VEC || type->kind == TY_NONE)
			continue;
		if (!type_is_tensor(type)) {
			diag_error(p->ctx->diag, op->loc, "'%s': no memory plan for a result of this type", op->info->name);
			return false;
		}
		Buffer *shared = i == 0 && op_is_view(op) ? value_buffer(op_operand(op, 0)) : NULL;
		plan->buffers[i] = shared ? shared : buffer_new(p, op, type);
	}
	return true;
}

static bool plan_make_buffers(Plan *p)
{
	for (Op *op = p->block->first; op; op = op->next) {
		OpPlan *plan = NEW(p->arena, OpPlan);
		plan->at = p->nop++;
		plan->buffers = NEW_ARRAY(p->arena, (size_t)op->nresult + 1, Buffer *);
		op->scratch = plan;
		if (!op_make_buffers(p, op))
			return false;
	}
	return true;
}

// ---- lifetimes ----------------------------------------------------------------------------------------

// The operation of the module's block that op is in, or is.
static const Op *op_outermost(const Plan *p, const Op *op)
{
	while (op->block != p->block)
		op = op_parent(op);
	return op;
}

// The last operation that reads v; a vector keeps its elements alive as long as it is read itself.
static int value_last(const Plan *p, const Value *v)
{
	int last = v->def ? op_plan(v->def)->at : 0;
	for (const Use *u = v->uses; u; u = u->next) {
		const Op *user = op_outermost(p, u->user);
		int at = op_plan(user)->at;
		for (int i = 0; i < user->nresult; i++)
			if (user->results[i].type->kind == TY_VEC && value_last(p, &user->results[i]) > at)
				at = value_last(p, &user->results[i]);
		if (at > last)
			last = at;
	}
	return last;
}

static void plan_lifetimes(Plan *p)
{
	for (Op *op = p->block->first; op; op = op->next) {
		for (int i = 0; i < op->nresult; i++) {
			Buffer *b = value_buffer(&op->results[i]);
			int last = b ? value_last(p, &op->results[i]) : 0;
			if (b && last > b->last)
				b->last = last;
		}
	}
}

// ---- outputs ------------------------------------------------------------------------------------------

// Lets the first fetch of every computed value name the place where it is computed. Later fetches of the
// same bytes, and fetches of feeds and parameters, copy.
static void plan_fetches(Plan *p)
{
	for (Op *op = p->block->first; op; op = op->next) {
		if (op->code != OP_PD_FETCH)
			continue;
		const Value *v = op_operand(op, 0);
		Buffer *b = v ? value_buffer(v) : NULL;
		if (!b || b->place != PLACE_WORKSPACE || b->bytes != type_bytes(p->ctx, v->type))
			continue;
		b->place = PLACE_OUTPUT;
		b->col = op_int(op, "col", 0);
	}
}

// ---- in place -----------------------------------------------------------------------------------------

// Whether index v is the nest's position along axis i, of size `dim`.
static bool index_is_position(const Value *v, const Block *body, int i, const Dim *dim)
{
	if (v == body->args[i])
		return true;
	return dim_is(dim, 1) && v->def && v->def->code == OP_LOOP_CONSTANT && op_int(v->def, "value", -1) == 0;
}

static bool load_at_identity(const Op *load, const Op *nest)
{
	const Block *body = region_entry(&nest->regions[0]);
	int tensor = load->code == OP_LOOP_LOAD ? 0 : 2;
	if (load->block != body || load->noperand != tensor + 1 + body->narg)
		return false; // in a reduction it may be read again after the element was written
	for (int i = 0; i < body->narg; i++)
		if (!index_is_position(op_operand(load, tensor + 1 + i), body, i, nest->results[0].type->dims[i]))
			return false;
	return true;
}

// What a nest does with one buffer.
typedef struct Reads {
	const Op *nest;
	const Buffer *buffer;
	const Type *result;
	bool only_identity;
} Reads;

static bool reads_visit(Op *op, void *arg)
{
	Reads *r = arg;
	for (int i = 0; i < op->noperand; i++) {
		const Value *v = op_operand(op, i);
		if (!v || !v->def || v->def->block != r->nest->block || value_buffer(v) != r->buffer)
			continue;
		const Type *t = v->type;
		bool same = t->rank == r->result->rank && dtype_size(t->dtype) == dtype_size(r->result->dtype) &&
		            (t->rank == 0 || !memcmp(t->dims, r->result->dims, sizeof *t->dims * (size_t)t->rank));
		if (!same || (op->code != OP_LOOP_LOAD && op->code != OP_LOOP_LOAD_OR) || !load_at_identity(op, r->nest))
			r->only_identity = false;
	}
	return r->only_identity;
}

// Whether result `i` of the nest may be written over buffer b.
static bool buffer_reusable(Op *nest, int i, Buffer *b)
{
	if (!b || b->place != PLACE_WORKSPACE || b->last != op_plan(nest)->at)
		return false;
	for (int k = 0; k < nest->nresult; k++)
		if (value_buffer(&nest->results[k]) == b)
			return false; // another result took it
	Reads r = {nest, b, nest->results[i].type, true};
	op_walk(nest, reads_visit, &r);
	return r.only_identity;
}

typedef struct Search {
	Op *nest;
	int result;
	Buffer *found;
} Search;

static bool search_visit(Op *op, void *arg)
{
	Search *s = arg;
	if (op->code != OP_LOOP_LOAD && op->code != OP_LOOP_LOAD_OR)
		return true;
	const Value *v = op_operand(op, op->code == OP_LOOP_LOAD ? 0 : 2);
	Buffer *b = v && v->def && v->def->block == s->nest->block ? value_buffer(v) : NULL;
	if (b && b->bytes == value_buffer(&s->nest->results[s->result])->bytes && buffer_reusable(s->nest, s->result, b))
		s->found = b;
	return !s->found;
}

static void plan_in_place(Plan *p)
{
	for (Op *op = p->block->first; op; op = op->next) {
		if (op->code != OP_LOOP_NEST)
			continue;
		for (int i = 0; i < op->nresult; i++) {
			Search s = {op, i, NULL};
			op_walk(op, search_visit, &s);
			if (!s.found)
				continue;
			Buffer *result = value_buffer(&op->results[i]);
			result->merged = s.found;
			s.found->last = result->last;
			s.found->place = result->place;
			s.found->col = result->col;
		}
	}
}

// ---- offsets ------------------------------------------------------------------------------------------

static const Dim *plan_workspace(Plan *p)
{
	SizedItem *items = NEW_ARRAY(p->arena, (size_t)p->nbuffer + 1, SizedItem);
	Buffer **of = NEW_ARRAY(p->arena, (size_t)p->nbuffer + 1, Buffer *);
	int n = 0;
	for (Buffer *b = p->first; b; b = b->next) {
		if (b->merged || b->place != PLACE_WORKSPACE)
			continue;
		items[n] = (SizedItem){b->bytes, b->first, b->last, NULL};
		of[n++] = b;
	}
	const Dim *size = pack_sized(p->ctx, p->arena, n, items);
	for (int i = 0; i < n; i++)
		of[i]->offset = items[i].offset;
	return size;
}

// Parameters lie in the order in which the program reads them first.
static const Dim *plan_weights(Plan *p)
{
	const Dim *end = dim_const(p->ctx, 0), *align = dim_const(p->ctx, PLAN_ALIGN);
	for (Buffer *b = p->first; b; b = b->next) {
		if (b->place != PLACE_PARAM)
			continue;
		for (Buffer *o = p->first; o != b && !b->offset; o = o->next)
			if (o->place == PLACE_PARAM && o->data_key == b->data_key)
				b->offset = o->offset;
		if (b->offset)
			continue;
		b->offset = end;
		const Dim *padded = dim_add(p->ctx, b->bytes, dim_const(p->ctx, PLAN_ALIGN - 1));
		end = dim_add(p->ctx, end, dim_mul(p->ctx, dim_div(p->ctx, padded, align), align));
	}
	return end;
}

// ---- attributes -----------------------------------------------------------------------------------------

static const char *place_text(Context *c, const Buffer *b)
{
	if (b->place == PLACE_INPUT || b->place == PLACE_OUTPUT)
		return arena_printf(c->arena, "%s %lld", place_names[b->place], (long long)b->col);
	return place_names[b->place];
}

static void op_write_plan(Plan *p, Op *op)
{
	const char **places = NEW_ARRAY(p->ctx->arena, (size_t)op->nresult + 1, const char *);
	const Dim **offsets = NEW_ARRAY(p->ctx->arena, (size_t)op->nresult + 1, const Dim *);
	bool any = false;
	for (int i = 0; i < op->nresult; i++) {
		const Buffer *b = value_buffer(&op->results[i]);
		bool view = b && i == 0 && op_is_view(op);
		places[i] = !b ? "none" : view ? "view" : place_text(p->ctx, b);
		offsets[i] = b && !view && b->offset ? b->offset : dim_const(p->ctx, 0);
		any = any || b;
	}
	if (!any)
		return;
	op_set_attr(op, "place", attr_strs(p->ctx, op->nresult, places));
	op_set_attr(op, "offset", attr_dims(p->ctx, op->nresult, offsets));
}

static bool plan_make(Plan *p, Op *module)
{
	if (!plan_make_buffers(p))
		return false;
	plan_lifetimes(p);
	plan_fetches(p);
	plan_in_place(p);
	const Dim *workspace = plan_workspace(p), *weights = plan_weights(p);
	if (dim_is(workspace, INT64_MAX) || dim_is(weights, INT64_MAX)) {
		diag_error(p->ctx->diag, module->loc, "the model needs more memory than 64 bits can count");
		return false;
	}
	for (Op *op = p->block->first; op; op = op->next)
		op_write_plan(p, op);
	op_set_attr(module, "workspace", attr_dim(p->ctx, workspace));
	op_set_attr(module, "weights", attr_dim(p->ctx, weights));
	return true;
}

// Needs: only nests, kernels, views, constants, feeds and fetches in the module's block.
// Keeps: everything; adds attributes.
// Breaks: any pass that changes operations after it makes the plan wrong.
bool pass_plan(PassContext *p)
{
	Arena *arena = arena_scratch(p->ctx->arena);
	Plan plan = {.ctx = p->ctx, .arena = arena, .block = module_block(p->module)};
	plan.tail = &plan.first;
	bool ok = plan_make(&plan, p->module);
	for (Op *op = plan.block->first; op; op = op->next)
		op->scratch = NULL;
	arena_free(arena);
	return ok;
}
