// Where generated C begins to differ from the program that it was made of: `pdcc verify` calls this
// once a result is wrong. The code is compiled again, with --trace, so that it tells what each of
// its operators gave; the interpreter runs the same operators on the lowered program.
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"
#include "ir/interp/interp.h"

#include <string.h>

// What the program told of a result: six numbers, dims, elements (harness_trace.h).
enum { HEAD_WORDS = 6, MAGIC = 0x74726163 };

typedef struct Told {
	const Value *value;
	Tensor *tensor;
} Told;

typedef struct Follow {
	Driver *d;
	const BuiltModel *b;
	const uint8_t *at, *end;
	PointerMap rounds; // value -> how often the program has told of it
	PointerMap given;  // value -> Given, what the interpreter gave first
	bool found;
} Follow;

// What the interpreter gave for a value, in the order of time.
typedef struct Given {
	const Tensor *tensor;
	struct Given *next; // the one of the round after
	struct Given *last; // of the first: the latest
} Given;

static void given_note(void *arg, const Value *v, const Tensor *t)
{
	Follow *f = arg;
	Given *g = NEW(f->d->ctx->arena, Given);
	*g = (Given){.tensor = t, .last = g};
	Given *first = (Given *)pointer_map_get(&f->given, v); // one of ours
	if (!first) {
		pointer_map_set(&f->given, v, g);
		return;
	}
	first->last->next = g;
	first->last = g;
}

static bool head_is_right(const Follow *f, const int64_t *head)
{
	return head[0] == MAGIC && head[1] >= 0 && head[1] < f->b->ntraced && head[3] >= 0 &&
	       head[3] < DT_COUNT && head[4] >= 0 && head[4] <= MAX_RANK;
}

// The next result that the program told; false: there are no more, or a part of one.
static bool told_next(Follow *f, Told *t)
{
	int64_t head[HEAD_WORDS], dims[MAX_RANK];
	if ((size_t)(f->end - f->at) < sizeof head)
		return false;
	memcpy(head, f->at, sizeof head);
	f->at += sizeof head;
	const size_t bytes = (size_t)head[5], shape = (size_t)head[4] * sizeof *dims;
	const size_t left = (size_t)(f->end - f->at);
	if (!head_is_right(f, head) || left < shape || left - shape < bytes)
		return false;
	memcpy(dims, f->at, shape);
	const Op *op = f->b->traced[head[1]];
	t->value = head[2] >= 0 && head[2] < op->nresult ? &op->results[head[2]] : NULL;
	t->tensor = tensor_new(f->d->ctx->arena, (DType)head[3], (int)head[4], dims);
	if (!t->value || tensor_bytes(t->tensor) != bytes)
		return false;
	if (bytes)
		memcpy(t->tensor->data, f->at + shape, bytes);
	f->at += shape + bytes;
	return true;
}

static void differs(Follow *f, const Value *v, int round, const char *why)
{
	Context *c = f->d->ctx;
	const Op *op = v->def;
	const char *name = v->name ? v->name : op->loc->var ? op->loc->var : op->info->name;
	diag_error(c->diag, op->loc, "'%s' is the first value that generated code changes%s: %s", name,
	           round ? arena_printf(c->arena, ", in round %d", round + 1) : "", why);
	f->found = true;
}

static bool same_shape(const Tensor *a, const Tensor *b)
{
	return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// Compares the k-th tensor told of a value with the k-th given.
static void follow(Follow *f)
{
	for (Told t; !f->found && told_next(f, &t);) {
		const int before = pointer_map_index(&f->rounds, t.value), round = before < 0 ? 0 : before;
		pointer_map_set_index(&f->rounds, t.value, round + 1);
		const Given *g = pointer_map_get(&f->given, t.value);
		for (int i = 0; g && i < round; i++)
			g = g->next;
		const char *why = "the interpreter does not compute it";
		if (g && !same_shape(g->tensor, t.tensor))
			continue; // the room of an array, of which the interpreter has what is used
		if (!g || !tensor_agrees(f->d, g->tensor, t.tensor, &why))
			differs(f, t.value, round, why);
	}
}

void verify_trace(Driver *d, const Target *t)
{
	Context *c = d->ctx;
	const Options *given = d->options;
	Options *options = NEW(c->arena, Options);
	*options = *given;
	options->trace = true;
	BuiltModel b;
	Follow f = {.d = d, .b = &b};
	pointer_map_init(&f.rounds, c->arena);
	pointer_map_init(&f.given, c->arena);
	Op *module = driver_load(d);
	if (!module || !driver_lower(d, module, t, NULL))
		return;
	d->options = options;
	const bool built = model_build(d, module, t, NULL, &b);
	d->options = given;
	if (!built)
		return;
	b.values = arena_printf(c->arena, "%s/values", b.folder);
	size_t size = 0;
	const bool ran = model_execute(d, &b, b.folder) && verify_interpret(d, module, given_note, &f);
	f.at = ran ? file_map(c, b.values, &size) : NULL;
	if (!f.at)
		return;
	f.end = f.at + size;
	follow(&f);
	if (!f.found)
		diag_note(c->diag, NULL, "no value that generated code tells of differs");
}
