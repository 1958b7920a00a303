// NumPy's .npy arrays, formats 1 to 3: what `pdcc run` is fed with and writes.
//
// Unsigned 16-bit arrays stand for bfloat16, which NumPy lacks: their elements are its bits.
#include "frontend/read/desc.h"
#include "frontend/read/read.h"

#include <string.h>

typedef struct NpyType {
	const char *descr; // without the byte order
	DType dtype;
} NpyType;

static const NpyType npy_types[] = {
	{"b1", DT_BOOL}, {"u1", DT_U8},  {"i1", DT_I8},   {"i2", DT_I16},
	{"i4", DT_I32},  {"i8", DT_I64}, {"u2", DT_BF16}, {"f2", DT_F16},
	{"f4", DT_F32},  {"f8", DT_F64}, {"c8", DT_C64},  {"c16", DT_C128},
};

typedef struct NpyHeader {
	DType dtype;
	bool fortran;
	int rank;
	int64_t dims[MAX_RANK];
} NpyHeader;

static bool npy_fail(Context *c, const char *path, const char *why)
{
	diag_error(c->diag, &(Loc){.file = path, .block = -1, .op = -1},
	           "not an array that pdcc reads: %s", why);
	return false;
}

// ---- the header: a Python dict literal ------------------------------------------------------

typedef struct Scan {
	const char *p, *end;
} Scan;

static void scan_space(Scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t'))
		s->p++;
}

static bool scan_char(Scan *s, char ch)
{
	scan_space(s);
	if (s->p == s->end || *s->p != ch)
		return false;
	s->p++;
	return true;
}

static bool scan_word(Scan *s, const char *word)
{
	size_t n = strlen(word);
	scan_space(s);
	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
		return false;
	s->p += n;
	return true;
}

// 'text' or "text" into buf; false when it is neither or too long.
static bool scan_string(Scan *s, char *buf, size_t size)
{
	scan_space(s);
	if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
		return false;
	char quote = *s->p++;
	size_t n = 0;
	while (s->p < s->end && *s->p != quote) {
		if (n + 1 >= size)
			return false;
		buf[n++] = *s->p++;
	}
	buf[n] = 0;
	return scan_char(s, quote);
}

static bool scan_dims(Scan *s, NpyHeader *h)
{
	if (!scan_char(s, '('))
		return false;
	while (!scan_char(s, ')')) {
		int64_t v = 0;
		int digits = 0;
		scan_space(s);
		for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; digits++, s->p++) {
			if (v > (INT64_MAX - 9) / 10)
				return false;
			v = v * 10 + (*s->p - '0');
		}
		scan_char(s, 'L'); // Python 2 wrote long integers so
		if (!digits || h->rank == MAX_RANK)
			return false;
		h->dims[h->rank++] = v;
		if (!scan_char(s, ',') && (s->p == s->end || *s->p != ')'))
			return false;
	}
	return true;
}

static bool descr_parse(const char *descr, NpyHeader *h)
{
	const char *t = descr;
	if (*t == '<' || *t == '|' || *t == '=')
		t++;
	if (strcmp(t, "?") == 0)
		t = "b1";
	for (size_t i = 0; i < COUNT_OF(npy_types); i++) {
		if (strcmp(t, npy_types[i].descr) == 0) {
			h->dtype = npy_types[i].dtype;
			return true;
		}
	}
	return false;
}

// The value of a key; NULL, or what is wrong.
static const char *descr_read(Scan *s, NpyHeader *h)
{
	char text[32];
	if (!scan_string(s, text, sizeof text))
		return "records are not supported";
	return descr_parse(text, h) ? NULL : "its element type is not supported";
}

static const char *order_read(Scan *s, NpyHeader *h)
{
	h->fortran = scan_word(s, "True");
	return h->fortran || scan_word(s, "False") ? NULL : "'fortran_order' is neither True nor False";
}

static const char *shape_read(Scan *s, NpyHeader *h)
{
	return scan_dims(s, h) ? NULL : "its shape is malformed or has too many axes";
}

// NULL, or what is wrong.
static const char *header_parse(Scan *s, NpyHeader *h)
{
	static const struct {
		const char *name;
		const char *(*read)(Scan *s, NpyHeader *h);
	} keys[] = {{"descr", descr_read}, {"fortran_order", order_read}, {"shape", shape_read}};
	static const char *const malformed = "its header is no dictionary";
	size_t seen[COUNT_OF(keys)] = {0}, found = 0;
	char key[32];
	if (!scan_char(s, '{'))
		return malformed;
	while (!scan_char(s, '}')) {
		size_t k = 0;
		if (!scan_string(s, key, sizeof key) || !scan_char(s, ':'))
			return malformed;
		while (k < COUNT_OF(keys) && strcmp(key, keys[k].name) != 0)
			k++;
		if (k == COUNT_OF(keys) || seen[k]++)
			return "its header has an unknown or repeated key";
		const char *wrong = keys[k].read(s, h);
		if (wrong)
			return wrong;
		found++;
		if (!scan_char(s, ',') && (s->p == s->end || *s->p != '}'))
			return malformed;
	}
	return found == COUNT_OF(keys) ? NULL : "its header lacks 'descr', 'fortran_order' or 'shape'";
}

// ---- reading --------------------------------------------------------------------------------

// Copies column-major elements into row-major order.
static void from_fortran(Tensor *t, const uint8_t *src)
{
	size_t size = dtype_size(t->dtype);
	int64_t n = tensor_numel(t), index[MAX_RANK] = {0}, stride[MAX_RANK];
	for (int64_t i = 0, s = 1; i < t->rank; s *= t->dims[i++])
		stride[i] = s;
	for (int64_t i = 0, from = 0; i < n; i++) {
		memcpy((uint8_t *)t->data + (size_t)i * size, src + (size_t)from * size, size);
		for (int a = t->rank - 1; a >= 0; a--) {
			from += stride[a];
			if (++index[a] < t->dims[a])
				break;
			from -= index[a] * stride[a];
			index[a] = 0;
		}
	}
}

// Where the header is; NULL when `data` is no .npy file.
static const char *npy_frame(const uint8_t *data, size_t size, size_t *start, size_t *length)
{
	if (size < 10 || memcmp(data, "\x93NUMPY", 6) != 0)
		return "it does not begin like a .npy file";
	int major = data[6];
	if (major < 1 || major > 3)
		return "unknown format version";
	*length = (size_t)data[8] | (size_t)data[9] << 8;
	*start = 10;
	if (major > 1) {
		if (size < 12)
			return "the file ends in its header";
		*length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
		*start = 12;
	}
	return *length > size - *start ? "the file ends in its header" : NULL;
}

// The header, and where the elements begin. NULL after a diagnostic.
static const uint8_t *npy_open(Context *c, const char *path, NpyHeader *h, size_t *size,
                               size_t *start)
{
	size_t length = 0;
	const uint8_t *data = file_map(c, path, size);
	if (!data)
		return NULL;
	const char *why = npy_frame(data, *size, start, &length);
	if (!why) {
		Scan s = {(const char *)data + *start, (const char *)data + *start + length};
		why = header_parse(&s, h);
	}
	if (why) {
		npy_fail(c, path, why);
		return NULL;
	}
	*start += length;
	return data;
}

int npy_rank(Context *c, const char *path)
{
	size_t size, start = 0;
	NpyHeader h = {0};
	return npy_open(c, path, &h, &size, &start) ? h.rank : -1;
}

Tensor *npy_read(Context *c, const char *path)
{
	size_t size, start = 0;
	NpyHeader h = {0};
	const uint8_t *data = npy_open(c, path, &h, &size, &start);
	if (!data)
		return NULL;
	// Count before allocating: a header may claim anything.
	uint64_t bytes;
	if (!dims_bytes(h.dtype, h.rank, h.dims, &bytes)) {
		npy_fail(c, path, "its shape is too large");
		return NULL;
	}
	if (bytes != size - start) {
		npy_fail(c, path,
		         bytes > size - start ? "the file is shorter than its shape says"
		                              : "the file is longer than its shape says");
		return NULL;
	}
	Tensor *t = tensor_new(c->arena, h.dtype, h.rank, h.dims);
	if (!t) {
		npy_fail(c, path, "its shape is too large");
		return NULL;
	}
	if (bytes && h.fortran && h.rank > 1)
		from_fortran(t, data + start);
	else if (bytes)
		memcpy(t->data, data + start, (size_t)bytes);
	return t;
}

// ---- writing --------------------------------------------------------------------------------

bool npy_write(Context *c, const char *path, const Tensor *t)
{
	enum { ALIGN = 64, PREFIX = 10 };
	Text x;
	const char *descr = "";
	for (size_t i = 0; i < COUNT_OF(npy_types); i++)
		if (npy_types[i].dtype == t->dtype)
			descr = npy_types[i].descr;
	text_init(&x, c->arena);
	text_strn(&x, "\x93NUMPY\x01\x00..", PREFIX);
	text_printf(&x, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
	            dtype_size(t->dtype) == 1 ? '|' : '<', descr);
	for (int i = 0; i < t->rank; i++)
		text_printf(&x, "%s%lld%s", i ? " " : "", (long long)t->dims[i],
		            i + 1 < t->rank || t->rank == 1 ? "," : "");
	text_str(&x, "), }");
	while ((x.len + 1) % ALIGN)
		text_char(&x, ' ');
	text_char(&x, '\n');
	x.text[8] = (char)((x.len - PREFIX) & 255);
	x.text[9] = (char)((x.len - PREFIX) >> 8);
	text_strn(&x, t->data ? t->data : "", t->data ? tensor_bytes(t) : 0);
	return file_write(c, path, x.text, x.len);
}
