// One record of a parameter file: reading it, and writing it back. Called by params.c.
#include "frontend/read/desc.h"
#include "frontend/read/params_record.h"
#include "frontend/read/read.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LOD_LEVELS = 8, RECORD_VERSION = 0 };

bool loader_fail(const Loader *l, const char *fmt, ...)
{
	const Loc loc = {.file = l->file, .block = -1, .op = -1, .var = l->var};
	va_list ap;
	va_start(ap, fmt);
	diag_verror(l->c->diag, &loc, NULL, fmt, ap);
	va_end(ap);
	return false;
}

// ---- reading --------------------------------------------------------------------------------

static bool take(Loader *l, void *to, size_t n, const char *what)
{
	if (n > l->size - l->at)
		return loader_fail(l, "the file ends at byte %zu, in the %s of this parameter", l->size,
		                   what);
	memcpy(to, l->data + l->at, n);
	l->at += n;
	return true;
}

static bool read_lod(Loader *l, Tensor *t)
{
	uint64_t levels = 0, bytes = 0;
	if (!take(l, &levels, sizeof levels, "LoD"))
		return false;
	if (levels > MAX_LOD_LEVELS)
		return loader_fail(
			l, "%" PRIu64 " LoD levels: not a parameter file, or parameters out of step", levels);
	t->nlod = (int)levels;
	t->lod = NEW_ARRAY(l->c->arena, levels, int64_t *);
	t->lod_len = NEW_ARRAY(l->c->arena, levels, size_t);
	for (size_t i = 0; i < levels; i++) {
		if (!take(l, &bytes, sizeof bytes, "LoD"))
			return false;
		if (bytes % sizeof(int64_t) || bytes > l->size - l->at)
			return loader_fail(l, "an LoD level of %" PRIu64 " bytes does not fit in the file",
			                   bytes);
		t->lod_len[i] = (size_t)bytes / sizeof(int64_t);
		t->lod[i] = NEW_ARRAY(l->c->arena, t->lod_len[i], int64_t);
		if (!take(l, t->lod[i], (size_t)bytes, "LoD"))
			return false;
	}
	return true;
}

static void *arena_take(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static void arena_keep(void *arena, void *what)
{
	(void)arena;
	(void)what;
}

// Element type and dims; sets *bytes to the size of the data.
static bool read_desc(Loader *l, Tensor *t, uint64_t *bytes)
{
	int32_t size = 0;
	ProtobufCAllocator allocator = {arena_take, arena_keep, l->c->arena};
	if (!take(l, &size, sizeof size, "description"))
		return false;
	if (size <= 0 || (size_t)size > l->size - l->at)
		return loader_fail(l,
		                   "a description of %" PRId32
		                   " bytes: not a parameter file, or parameters out of step",
		                   size);
	Paddle__TensorDesc *d = paddle__tensor_desc__unpack(&allocator, (size_t)size, l->data + l->at);
	l->at += (size_t)size;
	if (!d)
		return loader_fail(
			l, "its description is malformed: not a parameter file, or parameters out of step");
	if (!dtype_from_kind(d->data_type, &t->dtype))
		return loader_fail(l, "%" PRId32 " is no element type", d->data_type);
	if (d->n_dims > MAX_RANK)
		return loader_fail(l, "%zu axes are more than pdcc's %d", d->n_dims, MAX_RANK);
	t->rank = (int)d->n_dims;
	for (int i = 0; i < t->rank; i++)
		t->dims[i] = d->dims[i];
	return dims_bytes(t->dtype, t->rank, t->dims, bytes) ||
	       loader_fail(l, "its dims are negative or too large");
}

Tensor *read_record(Loader *l)
{
	uint32_t version = 0;
	uint64_t bytes = 0;
	Tensor *t = NEW(l->c->arena, Tensor);
	for (int i = 0; i < 2; i++) { // of the LoD tensor, then of the tensor in it
		if (!take(l, &version, sizeof version, "header"))
			return NULL;
		if (version != RECORD_VERSION) {
			loader_fail(l,
			            "version %" PRIu32
			            " is unknown: not a parameter file, or parameters out of step",
			            version);
			return NULL;
		}
		if (i == 0 && !read_lod(l, t))
			return NULL;
	}
	if (!read_desc(l, t, &bytes))
		return NULL;
	if (bytes > l->size - l->at) {
		loader_fail(l,
		            "the file ends at byte %zu, but the data of this parameter need %" PRIu64
		            " bytes from %zu on",
		            l->size, bytes, l->at);
		return NULL;
	}
	const uint8_t *data = l->data + l->at;
	l->at += (size_t)bytes;
	// In place where the elements are aligned. Nobody writes to a parameter.
	size_t align = dtype_is_complex(t->dtype) ? dtype_size(t->dtype) / 2 : dtype_size(t->dtype);
	t->data = bytes ? (void *)(uintptr_t)data : NULL;
	if (bytes && (uintptr_t)data % align) {
		t->data = arena_big(l->c->arena, (size_t)bytes);
		memcpy(t->data, data, (size_t)bytes);
	}
	return t;
}

// ---- writing --------------------------------------------------------------------------------

static void put(Text *x, const void *data, size_t n)
{
	text_strn(x, data, n);
}

static void encode_record(Context *c, Text *x, const Tensor *t)
{
	const uint32_t version = RECORD_VERSION;
	uint64_t levels = (uint64_t)t->nlod;
	put(x, &version, sizeof version);
	put(x, &levels, sizeof levels);
	for (int i = 0; i < t->nlod; i++) {
		uint64_t bytes = t->lod_len[i] * sizeof(int64_t);
		put(x, &bytes, sizeof bytes);
		put(x, t->lod[i], (size_t)bytes);
	}
	put(x, &version, sizeof version);
	Paddle__TensorDesc d = PADDLE__TENSOR_DESC__INIT;
	d.data_type = kind_from_dtype(t->dtype);
	d.n_dims = (size_t)t->rank;
	d.dims = (int64_t *)(uintptr_t)t->dims;
	int32_t size = (int32_t)paddle__tensor_desc__get_packed_size(&d);
	uint8_t *packed = arena_alloc(c->arena, (size_t)size);
	paddle__tensor_desc__pack(&d, packed);
	put(x, &size, sizeof size);
	put(x, packed, (size_t)size);
	if (t->data)
		put(x, t->data, tensor_bytes(t));
}

bool params_encode(Context *c, int n, Tensor *const *tensors, uint8_t **data, size_t *size)
{
	Text x;
	text_init(&x, c->arena);
	for (int i = 0; i < n; i++)
		encode_record(c, &x, tensors[i]);
	*data = (uint8_t *)x.text;
	*size = x.len;
	return true;
}
