/*
 * internal.h: a simulation while it runs; included by sim.c and boundary.c only.
 */
#pragma once

#include "daemon/sim/cycle.h"
#include "daemon/sim/events.h"
#include "daemon/sim/sim.h"

/* Beside sched.h's own record of a job. Same index. */
struct sim_job {
	size_t task;
	uint64_t number;
	uint64_t order;
	bool live;
	nsec_t release, deadline;		 /* the real ones; 0: no deadline */
	nsec_t kernel_start, kernel_end, finish; /* once granted */
	uint32_t dynamic_mw;
};

/* What is being measured of a task. */
struct sim_task {
	uint64_t next;	/* number of the next release */
	uint64_t asked; /* jobs that the scheduler was asked for */
	uint64_t n_live;
	uint64_t n_max;
	int last_gpu;
	nsec_t *responses; /* borrowed part of struct sim.responses */
};

/* A GPU's power as it is now, integrated up to `since`. */
struct sim_meter {
	unsigned busy;
	uint64_t dynamic_mw;
	nsec_t since;
};

/* 16 cells an octave. */
#define COST_CELLS (64 * 16)

struct sim {
	const struct sim_setup *setup;
	struct sched *sched; /* owned */
	struct event_queue events;
	struct sim_job *jobs; /* owned, n_jobs of them */
	size_t n_jobs;
	uint64_t next_order;
	struct sim_task *tasks; /* owned */
	sched_task_id *ids;	/* owned: of the tasks in sched */
	nsec_t *responses;	/* owned */
	struct sim_meter meters[SCHED_GPUS_MAX];
	uint64_t *cost_cells; /* owned; NULL without a clock */
	nsec_t now;
	nsec_t end; /* of the window */
	struct cycle cycle;
	uint64_t n_boundaries;
	struct sim_result result;
};

/* All boundaries of hyperperiods up to @until and the end of the window, which lies at the boundary
 * from then on if the caller has seen enough. What happens before @until has happened. Return: 0,
 * -ENOMEM. */
int sim_pass_boundaries(struct sim *s, nsec_t until);
