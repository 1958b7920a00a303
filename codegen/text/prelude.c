// The functions that generated code calls: sections of the embedded prelude.c and math.c, for CUDA
// first those of cuda_prelude.c and cuda_ptx.c, each begun by a line `//@ name ...`. A section is
// printed when a name of it occurs in the code that uses it, or in another printed section; the
// first one of a name counts. Called by codegen.c and cuda/host.c.
#include "codegen/text/text.h"

#include <string.h>

typedef struct Section {
	const char *names, *text; // names: to the end of the line
	size_t nnames, ntext;
	bool used;
} Section;

enum { MAX_SECTIONS = 256 };

static const char marker[] = "//@ ";

static int sections_find(const char *text, Section *s, int n)
{
	while (text && *text && n < MAX_SECTIONS) {
		size_t line = strcspn(text, "\n");
		if (strncmp(text, marker, strlen(marker))) { // a file header: not for generated code
			text += line + (text[line] == '\n');
			continue;
		}
		Section *new = &s[n++];
		new->names = text + strlen(marker);
		new->nnames = line - strlen(marker);
		new->text = text += line + (text[line] == '\n');
		const char *next = strstr(text, "\n//@ ");
		new->ntext = next ? (size_t)(next - text) + 1 : strlen(text);
		text += new->ntext;
	}
	return n;
}

static bool section_has(const Section *s, const char *word, size_t n)
{
	for (size_t i = 0; i < s->nnames;) {
		size_t len = strcspn(s->names + i, " \n");
		if (len == n && !memcmp(s->names + i, word, n))
			return true;
		i += len + 1;
	}
	return false;
}

bool prelude_has(const char *file, const char *name)
{
	Section s[MAX_SECTIONS];
	const int n = sections_find(embed_text(file), s, 0);
	for (int i = 0; i < n; i++)
		if (section_has(&s[i], name, strlen(name)))
			return true;
	return false;
}

static size_t word_length(const char *text, size_t most)
{
	size_t len = 0;
	while (len < most && char_is_word(text[len]))
		len++;
	return len;
}

// Whether the prelude may define such a name.
static bool is_candidate(const char *word, size_t len)
{
	return len > 3 && (word[0] == 'p' || word[0] == 'P') && (word[1] == 'd' || word[1] == 'D');
}

// Marks the sections that define an identifier of the text; true when a new one was marked.
static bool words_mark(Section *s, int n, const char *text, size_t size)
{
	bool marked = false;
	for (size_t i = 0; i < size;) {
		const size_t len = word_length(text + i, size - i);
		const bool candidate = is_candidate(text + i, len);
		int k = 0;
		while (candidate && k < n && !section_has(&s[k], text + i, len))
			k++;
		if (candidate && k < n && !s[k].used)
			marked = s[k].used = true;
		i += len ? len : 1;
	}
	return marked;
}

// A section; where it is CUDA's, its functions run on both sides.
static void section_print(const Section *s, bool cuda, Text *out)
{
	static const char linkage[] = "static inline ";
	for (const char *line = s->text, *end = s->text + s->ntext; line < end;) {
		size_t n = strcspn(line, "\n") + 1;
		n = n < (size_t)(end - line) ? n : (size_t)(end - line);
		const size_t skip = cuda && !strncmp(line, linkage, strlen(linkage)) ? strlen(linkage) : 0;
		text_str(out, skip ? "static __host__ __device__ inline " : "");
		text_strn(out, line + skip, n - skip);
		line += n;
	}
	if (s->ntext < 2 || s->text[s->ntext - 2] != '\n')
		text_char(out, '\n');
}

void prelude_print(Arena *a, bool cuda, Text *out, const char *user)
{
	Section *s = NEW_ARRAY(a, MAX_SECTIONS, Section);
	int n = 0;
	if (cuda) {
		n = sections_find(embed_text("cuda_prelude.c"), s, n);
		n = sections_find(embed_text("cuda_ptx.c"), s, n);
	}
	n = sections_find(embed_text("prelude.c"), s, n);
	n = sections_find(embed_text("complex.c"), s, n);
	n = sections_find(embed_text("math.c"), s, n);
	words_mark(s, n, user, strlen(user));
	for (bool again = true; again;) {
		again = false;
		for (int i = 0; i < n; i++)
			if (s[i].used)
				again |= words_mark(s, n, s[i].text, s[i].ntext);
	}
	for (int i = 0; i < n; i++)
		if (s[i].used)
			section_print(&s[i], cuda, out);
}
