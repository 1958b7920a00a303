// The pass table, the order in which passes run, and what runs them. The driver calls lower_run for
// a whole compilation and lower_run_list for `pdcc opt --passes=`.
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "lower/arrays/arrays.h"
#include "lower/clean/clean.h"
#include "lower/cuda/cuda.h"
#include "lower/kernels/kernels.h"
#include "lower/lower.h"
#include "lower/memory/memory.h"
#include "lower/nests/nests.h"
#include "lower/pass/pass.h"

#include <string.h>
#include <time.h>

static const Pass passes[] = {
	{"expand", "operators that go step by step to loops", pass_expand},
	{"canonicalize", "identities and dead shape operands go, what is known is constant",
     pass_canonicalize},
	{"fold", "evaluate operations on constants and parameters", pass_fold},
	{"unit-rows", "sequences stay images of one row between convolutions", pass_unit_rows},
	{"fold-batch-norm", "fold batch norms into the weights before them", pass_fold_batch_norm},
	{"integers", "products of quantised values in integers", pass_integers},
	{"cse", "merge equal operations", pass_cse},
	{"dce", "remove what nobody reads, unused parameters included", pass_dce},
	{"strip-backward", "the program without the gradients that --grad added", pass_strip_backward},
	{"dead-stacks", "stacks that nobody pops, and what is pushed on them", pass_dead_stacks},
	{"stacks", "stacks to tensor arrays", pass_stacks},
	{"forward-arrays", "what was written to a tensor array is not read again", pass_forward_arrays},
	{"arrays", "tensor arrays to tensors with room for their elements", pass_arrays},
	{"attention", "products of queries, keys and values to one kernel, for CUDA", pass_attention},
	{"decompose", "composites to simpler operations and kernels", pass_decompose},
	{"layout", "contractions to tuned kernels, blocked channels, packed weights", pass_layout},
	{"winograd", "convolutions to Winograd's, where these are faster", pass_winograd},
	{"to-loops", "every remaining operation to loop nests by its definition", pass_to_loops},
	{"fuse", "nests into nests, into epilogues and into prologues", pass_fuse},
	{"split-reductions", "CUDA: long reductions of few elements in parts", pass_split_reductions},
	{"hoist-terms", "what no term of a reduction changes goes in front of it", pass_hoist_terms},
	{"join-axes", "C: axes that one position finds by division are one", pass_join_axes},
	{"split-loops", "C: a last index that is divided becomes two", pass_split_loops},
	{"sccp", "variables and results that are one number, whichever way the program runs",
     pass_sccp},
	{"simplify-if", "known and equal conditions, results nobody needs", pass_simplify_if},
	{"loop-args", "variables of loops that stay, that are one, that nobody reads", pass_loop_args},
	{"loop-trips", "loops of no, one and few rounds", pass_loop_trips},
	{"order-values", "variables of loops by first use, results of branches by what gives them",
     pass_order_values},
	{"cases", "chains of pd.if on one number to pd.case", pass_cases},
	{"count-loops", "CUDA: loops whose rounds are known on entry count them", pass_count_loops},
	{"select", "small branches that only choose to pd.where", pass_select},
	{"sink", "what one branch alone reads moves into it", pass_sink},
	{"hoist", "what a loop does not change goes in front of it", pass_hoist},
	{"bounds", "how large sizes may become that change in control flow", pass_bounds},
	{"flatten", "pd.if, pd.case and pd.while to blocks with branches between them", pass_flatten},
	{"threads", "C: kernels and nests that several threads share", pass_threads},
	{"scratch", "memory that kernels work in", pass_scratch},
	{"state", "what runs store in parameters goes to their end", pass_state},
	{"updates", "next values of parameters as early as may be", pass_updates},
	{"plan", "a place in memory for every value", pass_plan},
	{"positions", "indices from data that are positions as the way there says", pass_positions},
	{"cuda-epilogues", "CUDA: what calls of libraries do of the epilogue", pass_cuda_epilogues},
	{"cuda-forms", "CUDA: vectors, squares and teams of threads for each nest", pass_cuda_forms},
	{"check-kernels", "CUDA: kernels are shared by threads as their templates can",
     pass_check_kernels},
	{"cuda-steps", "CUDA: what one block of threads does, forms of loops", pass_cuda_steps},
	{"cuda-waits", "CUDA: which steps are one kernel, which wait for which", pass_cuda_waits},
	{"check-waits", "CUDA: no step comes before what it needs", pass_check_waits},
};

// A stage is what `--emit=` and lower_run's `until` can stop after.
typedef struct Stage {
	const char *name;
	const char *passes; // comma-separated
} Stage;

// Clean runs its passes twice: folded weights uncover identities, and the other way around; and
// once more after loops and branches became fewer.
static const Stage stages[] = {
	{"clean",
     "expand,dead-stacks,canonicalize,integers,fold,unit-rows,canonicalize,fold-batch-norm,"
     "canonicalize,fold,cse,sccp,simplify-if,loop-"
     "args,loop-trips,"
     "canonicalize,fold,cse,simplify-if,loop-args,dce,sink,select,hoist,cse,simplify-if,"
     "dce,order-values,cases,dce,bounds"},
	{"arrays", "stacks,forward-arrays,arrays,canonicalize,fold,cse,loop-args,dce,bounds"},
	{"decompose", "attention,count-loops,loop-args,decompose,canonicalize,fold,cse,dce"},
	{"layout", "layout,winograd,canonicalize,fold,cse,dce"},
	{"to-loops", "to-loops"},
	{"fuse", "fuse,fold,dce,hoist,to-loops,split-reductions,hoist-terms,join-axes,split-loops"},
	{"plan", "flatten,state,dce,updates,threads,scratch,plan,positions"},
	{"schedule", "cuda-epilogues,cuda-forms,check-kernels,cuda-steps,cuda-waits,check-waits"},
};

const Pass *pass_table(int *n)
{
	*n = COUNT_OF(passes);
	return passes;
}

const char *pass_meant(Context *c, const char *name)
{
	const char *names[COUNT_OF(passes)];
	for (size_t i = 0; i < COUNT_OF(passes); i++)
		names[i] = passes[i].name;
	return name_meant(c->arena, name, COUNT_OF(passes), names);
}

static const Pass *pass_find(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT_OF(passes); i++)
		if (strlen(passes[i].name) == len && !memcmp(passes[i].name, name, len))
			return &passes[i];
	return NULL;
}

// Prints the module where `wanted` names the pass; of several runs in a pipeline the last one comes
// last.
static void pass_print(PassContext *p, const Pass *pass, const char *wanted, const char *when)
{
	Text text;
	if (!wanted || (strcmp(wanted, "all") && strcmp(wanted, pass->name)))
		return;
	text_init(&text, p->ctx->arena);
	ir_print(&text, p->module);
	fprintf(stderr, "// %s %s\n%s", when, pass->name, text.text);
}

static bool pass_run(PassContext *p, const Pass *pass)
{
	pass_print(p, pass, p->print_before, "before");
	clock_t start = clock();
	if (!pass->run(p))
		return false;
	if (p->time_report)
		fprintf(stderr, "%8.1f ms  %s\n", 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC,
		        pass->name);
	pass_print(p, pass, p->print_after, "after");
	if (p->verify && !ir_verify(p->module)) {
		diag_note(p->ctx->diag, &loc_unknown, "the module was valid before pass '%s'", pass->name);
		return false;
	}
	return true;
}

// The passes of the stage of that name, NULL: none.
static const char *stage_passes(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT_OF(stages); i++)
		if (strlen(stages[i].name) == len && !memcmp(stages[i].name, name, len))
			return stages[i].passes;
	return NULL;
}

bool lower_run_list(PassContext *p, const char *names)
{
	p->ctx->nests_only = p->target && p->target->simt;
	while (*names) {
		size_t len = strcspn(names, ",");
		const Pass *pass = pass_find(names, len);
		const char *stage = pass ? NULL : stage_passes(names, len);
		if (!pass && !stage) {
			const char *name = context_strn(p->ctx, names, len);
			diag_error(p->ctx->diag, &loc_unknown, "no pass is named '%s'%s", name,
			           pass_meant(p->ctx, name));
			return false;
		}
		// What a stage lists are passes, so this goes no deeper.
		if (pass ? !pass_run(p, pass) : !lower_run_list(p, stage))
			return false;
		names += len + (names[len] == ',');
	}
	return true;
}

const char *lower_stage(int i, const char **names)
{
	if (i >= (int)COUNT_OF(stages))
		return NULL;
	*names = stages[i].passes;
	return stages[i].name;
}

bool lower_run(PassContext *p, const char *until)
{
	p->ctx->derived = true;
	for (size_t i = 0; i < COUNT_OF(stages); i++) {
		if (!lower_run_list(p, stages[i].passes))
			return false;
		if (until && !strcmp(until, stages[i].name))
			return true;
	}
	if (until) {
		diag_error(p->ctx->diag, &loc_unknown, "no stage of lowering is named '%s'", until);
		return false;
	}
	return true;
}
