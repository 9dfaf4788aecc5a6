/*
 * sessions.h: all sessions, and what they share: the parts of sbeetd that serve them, the settings
 * that concern them, and whom they tell what happens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/session/absent.h"
#include "daemon/session/board.h"
#include "daemon/session/remembered.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

struct allocations;
struct awake;
struct engine;
struct event_base;
struct gate;
struct inventory;
struct job;
struct learn;
struct ledger;
struct mps;
struct preempter;
struct profiles;
struct table_file;
struct quota;
struct reload;
struct session;

TAILQ_HEAD(session_list, session);

/* What sessions tell the server, which passes it on to those who watch or serve them. Jobs are told
 * of while they are in their session's list. */
enum session_event {
	SESSION_EVENT_START,   /* its process is known: by its Hello, or from the daemon before */
	SESSION_EVENT_END,     /* one that has started ends */
	SESSION_EVENT_WELCOME, /* about to be welcomed: its terms can be written */
	SESSION_EVENT_TERMS,   /* what its terms depend on has changed: see steer.h */
	SESSION_EVENT_PLACE,   /* it needs a place in the process that preempts: has one, or is left
				  out */
	SESSION_EVENT_GONE,    /* CLOSED, also one that never started: about to leave the list */
	SESSION_EVENT_FAULT,   /* it violates the protocol */
	SESSION_EVENT_UNREPORTED, /* it could not tell of jobs: sessions.unreported has grown */
	SESSION_EVENT_REQUEST,
	SESSION_EVENT_GRANT,
	SESSION_EVENT_RESUME, /* granted before, and this session's from now on */
	SESSION_EVENT_REVOKE,
	SESSION_EVENT_STOP, /* stopped: it has given its SMs back */
	SESSION_EVENT_DONE, /* complete: finished, launched and launches are set */
	SESSION_EVENT_ABANDON,
	SESSION_EVENT_LEAVE, /* the job is about to leave the list */
};

/* @job: NULL where it is of the session. Must not free the session or the job. */
typedef void (*session_event_fn)(void *userdata, enum session_event event, struct session *s,
				 struct job *job);

/* Single operations of a job of @s, while s->record_ops. */
typedef void (*session_ops_fn)(void *userdata, struct session *s, const Sbeet__OpBatch *batch);

struct sessions {
	/* Set before sessions_init(); borrowed, outlive us. */
	struct event_base *base;
	clock_fn now;
	struct engine *engine; /* grants with means_granted() */
	struct inventory *inventory;
	const struct profiles *profiles;
	const struct table_file *table; /* NULL: none */
	struct ledger *ledger;
	struct allocations *allocations;
	struct learn *learn; /* NULL: off */
	struct mps *mps;     /* NULL: off */
	const struct reload *reload;
	struct quota *quota;
	struct gate *gate;
	struct awake *awake;
	void *buffer; /* PROTO_PACKET_MAX: every packet is received here and unpacked at once */
	session_event_fn tell;
	session_ops_fn tell_ops;
	void *userdata; /* of both */

	uint64_t unreported; /* jobs under terms that programs could not tell of, ever */

	/* May change at any time. */
	nsec_t linger;		     /* told to every shim */
	nsec_t spin;		     /* likewise */
	struct preempter *preempter; /* steer.h's; NULL: none runs */
	nsec_t drain; /* how long SMs stay with a process that hung up while it runs jobs */

	/* Ours. */
	struct session_list list;  /* in the order they came */
	struct session_list ended; /* CLOSED: to be freed when no callback of theirs runs */
	struct board_list boards;  /* of those who hold their copies */
	struct absent_table absent;
	struct remembered remembered; /* programs that have ended */
	uint64_t next_id;	      /* of the next session */
	bool trusting;		      /* see resume_trust() */
	bool stopping;		      /* jobs that run go on without us */
};

void sessions_init(struct sessions *all);
