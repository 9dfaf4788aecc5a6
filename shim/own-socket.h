/*
 * own-socket.h: a socket in a program that may close any descriptor at any time and open something
 * else in its place, which is not ours to touch.
 *
 * Every function checks that first. Not thread-safe; one thread may receive or wait while others
 * send, as long as nobody changes the structure.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/units.h"

struct own_socket {
	int fd;	      /* owned; -1: none */
	dev_t device; /* which socket it was when we got it */
	ino_t inode;
};

#define OWN_SOCKET_NULL \
	{ .fd = -1 }

/* Takes @fd, a SEQPACKET socket that does not block, on success only. Return: 0 or negative errno.
 */
int own_socket_init(struct own_socket *s, int fd);

bool own_socket_is_ours(const struct own_socket *s);

/* Ends the connection; a thread that waits for a packet wakes up. */
void own_socket_shut_down(const struct own_socket *s);

void own_socket_close(struct own_socket *s);

/* Whether there is a packet, or the end. */
bool own_socket_has_packet(const struct own_socket *s);

/* Sleeps until the socket is ready for @events of poll(2), for @pause at most. Return: how long
 * that lasted, never more than @pause, even if this process was stopped; 0: it is ready. */
nsec_t own_socket_sleep(const struct own_socket *s, short events, nsec_t pause);

/*
 * The next packet, into @buffer of PROTO_PACKET_MAX bytes, and a descriptor that came along, or -1,
 * into *ret_fd, owned by the caller. Looks for it awake for @spin first: a
 * grant that can be given at once comes sooner than a sleeping thread is woken. Then sleeps for
 * @pause at most: a thread asleep in recv() would keep a closed socket open, and not notice.
 * Return: as packet_receive(); -EAGAIN: none came, and *ret_slept as of own_socket_sleep(); -EBADF:
 * the program has closed the socket.
 */
int own_socket_receive(const struct own_socket *s, uint8_t *buffer, int *ret_fd, nsec_t spin,
		       nsec_t pause, nsec_t *ret_slept);

/* @passed_fd: goes along, and stays the caller's; -1: none. Return: as packet_send(); -EBADF: the
 * program has closed the socket. */
int own_socket_send(const struct own_socket *s, const ProtobufCMessage *message, int passed_fd);
