/*
 * control.h: the connection to sbeetd's control socket.
 *
 * Errors come as the exit code that fits (enum ctl_exit) and one line that says what, why and what
 * to do next.
 */
#pragma once

#include <stddef.h>

#include "control.pb-c.h"
#include "proto/units.h"

struct control;

/* All packets of one answer. */
struct control_answer {
	Sbeet__Control__Reply **replies; /* owned */
	size_t n_replies;
};

/*
 * Connects and says hello. Every wait ends after $SBEET_TIMEOUT (5s if that is not set).
 * Return: 0, or an enum ctl_exit with one line in @error; then *ret is untouched.
 */
int control_open(struct control **ret, char *error, size_t error_size);

/* The message and exit code for a socket at @path that can't be connected to: @r, negative errno.
 */
int control_fail_connect(const char *path, int r, char *error, size_t error_size);

struct control *control_close(struct control *c); /* takes NULL, returns NULL */

/*
 * Sends @request (its id is set here) and collects the answer up to its last packet. After a
 * failure the connection is of no more use. Return as control_open().
 */
int control_call(struct control *c, Sbeet__Control__Request *request, struct control_answer *ret,
		 char *error, size_t error_size);
void control_answer_deinit(struct control_answer *a);

/* Asks for a change that is answered with success or an error only, over a connection of its own.
 * Return: an enum ctl_exit, after an error on stderr. */
int control_change(Sbeet__Control__Request *request);

/* For answers that do not end: sends @request. Return as control_open(). */
int control_send(struct control *c, Sbeet__Control__Request *request, char *error,
		 size_t error_size);

#define CONTROL_FOREVER UINT64_MAX

/*
 * The next packet of such an answer, to be freed with packet_free(); NULL if there was none within
 * @timeout, or a signal came. Return as control_open().
 */
int control_next(struct control *c, nsec_t timeout, Sbeet__Control__Reply **ret, char *error,
		 size_t error_size);
