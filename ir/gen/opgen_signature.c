// opgen: what an entry says of its operands, attributes, results, regions and traits, as the arrays
// and words that a row of ops_table.inc (opgen_table.c) names.
#include "ir/gen/opgen.h"

#include <stdlib.h>
#include <string.h>

static const char *const class_names[] = {"any", "float", "int", "bool", "number", "index"};
static const char *const attr_names[] = {"bool",  "int",  "float",  "str",   "type",
                                         "dtype", "ints", "floats", "strs",  "bools",
                                         "dim",   "dims", "tensor", "number"};
static const char *const trait_names[] = {
	"pure",      "terminator", "commutative", "view",   "broadcast",  "primitive",
	"compare",   "constant",   "cheap",       "steps",  "apart",      "apart_c",
	"space",     "enlarges",   "repacks",     "rounds", "axis_moves", "axis_new",
	"one_block", "rows",       "stores_once", "shares", "branch",     "sizes_of"};

// What `kind?` or `kind*` or `kind...` says, and `kind@2` of two axes, `kind@2+` of two or more.
typedef struct Suffixed {
	const char *word;
	bool optional, vec, rest;
	int min_rank, max_rank;
} Suffixed;

// Takes `@2` or `@2+` from the end of the word.
static void split_rank(Suffixed *s)
{
	const char *at = strchr(s->word, '@');
	s->max_rank = -1;
	if (!at)
		return;
	s->min_rank = atoi(at + 1);
	if (s->word[strlen(s->word) - 1] != '+')
		s->max_rank = s->min_rank;
	s->word = copy_n(s->word, (size_t)(at - s->word));
}

static Suffixed split_suffix(const char *text)
{
	Suffixed s = {.word = text};
	size_t n = strlen(text);
	if (n > 3 && !strcmp(text + n - 3, "...")) {
		s.rest = true;
		n -= 3;
	}
	for (; n && strchr("?*", text[n - 1]); n--) {
		s.optional |= text[n - 1] == '?';
		s.vec |= text[n - 1] == '*';
	}
	s.word = copy_n(text, n);
	split_rank(&s);
	return s;
}

// Begins an array of that type; its name.
static const char *array_begin(Gen *g, FILE *f, const char *type, const char *stem)
{
	const char *name = format("%s_%d", stem, g->serial++);
	fprintf(f, "static const %s %s[] = {", type, name);
	return name;
}

const char *write_operands(Gen *g, FILE *f, const Entry *e, bool *rest)
{
	if (!e->operands.n)
		return "NULL";
	const char *name = array_begin(g, f, "OperandInfo", "operands");
	for (int i = 0; i < e->operands.n; i++) {
		const Item *it = &e->operands.items[i];
		Suffixed s = split_suffix(it->text ? it->text : "");
		if (find_word(class_names, COUNT(class_names), s.word) < 0)
			fail(e, it->line, "unknown operand class '%s'", s.word);
		if (s.rest && i + 1 < e->operands.n)
			fail(e, it->line, "only the last operand may repeat");
		*rest |= s.rest;
		fprintf(f, "{\"%s\", CLASS_%s, %s, %s, %d, %s}, ", it->key, upper(s.word),
		        s.optional || s.rest ? "true" : "false", s.vec ? "true" : "false", s.min_rank,
		        s.max_rank < 0 ? "MAX_RANK" : format("%d", s.max_rank));
	}
	fputs("};\n", f);
	return name;
}

// What an attribute holds: a kind, or `enum NAME`.
typedef struct Holds {
	const char *kind;
	const Enum *choices;
} Holds;

static Holds attribute_holds(const Gen *g, const Entry *e, const Item *it, const char *word)
{
	bool is_enum = !strncmp(word, "enum ", 5);
	Holds h = {.kind = is_enum ? "str" : word};
	if (is_enum)
		h.choices = find_enum(g, trim(word + 5, strlen(word + 5)));
	if (find_word(attr_names, COUNT(attr_names), h.kind) < 0 || (is_enum && !h.choices))
		fail(e, it->line, "unknown attribute kind '%s'", word);
	return h;
}

// The default of an attribute in the text form of attributes.
static const char *default_text(const Entry *e, const Item *it, Holds h, const char *text)
{
	if (!text || strcmp(h.kind, "str"))
		return text;
	const char *quoted = text[0] == '"' ? text : format("\"%s\"", text);
	if (h.choices &&
	    find_word(h.choices->words, h.choices->n, copy_n(quoted + 1, strlen(quoted) - 2)) < 0)
		fail(e, it->line, "%s is not in '%s'", quoted, h.choices->name);
	return quoted;
}

// The operand that stands behind the arrow of an attribute's text; NULL: none.
static const char *operand_of(const Entry *e, const Item *it, const char *arrow)
{
	const char *operand = arrow ? trim(arrow + 2, strlen(arrow + 2)) : NULL;
	if (operand && !find_item(&e->operands, operand))
		fail(e, it->line, "no operand '%s'", operand);
	return operand;
}

const char *write_attributes(Gen *g, FILE *f, const Entry *e)
{
	if (!e->attributes.n)
		return "NULL";
	const char *name = array_begin(g, f, "AttrInfo", "attrs");
	for (int i = 0; i < e->attributes.n; i++) {
		const Item *it = &e->attributes.items[i];
		const char *text = it->text ? it->text : "";
		const char *arrow = strstr(text, "<-");
		const char *operand = operand_of(e, it, arrow);
		size_t n = arrow ? (size_t)(arrow - text) : strlen(text);
		const char *eq = memchr(text, '=', n);
		const char *fallback = eq ? trim(eq + 1, n - (size_t)(eq + 1 - text)) : NULL;
		Suffixed s = split_suffix(trim(text, eq ? (size_t)(eq - text) : n));
		Holds h = attribute_holds(g, e, it, s.word);
		fallback = default_text(e, it, h, fallback);
		const bool any_number = !strcmp(h.kind, "number");
		fprintf(f, "{\"%s\", ATTR_%s, %s, ", it->key, upper(any_number ? "float" : h.kind),
		        fallback || operand || s.optional ? "false" : "true");
		write_string(f, fallback);
		fputs(", ", f);
		write_string(f, operand);
		fprintf(f, ", %s, ", any_number ? "true" : "false");
		fprintf(f, h.choices ? "&enum_%s}, " : "NULL}, ", h.choices ? h.choices->name : "");
	}
	fputs("};\n", f);
	return name;
}

const char *traits_of(const Entry *e, const char *kind, bool rest_in, bool rest_out)
{
	static const char *const pure_kinds[] = {"map",   "reduce",   "scan",
	                                         "index", "contract", "composite"};
	const char *text = "0", *list[MAX_ITEMS];
	const Item *it = find_item(&e->fields, "traits");
	int n = it ? read_list(e, it, list, MAX_ITEMS) : 0;
	for (int i = 0; i < n; i++) {
		if (find_word(trait_names, COUNT(trait_names), list[i]) < 0)
			fail(e, it->line, "unknown trait '%s'", list[i]);
		text = format("%s | TRAIT_%s", text, upper(list[i]));
	}
	if (find_word(pure_kinds, COUNT(pure_kinds), kind) >= 0)
		text = format("%s | TRAIT_PURE", text);
	if (find_item(&e->fields, "c"))
		text = format("%s | TRAIT_PRIMITIVE", text);
	if (!strcmp(kind, "map") && e->operands.n > 1)
		text = format("%s | TRAIT_BROADCAST", text);
	if (rest_in)
		text = format("%s | TRAIT_REPEAT_OPERAND", text);
	if (rest_out)
		text = format("%s | TRAIT_REPEAT_RESULT", text);
	return text;
}

const char *word_code(const Gen *g, const Entry *e, const Item *it, const char *name)
{
	const Enum *n = find_enum(g, name);
	if (!it)
		return "0";
	int i = n && it->text ? find_word(n->words, n->n, it->text) : -1;
	if (i < 0)
		fail(e, it->line, "'%s' must be one of enumeration '%s'", it->key, name);
	return format("%s_%s", n->prefix, upper(n->words[i]));
}

void write_result_names(Gen *g, FILE *f, const Entry *e, const char **names, const char **types,
                        bool *rest)
{
	const char *n[MAX_ITEMS] = {0}, *t[MAX_ITEMS];
	bool any = false;
	for (int i = 0; i < e->results.n; i++) {
		Suffixed s = split_suffix(e->results.items[i].text ? e->results.items[i].text : "");
		n[i] = e->results.items[i].key;
		t[i] = strcmp(s.word, "infer") ? s.word : NULL;
		*rest |= s.rest;
		any |= t[i] != NULL;
	}
	*names = write_strings(g, f, e->results.n, n);
	*types = any ? write_strings(g, f, e->results.n, t) : "NULL";
	bool infer = find_item(&e->fields, "infer") != NULL;
	for (int i = 0; i < e->results.n; i++)
		if (!t[i] && !infer)
			fail(e, e->line, "result '%s' says infer, but there is no infer hook", n[i]);
}

const char *write_regions(Gen *g, FILE *f, const Entry *e, int *min, const char **max)
{
	const Item *it = find_item(&e->fields, "regions");
	const char *names[MAX_ITEMS];
	const int n = it ? read_list(e, it, names, MAX_ITEMS) : 0;
	*max = format("%d", n);
	for (int i = 0; i < n; i++) {
		Suffixed s = split_suffix(names[i]);
		names[i] = s.word;
		*min += !s.optional;
		if (s.rest && (i > 0 || n != 2))
			fail(e, it->line, "only the first of two regions may repeat");
		if (s.rest)
			*max = "MOST_REGIONS";
	}
	return write_strings(g, f, n, names);
}
