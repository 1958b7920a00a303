// Rows of a tensor as kernels of the generated code see them: the inner axes as one, evaluated by a
// region into memory, reduced, and sent through the epilogue. Called by softmax.c and
// norm.c.
#include "codegen/tuned/row.h"

#include <inttypes.h>
#include <string.h>

enum { BUFFER_FLOATS = 16384 }; // the longest row that goes on the stack

// A strip is as long as what divides the last position, if no less: its loop goes in steps then.
enum { MIN_STRIP = 8 };

// The length of strips of columns; 0: the row is not cut.
static int64_t row_strip(const KernelFunc *k, const Region *r)
{
	const Type *t = k->op->results[0].type;
	const Dim *last = t->dims[t->rank - 1];
	const Block *b = region_entry(r);
	const int64_t by = b->narg ? index_divisor(b->args[b->narg - 1]) : 0;
	return by >= MIN_STRIP && dim_is_const(last) && last->value > by && last->value % by == 0 ? by
	                                                                                          : 0;
}

// `strip`: columns are gone through in strips of so many, from j0; 0: one after the other.
static const char *row_region(KernelFunc *k, int which, int axes, const char *first_arg,
                              int64_t strip, const char **value)
{
	const Region *r = &k->op->regions[which];
	const Type *t = k->op->results[0].type;
	const char *args[MAX_RANK + 1];
	int n = 0, lead = t->rank - axes;
	if (first_arg)
		args[n++] = first_arg;
	tile_positions(k, r, "r", n, lead, t->dims, args);
	n += lead;
	if (!strip) {
		tile_positions(k, r, "j", n, axes, t->dims + lead, args);
		return region_text(k, r, args, value);
	}
	for (int i = 0; i < axes; i++, n++)
		args[n] = !region_uses(r, n)
		              ? "0"
		              : tile_position(k, i + 1 == axes ? "j" : "j0", axes, t->dims + lead, i);
	const char *first = tile_position(k, "j0", axes, t->dims + lead, axes - 1);
	const IndexSplit split = {region_entry(r)->args[n - 1],
	                          arena_printf(k->arena, "(%s / %" PRId64 ")", first, strip),
	                          "(j - j0)"};
	return region_split_text(k, r, args, &split, value);
}

// The head of a loop over the columns, its brace included.
static const char *row_each(KernelFunc *k, int64_t strip)
{
	if (!strip)
		return "PD_LANES\nfor (int64_t j = 0; j < columns; j++) {";
	return arena_printf(k->arena,
	                    "for (int64_t j0 = 0; j0 < columns; j0 += %" PRId64 ")\nPD_LANES\n"
	                    "for (int64_t j = j0; j < j0 + %" PRId64 "; j++) {",
	                    strip, strip);
}

// Whether the input region does nothing but read, and what it reads of a row lies side by side.
static bool row_is_there(const KernelFunc *k, int axes)
{
	const Block *b = region_entry(&k->op->regions[0]);
	const Op *load = op_operand(b->last, 0)->def;
	const Type *t = k->op->results[0].type,
			   *from = load && load->code == OP_LOOP_LOAD ? op_operand(load, 0)->type : NULL;
	if (!from || from->dtype != DT_F32 || from->rank < axes || b->narg < axes)
		return false;
	for (int i = 0; i < axes; i++) {
		const Value *at = op_operand(load, 1 + from->rank - axes + i);
		const Dim *dim = from->dims[from->rank - axes + i];
		if (at != b->args[b->narg - axes + i] || value_use_count(at) != 1 ||
		    (i && (!dim_is_const(dim) || dim != t->dims[t->rank - axes + i])))
			return false;
	}
	return true;
}

// The first element of row r.
static const char *row_first(KernelFunc *k, int axes, const char **value)
{
	const Type *t = k->op->results[0].type;
	const char *args[MAX_RANK];
	for (int i = 0; i < t->rank; i++)
		args[i] = "0";
	tile_positions(k, &k->op->regions[0], "r", 0, t->rank - axes, t->dims, args);
	return region_text(k, &k->op->regions[0], args, value);
}

const char *row_source(const RowTexts *t)
{
	return t->there ? "from" : "row";
}

const char *row_fill(KernelFunc *k, const RowTexts *t, bool written)
{
	Text text;
	text_init(&text, k->arena);
	if (!t->there || written)
		text_printf(&text, "%s%sfloat *row = %s;\n", t->buffer, *t->buffer ? "\n" : "", t->row);
	if (t->there) {
		text_printf(&text, "%s%sconst float *from = &%s;", t->input, *t->input ? "\n" : "",
		            t->value);
		return text.text;
	}
	text_printf(&text, "%s\n", t->each_in);
	tile_indent(&text, t->input);
	text_printf(&text, "\trow[j] = %s;\n}", t->value);
	return text.text;
}

// What the loops over the columns look like.
static bool row_loops(KernelFunc *k, int axes, bool strips, RowTexts *x)
{
	const char *result;
	const int64_t in = strips ? row_strip(k, &k->op->regions[0]) : 0,
				  out = strips ? row_strip(k, &k->op->regions[1]) : 0;
	x->each_in = row_each(k, in);
	x->each_out = row_each(k, out);
	x->there = strips && row_is_there(k, axes);
	x->input = x->there ? row_first(k, axes, &x->value)
	                    : row_region(k, 0, axes, NULL, in, &x->value);
	x->epilogue = row_region(k, 1, axes, "acc", out, &result);
	if (!x->input || !x->epilogue)
		return false;
	x->store = scalar_store(k, k->op->results[0].type->dtype, "out", "r * columns + j", result);
	return true;
}

bool row_texts(KernelFunc *k, int axes, bool strips, RowTexts *x)
{
	const Type *t = k->op->results[0].type;
	if (axes < 1 || axes > t->rank) {
		diag_error(k->ctx->diag, k->op->loc, "%s: %d axes of %d", k->op->info->name, axes, t->rank);
		return false;
	}
	const Dim *rows = dims_product(k->ctx, t->rank - axes, t->dims);
	const bool shared = kernel_share(k, rows);
	x->rows = shared ? "" : arena_printf(k->arena, "rows = %s, ", kernel_dim(k, rows));
	x->first = shared ? "begin" : "0";
	x->end = shared ? "end" : "rows";
	x->columns = tile_product(k, axes, t->dims + t->rank - axes);
	x->row = "out + r * columns";
	x->buffer = "";
	if (!row_loops(k, axes, strips, x))
		return false;
	if (t->dtype == DT_F32)
		return true;
	int64_t length = 1;
	for (int i = t->rank - axes; i < t->rank; i++)
		length = dim_is_const(t->dims[i]) && length <= BUFFER_FLOATS ? length * t->dims[i]->value
		                                                             : BUFFER_FLOATS + 1;
	if (length > BUFFER_FLOATS) {
		diag_error(k->ctx->diag, k->op->loc,
		           "%s: rows of %s must have a known length of at most %d", k->op->info->name,
		           dtype_name(t->dtype), BUFFER_FLOATS);
		return false;
	}
	x->row = "buffer";
	x->buffer = arena_printf(k->arena, "float buffer[%" PRId64 "] PD_ALIGNED;",
	                         length > 0 ? length : 1);
	return true;
}

int row_keys(KernelFunc *k, const RowTexts *t, TemplateKey *keys)
{
	const TemplateKey all[ROW_KEYS] = {
		{"rows_are", t->rows},        {"first", t->first},     {"end", t->end},
		{"range", kernel_range(k)},   {"columns", t->columns}, {"epilogue", t->epilogue},
		{"returns", tile_returns(k)}, {"done", tile_done(k)},  {"store", t->store},
	};
	memcpy(keys, all, sizeof all);
	return ROW_KEYS;
}

const char *row_halves(KernelFunc *k, int width, RowSum what)
{
	Text t;
	text_init(&t, k->arena);
	for (int step = width / 2; step > 1; step /= 2) {
		text_printf(&t, "for (int l = 0; l < %d; l++)\n\t", step);
		if (what == ROW_MAX)
			text_printf(&t, "lane[l] = lane[l + %d] > lane[l] ? lane[l + %d] : lane[l];", step,
			            step);
		else
			text_printf(&t, "lane[l] += lane[l + %d];", step);
		text_char(&t, '\n');
	}
	text_str(&t, what == ROW_MAX ? "lane[0] = lane[1] > lane[0] ? lane[1] : lane[0];"
	                             : "lane[0] += lane[1];");
	return t.text;
}

bool row_helper(KernelFunc *k, RowSum what)
{
	static const char *const names[] = {"row_max.c", "row_sum.c", "row_spread.c"};
	const int width = k->target->vector ? 2 * k->target->lanes : 8;
	const TemplateKey keys[] = {{"width", tile_int(k, width)},
	                            {"half", tile_int(k, width / 2)},
	                            {"halves", row_halves(k, width, what)}};
	return tile_prelude(k) && kernel_helper(k, names[what], COUNT_OF(keys), keys);
}
