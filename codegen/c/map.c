// The source map of --map: which lines of generated C do what operators of the model do. Called by
// module.c, once the source is there; the others note where their texts begin and end.
#include "codegen/c/c.h"
#include "ir/base/vec.h"

#include <string.h>

void map_note(Codegen *cg, const Op *op, int function, size_t from)
{
	SourceMap *m = &cg->map;
	VEC_ROOM(cg->arena, m->steps, m->n, m->cap);
	m->steps[m->n++] = (MapStep){op, function, from, cg->run.len};
}

// Where the lines of a source begin, and which they are, from 1, once it is wrapped.
typedef struct Lines {
	const Text *source;
	int n, cap;
	struct Line {
		size_t begin;
		int number;
	} * items;
} Lines;

static Lines lines_collect(Codegen *cg, const Text *source)
{
	Lines l = {.source = source};
	int number = 1;
	LineState state = {0};
	for (size_t at = 0; at < source->len;) {
		const char *stop = memchr(source->text + at, '\n', source->len - at);
		const size_t end = stop ? (size_t)(stop - source->text) : source->len;
		VEC_ROOM(cg->arena, l.items, l.n, l.cap);
		l.items[l.n++] = (struct Line){at, number};
		Text wrapped;
		text_init(&wrapped, cg->arena);
		text_finish_line(source->text + at, end - at, &state, &wrapped);
		for (size_t i = 0; i < wrapped.len; i++)
			number += wrapped.text[i] == '\n';
		at = end + 1;
	}
	return l;
}

// Of the line in which a position lies, the number, and that of the next one.
static int line_at(const Lines *l, size_t at, bool next)
{
	int low = 0, high = l->n - 1;
	while (low < high) {
		const int middle = (low + high + 1) / 2;
		if (l->items[middle].begin <= at)
			low = middle;
		else
			high = middle - 1;
	}
	return l->items[next && low + 1 < l->n ? low + 1 : low].number;
}

static void lines_print(const Lines *l, size_t from, size_t to, Text *out)
{
	while (from < to && l->source->text[from] == '\n')
		from++;
	text_printf(out, "\"lines\": [%d, %d]", line_at(l, from, false),
	            line_at(l, to ? to - 1 : 0, true) - 1);
}

static void operators_print(Codegen *cg, const Story *s, bool *first, Text *out)
{
	for (int i = 0; i < s->n; i++) {
		const Loc *l = s->locs[i];
		text_printf(out, "%s\n\t\t\t{\"type\": ", *first ? "" : ",");
		*first = false;
		text_json(out, l->type);
		if (l->var) {
			text_str(out, ", \"output\": ");
			text_json(out, comment_text(cg->arena, l->var));
		}
		text_printf(out, ", \"block\": %d, \"op\": %d}", l->block, l->op);
	}
}

static void step_print(Codegen *cg, const MapStep *step, const Lines *lines, size_t base, Text *out)
{
	bool first = true;
	const Story *s = op_story(cg, step->op);
	text_str(out, "\t\t{");
	lines_print(lines, base + step->from, base + step->to, out);
	if (step->function >= 0) {
		text_str(out, ", \"calls\": ");
		text_json(out, cg->funcs[step->function].name);
	}
	text_str(out, ", \"operators\": [");
	operators_print(cg, s, &first, out);
	text_str(out, "]}");
}

// A function stands for the operators of all that call it.
static void function_print(Codegen *cg, int f, const Lines *lines, size_t base, Text *out)
{
	bool first = true;
	text_str(out, "\t\t{\"name\": ");
	text_json(out, cg->funcs[f].name);
	text_str(out, ", ");
	lines_print(lines, base + cg->funcs[f].from, base + cg->funcs[f].to, out);
	text_str(out, ", \"operators\": [");
	for (int i = 0; i < cg->map.n; i++)
		if (cg->map.steps[i].function == f) {
			const Story *s = op_story(cg, cg->map.steps[i].op);
			operators_print(cg, s, &first, out);
		}
	text_str(out, "]}");
}

static CodeSpan span_of(Codegen *cg, const Op *op, const Lines *l, size_t from, size_t to)
{
	const Story *s = op_story(cg, op);
	while (from < to && l->source->text[from] == '\n')
		from++;
	return (CodeSpan){op, line_at(l, from, false), line_at(l, to ? to - 1 : 0, true) - 1, s->n,
	                  s->locs};
}

// The same for a caller in C.
static void spans_make(Codegen *cg, const Lines *l, size_t functions, size_t run,
                       CodegenResult *result)
{
	CodeSpan *spans = NEW_ARRAY(cg->arena, 2 * (size_t)cg->map.n + 1, CodeSpan);
	int n = 0;
	for (int i = 0; i < cg->map.n; i++)
		spans[n++] = span_of(cg, cg->map.steps[i].op, l, run + cg->map.steps[i].from,
		                     run + cg->map.steps[i].to);
	for (int i = 0; i < cg->map.n; i++) {
		const MapStep *step = &cg->map.steps[i];
		if (step->function >= 0)
			spans[n++] = span_of(cg, step->op, l, functions + cg->funcs[step->function].from,
			                     functions + cg->funcs[step->function].to);
	}
	result->spans = spans;
	result->nspan = n;
}

void map_print(Codegen *cg, const Text *source, size_t functions, size_t run, CodegenResult *result)
{
	Text *out = &result->map;
	const Lines lines = lines_collect(cg, source);
	spans_make(cg, &lines, functions, run, result);
	text_str(out, "{\n\t\"model\": ");
	text_json(out, cg->options->banner);
	text_str(out, ",\n\t\"functions\": [\n");
	for (int i = 0; i < cg->nfunc; i++) {
		function_print(cg, i, &lines, functions, out);
		text_str(out, i + 1 < cg->nfunc ? ",\n" : "\n");
	}
	text_str(out, "\t],\n\t\"run\": [\n");
	for (int i = 0; i < cg->map.n; i++) {
		step_print(cg, &cg->map.steps[i], &lines, run, out);
		text_str(out, i + 1 < cg->map.n ? ",\n" : "\n");
	}
	text_str(out, "\t]\n}\n");
}
