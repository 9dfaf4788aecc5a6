/*
 * gate.h: how fast the connections of one process may come and go, and how often it may be wrong.
 *
 * A connection that comes and ends costs the daemon several times what a request does, all of it in
 * one piece. So each connection that ends is charged to its process, with what else it has cost in one
 * piece, and time pays it off; one that ended by a violation of the protocol counts several times. A
 * process that has left too often is not refused: its next connection is heard a moment later, up to
 * GATE_WAIT_MAX. Connections that stay cost nothing here, however many they are. Only the process
 * waits, not others of its user; what all processes of a user cost together is in quota.h.
 *
 * There is room for some hundred processes; where there is none, the one that owes least is forgotten.
 * Knows no sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "proto/units.h"

/* Well below the time for which the library waits to be welcomed. */
#define GATE_WAIT_MAX (1 * NSEC_PER_SEC)

/* So many connections of a process may wait to be heard; further ones are closed. */
#define GATE_WAITING_MAX 16

#define GATE_FULL UINT64_MAX

struct gate;

int gate_new(struct gate **ret); /* 0 or -ENOMEM */
struct gate *gate_free(struct gate *gate);

/*
 * A connection of this process comes. Return: 0: hear it at once; else, how long it has to wait, of
 * which gate_waited() must be told at its end; GATE_FULL: close it.
 */
nsec_t gate_enter(struct gate *gate, const struct ucred *cred, nsec_t now);
void gate_waited(struct gate *gate, const struct ucred *cred);

/* A connection of this process has ended; @n_items: jobs that it left to be dropped, or sessions
 * and jobs that it was told in one piece; @faulty: it has ended by its own fault. */
void gate_leave(struct gate *gate, const struct ucred *cred, size_t n_items, bool faulty,
		nsec_t now);

/* It is told of a mistake. Return: for how long nothing more should be read of it; mostly 0. */
nsec_t gate_mistake(struct gate *gate, const struct ucred *cred, nsec_t now);
