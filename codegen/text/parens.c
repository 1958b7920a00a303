// Parentheses that say nothing: `(a * b) + c` becomes `a * b + c`, `x + (-1)` becomes `x - 1`.
// Printers put them around every operand that is more than a word; here those go whose absence
// changes neither what C reads nor what a compiler warns of. Called by wrap.c, for one line at a
// time.
//
// No sum or product is read in another order: of `a + (b + c)` they stay.
#include "codegen/text/text.h"
#include "ir/base/vec.h"

#include <string.h>

// How tightly an operator binds, from loose to tight.
typedef enum Binding {
	BIND_UNKNOWN, // what stands in another line, or is no expression
	BIND_OPEN,    // nothing is bound: the brackets and commas around an expression, assignments
	BIND_CHOICE,
	BIND_OR,
	BIND_AND,
	BIND_BITS, // & | ^ << >>, which compilers want parentheses beside
	BIND_EQUAL,
	BIND_ORDER,
	BIND_SUM,
	BIND_PRODUCT,
	BIND_PREFIX, // signs, casts
	BIND_WHOLE   // a word, a call
} Binding;

typedef struct Token {
	const char *text;
	size_t len;
	const char *shown; // NULL: as it is
	bool operand;      // an operator behind it has two sides
	bool gone;
	Binding binds; // as an operator of two sides
	int open;      // of `)`: its `(`, of `(`: the one around it; -1: in another line
} Token;

typedef struct Line {
	Token *items;
	int n, cap, inner; // inner: the `(` that is open
} Line;

// ---- tokens -------------------------------------------------------------------------------------

static bool is(const Token *t, const char *text)
{
	return t->len == strlen(text) && !memcmp(t->text, text, t->len);
}

static bool is_word(const Token *t)
{
	return char_is_word(t->text[0]) || t->text[0] == '.';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t number_length(const char *p, const char *end)
{
	size_t n = 0;
	while (p + n < end &&
	       (char_is_word(p[n]) || p[n] == '.' || (strchr("+-", p[n]) && strchr("eEpP", p[n - 1]))))
		n++;
	return n;
}

static size_t token_length(const char *p, const char *end)
{
	static const char *const longer[] = {"<<=", ">>=", "->", "++", "--", "<<", ">>",
	                                     "<=",  ">=",  "==", "!=", "&&", "||", "+=",
	                                     "-=",  "*=",  "/=", "%=", "&=", "|=", "^="};
	if (is_digit(*p) || (*p == '.' && p + 1 < end && is_digit(p[1])))
		return number_length(p, end);
	size_t n = 0;
	while (p + n < end && char_is_word(p[n]))
		n++;
	if (n)
		return n;
	for (size_t i = 0; i < COUNT_OF(longer); i++)
		if ((size_t)(end - p) >= strlen(longer[i]) && !memcmp(p, longer[i], strlen(longer[i])))
			return strlen(longer[i]);
	return 1;
}

// Of an operator of two sides; printers put blanks around it, but not around `<` of a template.
static Binding binding_of(const Token *t)
{
	static const struct {
		const char *operator;
		Binding binds;
	} table[] = {{"?", BIND_CHOICE}, {":", BIND_CHOICE},  {"||", BIND_OR},     {"&&", BIND_AND},
	             {"&", BIND_BITS},   {"|", BIND_BITS},    {"^", BIND_BITS},    {"<<", BIND_BITS},
	             {">>", BIND_BITS},  {"==", BIND_EQUAL},  {"!=", BIND_EQUAL},  {"<", BIND_ORDER},
	             {">", BIND_ORDER},  {"<=", BIND_ORDER},  {">=", BIND_ORDER},  {"+", BIND_SUM},
	             {"-", BIND_SUM},    {"*", BIND_PRODUCT}, {"/", BIND_PRODUCT}, {"%", BIND_PRODUCT}};
	if (is(t, ",") || is(t, ";"))
		return BIND_OPEN;
	if (t->text[-1] != ' ' || t->text[t->len] != ' ')
		return BIND_UNKNOWN;
	for (size_t i = 0; i < COUNT_OF(table); i++)
		if (is(t, table[i].operator))
			return table[i].binds;
	return t->text[t->len - 1] == '=' ? BIND_OPEN : BIND_UNKNOWN;
}

static bool is_type_word(const Token *t)
{
	static const char *const words[] = {"bool",  "char",     "const", "double", "float",
	                                    "int",   "long",     "short", "signed", "struct",
	                                    "union", "unsigned", "void"};
	if (t->len > 2 && !memcmp(t->text + t->len - 2, "_t", 2))
		return true;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (is(t, words[i]))
			return true;
	return false;
}

// Whether the parentheses from `open` to `close` hold a type: `(const float *)`.
static bool is_cast(const Line *l, int open, int close)
{
	bool type = false;
	for (int i = open + 1; i < close; i++) {
		if (!is_word(&l->items[i]) && !is(&l->items[i], "*"))
			return false;
		type = type || is_type_word(&l->items[i]);
	}
	return type;
}

static void token_add(Arena *a, Line *l, const char *text, size_t len)
{
	const int at = l->n;
	const bool behind = at && l->items[at - 1].operand;
	VEC_ROOM(a, l->items, l->n, l->cap);
	Token *t = &l->items[l->n++];
	*t = (Token){.text = text, .len = len, .open = l->inner};
	t->operand = (is_word(t) || is(t, "]")) && !is(t, "return") && !is(t, "case");
	t->binds = behind ? binding_of(t) : BIND_UNKNOWN;
	if (is(t, "("))
		l->inner = at;
	if (!is(t, ")"))
		return;
	t->operand = t->open < 0 || !is_cast(l, t->open, at);
	l->inner = t->open < 0 ? -1 : l->items[t->open].open;
}

// Splits a line up to its comment; false: a line that has no end here, or holds text.
static bool line_split(Arena *a, Line *l, const char *p, const char *end)
{
	while (p < end) {
		if (strchr("\"'\\", *p))
			return false;
		if (*p == '/' && p + 1 < end && strchr("/*", p[1]))
			break;
		const size_t n = *p == ' ' || *p == '\t' ? 1 : token_length(p, end);
		if (*p != ' ' && *p != '\t')
			token_add(a, l, p, n);
		p += n;
	}
	return true;
}

// ---- what may go --------------------------------------------------------------------------------

static int beside(const Line *l, int i, int step)
{
	do
		i += step;
	while (i >= 0 && i < l->n && l->items[i].gone);
	return i;
}

// What stands in front of a parenthesis: how it binds what follows.
static Binding binding_before(const Line *l, int i)
{
	if (i < 0)
		return BIND_UNKNOWN;
	const Token *t = &l->items[i];
	if (is(t, "(") || is(t, "[") || is(t, "{") || is(t, "return") || is(t, ";"))
		return BIND_OPEN;
	return t->operand ? BIND_UNKNOWN : t->binds;
}

static Binding binding_behind(const Line *l, int i)
{
	if (i >= l->n)
		return BIND_UNKNOWN;
	const Token *t = &l->items[i];
	return is(t, ")") || is(t, "]") || is(t, "}") ? BIND_OPEN : t->binds;
}

static bool enters(const Token *t)
{
	return is(t, "(") || is(t, "[");
}

static bool leaves(const Token *t)
{
	return is(t, ")") || is(t, "]");
}

// How a token of an expression binds; the parenthesis behind a cast as that.
static Binding binding_of_token(const Token *t)
{
	if (t->operand || enters(t))
		return BIND_WHOLE;
	return t->binds != BIND_UNKNOWN ? t->binds : BIND_PREFIX;
}

// The loosest operator between two parentheses. *products: no product there divides.
static Binding binding_within(const Line *l, int open, int close, bool *products)
{
	Binding loosest = BIND_WHOLE;
	int depth = 0;
	*products = true;
	for (int i = open + 1; i < close; i++) {
		const Token *t = &l->items[i];
		if (t->gone)
			continue;
		depth -= leaves(t);
		const Binding b = depth ? BIND_WHOLE : binding_of_token(t);
		loosest = b < loosest ? b : loosest;
		*products = *products && (b != BIND_PRODUCT || is(t, "*"));
		depth += enters(t);
	}
	return loosest;
}

// Whether an operand that binds like `within` needs no parentheses beside an operator.
static bool is_plain(Binding within, Binding outside)
{
	switch (outside) {
	case BIND_OPEN: return within > BIND_OPEN;
	case BIND_CHOICE:
	case BIND_OR:
	case BIND_AND: return within >= BIND_EQUAL;
	case BIND_EQUAL:
	case BIND_ORDER: return within >= BIND_SUM;
	case BIND_SUM: return within >= BIND_PRODUCT;
	case BIND_BITS:
	case BIND_PRODUCT: return within >= BIND_PREFIX;
	default: return false;
	}
}

// Whether the operator at i reads what is in front of it first in any case.
static bool reads_on(const Token *t, Binding within, bool products)
{
	return t->binds == within && (within == BIND_SUM || within == BIND_AND || within == BIND_OR ||
	                              (within == BIND_PRODUCT && products));
}

// Whether the parentheses hold no more than a number below 0.
static bool is_negative(const Line *l, int open, int close)
{
	return close == open + 3 && is(&l->items[open + 1], "-") &&
	       is_digit(l->items[open + 2].text[0]);
}

// Whether what two parentheses hold begins with a sign that may not stand beside the operator in
// front of them: `a - -b`, `a * *b`. *joins: the sign of a number becomes that operator.
static bool sign_stays(const Line *l, int open, int close, int before, Binding right, bool *joins)
{
	const Token *first = &l->items[beside(l, open, 1)];
	const Binding left = l->items[before].binds;
	*joins = false;
	if (first->operand || !strchr("+-&*", first->text[0]) || left < BIND_BITS)
		return false;
	if (is(first, "-") && (left == BIND_EQUAL || left == BIND_ORDER))
		return false;
	*joins = is(&l->items[before], "+") && right <= BIND_SUM && is_negative(l, open, close);
	return !*joins;
}

static void pair_drop(Line *l, int open, int close)
{
	const int before = beside(l, open, -1), behind = beside(l, close, 1);
	const Binding left = binding_before(l, before), right = binding_behind(l, behind);
	if (close == open + 1 || left == BIND_UNKNOWN || right == BIND_UNKNOWN ||
	    is_cast(l, open, close))
		return;
	bool products, joins;
	const Binding within = binding_within(l, open, close, &products);
	if (sign_stays(l, open, close, before, right, &joins) || !is_plain(within, left) ||
	    !(is_plain(within, right) || reads_on(&l->items[behind], within, products)))
		return;
	if (joins) {
		l->items[before].shown = "-";
		l->items[open + 1].gone = true;
	}
	l->items[open].gone = l->items[close].gone = true;
}

// Whether the parenthesis at i is an operand's, and neither calls nor is the second one of
// `__attribute__((x))`.
static bool groups(const Line *l, int i)
{
	return i > 0 && !l->items[i - 1].operand && !(i > 1 && is(&l->items[i - 2], "__attribute__"));
}

// Inner ones first: what is left of them counts for those around them.
static void pairs_drop(Line *l)
{
	for (int i = 0; i < l->n; i++)
		if (is(&l->items[i], ")") && groups(l, l->items[i].open))
			pair_drop(l, l->items[i].open, i);
}

void text_plain(const char *line, size_t n, Text *out)
{
	const char *at = line;
	Line l = {.inner = -1};
	if (!memchr(line, '(', n) || !line_split(out->arena, &l, line, line + n))
		l.n = 0;
	pairs_drop(&l);
	for (int i = 0; i < l.n; i++) {
		const Token *t = &l.items[i];
		text_strn(out, at, (size_t)(t->text - at));
		if (t->shown)
			text_str(out, t->shown);
		else if (!t->gone)
			text_strn(out, t->text, t->len);
		at = t->text + t->len;
	}
	text_strn(out, at, (size_t)(line + n - at));
}
