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

struct quota_user;
struct server;
struct subscriber;

struct control_packet;	/* an answer's packet that waits to be sent */
struct ending_question; /* about the end of a program: ending.h */

struct control_client {
	TAILQ_ENTRY(control_client) link; /* the server's list */
	struct server *server;		  /* borrowed, outlives us */
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

#define CONTROL_E_QUOTA	  1
#define CONTROL_E_REFUSED 2

/* Consumes @fd on success only. Return: 0; CONTROL_E_REFUSED (logged); or negative errno. */
int control_client_new(struct control_client **ret, struct server *server, int fd);

/* Takes NULL. */
struct control_client *control_client_free(struct control_client *client);

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

/* Hears nothing more; the server will free it. */
void control_client_end(struct control_client *client);
