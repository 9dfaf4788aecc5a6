/*
 * lane.h: a place for one job at a time: one per device, for the whole process or (thread scope)
 * for each thread. Its state is one word:
 *
 *	IDLE      no job. The first operation takes it to OPENING.
 *	OPENING   that thread asks the daemon; others wait.
 *	OPEN      operations come and go without waiting.
 *	DRAINING  no operation may enter but as lane_wait_drained() says; the job ends, or is stopped,
 *	          when what it has is complete.
 *	CLOSING   somebody looks whether the job is over, and ends it if it is: a short moment.
 *	STOPPED   the job is not over, but nothing of it runs, and sbeetd has its SMs back. The next
 *	          operation takes it to OPENING, for the same job.
 *
 * An operation writes into its own worker's `inside`, then reads the state; who closes writes the
 * state, then reads every `inside`. So either he sees the operation or it sees him, with one atomic
 * write per operation to a line that no other thread writes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

#include "proto/units.h"
#include "shim/enforce/enforce.h"
#include "shim/mark.h"
#include "shim/releases.h"
#include "shim/watch.h"

#define LANE_DEVICES_MAX 16
#define LANE_ASIDE_MAX	 8

enum lane_state {
	LANE_IDLE,
	LANE_OPENING,
	LANE_OPEN,
	LANE_DRAINING,
	LANE_CLOSING,
	LANE_STOPPED,
	_LANE_STATE_N,
};

/* Where the terms of a job led, for the next one with the same: see terms_partition(). */
struct lane_found {
	uint64_t word; /* 0: nowhere yet */
	CUcontext context;
	uint32_t epoch; /* changes when a context goes */
	struct partition *partition;
};

/* What each operation reads comes first, in one cache line. */
struct lane {
	_Atomic uint32_t state;	  /* enum lane_state; a futex */
	_Atomic uint32_t waiting; /* threads that sleep on it */
	_Atomic uint64_t job;	  /* written while OPENING, as the grant */
	_Atomic uint64_t terms;	  /* of a job that nobody was asked for: their word, else 0 */
	_Atomic(struct partition *) steered_to; /* where its work goes under them */
	_Atomic bool by_operation;		/* each operation is a job: see lane_claim() */
	_Atomic bool recording;			/* sbeetd wants to be told of single operations */
	_Atomic bool kernels_done; /* before its copy back: see keeper_kernels_done() */
	bool of_thread;		   /* thread scope: one thread's own */
	CUdevice device;
	struct mark *mark; /* of its set */

	/* written while OPENING, constant until IDLE or OPENING again */
	struct enforce_grant grant;
	_Atomic bool whole_job; /* segments that are marked don't end it */
	uint64_t outside;	/* blocks outside of grants, until it was stopped; while CLOSING */
	_Atomic nsec_t granted_ns;

	/* Of a job that nobody was asked for (terms.h): the context of the operation that opened
	 * it. The tracker may change `steered_to`. NULL: to the program's own streams. */
	_Atomic(CUcontext) context;
	struct lane_found found; /* written while OPENING */
	/* When it must be done, if its terms make it awaited, or let it yield; BOARD_NO_DUE: nobody
	 * waits for it; 0: that is nothing to anybody. */
	_Atomic uint64_t due_ns;
	struct releases releases; /* for guard bands; written while OPENING */

	/* Jobs under terms that have ended by their marks, but are not complete: they wait for
	 * nobody, and nobody for them. Written while CLOSING and by job_close_aside(). 0: free */
	_Atomic uint64_t aside[LANE_ASIDE_MAX];
	_Atomic unsigned n_aside;
	_Atomic bool aside_busy; /* somebody looks through them */

	/* How long a launch takes, with what is between them, in jobs that waited for nobody: see
	 * learn_launch(). 0: not known */
	_Atomic nsec_t launch_ns;

	/* what later jobs should ask for: see job_learn() */
	_Atomic uint32_t mask_wanted;
	unsigned mask_age; /* jobs since then; of who opens */

	_Atomic uint32_t kernel_epoch; /* when its last job ended: see kernel.h */

	_Atomic bool drain;	   /* a job that is OPEN or CLOSING goes to DRAINING */
	_Atomic bool stop;	   /* and from there to STOPPED */
	/* How long an operation waits for a job that drains, and until when all that come enter
	 * it: see lane_wait_drained(). */
	_Atomic nsec_t patience, passes_until;
	_Atomic nsec_t refused_ns; /* until then nobody asks again */

	struct watch watch; /* the tracker's */
} __attribute__((aligned(64)));

/* One thread's lanes, or those of the process. */
struct lane_set {
	_Atomic unsigned n; /* lanes behind the first ones were never used */
	struct lane_set *next;
	struct mark mark;
	struct lane lanes[LANE_DEVICES_MAX]; /* by device */
};

/* A thread's own, never freed. NULL: no memory. */
struct lane_set *lane_set_new(void);

/* The lane of @device in @own, NULL: of the process. NULL beyond LANE_DEVICES_MAX. */
struct lane *lane_find(struct lane_set *own, CUdevice device);

/* What is marked in @own, NULL: in the process. */
struct mark *lane_mark(struct lane_set *own);

/* From @from to @to, if it is still @from and that is a way to go. Return: whether. */
bool lane_set_state(struct lane *lane, uint32_t from, uint32_t to);

/* Until the state is no longer @from, or until @deadline (0: none). */
void lane_wait(struct lane *lane, uint32_t from, nsec_t deadline);

/*
 * Until the job that is DRAINING is over, or stopped. Return: false if that has taken too long
 * since @began: the job's kernels may wait for what the calling thread, or another one for which it
 * holds a lock, does next. Then the operation has to enter the job, and so may all that come in the
 * next moment. The next wait is shorter, and longer again after one that was not in vain.
 */
bool lane_wait_drained(struct lane *lane, nsec_t began);

/* So many threads of the program wait for a job: for another one to end, or for sbeetd. */
extern _Atomic unsigned lane_n_waiting;

/* Whether @job is the one that @lane has now, or one that it has put aside. */
bool lane_has(struct lane *lane, uint64_t job);

/* The present job, while CLOSING, is put aside; and it is not any more. */
void lane_put_aside(struct lane *lane);
void lane_take_aside(struct lane *lane, unsigned i);

/* DRAINING from now on, if a job is open. Wakes the tracker, which sees to its end. */
void lane_drain(struct lane *lane);

/* The job that is OPEN has its only operation, the caller's, which is inside: as lane_drain().
 * Return: false if another one was faster. */
bool lane_claim(struct lane *lane);

/* The daemon wants the SMs of @job back. @stop: for a while. From the connection's reader: only
 * leaves word. */
void lane_revoked(uint64_t job, bool stop);

/* The job of @lane is DRAINING, to be STOPPED. */
bool lane_is_stopping(struct lane *lane);

/* Whether single operations of @job, or, if it is 0, of all open jobs are recorded from now on. */
void lane_record_ops(uint64_t job, bool on);

/* The thread of @own is gone, and its marks with it: what they hold ends when it is complete. */
void lane_thread_gone(struct lane_set *own);

typedef void (*lane_visit_fn)(struct lane *lane, void *data);

/* Every lane that has a job, or has put one aside. */
void lane_for_each(lane_visit_fn visit, void *data);

/* A job has opened (1) or closed (-1); how many are open, and how many ever were. */
void lane_count_job(int change);
unsigned lane_count(void);
unsigned lane_opened(void);

/*
 * Waits until nobody is in the middle of CLOSING a job, or until @deadline if it is not 0. Who
 * closes reads the counters of the contexts that the job used: first take away what he would find
 * there, then call this, and he has his hands off it.
 */
void lane_settle(nsec_t deadline);

/* After fork, in the child: no job is open. */
void lane_after_fork(void);
