// Nodes of a CUDA graph: while they are printed, what each of them reads and writes is noted; when
// a graph is complete, each node is printed behind those that it must wait for
// (lower/analysis/deps.c). A kernel touches what its arguments point to, so the arguments of calls
// are what is noted. Called by cuda/graph.c, and by whoever prints a launch.
//
// Nodes are printed in the order of the program. One that waits for just the node in front of it is
// printed without a word; else `pd_after` says for whom it waits, by names that only such nodes
// have.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "ir/base/vec.h"
#include "lower/analysis/analysis.h"

#include <string.h>

// What a node touches lies in one of these memories; each output is one more.
enum { MEMORY_WORKSPACE, MEMORY_STATE, MEMORY_SIZES, MEMORY_CONDITIONS, MEMORY_OUTPUTS };

// Printed, with what belongs to it: a launch or several, one behind the other, or a conditional
// node with all inside.
typedef struct CudaNode {
	const char *stem; // of its name
	int func; // the first of the program's functions that it launches with a guard; less than 0:
	          // none
	Text head, text;   // in front of that launch, and from there on; without one all is `text`
	const char *count; // a line in front of that launch; NULL: none
	Accesses accesses;
} CudaNode;

struct CudaNodes {
	CudaNodes *outer;
	Text outer_run; // what was printed of the node of the outer graph that this one is in
	int n, cap, depth;
	CudaNode *nodes; // the last one is open when depth > 0
	Accesses noted;  // of the one that is open, since somebody asked
};

// ---- what nodes touch ---------------------------------------------------------------------------

static void node_touches(Codegen *cg, int memory, const Dim *begin, const Dim *bytes, unsigned how)
{
	CudaNodes *g = cg->cuda.nodes;
	if (!g || !g->depth)
		return;
	const Access access = {memory, how, begin, dim_add(cg->ctx, begin, bytes)};
	accesses_add(cg->arena, &g->nodes[g->n - 1].accesses, access);
	accesses_add(cg->arena, &g->noted, access);
}

Accesses cuda_node_noted(Codegen *cg)
{
	const Accesses noted = cg->cuda.nodes->noted;
	cg->cuda.nodes->noted = (Accesses){0};
	return noted;
}

void cuda_node_accesses(Codegen *cg, const Accesses *more)
{
	accesses_add_all(cg->arena, &cg->cuda.nodes->nodes[cg->cuda.nodes->n - 1].accesses, more);
}

void cuda_node_place(Codegen *cg, const Place *p, unsigned how)
{
	const Dim *bytes = type_bytes_at_most(cg->ctx, p->root->type), *zero = dim_const(cg->ctx, 0);
	if (p->kind == PLACE_WORKSPACE)
		node_touches(cg, MEMORY_WORKSPACE, p->offset ? p->offset : zero, bytes, how);
	else if (p->kind == PLACE_OUTPUT)
		cuda_node_output(cg, p->col, how);
	// nobody writes inputs and weights
}

void cuda_node_tensor(Codegen *cg, const Value *v, unsigned how)
{
	const Place p = value_place(v);
	cuda_node_place(cg, &p, how);
}

void cuda_node_output(Codegen *cg, int col, unsigned how)
{
	node_touches(cg, MEMORY_OUTPUTS + col, dim_const(cg->ctx, 0), dim_const(cg->ctx, 1), how);
}

void cuda_node_word(Codegen *cg, int word, unsigned how)
{
	node_touches(cg, MEMORY_SIZES, dim_const(cg->ctx, word), dim_const(cg->ctx, 1), how);
}

void cuda_node_condition(Codegen *cg, const char *name, unsigned how)
{
	node_touches(cg, MEMORY_CONDITIONS, pointer_map_get(&cg->cuda.conditions, name),
	             dim_const(cg->ctx, 1), how);
}

void cuda_node_state(Codegen *cg, unsigned how)
{
	node_touches(cg, MEMORY_STATE, dim_const(cg->ctx, 0), dim_const(cg->ctx, 1), how);
}

void cuda_node_arguments(Codegen *cg, const KernelFunc *k)
{
	for (int i = 0; i < k->nparam; i++) {
		const KernelParam *p = &k->params[i];
		if (p->value)
			cuda_node_tensor(cg, p->value, p->result ? ACCESS_WRITE : ACCESS_READ);
		else if (!p->bound && size_is_on_device(cg, p->sym)) {
			const int word = cuda_size_word(cg, symbol_find(cg, p->sym));
			cuda_node_word(cg, word, k->sets_sizes ? ACCESS_WRITE : ACCESS_READ);
			if (k->status) // how large it should have been
				cuda_node_word(cg, cuda_found_count(cg) + word,
				               k->sets_sizes ? ACCESS_WRITE : ACCESS_UPDATE);
		}
	}
	if (k->status)
		cuda_node_state(cg, k->sets_sizes ? ACCESS_WRITE : ACCESS_UPDATE);
}

// ---- nesting ------------------------------------------------------------------------------------

Text cuda_scope_open(Codegen *cg)
{
	Text outer = cg->run;
	text_init(&cg->run, cg->arena);
	return outer;
}

void cuda_scope_close(Codegen *cg, Text outer, const char *head, const char *comment)
{
	Text inner = cg->run;
	cg->run = outer;
	const bool joins = !strcmp(head, "else "); // behind the brace that is there
	if (joins)
		cg->run.len--;
	text_printf(&cg->run, "%s%s{%s%s%s\n", joins ? " " : "\t", head, comment ? " /* " : "",
	            comment ? comment : "", comment ? " */" : "");
	for (const char *p = inner.text ? inner.text : ""; *p;) {
		size_t n = strcspn(p, "\n");
		if (n)
			text_char(&cg->run, '\t');
		text_strn(&cg->run, p, n);
		text_char(&cg->run, '\n');
		p += n + (p[n] == '\n');
	}
	text_line(&cg->run, 1, "}");
}

// ---- graphs -------------------------------------------------------------------------------------

void cuda_nodes_begin(Codegen *cg)
{
	CudaNodes *g = NEW(cg->arena, CudaNodes);
	*g = (CudaNodes){.outer = cg->cuda.nodes, .outer_run = cg->run};
	text_init(&cg->run, cg->arena);
	cg->cuda.nodes = g;
}

void cuda_node_begin(Codegen *cg, const char *stem)
{
	CudaNodes *g = cg->cuda.nodes;
	if (g->depth++)
		return;
	VEC_ROOM(cg->arena, g->nodes, g->n, g->cap);
	g->nodes[g->n++] = (CudaNode){.stem = stem, .func = -1};
	g->noted = (Accesses){0};
}

void cuda_node_end(Codegen *cg)
{
	CudaNodes *g = cg->cuda.nodes;
	if (--g->depth)
		return;
	if (cg->run.len)
		g->nodes[g->n - 1].text = cg->run;
	else
		g->n--;
	text_init(&cg->run, cg->arena);
}

void cuda_node_launches(Codegen *cg, int func)
{
	CudaNodes *g = cg->cuda.nodes;
	CudaNode *node = g && g->depth > 0 ? &g->nodes[g->n - 1] : NULL;
	if (!node || node->func != -1)
		return;
	node->func = func;
	if (func < 0)
		return;
	node->head = cg->run; // what is printed next is the launch
	text_init(&cg->run, cg->arena);
}

int cuda_node_count_down(Codegen *cg, int word, const char *condition, const char *line)
{
	CudaNodes *g = cg->cuda.nodes;
	int i = g->n;
	while (i > 0 && g->nodes[i - 1].func < 0)
		i--;
	if (!i)
		return -1;
	CudaNode *node = &g->nodes[i - 1];
	node->count = line;
	const Dim *one = dim_const(cg->ctx, 1), *at_word = dim_const(cg->ctx, word);
	accesses_add(cg->arena, &node->accesses,
	             (Access){MEMORY_SIZES, ACCESS_WRITE, at_word, dim_add(cg->ctx, at_word, one)});
	const Dim *number = pointer_map_get(&cg->cuda.conditions, condition);
	accesses_add(cg->arena, &node->accesses,
	             (Access){MEMORY_CONDITIONS, ACCESS_WRITE, number, dim_add(cg->ctx, number, one)});
	return node->func;
}

// Whether node i comes where it is printed: behind the one in front of it, or the first of all.
static bool follows(const Waits *waits, int i)
{
	return i ? waits[i].n == 1 && waits[i].steps[0] == i - 1 : true;
}

static const char *after_text(Codegen *cg, const char *const *names, const Waits *w)
{
	Text out;
	text_init(&out, cg->arena);
	text_str(&out, w->n ? "\tpd_after(queue" : "\tpd_after_nothing(queue");
	for (int k = w->n - 1; k >= 0; k--)
		text_printf(&out, ", %s", names[w->steps[k]]);
	text_str(&out, ");\n");
	return out.text;
}

// The nodes that none waits for.
static Waits nodes_last(Codegen *cg, const CudaNodes *g, const Waits *waits)
{
	bool *awaited = NEW_ARRAY(cg->arena, (size_t)g->n + 1, bool);
	int *list = NEW_ARRAY(cg->arena, (size_t)g->n + 1, int), n = 0;
	for (int i = 0; i < g->n; i++)
		for (int k = 0; k < waits[i].n; k++)
			awaited[waits[i].steps[k]] = true;
	for (int i = g->n; i-- > 0;)
		if (!awaited[i])
			list[n++] = i;
	return (Waits){n, list};
}

// Names for nodes that somebody is printed to wait for, by `last` too.
static const char **nodes_name(Codegen *cg, const CudaNodes *g, const Waits *waits,
                               const Waits *last)
{
	const char **names = NEW_ARRAY(cg->arena, (size_t)g->n + 1, const char *);
	bool *named = NEW_ARRAY(cg->arena, (size_t)g->n + 1, bool);
	for (int i = 0; i < g->n; i++)
		for (int k = 0; k < waits[i].n && !follows(waits, i); k++)
			named[waits[i].steps[k]] = true;
	for (int k = 0; k < last->n; k++)
		named[last->steps[k]] = true;
	for (int i = 0; i < g->n; i++)
		if (named[i])
			names[i] = names_unique(&cg->locals,
			                        arena_printf(cg->arena, "%s_done", g->nodes[i].stem));
	return names;
}

// Behind this all nodes of a round are done.
static void round_end_print(Codegen *cg, const char *const *names, const Waits *last)
{
	if (last->n < 2)
		return;
	text_str(&cg->run, after_text(cg, names, last));
	text_line(&cg->run, 1, "pd_meet(queue);");
}

// In front of a round with several nodes that wait for no other of it; the name of where it begins,
// else NULL.
static const char *round_begin_print(Codegen *cg, int n, const Waits *waits)
{
	int first = 0;
	for (int i = 0; i < n; i++)
		first += waits[i].n == 0;
	if (first < 2)
		return NULL;
	const char *name = names_unique(&cg->locals, "round_begun");
	text_line(&cg->run, 1, "pd_meet(queue);");
	text_line(&cg->run, 1, "const cudaGraphNode_t %s = pd_last(queue);", name);
	return name;
}

// A node, behind `after`: those that it is printed to wait for; "": the one in front of it.
static void node_print(Codegen *cg, const CudaNode *node, const char *after, const char *name)
{
	const char *head = node->head.len ? node->head.text : "", *text = node->text.text;
	if (*(*head ? head : text) == '\n') { // stands in front of what is said of the node, too
		text_char(&cg->run, '\n');
		*head ? head++ : text++;
	}
	text_str(&cg->run, after);
	text_str(&cg->run, head);
	if (node->count)
		text_line(&cg->run, 1, "%s", node->count);
	text_str(&cg->run, text);
	if (name)
		text_line(&cg->run, 1, "const cudaGraphNode_t %s = pd_last(queue);", name);
}

void cuda_nodes_end(Codegen *cg, bool repeated)
{
	CudaNodes *g = cg->cuda.nodes;
	Accesses *accesses = NEW_ARRAY(cg->arena, (size_t)g->n + 1, Accesses);
	for (int i = 0; i < g->n; i++)
		accesses[i] = g->nodes[i].accesses;
	Context view = context_of_known_sizes(
		cg->ctx); // offsets are evaluated with sizes of at least 1
	const Waits *waits = deps_find(&view, cg->arena, g->n, accesses);
	const Waits none = {0}, last = repeated ? nodes_last(cg, g, waits) : none;
	const char **names = nodes_name(cg, g, waits, last.n > 1 ? &last : &none);
	cg->cuda.nodes = g->outer;
	cg->run = g->outer_run;
	const char *begun = repeated ? round_begin_print(cg, g->n, waits) : NULL;
	for (int i = 0; i < g->n; i++) {
		const char *after = follows(waits, i) ? ""
		                    : begun && !waits[i].n
		                        ? arena_printf(cg->arena, "\tpd_after(queue, %s);\n", begun)
		                        : after_text(cg, names, &waits[i]);
		node_print(cg, &g->nodes[i], after, names[i]);
		if (g->outer && g->outer->depth > 0)
			accesses_add_all(cg->arena, &g->outer->nodes[g->outer->n - 1].accesses, &accesses[i]);
	}
	round_end_print(cg, names, &last);
}
