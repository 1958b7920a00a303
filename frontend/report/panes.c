// The panes of `pdcc info --html`: operators of the model beside the C that they became. What
// stands for the same operators has the same keys in `data-ops`, which the page's script lights up
// together.
#include "frontend/report/report.h"
#include "ir/base/vec.h"

#include <string.h>

// ---- the operators of the model -----------------------------------------------------------------

static void source_add(Context *c, SourceOps *s, const Loc *loc)
{
	if (!loc->type || loc->op < 0)
		return;
	int at = s->n;
	for (int i = s->n; i-- > 0;) {
		const Loc *have = s->locs[i];
		if (have->block == loc->block && have->op == loc->op)
			return;
		if (have->block > loc->block || (have->block == loc->block && have->op > loc->op))
			at = i;
		else
			break;
	}
	VEC_ROOM(c->arena, s->locs, s->n, s->cap);
	memmove(s->locs + at + 1, s->locs + at, (size_t)(s->n++ - at) * sizeof *s->locs);
	s->locs[at] = loc;
}

void source_ops_collect(Context *c, const Op *op, SourceOps *s)
{
	source_add(c, s, op->loc);
	for (int r = 0; r < op->nregion; r++)
		for (const Block *b = op->regions[r].first; b; b = b->next)
			for (const Op *in = b->first; in; in = in->next)
				source_ops_collect(c, in, s);
}

// ---- keys ---------------------------------------------------------------------------------------

static void key_print(Text *t, const Loc *loc, bool *any)
{
	if (loc->op < 0)
		return;
	text_printf(t, "%s%d.%d", *any ? " " : " data-ops='", loc->block, loc->op);
	*any = true;
}

void ops_attribute_print(Text *t, const CodegenResult *code, const Op *op)
{
	bool any = false;
	for (int i = 0; code && i < code->nspan && !any; i++)
		for (int k = 0; code->spans[i].op == op && k < code->spans[i].nloc; k++)
			key_print(t, code->spans[i].locs[k], &any);
	if (!any)
		key_print(t, op->loc, &any);
	if (any)
		text_char(t, '\'');
}

// How many operators' keys span i gives a line: none where the line is not its own.
static int span_keys(const CodegenResult *code, int i, int line)
{
	const bool in = code->spans[i].first <= line && line <= code->spans[i].last;
	return in ? code->spans[i].nloc : 0;
}

static bool span_has_key_before(const CodegenResult *code, int span, int line, const Loc *loc)
{
	for (int i = 0; i < span; i++)
		for (int k = 0; k < span_keys(code, i, line); k++)
			if (code->spans[i].locs[k]->block == loc->block &&
			    code->spans[i].locs[k]->op == loc->op)
				return true;
	return false;
}

static void line_keys_print(Text *t, const CodegenResult *code, int line)
{
	bool any = false;
	for (int i = 0; i < code->nspan; i++)
		for (int k = 0; k < span_keys(code, i, line); k++)
			if (!span_has_key_before(code, i, line, code->spans[i].locs[k]))
				key_print(t, code->spans[i].locs[k], &any);
	if (any)
		text_char(t, '\'');
}

// ---- the panes ----------------------------------------------------------------------------------

static void source_pane_print(Text *t, const SourceOps *s)
{
	text_str(t, "<div class=pane id=source>\n");
	for (int i = 0; i < s->n; i++) {
		bool any = false;
		text_str(t, "<i");
		key_print(t, s->locs[i], &any);
		text_printf(t, "'>%d.%d %s ", s->locs[i]->block, s->locs[i]->op, s->locs[i]->type);
		html_text(t, s->locs[i]->var ? s->locs[i]->var : "");
		text_str(t, "</i>\n");
	}
	text_str(t, "</div>\n");
}

static void code_pane_print(Text *t, const CodegenResult *code, Arena *a)
{
	int number = 1;
	text_str(t, "<div class=pane id=code>\n");
	for (const char *p = code->source.text; p && *p; number++) {
		const size_t n = strcspn(p, "\n");
		text_str(t, "<i");
		line_keys_print(t, code, number);
		text_char(t, '>');
		html_text(t, arena_printf(a, "%4d  %.*s", number, (int)n, p));
		text_str(t, "</i>\n");
		p += n + (p[n] == '\n');
	}
	text_str(t, "</div>\n");
}

void panes_print(Text *t, const CodegenResult *code, const SourceOps *source)
{
	text_str(t,
	         "<h2>Model and C</h2>\n<p>A click on an operator, a step above, or a line shows what "
	         "belongs together.</p>\n<div class=panes>\n");
	source_pane_print(t, source);
	code_pane_print(t, code, t->arena);
	text_str(t, "</div>\n");
}
