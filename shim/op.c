/*
 * op.c: see op.h. No call into the driver is made here but the questions which context is current
 * and where it is.
 */
#include "shim/op.h"

#include <stdatomic.h>
#include <time.h>

#include "proto/enforcement.h"
#include "shim/base/env.h"
#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/capture.h"
#include "shim/conn.h"
#include "shim/enforce/dependent.h"
#include "shim/enforce/green.h"
#include "shim/enforce/kernel.h"
#include "shim/fronts.h"
#include "shim/job.h"
#include "shim/kernel-end.h"
#include "shim/kernels-done.h"
#include "shim/lane.h"
#include "shim/launch.h"
#include "shim/real.h"
#include "shim/records.h"
#include "shim/seat.h"
#include "shim/state.h"
#include "shim/terms.h"
#include "shim/track.h"
#include "shim/wait.h"

static const Sbeet__Enforcement whole = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
static const Sbeet__Enforcement green = SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;
static const Sbeet__Enforcement none = SBEET__ENFORCEMENT__ENFORCEMENT_NONE;

/* How long another thread takes to hand something over, and to look at it again. */
#define INSIDE_MAX_NS (1 * NSEC_PER_MSEC)
#define INSIDE_NAP_NS (20 * NSEC_PER_USEC)

/* "Required daemons are not running": the driver's own error for exactly this. */
#define RC_REQUIRED CUDA_ERROR_SYSTEM_NOT_READY

/* ---- what it means ---- */

/* The current context is another than at the thread's last operation, or the stream is. Return:
 * false if it is on no GPU that we manage. */
static bool meet_stream(struct worker *w, CUcontext context, CUstream stream, bool per_thread) {
	uint32_t epoch = atomic_load_explicit(&worker_epoch, memory_order_relaxed);
	const struct real *real = real_get();
	CUdevice device;

	w->last = (struct stream_state){.epoch = 0};
	if (!real->cuCtxGetDevice || real->cuCtxGetDevice(&device) != CUDA_SUCCESS) {
		return false;
	}
	w->last = (struct stream_state){
		.named = stream,
		.per_thread = per_thread,
		.epoch = epoch,
		.id = worker_stream(w, context, stream, per_thread),
		.lane = lane_find(w->lanes, device),
	};
	return true;
}

/* Return: false for what is an error, or no work yet but a line in a graph. */
static bool resolve(struct op *op) {
	const struct real *real = real_get_inline();
	struct worker *w = worker_get();
	CUcontext context;

	if (!w || !real->cuCtxGetCurrent || real->cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
	    !context || capture_is_on(op->stream, op->place.per_thread)) {
		return false;
	}
	if (!worker_stream_is_last(w, context, op->stream, op->place.per_thread) &&
	    !meet_stream(w, context, op->stream, op->place.per_thread)) {
		return false;
	}
	op->worker = w;
	op->id = &w->last.id;
	op->lane = w->last.lane;
	op->kernel_epoch = atomic_load_explicit(&kernel_epoch, memory_order_acquire);
	op->kernel = op->launch ? kernel_find(op->launch->function) : NULL;
	op->at_once = op->kernel && kernel_waits_at_once(op->kernel, op->launch);
	op->traits |= op->at_once ? OP_WHOLE : 0;
	return op->lane != NULL;
}

/* The place of the stream, if streams have any. */
static struct place *find_place(struct op *op) {
	struct stream_state *s = &op->worker->last;

	if (!s->place && place_active()) {
		s->place = place_find(&s->id);
	}
	op->place.place = s->place;
	return s->place;
}

/* ---- what it can keep ---- */

/* Such a library may find the driver's functions at the first call of its own, so not at once. */
static void tell_of_front(void) {
	static _Atomic unsigned n;
	const char *front = fronts_missed();

	if (front && atomic_fetch_add(&n, 1) == 8) {
		log_once(
			LOG_LEVEL_WARN,
			"%s stands in for functions of the driver, and finds the driver's own past "
			"sbeet: this program's streams are not moved into parts of the GPU",
			front);
	}
}

HOT_CODE static bool can_be_green(struct op *op) {
	const struct place *place = find_place(op);

	/* The grid of a cooperative launch is made for all SMs. Clusters that a partition can't
	 * hold show when they are launched. */
	if (op->launch) {
		return place && !op->launch->cooperative && place_can_move(place);
	}
	/* A context of the program's own has no parts: its kernels would not fit. */
	if (place_active() && enforce_step(op->id->context) == 0) {
		log_once(LOG_LEVEL_INFO,
			 "No green context can be made here (the driver is too old, or the context "
			 "the program's own): jobs are held to a number of SMs where their kernels "
			 "can be rewritten, else they get the whole GPU");
		return false;
	}
	if (!place_active()) {
		tell_of_front();
	}
	return place_active();
}

/* Whether the operation can be held by @e. A launch that its twin makes then has op->kernel_use. */
static bool can_keep(struct op *op, Sbeet__Enforcement e) {
	if (e == whole || op->traits & OP_WHOLE) {
		return e == whole;
	}
	if (e == green) {
		return can_be_green(op);
	}
	if (op->launch) {
		return kernel_enforcement_mask(op->kernel, op->launch, op->id->context,
					       &op->kernel_use) &
		       (1u << e);
	}
	return !(op->traits & OP_GREEN);
}

static uint32_t mask_of(struct op *op) {
	uint32_t mask = 0;

	for (unsigned e = 0; e < ENFORCEMENT_N; e++) {
		if (ENFORCEMENT_ANY & 1u << e && can_keep(op, (Sbeet__Enforcement)e)) {
			mask |= 1u << e;
		}
	}
	return mask;
}

/* ---- into a job ---- */

/* Before sbeetd is told of the kernel. */
static void note_need(const struct op *op) {
	if (op->kernel && op->launch->cooperative) {
		kernel_need_whole(op->kernel, "it is launched cooperatively, on all SMs at once");
	} else if (op->at_once) {
		kernel_need_whole(op->kernel,
				  "its blocks may wait for each other, and they all fit "
				  "on the GPU at once");
	}
}

/* A thread that is cancelled meanwhile would leave the lane OPENING, and all others waiting.
 * Return: whether to try to enter again. */
static bool ask_for_job(struct op *op, struct job_need *need) {
	int cancel = state_defer_cancel();
	bool ok = job_worth_opening(op->lane) && track_start();

	if (ok) {
		need->mask = mask_of(op);
		note_need(op);
		atomic_fetch_add(&lane_n_waiting, 1);
		ok = job_open(op->lane, need);
		atomic_fetch_sub(&lane_n_waiting, 1);
	}
	state_restore_cancel(cancel);
	return ok;
}

/* The lane is IDLE or STOPPED, as @state says. Return: OP_GO to try to enter again. */
static enum op_verdict open_job(struct op *op, uint32_t state, CUresult *ret_rc) {
	struct job_need need = {
		.context = op->id->context,
		.called_ns = op->called_ns,
		.kind = op->kind,
		.kernel = op->kernel,
		.tid = op->worker->tid,
	};

	atomic_store_explicit(&op->lane->by_operation,
			      env_get()->task.made_by == TASK_JOBS_OPERATION, memory_order_relaxed);
	if ((state == LANE_IDLE && terms_held() && track_start() &&
	     job_open_by_terms(op->lane, &need)) ||
	    ask_for_job(op, &need)) {
		return OP_GO;
	}
	if (env_get()->require) {
		*ret_rc = RC_REQUIRED;
		return OP_FAIL;
	}
	return OP_BYPASS;
}

/* Whether the job that is DRAINING makes room as soon as another thread has handed over what it is
 * about to. If that takes long the thread may wait for something itself. */
static bool wait_inside(const struct op *op) {
	const struct timespec pause = {.tv_nsec = INSIDE_NAP_NS};
	bool soon = job_may_go_aside(op->lane) && nsec_now() < op->called_ns + INSIDE_MAX_NS;

	if (soon) {
		nanosleep(&pause, NULL);
	}
	return soon;
}

/* The job is OPEN, but the operation can't keep its grant; or it is about to end. */
static void wait_for_next(struct op *op, uint32_t state) {
	if (!op->called_ns) {
		op->called_ns = nsec_now();
	}
	if (state == LANE_OPEN) {
		job_learn(op->lane, mask_of(op));
		lane_drain(op->lane);
	} else if (!wait_inside(op)) {
		op->waited_ns = op->waited_ns ? op->waited_ns : nsec_now();
		op->passes = !lane_wait_drained(op->lane, op->waited_ns);
	}
}

/* The job is OPEN. Under terms nobody waits for another job. */
static bool can_join(struct op *op) {
	return atomic_load_explicit(&op->lane->terms, memory_order_relaxed) ||
	       can_keep(op, op->lane->grant.enforcement);
}

/* Of those that have met in an open job that is for one operation, the first one. */
static bool may_stay(struct op *op) {
	return !atomic_load_explicit(&op->lane->by_operation, memory_order_relaxed) ||
	       lane_claim(op->lane);
}

/* The thread is inside; the lane is as *@state says. Return: whether the operation stays there. */
HOT_CODE static bool enter_job(struct op *op, uint32_t *state) {
	if (op->passes && (*state == LANE_OPEN || *state == LANE_DRAINING)) {
		op->unconfined = !can_join(op);
		return true;
	}
	if (*state != LANE_OPEN || !can_join(op)) {
		return false;
	}
	if (!may_stay(op)) {
		*state = LANE_DRAINING; /* it is another operation's */
		return false;
	}
	return true;
}

/* Into the lane's job, whatever that takes. Return: OP_GO when inside. */
HOT_CODE static enum op_verdict enter(struct op *op, CUresult *ret_rc) {
	struct lane *lane = op->lane;
	enum op_verdict verdict;

	for (;;) {
		uint32_t state = atomic_load(&lane->state);

		if (state == LANE_OPEN || op->passes) {
			atomic_store(&op->worker->inside, lane);
			state = atomic_load(&lane->state);
			if (enter_job(op, &state)) {
				return OP_GO;
			}
			atomic_store_explicit(&op->worker->inside, NULL, memory_order_release);
		}
		if (mark_is_outside(lane->mark)) {
			op->outside = true;
			seat_note_unseen(lane->device);
			return OP_BYPASS;
		}
		switch (state) {
		case LANE_IDLE:
		case LANE_STOPPED:
			op->passes = false;
			op->waited_ns = 0;
			verdict = open_job(op, state, ret_rc);
			if (verdict != OP_GO) {
				return verdict;
			}
			break;
		case LANE_DRAINING:
			if (job_put_aside(lane)) {
				break;
			}
			wait_for_next(op, state);
			break;
		case LANE_OPEN:
			wait_for_next(op, state);
			break;
		default:
			lane_wait(lane, state, 0);
			break;
		}
	}
}

/* ---- where it runs ---- */

static void find_by_grant(struct op *op) {
	const struct enforce_grant *grant = &op->lane->grant;

	bool own = op->unconfined || op->traits & OP_UNNAMED ||
		   (op->traits & OP_WHOLE && grant->enforcement == green);

	op->to = own ? NULL : grant->partition;
	op->how = enforcement_kept(grant->enforcement, op->unconfined);
}

/* What can't be confined runs beside the set at once. A level of the whole GPU is for everything.
 */
static void find_by_terms(struct op *op, uint64_t word) {
	struct partition *to = atomic_load_explicit(&op->lane->steered_to, memory_order_acquire);
	bool set = to ? green_confines(to) : terms_has_set(word);

	op->unconfined = set && (!to || op->traits & OP_WHOLE || !can_be_green(op));
	op->to = op->unconfined || op->traits & OP_UNNAMED ? NULL : to;
	op->how = op->unconfined ? none : set ? green : whole;
}

/* The one place that decides where an operation of a job runs, and what holds it there. A launch
 * whose job is held by twins goes to its own stream. */
static void decide(struct op *op) {
	uint64_t terms = atomic_load_explicit(&op->lane->terms, memory_order_relaxed);

	if (terms) {
		find_by_terms(op, terms);
	} else {
		find_by_grant(op);
	}
	if (place_active()) {
		find_place(op);
		/* A copy may be for a stream of another context, on another GPU. */
		if (!place_is_of(&op->place, op->id->context)) {
			op->to = NULL;
		}
		place_enter(&op->place, op->to);
	}
	if (op->how == green && (op->launch || op->kind == SBEET__OP_KIND__OP_KIND_GRAPH) &&
	    !place_is_in(&op->place, op->to)) {
		op->how = none;
	}
}

/* The entry of the stream where it runs. NULL: no memory. */
static inline struct stream_use *find_use(const struct op *op) {
	bool own = op->place.at == op->stream;

	return worker_use(op->worker, op->lane,
			  atomic_load_explicit(&op->lane->job, memory_order_relaxed), op->id,
			  own ? op->id->stream : op->place.at);
}

void op_unconfine(struct op *op) {
	struct stream_use *use;

	place_enter(&op->place, NULL);
	op->how = none;
	use = find_use(op);
	op->use = use ? use : op->use;
}

/* ---- the way ---- */

static bool is_recorded(const struct op *op) {
	return atomic_load_explicit(&op->lane->recording, memory_order_relaxed);
}

/* Where a copy goes to may be known to the driver alone. */
static bool may_copy_back(const struct op *op) {
	return op->kind == SBEET__OP_KIND__OP_KIND_COPY_DTOH ||
	       op->kind == SBEET__OP_KIND__OP_KIND_COPY_UNIFIED;
}

static uint64_t terms_of(const struct op *op) {
	return atomic_load_explicit(&op->lane->terms, memory_order_relaxed);
}

HOT_CODE void op_kernels_done(const struct op *op) {
	if (may_copy_back(op) && terms_are_awaited(terms_of(op)) && op_has_launched(op)) {
		kernels_done_write(op->lane, op->id->context, op->place.at, op->place.per_thread);
	}
}

static enum op_verdict begin(struct op *op, CUresult *ret_rc) {
	enum op_verdict verdict = resolve(op) ? enter(op, ret_rc) : OP_BYPASS;

	if (verdict != OP_GO) {
		return verdict;
	}
	/* Before the streams are put in order: what another thread hands over after that is not
	 * waited for. */
	if (op->traits & OP_WAITS) {
		op->begun = point_mark();
	}
	decide(op);
	op->use = find_use(op);
	if (!op->use) {
		atomic_store_explicit(&op->worker->inside, NULL, memory_order_release);
		return OP_BYPASS;
	}
	if (may_copy_back(op) && env_get()->measure) {
		kernel_end_wait(op->worker, op->use, op->traits & OP_WAITS);
	}
	op->begin_ns = op->traits & OP_WAITS && is_recorded(op) ? nsec_now() : 0;
	state_self.depth++;
	if (!(op->traits & OP_BACK)) {
		op_kernels_done(op);
	}
	return OP_GO;
}

HOT_CODE enum op_verdict op_begin(struct op *op, CUresult *ret_rc) {
	enum op_verdict verdict;

	if (!op->launch && (op->kind == SBEET__OP_KIND__OP_KIND_LAUNCH ||
			    op->kind == SBEET__OP_KIND__OP_KIND_GRAPH)) {
		dependent_end_turn();
	}
	if (op->traits & OP_PEER && place_active()) {
		place_settle();
	}
	verdict = begin(op, ret_rc);
	if (verdict == OP_BYPASS && place_active()) {
		if (op->traits & OP_UNNAMED) {
			place_return(op->stream, op->place.per_thread);
		} else {
			place_follow(&op->place);
		}
	}
	return verdict;
}

HOT_CODE static void leave(struct op *op) {
	if (place_active()) {
		place_leave(&op->place);
	}
	if (op->traits & OP_PEER && place_active()) {
		place_settle();
	}
}

/* sbeetd may not know the kernel: tells it, unless it would have to wait for that. */
static void declare(const struct op *op, struct kernel_count *c) {
	uint32_t up = atomic_load(&conn_number);

	note_need(op);
	if (up == 0 || conn_try_declare(op->kernel)) {
		c->declared = up;
	}
}

HOT_CODE struct shape *op_shape(const struct op *op) {
	const struct launch *l = op->launch;
	uint32_t threads = (uint32_t)launch_threads(l);
	struct shape *known = shapes_find(&op->worker->shapes, l->function, threads,
					  l->shared_bytes, op->kernel_epoch);
	struct kernel_count *c;

	if (known) {
		return known;
	}
	c = worker_count(op->worker, kernel_id(op->kernel));
	if (!c) {
		return NULL;
	}
	return shapes_add(&op->worker->shapes,
			  &(struct shape){.function = l->function,
					  .count = c,
					  .epoch = op->kernel_epoch,
					  .block_threads = threads,
					  .shared_bytes = l->shared_bytes,
					  .wave_blocks = kernel_wave_blocks(l) & INT32_MAX >> 2,
					  .in_turn = atomic_load(&kernel_any_waits_first),
					  .waits_first = kernel_waits_first(op->kernel)});
}

HOT_CODE static void count_kernel(const struct op *op) {
	const struct shape *shape = op_shape(op);
	uint32_t threads = (uint32_t)launch_threads(op->launch);
	struct kernel_count *c;

	if (!shape) {
		return;
	}
	c = shape->count;
	if (threads > atomic_load_explicit(&c->block_threads, memory_order_relaxed)) {
		atomic_store_explicit(&c->block_threads, threads, memory_order_relaxed);
	}
	kernel_count_add(c, launch_blocks(op->launch));
	if (op->use) {
		worker_add(&op->use->waves, shape_waves(shape, launch_blocks(op->launch)));
	}
	if (c->declared != atomic_load_explicit(&conn_number, memory_order_relaxed)) {
		declare(op, c);
	}
}

void op_bypassed(struct op *op) {
	leave(op);
	if (op->outside && op->kernel) {
		op->use = NULL;
		count_kernel(op);
	}
}

static void count(const struct op *op) {
	struct stream_use *u = op->use;
	uint64_t n;

	if (!op->launch && op->kind != SBEET__OP_KIND__OP_KIND_GRAPH) {
		worker_add(&u->copies, 1);
		worker_add(&u->bytes, op->bytes);
		return;
	}
	n = atomic_load_explicit(&u->launches, memory_order_relaxed);
	atomic_store_explicit(&u->launches, n + 1, memory_order_relaxed);
	if (n == 0) {
		atomic_store_explicit(&u->launched_ns, nsec_now(), memory_order_relaxed);
	}
	if (op->how == none) {
		atomic_store_explicit(&u->unconfined, true, memory_order_relaxed);
	}
	if (op->kernel) {
		count_kernel(op);
	}
}

static void record(const struct op *op) {
	const struct launch *l = op->launch;
	struct record r = {
		.job = atomic_load_explicit(&op->lane->job, memory_order_relaxed),
		.kernel = op->kernel,
		.bytes = op->bytes,
		.stream = (uint64_t)(uintptr_t)op->stream,
		.kind = (uint16_t)op->kind,
		.enforcement = (uint16_t)op->how,
	};

	if (l) {
		r.blocks = launch_blocks(l);
		r.block_threads = (uint32_t)launch_threads(l);
	}
	records_push(op->worker, &r, op->begin_ns ? op->begin_ns : nsec_now());
}

HOT_CODE void op_end(struct op *op, CUresult rc) {
	bool waited = rc == CUDA_SUCCESS && (op->traits & OP_WAITS);

	state_self.depth--;
	leave(op);
	atomic_store_explicit(&op->use->last, point_now(), memory_order_relaxed);
	if (rc == CUDA_SUCCESS) {
		count(op);
		if (is_recorded(op)) {
			record(op);
		}
	}
	if (waited) {
		wait_covered_by_copy(op->use, op->begun);
	}
	atomic_store_explicit(&op->worker->inside, NULL, memory_order_release);
	if (waited) {
		job_close_complete();
	}
}

const struct enforce_grant *op_grant(const struct op *op) {
	return &op->lane->grant;
}
