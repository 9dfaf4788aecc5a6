/*
 * wait.h: what the program's own waits tell about its operations, and captures.
 */
#pragma once

#include <stdbool.h>

#include <cuda.h>

#include "proto/units.h"
#include "shim/job.h"

/* Everything that was handed to the driver by @until has completed: on one stream (of the calling
 * thread, if it is its default stream), or in one context. */
void wait_covered_stream(CUstream stream, bool per_thread, nsec_t until);
void wait_covered_context(CUcontext context, nsec_t until);

/* A synchronous copy @op of the calling thread has returned at @now. */
void wait_covered_by_copy(const struct op *op, nsec_t now);

/* @event was recorded on the stream after everything handed to the driver by @at; is gone; has
 * completed. The last returns false if nothing is known of it. */
void wait_event_recorded(CUevent event, CUstream stream, bool per_thread, nsec_t at);
void wait_event_gone(CUevent event);
void wait_event_complete(CUevent event);

/* The program has waited: jobs of which everything is complete are over. */
void wait_done(void);

/* While a thread of the program waits, the tracker has less to look for. */
extern _Atomic unsigned wait_threads;

/* Between these no stream may be asked anything, as that would spoil the capture. */
void wait_capture_begins(void);
void wait_capture_ends(void);
bool wait_captures(void);

/* Whether an operation on the stream goes into a graph. Free of cost while nobody captures. */
bool wait_is_capturing(CUstream stream, bool per_thread);

/* After fork, in the child: forget everything without calling the driver. */
void wait_after_fork(void);
