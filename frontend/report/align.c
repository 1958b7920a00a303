// Aligns two sequences, of lines or of operators, and shows where two texts differ.
//
// Items that occur once in both are the anchors (patience sorting, after Bram Cohen): lines such as
// `}` do not match across functions. Between anchors that goes on; where there is none the longest
// common subsequence is found exactly, if its table is of a size that one would wait for.
#include "frontend/report/report.h"
#include "ir/base/map.h"

#include <string.h>

enum { MAX_TABLE = 1 << 22, MAX_DEPTH = 200, AROUND = 3 };

typedef struct Aligner {
	Arena *scratch;
	const int *a, *b; // items as small numbers
	int *match;
	int *count_a, *count_b, *place_b; // by item, 0 between uses
} Aligner;

typedef struct Span {
	int a, a_end, b, b_end;
} Span;

// Items that occur once on both sides, as places in a (ascending).
static int anchors_find(const Aligner *g, Span s, int *places)
{
	int n = 0;
	for (int i = s.a; i < s.a_end; i++)
		g->count_a[g->a[i]]++;
	for (int i = s.b; i < s.b_end; i++) {
		g->count_b[g->b[i]]++;
		g->place_b[g->b[i]] = i;
	}
	for (int i = s.a; i < s.a_end; i++)
		if (g->count_a[g->a[i]] == 1 && g->count_b[g->a[i]] == 1)
			places[n++] = i;
	for (int i = s.a; i < s.a_end; i++)
		g->count_a[g->a[i]] = 0;
	for (int i = s.b; i < s.b_end; i++)
		g->count_b[g->b[i]] = 0;
	return n;
}

// The longest part of the anchors that is in order on both sides, too, is matched. Returns its
// length.
static int anchors_match(const Aligner *g, Arena *scratch, int n, const int *places)
{
	int *tails = NEW_ARRAY(scratch, (size_t)n + 1, int),
		*before = NEW_ARRAY(scratch, (size_t)n + 1, int);
	int length = 0;
	for (int i = 0; i < n; i++) {
		int low = 0, high = length;
		while (low < high) {
			const int middle = (low + high) / 2;
			if (g->place_b[g->a[places[tails[middle]]]] < g->place_b[g->a[places[i]]])
				low = middle + 1;
			else
				high = middle;
		}
		before[i] = low ? tails[low - 1] : -1;
		tails[low] = i;
		length += low == length;
	}
	for (int i = length ? tails[length - 1] : -1; i >= 0; i = before[i])
		g->match[places[i]] = g->place_b[g->a[places[i]]];
	return length;
}

// The longest common subsequence, from a table of those of all ends.
static void table_match(const Aligner *g, Span s)
{
	const size_t n = (size_t)(s.a_end - s.a), m = (size_t)(s.b_end - s.b);
	if (n > MAX_TABLE || m > MAX_TABLE || (n + 1) * (m + 1) > MAX_TABLE)
		return;
	Arena *scratch = arena_scratch(g->scratch);
	int *table = NEW_ARRAY(scratch, (n + 1) * (m + 1), int);
#define AT(i, k) table[(i) * (m + 1) + (k)]
	for (size_t i = n; i-- > 0;)
		for (size_t k = m; k-- > 0;)
			AT(i, k) = g->a[(size_t)s.a + i] == g->b[(size_t)s.b + k] ? AT(i + 1, k + 1) + 1
			           : AT(i + 1, k) > AT(i, k + 1)                  ? AT(i + 1, k)
			                                                          : AT(i, k + 1);
	for (size_t i = 0, k = 0; i < n && k < m;) {
		if (g->a[(size_t)s.a + i] == g->b[(size_t)s.b + k])
			g->match[(size_t)s.a + i++] = s.b + (int)k++;
		else if (AT(i + 1, k) > AT(i, k + 1))
			i++;
		else
			k++;
	}
#undef AT
	arena_free(scratch);
}

static void span_align(const Aligner *g, Span s, int depth)
{
	for (; s.a < s.a_end && s.b < s.b_end && g->a[s.a] == g->b[s.b]; s.a++, s.b++)
		g->match[s.a] = s.b;
	for (; s.a < s.a_end && s.b < s.b_end && g->a[s.a_end - 1] == g->b[s.b_end - 1];
	     s.a_end--, s.b_end--)
		g->match[s.a_end - 1] = s.b_end - 1;
	if (s.a == s.a_end || s.b == s.b_end)
		return;
	Arena *scratch = arena_scratch(g->scratch);
	int *places = NEW_ARRAY(scratch, (size_t)(s.a_end - s.a), int);
	const int n = depth < MAX_DEPTH ? anchors_find(g, s, places) : 0;
	const int matched = anchors_match(g, scratch, n, places);
	arena_free(scratch);
	if (!matched) {
		table_match(g, s);
		return;
	}
	Span gap = s;
	for (int i = s.a; i < s.a_end; i++) {
		if (g->match[i] < 0)
			continue;
		gap.a_end = i;
		gap.b_end = g->match[i];
		span_align(g, gap, depth + 1);
		gap.a = i + 1;
		gap.b = g->match[i] + 1;
	}
	gap.a_end = s.a_end;
	gap.b_end = s.b_end;
	span_align(g, gap, depth + 1);
}

// Numbers items in the order in which they are met.
static int *items_number(Arena *scratch, PointerMap *numbers, int n, const void *const *items)
{
	int *list = NEW_ARRAY(scratch, (size_t)n + 1, int);
	for (int i = 0; i < n; i++) {
		list[i] = pointer_map_index(numbers, items[i]);
		if (list[i] < 0)
			pointer_map_set_index(numbers, items[i], list[i] = (int)numbers->count);
	}
	return list;
}

void sequences_align(Arena *scratch, int n, const void *const *a, int m, const void *const *b,
                     int *match)
{
	PointerMap numbers;
	pointer_map_init(&numbers, scratch);
	Aligner g = {.scratch = scratch, .match = match};
	g.a = items_number(scratch, &numbers, n, a);
	g.b = items_number(scratch, &numbers, m, b);
	g.count_a = NEW_ARRAY(scratch, numbers.count + 1, int);
	g.count_b = NEW_ARRAY(scratch, numbers.count + 1, int);
	g.place_b = NEW_ARRAY(scratch, numbers.count + 1, int);
	for (int i = 0; i < n; i++)
		match[i] = -1;
	span_align(&g, (Span){0, n, 0, m}, 0);
}

// ---- texts --------------------------------------------------------------------------------------

static const char **lines_of(Arena *a, Context *c, const char *text, int *count)
{
	int n = 0;
	for (const char *p = text; *p; p++)
		n += *p == '\n' || !p[1];
	const char **lines = NEW_ARRAY(a, (size_t)n + 1, const char *);
	*count = n;
	for (int i = 0; i < n; i++) {
		const size_t length = strcspn(text, "\n");
		lines[i] = context_strn(c, text, length);
		text += length + (text[length] == '\n');
	}
	return lines;
}

typedef struct Unified {
	Text *t;
	int n, m;
	const char **a, **b;
	const int *match;
} Unified;

// The next change at or after *i and *k, which become its beginning; its ends. False: none.
static bool change_next(const Unified *u, int *i, int *k, int *i_end, int *k_end)
{
	for (; *i < u->n && u->match[*i] == *k; ++*i)
		++*k;
	if (*i == u->n && *k == u->m)
		return false;
	for (*i_end = *i; *i_end < u->n && u->match[*i_end] < 0;)
		++*i_end;
	*k_end = *i_end < u->n ? u->match[*i_end] : u->m;
	return true;
}

// From line i of a and k of b, `same` lines that both have, then what changed.
static void change_print(Text *t, const Unified *u, int i, int i_end, int k, int k_end, int same)
{
	for (int l = 0; l < same; l++)
		text_printf(t, " %s\n", u->a[i + l]);
	for (int l = i + same; l < i_end; l++)
		text_printf(t, "-%s\n", u->a[l]);
	for (int l = k + same; l < k_end; l++)
		text_printf(t, "+%s\n", u->b[l]);
}

// `12,3`: a beginning, counted from 1, and a length; of nothing the line in front of it.
static void range_print(Text *t, int begin, int length)
{
	text_printf(t, "%d", length ? begin + 1 : begin);
	if (length != 1)
		text_printf(t, ",%d", length);
}

// One hunk: changes with at most twice AROUND lines between them. It begins at *i and *k, which
// become its end.
static void hunk_print(const Unified *u, Arena *scratch, int *i, int *k)
{
	int i_end, k_end;
	Text body;
	text_init(&body, scratch);
	change_next(u, i, k, &i_end, &k_end);
	const int lead = *i < AROUND ? *i : AROUND;
	const int i_begin = *i - lead, k_begin = *k - lead;
	change_print(&body, u, i_begin, i_end, k_begin, k_end, lead);
	for (;;) {
		*i = i_end;
		*k = k_end;
		int i_next = i_end, k_next = k_end, i_after, k_after;
		const bool more = change_next(u, &i_next, &k_next, &i_after, &k_after);
		if (!more || i_next - i_end > 2 * AROUND)
			break;
		change_print(&body, u, i_end, i_after, k_end, k_after, i_next - i_end);
		i_end = i_after;
		k_end = k_after;
	}
	for (int l = 0; l < AROUND && *i < u->n && u->match[*i] == *k; l++, ++*i, ++*k)
		text_printf(&body, " %s\n", u->a[*i]);
	text_str(u->t, "@@ -");
	range_print(u->t, i_begin, *i - i_begin);
	text_str(u->t, " +");
	range_print(u->t, k_begin, *k - k_begin);
	text_printf(u->t, " @@\n%s", body.text);
}

bool text_unified(Text *t, Context *c, const char *a_name, const char *a, const char *b_name,
                  const char *b)
{
	if (!strcmp(a, b))
		return false;
	Arena *scratch = arena_scratch(c->arena);
	Unified u = {.t = t};
	u.a = lines_of(scratch, c, a, &u.n);
	u.b = lines_of(scratch, c, b, &u.m);
	int *match = NEW_ARRAY(scratch, (size_t)u.n + 1, int);
	sequences_align(scratch, u.n, (const void *const *)u.a, u.m, (const void *const *)u.b, match);
	u.match = match;
	text_printf(t, "--- %s\n+++ %s\n", a_name, b_name);
	int i = 0, k = 0, i_end, k_end;
	for (int ni = 0, nk = 0; change_next(&u, &ni, &nk, &i_end, &k_end); ni = i, nk = k) {
		i = ni;
		k = nk;
		hunk_print(&u, scratch, &i, &k);
	}
	arena_free(scratch);
	return true;
}
