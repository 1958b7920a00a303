/* Inputs and outputs that are more than a tensor in a file: offsets of LoD, as text, and tensor
 * arrays, as a file for each element. A part of harness.c, which alone includes it. */
#ifndef HARNESS_ARRAYS_H
#define HARNESS_ARRAYS_H

#include "harness_npy.h"

/* ---- LoD ------------------------------------------------------------------------------------- */

/* Where level `level` of the text `0,2,5;0,1,3,4,6,9` begins; NULL: there is no such level. */
static const char *lod_level(const char *text, int level)
{
	for (; text && level; level--) {
		text = strchr(text, ';');
		text += text != NULL;
	}
	return text;
}

static size_t lod_count(const char *text)
{
	size_t n = 1;
	for (; *text && *text != ';'; text++)
		n += *text == ',';
	return n;
}

/* The offsets of one level, which end at `end`. Without text it is one sequence. */
static Array lod_read(const char *name, const char *text, int64_t end)
{
	int64_t n = text ? (int64_t)lod_count(text) : 2, last = 0;
	Array a = {
		.descr = dtype_descr[PD_I64], .rank = 1, .dims = {n}, .bytes = (size_t)n * sizeof(int64_t)};
	a.data = zone_new(a.bytes);
	for (int64_t i = 0; i < n; i++) {
		char *rest = NULL;
		errno = 0;
		const int64_t v = text ? strtoll(text, &rest, 10) : i * end;
		if (text && (rest == text || errno || (*rest != ',' && *rest != ';' && *rest)))
			fail("--lod %s: '%s' is no list of offsets", name, text);
		if (v < last || (!i && v))
			fail("--lod %s: offsets start at 0 and do not fall", name);
		last = v;
		memcpy(a.data + (size_t)i * sizeof v, &v, sizeof v);
		text = rest ? rest + 1 : NULL;
	}
	if (last != end)
		fail("--lod %s: a level ends at %" PRId64 ", not at %" PRId64, name, last, end);
	return a;
}

/* One level as a line of text. */
static void lod_write(const char *path, const Array *a, bool first)
{
	FILE *f = fopen(path, first ? "w" : "a");
	if (!f)
		fail("cannot write '%s': %s", path, strerror(errno));
	for (int64_t i = 0; i < a->dims[0]; i++) {
		int64_t v;
		memcpy(&v, a->data + (size_t)i * sizeof v, sizeof v);
		fprintf(f, "%s%" PRId64, i ? "," : "", v);
	}
	fputc('\n', f);
	if (ferror(f) | fclose(f))
		fail("cannot write '%s'", path);
}

/* ---- tensor arrays --------------------------------------------------------------------------- */

/* The column of one part of the array whose data are in column k; -1: it has none. */
static int part_find(const pd_tensor_info *t, int n, int k, pd_part part)
{
	for (int i = 0; i < n; i++)
		if (t[i].part == part && t[i].part_of == k)
			return i;
	return -1;
}

static int64_t array_numel(const Array *a)
{
	int64_t n = 1;
	for (int d = 0; d < a->rank; d++)
		n *= a->dims[d];
	return n;
}

/* Elements that were read, as slices of one tensor; `sizes` where their dims differ, else NULL. */
static Array array_gather(const char *name, const Array *elements, int n, Array *sizes)
{
	Array a = {
		.descr = elements[0].descr, .rank = sizes ? 2 : elements[0].rank + 1, .dims = {n, 1}};
	size_t slice = 1;
	for (int i = 0; i < n; i++) {
		const Array *e = &elements[i];
		const bool same = !memcmp(e->dims, elements[0].dims, sizeof e->dims);
		if (e->rank != elements[0].rank || (!sizes && !same) || e->rank + 1 >= MAX_DIMS)
			fail("input '%s': element %d does not go with the first", name, i);
		if (array_numel(e) > a.dims[1])
			a.dims[1] = array_numel(e);
		slice = e->bytes > slice ? e->bytes : slice;
	}
	for (int d = 1; d < a.rank && !sizes; d++)
		a.dims[d] = elements[0].dims[d - 1];
	a.bytes = slice * (size_t)n;
	a.data = zone_new(a.bytes);
	memset(a.data, 0, a.bytes);
	if (sizes) {
		*sizes = (Array){.descr = dtype_descr[PD_I64], .rank = 2, .dims = {n, elements[0].rank}};
		sizes->bytes = (size_t)n * (size_t)elements[0].rank * sizeof(int64_t);
		sizes->data = zone_new(sizes->bytes);
	}
	for (int i = 0; i < n; i++) {
		memcpy(a.data + (size_t)i * slice, elements[i].data, elements[i].bytes);
		if (sizes)
			memcpy(sizes->data + (size_t)i * (size_t)elements[0].rank * sizeof(int64_t),
			       elements[i].dims, (size_t)elements[0].rank * sizeof(int64_t));
	}
	return a;
}

/* Writes the elements of an array as files of their own, PATH.<i>.npy. */
static void array_write(const pd_tensor_info *info, int n, const Array *out, int k,
                        const char *path)
{
	const int length = part_find(info, n, k, PD_ARRAY_LENGTH),
			  sizes = part_find(info, n, k, PD_ARRAY_SIZES);
	const int present = part_find(info, n, k, PD_ARRAY_PRESENT);
	Array e = {.descr = out[k].descr, .rank = out[k].rank - 1};
	memcpy(e.dims, out[k].dims + 1, (MAX_DIMS - 1) * sizeof *e.dims);
	const size_t size = pd_dtype_size(info[k].dtype), slice = size * (size_t)array_numel(&e);
	int64_t count;
	memcpy(&count, out[length].data, sizeof count);
	char *name = calloc(strlen(path) + 32, 1);
	if (!name)
		fail("out of memory");
	for (int64_t i = 0; i < count && i < out[k].dims[0]; i++) {
		if (sizes >= 0) {
			e.rank = (int)out[sizes].dims[1];
			memcpy(e.dims, out[sizes].data + (size_t)i * (size_t)e.rank * sizeof(int64_t),
			       (size_t)e.rank * sizeof(int64_t));
		}
		if ((present >= 0 && !out[present].data[i]) || (e.rank && e.dims[0] < 0))
			continue;
		e.bytes = size * (size_t)array_numel(&e);
		e.data = out[k].data + (size_t)i * slice;
		sprintf(name, "%s.%" PRId64 ".npy", path, i);
		npy_write(name, &e);
	}
	free(name);
}

#endif
