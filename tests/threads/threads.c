/* A model made with --threads, as a program of its own uses it: outputs are the same bytes for any number of threads, of a
 * pool of pdrt_threads.c and of one of the caller's; instances side by side, of one pool and of two; what fails gives a
 * status. Linked with -Wl,--wrap=pthread_create. All symbols of the model are 3. Prints what is wrong. */
#define _POSIX_C_SOURCE 200809L
#include "model.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PORTS = 16, SYMBOLS = 16, ROUNDS = 20 };

#define EXPECT(condition)                                               \
	do {                                                                \
		if (!(condition)) {                                             \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                    \
		}                                                               \
	} while (0)

static int refused = -1; /* the thread that the system does not give */

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x)
{
	return refused >= 0 && refused-- == 0 ? EAGAIN : __real_pthread_create(t, a, f, x);
}

typedef struct Instance {
	model m;
	void *workspace, *outputs[MAX_PORTS];
	size_t bytes[MAX_PORTS];
} Instance;

static const void *inputs[MAX_PORTS];
static void *weights;

static void *memory(size_t size)
{
	void *p = NULL;
	EXPECT(!posix_memalign(&p, 64, size + 64));
	memset(p, 0xff, size + 64);
	return p;
}

static void instance_make(Instance *x)
{
	const pd_model_info *info = model_info();
	int64_t symbols[SYMBOLS], room[MAX_PORTS];
	for (int i = 0; i < SYMBOLS; i++)
		symbols[i] = 3;
	const size_t size = info->workspace_size(symbols);
	EXPECT(size != SIZE_MAX);
	x->workspace = memory(size);
	EXPECT(info->init(&x->m, weights, info->weights_size, x->workspace, size) == PD_OK);
	info->room(symbols, room);
	for (int i = 0; i < info->outputs; i++) {
		x->bytes[i] = (size_t)room[i] * pd_dtype_size(info->output[i].dtype);
		x->outputs[i] = memory(x->bytes[i]);
	}
}

static void instance_free(Instance *x)
{
	free(x->workspace);
	for (int i = 0; i < model_info()->outputs; i++)
		free(x->outputs[i]);
}

static void instance_run(Instance *x)
{
	int64_t symbols[SYMBOLS];
	for (int i = 0; i < SYMBOLS; i++)
		symbols[i] = 3;
	const pd_status status = model_info()->run(&x->m, inputs, x->outputs, symbols);
	if (status != PD_OK)
		printf("%s: %s\n", pd_status_text(status), x->m.failed ? x->m.failed : "");
	EXPECT(status == PD_OK);
}

static void compare(const Instance *want, Instance *x)
{
	for (int i = 0; i < model_info()->outputs; i++) {
		EXPECT(!memcmp(want->outputs[i], x->outputs[i], x->bytes[i]));
		memset(x->outputs[i], 0xff, x->bytes[i]);
	}
}

/* A pool of the caller's: parts one after the other, the last one first. */
static void backwards(void *pool, pd_task *task, void *context, int parts)
{
	*(int *)pool += parts > 1;
	for (int i = parts; i-- > 0;)
		task(context, i);
}

static void pools(const Instance *want)
{
	for (int n = 1; n <= MODEL_THREADS + 1; n++) {
		pd_threads *pool;
		Instance x;
		EXPECT(pd_threads_start(&pool, n) == PD_OK);
		instance_make(&x);
		for (int share = 1; share <= MODEL_THREADS + 1; share++) {
			EXPECT(model_threads(&x.m, share, pd_threads_for, pool) == PD_OK);
			instance_run(&x);
			compare(want, &x);
		}
		pd_threads_stop(pool);
		int shared = 0;
		EXPECT(model_threads(&x.m, n, backwards, &shared) == PD_OK);
		instance_run(&x);
		compare(want, &x);
		EXPECT(n == 1 ? !shared : shared > 0);
		instance_free(&x);
	}
}

typedef struct Side {
	Instance x;
	const Instance *want;
	pd_threads *pool;
} Side;

static void *side_run(void *argument)
{
	Side *s = (Side *)argument;
	for (int i = 0; i < ROUNDS; i++) {
		instance_run(&s->x);
		compare(s->want, &s->x);
	}
	return NULL;
}

static void side_by_side(const Instance *want, int npool)
{
	pd_threads *pool[2];
	Side sides[2];
	pthread_t other;
	for (int i = 0; i < npool; i++)
		EXPECT(pd_threads_start(&pool[i], 2) == PD_OK);
	for (int i = 0; i < 2; i++) {
		sides[i].want = want;
		instance_make(&sides[i].x);
		EXPECT(model_info()->threads(&sides[i].x.m, 2, pd_threads_for, pool[i % npool]) == PD_OK);
	}
	EXPECT(!pthread_create(&other, NULL, side_run, &sides[1]));
	side_run(&sides[0]);
	EXPECT(!pthread_join(other, NULL));
	for (int i = 0; i < npool; i++)
		pd_threads_stop(pool[i]);
	for (int i = 0; i < 2; i++)
		instance_free(&sides[i].x);
}

static void failures(Instance *x)
{
	pd_threads *pool = (pd_threads *)x;
	for (int i = 0; i < 3; i++) {
		refused = i;
		EXPECT(pd_threads_start(&pool, 4) == PD_THREADS && !pool && refused == -1);
	}
	EXPECT(pd_threads_start(&pool, 0) == PD_DIMS && !pool);
	EXPECT(pd_threads_start(&pool, PD_THREADS_MAX + 1) == PD_DIMS);
	EXPECT(pd_threads_start(NULL, 2) == PD_NULL);
	EXPECT(model_threads(NULL, 1, NULL, NULL) == PD_NULL);
	EXPECT(model_threads(&x->m, 2, NULL, NULL) == PD_NULL);
	EXPECT(model_threads(&x->m, 0, pd_threads_for, NULL) == PD_DIMS);
	EXPECT(model_threads(&x->m, 1, NULL, NULL) == PD_OK);
	pd_threads_stop(NULL);
}

static void inputs_make(void)
{
	const pd_model_info *info = model_info();
	int64_t symbols[SYMBOLS], *dims = (int64_t *)calloc(1024, sizeof *dims), *at = dims;
	for (int i = 0; i < SYMBOLS; i++)
		symbols[i] = 3;
	info->shapes(symbols, dims);
	for (int i = 0; i < info->inputs; i++) {
		size_t n = 1;
		for (int d = 0; d < info->input[i].rank; d++)
			n *= (size_t)*at++;
		float *x = (float *)memory(n * 8);
		const bool whole = info->input[i].dtype == PD_I64;
		EXPECT(whole || info->input[i].dtype == PD_F32);
		for (size_t k = 0; k < n; k++)
			if (whole)
				((int64_t *)(void *)x)[k] = (int64_t)(k * 7 % 5);
			else
				x[k] = (float)(k * 2654435761u % 1000) / 500 - 1;
		inputs[i] = x;
	}
	free(dims);
}

static void weights_read(const char *path)
{
	const size_t size = model_info()->weights_size;
	if (!size)
		return;
	FILE *f = fopen(path, "rb");
	EXPECT(f);
	weights = memory(size);
	EXPECT(fread(weights, 1, size, f) == size);
	fclose(f);
}

int main(int argc, char **argv)
{
	Instance want;
	EXPECT(argc == 2 && model_info()->inputs <= MAX_PORTS && model_info()->outputs <= MAX_PORTS);
	inputs_make();
	weights_read(argv[1]);
	instance_make(&want);
	instance_run(&want);
	pools(&want);
	side_by_side(&want, 1);
	side_by_side(&want, 2);
	failures(&want);
	instance_free(&want);
	for (int i = 0; i < model_info()->inputs; i++)
		free((void *)(uintptr_t)inputs[i]);
	free(weights);
	puts("all is well");
	return 0;
}
