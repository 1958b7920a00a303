// Objects that many built programs share, made once and kept in the user's folder for what can be
// made again. Called by build_model.c (the harness) and build_cuda.c (the emulator).
#include "frontend/driver/driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *external_compiler(const Driver *d)
{
	const char *env = getenv("CC");
	return d->options->cc ? d->options->cc : env && *env ? env : "cc";
}

// NULL: there is none to write to.
static const char *cache_folder(Driver *d)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (!cache || *cache != '/')
		cache = home && *home == '/' ? arena_printf(d->ctx->arena, "%s/.cache", home) : NULL;
	if (!cache)
		return NULL;
	const char *own = arena_printf(d->ctx->arena, "%s/pdcc", cache);
	mkdir(cache, 0700);
	mkdir(own, 0700);
	return access(own, W_OK | X_OK) == 0 ? own : NULL;
}

// Of this compiler, its flags, and embedded texts.
static const char *object_name(Driver *d, const char *stem, int ntext, const char *const *texts)
{
	const char *cc = external_compiler(d), *flags = d->options->cflags ? d->options->cflags : "";
	uint64_t h = bytes_hash(BYTES_HASH_START, cc, strlen(cc) + 1);
	h = bytes_hash(h, flags, strlen(flags) + 1);
	for (int i = 0; i < ntext; i++) {
		const char *text = embed_text(texts[i]);
		h = bytes_hash(h, text, strlen(text) + 1);
	}
	return arena_printf(d->ctx->arena, "%s-%016" PRIx64 ".o", stem, h);
}

// Removes what no program has used for months: objects of other compilers, flags and versions, and
// what was never finished.
static void cache_clean(Driver *d, const char *cache)
{
	enum { KEPT_SECONDS = 90 * 24 * 60 * 60 };
	const time_t now = time(NULL);
	struct stat s;
	DIR *dir = opendir(cache);
	if (!dir)
		return;
	for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
		const char *path = arena_printf(d->ctx->arena, "%s/%s", cache, e->d_name);
		if (strstr(e->d_name, ".o") && !lstat(path, &s) && S_ISREG(s.st_mode) &&
		    now - s.st_mtime > KEPT_SECONDS)
			unlink(path);
	}
	closedir(dir);
}

const char *object_cached(Driver *d, const BuiltModel *b, const char *stem, int ntext,
                          const char *const *texts, ObjectMaker *make)
{
	const char *cache = cache_folder(d);
	if (!cache) {
		const char *object = arena_printf(d->ctx->arena, "%s/%s.o", b->folder, stem);
		return make(d, b, object) ? object : NULL;
	}
	const char *object = arena_printf(d->ctx->arena, "%s/%s", cache,
	                                  object_name(d, stem, ntext, texts));
	if (access(object, R_OK) == 0) {
		utimensat(AT_FDCWD, object, NULL, 0); // it is used: see cache_clean
		return object;
	}
	cache_clean(d, cache);
	const char *made = arena_printf(d->ctx->arena, "%s.%ld", object, (long)getpid());
	if (!make(d, b, made))
		return NULL;
	return rename(made, object) == 0 ? object : made;
}
