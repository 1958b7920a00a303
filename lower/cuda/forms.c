// For CUDA: the form of each nest, which codegen/device prints as it is said here:
//   vectors   a thread computes a few neighbouring elements
//   turned    a block moves a square of elements through shared memory
//   team      a warp, a block, or columns of a block reduce one element each
//   elements  a thread computes one element
// `lanes` says how many a thread computes, or how many terms of a reduction; loads with it are one
// access for all of them. How wide positions are, index_width.c says; teams, teams.c.
#include "lower/cuda/cuda.h"
#include "lower/cuda/forms.h"

// ---- vectors ------------------------------------------------------------------------------------

enum { ACCESS_BYTES = 16, MIXED_LANES = 4 };

typedef struct Sizes {
	int least, most; // bytes of an element
} Sizes;

static void size_meet(Sizes *z, DType t)
{
	const int size = (int)dtype_size(t);
	z->least = !z->least || size < z->least ? size : z->least;
	z->most = size > z->most ? size : z->most;
}

int lanes_suited(const Block *body, const Value *arg, int nresult, const Value *results)
{
	Sizes z = {0, 0};
	for (int i = 0; i < nresult; i++)
		size_meet(&z, results[i].type->dtype);
	for (const Op *op = body->first; op; op = op->next)
		if (load_indices_at(op) && load_stride(op, arg) == 1)
			size_meet(&z, load_tensor(op)->dtype);
	if (!z.most)
		return 1;
	const int lanes = ACCESS_BYTES / z.most;
	return z.least == z.most || lanes > MIXED_LANES ? lanes : z.least < 8 ? MIXED_LANES : lanes;
}

void loads_set_lanes(const Lanes *l)
{
	for (Op *op = l->body->first; op; op = op->next)
		if (lanes_load_at_once(l, op))
			op_set_attr(op, "lanes", attr_int(l->ctx, l->width));
}

static bool vectors_choose(NestForm *f)
{
	const Value *inner = f->nloop ? f->loops[f->nloop - 1].arg : NULL;
	const int width = inner ? lanes_suited(f->body, inner, f->op->nresult, f->op->results) : 1;
	if (width == 1 || (dim_is_const(f->total) && f->total->value < width) || f->has_regions)
		return false;
	Lanes l = {.ctx = f->ctx, .body = f->body, .merged = &f->merged, .width = width};
	// Else a vector goes from one row into the next.
	if (f->nloop == 1 || size_power(f->ctx, f->loops[f->nloop - 1].extent) >= width)
		l.arg = inner;
	else
		op_set_attr(f->op, "runs_on", attr_bool(f->ctx, true));
	lanes_find(&l, f->ctx->arena);
	loads_set_lanes(&l);
	op_set_attr(f->op, "lanes", attr_int(f->ctx, width));
	return true;
}

// ---- squares ------------------------------------------------------------------------------------

// Sides shorter than MIN_SIDE are not worth it.
enum { MIN_SIDE = 16, MAX_TURNED = 2 };

static bool is_long(const Dim *extent)
{
	return !dim_is_const(extent) || extent->value >= MIN_SIDE;
}

// The loop other than the innermost along which a load moves to the next element; -1: none.
static int loop_along(const NestForm *f, const Op *load)
{
	if (load->code != OP_LOOP_LOAD || load_stride(load, f->loops[f->nloop - 1].arg) != 2)
		return -1;
	for (int i = 0; i < f->nloop - 1; i++)
		if (load_stride(load, f->loops[i].arg) == 1)
			return i;
	return -1;
}

// Where the elements of an operand that lie side by side belong to elements of the result that do
// not.
static bool turned_choose(NestForm *f)
{
	int across = -1, n = 0;
	Op *turned[MAX_TURNED];
	if (f->nloop < 2 || f->has_regions || !is_long(f->loops[f->nloop - 1].extent))
		return false;
	for (Op *op = f->body->first; op; op = op->next) {
		if (!pointer_map_get(&f->needed, op))
			continue;
		if (op->code == OP_LOOP_TO_INDEX)
			return false;
		const int loop = loop_along(f, op);
		if (loop < 0 || (across >= 0 && loop != across) || n == MAX_TURNED ||
		    !is_long(f->loops[loop].extent))
			continue;
		across = loop;
		turned[n++] = op;
	}
	for (int i = 0; i < n; i++)
		op_set_attr(turned[i], "turned", attr_bool(f->ctx, true));
	if (n)
		op_set_attr(f->op, "across", attr_int(f->ctx, across));
	return n > 0;
}

// ---- scans --------------------------------------------------------------------------------------

// MIN_SCAN: elements for which a block is worth it; MANY_ROWS fill a GPU with a thread for each,
// whose accesses lie side by side where the axis is not the last.
enum { MIN_SCAN = 32, MANY_ROWS = 1 << 14 };

static bool scan_wants_blocks(Context *c, const Op *scan)
{
	const Type *t = op_operand(scan, 0)->type;
	const int axis = (int)op_int(scan, "axis", 0);
	const Dim *rows = dim_const(c, 1), *inner = rows;
	for (int d = 0; d < t->rank; d++) {
		rows = d == axis ? rows : dim_mul(c, rows, t->dims[d]);
		inner = d <= axis ? inner : dim_mul(c, inner, t->dims[d]);
	}
	if (dtype_is_complex(t->dtype) ||
	    (dim_is_const(t->dims[axis]) && t->dims[axis]->value < MIN_SCAN))
		return false;
	return dim_is(inner, 1) || (dim_is_const(rows) && rows->value < MANY_ROWS);
}

// ---- the pass -----------------------------------------------------------------------------------

// What an earlier choice left, in IR that was read, does not count.
static void form_clear(Op *op)
{
	static const char *const names[] = {"form",  "lanes",       "runs_on",    "across", "team",
	                                    "index", "index_sizes", "index_most", "shared", "turned"};
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (op_attr(op, names[i]))
			op_set_attr(op, names[i], NULL);
	for (int i = 0; i < op->nregion; i++)
		for (Op *in = op->regions[i].first->first; in; in = in->next)
			form_clear(in);
}

static void nest_form_init(NestForm *f, const Op *module, Op *nest)
{
	Context *c = nest->ctx;
	const Type *t = nest->results[0].type;
	*f = (NestForm){.ctx = c, .module = module, .op = nest, .body = nest->regions[0].first};
	f->total = type_numel(c, t);
	pointer_map_init(&f->merged, c->arena);
	pointer_map_init(&f->needed, c->arena);
	f->nloop = nest_loops_long(f->loops, nest_loops(c, f->body, t->dims, &f->merged, f->loops));
	nest_needs(f->body, &f->needed);
	for (const Op *op = f->body->first; op; op = op->next)
		f->has_regions |= op->nregion && pointer_map_get(&f->needed, op);
}

static void nest_choose(const Op *module, Op *nest)
{
	NestForm f;
	nest_form_init(&f, module, nest);
	index_width_choose(&f);
	const char *form = turned_choose(&f)    ? "turned"
	                   : vectors_choose(&f) ? "vectors"
	                   : team_choose(&f)    ? "team"
	                                        : "elements";
	op_set_attr(nest, "form", attr_str(f.ctx, form));
}

// Needs: blocks with nests; a target.
// Keeps: everything but attributes.
// Breaks: nothing.
bool pass_cuda_forms(PassContext *p)
{
	for (Block *b = p->module->regions[0].first; b; b = b->next)
		for (Op *op = b->first; op; op = op->next) {
			const bool simt = p->target && p->target->simt;
			if (op->code == OP_KERNEL_SCAN)
				op_set_attr(op, "by_blocks",
				            simt && scan_wants_blocks(p->ctx, op) ? attr_bool(p->ctx, true) : NULL);
			if (op->info->traits & TRAIT_ROWS)
				rows_choose(op, simt);
			kernel_choose(op, simt);
			if (op->code != OP_LOOP_NEST)
				continue;
			form_clear(op);
			if (simt)
				nest_choose(p->module, op);
		}
	return true;
}
