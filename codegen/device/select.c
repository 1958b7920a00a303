// Emits kernel.sort, kernel.nms, kernel.compact and kernel.scan for CUDA: blocks of threads that
// work together. Called by run.c through cuda.c.
#include "codegen/device/device.h"
#include "codegen/model/model.h"
#include "codegen/nest/kernel_select.h"
#include "codegen/nest/region.h"

#include <float.h>
#include <string.h>

enum { THREADS = 256, SORT_THREADS = 512, COMPACT_BLOCKS = 128, SCAN_ITEMS = 4 };

static const char *result_type(const KernelFunc *k, int i)
{
	return dtype_c_memory(k->op->results[i].type->dtype);
}

// ---- sorting ------------------------------------------------------------------------------------

bool cuda_sort_emit(KernelFunc *k)
{
	const Type *x = op_operand(k->op, 0)->type, *order = k->op->results[0].type;
	if (dtype_is_complex(x->dtype))
		return false;
	const Dim *length = x->dims[x->rank - 1], *limit = order->dims[order->rank - 1];
	const char *scalar = type_c_scalar(type_scalar(k->ctx, x->dtype)),
			   *load = scalar_load(k, x->dtype, "row", "i");
	const int64_t room = op_int(k->op, "room", 2); // elements that are sorted at once
	const Attr *above = op_attr(k->op, "above");
	const char *border =
		above ? scalar_float(k->arena, x->dtype == DT_F64 ? DT_F64 : DT_F32, above->f) : NULL;
	const bool in_turns = !(dim_is_const(length) && length->value <= room) &&
	                      !(dim_is_const(limit) && limit->value < room);
	const char *wanted = border ? arena_printf(k->arena, "%s > %s", load, border) : NULL;
	k->block_threads = room / 2 < 32             ? 32
	                   : room / 2 < SORT_THREADS ? (int)(room / 2)
	                                             : SORT_THREADS;
	TemplateKey keys[16] = {
		{"length", kernel_dim(k, length)},
		{"limit", kernel_dim(k, limit)},
		{"rows", tile_product(k, x->rank - 1, x->dims)},
		{"type", dtype_c_memory(x->dtype)},
		{"scalar", scalar},
		{"room", tile_int(k, room)},
		{"load", load},
		{"first", sort_comes_first(k, x->dtype, "x", "y")},
		{"last", arena_printf(k->arena, "(%s)", sort_comes_first(k, x->dtype, "y", "x"))},
		{"index", result_type(k, 0)},
		{"number", result_type(k, 1)},
	};
	int n = 11;
	if (!in_turns) {
		keys[n++] = (TemplateKey){"wanted", wanted ? arena_printf(k->arena, " && %s", wanted) : ""};
		return kernel_template(k, "cuda_sort.c", n, keys);
	}
	keys[n++] = (TemplateKey){"wanted", wanted ? wanted : "true"};
	k->bounds = arena_printf(k->arena, "%d, 1", k->block_threads);
	return kernel_template(k, "cuda_sort_long.c", n, keys);
}

bool cuda_nms_emit(KernelFunc *k)
{
	TemplateKey keys[16];
	int n = nms_keys(k, keys);
	if (!n)
		return false;
	keys[n++] = (TemplateKey){"overlap", nms_overlap_name(k, op_operand(k->op, 0)->type)};
	keys[n++] = (TemplateKey){"threads", tile_int(k, THREADS)};
	k->block_threads = THREADS;
	k->bounds = arena_printf(k->arena, "%d, 1", THREADS);
	return kernel_template(k, "cuda_nms.c", n, keys);
}

// ---- what is true -------------------------------------------------------------------------------

bool cuda_compact_emit(KernelFunc *k)
{
	const Type *mask = op_operand(k->op, 0)->type;
	k->block_threads = THREADS;
	k->per_block = THREADS * 16;
	const TemplateKey keys[] = {
		{"numel", tile_product(k, mask->rank, mask->dims)},
		{"blocks", tile_int(k, COMPACT_BLOCKS)},
		{"chunk", tile_int(k, THREADS * 16)},
		{"index", result_type(k, 0)},
		{"number", result_type(k, 1)},
	};
	kernel_moves(k, DT_BOOL, 16);
	return kernel_template(k, "cuda_compact.c", COUNT_OF(keys), keys);
}

// ---- scans --------------------------------------------------------------------------------------

static const Dim *rows_of(Context *c, const Type *t, int axis)
{
	const Dim *n = dim_const(c, 1);
	for (int d = 0; d < t->rank; d++)
		n = d == axis ? n : dim_mul(c, n, t->dims[d]);
	return n;
}

static const char *scan_join(ScanKind kind)
{
	static const char *const names[SCAN_COUNT] = {[SCAN_SUM] = "pd_sum",
	                                              [SCAN_PROD] = "pd_prod",
	                                              [SCAN_MAX] = "pd_last_max",
	                                              [SCAN_MIN] = "pd_last_min",
	                                              [SCAN_LOGSUMEXP] = "pd_logaddexp"};
	return names[kind];
}

// Whether an element goes with where it stands.
static bool scan_places(ScanKind kind)
{
	return kind == SCAN_MAX || kind == SCAN_MIN;
}

// The type in which a kind of scan adds up, and what it begins with.
static const char *scan_state(KernelFunc *k, ScanKind kind, DType t, const char **neutral)
{
	const char *scalar = type_c_scalar(type_scalar(k->ctx, t));
	if (scan_places(kind)) {
		*neutral = arena_printf(k->arena, "pd_place<%s>{0, -1}", scalar);
		return arena_printf(k->arena, "pd_place<%s>", scalar);
	}
	const DType f = t == DT_F64 ? DT_F64 : DT_F32;
	const double first = kind == SCAN_PROD  ? 1
	                     : kind == SCAN_SUM ? 0
	                     : f == DT_F64      ? -DBL_MAX
	                                        : -(double)FLT_MAX;
	*neutral = dtype_is_float(t) ? scalar_float(k->arena, f, first)
	           : first > 0       ? "(uint64_t)1"
	                             : "(uint64_t)0";
	return dtype_is_float(t) ? scalar : "uint64_t";
}

typedef struct Scan {
	KernelFunc *k;
	const Type *x;
	int axis, items; // items: of a thread
	bool reverse;
	ScanKind kind;
	const char *state, *neutral;
} Scan;

// What is stored in result i of `acc`: its value, or where it comes from.
static const char *scan_value(const Scan *s, int i)
{
	const DType t = s->x->dtype;
	if (i == 1)
		return "acc.at";
	return scan_places(s->kind) ? "acc.value"
	       : dtype_is_float(t)  ? "acc"
	                            : arena_printf(s->k->arena, "(%s)acc", dtype_c_memory(t));
}

static const char *scan_loaded(const Scan *s, const char *element, const char *place)
{
	Arena *a = s->k->arena;
	return scan_places(s->kind) ? arena_printf(a, "%s{%s, %s}", s->state, element, place)
	                            : arena_printf(a, "(%s)%s", s->state, element);
}

static bool scan_wide_emit(const Scan *s)
{
	KernelFunc *k = s->k;
	const Dim *length = s->x->dims[s->axis];
	const DType t = s->x->dtype;
	kernel_moves(k, t, s->items);
	const char *lane = s->reverse ? arena_printf(k->arena, "%d - l", s->items - 1) : "l";
	const bool fits = dim_is_const(length) && length->value % s->items == 0;
	Text results, store, store_all;
	text_init(&results, k->arena);
	text_init(&store, k->arena);
	text_init(&store_all, k->arena);
	for (int i = 0; i < k->op->nresult; i++) {
		const DType of = k->op->results[i].type->dtype;
		const char *y = arena_printf(k->arena, "y%d", i), *to = arena_printf(k->arena, "%s.v", y);
		kernel_moves(k, of, s->items);
		text_line(&results, 0, "pd_vec<%s, %d> %s;", dtype_c_memory(of), s->items, y);
		text_line(&store, 0, "%s;", scalar_store(k, of, to, lane, scan_value(s, i)));
		text_line(&store_all, 0, "pd_store(%s + at, %s%s);", kernel_result(k, i), y,
		          fits ? "" : ", length - k");
	}
	const TemplateKey keys[] = {
		{"length", kernel_dim(k, length)},
		{"rows", kernel_dim(k, rows_of(k->ctx, s->x, s->axis))},
		{"items", tile_int(k, s->items)},
		{"join", scan_join(s->kind)},
		{"state", s->state},
		{"neutral", s->neutral},
		{"type", dtype_c_memory(t)},
		{"step", s->reverse ? arena_printf(k->arena, "length - %d - k", s->items) : "k"},
		{"rest", fits ? "" : ", length - k"},
		{"inside", fits ? "k < length" : "k + l < length"},
		{"load", scan_loaded(s, scalar_load(k, t, "row.v", lane),
	                         arena_printf(k->arena, "at + %s - first", lane))},
		{"result", op_bool(k->op, "exclusive", false) ? "sum" : "join(sum, mine[l])"},
		{"results", results.text},
		{"store", store.text},
		{"store_all", store_all.text},
	};
	return kernel_template(k, "cuda_scan_wide.c", COUNT_OF(keys), keys);
}

const Dim *cuda_scan_work(Context *c, const Op *op)
{
	return rows_of(c, op->results[0].type, (int)op_int(op, "axis", 0));
}

const Dim *cuda_compact_work(Context *c, const Op *op)
{
	return type_numel(c, op->results[0].type);
}

const Dim *cuda_scatter_work(Context *c, const Op *op)
{
	(void)c;
	return op->results[0].type->dims[1]; // a thread for each column
}

bool cuda_scan_emit(KernelFunc *k)
{
	Scan s = {.k = k, .x = op_operand(k->op, 0)->type, .axis = (int)op_int(k->op, "axis", 0)};
	const DType t = s.x->dtype;
	s.kind = (ScanKind)op_enum(k->op, "kind");
	s.reverse = op_bool(k->op, "reverse", false);
	if (!op_bool(k->op, "by_blocks", false))
		return kernel_scan_emit(k);
	s.state = scan_state(k, s.kind, t, &s.neutral);
	const int lanes = (int)op_int(k->op, "lanes", 1);
	s.items = lanes > 1 ? lanes : SCAN_ITEMS;
	k->block_threads = (int)op_int(k->op, "threads", THREADS);
	if (lanes > 1)
		return scan_wide_emit(&s);
	Text store;
	text_init(&store, k->arena);
	for (int i = 0; i < k->op->nresult; i++)
		text_line(&store, 0, "%s;",
		          scalar_store(k, k->op->results[i].type->dtype, kernel_result(k, i), "at",
		                       scan_value(&s, i)));
	const TemplateKey keys[] = {
		{"length", kernel_dim(k, s.x->dims[s.axis])},
		{"inner", tile_product(k, s.x->rank - s.axis - 1, s.x->dims + s.axis + 1)},
		{"rows", kernel_dim(k, rows_of(k->ctx, s.x, s.axis))},
		{"items", tile_int(k, s.items)},
		{"join", scan_join(s.kind)},
		{"state", s.state},
		{"neutral", s.neutral},
		{"load", scan_loaded(&s, scalar_load(k, t, "x", "at"), "(at - first) / inner")},
		{"store", store.text},
		{"step", s.reverse ? "(length - 1 - k)" : "k"},
		{"result", op_bool(k->op, "exclusive", false) ? "sum" : "join(sum, mine[l])"},
	};
	return kernel_template(k, "cuda_scan.c", COUNT_OF(keys), keys);
}
