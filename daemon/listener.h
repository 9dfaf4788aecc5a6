/*
 * listener.h: a listening SOCK_SEQPACKET socket.
 *
 * When the process has no descriptors left it stops to accept, instead of spinning on a socket that
 * stays readable, and resumes when one is given back, or a second later.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

struct listener;

/* Takes over @fd, non-blocking and CLOEXEC. */
typedef void (*listener_accepted_fn)(void *userdata, int fd);

/* Takes over the listening @fd on success; starts paused. Return: 0 or negative errno. */
int listener_new(struct listener **ret, struct event_base *base, int fd,
		 listener_accepted_fn accepted, void *userdata);

/* Takes NULL. Closes the socket. */
struct listener *listener_free(struct listener *l);

/* Begins, or begins again, to accept. */
void listener_resume(struct listener *l);
