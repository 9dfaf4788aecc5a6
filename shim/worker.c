/*
 * worker.c: see worker.h.
 */
#include "shim/worker.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shim/base/env.h"
#include "shim/base/hot.h"
#include "shim/capture.h"
#include "shim/enforce/dependent.h"
#include "shim/lane.h"
#include "shim/question.h"
#include "shim/real.h"
#include "shim/state.h"
#include "shim/wake.h"

HOT_DATA _Atomic(struct worker *) worker_list;
HOT_LAUNCH _Atomic uint32_t worker_epoch = 1;
HOT_WRITTEN _Atomic unsigned worker_waiting;
static pthread_key_t exit_key;

/* How late the kernel may let threads wake up that have not said otherwise, and the least. */
#define DEFAULT_SLACK_NS 50000
#define LEAST_SLACK_NS	 1UL

HOT_CODE void worker_wait_begin(struct worker *w) {
	if (w) {
		w->waits = true;
		atomic_fetch_add(&worker_waiting, 1);
	}
}

HOT_CODE void worker_wait_end(struct worker *w) {
	if (w && w->waits) {
		w->waits = false;
		atomic_fetch_sub(&worker_waiting, 1);
	}
}

static void on_thread_exit(void *data) {
	struct worker *w = data;

	state_self.worker = NULL;
	if (atomic_load(&w->inside)) {
		/* It was cancelled within the driver, which may have begun the operation. */
		if (w->last_use) {
			atomic_store(&w->last_use->last, point_now());
		}
		atomic_store(&w->inside, NULL);
	}
	worker_wait_end(w);
	capture_thread_gone(w);
	if (w->lanes) {
		lane_thread_gone(w->lanes);
	}
	atomic_store(&w->life, WORKER_EXITED);
	wake_tracker();
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
		w->lanes = lane_set_new();
		if (!w->lanes) {
			munmap(w, sizeof(*w));
			return NULL;
		}
	}
	atomic_store(&w->life, WORKER_LIVE);
	w->next = atomic_load(&worker_list);
	while (!atomic_compare_exchange_weak(&worker_list, &w->next, w)) {
	}
	return w;
}

/* A program with a deadline sleeps until its next release: then it is not to lose what the kernel
 * likes to save wake-ups. A slack of its own stays. */
static void wake_on_time(void) {
	const struct task_spec *task = &env_get()->task;

	if ((task->deadline || task->period) && prctl(PR_GET_TIMERSLACK) == DEFAULT_SLACK_NS) {
		prctl(PR_SET_TIMERSLACK, LEAST_SLACK_NS);
	}
}

struct worker *worker_attach(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct worker *w = reuse();

	if (!w) {
		w = make();
	}
	if (!w) {
		return NULL;
	}
	wake_on_time();
	pthread_once(&once, make_key);
	pthread_setspecific(exit_key, w);
	w->tid = (uint32_t)gettid();
	w->last = (struct stream_state){.epoch = 0};
	w->last_use = NULL;
	w->route.use = NULL;
	state_self.worker = w;
	return w;
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

struct stream_id worker_stream(const struct worker *w, CUcontext context, CUstream stream,
			       bool per_thread) {
	return (struct stream_id){
		.context = context,
		.stream = stream       ? stream
			  : per_thread ? CU_STREAM_PER_THREAD
				       : CU_STREAM_LEGACY,
		.key = worker_stream_key(w, context, stream, per_thread),
	};
}

HOT_CODE struct stream_id worker_stream_here(CUstream stream, bool per_thread) {
	const struct worker *w = worker_get();

	return worker_stream(w, w ? worker_current_context() : NULL, stream, per_thread);
}

CUcontext worker_context_of(const struct stream_id *id) {
	const struct real *real = real_get();
	CUcontext context;

	if (id->stream == CU_STREAM_LEGACY || id->stream == CU_STREAM_PER_THREAD ||
	    !real->cuStreamGetCtx || real->cuStreamGetCtx(id->stream, &context) != CUDA_SUCCESS) {
		return id->context;
	}
	return context;
}

static bool find_blocking(CUstream stream) {
	const struct real *real = real_get();
	unsigned flags = 0;

	if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
		return true;
	}
	return real->cuStreamGetFlags && real->cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS &&
	       !(flags & CU_STREAM_NON_BLOCKING);
}

struct kernel_counts *worker_counts_new(struct worker *w, uint32_t id) {
	struct kernel_counts *counts = id < PROTO_KERNELS_MAX ? map(sizeof(*counts)) : NULL;

	if (counts) {
		atomic_store(&w->counts[id / KERNEL_COUNTS], counts);
	}
	return counts;
}

/* The next entry of a chunk that has one. */
static struct stream_use *take_next(struct use_chunk *c) {
	unsigned n = atomic_load_explicit(&c->n, memory_order_relaxed);

	atomic_store_explicit(&c->n, n + 1, memory_order_release);
	return &c->uses[n];
}

/* An entry that no open job needs. */
static struct stream_use *find_free(struct worker *w) {
	struct use_chunk *last = &w->first_uses, *more;

	worker_for_each_use(u, w) {
		uint64_t job = atomic_load_explicit(&u->job, memory_order_relaxed);

		if (job == 0 || !lane_has(atomic_load(&u->lane), job)) {
			return u;
		}
	}
	while (atomic_load(&last->next)) {
		last = atomic_load(&last->next);
	}
	if (atomic_load_explicit(&last->n, memory_order_relaxed) < WORKER_USES) {
		return take_next(last);
	}
	more = map(sizeof(*more));
	if (!more) {
		return NULL;
	}
	atomic_store(&last->next, more);
	return take_next(more);
}

/* @u belongs to no job from now on, and the tracker has its hands off it. */
HOT_CODE static void release(struct stream_use *u) {
	CUevent event;

	atomic_store(&u->job, 0);
	question_settle(0);
	event = atomic_load(&u->event) ? atomic_exchange(&u->event, NULL) : NULL;
	if (event) {
		real_get()->cuEventDestroy_v2(event);
	}
}

/* In an entry that nobody else looks at. */
#define set(where, value) atomic_store_explicit(where, value, memory_order_relaxed)

/* The entry of the thread's last operation is of this stream, in a job that is over: what does not
 * change with the job stays. */
static bool goes_on(const struct stream_use *u, struct lane *lane, const struct stream_id *id,
		    CUstream at) {
	return u && atomic_load(&u->lane) == lane &&
	       atomic_load_explicit(&u->key, memory_order_relaxed) == id->key &&
	       atomic_load_explicit(&u->stream, memory_order_relaxed) == at &&
	       atomic_load_explicit(&u->context, memory_order_relaxed) == id->context &&
	       !lane_has(lane, atomic_load(&u->job));
}

/* @u belongs to @job from now on, with nothing done yet. */
HOT_CODE static void begin_use(struct stream_use *u, uint64_t job) {
	set(&u->last, 0);
	set(&u->done, 0);
	set(&u->event_point, 0);
	set(&u->launches, 0);
	set(&u->waves, 0);
	set(&u->copies, 0);
	set(&u->bytes, 0);
	set(&u->launched_ns, 0);
	set(&u->unconfined, false);
	set(&u->n_ended, 0);
	u->behind_ns = 0;
	u->turn = DEPENDENT_TURN_NONE;
	/* Nobody looks at an entry that belongs to no job; with the number all of it is there. */
	atomic_store_explicit(&u->job, job, memory_order_release);
}

static struct stream_use *make_use(struct worker *w, struct lane *lane, uint64_t job,
				   const struct stream_id *id, CUstream at) {
	struct stream_use *u = find_free(w);

	if (!u) {
		return NULL;
	}
	if (w->route.use == u) {
		w->route.use = NULL;
	}
	release(u);
	set(&u->lane, lane);
	set(&u->key, id->key);
	set(&u->context, worker_context_of(id));
	set(&u->stream, at);
	set(&u->blocking, find_blocking(id->stream));
	begin_use(u, job);
	return u;
}

HOT_CODE struct stream_use *worker_find_use(struct worker *w, struct lane *lane, uint64_t job,
					    const struct stream_id *id, CUstream at) {
	struct stream_use *u = w->last_use;

	/* Then this is the thread's first operation in the job. */
	if (goes_on(u, lane, id, at)) {
		release(u);
		begin_use(u, job);
		return u;
	}
	worker_for_each_use(v, w) {
		if (worker_use_is(v, job, id->key, at)) {
			w->last_use = v;
			return v;
		}
	}
	u = make_use(w, lane, job, id, at);
	w->last_use = u;
	return u;
}

void worker_forget_streams(void) {
	atomic_fetch_add(&worker_epoch, 1);
}

void worker_after_fork(void) {
	atomic_store(&worker_list, NULL);
	atomic_store(&worker_waiting, 0);
	state_self.worker = NULL;
}
