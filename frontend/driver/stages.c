// The stages that a command goes through, and how long each takes (--time-report). Called by every
// command.
#include "frontend/driver/driver.h"

#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void stage_end(Driver *d)
{
	if (!d->stage_start)
		return;
	d->stages[d->nstage - 1].seconds = now() - d->stage_start;
	d->stage_start = 0;
	if (d->progress_shown)
		fputs("\r\033[K", stderr);
	d->progress_shown = false;
}

void stage_begin(Driver *d, const char *name)
{
	stage_end(d);
	double total = 0;
	for (int i = 0; i < d->nstage; i++)
		total += d->stages[i].seconds;
	if (d->nstage < (int)COUNT_OF(d->stages))
		d->nstage++;
	d->stages[d->nstage - 1].name = name;
	d->stage_start = now();
	if (total > 1 && isatty(STDERR_FILENO)) {
		fprintf(stderr, "pdcc: %s ...", name);
		fflush(stderr);
		d->progress_shown = true;
	}
}
