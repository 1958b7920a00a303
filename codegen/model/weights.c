// Parameters and constants: gathered into the bytes of model.weights at the offsets that the plan
// gave them, or printed as C arrays. Called by codegen.c.
#include "codegen/model/model.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { INLINE_LIMIT = 64 * 1024, PER_LINE = 8 };

// Hexadecimal, hence exact, and short for what is short.
static void float_print(Text *t, double v, bool single)
{
	if (isnan(v) || isinf(v))
		text_str(t, isnan(v) ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY");
	else if (fabs(v) < 1000 && v == (double)(int)v && !(v == 0 && signbit(v)))
		text_printf(t, single ? "%d.0f" : "%d.0", (int)v);
	else
		text_printf(t, single ? "%af" : "%a", v);
}

static double complex_part(const Tensor *data, int64_t i, int part)
{
	return data->dtype == DT_C64 ? ((const float *)data->data)[2 * i + part]
	                             : ((const double *)data->data)[2 * i + part];
}

static void element_print(Text *t, const Tensor *data, int64_t i)
{
	switch (data->dtype) {
	case DT_F32:
	case DT_F64: float_print(t, tensor_get_f(data, i), data->dtype == DT_F32); return;
	case DT_C64:
	case DT_C128:
		text_char(t, '{');
		float_print(t, complex_part(data, i, 0), data->dtype == DT_C64);
		text_str(t, ", ");
		float_print(t, complex_part(data, i, 1), data->dtype == DT_C64);
		text_char(t, '}');
		return;
	case DT_F16:
	case DT_BF16: text_printf(t, "0x%04x", ((const uint16_t *)data->data)[i]); return;
	default: {
		int64_t v = tensor_get_i(data, i);
		if (v == INT64_MIN)
			text_str(t, "INT64_MIN");
		else
			text_printf(t,
			            data->dtype == DT_I64 && (v > INT32_MAX || v < -INT32_MAX)
			                ? "INT64_C(%" PRId64 ")"
			                : "%" PRId64,
			            v);
	}
	}
}

static void array_print(Codegen *cg, Text *t, const char *name, const char *param,
                        const Tensor *data)
{
	int64_t n = tensor_numel(data);
	text_printf(t, "/* %s */\n", comment_text(cg->arena, param));
	text_printf(t, "PDRT_ALIGN64 static const %s %s[%" PRId64 "] = {", dtype_c_memory(data->dtype),
	            name, n ? n : 1);
	for (int64_t i = 0; i < n; i++) {
		text_str(t, i % PER_LINE ? " " : "\n\t");
		element_print(t, data, i);
		text_char(t, ',');
	}
	text_str(t, n ? "\n};\n\n" : dtype_is_complex(data->dtype) ? "{0, 0}};\n\n" : "0};\n\n");
}

static const Tensor *op_data(const Codegen *cg, const Op *op)
{
	if (op->code == OP_BUILTIN_CONSTANT)
		return op_attr(op, "value")->tensor;
	return op->code == OP_BUILTIN_GET_PARAMETER ? param_get(cg->ctx, op_str(op, "name", "")) : NULL;
}

static bool parameter_check(Codegen *cg, const Op *op, const Tensor *data, const Place *p,
                            int64_t *offset)
{
	if (!data) {
		diag_error(cg->ctx->diag, op->loc, "no data for parameter '%s'", op_str(op, "name", ""));
		return false;
	}
	*offset = p->offset && p->offset->kind == DIM_CONST ? p->offset->value : -1;
	size_t bytes = tensor_bytes(data);
	if (*offset >= 0 && *offset <= cg->weights_size &&
	    bytes <= (size_t)(cg->weights_size - *offset))
		return true;
	diag_error(cg->ctx->diag, op->loc, "code generation: the plan has no room for parameter '%s'",
	           op_str(op, "name", "constant"));
	return false;
}

// One array per place: parameters that share bytes share it.
static void array_collect(Codegen *cg, const Op *op, const Tensor *data, int64_t offset,
                          WeightsArray **at)
{
	if (!*at) {
		WeightsArray *array = NEW(cg->arena, WeightsArray);
		const char *param = op_str(op, "name", op->loc->var ? op->loc->var : "constant");
		array->name = names_unique(
			&cg->globals, arena_printf(cg->arena, "weights_%s", name_sanitize(cg->arena, param)));
		text_init(&array->text, cg->arena);
		array_print(cg, &array->text, array->name, param, data);
		*(cg->last_array ? &cg->last_array->next : &cg->arrays) = array;
		cg->last_array = *at = array;
		text_line(&cg->uploads, 1, "pd_copy_in(&queue, uploads + %" PRId64 ", %s, %zu);", offset,
		          array->name, tensor_bytes(data));
	}
	pointer_map_set(&cg->param_arrays, &op->results[0], *at);
}

// What a parameter that runs change holds before the first one. False after a diagnostic.
static bool initial_collect(Codegen *cg, const Op *op)
{
	State *s = state_find(cg, op);
	if (!s || s->initial < 0)
		return true;
	const Tensor *data = op_data(cg, op);
	const Place p = {.offset = dim_const(cg->ctx, s->initial)};
	int64_t offset;
	if (!parameter_check(cg, op, data, &p, &offset))
		return false;
	memcpy(cg->weights + offset, data->data, tensor_bytes(data));
	weights_plan_add(cg, s->name, op->results[0].type, offset);
	if (cg->inline_weights && !s->array)
		array_collect(cg, op, data, offset, &s->array);
	if (s->array)
		pointer_map_set(&cg->used_arrays, s->array, s->array);
	return true;
}

void weights_print(const Codegen *cg, Text *out)
{
	for (const WeightsArray *a = cg->arrays; a; a = a->next)
		if (cg->backend->device || pointer_map_get(&cg->used_arrays, a)) // all go to the device
			text_str(out, a->text.text);
}

// Where weights go, by the options.
static void weights_mode(Codegen *cg)
{
	const WeightsMode mode = cg->options->weights;
	cg->inline_weights = mode == WEIGHTS_INLINE ||
	                     (mode == WEIGHTS_AUTO && cg->weights_size <= INLINE_LIMIT) ||
	                     !cg->weights_size;
	cg->object_weights = !cg->inline_weights && (mode == WEIGHTS_OBJECT || call_wanted(cg));
}

bool weights_collect(Codegen *cg)
{
	const Attr *size = op_attr(cg->module, "weights");
	if (size && size->dim->kind != DIM_CONST) {
		diag_error(cg->ctx->diag, &loc_unknown,
		           "code generation: the size of the weights is not constant");
		return false;
	}
	cg->weights_size = size ? size->dim->value : 0;
	weights_mode(cg);
	cg->weights = weights_room(cg);
	cg->weights_plan = BYTES_HASH_START;
	states_collect(cg);
	WeightsArray **arrays = NEW_ARRAY(cg->arena, (size_t)cg->weights_size / 64 + 1, WeightsArray *);
	for (const Op *op = module_first(cg->module); op; op = module_next(op)) {
		if (op->code != OP_BUILTIN_GET_PARAMETER && op->code != OP_BUILTIN_CONSTANT)
			continue;
		Place p = value_place(&op->results[0]);
		if (p.state && !initial_collect(cg, op))
			return false;
		if (p.kind != PLACE_PARAM)
			continue;
		const Tensor *data = op_data(cg, op);
		int64_t offset;
		if (!parameter_check(cg, op, data, &p, &offset))
			return false;
		if (tensor_bytes(data))
			memcpy(cg->weights + offset, data->data, tensor_bytes(data));
		weights_plan_add(cg, op_str(op, "name", ""), op->results[0].type, offset);
		if (cg->inline_weights && !constant_is_text(cg, &op->results[0]))
			array_collect(cg, op, data, offset, &arrays[offset / 64]);
	}
	weights_sign(cg);
	return true;
}
