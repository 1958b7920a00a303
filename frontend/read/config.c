// Finds the .yml beside a program and what it says of the steps before and after it.
#include "frontend/read/config.h"
#include "frontend/read/read.h"
#include "ir/base/vec.h"

#include <string.h>

const ConfigNode *config_get(const ConfigNode *map, const char *key)
{
	for (int i = 0; map && map->kind == CONFIG_MAP && i < map->n; i++)
		if (!strcmp(map->keys[i], key))
			return map->items[i];
	return NULL;
}

bool config_is_null(const ConfigNode *n)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};
	for (size_t i = 0; n && n->kind == CONFIG_SCALAR && n->plain && i < COUNT_OF(words); i++)
		if (!strcmp(n->text, words[i]))
			return true;
	return !n;
}

static bool config_fail(Context *c, const ModelConfig *m, const ConfigNode *at, const char *text)
{
	Loc l = {.file = m->path, .block = -1, .op = -1, .line = at->line, .col = 1};
	diag_error(c->diag, &l, "%s", text);
	return false;
}

static const char *scalar_text(const ConfigNode *n)
{
	return n && n->kind == CONFIG_SCALAR && !config_is_null(n) ? n->text : NULL;
}

static void map_add(Context *c, ConfigNode *map, const char *key, const ConfigNode *item)
{
	int cap = map->cap;
	VEC_ROOM(c->arena, map->items, map->n, map->cap);
	VEC_ROOM(c->arena, map->keys, map->n, cap);
	map->keys[map->n] = key;
	map->items[map->n++] = item;
}

// The map without a key; NULL when nothing else is in it.
static const ConfigNode *map_without(Context *c, const ConfigNode *map, const char *key)
{
	ConfigNode *rest = NEW(c->arena, ConfigNode);
	*rest = (ConfigNode){.kind = CONFIG_MAP, .size = map->size, .line = map->line};
	for (int i = 0; i < map->n; i++)
		if (strcmp(map->keys[i], key))
			map_add(c, rest, map->keys[i], map->items[i]);
	return rest->n ? rest : NULL;
}

// ---- steps ----------------------------------------------------------------------------------

typedef struct StepList {
	Context *c;
	const ModelConfig *m;
	int n, cap;
	ConfigStep *steps;
} StepList;

static void step_add(StepList *l, const char *name, const ConfigNode *parameters)
{
	VEC_ROOM(l->c->arena, l->steps, l->n, l->cap);
	l->steps[l->n++] = (ConfigStep){name, config_is_null(parameters) ? NULL : parameters};
}

// `{type: Resize, ...}`, `{name: DBPostProcess, ...}`, `{ResizeImage: {...}}` or `ToCHWImage`.
static bool step_read(StepList *l, const ConfigNode *n)
{
	static const char *const named[] = {"type", "name"};
	if (scalar_text(n)) {
		step_add(l, n->text, NULL);
		return true;
	}
	for (size_t i = 0; i < COUNT_OF(named); i++) {
		const char *name = scalar_text(config_get(n, named[i]));
		if (name) {
			step_add(l, name, map_without(l->c, n, named[i]));
			return true;
		}
	}
	if (n->kind != CONFIG_MAP || n->n != 1)
		return config_fail(l->c, l->m, n, "a step has no name");
	step_add(l, n->keys[0], n->items[0]);
	return true;
}

static bool steps_read(StepList *l, const ConfigNode *n)
{
	if (config_is_null(n))
		return true;
	if (n->kind == CONFIG_SCALAR)
		return config_fail(l->c, l->m, n, "steps are expected here");
	if (n->kind == CONFIG_MAP && (config_get(n, "name") || config_get(n, "type")))
		return step_read(l, n);
	for (int i = 0; i < n->n; i++) {
		if (n->kind == CONFIG_MAP)
			step_add(l, n->keys[i], n->items[i]);
		else if (!step_read(l, n->items[i]))
			return false;
	}
	return true;
}

// ---- the file ---------------------------------------------------------------------------------

// Steps under a key of the top, or under another one below that; the rest of the latter's holder is
// a setting.
static bool section_read(StepList *l, ModelConfig *m, const char *key, const ConfigNode *n,
                         const char *inner)
{
	const ConfigNode *steps = config_get(n, inner);
	if (!steps)
		return steps_read(l, n);
	const ConfigNode *rest = map_without(l->c, n, inner);
	if (rest)
		map_add(l->c, &m->settings, key, rest);
	return steps_read(l, steps);
}

static bool is_word(const char *key, int n, const char *const *words)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(key, words[i]))
			return true;
	return false;
}

static bool entry_read(StepList *pre, StepList *post, ModelConfig *m, const char *key,
                       const ConfigNode *n)
{
	static const char *const before[] = {"PreProcess", "Preprocess"};
	static const char *const after[] = {"PostProcess", "Postprocess"};
	Context *c = pre->c;
	if (is_word(key, COUNT_OF(before), before))
		return section_read(pre, m, key, n, "transform_ops");
	if (is_word(key, COUNT_OF(after), after))
		return section_read(post, m, key, n, "transform_ops");
	if (!strcmp(key, "NMS") && !config_get(n, "name")) {
		step_add(post, key, n);
		return true;
	}
	if (!strcmp(key, "NMS"))
		return steps_read(post, n);
	if (!strcmp(key, "Deploy") && config_get(n, "transforms"))
		return section_read(pre, m, key, n, "transforms");
	if (!strcmp(key, "Global") && n->kind == CONFIG_MAP) {
		m->name = scalar_text(config_get(n, "model_name"));
		n = map_without(c, n, "model_name");
	} else if (!strcmp(key, "Hpi")) {
		n = NULL; // how Paddle's own engines are to run it
	}
	if (!config_is_null(n))
		map_add(c, &m->settings, key, n);
	return true;
}

static bool file_read(Context *c, ModelConfig *m)
{
	const ConfigNode *top = config_parse(c, m->path);
	StepList pre = {.c = c, .m = m}, post = {.c = c, .m = m};
	if (!top)
		return false;
	m->settings = (ConfigNode){.kind = CONFIG_MAP, .line = 1};
	for (int i = 0; i < top->n; i++)
		if (!entry_read(&pre, &post, m, top->keys[i], top->items[i]))
			return false;
	m->npre = pre.n;
	m->pre = pre.steps;
	m->npost = post.n;
	m->post = post.steps;
	return true;
}

bool config_read(Context *c, const char *program, ModelConfig **config)
{
	static const char *const endings[] = {".yml", ".yaml"};
	static const char *const names[] = {"infer_cfg.yml", "deploy.yaml"};
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
	const char *dot = strrchr(name, '.');
	const int folder = (int)(name - program);
	const int stem = (int)(dot && dot > name ? dot - program : (int)strlen(program));
	const char *path = NULL;
	*config = NULL;
	for (size_t i = 0; i < COUNT_OF(endings) && !path; i++) {
		const char *p = arena_printf(c->arena, "%.*s%s", stem, program, endings[i]);
		path = path_is_file(p) ? p : NULL;
	}
	for (size_t i = 0; i < COUNT_OF(names) && !path; i++) {
		const char *p = arena_printf(c->arena, "%.*s%s", folder, program, names[i]);
		path = path_is_file(p) ? p : NULL;
	}
	if (!path)
		return true;
	ModelConfig *m = NEW(c->arena, ModelConfig);
	m->path = path;
	if (!file_read(c, m))
		return false;
	*config = m;
	return true;
}
