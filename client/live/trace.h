/*
 * trace.h: what a stream of events amounts to: jobs with their SMs and times, tasks, GPUs, power.
 *
 * Built event by event, from a file or live. Where events are missing, what is known of a job comes
 * from the events that are there: the last one of a job tells all of it.
 */
#pragma once

#include <stdio.h>

#include "client/live/event.h"
#include "client/live/trace-ops.h"

enum trace_state {
	TRACE_WAITING,
	TRACE_RUNNING, /* still, when the trace ends */
	TRACE_DONE,
	TRACE_ABANDONED,
	TRACE_STOPPED, /* it gave its SMs back; the rest of it, if there is one, is another entry */
	TRACE_UNSURE,  /* events were lost, its end maybe among them */
};

struct trace_job {
	uint64_t session, job, tid, launches;
	uint32_t task; /* index */
	uint32_t gpu, slot;
	enum trace_state state;
	struct smset sms;
	Sbeet__Enforcement enforcement;
	nsec_t release, deadline, predicted_finish; /* 0: none */
	nsec_t requested;			    /* at the release or after it */
	nsec_t granted;				    /* 0: never */
	nsec_t finished; /* 0: never; of a job that has no end here, when it was last known to run
			  */
	uint32_t next;	 /* in the table of open jobs */
};

struct trace_task {
	char name[PROTO_NAME_MAX + 1];
	Sbeet__TaskClass task_class;
	nsec_t period, deadline;
	uint64_t n_done, n_missed, n_abandoned;
	nsec_t max_wait, max_response;
};

struct trace_gpu {
	bool there;
	char name[PROTO_NAME_MAX + 1];
	char sharing[PROTO_NAME_MAX + 1];
	uint32_t n_sms; /* at least what its jobs use */
};

struct trace_power {
	nsec_t time;
	uint32_t gpu;
	uint64_t power_mw;
};

/* A policy that came into force, or events that were lost. */
struct trace_note {
	nsec_t time;
	uint64_t lost; /* 0: a policy */
	char text[PROTO_NAME_MAX + 1];
};

/* Bounds on what a file can make us keep: some 300 MiB of jobs. */
#define TRACE_JOBS_MAX	2000000
#define TRACE_TASKS_MAX 4096
#define TRACE_OPEN_HASH 4096

struct trace {
	struct event start; /* EVENT_START */
	bool started;
	nsec_t first, last; /* of all times seen */
	uint64_t n_events, n_lost;

	struct trace_job *jobs;	    /* owned, in the order in which they were first heard of */
	struct trace_task *tasks;   /* owned */
	struct trace_power *powers; /* owned */
	struct trace_note *notes;   /* owned */
	size_t n_jobs, n_tasks, n_powers, n_notes;
	size_t jobs_room, tasks_room, powers_room, notes_room;
	struct trace_gpu gpus[EVENT_GPUS_MAX];
	struct trace_ops ops;
	uint32_t open[TRACE_OPEN_HASH]; /* heads of lists of open jobs, index + 1 */
};

/* All zero is an empty trace. */
void trace_deinit(struct trace *t);

/* Whether it was late, as far as is known. */
bool trace_job_missed(const struct trace_job *job);

/* From its release to its request, and from there to its grant; 0 without one. */
nsec_t trace_job_started_late(const struct trace_job *job);
nsec_t trace_job_waited(const struct trace_job *job);

/*
 * Reads a file of events, one a line, and ends the trace. Return: 0; -ENOMEM; -EBADMSG with one
 * line in @error, which names the line; another errno of the stream.
 */
int trace_read(struct trace *t, FILE *in, char *error, size_t size);
