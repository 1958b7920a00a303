// Reads a program of Paddle 3: the JSON document, what must hold before its operations are looked
// at, and its blocks. Called by model.c when a file begins as JSON does. Schema and versions:
// Paddle's serialize_deserialize, 3.0 to 3.3.
#include "frontend/read/pir.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <string.h>

enum {
	MAX_DEPTH = 64,
	MAX_JSON_DEPTH = 16 + 8 * MAX_DEPTH,
	NEWEST_VERSION = 4,
	MAX_BLOCKS = INT16_MAX
};

// ---- the document -----------------------------------------------------------------------------

static void document_free(void *what)
{
	json_object **o = what;
	json_object_put(*o);
	*o = NULL;
}

static void tokener_free(void *what)
{
	json_tokener **t = what;
	if (*t)
		json_tokener_free(*t);
	*t = NULL;
}

// The document; owned by *keep, which the arena lets go. NULL after a diagnostic.
static json_object *parse(PirReader *r, const char *data, size_t size, json_object **keep)
{
	json_tokener **t = NEW(r->c->arena, json_tokener *);
	arena_on_free(r->c->arena, tokener_free, t);
	arena_on_free(r->c->arena, document_free, keep);
	*t = json_tokener_new_ex(MAX_JSON_DEPTH);
	if (!*t || size > INT32_MAX) {
		pir_fail(r, *t ? "%zu bytes are too many" : "out of memory for a file of %zu bytes", size);
		return NULL;
	}
	json_tokener_set_flags(*t, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
	*keep = json_tokener_parse_ex(*t, data, (int)size);
	enum json_tokener_error e = json_tokener_get_error(*t);
	size_t end = json_tokener_get_parse_end(*t);
	tokener_free(t);
	while (end < size && strchr(" \t\r\n", data[end]))
		end++;
	if (e == json_tokener_continue)
		pir_fail(r, "the file ends in the middle of the program, after %zu bytes", size);
	else if (e != json_tokener_success)
		pir_fail(r, "not JSON at byte %zu: %s", end, json_tokener_error_desc(e));
	else if (end < size)
		pir_fail(r, "something follows the program at byte %zu", end);
	else
		return *keep;
	return NULL;
}

// The head of the file. Later versions may mean something else by what they say.
static bool check_head(PirReader *r, json_object *document)
{
	json_object *head = pir_get(document, "base_code", json_type_object);
	json_object *magic = pir_get(head, "magic", json_type_string);
	int64_t version = 0;
	if (!magic || strcmp(json_object_get_string(magic), "pir") != 0)
		return pir_fail(
			r,
			"not a Paddle program: JSON without Paddle's mark ('base_code' with 'magic' \"pir\")");
	if (!pir_int(head, "version", &version) || version < 1)
		return pir_fail(r, "its 'base_code' names no version");
	if (version > NEWEST_VERSION)
		return pir_fail(
			r, "is of version %" PRId64 " of the format; pdcc knows those up to %d (Paddle 3.3)",
			version, NEWEST_VERSION);
	return true;
}

// ---- blocks -----------------------------------------------------------------------------------

PirBlock pir_block_new(PirReader *r, int parent)
{
	Paddle__BlockDesc *d = NEW(r->c->arena, Paddle__BlockDesc);
	paddle__block_desc__init(d);
	d->idx = (int32_t)r->p->n_blocks;
	d->parent_idx = parent;
	VEC_ROOM(r->c->arena, r->p->blocks, r->p->n_blocks, r->cblocks);
	r->p->blocks[r->p->n_blocks++] = d;
	return (PirBlock){.desc = d};
}

static json_object *only(PirReader *r, json_object *holder, const char *key, const char *what)
{
	json_object *list = pir_get(holder, key, json_type_array);
	json_object *one = list && json_object_array_length(list) == 1
	                       ? json_object_array_get_idx(list, 0)
	                       : NULL;
	if (!one) // a null, too
		pir_fail(r, "must hold one %s", what);
	return one;
}

static bool is_terminator(json_object *op)
{
	json_object *name = pir_get(op, "#", json_type_string);
	return name && strcmp(json_object_get_string(name), "2.yield") == 0;
}

bool pir_region(PirReader *r, PirBlock *b, json_object *region, json_object **terminator)
{
	json_object *block = only(r, region, "blocks", "block");
	json_object *ops = block ? pir_get(block, "ops", json_type_array) : NULL;
	*terminator = NULL;
	if (!block)
		return false;
	if (!ops)
		return pir_fail(r, "a block has no list of operations");
	if (++r->depth > MAX_DEPTH || r->p->n_blocks > MAX_BLOCKS)
		return pir_fail(r, "regions nest deeper than %d, or are too many", MAX_DEPTH);
	bool ok = true;
	for (size_t i = 0; i < json_object_array_length(ops); i++) {
		json_object *op = json_object_array_get_idx(ops, i);
		const PirReader outer = *r;
		r->block = b->desc->idx;
		r->op = (int)i;
		if (*terminator)
			return pir_fail(r, "an operation follows the end of a block");
		if (is_terminator(op))
			*terminator = op;
		else
			ok &= pir_op(r, b, op);
		r->at = outer.at;
		r->block = outer.block;
		r->op = outer.op;
	}
	r->depth--;
	return ok;
}

Paddle__ProgramDesc *pir_read(Context *c, const char *path, const uint8_t *data, size_t size)
{
	PirReader r = {.c = c,
	               .path = path,
	               .values = name_map_new(c->arena),
	               .counts = name_map_new(c->arena),
	               .names = name_map_new(c->arena)};
	json_object **keep = NEW(c->arena, json_object *), *end = NULL;
	r.p = NEW(c->arena, Paddle__ProgramDesc);
	paddle__program_desc__init(r.p);
	json_object *document = parse(&r, (const char *)data, size, keep);
	bool ok = document && check_head(&r, document);
	json_object *program = ok ? pir_get(document, "program", json_type_object) : NULL;
	json_object *region = ok ? only(&r, program, "regions", "region") : NULL;
	PirBlock b = pir_block_new(&r, -1);
	ok = region && pir_region(&r, &b, region, &end);
	if (ok && end)
		ok = pir_fail(&r, "the program ends in a yield");
	document_free(keep);
	return ok ? r.p : NULL;
}
