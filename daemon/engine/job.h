/*
 * job.h: one job of a session, from its request to its end.
 *
 *	WAITING ---> RUNNING ---> PREEMPTED ---> STOPPED ---> WAITING
 *	   |            |             |             |
 *	   +------------+--> DONE <---+-------------+  (from WAITING: put aside)
 *	   +----------> ABANDONED <---+-------------+  (from RUNNING too)
 *
 * The session owns its jobs and charges for them; the engine borrows those that wait or run.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/core/sched.h"
#include "proto/granted-job.h"
#include "sbeet.pb-c.h"

struct session;

enum job_state {
	JOB_WAITING,   /* asked for, no SMs yet */
	JOB_RUNNING,   /* holds SMs */
	JOB_PREEMPTED, /* its SMs were taken back, it may finish what it had launched */
	JOB_STOPPED,   /* it has, and holds none; its program may ask to go on with it */
	JOB_DONE,      /* complete */
	JOB_ABANDONED, /* cancelled, or its process is gone */
	_JOB_STATE_N,
};

struct job {
	TAILQ_ENTRY(job) link;	 /* the session's list */
	struct session *session; /* borrowed, outlives us */
	enum job_state state;
	struct granted_job record; /* what outlives us; what was granted, from RUNNING on */

	/* What is asked for. */
	uint64_t owner;
	unsigned allocation; /* that confines it; 0: none does */
	bool alone;	     /* no other program is in that allocation */
	const struct profile_table *profile; /* of a job that no policy decides about; borrowed
					      * until its session's task changes; NULL: unknown */
	const char *label;  /* borrowed from the session: its task's name; NULL: none */
	sched_task_id task; /* SCHED_TASK_NONE: nothing is known of its times */
	size_t gpu;	  /* from RUNNING on, the one that it was granted */
	uint32_t gpus;	  /* mask: it could run on these as well; 0: on that one only */
	unsigned sm_step; /* with ENFORCEMENT_GREEN: of how many SMs its groups are */
	uint32_t apart;	  /* as of struct sched_job */
	enum sched_class job_class;
	struct job_spec spec; /* its task's, when it was requested */
	nsec_t release;	      /* when it was requested or before, see task_release() */
	bool woken;	      /* its program slept until it was released */
	bool within_period;   /* it began no period, see session_counters; known at its end */
	nsec_t own_deadline;  /* from there, as its program has marked it; 0: its task's */
	enum sched_stop stop; /* what can stop it: see means.h */
	nsec_t stop_takes;    /* at most so far; 0: not measured */
	nsec_t stop_told;     /* when its program was last told to stop it; 0: never */
	bool aside;	      /* it was stopped, and its work is on the GPU all the same */
	unsigned level;	      /* of its streams, 0 to PROTO_TERMS_LEVEL_MAX, as granted */
	bool continued;	      /* it has been stopped, */
	nsec_t ran;	      /* after it had held SMs for so long; 0: not continued */

	sched_job_id sched_id; /* SCHED_JOB_NONE: not in the engine */
	/* The word of the terms that it runs under (proto/terms.h): it holds no SMs, and is not in
	 * the engine; 0: it was granted. */
	uint64_t terms;

	nsec_t accounted;    /* since when its energy counts; 0: it does not */
	uint32_t dynamic_mw; /* P_d on its SMs; 0: not known */

	uint64_t launches;	      /* recorded so far */
	nsec_t launched;	      /* when the first one was, of those; 0: none yet */
	nsec_t kernel_end;	      /* of the last one, once finished; 0: not known */
	nsec_t finished;	      /* as far as its process can be believed; 0: it has not */
	bool unconfined;	      /* one of them could not be kept to its part of the GPU */
	bool cold;		      /* see JobDone in sbeet.proto; once finished */
	bool inherited;		      /* granted by the daemon before this one */
	bool records_ops;	      /* its process was told to send single operations */
	bool told_late, told_overrun; /* see late.h */
};

TAILQ_HEAD(job_list, job);

/* A job that waits; all other fields are the caller's to fill. NULL: no memory. */
struct job *job_new(struct session *session, uint64_t number);

/* The job of this record, on GPU @gpu; released when it was requested. NULL: no memory. */
struct job *job_from_record(struct session *session, const struct granted_job *record, size_t gpu);

/* Takes NULL. Must be neither in a list nor in the engine. */
struct job *job_free(struct job *job);

/* Asserts that the table allows it. */
void job_set_state(struct job *job, enum job_state state);

/* Its two delays: from its release to its request, and from its request to its grant (until @now if
 * it waits). Together they are the time from release to grant. */
nsec_t job_started_late(const struct job *job);
nsec_t job_waited(const struct job *job, nsec_t now);

/* How its SM set is really held: as granted, until a launch says that it was not. */
Sbeet__Enforcement job_enforcement(const struct job *job);

/* "waiting", ... */
const char *job_state_name(enum job_state state);
