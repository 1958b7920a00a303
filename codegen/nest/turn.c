// A nest that copies rows to columns moves squares of vectors, which are turned in registers: of
// one element after the other either loads or stores would jump from line to line. Called by
// nest.c.
#include "codegen/nest/region.h"

#include <inttypes.h>
#include <string.h>

// ---- the square ---------------------------------------------------------------------------------

// Which lanes of a (0 ..) and b (lanes ..) make up a vector: of each group of lanes the lower half
// or the higher, pieces of `width` from a and b by turns.
static const char *mix_text(KernelFunc *k, int lanes, int width, bool high)
{
	const int group = width < 2 ? 4 : 2 * width;
	Text t;
	text_init(&t, k->arena);
	for (int i = 0; i < lanes; i++) {
		const int piece = i % group / width, base = i / group * group + (high ? group / 2 : 0);
		text_printf(&t, "%s%d", i ? ", " : "",
		            base + piece / 2 * width + i % width + (piece % 2 ? lanes : 0));
	}
	return t.text;
}

// Exchanges blocks of `width` lanes of vectors that lie as far apart.
static void mix_print(KernelFunc *k, Text *t, const char *vector, int lanes, int width)
{
	text_printf(t, "PD_UNROLL\nfor (int i = 0; i < %d; i++) {\n", lanes);
	text_printf(t, "\tif (i & %d)\n\t\tcontinue;\n\tconst %s a = r[i], b = r[i + %d];\n", width,
	            vector, width);
	text_printf(t, "\tVF_MIX(r[i], a, b, %s);\n", mix_text(k, lanes, width, false));
	text_printf(t, "\tVF_MIX(r[i + %d], a, b, %s);\n}\n", width, mix_text(k, lanes, width, true));
}

bool tile_turn(KernelFunc *k, const char *vector, int lanes)
{
	Text wider;
	text_init(&wider, k->arena);
	text_str(&wider, "");
	for (int width = 4; width < lanes; width *= 2)
		mix_print(k, &wider, vector, lanes, width);
	const TemplateKey keys[] = {
		{"v", vector},
		{"bytes", tile_int(k, lanes * 4)},
		{"lanes", tile_int(k, lanes)},
		{"low1", mix_text(k, lanes, 1, false)},
		{"high1", mix_text(k, lanes, 1, true)},
		{"low2", mix_text(k, lanes, 2, false)},
		{"high2", mix_text(k, lanes, 2, true)},
		{"wider", wider.text},
	};
	return kernel_helper(k, "turn_gnu.c", COUNT_OF(keys), keys);
}

// ---- the nest -----------------------------------------------------------------------------------

// The load that a nest of no other work stores; NULL: there is other work.
static const Op *copied_load(const Nest *n)
{
	const Op *end = block_terminator(n->body), *load = op_operand(end, 0)->def;
	if (n->op->nresult != 1 || !load || load->code != OP_LOOP_LOAD || load->block != n->body ||
	    load_tensor(load)->dtype != DT_F32 || n->op->results[0].type->dtype != DT_F32)
		return NULL;
	for (const Op *op = n->body->first; op != end; op = op->next)
		if (op->nregion ||
		    (op != load && (op->results[0].type->kind != TY_INDEX || op->code == OP_LOOP_TO_INDEX)))
			return NULL;
	return load;
}

static bool fills_vectors(const Nest *n, const Loop *loop)
{
	return dim_is_const(loop->extent) && loop->extent->value >= n->k->target->lanes && !loop->first;
}

bool nest_turn_find(Nest *n)
{
	const int lanes = n->k->target->lanes;
	const Op *load = copied_load(n);
	if (!load || n->nloop < 2 || n->turned || n->k->cg->backend->device || !n->k->target->vector ||
	    lanes % 4)
		return false;
	const Loop *inner = &n->loops[n->nloop - 1];
	if (!fills_vectors(n, inner) || load_stride(load, inner->arg) != 2)
		return false;
	for (int i = n->nloop - 1; i-- > 0;) {
		const Loop across = n->loops[i];
		if (load_stride(load, across.arg) != 1 || !fills_vectors(n, &across))
			continue;
		for (; i + 2 < n->nloop; i++)
			n->loops[i] = n->loops[i + 1];
		n->loops[i] = across;
		nest_levels_find(n);
		return true;
	}
	return false;
}

// The head of a loop over vectors, of which the last may overlap the one before; names the first
// index of one.
static const char *vectors_open(Nest *n, const Loop *loop, int *depth)
{
	KernelFunc *k = n->k;
	const int lanes = k->target->lanes;
	const int64_t extent = loop->extent->value;
	const char *i = kernel_local(k, "i");
	text_line(n->out, (*depth)++, "for (%s %s = 0; %s < %" PRId64 "; %s += %d) {", k->index, i, i,
	          extent, i, lanes);
	if (extent % lanes == 0)
		return i;
	const char *at = kernel_local(k, "i");
	text_line(n->out, *depth, "const %s %s = pd_dim_min(%s, %" PRId64 ");", k->index, at, i,
	          extent - lanes);
	return at;
}

// Names the index of `loop` in a loop over the vectors of a square, of which the first has `first`.
static void lane_name(Nest *n, const Loop *loop, const char *first)
{
	pointer_map_set(&n->s.names, loop->arg, arena_printf(n->k->arena, "(%s + l)", first));
}

bool nest_turn_print(Nest *n, int depth)
{
	KernelFunc *k = n->k;
	const Loop *across = &n->loops[n->nloop - 2], *inner = &n->loops[n->nloop - 1];
	const Op *load = copied_load(n);
	if (!tile_prelude(k) || !tile_turn(k, "vf", k->target->lanes))
		return false;
	const int top = depth;
	const char *i = vectors_open(n, inner, &depth), *j = vectors_open(n, across, &depth);
	const char *square = kernel_local(k, "v");
	text_line(n->out, depth, "vf %s[%d];", square, k->target->lanes);
	text_line(n->out, depth, "PD_UNROLL");
	text_line(n->out, depth, "for (int l = 0; l < %d; l++) {", k->target->lanes);
	lane_name(n, inner, i);
	pointer_map_set(&n->s.names, across->arg, j);
	for (const Op *op = n->body->first; op != load; op = op->next)
		if (nest_needed(n, op) && nest_level(n, &op->results[0]) > n->nloop - 2 &&
		    !scalar_op_print(&n->s, op, true, depth + 1, n->out))
			return false;
	const char *from = load_index(&n->s, load);
	if (!from)
		return false;
	text_line(n->out, depth + 1, "%s[l] = vf_load(&%s[%s]);", square,
	          kernel_tensor(k, op_operand(load, 0)), expression_unwrap(k->arena, from));
	text_line(n->out, depth, "}");
	text_line(n->out, depth, "vf_turn(%s);", square);
	text_line(n->out, depth, "PD_UNROLL");
	text_line(n->out, depth, "for (int l = 0; l < %d; l++)", k->target->lanes);
	pointer_map_set(&n->s.names, inner->arg, i);
	lane_name(n, across, j);
	const char *to = nest_result_index(n);
	if (!to)
		return false;
	text_line(n->out, depth + 1, "vf_store(&%s[%s], %s[l]);", nest_result(n, 0),
	          expression_unwrap(k->arena, to), square);
	while (depth > top)
		text_line(n->out, --depth, "}");
	return true;
}
