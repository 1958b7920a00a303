// Sequences of rows, as LoD has them: sequence i is the rows from offset i to offset i + 1; types
// and meaning of the operators on them. Leaves nests, and operators one step simpler; offsets come
// from data, so every use of them is checked. Uses ir/build, ir/infer and ir/define.
#ifndef PDCC_SEQUENCE_H
#define PDCC_SEQUENCE_H

#include "ir/build/build.h"
#include "ir/infer/infer.h"
#include "ir/build/nest.h"

// How many sequences these offsets are of.
const Dim *sequence_count(Context *c, const Value *lod);
// Where sequence i begins, and how many rows it has (at least 0). `rows`: of the tensor that they
// are rows of.
Value *sequence_start(Builder *b, Value *lod, Value *i, const Dim *rows);
Value *sequence_length(Builder *b, Value *lod, Value *i, const Dim *rows);
// The same where `lengths` may say it: data, of at most `rows`; NULL: `lod` does.
Value *sequence_length_or(Builder *b, Value *lengths, Value *lod, Value *i, const Dim *rows);
// The sequence that a row belongs to.
Value *sequence_of_row(Builder *b, Value *lod, Value *row);
// A nest over one position gives the elements of a vector of i64: the offsets of sequences of these
// lengths. `length` makes the length of sequence i.
typedef Value *SequenceLength(Builder *b, Value *i, void *arg);
Value *offsets_of_lengths(Builder *b, const Dim *count, SequenceLength *length, void *arg);
// The offsets (i64) of parts of these lengths, one behind the other.
Value *offsets_of_counts(Builder *b, Value *counts);
// The length of the longest sequence, one i64 without axes.
Value *longest_sequence(Builder *b, Value *lod, const Dim *rows);
// The same of sequences of these lengths (a list), with one axis.
Value *longest_of_lengths(Builder *b, Value *lengths);
// Binds the size `rows` to the last of these offsets.
bool bind_rows(Builder *b, Value *lod, const Dim *rows);

// Stands for the logarithm of 0, so that differences of two of them are numbers.
#define LOG_ZERO (-1e30)
// In a nest: the logarithm of the sum of what these are the logarithms of.
Value *log_sum_exp(Builder *b, Value *const *x, int n);

#endif
