/*
 * queue.c: see queue.h.
 */
#include "daemon/control/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/quota.h"
#include "daemon/base/timer.h"

struct control_queue {
	LIST_ENTRY(control_queue) link;
	struct quota_user *user; /* borrowed: its clients hold it */
	unsigned n_refs;
	clock_fn now;
	TAILQ_HEAD(, control_turn) waiting;
	struct timer timer; /* set while a client waits */
};

static void wait_for_turn(struct control_queue *queue) {
	if (!TAILQ_EMPTY(&queue->waiting)) {
		timer_set(&queue->timer, quota_answers_owed(queue->user, queue->now()));
	}
}

/* One at a time: others are served before the next. */
static void on_turn(evutil_socket_t fd, short what, void *userdata) {
	struct control_queue *queue = userdata;
	struct control_turn *turn = TAILQ_FIRST(&queue->waiting);

	if (quota_answers_owed(queue->user, queue->now()) == 0) {
		control_queue_remove(queue, turn);
		turn->come(turn->userdata);
	}
	wait_for_turn(queue);
}

int control_queue_ref(struct control_queue **ret, struct control_queue_list *queues,
		      struct event_base *base, struct quota_user *user, clock_fn now) {
	struct control_queue *queue;

	LIST_FOREACH(queue, queues, link) {
		if (queue->user == user) {
			queue->n_refs++;
			*ret = queue;
			return 0;
		}
	}
	queue = calloc(1, sizeof(*queue));
	if (!queue) {
		return -ENOMEM;
	}
	queue->user = user;
	queue->n_refs = 1;
	queue->now = now;
	TAILQ_INIT(&queue->waiting);
	timer_init(&queue->timer, base, on_turn, queue);
	LIST_INSERT_HEAD(queues, queue, link);
	*ret = queue;
	return 0;
}

struct control_queue *control_queue_unref(struct control_queue *queue) {
	if (queue && --queue->n_refs == 0) {
		timer_stop(&queue->timer);
		LIST_REMOVE(queue, link);
		free(queue);
	}
	return NULL;
}

bool control_queue_is_free(const struct control_queue *queue) {
	return TAILQ_EMPTY(&queue->waiting) && quota_answers_owed(queue->user, queue->now()) == 0;
}

void control_queue_add(struct control_queue *queue, struct control_turn *turn) {
	if (!turn->waits) {
		turn->waits = true;
		TAILQ_INSERT_TAIL(&queue->waiting, turn, link);
		if (!timer_is_set(&queue->timer)) {
			wait_for_turn(queue);
		}
	}
}

void control_queue_remove(struct control_queue *queue, struct control_turn *turn) {
	if (turn->waits) {
		turn->waits = false;
		TAILQ_REMOVE(&queue->waiting, turn, link);
		if (TAILQ_EMPTY(&queue->waiting)) {
			timer_stop(&queue->timer);
		}
	}
}
