// `pdcc verify --expect NAME=ref.npy`: compares what a stage gives with what the model's own
// framework gave, so that what translation may misread is checked against the model's meaning, not
// only against ourselves. Used by cmd_verify.c.
#include "frontend/driver/driver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- what is expected ---------------------------------------------------------------------------

// The column of the fetch that is called so, or that has this number; -1: none.
static int column_find(Op *module, const char *name)
{
	char *end;
	long number = strtol(name, &end, 10);
	for (const Op *op = module_block(module)->first; op; op = op->next) {
		if (op->code != OP_PD_FETCH)
			continue;
		int col = (int)op_int(op, "col", 0);
		if (!strcmp(op_str(op, "name", ""), name) || (!*end && end != name && number == col))
			return col;
	}
	return -1;
}

bool expect_load(Driver *d, Op *module, Expected *list)
{
	for (int i = 0; i < d->options->nexpect; i++) {
		const RunInput *e = &d->options->expect[i];
		list[i] = (Expected){.name = e->name, .col = column_find(module, e->name)};
		if (list[i].col < 0) {
			diag_error(d->ctx->diag, NULL, "--expect %s: the program fetches nothing of this name",
			           e->name);
			return false;
		}
		if (!(list[i].want = npy_read(d->ctx, e->path)))
			return false;
	}
	return true;
}

// ---- comparing ----------------------------------------------------------------------------------

// The distance of neighbouring numbers of type t at v.
static double spacing(DType t, double v)
{
	static const struct {
		DType t;
		int digits, least; // of the significand; exponent of the smallest number
	} formats[] = {{DT_F16, 11, -24}, {DT_BF16, 8, -133}, {DT_F32, 24, -149}, {DT_F64, 53, -1074}};
	int e;
	frexp(v, &e);
	for (size_t i = 0; i < COUNT_OF(formats); i++)
		if (formats[i].t == t)
			return ldexp(1, v != 0 && e - formats[i].digits > formats[i].least
			                    ? e - formats[i].digits
			                    : formats[i].least);
	return 1;
}

typedef struct Worst {
	double error, ulp, excess; // excess: the largest error as a part of what is allowed
	int64_t at;                // of it
} Worst;

// Notes how far apart two numbers are.
static void worst_note(const Driver *d, Worst *w, DType t, int64_t i, double got, double want)
{
	if (got == want || (isnan(got) && isnan(want)))
		return;
	double error = isfinite(got) && isfinite(want) ? fabs(got - want) : INFINITY;
	double allowed = dtype_is_float(t) || dtype_is_complex(t)
	                     ? d->options->atol + d->options->rtol * fabs(want)
	                     : 0;
	double excess = allowed > 0 && isfinite(error) ? error / allowed : INFINITY;
	double ulp = isfinite(error) ? error / spacing(dtype_is_complex(t) ? dtype_part(t) : t, want)
	                             : INFINITY;
	w->error = error > w->error ? error : w->error;
	w->ulp = ulp > w->ulp ? ulp : w->ulp;
	if (excess > w->excess) {
		w->excess = excess;
		w->at = i;
	}
}

static bool shape_agrees(Driver *d, const Expected *e, const Tensor *got, const char *stage)
{
	const Tensor *want = e->want;
	const char *why = !got                        ? "is missing"
	                  : got->dtype != want->dtype ? "has another element type"
	                  : got->rank != want->rank ||
	                          memcmp(got->dims, want->dims, (size_t)got->rank * sizeof *got->dims)
	                      ? "has another shape"
	                      : NULL;
	if (!why)
		return true;
	const bool types = got && got->dtype != want->dtype;
	diag_error(d->ctx->diag, NULL, "%s: fetch '%s' %s%s%s%s%s", stage, e->name, why,
	           types ? ": " : "", types ? dtype_name(got->dtype) : "", types ? ", expected " : "",
	           types ? dtype_name(want->dtype) : "");
	return false;
}

static double imaginary(const Tensor *t, int64_t i)
{
	return t->dtype == DT_C64 ? (double)((const float *)t->data)[2 * i + 1]
	                          : ((const double *)t->data)[2 * i + 1];
}

static bool fetch_is_expected(Driver *d, const Expected *e, const Tensor *got, const char *stage)
{
	Worst w = {0};
	if (!shape_agrees(d, e, got, stage))
		return false;
	const DType t = e->want->dtype;
	const bool wide = dtype_is_complex(t), whole = !wide && !dtype_is_float(t);
	for (int64_t i = 0; i < tensor_numel(got); i++) {
		if (whole && tensor_get_i(got, i) != tensor_get_i(e->want, i))
			worst_note(d, &w, t, i, INFINITY, 0);
		else if (!whole)
			worst_note(d, &w, t, i, tensor_get_f(got, i), tensor_get_f(e->want, i));
		if (wide)
			worst_note(d, &w, t, i, imaginary(got, i), imaginary(e->want, i));
	}
	if (w.excess > 1 && whole)
		diag_error(d->ctx->diag, NULL, "%s: fetch '%s': element %lld is %lld, expected %lld", stage,
		           e->name, (long long)w.at, (long long)tensor_get_i(got, w.at),
		           (long long)tensor_get_i(e->want, w.at));
	else if (w.excess > 1)
		diag_error(
			d->ctx->diag, NULL,
			"%s: fetch '%s': element %lld is %.9g, expected %.9g (largest error %.3g, %.3g ulp)",
			stage, e->name, (long long)w.at, tensor_get_f(got, w.at), tensor_get_f(e->want, w.at),
			w.error, w.ulp);
	else
		printf("%s: fetch '%s': as expected, largest error %.3g, %.3g ulp\n", stage, e->name,
		       w.error, w.ulp);
	return w.excess <= 1;
}

bool expect_check(Driver *d, const Expected *list, const char *stage, ExpectedFetch *fetch,
                  void *arg)
{
	bool ok = true;
	for (int i = 0; i < d->options->nexpect; i++)
		ok &= fetch_is_expected(d, &list[i], fetch(d, list[i].col, arg), stage);
	return ok;
}
