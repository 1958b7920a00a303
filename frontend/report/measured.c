// `info --html --measured FILE`: what `bench --profile --json` said of the steps of a model, for
// the page's column of costs. Called by the driver.
#include "frontend/report/report.h"
#include "ir/base/vec.h"

#include <json.h>
#include <string.h>

struct MeasuredStep {
	const char *kernel, *type, *var;
	double us;
};

static const char *string_of(Context *c, json_object *step, const char *key)
{
	json_object *v = NULL;
	return json_object_object_get_ex(step, key, &v) && json_object_is_type(v, json_type_string)
	           ? arena_printf(c->arena, "%s", json_object_get_string(v))
	           : NULL;
}

static bool number_of(json_object *o, const char *key, double *n)
{
	json_object *v = NULL;
	if (!json_object_object_get_ex(o, key, &v) ||
	    !(json_object_is_type(v, json_type_double) || json_object_is_type(v, json_type_int)))
		return false;
	*n = json_object_get_double(v);
	return *n >= 0;
}

static bool steps_read(Context *c, json_object *root, Measured *m)
{
	json_object *steps = NULL;
	if (!json_object_is_type(root, json_type_object) || !number_of(root, "us", &m->us) ||
	    !json_object_object_get_ex(root, "steps", &steps) ||
	    !json_object_is_type(steps, json_type_array))
		return false;
	m->n = (int)json_object_array_length(steps);
	m->steps = NEW_ARRAY(c->arena, (size_t)m->n + 1, MeasuredStep);
	for (int i = 0; i < m->n; i++) {
		json_object *step = json_object_array_get_idx(steps, (size_t)i);
		MeasuredStep *to = &m->steps[i];
		if (!json_object_is_type(step, json_type_object) ||
		    !(to->kernel = string_of(c, step, "kernel")) ||
		    !(to->type = string_of(c, step, "operator")) ||
		    !(to->var = string_of(c, step, "variable")) || !number_of(step, "us", &to->us))
			return false;
	}
	return true;
}

bool measured_read(Context *c, const char *path, const Op *module, Measured *m)
{
	json_object *root = json_object_from_file(path);
	const Loc at = {.file = path, .block = -1, .op = -1};
	const bool read = root && steps_read(c, root, m);
	json_object_put(root);
	if (!read) {
		diag_error(c->diag, &at, "no steps as `pdcc bench --profile --json` prints them");
		return false;
	}
	for (const Block *b = module->regions[0].first; b; b = b->next)
		for (const Op *op = b->first; op; op = op->next)
			if (measured_us(m, op) >= 0)
				return true;
	diag_error(c->diag, &at,
	           "none of its steps is one of this model's: is it of another model, or "
	           "another --isa?");
	return false;
}

double measured_us(const Measured *m, const Op *op)
{
	const char *type = op->loc->type ? op->loc->type : op->info->name;
	const char *var = op->loc->var ? op->loc->var : op->nresult ? op->results[0].name : NULL;
	for (int i = 0; i < m->n; i++)
		if (!strcmp(m->steps[i].kernel, op->info->name) && !strcmp(m->steps[i].type, type) &&
		    !strcmp(m->steps[i].var, var ? var : ""))
			return m->steps[i].us;
	return -1;
}
