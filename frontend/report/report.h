// Views of a model that need nobody but the model: a module as a graphviz picture, what stands in
// the .yml beside a program. Leaves text. Uses frontend/read and ir/core.
#ifndef PDCC_FRONTEND_REPORT_REPORT_H
#define PDCC_FRONTEND_REPORT_REPORT_H

#include "codegen/func/options.h"
#include "frontend/read/config.h"

// dot.c
void emit_dot(Text *t, const Op *module);

// config.c: what the .yml says, as text, JSON, and part of a page.
void config_print(Text *t, const ModelConfig *m);
void config_json(Text *t, const ModelConfig *m); // one member, with a comma behind it
void config_html(Text *t, const ModelConfig *m);

// align.c: which items of two sequences are the same.
// match[i] becomes the item of b that item i of a is, or -1: in order, and no two have one. Items
// are the same when their pointers are (uniqued text).
void sequences_align(Arena *scratch, int n, const void *const *a, int m, const void *const *b,
                     int *match);
// Two texts as `diff -u` shows them, with three lines around each change. False, and nothing
// written, when they are equal.
bool text_unified(Text *t, Context *c, const char *a_name, const char *a, const char *b_name,
                  const char *b);

// compare.c: what two modules, each of its own context, differ in.
typedef struct Detail {
	const char *what, *from, *to; // "axis", "1", "2"
} Detail;

typedef struct Difference {
	char sign;        // '-': only the first has it, '+': only the second, '~': it has changed
	const char *name; // of a port, a parameter or the operator's type; with a sign -: its type, too
	const char *type; // of a port or parameter that only one has; else NULL
	const Loc *from, *to;          // of operators; else NULL
	const char *from_var, *to_var; // what they make, where that has a name; else NULL
	int ndetail, cap;
	Detail *details;
} Difference;

typedef struct Differences {
	int n, cap;
	Difference *list; // in the order of the second, what is gone where it was
} Differences;

typedef struct Comparison {
	Differences inputs, outputs, parameters, operators;
} Comparison;

// Names of variables inside do not count. The modules are as they were read, before any pass.
void modules_compare(Arena *arena, Op *a, Op *b, Comparison *result);

// quote.c
void html_text(Text *t, const char *s);

// ---- panes.c: of the page of `pdcc info --html` -------------------------------------------------

// Operators of the model, in their order.
typedef struct SourceOps {
	const Loc **locs;
	int n, cap;
} SourceOps;

// Of op and all that is in it, before it is lowered; s begins zeroed.
void source_ops_collect(Context *c, const Op *op, SourceOps *s);
// ` data-ops='0.3 0.4'`: block and number of the operators that op stands for; nothing for none.
void ops_attribute_print(Text *t, const CodegenResult *code, const Op *op);
void panes_print(Text *t, const CodegenResult *code, const SourceOps *source);

// measured.c: times of steps, as `pdcc bench --profile --json` printed them.
typedef struct MeasuredStep MeasuredStep;
typedef struct Measured {
	double us; // of a run
	int n;
	MeasuredStep *steps;
} Measured;

// False after a diagnostic: no such file, another form, or no step that the lowered module has.
bool measured_read(Context *c, const char *path, const Op *module, Measured *m);
// Microseconds of an operation in a run; -1: not measured.
double measured_us(const Measured *m, const Op *op);

#endif
