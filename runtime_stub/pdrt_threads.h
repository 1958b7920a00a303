/* A pool of threads that share the work of code generated with --threads (pdrt_threads.c, with
 * -pthread). Who has threads of their own gives a pd_parallel_for of their own, and needs nothing
 * of this but the header. C11 and C++17. */
#ifndef PDRT_THREADS_H
#define PDRT_THREADS_H

#include "pdrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pool of threads that first spin and then sleep while there is nothing to do. Part i runs on
 * thread i; the caller is thread 0. */
typedef struct pd_threads pd_threads;

enum { PD_THREADS_MAX = 64 };

/* Starts a pool of `threads` threads, the caller's counted: 1 to PD_THREADS_MAX, else PD_DIMS.
 * PD_THREADS: the system gives no memory or not as many; then there is no pool. */
PDRT_EXPORT pd_status pd_threads_start(pd_threads **pool, int threads);
/* Ends its threads; nobody may be using it. NULL is fine. */
PDRT_EXPORT void pd_threads_stop(pd_threads *pool);
/* A pd_parallel_for; `pool` is a pd_threads. Several threads may call it at the same time: one of
 * them has the pool, the others go through their parts alone. */
PDRT_EXPORT void pd_threads_for(void *pool, pd_task *task, void *context, int parts);

#ifdef __cplusplus
}
#endif

#endif
