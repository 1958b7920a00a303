// `pdcc diff A B`: what two models differ in: inputs, outputs, parameters, operators, and the text
// of their IR and generated code. Exit status: 0 no difference, 1 some, 2 trouble, as of diff(1).
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"
#include "frontend/report/report.h"
#include "ir/ir.h"
#include "ir/text/text.h"

#include <string.h>

// A difference of texts, where it was asked for.
typedef struct TextDifference {
	bool asked;
	Text text;
} TextDifference;

static const char *ir_text(Driver *d, const Op *module)
{
	Text t;
	text_init(&t, d->ctx->arena);
	ir_print(&t, module);
	return t.text;
}

// The code, without what only says where it comes from (names and hashes of files). NULL after
// diagnostics.
static const char *code_text(Driver *d, Op *module)
{
	const Target *t = driver_target(d, "generic");
	const CodegenOptions options = {.prefix = d->options->prefix ? d->options->prefix : "model",
	                                .header_name = "model.h",
	                                .weights_name = "model.weights",
	                                .version = PDCC_VERSION,
	                                .banner = "model",
	                                .given = d->options->given,
	                                .weights = WEIGHTS_FILE};
	CodegenResult r;
	const bool ok = t && driver_lower(d, module, t, NULL) &&
	                driver_codegen(d, module, t, &options, &r);
	return ok ? r.source.text : NULL;
}

// The operator, and its place in the program where it has one.
static void place_print(Text *t, const char *name, const Loc *loc, const char *var)
{
	text_str(t, name);
	if (loc->type) {
		text_str(t, ", ");
		loc_print(t, loc);
		return;
	}
	if (loc->line > 0)
		text_printf(t, ", line %d", loc->line);
	if (var)
		text_printf(t, " ('%s')", var);
}

static void difference_print(Text *t, const Difference *d)
{
	const Loc *a = d->from, *b = d->to;
	text_printf(t, "  %c ", d->sign);
	if (a || b)
		place_print(t, d->name, a ? a : b, a ? d->from_var : d->to_var);
	else
		text_printf(t, "'%s'", d->name);
	if (d->type)
		text_printf(t, ": %s", d->type);
	if (a && b && a->type && b->type && (a->block != b->block || a->op != b->op))
		text_printf(t, ", now block %d, op %d", b->block, b->op);
	text_char(t, '\n');
	for (int i = 0; i < d->ndetail; i++) {
		const Detail *e = &d->details[i];
		text_printf(t, "      %s: %s%s%s\n", e->what, e->from, *e->from ? " -> " : "", e->to);
	}
}

static void differences_print(Text *t, const char *what, const Differences *d)
{
	if (d->n)
		text_printf(t, "%s\n", what);
	for (int i = 0; i < d->n; i++)
		difference_print(t, &d->list[i]);
}

static void summary_print(Text *t, const Differences *d)
{
	int removed = 0, added = 0;
	for (int i = 0; i < d->n; i++) {
		removed += d->list[i].sign == '-';
		added += d->list[i].sign == '+';
	}
	text_printf(t, "operators: %d removed, %d added, %d changed\n", removed, added,
	            d->n - removed - added);
}

static void text_report(Text *t, const Comparison *r, const TextDifference *ir,
                        const TextDifference *code, bool same)
{
	if (same)
		text_str(t, "no difference\n");
	differences_print(t, "inputs", &r->inputs);
	differences_print(t, "outputs", &r->outputs);
	differences_print(t, "parameters", &r->parameters);
	differences_print(t, "operators", &r->operators);
	if (r->operators.n)
		summary_print(t, &r->operators);
	text_strn(t, ir->text.text, ir->text.len);
	text_strn(t, code->text.text, code->text.len);
}

// ---- JSON ---------------------------------------------------------------------------------------

static void json_member(Text *t, const char *key, const char *value)
{
	if (!value)
		return;
	text_printf(t, ", \"%s\": ", key);
	text_json(t, value);
}

static void json_place(Text *t, const char *key, const Loc *loc, const char *var)
{
	if (!loc)
		return;
	text_printf(t, ", \"%s\": {\"variable\": ", key);
	text_json(t, loc->var ? loc->var : var ? var : "");
	if (loc->type)
		text_printf(t, ", \"block\": %d, \"op\": %d", loc->block, loc->op);
	json_member(t, "type", loc->type);
	if (loc->line > 0)
		text_printf(t, ", \"line\": %d", loc->line);
	text_char(t, '}');
}

static void json_difference(Text *t, const Difference *d)
{
	text_printf(t, "{\"change\": \"%s\"",
	            d->sign == '-'   ? "removed"
	            : d->sign == '+' ? "added"
	                             : "changed");
	json_member(t, d->from || d->to ? "operator" : "name", d->name);
	json_member(t, "type", d->type);
	json_place(t, "from", d->from, d->from_var);
	json_place(t, "to", d->to, d->to_var);
	text_str(t, ", \"details\": [");
	for (int i = 0; i < d->ndetail; i++) {
		text_printf(t, "%s{\"what\": ", i ? ", " : "");
		text_json(t, d->details[i].what);
		json_member(t, "from", d->details[i].from);
		json_member(t, "to", d->details[i].to);
		text_char(t, '}');
	}
	text_str(t, "]}");
}

static void json_differences(Text *t, const char *key, const Differences *d)
{
	text_printf(t, ",\n  \"%s\": [", key);
	for (int i = 0; i < d->n; i++) {
		text_str(t, i ? ",\n    " : "\n    ");
		json_difference(t, &d->list[i]);
	}
	text_str(t, d->n ? "\n  ]" : "]");
}

static void json_report(Text *t, const Comparison *r, const TextDifference *ir,
                        const TextDifference *code, bool same)
{
	text_printf(t, "{\n  \"same\": %s", same ? "true" : "false");
	json_differences(t, "inputs", &r->inputs);
	json_differences(t, "outputs", &r->outputs);
	json_differences(t, "parameters", &r->parameters);
	json_differences(t, "operators", &r->operators);
	if (ir->asked)
		json_member(t, "ir", ir->text.text);
	if (code->asked)
		json_member(t, "c", code->text.text);
	text_str(t, "\n}\n");
}

// ---- the command --------------------------------------------------------------------------------

// The IR and, which changes the modules, the code of both. False after diagnostics.
static bool texts_compare(Driver *first, Driver *second, Op *a, Op *b, TextDifference *ir,
                          TextDifference *code)
{
	Context *c = first->ctx;
	const char *a_name = first->options->model, *b_name = second->options->model;
	text_init(&ir->text, c->arena);
	text_init(&code->text, c->arena);
	if (ir->asked)
		text_unified(&ir->text, c, a_name, ir_text(first, a), b_name, ir_text(second, b));
	if (!code->asked)
		return true;
	const char *x = code_text(first, a), *y = x ? code_text(second, b) : NULL;
	if (y)
		text_unified(&code->text, c, a_name, x, b_name, y);
	return y != NULL;
}

int cmd_diff(Driver *d)
{
	Options other = *d->options;
	Driver second = {.ctx = d->second = context_new(), .options = &other};
	other.model = d->second->file = other.other;
	other.params = other.other_params;
	diag_werror(d->second->diag, other.werror);
	Comparison r;
	TextDifference ir = {.asked = other.diff_ir}, code = {.asked = other.diff_c};
	Op *a = driver_load(d), *b = driver_load(&second);
	if (!a || !b)
		return 2;
	stage_begin(d, "compare");
	modules_compare(d->ctx->arena, a, b, &r);
	if (!texts_compare(d, &second, a, b, &ir, &code))
		return 2;
	const bool same = !r.inputs.n && !r.outputs.n && !r.parameters.n && !r.operators.n &&
	                  !ir.text.len && !code.text.len;
	Text t;
	text_init(&t, d->ctx->arena);
	(other.json ? json_report : text_report)(&t, &r, &ir, &code, same);
	return file_write(d->ctx, "-", t.text, t.len) ? !same : 2;
}
