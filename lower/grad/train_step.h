// What the files of train() share.
#ifndef PDCC_LOWER_GRAD_TRAIN_STEP_H
#define PDCC_LOWER_GRAD_TRAIN_STEP_H

#include "ir/build/nest.h"
#include "ir/gradient/gradient.h"
#include "lower/grad/train.h"

// A parameter that the step changes.
typedef struct Trainable {
	const char *name;
	Value *value; // what it holds when the step begins
	Value *grad;  // NULL: the loss does not hang on it
} Trainable;

// What a parameter is to hold after the step.
typedef struct Stored {
	const char *name;
	Value *value;
} Stored;

typedef struct Train {
	Context *c;
	Op *module;
	const Recipe *recipe;
	const DeriveHow *how;
	int n;
	Trainable *params;
	DType dtype; // of all of them
	Value *step; // train_steps(), once it is asked for
	int nstored, cstored;
	Stored *stored;
} Train;

// A diagnostic at a line of the recipe; false.
bool train_fail(const Train *t, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);
// At an operation of the program; false.
bool train_fail_at(const Op *op, const char *fmt, ...) PRINTF_LIKE(2, 3);
// The parameter behind a value; NULL: it is none.
const char *parameter_name(const Value *v);
// Whether a pattern of the list is the name.
bool names_match(const RecipeNames *list, const char *name);
// A builder at the end of the module, for what is made of `what` (a parameter, or NULL).
Builder train_builder(const Train *t, const char *type, const char *what);
// What a parameter is to hold; what was said before about it is forgotten.
void train_store(Train *t, const char *name, Value *v);
// What it holds so far: what was stored last, else `before`.
Value *train_stored(const Train *t, const char *name, Value *before);
// A new parameter that runs change; all its elements begin as `begin`. NULL after a diagnostic.
Value *train_state(const Train *t, const char *name, const Type *type, double begin);
// One number, a tensor of rank 0.
Value *train_number(const Train *t, const char *name, DType dtype, double begin);
// How many steps were done before this one. NULL after a diagnostic.
Value *train_steps(Train *t);

// train_forms.c: what stands in the program as it is at inference becomes what it is in training.
bool train_forms(Train *t);
// train_dropout.c: all dropouts of the module as the recipe wants them.
bool train_dropouts(Train *t);
// train_loss.c: the loss, one element, and fetches of it and of the accuracy.
Op *train_loss(Train *t); // the fetch; NULL after a diagnostic
// train_update.c: the learning rate, clipping, the optimizer, and fetches of what they compute.
bool train_update(Train *t);

#endif
