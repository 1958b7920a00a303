// Runs compiled regions of scalar operations (interp_scalar.c), strip by strip. Called through
// interp/hooks.h by interp_nest.c and interp_kernel.c.
#include "ir/interp/interp_program.h"

#include <math.h>
#include <string.h>

// ---- lanes and tensors --------------------------------------------------------------------------

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
	case DT_C128: complex_gather(t, n, at, out); break;
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
	case DT_C128: complex_store(t, at, n, v); break;
	default:
		for (int l = 0; l < n; l++)
			tensor_set_i(t, at + l, v[l].i);
		break;
	}
}
// ---- running ------------------------------------------------------------------------------------

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
			if ((at < 0 || at >= size) && lane_is_active(p, l) &&
			    (i->pred < 0 || lanes_of(p, i->pred)[l].i))
				return op_error(i->op, "index %lld is out of range for axis %d, whose size is %lld",
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

// Another value where the predicate does not hold.
static bool run_load_or(const Program *p, const Instr *i, int n)
{
	int64_t at[STRIP] = {0};
	Lane *out = lanes_of(p, i->dst), loaded[2 * STRIP];
	const bool wide = dtype_is_complex(i->to);
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

static bool run_load(const Program *p, const Instr *i, int n)
{
	int64_t at[STRIP] = {0};
	if (i->bad >= 0 && any_bad(p, i, n))
		return load_error(p, i, n);
	if (i->pred >= 0)
		return run_load_or(p, i, n);
	for (int l = 0; l < n && i->offset >= 0; l++)
		at[l] = lane_is_active(p, l) ? lanes_of(p, i->offset)[l].i : 0;
	lanes_gather(i->tensor, n, at, lanes_of(p, i->dst));
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
			return op_error(i->op, "index %lld from data is out of range, the size is %lld",
			                (long long)x[l].i, (long long)i->extent);
		out[l].i = v;
	}
	return true;
}

static bool run_near_index(const Program *p, const Instr *i, int n)
{
	const Lane *x = lanes_of(p, i->src[0]);
	Lane *out = lanes_of(p, i->dst);
	const double last = (double)(i->extent - 1);
	for (int l = 0; l < n; l++)
		out[l].i = x[l].f > 0 ? (int64_t)(x[l].f < last ? x[l].f : last) : 0;
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
			return op_error(i->op, "integer division by zero");
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
	return op_error(i->op, by_zero ? "integer division by zero"
	                               : "the interpreter cannot run this on these types");
}

static int64_t whole_limit(DType t, bool largest)
{
	switch (t) {
	case DT_BOOL: return largest;
	case DT_U8: return largest ? UINT8_MAX : 0;
	case DT_I8: return largest ? INT8_MAX : INT8_MIN;
	case DT_I16: return largest ? INT16_MAX : INT16_MIN;
	case DT_I32: return largest ? INT32_MAX : INT32_MIN;
	default: return largest ? INT64_MAX : INT64_MIN;
	}
}

// What a reduction over nothing gives.
static Lane reduce_start(ReduceKind kind, DType t)
{
	bool f = dtype_is_float(t);
	bool up = kind == REDUCE_MIN || kind == REDUCE_LOWEST || kind == REDUCE_ARGMIN,
		 down = kind == REDUCE_MAX || kind == REDUCE_HIGHEST || kind == REDUCE_ARGMAX,
		 one = kind == REDUCE_PROD || kind == REDUCE_ALL;
	if (up || down)
		return f ? (Lane){.f = up ? INFINITY : -INFINITY} : (Lane){.i = whole_limit(t, up)};
	return f ? (Lane){.f = one} : (Lane){.i = one};
}

// NaN stays, as in Paddle 3.
static double farther(double a, double b, bool up)
{
	return (up ? b > a : b < a) || isnan(b) ? b : a;
}

static void accumulate_float(ReduceKind kind, int n, Lane *acc, const Lane *v)
{
	for (int l = 0; l < n; l++) {
		switch (kind) {
		case REDUCE_SUM: acc[l].f += v[l].f; break;
		case REDUCE_PROD: acc[l].f *= v[l].f; break;
		case REDUCE_MAX: // a fold as in Paddle's CPU kernels: what comes before NaN is forgotten
			acc[l].f = acc[l].f > v[l].f ? acc[l].f : v[l].f;
			break;
		case REDUCE_MIN: acc[l].f = acc[l].f < v[l].f ? acc[l].f : v[l].f; break;
		case REDUCE_HIGHEST:
		case REDUCE_LOWEST: acc[l].f = farther(acc[l].f, v[l].f, kind == REDUCE_HIGHEST); break;
		case REDUCE_ANY: acc[l].f = acc[l].f != 0 || v[l].f != 0; break;
		default: acc[l].f = acc[l].f != 0 && v[l].f != 0; break;
		}
	}
}

static void accumulate_whole(ReduceKind kind, int n, Lane *acc, const Lane *v)
{
	for (int l = 0; l < n; l++) {
		switch (kind) {
		case REDUCE_SUM: acc[l].i = (int64_t)((uint64_t)acc[l].i + (uint64_t)v[l].i); break;
		case REDUCE_PROD: acc[l].i = (int64_t)((uint64_t)acc[l].i * (uint64_t)v[l].i); break;
		case REDUCE_MAX:
		case REDUCE_HIGHEST: acc[l].i = v[l].i > acc[l].i ? v[l].i : acc[l].i; break;
		case REDUCE_MIN:
		case REDUCE_LOWEST: acc[l].i = v[l].i < acc[l].i ? v[l].i : acc[l].i; break;
		case REDUCE_ANY: acc[l].i = acc[l].i || v[l].i; break;
		default: acc[l].i = acc[l].i && v[l].i; break;
		}
	}
}

// Keeps the best value, at first what reduce_start gives, and the linear position of its first
// occurrence; 0 when nothing is better.
static void accumulate_position(ReduceKind kind, bool f, int n, int64_t at, Lane *best,
                                int64_t *where, const Lane *v)
{
	for (int l = 0; l < n; l++) {
		bool better;
		if (f)
			better = kind == REDUCE_ARGMAX ? v[l].f > best[l].f : v[l].f < best[l].f;
		else
			better = kind == REDUCE_ARGMAX ? v[l].i > best[l].i : v[l].i < best[l].i;
		if (better) {
			best[l] = v[l];
			where[l] = at;
		}
	}
}

static bool body_run(Program *p, const Body *b, int n);

// Moves to the next tuple of positions and sets the registers that change. Returns the first extent
// that changed, -1 after the last tuple. `at` counts tuples.
static int next_position(const Program *p, const Instr *i, int n, int64_t at, int64_t *index)
{
	int changed = 0;
	if (at > 0) {
		for (changed = i->nextent - 1; changed >= 0 && ++index[changed] == i->extents[changed];
		     changed--)
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

// What a reduction has so far, in each lane.
typedef struct Totals {
	ReduceKind kind;
	bool whole, wide, positions; // of integers; of complex numbers; the result is where, not what
	Lane acc[2 * STRIP];
	int64_t where[STRIP];
} Totals;

static bool totals_init(Program *p, const Instr *i, int n, Totals *t)
{
	const ReduceKind kind = (ReduceKind)op_enum(i->op, "kind");
	*t = (Totals){.kind = kind};
	t->wide = dtype_is_complex(i->from);
	t->whole = !t->wide && !dtype_is_float(i->from);
	t->positions = reduce_is_position(kind);
	if (kind == REDUCE_COUNT || (t->wide && kind != REDUCE_SUM && kind != REDUCE_PROD))
		return op_error(i->op,
		                t->wide ? "no reduction '%s' of complex numbers" : "unknown reduction '%s'",
		                op_str(i->op, "kind", ""));
	for (int l = 0; l < n; l++)
		t->acc[l] = reduce_start(kind, dtype_part(i->from));
	for (int l = 0; t->wide && l < n; l++)
		t->acc[COMPLEX_IM + l].f = 0;
	return true;
}

static void totals_add(Totals *t, int n, int64_t at, const Lane *v)
{
	if (t->positions)
		accumulate_position(t->kind, !t->whole, n, at, t->acc, t->where, v);
	else if (t->wide)
		complex_accumulate(t->kind == REDUCE_PROD, n, t->acc, v);
	else if (t->whole)
		accumulate_whole(t->kind, n, t->acc, v);
	else
		accumulate_float(t->kind, n, t->acc, v);
}

// Lanes that did not take part have what they had before.
static void totals_keep(Totals *t, int n, const bool *active, const Totals *before)
{
	for (int l = 0; l < n; l++) {
		if (active[l])
			continue;
		t->acc[l] = before->acc[l];
		if (t->wide)
			t->acc[COMPLEX_IM + l] = before->acc[COMPLEX_IM + l];
		t->where[l] = before->where[l];
	}
}

static void totals_store(const Totals *t, int n, DType to, Lane *out)
{
	for (int l = 0; l < n; l++)
		out[l] = t->positions ? (Lane){.i = t->where[l]} : t->acc[l];
	lanes_round(dtype_part(to), n, out);
	if (!t->wide)
		return;
	memcpy(out + COMPLEX_IM, t->acc + COMPLEX_IM, sizeof *out * (size_t)n);
	lanes_round(dtype_part(to), n, out + COMPLEX_IM);
}

// The body at one position, for the lanes that take part.
static bool reduce_step(Program *p, const Instr *i, int n, int changed, const bool *active)
{
	const bool *outer = p->active;
	bool ok = true;
	p->active = active;
	for (int d = changed; ok && d < i->nlevel; d++)
		ok = body_run(p, i->levels[d], n);
	p->active = outer;
	return ok;
}

static bool run_reduce(Program *p, const Instr *i, int n)
{
	Totals t, before;
	bool active[STRIP], empty = false;
	int64_t index[MAX_RANK] = {0};
	const bool guarded = i->pred >= 0;
	if (!totals_init(p, i, n, &t))
		return false;
	for (int d = 0; d < i->nextent; d++)
		empty |= i->extents[d] <= 0;
	const Lane *v = lanes_of(p, i->levels[i->nlevel - 1]->yields[0]);
	for (int64_t at = 0; !empty; at++) {
		int changed = next_position(p, i, n, at, index);
		if (changed < 0 ||
		    (guarded && !lanes_active(p->active, lanes_of(p, i->pred), at, n, active)))
			break;
		if (!reduce_step(p, i, n, changed, guarded ? active : p->active))
			return false;
		if (guarded)
			before = t;
		totals_add(&t, n, at, v);
		if (guarded)
			totals_keep(&t, n, active, &before);
	}
	totals_store(&t, n, i->to, lanes_of(p, i->dst));
	return true;
}

static bool body_run(Program *p, const Body *b, int n)
{
	for (int k = 0; k < b->ninstr; k++) {
		const Instr *i = &b->instrs[k];
		bool ok = true;
		switch (i->kind) {
		case INSTR_MAP: ok = run_map(p, i, n); break;
		case INSTR_OFFSET: run_offset(p, i, n); break;
		case INSTR_LOAD: ok = run_load(p, i, n); break;
		case INSTR_TO_INDEX: ok = run_to_index(p, i, n); break;
		case INSTR_NEAR_INDEX: ok = run_near_index(p, i, n); break;
		case INSTR_REDUCE: ok = run_reduce(p, i, n); break;
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
