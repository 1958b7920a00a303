// Counts bank conflicts of shared memory, for CUDAEMU_BANKS: 32 banks, each a word of 4 bytes wide;
// lanes of a warp that need different words of one bank take turns. Of 8 bytes half a warp goes at
// once, of 16 a quarter. Threads here run one after the other: what lanes do in one line of the
// source for the n-th time counts as one instruction. Called by cuda_runtime.h for each access,
// block.cc and report.cc.
#include "cudaemu.h"

#include <stdio.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace cudaemu
{

enum { WARP = 32, BANKS = 32, WORD = 4 };

bool banks_counted = getenv("CUDAEMU_BANKS") != nullptr;

struct Instruction {
	int line;
	unsigned bytes; // of each lane; 0: it does not take part
	uintptr_t at[WARP];
	unsigned lanes;
};

// By warp, line and how often its lanes have been there.
static std::unordered_map<uint64_t, Instruction> instructions;
static std::unordered_map<uint64_t, unsigned> visits; // by thread and line
static std::map<int, long> conflicts;                 // by line
static long accesses;

// How many turns some lanes need beyond the first.
static int turns_lost(const uintptr_t *at, const bool *takes_part, int lanes, unsigned bytes)
{
	uintptr_t words[WARP];
	int n = 0, in_bank[BANKS] = {0}, most = 1;
	for (int l = 0; l < lanes; l++)
		for (unsigned w = 0; takes_part[l] && w < (bytes + WORD - 1) / WORD; w++)
			words[n++] = at[l] / WORD + w;
	std::sort(words, words + n);
	for (int i = 0; i < n; i++)
		if (!i || words[i] != words[i - 1])
			most = std::max(most, ++in_bank[words[i] % BANKS]);
	return most - 1;
}

static void instruction_count(const uintptr_t *at, unsigned lanes, unsigned bytes, int line)
{
	const int together = bytes <= WORD ? WARP : WARP * WORD / (int)bytes;
	bool takes_part[WARP];
	for (int l = 0; l < WARP; l++)
		takes_part[l] = lanes >> l & 1;
	for (int first = 0; first < WARP; first += together) {
		const int lost = turns_lost(at + first, takes_part + first, together, bytes);
		if (lost)
			conflicts[line] += lost;
	}
	accesses++;
}

void banks_access(const void *at, size_t bytes, int line)
{
	const unsigned thread = thread_number(), lane = thread % WARP;
	const unsigned n = visits[(uint64_t)thread << 32 | (unsigned)line]++;
	Instruction *i =
		&instructions[(uint64_t)(thread / WARP) << 56 | (uint64_t)(unsigned)line << 32 | n];
	i->line = line;
	i->bytes = (unsigned)bytes;
	i->at[lane] = reinterpret_cast<uintptr_t>(at);
	i->lanes |= 1u << lane;
}

// ldmatrix: where the rows of four matrices begin, as elements of so many bytes behind `base`.
void banks_matrices(const void *base, const uint64_t *rows, size_t bytes, int line)
{
	uintptr_t at[WARP];
	for (int l = 0; l < WARP; l++)
		at[l] = reinterpret_cast<uintptr_t>(base) + rows[l] * bytes;
	instruction_count(at, ~0u, 16, line);
}

void banks_block_end()
{
	for (const auto &i : instructions)
		instruction_count(i.second.at, i.second.lanes, i.second.bytes, i.second.line);
	instructions.clear();
	visits.clear();
}

void banks_report(FILE *f)
{
	long all = 0;
	for (const auto &c : conflicts) {
		fprintf(f, "bank_conflicts_of_line_%d %ld\n", c.first, c.second);
		all += c.second;
	}
	fprintf(f, "shared_accesses %ld\nbank_conflicts %ld\n", accesses, all);
}

} // namespace cudaemu
