// Emits the kernels that go in sequence: kernel.scan, kernel.scatter. Called by run.c.
#include "codegen/nest/region.h"
#include "lower/analysis/places.h"

#include <float.h>
#include <string.h>

// How an accumulator is held: whole numbers wrap, so they are summed without sign.
static const char *scan_scalar(const KernelFunc *k, DType t, ScanKind kind)
{
	if (dtype_is_float(t) || dtype_is_complex(t) || kind == SCAN_MAX || kind == SCAN_MIN)
		return type_c_scalar(type_scalar(k->ctx, t));
	return "uint64_t";
}

static const char *scan_start(KernelFunc *k, DType t, ScanKind kind)
{
	if (kind == SCAN_LOGSUMEXP) // as Paddle, with the lowest number
		return t == DT_F64 ? scalar_float(k->arena, DT_F64, -DBL_MAX)
		                   : scalar_float(k->arena, DT_F32, -(double)FLT_MAX);
	const char *start = kind == SCAN_PROD ? "1" : "0";
	return dtype_is_complex(t) ? arena_printf(k->arena, "pd_%s_of(%s)", dtype_name(t), start)
	                           : start;
}

// The statement that takes `v` into the accumulator `acc`.
static const char *scan_update(KernelFunc *k, DType t, ScanKind kind)
{
	const char *f = t == DT_F64 ? "" : "f";
	if (dtype_is_complex(t))
		return arena_printf(k->arena, "acc = pd_%s_%s(acc, v);", dtype_name(t),
		                    kind == SCAN_PROD ? "mul" : "add");
	if (kind == SCAN_SUM)
		return dtype_is_float(t) ? "acc += v;" : "acc += (uint64_t)v;";
	if (kind == SCAN_PROD)
		return dtype_is_float(t) ? "acc *= v;" : "acc *= (uint64_t)v;";
	if (kind == SCAN_LOGSUMEXP)
		return arena_printf(k->arena,
		                    "acc = acc < v ? v + log1p%s(exp%s(acc - v)) : "
		                    "acc + log1p%s(exp%s((v < acc ? v : acc) - acc));",
		                    f, f, f, f);
	const char *order = kind != SCAN_MAX ? "<=" : ">=";
	const char *nan = dtype_is_float(t) ? "v != v || (acc == acc && " : "(";
	const char *which = k->op->nresult > 1
	                        ? arena_printf(k->arena, "\n\twhich = %s;", "(at - first) / inner")
	                        : "";
	return arena_printf(k->arena, "if (k == 0 || %sv %s acc)) {\n\tacc = v;%s\n}", nan, order,
	                    which);
}

// What both ways of going along an axis are told.
typedef struct Scan {
	const char *length, *inner, *scalar, *start, *step, *body;
	bool indices; // of a second result
} Scan;

static void scan_read(KernelFunc *k, Scan *s)
{
	const Type *x = op_operand(k->op, 0)->type;
	const int axis = (int)op_int(k->op, "axis", 0);
	const ScanKind kind = (ScanKind)op_enum(k->op, "kind");
	const DType t = x->dtype;
	const bool exclusive = op_bool(k->op, "exclusive", false);
	const char *out = kernel_result(k, 0);
	*s = (Scan){.length = kernel_dim(k, x->dims[axis]),
	            .inner = tile_product(k, x->rank - axis - 1, x->dims + axis + 1),
	            .scalar = scan_scalar(k, t, kind),
	            .start = scan_start(k, t, kind),
	            .step = op_bool(k->op, "reverse", false) ? "(length - 1 - k)" : "k",
	            .indices = k->op->nresult > 1};
	const char *result = dtype_is_float(t) || s->scalar[0] != 'u'
	                         ? "acc"
	                         : arena_printf(k->arena, "(%s)acc", dtype_c_memory(t));
	const char *store = arena_printf(k->arena, "%s;", scalar_store(k, t, out, "at", result));
	const char *load = arena_printf(k->arena, "const %s v = %s;",
	                                type_c_scalar(type_scalar(k->ctx, t)),
	                                scalar_load(k, t, "x", "at"));
	const char *update = scan_update(k, t, kind);
	if (s->indices)
		store = arena_printf(k->arena, "%s\n%s[at] = which;", store, kernel_result(k, 1));
	s->body = arena_printf(k->arena, "%s\n%s\n%s", load, exclusive ? store : update,
	                       exclusive ? update : store);
}

// Lines along an axis that is not the last lie side by side, as lanes.
static bool scan_across(KernelFunc *k, const Scan *s)
{
	const Type *x = op_operand(k->op, 0)->type;
	const bool which = s->indices;
	const int wide = 4 * k->target->lanes;
	const TemplateKey keys[] = {
		{"head", tile_function_head(k)},
		{"length", s->length},
		{"inner", s->inner},
		{"outer", tile_product(k, (int)op_int(k->op, "axis", 0), x->dims)},
		{"wide", tile_int(k, wide)},
		{"sums",
	     arena_printf(k->arena, which ? "%s sums[%d];\nint64_t places[%d];" : "%s sums[%d];",
	                  s->scalar, wide, wide)},
		{"begin", arena_printf(k->arena, which ? "sums[i] = %s;\nplaces[i] = 0;" : "sums[i] = %s;",
	                           s->start)},
		{"again", arena_printf(k->arena, "%s acc = sums[i - from];%s", s->scalar,
	                           which ? "\nint64_t which = places[i - from];" : "")},
		{"step", s->step},
		{"body", s->body},
		{"keep",
	     which ? "sums[i - from] = acc;\nplaces[i - from] = which;" : "sums[i - from] = acc;"},
	};
	return kernel_helper(k, "kernel_macros.c", 0, NULL) &&
	       kernel_template(k, "scan_across.c", COUNT_OF(keys), keys);
}

bool kernel_scan_emit(KernelFunc *k)
{
	const Type *x = op_operand(k->op, 0)->type;
	Scan s;
	scan_read(k, &s);
	const bool last = !strcmp(s.inner, "1");
	if (!last && !k->target->simt)
		return scan_across(k, &s);
	const char *lines = tile_product(k, (int)op_int(k->op, "axis", 0), x->dims);
	const TemplateKey keys[] = {
		{"head", tile_function_head(k)},
		{"length", s.length},
		{"first", last ? "i * length" : "i / inner * length * inner + i % inner"},
		{"each", tile_each(k, "i", arena_printf(k->arena, "%s * inner", lines))},
		{"inner", s.inner},
		{"scalar", s.scalar},
		{"start", arena_printf(k->arena, "%s%s", s.start, s.indices ? ";\nint64_t which = 0" : "")},
		{"step", s.step},
		{"body", s.body},
	};
	return kernel_template(k, "scan.c", COUNT_OF(keys), keys);
}

// The statement that changes element i of a row.
static const char *scatter_store(KernelFunc *k, DType t, ScatterKind how)
{
	const char *old = scalar_load(k, t, "row", "i"), *new = scalar_load(k, t, "from", "i");
	const char *sign = how != SCATTER_MULTIPLY ? "+" : "*";
	if (how == SCATTER_REPLACE)
		return "row[i] = from[i]";
	if (how == SCATTER_MAX || how == SCATTER_MIN)
		return arena_printf(k->arena, "if (%s %s %s)\n\trow[i] = from[i]", new,
		                    how == SCATTER_MAX ? ">" : "<", old);
	if (dtype_is_complex(t))
		return arena_printf(k->arena, "row[i] = pd_%s_%s(row[i], from[i])", dtype_name(t),
		                    how != SCATTER_MULTIPLY ? "add" : "mul");
	if (dtype_is_int(t)) // whole numbers wrap
		return arena_printf(k->arena, "row[i] = (%s)((uint64_t)%s %s (uint64_t)%s)",
		                    dtype_c_memory(t), old, sign, new);
	return scalar_store(k, t, "row", "i", arena_printf(k->arena, "%s %s %s", old, sign, new));
}

bool kernel_scatter_emit(KernelFunc *k)
{
	const Type *x = op_operand(k->op, 0)->type, *at = op_operand(k->op, 1)->type;
	const ScatterKind how = (ScatterKind)op_enum(k->op, "how");
	const char *width = kernel_dim(k, x->dims[1]);
	DType t = x->dtype;
	const bool ordered = how == SCATTER_MAX || how == SCATTER_MIN || how == SCATTER_SUM;
	if (!dtype_is_int(t) && !dtype_is_float(t) && how != SCATTER_REPLACE &&
	    (ordered || !dtype_is_complex(t)))
		return false;
	const char *store = scatter_store(k, t, how), *count = kernel_dim(k, at->dims[0]);
	const bool keeps = update_keeps(k->op); // x lies in the result
	if (k->target->simt) {
		const TemplateKey keys[] = {
			{"width", width},
			{"count", count},
			{"type", dtype_c_memory(t)},
			{"store", store},
			{"each", tile_each(k, "i", "width")},
			{"rows", kernel_dim(k, x->dims[0])},
			{"copy", keeps ? "(void)x;"
		                   : "for (int64_t k = 0; k < rows; k++)\n\t"
		                     "out[k * width + i] = x[k * width + i];"},
			{"clear",
		     how != SCATTER_SUM
		         ? ""
		         : arena_printf(
					   k->arena,
					   "for (int64_t k = 0; k < %s; k++)\n\t"
					   "if ((uint64_t)at[k] < (uint64_t)rows)\n\t\tout[at[k] * width + i] = (%s)0;",
					   count, dtype_c_memory(t))},
		};
		return kernel_template(k, "cuda_scatter.c", COUNT_OF(keys), keys);
	}
	const char *clear = arena_printf(k->arena,
	                                 "for (int64_t k = 0; k < %s; k++)\n\t"
	                                 "memset(out + at[k] * width, 0, (size_t)width * sizeof *out);",
	                                 count);
	const Dim *bytes = dim_mul(k->ctx, type_numel(k->ctx, x),
	                           dim_const(k->ctx, (int64_t)dtype_size(t)));
	const TemplateKey keys[] = {
		{"width", width},
		{"copy", keeps
	                 ? "(void)x;"
	                 : arena_printf(k->arena, "memcpy(out, x, (size_t)%s);", kernel_dim(k, bytes))},
		{"clear", how != SCATTER_SUM ? "" : clear},
		{"count", count},
		{"type", dtype_c_memory(t)},
		{"store", store},
	};
	return kernel_template(k, "scatter.c", COUNT_OF(keys), keys);
}
