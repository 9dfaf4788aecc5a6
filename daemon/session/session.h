/*
 * session.h: one connection of the shim: one process.
 *
 * Here is its life; what it hears is in session-hear.h, what it says in session-say.h, its jobs in
 * session-job.h, its task in session-task.h.
 *
 *	NEW ----> ACTIVE ----> DRAINING
 *	  \          |            |
 *	   +---------+------------+----> CLOSED
 *
 * Owns its descriptors, its jobs and every charge made for it. The sessions own it and
 * free it some time after it was CLOSED, outside any callback of the session's.
 *
 * A process that hangs up while its jobs run may live on, and so may its kernels: their SMs stay
 * its own until the process is dead, has executed another program, connects again, or for the drain
 * time, after which whatever ran is taken to be over. When it connects again it says which jobs it
 * still has: see resume.h, where sessions that a daemon before this one had come from too.
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "daemon/base/identity.h"
#include "daemon/config/task.h"
#include "daemon/engine/job.h"
#include "daemon/session/admission.h"
#include "daemon/session/board.h"
#include "daemon/session/kernels.h"
#include "daemon/session/owner.h"
#include "daemon/session/quiet.h"
#include "daemon/session/sessions.h"
#include "daemon/session/terms.h"
#include "daemon/session/work-seen.h"

struct quota_user;

enum session_state {
	SESSION_NEW,	  /* credentials read, Hello not seen yet */
	SESSION_ACTIVE,	  /* may declare kernels and ask for jobs */
	SESSION_DRAINING, /* has said goodbye or hung up; its running jobs end */
	SESSION_CLOSED,
	_SESSION_STATE_N,
};

/* Counted over the session's life; of jobs that have ended. */
struct session_counters {
	uint64_t energy_mj; /* dynamic, by the model; not kept over a restart */
	uint64_t jobs, jobs_partition, launches, copies, misses, outside_blocks;
	uint64_t unreported; /* jobs under terms that it could not tell of */
	nsec_t max_started_late, max_wait, max_response;
	nsec_t last_response; /* of the job that ended last */
	nsec_t max_response_since; /* sharing.h looked last */
	nsec_t responses;     /* of all, together */
	/* Of cold jobs (see JobDone in sbeet.proto), of the first COLD_MAX ones: they are late, if
	 * they are, whatever the terms. Not in max_response_since. Not kept over a restart. */
	uint64_t cold_jobs, cold_misses, cold_launches;
	nsec_t cold_responses;
	/* Of programs that were woken for them: jobs, and those that are late only if they were
	 * released PLAN_WAKE before they were requested. Not kept over a restart. */
	uint64_t woken, late_by_wake;
	/* Jobs that began no period of their own, see Run in control.proto; and when the job was
	 * released that began the last one. Not kept over a restart. */
	uint64_t within_period;
	nsec_t period_began;
};

/* What MPS is to the program, since it initialised CUDA. */
enum session_mps_state {
	SESSION_MPS_UNKNOWN, /* no Hello yet; taken as a client */
	SESSION_MPS_CLIENT,
	SESSION_MPS_NONE, /* it is no client, or one of another control daemon */
	SESSION_MPS_LOST, /* it was one of a control daemon that is gone */
	_SESSION_MPS_N,
};

struct session {
	TAILQ_ENTRY(session) link; /* the sessions' list */
	struct absent_entry absent;
	struct sessions *all;	 /* borrowed, outlive us */
	struct quota_user *user; /* reference */
	enum session_state state;
	uint64_t id;
	uint64_t line; /* the session that it goes on from (remembered.h), and so on: the first
			* one's number; its own if there was none */
	struct ucred cred;
	nsec_t connected;

	int fd;	   /* owned; -1: the peer has hung up, or was */
	int passed_fd; /* borrowed: came with the packet that is heard; -1: none */
	int pidfd; /* owned; -1: no Hello yet, or there was none to be had; then nothing tells of
		    * death */
	struct identity identity; /* of the process, from Hello on */
	struct event readable, dead, drained;
	bool answers_pings;
	bool stops;	     /* it can go on with a job that was stopped */
	bool levels;	     /* it can run a job at the level that its grant says */
	bool has_thread;     /* see PROTO_FEATURE_THREAD */
	bool replaced;	     /* its process has executed another program since */
	nsec_t stop_longest; /* that it took to stop a job, from Revoke to Stopped; 0: never yet */
	bool counts;	     /* it counts operations, and sends single ones when told to */
	bool record_ops;     /* somebody watches those */
	unsigned n_recorded; /* how often it was told so since a job of it ended */
	nsec_t pinged;	/* when it was asked whether it is there, and has not answered; 0: it has */
	nsec_t penance; /* for its last mistake nothing should be read for so long */
	struct event resumed; /* pending: it is too fast, nothing is read until then */
	nsec_t read_at;	      /* nothing is read before */
	nsec_t said;	      /* when it was last told anything */
	struct event gone;    /* pending: its hanging up would be noticed meanwhile */
	bool at_gate;	      /* has not been heard yet, because its process comes so often */
	bool mistaken;	      /* was told of a mistake */
	bool faulty;	      /* has violated the protocol */
	bool said_goodbye;    /* its program did */
	bool dismissed;	      /* we did */
	unsigned n_left;      /* jobs that it had when it hung up */
	unsigned n_disowned;  /* jobs of its Hello that it was told to end, and may report */
	bool replayed;	      /* what it says now was said to the daemon before this one */
	bool task_known;      /* and its task is what that one made of it */
	struct quiet quiet;   /* somebody is about to end it */

	/* from Hello */
	char program[PROTO_NAME_MAX + 1];
	char run[PROTO_NAME_MAX + 1]; /* what it was started with; "": nothing */
	struct task_spec task;
	unsigned allocation; /* attached to it; 0: to none */
	struct releases releases;
	sched_task_id sched_task; /* SCHED_TASK_NONE: no profile is known */
	unsigned placed;	  /* the GPU that was chosen for it, from 1; 0: none */
	bool task_changed;	  /* sched_task is not of this task any more */
	nsec_t cpu_priority_read; /* for a job under terms; 0: never */
	int cpu_priority;	  /* of its process, for a task without one; as of its last job */
	int priority_max;	  /* that its user may have */
	/* Where its allocation has SMs, by GPU: no policy plans with them. Borrowed. */
	const struct profile_table *own_profiles[SCHED_GPUS_MAX];
	struct profile_table
		*learnt[SCHED_GPUS_MAX]; /* owned: of sched_task, where something was */
	Sbeet__Scope scope;
	uint32_t enforcement_mask;
	enum session_mps_state mps;
	uint32_t held; /* bit mask of those where a job was held by its allocation's green context */
	uint32_t gpus; /* bit mask of those it was told to use, or has used */

	struct kernels kernels;

	struct session_terms terms; /* where it runs without asking */
	bool takes_board;	    /* it can hold its copies */
	struct board_seat seat;	    /* since it does, or is an owner */
	struct session_owner owner; /* of channel groups, where it runs by time slices */

	struct job_list jobs; /* waiting and running */
	unsigned n_jobs;
	nsec_t replayed_release; /* while `replayed`: of the job that it requests; 0: unknown */

	struct session_counters counters;
	struct history_run *history; /* borrowed, watch/history.h's; NULL: it has none, or lost it */
	bool had_history;
	nsec_t miss_logged;	/* when the log was last told of a missed deadline; 0: never */
	uint64_t misses_unlogged; /* since then */
	uint64_t history_mj; /* of counters.energy_mj, what the history has */
	struct work_seen seen; /* since its task was set */
};

#define SESSION_E_QUOTA	  1
#define SESSION_E_REFUSED 2

/*
 * Reads the peer's credentials and starts to listen to it. Consumes @fd on success only. Return: 0,
 * SESSION_E_REFUSED (logged, and the peer was told), or negative errno.
 */
int session_new(struct session **ret, struct sessions *all, uint64_t id, int fd,
		enum admission_kind kind);

/* The session of a process that was connected to the daemon before this one, as user @uid: DRAINING
 * from its start. Return: as session_new(); -ESRCH: it is dead, also if its number is another's by
 * now. */
int session_new_absent(struct session **ret, struct sessions *all, uint64_t id, uid_t uid,
		       const struct identity *identity);

/* Says why and hangs up: the program goes on unmanaged. What it runs keeps its SMs as after any
 * other end of a connection. */
void session_dismiss(struct session *s, const char *reason);

/* Says why we leave, if the peer's buffer has room, and ends: all jobs are abandoned, nothing more
 * is heard, sessions_reap() frees it. */
void session_goodbye(struct session *s, const char *reason);

/* Ends without a word. */
void session_end(struct session *s);

/* The same, but the connection goes on: somebody else has its socket. */
void session_hand_over(struct session *s);

/* Ends the connection. The session lives on while jobs run whose kernels may do so too. */
void session_hang_up(struct session *s);

/* From now on the process's death is noticed, as far as it can be. Return: 0, -ESRCH: it is dead
 * already; or another negative errno. */
int session_watch_process(struct session *s);

/* Asserts that the table allows it. */
void session_set_state(struct session *s, enum session_state state);

/* "new", "active", ... */
const char *session_state_name(enum session_state state);

/* See enum session_event. */
void session_tell(struct session *s, enum session_event event, struct job *job);

/* The session with this number that has not ended; NULL: there is none. */
struct session *sessions_find(const struct sessions *all, uint64_t id);

/* Frees those that have ended. Not to be called from a callback of a session. */
void sessions_reap(struct sessions *all);
