// What declared kinds of variables may hold, and SELECTED_ROWS: a matrix of which only some rows
// are there, as the gradient of a sparse embedding. Its value here is the whole matrix, zeros in
// the other rows; which rows are there, and in which order, stands beside it (RowSet). Used by
// translate.c, variables.c and steps.c.
#include "frontend/translate/control.h"
#include "ir/build/nest.h"

#include <string.h>

// The rows of one value.
struct RowSet {
	const Value *of;
	Value *at;   // i64 [k]: which row each is
	Value *rows; // [k x width]: each; NULL: `at` has no row twice, and they are those of the matrix
	struct RowSet *next;
};

static const RowSet *rows_of(const Translator *t, const Value *v)
{
	const RowSet *r = t->rows;
	while (r && r->of != v)
		r = r->next;
	return r;
}

static void rows_set(Translator *t, const Value *v, Value *at, Value *rows)
{
	RowSet *r = NEW(t->c->arena, RowSet);
	*r = (RowSet){.of = v, .at = at, .rows = rows, .next = t->rows};
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

// Operators for which rows that are not there are as good as zeros.
static bool is_linear(const Paddle__OpDesc *d)
{
	static const char *const types[] = {"sum",        "scale",           "assign",
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
	const bool array = v->type->kind == TY_ARRAY;
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

// The gradient of a table: a row for each id, in their order.
static void note_lookup(OpJob *j, const Value *out)
{
	const Paddle__OpDesc *d = j->desc;
	const char *dv = slot_var(slot_find(d->n_inputs, d->inputs, "Out@GRAD"), 0);
	Value *at = flat_ids(j, slot_var(slot_find(d->n_inputs, d->inputs, "Ids"), 0));
	Value *rows = at && dv ? read_var(j, "Out@GRAD", dv) : NULL;
	if (!rows || out->type->rank != 2)
		return;
	const Dim *const dims[] = {at->type->dims[0], out->type->dims[1]};
	rows = tensor_reshape(&j->b, rows, 2, dims);
	if (rows)
		rows_set(j->t, out, at, rows);
}

void rows_note(OpJob *j)
{
	const Paddle__OpDesc *d = j->desc;
	for (size_t i = 0; i < d->n_outputs; i++) {
		const char *var = slot_var(d->outputs[i], 0);
		const Binding *b = is_rows(j->t, var) ? scope_find(j->t, var) : NULL;
		if (b && b->value && has_flag(d, "is_sparse"))
			note_lookup(j, b->value);
	}
}

static const RowSet *input_rows(OpJob *j, Value **x, const char **out)
{
	const char *var = slot_var(slot_find(j->desc->n_inputs, j->desc->inputs, "X"), 0);
	*out = slot_var(slot_find(j->desc->n_outputs, j->desc->outputs, "Out"), 0);
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
	Op *u = r->rows ? build_op(&j->b, OP_PD_UNIQUE, 1, (Value *const[]){r->at}, 1, &sorted) : NULL;
	Value *merged = build1(&j->b, OP_PD_ASSIGN, x, NULL);
	if (!merged || (r->rows && !u))
		return false;
	rows_set(j->t, merged, u ? op_result(u, 0) : r->at, NULL);
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
	Value *v = r->rows ? build1(&j->b, OP_PD_ASSIGN, r->rows, NULL)
	                   : build2(&j->b, OP_PD_GATHER, x, r->at, NULL);
	if (v)
		write_var(j, out, v);
	return v != NULL;
}
