// How often loops of CUDA whose rounds are known on entry (lower/cuda/count_loops.c) are written
// out; how such a loop is printed, cuda/graph.c says. Called by it.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "lower/analysis/analysis.h"

// A round as a conditional node costs about as much as two or three launches in a graph, and a node
// of a graph some hundred bytes on the device and a few microseconds when the graph is made: up to
// so many nodes in all, loops are written out.
enum { MAX_UNROLLED_NODES = 512 };

// At most how many nodes a round is, those of loops inside as often as they are written out.
static int64_t round_nodes(Codegen *cg, const Block *head)
{
	const Block *last = loop_back(head)->block;
	int64_t n = 0;
	for (const Block *b = head; b && b->prev != last; b = b->next) {
		if (b != head && loop_back(b)) {
			const int64_t rounds = cuda_loop_unrolled(cg, b);
			n += 1 + (rounds ? rounds : 1) * round_nodes(cg, b);
			b = loop_back(b)->block;
			continue;
		}
		for (const Op *op = b->first; op; op = op->next)
			n += op->info->traits & TRAIT_TERMINATOR ? op->nsucc > 1
			                                         : !op_is_silent(op) && !op_counts(op);
	}
	return n;
}

int64_t cuda_loop_unrolled(Codegen *cg, const Block *head)
{
	const Dim *rounds = loop_counted(head) ? loop_rounds(head) : NULL;
	if (!rounds || !dim_is_const(rounds) || rounds->value > MAX_UNROLLED_NODES ||
	    cuda_loop_fits_block(cg, head))
		return 0;
	return rounds->value * round_nodes(cg, head) <= MAX_UNROLLED_NODES ? rounds->value : 0;
}
