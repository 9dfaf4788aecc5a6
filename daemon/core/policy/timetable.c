/*
 * timetable.c: a schedule that was planned before, followed by the clock: see ../timetable.h. Not
 * work-conserving.
 *
 * Jobs that are not in it get the SMs that it leaves alone, in order of arrival; where it leaves
 * none, they wait. Without a table all are such jobs.
 */
#include "daemon/core/timetable.h"
#include "daemon/core/groups.h"
#include "daemon/core/policy.h"

static bool can_start(const struct sched *s, const struct timetable_entry *e,
		      const struct sched_job *job) {
	const struct sched_task *task = sched_task(s, job->task);
	const struct sched_gpu *gpu = sched_gpu(s, e->gpu);

	return task && task->table_task == e->task &&
	       sched_may_run(job->gpu_wanted, job->gpus, e->gpu) && !gpu->drained &&
	       (job->divisible || smset_count(&e->sms) == gpu->n_sms) &&
	       smset_within(&e->sms, &gpu->free) && policy_free_slot(s, e->gpu) >= 0 &&
	       policy_may_share(s, e->gpu, job);
}

/* The first of the jobs that wait for this entry. */
static void serve(struct sched *s, struct timetable_entry *e, uint64_t repetition, nsec_t now,
		  struct sched_actions *actions) {
	struct waiting_walk walk;

	for (sched_job_id id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE;
	     id = waiting_next(&walk)) {
		if (can_start(s, e, sched_job(s, id))) {
			explain_begin(policy_explain(s), sched_job(s, id)->order);
			explain_because(policy_explain(s), EXPLAIN_START_TABLE);
			e->used = repetition;
			policy_grant(s, id, e->gpu, (unsigned)policy_free_slot(s, e->gpu), &e->sms,
				     now, actions);
			return;
		}
	}
}

/* The GPU with most SMs that the table leaves alone and @job may have now, or -1. */
static int find_other(const struct sched *s, const struct timetable *t, const struct sched_job *job,
		      struct smset *ret_sms) {
	unsigned most = 0;
	int found = -1;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		const struct sched_gpu *gpu = sched_gpu(s, k);
		struct smset sms = smset_and(&t->others[k], &gpu->free);
		unsigned n;

		sms = sched_pick_sms(&gpu->model, &sms, smset_count(&sms), false);
		n = smset_count(&sms);
		if (n <= most || !sched_may_run(job->gpu_wanted, job->gpus, k) || gpu->drained ||
		    n < (job->divisible ? policy_least(s, k, job) : gpu->n_sms) ||
		    policy_free_slot(s, k) < 0 || !policy_may_share(s, k, job)) {
			continue;
		}
		most = n;
		*ret_sms = sms;
		found = (int)k;
	}
	return found;
}

static void serve_others(struct sched *s, const struct timetable *t, nsec_t now,
			 struct sched_actions *actions) {
	struct waiting_walk walk;

	for (sched_job_id id = policy_first_waiting(s, &walk); id != SCHED_JOB_NONE;
	     id = waiting_next(&walk)) {
		const struct sched_job *job = sched_job(s, id);
		const struct sched_task *task = sched_task(s, job->task);
		struct smset sms;
		int gpu;

		if (task && task->table_task > 0) {
			policy_wait(s, id, EXPLAIN_WAIT_TABLE, now);
			continue;
		}
		gpu = find_other(s, t, job, &sms);
		if (gpu >= 0) {
			policy_grant(s, id, (size_t)gpu, (unsigned)policy_free_slot(s, (size_t)gpu),
				     &sms, now, actions);
		} else {
			policy_wait(s, id, EXPLAIN_WAIT_TABLE, now);
		}
	}
}

static bool comes_before(const struct sched *s, const struct sched_job *a,
			 const struct sched_job *b) {
	(void)s;
	(void)a;
	(void)b;
	return false; /* the first one of the walk */
}

static void decide(struct sched *s, nsec_t now, struct sched_actions *actions) {
	struct timetable *t = policy_timetable(s);

	if (!t) {
		policy_start_whole(s, comes_before, now, actions);
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		uint64_t repetition = timetable_due(t, &t->list[i], now);

		if (repetition > 0) {
			serve(s, &t->list[i], repetition, now, actions);
		}
	}
	serve_others(s, t, now, actions);
	policy_look_at(s, timetable_next(t, now));
}

/* Each task's jobs go where its first one in the table does. */
static void distribute(struct sched *s) {
	struct timetable *t = policy_timetable(s);
	struct task_table *tasks = policy_tasks(s);

	for (sched_task_id id = 0; id < tasks->n; id++) {
		struct sched_task *task = task_table_get(tasks, id);

		if (task && task->gpu_wanted >= 0 && task->profiles[task->gpu_wanted]) {
			task->home = task->gpu_wanted;
		}
	}
	for (size_t i = t ? t->n : 0; i-- > 0;) {
		for (sched_task_id id = 0; id < tasks->n; id++) {
			struct sched_task *task = task_table_get(tasks, id);

			if (task && task->table_task == t->list[i].task) {
				task->home = (int)t->list[i].gpu;
			}
		}
	}
}

const struct sched_policy policy_timetable_follows = {
	.name = "table",
	.summary = "a schedule that 'sbeetctl plan --table' has made, followed by the clock",
	.plans = true,
	.decide = decide,
	.distribute = distribute,
	.divides = true,
	.places = true,
	.by_table = true,
	.jobs_per_gpu = SCHED_SLOTS_MAX,
};
