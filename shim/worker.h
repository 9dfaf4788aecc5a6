/*
 * worker.h: what the shim keeps for one thread of the program: where it is, which streams it has
 * used, and its ring of records.
 *
 * Made at the thread's first operation, kept for reuse when it ends, never freed: others walk the
 * list without a lock. Fields marked "own" are the thread's; the atomic ones are read by whoever
 * closes or tracks a job.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/units.h"
#include "shim/kernel-count.h"
#include "shim/kernel-time.h"
#include "shim/point.h"
#include "shim/real.h"
#include "shim/ring.h"
#include "shim/shapes.h"
#include "shim/state.h"

#define WORKER_CACHE_LINE 64

struct lane;
struct lane_set;
struct partition;
struct place;

/*
 * The operations of one thread on one stream within one job. Coverage is told by points: everything
 * up to @last was handed to the driver; everything up to @done is known to be complete. So it is
 * harmless to say of the wrong entry that it was complete at some point in the past.
 */
struct stream_use {
	/* What was done here in this job, in a line of its own; written by the thread alone. */
	_Atomic uint64_t job __attribute__((aligned(WORKER_CACHE_LINE))); /* 0: free */
	_Atomic point_t last;
	_Atomic uint64_t launches, copies, bytes;
	_Atomic uint64_t waves; /* of its launches: see JobDone in sbeet.proto */
	nsec_t behind_ns; /* own: what was launched behind the last gate; 0: no gate: see gate.c */
	uint64_t turn;	  /* own: of the last launch, see dependent.h */

	_Atomic nsec_t launched_ns; /* the first launch */
	_Atomic(struct lane *) lane;
	_Atomic uint64_t key;	    /* see worker_stream_key(); 0: the stream is gone */
	_Atomic(CUcontext) context; /* of the stream, which may be another than the current one */
	/* Where the work is, and so which one to ask: the stream, or one that backs it in a
	 * partition; default streams by their names. */
	_Atomic(CUstream) stream;
	_Atomic bool blocking; /* ordered with the legacy default stream */
	_Atomic point_t done;
	/* Recorded behind everything here when the stream can't be asked any more; NULL: ask the
	 * stream. */
	_Atomic(CUevent) event;
	_Atomic point_t event_point;
	_Atomic bool unconfined; /* by the thread: one could not be kept to the job's SMs */

	/* By the thread, in programs that are measured: see kernel-end.h. */
	_Atomic uint64_t n_ended; /* so many of its launches had ended */
	_Atomic nsec_t ended_ns;  /* by this time; nothing without those */
};

/* Everything of @u up to @until is complete. By any thread; what is known stays known, even if
 * another thread knows more at the same moment: all of it may have ended with its context. */
static inline void worker_complete_until(struct stream_use *u, point_t until) {
	point_t done = atomic_load(&u->done);

	while (done < until && !atomic_compare_exchange_weak(&u->done, &done, until)) {
	}
}

#define WORKER_USES 16

/* Programs rarely use more streams in one job than one chunk holds; further ones are chained. */
struct use_chunk {
	_Atomic unsigned n; /* of them were ever used: the first ones */
	_Atomic(struct use_chunk *) next;
	struct stream_use uses[WORKER_USES];
};

/* A stream in one context. */
struct stream_id {
	CUcontext context; /* the current one; see worker_context_of(). NULL: none */
	CUstream stream;   /* default streams by their names */
	uint64_t key;	   /* worker_stream_key() */
};

/* What is known of a stream that the program has named. */
struct stream_state {
	CUstream named;
	bool per_thread;     /* its 0 is the thread's own default stream */
	uint32_t epoch;	     /* see worker_forget_streams() */
	struct stream_id id; /* no context: nothing is known */
	struct lane *lane;   /* where its jobs are */
	struct place *place; /* NULL: not looked up yet */
};

/* Where the thread's last launch that may be followed has gone: see route.h. */
struct route {
	struct stream_use *use; /* NULL: there was none */
	struct lane *lane;
	CUcontext context;
	CUstream named, at;   /* at: NULL is a name, too */
	struct place *place;  /* NULL: streams have none */
	struct partition *to; /* NULL: the stream itself */
	uint64_t terms;	      /* of the job */
	uint32_t epoch;	      /* worker_epoch */
	bool per_thread;
};

enum worker_life {
	WORKER_FREE,
	WORKER_LIVE,
	WORKER_EXITED, /* its thread is gone, records or jobs may be left */
};

struct worker {
	/* The job slot in which this thread is just now, NULL outside any operation: the one word
	 * that each operation writes for others to see. What each launch reads stands beside it. */
	_Atomic(struct lane *) inside __attribute__((aligned(WORKER_CACHE_LINE)));
	struct route route;	     /* own */
	struct stream_use *last_use; /* own: of the last operation */

	struct worker *next __attribute__((aligned(WORKER_CACHE_LINE))); /* immutable */
	_Atomic enum worker_life life;
	uint32_t tid; /* of the present thread */
	bool waits;   /* own: see worker_wait_begin() */

	/* own: what is known of the last operation's stream; see worker_stream_is_last() */
	struct stream_state last;

	struct use_chunk first_uses;
	struct shapes shapes; /* own, too */
	_Atomic(struct kernel_counts *)
		counts[KERNEL_COUNTS_PAGES]; /* of kernels, by their numbers */
	struct lane_set *lanes;		     /* thread scope, else NULL */
	struct kernel_times times;	     /* own */
	struct ring ring;
};

/* All of them, newest first. */
extern _Atomic(struct worker *) worker_list;
#define worker_for_each(w) for (struct worker *w = atomic_load(&worker_list); w; w = w->next)

#define worker_for_each_use(u, w)                                                              \
	for (struct use_chunk *chunk_ = &(w)->first_uses; chunk_;                              \
	     chunk_ = atomic_load(&chunk_->next))                                              \
		for (struct stream_use *u = chunk_->uses, *end_ = u + atomic_load(&chunk_->n); \
		     u < end_; u++)

/* To what is written by one thread alone. */
static inline void worker_add(_Atomic uint64_t *to, uint64_t n) {
	atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Room for what @w counts of the kernel @id and those near it. NULL: too many kernels, or no
 * memory. */
struct kernel_counts *worker_counts_new(struct worker *w, uint32_t id);

/* By @w's own thread: what it counts of the kernel @id. NULL: too many kernels, or no memory. In
 * line, for it is on the way of each launch. */
static inline struct kernel_count *worker_count(struct worker *w, uint32_t id) {
	struct kernel_counts *page = NULL;

	if (id < PROTO_KERNELS_MAX) {
		page = atomic_load_explicit(&w->counts[id / KERNEL_COUNTS], memory_order_relaxed);
	}
	if (!page) {
		page = worker_counts_new(w, id);
	}
	return page ? &page->list[id % KERNEL_COUNTS] : NULL;
}

/* The calling thread's, made at its first operation. NULL: no memory. */
struct worker *worker_attach(void);

static inline struct worker *worker_get(void) {
	return state_self.worker ? state_self.worker : worker_attach();
}

/* Around each wait of the program, by @w's own thread, not nested. NULL: it does not count. The end
 * of a thread that was cancelled in between ends it. */
void worker_wait_begin(struct worker *w);
void worker_wait_end(struct worker *w);

/* So many threads wait. Then the tracker has less to look for. */
extern _Atomic unsigned worker_waiting;

/* Return: whether a worker whose thread is gone may be given to a new one. */
typedef bool (*worker_idle_fn)(struct worker *w);

/* Makes workers of gone threads reusable where @idle agrees. By the tracker. */
void worker_collect(worker_idle_fn idle);

/* How a stream is called for the comparison of uses with waits: handles are unique in the process,
 * the default streams are not. @per_thread: stream 0 means the thread's own default stream. */
uint64_t worker_stream_key(const struct worker *w, CUcontext context, CUstream stream,
			   bool per_thread);

/* Whether @key says all: the stream of no other context or thread has it. */
static inline bool worker_key_is_handle(uint64_t key) {
	return !(key & 1);
}

struct stream_id worker_stream(const struct worker *w, CUcontext context, CUstream stream,
			       bool per_thread);

/* What is current in the calling thread. NULL: none. */
static inline CUcontext worker_current_context(void) {
	const struct real *real = real_get_inline();
	CUcontext context = NULL;

	return real->cuCtxGetCurrent && real->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context
											: NULL;
}

/* The stream that the calling thread names so, in what is current. No context: there is none, or no
 * memory; then only a handle's key is of use. */
struct stream_id worker_stream_here(CUstream stream, bool per_thread);

/* Whose the stream is. Copies may be given to a stream of another context than the current one. */
CUcontext worker_context_of(const struct stream_id *id);

/* What the calling thread remembers about streams counts no longer, nor what any other does: a
 * context or a stream is gone or may be. */
extern _Atomic uint32_t worker_epoch __attribute__((visibility("hidden")));
void worker_forget_streams(void);

/*
 * The last operation's stream, by its own thread: whether it is this one, in the context that is
 * current now. If not, it is to be found out and written to w->last, with the epoch read before.
 */
static inline bool worker_stream_is_last(const struct worker *w, CUcontext context, CUstream named,
					 bool per_thread) {
	const struct stream_state *s = &w->last;

	return s->named == named && s->id.context == context && s->per_thread == per_thread &&
	       s->epoch == atomic_load_explicit(&worker_epoch, memory_order_relaxed);
}

/* The entry of @w for this stream in job number @job of @lane, made if need be; by its own thread,
 * while inside. @at: where the work goes, default streams by their names. NULL if there is no
 * memory. */
struct stream_use *worker_find_use(struct worker *w, struct lane *lane, uint64_t job,
				   const struct stream_id *id, CUstream at);

static inline bool worker_use_is(const struct stream_use *u, uint64_t job, uint64_t key,
				 CUstream at) {
	return atomic_load_explicit(&u->key, memory_order_relaxed) == key &&
	       atomic_load_explicit(&u->job, memory_order_relaxed) == job &&
	       atomic_load_explicit(&u->stream, memory_order_relaxed) == at;
}

static inline struct stream_use *worker_use(struct worker *w, struct lane *lane, uint64_t job,
					    const struct stream_id *id, CUstream at) {
	struct stream_use *u = w->last_use;

	return u && worker_use_is(u, job, id->key, at) ? u : worker_find_use(w, lane, job, id, at);
}

/* After fork, in the child: forget everything without calling the driver. */
void worker_after_fork(void);
