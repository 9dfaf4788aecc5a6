/*
 * report.h: what events say of sessions, jobs and GPUs.
 *
 * The report_*() functions are for the places where something happens: they cost a comparison where
 * nobody watches. The report_fill_*() functions describe what there is, for a watcher that comes
 * later.
 */
#pragma once

#include "daemon/watch/feed.h"

struct job;
struct session;
struct watched;

struct report {
	const struct watched *watched; /* borrowed, outlives us */
	struct feed feed;
	nsec_t next_deadline; /* of the jobs since report_take_deadline(); 0: none */
};

/* @wake, with @userdata: as for feed_init(). Return: 0 or -ENOMEM. */
int report_init(struct report *report, const struct watched *watched, void (*wake)(void *userdata),
		void *userdata);
void report_deinit(struct report *report);

/* @kind: SESSION_START, SESSION_KILL or SESSION_END, now. */
void report_session(struct report *report, const struct session *s, Sbeet__Control__EventKind kind);

/* JOB_REQUEST, _GRANT, _REVOKE, _RESUME, _LATE, _OVERRUN, _ABANDON, now. */
void report_job(struct report *report, const struct job *job, Sbeet__Control__EventKind kind);

/* The next deadline of the jobs that were reported since this was last asked; 0: there is none. */
nsec_t report_take_deadline(struct report *report);

/* JOB_DONE, JOB_MISS where that is so, and JOB_OVERRUN where that is so and was not told before,
 * now. */
void report_job_done(struct report *report, const struct job *job);

/* The policy in force has changed. */
void report_policy(struct report *report);

/* The configuration was read again. */
void report_config(struct report *report);

/* The GPU @index grants nothing more; not @drained: it grants again. */
void report_drain(struct report *report, size_t index, bool drained);

/* The GPU @index has a new reading of its power. */
void report_gpu(struct report *report, size_t index);

void report_fill_gpu(const struct report *report, size_t index, struct feed_event *ret);
void report_fill_session(const struct session *s, struct feed_event *ret);
void report_fill_job(const struct report *report, const struct job *job, struct feed_event *ret);
