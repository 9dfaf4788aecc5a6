/*
 * packet.h: one protobuf message a SOCK_SEQPACKET packet, in and out, with bounds.
 *
 * Knows nothing of what messages mean (see validate.h) nor of event loops.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proto/units.h"

/*
 * Packs @message and sends it as one packet.
 * @fd: a connected SEQPACKET socket, blocking or not. @passed_fd: sent along by SCM_RIGHTS, or -1;
 * stays the caller's.
 * Return: 0; -EMSGSIZE above PROTO_PACKET_MAX; -EAGAIN if a non-blocking socket is full (nothing
 * was sent); -ENOMEM; -EPIPE or another errno if the peer is gone. Never raises
 * SIGPIPE.
 */
int packet_send(int fd, const ProtobufCMessage *message, int passed_fd);

/*
 * Receives one packet into @buffer of PROTO_PACKET_MAX bytes.
 * Return: its length (> 0); 0 when the peer has closed, or sent an empty packet, which no message
 * is; -EMSGSIZE when the packet was longer (it is consumed); -EAGAIN when there is none; or another
 * negative errno.
 * @ret_fd: receives one descriptor or -1, owned by the caller, whatever is returned; if more than
 * one came along the others are closed, and it is -EPROTO. NULL: the kernel closes all, which may
 * take time (daemon/base/client-socket.h).
 */
int packet_receive(int fd, void *buffer, int *ret_fd);

#define PACKET_FDS_MAX 253 /* descriptors that a packet can bring (SCM_MAX_FD) */

/* The same, but takes all descriptors, @ret_n of them: the kernel has none to close. */
int packet_receive_all(int fd, void *buffer, int ret_fds[static PACKET_FDS_MAX], size_t *ret_n);

/* As packet_receive(), with @ret_fd, for a packet that is there already: -EAGAIN if there is none,
 * on a blocking socket too.
 */
int packet_try_receive(int fd, void *buffer, int *ret_fd);

/*
 * Unpacks with an allocator that gives up at PROTO_UNPACK_MAX bytes.
 * Return: 0; -EBADMSG if it does not parse; -ENOBUFS if it takes too much; -ENOMEM. @ret_message is
 * owned by the caller, to be freed with packet_free().
 */
int packet_unpack(const ProtobufCMessageDescriptor *type, const void *packet, size_t n,
		  ProtobufCMessage **ret_message);

/* Takes NULL. */
void packet_free(ProtobufCMessage *message);

/*
 * Connects to the socket at @path, waiting at most @timeout (0: for ever) where the daemon accepts
 * nobody and its queue is full. Return: a CLOEXEC, blocking descriptor, whose sends time out too,
 * or negative errno (-ENOENT, -ECONNREFUSED: no daemon; -EAGAIN: timed out; -EACCES;
 * -ENAMETOOLONG).
 */
int packet_connect(const char *path, nsec_t timeout);

/*
 * Closes a socket so that the peer still reads what was sent to it. (With packets unread on our
 * side it would see "connection reset" first, and may never look at our last words. So nothing more
 * is let in, and what is there, bounded by the socket's buffer, is thrown away.)
 */
void packet_close(int fd);

/* Where sbeetd listens: "shim.sock" or "control.sock" in $SBEET_RUNTIME_DIR, else in
 * $XDG_RUNTIME_DIR/sbeet if that socket exists, else in /run/sbeet. For the daemon itself see
 * daemon/. Writes a path of at most @size bytes; -ENAMETOOLONG if it does not fit. */
int packet_socket_path(const char *socket_name, char *path, size_t size);

/* Whether a Hello or a Welcome names the feature @name among its @n @features. */
bool packet_has_feature(char *const *features, size_t n, const char *name);
