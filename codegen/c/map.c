// The source map of --map: which lines of generated C do what operators of the model do. Called by
// module.c, once the source is there; the others note where their texts begin and end.
#include "codegen/c/c.h"
#include "ir/base/vec.h"

void map_note(Codegen *cg, const Op *op, int function, size_t from)
{
	SourceMap *m = &cg->map;
	VEC_ROOM(cg->arena, m->steps, m->n, m->cap);
	m->steps[m->n++] = (MapStep){op, function, from, cg->run.len};
}

// The line, from 1, on which a position of the source lies.
static int line_at(const Text *source, size_t at)
{
	int line = 1;
	for (size_t i = 0; i < at && i < source->len; i++)
		line += source->text[i] == '\n';
	return line;
}

static void lines_print(const Text *source, size_t from, size_t to, Text *out)
{
	while (from < to && source->text[from] == '\n')
		from++;
	text_printf(out, "\"lines\": [%d, %d]", line_at(source, from),
	            line_at(source, to ? to - 1 : 0));
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

static void step_print(Codegen *cg, const MapStep *step, const Text *source, size_t base, Text *out)
{
	bool first = true;
	const Story s = op_story(cg, step->op);
	text_str(out, "\t\t{");
	lines_print(source, base + step->from, base + step->to, out);
	if (step->function >= 0) {
		text_str(out, ", \"calls\": ");
		text_json(out, cg->funcs[step->function].name);
	}
	text_str(out, ", \"operators\": [");
	operators_print(cg, &s, &first, out);
	text_str(out, "]}");
}

// A function stands for the operators of all that call it.
static void function_print(Codegen *cg, int f, const Text *source, size_t base, Text *out)
{
	bool first = true;
	text_str(out, "\t\t{\"name\": ");
	text_json(out, cg->funcs[f].name);
	text_str(out, ", ");
	lines_print(source, base + cg->funcs[f].from, base + cg->funcs[f].to, out);
	text_str(out, ", \"operators\": [");
	for (int i = 0; i < cg->map.n; i++)
		if (cg->map.steps[i].function == f) {
			const Story s = op_story(cg, cg->map.steps[i].op);
			operators_print(cg, &s, &first, out);
		}
	text_str(out, "]}");
}

void map_print(Codegen *cg, const Text *source, size_t functions, size_t run, Text *out)
{
	text_str(out, "{\n\t\"model\": ");
	text_json(out, cg->options->banner);
	text_str(out, ",\n\t\"functions\": [\n");
	for (int i = 0; i < cg->nfunc; i++) {
		function_print(cg, i, source, functions, out);
		text_str(out, i + 1 < cg->nfunc ? ",\n" : "\n");
	}
	text_str(out, "\t],\n\t\"run\": [\n");
	for (int i = 0; i < cg->map.n; i++) {
		step_print(cg, &cg->map.steps[i], source, run, out);
		text_str(out, i + 1 < cg->map.n ? ",\n" : "\n");
	}
	text_str(out, "\t]\n}\n");
}
