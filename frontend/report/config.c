// What `pdcc info` says of the .yml beside a program: steps before and after it, as text, JSON and
// rows of the page.
#include "frontend/report/report.h"

#include <ctype.h>
#include <string.h>

enum { ITEMS_SHOWN = 8, NAME_WIDTH = 24 };

// ---- values -----------------------------------------------------------------------------------

static const char *digits_end(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return s;
}

// Numbers as JSON has them; others that YAML knows (010, 0x10, 1_000, .inf) stay text.
static bool is_number(const char *s)
{
	s += *s == '-';
	const char *end = digits_end(s);
	if (end == s || (*s == '0' && end > s + 1))
		return false;
	if (*end != '.')
		return !*end;
	s = end + 1;
	end = digits_end(s);
	if (end == s || !*end)
		return end != s;
	if ((*end != 'e' && *end != 'E') || (end[1] != '+' && end[1] != '-'))
		return false;
	s = end + 2;
	return digits_end(s) != s && !*digits_end(s);
}

// "true", "false", or NULL: the words that Paddle's reader takes for truth values.
static const char *truth(const char *s)
{
	static const char *const words[] = {"true", "True", "TRUE", "yes",   "Yes",   "YES",
	                                    "on",   "On",   "ON",   "false", "False", "FALSE",
	                                    "no",   "No",   "NO",   "off",   "Off",   "OFF"};
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (!strcmp(s, words[i]))
			return i < COUNT_OF(words) / 2 ? "true" : "false";
	return NULL;
}

// A name as it is where nobody could take it for something else, else in quotes.
static void word_print(Text *t, const char *s)
{
	const char *end = s;
	while (isalnum((unsigned char)*end) || *end == '_')
		end++;
	if (isalpha((unsigned char)*s) && !*end)
		text_str(t, s);
	else
		text_json(t, s);
}

static void scalar_print(Text *t, const ConfigNode *n, bool json)
{
	const char *word = n->plain ? truth(n->text) : NULL;
	if (config_is_null(n))
		text_str(t, "null");
	else if (word)
		text_str(t, word);
	else if (json && !(n->plain && is_number(n->text)))
		text_json(t, n->text);
	else if (n->plain && is_number(n->text))
		text_str(t, n->text);
	else
		word_print(t, n->text);
}

// JSON, or text for people: of what is long only the beginning.
static void value_print(Text *t, const ConfigNode *n, bool json)
{
	const int shown = json || n->n <= ITEMS_SHOWN ? n->n : ITEMS_SHOWN;
	const bool list = n->kind == CONFIG_LIST;
	if (n->kind == CONFIG_SCALAR) {
		scalar_print(t, n, json);
		return;
	}
	text_char(t, list ? '[' : '{');
	for (int i = 0; i < shown; i++) {
		text_str(t, i ? ", " : "");
		if (!list) {
			text_json(t, n->keys[i]);
			text_str(t, ": ");
		}
		value_print(t, n->items[i], json);
	}
	if (shown < n->n)
		text_printf(t, ", ... (%d)", n->n);
	text_char(t, list ? ']' : '}');
}

// ---- text -------------------------------------------------------------------------------------

// The parameters of a step as `a=1 b=[2, 3]`, or its only value.
static void parameters_print(Text *t, const ConfigNode *n)
{
	if (n->kind != CONFIG_MAP) {
		value_print(t, n, false);
		return;
	}
	for (int i = 0; i < n->n; i++) {
		text_str(t, i ? " " : "");
		word_print(t, n->keys[i]);
		text_char(t, '=');
		value_print(t, n->items[i], false);
	}
}

// A name, and the column where its value begins.
static void name_print(Text *t, const char *name)
{
	const size_t at = t->len;
	text_str(t, "  ");
	word_print(t, name);
	while (t->len < at + NAME_WIDTH)
		text_char(t, ' ');
	text_char(t, ' ');
}

static void steps_print(Text *t, const char *what, int n, const ConfigStep *steps)
{
	if (n)
		text_printf(t, "%s\n", what);
	for (int i = 0; i < n; i++) {
		if (steps[i].parameters) {
			name_print(t, steps[i].name);
			parameters_print(t, steps[i].parameters);
		} else {
			text_str(t, "  ");
			word_print(t, steps[i].name);
		}
		text_char(t, '\n');
	}
}

void config_print(Text *t, const ModelConfig *m)
{
	text_str(t, "model        ");
	word_print(t, m->name ? m->name : "");
	text_printf(t, " (%s)\n", m->path);
	steps_print(t, "preprocessing", m->npre, m->pre);
	steps_print(t, "postprocessing", m->npost, m->post);
	if (m->settings.n)
		text_str(t, "settings\n");
	for (int i = 0; i < m->settings.n; i++) {
		name_print(t, m->settings.keys[i]);
		value_print(t, m->settings.items[i], false);
		text_char(t, '\n');
	}
}

// ---- JSON -------------------------------------------------------------------------------------

static void steps_json(Text *t, const char *what, int n, const ConfigStep *steps)
{
	text_printf(t, ", \"%s\": [", what);
	for (int i = 0; i < n; i++) {
		text_str(t, i ? ", {\"name\": " : "{\"name\": ");
		text_json(t, steps[i].name);
		if (steps[i].parameters) {
			text_str(t, ", \"parameters\": ");
			value_print(t, steps[i].parameters, true);
		}
		text_char(t, '}');
	}
	text_char(t, ']');
}

void config_json(Text *t, const ModelConfig *m)
{
	text_str(t, "  \"config\": {\"file\": ");
	text_json(t, m->path);
	if (m->name) {
		text_str(t, ", \"name\": ");
		text_json(t, m->name);
	}
	steps_json(t, "preprocessing", m->npre, m->pre);
	steps_json(t, "postprocessing", m->npost, m->post);
	text_str(t, ", \"settings\": ");
	value_print(t, &m->settings, true);
	text_str(t, "},\n");
}

// ---- the page ---------------------------------------------------------------------------------

static void row_html(Text *t, const char *name, const ConfigNode *value)
{
	Text words;
	text_init(&words, t->arena);
	text_str(t, "<tr><td>");
	html_text(t, name);
	text_str(t, "<td>");
	if (value)
		parameters_print(&words, value);
	html_text(t, words.len ? words.text : "");
	text_char(t, '\n');
}

static void steps_html(Text *t, const char *what, int n, const ConfigStep *steps)
{
	if (!n)
		return;
	text_printf(t, "<h2>%s</h2>\n<table>\n", what);
	for (int i = 0; i < n; i++)
		row_html(t, steps[i].name, steps[i].parameters);
	text_str(t, "</table>\n");
}

void config_html(Text *t, const ModelConfig *m)
{
	text_str(t, "<p>Model ");
	html_text(t, m->name ? m->name : "without a name");
	text_str(t, " of ");
	html_text(t, m->path);
	text_str(t, ".</p>\n");
	steps_html(t, "Preprocessing", m->npre, m->pre);
	steps_html(t, "Postprocessing", m->npost, m->post);
	if (m->settings.n)
		text_str(t, "<h2>Settings</h2>\n<table>\n");
	for (int i = 0; i < m->settings.n; i++)
		row_html(t, m->settings.keys[i], m->settings.items[i]);
	if (m->settings.n)
		text_str(t, "</table>\n");
}
