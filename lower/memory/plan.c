// The memory plan: where every tensor of the module lives. Last pass; codegen reads what it leaves
// in the attributes `place` and `offset` of operations, `workspace` and `weights` of the module.
//
// Feeds stay in the caller's buffers and are never written. A fetched value is computed where the
// caller wants it. Parameters and constants lie one behind the other in the weights, those that
// runs change in front of the workspace. Views share the bytes of what they look at. Everything
// else is packed into one workspace by lifetime, and a nest that reads an operand only at the
// element that it writes takes over the operand's bytes when nobody needs them afterwards.
#include "ir/base/map.h"
#include "lower/memory/plan.h"
#include "lower/analysis/analysis.h"
#include "lower/memory/memory.h"
#include "lower/pass/pass.h"

#include <string.h>

static const char *const place_names[] = {"workspace", "input", "output", "param", "state"};

// ---- buffers ------------------------------------------------------------------------------------

static bool only_counts(const Value *v)
{
	return v->def ? op_counts(v->def) : argument_counts(v);
}

static Root *root_new(Plan *p, const Value *v, int at)
{
	Buffer *b = NEW(p->arena, Buffer);
	Root *r = NEW(p->arena, Root);
	*r = (Root){.value = v, .buffer = b, .id = p->nroot++, .at = at};
	b->bytes = only_counts(v) ? dim_const(p->ctx, 0) : type_bytes_at_most(p->ctx, v->type);
	b->roots = r;
	*p->tail = b;
	p->tail = &b->next;
	p->nbuffer++;
	return r;
}

static void buffer_set_place(Buffer *b, const Op *op)
{
	if (op->code == OP_PD_FEED) {
		b->place = IN_INPUT;
		b->col = op_int(op, "col", 0);
	} else if (op->code == OP_BUILTIN_GET_PARAMETER) {
		b->data_key = op_attr(op, "name");
		b->place = param_is_written(op->ctx, op_str(op, "name", "")) ? IN_STATE : IN_PARAM;
	} else if (op->code == OP_BUILTIN_CONSTANT) {
		b->place = IN_PARAM;
		b->data_key = op_attr(op, "value");
	}
}

static bool type_is_planned(const Plan *p, const Op *op, const Type *type)
{
	if (type_is_tensor(type))
		return true;
	diag_error(p->ctx->diag, op->loc, "'%s': no memory plan for a %s of this type", op->info->name,
	           op->info->traits & TRAIT_TERMINATOR ? "value" : "result");
	return false;
}

static bool op_make_buffers(Plan *p, Op *op)
{
	OpPlan *plan = op_plan(op);
	if (op->info->kind == KIND_CONTROL && op->nregion > 0) {
		diag_error(p->ctx->diag, op->loc, "'%s': a memory plan needs blocks (pass 'flatten')",
		           op->info->name);
		return false;
	}
	for (int i = 0; i < op->nresult; i++) {
		const Value *v = &op->results[i];
		if (v->type->kind == TY_VEC || v->type->kind == TY_NONE)
			continue;
		if (!type_is_planned(p, op, v->type))
			return false;
		Root *shown = i == 0 && op_is_view(op) ? value_root(p, op_operand(op, 0)) : NULL;
		plan->roots[i] = shown ? shown : root_new(p, v, plan->at);
		if (!shown)
			buffer_set_place(plan->roots[i]->buffer, op);
	}
	return true;
}

// The operations get their numbers, the blocks theirs (but for the first, which has no arguments).
static bool block_make_buffers(Plan *p, BlockPlan *b)
{
	b->start = p->nop;
	p->nop += b != p->blocks;
	b->args = NEW_ARRAY(p->arena, (size_t)b->block->narg + 1, Root *);
	for (int i = 0; i < b->block->narg; i++) {
		if (!type_is_planned(p, b->block->last, b->block->args[i]->type))
			return false;
		b->args[i] = root_new(p, b->block->args[i], b->start);
	}
	for (Op *op = b->block->first; op; op = op->next) {
		OpPlan *plan = NEW(p->arena, OpPlan);
		plan->at = p->nop++;
		plan->roots = NEW_ARRAY(p->arena, (size_t)op->nresult + 1, Root *);
		op->scratch = plan;
	}
	b->end = p->nop - 1;
	return true;
}

// Operations may use arguments of blocks further down in the text, so all blocks have theirs first.
static bool plan_make_buffers(Plan *p)
{
	for (Block *b = p->region->first; b; b = b->next)
		b->id = (uint32_t)p->nblock++;
	p->blocks = NEW_ARRAY(p->arena, (size_t)p->nblock + 1, BlockPlan);
	for (Block *b = p->region->first; b; b = b->next)
		p->blocks[b->id].block = b;
	for (int k = 0; k < p->nblock; k++)
		if (!block_make_buffers(p, &p->blocks[k]))
			return false;
	for (int k = 0; k < p->nblock; k++)
		for (Op *op = p->blocks[k].block->first; op; op = op->next)
			if (!op_make_buffers(p, op))
				return false;
	return true;
}

// ---- outputs ------------------------------------------------------------------------------------

// Lets the first fetch of every computed value name the place where it is computed. Later fetches
// of the same bytes, and fetches of feeds and parameters, copy. So do fetches of what lies in turns
// in several buffers, and of counters, and fetches that are not at the end of it all.
static void plan_fetches(Plan *p)
{
	const Block *last = p->region->last;
	for (Op *op = last->last && !last->last->nsucc ? last->first : NULL; op; op = op->next) {
		if (op->code != OP_PD_FETCH)
			continue;
		const Value *v = op_operand(op, 0);
		Buffer *b = v ? value_buffer(p, v) : NULL;
		if (!b || b->place != IN_WORKSPACE || b->moving || buffer_is_counter(b) ||
		    b->bytes != type_bytes_at_most(p->ctx, v->type))
			continue;
		b->place = IN_OUTPUT;
		b->col = op_int(op, "col", 0);
	}
}

// ---- offsets ------------------------------------------------------------------------------------

static const Dim *plan_workspace(Plan *p, const Dim *state)
{
	SizedItem *items = NEW_ARRAY(p->arena, (size_t)p->nbuffer + 1, SizedItem);
	Buffer **of = NEW_ARRAY(p->arena, (size_t)p->nbuffer + 1, Buffer *);
	int n = 0;
	for (Buffer *b = p->first; b; b = b->next) {
		if (b->merged || b->place != IN_WORKSPACE)
			continue;
		items[n] = (SizedItem){b->bytes, {b->first, b->last, n, NULL}, NULL};
		of[n++] = b;
	}
	const Dim *size = p->parallel ? pack_parallel(p, n, of, items)
	                              : pack_sized(p->ctx, p->arena, n, items);
	for (int i = 0; i < n; i++)
		of[i]->offset = dim_add(p->ctx, state, items[i].offset);
	return dim_add(p->ctx, state, size);
}

// Parameters lie in the order in which the program reads them first.
static const Dim *plan_weights(Plan *p)
{
	const Dim *end = dim_const(p->ctx, 0), *align = dim_const(p->ctx, PLAN_ALIGN);
	PointerMap offsets;
	pointer_map_init(&offsets, p->arena);
	for (Buffer *b = p->first; b; b = b->next) {
		if (b->place != IN_PARAM)
			continue;
		b->offset = pointer_map_get(&offsets, b->data_key);
		if (b->offset)
			continue;
		b->offset = end;
		pointer_map_set(&offsets, b->data_key, end);
		// One without elements has a place of its own, too: a place is known by its offset.
		const Dim *padded = dim_add(p->ctx, dim_max(p->ctx, b->bytes, dim_const(p->ctx, 1)),
		                            dim_const(p->ctx, PLAN_ALIGN - 1));
		end = dim_add(p->ctx, end, dim_mul(p->ctx, dim_div(p->ctx, padded, align), align));
	}
	return end;
}

// ---- attributes ---------------------------------------------------------------------------------

static const char *place_text(Context *c, const Buffer *b)
{
	if (b->place == IN_INPUT || b->place == IN_OUTPUT)
		return arena_printf(c->arena, "%s %lld", place_names[b->place], (long long)b->col);
	if (b->moving)
		return arena_printf(c->arena, "moving %d", b->moving);
	return place_names[b->place];
}

static const Dim *buffer_offset(Context *c, const Buffer *b)
{
	return b && b->offset ? b->offset : dim_const(c, 0);
}

static void op_write_plan(Plan *p, Op *op)
{
	const char **places = NEW_ARRAY(p->ctx->arena, (size_t)op->nresult + 1, const char *);
	const Dim **offsets = NEW_ARRAY(p->ctx->arena, (size_t)op->nresult + 1, const Dim *);
	bool any = false;
	for (int i = 0; i < op->nresult; i++) {
		const Buffer *b = value_buffer(p, &op->results[i]);
		bool view = b && i == 0 && op_is_view(op);
		const Root *r = value_root(p, &op->results[i]);
		places[i] = !b ? "none" : view ? "view" : r->slot ? "slot" : place_text(p->ctx, b);
		offsets[i] = view ? dim_const(p->ctx, 0) : buffer_offset(p->ctx, b);
		any = any || b;
	}
	if (op->code == OP_BUILTIN_SET_PARAMETER)
		set_write_plan(p, op);
	if (!any)
		return;
	op_set_attr(op, "place", attr_strs(p->ctx, op->nresult, places));
	op_set_attr(op, "offset", attr_dims(p->ctx, op->nresult, offsets));
}

// A branch says where the arguments of its successors lie, and how what it passes gets there.
static void branch_write_plan(Plan *p, Op *op)
{
	int n = 0, cap = op->noperand;
	const char **places = NEW_ARRAY(p->ctx->arena, (size_t)cap + 1, const char *);
	const char **moves = NEW_ARRAY(p->ctx->arena, (size_t)cap + 1, const char *);
	const Dim **offsets = NEW_ARRAY(p->ctx->arena, (size_t)cap + 1, const Dim *);
	MoveKind *kinds = NEW_ARRAY(p->arena, (size_t)cap + 1, MoveKind);
	for (int s = 0; s < op->nsucc; s++) {
		branch_moves(p, op, s, kinds);
		for (int i = 0; i < (int)op->succs[s].count; i++) {
			const Buffer *b = value_buffer(p, op->succs[s].block->args[i]);
			places[n] = place_text(p->ctx, b);
			offsets[n] = buffer_offset(p->ctx, b);
			moves[n++] = enum_move.words[kinds[i]];
		}
	}
	if (!n)
		return;
	op_set_attr(op, "place", attr_strs(p->ctx, n, places));
	op_set_attr(op, "offset", attr_dims(p->ctx, n, offsets));
	op_set_attr(op, "moves", attr_strs(p->ctx, n, moves));
}

// Buffers that are exchanged are needed as long as any of them is.
static void plan_join_spans(Plan *p)
{
	for (Buffer *b = p->first; b; b = b->next)
		for (Buffer *up = b->exchanged; up; up = up->exchanged) {
			up->first = up->first < b->first ? up->first : b->first;
			up->last = up->last > b->last ? up->last : b->last;
		}
	for (Buffer *b = p->first; b; b = b->next) {
		const Buffer *group = b;
		while (group->exchanged)
			group = group->exchanged;
		b->first = group->first;
		b->last = group->last;
	}
}

// Whether a number of bytes, or one of the terms of the sum that it is, could not be counted.
static bool is_too_big(const Dim *bytes)
{
	int64_t least, most;
	dim_range(bytes, &least, &most);
	return least == INT64_MAX;
}

static bool plan_make(Plan *p, Op *module)
{
	if (!plan_make_buffers(p))
		return false;
	plan_find_uses(p);
	plan_join_args(p);
	plan_find_moving(p);
	if (!plan_states(p))
		return false;
	plan_fetches(p);
	plan_in_place(p);
	plan_find_moving(p);
	plan_find_spans(p);
	plan_join_spans(p);
	const Dim *state = plan_state_offsets(p), *workspace = plan_workspace(p, state);
	const Dim *weights = plan_state_initial(p, plan_weights(p));
	if (is_too_big(workspace) || is_too_big(weights)) {
		diag_error(p->ctx->diag, module->loc, "the model needs more memory than 64 bits can count");
		return false;
	}
	for (Block *b = p->region->first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next)
			op->nsucc ? branch_write_plan(p, op) : op_write_plan(p, op);
	op_set_attr(module, "workspace", attr_dim(p->ctx, workspace));
	op_set_attr(module, "weights", attr_dim(p->ctx, weights));
	if (!dim_is(state, 0))
		op_set_attr(module, "state", attr_dim(p->ctx, state));
	return true;
}

static bool scratch_clear(Op *op, void *arg)
{
	(void)arg;
	op->scratch = NULL;
	return true;
}

// Needs: only nests, kernels, views, constants, feeds and fetches in the module's blocks, and
// branches between them (flatten). Keeps: everything; adds attributes. Breaks: any pass that
// changes operations after it makes the plan wrong.
bool pass_plan(PassContext *p)
{
	Arena *arena = arena_scratch(p->ctx->arena);
	Context view = context_of_known_sizes(p->ctx); // offsets are evaluated with sizes of at least 1
	Plan plan = {.ctx = &view, .arena = arena, .region = &p->module->regions[0]};
	plan.parallel = p->target && p->target->graph;
	plan.tail = &plan.first;
	op_walk(p->module, scratch_clear, NULL);
	const bool ok = plan_make(&plan, p->module);
	size_facts_to_module(p->module);
	op_walk(p->module, scratch_clear, NULL);
	arena_free(arena);
	return ok;
}
