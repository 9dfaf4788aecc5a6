/*
 * subject.h: the program that is measured, under the shim and in a process group of its own, and
 * how it is ended when enough was seen: first it starts nothing more on a GPU, and what it runs may
 * end (ending.h), then come SIGTERM and SIGKILL. A program that dies in the middle of a kernel
 *makes others fail, the next one that is measured to begin with.
 *
 *	NONE ---> RUNS ---> DRAINS ---> TOLD ---> KILLED
 *
 * and from each of them to NONE, when it is gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/live/control.h"

enum subject_state {
	SUBJECT_NONE,
	SUBJECT_RUNS,
	SUBJECT_DRAINS, /* sbeetd gives it nothing more */
	SUBJECT_TOLD,	/* SIGTERM */
	SUBJECT_KILLED, /* SIGKILL */
	_SUBJECT_STATE_N,
};

/* What to run, and how. Strings are borrowed. */
struct subject_plan {
	const char *task;    /* its name */
	char *const *argv;   /* the program, NULL at the end */
	const char *preload; /* the value of LD_PRELOAD */
	unsigned n_sms;	     /* for each of its jobs, at most */
	nsec_t drain;	     /* for its jobs to end, when it is to end */
};

struct subject_session {
	uint64_t id;
	bool asked; /* that it start nothing more */
};

struct subject {
	enum subject_state state;
	struct control *control; /* owned: from when it drains until the next one starts */
	pid_t pid;		 /* of it and of its group; 0: none */
	nsec_t until, drain;
	struct subject_session *sessions; /* owned: those of its task that are open */
	size_t n_sessions;
	size_t n_unanswered; /* of those that were asked */
	bool running;	     /* when it was told to end jobs of it ran, or may have */
};

void subject_deinit(struct subject *s); /* it must be gone, or never have been there: all zero */

/* From SUBJECT_NONE. Its standard input and output are /dev/null. Return: 0 or negative errno. */
int subject_start(struct subject *s, const struct subject_plan *plan);

/* Sessions of its task come and go. Return: 0 or -ENOMEM. */
int subject_session_starts(struct subject *s, uint64_t session);
void subject_session_ends(struct subject *s, uint64_t session);

/* It is to end, if it is not on its way already. */
void subject_end(struct subject *s);

/* To be called now and then. Return: whether it is gone; then *ret_status is waitpid()'s. */
bool subject_is_gone(struct subject *s, int *ret_status);
