/* A pool of POSIX threads: see pdrt_threads.h. Link it, with -pthread, with programs that start
 * one.
 *
 * Each thread waits at a gate of its own until another one opens it; the caller of a task opens as
 * many as there are parts, and then waits at the gate that these open when they are done. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* which core a thread is on */
#elif !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "pdrt_threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum {
	SPINS = 1 << 12, /* about 100 us: longer than what a run does between two tasks */
	TURN = 1 << 6,   /* so many, then who is waited for may have the core: it may be on the same */
	LINE = 128,      /* bytes that caches move at once */
	REST = 1000000   /* ns between two moves to another core, which take some 20,000 each */
};

/* A number that goes up, and who waits for it. */
typedef struct gate {
	unsigned count; /* atomic */
	int sleeping;   /* atomic */
	pthread_mutex_t lock;
	pthread_cond_t opened;
	char apart[LINE];
} gate;

typedef struct worker {
	gate start;
	pd_threads *pool;
	int number;
#ifdef __linux__
	int64_t move;       /* when it may go to another core again, in ns */
	cpu_set_t may, own; /* the cores that it is given from outside; that it chose among these */
#endif
	pthread_t thread;
} worker;

struct pd_threads {
	gate done; /* counts parts */
	int busy;  /* atomic: somebody has the pool */
	int nworker;
	int stop; /* with the next three: written before gates are opened */
	pd_task *task;
	void *context;
	int parts;
	int cores[PD_THREADS_MAX]; /* atomic: on which each thread was last */
	worker workers[PD_THREADS_MAX - 1];
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

static bool gate_init(gate *g)
{
	if (pthread_mutex_init(&g->lock, NULL))
		return false;
	if (!pthread_cond_init(&g->opened, NULL))
		return true;
	pthread_mutex_destroy(&g->lock);
	return false;
}

static void gate_free(gate *g)
{
	pthread_cond_destroy(&g->opened);
	pthread_mutex_destroy(&g->lock);
}

static bool gate_reached(gate *g, unsigned count)
{
	return (int)(__atomic_load_n(&g->count, __ATOMIC_SEQ_CST) - count) >= 0;
}

static void gate_wait(gate *g, unsigned count)
{
	for (int i = 0; i < SPINS; i++) {
		if (gate_reached(g, count))
			return;
		if (i % TURN == TURN - 1)
			sched_yield();
		else
			relax();
	}
	pthread_mutex_lock(&g->lock);
	__atomic_store_n(&g->sleeping, 1, __ATOMIC_SEQ_CST); /* before the count is read again */
	while (!gate_reached(g, count))
		pthread_cond_wait(&g->opened, &g->lock);
	__atomic_store_n(&g->sleeping, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&g->lock);
}

static void gate_open(gate *g)
{
	__atomic_add_fetch(&g->count, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&g->sleeping, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&g->lock);
	pthread_cond_signal(&g->opened);
	pthread_mutex_unlock(&g->lock);
}

#ifdef __linux__
/* Notes on which core thread `number` is, and gives it. */
static int core_note(pd_threads *p, int number)
{
	const int core = sched_getcpu();
	if (__atomic_load_n(&p->cores[number], __ATOMIC_RELAXED) != core)
		__atomic_store_n(&p->cores[number], core, __ATOMIC_RELAXED);
	return core;
}

/* Keeps to those of the cores given to it that no thread before it is on, if there are any: where
 * the scheduler may choose, it soon brings both together again. */
static void core_change(worker *w)
{
	cpu_set_t now;
	if (sched_getaffinity(0, sizeof now, &now))
		return;
	if (!CPU_EQUAL(&now, &w->own)) /* at first, and when somebody changed it */
		w->may = now;
	cpu_set_t others = w->may;
	for (int i = 0; i < w->number; i++) {
		const int core = __atomic_load_n(&w->pool->cores[i], __ATOMIC_RELAXED);
		if (core >= 0)
			CPU_CLR((unsigned)core, &others);
	}
	if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
		w->own = others;
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Schedulers that save cores leave threads on one when these give way to each other while they
 * wait: whose core a thread before it is on goes to another one. It may be followed there. */
static void core_own(worker *w)
{
	const int core = core_note(w->pool, w->number);
	for (int i = 0; i < w->number; i++)
		if (__atomic_load_n(&w->pool->cores[i], __ATOMIC_RELAXED) == core) {
			const int64_t now = now_ns();
			if (now < w->move)
				return;
			w->move = now + REST;
			core_change(w);
			core_note(w->pool, w->number);
			return;
		}
}
#else
static void core_note(pd_threads *p, int number)
{
	(void)p, (void)number;
}

static void core_own(worker *w)
{
	(void)w;
}
#endif

/* What falls to one thread when there are more parts than threads. */
static void parts_run(const pd_threads *pool, int number)
{
	for (int i = number; i < pool->parts; i += pool->nworker + 1)
		pool->task(pool->context, i);
}

static void *worker_main(void *argument)
{
	worker *w = (worker *)argument;
	for (unsigned round = 1;; round++) {
		gate_wait(&w->start, round);
		if (w->pool->stop)
			return NULL;
		core_own(w);
		parts_run(w->pool, w->number);
		gate_open(&w->pool->done);
	}
}

void pd_threads_for(void *pool, pd_task *task, void *context, int parts)
{
	pd_threads *p = (pd_threads *)pool;
	const int helpers = parts - 1 < p->nworker ? parts - 1 : p->nworker;
	if (helpers < 1 || __atomic_exchange_n(&p->busy, 1, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < parts; i++)
			task(context, i);
		return;
	}
	const unsigned done = __atomic_load_n(&p->done.count, __ATOMIC_RELAXED) + (unsigned)helpers;
	p->task = task;
	p->context = context;
	p->parts = parts;
	core_note(p, 0);
	for (int i = 0; i < helpers; i++)
		gate_open(&p->workers[i].start);
	parts_run(p, 0);
	gate_wait(&p->done, done);
	__atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
}

/* Signals go to the threads of the program, which has handlers for them. */
static bool worker_start(pd_threads *pool, worker *w, int number)
{
	sigset_t all, before;
	w->pool = pool;
	w->number = number;
	if (!gate_init(&w->start))
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const int failed = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		gate_free(&w->start);
	return !failed;
}

pd_status pd_threads_start(pd_threads **pool, int threads)
{
	if (!pool)
		return PD_NULL;
	*pool = NULL;
	if (threads < 1 || threads > PD_THREADS_MAX)
		return PD_DIMS;
	pd_threads *p = (pd_threads *)calloc(1, sizeof *p);
	if (!p || !gate_init(&p->done)) {
		free(p);
		return PD_THREADS;
	}
	for (int i = 0; i < threads; i++)
		p->cores[i] = -1;
	for (; p->nworker < threads - 1; p->nworker++)
		if (!worker_start(p, &p->workers[p->nworker], p->nworker + 1)) {
			pd_threads_stop(p);
			return PD_THREADS;
		}
	*pool = p;
	return PD_OK;
}

void pd_threads_stop(pd_threads *pool)
{
	if (!pool)
		return;
	pool->stop = 1;
	for (int i = 0; i < pool->nworker; i++)
		gate_open(&pool->workers[i].start);
	for (int i = 0; i < pool->nworker; i++) {
		pthread_join(pool->workers[i].thread, NULL);
		gate_free(&pool->workers[i].start);
	}
	gate_free(&pool->done);
	free(pool);
}
