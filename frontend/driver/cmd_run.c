// `pdcc run`: compiles, builds and runs a model on .npy files, or interprets it.
#include "frontend/driver/driver.h"
#include "frontend/read/read.h"
#include "ir/interp/interp.h"
#include "lower/target/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// ---- the interpreter --------------------------------------------------------------------------

// One level of offsets, up to `;` or the end. NULL after a diagnostic.
static const char *parse_level(Driver *d, const RunInput *in, const char *s, int64_t *offsets,
                               size_t *n)
{
	*n = 0;
	for (;; s++) {
		char *end;
		errno = 0;
		long long v = strtoll(s, &end, 10);
		if (end == s || errno || v < 0 || (*end && *end != ',' && *end != ';')) {
			diag_error(d->ctx->diag, NULL, "--lod %s: '%s' is no list of offsets", in->name,
			           in->lod);
			return NULL;
		}
		if (v < (*n ? offsets[*n - 1] : 0) || (!*n && v)) {
			diag_error(d->ctx->diag, NULL, "--lod %s: offsets start at 0 and do not fall",
			           in->name);
			return NULL;
		}
		offsets[(*n)++] = v;
		s = end;
		if (*s != ',')
			return s;
	}
}

// Gives a fed tensor its LoD. False after a diagnostic.
static bool set_lod(Driver *d, const RunInput *in, Tensor *t)
{
	enum { MAX_LEVELS = 8 };
	Arena *a = d->ctx->arena;
	size_t room = strlen(in->lod) + 1;
	t->lod = NEW_ARRAY(a, MAX_LEVELS, int64_t *);
	t->lod_len = NEW_ARRAY(a, MAX_LEVELS, size_t);
	t->nlod = 0;
	for (const char *s = in->lod;; s++) {
		if (t->nlod == MAX_LEVELS) {
			diag_error(d->ctx->diag, NULL, "--lod %s: more than %d levels", in->name, MAX_LEVELS);
			return false;
		}
		t->lod[t->nlod] = NEW_ARRAY(a, room, int64_t);
		s = parse_level(d, in, s, t->lod[t->nlod], &t->lod_len[t->nlod]);
		if (!s)
			return false;
		t->nlod++;
		if (!*s)
			break;
	}
	for (int i = 0; i < t->nlod; i++) {
		int64_t end = t->lod[i][t->lod_len[i] - 1];
		int64_t want = i + 1 < t->nlod ? (int64_t)t->lod_len[i + 1] - 1 : t->rank ? t->dims[0] : 0;
		if (end != want) {
			diag_error(d->ctx->diag, NULL, "--lod %s: level %d ends at %lld, not at %lld", in->name,
			           i, (long long)end, (long long)want);
			return false;
		}
	}
	return true;
}

// A fetched tensor, and its LoD as a line of offsets per level.
static bool write_tensor(Driver *d, const char *stem, const Tensor *t)
{
	Context *c = d->ctx;
	if (!npy_write(c, arena_printf(c->arena, "%s.npy", stem), t))
		return false;
	Text text;
	text_init(&text, c->arena);
	for (int i = 0; i < t->nlod; i++)
		for (size_t k = 0; k < t->lod_len[i]; k++)
			text_printf(&text, "%lld%s", (long long)t->lod[i][k],
			            k + 1 < t->lod_len[i] ? "," : "\n");
	return !t->nlod || file_write(c, arena_printf(c->arena, "%s.lod", stem), text.text, text.len);
}

bool driver_write_fetches(Driver *d, Interp *in, int run)
{
	Context *c = d->ctx;
	const char *folder = arena_printf(c->arena, "%s/%d", d->options->out_dir, run);
	if (!folder_make(c, folder))
		return false;
	for (int i = 0; i < interp_fetch_count(in); i++) {
		Tensor *t = interp_fetch(in, i);
		if (t && !write_tensor(d, arena_printf(c->arena, "%s/%d", folder, i), t))
			return false;
		for (int k = 0; k < interp_fetch_length(in, i); k++) {
			t = interp_fetch_element(in, i, k);
			if (t && !write_tensor(d, arena_printf(c->arena, "%s/%d.%d", folder, i, k), t))
				return false;
		}
	}
	return true;
}

Interp *driver_interpreter(Driver *d, const RunCall *call)
{
	Interp *in = interp_new(d->ctx, d->ctx->arena);
	interp_set_max_trip(in, d->options->max_trip);
	for (int i = 0; i < call->ninput; i++) {
		const RunInput *input = &call->inputs[i];
		Tensor *t = npy_read(d->ctx, input->path);
		if (!t || (input->lod && !set_lod(d, input, t)))
			return NULL;
		interp_add_feed(in, input->name, t);
	}
	return in;
}

static bool run_interpreter(Driver *d, Op *module)
{
	const RunCall none = {0};
	int ncall = d->options->ncall ? d->options->ncall : 1;
	for (int i = 0; i < ncall; i++) {
		const RunCall *call = d->options->ncall ? &d->options->calls[i] : &none;
		stage_begin(d, "interpret");
		Interp *in = driver_interpreter(d, call);
		if (!in || !interp_run(in, module) || !driver_write_fetches(d, in, i))
			return false;
	}
	return true;
}

// Those that have a value, in the order of their names. A NULL path wants nothing.
static bool save_state(Driver *d, const char *path, int count, const char *const *names)
{
	Context *c = d->ctx;
	Tensor **tensors = NEW_ARRAY(c->arena, (size_t)count + 1, Tensor *);
	int n = 0;
	for (int i = 0; path && i < count; i++)
		if ((tensors[n] = param_get(c, names[i])))
			n++;
	uint8_t *data;
	size_t size;
	return !path || (params_encode(c, n, tensors, &data, &size) && file_write(c, path, data, size));
}

static bool run_model(Driver *d, Op *module)
{
	if (!strcmp(d->options->target, "interp"))
		return run_interpreter(d, module);
	const Target *t = driver_target_to_run(d);
	BuiltModel b;
	return t && driver_lower(d, module, t, NULL) &&
	       model_build(d, module, t, d->options->keep, &b) &&
	       model_execute(d, &b, d->options->out_dir);
}

// Derivatives are called after what they belong to, not after their columns.
static bool name_derivatives(Driver *d, int column)
{
	Context *c = d->ctx;
	const Options *o = d->options;
	for (int i = 0; i < o->nderivative; i++) {
		const Derivative *v = &o->derivatives[i];
		for (int k = 0; k < (v->forward ? 1 : v->nwrt); k++, column++)
			for (int run = 0; run < (o->ncall ? o->ncall : 1); run++) {
				const char *from = arena_printf(c->arena, "%s/%d/%d.npy", o->out_dir, run, column),
						   *to = arena_printf(c->arena, "%s/%d/%s.npy", o->out_dir, run,
				                              derivative_name(c, v, k));
				if (!rename(from, to))
					continue;
				diag_error(c->diag, NULL, "%s: %s", to, strerror(errno));
				return false;
			}
	}
	return true;
}

// The column of the first derivative; all of them stand behind the others.
static int derivative_column(const Options *o, Op *module)
{
	int64_t first = 0;
	for (const Op *op = module_block(module)->first; op; op = op->next)
		if (op->code == OP_PD_FETCH && op_int(op, "col", 0) >= first)
			first = op_int(op, "col", 0) + 1;
	for (int i = 0; i < o->nderivative; i++)
		first -= o->derivatives[i].forward ? 1 : o->derivatives[i].nwrt;
	return (int)first;
}

int cmd_run(Driver *d)
{
	const Options *o = d->options;
	Op *module = driver_load(d);
	int first = module ? derivative_column(o, module) : 0;
	if (!module || !folder_make(d->ctx, o->out_dir) || !run_model(d, module) ||
	    !name_derivatives(d, first))
		return 1;
	return !save_state(d, o->save_state, d->npersistable, d->persistables) ||
	       !save_state(d, o->save_params, d->nown, d->own);
}
