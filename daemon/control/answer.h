/*
 * answer.h: a long answer to a control connection, in pieces.
 *
 * Between two pieces the loop serves whoever has something to say, and there is a pause as soon as
 * answering has taken its user's share of our time (queue.h), or while the peer does not read. So
 * an answer's length delays nobody, and no more of it is kept than the piece that the socket did
 * not take. No further question is heard meanwhile. Each connection has one at a time, and owns it.
 */
#pragma once

#include "daemon/control/client.h"

void answer_init(struct control_client *client);
void answer_deinit(struct control_client *client);

/* Sends the first piece of an answer to the question @id, and notes the time @now. What @step needs
 * is filled in. */
void answer_begin(struct control_client *client, uint32_t id, nsec_t now,
		  bool (*step)(struct control_client *client, struct answer *a));

/* Answering, or a piece of it, took from @began till now: the client is heard again, or the answer
 * goes on, when others have had their share of our time. */
void answer_paced(struct control_client *client, nsec_t began);

/* The turn of its client has come: the next piece. */
void answer_next(struct control_client *client);

/* The peer has read what was kept for it. */
void answer_resume(struct control_client *client);

/* They leave their lists: what @answers tell next is what follows them. */
void answers_session_gone(struct answer_list *answers, const struct session *s);
void answers_job_gone(struct answer_list *answers, const struct job *job);
