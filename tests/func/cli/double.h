/*
 * double.h: a stand-in for sbeetd's control socket that answers as it is told, right or wrong.
 */
#pragma once

#include <sys/types.h>

enum double_kind {
	DOUBLE_RIGHT,	      /* two GPUs, three sessions, four jobs, in one packet */
	DOUBLE_PARTS,	      /* the same, one element a packet */
	DOUBLE_IDLE,	      /* a GPU and nobody */
	DOUBLE_NO_GPU,	      /* not even that */
	DOUBLE_LYING,	      /* says `exact` of a job that is held by count */
	DOUBLE_UNHELD,	      /* a job whose set does not hold */
	DOUBLE_CONTROL,	      /* names with control characters in them */
	DOUBLE_MANY,	      /* 3,000 sessions, 50 a packet */
	DOUBLE_CROWD,	      /* 1,000 sessions and four jobs; two answers, then hangs up */
	DOUBLE_LONG,	      /* very long names, 256 SMs, an old reading of the power */
	DOUBLE_TWICE,	      /* answers two requests for status, then hangs up */
	DOUBLE_OTHER_VERSION, /* another protocol version in Hello */
	DOUBLE_REFUSES,	      /* Error with a text */
	DOUBLE_STOPPING,      /* Error: shutdown */
	DOUBLE_UNKNOWN,	      /* Error: unknown request */
	DOUBLE_HANGS_UP,      /* closes after Hello */
	DOUBLE_SILENT,	      /* reads, never answers */
	DOUBLE_GARBAGE,	      /* bytes that do not parse */
	DOUBLE_EMPTY,	      /* a reply without a body */
	DOUBLE_WRONG_ID,      /* answers another request */
	DOUBLE_NO_SERVICE,    /* a status without its service part */
};

struct control_double {
	char folder[64]; /* for SBEET_RUNTIME_DIR */
	pid_t pid;
};

/* Starts a process that serves one connection; it is listening when this returns. */
struct control_double double_start(enum double_kind kind);
void double_stop(struct control_double *d);
