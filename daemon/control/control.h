/*
 * control.h: all control connections, and what handles each request.
 */
#pragma once

#include "daemon/control/client.h"

void control_init(struct control *control);

/* All clients have been reaped. */
void control_deinit(struct control *control);

/* Somebody has connected. Return: as control_client_new(). */
int control_accept(struct control *control, int fd);

/* They leave their lists: no answer tells of them any more. */
void control_session_gone(struct control *control, const struct session *s);
void control_job_gone(struct control *control, const struct job *job);

/* Frees those that have ended. Not to be called from a callback of a client. */
void control_reap(struct control *control);

/* Ends all. */
void control_stop(struct control *control);
