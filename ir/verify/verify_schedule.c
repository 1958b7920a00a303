// The rules of what stands in the IR of how threads of CUDA share nests (lower/cuda): that a form
// has what it needs and nothing of another, and that what is inside agrees with it. Called by the
// hooks of loop nests in verify_loop.c.
#include "ir/core/waits.h"
#include "ir/verify/rules.h"

#include <inttypes.h>
#include <string.h>

static bool lanes_are_sound(const Op *op)
{
	const int64_t n = op_int(op, "lanes", 1);
	return n == 1 || n == 2 || n == 4 || n == 8 || n == 16 ||
	       verify_fail(op, "lanes must be 1, 2, 4, 8 or 16, not %" PRId64, n);
}

// Whether something directly in the body of the nest has the attribute.
static bool body_has(const Op *nest, const char *attr)
{
	for (const Op *op = nest->regions[0].first->first; op; op = op->next)
		if (op_attr(op, attr))
			return true;
	return false;
}

static bool form_has(const Op *nest, const char *attr, bool has, bool should)
{
	if (has == should)
		return true;
	return verify_fail(nest, should ? "its form '%s' needs %s" : "its form '%s' has no %s",
	                   op_str(nest, "form", "elements"), attr);
}

static bool index_is_sound(const Op *nest)
{
	const bool run = op_enum(nest, "index") == INDEX_RUN;
	if (run != (op_attr(nest, "index_sizes") != NULL) ||
	    run != (op_attr(nest, "index_most") != NULL))
		return verify_fail(nest,
		                   "'index_sizes' and 'index_most' go with an index that a run chooses");
	return !run ||
	       (op_int(nest, "index_most", 0) > 0 && op_int(nest, "index_most", 0) <= INT32_MAX) ||
	       verify_fail(nest, "'index_most' must be a positive int");
}

bool share_is_sound(const Op *op)
{
	const Attr *parallel = op_attr(op, "parallel"), *along = op_attr(op, "along");
	if (parallel && dim_is_const(parallel->dim) && parallel->dim->value < 2)
		return verify_fail(op, "'parallel' must be 2 or more, not %" PRId64, parallel->dim->value);
	if (parallel && op_attr(op, "schedule"))
		return verify_fail(op, "'parallel' is of kernels of C, a schedule of those of CUDA");
	if (op->code == OP_LOOP_NEST && !parallel != !along)
		return verify_fail(op, "'parallel' and 'along' go together");
	return !along || (along->i >= 0 && along->i < op->results[0].type->rank) ||
	       verify_fail(op, "it has no dim %" PRId64 " to go along", along->i);
}

bool nest_form_is_sound(const Op *nest)
{
	const FormKind form = (FormKind)op_enum(nest, "form");
	const int64_t across = op_int(nest, "across", -1);
	const bool vectors = form == FORM_VECTORS, turned = form == FORM_TURNED,
			   team = form == FORM_TEAM;
	if (!lanes_are_sound(nest) || !index_is_sound(nest) || !share_is_sound(nest) ||
	    !form_has(nest, "lanes", op_int(nest, "lanes", 1) > 1, vectors) ||
	    !form_has(nest, "team", op_enum(nest, "team") != TEAM_NONE, team) ||
	    !form_has(nest, "reduction that is shared", body_has(nest, "shared"), team) ||
	    !form_has(nest, "loop across", across >= 0, turned) ||
	    !form_has(nest, "turned load", body_has(nest, "turned"), turned))
		return false;
	if (op_bool(nest, "runs_on", false) && !vectors)
		return form_has(nest, "vectors that run on", true, false);
	return across < nest->results[0].type->rank - 1 || !turned ||
	       verify_fail(nest, "it has no loop %" PRId64 " but the innermost to go across", across);
}

bool reduce_form_is_sound(const Op *reduce)
{
	const Attr *shared = op_attr(reduce, "shared");
	if (!lanes_are_sound(reduce))
		return false;
	if (!shared && op_int(reduce, "lanes", 1) > 1)
		return verify_fail(reduce, "lanes of a reduction that no team shares");
	return !shared || (shared->i >= 0 && shared->i < op_attr(reduce, "extents")->n) ||
	       verify_fail(reduce, "it has no loop %" PRId64 " to share", shared->i);
}

// What is one access for several lanes stands in a block of as many.
bool load_form_is_sound(const Op *load)
{
	const int64_t lanes = op_int(load, "lanes", 1);
	const Op *around = op_parent(load);
	if (!lanes_are_sound(load))
		return false;
	if (lanes > 1 && (!around || op_int(around, "lanes", 1) != lanes))
		return verify_fail(load, "%" PRId64 " lanes, but what is around it has others", lanes);
	return true;
}

// Rows lie in warps, or stand across memory, where threads behind each other share them; what a
// thread holds of them it moves `lanes` at once.
bool rows_form_is_sound(const Op *kernel)
{
	const int64_t threads = op_int(kernel, "threads", 32), lanes = op_int(kernel, "lanes", 1),
				  held = op_int(kernel, "held", 0);
	const int rank = kernel->results[0].type->rank;
	const int64_t axis = op_int(kernel, "axis", -1);
	const bool across = axis >= 0 && axis < rank - 1;
	if (!lanes_are_sound(kernel))
		return false;
	if (across && op_attr(kernel, "threads") ? threads != 1 && threads != 8
	                                         : threads % 32 || threads < 32 || threads > 512)
		return verify_fail(kernel, "%" PRId64 " threads cannot share a row", threads);
	return (held >= 0 && held <= 64 && held % lanes == 0) ||
	       verify_fail(kernel, "a thread cannot hold %" PRId64 " elements in lanes of %" PRId64,
	                   held, lanes);
}

// What one block is enough for is right in one block, and is not known to be too much for it.
bool step_is_sound(const Op *op)
{
	const Attr *work = op_attr(op, "block_work"), *much = op_attr(op, "much");
	if (work && work->kind != ATTR_DIM && work->kind != ATTR_INT)
		return verify_fail(op, "'block_work' must be a size");
	if (work && !(op->info->traits & TRAIT_ONE_BLOCK))
		return verify_fail(op, "'block_work', but it is no step that one block can do");
	return !much || op->nsucc || verify_fail(op, "'much' is for branches");
}

bool loop_form_is_sound(const Op *branch)
{
	const InBlockKind in_block = (InBlockKind)op_enum(branch, "in_block");
	const Attr *little = op_attr(branch, "little"), *unrolled = op_attr(branch, "unrolled");
	if (op_enum(branch, "role") != ROLE_BACK && (op_attr(branch, "in_block") || little || unrolled))
		return verify_fail(branch, "it has the form of a loop, but is not the way back of one");
	if ((in_block == IN_BLOCK_LITTLE) != (little && little->n > 0))
		return verify_fail(branch,
		                   "'little' goes with a loop that is in one block where that is so");
	return !unrolled || (op_bool(branch, "counted", false) && unrolled->i > 0) ||
	       verify_fail(branch, "rounds of a loop that does not count them are written out");
}

// ---- calls of libraries -------------------------------------------------------------------------

// Whether an attribute is the number of a load in the epilogue, or absent.
static bool is_load_number(const Op *op, const char *attr)
{
	const Attr *number = op_attr(op, attr);
	int64_t n = 0;
	for (const Op *in = op->regions[0].first->first; in; in = in->next)
		n += in->code == OP_LOOP_LOAD;
	return !number || (number->i >= 0 && number->i < n) ||
	       verify_fail(op, "the epilogue has no load %" PRId64 " to be '%s'", number->i, attr);
}

bool call_is_sound(const Op *op)
{
	if (!op_info_attr(op->info, "epilogue")) // no library computes it
		return true;
	const bool does = op_attr(op, "epilogue") != NULL;
	if (does && strncmp(op_str(op, "schedule", ""), "library", strlen("library")) != 0)
		return verify_fail(op, "'epilogue' is of calls of a library");
	if (!does && (op_attr(op, "alpha") || op_attr(op, "bias") || op_attr(op, "addend")))
		return verify_fail(op, "'alpha', 'bias' and 'addend' go with 'epilogue'");
	return is_load_number(op, "bias") && is_load_number(op, "addend");
}

// ---- nodes of graphs ----------------------------------------------------------------------------

static bool numbers_are_sound(const Op *op, const char *attr, int64_t least)
{
	const Attr *list = op_attr(op, attr);
	if (list && list->kind != ATTR_INTS)
		return verify_fail(op, "'%s' must be a list of integers", attr);
	for (int i = 0; list && i < list->n; i++)
		if (list->ints[i] < least || list->ints[i] > INT32_MAX)
			return verify_fail(op, "'%s' has %" PRId64 ", which is the number of no node", attr,
			                   list->ints[i]);
	return true;
}

static bool has_number(const Op *op, const char *attr, int number)
{
	const Attr *list = op_attr(op, attr);
	for (int i = 0; list && i < list->n; i++)
		if (list->ints[i] == number)
			return true;
	return false;
}

// A line of `after` or `meet`; nodes wait for earlier ones, and rounds for what is in them.
static bool line_is_sound(const Op *op, const char *attr, const char *text, bool earlier)
{
	WaitsLine line;
	if (!waits_line_read(op->ctx->arena, text, &line))
		return verify_fail(op, "'%s' has \"%s\", which is not like \"5: 3 4\"", attr, text);
	if (!has_number(op, "node", line.number) && !has_number(op, "apart", line.number))
		return verify_fail(op, "'%s' is of node %d, which has no step of it", attr, line.number);
	for (int i = 0; i < line.n; i++)
		if ((line.list[i] < line.number) != earlier || line.list[i] == line.number)
			return verify_fail(op, "'%s' has \"%s\": %d comes %s %d", attr, text, line.list[i],
			                   earlier ? "no earlier than" : "no later than", line.number);
	return true;
}

static bool lines_are_sound(const Op *op, const char *attr, bool earlier)
{
	const Attr *lines = op_attr(op, attr);
	if (lines && lines->kind != ATTR_STRS)
		return verify_fail(op, "'%s' must be a list of strings", attr);
	for (int i = 0; lines && i < lines->n; i++)
		if (!line_is_sound(op, attr, lines->strs[i], earlier))
			return false;
	return true;
}

bool waits_are_sound(const Op *op)
{
	const Attr *node = op_attr(op, "node"), *apart = op_attr(op, "apart");
	if (!numbers_are_sound(op, "node", 1) || !numbers_are_sound(op, "apart", 0) ||
	    !numbers_are_sound(op, "counts", 1))
		return false;
	if (apart && (!node || node->n != apart->n))
		return verify_fail(op, "'apart' has a number for each of 'node'");
	return lines_are_sound(op, "after", true) && lines_are_sound(op, "meet", false);
}
