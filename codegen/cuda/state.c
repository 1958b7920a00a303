// What a run of CUDA keeps on the device in front of the weights: what kernels tell of it
// (pd_state), sizes that it finds, the numbers of operations that may fail. Called by all that
// print calls.
#include "codegen/cuda/cuda.h"
#include "ir/base/vec.h"

#include <string.h>

// ---- words --------------------------------------------------------------------------------------

int cuda_found_count(const Codegen *cg)
{
	int n = 0;
	for (int i = 0; i < cg->nsymbol; i++)
		n += cg->symbols[i].dim->bounded;
	return n;
}

int cuda_told_words(const Codegen *cg)
{
	return CUDA_STATE_BYTES / 8 + 2 * cuda_found_count(cg);
}

// Behind what is told, counters of loops, and two words for each condition: which of its parts run.
int64_t cuda_state_bytes(const Codegen *cg)
{
	const Course *course = cg->cuda.course;
	return (8 * ((int64_t)cuda_told_words(cg) + course->ncounter + course->ncondition) + 63) / 64 *
	       64;
}

int cuda_size_word(const Codegen *cg, const Symbol *s)
{
	int number = 0;
	for (const Symbol *at = cg->symbols; at < s; at++)
		number += at->dim->bounded;
	return number;
}

const char *cuda_word(Codegen *cg, int word)
{
	cg->uses_sizes = true;
	return arena_printf(cg->arena, "sizes + %d", word);
}

const char *cuda_size(Codegen *cg, const Symbol *s)
{
	return cuda_word(cg, cuda_size_word(cg, s));
}

const char *cuda_state(Codegen *cg)
{
	cg->uses_state = true;
	return "state";
}

// ---- failures -----------------------------------------------------------------------------------

static bool failures_are(const Codegen *cg, int at, int n, const char *const *titles)
{
	for (int i = 0; i < n; i++)
		if (at + i >= cg->nfailure || strcmp(cg->failures[at + i], titles[i]))
			return false;
	return true;
}

int cuda_failures(Codegen *cg, int n, const Op *const *ops)
{
	const char **titles = NEW_ARRAY(cg->arena, (size_t)n, const char *);
	for (int i = 0; i < n; i++)
		titles[i] = op_where(cg, ops[i]);
	for (int at = 0; at < cg->nfailure; at++)
		if (failures_are(cg, at, n, titles))
			return at;
	for (int i = 0; i < n; i++) {
		VEC_ROOM(cg->arena, cg->failures, cg->nfailure, cg->cfailure);
		cg->failures[cg->nfailure++] = titles[i];
	}
	return cg->nfailure - n;
}

int cuda_failure(Codegen *cg, const Op *op)
{
	return cuda_failures(cg, 1, &op);
}
