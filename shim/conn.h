/*
 * conn.h: the one connection of this process to sbeetd.
 *
 * Thread-safe. No call here goes into the driver. A connection that fails, that the program closed
 * ("close all descriptors") or that says something malformed is given up and a new one is made when
 * the next job opens, at most about every second.
 *
 * A daemon that vanishes without a goodbye is likely to be restarted: requests wait for the next
 * one for SBEET_WAIT, once, after which the program goes on unmanaged. The next daemon is told
 * of the jobs that are held, whether or not the program asks for anything; each then goes on as if
 * nothing had happened, and its messages go to that daemon.
 *
 * A daemon may let a request wait as long as it likes, but it answers a Ping. One that leaves a
 * Ping unanswered for SBEET_TIMEOUT is stopped or stuck: requests are withdrawn and the program
 * goes on unmanaged until the daemon says anything. The connection stays up meanwhile, and with it
 * the jobs that are held.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"
#include "shim/ask.h"
#include "shim/enforce/enforce.h"

/* Documented conditions. */
enum {
	CONN_E_UNMANAGED = 1, /* no daemon, or a silent one: the program goes on without */
	CONN_E_REFUSED,	      /* the daemon has no place for this job; said once */
};

/*
 * At cuInit, before the driver's: connects, so that MPS's directories can be put into the
 * environment if they are not there, and so can, under CUDA_VISIBLE_DEVICES, the GPU that the
 * daemon has chosen: see visible.h. Return: 0, or CONN_E_UNMANAGED (said once unless @require then
 * fails).
 */
int conn_start(void);

/* Whether conn_request() would be more than a waste of time. One atomic load when connected. */
bool conn_worth_asking(void);

/*
 * Asks for a job and waits for the answer, however long the daemon takes, as long as it answers
 * pings; when it is gone, for the next one as told above, or with SBEET_REQUIRE for as long as that
 * says. The job is held until its JobDone is sent. Return: 0 or CONN_E_*.
 */
int conn_request(const struct conn_ask *ask, struct enforce_grant *ret);

/* Of the connection that is up; each one has another number. 0: there is none. */
extern _Atomic uint32_t conn_number;

/* Whether the daemon takes Counts, and asks for single operations where it wants them. */
bool conn_daemon_counts(void);

/*
 * Something that no daemon has to hear, unless it would have to wait, for room or for another
 * thread. @over: the connection that it is for, 0: whichever there is. Return: the number of the
 * connection; -EAGAIN: there is no room now; -EBUSY: another thread is at it; -ESTALE: it is gone;
 * -ENOTCONN: there is none.
 */
int conn_tell(const Sbeet__ToDaemon *message, uint32_t over);

/* The same, with a descriptor that goes along and stays the caller's; -1: none. */
int conn_tell_passing(const Sbeet__ToDaemon *message, uint32_t over, int passed_fd);

/* Whether the connection of this number is up. 0 never is. */
bool conn_is_current(uint32_t number);

/* Something about the held job @job; if it is its JobDone the job is held no more. Return: 0, or
 * -ENOTCONN when no daemon knows the job. */
int conn_send(uint64_t job, const Sbeet__ToDaemon *message);

/* Declares @k before a message about the held job @job names it. Returns the number to name it by:
 * 0 if @k is NULL or beyond the limit, or no daemon knows the job. */
uint32_t conn_declare(uint64_t job, const struct kernel *k);

/* Declares @k, unless it would have to wait for that. Return: false: to be called again. */
bool conn_try_declare(const struct kernel *k);

/* Reads what has arrived, unless a thread that waits for a grant does so, or connects again if that
 * is due. Waits for a daemon's greeting at most. Return: when to call again at the latest;
 * UINT64_MAX: whenever. */
nsec_t conn_poll(void);

/* How long a quiet program keeps a job, as the daemon wishes. */
nsec_t conn_linger_ns(void);

/* When the process exits: says goodbye, unless it would have to wait for sbeetd. From then on no
 * new connection is made; threads that still wait for a grant go on unmanaged when sbeetd closes.
 */
void conn_leave(void);

/* After fork, in the child: forget everything without calling the driver. */
void conn_after_fork(void);
