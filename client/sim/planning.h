/*
 * planning.h: whether the tasks of a scenario are in time for ever.
 *
 * Two hyperperiods without a miss prove nothing: a backlog may grow for many of them before anybody
 * is late. What proves it is that the scheduler comes back to a state in which it was before, at a
 * boundary of hyperperiods: all goes on as between the two.
 */
#pragma once

#include "client/sim/simulation.h"

/* The search for a repetition ends after so many hyperperiods or jobs. */
#define PLANNING_HYPERPERIODS_MAX 200
#define PLANNING_JOBS_MAX	  200000

enum planning_verdict {
	PLANNING_IN_TIME,   /* for ever */
	PLANNING_LATE,	    /* some job is late */
	PLANNING_NOT_KNOWN, /* none so far */
	PLANNING_UNTIMED,   /* no period and no deadline */
	_PLANNING_VERDICT_N,
};

struct planning {
	struct simulation sim;	     /* owned; what was looked at */
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
 * @ret->sim: policy and params are set; duration: how far to look at most, 0: as far as needed
 * within the bounds above. Return: as simulation_run(); -ERANGE: the releases repeat only after
 * more than a day, and no duration was given.
 */
int planning_run(struct planning *ret, const struct scenario *s);
void planning_deinit(struct planning *p);
