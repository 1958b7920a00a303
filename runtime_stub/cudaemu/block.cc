// Runs kernels: one block after the other, its threads as fibers that go on until they must wait.
// Threads start in an order drawn from the seed; one that has ended hands its fiber to the next.
// Checks barriers, warp operations and shared memory. Called by queue.cc.
#include "cudaemu.h"
#include "order.h"

#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

uint3 blockIdx;
dim3 blockDim, gridDim;

namespace cudaemu
{

enum { MAX_THREADS = 1024, STACK = 256 << 10, GUARD = 4096 };

Fiber *current;

// ---- switching ----------------------------------------------------------------------------------

#if defined(__x86_64__)
namespace
{
struct Context {
	void *sp;
};
} // namespace

// The registers that a function must keep go to the old stack; those of the other come from its
// stack.
extern "C" void cudaemu_switch(void **from, void *to);
__asm__(".text\n.type cudaemu_switch,@function\ncudaemu_switch:\n"
        "\tpush %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n"
        "\tmov %rsp,(%rdi)\n\tmov %rsi,%rsp\n"
        "\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n"
        ".size cudaemu_switch,.-cudaemu_switch\n");

static void context_switch(Context *from, Context *to)
{
	cudaemu_switch(&from->sp, to->sp);
}

static void context_make(Context *c, char *stack, void (*entry)())
{
	void **top = reinterpret_cast<void **>(stack + STACK);
	*--top = nullptr; // where entry would return to
	*--top = reinterpret_cast<void *>(entry);
	for (int i = 0; i < 6; i++)
		*--top = nullptr;
	c->sp = top;
}
#else
namespace
{
struct Context {
	ucontext_t u;
};
} // namespace

static void context_switch(Context *from, Context *to)
{
	swapcontext(&from->u, &to->u);
}

static void context_make(Context *c, char *stack, void (*entry)())
{
	getcontext(&c->u);
	c->u.uc_stack.ss_sp = stack;
	c->u.uc_stack.ss_size = STACK;
	c->u.uc_link = nullptr;
	makecontext(&c->u, entry, 0);
}
#endif

// ---- the block that runs ------------------------------------------------------------------------

struct SharedCell : Cell {
	unsigned copier; // the thread whose copy to it is under way + 1; 0: none
};

namespace
{

// To shared memory, by cp.async.
struct Copy {
	const Site *site;
	size_t i, n, size; // n elements from number i on
	unsigned group;
	int line;
	unsigned char bytes[16];
};

enum : unsigned { OPEN = UINT_MAX }; // a group that is not committed

} // namespace

struct Private {
	Context context;
	char *stack;
	enum { RUNS, WAITS_BARRIER, WAITS_WARP } state;
	int line;      // where it waits
	unsigned mask; // of the warp operation that it waits in
	Copy *copies;  // begun and not waited for
	size_t ncopy, ccopy;
	unsigned groups; // of copies, so far
};

namespace
{

// Lanes that do warp operations with one mask. Values alternate between two rows: nobody can be two
// operations ahead.
struct Group {
	unsigned mask, arrived;
	int line;
	unsigned generation;
	uint64_t values[2][WARP];
};

struct Warp {
	int ngroup;
	Group groups[WARP];
	WarpOrder order;
};

struct Block {
	const Launch *launch;
	unsigned long serial;
	uint32_t number; // in the launch
	unsigned n, started, ended, arrived;
	int line; // of the barrier that threads wait at
	unsigned order[MAX_THREADS];
	Warp warps[MAX_THREADS / WARP];
	Fiber *ready[MAX_THREADS];
	int nready;
	Fiber *waiting[MAX_THREADS];
	int nwaiting;
	size_t shared_used;
	Context scheduler;
};
} // namespace

static Block block;
static Fiber *idle[MAX_THREADS];
static int nidle;
alignas(128) static char shared_bytes[SHARED_BYTES];

// The text stays until the next call.
const char *accesses_describe(const Accesses *a)
{
	static char text[64];
	const uint32_t number = a->who & WHO;
	if (a->who & SEVERAL_BLOCKS)
		return "threads of several blocks";
	if (a->who & SEVERAL_WARPS)
		snprintf(text, sizeof text, "threads of several warps of block %u", number / WARP - 1);
	else
		snprintf(text, sizeof text, "thread %u of block %u",
		         number % WARP * WARP + (unsigned)__builtin_ctz(a->lanes), number / WARP - 1);
	return text;
}

bool thread_describe(char *text, size_t size)
{
	if (!current)
		return false;
	snprintf(text, size, "thread (%u, %u, %u) of block (%u, %u, %u)", current->index.x,
	         current->index.y, current->index.z, blockIdx.x, blockIdx.y, blockIdx.z);
	return true;
}

static Warp *warp_of(unsigned thread)
{
	return &block.warps[thread / WARP];
}

Moment moment = {1, 1, 1, 0, 0, nullptr};

void moment_next()
{
	if (!++moment.now)
		die("too many barriers: their number does not fit 32 bits");
}

unsigned thread_number()
{
	return current->number;
}

unsigned warp_lane()
{
	return current->number % WARP;
}

// It is the one that runs now.
static void fiber_begin(Fiber *f)
{
	current = f;
	moment.who = (block.number + 1) * WARP + f->number / WARP;
	moment.lane = f->number % WARP;
	moment.warp = &warp_of(f->number)->order;
}

static void thread_take(Fiber *f)
{
	const unsigned t = block.order[block.started++], x = blockDim.x, y = blockDim.y;
	f->number = t;
	f->index = {t % x, t / x % y, t / x / y};
	f->p->state = Private::RUNS;
	f->p->groups = 0;
}

static void to_scheduler(Fiber *f)
{
	context_switch(&f->p->context, &block.scheduler);
}

// A fiber lives as long as the program: it runs threads of one block after the other.
static void fiber_main()
{
	for (;;) {
		Fiber *f = current;
		block.launch->how->call(block.launch->kernel, block.launch->args);
		if (f->p->ncopy)
			die("a thread ends while a copy that it began in line %d is under way",
			    f->p->copies[0].line);
		block.ended++;
		if (block.started < block.n && !block.nready) {
			thread_take(f);
			fiber_begin(f);
			continue;
		}
		idle[nidle++] = f;
		to_scheduler(f);
	}
}

static Fiber *fiber_new()
{
	if (nidle)
		return idle[--nidle];
	Fiber *f = static_cast<Fiber *>(calloc(1, sizeof *f));
	f->p = static_cast<Private *>(calloc(1, sizeof *f->p));
	void *m = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	               0);
	if (m == MAP_FAILED)
		die("no memory for a stack");
	mprotect(m, GUARD, PROT_NONE);
	f->p->stack = static_cast<char *>(m) + GUARD;
	context_make(&f->p->context, f->p->stack, fiber_main);
	return f;
}

// ---- waiting ------------------------------------------------------------------------------------

static void wait_as(decltype(Private::state) s, int line)
{
	Fiber *f = current;
	f->p->state = s;
	f->p->line = line;
	block.waiting[block.nwaiting++] = f;
	to_scheduler(f);
}

// Those that wait and are meant go on.
template <typename Meant> static void release(Meant meant)
{
	int kept = 0;
	for (int i = 0; i < block.nwaiting; i++) {
		Fiber *f = block.waiting[i];
		if (meant(f))
			block.ready[block.nready++] = f;
		else
			block.waiting[kept++] = f;
	}
	block.nwaiting = kept;
}

void barrier(int line)
{
	if (!current)
		die("__syncthreads outside of a kernel");
	if (block.arrived && block.line != line)
		die("divergent barrier: threads of one block wait in __syncthreads of lines %d and %d",
		    block.line, line);
	block.line = line;
	if (++block.arrived < block.n) {
		wait_as(Private::WAITS_BARRIER, line);
		return;
	}
	block.arrived = 0;
	moment_next();
	moment.block = moment.now;
	release([](Fiber *f) { return f->p->state == Private::WAITS_BARRIER; });
}

static Group *group_find(Warp *w, unsigned mask)
{
	for (int i = 0; i < w->ngroup; i++)
		if (w->groups[i].mask == mask)
			return &w->groups[i];
	if (w->ngroup == WARP)
		die("more than %d masks in one warp", WARP);
	Group *g = &w->groups[w->ngroup++];
	*g = Group();
	g->mask = mask;
	return g;
}

// What lanes of the mask knew before, all of them know now, and what all of them did.
static void lanes_join(WarpOrder *o, unsigned mask)
{
	if (mask == 0xffffffffu) {
		o->all = moment.now;
		return;
	}
	for (int j = 0; j < WARP; j++) {
		uint32_t known = mask >> j & 1 ? moment.now : o->all;
		for (int i = 0; i < WARP; i++)
			if ((mask >> i & 1) && o->seen[i][j] > known)
				known = o->seen[i][j];
		for (int i = 0; i < WARP; i++)
			if (mask >> i & 1)
				o->seen[i][j] = known;
	}
}

static const uint64_t *exchange(unsigned mask, uint64_t value, bool orders, int line)
{
	if (!current)
		die("a warp operation outside of a kernel");
	Warp *w = warp_of(current->number);
	const unsigned lane = warp_lane(), warp = current->number / WARP;
	if (!(mask >> lane & 1))
		die("line %d: lane %u calls a warp operation whose mask 0x%08x leaves it out", line, lane,
		    mask);
	Group *g = group_find(w, mask);
	if (g->arrived && g->line != line)
		die("divergent warp: lanes of mask 0x%08x are in lines %d and %d", mask, g->line, line);
	g->line = line;
	g->arrived |= 1u << lane;
	uint64_t *row = g->values[g->generation & 1];
	row[lane] = value;
	if (g->arrived != mask) {
		current->p->mask = mask;
		wait_as(Private::WAITS_WARP, line);
		return row;
	}
	g->arrived = 0;
	g->generation++;
	if (orders) {
		moment_next();
		lanes_join(&w->order, mask);
	}
	release([=](Fiber *f) {
		return f->p->state == Private::WAITS_WARP && f->p->mask == mask && f->number / WARP == warp;
	});
	return row;
}

const uint64_t *warp_exchange(unsigned mask, uint64_t value, int line)
{
	return exchange(mask, value, false, line);
}

// The only operation of a warp that orders what its lanes do to memory: shuffles and votes promise
// no such thing.
void warp_barrier(unsigned mask, int line)
{
	exchange(mask, 0, true, line);
}

// An element of a register: number i of two, or the one of a tf32.
static float mma_element(MmaKind kind, uint32_t bits, int i)
{
	const uint32_t half = bits >> 16 * i & 0xffff;
	float x;
	if (kind == MMA_F16) {
		const int exponent = half >> 10 & 31, fraction = half & 0x3ff;
		x = exponent == 31 ? (fraction ? NAN : INFINITY)
		                   : ldexpf((float)(exponent ? fraction + 1024 : fraction),
		                            (exponent ? exponent : 1) - 25);
		return half >> 15 ? -x : x;
	}
	bits = kind == MMA_TF32 ? bits & 0xffffe000 : half << 16; // the hardware does not look at more
	memcpy(&x, &bits, sizeof x);
	return x;
}

// c += a x b, 16 rows by 8 columns; see cuda_ptx.c for who holds what.
void warp_mma(MmaKind kind, float *const (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
              int line)
{
	uint32_t all[WARP][6];
	for (int part = 0; part < 3; part++) {
		const uint32_t *pair = part < 2 ? a + 2 * part : b;
		const uint64_t *row = warp_exchange(0xffffffffu, (uint64_t)pair[1] << 32 | pair[0], line);
		for (int l = 0; l < WARP; l++) {
			all[l][2 * part] = (uint32_t)row[l];
			all[l][2 * part + 1] = (uint32_t)(row[l] >> 32);
		}
	}
	const int lane = (int)warp_lane(), each = kind == MMA_TF32 ? 1 : 2;
	for (int i = 0; i < 4; i++) {
		const int row = lane / 4, column = lane % 4 * 2 + i % 2, down = i / 2;
		for (int k = 0; k < 8 * each; k++) {
			const int half = k / (4 * each), t = k % (4 * each) / each;
			*c[i] += mma_element(kind, all[row * 4 + t][2 * half + down], k % each) *
			         mma_element(kind, all[column * 4 + t][4 + half], k % each);
		}
	}
}

void lane_outside(int lane, int line)
{
	die("line %d: a shuffle reads lane %d, which is not in its mask", line, lane);
}

// Nobody can go on.
[[noreturn]] static void stuck()
{
	const Fiber *f = block.waiting[0];
	if (block.arrived && block.arrived + block.ended == block.n)
		die("divergent barrier: %u threads ended without reaching __syncthreads in line %d",
		    block.ended, block.line);
	if (f->p->state == Private::WAITS_WARP)
		die("divergent warp: line %d waits for lanes of mask 0x%08x that do something else or have "
		    "ended",
		    f->p->line, f->p->mask);
	die("deadlock: some threads wait at the barrier in line %d, others in warp operations",
	    block.line);
}

static void fiber_resume(Fiber *f)
{
	fiber_begin(f);
	context_switch(&block.scheduler, &f->p->context);
	current = nullptr;
}

static void block_run()
{
	block.serial++;
	block.started = block.ended = block.arrived = 0;
	block.nready = block.nwaiting = 0;
	block.shared_used = 0;
	moment_next();
	moment.block = moment.now;
	for (unsigned w = 0; w * WARP < block.n; w++)
		block.warps[w].ngroup = 0;
	for (unsigned i = 0; i < block.n && random_wanted(); i++) {
		const unsigned k = random_next(i + 1);
		block.order[i] = block.order[k];
		block.order[k] = i;
	}
	while (block.ended < block.n) {
		if (block.nready) {
			const int k = (int)random_next((uint32_t)block.nready);
			Fiber *f = block.ready[k];
			block.ready[k] = block.ready[--block.nready];
			f->p->state = Private::RUNS;
			fiber_resume(f);
		} else if (block.started < block.n) {
			Fiber *f = fiber_new();
			thread_take(f);
			fiber_resume(f);
		} else {
			stuck();
		}
	}
	if (block.arrived)
		stuck();
	if (banks_counted)
		banks_block_end();
}

void kernel_run(const Launch *l)
{
	block.launch = l;
	moment_next();
	moment.launch = moment.now;
	blockDim = l->block;
	gridDim = l->grid;
	block.n = l->block.x * l->block.y * l->block.z;
	for (unsigned i = 0; i < block.n; i++)
		block.order[i] = i;
	const uint64_t blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z,
				   first = random_next((uint32_t)blocks);
	for (uint64_t i = 0; i < blocks; i++) {
		const uint64_t b = (i + first) % blocks;
		block.number = (uint32_t)b;
		blockIdx = {(unsigned)(b % l->grid.x), (unsigned)(b / l->grid.x % l->grid.y),
		            (unsigned)(b / l->grid.x / l->grid.y)};
		block_run();
	}
}

// ---- shared memory ------------------------------------------------------------------------------

void site_enter(Site *s, size_t count, size_t size, bool dynamic)
{
	if (!current)
		die("shared memory '%s' outside of a kernel", s->name);
	if (s->serial == block.serial)
		return;
	s->serial = block.serial;
	const size_t at = (block.shared_used + 15) / 16 * 16,
				 most = dynamic ? SHARED_BYTES : SHARED_ALWAYS;
	if (count * size > most || at + count * size > most)
		die("more than %zu bytes of shared memory in a block, with '%s'", most, s->name);
	if (dynamic && count * size > block.launch->shared)
		die("shared memory '%s' has %zu bytes, but the launch gives %zu", s->name, count * size,
		    block.launch->shared);
	block.shared_used = at + count * size;
	s->data = shared_bytes + at;
	free(s->cells);
	s->cells = static_cast<SharedCell *>(calloc(count, sizeof *s->cells));
	memset(s->data, 0xff, count * size);
}

static void shared_access(const Site *s, size_t i, size_t count, AccessKind kind, int line)
{
	if (i >= count)
		die("line %d: element %zd of shared memory '%s', which has %zu", line, (ssize_t)i, s->name,
		    count);
	SharedCell *c = &s->cells[i];
	if (c->copier)
		die("line %d: element %zu of shared memory '%s' is %s while a copy to it that thread %u "
		    "has begun is under way",
		    line, i, s->name, kind == ACCESS_READ ? "read" : "written", c->copier - 1);
	if (kind == ACCESS_READ && !c->written)
		die("line %d: element %zu of shared memory '%s' is read, but nobody wrote it", line, i,
		    s->name);
	if (const Accesses *other = cell_access(c, kind))
		die("line %d: race: %s element %zu of shared memory '%s' that %s %s, no barrier between",
		    line, kind == ACCESS_READ ? "a read of" : "a write to", i, s->name,
		    accesses_describe(other), other == &c->changes ? "wrote" : "read");
}

void shared_read(const Site *s, size_t i, size_t count, int line)
{
	shared_access(s, i, count, ACCESS_READ, line);
}

void shared_write(const Site *s, size_t i, size_t count, int line)
{
	shared_access(s, i, count, ACCESS_WRITE, line);
}

void shared_aligned(const Site *s, size_t i, size_t n, int line)
{
	if (i % n)
		die("line %d: misaligned address: %zu elements from %zu on of shared memory '%s'", line, n,
		    i, s->name);
}

// ---- copies to shared memory --------------------------------------------------------------------

void copy_aligned(const void *from, size_t bytes, int line)
{
	const size_t over = reinterpret_cast<uintptr_t>(from) % bytes;
	if (over)
		die("line %d: misaligned address: a copy of %zu bytes from %zu bytes behind a multiple of "
		    "them",
		    line, bytes, over);
}

// What is copied to counts as written now, and as unknown until the thread has waited.
void copy_begin(const Site *s, size_t i, size_t count, size_t n, size_t size, const void *bytes,
                int line)
{
	Private *p = current->p;
	shared_aligned(s, i, n, line);
	for (size_t e = 0; e < n; e++) {
		shared_write(s, i + e, count, line);
		s->cells[i + e].copier = current->number + 1;
	}
	memset(s->data + i * size, 0xff, n * size);
	if (p->ncopy == p->ccopy) {
		p->ccopy = p->ccopy ? 2 * p->ccopy : 64;
		p->copies = static_cast<Copy *>(realloc(p->copies, p->ccopy * sizeof *p->copies));
	}
	Copy *c = &p->copies[p->ncopy++];
	*c = {s, i, n, size, OPEN, line, {}};
	memcpy(c->bytes, bytes, n * size);
}

void copies_commit()
{
	Private *p = current->p;
	for (size_t i = p->ncopy; i && p->copies[i - 1].group == OPEN; i--)
		p->copies[i - 1].group = p->groups;
	p->groups++;
}

// For other threads it is as if the thread had written them now.
void copies_wait(unsigned groups_left)
{
	Private *p = current->p;
	size_t kept = 0;
	for (size_t i = 0; i < p->ncopy; i++) {
		const Copy c = p->copies[i];
		if (c.group == OPEN || c.group + groups_left >= p->groups) {
			p->copies[kept++] = c;
			continue;
		}
		memcpy(c.site->data + c.i * c.size, c.bytes, c.n * c.size);
		for (size_t e = 0; e < c.n; e++) {
			c.site->cells[c.i + e].copier = 0;
			cell_access(&c.site->cells[c.i + e], ACCESS_WRITE);
		}
	}
	p->ncopy = kept;
}

} // namespace cudaemu

// ---- alignment ----------------------------------------------------------------------------------

// What g++ and clang call (-fsanitize=alignment) for an access that the machine could do, but a GPU
// cannot.
struct TypeMismatch {
	struct {
		const char *file;
		uint32_t line, column;
	} at;
	const struct {
		uint16_t kind, info;
		char name[1]; // longer, with quotes
	} * type;
	unsigned char log_alignment, kind;
};

extern "C" void __ubsan_handle_type_mismatch_v1(const TypeMismatch *m, uintptr_t at)
{
	const unsigned align = 1u << m->log_alignment;
	cudaemu::die("line %u: misaligned address: %s at %u bytes behind a multiple of %u", m->at.line,
	             m->type->name, (unsigned)(at % align), align);
}
