/*
 * worker.c: see worker.h.
 */
#include "shim/worker.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/base/env.h"
#include "shim/job.h"
#include "shim/place.h"
#include "shim/real.h"
#include "shim/state.h"
#include "shim/track.h"

_Atomic(struct worker *) worker_list;
static STATE_TLS struct worker *self;
static pthread_key_t exit_key;

static void on_thread_exit(void *data) {
	struct worker *w = data;

	self = NULL;
	if (atomic_load(&w->inside)) {
		/* It was cancelled within the driver, which may have begun the operation. */
		if (w->last_use) {
			atomic_store(&w->last_use->last_ns, nsec_now());
		}
		atomic_store(&w->inside, NULL);
	}
	atomic_store(&w->life, WORKER_EXITED);
	track_kick();
}

static void make_key(void) {
	/* Without a key the worker of an ended thread is never used again, and that is all. */
	pthread_key_create(&exit_key, on_thread_exit);
}

static struct worker *reuse(void) {
	worker_for_each(w) {
		enum worker_life life = WORKER_FREE;

		if (atomic_compare_exchange_strong(&w->life, &life, WORKER_LIVE)) {
			return w;
		}
	}
	return NULL;
}

/* Straight from the kernel: not the program's heap, and pages that are not touched cost nothing. */
static void *map(size_t size) {
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static struct worker *make(void) {
	struct worker *w = map(sizeof(*w));

	if (!w) {
		return NULL;
	}
	if (env_get()->task.scope == SBEET__SCOPE__SCOPE_THREAD) {
		w->lanes = map(JOB_DEVICES_MAX * sizeof(*w->lanes));
		if (!w->lanes) {
			munmap(w, sizeof(*w));
			return NULL;
		}
		job_lanes_init(w->lanes, w);
	}
	atomic_store(&w->life, WORKER_LIVE);
	w->next = atomic_load(&worker_list);
	while (!atomic_compare_exchange_weak(&worker_list, &w->next, w)) {
	}
	return w;
}

static struct worker *attach(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct worker *w = reuse();

	if (!w) {
		w = make();
	}
	if (!w) {
		return NULL;
	}
	pthread_once(&once, make_key);
	pthread_setspecific(exit_key, w);
	w->tid = (uint32_t)gettid();
	w->context = NULL;
	w->last_use = NULL;
	self = w;
	return w;
}

struct worker *worker_get(void) {
	return self ? self : attach();
}

void worker_collect(worker_idle_fn idle) {
	worker_for_each(w) {
		if (atomic_load(&w->life) == WORKER_EXITED && idle(w)) {
			atomic_store(&w->life, WORKER_FREE);
		}
	}
}

uint64_t worker_stream_key(const struct worker *w, CUcontext context, CUstream stream,
			   bool per_thread) {
	if (stream == CU_STREAM_PER_THREAD || (!stream && per_thread)) {
		/* Both addresses are aligned: the low bits tell what kind of key this is. */
		return ((uint64_t)(uintptr_t)w ^ (uint64_t)(uintptr_t)context << 16) | 3;
	}
	if (stream == CU_STREAM_LEGACY || !stream) {
		return (uint64_t)(uintptr_t)context | 1;
	}
	return (uint64_t)(uintptr_t)stream;
}

static bool find_blocking(CUstream stream) {
	const struct real *real = real_get();
	unsigned flags = 0;

	if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
		return true;
	}
	return real->cuStreamGetFlags && real->cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS &&
	       !(flags & CU_STREAM_NON_BLOCKING);
}

/* An entry that no open job needs. */
static struct stream_use *find_free(struct worker *w) {
	struct use_chunk *last = &w->first_uses, *more;

	worker_for_each_use(u, w) {
		uint64_t job = atomic_load_explicit(&u->job, memory_order_relaxed);

		if (job == 0 || !job_is_current(atomic_load(&u->lane), job)) {
			return u;
		}
	}
	more = map(sizeof(*more));
	if (!more) {
		return NULL;
	}
	while (atomic_load(&last->next)) {
		last = atomic_load(&last->next);
	}
	atomic_store(&last->next, more);
	return more->uses;
}

/* By a name that says which default stream is meant. */
static CUstream stream_at(const struct place_use *use) {
	return use->at ? use->at : use->per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

static struct stream_use *make_use(struct worker *w, struct lane *lane, uint64_t job, uint64_t key,
				   CUcontext context, const struct place_use *use) {
	struct stream_use *u = find_free(w);

	if (!u) {
		return NULL;
	}
	track_release(u);
	atomic_store(&u->lane, lane);
	atomic_store(&u->key, key);
	atomic_store(&u->context, context);
	atomic_store(&u->stream, stream_at(use));
	atomic_store(&u->blocking, find_blocking(use->stream));
	atomic_store(&u->last_ns, 0);
	atomic_store(&u->done_ns, 0);
	atomic_store(&u->event_ns, 0);
	atomic_store(&u->job, job);
	return u;
}

static bool use_is(const struct stream_use *u, uint64_t job, uint64_t key, CUstream at) {
	return atomic_load_explicit(&u->key, memory_order_relaxed) == key &&
	       atomic_load_explicit(&u->job, memory_order_relaxed) == job &&
	       atomic_load_explicit(&u->stream, memory_order_relaxed) == at;
}

struct stream_use *worker_use(struct worker *w, struct lane *lane, uint64_t job, CUcontext context,
			      const struct place_use *use) {
	uint64_t key = worker_stream_key(w, context, use->stream, use->per_thread);
	struct stream_use *u = w->last_use;
	CUstream at = stream_at(use);

	if (u && use_is(u, job, key, at)) {
		return u;
	}
	worker_for_each_use(v, w) {
		if (use_is(v, job, key, at)) {
			w->last_use = v;
			return v;
		}
	}
	u = make_use(w, lane, job, key, context, use);
	w->last_use = u;
	return u;
}

void worker_after_fork(void) {
	atomic_store(&worker_list, NULL);
	self = NULL;
}
