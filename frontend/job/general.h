// The general rule by which operators are translated, and the steps of it that others may call.
// Private to frontend/translate.
#ifndef PDCC_FRONTEND_GENERAL_H
#define PDCC_FRONTEND_GENERAL_H

#include "frontend/job/job.h"

bool general_inputs(OpJob *j);
// As general_inputs, of a gradient operator, which is given more of its forward operator than it
// needs.
bool gradient_inputs(OpJob *j);
bool general_attribute(OpJob *j, const AttrInfo *a, const Paddle__OpAttr *legacy);
bool general_missing(OpJob *j, const AttrInfo *a);
bool general_create(OpJob *j);
bool general_record(OpJob *j);
// Variables that programs read and that are no results of the operation (besides.c).
bool besides_record(OpJob *j);
// All of it, whatever the operator's hook says of the whole.
bool general_translate(OpJob *j);
// Every attribute is read, known to be without effect, or refused.
bool check_attributes(OpJob *j, const LegacyMap *map);
// A gradient operator repeats the attributes of its forward operator `of` (NULL: it was not found),
// whose values the gradient is of: another value, or an attribute that nobody knows, would be
// passed over. False after a diagnostic.
bool gradient_attributes(OpJob *j, const Paddle__OpDesc *of);

// ---- job.c --------------------------------------------------------------------------------------

// Whether slot stands in the list of alternatives `A|B`.
bool slot_in(const char *alternatives, const char *slot);
// Walks `A|B`: copies the next alternative into buf. False at the end.
bool next_slot(const char **at, char *buf, size_t size);
// The slot of result i; NULL: the operator has none.
const Paddle__OpSlot *output_slot(const OpJob *j, int result);

#endif
