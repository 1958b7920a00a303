// Emits kernel.pool_gradient: every window hands on what comes in for it. The operator table names
// it.
#include "codegen/nest/region.h"

#include <inttypes.h>
#include <string.h>

typedef struct PoolGradient {
	KernelFunc *k;
	int64_t kernel[2], stride[2], pad[2];
	int64_t lanes; // 1: plain images
	bool adaptive, exclusive, tiled, max;
	bool finds; // the maxima again
} PoolGradient;

static bool pool_read(PoolGradient *v)
{
	const Op *op = v->k->op;
	const Attr *kernel = op_attr(op, "kernel");
	const int rank = op->results[0].type->rank;
	v->adaptive = op_bool(op, "adaptive", false);
	v->exclusive = op_bool(op, "exclusive", true) || v->adaptive;
	v->tiled = op_bool(op, "tiled", false);
	v->max = op->noperand > 1 && op_operand(op, 1);
	v->finds = v->max && !op_operand(op, 2);
	const bool blocked = op_bool(op, "blocked", false);
	if (!kernel || kernel->n != 2 || op_ints(op, "strides", v->stride, 2) != 2 ||
	    op_ints(op, "paddings", v->pad, 2) != 2 || rank != (blocked ? 5 : 4))
		return false;
	const Dim *lanes = blocked ? op->results[0].type->dims[4] : dim_const(v->k->ctx, 1);
	for (int i = 0; i < 2 && !v->adaptive; i++) {
		if (!dim_is_const(kernel->dims[i]))
			return false;
		v->kernel[i] = kernel->dims[i]->value;
	}
	v->lanes = dim_is_const(lanes) ? lanes->value : 0;
	return v->lanes > 0;
}

// What an average divides by: the elements of the window, or those of the padded image.
static const char *count_text(const PoolGradient *v)
{
	Arena *a = v->k->arena;
	if (v->exclusive)
		return "const float count = (float)((bottom - top) * (right - left));";
	return arena_printf(a,
	                    "const int64_t wide = width + %" PRId64 " < end_column ? width + %" PRId64
	                    " : end_column, high = height + %" PRId64 " < end_row ? height + %" PRId64
	                    " : end_row;\n"
	                    "const float count = (float)((high - first_row) * (wide - first_column));",
	                    v->pad[1], v->pad[1], v->pad[0], v->pad[0]);
}

// The maximum of the window, in the order in which pool2d compares; "": what is there is read. NULL
// after a diagnostic.
static const char *find_text(const PoolGradient *v)
{
	KernelFunc *k = v->k;
	const TemplateKey keys[] = {{"lanes", tile_int(k, v->lanes)}};
	Text t;
	text_init(&t, k->arena);
	if (!v->finds)
		return "";
	return template_expand(k->ctx, &t, "pool_most.c", COUNT_OF(keys), keys) ? t.text : NULL;
}

static bool window_helper(const PoolGradient *v, const char *name)
{
	KernelFunc *k = v->k;
	const char *gives = v->tiled ? "=" : "+=", *find = find_text(v);
	const TemplateKey keys[] = {
		{"what", v->max ? "a maximum: to the first that it is" : "an average"},
		{"name", name},
		{"lanes", tile_int(k, v->lanes)},
		{"operands", !v->max    ? "const float count"
	                 : v->finds ? "const float *image"
	                            : "const float *image, const float *most"},
		{"find", find},
		{"by", v->max ? "" : " / count"},
		{"give", v->max ? arena_printf(k->arena,
	                                   "const bool first = image[at + c] == most[c];\n"
	                                   "to[at + c] %s first ? rest[c] : 0;\n"
	                                   "rest[c] = first ? 0 : rest[c];",
	                                   gives)
	                    : arena_printf(k->arena, "to[at + c] %s rest[c];", gives)},
	};
	return find && kernel_helper(k, "pool_window.c", COUNT_OF(keys), keys);
}

// Where window `at` of an axis begins, and ends.
static const char *window_first(const PoolGradient *v, int i, const char *at, const char *size,
                                const char *count)
{
	Arena *a = v->k->arena;
	return v->adaptive
	           ? arena_printf(a, "%s * %s / %s", at, size, count)
	           : arena_printf(a, "%s * %" PRId64 " - %" PRId64, at, v->stride[i], v->pad[i]);
}

static const char *window_end(const PoolGradient *v, int i, const char *at, const char *size,
                              const char *count, const char *first)
{
	Arena *a = v->k->arena;
	return v->adaptive ? arena_printf(a, "((%s + 1) * %s + %s - 1) / %s", at, size, count, count)
	                   : arena_printf(a, "%s + %" PRId64, first, v->kernel[i]);
}

bool kernel_pool_gradient_emit(KernelFunc *k)
{
	PoolGradient v = {.k = k};
	const Type *d = op_operand(k->op, 0)->type, *t = k->op->results[0].type;
	if (!tile_check_f32(k) || !tile_check_layout(k, pool_read(&v)))
		return false;
	const char *name = arena_printf(k->arena, "%s%s_%" PRId64, v.tiled ? "tiled_" : "",
	                                v.finds ? "max_found"
	                                : v.max ? "max"
	                                        : "average",
	                                v.lanes);
	if (!tile_prelude(k) || !window_helper(&v, name))
		return false;
	const char *call = arena_printf(
		k->arena, "%s%spool_window_%s(top, bottom, left, right, width, d + at, %s, to);",
		v.max ? "" : count_text(&v), v.max ? "" : "\n", name,
		v.max ? arena_printf(k->arena, "x + plane * height * width * %" PRId64 "%s", v.lanes,
	                         v.finds ? "" : ", most + at")
			  : "count");
	const TemplateKey keys[] = {
		{"height", kernel_dim(k, t->dims[2])},
		{"width", kernel_dim(k, t->dims[3])},
		{"rows", kernel_dim(k, d->dims[2])},
		{"columns", kernel_dim(k, d->dims[3])},
		{"planes", tile_product(k, 2, t->dims)},
		{"lanes", tile_int(k, v.lanes)},
		{"first_row", window_first(&v, 0, "row", "height", "rows")},
		{"end_row", window_end(&v, 0, "row", "height", "rows", "first_row")},
		{"first_column", window_first(&v, 1, "column", "width", "columns")},
		{"end_column", window_end(&v, 1, "column", "width", "columns", "first_column")},
		{"clear", v.tiled ? ""
	                      : arena_printf(k->arena,
	                                     "memset(to, 0, sizeof *to * (size_t)(height * width "
	                                     "* %" PRId64 "));",
	                                     v.lanes)},
		{"call", call},
	};
	return kernel_template(k, "pool_gradient.c", COUNT_OF(keys), keys);
}
