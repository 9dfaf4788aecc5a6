/*
 * capture.h: whether the program captures streams into graphs.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

struct worker;

/*
 * Between these no stream may be asked anything, as that would spoil the capture. It begins in the
 * stream of @key (worker_stream_key()), which is @context's, and @thread's own default stream
 * (NULL: it is none). It ends there, or with all captures in the streams of a context or a thread
 * that is gone: no other thread can end those. The end of none is nothing.
 */
void capture_begin(uint64_t key, CUcontext context, const struct worker *thread);
void capture_end(uint64_t key);
void capture_context_gone(CUcontext context);
void capture_thread_gone(const struct worker *thread);

/* Whether any stream is being captured. */
extern _Atomic unsigned capture_count __attribute__((visibility("hidden")));

static inline bool capture_any(void) {
	/* In the order that all see: who begins a capture says so, then waits for the tracker's
	 * question; the tracker begins its question, then looks here. */
	return atomic_load(&capture_count) > 0;
}

/* Whether an operation on the stream goes into a graph. @per_thread: stream 0 is the thread's own.
 * Free of cost while nobody captures. */
bool capture_ask(CUstream stream, bool per_thread);

static inline bool capture_is_on(CUstream stream, bool per_thread) {
	return capture_any() && capture_ask(stream, per_thread);
}

/* After fork, in the child: forget everything without calling the driver. */
void capture_after_fork(void);
