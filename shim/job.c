/*
 * job.c: opening, entering and closing jobs. See job.h for the states.
 *
 * No call into the driver is made here but the questions which context is current and where it is,
 * and the account of blocks outside their set, which is taken while the lane is CLOSING.
 */
#include "shim/job.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/enforcement.h"
#include "shim/base/env.h"
#include "shim/base/log.h"
#include "shim/conn.h"
#include "shim/enforce/kernel.h"
#include "shim/real.h"
#include "shim/records.h"
#include "shim/state.h"
#include "shim/track.h"
#include "shim/wait.h"
#include "shim/worker.h"

/* After so many jobs we see whether a program that needed more than a partition still does. */
#define MASK_AGE_MAX 64

/* A kernel that the grant does not fit waits for the open job to finish, but not for ever: that
 * job's kernels may in turn wait for something that this one brings. */
#define DRAIN_MAX_NS (10 * NSEC_PER_SEC)

/* Before asking again after the daemon had no place for a job. */
#define REFUSED_NS NSEC_PER_SEC

/* "Required daemons are not running": the driver's own error for exactly this. */
#define RC_REQUIRED CUDA_ERROR_SYSTEM_NOT_READY

static struct lane process_lanes[JOB_DEVICES_MAX];
static _Atomic uint64_t last_job;
static _Atomic unsigned n_open;
static _Atomic uint32_t epoch = 1; /* of what workers remember about contexts */

static const unsigned lane_edges[_LANE_STATE_N] = {
	[LANE_IDLE] = 1u << LANE_OPENING,
	[LANE_OPENING] = 1u << LANE_OPEN | 1u << LANE_IDLE,
	[LANE_OPEN] = 1u << LANE_CLOSING | 1u << LANE_DRAINING,
	[LANE_DRAINING] = 1u << LANE_CLOSING | 1u << LANE_OPEN,
	[LANE_CLOSING] = 1u << LANE_OPEN | 1u << LANE_DRAINING | 1u << LANE_IDLE,
};

/* ---- the state word ---- */

/* From @from to @to, if it is still @from. */
static bool lane_set_state(struct lane *lane, uint32_t from, uint32_t to) {
	if (!(lane_edges[from] & (1u << to)) ||
	    !atomic_compare_exchange_strong(&lane->state, &from, to)) {
		return false;
	}
	if (atomic_load(&lane->waiting) > 0) {
		syscall(SYS_futex, &lane->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	}
	return true;
}

/* Until the state is no longer @from, or until @deadline (0: none). */
static void lane_wait(struct lane *lane, uint32_t from, nsec_t deadline) {
	atomic_fetch_add(&lane->waiting, 1);
	while (atomic_load(&lane->state) == from) {
		nsec_t now = deadline ? nsec_now() : 0;
		struct timespec left;

		if (deadline && now >= deadline) {
			break;
		}
		left.tv_sec = (time_t)((deadline - now) / NSEC_PER_SEC);
		left.tv_nsec = (long)((deadline - now) % NSEC_PER_SEC);
		syscall(SYS_futex, &lane->state, FUTEX_WAIT_PRIVATE, from, deadline ? &left : NULL,
			NULL, 0);
	}
	atomic_fetch_sub(&lane->waiting, 1);
}

bool job_is_current(struct lane *lane, uint64_t job) {
	return atomic_load(&lane->job) == job && atomic_load(&lane->state) != LANE_IDLE;
}

/* ---- which lane ---- */

void job_lanes_init(struct lane *lanes, struct worker *owner) {
	for (unsigned i = 0; i < JOB_DEVICES_MAX; i++) {
		lanes[i].owner = owner;
		atomic_store(&lanes[i].mask_wanted, ENFORCEMENT_ANY);
	}
}

__attribute__((constructor)) static void init_process_lanes(void) {
	job_lanes_init(process_lanes, NULL);
}

struct lane *job_lane(struct worker *w, CUdevice device) {
	if (device < 0 || device >= JOB_DEVICES_MAX) {
		log_once(LOG_LEVEL_WARN, "GPU %d is beyond the %d that sbeet manages", device,
			 JOB_DEVICES_MAX);
		return NULL;
	}
	return w->lanes ? &w->lanes[device] : &process_lanes[device];
}

void job_forget_contexts(void) {
	atomic_fetch_add(&epoch, 1);
}

/* The lane for work in the current context, which is @context. */
static struct lane *find_lane(struct worker *w, CUcontext context) {
	const struct real *real = real_get();
	uint32_t now = atomic_load_explicit(&epoch, memory_order_relaxed);
	CUdevice device;

	if (w->context == context && w->epoch == now) {
		return w->lane;
	}
	if (!real->cuCtxGetDevice || real->cuCtxGetDevice(&device) != CUDA_SUCCESS) {
		return NULL;
	}
	w->lane = job_lane(w, device);
	w->context = context;
	w->epoch = now;
	return w->lane;
}

void job_for_each(job_visit_fn visit, void *data) {
	for (unsigned i = 0; i < JOB_DEVICES_MAX; i++) {
		if (atomic_load(&process_lanes[i].state) != LANE_IDLE) {
			visit(&process_lanes[i], data);
		}
	}
	worker_for_each(w) {
		for (unsigned i = 0; w->lanes && i < JOB_DEVICES_MAX; i++) {
			if (atomic_load(&w->lanes[i].state) != LANE_IDLE) {
				visit(&w->lanes[i], data);
			}
		}
	}
}

unsigned job_count(void) {
	return atomic_load(&n_open);
}

static void settle(struct lane *lane, void *data) {
	if (atomic_load(&lane->state) == LANE_CLOSING) {
		lane_wait(lane, LANE_CLOSING, *(const nsec_t *)data);
	}
}

void job_settle(nsec_t deadline) {
	job_for_each(settle, &deadline);
}

/* ---- opening ---- */

static uint32_t launch_mask(struct op *op) {
	uint32_t mask = kernel_enforcement_mask(op->kernel, op->launch, op->worker->context,
						&op->kernel_use);

	/* The grid of a cooperative launch is made for all SMs. Clusters that a partition can't
	 * hold show when they are launched. */
	if (place_active() && !op->launch->cooperative &&
	    place_can_move(op->worker->context, op->place.stream, op->place.per_thread)) {
		mask |= ENFORCEMENT_BIT(GREEN);
	}
	return mask;
}

static uint32_t op_mask(struct op *op) {
	uint32_t mask;

	if (op->launch && op->traits & OP_WHOLE) {
		return ENFORCEMENT_BIT(WHOLE); /* a part was tried, and was too small */
	}
	if (op->launch) {
		return launch_mask(op);
	}
	/* A context of the program's own has no parts: its kernels would not fit. */
	mask = place_active() && enforce_step(op->worker->context) ? ENFORCEMENT_BIT(GREEN) : 0;
	if (!mask && place_active()) {
		log_once(LOG_LEVEL_INFO,
			 "No green context can be made here (the driver is too old, or the context "
			 "the program's own): jobs are held to a number of SMs where their kernels "
			 "can be rewritten, else they get the whole GPU");
	}
	if (op->traits & OP_GREEN) {
		return ENFORCEMENT_BIT(WHOLE) | mask;
	}
	return op->traits & OP_WHOLE ? ENFORCEMENT_BIT(WHOLE)
				     : (ENFORCEMENT_ANY & ~ENFORCEMENT_BIT(GREEN)) | mask;
}

static bool find_uuid(const struct lane *lane, uint8_t uuid[PROTO_UUID_BYTES]) {
	const struct real *real = real_get();
	CUdevice device;
	CUuuid id;
	__typeof__(real->cuDeviceGetUuid) get =
		real->cuDeviceGetUuid_v2 ? real->cuDeviceGetUuid_v2 : real->cuDeviceGetUuid;

	/* _v2 gives a MIG instance's own. */
	if (!get || real->cuCtxGetDevice(&device) != CUDA_SUCCESS ||
	    get(&id, device) != CUDA_SUCCESS) {
		return false;
	}
	memcpy(uuid, id.bytes, PROTO_UUID_BYTES);
	return true;
}

/* Jobs that follow should ask for no more than @mask allows, until it is old. */
static void job_learn(struct lane *lane, uint32_t mask) {
	atomic_fetch_and(&lane->mask_wanted, mask);
	lane->mask_age = 0;
}

static void job_ask(struct lane *lane, struct op *op, struct conn_ask *ask) {
	nsec_t began = nsec_now();
	unsigned n_made = 0;

	if (++lane->mask_age > MASK_AGE_MAX) {
		atomic_store(&lane->mask_wanted, ENFORCEMENT_ANY);
		lane->mask_age = 0;
	}
	ask->job = atomic_fetch_add(&last_job, 1) + 1;
	ask->enforcement_mask = env_get()->whole ? ENFORCEMENT_BIT(WHOLE)
						 : op_mask(op) & atomic_load(&lane->mask_wanted);
	ask->sm_step = ask->enforcement_mask & ENFORCEMENT_WITH(ENFORCEMENT_IN_GROUPS)
			       ? enforce_step(op->worker->context)
			       : 0;
	if (ask->sm_step > 0) {
		n_made = enforce_make_ahead(op->worker->context, ask->uuid);
	}
	if (n_made > 0) {
		log_line(LOG_LEVEL_DEBUG, "Made %u parts of the GPU ahead, in %llu us", n_made,
			 (unsigned long long)((nsec_now() - began) / NSEC_PER_USEC));
	}
	/* What is made once is no part of the first job. A wait for the one before is. */
	ask->release_ns = n_made > 0 ? nsec_now() : op->called_ns ? op->called_ns : began;
	ask->kind = op->kind;
	ask->kernel = op->kernel;
	ask->tid = lane->owner ? op->worker->tid : 0;
}

/* The lane is OPENING and ours. Return: as conn_request(). */
static int open_job(struct lane *lane, struct op *op) {
	struct enforce_grant given;
	struct conn_ask ask;
	int r, token;

	if (!find_uuid(lane, ask.uuid)) {
		return CONN_E_REFUSED;
	}
	job_ask(lane, op, &ask);
	/* Before anybody can answer: the tracker may read a Revoke right behind the Grant. */
	atomic_store(&lane->drain, false);
	atomic_store(&lane->job, ask.job);
	r = conn_request(&ask, &given);
	if (r != 0) {
		return r;
	}
	lane->grant = given;
	lane->grant.partition = NULL;
	if (given.enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_GREEN) {
		lane->grant.partition = enforce_partition(op->worker->context, &given);
		if (!lane->grant.partition) {
			/* What can't be had is not asked for again. */
			job_learn(lane, ~ENFORCEMENT_BIT(GREEN));
		}
	}
	lane->sums = (struct job_sums){0};
	atomic_store(&lane->granted_ns, nsec_now());
	if (given.enforcement != SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE) {
		token = state_enter();
		if (enforce_prepare(op->worker->context, &lane->grant) < 0) {
			log_once(LOG_LEVEL_WARN,
				 "No device memory for control blocks: kernels run "
				 "unconfined");
		}
		state_leave(token);
	}
	return 0;
}

static enum job_verdict cannot_open(struct lane *lane, int r, CUresult *ret_rc) {
	if (r == CONN_E_REFUSED) {
		atomic_store(&lane->refused_ns, nsec_now() + REFUSED_NS);
	}
	if (env_get()->require) {
		*ret_rc = RC_REQUIRED;
		return JOB_FAIL;
	}
	return JOB_BYPASS;
}

/* As enter_idle(). A thread that were cancelled here would leave the lane OPENING, and all others
 * waiting. */
static enum job_verdict open_lane(struct lane *lane, struct op *op, CUresult *ret_rc) {
	int r;

	if (!conn_worth_asking() ||
	    (atomic_load(&lane->refused_ns) && nsec_now() < atomic_load(&lane->refused_ns))) {
		return cannot_open(lane, CONN_E_UNMANAGED, ret_rc);
	}
	if (!track_start()) {
		return cannot_open(lane, CONN_E_UNMANAGED, ret_rc);
	}
	if (!lane_set_state(lane, LANE_IDLE, LANE_OPENING)) {
		return JOB_GO;
	}
	r = open_job(lane, op);
	if (r != 0) {
		lane_set_state(lane, LANE_OPENING, LANE_IDLE);
		return cannot_open(lane, r, ret_rc);
	}
	atomic_fetch_add(&n_open, 1);
	lane_set_state(lane, LANE_OPENING, LANE_OPEN);
	if (atomic_load(&lane->drain)) {
		job_drain(lane); /* it was revoked before it was open */
	}
	track_job_opened();
	return JOB_GO;
}

/* The lane is IDLE. JOB_GO: try to enter again. */
static enum job_verdict enter_idle(struct lane *lane, struct op *op, CUresult *ret_rc) {
	int cancel = state_defer_cancel();
	enum job_verdict verdict = open_lane(lane, op, ret_rc);

	state_restore_cancel(cancel);
	return verdict;
}

/* ---- entering ---- */

/* A launch that fits into a confined job is made by what was looked up here. */
static bool op_fits(struct op *op, const struct lane *lane) {
	Sbeet__Enforcement e = lane->grant.enforcement;

	return e == SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE || (op_mask(op) & (1u << e));
}

/* Waits until the job that is DRAINING is over. Return: false if that takes too long: then the job
 * goes on, and the operation has to join it unconfined. */
static bool wait_drained(struct lane *lane, nsec_t deadline) {
	lane_wait(lane, LANE_DRAINING, deadline);
	if (nsec_now() < deadline) {
		return true;
	}
	atomic_store(&lane->drain, false);
	if (!lane_set_state(lane, LANE_DRAINING, LANE_OPEN)) {
		return true; /* it moved after all */
	}
	log_once(LOG_LEVEL_WARN,
		 "A kernel has waited %llus for the other kernels of its job, which may be waiting "
		 "for "
		 "it: it runs unconfined",
		 DRAIN_MAX_NS / NSEC_PER_SEC);
	return false;
}

/* Into the lane's job, whatever that takes. Return: JOB_GO when inside. */
static enum job_verdict enter(struct lane *lane, struct op *op, CUresult *ret_rc) {
	enum job_verdict verdict;

	op->called_ns = 0;
	for (;;) {
		uint32_t state;

		atomic_store(&op->worker->inside, lane);
		state = atomic_load(&lane->state);
		if (state == LANE_OPEN && (op->unconfined || op_fits(op, lane))) {
			return JOB_GO;
		}
		atomic_store_explicit(&op->worker->inside, NULL, memory_order_release);
		if (!op->called_ns && (state == LANE_OPEN || state == LANE_DRAINING)) {
			op->called_ns = nsec_now();
		}
		switch (state) {
		case LANE_IDLE:
			verdict = enter_idle(lane, op, ret_rc);
			if (verdict != JOB_GO) {
				return verdict;
			}
			break;
		case LANE_OPEN:
			job_learn(lane, op_mask(op));
			job_drain(lane);
			break;
		case LANE_DRAINING:
			op->unconfined = !wait_drained(lane, op->called_ns + DRAIN_MAX_NS);
			break;
		default:
			lane_wait(lane, state, 0);
			break;
		}
	}
}

/* Into the lane's job, and to the stream of its partition. */
static enum job_verdict begin(struct op *op, CUresult *ret_rc) {
	const struct real *real = real_get();
	struct worker *w = worker_get();
	bool per_thread = op->traits & OP_PER_THREAD;
	enum job_verdict verdict;
	struct lane *lane;
	CUcontext context;

	if (!w || !real->cuCtxGetCurrent || real->cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
	    !context || wait_is_capturing(op->stream, per_thread)) {
		return JOB_BYPASS; /* an error, or not work yet but a line in a graph */
	}
	lane = find_lane(w, context);
	if (!lane) {
		return JOB_BYPASS;
	}
	op->worker = w;
	op->lane = lane;
	op->unconfined = false;
	verdict = enter(lane, op, ret_rc);
	if (verdict != JOB_GO) {
		return verdict;
	}
	if (place_active()) {
		place_enter(&op->place, context,
			    op->unconfined || op->traits & (OP_UNNAMED | OP_WHOLE)
				    ? NULL
				    : lane->grant.partition);
	}
	op->use = worker_use(w, lane, atomic_load_explicit(&lane->job, memory_order_relaxed),
			     context, &op->place);
	if (!op->use) {
		atomic_store_explicit(&w->inside, NULL, memory_order_release);
		return JOB_BYPASS;
	}
	op->begin_ns = op->traits & OP_WAITS ? nsec_now() : 0;
	state_depth++;
	return JOB_GO;
}

enum job_verdict job_begin(struct op *op, CUresult *ret_rc) {
	enum job_verdict verdict;

	op->place = (struct place_use){
		.stream = op->stream,
		.per_thread = op->traits & OP_PER_THREAD,
		.at = op->stream,
	};
	if (op->traits & OP_PEER && place_active()) {
		place_settle();
	}
	verdict = begin(op, ret_rc);
	if (verdict == JOB_BYPASS && place_active()) {
		if (op->traits & OP_UNNAMED) {
			place_return(op->stream, op->place.per_thread);
		} else {
			place_follow(&op->place);
		}
	}
	return verdict;
}

static void op_leave(struct op *op) {
	if (place_active()) {
		place_leave(&op->place);
	}
	if (op->traits & OP_PEER && place_active()) {
		place_settle();
	}
}

void job_bypassed(struct op *op) {
	op_leave(op);
}

void job_unconfine(struct op *op) {
	place_enter(&op->place, op->worker->context, NULL);
}

static void record(const struct op *op, nsec_t now, Sbeet__Enforcement how) {
	const struct launch *l = op->launch;
	struct record r = {
		.job = atomic_load_explicit(&op->lane->job, memory_order_relaxed),
		.lane = op->lane,
		.kernel = op->kernel,
		.bytes = op->bytes,
		.stream = (uint64_t)(uintptr_t)op->stream,
		.kind = (uint16_t)op->kind,
		.enforcement = (uint16_t)how,
	};

	if (l) {
		r.blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
		r.block_threads = l->block[0] * l->block[1] * l->block[2];
	}
	records_push(op->worker, &r, op->begin_ns ? op->begin_ns : now);
}

void job_end(struct op *op, CUresult rc, Sbeet__Enforcement how) {
	bool waited = rc == CUDA_SUCCESS && (op->traits & OP_WAITS);
	nsec_t now = nsec_now();

	state_depth--;
	op_leave(op);
	atomic_store_explicit(&op->use->last_ns, now, memory_order_relaxed);
	if (rc == CUDA_SUCCESS) {
		record(op, now, how);
	}
	if (waited) {
		wait_covered_by_copy(op, now);
	}
	atomic_store_explicit(&op->worker->inside, NULL, memory_order_release);
	if (waited) {
		wait_done();
	}
}

const struct enforce_grant *job_grant(const struct op *op) {
	return &op->lane->grant;
}

/* ---- closing ---- */

static bool anyone_inside(struct lane *lane) {
	worker_for_each(w) {
		if (atomic_load(&w->inside) == lane) {
			return true;
		}
	}
	return false;
}

static bool all_complete(struct lane *lane) {
	uint64_t job = atomic_load(&lane->job);

	worker_for_each(w) {
		worker_for_each_use(u, w) {
			if (atomic_load(&u->job) == job && atomic_load(&u->lane) == lane &&
			    atomic_load(&u->last_ns) > atomic_load(&u->done_ns)) {
				return false;
			}
		}
	}
	return true;
}

bool job_is_complete(struct lane *lane) {
	return !anyone_inside(lane) && all_complete(lane);
}

/* Blocks that ran outside the grant, in every context that the job used and that is still there:
 * see job_settle(). While CLOSING. */
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

static void report(struct lane *lane, uint64_t outside) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	done.job = atomic_load(&lane->job);
	done.granted_ns = atomic_load(&lane->granted_ns);
	done.finished_ns = nsec_now();
	done.launches = lane->sums.launches;
	done.copies = lane->sums.copies;
	done.bytes = lane->sums.bytes;
	done.outside_blocks = outside;
	done.cancelled = done.launches + done.copies == 0;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	conn_send(done.job, &m); /* a daemon that is gone needs no account */
}

bool job_try_close(struct lane *lane) {
	uint32_t state = atomic_load(&lane->state);
	uint64_t outside = 0;

	if ((state != LANE_OPEN && state != LANE_DRAINING) ||
	    !lane_set_state(lane, state, LANE_CLOSING)) {
		return false;
	}
	if (!job_is_complete(lane)) {
		state = atomic_load(&lane->drain) ? LANE_DRAINING : LANE_OPEN;
		lane_set_state(lane, LANE_CLOSING, state);
		return false;
	}
	if (enforcement_has(lane->grant.enforcement, ENFORCEMENT_BY_TWIN)) {
		outside = outside_blocks(lane);
	}
	records_drain();
	report(lane, outside);
	atomic_fetch_sub(&n_open, 1);
	lane_set_state(lane, LANE_CLOSING, LANE_IDLE);
	return true;
}

void job_drain(struct lane *lane) {
	atomic_store(&lane->drain, true);
	if (lane_set_state(lane, LANE_OPEN, LANE_DRAINING)) {
		track_kick();
	}
}

static void drain_if_it_is(struct lane *lane, void *data) {
	if (atomic_load(&lane->job) == *(const uint64_t *)data) {
		job_drain(lane);
	}
}

void job_revoked(uint64_t job) {
	job_for_each(drain_if_it_is, &job);
}

void job_after_fork(void) {
	memset(process_lanes, 0, sizeof(process_lanes));
	job_lanes_init(process_lanes, NULL);
	atomic_store(&n_open, 0);
}
