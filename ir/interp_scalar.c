// Regions of scalar operations: compiled once per run of a nest or kernel into instructions over registers,
// and run on strips of STRIP positions at a time. All control flow in a region (reductions) is the same for
// every position, so one instruction can work on a whole strip.
//
// An operation whose operands do not change inside a reduction, or with its last position alone, is computed
// outside of that loop. Sums and products of floats are accumulated in double and rounded once at the end.
#include "interp.h"

#include <math.h>
#include <string.h>

enum { MAX_SOURCES = MAX_RANK + 4, MAX_DEPTH = 64 };

typedef struct Body Body;

typedef enum InstrKind { INSTR_MAP, INSTR_OFFSET, INSTR_LOAD, INSTR_TO_INDEX, INSTR_REDUCE } InstrKind;

typedef struct Instr {
	InstrKind kind;
	const Op *op;
	DType from, to;        // element types of the operands and the result
	int dst, nsrc;
	int src[MAX_SOURCES];
	const Tensor *tensor;  // load, from the position in offset unless bad
	int offset, bad;       // offset: position so far and whether it is outside, and from which (-1: none);
	int to_bad;            // ... the step along one axis, src[0] being the index, goes to dst and to_bad
	int pred, other;       // load_or; -1: a plain load
	int64_t extent;        // to_index, offset
	int nextent;           // reduce; `pred` counts the positions, -1: all
	int64_t extents[MAX_RANK];
	int nlevel;            // at least 1
	Body **levels;         // one inside the other, one per extent; the last yields
} Instr;

// Instructions that run together: a nest's, or those of one loop of a reduction.
struct Body {
	Body *outer;
	int depth;
	bool empty;            // may never run: nothing may be moved out of it
	int ninstr, cinstr;
	Instr *instrs;
	int narg, nyield;
	int *args, *yields;
};

struct Program {
	Interp *in;
	Arena *arena;
	PtrMap registers;      // of values
	int nreg, creg;
	int *depths;           // of the body that computes each register
	Lane *lanes;           // [nreg][STRIP]
	Body *body;
	const bool *active;    // lanes that count, inside of a reduction whose lanes end one after the other; NULL: all
	const Type **yield_types;
	int nconst, cconst;    // registers that never change
	struct Preset { int reg; Lane value; } *presets;
};

static bool body_compile(Program *p, Body *body, const Region *r);
static Body *place_of(const Program *p, Body *b, int nsrc, const int *src);

// ---- lanes and tensors ------------------------------------------------------------------------------

void lanes_gather(const Tensor *t, int n, const int64_t *at, Lane *out)
{
	switch (t->dtype) {
	case DT_F32:
		for (int l = 0; l < n; l++)
			out[l].f = ((const float *)t->data)[at[l]];
		break;
	case DT_F64:
		for (int l = 0; l < n; l++)
			out[l].f = ((const double *)t->data)[at[l]];
		break;
	case DT_I64:
		for (int l = 0; l < n; l++)
			out[l].i = ((const int64_t *)t->data)[at[l]];
		break;
	case DT_F16:
	case DT_BF16:
		for (int l = 0; l < n; l++)
			out[l].f = tensor_get_f(t, at[l]);
		break;
	case DT_C64:
	case DT_C128:
		complex_gather(t, n, at, out);
		break;
	default:
		for (int l = 0; l < n; l++)
			out[l].i = tensor_get_i(t, at[l]);
		break;
	}
}

void lanes_store(Tensor *t, int64_t at, int n, const Lane *v)
{
	switch (t->dtype) {
	case DT_F32:
		for (int l = 0; l < n; l++)
			((float *)t->data)[at + l] = (float)v[l].f;
		break;
	case DT_F64:
		for (int l = 0; l < n; l++)
			((double *)t->data)[at + l] = v[l].f;
		break;
	case DT_F16:
	case DT_BF16:
		for (int l = 0; l < n; l++)
			tensor_set_f(t, at + l, v[l].f);
		break;
	case DT_C64:
	case DT_C128:
		complex_store(t, at, n, v);
		break;
	default:
		for (int l = 0; l < n; l++)
			tensor_set_i(t, at + l, v[l].i);
		break;
	}
}

// ---- registers ------------------------------------------------------------------------------------

static int register_add(Program *p, int depth)
{
	if (p->nreg == p->creg) {
		p->creg = p->creg ? 2 * p->creg : 32;
		int *depths = NEW_ARRAY(p->arena, (size_t)p->creg, int);
		if (p->nreg)
			memcpy(depths, p->depths, sizeof *depths * (size_t)p->nreg);
		p->depths = depths;
	}
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
		ptr_map_set(&p->registers, v, reg);
	if (v && value_is_complex(v))
		register_add(p, depth);
	return reg;
}

static Lane *lanes_of(const Program *p, int reg)
{
	return p->lanes + (size_t)reg * STRIP;
}

static void register_preset(Program *p, int reg, Lane value)
{
	if (p->nconst == p->cconst) {
		p->cconst = p->cconst ? 2 * p->cconst : 16;
		struct Preset *more = NEW_ARRAY(p->arena, (size_t)p->cconst, struct Preset);
		if (p->nconst)
			memcpy(more, p->presets, sizeof *more * (size_t)p->nconst);
		p->presets = more;
	}
	p->presets[p->nconst++] = (struct Preset){reg, value};
}

static DType element_dtype(const Type *t)
{
	return t->kind == TY_INDEX ? DT_I64 : t->dtype;
}

// ---- compiling --------------------------------------------------------------------------------------

static Instr *instr_add(Program *p, Body *b, InstrKind kind, const Op *op)
{
	if (b->ninstr == b->cinstr) {
		b->cinstr = b->cinstr ? 2 * b->cinstr : 16;
		Instr *more = NEW_ARRAY(p->arena, (size_t)b->cinstr, Instr);
		if (b->ninstr)
			memcpy(more, b->instrs, sizeof *more * (size_t)b->ninstr);
		b->instrs = more;
	}
	Instr *i = &b->instrs[b->ninstr++];
	*i = (Instr){.kind = kind, .op = op, .pred = -1, .other = -1, .offset = -1, .bad = -1};
	i->to = element_dtype(op->results[0].type);
	return i;
}

// Registers of operands [first, end) into src.
static bool read_sources(Program *p, const Op *op, int first, int *src)
{
	for (int i = first; i < op->noperand; i++) {
		src[i - first] = op_operand(op, i) ? ptr_map_get(&p->registers, op_operand(op, i)) : -1;
		if (src[i - first] < 0)
			return interp_error(p->in, op, "operand %d is no scalar of this region", i);
	}
	return true;
}

static bool compile_constant(Program *p, const Op *op)
{
	const Attr *a = op_attr(op, "value");
	DType t = element_dtype(op->results[0].type);
	Lane v = {.i = 0};
	if (!a)
		return interp_error(p->in, op, "a scalar constant of this type");
	double f = a->kind == ATTR_FLOAT ? a->f : (double)a->i;
	if (dtype_is_float(t) || dtype_is_complex(t))
		v.f = f;
	else
		v.i = a->kind == ATTR_FLOAT ? int_from_double(f) : a->i;
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
static void compile_offset(Program *p, Body *b, const Op *op, int index, int64_t size, int *offset, int *bad)
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
		return interp_error(p->in, op, "the tensor has no value");
	int rank = op->noperand - first - 1;
	if (rank != cell->tensor->rank || rank > MAX_RANK)
		return interp_error(p->in, op, "%d indices into a tensor of rank %d", rank, cell->tensor->rank);
	if (!read_sources(p, op, first + 1, src))
		return false;
	int pred = guarded ? ptr_map_get(&p->registers, op_operand(op, 0)) : -1;
	int other = guarded ? ptr_map_get(&p->registers, op_operand(op, 1)) : -1;
	if (guarded && (pred < 0 || other < 0))
		return interp_error(p->in, op, "an operand is no scalar of this region");
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

static bool compile_to_index(Program *p, Body *b, const Op *op)
{
	const Attr *a = op_attr(op, "extent");
	int src[MAX_SOURCES];
	int64_t extent;
	if (!a || a->kind != ATTR_DIM || !interp_size(p->in, op, a->dim, &extent) || !read_sources(p, op, 0, src))
		return false;
	Body *place = place_of(p, b, 1, src);
	Instr *i = instr_add(p, place, INSTR_TO_INDEX, op);
	i->src[0] = src[0];
	i->extent = extent;
	i->dst = register_new(p, &op->results[0], place->depth);
	return true;
}

// The outermost body in which all sources are known, and that runs only if b does: what fails there would
// have failed in b.
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
		return interp_error(p->in, op, "the interpreter cannot run this in a loop region");
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
	if (!extents || extents->kind != ATTR_DIMS || extents->n > MAX_RANK || op->nresult != 1 || !block ||
	    block->narg != extents->n)
		return interp_error(p->in, op, "the reduction is malformed");
	if (b->depth + extents->n >= MAX_DEPTH)
		return interp_error(p->in, op, "reductions are nested too deep");
	Instr i = {.nextent = extents->n, .pred = -1};
	if (op_operand(op, 0) && (extents->n != 1 || (i.pred = ptr_map_get(&p->registers, op_operand(op, 0))) < 0))
		return interp_error(p->in, op, "the count is no index of this region");
	for (int d = 0; d < extents->n; d++)
		if (!interp_size(p->in, op, extents->dims[d], &i.extents[d]))
			return false;
	open_levels(p, b, block, &i);
	Body *inner = i.levels[i.nlevel - 1];
	if (!body_compile(p, inner, &op->regions[0]))
		return false;
	if (inner->nyield != 1)
		return interp_error(p->in, op, "the reduction is malformed");
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
	case OP_LOOP_CONSTANT:
		return compile_constant(p, op);
	case OP_LOOP_DIM:
		return compile_dim(p, op);
	case OP_LOOP_LOAD:
		return compile_load(p, b, op, false);
	case OP_LOOP_LOAD_OR:
		return compile_load(p, b, op, true);
	case OP_LOOP_TO_INDEX:
		return compile_to_index(p, b, op);
	case OP_LOOP_REDUCE:
		return compile_reduce(p, b, op);
	default:
		return compile_map(p, b, op);
	}
}

// The arguments of the region have their registers already.
static bool body_compile(Program *p, Body *body, const Region *r)
{
	const Block *block = region_entry(r);
	const Op *end = block ? block_terminator(block) : NULL;
	if (!end || end->code != OP_LOOP_YIELD || block->next)
		return interp_error(p->in, r->op, "the region must be one block that ends in loop.yield");
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

// ---- running ------------------------------------------------------------------------------------------

static bool lane_is_active(const Program *p, int l)
{
	return !p->active || p->active[l];
}

// The first lane out of range, for the diagnostic.
static bool load_error(const Program *p, const Instr *i, int n)
{
	for (int l = 0; l < n; l++) {
		for (int d = 0; d < i->nsrc; d++) {
			int64_t at = lanes_of(p, i->src[d])[l].i, size = i->tensor->dims[d];
			if ((at < 0 || at >= size) && lane_is_active(p, l) && (i->pred < 0 || lanes_of(p, i->pred)[l].i))
				return interp_error(p->in, i->op, "index %lld is out of range for axis %d, whose size is %lld",
				                    (long long)at, d, (long long)size);
		}
	}
	return false;
}

static void run_offset(const Program *p, const Instr *i, int n)
{
	const Lane *x = lanes_of(p, i->src[0]);
	Lane *to = lanes_of(p, i->dst), *bad = lanes_of(p, i->to_bad);
	uint64_t size = (uint64_t)i->extent;
	if (i->offset < 0) {
		for (int l = 0; l < n; l++) {
			to[l].i = x[l].i;
			bad[l].i = (uint64_t)x[l].i >= size;
		}
		return;
	}
	const Lane *from = lanes_of(p, i->offset), *bad_from = lanes_of(p, i->bad);
	for (int l = 0; l < n; l++) {
		to[l].i = (int64_t)((uint64_t)from[l].i * size + (uint64_t)x[l].i);
		bad[l].i = bad_from[l].i | ((uint64_t)x[l].i >= size);
	}
}

static bool any_bad(const Program *p, const Instr *i, int n)
{
	int64_t any = 0;
	const Lane *bad = lanes_of(p, i->bad);
	for (int l = 0; l < n && p->active; l++)
		any |= bad[l].i && p->active[l] && (i->pred < 0 || lanes_of(p, i->pred)[l].i);
	if (p->active)
		return any != 0;
	for (int l = 0; l < n && i->pred < 0; l++)
		any |= bad[l].i;
	for (int l = 0; l < n && i->pred >= 0; l++)
		any |= bad[l].i & -(int64_t)(lanes_of(p, i->pred)[l].i != 0);
	return any != 0;
}

static bool run_load(const Program *p, const Instr *i, int n)
{
	int64_t at[STRIP] = {0};
	Lane *out = lanes_of(p, i->dst), loaded[2 * STRIP];
	bool wide = dtype_is_complex(i->to);
	if (i->bad >= 0 && any_bad(p, i, n))
		return load_error(p, i, n);
	if (i->pred < 0) {
		for (int l = 0; l < n && i->offset >= 0; l++)
			at[l] = lane_is_active(p, l) ? lanes_of(p, i->offset)[l].i : 0;
		lanes_gather(i->tensor, n, at, out);
		return true;
	}
	const Lane *pred = lanes_of(p, i->pred), *other = lanes_of(p, i->other);
	if (tensor_numel(i->tensor) == 0) {
		memcpy(out, other, sizeof *out * (size_t)(wide ? COMPLEX_IM + n : n));
		return true;
	}
	for (int l = 0; l < n && i->offset >= 0; l++)
		at[l] = pred[l].i && lane_is_active(p, l) ? lanes_of(p, i->offset)[l].i : 0;
	lanes_gather(i->tensor, n, at, loaded);
	for (int l = 0; l < n; l++)
		out[l] = pred[l].i ? loaded[l] : other[l];
	for (int l = COMPLEX_IM; wide && l < COMPLEX_IM + n; l++)
		out[l] = pred[l - COMPLEX_IM].i ? loaded[l] : other[l];
	return true;
}

static bool run_to_index(const Program *p, const Instr *i, int n)
{
	const Lane *x = lanes_of(p, i->src[0]);
	Lane *out = lanes_of(p, i->dst);
	bool wrap = op_bool(i->op, "wrap", false);
	for (int l = 0; l < n; l++) {
		int64_t v = x[l].i + (wrap && x[l].i < 0 ? i->extent : 0);
		if ((v < 0 || v >= i->extent) && lane_is_active(p, l))
			return interp_error(p->in, i->op, "index %lld from data is out of range, the size is %lld",
			                    (long long)x[l].i, (long long)i->extent);
		out[l].i = v;
	}
	return true;
}

// One lane after the other, those that count: another one divided by zero.
static bool run_map_active(const Program *p, const Instr *i, enum OpCode code, int n)
{
	for (int l = 0; l < n; l++) {
		Lane one[3][8] = {{{0}}}, out[8];
		const Lane *x[3] = {one[0], one[1], one[2]};
		bool by_zero;
		if (!p->active[l])
			continue;
		for (int k = 0; k < i->nsrc; k++)
			one[k][0] = lanes_of(p, i->src[k])[l];
		if (!map_lanes(code, i->from, i->to, 1, out, x, &by_zero))
			return interp_error(p->in, i->op, "integer division by zero");
		lanes_of(p, i->dst)[l] = out[0];
	}
	return true;
}

static bool run_map(const Program *p, const Instr *i, int n)
{
	const Lane *x[3];
	bool by_zero;
	enum OpCode code = i->op->code == OP_LOOP_FROM_INDEX ? OP_PD_CAST : i->op->code;
	for (int k = 0; k < i->nsrc; k++)
		x[k] = lanes_of(p, i->src[k]);
	if (map_lanes(code, i->from, i->to, n, lanes_of(p, i->dst), x, &by_zero))
		return true;
	if (by_zero && p->active)
		return run_map_active(p, i, code, n);
	return interp_error(p->in, i->op, by_zero ? "integer division by zero"
	                                          : "the interpreter cannot run this on these types");
}

typedef enum ReduceKind {
	RED_SUM, RED_PROD, RED_MAX, RED_MIN, RED_ANY, RED_ALL, RED_ARGMAX, RED_ARGMIN, RED_BAD
} ReduceKind;

static ReduceKind reduce_kind(const Op *op)
{
	static const char *const names[] = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"};
	const char *kind = op_str(op, "kind", "");
	int i = 0;
	while (i < RED_BAD && strcmp(names[i], kind))
		i++;
	return (ReduceKind)i;
}

static int64_t whole_limit(DType t, bool largest)
{
	switch (t) {
	case DT_BOOL:
		return largest;
	case DT_U8:
		return largest ? UINT8_MAX : 0;
	case DT_I8:
		return largest ? INT8_MAX : INT8_MIN;
	case DT_I16:
		return largest ? INT16_MAX : INT16_MIN;
	case DT_I32:
		return largest ? INT32_MAX : INT32_MIN;
	default:
		return largest ? INT64_MAX : INT64_MIN;
	}
}

// What a reduction over nothing gives.
static Lane reduce_start(ReduceKind kind, DType t)
{
	bool f = dtype_is_float(t);
	bool up = kind == RED_MIN || kind == RED_ARGMIN, one = kind == RED_PROD || kind == RED_ALL;
	if (kind == RED_MAX || kind == RED_MIN || kind == RED_ARGMAX || kind == RED_ARGMIN)
		return f ? (Lane){.f = up ? INFINITY : -INFINITY} : (Lane){.i = whole_limit(t, up)};
	return f ? (Lane){.f = one} : (Lane){.i = one};
}

static void accumulate_float(ReduceKind kind, int n, Lane *acc, const Lane *v)
{
	for (int l = 0; l < n; l++) {
		switch (kind) {
		case RED_SUM:
			acc[l].f += v[l].f;
			break;
		case RED_PROD:
			acc[l].f *= v[l].f;
			break;
		case RED_MAX: // NaN wins, as in Paddle
			acc[l].f = v[l].f > acc[l].f || isnan(v[l].f) ? v[l].f : acc[l].f;
			break;
		case RED_MIN:
			acc[l].f = v[l].f < acc[l].f || isnan(v[l].f) ? v[l].f : acc[l].f;
			break;
		case RED_ANY:
			acc[l].f = acc[l].f != 0 || v[l].f != 0;
			break;
		default:
			acc[l].f = acc[l].f != 0 && v[l].f != 0;
			break;
		}
	}
}

static void accumulate_whole(ReduceKind kind, int n, Lane *acc, const Lane *v)
{
	for (int l = 0; l < n; l++) {
		switch (kind) {
		case RED_SUM:
			acc[l].i = (int64_t)((uint64_t)acc[l].i + (uint64_t)v[l].i);
			break;
		case RED_PROD:
			acc[l].i = (int64_t)((uint64_t)acc[l].i * (uint64_t)v[l].i);
			break;
		case RED_MAX:
			acc[l].i = v[l].i > acc[l].i ? v[l].i : acc[l].i;
			break;
		case RED_MIN:
			acc[l].i = v[l].i < acc[l].i ? v[l].i : acc[l].i;
			break;
		case RED_ANY:
			acc[l].i = acc[l].i || v[l].i;
			break;
		default:
			acc[l].i = acc[l].i && v[l].i;
			break;
		}
	}
}

// Keeps the best value and the linear position of its first occurrence; at position 0 whatever is there.
static void accumulate_position(ReduceKind kind, bool f, int n, int64_t at, Lane *best, int64_t *where, const Lane *v)
{
	for (int l = 0; l < n; l++) {
		bool better;
		if (f)
			better = kind == RED_ARGMAX ? v[l].f > best[l].f : v[l].f < best[l].f;
		else
			better = kind == RED_ARGMAX ? v[l].i > best[l].i : v[l].i < best[l].i;
		if (at == 0 || better) {
			best[l] = v[l];
			where[l] = at;
		}
	}
}

static bool body_run(Program *p, const Body *b, int n);

// Moves to the next tuple of positions and sets the registers that change. Returns the first extent that
// changed, -1 after the last tuple. `at` counts tuples.
static int next_position(const Program *p, const Instr *i, int n, int64_t at, int64_t *index)
{
	int changed = 0;
	if (at > 0) {
		for (changed = i->nextent - 1; changed >= 0 && ++index[changed] == i->extents[changed]; changed--)
			index[changed] = 0;
	}
	for (int d = changed; d >= 0 && d < i->nextent; d++) {
		Lane *x = lanes_of(p, *i->levels[d]->args);
		for (int l = 0; l < n; l++)
			x[l].i = index[d];
	}
	return changed;
}

// Notes which lanes still run at position `at`; false when none does.
static bool lanes_active(const bool *outer, const Lane *count, int64_t at, int n, bool *active)
{
	bool any = false;
	for (int l = 0; l < n; l++) {
		active[l] = (!outer || outer[l]) && at < count[l].i;
		any |= active[l];
	}
	return any;
}

static bool run_reduce(Program *p, const Instr *i, int n)
{
	ReduceKind kind = reduce_kind(i->op);
	Lane acc[2 * STRIP], kept[2 * STRIP];
	bool active[STRIP];
	const bool *outer = p->active;
	int64_t where[STRIP] = {0}, kept_where[STRIP], index[MAX_RANK] = {0};
	bool f = dtype_is_float(i->from), positions = kind == RED_ARGMAX || kind == RED_ARGMIN, empty = false;
	bool wide = dtype_is_complex(i->from);
	if (kind == RED_BAD || (wide && kind != RED_SUM && kind != RED_PROD))
		return interp_error(p->in, i->op, wide ? "no reduction '%s' of complex numbers" : "unknown reduction '%s'", op_str(i->op, "kind", ""));
	for (int l = 0; l < n; l++)
		acc[l] = reduce_start(kind, dtype_part(i->from));
	for (int l = 0; wide && l < n; l++)
		acc[COMPLEX_IM + l].f = 0;
	for (int d = 0; d < i->nextent; d++)
		empty |= i->extents[d] <= 0;
	const Lane *v = lanes_of(p, i->levels[i->nlevel - 1]->yields[0]);
	for (int64_t at = 0; !empty; at++) {
		int changed = next_position(p, i, n, at, index);
		if (changed < 0 || (i->pred >= 0 && !lanes_active(outer, lanes_of(p, i->pred), at, n, active)))
			break;
		p->active = i->pred >= 0 ? active : outer;
		bool ok = true;
		for (int d = changed; ok && d < i->nlevel; d++)
			ok = body_run(p, i->levels[d], n);
		p->active = outer;
		if (!ok)
			return false;
		if (i->pred >= 0) {
			memcpy(kept, acc, sizeof kept);
			memcpy(kept_where, where, sizeof where);
		}
		if (positions)
			accumulate_position(kind, f, n, at, acc, where, v);
		else if (wide)
			complex_accumulate(kind == RED_PROD, n, acc, v);
		else if (f)
			accumulate_float(kind, n, acc, v);
		else
			accumulate_whole(kind, n, acc, v);
		for (int l = 0; i->pred >= 0 && l < n; l++) {
			if (active[l])
				continue;
			acc[l] = kept[l];
			if (wide)
				acc[COMPLEX_IM + l] = kept[COMPLEX_IM + l];
			where[l] = kept_where[l];
		}
	}
	Lane *out = lanes_of(p, i->dst);
	for (int l = 0; l < n; l++)
		out[l] = positions ? (Lane){.i = where[l]} : acc[l];
	lanes_round(dtype_part(i->to), n, out);
	if (wide)
		memcpy(out + COMPLEX_IM, acc + COMPLEX_IM, sizeof *out * (size_t)n);
	if (wide)
		lanes_round(dtype_part(i->to), n, out + COMPLEX_IM);
	return true;
}

static bool body_run(Program *p, const Body *b, int n)
{
	for (int k = 0; k < b->ninstr; k++) {
		const Instr *i = &b->instrs[k];
		bool ok = true;
		switch (i->kind) {
		case INSTR_MAP:
			ok = run_map(p, i, n);
			break;
		case INSTR_OFFSET:
			run_offset(p, i, n);
			break;
		case INSTR_LOAD:
			ok = run_load(p, i, n);
			break;
		case INSTR_TO_INDEX:
			ok = run_to_index(p, i, n);
			break;
		case INSTR_REDUCE:
			ok = run_reduce(p, i, n);
			break;
		}
		if (!ok)
			return false;
	}
	return true;
}

bool program_run_strip(Program *p, int n)
{
	return body_run(p, p->body, n);
}

Lane *program_argument(Program *p, int i)
{
	return lanes_of(p, p->body->args[i]);
}

const Lane *program_result(const Program *p, int i)
{
	return lanes_of(p, p->body->yields[i]);
}

DType program_result_dtype(const Program *p, int i)
{
	return element_dtype(p->yield_types[i]);
}

void program_set_position(Program *p, int first, int rank, const int64_t *dims, int64_t at, int n)
{
	int64_t index[MAX_RANK];
	for (int d = rank - 1; d >= 0; d--) {
		index[d] = at % dims[d];
		at /= dims[d];
	}
	for (int l = 0; l < n; l++) {
		for (int d = 0; d < rank; d++)
			program_argument(p, first + d)[l].i = index[d];
		for (int d = rank - 1; d >= 0 && ++index[d] == dims[d]; d--)
			index[d] = 0;
	}
}
