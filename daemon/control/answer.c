/*
 * answer.c: see answer.h.
 */
#include "daemon/control/answer.h"

#include "daemon/base/quota.h"
#include "daemon/session/session.h"

/* What takes longer is not the user's doing: sbeetd was stopped in the middle. */
#define PIECE_MAX_NS (10 * NSEC_PER_MSEC)

static void stop(struct answer *a) {
	if (a->step) {
		a->step = NULL;
		TAILQ_REMOVE(&a->client->control->answers, a, link);
	}
}

static void next_piece(struct answer *a) {
	if (a->step(a->client, a)) {
		stop(a);
	}
}

/* The next piece comes when others have had their turn. While the peer does not read,
 * answer_resume() will do it. */
static void go_on(struct control_client *client) {
	if (control_client_is_idle(client)) {
		control_queue_add(client->queue, &client->turn);
	}
}

void answer_paced(struct control_client *client, nsec_t began) {
	nsec_t now = client->control->now(), spent = now - began;

	quota_answered(client->user, spent < PIECE_MAX_NS ? spent : PIECE_MAX_NS, now);
	if (client->ended) {
		return;
	}
	control_client_answered(client);
	if (client->answer.step) {
		go_on(client);
	}
}

void answer_next(struct control_client *client) {
	nsec_t began = client->control->now();

	next_piece(&client->answer);
	answer_paced(client, began);
}

void answer_init(struct control_client *client) {
	struct answer *a = &client->answer;

	a->client = client;
	a->step = NULL;
}

void answer_deinit(struct control_client *client) {
	stop(&client->answer);
}

void answer_begin(struct control_client *client, uint32_t id, nsec_t now,
		  bool (*step)(struct control_client *client, struct answer *a)) {
	struct answer *a = &client->answer;

	if (client->ended) {
		return; /* it did not take what came before the first piece */
	}
	a->id = id;
	a->began = now;
	a->step = step;
	TAILQ_INSERT_TAIL(&client->control->answers, a, link);
	next_piece(a);
}

void answer_resume(struct control_client *client) {
	if (client->answer.step) {
		go_on(client);
	}
}

void answers_session_gone(struct answer_list *answers, const struct session *s) {
	struct answer *a;

	TAILQ_FOREACH(a, answers, link) {
		if (a->session == s) {
			a->session = TAILQ_NEXT(s, link);
			a->job = NULL;
			a->told = false;
		}
	}
}

void answers_job_gone(struct answer_list *answers, const struct job *job) {
	struct answer *a;

	TAILQ_FOREACH(a, answers, link) {
		if (a->job == job) {
			a->job = TAILQ_NEXT(job, link);
		}
	}
}
