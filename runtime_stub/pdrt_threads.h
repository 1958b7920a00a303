/* How code generated with --threads shares its work: a callback that runs the parts of a task side
 * by side, and a pool of threads that can (pdrt_threads.c, with -pthread). Who has threads of their
 * own gives their own callback, and needs nothing but this header. C11 and C++17. */
#ifndef PDRT_THREADS_H
#define PDRT_THREADS_H

#include "pdrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One part of a task; parts of a task touch nothing that another part writes. */
typedef void pd_task(void *context, int part);

/* Calls task(context, i) once for each i in [0, parts), on any threads, in any order, also one
 * after the other, and returns when all are done: what they have written is seen by the caller. */
typedef void pd_parallel_for(void *pool, pd_task *task, void *context, int parts);

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
