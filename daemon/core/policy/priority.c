/*
 * priority.c: chapter 4 of the dissertation: the GPU belongs to the ready job of the highest
 * priority, which stops those of lower ones (4.5).
 *
 *  gpu-kthread  the kernel thread approach (4.5.1, Alg. 6): the job has the whole GPU from its
 * first operation to its end, also between the segments that it marks gpu-ioctl    the IOCTL-based
 * approach (4.5.2, Alg. 7): it has the GPU for each segment that it marks; what marks none is one
 * segment
 *
 * A higher priority goes first; of the same priority, real-time jobs go before those of best
 * effort; else they are equal. Equals never stop each other: real-time jobs go in order of their
 * releases, best-effort programs in turns. So Alg. 7's and Alg. 6's best-effort tasks, which share
 * the GPU by the driver's time slices while no real-time task is ready, share it a job each here.
 *
 * The priority is the GPU's (4.5.3): a task's own, or that of its program's CPU scheduling where it
 * declares none.
 *
 * The dissertation's busy-waiting and self-suspension are no parameter: there, the kernel thread
 * takes a task that sleeps for one that is not ready. Here a job is ready from its request to its
 * end, whether its program spins or sleeps.
 */
#include "daemon/core/policy.h"

/* Above 0: @a's priority is higher than @b's; 0: they are equal. */
static int compare(const struct sched_job *a, const struct sched_job *b) {
	if (a->spec.priority != b->spec.priority) {
		return a->spec.priority > b->spec.priority ? 1 : -1;
	}
	return (int)a->job_class - (int)b->job_class;
}

/* Of equals that are best effort the first in the walk goes first. */
static bool goes_before(const struct sched *s, const struct sched_job *a,
			const struct sched_job *b) {
	int c = compare(a, b);

	(void)s;
	return c > 0 || (c == 0 && a->job_class == SCHED_CLASS_REALTIME && a->release < b->release);
}

/* The highest of the jobs that run on this GPU; NULL: it is idle. */
static const struct sched_job *highest_on(const struct sched *s, size_t gpu) {
	const struct sched_job *highest = NULL;

	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		const struct sched_job *job = sched_job(s, sched_gpu(s, gpu)->slots[i]);

		if (job && (!highest || compare(job, highest) > 0)) {
			highest = job;
		}
	}
	return highest;
}

/* Whether @a is the better one to stop: of lower priority, or equal and stopped sooner. */
static bool yields_before(const struct sched_job *a, const struct sched_job *b) {
	int c = compare(a, b);

	return c != 0		    ? c < 0
	       : a->stop != b->stop ? a->stop > b->stop
				    : a->stop_takes < b->stop_takes;
}

/* Of the busy GPUs that are not @taken, the one whose jobs have the lowest priority; -1: none. */
static int weakest_gpu(const struct sched *s, const bool *taken) {
	const struct sched_job *lowest = NULL;
	int found = -1;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		const struct sched_job *job = taken[k] ? NULL : highest_on(s, k);

		if (job && !sched_gpu(s, k)->drained && (!lowest || yields_before(job, lowest))) {
			lowest = job;
			found = (int)k;
		}
	}
	return found;
}

static bool is_among(sched_job_id id, const sched_job_id *list, size_t n) {
	for (size_t i = 0; i < n; i++) {
		if (list[i] == id) {
			return true;
		}
	}
	return false;
}

/* The first of those that wait and may use this GPU, but for the @n jobs in @served. */
static sched_job_id first_for(const struct sched *s, size_t gpu, const sched_job_id *served,
			      size_t n) {
	sched_job_id first = SCHED_JOB_NONE;
	struct waiting_walk walk;

	for (sched_job_id id = policy_first_of_all(s, &walk); id != SCHED_JOB_NONE;
	     id = waiting_next(&walk)) {
		const struct sched_job *job = sched_job(s, id);

		if (policy_may_use(s, job, gpu) && !is_among(id, served, n) &&
		    (first == SCHED_JOB_NONE || goes_before(s, job, sched_job(s, first)))) {
			first = id;
		}
	}
	return first;
}

/* Whether all that runs on the GPU is lower than @job and has been stopped by now, or can be. */
static bool yields(const struct sched *s, size_t gpu, const struct sched_job *job) {
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		const struct sched_job *other = sched_job(s, sched_gpu(s, gpu)->slots[i]);

		if (other && (compare(other, job) >= 0 ||
			      (!other->stopping && other->stop == SCHED_STOP_NEVER))) {
			return false;
		}
	}
	return true;
}

static void stop_all(struct sched *s, size_t gpu, sched_job_id by, struct sched_actions *actions) {
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		sched_job_id id = sched_gpu(s, gpu)->slots[i];

		if (id != SCHED_JOB_NONE && !sched_job(s, id)->stopping) {
			policy_stop(s, id, by, actions);
		}
	}
}

/* No GPU is idle that a waiting job could have. */
static void stop_lower(struct sched *s, nsec_t now, struct sched_actions *actions) {
	sched_job_id served[SCHED_GPUS_MAX];
	bool taken[SCHED_GPUS_MAX] = {false};
	size_t n = 0;
	int gpu;

	while ((gpu = weakest_gpu(s, taken)) >= 0) {
		sched_job_id id = first_for(s, (size_t)gpu, served, n);

		taken[gpu] = true;
		if (id == SCHED_JOB_NONE) {
			continue;
		}
		served[n++] = id;
		if (yields(s, (size_t)gpu, sched_job(s, id))) {
			stop_all(s, (size_t)gpu, id, actions);
			policy_wait(s, id, EXPLAIN_WAIT_STOPPING, now);
		} else {
			policy_wait(s, id, EXPLAIN_WAIT_PRIORITY, now);
		}
	}
}

static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	policy_start_whole(s, goes_before, now, actions);
	if (sched_any_waits(s, -1)) {
		stop_lower(s, now, actions);
	}
}

const struct sched_policy policy_gpu_kthread = {
	.name = "gpu-kthread",
	.summary = "the whole GPU to the job of the highest priority, which stops lower ones",
	.decide = decide,
	.stops = true,
	.compare = compare,
	.priority = "which job has the GPU",
	.params = SCHED_PARAMS_PRIORITY,
};

const struct sched_policy policy_gpu_ioctl = {
	.name = "gpu-ioctl",
	.summary = "as gpu-kthread, but for each segment that a job marks",
	.decide = decide,
	.stops = true,
	.compare = compare,
	.by_segments = true,
	.priority = "which job has the GPU",
	.params = SCHED_PARAMS_PRIORITY,
};
