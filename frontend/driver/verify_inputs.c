// Inputs that `pdcc verify` is not given are made up, as the harness does for `pdcc bench`: open
// sizes that no other input fixes are 1, numbers are fractions, or zeros where they may be indices.
// They go through files, since the interpreter and the generated program both read those.
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"

#include <string.h>

typedef struct SizeFound {
	const Dim *symbol;
	int64_t value;
} SizeFound;

typedef struct MakeInputs {
	Driver *d;
	RunCall *call;
	int nsize;
	SizeFound *sizes; // that given inputs fix
	const char *folder;
} MakeInputs;

static const RunInput *input_find(const RunCall *call, const char *name)
{
	for (int i = 0; i < call->ninput; i++) {
		if (!strcmp(call->inputs[i].name, name))
			return &call->inputs[i];
	}
	return NULL;
}

static int64_t size_value(const Dim *symbol, void *arg)
{
	const MakeInputs *m = arg;
	for (int i = 0; i < m->nsize; i++) {
		if (m->sizes[i].symbol == symbol)
			return m->sizes[i].value;
	}
	return 1;
}

static bool sizes_learn(MakeInputs *m, const Type *type, const char *path)
{
	const Tensor *t = npy_read(m->d->ctx, path);
	for (int i = 0; t && i < type->rank && t->rank == type->rank; i++) {
		if (type->dims[i]->kind == DIM_SYM)
			m->sizes[m->nsize++] = (SizeFound){type->dims[i], t->dims[i]};
	}
	return t != NULL;
}

// The generator of the harness, so that both commands see the same numbers.
static void tensor_fill(Tensor *t)
{
	uint32_t state = 1;
	memset(t->data, 0, tensor_bytes(t));
	for (int64_t i = 0; t->dtype == DT_F32 && i < tensor_numel(t); i++) {
		state = state * 1664525u + 1013904223u;
		((float *)t->data)[i] = (float)(state >> 8) * 0x1p-24f;
	}
}

static bool input_make(MakeInputs *m, const char *name, const Type *type)
{
	Context *c = m->d->ctx;
	int64_t dims[MAX_RANK];
	Text said;
	text_init(&said, c->arena);
	for (int i = 0; i < type->rank; i++) {
		if (!dim_eval(type->dims[i], size_value, m, &dims[i])) {
			diag_error(c->diag, NULL, "input '%s' is not given, and its sizes are not clear", name);
			return false;
		}
		text_printf(&said, "%s%lld", i ? " x " : "", (long long)dims[i]);
	}
	if (!m->folder && !(m->folder = temp_folder(c)))
		return false;
	Tensor *t = tensor_new(c->arena, type->dtype, type->rank, dims);
	tensor_fill(t);
	RunCall *call = m->call;
	const char *path = arena_printf(c->arena, "%s/%d.npy", m->folder, call->ninput);
	fprintf(stderr, "pdcc: note: input '%s' is not given: made up [%s]\n", name,
	        said.text ? said.text : "");
	call->inputs[call->ninput++] = (RunInput){.name = name, .path = path};
	return npy_write(c, path, t);
}

// What a feed is, as far as one array can be made for it.
static bool feed_is_plain(const Op *op)
{
	return op->code == OP_PD_FEED && type_is_tensor(op->results[0].type) &&
	       !op_attr(op, "lod_of") && !op_attr(op, "part");
}

bool verify_inputs(Driver *d, Op *module)
{
	Context *c = d->ctx;
	const RunCall given = d->options->ncall ? d->options->calls[0] : (RunCall){0};
	int n = 0, missing = 0;
	for (const Op *op = module_block(module)->first; op; op = op->next) {
		n += op->code == OP_PD_FEED;
		missing += feed_is_plain(op) && !input_find(&given, op_str(op, "name", ""));
	}
	if (!missing)
		return true;
	RunCall *call = NEW(c->arena, RunCall);
	*call = (RunCall){.ninput = given.ninput, .cap = given.ninput + n};
	call->inputs = NEW_ARRAY(c->arena, (size_t)call->cap + 1, RunInput);
	for (int i = 0; i < given.ninput; i++)
		call->inputs[i] = given.inputs[i];
	MakeInputs m = {.d = d, .call = call};
	m.sizes = NEW_ARRAY(c->arena, (size_t)n * MAX_RANK + 1, SizeFound);
	for (const Op *op = module_block(module)->first; op; op = op->next) {
		const RunInput *in = feed_is_plain(op) ? input_find(&given, op_str(op, "name", "")) : NULL;
		if (in && !sizes_learn(&m, op->results[0].type, in->path))
			return false;
	}
	for (const Op *op = module_block(module)->first; op; op = op->next) {
		const char *name = op_str(op, "name", "");
		if (feed_is_plain(op) && !input_find(&given, name) &&
		    !input_make(&m, name, op->results[0].type))
			return false;
	}
	Options *options = NEW(c->arena, Options);
	*options = *d->options;
	options->calls = call;
	options->ncall = 1;
	d->options = options;
	return true;
}
