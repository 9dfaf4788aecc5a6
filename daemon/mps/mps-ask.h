/*
 * mps-ask.h: one question to MPS's control daemon, put by its own program in a child process.
 *
 * The daemon's loop never waits: the child has a time limit, is killed at its end, and is reaped
 * when it is gone. Not here: what is asked, and what the answers mean (mps.h).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "proto/limits.h"
#include "proto/units.h"

struct event_base;
struct mps_ask;

#define MPS_CONTROL_PROGRAM "nvidia-cuda-mps-control"

/* Longest answer that is read: some 400 process ids. What goes on after that is an error. */
#define MPS_ANSWER_MAX 4096

struct mps_directories {
	char pipe[PROTO_PATH_MAX], log[PROTO_PATH_MAX];
};

/*
 * The end of a question. @error: 0; -ETIMEDOUT; -EMSGSIZE: the answer is too long; -EIO: the
 * program failed. @text: what it printed, always terminated. Called once, from the loop. The
 * question may be freed in it, and must be some time.
 */
typedef void (*mps_answer_fn)(void *userdata, int error, const char *text);

/*
 * Asks @command, one line without its end. Return: 0, -ENOENT: the program is not installed, or
 * another negative errno; @on_answer is not called then.
 */
int mps_ask_new(struct mps_ask **ret, struct event_base *base,
		const struct mps_directories *directories, const char *command, nsec_t limit,
		mps_answer_fn on_answer, void *userdata);

/* Takes NULL. Kills the child if it still runs. */
struct mps_ask *mps_ask_free(struct mps_ask *ask);

/* The loop ends: nobody waits any more for children of questions that were freed. */
void mps_ask_leave(void);

/*
 * Starts the program with @argument (NULL: none), told where MPS is, with these descriptors as
 * stdin and stdout (-1: /dev/null), and stderr as stdout; with @apart in a session of its own.
 * Return: 0 and both @ret_pid and @ret_pidfd, or negative errno.
 */
int mps_spawn(const struct mps_directories *directories, const char *argument, int in, int out,
	      bool apart, pid_t *ret_pid, int *ret_pidfd);
