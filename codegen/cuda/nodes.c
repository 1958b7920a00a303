// Nodes of a CUDA graph, as pass cuda-waits says (ir/core/waits.h): of which node a step is,
// and for whom nodes wait, which is printed in front of them when their graph is complete. Called
// by cuda/graph.c, and by whoever prints a launch.
//
// Nodes are printed in the order of the program. One that waits for just the node in front of it is
// printed without a word; else `pd_after` says for whom it waits, by names that only such nodes
// have.
#include "codegen/cuda/cuda.h"
#include "codegen/device/device.h"
#include "ir/base/vec.h"
#include "ir/core/waits.h"
#include "lower/analysis/analysis.h"

#include <string.h>

// Printed, with what belongs to it: a launch or several, one behind the other, or a conditional
// node with all inside.
typedef struct CudaNode {
	int number;       // 0: none of its steps has been printed
	const Op *owner;  // that has the first of them
	const char *stem; // of its name
	int func; // the first of the program's functions that it launches with a guard; less than 0:
	          // none
	Text head, text;   // in front of that launch, and from there on; without one all is `text`
	const char *count; // a line in front of that launch; NULL: none
} CudaNode;

struct CudaNodes {
	CudaNodes *outer;
	Text outer_run; // what was printed of the node of the outer graph that this one is in
	bool in_part;   // of a conditional node, in which launches have a guard
	int n, cap, depth;
	CudaNode *nodes; // the last one is open when depth > 0
};

// How many steps a node has, and how many of them are printed.
typedef struct NodeSteps {
	int total, printed;
} NodeSteps;

struct CudaSchedule {
	int most; // the largest number of a node
	NodeSteps *nodes;
	PointerMap next; // Op -> which of its steps is printed next
};

// ---- steps --------------------------------------------------------------------------------------

// The operations with steps: the module itself, and those in it.
static const Op *schedule_next(const Codegen *cg, const Op *op)
{
	return op == cg->module ? module_first(op) : module_next(op);
}

static bool no_schedule(Codegen *cg, const Op *op)
{
	diag_error(cg->ctx->diag, op->loc,
	           "code generation: the steps of '%s' are not those that its nodes have",
	           op->info->name);
	return false;
}

bool cuda_schedule_begin(Codegen *cg)
{
	CudaSchedule *z = NEW(cg->arena, CudaSchedule);
	int64_t nstep = 0, most = 0;
	for (const Op *op = cg->module; op; op = schedule_next(cg, op)) {
		const Attr *step = op_attr(op, "node");
		nstep += step ? step->n : 0;
		for (int i = 0; step && i < step->n; i++)
			most = step->ints[i] > most ? step->ints[i] : most;
	}
	if (most > 2 * nstep) // each step begins two nodes at most
		return no_schedule(cg, cg->module);
	z->most = (int)most;
	z->nodes = NEW_ARRAY(cg->arena, (size_t)most + 1, NodeSteps);
	for (const Op *op = cg->module; op; op = schedule_next(cg, op)) {
		const Attr *step = op_attr(op, "node");
		for (int i = 0; step && i < step->n; i++)
			z->nodes[step->ints[i]].total++;
	}
	pointer_map_init(&z->next, cg->arena);
	cg->cuda.schedule = z;
	return true;
}

bool cuda_schedule_end(Codegen *cg)
{
	const CudaSchedule *z = cg->cuda.schedule;
	for (int i = 0; i <= z->most; i++)
		if (z->nodes[i].printed != z->nodes[i].total)
			return no_schedule(cg, cg->module);
	return true;
}

// The number of the step of op that is printed next, in one of its lists; 0: there is none.
static int step_number(const Codegen *cg, const Op *op, const char *attr)
{
	const Attr *step = op_attr(op, attr);
	const int had = pointer_map_index(&cg->cuda.schedule->next, op), i = had < 0 ? 0 : had;
	return step && i < step->n ? (int)step->ints[i] : 0;
}

bool cuda_step_is_alone(const Codegen *cg, const Op *op)
{
	return cg->cuda.schedule->nodes[step_number(cg, op, "node")].total < 2;
}

int cuda_node_step(Codegen *cg, const Op *op)
{
	CudaNodes *g = cg->cuda.nodes;
	CudaSchedule *z = cg->cuda.schedule;
	CudaNode *node = &g->nodes[g->n - 1];
	const int number = step_number(cg, op, "node"), part = step_number(cg, op, "apart");
	if (!node->number) {
		node->number = number;
		node->owner = op;
	}
	if (!number || number != node->number)
		return no_schedule(cg, op), 0;
	z->nodes[number].printed++;
	const int had = pointer_map_index(&z->next, op);
	pointer_map_set_index(&z->next, op, had < 0 ? 1 : had + 1);
	return part;
}

void cuda_node_part(Codegen *cg, const Op *op, int number)
{
	CudaNodes *g = cg->cuda.nodes;
	g->nodes[g->n - 1].number = number;
	g->nodes[g->n - 1].owner = op;
}

bool cuda_node_is_whole(const Codegen *cg)
{
	const CudaNodes *g = cg->cuda.nodes;
	const NodeSteps *steps = &cg->cuda.schedule->nodes[g->nodes[g->n - 1].number];
	return steps->printed == steps->total;
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

void cuda_nodes_begin(Codegen *cg, bool part)
{
	CudaNodes *g = NEW(cg->arena, CudaNodes), *outer = cg->cuda.nodes;
	*g = (CudaNodes){
		.outer = outer, .outer_run = cg->run, .in_part = part || (outer && outer->in_part)};
	text_init(&cg->run, cg->arena);
	cg->cuda.nodes = g;
}

bool cuda_in_part(const Codegen *cg)
{
	return cg->cuda.nodes->in_part;
}

void cuda_node_begin(Codegen *cg, const char *stem)
{
	CudaNodes *g = cg->cuda.nodes;
	if (g->depth++)
		return;
	VEC_ROOM(cg->arena, g->nodes, g->n, g->cap);
	g->nodes[g->n++] = (CudaNode){.stem = stem, .func = -1};
}

void cuda_node_end(Codegen *cg)
{
	CudaNodes *g = cg->cuda.nodes;
	if (--g->depth)
		return;
	if (!g->nodes[g->n - 1].number) { // no step: what was printed goes with the next one
		g->n--;
		return;
	}
	g->nodes[g->n - 1].text = cg->run;
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

int cuda_node_count_down(Codegen *cg, const Op *back, const char *line)
{
	CudaNodes *g = cg->cuda.nodes;
	const Attr *counts = op_attr(back, "counts");
	for (int i = 0; i < g->n; i++)
		for (int k = 0; counts && k < counts->n; k++)
			if (g->nodes[i].number == counts->ints[k] && g->nodes[i].func >= 0) {
				g->nodes[i].count = line;
				return g->nodes[i].func;
			}
	return -1;
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

// The nodes in a line of numbers of `owner`, the last one first. False: there is no such line.
static bool nodes_read(Codegen *cg, const CudaNodes *g, const Op *owner, const char *attr,
                       int number, Waits *out)
{
	WaitsLine line;
	if (!owner || !waits_find(cg->arena, owner, attr, number, &line))
		return false;
	int *list = NEW_ARRAY(cg->arena, (size_t)line.n + 1, int);
	*out = (Waits){0, list};
	for (int k = line.n; k-- > 0;)
		for (int i = 0; i < g->n; i++)
			if (g->nodes[i].number == line.list[k])
				list[out->n++] = i;
	if (out->n != line.n)
		no_schedule(cg, owner);
	return true;
}

// For whom each node waits: for the one in front of it where nothing else is said.
static const Waits *waits_of(Codegen *cg, const CudaNodes *g)
{
	Waits *waits = NEW_ARRAY(cg->arena, (size_t)g->n + 1, Waits);
	for (int i = 0; i < g->n; i++) {
		const CudaNode *node = &g->nodes[i];
		int *before = NEW(cg->arena, int);
		*before = i - 1;
		if (!nodes_read(cg, g, node->owner, "after", node->number, &waits[i]))
			waits[i] = (Waits){i > 0, before};
	}
	return waits;
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
	CudaNodes *g = cg->cuda.nodes, *outer = g->outer;
	const CudaNode *around = outer && outer->depth > 0 ? &outer->nodes[outer->n - 1] : NULL;
	const Waits *waits = waits_of(cg, g);
	Waits last = {0};
	if (repeated && around)
		nodes_read(cg, g, around->owner, "meet", around->number, &last);
	const char **names = nodes_name(cg, g, waits, &last);
	const Text rest = cg->run;
	cg->cuda.nodes = outer;
	cg->run = g->outer_run;
	const char *begun = repeated ? round_begin_print(cg, g->n, waits) : NULL;
	for (int i = 0; i < g->n; i++) {
		const char *after = follows(waits, i) ? ""
		                    : begun && !waits[i].n
		                        ? arena_printf(cg->arena, "\tpd_after(queue, %s);\n", begun)
		                        : after_text(cg, names, &waits[i]);
		node_print(cg, &g->nodes[i], after, names[i]);
	}
	text_strn(&cg->run, rest.text ? rest.text : "", rest.len);
	round_end_print(cg, names, &last);
}
