// What the emitters of tuned kernels share: common helpers of the generated code, positions,
// regions as text.
#include "codegen/nest/region.h"

#include <inttypes.h>
#include <string.h>

const char *tile_vector_name(DType t)
{
	static const char *const names[DT_COUNT] = {
		[DT_F32] = "vf", [DT_F64] = "vd", [DT_I32] = "vi32", [DT_I64] = "vi64"};
	return names[t];
}

// Vectors of `lanes` elements of type t, called `name`; `sums`: they are added, too.
static bool vectors_named(KernelFunc *k, const char *name, DType t, int lanes, bool sums)
{
	const int size = (int)dtype_size(t);
	const TemplateKey keys[] = {
		{"v", name},
		{"type", dtype_c_memory(t)},
		{"zero", t == DT_F64 ? "0.0" : "0.0f"},
		{"align", tile_int(k, size)},
		{"lanes", tile_int(k, lanes)},
		{"bytes", tile_int(k, lanes * size)},
	};
	const TemplateKey moves[] = {keys[0], keys[1], keys[3], keys[4], keys[5]};
	if (!k->target->vector)
		return kernel_helper(k, "vector_plain.c", COUNT_OF(keys), keys);
	return kernel_helper(k, "vector_gnu.c", COUNT_OF(moves), moves) &&
	       (!sums || kernel_helper(k, "vector_gnu_sums.c", 3, keys));
}

static bool vectors_helper(KernelFunc *k, DType t, bool sums)
{
	return vectors_named(k, tile_vector_name(t), t, target_lanes(k->target, t), sums);
}

bool tile_moves(KernelFunc *k, DType t)
{
	return vectors_helper(k, t, false);
}

bool tile_vectors(KernelFunc *k, DType t)
{
	return kernel_helper(k, "kernel_macros.c", 0, NULL) && vectors_helper(k, t, true);
}

bool tile_prelude(KernelFunc *k)
{
	return tile_vectors(k, DT_F32);
}

const char *tile_few(const KernelFunc *k, const char *word, int64_t lanes)
{
	return lanes == k->target->lanes ? "" : arena_printf(k->arena, "%s%" PRId64, word, lanes);
}

const char *tile_vectors_of(KernelFunc *k, int lanes)
{
	const char *name = arena_printf(k->arena, "vf%s", tile_few(k, "", lanes));
	return kernel_helper(k, "kernel_macros.c", 0, NULL) &&
	               vectors_named(k, name, DT_F32, lanes, true)
	           ? name
	           : NULL;
}

int tile_height(int height, int width, int nv)
{
	int rows = height * width / nv;
	return rows < 1    ? 1
	       : rows > 14 ? 14
	                   : rows; // more hardly saves loads, and every height is code
}

int tile_split(int height, int nv)
{
	int split = 1;
	while (split * height * nv < 8)
		split *= 2;
	return split;
}

const char *tile_end(KernelFunc *k, const char *from, const char *name, const Dim *end, int height)
{
	if (dim_is_const(end) && end->value > 0) {
		int64_t tiles = (end->value + height - 1) / height;
		if (end->value % tiles == 0)
			return arena_printf(k->arena, "%s + %" PRId64, from, end->value / tiles);
	}
	return tile_end_within(k, from, name, height);
}

const char *tile_end_within(KernelFunc *k, const char *from, const char *end, int64_t height)
{
	if (!kernel_helper(k, "tile_end.c", 0, NULL))
		return NULL;
	return arena_printf(k->arena, "pd_tile_end(%s, %s, %" PRId64 ")", from, end, height);
}

const Dim *tile_count(KernelFunc *k, const Dim *end, int height)
{
	Context *c = k->ctx;
	return dim_div(c, dim_add(c, end, dim_const(c, height - 1)), dim_const(c, height));
}

const char *tile_begin(KernelFunc *k, const char *tile, const char *name, const Dim *end,
                       int height)
{
	const Dim *tiles = tile_count(k, end, height);
	if (dim_is_const(end) && end->value > 0 && end->value % tiles->value == 0)
		return arena_printf(k->arena, "%s * %" PRId64, tile, end->value / tiles->value);
	return arena_printf(k->arena, "pd_tile_begin(%s, %s, %d)", tile, name, height);
}

void tile_indent(Text *out, const char *text)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		text_char(out, '\t');
		text_strn(out, text, n);
		text_char(out, '\n');
	}
}

const char *tile_share(KernelFunc *k, const char *inner, const char *calls)
{
	Text t;
	text_init(&t, k->arena);
	text_str(&t, "for (int64_t at = begin, next; at < end; at = next) {\n");
	text_printf(&t, "\tnext = pd_range_end(at, %s, end);\n", inner);
	text_printf(&t, "\tconst int64_t unit = at / %s, from = at %% %s, until = from + next - at;\n",
	            inner, inner);
	tile_indent(&t, calls);
	text_str(&t, "}");
	return t.text;
}

const char *tile_case(KernelFunc *k, int n, int most)
{
	return n == most ? "default" : arena_printf(k->arena, "case %d", n);
}

const char *tile_int(KernelFunc *k, int64_t v)
{
	return arena_printf(k->arena, "%" PRId64, v);
}

const char *tile_product(KernelFunc *k, int n, const Dim *const *dims)
{
	return kernel_dim(k, dims_product(k->ctx, n, dims));
}

const char *tile_position(KernelFunc *k, const char *linear, int n, const Dim *const *dims, int i)
{
	bool first = true; // nothing in front of i that is more than 1 wide: no remainder to take
	for (int j = 0; j < i; j++)
		first = first && dim_is(dims[j], 1);
	const char *behind = tile_product(k, n - i - 1, dims + i + 1);
	const char *q = strcmp(behind, "1") ? arena_printf(k->arena, "(%s / %s)", linear, behind)
	                                    : linear;
	if (dim_is(dims[i], 1))
		return "0";
	return first ? q : arena_printf(k->arena, "(%s %% %s)", q, kernel_dim(k, dims[i]));
}

void tile_positions(KernelFunc *k, const Region *r, const char *linear, int first, int n,
                    const Dim *const *dims, const char **args)
{
	const Dim *extents[MAX_RANK] = {NULL};
	int last[MAX_RANK], count = 0; // of arguments that are one
	for (int i = 0; i < n; i++) {
		extents[count] = dims[i];
		while (i + 1 < n && nest_args_beside(region_entry(r), first + i, dims[i + 1])) {
			args[first + i] = NULL;
			extents[count] = dim_mul(k->ctx, extents[count], dims[++i]);
		}
		last[count++] = first + i;
	}
	for (int i = 0; i < count; i++)
		args[last[i]] = region_uses(r, last[i]) ? tile_position(k, linear, count, extents, i) : "0";
}

const char *tile_function_head(const KernelFunc *k)
{
	return k->cg->backend->head;
}

const char *tile_each(KernelFunc *k, const char *name, const char *count)
{
	if (!k->target->simt)
		return arena_printf(k->arena, "int64_t %s = 0; %s < %s; %s++", name, name, count, name);
	return arena_printf(k->arena,
	                    "int64_t %s = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; %s < %s; "
	                    "%s += (int64_t)gridDim.x * blockDim.x",
	                    name, name, count, name);
}

const char *tile_arguments(KernelFunc *k)
{
	Text t;
	text_init(&t, k->arena);
	for (int sizes = 0; sizes < 2; sizes++) // the order in which kernel_finish declares them
		for (int i = 0; i < k->nparam; i++)
			if ((k->params[i].value == NULL) == sizes)
				text_printf(&t, "%s%s", t.len ? ", " : "", k->params[i].name);
	return t.text;
}

const char *tile_sizes(KernelFunc *k)
{
	Text t;
	text_init(&t, k->arena);
	for (int i = 0; i < k->nparam; i++)
		if (!k->params[i].value)
			text_printf(&t, "%s(void)%s;", t.len ? "\n" : "", k->params[i].name);
	return t.len ? t.text : "";
}

const char *tile_pass_on(KernelFunc *k, const char *head, const char *suffix, const char *first)
{
	const char *call = arena_printf(k->arena, KERNEL_FN "%s(%s, %s)", suffix, first,
	                                tile_arguments(k));
	if (k->status)
		return arena_printf(k->arena,
		                    "%s%s{\n\tconst int fault = %s;\n\tif (fault)\n\t\treturn fault;\n}",
		                    head, *head ? " " : "", call);
	return arena_printf(k->arena, "%s%s%s;", head, *head ? "\n\t" : "", call);
}

const char *tile_returns(const KernelFunc *k)
{
	return k->status ? "int" : "void";
}

const char *tile_done(const KernelFunc *k)
{
	return k->status ? "return 0;" : "";
}

bool region_is_identity(const Region *r)
{
	const Block *b = region_entry(r);
	return b->first == b->last && b->narg > 0 && op_operand(b->last, 0) == b->args[0];
}

bool region_uses(const Region *r, int i)
{
	const Block *b = region_entry(r);
	return i < b->narg && value_used(b->args[i]);
}

const char *region_split_text(KernelFunc *k, const Region *r, const char *const *args,
                              const IndexSplit *split, const char **value)
{
	Text t;
	text_init(&t, k->arena);
	if (!scalar_region_print(k, r, args, split, 0, &t, value))
		return NULL;
	return t.text ? t.text : "";
}

const char *region_text(KernelFunc *k, const Region *r, const char *const *args, const char **value)
{
	return region_split_text(k, r, args, NULL, value);
}

bool tile_check_elements(KernelFunc *k, DType t)
{
	for (int i = 0; i < k->op->noperand; i++) {
		const Value *v = op_operand(k->op, i);
		if (v && v->type->dtype != t) {
			diag_error(k->ctx->diag, k->op->loc, "%s of %s has no template", k->op->info->name,
			           dtype_name(v->type->dtype));
			return false;
		}
	}
	return true;
}

bool tile_check_f32(KernelFunc *k)
{
	return tile_check_elements(k, DT_F32);
}

bool tile_check_layout(KernelFunc *k, bool fits)
{
	if (!fits)
		diag_error(k->ctx->diag, k->op->loc, "%s: operands are not in the layout of this target",
		           k->op->info->name);
	return fits;
}
