// Words that no identifier of generated code may be (base.h).
#include "ir/base/base.h"

#include <string.h>

// Keywords of C and C++, and macros of compilers.
static const char *const reserved[] = {
	"alignas",   "alignof",   "and",           "and_eq",       "asm",
	"atomic",    "auto",      "bitand",        "bitor",        "bool",
	"break",     "case",      "catch",         "char",         "class",
	"co_await",  "co_return", "co_yield",      "compl",        "complex",
	"concept",   "const",     "const_cast",    "consteval",    "constexpr",
	"constinit", "continue",  "decltype",      "default",      "delete",
	"do",        "double",    "dynamic_cast",  "else",         "enum",
	"errno",     "explicit",  "export",        "extern",       "false",
	"float",     "for",       "friend",        "goto",         "if",
	"imaginary", "inline",    "int",           "linux",        "long",
	"mutable",   "namespace", "new",           "noexcept",     "not",
	"not_eq",    "nullptr",   "operator",      "or",           "or_eq",
	"private",   "protected", "public",        "register",     "reinterpret_cast",
	"requires",  "restrict",  "return",        "short",        "signed",
	"sizeof",    "static",    "static_assert", "static_cast",  "struct",
	"switch",    "template",  "this",          "thread_local", "throw",
	"true",      "try",       "typedef",       "typeid",       "typename",
	"typeof",    "union",     "unix",          "unsigned",     "using",
	"virtual",   "void",      "volatile",      "wchar_t",      "while",
	"xor",       "xor_eq",
};

bool is_reserved_word(const char *word, size_t n)
{
	for (size_t i = 0; i < COUNT_OF(reserved); i++)
		if (strlen(reserved[i]) == n && !strncmp(reserved[i], word, n))
			return true;
	return false;
}
