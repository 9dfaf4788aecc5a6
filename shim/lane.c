/*
 * lane.c: see lane.h.
 */
#include "shim/lane.h"
#include "shim/base/hot.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/enforcement.h"
#include "shim/base/log.h"
#include "shim/wake.h"

/* See lane_wait_drained(). Kernels that take longer are not started by the thousand. */
#define PATIENCE_MAX_NS (1 * NSEC_PER_SEC)
#define PATIENCE_MIN_NS (5 * NSEC_PER_MSEC)

/* So long all operations enter after one that had to: they may be under the same lock. */
#define PASS_NS (5 * NSEC_PER_MSEC)

HOT_WRITTEN static struct lane_set process;
HOT_WRITTEN static _Atomic(struct lane_set *) threads; /* newest first */
HOT_WRITTEN _Atomic unsigned lane_n_waiting;
HOT_WRITTEN static _Atomic uint64_t counts;	       /* jobs: open now, above that ever opened */

HOT_DATA static const unsigned edges[_LANE_STATE_N] = {
	[LANE_IDLE] = 1u << LANE_OPENING,
	[LANE_OPENING] = 1u << LANE_OPEN | 1u << LANE_IDLE,
	[LANE_OPEN] = 1u << LANE_CLOSING | 1u << LANE_DRAINING,
	[LANE_DRAINING] = 1u << LANE_CLOSING | 1u << LANE_OPEN,
	[LANE_CLOSING] =
		1u << LANE_OPEN | 1u << LANE_DRAINING | 1u << LANE_IDLE | 1u << LANE_STOPPED,
	[LANE_STOPPED] = 1u << LANE_OPENING | 1u << LANE_CLOSING,
};

static void init(struct lane_set *set, bool of_thread) {
	for (unsigned i = 0; i < LANE_DEVICES_MAX; i++) {
		set->lanes[i].of_thread = of_thread;
		set->lanes[i].device = (CUdevice)i;
		set->lanes[i].mark = &set->mark;
		atomic_store(&set->lanes[i].mask_wanted, ENFORCEMENT_ANY);
		atomic_store(&set->lanes[i].patience, PATIENCE_MAX_NS);
	}
}

__attribute__((constructor)) static void init_process(void) {
	init(&process, false);
}

struct lane_set *lane_set_new(void) {
	/* Not the program's heap, and pages that are not touched cost nothing. */
	struct lane_set *set = mmap(NULL, sizeof(*set), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (set == MAP_FAILED) {
		return NULL;
	}
	init(set, true);
	set->next = atomic_load(&threads);
	while (!atomic_compare_exchange_weak(&threads, &set->next, set)) {
	}
	return set;
}

/* From now on lane_for_each() looks at this one. */
static void use_lane(struct lane_set *set, unsigned i) {
	unsigned n = atomic_load(&set->n);

	while (n <= i && !atomic_compare_exchange_weak(&set->n, &n, i + 1)) {
	}
}

struct lane *lane_find(struct lane_set *own, CUdevice device) {
	if (device < 0 || device >= LANE_DEVICES_MAX) {
		log_once(LOG_LEVEL_WARN, "GPU %d is beyond the %d that sbeet manages", device,
			 LANE_DEVICES_MAX);
		return NULL;
	}
	use_lane(own ? own : &process, (unsigned)device);
	return &(own ? own : &process)->lanes[device];
}

struct mark *lane_mark(struct lane_set *own) {
	return &(own ? own : &process)->mark;
}

HOT_CODE bool lane_set_state(struct lane *lane, uint32_t from, uint32_t to) {
	if (!(edges[from] & (1u << to)) ||
	    !atomic_compare_exchange_strong(&lane->state, &from, to)) {
		return false;
	}
	if (atomic_load(&lane->waiting) > 0) {
		syscall(SYS_futex, &lane->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	}
	return true;
}

void lane_wait(struct lane *lane, uint32_t from, nsec_t deadline) {
	atomic_fetch_add(&lane_n_waiting, 1);
	atomic_fetch_add(&lane->waiting, 1);
	while (atomic_load(&lane->state) == from) {
		nsec_t now = deadline ? nsec_now() : 0;
		struct timespec left;

		if (deadline && now >= deadline) {
			break;
		}
		left = nsec_timespec(deadline - now);
		syscall(SYS_futex, &lane->state, FUTEX_WAIT_PRIVATE, from, deadline ? &left : NULL,
			NULL, 0);
	}
	atomic_fetch_sub(&lane->waiting, 1);
	atomic_fetch_sub(&lane_n_waiting, 1);
}

bool lane_wait_drained(struct lane *lane, nsec_t began) {
	nsec_t patience = atomic_load(&lane->patience);

	if (nsec_now() < atomic_load(&lane->passes_until)) {
		return false;
	}
	lane_wait(lane, LANE_DRAINING, began + patience);
	if (atomic_load(&lane->state) != LANE_DRAINING) {
		atomic_store(&lane->patience,
			     nsec_clamp(2 * patience, PATIENCE_MIN_NS, PATIENCE_MAX_NS));
		return true;
	}
	atomic_store(&lane->patience, nsec_clamp(patience / 2, PATIENCE_MIN_NS, PATIENCE_MAX_NS));
	atomic_store(&lane->passes_until, nsec_now() + PASS_NS);
	log_once(LOG_LEVEL_WARN,
		 "An operation has waited %llu ms for the other ones of its job, which may be "
		 "waiting for it: it runs beside them",
		 (unsigned long long)(patience / NSEC_PER_MSEC));
	return false;
}

HOT_CODE bool lane_has(struct lane *lane, uint64_t job) {
	if (job == 0) {
		return false;
	}
	if (atomic_load(&lane->job) == job && atomic_load(&lane->state) != LANE_IDLE) {
		return true;
	}
	if (atomic_load(&lane->n_aside) == 0) {
		return false;
	}
	for (unsigned i = 0; i < LANE_ASIDE_MAX; i++) {
		if (atomic_load(&lane->aside[i]) == job) {
			return true;
		}
	}
	return false;
}

void lane_put_aside(struct lane *lane) {
	for (unsigned i = 0; i < LANE_ASIDE_MAX; i++) {
		if (atomic_load(&lane->aside[i]) == 0) {
			atomic_store(&lane->aside[i], atomic_load(&lane->job));
			atomic_fetch_add(&lane->n_aside, 1);
			return;
		}
	}
}

void lane_take_aside(struct lane *lane, unsigned i) {
	atomic_store(&lane->aside[i], 0);
	atomic_fetch_sub(&lane->n_aside, 1);
}

void lane_drain(struct lane *lane) {
	atomic_store(&lane->drain, true);
	if (lane_set_state(lane, LANE_OPEN, LANE_DRAINING)) {
		wake_tracker();
	}
}

bool lane_claim(struct lane *lane) {
	if (!lane_set_state(lane, LANE_OPEN, LANE_DRAINING)) {
		return false;
	}
	atomic_store(&lane->drain, true);
	wake_tracker();
	return true;
}

struct revoked {
	uint64_t job;
	bool stop;
};

static void drain_if_it_has(struct lane *lane, void *data) {
	const struct revoked *revoked = data;

	/* One that nobody was asked for holds no SMs. */
	if (atomic_load(&lane->job) == revoked->job && !atomic_load(&lane->terms)) {
		atomic_store(&lane->stop, revoked->stop);
		lane_drain(lane);
	}
}

void lane_revoked(uint64_t job, bool stop) {
	lane_for_each(drain_if_it_has, &(struct revoked){job, stop});
}

bool lane_is_stopping(struct lane *lane) {
	return atomic_load(&lane->state) == LANE_DRAINING && atomic_load(&lane->stop);
}

void lane_thread_gone(struct lane_set *own) {
	bool held = mark_holds(&own->mark);

	atomic_store(&own->mark.jobs, 0);
	for (unsigned i = 0; held && i < LANE_DEVICES_MAX; i++) {
		lane_drain(&own->lanes[i]);
	}
}

struct recording {
	uint64_t job; /* 0: all */
	bool on;
};

static void set_recording(struct lane *lane, void *data) {
	const struct recording *wanted = data;

	if (wanted->job == 0 || wanted->job == atomic_load(&lane->job)) {
		atomic_store(&lane->recording, wanted->on);
	}
}

void lane_record_ops(uint64_t job, bool on) {
	lane_for_each(set_recording, &(struct recording){job, on});
}

HOT_CODE static void visit_set(struct lane_set *set, lane_visit_fn visit, void *data) {
	for (unsigned i = 0, n = atomic_load(&set->n); i < n; i++) {
		struct lane *lane = &set->lanes[i];

		if (atomic_load(&lane->state) != LANE_IDLE || atomic_load(&lane->n_aside) > 0) {
			visit(lane, data);
		}
	}
}

HOT_CODE void lane_for_each(lane_visit_fn visit, void *data) {
	visit_set(&process, visit, data);
	for (struct lane_set *s = atomic_load(&threads); s; s = s->next) {
		visit_set(s, visit, data);
	}
}

HOT_CODE void lane_count_job(int change) {
	atomic_fetch_add(&counts, change > 0 ? (UINT64_C(1) << 32) + 1 : UINT64_MAX);
}

HOT_CODE unsigned lane_count(void) {
	return (uint32_t)atomic_load(&counts);
}

unsigned lane_opened(void) {
	return (unsigned)(atomic_load(&counts) >> 32);
}

static void settle(struct lane *lane, void *data) {
	if (atomic_load(&lane->state) == LANE_CLOSING) {
		lane_wait(lane, LANE_CLOSING, *(const nsec_t *)data);
	}
}

void lane_settle(nsec_t deadline) {
	lane_for_each(settle, &deadline);
}

void lane_after_fork(void) {
	memset(&process, 0, sizeof(process));
	init(&process, false);
	atomic_store(&threads, NULL);
	atomic_store(&lane_n_waiting, 0);
	atomic_store(&counts, 0);
}
