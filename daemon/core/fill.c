/*
 * fill.c: what becomes of the jobs about which nothing is known: see policy_fill() in policy.h.
 */
#include "daemon/core/policy.h"
#include "daemon/core/timeline.h"

/* A job of no task runs on the GPU: nobody knows for how long. */
static bool runs_unknown(const struct sched *s, const struct sched_gpu *gpu) {
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		const struct sched_job *job = sched_job(s, gpu->slots[i]);

		if (job &&
		    (job->task == SCHED_TASK_NONE || sched_task(s, job->task)->n_gpus == 0)) {
			return true;
		}
	}
	return false;
}

/* How many SMs of the GPU the job may have now; 0: none. */
static unsigned share_of(struct sched *s, size_t index, const struct sched_job *job) {
	const struct sched_gpu *gpu = sched_gpu(s, index);
	unsigned room = policy_offer(s, index, job);
	unsigned half = sched_whole_steps(&gpu->model, (gpu->model.limit + 1) / 2), least;

	if (policy_free_slot(s, index) < 0 || !policy_may_share(s, index, job)) {
		return 0;
	}
	if (!job->divisible || policy_tasks(s)->n_used == 0 || half == 0) {
		return room;
	}
	if (runs_unknown(s, gpu)) {
		return 0;
	}
	least = policy_least(s, index, job);
	half = half > least ? half : least;
	return room < half ? room : half;
}

/* The GPU that gives the job most. */
static bool find_place(struct sched *s, const struct sched_job *job, const bool *wanted,
		       struct timeline_place *ret) {
	ret->n_sms = 0;
	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		unsigned n;

		if (wanted[k] || !sched_may_run(job->gpu_wanted, job->gpus, k)) {
			continue;
		}
		n = share_of(s, k, job);
		if (n > ret->n_sms) {
			*ret = (struct timeline_place){.gpu = (unsigned)k,
						       .slot = (unsigned)policy_free_slot(s, k),
						       .n_sms = n};
		}
	}
	return ret->n_sms > 0;
}

static bool any_open(const struct sched *s, const bool *wanted) {
	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		if (!wanted[k] && policy_free_slot(s, k) >= 0 && policy_room(s, k) > 0) {
			return true;
		}
	}
	return false;
}

void policy_fill(struct sched *s, const bool *wanted, nsec_t now, struct sched_actions *actions) {
	struct waiting_walk walk;
	sched_job_id id;

	for (id = policy_first_waiting(s, &walk);
	     id != SCHED_JOB_NONE && (any_open(s, wanted) || policy_explain(s));
	     id = waiting_next(&walk)) {
		const struct sched_job *job = sched_job(s, id);
		const struct sched_task *task = sched_task(s, job->task);
		struct timeline_place place;

		if (task && task->n_gpus > 0) {
			continue;
		}
		if (find_place(s, job, wanted, &place)) {
			explain_begin(policy_explain(s), job->order);
			explain_because(policy_explain(s), EXPLAIN_START_FILLER);
			policy_try_place(s, id, place.gpu, place.n_sms, now);
			policy_start(s, id, place.gpu, place.slot, place.n_sms, now, actions);
		} else if (policy_explain(s) && policy_obstacle(s, job) == EXPLAIN_WAIT_TURN) {
			policy_wait(s, id, EXPLAIN_WAIT_DEADLINES, now);
		}
	}
}

void policy_wanted(struct sched *s, bool ret_wanted[static SCHED_GPUS_MAX]) {
	struct waiting_walk walk;

	for (size_t k = 0; k < SCHED_GPUS_MAX; k++) {
		ret_wanted[k] = false;
	}
	for (sched_job_id id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE;
	     id = waiting_next(&walk)) {
		const struct sched_job *job = sched_job(s, id);
		const struct sched_task *task = sched_task(s, job->task);

		for (size_t k = 0; task && k < sched_n_gpus(s); k++) {
			ret_wanted[k] |=
				task->profiles[k] && sched_may_run(job->gpu_wanted, job->gpus, k);
		}
	}
}
