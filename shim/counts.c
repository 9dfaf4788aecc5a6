/*
 * counts.c: see counts.h.
 */
#include "shim/counts.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/conn.h"
#include "shim/job.h"
#include "shim/lane.h"
#include "shim/wake.h"
#include "shim/worker.h"

#define TELL_NS (100 * NSEC_PER_MSEC)

/* The tracker's; at exit who exits. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nsec_t due;
static unsigned seen;			 /* jobs that were opened until we told last */
static bool untold;			 /* there may be more to tell of those */
static uint32_t connection;		 /* over which the following was told */
static uint64_t told[PROTO_KERNELS_MAX]; /* launches, by the kernel's number */

/* A message in the making. */
static struct {
	Sbeet__Counts counts;
	Sbeet__JobCount jobs[PROTO_JOBS_PER_SESSION], *job_list[PROTO_JOBS_PER_SESSION];
	Sbeet__KernelCount kernels[PROTO_COUNTS_MAX], *kernel_list[PROTO_COUNTS_MAX];
} message;

static void begin_message(void) {
	sbeet__counts__init(&message.counts);
	message.counts.jobs = message.job_list;
	message.counts.kernels = message.kernel_list;
}

/* Return: whether it was sent, or there was nothing to send. */
static bool send_message(void) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	if (message.counts.n_jobs + message.counts.n_kernels == 0) {
		return true;
	}
	m.body_case = SBEET__TO_DAEMON__BODY_COUNTS;
	m.counts = &message.counts;
	if (conn_tell(&m, 0) < 0) {
		return false;
	}
	for (size_t i = 0; i < message.counts.n_kernels; i++) {
		told[message.kernels[i].kernel] = message.kernels[i].launches;
	}
	begin_message();
	return true;
}

static void add_job(struct lane *lane, void *data) {
	size_t n = message.counts.n_jobs;
	struct job_sums sums;

	if (n == PROTO_JOBS_PER_SESSION || atomic_load(&lane->state) == LANE_IDLE) {
		return;
	}
	sbeet__job_count__init(&message.jobs[n]);
	message.jobs[n].job = job_sum(lane, &sums);
	message.jobs[n].launches = sums.launches;
	message.jobs[n].launched_ns = sums.launched_ns;
	message.jobs[n].unconfined = sums.unconfined;
	if (sums.launches > 0) {
		message.job_list[n] = &message.jobs[n];
		message.counts.n_jobs++;
	}
}

/* All threads together. */
static void sum_kernel(uint32_t id, Sbeet__KernelCount *ret) {
	sbeet__kernel_count__init(ret);
	ret->kernel = id;
	worker_for_each(w) {
		const struct kernel_counts *page = atomic_load(&w->counts[id / KERNEL_COUNTS]);
		const struct kernel_count *c = page ? &page->list[id % KERNEL_COUNTS] : NULL;
		uint32_t threads;

		if (!c) {
			continue;
		}
		ret->launches += atomic_load_explicit(&c->launches, memory_order_acquire);
		ret->blocks += atomic_load_explicit(&c->blocks, memory_order_relaxed);
		threads = atomic_load_explicit(&c->block_threads, memory_order_relaxed);
		ret->block_threads = threads > ret->block_threads ? threads : ret->block_threads;
	}
}

/* Return: whether sbeetd took all of it. */
static bool tell_page(uint32_t page) {
	for (uint32_t id = page * KERNEL_COUNTS; id < (page + 1) * KERNEL_COUNTS; id++) {
		size_t n = message.counts.n_kernels;

		sum_kernel(id, &message.kernels[n]);
		if (message.kernels[n].launches == told[id]) {
			continue;
		}
		message.kernel_list[n] = &message.kernels[n];
		message.counts.n_kernels++;
		if (n + 1 == PROTO_COUNTS_MAX && !send_message()) {
			return false;
		}
	}
	return true;
}

static bool page_is_used(uint32_t page) {
	worker_for_each(w) {
		if (atomic_load_explicit(&w->counts[page], memory_order_relaxed)) {
			return true;
		}
	}
	return false;
}

/* Return: whether sbeetd took all of it. */
static bool tell(void) {
	uint32_t up = atomic_load(&conn_number);
	bool anew = up != connection;

	connection = up;
	begin_message();
	lane_for_each(add_job, NULL);
	for (uint32_t page = 0; page < KERNEL_COUNTS_PAGES; page++) {
		if (!page_is_used(page)) {
			continue;
		}
		if (anew) {
			memset(&told[page * KERNEL_COUNTS], 0, KERNEL_COUNTS * sizeof(told[0]));
		}
		if (!tell_page(page)) {
			connection = anew ? 0 : up;
			return false;
		}
	}
	return send_message();
}

static nsec_t tell_if_due(nsec_t now) {
	unsigned opened = lane_opened();

	if (!conn_daemon_counts() || (opened == seen && !untold)) {
		return WAKE_NEVER;
	}
	if (now < due) {
		return due;
	}
	due = now + TELL_NS;
	seen = opened;
	/* A job that is open now may launch more, and be over before we look again. */
	untold = lane_count() > 0;
	untold |= !tell();
	return untold ? due : WAKE_NEVER;
}

nsec_t counts_tell(nsec_t now) {
	nsec_t again;

	pthread_mutex_lock(&lock);
	again = tell_if_due(now);
	pthread_mutex_unlock(&lock);
	return again;
}

void counts_leave(void) {
	pthread_mutex_lock(&lock);
	if (conn_daemon_counts()) {
		tell();
	}
	pthread_mutex_unlock(&lock);
}

void counts_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
}
