/* overdue.c: see overdue.h. */
#include "daemon/core/overdue.h"

static bool may_use(const struct sched *s, const struct sched_job *job, size_t gpu) {
	const struct sched_task *task = sched_task(s, job->task);

	if (!task->profiles[gpu] || sched_gpu(s, gpu)->drained) {
		return false;
	}
	if (sched_get_policy(s)->overdue == SCHED_OVERDUE_AT_HOME) {
		return task_home(task, job->gpu_wanted, job->gpus) == gpu;
	}
	return sched_may_run(job->gpu_wanted, job->gpus, gpu);
}

/* The GPU that would be through with the job first if all were idle; -1: there is none. */
static int fastest_gpu(const struct sched *s, const struct sched_job *job) {
	const struct sched_task *task = sched_task(s, job->task);
	int best = -1;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		if (may_use(s, job, k) && (best < 0 || task->fastest[k] < task->fastest[best])) {
			best = (int)k;
		}
	}
	return best;
}

/* Until when the task may be passed over; the end of time if for ever. */
static nsec_t patience_end(const struct sched *s, const struct sched_job *job, int fastest) {
	const struct sched_task *task = sched_task(s, job->task);
	nsec_t since = job->release > task->last_start ? job->release : task->last_start;
	nsec_t unit = task->fastest[fastest], end;

	unit = task->period > unit ? task->period : unit;
	unit = task->deadline > unit ? task->deadline : unit;
	if (__builtin_mul_overflow(unit, sched_get_params(s)->max_wait, &end) ||
	    __builtin_add_overflow(end, since, &end)) {
		return UINT64_MAX;
	}
	return end;
}

/* The job that is overdue for longest, and the GPU to be kept for it; SCHED_JOB_NONE: none. Of one
 * task's jobs it is the first, as they wait in order of arrival. */
static sched_job_id find_longest(const struct sched *s, nsec_t now, int *ret_gpu) {
	sched_job_id longest = SCHED_JOB_NONE;
	nsec_t least = UINT64_MAX;
	struct waiting_walk walk;

	for (sched_job_id id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE;
	     id = waiting_next(&walk)) {
		const struct sched_job *job = sched_job(s, id);
		const struct sched_task *task = sched_task(s, job->task);
		int gpu = task && task->n_gpus > 0 ? fastest_gpu(s, job) : -1;
		nsec_t end = gpu >= 0 ? patience_end(s, job, gpu) : UINT64_MAX;

		if (end <= now && end < least) {
			longest = id;
			least = end;
			*ret_gpu = gpu;
		}
	}
	return longest;
}

/* The fastest GPU on which the job could have its m_opt SMs at once, or all if it takes no less;
 * -1: there is none. @ret_n: how many. */
static int find_open(const struct sched *s, const struct sched_job *job, unsigned *ret_n) {
	const struct sched_task *task = sched_task(s, job->task);
	int best = -1;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		unsigned offer = policy_offer(s, k, job);
		unsigned n = job->divisible ? task->m_opt[k] : sched_gpu(s, k)->n_sms;

		if (may_use(s, job, k) && offer >= n && policy_free_slot(s, k) >= 0 &&
		    policy_may_share(s, k, job) &&
		    (best < 0 || task->fastest[k] < task->fastest[best])) {
			best = (int)k;
			*ret_n = n;
		}
	}
	return best;
}

int overdue_start(struct sched *s, nsec_t now, struct sched_actions *actions) {
	if (sched_get_policy(s)->overdue == SCHED_OVERDUE_WAITS || !sched_get_params(s)->max_wait) {
		return -1;
	}
	for (;;) {
		unsigned n_sms = 0;
		int keep = -1, open;
		sched_job_id id = find_longest(s, now, &keep);

		if (id == SCHED_JOB_NONE) {
			return -1;
		}
		open = find_open(s, sched_job(s, id), &n_sms);
		if (open < 0) {
			return keep;
		}
		explain_begin(policy_explain(s), sched_job(s, id)->order);
		explain_because(policy_explain(s), EXPLAIN_START_OVERDUE);
		policy_try_place(s, id, (size_t)open, n_sms, now);
		policy_start(s, id, (size_t)open, (unsigned)policy_free_slot(s, (size_t)open),
			     n_sms, now, actions);
	}
}
