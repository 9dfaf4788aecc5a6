/*
 * wait.h: what the program's own waits tell about its operations.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "shim/point.h"

struct stream_use;

/* Everything that was handed to the driver by @until has completed: on one stream (of the calling
 * thread, if it is its default stream), or in one context. */
void wait_covered_stream(CUstream stream, bool per_thread, point_t until);
void wait_covered_context(CUcontext context, point_t until);

/* A synchronous copy of the calling thread on the stream of @use, begun at @begun, has returned; it
 * is the last operation there. */
void wait_covered_by_copy(struct stream_use *use, point_t begun);

/* @event was recorded on the stream after everything handed to the driver by @at; is gone; has
 * completed. The last returns false if nothing is known of it. */
void wait_event_recorded(CUevent event, CUstream stream, bool per_thread, point_t at);
void wait_event_gone(CUevent event);
void wait_event_complete(CUevent event);

/* While a thread of the program waits, the tracker has less to look for. */
extern _Atomic unsigned wait_threads;

/* After fork, in the child: forget everything without calling the driver. */
void wait_after_fork(void);
