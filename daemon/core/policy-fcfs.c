/*
 * policy-fcfs.c: first come, first served; the whole GPU to one job at a time.
 */
#include "daemon/core/policy.h"

static bool is_idle(const struct sched_gpu *gpu) {
	return smset_count(&gpu->free) == gpu->n_sms;
}

/* The first idle GPU that @job may use, or -1. */
static int find_gpu(const struct sched *s, const struct sched_job *job) {
	for (size_t i = 0; i < sched_n_gpus(s); i++) {
		if ((job->gpu_wanted < 0 || job->gpu_wanted == (int)i) &&
		    is_idle(sched_gpu(s, i))) {
			return (int)i;
		}
	}
	return -1;
}

static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	sched_job_id id, next;
	size_t n_idle = 0;

	for (size_t i = 0; i < sched_n_gpus(s); i++) {
		n_idle += is_idle(sched_gpu(s, i));
	}
	for (id = policy_first_waiting(s); id != SCHED_JOB_NONE && n_idle > 0; id = next) {
		int gpu = find_gpu(s, sched_job(s, id));

		next = policy_next_waiting(s, id);
		if (gpu >= 0) {
			const struct sched_gpu *g = sched_gpu(s, (size_t)gpu);
			struct smset sms = g->free;

			if (sched_job(s, id)->divisible) {
				sms = smset_lowest(&sms, g->model.limit);
			}
			policy_grant(s, id, (size_t)gpu, 0, &sms, now, actions);
			n_idle--;
		}
	}
}

const struct sched_policy policy_fcfs = {
	.name = "fcfs",
	.summary = "first come, first served: the whole GPU to one job at a time",
	.decide = decide,
};
