/*
 * remote.h: CUDA programs by remote control, for the tests of several processes: each is a client
 * (client.c) that is sent commands and asked for answers. A client that ends unexpectedly fails the
 * test.
 */
#pragma once

#include <stdio.h>
#include <sys/types.h>

struct client {
	pid_t pid;
	FILE *in, *out;
	char answer[512];
};

/* Both paths are borrowed. */
void remote_init(const char *client, const char *simgpud);
/* Starts the simgpud of this $SIMGPU_DIR before a client does, with a library preloaded. Return: as
 * simgpud_stop(). */
int simgpud_start(const char *preloaded);
/* Ends the simgpud of this $SIMGPU_DIR. Return: its exit status, or -1. */
int simgpud_stop(void);

/* @stderr_path: NULL is this process's own. client_start() waits until the program has a GPU. */
void client_spawn(struct client *c, const char *stderr_path);
void client_start(struct client *c, const char *stderr_path);
const char *client_read(struct client *c);
const char *client_ask(struct client *c, const char *command);
/* Asks until the answer is @wanted. */
void client_until(struct client *c, const char *command, const char *wanted);
void client_end(struct client *c, int expected_status);
void client_kill(struct client *c);
