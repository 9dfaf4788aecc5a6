/*
 * state.h: a simulation while it runs: what sim.c keeps, and arbiters read.
 */
#pragma once

#include "daemon/sim/cycle.h"
#include "daemon/sim/events.h"
#include "daemon/sim/meter.h"
#include "daemon/sim/sim.h"

/* A job, from when it is asked for until it is over. */
struct sim_job {
	size_t task;	 /* index into the setup's tasks */
	uint64_t number; /* j, from 0 */
	uint64_t order;	 /* of all jobs, as they were asked for */
	nsec_t release;
	nsec_t deadline; /* absolute; 0: none */
	bool live;
};

/* What is being measured of a task. */
struct sim_task {
	uint64_t next;	/* number of the next release */
	uint64_t asked; /* jobs that the arbiter was asked for */
	uint64_t n_live;
	uint64_t n_max;
	nsec_t *responses; /* borrowed part of struct sim.responses */
};

struct sim {
	const struct sim_setup *setup;
	void *arbiter_state; /* the arbiter's own */
	nsec_t now;
	nsec_t end;   /* of the window */
	bool changed; /* at this moment, so the arbiter has to decide */
	struct event_queue events;
	struct sim_job *jobs; /* owned, by the arbiter's numbers; those beyond n_jobs never lived */
	size_t n_jobs, max_jobs;
	uint64_t next_order;
	struct sim_task *tasks; /* owned */
	nsec_t *responses;	/* owned */
	struct meter meters[SCHED_GPUS_MAX];
	struct cycle cycle;
	uint64_t n_boundaries;
	struct sim_result result;
};

/* A task that has had its only job has no future. */
static inline bool sim_task_is_over(const struct sim *s, size_t index) {
	const struct sim_task *task = &s->tasks[index];

	return s->setup->tasks[index].period == 0 && task->next > 0 && task->n_live == 0;
}
