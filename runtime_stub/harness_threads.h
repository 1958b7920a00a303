/* The threads that share the runs of harness.c, when it is built with HARNESS_THREADS, for models
 * that were made with --threads. */
#ifndef HARNESS_THREADS_H
#define HARNESS_THREADS_H

#ifdef HARNESS_THREADS

static void *threads_start(int n)
{
	pd_threads *pool;
	const pd_status status = pd_threads_start(&pool, n);
	if (status != PD_OK)
		fail("%s", pd_status_text(status));
	return pool;
}

static void threads_stop(void *pool)
{
	pd_threads_stop((pd_threads *)pool);
}

static pd_status threads_give(void *instance, int n, void *pool)
{
	return model_info()->threads(instance, n, pd_threads_for, pool);
}

#else

static void *threads_start(int n)
{
	if (n > 1)
		fail("the model was made for one thread");
	return NULL;
}

static void threads_stop(void *pool)
{
	(void)pool;
}

static pd_status threads_give(void *instance, int n, void *pool)
{
	(void)instance, (void)n, (void)pool;
	return PD_OK;
}

#endif

#endif
