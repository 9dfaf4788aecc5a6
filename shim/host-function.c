/* host-function.c: see host-function.h. */
#include "shim/host-function.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/hash.h"
#include "proto/units.h"
#include "shim/base/hot.h"
#include "shim/capture.h"
#include "shim/lane.h"
#include "shim/worker.h"

/* A function that has run for so long waits for something: most take microseconds. Where it does
 * not, and only computes, what stands behind it in its stream runs beside the next job. */
#define BLOCKED_NS (5 * NSEC_PER_MSEC)

/* And meanwhile the other streams have come to the functions that they have: kernels before those
 * hardly ever take longer. */
#define ALL_BLOCKED_NS (20 * NSEC_PER_MSEC)

/* The driver calls one at a time for each context. Of more nothing is known. */
#define RUNNING_MAX 16

/* Of @since: somebody is filling the rest in. */
#define CLAIMED UINT64_MAX

struct host_function {
	union {
		CUhostFn function;
		CUstreamCallback callback;
	};
	void *data;
	CUstream stream;
	uint64_t key;
	CUcontext context;
};

static struct running {
	_Atomic nsec_t since; /* 0: free */
	_Atomic uint64_t key;
	_Atomic(CUcontext) context;
} running[RUNNING_MAX];
HOT_WRITTEN static _Atomic unsigned n_running;

/* By streams: functions that the driver has, but does not call yet. Streams share counters, and one
 * that is destroyed with its context may leave something there: then another one seems to have a
 * function, which counts only while one is blocked. */
#define WAITING_BUCKETS 256
static _Atomic unsigned waiting[WAITING_BUCKETS];

static _Atomic unsigned *waiting_of(uint64_t key) {
	return &waiting[hash_bytes(HASH_EMPTY, &key, sizeof(key)) % WAITING_BUCKETS];
}

static struct host_function *make(CUstream stream, bool per_thread) {
	struct stream_id id;
	struct host_function *h;

	/* A graph calls what it captured any number of times. A library that calls the driver past
	 * us may have begun the capture, so it is the driver that is asked. */
	if (capture_ask(stream, per_thread)) {
		return NULL;
	}
	id = worker_stream_here(stream, per_thread);
	h = id.context ? malloc(sizeof(*h)) : NULL;
	if (h) {
		*h = (struct host_function){
			.stream = stream, .key = id.key, .context = worker_context_of(&id)};
		atomic_fetch_add(waiting_of(h->key), 1);
	}
	return h;
}

struct host_function *host_function_new(CUhostFn function, void *data, CUstream stream,
					bool per_thread) {
	struct host_function *h = function ? make(stream, per_thread) : NULL;

	if (h) {
		h->function = function;
		h->data = data;
	}
	return h;
}

struct host_function *host_function_new_callback(CUstreamCallback callback, void *data,
						 CUstream stream, bool per_thread) {
	struct host_function *h = callback ? make(stream, per_thread) : NULL;

	if (h) {
		h->callback = callback;
		h->data = data;
	}
	return h;
}

void host_function_free(struct host_function *h) {
	atomic_fetch_sub(waiting_of(h->key), 1);
	free(h);
}

/* ---- while it runs ---- */

/* NULL: there is no room, and nothing is known of it. */
static struct running *begin(const struct host_function *h) {
	for (struct running *r = running; r < running + RUNNING_MAX; r++) {
		if (atomic_load(&r->since) == 0 &&
		    atomic_compare_exchange_strong(&r->since, &(nsec_t){0}, CLAIMED)) {
			atomic_store(&r->key, h->key);
			atomic_store(&r->context, h->context);
			atomic_store(&r->since, nsec_now());
			atomic_fetch_add(&n_running, 1);
			return r;
		}
	}
	return NULL;
}

static void end(struct running *r) {
	if (r) {
		atomic_fetch_sub(&n_running, 1);
		atomic_store(&r->since, 0);
	}
}

void CUDA_CB host_function_call(void *data) {
	struct host_function h = *(struct host_function *)data;
	struct running *r = begin(&h);

	host_function_free(data);
	h.function(h.data);
	end(r);
}

void CUDA_CB host_function_call_back(CUstream stream, CUresult status, void *data) {
	struct host_function h = *(struct host_function *)data;
	struct running *r = begin(&h);

	(void)stream;
	host_function_free(data);
	h.callback(h.stream, status, h.data);
	end(r);
}

/* ---- what it blocks ---- */

/* Whether the function that began at @since blocks the stream of @key of @context. */
static bool blocks(const struct running *r, nsec_t since, uint64_t key, CUcontext context) {
	bool same = atomic_load(&r->context) == context;
	nsec_t now = nsec_now();

	if (atomic_load(&r->key) == key && (same || worker_key_is_handle(key))) {
		return now >= since + BLOCKED_NS;
	}
	return same && now >= since + ALL_BLOCKED_NS && atomic_load(waiting_of(key)) > 0;
}

/* Out of line: hardly any program comes here. */
static __attribute__((noinline)) bool find_blocking(uint64_t key, CUcontext context) {
	for (struct running *r = running; r < running + RUNNING_MAX; r++) {
		nsec_t since = atomic_load(&r->since);

		if (since != 0 && since != CLAIMED && blocks(r, since, key, context) &&
		    atomic_load(&r->since) == since) {
			return true;
		}
	}
	return false;
}

HOT_CODE bool host_function_blocks(uint64_t key, CUcontext context) {
	return atomic_load(&n_running) > 0 && atomic_load(&lane_n_waiting) > 0 &&
	       find_blocking(key, context);
}

void host_function_after_fork(void) {
	memset(running, 0, sizeof(running));
	memset(waiting, 0, sizeof(waiting));
	atomic_store(&n_running, 0);
}
