// Gives a model whose sizes a run finds the entry that the harness calls, PREFIX_call, through
// PREFIX_info. Compiled with -DINFO=PREFIX_info -DCALL=PREFIX_call and linked with the model's
// shared library. `outputs` are the tensors that are fetched, without offsets of LoD, and must have
// room for what the run gives. -DTHREADS=N: a pool of N threads, as long as the program, shares the
// runs.
#include "pdrt.h"
#ifdef THREADS
#include "pdrt_threads.h"
#endif

#include <stdlib.h>
#include <string.h>

enum { MAX_SYMBOLS = 64, MAX_OUTPUTS = 64, MAX_DIMS = 1024, TRIES = 40 };

const pd_model_info *INFO(void);
int CALL(const void *const *inputs, void *const *outputs);

typedef struct Model {
	void *instance, *workspace, *room[MAX_OUTPUTS];
	int64_t bounds[MAX_SYMBOLS];
} Model;

static void *allocate(size_t bytes)
{
	return aligned_alloc(64, (bytes / 64 + 1) * 64);
}

static void model_close(Model *m)
{
	free(m->instance);
	free(m->workspace);
	for (int i = 0; i < MAX_OUTPUTS; i++)
		free(m->room[i]);
	m->instance = m->workspace = NULL;
	memset(m->room, 0, sizeof m->room);
}

// Shares the runs of an instance, where the model was made for that.
static pd_status model_share(Model *m, const pd_model_info *info)
{
#ifdef THREADS
	static pd_threads *pool;
	const pd_status status = pool ? PD_OK : pd_threads_start(&pool, THREADS);
	return status != PD_OK || !info->threads
	           ? status
	           : info->threads(m->instance, THREADS, pd_threads_for, pool);
#else
	(void)m, (void)info;
	return PD_OK;
#endif
}

// With room for the bounds.
static pd_status model_open(Model *m, const pd_model_info *info)
{
	int64_t elements[MAX_OUTPUTS];
	const size_t bytes = info->workspace_size(m->bounds);
	if (bytes == SIZE_MAX)
		return PD_CAPACITY;
	info->room(m->bounds, elements);
	m->instance = allocate(info->instance_size);
	m->workspace = allocate(bytes);
	bool all = m->instance && m->workspace;
	for (int i = 0; i < info->outputs; i++) {
		m->room[i] = allocate((size_t)elements[i] * pd_dtype_size(info->output[i].dtype));
		all = all && m->room[i];
	}
	const pd_status status = all ? info->init(m->instance, NULL, 0, m->workspace, bytes) : PD_NULL;
	return status == PD_OK ? model_share(m, info) : status;
}

// Copies what was fetched, in the sizes of this run.
static void results_copy(const Model *m, const pd_model_info *info, const int64_t *symbols,
                         void *const *outputs)
{
	int64_t dims[MAX_DIMS];
	const int64_t *d = dims;
	info->shapes(symbols, dims);
	for (int i = 0; i < info->inputs; i++)
		d += info->input[i].rank;
	for (int i = 0, column = 0; i < info->outputs; i++) {
		const pd_tensor_info *t = &info->output[i];
		size_t bytes = pd_dtype_size(t->dtype);
		for (int a = 0; a < t->rank; a++)
			bytes *= (size_t)*d++;
		if (t->lod_of < 0)
			memcpy(outputs[column++], m->room[i], bytes);
	}
}

int CALL(const void *const *inputs, void *const *outputs)
{
	static Model model;
	const pd_model_info *info = INFO();
	if (info->symbols > MAX_SYMBOLS || info->outputs > MAX_OUTPUTS)
		return PD_CAPACITY;
	for (int i = 0; i < info->symbols && !model.instance; i++)
		model.bounds[i] = info->symbol[i].bounded ? -1 : 1;
	pd_status status = PD_CAPACITY;
	for (int i = 0; i < TRIES && status == PD_CAPACITY; i++) {
		int64_t symbols[MAX_SYMBOLS];
		if (!model.instance && (status = model_open(&model, info)) != PD_OK)
			return status;
		memcpy(symbols, model.bounds, sizeof symbols);
		status = info->run(model.instance, inputs, model.room, symbols);
		if (status == PD_OK)
			results_copy(&model, info, symbols, outputs);
		if (status != PD_CAPACITY)
			return status;
		model_close(&model);
		memcpy(model.bounds, symbols, sizeof symbols);
	}
	return status;
}
