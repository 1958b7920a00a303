// Types of the operators of ops/detect.yaml.
#include "ir/build/infer.h"

#include <string.h>

// A size that the operation finds, named after its place in the program; `bound`: what it is at
// most.
static const Dim *found(const Op *op, const char *what, const Dim *bound)
{
	const Dim *size = infer_found(op, "n_", what, -1);
	dim_set_bound(op->ctx, size, bound);
	return size;
}

// ---- choosing among boxes -----------------------------------------------------------------------

// Scores [N x C x M] of boxes [N x M x 4]; or [M x C] of [M x C x 4], with the number of rows of
// each image.
static bool check_boxes(Op *op, const Type *boxes, const Type *scores)
{
	const Dim *same;
	bool apart = scores->rank == 2;
	if (scores->rank != 3 && !(apart && op->code == OP_PD_MULTICLASS_NMS3))
		return op_error(op, "scores of rank %d", scores->rank);
	if (apart && !op_operand_named(op, "rois_num") && !op_operand_named(op, "scores_lod"))
		return op_error(op, "scores of rank 2 need the number of rows of each image");
	if (boxes->dtype != scores->dtype || (boxes->dtype != DT_F32 && boxes->dtype != DT_F64))
		return op_error(op, "boxes and scores must both be f32 or both be f64");
	return infer_same_dim(op, boxes->dims[2], dim_const(op->ctx, 4), "corners of a box and 4",
	                      &same) &&
	       infer_same_dim(op, boxes->dims[0], scores->dims[0], "first sizes of boxes and scores",
	                      &same) &&
	       infer_same_dim(op, boxes->dims[1], scores->dims[apart ? 1 : 2],
	                      "sizes of boxes and scores", &same);
}

// How many boxes of an image may be kept.
static const Dim *most_boxes(const Op *op, const Type *scores)
{
	Context *c = op->ctx;
	int64_t keep = op_int(op, "keep_top_k", -1), top = op_int(op, "nms_top_k", -1);
	const Dim *m = scores->dims[scores->rank == 2 ? 0 : 2];
	m = dim_mul(c, scores->dims[1], top < 0 ? m : dim_min(c, m, dim_const(c, top)));
	return dim_max(c, dim_const(c, 1), keep < 0 ? m : dim_min(c, m, dim_const(c, keep)));
}

// How many images the boxes are of: those of several lie one behind the other.
static const Dim *images_of(const Op *op, const Type *scores)
{
	Value *num = op_operand_named(op, "rois_num"), *lod = op_operand_named(op, "scores_lod");
	Context *c = op->ctx;
	if (scores->rank == 3)
		return scores->dims[0];
	return num ? type_numel(c, num->type) : dim_sub(c, lod->type->dims[0], dim_const(c, 1));
}

bool infer_hook_multiclass_nms(Op *op)
{
	Context *c = op->ctx;
	const Type *boxes = infer_rank(op, 0, 3), *scores = boxes ? infer_tensor(op, 1) : NULL;
	if (!scores || !check_boxes(op, boxes, scores))
		return false;
	if (op_int(op, "nms_top_k", -1) == 0 || op_int(op, "keep_top_k", -1) == 0)
		return op_error(op, "no boxes are to be kept");
	const Dim *images = images_of(op, scores);
	// Without an index, nothing found is the one number -1.
	bool wanted = op->code != OP_PD_MULTICLASS_NMS3 || op_bool(op, "index_wanted", true);
	const Dim *six = dim_const(c, 6),
			  *rows = found(op, "nms", dim_mul(c, images, most_boxes(op, scores)));
	const Dim *out[] = {rows, wanted ? six : found(op, "nms_width", six)};
	const Dim *index[] = {rows, dim_const(c, 1)}, *ends = dim_add(c, images, index[1]);
	if (!wanted && !(dim_is_const(images) && images->value == 1)) // and of one image
		ends = found(op, "nms_ends", ends);
	return infer_result_shape(op, 0, boxes->dtype, 2, out) &&
	       infer_result_shape(op, 1, DT_I32, 2, index) &&
	       infer_result_shape(op, 2, DT_I32, 1, &images) &&
	       (op->nresult < 4 || infer_result_shape(op, 3, DT_I64, 1, &ends));
}

// ---- boxes around every cell of an image --------------------------------------------------------

static int count_of(const Op *op, const char *name)
{
	const Attr *a = op_attr(op, name);
	return a && (a->kind == ATTR_FLOATS || a->kind == ATTR_INTS) ? a->n : 0;
}

static bool all_positive(const Op *op, const char *name)
{
	const Attr *a = op_attr(op, name);
	for (int i = 0; a && i < a->n; i++)
		if (!((a->kind == ATTR_FLOATS ? a->floats[i] : (double)a->ints[i]) > 0))
			return op_error(op, "'%s' holds a number that is not positive", name);
	return true;
}

// Whether two ratios are next to equal.
static bool same_ratio(double x, double y)
{
	return x - y < 1e-6 && y - x < 1e-6;
}

// How many boxes prior_box has in a cell: see expand_ratios in define_boxes.c.
static int64_t prior_count(const Op *op)
{
	const Attr *a = op_attr(op, "aspect_ratios");
	int64_t ratios = 1, flip = op_bool(op, "flip", false);
	for (int i = 0; a && i < a->n; i++) {
		bool known = same_ratio(a->floats[i], 1);
		for (int k = 0; k < i; k++)
			known = known || same_ratio(a->floats[k], a->floats[i]) ||
			        (flip && same_ratio(1 / a->floats[k], a->floats[i]));
		ratios += known ? 0 : 1 + flip;
	}
	return count_of(op, "min_sizes") * ratios + count_of(op, "max_sizes");
}

static int64_t density_count(const Op *op)
{
	const Attr *a = op_attr(op, "densities");
	int64_t n = 0;
	for (int i = 0; a && a->kind == ATTR_INTS && i < a->n; i++)
		n += count_of(op, "fixed_ratios") * a->ints[i] * a->ints[i];
	return n;
}

static bool check_priors(Op *op)
{
	static const char *const names[] = {"min_sizes", "aspect_ratios", "fixed_sizes", "fixed_ratios",
	                                    "densities", "anchor_sizes",  "stride"};
	const Attr *dense = op_attr(op, "densities");
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (!all_positive(op, names[i]))
			return false;
	for (int i = 0; dense && i < dense->n; i++)
		if (dense->kind != ATTR_INTS || dense->ints[i] > 1024)
			return op_error(op, "too many boxes side by side");
	int sizes = count_of(op, "max_sizes");
	if (sizes && sizes != count_of(op, "min_sizes"))
		return op_error(op, "%d of min_sizes and %d of max_sizes", count_of(op, "min_sizes"),
		                sizes);
	if (dense && dense->n != count_of(op, "fixed_sizes"))
		return op_error(op, "%d of densities and %d of fixed_sizes", dense->n,
		                count_of(op, "fixed_sizes"));
	return op->code != OP_PD_ANCHOR_GENERATOR || count_of(op, "stride") == 2 ||
	       op_error(op, "'stride' needs 2 values");
}

bool infer_hook_priors(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 4);
	bool anchors = op->code == OP_PD_ANCHOR_GENERATOR, dense = op->code == OP_PD_DENSITY_PRIOR_BOX;
	if (!x || (!anchors && !infer_rank(op, 1, 4)) || !check_priors(op))
		return false;
	int64_t n = anchors ? count_of(op, "anchor_sizes") * (int64_t)count_of(op, "aspect_ratios")
	            : dense ? density_count(op)
	                    : prior_count(op);
	if (n < 1 || n > INT32_MAX || count_of(op, "variances") != 4)
		return op_error(op, "%lld boxes around a cell, and %d variances", (long long)n,
		                count_of(op, "variances"));
	const Dim *shape[] = {x->dims[2], x->dims[3], dim_const(c, n), dim_const(c, 4)};
	const Dim *flat[] = {dim_mul(c, dim_mul(c, shape[0], shape[1]), shape[2]), shape[3]};
	bool one = op_bool(op, "flatten_to_2d", false);
	return infer_result_shape(op, 0, x->dtype, one ? 2 : 4, one ? flat : shape) &&
	       infer_result_shape(op, 1, x->dtype, one ? 2 : 4, one ? flat : shape);
}

// ---- boxes relative to others -------------------------------------------------------------------

// Sizes that have to be the same, and what they are.
typedef struct SizePair {
	const Dim *a, *b;
	const char *what;
} SizePair;

static bool sizes_agree(Op *op, int n, const SizePair *pairs)
{
	const Dim *same;
	for (int i = 0; i < n; i++)
		if (!infer_same_dim(op, pairs[i].a, pairs[i].b, pairs[i].what, &same))
			return false;
	return true;
}

bool infer_hook_box_coder(Op *op)
{
	const Type *prior = infer_rank(op, 0, 2),
			   *var = op_operand(op, 1) ? infer_rank(op, 1, 2) : prior;
	const bool encodes = op_enum(op, "code_type") == BOX_CODE_ENCODE_CENTER_SIZE;
	const Type *target = prior && var ? infer_rank(op, 2, encodes ? 2 : 3) : NULL;
	const Dim *four = dim_const(op->ctx, 4);
	int variances = count_of(op, "variance");
	if (!target)
		return false;
	if (variances && (variances != 4 || op_operand(op, 1)))
		return op_error(op, "'variance' needs 4 values, and no other variances");
	int64_t axis = op_int(op, "axis", 0);
	if (axis < 0 || axis > 1)
		return op_error(op, "axis %lld", (long long)axis);
	const Dim *rows = encodes ? prior->dims[0] : target->dims[axis == 0 ? 1 : 0];
	const SizePair pairs[] = {
		{prior->dims[1], four, "corners of a box and 4"},
		{target->dims[target->rank - 1], four, "corners of a box and 4"},
		{prior->dims[0], rows, "numbers of boxes"},
		{prior->dims[0], var->dims[0], "numbers of boxes and variances"},
		{var->dims[1], four, "variances of a box and 4"},
	};
	if (!sizes_agree(op, COUNT_OF(pairs), pairs))
		return false;
	const Dim *shape[] = {target->dims[0], encodes ? prior->dims[0] : target->dims[1], four};
	return infer_result_shape(op, 0, prior->dtype, 3, shape);
}

// ---- proposals ----------------------------------------------------------------------------------

// Scores [N x A x H x W], deltas [N x 4 A x H x W], the sizes of images, anchors and variances [..
// x 4] in that order.
bool infer_hook_generate_proposals(Op *op)
{
	Context *c = op->ctx;
	const Type *scores = infer_rank(op, 0, 4), *deltas = scores ? infer_rank(op, 1, 4) : NULL;
	const Type *image = deltas ? infer_rank(op, 2, 2) : NULL,
			   *anchors = image ? infer_tensor(op, 3) : NULL;
	const Type *variances = anchors ? infer_tensor(op, 4) : NULL;
	const Dim *one = dim_const(c, 1), *four = dim_const(c, 4);
	if (!variances)
		return false;
	if (!dim_is_const(image->dims[1]) ||
	    image->dims[1]->value < (op_bool(op, "scaled", false) ? 3 : 2))
		return op_error(op, "the sizes of images are incomplete");
	const Dim *const *d = scores->dims,
					 *all = dim_mul(c, dim_mul(c, four, d[1]), dim_mul(c, d[2], d[3]));
	const SizePair pairs[] = {
		{d[0], deltas->dims[0], "numbers of images"},
		{d[0], image->dims[0], "numbers of images"},
		{dim_mul(c, four, d[1]), deltas->dims[1], "channels of deltas and 4 times those of scores"},
		{d[2], deltas->dims[2], "heights of scores and deltas"},
		{d[3], deltas->dims[3], "widths of scores and deltas"},
		{all, type_numel(c, anchors), "numbers of scores and anchors"},
		{all, type_numel(c, variances), "numbers of scores and variances"},
	};
	if (!sizes_agree(op, COUNT_OF(pairs), pairs))
		return false;
	int64_t top = op_int(op, "pre_nms_top_n", 0);
	const Dim *anchors_each = dim_mul(c, d[1], dim_mul(c, d[2], d[3]));
	const Dim *most = dim_mul(c, d[0],
	                          top > 0 ? dim_min(c, anchors_each, dim_const(c, top)) : anchors_each);
	const Dim *rois[] = {found(op, "proposals", most), four}, *probs[] = {rois[0], one},
			  *lod = dim_add(c, d[0], one);
	return infer_result_shape(op, 0, scores->dtype, 2, rois) &&
	       infer_result_shape(op, 1, scores->dtype, 2, probs) &&
	       infer_result_shape(op, 2, DT_I32, 1, d) && infer_result_shape(op, 3, DT_I64, 1, &lod);
}

bool infer_hook_distribute_fpn_proposals(Op *op)
{
	enum { MAX_LEVELS = 16 };
	Context *c = op->ctx;
	const Type *rois = infer_rank(op, 0, 2), *parts[MAX_LEVELS], *counts[MAX_LEVELS],
			   *lods[MAX_LEVELS];
	Value *num = op_operand_named(op, "rois_num"), *lod = op_operand_named(op, "fpn_rois_lod");
	int64_t min = op_int(op, "min_level", 2), n = op_int(op, "max_level", 5) - min + 1;
	const Dim *one = dim_const(c, 1), *four = dim_const(c, 4), *same;
	if (!rois || !infer_same_dim(op, rois->dims[1], four, "corners of a box and 4", &same))
		return false;
	if (n < 1 || n > MAX_LEVELS || op_int(op, "refer_scale", 224) < 1)
		return op_error(op, "levels %lld to %lld, of scale %lld", (long long)min,
		                (long long)(min + n - 1), (long long)op_int(op, "refer_scale", 224));
	const Dim *images = num   ? type_numel(c, num->type)
	                    : lod ? dim_sub(c, lod->type->dims[0], one)
	                          : one;
	for (int64_t i = 0; i < n; i++) {
		const Dim *shape[] = {
			found(op, arena_printf(c->arena, "rois%lld", (long long)(min + i)), rois->dims[0]),
			four};
		parts[i] = type_tensor(c, rois->dtype, 2, shape, 0);
		counts[i] = type_tensor(c, DT_I32, 1, &images, 0);
		const Dim *ends = dim_add(c, images, one);
		lods[i] = type_tensor(c, DT_I64, 1, &ends, 0);
	}
	const Dim *restore[] = {rois->dims[0], one};
	return infer_result(op, 0, type_group(c, TY_VEC, (int)n, parts)) &&
	       infer_result(op, 1, type_group(c, TY_VEC, (int)n, counts)) &&
	       infer_result_shape(op, 2, DT_I32, 2, restore) &&
	       infer_result(op, 3, type_group(c, TY_VEC, (int)n, lods));
}

// ---- regions of interest ------------------------------------------------------------------------

// roi_align and roi_pool: [regions x channels x pooled_height x pooled_width].
// The channels of the result [.. x channels x height x width], where each part has its own
// (psroi_pool).
static bool channels_of_parts(const Op *op, const Dim **shape)
{
	Context *c = op->ctx;
	const Dim *same, *have = shape[1];
	if (op->code != OP_PD_PSROI_POOL)
		return true;
	shape[1] = dim_const(c, op_int(op, "output_channels", 1));
	return infer_same_dim(op, have, dim_mul(c, shape[1], dim_mul(c, shape[2], shape[3])),
	                      "channels and those of all parts", &same);
}

bool infer_hook_roi(Op *op)
{
	Context *c = op->ctx;
	const Type *x = infer_rank(op, 0, 4), *boxes = x ? infer_rank(op, 1, 2) : NULL;
	Value *num = op_operand(op, 2), *lod = op_operand(op, 3);
	int64_t height = op_int(op, "pooled_height", 1), width = op_int(op, "pooled_width", 1);
	const Dim *same, *one = dim_const(c, 1);
	if (!boxes ||
	    !infer_same_dim(op, boxes->dims[1], dim_const(c, 4), "corners of a box and 4", &same))
		return false;
	if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX ||
	    boxes->dtype != x->dtype)
		return op_error(op, "%lld x %lld parts, or boxes of another type than x", (long long)height,
		                (long long)width);
	const Dim *images = num   ? type_numel(c, num->type)
	                    : lod ? dim_sub(c, lod->type->dims[0], one)
	                          : one;
	if (!infer_same_dim(op, x->dims[0], images, "numbers of images", &same))
		return false;
	const Dim *shape[] = {boxes->dims[0], x->dims[1], dim_const(c, height), dim_const(c, width)};
	if (!channels_of_parts(op, shape))
		return false;
	return infer_result_shape(op, 0, x->dtype, 4, shape) &&
	       (op->nresult < 2 || infer_result_shape(op, 1, DT_I64, 4, shape));
}

bool infer_hook_mine_hard_examples(Op *op)
{
	Context *c = op->ctx;
	const Type *t = infer_rank(op, 2, 2);
	if (!t)
		return false;
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && !infer_same_dims(op, 0, op_operand(op, i)->type, t, "boxes"))
			return false;
	if (t->dtype != DT_I32)
		return op_error(op, "matches that are not i32");
	if (op_enum(op, "mining_type") == MINING_HARD_EXAMPLE && op_int(op, "sample_size", 0) < 1)
		return op_error(op, "a sample of %lld", (long long)op_int(op, "sample_size", 0));
	const Dim *one = dim_const(c, 1), *rows[] = {found(op, "boxes", type_numel(c, t)), one};
	const Dim *offsets = dim_add(c, t->dims[0], one);
	return infer_result_shape(op, 0, DT_I32, 2, rows) && infer_result(op, 1, t) &&
	       infer_result_shape(op, 2, DT_I64, 1, &offsets);
}
