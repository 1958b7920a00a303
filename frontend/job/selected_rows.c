// What declared kinds of variables may hold, and SELECTED_ROWS: a matrix of which only some rows
// are there, as the gradient of a sparse embedding. Its value here is the whole matrix, zeros in
// the other rows; which rows are there, and in which order, stands beside it (RowSet). Used by
// translate.c, variables.c and steps.c.
#include "frontend/job/lod.h"
#include "frontend/job/trace.h"
#include "frontend/job/variant.h"
#include "ir/build/nest.h"

#include <string.h>

// The rows of one value.
struct RowSet {
	const Value *of;
	Value *at;     // i64 [k]: which row each is
	Value *rows;   // [k x width]: each; NULL: those of the matrix, or not known one by one
	bool distinct; // `at` has no row twice
	struct RowSet *next;
};

static const RowSet *rows_of(const Translator *t, const Value *v)
{
	const RowSet *r = t->rows;
	while (r && r->of != v)
		r = r->next;
	return r;
}

static void rows_set(Translator *t, const Value *v, Value *at, Value *rows, bool distinct)
{
	RowSet *r = NEW(t->c->arena, RowSet);
	*r = (RowSet){.of = v, .at = at, .rows = rows, .distinct = distinct, .next = t->rows};
	t->rows = r;
}

static bool is_rows(Translator *t, const char *var)
{
	const Binding *b = var ? scope_find(t, var) : NULL;
	return b && b->desc && b->desc->type->type == PADDLE__VAR_KIND__SELECTED_ROWS;
}

static bool has_flag(const Paddle__OpDesc *d, const char *name)
{
	const Paddle__OpAttr *a = attr_find(d, name);
	int64_t on;
	return a && attr_int_at(a, 0, &on) && on;
}

static bool type_in(const char *type, size_t n, const char *const *types)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

// Operators for which rows that are not there are as good as zeros, and a row that is there twice
// as good as the sum.
static bool is_linear(const Paddle__OpDesc *d)
{
	static const char *const types[] = {"sum",        "scale",           "assign", "clip_by_norm",
	                                    "share_data", "elementwise_mul", "cast"};
	return type_in(d->type, COUNT_OF(types), types);
}

static bool is_update(const Paddle__OpDesc *d)
{
	return slot_find(d->n_inputs, d->inputs, "Grad") && slot_find(d->n_inputs, d->inputs, "Param");
}

bool rows_may_be_read(OpJob *j)
{
	static const char *const types[] = {"merge_selected_rows", "get_tensor_from_selected_rows"};
	const Paddle__OpDesc *d = j->desc;
	const char *y = slot_var(slot_find(d->n_inputs, d->inputs, "Y"), 0);
	if ((is_linear(d) && !is_rows(j->t, y)) || is_update(d) ||
	    type_in(d->type, COUNT_OF(types), types))
		return true;
	for (size_t i = 0; i < d->n_inputs; i++)
		for (size_t k = 0; k < d->inputs[i]->n_arguments; k++)
			if (is_rows(j->t, d->inputs[i]->arguments[k]))
				return job_fail(j, "input %s: variable '%s' is a SELECTED_ROWS: not supported",
				                d->inputs[i]->parameter, d->inputs[i]->arguments[k]);
	return true;
}

// An operator with this flag gives the gradient of a table as the rows that were looked up.
static bool makes_rows(const Paddle__OpDesc *d)
{
	return has_flag(d, "is_sparse") || !strcmp(d->type, "merge_selected_rows");
}

bool kind_may_hold(OpJob *j, const char *var, const Paddle__VarDesc *d, const Value *v)
{
	const int kind = d->type->type;
	const bool array = v->type->kind == TY_ARRAY || is_mixed(v);
	bool ok;
	switch (kind) {
	case PADDLE__VAR_KIND__LOD_TENSOR: ok = !array; break;
	case PADDLE__VAR_KIND__LOD_TENSOR_ARRAY: ok = array; break;
	case PADDLE__VAR_KIND__SELECTED_ROWS:
		ok = !array && (makes_rows(j->desc) || is_linear(j->desc));
		break;
	case PADDLE__VAR_KIND__LOD_RANK_TABLE: ok = !strcmp(j->desc->type, "lod_rank_table"); break;
	default: ok = false;
	}
	return ok || job_fail(j, "variable '%s' is declared as %s, and gets %s", var, kind_name(kind),
	                      array ? "a tensor array" : "a tensor");
}

static Value *flat_ids(OpJob *j, const char *var)
{
	Value *ids = var ? read_var(j, "Ids", var) : NULL;
	if (!ids || !type_is_tensor(ids->type) || !dtype_is_int(ids->type->dtype))
		return NULL;
	const Dim *n = type_numel(j->t->c, ids->type);
	return tensor_cast(&j->b, tensor_reshape(&j->b, ids, 1, &n), DT_I64);
}

// The gradient of a table: a row for each id, in their order. A sparse one does not know the id of
// the padding, unlike a dense one.
static void note_lookup(OpJob *j, const char *var, Value *out)
{
	const Paddle__OpDesc *d = j->desc;
	const Paddle__OpAttr *a = attr_find(d, "padding_idx");
	int64_t padding = -1;
	const char *dv = slot_var(slot_find(d->n_inputs, d->inputs, "Out@GRAD"), 0);
	Value *at = flat_ids(j, slot_var(slot_find(d->n_inputs, d->inputs, "Ids"), 0));
	Value *rows = at && dv ? read_var(j, "Out@GRAD", dv) : NULL;
	if (!rows || out->type->rank != 2)
		return;
	const Dim *const dims[] = {at->type->dims[0], out->type->dims[1]};
	rows = tensor_reshape(&j->b, rows, 2, dims);
	if (rows && a && attr_int_at(a, 0, &padding) && padding != -1) {
		Value *const operands[] = {build_full(&j->b, out->type, 0), at, rows};
		const NamedAttr add = {"overwrite", attr_bool(j->t->c, false)};
		Op *op = build_op(&j->b, OP_PD_SCATTER, 3, operands, 1, &add);
		out = op ? op_result(op, 0) : out;
		write_var(j, var, out);
	}
	if (rows)
		rows_set(j->t, out, at, rows, false);
}

static Value *joined(OpJob *j, Value *x, Value *more)
{
	return x ? tensor_concat(&j->b, 2, (Value *const[]){x, more}, 0) : more;
}

// What a linear operator gives has the rows of its operands, of all of them where it sums. Which
// number stands in each is kept for sums only.
static void note_linear(OpJob *j, const Value *out)
{
	const Paddle__OpSlot *x = slot_find(j->desc->n_inputs, j->desc->inputs, "X");
	const bool sum = !strcmp(j->desc->type, "sum");
	Value *at = NULL, *rows = NULL;
	bool distinct = true, whole = sum;
	size_t n = 0;
	for (; slot_var(x, n); n++) {
		const TracedVar *r = j->trace->reads;
		while (r && strcmp(r->var, slot_var(x, n)))
			r = r->next;
		const RowSet *set = r ? rows_of(j->t, r->value) : NULL;
		if (!set)
			return;
		at = joined(j, at, set->at);
		whole &= set->rows != NULL;
		rows = whole ? joined(j, rows, set->rows) : NULL;
		distinct &= set->distinct;
	}
	if (at && !rows_of(j->t, out))
		rows_set(j->t, out, at, whole ? rows : NULL, distinct && n == 1);
}

void rows_note(OpJob *j)
{
	const Paddle__OpDesc *d = j->desc;
	for (size_t i = 0; i < d->n_outputs; i++) {
		const char *var = slot_var(d->outputs[i], 0);
		const Binding *b = is_rows(j->t, var) ? scope_find(j->t, var) : NULL;
		if (b && b->value && has_flag(d, "is_sparse"))
			note_lookup(j, var, b->value);
		else if (b && b->value && is_linear(d))
			note_linear(j, b->value);
	}
}

bool rows_mask(OpJob *j, const Value *v, Value **mask)
{
	const RowSet *r = rows_of(j->t, v);
	Context *c = j->t->c;
	*mask = NULL;
	if (!r)
		return false;
	const Dim *all[] = {v->type->dims[0], dim_const(c, 1)},
			  *some[] = {r->at->type->dims[0], all[1]};
	Value *none = build_full(&j->b, type_tensor(c, DT_F32, 2, all, 0), 0),
		  *ones = build_full(&j->b, type_tensor(c, DT_F32, 2, some, 0), 1);
	Value *const operands[] = {none, r->at, ones};
	Value *hit = build(&j->b, OP_PD_SCATTER, 3, operands, NULL);
	*mask = hit ? build1(&j->b, OP_PD_CAST, hit, "dtype", attr_dtype(c, DT_BOOL), NULL) : NULL;
	return true;
}

static const RowSet *input_rows(OpJob *j, Value **x, const char **out)
{
	const char *var = input_var(j, "X");
	*out = output_var(j, "Out");
	if (!var || !*out) {
		job_fail(j, "needs variables in X and Out");
		return NULL;
	}
	*x = read_var(j, "X", var);
	const RowSet *r = *x ? rows_of(j->t, *x) : NULL;
	if (*x && !r)
		job_fail(j, "input X: which rows variable '%s' has is not known: not supported", var);
	return r;
}

// Each row once, in ascending order.
bool merge_rows_translate(OpJob *j)
{
	const char *out;
	Value *x;
	const RowSet *r = input_rows(j, &x, &out);
	if (!r)
		return false;
	const NamedAttr sorted = {"is_sorted", attr_bool(j->t->c, true)};
	Op *u = !r->distinct ? build_op(&j->b, OP_PD_UNIQUE, 1, (Value *const[]){r->at}, 1, &sorted)
	                     : NULL;
	Value *merged = build1(&j->b, OP_PD_ASSIGN, x, NULL);
	if (!merged || (!r->distinct && !u))
		return false;
	rows_set(j->t, merged, u ? op_result(u, 0) : r->at, NULL, true);
	write_var(j, out, merged);
	return true;
}

bool rows_tensor_translate(OpJob *j)
{
	const char *out;
	Value *x;
	const RowSet *r = input_rows(j, &x, &out);
	if (!r)
		return false;
	if (!r->rows && !r->distinct)
		return job_fail(j,
		                "input X: it has rows more than once, and which number stands in each is "
		                "not known: not supported");
	Value *v = r->rows ? build1(&j->b, OP_PD_ASSIGN, r->rows, NULL)
	                   : build2(&j->b, OP_PD_GATHER, x, r->at, NULL);
	if (v)
		write_var(j, out, v);
	return v != NULL;
}
