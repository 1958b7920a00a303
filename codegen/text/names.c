// C identifiers from names of legacy variables ("conv2d_0.tmp_0@RENAME" becomes
// conv2d_0_tmp_0_RENAME): the same name for the same variable, distinct in one scope, never a word
// of C, C++ or CUDA, so that C and CUDA have one name for it. Called by all who print names, and by
// the driver for the prefix.
#include "codegen/text/text.h"

#include <ctype.h>
#include <string.h>

// Types that the headers define: a name that hides one could stand where it is needed. CUDA also
// has vectors, as float4.
static const char *const types[] = {
	"dim3",      "int16_t", "int32_t",  "int64_t",  "int8_t",   "intptr_t", "max_align_t",
	"ptrdiff_t", "size_t",  "uint16_t", "uint32_t", "uint64_t", "uint8_t",  "uintptr_t",
};

// Variables of CUDA's kernels, and macros that no rule below covers.
static const char *const values[] = {
	"EOF",         "HUGE_VAL",         "HUGE_VALF", "INFINITY", "NAN",      "NULL",
	"PTRDIFF_MAX", "PTRDIFF_MIN",      "SIZE_MAX",  "assert",   "blockDim", "blockIdx",
	"gridDim",     "math_errhandling", "threadIdx", "warpSize",
};

// Functions that generated code may call, with f behind them, too.
static const char *const called[] = {
	"abs",      "acos",      "acosh", "asin",   "asinh", "atan",     "atan2",   "atanh",  "ceil",
	"copysign", "cos",       "cosh",  "erf",    "exp",   "expm1",    "fabs",    "floor",  "fma",
	"fmax",     "fmin",      "fmod",  "free",   "hypot", "isfinite", "isinf",   "isnan",  "ldexp",
	"lgamma",   "log",       "log10", "log1p",  "log2",  "malloc",   "memcmp",  "memcpy", "memmove",
	"memset",   "nearbyint", "pow",   "rint",   "round", "rsqrt",    "signbit", "sin",    "sinh",
	"sqrt",     "tan",       "tanh",  "tgamma", "trunc",
};

// Others that headers declare which it includes, mostly through CUDA's: no type can have such a
// name.
static const char *const declared[] = {
	"abort",  "cbrt",   "div",    "erfc",    "exit",   "exp2",    "fdim",      "frexp",
	"gamma",  "half",   "half2",  "ilogb",   "index",  "j0",      "j1",        "jn",
	"labs",   "link",   "llrint", "llround", "logb",   "lrint",   "lround",    "main",
	"max",    "memchr", "min",    "modf",    "nan",    "norm",    "normcdf",   "nv_bfloat16",
	"printf", "qsort",  "rand",   "random",  "read",   "realloc", "remainder", "remove",
	"remquo", "rename", "rhypot", "scalbn",  "select", "signal",  "stat",      "strcat",
	"strcmp", "strcpy", "strlen", "strstr",  "system", "time",    "times",     "wait",
	"write",  "y0",     "y1",     "yn",
};

static bool is_in(const char *const *list, size_t n, const char *name, size_t length)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == length && !strncmp(list[i], name, length))
			return true;
	return false;
}

static bool begins_with(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

// float4 and its like.
static bool is_vector(const char *name)
{
	static const char *const elements[] = {"char", "double",   "float",     "int",
	                                       "long", "longlong", "short",     "uchar",
	                                       "uint", "ulong",    "ulonglong", "ushort"};
	const size_t n = strlen(name);
	return n && name[n - 1] >= '1' && name[n - 1] <= '4' &&
	       is_in(elements, COUNT_OF(elements), name, n - 1);
}

// Families of macros and types: INT64_MAX, M_PI, PD_OK, cudaStream_t.
static bool is_of_family(const char *name)
{
	static const char *const starts[] = {"CUDA", "CUDART_", "DBL_",  "FLT_", "FP_",
	                                     "INT",  "M_",      "PDRT_", "PD_",  "UINT"};
	for (size_t i = 0; i < COUNT_OF(starts); i++)
		if (begins_with(name, starts[i]))
			return true;
	const char *rest = begins_with(name, "cuda")     ? name + 4
	                   : begins_with(name, "cublas") ? name + 6
	                                                 : "";
	return isupper((unsigned char)*rest) != 0;
}

static bool is_word(const char *name)
{
	const size_t n = strlen(name);
	return is_reserved_word(name, n) || is_in(types, COUNT_OF(types), name, n) ||
	       is_in(values, COUNT_OF(values), name, n) || is_vector(name) || is_of_family(name);
}

// Of the list, or one that ends in f.
static bool is_function(const char *const *list, size_t count, const char *name)
{
	const size_t n = strlen(name);
	return is_in(list, count, name, n) ||
	       (n && name[n - 1] == 'f' && is_in(list, count, name, n - 1));
}

bool prefix_is_free(const char *name)
{
	return !is_word(name) && !is_function(called, COUNT_OF(called), name) &&
	       !is_function(declared, COUNT_OF(declared), name) && strcmp(name, "pd") &&
	       !begins_with(name, "pd_") && !begins_with(name, "pdrt");
}

bool prefix_is_variable(const char *name)
{
	static const char *const variables[] = {
		"at",     "bias",   "block",  "blocks",  "channels", "columns",  "count",  "dims",  "end",
		"failed", "fault",  "filter", "first",   "group",    "groups",   "height", "image", "info",
		"inner",  "inside", "item",   "length",  "limit",    "out",      "pixels", "plane", "rows",
		"row",    "scale",  "size",   "split",   "stats",    "status",   "sum",    "tail",  "tile",
		"total",  "value",  "values", "weights", "width",    "workspace"};
	return strlen(name) <= 2 || is_in(variables, COUNT_OF(variables), name, strlen(name));
}

// The longest identifier made from a variable name; longer ones are cut and told apart by their
// number.
enum { NAME_MAX_LENGTH = 60 };

char *name_sanitize(Arena *a, const char *name)
{
	Text t;
	text_init(&t, a);
	for (; *name && t.len < NAME_MAX_LENGTH; name++) {
		bool word = isalnum((unsigned char)*name) && (unsigned char)*name < 128;
		if (word && !t.len && isdigit((unsigned char)*name))
			text_char(&t, 'v');
		if (word)
			text_char(&t, *name);
		else if (t.len && t.text[t.len - 1] != '_')
			text_char(&t, '_');
	}
	while (t.len && t.text[t.len - 1] == '_')
		t.text[--t.len] = '\0';
	if (!t.len)
		text_str(&t, "unnamed");
	if (is_word(t.text))
		text_char(&t, '_');
	return t.text;
}

// What follows `prefix`, if that is a number to the end; else NULL.
static const char *number_behind(const char *name, const char *prefix)
{
	const char *number = begins_with(name, prefix) ? name + strlen(prefix) : "";
	return *number && strspn(number, "0123456789") == strlen(number) ? number : NULL;
}

const char *name_by_operator(Arena *a, const char *var, const char *type)
{
	const char *number = number_behind(var, "tmp_"),
			   *branch = number_behind(var, "_generated_var_");
	if (branch)
		return arena_printf(a, "branch_%s", branch);
	if (!number || !type)
		return var;
	type += begins_with(type, "elementwise_") ? strlen("elementwise_") : 0;
	size_t length = strlen(type);
	length -= length > 1 && type[length - 1] == '2'; // transpose2
	return arena_printf(a, "%.*s_%s", (int)length, type, number);
}

char *name_local(Arena *a, const char *name)
{
	// What functions of generated code begin with, and their variables.
	static const char *const starts[] = {"block_", "compute_", "loop_",
	                                     "pd_",    "steps_",   "weights_"};
	char *s = name_sanitize(a, name);
	bool hides = is_function(called, COUNT_OF(called), s);
	for (size_t i = 0; i < COUNT_OF(starts); i++)
		hides = hides || begins_with(s, starts[i]);
	return hides ? arena_printf(a, "%s_", s) : s;
}

void names_init(Names *n, Arena *a)
{
	name_map_init(&n->taken, a);
}

Names names_within(const Names *outer)
{
	return (Names){pointer_map_copy(&outer->taken)};
}

const char *names_unique(Names *n, const char *stem)
{
	return name_map_unique(&n->taken, stem);
}

const char *name_upper(Arena *a, const char *s)
{
	char *t = arena_printf(a, "%s", s);
	for (char *p = t; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return t;
}
