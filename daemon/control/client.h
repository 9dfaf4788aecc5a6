/*
 * client.h: a connection of sbeetctl: hears requests, sends what answers them. What requests are
 * and do is in control.h.
 *
 * An answer has as many packets as it takes; long ones come in pieces, see answer.h. What the peer
 * has not read yet is kept and charged to its user; no further question is read before. One that
 * reads nothing for five seconds is disconnected.
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "control.pb-c.h"
#include "daemon/control/queue.h"
#include "proto/limits.h"

struct account;
struct control_client;
struct engine;
struct gate;
struct history;
struct inventory;
struct job;
struct mps;
struct quota_user;
struct reload;
struct report;
struct session;
struct sessions;
struct steer;
struct subscriber;
struct subscribers;
struct task_save;
struct totals;
struct watched;

struct control_packet;	/* an answer's packet that waits to be sent */
struct ending_question; /* about the end of a program: ending.h */

/* A long answer that is under way: answer.h. */
struct answer {
	TAILQ_ENTRY(answer) link;      /* struct control's list of those that go on */
	struct control_client *client; /* borrowed, owns us */
	/* The next piece. Return: whether it was the last. NULL: nothing is being answered. */
	bool (*step)(struct control_client *client, struct answer *a);
	uint32_t id; /* of the question */
	nsec_t began;

	/* Of sessions: the next one, or, once it was told of, its next job. */
	struct session *session;
	struct job *job;
	bool told;

	/* Of decisions, by number. */
	uint64_t next, end, wanted_session, wanted_job;
	bool complete;

	/* Of kernels: of `session` from id `next` on; with `wanted_session`, of that alone. */
	uint64_t n_left_out, n_hidden;

	/* Of runs: place `next` on, those whose number is below `end`; "": of every task and run. */
	char task[PROTO_NAME_MAX + 1], run[PROTO_NAME_MAX + 1];
	uint32_t n_connected;
};

TAILQ_HEAD(answer_list, answer);

struct control_client {
	TAILQ_ENTRY(control_client) link; /* its list */
	struct control *control;	  /* borrowed, outlives us */
	struct quota_user *user;	  /* reference */
	struct ucred cred;
	bool has_asked, power; /* power: root's, when it first asked */
	int fd; /* owned */
	struct event readable, writable;
	struct event resumed;		      /* pending: nothing is read until then */
	struct control_queue *queue;	      /* reference: its user's */
	struct control_turn turn;	      /* in the queue */
	STAILQ_HEAD(, control_packet) unsent; /* owned, charged */
	struct answer answer;
	struct subscriber *subscriber; /* owned; NULL: is not told what happens */
	bool at_gate;  /* has not been heard yet, because its process comes so often */
	bool faulty;   /* has violated the protocol */
	size_t n_told; /* sessions and jobs, in one piece, when it began to watch */
	bool ended;

	LIST_HEAD(, ending_question) endings; /* owned: that wait for MPS */
};

TAILQ_HEAD(control_list, control_client);

/* All control connections, and what they are served with. */
struct control {
	/* Set before control_init(); borrowed, outlive us. */
	struct event_base *base;
	clock_fn now;
	struct engine *engine;
	struct inventory *inventory;
	struct mps *mps; /* NULL: off */
	struct reload *reload;
	struct gate *gate;
	struct sessions *sessions;
	struct steer *steer;
	const struct account *account;
	const struct history *history;
	const struct watched *watched;
	struct report *report;
	struct subscribers *subscribers;
	struct totals *totals;
	void *buffer; /* PROTO_PACKET_MAX: every packet is received here and unpacked at once */

	/* The rest is control_init()'s. */

	/* A packet of so many bytes is in @buffer; the next piece of the answer may be sent; all
	 * that was kept for the peer has been sent; the connection has ended. */
	void (*heard)(struct control_client *client, size_t n);
	void (*more)(struct control_client *client);
	void (*idle)(struct control_client *client);
	void (*gone)(struct control_client *client);

	struct control_list clients;
	struct control_list ended;   /* to be freed when no callback of theirs runs */
	struct answer_list answers;  /* of clients, which own them */
	struct control_queue_list queues;
	struct task_save *task_save; /* NULL: no task is being saved */
};

#define CONTROL_E_QUOTA	  1
#define CONTROL_E_REFUSED 2

/* Somebody has connected: a new one in @control's list. Consumes @fd on success only. Return: 0;
 * CONTROL_E_REFUSED (logged); or negative errno. */
int control_client_new(struct control_client **ret, struct control *control, int fd);

/* It has ended, or has just been made. */
void control_client_free(struct control_client *client);

/* A packet of an answer: now, or as soon as the peer has read what comes before. */
void control_client_send(struct control_client *client, Sbeet__Control__Reply *reply);

/* An answer that is an error. */
void control_client_error(struct control_client *client, uint32_t id, Sbeet__ErrorCode code,
			  const char *text);

/* It violates the protocol: is told so, and ends. @id: of its request; 0: none. */
void control_client_fail(struct control_client *client, uint32_t id, const char *why);

/* A question was answered, or a piece was: hears the next question when the answer is complete. */
void control_client_answered(struct control_client *client);

/* Whether no packet waits to be sent; to be told (for its subscriber) when the socket has room. */
bool control_client_is_idle(const struct control_client *client);
void control_client_wait_writable(struct control_client *client);

/* Hears nothing more; control_reap() frees it. */
void control_client_end(struct control_client *client);
