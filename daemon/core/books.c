/*
 * books.c: the state of the scheduler: GPUs, jobs, who waits and who holds what. See books.h, and
 * policy.h for what policies may see of it. Knows no policy.
 */
#include "daemon/core/books.h"

#include "daemon/core/groups.h"
#include "daemon/core/policy.h"

void books_set_free(struct sched_gpu *gpu, struct smset free) {
	struct smset within = smset_range(0, gpu->model.limit);

	within = smset_and(&within, &free);
	gpu->free = free;
	gpu->row = groups_longest_row(&gpu->model, &within);
}

const char *sched_stop_name(enum sched_stop stop) {
	static const char *const names[_SCHED_STOP_N] = {
		[SCHED_STOP_NEVER] = "never",	[SCHED_STOP_LAUNCHES] = "launches",
		[SCHED_STOP_LEVEL] = "level",	[SCHED_STOP_PREEMPT] = "preempt",
		[SCHED_STOP_KERNEL] = "kernel",
	};

	return names[stop];
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

void policy_look_at(struct sched *s, nsec_t time) {
	if (s->look_at == 0 || time < s->look_at) {
		s->look_at = time;
	}
}

/* The first one that the policy decides about, as waiting_next() from then on. */
static sched_job_id first_for_policy(const struct sched *s,
				     const bool open[static SCHED_GPUS_MAX],
				     struct waiting_walk *ret_walk) {
	sched_job_id id = waiting_first(&s->waiting, s->jobs, open, ret_walk);

	ret_walk->policy = true;
	return id != SCHED_JOB_NONE && s->jobs[id].allocation > 0 ? waiting_next(ret_walk) : id;
}

sched_job_id policy_first_waiting(const struct sched *s, struct waiting_walk *ret_walk) {
	bool open[SCHED_GPUS_MAX] = {false};

	for (size_t i = 0; i < s->n_gpus; i++) {
		open[i] = !s->gpus[i].drained && !smset_empty(&s->gpus[i].free);
	}
	return first_for_policy(s, open, ret_walk);
}

sched_job_id policy_first_of_all(const struct sched *s, struct waiting_walk *ret_walk) {
	bool open[SCHED_GPUS_MAX] = {false};

	for (size_t i = 0; i < s->n_gpus; i++) {
		open[i] = !s->gpus[i].drained;
	}
	return first_for_policy(s, open, ret_walk);
}

bool policy_goes_before(const struct sched *s, const struct sched_job *a,
			const struct sched_job *b) {
	nsec_t x = a->deadline ? a->deadline : UINT64_MAX;
	nsec_t y = b->deadline ? b->deadline : UINT64_MAX;

	if (s->params.queue == SCHED_QUEUE_PRIORITY && a->spec.priority != b->spec.priority) {
		return a->spec.priority > b->spec.priority;
	}
	if (s->params.queue != SCHED_QUEUE_FCFS && x != y) {
		return x < y;
	}
	return a->order < b->order;
}

bool policy_may_use(const struct sched *s, const struct sched_job *job, size_t gpu) {
	const struct sched_task *task = sched_task(s, job->task);
	bool planned = job->gpu_wanted < 0 && task && task->n_gpus > 0;

	return sched_may_run(job->gpu_wanted, job->gpus, gpu) && (!planned || task->profiles[gpu]);
}

bool policy_may_share(const struct sched *s, size_t index, const struct sched_job *job) {
	const struct sched_gpu *gpu = &s->gpus[index];

	if (gpu->drained) {
		return false;
	}
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		sched_job_id running = gpu->slots[i];

		if (running != SCHED_JOB_NONE && s->jobs[running].owner != job->owner &&
		    !sched_may_be_beside(gpu->sharing, s->jobs[running].apart | job->apart,
					 index)) {
			return false;
		}
	}
	return true;
}

struct timetable *policy_timetable(struct sched *s) {
	return s->timetable;
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
		    : sched_least_sms(model, job->spec.min_sms, job->spec.max_sms);
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

/* What a grant means for the job's task, and when it will be over: known of declared tasks only. */
static void predict(struct sched *s, struct sched_job *job) {
	struct sched_task *task = task_table_get(&s->tasks, job->task);
	struct task_times times;

	if (!task) {
		return;
	}
	if (!job->continued && task->profiles[job->gpu] &&
	    smset_count(&job->sms) >= task->profiles[job->gpu]->least) {
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
