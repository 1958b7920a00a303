// Who touched an element of shared memory or bytes of the device, when, and whether that is known
// to have happened before what the current thread does now. The same for both: block.cc keeps the
// moments up to date and has the cells of shared memory, shadow.cc those of memory of the device.
//
// Nothing depends on the order in which threads happen to run: what came before is what a launch, a
// barrier of the block or
// __syncwarp puts there. A cell keeps the accesses that nothing orders among each other, as a set:
// a later one that comes after all of them takes their place, for whoever comes after it comes
// after them, too. Sets are kept as widely as the next step that can order them: lanes of a warp
// (__syncwarp), several warps (a barrier), several blocks (the end of the launch).
#ifndef CUDAEMU_ORDER_H
#define CUDAEMU_ORDER_H

#include <stdint.h>

namespace cudaemu
{

enum { WARP = 32 };

// What lanes of a warp know to be over: all that lanes did before `all`; what lane j did before
// seen[i][j], in lane i.
struct WarpOrder {
	uint32_t all;
	uint32_t seen[WARP][WARP];
};

// Moments number what happens one after the other. This is the current one, and what thread it
// belongs to.
struct Moment {
	uint32_t now, launch, block; // when its launch began; the last barrier of its block
	uint32_t who; // its warp: that of the block in the launch + 1, times 32, and that in the block
	uint32_t lane;
	const WarpOrder *warp;
};

extern Moment moment; // block.cc
void moment_next();
const char *accesses_describe(const struct Accesses *a);

// Of one or several threads, the last of them at `when`; zeros: of none. Before the launch `who`
// does not count.
struct Accesses {
	uint32_t who, lanes, when;
};

enum : uint32_t {
	SEVERAL_WARPS = 1u << 31, // of a block
	SEVERAL_BLOCKS = 1u << 30,
	WHO = SEVERAL_BLOCKS - 1
};

enum AccessKind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC };

// `changes` are one write, or atomic operations, which do not race among each other.
struct Cell {
	Accesses changes, reads;
	bool atomic, written;
};

// Of one warp.
static inline bool lanes_before(const Accesses *a)
{
	uint32_t others = a->lanes & ~(1u << moment.lane);
	if (!others || a->when < moment.warp->all)
		return true;
	for (; others; others &= others - 1)
		if (a->when >= moment.warp->seen[moment.lane][__builtin_ctz(others)])
			return false;
	return true;
}

static inline bool happened_before(const Accesses *a)
{
	if (a->when < moment.launch) // races.cc compares nodes
		return true;
	if ((a->who & SEVERAL_BLOCKS) || (a->who & WHO) / WARP != moment.who / WARP)
		return false;
	if (a->when < moment.block)
		return true;
	return a->who == moment.who && lanes_before(a);
}

static inline void accesses_add(Accesses *a)
{
	uint32_t who = moment.who, lanes = 1u << moment.lane;
	if (!happened_before(a)) {
		const uint32_t other = a->who & WHO;
		who |= a->who & ~WHO;
		if (other / WARP != moment.who / WARP)
			who |= SEVERAL_BLOCKS;
		else if (other != moment.who)
			who |= SEVERAL_WARPS;
		else
			lanes |= a->lanes;
	}
	*a = {who, lanes, moment.now};
}

// Notes an access. What of the cell it races with; NULL: nothing.
static inline const Accesses *cell_access(Cell *c, AccessKind kind)
{
	if (!(kind == ACCESS_ATOMIC && c->atomic) && !happened_before(&c->changes))
		return &c->changes;
	if (kind == ACCESS_READ) {
		accesses_add(&c->reads);
		return nullptr;
	}
	if (!happened_before(&c->reads))
		return &c->reads;
	if (kind == ACCESS_WRITE)
		c->changes = {moment.who, 1u << moment.lane, moment.now};
	else
		accesses_add(&c->changes);
	c->atomic = kind == ACCESS_ATOMIC;
	c->written = true;
	return nullptr;
}

} // namespace cudaemu

#endif
