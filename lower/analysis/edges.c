// What happens on the way to a block: sizes, and moves in an order in which none destroys what
// another reads. Called by lower/cuda, and by printers.
#include "lower/analysis/edges.h"
#include "lower/analysis/analysis.h"

// ---- sizes --------------------------------------------------------------------------------------

const Dim *edge_size_from(const EdgeSizes *z, const Dim *sym)
{
	for (int i = 0; i < z->n; i++)
		if (z->items[i].sym == sym)
			return z->items[i].from;
	return NULL;
}

EdgeSizes edge_sizes_find(Arena *a, const Op *op, int s)
{
	const Succ *succ = &op->succs[s];
	size_t most = 1;
	for (int i = 0; i < (int)succ->count; i++)
		most += (size_t)succ->block->args[i]->type->rank;
	EdgeSize *items = NEW_ARRAY(a, most, EdgeSize);
	EdgeSizes z = {0, items};
	for (int i = 0; i < (int)succ->count; i++) {
		const Type *want = succ->block->args[i]->type,
				   *have = op_operand(op, (int)succ->first + i)->type;
		for (int d = 0; d < want->rank; d++) {
			const Dim *sym = want->dims[d];
			if (sym->kind == DIM_SYM && sym->bounded && !edge_size_from(&z, sym))
				items[z.n++] = (EdgeSize){sym, have->dims[d]};
		}
	}
	return z;
}

// Whether a size after the branch is the same expression as before it.
static bool size_stays(const EdgeSizes *z, const Dim *d)
{
	if (d->kind == DIM_CONST)
		return true;
	if (d->kind != DIM_SYM)
		return size_stays(z, d->a) && size_stays(z, d->b);
	const Dim *from = edge_size_from(z, d);
	return !from || from == d;
}

bool edge_size_is_same(const EdgeSizes *z, const Dim *want, const Dim *have)
{
	return want->kind == DIM_SYM && want->bounded ? edge_size_from(z, want) == have
	                                              : want == have && size_stays(z, want);
}

bool edge_sizes_work(const EdgeSizes *z, const Op *op, int s)
{
	const Succ *succ = &op->succs[s];
	for (int i = 0; i < z->n; i++)
		if (z->items[i].from != z->items[i].sym)
			return true;
	for (int i = 0; i < (int)succ->count; i++) {
		const Type *want = succ->block->args[i]->type,
				   *have = op_operand(op, (int)succ->first + i)->type;
		for (int d = 0; d < want->rank; d++)
			if (!edge_size_is_same(z, want->dims[d], have->dims[d]))
				return true;
	}
	return false;
}

// ---- moves --------------------------------------------------------------------------------------

// Moves that are to be put in order.
typedef struct Waiting {
	int n;
	EdgeMove *moves;
	bool *done;
} Waiting;

// Those whose sizes are known, or are not.
static bool moves_collect(const Op *op, int s, bool known, Waiting *w)
{
	const Succ *succ = &op->succs[s];
	for (int i = 0; i < (int)succ->count; i++) {
		const MoveKind kind = branch_move(op, s, i);
		const Value *arg = succ->block->args[i], *v = op_operand(op, (int)succ->first + i);
		int64_t n;
		if (kind == MOVE_COUNT)
			return false;
		if (kind == MOVE_NONE || argument_counts(arg) || type_const_numel(v->type, &n) != known)
			continue;
		const EdgeMove m = {arg, v, v, value_place(arg), value_place(v), NULL};
		if (!places_equal(&m.to, &m.from))
			w->moves[w->n++] = m;
	}
	return true;
}

// A move that is still to read what m writes; NULL: none.
static const EdgeMove *reader_find(const Waiting *w, const EdgeMove *m)
{
	for (int i = 0; i < w->n; i++)
		if (&w->moves[i] != m && !w->done[i] && places_equal(&w->moves[i].from, &m->to))
			return &w->moves[i];
	return NULL;
}

// Two buffers take each other's place. Returns how many moves that does.
static int swap(Waiting *w, int at)
{
	EdgeMove *m = &w->moves[at];
	const EdgeMove *reader = reader_find(w, m);
	int n = 1;
	m->back = reader ? reader->arg->type : m->arg->type;
	w->done[at] = true;
	for (int k = 0; k < w->n; k++) {
		EdgeMove *other = &w->moves[k];
		if (w->done[k] || !places_equal(&other->from, &m->to))
			continue;
		other->from = m->from;
		other->source = m->source;
		w->done[k] = places_equal(&other->from, &other->to);
		n += w->done[k];
	}
	return n;
}

int edge_moves_find(Arena *a, const Op *op, int s, const EdgeMove **moves)
{
	const size_t most = (size_t)op->succs[s].count + 1;
	Waiting w = {0, NEW_ARRAY(a, most, EdgeMove), NEW_ARRAY(a, most, bool)};
	EdgeMove *ordered = NEW_ARRAY(a, most, EdgeMove);
	int n = 0;
	*moves = ordered;
	if (!moves_collect(op, s, true, &w) || !moves_collect(op, s, false, &w))
		return -1;
	for (int left = w.n; left > 0;) {
		const int before = left;
		for (int i = 0; i < w.n; i++)
			if (!w.done[i] && !reader_find(&w, &w.moves[i])) {
				w.done[i] = true;
				ordered[n++] = w.moves[i];
				left--;
			}
		for (int i = 0; i < w.n && left == before; i++)
			if (!w.done[i]) {
				left -= swap(&w, i);
				ordered[n++] = w.moves[i];
			}
	}
	return n;
}

static bool count_add(Context *c, MoveCount *count, const Dim *d)
{
	if (d->kind == DIM_MUL)
		return count_add(c, count, d->a) && count_add(c, count, d->b);
	if (d->kind == DIM_SYM && d->bounded) {
		if (count->n == MOVE_SIZES)
			return false;
		count->sizes[count->n++] = d;
		return true;
	}
	count->host = dim_mul(c, count->host, d);
	return !dim_is_found(d);
}

bool move_count(Context *c, const Type *t, MoveCount *count)
{
	*count = (MoveCount){.host = dim_const(c, 1)};
	for (int d = 0; d < t->rank; d++)
		if (!count_add(c, count, t->dims[d]))
			return false;
	return true;
}

const Dim *move_bytes(Context *c, const Value *v)
{
	const Dim *bytes = type_bytes_at_most(c, v->type),
			  *root = type_bytes_at_most(c, value_place(v).root->type);
	return bytes == root ? bytes : dim_min(c, bytes, root); // a view of less
}

const Dim *move_most(Context *c, const Value *v)
{
	return dim_div(c, move_bytes(c, v), dim_const(c, (int64_t)dtype_size(v->type->dtype)));
}
