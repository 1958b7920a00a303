// What lies in a folder that is given in place of a model: its program, and its parameters where
// their name is not that of the program. Used by model.c and params.c.
#include "frontend/read/desc.h"
#include "frontend/read/read.h"
#include "ir/base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD_BYTES = 4096 };

typedef struct NameVec {
	int n, cap;
	const char **names;
} NameVec;

bool path_is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool path_is_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);
	return n > k && strcmp(s + n - k, suffix) == 0;
}

static void folder_close(void *what)
{
	DIR **d = what;
	if (*d)
		closedir(*d);
	*d = NULL;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Names in the folder with this ending, sorted. False after a diagnostic.
static bool folder_list(Context *c, const char *folder, const char *suffix, NameVec *v)
{
	DIR **d = NEW(c->arena, DIR *);
	*v = (NameVec){0};
	arena_on_free(c->arena, folder_close, d); // names are kept in the arena, which may fail
	if (!(*d = opendir(folder))) {
		Loc l = {.file = folder, .block = -1, .op = -1};
		diag_error(c->diag, &l, "cannot open: %s", strerror(errno));
		return false;
	}
	for (struct dirent *e; (e = readdir(*d));) {
		if (!ends_with(e->d_name, suffix))
			continue;
		VEC_ROOM(c->arena, v->names, v->n, v->cap);
		v->names[v->n++] = arena_strndup(c->arena, e->d_name, strlen(e->d_name));
	}
	folder_close(d);
	if (v->n)
		qsort(v->names, (size_t)v->n, sizeof *v->names, compare_names);
	return true;
}

// One name of several is for the user to choose. NULL after a diagnostic.
static const char *only(Context *c, const char *folder, const char *what, const NameVec *v)
{
	Loc l = {.file = folder, .block = -1, .op = -1};
	Text t;
	if (v->n == 1)
		return arena_printf(c->arena, "%s/%s", folder, v->names[0]);
	text_init(&t, c->arena);
	for (int i = 0; i < v->n; i++)
		text_printf(&t, "%s%s", i ? ", " : "", v->names[i]);
	diag_error(c->diag, &l, "holds several %s: %s; name one of them", what, t.text);
	return NULL;
}

// Paddle 3 writes `{"base_code": ...` first. Other .json files lie in folders of models, too.
static bool is_program(Context *c, const char *folder, const char *name)
{
	char head[HEAD_BYTES + 1];
	FILE *f = fopen(arena_printf(c->arena, "%s/%s", folder, name), "rb");
	const size_t n = f ? fread(head, 1, HEAD_BYTES, f) : 0;
	if (f)
		fclose(f);
	head[n] = 0;
	return strstr(head, "\"base_code\"") != NULL;
}

const char *folder_program(Context *c, const char *folder)
{
	NameVec found, json;
	if (!folder_list(c, folder, ".pdmodel", &found) || !folder_list(c, folder, ".json", &json))
		return NULL;
	if (path_is_file(arena_printf(c->arena, "%s/__model__", folder))) {
		VEC_ROOM(c->arena, found.names, found.n, found.cap);
		found.names[found.n++] = "__model__";
	}
	for (int i = 0; i < json.n; i++) {
		if (!is_program(c, folder, json.names[i]))
			continue;
		VEC_ROOM(c->arena, found.names, found.n, found.cap);
		found.names[found.n++] = json.names[i];
	}
	if (!found.n)
		found = json;
	if (found.n)
		return only(c, folder, "programs", &found);
	Loc l = {.file = folder, .block = -1, .op = -1};
	diag_error(c->diag, &l, "holds neither a .pdmodel or .json file nor __model__");
	return NULL;
}

bool folder_params(Context *c, const char *folder, const char **path)
{
	NameVec found;
	*path = NULL;
	if (!folder_list(c, folder, ".pdiparams", &found))
		return false;
	if (found.n)
		*path = only(c, folder, "parameter files", &found);
	return !found.n || *path;
}
