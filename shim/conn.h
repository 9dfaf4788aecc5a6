/*
 * conn.h: the one connection of this process to sbeetd.
 *
 * Thread-safe. No call here goes into the driver. A connection that fails, that the program closed
 * ("close all descriptors") or that says something malformed is given up and a new one is made when
 * the next job opens, at most about every second; generations tell them apart, so that nothing said
 * to one daemon is repeated to the next.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"
#include "shim/enforce.h"

/* Documented conditions. */
enum {
	CONN_E_UNMANAGED = 1, /* no daemon: the program goes on without */
	CONN_E_REFUSED,	      /* the daemon has no place for this job; said once */
};

struct conn_ask {
	uint64_t job;
	uint8_t uuid[PROTO_UUID_BYTES];
	nsec_t release_ns;
	uint32_t enforcement_mask;
	unsigned sm_step; /* with ENFORCEMENT_GREEN: sets of whole multiples of so many SMs */
	Sbeet__OpKind kind;
	const struct kernel *kernel; /* NULL if no launch, or not known */
	uint32_t tid;
};

struct conn_grant {
	struct enforce_grant grant;
	uint32_t generation; /* of the connection that gave it */
};

/*
 * At cuInit, before the driver's: connects, so that MPS's directories can be put into the
 * environment if they are not there. Return: 0, or CONN_E_UNMANAGED (said once unless @require then
 * fails).
 */
int conn_start(void);

/* Whether conn_request() would be more than a waste of time. One atomic load when connected. */
bool conn_worth_asking(void);

/*
 * Asks for a job and waits for the answer, however long the daemon takes; no longer than the daemon
 * lives. With SBEET_REQUIRE it waits for a new daemon for that long. Return: 0 or CONN_E_*.
 */
int conn_request(const struct conn_ask *ask, struct conn_grant *ret);

/* To the daemon of @generation. Return: 0, or -ENOTCONN when that one is gone. */
int conn_send(uint32_t generation, const Sbeet__ToDaemon *message);

/* Declares @k to the daemon of @generation before it is named. Returns the number to name it by: 0
 * if @k is NULL or beyond the limit. */
uint32_t conn_declare(uint32_t generation, const struct kernel *k);

/* Reads what has arrived, unless a thread that waits for a grant does so. Never waits. */
void conn_poll(void);

/* How long a quiet program keeps a job, as the daemon wishes. */
nsec_t conn_linger_ns(void);

/* At the program's end: says goodbye if that can be done without waiting. */
void conn_leave(void);
