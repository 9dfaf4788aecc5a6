/*
 * client-socket.h: what comes over the sockets of clients, without being held up by it.
 *
 * Whoever can write to a UNIX socket can send descriptors along, and the last close of one may wait
 * for as long as its sender likes, in whatever call throws it away: recvmsg(), read(), close().
 * Two kinds are known. A TCP socket with SO_LINGER waits until its peer has read all; it may sit in
 * the queue of a UNIX socket that is sent along, or behind an empty packet. Only a signal ends
 * that, so one comes every few milliseconds during calls that may throw something away. And close()
 * of a file in FUSE waits for its file system, signals or not. So what came along is closed by a
 * thread; while threads of a user are busy, the kernel throws away what that user sends.
 *
 * For one thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Before all others; signals go to the calling thread. Without it nothing ends a close that
 * lingers. Return: 0 or negative errno. */
int client_socket_init(void);

/* As packet_receive(), from user @uid; @ret_fd may be NULL. */
int client_socket_receive(int fd, uid_t uid, void *buffer, int *ret_fd);

/* As packet_close(), read() and close(). */
void client_socket_hang_up(int fd);
ssize_t client_socket_read(int fd, void *buffer, size_t n);
void client_socket_close(int fd);

/* Whether descriptors of user @uid are received: not while as many as we can afford, of this user
 * or in all, are still being closed. */
bool client_socket_may_pass(uid_t uid);

/* Closes a descriptor that user @uid has sent, and that is not what it should be. */
void client_socket_close_passed(int fd, uid_t uid);
