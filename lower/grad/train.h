// Training steps: what `--train RECIPE` makes of an inference program. Leaves one module that
// computes the loss, its gradients and the update, and stores parameters and the optimizer's state;
// its fetches are the loss and the metrics. Uses what differentiate() uses.
#ifndef PDCC_LOWER_GRAD_TRAIN_H
#define PDCC_LOWER_GRAD_TRAIN_H

#include "lower/grad/grad.h"

// A name in the recipe, and where it stands. NULL text: it is not there.
typedef struct RecipeName {
	const char *text;
	int line;
} RecipeName;

typedef struct RecipeNames {
	int n;
	RecipeName *list; // patterns: * and ? as in file names
} RecipeNames;

typedef enum LossKind {
	LOSS_CROSS_ENTROPY, // of `of` and class numbers, or a distribution (soft_label)
	LOSS_MSE,           // the mean of (of - label)^2
	LOSS_FETCH,         // `of` itself
	LOSS_COUNT
} LossKind;

typedef enum LossReduce { LOSS_UNREDUCED, LOSS_MEAN, LOSS_SUM } LossReduce;

typedef enum OptimizerKind {
	OPTIMIZER_SGD,
	OPTIMIZER_MOMENTUM,
	OPTIMIZER_ADAM,
	OPTIMIZER_ADAMW,
	OPTIMIZER_COUNT
} OptimizerKind;
extern const char *const optimizer_words[]; // as a recipe says it; ends with NULL

// Of steps done so far, t, behind the warm-up:
typedef enum ScheduleKind {
	SCHEDULE_CONSTANT,
	SCHEDULE_STEP,   // base * factor^floor(t / steps)
	SCHEDULE_COSINE, // half a wave from base to `end` in `steps` steps, then `end`
	SCHEDULE_COUNT
} ScheduleKind;

typedef enum Metric {
	METRIC_LOSS,
	METRIC_ACCURACY,      // part of rows whose largest class is the label's
	METRIC_LEARNING_RATE, // of this step
	METRIC_GRAD_NORM,     // before it is clipped
	METRIC_COUNT
} Metric;

typedef enum DropoutHow {
	DROPOUT_UNSAID,
	DROPOUT_OFF,  // as at inference
	DROPOUT_TRAIN // other elements in each step, decided by the state `train.seed` and train.step
} DropoutHow;

// Numbers have been checked by whoever reads the file (frontend/recipe/recipe.c).
typedef struct Recipe {
	const char *path;
	int loss_kind;        // LossKind
	RecipeName of, label; // a fetch (NULL: the only one); an input, which is added if there is none
	int from;             // cross_entropy: `of` holds logits (0) or probabilities (1)
	bool soft_label;      // cross_entropy: labels are distributions
	double label_smoothing;
	int reduction; // LossReduce
	int optimizer; // OptimizerKind
	bool nesterov;
	double momentum, beta1, beta2, epsilon, weight_decay;
	RecipeNames no_decay; // parameters without weight decay
	RecipeNames freeze;   // parameters that stay as they are
	int schedule;         // ScheduleKind
	double learning_rate; // base
	double factor, end;
	int64_t steps;
	int64_t warmup; // steps in which the rate grows evenly from warmup_from to base
	double warmup_from;
	double clip; // the largest norm of all gradients together; 0: any
	bool metrics[METRIC_COUNT];
	int batch_norm; // 0: of the batch, and learning; 1: as at inference
	int dropout;    // DropoutHow
	int64_t seed;   // what train.seed begins as
} Recipe;

// Makes the module a training step. State that is new is called `train.step` (i64, steps done),
// `train.learning_rate` (the base rate, which the program around it may change), `train.seed` where
// dropouts train, and after the parameter that it belongs to, `W.velocity`. False after a
// diagnostic, which names the recipe's line where it is the recipe's fault.
bool train(Op *module, const Recipe *r, const DeriveHow *how);

#endif
