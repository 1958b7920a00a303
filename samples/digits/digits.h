/* Written by pdcc 0.1.0 from digits.pdmodel. Do not edit. */
#ifndef DIGITS_H
#define DIGITS_H
#define DIGITS_H_IS_DIGITS_H

#include "pdrt.h"

#if PDRT_ABI_VERSION != 7
#error "this code goes with version 7 of pdrt.h, which comes with the pdcc that wrote it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes that are chosen at run time; each at least 1, or 0 where it says so. */
typedef struct digits_dims {
	int64_t n; /* may be 0 */
} digits_dims;

typedef struct digits_inputs {
	digits_dims dims;
	const float *image; /* image [n x 1 x 8 x 8] f32 */
} digits_inputs;

typedef struct digits_outputs {
	float *save_infer_model_scale_0_tmp_0; /* save_infer_model/scale_0.tmp_0 [n x 10] f32 */
	int64_t save_infer_model_scale_0_tmp_0_dims[2]; /* set by the run */
} digits_outputs;

/* An instance; its members are private. Several may run at the same time. */
typedef struct digits {
	const unsigned char *weights;
	unsigned char *workspace;
	size_t workspace_size;
	const char *failed; /* the operator at which the last run failed, or NULL */
	bool ready;
} digits;

/* Bytes of workspace that a run with these sizes needs, exactly; SIZE_MAX when they are not
 * possible. */
size_t digits_workspace_size(const digits_dims *dims);

/* `weights` are the 120128 bytes of digits.weights; they must stay as long as the model is used.
 * `workspace` is `size` bytes for this model alone. Both want an alignment of 64 bytes. */
pd_status digits_init(digits *m, const void *weights, size_t n, void *workspace, size_t size);
pd_status digits_run(digits *m, const digits_inputs *in, digits_outputs *out);
PDRT_EXPORT const pd_model_info *digits_info(void);

#ifdef __cplusplus
}
#endif

#elif !defined DIGITS_H_IS_DIGITS_H
#error "another header has the prefix 'digits', too: --prefix gives one of them another"
#endif
