/*
 * answer.c: see answer.h.
 */
#include "daemon/control/answer.h"

#include "daemon/base/util.h"
#include "daemon/session/session.h"

/* Beyond the first 10 ms, answering a client takes at most a fifth of our time, one answer after
 * the other with a pause: programs wait meanwhile. */
#define ANSWER_SHARE 5
#define ANSWER_BURST (50 * NSEC_PER_MSEC)

static void stop(struct answer *a) {
	if (a->step) {
		a->step = NULL;
		event_del(&a->more);
		TAILQ_REMOVE(&a->client->control->answers, a, link);
	}
}

static void next_piece(struct answer *a) {
	if (a->step(a->client, a)) {
		stop(a);
	}
}

/* The next piece comes after @wait, and when others have had their turn. */
static void go_on(struct control_client *client, nsec_t wait) {
	struct answer *a = &client->answer;
	struct timeval t = nsec_timeval(wait);

	a->has_waited = wait > 0;
	/* While the peer does not read, answer_resume() will do it. */
	if (control_client_is_idle(client) && event_add(&a->more, &t) < 0) {
		control_client_end(client);
	}
}

void answer_paced(struct control_client *client, nsec_t began) {
	nsec_t now = client->control->now();
	nsec_t wait = pace_add(&client->pace, ANSWER_SHARE * (now - began), ANSWER_BURST, now);

	if (client->ended) {
		return;
	}
	control_client_rest(client, wait);
	if (client->answer.step) {
		go_on(client, wait);
	}
}

static void on_more(evutil_socket_t fd, short what, void *userdata) {
	struct answer *a = userdata;
	nsec_t now = a->client->control->now();

	if (a->has_waited) { /* what the timer overslept is not to be made up for */
		pace_settle(&a->client->pace, now);
	}
	next_piece(a);
	answer_paced(a->client, now);
}

void answer_init(struct control_client *client) {
	struct answer *a = &client->answer;

	a->client = client;
	a->step = NULL;
	event_assign(&a->more, client->control->base, -1, EV_TIMEOUT, on_more, a);
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
	if (client->answer.step && !event_pending(&client->answer.more, EV_TIMEOUT, NULL)) {
		go_on(client, 0);
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
