// For CUDA: which operations one block of threads does in less time than a launch takes, so that
// they can be calls in a kernel with others; and the form of each loop: a kernel of one block that
// goes round, rounds written behind each other, or a conditional node. `block_work` of an operation
// says how much there is to do in that block, and is absent where one is not enough; `much` of a
// branch what is known to be too much for one where it stands. The way back of a loop says
// `in_block` (always, or where the sizes of a run make all of `little` little), and `unrolled`, how
// many rounds are written out where it is not in a block.
#include "ir/base/map.h"
#include "lower/analysis/analysis.h"
#include "lower/analysis/work.h"
#include "lower/cuda/cuda.h"
#include "lower/target/schedule.h"

// MAX_TOGETHER: results that all threads reduce together, one after the other.
// A round as a conditional node costs about as much as two or three launches in a graph, and a node
// of a graph some hundred bytes on the device and a few microseconds when the graph is made: up to
// MAX_UNROLLED_NODES in all, loops are written out.
enum { MAX_TOGETHER = 16, MAX_UNROLLED_NODES = 512 };

typedef struct Steps {
	Context *ctx;
	PointerMap work; // Op -> how much a block has to do
} Steps;

// ---- operations ---------------------------------------------------------------------------------

// Arrays that a block shares are there for each step, so only steps that surely are little have
// any.
static bool shares_arrays(const Op *op)
{
	return op->code == OP_KERNEL_SORT ||
	       (op->code == OP_LOOP_NEST && op_enum(op, "form") == FORM_TURNED);
}

// Whether what is printed for the operation is right in one block.
static bool is_right_in_block(const Op *op)
{
	if (op->code == OP_KERNEL_CONV && op_attr(op, "schedule")) // else threads sum all channels
		return false;
	return op->info->traits & TRAIT_ONE_BLOCK;
}

// How much a block has to do; more than is little where it is no step for one. Where each result
// keeps all threads busy, there may be few: these count for more.
static const Dim *block_work_find(Context *c, const Op *op)
{
	const Dim *much = dim_const(c, CUDA_LITTLE_WORK + 1), *work = step_work(op, NULL);
	if (cuda_op_is_library(op) || !work_may_be_little(c, work, NULL) || !is_right_in_block(op) ||
	    (!work_is_little(work) && shares_arrays(op)))
		return much;
	if (op->code != OP_LOOP_NEST ||
	    (op_enum(op, "form") != FORM_TURNED && op_enum(op, "team") != TEAM_BLOCK))
		return work;
	const Dim *together = dim_mul(
		c, dims_at_most(c, op->results[0].type->rank, op->results[0].type->dims),
		dim_const(c, CUDA_LITTLE_WORK / MAX_TOGETHER));
	Context view = context_of_known_sizes(c);
	return dim_max(&view, work, together);
}

static const Dim *block_work(Steps *s, const Op *op)
{
	const Dim *work = pointer_map_get(&s->work, op);
	if (!work)
		pointer_map_set(&s->work, op, work = block_work_find(s->ctx, op));
	return work;
}

static bool is_step(const Op *op)
{
	return !(op->info->traits & TRAIT_TERMINATOR) && !op_is_silent(op);
}

// ---- loops in one block -------------------------------------------------------------------------

static bool work_fits(Steps *s, const Dim *work, const Dim *large, Works *works)
{
	if (!work_may_be_little(s->ctx, work, large))
		return false;
	works_add(s->ctx, works, work);
	return true;
}

// Whether what a branch moves is little, or may be.
static bool moves_fit(Steps *s, const Op *branch, const Dim *large, Works *works)
{
	for (int k = 0; k < branch->nsucc; k++)
		for (int i = 0; i < (int)branch->succs[k].count; i++) {
			const Type *t = op_operand(branch, (int)branch->succs[k].first + i)->type;
			if (t->kind != TY_TENSOR ||
			    !work_fits(s, dim_at_most(s->ctx, type_numel(s->ctx, t)), large, works))
				return false;
		}
	return true;
}

// At most how many arguments a step has: tensors, sizes in their types, the state.
static int params_most(const Op *op)
{
	int n = 3;
	for (int i = 0; i < op->nresult; i++)
		n += 1 + op->results[i].type->rank;
	for (int i = 0; i < op->noperand; i++)
		n += op_operand(op, i) != NULL;
	for (int i = 0; i < op->nregion; i++)
		for (const Op *in = op->regions[i].first->first; in; in = in->next)
			n += in->code == OP_LOOP_LOAD || in->code == OP_LOOP_LOAD_OR || in->nregion
			         ? params_most(in)
			         : 0;
	return n;
}

// Whether one block may be enough for the loop: where all works are little.
static bool loop_fits(Steps *s, const Op *back, const Dim *large, Works *works)
{
	const Block *head = back->succs[0].block;
	int params = 0;
	for (const Block *b = head; b && b->prev != back->block; b = b->next)
		for (const Op *op = b->first; op; op = op->next) {
			if (op->info->traits & TRAIT_TERMINATOR
			        ? !moves_fit(s, op, large, works)
			        : !op_is_silent(op) && !work_fits(s, block_work(s, op), large, works))
				return false;
			params += params_most(op);
		}
	return params <= CUDA_MAX_LOOP_PARAMS;
}

// ---- rounds behind each other -------------------------------------------------------------------

static int64_t unrolled_rounds(Steps *s, const Op *back);

// At most how many nodes a round is, those of loops inside as often as they are written out.
static int64_t round_nodes(Steps *s, const Op *back)
{
	const Block *head = back->succs[0].block;
	int64_t n = 0;
	for (const Block *b = head; b && b->prev != back->block; b = b->next) {
		const Op *inner = b != head ? loop_back(b) : NULL;
		if (inner) {
			const int64_t rounds = unrolled_rounds(s, inner);
			n += 1 + (rounds ? rounds : 1) * round_nodes(s, inner);
			b = inner->block;
			continue;
		}
		for (const Op *op = b->first; op; op = op->next)
			n += op->info->traits & TRAIT_TERMINATOR ? op->nsucc > 1
			                                         : is_step(op) && !op_counts(op);
	}
	return n;
}

// How often a loop that counts is written into the graph, one round behind the other; 0: it is a
// conditional node, or one block does it.
static int64_t unrolled_rounds(Steps *s, const Op *back)
{
	const Block *head = back->succs[0].block;
	const Dim *rounds = loop_counted(head) ? loop_rounds(head) : NULL;
	Works works = {0};
	if (!rounds || !dim_is_const(rounds) || rounds->value > MAX_UNROLLED_NODES ||
	    (loop_fits(s, back, NULL, &works) && !works.n))
		return 0;
	return rounds->value * round_nodes(s, back) <= MAX_UNROLLED_NODES ? rounds->value : 0;
}

// ---- the pass -----------------------------------------------------------------------------------

// Sets the form of a loop. Returns what is known to be large inside of it where one block is not
// enough.
static const Dim *loop_choose(Steps *s, Op *back, const Dim *large)
{
	Context *c = s->ctx;
	Works works = {0};
	const bool fits = loop_fits(s, back, large, &works);
	const int64_t unrolled = unrolled_rounds(s, back);
	op_set_attr(back, "in_block", attr_str(c, !fits ? "never" : works.n ? "little" : "always"));
	op_set_attr(back, "little", fits && works.n ? attr_dims(c, works.n, works.items) : NULL);
	op_set_attr(back, "unrolled", unrolled ? attr_int(c, unrolled) : NULL);
	return fits && works.n == 1 ? works.items[0] : large;
}

static void ops_choose(Steps *s, Block *b, const Dim *large)
{
	for (Op *op = b->first; op; op = op->next) {
		const Dim *work = is_step(op) ? block_work(s, op) : NULL;
		const bool fits = work && work_may_be_little(s->ctx, work, large);
		op_set_attr(op, "block_work", fits ? attr_dim(s->ctx, work) : NULL);
		op_set_attr(op, "much", op->nsucc && large ? attr_dim(s->ctx, large) : NULL);
	}
}

// From block b on to the way back of the loop that `head` begins; NULL: to the end.
static void blocks_choose(Steps *s, Block *b, const Block *head, const Dim *large)
{
	const Op *last = head ? loop_back(head) : NULL;
	for (; b; b = b->next) {
		const Op *back = b != head ? loop_back(b) : NULL;
		if (back) {
			blocks_choose(s, b, b, loop_choose(s, back->block->last, large));
			b = back->block;
		} else {
			ops_choose(s, b, large);
		}
		if (last && b == last->block)
			return;
	}
}

// Needs: blocks with places, and the forms of nests; a target.
// Keeps: everything but attributes.
// Breaks: nothing.
bool pass_cuda_steps(PassContext *p)
{
	Steps s = {.ctx = p->ctx};
	if (!p->target || !p->target->graph)
		return true;
	pointer_map_init(&s.work, p->ctx->arena);
	blocks_choose(&s, p->module->regions[0].first, NULL, NULL);
	return true;
}
