/*
 * sched.c: what happens to the scheduler: GPUs, tasks and jobs come and go, and decisions are made.
 * See sched.h.
 *
 * Knows no policy; the books are books.c's.
 */
#include "daemon/core/sched.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/allocated.h"
#include "daemon/core/books.h"
#include "daemon/core/explain.h"
#include "daemon/core/overdue.h"
#include "daemon/core/partition.h"
#include "daemon/core/policy.h"

/* A policy may have a default of its own. */
static void settle_params(struct sched *s) {
	s->params = s->given;
	if (s->params.jobs_per_gpu == 0) {
		s->params.jobs_per_gpu = s->policy->jobs_per_gpu;
	}
}

int sched_new(struct sched **ret, const struct sched_policy *policy, size_t max_jobs) {
	struct sched *s;

	if (!policy || max_jobs == 0 || max_jobs >= SCHED_JOB_NONE) {
		return -EINVAL;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		return -ENOMEM;
	}
	s->jobs = calloc(max_jobs, sizeof(*s->jobs));
	if (!s->jobs) {
		free(s);
		return -ENOMEM;
	}
	s->policy = policy;
	sched_params_default(&s->given);
	settle_params(s);
	s->max_jobs = max_jobs;
	s->unused = SCHED_JOB_NONE;
	waiting_init(&s->waiting);
	*ret = s;
	return 0;
}

struct sched *sched_free(struct sched *s) {
	if (s) {
		task_table_deinit(&s->tasks);
		explain_free(s->explain);
		free(s->jobs);
		free(s);
	}
	return NULL;
}

int sched_add_gpu(struct sched *s, unsigned n_sms, enum sched_sharing sharing) {
	struct sched_gpu *gpu;

	if (n_sms == 0 || n_sms > PROTO_SMS_MAX || (unsigned)sharing >= _SCHED_SHARING_N) {
		return -EINVAL;
	}
	if (s->n_gpus == SCHED_GPUS_MAX) {
		return -ENOSPC;
	}
	gpu = &s->gpus[s->n_gpus];
	gpu->n_sms = n_sms;
	gpu->model = (struct sched_gpu_model){.power.n_sms = n_sms, .limit = n_sms, .step = 1};
	gpu->sharing = sharing;
	books_set_free(gpu, smset_range(0, n_sms));
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		gpu->slots[i] = SCHED_JOB_NONE;
	}
	return (int)s->n_gpus++;
}

void sched_set_policy(struct sched *s, const struct sched_policy *policy) {
	s->policy = policy;
	settle_params(s);
}

int sched_set_params(struct sched *s, const struct sched_params *params) {
	if ((unsigned)params->reading >= _SCHED_READING_N ||
	    (unsigned)params->queue >= _SCHED_QUEUE_N ||
	    (unsigned)params->window >= _SCHED_WINDOW_N ||
	    (unsigned)params->line_16 >= _SCHED_LINE_16_N ||
	    (unsigned)params->packing >= _SCHED_PACKING_N ||
	    (unsigned)params->power >= _SCHED_POWER_N || (unsigned)params->late >= _SCHED_LATE_N ||
	    params->jobs_per_gpu > SCHED_SLOTS_MAX || params->reference_sms > PROTO_SMS_MAX ||
	    params->migration_cost > PROFILE_TIME_MAX || params->epsilon > PROFILE_TIME_MAX ||
	    params->lookahead_depth > TASK_COMING_MAX) {
		return -EINVAL;
	}
	s->given = *params;
	settle_params(s);
	task_table_derive(&s->tasks, &s->params, s->gpus, s->n_gpus);
	return 0;
}

void sched_set_timetable(struct sched *s, struct timetable *t) {
	s->timetable = t;
}

int sched_set_gpu_model(struct sched *s, size_t index, const struct sched_gpu_model *model) {
	if (index >= s->n_gpus || model->power.n_sms != s->gpus[index].n_sms || model->limit < 1 ||
	    model->limit > s->gpus[index].n_sms || model->step < 1 ||
	    (model->last_group > 0 &&
	     (model->last_group < model->step || model->last_group > s->gpus[index].n_sms ||
	      (s->gpus[index].n_sms - model->last_group) % model->step > 0))) {
		return -EINVAL;
	}
	s->gpus[index].model = *model;
	task_table_derive(&s->tasks, &s->params, s->gpus, s->n_gpus);
	books_set_free(&s->gpus[index], s->gpus[index].free);
	return 0;
}

void sched_set_sharing(struct sched *s, size_t gpu, enum sched_sharing sharing) {
	s->gpus[gpu].sharing = sharing;
}

void sched_set_apart(struct sched *s, sched_job_id id, uint32_t apart, bool divisible) {
	struct sched_job *job = &s->jobs[id];
	struct sched_task *task = task_table_get(&s->tasks, job->task);

	assert(sched_job(s, id));
	job->apart = apart;
	if (job->state == SCHED_JOB_WAITING) {
		job->divisible &= divisible;
	}
	if (task) {
		task->apart = apart;
		task->divisible = divisible;
	}
}

void sched_set_allocation(struct sched *s, unsigned id, size_t gpu, const struct smset *sms) {
	assert(id >= 1 && id <= SCHED_ALLOCATIONS_MAX && gpu < SCHED_GPUS_MAX);
	s->allocated[gpu][id] = *sms;
}

int sched_add_task(struct sched *s, const struct sched_task *task, sched_task_id *ret_id) {
	return task_table_add(&s->tasks, task, &s->params, s->gpus, s->n_gpus, ret_id);
}

void sched_remove_task(struct sched *s, sched_task_id id) {
	assert(sched_task(s, id));
	for (size_t i = 0; i < s->n_touched; i++) {
		if (s->jobs[i].task == id) {
			s->jobs[i].task = SCHED_TASK_NONE;
		}
	}
	task_table_remove(&s->tasks, id);
}

void sched_distribute(struct sched *s) {
	for (sched_task_id id = 0; id < s->tasks.n; id++) {
		s->tasks.list[id].home = -1;
		s->tasks.list[id].n_sms = 0;
	}
	if (s->policy->distribute) {
		s->policy->distribute(s);
	}
}

int sched_place(struct sched *s, sched_task_id id) {
	struct sched_task *task = task_table_get(&s->tasks, id);

	if (!s->policy->places || task->n_gpus == 0 || task->gpu_wanted >= 0) {
		return -1;
	}
	sched_distribute(s);
	if (task->home < 0) {
		partition_one(s, task);
	}
	task->gpu_wanted = task->home;
	return task->home;
}

static sched_job_id take_unused(struct sched *s) {
	sched_job_id id = s->unused;

	if (id != SCHED_JOB_NONE) {
		s->unused = s->jobs[id].next;
		return id;
	}
	return s->n_touched < s->max_jobs ? (sched_job_id)s->n_touched++ : SCHED_JOB_NONE;
}

static bool runs_anything(const struct sched_gpu *gpu) {
	for (size_t i = 0; i < SCHED_SLOTS_MAX; i++) {
		if (gpu->slots[i] != SCHED_JOB_NONE) {
			return true;
		}
	}
	return false;
}

/* One more job wants a GPU on which others run or for which they wait: nobody is alone there. */
static void end_alone(struct sched *s, const struct sched_job *job) {
	for (size_t k = 0; k < s->n_gpus; k++) {
		if (sched_may_run(job->gpu_wanted, job->gpus, k) &&
		    (sched_any_waits(s, (int)k) || runs_anything(&s->gpus[k]))) {
			s->gpus[k].n_alone = 0;
		}
	}
}

/* Whether one of the GPUs that the job may use exists, and its task, if it is planned with, has a
 * profile there. */
static bool can_run(const struct sched *s, const struct sched_job *job) {
	const struct sched_task *task = sched_task(s, job->task);

	if (job->gpu_wanted >= 0) {
		return (size_t)job->gpu_wanted < s->n_gpus;
	}
	for (size_t k = 0; job->gpus > 0 && k < s->n_gpus; k++) {
		if ((job->gpus >> k & 1) && (!task || task->n_gpus == 0 || task->profiles[k])) {
			return true;
		}
	}
	return job->gpus == 0;
}

int sched_arrive(struct sched *s, const struct sched_job *job, sched_job_id *ret_id) {
	struct sched_job *j;
	sched_job_id id;

	if (!can_run(s, job) || (job->task != SCHED_TASK_NONE && !sched_task(s, job->task))) {
		return -EINVAL;
	}
	id = take_unused(s);
	if (id == SCHED_JOB_NONE) {
		return -ENOSPC;
	}
	j = &s->jobs[id];
	*j = (struct sched_job){
		.state = SCHED_JOB_WAITING,
		.task = job->task,
		.owner = job->owner,
		.order = s->next_order++,
		.allocation = job->allocation,
		.gpu_wanted = job->gpu_wanted < 0 ? -1 : job->gpu_wanted,
		.gpus = job->gpus,
		.divisible = job->divisible,
		.apart = job->apart,
		.job_class = job->job_class,
		.stop = job->stop,
		.continued = job->continued,
		.spec = job->spec,
		.release = job->release,
		.deadline = job->deadline,
		.requested = job->requested,
		.tag = job->tag,
		.label = job->label,
		.gpu = -1,
	};
	if (job->task != SCHED_TASK_NONE) {
		struct sched_task *task = &s->tasks.list[job->task];

		/* What was planned with; the caller's may be of a change that waits for later. */
		j->spec.min_sms = task->spec.min_sms;
		j->spec.max_sms = task->spec.max_sms;
		task->gpu_wanted = j->gpu_wanted;
		task->gpus = j->gpus ? j->gpus : task->gpus;
		task->divisible = j->divisible;
		task->apart = j->apart;
		task->owner = j->owner;
		task_table_released(&s->tasks, job->task, job->release);
	}
	end_alone(s, j);
	waiting_add(&s->waiting, s->jobs, id);
	*ret_id = id;
	return 0;
}

void sched_release_sms(struct sched *s, sched_job_id id) {
	struct sched_job *job = &s->jobs[id];
	struct sched_gpu *gpu;

	assert(sched_job(s, id) && job->state == SCHED_JOB_RUNNING && !job->sms_released);
	gpu = &s->gpus[job->gpu];
	assert(gpu->slots[job->slot] == id);
	gpu->slots[job->slot] = SCHED_JOB_NONE;
	books_set_free(gpu, smset_or(&gpu->free, &job->sms));
	job->sms_released = true;
}

void sched_stopped(struct sched *s, sched_job_id id) {
	struct sched_job *job = &s->jobs[id];

	assert(job->stopping && !job->sms_released);
	sched_release_sms(s, id);
	job->state = SCHED_JOB_WAITING;
	job->stopping = job->sms_released = job->overrun = false;
	job->continued = true;
	job->profiled = job->sms_end = job->finish = 0;
	job->gpu_wanted = job->gpu;
	job->gpu = -1;
	job->sms = (struct smset){0};
	waiting_add(&s->waiting, s->jobs, id);
}

void sched_put_aside(struct sched *s, sched_job_id id) {
	sched_stopped(s, id);
	s->jobs[id].divisible = false;
}

/* See sched_finish(). */
static void learn_overhead(struct sched *s, const struct sched_job *job, nsec_t now) {
	struct sched_task *task = task_table_get(&s->tasks, job->task);
	nsec_t took = now > job->granted ? now - job->granted : 0, more;

	if (!task || job->state != SCHED_JOB_RUNNING || job->profiled == 0) {
		return;
	}
	more = took > job->profiled ? took - job->profiled : 0;
	more = more < job->profiled / 4 ? more : job->profiled / 4;
	if (more > task->overhead) {
		task->overhead += (more - task->overhead + 3) / 4;
	} else {
		task->overhead -= (task->overhead - more + 31) / 32;
	}
}

void sched_finish(struct sched *s, sched_job_id id, nsec_t now, bool completed) {
	struct sched_job *job = &s->jobs[id];

	assert(sched_job(s, id));
	if (completed) {
		learn_overhead(s, job, now);
	}
	if (s->explain) {
		explain_ended(s->explain, job->explained, now, completed);
	}
	if (job->state != SCHED_JOB_WAITING && now - job->granted > SCHED_ALONE_JOB_MAX) {
		s->gpus[job->gpu].n_alone = 0;
	}
	if (job->state == SCHED_JOB_WAITING) {
		waiting_remove(&s->waiting, s->jobs, id);
	} else if (!job->sms_released) {
		sched_release_sms(s, id);
	}
	job->state = SCHED_JOB_FREE;
	job->next = s->unused;
	s->unused = id;
}

static struct sched_job *running_in(const struct sched *s, size_t gpu, size_t slot) {
	sched_job_id id = s->gpus[gpu].slots[slot];

	return id != SCHED_JOB_NONE ? &s->jobs[id] : NULL;
}

nsec_t sched_next_overrun(const struct sched *s) {
	nsec_t next = 0;

	for (size_t i = 0; i < s->n_gpus * SCHED_SLOTS_MAX; i++) {
		const struct sched_job *job =
			running_in(s, i / SCHED_SLOTS_MAX, i % SCHED_SLOTS_MAX);

		if (job && job->finish && (next == 0 || job->finish < next)) {
			next = job->finish;
		}
	}
	return next;
}

bool sched_mark_overruns(struct sched *s, nsec_t now) {
	bool marked = false;

	for (size_t i = 0; i < s->n_gpus * SCHED_SLOTS_MAX; i++) {
		struct sched_job *job = running_in(s, i / SCHED_SLOTS_MAX, i % SCHED_SLOTS_MAX);

		if (job && job->finish && job->finish < now) {
			job->overrun = marked = true;
			job->finish = job->sms_end = now + 1 + (now - job->granted) / 8;
		}
	}
	return marked;
}

int sched_set_explain(struct sched *s, size_t n) {
	struct explain *e = NULL;
	int r = n > 0 ? explain_new(&e, n) : 0;

	if (r == 0) {
		s->explain = explain_free(s->explain);
		s->explain = e;
		for (size_t i = 0; i < s->n_touched; i++) {
			s->jobs[i].explained = 0;
		}
	}
	return r;
}

bool sched_is_awaited(const struct sched *s, sched_job_id id) {
	const struct sched_job *job = &s->jobs[id];
	bool gpus[SCHED_GPUS_MAX] = {false};
	struct waiting_walk walk;

	assert(sched_job(s, id) && job->state == SCHED_JOB_RUNNING);
	if (!s->policy->compare) {
		return sched_any_waits(s, job->gpu);
	}
	gpus[job->gpu] = true;
	for (sched_job_id other = waiting_first(&s->waiting, s->jobs, gpus, &walk);
	     other != SCHED_JOB_NONE; other = waiting_next(&walk)) {
		if (s->policy->compare(job, &s->jobs[other]) <= 0) {
			return true;
		}
	}
	return false;
}

uint64_t sched_turn(const struct sched *s) {
	return s->waiting.turn;
}

const struct explain *sched_explain(const struct sched *s) {
	return s->explain;
}

/* What no policy has spoken about. */
static void explain_rest(struct sched *s, nsec_t now) {
	bool all[SCHED_GPUS_MAX];
	struct waiting_walk walk;

	memset(all, true, sizeof(all));
	for (sched_job_id id = waiting_first(&s->waiting, s->jobs, all, &walk);
	     id != SCHED_JOB_NONE && s->n_explained < EXPLAIN_WAITING_MAX;
	     id = waiting_next(&walk)) {
		policy_wait(s, id, policy_obstacle(s, &s->jobs[id]), now);
	}
}

/* Whether anything could start, or be stopped for what waits: else no policy needs to look. */
static bool anything_to_do(const struct sched *s) {
	for (size_t i = 0; i < s->n_gpus; i++) {
		if ((s->policy->stops || !smset_empty(&s->gpus[i].free)) &&
		    sched_any_waits(s, (int)i)) {
			return true;
		}
	}
	return false;
}

/* For what is decided now. */
static void close_gpus(struct sched *s, uint32_t gpus) {
	for (size_t i = 0; i < s->n_gpus; i++) {
		s->gpus[i].drained |= gpus >> i & 1;
	}
}

void sched_decide(struct sched *s, nsec_t now, struct sched_actions *ret_actions) {
	bool drained[SCHED_GPUS_MAX], look = anything_to_do(s);
	int keep;

	ret_actions->n = 0;
	s->n_decisions++;
	s->n_explained = 0;
	s->look_at = 0;
	explain_begin(s->explain, UINT64_MAX);
	for (size_t i = 0; i < s->n_gpus; i++) {
		drained[i] = s->gpus[i].drained;
	}
	if (look) {
		close_gpus(s, allocated_start(s, now, ret_actions));
		keep = overdue_start(s, now, ret_actions);
		close_gpus(s, keep >= 0 ? UINT32_C(1) << keep : 0);
		s->policy->decide(s, now, ret_actions);
	}
	for (size_t i = 0; i < s->n_gpus; i++) {
		s->gpus[i].drained = drained[i];
	}
	if (s->explain) {
		explain_rest(s, now);
	}
}

nsec_t sched_next_look(const struct sched *s) {
	return s->look_at;
}

int sched_adopt(struct sched *s, const struct sched_job *job, sched_job_id *ret_id) {
	const struct sched_gpu *gpu;
	sched_job_id id;
	int r;

	if (job->gpu < 0 || (size_t)job->gpu >= s->n_gpus || job->slot >= SCHED_SLOTS_MAX ||
	    smset_empty(&job->sms)) {
		return -EINVAL;
	}
	gpu = &s->gpus[job->gpu];
	if (gpu->slots[job->slot] != SCHED_JOB_NONE || !smset_within(&job->sms, &gpu->free) ||
	    !policy_may_share(s, (size_t)job->gpu, job)) {
		return -EBUSY;
	}
	r = sched_arrive(s, job, &id);
	if (r < 0) {
		return r;
	}
	books_place(s, id, (size_t)job->gpu, job->slot, &job->sms, job->granted);
	*ret_id = id;
	return 0;
}

void sched_set_owner(struct sched *s, sched_job_id id, uint64_t owner, const char *label,
		     enum sched_stop stop) {
	assert(sched_job(s, id) && s->jobs[id].state == SCHED_JOB_RUNNING);
	s->jobs[id].stop = stop;
	s->jobs[id].stopping = false;
	s->jobs[id].owner = owner;
	s->jobs[id].label = label;
}

void sched_set_stop(struct sched *s, sched_job_id id, enum sched_stop stop, nsec_t takes) {
	assert(sched_job(s, id) && s->jobs[id].state == SCHED_JOB_RUNNING);
	s->jobs[id].stop = stop;
	s->jobs[id].stop_takes = takes;
	if (s->explain && s->policy->stops) {
		explain_stop(s->explain, s->jobs[id].explained, sched_stop_name(stop), takes);
	}
}

void sched_drain_gpu(struct sched *s, size_t gpu, bool drain) {
	s->gpus[gpu].drained = drain;
}
