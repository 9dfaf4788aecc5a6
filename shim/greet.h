/*
 * greet.h: a new connection to sbeetd: found, opened, welcomed. What becomes of it is conn.c's.
 *
 * Called under conn.c's lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/units.h"
#include "sbeet.pb-c.h"

/*
 * Connects, says Hello with the jobs that are held, and heeds the Welcome. Waits for the daemon's
 * answer, but not for one that is stopped.
 * @buffer: of PROTO_PACKET_MAX bytes. @initial: before the driver is initialised, when MPS's
 * directories and the visible GPU still have an effect.
 * Return: the socket, not blocking, owned by the caller, or negative errno (-EAGAIN: it cost a
 * wait).
 */
int greet(uint8_t *buffer, bool initial);

/* A child is another program: it has no secret. */
void greet_after_fork(void);

/* How long a quiet program keeps a job, as the last daemon wished. Anyone may ask. */
nsec_t greet_linger_ns(void);

/* Whether the daemon of the last greet() answers a Ping. */
bool greet_answers_pings(void);

/* Whether that one takes Counts, and asks for single operations where it wants them. */
bool greet_daemon_counts(void);

/* Whether that one has a GPU of which it may grant green contexts. */
bool greet_daemon_cuts(void);

/* A daemon that has taken over the connection tells what it can do. @page_fd: what came along with
 * that, which is closed; -1: nothing. */
void greet_heed_again(const Sbeet__Welcome *welcome, int page_fd);

/* How long who waits for a grant looks for it before it sleeps; likewise. */
nsec_t greet_spin_ns(void);

/* It has refused the program after that, and ends the connection. */
void greet_note_refusal(const char *text, Sbeet__ErrorCode code);

/* The daemon of the last greet() does not answer any more: that is its failure now. */
void greet_note_stuck(void);

/* Logs once that the last greet() failed, and for how long SBEET_REQUIRE waits. */
void greet_wait(void);

/* Logs once why the last greet() failed, what follows from it and what to do. */
void greet_complain(void);
