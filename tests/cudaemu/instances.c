/* What a user of generated CUDA may do, right and wrong, with models of two inputs `x` [4 x 16] f32 and `n` [1] i64 and one
 * output `y` [4 x 16] f32: `instances CHECK [WEIGHTS]` says what is not as it should be, and exits with 1. C11, so that it
 * shows that the header is C; suite_cudaapi.py builds it with each model and the emulator. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 64, ROUNDS = 3, ROOM = 7, MANY = 1000 }; /* ROOM: of arrays, suite_cudaapi.py says so */

static char weights[1 << 16];
static size_t nweights;
static int nwrong;

#define EXPECT(cond) expect(cond, __LINE__, #cond)

static void expect(bool holds, int line, const char *what)
{
	if (!holds && nwrong++ < 10)
		printf("line %d: not so: %s\n", line, what);
}

/* ---- tensors of a run -------------------------------------------------------------------------------------- */

typedef struct Tensors {
	void *x, *n, *y; /* of the device */
} Tensors;

static void *device_memory(size_t size)
{
	void *p = NULL;
	EXPECT(cudaMalloc(&p, size) == cudaSuccess);
	return p;
}

static void rounds_set(const Tensors *t, int64_t rounds)
{
	EXPECT(cudaMemcpy(t->n, &rounds, sizeof rounds, cudaMemcpyHostToDevice) == cudaSuccess);
}

static Tensors tensors_new(float first)
{
	float x[COUNT];
	Tensors t = {device_memory(sizeof x), device_memory(sizeof(int64_t)), device_memory(sizeof x)};
	for (int i = 0; i < COUNT; i++)
		x[i] = first + (float)i / COUNT;
	EXPECT(cudaMemcpy(t.x, x, sizeof x, cudaMemcpyHostToDevice) == cudaSuccess);
	rounds_set(&t, ROUNDS);
	return t;
}

static void tensors_free(Tensors *t)
{
	cudaFree(t->x);
	cudaFree(t->n);
	cudaFree(t->y);
}

static pd_status run(model *m, const Tensors *t, cudaStream_t stream)
{
	const model_inputs in = {.x = t->x, .n = t->n};
	model_outputs out = {.y = t->y};
	return model_run(m, &in, &out, stream);
}

static pd_status wait(model *m, const Tensors *t, cudaStream_t stream)
{
	model_outputs out = {.y = t->y};
	return model_wait(m, &out, stream);
}

/* Whether the result is the one in `want`; the first time it is taken for it. */
static bool result_is(const Tensors *t, float *want)
{
	float y[COUNT];
	const bool first = want[0] == 0;
	EXPECT(cudaMemcpy(y, t->y, sizeof y, cudaMemcpyDeviceToHost) == cudaSuccess);
	EXPECT(cudaMemset(t->y, 0xff, sizeof y) == cudaSuccess);
	if (first)
		memcpy(want, y, sizeof y);
	return y[0] > 0 && !memcmp(y, want, sizeof y);
}

static pd_status init(model *m, void *memory, cudaStream_t stream)
{
	return model_init(m, weights, nweights, memory, model_workspace_size(), stream);
}

/* An instance with memory of its own. */
static model instance_new(cudaStream_t stream)
{
	model m;
	EXPECT(init(&m, NULL, stream) == PD_OK);
	return m;
}

/* ---- the checks -------------------------------------------------------------------------------------------- */

/* Right use: memory of the caller, and of the instance; tensors that change; free, again and again. */
static void check_plain(void)
{
	float want[2][COUNT] = {{0}};
	Tensors t[2] = {tensors_new(1), tensors_new(2)};
	void *const memory = device_memory(model_workspace_size());
	model m = {0};
	model_free(&m);
	model_free(NULL);
	for (int own = 0; own < 2; own++) {
		EXPECT(init(&m, own ? NULL : memory, NULL) == PD_OK);
		for (int i = 0; i < 4; i++) {
			EXPECT(run(&m, &t[i % 2], NULL) == PD_OK && wait(&m, &t[i % 2], NULL) == PD_OK);
			EXPECT(result_is(&t[i % 2], want[i % 2]));
			EXPECT(!m.failed && !m.error);
		}
		model_free(&m);
		model_free(&m);
		EXPECT(run(&m, t, NULL) == PD_NULL && wait(&m, t, NULL) == PD_NULL);
	}
	EXPECT(memcmp(want[0], want[1], sizeof want[0]) != 0);
	cudaFree(memory);
	tensors_free(&t[0]);
	tensors_free(&t[1]);
}

/* A run whose graph is there is one launch, and its end a copy at most, beside asking for the device. For other tensors the
 * graph is updated, unless it has conditions. */
static void check_calls(void)
{
	float want[2][COUNT] = {{0}};
	Tensors t[2] = {tensors_new(1), tensors_new(2)};
	model m = instance_new(NULL);
	EXPECT(run(&m, &t[0], NULL) == PD_OK && wait(&m, &t[0], NULL) == PD_OK && result_is(&t[0], want[0]));
	long before = cudaemu_calls(NULL);
	EXPECT(run(&m, &t[0], NULL) == PD_OK);
	EXPECT(cudaemu_calls(NULL) == before + 2 && cudaemu_calls("cudaGraphLaunch") == 2);
	before = cudaemu_calls(NULL);
	EXPECT(wait(&m, &t[0], NULL) == PD_OK);
	EXPECT(cudaemu_calls(NULL) <= before + 3 && cudaemu_calls("cudaStreamSynchronize") >= 2);
	EXPECT(result_is(&t[0], want[0]));
	const long made = cudaemu_calls("cudaGraphInstantiate"), conditions = cudaemu_calls("cudaGraphConditionalHandleCreate");
	EXPECT(run(&m, &t[1], NULL) == PD_OK && wait(&m, &t[1], NULL) == PD_OK && result_is(&t[1], want[1]));
	EXPECT(cudaemu_calls("cudaGraphInstantiate") == made + (conditions > 0));
	EXPECT(memcmp(want[0], want[1], sizeof want[0]) != 0);
	model_free(&m);
	tensors_free(&t[0]);
	tensors_free(&t[1]);
}

/* Instances side by side, on streams of their own: one with weights, two that share them, runs queued before any is waited
 * for. */
static void check_several(void)
{
	enum { N = 3 };
	float want[N][COUNT] = {{0}};
	Tensors t[N];
	cudaStream_t streams[N];
	model m[N];
	const size_t shared = model_workspace_size() - MODEL_WEIGHTS_BYTES;
	void *const memory = device_memory(shared);
	for (int i = 0; i < N; i++) {
		t[i] = tensors_new((float)(i + 1));
		EXPECT(cudaStreamCreate(&streams[i]) == cudaSuccess);
	}
	m[0] = instance_new(streams[0]);
	EXPECT(model_init_shared(&m[1], &m[0], memory, shared, streams[1]) == PD_OK);
	EXPECT(model_init_shared(&m[2], &m[1], NULL, shared, streams[2]) == PD_OK);
	for (int i = 0; i < N; i++)
		EXPECT(run(&m[0], &t[i], streams[0]) == PD_OK && wait(&m[0], &t[i], streams[0]) == PD_OK && result_is(&t[i], want[i]));
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < N; i++)
			EXPECT(run(&m[i], &t[i], streams[i]) == PD_OK);
		for (int i = N - 1; i >= 0; i--)
			EXPECT(wait(&m[i], &t[i], streams[i]) == PD_OK && result_is(&t[i], want[i]));
	}
	for (int i = N - 1; i >= 0; i--) {
		model_free(&m[i]);
		cudaStreamDestroy(streams[i]);
		tensors_free(&t[i]);
	}
	cudaFree(memory);
}

/* The plan is exact: of the memory, that of the caller or of the instance, every line of 64 bytes is for something, nothing behind
 * it is touched (guard pages see to that), and there is no other. */
static void check_memory(void)
{
	enum { LINE = 64, FILLS = 2 };
	const size_t size = model_workspace_size();
	unsigned char *const memory = device_memory(size), *seen[FILLS];
	Tensors t = tensors_new(1);
	model m;
	rounds_set(&t, ROOM);
	cudaemu_peak();
	const size_t before = cudaemu_peak();
	for (int f = 0; f < FILLS; f++) { /* what is written does not depend on what was there */
		seen[f] = malloc(size);
		EXPECT(seen[f] && cudaMemset(memory, f ? 0x5a : 0xff, size) == cudaSuccess);
		EXPECT(init(&m, memory, NULL) == PD_OK && run(&m, &t, NULL) == PD_OK && wait(&m, &t, NULL) == PD_OK);
		EXPECT(cudaMemcpy(seen[f], memory, size, cudaMemcpyDeviceToHost) == cudaSuccess);
		model_free(&m);
	}
	EXPECT(cudaemu_peak() == before);
	for (size_t line = 0; line < size; line += LINE) {
		bool touched = false;
		for (size_t i = line; i < size && i < line + LINE; i++)
			touched |= seen[0][i] == seen[1][i];
		if (!touched)
			printf("byte %zu of %zu is not touched\n", line, size);
		EXPECT(touched);
	}
	m = instance_new(NULL);
	EXPECT(run(&m, &t, NULL) == PD_OK && wait(&m, &t, NULL) == PD_OK);
	EXPECT(cudaemu_peak() == before + size && size == model_info()->workspace_size(NULL));
	model_free(&m);
	for (int f = 0; f < FILLS; f++)
		free(seen[f]);
	cudaFree(memory);
	tensors_free(&t);
}

/* Wrong use is a status, and then right use works. */
static void check_misuse(void)
{
	static _Alignas(64) char host[1 << 20];
	const size_t size = model_workspace_size();
	float want[COUNT] = {0};
	Tensors t = tensors_new(1), none = {0}, odd = t, ours = t;
	char *const memory = device_memory(size + 64);
	model m, other;
	odd.y = (char *)t.y + 4; /* for a float that would do */
	ours.x = host;
	EXPECT(init(NULL, memory, NULL) == PD_NULL);
	EXPECT(init(&m, memory + 1, NULL) == PD_ALIGNMENT);
	EXPECT(init(&m, memory + 32, NULL) == PD_ALIGNMENT);
	EXPECT(model_init(&m, weights, nweights, memory, size - 1, NULL) == PD_WORKSPACE);
	EXPECT(model_init(&m, weights, nweights, memory, 0, NULL) == PD_WORKSPACE);
	EXPECT(model_init(&m, weights, nweights, NULL, 0, NULL) == PD_WORKSPACE);
	EXPECT(init(&m, host, NULL) == PD_WRONG_DEVICE);
	if (nweights) {
		EXPECT(model_init(&m, NULL, nweights, memory, size, NULL) == PD_NULL);
		EXPECT(model_init(&m, weights, nweights - 1, memory, size, NULL) == PD_WEIGHTS);
	}
	EXPECT(!m.failed && run(&m, &t, NULL) == PD_NULL);
	EXPECT(cudaSetDevice(1) == cudaSuccess);
	EXPECT(init(&m, memory, NULL) == PD_WRONG_DEVICE);
	EXPECT(cudaSetDevice(0) == cudaSuccess);
	EXPECT(init(&m, memory, NULL) == PD_OK);
	EXPECT(model_init_shared(&m, &m, memory, size, NULL) == PD_NULL);
	EXPECT(model_init_shared(&other, NULL, memory, size, NULL) == PD_NULL);
	EXPECT(model_init_shared(&other, &m, NULL, size - MODEL_WEIGHTS_BYTES - 1, NULL) == PD_WORKSPACE);
	model_free(&m);
	EXPECT(model_init_shared(&m, &other, memory, size, NULL) == PD_NULL);
	EXPECT(init(&m, memory, NULL) == PD_OK);
	EXPECT(cudaSetDevice(1) == cudaSuccess);
	EXPECT(model_init_shared(&other, &m, NULL, size, NULL) == PD_WRONG_DEVICE);
	EXPECT(run(&m, &t, NULL) == PD_WRONG_DEVICE && wait(&m, &t, NULL) == PD_WRONG_DEVICE);
	EXPECT(cudaSetDevice(0) == cudaSuccess);
	EXPECT(run(&m, &none, NULL) == PD_NULL);
	EXPECT(run(&m, &odd, NULL) == PD_ALIGNMENT);
	EXPECT(run(&m, &ours, NULL) == PD_WRONG_DEVICE);
	EXPECT(run(&m, &t, NULL) == PD_OK && wait(&m, &t, NULL) == PD_OK && result_is(&t, want));
	model_free(&m);
	cudaFree(memory);
	tensors_free(&t);
}

/* What data makes go wrong: as many rounds as there is no room for, or none where one is asked for. */
static void check_data(void)
{
	float want[COUNT] = {0};
	Tensors t = tensors_new(1);
	const pd_status statuses[] = {PD_CAPACITY, PD_OK, PD_INDEX, PD_OK};
	const int64_t rounds[] = {MANY, ROUNDS, 0, ROUNDS};
	model m = instance_new(NULL);
	for (int i = 0; i < 4; i++) {
		rounds_set(&t, rounds[i]);
		EXPECT(run(&m, &t, NULL) == PD_OK && wait(&m, &t, NULL) == statuses[i]);
		EXPECT(!m.error && (statuses[i] == PD_OK) == !m.failed);
		EXPECT(statuses[i] != PD_OK || result_is(&t, want));
	}
	/* Of runs that nobody waited for in between, the first failure is told, once. */
	rounds_set(&t, MANY);
	EXPECT(run(&m, &t, NULL) == PD_OK);
	rounds_set(&t, ROUNDS);
	EXPECT(run(&m, &t, NULL) == PD_OK && wait(&m, &t, NULL) == PD_CAPACITY && wait(&m, &t, NULL) == PD_OK);
	model_free(&m);
	tensors_free(&t);
}

/* One life of an instance, in which call number `n` of CUDA fails; false when there are not so many. What failed works the
 * next time; what some drivers do not have is done in another way at once. */
static bool life(int n, const char *error, const Tensors *t, float *want)
{
	const bool may_lack = !strcmp(error, "cudaErrorNotSupported");
	char what[64];
	model m;
	snprintf(what, sizeof what, "*:%d:%s", n, error);
	cudaemu_fail(n ? what : NULL);
	pd_status status = init(&m, NULL, NULL);
	const bool ready = status == PD_OK;
	if (status == PD_OK)
		status = run(&m, t, NULL);
	if (status == PD_OK)
		status = wait(&m, t, NULL);
	const bool failed = cudaemu_failed();
	cudaemu_fail(NULL);
	EXPECT(status == (failed ? PD_DEVICE : PD_OK) || (may_lack && status == PD_OK));
	if (status == PD_DEVICE)
		EXPECT(m.failed && m.error && (!strcmp(m.error, error) || !strncmp(m.error, "CUBLAS_STATUS_", 14) || !strncmp(m.error, "CUDNN_STATUS_", 13)));
	EXPECT(cudaGetLastError() == cudaSuccess);
	if (!ready)
		EXPECT(init(&m, NULL, NULL) == PD_OK);
	EXPECT(status == PD_DEVICE || result_is(t, want));
	EXPECT(run(&m, t, NULL) == PD_OK && wait(&m, t, NULL) == PD_OK && result_is(t, want));
	model_free(&m);
	return failed;
}

static void check_failures(void)
{
	static const char *const errors[] = {"cudaErrorMemoryAllocation", "cudaErrorNotSupported"};
	float want[COUNT] = {0};
	Tensors t = tensors_new(1);
	const long live = cudaemu_live();
	for (int e = 0; e < 2; e++) {
		int n = 0;
		while ((life(n, errors[e], &t, want) || !n) && !nwrong) {
			EXPECT(cudaemu_live() == live);
			n++;
		}
		EXPECT(n > 5); /* calls, and all failed in turn */
	}
	tensors_free(&t);
}

int main(int argc, char **argv)
{
	const char *check = argc > 1 ? argv[1] : "";
	FILE *f = argc > 2 ? fopen(argv[2], "rb") : NULL;
	nweights = f ? fread(weights, 1, sizeof weights, f) : 0;
	if (!strcmp(check, "plain"))
		check_plain();
	else if (!strcmp(check, "calls"))
		check_calls();
	else if (!strcmp(check, "several"))
		check_several();
	else if (!strcmp(check, "memory"))
		check_memory();
	else if (!strcmp(check, "misuse"))
		check_misuse();
	else if (!strcmp(check, "data"))
		check_data();
	else if (!strcmp(check, "failures"))
		check_failures();
	else
		expect(false, __LINE__, "a check by that name");
	expect(cudaemu_live() == 0, __LINE__, "nothing is left");
	return nwrong > 0;
}
