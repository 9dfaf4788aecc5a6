/*
 * job.c: see job.h.
 *
 * No call into the driver is made here but what makes a grant true in a context, and the account of
 * blocks outside their set, which is taken while the lane is CLOSING.
 */
#include "shim/job.h"

#include <stdatomic.h>
#include <string.h>

#include "proto/enforcement.h"
#include "shim/base/env.h"
#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/base/nap.h"
#include "shim/books.h"
#include "shim/conn.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/kernel.h"
#include "shim/expected.h"
#include "shim/gpu-uuid.h"
#include "shim/host-function.h"
#include "shim/lane.h"
#include "shim/mark.h"
#include "shim/real.h"
#include "shim/records.h"
#include "shim/seat.h"
#include "shim/state.h"
#include "shim/terms.h"
#include "shim/wake.h"
#include "shim/worker.h"

/* After so many jobs we see whether a program that needed more than a partition still does. */
#define MASK_AGE_MAX 64

/* And in so many jobs we forget what a launch took: see learn_launch(). */
#define LAUNCH_JOBS 64

/* Before asking again after the daemon had no place for a job. */
#define REFUSED_NS NSEC_PER_SEC

HOT_WRITTEN static _Atomic uint64_t last_job;

/* ---- opening ---- */

void job_learn(struct lane *lane, uint32_t mask) {
	atomic_fetch_and(&lane->mask_wanted, mask);
	lane->mask_age = 0;
}

/* What the next job of @lane should ask for at most. */
static uint32_t mask_wanted(struct lane *lane) {
	if (++lane->mask_age > MASK_AGE_MAX) {
		atomic_store(&lane->mask_wanted, ENFORCEMENT_ANY);
		lane->mask_age = 0;
	}
	return env_get()->whole ? ENFORCEMENT_BIT(WHOLE) : atomic_load(&lane->mask_wanted);
}

static void ask_for(struct lane *lane, const struct job_need *need, struct conn_ask *ask) {
	uint32_t wanted = mask_wanted(lane);
	nsec_t began = nsec_now();
	unsigned n_made = 0;

	ask->enforcement_mask = env_get()->whole ? wanted : need->mask & wanted;
	ask->sm_step = ask->enforcement_mask & ENFORCEMENT_WITH(ENFORCEMENT_IN_GROUPS)
			       ? enforce_step(need->context)
			       : 0;
	if (ask->sm_step > 0) {
		n_made = enforce_make_ahead(need->context, ask->uuid);
	}
	if (n_made > 0) {
		log_line(LOG_LEVEL_DEBUG, "Made %u parts of the GPU ahead, in %llu us", n_made,
			 (unsigned long long)((nsec_now() - began) / NSEC_PER_USEC));
	}
	/* What is made once is no part of the first job. A wait for the one before is. */
	ask->release_ns = n_made > 0 ? nsec_now() : need->called_ns ? need->called_ns : began;
	mark_take(lane->mark, &ask->marked_ns, &ask->deadline_ns);
	ask->kind = need->kind;
	ask->kernel = need->kernel;
	ask->tid = lane->of_thread ? need->tid : 0;
	ask->n_others = 0;
}

/* Before anybody can answer: the tracker may read a Revoke right behind the Grant. */
static void expect(struct lane *lane, uint64_t job) {
	atomic_store(&lane->drain, false);
	atomic_store(&lane->stop, false);
	atomic_store(&lane->recording, false);
	atomic_store(&lane->terms, 0);
	atomic_store(&lane->job, job);
}

/* @context: where the job runs; NULL: it has the whole GPU. */
static void take_grant(struct lane *lane, CUcontext context, const struct enforce_grant *given) {
	int token;

	lane->grant = *given;
	atomic_store(&lane->whole_job, given->whole_job);
	lane->grant.partition = NULL;
	lane->grant.set = (struct enforce_set){.context = 0};
	if (context && given->level > 0) {
		lane->grant.partition = enforce_partition(context, given);
	} else if (given->enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_GREEN) {
		lane->grant.partition = enforce_partition(context, given);
		if (!lane->grant.partition) {
			/* What can't be had is not asked for again. */
			job_learn(lane, ~ENFORCEMENT_BIT(GREEN));
		}
	}
	atomic_store(&lane->granted_ns, nsec_now());
	if (given->enforcement != SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE) {
		token = state_enter();
		if (enforce_prepare(context, &lane->grant, &lane->grant.set) < 0) {
			log_once(LOG_LEVEL_WARN,
				 "No device memory for control blocks: kernels run "
				 "unconfined");
		}
		state_leave(token);
	}
}

/* The lane is OPENING and ours. @again: the job that it has, which was stopped. Return: as
 * conn_request(). */
static int request(struct lane *lane, const struct job_need *need, bool again) {
	struct enforce_grant given;
	const uint8_t *uuid;
	struct conn_ask ask;
	int r;

	uuid = gpu_uuid(lane->device);
	if (!uuid) {
		return CONN_E_REFUSED;
	}
	memcpy(ask.uuid, uuid, sizeof(ask.uuid));
	ask_for(lane, need, &ask);
	ask.job = again ? atomic_load(&lane->job) : atomic_fetch_add(&last_job, 1) + 1;
	expect(lane, ask.job);
	lane->outside = again ? lane->outside : 0;
	r = conn_request(&ask, &given);
	if (r == 0) {
		take_grant(lane, need->context, &given);
	}
	return r;
}

bool job_worth_opening(struct lane *lane) {
	nsec_t refused = atomic_load(&lane->refused_ns);

	return conn_worth_asking() && (!refused || nsec_now() >= refused);
}

/* While a lane is OPENING only its thread writes, and the state that follows publishes it. */
#define set(where, value) atomic_store_explicit(where, value, memory_order_release)

/* When @job of @lane must be done, see lane->due_ns. */
static uint64_t due_of(const struct lane *lane, const struct books_job *job) {
	if (!terms_are_awaited(job->terms) && !terms_yield(job->terms)) {
		return 0;
	}
	return board_due(books_release(job),
			 job->deadline_ns ? job->deadline_ns : terms_deadline(lane->device));
}

/* The lane is OPENING and ours. Nothing here is a cancellation point. */
static struct books_job take_terms(struct lane *lane, const struct job_need *need, uint64_t word) {
	struct partition *where = terms_partition(lane->device, need->context, &word, &lane->found);
	nsec_t now = nsec_now();
	struct books_job job = {
		.job = atomic_fetch_add(&last_job, 1) + 1,
		.terms = word,
		.device = lane->device,
		.tid = lane->of_thread ? need->tid : 0,
		.release_ns = need->called_ns ? need->called_ns : now,
		.began_ns = now,
	};

	mark_take(lane->mark, &job.marked_ns, &job.deadline_ns);
	set(&lane->drain, false);
	set(&lane->stop, false);
	set(&lane->whole_job, false);
	set(&lane->kernels_done, false);
	set(&lane->recording, terms_record_ops());
	set(&lane->job, job.job);
	lane->grant.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	lane->grant.partition = NULL;
	set(&lane->granted_ns, now);
	set(&lane->context, need->context);
	set(&lane->steered_to, where);
	set(&lane->terms, word);
	books_open(&job);
	set(&lane->due_ns, due_of(lane, &job));
	return job;
}

/* A job more is open, or one is over. */
HOT_CODE static void begun(struct lane *lane) {
	lane_count_job(1);
	uint64_t terms = atomic_load(&lane->terms);

	/* Whoever was granted its job is not asked whether others have to go. */
	seat_job_opened(lane->device, !terms || terms_ring(terms));
	if (atomic_load(&lane->due_ns)) {
		seat_due_changed(lane->device);
	}
}

/* The lane's job is no longer to be awaited, or to yield. */
HOT_CODE static void forget_due(struct lane *lane) {
	if (atomic_load(&lane->due_ns)) {
		atomic_store(&lane->due_ns, 0);
		seat_due_changed(lane->device);
	}
	expected_closed(lane);
}

HOT_CODE static void over(struct lane *lane) {
	lane_count_job(-1);
	seat_job_closed(lane->device);
}

/* The lane's job is there. */
static void opened(struct lane *lane) {
	lane_set_state(lane, LANE_OPENING, LANE_OPEN);
	if (atomic_load(&lane->drain)) {
		lane_drain(lane); /* it was revoked before it was open */
	}
	wake_for_job();
}

HOT_CODE bool job_open_by_terms(struct lane *lane, const struct job_need *need) {
	uint64_t word = terms_now(lane->device, atomic_load(&lane->terms));
	struct books_job job;

	if (!word) {
		return false;
	}
	if (lane_set_state(lane, LANE_IDLE, LANE_OPENING)) {
		job = take_terms(lane, need, word);
		begun(lane);
		expected_opened(lane, &job); /* it is open by now: see board_needs */
		opened(lane);
	}
	return true;
}

bool job_open(struct lane *lane, const struct job_need *need) {
	bool again = lane_set_state(lane, LANE_STOPPED, LANE_OPENING);
	int r;

	if (!again && !lane_set_state(lane, LANE_IDLE, LANE_OPENING)) {
		return true;
	}
	r = request(lane, need, again);
	if (again && r != 0) {
		over(lane);
	} else if (!again && r == 0) {
		begun(lane);
	}
	if (r != 0) {
		lane_set_state(lane, LANE_OPENING, LANE_IDLE);
		if (r == CONN_E_REFUSED) {
			atomic_store(&lane->refused_ns, nsec_now() + REFUSED_NS);
		}
		return false;
	}
	opened(lane);
	return true;
}

/* What can hold the job in each of the places. @ret_step: as conn_ask.sm_step. */
static uint32_t mask_of_all(const struct job_place *places, unsigned n, unsigned *ret_step) {
	uint32_t mask = ENFORCEMENT_ANY;

	*ret_step = places[0].context ? enforce_step(places[0].context) : 0;
	for (unsigned i = 0; i < n; i++) {
		mask &= places[i].context ? mask_wanted(places[i].lane) : ENFORCEMENT_BIT(WHOLE);
		if (!places[i].context || enforce_step(places[i].context) != *ret_step) {
			*ret_step = 0;
		}
	}
	return *ret_step > 0 ? mask : mask & ~ENFORCEMENT_WITH(ENFORCEMENT_IN_GROUPS);
}

/* Return: false if a GPU is not known, which does not happen after the first look at it. */
static bool ask_for_any(const struct job_place *places, unsigned n, uint32_t tid,
			struct conn_ask *ret) {
	*ret = (struct conn_ask){
		.job = atomic_fetch_add(&last_job, 1) + 1,
		.release_ns = nsec_now(),
		.kind = SBEET__OP_KIND__OP_KIND_LAUNCH, /* what else would it need a GPU for */
		.tid = places[0].lane->of_thread ? tid : 0,
		.n_others = n - 1,
	};
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *uuid = gpu_uuid(places[i].lane->device);

		if (!uuid) {
			return false;
		}
		memcpy(i == 0 ? ret->uuid : ret->others[i - 1], uuid, PROTO_UUID_BYTES);
	}
	ret->enforcement_mask = mask_of_all(places, n, &ret->sm_step);
	mark_take(places[0].lane->mark, &ret->marked_ns, &ret->deadline_ns);
	return true;
}

int job_open_any(const struct job_place *places, unsigned n, uint32_t tid, bool *ret_refused) {
	struct enforce_grant given;
	struct conn_ask ask;
	int r = CONN_E_REFUSED, at = -1;

	if (ask_for_any(places, n, tid, &ask)) {
		for (unsigned i = 0; i < n; i++) {
			expect(places[i].lane, ask.job);
			places[i].lane->outside = 0;
		}
		r = conn_request(&ask, &given);
	}
	if (r == 0) {
		at = (int)given.gpu;
		take_grant(places[at].lane, places[at].context, &given);
		begun(places[at].lane);
	}
	for (unsigned i = 0; i < n; i++) {
		if ((int)i == at) {
			opened(places[i].lane);
		} else {
			lane_set_state(places[i].lane, LANE_OPENING, LANE_IDLE);
		}
	}
	*ret_refused = r == CONN_E_REFUSED;
	return at;
}

/* ---- closing ---- */

HOT_CODE static bool anyone_inside(struct lane *lane) {
	worker_for_each(w) {
		if (atomic_load(&w->inside) == lane) {
			return true;
		}
	}
	return false;
}

HOT_CODE static bool all_complete(struct lane *lane, uint64_t job) {
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->job) == job && atomic_load(&u->lane) == lane &&
			    atomic_load(&u->last) > atomic_load(&u->done) &&
			    !host_function_blocks(atomic_load(&u->key), atomic_load(&u->context))) {
				return false;
			}
		}
	}
	return true;
}

HOT_CODE bool job_is_held(struct lane *lane) {
	uint32_t state = atomic_load(&lane->state);

	return (mark_holds(lane->mark) ||
		(atomic_load(&lane->whole_job) && mark_is_inside(lane->mark))) &&
	       (state == LANE_OPEN || state == LANE_STOPPED || lane_is_stopping(lane));
}

HOT_CODE bool job_is_complete(struct lane *lane) {
	return !anyone_inside(lane) && all_complete(lane, atomic_load(&lane->job));
}

/* Blocks that ran outside the grant, in every context that the job used and that is still there:
 * see lane_settle(). While CLOSING. */
static uint64_t outside_blocks(struct lane *lane) {
	const struct real *real = real_get();
	uint64_t job = atomic_load(&lane->job), n = 0;
	CUcontext last = NULL, context, popped;
	int token = state_enter();

	worker_for_each(w) {
		worker_for_each_use(u, w) {
			context = atomic_load(&u->context);
			if (atomic_load(&u->job) != job || !context || context == last ||
			    atomic_load(&state_mode) != STATE_MODE_ON ||
			    real->cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) {
				continue;
			}
			n += enforce_outside_blocks(context);
			real->cuCtxPopCurrent_v2(&popped);
			last = context;
		}
	}
	state_leave(token);
	return n;
}

HOT_CODE static void count_outside(struct lane *lane) {
	if (enforcement_has(lane->grant.enforcement, ENFORCEMENT_BY_TWIN)) {
		lane->outside += outside_blocks(lane);
	}
}

/* Return: whether all its kernels are known to have ended by sums->kernel_end_ns. */
HOT_CODE static bool add_use(struct job_sums *sums, const struct stream_use *u) {
	nsec_t launched = atomic_load_explicit(&u->launched_ns, memory_order_relaxed);
	nsec_t ended = atomic_load_explicit(&u->ended_ns, memory_order_relaxed);
	uint64_t launches = atomic_load_explicit(&u->launches, memory_order_relaxed);

	sums->launches += launches;
	sums->waves += atomic_load_explicit(&u->waves, memory_order_relaxed);
	sums->copies += atomic_load_explicit(&u->copies, memory_order_relaxed);
	sums->bytes += atomic_load_explicit(&u->bytes, memory_order_relaxed);
	sums->unconfined |= atomic_load_explicit(&u->unconfined, memory_order_relaxed);
	if (launched && (!sums->launched_ns || launched < sums->launched_ns)) {
		sums->launched_ns = launched;
	}
	if (launches > 0 && ended > sums->kernel_end_ns) {
		sums->kernel_end_ns = ended;
	}
	return atomic_load_explicit(&u->n_ended, memory_order_relaxed) == launches;
}

HOT_CODE static void sum_of(struct lane *lane, uint64_t job, struct job_sums *ret) {
	bool ends_known = true;

	*ret = (struct job_sums){0};
	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->job) == job && atomic_load(&u->lane) == lane) {
				ends_known &= add_use(ret, u);
			}
		}
	}
	if (!ends_known) {
		ret->kernel_end_ns = 0;
	}
}

HOT_CODE uint64_t job_sum(struct lane *lane, struct job_sums *ret) {
	uint64_t job = atomic_load(&lane->job);

	sum_of(lane, job, ret);
	return job;
}

/* Of a job of @lane that is over. */
HOT_CODE static bool is_cold(struct lane *lane) {
	uint32_t now = atomic_load_explicit(&kernel_epoch, memory_order_relaxed);

	if (HOT_EXPECT(atomic_load_explicit(&lane->kernel_epoch, memory_order_relaxed) == now)) {
		return false;
	}
	atomic_store_explicit(&lane->kernel_epoch, now, memory_order_relaxed);
	return true;
}

static void report(struct lane *lane, uint64_t outside) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	struct job_sums sums;

	done.job = job_sum(lane, &sums);
	done.granted_ns = atomic_load(&lane->granted_ns);
	done.finished_ns = nsec_now();
	done.launches = sums.launches;
	done.waves = sums.waves;
	done.copies = sums.copies;
	done.bytes = sums.bytes;
	done.launched_ns = sums.launched_ns;
	done.kernel_end_ns = sums.kernel_end_ns;
	done.unconfined = sums.unconfined;
	done.cold = is_cold(lane);
	done.outside_blocks = outside;
	done.cancelled = done.launches + done.copies == 0;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	conn_send(done.job, &m); /* a daemon that is gone needs no account */
}

/* Jobs wait for copies, gates and kernels of others, so the least that a launch of theirs took is
 * nearest to the truth. It is forgotten slowly, for programs come to do something else. */
static void learn_launch(struct lane *lane, nsec_t each) {
	nsec_t known = atomic_load_explicit(&lane->launch_ns, memory_order_relaxed);

	if (known > 0 && each > known) {
		each = known + (each - known) / LAUNCH_JOBS;
	}
	atomic_store_explicit(&lane->launch_ns, each, memory_order_relaxed);
}

HOT_CODE static void close_book(struct lane *lane, uint64_t job) {
	struct job_sums sums;
	nsec_t now = nsec_now();

	sum_of(lane, job, &sums);
	sums.cold = is_cold(lane);
	if (sums.launches > 0 && now > sums.launched_ns) {
		learn_launch(lane, (now - sums.launched_ns) / sums.launches);
	}
	books_close(job, now, &sums);
}

HOT_CODE bool job_try_close(struct lane *lane) {
	uint32_t state = atomic_load(&lane->state);

	if ((state != LANE_OPEN && state != LANE_DRAINING && state != LANE_STOPPED) ||
	    job_is_held(lane) || !lane_set_state(lane, state, LANE_CLOSING)) {
		return false;
	}
	if (!job_is_complete(lane)) {
		state = state == LANE_OPEN && atomic_load(&lane->drain) ? LANE_DRAINING : state;
		lane_set_state(lane, LANE_CLOSING, state);
		return false;
	}
	if (atomic_load(&lane->terms)) {
		close_book(lane, atomic_load(&lane->job));
	} else {
		if (state != LANE_STOPPED) {
			count_outside(lane);
		}
		records_drain();
		report(lane, lane->outside);
	}
	over(lane);
	forget_due(lane);
	lane_set_state(lane, LANE_CLOSING, LANE_IDLE);
	return true;
}

static int say_stopped(uint64_t job) {
	Sbeet__Stopped stopped = SBEET__STOPPED__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	stopped.job = job;
	m.body_case = SBEET__TO_DAEMON__BODY_STOPPED;
	m.stopped = &stopped;
	return conn_send(job, &m);
}

bool job_stop(struct lane *lane) {
	if (!lane_set_state(lane, LANE_DRAINING, LANE_CLOSING)) {
		return false;
	}
	if (!job_is_complete(lane)) {
		lane_set_state(lane, LANE_CLOSING, LANE_DRAINING);
		return false;
	}
	count_outside(lane);
	records_drain();
	if (say_stopped(atomic_load(&lane->job)) < 0) {
		atomic_store(&lane->drain, false);
		atomic_store(&lane->stop, false);
		lane_set_state(lane, LANE_CLOSING, LANE_OPEN);
		return true;
	}
	lane_set_state(lane, LANE_CLOSING, LANE_STOPPED);
	return true;
}

static bool lock_aside(struct lane *lane) {
	return !atomic_exchange(&lane->aside_busy, true);
}

/* With lock_aside(), which this undoes. @all: those that are not complete too. */
static void close_aside(struct lane *lane, bool all) {
	for (unsigned i = 0; i < LANE_ASIDE_MAX; i++) {
		uint64_t job = atomic_load(&lane->aside[i]);

		if (job != 0 && (all || all_complete(lane, job))) {
			close_book(lane, job);
			over(lane);
			lane_take_aside(lane, i);
		}
	}
	atomic_store(&lane->aside_busy, false);
}

void job_close_aside(struct lane *lane) {
	if (atomic_load(&lane->n_aside) > 0 && lock_aside(lane)) {
		close_aside(lane, false); /* if it is locked, the tracker looks again */
	}
}

bool job_may_go_aside(struct lane *lane) {
	return atomic_load(&lane->terms) && atomic_load(&lane->n_aside) < LANE_ASIDE_MAX;
}

bool job_put_aside(struct lane *lane) {
	if (!job_may_go_aside(lane) || !lane_set_state(lane, LANE_DRAINING, LANE_CLOSING)) {
		return false;
	}
	if (anyone_inside(lane)) {
		lane_set_state(lane, LANE_CLOSING, LANE_DRAINING);
		return false;
	}
	lane_put_aside(lane);
	forget_due(lane);
	lane_set_state(lane, LANE_CLOSING, LANE_IDLE);
	return true;
}

HOT_CODE static void close_if_complete(struct lane *lane, void *data) {
	job_close_aside(lane);
	if (job_is_complete(lane)) {
		job_try_close(lane);
	}
}

HOT_CODE void job_close_complete(void) {
	if (lane_count() > 0) {
		lane_for_each(close_if_complete, NULL);
	}
}

static void leave(struct lane *lane, void *data) {
	const nsec_t *deadline = data;
	uint32_t state = atomic_load(&lane->state);
	bool locked;

	while (!(locked = lock_aside(lane)) && nap_before(*deadline, NSEC_PER_MSEC)) {
	}
	if (locked) {
		close_aside(lane, true);
	}
	if (atomic_load(&lane->terms) && (state == LANE_OPEN || state == LANE_DRAINING) &&
	    lane_set_state(lane, state, LANE_CLOSING)) {
		close_book(lane, atomic_load(&lane->job));
		forget_due(lane);
		lane_set_state(lane, LANE_CLOSING, LANE_IDLE);
	}
}

void job_leave(nsec_t deadline) {
	lane_for_each(leave, &deadline);
}

static void end_marked(struct lane *lane, void *mark) {
	if (lane->mark == mark && !job_is_held(lane) && !job_try_close(lane)) {
		lane_drain(lane);
	}
}

void job_end_marked(struct mark *mark) {
	if (lane_count() > 0) {
		lane_for_each(end_marked, mark);
	}
}

/* A grant may name a part of the GPU that was made in the context. */
static void end_granted(struct lane *lane, void *data) {
	if (job_is_held(lane) || !atomic_load(&lane->terms)) {
		lane_drain(lane);
	}
	close_if_complete(lane, data);
}

void job_context_gone(void) {
	if (lane_count() > 0) {
		lane_for_each(end_granted, NULL);
	}
}
