// A legacy program as text, in the form in which Paddle prints one: `--emit=legacy`. Everything
// that is in the file is printed, sound or not; names go through text_word, so that no name can
// break the form. Called by cmd_compile.c.
#include "frontend/read/desc.h"
#include "frontend/read/read.h"

#include <inttypes.h>
#include <string.h>

// A word, with what would end or hide it escaped.
static void text_word(Text *t, const char *s)
{
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '\'' || c == '\\' || c < 0x20 || c == 0x7f)
			text_printf(t, "\\x%02x", c);
		else
			text_char(t, *s);
	}
}

static void text_name(Text *t, const char *s)
{
	text_char(t, '\'');
	text_word(t, s);
	text_char(t, '\'');
}

static void text_truth(Text *t, bool v)
{
	text_str(t, v ? "True" : "False");
}

// Paddle's names of element types.
static const char *element_name(int32_t kind)
{
	static const char *const names[] = {
		[DT_BOOL] = "bool",   [DT_U8] = "uint8",      [DT_I8] = "int8",
		[DT_I16] = "int16",   [DT_I32] = "int32",     [DT_I64] = "int64",
		[DT_F16] = "float16", [DT_BF16] = "bfloat16", [DT_F32] = "float32",
		[DT_F64] = "float64", [DT_C64] = "complex64", [DT_C128] = "complex128"};
	DType d;
	return dtype_from_kind(kind, &d) ? names[d] : "?";
}

static void var_print(Text *t, const Paddle__VarDesc *v)
{
	const Paddle__TensorDesc *tensor = var_tensor(v);
	text_printf(t, "    %s ", v->has_persistable && v->persistable ? "persist" : "var");
	text_word(t, v->name);
	text_printf(t, " : %s", kind_name(v->type->type));
	if (tensor) {
		text_str(t, ".shape(");
		for (size_t i = 0; i < tensor->n_dims; i++)
			text_printf(t, "%s%" PRId64 "%s", i ? ", " : "", tensor->dims[i],
			            tensor->n_dims == 1 ? "," : "");
		text_printf(t, ").dtype(%s)", element_name(tensor->data_type));
	}
	if (var_lod_level(v))
		text_printf(t, ".lod_level(%d)", var_lod_level(v));
	if (v->has_stop_gradient && v->stop_gradient)
		text_str(t, ".stop_gradient(True)");
	text_char(t, '\n');
}

static void slots_print(Text *t, size_t n, Paddle__OpSlot *const *slots)
{
	text_char(t, '{');
	for (size_t i = 0; i < n; i++) {
		text_str(t, i ? ", " : "");
		text_word(t, slots[i]->parameter);
		text_str(t, "=[");
		for (size_t k = 0; k < slots[i]->n_arguments; k++) {
			text_str(t, k ? ", " : "");
			text_name(t, slots[i]->arguments[k]);
		}
		text_char(t, ']');
	}
	text_char(t, '}');
}

static void scalar_print(Text *t, const Paddle__Scalar *s)
{
	if (s->type == PADDLE__SCALAR__KIND__K_BOOLEAN)
		text_truth(t, s->b);
	else if (s->type == PADDLE__SCALAR__KIND__K_LONG)
		text_printf(t, "%" PRId64, s->i);
	else
		text_float(t, s->r, false);
}

// Element i of a list attribute.
static void list_element_print(Text *t, const Paddle__OpAttr *a, size_t i)
{
	switch (a->type) {
	case PADDLE__ATTR_KIND__INTS: text_printf(t, "%" PRId32, a->ints[i]); break;
	case PADDLE__ATTR_KIND__FLOATS: text_float(t, (double)a->floats[i], true); break;
	case PADDLE__ATTR_KIND__STRINGS: text_name(t, a->strings[i]); break;
	case PADDLE__ATTR_KIND__BOOLEANS: text_truth(t, a->bools[i]); break;
	case PADDLE__ATTR_KIND__LONGS: text_printf(t, "%" PRId64, a->longs[i]); break;
	case PADDLE__ATTR_KIND__FLOAT64S: text_float(t, a->float64s[i], false); break;
	case PADDLE__ATTR_KIND__VARS: text_name(t, a->vars_name[i]); break;
	case PADDLE__ATTR_KIND__BLOCKS: text_printf(t, "block[%" PRId32 "]", a->blocks_idx[i]); break;
	default: scalar_print(t, a->scalars[i]); break;
	}
}

static void list_print(Text *t, const Paddle__OpAttr *a, size_t n)
{
	text_char(t, '[');
	for (size_t i = 0; i < n; i++) {
		text_str(t, i ? ", " : "");
		list_element_print(t, a, i);
	}
	text_char(t, ']');
}

// How many elements a list has. False: it is no list.
static bool attr_list_length(const Paddle__OpAttr *a, size_t *n)
{
	switch (a->type) {
	case PADDLE__ATTR_KIND__INTS: *n = a->n_ints; return true;
	case PADDLE__ATTR_KIND__FLOATS: *n = a->n_floats; return true;
	case PADDLE__ATTR_KIND__STRINGS: *n = a->n_strings; return true;
	case PADDLE__ATTR_KIND__BOOLEANS: *n = a->n_bools; return true;
	case PADDLE__ATTR_KIND__LONGS: *n = a->n_longs; return true;
	case PADDLE__ATTR_KIND__FLOAT64S: *n = a->n_float64s; return true;
	case PADDLE__ATTR_KIND__VARS: *n = a->n_vars_name; return true;
	case PADDLE__ATTR_KIND__BLOCKS: *n = a->n_blocks_idx; return true;
	case PADDLE__ATTR_KIND__SCALARS: *n = a->n_scalars; return true;
	default: return false;
	}
}

static void attr_value_print(Text *t, const Paddle__OpAttr *a)
{
	size_t n;
	switch (a->type) {
	case PADDLE__ATTR_KIND__INT: text_printf(t, "%" PRId32, a->i); break;
	case PADDLE__ATTR_KIND__FLOAT: text_float(t, (double)a->f, true); break;
	case PADDLE__ATTR_KIND__STRING: text_name(t, a->s); break;
	case PADDLE__ATTR_KIND__BOOLEAN: text_truth(t, a->b); break;
	case PADDLE__ATTR_KIND__LONG: text_printf(t, "%" PRId64, a->l); break;
	case PADDLE__ATTR_KIND__BLOCK: text_printf(t, "block[%" PRId32 "]", a->block_idx); break;
	case PADDLE__ATTR_KIND__FLOAT64: text_float(t, a->float64, false); break;
	case PADDLE__ATTR_KIND__VAR: text_name(t, a->var_name); break;
	case PADDLE__ATTR_KIND__SCALAR:
		if (a->scalar)
			scalar_print(t, a->scalar);
		break;
	default:
		if (attr_list_length(a, &n))
			list_print(t, a, n);
		else
			text_char(t, '?');
	}
}

void legacy_print(Text *t, const Paddle__ProgramDesc *p)
{
	for (size_t b = 0; b < p->n_blocks; b++) {
		const Paddle__BlockDesc *block = p->blocks[b];
		text_printf(t, "{ // block %zu\n", b);
		for (size_t i = 0; i < block->n_vars; i++)
			var_print(t, block->vars[i]);
		text_str(t, block->n_vars ? "\n" : "");
		for (size_t i = 0; i < block->n_ops; i++) {
			const Paddle__OpDesc *op = block->ops[i];
			text_str(t, "    ");
			slots_print(t, op->n_outputs, op->outputs);
			text_str(t, " = ");
			text_word(t, op->type);
			text_str(t, "(inputs=");
			slots_print(t, op->n_inputs, op->inputs);
			for (size_t k = 0; k < op->n_attrs; k++) {
				text_str(t, ", ");
				text_word(t, op->attrs[k]->name);
				text_str(t, " = ");
				attr_value_print(t, op->attrs[k]);
			}
			text_str(t, ")\n");
		}
		text_str(t, "}\n");
	}
}
