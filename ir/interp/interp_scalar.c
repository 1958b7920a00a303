// Regions of scalar operations: compiled once per run of a nest or kernel into instructions over
// registers, and run on strips of STRIP positions at a time. All control flow in a region
// (reductions) is the same for every position, so one instruction can work on a whole strip.
//
// An operation whose operands do not change inside a reduction, or with its last position alone, is
// computed outside of that loop. Sums and products of floats are accumulated in double and rounded
// once at the end.
#include "ir/base/vec.h"
#include "ir/interp/interp_program.h"

#include <string.h>

static bool body_compile(Program *p, Body *body, const Region *r);
static Body *place_of(const Program *p, Body *b, int nsrc, const int *src);

// ---- registers ----------------------------------------------------------------------------------

static int register_add(Program *p, int depth)
{
	VEC_ROOM(p->arena, p->depths, p->nreg, p->creg);
	p->depths[p->nreg] = depth;
	return p->nreg++;
}

static bool value_is_complex(const Value *v)
{
	return v->type->kind == TY_SCALAR && dtype_is_complex(v->type->dtype);
}

// Complex numbers take two registers: the second one has the imaginary parts.
static int register_new(Program *p, const Value *v, int depth)
{
	int reg = register_add(p, depth);
	if (v)
		pointer_map_set_index(&p->registers, v, reg);
	if (v && value_is_complex(v))
		register_add(p, depth);
	return reg;
}

static void register_preset(Program *p, int reg, Lane value)
{
	VEC_ROOM(p->arena, p->presets, p->nconst, p->cconst);
	p->presets[p->nconst++] = (struct Preset){reg, value};
}

// ---- compiling ----------------------------------------------------------------------------------

static Instr *instr_add(Program *p, Body *b, InstrKind kind, const Op *op)
{
	VEC_ROOM(p->arena, b->instrs, b->ninstr, b->cinstr);
	Instr *i = &b->instrs[b->ninstr++];
	*i = (Instr){.kind = kind, .op = op, .pred = -1, .other = -1, .offset = -1, .bad = -1};
	i->to = element_dtype(op->results[0].type);
	return i;
}

// Registers of operands [first, end) into src.
static bool read_sources(Program *p, const Op *op, int first, int *src)
{
	for (int i = first; i < op->noperand; i++) {
		src[i - first] = op_operand(op, i) ? pointer_map_index(&p->registers, op_operand(op, i))
		                                   : -1;
		if (src[i - first] < 0)
			return op_error(op, "operand %d is no scalar of this region", i);
	}
	return true;
}

static bool compile_constant(Program *p, const Op *op)
{
	const Attr *a = op_attr(op, "value");
	DType t = element_dtype(op->results[0].type);
	Lane v = {.i = 0};
	if (!a)
		return op_error(op, "a scalar constant of this type");
	double f = a->kind == ATTR_FLOAT ? a->f : (double)a->i;
	if (dtype_is_float(t) || dtype_is_complex(t))
		v.f = f;
	else
		v.i = a->kind == ATTR_FLOAT ? whole_from_double(dtype_part(t), f) : a->i;
	Lane lanes[8] = {v};
	lanes_round(dtype_part(t), 1, lanes);
	int reg = register_new(p, &op->results[0], 0);
	register_preset(p, reg, lanes[0]);
	if (dtype_is_complex(t))
		register_preset(p, reg + 1, (Lane){.f = 0});
	return true;
}

static bool compile_dim(Program *p, const Op *op)
{
	const Attr *a = op_attr(op, "dim");
	Lane v;
	if (!a || a->kind != ATTR_DIM || !interp_size(p->in, op, a->dim, &v.i))
		return false;
	register_preset(p, register_new(p, &op->results[0], 0), v);
	return true;
}

// One axis of a position: computed as far out as its index allows. Failing is left to the load.
static void compile_offset(Program *p, Body *b, const Op *op, int index, int64_t size, int *offset,
                           int *bad)
{
	int src[2] = {index, *offset};
	Body *place = place_of(p, b, *offset < 0 ? 1 : 2, src);
	Instr *i = instr_add(p, place, INSTR_OFFSET, op);
	i->src[0] = index;
	i->offset = *offset;
	i->bad = *bad;
	i->extent = size;
	i->dst = *offset = register_new(p, NULL, place->depth);
	i->to_bad = *bad = register_new(p, NULL, place->depth);
}

static bool compile_load(Program *p, Body *b, const Op *op, bool guarded)
{
	int first = guarded ? 2 : 0, src[MAX_SOURCES];
	const Value *from = op_operand(op, first);
	const Cell *cell = from ? interp_cell(p->in, from) : NULL;
	if (!cell || !cell->tensor)
		return op_error(op, "the tensor has no value");
	int rank = op->noperand - first - 1;
	if (rank != cell->tensor->rank || rank > MAX_RANK)
		return op_error(op, "%d indices into a tensor of rank %d", rank, cell->tensor->rank);
	if (!read_sources(p, op, first + 1, src))
		return false;
	int pred = guarded ? pointer_map_index(&p->registers, op_operand(op, 0)) : -1;
	int other = guarded ? pointer_map_index(&p->registers, op_operand(op, 1)) : -1;
	if (guarded && (pred < 0 || other < 0))
		return op_error(op, "an operand is no scalar of this region");
	int offset = -1, bad = -1;
	for (int d = 0; d < rank; d++)
		compile_offset(p, b, op, src[d], cell->tensor->dims[d], &offset, &bad);
	Body *place = guarded ? b : place_of(p, b, rank, src);
	Instr *i = instr_add(p, place, INSTR_LOAD, op);
	memcpy(i->src, src, sizeof i->src);
	i->nsrc = rank;
	i->tensor = cell->tensor;
	i->offset = offset;
	i->bad = bad;
	i->pred = pred;
	i->other = other;
	i->dst = register_new(p, &op->results[0], place->depth);
	return true;
}

static bool compile_to_index(Program *p, Body *b, const Op *op, InstrKind kind)
{
	const Attr *a = op_attr(op, "extent");
	int src[MAX_SOURCES];
	int64_t extent;
	if (!a || a->kind != ATTR_DIM || !interp_size(p->in, op, a->dim, &extent) ||
	    !read_sources(p, op, 0, src))
		return false;
	Body *place = place_of(p, b, 1, src);
	Instr *i = instr_add(p, place, kind, op);
	i->src[0] = src[0];
	i->extent = extent;
	i->dst = register_new(p, &op->results[0], place->depth);
	return true;
}

// The outermost body in which all sources are known, and that runs only if b does: what fails there
// would have failed in b.
static Body *place_of(const Program *p, Body *b, int nsrc, const int *src)
{
	int depth = 0;
	for (int i = 0; i < nsrc; i++)
		depth = p->depths[src[i]] > depth ? p->depths[src[i]] : depth;
	while (b->depth > depth && b->outer && !b->empty)
		b = b->outer;
	return b;
}

static bool compile_map(Program *p, Body *b, const Op *op)
{
	int src[MAX_SOURCES];
	bool cast = op->code == OP_PD_CAST || op->code == OP_LOOP_FROM_INDEX;
	if (op->nresult != 1 || op->noperand < 1 || op->noperand > 3 ||
	    (!cast && !(op->info->traits & TRAIT_PRIMITIVE)))
		return op_error(op, "the interpreter cannot run this in a loop region");
	if (!read_sources(p, op, 0, src))
		return false;
	Body *place = place_of(p, b, op->noperand, src);
	Instr *i = instr_add(p, place, INSTR_MAP, op);
	i->from = element_dtype(op_operand(op, op->code == OP_PD_WHERE ? 1 : 0)->type);
	i->nsrc = op->noperand;
	memcpy(i->src, src, sizeof i->src);
	i->dst = register_new(p, &op->results[0], place->depth);
	return true;
}

// One body per extent, one inside the other, with the position along it as argument.
static void open_levels(Program *p, Body *outer, const Block *block, Instr *i)
{
	bool empty = i->pred >= 0;
	for (int d = 0; d < i->nextent; d++)
		empty |= i->extents[d] <= 0;
	i->nlevel = i->nextent ? i->nextent : 1;
	i->levels = NEW_ARRAY(p->arena, (size_t)i->nlevel, Body *);
	for (int d = 0; d < i->nlevel; d++) {
		Body *level = i->levels[d] = NEW(p->arena, Body);
		level->outer = d ? i->levels[d - 1] : outer;
		level->depth = level->outer->depth + 1;
		level->empty = empty;
		level->narg = d < i->nextent;
		level->args = NEW(p->arena, int);
		if (level->narg)
			*level->args = register_new(p, block->args[d], level->depth);
	}
}

static bool compile_reduce(Program *p, Body *b, const Op *op)
{
	const Attr *extents = op_attr(op, "extents");
	const Block *block = op->nregion == 1 ? region_entry(&op->regions[0]) : NULL;
	if (!extents || extents->kind != ATTR_DIMS || extents->n > MAX_RANK || op->nresult != 1 ||
	    !block || block->narg != extents->n)
		return op_error(op, "the reduction is malformed");
	if (b->depth + extents->n >= MAX_DEPTH)
		return op_error(op, "reductions are nested too deep");
	Instr i = {.nextent = extents->n, .pred = -1};
	if (op_operand(op, 0) &&
	    (extents->n != 1 || (i.pred = pointer_map_index(&p->registers, op_operand(op, 0))) < 0))
		return op_error(op, "the count is no index of this region");
	for (int d = 0; d < extents->n; d++)
		if (!interp_size(p->in, op, extents->dims[d], &i.extents[d]))
			return false;
	open_levels(p, b, block, &i);
	Body *inner = i.levels[i.nlevel - 1];
	if (!body_compile(p, inner, &op->regions[0]))
		return false;
	if (inner->nyield != 1)
		return op_error(op, "the reduction is malformed");
	Instr *at = instr_add(p, b, INSTR_REDUCE, op);
	at->nextent = i.nextent;
	at->pred = i.pred;
	memcpy(at->extents, i.extents, sizeof i.extents);
	at->nlevel = i.nlevel;
	at->levels = i.levels;
	at->from = element_dtype(op_operand(block_terminator(block), 0)->type);
	at->dst = register_new(p, &op->results[0], b->depth);
	return true;
}

static bool op_compile(Program *p, Body *b, const Op *op)
{
	switch (op->code) {
	case OP_LOOP_CONSTANT: return compile_constant(p, op);
	case OP_LOOP_DIM: return compile_dim(p, op);
	case OP_LOOP_LOAD: return compile_load(p, b, op, false);
	case OP_LOOP_LOAD_OR: return compile_load(p, b, op, true);
	case OP_LOOP_POSITION:
	case OP_LOOP_TO_INDEX: return compile_to_index(p, b, op, INSTR_TO_INDEX);
	case OP_LOOP_NEAR_INDEX: return compile_to_index(p, b, op, INSTR_NEAR_INDEX);
	case OP_LOOP_REDUCE: return compile_reduce(p, b, op);
	default: return compile_map(p, b, op);
	}
}

// The arguments of the region have their registers already.
static bool body_compile(Program *p, Body *body, const Region *r)
{
	const Block *block = region_entry(r);
	const Op *end = block ? block_terminator(block) : NULL;
	if (!end || end->code != OP_LOOP_YIELD || block->next)
		return op_error(r->op, "the region must be one block that ends in loop.yield");
	for (const Op *op = block->first; op != end; op = op->next)
		if (!op_compile(p, body, op))
			return false;
	body->nyield = end->noperand;
	body->yields = NEW_ARRAY(p->arena, (size_t)end->noperand + 1, int);
	return read_sources(p, end, 0, body->yields);
}

Program *program_compile(Interp *in, const Region *r)
{
	Program *p = NEW(interp_arena(in), Program);
	p->in = in;
	p->arena = interp_arena(in);
	p->registers.arena = p->arena;
	p->body = NEW(p->arena, Body);
	const Block *block = region_entry(r);
	p->body->narg = block ? block->narg : 0;
	p->body->args = NEW_ARRAY(p->arena, (size_t)p->body->narg + 1, int);
	for (int i = 0; i < p->body->narg; i++)
		p->body->args[i] = register_new(p, block->args[i], 0);
	if (!body_compile(p, p->body, r))
		return NULL;
	const Op *end = block_terminator(block);
	p->yield_types = NEW_ARRAY(p->arena, (size_t)end->noperand + 1, const Type *);
	for (int i = 0; i < end->noperand; i++)
		p->yield_types[i] = op_operand(end, i)->type;
	p->lanes = NEW_ARRAY(p->arena, ((size_t)p->nreg + 1) * STRIP, Lane);
	for (int i = 0; i < p->nconst; i++)
		for (int l = 0; l < STRIP; l++)
			lanes_of(p, p->presets[i].reg)[l] = p->presets[i].value;
	return p;
}
