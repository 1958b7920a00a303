// The driver: main, the memory handler, the report of times. Commands are in cmd_*.c.
#include "ir/ir.h"
#include "frontend/driver/driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void time_report(const Driver *d)
{
	double total = 0;
	for (int i = 0; i < d->nstage; i++) {
		fprintf(stderr, "%10.3f s  %s\n", d->stages[i].seconds, d->stages[i].name);
		total += d->stages[i].seconds;
	}
	fprintf(stderr, "%10.3f s  total, %.1f MB of arena\n", total,
	        (double)arena_bytes(d->ctx->arena) / 1e6);
}

static bool want_colour(const Options *o)
{
	const char *no = getenv("NO_COLOR");
	if (!o->colour || !strcmp(o->colour, "auto"))
		return isatty(STDERR_FILENO) && !(no && *no);
	return !strcmp(o->colour, "always");
}

// Most of the memory that there is, or PDCC_MEMORY megabytes: a system that promises more than it
// has would end somebody later, without a word.
static size_t memory_limit(void)
{
	const char *given = getenv("PDCC_MEMORY");
	unsigned long megabytes = given ? strtoul(given, NULL, 10) : 0;
	if (megabytes && megabytes <= SIZE_MAX >> 20)
		return (size_t)megabytes << 20;
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	return pages > 0 && size > 0 && (size_t)pages <= SIZE_MAX / (size_t)size
	           ? (size_t)pages * (size_t)size / 4 * 3
	           : 0;
}

static int run_command(Driver *d)
{
	static CommandFunction *const commands[CMD_COUNT] = {
		[CMD_COMPILE] = cmd_compile, [CMD_RUN] = cmd_run,   [CMD_VERIFY] = cmd_verify,
		[CMD_BENCH] = cmd_bench,     [CMD_INFO] = cmd_info, [CMD_OPT] = cmd_opt,
		[CMD_DIFF] = cmd_diff,
	};
	diag_werror(d->ctx->diag, d->options->werror);
	d->ctx->file = d->options->model;
	int status = commands[d->options->command](d);
	stage_end(d);
	// Nothing fails silently, not even by mistake.
	if (status == 1 && d->options->command != CMD_DIFF && !diag_errors(d->ctx->diag))
		diag_error(d->ctx->diag, NULL,
		           "failed without a reason given: please report this as a bug of pdcc");
	const int errors = diag_errors(d->ctx->diag) + (d->second ? diag_errors(d->second->diag) : 0);
	return errors ? d->trouble : status;
}

int main(int argc, char **argv)
{
	static OomGuard guard;
	static Options options;
	static Driver driver;
	Context *volatile c = NULL;
	driver.trouble = argc > 1 && !strcmp(argv[1], command_name(CMD_DIFF)) ? 2 : 1;
	if (setjmp(guard.jump)) {
		context_free(driver.second);
		context_free(c);
		fprintf(stderr, "pdcc: error: out of memory (%zu bytes asked)\n", guard.asked);
		return driver.trouble;
	}
	guard.limit = memory_limit();
	oom_guard = &guard;
	c = context_new();
	driver.ctx = c;
	driver.options = &options;
	OptionsResult parsed = options_parse(c, argc, argv, &options);
	int status = parsed == OPTIONS_USAGE ? 2 : 0;
	if (parsed == OPTIONS_OK) {
		status = run_command(&driver);
		diag_flush(c->diag, stderr, want_colour(&options));
		if (driver.second)
			diag_flush(driver.second->diag, stderr, want_colour(&options));
		if (options.time_report)
			time_report(&driver);
	}
	// A full disk or closed pipe behind standard output is an error like any other.
	if (fflush(stdout) || ferror(stdout)) {
		fputs("pdcc: error: cannot write standard output\n", stderr);
		status = status > driver.trouble ? status : driver.trouble;
	}
	context_free(driver.second);
	context_free(c);
	return status;
}
