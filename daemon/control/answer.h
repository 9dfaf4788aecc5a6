/*
 * answer.h: a long answer to a control connection, in pieces.
 *
 * Between two pieces the loop serves whoever has something to say, and there is a pause as soon as
 * answering has taken its share of our time, or while the peer does not read. So an answer's length
 * delays nobody, and no more of it is kept than the piece that the socket did not take. No further
 * question is heard meanwhile. Each connection has one at a time, and owns it.
 */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/base/pace.h"

struct control_client;
struct job;
struct session;

struct answer {
	TAILQ_ENTRY(answer) link;      /* struct control's list of those that go on */
	struct control_client *client; /* borrowed, owns us */
	struct event more;
	/* The next piece. Return: whether it was the last. NULL: nothing is being answered. */
	bool (*step)(struct control_client *client, struct answer *a);
	uint32_t id; /* of the question */
	nsec_t began;
	bool has_waited; /* for its share, before the piece that comes */

	/* Of sessions: the next one, or, once it was told of, its next job. */
	struct session *session;
	struct job *job;
	bool told;

	/* Of decisions, by number. */
	uint64_t next, end, wanted_session, wanted_job;
	bool complete;

	/* Of kernels: of `session` from id `next` on; with `wanted_session`, of that alone. */
	uint64_t n_left_out, n_hidden;
};

TAILQ_HEAD(answer_list, answer);

void answer_init(struct control_client *client);
void answer_deinit(struct control_client *client);

/* Sends the first piece of an answer to the question @id, and notes the time @now. What @step needs
 * is filled in. */
void answer_begin(struct control_client *client, uint32_t id, nsec_t now,
		  bool (*step)(struct control_client *client, struct answer *a));

/* The next piece comes after @wait, and when others have had their turn. */
void answer_go_on(struct control_client *client, nsec_t wait);

/* The peer has read what was kept for it. */
void answer_resume(struct control_client *client);

/* Whether a question is being answered still. */
bool answer_goes_on(const struct control_client *client);

/* They leave their lists: what @answers tell next is what follows them. */
void answers_session_gone(struct answer_list *answers, const struct session *s);
void answers_job_gone(struct answer_list *answers, const struct job *job);
