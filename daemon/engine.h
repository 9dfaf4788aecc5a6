/*
 * engine.h: carries arrivals and completions into the scheduling core and its grants out again.
 *
 * Knows jobs and GPUs, neither sockets nor messages.
 */
#pragma once

#include "daemon/core/sched.h"

struct inventory;
struct job;
struct engine;

/* Waiting and running jobs of all sessions together. Untouched entries cost no memory. */
#define ENGINE_JOBS_MAX 65536

#define ENGINE_E_FULL 1

/* A job has its SMs: tell its process. May end jobs, this one included. */
typedef void (*engine_granted_fn)(struct job *job);

struct engine_counters {
	uint64_t grants, done, abandoned;
};

int engine_new(struct engine **ret, const struct sched_policy *policy, engine_granted_fn granted);
struct engine *engine_free(struct engine *engine);

/* To be called once, when the GPUs are known. */
int engine_add_gpus(struct engine *engine, const struct inventory *inventory);

/* A job arrives; it must stay in place until engine_finish(). Return: 0 or ENGINE_E_FULL. */
int engine_arrive(struct engine *engine, struct job *job);

/* The job has ended, in whatever state; its SMs are free. Sets JOB_DONE or JOB_ABANDONED. */
void engine_finish(struct engine *engine, struct job *job, bool done);

/* Decides, if anything has changed since the last time, and reports the grants. Every callback of
 * the event loop that may have changed something ends with this. */
void engine_run(struct engine *engine);

/* From now on nothing is granted. */
void engine_stop(struct engine *engine);

const struct engine_counters *engine_counters(const struct engine *engine);
const struct sched *engine_sched(const struct engine *engine);

/* Union of the sets of the jobs that run on this GPU. */
struct smset engine_sms_busy(const struct engine *engine, size_t gpu);
