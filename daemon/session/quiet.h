/*
 * quiet.h: a session that starts nothing more while somebody (control/ending.h) wants its program
 * ended: what waits, or is asked for from now on, is withheld from the engine; what runs is revoked
 * and may end.
 */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"

struct session;

/* Nothing runs any more; or, @running, the time is over. Called once, with what quiet_begin() was
 * given. */
typedef void (*quiet_fn)(void *asker, uint32_t request, const struct session *s, bool running);

/* Part of a session. */
struct quiet {
	void *asker; /* borrowed; NULL: the session is not quiet */
	uint32_t request;
	quiet_fn done;
	bool told;	    /* done() was called */
	struct event timer; /* of the time; without an asker: to go on */
};

/* Once, before all else. */
void quiet_init(struct session *s);

/* From now on the session is quiet, until quiet_end() or its own end. @asker is not NULL. Calls
 * @done at once if nothing runs, else after @limit at the latest. Return: 0; -EBUSY: it is quiet
 * already; -ENOMEM. */
int quiet_begin(struct session *s, nsec_t limit, quiet_fn done, void *asker, uint32_t request);

/* @asker is gone: if it was the one who asked, the session goes on after this turn of the loop. */
void quiet_end(struct session *s, const void *asker);

/* Whether a job of the session holds SMs. */
bool quiet_runs(const struct session *s);

/* Whether its jobs must not go to the engine now: they wait in its list. */
bool quiet_withholds(const struct session *s);

/* One of its jobs has left the list; all have, and the session ends. */
void quiet_job_gone(struct session *s);
void quiet_session_gone(struct session *s);
