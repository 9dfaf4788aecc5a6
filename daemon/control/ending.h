/*
 * ending.h: the end of sessions and programs, as sbeetctl asks for it.
 *
 * A program that dies in the middle of a kernel can take its neighbours on a GPU with it, and under
 * MPS those that start within the next seconds too. So whoever wants to end one can have it made
 * quiet before: what waits, or is asked for from now on, is withheld; what runs is revoked and may
 * end. That lasts as long as the connection that asked. Where something runs after the given time
 * still, MPS is asked to end the program as a client. Signals are the asking side's.
 */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>

#include "daemon/control/control.h"

struct session;

/* Of a session: who wants it quiet. */
struct ending {
	struct control_client *client; /* borrowed; NULL: nobody */
	uint32_t request;	       /* of that one */
	bool answered;		       /* it is, or its time was over */
	struct event timer;	       /* of that time; without a client: to go on */
};

void ending_kill_session(struct control_client *client, const Sbeet__Control__Request *request);

/* For sessions. Once, before all else. */
void ending_init(struct session *s);
/* Whether its jobs must not go to the engine now: they wait in its list. */
bool ending_withholds(const struct session *s);
/* One of its jobs has left the list; all have. */
void ending_job_gone(struct session *s);
void ending_session_gone(struct session *s);

/* It asks no more: what it wanted quiet goes on. */
void ending_client_gone(struct control_client *client);
