/*
 * task.h: the task of a session: its name, and when its jobs are released and due. Pure.
 */
#pragma once

#include <stdbool.h>

#include "proto/task-spec.h"

/* The job that ended last. */
struct task_last {
	nsec_t release, ended; /* 0: there was none */
	size_t gpu;
	uint32_t tid;
};

/* The releases of a task's jobs so far. */
struct releases {
	nsec_t first; /* of the declared grid first + k * period; 0: no grid */
	struct task_last last;
	/* See task_release(). */
	bool paced;
	bool woken;    /* the last job was requested after a pause, and that is its release */
	bool held_up;  /* the last job was released before it was requested */
	bool queues;   /* none of its releases is left out */
	nsec_t queued; /* the last job's release if that is so */
	/* Releases that have passed without a job, by a program that paused then; and those after
	 * that of the last job that had passed when it was requested. 0 where the grid is declared.
	 */
	uint64_t left_out, waiting;
};

/* As a program describes it. @spec: validated, or NULL; @program: the executable's name, which
 * names a task that has none. */
void task_init(struct task_spec *task, const Sbeet__TaskSpec *spec, const char *program);

/* Begins the releases anew; @now: the session's start, or when period or offset have changed. An
 * offset counts from there. */
void task_start(struct releases *releases, const struct task_spec *task, nsec_t now);

/* What is known of a job when it is requested. */
struct task_request {
	nsec_t at;
	size_t gpu;
	uint32_t tid; /* 0: the whole process */
	bool alone;   /* the program has no other job */
};

/*
 * The release of a job: the time of its request, unless an earlier one is certain. It is certain
 *
 *  - if the task has a period and an offset: the last point of the grid start + offset +
 *    k * period;
 *  - if the task has a period and the program's previous job held the request up: that job was
 *    still there a period after its own release, the program asked again at once when it ended,
 *    and it paces itself: before the first job that ran on, it had paused. Then the release is the
 *    last multiple of the period after the previous release at which that job was still there.
 *
 * Of a program that falls behind by more than a period this takes the releases between for left
 * out, as those of a camera's frames are that nobody fetches. If, held up, it then asks at once
 * for another job before the next period begins, it is seen to make up for them all: from then on
 * each of its jobs that run on is released a period after the one before, and the next one after a
 * pause when it is requested. It is so until it pauses with a release left.
 *
 * A program that sleeps for a fixed time between its jobs asks after the same pause however long
 * the last job took, so it is never held up in this sense, nor is one that never pauses.
 *
 * "At once" and "a pause" are parts of the period. Between the two nothing is concluded.
 */
#define TASK_AT_ONCE 32 /* at most period / 32 after the end of the job before */
#define TASK_PAUSE   8	/* at least period / 8 after it */
nsec_t task_release(struct releases *releases, const struct task_spec *task,
		    const struct task_request *request);

/* Jobs ran of which nothing is known: what the next one's release is follows from no other. */
void task_lost_sight(struct releases *releases);

/* @job is over; its `ended` is 0 if it was cancelled or lost. */
void task_ended(struct releases *releases, const struct task_last *job);

/* Absolute, or 0 if there is none. @own: the job's own, from its release, of which no more than the
 * period counts; 0: its task's. */
nsec_t task_deadline(const struct task_spec *task, nsec_t release, nsec_t own);
