// `pdcc info --html`: one self-contained page. A row per operation in the order of execution, with
// arcs from producers to consumers, the cost beside it, and the memory plan as a chart over the
// same order.
#include "frontend/driver/stats.h"
#include "frontend/report/report.h"
#include "ir/base/map.h"
#include "lower/target/target.h"

#include <string.h>

enum { ROW = 18, ARC_WIDTH = 160, CHART_HEIGHT = 320, CHART_WIDTH = 1000, SPATIAL_SAMPLE = 224 };

typedef struct Row {
	const Op *op;
	double macs, bytes; // multiply-accumulates; bytes written
	int last_use;       // row of the last reader of a result
} Row;

typedef struct Page {
	Text *t;
	int n;
	Row *rows;
	double macs, bytes, workspace;
} Page;

// Sizes that are symbols are drawn for a batch of one and images of a usual size.
static int64_t sample(const Dim *sym, void *arg)
{
	(void)arg;
	bool space = strchr("hw", sym->name[0]) || strstr(sym->name, "_h") || strstr(sym->name, "_w");
	return space ? SPATIAL_SAMPLE : 1;
}

// What the symbols of the inputs are drawn as: "?n = 1, ?x_h = 224"; "" without symbols.
static const char *sample_text(Context *c, const Stats *s)
{
	PointerMap seen;
	Text t;
	text_init(&t, c->arena);
	pointer_map_init(&seen, c->arena);
	for (int i = 0; i < s->ninput; i++) {
		const Type *type = s->inputs[i].type;
		for (int k = 0; type_is_tensor(type) && k < type->rank; k++) {
			const Dim *d = type->dims[k];
			if (d->kind != DIM_SYM || pointer_map_index(&seen, d) >= 0)
				continue;
			pointer_map_set_index(&seen, d, 0);
			text_printf(&t, "%s%s = %d", t.len ? ", " : "", dim_text(c, d), (int)sample(d, NULL));
		}
	}
	return t.len ? t.text : "";
}

static double dim_number(const Dim *d)
{
	int64_t v;
	return d && dim_eval(d, sample, NULL, &v) ? (double)v : 0;
}

static double value_bytes(Context *c, const Value *v)
{
	return type_is_tensor(v->type)
	           ? dim_number(type_numel(c, v->type)) * (double)dtype_size(v->type->dtype)
	           : 0;
}

static bool op_shown(const Op *op)
{
	return op->code != OP_BUILTIN_GET_PARAMETER && op->code != OP_BUILTIN_CONSTANT &&
	       op->code != OP_BUILTIN_COMBINE;
}

// The operation of the module's block in which a use happens (a region's use counts for its owner).
static const Op *top_user(const Op *module, const Op *user)
{
	while (user && op_parent(user) != module)
		user = op_parent(user);
	return user;
}

static const Attr *attr_of(const Op *op, const char *name, AttrKind kind)
{
	const Attr *a = op_attr(op, name);
	return a && a->kind == kind ? a : NULL;
}

static int row_of(const Page *p, const Op *op)
{
	for (int i = 0; i < p->n; i++) {
		if (p->rows[i].op == op)
			return i;
	}
	return -1;
}

static void add_row(Page *p, Context *c, const Op *op)
{
	Row r = {.op = op, .macs = dim_number(op_macs(op)), .last_use = p->n};
	// A view writes nothing: its elements are where they were.
	const Attr *place = attr_of(op, "place", ATTR_STRS);
	for (int i = 0; i < op->nresult; i++) {
		if (!place || i >= place->n || strcmp(place->strs[i], "view") != 0)
			r.bytes += value_bytes(c, &op->results[i]);
	}
	p->macs += r.macs;
	p->bytes += r.bytes;
	p->rows[p->n++] = r;
}

// The operations of all blocks, each once.
static void collect(Page *p, Context *c, const Op *module)
{
	size_t total = 0;
	for (const Block *b = module->regions[0].first; b; b = b->next) {
		for (const Op *op = b->first; op; op = op->next)
			total++;
	}
	p->rows = NEW_ARRAY(c->arena, total, Row);
	for (const Block *b = module->regions[0].first; b; b = b->next) {
		for (const Op *op = b->first; op; op = op->next) {
			if (op_shown(op))
				add_row(p, c, op);
		}
	}
	for (int i = 0; i < p->n; i++) {
		const Op *op = p->rows[i].op;
		for (int k = 0; k < op->nresult; k++) {
			for (const Use *u = op->results[k].uses; u; u = u->next) {
				int at = row_of(p, top_user(module, u->user));
				p->rows[i].last_use = at > p->rows[i].last_use ? at : p->rows[i].last_use;
			}
		}
	}
}

static void print_arcs(const Page *p, const Op *module)
{
	text_printf(p->t, "<svg class=arcs width=%d height=%d>\n", ARC_WIDTH, p->n * ROW);
	for (int i = 0; i < p->n; i++) {
		const Op *op = p->rows[i].op;
		for (int k = 0; k < op->nresult; k++) {
			for (const Use *u = op->results[k].uses; u; u = u->next) {
				int at = row_of(p, top_user(module, u->user)), span = at - i;
				if (span <= 0)
					continue;
				int reach = span == 1 ? 8 : 14 + span * 3;
				reach = reach > ARC_WIDTH - 8 ? ARC_WIDTH - 8 : reach;
				int y0 = i * ROW + ROW / 2, y1 = at * ROW + ROW / 2, x = ARC_WIDTH - 4;
				text_printf(p->t, "<path d='M%d %d C%d %d %d %d %d %d'/>\n", x, y0, x - reach, y0,
				            x - reach, y1, x, y1);
			}
		}
	}
	text_str(p->t, "</svg>\n");
}

static void print_rows(const Page *p)
{
	text_str(p->t, "<table>\n");
	for (int i = 0; i < p->n; i++) {
		const Row *r = &p->rows[i];
		const Op *op = r->op;
		const char *name = op_str(op, "name",
		                          op->nresult && op->results[0].name ? op->results[0].name : "");
		double share = p->macs > 0 ? r->macs / p->macs : p->bytes > 0 ? r->bytes / p->bytes : 0;
		text_printf(p->t, "<tr><td>%s<td>", op->info->name);
		html_text(p->t, name);
		text_str(p->t, "<td>");
		if (op->nresult) {
			Text type;
			text_init(&type, p->t->arena);
			type_print(&type, op->results[0].type);
			html_text(p->t, type.text);
		}
		text_printf(p->t,
		            "<td class=num>%.3g<td class=num>%.3g<td><div style='width:%.1fpx'></div>\n",
		            r->macs / 1e6, r->bytes / 1e3, share * 200);
	}
	text_str(p->t, "</table>\n");
}

static void print_buffer(const Page *p, Context *c, int i, int k, double top)
{
	const Row *r = &p->rows[i];
	const Attr *place = attr_of(r->op, "place", ATTR_STRS),
			   *offset = attr_of(r->op, "offset", ATTR_DIMS);
	if (!place || !offset || k >= place->n || k >= offset->n || strcmp(place->strs[k], "workspace"))
		return;
	double at = dim_number(offset->dims[k]), size = value_bytes(c, &r->op->results[k]);
	double x = CHART_WIDTH * (double)i / p->n,
		   w = CHART_WIDTH * (double)(r->last_use - i + 1) / p->n;
	double h = CHART_HEIGHT * size / top, y = CHART_HEIGHT - CHART_HEIGHT * at / top - h;
	text_printf(
		p->t, "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='hsl(%d 60%% 65%%)'><title>",
		x, y, w, h, i * 47 % 360);
	html_text(p->t, r->op->results[k].name ? r->op->results[k].name : r->op->info->name);
	text_printf(p->t, ": %.0f bytes at %.0f, rows %d to %d</title></rect>\n", size, at, i,
	            r->last_use);
}

static void print_memory(const Page *p, Context *c)
{
	double top = p->workspace > 0 ? p->workspace : 1;
	text_printf(p->t,
	            "<svg class=memory viewBox='0 0 %d %d' width='100%%' height='%d' "
	            "preserveAspectRatio='none'>\n",
	            CHART_WIDTH, CHART_HEIGHT, CHART_HEIGHT);
	for (int i = 0; i < p->n; i++) {
		for (int k = 0; k < p->rows[i].op->nresult; k++)
			print_buffer(p, c, i, k, top);
	}
	text_str(p->t, "</svg>\n");
}

void info_html(Text *t, const Driver *d, const Op *module, const Stats *s, const Target *target,
               const ModelConfig *config)
{
	Context *c = d->ctx;
	const Attr *workspace = op_attr(module, "workspace"), *weights = op_attr(module, "weights");
	Page p = {.t = t,
	          .workspace = workspace && workspace->kind == ATTR_DIM ? dim_number(workspace->dim)
	                                                                : 0};
	collect(&p, c, module);
	text_str(t, "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>");
	html_text(t, d->options->model);
	text_str(
		t, "</title>\n<style>\nbody{font:13px system-ui,sans-serif;margin:2em;max-width:1400px}\n"
		   "table{border-collapse:collapse}td,th{height:18px;padding:0 "
		   "8px;white-space:nowrap;line-height:18px;text-align:left}\n"
		   ".num{text-align:right;font-variant-numeric:tabular-nums}td "
		   "div{height:10px;background:#3b7dd8}\n"
		   ".graph{display:flex;overflow-x:auto}.arcs{flex:none}.arcs path{fill:none;stroke:#999}\n"
		   ".memory{border:1px solid "
		   "#ccc;background:#fafafa}rect{stroke:#fff;stroke-width:.3}\n</style>\n<h1>");
	html_text(t, d->options->model);
	const char *samples = sample_text(c, s);
	text_printf(t,
	            "</h1>\n<p>%d operators, %d parameters (%.2f MB), compiled for %s: %d steps, "
	            "workspace %.3f MB, weights %.2f MB, "
	            "%.1f million multiply-accumulates, those of a loop for one round.%s%s%s</p>\n",
	            s->nop, s->nparam, (double)s->param_bytes / 1e6, target->name, p.n,
	            p.workspace / 1e6,
	            weights && weights->kind == ATTR_DIM ? dim_number(weights->dim) / 1e6 : 0.0,
	            p.macs / 1e6, *samples ? " Drawn for " : "", samples, *samples ? "." : "");
	if (config)
		config_html(t, config);
	text_str(t, "<h2>Workspace over time</h2>\n<p>Each rectangle is a buffer: when it lives (left "
	            "to right, in the order of the steps "
	            "below) and where it lies (bottom is offset 0). Point at one for its name.</p>\n");
	print_memory(&p, c);
	text_str(t, "<h2>Steps</h2>\n<p>Columns: operation, variable, type, million "
	            "multiply-accumulates, kB written, share of the cost.</p>\n"
	            "<div class=graph>\n");
	print_arcs(&p, module);
	print_rows(&p);
	text_str(t, "</div>\n</html>\n");
}
