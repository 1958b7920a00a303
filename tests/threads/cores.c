/* Which cores a pool's threads use: one that shares its caller's keeps to others, and never one that
 * it may not use, also when that changes. Linux. */
#define _GNU_SOURCE
#include "pdrt_threads.h"

#include <sched.h>
#include <stdio.h>

enum { TASKS = 1000 };

typedef struct seen {
	cpu_set_t want; /* what thread 1 is told to use, once */
	cpu_set_t have; /* what it may use */
	bool told;
	int cores[2], apart;
} seen;

static void look(void *context, int part)
{
	seen *s = (seen *)context;
	s->cores[part] = sched_getcpu();
	if (part == 0)
		return;
	if (!s->told)
		sched_setaffinity(0, sizeof s->want, &s->want);
	s->told = true;
	sched_getaffinity(0, sizeof s->have, &s->have);
}

static bool look_often(pd_threads *pool, seen *s)
{
	s->told = false;
	for (int i = 0; i < TASKS; i++) {
		pd_threads_for(pool, look, s, 2);
		s->apart += i > 0 && s->cores[0] != s->cores[1]; /* in the first one it is told */
		cpu_set_t both;
		CPU_AND(&both, &s->want, &s->have);
		if (!CPU_EQUAL(&both, &s->have))
			return false;
	}
	return true;
}

int main(void)
{
	pd_threads *pool;
	cpu_set_t all, one;
	seen s = {0};
	if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2) {
		puts("there is one core");
		return 0;
	}
	const int core = sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET((unsigned)core, &one);
	if (sched_setaffinity(0, sizeof one, &one) || pd_threads_start(&pool, 2))
		return 1;
	/* The pool's thread began where its caller is, and may use nothing else. */
	s.want = one;
	bool right = look_often(pool, &s) && s.apart == 0;
	/* Now it may. */
	s.want = all;
	right = look_often(pool, &s) && s.apart > 0 && right;
	/* And again nothing else. */
	s.want = one;
	s.apart = 0;
	right = look_often(pool, &s) && s.apart == 0 && right;
	pd_threads_stop(pool);
	puts(right ? "all is well" : "cores are wrong");
	return !right;
}
