/* What the harness does with a model that was compiled with --trace for `bench --profile`: keeps
 * the least time that a run spent in each operator, and never looks at what operators give. A part
 * of harness.c, which alone includes it.
 *
 * --profile F writes a line for each operator that ran: "step", its number, calls in a run, ns. */
#ifndef HARNESS_PROFILE_H
#define HARNESS_PROFILE_H

#include "harness_npy.h"

typedef struct Step {
	double now, least; /* ns: of this run, of the best run */
	long calls, most;
} Step;

typedef struct Profile {
	FILE *file; /* NULL: nobody asks */
	int n;
	Step *steps; /* by the operator's number */
	double begin;
} Profile;

static void profile_room(Profile *p, int number)
{
	if (number < p->n)
		return;
	Step *more = list_new(number + 1, sizeof *more);
	for (int i = 0; i < p->n; i++)
		more[i] = p->steps[i];
	free(p->steps);
	p->steps = more;
	p->n = number + 1;
}

static void profile_event(void *arg, const pd_trace_event *e)
{
	Profile *p = arg;
	if (e->what == PD_TRACE_BEGIN) {
		profile_room(p, e->op->number);
		p->begin = clock_ns();
	} else if (e->what == PD_TRACE_END) {
		p->steps[e->op->number].now += clock_ns() - p->begin;
		p->steps[e->op->number].calls++;
	}
}

/* A run has ended; one to warm up does not count. */
static void profile_run(Profile *p, bool counts)
{
	for (int i = 0; i < p->n; i++) {
		Step *s = &p->steps[i];
		if (counts && s->calls && (s->now < s->least || !s->most))
			s->least = s->now;
		if (counts && s->calls > s->most)
			s->most = s->calls;
		s->now = 0;
		s->calls = 0;
	}
}

static void profile_open(Profile *p, const char *path)
{
	if (!(p->file = fopen(path, "w")))
		fail("cannot write '%s': %s", path, strerror(errno));
}

static void profile_close(Profile *p)
{
	for (int i = 0; p->file && i < p->n; i++)
		if (p->steps[i].most)
			fprintf(p->file, "step %d %ld %.1f\n", i, p->steps[i].most, p->steps[i].least);
	if (p->file && (ferror(p->file) | fclose(p->file)))
		fail("cannot write the profile");
	free(p->steps);
}

#endif
