// Reads a program: the protobuf of `.pdmodel` and `__model__`, and what its wire format
// leaves open; JSON is read by pir_read.c.
//
// Whatever passes here is safe to walk: every block index is in range, parents and sub-blocks form
// trees.
#include "frontend/read/gradient_names.h"
#include "frontend/read/pir.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_NESTING = 64, MAX_VAR_KIND = 63 };

static Loc model_loc(const char *path)
{
	return (Loc){.file = path, .block = -1, .op = -1};
}

// ---- the wire format ------------------------------------------------------------------------

static void *arena_take(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static void arena_keep(void *arena, void *what)
{
	(void)arena;
	(void)what;
}

static bool read_varint(const uint8_t *data, size_t size, size_t *at, uint64_t *v)
{
	*v = 0;
	for (int shift = 0; shift < 64 && *at < size; shift += 7) {
		uint8_t byte = data[(*at)++];
		*v |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			return true;
	}
	return false;
}

// Walks the outermost fields, to tell a file that was cut from one that is something else. Returns
// the offset of the field that does not fit; `size` when all do.
static size_t broken_field(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t start = at;
		uint64_t tag, n = 0;
		if (!read_varint(data, size, &at, &tag) || tag >> 3 == 0)
			return start;
		switch (tag & 7) {
		case 0:
			if (!read_varint(data, size, &at, &tag))
				return start;
			break;
		case 1: n = 8; break;
		case 2:
			if (!read_varint(data, size, &at, &n))
				return start;
			break;
		case 5: n = 4; break;
		default: return start;
		}
		if (n > size - at)
			return start;
		at += (size_t)n;
	}
	return size;
}

// Other formats of models, by how their files begin. What the bytes at `at` are.
static const struct {
	size_t at;
	const char *begin, *what;
} other_formats[] = {
	{0, "PK\x03\x04", "a zip archive, as PyTorch writes it"},
	{0, "\x80\x02", "a pickle, as Python writes it (.pdparams holds parameters and no program)"},
	{0, "\x80\x04", "a pickle, as Python writes it (.pdparams holds parameters and no program)"},
	{0, "\x89HDF", "an HDF5 file, as Keras writes it"},
	{4, "TFL3", "a TensorFlow Lite model"},
	{0,
     "\x7f"
     "ELF",
     "a program or shared library"},
};

// ONNX begins with its version (field 1, a number) and the name or version of what wrote it (2, 3).
static bool is_onnx(const char *path, const uint8_t *data, size_t size)
{
	const size_t n = strlen(path);
	return (n > 5 && !strcmp(path + n - 5, ".onnx")) ||
	       (size > 4 && data[0] == 0x08 && data[1] < 0x20 && (data[2] == 0x12 || data[2] == 0x1a));
}

static const char *format_of(const char *path, const uint8_t *data, size_t size)
{
	if (is_onnx(path, data, size))
		return "an ONNX model";
	for (size_t i = 0; i < COUNT_OF(other_formats); i++) {
		const size_t at = other_formats[i].at, n = strlen(other_formats[i].begin);
		if (size >= at + n && !memcmp(data + at, other_formats[i].begin, n))
			return other_formats[i].what;
	}
	return NULL;
}

static void report_unreadable(Context *c, const char *path, const uint8_t *data, size_t size)
{
	Loc l = model_loc(path);
	size_t at = broken_field(data, size);
	const char *format = size ? format_of(path, data, size) : NULL;
	if (size == 0)
		diag_error(c->diag, &l, "is empty");
	else if (format)
		diag_error(c->diag, &l,
		           "is %s, not a Paddle program; pdcc takes what paddle.jit.save and "
		           "paddle.static.save_inference_model write (.pdmodel, .json)",
		           format);
	else if (data[0] != 0x0a) // field 1, a block
		diag_error(c->diag, &l, "not a Paddle program");
	else if (at < size)
		diag_error(c->diag, &l,
		           "not a Paddle program, or cut: the field at byte %zu does not fit in %zu bytes",
		           at, size);
	else
		diag_error(c->diag, &l, "not a Paddle program: malformed, or a required field is missing");
}

// ---- what the wire format does not check ----------------------------------------------------

typedef struct Check {
	Context *c;
	const Paddle__ProgramDesc *p;
	const char *path;
	bool ok;
} Check;

static void PRINTF_LIKE(2, 3) check_fail(Check *k, const char *fmt, ...)
{
	va_list ap;
	Loc l = model_loc(k->path);
	va_start(ap, fmt);
	diag_verror(k->c->diag, &l, NULL, fmt, ap);
	va_end(ap);
	k->ok = false;
}

static void check_sub_block(Check *k, int block, size_t op, const char *attr, int32_t idx)
{
	const char *type = k->p->blocks[block]->ops[op]->type;
	// Block 0 is the program itself; nothing can hold it.
	if (idx <= 0 || (size_t)idx >= k->p->n_blocks)
		check_fail(
			k, "block %d, op %zu '%s': attribute '%s' names block %" PRId32 ", which is not there",
			block, op, type, attr, idx);
	else if (idx == block)
		check_fail(k, "block %d, op %zu '%s': attribute '%s' names the block that it is in", block,
		           op, type, attr);
}

static void check_ops(Check *k, int index)
{
	const Paddle__BlockDesc *b = k->p->blocks[index];
	for (size_t i = 0; i < b->n_ops; i++) {
		for (size_t j = 0; j < b->ops[i]->n_attrs; j++) {
			const Paddle__OpAttr *a = b->ops[i]->attrs[j];
			if (a->type == PADDLE__ATTR_KIND__BLOCK)
				check_sub_block(k, index, i, a->name, a->has_block_idx ? a->block_idx : -1);
			for (size_t n = 0; a->type == PADDLE__ATTR_KIND__BLOCKS && n < a->n_blocks_idx; n++)
				check_sub_block(k, index, i, a->name, a->blocks_idx[n]);
		}
	}
}

static void check_vars(Check *k, int index)
{
	const Paddle__BlockDesc *b = k->p->blocks[index];
	for (size_t i = 0; i < b->n_vars; i++) {
		int32_t kind = b->vars[i]->type->type;
		if (kind < 0 || kind > MAX_VAR_KIND)
			check_fail(k, "block %d, variable '%s': %" PRId32 " is no type of variable", index,
			           b->vars[i]->name, kind);
	}
}

static void check_block(Check *k, int index)
{
	const Paddle__BlockDesc *b = k->p->blocks[index];
	int count = (int)k->p->n_blocks;
	if (b->idx != index)
		check_fail(k, "block %d says that it is block %" PRId32, index, b->idx);
	if (index == 0 ? b->parent_idx >= 0 : b->parent_idx < 0 || b->parent_idx >= count)
		check_fail(k, "block %d: %" PRId32 " is no parent for it", index, b->parent_idx);
	check_vars(k, index);
	check_ops(k, index);
}

// Every block must reach block 0 through its parents.
static void check_parents(Check *k)
{
	int count = (int)k->p->n_blocks;
	for (int i = 1; i < count; i++) {
		int at = i, steps = 0;
		while (at > 0 && steps <= MAX_NESTING) {
			at = k->p->blocks[at]->parent_idx;
			steps++;
		}
		if (at > 0) {
			check_fail(k, "block %d: its parents form a cycle, or nest deeper than %d", i,
			           MAX_NESTING);
			return;
		}
	}
}

// Depth-first through sub-block attributes; `state`: 0 new, 1 on the way here, 2 done.
static bool check_nesting(Check *k, int index, uint8_t *state, int depth)
{
	const Paddle__BlockDesc *b = k->p->blocks[index];
	if (state[index] == 2)
		return true;
	if (state[index] == 1 || depth > MAX_NESTING) {
		check_fail(k, "block %d: its operators hold it again, or nest deeper than %d", index,
		           MAX_NESTING);
		return false;
	}
	state[index] = 1;
	for (size_t i = 0; i < b->n_ops; i++) {
		for (size_t j = 0; j < b->ops[i]->n_attrs; j++) {
			const Paddle__OpAttr *a = b->ops[i]->attrs[j];
			if (a->type == PADDLE__ATTR_KIND__BLOCK &&
			    !check_nesting(k, a->block_idx, state, depth + 1))
				return false;
			for (size_t n = 0; a->type == PADDLE__ATTR_KIND__BLOCKS && n < a->n_blocks_idx; n++)
				if (!check_nesting(k, a->blocks_idx[n], state, depth + 1))
					return false;
		}
	}
	state[index] = 2;
	return true;
}

static bool check_program(Context *c, const Paddle__ProgramDesc *p, const char *path)
{
	Check k = {.c = c, .p = p, .path = path, .ok = true};
	if (p->n_blocks == 0) {
		check_fail(&k, "not a Paddle program: it holds no blocks");
		return false;
	}
	if (p->n_blocks > INT16_MAX) {
		check_fail(&k, "%zu blocks are too many", p->n_blocks);
		return false;
	}
	for (size_t i = 0; i < p->n_blocks; i++)
		check_block(&k, (int)i);
	if (!k.ok)
		return false;
	check_parents(&k);
	return k.ok && check_nesting(&k, 0, arena_alloc(c->arena, p->n_blocks), 0);
}

// Paddle 3 writes JSON. A legacy program whose first block has 123 bytes begins with a line's end
// and a brace, too, and the tag of the block's number behind it.
static bool is_json(const uint8_t *data, size_t size)
{
	size_t at = 0;
	while (at < size && strchr(" \t\r\n", data[at]))
		at++;
	enum { BLOCK_NUMBER = 0x08 };
	return at < size && data[at] == '{' && (at + 1 == size || data[at + 1] != BLOCK_NUMBER);
}

// The gradient of foo2 is foo_grad2 at times; here it is foo2_grad, as that of every other
// operator.
static void name_second_gradients(Context *c, const Paddle__ProgramDesc *p)
{
	for (size_t b = 0; b < p->n_blocks; b++)
		for (size_t i = 0; i < p->blocks[b]->n_ops; i++) {
			Paddle__OpDesc *d = p->blocks[b]->ops[i];
			size_t n;
			if (name_ends_with(d->type, "_grad2", &n))
				d->type = arena_printf(c->arena, "%.*s2_grad", (int)n, d->type);
		}
}

Paddle__ProgramDesc *model_read(Context *c, const char *path)
{
	size_t size;
	if (path_is_folder(path)) {
		path = folder_program(c, path);
		if (!path)
			return NULL;
	}
	c->file = context_str(c, path);
	const uint8_t *data = file_map(c, path, &size);
	if (!data)
		return NULL;
	c->file_hash = bytes_hash(BYTES_HASH_START, data, size);
	if (is_json(data, size)) {
		Paddle__ProgramDesc *pir = pir_read(c, path, data, size);
		return pir && check_program(c, pir, path) ? pir : NULL;
	}
	ProtobufCAllocator allocator = {arena_take, arena_keep, c->arena};
	Paddle__ProgramDesc *p = size ? paddle__program_desc__unpack(&allocator, size, data) : NULL;
	if (!p) {
		report_unreadable(c, path, data, size);
		return NULL;
	}
	if (!check_program(c, p, path))
		return NULL;
	name_second_gradients(c, p);
	return p;
}
