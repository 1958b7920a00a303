// C as text: identifiers, templates with holes, the prelude, maps from what is printed to its
// names. Leaves text. Uses ir/core and ir/base; knows no program and no backend.
#ifndef PDCC_CODEGEN_TEXT_TEXT_H
#define PDCC_CODEGEN_TEXT_TEXT_H

#include "ir/base/map.h"
#include "ir/core/core.h"

// ---- names.c ------------------------------------------------------------------------------------

// A set of identifiers taken in one scope.
typedef struct Names {
	NameMap taken;
} Names;

void names_init(Names *n, Arena *a);
Names names_within(const Names *outer); // a scope where what the outer one has is taken, too
// An identifier made from any text; the same for the same text.
char *name_sanitize(Arena *a, const char *name);
// What a variable is called in C when its own name only counts: after the operator that computes
// it (`add_9` for Paddle's tmp_9), or `branch_4` for what an if gives. Other names are as they are.
const char *name_by_operator(Arena *a, const char *var, const char *type);
char *name_local(Arena *a, const char *name);       // that also hides no function
const char *name_upper(Arena *a, const char *name); // as part of a macro
// `stem`, or `stem_2`, `stem_3` … when that is taken; takes it.
const char *names_unique(Names *n, const char *stem);

// Whether a C identifier may begin all global symbols, and name a type.
bool prefix_is_free(const char *name);
// Whether it is one that functions are likely to have for a variable.
bool prefix_is_variable(const char *name);

// ---- template.c: texts that embed.c put into pdcc -----------------------------------------------

// The text of codegen/*/kernels/NAME.in ("gemm.c") or runtime_stub/NAME ("pdrt.h"); NULL: none.
const char *embed_text(const char *name);

// ---- template.c ---------------------------------------------------------------------------------

typedef struct TemplateKey {
	const char *key, *text;
} TemplateKey;

// The text of a key that only says whether lines are there.
static inline const char *template_flag(bool on)
{
	return on ? "1" : "";
}

// Expands `${key}` in the embedded text `name` into out. An unknown or unused key is a diagnostic.
// A value of several lines that stands alone on its line is indented like that line. A line that
// begins with `${?key}` is there only where the key has a text, one with `${!key}` where it has
// none. `${fn}` and
// `${params}` may always be used: they become KERNEL_FN and KERNEL_PARAMS; `${kernel}`, the whole
// head of a function of CUDA with its brace, becomes KERNEL_HEAD.
bool template_expand(Context *c, Text *out, const char *name, int nkey, const TemplateKey *keys);

#define KERNEL_FN "\x01"     // in k->text: stands for the function's name
#define KERNEL_PARAMS "\x02" // in k->text: stands for its parameter list
#define KERNEL_HEAD "\x03"   // in k->text of CUDA: stands for all up to the brace of its body

// ---- words.c ------------------------------------------------------------------------------------

// A line, behind `depth` tabs.
void text_line(Text *out, int depth, const char *fmt, ...) PRINTF_LIKE(3, 4);
// Takes the braces of loops away whose body is one statement. unbrace.c.
void text_unbrace(Text *t);
// Where the condition `fmt` holds, a function of the model returns `status`.
void text_refuse(Text *out, const char *status, const char *fmt, ...) PRINTF_LIKE(3, 4);
bool char_is_word(char c);                              // may stand in an identifier
bool text_has_word(const char *text, const char *word); // as an identifier of its own
// How an element is held: in memory (float, uint8_t for bool, uint16_t for f16 and bf16) and in a
// scalar variable (float for f16 and bf16, bool for bool, int64_t for index).
const char *dtype_c_memory(DType t);
const char *type_c_scalar(const Type *t);
// `(e)` without its parentheses; anything else as it is.
const char *expression_unwrap(Arena *a, const char *e);

// ---- wrap.c -------------------------------------------------------------------------------------

// Where a walk over the characters of a line of C is: in a string, in a comment, in how many
// parentheses.
typedef struct LineScan {
	bool comment, rest; // rest: a comment up to the end of the line
	char quote;         // 0: none
	int depth;
} LineScan;

void line_scan_step(LineScan *s, const char *p);
// Where a walk over lines is: on a line of the preprocessor, in a comment. Zero at first.
typedef struct LineState {
	bool macro, comment;
} LineState;
// Generated C as it is read: n bytes, which are whole lines, without parentheses that say nothing,
// and with lines of more than 100 columns broken. Lines of the preprocessor stay as they are.
void text_finish(const char *text, size_t n, Text *out);
void text_finish_line(const char *line, size_t n, LineState *state, Text *out); // n without its end

// ---- parens.c -----------------------------------------------------------------------------------

// A line of C without the parentheses that change neither what it means nor what compilers warn of.
void text_plain(const char *line, size_t n, Text *out);

// ---- prelude.c ----------------------------------------------------------------------------------

// Whether a file of the prelude has a section of that name.
bool prelude_has(const char *file, const char *name);
// Sections of the prelude that `user` mentions, and those that these mention, in file order.
void prelude_print(Arena *a, bool cuda, Text *out, const char *user);

#endif
