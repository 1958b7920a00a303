// Parameter files: loads persistables into the context's table. Records are in params_record.c.
//
// A combined file is one record per persistable, in the order of their sorted names, and holds no
// names: so every record is checked against the variable that the program declares. Other models
// have one file per parameter, each a single record. Called by the driver after model_read.
#include "frontend/read/desc.h"
#include "frontend/read/params_record.h"
#include "frontend/read/read.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// ---- against the program --------------------------------------------------------------------

static const char *numbers_text(Context *c, DType t, size_t rank, const int64_t *dims)
{
	Text x;
	text_init(&x, c->arena);
	text_printf(&x, "%s[", dtype_name(t));
	for (size_t i = 0; i < rank && i < MAX_RANK; i++)
		text_printf(&x, "%s%" PRId64, i ? ", " : "", dims[i]);
	text_char(&x, ']');
	return x.text;
}

// Old writers disagree with themselves about axes of size 1, and quantisers about the element type.
// The file is what Paddle runs with; a number of elements that differs means that the two do not
// belong together.
static bool check_record(Loader *l, const Paddle__VarDesc *v, const Tensor *t)
{
	const Paddle__TensorDesc *d = var_tensor(v);
	DType dtype;
	if (!d)
		return true;
	if (!dtype_from_kind(d->data_type, &dtype))
		return loader_fail(l, "the program gives it element type %" PRId32 ", which is none",
		                   d->data_type);
	bool same = d->n_dims == (size_t)t->rank, open = false;
	int64_t numel = 1;
	for (size_t i = 0; i < d->n_dims; i++) {
		open |= d->dims[i] < 0;
		same &= d->dims[i] < 0 || (i < (size_t)t->rank && d->dims[i] == t->dims[i]);
		if (__builtin_mul_overflow(numel, d->dims[i], &numel))
			numel = -1;
	}
	// Programs from before there were tensors without axes say [1] for those.
	same |= numel == 1 && tensor_numel(t) == 1;
	if (same && dtype == t->dtype)
		return true;
	const char *says = numbers_text(l->c, dtype, d->n_dims, d->dims);
	const char *holds = numbers_text(l->c, t->dtype, (size_t)t->rank, t->dims);
	if (!same && (open || dtype != t->dtype || numel != tensor_numel(t)))
		return loader_fail(
			l, "the program says %s, the file %s: wrong file, or parameters out of step", says,
			holds);
	diag_warning(l->c->diag, &(Loc){.file = l->file, .block = -1, .op = -1, .var = l->var},
	             "the program says %s, the file %s; using the latter", says, holds);
	return true;
}

static bool load_record(Loader *l, const Paddle__VarDesc *v)
{
	l->var = v->name;
	Tensor *t = read_record(l);
	if (!t || !check_record(l, v, t))
		return false;
	param_set(l->c, context_str(l->c, v->name), t);
	return true;
}

static bool open_file(Loader *l, const char *path)
{
	l->file = path;
	l->at = 0;
	l->data = file_map(l->c, path, &l->size);
	return l->data != NULL;
}

static bool load_combined(Loader *l, const char *path, size_t n, Paddle__VarDesc *const *vars)
{
	if (!open_file(l, path))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!load_record(l, vars[i]))
			return false;
	if (l->at == l->size)
		return true;
	l->var = NULL;
	return loader_fail(
		l, "%zu bytes are left after the last parameter, '%s': it belongs to another model",
		l->size - l->at, n ? vars[n - 1]->name : "none");
}

// ---- which persistables, which files --------------------------------------------------------

static int compare_vars(const void *a, const void *b)
{
	const Paddle__VarDesc *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

// All persistable tensors, each once, sorted by name.
static Paddle__VarDesc **collect(Context *c, const Paddle__ProgramDesc *p, size_t *n)
{
	size_t count = 0;
	for (size_t i = 0; i < p->n_blocks; i++)
		count += p->blocks[i]->n_vars;
	Paddle__VarDesc **vars = NEW_ARRAY(c->arena, count, Paddle__VarDesc *);
	NameMap *seen = name_map_new(c->arena);
	*n = 0;
	for (size_t i = 0; i < p->n_blocks; i++) {
		for (size_t j = 0; j < p->blocks[i]->n_vars; j++) {
			Paddle__VarDesc *v = p->blocks[i]->vars[j];
			if (!var_is_state(v) || name_map_get(seen, v->name))
				continue;
			name_map_set(seen, v->name, v);
			vars[(*n)++] = v;
		}
	}
	qsort(vars, *n, sizeof *vars, compare_vars);
	return vars;
}

const char *const *params_names(Context *c, const Paddle__ProgramDesc *p, int *n)
{
	size_t count;
	Paddle__VarDesc **vars = collect(c, p, &count);
	const char **names = NEW_ARRAY(c->arena, count + 1, const char *);
	for (size_t i = 0; i < count; i++)
		names[i] = context_str(c, vars[i]->name);
	*n = (int)count;
	return names;
}

// Keeps those that --param-names lists.
static bool select_names(Loader *l, size_t *n, Paddle__VarDesc **vars, int nnames,
                         const char *const *names)
{
	NameMap *wanted = name_map_new(l->c->arena);
	size_t kept = 0;
	for (int i = 0; i < nnames; i++)
		name_map_set(wanted, names[i], (void *)(uintptr_t)names[i]);
	for (size_t i = 0; i < *n; i++) {
		if (!name_map_get(wanted, vars[i]->name))
			continue;
		name_map_set(wanted, vars[i]->name, NULL);
		vars[kept++] = vars[i];
	}
	bool ok = true;
	for (int i = 0; i < nnames; i++) {
		if (!name_map_get(wanted, names[i]))
			continue;
		l->file = l->c->file;
		l->var = names[i];
		ok = loader_fail(l, "the program has no such persistable");
		name_map_set(wanted, names[i], NULL);
	}
	*n = kept;
	return ok;
}

// The persistables that some operator reads before one writes them: those that must come from a
// file.
static NameMap *read_first(Context *c, const Paddle__ProgramDesc *p)
{
	NameMap *needed = name_map_new(c->arena), *written = name_map_new(c->arena);
	for (size_t b = 0; b < p->n_blocks; b++) {
		for (size_t i = 0; i < p->blocks[b]->n_ops; i++) {
			const Paddle__OpDesc *op = p->blocks[b]->ops[i];
			for (size_t s = 0; s < op->n_inputs; s++)
				for (size_t k = 0; k < op->inputs[s]->n_arguments; k++)
					if (!name_map_get(written, op->inputs[s]->arguments[k]))
						name_map_set(needed, op->inputs[s]->arguments[k], needed);
			for (size_t s = 0; s < op->n_outputs; s++)
				for (size_t k = 0; k < op->outputs[s]->n_arguments; k++)
					name_map_set(written, op->outputs[s]->arguments[k], written);
		}
	}
	return needed;
}

// One file for each persistable. Those that the program sets before it reads them may be missing.
static bool load_folder(Loader *l, const Paddle__ProgramDesc *p, const char *folder, size_t n,
                        Paddle__VarDesc *const *vars)
{
	NameMap *needed = read_first(l->c, p);
	bool ok = true;
	for (size_t i = 0; i < n; i++) {
		const char *path = arena_printf(l->c->arena, "%s/%s", folder, vars[i]->name);
		if (!path_is_file(path)) {
			if (!name_map_get(needed, vars[i]->name))
				continue;
			l->file = folder;
			l->var = vars[i]->name;
			ok = loader_fail(l, "there is no file for this parameter");
			continue;
		}
		if (!open_file(l, path) || !load_record(l, vars[i])) {
			ok = false;
		} else if (l->at != l->size) {
			ok = loader_fail(l, "%zu bytes are left after this parameter", l->size - l->at);
		}
	}
	return ok;
}

// A combined file in the model's folder; NULL: none. `tried` lists where it looked.
static const char *find_beside(Context *c, const char *model, const char *folder, Text *tried)
{
	static const char *const fixed[] = {"__params__", "params"};
	const char *path, *dot = strrchr(model, '.');
	if (dot && dot > model && (!strcmp(dot, ".pdmodel") || !strcmp(dot, ".json"))) {
		path = arena_printf(c->arena, "%.*s.pdiparams", (int)(dot - model), model);
		text_str(tried, path);
		if (path_is_file(path))
			return path;
	}
	for (size_t i = 0; i < COUNT_OF(fixed); i++) {
		path = arena_printf(c->arena, "%s/%s", folder, fixed[i]);
		text_printf(tried, "%s%s", tried->len ? ", " : "", path);
		if (path_is_file(path))
			return path;
	}
	return NULL;
}

static const char *folder_of(Context *c, const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return ".";
	return slash == path ? "/" : arena_strndup(c->arena, path, (size_t)(slash - path));
}

// given: what the user named, the program or its folder.
static bool load_beside(Loader *l, const Paddle__ProgramDesc *p, const char *model,
                        const char *given, size_t n, Paddle__VarDesc *const *vars)
{
	Text tried;
	text_init(&tried, l->c->arena);
	const char *folder = folder_of(l->c, model);
	const char *path = find_beside(l->c, model, folder, &tried);
	if (!path && path_is_folder(given) && !folder_params(l->c, given, &path))
		return false;
	if (path)
		return load_combined(l, path, n, vars);
	for (size_t i = 0; i < n; i++)
		if (path_is_file(arena_printf(l->c->arena, "%s/%s", folder, vars[i]->name)))
			return load_folder(l, p, folder, n, vars);
	NameMap *needed = read_first(l->c, p);
	for (size_t i = 0; i < n; i++) {
		if (name_map_get(needed, vars[i]->name)) {
			l->file = model;
			return loader_fail(
				l, "its parameters are missing (first '%s'): looked for %s, and for one file each",
				vars[i]->name, tried.text);
		}
	}
	return true;
}

bool params_load(Context *c, const Paddle__ProgramDesc *p, const char *model_path, const char *path,
                 int nnames, const char *const *names)
{
	size_t n;
	Loader l = {.c = c};
	Paddle__VarDesc **vars = collect(c, p, &n);
	if (nnames && !select_names(&l, &n, vars, nnames, names))
		return false;
	if (n == 0 && !path)
		return true;
	// model_read has resolved a folder to the file in it.
	const char *model = c->file ? c->file : model_path;
	if (!path)
		return load_beside(&l, p, model, model_path, n, vars);
	if (!path_is_folder(path))
		return load_combined(&l, path, n, vars);
	Text tried;
	text_init(&tried, c->arena);
	const char *combined = find_beside(c, "", path, &tried);
	if (!combined && !folder_params(c, path, &combined))
		return false;
	return combined ? load_combined(&l, combined, n, vars) : load_folder(&l, p, path, n, vars);
}

// ---- for IR text ----------------------------------------------------------------------------

typedef struct NameList {
	Context *c;
	NameMap *seen;
	bool all;
	const char **names; // NULL while they are only counted
	size_t n;
} NameList;

static bool name_wanted(Op *op, void *arg)
{
	NameList *l = arg;
	if (op->code != OP_BUILTIN_GET_PARAMETER && !(l->all && op->code == OP_BUILTIN_SET_PARAMETER))
		return true;
	const char *name = op_str(op, "name", "");
	if ((!l->all && param_get(l->c, name)) || name_map_get(l->seen, name) == l)
		return true;
	if (l->names) {
		name_map_set(l->seen, name, l);
		l->names[l->n] = name;
	}
	l->n++;
	return true;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The parameters that a module reads and nobody has loaded yet, or (all) that it reads or writes,
// sorted.
static const char **module_names(Context *c, Op *module, bool all, size_t *n)
{
	NameList l = {.c = c, .seen = name_map_new(c->arena), .all = all};
	op_walk(module, name_wanted, &l);
	l.names = NEW_ARRAY(c->arena, l.n + 1, const char *);
	l.n = 0;
	op_walk(module, name_wanted, &l);
	qsort(l.names, l.n, sizeof *l.names, compare_names);
	*n = l.n;
	return l.names;
}

const char *const *params_module_names(Context *c, Op *module, int *n)
{
	size_t count;
	const char *const *names = module_names(c, module, true, &count);
	*n = (int)count;
	return names;
}

static bool load_named(Loader *l, const char *name)
{
	l->var = name;
	Tensor *t = read_record(l);
	if (t)
		param_set(l->c, context_str(l->c, name), t);
	return t != NULL;
}

// Text has no declarations to check records against: the verifier compares them with the types of
// the operations that read them.
bool params_load_module(Context *c, Op *module, const char *path, int nnames,
                        const char *const *names)
{
	size_t n = (size_t)nnames;
	Loader l = {.c = c};
	const char **wanted = nnames ? NEW_ARRAY(c->arena, n, const char *) : NULL;
	if (nnames) {
		memcpy(wanted, names, n * sizeof *wanted);
		qsort(wanted, n, sizeof *wanted, compare_names);
	} else {
		wanted = module_names(c, module, false, &n);
	}
	bool folder = path_is_folder(path);
	if (!folder && !open_file(&l, path))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (folder && !open_file(&l, arena_printf(c->arena, "%s/%s", path, wanted[i])))
			return false;
		if (!load_named(&l, wanted[i]))
			return false;
	}
	if (folder || l.at == l.size)
		return true;
	l.var = NULL;
	return loader_fail(&l,
	                   "%zu bytes are left after the last of the %zu parameters of the text; "
	                   "--param-names says which ones the file holds",
	                   l.size - l.at, n);
}

// ---- state ----------------------------------------------------------------------------------

// Whether what the file holds is what the parameter held so far, in all but its numbers.
static bool state_fits(Loader *l, const Tensor *t, const Tensor *before)
{
	bool same = !before || (t->dtype == before->dtype && t->rank == before->rank);
	for (int i = 0; before && same && i < t->rank; i++)
		same = t->dims[i] == before->dims[i];
	return same ||
	       loader_fail(l, "the state says %s, the program %s: the state of something else",
	                   numbers_text(l->c, t->dtype, (size_t)t->rank, t->dims),
	                   numbers_text(l->c, before->dtype, (size_t)before->rank, before->dims));
}

// The records that are left; -1 after a diagnostic.
static int read_records(Loader *l, Tensor ***records)
{
	int n = 0, room = 0;
	*records = NULL;
	while (l->at < l->size) {
		Tensor *t = read_record(l);
		if (!t)
			return -1;
		VEC_ROOM(l->c->arena, *records, n, room);
		(*records)[n++] = t;
	}
	return n;
}

bool params_load_state(Context *c, const char *path, int n, const char *const *names)
{
	Loader l = {.c = c};
	Tensor **read;
	int valued = 0;
	const int records = open_file(&l, path) ? read_records(&l, &read) : -1;
	if (records < 0)
		return false;
	for (int i = 0; i < n; i++)
		valued += param_get(c, names[i]) != NULL;
	if (records != n && records != valued)
		return loader_fail(&l, "%d records, but %d persistables: the state of something else",
		                   records, valued);
	for (int i = 0; i < n; i++) {
		Tensor *before = param_get(c, names[i]);
		if (!before && records != n)
			continue;
		l.var = names[i];
		if (!state_fits(&l, *read, before))
			return false;
		param_set(c, names[i], *read++);
	}
	return true;
}
