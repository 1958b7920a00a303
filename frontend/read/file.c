// Files: mapped for reading, written atomically. Used by every reader and by the driver.
//
// Output goes to a temporary file beside its destination, is flushed to disk and renamed: whoever
// looks sees the old file or the new one, never a part. Devices and pipes are written to directly.
#include "frontend/read/read.h"
#include "ir/base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static Loc file_loc(const char *path)
{
	return (Loc){.file = path, .block = -1, .op = -1};
}

// ---- reading --------------------------------------------------------------------------------

// Registered with the arena before there is anything to release, since that may fail.
typedef struct Mapping {
	void *data; // NULL: none
	size_t size;
	int fd; // -1: closed
} Mapping;

static void mapping_release(void *what)
{
	Mapping *m = what;
	if (m->data)
		munmap(m->data, m->size);
	if (m->fd >= 0)
		close(m->fd);
}

// A pipe or device: no size to ask for, so read until it ends.
static const uint8_t *read_stream(Context *c, int fd, const char *path, size_t *size)
{
	Text t;
	char buffer[16384];
	text_init(&t, c->arena);
	for (;;) {
		ssize_t n = read(fd, buffer, sizeof buffer);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			Loc l = file_loc(path);
			diag_error(c->diag, &l, "cannot read: %s", strerror(errno));
			return NULL;
		}
		if (n == 0)
			break;
		text_strn(&t, buffer, (size_t)n);
	}
	*size = t.len;
	// Aligned, so that readers may look at numbers in place.
	uint8_t *copy = arena_big(c->arena, t.len + 1);
	if (t.len)
		memcpy(copy, t.text, t.len);
	return copy;
}

static const uint8_t *map_fd(Context *c, Mapping *m, const char *path, size_t *size)
{
	int fd = m->fd;
	struct stat st;
	Loc l = file_loc(path);
	if (fstat(fd, &st) != 0) {
		diag_error(c->diag, &l, "cannot read: %s", strerror(errno));
		return NULL;
	}
	if (S_ISDIR(st.st_mode)) {
		diag_error(c->diag, &l, "is a directory");
		return NULL;
	}
	if (!S_ISREG(st.st_mode))
		return read_stream(c, fd, path, size);
	if (st.st_size == 0) {
		*size = 0;
		return arena_alloc(c->arena, 1);
	}
	if ((uintmax_t)st.st_size > SIZE_MAX) {
		diag_error(c->diag, &l, "too large for this machine");
		return NULL;
	}
	*size = (size_t)st.st_size;
	void *data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED) {
		diag_error(c->diag, &l, "cannot map: %s", strerror(errno));
		return NULL;
	}
	m->size = *size;
	return m->data = data;
}

const uint8_t *file_map(Context *c, const char *path, size_t *size)
{
	Mapping *m = NEW(c->arena, Mapping);
	m->fd = -1;
	arena_on_free(c->arena, mapping_release, m);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (m->fd < 0) {
		Loc l = file_loc(path);
		diag_error(c->diag, &l, "cannot open: %s", strerror(errno));
		return NULL;
	}
	const uint8_t *data = map_fd(c, m, path, size);
	close(m->fd);
	m->fd = -1;
	VEC_ROOM(c->arena, c->files, c->nfile, c->cfile);
	c->files[c->nfile++] = context_str(c, path);
	return data;
}

// ---- writing --------------------------------------------------------------------------------

// One output on its way: temp is NULL when it goes straight to a device.
typedef struct Output {
	const char *path, *temp;
	int fd;
	bool renamed;
} Output;

static bool output_fail(Context *c, const Output *o, const char *what)
{
	Loc l = file_loc(o->path);
	diag_error(c->diag, &l, "%s: %s", what, strerror(errno));
	return false;
}

static bool write_all(int fd, const void *data, size_t size)
{
	const char *p = data;
	while (size) {
		ssize_t n = write(fd, p, size < ((size_t)1 << 30) ? size : (size_t)1 << 30);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

// A fresh file beside the destination, with the permissions that the umask gives.
static bool output_open(Context *c, Output *o)
{
	struct stat st;
	if (stat(o->path, &st) == 0 && !S_ISREG(st.st_mode)) {
		o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
		return o->fd >= 0 || output_fail(c, o, "cannot write");
	}
	const char *slash = strrchr(o->path, '/');
	int folder = slash ? (int)(slash - o->path) + 1 : 0;
	for (int i = 0; i < 100; i++) {
		const char *temp = arena_printf(c->arena, "%.*s.%s.%ld.%d.tmp", folder, o->path,
		                                o->path + folder, (long)getpid(), i);
		o->fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (o->fd >= 0) {
			o->temp = temp;
			return true;
		}
		if (errno != EEXIST)
			break;
	}
	return output_fail(c, o, "cannot write");
}

static bool output_fill(Context *c, Output *o, const void *data, size_t size)
{
	bool ok = write_all(o->fd, data, size);
	// A full disk may show only here; devices and pipes know no fsync.
	if (ok && o->temp && fsync(o->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
		ok = false;
	int saved = errno;
	if (close(o->fd) != 0 && ok) {
		ok = false;
		saved = errno;
	}
	o->fd = -1;
	errno = saved;
	return ok || output_fail(c, o, "cannot write");
}

// Files that appear all or none.
typedef struct OutputGroup {
	int n; // 0: settled
	Output *outs;
} OutputGroup;

// Takes back what a group that failed has left; also when memory failed and nobody else can.
static void group_undo(void *what)
{
	OutputGroup *g = what;
	for (Output *o = g->outs; o < g->outs + g->n; o++) {
		if (o->fd >= 0)
			close(o->fd);
		if (o->temp)
			unlink(o->renamed ? o->path : o->temp);
	}
	g->n = 0;
}

static bool write_stdout(Context *c, const void *data, size_t size)
{
	Output o = {.path = "standard output", .fd = STDOUT_FILENO};
	// What stdio holds comes first.
	if (fflush(stdout) != 0 || !write_all(STDOUT_FILENO, data, size))
		return output_fail(c, &o, "cannot write");
	return true;
}

bool file_write(Context *c, const char *path, const void *data, size_t size)
{
	FilePiece p = {path, data, size};
	return file_write_group(c, 1, &p);
}

bool file_write_group(Context *c, int n, const FilePiece *pieces)
{
	OutputGroup *g = NEW(c->arena, OutputGroup);
	Output *outs = g->outs = NEW_ARRAY(c->arena, (size_t)n, Output);
	bool ok = true;
	arena_on_free(c->arena, group_undo, g);
	g->n = n;
	for (int i = 0; i < n; i++)
		outs[i].fd = -1;
	for (int i = 0; i < n && ok; i++) {
		outs[i].path = pieces[i].path;
		if (strcmp(pieces[i].path, "-") == 0)
			continue;
		ok = output_open(c, &outs[i]) && output_fill(c, &outs[i], pieces[i].data, pieces[i].size);
	}
	for (int i = 0; i < n && ok; i++) {
		if (!outs[i].temp)
			continue;
		ok = rename(outs[i].temp, outs[i].path) == 0;
		if (!ok)
			output_fail(c, &outs[i], "cannot write");
		outs[i].renamed = ok;
	}
	for (int i = 0; i < n && ok; i++)
		if (strcmp(pieces[i].path, "-") == 0)
			ok = write_stdout(c, pieces[i].data, pieces[i].size);
	if (!ok)
		group_undo(g);
	g->n = 0;
	return ok;
}
