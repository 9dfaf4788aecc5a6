/*
 * client.h: a process's connection to simgpud, for the driver and NVML libraries.
 *
 * One socket a process. Any number of threads may call at once: requests go out as packets, and
 * whichever caller waits first reads replies for all of them. A process that forks loses the
 * connection in the child (CUDA does not work there either).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/wire.h"

/*
 * Connects once, starting simgpud if none runs; later calls return at once.
 * Return: 0; -ECHILD in a child of a process that was connected; -ENOENT without simgpud beside
 * this library; -EBUSY when one with other GPUs runs; another errno. The reason goes to stderr
 * once.
 */
int client_connect(void);

/* The answer to hello. Valid after client_connect(). */
const struct wire_hello_reply *client_gpus(void);

/* Return: 0 when connected; -ENOTCONN; -ECHILD as above. */
int client_state(void);

/* A packet in two parts: a structure that starts with a struct wire_header whose type is set (in
 * answers: struct wire_reply), and what follows it. */
struct client_message {
	void *head;
	size_t head_size;
	void *data; /* may be NULL */
	size_t data_size;
	void *function; /* of a launch: what a graph's node keeps beside; else NULL */
};

/* Sends without wanting an answer. Return: 0 or -EPIPE when simgpud is gone. */
int client_post(const struct client_message *request);

/*
 * Sends and waits for the answer. @fd: sent along, or -1; stays the caller's. @reply: head has room
 * for at least a struct wire_reply; an answer that is longer than its parts is cut.
 * Return: length of the answer (at least that of a struct wire_reply) or -EPIPE.
 */
int client_call(const struct client_message *request, int fd, const struct client_message *reply);

/* Told of what comes unasked; called by whichever thread reads, without locks. Set before
 * client_connect(). */
struct client_listener {
	void (*fault)(uint32_t context, int result, const char *text);
	void (*print)(const char *text, size_t n);
};
void client_listen(const struct client_listener *listener);
