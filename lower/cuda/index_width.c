// How wide the positions of a nest are on CUDA: int where no size, and nothing that is computed
// from positions, can be too large; where only a run tells, the launch chooses between two
// instances. Called by forms.c.
#include "lower/analysis/analysis.h"
#include "lower/cuda/forms.h"

// MAX_POSITION leaves room for the step of a grid behind the last position.
enum { MAX_POSITION = 1 << 30, MAX_FACTOR = 1 << 16, MAX_DEPTH = 24 };

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
	int64_t c;
	if (index_constant(v, &c)) {
		r = c > -MAX_POSITION && c < MAX_POSITION ? reach_const(w, c < 0 ? -c : c) : too_far(w);
	} else if (op->code == OP_LOOP_DIM) {
		r = size_reach(w, op_attr(op, "dim")->dim);
	} else if (number_extent(op)) {
		r = size_reach(w, number_extent(op));
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
			size_add(w, dims_product(w->ctx, extents->n, extents->dims));
			// Its neutral elements are those of 64 bits.
			w->wide |= op_operand(block_terminator(op->regions[0].first), 0)->type->kind ==
			           TY_INDEX;
		}
		for (int i = 0; i < op->nregion; i++)
			block_reach(w, op->regions[i].first);
	}
}

// Whether the host knows the size, or a bound of it, before a run.
static bool host_knows(const NestForm *f, const Dim *d)
{
	if (d->kind == DIM_CONST)
		return true;
	if (d->kind != DIM_SYM)
		return host_knows(f, d->a) && host_knows(f, d->b);
	return !d->bounded || dim_may_be_empty(f->ctx, d) || dim_at_most(f->ctx, d) != d ||
	       memory_mentions(f->module, d);
}

void index_width_choose(const NestForm *f)
{
	Op *op = f->op;
	Width w = {.ctx = f->ctx, .sizes = dim_const(f->ctx, 0), .times = 1};
	for (int i = 0; i < op->nresult; i++)
		size_add(&w, type_numel(f->ctx, op->results[i].type));
	block_reach(&w, f->body);
	const int64_t most = (MAX_POSITION - w.more) / w.times;
	int64_t lo, hi;
	dim_range_empty(w.sizes, &lo, &hi);
	if (w.wide || lo > most)
		return;
	if (hi <= most) {
		op_set_attr(op, "index", attr_str(f->ctx, "int"));
	} else if ((f->nloop > 1 || f->has_regions) && host_knows(f, w.sizes)) {
		op_set_attr(op, "index", attr_str(f->ctx, "run")); // else there is hardly any arithmetic
		op_set_attr(op, "index_sizes", attr_dim(f->ctx, w.sizes));
		op_set_attr(op, "index_most", attr_int(f->ctx, most));
	}
}
