// Emits the kernels that choose elements: kernel.sort, kernel.nms, kernel.compact. Called by run.c;
// device/select.c has those of CUDA, with parts of these.
#include "codegen/nest/kernel_select.h"
#include "codegen/nest/region.h"

#include <string.h>

enum { BOX_LANES = 32 }; // boxes that are compared with another one at once

static const char *result_type(const KernelFunc *k, int i)
{
	return dtype_c_memory(k->op->results[i].type->dtype);
}

// ---- sorting ------------------------------------------------------------------------------------

const char *sort_comes_first(KernelFunc *k, DType t, const char *a, const char *b)
{
	bool descending = op_bool(k->op, "descending", false);
	if (!dtype_is_float(t))
		return arena_printf(k->arena, "%s %s %s", a, descending ? ">" : "<", b);
	const char *large = descending ? a : b, *small = descending ? b : a;
	return arena_printf(k->arena, "(%s > %s || (%s != %s && %s == %s))", large, small, large, large,
	                    small, small);
}

// The helpers that compare and sift, named after what they do it to.
static const char *sort_helpers(KernelFunc *k, const Type *x)
{
	const char *name = arena_printf(
		k->arena, "pd_sort_%s%s_%s", op_bool(k->op, "descending", false) ? "down_" : "",
		dtype_name(x->dtype), dtype_name(k->op->results[0].type->dtype));
	const TemplateKey keys[] = {
		{"linkage", k->cg->backend->helper},
		{"name", name},
		{"type", dtype_c_memory(x->dtype)},
		{"scalar", type_c_scalar(type_scalar(k->ctx, x->dtype))},
		{"index", result_type(k, 0)},
		{"load_i", scalar_load(k, x->dtype, "row", "i")},
		{"load_j", scalar_load(k, x->dtype, "row", "j")},
		{"first", sort_comes_first(k, x->dtype, "x", "y")},
		{"last", sort_comes_first(k, x->dtype, "y", "x")},
	};
	return kernel_helper(k, "sort_rows.c", COUNT_OF(keys), keys) ? name : NULL;
}

// The statements that choose the elements of row r one after the other; NULL after a diagnostic.
static const char *sort_heap_text(KernelFunc *k)
{
	const Type *x = op_operand(k->op, 0)->type;
	if (dtype_is_complex(x->dtype))
		return NULL;
	const char *name = sort_helpers(k, x), *element = scalar_load(k, x->dtype, "row", "i");
	const Type *order = k->op->results[0].type;
	const Dim *limit = order->dims[order->rank - 1];
	const Attr *above = op_attr(k->op, "above");
	DType t = x->dtype == DT_F64 ? DT_F64 : DT_F32;
	const char *skip = above ? arena_printf(k->arena, "if (!(%s > %s))\n\tcontinue;", element,
	                                        scalar_float(k->arena, t, above->f))
	                         : "";
	const TemplateKey heap[] = {
		{"index", result_type(k, 0)},
		{"number", result_type(k, 1)},
		{"name", name ? name : ""},
		{"skip", skip},
		{"some", dim_is_const(limit) && limit->value > 0 ? "" : "n > 0 && "},
	};
	Text body;
	text_init(&body, k->arena);
	if (!name || !template_expand(k->ctx, &body, "sort_heap.c", COUNT_OF(heap), heap))
		return NULL;
	return body.text;
}

bool kernel_sort_emit(KernelFunc *k)
{
	const Type *x = op_operand(k->op, 0)->type, *order = k->op->results[0].type;
	const char *body = sort_heap_text(k);
	const TemplateKey keys[] = {
		{"rows", tile_product(k, x->rank - 1, x->dims)},
		{"length", kernel_dim(k, x->dims[x->rank - 1])},
		{"limit", kernel_dim(k, order->dims[order->rank - 1])},
		{"type", dtype_c_memory(x->dtype)},
		{"body", body},
	};
	return body && kernel_template(k, "sort.c", COUNT_OF(keys), keys);
}

// ---- boxes that overlap -------------------------------------------------------------------------

// The number of the set of boxes that row r of `order` uses.
static const char *box_set(KernelFunc *k, const Type *boxes, const Type *order)
{
	const char *at[MAX_RANK];
	int lead = order->rank - 1;
	for (int d = 0; d < lead; d++)
		at[d] = dim_is(boxes->dims[d], 1) ? "0" : tile_position(k, "r", lead, order->dims, d);
	const char *set = scalar_linear(k, boxes, lead, at);
	const char *each = kernel_dim(k, boxes->dims[lead]);
	return strcmp(set, "0") ? arena_printf(k->arena, "%s * %s", set, each) : "0";
}

const char *nms_overlap_name(const KernelFunc *k, const Type *boxes)
{
	return arena_printf(k->arena, "pd_overlap_%s%s",
	                    op_bool(k->op, "pixels", false) ? "pixels_" : "", dtype_name(boxes->dtype));
}

int nms_keys(KernelFunc *k, TemplateKey *keys)
{
	const Type *boxes = op_operand(k->op, 0)->type, *order = op_operand(k->op, 1)->type;
	bool pixels = op_bool(k->op, "pixels", false), wide = boxes->dtype == DT_F64;
	if (boxes->dtype != DT_F32 && !wide)
		return 0;
	const char *type = dtype_c_memory(boxes->dtype);
	const char *name = nms_overlap_name(k, boxes);
	double eta = op_float(k->op, "eta", 1);
	const char *shrink = eta >= 1
	                         ? ""
	                         : arena_printf(k->arena, "if (threshold > 0.5f)\n\tthreshold *= %s;",
	                                        scalar_float(k->arena, boxes->dtype, eta));
	const TemplateKey helper[] = {{"linkage", k->cg->backend->helper},
	                              {"type", type},
	                              {"name", name},
	                              {"pixel", pixels ? " + 1" : ""}};
	const TemplateKey all[] = {
		{"rows", tile_product(k, order->rank - 1, order->dims)},
		{"limit", kernel_dim(k, order->dims[order->rank - 1])},
		{"set", box_set(k, boxes, order)},
		{"type", type},
		{"index", result_type(k, 0)},
		{"number", result_type(k, 1)},
		{"threshold", scalar_float(k->arena, boxes->dtype, op_float(k->op, "threshold", 0))},
		{"shrink", shrink},
	};
	memcpy(keys, all, sizeof all);
	return kernel_helper(k, "box_overlap.c", COUNT_OF(helper), helper) ? (int)COUNT_OF(all) : 0;
}

bool kernel_nms_emit(KernelFunc *k)
{
	TemplateKey keys[16];
	int n = nms_keys(k, keys);
	if (!n)
		return false;
	const Type *boxes = op_operand(k->op, 0)->type;
	const char *pixels = op_bool(k->op, "pixels", false) ? "pixels_" : "";
	const char *lanes = arena_printf(k->arena, "pd_most_overlap_%s%s", pixels,
	                                 dtype_name(boxes->dtype));
	const TemplateKey helper[] = {{"type", dtype_c_memory(boxes->dtype)},
	                              {"overlap", nms_overlap_name(k, boxes)},
	                              {"lanes", lanes},
	                              {"block", tile_int(k, BOX_LANES)}};
	keys[n++] = (TemplateKey){"lanes", lanes};
	keys[n++] = (TemplateKey){"block", tile_int(k, BOX_LANES)};
	return kernel_helper(k, "box_lanes.c", COUNT_OF(helper), helper) &&
	       kernel_template(k, "nms.c", n, keys);
}

// ---- what is true -------------------------------------------------------------------------------

bool kernel_compact_emit(KernelFunc *k)
{
	const Type *mask = op_operand(k->op, 0)->type;
	const TemplateKey keys[] = {
		{"numel", tile_product(k, mask->rank, mask->dims)},
		{"index", result_type(k, 0)},
		{"number", result_type(k, 1)},
	};
	return kernel_template(k, "compact.c", COUNT_OF(keys), keys);
}
