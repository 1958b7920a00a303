/* Errors, the clock, guarded memory and .npy files of the harness. A part of harness.c, which alone
 * includes it. */
#ifndef HARNESS_NPY_H
#define HARNESS_NPY_H

#include "pdrt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_DIMS = 16, ZONE = 256, ZONE_BYTE = 0xa5 };

typedef struct Array {
	const char *descr; /* points into dtype_descr */
	int rank;
	int64_t dims[MAX_DIMS];
	size_t bytes;
	unsigned char *data;
} Array;

static void fail(const char *form, ...)
{
	va_list ap;
	va_start(ap, form);
	fprintf(stderr, "error: ");
	vfprintf(stderr, form, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

static double clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *list_new(int n, size_t size)
{
	void *p = calloc((size_t)n + 1, size);
	if (!p)
		fail("out of memory");
	return p;
}

static size_t round_up(size_t n)
{
	return (n + 63) / 64 * 64;
}

/* `size` bytes, aligned to 64, between two zones of canaries. */
static unsigned char *zone_new(size_t size)
{
	if (size > SIZE_MAX / 2)
		fail("out of memory");
	unsigned char *p = aligned_alloc(64, round_up(size) + 2 * ZONE);
	if (!p)
		fail("out of memory for %zu bytes", size);
	memset(p, ZONE_BYTE, ZONE);
	memset(p + ZONE + size, ZONE_BYTE, round_up(size) - size + ZONE);
	return p + ZONE;
}

static void zone_check(const unsigned char *p, size_t size, const char *what)
{
	for (size_t i = 0; i < ZONE; i++)
		if (p[-1 - (ptrdiff_t)i] != ZONE_BYTE || p[size + i] != ZONE_BYTE)
			fail("bytes outside of %s were written", what);
}

static void zone_free(unsigned char *p)
{
	if (p)
		free(p - ZONE);
}

/* ---- .npy ------------------------------------------------------------------------------------ */

/* By pd_dtype; bfloat16 is kept as its bits. */
static const char *const dtype_descr[] = {"|b1", "|u1", "|i1", "<i2", "<i4", "<i8",
                                          "<f2", "<u2", "<f4", "<f8", "<c8", "<c16"};

static const char *const dtype_names[] = {"bool", "u8",   "i8",  "i16", "i32", "i64",
                                          "f16",  "bf16", "f32", "f64", "c64", "c128"};

static void fail_dtype(const char *path, const char *descr, pd_dtype want)
{
	const size_t given = strcspn(descr + 1, "'\"");
	for (size_t i = 0; i < sizeof dtype_descr / sizeof *dtype_descr; i++)
		if (strlen(dtype_descr[i]) == given && !strncmp(descr + 1, dtype_descr[i], given))
			fail("'%s' holds %s, but the model wants %s", path, dtype_names[i], dtype_names[want]);
	fail("'%s' holds elements of type %.*s, but the model wants %s", path, (int)given + 2, descr,
	     dtype_names[want]);
}

static void read_exactly(FILE *f, void *to, size_t n, const char *path)
{
	if (fread(to, 1, n, f) != n)
		fail("'%s': file ends early", path);
}

static char *header_read(FILE *f, const char *path)
{
	unsigned char magic[8], size[4] = {0};
	read_exactly(f, magic, 8, path);
	if (memcmp(magic, "\x93NUMPY", 6) || magic[6] < 1 || magic[6] > 3)
		fail("'%s' is not a .npy file", path);
	read_exactly(f, size, magic[6] == 1 ? 2 : 4, path);
	size_t n = size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16 | (size_t)size[3] << 24;
	if (n > 1 << 20)
		fail("'%s': header too long", path);
	char *text = calloc(n + 1, 1);
	if (!text)
		fail("out of memory");
	read_exactly(f, text, n, path);
	return text;
}

/* The text after `'key':`. */
static const char *header_value(const char *header, const char *key, const char *path)
{
	const char *p = strstr(header, key);
	if (!p || !(p = strchr(p, ':')))
		fail("'%s': no %s in the header", path, key);
	p++;
	return p + strspn(p, " ");
}

static void shape_read(Array *a, const char *p, const char *path)
{
	if (*p++ != '(')
		fail("'%s': bad shape", path);
	for (;;) {
		p += strspn(p, " ,");
		if (*p == ')')
			return;
		char *end;
		errno = 0;
		long long d = strtoll(p, &end, 10);
		if (end == p || errno || d < 0 || a->rank == MAX_DIMS)
			fail("'%s': bad shape", path);
		a->dims[a->rank++] = d;
		p = end;
	}
}

/* Where element i of a C-ordered array lies in a Fortran-ordered one. */
static size_t fortran_index(const Array *a, size_t i)
{
	size_t at[MAX_DIMS], sum = 0;
	for (int d = a->rank; d-- > 0;) {
		at[d] = i % (size_t)a->dims[d];
		i /= (size_t)a->dims[d];
	}
	for (int d = a->rank; d-- > 0;)
		sum = sum * (size_t)a->dims[d] + at[d];
	return sum;
}

static void array_from_fortran(Array *a, size_t size)
{
	unsigned char *data = zone_new(a->bytes);
	for (size_t i = 0; i < a->bytes / size; i++)
		memcpy(data + i * size, a->data + fortran_index(a, i) * size, size);
	zone_free(a->data);
	a->data = data;
}

static Array npy_read(const char *path, pd_dtype want)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		fail("cannot read '%s': %s", path, strerror(errno));
	Array a = {0};
	char *header = header_read(f, path);
	const char *descr = header_value(header, "'descr'", path);
	a.descr = dtype_descr[want];
	size_t n = strlen(a.descr), size = pd_dtype_size(want);
	if (strncmp(descr + 1, a.descr, n) || descr[n + 1] != *descr)
		fail_dtype(path, descr, want);
	shape_read(&a, header_value(header, "'shape'", path), path);
	a.bytes = size;
	for (int d = 0; d < a.rank; d++) {
		if (a.dims[d] && a.bytes > SIZE_MAX / 4 / (size_t)a.dims[d])
			fail("'%s': too large", path);
		a.bytes *= (size_t)a.dims[d];
	}
	a.data = zone_new(a.bytes);
	read_exactly(f, a.data, a.bytes, path);
	if (!strncmp(header_value(header, "'fortran_order'", path), "True", 4) && a.rank > 1)
		array_from_fortran(&a, size);
	free(header);
	fclose(f);
	return a;
}

static void npy_write(const char *path, const Array *a)
{
	char shape[MAX_DIMS * 24] = "", header[MAX_DIMS * 24 + 128];
	for (int d = 0; d < a->rank; d++)
		snprintf(shape + strlen(shape), 24, "%s%" PRId64 "%s", d ? ", " : "", a->dims[d],
		         a->rank == 1 ? "," : "");
	int n = snprintf(header, sizeof header,
	                 "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", a->descr, shape);
	int padded = (n + 10 + 1 + 63) / 64 * 64 - 10;
	unsigned char magic[10] = "\x93NUMPY\x01";
	magic[7] = 0;
	magic[8] = (unsigned char)(padded & 255);
	magic[9] = (unsigned char)(padded >> 8);
	FILE *f = fopen(path, "wb");
	if (!f)
		fail("cannot write '%s': %s", path, strerror(errno));
	fwrite(magic, 1, 10, f);
	fprintf(f, "%s%*s\n", header, padded - n - 1, "");
	fwrite(a->data, 1, a->bytes, f);
	if (ferror(f) | fclose(f))
		fail("cannot write '%s'", path);
}

#endif
