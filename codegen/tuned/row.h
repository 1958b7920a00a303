// What softmax.c and norm.c share: kernels that take a row at a time. See
// row.c.
#ifndef PDCC_CODEGEN_TUNED_ROW_H
#define PDCC_CODEGEN_TUNED_ROW_H

#include "codegen/nest/region.h"

// The texts that both templates have in common.
typedef struct RowTexts {
	const char *rows;               // "rows = R, ", where their count is needed
	const char *first, *end;        // which rows
	const char *columns;            // how many
	const char *row;                // where row r is kept: the result itself, or a buffer
	const char *buffer;             // that buffer's declaration, or ""
	const char *each_in, *each_out; // the heads of the loops over columns
	const char *input, *value;      // statements that evaluate element j, and it
	bool there; // rows lie in memory as they are: `value` is the first element of row r
	const char *epilogue, *store;
} RowTexts;

// Rows over the last `axes` axes. `strips`: a loop over columns may be cut into strips, where that
// saves divisions. False after a diagnostic.
bool row_texts(KernelFunc *k, int axes, bool strips, RowTexts *t);
// What the input region yields, evaluated into `row` where it is not there already; if it is, that
// place is `from`. `written`: `row` is written to in any case.
const char *row_fill(KernelFunc *k, const RowTexts *t, bool written);
// Which of both is read.
const char *row_source(const RowTexts *t);
// The keys of these texts, and of what the function returns; returns how many there are.
enum { ROW_KEYS = 9 };
int row_keys(KernelFunc *k, const RowTexts *t, TemplateKey *keys);
// A reduction over a row, as a function of the generated code.
typedef enum RowSum { ROW_MAX, ROW_SUM, ROW_SPREAD } RowSum;
bool row_helper(KernelFunc *k, RowSum what);
// The array `lane` of so many folded into its first by halves, each loop with its length known.
const char *row_halves(KernelFunc *k, int width, RowSum what);

#endif
