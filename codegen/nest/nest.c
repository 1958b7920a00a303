// Prints loop.nest as a C function: loops over the dims (merged where every access allows it), each
// scalar at the outermost loop that it depends on, predicates that the innermost loop does not
// change decided before it. Called by codegen.c through nest_emit.
#include "codegen/nest/region.h"
#include "lower/target/threads.h"

#include <string.h>

// When the last two loops are turned: elements of a strip, so that as many cache lines stay near
// while the other loop goes round; and how long that other loop may be.
enum { STRIP = 64, MAX_TURNED_LANES = 64 };

// ---- printing -----------------------------------------------------------------------------------

// A result may share bytes with an operand, so with several results all values stand before the
// first store.
static const char *stored_value(Nest *n, const Value *v, int depth)
{
	const char *value = scalars_name(&n->s, v);
	if (!value || n->op->nresult == 1 || !value[strcspn(value, " ([*")])
		return value;
	const char *name = kernel_local(n->k, "v");
	text_line(n->out, depth, "const %s %s = %s;", type_c_scalar(v->type), name,
	          expression_unwrap(n->k->arena, value));
	return name;
}

// Whether what is stored lies there: of a nest in place, where it changes nothing.
static bool stores_itself(const Nest *n, const char *store)
{
	const char *value = strstr(store, " = ");
	const size_t place = value ? (size_t)(value - store) : 0;
	return value && !n->k->cg->backend->device && strlen(value + 3) == place &&
	       !memcmp(store, value + 3, place);
}

bool nest_stores_print(Nest *n, int depth)
{
	const char *index = nest_result_index(n);
	const Op *end = block_terminator(n->body);
	const char **values = NEW_ARRAY(n->k->arena, (size_t)end->noperand + 1, const char *);
	if (!index)
		return false;
	for (int i = 0; i < end->noperand; i++)
		if (!(values[i] = stored_value(n, op_operand(end, i), depth)))
			return false;
	for (int i = 0; i < end->noperand; i++) {
		DType t = n->op->results[i].type->dtype;
		const char *store = scalar_store(n->k, t, nest_result(n, i), index, values[i]);
		if (!stores_itself(n, store))
			text_line(n->out, depth, "%s;", store);
	}
	return true;
}

// Whether a sum or product of positions: a compiler takes it out of a loop by itself.
static bool is_position(const Op *op)
{
	return op->results[0].type->kind == TY_INDEX &&
	       (op->code == OP_PD_ADD || op->code == OP_PD_MULTIPLY);
}

static bool level_print(Nest *n, int level, int depth)
{
	for (const Op *op = n->body->first; op != block_terminator(n->body); op = op->next) {
		if (!nest_needed(n, op) || nest_level(n, &op->results[0]) != level)
			continue;
		const Use *use = op->results[0].uses;
		bool same = use && use->user->nresult && nest_level(n, &use->user->results[0]) == level;
		bool stored = use && use->user == block_terminator(n->body) && level == n->nloop;
		if (!scalar_op_print(&n->s, op, same || stored || is_position(op), depth, n->out))
			return false;
	}
	return true;
}

bool nest_element_print(Nest *n, int depth)
{
	nest_terms_name(n);
	return level_print(n, n->nloop, depth) && nest_stores_print(n, depth);
}

static bool pred_is_outer(Nest *n, const Value *pred)
{
	return nest_level(n, pred) < n->nloop;
}

// The condition that the innermost loop is split by; NULL: none, or as many loops as are worth
// their code have been made of it.
static const Value *innermost_predicate(Nest *n)
{
	enum { MOST_KNOWN = 4 };
	if (n->s.nknown >= MOST_KNOWN)
		return NULL;
	for (const Op *op = n->body->first; op; op = op->next) {
		if (!op->nresult || nest_level(n, &op->results[0]) != n->nloop)
			continue;
		const Value *pred = nest_predicate(n, &op, 1, pred_is_outer);
		if (pred)
			return pred;
	}
	return NULL;
}

static bool innermost_print(Nest *n, int depth);

static void text_back(Text *t, size_t len)
{
	t->len = len;
	t->text[len] = '\0';
}

// if (pred) innermost loop; else innermost loop, each printed with what it needs, where it does
// anything.
static bool innermost_split(Nest *n, const Value *pred, int depth)
{
	const char *name = scalars_name(&n->s, pred);
	if (!name)
		return false;
	const int at = n->s.nknown++, nlocal = n->k->nlocal;
	const size_t begin = n->out->len;
	n->s.known[at] = pred;
	bool ok = true;
	for (int truth = 1; truth >= 0 && ok; truth--) {
		const size_t before = n->out->len;
		if (truth || before == begin)
			text_line(n->out, depth, truth ? "if (%s) {" : "if (!(%s)) {", name);
		else
			text_line(n->out, depth, "} else {");
		const size_t body = n->out->len;
		n->s.known_value[at] = truth;
		nest_renew(n);
		ok = innermost_print(n, depth + 1);
		kernel_locals_end(n->k, nlocal);
		if (n->out->len == body)
			text_back(n->out, before);
	}
	if (n->out->len > begin)
		text_line(n->out, depth, "}");
	n->s.nknown = at;
	nest_renew(n);
	return ok;
}

// Whether the innermost loop reads what does not lie side by side: gcc would take another loop as
// the innermost then, whose stores do not.
static bool innermost_jumps(const Nest *n)
{
	bool jumps = n->turned;
	const Loop *loop = &n->loops[n->nloop - 1];
	for (const Op *op = n->body->first; op; op = op->next) {
		if (op->nregion)
			return false;
		if (op->code == OP_LOOP_LOAD_OR && !scalars_known(&n->s, op_operand(op, 0)))
			continue; // reads nothing
		jumps |= n->nloop > 1 && load_indices_at(op) && nest_needed(n, op) &&
		         load_stride(op, loop->arg) == 2;
	}
	return jumps && !n->k->cg->backend->device;
}

// Whether the loop reads where a result lies, at the same element then, by another name, as what
// has another type is read (see kernel_tensor): rounds might depend on each other for all that
// compilers can tell.
static bool innermost_shares(const Nest *n)
{
	bool shares = false;
	for (const Op *op = n->body->first; op; op = op->next) {
		if (op->nregion)
			return false;
		if (!load_indices_at(op) || !nest_needed(n, op))
			continue;
		const Value *x = op_operand(op, load_indices_at(op) - 1);
		const Place read = value_place(x);
		for (int i = 0; i < n->op->nresult; i++) {
			const Value *result = &n->op->results[i];
			const Place written = value_place(result);
			shares |= x->type->dtype != result->type->dtype && places_meet(&read, &written);
		}
	}
	return shares && n->k->target->vector && !n->k->cg->backend->device;
}

// Whether a load stands under a condition that the elements of this round decide, in a loop so
// short that gcc unrolls it: gcc 12 before 12.4 makes masked loads of neighbours in groups then,
// and forgets that a group has them in another order (its bug 114375). As a loop of its own it is
// right.
static bool innermost_masks(const Nest *n)
{
	enum { MOST_UNROLLED = 16 };
	int64_t least, most;
	dim_range(n->loops[n->nloop - 1].extent, &least, &most);
	if (n->nloop < 2 || most > MOST_UNROLLED || n->k->cg->backend->device)
		return false;
	PointerMap data;
	pointer_map_init(&data, n->k->arena);
	bool masks = false;
	for (const Op *op = n->body->first; op && !op->nregion; op = op->next) {
		if (op->code == OP_LOOP_LOAD_OR && nest_needed(n, op))
			masks |= pointer_map_get(&data, op_operand(op, 0)) != NULL;
		bool read = load_indices_at(op) && nest_level(n, &op->results[0]) == n->nloop;
		for (int i = 0; i < op->noperand; i++)
			read |= pointer_map_get(&data, op_operand(op, i)) != NULL;
		for (int i = 0; read && i < op->nresult; i++)
			pointer_map_set(&data, &op->results[i], &op->results[i]);
	}
	return masks;
}

// Whether the loop is a vector or two, as blocks of channels are: gcc would unroll it, and then not
// find the vectors of what it has made branches of.
static bool innermost_fills(const Nest *n)
{
	const Loop *loop = &n->loops[n->nloop - 1];
	const int lanes = n->k->target->lanes;
	int64_t least, most;
	dim_range(loop->extent, &least, &most);
	return n->nloop > 1 && n->k->target->vector && !loop->first && !loop->end && least == most &&
	       (most == lanes || most == 2 * lanes) && !nest_has_reductions(n);
}

static bool innermost_again(Nest *n, int level, int depth)
{
	(void)level;
	return innermost_print(n, depth);
}

static bool innermost_print(Nest *n, int depth)
{
	bool done;
	const Value *pred = innermost_predicate(n);
	if (pred)
		return innermost_split(n, pred, depth);
	if (!nest_parts_print(n, n->nloop - 1, depth, innermost_again, &done) || done)
		return done;
	if (!nest_cut_print(n, depth, innermost_again, &done) || done)
		return done;
	if (nest_wants_lanes(n))
		return nest_lanes_print(n, depth);
	Loop *loop = &n->loops[n->nloop - 1];
	const size_t before = n->out->len;
	if (!loop->only && (innermost_jumps(n) || innermost_shares(n) || innermost_masks(n))) {
		if (!kernel_helper(n->k, "kernel_macros.c", 0, NULL))
			return false;
		text_line(n->out, depth, "PD_LANES");
	} else if (innermost_fills(n)) {
		text_line(n->out, depth, "PDRT_LANES");
	}
	loop_open(&n->s, loop, &depth, n->out);
	const size_t body = n->out->len;
	if (!nest_element_print(n, depth))
		return false;
	const bool idle = n->out->len == body;
	loop_close(&n->s, loop, &depth, n->out);
	if (idle)
		text_back(n->out, before);
	return true;
}

// The loop around the last two when they are turned: strips of the inner one.
static void strip_open(Nest *n, Loop *inner, int *depth)
{
	Arena *a = n->k->arena;
	const char *extent = expression_unwrap(a, kernel_dim(n->k, inner->extent));
	const char *from = inner->first ? inner->first : "0";
	extent = inner->end ? inner->end : extent;
	inner->first = kernel_local(n->k, "i");
	inner->end = kernel_local(n->k, "end");
	text_line(n->out, (*depth)++, "for (int64_t %s = %s; %s < %s; %s += %d) {", inner->first, from,
	          inner->first, extent, inner->first, STRIP);
	text_line(n->out, *depth, "const int64_t %s = %s + %d < %s ? %s + %d : %s;", inner->end,
	          inner->first, STRIP, extent, inner->first, STRIP, extent);
}

// Whether the loop is no longer than a strip, which then needs no loop.
static bool is_one_strip(const Loop *inner)
{
	return !inner->first && !inner->end && dim_is_const(inner->extent) &&
	       inner->extent->value <= STRIP;
}

// Whether the innermost loop goes in strips, the loop around it in each: where both are turned or
// terms are kept for a strip, and where it reads what lies side by side for the loop around it, so
// far apart that cache lines would be gone before that comes to their next element, as
// transpositions do.
static bool wants_strips(const Nest *n)
{
	const Loop *last = &n->loops[n->nloop - 1], *around = last - 1;
	bool across = false;
	if (n->turned || n->terms)
		return true;
	if (n->k->cg->backend->device || last->first || last->step || around->only ||
	    !dim_is_const(last->extent) || last->extent->value < 4 * STRIP)
		return false;
	for (const Op *op = n->body->first; op; op = op->next) {
		if (op->nregion)
			return false;
		across |= load_indices_at(op) && nest_needed(n, op) && load_stride(op, last->arg) == 2 &&
		          load_stride(op, around->arg) == 1;
	}
	return across;
}

static bool loops_from(Nest *n, int level, int depth);

static bool loop_print(Nest *n, int level, int depth)
{
	loop_open(&n->s, &n->loops[level], &depth, n->out);
	if (!level_print(n, level + 1, depth) || !loops_from(n, level + 1, depth))
		return false;
	loop_close(&n->s, &n->loops[level], &depth, n->out);
	return true;
}

// The last two loops, the inner one in strips.
static bool strips_print(Nest *n, int level, int depth)
{
	Loop *inner = &n->loops[level + 1];
	const Loop whole = *inner;
	const bool strips = !is_one_strip(inner);
	if (strips)
		strip_open(n, inner, &depth);
	if ((n->terms && !nest_terms_print(n, strips ? STRIP : (int)inner->extent->value, depth)) ||
	    !loop_print(n, level, depth))
		return false;
	inner->first = whole.first; // the part that comes next goes over all of it, too
	inner->end = whole.end;
	if (strips)
		text_line(n->out, --depth, "}");
	return true;
}

// The loop at `level` and those in it.
static bool loops_from(Nest *n, int level, int depth)
{
	bool done;
	if (level + 1 == n->nloop)
		return innermost_print(n, depth);
	if (n->square && level + 2 == n->nloop)
		return nest_turn_print(n, depth);
	if (!nest_parts_print(n, level, depth, loops_from, &done) || done)
		return done;
	return level + 2 == n->nloop && wants_strips(n) ? strips_print(n, level, depth)
	                                                : loop_print(n, level, depth);
}

static bool loops_print(Nest *n)
{
	if (!level_print(n, 0, 1))
		return false;
	return n->nloop ? loops_from(n, 0, 1) : nest_stores_print(n, 1);
}

// ---- turning the last two loops -----------------------------------------------------------------

static bool op_divides(const Op *op)
{
	return op->nresult && op->results[0].type->kind == TY_INDEX &&
	       (op->code == OP_PD_FLOOR_DIVIDE || op->code == OP_PD_REMAINDER);
}

// Whether v depends on the argument `arg`.
static bool depends_on(const Value *v, const Value *arg, int depth)
{
	if (v == arg)
		return true;
	if (!v->def || depth > MAX_RANK)
		return v->def != NULL; // too deep to tell
	for (int i = 0; i < v->def->noperand; i++)
		if (op_operand(v->def, i) && depends_on(op_operand(v->def, i), arg, depth + 1))
			return true;
	return v->def->nregion > 0;
}

// A short innermost loop whose positions are found by division (channels that do not lie as they
// are stored), anew for each pixel, though they do not depend on the pixel: then the loop over
// pixels is the better inner one, unless it divides as often by itself.
static bool wants_turn(const Nest *n)
{
	if (n->nloop < 2 || n->k->target->simt)
		return false;
	const Loop *lanes = &n->loops[n->nloop - 1], *pixels = &n->loops[n->nloop - 2];
	if (!dim_is_const(lanes->extent) || lanes->extent->value > MAX_TURNED_LANES)
		return false;
	if (dim_is_const(pixels->extent) && pixels->extent->value < lanes->extent->value)
		return false;
	int saved = 0;
	for (const Op *op = n->body->first; op; op = op->next) {
		if (op->nregion)
			return false;
		if (op_divides(op) && nest_level(n, &op->results[0]) == n->nloop - 1)
			saved--;
		if (!op_divides(op) || nest_level(n, &op->results[0]) != n->nloop)
			continue;
		if (depends_on(&op->results[0], pixels->arg, 0))
			return false;
		saved++;
	}
	return saved > 0;
}

static void loops_turn(Nest *n)
{
	Loop *last = &n->loops[n->nloop - 1], lanes = *last;
	*last = last[-1];
	last[-1] = lanes;
	n->turned = true;
	nest_levels_find(n);
}

// Loops of extent 1 at the end would hide the loop that matters: they go, their argument is 0.
static void drop_unit_loops(Nest *n)
{
	int kept = 0;
	for (int i = 0; i < n->nloop; i++) {
		if (dim_is(n->loops[i].extent, 1))
			pointer_map_set(&n->s.names, n->loops[i].arg, "0");
		else
			n->loops[kept++] = n->loops[i];
	}
	n->nloop = kept;
}

void nest_init(Nest *n, KernelFunc *k, Text *out)
{
	*n = (Nest){.k = k, .op = k->op, .body = k->op->regions[0].first, .out = out};
	scalars_init(&n->s, k);
	pointer_map_init(&n->levels, k->arena);
	n->nloop = loops_merge(&n->s, n->body, k->op->results[0].type->dims, n->loops);
	drop_unit_loops(n);
	memcpy(n->layout, n->loops, sizeof n->layout);
	nest_levels_find(n);
	if (wants_turn(n))
		loops_turn(n);
	nest_renew(n);
}

bool nest_statement(KernelFunc *k)
{
	Nest n;
	Text locals, stores;
	Codegen *cg = k->cg;
	text_init(&locals, k->arena);
	text_init(&stores, k->arena);
	text_init(&cg->fresh, k->arena);
	cg->nfresh = 0;
	cg->statement = k->op;
	nest_init(&n, k, &locals);
	const int base = cg->depth;
	if (n.nloop || !level_print(&n, 0, base + 2))
		return false;
	int depth = base + (locals.len ? 2 : 1);
	if (!locals.len)
		n.out = &stores;
	if (!nest_stores_print(&n, depth))
		return false;
	cg->statement = NULL;
	if (!locals.len && cg->nfresh == 1 && k->op->nresult == 1) { // declared with its value
		text_printf(&k->text, "%.*sconst %s %s", depth, stores.text, cg->fresh_type,
		            stores.text + depth);
		return true;
	}
	text_str(&k->text, cg->fresh.text ? cg->fresh.text : "");
	if (locals.len) { // C++ has no goto past a declaration that stays in sight
		text_line(&k->text, base + 1, "{");
		text_str(&k->text, locals.text);
		text_line(&k->text, base + 1, "}");
	} else {
		text_str(&k->text, stores.text);
	}
	return true;
}

const char *nest_number(KernelFunc *k)
{
	Nest n;
	Text locals;
	text_init(&locals, k->arena);
	nest_init(&n, k, &locals);
	if (n.nloop || !level_print(&n, 0, 1))
		return NULL;
	const char *value = stored_value(&n, op_operand(block_terminator(n.body), 0), 1);
	return locals.len ? NULL : value;
}

// The loop that threads share goes over a part of its range; the innermost in steps.
static void nest_share(Nest *n)
{
	KernelFunc *k = n->k;
	const Value *arg = n->body->args[op_int(n->op, "along", 0)];
	for (const Value *next; (next = pointer_map_get(&n->s.merged, arg)) != NULL;)
		arg = next;
	for (int i = 0; i < n->nloop; i++) {
		Loop *loop = &n->loops[i];
		const int step = i + 1 < n->nloop ? 1 : THREADS_STEP;
		if (loop->arg != arg || !kernel_share(k, tile_count(k, loop->extent, step)))
			continue;
		loop->first = "begin";
		loop->end = "end";
		if (step == 1)
			continue;
		loop->first = "first";
		loop->end = "last";
		text_line(n->out, 1, "const int64_t first = begin * %d, last = pd_dim_min(end * %d, %s);",
		          step, step, expression_unwrap(k->arena, kernel_dim(k, loop->extent)));
	}
}

bool nest_emit(KernelFunc *k)
{
	Nest n;
	Text body;
	text_init(&body, k->arena);
	nest_init(&n, k, &body);
	if (op_attr(k->op, "parallel"))
		nest_share(&n);
	n.terms = nest_terms_find(&n);
	nest_renew(&n);
	n.square = !n.terms && nest_turn_find(&n);
	const int64_t tiny = nest_tiny_elements(&n);
	n.tiny = tiny > 0;
	if (n.tiny)
		nest_tiny_declare(&n, tiny);
	if (!loops_print(&n))
		return false;
	if (n.tiny)
		nest_tiny_store(&n, tiny);
	k->small = !n.nloop || n.tiny;
	text_printf(&k->text, "%s %s %s(%s%s)\n{\n",
	            n.tiny     ? "static inline"
	            : k->small ? "static"
	                       : "PD_APART",
	            k->status ? "int" : "void", KERNEL_FN, KERNEL_PARAMS, kernel_range(k));
	text_str(&k->text, body.text ? body.text : "");
	if (k->status)
		text_str(&k->text, "\treturn 0;\n");
	text_str(&k->text, "}\n");
	return true;
}
