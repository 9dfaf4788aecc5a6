/*
 * arbiter.h: what runs when, given what is ready. An arbiter stands for the GPUs and for whoever
 * shares them out; included by arbiters, sim.c and boundary.c only.
 *
 * sim.c knows tasks: it releases their jobs, gives late ones up, judges and counts them, and hands
 * each job to the arbiter when its program asks for it. The arbiter knows GPUs: it chooses where
 * and when a job runs, lets that happen by events of its own, and reports when the job is over. It
 * also runs the meters and tells the setup's on_segment() which SMs were whose.
 *
 * An event can't be taken back: an arbiter that changes its mind ignores those that no longer hold.
 *
 * A new one is a file with a `const struct sim_arbiter`, its kinds of events at the head of enum
 * event_kind, and a header that names it for struct sim_setup: see grants.h.
 */
#pragma once

#include "daemon/sim/state.h"

/* Functions that return int return 0, -ENOMEM, or -EINVAL for a setup that makes no sense here, or
 * -EUSERS from open(); then the simulation ends. */
struct sim_arbiter {
	/* Sets s->arbiter_state. No more than s->max_jobs jobs are there at once. close() comes
	 * also after a failure, and takes NULL. */
	int (*open)(struct sim *s);
	void (*close)(void *state);

	/* A program asks for @job, which it takes for one of the release @seen. @ret_id: the job's
	 * number from now until it is over, below s->max_jobs. */
	int (*arrive)(struct sim *s, const struct sim_job *job, nsec_t seen, uint32_t *ret_id);

	/* The job is given up if it has not started. Return: whether that is so. */
	bool (*drop)(struct sim *s, uint32_t id);

	/* An event of its own. */
	int (*happen)(struct sim *s, const struct event *event);

	/* All of this moment has happened, and something set s->changed. */
	int (*decide)(struct sim *s);

	/* Adds to s->cycle all on which the future depends: see boundary_add_job(). */
	int (*describe)(struct sim *s, nsec_t at);

	/* The window ends now: ends the segments of what runs, and fills in its part of s->result.
	 */
	void (*conclude)(struct sim *s);
};

/* The job is over: its number is free, and its task may ask for the next one at once. */
int sim_job_done(struct sim *s, uint32_t id);

/* How long the job's kernel really takes on @n_sms SMs. */
nsec_t sim_exec_time(const struct sim *s, const struct profile_table *p, unsigned n_sms,
		     const struct sim_job *job);
