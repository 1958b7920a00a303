// CUDA: nests that turn tensors. Where the elements of an operand that lie side by side belong to
// elements of the result that do not, a block moves a square of them through shared memory, so that
// both sides are read and written along. Called by device/nest.c.
#include "codegen/device/nest.h"

#include <string.h>

// A square of SIDE x SIDE elements, its rows padded against bank conflicts; a block has ROWS rows
// of threads.
enum { SIDE = 32, ROWS = 8 };

typedef struct Tile {
	Nest *n;
	int across;              // the loop along which the operands lie
	PointerMap first, later; // Op -> itself: what the addresses of turned loads need; what is
	                         // computed per element
} Tile;

// The number of its array in shared memory; -1: the operation is no load that is turned.
static int tile_number(const Tile *t, const Op *op)
{
	int n = 0;
	if (op->code != OP_LOOP_LOAD || !op_bool(op, "turned", false))
		return -1;
	for (const Op *at = t->n->body->first; at != op; at = at->next)
		n += at->code == OP_LOOP_LOAD && op_bool(at, "turned", false);
	return n;
}

static void operands_mark(PointerMap *m, const Op *op)
{
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i) && op_operand(op, i)->def)
			pointer_map_set(m, op_operand(op, i)->def, op);
}

static void uses_mark(Tile *t)
{
	const Op *end = block_terminator(t->n->body);
	pointer_map_init(&t->first, t->n->k->arena);
	pointer_map_init(&t->later, t->n->k->arena);
	operands_mark(&t->later, end);
	for (const Op *op = end->prev; op; op = op->prev) {
		if (pointer_map_get(&t->first, op) || tile_number(t, op) >= 0)
			operands_mark(&t->first, op);
		if (pointer_map_get(&t->later, op) && tile_number(t, op) < 0)
			operands_mark(&t->later, op);
	}
}

// ---- printing -----------------------------------------------------------------------------------

static const Dim *sides_count(Context *c, const Dim *extent)
{
	return dim_div(c, dim_add(c, extent, dim_const(c, SIDE - 1)), dim_const(c, SIDE));
}

// `t` apart: where the square begins along both loops, and the positions of the others.
static void square_print(Tile *t, const char *names[2])
{
	Nest *n = t->n;
	KernelFunc *k = n->k;
	const char *rest = "t";
	for (int i = n->nloop - 1; i >= 0; i--) {
		const bool side = i == n->nloop - 1 || i == t->across;
		const Dim *count = side ? sides_count(k->ctx, n->loops[i].extent) : n->loops[i].extent;
		const char *name = kernel_local(k, side ? "from" : "i"), *next = kernel_local(k, "rest");
		text_line(n->out, 2, "const %s %s = %s %% %s%s;", k->index, name, rest,
		          kernel_dim(k, count), side ? " * 32" : "");
		if (i)
			text_line(n->out, 2, "const %s %s = %s / %s;", k->index, next, rest,
			          kernel_dim(k, count));
		rest = next;
		if (side)
			names[i == t->across] = name;
		else
			pointer_map_set(&n->s.names, n->loops[i].arg, name);
	}
}

// A loop over elements of the square: a warp has one position along the loop `slow`, and 32 along
// the other.
static void elements_open(Tile *t, const char *names[2], bool across_is_fast)
{
	Nest *n = t->n;
	KernelFunc *k = n->k;
	const Loop *loops[2] = {&n->loops[n->nloop - 1], &n->loops[t->across]};
	const char *at[2];
	text_line(n->out, 2, "PD_UNROLL for (int r = 0; r < %d; r += %d) {", SIDE, ROWS);
	for (int i = 0; i < 2; i++) {
		at[i] = kernel_local(k, "i");
		text_line(n->out, 3, "const %s %s = %s + (%s)%s;", k->index, at[i], names[i], k->index,
		          (i == 1) == across_is_fast ? "(threadIdx.x % 32)" : "(threadIdx.x / 32 + r)");
		pointer_map_set(&n->s.names, loops[i]->arg, at[i]);
	}
	text_line(n->out, 3, "if (%s < %s && %s < %s) {", at[0],
	          expression_unwrap(k->arena, kernel_dim(k, loops[0]->extent)), at[1],
	          expression_unwrap(k->arena, kernel_dim(k, loops[1]->extent)));
}

static bool loads_print(Tile *t)
{
	Nest *n = t->n;
	for (const Op *op = n->body->first; op != block_terminator(n->body); op = op->next) {
		const int number = tile_number(t, op);
		if (number >= 0) {
			const char *index = load_index(&n->s, op);
			if (!index)
				return false;
			text_line(n->out, 4,
			          "tile%d[(threadIdx.x / 32 + r) * 33 + threadIdx.x %% 32] = %s[%s];", number,
			          kernel_tensor(n->k, op_operand(op, 0)), index);
		} else if (pointer_map_get(&t->first, op) &&
		           !scalar_op_print(&n->s, op, false, 4, n->out)) {
			return false;
		}
	}
	return true;
}

static bool results_print(Tile *t)
{
	Nest *n = t->n;
	KernelFunc *k = n->k;
	for (const Op *op = n->body->first; op != block_terminator(n->body); op = op->next) {
		const int number = tile_number(t, op);
		if (number >= 0) {
			const char *name = kernel_local(k, "x"),
					   *tile = arena_printf(k->arena, "tile%d", number);
			text_line(n->out, 4, "const %s %s = %s;", kernel_scalar(k, op->results[0].type), name,
			          scalar_load(k, op_operand(op, 0)->type->dtype, tile,
			                      "threadIdx.x % 32 * 33 + threadIdx.x / 32 + r"));
			pointer_map_set(&n->s.names, &op->results[0], name);
		} else if (pointer_map_get(&t->later, op) && !scalar_op_print(&n->s, op, true, 4, n->out)) {
			return false;
		}
	}
	return nest_stores_print(n, 4);
}

bool nest_turned_print(Nest *n)
{
	Tile t = {.n = n, .across = (int)op_int(n->op, "across", 0)};
	KernelFunc *k = n->k;
	Context *c = k->ctx;
	const char *names[2];
	uses_mark(&t);
	const Dim *total = dim_const(c, 1);
	for (int i = 0; i < n->nloop; i++) {
		const Dim *extent = n->loops[i].extent;
		total = dim_mul(c, total,
		                i == n->nloop - 1 || i == t.across ? sides_count(c, extent) : extent);
	}
	k->block_threads = SIDE * ROWS;
	k->work = total;
	for (const Op *op = n->body->first; op; op = op->next)
		if (tile_number(&t, op) >= 0)
			text_line(n->out, 1, "PD_SHARED(%s, tile%d, %d * %d);",
			          dtype_c_memory(load_tensor(op)->dtype), tile_number(&t, op), SIDE, SIDE + 1);
	text_line(n->out, 1, "const %s total = %s;", k->index,
	          expression_unwrap(k->arena, kernel_dim(k, total)));
	text_line(n->out, 1, "for (%s t = (%s)blockIdx.x; t < total; t += (%s)gridDim.x) {", k->index,
	          k->index, k->index);
	square_print(&t, names);
	elements_open(&t, names, true);
	if (!loads_print(&t))
		return false;
	text_str(n->out, "\t\t\t}\n\t\t}\n\t\t__syncthreads();\n");
	elements_open(&t, names, false);
	if (!results_print(&t))
		return false;
	text_str(n->out, "\t\t\t}\n\t\t}\n\t\t__syncthreads(); // before the next square\n\t}\n");
	return true;
}
