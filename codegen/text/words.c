// Words of C that know no function: lines, names of types, expressions without their parentheses.
// Called by all rooms of codegen that print.
#include "codegen/text/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

void text_line(Text *out, int depth, const char *fmt, ...)
{
	for (int i = 0; i < depth; i++)
		text_char(out, '\t');
	va_list ap;
	va_start(ap, fmt);
	char *line = arena_vprintf(out->arena, fmt, ap);
	va_end(ap);
	text_str(out, line);
	text_char(out, '\n');
}

void text_refuse(Text *out, const char *status, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *when = arena_vprintf(out->arena, fmt, ap);
	va_end(ap);
	text_line(out, 1, "if (%s)", when);
	text_line(out, 2, "return %s;", status);
}

bool char_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

bool text_has_word(const char *text, const char *word)
{
	const size_t n = strlen(word);
	for (const char *p = text; (p = strstr(p, word)); p += n) {
		const char before = p > text ? p[-1] : ' ';
		if (!char_is_word(before) && !char_is_word(p[n]))
			return true;
	}
	return false;
}

static const char *const memory_types[DT_COUNT] = {
	[DT_BOOL] = "uint8_t", [DT_U8] = "uint8_t",  [DT_I8] = "int8_t",    [DT_I16] = "int16_t",
	[DT_I32] = "int32_t",  [DT_I64] = "int64_t", [DT_F16] = "uint16_t", [DT_BF16] = "uint16_t",
	[DT_F32] = "float",    [DT_F64] = "double",  [DT_C64] = "pd_c64",   [DT_C128] = "pd_c128",
};

const char *dtype_c_memory(DType t)
{
	return memory_types[t];
}

const char *type_c_scalar(const Type *t)
{
	if (t->kind == TY_INDEX)
		return "int64_t";
	switch (t->dtype) {
	case DT_BOOL: return "bool";
	case DT_F16:
	case DT_BF16: return "float";
	default: return memory_types[t->dtype];
	}
}

const char *expression_unwrap(Arena *a, const char *e)
{
	size_t n = strlen(e);
	int depth = 0;
	for (size_t i = 0; i < n; i++) {
		depth += (e[i] == '(') - (e[i] == ')');
		if (!depth && (i + 1 < n || i == 0))
			return e;
	}
	return n > 2 ? arena_strndup(a, e + 1, n - 2) : e;
}
