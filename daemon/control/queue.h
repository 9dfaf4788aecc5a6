/*
 * queue.h: the control connections of one user, which are answered one after the other.
 *
 * Answering the connections of a user takes at most a fifth of our time, however many they are:
 * what was spent is the user's debt (quota.h). While it is owed, the connections wait here in the
 * order in which they came, those with a question and those with an answer under way. So no
 * connection is answered before its turn, and other users' programs are served between any two
 * answers.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "proto/units.h"

struct control_queue;
struct event_base;
struct quota_user;

LIST_HEAD(control_queue_list, control_queue);

/* A connection's place in the queue. */
struct control_turn {
	TAILQ_ENTRY(control_turn) link;
	bool waits;		      /* in the queue */
	void (*come)(void *userdata); /* its turn has come; does not free the turn */
	void *userdata;
};

/* A reference to the queue of @user in @queues, which is made if need be; @base, @queues and the
 * user outlive it. Return: 0 or -ENOMEM. */
int control_queue_ref(struct control_queue **ret, struct control_queue_list *queues,
		      struct event_base *base, struct quota_user *user, clock_fn now);

/* Takes NULL. */
struct control_queue *control_queue_unref(struct control_queue *queue);

/* Whether the turn of a connection that has just come is now: nothing is owed, and no other waits.
 */
bool control_queue_is_free(const struct control_queue *queue);

/* Waits, if it does not already: then it is called once. */
void control_queue_add(struct control_queue *queue, struct control_turn *turn);

/* Waits no more. */
void control_queue_remove(struct control_queue *queue, struct control_turn *turn);
