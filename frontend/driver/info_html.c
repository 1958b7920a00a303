// `pdcc info --html`: one self-contained page. A row per operation in the order of execution, with
// arcs from producers to consumers, the cost beside it, the memory plan as a chart over the same
// order, for each of some batch sizes; and the model beside the C that it became.
#include "frontend/driver/info_page.h"
#include "ir/base/map.h"
#include "lower/analysis/analysis.h"
#include "lower/analysis/places.h"

#include <string.h>

enum {
	ROW = 18,
	INDENT = 16, // of what a loop does
	ARC_WIDTH = 160,
	BAR = 120, // the longest, of what costs most
	SPATIAL_SAMPLE = 224
};

static const int batches[] = {1, 4, 16, 64};

// Whether the first dim of an input is this symbol; NULL: any.
static bool is_batch(const Stats *s, const Dim *sym)
{
	for (int i = 0; i < s->ninput; i++) {
		const Type *type = s->inputs[i].type;
		if (type_is_tensor(type) && type->rank &&
		    (sym ? type->dims[0] == sym : type->dims[0]->kind == DIM_SYM))
			return true;
	}
	return false;
}

// Whether it is a height or a width of images that come in.
static bool is_space(const Stats *s, const Dim *sym)
{
	for (int i = 0; i < s->ninput; i++) {
		const Type *type = s->inputs[i].type;
		for (int d = 2; type_is_tensor(type) && type->rank >= 4 && d < type->rank; d++)
			if (type->dims[d] == sym)
				return true;
	}
	return false;
}

static int64_t sample(const Dim *sym, void *arg)
{
	const Drawn *drawn = arg;
	if (is_batch(drawn->stats, sym))
		return drawn->batch;
	return is_space(drawn->stats, sym) ? SPATIAL_SAMPLE : 1;
}

// What the symbols of the inputs are drawn as: "?n = 1, ?x_h = 224"; "" without symbols.
static const char *sample_text(Context *c, Drawn drawn)
{
	const Stats *s = drawn.stats;
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
			text_printf(&t, "%s%s = %d", t.len ? ", " : "", dim_text(c, d), (int)sample(d, &drawn));
		}
	}
	return t.len ? t.text : "";
}

double page_number(const Page *p, const Dim *d)
{
	Drawn drawn = p->drawn;
	int64_t v;
	return d && dim_eval(d, sample, &drawn, &v) ? (double)v : 0;
}

double page_bytes(const Page *p, const Value *v)
{
	return type_is_tensor(v->type)
	           ? page_number(p, type_numel(p->c, v->type)) * (double)dtype_size(v->type->dtype)
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

static int row_of(const Page *p, const Op *op)
{
	for (int i = 0; i < p->n; i++) {
		if (p->rows[i].op == op)
			return i;
	}
	return -1;
}

static void add_row(Page *p, const Op *op, int block, int loops)
{
	Row r = {.op = op,
	         .block = block,
	         .loops = loops,
	         .macs = page_number(p, op_macs(op)),
	         .last_use = p->n};
	// A view writes nothing: its elements are where they were.
	for (int i = 0; i < op->nresult; i++) {
		bool view;
		op_place(op, i, &view);
		if (!view)
			r.bytes += page_bytes(p, &op->results[i]);
	}
	p->macs += r.macs;
	p->bytes += r.bytes;
	p->rows[p->n++] = r;
}

// The operations of all blocks, each once.
static void collect(Page *p, const Op *module)
{
	int block = 0, loops = 0;
	size_t total = 0;
	for (const Block *b = module->regions[0].first; b; b = b->next) {
		for (const Op *op = b->first; op; op = op->next)
			total++;
	}
	p->rows = NEW_ARRAY(p->c->arena, total, Row);
	for (const Block *b = module->regions[0].first; b; b = b->next, block++) {
		loops += loop_back(b) != NULL;
		for (const Op *op = b->first; op; op = op->next) {
			if (op_shown(op))
				add_row(p, op, block, loops);
		}
		loops -= b->last && b->last->nsucc && loop_back(b->last->succs[0].block) == b->last;
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

// Of the time of a measured run; else of what the model computes, or writes.
static double row_share(const Page *p, const Row *r, double us)
{
	if (p->in->measured)
		return us > 0 && p->in->measured->us > 0 ? us / p->in->measured->us : 0;
	return p->macs > 0 ? r->macs / p->macs : p->bytes > 0 ? r->bytes / p->bytes : 0;
}

// The largest of them.
static double largest_share(const Page *p)
{
	double most = 0;
	for (int i = 0; i < p->n; i++) {
		const double us = p->in->measured ? measured_us(p->in->measured, p->rows[i].op) : -1;
		const double share = row_share(p, &p->rows[i], us);
		most = share > most ? share : most;
	}
	return most;
}

static void print_share(const Page *p, double share, double most)
{
	if (share <= 0)
		text_str(p->t, "<td>\n");
	else
		text_printf(p->t, "<td><div style='width:%.1fpx'></div>%.1f %%\n", share / most * BAR,
		            share * 100);
}

// A number of which 0 says nothing.
static void print_number(const Page *p, double x)
{
	text_printf(p->t,
	            x >= 1000 ? "<td class=num>%.0f"
	            : x > 0   ? "<td class=num>%.3g"
	                      : "<td class=num>",
	            x);
}

// Long ones are cut off, and shown whole where somebody points at them.
static void print_type(const Page *p, const Op *op)
{
	Text type;
	text_init(&type, p->t->arena);
	if (op->nresult)
		type_print(&type, op->results[0].type);
	const char *text = type.text ? type.text : "";
	text_str(p->t, "<td class=type title='");
	html_text(p->t, text);
	text_str(p->t, "'>");
	html_text(p->t, text);
}

static void print_rows(const Page *p)
{
	text_printf(p->t,
	            "<table>\n<tr><th>step<th>block<th>operation<th>variable<th>type<th>million "
	            "MACs<th>kB written%s\n",
	            p->in->measured ? "<th>microseconds<th>share of the run" : "<th>share of the cost");
	const double most = largest_share(p);
	for (int i = 0; i < p->n; i++) {
		const Row *r = &p->rows[i];
		const Op *op = r->op;
		const char *name = op_str(op, "name",
		                          op->nresult && op->results[0].name ? op->results[0].name : "");
		const double us = p->in->measured ? measured_us(p->in->measured, op) : -1;
		text_str(p->t, "<tr");
		ops_attribute_print(p->t, p->in->code, op);
		text_printf(p->t, "%s><td>%d<td>^%d<td style='padding-left:%dpx'>%s<td>",
		            r->loops ? " class=loop" : "", i, r->block, 8 + INDENT * r->loops,
		            op->info->name);
		html_text(p->t, name);
		print_type(p, op);
		print_number(p, r->macs / 1e6);
		print_number(p, r->bytes / 1e3);
		if (p->in->measured)
			text_printf(p->t, us < 0 ? "<td class=num>" : "<td class='num us'>%.2f", us);
		print_share(p, row_share(p, r, us), most);
	}
	text_str(p->t, "</table>\n");
}

// What a device must have: RAM for the workspace, flash for weights and code.
static void print_totals(const Page *p)
{
	const Attr *weights = op_attr(p->in->module, "weights");
	const char *samples = sample_text(p->c, p->drawn);
	text_printf(p->t,
	            "<p>%d steps, workspace (RAM) %.0f bytes, weights (flash) %.0f bytes, %.3f million "
	            "multiply-accumulates, those of a loop for one round.%s%s%s</p>\n",
	            p->n, p->workspace,
	            weights && weights->kind == ATTR_DIM ? page_number(p, weights->dim) : 0.0,
	            p->macs / 1e6, *samples ? " Drawn for " : "", samples, *samples ? "." : "");
	if (p->in->measured)
		text_printf(p->t, "<p>Measured: %.1f microseconds a run, for the sizes of that run.</p>\n",
		            p->in->measured->us);
}

static void print_batch(Text *t, Context *c, const InfoPage *in, int batch, bool shown)
{
	const Attr *workspace = op_attr(in->module, "workspace");
	Page p = {.t = t, .c = c, .in = in, .drawn = {in->stats, batch}};
	p.workspace = workspace && workspace->kind == ATTR_DIM ? page_number(&p, workspace->dim) : 0;
	collect(&p, in->module);
	text_printf(t, "<section data-batch=%d%s>\n", batch, shown ? "" : " hidden");
	print_totals(&p);
	text_str(t,
	         "<h2>Workspace over time</h2>\n<p>Each rectangle is a buffer: when it lives (left "
	         "to right, in the order of the steps below) and where it lies (bottom is offset 0). "
	         "Point at one for its name.</p>\n");
	info_chart(&p);
	text_str(t,
	         "<h2>Steps</h2>\n<p>In the order of execution, what loops do shaded; arcs lead from "
	         "what computes a value to what reads it. MACs are multiply-accumulates.</p>\n"
	         "<div class=graph>\n");
	print_arcs(&p, in->module);
	print_rows(&p);
	text_str(t, "</div>\n</section>\n");
}

static void print_controls(Text *t, bool batch)
{
	text_str(t, "<p>");
	if (batch) {
		text_str(t, "Batch <select id=batch>");
		for (size_t i = 0; i < COUNT_OF(batches); i++)
			text_printf(t, "<option>%d", batches[i]);
		text_str(t, "</select> ");
	}
	text_str(t, "Zoom <input id=zoom type=range min=1 max=12 value=1></p>\n");
}

static const char style[] =
	"body{font:13px system-ui,sans-serif;margin:2em;max-width:1700px}\n"
	"table{border-collapse:collapse}td{height:18px;padding:0 8px;white-space:nowrap;"
	"line-height:18px;text-align:left}\n"
	"th{height:18px;padding:0 8px;line-height:18px;text-align:left;white-space:nowrap;position:"
	"sticky;top:0;background:#fff}.loop td{background:#eef4fc}tr.on td{background:#ffe58a}\n"
	".type{max-width:20em;overflow:hidden;text-overflow:ellipsis}\n"
	".num{text-align:right;font-variant-numeric:tabular-nums}td "
	"div{display:inline-block;height:10px;margin-right:4px;background:#3b7dd8}\n"
	".graph{display:flex;overflow:auto;max-height:70vh}.arcs{flex:none;margin-top:18px}.arcs "
	"path{fill:none;"
	"stroke:#999}\n"
	".chart{overflow-x:auto;border:1px solid #ccc;background:#fafafa}.memory{width:100%}\n"
	"rect{stroke:#fff;stroke-width:.3}.grid{stroke:#ddd}.bytes{text-anchor:end}"
	".step{text-anchor:middle}\n"
	"line.peak{stroke:#c00;stroke-dasharray:4}text.peak{fill:#c00}svg text{font-size:11px}\n"
	".panes{display:flex;gap:1em}.pane{flex:1;height:70vh;overflow:auto;border:1px solid #ccc;"
	"font:12px monospace}#code{flex:3}\n"
	".pane i{display:block;font-style:normal;white-space:pre}[data-ops]{cursor:pointer}\n"
	"i.on,tr.on{background:#ffe58a}rect.on{stroke:#000;stroke-width:2}\n";

// What has a key in common lights up, and comes into view in the other panes; no other page or
// library is asked for anything.
static const char script[] =
	"<script>\n"
	"const all=[...document.querySelectorAll('[data-ops]')],keys=e=>e.dataset.ops.split(' ');\n"
	"for(const e of all)e.onclick=()=>{const want=new Set(keys(e)),seen=new Set([e.parentNode]);\n"
	"for(const o of all){const on=keys(o).some(k=>want.has(k));o.classList.toggle('on',on);\n"
	"const p=o.closest('.pane,.graph');if(on&&p&&!seen.has(o.parentNode)){seen.add(o.parentNode);\n"
	"p.scrollTop+=o.getBoundingClientRect().top-p.getBoundingClientRect().top-p.clientHeight/"
	"3}}};\n"
	"const batch=document.getElementById('batch');\n"
	"if(batch)batch.onchange=()=>{for(const s of document.querySelectorAll('section'))\n"
	"s.hidden=s.dataset.batch!==batch.value};\n"
	"document.getElementById('zoom').oninput=z=>{for(const s of "
	"document.querySelectorAll('.memory'))\ns.style.width=z.target.value+'00%'};\n"
	"</script>\n";

// A path without what stands in front of its last folder: models are often called `model`.
static const char *last_folder(const char *path)
{
	const char *at = path;
	for (const char *s = path, *before = path; *s; s++)
		if (*s == '/') {
			at = before;
			before = s + 1;
		}
	return at;
}

void info_html(Text *t, Context *c, const InfoPage *in)
{
	const Stats *s = in->stats;
	const bool open = is_batch(s, NULL);
	text_str(t, "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>");
	html_text(t, in->model);
	text_printf(t, "</title>\n<style>\n%s</style>\n<h1>", style);
	html_text(t, last_folder(in->model));
	text_printf(t, "</h1>\n<p>%d operators, %d parameters (%.2f MB), compiled for %s.</p>\n",
	            s->nop, s->nparam, (double)s->param_bytes / 1e6, in->target->name);
	if (in->config)
		config_html(t, in->config);
	print_controls(t, open);
	for (size_t i = 0; i < (open ? COUNT_OF(batches) : 1); i++)
		print_batch(t, c, in, batches[i], i == 0);
	if (in->code)
		panes_print(t, in->code, in->source);
	text_printf(t, "%s</html>\n", script);
}
