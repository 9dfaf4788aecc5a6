/*
 * engine.h: carries arrivals and completions into the scheduling core and its grants out again.
 *
 * Knows jobs and GPUs, neither sockets nor messages.
 */
#pragma once

#include "daemon/core/sched.h"

struct inventory;
struct inventory_gpu;
struct job;
struct engine;
struct profiles;

/* Waiting and running jobs of all sessions together. Untouched entries cost no memory. */
#define ENGINE_JOBS_MAX 65536

/* Decisions that the core keeps to explain: see explain.h. 800 KiB, once they are used. */
#define ENGINE_DECISIONS_KEPT 256

#define ENGINE_E_FULL  1
#define ENGINE_E_TAKEN 2

/* A job has its SMs: tell its process. May end jobs, this one included. */
typedef void (*engine_granted_fn)(struct job *job);

/* A job is to leave the GPU (policy_stop()), which the job @by of higher priority needs; NULL: it
 * has ended. Then engine_stopped(), or engine_finish(), when nothing of it runs any more; or
 * engine_put_aside(). */
typedef void (*engine_stop_fn)(struct job *job, const struct job *by);

struct engine_counters {
	uint64_t grants, done, abandoned, decisions;
};

int engine_new(struct engine **ret, const struct sched_policy *policy, clock_fn now,
	       engine_granted_fn granted, engine_stop_fn stop);
struct engine *engine_free(struct engine *engine);

/* To be called once, when the GPUs are known. @profiles: for their models; or NULL. */
int engine_add_gpus(struct engine *engine, const struct inventory *inventory,
		    const struct profiles *profiles);

/* @gpu, number @index, is shared otherwise than when it was added, or than it was. Its jobs run on;
 * engine_set_apart() is to be called for each of all jobs then. */
void engine_set_sharing(struct engine *engine, size_t index, const struct inventory_gpu *gpu);

/* The GPUs, a mask, that the job shares with no other process although they are shared (struct
 * sched_job). */
void engine_set_apart(struct engine *engine, struct job *job, uint32_t apart);

/* The parts of a GPU that jobs get: rows of groups of SMs, the last one of which is larger. */
struct engine_rows {
	unsigned group, last_group;
	bool anywhere; /* else those that begin or end with the GPU */
};

/* Whether jobs may be granted green contexts of many sizes on GPU @gpu, and which. */
bool engine_rows(const struct engine *engine, size_t gpu, struct engine_rows *ret);

/* Whether jobs may be granted green contexts, on some GPU. */
bool engine_cuts_green(const struct engine *engine);

/* Whether the policy tells programs on GPU @gpu beforehand where they run. @ret_group: of how many
 * SMs the sets that they are told are made; 0: they can't be told any. */
bool engine_steers(const struct engine *engine, size_t gpu, unsigned *ret_group);

/* Whether programs can be preempted where they share a GPU by time slices, without MPS: then the
 * policy may steer there, too. At first they can't. */
void engine_set_preempts(struct engine *engine, bool preempts);

/* A task whose times are known comes: its jobs are no longer best effort. Errors as
 * sched_add_task(). */
int engine_add_task(struct engine *engine, const struct sched_task *task, sched_task_id *ret);

/* The GPU for all jobs of this task, from now on: sched_place(). -1: its program may choose. */
int engine_place(struct engine *engine, sched_task_id task);

/* It goes; its jobs must have ended. */
void engine_remove_task(struct engine *engine, sched_task_id task);

/* Whether segments that a program marks (sbeet.h) are all one job to the policy. */
bool engine_whole_jobs(const struct engine *engine);

/* See sched_set_allocation(). */
void engine_set_allocation(struct engine *engine, unsigned id, size_t gpu, const struct smset *sms);

/* From the next engine_run() on. @params: of this policy; within the bounds of params.h. */
void engine_set_policy(struct engine *engine, const struct sched_policy *policy,
		       const struct sched_params *params);

/* What policy `table` follows; it must outlive the engine. When the GPUs are known. Return: as
 * timetable_check(). */
struct timetable;
int engine_set_timetable(struct engine *engine, struct timetable *t, char *why, size_t size);
bool engine_has_timetable(const struct engine *engine);

/* Those that were given last. */
const struct sched_params *engine_params(const struct engine *engine);

/* It waits, and goes on to do so outside: nothing is granted to it until engine_arrive(). */
void engine_withdraw(struct engine *engine, struct job *job);

/* From now on nothing is granted on this GPU, or things are granted again. What runs there goes on.
 */
void engine_drain_gpu(struct engine *engine, size_t gpu, bool drain);

/* A job arrives; it must stay in place until engine_finish(). Return: 0 or ENGINE_E_FULL. */
int engine_arrive(struct engine *engine, struct job *job);

/* The same for a job that runs already, granted by another daemon: its gpu, slot, sms, enforcement,
 * granted and sequence are set. Return: 0; ENGINE_E_FULL; ENGINE_E_TAKEN: that place is not free.
 */
int engine_adopt(struct engine *engine, struct job *job);

/* Nothing of the running job is on the GPU any more, and it is not over: its SMs are free. Sets
 * JOB_STOPPED. When its program asks to go on with it: JOB_WAITING, and engine_arrive(). */
void engine_stopped(struct engine *engine, struct job *job);

/* The running job leaves room for others at once, and its work stays on the GPU, in gaps or behind
 * theirs. From JOB_STOPPED; sets JOB_WAITING: it is granted again, the whole GPU. */
void engine_put_aside(struct engine *engine, struct job *job);

/* What can stop the job: see struct sched_job. */
void engine_set_stop(struct engine *engine, struct job *job, enum sched_stop stop, nsec_t takes);

/* It is another session's from now on: owner and label have changed, and it is of no task. If it
 * was to be stopped, its new session is told so. */
void engine_moved(struct engine *engine, struct job *job);

/* Which sequence numbers were given before is not known: from now on they are above all that can
 * have been, since no daemon grants a job each nanosecond since boot. */
void engine_skip_sequences(struct engine *engine);

/* While held, nothing is granted: jobs of before may still be told of. */
void engine_hold(struct engine *engine, bool hold);

/* The job has ended, in whatever state; its SMs are free. Sets JOB_DONE or JOB_ABANDONED. One that
 * is not here counts only if it ran under terms: others were withdrawn, or had no SMs. */
void engine_finish(struct engine *engine, struct job *job, bool done);

/* Decides, if anything has changed since the last time, and reports the grants. Called once after
 * each turn of the event loop. */
void engine_run(struct engine *engine);

/* When to call engine_look() if nothing happens before: when a running job reaches its predicted
 * end, or the policy wants to reconsider a job that it leaves waiting (sched_next_look()); 0:
 * never. */
nsec_t engine_next_look(const struct engine *engine);

/* Time has passed: marks jobs that have run longer than predicted. The next engine_run() decides
 * again if that, or what the policy wants to reconsider, may change something. */
void engine_look(struct engine *engine);

/* Whether any job waits; whether one waits for the GPU of this one, which holds SMs, and is not to
 * wait for ever: see sched_is_awaited(). */
bool engine_any_waits(const struct engine *engine);
bool engine_is_awaited(const struct engine *engine, const struct job *job);

/* From now on nothing is granted. */
void engine_stop(struct engine *engine);

const struct engine_counters *engine_counters(const struct engine *engine);
const struct sched *engine_sched(const struct engine *engine);

/* What runs in this slot; NULL: nothing. */
const struct job *engine_running(const struct engine *engine, size_t gpu, unsigned slot);

/* Union of the sets of the jobs that run on this GPU. */
struct smset engine_sms_busy(const struct engine *engine, size_t gpu);
