/*
 * history.h: what each program's jobs came to, kept after its end.
 *
 * One run for each process, from the end of its first job on, in memory that outlives sbeetd
 * (history-file.h): a fixed number. Where there is no room, the user with the most runs loses one,
 * the oldest that has ended, so no user can crowd another one out. Knows no files and no sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/identity.h"
#include "proto/histogram.h"
#include "proto/limits.h"
#include "proto/units.h"

#define HISTORY_RUNS 512

/* How a run ended. Part of the file: values are not used again. */
enum history_end {
	HISTORY_END_NONE = 0,	   /* it runs */
	HISTORY_END_EXIT = 1,	   /* it said goodbye */
	HISTORY_END_KILLED = 2,	   /* it did not: a signal, a crash, _exit() */
	HISTORY_END_DISMISSED = 3, /* `sbeetctl session kill` */
	HISTORY_END_FAULT = 4,	   /* it violated the protocol */
	HISTORY_END_RESTART = 5,   /* sbeetd ended before it, and it has not come back */
	_HISTORY_END_N,
};

/* All of fixed size, for it is the file's format too. */
struct history_run {
	uint64_t number;	  /* increasing; 0: there is none here */
	struct identity identity; /* without the secret */
	int64_t started, ended;	  /* CLOCK_REALTIME in ns; ended, so far as it runs: its last job */
	uint64_t jobs, misses, abandoned, launches;
	uint64_t within_period; /* of the jobs, see Run in control.proto */
	uint64_t energy_mj;
	nsec_t gpu, responses, started_late, waits; /* of all jobs together */
	nsec_t max_response, max_started_late, max_wait;
	nsec_t period, deadline;
	uint32_t uid, pid, end, task_class, restarted;
	uint32_t gpus; /* mask: on which its jobs ran; 0: of an sbeetd that did not note that */
	char task[PROTO_NAME_MAX + 4], program[PROTO_NAME_MAX + 4], run[PROTO_NAME_MAX + 4];
	struct histogram response;
};

struct history {
	struct history_run *runs;		    /* HISTORY_RUNS; borrowed, outlives us */
	struct history_run **holders[HISTORY_RUNS]; /* of those that run: who counts there */
	uint64_t next_number;
};

/* What is to be known of a process. Texts that are too long are cut. */
struct history_program {
	struct identity identity;
	const char *task, *program, *run;
	nsec_t period, deadline;
	uint32_t uid, pid, task_class;
};

/* A job that is complete. */
struct history_job {
	nsec_t gpu, response, started_late, wait;
	uint64_t launches, energy_mj;
	unsigned on; /* the number of its GPU */
	bool missed, within_period;
};

/* @runs: of an sbeetd before us, or all zero: those that still ran have ended with it. */
void history_init(struct history *history, struct history_run *runs);

/*
 * A run of this program that began at @started, in ns of CLOCK_REALTIME. It counts for *holder,
 * which is set, and becomes NULL when another one takes its place; the caller keeps it until
 * history_end().
 */
void history_begin(struct history *history, const struct history_program *program, int64_t started,
		   struct history_run **holder);

/* The run that the same process had under the sbeetd before us goes on. @missed: it may have had
 * jobs meanwhile. Return: whether there is one; else *holder is untouched. */
bool history_resume(struct history *history, const struct history_program *program, bool missed,
		    struct history_run **holder);

/* A job was complete, or was given up, at @now of CLOCK_REALTIME. */
void history_job(struct history_run *run, const struct history_job *job, int64_t now);
void history_abandon(struct history_run *run, uint64_t launches, int64_t now);

/* Its process is gone, *holder is NULL from then on. Does nothing for NULL. */
void history_end(struct history *history, struct history_run **holder, enum history_end end,
		 int64_t now);

/* "exit", ...; "" of one that runs. */
const char *history_end_name(enum history_end end);
