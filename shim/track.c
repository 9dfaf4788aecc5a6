/*
 * track.c: see track.h.
 *
 * The tracker asks the driver (cuStreamQuery, or an event where the stream can't be asked), which
 * leaves nothing behind in the program's streams. It asks only when a job has been quiet for
 * `linger` or must drain, less and less often the longer the answer is no, and never while the
 * program captures. Who takes a stream or a context away says so in the entries between two
 * questions (question.h), so the tracker never touches a dead handle.
 */
#include "shim/track.h"
#include "shim/base/hot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/limits.h"
#include "shim/base/log.h"
#include "shim/base/nap.h"
#include "shim/books.h"
#include "shim/capture.h"
#include "shim/conn.h"
#include "shim/counts.h"
#include "shim/graph.h"
#include "shim/job.h"
#include "shim/keeper-internal.h"
#include "shim/keeper.h"
#include "shim/lane.h"
#include "shim/offer.h"
#include "shim/own-thread.h"
#include "shim/point.h"
#include "shim/question.h"
#include "shim/real.h"
#include "shim/records.h"
#include "shim/seat.h"
#include "shim/state.h"
#include "shim/terms.h"
#include "shim/turn.h"
#include "shim/wake.h"
#include "shim/watch.h"
#include "shim/worker.h"

/* What the driver needs for a query, generously. */
#define STACK_BYTES (256 * 1024)

/* Between two looks at jobs that are put aside, and at least at one that has just been stopped. */
#define ASIDE_NS   (500 * NSEC_PER_USEC)
#define STOPPED_NS (20 * NSEC_PER_USEC)

/* Where jobs open without asking, the start of one must not cost a wake-up: the tracker looks by
 * itself, at intervals that are a part of the time since the last job, for so long. */
#define NAP_PART   32
#define NAP_MAX_NS (8 * NSEC_PER_MSEC)
#define NAP_FOR_NS (1 * NSEC_PER_SEC)

/* How long the end of the process waits for a job that is just being closed. */
#define EXIT_MAX_NS  (1 * NSEC_PER_SEC)
#define LEAVE_NAP_NS (50 * NSEC_PER_USEC)

HOT_DATA static struct {
	pthread_mutex_t lock;
	_Atomic bool running;
	pid_t pid; /* whose thread it is */
} track = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The process exits, and waits for tell_last() until then. 0: it does not, or need not any more. */
static _Atomic nsec_t leave_until;

/* ---- questions ---- */

/* Another thread's own default stream can't be named from here. But the legacy one comes after it.
 */
static CUresult mark_per_thread(struct stream_use *u, point_t point) {
	const struct real *real = real_get();
	CUevent event;
	CUresult rc;

	rc = real->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (rc != CUDA_SUCCESS) {
		return rc;
	}
	rc = real->cuEventRecord(event, CU_STREAM_LEGACY);
	if (rc != CUDA_SUCCESS) {
		real->cuEventDestroy_v2(event);
		return rc;
	}
	atomic_store(&u->event_point, point);
	atomic_store(&u->event, event);
	return CUDA_ERROR_NOT_READY;
}

/* With the use's context current. @until: the point of the question, and on success the one up to
 * which everything is complete. */
static CUresult ask_driver(struct stream_use *u, point_t *until) {
	const struct real *real = real_get();
	CUstream stream = atomic_load(&u->stream);
	CUevent event = atomic_load(&u->event);
	CUresult rc;

	if (event) {
		*until = atomic_load(&u->event_point);
		rc = real->cuEventQuery(event);
		/* Who takes it out destroys it: see worker_use(). */
		if (rc == CUDA_SUCCESS &&
		    atomic_compare_exchange_strong(&u->event, &(CUevent){event}, NULL)) {
			real->cuEventDestroy_v2(event);
		}
		return rc;
	}
	if (stream == CU_STREAM_PER_THREAD) {
		return mark_per_thread(u, *until);
	}
	return stream ? real->cuStreamQuery(stream) : CUDA_SUCCESS;
}

/* Learns whether what @u has of @job is complete, unless that would disturb the program. */
static void ask(struct stream_use *u, uint64_t job) {
	const struct real *real = real_get();
	point_t until = point_mark();
	CUresult rc = CUDA_ERROR_NOT_READY;
	CUcontext context, popped;

	question_begin();
	context = atomic_load(&u->context);
	/* Who makes the entry another job's waits for us first, see worker_use(). */
	if (atomic_load(&u->job) == job && context && !capture_any() &&
	    atomic_load(&state_mode) == STATE_MODE_ON) {
		rc = real->cuCtxPushCurrent_v2(context);
		if (rc == CUDA_SUCCESS) {
			rc = ask_driver(u, &until);
			real->cuCtxPopCurrent_v2(&popped);
		}
	}
	/* Any error but "not ready" means that nothing runs there any more. */
	if (rc != CUDA_ERROR_NOT_READY) {
		worker_complete_until(u, until);
	}
	question_end();
}

/* ---- what goes ---- */

/*
 * Behind what still runs where the work of @u is. By somebody inside state_enter(), so that
 * captures in other streams mind neither. NULL: that can't be known, because this very stream is
 * being captured.
 */
static CUevent record_last(struct stream_use *u) {
	const struct real *real = real_get();
	CUstream stream = atomic_load(&u->stream);
	CUevent event = NULL;
	CUcontext popped;

	if (capture_is_on(stream, false) ||
	    real->cuCtxPushCurrent_v2(atomic_load(&u->context)) != CUDA_SUCCESS) {
		return NULL;
	}
	if (real->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
	    real->cuEventRecord(event, stream) != CUDA_SUCCESS) {
		real->cuEventDestroy_v2(event);
		event = NULL;
	}
	real->cuCtxPopCurrent_v2(&popped);
	return event;
}

/* The handle of @u may come back as another stream's. */
static void leave_stream(struct stream_use *u) {
	point_t last = atomic_load(&u->last);

	if (lane_has(atomic_load(&u->lane), atomic_load(&u->job)) && last > atomic_load(&u->done)) {
		atomic_store(&u->event_point, last);
		atomic_store(&u->event, record_last(u));
	}
	atomic_store(&u->key, 0);
	atomic_store(&u->stream, NULL);
}

void track_stream_going(CUstream stream) {
	/* The driver won't do that to a default stream. */
	if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
		return;
	}
	/* As in ask(): who makes an entry another job's waits until we have our hands off it. */
	question_begin();
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->job) != 0 && atomic_load(&u->context) &&
			    atomic_load(&u->key) == worker_stream_key(w, NULL, stream, false)) {
				leave_stream(u);
			}
		}
	}
	question_end();
}

void track_context_going(CUcontext context) {
	question_begin();
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->job) != 0 && atomic_load(&u->context) == context) {
				atomic_store(&u->key, 0);
				atomic_store(&u->context, NULL);
				atomic_store(&u->event, NULL); /* goes with the context */
				worker_complete_until(u, POINT_NEVER);
			}
		}
	}
	question_end();
	lane_settle(0);
}

/* ---- the thread ---- */

/* How many operations of the lane's job the driver was handed. */
static uint64_t count_ops(struct lane *lane, uint64_t job, bool *ret_inside) {
	uint64_t n = 0;

	*ret_inside = false;
	worker_for_each(w) {
		*ret_inside |= atomic_load(&w->inside) == lane;
		worker_for_each_use(u, w) {
			if (atomic_load(&u->job) == job) {
				n += atomic_load_explicit(&u->launches, memory_order_relaxed) +
				     atomic_load_explicit(&u->copies, memory_order_relaxed);
			}
		}
	}
	return n;
}

static void ask_all(struct lane *lane) {
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			uint64_t job = atomic_load(&u->job);

			if (job != 0 && atomic_load(&u->lane) == lane && lane_has(lane, job) &&
			    atomic_load(&u->last) > atomic_load(&u->done)) {
				ask(u, job);
			}
		}
	}
}

/* Return: when to look again at the jobs that are put aside; WAKE_NEVER: there are none. */
static nsec_t look_aside(struct lane *lane, nsec_t now) {
	job_close_aside(lane);
	if (atomic_load(&lane->n_aside) == 0) {
		return WAKE_NEVER;
	}
	ask_all(lane);
	job_close_aside(lane);
	return now + ASIDE_NS;
}

static struct watch_view view_of(struct lane *lane, nsec_t now) {
	struct watch_view v = {
		.now = now,
		.linger = conn_linger_ns(),
		.job = atomic_load(&lane->job),
		.held = job_is_held(lane) && !lane_is_stopping(lane),
		.draining = atomic_load(&lane->state) == LANE_DRAINING,
		.prompt = !atomic_load(&lane->terms) || atomic_load(&lane->recording),
		.waiting = atomic_load(&worker_waiting) > 0,
	};

	v.ops = count_ops(lane, v.job, &v.inside);
	return v;
}

/* Return: when to look again; WAKE_NEVER if the job is over. */
static nsec_t look(struct lane *lane, nsec_t now) {
	struct watch_view v;
	nsec_t again;

	if (atomic_load(&lane->terms)) {
		terms_follow(lane->device, atomic_load(&lane->context), atomic_load(&lane->terms),
			     &lane->steered_to);
		if (atomic_load(&lane->recording) != terms_record_ops()) {
			atomic_store(&lane->recording, terms_record_ops());
		}
	}
	if (atomic_load(&lane->drain) && atomic_load(&lane->state) == LANE_OPEN) {
		lane_drain(lane); /* somebody looked whether it is over when we were told */
	}
	v = view_of(lane, now);
	again = watch_look(&lane->watch, &v);
	if (again) {
		return again;
	}
	ask_all(lane);
	if (lane_is_stopping(lane)) {
		if (job_is_complete(lane) && job_stop(lane)) {
			return now + nsec_clamp(v.linger, STOPPED_NS, WATCH_MAX_NS);
		}
	} else if (job_is_complete(lane) && job_try_close(lane)) {
		watch_ended(&lane->watch);
		return WAKE_NEVER;
	}
	return watch_again(&lane->watch, &v);
}

struct round {
	nsec_t now;
	nsec_t next;
	unsigned open, seldom; /* lanes with a job, and those whose program ends them */
};

static void look_at(struct lane *lane, void *data) {
	struct round *round = data;
	nsec_t next = look_aside(lane, round->now), then = WAKE_NEVER;

	if (atomic_load(&lane->state) != LANE_IDLE) {
		then = look(lane, round->now);
		round->open++;
		round->seldom += watch_is_seldom(&lane->watch);
	}
	next = then < next ? then : next;
	if (next < round->next) {
		round->next = next;
	}
}

/* Nothing of its last thread is left: neither records nor a part in an open job. */
static bool worker_idle(struct worker *w) {
	if (atomic_load(&w->ring.head) != atomic_load(&w->ring.tail)) {
		return false;
	}
	worker_for_each_use(u, w) {
		uint64_t job = atomic_load(&u->job);

		if (job != 0 && lane_has(atomic_load(&u->lane), job)) {
			return false;
		}
	}
	for (unsigned i = 0; w->lanes && i < LANE_DEVICES_MAX; i++) {
		if (atomic_load(&w->lanes->lanes[i].state) != LANE_IDLE) {
			return false;
		}
	}
	return true;
}

/* No job is open. @busy: when there was a job last. @least: to sleep. Return: how long to sleep
 * until we look by ourselves; WAKE_NEVER: the next job has to wake us. */
static nsec_t nap_until(nsec_t now, nsec_t busy, nsec_t least, bool *napped) {
	if (!terms_held()) {
		*napped = !*napped;
		return *napped ? now + WATCH_MAX_NS : WAKE_NEVER;
	}
	return now - busy < NAP_FOR_NS
		       ? now + nsec_clamp((now - busy) / NAP_PART, least, NAP_MAX_NS)
		       : WAKE_NEVER;
}

static nsec_t earlier(nsec_t a, nsec_t b) {
	return a < b ? a : b;
}

/* Tells sbeetd of what has been done. Return: when to do so again at the latest. */
static nsec_t tell(nsec_t now, bool *ret_ended) {
	*ret_ended = books_collect();
	offer_groups();
	records_drain();
	return earlier(books_tell(now), counts_tell(now));
}

/* The process exits: what is still to be told is. */
static void tell_last(nsec_t deadline) {
	job_leave(deadline);
	books_collect();
	records_drain();
	books_leave(deadline);
	counts_leave();
	atomic_store(&leave_until, 0);
}

/* No thread of the program is left: the process ends as it would without ours. */
static void end_process(void) {
	own_thread_end_others();
	keeper_call();
	turn_leave();
	graph_end_ahead();
	own_thread_end_last();
	atomic_store(&track.running, false);
}

static void run(void) {
	nsec_t busy = nsec_now(), nap = WATCH_MAX_NS;
	bool napped = false, ended;

	state_enter(); /* for good: whatever this thread calls is ours */
	for (;;) {
		nsec_t again = conn_poll(), leave = atomic_load(&leave_until);
		struct round round = {.now = nsec_now(), .next = WAKE_NEVER};
		nsec_t alone = own_thread_watch(round.now);

		if (leave) {
			tell_last(leave);
		}
		if (alone == 0) {
			end_process();
			return;
		}
		again = earlier(again, alone);
		terms_prepare();
		lane_for_each(look_at, &round);
		if (round.open > 0) {
			nap = round.seldom == round.open ? WATCH_SELDOM_NS : WATCH_MAX_NS;
		}
		again = earlier(again, tell(round.now, &ended));
		again = earlier(again, keeper_watch(round.now));
		worker_collect(worker_idle);
		if (ended || round.next != WAKE_NEVER) {
			busy = round.now;
		}
		if (round.next == WAKE_NEVER) {
			/* A short nap first: a program between two jobs then needs not wake us for
			 * the next. */
			round.next = nap_until(round.now, busy, nap, &napped);
		} else {
			napped = false;
		}
		wake_sleep(earlier(again, round.next),
			   round.next == WAKE_NEVER ? lane_count : NULL);
	}
}

/* ---- start and end ---- */

/* Whoever calls exit() may do so from a signal handler, with locks of ours or the driver's. The
 * tracker has none of these, and if it waits for one it does so alone. */
static void leave_to_tracker(nsec_t deadline) {
	bool woken = false;

	if (!atomic_load(&track.running)) {
		tell_last(deadline); /* it has ended, and we are the last thread */
		return;
	}
	atomic_store(&leave_until, deadline);
	do {
		woken = woken || wake_tracker_at_exit();
	} while (atomic_load(&leave_until) && nap_before(deadline, LEAVE_NAP_NS));
}

/* Registered after the driver's own handlers and so called before them: no question meets a driver
 * that is being taken down. */
static void at_exit(void) {
	nsec_t deadline = nsec_now() + EXIT_MAX_NS;

	/* A child that pthread_atfork() does not know of: it has no tracker, and locks may be held
	 * by threads that it does not have. */
	if (track.pid != getpid()) {
		return;
	}
	atomic_store(&state_mode, STATE_MODE_OFF);
	question_settle(deadline);
	graph_leave(deadline);
	keeper_leave();
	seat_leave();
	turn_leave();
	lane_settle(deadline);
	leave_to_tracker(deadline);
	conn_leave();
}

static bool start_locked(void) {
	wake_init();
	if (own_thread_start(PROTO_THREAD_NAME, STACK_BYTES, run) < 0) {
		log_once(LOG_LEVEL_WARN, "Cannot start a thread, running unmanaged");
		return false;
	}
	track.pid = getpid();
	atexit(at_exit);
	return true;
}

HOT_CODE bool track_start(void) {
	if (!atomic_load_explicit(&track.running, memory_order_acquire)) {
		pthread_mutex_lock(&track.lock);
		if (!atomic_load(&track.running)) {
			atomic_store(&track.running, start_locked());
		}
		pthread_mutex_unlock(&track.lock);
	}
	return atomic_load(&track.running);
}

void track_after_fork(void) {
	atomic_store(&track.running, false);
	pthread_mutex_init(&track.lock, NULL);
}
