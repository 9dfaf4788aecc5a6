/*
 * job.h: jobs of this process: how they are opened, and how they end. See lane.h for their states.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"
#include "shim/job-sums.h"

struct kernel;
struct lane;
struct mark;

/* What the operation that opens a job needs. */
struct job_need {
	CUcontext context; /* the current one */
	uint32_t mask;	   /* of 1 << Sbeet__Enforcement: what can hold it; for job_open() */
	nsec_t called_ns;  /* when it found a job that it can't join; 0: it did not */
	Sbeet__OpKind kind;
	const struct kernel *kernel; /* NULL if it is no launch, or not known */
	uint32_t tid;
};

/* Whether job_open() would be more than a waste of time. */
bool job_worth_opening(struct lane *lane);

/* Asks the daemon for a job, if @lane is IDLE, or to go on with the one that is STOPPED; waits for
 * its answer. Not to be cancelled. Return: false if there is no job to be had; true: to be looked
 * at again. */
bool job_open(struct lane *lane, const struct job_need *need);

/* The same where the terms say, if they do: asks nobody and waits for nobody. Return: false if
 * sbeetd doesn't steer the program. */
bool job_open_by_terms(struct lane *lane, const struct job_need *need);

/* A GPU where a job could run. */
struct job_place {
	struct lane *lane; /* OPENING, and the caller's */
	CUcontext context; /* the primary one; NULL: there is none, so it gets whole GPUs there */
};

/* The same for a job that may run in any of the @n @places, of which it prefers the first, before
 * it has an operation. Its lane is OPEN then, the others are IDLE. Return: where it is; -1: sbeetd
 * refuses (@ret_refused), or is not there. */
int job_open_any(const struct job_place *places, unsigned n, uint32_t tid, bool *ret_refused);

/* Jobs that follow should ask for no more than @mask allows, until it is old. */
void job_learn(struct lane *lane, uint32_t mask);

/* Return: the number of the job that is summed up: the one that @lane has, or had last. */
uint64_t job_sum(struct lane *lane, struct job_sums *ret);

/* The program has marked its begin but not its end: it goes on whatever is complete, also if it is
 * stopped meanwhile. */
bool job_is_held(struct lane *lane);

/* The job of @lane, which is to be stopped: if all its operations are complete, tells sbeetd, and
 * lets nothing more enter until it is granted again. If sbeetd is gone it goes on. Return: whether
 * its lane is not DRAINING any more. */
bool job_stop(struct lane *lane);

/* Ends the job of @lane if all its operations are complete and it is not held. Never waits for any.
 * Return: whether. */
bool job_try_close(struct lane *lane);

/* All operations are known to be complete, or stand in their streams behind a function of the
 * program that may wait for a thread that waits here (host-function.h), and nobody is inside. A
 * glance, without excluding anyone. */
bool job_is_complete(struct lane *lane);

/* The program has waited: jobs of which everything is complete are over. */
void job_close_complete(void);

/* The process exits: jobs under terms end here, with what they have done. Waits for a thread that
 * closes such a job just now, until @deadline at most. */
void job_leave(nsec_t deadline);

/* The end of what @mark held: no further operation enters, and it is over when it is complete. */
void job_end_marked(struct mark *mark);

/* A context is gone. As job_close_complete(); what was granted, or is held by a mark, goes on as
 * another job. */
void job_context_gone(void);

/* The job of @lane is DRAINING and runs under terms: the next one begins without waiting for it.
 * Return: false if that can't be. */
bool job_put_aside(struct lane *lane);

/* Whether it can be as soon as no thread is handing anything over in it. */
bool job_may_go_aside(struct lane *lane);

/* Ends the jobs that @lane has put aside and that are complete. */
void job_close_aside(struct lane *lane);
