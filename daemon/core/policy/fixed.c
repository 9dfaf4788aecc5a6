/*
 * fixed.c: each task's jobs on the GPU and the very SMs that the task names, in order of
 * arrival, as soon as those are free. Nothing is decided: it replays a placement that somebody else
 * has found, such as those of Examples 6 to 9. Jobs of other tasks fill what is left.
 */
#include "daemon/core/policy.h"

static bool can_start(const struct sched *s, const struct sched_task *task,
		      const struct sched_job *job) {
	size_t gpu = (size_t)task->fixed_gpu;

	return smset_within(&task->fixed_sms, &sched_gpu(s, gpu)->free) &&
	       (job->divisible || smset_count(&task->fixed_sms) == sched_gpu(s, gpu)->n_sms) &&
	       policy_free_slot(s, gpu) >= 0 && policy_may_share(s, gpu, job);
}

static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	bool wanted[SCHED_GPUS_MAX] = {false};
	struct waiting_walk walk;
	sched_job_id id;

	for (id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE; id = waiting_next(&walk)) {
		const struct sched_job *job = sched_job(s, id);
		const struct sched_task *task = sched_task(s, job->task);

		if (!task || task->fixed_gpu < 0 ||
		    !sched_may_run(job->gpu_wanted, job->gpus, (size_t)task->fixed_gpu)) {
			continue;
		}
		if (can_start(s, task, job)) {
			struct smset sms = task->fixed_sms;
			size_t gpu = (size_t)task->fixed_gpu;

			policy_grant(s, id, gpu, (unsigned)policy_free_slot(s, gpu), &sms, now,
				     actions);
		} else {
			wanted[task->fixed_gpu] = true;
		}
	}
	policy_fill(s, wanted, now, actions);
}

const struct sched_policy policy_fixed = {
	.name = "fixed",
	.summary = "each task on the GPU and the SMs that it names",
	.decide = decide,
	.simulated = true,
};
