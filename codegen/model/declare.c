// Where the locals of model_run are declared: each in the innermost braces around all that name it,
// in front of the statement that names it first, or as its first assignment. Called by c/run.c, on
// the finished text of the body, for blocks that nest.
#include "codegen/model/model.h"
#include "codegen/text/braces.h"
#include "ir/base/vec.h"

#include <string.h>

// A line that names a local.
typedef struct Mention {
	int line;
	bool reads, writes; // `name = …;` writes alone
} Mention;

typedef struct Mentioned {
	Mention *items;
	int n, cap, writes;
	bool open; // changed in other ways, too: `&name`, `++name`, `name += …`
} Mentioned;

// Declarations in front of a line, or that its assignment is one.
typedef struct Placed {
	Text text;
	const char *type; // of what the line assigns; NULL: no declaration
	bool dropped;     // it assigns what nobody reads
} Placed;

typedef struct Declare {
	Codegen *cg;
	RunLines lines;
	Mentioned *mentioned; // by local
	Placed *placed;       // by line
} Declare;

// ---- mentions -----------------------------------------------------------------------------------

// Whether the word from p to stop may be changed there by other means than an assignment.
static bool word_is_open(const char *begin, const char *p, const char *stop, const char *end)
{
	const bool address = p > begin && p[-1] == '&' && (p - 1 == begin || p[-2] != '&'),
			   step = p - begin > 1 && p[-1] == p[-2] && strchr("+-", p[-1]),
			   after = end - stop > 2 && (!strncmp(stop, "++", 2) || !strncmp(stop, "--", 2)),
			   with = end - stop > 3 && stop[0] == ' ' && strchr("+-*/%&|^<>", stop[1]) &&
	                  (stop[2] == '=' ? !strchr("<>", stop[1]) : stop[3] == '=');
	return address || step || after || with;
}

static void mention(Declare *d, int local, int line, bool assigned, bool open)
{
	Mentioned *m = &d->mentioned[local];
	if (!m->n || m->items[m->n - 1].line != line) {
		VEC_ROOM(d->cg->arena, m->items, m->n, m->cap);
		m->items[m->n++] = (Mention){.line = line};
	}
	Mention *at = &m->items[m->n - 1];
	at->writes |= assigned;
	at->reads |= !assigned;
	m->writes += assigned;
	m->open |= open;
}

static bool is_member(const char *begin, const char *p)
{
	return p > begin && (p[-1] == '.' || (p[-1] == '>' && p[-2] == '-'));
}

// The words of a line outside of comments and strings that are no members.
static void words_visit(Declare *d, const NameMap *locals, int line)
{
	const RunLine *l = &d->lines.items[line];
	const char *text = d->cg->run.text, *begin = text + l->from + l->tabs, *end = text + l->to;
	LineScan scan = {0};
	for (const char *p = begin; p < end; p++) {
		line_scan_step(&scan, p);
		if (scan.quote || scan.comment || scan.rest || !char_is_word(*p) ||
		    (p > begin && char_is_word(p[-1])))
			continue;
		const char *stop = p;
		while (stop < end && char_is_word(*stop))
			stop++;
		const void *local = is_member(begin, p)
		                        ? NULL
		                        : name_map_get(locals,
		                                       arena_strndup(d->cg->arena, p, (size_t)(stop - p)));
		if (local)
			mention(d, (int)((const RunLocal *)local - d->cg->locals_run), line,
			        p == begin && end - stop > 3 && !strncmp(stop, " = ", 3),
			        word_is_open(begin, p, stop, end));
		p = stop - 1;
	}
}

static void mentions_find(Declare *d)
{
	Codegen *cg = d->cg;
	NameMap locals;
	name_map_init(&locals, cg->arena);
	for (int i = 0; i < cg->nlocal_run; i++)
		name_map_set(&locals, cg->locals_run[i].name, &cg->locals_run[i]);
	for (int line = 0; line < d->lines.n; line++)
		if (!d->lines.items[line].aside)
			words_visit(d, &locals, line);
}

// ---- whether a variable is assigned before it is read -------------------------------------------

// On the way through a part of the body. ends: nothing goes on from here.
typedef struct Flow {
	bool set, ends;
} Flow;

typedef struct Assigned {
	const RunLines *lines;
	const Mentioned *m;
	int at; // of the mentions, that comes next
	bool failed;
} Assigned;

static Flow flow_join(Flow a, Flow b)
{
	return (Flow){(a.ends || a.set) && (b.ends || b.set), a.ends && b.ends};
}

static Flow flow_part(Assigned *a, const RunScope *part, Flow f, Flow *left);

static void flow_mention(Assigned *a, int line, Flow *f)
{
	if (a->at == a->m->n || a->m->items[a->at].line != line)
		return;
	const Mention *m = &a->m->items[a->at++];
	if (m->reads && !f->set && !f->ends)
		a->failed = true;
	if (m->writes && !a->lines->items[line].under)
		f->set = true;
}

// The parts of an if, or the cases of a switch, of which one is taken. Returns the line behind.
static int flow_choice(Assigned *a, int line, Flow *f, Flow *left)
{
	const RunScope *s = &a->lines->scopes[a->lines->items[line].opens];
	Flow out = {true, true};
	bool all = false;
	flow_mention(a, line, f);
	for (;;) {
		out = flow_join(out, flow_part(a, s, *f, left));
		all = all || s->kind == SCOPE_ELSE;
		line = s->close;
		if (a->lines->items[line].opens < 0)
			break;
		flow_mention(a, line, f); // of `} else if (…) {`
		s = &a->lines->scopes[a->lines->items[line].opens];
	}
	*f = all ? out : flow_join(out, *f);
	return line + 1;
}

static int flow_switch(Assigned *a, const RunScope *s, int line, Flow *f)
{
	Flow out = {true, true};
	flow_mention(a, line, f);
	for (line++; line < s->close;) {
		const int opens = a->lines->items[line].opens;
		Flow left = {true, true};
		if (opens >= 0) {
			const Flow end = flow_part(a, &a->lines->scopes[opens], *f, &left);
			out = flow_join(out, flow_join(end, left));
			line = a->lines->scopes[opens].close;
		}
		line++;
	}
	*f = out;
	return s->close + 1;
}

static int flow_loop(Assigned *a, const RunScope *s, int line, Flow *f)
{
	Flow left = {true, true};
	flow_mention(a, line, f);
	flow_part(a, s, *f, &left);
	if (s->kind == SCOPE_FOREVER)
		*f = left;
	return s->close + 1;
}

// One statement, or one line of it. left: what holds where `break` leaves the loop or switch
// around. Returns the line behind.
static int flow_statement(Assigned *a, int line, Flow *f, Flow *left)
{
	const RunLine *l = &a->lines->items[line];
	const RunScope *s = l->opens < 0 ? NULL : &a->lines->scopes[l->opens];
	if (!s) {
		flow_mention(a, line, f);
		if (l->jump == JUMP_BREAK)
			*left = flow_join(*left, *f);
		f->ends |= l->jump != JUMP_NONE && !l->under;
		return line + 1;
	}
	switch (s->kind) {
	case SCOPE_IF: return flow_choice(a, line, f, left);
	case SCOPE_LOOP:
	case SCOPE_FOREVER: return flow_loop(a, s, line, f);
	case SCOPE_SWITCH: return flow_switch(a, s, line, f);
	default:
		flow_mention(a, line, f);
		*f = flow_part(a, s, *f, left);
		return s->close + 1;
	}
}

static Flow flow_part(Assigned *a, const RunScope *part, Flow f, Flow *left)
{
	for (int line = part->open + 1; line < part->close;)
		line = flow_statement(a, line, &f, left);
	return f;
}

// Whether all ways from `line` to the end of its braces assign before they read.
static bool assigned_first(const Declare *d, const Mentioned *m, int line, const RunScope *within)
{
	Assigned a = {&d->lines, m, 0, false};
	Flow f = {0}, left = {true, true};
	while (line < within->close && !a.failed)
		line = flow_statement(&a, line, &f, &left);
	return !a.failed;
}

// ---- places -------------------------------------------------------------------------------------

static int scope_common(const RunLines *l, int a, int b)
{
	while (a != b) {
		if (l->scopes[a].depth >= l->scopes[b].depth)
			a = l->scopes[a].outer;
		else
			b = l->scopes[b].outer;
	}
	return a;
}

static int scope_of_all(const Declare *d, const Mentioned *m)
{
	const RunLines *l = &d->lines;
	int scope = l->items[m->items[0].line].scope;
	for (int i = 1; i < m->n; i++)
		scope = scope_common(l, scope, l->items[m->items[i].line].scope);
	while (l->scopes[scope].kind == SCOPE_SWITCH || l->scopes[scope].kind == SCOPE_LIST)
		scope = l->scopes[scope].outer;
	return scope;
}

// The scope around all loops that a scope is in, or that one.
static int scope_outside_loops(const RunLines *l, int scope)
{
	int found = scope;
	for (; scope; scope = l->scopes[scope].outer)
		if (l->scopes[scope].kind == SCOPE_LOOP || l->scopes[scope].kind == SCOPE_FOREVER)
			found = l->scopes[scope].outer;
	while (l->scopes[found].kind == SCOPE_SWITCH)
		found = l->scopes[found].outer;
	return found;
}

// The line in which the statement begins that a line is part of.
static int statement_of(const RunLines *l, int line, int scope)
{
	int at = l->items[line].scope;
	while (at != scope) {
		line = l->scopes[at].head;
		at = l->scopes[at].outer;
	}
	return l->items[line].opens >= 0 ? l->scopes[l->items[line].opens].head
	                                 : line - l->items[line].under;
}

// What stands over a loop, an if or a switch: its comment, so that this stays with it.
static int comment_of(const RunLines *l, int line)
{
	if (l->items[line].opens < 0)
		return line;
	int first = line;
	while (first > 0 && l->items[first - 1].aside && !l->items[first - 1].blank)
		first--;
	return first;
}

// A variable that is only ever assigned is none.
static bool drop_unread(Declare *d, const Mentioned *m)
{
	for (int i = 0; i < m->n; i++)
		if (m->items[i].reads || d->lines.items[m->items[i].line].under)
			return false;
	for (int i = 0; i < m->n; i++)
		d->placed[m->items[i].line].dropped = true;
	return true;
}

// The type of a declaration that is the assignment. What points is constant itself, not what it
// points to.
static const char *type_at_once(const Declare *d, const RunLocal *local, bool constant)
{
	if (!constant)
		return local->type;
	const bool pointer = local->type[strlen(local->type) - 1] == '*';
	return arena_printf(d->cg->arena, pointer ? "%sconst " : "const %s", local->type);
}

static void place(Declare *d, int i)
{
	const RunLocal *local = &d->cg->locals_run[i];
	const Mentioned *m = &d->mentioned[i];
	const RunLines *l = &d->lines;
	if (!m->n || drop_unread(d, m))
		return;
	int scope = scope_of_all(d, m), line = statement_of(l, m->items[0].line, scope);
	const bool assigned = local->kind == LOCAL_NUMBER &&
	                      assigned_first(d, m, line, &l->scopes[scope]);
	if (local->kind == LOCAL_KEPT || (local->kind == LOCAL_NUMBER && !assigned)) {
		scope = scope_outside_loops(l, scope);
		line = statement_of(l, m->items[0].line, scope);
	}
	if (assigned && line == m->items[0].line && l->items[line].opens < 0 && !local->unread) {
		d->placed[line].type = type_at_once(d, local, m->writes == 1 && !m->open);
		return;
	}
	const int tabs = l->items[line].tabs;
	Text *out = &d->placed[comment_of(l, line)].text;
	if (assigned)
		text_line(out, tabs, "%s%s;", local->type, local->name);
	else
		text_line(out, tabs, "%s%s%s = %s;", local->type, local->name, local->extent, local->value);
	if (local->unread)
		text_line(out, tabs, "(void)%s;", local->name);
}

// ---- the text -----------------------------------------------------------------------------------

// Where what stood at `at` in the text without declarations is now. begins: by line.
static size_t moved(const Declare *d, const size_t *begins, size_t at)
{
	int low = 0, high = d->lines.n;
	while (low < high) {
		const int middle = (low + high) / 2;
		if (d->lines.items[middle].from < at)
			low = middle + 1;
		else
			high = middle;
	}
	return begins[low];
}

static void text_print(const Declare *d, Text *out)
{
	Codegen *cg = d->cg;
	size_t *begins = NEW_ARRAY(cg->arena, (size_t)d->lines.n + 1, size_t);
	for (int i = 0; i < d->lines.n; i++) {
		const RunLine *l = &d->lines.items[i];
		const Placed *p = &d->placed[i];
		begins[i] = out->len;
		if (p->text.len) {
			text_str(out, p->text.text);
			if (l->aside)
				text_char(out, '\n');
		}
		if (p->dropped)
			continue;
		text_strn(out, cg->run.text + l->from, (size_t)l->tabs);
		text_str(out, p->type ? p->type : "");
		text_strn(out, cg->run.text + l->from + l->tabs, l->to - l->from - (size_t)l->tabs);
		text_char(out, '\n');
	}
	begins[d->lines.n] = out->len;
	for (int i = 0; i < cg->map.n; i++) {
		cg->map.steps[i].from = moved(d, begins, cg->map.steps[i].from);
		cg->map.steps[i].to = moved(d, begins, cg->map.steps[i].to);
	}
}

void locals_place(Codegen *cg)
{
	if (!cg->scoped || !cg->nlocal_run)
		return;
	Declare d = {.cg = cg, .lines = run_lines_find(cg->arena, &cg->run)};
	d.mentioned = NEW_ARRAY(cg->arena, (size_t)cg->nlocal_run, Mentioned);
	d.placed = NEW_ARRAY(cg->arena, (size_t)d.lines.n, Placed);
	for (int i = 0; i < d.lines.n; i++)
		text_init(&d.placed[i].text, cg->arena);
	mentions_find(&d);
	for (int i = 0; i < cg->nlocal_run; i++)
		place(&d, i);
	Text out;
	text_init(&out, cg->arena);
	text_print(&d, &out);
	cg->run = out;
	cg->nlocal_run = 0;
}
