/*
 * spawn.h: run a program as a user would, and keep what it said.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct spawned {
	int code;   /* exit code, or -1 */
	int signal; /* that ended it, or 0 */
	pid_t pid;  /* it had */
	char *out;  /* owned, terminated */
	char *err;
};

/*
 * Runs @argv with @environment ("NAME=value" added to ours, "NAME" removed; NULL at the end; may be
 * NULL), stdin from /dev/null, for at most 60 seconds (then it is killed and the test fails).
 */
struct spawned spawn(const char *const *argv, const char *const *environment);
void spawned_deinit(struct spawned *s);

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
