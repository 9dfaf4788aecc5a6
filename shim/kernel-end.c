/* kernel-end.c: see kernel-end.h. */
#include "shim/kernel-end.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "shim/capture.h"
#include "shim/question.h"
#include "shim/real.h"
#include "shim/state.h"
#include "shim/worker.h"

/* The kernels may wait for what the program does after a copy that does not wait for them. */
#define WAIT_MAX_NS (1 * NSEC_PER_SEC)

/* Between two looks: this part of the time that was waited so far, which is then at most as wrong.
 * Shorter ones only let others run. */
#define NAP_PART   128
#define NAP_MIN_NS (20 * NSEC_PER_USEC)

static uint64_t load(const _Atomic uint64_t *from) {
	return atomic_load_explicit(from, memory_order_relaxed);
}

/* Of the job of @use, in its context, and with launches that are not known to have ended. */
static bool is_awaited(const struct stream_use *u, const struct stream_use *use) {
	return load(&u->job) == load(&use->job) &&
	       atomic_load(&u->lane) == atomic_load(&use->lane) &&
	       atomic_load(&u->context) == atomic_load(&use->context) &&
	       load(&u->launches) > load(&u->n_ended);
}

static bool awaits_any(struct worker *w, const struct stream_use *use) {
	worker_for_each_use(u, w) {
		if (is_awaited(u, use)) {
			return true;
		}
	}
	return false;
}

/* Return: CUDA_SUCCESS: nothing runs there any more; CUDA_ERROR_NOT_READY; else that can't be
 * known.
 */
static CUresult ask(const struct stream_use *u) {
	CUresult rc = CUDA_ERROR_UNKNOWN;
	CUstream stream;

	question_begin();
	stream = atomic_load(&u->stream);
	if (stream && !capture_any() && atomic_load(&state_mode) == STATE_MODE_ON) {
		rc = real_get()->cuStreamQuery(stream);
	}
	question_end();
	return rc;
}

/* The driver orders what is in the legacy default stream behind all blocking ones. */
static bool comes_after(const struct stream_use *use, const struct stream_use *u) {
	return atomic_load(&use->stream) == CU_STREAM_LEGACY && atomic_load(&u->blocking);
}

static void note(struct stream_use *u) {
	atomic_store_explicit(&u->ended_ns, nsec_now(), memory_order_relaxed);
	atomic_store_explicit(&u->n_ended, load(&u->launches), memory_order_relaxed);
}

/* What waits in a stream for another one's kernels ends after them; so all are looked at then.
 * Return: whether to look again. */
static bool look(struct worker *w, const struct stream_use *use) {
	CUresult rc = ask(use);
	bool again = rc == CUDA_ERROR_NOT_READY;

	if (rc != CUDA_SUCCESS) {
		return again;
	}
	worker_for_each_use(u, w) {
		if (!is_awaited(u, use)) {
			continue;
		}
		rc = u == use ? CUDA_SUCCESS : ask(u);
		if (rc == CUDA_SUCCESS) {
			note(u);
		} else if (rc == CUDA_ERROR_NOT_READY) {
			again |= comes_after(use, u);
		}
	}
	return again;
}

static void nap(nsec_t waited) {
	const struct timespec pause = {.tv_sec = (time_t)(waited / NAP_PART / NSEC_PER_SEC),
				       .tv_nsec = (long)(waited / NAP_PART % NSEC_PER_SEC)};

	if (waited / NAP_PART < NAP_MIN_NS) {
		sched_yield();
	} else {
		nanosleep(&pause, NULL);
	}
}

void kernel_end_wait(struct worker *w, const struct stream_use *use, bool waits) {
	nsec_t began = nsec_now(), waited = 0;
	int token;

	if (!awaits_any(w, use)) {
		return;
	}
	token = state_enter();
	while (look(w, use) && (waits || waited < WAIT_MAX_NS)) {
		nap(waited);
		waited = nsec_now() - began;
	}
	state_leave(token);
}
