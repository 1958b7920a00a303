// Steps of the translation that steps.c has in its table, and inputs and outputs. Private to
// frontend/translate.
#ifndef PDCC_FRONTEND_STEPS_H
#define PDCC_FRONTEND_STEPS_H

#include "frontend/job/job.h"

// One operator by the entry of this legacy type.
bool translate_as(OpJob *j, const char *type);

OpStep assign_create, assign_record;
OpStep share_record, coalesce_record; // shares.c

// ---- elementwise.c -----------------------------------------------------------------------------
OpStep elementwise_inputs, of_whole_inputs, angle_inputs;
OpStep keep_nan_create, equal_create, equal_sizes_create, legacy_divide_create;
OpStep check_numerics_create;

// ---- optimizers.c -------------------------------------------------------------------------------
OpStep optimizer_inputs, optimizer_create;
OpStep master_inputs, master_record; // of those that have MasterParam
OpStep merged_translate;             // merged_momentum, merged_adam

// ---- quantised.c --------------------------------------------------------------------------------
OpStep quantize_translate, moving_average_translate, quantize_training_translate;

// ---- lod_beam.c: beam search --------------------------------------------------------------------
OpStep beam_search_inputs, beam_search_record, beam_search_decode_translate, gather_tree_translate;

// ---- lod_ops.c: operators of sequences ----------------------------------------------------------
OpStep sequence_expand_create, batch_order_record, lod_reset_translate;

// ---- lod_ops.c: rank tables, arrays of steps ----------------------------------------------------
OpStep lod_rank_table_translate, lod_tensor_to_array_translate, array_to_lod_tensor_translate,
	split_lod_tensor_create;

// ---- feeds.c: inputs and outputs ------------------------------------------------------------
bool feed_translate(OpJob *j);                            // a feed operator
Value *feed_implicit(OpJob *j, const Paddle__VarDesc *v); // NULL after a diagnostic
bool data_translate(OpJob *j);                            // an input, as Paddle 3 says it
// An output that is called `name`.
bool fetch_translate(OpJob *j, const char *var, const char *name, int64_t col);
bool check_pins(Translator *t);

#endif
