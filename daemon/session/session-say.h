/*
 * session-say.h: what the daemon says to a shim. A peer that does not take a packet at once is hung
 * up on: nobody is waited for. Without a connection nothing is said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sbeet.pb-c.h"

struct inventory_gpu;
struct job;
struct session;

/* @gpu: that it is to use; NULL: it may choose. @page_fd: its page of terms, stays the caller's;
 * -1: none. */
void session_say_welcome(struct session *s, const struct inventory_gpu *gpu, int page_fd);

/* An error that the session survives. @job: 0 if it is about none. Mistakes slow their session
 * down. */
__attribute__((format(printf, 4, 5))) void session_say_error(struct session *s, uint64_t job,
							     Sbeet__ErrorCode code,
							     const char *format, ...);

/* An error that ends the connection, and this one only. */
__attribute__((format(printf, 3, 4))) void session_fail(struct session *s, Sbeet__ErrorCode code,
							const char *format, ...);

void session_say_grant(const struct job *job);
void session_say_goodbye(struct session *s, const char *reason);

/* Whether single operations of @job are to be sent; to one that counts. */
void session_say_record_ops(struct session *s, uint64_t job, bool on);

/* The board of copies, on which it has a seat. */
void session_say_board(struct session *s);

/* Its channel groups are wanted, see owner.h. @turns: it may have to take turns. */
void session_say_want_groups(struct session *s, bool turns);

/* Finish what runs and start nothing more, if the peer's buffer has room for that. */
/* @stop: the job may go on later. */
void session_say_revoke(struct session *s, uint64_t job, bool stop, const char *reason);

/* Asks whether it is there; see hold.h. */
void session_say_ping(struct session *s);
void session_say_pong(struct session *s, uint64_t number); /* of the Ping */

/* A Pong unasked, to a program whose Ping may not be read yet. It does not matter if it has no room
 * for that. */
void session_say_present(struct session *s);

/* To a peer that gets no session: why. */
void session_say_refusal(int fd, const char *text);

/* The same because of @error: no memory, no descriptors. */
void session_say_exhausted(int fd, int error);
