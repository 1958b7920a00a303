// Templates: text with `${key}` holes, embedded into the compiler by embed.c. Called by the
// emitters.
#include "codegen/text/text.h"

#include <ctype.h>
#include <string.h>

#include "kernels.inc" // made by embed.c: embed_table

const char *embed_text(const char *name)
{
	for (size_t i = 0; embed_table[i].name; i++)
		if (!strcmp(embed_table[i].name, name))
			return embed_table[i].text;
	return NULL;
}

typedef struct Expansion {
	Context *ctx;
	Text *out;
	const char *name; // of the template, for diagnostics
	int nkey;
	const TemplateKey *keys;
	bool *used;
} Expansion;

static const char *key_text(Expansion *x, const char *key, size_t n)
{
	if (n == 2 && !memcmp(key, "fn", 2))
		return KERNEL_FN;
	if (n == 6 && !memcmp(key, "params", 6))
		return KERNEL_PARAMS;
	if (n == 6 && !memcmp(key, "kernel", 6))
		return KERNEL_HEAD;
	for (int i = 0; i < x->nkey; i++)
		if (strlen(x->keys[i].key) == n && !memcmp(x->keys[i].key, key, n)) {
			x->used[i] = true;
			return x->keys[i].text;
		}
	diag_error(x->ctx->diag, &loc_unknown, "template '%s': unknown key '%.*s'", x->name, (int)n,
	           key);
	return NULL;
}

// A line that is nothing but white space and one hole takes all lines of its value, each indented
// like the hole; an empty value makes the line disappear.
static void block_expand(Expansion *x, const char *indent, size_t width, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		if (n) {
			if (*text != '#')
				text_strn(x->out, indent, width);
			text_strn(x->out, text, n);
		}
		text_char(x->out, '\n');
		text += n + (text[n] == '\n');
	}
}

// Whether `${key}` is all that stands from `open` to `end`; key: how long the key is.
static bool is_one_hole(const char *open, const char *end, size_t *key)
{
	const char *close = end - open > 3 ? memchr(open, '}', (size_t)(end - open)) : NULL;
	*key = close ? (size_t)(close - open - 2) : 0;
	return close && open[0] == '$' && open[1] == '{' && close + 1 == end;
}

static bool ends_with(const Text *t, size_t begin, const char *end)
{
	const size_t n = strlen(end);
	return t->len >= begin + n && !memcmp(t->text + t->len - n, end, n);
}

// Whether the number in a hole does nothing to what stands in front of it: ` * 1`, ` + 0`. `rest`:
// what follows it.
static bool hole_undoes(const Text *out, size_t begin, bool one, const char *rest)
{
	const bool product = *rest == ' ' && rest[1] && strchr("*/%", rest[1]);
	if (out->len <= begin + 3 || (!one && product))
		return false;
	return one ? ends_with(out, begin, " * ") || ends_with(out, begin, " / ")
	           : ends_with(out, begin, " + ") || ends_with(out, begin, " - ");
}

// Whether a product begins with the 1 in a hole.
static bool hole_leads(const Text *out, size_t begin, const char *rest)
{
	size_t at = out->len;
	at -= at > begin && out->text[at - 1] == ' ';
	return at > begin && strchr("(=+-,<>?:[", out->text[at - 1]) && !strncmp(rest, " * ", 3);
}

// Arithmetic that does nothing is left out: ` * 1`, ` / 1`, `1 * `, ` + 0` and ` - 0` where the
// number fills a hole. `begin`: where the line's first word is in the output. Returns how many
// characters of the template behind the hole are left out, too, or -1: nothing is.
static int hole_drop(Text *out, size_t begin, const char *value, const char *rest)
{
	const bool one = !strcmp(value, "1");
	if ((!one && strcmp(value, "0") != 0) || isalnum((unsigned char)*rest) ||
	    (*rest && strchr("_.$", *rest)))
		return -1;
	if (hole_undoes(out, begin, one, rest)) {
		out->text[out->len -= 3] = 0;
		return 0;
	}
	return one && hole_leads(out, begin, rest) ? 3 : -1;
}

// `${?key}` and `${!key}` at the beginning of a line: how long they are, or -1 after a diagnostic.
// *there: whether the line is.
static int conditions_skip(Expansion *x, const char *line, size_t n, bool *there)
{
	size_t at = 0;
	*there = true;
	while (at + 3 < n && line[at] == '$' && line[at + 1] == '{' && strchr("?!", line[at + 2])) {
		const char *end = memchr(line + at, '}', n - at);
		const size_t len = end ? (size_t)(end - line) - at - 3 : n - at - 3;
		const char *text = key_text(x, line + at + 3, len);
		if (!text)
			return -1;
		*there = *there && (line[at + 2] == '?') == (*text != 0);
		at += len + 4;
	}
	return (int)at;
}

// Keys of a line that is not there are used all the same. False after a diagnostic.
static bool keys_use(Expansion *x, const char *line, size_t n)
{
	for (const char *at = line; (at = memchr(at, '$', n - (size_t)(at - line)));) {
		const char *end = memchr(at, '}', n - (size_t)(at - line));
		if (!end || at[1] != '{')
			return true;
		if (!key_text(x, at + 2, (size_t)(end - at) - 2))
			return false;
		at = end;
	}
	return true;
}

// The text of a line without what makes it conditional.
static bool holes_expand(Expansion *x, const char *line, size_t n, size_t begin)
{
	for (size_t i = 0; i < n;) {
		if (line[i] != '$' || i + 1 >= n || line[i + 1] != '{') {
			text_char(x->out, line[i++]);
			continue;
		}
		const char *end = memchr(line + i, '}', n - i);
		size_t len = end ? (size_t)(end - line) - i - 2 : n - i - 2;
		const char *text = key_text(x, line + i + 2, len);
		if (!text)
			return false;
		i += len + 3;
		const int dropped = hole_drop(x->out, begin, text, i < n ? line + i : "");
		if (dropped < 0)
			text_str(x->out, text);
		else
			i += (size_t)dropped;
	}
	return true;
}

static bool line_expand(Expansion *x, const char *line, size_t n, bool newline)
{
	const size_t width = strspn(line, " \t");
	const char *indent = line;
	size_t key;
	bool there = true;
	const int skipped = width < n ? conditions_skip(x, line + width, n - width, &there) : 0;
	if (skipped < 0)
		return false;
	line += width + (size_t)skipped;
	n -= width < n ? width + (size_t)skipped : n;
	if (!there)
		return keys_use(x, line, n);
	if (newline && is_one_hole(line, line + n, &key)) {
		const char *text = key_text(x, line + 2, key);
		if (text)
			block_expand(x, indent, width, text);
		return text != NULL;
	}
	text_strn(x->out, indent, width);
	if (!holes_expand(x, line, n, x->out->len))
		return false;
	if (newline)
		text_char(x->out, '\n');
	return true;
}

bool template_expand(Context *c, Text *out, const char *name, int nkey, const TemplateKey *keys)
{
	const char *text = embed_text(name);
	if (!text) {
		diag_error(c->diag, &loc_unknown, "no template '%s'", name);
		return false;
	}
	Expansion x = {c, out, name, nkey, keys, NEW_ARRAY(c->arena, (size_t)nkey + 1, bool)};
	while (*text) {
		size_t n = strcspn(text, "\n");
		bool newline = text[n] == '\n';
		if (!line_expand(&x, text, n, newline))
			return false;
		text += n + newline;
	}
	for (int i = 0; i < nkey; i++)
		if (!x.used[i]) {
			diag_error(c->diag, &loc_unknown, "template '%s': unused key '%s'", name, keys[i].key);
			return false;
		}
	return true;
}
