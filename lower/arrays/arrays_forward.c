// Tensor arrays while they are still arrays: what was written is not read again, a length that is
// known is a number, and what is overwritten before anybody reads it is not written. Loops that
// were unrolled leave such arrays. Also what the passes on arrays know of positions. Run in front
// of pass `arrays`.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "lower/arrays/arrays.h"
#include "lower/arrays/parts.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

// ---- positions ----------------------------------------------------------------------------------

// What pd.full fills a tensor of integers with.
static bool full_number(const Value *v, int64_t *n)
{
	if (!v->def || v->def->code != OP_PD_FULL || v->def->noperand || !dtype_is_int(v->type->dtype))
		return false;
	const Attr *a = op_attr(v->def, "value");
	*n = a && a->kind == ATTR_INT ? a->i : a && a->kind == ATTR_FLOAT ? (int64_t)a->f : 0;
	return a && (a->kind == ATTR_INT || a->kind == ATTR_FLOAT);
}

// Whether a tensor of one integer is known to hold `*n`.
bool position_number(const Value *v, int64_t *n)
{
	const Tensor *t = value_constant(v);
	const Dim *const *known;
	if (t && tensor_numel(t) == 1 && dtype_is_int(t->dtype)) {
		*n = tensor_get_i(t, 0);
		return true;
	}
	if (value_known(v, &known) == 1 && dim_is_const(known[0])) {
		*n = known[0]->value;
		return true;
	}
	return full_number(v, n);
}

// v without casts, other shapes and added constants, whose sum is added to *offset.
const Value *position_base(const Value *v, int64_t *offset)
{
	for (const Op *op = v->def; op; op = v->def) {
		int64_t n;
		if (op->code == OP_PD_SCALE && op_float(op, "scale", 0) == 1 && op->noperand == 1 &&
		    number_whole(op_float(op, "bias", 0), &n))
			*offset += n;
		else if (op->code == OP_PD_INCREMENT && number_whole(op_float(op, "value", 1), &n))
			*offset += n;
		else if (op->code == OP_PD_ADD && position_number(op_operand(op, 1), &n))
			*offset += n;
		else if (op->code == OP_PD_SUBTRACT && position_number(op_operand(op, 1), &n))
			*offset -= n;
		else if (!(op->info->traits & TRAIT_VIEW) &&
		         (op->code != OP_PD_CAST || !dtype_is_int(op_operand(op, 0)->type->dtype)))
			break;
		v = op_operand(op, 0);
	}
	return v;
}

// The array whose length v is; NULL: something else.
const Value *position_length_of(const Value *v)
{
	return v->def && v->def->code == OP_PD_ARRAY_LENGTH ? op_operand(v->def, 0) : NULL;
}

// Whether two positions are the same (1), are different (0), or cannot be told (-1).
static int positions_equal(const Value *a, const Value *b)
{
	int64_t m = 0, n = 0, x, y;
	const Value *p = position_base(a, &m), *q = position_base(b, &n);
	if (p == q)
		return m == n;
	return position_number(p, &x) && position_number(q, &y) ? x + m == y + n : -1;
}

// ---- rewriting ----------------------------------------------------------------------------------

// What a read gives when the element was written in sight; NULL: not known.
static Value *read_forward(const Op *op)
{
	const Value *array = op_operand(op, 0);
	for (const Op *def = array->def; def && def->code == OP_PD_ARRAY_WRITE; def = array->def) {
		int same = positions_equal(op_operand(op, 1), op_operand(def, 1));
		Value *x = op_operand(def, 2);
		if (same == 1)
			return x->type == op->results[0].type ? x : NULL;
		if (same < 0)
			return NULL;
		array = op_operand(def, 0);
	}
	return NULL;
}

// How long an array is that was made in sight.
static bool length_known(const Value *array, int64_t *n)
{
	int64_t top = 0, pushed = 0, at;
	for (const Op *def = array->def; def; def = array->def) {
		int64_t offset = 0;
		if (def->code == OP_PD_CREATE_ARRAY) {
			*n = top > pushed ? top : pushed;
			return true;
		}
		if (def->code != OP_PD_ARRAY_WRITE)
			return false;
		const Value *base = position_base(op_operand(def, 1), &offset);
		array = op_operand(def, 0);
		if (position_length_of(base) == array && offset == 0 && top == 0)
			pushed++;
		else if (position_number(base, &at) && pushed == 0)
			top = at + offset + 1 > top ? at + offset + 1 : top;
		else
			return false;
	}
	return false;
}

static Value *length_forward(Op *op)
{
	int64_t n;
	if (!length_known(op_operand(op, 0), &n))
		return NULL;
	Builder b = builder_before(op);
	Tensor *t = tensor_new(op->ctx->arena, DT_I64, 1, (const int64_t[]){1});
	tensor_set_i(t, 0, n);
	return build_constant(&b, t);
}

// A write that only the next write at the same position sees is not needed.
static void write_skip(Op *op)
{
	for (const Op *def = op_operand(op, 0)->def; def && def->code == OP_PD_ARRAY_WRITE;
	     def = op_operand(op, 0)->def) {
		if (value_use_count(&def->results[0]) != 1 ||
		    positions_equal(op_operand(op, 1), op_operand(def, 1)) != 1)
			return;
		op_set_operand(op, 0, op_operand(def, 0));
	}
}

static void region_forward(Region *r)
{
	for (Block *b = r->first; b; b = b->next)
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			Value *v = op->code == OP_PD_ARRAY_READ     ? read_forward(op)
			           : op->code == OP_PD_ARRAY_LENGTH ? length_forward(op)
			                                            : NULL;
			if (v)
				op_replace(op, &v);
			else if (op->code == OP_PD_ARRAY_WRITE)
				write_skip(op);
			for (int i = 0; !v && op->info->kind == KIND_CONTROL && i < op->nregion; i++)
				region_forward(&op->regions[i]);
		}
}

// Needs: tensor arrays (before arrays).
// Keeps: everything; reads of what is not there fail as before.
// Breaks: nothing. Writes that nobody reads are left to dce.
bool pass_forward_arrays(PassContext *p)
{
	region_forward(&p->module->regions[0]);
	return pass_dce(p);
}
