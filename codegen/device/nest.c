// Prints loop.nest for CUDA, in the form that lower/cuda/forms.c chose. All stride over the grid,
// so that any grid is right:
//   vectors   a thread computes a few neighbouring elements (device/wide.c)
//   turned    a block moves a square of elements through shared memory (device/turn.c)
//   team      a warp, a block, or columns of a block reduce one element each (device/reduce.c)
//   elements  a thread computes one element
// Called by cuda.c.
#include "codegen/device/nest.h"

#include <string.h>

// ---- positions ----------------------------------------------------------------------------------

static bool region_reads(const Nest *n, const Op *op)
{
	while (op && op->block != n->body)
		op = op_parent(op);
	return op && nest_needed(n, op);
}

// Whether a position is read by anything that is printed.
static bool position_is_used(const Nest *n, const Value *arg)
{
	for (const Use *u = arg->uses; u; u = u->next)
		if (u->user == block_terminator(n->body) || region_reads(n, u->user))
			return true;
	return false;
}

// The outermost loop whose position is read; nloop: none is.
static int outermost_used(const Nest *n)
{
	int i = 0;
	while (i < n->nloop && !position_is_used(n, n->loops[i].arg))
		i++;
	return i;
}

void positions_print(Nest *n, const char *element, bool step, int depth)
{
	KernelFunc *k = n->k;
	const char *rest = element, *constant = step ? "" : "const ";
	const int outermost = outermost_used(n);
	const Dim *skipped = dim_const(k->ctx, 1);
	if (n->nloop == 1 && !step)
		pointer_map_set(&n->s.names, n->loops[0].arg, element);
	for (int i = n->nloop - 1; i >= outermost && (n->nloop > 1 || step); i--) {
		const Loop *loop = &n->loops[i];
		if (!step && !position_is_used(n, loop->arg)) {
			skipped = dim_mul(k->ctx, skipped, loop->extent);
			continue;
		}
		if (!dim_is(skipped, 1)) {
			const char *next = kernel_local(k, "rest");
			text_line(n->out, depth, "const %s %s = %s / %s;", k->index, next, rest,
			          kernel_dim(k, skipped));
			rest = next;
		}
		if (!i && !step) {
			pointer_map_set(&n->s.names, loop->arg, rest);
			break;
		}
		const char *name = kernel_local(k, "i"), *extent = kernel_dim(k, loop->extent);
		if (i)
			text_line(n->out, depth, "%s%s %s = %s %% %s;", constant, k->index, name, rest, extent);
		else
			text_line(n->out, depth, "%s%s %s = %s;", constant, k->index, name, rest);
		skipped = loop->extent;
		pointer_map_set(&n->s.names, loop->arg, name);
	}
}

void positions_advance(Nest *n, int depth)
{
	const int outermost = outermost_used(n);
	int opened = 0;
	for (int i = n->nloop - 1; i >= outermost; i--) {
		const char *name = scalars_name(&n->s, n->loops[i].arg);
		if (i == outermost && !i) {
			text_line(n->out, depth + opened, "%s++;", name);
			break;
		}
		const bool last = i == outermost;
		text_line(n->out, depth + opened, "if (++%s == %s)%s", name,
		          kernel_dim(n->k, n->loops[i].extent), last ? "" : " {");
		text_line(n->out, depth + opened + 1, "%s = 0;", name);
		opened += !last;
	}
	while (opened-- > 0)
		text_line(n->out, depth + opened, "}");
}

// ---- one element after the other ----------------------------------------------------------------

// The head of a loop over elements, one for each thread, warp or block.
static void elements_open(Nest *n, TeamKind team)
{
	const char *t = n->k->index;
	if (team == TEAM_COLUMNS) {
		text_line(
			n->out, 1,
			"for (%s first = (%s)blockIdx.x * 32; first < total; first += (%s)gridDim.x * 32) {", t,
			t, t);
		text_line(n->out, 2,
		          "const %s column = first + (%s)(threadIdx.x %% 32), e = column < total ? column "
		          ": total - 1;",
		          t, t);
	} else if (team == TEAM_WARP) {
		text_line(n->out, 1,
		          "for (%s e = (%s)blockIdx.x * %d + (%s)(threadIdx.x / 32); e < total; e += "
		          "(%s)gridDim.x * %d) {",
		          t, t, TEAM_WARPS, t, t, TEAM_WARPS);
	} else if (team == TEAM_BLOCK) {
		text_line(n->out, 1, "for (%s e = (%s)blockIdx.x; e < total; e += (%s)gridDim.x) {", t, t,
		          t);
	} else {
		text_line(n->out, 1,
		          "for (%s e = (%s)blockIdx.x * (%s)blockDim.x + (%s)threadIdx.x; e < total;", t, t,
		          t, t);
		text_line(n->out, 1, "     e += (%s)gridDim.x * (%s)blockDim.x) {", t, t);
	}
}

// Who of a team stores; who reads the element that is about to be written has done so.
static void stores_open(Nest *n, TeamKind team)
{
	if (team == TEAM_NONE)
		return;
	text_line(n->out, 2, team == TEAM_WARP ? "__syncwarp();" : "__syncthreads();");
	text_line(n->out, 2, "if (%s) {",
	          team == TEAM_WARP    ? "threadIdx.x % 32 == 0"
	          : team == TEAM_BLOCK ? "threadIdx.x == 0"
	                               : "threadIdx.x < 32 && column < total");
}

static bool elements_print(Nest *n)
{
	KernelFunc *k = n->k;
	const TeamKind team = (TeamKind)op_enum(n->op, "team");
	const Op *end = block_terminator(n->body);
	k->block_threads = team ? TEAM_WARPS * 32 : 0;
	k->per_block = team == TEAM_WARP ? TEAM_WARPS : team == TEAM_COLUMNS ? 32 : 0;
	elements_open(n, team);
	positions_print(n, "e", false, 2);
	for (const Op *op = n->body->first; op != end; op = op->next)
		if (nest_needed(n, op) && !scalar_op_print(&n->s, op, true, 2, n->out))
			return false;
	stores_open(n, team);
	for (int i = 0; i < end->noperand; i++) {
		const char *value = scalars_name(&n->s, op_operand(end, i));
		if (!value)
			return false;
		text_line(n->out, team ? 3 : 2, "%s;",
		          scalar_store(k, n->op->results[i].type->dtype, kernel_result(k, i), "e", value));
	}
	if (team)
		text_line(n->out, 2, "}");
	text_line(n->out, 1, "}");
	return true;
}

// The C type of positions.
static void index_type_set(KernelFunc *k)
{
	const IndexKind index = (IndexKind)op_enum(k->op, "index");
	if (index == INDEX_INT)
		k->index = "int";
	if (index != INDEX_RUN)
		return;
	k->index = "I";
	k->sizes = op_attr(k->op, "index_sizes")->dim;
	k->sizes_most = op_int(k->op, "index_most", 0);
}

static bool form_print(Nest *n)
{
	KernelFunc *k = n->k;
	const FormKind form = (FormKind)op_enum(n->op, "form");
	if (form == FORM_TURNED)
		return nest_turned_print(n);
	const Dim *total = type_numel(k->ctx, k->op->results[0].type);
	text_line(n->out, 1, "const %s total = %s;", k->index,
	          expression_unwrap(k->arena, kernel_dim(k, total)));
	return form == FORM_VECTORS ? nest_wide_print(n, total) : elements_print(n);
}

bool cuda_nest_emit(KernelFunc *k)
{
	Nest n;
	Text body;
	text_init(&body, k->arena);
	index_type_set(k);
	nest_init(&n, k, &body);
	if (!form_print(&n))
		return false;
	text_printf(&k->text, "%s" KERNEL_HEAD "\n%s}\n", k->sizes ? "template <typename I>\n" : "",
	            body.text);
	return true;
}
