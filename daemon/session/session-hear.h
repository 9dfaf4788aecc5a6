/*
 * session-hear.h: what a shim may say when, and what becomes of it.
 */
#pragma once

#include <stddef.h>

#include "sbeet.pb-c.h"

struct session;

/* A packet from its socket, and the descriptor that came along, which is closed; -1: none. May end
 * the session. */
void session_hear_packet(struct session *s, const void *packet, size_t n, int passed_fd);

/* What its process says, from whatever source; it is validated here. */
void session_hear(struct session *s, const Sbeet__ToDaemon *m);
