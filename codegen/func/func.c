// Functions under construction: parameters, names, sizes as C, identical functions emitted once.
// Called by the emitters (nest.c, kernel_*.c) and by the backends.
#include "codegen/func/func.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <string.h>

// ---- the module's operations --------------------------------------------------------------------

static const Op *block_first(const Block *b)
{
	while (b && !b->first)
		b = b->next;
	return b ? b->first : NULL;
}

const Op *module_first(const Op *module)
{
	return block_first(module->regions[0].first);
}

const Op *module_next(const Op *op)
{
	return op->next ? op->next : block_first(op->block->next);
}

// ---- parameters ---------------------------------------------------------------------------------

static KernelParam *param_add(KernelFunc *k, KernelParam p)
{
	VEC_ROOM(k->arena, k->params, k->nparam, k->cparam);
	k->params[k->nparam] = p;
	return &k->params[k->nparam++];
}

KernelFunc *kernel_new(Codegen *cg, const Op *op)
{
	KernelFunc *k = NEW(cg->arena, KernelFunc);
	*k = (KernelFunc){.cg = cg,
	                  .ctx = cg->ctx,
	                  .arena = cg->arena,
	                  .target = cg->target,
	                  .op = op,
	                  .index = "int64_t"};
	text_init(&k->text, cg->arena);
	for (int i = 0; i < op->nresult; i++)
		param_add(k, (KernelParam){
						 .name = op->nresult == 1 ? "out" : arena_printf(k->arena, "out%d", i),
						 .value = &op->results[i],
						 .result = true,
					 });
	for (int i = 0; i < op->noperand; i++)
		if (op_operand(op, i))
			param_add(k, (KernelParam){
							 .name = i < op->info->noperand ? op->info->operands[i].name
			                                                : arena_printf(k->arena, "x%d", i),
							 .value = op_operand(op, i),
						 });
	return k;
}

// In model_run itself a tensor is what is called there.
static const char *tensor_in_run(KernelFunc *k, const Value *v)
{
	const char *pointer = k->cg->backend->tensor(k->cg, v);
	return pointer ? pointer : "0"; // there is a diagnostic
}

// The position along the first axis that a load reads; -1: no constant.
static int64_t load_slice(const Op *load)
{
	const Value *at = op_operand(load, load->code == OP_LOOP_LOAD_OR ? 3 : 1);
	int64_t slice;
	return index_constant(at, &slice) ? slice : -1;
}

// Which position along the first axis of tensor v all loads in the block read, the regions below
// included: `slice`, or another one where that is -1. -1: different ones, or no constant.
static bool slice_is_one(const Block *b, const Value *v, int64_t *slice)
{
	for (const Op *op = b->first; op; op = op->next) {
		for (int i = 0; i < op->nregion; i++)
			for (const Block *inner = op->regions[i].first; inner; inner = inner->next)
				if (!slice_is_one(inner, v, slice))
					return false;
		for (int i = 0; i < op->noperand; i++) {
			if (op_operand(op, i) != v)
				continue;
			if ((op->code != OP_LOOP_LOAD || i != 0) && (op->code != OP_LOOP_LOAD_OR || i != 2))
				return false;
			const int64_t at = load_slice(op);
			if (at < 0 || (*slice >= 0 && at != *slice))
				return false;
			*slice = at;
		}
	}
	return true;
}

const Dim *kernel_lead(const KernelFunc *k, const Value *v)
{
	const Type *t = v->type;
	int64_t slice = -1;
	for (int i = 0; i < k->nparam; i++)
		if (k->params[i].value == v)
			return k->params[i].lead;
	if (k->cg->backend->device || k->inlined || k->op->code != OP_LOOP_NEST || t->rank < 2 ||
	    dtype_is_complex(t->dtype) || !dim_is_const(t->dims[0]) ||
	    !slice_is_one(region_entry(&k->op->regions[0]), v, &slice) || slice < 1 ||
	    slice >= t->dims[0]->value)
		return NULL;
	const Dim *lead = dim_const(k->ctx, slice);
	for (int i = 1; i < t->rank; i++)
		lead = dim_mul(k->ctx, lead, t->dims[i]);
	return lead;
}

// The result of a nest whose bytes v has, which is read at the element that is then written: by one
// name nothing else can be there, and compilers see that rounds do not depend on each other. NULL:
// none, or one of another type.
static const char *result_over(const KernelFunc *k, const Value *v)
{
	if (k->op->code != OP_LOOP_NEST || k->cg->backend->device)
		return NULL;
	const Place read = value_place(v);
	for (int i = 0; i < k->op->nresult; i++) {
		const Value *result = &k->op->results[i];
		const Place written = value_place(result);
		// Few elements may be variables, and two of one place are two of these.
		if (places_meet(&read, &written) && v->type->dtype == result->type->dtype &&
		    !number_variable(&k->cg->numbers, &written) &&
		    array_variable(&k->cg->numbers, &read) == array_variable(&k->cg->numbers, &written))
			return k->params[i].name;
	}
	return NULL;
}

const char *kernel_tensor(KernelFunc *k, const Value *v)
{
	if (k->inlined)
		return tensor_in_run(k, v);
	const char *over = result_over(k, v);
	if (over)
		return over;
	int captured = 0;
	for (int i = 0; i < k->nparam; i++) {
		if (k->params[i].value == v)
			return k->params[i].name;
		captured += k->params[i].captured;
	}
	const char *name = arena_printf(k->arena, "t%d", captured);
	const KernelParam p = {.name = name, .value = v, .captured = true, .lead = kernel_lead(k, v)};
	return param_add(k, p)->name;
}

const char *kernel_result(KernelFunc *k, int i)
{
	if (k->inlined)
		return tensor_in_run(k, &k->op->results[i]);
	return k->params[i].name;
}

static const char *kernel_symbol(const Dim *sym, void *arg)
{
	KernelFunc *k = arg;
	const char *name = NULL;
	for (int i = 0; i < k->nparam; i++)
		if (k->params[i].sym == sym && !k->params[i].bound)
			name = k->params[i].name;
	if (!name) {
		name = arena_printf(k->arena, "dim_%s", symbol_name(k->cg, sym));
		param_add(k, (KernelParam){.name = name, .sym = sym});
	}
	if (size_is_on_device(k->cg, sym))
		name = arena_printf(k->arena, "(*%s)", name);
	return strcmp(k->index, "int64_t") ? arena_printf(k->arena, "((%s)%s)", k->index, name) : name;
}

const char *kernel_bound(KernelFunc *k, const Dim *sym)
{
	const char *name = symbol_find(k->cg, sym)->max;
	if (!name)
		return "INT64_MAX";
	for (int i = 0; i < k->nparam; i++)
		if (k->params[i].sym == sym && k->params[i].bound)
			return k->params[i].name;
	return param_add(k, (KernelParam){.name = name, .sym = sym, .bound = true})->name;
}

void kernel_given(KernelFunc *k, const char *type, const char *name, const char *given)
{
	param_add(k, (KernelParam){.name = name, .type = type, .given = given});
}

// How many numbers and symbols the expression of a size has, up to `most`.
static int dim_leaves(const Dim *d, int most)
{
	if (d->kind == DIM_CONST || d->kind == DIM_SYM || most <= 1)
		return 1;
	const int n = dim_leaves(d->a, most);
	return n >= most ? n : n + dim_leaves(d->b, most - n);
}

// A size that would be long to read is a parameter: sizes of what was broadcast again and again
// double each time, and a function has them in every position.
static const char *long_dim(KernelFunc *k, const Dim *d)
{
	int n = 1;
	for (int i = 0; i < k->nparam; i++) {
		if (k->params[i].sym == d)
			return k->params[i].name;
		n += k->params[i].sym && k->params[i].given;
	}
	const KernelParam p = {.name = arena_printf(k->arena, "size%d", n),
	                       .type = "int64_t",
	                       .sym = d,
	                       .given = expression_unwrap(k->arena, dim_in_run(k->cg, d))};
	return param_add(k, p)->name;
}

const char *kernel_dim(KernelFunc *k, const Dim *d)
{
	enum { MOST_LEAVES = 24 };
	if (k->inlined)
		return dim_in_run(k->cg, d);
	if (!k->cg->backend->device && dim_leaves(d, MOST_LEAVES) >= MOST_LEAVES)
		return long_dim(k, d);
	return dim_expression(k->arena, d, kernel_symbol, k);
}

const char *kernel_local(KernelFunc *k, const char *stem)
{
	const char *name = arena_printf(k->arena, "%s%d", stem, k->nlocal++);
	return k->inlined ? names_unique(&k->cg->locals, name) : name;
}

void kernel_locals_end(KernelFunc *k, int before)
{
	if (!k->inlined) // model_run has names of its own
		k->nlocal = before;
}

bool kernel_share(KernelFunc *k, const Dim *units)
{
	if (op_attr(k->op, "parallel") && !(dim_is_const(units) && units->value < 2))
		k->units = units;
	return k->units != NULL;
}

const char *kernel_range(const KernelFunc *k)
{
	return k->units ? ", const int64_t begin, const int64_t end" : "";
}

void kernel_moves(KernelFunc *k, DType t, int lanes)
{
	const int bytes = (int)dtype_size(t) * lanes;
	k->access = bytes > k->access ? bytes : k->access;
}

bool kernel_template(KernelFunc *k, const char *name, int nkey, const TemplateKey *keys)
{
	return template_expand(k->ctx, &k->text, name, nkey, keys);
}

bool kernel_template_joined(KernelFunc *k, const char *name, int ncommon, const TemplateKey *common,
                            int nown, const TemplateKey *own)
{
	TemplateKey *keys = NEW_ARRAY(k->arena, (size_t)(ncommon + nown), TemplateKey);
	memcpy(keys, common, (size_t)ncommon * sizeof *keys);
	memcpy(keys + ncommon, own, (size_t)nown * sizeof *keys);
	return kernel_template(k, name, ncommon + nown, keys);
}

// ---- functions emitted --------------------------------------------------------------------------

static void func_add(Arena *a, EmittedFunc **f, int *n, int *cap, EmittedFunc new)
{
	VEC_ROOM(a, *f, *n, *cap);
	(*f)[(*n)++] = new;
}

bool kernel_helper(KernelFunc *k, const char *name, int nkey, const TemplateKey *keys)
{
	Codegen *cg = k->cg;
	Text t;
	text_init(&t, cg->arena);
	if (!template_expand(cg->ctx, &t, name, nkey, keys))
		return false;
	for (int i = 0; i < cg->nhelper; i++)
		if (!strcmp(cg->helpers[i].text, t.text))
			return true;
	func_add(cg->arena, &cg->helpers, &cg->nhelper, &cg->chelper,
	         (EmittedFunc){.text = t.text, .params = "", .name = name});
	text_str(&cg->functions, t.text);
	text_char(&cg->functions, '\n');
	return true;
}

// Whether the plan lets a result share bytes with this parameter, which must then not be
// `restrict`.
static bool param_shared(const KernelFunc *k, int which)
{
	Place mine = value_place(k->params[which].value);
	for (int i = 0; i < k->nparam; i++) {
		if (i == which || !k->params[i].value || !(k->params[i].result || k->params[which].result))
			continue;
		Place other = value_place(k->params[i].value);
		if (places_meet(&mine, &other))
			return true;
	}
	return false;
}

const char *kernel_param_type(const KernelFunc *k, const KernelParam *p)
{
	if (p->given)
		return arena_printf(k->arena, "%s ", p->type);
	if (!p->value)
		return size_is_on_device(k->cg, p->sym) && !p->bound ? "int64_t *" : "int64_t ";
	return arena_printf(k->arena, "%s%s *", p->result ? "" : "const ",
	                    dtype_c_memory(p->value->type->dtype));
}

int kernel_fault(KernelFunc *k, const Op *op)
{
	k->status = true;
	if (!op->loc->type)
		op = k->op;
	for (int i = 0; i < k->nfault; i++)
		if (k->faults[i]->loc == op->loc)
			return i;
	VEC_ROOM(k->arena, k->faults, k->nfault, k->cfault);
	k->faults[k->nfault] = op;
	return k->nfault++;
}

static const char *params_text(KernelFunc *k, bool restricted)
{
	Text t;
	text_init(&t, k->arena);
	for (int i = 0; i < k->nparam; i++) {
		const KernelParam *p = &k->params[i];
		text_printf(&t, "%s%s%s%s", i ? ", " : "", kernel_param_type(k, p),
		            restricted && p->value && !param_shared(k, i) ? "PDRT_RESTRICT " : "", p->name);
	}
	if (k->status && k->cg->backend->device)
		text_printf(&t, "%spd_state *pd_run, int pd_op", k->nparam ? ", " : "");
	return t.text ? t.text : "";
}

static const char *param_names(KernelFunc *k)
{
	Text t;
	text_init(&t, k->arena);
	for (int i = 0; i < k->nparam; i++)
		text_printf(&t, "%s%s", i ? ", " : "", k->params[i].name);
	if (k->status && k->cg->backend->device)
		text_printf(&t, "%spd_run, pd_op", k->nparam ? ", " : "");
	return t.text ? t.text : "";
}

// Tensors first, then sizes, each in the order in which they were asked for.
static void params_order(KernelFunc *k)
{
	KernelParam *ordered = NEW_ARRAY(k->arena, (size_t)k->nparam + 1, KernelParam);
	int n = 0;
	for (int sizes = 0; sizes < 2; sizes++)
		for (int i = 0; i < k->nparam; i++)
			if ((k->params[i].value == NULL) == (sizes == 1))
				ordered[n++] = k->params[i];
	k->params = ordered;
}

static void func_print(Codegen *cg, EmittedFunc *f)
{
	f->from = cg->functions.len;
	if (f->comment)
		text_printf(&cg->functions, "/* %s */\n", f->comment);
	for (const char *s = f->text; *s; s++) {
		if (*s == KERNEL_FN[0])
			text_str(&cg->functions, f->name);
		else if (*s == KERNEL_PARAMS[0])
			text_str(&cg->functions, *f->params ? f->params : "void");
		else
			text_char(&cg->functions, *s);
	}
	f->to = cg->functions.len;
	text_char(&cg->functions, '\n');
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

int kernel_add(Codegen *cg, EmittedFunc f, const char *stem)
{
	for (int i = 0; i < cg->nfunc; i++)
		if (same_text(cg->funcs[i].text, f.text) && same_text(cg->funcs[i].params, f.params) &&
		    same_text(cg->funcs[i].bounds, f.bounds))
			return i;
	f.name = names_unique(&cg->globals, stem);
	func_add(cg->arena, &cg->funcs, &cg->nfunc, &cg->cfunc, f);
	if (!cg->backend->late)
		func_print(cg, &cg->funcs[cg->nfunc - 1]);
	return cg->nfunc - 1;
}

const char *kernel_finish(KernelFunc *k)
{
	params_order(k);
	text_unbrace(&k->text);
	const Loc *loc = k->op->loc;
	const char *var = loc->var ? name_by_operator(k->arena, loc->var, loc->type)
	                           : k->op->info->short_name;
	const char *stem = arena_printf(k->arena, "compute_%s", name_sanitize(k->arena, var));
	k->number = kernel_add(k->cg,
	                       (EmittedFunc){.text = k->text.text,
	                                     .comment = k->comment,
	                                     .params = params_text(k, !k->small),
	                                     .bounds = k->bounds,
	                                     .arguments = param_names(k),
	                                     .called_params = params_text(k, false)},
	                       stem);
	k->cg->funcs[k->number].is_template = k->sizes != NULL;
	return k->cg->funcs[k->number].name;
}
