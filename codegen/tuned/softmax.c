// Emits kernel.softmax: each row through its maximum, exponentials and their sum. The operator
// table names it.
#include "codegen/tuned/row.h"

#include <inttypes.h>
#include <string.h>

// SHORT_ROW: in longer ones the last vector weighs nothing. FEW_VECTORS: rows of so many vectors
// and less are worked on side by side.
enum { SHORT_ROW = 512, FEW_VECTORS = 2 };

// A short row that ends within a vector is worked on behind its end, where minus infinities stand:
// what comes of them is below the last bit of any sum, which is at least 1. NULL: it is no such
// row.
static const char *row_padding(KernelFunc *k, RowTexts *x)
{
	const Type *t = k->op->results[0].type;
	const Dim *last = t->dims[t->rank - 1];
	const int lanes = k->target->lanes;
	if (!dim_is_const(last) || last->value > SHORT_ROW || last->value % lanes == 0)
		return NULL;
	const int64_t padded = (last->value + lanes - 1) / lanes * lanes;
	x->row = "buffer";
	x->buffer = arena_printf(k->arena, "float buffer[%" PRId64 "] PD_ALIGNED;", padded);
	return arena_printf(k->arena, "%" PRId64, padded);
}

// A row that is there goes to the buffer in whole vectors: what is read as such right behind has to
// be written so.
static const char *padding_text(KernelFunc *k, const RowTexts *x, const char *padded)
{
	const int lanes = k->target->lanes;
	const char *ends = arena_printf(k->arena,
	                                "for (int64_t j = columns; j < %s; j++)\n"
	                                "\trow[j] = -INFINITY;",
	                                padded);
	if (!x->there)
		return ends;
	return arena_printf(k->arena,
	                    "for (int64_t j = 0; j < columns / %d * %d; j += %d)\n"
	                    "\tvf_store(row + j, vf_load(from + j));\n"
	                    "for (int64_t j = columns / %d * %d; j < columns; j++)\n"
	                    "\trow[j] = from[j];\n%s",
	                    lanes, lanes, lanes, lanes, lanes, ends);
}

// Whether the rows are so short, and so many, that a lane has a row of its own.
static bool rows_side_by_side(const KernelFunc *k)
{
	const Type *t = k->op->results[0].type;
	const Dim *rows = dims_product(k->ctx, t->rank - 1, t->dims), *last = t->dims[t->rank - 1];
	const int lanes = k->target->lanes;
	return k->target->vector && dim_is_const(last) && last->value > 0 &&
	       last->value <= FEW_VECTORS * lanes && !(dim_is_const(rows) && rows->value < lanes);
}

static bool side_by_side_emit(KernelFunc *k)
{
	RowTexts x;
	if (!tile_prelude(k) || !row_texts(k, 1, false, &x))
		return false;
	const Type *t = k->op->results[0].type;
	TemplateKey keys[ROW_KEYS + 5];
	int n = row_keys(k, &x, keys);
	keys[n++] = (TemplateKey){"input", x.input};
	keys[n++] = (TemplateKey){"value", x.value};
	keys[n++] = (TemplateKey){"exp", "pd_exp_fall"};
	keys[n++] = (TemplateKey){"lanes", tile_int(k, k->target->lanes)};
	keys[n++] = (TemplateKey){"length", tile_int(k, t->dims[t->rank - 1]->value)};
	return kernel_template(k, "softmax_short.c", n, keys);
}

// Whether a row of known length is no whole number of pairs of vectors: what the
// helpers do with the rest would take as long as the row.
static bool rows_have_tails(const KernelFunc *k)
{
	const Type *t = k->op->results[0].type;
	const Dim *last = t->dims[t->rank - 1];
	return k->target->vector && dim_is_const(last) && last->value > k->target->lanes &&
	       last->value <= SHORT_ROW && last->value % (2 * k->target->lanes);
}

// The last vector of a row: of its elements that lie in the one in front of it, too, nothing counts
// but that a NaN or an infinity is among them.
static const char *last_vector(KernelFunc *k, int64_t n, const char **behind)
{
	const int lanes = k->target->lanes;
	const int64_t rest = n % lanes;
	*behind = "";
	if (!rest)
		return arena_printf(k->arena, "from[%" PRId64 " + l]", n - lanes);
	Text t;
	text_init(&t, k->arena);
	text_printf(&t, "static const float behind[%d] = {", lanes);
	for (int i = 0; i < lanes; i++)
		text_printf(&t, "%s%s", i ? ", " : "", i < lanes - rest ? "-INFINITY" : "0");
	text_str(&t, "}; // the last vector but what the one in front of it has, too");
	*behind = t.text;
	return arena_printf(k->arena, "from[%" PRId64 " + l] + behind[l]", n - lanes);
}

static bool tails_emit(KernelFunc *k, const RowTexts *x)
{
	const Type *t = k->op->results[0].type;
	const int64_t n = t->dims[t->rank - 1]->value;
	const int lanes = k->target->lanes;
	const char *behind, *last = last_vector(k, n, &behind);
	TemplateKey keys[ROW_KEYS + 10];
	int count = row_keys(k, x, keys);
	const TemplateKey own[] = {
		{"fill", row_fill(k, x, false)},
		{"each_out", x->each_out},
		{"exp", "pd_exp_fall"},
		{"behind", behind},
		{"last", last},
		{"lanes", tile_int(k, lanes)},
		{"whole", tile_int(k, (n - 1) / lanes * lanes)},
		{"tail", tile_int(k, n - lanes)},
		{"max_halves", row_halves(k, lanes, ROW_MAX)},
		{"sum_halves", row_halves(k, lanes, ROW_SUM)},
	};
	memcpy(keys + count, own, sizeof own);
	return kernel_template(k, "softmax_tail.c", count + (int)COUNT_OF(own), keys);
}

bool kernel_softmax_emit(KernelFunc *k)
{
	RowTexts x;
	if (rows_side_by_side(k))
		return side_by_side_emit(k);
	if (!tile_prelude(k) || !row_texts(k, 1, true, &x))
		return false;
	if (x.there && rows_have_tails(k))
		return tails_emit(k, &x);
	if (!row_helper(k, ROW_MAX) || !row_helper(k, ROW_SUM))
		return false;
	const char *padded = row_padding(k, &x);
	TemplateKey keys[ROW_KEYS + 6];
	int n = row_keys(k, &x, keys);
	keys[n++] = (TemplateKey){"fill", row_fill(k, &x, true)};
	keys[n++] = (TemplateKey){"each_out", x.each_out};
	keys[n++] = (TemplateKey){"from", padded ? "row" : row_source(&x)};
	keys[n++] = (TemplateKey){"exp", k->target->vector ? "pd_exp_fall" : "expf"};
	keys[n++] = (TemplateKey){"padded", padded ? padded : "columns"};
	keys[n++] = (TemplateKey){"pad", padded ? padding_text(k, &x, padded) : ""};
	return kernel_template(k, "softmax.c", n, keys);
}
