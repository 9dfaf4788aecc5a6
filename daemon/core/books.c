/*
 * books.c: the state of the scheduler: GPUs, jobs, who waits and who holds what. See books.h, and
 * policy.h for what policies may see and do of it.
 *
 * Knows no policy; asserts that all of them keep the rules.
 */
#include "daemon/core/books.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/explain.h"
#include "daemon/core/groups.h"
#include "daemon/core/policy.h"

void books_set_free(struct sched_gpu *gpu, struct smset free) {
	struct smset within = smset_range(0, gpu->model.limit);

	within = smset_and(&within, &free);
	gpu->free = free;
	gpu->row = groups_longest_row(&gpu->model, &within);
}

size_t sched_n_gpus(const struct sched *s) {
	return s->n_gpus;
}

const struct sched_gpu *sched_gpu(const struct sched *s, size_t index) {
	return index < s->n_gpus ? &s->gpus[index] : NULL;
}

const struct sched_policy *sched_get_policy(const struct sched *s) {
	return s->policy;
}

const struct sched_params *sched_get_params(const struct sched *s) {
	return &s->params;
}

const struct sched_task *sched_task(const struct sched *s, sched_task_id id) {
	return task_table_get(&s->tasks, id);
}

const struct sched_job *sched_job(const struct sched *s, sched_job_id id) {
	return id < s->n_touched && s->jobs[id].state != SCHED_JOB_FREE ? &s->jobs[id] : NULL;
}

bool sched_any_waits(const struct sched *s, int gpu) {
	return waiting_any(&s->waiting, gpu);
}

struct explain *policy_explain(const struct sched *s) {
	return s->explain;
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

void policy_look_at(struct sched *s, nsec_t time) {
	if (s->look_at == 0 || time < s->look_at) {
		s->look_at = time;
	}
}

sched_job_id policy_first_waiting(const struct sched *s, struct waiting_walk *ret_walk) {
	bool open[SCHED_GPUS_MAX] = {false};

	for (size_t i = 0; i < s->n_gpus; i++) {
		open[i] = !s->gpus[i].drained && !smset_empty(&s->gpus[i].free);
	}
	return waiting_first(&s->waiting, s->jobs, open, ret_walk);
}

bool policy_goes_before(const struct sched *s, const struct sched_job *a,
			const struct sched_job *b) {
	nsec_t x = a->deadline ? a->deadline : UINT64_MAX;
	nsec_t y = b->deadline ? b->deadline : UINT64_MAX;

	if (s->params.queue == SCHED_QUEUE_PRIORITY && a->priority != b->priority) {
		return a->priority > b->priority;
	}
	if (s->params.queue != SCHED_QUEUE_FCFS && x != y) {
		return x < y;
	}
	return a->order < b->order;
}

bool policy_may_share(const struct sched *s, size_t index, const struct sched_job *job) {
	const struct sched_gpu *gpu = &s->gpus[index];

	if (gpu->drained) {
		return false;
	}
	if (gpu->sharing == SCHED_SHARING_MPS) {
		return true;
	}
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		sched_job_id running = gpu->slots[i];

		if (running != SCHED_JOB_NONE && s->jobs[running].owner != job->owner) {
			return false;
		}
	}
	return true;
}

struct task_table *policy_tasks(struct sched *s) {
	return &s->tasks;
}

unsigned policy_room(const struct sched *s, size_t index) {
	const struct sched_gpu *gpu = &s->gpus[index];
	unsigned taken = gpu->n_sms - smset_count(&gpu->free), left;

	if (taken >= gpu->model.limit) {
		return 0;
	}
	left = gpu->model.limit - taken;
	return sched_whole_steps(&gpu->model, left < gpu->row ? left : gpu->row);
}

unsigned policy_least(const struct sched *s, size_t index, const struct sched_job *job) {
	const struct sched_gpu_model *model = &s->gpus[index].model;
	const struct sched_task *task = sched_task(s, job->task);

	return task ? task_least_sms(task, model, index)
		    : sched_least_sms(model, job->min_sms, job->max_sms);
}

unsigned policy_offer(const struct sched *s, size_t index, const struct sched_job *job) {
	const struct sched_gpu *gpu = &s->gpus[index];

	if (gpu->drained) {
		return 0;
	}
	if (job->divisible) {
		unsigned room = policy_room(s, index);

		return room >= policy_least(s, index, job) ? room : 0;
	}
	return smset_count(&gpu->free) == gpu->n_sms ? gpu->n_sms : 0;
}

int policy_free_slot(const struct sched *s, size_t index) {
	unsigned busy = 0;
	int found = -1;

	for (int i = SCHED_SLOTS_MAX - 1; i >= 0; i--) {
		if (s->gpus[index].slots[i] == SCHED_JOB_NONE) {
			found = i;
		} else {
			busy++;
		}
	}
	return busy < sched_slots(&s->params, &s->gpus[index].model) ? found : -1;
}

/* See policy_start(). Jobs granted by a policy that knows no limit may hold SMs beyond it; what
 * they hold counts all the same, so enough are left within it. */
static struct smset pick_sms(const struct sched_gpu *gpu, unsigned slot, unsigned n,
			     const struct smset *again) {
	struct smset within = smset_range(0, gpu->model.limit);

	within = smset_and(&within, &gpu->free);
	return gpu->model.last_group > 0 ? groups_pick(&gpu->model, &within, n, again)
					 : sched_pick_sms(&gpu->model, &within, n, slot > 0);
}

/* What a grant means for the job's task, and when it will be over: known of declared tasks only. */
static void predict(struct sched *s, struct sched_job *job) {
	struct sched_task *task = task_table_get(&s->tasks, job->task);
	struct task_times times;

	if (!task) {
		return;
	}
	if (task->profiles[job->gpu] && smset_count(&job->sms) >= task->profiles[job->gpu]->least) {
		times = task_times(task, &s->params, (unsigned)job->gpu, smset_count(&job->sms),
				   job->granted);
		job->sms_end = times.sms_end;
		job->finish = times.finish;
		job->profiled = times.finish - job->granted - task->overhead;
	}
	task->last_gpu = job->gpu;
	task->last_start = job->granted;
	task->last_sms = job->sms;
}

/* It has been granted just now. */
static void explain_start(struct sched *s, sched_job_id id, nsec_t now) {
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

static void count_alone(struct sched_gpu *gpu, uint64_t owner) {
	if (gpu->last_owner != owner) {
		gpu->last_owner = owner;
		gpu->n_alone = 0;
	}
	gpu->n_alone += gpu->n_alone < SCHED_ALONE;
}

void books_place(struct sched *s, sched_job_id id, size_t index, unsigned slot,
		 const struct smset *sms, nsec_t now) {
	struct sched_gpu *gpu = &s->gpus[index];
	struct sched_job *job = &s->jobs[id];

	waiting_remove(&s->waiting, s->jobs, id);
	waiting_granted(&s->waiting, job);
	job->state = SCHED_JOB_RUNNING;
	job->gpu = (int)index;
	job->slot = slot;
	job->sms = *sms;
	job->granted = now;
	gpu->slots[slot] = id;
	books_set_free(gpu, smset_minus(&gpu->free, sms));
	count_alone(gpu, job->owner);
	predict(s, job);
}

/* At most what the job may have, from the slot's end of the set. */
static struct smset cut_sms(const struct sched_gpu *gpu, const struct sched_job *job, unsigned slot,
			    const struct smset *sms) {
	unsigned most = sched_most_sms(&gpu->model, job->max_sms);

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
	assert(job->gpu_wanted < 0 || (size_t)job->gpu_wanted == index);
	assert(!smset_empty(sms) && smset_within(sms, &gpu->free));
	assert(job->divisible || smset_count(sms) == gpu->n_sms);
	assert(policy_may_share(s, index, job));
	assert(actions->n < sizeof(actions->list) / sizeof(actions->list[0]));

	cut = cut_sms(gpu, job, slot, sms);
	books_place(s, id, index, slot, &cut, now);
	if (s->explain) {
		explain_start(s, id, now);
	}
	actions->list[actions->n++] = (struct sched_action){SCHED_ACTION_GRANT, id};
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
