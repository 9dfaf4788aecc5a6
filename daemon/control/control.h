/*
 * control.h: connections of sbeetctl: questions about the daemon's state.
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
#include "daemon/base/pace.h"
#include "daemon/control/answer.h"
#include "daemon/control/subscriber.h"

struct account;
struct engine;
struct gate;
struct inventory;
struct late;
struct mps;
struct quota_user;
struct reload;
struct report;
struct sessions;
struct task_save;
struct totals;
struct watched;

struct control_packet;	/* an answer's packet that waits to be sent */
struct ending_question; /* about the end of a program: ending.h */

struct control_client {
	TAILQ_ENTRY(control_client) link; /* its list */
	struct control *control;	  /* borrowed, outlives us */
	struct quota_user *user;	  /* reference */
	struct ucred cred;
	int fd; /* owned */
	struct event readable, writable;
	struct event resumed; /* pending: it has asked a lot, nothing is read until then */
	struct pace pace;
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
	const struct account *account;
	const struct watched *watched;
	struct report *report;
	struct late *late;
	struct totals *totals;
	void *buffer; /* PROTO_PACKET_MAX: every packet is received here and unpacked at once */

	/* Ours. */
	struct control_list clients;
	struct control_list ended;  /* to be freed when no callback of theirs runs */
	struct answer_list answers; /* of clients, which own them */
	struct subscribers subscribers;
	struct task_save *task_save; /* NULL: no task is being saved */
};

#define CONTROL_E_QUOTA	  1
#define CONTROL_E_REFUSED 2

void control_init(struct control *control);

/* All clients have been reaped. */
void control_deinit(struct control *control);

/* Somebody has connected. Consumes @fd on success only. Return: 0; CONTROL_E_REFUSED (logged); or
 * negative errno. */
int control_client_new(struct control *control, int fd);

/* They leave their lists: no answer tells of them any more. */
void control_session_gone(struct control *control, const struct session *s);
void control_job_gone(struct control *control, const struct job *job);

/* Frees those that have ended. Not to be called from a callback of a client. */
void control_reap(struct control *control);

/* Ends all. */
void control_stop(struct control *control);

/* A packet of an answer: now, or as soon as the peer has read what comes before. */
void control_client_send(struct control_client *client, Sbeet__Control__Reply *reply);

/* An answer that is an error. */
void control_client_error(struct control_client *client, uint32_t id, Sbeet__ErrorCode code,
			  const char *text);

/* It has been answered, or told a piece of the answer, which took from @began till now: it is heard
 * again, or the answer goes on, when others have had their share of our time. */
void control_client_answered(struct control_client *client, nsec_t began);

/* Whether no packet waits to be sent; to be told (for its subscriber) when the socket has room. */
bool control_client_is_idle(const struct control_client *client);
void control_client_wait_writable(struct control_client *client);

/* Hears nothing more; control_reap() frees it. */
void control_client_end(struct control_client *client);
