/*
 * sessions.h: all sessions, and what they share: the parts of sbeetd that serve them, what every
 * program is told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/absent.h"
#include "daemon/session/session.h"

struct awake;
struct engine;
struct gate;
struct inventory;
struct learn;
struct ledger;
struct mps;
struct profiles;
struct quota;
struct reload;

struct sessions {
	/* Set before sessions_init(); borrowed, outlive us. */
	struct event_base *base;
	clock_fn now;
	struct engine *engine; /* grants with session_job_grant() */
	struct inventory *inventory;
	const struct profiles *profiles;
	struct ledger *ledger;
	struct learn *learn; /* NULL: off */
	struct mps *mps;     /* NULL: off */
	const struct reload *reload;
	struct quota *quota;
	struct gate *gate;
	struct awake *awake;
	void *buffer; /* PROTO_PACKET_MAX: every packet is received here and unpacked at once */
	session_event_fn tell;
	void *userdata; /* of tell() */

	/* May change at any time. */
	nsec_t linger; /* told to every shim */
	nsec_t spin;   /* likewise */
	nsec_t drain;  /* how long SMs stay with a process that hung up while it runs jobs */

	/* Ours. */
	struct session_list list;  /* in the order they came */
	struct session_list ended; /* CLOSED: to be freed when no callback of theirs runs */
	struct absent_table absent;
	uint64_t next_id; /* of the next session */
	bool trusting;	  /* see resume_trust() */
	bool stopping;	  /* jobs that run go on without us */
};

void sessions_init(struct sessions *all);

/* The session with this number that has not ended; NULL: there is none. */
struct session *sessions_find(const struct sessions *all, uint64_t id);

/* @s is CLOSED: it leaves the list. */
void sessions_remove(struct session *s);

/* Frees those that have ended. Not to be called from a callback of a session. */
void sessions_reap(struct sessions *all);
