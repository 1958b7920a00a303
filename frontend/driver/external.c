// Temporary folders and other programs: the external compiler and what it built.
#define _XOPEN_SOURCE 700 // nftw, mkdtemp

#include "frontend/driver/driver.h"
#include "lower/target/target.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 256 };

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

// `what` holds the path once there is a folder.
static void folder_remove(void *what)
{
	char **path = what;
	if (*path)
		nftw(*path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *temp_folder(Context *c)
{
	const char *base = getenv("TMPDIR");
	char *path = arena_printf(c->arena, "%s/pdcc-XXXXXX", base && *base ? base : "/tmp");
	char **made = NEW(c->arena, char *);
	arena_on_free(c->arena, folder_remove, made);
	if (!mkdtemp(path)) {
		diag_error(c->diag, NULL, "cannot make a temporary folder '%s': %s", path, strerror(errno));
		return NULL;
	}
	return *made = path;
}

bool folder_make(Context *c, const char *path)
{
	char *copy = arena_strndup(c->arena, path, strlen(path));
	for (char *p = copy + 1;; p++) {
		if (*p && *p != '/')
			continue;
		char was = *p;
		*p = 0;
		struct stat st;
		if (mkdir(copy, 0777) && (errno != EEXIST || stat(copy, &st) || !S_ISDIR(st.st_mode))) {
			diag_error(c->diag, NULL, "cannot make folder '%s': %s", copy, strerror(errno));
			return false;
		}
		*p = was;
		if (!was)
			return true;
	}
}

int words_append(Context *c, const char *text, const char **argv, int n, int max)
{
	for (const char *p = text; p && *p;) {
		p += strspn(p, " \t\n");
		size_t len = strcspn(p, " \t\n");
		if (len && n + 1 < max)
			argv[n++] = context_strn(c, p, len);
		p += len;
	}
	argv[n] = NULL;
	return n;
}

// `output`: the file that its output goes to; NULL: ours.
static bool run_and_wait(Context *c, const char *const *argv, const char *output, int *status)
{
	fflush(stdout);
	fflush(stderr);
	pid_t pid = fork();
	if (pid < 0) {
		diag_error(c->diag, NULL, "cannot start '%s': %s", argv[0], strerror(errno));
		return false;
	}
	if (!pid) {
		if (output && (!freopen(output, "w", stdout) || dup2(fileno(stdout), STDERR_FILENO) < 0))
			_exit(EXTERNAL_MISSING - 1);
		execvp(argv[0], (char *const *)argv);
		fprintf(stderr, "pdcc: error: cannot run '%s': %s\n", argv[0], strerror(errno));
		_exit(EXTERNAL_MISSING);
	}
	int raw;
	while (waitpid(pid, &raw, 0) < 0) {
		if (errno != EINTR) {
			diag_error(c->diag, NULL, "cannot wait for '%s': %s", argv[0], strerror(errno));
			return false;
		}
	}
	*status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
	return *status == 0;
}

bool external_run(Context *c, const char *const *argv, int *status)
{
	return run_and_wait(c, argv, NULL, status);
}

bool external_run_quiet(Context *c, const char *const *argv, const char *output, int *status)
{
	return run_and_wait(c, argv, output, status);
}

bool compiler_run(Driver *d, const char **argv, int n)
{
	int status = 0;
	argv[n] = NULL;
	if (external_run(d->ctx, argv, &status))
		return true;
	if (status)
		diag_error(d->ctx->diag, NULL, "the compiler '%s' failed (exit status %d)", argv[0],
		           status);
	return false;
}

bool compile_external(Driver *d, const Target *t, const char *folder, int n,
                      const char *const *sources, const char *out, bool shared)
{
	Context *c = d->ctx;
	const char *argv[MAX_WORDS];
	int k = words_append(c, external_compiler(d), argv, 0, MAX_WORDS);
	if (!k) {
		diag_error(c->diag, NULL, "no compiler given");
		return false;
	}
	k = words_append(c, t->vector ? "-std=gnu11" : "-std=c11", argv, k, MAX_WORDS);
	k = words_append(c, "-O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast", argv, k,
	                 MAX_WORDS);
	k = words_append(c, t->cflags, argv, k, MAX_WORDS);
	k = words_append(c, d->options->threads > 1 ? "-pthread" : NULL, argv, k, MAX_WORDS);
	k = words_append(c, shared ? "-shared -fPIC -fvisibility=hidden" : NULL, argv, k, MAX_WORDS);
	k = words_append(c, d->options->cflags, argv, k, MAX_WORDS);
	if (k + n + 6 > MAX_WORDS) {
		diag_error(c->diag, NULL, "too many compiler flags");
		return false;
	}
	argv[k++] = "-I";
	argv[k++] = folder;
	for (int i = 0; i < n; i++)
		argv[k++] = sources[i];
	argv[k++] = "-o";
	argv[k++] = out;
	argv[k++] = "-lm";
	return compiler_run(d, argv, k);
}
