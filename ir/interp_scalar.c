// Regions of scalar operations: compiled once per run of a nest or kernel into instructions over registers,
// and run on strips of STRIP positions at a time. All control flow in a region (reductions) is the same for
// every position, so one instruction can work on a whole strip.
//
// A map whose operands do not change inside a reduction is computed outside of it. Sums and products of
// floats are accumulated in double and rounded once at the end.
#include "interp.h"

#include <math.h>
#include <string.h>

enum { MAX_SOURCES = MAX_RANK + 4, MAX_REDUCE_DEPTH = 16 };

typedef struct Body Body;

typedef enum InstrKind { INSTR_MAP, INSTR_LOAD, INSTR_TO_INDEX, INSTR_REDUCE } InstrKind;

typedef struct Instr {
	InstrKind kind;
	const Op *op;
	DType from, to;        // element types of the operands and the result
	int dst, nsrc;
	int src[MAX_SOURCES];
	const Tensor *tensor;  // load
	int pred, other;       // load_or; -1: a plain load
	int64_t extent;        // to_index
	Body *body;            // reduce
	int nextent;
	int64_t extents[MAX_RANK];
} Instr;

// The instructions of one region: the nest's, or a reduction's.
struct Body {
	Body *outer;
	int depth;
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
	const Type **yield_types;
	int nconst, cconst;    // registers that never change
	struct Preset { int reg; Lane value; } *presets;
};

static bool body_compile(Program *p, Body *body, const Region *r);

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
	default:
		for (int l = 0; l < n; l++)
			out[l].i = tensor_get_i(t, at[l]);
		break;
	}
}

void lanes_load(const Tensor *t, int64_t at, int n, Lane *out)
{
	int64_t where[STRIP] = {0};
	for (int done = 0; done < n; done += STRIP) {
		int m = n - done < STRIP ? n - done : STRIP;
		for (int l = 0; l < m; l++)
			where[l] = at + done + l;
		lanes_gather(t, m, where, out + done);
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
	default:
		for (int l = 0; l < n; l++)
			tensor_set_i(t, at + l, v[l].i);
		break;
	}
}

// ---- registers ------------------------------------------------------------------------------------

static int register_new(Program *p, const Value *v, int depth)
{
	if (p->nreg == p->creg) {
		p->creg = p->creg ? 2 * p->creg : 32;
		int *depths = NEW_ARRAY(p->arena, (size_t)p->creg, int);
		if (p->nreg)
			memcpy(depths, p->depths, sizeof *depths * (size_t)p->nreg);
		p->depths = depths;
	}
	p->depths[p->nreg] = depth;
	if (v)
		ptr_map_set(&p->registers, v, p->nreg);
	return p->nreg++;
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
	*i = (Instr){.kind = kind, .op = op, .pred = -1, .other = -1};
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
	if (!a || dtype_is_complex(t))
		return interp_error(p->in, op, "a scalar constant of this type");
	double f = a->kind == ATTR_FLOAT ? a->f : (double)a->i;
	if (dtype_is_float(t))
		v.f = f;
	else
		v.i = a->kind == ATTR_FLOAT ? (int64_t)f : a->i;
	lanes_round(t, 1, &v);
	register_preset(p, register_new(p, &op->results[0], 0), v);
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
	if (dtype_is_complex(cell->tensor->dtype))
		return interp_error(p->in, op, "complex elements in a loop nest");
	if (!read_sources(p, op, first + 1, src))
		return false;
	int pred = guarded ? ptr_map_get(&p->registers, op_operand(op, 0)) : -1;
	int other = guarded ? ptr_map_get(&p->registers, op_operand(op, 1)) : -1;
	if (guarded && (pred < 0 || other < 0))
		return interp_error(p->in, op, "an operand is no scalar of this region");
	Instr *i = instr_add(p, b, INSTR_LOAD, op);
	memcpy(i->src, src, sizeof i->src);
	i->nsrc = rank;
	i->tensor = cell->tensor;
	i->pred = pred;
	i->other = other;
	i->dst = register_new(p, &op->results[0], b->depth);
	return true;
}

static bool compile_to_index(Program *p, Body *b, const Op *op)
{
	const Attr *a = op_attr(op, "extent");
	int src[MAX_SOURCES];
	int64_t extent;
	if (!a || a->kind != ATTR_DIM || !interp_size(p->in, op, a->dim, &extent) || !read_sources(p, op, 0, src))
		return false;
	Instr *i = instr_add(p, b, INSTR_TO_INDEX, op);
	i->src[0] = src[0];
	i->extent = extent;
	i->dst = register_new(p, &op->results[0], b->depth);
	return true;
}

// The outermost body in which all sources are known.
static Body *place_of(const Program *p, Body *b, int nsrc, const int *src)
{
	int depth = 0;
	for (int i = 0; i < nsrc; i++)
		depth = p->depths[src[i]] > depth ? p->depths[src[i]] : depth;
	while (b->depth > depth && b->outer)
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
	// A division by zero that the reduction would never reach must not happen: divisions stay.
	bool divides = op->code == OP_PD_DIVIDE || op->code == OP_PD_FLOOR_DIVIDE || op->code == OP_PD_REMAINDER;
	Body *place = divides ? b : place_of(p, b, op->noperand, src);
	Instr *i = instr_add(p, place, INSTR_MAP, op);
	i->from = element_dtype(op_operand(op, op->code == OP_PD_WHERE ? 1 : 0)->type);
	i->nsrc = op->noperand;
	memcpy(i->src, src, sizeof i->src);
	i->dst = register_new(p, &op->results[0], place->depth);
	return true;
}

static bool compile_reduce(Program *p, Body *b, const Op *op)
{
	const Attr *extents = op_attr(op, "extents");
	if (!extents || extents->kind != ATTR_DIMS || extents->n > MAX_RANK || op->nregion != 1 || op->nresult != 1)
		return interp_error(p->in, op, "the reduction is malformed");
	if (b->depth == MAX_REDUCE_DEPTH)
		return interp_error(p->in, op, "reductions are nested too deep");
	Body *inner = NEW(p->arena, Body);
	Instr i = {.nextent = extents->n, .body = inner};
	for (int d = 0; d < extents->n; d++)
		if (!interp_size(p->in, op, extents->dims[d], &i.extents[d]))
			return false;
	inner->outer = b;
	inner->depth = b->depth + 1;
	if (!body_compile(p, inner, &op->regions[0]))
		return false;
	if (inner->narg != extents->n || inner->nyield != 1)
		return interp_error(p->in, op, "the reduction is malformed");
	Instr *at = instr_add(p, b, INSTR_REDUCE, op);
	at->nextent = i.nextent;
	memcpy(at->extents, i.extents, sizeof i.extents);
	at->body = inner;
	const Value *yielded = op_operand(block_terminator(region_entry(&op->regions[0])), 0);
	at->from = element_dtype(yielded->type);
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

static bool body_compile(Program *p, Body *body, const Region *r)
{
	const Block *block = region_entry(r);
	const Op *end = block ? block_terminator(block) : NULL;
	if (!end || end->code != OP_LOOP_YIELD || block->next)
		return interp_error(p->in, r->op, "the region must be one block that ends in loop.yield");
	body->narg = block->narg;
	body->args = NEW_ARRAY(p->arena, (size_t)block->narg + 1, int);
	for (int i = 0; i < block->narg; i++)
		body->args[i] = register_new(p, block->args[i], body->depth);
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
	if (!body_compile(p, p->body, r))
		return NULL;
	const Op *end = block_terminator(region_entry(r));
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

// Linear positions of the elements to load; -1 in lanes whose predicate does not hold.
static bool load_positions(const Program *p, const Instr *i, int n, int64_t *at)
{
	const Lane *pred = i->pred >= 0 ? lanes_of(p, i->pred) : NULL;
	memset(at, 0, sizeof *at * (size_t)n);
	for (int d = 0; d < i->nsrc; d++) {
		const Lane *x = lanes_of(p, i->src[d]);
		int64_t size = i->tensor->dims[d];
		for (int l = 0; l < n; l++) {
			bool inside = (uint64_t)x[l].i < (uint64_t)size;
			at[l] = at[l] * size + (inside ? x[l].i : 0);
			if (!inside && (!pred || pred[l].i))
				return interp_error(p->in, i->op, "index %lld is out of range for axis %d, whose size is %lld",
				                    (long long)x[l].i, d, (long long)size);
		}
	}
	for (int l = 0; pred && l < n; l++)
		at[l] = pred[l].i ? at[l] : -1;
	return true;
}

static bool run_load(const Program *p, const Instr *i, int n)
{
	int64_t at[STRIP];
	Lane *out = lanes_of(p, i->dst);
	if (!load_positions(p, i, n, at))
		return false;
	if (i->pred < 0) {
		lanes_gather(i->tensor, n, at, out);
		return true;
	}
	const Lane *other = lanes_of(p, i->other);
	int64_t where[STRIP] = {0};
	Lane loaded[STRIP];
	int m = 0;
	for (int l = 0; l < n; l++)
		if (at[l] >= 0)
			where[m++] = at[l];
	lanes_gather(i->tensor, m, where, loaded);
	m = 0;
	for (int l = 0; l < n; l++)
		out[l] = at[l] >= 0 ? loaded[m++] : other[l];
	return true;
}

static bool run_to_index(const Program *p, const Instr *i, int n)
{
	const Lane *x = lanes_of(p, i->src[0]);
	Lane *out = lanes_of(p, i->dst);
	bool wrap = op_bool(i->op, "wrap", false);
	for (int l = 0; l < n; l++) {
		int64_t v = x[l].i + (wrap && x[l].i < 0 ? i->extent : 0);
		if (v < 0 || v >= i->extent)
			return interp_error(p->in, i->op, "index %lld from data is out of range, the size is %lld",
			                    (long long)x[l].i, (long long)i->extent);
		out[l].i = v;
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
	return interp_error(p->in, i->op, by_zero ? "integer division by zero"
	                                          : "the interpreter cannot run this on these types");
}

typedef enum ReduceKind { RED_SUM, RED_PROD, RED_MAX, RED_MIN, RED_ANY, RED_ALL, RED_ARGMAX, RED_ARGMIN, RED_BAD } ReduceKind;

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

static bool body_run(const Program *p, const Body *b, int n);

// Sets the position registers to the next tuple; false after the last. `at` counts tuples.
static bool next_position(const Program *p, const Instr *i, int n, int64_t at, int64_t *index)
{
	int changed = 0;
	if (at > 0) {
		for (changed = i->nextent - 1; changed >= 0 && ++index[changed] == i->extents[changed]; changed--)
			index[changed] = 0;
		if (changed < 0)
			return false;
	}
	for (int d = changed; d < i->nextent; d++)
		for (int l = 0; l < n; l++)
			lanes_of(p, i->body->args[d])[l].i = index[d];
	return true;
}

static bool run_reduce(const Program *p, const Instr *i, int n)
{
	ReduceKind kind = reduce_kind(i->op);
	Lane acc[STRIP];
	int64_t where[STRIP] = {0}, index[MAX_RANK] = {0};
	bool f = dtype_is_float(i->from), positions = kind == RED_ARGMAX || kind == RED_ARGMIN, empty = false;
	if (kind == RED_BAD)
		return interp_error(p->in, i->op, "unknown reduction '%s'", op_str(i->op, "kind", ""));
	for (int l = 0; l < n; l++)
		acc[l] = reduce_start(kind, i->from);
	for (int d = 0; d < i->nextent; d++)
		empty |= i->extents[d] <= 0;
	const Lane *v = lanes_of(p, i->body->yields[0]);
	for (int64_t at = 0; !empty && next_position(p, i, n, at, index); at++) {
		if (!body_run(p, i->body, n))
			return false;
		if (positions)
			accumulate_position(kind, f, n, at, acc, where, v);
		else if (f)
			accumulate_float(kind, n, acc, v);
		else
			accumulate_whole(kind, n, acc, v);
	}
	Lane *out = lanes_of(p, i->dst);
	for (int l = 0; l < n; l++)
		out[l] = positions ? (Lane){.i = where[l]} : acc[l];
	lanes_round(i->to, n, out);
	return true;
}

static bool body_run(const Program *p, const Body *b, int n)
{
	for (int k = 0; k < b->ninstr; k++) {
		const Instr *i = &b->instrs[k];
		bool ok = i->kind == INSTR_MAP        ? run_map(p, i, n)
		          : i->kind == INSTR_LOAD     ? run_load(p, i, n)
		          : i->kind == INSTR_TO_INDEX ? run_to_index(p, i, n)
		                                      : run_reduce(p, i, n);
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
