// Sequences are images of one row to convolutions and pooling: [N x C x L] becomes [N x C x 1 x L]
// in front of each and loses the row behind it. Here what stands between them works on images, too,
// so that the row is never dropped: batch norms meet the weights before them, and layout sees one
// chain. Run by the pipeline in front of fold-batch-norm.
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/clean/clean.h"
#include "lower/pass/rewrite.h"

#include <string.h>

enum { ROW = 2, SEQUENCE = 3, IMAGE = 4 }; // the axis of one; ranks

typedef struct Rows {
	ValueMap *images; // sequence -> the image that it is
} Rows;

// ---- which sequences are images -----------------------------------------------------------------

// Made by what works on images, perhaps through maps.
static bool is_of_images(const Value *v)
{
	const Op *op = v->def;
	while (op && op->info->kind == KIND_MAP && op->noperand)
		op = op_operand(op, 0) ? op_operand(op, 0)->def : NULL;
	return op && (op->info->filter != FILTER_NONE || op->info->traits & TRAIT_SPACE);
}

// Whether `t` has the elements of an image of one row, without the row.
static bool is_without_row(const Type *t, const Type *image)
{
	const Dim *const *d = image->dims;
	return type_is_tensor(t) && t->rank == SEQUENCE && type_is_tensor(image) &&
	       image->rank == IMAGE && dim_is(d[ROW], 1) && t->dims[0] == d[0] && t->dims[1] == d[1] &&
	       t->dims[2] == d[3] && !t->lod && !image->lod;
}

// NULL: it is none.
static Value *image_of(const Rows *r, Value *v)
{
	Value *known = value_map_get(r->images, v);
	if (known != v)
		return known;
	Op *op = v->def;
	if (!op || op->code != OP_PD_RESHAPE || !is_without_row(v->type, op_operand(op, 0)->type) ||
	    !is_of_images(op_operand(op, 0)))
		return NULL;
	value_map_set(r->images, v, op_operand(op, 0));
	return op_operand(op, 0);
}

static Value *with_dims(Builder *b, Value *x, int rank, const Dim *const *dims)
{
	return build1(b, OP_PD_RESHAPE, x, "shape", attr_dims(b->ctx, rank, dims), NULL);
}

// What is combined with an image, element by element from the last axis on.
static Value *with_row(const Rows *r, Builder *b, Value *v)
{
	Value *image = image_of(r, v);
	const Type *t = v->type;
	if (image || !type_is_tensor(t) || t->rank < 2)
		return image ? image : v;
	const Dim *dims[IMAGE];
	memcpy(dims, t->dims, (size_t)(t->rank - 1) * sizeof *dims);
	dims[t->rank - 1] = dim_const(b->ctx, 1);
	dims[t->rank] = t->dims[t->rank - 1];
	return with_dims(b, v, t->rank + 1, dims);
}

// Axes of the sequence as those of its image; false: not known.
static bool axes_shift(const Op *op, const char *name, int64_t *axes, int *n)
{
	const Attr *a = op_attr(op, name);
	if (!a || a->kind != ATTR_INTS || a->n < 1 || a->n >= SEQUENCE)
		return false;
	*n = a->n;
	for (int i = 0; i < a->n; i++) {
		axes[i] = a->ints[i] < 0 ? a->ints[i] + SEQUENCE : a->ints[i];
		axes[i] += axes[i] >= ROW;
	}
	return true;
}

// ---- the same on the image ----------------------------------------------------------------------

// `op` with other operands, and attribute `name` (or NULL) as given. NULL after a diagnostic.
static Value *rebuilt(Builder *b, const Op *op, Value *const *operands, const char *name,
                      const Attr *attr)
{
	NamedAttr *attrs = NEW_ARRAY(b->ctx->arena, (size_t)op->nattr + 1, NamedAttr);
	int n = op->nattr;
	if (n)
		memcpy(attrs, op->attrs, (size_t)n * sizeof *attrs);
	for (int i = 0; i < n && name; i++)
		if (!strcmp(attrs[i].name, name))
			attrs[i].attr = attr;
	Op *made = build_op(b, op->code, op->noperand, operands, n, attrs);
	if (!made)
		return NULL;
	made->results[0].name = op->results[0].name;
	return &made->results[0];
}

static Value *map_on_images(const Rows *r, Builder *b, const Op *op)
{
	Value *operands[8];
	bool found = false;
	if (op->noperand > (int)COUNT_OF(operands))
		return NULL;
	for (int i = 0; i < op->noperand; i++)
		found = found || (op_operand(op, i) && image_of(r, op_operand(op, i)));
	for (int i = 0; i < op->noperand && found; i++)
		operands[i] = op_operand(op, i) ? with_row(r, b, op_operand(op, i)) : NULL;
	return found ? rebuilt(b, op, operands, NULL, NULL) : NULL;
}

// What has one image, and other operands that stay as they are.
static Value *first_on_image(const Rows *r, Builder *b, const Op *op, const char *name,
                             const Attr *attr)
{
	Value **operands = NEW_ARRAY(b->ctx->arena, (size_t)op->noperand, Value *);
	for (int i = 0; i < op->noperand; i++)
		operands[i] = i ? op_operand(op, i) : image_of(r, op_operand(op, 0));
	return rebuilt(b, op, operands, name, attr);
}

static Value *slice_on_image(const Rows *r, Builder *b, const Op *op)
{
	int64_t axes[SEQUENCE];
	int n;
	const Attr *dropped = op_attr(op, "decrease_axis");
	if (!slice_is_fixed(op) || (dropped && dropped->n) || !axes_shift(op, "axes", axes, &n))
		return NULL;
	return first_on_image(r, b, op, "axes", attr_ints(b->ctx, n, axes));
}

static Value *batch_norm_on_image(const Rows *r, Builder *b, const Op *op)
{
	if (channels_last(op) || op->nresult != 1)
		return NULL;
	return first_on_image(r, b, op, NULL, NULL);
}

// Piece `index` of a split, as a slice.
static Value *piece_on_image(const Rows *r, Builder *b, const Op *op)
{
	const Op *split = op_operand(op, 0)->def;
	if (!split || split->code != OP_PD_SPLIT || !type_is_tensor(op_operand(split, 0)->type))
		return NULL;
	Value *image = image_of(r, op_operand(split, 0));
	const int64_t given = op_int(split, "axis", 0), axis = given < 0 ? given + SEQUENCE : given;
	const Type *all = split->results[0].type;
	int64_t start = 0, index = op_int(op, "index", 0);
	if (!image)
		return NULL;
	for (int i = 0; i <= index; i++) {
		if (!dim_is_const(all->elems[i]->dims[axis]))
			return NULL;
		start += i < index ? all->elems[i]->dims[axis]->value : 0;
	}
	return tensor_cut(b, image, axis + (axis >= ROW), start,
	                  start + all->elems[index]->dims[axis]->value);
}

// A reduction over the whole sequence is one over the whole image.
static bool reduce_on_image(const Rows *r, Op *op)
{
	int64_t axes[SEQUENCE];
	int n;
	if (op_bool(op, "reduce_all", false) || op_bool(op, "keepdim", false) ||
	    !op_info_attr(op->info, "axis") || !axes_shift(op, "axis", axes, &n) || n != 1 ||
	    axes[0] != ROW + 1)
		return true;
	Builder b = builder_before(op);
	Value *out = first_on_image(r, &b, op, "axis",
	                            attr_ints(op->ctx, 2, (int64_t[]){ROW, ROW + 1}));
	if (!out || out->type != op->results[0].type)
		return out != NULL;
	op_replace(op, &out);
	return true;
}

// ---- the pass -----------------------------------------------------------------------------------

static Value *op_on_images(const Rows *r, Builder *b, const Op *op)
{
	if (op->info->kind == KIND_MAP)
		return map_on_images(r, b, op);
	switch (op->code) {
	case OP_BUILTIN_SLICE: return piece_on_image(r, b, op);
	case OP_PD_SLICE: return slice_on_image(r, b, op);
	case OP_PD_BATCH_NORM: return batch_norm_on_image(r, b, op);
	default: return NULL;
	}
}

// Gives one sequence, perhaps of images.
static bool is_candidate(const Op *op, bool first)
{
	const Type *t = op->nresult == 1 ? op->results[0].type : NULL;
	return t && type_is_tensor(t) && t->rank == SEQUENCE &&
	       (first || op->info->kind == KIND_MAP || op->code == OP_BUILTIN_SLICE);
}

static bool op_widen(Rows *r, Op *op)
{
	Value *x = op->noperand ? op_operand(op, 0) : NULL;
	const bool first = x && type_is_tensor(x->type) && image_of(r, x);
	if (op->info->kind == KIND_REDUCE && first)
		return reduce_on_image(r, op);
	if (!is_candidate(op, first))
		return true;
	Builder b = builder_before(op);
	const int errors = diag_errors(op->ctx->diag);
	const Type *t = op->results[0].type;
	Value *image = op_on_images(r, &b, op);
	if (!image)
		return diag_errors(op->ctx->diag) == errors;
	if (!is_without_row(t, image->type) || t->dtype != image->type->dtype)
		return true; // nobody reads it
	Value *out = with_dims(&b, image, t->rank, t->dims);
	if (!out)
		return false;
	value_map_set(r->images, out, image);
	out->name = op->results[0].name;
	op_replace(op, &out);
	return true;
}

static bool region_widen(Rows *r, Region *region)
{
	for (Block *block = region->first; block; block = block->next)
		for (Op *op = block->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion; i++)
				if (op->info->kind == KIND_CONTROL && !region_widen(r, &op->regions[i]))
					return false;
			if (!op_widen(r, op))
				return false;
		}
	return true;
}

// Needs: inferred types; views as pd.reshape (canonicalize). Keeps: values, names, locations.
// Breaks: nothing; the views that nobody reads stay for dce.
bool pass_unit_rows(PassContext *p)
{
	Rows r = {value_map_new(p->ctx->arena)};
	return region_widen(&r, &p->module->regions[0]);
}
