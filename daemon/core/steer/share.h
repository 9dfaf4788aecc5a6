/*
 * share.h: how much of a GPU programs without a deadline get beside those that have one and whose
 * work nobody has profiled: as much as the deadlines, as measured, leave.
 *
 * It begins with the rule (plan.h): programs with a deadline use all SMs, the others the upper
 * half. Three things give the others more, tried one after the other, only while nobody is late and
 * some of the time is to spare:
 *
 * - the others use all SMs and yield (proto/terms.h): what they lose is the time in which jobs with
 *   a deadline are open, so that must be less than half of all time;
 * - a program of short kernels uses all SMs as well, below the level of those with a deadline: they
 *   wait for a block at each of their launches, which is little beside short kernels;
 * - beside long kernels that would be too much, so programs with a deadline keep to a lower part,
 *   and that becomes smaller, as far as their responses are expected to allow.
 *
 * What is tried holds for a window and stays if no job came too near to its deadline; else what was
 * before holds again, and it takes ever longer until something is tried once more. Jobs that are
 * late by the rule as well are so whatever the others get: as many of them, give or take chance,
 * are no reason to go back to it, and yielding is tried although there are some.
 *
 * While no job with a deadline comes for a second, the others use all SMs and yield. So the next
 * one waits for what has begun, and no longer.
 *
 * Programs without a deadline may come and go meanwhile. What is known of the others stays, and who
 * comes gets what the place gives to somebody of whom nothing is known. What has failed beside
 * programs that are gone says little, though: it is forgotten once nobody has come or gone for a
 * while.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#pragma once

#include "daemon/core/steer/plan.h"

/* What a program did since it was last told. */
struct share_seen {
	nsec_t deadline;       /* of its task; 0: none */
	bool busy;	       /* it has a job open */
	uint64_t jobs, missed; /* that have ended */
	uint64_t launches;     /* of these jobs */
	nsec_t response;       /* sum over these jobs */
	nsec_t longest;	       /* of their responses */
	uint64_t unreported;   /* jobs that are in none of these numbers */
};

struct share_place {
	unsigned lower;		    /* groups of the lower part, at least 1 */
	bool confined;		    /* programs with a deadline keep to the lower part */
	bool free[MODEL_TASKS_MAX]; /* this program without a deadline uses all SMs */
	bool yield;		    /* those without a deadline do */
};

/* Of jobs with a deadline. */
struct share_count {
	double jobs, missed;
	double part; /* the longest of their responses, as a part of its deadline */
};

struct share {
	unsigned n;		   /* programs; 0: nothing is shared */
	unsigned n_groups;	   /* of the GPU, at least 2 */
	struct share_place place;  /* that holds */
	struct share_place before; /* that holds again if it is too little */
	bool gates;		   /* programs may yield */
	bool guards;		   /* with guard bands before jobs that have a deadline */
	bool crowded;		   /* jobs with a deadline are open for most of the time */
	bool trying;
	bool counts; /* from the second look at a place on: jobs under the last one have ended */
	struct share_seen sum[MODEL_TASKS_MAX]; /* since then */
	nsec_t elapsed;				/* likewise */
	nsec_t idle;		 /* no program with a deadline has done anything for so long */
	struct share_count rule; /* while the rule held */
	struct share_count here; /* since `place` holds */
	/* When yielding was tried and failed last: it is not tried again before something else has
	 * failed, unless the rule turns out to do no better. Without jobs: it did not. */
	struct share_count yield_failed;

	/* Mean responses on another lower part, confined as now. */
	unsigned other_lower; /* 0: there was none */
	nsec_t other_mean[MODEL_TASKS_MAX];

	unsigned rest;	  /* windows in which nothing is tried */
	unsigned backoff; /* so many after the next failure */

	bool moved;  /* by share_move(), and failures of before still count */
	nsec_t same; /* nobody has come or gone for so long since */
};

/* Begins with the rule, for @n programs on @gpu, which has at least two groups of SMs. */
void share_start(struct share *s, unsigned n, const struct plan_gpu *gpu);

/* The @n programs are others now: the program @i was number @from[i] before, or none of them if
 * that is negative. Only programs without a deadline have come or gone. */
void share_move(struct share *s, const int *from, unsigned n);

/* What the programs did since the last call, which is @elapsed ago, some dozens of milliseconds.
 * Return: whether another place holds from now on: share_apply() says what that means. */
bool share_look(struct share *s, const struct share_seen *seen, nsec_t elapsed);

/* Changes the terms of the rule (plan_rule()) to those of the place. @deadlines: as in share_seen.
 */
void share_apply(const struct share *s, const nsec_t *deadlines, unsigned group,
		 struct terms *terms);

/* How long to wait before the next share_look(). @before: the last wait, 0 at first; @busy: whether
 * anybody did anything since. */
nsec_t share_pause(nsec_t before, bool busy);

/* Why the program @i has its terms, for people; static. NULL: by the rule. */
const char *share_reason(const struct share *s, nsec_t deadline, unsigned i);
