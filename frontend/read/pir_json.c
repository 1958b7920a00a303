// Members of the JSON document, texts in the arena, and errors at the operation at hand. Below the
// other pir_*.c files.
#include "frontend/read/pir.h"

#include <inttypes.h>
#include <string.h>

bool pir_fail(PirReader *r, const char *fmt, ...)
{
	const Loc l = {.file = r->path, .block = -1, .op = -1};
	const char *before = r->at
	                         ? arena_printf(r->c->arena, "block %d, operation %d '%s': ", r->block,
	                                        r->op, r->at)
	                         : NULL;
	va_list ap;
	va_start(ap, fmt);
	diag_verror(r->c->diag, &l, before, fmt, ap);
	va_end(ap);
	return false;
}

json_object *pir_get(json_object *o, const char *key, enum json_type type)
{
	json_object *v = NULL;
	if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &v))
		return NULL;
	return json_object_is_type(v, type) ? v : NULL;
}

bool pir_int(json_object *o, const char *key, int64_t *v)
{
	json_object *n = pir_get(o, key, json_type_int);
	if (n)
		*v = json_object_get_int64(n);
	return n != NULL;
}

char *pir_text(PirReader *r, json_object *string)
{
	return arena_strndup(r->c->arena, json_object_get_string(string),
	                     (size_t)json_object_get_string_len(string));
}

char *pir_copy(PirReader *r, const char *s)
{
	return arena_strndup(r->c->arena, s, strlen(s));
}
