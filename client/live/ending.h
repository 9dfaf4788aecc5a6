/*
 * ending.h: prepares, with sbeetd, the end of a program: nothing of it should run on a GPU when the
 * signal comes, for such a death reaches others there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/live/control.h"

struct ending {
	uint32_t pid;	 /* of the session's process */
	bool running;	 /* jobs of it run still: its end may reach others */
	char note[1024]; /* what could not be done; empty: nothing */
};

/*
 * Asks that the program of @session start nothing more as long as @control lasts, and for an answer
 * when what it runs has ended, or @drain is over. What runs then still, and if @drain is 0 anyway,
 * MPS ends as its client first. Return: 0, or an enum ctl_exit with one line in @error, as below.
 */
int ending_ask(struct control *control, uint64_t session, nsec_t drain, char *error, size_t size);

/* Such an answer, of any of those that were asked for, within @timeout; without one @ret_there is
 * false. CTL_EXIT_NO_OBJECT is an answer too: there was no such session any more. */
int ending_answer(struct control *control, nsec_t timeout, struct ending *ret, bool *ret_there,
		  char *error, size_t size);

/* Both, of one. */
int ending_prepare(struct control *control, uint64_t session, nsec_t drain, struct ending *ret,
		   char *error, size_t size);
