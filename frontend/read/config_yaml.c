// Reads a YAML file as values, through libyaml's events. Called by config.c. What a hostile file
// could make large is bounded: bytes, depth, and values with aliases written out.
#include "frontend/read/config.h"
#include "frontend/read/desc.h"
#include "frontend/read/read.h"
#include "ir/base/vec.h"

#include <string.h>
#include <yaml.h>

enum { MAX_BYTES = 1 << 24, MAX_CONFIG_DEPTH = 64, MAX_VALUES = 1 << 20, MAX_KEYS = 1 << 12 };

// libyaml's memory, which the arena lets go when memory failure leaves the functions below.
typedef struct YamlReader {
	Context *c;
	const char *path;
	yaml_parser_t parser;
	yaml_event_t event;
	bool open, held; // whether parser and event hold something
	NameMap *anchors;
	int depth;
	int64_t values;
} YamlReader;

static void event_drop(YamlReader *y)
{
	if (y->held)
		yaml_event_delete(&y->event);
	y->held = false;
}

static void reader_free(void *what)
{
	YamlReader *y = what;
	event_drop(y);
	if (y->open)
		yaml_parser_delete(&y->parser);
	y->open = false;
}

static void *config_fail(YamlReader *y, size_t line, const char *text)
{
	Loc l = {.file = y->path, .block = -1, .op = -1, .line = (int)line, .col = line ? 1 : 0};
	diag_error(y->c->diag, &l, "%s", text);
	return NULL;
}

// The next event is in y->event. False after a diagnostic.
static bool event_next(YamlReader *y)
{
	event_drop(y);
	if (yaml_parser_parse(&y->parser, &y->event)) {
		y->held = true;
		return true;
	}
	const yaml_parser_t *p = &y->parser;
	if (p->error == YAML_MEMORY_ERROR)
		oom_raise(MAX_BYTES);
	const char *why = p->problem ? p->problem : "not to be read";
	if (p->error == YAML_READER_ERROR)
		config_fail(y, 0,
		            arena_printf(y->c->arena, "not YAML at byte %zu: %s", p->problem_offset, why));
	else
		config_fail(y, p->problem_mark.line + 1, arena_printf(y->c->arena, "not YAML: %s", why));
	return false;
}

static size_t event_line(const YamlReader *y)
{
	return y->event.start_mark.line + 1;
}

// Where an anchor is remembered; NULL: the value has none.
static const char *anchor_name(YamlReader *y, const yaml_char_t *anchor)
{
	return anchor ? context_str(y->c, (const char *)anchor) : NULL;
}

static bool count_values(YamlReader *y, int64_t n)
{
	y->values += n;
	if (y->values <= MAX_VALUES)
		return true;
	return config_fail(y, event_line(y),
	                   arena_printf(y->c->arena, "more than %d values", MAX_VALUES)) != NULL;
}

static ConfigNode *read_scalar(YamlReader *y)
{
	ConfigNode *n = NEW(y->c->arena, ConfigNode);
	const char *text = (const char *)y->event.data.scalar.value;
	const size_t length = y->event.data.scalar.length;
	n->line = (int)event_line(y);
	if (strlen(text) != length)
		return config_fail(y, event_line(y), "a text holds a zero byte");
	n->text = arena_strndup(y->c->arena, text, length);
	n->plain = y->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	n->size = 1;
	return n;
}

static const ConfigNode *read_value(YamlReader *y);

// The value of a key. The last one of several holds, as in Paddle's own reader.
static bool add_pair(YamlReader *y, ConfigNode *n, const char *key)
{
	int at = 0, cap = n->cap;
	while (at < n->n && strcmp(n->keys[at], key))
		at++;
	n->again = at < n->n ? key : n->again;
	if (at == MAX_KEYS)
		return config_fail(y, event_line(y),
		                   arena_printf(y->c->arena, "more than %d keys", MAX_KEYS)) != NULL;
	const ConfigNode *item = event_next(y) ? read_value(y) : NULL;
	if (!item)
		return false;
	n->size += item->size;
	if (at == n->n) {
		VEC_ROOM(y->c->arena, n->items, n->n, n->cap);
		VEC_ROOM(y->c->arena, n->keys, n->n, cap);
		n->n++;
	}
	n->items[at] = item;
	n->keys[at] = key;
	return true;
}

static ConfigNode *node_new(YamlReader *y, ConfigKind kind)
{
	ConfigNode *n = NEW(y->c->arena, ConfigNode);
	*n = (ConfigNode){.kind = kind, .size = 1, .line = (int)event_line(y)};
	return n;
}

static const ConfigNode *read_list(YamlReader *y)
{
	ConfigNode *n = node_new(y, CONFIG_LIST);
	for (;;) {
		if (!event_next(y))
			return NULL;
		if (y->event.type == YAML_SEQUENCE_END_EVENT)
			return n;
		const ConfigNode *item = read_value(y);
		if (!item)
			return NULL;
		n->size += item->size;
		VEC_ROOM(y->c->arena, n->items, n->n, n->cap);
		n->items[n->n++] = item;
	}
}

static const ConfigNode *read_map(YamlReader *y)
{
	ConfigNode *n = node_new(y, CONFIG_MAP);
	for (;;) {
		if (!event_next(y))
			return NULL;
		if (y->event.type == YAML_MAPPING_END_EVENT)
			return n;
		if (y->event.type != YAML_SCALAR_EVENT)
			return config_fail(y, event_line(y), "a key is no text");
		const ConfigNode *key = read_scalar(y);
		if (!key || !add_pair(y, n, key->text))
			return NULL;
	}
}

static const ConfigNode *read_alias(YamlReader *y)
{
	const char *name = (const char *)y->event.data.alias.anchor;
	const ConfigNode *n = name_map_get(y->anchors, name);
	if (!n)
		return config_fail(y, event_line(y),
		                   arena_printf(y->c->arena, "alias '%s' names no value before it", name));
	return count_values(y, n->size) ? n : NULL;
}

// The value that begins with y->event.
static const ConfigNode *read_value(YamlReader *y)
{
	const ConfigNode *n;
	const char *anchor = NULL;
	if (y->event.type == YAML_ALIAS_EVENT)
		return read_alias(y);
	if (!count_values(y, 1))
		return NULL;
	if (++y->depth > MAX_CONFIG_DEPTH)
		return config_fail(
			y, event_line(y),
			arena_printf(y->c->arena, "values nest deeper than %d", MAX_CONFIG_DEPTH));
	if (y->event.type == YAML_SEQUENCE_START_EVENT) {
		anchor = anchor_name(y, y->event.data.sequence_start.anchor);
		n = read_list(y);
	} else if (y->event.type == YAML_MAPPING_START_EVENT) {
		anchor = anchor_name(y, y->event.data.mapping_start.anchor);
		n = read_map(y);
	} else {
		anchor = anchor_name(y, y->event.data.scalar.anchor);
		n = read_scalar(y);
	}
	y->depth--;
	if (n && anchor)
		name_map_set(y->anchors, anchor, (void *)(uintptr_t)n);
	return n;
}

static const ConfigNode *read_document(YamlReader *y)
{
	if (!event_next(y) || !event_next(y)) // the stream's start, the document's
		return NULL;
	if (y->event.type == YAML_STREAM_END_EVENT)
		return config_fail(y, 0, "holds nothing");
	const ConfigNode *top = event_next(y) ? read_value(y) : NULL;
	if (!top || !event_next(y) || !event_next(y)) // the document's end
		return NULL;
	if (y->event.type != YAML_STREAM_END_EVENT)
		return config_fail(y, event_line(y), "a second document begins");
	return top->kind == CONFIG_MAP ? top : config_fail(y, 0, "holds no keys");
}

const ConfigNode *config_parse(Context *c, const char *path)
{
	size_t size;
	const uint8_t *data = file_map(c, path, &size);
	if (!data)
		return NULL;
	YamlReader *y = NEW(c->arena, YamlReader);
	*y = (YamlReader){.c = c, .path = path, .anchors = name_map_new(c->arena)};
	if (size > MAX_BYTES)
		return config_fail(y, 0, arena_printf(c->arena, "%zu bytes are too many", size));
	arena_on_free(c->arena, reader_free, y);
	if (!yaml_parser_initialize(&y->parser))
		oom_raise(sizeof y->parser);
	y->open = true;
	yaml_parser_set_input_string(&y->parser, data, size);
	const ConfigNode *top = read_document(y);
	reader_free(y);
	return top;
}
