// Parameter files: loads persistables into the context's table, and writes them back.
//
// A combined file is one record per persistable, in the order of their sorted names, and holds no
// names: so every record is checked against the variable that the program declares. Other models
// have one file per parameter, each a single record. Called by the driver after model_read.
#include "frontend/read/desc.h"
#include "frontend/read/read.h"
#include "ir/base/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_LOD_LEVELS = 8, RECORD_VERSION = 0 };

typedef struct Loader {
	Context *c;
	const char *file;
	const uint8_t *data;
	size_t size, at;
	const char *var; // whose record is being read
} Loader;

static bool PRINTF_LIKE(2, 3) loader_fail(const Loader *l, const char *fmt, ...)
{
	const Loc loc = {.file = l->file, .block = -1, .op = -1, .var = l->var};
	va_list ap;
	va_start(ap, fmt);
	diag_verror(l->c->diag, &loc, NULL, fmt, ap);
	va_end(ap);
	return false;
}

// ---- one record -----------------------------------------------------------------------------

static bool take(Loader *l, void *to, size_t n, const char *what)
{
	if (n > l->size - l->at)
		return loader_fail(l, "the file ends at byte %zu, in the %s of this parameter", l->size,
		                   what);
	memcpy(to, l->data + l->at, n);
	l->at += n;
	return true;
}

static bool read_lod(Loader *l, Tensor *t)
{
	uint64_t levels = 0, bytes = 0;
	if (!take(l, &levels, sizeof levels, "LoD"))
		return false;
	if (levels > MAX_LOD_LEVELS)
		return loader_fail(
			l, "%" PRIu64 " LoD levels: not a parameter file, or parameters out of step", levels);
	t->nlod = (int)levels;
	t->lod = NEW_ARRAY(l->c->arena, levels, int64_t *);
	t->lod_len = NEW_ARRAY(l->c->arena, levels, size_t);
	for (size_t i = 0; i < levels; i++) {
		if (!take(l, &bytes, sizeof bytes, "LoD"))
			return false;
		if (bytes % sizeof(int64_t) || bytes > l->size - l->at)
			return loader_fail(l, "an LoD level of %" PRIu64 " bytes does not fit in the file",
			                   bytes);
		t->lod_len[i] = (size_t)bytes / sizeof(int64_t);
		t->lod[i] = NEW_ARRAY(l->c->arena, t->lod_len[i], int64_t);
		if (!take(l, t->lod[i], (size_t)bytes, "LoD"))
			return false;
	}
	return true;
}

static void *arena_take(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static void arena_keep(void *arena, void *what)
{
	(void)arena;
	(void)what;
}

// Element type and dims; sets *bytes to the size of the data.
static bool read_desc(Loader *l, Tensor *t, uint64_t *bytes)
{
	int32_t size = 0;
	ProtobufCAllocator allocator = {arena_take, arena_keep, l->c->arena};
	if (!take(l, &size, sizeof size, "description"))
		return false;
	if (size <= 0 || (size_t)size > l->size - l->at)
		return loader_fail(l,
		                   "a description of %" PRId32
		                   " bytes: not a parameter file, or parameters out of step",
		                   size);
	Paddle__TensorDesc *d = paddle__tensor_desc__unpack(&allocator, (size_t)size, l->data + l->at);
	l->at += (size_t)size;
	if (!d)
		return loader_fail(
			l, "its description is malformed: not a parameter file, or parameters out of step");
	if (!dtype_from_kind(d->data_type, &t->dtype))
		return loader_fail(l, "%" PRId32 " is no element type", d->data_type);
	if (d->n_dims > MAX_RANK)
		return loader_fail(l, "%zu axes are more than pdcc's %d", d->n_dims, MAX_RANK);
	t->rank = (int)d->n_dims;
	for (int i = 0; i < t->rank; i++)
		t->dims[i] = d->dims[i];
	return dims_bytes(t->dtype, t->rank, t->dims, bytes) ||
	       loader_fail(l, "its dims are negative or too large");
}

static Tensor *read_record(Loader *l)
{
	uint32_t version = 0;
	uint64_t bytes = 0;
	Tensor *t = NEW(l->c->arena, Tensor);
	for (int i = 0; i < 2; i++) { // of the LoD tensor, then of the tensor in it
		if (!take(l, &version, sizeof version, "header"))
			return NULL;
		if (version != RECORD_VERSION) {
			loader_fail(l,
			            "version %" PRIu32
			            " is unknown: not a parameter file, or parameters out of step",
			            version);
			return NULL;
		}
		if (i == 0 && !read_lod(l, t))
			return NULL;
	}
	if (!read_desc(l, t, &bytes))
		return NULL;
	if (bytes > l->size - l->at) {
		loader_fail(l,
		            "the file ends at byte %zu, but the data of this parameter need %" PRIu64
		            " bytes from %zu on",
		            l->size, bytes, l->at);
		return NULL;
	}
	const uint8_t *data = l->data + l->at;
	l->at += (size_t)bytes;
	// In place where the elements are aligned. Nobody writes to a parameter.
	size_t align = dtype_is_complex(t->dtype) ? dtype_size(t->dtype) / 2 : dtype_size(t->dtype);
	t->data = bytes ? (void *)(uintptr_t)data : NULL;
	if (bytes && (uintptr_t)data % align) {
		t->data = arena_big(l->c->arena, (size_t)bytes);
		memcpy(t->data, data, (size_t)bytes);
	}
	return t;
}

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

// ---- writing --------------------------------------------------------------------------------

static void put(Text *x, const void *data, size_t n)
{
	text_strn(x, data, n);
}

static void encode_record(Context *c, Text *x, const Tensor *t)
{
	const uint32_t version = RECORD_VERSION;
	uint64_t levels = (uint64_t)t->nlod;
	put(x, &version, sizeof version);
	put(x, &levels, sizeof levels);
	for (int i = 0; i < t->nlod; i++) {
		uint64_t bytes = t->lod_len[i] * sizeof(int64_t);
		put(x, &bytes, sizeof bytes);
		put(x, t->lod[i], (size_t)bytes);
	}
	put(x, &version, sizeof version);
	Paddle__TensorDesc d = PADDLE__TENSOR_DESC__INIT;
	d.data_type = kind_from_dtype(t->dtype);
	d.n_dims = (size_t)t->rank;
	d.dims = (int64_t *)(uintptr_t)t->dims;
	int32_t size = (int32_t)paddle__tensor_desc__get_packed_size(&d);
	uint8_t *packed = arena_alloc(c->arena, (size_t)size);
	paddle__tensor_desc__pack(&d, packed);
	put(x, &size, sizeof size);
	put(x, packed, (size_t)size);
	if (t->data)
		put(x, t->data, tensor_bytes(t));
}

bool params_encode(Context *c, int n, Tensor *const *tensors, uint8_t **data, size_t *size)
{
	Text x;
	text_init(&x, c->arena);
	for (int i = 0; i < n; i++)
		encode_record(c, &x, tensors[i]);
	*data = (uint8_t *)x.text;
	*size = x.len;
	return true;
}
