// The memory plan as a chart on the page of `pdcc info --html`: a rectangle for each buffer, from
// the step that makes it to the last that reads it, at its place in the workspace. Called by
// info_html.c.
#include "frontend/driver/info_page.h"
#include "lower/analysis/places.h"

enum {
	CHART_HEIGHT = 320,
	CHART_WIDTH = 1000,
	CHART_LEFT = 90, // of the axis of bytes
	CHART_BELOW = 30,
	TICKS = 5
};

typedef struct Buffer {
	double at, size;
	int from, to; // steps
} Buffer;

// Result k of a step as a buffer of the workspace. False: it is none.
static bool buffer_of(const Page *p, int i, int k, Buffer *out)
{
	const Row *r = &p->rows[i];
	bool view;
	const Place place = op_place(r->op, k, &view);
	if (place.kind != PLACE_WORKSPACE || place.state || place.moving || !place.offset)
		return false;
	*out = (Buffer){page_number(p, place.offset), page_bytes(p, &r->op->results[k]), i,
	                r->last_use > i ? r->last_use : i};
	return true;
}

static double chart_x(const Page *p, int step)
{
	return CHART_LEFT + (double)CHART_WIDTH * step / (p->n ? p->n : 1);
}

static double chart_y(const Page *p, double at)
{
	return CHART_HEIGHT - CHART_HEIGHT * at / (p->workspace > 0 ? p->workspace : 1);
}

static void print_buffer(const Page *p, int i, int k)
{
	Buffer b;
	if (!buffer_of(p, i, k, &b))
		return;
	const Op *op = p->rows[i].op;
	const double x = chart_x(p, b.from), y = chart_y(p, b.at + b.size);
	text_str(p->t, "<rect");
	ops_attribute_print(p->t, p->in->code, op);
	text_printf(p->t,
	            " x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='hsl(%d 60%% 65%%)'><title>", x,
	            y, chart_x(p, b.to + 1) - x, chart_y(p, b.at) - y, i * 47 % 360);
	html_text(p->t, op->results[k].name ? op->results[k].name : op->info->name);
	text_printf(p->t, ": %.0f bytes at %.0f, steps %d to %d</title></rect>\n", b.size, b.at, b.from,
	            b.to);
}

// The step at which the buffers that live reach highest, and how high.
static int peak_of(const Page *p, double *bytes)
{
	double *tops = NEW_ARRAY(p->c->arena, (size_t)p->n + 1, double);
	int peak = 0;
	for (int i = 0; i < p->n; i++)
		for (int k = 0; k < p->rows[i].op->nresult; k++) {
			Buffer b;
			for (int at = i; buffer_of(p, i, k, &b) && at <= b.to; at++)
				tops[at] = b.at + b.size > tops[at] ? b.at + b.size : tops[at];
		}
	for (int i = 0; i < p->n; i++)
		peak = tops[i] > tops[peak] ? i : peak;
	*bytes = tops[peak];
	return peak;
}

// The distance of about TICKS marks up to `most`: 1, 2 or 5 times a power of ten.
static double tick_distance(double most)
{
	const double about = most / TICKS;
	double power = 1;
	while (power * 10 <= about)
		power *= 10;
	return about > 5 * power   ? 10 * power
	       : about > 2 * power ? 5 * power
	       : about > power     ? 2 * power
	                           : power;
}

static void print_axes(const Page *p)
{
	const double bytes = tick_distance(p->workspace), steps = tick_distance(p->n);
	const double unit = bytes >= 1e6 ? 1e6 : bytes >= 1e3 ? 1e3 : 1;
	const char *name = bytes >= 1e6 ? "MB" : bytes >= 1e3 ? "kB" : "bytes";
	for (int i = 0; i * bytes <= p->workspace; i++) {
		const double y = chart_y(p, i * bytes);
		text_printf(
			p->t,
			"<line class=grid x1='%d' x2='%d' y1='%.1f' y2='%.1f'/><text class=bytes x='%d' "
			"y='%.1f'>%.0f %s</text>\n",
			CHART_LEFT, CHART_LEFT + CHART_WIDTH, y, y, CHART_LEFT - 6, y + 4, i * bytes / unit,
			name);
	}
	for (int i = 0; i * steps <= p->n; i++)
		text_printf(p->t, "<text class=step x='%.1f' y='%d'>%s%.0f</text>\n",
		            chart_x(p, (int)(i * steps)), CHART_HEIGHT + 18, i ? "" : "step ", i * steps);
}

void info_chart(const Page *p)
{
	double bytes = 0;
	text_printf(p->t, "<div class=chart><svg class=memory viewBox='0 -14 %d %d'>\n",
	            CHART_LEFT + CHART_WIDTH + 20, CHART_HEIGHT + CHART_BELOW + 14);
	print_axes(p);
	for (int i = 0; i < p->n; i++) {
		for (int k = 0; k < p->rows[i].op->nresult; k++)
			print_buffer(p, i, k);
	}
	const int peak = p->n ? peak_of(p, &bytes) : 0;
	if (bytes > 0) {
		const double y = chart_y(p, bytes), x = chart_x(p, peak);
		text_printf(p->t,
		            "<line class=peak x1='%d' x2='%d' y1='%.1f' y2='%.1f'/><text class=peak "
		            "x='%.1f' y='%.1f'>peak %.0f bytes at step %d</text>\n",
		            CHART_LEFT, CHART_LEFT + CHART_WIDTH, y, y,
		            x < CHART_LEFT + CHART_WIDTH - 220 ? x : x - 220, y - 3, bytes, peak);
	}
	text_str(p->t, "</svg></div>\n");
}
