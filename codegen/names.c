// C identifiers from names of legacy variables ("conv2d_0.tmp_0@RENAME" becomes conv2d_0_tmp_0_RENAME): the
// same name for the same variable, distinct in one scope, never a keyword. Called by module.c and header.c.
#include "codegen_impl.h"

#include <ctype.h>
#include <string.h>

// Words that generated code cannot use as names: keywords of C and C++, and macros of the headers that it includes.
static const char *const reserved[] = {
	"alignas", "alignof", "and", "and_eq", "asm", "atomic", "auto", "bitand", "bitor", "bool", "break", "case",
	"catch", "char", "class", "co_await", "co_return", "co_yield", "compl", "complex", "concept", "const",
	"const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do",
	"double", "dynamic_cast", "else", "enum", "errno", "explicit", "export", "extern", "false", "float", "for",
	"friend", "goto", "if", "imaginary", "inline", "int", "linux", "long", "mutable", "namespace", "new",
	"noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public",
	"register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
	"static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true",
	"try", "typedef", "typeid", "typename", "typeof", "union", "unix", "unsigned", "using", "virtual", "void",
	"volatile", "wchar_t", "while", "xor", "xor_eq",
};

// The longest identifier made from a variable name; longer ones are cut and told apart by their number.
enum { NAME_MAX_LENGTH = 60 };

char *name_sanitize(Arena *a, const char *name)
{
	Text t;
	text_init(&t, a);
	for (; *name && t.len < NAME_MAX_LENGTH; name++) {
		bool word = isalnum((unsigned char)*name) && (unsigned char)*name < 128;
		if (word && !t.len && isdigit((unsigned char)*name))
			text_char(&t, 'v');
		if (word)
			text_char(&t, *name);
		else if (t.len && t.text[t.len - 1] != '_')
			text_char(&t, '_');
	}
	while (t.len && t.text[t.len - 1] == '_')
		t.text[--t.len] = '\0';
	if (!t.len)
		text_str(&t, "unnamed");
	for (size_t i = 0; i < COUNT_OF(reserved); i++)
		if (!strcmp(reserved[i], t.text)) {
			text_char(&t, '_');
			break;
		}
	return t.text;
}

void names_init(Names *n, Arena *a)
{
	*n = (Names){.arena = a};
}

static size_t name_hash(const char *s)
{
	size_t h = 14695981039346656037u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return h ^ h >> 29;
}

static bool names_insert(Names *n, const char *name)
{
	if (2 * n->count >= n->cap) {
		Names bigger = {.arena = n->arena, .cap = n->cap ? 2 * n->cap : 64};
		bigger.names = NEW_ARRAY(n->arena, bigger.cap, const char *);
		for (size_t i = 0; i < n->cap; i++)
			if (n->names[i])
				names_insert(&bigger, n->names[i]);
		*n = bigger;
	}
	size_t i = name_hash(name) & (n->cap - 1);
	for (; n->names[i]; i = (i + 1) & (n->cap - 1))
		if (!strcmp(n->names[i], name))
			return false;
	n->names[i] = name;
	n->count++;
	return true;
}

const char *names_unique(Names *n, const char *stem)
{
	if (names_insert(n, stem))
		return stem;
	for (int i = 2;; i++) {
		const char *name = arena_printf(n->arena, "%s_%d", stem, i);
		if (names_insert(n, name))
			return name;
	}
}
