// What the files of the layout pass share. Private to lower/kernels/layout*.c.
//
// The pass walks the program once. A tensor [N x C x H x W] may get a second form, blocked [N x
// ceil(C/b) x H x W x b]; operations that can run on that form are built anew on it and the old
// ones kept until the end, when those that still have readers get a kernel.unblock. For CUDA only
// images for tensor cores have that form, of eight channels, and nests make and read it.
#ifndef PDCC_LAYOUT_H
#define PDCC_LAYOUT_H

#include "ir/build/build.h"
#include "lower/target/target.h"

typedef struct Layout {
	Context *ctx;
	const Target *target;
	bool allow_tf32, cuda_libs;
	int64_t few;       // b of images with no more channels; 0: as of others
	ValueMap *blocked; // plain value -> its blocked form
	ValueMap *last;    // plain value -> its form [N x H x W x C]
	Op **old;          // operations that were rebuilt in blocked form, in order
	int nold, cold;
} Layout;

// An unblocked image with more channels is blocked before a convolution, or its gradient, reads it.
enum { MAX_PLAIN_CHANNELS = 12 };

// ---- layout_form.c ------------------------------------------------------------------------------

bool format_is_nchw(const Op *op); // its data_format
// Whether a tensor can have a blocked form: [N x C x H x W] with C known.
bool type_blockable(const Type *t);
const Type *type_blocked(const Layout *l, const Type *t);
// With blocks of b.
const Type *type_in_blocks(Context *c, const Type *t, int64_t b);
// Whether convolutions of this type run on blocked images: for CUDA those on tensor cores, but not
// beside cuDNN, which wants plain ones.
bool layout_has_blocks(const Layout *l, DType t);
int64_t type_channels(const Type *t); // of a blockable type
// b of an image with so many channels.
int64_t layout_lanes(const Layout *l, int64_t channels);
// The map again, on operands that `form` gives of those that are there, for a result of `type`;
// NULL when one has none, or there are too many.
typedef Value *OperandForm(Layout *l, Op *op, Value *v, const Type *out);
Op *layout_rebuild(Layout *l, Op *op, const Type *type, OperandForm *form);
// The blocked form, NULL when v has none yet.
Value *blocked_find(const Layout *l, Value *v);
// The blocked form, made by kernel.block when there is none.
Value *blocked_get(Layout *l, Value *v);
// For CUDA: nests that change the layout, `type` being the other.
Value *block_by_nest(Builder *b, Value *v, const Type *type);
Value *unblock_by_nest(Builder *b, Value *v, const Type *type);
// Declares `form` the blocked form of op's result; op goes at the end of the pass.
void blocked_set(Layout *l, Op *op, Value *form);
// Has an operation that nobody needs once its readers are rebuilt erased at the end.
void old_add(Layout *l, Op *op);
// Erases them, and brings those back into plain layout that somebody still reads. Backwards: by the
// time an operation is looked at, its rebuilt readers are gone, and who is left wants it plain.
void old_drop(Layout *l);
// A new operation of op's kind and attributes in front of it, with other operands and result type.
Op *op_rebuild(Op *op, const Type *type, int noperand, Value *const *operands);
// A kernel with `nregion` regions in front of `op`.
Op *layout_kernel(Op *op, enum OpCode code, const Type *type, int noperand, Value *const *operands);
// Fills an epilogue region: `acc` goes out as it came in.
void epilogue_identity(Op *kernel, Region *r);
// A list attribute (ints, or dims that are all known) as numbers; its length, -1 when absent, too
// long or symbolic.
int op_numbers(const Op *op, const char *name, int64_t *out, int max);
const Attr *attr_numbers(Context *c, int n, const int64_t *v); // the same as a dims attribute
// x in another shape with the same elements, before the builder's place; x itself when it has it
// already.
Value *build_view(Builder *b, Value *x, int rank, const Dim *const *dims);
// For CUDA: parts of the depth, f32, are products of their own along axis 0, which a sum adds up,
// always in the same order.
Value *build_parts_sum(Builder *b, Value *parts, DType t);

// ---- layout_last.c ------------------------------------------------------------------------------

// The form [N x H x W x C] of an image, NULL when there is none; a view may be built before
// `before`.
Value *last_find(Layout *l, Op *before, Value *v);
// As blocked_set.
void last_set(Layout *l, Op *op, Value *form);
// From that form to the plain one, and to a blocked one of this type (NULL: lanes would be empty).
Value *last_to_plain(Layout *l, Builder *b, Value *v);
Value *last_to_blocks(Layout *l, Builder *b, Value *form, const Type *type);

// ---- layout_conv.c ------------------------------------------------------------------------------

// A convolution, with everything that the kernel needs to know as numbers.
typedef struct Conv {
	Op *op; // where it comes from: location, name, place
	Value *x, *filter;
	int64_t oc, ic, kh, kw; // of the filter: ic per group
	int64_t channels;       // of the input
	int64_t strides[2], dilations[2];
	int64_t paddings[4]; // top, left, bottom, right
} Conv;

struct Window;
// kernel.conv for a convolution of one group whose result is `out` (plain); gives the blocked
// result.
Value *conv_dense(Layout *l, const Conv *cv, const Type *out);
// The same for several groups, of any width.
Value *conv_groups(Layout *l, const Conv *cv, const Type *out, int64_t groups);
// kernel.depthwise, of groups that share blocks or of single channels: with more blocks in the
// result, which are those of x, than in x, these are repeated.
Value *conv_narrow(Layout *l, const Conv *cv, const Type *out);
// The convolution of images [N x C x H x W] by the last two axes of a window; paddings are
// constant.
Value *build_image_conv(Builder *b, Value *x, Value *filter, const struct Window *w,
                        int64_t groups);
// The same transposed, of one group; the result's height and width.
Value *build_image_transposed(Builder *b, Value *x, Value *filter, const struct Window *w,
                              const Dim *const *size);

// Reads strides, dilations and paddings; false where only a run tells them.
bool conv_window(Conv *cv);
void conv_set_geometry(Op *kernel, const Conv *cv);
// How many vectors of b output channels a register tile takes: full tiles as far as possible, all
// alike.
int64_t conv_tile_vectors(const Layout *l, int64_t oc, int64_t b);

// ---- layout_blocked.c ---------------------------------------------------------------------------

// Pooling over windows of many pixels: channels (axis 1, known) as lanes are worth the way to
// blocks and back.
bool pool_wants_blocks(const Layout *l, Op *op);

// ---- layout_volume.c ----------------------------------------------------------------------------

// Convolutions of volumes that are kernels on images whose rows are those of all slices.
bool volume_is_depthwise(const Op *op);
bool volume_is_pointwise(const struct Window *w, const Type *filter);

// ---- layout_few.c -------------------------------------------------------------------------------

// The plain result of a convolution of one group with few output channels, whose filter is
// constant; NULL: it is none, or its channels as lanes are as good.
Value *conv_few(Layout *l, const Conv *cv);

// ---- layout_deconv.c ----------------------------------------------------------------------------

// One axis of a transposed convolution of a constant filter: results that have the same position
// modulo the stride, a phase of it, read the same taps.
typedef struct Phase {
	int64_t stride, dilation, before;
	int64_t kernel;   // from the first tap to the last
	int64_t taps;     // of each phase: ceil(kernel / stride)
	int64_t first;    // q of the first result
	int64_t pad[2];   // of the small convolution
	const Dim *count; // its results
} Phase;

// False: only a run tells, or there is no such convolution.
bool phase_read(Context *c, const struct Window *w, int i, const Dim *out, Phase *p);
// The tap of the filter that tap `at` of the small convolution is, for a phase; -1: none, a zero.
int64_t phase_tap(const Phase *p, int64_t phase, int64_t at);
// The phase and the position in it of position `at` of the result.
Value *phase_split(Builder *b, const Phase *p, Value *at, Value **rest);

// ---- layout_image.c -----------------------------------------------------------------------------

// What a convolution is for CUDA: a product on plain images or on blocked ones, or, on plain
// images, sums of all channels of a group in each thread.
typedef enum ImageForm { IMAGE_NONE, IMAGE_PLAIN, IMAGE_NARROW, IMAGE_BLOCKED } ImageForm;
ImageForm conv_image_form(const Layout *l, const Conv *cv, int64_t groups);
// The kernel whose result is `out`, or that in blocked form.
Value *conv_image(Layout *l, const Conv *cv, ImageForm form, const Type *out, Value *x,
                  int64_t groups);

// ---- library.c ----------------------------------------------------------------------------------

// Whether cuBLASLt can do a product of that depth, and cuDNN a convolution whose result is `out`.
bool library_takes_product(Context *c, const Type *a, const Type *b, const Type *out,
                           const Dim *depth);
bool library_takes_conv(Context *c, const Conv *cv, const Type *x, const Type *out);

// ---- handlers: true when they rebuilt or replaced `op`, or left a blocked form for it -----------

bool layout_conv(Layout *l, Op *op);            // layout_conv.c
bool layout_conv_transpose(Layout *l, Op *op);  // layout_deconv.c
bool layout_volume(Layout *l, Op *op);          // layout_volume.c
bool layout_matmul(Layout *l, Op *op);          // layout_gemm.c
bool layout_image_conv(Layout *l, Op *op);      // layout_image.c
bool layout_filter_gradient(Layout *l, Op *op); // layout_gradient.c
bool layout_pool_gradient(Layout *l, Op *op);   // layout_gradient.c
bool layout_integer(Layout *l, Op *op);         // layout_integer.c
bool layout_map(Layout *l, Op *op);             // layout_blocked.c: elementwise
bool layout_space(Layout *l,
                  Op *op); // layout_blocked.c: pooling, interpolation, padding, reductions
bool layout_turn(Layout *l, Op *op);     // layout_last.c: channels behind the pixels
bool last_map(Layout *l, Op *op);        // layout_last.c: elementwise on such
bool layout_flatten(Layout *l, Op *op);  // layout_blocked.c: views of images of one pixel
bool layout_channels(Layout *l, Op *op); // layout_channels.c: concat and slice along channels

#endif
