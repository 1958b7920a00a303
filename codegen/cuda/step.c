// Steps of a CUDA program: what is launched as a kernel of its own, or, where one block of threads
// is enough, called in a kernel that does several steps with barriers in between: small steps of a
// conditional part that stand side by side, or a whole loop (lower/cuda/steps.c). Called by
// function.c, move.c and graph.c for all that is launched.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "ir/base/vec.h"
#include "lower/target/schedule.h"

#include <string.h>

enum { WARP = 32 };

// ---- arguments ----------------------------------------------------------------------------------

CudaArg cuda_arg_tensor(Codegen *cg, const char *type, const Value *v, const char *text, bool cast)
{
	const Place p = value_place(v);
	const DType t = p.root->type->dtype;
	const char *stem = p.kind == PLACE_INPUT    ? cg->inputs[p.col].member
	                   : p.kind == PLACE_OUTPUT ? cg->outputs[p.col].member
	                   : cast || (p.moving && moving_as(cg, moving_find(cg, &p), t) != text)
	                       ? CUDA_UNNAMED
	                       : text;
	return (CudaArg){type, text, stem};
}

CudaArg cuda_arg_word(Codegen *cg, const char *type, int word)
{
	return (CudaArg){type, cuda_word(cg, word), arena_printf(cg->arena, "size_%d", word)};
}

CudaArg cuda_arg_state(Codegen *cg, const char *type)
{
	const char *state = cuda_state(cg);
	return (CudaArg){type, state, state};
}

CudaArg cuda_arg_number(Codegen *cg, const Dim *d)
{
	const char *text = expression_unwrap(cg->arena, dim_in_locals(&cg->plan, d));
	const char *name = d->kind == DIM_SYM ? text : dim_local(&cg->plan, d);
	return (CudaArg){"int64_t ", text, dim_is_const(d) ? NULL : name ? name : CUDA_UNNAMED};
}

// ---- what a block does --------------------------------------------------------------------------

// A statement of the kernel: a call, or what begins and ends others.
typedef struct Item {
	const CudaStep *step;       // a call; NULL:
	const char *before, *after; // text around the arguments
	int depth, narg;
	const CudaArg *args;
	int part; // of a call: the node that it is part of where not all calls are little; 0: no matter
} Item;

struct CudaBlock {
	const char *stem;
	int nitem, citem, depth;
	Item *items;
	int64_t threads;
	int loops; // around what comes next
	bool has_loop;
	Text outer; // in loops: cg->run around them, which holds comments inside
};

static void item_push(Codegen *cg, Item item)
{
	CudaBlock *b = cg->cuda.block;
	VEC_ROOM(cg->arena, b->items, b->nitem, b->citem);
	item.depth = b->depth;
	b->items[b->nitem++] = item;
}

// In a loop the comments that were printed meanwhile go with it.
static void item_add(Codegen *cg, Item item)
{
	if (cg->cuda.block->loops && cg->run.len) {
		const char *text = cg->run.text + strspn(cg->run.text, "\n\t");
		item_push(
			cg, (Item){.before = arena_strndup(cg->arena, text, strcspn(text, "\n")), .after = ""});
		text_init(&cg->run, cg->arena);
	}
	item_push(cg, item);
}

static void block_open(Codegen *cg, const char *stem)
{
	cg->cuda.block = NEW(cg->arena, CudaBlock);
	*cg->cuda.block = (CudaBlock){.stem = stem, .depth = 1, .threads = 1};
	cuda_node_begin(cg, stem);
}

bool cuda_in_loop_kernel(const Codegen *cg)
{
	return cg->cuda.block && cg->cuda.block->loops;
}

void cuda_block_text(Codegen *cg, const char *text, int depth)
{
	cg->cuda.block->depth += depth < 0 ? depth : 0;
	if (*text)
		item_add(cg, (Item){.before = text, .after = ""});
	cg->cuda.block->depth += depth > 0 ? depth : 0;
}

// What a block of threads looks at: where v lies, and the state.
static CudaArg *test_args(Codegen *cg, const Value *v, const char *pointer, bool state)
{
	const char *type = dtype_c_memory(v->type->dtype);
	CudaArg *args = NEW_ARRAY(cg->arena, 2, CudaArg);
	args[0] = cuda_arg_tensor(cg, arena_printf(cg->arena, "const %s *", type), v, pointer, false);
	if (state)
		args[1] = cuda_arg_state(cg, "const pd_state *");
	return args;
}

void cuda_block_test(Codegen *cg, const char *before, const Value *v, const char *pointer,
                     const char *after)
{
	item_add(cg, (Item){.before = arena_printf(cg->arena, "%spd_block_holds(", before),
	                    .after = arena_printf(cg->arena, ")%s", after),
	                    .args = test_args(cg, v, pointer, true),
	                    .narg = 2});
}

void cuda_block_rounds(Codegen *cg, const Value *v, const char *pointer)
{
	item_add(cg, (Item){.before = "for (int64_t left = pd_block_rounds(",
	                    .after = "); left > 0; left--) {",
	                    .args = test_args(cg, v, pointer, true),
	                    .narg = 2});
	cg->cuda.block->depth++;
}

void cuda_block_case(Codegen *cg, const char *before, const Value *v, const char *pointer,
                     const char *after)
{
	item_add(cg, (Item){.before = arena_printf(cg->arena, "%spd_block_is(", before),
	                    .after = after,
	                    .args = test_args(cg, v, pointer, false),
	                    .narg = 1});
}

// ---- parameters of a block's kernel -------------------------------------------------------------

typedef struct Params {
	Arena *arena;
	Names names;
	int n;
	CudaArg *items;     // as the launch passes them
	const char **param; // what they are called in the kernel
} Params;

static const char *param_of(Params *p, const CudaArg *arg)
{
	if (!arg->stem)
		return arg->text;
	for (int i = 0; i < p->n; i++)
		if (!strcmp(p->items[i].text, arg->text)) {
			if (!strncmp(p->items[i].type, "const ", 6))
				p->items[i].type = arg->type; // somebody may write it
			return p->param[i];
		}
	p->items[p->n] = *arg;
	return p->param[p->n++] = names_unique(&p->names, arg->stem);
}

static void params_init(Params *p, Codegen *cg, int most)
{
	*p = (Params){.arena = cg->arena};
	p->names = names_within(&cg->globals); // what is called must stay in sight
	p->items = NEW_ARRAY(cg->arena, (size_t)most + 1, CudaArg);
	p->param = NEW_ARRAY(cg->arena, (size_t)most + 1, const char *);
}

static int args_count(const CudaBlock *b)
{
	int n = 0;
	for (int i = 0; i < b->nitem; i++)
		n += b->items[i].narg;
	return n;
}

// ---- printing -----------------------------------------------------------------------------------

static void launch_print(Codegen *cg, const CudaStep *s, int narg, const CudaArg *args)
{
	Text line;
	text_init(&line, cg->arena);
	if (s->instance)
		text_printf(&line, "pd_launch_at(queue, \"%s\", %s", s->kernel, s->instance);
	else
		text_printf(&line, "pd_launch(queue, %s", s->kernel);
	text_printf(&line, s->figures.shared ? ", %s, {%d, %d}" : ", %s, %d", s->blocks, s->threads,
	            s->figures.shared);
	for (int i = 0; i < narg; i++)
		text_printf(&line, ", %s", args[i].text);
	text_line(&cg->run, 1, "%s);", line.text);
}

static void func_launched(Codegen *cg, int func)
{
	if (func < 0)
		return;
	cg->funcs[func].launched = true;
	cg->funcs[func].guarded |= cuda_in_part(cg);
	if (cuda_in_part(cg))
		cuda_node_launches(cg, func);
}

static void step_launch(Codegen *cg, const CudaStep *s)
{
	func_launched(cg, s->func);
	launch_print(cg, s, s->narg, s->args);
	cuda_launch_note(cg, s->kernel, s->threads, &s->figures);
}

// What the function of a step is called by a block: a template has positions of any width.
static const char *step_called(Codegen *cg, const CudaStep *s)
{
	if (s->func < 0)
		return arena_printf(cg->arena, "pd_block_%s", s->kernel + strlen("pd_"));
	EmittedFunc *f = &cg->funcs[s->func];
	if (!f->called)
		f->called = names_unique(
			&cg->globals, arena_printf(cg->arena, "block_%s", f->name + strcspn(f->name, "_") + 1));
	return f->is_template ? arena_printf(cg->arena, "%s<int64_t>", f->called) : f->called;
}

static void item_print(Codegen *cg, const Item *item, Params *p, bool last, Text *out)
{
	const bool one_thread = item->step && item->step->threads == 1;
	Text line;
	text_init(&line, p->arena);
	if (item->step)
		text_printf(&line, "%s(", step_called(cg, item->step));
	else
		text_str(&line, item->before);
	for (int i = 0; i < item->narg; i++)
		text_printf(&line, "%s%s", i ? ", " : "", param_of(p, &item->args[i]));
	if (one_thread)
		text_line(out, item->depth, "if (threadIdx.x == 0)");
	text_line(out, item->depth + one_thread, "%s%s", line.text, item->step ? ");" : item->after);
	if (item->step && !last)
		text_line(out, item->depth, "__syncthreads();");
}

// The kernel that does all items; its launch goes to cg->run.
static void block_kernel(Codegen *cg, const CudaBlock *b)
{
	Params p;
	Text body, params;
	text_init(&body, cg->arena);
	text_init(&params, cg->arena);
	for (int i = 0; i < b->nitem; i++) // parameters are named apart from what is called
		if (b->items[i].step)
			step_called(cg, b->items[i].step);
	params_init(&p, cg, args_count(b));
	CudaLaunch figures = {.access = 1};
	for (int i = 0; i < b->nitem; i++) {
		item_print(cg, &b->items[i], &p, i + 1 == b->nitem, &body);
		if (b->items[i].step)
			cuda_figures_add(&figures, &b->items[i].step->figures);
	}
	for (int i = 0; i < p.n; i++)
		text_printf(&params, "%s%s%s", i ? ", " : "", p.items[i].type, p.param[i]);
	const int threads = b->threads > CUDA_BLOCK_THREADS
	                        ? CUDA_BLOCK_THREADS
	                        : ((int)b->threads + WARP - 1) / WARP * WARP;
	const int func = kernel_add(
		cg,
		(EmittedFunc){.text = arena_printf(cg->arena, KERNEL_HEAD "\n%s}\n", body.text),
	                  .params = p.n ? params.text : ""},
		arena_printf(cg->arena, "%s_%s", b->has_loop ? "loop" : "steps", b->stem));
	func_launched(cg, func);
	launch_print(cg, &(CudaStep){.kernel = cg->funcs[func].name, .blocks = "1", .threads = threads},
	             p.n, p.items);
	cuda_launch_note(cg, cg->funcs[func].name, threads, &figures);
}

static void block_print(Codegen *cg, const CudaBlock *b)
{
	if (b->nitem == 1)
		step_launch(cg, b->items[0].step);
	else
		block_kernel(cg, b);
}

const char *cuda_works_little(Codegen *cg, const Works *w)
{
	Text text;
	text_init(&text, cg->arena);
	for (int i = 0; i < w->n; i++)
		text_printf(&text, "%s%s <= %d", i ? " && " : "",
		            expression_unwrap(cg->arena, dim_in_locals(&cg->plan, w->items[i])),
		            CUDA_LITTLE_WORK);
	return w->n ? text.text : "";
}

// From item `from` on those that are launched together whatever a run's sizes are.
static CudaBlock items_together(const CudaBlock *b, int from)
{
	CudaBlock part = {.stem = b->items[from].step->stem, .items = b->items + from, .threads = 1};
	for (int i = from; i < b->nitem && b->items[i].part == part.items->part; i++) {
		const CudaStep *s = b->items[i].step;
		part.threads = s->width > part.threads ? s->width : part.threads;
		part.nitem++;
	}
	return part;
}

// One kernel for all steps where they are little; else they wait for what they need.
static void either_print(Codegen *cg, const CudaBlock *b)
{
	Works works = {0};
	for (int i = 0; i < b->nitem; i++)
		if (b->items[i].step->work)
			works_add(cg->ctx, &works, b->items[i].step->work);
	cuda_node_launches(cg, CUDA_NEVER_COUNTS);
	Text outer = cuda_scope_open(cg);
	block_kernel(cg, b);
	cuda_scope_close(cg, outer, arena_printf(cg->arena, "if (%s) ", cuda_works_little(cg, &works)),
	                 NULL);
	outer = cuda_scope_open(cg);
	cuda_nodes_begin(cg, false);
	for (int i = 0; i < b->nitem;) {
		const CudaBlock part = items_together(b, i);
		cuda_node_begin(cg, part.stem);
		cuda_node_part(cg, part.items->step->op, part.items->part);
		block_print(cg, &part);
		cuda_node_end(cg);
		i += part.nitem;
	}
	cuda_nodes_end(cg, true);
	cuda_scope_close(cg, outer, "else ", NULL);
}

// The kernel that is open ends with the last step of its node.
static void steps_end(Codegen *cg)
{
	CudaBlock *b = cg->cuda.block;
	if (b->loops || !cuda_node_is_whole(cg))
		return;
	cg->cuda.block = NULL;
	if (!b->has_loop && b->items[0].part)
		either_print(cg, b);
	else
		block_print(cg, b);
	cuda_node_end(cg);
}

void cuda_loop_kernel_begin(Codegen *cg, const Op *op)
{
	const char *stem = name_sanitize(cg->arena, op->loc->var ? op->loc->var : "rounds");
	if (!cg->cuda.block)
		block_open(cg, stem);
	cuda_node_step(cg, op);
	if (!cg->cuda.block->loops++) {
		cg->cuda.block->stem = stem;
		cg->cuda.block->has_loop = true;
		cg->cuda.block->outer = cg->run;
		text_init(&cg->run, cg->arena);
	}
}

void cuda_loop_kernel_end(Codegen *cg)
{
	if (--cg->cuda.block->loops)
		return;
	cg->run = cg->cuda.block->outer;
	steps_end(cg);
}

void cuda_step_print(Codegen *cg, const CudaStep *s)
{
	if (!cuda_in_loop_kernel(cg)) {
		if (cuda_step_is_alone(cg, s->op)) {
			cuda_node_step(cg, s->op);
			step_launch(cg, s);
			return;
		}
		if (!cg->cuda.block)
			block_open(cg, s->stem);
	}
	if (s->width > cg->cuda.block->threads)
		cg->cuda.block->threads = s->width;
	CudaStep *kept = NEW(cg->arena, CudaStep);
	*kept = *s;
	const int part = cuda_node_step(cg, s->op);
	item_add(cg, (Item){.step = kept, .narg = s->narg, .args = s->args, .part = part});
	steps_end(cg);
}
