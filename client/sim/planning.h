/*
 * planning.h: whether the tasks of a scenario are in time for ever.
 *
 * A simulation with the longest times shows jobs that are late; that none is proves little. A
 * backlog may grow for many hyperperiods before anybody is late: what happens is known for ever
 * only once the scheduler comes back to a state in which it was before, at a boundary of
 * hyperperiods. And jobs that take less time come in another order or on other SMs, which may make
 * others late, under every policy that can't stop a job. So a task is in time only
 *  - if the schedule is kept as a table: each job starts at its time, however early the one before
 *    it ends; that such a schedule repeats itself without a late job is all there is to show;
 *  - or by a bound: where each GPU runs one job at a time and none waits beside an idle one, see
 *    daemon/core/analysis/serial.h. A task counts on every GPU that it has a profile for, since its
 *    program may have been started on any of them, and its bound is the longest on these. So it is
 *    for a task that moves: it waits no longer than on any one of them.
 *
 * Programs stay on their GPUs as they do live (struct simulation).
 */
#pragma once

#include "client/sim/simulation.h"

/* The search for a repetition ends after so many hyperperiods or jobs. */
#define PLANNING_HYPERPERIODS_MAX 200
#define PLANNING_JOBS_MAX	  200000

enum planning_verdict {
	PLANNING_IN_TIME,   /* for ever */
	PLANNING_LATE,	    /* some job is late */
	PLANNING_NOT_KNOWN, /* none in the simulation */
	PLANNING_UNTIMED,   /* no period and no deadline */
	_PLANNING_VERDICT_N,
};

struct planning {
	struct simulation sim;	     /* owned; what was looked at */
	bool table;		     /* set by the caller: the schedule is kept as a table */
	nsec_t hyperperiod;	     /* 0: none */
	bool repeats;		     /* nothing new happens after what was simulated */
	enum planning_verdict all;   /* of all tasks together */
	enum planning_verdict *each; /* owned; of each task */
};

/* Whether the task has a period or a deadline, so something to be in time for. */
bool planning_is_timed(const struct sched_task *task);

/* "in time", "late", "not known", "no deadline". */
const char *planning_verdict_text(enum planning_verdict verdict);

/*
 * @ret->sim: policy and params are set, and @ret->table; duration: how far to look at most, 0: as
 * far as needed within the bounds above. Return: as simulation_run(); -ERANGE: the releases repeat
 * only after more than a day, and no duration was given.
 */
int planning_run(struct planning *ret, const struct scenario *s);
void planning_deinit(struct planning *p);
