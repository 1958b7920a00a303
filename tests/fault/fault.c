// Failures on demand: linked over a pdcc whose calls of allocation and of files are wrapped (`make
// fault`).
//
// PDCC_FAULT=KIND:N makes the Nth call of a kind fail, and all later ones succeed. Kinds: `alloc`;
// `io` (files and folders); `short` (a write takes half of its bytes, the next one fails: a disk
// that fills up). When the program ends, what it still holds is counted: blocks of memory, mappings
// and files. Then it ends with status 99. `fault: not reached` on standard error tells sweep.py
// that N is past the last call.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	const char *kind;
	long at, seen;
	bool hit;
	long blocks, mappings, files;
} fault;

static void report(void)
{
	if (fault.kind && !fault.hit)
		fputs("fault: not reached\n", stderr);
	if (!fault.blocks && !fault.mappings && !fault.files)
		return;
	fprintf(stderr, "fault: leaks %ld blocks, %ld mappings, %ld files\n", fault.blocks,
	        fault.mappings, fault.files);
	_exit(99);
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("PDCC_FAULT"), *colon = text ? strchr(text, ':') : NULL;
	if (colon) {
		fault.kind = text;
		fault.at = atol(colon + 1);
	}
	atexit(report);
}

static bool fails(const char *kind)
{
	size_t n = strlen(kind);
	if (!fault.kind || strncmp(fault.kind, kind, n) != 0 || fault.kind[n] != ':' ||
	    ++fault.seen != fault.at)
		return false;
	return fault.hit = true;
}

static bool io_fails(int error)
{
	if (!fails("io"))
		return false;
	errno = error;
	return true;
}

// ---- memory -------------------------------------------------------------------------------------

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void __real_free(void *p);

static void *held(void *p)
{
	fault.blocks += p != NULL;
	return p;
}

void *__wrap_malloc(size_t n)
{
	return fails("alloc") ? NULL : held(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails("alloc") ? NULL : held(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	if (fails("alloc"))
		return NULL;
	return p ? __real_realloc(p, n) : held(__real_realloc(p, n));
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return fails("alloc") ? NULL : held(__real_aligned_alloc(align, n));
}

void __wrap_free(void *p)
{
	fault.blocks -= p != NULL;
	__real_free(p);
}

// ---- files --------------------------------------------------------------------------------------

int __real_close(int fd);
ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __real_write(int fd, const void *p, size_t n);
int __real_fsync(int fd);
int __real_fstat(int fd, struct stat *st);
int __real_rename(const char *from, const char *to);
int __real_mkdir(const char *path, mode_t mode);
char *__real_mkdtemp(char *path);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *p, size_t n);

int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? (mode_t)va_arg(ap, int) : 0;
	va_end(ap);
	int fd = io_fails(EACCES) ? -1 : openat(AT_FDCWD, path, flags, mode);
	fault.files += fd >= 0;
	return fd;
}

// Closing fails the way it does over a network: the file is closed all the same.
int __wrap_close(int fd)
{
	fault.files--;
	int r = __real_close(fd);
	return io_fails(EIO) ? -1 : r;
}

ssize_t __wrap_read(int fd, void *p, size_t n)
{
	return io_fails(EIO) ? -1 : __real_read(fd, p, n);
}

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	if (fault.hit && fault.kind[0] == 's') {
		errno = ENOSPC;
		return -1;
	}
	if (fails("short"))
		n = n / 2 ? n / 2 : n;
	return io_fails(ENOSPC) ? -1 : __real_write(fd, p, n);
}

int __wrap_fsync(int fd)
{
	return io_fails(ENOSPC) ? -1 : __real_fsync(fd);
}

int __wrap_fstat(int fd, struct stat *st)
{
	return io_fails(EIO) ? -1 : __real_fstat(fd, st);
}

int __wrap_rename(const char *from, const char *to)
{
	return io_fails(EACCES) ? -1 : __real_rename(from, to);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	return io_fails(ENOSPC) ? -1 : __real_mkdir(path, mode);
}

char *__wrap_mkdtemp(char *path)
{
	return io_fails(ENOSPC) ? NULL : __real_mkdtemp(path);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	void *p = io_fails(ENOMEM) ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, offset);
	fault.mappings += p != MAP_FAILED;
	return p;
}

int __wrap_munmap(void *p, size_t n)
{
	fault.mappings--;
	return __real_munmap(p, n);
}
