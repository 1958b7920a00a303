// What inference and definition of an operation both need: the windows of convolution and pooling,
// the extents of slices, the paddings of images. Written in ir/infer/infer_*.c, read again by
// ir/define/define_*.c, so that the two cannot disagree.
#ifndef PDCC_GEOMETRY_H
#define PDCC_GEOMETRY_H

#include "ir/build/build.h"
#include "ir/core/core.h"

// A list attribute (ints or dims) as dims; its length, or -1 when absent or too long.
int op_dims(const Op *op, const char *name, const Dim **out, int max);

// As infer_sizes, but elements that are not known become sizes found at run time: inserts a
// loop.bind before op. -1 after a diagnostic.
int infer_sizes_bound(Op *op, const char *attr, const Dim **out, int max);
bool infer_bind_value(Op *op, Value *v); // the same for the elements of an integer tensor
bool infer_bind_operand(Op *op, int i);  // ... of operand i
// The n sizes that operand i holds, where only data tell them, with own[k] in place of a -1 (if it
// is not NULL).
bool infer_own_sizes(Op *op, int i, int n, const Dim *const *own);
// As infer_sizes_bound; then the attribute holds the sizes and the operand that overrode it is
// dropped.
int infer_resolve(Op *op, const char *attr, const Dim **out, int max);
// As infer_resolve for numbers that must be known.
int infer_resolve_ints(Op *op, const char *attr, int64_t *out, int max);
bool infer_resolve_int(Op *op, const char *attr, int64_t *out);

// Whether the attribute data_format puts the channels on the last axis ("NHWC", "NDHWC", "NLC"),
// not on axis 1.
bool channels_last(const Op *op);
int channel_axis(const Op *op, int rank);
// A data_format that says nothing goes: what old programs leave open is as if it were not there.
void format_resolve(Op *op);

// Windows over the spatial axes of an image, as convolution and pooling slide them.
typedef struct Window {
	int n;              // spatial axes: 2 or 3
	int axis[3];        // where they are in input and result
	int channel;        // axis of the channels
	const Dim *size[3]; // of the image
	const Dim *kernel[3];
	const Dim *before[3], *after[3]; // padding
	int64_t stride[3], dilation[3];
	bool adaptive; // pooling: windows share the image out evenly
	bool whole;    // pooling: one window that covers everything
	bool counted;  // pooling: as many windows as a kernel is long
} Window;

// The convolution over n axes, or the transposed one.
enum OpCode conv_operation(int n, bool transposed);
bool window_of_conv(Op *op, Window *w); // convolution, transposed or not
bool window_of_pool(Op *op, Window *w);
// The n values of a list attribute; a list of one stands for all, a missing one for `otherwise`.
bool window_ints(const Op *op, const char *name, int64_t otherwise, int n, int64_t *out);
// How many windows fit on axis i.
const Dim *window_count(Context *c, const Window *w, int i, bool ceil);
// The same, for the type of a result. Of a size that only a run knows, the division does not
// truncate, and the run must not find one for which it would.
const Dim *window_count_checked(Context *c, const Window *w, int i, bool ceil);
// Whether a window may reach over an end of axis i.
bool window_overhangs(const Window *w, int i);

// A strided slice: axis d runs from start[d] in steps of step[d], count[d] times.
typedef struct Extent {
	const Dim *start[MAX_RANK], *count[MAX_RANK];
	int64_t step[MAX_RANK];
	const Dim *stride[MAX_RANK]; // in place of step, at least 1, where only data tell; else NULL
	bool dropped[MAX_RANK];      // axes that the result does not have
	bool single[MAX_RANK];       // one element at a position from data, which must be there
} Extent;

// Starts and ends of slices that only data tell become sizes, from the end where they are negative.
// infer_bounds.c.
bool infer_slice_bounds(Op *op, const int64_t *steps, int nstep);
// Whether the one element of v is surely at least 0, as far as `depth` operations tell; asks block
// arguments (Value.sign_asked).
bool value_never_negative(Value *v, int depth);
bool infer_slice_strides(Op *op, const char *attr); // strides likewise, which must be positive
bool infer_shifts(Op *op, int n, const Dim *const *sizes); // cyclic shifts of n axes of such sizes
bool extent_of_slice(Op *op, Extent *e);                   // slice, strided_slice, set_value
// Which of the `rank` axes of what it slices go away (decrease_axis): x[i], not x[i:i + 1].
bool slice_drops(Op *op, int rank, bool dropped[MAX_RANK]);

// A strided_slice whose strides only data tell: infer_mutable.c, define_mutable.c.
bool slice_is_open(const Op *op);
bool infer_open_slice(Op *op);
bool define_open_slice(struct Builder *b, Op *op, Value **results);

// Paddings of an image, one pair per axis (zeros where it is not padded).
typedef struct Padding {
	const Dim *before[MAX_RANK], *after[MAX_RANK];
} Padding;

bool padding_of_image(Op *op, Padding *p); // pad, pad2d, pad3d

// Interpolation: for each resized axis its sizes, and the scale that the program gave (0: none).
typedef struct Resize {
	int n;
	int axis[3];
	const Dim *in[3], *out[3];
	float scale[3];
	Value *found; // the scales, where only a run tells them; else NULL
} Resize;

bool resize_of_interp(Op *op, Resize *r);
// The scale of axis i as a number of f32, of scales that only a run tells.
Value *resize_scale_found(struct Builder *b, const Resize *r, int i);

// Axes that a reduction runs over, ascending; their number.
int reduced_axes(const Op *op, int rank, int *axes);

#endif
