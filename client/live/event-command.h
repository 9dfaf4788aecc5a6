/*
 * event-command.h: a command of the user's that is run for events: the event on its standard input,
 * as JSON, and the main of it in its environment. Nobody waits for it: what comes while as many run
 * as may is not given to it, and that is said.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "proto/units.h"

#define EVENT_COMMANDS_MAX 32

struct event;

struct event_command {
	const char *command; /* for sh -c; borrowed, outlives us */
	unsigned max;	     /* of it at once, up to EVENT_COMMANDS_MAX */

	/* Ours; zero at first. */
	pid_t pids[EVENT_COMMANDS_MAX]; /* of those that run; 0: free */
	uint64_t dropped;		/* since it was last started */
	uint64_t untold;		/* of these, since that was last said */
	nsec_t told;			/* when */
};

/* Runs it for @e, or says that it can't. */
void event_command_run(struct event_command *c, const struct event *e);

/* From time to time: notes which have ended, and says what was dropped. */
void event_command_look(struct event_command *c);

/* Waits until none runs any more, or a signal ends the verb (stop.h); says what was dropped and not
 * said yet. */
void event_command_finish(struct event_command *c);
