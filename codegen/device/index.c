// Positions in CUDA kernels: how wide their arithmetic must be, and which power of two divides the
// index of a load, so that several elements may be one access. Called by device/nest.c,
// device/wide.c and device/reduce.c.
#include "codegen/device/nest.h"

// MAX_POSITION leaves room for the step of a grid behind the last position.
enum { MAX_POSITION = 1 << 30, MAX_FACTOR = 1 << 16, MAX_DEPTH = 24, MAX_POWER = 16 };

// ---- width --------------------------------------------------------------------------------------

// An index is at most `times` the sum of the kernel's sizes, and `more`; as a size of its own, it
// is at most `most`.
typedef struct Reach {
	int64_t times, more;
	const Dim *most;
} Reach;

typedef struct Width {
	Context *ctx;
	const Dim *sizes; // their sum; each counts once
	const Dim *seen[64];
	int nseen;
	int64_t times, more; // the most that an index is
	bool wide;
} Width;

static void size_add(Width *w, const Dim *d)
{
	if (dim_is_const(d) && d->value < 0)
		return;
	for (int i = 0; i < w->nseen; i++)
		if (w->seen[i] == d)
			return;
	if (w->nseen == (int)COUNT_OF(w->seen)) {
		w->wide = true;
		return;
	}
	w->seen[w->nseen++] = d;
	w->sizes = dim_add(w->ctx, w->sizes, d);
}

// What one or the other may reach.
static Reach reach_max(const Width *w, Reach a, Reach b)
{
	return (Reach){a.times > b.times ? a.times : b.times, a.more > b.more ? a.more : b.more,
	               a.most == b.most ? a.most : dim_add(w->ctx, a.most, b.most)};
}

static Reach reach_const(const Width *w, int64_t v)
{
	return (Reach){0, v, dim_const(w->ctx, v)};
}

static Reach too_far(Width *w)
{
	w->wide = true;
	return reach_const(w, 0);
}

static Reach size_reach(Width *w, const Dim *d)
{
	int64_t lo, hi;
	dim_range_empty(d, &lo, &hi);
	if (lo >= 0 && hi < MAX_POSITION)
		return reach_const(w, hi);
	size_add(w, d);
	return (Reach){1, 0, d};
}

// What a loop goes to.
static const Dim *extent_of(const Value *arg)
{
	const Op *around = value_op(arg);
	return around->code == OP_LOOP_REDUCE ? op_attr(around, "extents")->dims[arg->index]
	                                      : around->results[0].type->dims[arg->index];
}

static Reach reach_of(Width *w, const Value *v, int depth);

static Reach operation_reach(Width *w, const Op *op, int depth)
{
	const Reach a = reach_of(w, op_operand(op, 0), depth),
				b = reach_of(w, op_operand(op, 1), depth);
	switch (op->code) {
	case OP_PD_ADD:
	case OP_PD_SUBTRACT:
		return (Reach){a.times + b.times, a.more + b.more, dim_add(w->ctx, a.most, b.most)};
	case OP_PD_MULTIPLY: {
		const Dim *most = dim_mul(w->ctx, a.most, b.most);
		if (a.times && b.times)
			return size_reach(w, most); // counts as a size, too
		return a.times ? (Reach){a.times * b.more, a.more * b.more, most}
		               : (Reach){b.times * a.more, b.more * a.more, most};
	}
	case OP_PD_FLOOR_DIVIDE:
	case OP_PD_REMAINDER: return a;
	case OP_PD_MAXIMUM:
	case OP_PD_MINIMUM: return reach_max(w, a, b);
	case OP_PD_WHERE: return reach_max(w, b, reach_of(w, op_operand(op, 2), depth));
	default: return too_far(w);
	}
}

static Reach reach_of(Width *w, const Value *v, int depth)
{
	if (!v || v->type->kind != TY_INDEX || w->wide)
		return reach_const(w, 0);
	const Op *op = v->def;
	if (!op)
		return size_reach(w, extent_of(v));
	if (depth == MAX_DEPTH)
		return too_far(w);
	Reach r;
	if (op->code == OP_LOOP_CONSTANT) {
		const Attr *a = op_attr(op, "value");
		const int64_t c = a->kind == ATTR_FLOAT ? int_from_double(a->f) : a->i;
		r = c > -MAX_POSITION && c < MAX_POSITION ? reach_const(w, c < 0 ? -c : c) : too_far(w);
	} else if (op->code == OP_LOOP_DIM) {
		r = size_reach(w, op_attr(op, "dim")->dim);
	} else if (op->code == OP_LOOP_TO_INDEX) {
		r = size_reach(w, op_attr(op, "extent")->dim);
	} else {
		r = operation_reach(w, op, depth + 1);
	}
	if (r.times > MAX_FACTOR || r.more > MAX_POSITION)
		return too_far(w);
	return r;
}

static void most_meet(Width *w, Reach r)
{
	w->times = r.times > w->times ? r.times : w->times;
	w->more = r.more > w->more ? r.more : w->more;
}

static void block_reach(Width *w, const Block *b)
{
	for (const Op *op = b->first; op; op = op->next) {
		for (int i = 0; i < op->noperand; i++)
			if (op_operand(op, i) && type_is_tensor(op_operand(op, i)->type))
				size_add(w, type_numel(w->ctx, op_operand(op, i)->type));
		for (int i = 0; i < op->nresult; i++)
			most_meet(w, reach_of(w, &op->results[i], 0));
		if (op->code == OP_LOOP_REDUCE) {
			const Attr *extents = op_attr(op, "extents");
			const Dim *all = dim_const(w->ctx, 1);
			for (int i = 0; i < extents->n; i++)
				all = dim_mul(w->ctx, all, extents->dims[i]);
			size_add(w, all);
			// Its neutral elements are those of 64 bits.
			w->wide |= op_operand(block_terminator(op->regions[0].first), 0)->type->kind ==
			           TY_INDEX;
		}
		for (int i = 0; i < op->nregion; i++)
			block_reach(w, op->regions[i].first);
	}
}

// Whether the host knows the size, or a bound of it, before a run.
static bool host_knows(const Codegen *cg, const Dim *d)
{
	if (d->kind == DIM_CONST)
		return true;
	if (d->kind != DIM_SYM)
		return host_knows(cg, d->a) && host_knows(cg, d->b);
	const Symbol *s = symbol_find(cg, d);
	return s && (!s->dim->bounded || s->max || s->room);
}

void index_width_choose(const Nest *n)
{
	KernelFunc *k = n->k;
	Width w = {.ctx = k->ctx, .sizes = dim_const(k->ctx, 0), .times = 1};
	for (int i = 0; i < k->op->nresult; i++)
		size_add(&w, type_numel(k->ctx, k->op->results[i].type));
	block_reach(&w, n->body);
	const int64_t most = (MAX_POSITION - w.more) / w.times;
	int64_t lo, hi;
	dim_range_empty(w.sizes, &lo, &hi);
	if (w.wide || lo > most)
		return;
	if (hi <= most) {
		k->index = "int";
	} else if ((n->nloop > 1 || nest_has_regions(n)) &&
	           host_knows(k->cg, w.sizes)) { // else there is hardly any arithmetic
		k->index = "I";
		k->sizes = w.sizes;
		k->sizes_most = most;
	}
}

// ---- divisors -----------------------------------------------------------------------------------

static int power_min(int a, int b)
{
	return a < b ? a : b;
}

static int power_product(int a, int b)
{
	return a * b < MAX_POWER ? a * b : MAX_POWER;
}

static int number_power(int64_t v)
{
	int p = MAX_POWER;
	while (v % p)
		p /= 2;
	return p;
}

int size_power(Context *c, const Dim *d)
{
	int p = MAX_POWER;
	while (p > 1 && !dim_is(dim_mod(c, d, dim_const(c, p)), 0))
		p /= 2;
	return p;
}

static int power_at(const Scalars *s, const Value *v, const Value *arg, int width, int depth)
{
	if (v == arg)
		return width;
	if (pointer_map_get(&s->merged, v))
		return MAX_POWER; // it is 0, the next one counts for both
	const Op *op = v->def;
	if (!op || depth == MAX_DEPTH)
		return 1;
	if (op->code == OP_LOOP_CONSTANT) {
		const Attr *a = op_attr(op, "value");
		return number_power(a->kind == ATTR_FLOAT ? int_from_double(a->f) : a->i);
	}
	if (op->code == OP_LOOP_DIM)
		return size_power(s->k->ctx, op_attr(op, "dim")->dim);
	if (op->code != OP_PD_ADD && op->code != OP_PD_SUBTRACT && op->code != OP_PD_MULTIPLY)
		return 1;
	const int a = power_at(s, op_operand(op, 0), arg, width, depth + 1);
	const int b = power_at(s, op_operand(op, 1), arg, width, depth + 1);
	return op->code == OP_PD_MULTIPLY ? power_product(a, b) : power_min(a, b);
}

int index_power(const Scalars *s, const Value *index, const Value *arg, int width)
{
	return power_at(s, index, arg, width, 0);
}

int load_power(const Scalars *s, const Op *load, const Value *arg, int width)
{
	const int first = load_indices_at(load);
	const Type *t = op_operand(load, first - 1)->type;
	int power = MAX_POWER;
	const Dim *behind = dim_const(s->k->ctx, 1);
	for (int d = t->rank; d-- > 0;) {
		const int p = index_power(s, op_operand(load, first + d), arg, width);
		power = power_min(power, power_product(p, size_power(s->k->ctx, behind)));
		behind = dim_mul(s->k->ctx, behind, t->dims[d]);
	}
	return power;
}
