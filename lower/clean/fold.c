// Constant folding: operations that read nothing but constants and parameters are evaluated now,
// through the interpreter (so folding cannot disagree with it), and their results become constants
// or parameters. Layout changes of parameters always fold: that is how packed weights come to be.
// The pipeline runs this early, and again after layout and fuse.
#include "ir/base/vec.h"
#include "ir/build/build.h"
#include "ir/build/infer.h"
#include "ir/interp/interp.h"
#include "lower/clean/clean.h"
#include "lower/pass/pass.h"
#include "lower/pass/rewrite.h"

#include <math.h>
#include <string.h>

// A fold must not make the weights explode (expand, tile, full), nor take minutes. A position bias
// gathered from a small table, or the mask of shifted windows, is worth its bytes.
enum {
	SMALL_BYTES = 1 << 20,
	GROWTH = 4,
	MAX_CONSTANT = 64,
	LARGEST_FULL = 64,
	MAX_MADE = 64 << 10
};
#define MAX_STEPS (INT64_C(1) << 26)
#define MOST_WHOLE 9007199254740992.0 // 2^53: a double holds all whole numbers below

// What folding one operation would need.
typedef struct Need {
	const Op *op;
	int ninput, cinput;
	Value **inputs;  // constants, and values made from nothing, from outside, each once
	int64_t bytes;   // of them
	int64_t largest; // elements
	bool constant;   // nothing else is read
	Arena *arena;
} Need;

static bool op_reads_nothing(const Op *op)
{
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i))
			return false;
	return true;
}

// Operations that make a small tensor from nothing (full, eye ...) are left alone by themselves,
// since they are cheaper than bytes, but what reads only them folds.
static bool value_is_made(const Value *v)
{
	int64_t n;
	const Op *op = v->def;
	if (!op || op->nresult != 1 || op->nregion || op->info->kind != KIND_INDEX ||
	    !(op->info->traits & TRAIT_PURE))
		return false;
	return op_reads_nothing(op) && type_is_tensor(v->type) && type_const_numel(v->type, &n) &&
	       n <= MAX_MADE / (int64_t)dtype_size(v->type->dtype);
}

static void need_add(Need *n, Value *v)
{
	for (int i = 0; i < n->ninput; i++)
		if (n->inputs[i] == v)
			return;
	Tensor *t = value_constant(v);
	if (!t && !value_is_made(v)) {
		n->constant = false;
		return;
	}
	VEC_ROOM(n->arena, n->inputs, n->ninput, n->cinput);
	n->inputs[n->ninput++] = v;
	int64_t elements = 0;
	if (t)
		n->bytes += (int64_t)tensor_bytes(t);
	type_const_numel(v->type, &elements);
	if (elements > n->largest)
		n->largest = elements;
}

// Collects what op reads from outside; sizes that only a run knows are not constant.
static bool need_visit(Op *op, void *arg)
{
	Need *n = arg;
	for (int i = 0; i < op->noperand && n->constant; i++) {
		Value *v = op_operand(op, i);
		if (!v || (op != n->op && value_is_within(v, n->op)))
			continue;
		if (v->def && v->def->code == OP_BUILTIN_COMBINE)
			need_visit(v->def, n);
		else
			need_add(n, v);
	}
	for (int i = 0; i < op->nattr && n->constant; i++) {
		const Attr *a = op->attrs[i].attr;
		if (a->kind == ATTR_DIM)
			n->constant = n->constant && dim_is_const(a->dim);
		for (int d = 0; a->kind == ATTR_DIMS && d < a->n; d++)
			n->constant = n->constant && dim_is_const(a->dims[d]);
	}
	return n->constant;
}

// A view of a large parameter costs nothing as it is; folded, the parameter may be stored twice.
static bool view_is_cheaper(const Op *op, const Need *n)
{
	if (!(op->info->traits & TRAIT_VIEW) || n->bytes <= SMALL_BYTES)
		return false;
	return n->ninput > 0 && value_use_count(n->inputs[0]) > 1;
}

// Elements of all results; -1 when an operation cannot be folded for its results.
static int64_t result_elements(const Op *op, int64_t *bytes)
{
	int64_t sum = 0;
	*bytes = 0;
	for (int i = 0; i < op->nresult; i++) {
		const Type *t = op->results[i].type;
		int64_t n;
		if (!t || !type_is_tensor(t) || t->lod || !type_const_numel(t, &n) || n > MAX_STEPS)
			return -1;
		sum += n;
		*bytes += n * (int64_t)dtype_size(t->dtype);
	}
	return sum;
}

// How many steps a reduction inside the nest multiplies the work by, at most.
static bool steps_visit(Op *op, void *arg)
{
	int64_t *steps = arg;
	const Attr *extents = op->code == OP_LOOP_REDUCE ? op_attr(op, "extents") : NULL;
	for (int i = 0; extents && i < extents->n; i++) {
		int64_t lo, hi;
		dim_range(extents->dims[i], &lo, &hi);
		if (hi > MAX_STEPS || *steps > MAX_STEPS)
			*steps = MAX_STEPS + 1;
		else
			*steps *= hi > 0 ? hi : 1;
	}
	return true;
}

static bool work_is_small(Op *op, const Need *n, int64_t elements)
{
	int64_t steps = elements > 0 ? elements : 1;
	if (op->info->kind ==
	    KIND_CONTRACT) // a sum over at most what is in an operand for every element
		return n->largest <= MAX_STEPS / steps;
	op_walk(op, steps_visit, &steps);
	return steps <= MAX_STEPS;
}

// Whether operations of this kind give the same for the same operands, and are no constants
// already.
static bool kind_folds(const OpInfo *info)
{
	return (info->traits & TRAIT_PURE) && !(info->traits & (TRAIT_CONSTANT | TRAIT_TERMINATOR)) &&
	       info->kind != KIND_BUILTIN && info->kind != KIND_RANDOM && info->kind != KIND_CONTROL;
}

static bool op_folds(Op *op, Need *n)
{
	if (!op->nresult || !kind_folds(op->info) || op->code == OP_LOOP_EMPTY)
		return false; // what is empty holds nothing that a constant could say
	int64_t bytes, elements = result_elements(op, &bytes);
	if (elements < 0)
		return false;
	need_visit(op, n);
	if (n->constant && op->nregion > 0)
		op_walk(op, need_visit, n);
	if (!n->constant || view_is_cheaper(op, n))
		return false;
	if (n->ninput == 0 && elements > LARGEST_FULL)
		return false;
	if ((op->info->traits & TRAIT_REPACKS))
		return true;
	return (bytes <= SMALL_BYTES || bytes <= GROWTH * n->bytes) && work_is_small(op, n, elements);
}

// ---- evaluation ---------------------------------------------------------------------------------

// A view has the bytes of its operand.
static Tensor *evaluate_view(Op *op)
{
	Tensor *from = value_constant(op_operand(op, 0));
	const Type *type = op->results[0].type;
	if (!(op->info->traits & TRAIT_VIEW) || op->nresult != 1 || !from || from->dtype != type->dtype)
		return NULL;
	Tensor *t = NEW(op->ctx->arena, Tensor);
	t->dtype = type->dtype;
	t->rank = type->rank;
	for (int i = 0; i < type->rank; i++)
		t->dims[i] = type->dims[i]->value;
	t->data = from->data;
	return tensor_numel(t) == tensor_numel(from) ? t : NULL;
}

static Tensor *tensor_copy(Arena *a, const Tensor *from)
{
	Tensor *t = tensor_new(a, from->dtype, from->rank, from->dims);
	if (t && tensor_bytes(from))
		memcpy(t->data, from->data, tensor_bytes(from));
	return t;
}

// Evaluates op into results (in the context's arena). False after a diagnostic.
static bool op_evaluate(Op *op, const Need *n, Arena *scratch, Tensor **results)
{
	if ((results[0] = evaluate_view(op)))
		return true;
	Interp *in = interp_new(op->ctx, scratch);
	for (int i = 0; i < n->ninput; i++) {
		Tensor *t = value_constant(n->inputs[i]);
		if (t)
			interp_bind(in, n->inputs[i], t);
		else if (!interp_op(in, n->inputs[i]->def))
			return false;
	}
	for (int i = 0; i < op->noperand; i++) {
		Value *v = op_operand(op, i);
		if (v && v->def && v->def->code == OP_BUILTIN_COMBINE && !interp_op(in, v->def))
			return false;
	}
	if (!interp_op(in, op))
		return false;
	for (int i = 0; i < op->nresult; i++) {
		Tensor *t = interp_value(in, &op->results[i]);
		if (!t || !(results[i] = tensor_copy(op->ctx->arena, t))) {
			diag_error(op->ctx->diag, op->loc, "'%s' on constants has no value", op->info->name);
			return false;
		}
	}
	return true;
}

// Whether all elements are one number, which a double holds.
static bool is_one_number(const Tensor *t, double *v)
{
	if (dtype_is_complex(t->dtype) || !tensor_is_uniform(t))
		return false;
	*v = tensor_get_f(t, 0);
	return dtype_is_float(t->dtype) ? *v == *v
	                                : fabs(*v) < MOST_WHOLE && (int64_t)*v == tensor_get_i(t, 0);
}

// A constant or parameter that holds t, for result i of op; what makes it, where it is one number
// many times.
static Value *build_folded(Builder *b, const Op *op, int i, Tensor *t, const Need *n)
{
	const Value *old = &op->results[i];
	const bool packed = op->info->traits & TRAIT_REPACKS;
	double number;
	Value *v;
	if (!packed && tensor_numel(t) <= MAX_CONSTANT) {
		v = build_constant(b, t);
	} else if (!packed && tensor_bytes(t) <= MAX_MADE && is_one_number(t, &number)) {
		v = build_full(b, old->type, number);
	} else {
		const char *from = n->ninput ? n->inputs[0]->name : NULL;
		v = build_parameter(b, packed || !old->name ? from : old->name,
		                    packed ? "packed" : "folded", t);
	}
	if (v && v->type != old->type)
		v->type = old->type; // equal but for what a constant cannot say
	return v;
}

static bool op_fold(Op *op)
{
	Arena *scratch = arena_scratch(op->ctx->arena);
	Need need = {.op = op, .constant = true, .arena = scratch};
	const DiagMark mark = diag_mark(op->ctx->diag);
	bool ok = true;
	if (op_folds(op, &need)) {
		Tensor **data = NEW_ARRAY(scratch, (size_t)op->nresult, Tensor *);
		Value **with = NEW_ARRAY(scratch, (size_t)op->nresult, Value *);
		Builder b = builder_before(op);
		ok = op_evaluate(op, &need, scratch, data);
		for (int i = 0; i < op->nresult && ok; i++)
			ok = (with[i] = build_folded(&b, op, i, data[i], &need)) != NULL;
		if (ok)
			op_replace(op, with);
		if (!ok && op_may_not_run(op)) { // what is wrong with it, the run that comes there says
			diag_rewind(op->ctx->diag, mark);
			ok = true;
		}
	}
	arena_free(scratch);
	return ok;
}

static bool region_fold(Region *r)
{
	for (Block *b = r->first; b; b = b->next) {
		for (Op *op = b->first, *next; op; op = next) {
			next = op->next;
			if (op->info->kind == KIND_CONTROL)
				for (int i = 0; i < op->nregion; i++)
					if (!region_fold(&op->regions[i]))
						return false;
			if (!op_fold(op))
				return false;
		}
	}
	return true;
}

// Needs: nothing.
// Keeps: everything; results are to the bit what the interpreter gives.
// Breaks: nothing. Folded operations are gone; parameters that only they read are left to dce.
bool pass_fold(PassContext *p)
{
	return region_fold(&p->module->regions[0]);
}
