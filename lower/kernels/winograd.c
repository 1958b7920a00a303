// Convolutions to kernel.winograd, where the table in lower/target/winograd.c has it faster than
// direct ones. Run by lower/pipeline.c behind layout, and by scratch.c.
#include "ir/build/build.h"
#include "ir/core/winograd.h"
#include "lower/kernels/kernels.h"
#include "lower/kernels/scratch.h"
#include "lower/pass/rewrite.h"
#include "lower/target/winograd.h"

#include <string.h>

static int64_t known(const Dim *d)
{
	return dim_is_const(d) ? d->value : 0;
}

static bool all_are(const Op *op, const char *name, int64_t want)
{
	int64_t v[2];
	return op_ints(op, name, v, 2) == 2 && v[0] == want && v[1] == want;
}

static bool in_blocks_of(const Type *image, int64_t lanes)
{
	return image->rank == 5 && dim_is(image->dims[4], lanes);
}

// Whether v is a constant, or what folding makes one: a constant for this alone, seen otherwise.
static bool is_known(const Value *v)
{
	for (; !value_constant(v); v = op_operand(v->def, 0))
		if (!v->def || value_use_count(v) != 1 ||
		    (v->def->code != OP_PD_TRANSPOSE && !(v->def->info->traits & TRAIT_VIEW)) ||
		    value_use_count(op_operand(v->def, 0)) != 1)
			return false;
	return true;
}

// The operation that packs the filter of a convolution which could be transformed; NULL: it cannot.
static Op *pack_of(const Op *conv, int64_t lanes)
{
	Op *pack = op_operand(conv, 1)->def;
	if (!pack || pack->code != OP_KERNEL_PACK_CONV || !is_known(op_operand(pack, 0)))
		return NULL;
	const Type *w = op_operand(pack, 0)->type, *out = conv->results[0].type;
	const bool blocked = in_blocks_of(op_operand(conv, 0)->type, lanes) && in_blocks_of(out, lanes);
	return blocked && w->rank == 4 && w->dtype == DT_F32 && op_int(conv, "groups", 1) == 1 &&
	               all_are(conv, "strides", 1)
	           ? pack
	           : NULL;
}

static Value *weights_of(Op *pack, const WinogradLayer *l, const WinogradTile *t)
{
	Context *c = pack->ctx;
	const Type *packed = pack->results[0].type;
	const Dim *dims[4] = {packed->dims[0], dim_const(c, winograd_numbers(t)),
	                      dim_const(c, winograd_depth(l, t)), packed->dims[4]};
	Builder b = builder_before(pack);
	Value *w = op_operand(pack, 0);
	const Type *type = type_tensor(c, DT_F32, 4, dims, 0);
	Op *op = op_new(c, OP_KERNEL_PACK_WINOGRAD, pack->loc, 1, &type, 1, &w, 0, 0);
	op_set_attr(op, "tile", attr_ints(c, 2, t->results));
	op_set_attr(op, "chunk", attr_ints(c, 2, t->chunk));
	op->results[0].name = pack->results[0].name;
	op_insert_before(b.before, op);
	return &op->results[0];
}

static void conv_replace(Op *conv, Op *pack, const WinogradLayer *l, const WinogradTile *t)
{
	Context *c = conv->ctx;
	Value *operands[2] = {op_operand(conv, 0), weights_of(pack, l, t)};
	Op *op = op_new(c, OP_KERNEL_WINOGRAD, conv->loc, 1, &conv->results[0].type, 2, operands, 1, 0);
	op_set_attr(op, "tile", attr_ints(c, 2, t->results));
	op_set_attr(op, "chunk", attr_ints(c, 2, t->chunk));
	op_set_attr(op, "taps", attr_ints(c, 2, l->taps));
	op_set_attr(op, "group", attr_int(c, winograd_group(l, t)));
	op_set_attr(op, "paddings", op_attr(conv, "paddings"));
	op_set_attr(op, "dilations", attr_ints(c, 2, l->dilations));
	op_set_attr(op, "in_channels", attr_int(c, l->channels));
	op_take_regions(op, conv, 1);
	op->results[0].name = conv->results[0].name;
	op_insert_before(conv, op);
	value_replace(&conv->results[0], &op->results[0]);
	op_erase(conv);
	if (!value_used(&pack->results[0]))
		op_erase(pack);
}

static void conv_visit(const Target *t, Op *conv, int threads)
{
	Op *pack = pack_of(conv, t->lanes);
	if (!pack)
		return;
	const Dim *const *out = conv->results[0].type->dims, *const *w =
															 op_operand(pack, 0)->type->dims;
	WinogradTile tile;
	WinogradLayer l = {.taps = {known(w[2]), known(w[3])},
	                   .channels = op_int(conv, "in_channels", 0),
	                   .outputs = known(w[0]),
	                   .images = known(out[0]),
	                   .rows = known(out[2]),
	                   .columns = known(out[3]),
	                   .lanes = t->lanes,
	                   .q = known(pack->results[0].type->dims[4]),
	                   .height = t->conv_ur,
	                   .threads = threads};
	if (op_ints(conv, "dilations", l.dilations, 2) != 2)
		return;
	for (int i = 0; i < 2; i++)
		if (l.taps[i] == 1)
			l.dilations[i] = 1; // a tap lies apart from no other one
	if (winograd_tile(&l, &tile))
		conv_replace(conv, pack, &l, &tile);
}

static void region_visit(const Target *t, Region *r, int threads)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			for (int i = 0; i < op->nregion && op->info->kind == KIND_CONTROL; i++)
				region_visit(t, &op->regions[i], threads);
			if (op->info->filter == FILTER_PACKED && op_int(op, "in_channels", 0) > 0)
				conv_visit(t, op, threads); // not one filter for each channel
		}
}

// All tiles of an operation; as many as a run finds.
static const Dim *tiles_of(Context *c, const Op *op)
{
	const Dim *const *out = op->results[0].type->dims, *tiles = out[0];
	int64_t tile[2] = {1, 1}, apart[2] = {1, 1};
	op_ints(op, "tile", tile, 2);
	op_ints(op, "dilations", apart, 2);
	for (int i = 0; i < 2; i++)
		tiles = dim_mul(c, tiles, winograd_tiles_along(c, out[2 + i], apart[i], tile[i]));
	return tiles;
}

const Type *winograd_scratch(Context *c, const Op *op)
{
	const Type *x = op_operand(op, 0)->type, *w = op_operand(op, 1)->type;
	const int64_t lanes = x->dims[4]->value, parts = op_int(op, "parts", 1);
	const int64_t chunks = w->dims[2]->value / op_int(op, "in_channels", 1);
	const Dim *group = dim_const(c, op_int(op, "group", 1));
	if (parts == 1)
		group = dim_min(c, group, tiles_of(c, op));
	const Dim *each = dim_add(c, winograd_stride_of(c, group, x->dims[1]->value * chunks, lanes),
	                          winograd_stride_of(c, group, w->dims[3]->value / lanes, lanes));
	return type_tensor(c, DT_F32, 1,
	                   (const Dim *[]){dim_mul(c, each, dim_const(c, w->dims[1]->value * parts))},
	                   0);
}

// Needs: kernels with packed weights, not folded yet (layout). Keeps: names, locations, epilogues;
// values but for rounding. Breaks: nothing.
bool pass_winograd(PassContext *p)
{
	if (p->winograd && target_has(p->target, OP_KERNEL_WINOGRAD))
		region_visit(p->target, &p->module->regions[0], p->threads);
	return true;
}
