/*
 * wait.h: what the program's own waits tell about its operations.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

/*
 * @event is about to be recorded, by any thread: from now on nothing is known of it. Then, in any
 * case, wait_event_recorded() with the turn that was returned, or with 0 if the driver has not
 * recorded it: it stands behind everything that was handed to the driver in the stream by @at.
 */
uint64_t wait_event_recording(CUevent event);
void wait_event_recorded(CUevent event, uint64_t turn, CUstream stream, bool per_thread,
			 point_t at);

/* @event may from now on be recorded without wait_event_recording(), as by launches of a graph
 * or in another process: nothing is known of it until it is destroyed. */
void wait_event_shared(CUevent event);

/* @event is about to be destroyed. */
void wait_event_gone(CUevent event);

/*
 * Before the driver is asked whether @event is complete, or waits for it: the turn of its last
 * recording, 0: nothing is known. Then wait_event_complete(): the driver says that it is, which
 * tells something unless the event was recorded anew meanwhile.
 */
uint64_t wait_event_last(CUevent event);
void wait_event_complete(CUevent event, uint64_t turn);

/* After fork, in the child: forget everything without calling the driver. */
void wait_after_fork(void);
