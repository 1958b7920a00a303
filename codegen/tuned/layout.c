// Emits the changes of layout: kernel.pack_gemm, kernel.pack_conv, kernel.block,
// kernel.unblock, kernel.join_blocks.
// All but the packing of an untransposed matrix interleave the rows of a matrix, or undo that.
// Called by codegen.c; what is packed from parameters never gets here, it is folded at compile
// time.
#include "codegen/nest/region.h"

#include <inttypes.h>
#include <string.h>

// A batch of matrices of `rows` x `inner` elements; `q` rows (columns, for panels) go together.
typedef struct Interleave {
	const char *template;
	const Dim *batch, *rows, *inner;
	const char *groups; // what the template calls those that are made of the rows of a matrix
	const Dim *q;
} Interleave;

// The first element of each row that is moved by itself; NULL after a diagnostic.
static const char *lanes_call(KernelFunc *k, const Interleave *x, const Value *source)
{
	const bool back = x->template[0] == 'u';
	const int lanes = dim_is(x->q, k->target->few) ? k->target->few : k->target->lanes;
	if (!k->target->vector || source->type->dtype != DT_F32 || !dim_is_const(x->q) ||
	    x->q->value % lanes || lanes % 4)
		return "0";
	const char *name = back ? "unblock" : "interleave", *q = kernel_dim(k, x->q);
	const char *vector = tile_vectors_of(k, lanes);
	const TemplateKey keys[] = {{"q", q}, {"lanes", tile_int(k, lanes)}, {"v", vector}};
	if (!vector || !tile_turn(k, vector, lanes) ||
	    !kernel_helper(k, arena_printf(k->arena, "%s_lanes.c", name), COUNT_OF(keys), keys))
		return NULL;
	return arena_printf(k->arena, "%s_%s(from, to, inner, have)", name, q);
}

static bool one_group(const Interleave *x)
{
	return dim_is_const(x->rows) && dim_is_const(x->q) && x->rows->value <= x->q->value;
}

// Whether there are no rows but in whole groups.
static bool no_rest(const Interleave *x)
{
	return dim_is_const(x->rows) && dim_is_const(x->q) && x->rows->value % x->q->value == 0;
}

// How many rows a group has.
static const char *rows_text(KernelFunc *k, const Interleave *x, const char *rows)
{
	const char *q = kernel_dim(k, x->q);
	return no_rest(x) ? q
	       : one_group(x)
	           ? rows
	           : arena_printf(k->arena, "%s - first < %s ? %s - first : %s", rows, q, rows, q);
}

// Which group of which image a round is about: with one group, all rounds are images.
static int group_keys(KernelFunc *k, const Interleave *x, const char *rows, TemplateKey *keys)
{
	const char *q = kernel_dim(k, x->q);
	const bool one = one_group(x);
	keys[0] = (TemplateKey){"row", one ? arena_printf(k->arena, "i * %s", rows)
	                                   : arena_printf(k->arena, "(i / groups * %s + first)", rows)};
	keys[1] = (TemplateKey){"first_of", arena_printf(k->arena, "i %% groups * %s", q)};
	keys[2] = (TemplateKey){
		"groups", one ? "" : arena_printf(k->arena, ", groups = (%s + %s - 1) / %s", rows, q, q)};
	keys[3] = (TemplateKey){"first", one ? "" : "first"};
	return 4;
}

// The same for panels.
static int panel_keys(KernelFunc *k, const Interleave *x, TemplateKey *keys)
{
	const char *q = kernel_dim(k, x->q);
	const bool one = one_group(x);
	keys[0] = (TemplateKey){"several", template_flag(!one)};
	keys[1] = (TemplateKey){"matrix", one ? "i" : "i / panels"};
	keys[2] = (TemplateKey){
		"panels", one ? "" : arena_printf(k->arena, ", panels = (N + %s - 1) / %s", q, q)};
	keys[3] = (TemplateKey){"first", one ? "" : " + first"};
	return 4;
}

// How many rounds there are in all: of a kernel that is shared only the caller knows.
static const char *rounds(KernelFunc *k, const Interleave *x)
{
	const char *batch = kernel_dim(k, x->batch);
	return one_group(x) ? batch : arena_printf(k->arena, "%s * %s", batch, x->groups);
}

static bool interleave_emit(KernelFunc *k, const Interleave *x, const Value *source)
{
	const bool shared = dim_is_const(x->q) &&
	                    kernel_share(
							k, dim_mul(k->ctx, x->batch, tile_count(k, x->rows, (int)x->q->value)));
	const char form = x->template[0], *rows = form == 'p' ? "N" : form == 'u' ? "channels" : "rows";
	TemplateKey keys[16] = {
		{"begin", shared ? "begin" : "0"},
		{"end", shared ? "end" : rounds(k, x)},
		{"rows", kernel_dim(k, x->rows)},
		{"inner", kernel_dim(k, x->inner)},
		{"q", kernel_dim(k, x->q)},
		{"range", kernel_range(k)},
		{"type", dtype_c_memory(source->type->dtype)},
		{"have", rows_text(k, x, rows)},
	};
	int n = 8;
	if (form != 'u') // unblock names its operand, and has no rows that are not there
		keys[n++] = (TemplateKey){"source", kernel_tensor(k, source)};
	if (form != 'u')
		keys[n++] = (TemplateKey){"rest", no_rest(x) ? "" : "rest"};
	n += form == 'p' ? panel_keys(k, x, keys + n) : group_keys(k, x, rows, keys + n);
	if (form != 'p' && !(keys[n++] = (TemplateKey){"done", lanes_call(k, x, source)}).text)
		return false;
	return kernel_template(k, x->template, n, keys);
}

static const Dim *last_size(const Type *t)
{
	return t->dims[t->rank - 1];
}

bool kernel_pack_gemm_emit(KernelFunc *k)
{
	const Value *b = op_operand(k->op, 0);
	const Type *t = b->type;
	bool transposed = op_bool(k->op, "transposed", false);
	const Dim *rows = t->dims[t->rank - (transposed ? 2 : 1)],
			  *inner = t->dims[t->rank - (transposed ? 1 : 2)];
	Interleave x = {
		.template = transposed ? "interleave.c" : "panels.c",
		.batch = dims_product(k->ctx, t->rank - 2, t->dims),
		.rows = rows,
		.inner = inner,
		.groups = transposed ? "groups" : "panels",
		.q = last_size(k->op->results[0].type),
	};
	return interleave_emit(k, &x, b);
}

bool kernel_pack_conv_emit(KernelFunc *k)
{
	const Value *w = op_operand(k->op, 0);
	Interleave x = {
		.template = "interleave.c",
		.batch = dim_const(k->ctx, 1),
		.rows = w->type->dims[0],
		.inner = dims_product(k->ctx, w->type->rank - 1, w->type->dims + 1),
		.groups = "groups",
		.q = last_size(k->op->results[0].type),
	};
	return interleave_emit(k, &x, w);
}

// Between images in blocks and `plain` ones.
static bool blocks_emit(KernelFunc *k, const char *template, const Type *plain, const Type *blocked)
{
	Interleave x = {
		.template = template,
		.batch = plain->dims[0],
		.rows = plain->dims[1],
		.inner = dims_product(k->ctx, plain->rank - 2, plain->dims + 2),
		.groups = "groups",
		.q = last_size(blocked),
	};
	return interleave_emit(k, &x, op_operand(k->op, 0));
}

bool kernel_block_emit(KernelFunc *k)
{
	return blocks_emit(k, "interleave.c", op_operand(k->op, 0)->type, k->op->results[0].type);
}

bool kernel_unblock_emit(KernelFunc *k)
{
	return blocks_emit(k, "unblock.c", k->op->results[0].type, op_operand(k->op, 0)->type);
}

// ---- blocks behind each other -------------------------------------------------------------------

static int64_t lanes_of(const Type *blocked)
{
	return last_size(blocked)->value;
}

// Where channel `from` of pixel p lies in image n of `blocks` blocks.
static const char *block_place(Arena *a, const char *pointer, const char *blocks, int64_t from,
                               int64_t b)
{
	const char *block = strcmp(blocks, "1") ? arena_printf(a, "n * %s", blocks) : "n";
	if (from / b)
		block = arena_printf(a, "(%s + %" PRId64 ")", block, from / b);
	const char *place = arena_printf(a, "%s + (%s * pixels + p) * %" PRId64, pointer, block, b);
	return from % b ? arena_printf(a, "%s + %" PRId64, place, from % b) : place;
}

// Channels [from, from + n) of operand i, or zeros, become those from `to` on, within one block of
// each.
static void piece_print(KernelFunc *k, Text *t, int i, int64_t from, int64_t to, int64_t n)
{
	Arena *a = k->arena;
	const Type *out = k->op->results[0].type;
	const char *target = block_place(a, "out", kernel_dim(k, out->dims[1]), to, lanes_of(out));
	text_printf(t, "for (int64_t p = p0; p < end; p++)\n\t");
	if (i < 0) {
		text_printf(t, "memset(%s, 0, %" PRId64 " * sizeof *out);\n", target, n);
		return;
	}
	const Value *x = op_operand(k->op, i);
	text_printf(t, "memcpy(%s, %s, %" PRId64 " * sizeof *out);\n", target,
	            block_place(a, kernel_tensor(k, x), kernel_dim(k, x->type->dims[1]), from,
	                        lanes_of(x->type)),
	            n);
}

// What lies in one block in front and behind is one piece.
static const char *pieces_text(KernelFunc *k)
{
	const int64_t b = lanes_of(k->op->results[0].type);
	const Attr *channels = op_attr(k->op, "channels"), *first = op_attr(k->op, "from");
	int64_t to = 0;
	Text t;
	text_init(&t, k->arena);
	for (int i = 0; i < k->op->noperand; i++) {
		int64_t from = first ? first->ints[i] : 0;
		const int64_t end = from + channels->ints[i];
		for (int64_t n; from < end; from += n, to += n) {
			const int64_t own = lanes_of(op_operand(k->op, i)->type);
			const int64_t room = b - to % b, have = own - from % own;
			n = end - from < room ? end - from : room;
			n = have < n ? have : n;
			piece_print(k, &t, i, from, to, n);
		}
	}
	if (to % b)
		piece_print(k, &t, -1, 0, to, b - to % b);
	return t.text;
}

bool kernel_join_blocks_emit(KernelFunc *k)
{
	const Type *out = k->op->results[0].type;
	const TemplateKey keys[] = {
		{"batch", kernel_dim(k, out->dims[0])},
		{"pixels", tile_product(k, out->rank - 3, out->dims + 2)},
		{"pieces", pieces_text(k)},
	};
	return kernel_template(k, "join_blocks.c", COUNT_OF(keys), keys);
}
