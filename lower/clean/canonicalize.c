// Canonical forms: removes operations that change nothing, says with constants what inference
// knows, drops operands that only carried shapes, and brings what can be said in several ways into
// one (views to reshape, channels to axis 1). Nothing here changes a result by a bit, but for the
// sign of zero in x + 0 and the order in which rows that go to one place are added. Runs first, and
// after passes that leave such things behind.
//
// The operator table says which patterns an operation has (`simplify: [..]`); they run over the
// module until nothing changes.
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/build/nest.h"
#include "ir/infer/geometry.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <string.h>

enum { MAX_SWEEPS = 16 };

// A pattern gives what result 0 of op can be replaced by, or NULL: does not apply (or failed, after
// a diagnostic).
#include "ops_simplify.inc"

static bool same_type(const Op *op, const Value *v)
{
	return v && op->results[0].type == v->type;
}

static Value *build_reshape(Builder *b, Value *x, const Type *type)
{
	return build1(b, OP_PD_RESHAPE, x, "shape", attr_dims(b->ctx, type->rank, type->dims), NULL);
}

static Value *build_transpose(Builder *b, Value *x, int n, const int64_t *perm)
{
	return build1(b, OP_PD_TRANSPOSE, x, "perm", attr_ints(b->ctx, n, perm), NULL);
}

// ---- arithmetic ---------------------------------------------------------------------------------

static bool all_equal(const Value *v, double to)
{
	const Tensor *t = value_constant(v);
	int64_t n = t ? tensor_numel(t) : 0;
	if (n == 0 || n > 4096 || dtype_is_complex(t->dtype))
		return false;
	for (int64_t i = 0; i < n; i++)
		if (tensor_get_f(t, i) != to)
			return false;
	return true;
}

// x op c, where the constant c changes nothing; commutative operations try both orders.
static Value *drop_neutral(Op *op, double neutral)
{
	Value *x = op_operand(op, 0), *y = op_operand(op, 1);
	if (same_type(op, x) && all_equal(y, neutral))
		return x;
	if ((op->info->traits & TRAIT_COMMUTATIVE) && same_type(op, y) && all_equal(x, neutral))
		return y;
	return NULL;
}

Value *simplify_hook_plus_zero(Builder *b, Op *op)
{
	(void)b;
	return drop_neutral(op, 0);
}

static bool is_zeros(const Value *v)
{
	const Op *full = v->def && v->def->code == OP_PD_FULL ? v->def : NULL;
	return all_equal(v, 0) || (full && !op_operand(full, 1) && !*op_str(full, "str_value", "") &&
	                           op_float(full, "value", 1) == 0);
}

// Rows added to zeros; views of the sum that nobody else reads are looked through.
static Op *added_rows(Value *v)
{
	while (v->def && v->def->code == OP_PD_RESHAPE && v->uses && !v->uses->next)
		v = op_operand(v->def, 0);
	Op *op = v->def;
	if (!op || op->code != OP_KERNEL_SCATTER || !v->uses || v->uses->next ||
	    (ScatterKind)op_enum(op, "how") != SCATTER_ADD)
		return NULL;
	return is_zeros(op_operand(op, 0)) ? op : NULL;
}

// Rows are added to x itself, not to zeros as large as x: what a loop reads row by row gets its
// gradient so, and the plan then lets it lie where it is.
Value *simplify_hook_plus_rows(Builder *b, Op *op)
{
	for (int i = 0; i < 2; i++) {
		Value *x = op_operand(op, i), *sum = op_operand(op, 1 - i);
		Op *rows = same_type(op, x) && same_type(op, sum) ? added_rows(sum) : NULL;
		if (!rows)
			continue;
		Value *to = build_reshape(b, x, rows->results[0].type);
		Value *all = scatter_rows(b, to, op_operand(rows, 1), op_operand(rows, 2), "add");
		return all ? build_reshape(b, all, op->results[0].type) : NULL;
	}
	return NULL;
}

Value *simplify_hook_times_one(Builder *b, Op *op)
{
	(void)b;
	return drop_neutral(op, 1);
}

// Of complex numbers 1 + 0i and 0 + 0i do change something: infinities, and the sign of zeros.
Value *simplify_hook_scale(Builder *b, Op *op)
{
	(void)b;
	Value *x = op_operand(op, 0);
	if (dtype_is_complex(x->type->dtype))
		return NULL;
	bool neutral = op_float(op, "scale", 1) == 1 && op_float(op, "bias", 0) == 0 &&
	               !op_operand(op, 1);
	return neutral && same_type(op, x) ? x : NULL;
}

// Operations that give their operand back once their types agree. What stops gradients stays as
// long as gradients may be asked for.
Value *simplify_hook_same_type(Builder *b, Op *op)
{
	Value *x = op_operand(op, 0);
	bool stops = !b->ctx->derived && op_stops_gradient(op);
	return same_type(op, x) && !stops ? x : NULL;
}

// A truth as a number and back: the mask of a legacy condition.
Value *simplify_hook_cast_back(Builder *b, Op *op)
{
	(void)b;
	const Value *x = op_operand(op, 0);
	if (op->results[0].type->dtype != DT_BOOL || !x->def || x->def->code != OP_PD_CAST ||
	    dtype_is_complex(x->type->dtype))
		return NULL;
	Value *truth = op_operand(x->def, 0);
	return same_type(op, truth) ? truth : NULL;
}

Value *simplify_hook_not_not(Builder *b, Op *op)
{
	(void)b;
	const Value *x = op_operand(op, 0);
	Value *truth = x->def && x->def->code == OP_PD_LOGICAL_NOT ? op_operand(x->def, 0) : NULL;
	return truth && truth->type->dtype == DT_BOOL && same_type(op, truth) ? truth : NULL;
}

Value *simplify_hook_dropout(Builder *b, Op *op)
{
	(void)b;
	Value *x = op_operand(op, 0);
	bool same = op_enum(op, "mode") == DROPOUT_UPSCALE_IN_TRAIN || op_float(op, "p", 0.5) == 0;
	return same && same_type(op, x) ? x : NULL;
}

Value *simplify_hook_pad(Builder *b, Op *op)
{
	int64_t pads[2 * MAX_RANK];
	int n = op_ints(op, "paddings", pads, COUNT_OF(pads));
	for (int i = 0; i < n; i++)
		if (pads[i])
			return NULL;
	return n > 0 ? simplify_hook_same_type(b, op) : NULL;
}

// ---- views --------------------------------------------------------------------------------------

// squeeze, unsqueeze, flatten ...: one way to say it.
Value *simplify_hook_view(Builder *b, Op *op)
{
	return build_reshape(b, op_operand(op, 0), op->results[0].type);
}

Value *simplify_hook_reshape(Builder *b, Op *op)
{
	Value *x = op_operand(op, 0);
	if (same_type(op, x))
		return x;
	if (x->def && x->def->code == OP_PD_RESHAPE)
		return build_reshape(b, op_operand(x->def, 0), op->results[0].type);
	return NULL;
}

Value *simplify_hook_transpose(Builder *b, Op *op)
{
	int64_t perm[MAX_RANK], inner[MAX_RANK];
	Value *x = op_operand(op, 0);
	int n = op_ints(op, "perm", perm, MAX_RANK);
	if (n != x->type->rank)
		return NULL;
	bool identity = true, view = true;
	int64_t last = -1; // axes of size 1 may go anywhere: the bytes stay
	for (int i = 0; i < n; i++) {
		int64_t from = perm[i] < 0 ? perm[i] + n : perm[i];
		identity = identity && from == i;
		if (dim_is(x->type->dims[from], 1))
			continue;
		view = view && from > last;
		last = from;
	}
	if (identity)
		return x;
	if (view)
		return build_reshape(b, x, op->results[0].type);
	if (!x->def || x->def->code != OP_PD_TRANSPOSE || op_ints(x->def, "perm", inner, MAX_RANK) != n)
		return NULL;
	for (int i = 0; i < n; i++)
		perm[i] = inner[perm[i] < 0 ? perm[i] + n : perm[i]];
	return build_transpose(b, op_operand(x->def, 0), n, perm);
}

// Whether a position that a run finds may lie outside: that is checked where the slice is read.
static bool slice_may_miss(Op *op)
{
	Extent e;
	bool miss = slice_is_open(op) || !extent_of_slice(op, &e);
	for (int d = 0; !miss && d < op_operand(op, 0)->type->rank; d++) {
		int64_t lo, hi;
		dim_range(e.start[d], &lo, &hi);
		miss = e.single[d] && (lo < 0 || hi > 0);
	}
	return miss;
}

// A slice of everything; it may still drop axes of size 1.
Value *simplify_hook_slice(Builder *b, Op *op)
{
	Value *x = op_operand(op, 0);
	const Type *type = op->results[0].type;
	if (!type_is_tensor(x->type) || type_numel(b->ctx, x->type) != type_numel(b->ctx, type) ||
	    dim_is(type_numel(b->ctx, type), 0) || slice_may_miss(op))
		return NULL;
	return same_type(op, x) ? x : build_reshape(b, x, type);
}

// ---- lists --------------------------------------------------------------------------------------

Value *simplify_hook_single(Builder *b, Op *op)
{
	(void)b;
	Value *const *list;
	return op_operand_list(op, 0, &list) == 1 && same_type(op, list[0]) ? list[0] : NULL;
}

Value *simplify_hook_list_slice(Builder *b, Op *op)
{
	(void)b;
	Value *list = op_operand(op, 0);
	int64_t at = op_int(op, "index", -1);
	if (!list->def || list->def->code != OP_BUILTIN_COMBINE || at < 0 || at >= list->def->noperand)
		return NULL;
	return op_operand(list->def, (int)at);
}

// ---- channels to axis 1 -------------------------------------------------------------------------

// perm moves the channels of a rank-n image from the last axis to axis 1 (or back).
static void channel_perm(int n, bool back, int64_t *perm)
{
	perm[0] = 0;
	for (int i = 1; i < n; i++)
		perm[i] = back ? (i == n - 1 ? 1 : i + 1) : (i == 1 ? n - 1 : i - 1);
}

// op in NHWC is transpose, op in NCHW, transpose back.
Value *simplify_hook_channels(Builder *b, Op *op)
{
	static const char *const formats[] = {"NC", "NCL", "NCHW", "NCDHW"};
	Value *x = op_operand(op, 0);
	int n = x->type->rank;
	if (!channels_last(op) || !type_is_tensor(x->type) || n < 2 || n > 5 ||
	    op->results[0].type->rank != n ||
	    (op->code == OP_PD_PRELU && op_enum(op, "mode") == SLOPES_ELEMENT))
		return NULL;
	int64_t perm[MAX_RANK];
	channel_perm(n, false, perm);
	Value *first = n > 2 ? build_transpose(b, x, n, perm) : x;
	if (!first)
		return NULL;
	Op *clone = op_clone(b->ctx, op, value_map_new(b->ctx->arena));
	op_set_operand(clone, 0, first);
	op_set_attr(clone, "data_format", attr_str(b->ctx, formats[n - 2]));
	op_insert_before(b->before, clone);
	if (!op_infer(clone))
		return NULL;
	channel_perm(n, true, perm);
	Value *back = NULL;
	for (int i = op->nresult - 1; i >= 0; i--) {
		clone->results[i].name = NULL; // the variable is what comes after the second transpose
		back = n > 2 ? build_transpose(b, op_result(clone, i), n, perm) : op_result(clone, i);
		if (!back)
			return NULL;
		if (i) {
			back->name = op->results[i].name;
			value_replace(&op->results[i], back);
		}
	}
	return back;
}

// ---- the pass -----------------------------------------------------------------------------------

static bool op_replace_by(Op *op, Value *with)
{
	// A type may be replaced by one that differs in LoD only; the value keeps what its users saw.
	if (with->type != op->results[0].type)
		return false;
	// Results behind the first have nobody left who reads them.
	Value **all = NEW_ARRAY(op->ctx->arena, (size_t)op->nresult, Value *);
	all[0] = with;
	for (int i = 1; i < op->nresult; i++) {
		if (value_used(&op->results[i]))
			return false;
		all[i] = &op->results[i];
	}
	op_replace(op, all);
	return true;
}

// One step on one operation. True: changed.
static bool op_canonicalize(Op *op)
{
	refresh_known(op);
	bool changed = drop_shape_operands(op);
	Builder b = builder_before(op);
	Value *with = known_constant(&b, op);
	for (size_t i = 0; i < COUNT_OF(simplify_hooks[0]) && simplify_hooks[op->code][i] && !with; i++)
		with = simplify_hooks[op->code][i](&b, op);
	return (with && op_replace_by(op, with)) || changed;
}

static bool region_canonicalize(Region *r)
{
	bool changed = false;
	for (Block *b = r->first; b; b = b->next) {
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			if (op->info->kind == KIND_LOOP || !strncmp(op->info->name, "kernel.", 7))
				continue; // scalars inside
			for (int i = 0; i < op->nregion; i++)
				changed |= region_canonicalize(&op->regions[i]);
			changed |= op_canonicalize(op);
		}
	}
	return changed;
}

// Needs: result types (every operation inferred).
// Keeps: meaning; values keep their names where one operation replaces another.
// Breaks: nothing. What nobody reads any more is removed at the end.
bool pass_canonicalize(PassContext *p)
{
	int errors = diag_errors(p->ctx->diag);
	for (int i = 0; i < MAX_SWEEPS && region_canonicalize(&p->module->regions[0]); i++)
		if (!pass_dce(p))
			return false;
	return diag_errors(p->ctx->diag) == errors;
}
