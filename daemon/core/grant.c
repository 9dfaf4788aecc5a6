/*
 * grant.c: gives SMs to a waiting job: policy_grant() and policy_start() in policy.h; stops a
 * running one: policy_stop(). Asserts that the policy keeps the rules.
 */
#include <assert.h>

#include "daemon/core/books.h"
#include "daemon/core/groups.h"
#include "daemon/core/policy.h"

/* See policy_start(). Jobs granted by a policy that knows no limit may hold SMs beyond it; what
 * they hold counts all the same, so enough are left within it. */
static struct smset pick_sms(const struct sched_gpu *gpu, unsigned slot, unsigned n,
			     const struct smset *again) {
	struct smset within = smset_range(0, gpu->model.limit);

	within = smset_and(&within, &gpu->free);
	return gpu->model.last_group > 0 ? groups_pick(&gpu->model, &within, n, again)
					 : sched_pick_sms(&gpu->model, &within, n, slot > 0);
}

/* At most what the job may have, from the slot's end of the set. */
static struct smset cut_sms(const struct sched_gpu *gpu, const struct sched_job *job, unsigned slot,
			    const struct smset *sms) {
	unsigned most = sched_most_sms(&gpu->model, job->spec.max_sms);

	if (!job->divisible || smset_count(sms) <= most) {
		return *sms;
	}
	return sched_pick_sms(&gpu->model, sms, most, slot > 0);
}

void policy_grant(struct sched *s, sched_job_id id, size_t index, unsigned slot,
		  const struct smset *sms, nsec_t now, struct sched_actions *actions) {
	struct sched_gpu *gpu = &s->gpus[index];
	struct sched_job *job = &s->jobs[id];
	struct smset cut;

	assert(index < s->n_gpus && slot < SCHED_SLOTS_MAX && gpu->slots[slot] == SCHED_JOB_NONE);
	assert(job->state == SCHED_JOB_WAITING);
	assert(sched_may_run(job->gpu_wanted, job->gpus, index));
	assert(!smset_empty(sms) && smset_within(sms, &gpu->free));
	assert(job->divisible || smset_count(sms) == gpu->n_sms);
	assert(policy_may_share(s, index, job));
	assert(actions->n < sizeof(actions->list) / sizeof(actions->list[0]));

	cut = cut_sms(gpu, job, slot, sms);
	books_place(s, id, index, slot, &cut, now);
	if (s->explain) {
		books_explain_grant(s, id, now);
	}
	actions->list[actions->n++] = (struct sched_action){SCHED_ACTION_GRANT, id, SCHED_JOB_NONE};
}

void policy_stop(struct sched *s, sched_job_id id, sched_job_id by, struct sched_actions *actions) {
	struct sched_job *job = &s->jobs[id];

	assert(job->state == SCHED_JOB_RUNNING && !job->sms_released);
	assert(!job->stopping && job->stop != SCHED_STOP_NEVER);
	assert(actions->n < sizeof(actions->list) / sizeof(actions->list[0]));
	job->stopping = true;
	actions->list[actions->n++] = (struct sched_action){SCHED_ACTION_STOP, id, by};
}

/* What the last job of the job's task was given, if that was on this GPU. */
static const struct smset *again_sms(const struct sched *s, sched_job_id id, size_t index) {
	const struct sched_task *task = sched_task(s, s->jobs[id].task);

	return task && task->last_gpu == (int)index ? &task->last_sms : NULL;
}

void policy_start(struct sched *s, sched_job_id id, size_t index, unsigned slot, unsigned n_sms,
		  nsec_t now, struct sched_actions *actions) {
	const struct sched_job *job = &s->jobs[id];
	unsigned least = job->divisible ? policy_least(s, index, job) : n_sms;
	struct smset sms;

	assert(n_sms > 0 && n_sms <= policy_offer(s, index, job));
	n_sms = n_sms > least ? n_sms : least;
	sms = n_sms == s->gpus[index].n_sms
		      ? s->gpus[index].free
		      : pick_sms(&s->gpus[index], slot, n_sms, again_sms(s, id, index));
	policy_grant(s, id, index, slot, &sms, now, actions);
}
