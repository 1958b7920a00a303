// What the emitters of tuned kernels (codegen/tuned) share: see region.c.
#ifndef PDCC_CODEGEN_KERNEL_TILE_H
#define PDCC_CODEGEN_KERNEL_TILE_H

#include "codegen/nest/nest.h"

// Helpers that every tile function needs: macros, and vectors of f32, `vf`.
bool tile_prelude(KernelFunc *k);
// The same with vectors of f32 or f64, and what they are called: `vf`, `vd`.
bool tile_vectors(KernelFunc *k, DType t);
// The same with vectors of `lanes` f32, an image's block; what they are called (`vf`, or `vf8` of
// images of few channels), NULL after a diagnostic.
const char *tile_vectors_of(KernelFunc *k, int lanes);
// What names say of blocks of few channels: `word` and how many lanes, nothing of full vectors.
const char *tile_few(const KernelFunc *k, const char *word, int64_t lanes);
// Only what loads and stores them, of any element that has such a name (else NULL).
bool tile_moves(KernelFunc *k, DType t);
const char *tile_vector_name(DType t);
// vf_turn (vf8_turn), which makes columns of the rows of a square of vectors of so many lanes.
// turn.c.
bool tile_turn(KernelFunc *k, const char *vector, int lanes);
// Rows (or pixels) of a tile that is nv vectors wide, when the target's tile is `height` x `width`.
int tile_height(int height, int width, int nv);
// How many sums of a tile run side by side: eight vectors or more hide the latency of an addition.
int tile_split(int height, int nv);
// Where the tile that begins at `from` ends, over `end` rows or pixels in tiles of at most
// `height`: a C expression. Tiles are all alike where the count is known and can be divided so;
// else a helper is emitted.
const char *tile_end(KernelFunc *k, const char *from, const char *name, const Dim *end, int height);
// The same up to what the C expression `end` says.
const char *tile_end_within(KernelFunc *k, const char *from, const char *end, int64_t height);
// Where tile number `tile` of those begins, and how many there are.
const char *tile_begin(KernelFunc *k, const char *tile, const char *name, const Dim *end,
                       int height);
const Dim *tile_count(KernelFunc *k, const Dim *end, int height);
// The lines of `text`, a tab deeper.
void tile_indent(Text *out, const char *text);
// The loop of a function that threads share over its range of units: `calls`, once for each run of
// up to `inner` units, knows which run it is (`unit`), and which of its units are meant, [from,
// until).
const char *tile_share(KernelFunc *k, const char *inner, const char *calls);
// A number as text.
const char *tile_int(KernelFunc *k, int64_t v);
// The label of `n` among the numbers up to `most` that a switch is over: the last one takes what is
// left, so that analysers see that one is taken.
const char *tile_case(KernelFunc *k, int n, int most);
// The product of sizes as C, `a * b * c`, factors that are 1 left out; "1" when none is left.
const char *tile_product(KernelFunc *k, int n, const Dim *const *dims);
// Position `i` of the row-major position `linear` over dims[0..n), as a C expression.
const char *tile_position(KernelFunc *k, const char *linear, int n, const Dim *const *dims, int i);
// The same as arguments `first` to `first + n` of a region, for region_text: those that the region
// only ever reads side by side are one position, which its last one has; the others are NULL.
void tile_positions(KernelFunc *k, const Region *r, const char *linear, int first, int n,
                    const Dim *const *dims, const char **args);
// "out, a, b, dim_n": the function's parameters as they stand now, as arguments for a function of
// its own.
const char *tile_arguments(KernelFunc *k);
// The head of a function without a result, with its brace; of a loop over `count` positions, each
// of which CUDA gives a thread.
const char *tile_function_head(const KernelFunc *k);
const char *tile_each(KernelFunc *k, const char *name, const char *count);
// Statements that count as a use of each size among the parameters: what is only passed on must not
// warn.
const char *tile_sizes(KernelFunc *k);
// `head` (a for or if statement, or "") around a call of KERNEL_FN + suffix with `first` arguments
// and the function's own ones; a status that the call may give is handed on.
const char *tile_pass_on(KernelFunc *k, const char *head, const char *suffix, const char *first);
// What a function returns, and its last statement, once all its regions are printed.
const char *tile_returns(const KernelFunc *k);
const char *tile_done(const KernelFunc *k);
// Whether the region yields its first argument and nothing else.
bool region_is_identity(const Region *r);
// Whether anything in the region reads its argument i.
bool region_uses(const Region *r, int i);
// The statements of a region as text for a hole of a template, and the C expression it yields; NULL
// after a diagnostic.
const char *region_text(KernelFunc *k, const Region *r, const char *const *args,
                        const char **value);
const char *region_split_text(KernelFunc *k, const Region *r, const char *const *args,
                              const IndexSplit *split, const char **value);

// `t`, or f32, in all tensor operands of k->op; a diagnostic otherwise.
bool tile_check_elements(KernelFunc *k, DType t);
bool tile_check_f32(KernelFunc *k);
// `fits`, after a diagnostic where it is false: what an emitter could not read of its operands.
bool tile_check_layout(KernelFunc *k, bool fits);

#endif
