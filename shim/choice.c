/*
 * choice.c: see choice.h.
 *
 * The job is asked for before it has an operation, in the name of all GPUs that it could run on:
 * the lanes of all of them are OPENING meanwhile, and that of the GPU which was granted is OPEN
 * then.
 */
#include "shim/choice.h"

#include <errno.h>

#include "proto/limits.h"
#include "shim/base/log.h"
#include "shim/conn.h"
#include "shim/gpu-uuid.h"
#include "shim/job.h"
#include "shim/lane.h"
#include "shim/mark.h"
#include "shim/real.h"
#include "shim/terms.h"
#include "shim/track.h"
#include "shim/worker.h"

/* For what earlier jobs have left on these GPUs. */
#define WAIT_MAX_NS (10 * NSEC_PER_SEC)

#define PAUSE_NS (1 * NSEC_PER_MSEC)

/* The primary context of @device, if it is there. It is not made. */
static CUcontext find_primary(CUdevice device) {
	const struct real *real = real_get();
	CUcontext context = NULL;
	int token = state_enter(), active = 0;
	unsigned flags;

	if (real->cuDevicePrimaryCtxGetState && real->cuDevicePrimaryCtxRetain &&
	    real->cuDevicePrimaryCtxRelease_v2 &&
	    real->cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active &&
	    real->cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS) {
		real->cuDevicePrimaryCtxRelease_v2(device);
	}
	state_leave(token);
	return context;
}

/* Waits until @lane has no job. Return: whether it is OPENING, for us. */
static bool take(struct lane *lane, nsec_t deadline) {
	while (!lane_set_state(lane, LANE_IDLE, LANE_OPENING)) {
		uint32_t state = atomic_load(&lane->state);
		nsec_t now = nsec_now();

		if (now >= deadline) {
			return false;
		}
		if (state == LANE_OPEN) {
			lane_drain(lane);
		} else if (state == LANE_STOPPED) {
			if (!job_try_close(lane)) {
				lane_wait(lane, state, now + PAUSE_NS);
			}
		} else if (state != LANE_IDLE && !(state == LANE_DRAINING && job_put_aside(lane))) {
			lane_wait(lane, state, deadline);
		}
	}
	return true;
}

/* In the order of the devices, so that two threads can't wait for each other. */
static bool take_all(const struct job_place *places, unsigned n) {
	nsec_t deadline = nsec_now() + WAIT_MAX_NS;
	const struct job_place *taken[LANE_DEVICES_MAX];
	unsigned n_taken = 0;
	bool ok = true;

	for (CUdevice device = 0; ok && device < LANE_DEVICES_MAX; device++) {
		for (unsigned i = 0; ok && i < n; i++) {
			if (places[i].lane->device == device) {
				ok = take(places[i].lane, deadline);
				taken[n_taken] = &places[i];
				n_taken += ok;
			}
		}
	}
	while (!ok && n_taken > 0) {
		lane_set_state(taken[--n_taken]->lane, LANE_OPENING, LANE_IDLE);
	}
	return ok;
}

/* Each is there, and there once. */
static bool are_gpus(const int *gpus, unsigned n) {
	uint32_t seen = 0;

	if (!gpus || n == 0 || n > PROTO_GPUS_MAX) {
		log_once(LOG_LEVEL_WARN, "sbeet_job_gpu() is called with %u GPUs, expected 1 to %d",
			 n, PROTO_GPUS_MAX);
		return false;
	}
	for (unsigned i = 0; i < n; i++) {
		if (gpus[i] < 0 || gpus[i] >= LANE_DEVICES_MAX || !gpu_uuid(gpus[i])) {
			log_once(LOG_LEVEL_WARN,
				 "sbeet_job_gpu() is called with GPU %d, which this program does "
				 "not "
				 "see (CUDA_VISIBLE_DEVICES says which it does)",
				 gpus[i]);
			return false;
		}
		if (seen & 1u << gpus[i]) {
			log_once(LOG_LEVEL_WARN, "sbeet_job_gpu() is called with GPU %d twice",
				 gpus[i]);
			return false;
		}
		seen |= 1u << gpus[i];
	}
	return true;
}

/* Return: the GPU of the job that is marked; -1: it may not have one of them. */
static int choose(struct worker *w, struct mark *m, const int *gpus, unsigned n) {
	struct job_place places[LANE_DEVICES_MAX];
	bool refused;
	int at;

	for (unsigned i = 0; i < n; i++) {
		places[i] = (struct job_place){.lane = lane_find(w->lanes, gpus[i]),
					       .context = find_primary(gpus[i])};
	}
	/* Under terms jobs ask nobody. */
	if (terms_steer_any() || !conn_worth_asking() || !track_start() || !take_all(places, n)) {
		return gpus[0];
	}
	atomic_store(&m->alone, true); /* until its end, as it has no operation to live by */
	at = job_open_any(places, n, w->tid, &refused);
	if (at >= 0) {
		atomic_store(&m->chosen, gpus[at] + 1);
		return gpus[at];
	}
	return refused ? -1 : gpus[0];
}

static int choose_here(const int *gpus, unsigned n) {
	struct worker *w = worker_get();
	struct mark *m = w ? lane_mark(w->lanes) : NULL;

	if (!are_gpus(gpus, n)) {
		return -1;
	}
	if (!m) {
		return gpus[0];
	}
	if (atomic_load(&m->jobs) == 0) {
		log_once(LOG_LEVEL_WARN,
			 "sbeet_job_gpu() is called outside of a job (sbeet_job_begin())");
		return -1;
	}
	return atomic_load(&m->chosen) > 0 ? atomic_load(&m->chosen) - 1 : choose(w, m, gpus, n);
}

int sbeet_choose_gpu(const int *gpus, unsigned n) {
	int error = errno, cancel, gpu;

	if (state_bypass()) {
		return gpus && n > 0 ? gpus[0] : -1;
	}
	cancel = state_defer_cancel();
	gpu = choose_here(gpus, n);
	state_restore_cancel(cancel);
	errno = error;
	return gpu;
}
