// Finds nodes of a graph that touch the same bytes of the device, one of them writing, though no
// edge orders them. For programs that were compiled with calls for each access (-fsanitize=thread)
// and run with CUDAEMU_RACES. Called by queue.cc and memory.cc, and by shadow.cc for each access.
//
// Each run of a node is an event; memory remembers who wrote it last and who read it since. Atomic
// operations are not seen: they may come in any order. What lies in different launches is ordered,
// and so are the rounds of a loop.
#include "cudaemu.h"

#include <unordered_map>
#include <vector>

namespace cudaemu
{

enum { GRAIN = 4 }; // bytes that are remembered together
static const unsigned MANY = 1u << 31;

namespace
{

struct Event {
	unsigned frame, node;
};

// A graph, or the body of a conditional node, while it runs.
struct Frame {
	unsigned parent, depth; // parent: the event of the conditional node; 0: none
	const uint64_t *before;
	size_t words;
};

struct NodeCell {
	unsigned writer, readers; // events; readers: one, or MANY and the number of a list
};

struct Range {
	const char *begin, *end;
	NodeCell *cells; // NULL: not touched so far
};

} // namespace

static std::vector<Event> events(1); // those of this launch
static std::vector<Frame> frames;
static unsigned current_event, current_frame;
static std::vector<Range> ranges;
static std::vector<std::vector<unsigned>> lists;
static std::unordered_map<uint64_t, unsigned> joined;

static size_t cells_of(const Range &r)
{
	return (size_t)(r.end - r.begin) / GRAIN + 1;
}

bool races_wanted()
{
	static const bool wanted = getenv("CUDAEMU_RACES") != nullptr;
	return wanted;
}

void races_memory(const void *at, size_t n, bool there)
{
	const char *p = static_cast<const char *>(at);
	if (there) {
		ranges.push_back({p, p + n, nullptr});
		return;
	}
	for (size_t i = 0; i < ranges.size(); i++)
		if (ranges[i].begin == p) {
			free(ranges[i].cells);
			ranges.erase(ranges.begin() + (ptrdiff_t)i);
			return;
		}
}

// ---- events -------------------------------------------------------------------------------------

RacePlace races_enter(const uint64_t *before, size_t words)
{
	const RacePlace outer = {current_frame, current_event};
	if (!current_event) {
		events.resize(1);
		frames.clear();
		lists.clear();
		joined.clear();
		for (const Range &r : ranges)
			if (r.cells)
				memset(r.cells, 0, cells_of(r) * sizeof(NodeCell));
	}
	frames.push_back(
		{current_event, current_event ? frames[current_frame].depth + 1 : 0, before, words});
	current_frame = (unsigned)frames.size() - 1;
	return outer;
}

void races_node(size_t number)
{
	events.push_back({current_frame, (unsigned)number});
	current_event = (unsigned)events.size() - 1;
}

void races_leave(RacePlace outer)
{
	current_frame = outer.frame;
	current_event = outer.event;
}

static unsigned event_up(unsigned e)
{
	return frames[events[e].frame].parent;
}

static unsigned event_depth(unsigned e)
{
	return frames[events[e].frame].depth;
}

// Whether edges make sure that a, which has run before b here, always does.
static bool happened_before(unsigned a, unsigned b)
{
	while (event_depth(a) > event_depth(b))
		a = event_up(a);
	while (event_depth(b) > event_depth(a))
		b = event_up(b);
	while (a != b && events[a].frame != events[b].frame) {
		a = event_up(a);
		b = event_up(b);
	}
	const unsigned x = events[a].node, y = events[b].node;
	const Frame *f = &frames[events[a].frame];
	return x == y || (f->before[y * f->words + x / 64] >> (x % 64) & 1);
}

// a: 0 for none.
static bool known_before(unsigned a)
{
	return !a || a == current_event || happened_before(a, current_event);
}

// ---- accesses -----------------------------------------------------------------------------------

[[noreturn]] static void race(const Range *r, size_t cell, unsigned other, const char *then,
                              const char *now)
{
	die("race: node %u of a graph %s byte %zu of an allocation of %td bytes, which node %u %s; "
	    "nothing orders them",
	    events[current_event].node, now, cell * GRAIN, r->end - r->begin, events[other].node, then);
}

static Range *range_find(const char *p)
{
	static size_t last;
	if (last < ranges.size() && p >= ranges[last].begin && p < ranges[last].end)
		return &ranges[last];
	for (size_t i = 0; i < ranges.size(); i++)
		if (p >= ranges[i].begin && p < ranges[i].end) {
			last = i;
			return &ranges[i];
		}
	return nullptr;
}

// `readers` with the current event, without those that it comes after anyway.
static unsigned readers_join(unsigned readers)
{
	const uint64_t key = (uint64_t)readers << 32 | current_event;
	const auto had = joined.find(key);
	if (had != joined.end())
		return had->second;
	std::vector<unsigned> list(1, current_event);
	const std::vector<unsigned> old = readers & MANY ? lists[readers & ~MANY]
	                                                 : std::vector<unsigned>(1, readers);
	for (unsigned r : old)
		if (r != current_event && !happened_before(r, current_event))
			list.push_back(r);
	unsigned now = current_event;
	if (list.size() > 1) {
		now = MANY | (unsigned)lists.size();
		lists.push_back(list);
	}
	return joined[key] = now;
}

static void cell_read(const Range *r, size_t i)
{
	NodeCell *c = &r->cells[i];
	if (c->readers == current_event)
		return;
	if (!known_before(c->writer))
		race(r, i, c->writer, "writes", "reads");
	c->readers = c->readers ? readers_join(c->readers) : current_event;
}

static void cell_write(const Range *r, size_t i)
{
	NodeCell *c = &r->cells[i];
	if (!known_before(c->writer))
		race(r, i, c->writer, "writes", "writes");
	if (c->readers & MANY) {
		for (unsigned reader : lists[c->readers & ~MANY])
			if (!known_before(reader))
				race(r, i, reader, "reads", "writes");
	} else if (!known_before(c->readers)) {
		race(r, i, c->readers, "reads", "writes");
	}
	c->writer = current_event;
	c->readers = 0;
}

void races_touch(const void *at, size_t n, bool writes)
{
	const char *p = static_cast<const char *>(at);
	if (!current_event || !n)
		return;
	Range *r = range_find(p);
	if (!r)
		return;
	if (!r->cells)
		r->cells = static_cast<NodeCell *>(calloc(cells_of(*r), sizeof(NodeCell)));
	const size_t first = (size_t)(p - r->begin) / GRAIN,
				 last = (size_t)(p + n - 1 - r->begin) / GRAIN;
	for (size_t i = first; i <= last && i < cells_of(*r); i++)
		writes ? cell_write(r, i) : cell_read(r, i);
}

} // namespace cudaemu
