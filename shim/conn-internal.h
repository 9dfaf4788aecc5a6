/*
 * conn-internal.h: what the files of the connection (conn.h) share: conn.c makes and ends it,
 * conn-hear.c hands out what arrives, conn-say.c sends, conn-ask.c waits for an answer.
 *
 * One lock guards everything: all functions here are called with it held, but conn_enter(). One
 * thread at a time reads: it is marked in `reading` and reads without the lock. Whoever waits for a
 * grant and finds no reader reads for all; when its own grant is there it hands the role to the
 * next who waits. So a grant wakes the thread it is for, and no other.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"
#include "shim/ask.h"
#include "shim/enforce/enforce.h"
#include "shim/own-socket.h"
#include "shim/silence.h"

/* One thread that waits for an answer; on its stack. */
struct conn_waiter {
	struct conn_waiter *next;
	uint64_t job;
	bool answered;
	int result; /* 0, CONN_E_*; -ECONNRESET: sbeetd is gone; -EBADF: the program closed the
		       socket */
	const struct conn_ask *ask;
	struct enforce_grant grant;
	pthread_cond_t changed; /* answered, or the reader's role is free */
};

struct conn {
	pthread_mutex_t lock;
	struct own_socket socket;
	bool reading;
	bool close_pending;   /* it is given up but its reader has not come back yet */
	pthread_cond_t quiet; /* nobody reads any more */
	struct conn_waiter *waiters;
	struct silence silence; /* of the daemon, while threads wait for it */
	bool silent;		/* it has left a Ping unanswered for too long */
	uint64_t requested;	/* the highest number of a job that was asked for */
	bool owes; /* jobs were held when the connection was lost: a daemon is to be told of their
		      fate */
	_Atomic bool leaving; /* the process exits: no new connection is made */
};
extern struct conn conn __attribute__((visibility("hidden")));

extern uint8_t conn_buffer[PROTO_PACKET_MAX]; /* the reader's */

/* ---- conn.c ---- */

/* Takes the lock for a function of conn.h. Until conn_exit() the thread can't be cancelled: it
 * would leave the lock or a request behind. Return: false in a stray child. */
bool conn_enter(int *ret_cancel);
void conn_exit(int cancel);

/* One atomic load; also without the lock. */
bool conn_is_up(void);

/* Whether this process is a child that pthread_atfork() does not know of (_Fork(), clone()): all it
 * has is copies, the connection is its parent's, and locks may be held by threads that it does not
 * have. It runs unmanaged. */
bool conn_is_stray_child(void);

/* Whether the daemon has vanished and may be back any moment. */
bool conn_is_restarting(void);

/* Takes the connection down. All who wait are told. */
void conn_drop(void);

/* The same when the daemon closed the connection without a goodbye. After ours it may. */
void conn_drop_lost(void);

/* The same when the program closed the socket. */
void conn_drop_closed(void);

/* The same when the daemon does not read what it is told. */
void conn_drop_stuck(void);

/* Makes sure that there is a connection, if it is time to try; with SBEET_REQUIRE tries until
 * @deadline. Return: 0 or negative errno. */
int conn_ensure_until(bool initial, nsec_t deadline);

/* ---- conn-hear.c ---- */

/* How long a thread sleeps for a packet at most. */
nsec_t conn_read_pause(void);

/* Reads one packet, if one comes soon, with the lock released meanwhile. Only while nobody else
 * does. */
void conn_read_one(nsec_t spin);

/* Reads what is there, unless another thread does. */
void conn_read_present(void);

/* Whether it is, after a look at what has come. */
bool conn_still_silent(void);

/* ---- conn-say.c ---- */

/* Return: 0; -EAGAIN: there is no room in the socket now; -ENOTCONN. */
int conn_send_now(const Sbeet__ToDaemon *m);

/* Waits for room as long as the daemon may take to answer. Return: 0 or -ENOTCONN. */
int conn_send_waiting(const Sbeet__ToDaemon *m);
