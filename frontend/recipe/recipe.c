// Reads the recipe of --train. Every key is in a table with the kinds of loss, optimizer or
// schedule that it goes with; whatever else stands in the file is refused by name. Called by
// session.c.
#include "frontend/recipe/recipe.h"
#include "frontend/read/config.h"
#include "ir/base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct RecipeReader {
	Context *c;
	const char *path;
	Recipe *r;
} RecipeReader;

static bool PRINTF_LIKE(3, 4) fail(const RecipeReader *y, int line, const char *fmt, ...)
{
	const Loc l = {.file = y->path, .block = -1, .op = -1, .line = line, .col = line ? 1 : 0};
	va_list ap;
	va_start(ap, fmt);
	diag_verror(y->c->diag, &l, NULL, fmt, ap);
	va_end(ap);
	return false;
}

typedef enum KeyKind {
	KEY_WORD,   // one of the words: int
	KEY_FLAG,   // true or false: bool
	KEY_NUMBER, // double
	KEY_COUNT,  // int64_t
	KEY_NAME,   // RecipeName
	KEY_NAMES,  // RecipeNames
	KEY_OTHER   // read by somebody else
} KeyKind;

#define ANY (~0u)

// A key of a map. `of` and `needed` have a bit for each kind (of loss, ...) that the map may say.
typedef struct Key {
	const char *name;
	KeyKind kind;
	size_t member;            // of Recipe
	unsigned of, needed;      // goes with; must be there with
	const char *const *words; // ends with NULL
	double least, most;       // numbers and counts
} Key;

#define AT(member) offsetof(Recipe, member)
#define BELOW_ONE 0x1.fffffffffffffp-1
#define COUNT_LIMIT 9007199254740992.0 // 2^53, up to which doubles hold whole numbers

static const char *const loss_words[] = {"cross_entropy", "mse", "fetch", NULL};
static const char *const from_words[] = {"logits", "probabilities", NULL};
static const char *const reduction_words[] = {"", "mean", "sum", NULL};
static const char *const schedule_words[] = {"constant", "step", "cosine", NULL};
static const char *const metric_words[] = {"loss", "accuracy", "learning_rate", "grad_norm", NULL};
static const char *const norm_words[] = {"train", "freeze", NULL};
static const char *const dropout_words[] = {"", "off", "train", NULL};

#define ENTROPY (1u << LOSS_CROSS_ENTROPY)
#define LABELLED (ENTROPY | 1u << LOSS_MSE)
static const Key loss_keys[] = {
	{"type", KEY_WORD, AT(loss_kind), ANY, ANY, loss_words, 0, 0},
	{"of", KEY_NAME, AT(of), ANY, 0, NULL, 0, 0},
	{"label", KEY_NAME, AT(label), LABELLED, LABELLED, NULL, 0, 0},
	{"from", KEY_WORD, AT(from), ENTROPY, ENTROPY, from_words, 0, 0},
	{"soft_label", KEY_FLAG, AT(soft_label), ENTROPY, 0, NULL, 0, 0},
	{"label_smoothing", KEY_NUMBER, AT(label_smoothing), ENTROPY, 0, NULL, 0, 1},
	{"reduction", KEY_WORD, AT(reduction), ANY, 0, reduction_words, 0, 0},
};

#define MOMENTUM (1u << OPTIMIZER_MOMENTUM)
#define ADAMS (1u << OPTIMIZER_ADAM | 1u << OPTIMIZER_ADAMW)
static const Key optimizer_keys[] = {
	{"type", KEY_WORD, AT(optimizer), ANY, ANY, optimizer_words, 0, 0},
	{"momentum", KEY_NUMBER, AT(momentum), MOMENTUM, MOMENTUM, NULL, 0, 1},
	{"nesterov", KEY_FLAG, AT(nesterov), MOMENTUM, 0, NULL, 0, 0},
	{"beta1", KEY_NUMBER, AT(beta1), ADAMS, 0, NULL, 0, BELOW_ONE},
	{"beta2", KEY_NUMBER, AT(beta2), ADAMS, 0, NULL, 0, BELOW_ONE},
	{"epsilon", KEY_NUMBER, AT(epsilon), ADAMS, 0, NULL, 0, 1},
	{"weight_decay", KEY_NUMBER, AT(weight_decay), ANY, 0, NULL, 0, 1e9},
	{"no_decay", KEY_NAMES, AT(no_decay), ANY, 0, NULL, 0, 0},
};

#define CHANGES (1u << SCHEDULE_STEP | 1u << SCHEDULE_COSINE)
static const Key rate_keys[] = {
	{"schedule", KEY_WORD, AT(schedule), ANY, 0, schedule_words, 0, 0},
	{"base", KEY_NUMBER, AT(learning_rate), ANY, ANY, NULL, 0, 1e9},
	{"steps", KEY_COUNT, AT(steps), CHANGES, CHANGES, NULL, 1, COUNT_LIMIT},
	{"factor", KEY_NUMBER, AT(factor), 1u << SCHEDULE_STEP, 1u << SCHEDULE_STEP, NULL, 0, 1e9},
	{"end", KEY_NUMBER, AT(end), 1u << SCHEDULE_COSINE, 0, NULL, 0, 1e9},
	{"warmup", KEY_COUNT, AT(warmup), ANY, 0, NULL, 0, COUNT_LIMIT},
	{"warmup_from", KEY_NUMBER, AT(warmup_from), ANY, 0, NULL, 0, 1e9},
};

static const Key clip_keys[] = {
	{"global_norm", KEY_NUMBER, AT(clip), ANY, ANY, NULL, 1e-30, 1e30},
};

static const Key top_keys[] = {
	{"loss", KEY_OTHER, 0, ANY, ANY, NULL, 0, 0},
	{"optimizer", KEY_OTHER, 0, ANY, ANY, NULL, 0, 0},
	{"learning_rate", KEY_OTHER, 0, ANY, ANY, NULL, 0, 0},
	{"clip", KEY_OTHER, 0, ANY, 0, NULL, 0, 0},
	{"metrics", KEY_OTHER, 0, ANY, 0, NULL, 0, 0},
	{"freeze", KEY_NAMES, AT(freeze), ANY, 0, NULL, 0, 0},
	{"batch_norm", KEY_WORD, AT(batch_norm), ANY, 0, norm_words, 0, 0},
	{"dropout", KEY_WORD, AT(dropout), ANY, 0, dropout_words, 0, 0},
	{"seed", KEY_COUNT, AT(seed), ANY, 0, NULL, 0, COUNT_LIMIT},
};

// ---- values -------------------------------------------------------------------------------------

static bool is_text(const ConfigNode *n)
{
	return n->kind == CONFIG_SCALAR && *n->text && !config_is_null(n);
}

// Which word it is; -1 after a diagnostic. An empty word stands for none.
static int word_read(const RecipeReader *y, const char *key, const ConfigNode *n,
                     const char *const *words)
{
	int count = 0;
	Text list;
	text_init(&list, y->c->arena);
	const char *given = n->kind == CONFIG_SCALAR ? n->text : "";
	for (; words[count]; count++) {
		if (*given && !strcmp(words[count], given))
			return count;
		if (*words[count])
			text_printf(&list, "%s%s", list.len ? ", " : "", words[count]);
	}
	fail(y, n->line, "%s: '%s' is none of %s%s", key, given, list.text,
	     *given ? name_meant(y->c->arena, given, count, words) : "");
	return -1;
}

static bool number_read(const RecipeReader *y, const Key *k, const ConfigNode *n, double *out)
{
	char *end = NULL;
	errno = 0;
	double v = is_text(n) && n->plain ? strtod(n->text, &end) : 0;
	if (!end || end == n->text || *end || !isfinite(v) || strpbrk(n->text, "xXpP"))
		return fail(y, n->line, "%s: '%s' is no number", k->name,
		            n->kind == CONFIG_SCALAR ? n->text : "");
	if (v < k->least || v > k->most)
		return fail(y, n->line, "%s: %s is not between %g and %g", k->name, n->text, k->least,
		            k->most);
	if (k->kind == KEY_COUNT && v != floor(v))
		return fail(y, n->line, "%s: %s is no whole number", k->name, n->text);
	*out = v;
	return true;
}

static bool flag_read(const RecipeReader *y, const char *key, const ConfigNode *n, bool *out)
{
	static const char *const words[] = {"false", "true", NULL};
	const int at = word_read(y, key, n, words);
	*out = at == 1;
	return at >= 0;
}

static bool names_read(const RecipeReader *y, const char *key, const ConfigNode *n,
                       RecipeNames *out)
{
	const int count = n->kind == CONFIG_LIST ? n->n : 1;
	RecipeName *list = NEW_ARRAY(y->c->arena, (size_t)count + 1, RecipeName);
	for (int i = 0; i < count; i++) {
		const ConfigNode *item = n->kind == CONFIG_LIST ? n->items[i] : n;
		if (!is_text(item))
			return fail(y, item->line, "%s: names of parameters are expected here", key);
		list[i] = (RecipeName){context_str(y->c, item->text), item->line};
	}
	*out = (RecipeNames){count, list};
	return true;
}

static bool value_read(const RecipeReader *y, const Key *k, const ConfigNode *n)
{
	void *member = (char *)y->r + k->member;
	double v = 0;
	switch (k->kind) {
	case KEY_WORD: return (*(int *)member = word_read(y, k->name, n, k->words)) >= 0;
	case KEY_FLAG: return flag_read(y, k->name, n, member);
	case KEY_NAMES: return names_read(y, k->name, n, member);
	case KEY_NUMBER: return number_read(y, k, n, member);
	case KEY_COUNT:
		if (!number_read(y, k, n, &v))
			return false;
		*(int64_t *)member = (int64_t)v;
		return true;
	case KEY_NAME:
		if (!is_text(n))
			return fail(y, n->line, "%s: a name is expected here", k->name);
		*(RecipeName *)member = (RecipeName){context_str(y->c, n->text), n->line};
		return true;
	default: return true;
	}
}

// ---- maps ---------------------------------------------------------------------------------------

typedef struct KeyTable {
	const char *name; // of the map, for messages
	int n;
	const Key *keys;
} KeyTable;

#define TABLE(name, keys) ((KeyTable){name, (int)COUNT_OF(keys), keys})

static const Key *key_find(const KeyTable *t, const char *name)
{
	for (int i = 0; i < t->n; i++)
		if (!strcmp(t->keys[i].name, name))
			return &t->keys[i];
	return NULL;
}

// What stands in the map is known, each key once.
static bool keys_known(const RecipeReader *y, const KeyTable *t, const ConfigNode *map)
{
	const char *names[16];
	for (int i = 0; i < t->n; i++)
		names[i] = t->keys[i].name;
	if (map->kind != CONFIG_MAP)
		return fail(y, map->line, "%s: keys are expected here", t->name);
	if (map->again)
		return fail(y, config_get(map, map->again)->line, "%s: key '%s' stands there twice",
		            t->name, map->again);
	for (int i = 0; i < map->n; i++)
		if (!key_find(t, map->keys[i]))
			return fail(y, map->items[i]->line, "%s has no key '%s'%s", t->name, map->keys[i],
			            name_meant(y->c->arena, map->keys[i], t->n, names));
	return true;
}

// The value of one key in a map of a kind, whose word is `said`.
static bool key_read(const RecipeReader *y, const KeyTable *t, const Key *k, const ConfigNode *map,
                     int kind, const char *said)
{
	const ConfigNode *n = config_get(map, k->name);
	if (!n)
		return !(k->needed & 1u << kind) || fail(y, map->line, "%s%s%s needs key '%s'", t->name,
		                                         *said ? " " : "", said, k->name);
	if (!(k->of & 1u << kind))
		return fail(y, n->line, "%s: key '%s' does not go with %s", t->name, k->name, said);
	return value_read(y, k, n);
}

// Reads the map; `kind` is the number of the word at its key `chooser` (NULL: none), or the
// default.
static bool map_read(const RecipeReader *y, KeyTable t, const ConfigNode *map, const char *chooser)
{
	const Key *choice = chooser ? key_find(&t, chooser) : NULL;
	const ConfigNode *chosen = choice ? config_get(map, chooser) : NULL;
	if (!keys_known(y, &t, map) || (chosen && !value_read(y, choice, chosen)))
		return false;
	const int kind = choice ? *(int *)((char *)y->r + choice->member) : 0;
	const char *said = chosen ? choice->words[kind] : "";
	for (int i = 0; i < t.n; i++)
		if (&t.keys[i] != choice && !key_read(y, &t, &t.keys[i], map, kind, said))
			return false;
	return !choice || chosen || !(choice->needed & 1u << kind) ||
	       fail(y, map->line, "%s needs key '%s'", t.name, chooser);
}

// A number, or a map with its schedule.
static bool rate_read(const RecipeReader *y, const ConfigNode *n)
{
	Key base = *key_find(&TABLE("learning_rate", rate_keys), "base");
	base.name = "learning_rate";
	if (n->kind == CONFIG_SCALAR)
		return number_read(y, &base, n, &y->r->learning_rate);
	if (!map_read(y, TABLE("learning_rate", rate_keys), n, "schedule"))
		return false;
	const ConfigNode *from = config_get(n, "warmup_from");
	return !from || y->r->warmup ||
	       fail(y, from->line, "learning_rate: key 'warmup_from' does not go without 'warmup'");
}

static bool metrics_read(const RecipeReader *y, const ConfigNode *n)
{
	const int count = n->kind == CONFIG_LIST ? n->n : 1;
	for (int i = 0; i < count; i++) {
		const ConfigNode *item = n->kind == CONFIG_LIST ? n->items[i] : n;
		const int at = word_read(y, "metrics", item, metric_words);
		if (at < 0)
			return false;
		if (at == METRIC_ACCURACY && y->r->loss_kind != LOSS_CROSS_ENTROPY)
			return fail(y, item->line, "metrics: accuracy goes with loss cross_entropy");
		y->r->metrics[at] = true;
	}
	return true;
}

bool recipe_read(Context *c, const char *path, Recipe *r)
{
	*r = (Recipe){.path = path, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
	const RecipeReader y = {c, path, r};
	const ConfigNode *top = config_parse(c, path);
	if (!top || !map_read(&y, TABLE("recipe", top_keys), top, NULL))
		return false;
	const ConfigNode *clip = config_get(top, "clip"), *metrics = config_get(top, "metrics");
	const ConfigNode *seed = config_get(top, "seed");
	if (seed && r->dropout != DROPOUT_TRAIN)
		return fail(&y, seed->line, "recipe: key 'seed' does not go without 'dropout: train'");
	return map_read(&y, TABLE("loss", loss_keys), config_get(top, "loss"), "type") &&
	       map_read(&y, TABLE("optimizer", optimizer_keys), config_get(top, "optimizer"), "type") &&
	       rate_read(&y, config_get(top, "learning_rate")) &&
	       (!clip || map_read(&y, TABLE("clip", clip_keys), clip, NULL)) &&
	       (!metrics || metrics_read(&y, metrics));
}
