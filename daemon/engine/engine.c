/*
 * engine.c: between jobs and the scheduling core. See engine.h.
 */
#include "daemon/engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/util.h"
#include "daemon/core/timetable.h"
#include "daemon/engine/job.h"
#include "daemon/gpu/inventory.h"
#include "daemon/gpu/profiles.h"
#include "proto/enforcement.h"

/* A GPU of fewer groups would be shared too coarsely. */
#define GROUPS_MIN 4

struct engine {
	struct sched *sched; /* owned */
	struct job **jobs;   /* owned array by sched_job_id; jobs are their sessions' */
	clock_fn now;
	engine_granted_fn granted;
	engine_stop_fn stop;
	struct engine_counters counters;
	uint64_t next_sequence;
	bool changed; /* since the last decision */
	bool tasks_changed;
	bool running, stopped, on_hold, has_timetable;
	bool preempts;			     /* see engine_set_preempts() */
	struct sched_params params; /* as given */
	/* Of each GPU, undivided. */
	struct sched_gpu_model models[SCHED_GPUS_MAX];
	unsigned green_step[SCHED_GPUS_MAX]; /* parts are made of whole groups of so many SMs; 0: no
					      * green contexts there */
};

int engine_new(struct engine **ret, const struct sched_policy *policy, clock_fn now,
	       engine_granted_fn granted, engine_stop_fn stop) {
	struct engine *engine = calloc(1, sizeof(*engine));
	int r;

	if (!engine) {
		return -ENOMEM;
	}
	engine->jobs = calloc(ENGINE_JOBS_MAX, sizeof(struct job *));
	r = engine->jobs ? sched_new(&engine->sched, policy, ENGINE_JOBS_MAX) : -ENOMEM;
	if (r == 0) {
		struct sched_params params;

		sched_params_live(&params);
		engine->params = params;
		r = sched_set_params(engine->sched, &params);
	}
	if (r == 0) {
		r = sched_set_explain(engine->sched, ENGINE_DECISIONS_KEPT);
	}
	if (r < 0) {
		engine_free(engine);
		return r;
	}
	engine->now = now;
	engine->granted = granted;
	engine->stop = stop;
	engine->next_sequence = 1;
	*ret = engine;
	return 0;
}

struct engine *engine_free(struct engine *engine) {
	if (engine) {
		sched_free(engine->sched);
		free(engine->jobs);
		free(engine);
	}
	return NULL;
}

/* How many different parts jobs can get: rows from either end if there are two jobs, else any. */
static unsigned n_rows(const struct sched *sched, const struct sched_gpu_model *model) {
	unsigned n = sched_n_groups(model);

	return sched_slots(sched_get_params(sched), model) > 2 ? n * (n + 1) / 2 : 2 * n;
}

/* As finely as @step, but not into more different parts than a program can keep. */
static void divide(const struct sched *sched, struct sched_gpu_model *model, unsigned step) {
	for (;; model->step++) {
		struct sched_gpu_model divided = *model;

		sched_divide(&divided, step);
		if (n_rows(sched, &divided) <= PROTO_GREEN_ROWS_MAX) {
			*model = divided;
			return;
		}
	}
}

/* Parts for several processes are made of groups, where there are enough. */
static int set_model(struct engine *engine, size_t index, const struct inventory_gpu *gpu) {
	struct sched_gpu_model model = engine->models[index];
	unsigned step = gpu->sharing == SCHED_SHARING_MPS ? gpu->green_step : 0;

	engine->green_step[index] = gpu->n_sms >= GROUPS_MIN * step ? step : 0;
	if (engine->green_step[index] > 0) {
		divide(engine->sched, &model, step);
	}
	return sched_set_gpu_model(engine->sched, index, &model);
}

static int add_gpu(struct engine *engine, const struct inventory_gpu *gpu,
		   const struct profiles *profiles) {
	int index = sched_add_gpu(engine->sched, gpu->n_sms, gpu->sharing);

	if (index < 0) {
		return index;
	}
	engine->models[index] = sched_gpu(engine->sched, (size_t)index)->model;
	if (profiles) {
		profiles_model(profiles, gpu->name, gpu->n_sms, &engine->models[index]);
	}
	return set_model(engine, (size_t)index, gpu);
}

int engine_add_gpus(struct engine *engine, const struct inventory *inventory,
		    const struct profiles *profiles) {
	int r = 0;

	for (size_t i = 0; r == 0 && i < inventory_n_gpus(inventory); i++) {
		r = add_gpu(engine, inventory_gpu(inventory, i), profiles);
	}
	return r;
}

void engine_set_sharing(struct engine *engine, size_t index, const struct inventory_gpu *gpu) {
	sched_set_sharing(engine->sched, index, gpu->sharing);
	if (set_model(engine, index, gpu) != 0) {
		assert(false); /* it is the one that was set, or that divided */
	}
	engine->changed = engine->tasks_changed = true;
}

bool engine_rows(const struct engine *engine, size_t gpu, struct engine_rows *ret) {
	const struct sched_gpu *g = sched_gpu(engine->sched, gpu);

	if (engine->green_step[gpu] == 0 || !sched_get_policy(engine->sched)->divides) {
		return false;
	}
	*ret = (struct engine_rows){
		.group = g->model.step,
		.last_group = g->model.last_group,
		.anywhere = sched_slots(sched_get_params(engine->sched), &g->model) > 2,
	};
	return true;
}

bool engine_cuts_green(const struct engine *engine) {
	for (size_t i = 0; i < SCHED_GPUS_MAX; i++) {
		if (engine->green_step[i] > 0) {
			return true;
		}
	}
	return false;
}

bool engine_steers(const struct engine *engine, size_t gpu, unsigned *ret_group) {
	const struct sched_gpu *g = sched_gpu(engine->sched, gpu);

	bool mps = g->sharing == SCHED_SHARING_MPS;

	*ret_group = mps ? engine->green_step[gpu] : 0;
	return sched_get_policy(engine->sched)->steers && (mps || engine->preempts) &&
	       !g->drained && !engine->stopped;
}

void engine_set_preempts(struct engine *engine, bool preempts) {
	engine->preempts = preempts;
}

int engine_add_task(struct engine *engine, const struct sched_task *task, sched_task_id *ret) {
	int r = sched_add_task(engine->sched, task, ret);

	if (r == 0) {
		engine->changed = engine->tasks_changed = true;
	}
	return r;
}

int engine_place(struct engine *engine, sched_task_id task) {
	return sched_place(engine->sched, task);
}

void engine_remove_task(struct engine *engine, sched_task_id task) {
	sched_remove_task(engine->sched, task);
	engine->changed = engine->tasks_changed = true;
}

bool engine_whole_jobs(const struct engine *engine) {
	const struct sched_policy *policy = sched_get_policy(engine->sched);

	return policy->stops && !policy->by_segments;
}

void engine_set_allocation(struct engine *engine, unsigned id, size_t gpu,
			   const struct smset *sms) {
	sched_set_allocation(engine->sched, id, gpu, sms);
	engine->changed = true;
}

/* The parts that jobs get depend on how many run at once. */
static void divide_again(struct engine *engine) {
	for (size_t i = 0; i < sched_n_gpus(engine->sched); i++) {
		struct sched_gpu_model model = engine->models[i];

		if (engine->green_step[i] > 0) {
			divide(engine->sched, &model, engine->green_step[i]);
		}
		if (engine->green_step[i] > 0 &&
		    model.step != sched_gpu(engine->sched, i)->model.step) {
			sched_set_gpu_model(engine->sched, i, &model);
		}
	}
}

void engine_set_policy(struct engine *engine, const struct sched_policy *policy,
		       const struct sched_params *params) {
	sched_set_policy(engine->sched, policy);
	if (sched_set_params(engine->sched, params) != 0) {
		assert(false); /* what can be set by name is within bounds */
	}
	engine->params = *params;
	divide_again(engine);
	engine->changed = engine->tasks_changed = true;
}

int engine_set_timetable(struct engine *engine, struct timetable *t, char *why, size_t size) {
	int r = timetable_check(t, engine->sched, why, size);

	if (r == 0) {
		sched_set_timetable(engine->sched, t);
		engine->has_timetable = true;
	}
	return r;
}

bool engine_has_timetable(const struct engine *engine) {
	return engine->has_timetable;
}

const struct sched_params *engine_params(const struct engine *engine) {
	return &engine->params;
}

/*
 * How a part of a GPU can be kept. In one process, SM numbers are the hardware's: exact. Between
 * processes under MPS they are virtual: a green context is exact, else only their number holds.
 */
static Sbeet__Enforcement partition_enforcement(const struct engine *engine, const struct job *job,
						size_t gpu) {
	bool between = sched_gpu(engine->sched, gpu)->sharing != SCHED_SHARING_EXCLUSIVE;
	unsigned step = engine->green_step[gpu];
	bool in_groups = step > 0 && job->sm_step > 0 && step % job->sm_step == 0;

	return enforcement_of_part(job->record.enforcement_mask, between, in_groups);
}

/* All GPUs that it may run on. */
static uint32_t gpus_of(const struct job *job) {
	return job->gpus | (uint32_t)BIT(job->gpu);
}

/* Its task, if it can be planned with where it may run; else it runs like one of no task. */
static sched_task_id planned_task(const struct engine *engine, const struct job *job) {
	const struct sched_task *task = sched_task(engine->sched, job->task);

	for (size_t k = 0; task && k < sched_n_gpus(engine->sched); k++) {
		if ((gpus_of(job) & BIT(k)) && task->profiles[k]) {
			return job->task;
		}
	}
	return SCHED_TASK_NONE;
}

/* Whether it could get a part of each GPU that it may run on. */
static bool is_divisible(const struct engine *engine, const struct job *job) {
	for (size_t k = 0; k < sched_n_gpus(engine->sched); k++) {
		if ((gpus_of(job) & BIT(k)) &&
		    partition_enforcement(engine, job, k) == SBEET__ENFORCEMENT__ENFORCEMENT_NONE) {
			return false;
		}
	}
	return true;
}

static struct sched_job describe(const struct engine *engine, const struct job *job) {
	return (struct sched_job){
		.task = planned_task(engine, job),
		.owner = job->owner,
		.allocation = job->allocation,
		.gpu_wanted = job->gpus ? -1 : (int)job->gpu,
		.gpus = job->gpus ? gpus_of(job) : 0,
		.divisible = is_divisible(engine, job),
		.apart = job->apart,
		.job_class = job->job_class,
		.stop = job->stop,
		.stop_takes = job->stop_takes,
		.continued = job->continued,
		.spec = job->spec,
		.release = job->release,
		.deadline = job->record.deadline,
		.requested = job->record.requested,
		.tag = job->record.number,
		.label = job->label,
	};
}

void engine_set_apart(struct engine *engine, struct job *job, uint32_t apart) {
	job->apart = apart;
	if (job->sched_id != SCHED_JOB_NONE) {
		sched_set_apart(engine->sched, job->sched_id, apart, is_divisible(engine, job));
		engine->changed = true;
	}
}

void engine_drain_gpu(struct engine *engine, size_t gpu, bool drain) {
	sched_drain_gpu(engine->sched, gpu, drain);
	engine->changed = true;
}

int engine_arrive(struct engine *engine, struct job *job) {
	struct sched_job arrival = describe(engine, job);
	const struct sched_task *task = sched_task(engine->sched, arrival.task);
	bool homeless = task && arrival.gpus > 0 && task->gpus == 0;
	int r = sched_arrive(engine->sched, &arrival, &job->sched_id);

	if (r < 0) {
		assert(r == -ENOSPC);
		return ENGINE_E_FULL;
	}
	engine->jobs[job->sched_id] = job;
	engine->changed = true;
	engine->tasks_changed |= homeless; /* it had no choice before */
	return 0;
}

int engine_adopt(struct engine *engine, struct job *job) {
	struct sched_job running = describe(engine, job);
	int r;

	running.gpu = (int)job->gpu;
	running.slot = job->record.slot;
	running.sms = job->record.sms;
	running.granted = job->record.granted;
	r = sched_adopt(engine->sched, &running, &job->sched_id);
	if (r < 0) {
		return r == -ENOSPC ? ENGINE_E_FULL : ENGINE_E_TAKEN;
	}
	engine->jobs[job->sched_id] = job;
	if (job->record.sequence >= engine->next_sequence) {
		engine->next_sequence = job->record.sequence + 1;
	}
	job_set_state(job, JOB_RUNNING);
	return 0;
}

void engine_moved(struct engine *engine, struct job *job) {
	sched_set_owner(engine->sched, job->sched_id, job->owner, job->label, job->stop);
	engine->changed = true;
}

void engine_skip_sequences(struct engine *engine) {
	if (engine->next_sequence < engine->now()) {
		engine->next_sequence = engine->now();
	}
}

void engine_hold(struct engine *engine, bool hold) {
	engine->on_hold = hold;
	engine->changed = true;
}

static void take_out(struct engine *engine, struct job *job, bool done) {
	assert(engine->jobs[job->sched_id] == job);
	sched_finish(engine->sched, job->sched_id, engine->now(), done);
	engine->jobs[job->sched_id] = NULL;
	job->sched_id = SCHED_JOB_NONE;
	engine->changed = true;
}

void engine_finish(struct engine *engine, struct job *job, bool done) {
	bool counts = job->sched_id != SCHED_JOB_NONE || job->terms || job->state == JOB_STOPPED;

	if (job->sched_id != SCHED_JOB_NONE) {
		take_out(engine, job, done);
	}
	job_set_state(job, done ? JOB_DONE : JOB_ABANDONED);
	engine->counters.done += counts && done;
	engine->counters.abandoned += counts && !done;
}

void engine_withdraw(struct engine *engine, struct job *job) {
	assert(job->state == JOB_WAITING);
	take_out(engine, job, false);
}

void engine_stopped(struct engine *engine, struct job *job) {
	take_out(engine, job, false);
	job_set_state(job, JOB_STOPPED);
}

void engine_put_aside(struct engine *engine, struct job *job) {
	assert(engine->jobs[job->sched_id] == job && job->state == JOB_STOPPED);
	sched_put_aside(engine->sched, job->sched_id);
	job_set_state(job, JOB_WAITING);
	engine->changed = true;
}

void engine_set_stop(struct engine *engine, struct job *job, enum sched_stop stop, nsec_t takes) {
	job->stop = stop;
	job->stop_takes = takes;
	if (job->sched_id != SCHED_JOB_NONE && job->state == JOB_RUNNING) {
		sched_set_stop(engine->sched, job->sched_id, stop, takes);
	}
}

static void grant(struct engine *engine, struct job *job, nsec_t now) {
	const struct sched_job *decided = sched_job(engine->sched, job->sched_id);
	const struct sched_gpu *gpu = sched_gpu(engine->sched, (size_t)decided->gpu);

	job->gpu = (size_t)decided->gpu;
	job->gpus = 0;
	job->record.slot = decided->slot;
	job->record.sms = decided->sms;
	job->record.granted = now;
	job->record.sequence = engine->next_sequence++;
	job->record.enforcement =
		smset_count(&job->record.sms) == gpu->n_sms
			? SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE
			: partition_enforcement(engine, job, (size_t)decided->gpu);
	assert(job->record.enforcement != SBEET__ENFORCEMENT__ENFORCEMENT_NONE);
	job_set_state(job, JOB_RUNNING);
	engine->counters.grants++;
	engine->granted(job);
}

static struct job *job_of(const struct engine *engine, sched_job_id id) {
	return id != SCHED_JOB_NONE ? engine->jobs[id] : NULL;
}

void engine_run(struct engine *engine) {
	struct sched_actions actions;

	/* A grant that can't be delivered ends jobs: that is a change for the next turn. */
	assert(!engine->running);
	engine->running = true;
	while (engine->changed && !engine->stopped && !engine->on_hold) {
		nsec_t now = engine->now();

		engine->changed = false;
		if (engine->tasks_changed) {
			engine->tasks_changed = false;
			sched_distribute(engine->sched);
		}
		engine->counters.decisions++;
		sched_decide(engine->sched, now, &actions);
		for (size_t i = 0; i < actions.n; i++) {
			struct job *job = engine->jobs[actions.list[i].job];

			/* NULL: ended by an earlier action of this turn. */
			if (job && actions.list[i].kind == SCHED_ACTION_STOP) {
				engine->stop(job, job_of(engine, actions.list[i].by));
			} else if (job) {
				grant(engine, job, now);
			}
		}
	}
	engine->running = false;
}

nsec_t engine_next_look(const struct engine *engine) {
	nsec_t overrun = sched_next_overrun(engine->sched);
	nsec_t look = engine->on_hold ? 0 : sched_next_look(engine->sched);

	if (engine->stopped) {
		return 0;
	}
	return overrun == 0 || (look > 0 && look < overrun) ? look : overrun;
}

void engine_look(struct engine *engine) {
	nsec_t now = engine->now(), look = sched_next_look(engine->sched);

	engine->changed |= look > 0 && look <= now;
	engine->changed |= sched_mark_overruns(engine->sched, now);
}

bool engine_any_waits(const struct engine *engine) {
	return !engine->stopped && sched_any_waits(engine->sched, -1);
}

bool engine_is_awaited(const struct engine *engine, const struct job *job) {
	return job->sched_id != SCHED_JOB_NONE && sched_is_awaited(engine->sched, job->sched_id);
}

void engine_stop(struct engine *engine) {
	engine->stopped = true;
}

const struct engine_counters *engine_counters(const struct engine *engine) {
	return &engine->counters;
}

const struct sched *engine_sched(const struct engine *engine) {
	return engine->sched;
}

const struct job *engine_running(const struct engine *engine, size_t gpu, unsigned slot) {
	sched_job_id id = sched_gpu(engine->sched, gpu)->slots[slot];

	return id != SCHED_JOB_NONE ? engine->jobs[id] : NULL;
}

struct smset engine_sms_busy(const struct engine *engine, size_t index) {
	const struct sched_gpu *gpu = sched_gpu(engine->sched, index);
	struct smset all = smset_range(0, gpu->n_sms);

	return smset_minus(&all, &gpu->free);
}
