/*
 * explain-job.c: explains one job to whoever asked: why it waits, what a place would lead to, what
 * it was granted. See policy.h and books.h.
 */
#include <string.h>

#include "daemon/core/books.h"
#include "daemon/core/policy.h"
#include "daemon/core/timeline.h"

enum explain_reason policy_obstacle(const struct sched *s, const struct sched_job *job) {
	const struct sched_task *task = sched_task(s, job->task);
	enum explain_reason reason = EXPLAIN_WAIT_DRAINED;

	for (size_t k = 0; k < sched_n_gpus(s); k++) {
		if (!sched_may_run(job->gpu_wanted, job->gpus, k) ||
		    (task && task->n_gpus > 0 && !task->profiles[k]) || sched_gpu(s, k)->drained) {
			continue;
		}
		if (!policy_may_share(s, k, job)) {
			reason = reason == EXPLAIN_WAIT_DRAINED ? EXPLAIN_WAIT_OWNER : reason;
			continue;
		}
		if (policy_free_slot(s, k) >= 0 && policy_offer(s, k, job) > 0) {
			return EXPLAIN_WAIT_TURN;
		}
		reason = EXPLAIN_WAIT_FULL;
	}
	return reason;
}

struct explain_try policy_predict_place(const struct sched *s, sched_job_id id, size_t gpu,
					unsigned n_sms, nsec_t now) {
	const struct sched_job *job = sched_job(s, id);
	const struct sched_task *task = sched_task(s, job->task);
	struct timeline_place place = {.gpu = (unsigned)gpu, .n_sms = n_sms, .start = now};
	struct explain_try try = {.gpu = (uint8_t)gpu,
				  .n_sms = (uint16_t)n_sms,
				  .start = now,
				  .feasible = !job->deadline || now <= job->deadline};
	struct timeline_job predicted = {.task = task,
					 .gpu_wanted = job->gpu_wanted,
					 .gpus = job->gpus,
					 .divisible = job->divisible,
					 .owner = job->owner,
					 .release = now,
					 .deadline = job->deadline};
	struct timeline t;

	if (!task || !task->profiles[gpu]) {
		return try;
	}
	timeline_init(&t, s, now);
	if (job->gpu >= 0) { /* it holds its slot already: what is predicted is its own */
		t.gpus[gpu].slots[job->slot] = (struct timeline_slot){0};
		place.slot = job->slot;
	}
	timeline_predict(&t, sched_get_params(s), &predicted, &place);
	try.finish = place.finish;
	try.energy_pj = place.energy_pj;
	try.feasible = !job->deadline || place.finish <= job->deadline;
	return try;
}

void policy_try_place(struct sched *s, sched_job_id id, size_t gpu, unsigned n_sms, nsec_t now) {
	if (policy_explain(s)) {
		struct explain_try try = policy_predict_place(s, id, gpu, n_sms, now);

		explain_try(policy_explain(s), &try);
	}
}

/* The draft of this decision about the job, or just the outcome, into the explanations. */
static void explain_job(struct sched *s, struct sched_job *job, enum explain_reason reason,
			int64_t energy_pj, nsec_t now) {
	struct explain_entry entry = {
		.order = job->order,
		.owner = job->owner,
		.tag = job->tag,
		.release = job->release,
		.requested = job->requested,
		.deadline = job->deadline,
		.policy = s->policy->name,
		.last = now,
		.reason = reason,
		.gpu = job->gpu,
		.sms = job->sms,
		.finish = job->finish,
		.energy_pj = energy_pj,
	};

	if (job->label) {
		strncpy(entry.label, job->label, sizeof(entry.label) - 1); /* zeros follow */
	}
	job->explained = explain_commit(s->explain, &entry, job->explained);
	job->explained_in = s->n_decisions;
}

void policy_wait(struct sched *s, sched_job_id id, enum explain_reason reason, nsec_t now) {
	struct sched_job *job = &s->jobs[id];

	if (!s->explain || job->explained_in == s->n_decisions ||
	    s->n_explained == EXPLAIN_WAITING_MAX) {
		return;
	}
	s->n_explained++;
	if (explain_again(s->explain, job->explained, job->order, s->policy->name, reason, now)) {
		job->explained_in = s->n_decisions;
		return;
	}
	explain_choose(s->explain, true, 0, 0);
	explain_job(s, job, reason, 0, now);
}

void books_explain_grant(struct sched *s, sched_job_id id, nsec_t now) {
	struct sched_job *job = &s->jobs[id];
	enum explain_reason reason = explain_drafted(s->explain, job->order);
	unsigned n_sms = smset_count(&job->sms);
	struct explain_try own = policy_predict_place(s, id, (size_t)job->gpu, n_sms, now);

	if (reason == EXPLAIN_NONE) {
		explain_begin(s->explain, job->order);
		explain_try(s->explain, &own);
		reason = EXPLAIN_START_NEXT;
	}
	explain_choose(s->explain, false, (unsigned)job->gpu, n_sms);
	explain_job(s, job, reason, own.energy_pj, now);
}
