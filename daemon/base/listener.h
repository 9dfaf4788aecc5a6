/*
 * listener.h: a listening SOCK_SEQPACKET socket.
 *
 * When the process has no descriptors left it stops to accept, instead of spinning on a socket that
 * stays readable, and resumes when one is given back, or a second later. When somebody connects
 * faster than his connections are wanted it rests for a millisecond every few of them: so those
 * cost little, and everybody behind them in the socket's queue comes soon.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "proto/units.h"

struct listener;

/* Takes over @fd, non-blocking and CLOEXEC. Return: whether its process may connect so fast. */
typedef bool (*listener_accepted_fn)(void *userdata, int fd);

/* Takes over the listening @fd on success; starts paused. Return: 0 or negative errno. */
int listener_new(struct listener **ret, struct event_base *base, int fd,
		 listener_accepted_fn accepted, void *userdata);

/* Takes NULL. Closes the socket. */
struct listener *listener_free(struct listener *l);

/* Takes over @fd in place of the socket so far, after accepting who has come there. */
void listener_replace(struct listener *l, int fd);

/* Accepts nobody for so long. */
void listener_rest(struct listener *l, nsec_t time);

/* Begins, or begins again, to accept; a rest is not cut short. */
void listener_resume(struct listener *l);
