// The text form of the IR: printing it, and reading it back to the same bytes. Leaves a module that
// nobody has verified, or diagnostics with line and column. Uses ir/core.
#ifndef PDCC_IR_TEXT_TEXT_H
#define PDCC_IR_TEXT_TEXT_H

#include "ir/core/core.h"

void ir_print(Text *t, const Op *op); // module or any operation
// Reads a module from text made by ir_print (or by hand). NULL after diagnostics with line and
// column.
Op *ir_parse(Context *c, const char *file, const char *text, size_t n);
// One attribute from its text (attr_print's form): defaults in the table, `set:` of legacy
// mappings. Integers are taken where `kind` wants floats or dims. NULL after a diagnostic.
const Attr *attr_parse(Context *c, AttrKind kind, const char *text);

#endif
