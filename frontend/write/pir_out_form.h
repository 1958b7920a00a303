// One row of the table's `pir:` maps for one operation: pir_out_fit.c says whether it will do,
// pir_out_op.c writes it.
#ifndef PDCC_FRONTEND_WRITE_PIR_OUT_FORM_H
#define PDCC_FRONTEND_WRITE_PIR_OUT_FORM_H

#include "frontend/write/pir_out.h"

// One way to write an operation, while it is tried.
typedef struct Form {
	PirWriter *w;
	const Op *op;
	const PirMap *m;
	const PirDeclared *d;
	bool *attrs, *operands; // which of ours have found their place
	const char *why;        // they have not
} Form;

bool form_fits(Form *f, PirWriter *w, const Op *op, const PirMap *m);
// The operand that holds what attribute `a` would say; NULL: none.
const Value *form_overriding(const Op *op, const AttrInfo *a, int *index);
// All axes are the empty list of axes.
const Attr *form_reduced_axes(Form *f, const AttrInfo *a);
// Which of our results is theirs at position i; -1: none.
int form_result(const Form *f, int i);
// What attribute i of Paddle's holds; NULL with *known: nothing need be said.
const Attr *form_attr(Form *f, int i, bool *known);

#endif
